//! The search through files: first the bytes of all of them, then the databases through SQLite.
//!
//! Closing a file drops the POSIX locks that this process has on it, those of an SQLite connection included. So no byte of
//! a file is read while a connection is open on it: the bytes come first, and where too many hits stand in a database to
//! keep them, the rest of it is read once the connection is closed again.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsStr;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rustix::fs::OFlags;

use super::attribute::{Attribution, Pages};
use super::member::{self, Packing};
use super::needles::{Hit, Needles};
use super::page::Shape;
use super::pattern::Pattern;
use super::rows::Rows;
use super::spelling::Class;
use super::stream::Scan;
use super::{Found, Part, Place};
use crate::error::plain;
use crate::store::{self, Store};
use crate::{Error, Result, threads};

/// Hits of a database that are kept until its pages are known.
const KEPT_HITS: usize = 200_000;

/// How long to wait for a database that somebody writes.
const BUSY_MS: u32 = 10_000;

/// Searches `files` for `needles`, with at most `threads` (0: the usual number) at once.
///
/// Every byte of every file is looked at as it stands. gzip and zstd files are also unpacked in memory. Databases, told by
/// their first bytes, are also read through SQLite, without a lock that would stop a writer: hits are attributed to
/// tables, and the values of all tables but `kept_tables` that may lie on several pages, or are packed, are searched as a
/// whole. A file that is gone holds nothing.
///
/// # Errors
/// [`Error::Interrupted`]. What cannot be read is in the failures of the answer.
pub fn find_residue(
    files: &[PathBuf],
    needles: &Needles,
    kept_tables: &[String],
    threads: usize,
) -> Result<Found> {
    let search = Search {
        needles,
        kept_tables,
    };
    threads::run(threads, || {
        let first: Vec<Searched> = files
            .par_iter()
            .map_init(Vec::new, |buffer, path| search.bytes_of(path, buffer))
            .collect::<Result<_>>()?;
        let both: Vec<Searched> = first
            .into_par_iter()
            .map_init(Vec::new, |buffer, file| search.database(file, buffer))
            .collect::<Result<_>>()?;
        let mut found = Found::default();
        for file in both {
            file.tell(&mut found);
        }
        Ok(found)
    })
}

/// Needles, and the first hit, of each place of a file.
#[derive(Default)]
struct Places(BTreeMap<(Part, Option<String>), (HashSet<u32>, u64)>);

impl Places {
    fn add(&mut self, part: Part, table: Option<&str>, offset: u64, needle: u32) {
        let place = (part, table.map(str::to_owned));
        let (needles, first) = self
            .0
            .entry(place)
            .or_insert_with(|| (HashSet::new(), offset));
        needles.insert(needle);
        *first = offset.min(*first);
    }
}

/// A file, as far as it has been searched.
struct Searched {
    path: PathBuf,
    places: Places,
    failures: Vec<String>,
    bytes: u64,
    database: Option<Raw>,
}

/// What the bytes of a database showed.
struct Raw {
    shape: Shape,
    hits: Vec<Hit>,
    /// Where the bytes begin that were not searched, when there were too many hits.
    rest: Option<u64>,
}

impl Searched {
    fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            places: Places::default(),
            failures: Vec::new(),
            bytes: 0,
            database: None,
        }
    }

    /// Passes an interruption on; any other error is a failure of this file.
    fn fail(&mut self, error: Error) -> Result<()> {
        match error {
            Error::Interrupted => return Err(error),
            Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => {}
            Error::Io { source, .. } => self.failures.push(plain(&source)),
            Error::Corrupt { reason, .. } => self.failures.push(reason),
            other => self.failures.push(other.to_string()),
        }
        Ok(())
    }

    fn tell(self, found: &mut Found) {
        found.bytes += self.bytes;
        let path = self.path;
        let failures = self.failures.into_iter();
        found
            .failures
            .extend(failures.map(|reason| (path.clone(), reason)));
        let places = self.places.0.into_iter();
        found
            .places
            .extend(places.map(|((part, table), (needles, offset))| Place {
                path: path.clone(),
                part,
                table,
                needles: needles.len() as u64,
                offset,
            }));
    }
}

