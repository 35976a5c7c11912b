//! What others deleted carelessly goes from free pages, and from the slack of used ones.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};

use cenotaph_core::store::{Access, Freed, Store};
use memchr::memmem;
use rusqlite::Connection;

const SECRET: &[u8] = b"the careless secret";

fn database(folder: &Path, auto_vacuum: u32, rows: u32) -> PathBuf {
    Store::create_native(folder, "main", 1).unwrap();
    let path = folder.join("agents/main/agent/openclaw-agent.sqlite");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch(&format!(
        "PRAGMA secure_delete = OFF; PRAGMA auto_vacuum = {auto_vacuum}; VACUUM; PRAGMA journal_mode = WAL;
         CREATE TABLE filler (id INTEGER PRIMARY KEY, text TEXT)"
    ))
    .unwrap();
    let mut insert = conn
        .prepare("INSERT INTO filler (text) VALUES (?1)")
        .unwrap();
    conn.execute_batch("BEGIN").unwrap();
    for row in 0..rows {
        let text = format!("{row} {} {}", "the careless secret ".repeat(20), row);
        insert.execute([text]).unwrap();
    }
    conn.execute_batch("COMMIT").unwrap();
    drop(insert);
    path
}

fn careless(path: &Path, sql: &str) {
    let conn = Connection::open(path).unwrap();
    conn.execute_batch(&format!(
        "PRAGMA secure_delete = OFF; {sql}; PRAGMA wal_checkpoint(TRUNCATE)"
    ))
    .unwrap();
}

fn open(path: &Path) -> Store {
    Store::open_agent(path, "main", Access::Write, 1000)
        .unwrap()
        .unwrap()
}

fn secrets(path: &Path) -> usize {
    memmem::find_iter(&fs::read(path).unwrap(), SECRET).count()
}

#[test]
fn free_pages_are_blanked_or_given_back() {
    for (auto_vacuum, expected) in [(0, Freed::Blanked), (2, Freed::Released)] {
        let folder = tempfile::tempdir().unwrap();
        let path = database(folder.path(), auto_vacuum, 3000);
        careless(&path, "DROP TABLE filler");
        assert!(secrets(&path) > 1000);
        let before = fs::metadata(&path).unwrap().len();
        let store = open(&path);
        assert!(store.free_pages().unwrap() > 100);
        assert_eq!(store.erase_free_pages().unwrap(), expected);
        assert!(store.checkpoint(1000).unwrap());
        store.close().unwrap();
        assert_eq!(secrets(&path), 0, "{expected:?}");
        let after = fs::metadata(&path).unwrap().len();
        assert_eq!(after < before, expected == Freed::Released);
        let intact = Connection::open(&path).unwrap();
        let answer: String = intact
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(answer, "ok");
    }
}

#[test]
fn nothing_free_is_nothing_done() {
    let folder = tempfile::tempdir().unwrap();
    let path = database(folder.path(), 0, 1);
    let store = open(&path);
    store.vacuum().unwrap();
    assert_eq!(store.erase_free_pages().unwrap(), Freed::None);
}

#[test]
fn slack_needs_the_file_written_anew() {
    for auto_vacuum in [0, 2] {
        let folder = tempfile::tempdir().unwrap();
        let path = database(folder.path(), auto_vacuum, 3000);
        careless(&path, "UPDATE filler SET text = 'short' WHERE id % 2 = 1");
        careless(
            &path,
            "DELETE FROM filler WHERE id % 2 = 0 AND id % 40 <> 0",
        );
        let living = 3000 / 40 * 20;
        let store = open(&path);
        assert!(secrets(&path) > living);
        store.erase_free_pages().unwrap();
        assert!(store.checkpoint(1000).unwrap());
        assert!(secrets(&path) > living, "slack holds nothing: no test");
        store.vacuum().unwrap();
        assert!(store.checkpoint(1000).unwrap());
        store.close().unwrap();
        assert_eq!(secrets(&path), living);
    }
}
