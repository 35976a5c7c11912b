//! One pass over the chunks: which of them go.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Row};

use crate::store::chunks::IndexAsk;
use crate::store::query::{self, IdTable};

/// Chunks and sources that go.
pub(crate) struct Doomed {
    /// In order of row.
    pub(crate) chunk_ids: Vec<String>,
    /// Row ids.
    pub(crate) sources: Vec<i64>,
}

/// What is known about one path.
#[derive(Clone, Copy)]
struct Path {
    /// All its chunks go.
    doomed: bool,
    /// Transcript of a session that is never indexed.
    excluded: bool,
    /// Its chunks go one by one.
    external: bool,
}

struct Chunk {
    row: i64,
    path: usize,
    doomed: bool,
    transcript: bool,
}

struct Scan<'a> {
    ask: &'a IndexAsk<'a>,
    names: HashMap<String, usize>,
    paths: Vec<Path>,
    chunks: Vec<Chunk>,
}

pub(crate) fn doomed(
    conn: &Connection,
    ask: &IndexAsk,
    provenance: bool,
    sources: bool,
) -> rusqlite::Result<Doomed> {
    let mut scan = Scan {
        ask,
        names: HashMap::new(),
        paths: Vec::new(),
        chunks: Vec::new(),
    };
    scan.read(conn, provenance)?;
    let chunks: Vec<&Chunk> = scan.doomed().collect();
    let hit: HashSet<usize> = chunks
        .iter()
        .filter(|chunk| chunk.transcript)
        .map(|chunk| chunk.path)
        .collect();
    Ok(Doomed {
        chunk_ids: chunk_ids(conn, chunks.iter().map(|chunk| chunk.row))?,
        sources: if sources {
            scan.sources(conn, &hit)?
        } else {
            Vec::new()
        },
    })
}

impl Scan<'_> {
    fn read(&mut self, conn: &Connection, provenance: bool) -> rusqlite::Result<()> {
        let (facts, join) = if provenance {
            (
                "p.origin_class, p.session_kind",
                "LEFT JOIN memory_index_chunk_provenance p ON p.chunk_id = c.id",
            )
        } else {
            ("NULL, NULL", "")
        };
        // The text of a transcript is no memory, and most of the index.
        let sql = format!(
            "SELECT c.chunk_rowid, c.path, c.source = 'sessions', {facts}, CASE WHEN c.source <> 'sessions' THEN c.text END
             FROM memory_index_chunks c {join} ORDER BY c.chunk_rowid"
        );
        let mut statement = conn.prepare(&sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            self.add(row)?;
        }
        Ok(())
    }

    fn add(&mut self, row: &Row) -> rusqlite::Result<()> {
        let at = self.path(&query::text(row, 1)?);
        let path = self.paths[at];
        let transcript: bool = row.get(2)?;
        let mut doomed = transcript && (path.excluded || is_internal(row)?);
        if !transcript && !path.doomed && (self.ask.text_matches)(&query::bytes(row, 5)?) {
            // An entry may lie across two chunks, so the whole file is indexed anew; a file that is not ours to edit
            // would come back as it was.
            doomed = path.external;
            self.paths[at].doomed = !path.external;
        }
        self.chunks.push(Chunk {
            row: row.get(0)?,
            path: at,
            doomed,
            transcript,
        });
        Ok(())
    }

    /// Number of a path; each is judged once.
    fn path(&mut self, name: &str) -> usize {
        if let Some(&at) = self.names.get(name) {
            return at;
        }
        let ask = self.ask;
        let at = self.paths.len();
        self.paths.push(Path {
            doomed: ask.changed_paths.contains(name) || (ask.refs_named)(name.as_bytes()),
            excluded: (ask.excluded_named)(name.as_bytes()),
            external: ask.external_paths.contains(name),
        });
        self.names.insert(name.to_owned(), at);
        at
    }

    fn doomed(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks
            .iter()
            .filter(|chunk| chunk.doomed || self.paths[chunk.path].doomed)
    }

    /// Sources of deleted corpus files, and of transcripts that lose a chunk (`hit`). The source of a rewritten memory
    /// file stays: its hash no longer fits, so it is indexed anew.
    fn sources(&self, conn: &Connection, hit: &HashSet<usize>) -> rusqlite::Result<Vec<i64>> {
        let mut statement = conn.prepare(
            "SELECT id, path, source = 'sessions' FROM memory_index_sources ORDER BY id",
        )?;
        let mut rows = statement.query([])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let path = query::text(row, 1)?;
            let transcript: bool = row.get(2)?;
            let loses_chunk =
                transcript && self.names.get(&path).is_some_and(|at| hit.contains(at));
            if loses_chunk || self.ask.deleted_corpus_paths.contains(&path) {
                found.push(row.get(0)?);
            }
        }
        Ok(found)
    }
}

/// Lines of the machinery itself, which no index should hold.
fn is_internal(row: &Row) -> rusqlite::Result<bool> {
    let class = query::text(row, 3)?;
    let kind = query::text(row, 4)?;
    Ok(class == "system" || kind == "cron" || kind == "heartbeat")
}

fn chunk_ids(conn: &Connection, rows: impl Iterator<Item = i64>) -> rusqlite::Result<Vec<String>> {
    let _rows = IdTable::fill(conn, "cenotaph_rows", rows)?;
    conn.prepare("SELECT id FROM memory_index_chunks WHERE chunk_rowid IN (SELECT id FROM temp.cenotaph_rows) ORDER BY chunk_rowid")?
        .query_map([], |row| query::text(row, 0))?
        .collect()
}
