//! Values that the bytes of a database do not show as one piece: cut by the borders of overflow pages, or packed.

use std::collections::HashSet;
use std::io::Read;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::Part;
use super::attribute::full_text_tables;
use super::member::{self, Packing};
use super::needles::{Compiled, Needles};
use super::page::Shape;
use super::pattern::Pattern;
use super::spelling::Class;
use crate::store::Store;
use crate::{Error, Result, interrupt};

/// What is told of a hit: its part, table, and the offset where the b-tree of the table begins.
pub(super) type Report<'r> = dyn FnMut(Part, &str, u64, &Pattern) + 'r;

/// Searches the values of all tables of a database but `kept` ones.
pub(super) struct Rows<'s> {
    pub(super) store: &'s Store,
    pub(super) needles: &'s Needles,
    pub(super) shape: Shape,
    pub(super) kept: &'s [String],
}

struct Table {
    name: String,
    /// Offset of its first page.
    offset: u64,
    /// Bytes of text and blobs from which on a row may have overflow pages.
    most: usize,
}

impl Rows<'_> {
    /// Reports what the values hold. Damaged members do not end the search; their tables are returned.
    pub(super) fn scan(
        &self,
        buffer: &mut Vec<u8>,
        report: &mut Report<'_>,
    ) -> Result<Vec<String>> {
        let mut damaged = Vec::new();
        for table in self.store.sql(|conn| self.tables(conn))? {
            if !self.scan_table(&table, buffer, report)? {
                damaged.push(table.name);
            }
        }
        Ok(damaged)
    }

    fn tables(&self, conn: &Connection) -> rusqlite::Result<Vec<Table>> {
        let encoding: String = conn.query_row("PRAGMA encoding", [], |row| row.get(0))?;
        // Text is handed over as UTF-8 but stored in two bytes for most letters.
        let share = if encoding == "UTF-8" { 1 } else { 2 };
        let full_text: HashSet<String> = full_text_tables(conn)?;
        let mut statement = conn.prepare(
            "SELECT name, rootpage, sql FROM sqlite_schema WHERE type = 'table' AND rootpage > 0",
        )?;
        let tables = statement.query_map([], |row| {
            let sql: Option<String> = row.get(2)?;
            let has_row_ids = sql.is_none_or(|sql| !sql.to_ascii_uppercase().contains("ROWID"));
            let most = if has_row_ids {
                self.shape.most_in_table()
            } else {
                self.shape.most_in_index()
            };
            let root: u32 = row.get(1)?;
            Ok(Table {
                name: row.get(0)?,
                offset: u64::from(root.saturating_sub(1)) * self.shape.page_size as u64,
                most: most / share,
            })
        })?;
        let tables: Vec<Table> = tables.collect::<rusqlite::Result<_>>()?;
        let skipped = |name: &String| self.kept.contains(name) || full_text.contains(name);
        Ok(tables.into_iter().filter(|it| !skipped(&it.name)).collect())
    }

    /// False when a member is damaged.
    fn scan_table(
        &self,
        table: &Table,
        buffer: &mut Vec<u8>,
        report: &mut Report<'_>,
    ) -> Result<bool> {
        let explain = |error| self.store.explain(error);
        let conn = self.store.sql(Ok)?;
        let name = table.name.replace('"', "\"\"");
        let mut statement = conn
            .prepare(&format!("SELECT * FROM \"{name}\""))
            .map_err(explain)?;
        let columns = statement.column_count();
        let mut rows = statement.query([]).map_err(explain)?;
        let mut sound = true;
        while let Some(row) = rows.next().map_err(explain)? {
            interrupt::check()?;
            let values = values(row, columns).map_err(explain)?;
            // What the header of the row and its numbers may take.
            let overhead = 20 * columns + 9;
            let whole: usize = values.iter().map(|value| value.len()).sum();
            for value in &values {
                if whole + overhead > table.most {
                    self.scan_value(table, value, report);
                }
                sound &= self.scan_member(table, value, buffer, report)?;
            }
        }
        Ok(sound)
    }

    fn scan_value(&self, table: &Table, value: &[u8], report: &mut Report<'_>) {
        let Compiled { patterns, engine } = self.needles.compiled();
        engine.scan(patterns, value, 0, &mut |_, pattern| {
            if pattern.class == Class::Whole {
                report(Part::Row, &table.name, table.offset, pattern);
            }
        });
    }

    fn scan_member(
        &self,
        table: &Table,
        value: &[u8],
        buffer: &mut Vec<u8>,
        report: &mut Report<'_>,
    ) -> Result<bool> {
        let Some(packing) = Packing::of(value) else {
            return Ok(true);
        };
        let open = || Ok(Box::new(value) as Box<dyn Read>);
        let mut found = |_, pattern: &Pattern| {
            if pattern.class == Class::Whole {
                report(Part::Member, &table.name, table.offset, pattern);
            }
        };
        let path = self.store.path();
        match member::scan(self.needles, buffer, path, packing, &open, &mut found) {
            Err(Error::Io { .. }) => Ok(false),
            done => done.map(|()| true),
        }
    }
}

/// Text and blobs of a row.
fn values<'r>(row: &'r Row<'_>, columns: usize) -> rusqlite::Result<Vec<&'r [u8]>> {
    let mut values = Vec::with_capacity(columns);
    for column in 0..columns {
        if let ValueRef::Text(bytes) | ValueRef::Blob(bytes) = row.get_ref(column)? {
            values.push(bytes);
        }
    }
    Ok(values)
}
