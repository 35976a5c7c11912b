//! Workspace files: listing, prefix scan, scrub, replace.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cenotaph_core::corpus::{self, CorpusScan};
use cenotaph_core::error::plain;
use cenotaph_core::refs;
use cenotaph_core::residue;
use cenotaph_core::scrub::{self, Scrub};
use cenotaph_core::snippets::Snippets;
use cenotaph_core::wipe::Old;
use cenotaph_core::{Error, Result, append, collate, replace, walk};
use pyo3::prelude::*;

use crate::call::{detached, interruptible};
use crate::residue::Needles;

/// Adds functions and classes of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Refs>()?;
    module.add_class::<Corpus>()?;
    module.add_class::<MemoryFile>()?;
    module.add_class::<MemoryFiles>()?;
    module.add_class::<FileScan>()?;
    module.add_class::<Scrubber>()?;
    module.add_function(wrap_pyfunction!(scan_corpus, module)?)?;
    module.add_function(wrap_pyfunction!(memory_files, module)?)?;
    module.add_function(wrap_pyfunction!(remove_corpus_lines, module)?)?;
    module.add_function(wrap_pyfunction!(append_lines, module)?)?;
    module.add_function(wrap_pyfunction!(sync_folders, module)?)?;
    module.add_function(wrap_pyfunction!(file_stamps, module)?)?;
    module.add_function(wrap_pyfunction!(remove_leftovers, module)?)?;
    module.add_function(wrap_pyfunction!(words, module)?)?;
    module.add_function(wrap_pyfunction!(locale_order, module)?)
}

type Failure = (OsString, String);

fn failures(found: Vec<(PathBuf, std::io::Error)>) -> Vec<Failure> {
    found
        .into_iter()
        .map(|(path, error)| (path.into_os_string(), plain(&error)))
        .collect()
}

/// Paths as Python text; `pathlib` would cost more than the scan of a small file.
fn texts(paths: Vec<PathBuf>) -> Vec<OsString> {
    paths.into_iter().map(PathBuf::into_os_string).collect()
}

#[pyclass(frozen, module = "cenotaph._core")]
pub struct Refs {
    pub inner: Arc<refs::Refs>,
}

#[pymethods]
impl Refs {
    #[new]
    #[pyo3(signature = (agent, ids, keys = Vec::new()))]
    fn new(py: Python<'_>, agent: &str, ids: Vec<String>, keys: Vec<String>) -> Self {
        let inner = py.detach(|| Arc::new(refs::Refs::new(agent, ids, keys)));
        Self { inner }
    }

    fn named_in(&self, text: &[u8]) -> bool {
        self.inner.named_in(text)
    }
}

#[pyclass(frozen, module = "cenotaph._core")]
pub struct Corpus {
    pub scan: CorpusScan,
    #[pyo3(get)]
    lines: u64,
    #[pyo3(get)]
    removed_files: Vec<OsString>,
    #[pyo3(get)]
    rewritten_files: Vec<OsString>,
    #[pyo3(get)]
    failures: Vec<Failure>,
}

#[pymethods]
impl Corpus {
    #[getter]
    fn snippet_count(&self) -> usize {
        self.scan.snippets.len()
    }
}

#[pyfunction]
#[pyo3(signature = (files, refs, threads = 0))]
fn scan_corpus(
    py: Python<'_>,
    files: Vec<PathBuf>,
    refs: &Refs,
    threads: usize,
) -> PyResult<Corpus> {
    let inner = Arc::clone(&refs.inner);
    let mut scan = interruptible(py, move || Ok(corpus::scan_corpus(&files, &inner, threads)))?;
    let emptied = |wanted: bool| {
        let files = scan.files.iter().filter(|file| file.emptied == wanted);
        files
            .map(|file| file.path.clone().into_os_string())
            .collect()
    };
    Ok(Corpus {
        lines: scan.files.iter().map(|file| file.lines).sum(),
        removed_files: emptied(true),
        rewritten_files: emptied(false),
        failures: failures(std::mem::take(&mut scan.failures)),
        scan,
    })
}

#[pyclass(frozen, get_all, module = "cenotaph._core", from_py_object)]
#[derive(Clone)]
pub struct MemoryFile {
    relative: String,
    path: OsString,
}

#[pymethods]
impl MemoryFile {
    #[new]
    fn new(relative: String, path: PathBuf) -> Self {
        Self {
            relative,
            path: path.into(),
        }
    }
}

impl From<walk::MemoryFile> for MemoryFile {
    fn from(file: walk::MemoryFile) -> Self {
        Self {
            relative: file.relative,
            path: file.path.into(),
        }
    }
}

