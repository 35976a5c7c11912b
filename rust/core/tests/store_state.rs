//! Plugin state: which rows go or change, and that all others keep every byte.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod store_support;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use cenotaph_core::Error;
use cenotaph_core::store::{Access, StateAsk, StateCounts, StatePlan, Store};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use store_support::*;

const WORKSPACE: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const OTHER: &str = "2222222222222222222222222222222222222222222222222222222222222222";

const RECALL: &str = "short-term-recall";
const SIGNALS: &str = "short-term-phase-signals";
const FILES: &str = "dreaming-session-ingestion-files";
const SEEN: &str = "dreaming-session-ingestion-seen";
const REWIND: &str = "session-backfill-rewind";
const BACKUPS: &str = "dreaming-memory-backups";

fn row_key(workspace: &str, key: &str) -> String {
    format!("{workspace}:{}", sha256_hex(key.as_bytes()))
}

/// Envelope in the host's member order; `value` is raw JSON.
fn envelope(workspace: &str, key: &str, value: &str) -> String {
    format!(
        r#"{{"version":1,"workspaceKey":"{workspace}","workspaceDir":"/w","key":{},"value":{value}}}"#,
        Value::from(key)
    )
}

fn put(conn: &Connection, namespace: &str, workspace: &str, key: &str, value: &str) {
    raw(
        conn,
        namespace,
        &row_key(workspace, key),
        &envelope(workspace, key, value),
    );
}

fn raw(conn: &Connection, namespace: &str, row_key: &str, json: &str) {
    conn.execute(
        "INSERT INTO plugin_state_entries VALUES ('memory-core', ?1, ?2, ?3, ?4, NULL)",
        params![namespace, row_key, json, NOW],
    )
    .unwrap();
}

type Rows = BTreeMap<(String, String), (String, i64)>;

fn rows(conn: &Connection) -> Rows {
    let mut statement = conn
        .prepare("SELECT namespace, entry_key, value_json, created_at FROM plugin_state_entries")
        .unwrap();
    let found = statement.query_map([], |row| {
        Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, row.get(3)?)))
    });
    found.unwrap().collect::<Result<_, _>>().unwrap()
}

fn keys(conn: &Connection, namespace: &str) -> Vec<String> {
    let sql = format!(
        "SELECT json_extract(value_json, '$.key') FROM plugin_state_entries WHERE namespace = '{namespace}' ORDER BY 1"
    );
    texts(conn, &sql)
}

fn state(folder: &Path) -> (Store, Connection) {
    let path = folder.join("openclaw.sqlite");
    let conn = host_state(&path);
    (
        Store::open_state(&path, Access::Write, BUSY)
            .unwrap()
            .unwrap(),
        conn,
    )
}

fn contains(text: &[u8], needle: &str) -> bool {
    memchr::memmem::find(text, needle.as_bytes()).is_some()
}

fn plan(store: &Store) -> StatePlan {
    let entry_keys: HashSet<String> = ["k1", "k2"].map(str::to_owned).into();
    let ask = StateAsk {
        workspace_key: WORKSPACE,
        agent: "main",
        entry_keys: &entry_keys,
        refs_named: &|text| contains(text, "sessions/main/gone") || text == b"main:gone",
        is_known: &|key| key == "theirs",
        run_is_selected: &|name| name.starts_with(b"gone.jsonl"),
        scrub: &|text| {
            let text = std::str::from_utf8(text).ok()?;
            text.contains("secret\n")
                .then(|| text.replace("secret\n", "").into_bytes())
        },
    };
    store.plan_state(&ask).unwrap()
}

fn apply(store: &Store) -> StateCounts {
    let plan = plan(store);
    let done = store.apply_state(&plan, NOW + 1).unwrap();
    assert_eq!(done, plan.counts);
    done
}

