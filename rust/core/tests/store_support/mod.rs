//! Databases as OpenClaw makes them, small enough for tests. Table texts are those of its schema 23 and 18.
#![allow(dead_code)] // each test crate uses a part

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cenotaph_core::store::Store;
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};

pub const NOW: i64 = 1_795_165_200_000;
pub const BUSY: u32 = 2_000;

const META: &str = "
CREATE TABLE schema_meta (
  meta_key TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  agent_id TEXT,
  app_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;";

const INDEX: &str = "
CREATE TABLE memory_index_state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  revision INTEGER NOT NULL
) STRICT;
INSERT INTO memory_index_state VALUES (1, 0);
CREATE TABLE memory_index_sources (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,
  source TEXT NOT NULL DEFAULT 'memory',
  hash TEXT NOT NULL,
  mtime REAL NOT NULL,
  size INTEGER NOT NULL,
  UNIQUE (path, source)
) STRICT;
CREATE TABLE memory_index_chunks (
  chunk_rowid INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  path TEXT NOT NULL,
  source TEXT NOT NULL DEFAULT 'memory',
  start_line INTEGER NOT NULL,
  end_line INTEGER NOT NULL,
  hash TEXT NOT NULL,
  model TEXT NOT NULL,
  text TEXT NOT NULL,
  embedding BLOB NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX idx_memory_index_chunks_path_source ON memory_index_chunks(path, source);
CREATE INDEX idx_memory_index_chunks_path ON memory_index_chunks(path);
CREATE INDEX idx_memory_index_chunks_source ON memory_index_chunks(source);";

const DETAILS: &str = "
CREATE TABLE memory_index_chunk_recall_metadata (
  chunk_id TEXT PRIMARY KEY,
  importance INTEGER CHECK (importance IS NULL OR importance BETWEEN 1 AND 10),
  triggers TEXT,
  project_key TEXT,
  FOREIGN KEY (chunk_id) REFERENCES memory_index_chunks(id) ON DELETE CASCADE
) STRICT;
CREATE TABLE memory_index_chunk_provenance (
  chunk_id TEXT PRIMARY KEY,
  origin_class TEXT NOT NULL CHECK (origin_class IN ('owner', 'agent', 'untrusted', 'system')),
  session_kind TEXT NOT NULL CHECK (session_kind IN ('interactive', 'cron', 'heartbeat', 'subagent', 'unknown')),
  observed_at INTEGER NOT NULL,
  supersedes_key TEXT,
  FOREIGN KEY (chunk_id) REFERENCES memory_index_chunks(id) ON DELETE CASCADE
) STRICT;
CREATE TABLE memory_embedding_cache (
  provider TEXT NOT NULL,
  model TEXT NOT NULL,
  provider_key TEXT NOT NULL,
  hash TEXT NOT NULL,
  embedding BLOB NOT NULL,
  dims INTEGER,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (provider, model, provider_key, hash)
) STRICT;
CREATE TABLE memory_entry_origins (
  entry_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  session_key TEXT,
  origin_class TEXT NOT NULL CHECK (origin_class IN ('owner', 'agent', 'untrusted', 'system')),
  observed_at INTEGER NOT NULL,
  PRIMARY KEY (entry_key, agent_id, session_id)
) STRICT;
CREATE VIRTUAL TABLE memory_index_chunks_vec USING vec0(id TEXT PRIMARY KEY, embedding FLOAT[4]);";

const FULL_TEXT: &str = "
CREATE VIRTUAL TABLE memory_index_chunks_fts USING fts5(
  text,
  id UNINDEXED,
  path UNINDEXED,
  source UNINDEXED,
  model UNINDEXED,
  start_line UNINDEXED,
  end_line UNINDEXED
);
CREATE VIRTUAL TABLE memory_index_paths_fts USING fts5(
  path,
  source UNINDEXED
);";

const REVISION_TRIGGERS: &str = "
CREATE TRIGGER memory_index_sources_revision_after_insert AFTER INSERT ON memory_index_sources
BEGIN UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1; END;
CREATE TRIGGER memory_index_sources_revision_after_delete AFTER DELETE ON memory_index_sources
BEGIN UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1; END;
CREATE TRIGGER memory_index_chunks_revision_after_insert AFTER INSERT ON memory_index_chunks
BEGIN UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1; END;
CREATE TRIGGER memory_index_chunks_revision_after_delete AFTER DELETE ON memory_index_chunks
BEGIN UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1; END;";

const FULL_TEXT_TRIGGERS: &str = "
CREATE TRIGGER memory_index_chunks_fts_after_insert AFTER INSERT ON memory_index_chunks
BEGIN
  INSERT INTO memory_index_chunks_fts (rowid, text, id, path, source, model, start_line, end_line)
  VALUES (NEW.chunk_rowid, NEW.text, NEW.id, NEW.path, NEW.source, NEW.model, NEW.start_line, NEW.end_line);
END;
CREATE TRIGGER memory_index_chunks_fts_after_delete AFTER DELETE ON memory_index_chunks
BEGIN
  DELETE FROM memory_index_chunks_fts WHERE rowid = OLD.chunk_rowid;
END;
CREATE TRIGGER memory_index_paths_fts_after_insert AFTER INSERT ON memory_index_sources
BEGIN
  INSERT INTO memory_index_paths_fts (rowid, path, source) VALUES (NEW.id, NEW.path, NEW.source);
END;
CREATE TRIGGER memory_index_paths_fts_after_delete AFTER DELETE ON memory_index_sources
BEGIN
  DELETE FROM memory_index_paths_fts WHERE rowid = OLD.id;
END;";

const SESSIONS: &str = "
CREATE TABLE session_nodes (
  session_key TEXT NOT NULL PRIMARY KEY,
  current_session_id TEXT NOT NULL,
  entry_json TEXT NOT NULL,
  entry_valid INTEGER NOT NULL DEFAULT 0 CHECK (entry_valid IN (-1, 0, 1)),
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE session_windows (
  session_id TEXT NOT NULL PRIMARY KEY,
  session_key TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  transcript_updated_at INTEGER DEFAULT NULL,
  session_entry_provenance INTEGER NOT NULL DEFAULT 0 CHECK (session_entry_provenance IN (0, 1)),
  acp_owned INTEGER NOT NULL DEFAULT 0 CHECK (acp_owned IN (0, 1)),
  plugin_owner_id TEXT,
  hook_external_content_source TEXT,
  chat_type TEXT,
  channel TEXT,
  parent_session_key TEXT,
  spawned_by TEXT
) STRICT;
CREATE TABLE session_participants (
  session_key TEXT NOT NULL,
  identity_namespace TEXT NOT NULL,
  actor_id TEXT NOT NULL,
  contribution_count INTEGER NOT NULL,
  PRIMARY KEY (session_key, identity_namespace, actor_id)
) STRICT;
CREATE TABLE transcript_events (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_json TEXT,
  created_at INTEGER NOT NULL,
  event_zstd BLOB,
  event_utf8_bytes INTEGER CHECK (event_utf8_bytes IS NULL OR event_utf8_bytes >= 0),
  navigation_json TEXT,
  PRIMARY KEY (session_id, seq),
  CHECK (navigation_json IS NULL OR octet_length(navigation_json) <= 16384)
) STRICT;
CREATE TABLE session_transcript_archives (
  session_id TEXT NOT NULL,
  generation TEXT NOT NULL,
  session_key TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('deleted', 'reset')),
  encoding TEXT NOT NULL CHECK (encoding IN ('identity', 'zstd')),
  archive_blob BLOB NOT NULL,
  archive_sha256 TEXT NOT NULL CHECK (length(archive_sha256) = 64),
  archive_name TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, generation)
) STRICT;
CREATE TABLE session_transcript_cold_archives (
  session_id TEXT NOT NULL PRIMARY KEY,
  archive_name TEXT NOT NULL UNIQUE,
  storage TEXT NOT NULL CHECK (storage IN ('file', 'sqlite')),
  archive_blob BLOB
) STRICT;";

