//! A stream through one reused buffer, so that memory does not grow with the file.

use std::io::{self, ErrorKind, Read};
use std::path::Path;

use super::needles::{Compiled, Needles};
use super::pattern::Pattern;
use crate::{Error, Result, interrupt};

/// Bytes that are read at once: what a core holds in its second cache beside the tables of the engine.
const STEP: usize = 1 << 18;

/// A search through a stream, step by step.
///
/// The buffer begins with the last bytes of the step before, one fewer than the longest window has, so that every
/// occurrence lies in one buffer as a whole; those that ended in the step before are not reported again.
pub(super) struct Scan<'s> {
    needles: &'s Needles,
    buffer: &'s mut Vec<u8>,
    /// Bytes at the start of the buffer that were searched before.
    kept: usize,
    /// Where in the stream the buffer begins.
    base: u64,
}

impl<'s> Scan<'s> {
    /// Begins at `base` of a stream. What is read at once is much more than what is searched again.
    pub(super) fn new(needles: &'s Needles, buffer: &'s mut Vec<u8>, base: u64) -> Self {
        let step = STEP.max(4 * overlap(needles));
        Self::with_step(needles, buffer, base, step)
    }

    /// The same with another number of bytes that are read at once.
    pub(super) fn with_step(
        needles: &'s Needles,
        buffer: &'s mut Vec<u8>,
        base: u64,
        step: usize,
    ) -> Self {
        let size = overlap(needles) + step.max(1);
        if buffer.len() != size {
            buffer.resize(size, 0);
        }
        Self {
            needles,
            buffer,
            kept: 0,
            base,
        }
    }

    /// Reads and searches one buffer; false at the end of the stream. What was read before an error is searched.
    pub(super) fn step(
        &mut self,
        reader: &mut dyn Read,
        path: &Path,
        report: &mut dyn FnMut(u64, &Pattern),
    ) -> Result<bool> {
        interrupt::check()?;
        let (read, outcome) = fill(reader, &mut self.buffer[self.kept..]);
        let filled = self.kept + read;
        let (needles, base) = (self.needles, self.base);
        let Compiled { patterns, engine } = needles.compiled();
        engine.scan(
            patterns,
            &self.buffer[..filled],
            self.kept,
            &mut |start, pattern| report(base + start as u64, pattern),
        );
        let more = filled == self.buffer.len();
        let kept = overlap(needles).min(filled);
        self.buffer.copy_within(filled - kept..filled, 0);
        self.base += (filled - kept) as u64;
        self.kept = kept;
        outcome.map_err(|source| Error::io(path, source))?;
        Ok(more)
    }

    /// Searches all of the rest.
    pub(super) fn through(
        &mut self,
        reader: &mut dyn Read,
        path: &Path,
        report: &mut dyn FnMut(u64, &Pattern),
    ) -> Result<()> {
        while self.step(reader, path, report)? {}
        Ok(())
    }

    /// Where the bytes begin that a later search must see again to miss nothing.
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Bytes that were read.
    pub(super) fn end(&self) -> u64 {
        self.base + self.kept as u64
    }
}

fn overlap(needles: &Needles) -> usize {
    needles.compiled().patterns.longest.saturating_sub(1)
}

/// Reads until the buffer is full, the stream ends, or an error.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> (usize, io::Result<()>) {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return (filled, Err(error)),
        }
    }
    (filled, Ok(()))
}
