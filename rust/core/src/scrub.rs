//! Which bytes of a memory file go: entries by their keys, quotations by their text, sections by the
//! session that they name.
//!
//! One pass over whole lines. A decision is a byte range, so that it may reach back: to the heading of
//! a hook note whose `Session ID` row comes later, or to markers that have just lost their entry.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use memchr::memmem::Finder;
use memchr::memrchr;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::line::LineReader;
use crate::refs::Refs;
use crate::replace::{self, Stamp};
use crate::residue::Needles;
use crate::scan::Scan;
use crate::snippets::Snippets;
use crate::walk::MemoryFile;
use crate::wipe::Old;
use crate::{Result, threads};

/// What is to be forgotten, as the text of memory files can show it.
#[derive(Debug, Clone)]
pub struct Scrubber {
    refs: Arc<Refs>,
    entry_keys: HashSet<String>,
    known_keys: HashSet<String>,
    snippets: Arc<Snippets>,
    erased: Option<Arc<Needles>>,
    opening: Finder<'static>,
}

/// What a scan found.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Scrub {
    /// Byte ranges to remove: ascending, disjoint, not touching each other.
    pub removed: Vec<Range<u64>>,
    /// Removed entries (each marker of a removed unit is one) and sections (`memoryEntries`).
    pub entries: u64,
    /// Removed lines that quote a snippet (`memoryLines`).
    pub lines: u64,
    /// Numbers (from 1) of removed quoting lines whose only snippets are shared (V20).
    pub shared_lines: Vec<u64>,
    /// Keys that are not selected but went with a selected one that labels the same entry (V1).
    pub stacked: Vec<String>,
    /// Keys of markers, wherever they stand, that have no origin (`untargetableEntryKeys`).
    pub untraced: Vec<String>,
    /// Highlights of an old consolidation history remain, which nobody can trace.
    pub history_refused: bool,
    /// Size of the text in bytes.
    pub bytes: u64,
}

impl Scrubber {
    /// Puts together what to look for.
    ///
    /// `entry_keys` are the keys of the entries to remove, `known_keys` all keys that have an origin.
    pub fn new(
        refs: impl Into<Arc<Refs>>,
        entry_keys: HashSet<String>,
        known_keys: HashSet<String>,
        snippets: impl Into<Arc<Snippets>>,
    ) -> Self {
        Self {
            refs: refs.into(),
            entry_keys,
            known_keys,
            snippets: snippets.into(),
            erased: None,
            opening: Finder::new("<!--"),
        }
    }

    /// Lines that hold what earlier runs for the same sessions removed go, too.
    #[must_use]
    pub fn with_erased(self, erased: impl Into<Arc<Needles>>) -> Self {
        Self {
            erased: Some(erased.into()),
            ..self
        }
    }

    /// The selected sessions.
    pub fn refs(&self) -> &Refs {
        &self.refs
    }

    /// The snippets that condemn a line.
    pub fn snippets(&self) -> &Snippets {
        &self.snippets
    }

    /// Lines of `block` (whole lines) that hold a snippet, or what an earlier run removed: the byte offset of each
    /// line's start in `block`, ascending, pushed to `found`, which is empty.
    pub(crate) fn quoting_lines(&self, block: &[u8], found: &mut Vec<usize>) {
        if !self.snippets.is_empty() {
            self.snippets.matching_lines(block, found);
        }
        let Some(erased) = &self.erased else {
            return;
        };
        let hits = erased.hits_in(block).into_iter();
        found.extend(
            hits.map(|hit| memrchr(b'\n', &block[..offset(hit.offset)]).map_or(0, |end| end + 1)),
        );
        found.sort_unstable();
        found.dedup();
    }

    pub(crate) fn entry_keys(&self) -> &HashSet<String> {
        &self.entry_keys
    }

    /// Whether an entry with this key has an origin.
    pub fn is_known(&self, key: &str) -> bool {
        self.known_keys.contains(key)
    }

    pub(crate) fn comment_opening(&self) -> &Finder<'static> {
        &self.opening
    }

    /// Scans a text as it comes. Memory holds the longest line and what was decided, never the text.
    pub fn scan(&self, source: impl Read) -> io::Result<Scrub> {
        self.scan_lines(LineReader::new(source))
    }

    /// As [`scan`](Self::scan), with a reader of the caller's making.
    pub fn scan_lines<R: Read>(&self, mut reader: LineReader<R>) -> io::Result<Scrub> {
        let mut scan = Scan::new(self);
        while let Some(block) = reader.next_block()? {
            scan.read(block);
        }
        Ok(scan.finish())
    }

    /// Scrubs a text in memory. None when nothing is removed.
    pub fn scrub_text(&self, text: &[u8]) -> Option<(Vec<u8>, Scrub)> {
        let mut scan = Scan::new(self);
        scan.read(text);
        let scrub = scan.finish();
        if scrub.removed.is_empty() {
            return None;
        }
        Some((without(text, &scrub.removed), scrub))
    }
}

/// Scans memory files in parallel (`threads` at a time, 0 for the usual number); results in order.
///
/// The stamp is that of the file which was read; None when it could not be opened.
pub fn scan_files(
    files: &[MemoryFile],
    scrubber: &Scrubber,
    threads: usize,
) -> Vec<(io::Result<Scrub>, Option<Stamp>)> {
    let scan = |file: &MemoryFile| match open(&file.path) {
        Ok((source, stamp)) => (scrubber.scan(source), Some(stamp)),
        Err(error) => (Err(error), None),
    };
    threads::run(threads, || files.par_iter().map(scan).collect())
}

/// Removes from each file what a scan of its present content finds, atomically (see [`replace::remove_ranges`]); results in
/// order, None where there was nothing to remove.
pub fn rewrite_files(
    files: &[MemoryFile],
    scrubber: &Scrubber,
    threads: usize,
) -> Vec<Result<Option<(Scrub, Old)>>> {
    let rewrite = |file: &MemoryFile| {
        replace::remove_ranges(&file.path, |source| {
            let mut scrub = scrubber.scan(source)?;
            Ok((std::mem::take(&mut scrub.removed), scrub))
        })
    };
    threads::run(threads, || files.par_iter().map(rewrite).collect())
}

fn open(path: &Path) -> io::Result<(File, Stamp)> {
    let file = File::open(path)?;
    let stamp = Stamp::of(&file.metadata()?);
    Ok((file, stamp))
}

/// `text` without the ranges, which must be ascending and inside it.
fn without(text: &[u8], removed: &[Range<u64>]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut from = 0;
    for range in removed {
        let (start, end) = (offset(range.start), offset(range.end));
        kept.extend_from_slice(&text[from..start]);
        from = end;
    }
    kept.extend_from_slice(&text[from..]);
    kept
}

fn offset(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}
