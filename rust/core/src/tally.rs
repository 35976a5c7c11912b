//! What a scan has decided to remove so far, and what it counted; it can be taken back to a mark.

use std::ops::Range;

/// Removals and counts, in the order of the text.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) removed: Vec<Range<u64>>,
    pub(crate) entries: u64,
    pub(crate) lines: u64,
    pub(crate) shared_lines: Vec<u64>,
    pub(crate) stacked: Vec<String>,
    /// A heading of the consolidation history stands in what remains.
    pub(crate) history: bool,
    /// An unmarked highlight remains after that heading.
    pub(crate) refused: bool,
}

/// A place in the text, and the tally as it was there.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) start: u64,
    entries: u64,
    lines: u64,
    shared_lines: usize,
    stacked: usize,
    history: bool,
    refused: bool,
}

impl Tally {
    /// Removes a range that ends the text read so far, with all that lies between it and earlier
    /// ranges that reach into it.
    pub(crate) fn cover(&mut self, mut range: Range<u64>) {
        while let Some(last) = self.removed.pop_if(|last| last.end >= range.start) {
            range = last.start.min(range.start)..last.end.max(range.end);
        }
        self.removed.push(range);
    }

    /// The state before the line that begins at `start`, which is about to be decided on.
    pub(crate) fn mark(&self, start: u64) -> Mark {
        Mark {
            start,
            entries: self.entries,
            lines: self.lines,
            shared_lines: self.shared_lines.len(),
            stacked: self.stacked.len(),
            history: self.history,
            refused: self.refused,
        }
    }

    /// Forgets whatever was decided about the text from `mark` on.
    pub(crate) fn rewind(&mut self, mark: &Mark) {
        while self
            .removed
            .pop_if(|range| range.start >= mark.start)
            .is_some()
        {}
        if let Some(last) = self.removed.last_mut() {
            last.end = last.end.min(mark.start);
        }
        self.entries = mark.entries;
        self.lines = mark.lines;
        self.shared_lines.truncate(mark.shared_lines);
        self.stacked.truncate(mark.stacked);
        self.history = mark.history;
        self.refused = mark.refused;
    }
}
