//! Opening: what is a database of ours or the host's, what is not, and that nothing is touched by finding out.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod store_support;

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cenotaph_core::Error;
use cenotaph_core::store::{Access, Kind, Store};
use rusqlite::Connection;
use store_support::*;

fn closed_agent(path: &Path, change: &str) {
    let conn = host_agent(path, "main", Parts::All);
    conn.execute_batch(change).unwrap();
    conn.close().unwrap();
}

fn open_both_ways(path: &Path) -> Error {
    let folder = path.parent().unwrap();
    let before = snapshot(folder);
    let read = Store::open_agent(path, "main", Access::Read, BUSY).unwrap_err();
    let write = Store::open_agent(path, "main", Access::Write, BUSY).unwrap_err();
    assert_eq!(snapshot(folder), before);
    assert_eq!(read.to_string(), write.to_string());
    read
}

#[test]
fn a_store_can_move_to_another_thread() {
    fn send<T: Send>() {}
    send::<Store>();
}

#[test]
fn a_missing_or_empty_file_is_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none/agent.sqlite");
    assert!(
        Store::open_agent(&path, "main", Access::Write, BUSY)
            .unwrap()
            .is_none()
    );
    assert!(!path.parent().unwrap().exists());
    let empty = folder.path().join("empty.sqlite");
    std::fs::write(&empty, b"").unwrap();
    let before = snapshot(folder.path());
    for access in [Access::Read, Access::Write] {
        assert!(
            Store::open_agent(&empty, "main", access, BUSY)
                .unwrap()
                .is_none()
        );
        assert!(Store::open_state(&empty, access, BUSY).unwrap().is_none());
    }
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn a_database_without_ownership_row_is_no_database() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    closed_agent(&path, "DELETE FROM schema_meta");
    let before = snapshot(folder.path());
    assert!(
        Store::open_agent(&path, "main", Access::Write, BUSY)
            .unwrap()
            .is_none()
    );
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn other_versions_are_refused_with_both_versions_and_advice() {
    let cases = [
        (24, "newer OpenClaw"),
        (22, "openclaw doctor --fix"),
        (17, "openclaw doctor --fix"),
        (16, "media migration"),
    ];
    for (version, advice) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sqlite");
        closed_agent(&path, &format!("PRAGMA user_version = {version}"));
        let error = open_both_ways(&path);
        let text = error.to_string();
        assert!(
            matches!(error, Error::Version { found, supported: 23, .. } if found == version),
            "{text}"
        );
        assert!(
            text.contains(advice) && text.contains("23") && text.contains(&version.to_string()),
            "{text}"
        );
    }
}

#[test]
fn versions_that_disagree_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    closed_agent(&path, "UPDATE schema_meta SET schema_version = 22");
    assert!(matches!(
        open_both_ways(&path),
        Error::Version { found: 22, .. }
    ));
}

#[test]
fn another_agent_or_role_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    closed_agent(&path, "UPDATE schema_meta SET agent_id = 'work'");
    let text = open_both_ways(&path).to_string();
    assert!(text.contains("work") && text.contains("main"), "{text}");
    let sessions = Store::open_sessions(&path, Access::Read, BUSY)
        .unwrap()
        .unwrap();
    assert_eq!(sessions.schema_agent().as_deref(), Some("work"));
    drop(sessions);
    let role = folder.path().join("role.sqlite");
    closed_agent(&role, "UPDATE schema_meta SET role = 'global'");
    assert!(matches!(open_both_ways(&role), Error::Corrupt { .. }));
}

#[test]
fn what_is_not_a_database_is_told_so() {
    for content in [b"hello".to_vec(), vec![7; 8192]] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sqlite");
        std::fs::write(&path, content).unwrap();
        let text = open_both_ways(&path).to_string();
        assert!(text.contains("file is not a database"), "{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    std::fs::create_dir(&path).unwrap();
    assert!(
        open_both_ways(&path)
            .to_string()
            .contains("not a regular file")
    );
    let other = folder.path().join("other.sqlite");
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE t(a)")
        .unwrap();
    assert!(open_both_ways(&other).to_string().contains("neither"));
}

#[test]
fn a_truncated_database_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    closed_agent(&path, "");
    let whole = std::fs::read(&path).unwrap();
    for size in [whole.len() - 1, whole.len() - 4096, 4096, 100] {
        std::fs::write(&path, &whole[..size]).unwrap();
        let text = open_both_ways(&path).to_string();
        assert!(text.contains("truncated"), "{size}: {text}");
    }
}

#[test]
fn an_unreadable_file_is_an_io_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loop.sqlite");
    std::os::unix::fs::symlink("loop.sqlite", &path).unwrap();
    let error = Store::open_agent(&path, "main", Access::Read, BUSY).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn names_with_any_byte_open() {
    let folder = tempfile::tempdir().unwrap();
    let names: [&[u8]; 4] = [
        b"a b?mode=memory&x=%41#frag.sqlite",
        b"100%.sqlite",
        b"\xff\xfe\x01.sqlite",
        "é🙂.sqlite".as_bytes(),
    ];
    for name in names {
        let path = folder.path().join(OsString::from_vec(name.to_vec()));
        closed_agent(&path, "");
        let files = snapshot(folder.path()).len();
        for access in [Access::Read, Access::Write] {
            let store = Store::open_agent(&path, "main", access, BUSY)
                .unwrap()
                .unwrap();
            assert_eq!(store.kind(), Kind::Host);
            assert_eq!(store.schema_agent().as_deref(), Some("main"));
            store.close().unwrap();
        }
        assert_eq!(snapshot(folder.path()).len(), files);
    }
}

