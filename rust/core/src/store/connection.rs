//! Opening a database without disturbing it, and closing it clean.
//!
//! A reader must leave the folder as it found it. SQLite makes a `-shm` (and may make a `-wal`) for any reader of a
//! database in write-ahead mode, so a reader goes one of three ways, see [`Reading`].

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::error::{Error, Result};
use crate::store::files::{self, Live, Mark, corrupt};
use crate::store::holders::holders;
use crate::store::receipts::Receipt;
use crate::store::schema::{self, Role};
use crate::store::vec0;
use crate::{interrupt, killpoint};

/// Steps of SQLite's machine between two looks at the interrupt flag: some tens of microseconds.
const STEPS_BETWEEN_LOOKS: i32 = 10_000;

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

/// How a reader gets at the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// No write-ahead log: SQLite is told that the file does not change, and opens nothing else.
    Immutable,
    /// Locks like any reader; shared memory that exists is mapped read only, none is made.
    Shared,
    /// A log without usable shared memory (its writer died): no locks, the index of the log is built in memory.
    Unlocked,
}

/// One SQLite connection with `secure_delete` and foreign keys on.
#[derive(Debug)]
pub struct Store {
    // Fields drop in this order: the connection before its entry in the list of live files.
    conn: Connection,
    _live: Option<Live>,
    path: PathBuf,
    real: PathBuf,
    access: Access,
    kind: Kind,
    reading: Option<Reading>,
    mark: Mark,
    id: (u64, u64),
    /// Index revisions that this store added itself; see `chunks.rs`.
    pub(crate) own_revisions: std::cell::Cell<i64>,
    /// The erasure that deletions belong to; see `receipts.rs`.
    pub(crate) receipt: std::cell::RefCell<Option<Receipt>>,
}

impl Store {
    /// Opens the database of `agent`, or `None` when there is none (missing, empty, or without its ownership row).
    ///
    /// # Errors
    /// Damaged, truncated or foreign files, other versions, another agent or role: nothing is touched then.
    pub fn open_agent(
        path: &Path,
        agent: &str,
        access: Access,
        busy_ms: u32,
    ) -> Result<Option<Self>> {
        Self::open(path, Role::Agent(agent), access, busy_ms)
    }

    /// Opens a session store, which may belong to any agent.
    pub fn open_sessions(path: &Path, access: Access, busy_ms: u32) -> Result<Option<Self>> {
        Self::open(path, Role::Sessions, access, busy_ms)
    }

    /// Opens the shared database (plugin state).
    pub fn open_state(path: &Path, access: Access, busy_ms: u32) -> Result<Option<Self>> {
        Self::open(path, Role::State, access, busy_ms)
    }

    /// False when the files that a [`Access::Read`] store rests on changed since it was opened: what was read may be
    /// torn, read again. Always true for a store that takes locks.
    pub fn finish_read(&self) -> Result<bool> {
        match self.reading {
            None | Some(Reading::Shared) => Ok(true),
            Some(Reading::Immutable) => Ok(Mark::take(&self.real)?.same_content(&self.mark)),
            Some(Reading::Unlocked) => Ok(Mark::take(&self.real)? == self.mark),
        }
    }

    /// Moves the write-ahead log into the database and truncates it. False when a reader prevents that until
    /// `deadline_ms` have passed.
    pub fn checkpoint(&self, deadline_ms: u32) -> Result<bool> {
        self.check_writable()?;
        let deadline = Instant::now() + Duration::from_millis(u64::from(deadline_ms));
        killpoint::pass("checkpoint:begin");
        let usual: u32 =
            self.sql(|conn| conn.query_row("PRAGMA busy_timeout", [], |row| row.get(0)))?;
        let truncated = self.truncate_log(deadline);
        self.sql(|conn| conn.busy_timeout(Duration::from_millis(u64::from(usual))))?;
        if matches!(truncated, Ok(true)) {
            killpoint::pass("checkpoint:truncated");
        }
        truncated
    }

