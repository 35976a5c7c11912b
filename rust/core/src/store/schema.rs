//! Whose database is it, which version, and the tables of our own.

use std::fs::{DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Error, Result};
use crate::store::connection::{Kind, Store};
use crate::store::files::corrupt;
use crate::store::{ddl, query};

/// `CENO` in ASCII: `PRAGMA application_id` of our own databases.
const APPLICATION_ID: i64 = 0x4345_4E4F;
/// Version of our own databases.
const NATIVE_VERSION: i64 = 1;
/// Version of the host's agent databases.
const AGENT_VERSION: i64 = 23;
/// Version of the host's shared database.
const STATE_VERSION: i64 = 18;

/// What a database is opened as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role<'a> {
    /// Memory and sessions of this agent.
    Agent(&'a str),
    /// Sessions of any agent.
    Sessions,
    /// Plugin state.
    State,
}

impl Role<'_> {
    fn name(self) -> &'static str {
        match self {
            Role::Agent(_) | Role::Sessions => "agent",
            Role::State => "global",
        }
    }

    fn host_version(self) -> i64 {
        match self {
            Role::Agent(_) | Role::Sessions => AGENT_VERSION,
            Role::State => STATE_VERSION,
        }
    }
}

/// Row `primary` of `schema_meta`.
struct Owner {
    role: String,
    version: i64,
    agent: Option<String>,
}

/// Checks version and ownership. `None` when there is nothing in the database.
pub(crate) fn check(store: &Store, role: Role) -> Result<Option<Kind>> {
    let application: i64 =
        store.sql(|conn| conn.query_row("PRAGMA application_id", [], |row| row.get(0)))?;
    let version: i64 =
        store.sql(|conn| conn.query_row("PRAGMA user_version", [], |row| row.get(0)))?;
    let tables = store.sql(|conn| query::count(conn, "SELECT count(*) FROM main.sqlite_master"))?;
    if version == 0 && tables == 0 {
        return Ok(None);
    }
    let kind = if application == APPLICATION_ID {
        Kind::Native
    } else {
        Kind::Host
    };
    if kind == Kind::Host && version == 0 {
        return check_unversioned(store, role);
    }
    let wanted = match kind {
        Kind::Native => NATIVE_VERSION,
        Kind::Host => role.host_version(),
    };
    check_version(store.path(), kind, role, version, wanted)?;
    let Some(owner) = owner(store)? else {
        return match role {
            Role::Agent(_) | Role::Sessions => Ok(None),
            Role::State => Err(corrupt(
                store.path(),
                "its ownership row in schema_meta is missing",
            )),
        };
    };
    check_owner(store.path(), role, &owner)?;
    check_version(store.path(), kind, role, owner.version, wanted)?;
    Ok(Some(kind))
}

/// The host accepts a shared database that another tool made with nothing but this table.
fn check_unversioned(store: &Store, role: Role) -> Result<Option<Kind>> {
    let entries = store.sql(|conn| query::has_table(conn, "plugin_state_entries"))?;
    if matches!(role, Role::State) && entries {
        return Ok(Some(Kind::Host));
    }
    Err(corrupt(
        store.path(),
        "it is a database, but neither OpenClaw's nor Cenotaph's",
    ))
}

fn check_version(path: &Path, kind: Kind, role: Role, found: i64, wanted: i64) -> Result<()> {
    if found == wanted {
        return Ok(());
    }
    let advice = match (kind, role) {
        (Kind::Native, _) if found > wanted => {
            "it was written by a newer Cenotaph: upgrade this one"
        }
        (Kind::Native, _) => "it was written by an older Cenotaph: open it with that one first",
        (Kind::Host, _) if found > wanted => "it was written by a newer OpenClaw: upgrade Cenotaph",
        (Kind::Host, Role::State) => "run openclaw doctor --fix first",
        (Kind::Host, _) if found < 17 => {
            "it needs the media migration of OpenClaw: start OpenClaw once, then run openclaw doctor --fix"
        }
        (Kind::Host, _) => "run openclaw doctor --fix first",
    };
    Err(Error::Version {
        path: path.to_path_buf(),
        found,
        supported: wanted,
        advice,
    })
}

