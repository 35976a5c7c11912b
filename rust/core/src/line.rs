//! Whole lines from a reader (stand-in until the text branch is merged).

use std::io::{self, Read};

/// Whole lines from a reader through one reused buffer.
pub struct LineReader<R: Read> {
    source: R,
    buffer: Vec<u8>,
    given: usize,
    filled: usize,
    ended: bool,
}

impl<R: Read> LineReader<R> {
    /// A reader with the usual buffer.
    pub fn new(source: R) -> Self {
        Self::with_capacity(source, 1 << 20)
    }

    /// A reader whose buffer holds `bytes` (at least 1).
    pub fn with_capacity(source: R, bytes: usize) -> Self {
        Self {
            source,
            buffer: vec![0; bytes.max(1)],
            given: 0,
            filled: 0,
            ended: false,
        }
    }

    /// Next block of whole lines: ends with `\n` unless it is the end of the input. None at the end.
    pub fn next_block(&mut self) -> io::Result<Option<&[u8]>> {
        self.buffer.copy_within(self.given..self.filled, 0);
        self.filled -= self.given;
        self.given = 0;
        while !self.ended {
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.filled * 2, 0);
            }
            let fresh = self.filled;
            let read = self.source.read(&mut self.buffer[fresh..])?;
            self.filled += read;
            self.ended = read == 0;
            if let Some(at) = memchr::memrchr(b'\n', &self.buffer[fresh..self.filled]) {
                self.given = fresh + at + 1;
                return Ok(Some(&self.buffer[..self.given]));
            }
        }
        self.given = self.filled;
        Ok((self.given > 0).then(|| &self.buffer[..self.given]))
    }
}

/// Splits a block into lines, each with its terminator.
pub fn lines(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = block;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
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