struct Search<'s> {
    needles: &'s Needles,
    kept_tables: &'s [String],
}

impl Search<'_> {
    /// Searches the bytes of a file, and of what is packed in it.
    fn bytes_of(&self, path: &Path, buffer: &mut Vec<u8>) -> Result<Searched> {
        let mut searched = Searched::new(path);
        if let Err(error) = self.read(&mut searched, buffer) {
            searched.fail(error)?;
        }
        Ok(searched)
    }

    fn read(&self, searched: &mut Searched, buffer: &mut Vec<u8>) -> Result<()> {
        let path = searched.path.clone();
        let failed = |source| Error::io(&path, source);
        let mut file = open_regular(&path).map_err(failed)?;
        let mut head = [0; 100];
        let length = file.read_at(&mut head, 0).map_err(failed)?;
        let head = &head[..length];
        if let Some(shape) = Shape::of(head) {
            return self.read_database(searched, &mut file, shape, buffer);
        }
        let part = part_by_name(&path);
        let Searched { places, bytes, .. } = searched;
        let mut scan = Scan::new(self.needles, buffer, 0);
        let mut report = |offset, pattern: &Pattern| {
            if pattern.class == Class::Whole || part != Part::File {
                places.add(part, None, offset, pattern.needle);
            }
        };
        let outcome = scan.through(&mut file, &path, &mut report);
        *bytes = scan.end();
        outcome?;
        match Packing::of(head) {
            Some(packing) => self.read_members(searched, &file, packing, buffer),
            None => Ok(()),
        }
    }

    fn read_members(
        &self,
        searched: &mut Searched,
        file: &File,
        packing: Packing,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let Searched { path, places, .. } = searched;
        let open = || {
            let mut again: &File = file;
            again.seek(SeekFrom::Start(0))?;
            Ok(Box::new(again) as Box<dyn Read>)
        };
        let mut report = |offset, pattern: &Pattern| {
            if pattern.class == Class::Whole {
                places.add(Part::Member, None, offset, pattern.needle);
            }
        };
        member::scan(self.needles, buffer, path, packing, &open, &mut report)
    }

    fn read_database(
        &self,
        searched: &mut Searched,
        file: &mut File,
        shape: Shape,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let mut hits = Vec::new();
        let mut scan = Scan::new(self.needles, buffer, 0);
        let mut more = Ok(true);
        while matches!(more, Ok(true)) && hits.len() < KEPT_HITS {
            more = scan.step(file, &searched.path, &mut |offset, pattern| {
                hits.push(Hit::new(offset, pattern));
            });
        }
        searched.bytes = scan.end();
        searched.database = Some(Raw {
            shape,
            hits,
            rest: matches!(more, Ok(true)).then(|| scan.base()),
        });
        more.map(|_| ())
    }

    /// Searches a database through SQLite, and attributes what its bytes showed.
    fn database(&self, mut searched: Searched, buffer: &mut Vec<u8>) -> Result<Searched> {
        let Some(raw) = searched.database.take() else {
            return Ok(searched);
        };
        let pages = match self.open_database(&mut searched, &raw, buffer) {
            Ok(pages) => pages,
            Err(error) => {
                searched.fail(error)?;
                None
            }
        };
        // No connection is open any more.
        if let Err(error) = self.attribute(&mut searched, &raw, pages.as_ref(), buffer) {
            searched.fail(error)?;
        }
        Ok(searched)
    }

    /// Searches the values, and returns the uses of the pages when there is something to attribute.
    fn open_database(
        &self,
        searched: &mut Searched,
        raw: &Raw,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Pages>> {
        let store = Store::open_any(&searched.path, BUSY_MS)?;
        store.sql(|conn| conn.execute_batch("PRAGMA cache_size = -8192"))?;
        let pages = if raw.hits.is_empty() {
            None
        } else {
            match Pages::read(&store) {
                Ok(pages) => Some(pages),
                Err(error) => {
                    searched.fail(error)?;
                    None
                }
            }
        };
        let rows = Rows {
            store: &store,
            needles: self.needles,
            shape: raw.shape,
            kept: self.kept_tables,
        };
        let Searched {
            places, failures, ..
        } = searched;
        let outcome = rows.scan(buffer, &mut |part, table, offset, pattern| {
            places.add(part, Some(table), offset, pattern.needle);
        });
        match outcome {
            Ok(damaged) => failures.extend(
                damaged
                    .into_iter()
                    .map(|table| format!("a compressed value of table {table} is damaged")),
            ),
            Err(error) => searched.fail(error)?,
        }
        if !store.finish_read()? {
            let changed = "it changed while it was read; run the command again";
            searched.failures.push(changed.to_owned());
        }
        Ok(pages)
    }

    /// Adds the hits in the bytes of a database to its places.
    fn attribute(
        &self,
        searched: &mut Searched,
        raw: &Raw,
        pages: Option<&Pages>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        if raw.hits.is_empty() {
            return Ok(());
        }
        let Searched {
            path,
            places,
            bytes,
            ..
        } = searched;
        let failed = |source| Error::io(&*path, source);
        let mut file = open_regular(path).map_err(failed)?;
        let shown = file.try_clone().map_err(failed)?;
        let mut attribution =
            pages.map(|pages| (pages, Attribution::new(pages, &shown, raw.shape)));
        let mut torn = None;
        let mut add = |hit: &Hit| match &mut attribution {
            None if hit.class == Class::Whole => {
                places.add(Part::Row, None, hit.offset, hit.needle);
            }
            None => {}
            Some((pages, attribution)) => match attribution.place(hit) {
                Ok(Some((part, table))) => {
                    let table = table.map(|table| pages.table(table));
                    places.add(part, table, hit.offset, hit.needle);
                }
                Ok(None) => {}
                Err(error) => torn = Some(error),
            },
        };
        raw.hits.iter().for_each(&mut add);
        if let Some(rest) = raw.rest {
            file.seek(SeekFrom::Start(rest)).map_err(failed)?;
            let mut scan = Scan::new(self.needles, buffer, rest);
            let outcome = scan.through(&mut file, path, &mut |offset, pattern| {
                add(&Hit::new(offset, pattern));
            });
            *bytes = scan.end();
            outcome?;
        }
        torn.map_or(Ok(()), |error| Err(failed(error)))
    }
}

