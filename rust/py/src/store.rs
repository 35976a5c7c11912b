//! The per-agent database, and session stores elsewhere.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use cenotaph_core::store::{self, Access, IndexAsk, Kind};
use cenotaph_core::{Error, Result};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::call::{detached, interruptible};
use crate::scan::{Refs, Scrubber};

/// Adds functions and classes of this file to the module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Node>()?;
    module.add_class::<Window>()?;
    module.add_class::<Participant>()?;
    module.add_class::<Archive>()?;
    module.add_class::<Lineage>()?;
    module.add_class::<IndexCounts>()?;
    module.add_class::<IndexPlan>()?;
    module.add_class::<Store>()?;
    module.add_function(wrap_pyfunction!(archive_file_text, module)?)?;
    module.add_function(wrap_pyfunction!(create_native, module)?)
}

/// A connection that one thread uses at a time and that can be closed once.
pub struct Handle(Mutex<Option<store::Store>>);

impl Handle {
    pub fn shared(inner: store::Store) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(inner))))
    }

    /// Runs `work` on the open connection.
    pub fn with<T>(&self, work: impl FnOnce(&store::Store) -> Result<T>) -> Result<T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match guard.as_ref() {
            Some(inner) => work(inner),
            None => Err(Error::Refused(
                "the store is closed; open it again".to_owned(),
            )),
        }
    }

    pub fn close(&self) -> Result<()> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.map_or(Ok(()), store::Store::close)
    }
}

/// The digest of a lineage, as it crosses.
fn digest_of(digest: &[u8]) -> PyResult<[u8; 32]> {
    digest
        .try_into()
        .map_err(|_| PyValueError::new_err("digest must be 32 bytes"))
}

/// Entry key, session id, session key, class, time in ms.
type OriginTuple = (String, String, Option<String>, String, i64);