#[test]
fn a_link_to_a_database_is_followed_to_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("real/agent.sqlite");
    let conn = host_agent(&path, "main", Parts::All);
    let link = folder.path().join("link.sqlite");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    origin(&conn, "k", "main", "s");
    let store = Store::open_agent(&link, "main", Access::Read, BUSY)
        .unwrap()
        .unwrap();
    let lineage = store.lineage("main", &strings(&["s"]), &[]).unwrap();
    assert_eq!(lineage.entry_keys, ["k"]);
}

#[test]
fn native_databases_are_private_and_open_again() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state dir");
    Store::create_native(&state, "main", NOW).unwrap();
    let agent = state.join("agents/main/agent/openclaw-agent.sqlite");
    let shared = state.join("state/openclaw.sqlite");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode(&agent), mode(&shared)], [0o600, 0o600]);
    assert_eq!(
        [
            mode(&state),
            mode(agent.parent().unwrap()),
            mode(shared.parent().unwrap())
        ],
        [0o700; 3]
    );
    let before = snapshot(&state);
    assert_eq!(before.len(), 6, "no side files: {:?}", before.keys());
    Store::create_native(&state, "main", NOW + 1).unwrap();
    let store = Store::open_agent(&agent, "main", Access::Read, BUSY)
        .unwrap()
        .unwrap();
    assert_eq!(store.kind(), Kind::Native);
    let store = Store::open_state(&shared, Access::Read, BUSY)
        .unwrap()
        .unwrap();
    assert_eq!(store.kind(), Kind::Native);
    assert!(snapshot(&state) == before);
}

#[test]
fn a_native_database_of_another_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    Store::create_native(folder.path(), "main", NOW).unwrap();
    let path = folder
        .path()
        .join("agents/main/agent/openclaw-agent.sqlite");
    let conn = Connection::open(&path).unwrap();
    conn.execute_batch("PRAGMA user_version = 2").unwrap();
    conn.close().unwrap();
    assert!(open_both_ways(&path).to_string().contains("newer Cenotaph"));
}

#[test]
fn an_existing_database_is_never_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/openclaw.sqlite");
    drop(host_state(&path));
    let before = snapshot(folder.path());
    Store::create_state_minimal(&path).unwrap();
    assert_eq!(snapshot(folder.path()), before);
}

#[test]
fn shared_databases_of_every_accepted_kind_open() {
    let folder = tempfile::tempdir().unwrap();
    let full = folder.path().join("full.sqlite");
    drop(host_state(&full));
    assert!(
        Store::open_state(&full, Access::Write, BUSY)
            .unwrap()
            .is_some()
    );
    let minimal = folder.path().join("new/minimal.sqlite");
    Store::create_state_minimal(&minimal).unwrap();
    assert_eq!(
        std::fs::metadata(&minimal).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let conn = Connection::open(&minimal).unwrap();
    assert_eq!(number(&conn, "PRAGMA user_version"), 0);
    assert_eq!(
        texts(&conn, "SELECT name FROM sqlite_master WHERE type = 'table'"),
        ["plugin_state_entries"]
    );
    drop(conn);
    assert_eq!(
        Store::open_state(&minimal, Access::Write, BUSY)
            .unwrap()
            .unwrap()
            .kind(),
        Kind::Host
    );
    let conn = Connection::open(&full).unwrap();
    conn.execute_batch("PRAGMA user_version = 19").unwrap();
    drop(conn);
    let error = Store::open_state(&full, Access::Read, BUSY).unwrap_err();
    assert!(matches!(
        error,
        Error::Version {
            found: 19,
            supported: 18,
            ..
        }
    ));
}

#[test]
fn a_host_database_keeps_its_settings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    let conn = host_agent(&path, "main", Parts::All);
    let schema = "SELECT coalesce(sql, name) FROM sqlite_master ORDER BY 1";
    let before = texts(&conn, schema);
    drop(conn);
    let store = Store::open_agent(&path, "main", Access::Write, BUSY)
        .unwrap()
        .unwrap();
    store.vacuum().unwrap();
    store.rebuild_full_text().unwrap();
    assert!(store.checkpoint(1000).unwrap());
    store.close().unwrap();
    let conn = Connection::open(&path).unwrap();
    assert_eq!(texts(&conn, schema), before);
    assert_eq!(number(&conn, "PRAGMA auto_vacuum"), 2);
    assert_eq!(texts(&conn, "PRAGMA journal_mode"), ["wal"]);
    assert_eq!(number(&conn, "PRAGMA user_version"), 23);
}
