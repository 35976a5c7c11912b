//! V16: after a purge no file of the database holds what was purged.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod store_support;

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;

use aho_corasick::AhoCorasick;
use cenotaph_core::store::{Access, IndexAsk, IndexCounts, Store};
use rusqlite::Connection;
use store_support::*;

/// A word that stands in one chunk alone. Full-text segments leave out what a word shares with the one before it, so
/// the second half is what a search of raw bytes looks for.
fn word(chunk: u32) -> String {
    sha256_hex(format!("word {chunk}").as_bytes())[..24].to_owned()
}

fn vector(chunk: u32) -> [f32; 4] {
    let bits = |salt: u32| {
        f32::from_bits(0x3f80_0000 | (chunk.wrapping_mul(2_654_435_761) ^ salt) & 0x007f_ffff)
    };
    [bits(1), bits(2), bits(3), bits(4)]
}

fn path_of(chunk: u32, doomed: bool) -> String {
    if doomed {
        format!("sessions/main/gone-{}.jsonl", word(chunk))
    } else {
        format!("memory/{}.md", chunk / 8)
    }
}

/// Chunks in the order and with the commits of an indexer; every `every`th will be purged.
fn fill(conn: &Connection, count: u32, every: u32, words: u32) {
    conn.execute_batch("BEGIN").unwrap();
    for chunk in 0..count {
        let doomed = chunk % every == 0;
        let mut text = String::new();
        for at in 0..words {
            write!(
                text,
                "w{} ",
                chunk.wrapping_mul(31).wrapping_add(at * at) % 997
            )
            .unwrap();
        }
        text.push_str(&word(chunk));
        let path = path_of(chunk, doomed);
        let origin = if doomed { "sessions" } else { "memory" };
        Chunk {
            path: &path,
            source: origin,
            text: &text,
            vector: vector(chunk),
            ..Chunk::default()
        }
        .insert(conn);
        if doomed {
            source(conn, &path, "sessions");
        }
        if chunk % 100 == 99 {
            conn.execute_batch("COMMIT; BEGIN").unwrap();
        }
    }
    conn.execute_batch("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
}

/// How many of the needles of these chunks stand somewhere below `folder`.
fn residue(folder: &Path, chunks: &[u32]) -> usize {
    let needles: Vec<Vec<u8>> = chunks
        .iter()
        .flat_map(|&chunk| {
            let floats = vector(chunk)
                .iter()
                .take(2)
                .flat_map(|x| x.to_le_bytes())
                .collect();
            let doubles = vector(chunk)
                .iter()
                .take(2)
                .flat_map(|&x| f64::from(x).to_le_bytes())
                .collect();
            [word(chunk).as_bytes()[12..].to_vec(), floats, doubles]
        })
        .collect();
    let search = AhoCorasick::new(&needles).unwrap();
    let mut found = HashSet::new();
    for (_, _, content) in snapshot(folder).values() {
        found.extend(
            search
                .find_overlapping_iter(content)
                .map(|hit| hit.pattern()),
        );
    }
    found.len()
}

/// Needles in the blocks that the full-text index uses.
fn residue_in_segments(conn: &Connection, chunks: &[u32]) -> usize {
    let mut blocks = Vec::new();
    for table in [
        "memory_index_chunks_fts_data",
        "memory_index_paths_fts_data",
    ] {
        let mut statement = conn.prepare(&format!("SELECT block FROM {table}")).unwrap();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            blocks.extend_from_slice(row.get_ref(0).unwrap().as_blob().unwrap());
        }
    }
    let holds =
        |chunk: &&u32| memchr::memmem::find(&blocks, &word(**chunk).as_bytes()[12..]).is_some();
    chunks.iter().filter(holds).count()
}

fn purge(store: &Store) -> IndexCounts {
    let none = HashSet::new();
    let ask = IndexAsk {
        refs_named: &|path| memchr::memmem::find(path, b"gone").is_some(),
        excluded_named: &|_| false,
        changed_paths: &none,
        deleted_corpus_paths: &none,
        external_paths: &none,
        text_matches: &|_| false,
        any_selected: true,
    };
    let plan = store.plan_index(&ask).unwrap();
    let digest = store.lineage("main", &[], &[]).unwrap().digest;
    let purged = store.purge_index("main", &plan, &[], digest, &[]).unwrap();
    assert_eq!(purged, plan.counts);
    purged
}

fn open(path: &Path) -> Store {
    Store::open_agent(path, "main", Access::Write, BUSY)
        .unwrap()
        .unwrap()
}

const COUNT: u32 = 3000;
const EVERY: u32 = 10;

fn doomed() -> Vec<u32> {
    (0..COUNT).step_by(EVERY as usize).collect()
}

fn kept() -> Vec<u32> {
    (0..COUNT).filter(|chunk| chunk % EVERY != 0).collect()
}

fn assert_clean(folder: &Path, path: &Path) {
    let store = open(path);
    // A few needles lie across two pages.
    assert!(
        residue(folder, &doomed()) >= doomed().len() * 29 / 10,
        "the needles are there at first"
    );
    assert_eq!(purge(&store).chunks, doomed().len() as u64);
    assert!(store.checkpoint(1000).unwrap());
    let conn = host_connection(path);
    assert_eq!(residue_in_segments(&conn, &doomed()), 0);
    drop(conn);
    store.vacuum().unwrap();
    assert!(store.checkpoint(1000).unwrap());
    assert_eq!(residue(folder, &doomed()), 0);
    assert_eq!(hits(folder, b"gone-"), 0);
    assert!(
        residue(folder, &kept()) >= kept().len() * 29 / 10,
        "survivors are whole"
    );
    store.close().unwrap();
    assert_eq!(residue(folder, &doomed()), 0);
}

