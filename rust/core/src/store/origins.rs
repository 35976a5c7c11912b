//! Which session an entry came from.

use std::collections::HashSet;

use rusqlite::Connection;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::store::Store;
use crate::store::query::{self, IdTable};

/// Origin rows of the selected sessions, resolved to entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage {
    /// Keys with a row in a selected session, and the extra keys; sorted by UTF-16 code units.
    pub entry_keys: Vec<String>,
    /// Those of them that also have a row in an unselected session; same order.
    pub mixed: Vec<String>,
    /// Every key of this agent that has a row; same order.
    pub known_keys: Vec<String>,
    /// Rows of all entry keys, those of unselected sessions included.
    pub origin_rows: u64,
    /// SHA-256 over the rows of the entry keys, in order.
    pub digest: [u8; 32],
}

impl Store {
    /// Resolves the selected sessions to entries; `extra_keys` (found earlier) stay selected, with or without rows.
    pub fn lineage(
        &self,
        agent: &str,
        session_ids: &[String],
        extra_keys: &[String],
    ) -> Result<Lineage> {
        self.sql(|conn| read(conn, agent, session_ids, extra_keys))
    }

    /// Records that the entries of `keys` also derive from the selected sessions: each key gets a row like the first one
    /// that an entry of `ids` has. Keys that share a marker unit with a selected key are found in the text alone (V1); the
    /// row keeps the finding once the text is gone, so that a run which was killed can be finished.
    ///
    /// Returns the number of new rows, and the digest of the lineage with them.
    ///
    /// # Errors
    /// [`Error::LineageChanged`] when `digest` is not that of the present lineage of `ids` and `extra_keys`.
    pub fn join_origins(
        &self,
        agent: &str,
        keys: &[String],
        ids: &[String],
        digest: [u8; 32],
        extra_keys: &[String],
    ) -> Result<(u64, [u8; 32])> {
        let plan = Planned {
            agent,
            ids,
            extra_keys,
            digest,
        };
        self.write("join", |conn| {
            self.check_lineage(conn, &plan)?;
            let joined = join(conn, agent, keys, ids).map_err(|error| self.explain(error))?;
            let now = read(conn, agent, ids, extra_keys).map_err(|error| self.explain(error))?;
            Ok((joined, now.digest))
        })
    }

    /// Deletes every origin row of `keys` for `agent`, those of unselected sessions included, in a transaction of its
    /// own. Returns the number of rows.
    pub fn delete_origins(&self, agent: &str, keys: &[String]) -> Result<u64> {
        self.write("origins", |conn| {
            let deleted = delete(conn, agent, keys).and_then(|rows| {
                self.receipt_deleted(conn, &[("originRows", rows)])?;
                Ok(rows)
            });
            deleted.map_err(|error| self.explain(error))
        })
    }

    /// Fails with [`Error::LineageChanged`] unless the lineage still has this digest. Called in a write transaction.
    pub(crate) fn check_lineage(&self, conn: &Connection, plan: &Planned) -> Result<()> {
        let now = read(conn, plan.agent, plan.ids, plan.extra_keys)
            .map_err(|error| self.explain(error))?;
        if now.digest == plan.digest {
            return Ok(());
        }
        Err(Error::LineageChanged)
    }
}

/// What a plan rests on.
pub(crate) struct Planned<'a> {
    pub(crate) agent: &'a str,
    pub(crate) ids: &'a [String],
    pub(crate) extra_keys: &'a [String],
    pub(crate) digest: [u8; 32],
}

/// Rows of one key.
#[derive(Default)]
struct Entry {
    key: String,
    sessions: Vec<String>,
}

struct Resolver<'a> {
    ids: HashSet<&'a str>,
    extra: HashSet<&'a str>,
    lineage: Lineage,
    hash: Sha256,
}