pub fn access(write: bool) -> Access {
    if write { Access::Write } else { Access::Read }
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct Node {
    session_key: String,
    current_session_id: String,
    entry_json: Vec<u8>,
    entry_valid: i64,
    updated_at: i64,
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct Window {
    session_id: String,
    session_key: String,
    created_at: i64,
    transcript_updated_at: Option<i64>,
    session_entry_provenance: i64,
    acp_owned: i64,
    plugin_owner_id: Option<String>,
    hook_external_content_source: Option<String>,
    chat_type: Option<String>,
    channel: Option<String>,
    parent_session_key: Option<String>,
    spawned_by: Option<String>,
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct Participant {
    session_key: String,
    identity_namespace: Vec<u8>,
    actor_id: String,
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct Archive {
    session_id: String,
    generation: String,
    session_key: String,
    reason: String,
    encoding: String,
    archive_name: String,
    created_at: i64,
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct Lineage {
    entry_keys: Vec<String>,
    mixed: Vec<String>,
    known_keys: Vec<String>,
    origin_rows: u64,
    digest: Vec<u8>,
}

#[pymethods]
impl Lineage {
    #[new]
    fn new(entry_keys: Vec<String>) -> Self {
        let known_keys = entry_keys.clone();
        Self {
            entry_keys,
            mixed: Vec::new(),
            known_keys,
            origin_rows: 0,
            digest: vec![0; 32],
        }
    }
}

#[pyclass(frozen, get_all, module = "cenotaph._core")]
pub struct IndexCounts {
    chunks: u64,
    sources: u64,
    fts_rows: u64,
    vector_rows: u64,
    embedding_cache_rows: u64,
}

impl From<store::IndexCounts> for IndexCounts {
    fn from(counts: store::IndexCounts) -> Self {
        Self {
            chunks: counts.chunks,
            sources: counts.sources,
            fts_rows: counts.fts_rows,
            vector_rows: counts.vector_rows,
            embedding_cache_rows: counts.embedding_cache_rows,
        }
    }
}

#[pyclass(frozen, module = "cenotaph._core")]
pub struct IndexPlan {
    pub inner: store::IndexPlan,
}

#[pymethods]
impl IndexPlan {
    #[getter]
    fn counts(&self) -> IndexCounts {
        self.inner.counts.into()
    }
}

#[pyclass(frozen, module = "cenotaph._core")]
pub struct Store {
    pub handle: Arc<Handle>,
    #[pyo3(get)]
    kind: &'static str,
    #[pyo3(get)]
    owner: Option<String>,
}

impl From<store::Store> for Store {
    fn from(inner: store::Store) -> Self {
        let kind = match inner.kind() {
            Kind::Host => "host",
            Kind::Native => "native",
        };
        let owner = inner.schema_agent();
        Self {
            handle: Handle::shared(inner),
            kind,
            owner,
        }
    }
}

#[pymethods]
impl Store {
    #[staticmethod]
    #[pyo3(signature = (path, agent, *, write, busy_ms = 10_000))]
    fn open_agent(
        py: Python<'_>,
        path: PathBuf,
        agent: &str,
        write: bool,
        busy_ms: u32,
    ) -> PyResult<Option<Self>> {
        let opened = detached(py, || {
            store::Store::open_agent(&path, agent, access(write), busy_ms)
        })?;
        Ok(opened.map(Into::into))
    }

    #[staticmethod]
    #[pyo3(signature = (path, *, busy_ms = 10_000))]
    fn open_sessions(py: Python<'_>, path: PathBuf, busy_ms: u32) -> PyResult<Option<Self>> {
        let opened = detached(py, || {
            store::Store::open_sessions(&path, Access::Read, busy_ms)
        })?;
        Ok(opened.map(Into::into))
    }

    fn nodes(&self, py: Python<'_>) -> PyResult<Vec<Node>> {
        let rows = detached(py, || self.handle.with(store::Store::nodes))?;
        Ok(rows
            .into_iter()
            .map(|row| Node {
                session_key: row.session_key,
                current_session_id: row.current_session_id,
                entry_json: row.entry_json.into(),
                entry_valid: row.entry_valid,
                updated_at: row.updated_at,
            })
            .collect())
    }

    fn windows(&self, py: Python<'_>) -> PyResult<Vec<Window>> {
        let rows = detached(py, || self.handle.with(store::Store::windows))?;
        Ok(rows
            .into_iter()
            .map(|row| Window {
                session_id: row.session_id,
                session_key: row.session_key,
                created_at: row.created_at,
                transcript_updated_at: row.transcript_updated_at,
                session_entry_provenance: row.session_entry_provenance,
                acp_owned: row.acp_owned,
                plugin_owner_id: row.plugin_owner_id,
                hook_external_content_source: row.hook_external_content_source,
                chat_type: row.chat_type,
                channel: row.channel,
                parent_session_key: row.parent_session_key,
                spawned_by: row.spawned_by,
            })
            .collect())
    }

    fn participants(&self, py: Python<'_>) -> PyResult<Vec<Participant>> {
        let rows = detached(py, || self.handle.with(store::Store::participants))?;
        Ok(rows
            .into_iter()
            .map(|row| Participant {
                session_key: row.session_key,
                identity_namespace: row.identity_namespace,
                actor_id: row.actor_id,
            })
            .collect())
    }

    fn archives(&self, py: Python<'_>) -> PyResult<Vec<Archive>> {
        let rows = detached(py, || self.handle.with(store::Store::archives))?;
        Ok(rows
            .into_iter()
            .map(|row| Archive {
                session_id: row.session_id,
                generation: row.generation,
                session_key: row.session_key,
                reason: row.reason,
                encoding: row.encoding,
                archive_name: row.archive_name,
                created_at: row.created_at,
            })
            .collect())
    }

    fn archive_text(
        &self,
        py: Python<'_>,
        session_id: &str,
        generation: &str,
    ) -> PyResult<Option<Vec<u8>>> {
        detached(py, || {
            self.handle
                .with(|open| open.archive_text(session_id, generation))
        })
    }

    #[pyo3(signature = (session_id, archive_folders = Vec::new()))]
    fn transcript(
        &self,
        py: Python<'_>,
        session_id: &str,
        archive_folders: Vec<PathBuf>,
    ) -> PyResult<Option<Vec<Vec<u8>>>> {
        detached(py, || {
            self.handle
                .with(|open| open.transcript(session_id, &archive_folders))
        })
    }

    #[pyo3(signature = (agent, session_ids, extra_keys = Vec::new()))]
    fn lineage(
        &self,
        py: Python<'_>,
        agent: &str,
        session_ids: Vec<String>,
        extra_keys: Vec<String>,
    ) -> PyResult<Lineage> {
        let found = interruptible(py, || {
            self.handle
                .with(|open| open.lineage(agent, &session_ids, &extra_keys))
        })?;
        Ok(Lineage {
            entry_keys: found.entry_keys,
            mixed: found.mixed,
            known_keys: found.known_keys,
            origin_rows: found.origin_rows,
            digest: found.digest.to_vec(),
        })
    }

    fn tombstones_of_others(
        &self,
        py: Python<'_>,
        agent: &str,
        session_ids: Vec<String>,
    ) -> PyResult<Vec<(String, String)>> {
        detached(py, || {
            self.handle
                .with(|open| open.tombstones_of_others(agent, &session_ids))
        })
    }

    fn forgotten(&self, py: Python<'_>, agent: &str) -> PyResult<Vec<String>> {
        detached(py, || self.handle.with(|open| open.forgotten(agent)))
    }

    fn bury(
        &self,
        py: Python<'_>,
        agent: &str,
        session_ids: Vec<String>,
        extra_keys: Vec<String>,
        digest: &[u8],
        now_ms: i64,
    ) -> PyResult<u64> {
        let digest = digest_of(digest)?;
        interruptible(py, || {
            self.handle
                .with(|open| open.bury(agent, &session_ids, now_ms, digest, &extra_keys))
        })
    }

    fn join_origins(
        &self,
        py: Python<'_>,
        agent: &str,
        keys: Vec<String>,
        session_ids: Vec<String>,
        extra_keys: Vec<String>,
        digest: &[u8],
    ) -> PyResult<(u64, Vec<u8>)> {
        let digest = digest_of(digest)?;
        let (joined, digest) = interruptible(py, || {
            self.handle
                .with(|open| open.join_origins(agent, &keys, &session_ids, digest, &extra_keys))
        })?;
        Ok((joined, digest.to_vec()))
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "one coarse call instead of a builder"
    )]
    fn plan_index(
        &self,
        py: Python<'_>,
        refs: &Refs,
        excluded: &Refs,
        scrubber: &Scrubber,
        changed_paths: Vec<String>,
        deleted_corpus_paths: Vec<String>,
        external_paths: Vec<String>,
        any_selected: bool,
    ) -> PyResult<IndexPlan> {
        let (refs, excluded) = (Arc::clone(&refs.inner), Arc::clone(&excluded.inner));
        let scrubber = Arc::clone(&scrubber.inner);
        let inner = interruptible(py, || {
            self.handle.with(|open| {
                open.plan_index(&IndexAsk {
                    refs_named: &|path| refs.named_in(path),
                    excluded_named: &|path| excluded.named_in(path),
                    changed_paths: &changed_paths.into_iter().collect(),
                    deleted_corpus_paths: &deleted_corpus_paths.into_iter().collect(),
                    external_paths: &external_paths.into_iter().collect(),
                    text_matches: &|text| scrubber.scrub_text(text).is_some(),
                    any_selected,
                })
            })
        })?;
        Ok(IndexPlan { inner })
    }

    fn purge_index(
        &self,
        py: Python<'_>,
        agent: &str,
        plan: &IndexPlan,
        session_ids: Vec<String>,
        extra_keys: Vec<String>,
        digest: &[u8],
    ) -> PyResult<IndexCounts> {
        let digest = digest_of(digest)?;
        let counts = interruptible(py, || {
            self.handle.with(|open| {
                open.purge_index(agent, &plan.inner, &session_ids, digest, &extra_keys)
            })
        })?;
        Ok(counts.into())
    }

    fn delete_origins(
        &self,
        py: Python<'_>,
        agent: &str,
        entry_keys: Vec<String>,
    ) -> PyResult<u64> {
        interruptible(py, || {
            self.handle
                .with(|open| open.delete_origins(agent, &entry_keys))
        })
    }

    fn transcript_sizes(&self, py: Python<'_>) -> PyResult<Vec<(String, u64)>> {
        detached(py, || self.handle.with(store::Store::transcript_sizes))
    }

    fn stage_origins(
        &self,
        py: Python<'_>,
        agent: &str,
        origins: Vec<OriginTuple>,
    ) -> PyResult<Vec<String>> {
        let origins: Vec<store::Origin> = origins
            .into_iter()
            .map(
                |(entry_key, session_id, session_key, class, observed_at)| store::Origin {
                    entry_key,
                    session_id,
                    session_key,
                    class,
                    observed_at,
                },
            )
            .collect();
        interruptible(py, || {
            self.handle.with(|open| open.stage_origins(agent, &origins))
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

#[pyfunction]
fn archive_file_text(py: Python<'_>, path: PathBuf) -> PyResult<Vec<u8>> {
    detached(py, || store::archive_file_text(&path))
}

#[pyfunction]
fn create_native(py: Python<'_>, state_dir: PathBuf, agent: &str, now_ms: i64) -> PyResult<()> {
    detached(py, || {
        store::Store::create_native(&state_dir, agent, now_ms)
    })
}