impl From<MemoryFile> for walk::MemoryFile {
    fn from(file: MemoryFile) -> Self {
        Self {
            relative: file.relative,
            path: file.path.into(),
        }
    }
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct MemoryFiles {
    files: Vec<MemoryFile>,
    corpus: Vec<OsString>,
    leftovers: Vec<OsString>,
    links: Vec<OsString>,
    failures: Vec<Failure>,
}

#[pyfunction]
fn memory_files(py: Python<'_>, workspace: PathBuf) -> PyResult<MemoryFiles> {
    let found = interruptible(py, move || Ok(walk::memory_files(&workspace)))?;
    Ok(MemoryFiles {
        files: found.files.into_iter().map(Into::into).collect(),
        corpus: texts(found.corpus),
        leftovers: texts(found.leftovers),
        links: texts(found.links),
        failures: failures(found.failures),
    })
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct FileScan {
    entries: u64,
    lines: u64,
    shared_lines: Vec<u64>,
    stacked: Vec<String>,
    untraced: Vec<String>,
    history_refused: bool,
    changed: bool,
    error: Option<String>,
    old: Option<OldBlocks>,
}

/// Type of a file system, and what became of old blocks on it.
pub type OldBlocks = (&'static str, &'static str);

/// Lines removed, what became of the old blocks, and the reason when nothing was.
type CorpusRewrite = (u64, Option<OldBlocks>, Option<String>);

pub fn blocks(old: Old) -> OldBlocks {
    (old.file_system, old.fate.name())
}

impl From<Scrub> for FileScan {
    fn from(scrub: Scrub) -> Self {
        Self {
            changed: !scrub.removed.is_empty(),
            entries: scrub.entries,
            lines: scrub.lines,
            shared_lines: scrub.shared_lines,
            stacked: scrub.stacked,
            untraced: scrub.untraced,
            history_refused: scrub.history_refused,
            error: None,
            old: None,
        }
    }
}

impl From<std::io::Error> for FileScan {
    fn from(error: std::io::Error) -> Self {
        let nothing = Self::from(Scrub::default());
        Self {
            error: Some(plain(&error)),
            ..nothing
        }
    }
}

#[pyclass(frozen, module = "cenotaph._core")]
pub struct Scrubber {
    pub inner: Arc<scrub::Scrubber>,
    refs: Arc<refs::Refs>,
    snippets: Arc<Snippets>,
    erased: Option<Arc<residue::Needles>>,
}

impl Scrubber {
    fn build(
        refs: Arc<refs::Refs>,
        snippets: Arc<Snippets>,
        erased: Option<Arc<residue::Needles>>,
        entry_keys: Vec<String>,
        known_keys: Vec<String>,
    ) -> Self {
        let entry_keys: HashSet<String> = entry_keys.into_iter().collect();
        let known_keys: HashSet<String> = known_keys.into_iter().collect();
        let fresh = scrub::Scrubber::new(
            Arc::clone(&refs),
            entry_keys,
            known_keys,
            Arc::clone(&snippets),
        );
        Self {
            inner: Arc::new(match &erased {
                Some(set) => fresh.with_erased(Arc::clone(set)),
                None => fresh,
            }),
            refs,
            snippets,
            erased,
        }
    }
}

fn compile(
    scan: &CorpusScan,
    refs: &refs::Refs,
    corpus_files: &[PathBuf],
    keep_shared: bool,
) -> Snippets {
    let mut shared = corpus::shared_snippets(corpus_files, refs, &scan.snippets, 0);
    if !keep_shared {
        return Snippets::build(&scan.snippets, &shared);
    }
    let own: Vec<Vec<u8>> = scan
        .snippets
        .iter()
        .zip(&shared)
        .filter(|(_, shared)| !**shared)
        .map(|(s, _)| s.clone())
        .collect();
    shared.clear();
    shared.resize(own.len(), false);
    Snippets::build(&own, &shared)
}

#[pymethods]
impl Scrubber {
    #[new]
    #[pyo3(signature = (refs, entry_keys, known_keys, corpus = None, keep_shared = false, corpus_files = Vec::new()))]
    fn new(
        py: Python<'_>,
        refs: &Refs,
        entry_keys: Vec<String>,
        known_keys: Vec<String>,
        corpus: Option<&Corpus>,
        keep_shared: bool,
        corpus_files: Vec<PathBuf>,
    ) -> PyResult<Self> {
        let refs = Arc::clone(&refs.inner);
        let scan = corpus.map(|corpus| &corpus.scan);
        interruptible(py, move || {
            let snippets = match scan {
                Some(scan) => compile(scan, &refs, &corpus_files, keep_shared),
                None => Snippets::build(&[], &[]),
            };
            Ok(Self::build(
                refs,
                Arc::new(snippets),
                None,
                entry_keys,
                known_keys,
            ))
        })
    }

    fn with_erased(&self, erased: &Needles) -> Self {
        let inner = &self.inner;
        let erased = Arc::clone(&erased.inner);
        Self {
            inner: Arc::new(scrub::Scrubber::clone(inner).with_erased(Arc::clone(&erased))),
            refs: Arc::clone(&self.refs),
            snippets: Arc::clone(&self.snippets),
            erased: Some(erased),
        }
    }

    fn with_keys(&self, entry_keys: Vec<String>, known_keys: Vec<String>) -> Self {
        Self::build(
            Arc::clone(&self.refs),
            Arc::clone(&self.snippets),
            self.erased.clone(),
            entry_keys,
            known_keys,
        )
    }

    #[pyo3(signature = (files, threads = 0))]
    fn scan_files(
        &self,
        py: Python<'_>,
        files: Vec<MemoryFile>,
        threads: usize,
    ) -> PyResult<Vec<FileScan>> {
        let files: Vec<walk::MemoryFile> = files.into_iter().map(Into::into).collect();
        let found = interruptible(py, || Ok(scrub::scan_files(&files, &self.inner, threads)))?;
        let scans = found.into_iter();
        Ok(scans
            .map(|(scan, _)| scan.map_or_else(FileScan::from, FileScan::from))
            .collect())
    }

    #[pyo3(signature = (files, threads = 0))]
    fn rewrite_files(
        &self,
        py: Python<'_>,
        files: Vec<MemoryFile>,
        threads: usize,
    ) -> PyResult<Vec<FileScan>> {
        let files: Vec<walk::MemoryFile> = files.into_iter().map(Into::into).collect();
        let found = interruptible(py, || {
            Ok(scrub::rewrite_files(&files, &self.inner, threads))
        })?;
        Ok(found.into_iter().map(rewritten).collect())
    }

    fn matches(&self, text: &[u8]) -> bool {
        self.inner.scrub_text(text).is_some()
    }
}

/// What one rewrite came to: a file that has nothing to remove any more is unchanged.
fn rewritten(outcome: Result<Option<(Scrub, Old)>>) -> FileScan {
    match outcome {
        Ok(None) => FileScan::from(Scrub::default()),
        Ok(Some((found, old))) => FileScan {
            changed: true,
            old: Some(blocks(old)),
            ..FileScan::from(found)
        },
        Err(error) => FileScan {
            error: Some(reason(&error)),
            ..FileScan::from(Scrub::default())
        },
    }
}

/// The reason alone; the caller knows which file it is about.
pub fn reason(error: &Error) -> String {
    match error {
        Error::Io { source, .. } => plain(source),
        other => other.to_string(),
    }
}

#[pyfunction]
#[pyo3(signature = (files, refs, threads = 0))]
fn remove_corpus_lines(
    py: Python<'_>,
    files: Vec<PathBuf>,
    refs: &Refs,
    threads: usize,
) -> PyResult<Vec<CorpusRewrite>> {
    let refs = Arc::clone(&refs.inner);
    let removed = interruptible(py, move || Ok(corpus::remove_lines(&files, &refs, threads)))?;
    let counted = removed.into_iter().map(|outcome| match outcome {
        Ok((lines, old)) => (lines, old.map(blocks), None),
        Err(error) => (0, None, Some(reason(&error))),
    });
    Ok(counted.collect())
}

#[pyfunction]
fn append_lines(
    py: Python<'_>,
    base: PathBuf,
    relative: PathBuf,
    lines: Vec<Vec<u8>>,
) -> PyResult<(Vec<u64>, u64)> {
    interruptible(py, move || append::append_lines(&base, &relative, &lines))
}

#[pyfunction]
fn sync_folders(py: Python<'_>, files: Vec<PathBuf>) -> PyResult<()> {
    let folders: BTreeSet<PathBuf> = files
        .iter()
        .filter_map(|file| file.parent().map(PathBuf::from))
        .collect();
    detached(py, move || replace::sync_folders(&folders))
}

type StampTuple = (u64, u64, u64, i128, i128);

#[pyfunction]
fn file_stamps(py: Python<'_>, files: Vec<MemoryFile>) -> Vec<Option<StampTuple>> {
    py.detach(|| {
        let stamps = files
            .iter()
            .map(|file| replace::stamp(Path::new(&file.path)).ok());
        stamps
            .map(|stamp| stamp.map(|s| (s.dev, s.ino, s.size, s.mtime_ns, s.ctime_ns)))
            .collect()
    })
}

#[pyfunction]
fn remove_leftovers(
    py: Python<'_>,
    files: Vec<PathBuf>,
) -> Vec<(Option<OldBlocks>, Option<String>)> {
    py.detach(|| {
        let gone = files.iter().map(|file| replace::remove_file(file));
        gone.map(|outcome| match outcome {
            Ok(old) => (old.map(blocks), None),
            Err(error) => (None, Some(reason(&error))),
        })
        .collect()
    })
}

#[pyfunction]
fn locale_order(py: Python<'_>, texts: Vec<String>) -> Vec<usize> {
    py.detach(|| collate::locale_order(&texts))
}

#[pyfunction]
fn words(py: Python<'_>, text: &str) -> Vec<String> {
    py.detach(|| {
        cenotaph_core::words::words(text)
            .into_iter()
            .map(str::to_owned)
            .collect()
    })
}
