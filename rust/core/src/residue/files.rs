//! Which files there are to search.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::{Result, interrupt};

/// Every regular file below `roots`, each once by device and inode, sorted; and what could not be listed.
///
/// A root may be a file, and may be a link; links below it are not followed, and other things than files and folders are
/// passed over. What is not there holds nothing: a missing root is no failure.
///
/// # Errors
/// [`Error::Interrupted`](crate::Error::Interrupted).
#[allow(
    clippy::type_complexity,
    reason = "files, and failures with their reason"
)]
pub fn files_below(roots: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<(PathBuf, io::Error)>)> {
    let mut walk = Walk::default();
    for root in roots {
        match fs::canonicalize(root) {
            Ok(root) => walk.descend(root)?,
            Err(error) => walk.fail(root, error),
        }
    }
    walk.files.sort();
    Ok((walk.files, walk.failures))
}

#[derive(Default)]
struct Walk {
    files: Vec<PathBuf>,
    failures: Vec<(PathBuf, io::Error)>,
    known: HashSet<(u64, u64)>,
}

impl Walk {
    /// A stack, because a path may be deeper than ours.
    fn descend(&mut self, root: PathBuf) -> Result<()> {
        let mut ahead = vec![root];
        while let Some(path) = ahead.pop() {
            interrupt::check()?;
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() || found.is_file() => {
                    let is_new = self.known.insert((found.dev(), found.ino()));
                    if is_new && found.is_dir() {
                        self.list(&path, &mut ahead);
                    } else if is_new {
                        self.files.push(path);
                    }
                }
                Ok(_) => {}
                Err(error) => self.fail(&path, error),
            }
        }
        Ok(())
    }

    fn list(&mut self, folder: &Path, ahead: &mut Vec<PathBuf>) {
        match fs::read_dir(folder) {
            Ok(entries) => {
                let first = ahead.len();
                for entry in entries {
                    match entry {
                        Ok(entry) => ahead.push(entry.path()),
                        Err(error) => self.fail(folder, error),
                    }
                }
                // So that of several names of a file the first is kept.
                ahead[first..].sort_by(|one, other| other.cmp(one));
            }
            Err(error) => self.fail(folder, error),
        }
    }

    fn fail(&mut self, path: &Path, error: io::Error) {
        if error.kind() != ErrorKind::NotFound {
            self.failures.push((path.to_path_buf(), error));
        }
    }
}
