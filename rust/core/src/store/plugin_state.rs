//! Plugin state of a workspace: short-term entries, ingestion state, backups, rewind rows.

use std::collections::{BTreeSet, HashSet};

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Error, Result};
use crate::store::json::{self, Members};
use crate::store::query::{self, sha256, sha256_hex};
use crate::store::{Ask, Store};

pub(crate) const PLUGIN: &str = "memory-core";
const SHORT_TERM: &str = "short-term-recall";
const BACKUPS: &str = "dreaming-memory-backups";

/// What a plan of the plugin state needs to know about the selection.
pub struct StateAsk<'a> {
    /// SHA-256 hex of the absolute workspace path.
    pub workspace_key: &'a str,
    /// Agent.
    pub agent: &'a str,
    /// Selected entry keys.
    pub entry_keys: &'a HashSet<String>,
    /// Does this text name a selected session?
    pub refs_named: Ask<'a>,
    /// Does the entry of this key have an origin?
    pub is_known: &'a dyn Fn(&str) -> bool,
    /// Is this file name a transcript of a selected session?
    pub run_is_selected: Ask<'a>,
    /// Text without what must go, or `None` when nothing must.
    pub scrub: &'a dyn Fn(&[u8]) -> Option<Vec<u8>>,
}

/// Rows of the plugin state by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateCounts {
    /// Short-term entries (their phase signals go along, uncounted).
    pub short_term_entries: u64,
    /// Distinct scopes of seen hashes.
    pub seen_hash_scopes: u64,
    /// Backups with a changed text.
    pub backups: u64,
}

/// What a plan knows of what a row says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It was read: what goes does not stay in it.
    Read,
    /// It was read, and it says what goes: its origins are other sessions, who said the same.
    Survivors,
    /// It was not read.
    Unread,
}

/// Rows that must go or change.
#[derive(Clone, Debug, Default)]
pub struct StatePlan {
    /// What applying will do.
    pub counts: StateCounts,
    /// Rows that could not be decoded, as `<namespace>/<row key>`: nothing is known about them and they stay.
    pub failures: Vec<String>,
    changes: Vec<Change>,
    workspace_key: String,
    /// Row keys of short-term entries that say something which goes, and stay: their origins are other sessions.
    of_survivors: HashSet<String>,
}

/// One row that goes or changes.
#[derive(Clone, Debug)]
struct Change {
    kind: Kind,
    namespace: &'static str,
    row_key: String,
    /// Hash of the value that the plan saw.
    seen: [u8; 32],
    /// Row key and value to put; `None` deletes the row.
    put: Option<(String, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    ShortTerm,
    Seen(String),
    Backup,
    Uncounted,
}

/// A decoded row.
struct Entry<'a> {
    row_key: &'a str,
    envelope: &'a Members<'a>,
    /// Logical key.
    key: String,
    value: Members<'a>,
}

impl Store {
    /// One pass over each namespace of the workspace. Writes nothing.
    pub fn plan_state(&self, ask: &StateAsk) -> Result<StatePlan> {
        self.sql(|conn| {
            if !query::has_table(conn, "plugin_state_entries")? {
                return Ok(StatePlan::default());
            }
            let mut planner = Planner {
                conn,
                ask,
                plan: StatePlan {
                    workspace_key: ask.workspace_key.to_owned(),
                    ..StatePlan::default()
                },
                dropped_keys: HashSet::new(),
            };
            planner.read(SHORT_TERM, Planner::short_term)?;
            planner.read("short-term-phase-signals", Planner::phase_signal)?;
            planner.read("dreaming-session-ingestion-files", Planner::ingested_file)?;
            planner.read("dreaming-session-ingestion-seen", Planner::seen_hashes)?;
            planner.read("session-backfill-rewind", Planner::rewind)?;
            planner.read(BACKUPS, Planner::backup)?;
            planner.plan.counts = count(planner.plan.changes.iter().map(|change| &change.kind));
            Ok(planner.plan)
        })
    }

    /// Applies a plan in one transaction; only changed rows are written, with `now_ms` as their time. The counts are
    /// measured.
    ///
    /// # Errors
    /// [`Error::LineageChanged`] when one of the rows changed since the plan; nothing is written then.
    pub fn apply_state(&self, plan: &StatePlan, now_ms: i64) -> Result<StateCounts> {
        if plan.changes.is_empty() {
            return Ok(StateCounts::default());
        }
        self.write("state", |conn| {
            let mut done = Vec::new();
            for change in &plan.changes {
                let outcome = apply(conn, change, now_ms).map_err(|error| self.explain(error))?;
                match outcome {
                    Outcome::Done => done.push(&change.kind),
                    Outcome::Gone => {}
                    Outcome::Changed => return Err(Error::LineageChanged),
                }
            }
            let counts = count(done.into_iter());
            self.receipt_deleted(
                conn,
                &[
                    ("backups", counts.backups),
                    ("seenHashScopes", counts.seen_hash_scopes),
                    ("shortTermEntries", counts.short_term_entries),
                ],
            )
            .map_err(|error| self.explain(error))?;
            Ok(counts)
        })
    }
}

