//! Tables of databases that we make ourselves. Names are those of OpenClaw, so that one reader serves both kinds.

/// Ownership.
pub(crate) const META: &str = "
CREATE TABLE schema_meta (
  meta_key TEXT NOT NULL PRIMARY KEY,
  role TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  agent_id TEXT,
  app_version TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
";

/// Forgotten sessions. Also made on first use in a host database, whose schema check compares the text.
pub(crate) const TOMBSTONES: &str = "
CREATE TABLE IF NOT EXISTS memory_session_tombstones (
  session_id TEXT NOT NULL PRIMARY KEY,
  agent_id TEXT NOT NULL,
  reason TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
";

/// Origins of entries. Made on first use in a host database, too, whose schema check compares the text.
pub(crate) const ORIGINS: &str = "
CREATE TABLE IF NOT EXISTS memory_entry_origins (
  entry_key TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  session_key TEXT,
  origin_class TEXT NOT NULL CHECK (origin_class IN ('owner', 'agent', 'untrusted', 'system')),
  observed_at INTEGER NOT NULL,
  PRIMARY KEY (entry_key, agent_id, session_id)
) STRICT;
";

/// What erasures did. Made on first use, in host databases too.
pub(crate) const RECEIPTS: &str = "
CREATE TABLE IF NOT EXISTS cenotaph_receipts (
  seq INTEGER PRIMARY KEY,
  receipt_id TEXT NOT NULL,
  agent_id TEXT NOT NULL,
  stage TEXT NOT NULL CHECK (stage IN ('begun', 'deleted', 'completed')),
  created_at INTEGER NOT NULL,
  body TEXT NOT NULL,
  previous TEXT NOT NULL,
  hash TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS cenotaph_receipt_shingles (
  seq INTEGER PRIMARY KEY,
  shingles BLOB NOT NULL
) STRICT;
";

/// Plugin state. The host compares the text.
pub(crate) const STATE: &str = "
CREATE TABLE plugin_state_entries (
  plugin_id TEXT NOT NULL,
  namespace TEXT NOT NULL,
  entry_key TEXT NOT NULL,
  value_json TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  PRIMARY KEY (plugin_id, namespace, entry_key)
) STRICT;
CREATE INDEX idx_plugin_state_expiry ON plugin_state_entries(expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX idx_plugin_state_listing
  ON plugin_state_entries(plugin_id, namespace, created_at, entry_key, expires_at);
";

/// Everything else of an agent: index, sessions.
pub(crate) const AGENT: &str = concat!(
    "
CREATE TABLE memory_index_meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
CREATE TABLE memory_index_state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  revision INTEGER NOT NULL
) STRICT;
INSERT INTO memory_index_state (id, revision) VALUES (1, 0);
CREATE TABLE memory_index_sources (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,
  source TEXT NOT NULL DEFAULT 'memory',
  hash TEXT NOT NULL,
  mtime REAL NOT NULL,
  size INTEGER NOT NULL,
  UNIQUE (path, source)
) STRICT;
CREATE INDEX idx_memory_index_sources_source ON memory_index_sources(source);
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
CREATE INDEX idx_memory_index_chunks_source ON memory_index_chunks(source);
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
CREATE INDEX idx_memory_embedding_cache_updated_at ON memory_embedding_cache(updated_at);
",
    "
CREATE VIRTUAL TABLE memory_index_chunks_fts USING fts5(
  text, id UNINDEXED, path UNINDEXED, source UNINDEXED, model UNINDEXED, start_line UNINDEXED, end_line UNINDEXED
);
INSERT INTO memory_index_chunks_fts (memory_index_chunks_fts, rank) VALUES ('secure-delete', 1);
CREATE VIRTUAL TABLE memory_index_paths_fts USING fts5(path, source UNINDEXED);
INSERT INTO memory_index_paths_fts (memory_index_paths_fts, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER memory_index_sources_revision_after_insert AFTER INSERT ON memory_index_sources BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
  INSERT INTO memory_index_paths_fts (rowid, path, source) VALUES (NEW.id, NEW.path, NEW.source);
END;
CREATE TRIGGER memory_index_sources_revision_after_update AFTER UPDATE ON memory_index_sources BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
END;
CREATE TRIGGER memory_index_paths_fts_after_update AFTER UPDATE OF id, path, source ON memory_index_sources BEGIN
  DELETE FROM memory_index_paths_fts WHERE rowid = OLD.id;
  INSERT INTO memory_index_paths_fts (rowid, path, source) VALUES (NEW.id, NEW.path, NEW.source);
END;
CREATE TRIGGER memory_index_sources_revision_after_delete AFTER DELETE ON memory_index_sources BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
  DELETE FROM memory_index_paths_fts WHERE rowid = OLD.id;
END;
CREATE TRIGGER memory_index_chunks_revision_after_insert AFTER INSERT ON memory_index_chunks BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
  INSERT INTO memory_index_chunks_fts (rowid, text, id, path, source, model, start_line, end_line)
  VALUES (NEW.chunk_rowid, NEW.text, NEW.id, NEW.path, NEW.source, NEW.model, NEW.start_line, NEW.end_line);
END;
CREATE TRIGGER memory_index_chunks_revision_after_update AFTER UPDATE ON memory_index_chunks BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
END;
CREATE TRIGGER memory_index_chunks_fts_after_update
AFTER UPDATE OF chunk_rowid, text, id, path, source, model, start_line, end_line ON memory_index_chunks BEGIN
  DELETE FROM memory_index_chunks_fts WHERE rowid = OLD.chunk_rowid;
  INSERT INTO memory_index_chunks_fts (rowid, text, id, path, source, model, start_line, end_line)
  VALUES (NEW.chunk_rowid, NEW.text, NEW.id, NEW.path, NEW.source, NEW.model, NEW.start_line, NEW.end_line);
END;
CREATE TRIGGER memory_index_chunks_revision_after_delete AFTER DELETE ON memory_index_chunks BEGIN
  UPDATE memory_index_state SET revision = revision + 1 WHERE id = 1;
  DELETE FROM memory_index_chunks_fts WHERE rowid = OLD.chunk_rowid;
END;
",
    "
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
  chat_type TEXT CHECK (chat_type IS NULL OR chat_type IN ('direct', 'group', 'channel')),
  channel TEXT,
  parent_session_key TEXT,
  spawned_by TEXT,
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE
) STRICT;
CREATE INDEX idx_agent_session_windows_session_key ON session_windows(session_key, updated_at DESC, session_id);
CREATE TABLE session_participants (
  session_key TEXT NOT NULL,
  identity_namespace TEXT NOT NULL,
  actor_id TEXT NOT NULL,
  contribution_count INTEGER NOT NULL,
  first_prompted_at INTEGER,
  last_prompted_at INTEGER,
  PRIMARY KEY (session_key, identity_namespace, actor_id),
  FOREIGN KEY (session_key) REFERENCES session_nodes(session_key) ON DELETE CASCADE
) STRICT;
CREATE TABLE transcript_events (
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  event_json TEXT,
  created_at INTEGER NOT NULL,
  event_zstd BLOB,
  PRIMARY KEY (session_id, seq),
  FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE,
  CHECK ((event_json IS NULL) <> (event_zstd IS NULL))
) STRICT;
CREATE TABLE session_transcript_archives (
  session_id TEXT NOT NULL,
  generation TEXT NOT NULL,
  session_key TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('deleted', 'reset')),
  encoding TEXT NOT NULL CHECK (encoding IN ('identity', 'zstd')),
  archive_blob BLOB NOT NULL,
  archive_name TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  PRIMARY KEY (session_id, generation)
) STRICT;
"
);
