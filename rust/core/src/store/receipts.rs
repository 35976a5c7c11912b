//! What erasures did: rows that are only ever added, each one sealed with the hash of the one before.
//!
//! A row is written in the transaction of the deletion that it tells of. It holds counts and keyed hashes: no text, and
//! nobody's identifier in clear. Both databases have a chain of their own.

use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;

use crate::error::Result;
use crate::store::{Store, ddl, query};

/// What a chain begins with in place of a previous hash.
const ORIGIN: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Which erasure a deletion belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Names the erasure in every row that tells of it.
    pub id: String,
    /// Agent.
    pub agent: String,
    /// Milliseconds since the epoch.
    pub now_ms: i64,
    /// JSON object that is written with the tombstones: what was selected, as keyed hashes.
    pub body: String,
    /// Keyed hashes of what must vanish, written along.
    pub shingles: Vec<u8>,
}

/// How far an erasure had come when a row was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Tombstones are set; the row says what was selected and keeps the keyed hashes of what must vanish.
    Begun,
    /// Rows were deleted; the row says how many.
    Deleted,
    /// Everything is gone and was looked for in vain.
    Completed,
}

impl Stage {
    /// As it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Deleted => "deleted",
            Self::Completed => "completed",
        }
    }
}

/// One link of the chain, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Position in the chain, from 1.
    pub seq: i64,
    /// Which erasure it tells of.
    pub receipt: String,
    /// Agent.
    pub agent: String,
    /// `begun`, `deleted` or `completed`.
    pub stage: String,
    /// Milliseconds since the epoch.
    pub created_at: i64,
    /// JSON object: counts, keyed hashes.
    pub body: String,
    /// Hash of the link before, in hex.
    pub previous: String,
    /// SHA-256, in hex, of the canonical JSON (RFC 8785) of everything above and of the hash of the shingles.
    pub hash: String,
}

/// The first link that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    /// Its position.
    pub seq: i64,
    /// What is the matter with it.
    pub reason: &'static str,
}

impl Store {
    /// From now on every deletion through this store adds a link, in its own transaction.
    pub fn keep_receipt(&self, receipt: Receipt) {
        *self.receipt.borrow_mut() = Some(receipt);
    }

    /// Adds the link that says of the erasure `id` that all is gone and was looked for in vain, unless another run has
    /// added it meanwhile: two that delete the same at the same time share a receipt.
    pub fn complete_receipt(&self, id: &str, agent: &str, body: &str, now_ms: i64) -> Result<()> {
        let receipt = Receipt {
            id: id.to_owned(),
            agent: agent.to_owned(),
            now_ms,
            ..Receipt::default()
        };
        self.write("completed", |conn| {
            let complete = || {
                if is_completed(conn, id)? {
                    return Ok(());
                }
                append(conn, &receipt, Stage::Completed, body, &[])
            };
            complete().map_err(|error| self.explain(error))
        })
    }

    /// Within the transaction of the tombstones.
    pub(crate) fn receipt_begun(&self, conn: &Connection) -> rusqlite::Result<()> {
        match &*self.receipt.borrow() {
            Some(kept) => append(conn, kept, Stage::Begun, &kept.body, &kept.shingles),
            None => Ok(()),
        }
    }

    /// Within the transaction of a deletion; a deletion of nothing needs no link.
    pub(crate) fn receipt_deleted(
        &self,
        conn: &Connection,
        counts: &[(&str, u64)],
    ) -> rusqlite::Result<()> {
        let Some(kept) = &*self.receipt.borrow() else {
            return Ok(());
        };
        let body: serde_json::Map<String, serde_json::Value> = counts
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|&(name, count)| (name.to_owned(), count.into()))
            .collect();
        if body.is_empty() {
            return Ok(());
        }
        let body = serde_json::Value::Object(body).to_string();
        append(conn, kept, Stage::Deleted, &body, &[])
    }

    /// All links, in order.
    pub fn receipts(&self) -> Result<Vec<Link>> {
        self.sql(|conn| {
            if !query::has_table(conn, "cenotaph_receipts")? {
                return Ok(Vec::new());
            }
            conn.prepare(LINKS)?.query_map([], link)?.collect()
        })
    }

    /// Keyed hashes of what the erasures with these ids had to remove, one block for each begun run.
    pub fn receipt_shingles(&self, ids: &[String]) -> Result<Vec<Vec<u8>>> {
        self.sql(|conn| {
            if !query::has_table(conn, "cenotaph_receipts")? {
                return Ok(Vec::new());
            }
            let mut statement = conn.prepare(
                "SELECT shingles FROM cenotaph_receipt_shingles WHERE seq IN
                     (SELECT seq FROM cenotaph_receipts WHERE receipt_id = ?1) ORDER BY seq",
            )?;
            let mut found = Vec::new();
            for id in ids {
                for row in statement.query_map([id], |row| query::bytes(row, 0))? {
                    found.push(row?);
                }
            }
            Ok(found)
        })
    }

    /// Computes every hash again; the first link that does not hold, if there is one. Links that were cut off at the end
    /// leave a chain that holds: only somebody who kept its last hash (a certificate) can tell.
    pub fn check_receipts(&self) -> Result<Option<Break>> {
        let links = self.receipts()?;
        self.sql(|conn| {
            let mut previous = ORIGIN.to_owned();
            for (expected, link) in (1..).zip(&links) {
                if let Some(reason) = fault(conn, link, expected, &previous)? {
                    return Ok(Some(Break {
                        seq: link.seq,
                        reason,
                    }));
                }
                previous.clone_from(&link.hash);
            }
            Ok(None)
        })
    }
}

