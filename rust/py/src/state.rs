//! The shared database: plugin state, the write observer, the workspace lock.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use cenotaph_core::interrupt;
use cenotaph_core::store::{self, StateAsk};
use pyo3::prelude::*;

use crate::call::{detached, interruptible};
use crate::scan::{Refs, Scrubber};
use crate::store::{Handle, access};

/// Adds the classes of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<StateCounts>()?;
    module.add_class::<StatePlan>()?;
    module.add_class::<ObservedWrite>()?;
    module.add_class::<StateStore>()
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct StateCounts {
    short_term_entries: u64,
    seen_hash_scopes: u64,
    backups: u64,
}

impl From<&store::StateCounts> for StateCounts {
    fn from(counts: &store::StateCounts) -> Self {
        Self {
            short_term_entries: counts.short_term_entries,
            seen_hash_scopes: counts.seen_hash_scopes,
            backups: counts.backups,
        }
    }
}

#[pyclass(frozen, module = "cenotaph._core")]
pub struct StatePlan {
    pub inner: store::StatePlan,
}

#[pymethods]
impl StatePlan {
    #[getter]
    fn counts(&self) -> StateCounts {
        (&self.inner.counts).into()
    }

    #[getter]
    fn failures(&self) -> Vec<String> {
        self.inner.failures.clone()
    }
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct ObservedWrite {
    relative_path: String,
    file_hash: String,
    origin_class: String,
    session_id: Option<String>,
    session_key: Option<String>,
    observed_at: i64,
}

#[pyclass(frozen, module = "cenotaph._core")]
pub struct StateStore {
    pub handle: Arc<Handle>,
}

#[pymethods]
impl StateStore {
    #[staticmethod]
    #[pyo3(signature = (path, *, write, busy_ms = 10_000))]
    fn open(py: Python<'_>, path: PathBuf, write: bool, busy_ms: u32) -> PyResult<Option<Self>> {
        let opened = detached(py, || {
            store::Store::open_state(&path, access(write), busy_ms)
        })?;
        Ok(opened.map(|inner| Self {
            handle: Handle::shared(inner),
        }))
    }

    #[staticmethod]
    fn create_minimal(py: Python<'_>, path: PathBuf) -> PyResult<()> {
        detached(py, || store::Store::create_state_minimal(&path))
    }

    fn agent_databases(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        detached(py, || self.handle.with(store::Store::agent_databases))
    }

    fn observed_writes(
        &self,
        py: Python<'_>,
        real_workspace_key: &str,
    ) -> PyResult<Vec<ObservedWrite>> {
        let rows = detached(py, || {
            self.handle
                .with(|open| open.observed_writes(real_workspace_key))
        })?;
        Ok(rows
            .into_iter()
            .map(|row| ObservedWrite {
                relative_path: row.relative_path,
                file_hash: row.file_hash,
                origin_class: row.origin_class,
                session_id: row.session_id,
                session_key: row.session_key,
                observed_at: row.observed_at,
            })
            .collect())
    }

    fn plan(
        &self,
        py: Python<'_>,
        workspace_key: &str,
        agent: &str,
        refs: &Refs,
        scrubber: &Scrubber,
        entry_keys: Vec<String>,
    ) -> PyResult<StatePlan> {
        let (refs, scrubber) = (Arc::clone(&refs.inner), Arc::clone(&scrubber.inner));
        let entry_keys: HashSet<String> = entry_keys.into_iter().collect();
        let inner = interruptible(py, || {
            self.handle.with(|open| {
                open.plan_state(&StateAsk {
                    workspace_key,
                    agent,
                    entry_keys: &entry_keys,
                    refs_named: &|text| refs.named_in(text),
                    is_known: &|key| scrubber.is_known(key),
                    run_is_selected: &|run| refs.is_run(run),
                    scrub: &|text| scrubber.scrub_text(text).map(|(rest, _)| rest),
                })
            })
        })?;
        Ok(StatePlan { inner })
    }

    fn apply(&self, py: Python<'_>, plan: &StatePlan, now_ms: i64) -> PyResult<StateCounts> {
        let counts = interruptible(py, || {
            self.handle
                .with(|open| open.apply_state(&plan.inner, now_ms))
        })?;
        Ok((&counts).into())
    }

    fn rows(
        &self,
        py: Python<'_>,
        workspace_key: &str,
        namespace: &str,
    ) -> PyResult<Vec<(String, Vec<u8>)>> {
        detached(py, || {
            self.handle
                .with(|open| open.state_rows(workspace_key, namespace))
        })
    }

    fn put_rows(
        &self,
        py: Python<'_>,
        workspace_key: &str,
        workspace: &str,
        rows: Vec<(String, String, Option<String>)>,
        now_ms: i64,
    ) -> PyResult<()> {
        let rows: Vec<store::StateRow> = rows
            .into_iter()
            .map(|(namespace, key, value)| store::StateRow {
                namespace,
                key,
                value,
            })
            .collect();
        let workspace = store::Workspace {
            key: workspace_key,
            folder: workspace,
        };
        interruptible(py, || {
            self.handle
                .with(|open| open.put_state_rows(workspace, &rows, now_ms))
        })
    }

    #[pyo3(signature = (workspace_key, owner, now_ms, wait_ms = 10_000))]
    fn lock_workspace(
        &self,
        py: Python<'_>,
        workspace_key: &str,
        owner: &str,
        now_ms: i64,
        wait_ms: u32,
    ) -> PyResult<()> {
        interruptible(py, || {
            self.handle.with(|open| {
                let start = store::lock::own_start();
                let stop = interrupt::flag();
                open.lock_workspace(workspace_key, owner, start, now_ms, wait_ms, stop)
            })
        })
    }

    fn unlock_workspace(&self, py: Python<'_>, workspace_key: &str, owner: &str) -> PyResult<bool> {
        detached(py, || {
            self.handle
                .with(|open| open.unlock_workspace(workspace_key, owner))
        })
    }

    #[pyo3(signature = (deadline_ms = 5_000))]
    fn checkpoint(&self, py: Python<'_>, deadline_ms: u32) -> PyResult<bool> {
        interruptible(py, || self.handle.with(|open| open.checkpoint(deadline_ms)))
    }

    fn unchanged(&self, py: Python<'_>) -> PyResult<bool> {
        detached(py, || self.handle.with(store::Store::finish_read))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || self.handle.close())
    }
}
