//! The workspace lock that OpenClaw and Cenotaph share: a row of the plugin state.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Error, Result};
use crate::store::json::{self, Members};
use crate::store::{Store, query};

const RETRY: Duration = Duration::from_millis(40);
/// Age from which the host takes a lock over when it cannot make out its owner, in milliseconds.
const STALE_MS: i64 = 60_000;
/// The boot time is known to the second only.
const CLOCK_MARGIN_MS: i64 = 2_000;

/// Start time of this process in clock ticks since boot (field 22 of `/proc/self/stat`): what the lock row records as
/// `ownerStartTime`. `None` where `/proc` does not tell.
pub fn own_start() -> Option<f64> {
    start_ticks(std::process::id()).map(to_f64)
}

impl Store {
    /// Takes the lock of a workspace (SHA-256 hex of its path) for `owner` (`<pid>:<uuid>`), trying every 40 ms for up
    /// to `wait_ms`. `now_ms` is the time of the call. The lock of a process that is provably gone is taken over at once;
    /// one whose owner cannot be made out, after 60 s.
    ///
    /// # Errors
    /// [`Error::Locked`] in the host's words when the time is up; [`Error::Interrupted`] when `cancel` is set.
    pub fn lock_workspace(
        &self,
        workspace_key: &str,
        owner: &str,
        owner_start: Option<f64>,
        now_ms: i64,
        wait_ms: u32,
        cancel: &AtomicBool,
    ) -> Result<()> {
        let began = Instant::now();
        let wait = Duration::from_millis(u64::from(wait_ms));
        let local = !is_remote(self.path());
        loop {
            let waited = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
            let claim = Claim {
                workspace_key,
                owner,
                owner_start,
                now_ms: now_ms.saturating_add(waited),
                local,
            };
            let Some(holder) = self.try_lock(&claim)? else {
                return Ok(());
            };
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if began.elapsed() >= wait {
                return Err(timed_out(workspace_key, &holder));
            }
            std::thread::sleep(RETRY);
        }
    }

    /// Gives the lock back. False when `owner` no longer held it.
    pub fn unlock_workspace(&self, workspace_key: &str, owner: &str) -> Result<bool> {
        self.write("unlock", |conn| {
            release(conn, workspace_key, owner).map_err(|error| self.explain(error))
        })
    }

    /// The present holder, or `None` when the lock is ours now.
    fn try_lock(&self, claim: &Claim) -> Result<Option<String>> {
        // Waiting readers must not take the write lock 25 times a second.
        let seen = self.sql(|conn| holder(conn, claim.workspace_key))?;
        if let Some(found) = seen.as_deref().filter(|found| !claim.may_take_over(found)) {
            return Ok(Some(owner_of(found)));
        }
        self.write("lock", |conn| {
            let found = holder(conn, claim.workspace_key).map_err(|error| self.explain(error))?;
            if let Some(found) = found.as_deref().filter(|found| !claim.may_take_over(found)) {
                return Ok(Some(owner_of(found)));
            }
            put(conn, claim).map_err(|error| self.explain(error))?;
            Ok(None)
        })
    }
}

fn timed_out(workspace_key: &str, holder: &str) -> Error {
    Error::Locked(format!(
        "Timed out waiting for memory workspace lock at plugin-state:memory-core/short-term-locks/{workspace_key} (held by {holder})"
    ))
}

struct Claim<'a> {
    workspace_key: &'a str,
    owner: &'a str,
    owner_start: Option<f64>,
    now_ms: i64,
    /// Do process ids in the row belong to this machine?
    local: bool,
}

impl Claim<'_> {
    /// A living owner keeps its lock however long it takes. The host also steals, after 60 s, the lock of a living
    /// process with another start time than recorded: such a process began after the lock was taken, which is checked
    /// here by time, so that nothing depends on the unit in which the host records start times.
    fn may_take_over(&self, row: &str) -> bool {
        let members = Members::parse(row);
        let acquired = members
            .as_ref()
            .and_then(|value| value.number("acquiredAt"));
        let stale = acquired.is_none_or(|at| to_f64(self.now_ms) - at > to_f64(STALE_MS));
        let Some(pid) = owner_of(row)
            .split(':')
            .next()
            .and_then(|pid| pid.parse().ok())
        else {
            return stale;
        };
        if !self.local && !stale {
            return false;
        }
        let Some(ticks) = start_ticks(pid) else {
            return is_absent(pid);
        };
        let recorded = members
            .as_ref()
            .and_then(|value| value.number("ownerStartTime"));
        if recorded.is_some_and(|recorded| (recorded - to_f64(ticks)).abs() < 0.5) {
            return false;
        }
        match (acquired, start_ms(ticks)) {
            (Some(acquired), Some(start)) => to_f64(start - CLOCK_MARGIN_MS) > acquired,
            _ => false,
        }
    }
}

