//! What rows say that a plan removes, and what those say that stay: read before the deletion, for its verification.

use std::collections::{HashMap, HashSet};

use crate::error::Result;
use crate::store::{IndexPlan, Judgement, StatePlan, Store, query};

/// Whether a row goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The plan removes it.
    Goes,
    /// It stays.
    Stays,
}

/// One row of the plugin state, borrowed.
#[derive(Clone, Copy, Debug)]
pub struct StateText<'a> {
    /// Its JSON.
    pub json: &'a [u8],
    /// What the plan knows of it.
    pub judgement: Judgement,
}

/// One chunk of the index, borrowed from the row.
#[derive(Clone, Copy, Debug)]
pub struct ChunkText<'a> {
    /// Its text, UTF-8 unless damaged.
    pub text: &'a [u8],
    /// Its embedding, little-endian float64; empty without one.
    pub embedding: &'a [u8],
    /// It renders a transcript, not a memory file.
    pub transcript: bool,
}

impl Store {
    /// Shows every chunk of the index once.
    pub fn each_chunk(
        &self,
        plan: &IndexPlan,
        mut show: impl FnMut(Fate, ChunkText),
    ) -> Result<()> {
        let doomed: HashSet<&str> = plan.chunk_ids().iter().map(String::as_str).collect();
        self.sql(|conn| {
            if !query::has_table(conn, "memory_index_chunks")? {
                return Ok(());
            }
            let mut statement = conn.prepare(
                "SELECT id, text, embedding, source = 'sessions' FROM memory_index_chunks ORDER BY chunk_rowid",
            )?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let id = query::text(row, 0)?;
                let fate = fate(doomed.contains(id.as_str()));
                let chunk = ChunkText {
                    text: row.get_ref(1)?.as_bytes_or_null()?.unwrap_or_default(),
                    embedding: row.get_ref(2)?.as_bytes_or_null()?.unwrap_or_default(),
                    transcript: row.get(3)?,
                };
                show(fate, chunk);
            }
            Ok(())
        })
    }

    /// Shows the path of every indexed file.
    pub fn each_source(&self, mut show: impl FnMut(&[u8])) -> Result<()> {
        self.sql(|conn| {
            if !query::has_table(conn, "memory_index_sources")? {
                return Ok(());
            }
            let mut statement = conn.prepare("SELECT path FROM memory_index_sources")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                show(&query::bytes(row, 0)?);
            }
            Ok(())
        })
    }

    /// Shows the JSON of every row of the plugin state: of one that is rewritten, the old value as going and the new one
    /// as staying.
    pub fn each_state_value(
        &self,
        plan: &StatePlan,
        mut show: impl FnMut(Fate, StateText),
    ) -> Result<()> {
        let changes: HashMap<(&str, &str), Option<&str>> = plan.changes().collect();
        self.sql(|conn| {
            if !query::has_table(conn, "plugin_state_entries")? {
                return Ok(());
            }
            let mut statement =
                conn.prepare("SELECT namespace, entry_key, value_json FROM plugin_state_entries")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (namespace, key) = (query::text(row, 0)?, query::text(row, 1)?);
                let change = changes.get(&(namespace.as_str(), key.as_str()));
                let judgement = plan.judgement(&namespace, &key);
                let json = &query::bytes(row, 2)?;
                show(fate(change.is_some()), StateText { json, judgement });
                if let Some(Some(value)) = change {
                    let json = value.as_bytes();
                    show(Fate::Stays, StateText { json, judgement });
                }
            }
            Ok(())
        })
    }
}

fn fate(goes: bool) -> Fate {
    if goes { Fate::Goes } else { Fate::Stays }
}
