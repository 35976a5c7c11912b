//! The session corpus: which lines belong to a selected session, and what they said.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::line::{LineReader, lines};
use crate::normalise::{trim, utf16_len};
use crate::refs::{Refs, corpus_snippet};
use crate::replace::{self, Stamp};
use crate::wipe::Old;
use crate::{Result, threads};

/// UTF-16 units that a snippet must have to be worth looking for: the host ingests no shorter ones.
const SHORTEST: usize = 12;

/// A corpus file with lines of selected sessions.
#[derive(Debug)]
pub struct CorpusFile {
    /// The file, as it was given.
    pub path: PathBuf,
    /// The lines' byte ranges: ascending, disjoint, not touching each other.
    pub removed: Vec<Range<u64>>,
    /// Number of those lines.
    pub lines: u64,
    /// Nothing but white space would remain.
    pub emptied: bool,
    /// The file as it was when it was read.
    pub stamp: Stamp,
}

/// What a scan of the corpus found.
#[derive(Debug, Default)]
pub struct CorpusScan {
    /// Files with removed lines, in the order given.
    pub files: Vec<CorpusFile>,
    /// Snippets of the removed lines, each once, in order of first sight; none under 12 UTF-16 units.
    pub snippets: Vec<Vec<u8>>,
    /// Files that could not be read.
    pub failures: Vec<(PathBuf, io::Error)>,
}

/// What one corpus file says.
#[derive(Debug, Default)]
pub struct CorpusLines {
    /// Byte ranges of the lines of selected sessions: ascending, disjoint, not touching each other.
    pub removed: Vec<Range<u64>>,
    /// Number of those lines.
    pub lines: u64,
    /// A line that is not white space only remains.
    pub remains: bool,
    /// The lines' snippets as they come, repeated ones too.
    pub snippets: Vec<Vec<u8>>,
}

/// Scans corpus files in parallel (`threads` at a time, 0 for the usual number).
///
/// The result does not depend on the number of threads.
pub fn scan_corpus(files: &[PathBuf], refs: &Refs, threads: usize) -> CorpusScan {
    let scanned: Vec<_> = threads::run(threads, || {
        files.par_iter().map(|path| scan_file(path, refs)).collect()
    });
    let mut scan = CorpusScan::default();
    let mut seen = HashSet::new();
    for (path, result) in files.iter().zip(scanned) {
        match result {
            Ok((stamp, found)) => scan.add(path, stamp, found, &mut seen),
            Err(error) => scan.failures.push((path.clone(), error)),
        }
    }
    scan
}

/// Reads the corpus lines of one file, in memory bounded by the longest line and what goes.
pub fn read_corpus(source: impl Read, refs: &Refs) -> io::Result<CorpusLines> {
    let mut found = CorpusLines::default();
    let mut reader = LineReader::new(source);
    let mut at = 0;
    while let Some(block) = reader.next_block()? {
        for line in lines(block) {
            let end = at + line.len() as u64;
            if refs.in_corpus_prefix(line) {
                found.add(at..end, line);
            } else {
                found.remains = found.remains || !trim(line).is_empty();
            }
            at = end;
        }
    }
    Ok(found)
}

/// Removes the corpus lines of the selected sessions from each file, atomically: their numbers, in order. A file of which
/// nothing but white space would remain goes. Says what became of the old blocks, too.
pub fn remove_lines(
    files: &[PathBuf],
    refs: &Refs,
    threads: usize,
) -> Vec<Result<(u64, Option<Old>)>> {
    threads::run(threads, || {
        files
            .par_iter()
            .map(|path| remove_lines_of(path, refs))
            .collect()
    })
}

fn remove_lines_of(path: &Path, refs: &Refs) -> Result<(u64, Option<Old>)> {
    let emptied = Cell::new(0);
    let went = replace::remove_file_if(path, |source| {
        let found = read_corpus(source, refs)?;
        emptied.set(found.lines);
        Ok(found.lines > 0 && !found.remains)
    })?;
    if went.is_some() {
        return Ok((emptied.get(), went));
    }
    let removed = replace::remove_ranges(path, |source| {
        read_corpus(source, refs).map(|found| (found.removed, found.lines))
    })?;
    Ok(removed.map_or((0, None), |(lines, old)| (lines, Some(old))))
}

/// Which snippets also stand in a line that survives: as its snippet, or as the whole line where it has
/// none. Flags in the order of `snippets`. A file that cannot be read speaks for nobody.
pub fn shared_snippets(
    files: &[PathBuf],
    refs: &Refs,
    snippets: &[Vec<u8>],
    threads: usize,
) -> Vec<bool> {
    let flags: Vec<AtomicBool> = snippets.iter().map(|_| AtomicBool::new(false)).collect();
    let numbers: HashMap<&[u8], &AtomicBool> =
        snippets.iter().map(Vec::as_slice).zip(&flags).collect();
    let mark = |path: &PathBuf| {
        // The scan for removed lines has reported what cannot be read.
        let _ = mark_shared(path, refs, &numbers);
    };
    if !snippets.is_empty() {
        threads::run(threads, || files.par_iter().for_each(mark));
    }
    drop(numbers);
    flags.into_iter().map(AtomicBool::into_inner).collect()
}

impl CorpusScan {
    fn add(&mut self, path: &Path, stamp: Stamp, found: CorpusLines, seen: &mut HashSet<Vec<u8>>) {
        for snippet in found.snippets {
            if seen.insert(snippet.clone()) {
                self.snippets.push(snippet);
            }
        }
        if found.lines == 0 {
            return;
        }
        self.files.push(CorpusFile {
            path: path.to_path_buf(),
            removed: found.removed,
            lines: found.lines,
            emptied: !found.remains,
            stamp,
        });
    }
}

impl CorpusLines {
    fn add(&mut self, range: Range<u64>, line: &[u8]) {
        self.lines += 1;
        match self.removed.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.removed.push(range),
        }
        let snippet = corpus_snippet(line).filter(|snippet| utf16_len(snippet) >= SHORTEST);
        self.snippets.extend(snippet.map(<[u8]>::to_vec));
    }
}

fn scan_file(path: &Path, refs: &Refs) -> io::Result<(Stamp, CorpusLines)> {
    let file = File::open(path)?;
    let stamp = Stamp::of(&file.metadata()?);
    Ok((stamp, read_corpus(file, refs)?))
}

fn mark_shared(path: &Path, refs: &Refs, numbers: &HashMap<&[u8], &AtomicBool>) -> io::Result<()> {
    let mut reader = LineReader::new(File::open(path)?);
    while let Some(block) = reader.next_block()? {
        for line in lines(block) {
            let said = corpus_snippet(line).unwrap_or_else(|| trim(line));
            if let Some(flag) = numbers.get(said)
                && !refs.in_corpus_prefix(line)
            {
                flag.store(true, Ordering::Relaxed);
            }
        }
    }
    Ok(())
}
