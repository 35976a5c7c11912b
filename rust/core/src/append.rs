//! Lines that are added to a file below a workspace, each once.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

use crate::line::{LineReader, body, lines};
use crate::{Error, Result, killpoint, replace};

/// Adds `new` to the file `relative` below `base`, and makes it durable: the number (from 1) of each line in the file, and
/// how many were not there before. A line that is there is not added again; so a run that was killed can be repeated.
///
/// Folders that are missing are made, for the owner alone. The lines must not hold newlines.
///
/// # Errors
/// [`Error::Refused`] when a folder below `base`, or the file, is a link or no folder or file: what is written through a
/// link lands somewhere else. [`Error::Io`].
pub fn append_lines(base: &Path, relative: &Path, new: &[Vec<u8>]) -> Result<(Vec<u64>, u64)> {
    let path = checked(base, relative)?;
    let failed = |source| Error::io(&path, source);
    let known = read(&path).map_err(failed)?;
    let mut numbers = Vec::with_capacity(new.len());
    let mut fresh: HashMap<&[u8], u64> = HashMap::new();
    let mut added = Vec::new();
    if known.torn {
        added.push(b'\n');
    }
    for line in new {
        let there = known.numbers.get(line).or_else(|| fresh.get(&line[..]));
        let number = there.copied().unwrap_or_else(|| {
            let number = known.count + fresh.len() as u64 + 1;
            fresh.insert(line, number);
            added.extend_from_slice(line);
            added.push(b'\n');
            number
        });
        numbers.push(number);
    }
    if !fresh.is_empty() {
        write(&path, &added).map_err(failed)?;
        killpoint::pass("append:written");
        replace::sync_folders(&path.parent().map(PathBuf::from).into_iter().collect())?;
    }
    Ok((numbers, fresh.len() as u64))
}

/// What a file holds.
#[derive(Default)]
struct Known {
    numbers: HashMap<Vec<u8>, u64>,
    count: u64,
    /// The last line lacks its newline.
    torn: bool,
}

fn read(path: &Path) -> io::Result<Known> {
    let mut known = Known::default();
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(known),
        opened => opened?,
    };
    let mut reader = LineReader::new(file);
    while let Some(block) = reader.next_block()? {
        for line in lines(block) {
            known.count += 1;
            known.torn = !line.ends_with(b"\n");
            known
                .numbers
                .entry(body(line).to_vec())
                .or_insert(known.count);
        }
    }
    Ok(known)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// The path below `base`, with its folders made; none of them may be a link.
fn checked(base: &Path, relative: &Path) -> Result<PathBuf> {
    let mut path = base.to_path_buf();
    let mut parts = relative.components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(refused(&base.join(relative)));
        };
        path.push(name);
        let is_last = parts.peek().is_none();
        match fs::symlink_metadata(&path) {
            Ok(found) if is_last && found.is_file() => {}
            Ok(found) if !is_last && found.is_dir() => {}
            Ok(_) => return Err(refused(&path)),
            Err(error) if error.kind() == ErrorKind::NotFound && is_last => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make_folder(&path).map_err(|source| Error::io(&path, source))?;
            }
            Err(error) => return Err(Error::io(&path, error)),
        }
    }
    Ok(path)
}

fn make_folder(path: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn refused(path: &Path) -> Error {
    Error::Refused(format!(
        "{} is a link, or not what belongs there; nothing is written through it: put a plain folder or file in its place",
        path.display()
    ))
}
