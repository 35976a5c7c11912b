//! Pages of a database that nobody uses: what earlier deletions without `secure_delete` left there.
//!
//! A purge of ours overwrites what it frees. What others freed before is out of its reach until the pages are used again;
//! these calls use them.

use std::path::Path;

use rusqlite::Connection;

use crate::error::Result;
use crate::killpoint;
use crate::store::{Store, query};

/// How the unused pages of a database were got rid of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// There were none.
    None,
    /// The file was shortened by them (`auto_vacuum` databases).
    Released,
    /// They were filled with zeros and stay.
    Blanked,
}

impl Store {
    /// Number of pages on the free list.
    pub fn free_pages(&self) -> Result<u64> {
        self.sql(|conn| query::count(conn, "PRAGMA freelist_count"))
    }

    /// Leaves no old byte in free pages. Costs in proportion to them, not to the database: a database that can give pages
    /// back does so; another one gets a table that takes them all and is dropped, so that `secure_delete` writes zeros.
    pub fn erase_free_pages(&self) -> Result<Freed> {
        if self.free_pages()? == 0 {
            return Ok(Freed::None);
        }
        let shrinks = self.sql(|conn| query::count(conn, "PRAGMA auto_vacuum"))? == INCREMENTAL;
        if shrinks {
            self.sql(|conn| {
                let mut statement = conn.prepare("PRAGMA incremental_vacuum")?;
                let mut pages = statement.query([])?;
                // Each step gives one page back.
                while pages.next()?.is_some() {}
                Ok(())
            })?;
            killpoint::pass("free-pages:released");
            return Ok(Freed::Released);
        }
        self.write("free-pages", |conn| {
            blank(conn).map_err(|error| self.explain(error))
        })?;
        Ok(Freed::Blanked)
    }

    /// Rewrites the whole file, so that neither free pages nor the slack of used ones hold anything old. Needs room for two
    /// more copies beside the database, one of them in its log, and no other transaction.
    pub fn vacuum(&self) -> Result<()> {
        self.check_writable()?;
        killpoint::pass("vacuum:begin");
        let folder = self.path().parent().unwrap_or(Path::new("."));
        self.sql(|conn| {
            // The copy must not leave the state directory; SQLite unlinks it as soon as it is open.
            conn.pragma_update(None, "temp_store_directory", folder.to_string_lossy())?;
            conn.execute_batch("PRAGMA temp_store = FILE")?;
            let done = conn.execute_batch("VACUUM");
            conn.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA temp_store_directory = ''")?;
            done
        })?;
        killpoint::pass("vacuum:committed");
        Ok(())
    }
}

/// Value of `PRAGMA auto_vacuum` of a database that gives pages back when asked.
const INCREMENTAL: u64 = 2;

fn blank(conn: &Connection) -> rusqlite::Result<()> {
    let free = query::count(conn, "PRAGMA freelist_count")?;
    let size = query::count(conn, "PRAGMA page_size")?;
    conn.execute_batch("CREATE TABLE cenotaph_blank (zeros BLOB)")?;
    // One row takes its share of a page of the table and whole overflow pages for the rest.
    let row = i64::try_from(size * 64).unwrap_or(i64::MAX);
    let mut insert = conn.prepare("INSERT INTO cenotaph_blank VALUES (zeroblob(?1))")?;
    for _ in 0..=free / 64 {
        insert.execute([row])?;
    }
    drop(insert);
    conn.execute_batch("DROP TABLE cenotaph_blank")
}
