//! The memory index: what a plan takes, that the purge takes the same, and that nothing of it stays in the files.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod store_support;

use std::collections::HashSet;
use std::path::Path;

use cenotaph_core::Error;
use cenotaph_core::store::{Access, IndexAsk, IndexCounts, IndexPlan, Store};
use rusqlite::Connection;
use store_support::*;

/// What the tests ask for; the closures of [`IndexAsk`] follow from it.
#[derive(Default)]
struct Selection {
    named: &'static str,
    excluded: &'static str,
    text: &'static str,
    changed: HashSet<String>,
    deleted: HashSet<String>,
    external: HashSet<String>,
    none: bool,
}

fn contains(text: &[u8], needle: &str) -> bool {
    !needle.is_empty() && memchr::memmem::find(text, needle.as_bytes()).is_some()
}

impl Selection {
    fn plan(&self, store: &Store) -> IndexPlan {
        let ask = IndexAsk {
            refs_named: &|path| contains(path, self.named),
            excluded_named: &|path| contains(path, self.excluded),
            changed_paths: &self.changed,
            deleted_corpus_paths: &self.deleted,
            external_paths: &self.external,
            text_matches: &|text| {
                assert!(!contains(text, "transcript"), "a transcript is no memory");
                contains(text, self.text)
            },
            any_selected: !self.none,
        };
        store.plan_index(&ask).unwrap()
    }
}

fn set(items: &[&str]) -> HashSet<String> {
    items.iter().map(|&item| item.to_owned()).collect()
}

fn purge(store: &Store, plan: &IndexPlan) -> IndexCounts {
    let digest = store.lineage("main", &[], &[]).unwrap().digest;
    store.purge_index("main", plan, &[], digest, &[]).unwrap()
}

fn open(path: &Path) -> Store {
    Store::open_agent(path, "main", Access::Write, BUSY)
        .unwrap()
        .unwrap()
}

/// Two chunks each of two memory files, and four transcripts.
fn fill(conn: &Connection) {
    for (path, text) in [
        ("MEMORY.md", "alpha secret"),
        ("MEMORY.md", "beta"),
        ("memory/a.md", "gamma"),
        ("memory/a.md", "delta"),
    ] {
        Chunk {
            path,
            text,
            ..Chunk::default()
        }
        .insert(conn);
    }
    for (path, text, class, kind) in [
        (
            "sessions/main/live.jsonl",
            "transcript live",
            "owner",
            "interactive",
        ),
        (
            "sessions/main/cron.jsonl",
            "transcript cron",
            "owner",
            "cron",
        ),
        (
            "sessions/main/beat.jsonl",
            "transcript beat",
            "owner",
            "heartbeat",
        ),
        (
            "sessions/main/sys.jsonl",
            "transcript sys",
            "system",
            "interactive",
        ),
        (
            "sessions/main/sub.jsonl",
            "transcript sub",
            "untrusted",
            "subagent",
        ),
        (
            "sessions/main/dream.jsonl",
            "transcript dream",
            "agent",
            "unknown",
        ),
    ] {
        Chunk {
            path,
            text,
            class,
            kind,
            source: "sessions",
            ..Chunk::default()
        }
        .insert(conn);
        source(conn, path, "sessions");
    }
    for path in [
        "MEMORY.md",
        "memory/a.md",
        "memory/.dreams/session-corpus/x.md",
    ] {
        source(conn, path, "memory");
    }
}

fn filled(folder: &Path, parts: Parts) -> (Store, Connection) {
    let path = folder.join("agent.sqlite");
    let conn = host_agent(&path, "main", parts);
    fill(&conn);
    if parts == Parts::NoFullTextTriggers {
        conn.execute_batch(
            "INSERT INTO memory_index_chunks_fts (rowid, text, id) SELECT chunk_rowid, text, id FROM memory_index_chunks;
             INSERT INTO memory_index_paths_fts (rowid, path) SELECT id, path FROM memory_index_sources",
        )
        .unwrap();
    }
    (open(&path), conn)
}

