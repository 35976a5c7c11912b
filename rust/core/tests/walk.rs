//! Which files of a workspace are memory.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use cenotaph_core::walk::{MemoryFiles, memory_files};
use tempfile::TempDir;

fn workspace(files: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        put(folder.path(), file);
    }
    folder
}

fn put(folder: &Path, file: impl AsRef<Path>) -> PathBuf {
    let path = folder.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "x\n").unwrap();
    path
}

fn names(found: &MemoryFiles) -> Vec<&str> {
    found
        .files
        .iter()
        .map(|file| file.relative.as_str())
        .collect()
}

#[test]
fn order_and_scope() {
    let folder = workspace(&[
        "dreams.md",
        "DREAMS.md",
        "USER.md",
        "MEMORY.md",
        "memory.md",
        "users/a/USER.md",
        "NOTES.md",
        "memory/b.md",
        "memory/a/z.md",
        "memory/a.md",
        "memory/a-b.md",
        "memory/.hidden/x.md",
        "memory/.git/y.md",
        "memory/A.md",
        "memory/x.MD",
        "memory/x.markdown",
        "memory/x.txt",
        "memory/.md",
        "memory/.openclaw-repair/r.md",
        "memory/a/.openclaw-repair/r.md",
        "memory/.dreams/session-corpus/2026-11-03.txt",
        "memory/.dreams/session-corpus/2026-11-01.MD",
        "memory/.dreams/session-corpus/x.log",
        "memory/.dreams/session-corpus/sub/note.md",
        "memory/.dreams/session-corpus/sub/c.txt",
        "memory/.dreams/other.md",
        "memory/session-corpus/n.md",
    ]);
    let found = memory_files(folder.path());
    assert_eq!(
        names(&found),
        [
            "MEMORY.md",
            "USER.md",
            "memory/.dreams/other.md",
            "memory/.dreams/session-corpus/sub/note.md",
            "memory/.git/y.md",
            "memory/.hidden/x.md",
            "memory/.md",
            "memory/A.md",
            "memory/a/z.md",
            "memory/a-b.md",
            "memory/a.md",
            "memory/b.md",
            "memory/session-corpus/n.md",
            "DREAMS.md",
            "dreams.md",
        ]
    );
    let corpus: Vec<_> = found
        .corpus
        .iter()
        .map(|path| path.file_name().unwrap())
        .collect();
    assert_eq!(corpus, ["2026-11-01.MD", "2026-11-03.txt"]);
    assert!(found.leftovers.is_empty() && found.links.is_empty() && found.failures.is_empty());
    for file in &found.files {
        assert_eq!(fs::read(&file.path).unwrap(), b"x\n");
    }
}

#[test]
fn nothing_there_is_no_failure() {
    let folder = workspace(&[]);
    for path in [folder.path().to_path_buf(), folder.path().join("gone")] {
        let found = memory_files(&path);
        assert!(found.files.is_empty() && found.failures.is_empty());
    }
    put(folder.path(), "memory");
    assert!(memory_files(folder.path()).files.is_empty());
}

#[test]
fn root_files_are_followed_v7() {
    let outside = workspace(&["real.md"]);
    let folder = workspace(&["memory/inside.md"]);
    symlink(
        outside.path().join("real.md"),
        folder.path().join("MEMORY.md"),
    )
    .unwrap();
    symlink("memory/inside.md", folder.path().join("USER.md")).unwrap();
    symlink("gone.md", folder.path().join("DREAMS.md")).unwrap();
    let found = memory_files(folder.path());
    assert_eq!(names(&found), ["MEMORY.md", "USER.md"]);
    assert_eq!(
        found.files[0].path,
        fs::canonicalize(outside.path().join("real.md")).unwrap()
    );
    assert!(found.links.is_empty() && found.failures.is_empty());
}

#[test]
fn b18_links_below_memory_are_listed_and_not_followed() {
    let outside = workspace(&["work-2/secret.md", "work-2/x.txt"]);
    let folder = workspace(&["MEMORY.md", "memory/a.md", "memory/sub/b.md"]);
    let memory = folder.path().join("memory");
    let links = [
        ("link.md", outside.path().join("work-2/secret.md")),
        ("linkdir", outside.path().join("work-2")),
        ("other-name", outside.path().join("work-2/secret.md")),
        ("text", outside.path().join("work-2/x.txt")),
        ("known.md", memory.join("a.md")),
        ("root.md", folder.path().join("MEMORY.md")),
        ("known-folder", memory.join("sub")),
        ("gone.md", memory.join("nothing.md")),
    ];
    for (name, target) in &links {
        symlink(target, memory.join(name)).unwrap();
    }
    let found = memory_files(folder.path());
    assert_eq!(
        names(&found),
        ["MEMORY.md", "memory/a.md", "memory/sub/b.md"]
    );
    let listed: Vec<_> = found
        .links
        .iter()
        .map(|path| path.file_name().unwrap())
        .collect();
    assert_eq!(listed, ["link.md", "linkdir", "other-name"]);
}

