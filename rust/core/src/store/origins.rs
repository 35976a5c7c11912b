//! Which session an entry came from.

use crate::error::Result;
use crate::store::Store;

/// Origin rows of the selected sessions, resolved to entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// Keys with a row in a selected session, and the extra keys; sorted by UTF-16 code units.
    pub entry_keys: Vec<String>,
    /// Those of them that also have a row in an unselected session; same order.
    pub mixed: Vec<String>,
    /// Every key of this agent that has a row; same order.
    pub known_keys: Vec<String>,
    /// Rows of all entry keys, unselected sessions included.
    pub origin_rows: u64,
    /// SHA-256 over the rows of the entry keys, in order.
    pub digest: [u8; 32],
}

impl Store {
    /// Resolves the selected sessions to entries; `extra_keys` (found earlier) stay selected.
    pub fn lineage(
        &self,
        agent: &str,
        session_ids: &[String],
        extra_keys: &[String],
    ) -> Result<Lineage> {
        unimplemented!()
    }
    /// Deletes every origin row of `keys` for `agent`, in its own transaction. Returns the number of rows.
    pub fn delete_origins(&self, agent: &str, keys: &[String]) -> Result<u64> {
        unimplemented!()
    }
}
