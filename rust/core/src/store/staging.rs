//! What ingestion writes: origins of entries, and rows of plugin state.

use std::collections::{BTreeSet, HashSet};

use rusqlite::{Connection, params};

use crate::error::Result;
use crate::store::json::{self, Members};
use crate::store::plugin_state::PLUGIN;
use crate::store::query::{self, sha256_hex};
use crate::store::{Store, ddl};

/// That an entry derives from a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Entry key.
    pub entry_key: String,
    /// Session id.
    pub session_id: String,
    /// Session key, if the session has one.
    pub session_key: Option<String>,
    /// `owner`, `agent`, `untrusted` or `system`.
    pub class: String,
    /// Milliseconds since the epoch.
    pub observed_at: i64,
}

/// A row of plugin state in one workspace: what it shall hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateRow {
    /// Namespace.
    pub namespace: String,
    /// Logical key.
    pub key: String,
    /// JSON of the value; `None` removes the row.
    pub value: Option<String>,
}

/// Whose rows they are.
#[derive(Clone, Copy, Debug)]
pub struct Workspace<'a> {
    /// SHA-256 hex of the absolute path.
    pub key: &'a str,
    /// Absolute path.
    pub folder: &'a str,
}

impl Store {
    /// Records origins in one transaction; a row that is there stays as it is. Those of sessions that were forgotten by
    /// now are left out: their ids are returned, sorted.
    pub fn stage_origins(&self, agent: &str, origins: &[Origin]) -> Result<Vec<String>> {
        self.write("stage", |conn| {
            stage(conn, agent, origins).map_err(|error| self.explain(error))
        })
    }

    /// Session ids with a live transcript, and its size: bytes of its events with a newline between them. Compressed events
    /// count as the bytes that they unpack to where the database says how many those are.
    pub fn transcript_sizes(&self) -> Result<Vec<(String, u64)>> {
        self.sql(|conn| {
            if !query::has_table(conn, "transcript_events")? {
                return Ok(Vec::new());
            }
            let columns = ["event_utf8_bytes", "event_json", "event_zstd"];
            let list = query::select_list(conn, "transcript_events", &columns)?;
            let sql = format!(
                "SELECT session_id, sum(coalesce(event_utf8_bytes, octet_length(event_json), octet_length(event_zstd)))
                        + count(*) - 1
                 FROM (SELECT session_id, {list} FROM transcript_events) GROUP BY session_id"
            );
            conn.prepare(&sql)?
                .query_map([], |row| Ok((query::text(row, 0)?, query::unsigned(row.get(1)?))))?
                .collect()
        })
    }

    /// Logical keys and JSON values of a namespace of plugin state, oldest first. Rows that cannot be decoded, or name
    /// another workspace, are left out.
    pub fn state_rows(
        &self,
        workspace_key: &str,
        namespace: &str,
    ) -> Result<Vec<(String, Vec<u8>)>> {
        self.sql(|conn| {
            if !query::has_table(conn, "plugin_state_entries")? {
                return Ok(Vec::new());
            }
            // `;` follows `:` in ASCII: the range holds all keys that begin with the workspace and a colon.
            let (from, to) = (format!("{workspace_key}:"), format!("{workspace_key};"));
            let mut statement = conn.prepare(
                "SELECT value_json FROM plugin_state_entries
                 WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key >= ?3 AND entry_key < ?4
                 ORDER BY created_at, entry_key",
            )?;
            let mut rows = statement.query([PLUGIN, namespace, &from, &to])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.extend(decoded(&query::bytes(row, 0)?, workspace_key));
            }
            Ok(found)
        })
    }

    /// Writes and removes rows of plugin state in one transaction; `now_ms` becomes the time of those that are written.
    pub fn put_state_rows(
        &self,
        workspace: Workspace<'_>,
        rows: &[StateRow],
        now_ms: i64,
    ) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        self.write("rows", |conn| {
            put(conn, workspace, rows, now_ms).map_err(|error| self.explain(error))
        })
    }
}

fn stage(conn: &Connection, agent: &str, origins: &[Origin]) -> rusqlite::Result<Vec<String>> {
    conn.execute_batch(ddl::ORIGINS)?;
    let buried = buried(conn, agent)?;
    let mut insert = conn.prepare(
        "INSERT INTO memory_entry_origins (entry_key, agent_id, session_id, session_key, origin_class, observed_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
    )?;
    let mut refused = BTreeSet::new();
    for origin in origins {
        if buried.contains(&origin.session_id) {
            refused.insert(origin.session_id.clone());
            continue;
        }
        insert.execute(params![
            origin.entry_key,
            agent,
            origin.session_id,
            origin.session_key,
            origin.class,
            origin.observed_at
        ])?;
    }
    Ok(refused.into_iter().collect())
}

fn buried(conn: &Connection, agent: &str) -> rusqlite::Result<HashSet<String>> {
    if !query::has_table(conn, "memory_session_tombstones")? {
        return Ok(HashSet::new());
    }
    conn.prepare("SELECT session_id FROM memory_session_tombstones WHERE agent_id = ?1")?
        .query_map([agent], |row| query::text(row, 0))?
        .collect()
}

fn decoded(json: &[u8], workspace_key: &str) -> Option<(String, Vec<u8>)> {
    let envelope = Members::parse(std::str::from_utf8(json).ok()?)?;
    let named = envelope.text("workspaceKey")?;
    let (key, value) = (envelope.text("key")?, envelope.raw("value")?);
    (named == workspace_key).then(|| (key, value.as_bytes().to_vec()))
}

fn put(
    conn: &Connection,
    workspace: Workspace<'_>,
    rows: &[StateRow],
    now_ms: i64,
) -> rusqlite::Result<()> {
    let mut write = conn.prepare(
        "INSERT INTO plugin_state_entries (plugin_id, namespace, entry_key, value_json, created_at, expires_at)
         VALUES (?1, ?2, ?3, ?4, ?5, NULL)
         ON CONFLICT (plugin_id, namespace, entry_key)
         DO UPDATE SET value_json = excluded.value_json, created_at = excluded.created_at",
    )?;
    let mut remove = conn.prepare(
        "DELETE FROM plugin_state_entries WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key = ?3",
    )?;
    for row in rows {
        let entry_key = format!("{}:{}", workspace.key, sha256_hex(row.key.as_bytes()));
        match &row.value {
            Some(value) => {
                let json = envelope(workspace, &row.key, value);
                write.execute(params![PLUGIN, row.namespace, entry_key, json, now_ms])?
            }
            None => remove.execute(params![PLUGIN, row.namespace, entry_key])?,
        };
    }
    Ok(())
}

/// The envelope that every row of a workspace has: `format.md` 3.
fn envelope(workspace: Workspace<'_>, key: &str, value: &str) -> String {
    format!(
        r#"{{"version":1,"workspaceKey":{},"workspaceDir":{},"key":{},"value":{value}}}"#,
        json::quote(workspace.key.as_bytes()),
        json::quote(workspace.folder.as_bytes()),
        json::quote(key.as_bytes()),
    )
}