fn check_owner(path: &Path, role: Role, owner: &Owner) -> Result<()> {
    let wanted = role.name();
    if owner.role != wanted {
        let reason = format!(
            "its role is {:?}, expected {wanted:?}: it is not the database that belongs here",
            owner.role
        );
        return Err(corrupt(path, &reason));
    }
    match (role, owner.agent.as_deref()) {
        (Role::Agent(agent), found) if found != Some(agent) => Err(Error::Refused(format!(
            "{} belongs to agent {:?}, not to agent {agent:?}",
            path.display(),
            found.unwrap_or_default()
        ))),
        _ => Ok(()),
    }
}

fn owner(store: &Store) -> Result<Option<Owner>> {
    store.sql(|conn| {
        if !query::has_table(conn, "schema_meta")? {
            return Ok(None);
        }
        let sql =
            "SELECT role, schema_version, agent_id FROM schema_meta WHERE meta_key = 'primary'";
        conn.query_row(sql, [], |row| {
            Ok(Owner {
                role: query::text(row, 0)?,
                version: query::number(row, 1)?,
                agent: query::optional_text(row, 2)?,
            })
        })
        .optional()
    })
}

impl Store {
    /// Agent named by the ownership row, if there is one.
    pub fn schema_agent(&self) -> Option<String> {
        owner(self).ok().flatten().and_then(|owner| owner.agent)
    }

    /// Makes both native databases below `state_dir` (new folders 0700, files 0600). One that has content stays as it is.
    pub fn create_native(state_dir: &Path, agent: &str, now_ms: i64) -> Result<()> {
        let agent_path = state_dir
            .join("agents")
            .join(agent)
            .join("agent/openclaw-agent.sqlite");
        create(&agent_path, |conn| {
            conn.execute_batch(ddl::META)?;
            conn.execute_batch(ddl::TOMBSTONES)?;
            conn.execute_batch(ddl::ORIGINS)?;
            conn.execute_batch(ddl::AGENT)?;
            own(conn, Role::Agent(agent), Some(agent), now_ms)
        })?;
        create(&state_dir.join("state/openclaw.sqlite"), |conn| {
            conn.execute_batch(ddl::META)?;
            conn.execute_batch(ddl::STATE)?;
            own(conn, Role::State, None, now_ms)
        })
    }

    /// Makes the smallest shared database that OpenClaw accepts and upgrades: version 0 with `plugin_state_entries`
    /// alone. One that has content stays as it is.
    pub fn create_state_minimal(path: &Path) -> Result<()> {
        create(path, |conn| conn.execute_batch(ddl::STATE))
    }
}

/// Marks a database as ours.
fn own(conn: &Connection, role: Role, agent: Option<&str>, now_ms: i64) -> rusqlite::Result<()> {
    conn.execute(
        "INSERT INTO schema_meta (meta_key, role, schema_version, agent_id, app_version, created_at, updated_at)
         VALUES ('primary', ?1, ?2, ?3, ?4, ?5, ?5)",
        params![role.name(), NATIVE_VERSION, agent, concat!("cenotaph ", env!("CARGO_PKG_VERSION")), now_ms],
    )?;
    conn.execute_batch(&format!(
        "PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {NATIVE_VERSION}"
    ))
}

/// Makes a database in one transaction, so that a reader sees none or all of it.
fn create(path: &Path, fill: impl FnOnce(&Connection) -> rusqlite::Result<()>) -> Result<()> {
    if let Some(folder) = path.parent() {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|source| Error::io(folder, source))?;
    }
    match OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
    {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            if std::fs::metadata(path).is_ok_and(|found| found.len() > 0) {
                return Ok(());
            }
        }
        made => drop(made.map_err(|source| Error::io(path, source))?),
    }
    let store = Store::open_new(path)?;
    if store.sql(is_filled)? {
        return Ok(());
    }
    store.sql(|conn| {
        conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL")
    })?;
    store.write("create", |conn| {
        let filled = is_filled(conn).and_then(|done| if done { Ok(()) } else { fill(conn) });
        filled.map_err(|error| store.explain(error))
    })?;
    store.close()
}

fn is_filled(conn: &Connection) -> rusqlite::Result<bool> {
    Ok(query::count(conn, "SELECT count(*) FROM main.sqlite_master")? > 0)
}
