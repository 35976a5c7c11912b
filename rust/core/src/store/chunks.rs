//! The memory index: what must go from it, and its removal.

use std::collections::HashSet;

use rusqlite::Connection;

use crate::error::{Error, Result};
use crate::store::fts::{CHUNKS, FullText, PATHS};
use crate::store::origins::Planned;
use crate::store::query::{self, IdTable};
use crate::store::{Kind, Store, scan, tombstones, vec0};

/// Answers yes or no about a path or a text.
pub type Ask<'a> = &'a dyn Fn(&[u8]) -> bool;

/// What a plan of the index needs to know about the selection. Paths are spelled as in the index.
pub struct IndexAsk<'a> {
    /// Does this path name a selected session?
    pub refs_named: Ask<'a>,
    /// Does this path name a session that is never indexed?
    pub excluded_named: Ask<'a>,
    /// Files that are rewritten: all their chunks go, their sources stay.
    pub changed_paths: &'a HashSet<String>,
    /// Corpus files that are deleted: their sources go.
    pub deleted_corpus_paths: &'a HashSet<String>,
    /// Files that are read but not ours to edit: only the chunks that match go.
    pub external_paths: &'a HashSet<String>,
    /// Does this text hold anything that must go? Not called for transcripts, whose text is no memory.
    pub text_matches: Ask<'a>,
    /// Is any session selected? If not, nothing is swept.
    pub any_selected: bool,
}

/// Rows of the index by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexCounts {
    /// Chunks.
    pub chunks: u64,
    /// Sources.
    pub sources: u64,
    /// Full-text rows of those chunks.
    pub fts_rows: u64,
    /// Vectors of those chunks.
    pub vector_rows: u64,
    /// Cached embeddings whose text is in no chunk that stays.
    pub embedding_cache_rows: u64,
    /// Full-text rows and vectors that belonged to no chunk or source at all; they go along.
    pub orphan_rows: u64,
}

/// Rows that must go from the index.
#[derive(Clone, Debug, Default)]
pub struct IndexPlan {
    /// What the purge will remove.
    pub counts: IndexCounts,
    chunk_ids: Vec<String>,
    sources: Vec<i64>,
    /// The revision that the plan was made at, without those that the store added itself.
    revision: Option<i64>,
    /// Was anything selected?
    sweep: bool,
}

const DOOMED: &str = "cenotaph_doomed";
const DOOMED_SOURCES: &str = "cenotaph_doomed_sources";
const DOOMED_CHUNK: &str = "id IN (SELECT id FROM temp.cenotaph_doomed)";
const WITHOUT_CHUNK: &str = "chunk_id NOT IN (SELECT id FROM memory_index_chunks)";
const DOOMED_SOURCE: &str = "id IN (SELECT id FROM temp.cenotaph_doomed_sources)";
/// Embeddings of texts that no chunk outside the doomed has.
const UNUSED_EMBEDDING: &str = "hash NOT IN (SELECT hash FROM memory_index_chunks WHERE id NOT IN (SELECT id FROM temp.cenotaph_doomed))";

impl Store {
    /// One pass over the chunks. Writes nothing.
    pub fn plan_index(&self, ask: &IndexAsk) -> Result<IndexPlan> {
        self.sql(|conn| {
            let tables = Tables::of(conn)?;
            if !tables.chunks || !ask.any_selected {
                return Ok(IndexPlan::default());
            }
            let revision = tombstones::revision(conn)?.map(|now| now - self.own_revisions.get());
            let doomed = scan::doomed(conn, ask, tables.provenance, tables.sources)?;
            let mut plan = IndexPlan {
                counts: IndexCounts::default(),
                chunk_ids: doomed.chunk_ids,
                sources: doomed.sources,
                revision,
                sweep: true,
            };
            let filled = plan.fill(conn)?;
            let counts = planned_counts(conn, &tables, &plan)?;
            drop(filled);
            plan.counts = counts;
            Ok(plan)
        })
    }

