//! The registry of agent databases in the shared database.

use crate::error::Result;
use crate::store::{Store, query};

impl Store {
    /// Agent id and path (relative to the state directory, or absolute) of each registered agent database, the one seen
    /// last first.
    pub fn agent_databases(&self) -> Result<Vec<(String, String)>> {
        self.sql(|conn| {
            if !query::has_table(conn, "agent_databases")? {
                return Ok(Vec::new());
            }
            conn.prepare(
                "SELECT agent_id, path FROM agent_databases ORDER BY last_seen_at DESC, agent_id",
            )?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
        })
    }
}