const LINKS: &str = "SELECT seq, receipt_id, agent_id, stage, created_at, body, previous, hash
    FROM cenotaph_receipts ORDER BY seq";

fn is_completed(conn: &Connection, id: &str) -> rusqlite::Result<bool> {
    if !query::has_table(conn, "cenotaph_receipts")? {
        return Ok(false);
    }
    conn.prepare("SELECT 1 FROM cenotaph_receipts WHERE receipt_id = ?1 AND stage = 'completed'")?
        .exists([id])
}

fn link(row: &rusqlite::Row) -> rusqlite::Result<Link> {
    Ok(Link {
        seq: query::number(row, 0)?,
        receipt: query::text(row, 1)?,
        agent: query::text(row, 2)?,
        stage: query::text(row, 3)?,
        created_at: query::number(row, 4)?,
        body: query::text(row, 5)?,
        previous: query::text(row, 6)?,
        hash: query::text(row, 7)?,
    })
}

fn fault(
    conn: &Connection,
    link: &Link,
    expected: i64,
    previous: &str,
) -> rusqlite::Result<Option<&'static str>> {
    if link.seq != expected {
        return Ok(Some("a link before it is missing"));
    }
    if link.previous != previous {
        return Ok(Some("it does not follow the link before it"));
    }
    let shingles: Option<Vec<u8>> = conn
        .prepare_cached("SELECT shingles FROM cenotaph_receipt_shingles WHERE seq = ?1")?
        .query_row([link.seq], |row| query::bytes(row, 0))
        .optional()?;
    let sealed = seal(link, &shingles.unwrap_or_default());
    Ok((sealed != link.hash).then_some("its content was altered"))
}

/// Adds a link to the chain within the caller's transaction. Empty `shingles` are not stored.
fn append(
    conn: &Connection,
    receipt: &Receipt,
    stage: Stage,
    body: &str,
    shingles: &[u8],
) -> rusqlite::Result<()> {
    conn.execute_batch(ddl::RECEIPTS)?;
    let last: Option<(i64, String)> = conn
        .prepare_cached("SELECT seq, hash FROM cenotaph_receipts ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, query::text(row, 1)?)))
        .optional()?;
    let (seq, previous) = last.unwrap_or_else(|| (0, ORIGIN.to_owned()));
    let mut link = Link {
        seq: seq + 1,
        receipt: receipt.id.clone(),
        agent: receipt.agent.clone(),
        stage: stage.name().to_owned(),
        created_at: receipt.now_ms,
        body: body.to_owned(),
        previous,
        hash: String::new(),
    };
    link.hash = seal(&link, shingles);
    conn.prepare_cached(
        "INSERT INTO cenotaph_receipts (seq, receipt_id, agent_id, stage, created_at, body, previous, hash)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        link.seq,
        link.receipt,
        link.agent,
        link.stage,
        link.created_at,
        link.body,
        link.previous,
        link.hash
    ])?;
    if !shingles.is_empty() {
        conn.prepare_cached(
            "INSERT INTO cenotaph_receipt_shingles (seq, shingles) VALUES (?1, ?2)",
        )?
        .execute(params![link.seq, shingles])?;
    }
    Ok(())
}

/// Keys in ascending order and no blanks: the members are text and whole numbers, so this is canonical JSON.
fn seal(link: &Link, shingles: &[u8]) -> String {
    let content = json!({
        "agent": link.agent,
        "body": link.body,
        "createdAt": link.created_at,
        "previous": link.previous,
        "receipt": link.receipt,
        "seq": link.seq,
        "shingles": query::sha256_hex(shingles),
        "stage": link.stage,
    });
    query::sha256_hex(content.to_string().as_bytes())
}