    fn truncate_log(&self, deadline: Instant) -> Result<bool> {
        loop {
            // One try waits for readers as long as the connection waits for any lock, which is longer than allowed here.
            let left = deadline.saturating_duration_since(Instant::now());
            // The first column says whether a lock was in the way: the call itself succeeds nevertheless.
            let busy: i64 = self.sql(|conn| {
                conn.busy_timeout(left)?;
                conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
            })?;
            if busy == 0 {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Interrupts a statement that runs in another thread; it ends with [`Error::Interrupted`].
    pub fn interrupter(&self) -> rusqlite::InterruptHandle {
        self.conn.get_interrupt_handle()
    }

    /// Path as the caller gave it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it really is, links resolved.
    pub(crate) fn real_path(&self) -> &Path {
        &self.real
    }

    /// How it was opened.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Who made it.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Closes the connection; the last one on a database moves the write-ahead log into it and removes it.
    pub fn close(self) -> Result<()> {
        // Closing by dropping reports nothing; what can fail is the checkpoint, so it runs first.
        if self.access == Access::Write {
            self.sql(|conn| conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(())))?;
        }
        Ok(())
    }

    fn open(path: &Path, role: Role, access: Access, busy_ms: u32) -> Result<Option<Self>> {
        vec0::register();
        let Some((real, found)) = files::real(path)? else {
            return Ok(None);
        };
        if found.len() == 0 {
            return Ok(None);
        }
        // A writer would leave side files beside a database that it then refuses, so a reader looks first.
        let Some(reader) = Self::open_checked(path, &real, role, busy_ms)? else {
            return Ok(None);
        };
        if access == Access::Read {
            return Ok(Some(reader));
        }
        drop(reader);
        let mut store = Self::open_write(path, &real, busy_ms)?;
        let Some(kind) = schema::check(&store, role)? else {
            return Ok(None);
        };
        store.kind = kind;
        Ok(Some(store))
    }

    /// Opens for reading and checks the ownership; tried again while somebody writes.
    fn open_checked(path: &Path, real: &Path, role: Role, busy_ms: u32) -> Result<Option<Self>> {
        const ATTEMPTS: u32 = 5;
        let mut attempt = 1;
        loop {
            let mut store = Self::open_read(path, real, busy_ms)?;
            match schema::check(&store, role) {
                Ok(Some(kind)) => {
                    store.kind = kind;
                    return Ok(Some(store));
                }
                Ok(None) => return Ok(None),
                Err(error) if attempt == ATTEMPTS || store.finish_read()? => return Err(error),
                Err(_) => attempt += 1,
            }
        }
    }

    fn open_read(path: &Path, real: &Path, busy_ms: u32) -> Result<Self> {
        let mark = Mark::take(real)?;
        let header = files::header(path, real)?;
        if let Some(reason) = header
            .filter(|_| !mark.has_wal())
            .and_then(|found| found.truncation(mark.size()))
        {
            return Err(corrupt(path, &reason));
        }
        let reading = match header {
            Some(header) if !header.wal => Reading::Shared,
            Some(_) if !mark.has_wal() => Reading::Immutable,
            Some(_) if !mark.has_shared_memory() => Reading::Unlocked,
            _ => Reading::Shared,
        };
        let store = Self::connect(path, real, Access::Read, Some(reading), mark, busy_ms)?;
        if reading != Reading::Shared {
            return Ok(store);
        }
        match store
            .conn
            .query_row("PRAGMA schema_version", [], |_| Ok(()))
        {
            // Shared memory vanished, or nobody has set it up.
            Err(error) if header.is_some_and(|found| found.wal) && wants_shared_memory(&error) => {
                drop(store);
                Self::connect(
                    path,
                    real,
                    Access::Read,
                    Some(Reading::Unlocked),
                    mark,
                    busy_ms,
                )
            }
            done => done
                .map(|()| store)
                .map_err(|error| explain(path, real, error)),
        }
    }

    /// Opens any database for reading, whosever it is; no file is created or changed.
    pub(crate) fn open_any(path: &Path, busy_ms: u32) -> Result<Self> {
        vec0::register();
        let real = path
            .canonicalize()
            .map_err(|source| Error::io(path, source))?;
        Self::open_read(path, &real, busy_ms)
    }

    /// Opens an existing file without asking whose it is: one that is about to be filled.
    pub(crate) fn open_new(path: &Path) -> Result<Self> {
        const BUSY_MS: u32 = 10_000;
        vec0::register();
        let real = path
            .canonicalize()
            .map_err(|source| Error::io(path, source))?;
        Self::open_write(path, &real, BUSY_MS)
    }

    fn open_write(path: &Path, real: &Path, busy_ms: u32) -> Result<Self> {
        Self::connect(path, real, Access::Write, None, Mark::take(real)?, busy_ms)
    }

    fn connect(
        path: &Path,
        real: &Path,
        access: Access,
        reading: Option<Reading>,
        mark: Mark,
        busy_ms: u32,
    ) -> Result<Self> {
        let parameters = match reading {
            None => "mode=rw",
            Some(Reading::Immutable) => "mode=ro&immutable=1",
            Some(Reading::Shared) => "mode=ro&readonly_shm=1",
            Some(Reading::Unlocked) => "mode=ro&vfs=unix-none",
        };
        let access_flag = match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let flags = access_flag | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let live = match reading {
            None | Some(Reading::Shared) => Some(Live::enter(real)?),
            Some(Reading::Immutable | Reading::Unlocked) => None,
        };
        let fail = |error| explain(path, real, error);
        let conn =
            Connection::open_with_flags(files::uri(real, parameters)?, flags).map_err(fail)?;
        configure(&conn, access, reading, busy_ms).map_err(fail)?;
        conn.progress_handler(STEPS_BETWEEN_LOOKS, Some(interrupt::asked))
            .map_err(fail)?;
        Ok(Self {
            conn,
            _live: live,
            path: path.to_path_buf(),
            real: real.to_path_buf(),
            access,
            kind: Kind::Host,
            reading,
            mark,
            id: mark.id(),
            own_revisions: std::cell::Cell::new(0),
            receipt: std::cell::RefCell::new(None),
        })
    }

    /// Runs SQL and explains its errors.
    pub(crate) fn sql<'s, T>(
        &'s self,
        run: impl FnOnce(&'s Connection) -> rusqlite::Result<T>,
    ) -> Result<T> {
        run(&self.conn).map_err(|error| self.explain(error))
    }

    /// What an error of SQLite means for the caller.
    pub(crate) fn explain(&self, error: rusqlite::Error) -> Error {
        explain(&self.path, &self.real, error)
    }

    /// Runs `work` in a transaction that holds the write lock from its start; an error rolls back. `name` is that of the
    /// kill points around it.
    pub(crate) fn write<T>(
        &self,
        name: &str,
        work: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        self.check_writable()?;
        let transaction =
            self.sql(|conn| Transaction::new_unchecked(conn, TransactionBehavior::Immediate))?;
        killpoint::pass(&format!("{name}:begin"));
        let value = work(&transaction)?;
        killpoint::pass(&format!("{name}:written"));
        transaction.commit().map_err(|error| self.explain(error))?;
        killpoint::pass(&format!("{name}:committed"));
        Ok(value)
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.access == Access::Write {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "{} is open for reading only",
            self.path.display()
        )))
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if self.reading != Some(Reading::Unlocked) {
            return;
        }
        // This connection closes its descriptor at once, which would drop the locks of another connection that this
        // process opened meanwhile: then it is left open for good.
        files::with_live(self.id, |live| {
            if live && let Ok(other) = Connection::open_in_memory() {
                std::mem::forget(std::mem::replace(&mut self.conn, other));
            }
        });
    }
}

