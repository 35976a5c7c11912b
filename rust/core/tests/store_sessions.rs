//! Sessions, transcripts, archives.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod store_support;

use std::path::Path;

use cenotaph_core::store::{Access, Store, archive_file_text};
use rusqlite::{Connection, params};
use store_support::*;

fn agent(folder: &Path) -> (Store, Connection) {
    let path = folder.join("agent.sqlite");
    let conn = host_agent(&path, "main", Parts::All);
    (
        Store::open_agent(&path, "main", Access::Read, BUSY)
            .unwrap()
            .unwrap(),
        conn,
    )
}

fn zstd_of(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).unwrap()
}

#[test]
fn rows_come_in_order_and_damage_stays_visible() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path());
    conn.execute_batch(
        "INSERT INTO session_nodes VALUES ('b', 'w1', '{}', 1, 5), ('a', 'w3', '{\"x\":1}', 0, 6);
         INSERT INTO session_windows (session_id, session_key, created_at, updated_at) VALUES ('w3', 'a', 1, 1);
         INSERT INTO session_windows VALUES ('w2', 'b', 1, 1, 9, 1, 0, 'plug', 'gmail', 'group', 'telegram', 'p', 's');
         INSERT INTO session_windows (session_id, session_key, created_at, updated_at) VALUES ('w1', 'b', 0, 1);
         INSERT INTO session_participants VALUES ('b', CAST(x'7bff' AS TEXT), 'anna', 1), ('a', '{\"type\":\"profile\"}', 'ben', 1);
         INSERT INTO session_transcript_archives VALUES
           ('s2', 'g', 'k', 'reset', 'identity', x'', printf('%64s', ''), 'n2', 7),
           ('s1', 'g', 'k', 'deleted', 'zstd', x'', printf('%64s', ''), 'n1', 7)",
    )
    .unwrap();
    let nodes: Vec<String> = store
        .nodes()
        .unwrap()
        .into_iter()
        .map(|node| node.session_key)
        .collect();
    assert_eq!(nodes, ["a", "b"]);
    let windows = store.windows().unwrap();
    let ids: Vec<&str> = windows
        .iter()
        .map(|window| window.session_id.as_str())
        .collect();
    assert_eq!(ids, ["w1", "w2", "w3"]);
    assert_eq!(windows[1].transcript_updated_at, Some(9));
    assert_eq!(
        windows[1].hook_external_content_source.as_deref(),
        Some("gmail")
    );
    assert_eq!(
        (
            windows[0].transcript_updated_at,
            windows[0].channel.as_deref()
        ),
        (None, None)
    );
    let participants = store.participants().unwrap();
    assert_eq!(participants[1].identity_namespace, b"{\xff");
    assert_eq!(participants[1].actor_id, "anna");
    let archives: Vec<String> = store
        .archives()
        .unwrap()
        .into_iter()
        .map(|archive| archive.session_id)
        .collect();
    assert_eq!(archives, ["s1", "s2"]);
}

#[test]
fn absent_tables_and_columns_read_as_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    let conn = host_agent(&path, "main", Parts::Bare);
    conn.execute_batch("CREATE TABLE session_windows (session_id TEXT, session_key TEXT, created_at INTEGER); INSERT INTO session_windows VALUES ('w', 'k', 3)")
        .unwrap();
    let store = Store::open_sessions(&path, Access::Read, BUSY)
        .unwrap()
        .unwrap();
    assert!(store.nodes().unwrap().is_empty() && store.participants().unwrap().is_empty());
    assert!(store.archives().unwrap().is_empty());
    assert_eq!(store.archive_text("s", "g").unwrap(), None);
    assert_eq!(store.transcript("s", &[]).unwrap(), None);
    let windows = store.windows().unwrap();
    assert_eq!(
        (
            windows[0].created_at,
            windows[0].acp_owned,
            windows[0].chat_type.clone()
        ),
        (3, 0, None)
    );
}

#[test]
fn events_are_opened_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path());
    let big = "x".repeat(5000);
    let insert = "INSERT INTO transcript_events (session_id, seq, event_json, created_at, event_zstd, navigation_json) VALUES ('s', ?1, ?2, 0, ?3, '{}')";
    conn.execute(insert, params![10, None::<String>, zstd_of(big.as_bytes())])
        .unwrap();
    conn.execute(insert, params![2, "first", None::<Vec<u8>>])
        .unwrap();
    let events = store.transcript("s", &[]).unwrap().unwrap();
    assert_eq!(events, [b"first".to_vec(), big.into_bytes()]);
    let bomb = vec![0; 5 << 20];
    conn.execute(insert, params![11, None::<String>, zstd_of(&bomb)])
        .unwrap();
    assert!(
        store
            .transcript("s", &[])
            .unwrap_err()
            .to_string()
            .contains("more than")
    );
}

#[test]
fn a_transcript_that_was_moved_out_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path());
    let text = b"one\ntwo\n";
    let insert = "INSERT INTO session_transcript_cold_archives VALUES (?1, ?2, ?3, ?4)";
    conn.execute(insert, params!["inside", "i.zst", "sqlite", zstd_of(text)])
        .unwrap();
    conn.execute(
        insert,
        params!["outside", "o.jsonl", "file", None::<Vec<u8>>],
    )
    .unwrap();
    let records = [b"one".to_vec(), b"two".to_vec()];
    assert_eq!(store.transcript("inside", &[]).unwrap().unwrap(), records);
    let other = folder.path().join("cold");
    let folders = [folder.path().join("absent"), other.clone()];
    assert_eq!(store.transcript("outside", &folders).unwrap(), None);
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("o.jsonl"), text).unwrap();
    assert_eq!(
        store.transcript("outside", &folders).unwrap().unwrap(),
        records
    );
}

/// V19: archives are opened in memory.
#[test]
fn v19_archives_are_opened_without_writing_anything() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = agent(folder.path());
    let text = b"{\"a\":1}\n".repeat(1000);
    let insert = "INSERT INTO session_transcript_archives VALUES (?1, 'g', 'k', 'reset', ?2, ?3, printf('%64s', ''), ?1, 7)";
    conn.execute(insert, params!["packed", "zstd", zstd_of(&text)])
        .unwrap();
    conn.execute(insert, params!["plain", "identity", text])
        .unwrap();
    let plain = folder.path().join("a.jsonl.reset.x");
    let packed = folder.path().join("a.jsonl.reset.x.zst");
    std::fs::write(&plain, &text).unwrap();
    std::fs::write(&packed, zstd_of(&text)).unwrap();
    // The last connection that writes takes the log along; what is left to see is the reader's doing.
    drop(conn);
    drop(store);
    let before = snapshot(folder.path());
    let store = Store::open_agent(
        &folder.path().join("agent.sqlite"),
        "main",
        Access::Read,
        BUSY,
    )
    .unwrap()
    .unwrap();
    for id in ["packed", "plain"] {
        assert_eq!(store.archive_text(id, "g").unwrap().unwrap(), text);
    }
    assert_eq!(store.archive_text("plain", "other").unwrap(), None);
    for path in [&plain, &packed] {
        assert_eq!(archive_file_text(path).unwrap(), text);
    }
    assert!(snapshot(folder.path()) == before);
    let error = archive_file_text(&folder.path().join("none")).unwrap_err();
    assert!(error.to_string().contains("none"));
}
