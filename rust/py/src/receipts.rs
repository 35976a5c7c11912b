//! What either database can do about its receipts and its unused pages.

use std::ffi::OsString;
use std::sync::Arc;

use cenotaph_core::store::{self, Freed, Receipt};
use cenotaph_core::{Result, killpoint};
use pyo3::prelude::*;

use crate::call::{detached, interruptible};
use crate::scan::{OldBlocks, blocks, reason};
use crate::state::StateStore;
use crate::store::{Handle, Store};

/// Adds functions and classes of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Link>()?;
    module.add_function(wrap_pyfunction!(keep_receipt, module)?)?;
    module.add_function(wrap_pyfunction!(complete_receipt, module)?)?;
    module.add_function(wrap_pyfunction!(receipts, module)?)?;
    module.add_function(wrap_pyfunction!(receipt_shingles, module)?)?;
    module.add_function(wrap_pyfunction!(check_receipts, module)?)?;
    module.add_function(wrap_pyfunction!(erase_free_pages, module)?)?;
    module.add_function(wrap_pyfunction!(sweep_beside, module)?)?;
    module.add_function(wrap_pyfunction!(rebuild_full_text, module)?)?;
    module.add_function(wrap_pyfunction!(vacuum, module)?)?;
    module.add_function(wrap_pyfunction!(kill_point, module)?)
}

/// Either database.
#[derive(FromPyObject)]
enum Either<'py> {
    Agent(PyRef<'py, Store>),
    State(PyRef<'py, StateStore>),
}

impl Either<'_> {
    fn handle(&self) -> Arc<Handle> {
        match self {
            Self::Agent(store) => Arc::clone(&store.handle),
            Self::State(store) => Arc::clone(&store.handle),
        }
    }
}

/// A short call on the open connection.
fn short<T: Send>(
    py: Python<'_>,
    store: &Either<'_>,
    work: impl FnOnce(&store::Store) -> Result<T> + Send,
) -> PyResult<T> {
    let handle = store.handle();
    detached(py, move || handle.with(work))
}

/// A call that may take long.
fn long<T: Send>(
    py: Python<'_>,
    store: &Either<'_>,
    work: impl FnOnce(&store::Store) -> Result<T> + Send,
) -> PyResult<T> {
    let handle = store.handle();
    interruptible(py, move || handle.with(work))
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct Link {
    seq: i64,
    receipt: String,
    agent: String,
    stage: String,
    created_at: i64,
    body: String,
    previous: String,
    hash: String,
}

impl From<store::Link> for Link {
    fn from(link: store::Link) -> Self {
        Self {
            seq: link.seq,
            receipt: link.receipt,
            agent: link.agent,
            stage: link.stage,
            created_at: link.created_at,
            body: link.body,
            previous: link.previous,
            hash: link.hash,
        }
    }
}

#[pyfunction]
fn keep_receipt(
    py: Python<'_>,
    store: Either<'_>,
    receipt: String,
    agent: String,
    now_ms: i64,
    body: String,
    shingles: Vec<u8>,
) -> PyResult<()> {
    let kept = Receipt {
        id: receipt,
        agent,
        now_ms,
        body,
        shingles,
    };
    short(py, &store, move |open| {
        open.keep_receipt(kept);
        Ok(())
    })
}

#[pyfunction]
fn complete_receipt(
    py: Python<'_>,
    store: Either<'_>,
    receipt: &str,
    agent: &str,
    body: &str,
    now_ms: i64,
) -> PyResult<()> {
    short(py, &store, |open| {
        open.complete_receipt(receipt, agent, body, now_ms)
    })
}

#[pyfunction]
fn receipts(py: Python<'_>, store: Either<'_>) -> PyResult<Vec<Link>> {
    let links = short(py, &store, store::Store::receipts)?;
    Ok(links.into_iter().map(Into::into).collect())
}

#[pyfunction]
fn receipt_shingles(
    py: Python<'_>,
    store: Either<'_>,
    receipts: Vec<String>,
) -> PyResult<Vec<Vec<u8>>> {
    short(py, &store, |open| open.receipt_shingles(&receipts))
}

#[pyfunction]
fn check_receipts(py: Python<'_>, store: Either<'_>) -> PyResult<Option<(i64, &'static str)>> {
    let found = long(py, &store, store::Store::check_receipts)?;
    Ok(found.map(|found| (found.seq, found.reason)))
}

#[pyfunction]
fn erase_free_pages(py: Python<'_>, store: Either<'_>) -> PyResult<&'static str> {
    let freed = long(py, &store, store::Store::erase_free_pages)?;
    Ok(match freed {
        Freed::None => "none",
        Freed::Released => "released",
        Freed::Blanked => "blanked",
    })
}

type Swept = (OsString, Option<OldBlocks>, Option<String>);

#[pyfunction]
fn sweep_beside(py: Python<'_>, store: Either<'_>) -> PyResult<Vec<Swept>> {
    let swept = long(py, &store, store::Store::sweep_beside)?;
    let outcome = |(path, outcome): store::beside::Swept| match outcome {
        Ok(old) => (path.into_os_string(), old.map(blocks), None),
        Err(error) => (path.into_os_string(), None, Some(reason(&error))),
    };
    Ok(swept.into_iter().map(outcome).collect())
}

#[pyfunction]
fn rebuild_full_text(py: Python<'_>, store: Either<'_>) -> PyResult<()> {
    long(py, &store, store::Store::rebuild_full_text)
}

#[pyfunction]
fn vacuum(py: Python<'_>, store: Either<'_>) -> PyResult<()> {
    long(py, &store, store::Store::vacuum)
}

#[pyfunction]
fn kill_point(name: &str) {
    killpoint::pass(name);
}