#[test]
fn short_term_entries_go_by_key_by_what_they_name_or_say() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    let entry = |key: &str, path: &str, snippet: &str| {
        json!({"key": key, "path": path, "snippet": snippet}).to_string()
    };
    put(&conn, RECALL, WORKSPACE, "k1", &entry("x", "p", "s"));
    put(&conn, RECALL, WORKSPACE, "y", &entry("k2", "p", "s"));
    put(
        &conn,
        RECALL,
        WORKSPACE,
        "by-path",
        &entry("by-path-value", "sessions/main/gone", "s"),
    );
    put(
        &conn,
        RECALL,
        WORKSPACE,
        "by-snippet",
        &entry("by-snippet", "p", "see sessions/main/gone"),
    );
    put(
        &conn,
        RECALL,
        WORKSPACE,
        "by-text",
        &entry("by-text", "p", "a secret\n"),
    );
    put(
        &conn,
        RECALL,
        WORKSPACE,
        "theirs",
        &entry("theirs", "p", "also said: secret\n"),
    );
    put(&conn, RECALL, WORKSPACE, "keep", &entry("keep", "p", "k1"));
    put(&conn, RECALL, OTHER, "k1", &entry("k1", "p", "s"));
    for key in [
        "k1",
        "by-path-value",
        "by-snippet",
        "by-text",
        "keep",
        "theirs",
    ] {
        put(
            &conn,
            SIGNALS,
            WORKSPACE,
            key,
            &json!({"key": key, "lightHits": 1}).to_string(),
        );
    }
    let before = rows(&conn);
    let counts = apply(&store);
    assert_eq!(
        counts,
        StateCounts {
            short_term_entries: 5,
            ..StateCounts::default()
        }
    );
    assert_eq!(keys(&conn, RECALL), ["k1", "keep", "theirs"]);
    assert_eq!(keys(&conn, SIGNALS), ["keep", "theirs"]);
    for (key, row) in rows(&conn) {
        assert_eq!(before[&key], row, "untouched rows keep value and time");
    }
    assert!(rows(&conn).keys().any(|(_, key)| key.starts_with(OTHER)));
}

/// V13: scopes and state keys that name a transcript by its absolute path.
#[test]
fn v13_ingestion_state_of_selected_sessions_goes() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    let file = json!({"mtimeMs": 1, "size": 2}).to_string();
    for key in [
        "main:sessions/main/gone",
        "session-backfill:/abs/sessions/gone.jsonl.reset.2026",
        "session-backfill:/abs/gone.jsonl/kept.jsonl",
        "main:sessions/main/kept",
    ] {
        put(&conn, FILES, WORKSPACE, key, &file);
    }
    for (scope, index) in [
        ("main:sessions/main/gone", 0),
        ("main:sessions/main/gone", 1),
        ("main:gone", 0),
        ("archive:main:/abs/gone.jsonl.deleted.2026", 0),
        ("archive:other:/abs/gone.jsonl.deleted.2026", 0),
        ("main:kept", 0),
    ] {
        let value = json!({"scope": scope, "index": index, "hashes": ["a"]}).to_string();
        put(&conn, SEEN, WORKSPACE, &format!("{scope}:{index}"), &value);
    }
    put(
        &conn,
        SEEN,
        WORKSPACE,
        "archive:main:/abs/gone.jsonl:3",
        "{}",
    );
    let counts = apply(&store);
    assert_eq!(
        counts,
        StateCounts {
            seen_hash_scopes: 4,
            ..StateCounts::default()
        }
    );
    assert_eq!(
        keys(&conn, FILES),
        [
            "main:sessions/main/kept",
            "session-backfill:/abs/gone.jsonl/kept.jsonl"
        ]
    );
    assert_eq!(
        keys(&conn, SEEN),
        [
            "archive:other:/abs/gone.jsonl.deleted.2026:0",
            "main:kept:0"
        ]
    );
}

