//! What others left beside a database: a rollback journal that was kept, and shadow indexes whose builder died.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::replace;
use crate::store::{Store, files, holders};
use crate::wipe::Old;

/// What follows the database's name in that of an index that is being built (`format.md` 1).
const SHADOW: &[u8] = b".memory-reindex-";
/// Endings of the files that belong to a database.
const SIDES: [&[u8]; 3] = [b"-wal", b"-shm", b"-journal"];
/// How long a shadow index must have been left alone: a builder writes to it all the time.
const ABANDONED: Duration = Duration::from_secs(600);

/// One file that was removed, or could not be.
pub type Swept = (PathBuf, Result<Option<Old>>);

impl Store {
    /// Removes a rollback journal that no transaction needs, and shadow indexes that nobody builds any more.
    ///
    /// The write lock is held meanwhile: whoever has it has seen that the journal is not hot, and nobody else can begin
    /// one.
    pub fn sweep_beside(&self) -> Result<Vec<Swept>> {
        let real = self.real_path().to_owned();
        let mut swept = Vec::new();
        for shadow in abandoned_shadows(&real)? {
            swept.push((shadow.clone(), replace::remove_file(&shadow)));
        }
        let journal = files::beside(&real, "-journal");
        if journal.is_file() {
            self.write("beside", |_| {
                swept.push((journal.clone(), replace::remove_file(&journal)));
                Ok(())
            })?;
        }
        Ok(swept)
    }
}

/// Files of shadow indexes of the database at `real` that are not in use, side files included.
fn abandoned_shadows(real: &Path) -> Result<Vec<PathBuf>> {
    let (Some(folder), Some(name)) = (real.parent(), real.file_name()) else {
        return Ok(Vec::new());
    };
    let entries = folder
        .read_dir()
        .map_err(|error| Error::io(folder, error))?;
    let mut found: BTreeSet<PathBuf> = BTreeSet::new();
    for entry in entries {
        let entry = entry.map_err(|error| Error::io(folder, error))?;
        let is_shadow = is_shadow_of(name, &entry.file_name());
        if is_shadow && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            found.insert(entry.path());
        }
    }
    let used: Vec<PathBuf> = found
        .iter()
        .filter(|path| !is_abandoned(path))
        .map(|path| main_file(path))
        .collect();
    found.retain(|path| !used.contains(&main_file(path)));
    Ok(found.into_iter().collect())
}

fn is_shadow_of(database: &OsStr, name: &OsStr) -> bool {
    let rest = name.as_bytes().strip_prefix(database.as_bytes());
    rest.is_some_and(|rest| rest.starts_with(SHADOW))
}

/// The database file that a side file belongs to.
fn main_file(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    let side = SIDES.iter().find_map(|side| bytes.strip_suffix(*side));
    PathBuf::from(OsStr::from_bytes(side.unwrap_or(bytes)))
}

/// A file whose times cannot be read is taken to be in use.
fn is_abandoned(path: &Path) -> bool {
    let modified = path.metadata().and_then(|found| found.modified());
    let age = modified.ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age >= ABANDONED) && holders::holders(path).is_empty()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;

    use super::{is_shadow_of, main_file};

    #[test]
    fn a_shadow_has_the_name_of_its_database() {
        let database = OsStr::new("openclaw-agent.sqlite");
        for (name, is_shadow) in [
            ("openclaw-agent.sqlite.memory-reindex-1", true),
            ("openclaw-agent.sqlite.memory-reindex-1-wal", true),
            ("openclaw-agent.sqlite", false),
            ("openclaw-agent.sqlite-journal", false),
            ("other.sqlite.memory-reindex-1", false),
            ("openclaw-agent.sqlite.bak", false),
        ] {
            assert_eq!(
                is_shadow_of(database, OsStr::new(name)),
                is_shadow,
                "{name}"
            );
        }
    }

    #[test]
    fn side_files_go_with_their_database() {
        for name in [
            "/x/a.memory-reindex-1",
            "/x/a.memory-reindex-1-wal",
            "/x/a.memory-reindex-1-journal",
        ] {
            assert_eq!(
                main_file(Path::new(name)),
                Path::new("/x/a.memory-reindex-1")
            );
        }
    }
}
