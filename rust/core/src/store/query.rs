//! Small things that every query needs: sets of ids as temporary tables, tolerant columns.

use std::collections::HashSet;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, ToSql};
use sha2::{Digest, Sha256};

/// A temporary table with one column `id`, dropped with the value. Temporary tables live in memory.
pub(crate) struct IdTable<'c> {
    conn: &'c Connection,
    name: &'static str,
}

impl<'c> IdTable<'c> {
    /// Makes `temp.<name>` and fills it; repeated ids count once.
    pub(crate) fn fill<T: ToSql>(
        conn: &'c Connection,
        name: &'static str,
        ids: impl IntoIterator<Item = T>,
    ) -> rusqlite::Result<Self> {
        // One transaction for all rows; temporary tables take no lock on the database.
        let transaction = if conn.is_autocommit() {
            Some(conn.unchecked_transaction()?)
        } else {
            None
        };
        conn.execute_batch(&format!(
            "DROP TABLE IF EXISTS temp.{name}; CREATE TABLE temp.{name}(id PRIMARY KEY NOT NULL) WITHOUT ROWID;"
        ))?;
        let table = Self { conn, name };
        table.insert(ids)?;
        if let Some(transaction) = transaction {
            transaction.commit()?;
        }
        Ok(table)
    }

    fn insert<T: ToSql>(&self, ids: impl IntoIterator<Item = T>) -> rusqlite::Result<()> {
        let sql = format!("INSERT OR IGNORE INTO temp.{}(id) VALUES (?1)", self.name);
        let mut insert = self.conn.prepare(&sql)?;
        for id in ids {
            insert.execute([id])?;
        }
        Ok(())
    }
}

impl Drop for IdTable<'_> {
    fn drop(&mut self) {
        // After a rollback the table is gone already; a table that stays is dropped with the connection.
        let _ = self
            .conn
            .execute_batch(&format!("DROP TABLE IF EXISTS temp.{}", self.name));
    }
}

/// Does the database have this table (or virtual table)?
pub(crate) fn has_table(conn: &Connection, table: &str) -> rusqlite::Result<bool> {
    conn.prepare_cached("SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = ?1")?
        .exists([table])
}

/// A `SELECT` list in which a column that `table` lacks reads as NULL.
pub(crate) fn select_list(
    conn: &Connection,
    table: &str,
    columns: &[&str],
) -> rusqlite::Result<String> {
    let mut statement = conn.prepare("SELECT name FROM pragma_table_info(?1)")?;
    let present: HashSet<String> = statement
        .query_map([table], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let list: Vec<String> = columns
        .iter()
        .map(|&column| {
            if present.contains(column) {
                column.to_owned()
            } else {
                format!("NULL AS {column}")
            }
        })
        .collect();
    Ok(list.join(", "))
}

/// One number.
pub(crate) fn count(conn: &Connection, sql: &str) -> rusqlite::Result<u64> {
    conn.query_row(sql, [], |row| row.get::<_, i64>(0))
        .map(unsigned)
}

/// A count that SQLite reports as a signed number.
pub(crate) fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// Bytes of a text or blob column; other types read as empty.
pub(crate) fn bytes(row: &Row, at: usize) -> rusqlite::Result<Vec<u8>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.to_vec(),
        _ => Vec::new(),
    })
}

/// Text of a column; damaged UTF-8 reads as replacement characters, NULL as empty.
pub(crate) fn text(row: &Row, at: usize) -> rusqlite::Result<String> {
    Ok(optional_text(row, at)?.unwrap_or_default())
}

/// Text of a column that may be NULL.
pub(crate) fn optional_text(row: &Row, at: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(number.to_string()),
    })
}

/// A number that is 0 when the column is NULL or something else.
pub(crate) fn number(row: &Row, at: usize) -> rusqlite::Result<i64> {
    Ok(optional_number(row, at)?.unwrap_or(0))
}

/// A number that may be NULL.
pub(crate) fn optional_number(row: &Row, at: usize) -> rusqlite::Result<Option<i64>> {
    Ok(row.get_ref(at)?.as_i64().ok())
}

/// SHA-256.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// SHA-256 in lower-case hex.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f',
    ];
    let digit = |half: u8| DIGITS[usize::from(half & 15)];
    sha256(bytes)
        .iter()
        .flat_map(|&byte| [digit(byte >> 4), digit(byte)])
        .collect()
}