impl Resolver<'_> {
    fn add(&mut self, entry: Entry) {
        let selected = entry
            .sessions
            .iter()
            .filter(|&id| self.ids.contains(id.as_str()))
            .count();
        if selected > 0 || self.extra.contains(entry.key.as_str()) {
            self.extra.remove(entry.key.as_str());
            self.lineage.origin_rows += entry.sessions.len() as u64;
            for id in &entry.sessions {
                // Lengths keep two different row lists from hashing alike.
                for part in [&entry.key, id] {
                    self.hash.update((part.len() as u64).to_le_bytes());
                    self.hash.update(part.as_bytes());
                }
            }
            if selected < entry.sessions.len() {
                self.lineage.mixed.push(entry.key.clone());
            }
            self.lineage.entry_keys.push(entry.key.clone());
        }
        self.lineage.known_keys.push(entry.key);
    }

    fn finish(mut self) -> Lineage {
        self.lineage
            .entry_keys
            .extend(self.extra.into_iter().map(str::to_owned));
        for keys in [
            &mut self.lineage.entry_keys,
            &mut self.lineage.mixed,
            &mut self.lineage.known_keys,
        ] {
            keys.sort_by(|left, right| left.encode_utf16().cmp(right.encode_utf16()));
        }
        self.lineage.digest = self.hash.finalize().into();
        self.lineage
    }
}

/// One pass in the order of the primary key: every row of a key stands together.
fn read(
    conn: &Connection,
    agent: &str,
    ids: &[String],
    extra_keys: &[String],
) -> rusqlite::Result<Lineage> {
    let mut resolver = Resolver {
        ids: ids.iter().map(String::as_str).collect(),
        extra: extra_keys.iter().map(String::as_str).collect(),
        lineage: Lineage {
            entry_keys: Vec::new(),
            mixed: Vec::new(),
            known_keys: Vec::new(),
            origin_rows: 0,
            digest: [0; 32],
        },
        hash: Sha256::new(),
    };
    if !query::has_table(conn, "memory_entry_origins")? {
        return Ok(resolver.finish());
    }
    let mut statement = conn.prepare(
        "SELECT entry_key, session_id FROM memory_entry_origins WHERE agent_id = ?1 ORDER BY entry_key, session_id",
    )?;
    let mut rows = statement.query([agent])?;
    let mut entry: Option<Entry> = None;
    while let Some(row) = rows.next()? {
        let (key, session) = (query::text(row, 0)?, query::text(row, 1)?);
        let started = entry.take();
        let mut current = match started {
            Some(entry) if entry.key == key => entry,
            finished => {
                if let Some(finished) = finished {
                    resolver.add(finished);
                }
                Entry {
                    key,
                    sessions: Vec::new(),
                }
            }
        };
        current.sessions.push(session);
        entry = Some(current);
    }
    if let Some(last) = entry {
        resolver.add(last);
    }
    Ok(resolver.finish())
}

fn join(conn: &Connection, agent: &str, keys: &[String], ids: &[String]) -> rusqlite::Result<u64> {
    if keys.is_empty() || !query::has_table(conn, "memory_entry_origins")? {
        return Ok(0);
    }
    let _keys = IdTable::fill(conn, "cenotaph_keys", keys)?;
    let _ids = IdTable::fill(conn, "cenotaph_ids", ids)?;
    let joined = conn.execute(
        "INSERT OR IGNORE INTO memory_entry_origins
             (entry_key, agent_id, session_id, session_key, origin_class, observed_at)
         SELECT joined.id, known.agent_id, known.session_id, known.session_key, known.origin_class, known.observed_at
         FROM temp.cenotaph_keys AS joined,
              (SELECT * FROM memory_entry_origins
               WHERE agent_id = ?1 AND session_id IN (SELECT id FROM temp.cenotaph_ids)
               ORDER BY session_id, entry_key LIMIT 1) AS known",
        [agent],
    )?;
    Ok(joined as u64)
}

fn delete(conn: &Connection, agent: &str, keys: &[String]) -> rusqlite::Result<u64> {
    if !query::has_table(conn, "memory_entry_origins")? {
        return Ok(0);
    }
    let _keys = IdTable::fill(conn, "cenotaph_keys", keys)?;
    let sql = "DELETE FROM memory_entry_origins WHERE agent_id = ?1 AND entry_key IN (SELECT id FROM temp.cenotaph_keys)";
    Ok(conn.execute(sql, [agent])? as u64)
}
