//! Sessions that were forgotten and must not come back.

use crate::error::Result;
use crate::store::Store;

impl Store {
    /// Those of `ids` that another agent has buried, with that agent, in order of id.
    pub fn tombstones_of_others(
        &self,
        agent: &str,
        ids: &[String],
    ) -> Result<Vec<(String, String)>> {
        unimplemented!()
    }
    /// Buries `ids` in one transaction and adds exactly 1 to the index revision. Returns the number of new rows.
    ///
    /// # Errors
    /// [`crate::Error::LineageChanged`] when `digest` is not the present lineage; [`crate::Error::Refused`] when another
    /// agent has buried one of the ids. Nothing is written then.
    pub fn bury(
        &self,
        agent: &str,
        ids: &[String],
        now_ms: i64,
        digest: [u8; 32],
        extra_keys: &[String],
    ) -> Result<u64> {
        unimplemented!()
    }
    /// Ids that `agent` has forgotten, sorted.
    pub fn forgotten(&self, agent: &str) -> Result<Vec<String>> {
        unimplemented!()
    }
}
