//! The vector table of sqlite-vec: registration of the module, and removal of rows.

use std::sync::Once;

use rusqlite::{Connection, OptionalExtension, params};

use crate::store::query;

pub(crate) const TABLE: &str = "memory_index_chunks_vec";

static REGISTERED: Once = Once::new();

/// Makes the `vec0` module known to every connection that this process opens afterwards.
#[allow(unsafe_code)]
pub(crate) fn register() {
    type Entry = unsafe extern "C" fn(
        *mut rusqlite::ffi::sqlite3,
        *mut *mut std::ffi::c_char,
        *const rusqlite::ffi::sqlite3_api_routines,
    ) -> std::ffi::c_int;
    REGISTERED.call_once(|| {
        // SAFETY: `sqlite3_vec_init` has the signature of an extension entry point in C (`sqlite-vec.c` declares it so);
        // its Rust binding leaves the parameters out. It is linked statically against the same bundled SQLite and lives
        // as long as the process. `sqlite3_auto_extension` copies the pointer, takes its own lock and may be called at
        // any time. The pointer types have the same size and representation.
        unsafe {
            let entry =
                std::mem::transmute::<unsafe extern "C" fn(), Entry>(sqlite_vec::sqlite3_vec_init);
            rusqlite::ffi::sqlite3_auto_extension(Some(entry));
        }
    });
}

/// Is there a vector table?
pub(crate) fn exists(conn: &Connection) -> rusqlite::Result<bool> {
    Ok(query::has_table(conn, TABLE)? && query::has_table(conn, &format!("{TABLE}_rowids"))?)
}

/// Number of vectors whose chunk is in `temp.<doomed>`.
pub(crate) fn rows_of(conn: &Connection, doomed: &str) -> rusqlite::Result<u64> {
    let sql =
        format!("SELECT count(*) FROM {TABLE}_rowids WHERE id IN (SELECT id FROM temp.{doomed})");
    query::count(conn, &sql)
}

/// Number of vectors that belong to no chunk.
pub(crate) fn orphans(conn: &Connection) -> rusqlite::Result<u64> {
    query::count(
        conn,
        &format!("SELECT count(*) FROM {TABLE}_rowids WHERE {NO_CHUNK}"),
    )
}

const NO_CHUNK: &str = "id NOT IN (SELECT id FROM memory_index_chunks)";

/// Deletes the vectors of the chunks in `temp.<doomed>` and those of no chunk. Returns the number of all.
pub(crate) fn delete(conn: &Connection, doomed: &str) -> rusqlite::Result<u64> {
    let sql = format!(
        "SELECT id FROM {TABLE}_rowids WHERE id IN (SELECT id FROM temp.{doomed}) OR {NO_CHUNK}"
    );
    let ids: Vec<rusqlite::types::Value> = conn
        .prepare(&sql)?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    // The module finds one row by its id at once, a set of ids only by a full scan.
    let mut delete = conn.prepare(&format!("DELETE FROM {TABLE} WHERE id = ?1"))?;
    let mut deleted = 0;
    for id in ids {
        deleted += delete.execute(params![id])? as u64;
    }
    Ok(deleted)
}

/// Zeroes what lies in slots that hold no vector: who clears a slot's bit without this module leaves its numbers there.
///
/// A row of `<table>_chunks` has a bit for each of its `size` slots; the row of the same id in `<table>_vector_chunks00`
/// has the numbers, slot by slot (<https://alexgarcia.xyz/sqlite-vec/>, shadow tables). Only rows with an unused slot are
/// read.
pub(crate) fn erase_ghosts(conn: &Connection) -> rusqlite::Result<()> {
    if !query::has_table(conn, &format!("{TABLE}_vector_chunks00"))? {
        return Ok(());
    }
    let mut chunks = conn.prepare(&format!(
        "SELECT chunk_id, size, validity FROM {TABLE}_chunks"
    ))?;
    let mut read = conn.prepare(&format!(
        "SELECT vectors FROM {TABLE}_vector_chunks00 WHERE rowid = ?1"
    ))?;
    let mut write = conn.prepare(&format!(
        "UPDATE {TABLE}_vector_chunks00 SET vectors = ?2 WHERE rowid = ?1"
    ))?;
    let mut rows = chunks.query([])?;
    while let Some(row) = rows.next()? {
        let (id, size): (i64, u32) = (row.get(0)?, row.get(1)?);
        let validity: Vec<u8> = row.get(2)?;
        let slots = Slots {
            validity: &validity,
            count: size as usize,
        };
        if slots.all_used() {
            continue;
        }
        let vectors: Option<Vec<u8>> = read.query_row([id], |row| row.get(0)).optional()?;
        let Some(mut vectors) = vectors else {
            continue;
        };
        if slots.zero_unused(&mut vectors) {
            write.execute(params![id, vectors])?;
        }
    }
    Ok(())
}

/// The slots of one row.
struct Slots<'a> {
    validity: &'a [u8],
    count: usize,
}

impl Slots<'_> {
    fn is_used(&self, slot: usize) -> bool {
        let bits = self.validity.get(slot / 8).copied().unwrap_or(0);
        bits >> (slot % 8) & 1 == 1
    }

    fn all_used(&self) -> bool {
        (0..self.count).all(|slot| self.is_used(slot))
    }

    /// Was there anything in an unused slot?
    fn zero_unused(&self, vectors: &mut [u8]) -> bool {
        let width = vectors.len().checked_div(self.count).unwrap_or(0);
        if width == 0 {
            return false;
        }
        let mut found = false;
        for (slot, vector) in vectors.chunks_mut(width).enumerate() {
            if !self.is_used(slot) && vector.iter().any(|byte| *byte != 0) {
                vector.fill(0);
                found = true;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;

    #[test]
    fn only_slots_without_a_bit_are_zeroed() {
        let slots = Slots {
            validity: &[0b0000_0011, 0b0000_0010],
            count: 10,
        };
        let mut vectors = vec![1_u8; 10 * 4];
        assert!(slots.zero_unused(&mut vectors));
        let left: Vec<usize> = (0..10).filter(|slot| vectors[slot * 4] == 1).collect();
        assert_eq!(left, [0, 1, 9]);
        assert!(!slots.zero_unused(&mut vectors));
        assert!(!slots.all_used());
    }

    #[test]
    fn a_row_that_makes_no_sense_is_left() {
        for count in [0, 9] {
            let slots = Slots {
                validity: &[],
                count,
            };
            let mut vectors = vec![1_u8; 8];
            assert!(!slots.zero_unused(&mut vectors));
            assert_eq!(vectors, [1; 8]);
        }
    }
}
