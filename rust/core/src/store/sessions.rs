//! Session rows, transcripts and archives, read only.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row};

use crate::error::{Error, Result};
use crate::store::Store;
use crate::store::query::{self, bytes, number, optional_number, optional_text, text};

/// Decompressed size of one archive, in bytes.
const TEXT_LIMIT: u64 = 512 << 20;
/// Decompressed size of one event: the host's limit.
const EVENT_LIMIT: u64 = 4 << 20;
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// A session key (logical conversation) and its current session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Session key.
    pub session_key: String,
    /// Id of the current generation.
    pub current_session_id: String,
    /// The entry, JSON text as stored.
    pub entry_json: String,
    /// 1 when the host vouches for the row.
    pub entry_valid: i64,
    /// Milliseconds since the epoch.
    pub updated_at: i64,
}

/// One generation of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Session id.
    pub session_id: String,
    /// Session key.
    pub session_key: String,
    /// Milliseconds since the epoch.
    pub created_at: i64,
    /// Milliseconds since the epoch; `None` when there is no transcript.
    pub transcript_updated_at: Option<i64>,
    /// 1 when the row's own facts are trustworthy.
    pub session_entry_provenance: i64,
    /// 1 when an ACP client owns the session.
    pub acp_owned: i64,
    /// Plugin that owns the session.
    pub plugin_owner_id: Option<String>,
    /// `gmail` or `webhook`.
    pub hook_external_content_source: Option<String>,
    /// `direct`, `group` or `channel`.
    pub chat_type: Option<String>,
    /// Channel name.
    pub channel: Option<String>,
    /// Key of the parent session.
    pub parent_session_key: Option<String>,
    /// Key of the session that spawned this one.
    pub spawned_by: Option<String>,
}

/// Somebody who took part in a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    /// Session key.
    pub session_key: String,
    /// Namespace, JSON text as stored; may be damaged.
    pub identity_namespace: Vec<u8>,
    /// Id within the namespace.
    pub actor_id: String,
}

/// Registry row of an archived transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    /// Session id.
    pub session_id: String,
    /// Generation of the archive.
    pub generation: String,
    /// Session key.
    pub session_key: String,
    /// `deleted` or `reset`.
    pub reason: String,
    /// `identity` or `zstd`.
    pub encoding: String,
    /// File name without folder.
    pub archive_name: String,
    /// Milliseconds since the epoch.
    pub created_at: i64,
}

