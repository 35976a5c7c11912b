//! Origins and tombstones.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod store_support;

use std::path::Path;

use cenotaph_core::Error;
use cenotaph_core::store::{Access, Store};
use rusqlite::Connection;
use store_support::*;

fn agent(folder: &Path, rows: &[(&str, &str, &str)]) -> (Store, Connection) {
    let path = folder.join("agent.sqlite");
    let conn = host_agent(&path, "main", Parts::All);
    for (key, agent, session) in rows {
        origin(&conn, key, agent, session);
    }
    (open(&path), conn)
}

fn open(path: &Path) -> Store {
    Store::open_agent(path, "main", Access::Write, BUSY)
        .unwrap()
        .unwrap()
}

const ROWS: [(&str, &str, &str); 7] = [
    ("alone", "main", "s1"),
    ("mixed", "main", "s1"),
    ("mixed", "main", "s9"),
    ("clean", "main", "s9"),
    ("clean", "other", "s1"),
    ("\u{FFFD}", "main", "s1"),
    ("\u{1F600}", "main", "s1"),
];

#[test]
fn selected_sessions_resolve_to_keys_in_utf16_order() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _conn) = agent(folder.path(), &ROWS);
    let lineage = store
        .lineage("main", &strings(&["s1", "none"]), &[])
        .unwrap();
    // U+1F600 begins with the unit D83D and so stands before U+FFFD.
    assert_eq!(
        lineage.entry_keys,
        ["alone", "mixed", "\u{1F600}", "\u{FFFD}"]
    );
    assert_eq!(lineage.mixed, ["mixed"]);
    assert_eq!(
        lineage.known_keys,
        ["alone", "clean", "mixed", "\u{1F600}", "\u{FFFD}"]
    );
    assert_eq!(lineage.origin_rows, 5);
}

#[test]
fn keys_found_earlier_stay_selected() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _conn) = agent(folder.path(), &ROWS);
    let lineage = store
        .lineage(
            "main",
            &strings(&["s1"]),
            &strings(&["clean", "gone", "alone"]),
        )
        .unwrap();
    assert_eq!(
        lineage.entry_keys,
        ["alone", "clean", "gone", "mixed", "\u{1F600}", "\u{FFFD}"]
    );
    assert_eq!(lineage.mixed, ["clean", "mixed"]);
    assert_eq!(lineage.origin_rows, 6);
}

#[test]
fn the_digest_follows_the_rows_that_matter() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path(), &ROWS);
    let ids = strings(&["s1"]);
    let digest = |store: &Store| store.lineage("main", &ids, &[]).unwrap().digest;
    let first = digest(&store);
    origin(&conn, "clean", "main", "s7");
    origin(&conn, "alone", "other", "s7");
    assert_eq!(
        digest(&store),
        first,
        "rows of other keys and agents do not count"
    );
    origin(&conn, "alone", "main", "s7");
    assert_ne!(digest(&store), first);
    conn.execute(
        "DELETE FROM memory_entry_origins WHERE session_id = 's7'",
        [],
    )
    .unwrap();
    assert_eq!(digest(&store), first);
}

#[test]
fn no_table_means_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    drop(host_agent(&path, "main", Parts::Bare));
    let store = open(&path);
    let ids = strings(&["s"]);
    let lineage = store.lineage("main", &ids, &[]).unwrap();
    assert!(
        lineage.entry_keys.is_empty() && lineage.known_keys.is_empty() && lineage.origin_rows == 0
    );
    assert_eq!(store.delete_origins("main", &ids).unwrap(), 0);
    assert!(store.tombstones_of_others("main", &ids).unwrap().is_empty());
    assert!(store.forgotten("main").unwrap().is_empty());
    assert_eq!(
        store.bury("main", &ids, NOW, lineage.digest, &[]).unwrap(),
        1
    );
    assert_eq!(store.forgotten("main").unwrap(), ["s"]);
}

#[test]
fn deleting_takes_all_sessions_of_the_keys_of_one_agent() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path(), &ROWS);
    assert_eq!(
        store
            .delete_origins("main", &strings(&["mixed", "clean", "none", "mixed"]))
            .unwrap(),
        3
    );
    let left = texts(
        &conn,
        "SELECT entry_key || '/' || agent_id FROM memory_entry_origins ORDER BY 1",
    );
    assert_eq!(
        left,
        [
            "alone/main",
            "clean/other",
            "\u{FFFD}/main",
            "\u{1F600}/main"
        ]
    );
}

#[test]
fn joined_keys_derive_from_the_selected_sessions_too() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path(), &ROWS);
    let ids = strings(&["s1"]);
    let keys = strings(&["clean", "stray"]);
    let before = store.lineage("main", &ids, &keys).unwrap();
    let (joined, digest) = store
        .join_origins("main", &keys, &ids, before.digest, &keys)
        .unwrap();
    assert_eq!(joined, 2);
    let after = store.lineage("main", &ids, &[]).unwrap();
    assert_eq!(after.digest, digest);
    assert_eq!(after.entry_keys, before.entry_keys);
    assert_eq!(
        number(
            &conn,
            "SELECT count(*) FROM memory_entry_origins WHERE agent_id = 'main' AND session_id = 's1' AND entry_key IN ('clean', 'stray')"
        ),
        2
    );
    let again = store.join_origins("main", &keys, &ids, digest, &keys);
    assert_eq!(again.unwrap(), (0, digest));
    let stale = store.join_origins("main", &keys, &ids, before.digest, &keys);
    assert!(matches!(stale.unwrap_err(), Error::LineageChanged));
}