fn chunks(conn: &Connection) -> Vec<String> {
    texts(
        conn,
        "SELECT text FROM memory_index_chunks ORDER BY chunk_rowid",
    )
}

/// Everything that hangs on a chunk or source is there for the survivors and for nothing else.
fn assert_consistent(conn: &Connection) {
    for (left, right) in [
        (
            "SELECT id FROM memory_index_chunks_vec",
            "SELECT id FROM memory_index_chunks",
        ),
        (
            "SELECT chunk_id FROM memory_index_chunk_provenance",
            "SELECT id FROM memory_index_chunks",
        ),
        (
            "SELECT chunk_id FROM memory_index_chunk_recall_metadata",
            "SELECT id FROM memory_index_chunks",
        ),
        (
            "SELECT hash FROM memory_embedding_cache",
            "SELECT DISTINCT hash FROM memory_index_chunks",
        ),
        (
            "SELECT CAST(rowid AS TEXT) FROM memory_index_chunks_fts",
            "SELECT CAST(chunk_rowid AS TEXT) FROM memory_index_chunks",
        ),
        (
            "SELECT path FROM memory_index_paths_fts",
            "SELECT path FROM memory_index_sources",
        ),
    ] {
        assert_eq!(
            texts(conn, &format!("{left} ORDER BY 1")),
            texts(conn, &format!("{right} ORDER BY 1")),
            "{left}"
        );
    }
    for table in ["memory_index_chunks_fts", "memory_index_paths_fts"] {
        conn.execute_batch(&format!(
            "INSERT INTO {table}({table}, rank) VALUES ('integrity-check', 1)"
        ))
        .unwrap();
    }
    assert_eq!(texts(conn, "PRAGMA integrity_check"), ["ok"]);
    assert_eq!(
        number(conn, "SELECT count(*) FROM pragma_foreign_key_check"),
        0
    );
}

fn counts(chunks: u64, sources: u64) -> IndexCounts {
    IndexCounts {
        chunks,
        sources,
        fts_rows: chunks,
        vector_rows: chunks,
        embedding_cache_rows: chunks,
        orphan_rows: 0,
    }
}

#[test]
fn a_selected_session_takes_its_transcript_and_sweeps_internal_ones() {
    for parts in [Parts::All, Parts::NoFullTextTriggers] {
        let folder = tempfile::tempdir().unwrap();
        let (store, conn) = filled(folder.path(), parts);
        let selection = Selection {
            named: "live",
            excluded: "dream",
            ..Selection::default()
        };
        let plan = selection.plan(&store);
        assert_eq!(plan.counts, counts(5, 5));
        assert_eq!(purge(&store, &plan), plan.counts);
        assert_eq!(
            chunks(&conn),
            ["alpha secret", "beta", "gamma", "delta", "transcript sub"]
        );
        assert_eq!(
            number(&conn, "SELECT count(*) FROM memory_index_sources"),
            4
        );
        assert_consistent(&conn);
    }
}

#[test]
fn text_takes_the_whole_file_and_leaves_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = filled(folder.path(), Parts::All);
    let selection = Selection {
        text: "secret",
        changed: set(&["memory/a.md"]),
        ..Selection::default()
    };
    let plan = selection.plan(&store);
    assert_eq!(plan.counts, counts(7, 3));
    assert_eq!(purge(&store, &plan), plan.counts);
    assert_eq!(
        chunks(&conn),
        ["transcript live", "transcript sub", "transcript dream"]
    );
    let kept = texts(
        &conn,
        "SELECT path FROM memory_index_sources WHERE source = 'memory' ORDER BY id",
    );
    assert_eq!(
        kept,
        [
            "MEMORY.md",
            "memory/a.md",
            "memory/.dreams/session-corpus/x.md"
        ]
    );
    assert_consistent(&conn);
}

