//! Reading leaves every file of the folder as it was, whoever else has the database open.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod store_support;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cenotaph_core::Error;
use cenotaph_core::store::{Access, Store};
use store_support::*;

const HOLD: &str = "CENOTAPH_TEST_HOLD";
const SQL: &str = "CENOTAPH_TEST_SQL";

/// Not a test of its own: run in another process, it keeps a database open until its input ends.
#[test]
fn holder() {
    let (Ok(path), Ok(sql)) = (std::env::var(HOLD), std::env::var(SQL)) else {
        return;
    };
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.execute_batch("PRAGMA wal_autocheckpoint = 0").unwrap();
    conn.execute_batch(&sql).unwrap();
    std::io::stderr().write_all(b"holding\n").unwrap();
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
}

struct Holder(Child);

impl Holder {
    /// Another process that has run `sql` on the database and keeps it open.
    fn start(path: &Path, sql: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "holder", "--nocapture"])
            .env(HOLD, path)
            .env(SQL, sql)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(
            lines.any(|line| line.unwrap() == "holding"),
            "the other process failed"
        );
        Self(child)
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

const INSERT: &str =
    "INSERT INTO memory_entry_origins VALUES ('late', 'main', 's', NULL, 'owner', 0)";

fn agent(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("agent.sqlite");
    let conn = host_agent(&path, "main", Parts::All);
    origin(&conn, "early", "main", "s");
    conn.close().unwrap();
    path
}

/// Reads everything a dry run reads and checks that the folder is as before.
fn read(path: &Path) -> Vec<String> {
    let folder = path.parent().unwrap();
    let before = snapshot(folder);
    let store = Store::open_agent(path, "main", Access::Read, BUSY)
        .unwrap()
        .unwrap();
    let keys = store
        .lineage("main", &strings(&["s"]), &[])
        .unwrap()
        .entry_keys;
    store.windows().unwrap();
    store.forgotten("main").unwrap();
    assert!(store.finish_read().unwrap());
    assert_eq!(names(&snapshot(folder)), names(&before));
    assert!(
        snapshot(folder) == before,
        "content or times changed while open"
    );
    store.close().unwrap();
    assert_eq!(names(&snapshot(folder)), names(&before));
    assert!(snapshot(folder) == before, "content or times changed");
    keys
}

fn names(found: &Snapshot) -> Vec<&std::path::PathBuf> {
    found.keys().collect()
}

/// Does this process hold a lock on the database itself, as every open SQLite connection in write-ahead mode does?
fn is_locked_by_us(path: &Path) -> bool {
    let ino = format!(":{}", std::fs::metadata(path).unwrap().ino());
    let pid = std::process::id().to_string();
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    locks.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[4] == pid && words[5].ends_with(&ino)
    })
}

#[test]
fn a_database_without_a_log() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read(&agent(folder.path())), ["early"]);
}

#[test]
fn a_database_with_an_empty_log_of_a_living_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    let holder = Holder::start(&path, &format!("{INSERT}; PRAGMA wal_checkpoint(TRUNCATE)"));
    assert_eq!(
        std::fs::metadata(folder.path().join("agent.sqlite-wal"))
            .unwrap()
            .len(),
        0
    );
    assert_eq!(read(&path), ["early", "late"]);
    drop(holder);
}

#[test]
fn a_database_whose_log_another_process_holds() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    let holder = Holder::start(&path, INSERT);
    assert!(folder.path().join("agent.sqlite-shm").exists());
    assert_eq!(read(&path), ["early", "late"]);
    drop(holder);
}

#[test]
fn a_database_whose_writer_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    Holder::start(&path, INSERT).kill();
    assert!(folder.path().join("agent.sqlite-shm").exists());
    assert_eq!(read(&path), ["early", "late"]);
}

#[test]
fn a_log_without_shared_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    Holder::start(&path, INSERT).kill();
    std::fs::remove_file(folder.path().join("agent.sqlite-shm")).unwrap();
    assert_eq!(read(&path), ["early", "late"]);
}

#[test]
fn a_folder_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    let log = folder.path().join("log");
    std::fs::create_dir(&log).unwrap();
    Holder::start(&path, INSERT).kill();
    for name in ["agent.sqlite", "agent.sqlite-wal"] {
        std::fs::copy(folder.path().join(name), log.join(name)).unwrap();
    }
    for file in [
        path.clone(),
        log.join("agent.sqlite"),
        log.join("agent.sqlite-wal"),
    ] {
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o444)).unwrap();
    }
    std::fs::set_permissions(&log, PermissionsExt::from_mode(0o555)).unwrap();
    assert_eq!(read(&log.join("agent.sqlite")), ["early", "late"]);
    std::fs::set_permissions(&log, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn a_database_with_a_rollback_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA journal_mode = DELETE").unwrap();
    drop(conn);
    assert_eq!(read(&path), ["early"]);
}

