//! Whole lines of a file through one reused buffer.
//!
//! No memory map: a file that an editor truncates under a live map kills the process, and buffered
//! reads are within a small factor of it. Nothing below decodes: a line is bytes up to `\n`.

use std::io::{self, ErrorKind, Read};

use crate::interrupt;

use memchr::{memchr, memrchr};

/// Bytes that a reader holds at once, unless a single line is longer.
const CAPACITY: usize = 1 << 20;

/// First size of the buffer: a memory file of a few kilobytes must not pay for clearing a megabyte.
const FIRST: usize = 64 << 10;

/// Whole lines from a reader through one reused buffer.
///
/// The buffer holds 1 MiB. It grows, by doubling, only while a single line does not fit, and goes
/// back to its size once that line is done.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    buffer: Vec<u8>,
    capacity: usize,
    /// End of the block handed out last; what follows, up to `filled`, begins the next block.
    given: usize,
    filled: usize,
    ended: bool,
}

impl<R: Read> LineReader<R> {
    /// A reader with the usual buffer of 1 MiB.
    pub fn new(source: R) -> Self {
        Self::with_capacity(source, CAPACITY)
    }

    /// A reader whose buffer holds `bytes` (at least 1).
    pub fn with_capacity(source: R, bytes: usize) -> Self {
        let capacity = bytes.max(1);
        Self {
            source,
            buffer: vec![0; capacity.min(FIRST)],
            capacity,
            given: 0,
            filled: 0,
            ended: false,
        }
    }

    /// Next block of whole lines: it ends with `\n` unless it is the end of the input. None at the end.
    ///
    /// An error of the reader is returned as it is, but for `Interrupted`, which is tried again.
    /// After an error the same call may be repeated; no byte read so far is lost.
    pub fn next_block(&mut self) -> io::Result<Option<&[u8]>> {
        if interrupt::asked() {
            return Err(io::Error::other("interrupted"));
        }
        self.reclaim();
        while !self.ended {
            self.make_room();
            let fresh = self.filled;
            self.fill()?;
            if let Some(newline) = memrchr(b'\n', &self.buffer[fresh..self.filled]) {
                self.given = fresh + newline + 1;
                return Ok(Some(&self.buffer[..self.given]));
            }
        }
        self.given = self.filled;
        Ok((self.given > 0).then(|| &self.buffer[..self.given]))
    }

    /// Moves the unfinished line to the front, and gives back what only a long line needed.
    fn reclaim(&mut self) {
        self.buffer.copy_within(self.given..self.filled, 0);
        self.filled -= self.given;
        self.given = 0;
        if self.buffer.len() > self.capacity && self.filled < self.capacity {
            self.buffer.truncate(self.capacity);
            self.buffer.shrink_to_fit();
        }
    }

    fn make_room(&mut self) {
        let held = self.buffer.len();
        if self.filled == held {
            self.buffer.resize(held.saturating_mul(2), 0);
        } else if self.filled > 0 && held < self.capacity {
            // A second read means a file worth the whole buffer.
            self.buffer.resize(self.capacity, 0);
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        loop {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(read) => {
                    self.filled += read;
                    self.ended = read == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Splits a block into lines, each with its terminator.
///
/// The terminator is `\n` only; a CR belongs to the line. The last line may have none.
pub fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = block;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1);
        let (line, after) = rest.split_at(end);
        rest = after;
        Some(line)
    })
}

/// `line` without its final `\n` or `\r\n`.
pub fn body(line: &[u8]) -> &[u8] {
    let Some(line) = line.strip_suffix(b"\n") else {
        return line;
    };
    line.strip_suffix(b"\r").unwrap_or(line)
}