const STATE: &str = "
CREATE TABLE plugin_state_entries (
  plugin_id TEXT NOT NULL,
  namespace TEXT NOT NULL,
  entry_key TEXT NOT NULL,
  value_json TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (plugin_id, namespace, entry_key)
) STRICT;";

/// A connection that behaves like the host's: no `secure_delete`, write-ahead log, incremental vacuum.
pub fn host_connection(path: &Path) -> Connection {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).unwrap();
    }
    register_vec0();
    let conn = Connection::open(path).unwrap();
    conn.execute_batch("PRAGMA secure_delete = OFF; PRAGMA auto_vacuum = 2; PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF")
        .unwrap();
    conn
}

/// The module is registered by the first store that is opened.
fn register_vec0() {
    let folder = tempfile::tempdir().unwrap();
    Store::create_state_minimal(&folder.path().join("any.sqlite")).unwrap();
}

/// Parts of a host database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    All,
    NoFullTextTriggers,
    /// Ownership alone, as after damage.
    Bare,
}

/// An agent database of the host; the connection is open.
pub fn host_agent(path: &Path, agent: &str, parts: Parts) -> Connection {
    let conn = host_connection(path);
    conn.execute_batch(META).unwrap();
    own(&conn, "agent", 23, Some(agent));
    if parts != Parts::Bare {
        for part in [INDEX, DETAILS, FULL_TEXT, REVISION_TRIGGERS, SESSIONS] {
            conn.execute_batch(part).unwrap();
        }
    }
    if parts == Parts::All {
        conn.execute_batch(FULL_TEXT_TRIGGERS).unwrap();
    }
    conn
}

