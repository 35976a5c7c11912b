//! Plugin state of a workspace: short-term entries, ingestion state, backups, rewind rows.

use std::collections::HashSet;

use crate::error::Result;
use crate::store::Store;

/// What a plan of the plugin state needs to know about the selection.
pub struct StateAsk<'a> {
    /// SHA-256 hex of the absolute workspace path.
    pub workspace_key: &'a str,
    /// Agent.
    pub agent: &'a str,
    /// Selected entry keys.
    pub entry_keys: &'a HashSet<String>,
    /// Does this text name a selected session?
    pub refs_named: &'a dyn Fn(&[u8]) -> bool,
    /// Is this file name a transcript of a selected session?
    pub run_is_selected: &'a dyn Fn(&[u8]) -> bool,
    /// Text without what must go, or `None` when nothing must.
    pub scrub: &'a dyn Fn(&[u8]) -> Option<Vec<u8>>,
}

/// Rows of the plugin state by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCounts {
    /// Short-term entries (their phase signals go along, uncounted).
    pub short_term_entries: u64,
    /// Distinct scopes of seen hashes.
    pub seen_hash_scopes: u64,
    /// Backups with a changed text.
    pub backups: u64,
}

/// Rows that must go or change.
#[derive(Clone, Debug, Default)]
pub struct StatePlan {
    /// What applying will do.
    pub counts: StateCounts,
    /// Rows that could not be decoded: namespace and row key.
    pub failures: Vec<String>,
}

/// The latest observed write to a memory file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Path in the workspace.
    pub relative_path: String,
    /// SHA-256 hex of the file then.
    pub file_hash: String,
    /// `agent` or `untrusted`.
    pub origin_class: String,
    /// Milliseconds since the epoch.
    pub observed_at: i64,
    /// Session that wrote.
    pub session_id: Option<String>,
    /// Its key.
    pub session_key: Option<String>,
}

impl Store {
    /// One pass over each namespace of the workspace. Writes nothing.
    pub fn plan_state(&self, ask: &StateAsk) -> Result<StatePlan> {
        unimplemented!()
    }
    /// Applies a plan in one transaction; only changed rows are written. The counts are measured.
    ///
    /// # Errors
    /// [`crate::Error::LineageChanged`] when one of the rows changed since the plan; nothing is written then.
    pub fn apply_state(&self, plan: &StatePlan, now_ms: i64) -> Result<StateCounts> {
        unimplemented!()
    }
    /// Rows of the write observer for a workspace (SHA-256 hex of its REAL path), in order of row key. Invalid rows are left out.
    pub fn observed_writes(&self, real_workspace_key: &str) -> Result<Vec<Observed>> {
        unimplemented!()
    }
}
