//! To which table the pages of a database belong.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use rusqlite::Connection;

use super::Part;
use super::needles::Hit;
use super::page::{Shape, in_cell};
use super::pattern::narrow;
use super::spelling::Class;
use crate::Result;
use crate::store::Store;

/// Tables of a database, and what each page is used for.
#[derive(Debug, Default)]
pub(super) struct Pages {
    tables: Vec<String>,
    full_text: HashSet<u32>,
    /// By page number, from 0 on; pages that belong to nothing have no table.
    uses: Vec<Option<Use>>,
}

#[derive(Debug, Clone, Copy)]
struct Use {
    table: u32,
    /// Payload of an overflow page; `None` for a page of a b-tree.
    overflow: Option<u32>,
}

impl Pages {
    /// Reads every page of the database.
    pub(super) fn read(store: &Store) -> Result<Self> {
        store.sql(|conn| {
            let owners = owners(conn)?;
            let mut pages = Self::default();
            let mut numbers = HashMap::new();
            let mut statement =
                conn.prepare("SELECT name, pageno, pagetype, payload FROM dbstat")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let tree: String = row.get(0)?;
                let owner = owners.get(&tree).unwrap_or(&tree);
                let table = *numbers.entry(owner.clone()).or_insert_with(|| {
                    pages.tables.push(owner.clone());
                    narrow(pages.tables.len() - 1)
                });
                let overflow = match row.get_ref(2)?.as_str()? {
                    "overflow" => Some(row.get(3)?),
                    _ => None,
                };
                pages.enter(row.get(1)?, Use { table, overflow });
            }
            let full_text = full_text_tables(conn)?;
            let numbered = (0..).zip(&pages.tables);
            pages.full_text = numbered
                .filter(|(_, table)| full_text.contains(*table))
                .map(|(number, _)| number)
                .collect();
            Ok(pages)
        })
    }

    fn enter(&mut self, number: u32, used: Use) {
        let number = number as usize;
        if self.uses.len() <= number {
            self.uses.resize(number + 1, None);
        }
        self.uses[number] = Some(used);
    }

    /// Name of a table that [`Pages::place`] gave.
    pub(super) fn table(&self, number: u32) -> &str {
        &self.tables[number as usize]
    }
}

/// Tables with the name of each b-tree that is not named like its table.
fn owners(conn: &Connection) -> rusqlite::Result<HashMap<String, String>> {
    let mut statement =
        conn.prepare("SELECT name, tbl_name FROM sqlite_schema WHERE type = 'index'")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Tables in which full-text indexes keep their segments.
pub(super) fn full_text_tables(conn: &Connection) -> rusqlite::Result<HashSet<String>> {
    let mut statement = conn.prepare(
        "SELECT name FROM sqlite_schema AS it WHERE type = 'table' AND name LIKE '%\\_data' ESCAPE '\\' AND (
           name LIKE '%\\_fts\\_data' ESCAPE '\\' OR EXISTS (
             SELECT 1 FROM sqlite_schema AS of WHERE of.sql LIKE 'CREATE VIRTUAL TABLE%USING%FTS5%'
               AND of.name || '_data' = it.name))",
    )?;
    let names = statement.query_map([], |row| row.get(0))?;
    names.collect()
}

/// The pages of one database as they stand in its file.
pub(super) struct Attribution<'p> {
    pages: &'p Pages,
    file: &'p File,
    shape: Shape,
    page: Vec<u8>,
    /// Number of the page in `page`; 0 before the first.
    number: u64,
}

impl<'p> Attribution<'p> {
    pub(super) fn new(pages: &'p Pages, file: &'p File, shape: Shape) -> Self {
        Self {
            pages,
            file,
            shape,
            page: vec![0; shape.page_size],
            number: 0,
        }
    }

    /// Where a hit is, and in which table; `None` where such a hit does not count.
    pub(super) fn place(&mut self, hit: &Hit) -> std::io::Result<Option<(Part, Option<u32>)>> {
        let size = self.shape.page_size as u64;
        let number = hit.offset / size + 1;
        let used = usize::try_from(number)
            .ok()
            .and_then(|number| *self.pages.uses.get(number)?);
        let Some(used) = used else {
            return Ok(Some((Part::Free, None)));
        };
        // Below the size of a page, which is at most 64 KiB.
        let start = usize::try_from(hit.offset % size).unwrap_or(usize::MAX);
        let range = start..start.saturating_add(hit.length as usize);
        let is_live = match used.overflow {
            Some(payload) => range.start >= 4 && range.end <= 4 + payload as usize,
            None => self.is_in_cell(number, &range)?,
        };
        if !is_live {
            return Ok(Some((Part::Slack, Some(used.table))));
        }
        let counts = match hit.class {
            Class::Whole => true,
            Class::Fragment => false,
            Class::Word => self.pages.full_text.contains(&used.table),
        };
        Ok(counts.then_some((Part::Row, Some(used.table))))
    }

    fn is_in_cell(&mut self, number: u64, range: &Range<usize>) -> std::io::Result<bool> {
        if self.number != number {
            let start = (number - 1) * self.shape.page_size as u64;
            self.file.read_exact_at(&mut self.page, start)?;
            self.number = number;
        }
        Ok(in_cell(&self.page, number == 1, self.shape, range))
    }
}