    /// Removes what the plan lists, in one transaction. The counts are measured. `ids`, `digest` and `extra_keys` are
    /// those of the lineage.
    ///
    /// # Errors
    /// [`Error::LineageChanged`] when `digest` is not that of the present lineage, or somebody else changed the index
    /// since the plan; nothing is written then.
    pub fn purge_index(
        &self,
        agent: &str,
        plan: &IndexPlan,
        ids: &[String],
        digest: [u8; 32],
        extra_keys: &[String],
    ) -> Result<IndexCounts> {
        let lineage = Planned {
            agent,
            ids,
            extra_keys,
            digest,
        };
        let (counts, revisions) = self.write("index", |conn| {
            self.check_lineage(conn, &lineage)?;
            let purged = self
                .purge(conn, plan)
                .map_err(|error| self.explain(error))?;
            purged.ok_or(Error::LineageChanged)
        })?;
        self.own_revisions.set(self.own_revisions.get() + revisions);
        Ok(counts)
    }

    /// Makes the full-text indexes of the memory anew from their stored rows: for words of rows that somebody else
    /// deleted, which stay in segments for long. A purge that removes anything does the same.
    pub fn rebuild_full_text(&self) -> Result<()> {
        self.write("full-text", |conn| {
            let rebuilt = Tables::of(conn).and_then(|tables| {
                let mut all = tables.full_text();
                all.try_for_each(|table| table.rebuild(conn))
            });
            rebuilt.map_err(|error| self.explain(error))
        })
    }

    /// Counts and the revisions that the deletions added; `None` when the plan is out of date.
    fn purge(
        &self,
        conn: &Connection,
        plan: &IndexPlan,
    ) -> rusqlite::Result<Option<(IndexCounts, i64)>> {
        if !plan.sweep {
            return Ok(Some((IndexCounts::default(), 0)));
        }
        let tables = Tables::of(conn)?;
        let before = tombstones::revision(conn)?;
        if before.map(|now| now - self.own_revisions.get()) != plan.revision {
            return Ok(None);
        }
        let filled = plan.fill(conn)?;
        let counts = remove(conn, &tables)?;
        drop(filled);
        // Tables of our own erase words as they delete rows.
        if self.kind() == Kind::Host && counts != IndexCounts::default() {
            for table in tables.full_text() {
                table.rebuild(conn)?;
            }
        }
        self.receipt_deleted(
            conn,
            &[
                ("embeddingCacheRows", counts.embedding_cache_rows),
                ("ftsRows", counts.fts_rows),
                ("indexChunks", counts.chunks),
                ("indexSources", counts.sources),
                ("vectorRows", counts.vector_rows),
            ],
        )?;
        let added = tombstones::revision(conn)?.unwrap_or_default() - before.unwrap_or_default();
        Ok(Some((counts, added)))
    }
}

impl IndexPlan {
    /// Ids of the chunks that go.
    pub(crate) fn chunk_ids(&self) -> &[String] {
        &self.chunk_ids
    }

    /// Puts the doomed ids where SQL finds them.
    fn fill<'c>(&self, conn: &'c Connection) -> rusqlite::Result<(IdTable<'c>, IdTable<'c>)> {
        Ok((
            IdTable::fill(conn, DOOMED, &self.chunk_ids)?,
            IdTable::fill(conn, DOOMED_SOURCES, &self.sources)?,
        ))
    }
}

/// Tables of the index that the database has.
#[allow(clippy::struct_excessive_bools)] // one independent fact each
struct Tables {
    chunks: bool,
    sources: bool,
    provenance: bool,
    recall: bool,
    cache: bool,
    chunks_text: bool,
    paths_text: bool,
    vectors: bool,
}

