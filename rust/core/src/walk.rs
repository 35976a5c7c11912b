//! Which files of a workspace hold memory.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Root files before and after the notes, in the order of the host's report.
const BEFORE: [&str; 2] = ["MEMORY.md", "USER.md"];
const AFTER: [&str; 2] = ["DREAMS.md", "dreams.md"];

/// Folder in which the host keeps files under repair, none of which is memory.
const REPAIR: &str = ".openclaw-repair";

/// How the names of our own temporary files begin.
const OWN_TEMPORARY: &str = ".cenotaph-";

/// What a workspace holds.
#[derive(Debug, Default)]
pub struct MemoryFiles {
    /// Memory files, in the order in which they are reported and rewritten.
    pub files: Vec<MemoryFile>,
    /// Files of the session corpus.
    pub corpus: Vec<PathBuf>,
    /// Temporary files of rewrites that were interrupted.
    pub leftovers: Vec<PathBuf>,
    /// Links below `memory/` that lead to text outside it; not followed.
    pub links: Vec<PathBuf>,
    /// Folders and files that could not be looked at.
    pub failures: Vec<(PathBuf, io::Error)>,
}

/// A file to scan and perhaps to rewrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    /// Path below the workspace with `/`, for display: what is not UTF-8 in it is replaced.
    pub relative: String,
    /// The file itself, never a link.
    pub path: PathBuf,
}

/// Lists the memory files of a workspace.
///
/// Order: `MEMORY.md`, `USER.md`, every `*.md` under `memory/` (hidden folders too, each folder sorted by
/// the bytes of its names), `DREAMS.md`, `dreams.md`; each file once. The four may be links and are
/// followed. Nothing below `memory/`, nor `memory` itself, is: a link to a folder, or to a Markdown file,
/// that is not scanned anyway is listed in `links`. Direct `*.txt` and `*.md` files of
/// `memory/.dreams/session-corpus` are the corpus, not memory. What cannot be read is listed in
/// `failures`, and the rest is listed all the same.
pub fn memory_files(workspace: &Path) -> MemoryFiles {
    let mut walk = Walk::new(workspace);
    for name in BEFORE {
        walk.root_file(name);
    }
    walk.root_leftovers();
    walk.notes();
    for name in AFTER {
        walk.root_file(name);
    }
    walk.finish()
}

type Identity = (u64, u64);

struct Walk<'w> {
    workspace: &'w Path,
    corpus_folder: PathBuf,
    found: MemoryFiles,
    /// Which of the files found are the same inode.
    known: HashMap<Identity, Vec<usize>>,
    folders: HashSet<Identity>,
    /// Links with what they lead to, until all real files are known.
    links: Vec<(PathBuf, Metadata)>,
}

impl<'w> Walk<'w> {
    fn new(workspace: &'w Path) -> Self {
        Self {
            workspace,
            corpus_folder: workspace.join("memory/.dreams/session-corpus"),
            found: MemoryFiles::default(),
            known: HashMap::new(),
            folders: HashSet::new(),
            links: Vec::new(),
        }
    }

    /// A known file of the workspace's root, through links (V7).
    fn root_file(&mut self, name: &str) {
        let named = self.workspace.join(name);
        let found = fs::canonicalize(&named).and_then(|path| Ok((fs::metadata(&path)?, path)));
        match found {
            Ok((metadata, path)) if metadata.is_file() => {
                if fs::symlink_metadata(&named).is_ok_and(|named| named.is_symlink()) {
                    self.leftovers_beside(&path);
                }
                self.add(name.to_owned(), path, &metadata);
            }
            Ok(_) => {}
            Err(error) => self.fail(named, error),
        }
    }

    fn root_leftovers(&mut self) {
        let workspace = self.workspace;
        let of_root_file = |name: &str| {
            BEFORE
                .iter()
                .chain(&AFTER)
                .any(|file| name.starts_with(file))
        };
        self.leftovers_in(workspace, of_root_file);
    }