#[test]
fn v13_rewind_rows_lose_the_candidates_of_selected_sessions() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    let candidate = |scope: &str, state: &str| {
        format!(r#"{{"contentIndex":1,"hash":"h","scope":"{scope}","stateKey":"{state}"}}"#)
    };
    let gone = candidate("main:gone", "s");
    let gone_by_path = candidate("x", "session-backfill:/a/gone.jsonl");
    let kept = candidate("main:kept", "main:sessions/main/kept");
    let value = |list: &[&str]| {
        format!(
            r#"{{"version":1,"candidates":[{}],"extra":1.50}}"#,
            list.join(",")
        )
    };
    let key = |list: &[&str]| sha256_hex(format!("[{}]", list.join(",")).as_bytes());
    for list in [
        &[gone.as_str(), &kept, &gone_by_path][..],
        &[&gone],
        &[&kept, &kept],
    ] {
        put(&conn, REWIND, WORKSPACE, &key(list), &value(list));
    }
    put(
        &conn,
        REWIND,
        WORKSPACE,
        "complete-baseline:main",
        r#"{"version":1,"complete":true,"agentId":"main"}"#,
    );
    assert_eq!(apply(&store), StateCounts::default());
    let kept_key = key(&[&kept]);
    let mut expected = vec![
        kept_key.clone(),
        key(&[&kept, &kept]),
        "complete-baseline:main".to_owned(),
    ];
    expected.sort();
    assert_eq!(keys(&conn, REWIND), expected);
    let moved = (REWIND.to_owned(), row_key(WORKSPACE, &kept_key));
    assert_eq!(
        rows(&conn)[&moved],
        (envelope(WORKSPACE, &kept_key, &value(&[&kept])), NOW + 1)
    );
}

#[test]
fn a_scrubbed_backup_keeps_its_key_and_every_other_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    let key = "2026-11-20T00:00:00.000Z:0123456789ab";
    let value = |content: &str, hash: &str| {
        format!(
            r#"{{"createdAt":"2026-11-20T00:00:00.000Z","content":"{content}","contentHash":"{hash}","more":{{"b":1.0,"a":[1, 2]}}}}"#
        )
    };
    put(
        &conn,
        BACKUPS,
        WORKSPACE,
        key,
        &value(r#"# T\u00e9st \ud83d\n\"secret\nkept 😀\u2028\n"#, "old"),
    );
    put(
        &conn,
        BACKUPS,
        WORKSPACE,
        "clean",
        &value(r"nothing\n", "old"),
    );
    let scrub_hits = apply(&store);
    assert_eq!(
        scrub_hits,
        StateCounts::default(),
        "a lone surrogate is no UTF-8 for this test's scrubber"
    );
    conn.execute(
        "DELETE FROM plugin_state_entries WHERE entry_key = ?1",
        [row_key(WORKSPACE, key)],
    )
    .unwrap();
    put(
        &conn,
        BACKUPS,
        WORKSPACE,
        key,
        &value(r#"# T\u00e9st\n\"secret\nkept 😀\u2028\n"#, "old"),
    );
    let before = rows(&conn);
    assert_eq!(
        apply(&store),
        StateCounts {
            backups: 1,
            ..StateCounts::default()
        }
    );
    let hash = sha256_hex("# Tést\n\"kept 😀\u{2028}\n".as_bytes());
    let expected = envelope(
        WORKSPACE,
        key,
        &value("# Tést\\n\\\"kept 😀\u{2028}\\n", &hash),
    );
    let changed = (BACKUPS.to_owned(), row_key(WORKSPACE, key));
    for (row, (json, created)) in rows(&conn) {
        if row == changed {
            assert_eq!((json.as_str(), created), (expected.as_str(), NOW + 1));
        } else {
            assert_eq!(before[&row], (json, created));
        }
    }
    assert_eq!(apply(&store), StateCounts::default());
}

/// V15: what cannot be read is reported, and does not stop the rest.
#[test]
fn v15_undecodable_rows_are_reported_and_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    raw(&conn, RECALL, &row_key(WORKSPACE, "bad"), "{not json");
    raw(
        &conn,
        BACKUPS,
        &row_key(WORKSPACE, "list"),
        &envelope(WORKSPACE, "list", "[]"),
    );
    raw(
        &conn,
        RECALL,
        &row_key(WORKSPACE, "foreign"),
        &envelope(OTHER, "k1", "{}"),
    );
    put(&conn, RECALL, WORKSPACE, "k1", "{}");
    let found = plan(&store);
    let expected = [
        format!("{RECALL}/{}", row_key(WORKSPACE, "bad")),
        format!("{BACKUPS}/{}", row_key(WORKSPACE, "list")),
    ];
    assert_eq!(found.failures, expected);
    assert_eq!(apply(&store).short_term_entries, 1);
    assert_eq!(rows(&conn).len(), 3);
}