impl Store {
    /// All session keys, ordered by key.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        let columns = [
            "session_key",
            "current_session_id",
            "entry_json",
            "entry_valid",
            "updated_at",
        ];
        self.rows("session_nodes", &columns, "session_key", |row| {
            Ok(Node {
                session_key: text(row, 0)?,
                current_session_id: text(row, 1)?,
                entry_json: text(row, 2)?,
                entry_valid: number(row, 3)?,
                updated_at: number(row, 4)?,
            })
        })
    }

    /// All session ids, ordered by creation, then id.
    pub fn windows(&self) -> Result<Vec<Window>> {
        let columns = [
            "session_id",
            "session_key",
            "created_at",
            "transcript_updated_at",
            "session_entry_provenance",
            "acp_owned",
            "plugin_owner_id",
            "hook_external_content_source",
            "chat_type",
            "channel",
            "parent_session_key",
            "spawned_by",
        ];
        self.rows(
            "session_windows",
            &columns,
            "created_at, session_id",
            |row| {
                Ok(Window {
                    session_id: text(row, 0)?,
                    session_key: text(row, 1)?,
                    created_at: number(row, 2)?,
                    transcript_updated_at: optional_number(row, 3)?,
                    session_entry_provenance: number(row, 4)?,
                    acp_owned: number(row, 5)?,
                    plugin_owner_id: optional_text(row, 6)?,
                    hook_external_content_source: optional_text(row, 7)?,
                    chat_type: optional_text(row, 8)?,
                    channel: optional_text(row, 9)?,
                    parent_session_key: optional_text(row, 10)?,
                    spawned_by: optional_text(row, 11)?,
                })
            },
        )
    }

    /// All participants, ordered by session key, namespace, actor.
    pub fn participants(&self) -> Result<Vec<Participant>> {
        let columns = ["session_key", "identity_namespace", "actor_id"];
        let order = "session_key, identity_namespace, actor_id";
        self.rows("session_participants", &columns, order, |row| {
            Ok(Participant {
                session_key: text(row, 0)?,
                identity_namespace: bytes(row, 1)?,
                actor_id: text(row, 2)?,
            })
        })
    }

    /// All registered archives, ordered by creation, id, generation.
    pub fn archives(&self) -> Result<Vec<Archive>> {
        let columns = [
            "session_id",
            "generation",
            "session_key",
            "reason",
            "encoding",
            "archive_name",
            "created_at",
        ];
        let order = "created_at, session_id, generation";
        self.rows("session_transcript_archives", &columns, order, |row| {
            Ok(Archive {
                session_id: text(row, 0)?,
                generation: text(row, 1)?,
                session_key: text(row, 2)?,
                reason: text(row, 3)?,
                encoding: text(row, 4)?,
                archive_name: text(row, 5)?,
                created_at: number(row, 6)?,
            })
        })
    }

    /// Decompressed bytes of a registered archive, or `None` when there is no such row.
    pub fn archive_text(&self, session_id: &str, generation: &str) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT archive_blob FROM session_transcript_archives WHERE session_id = ?1 AND generation = ?2";
        let blob = self.sql(|conn| {
            if !query::has_table(conn, "session_transcript_archives")? {
                return Ok(None);
            }
            conn.query_row(sql, [session_id, generation], |row| bytes(row, 0))
                .optional()
        })?;
        blob.map(|blob| open(self.path(), &blob, TEXT_LIMIT))
            .transpose()
    }

    /// Records of a live session's transcript in order, or `None` when it has none. A transcript that was moved out is
    /// read from its row, or from the file of that name in the first of `folders` that has it.
    pub fn transcript(
        &self,
        session_id: &str,
        folders: &[PathBuf],
    ) -> Result<Option<Vec<Vec<u8>>>> {
        let events = self.events(session_id)?;
        if !events.is_empty() {
            return Ok(Some(events));
        }
        let Some((name, blob)) = self.cold_archive(session_id)? else {
            return Ok(None);
        };
        let text = match blob {
            Some(blob) => open(self.path(), &blob, TEXT_LIMIT)?,
            None => match folders
                .iter()
                .map(|folder| folder.join(&name))
                .find(|path| path.exists())
            {
                Some(path) => archive_file_text(&path)?,
                None => return Ok(None),
            },
        };
        let records = text
            .split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty());
        Ok(Some(records.map(<[u8]>::to_vec).collect()))
    }

    fn events(&self, session_id: &str) -> Result<Vec<Vec<u8>>> {
        let stored: Vec<(Option<Vec<u8>>, Vec<u8>)> = self.sql(|conn| {
            if !query::has_table(conn, "transcript_events")? {
                return Ok(Vec::new());
            }
            let list =
                query::select_list(conn, "transcript_events", &["event_json", "event_zstd"])?;
            let sql =
                format!("SELECT {list} FROM transcript_events WHERE session_id = ?1 ORDER BY seq");
            let mut statement = conn.prepare(&sql)?;
            let rows = statement.query_map([session_id], |row| {
                let plain = row.get_ref(0)? != ValueRef::Null;
                Ok((
                    if plain { Some(bytes(row, 0)?) } else { None },
                    bytes(row, 1)?,
                ))
            })?;
            rows.collect()
        })?;
        stored
            .into_iter()
            .map(|(plain, packed)| {
                plain.map_or_else(|| open(self.path(), &packed, EVENT_LIMIT), Ok)
            })
            .collect()
    }

    /// Name and, when it is kept in the database, bytes of a transcript that was moved out.
    fn cold_archive(&self, session_id: &str) -> Result<Option<(String, Option<Vec<u8>>)>> {
        let table = "session_transcript_cold_archives";
        let sql = format!("SELECT archive_name, archive_blob FROM {table} WHERE session_id = ?1");
        self.sql(|conn| {
            if !query::has_table(conn, table)? {
                return Ok(None);
            }
            conn.query_row(&sql, [session_id], |row| {
                let inside = row.get_ref(1)? != ValueRef::Null;
                Ok((
                    text(row, 0)?,
                    if inside { Some(bytes(row, 1)?) } else { None },
                ))
            })
            .optional()
        })
    }

    /// Rows of a table that may be absent, or lack columns.
    fn rows<T>(
        &self,
        table: &str,
        columns: &[&str],
        order: &str,
        read: impl Fn(&Row) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        self.sql(|conn| {
            if !query::has_table(conn, table)? {
                return Ok(Vec::new());
            }
            let list = query::select_list(conn, table, columns)?;
            let mut statement =
                conn.prepare(&format!("SELECT {list} FROM {table} ORDER BY {order}"))?;
            statement.query_map([], read)?.collect()
        })
    }
}

/// Text of an archive file, plain or zstd. Nothing is written anywhere.
pub fn archive_file_text(path: &Path) -> Result<Vec<u8>> {
    let fail = |source| Error::io(path, source);
    let mut file = File::open(path).map_err(fail)?;
    let mut head = Vec::new();
    Read::take(&mut file, ZSTD_MAGIC.len() as u64)
        .read_to_end(&mut head)
        .map_err(fail)?;
    let whole = head.as_slice().chain(file);
    if head == ZSTD_MAGIC {
        return decompress(path, whole, TEXT_LIMIT);
    }
    let mut text = Vec::new();
    whole
        .take(TEXT_LIMIT + 1)
        .read_to_end(&mut text)
        .map_err(fail)?;
    within(path, text, TEXT_LIMIT)
}

/// Bytes as they are, or decompressed when they are a zstd frame: what the file says counts, not its name.
fn open(path: &Path, stored: &[u8], limit: u64) -> Result<Vec<u8>> {
    if stored.starts_with(&ZSTD_MAGIC) {
        return decompress(path, stored, limit);
    }
    Ok(stored.to_vec())
}

fn decompress(path: &Path, packed: impl Read, limit: u64) -> Result<Vec<u8>> {
    let fail = |source| Error::io(path, source);
    let decoder = zstd::stream::read::Decoder::new(packed).map_err(fail)?;
    let mut text = Vec::new();
    decoder
        .take(limit + 1)
        .read_to_end(&mut text)
        .map_err(fail)?;
    within(path, text, limit)
}

fn within(path: &Path, text: Vec<u8>, limit: u64) -> Result<Vec<u8>> {
    if text.len() as u64 <= limit {
        return Ok(text);
    }
    let source = std::io::Error::new(
        ErrorKind::FileTooLarge,
        format!("a transcript of more than {limit} bytes"),
    );
    Err(Error::io(path, source))
}
