//! Database files as the file system shows them: header, side files, change marks, URIs.
//!
//! Closing any descriptor of a file drops every POSIX lock that this process has on it, also those of a live SQLite
//! connection. Header bytes are therefore read only while no connection of this process is open on that file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Files (device, inode) on which this process has a locking connection, with the number of connections.
static LIVE: Mutex<BTreeMap<(u64, u64), usize>> = Mutex::new(BTreeMap::new());

fn live() -> MutexGuard<'static, BTreeMap<(u64, u64), usize>> {
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a file in the list of files with a locking connection. Dropped after the connection.
#[derive(Debug)]
pub(crate) struct Live {
    key: (u64, u64),
}

impl Live {
    pub(crate) fn enter(real: &Path) -> Result<Self> {
        let found = std::fs::metadata(real).map_err(|source| Error::io(real, source))?;
        let key = (found.dev(), found.ino());
        *live().entry(key).or_insert(0) += 1;
        Ok(Self { key })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let mut live = live();
        if let Some(count) = live.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                live.remove(&self.key);
            }
        }
    }
}

/// Runs `close` with the answer to "does this process have a locking connection on the file?", which cannot change
/// while it runs.
pub(crate) fn with_live<T>(id: (u64, u64), close: impl FnOnce(bool) -> T) -> T {
    let live = live();
    close(live.contains_key(&id))
}

/// Has this process a locking connection on the file?
pub(crate) fn is_live(id: (u64, u64)) -> bool {
    with_live(id, |live| live)
}

/// What the first 100 bytes of a database say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) page_size: u64,
    pub(crate) wal: bool,
    pub(crate) change: u32,
    pages: u32,
    valid_for: u32,
}

impl Header {
    fn parse(bytes: &[u8; 100]) -> Option<Self> {
        if !bytes.starts_with(MAGIC) {
            return None;
        }
        let page_size = match u64::from(u16::from_be_bytes([bytes[16], bytes[17]])) {
            1 => 65_536,
            size => size,
        };
        if page_size < 512 || !page_size.is_power_of_two() {
            return None;
        }
        Some(Self {
            page_size,
            wal: bytes[19] == 2,
            change: word(bytes, 24),
            pages: word(bytes, 28),
            valid_for: word(bytes, 92),
        })
    }

    /// Why a file of `size` bytes cannot be whole, if it cannot.
    pub(crate) fn truncation(&self, size: u64) -> Option<String> {
        let pages = size / self.page_size;
        if !size.is_multiple_of(self.page_size) {
            return Some(format!(
                "truncated: {size} bytes is not a whole number of {}-byte pages; restore it from a backup",
                self.page_size
            ));
        }
        if self.change == self.valid_for && u64::from(self.pages) > pages {
            return Some(format!(
                "truncated: its header counts {} pages, the file has {pages}; restore it from a backup",
                self.pages
            ));
        }
        None
    }
}

fn word(bytes: &[u8; 100], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Real path and metadata of a database file; `None` when it is missing.
pub(crate) fn real(path: &Path) -> Result<Option<(PathBuf, Metadata)>> {
    let fail = |source| Error::io(path, source);
    let real = match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        found => found.map_err(fail)?,
    };
    let metadata = std::fs::metadata(&real).map_err(fail)?;
    if !metadata.is_file() {
        return Err(corrupt(path, "it is not a regular file"));
    }
    Ok(Some((real, metadata)))
}

/// Header of a database, or `None` when a connection of this process forbids reading it.
///
/// # Errors
/// [`Error::Corrupt`] when the file is not a database.
pub(crate) fn header(path: &Path, real: &Path) -> Result<Option<Header>> {
    let fail = |source| Error::io(path, source);
    let found = std::fs::metadata(real).map_err(fail)?;
    let live = live();
    if live.contains_key(&(found.dev(), found.ino())) {
        return Ok(None);
    }
    let mut bytes = [0; 100];
    match File::open(real).and_then(|mut file| file.read_exact(&mut bytes)) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
        done => done.map_err(fail)?,
    }
    drop(live);
    let header = Header::parse(&bytes).ok_or_else(|| corrupt(path, "file is not a database"))?;
    Ok(Some(header))
}

pub(crate) fn corrupt(path: &Path, reason: &str) -> Error {
    Error::Corrupt {
        path: path.to_path_buf(),
        reason: reason.to_owned(),
    }
}

/// `path` with `suffix` appended to its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Bytes of a write-ahead log before its first frame (<https://www.sqlite.org/fileformat2.html#walformat>).
const LOG_HEADER: u64 = 32;

/// What changes when a file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    ino: (u64, u64),
    size: u64,
    // Not the time of the last status change: SQLite gives the log of a root's connection the owner of the database.
    mtime: (i64, i64),
}

fn stamp(path: &Path) -> Result<Option<Stamp>> {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        found => found
            .map(|found| {
                Some(Stamp {
                    ino: (found.dev(), found.ino()),
                    size: found.size(),
                    mtime: (found.mtime(), found.mtime_nsec()),
                })
            })
            .map_err(|source| Error::io(path, source)),
    }
}

/// State of a database and its side files at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    database: Option<Stamp>,
    wal: Option<Stamp>,
    shared_memory: bool,
}

impl Mark {
    pub(crate) fn take(real: &Path) -> Result<Self> {
        Ok(Self {
            database: stamp(real)?,
            // A log that was only begun is the same as none, and SQLite cannot recover one without writing.
            wal: stamp(&beside(real, "-wal"))?.filter(|found| found.size > LOG_HEADER),
            shared_memory: stamp(&beside(real, "-shm"))?.is_some(),
        })
    }

    pub(crate) fn has_wal(&self) -> bool {
        self.wal.is_some()
    }

    pub(crate) fn has_shared_memory(&self) -> bool {
        self.shared_memory
    }

    /// Device and inode of the database.
    pub(crate) fn id(&self) -> (u64, u64) {
        self.database.map_or((0, 0), |found| found.ino)
    }

    pub(crate) fn size(&self) -> u64 {
        self.database.map_or(0, |found| found.size)
    }

    /// Same content, whoever may have attached to the database meanwhile.
    pub(crate) fn same_content(&self, other: &Self) -> bool {
        self.database == other.database && self.wal == other.wal
    }
}

/// `file:` URI of an absolute path; every byte with a meaning of its own is escaped.
pub(crate) fn uri(real: &Path, parameters: &str) -> Result<String> {
    let mut text = String::from("file://");
    for &byte in real.as_os_str().as_bytes() {
        match byte {
            0 => {
                let source = std::io::Error::new(ErrorKind::InvalidInput, "NUL in a path");
                return Err(Error::io(real, source));
            }
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                text.push(char::from(byte));
            }
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text.push('?');
    text.push_str(parameters);
    Ok(text)
}