impl Tables {
    fn of(conn: &Connection) -> rusqlite::Result<Self> {
        let chunks = query::has_table(conn, "memory_index_chunks")?;
        let sources = query::has_table(conn, "memory_index_sources")?;
        Ok(Self {
            chunks,
            sources,
            provenance: query::has_table(conn, "memory_index_chunk_provenance")?,
            recall: query::has_table(conn, "memory_index_chunk_recall_metadata")?,
            cache: chunks && query::has_table(conn, "memory_embedding_cache")?,
            chunks_text: chunks && CHUNKS.exists(conn)?,
            paths_text: sources && PATHS.exists(conn)?,
            vectors: chunks && vec0::exists(conn)?,
        })
    }

    fn full_text(&self) -> impl Iterator<Item = &'static FullText> {
        let chunks = self.chunks_text.then_some(&CHUNKS);
        chunks.into_iter().chain(self.paths_text.then_some(&PATHS))
    }
}

/// Counts of a plan whose ids are in the temporary tables.
fn planned_counts(
    conn: &Connection,
    tables: &Tables,
    plan: &IndexPlan,
) -> rusqlite::Result<IndexCounts> {
    let mut counts = IndexCounts {
        chunks: plan.chunk_ids.len() as u64,
        sources: plan.sources.len() as u64,
        orphan_rows: orphans(conn, tables)?.iter().sum(),
        ..IndexCounts::default()
    };
    if tables.chunks_text {
        counts.fts_rows = CHUNKS.rows_of(conn, DOOMED_CHUNK)?;
    }
    if tables.vectors {
        counts.vector_rows = vec0::rows_of(conn, DOOMED)?;
    }
    if tables.cache {
        let sql = format!("SELECT count(*) FROM memory_embedding_cache WHERE {UNUSED_EMBEDDING}");
        counts.embedding_cache_rows = query::count(conn, &sql)?;
    }
    Ok(counts)
}

/// Rows without a chunk or source: text, paths, vectors.
fn orphans(conn: &Connection, tables: &Tables) -> rusqlite::Result<[u64; 3]> {
    Ok([
        if tables.chunks_text {
            CHUNKS.orphans(conn)?
        } else {
            0
        },
        if tables.paths_text {
            PATHS.orphans(conn)?
        } else {
            0
        },
        if tables.vectors {
            vec0::orphans(conn)?
        } else {
            0
        },
    ])
}

/// Deletes what the temporary tables list, and orphans. The counts are measured.
fn remove(conn: &Connection, tables: &Tables) -> rusqlite::Result<IndexCounts> {
    let orphans = orphans(conn, tables)?;
    let texts = if tables.chunks_text {
        CHUNKS.len(conn)?
    } else {
        0
    };
    let vectors = if tables.vectors {
        let deleted = vec0::delete(conn, DOOMED)?;
        vec0::erase_ghosts(conn)?;
        deleted
    } else {
        0
    };
    let mut counts = IndexCounts {
        vector_rows: vectors - orphans[2],
        orphan_rows: orphans.iter().sum(),
        ..IndexCounts::default()
    };
    let delete = |table: &str, condition: &str| -> rusqlite::Result<u64> {
        let sql = format!("DELETE FROM {table} WHERE {condition}");
        conn.execute(&sql, []).map(|rows| rows as u64)
    };
    counts.chunks = delete("memory_index_chunks", DOOMED_CHUNK)?;
    // The cascade needs the foreign keys, which a database may lack.
    if tables.recall {
        delete("memory_index_chunk_recall_metadata", WITHOUT_CHUNK)?;
    }
    if tables.provenance {
        delete("memory_index_chunk_provenance", WITHOUT_CHUNK)?;
    }
    if tables.sources {
        counts.sources = delete("memory_index_sources", DOOMED_SOURCE)?;
    }
    if tables.cache {
        counts.embedding_cache_rows = delete("memory_embedding_cache", UNUSED_EMBEDDING)?;
    }
    for table in tables.full_text() {
        table.delete_orphans(conn)?;
    }
    if tables.chunks_text {
        counts.fts_rows = texts - CHUNKS.len(conn)? - orphans[0];
    }
    Ok(counts)
}
