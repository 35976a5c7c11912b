//! Opening a database without disturbing it, and closing it clean.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::error::Result;

/// What the caller means to do with a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read only: no file is created or changed, side files included.
    Read,
    /// Read and write an existing database.
    Write,
}

/// Who made the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// OpenClaw: its tables are never altered.
    Host,
    /// Cenotaph.
    Native,
}

/// One SQLite connection with `secure_delete` and foreign keys on.
#[derive(Debug)]
pub struct Store {
    conn: Connection,
    path: PathBuf,
    access: Access,
    kind: Kind,
}

impl Store {
    /// Opens the database of `agent`, or `None` when there is none (missing, empty, or without its ownership row).
    pub fn open_agent(
        path: &Path,
        agent: &str,
        access: Access,
        busy_ms: u32,
    ) -> Result<Option<Self>> {
        unimplemented!()
    }
    /// Opens a session store that may belong to any agent.
    pub fn open_sessions(path: &Path, access: Access, busy_ms: u32) -> Result<Option<Self>> {
        unimplemented!()
    }
    /// Opens the shared database (plugin state).
    pub fn open_state(path: &Path, access: Access, busy_ms: u32) -> Result<Option<Self>> {
        unimplemented!()
    }
    /// Makes both native databases below `state_dir` (folders 0700, files 0600); those that exist stay as they are.
    pub fn create_native(state_dir: &Path, agent: &str, now_ms: i64) -> Result<()> {
        unimplemented!()
    }
    /// Makes the smallest shared database that OpenClaw accepts: version 0 with `plugin_state_entries` alone.
    pub fn create_state_minimal(path: &Path, now_ms: i64) -> Result<()> {
        unimplemented!()
    }
    /// False when the files that a [`Access::Read`] store rests on changed since it was opened: read again.
    pub fn finish_read(&self) -> Result<bool> {
        unimplemented!()
    }
    /// Agent named by the ownership row.
    pub fn schema_agent(&self) -> Option<String> {
        unimplemented!()
    }
    /// Moves the write-ahead log into the database and truncates it; false when readers prevent that until `deadline_ms`.
    pub fn checkpoint(&self, deadline_ms: u32) -> Result<bool> {
        unimplemented!()
    }
    /// Rewrites the whole file, so that free pages and slack hold nothing old.
    pub fn vacuum(&self) -> Result<()> {
        unimplemented!()
    }
    /// Interrupts a statement that runs in another thread; it ends with [`crate::Error::Interrupted`].
    pub fn interrupter(&self) -> rusqlite::InterruptHandle {
        unimplemented!()
    }
    /// Path as the caller gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// How it was opened.
    pub fn access(&self) -> Access {
        self.access
    }
    /// Who made it.
    pub fn kind(&self) -> Kind {
        self.kind
    }
    /// Closes the connection; the last one on a database removes the write-ahead log.
    pub fn close(self) -> Result<()> {
        unimplemented!()
    }
}
