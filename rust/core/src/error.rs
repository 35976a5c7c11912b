//! The one error type of the core.

use std::path::{Path, PathBuf};

/// What can go wrong, as a value. Each variant names the file it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused an operation on a file.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process holds the database for longer than the busy limit.
    #[error("{} is locked by another process{}; stop it or wait, then run the command again", path.display(), holders_text(holders))]
    Busy {
        /// The database.
        path: PathBuf,
        /// Process ids that hold a lock on it, as far as the system tells.
        holders: Vec<u32>,
    },
    /// The file is not a database that can be used: damaged, truncated, or something else.
    #[error("{}: {reason}", path.display())]
    Corrupt {
        /// The database.
        path: PathBuf,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The database was written by a newer (or too old) program.
    #[error("{} has schema version {found}, this program reads version {supported}; {advice}", path.display())]
    Version {
        /// The database.
        path: PathBuf,
        /// Version found in the file.
        found: i64,
        /// Version that this program reads.
        supported: i64,
        /// What to do next.
        advice: &'static str,
    },
    /// The operation is refused as a matter of policy; nothing was written.
    #[error("{0}")]
    Refused(String),
    /// Another process holds the workspace lock for longer than the wait limit.
    #[error("{0}")]
    Locked(String),
    /// Rows that the plan rests on changed before the write; plan again.
    #[error(
        "rows that the plan rests on keep changing; stop the programs that write them, then run the command again"
    )]
    LineageChanged,
    /// The caller asked to stop.
    #[error("interrupted")]
    Interrupted,
    /// SQLite reported something that none of the above describes.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// Result of every fallible function in this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Wraps an I/O error with the file it is about.
    pub fn io(path: impl AsRef<Path>, source: std::io::Error) -> Self {
        Self::Io {
            path: path.as_ref().to_path_buf(),
            source,
        }
    }
}

/// What the system said, without the number that `io::Error` appends.
pub fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn holders_text(holders: &[u32]) -> String {
    if holders.is_empty() {
        return String::new();
    }
    let pids: Vec<String> = holders.iter().map(u32::to_string).collect();
    format!(" (held by pid {})", pids.join(", "))
}