#[test]
fn an_unfinished_transaction_is_left_to_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA journal_mode = DELETE").unwrap();
    drop(conn);
    let spill = "PRAGMA cache_size = 1; BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000)
        INSERT INTO memory_entry_origins SELECT 'half' || i, 'main', 's', NULL, 'owner', 0 FROM n";
    Holder::start(&path, spill).kill();
    assert!(folder.path().join("agent.sqlite-journal").exists());
    let before = snapshot(folder.path());
    let error = Store::open_agent(&path, "main", Access::Read, BUSY).unwrap_err();
    assert!(error.to_string().contains("did not finish"), "{error}");
    assert!(snapshot(folder.path()) == before);
    let conn = rusqlite::Connection::open(&path).unwrap();
    assert_eq!(
        number(&conn, "SELECT count(*) FROM memory_entry_origins"),
        1
    );
    drop(conn);
    assert_eq!(read(&path), ["early"]);
}

#[test]
fn a_change_while_reading_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    let store = Store::open_agent(&path, "main", Access::Read, BUSY)
        .unwrap()
        .unwrap();
    assert!(store.finish_read().unwrap());
    let holder = Holder::start(&path, INSERT);
    assert!(!store.finish_read().unwrap(), "a log appeared");
    drop(holder);
    assert!(!store.finish_read().unwrap(), "the database was written");
    drop(store);
    assert_eq!(read(&path), ["early", "late"]);
}

#[test]
fn a_reader_beside_a_writer_of_the_same_process_keeps_its_locks() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    let writer = Store::open_agent(&path, "main", Access::Write, BUSY)
        .unwrap()
        .unwrap();
    writer
        .bury(
            "main",
            &strings(&["s"]),
            NOW,
            writer
                .lineage("main", &strings(&["s"]), &[])
                .unwrap()
                .digest,
            &[],
        )
        .unwrap();
    let reader = Store::open_agent(&path, "main", Access::Read, BUSY)
        .unwrap()
        .unwrap();
    assert_eq!(reader.forgotten("main").unwrap(), ["s"]);
    drop(reader);
    assert!(is_locked_by_us(&path));
    writer.delete_origins("main", &strings(&["early"])).unwrap();
    writer.close().unwrap();
    assert!(!folder.path().join("agent.sqlite-wal").exists());
    assert!(read(&path).is_empty());
}

#[test]
fn a_reader_without_locks_takes_none_from_a_later_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    Holder::start(&path, INSERT).kill();
    std::fs::remove_file(folder.path().join("agent.sqlite-shm")).unwrap();
    let reader = Store::open_agent(&path, "main", Access::Read, BUSY)
        .unwrap()
        .unwrap();
    let writer = Store::open_agent(&path, "main", Access::Write, BUSY)
        .unwrap()
        .unwrap();
    assert!(!reader.finish_read().unwrap());
    drop(reader);
    assert!(is_locked_by_us(&path), "the writer still holds its lock");
    writer.close().unwrap();
    assert_eq!(read(&path), ["early", "late"]);
}

#[test]
fn a_reader_is_no_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    let store = Store::open_agent(&path, "main", Access::Read, BUSY)
        .unwrap()
        .unwrap();
    let refused = [
        store.delete_origins("main", &[]).unwrap_err(),
        store.vacuum().unwrap_err(),
        store.checkpoint(0).unwrap_err(),
    ];
    assert!(
        refused
            .iter()
            .all(|error| matches!(error, Error::Refused(_)))
    );
}

#[test]
fn a_locked_database_names_who_holds_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    let holder = Holder::start(&path, "BEGIN IMMEDIATE");
    let store = Store::open_agent(&path, "main", Access::Write, 150)
        .unwrap()
        .unwrap();
    let error = store
        .delete_origins("main", &strings(&["early"]))
        .unwrap_err();
    let Error::Busy { holders, .. } = error else {
        panic!("{error}");
    };
    assert!(holders.contains(&holder.0.id()), "{holders:?}");
    assert!(!holders.contains(&std::process::id()));
    drop(holder);
    assert_eq!(
        store.delete_origins("main", &strings(&["early"])).unwrap(),
        1
    );
}

#[test]
fn a_reader_that_pins_the_log_keeps_the_checkpoint_from_finishing() {
    let folder = tempfile::tempdir().unwrap();
    let path = agent(folder.path());
    let store = Store::open_agent(&path, "main", Access::Write, 50)
        .unwrap()
        .unwrap();
    let holder = Holder::start(&path, "BEGIN; SELECT count(*) FROM memory_entry_origins");
    store.delete_origins("main", &strings(&["early"])).unwrap();
    assert!(!store.checkpoint(100).unwrap());
    drop(holder);
    assert!(store.checkpoint(1000).unwrap());
    assert_eq!(
        std::fs::metadata(folder.path().join("agent.sqlite-wal"))
            .unwrap()
            .len(),
        0
    );
}
