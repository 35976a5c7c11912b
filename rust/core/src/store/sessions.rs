//! Session rows, transcripts and archives, read only.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::store::Store;

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
        unimplemented!()
    }
    /// All session ids, ordered by creation, then id.
    pub fn windows(&self) -> Result<Vec<Window>> {
        unimplemented!()
    }
    /// All participants, ordered by session key, namespace, actor.
    pub fn participants(&self) -> Result<Vec<Participant>> {
        unimplemented!()
    }
    /// All registered archives, ordered by creation, id, generation.
    pub fn archives(&self) -> Result<Vec<Archive>> {
        unimplemented!()
    }
    /// Decompressed bytes of a registered archive, or `None` when there is no such row.
    pub fn archive_text(&self, session_id: &str, generation: &str) -> Result<Option<Vec<u8>>> {
        unimplemented!()
    }
    /// Transcript records of a live session in order, or `None` when the session has none. A transcript that was moved out
    /// is read from its row, or from a file of that name in one of `folders`.
    pub fn transcript(
        &self,
        session_id: &str,
        folders: &[PathBuf],
    ) -> Result<Option<Vec<Vec<u8>>>> {
        unimplemented!()
    }
}

/// Text of an archive file, plain or zstd.
pub fn archive_file_text(path: &Path) -> Result<Vec<u8>> {
    unimplemented!()
}
