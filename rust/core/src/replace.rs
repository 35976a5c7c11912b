//! Atomic removal of byte ranges from a file: the only code that writes a memory or corpus file.
//!
//! A file is never truncated or written in place while it has a name. What stays is copied to a temporary file beside it,
//! which takes its name once it is safely on disk and the old content is still what was decided on. Then the blocks of the
//! old file, which has no name any more, are overwritten (see [`wipe`](crate::wipe)).

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Gid, OFlags, Uid};
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use crate::error::{Error, Result};
use crate::killpoint;
use crate::wipe::{self, Old};

/// How often a file may change under us before we give up.
const ATTEMPTS: usize = 8;

/// Bytes copied at once.
const BUFFER: usize = 128 << 10;

/// Which file a name led to and what its metadata said; equal stamps mean the same state of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Device.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Bytes.
    pub size: u64,
    /// Time of the last change of content, nanoseconds since 1970.
    pub mtime_ns: i128,
    /// Time of the last change of metadata, nanoseconds since 1970.
    pub ctime_ns: i128,
}

type Hash = [u8; 32];

/// The stamp of the file at `path`, through links.
pub fn stamp(path: &Path) -> Result<Stamp> {
    let metadata = fs::metadata(path).map_err(|error| Error::io(path, error))?;
    Ok(Stamp::of(&metadata))
}

/// Removes from the file at `path` what `find` reports of its content, atomically.
///
/// `find` reads the content and answers with ascending, disjoint byte ranges. Where there are none the
/// file is left alone and the result is None. A file that changes meanwhile is read and judged again, up
/// to 8 times, then [`Error::Refused`]. Mode is kept, owner where the system allows it. After an error
/// the file is as it was, and no temporary file is left. A link is not followed. The rename is durable
/// once [`sync_folders`] has been called for the file's folder. Says what became of the old blocks, too.
pub fn remove_ranges<T>(
    path: &Path,
    find: impl Fn(&mut dyn Read) -> io::Result<(Vec<Range<u64>>, T)>,
) -> Result<Option<(T, Old)>> {
    attempt(path, || {
        let mut original = Original::open(path)?;
        let ((removed, value), hash) = original.read(&find)?;
        if removed.is_empty() {
            return Ok(Some(None));
        }
        let rewritten = original.without(path, &removed)?;
        if content_hash(path)? != Some(hash) {
            return Ok(None);
        }
        killpoint::pass("replace:written");
        rewritten.persist(path).map_err(|error| error.error)?;
        killpoint::pass("replace:renamed");
        let old = wipe::overwrite(&mut original.file, original.writable);
        killpoint::pass("replace:overwritten");
        Ok(Some(Some((value, old))))
    })
}

/// Unlinks the file at `path` if its content satisfies `check`, and overwrites its blocks.
///
/// None when it does not, or when no such file exists. A file that changes meanwhile is judged again,
/// up to 8 times, then [`Error::Refused`]. A link is not followed.
pub fn remove_file_if(
    path: &Path,
    check: impl Fn(&mut dyn Read) -> io::Result<bool>,
) -> Result<Option<Old>> {
    attempt(path, || {
        let mut original = match Original::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Some(None)),
            opened => opened?,
        };
        let (satisfied, hash) = original.read(&check)?;
        if !satisfied {
            return Ok(Some(None));
        }
        if content_hash(path)? != Some(hash) {
            return Ok(None);
        }
        fs::remove_file(path)?;
        killpoint::pass("remove:unlinked");
        let old = wipe::overwrite(&mut original.file, original.writable);
        Ok(Some(Some(old)))
    })
}

/// Unlinks the file at `path`, whatever it holds, and overwrites its blocks; None when there is none. A link is removed,
/// not followed.
pub fn remove_file(path: &Path) -> Result<Option<Old>> {
    let opened = Original::open(path);
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(path, error)),
    }
    killpoint::pass("remove:unlinked");
    let old = opened.map(|mut original| wipe::overwrite(&mut original.file, original.writable));
    Ok(old.ok())
}

/// Makes the renames and removals in these folders durable.
///
/// A file system that cannot sync a folder is taken at its word.
pub fn sync_folders(folders: &BTreeSet<PathBuf>) -> Result<()> {
    for folder in folders {
        let synced = File::open(folder).and_then(|opened| opened.sync_all());
        match synced {
            Err(error) if !cannot_sync(&error) => return Err(Error::io(folder, error)),
            _ => {}
        }
    }
    Ok(())
}