impl StatePlan {
    /// Namespace and row key of each row that goes or changes, with the value that it gets.
    pub(crate) fn changes(&self) -> impl Iterator<Item = ((&str, &str), Option<&str>)> {
        self.changes.iter().map(|change| {
            let put = change.put.as_ref().map(|(_, value)| value.as_str());
            ((change.namespace, change.row_key.as_str()), put)
        })
    }

    /// What the plan knew of a row.
    pub(crate) fn judgement(&self, namespace: &str, row_key: &str) -> Judgement {
        let own = row_key.strip_prefix(self.workspace_key.as_str());
        if self.of_survivors.contains(row_key) {
            Judgement::Survivors
        } else if own.is_some_and(|rest| rest.starts_with(':'))
            && [SHORT_TERM, BACKUPS].contains(&namespace)
        {
            Judgement::Read
        } else {
            Judgement::Unread
        }
    }
}

fn count<'a>(kinds: impl Iterator<Item = &'a Kind>) -> StateCounts {
    let mut counts = StateCounts::default();
    let mut scopes = BTreeSet::new();
    for kind in kinds {
        match kind {
            Kind::ShortTerm => counts.short_term_entries += 1,
            Kind::Backup => counts.backups += 1,
            Kind::Seen(scope) => {
                scopes.insert(scope.as_str());
            }
            Kind::Uncounted => {}
        }
    }
    counts.seen_hash_scopes = scopes.len() as u64;
    counts
}

enum Outcome {
    Done,
    /// The row is not there any more.
    Gone,
    /// The row has another value than the plan saw.
    Changed,
}

fn apply(conn: &Connection, change: &Change, now_ms: i64) -> rusqlite::Result<Outcome> {
    let row = params![PLUGIN, change.namespace, change.row_key];
    let stored: Option<Vec<u8>> = conn
        .prepare_cached(
            "SELECT value_json FROM plugin_state_entries WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key = ?3",
        )?
        .query_row(row, |row| query::bytes(row, 0))
        .optional()?;
    match stored {
        None => return Ok(Outcome::Gone),
        Some(value) if sha256(&value) != change.seen => return Ok(Outcome::Changed),
        Some(_) => {}
    }
    let stays = change
        .put
        .as_ref()
        .is_some_and(|(key, _)| *key == change.row_key);
    if !stays {
        conn.prepare_cached(
            "DELETE FROM plugin_state_entries WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key = ?3",
        )?
        .execute(row)?;
    }
    if let Some((key, value)) = &change.put {
        conn.prepare_cached(
            "INSERT INTO plugin_state_entries (plugin_id, namespace, entry_key, value_json, created_at, expires_at)
             VALUES (?1, ?2, ?3, ?4, ?5, NULL)
             ON CONFLICT (plugin_id, namespace, entry_key)
             DO UPDATE SET value_json = excluded.value_json, created_at = excluded.created_at",
        )?
        .execute(params![PLUGIN, change.namespace, key, value, now_ms])?;
    }
    Ok(Outcome::Done)
}

struct Planner<'a> {
    conn: &'a Connection,
    ask: &'a StateAsk<'a>,
    plan: StatePlan,
    /// Keys of short-term entries that go.
    dropped_keys: HashSet<String>,
}

/// What happens to a row.
type Fate = Option<(Kind, Option<(String, String)>)>;