/// Opens a regular file that this process has not open as a database. What took its place since it was looked at is neither
/// followed (a link) nor waited for (a pipe), and is a failure.
fn open_regular(path: &Path) -> std::io::Result<File> {
    let about = std::fs::symlink_metadata(path)?;
    if !about.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    if is_live(path, &about) {
        return Err(std::io::Error::other("this process has the database open"));
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let opened = file.metadata()?;
    if (opened.dev(), opened.ino()) != (about.dev(), about.ino()) {
        return Err(std::io::Error::other(
            "another file took its place; run the command again",
        ));
    }
    Ok(file)
}

/// Whether reading the file would drop locks of this process: those on shared memory belong to the database beside it.
fn is_live(path: &Path, about: &Metadata) -> bool {
    let name = path.as_os_str().as_bytes();
    let database = name.strip_suffix(b"-shm").map(OsStr::from_bytes);
    let beside = database.and_then(|database| std::fs::metadata(database).ok());
    std::iter::once(about)
        .chain(beside.as_ref())
        .any(|about| store::is_live((about.dev(), about.ino())))
}

fn part_by_name(path: &Path) -> Part {
    let name = path.file_name().map_or(&b""[..], |name| name.as_bytes());
    match name {
        _ if name.ends_with(b"-wal") => Part::Log,
        _ if name.ends_with(b"-journal") => Part::Journal,
        _ => Part::File,
    }
}