#[test]
fn v16_nothing_stays_in_a_database_of_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    fill(&host_agent(&path, "main", Parts::All), COUNT, EVERY, 60);
    assert_clean(folder.path(), &path);
}

/// Rows that the host deletes one by one, in the order of an indexer: merges of segments come between.
fn delete_as_host(conn: &Connection, chunks: &[u32]) {
    conn.execute_batch("PRAGMA foreign_keys = ON").unwrap();
    for &chunk in chunks {
        let path = path_of(chunk, true);
        conn.execute("DELETE FROM memory_index_chunks_vec WHERE id IN (SELECT id FROM memory_index_chunks WHERE path = ?1)", [&path])
            .unwrap();
        for table in ["memory_index_chunks", "memory_index_sources"] {
            conn.execute(&format!("DELETE FROM {table} WHERE path = ?1"), [&path])
                .unwrap();
        }
    }
}

#[test]
fn v16_a_purge_takes_words_that_the_host_left_along() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    let conn = host_agent(&path, "main", Parts::All);
    fill(&conn, COUNT, EVERY, 60);
    delete_as_host(&conn, &doomed()[1..]);
    assert!(residue_in_segments(&conn, &doomed()) > 200);
    // What `optimize` makes of it is the reason for rebuilding.
    conn.execute_batch(
        "INSERT INTO memory_index_chunks_fts(memory_index_chunks_fts) VALUES ('optimize')",
    )
    .unwrap();
    drop(conn);
    let store = open(&path);
    assert_eq!(purge(&store).chunks, 1);
    let conn = host_connection(&path);
    assert_eq!(residue_in_segments(&conn, &doomed()), 0);
    drop(conn);
    store.vacuum().unwrap();
    assert!(store.checkpoint(1000).unwrap());
    assert_eq!(residue(folder.path(), &doomed()), 0);
}

#[test]
fn v16_words_that_the_host_left_go_without_a_purge_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    let conn = host_agent(&path, "main", Parts::All);
    fill(&conn, COUNT, EVERY, 60);
    delete_as_host(&conn, &doomed());
    drop(conn);
    let store = open(&path);
    store.rebuild_full_text().unwrap();
    let conn = host_connection(&path);
    assert_eq!(residue_in_segments(&conn, &doomed()), 0);
    conn.execute_batch("INSERT INTO memory_index_chunks_fts(memory_index_chunks_fts, rank) VALUES ('integrity-check', 1)").unwrap();
}

#[test]
fn v16_nothing_stays_in_a_native_database() {
    let folder = tempfile::tempdir().unwrap();
    Store::create_native(folder.path(), "main", NOW).unwrap();
    let path = folder
        .path()
        .join("agents/main/agent/openclaw-agent.sqlite");
    let conn = host_connection(&path);
    conn.execute_batch("CREATE VIRTUAL TABLE memory_index_chunks_vec USING vec0(id TEXT PRIMARY KEY, embedding FLOAT[4])").unwrap();
    fill(&conn, COUNT, EVERY, 60);
    drop(conn);
    assert_clean(folder.path(), &path);
}

#[test]
fn a_deletion_alone_would_leave_the_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    let conn = host_agent(&path, "main", Parts::All);
    fill(&conn, COUNT, EVERY, 60);
    conn.execute_batch("PRAGMA secure_delete = ON; DELETE FROM memory_index_chunks WHERE source = 'sessions'; VACUUM").unwrap();
    assert_eq!(
        residue_in_segments(&conn, &doomed()),
        doomed().len(),
        "the check sees what it is there to see"
    );
}

/// Short chunks in bulk, every one of which goes.
fn purge_many(count: u32) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sqlite");
    let conn = host_agent(&path, "main", Parts::All);
    conn.execute_batch(&format!(
        "BEGIN;
         CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {count}) SELECT i FROM n;
         INSERT INTO memory_index_chunks SELECT i, hex(randomblob(32)), 'sessions/main/gone-' || i, 'sessions', 1, 1,
             hex(randomblob(32)), 'm', 'word' || i || ' w' || (i % 997) || ' w' || (i % 313), zeroblob(32), 0 FROM n;
         INSERT INTO memory_index_sources SELECT i, 'sessions/main/gone-' || i, 'sessions', 'h', 0, 0 FROM n;
         INSERT INTO memory_index_chunks_vec (id, embedding) SELECT id, '[1,2,3,4]' FROM memory_index_chunks;
         INSERT INTO memory_index_chunk_provenance SELECT id, 'owner', 'interactive', 0, NULL FROM memory_index_chunks;
         INSERT INTO memory_embedding_cache SELECT 'p', 'm', 'k', hash, zeroblob(32), 4, 0 FROM memory_index_chunks;
         COMMIT"
    ))
    .unwrap();
    let store = open(&path);
    let began = std::time::Instant::now();
    let count = u64::from(count);
    let expected = IndexCounts {
        chunks: count,
        sources: count,
        fts_rows: count,
        vector_rows: count,
        embedding_cache_rows: count,
        orphan_rows: 0,
    };
    assert_eq!(purge(&store), expected);
    assert!(began.elapsed().as_secs() < 120, "{:?}", began.elapsed());
    for table in [
        "chunks",
        "chunks_fts",
        "chunks_vec",
        "chunk_provenance",
        "sources",
        "paths_fts",
    ] {
        assert_eq!(
            number(&conn, &format!("SELECT count(*) FROM memory_index_{table}")),
            0
        );
    }
}

#[test]
fn ten_thousand_chunks_go_at_once() {
    purge_many(10_000);
}

#[test]
fn a_hundred_thousand_chunks_go_at_once() {
    purge_many(100_000);
}