fn configure(
    conn: &Connection,
    access: Access,
    reading: Option<Reading>,
    busy_ms: u32,
) -> rusqlite::Result<()> {
    conn.busy_timeout(Duration::from_millis(u64::from(busy_ms)))?;
    if reading == Some(Reading::Unlocked) {
        // In this mode the index of the log is kept in memory instead of a `-shm` file.
        conn.execute_batch("PRAGMA locking_mode = EXCLUSIVE")?;
    }
    conn.execute_batch(
        "PRAGMA secure_delete = ON; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -131072",
    )?;
    if access == Access::Read {
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    }
    Ok(())
}

fn wants_shared_memory(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::CannotOpen)
        || is(error, rusqlite::ffi::SQLITE_READONLY_CANTINIT)
}

/// Has the error this extended code?
fn is(error: &rusqlite::Error, code: std::ffi::c_int) -> bool {
    error
        .sqlite_error()
        .is_some_and(|found| found.extended_code == code)
}

fn explain(path: &Path, real: &Path, error: rusqlite::Error) -> Error {
    use std::io::ErrorKind;
    let io = |kind: ErrorKind, error: &rusqlite::Error| {
        Error::io(path, std::io::Error::new(kind, error.to_string()))
    };
    match error.sqlite_error_code() {
        // A reader cannot undo what a dead writer left half done.
        _ if is(&error, rusqlite::ffi::SQLITE_READONLY_ROLLBACK) => Error::Refused(format!(
            "{} holds a transaction that its writer did not finish; a run that writes nothing cannot undo it",
            path.display()
        )),
        Some(
            ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::FileLockingProtocolFailed,
        ) => Error::Busy {
            path: path.to_path_buf(),
            holders: holders(real),
        },
        Some(ErrorCode::NotADatabase) => corrupt(path, "file is not a database"),
        Some(ErrorCode::DatabaseCorrupt) => corrupt(
            path,
            &format!("{error}; restore it from a backup or rebuild it with sqlite3 .recover"),
        ),
        Some(ErrorCode::OperationInterrupted) => Error::Interrupted,
        Some(ErrorCode::DiskFull) => io(ErrorKind::StorageFull, &error),
        Some(ErrorCode::ReadOnly) => io(ErrorKind::ReadOnlyFilesystem, &error),
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            io(ErrorKind::PermissionDenied, &error)
        }
        Some(ErrorCode::SystemIoFailure) => io(ErrorKind::Other, &error),
        _ => Error::Sqlite {
            path: path.to_path_buf(),
            source: error,
        },
    }
}
