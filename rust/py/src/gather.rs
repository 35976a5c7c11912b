//! What goes, before it goes; entries before and after.

use std::path::PathBuf;
use std::sync::Arc;

use cenotaph_core::gather::{GatherAsk, gather as gather_needles, index_rows, state_rows};
use cenotaph_core::{entries, residue, walk};
use pyo3::prelude::*;

use crate::call::interruptible;
use crate::residue::Needles;
use crate::scan::{Corpus, MemoryFile, Refs, Scrubber};
use crate::state::{StatePlan, StateStore};
use crate::store::{IndexPlan, Store};

/// Adds functions and classes of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Gathered>()?;
    module.add_function(wrap_pyfunction!(gather, module)?)?;
    module.add_function(wrap_pyfunction!(unsaid, module)?)?;
    module.add_function(wrap_pyfunction!(entries_of, module)?)
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct Gathered {
    needles: Py<Needles>,
    shared: u64,
    candidates: u64,
    erased: Option<Py<Needles>>,
}

#[pyfunction]
#[pyo3(signature = (refs, scrubber, corpus, memory_files, corpus_files, memory, index, state, state_plan, keep_shared, erased = None))]
#[expect(
    clippy::too_many_arguments,
    reason = "one coarse call instead of a builder"
)]
fn gather(
    py: Python<'_>,
    refs: &Refs,
    scrubber: &Scrubber,
    corpus: &Corpus,
    memory_files: Vec<MemoryFile>,
    corpus_files: Vec<PathBuf>,
    memory: Option<&Store>,
    index: Option<&IndexPlan>,
    state: Option<&StateStore>,
    state_plan: Option<&StatePlan>,
    keep_shared: bool,
    erased: Option<&Needles>,
) -> PyResult<Gathered> {
    let files: Vec<walk::MemoryFile> = memory_files.into_iter().map(Into::into).collect();
    let (refs, scrubber) = (Arc::clone(&refs.inner), Arc::clone(&scrubber.inner));
    let snippets = &corpus.scan.snippets;
    let (memory, state) = (
        memory.map(|open| &open.handle),
        state.map(|open| &open.handle),
    );
    let (index, state_plan) = (
        index.map(|plan| &plan.inner),
        state_plan.map(|plan| &plan.inner),
    );
    let erased = erased.map(|set| Arc::clone(&set.inner));
    let (compiled, gathered) = interruptible(py, || {
        let ask = GatherAsk {
            refs: &refs,
            scrubber: &scrubber,
            snippets,
            memory: &files,
            corpus: &corpus_files,
            erased: erased.as_deref(),
            keep_shared,
            each_row: &|show| {
                if let (Some(handle), Some(plan)) = (memory, index) {
                    handle.with(|open| index_rows(open, plan, show))?;
                }
                if let (Some(handle), Some(plan)) = (state, state_plan) {
                    handle.with(|open| state_rows(open, plan, show))?;
                }
                Ok(())
            },
        };
        let gathered = gather_needles(&ask)?;
        Ok((residue::Needles::new(gathered.needles.clone()), gathered))
    })?;
    Ok(Gathered {
        needles: Py::new(py, Needles::from(compiled))?,
        shared: gathered.shared,
        candidates: gathered.candidates,
        erased: match gathered.erased {
            Some(rest) => Some(Py::new(py, Needles::from(rest))?),
            None => None,
        },
    })
}

#[pyfunction]
fn unsaid(
    py: Python<'_>,
    erased: &Needles,
    refs: &Refs,
    corpus_files: Vec<PathBuf>,
) -> PyResult<Needles> {
    let (erased, refs) = (Arc::clone(&erased.inner), Arc::clone(&refs.inner));
    let rest = interruptible(py, move || {
        cenotaph_core::gather::unsaid(&erased, &refs, &corpus_files)
    })?;
    Ok(rest.into())
}

/// Keys of an entry's markers, and SHA-256 of its bytes.
type EntryTuple = (Vec<String>, Vec<u8>);

#[pyfunction]
fn entries_of(py: Python<'_>, files: Vec<PathBuf>) -> PyResult<Vec<Vec<EntryTuple>>> {
    interruptible(py, || {
        let read = files.iter().map(|path| {
            let found = entries::entries_of(path)
                .map_err(|source| cenotaph_core::Error::io(path, source))?;
            let tuples = found
                .into_iter()
                .map(|entry| (entry.keys, entry.hash.to_vec()));
            Ok(tuples.collect())
        });
        read.collect()
    })
}
