//! Receipts are chained, written with what they tell of, and no link can be altered unseen.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use cenotaph_core::store::{Access, Receipt, Store};

fn native(folder: &Path) -> Store {
    Store::create_native(folder, "main", 1).unwrap();
    let path = folder.join("agents/main/agent/openclaw-agent.sqlite");
    Store::open_agent(&path, "main", Access::Write, 1000)
        .unwrap()
        .unwrap()
}

fn receipt(id: &str) -> Receipt {
    Receipt {
        id: id.to_owned(),
        agent: "main".to_owned(),
        now_ms: 5,
        body: "{\"sessions\":[\"h\"]}".to_owned(),
        shingles: vec![1, 2, 3],
    }
}

fn bury(store: &Store, session: &str) {
    let ids = [session.to_owned()];
    let digest = store.lineage("main", &ids, &[]).unwrap().digest;
    store.bury("main", &ids, 5, digest, &[]).unwrap();
}

#[test]
fn links_follow_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = native(folder.path());
    store.keep_receipt(receipt("one"));
    bury(&store, "a");
    store.complete_receipt("one", "main", "{}", 6).unwrap();
    store.keep_receipt(receipt("two"));
    bury(&store, "b");
    let links = store.receipts().unwrap();
    let told: Vec<_> = links
        .iter()
        .map(|link| (link.seq, link.receipt.as_str(), link.stage.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (1, "one", "begun"),
            (2, "one", "completed"),
            (3, "two", "begun")
        ]
    );
    assert_eq!(links[1].previous, links[0].hash);
    assert_eq!(
        store.receipt_shingles(&["one".to_owned()]).unwrap(),
        [vec![1, 2, 3]]
    );
    assert_eq!(store.check_receipts().unwrap(), None);
}

#[test]
fn a_link_goes_with_the_transaction_that_it_tells_of() {
    let folder = tempfile::tempdir().unwrap();
    let store = native(folder.path());
    store.keep_receipt(receipt("one"));
    let stale = [0; 32];
    store
        .bury("main", &["a".to_owned()], 5, stale, &[])
        .unwrap_err();
    assert_eq!(store.receipts().unwrap(), []);
}

#[test]
fn an_erasure_is_completed_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = native(folder.path());
    store.keep_receipt(receipt("one"));
    bury(&store, "a");
    store.complete_receipt("one", "main", "{}", 6).unwrap();
    store.complete_receipt("one", "main", "{}", 7).unwrap();
    assert_eq!(store.receipts().unwrap().len(), 2);
}

#[test]
fn every_alteration_breaks_the_chain() {
    let damage = [
        ("UPDATE cenotaph_receipts SET body = '[]' WHERE seq = 2", 2),
        (
            "UPDATE cenotaph_receipts SET created_at = 9 WHERE seq = 1",
            1,
        ),
        (
            "UPDATE cenotaph_receipts SET stage = 'begun' WHERE seq = 3",
            3,
        ),
        (
            "UPDATE cenotaph_receipts SET receipt_id = 'x' WHERE seq = 2",
            2,
        ),
        (
            "UPDATE cenotaph_receipts SET agent_id = 'x' WHERE seq = 2",
            2,
        ),
        ("DELETE FROM cenotaph_receipts WHERE seq = 2", 3),
        ("DELETE FROM cenotaph_receipts WHERE seq = 1", 2),
        (
            "UPDATE cenotaph_receipt_shingles SET shingles = x'00' WHERE seq = 1",
            1,
        ),
        ("DELETE FROM cenotaph_receipt_shingles", 1),
        (
            "UPDATE cenotaph_receipts SET hash = previous WHERE seq = 3",
            3,
        ),
    ];
    for (sql, at) in damage {
        let folder = tempfile::tempdir().unwrap();
        let store = native(folder.path());
        store.keep_receipt(receipt("one"));
        bury(&store, "a");
        store.complete_receipt("one", "main", "{}", 6).unwrap();
        store.complete_receipt("zero", "main", "{}", 6).unwrap();
        let other = rusqlite::Connection::open(store.path()).unwrap();
        other.execute_batch(sql).unwrap();
        let found = store.check_receipts().unwrap();
        assert_eq!(found.map(|found| found.seq), Some(at), "{sql}");
    }
}

#[test]
fn a_deletion_of_nothing_adds_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let store = native(folder.path());
    store.keep_receipt(receipt("one"));
    store.delete_origins("main", &["k".to_owned()]).unwrap();
    assert_eq!(store.receipts().unwrap(), []);
}