/// A shared database of the host; the connection is open.
pub fn host_state(path: &Path) -> Connection {
    let conn = host_connection(path);
    conn.execute_batch(META).unwrap();
    conn.execute_batch(STATE).unwrap();
    own(&conn, "global", 18, None);
    conn
}

pub fn own(conn: &Connection, role: &str, version: i64, agent: Option<&str>) {
    conn.execute(
        "INSERT INTO schema_meta VALUES ('primary', ?1, ?2, ?3, '2026.9.6', ?4, ?4)",
        params![role, version, agent, NOW],
    )
    .unwrap();
    conn.execute_batch(&format!("PRAGMA user_version = {version}"))
        .unwrap();
}

pub fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
}

/// One chunk with everything that hangs on it.
pub struct Chunk<'a> {
    pub path: &'a str,
    pub source: &'a str,
    pub text: &'a str,
    pub class: &'a str,
    pub kind: &'a str,
    pub vector: [f32; 4],
}

impl Default for Chunk<'_> {
    fn default() -> Self {
        Self {
            path: "MEMORY.md",
            source: "memory",
            text: "",
            class: "agent",
            kind: "unknown",
            vector: [0.0; 4],
        }
    }
}

impl Chunk<'_> {
    pub fn id(&self) -> String {
        sha256_hex(format!("{}:{}:{}", self.source, self.path, self.text).as_bytes())
    }

    pub fn insert(&self, conn: &Connection) {
        let hash = sha256_hex(self.text.as_bytes());
        let id = self.id();
        let doubles: Vec<u8> = self
            .vector
            .iter()
            .flat_map(|&x| f64::from(x).to_le_bytes())
            .collect();
        let floats: Vec<u8> = self.vector.iter().flat_map(|x| x.to_le_bytes()).collect();
        conn.prepare_cached(
            "INSERT INTO memory_index_chunks (id, path, source, start_line, end_line, hash, model, text, embedding, updated_at)
             VALUES (?1, ?2, ?3, 1, 1, ?4, 'm', ?5, ?6, 0)",
        )
        .unwrap()
        .execute(params![id, self.path, self.source, hash, self.text, doubles])
        .unwrap();
        conn.prepare_cached(
            "INSERT INTO memory_index_chunk_provenance VALUES (?1, ?2, ?3, 0, NULL)",
        )
        .unwrap()
        .execute([&id, self.class, self.kind])
        .unwrap();
        conn.prepare_cached(
            "INSERT INTO memory_index_chunk_recall_metadata VALUES (?1, NULL, ?2, NULL)",
        )
        .unwrap()
        .execute([&id, self.text])
        .unwrap();
        conn.prepare_cached("INSERT INTO memory_index_chunks_vec (id, embedding) VALUES (?1, ?2)")
            .unwrap()
            .execute(params![id, floats])
            .unwrap();
        cache(conn, &hash, &doubles);
    }
}

pub fn cache(conn: &Connection, hash: &str, embedding: &[u8]) {
    conn.prepare_cached(
        "INSERT OR IGNORE INTO memory_embedding_cache VALUES ('p', 'm', 'k', ?1, ?2, 4, 0)",
    )
    .unwrap()
    .execute(params![hash, embedding])
    .unwrap();
}

pub fn source(conn: &Connection, path: &str, source: &str) {
    conn.prepare_cached("INSERT INTO memory_index_sources (path, source, hash, mtime, size) VALUES (?1, ?2, 'h', 0, 0)")
        .unwrap()
        .execute([path, source])
        .unwrap();
}

pub fn origin(conn: &Connection, key: &str, agent: &str, session: &str) {
    conn.prepare_cached("INSERT INTO memory_entry_origins VALUES (?1, ?2, ?3, NULL, 'owner', 0)")
        .unwrap()
        .execute([key, agent, session])
        .unwrap();
}

pub fn number(conn: &Connection, sql: &str) -> i64 {
    conn.query_row(sql, [], |row| row.get(0)).unwrap()
}

pub fn texts(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(sql).unwrap();
    statement
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

pub fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|&item| item.to_owned()).collect()
}

/// Everything about the files below a folder that a reader could change.
pub type Snapshot = BTreeMap<PathBuf, (u32, (i64, i64), Vec<u8>)>;

pub fn snapshot(folder: &Path) -> Snapshot {
    let mut found = Snapshot::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let content = if metadata.is_file() {
            std::fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        let times = (metadata.mtime(), metadata.mtime_nsec());
        if metadata.is_dir() {
            found.extend(snapshot(&path));
        }
        found.insert(path, (metadata.mode(), times, content));
    }
    found
}

/// How often `needle` stands in the files of a folder.
pub fn hits(folder: &Path, needle: &[u8]) -> usize {
    snapshot(folder)
        .values()
        .map(|(_, _, content)| memchr::memmem::find_iter(content, needle).count())
        .sum()
}