#[test]
fn memory_itself_may_be_a_link() {
    let outside = workspace(&["notes/a.md"]);
    let folder = workspace(&[]);
    symlink(outside.path().join("notes"), folder.path().join("memory")).unwrap();
    let found = memory_files(folder.path());
    assert!(found.files.is_empty());
    assert_eq!(found.links, [folder.path().join("memory")]);
}

#[test]
fn hard_links_are_two_files() {
    let folder = workspace(&["memory/a.md"]);
    fs::hard_link(
        folder.path().join("memory/a.md"),
        folder.path().join("memory/b.md"),
    )
    .unwrap();
    fs::hard_link(
        folder.path().join("memory/a.md"),
        folder.path().join("MEMORY.md"),
    )
    .unwrap();
    assert_eq!(
        names(&memory_files(folder.path())),
        ["MEMORY.md", "memory/a.md", "memory/b.md"]
    );
}

#[test]
fn leftovers_of_the_dead() {
    let alive = std::process::id();
    // The kernel hands out no process id above 2^22.
    let dead = 4_194_305;
    let living = format!("memory/a.md.forget.{alive}.1b671a64.tmp");
    let folder = workspace(&[
        &format!("memory/a.md.forget.{dead}.1b671a64.tmp"),
        &living,
        "memory/a.md.forget.notes.tmp",
        "memory/a.md.promotion.1b671a64.tmp",
        &format!("memory/a.md.promotion.{alive}.x.tmp"),
        "memory/.cenotaph-a1B2c3D4.tmp",
        &format!("memory/.dreams/session-corpus/x.txt.forget.{dead}.u.tmp"),
        &format!("MEMORY.md.forget.{dead}.u.tmp"),
        &format!("mine.md.forget.{dead}.u.tmp"),
        ".cenotaph-a1B2c3D4.tmp",
        "memory/x.tmp",
    ]);
    let outside = workspace(&[
        "real.md",
        &format!("real.md.forget.{dead}.u.tmp"),
        &format!("other.md.forget.{dead}.u.tmp"),
    ]);
    symlink(
        outside.path().join("real.md"),
        folder.path().join("USER.md"),
    )
    .unwrap();
    let found = memory_files(folder.path());
    let mut leftovers: Vec<_> = found
        .leftovers
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect();
    leftovers.sort_unstable();
    let mut expected = [
        ".cenotaph-a1B2c3D4.tmp",
        ".cenotaph-a1B2c3D4.tmp",
        "MEMORY.md.forget.4194305.u.tmp",
        "a.md.forget.4194305.1b671a64.tmp",
        "a.md.promotion.1b671a64.tmp",
        "real.md.forget.4194305.u.tmp",
        "x.txt.forget.4194305.u.tmp",
    ];
    expected.sort_unstable();
    assert_eq!(leftovers, expected);
    assert!(found.corpus.is_empty());
}

#[test]
fn names_need_not_be_utf8() {
    let folder = workspace(&[]);
    let path = put(
        folder.path(),
        Path::new("memory").join(OsStr::from_bytes(b"\xff.md")),
    );
    let found = memory_files(folder.path());
    assert_eq!(names(&found), ["memory/\u{fffd}.md"]);
    assert_eq!(found.files[0].path, path);
}

#[test]
fn an_unreadable_folder_is_one_failure() {
    if rustix::process::geteuid().is_root() {
        return; // Root reads everything.
    }
    let folder = workspace(&["memory/a.md", "memory/closed/b.md", "memory/z.md"]);
    let closed = folder.path().join("memory/closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let found = memory_files(folder.path());
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(names(&found), ["memory/a.md", "memory/z.md"]);
    assert_eq!(found.failures.len(), 1);
    assert_eq!(found.failures[0].0, closed);
}

#[test]
fn other_kinds_of_file_are_passed_by() {
    let folder = workspace(&["memory/a.md"]);
    fs::create_dir(folder.path().join("MEMORY.md")).unwrap();
    let _socket =
        std::os::unix::net::UnixListener::bind(folder.path().join("memory/s.md")).unwrap();
    let found = memory_files(folder.path());
    assert_eq!(names(&found), ["memory/a.md"]);
    assert!(found.failures.is_empty());
}