#[test]
fn burying_is_idempotent_and_counts_one_revision_each_time() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path(), &ROWS);
    let ids = strings(&["s1", "", "  x  "]);
    let digest = store.lineage("main", &ids, &[]).unwrap().digest;
    assert_eq!(store.bury("main", &ids, NOW, digest, &[]).unwrap(), 3);
    assert_eq!(number(&conn, "SELECT revision FROM memory_index_state"), 1);
    assert_eq!(store.bury("main", &ids, NOW + 5, digest, &[]).unwrap(), 0);
    assert_eq!(number(&conn, "SELECT revision FROM memory_index_state"), 2);
    assert_eq!(
        number(
            &conn,
            "SELECT sum(created_at) FROM memory_session_tombstones"
        ),
        3 * NOW
    );
    assert_eq!(
        texts(
            &conn,
            "SELECT DISTINCT reason FROM memory_session_tombstones"
        ),
        ["forgotten"]
    );
    assert_eq!(store.forgotten("main").unwrap(), ["", "  x  ", "s1"]);
    assert!(store.forgotten("other").unwrap().is_empty());
}

#[test]
fn the_lazily_made_table_is_the_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path(), &[]);
    let digest = store.lineage("main", &[], &[]).unwrap().digest;
    store.bury("main", &[], NOW, digest, &[]).unwrap();
    let sql = texts(
        &conn,
        "SELECT sql FROM sqlite_master WHERE name = 'memory_session_tombstones'",
    );
    let expected = "CREATE TABLE memory_session_tombstones (\n  session_id TEXT NOT NULL PRIMARY KEY,\n  agent_id TEXT NOT NULL,\n  reason TEXT NOT NULL,\n  created_at INTEGER NOT NULL\n) STRICT";
    assert_eq!(sql, [expected]);
}

#[test]
fn a_changed_lineage_buries_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path(), &ROWS);
    let ids = strings(&["s1"]);
    let digest = store.lineage("main", &ids, &[]).unwrap().digest;
    origin(&conn, "late", "main", "s1");
    let error = store.bury("main", &ids, NOW, digest, &[]).unwrap_err();
    assert!(matches!(error, Error::LineageChanged));
    assert_eq!(
        number(
            &conn,
            "SELECT count(*) FROM sqlite_master WHERE name = 'memory_session_tombstones'"
        ),
        0
    );
    assert_eq!(number(&conn, "SELECT revision FROM memory_index_state"), 0);
}

/// V10: the key of a tombstone is the session alone.
#[test]
fn v10_a_tombstone_of_another_agent_is_found_and_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path(), &ROWS);
    let ids = strings(&["s9", "s1", "s2"]);
    let digest = store.lineage("main", &ids, &[]).unwrap().digest;
    store
        .bury(
            "main",
            &strings(&["s2"]),
            NOW,
            store
                .lineage("main", &strings(&["s2"]), &[])
                .unwrap()
                .digest,
            &[],
        )
        .unwrap();
    conn.execute_batch("INSERT INTO memory_session_tombstones VALUES ('s1', 'other', 'forgotten', 1), ('s5', 'other', 'forgotten', 1)").unwrap();
    let others = store.tombstones_of_others("main", &ids).unwrap();
    assert_eq!(others, [("s1".to_owned(), "other".to_owned())]);
    let error = store.bury("main", &ids, NOW, digest, &[]).unwrap_err();
    assert!(
        error.to_string().contains("\"other\"") && error.to_string().contains("\"s1\""),
        "{error}"
    );
    assert_eq!(store.forgotten("main").unwrap(), ["s2"]);
    assert_eq!(number(&conn, "SELECT revision FROM memory_index_state"), 1);
}

/// Selects `count` sessions by id and by key.
fn forget_many(count: u32) {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path(), &ROWS);
    let ids: Vec<String> = (0..count).map(|number| format!("s{number}")).collect();
    let lineage = store.lineage("main", &ids, &ids).unwrap();
    assert_eq!(lineage.origin_rows, 6);
    assert!(store.tombstones_of_others("main", &ids).unwrap().is_empty());
    assert_eq!(
        store.bury("main", &ids, NOW, lineage.digest, &ids).unwrap(),
        u64::from(count)
    );
    assert_eq!(
        store.delete_origins("main", &lineage.entry_keys).unwrap(),
        6
    );
    assert_eq!(
        number(&conn, "SELECT count(*) FROM memory_entry_origins"),
        1
    );
}

/// V8: more ids than SQLite has variables (32,766).
#[test]
fn v8_a_hundred_thousand_ids_work() {
    forget_many(100_000);
}

#[test]
fn v8_a_million_ids_work() {
    forget_many(1_000_000);
}
