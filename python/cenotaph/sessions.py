"""The sessions of one agent, from the rows of its store and the archive files beside it.

Damage is data here: a row that cannot be read becomes a refusal, and the rest is listed.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from cenotaph.archives import ArchiveFile
from cenotaph.errors import CenotaphError
from cenotaph.identity import Identity, parse_identity
from cenotaph.layout import canonical_agent_id
from cenotaph.schema import as_text, is_number, read_table
from cenotaph.transcript import is_cron_run_key, is_narrative_name, jsonl_events, project

__all__ = [
    "ArchiveRow",
    "Excluded",
    "NodeRow",
    "ParticipantRow",
    "Session",
    "SessionKind",
    "Sessions",
    "WindowRow",
    "excluded_session_ids",
    "list_sessions",
]

SessionKind: TypeAlias = Literal["cron", "heartbeat", "subagent", "interactive", "unknown"]
SessionSource: TypeAlias = Literal["live", "retained", "archived"]

LONG_ID_BYTES = 96
AGENT_KEY = re.compile(r"agent:([^:]+):", re.DOTALL)
RETAINED_ONLY = b"{}"
MAY_BE_INTERNAL = (b"dreaming-narrative-", b":cron:", b"internal_system")
ESCAPED_ASCII = re.compile(rb"\\u00[2-7]")


# -- rows as the core gives them ----------------------------------------------------------------


class NodeRow(Protocol):
    """A session key and its current session: `_core.Node`."""

    session_key: str
    current_session_id: str
    entry_json: bytes


class WindowRow(Protocol):
    """A transcript generation: `_core.Window`."""

    session_id: str
    session_key: str
    created_at: int
    transcript_updated_at: int | None
    session_entry_provenance: int
    hook_external_content_source: str | None
    chat_type: str | None
    channel: str | None
    parent_session_key: str | None
    spawned_by: str | None


class ParticipantRow(Protocol):
    """Who took part under a session key: `_core.Participant`."""

    session_key: str
    identity_namespace: bytes
    actor_id: str


class ArchiveRow(Protocol):
    """A registered archive: `_core.Archive`."""

    session_id: str
    generation: str
    session_key: str
    archive_name: str
    created_at: int


# -- what they become ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Session:
    """One transcript generation."""

    session_id: str
    session_key: str | None
    """None for an archive file that the store does not know."""
    source: SessionSource
    """Current session of its key, an older one, or one of which only an archive is left."""
    created_at: int
    """Milliseconds since the epoch. What `--since` compares."""
    kind: SessionKind
    is_narrative: bool = False
    """Whether it is a run of the dream diary itself."""
    hook_source: str | None = None
    channel: str | None = None
    chat_type: str | None = None
    participants: tuple[Identity, ...] = ()
    transcript_updated_at: int | None = None
    archive_name: str | None = None
    generation: str | None = None
    """Of a registered archive; its text is in the store."""
    archive_path: Path | None = None
    """Of an unregistered archive; its text is in this file."""

    @property
    def is_current(self) -> bool:
        """Whether its key points to it."""
        return self.source == "live"

    @property
    def is_internal(self) -> bool:
        """Whether memory never indexes it."""
        return self.is_narrative or self.kind in ("cron", "heartbeat")


@dataclass(frozen=True, slots=True)
class Sessions:
    """A listing: live and retained sessions by time, then archives by time."""

    sessions: tuple[Session, ...]
    refusals: tuple[str, ...] = ()


# -- listing ------------------------------------------------------------------------------------


def list_sessions(
    nodes: Iterable[NodeRow],
    windows: Iterable[WindowRow],
    participants: Iterable[ParticipantRow],
    archives: Iterable[ArchiveRow],
    *,
    agent: str,
    owner: str,
    files: Iterable[ArchiveFile] = (),
) -> Sessions:
    """All sessions of `agent` in its store.

    `owner` is the agent to which rows belong whose session key names none. `files` are the archive
    files found in the folders of the store; those with a row are not listed a second time.
    """
    prefix = f"agent:{agent}:"

    def is_own(key: str) -> bool:
        return key.startswith(prefix) or _agent_of(key, owner) == agent

    entries = _read_entries(node for node in nodes if is_own(node.session_key))
    people = _read_participants(row for row in participants if is_own(row.session_key))
    own_windows = [window for window in windows if is_own(window.session_key)]
    lineage = _Lineage(entries.by_key, own_windows)
    live = [_from_window(window, entries.by_key, people.by_key, lineage) for window in own_windows]
    rows = [row for row in archives if is_own(row.session_key)]
    archived = _from_archives(rows, files, {session.session_id for session in live})
    return Sessions((*live, *archived), (*entries.refusals, *people.refusals))


def _agent_of(key: str, owner: str) -> str:
    named = AGENT_KEY.match(key)
    return canonical_agent_id(named[1]) if named else owner


@dataclass(frozen=True, slots=True)
class _Entry:
    session_id: str
    hook_source: str | None = None
    parent_key: str | None = None
    spawned_by: str | None = None
    is_heartbeat: bool = False
    is_damaged: bool = False


@dataclass(frozen=True, slots=True)
class _Entries:
    by_key: Mapping[str, _Entry]
    refusals: tuple[str, ...]


def _read_entries(nodes: Iterable[NodeRow]) -> _Entries:
    by_key: dict[str, _Entry] = {}
    unreadable = 0
    for node in nodes:
        if node.entry_json == RETAINED_ONLY:
            continue
        entry = _read_entry(node)
        if entry is None:
            unreadable += 1
        # What a damaged entry still tells is which session is current.
        by_key[node.session_key] = entry or _Entry(node.current_session_id, is_damaged=True)
    lost = f"Cannot read {unreadable} session row(s); sessions selected by --hook-source may be missing."
    return _Entries(by_key, (lost,) if unreadable else ())


def _read_entry(node: NodeRow) -> _Entry | None:
    table = read_table(node.entry_json)
    if table is None or table.get("sessionId") != node.current_session_id or not is_number(table.get("updatedAt")):
        return None
    return _Entry(
        session_id=node.current_session_id,
        hook_source=as_text(table.get("hookExternalContentSource")),
        parent_key=as_text(table.get("parentSessionKey")),
        spawned_by=as_text(table.get("spawnedBy")),
        is_heartbeat=bool((as_text(table.get("heartbeatIsolatedBaseSessionKey")) or "").strip()),
    )


def _from_window(
    window: WindowRow,
    entries: Mapping[str, _Entry],
    people: Mapping[str, Sequence[Identity]],
    lineage: "_Lineage",
) -> Session:
    entry = entries.get(window.session_key)
    is_current = entry is not None and entry.session_id == window.session_id
    return Session(
        session_id=window.session_id,
        session_key=window.session_key,
        source="live" if is_current else "retained",
        created_at=window.created_at,
        kind=lineage.kind(window.session_key),
        is_narrative=lineage.is_narrative(window.session_key),
        hook_source=(entry.hook_source if entry and is_current else None) or _column_hook_source(window),
        channel=window.channel,
        chat_type=window.chat_type,
        participants=tuple(people.get(window.session_key, ())),
        transcript_updated_at=window.transcript_updated_at,
    )


def _column_hook_source(window: WindowRow) -> str | None:
    """The column cannot tell `email` from `webhook`, so that only `gmail` in it is exact."""
    is_exact = window.hook_external_content_source == "gmail" and window.session_entry_provenance == 1
    return "gmail" if is_exact else None


class _Lineage:
    """What a session key descends from."""

    def __init__(self, entries: Mapping[str, _Entry], windows: Iterable[WindowRow]) -> None:
        self._entries = entries
        self._parents: dict[str, tuple[str | None, str | None]] = {
            window.session_key: (window.parent_session_key, window.spawned_by) for window in windows
        }
        self._parents.update(
            (key, (entry.parent_key, entry.spawned_by)) for key, entry in entries.items() if not entry.is_damaged
        )
        self._cron: dict[str, bool] = {}

    def kind(self, key: str) -> SessionKind:
        if self._is_cron(key):
            return "cron"
        if key in self._entries and self._entries[key].is_heartbeat:
            return "heartbeat"
        if ":subagent:" in key or self._spawned_by(key) or self.is_narrative(key):
            return "subagent"
        return "interactive"

    def is_narrative(self, key: str) -> bool:
        return is_narrative_name(key) or is_narrative_name(self._spawned_by(key) or "")

    def _spawned_by(self, key: str) -> str | None:
        return self._parents.get(key, (None, None))[1]

    def _is_cron(self, key: str) -> bool:
        """Whether the key or any ancestor is of a cron run; cycles end where they close."""
        seen: set[str] = set()
        waiting = [key]
        while waiting:
            current = waiting.pop()
            if current in seen or self._cron.get(current) is False:
                continue
            if self._cron.get(current) or is_cron_run_key(current):
                self._cron[key] = True
                return True
            seen.add(current)
            waiting += filter(None, self._parents.get(current, ()))
        self._cron.update(dict.fromkeys(seen, False))
        return False


# -- participants -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _People:
    by_key: Mapping[str, Sequence[Identity]]
    refusals: tuple[str, ...]


def _read_participants(rows: Iterable[ParticipantRow]) -> _People:
    by_key: defaultdict[str, list[Identity]] = defaultdict(list)
    unreadable = 0
    for row in rows:
        identity = parse_identity(row.identity_namespace, row.actor_id)
        if identity is None:
            unreadable += 1
        else:
            by_key[row.session_key].append(identity)
    lost = f"Cannot read {unreadable} participant row(s); sessions selected by --participant may be missing."
    return _People(by_key, (lost,) if unreadable else ())


# -- archives ---------------------------------------------------------------------------------


def _from_archives(
    rows: Sequence[ArchiveRow], files: Iterable[ArchiveFile], live_ids: Collection[str]
) -> list[Session]:
    registered = [
        Session(
            session_id=row.session_id,
            session_key=row.session_key,
            source="archived",
            created_at=row.created_at,
            kind="unknown",
            archive_name=row.archive_name,
            generation=row.generation,
        )
        for row in rows
        if row.session_id not in live_ids
    ]
    return registered + _unregistered(rows, files, live_ids)


def _unregistered(rows: Sequence[ArchiveRow], files: Iterable[ArchiveFile], live_ids: Collection[str]) -> list[Session]:
    names = {row.archive_name for row in rows}
    known_ids = {*live_ids, *(row.session_id for row in rows)}
    long_ids = {
        _short_form(each): each for each in known_ids if len(each.encode(errors="surrogatepass")) > LONG_ID_BYTES
    }
    found: dict[str, Session] = {}
    for file in files:
        session_id = long_ids.get(file.name.session_id, file.name.session_id)
        is_foreign = file.is_shared and session_id not in known_ids
        if file.path.name in names or session_id in live_ids or is_foreign:
            continue
        session = Session(
            session_id=session_id,
            session_key=None,
            source="archived",
            created_at=file.name.created_at,
            kind="unknown",
            archive_name=file.path.name,
            archive_path=file.path,
        )
        found.setdefault(file.path.name, session)
    return sorted(found.values(), key=lambda session: (session.created_at, session.session_id))


def _short_form(session_id: str) -> str:
    return f"session-{hashlib.sha256(session_id.encode(errors='surrogatepass')).hexdigest()}"


# -- sessions that memory never indexes ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Excluded:
    """Sessions whose index rows go with any deletion."""

    ids: frozenset[str]
    refusals: tuple[str, ...] = ()


def excluded_session_ids(
    sessions: Iterable[Session], archive_text: Callable[[Session], bytes], skip: Collection[str] = ()
) -> Excluded:
    """Ids of narrative, cron and heartbeat sessions, and of archives that only the host wrote.

    Live sessions tell by their keys, archives by their records: `archive_text` gives the JSONL of one.
    Ids in `skip` are not looked at. An archive that cannot be read is a refusal.
    """
    ids: set[str] = set()
    refusals: list[str] = []
    for session in sessions:
        if session.session_id in skip or session.session_id in ids:
            continue
        if session.source != "archived":
            if session.is_current and session.is_internal:
                ids.add(session.session_id)
            continue
        try:
            text = archive_text(session)
        except (OSError, CenotaphError) as error:
            refusals.append(f"Cannot read the archive {session.archive_name}: {error}")
            continue
        if _is_internal_archive(text):
            ids.add(session.session_id)
    return Excluded(frozenset(ids), tuple(refusals))


def _is_internal_archive(text: bytes) -> bool:
    # Parsing costs a hundred times more than looking for what an internal record must contain.
    if not any(marker in text for marker in MAY_BE_INTERNAL) and not ESCAPED_ASCII.search(text):
        return False
    projection = project(jsonl_events(text), archived=True)
    return projection.internal is not None or projection.is_all_system
