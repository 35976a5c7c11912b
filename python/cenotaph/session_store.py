"""Where the sessions of an agent are looked up: `session.store` in all its forms.

Memory tables always live in the default database of the agent; only sessions and archives move.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TypeAlias

from cenotaph import _core
from cenotaph.archives import find_archive_files
from cenotaph.config import AgentConfig, Config
from cenotaph.errors import ConfigError
from cenotaph.layout import AGENT_DATABASE_NAME, absolute_path, agent_database, sessions_folder
from cenotaph.sessions import Session, Sessions, list_sessions
from cenotaph.transcript import jsonl_events

__all__ = ["Owner", "SessionStore", "archive_text", "events_of", "read_sessions", "session_store_of"]

Owner: TypeAlias = Callable[[Path], str | None]
"""Agent id that owns a database file, or None when nothing says so."""

AGENT_PLACEHOLDER = "{agentId}"
LOGICAL_NAME = "sessions.json"
DATABASE_SUFFIX = ".sqlite"


@dataclass(frozen=True, slots=True)
class SessionStore:
    """The resolved session store of one agent."""

    database: Path
    owner: str
    """Agent to which rows belong whose session key names no agent."""
    archive_folders: tuple[Path, ...]
    """Folders with transcript archives, without two names for one folder."""
    shared_folders: tuple[Path, ...] = ()
    """Those of them that other agents use too; unregistered archives in them need a row to count."""


def session_store_of(
    config: Config,
    agent: AgentConfig,
    state_dir: Path,
    *,
    registry_owner: Owner = lambda _: None,
    schema_owner: Owner = lambda _: None,
    env: Mapping[str, str] | None = None,
) -> SessionStore:
    """The session store of `agent`.

    `registry_owner` looks a database up among the registered agent databases, `schema_owner` in the
    database itself; the first that answers decides to whom a store with a name of its own belongs.
    Raises `ConfigError` when the file lies in the home of another agent.
    """
    logical = _logical_path(config, agent.id, state_dir, env)

    def owner_of(database: Path) -> str | None:
        return _agent_in_path(database) or registry_owner(database) or schema_owner(database)

    database = _database(logical, agent.id, owner_of)
    home_agent = _agent_in_path(database)
    if home_agent not in {None, agent.id}:
        message = f'The session store {database} belongs to agent "{home_agent}", not to "{agent.id}".'
        raise ConfigError(message)
    is_shared = _is_shared(config.session_store, logical, state_dir, agent.id)
    folders = _distinct((sessions_folder(state_dir, agent.id), logical.parent, _published_to(database)))
    return SessionStore(
        database=database,
        owner=_owner(database, agent, config, owner_of) if is_shared and database == logical else agent.id,
        archive_folders=folders,
        shared_folders=folders[1:] if is_shared else (),
    )


def _owner(database: Path, agent: AgentConfig, config: Config, owner_of: Owner) -> str:
    """Who owns a file that the configuration names outright, whichever agent asks."""
    return owner_of(database) or (config.default_agent or agent).id


def _logical_path(config: Config, agent: str, state_dir: Path, env: Mapping[str, str] | None) -> Path:
    text = (config.session_store or "").strip()
    if not text:
        return sessions_folder(state_dir, agent) / LOGICAL_NAME
    return absolute_path(text.replace(AGENT_PLACEHOLDER, agent), env)


def _database(logical: Path, agent: str, owner_of: Owner) -> Path:
    if logical.suffix == DATABASE_SUFFIX:
        return logical
    home = _agent_home(logical)
    if home:
        return home / "agent" / AGENT_DATABASE_NAME
    first = AGENT_DATABASE_NAME if logical.name == LOGICAL_NAME else f"{logical.stem}{DATABASE_SUFFIX}"
    family = _family(logical.with_name(first), agent)
    return next(path for path in family if owner_of(path) in {None, agent})


def _family(first: Path, agent: str) -> Iterator[Path]:
    """The names that an agent tries in turn, until no other agent owns the file."""
    yield first
    yield first.with_name(f"{first.stem}.{agent}{DATABASE_SUFFIX}")
    for number in count(2):
        yield first.with_name(f"{first.stem}.{agent}.{number}{DATABASE_SUFFIX}")


def _agent_home(logical: Path) -> Path | None:
    """`.../agents/<id>` when the path is `.../agents/<id>/sessions/sessions.json`."""
    home = logical.parent.parent
    return (
        home
        if logical.name == LOGICAL_NAME and logical.parent.name == "sessions" and home.parent.name == "agents"
        else None
    )


def _agent_in_path(database: Path) -> str | None:
    home = database.parent.parent
    inside = database.name == AGENT_DATABASE_NAME and database.parent.name == "agent"
    return home.name if inside and home.parent.name == "agents" else None


def _published_to(database: Path) -> Path:
    """Folder in which the host publishes the archives of a database."""
    return database.parent.with_name("sessions") if database.parent.name == "agent" else database.parent


def _is_shared(store: str | None, logical: Path, state_dir: Path, agent: str) -> bool:
    """Whether one fixed path stands for the sessions of every agent."""
    named = (store or "").strip()
    own_home = agent_database(state_dir, agent).parent.parent
    return bool(named) and AGENT_PLACEHOLDER not in named and not logical.is_relative_to(own_home)


def _distinct(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    seen: dict[str, Path] = {}
    for folder in folders:
        seen.setdefault(os.path.realpath(folder), folder)
    return tuple(seen.values())


# -- reading ------------------------------------------------------------------------------------


def read_sessions(store: _core.Store | None, location: SessionStore, agent: str) -> Sessions:
    """All sessions of `agent`: rows of its session store and archive files beside it.

    Raises `StoreError`. What cannot be read of one session is a refusal in the result.
    """
    files = find_archive_files(location.archive_folders, location.shared_folders)
    rows = (store.nodes(), store.windows(), store.participants(), store.archives()) if store else ((), (), (), ())
    found = list_sessions(*rows, agent=agent, owner=location.owner, files=files.files)
    return Sessions(found.sessions, (*found.refusals, *files.refusals))


def archive_text(store: _core.Store | None, session: Session) -> bytes:
    """The JSONL of an archived session, decompressed in memory; empty when there is none.

    Raises `StoreCorrupt` for damaged compressed data, `OSError`.
    """
    if session.archive_path is not None:
        return _core.archive_file_text(session.archive_path)
    if store is None or session.generation is None:
        return b""
    return store.archive_text(session.session_id, session.generation) or b""


def events_of(store: _core.Store | None, location: SessionStore, session: Session) -> Iterator[bytes]:
    """The transcript of a session as JSON events in order. Raises as `archive_text` does."""
    if session.source == "archived":
        yield from jsonl_events(archive_text(store, session))
    elif store is not None:
        yield from store.transcript(session.session_id, location.archive_folders) or ()
