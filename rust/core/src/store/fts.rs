//! Full-text tables: rows of removed chunks and sources, and the segments that still spell them.
//!
//! The tables store their own content and are kept in step by triggers of the host. Deleting a row leaves its words in
//! older segments until those are rewritten.

use rusqlite::Connection;

use crate::store::query;

/// A full-text table whose row ids are those of another table.
pub(crate) struct FullText {
    name: &'static str,
    owner: &'static str,
    owner_id: &'static str,
}

/// Text of the chunks.
pub(crate) const CHUNKS: FullText = FullText {
    name: "memory_index_chunks_fts",
    owner: "memory_index_chunks",
    owner_id: "chunk_rowid",
};

/// Paths of the sources.
pub(crate) const PATHS: FullText = FullText {
    name: "memory_index_paths_fts",
    owner: "memory_index_sources",
    owner_id: "id",
};

impl FullText {
    pub(crate) fn exists(&self, conn: &Connection) -> rusqlite::Result<bool> {
        query::has_table(conn, self.name)
    }

    /// The shadow table with one small row per document.
    fn rows(&self, conn: &Connection) -> rusqlite::Result<String> {
        let sizes = format!("{}_docsize", self.name);
        if query::has_table(conn, &sizes)? {
            return Ok(sizes);
        }
        Ok(format!("{}_content", self.name))
    }

    /// All documents.
    pub(crate) fn len(&self, conn: &Connection) -> rusqlite::Result<u64> {
        query::count(conn, &format!("SELECT count(*) FROM {}", self.rows(conn)?))
    }

    /// Documents whose owner satisfies `owners` (an SQL condition).
    pub(crate) fn rows_of(&self, conn: &Connection, owners: &str) -> rusqlite::Result<u64> {
        let Self {
            owner, owner_id, ..
        } = self;
        let rows = self.rows(conn)?;
        let sql = format!(
            "SELECT count(*) FROM {rows} WHERE id IN (SELECT {owner_id} FROM {owner} WHERE {owners})"
        );
        query::count(conn, &sql)
    }

    /// Documents without an owner.
    pub(crate) fn orphans(&self, conn: &Connection) -> rusqlite::Result<u64> {
        let sql = format!(
            "SELECT count(*) FROM {} WHERE {}",
            self.rows(conn)?,
            self.no_owner()
        );
        query::count(conn, &sql)
    }

    fn no_owner(&self) -> String {
        format!("id NOT IN (SELECT {} FROM {})", self.owner_id, self.owner)
    }

    /// Deletes documents without an owner: what triggers do not exist for, or have missed.
    pub(crate) fn delete_orphans(&self, conn: &Connection) -> rusqlite::Result<()> {
        let sql = format!(
            "SELECT id FROM {} WHERE {}",
            self.rows(conn)?,
            self.no_owner()
        );
        let ids: Vec<i64> = conn
            .prepare(&sql)?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let mut delete = conn.prepare(&format!("DELETE FROM {} WHERE rowid = ?1", self.name))?;
        for id in ids {
            delete.execute([id])?;
        }
        Ok(())
    }

    /// Makes the index anew from the stored rows, so that no word of a deleted row stays in a segment.
    ///
    /// `optimize` takes half the time but is not enough: when the segments lie below levels that earlier merges have
    /// emptied, it keeps the entries of deleted rows, and afterwards finds nothing more to merge.
    pub(crate) fn rebuild(&self, conn: &Connection) -> rusqlite::Result<()> {
        let Self { name, .. } = self;
        conn.execute_batch(&format!("INSERT INTO {name}({name}) VALUES ('rebuild')"))
    }
}