/// V18: a file that is not ours to edit keeps what does not match.
#[test]
fn v18_of_an_external_file_only_matching_chunks_go() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = filled(folder.path(), Parts::All);
    let selection = Selection {
        text: "secret",
        external: set(&["MEMORY.md"]),
        ..Selection::default()
    };
    let plan = selection.plan(&store);
    assert_eq!(plan.counts, counts(4, 3));
    assert_eq!(purge(&store, &plan), plan.counts);
    assert_eq!(chunks(&conn)[..3], ["beta", "gamma", "delta"]);
}

#[test]
fn the_source_of_a_deleted_corpus_file_goes() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = filled(folder.path(), Parts::All);
    let corpus = "memory/.dreams/session-corpus/x.md";
    let selection = Selection {
        deleted: set(&[corpus]),
        ..Selection::default()
    };
    let plan = selection.plan(&store);
    assert_eq!(plan.counts, counts(3, 4));
    assert_eq!(purge(&store, &plan), plan.counts);
    assert!(!texts(&conn, "SELECT path FROM memory_index_sources").contains(&corpus.to_owned()));
    assert_consistent(&conn);
}

#[test]
fn nothing_selected_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = filled(folder.path(), Parts::All);
    cache(&conn, "unused", b"x");
    let selection = Selection {
        none: true,
        ..Selection::default()
    };
    let plan = selection.plan(&store);
    assert_eq!(plan.counts, IndexCounts::default());
    assert_eq!(purge(&store, &plan), IndexCounts::default());
    assert_eq!(chunks(&conn).len(), 10);
    assert_eq!(
        number(&conn, "SELECT count(*) FROM memory_embedding_cache"),
        11
    );
}

/// V12: embeddings that were paid for and are still in use stay.
#[test]
fn v12_cached_embeddings_of_survivors_stay() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = filled(folder.path(), Parts::All);
    // The same text stands in a file that goes and in one that stays; one row belongs to no chunk.
    Chunk {
        path: "memory/b.md",
        text: "beta",
        ..Chunk::default()
    }
    .insert(&conn);
    cache(&conn, "unused", b"x");
    let selection = Selection {
        changed: set(&["MEMORY.md"]),
        ..Selection::default()
    };
    let plan = selection.plan(&store);
    // Two chunks of the file and three internal ones; `beta` stays, the unused row goes.
    assert_eq!(
        plan.counts,
        IndexCounts {
            embedding_cache_rows: 5,
            ..counts(5, 3)
        }
    );
    assert_eq!(purge(&store, &plan), plan.counts);
    let beta = sha256_hex(b"beta");
    assert!(texts(&conn, "SELECT hash FROM memory_embedding_cache").contains(&beta));
    assert_consistent(&conn);
}

#[test]
fn rows_that_belong_to_no_chunk_go_along() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = filled(folder.path(), Parts::All);
    conn.execute_batch(
        "INSERT INTO memory_index_chunks_fts (rowid, text) VALUES (900, 'stray secret');
         INSERT INTO memory_index_paths_fts (rowid, path) VALUES (901, 'stray/path');
         INSERT INTO memory_index_chunks_vec (id, embedding) VALUES ('stray', '[1,2,3,4]');
         PRAGMA foreign_keys = OFF;
         INSERT INTO memory_index_chunk_recall_metadata VALUES ('stray', 1, 'stray trigger', NULL)",
    )
    .unwrap();
    let plan = Selection::default().plan(&store);
    assert_eq!(
        plan.counts,
        IndexCounts {
            orphan_rows: 3,
            ..counts(3, 3)
        }
    );
    assert_eq!(purge(&store, &plan), plan.counts);
    assert_consistent(&conn);
}

#[test]
fn a_second_purge_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _conn) = filled(folder.path(), Parts::All);
    let selection = Selection {
        named: "live",
        ..Selection::default()
    };
    let plan = selection.plan(&store);
    purge(&store, &plan);
    assert_eq!(purge(&store, &plan), IndexCounts::default());
    assert_eq!(selection.plan(&store).counts, IndexCounts::default());
}

