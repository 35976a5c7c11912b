//! The memory index: what must go from it, and its removal.

use std::collections::HashSet;

use crate::error::Result;
use crate::store::Store;

/// What a plan of the index needs to know about the selection. Paths are workspace-relative as in the index.
pub struct IndexAsk<'a> {
    /// Agent that owns the index.
    pub agent: &'a str,
    /// Does this path name a selected session?
    pub refs_named: &'a dyn Fn(&[u8]) -> bool,
    /// Does this path name a session that is never indexed?
    pub excluded_named: &'a dyn Fn(&[u8]) -> bool,
    /// Files that are rewritten: all their chunks go.
    pub changed_paths: &'a HashSet<String>,
    /// Corpus files that are deleted: their sources go.
    pub deleted_corpus_paths: &'a HashSet<String>,
    /// Files outside the workspace: only chunks that match go.
    pub external_paths: &'a HashSet<String>,
    /// Does this text hold anything that must go? Not called for transcripts.
    pub text_matches: &'a dyn Fn(&[u8]) -> bool,
    /// Is any session selected? If not, nothing is swept.
    pub any_selected: bool,
}

/// Rows of the index by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexCounts {
    /// Chunks.
    pub chunks: u64,
    /// Sources.
    pub sources: u64,
    /// Full-text rows of those chunks.
    pub fts_rows: u64,
    /// Vector rows of those chunks.
    pub vector_rows: u64,
    /// Cached embeddings.
    pub embedding_cache_rows: u64,
    /// Full-text and vector rows that belong to no chunk at all; they go along.
    pub orphan_rows: u64,
}

/// Rows that must go from the index.
#[derive(Clone, Debug, Default)]
pub struct IndexPlan {
    /// What the purge will remove.
    pub counts: IndexCounts,
}

impl Store {
    /// One pass over the chunks. Writes nothing.
    pub fn plan_index(&self, ask: &IndexAsk) -> Result<IndexPlan> {
        unimplemented!()
    }
    /// Removes what the plan lists, in one transaction. The counts are measured.
    ///
    /// # Errors
    /// [`crate::Error::LineageChanged`] when `digest` is not the present lineage, or the index changed since the plan.
    pub fn purge_index(
        &self,
        agent: &str,
        plan: &IndexPlan,
        ids: &[String],
        digest: [u8; 32],
        extra_keys: &[String],
    ) -> Result<IndexCounts> {
        unimplemented!()
    }
}
