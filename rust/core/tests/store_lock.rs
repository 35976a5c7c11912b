//! The workspace lock.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod store_support;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use cenotaph_core::store::lock::own_start;
use cenotaph_core::store::{Access, Store};
use cenotaph_core::{Error, Result};
use rusqlite::{Connection, params};
use serde_json::{Value, json};
use store_support::*;

const KEY: &str = "3333333333333333333333333333333333333333333333333333333333333333";

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

fn now_ms() -> i64 {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

fn own(uuid: &str) -> String {
    format!("{}:{uuid}", std::process::id())
}

fn take(store: &Store, owner: &str, wait_ms: u32) -> Result<()> {
    store.lock_workspace(
        KEY,
        owner,
        own_start(),
        now_ms(),
        wait_ms,
        &AtomicBool::new(false),
    )
}

fn put(conn: &Connection, value: &Value) {
    conn.execute(
        "INSERT OR REPLACE INTO plugin_state_entries VALUES ('memory-core', 'short-term-locks', ?1, ?2, 0, NULL)",
        params![KEY, value.to_string()],
    )
    .unwrap();
}

fn row(conn: &Connection) -> Option<Value> {
    let sql = "SELECT value_json FROM plugin_state_entries WHERE namespace = 'short-term-locks'";
    texts(conn, sql)
        .first()
        .map(|json| serde_json::from_str(json).unwrap())
}

/// A process that lives until it is killed.
struct Sleeper(Child);

impl Sleeper {
    fn start() -> Self {
        let mut command = Command::new("sleep");
        command
            .arg("600")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn the_row_is_the_hosts() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    let owner = own("u1");
    store
        .lock_workspace(KEY, &owner, Some(12_345.0), NOW, 0, &AtomicBool::new(false))
        .unwrap();
    let sql = "SELECT plugin_id || ' ' || namespace || ' ' || entry_key || ' ' || value_json FROM plugin_state_entries";
    let value = format!(r#"{{"owner":"{owner}","acquiredAt":{NOW},"ownerStartTime":12345}}"#);
    assert_eq!(
        texts(&conn, sql),
        [format!("memory-core short-term-locks {KEY} {value}")]
    );
    assert!(!store.unlock_workspace(KEY, &own("u2")).unwrap());
    assert!(store.unlock_workspace(KEY, &owner).unwrap());
    assert!(row(&conn).is_none());
    assert!(!store.unlock_workspace(KEY, &owner).unwrap());
}

#[test]
fn a_living_owner_is_waited_for_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    let child = Sleeper::start();
    let owner = format!("{}:u", child.id());
    // Even an old lock: the owner began before it took it.
    std::thread::sleep(Duration::from_millis(20));
    put(&conn, &json!({"owner": owner, "acquiredAt": now_ms()}));
    let began = Instant::now();
    let error = take(&store, &own("u1"), 200).unwrap_err();
    assert!(began.elapsed() >= Duration::from_millis(200));
    let expected = format!(
        "Timed out waiting for memory workspace lock at plugin-state:memory-core/short-term-locks/{KEY} (held by {owner})"
    );
    assert_eq!(error.to_string(), expected);
    drop(child);
    take(&store, &own("u1"), 0).unwrap();
}

#[test]
fn a_lock_of_our_own_process_is_not_taken_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _conn) = state(folder.path());
    take(&store, &own("u1"), 0).unwrap();
    assert!(matches!(
        take(&store, &own("u2"), 60).unwrap_err(),
        Error::Locked(_)
    ));
}

#[test]
fn a_released_lock_is_taken_while_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _conn) = state(folder.path());
    let owner = own("u1");
    take(&store, &owner, 0).unwrap();
    let path = store.path().to_path_buf();
    let waiter = std::thread::spawn(move || {
        let second = Store::open_state(&path, Access::Write, BUSY)
            .unwrap()
            .unwrap();
        take(&second, &own("u2"), 5_000)
    });
    std::thread::sleep(Duration::from_millis(120));
    assert!(store.unlock_workspace(KEY, &owner).unwrap());
    waiter.join().unwrap().unwrap();
}