#[test]
fn tables_that_are_absent_count_as_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bare.sqlite");
    drop(host_agent(&path, "main", Parts::Bare));
    let plan = Selection::default().plan(&open(&path));
    assert_eq!(purge(&open(&path), &plan), IndexCounts::default());

    let (store, conn) = filled(folder.path(), Parts::All);
    conn.execute_batch(
        "DROP TABLE memory_index_chunks_vec; DROP TABLE memory_embedding_cache; DROP TABLE memory_index_state;
         DROP TABLE memory_index_chunk_provenance; DROP TABLE memory_index_chunk_recall_metadata;
         DROP TRIGGER memory_index_chunks_fts_after_delete; DROP TABLE memory_index_chunks_fts;
         DROP TRIGGER memory_index_chunks_revision_after_delete; DROP TRIGGER memory_index_paths_fts_after_delete;
         DROP TRIGGER memory_index_sources_revision_after_delete; DROP TABLE memory_index_sources",
    )
    .unwrap();
    let plan = Selection {
        named: "live",
        ..Selection::default()
    }
    .plan(&store);
    assert_eq!(
        plan.counts,
        IndexCounts {
            chunks: 1,
            ..IndexCounts::default()
        }
    );
    assert_eq!(purge(&store, &plan), plan.counts);
    assert_eq!(chunks(&conn).len(), 9);
}

#[test]
fn a_plan_is_void_once_somebody_else_indexed() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = filled(folder.path(), Parts::All);
    let selection = Selection {
        named: "live",
        ..Selection::default()
    };
    let plan = selection.plan(&store);
    let digest = store.lineage("main", &[], &[]).unwrap().digest;
    store.bury("main", &[], NOW, digest, &[]).unwrap();
    Chunk {
        path: "memory/new.md",
        text: "new",
        ..Chunk::default()
    }
    .insert(&conn);
    let error = store
        .purge_index("main", &plan, &[], digest, &[])
        .unwrap_err();
    assert!(matches!(error, Error::LineageChanged));
    assert_eq!(chunks(&conn).len(), 11);
    let plan = selection.plan(&store);
    // What the store did itself does not count.
    store.bury("main", &[], NOW, digest, &[]).unwrap();
    assert_eq!(purge(&store, &plan), plan.counts);
}

#[test]
fn a_plan_of_a_reader_serves_the_writer() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _conn) = filled(folder.path(), Parts::All);
    let reader = Store::open_agent(store.path(), "main", Access::Read, BUSY)
        .unwrap()
        .unwrap();
    let plan = Selection {
        named: "live",
        ..Selection::default()
    }
    .plan(&reader);
    let digest = store.lineage("main", &[], &[]).unwrap().digest;
    store.bury("main", &[], NOW, digest, &[]).unwrap();
    assert_eq!(purge(&store, &plan), plan.counts);
}

#[test]
fn a_changed_lineage_purges_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = filled(folder.path(), Parts::All);
    let ids = strings(&["s1"]);
    let plan = Selection {
        named: "live",
        ..Selection::default()
    }
    .plan(&store);
    let digest = store.lineage("main", &ids, &[]).unwrap().digest;
    origin(&conn, "late", "main", "s1");
    let error = store
        .purge_index("main", &plan, &ids, digest, &[])
        .unwrap_err();
    assert!(matches!(error, Error::LineageChanged));
    assert_eq!(chunks(&conn).len(), 10);
}

#[test]
fn the_revision_grows_by_one_for_each_chunk_and_source() {
    let folder = tempfile::tempdir().unwrap();
    let (store, conn) = filled(folder.path(), Parts::All);
    let before = number(&conn, "SELECT revision FROM memory_index_state");
    let plan = Selection {
        named: "live",
        ..Selection::default()
    }
    .plan(&store);
    purge(&store, &plan);
    assert_eq!(
        number(&conn, "SELECT revision FROM memory_index_state"),
        before + 8
    );
}
