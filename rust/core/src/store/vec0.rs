//! The vector table of sqlite-vec: registration of the module, and removal of rows.

use std::sync::Once;

use rusqlite::{Connection, params};

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
