//! What the write observer of the host saw.

use rusqlite::Row;

use crate::error::Result;
use crate::store::json::Members;
use crate::store::{Store, query};

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
    /// Rows of the write observer for a workspace (SHA-256 hex of its REAL path), in order of row key. A row that
    /// deviates from the format in any way is left out, as the host does.
    pub fn observed_writes(&self, real_workspace_key: &str) -> Result<Vec<Observed>> {
        let sql = "SELECT entry_key, value_json FROM plugin_state_entries
             WHERE plugin_id = 'core:memory-artifact-provenance' AND namespace = 'workspace-files'
               AND entry_key >= ?1 AND entry_key < ?2 ORDER BY entry_key";
        self.sql(|conn| {
            if !query::has_table(conn, "plugin_state_entries")? {
                return Ok(Vec::new());
            }
            let range = [
                format!("{real_workspace_key}:"),
                format!("{real_workspace_key};"),
            ];
            let mut statement = conn.prepare(sql)?;
            let rows = statement.query_map(range, |row| observed(row, real_workspace_key))?;
            rows.filter_map(rusqlite::Result::transpose).collect()
        })
    }
}

fn observed(row: &Row, workspace: &str) -> rusqlite::Result<Option<Observed>> {
    let row_key = query::text(row, 0)?;
    let json = query::text(row, 1)?;
    Ok(Members::parse(&json).and_then(|value| decode(&value, &row_key, workspace)))
}

fn decode(value: &Members, row_key: &str, workspace: &str) -> Option<Observed> {
    const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
    let relative_path = value.text("relativePath")?;
    let file_hash = value.text("fileHash")?;
    let origin_class = value.text("originClass")?;
    let observed_at = value.integer("observedAt")?;
    let valid = value.integer("version") == Some(1)
        && value.text("workspaceKey").as_deref() == Some(workspace)
        && row_key
            == format!(
                "{workspace}:{}",
                query::sha256_hex(relative_path.as_bytes())
            )
        && is_sha256(&file_hash)
        && matches!(origin_class.as_str(), "agent" | "untrusted")
        && observed_at.unsigned_abs() <= MAX_SAFE_INTEGER
        && value.text("reservationId").is_some_and(|id| !id.is_empty());
    let session_id = optional(value, "sessionId")?;
    let session_key = optional(value, "sessionKey")?;
    valid.then_some(Observed {
        relative_path,
        file_hash,
        origin_class,
        observed_at,
        session_id,
        session_key,
    })
}

/// An absent member is fine, one that is no string is not.
#[allow(clippy::option_option)]
fn optional(value: &Members, name: &str) -> Option<Option<String>> {
    match value.raw(name) {
        None => Some(None),
        Some(_) => value.text(name).map(Some),
    }
}

fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