#[test]
fn waiting_can_be_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _conn) = state(folder.path());
    take(&store, &own("u1"), 0).unwrap();
    let cancel = AtomicBool::new(false);
    let began = Instant::now();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(60));
            cancel.store(true, Ordering::Relaxed);
        });
        store
            .lock_workspace(KEY, &own("u2"), None, now_ms(), 60_000, &cancel)
            .unwrap_err()
    });
    assert!(matches!(error, Error::Interrupted));
    assert!(began.elapsed() < Duration::from_secs(10));
}

/// V22: after a kill the next run does not wait.
#[test]
fn v22_the_lock_of_a_dead_process_is_taken_over_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    let child = Sleeper::start();
    let owner = format!("{}:u", child.id());
    drop(child);
    put(&conn, &json!({"owner": owner, "acquiredAt": now_ms()}));
    take(&store, &own("u1"), 0).unwrap();
    assert_eq!(row(&conn).unwrap()["owner"], own("u1"));
}

#[test]
fn v22_a_reused_process_id_is_told_by_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    let child = Sleeper::start();
    let owner = format!("{}:u", child.id());
    // Taken long before this process of the same id began; first with the start time that proves the owner lives.
    let line = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let start: f64 = line
        .rsplit_once(')')
        .unwrap()
        .1
        .split_whitespace()
        .nth(19)
        .unwrap()
        .parse()
        .unwrap();
    put(
        &conn,
        &json!({"owner": owner, "acquiredAt": now_ms() - 3_600_000, "ownerStartTime": start}),
    );
    assert!(take(&store, &own("u1"), 50).is_err());
    put(
        &conn,
        &json!({"owner": owner, "acquiredAt": now_ms() - 3_600_000, "ownerStartTime": start - 500.0}),
    );
    take(&store, &own("u1"), 0).unwrap();
    put(
        &conn,
        &json!({"owner": owner, "acquiredAt": now_ms() - 3_600_000}),
    );
    take(&store, &own("u1"), 0).unwrap();
    drop(child);
}

#[test]
fn an_owner_that_cannot_be_made_out_holds_for_a_minute() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = state(folder.path());
    for owner in ["nobody", "", "-1:u"] {
        put(
            &conn,
            &json!({"owner": owner, "acquiredAt": now_ms() - 58_000}),
        );
        assert!(take(&store, &own("u1"), 50).is_err(), "{owner}");
        put(
            &conn,
            &json!({"owner": owner, "acquiredAt": now_ms() - 61_000}),
        );
        take(&store, &own("u1"), 0).unwrap();
    }
    put(&conn, &json!("damaged"));
    take(&store, &own("u1"), 0).unwrap();
}

#[test]
fn two_processes_never_hold_it_together() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _conn) = state(folder.path());
    let path = store.path();
    let inside = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let inside = &inside;
            scope.spawn(move || {
                let store = Store::open_state(path, Access::Write, 10_000)
                    .unwrap()
                    .unwrap();
                for round in 0..5 {
                    let owner = own(&format!("{thread}-{round}"));
                    take(&store, &owner, 30_000).unwrap();
                    assert!(!inside.swap(true, Ordering::SeqCst));
                    std::thread::sleep(Duration::from_millis(2));
                    inside.store(false, Ordering::SeqCst);
                    assert!(store.unlock_workspace(KEY, &owner).unwrap());
                }
            });
        }
    });
}

#[test]
fn the_smallest_shared_database_can_be_locked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/openclaw.sqlite");
    assert!(
        Store::open_state(&path, Access::Write, BUSY)
            .unwrap()
            .is_none()
    );
    Store::create_state_minimal(&path).unwrap();
    let store = Store::open_state(&path, Access::Write, BUSY)
        .unwrap()
        .unwrap();
    take(&store, &own("u"), 0).unwrap();
    assert!(store.unlock_workspace(KEY, &own("u")).unwrap());
}