#[test]
fn a_row_that_changed_since_the_plan_stops_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    put(&conn, RECALL, WORKSPACE, "k1", "{}");
    put(&conn, RECALL, WORKSPACE, "k2", "{}");
    let old = plan(&store);
    conn.execute(
        "UPDATE plugin_state_entries SET value_json = value_json || ' ' WHERE entry_key = ?1",
        [row_key(WORKSPACE, "k2")],
    )
    .unwrap();
    assert!(matches!(
        store.apply_state(&old, NOW).unwrap_err(),
        Error::LineageChanged
    ));
    assert_eq!(rows(&conn).len(), 2);
    conn.execute(
        "DELETE FROM plugin_state_entries WHERE entry_key = ?1",
        [row_key(WORKSPACE, "k2")],
    )
    .unwrap();
    assert_eq!(old.counts.short_term_entries, 2);
    assert_eq!(
        store.apply_state(&old, NOW).unwrap().short_term_entries,
        1,
        "measured, not planned"
    );
}

#[test]
fn nothing_of_a_removed_row_stays_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    for number in 0..200 {
        let key = if number % 2 == 0 {
            format!("keep{number}")
        } else {
            format!("drop{number}")
        };
        let snippet = if number % 2 == 0 {
            "plain"
        } else {
            "sessions/main/gone violetmongoose"
        };
        put(
            &conn,
            RECALL,
            WORKSPACE,
            &key,
            &json!({"key": key, "path": "p", "snippet": snippet.repeat(20)}).to_string(),
        );
    }
    drop(conn);
    assert!(hits(folder.path(), b"violetmongoose") > 0);
    assert_eq!(apply(&store).short_term_entries, 100);
    store.vacuum().unwrap();
    assert!(store.checkpoint(1000).unwrap());
    assert_eq!(hits(folder.path(), b"violetmongoose"), 0);
}

#[test]
fn a_deletion_overwrites_what_it_frees() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    put(
        &conn,
        RECALL,
        WORKSPACE,
        "k1",
        r#"{"snippet":"violetmongoose"}"#,
    );
    conn.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    drop(conn);
    assert_eq!(hits(folder.path(), b"violetmongoose"), 1);
    assert_eq!(apply(&store).short_term_entries, 1);
    assert!(store.checkpoint(1000).unwrap());
    assert_eq!(hits(folder.path(), b"violetmongoose"), 0);
}

#[test]
fn a_database_without_entries_has_nothing_to_plan() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    conn.execute_batch("DROP TABLE plugin_state_entries")
        .unwrap();
    assert_eq!(plan(&store).counts, StateCounts::default());
    assert!(store.observed_writes(WORKSPACE).unwrap().is_empty());
}

#[test]
fn observed_writes_are_read_strictly() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    let hash = "ab".repeat(32);
    let good = json!({"version": 1, "workspaceKey": WORKSPACE, "relativePath": "memory/a.md", "fileHash": hash,
        "originClass": "agent", "observedAt": NOW, "sessionId": "s", "reservationId": "r"});
    let put = |row_key: &str, value: &Value| {
        conn.execute(
            "INSERT INTO plugin_state_entries VALUES ('core:memory-artifact-provenance', 'workspace-files', ?1, ?2, 0, NULL)",
            params![row_key, value.to_string()],
        )
        .unwrap();
    };
    put(&row_key(WORKSPACE, "memory/a.md"), &good);
    let damage = [
        ("version", json!(2)),
        ("workspaceKey", json!(OTHER)),
        ("fileHash", json!("ab")),
        ("originClass", json!("owner")),
        ("observedAt", json!(1.5)),
        ("observedAt", json!(9_007_199_254_740_992_i64)),
        ("sessionId", json!(7)),
        ("reservationId", json!("")),
        ("relativePath", json!("memory/another.md")),
    ];
    for (number, (member, value)) in damage.iter().enumerate() {
        let path = format!("memory/{number}.md");
        let mut bad = good.clone();
        bad["relativePath"] = json!(path);
        bad[*member] = value.clone();
        put(&row_key(WORKSPACE, &path), &bad);
    }
    put(&row_key(OTHER, "memory/a.md"), &good);
    let found = store.observed_writes(WORKSPACE).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].relative_path, "memory/a.md");
    assert_eq!(
        (
            found[0].session_id.as_deref(),
            found[0].session_key.as_deref()
        ),
        (Some("s"), None)
    );
    assert_eq!(
        (found[0].observed_at, found[0].origin_class.as_str()),
        (NOW, "agent")
    );
}