/// Counts and times in this module are far below 2^53.
#[allow(clippy::cast_precision_loss)]
fn to_f64(number: i64) -> f64 {
    number as f64
}

fn owner_of(row: &str) -> String {
    Members::parse(row)
        .and_then(|value| value.text("owner"))
        .unwrap_or_default()
}

fn holder(conn: &Connection, workspace_key: &str) -> rusqlite::Result<Option<String>> {
    conn.query_row(
        "SELECT value_json FROM plugin_state_entries
         WHERE plugin_id = 'memory-core' AND namespace = 'short-term-locks' AND entry_key = ?1",
        [workspace_key],
        |row| query::text(row, 0),
    )
    .optional()
}

fn put(conn: &Connection, claim: &Claim) -> rusqlite::Result<()> {
    let start = claim
        .owner_start
        .map(|start| format!(",\"ownerStartTime\":{start}"));
    let value = format!(
        "{{\"owner\":{},\"acquiredAt\":{}{}}}",
        json::quote(claim.owner.as_bytes()),
        claim.now_ms,
        start.unwrap_or_default()
    );
    conn.execute(
        "INSERT INTO plugin_state_entries (plugin_id, namespace, entry_key, value_json, created_at, expires_at)
         VALUES ('memory-core', 'short-term-locks', ?1, ?2, ?3, NULL)
         ON CONFLICT (plugin_id, namespace, entry_key)
         DO UPDATE SET value_json = excluded.value_json, created_at = excluded.created_at",
        params![claim.workspace_key, value, claim.now_ms],
    )
    .map(|_| ())
}

fn release(conn: &Connection, workspace_key: &str, owner: &str) -> rusqlite::Result<bool> {
    if holder(conn, workspace_key)?.is_none_or(|row| owner_of(&row) != owner) {
        return Ok(false);
    }
    conn.execute(
        "DELETE FROM plugin_state_entries
         WHERE plugin_id = 'memory-core' AND namespace = 'short-term-locks' AND entry_key = ?1",
        [workspace_key],
    )
    .map(|rows| rows == 1)
}

/// Is there certainly no process of this id? Without `/proc` nothing is certain.
fn is_absent(pid: u32) -> bool {
    Path::new("/proc/self/stat").exists() && !Path::new(&format!("/proc/{pid}")).exists()
}

/// Field 22 of `/proc/<pid>/stat`. The second field is the program name in parentheses and may hold anything.
fn start_ticks(pid: u32) -> Option<i64> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Clock ticks since boot as milliseconds since the epoch.
fn start_ms(ticks: i64) -> Option<i64> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let boot: i64 = stat
        .lines()
        .find_map(|line| line.strip_prefix("btime "))?
        .trim()
        .parse()
        .ok()?;
    let per_second = i64::try_from(rustix::param::clock_ticks_per_second())
        .ok()
        .filter(|&ticks| ticks > 0)?;
    Some(boot * 1000 + ticks * 1000 / per_second)
}

/// On a file system that several machines share, a process id says nothing about this one.
fn is_remote(path: &Path) -> bool {
    const REMOTE: [u32; 7] = [
        0x6969,      // NFS
        0xFF53_4D42, // CIFS
        0xFE53_4D42, // SMB2
        0x517B,      // SMB
        0x6573_5546, // FUSE: sshfs and the like
        0x00C3_6400, // Ceph
        0x0102_1997, // 9P
    ];
    let kind = rustix::fs::statfs(path).map(|found| found.f_type);
    // Only the low 32 bits are the number; their type differs between platforms.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    kind.is_ok_and(|kind| REMOTE.contains(&(kind as u32)))
}