impl Stamp {
    /// The stamp that a file's metadata makes.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
        Self {
            dev: metadata.dev(),
            ino: metadata.ino(),
            size: metadata.size(),
            mtime_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            ctime_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Tries until `once` gives an answer; None from it means that the file changed under it.
fn attempt<T>(path: &Path, once: impl Fn() -> io::Result<Option<T>>) -> Result<T> {
    for _ in 0..ATTEMPTS {
        if let Some(answer) = once().map_err(|error| Error::io(path, error))? {
            return Ok(answer);
        }
    }
    let name = path.display();
    Err(Error::Refused(format!(
        "{name} kept changing while it was being rewritten; close what writes to it, then run the command again"
    )))
}

/// A regular file under rewrite, through one descriptor.
struct Original {
    file: File,
    metadata: Metadata,
    /// The descriptor can overwrite the content once its last name is gone.
    writable: bool,
}

impl Original {
    fn open(path: &Path) -> io::Result<Self> {
        // Not blocking: a named pipe put in place of the file would hold the open for ever.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
        let open = |write| {
            let mut options = OpenOptions::new();
            options.read(true).write(write).custom_flags(flags);
            options.open(path)
        };
        let (file, writable) = match open(true) {
            Ok(file) => (file, true),
            Err(_) => (open(false)?, false),
        };
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if !metadata.is_file() {
            return Err(io::Error::new(
                ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        Ok(Self {
            file,
            metadata,
            writable,
        })
    }

    /// Lets `judge` read the content; its answer, and the hash of all the content whatever it read.
    fn read<T>(
        &mut self,
        judge: &impl Fn(&mut dyn Read) -> io::Result<T>,
    ) -> io::Result<(T, Hash)> {
        let mut content = Hashing {
            source: &mut self.file,
            hasher: Sha256::new(),
        };
        let answer = judge(&mut content)?;
        drain(&mut content)?;
        Ok((answer, content.hasher.finalize().into()))
    }

    /// A temporary file beside `path` that holds the content without the ranges, synced.
    fn without(&mut self, path: &Path, removed: &[Range<u64>]) -> io::Result<NamedTempFile> {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        // A short name of its own: the file's may already be as long as the file system allows.
        let mut rewritten = tempfile::Builder::new()
            .prefix(".cenotaph-")
            .rand_bytes(8)
            .suffix(".tmp")
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        self.file.seek(SeekFrom::Start(0))?;
        copy_without(&mut self.file, rewritten.as_file_mut(), removed)?;
        self.take_over(rewritten.as_file())?;
        rewritten.as_file().sync_all()?;
        Ok(rewritten)
    }

    /// Gives the new file the old one's owner and mode, in this order: a change of owner clears bits.
    fn take_over(&self, file: &File) -> io::Result<()> {
        let fresh = file.metadata()?;
        if (fresh.uid(), fresh.gid()) != (self.metadata.uid(), self.metadata.gid()) {
            let owner = Uid::from_raw(self.metadata.uid());
            let group = Gid::from_raw(self.metadata.gid());
            // Only root may give a file away. Whoever may not still has to get the text out of it.
            if rustix::fs::fchown(file, Some(owner), Some(group)).is_err() {
                let _ = rustix::fs::fchown(file, None, Some(group));
            }
        }
        file.set_permissions(self.metadata.permissions())
    }
}

/// A reader that hashes what passes through it.
struct Hashing<'f> {
    source: &'f mut File,
    hasher: Sha256,
}

impl Read for Hashing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        Ok(read)
    }
}

/// Reads to the end.
fn drain(source: &mut impl Read) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

/// Hash of what `path` names now; None when it names nothing any more.
fn content_hash(path: &Path) -> io::Result<Option<Hash>> {
    match Original::open(path) {
        Ok(mut original) => Ok(Some(original.read(&|_| Ok(()))?.1)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn copy_without(source: &mut File, target: &mut File, removed: &[Range<u64>]) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    let mut at = 0;
    for range in removed {
        let kept = range.start.checked_sub(at).ok_or(ErrorKind::InvalidData)?;
        copy(source, target, kept, &mut buffer)?;
        source.seek(SeekFrom::Start(range.end))?;
        at = range.end;
    }
    copy(source, target, u64::MAX, &mut buffer)
}

/// Copies `count` bytes, or what there is.
fn copy(source: &mut File, target: &mut File, mut count: u64, buffer: &mut [u8]) -> io::Result<()> {
    while count > 0 {
        let wanted = usize::try_from(count).map_or(buffer.len(), |count| count.min(buffer.len()));
        let read = match source.read(&mut buffer[..wanted]) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        target.write_all(&buffer[..read])?;
        count -= read as u64;
    }
    Ok(())
}

fn cannot_sync(error: &io::Error) -> bool {
    matches!(
        error
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error),
        Some(rustix::io::Errno::INVAL | rustix::io::Errno::NOTSUP)
    )
}