    fn leftovers_beside(&mut self, file: &Path) {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
            return;
        };
        let name = name.to_string_lossy();
        self.leftovers_in(folder, |leftover| leftover.starts_with(&*name));
    }

    /// Interrupted rewrites in a folder that is not memory's alone: ours, and those of our files.
    fn leftovers_in(&mut self, folder: &Path, is_ours: impl Fn(&str) -> bool) {
        for name in self.names(folder) {
            let path = folder.join(&name);
            let is_file = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file());
            let shown = name.to_string_lossy();
            let is_ours = shown.starts_with(OWN_TEMPORARY) || is_ours(&shown);
            if is_ours && is_file && is_leftover(&name) && !self.found.leftovers.contains(&path) {
                self.found.leftovers.push(path);
            }
        }
    }

    fn notes(&mut self) {
        let memory = self.workspace.join("memory");
        match fs::symlink_metadata(&memory) {
            Ok(metadata) if metadata.is_symlink() => self.link(memory),
            Ok(metadata) if metadata.is_dir() => self.descend(memory),
            Ok(_) => {}
            Err(error) => self.fail(memory, error),
        }
    }

    /// Everything from `memory` down; a stack, because a path may be deeper than ours.
    fn descend(&mut self, memory: PathBuf) {
        let mut ahead = vec![memory];
        while let Some(path) = ahead.pop() {
            match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => {
                    self.folders.insert(identity(&metadata));
                    if path.file_name() != Some(OsStr::new(REPAIR)) {
                        let names = self.names(&path);
                        ahead.extend(names.iter().rev().map(|name| path.join(name)));
                    }
                }
                Ok(metadata) if metadata.is_symlink() => self.link(path),
                Ok(metadata) if metadata.is_file() => self.file(path, &metadata),
                Ok(_) => {}
                Err(error) => self.fail(path, error),
            }
        }
    }

    fn file(&mut self, path: PathBuf, metadata: &Metadata) {
        let Some(name) = path.file_name() else {
            return;
        };
        if is_leftover(name) {
            self.found.leftovers.push(path);
        } else if path.parent() == Some(&self.corpus_folder) {
            if is_corpus_name(name) {
                self.found.corpus.push(path);
            }
        } else if name.as_bytes().ends_with(b".md") {
            let below = path.strip_prefix(self.workspace).unwrap_or(&path);
            self.add(below.to_string_lossy().into_owned(), path, metadata);
        }
    }

    fn add(&mut self, relative: String, path: PathBuf, metadata: &Metadata) {
        let same = self.known.entry(identity(metadata)).or_default();
        // Two names of one inode are one file where case is folded. Where they are hard links they are
        // two, which the rewrite of one parts.
        let is_known = match metadata.nlink() {
            1 => !same.is_empty(),
            _ => same
                .iter()
                .any(|&file| is_same_path(&self.found.files[file].path, &path)),
        };
        if !is_known {
            same.push(self.found.files.len());
            self.found.files.push(MemoryFile { relative, path });
        }
    }

    fn link(&mut self, path: PathBuf) {
        // A link that leads nowhere shows no text.
        if let Ok(target) = fs::metadata(&path) {
            self.links.push((path, target));
        }
    }

    fn finish(mut self) -> MemoryFiles {
        for (path, target) in std::mem::take(&mut self.links) {
            if self.leads_outside(&path, &target) {
                self.found.links.push(path);
            }
        }
        self.found
    }

    fn leads_outside(&self, path: &Path, target: &Metadata) -> bool {
        if target.is_dir() {
            return !self.folders.contains(&identity(target));
        }
        let is_markdown = |path: &Path| path.as_os_str().as_bytes().ends_with(b".md");
        let is_memory =
            is_markdown(path) || fs::canonicalize(path).is_ok_and(|to| is_markdown(&to));
        is_memory && target.is_file() && !self.known.contains_key(&identity(target))
    }

    /// Names in a folder, sorted by their bytes.
    fn names(&mut self, folder: &Path) -> Vec<OsString> {
        let mut names = Vec::new();
        match fs::read_dir(folder) {
            Ok(entries) => {
                for entry in entries {
                    match entry {
                        Ok(entry) => names.push(entry.file_name()),
                        Err(error) => self.fail(folder.to_path_buf(), error),
                    }
                }
            }
            Err(error) => self.fail(folder.to_path_buf(), error),
        }
        names.sort();
        names
    }

    /// What is not there, or went while we looked, is no failure.
    fn fail(&mut self, path: PathBuf, error: io::Error) {
        if error.kind() != ErrorKind::NotFound {
            self.found.failures.push((path, error));
        }
    }
}

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino())
}

fn is_same_path(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

fn is_corpus_name(name: &OsStr) -> bool {
    let name = name.as_bytes().to_ascii_lowercase();
    name.ends_with(b".txt") || name.ends_with(b".md")
}

/// Whether a name is that of a rewrite's temporary file whose process, if it names one, is gone.
///
/// Names: `<file>.forget.<pid>.<uuid>.tmp`, `<file>.promotion.<anything>.tmp`, and our own.
fn is_leftover(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let Some(name) = name.strip_suffix(".tmp") else {
        return false;
    };
    if name.starts_with(OWN_TEMPORARY) {
        return true;
    }
    let process = |tail: &str| {
        let first = tail.split('.').next()?;
        let number: u32 = first.parse().ok()?;
        Pid::from_raw(i32::try_from(number).ok()?)
    };
    if let Some((_, tail)) = name.rsplit_once(".forget.") {
        return process(tail).is_some_and(is_gone);
    }
    let promotion = name.rsplit_once(".promotion.");
    promotion.is_some_and(|(_, tail)| process(tail).is_none_or(is_gone))
}

fn is_gone(process: Pid) -> bool {
    // Anything else, such as not being permitted to signal it, means that it is there.
    test_kill_process(process) == Err(Errno::SRCH)
}