impl Planner<'_> {
    /// Judges each row of the workspace in one namespace.
    fn read(
        &mut self,
        namespace: &'static str,
        judge: impl Fn(&mut Self, &Entry) -> Fate,
    ) -> rusqlite::Result<()> {
        // `;` follows `:` in ASCII: the range holds all keys that begin with the workspace and a colon.
        let from = format!("{}:", self.ask.workspace_key);
        let to = format!("{};", self.ask.workspace_key);
        let mut statement = self.conn.prepare(
            "SELECT entry_key, value_json FROM plugin_state_entries
             WHERE plugin_id = ?1 AND namespace = ?2 AND entry_key >= ?3 AND entry_key < ?4 ORDER BY entry_key",
        )?;
        let mut rows = statement.query([PLUGIN, namespace, &from, &to])?;
        while let Some(row) = rows.next()? {
            let row_key = query::text(row, 0)?;
            let value = query::bytes(row, 1)?;
            let Some(envelope) = std::str::from_utf8(&value).ok().and_then(Members::parse) else {
                self.plan.failures.push(format!("{namespace}/{row_key}"));
                continue;
            };
            // Readers skip rows of another workspace.
            if envelope.text("workspaceKey").as_deref() != Some(self.ask.workspace_key) {
                continue;
            }
            let decoded = envelope.text("key").zip(envelope.object("value"));
            let Some((key, members)) = decoded else {
                self.plan.failures.push(format!("{namespace}/{row_key}"));
                continue;
            };
            let entry = Entry {
                row_key: &row_key,
                envelope: &envelope,
                key,
                value: members,
            };
            if let Some((kind, put)) = judge(self, &entry) {
                let seen = sha256(&value);
                self.plan.changes.push(Change {
                    kind,
                    namespace,
                    row_key,
                    seen,
                    put,
                });
            }
        }
        Ok(())
    }

    fn short_term(&mut self, entry: &Entry) -> Fate {
        let own_key = entry.value.text("key");
        let keys: Vec<String> = std::iter::once(entry.key.clone()).chain(own_key).collect();
        let mut text = entry.value.bytes("path").unwrap_or_default();
        text.push(b'\n');
        let said = entry.value.bytes("snippet").unwrap_or_default();
        text.extend(&said);
        let is_selected = keys.iter().any(|key| self.ask.entry_keys.contains(key))
            || (self.ask.refs_named)(&text);
        if !is_selected {
            (self.ask.scrub)(&said)?;
            if keys.iter().any(|key| (self.ask.is_known)(key)) {
                let row_key = entry.row_key.to_owned();
                self.plan.of_survivors.insert(row_key);
                return None;
            }
        }
        self.dropped_keys.extend(keys);
        Some((Kind::ShortTerm, None))
    }

    fn phase_signal(&mut self, entry: &Entry) -> Fate {
        let own_key = entry.value.text("key");
        let goes = [Some(&entry.key), own_key.as_ref()]
            .into_iter()
            .flatten()
            .any(|key| self.ask.entry_keys.contains(key) || self.dropped_keys.contains(key));
        goes.then_some((Kind::Uncounted, None))
    }

    fn ingested_file(&mut self, entry: &Entry) -> Fate {
        self.names_session(entry.key.as_bytes())
            .then_some((Kind::Uncounted, None))
    }

    fn seen_hashes(&mut self, entry: &Entry) -> Fate {
        let scope = entry
            .value
            .text("scope")
            .unwrap_or_else(|| scope_of(&entry.key).to_owned());
        self.names_session(scope.as_bytes())
            .then_some((Kind::Seen(scope), None))
    }

    /// A row lists what a backfill is about to do again; candidates of selected sessions are taken out of it.
    fn rewind(&mut self, entry: &Entry) -> Fate {
        let candidates = entry.value.array("candidates")?;
        let kept: Vec<&str> = candidates
            .iter()
            .copied()
            .filter(|&raw| !self.is_candidate_selected(raw))
            .collect();
        if kept.len() == candidates.len() {
            return None;
        }
        if kept.is_empty() {
            return Some((Kind::Uncounted, None));
        }
        let list = format!("[{}]", kept.join(","));
        let key = sha256_hex(list.as_bytes());
        let value = entry.value.with(&[("candidates", &list)]);
        let json = entry
            .envelope
            .with(&[("key", &json::quote(key.as_bytes())), ("value", &value)]);
        let row_key = format!("{}:{}", self.ask.workspace_key, sha256_hex(key.as_bytes()));
        Some((Kind::Uncounted, Some((row_key, json))))
    }

    fn is_candidate_selected(&self, raw: &str) -> bool {
        Members::parse(raw).is_some_and(|candidate| {
            ["scope", "stateKey"]
                .iter()
                .filter_map(|name| candidate.bytes(name))
                .any(|text| self.names_session(&text))
        })
    }

    fn backup(&mut self, entry: &Entry) -> Fate {
        let Some(content) = entry.value.bytes("content") else {
            let row = format!("{BACKUPS}/{}", entry.row_key);
            self.plan.failures.push(row);
            return None;
        };
        let scrubbed = (self.ask.scrub)(&content)?;
        let hash = sha256_hex(&json::hashed_form(&scrubbed));
        let value = entry.value.with(&[
            ("content", &json::quote(&scrubbed)),
            ("contentHash", &json::quote(hash.as_bytes())),
        ]);
        let json = entry.envelope.with(&[("value", &value)]);
        Some((Kind::Backup, Some((entry.row_key.to_owned(), json))))
    }

    /// A scope or state key of a selected session, also one that names a transcript by its absolute path.
    fn names_session(&self, text: &[u8]) -> bool {
        if (self.ask.refs_named)(text) {
            return true;
        }
        let archive = format!("archive:{}:", self.ask.agent);
        [archive.as_bytes(), b"session-backfill:"]
            .iter()
            .filter_map(|prefix| text.strip_prefix(*prefix))
            .filter_map(|path| path.rsplit(|&byte| byte == b'/' || byte == b'\\').next())
            .any(|name| (self.ask.run_is_selected)(name))
    }
}

/// Scope of the logical key `<scope>:<index>`.
fn scope_of(key: &str) -> &str {
    key.rsplit_once(':').map_or(key, |(scope, _)| scope)
}
