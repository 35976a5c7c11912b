//! Sessions that were forgotten and must not come back.

use std::collections::HashSet;

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Error, Result};
use crate::store::origins::Planned;
use crate::store::{Store, ddl, query};

const REASON: &str = "forgotten";

impl Store {
    /// Those of `ids` that another agent has buried, with that agent, in order of id. Such a row would silently keep
    /// this agent from forgetting the session.
    pub fn tombstones_of_others(
        &self,
        agent: &str,
        ids: &[String],
    ) -> Result<Vec<(String, String)>> {
        let wanted: HashSet<&str> = ids.iter().map(String::as_str).collect();
        let sql = "SELECT session_id, agent_id FROM memory_session_tombstones WHERE agent_id <> ?1 ORDER BY session_id";
        self.sql(|conn| {
            if !query::has_table(conn, "memory_session_tombstones")? {
                return Ok(Vec::new());
            }
            let mut statement = conn.prepare(sql)?;
            let mut rows = statement.query([agent])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let id = query::text(row, 0)?;
                if wanted.contains(id.as_str()) {
                    found.push((id, query::text(row, 1)?));
                }
            }
            Ok(found)
        })
    }

    /// Buries `ids` in one transaction and adds exactly 1 to the index revision, new rows or not: an indexer that
    /// started before discards its work. Returns the number of new rows. `now_ms` counts from the epoch.
    ///
    /// # Errors
    /// [`Error::LineageChanged`] when `digest` is not that of the present lineage of `ids` and `extra_keys`;
    /// [`Error::Refused`] when another agent has buried one of the ids. Nothing is written then.
    pub fn bury(
        &self,
        agent: &str,
        ids: &[String],
        now_ms: i64,
        digest: [u8; 32],
        extra_keys: &[String],
    ) -> Result<u64> {
        let plan = Planned {
            agent,
            ids,
            extra_keys,
            digest,
        };
        let (buried, revisions) = self.write("tombstones", |conn| {
            self.check_lineage(conn, &plan)?;
            let buried = insert(conn, agent, ids, now_ms).map_err(|error| self.explain(error))?;
            let buried = buried.map_err(|(id, owner)| foreign(&id, &owner, agent))?;
            let revisions = bump_revision(conn).map_err(|error| self.explain(error))?;
            self.receipt_begun(conn)
                .map_err(|error| self.explain(error))?;
            Ok((buried, revisions))
        })?;
        self.own_revisions.set(self.own_revisions.get() + revisions);
        Ok(buried)
    }

    /// Ids that `agent` has forgotten, sorted.
    pub fn forgotten(&self, agent: &str) -> Result<Vec<String>> {
        let sql = "SELECT session_id FROM memory_session_tombstones WHERE agent_id = ?1 ORDER BY session_id";
        self.sql(|conn| {
            if !query::has_table(conn, "memory_session_tombstones")? {
                return Ok(Vec::new());
            }
            conn.prepare(sql)?
                .query_map([agent], |row| query::text(row, 0))?
                .collect()
        })
    }
}

fn foreign(id: &str, owner: &str, agent: &str) -> Error {
    Error::Refused(format!(
        "session {id:?} was forgotten by agent {owner:?}: its tombstone keeps agent {agent:?} from forgetting it"
    ))
}

/// Inserts the rows that are missing; the inner error is an id that belongs to another agent, with that agent.
type Inserted = std::result::Result<u64, (String, String)>;

fn insert(
    conn: &Connection,
    agent: &str,
    ids: &[String],
    now_ms: i64,
) -> rusqlite::Result<Inserted> {
    conn.execute_batch(ddl::TOMBSTONES)?;
    let mut insert = conn.prepare(
        "INSERT INTO memory_session_tombstones (session_id, agent_id, reason, created_at) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (session_id) DO NOTHING",
    )?;
    let mut owner =
        conn.prepare("SELECT agent_id FROM memory_session_tombstones WHERE session_id = ?1")?;
    let mut buried = 0;
    for id in ids {
        if insert.execute(params![id, agent, REASON, now_ms])? == 1 {
            buried += 1;
            continue;
        }
        let found: Option<String> = owner
            .query_row([id], |row| query::text(row, 0))
            .optional()?;
        if let Some(found) = found.filter(|found| found != agent) {
            return Ok(Err((id.clone(), found)));
        }
    }
    Ok(Ok(buried))
}

/// Adds 1 to the index revision; returns what was added.
fn bump_revision(conn: &Connection) -> rusqlite::Result<i64> {
    if !query::has_table(conn, "memory_index_state")? {
        return Ok(0);
    }
    let changed = conn.execute(
        "UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1",
        [],
    )?;
    Ok(i64::from(changed > 0))
}

/// The index revision, if the database counts one.
pub(crate) fn revision(conn: &Connection) -> rusqlite::Result<Option<i64>> {
    if !query::has_table(conn, "memory_index_state")? {
        return Ok(None);
    }
    conn.query_row(
        "SELECT revision FROM memory_index_state WHERE id = 1",
        [],
        |row| row.get(0),
    )
    .optional()
}
