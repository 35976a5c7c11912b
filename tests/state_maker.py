"""Makes small state directories for tests, row by row, with nothing but the standard library.

Every database is opened, filled and closed here before the program under test sees it: a process
must never hold two SQLite libraries on one file. Only columns that the table has are written, so
the same calls fill a host database (made from a template) and a native one (made by `cenotaph`).
"""

from __future__ import annotations

import atexit
import contextlib
import datetime as dt
import functools
import hashlib
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

AGENT = "main"
AGENT_DB = "agents/{agent}/agent/openclaw-agent.sqlite"
STATE_DB = "state/openclaw.sqlite"
CORPUS = "memory/.dreams/session-corpus"
PLUGIN = "memory-core"
T0 = 1_795_165_200_000
"""2026-11-20T09:00:00Z in milliseconds: the moment at which everything in a made state happened."""

Row: TypeAlias = dict[str, Any]


def sha256(text: str | bytes) -> str:
    """Hex SHA-256 of a text (as UTF-8) or of bytes."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def iso(ms: int) -> str:
    """A time in milliseconds as the host writes it."""
    moment = dt.datetime.fromtimestamp(ms / 1000, dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


def compact(value: object) -> str:
    """JSON as the host stores it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def marker(key: str) -> str:
    """The line that labels the entry below it."""
    return f"<!-- openclaw-memory-promotion:{key} -->"


def lineage(name: str) -> str:
    """The optional line above a marker."""
    return f"<!-- openclaw-memory-lineage:{name} -->"


def corpus_line(session_id: str, number: int, text: str, agent: str = AGENT) -> str:
    """One rendered line of a session corpus."""
    return f"[{agent}/sessions/{agent}/{session_id}#L{number}] {text}"


def octet_length(value: str | bytes | None) -> int | None:
    """A CHECK of the host's schema calls this function, which SQLite has only since 3.43."""
    if value is None:
        return None
    return len(value.encode() if isinstance(value, str) else value)


@contextlib.contextmanager
def database(path: Path) -> Generator[sqlite3.Connection, None, None]:
    """A writable connection, committed and closed (with its WAL folded in) at the end."""
    db = sqlite3.connect(path, isolation_level=None, timeout=10)
    db.create_function("octet_length", 1, octet_length, deterministic=True)
    db.row_factory = sqlite3.Row
    try:
        db.execute("PRAGMA foreign_keys=OFF")
        db.execute("BEGIN IMMEDIATE")
        yield db
        if db.in_transaction:
            db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.close()


@contextlib.contextmanager
def reading(path: Path, scratch: Path) -> Generator[sqlite3.Connection, None, None]:
    """A private copy of a database and its WAL: reading it never touches the original."""
    scratch.mkdir(parents=True, exist_ok=True)
    copy = scratch / f"{sha256(str(path))[:8]}-{path.name}"
    for suffix in ("", "-wal"):
        target = Path(f"{copy}{suffix}")
        target.unlink(missing_ok=True)
        source = Path(f"{path}{suffix}")
        if source.exists():
            shutil.copyfile(source, target)
    db = sqlite3.connect(copy)
    db.create_function("octet_length", 1, octet_length, deterministic=True)
    db.row_factory = sqlite3.Row
    try:
        yield db
    finally:
        db.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)


def insert(db: sqlite3.Connection, table: str, row: Mapping[str, object]) -> None:
    """Inserts the columns that the table has; the rest of `row` is for the other kind of database."""
    known = {info["name"] for info in db.execute(f'PRAGMA table_info("{table}")')}
    if not known:
        raise LookupError(f"no table {table}")
    names = [name for name in row if name in known]
    columns = ", ".join(names)
    marks = ", ".join("?" * len(names))
    db.execute(f"INSERT OR REPLACE INTO {table} ({columns}) VALUES ({marks})", [row[name] for name in names])


def has_table(db: sqlite3.Connection, table: str) -> bool:
    """Whether the database has the table."""
    found = db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    return found is not None


ORIGINS_DDL = (
    "CREATE TABLE IF NOT EXISTS memory_entry_origins (\n  entry_key TEXT NOT NULL,\n  agent_id TEXT NOT NULL,\n"
    "  session_id TEXT NOT NULL,\n  session_key TEXT,\n  origin_class TEXT NOT NULL CHECK (origin_class IN "
    "('owner', 'agent', 'untrusted', 'system')),\n  observed_at INTEGER NOT NULL,\n"
    "  PRIMARY KEY (entry_key, agent_id, session_id)\n) STRICT"
)
TOMBSTONES_DDL = (
    "CREATE TABLE IF NOT EXISTS memory_session_tombstones (\n  session_id TEXT NOT NULL PRIMARY KEY,\n"
    "  agent_id TEXT NOT NULL,\n  reason TEXT NOT NULL,\n  created_at INTEGER NOT NULL\n) STRICT"
)


@dataclass
class Change:
    """Rows waiting to be written into one database."""

    rows: list[tuple[str, Row]] = field(default_factory=list[tuple[str, Row]])
    statements: list[str] = field(default_factory=list[str])


class StateMaker:
    """A state directory and a workspace beside it. Call the methods, then `seal()` once."""

    def __init__(self, root: Path, template: Path | None = None, agent: str = AGENT) -> None:
        self.root = root
        self.state = root / "state"
        self.workspace = root / "work"
        self.agent = agent
        self.config: dict[str, Any] = {
            "agents": {"defaults": {"workspace": str(self.workspace)}},
            "memory": {"search": {"provider": "none"}},
        }
        self.native = template is None
        self.workspace.mkdir(parents=True, exist_ok=True)
        if template is None:
            make_native(self.state, agent)
        else:
            copy_template(template, self.state)
        self._agent = Change()
        self._shared = Change()
        self._order = 0

    # -- where ----------------------------------------------------------------------------------
    @property
    def agent_db(self) -> Path:
        """The per-agent database."""
        return self.state / AGENT_DB.format(agent=self.agent)

    @property
    def state_db(self) -> Path:
        """The shared database."""
        return self.state / STATE_DB

    @property
    def workspace_key(self) -> str:
        """The hash under which plugin state files the workspace."""
        return sha256(os.path.abspath(self.workspace))

    # -- files ----------------------------------------------------------------------------------
    def file(self, relative: str, content: str | bytes) -> Path:
        """Writes a workspace file, byte for byte."""
        path = self.workspace / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def corpus(self, day: str, lines: Iterable[str], *, newline: str = "\n") -> Path:
        """Writes one corpus file."""
        return self.file(f"{CORPUS}/{day}.txt", "".join(line + newline for line in lines))

    def read(self, relative: str) -> bytes:
        """The bytes of a workspace file."""
        return (self.workspace / relative).read_bytes()

    # -- sessions -------------------------------------------------------------------------------
    def session(
        self,
        session_id: str,
        key: str | None = None,
        *,
        current: bool = True,
        created: int = T0,
        entry: Mapping[str, object] | None = None,
        window: Mapping[str, object] | None = None,
        participants: Sequence[tuple[object, str]] = (),
        messages: Sequence[Mapping[str, object]] = (),
    ) -> str:
        """A live (or, with `current=False`, retained) session. Returns its key."""
        key = key or f"agent:{self.agent}:dm:{session_id.lower()}"
        facts = dict(entry or {})
        if current:
            value = {"sessionId": session_id, "updatedAt": created, "sessionStartedAt": created, **facts}
            self._put(
                "session_nodes",
                session_key=key,
                current_session_id=session_id,
                entry_json=compact(value),
                entry_valid=1,
                updated_at=created,
                created_at=created,
            )
        hook = facts.get("hookExternalContentSource")
        values: Row = {
            "session_id": session_id,
            "session_key": key,
            "created_at": created,
            "updated_at": created,
            "transcript_updated_at": created if messages else None,
            "session_scope": "conversation",
            "session_entry_provenance": 1,
            "acp_owned": 0,
            "chat_type": facts.get("chatType"),
            "hook_external_content_source": hook if hook in ("gmail", "webhook") else None,
        }
        self._put("session_windows", **(values | dict(window or {})))
        for namespace, actor in participants:
            text = namespace if isinstance(namespace, str) else compact(namespace)
            self._put(
                "session_participants",
                session_key=key,
                identity_namespace=text,
                actor_id=actor,
                contribution_count=1,
                first_prompted_at=created,
                last_prompted_at=created,
            )
        if messages:
            for number, event in enumerate(self.events(session_id, messages, created)):
                text = compact(event)
                self._put(
                    "transcript_events",
                    session_id=session_id,
                    seq=number,
                    event_json=text,
                    created_at=created + number,
                    event_utf8_bytes=len(text.encode()),
                )
        return key

    def events(self, session_id: str, messages: Sequence[Mapping[str, object]], created: int = T0) -> list[Row]:
        """Transcript records of a session: header, then one record a message."""
        records: list[Row] = [
            {"type": "session", "version": 4, "id": session_id, "timestamp": iso(created), "cwd": str(self.workspace)}
        ]
        for number, message in enumerate(messages, 1):
            at = created + number * 1000
            records.append(
                {
                    "type": "message",
                    "id": f"m{number}",
                    "parentId": f"m{number - 1}" if number > 1 else None,
                    "timestamp": iso(at),
                    "message": {"timestamp": at, **message},
                }
            )
        return records

    def archive(
        self,
        session_id: str,
        key: str | None = None,
        *,
        created: int = T0,
        reason: str = "reset",
        blob: bytes | None = None,
        encoding: str = "identity",
        messages: Sequence[Mapping[str, object]] = (),
        published: bool = True,
    ) -> str:
        """A transcript archive: registry row and, when published, its file. Returns the name."""
        key = key or f"agent:{self.agent}:dm:{session_id.lower()}"
        data = blob
        if data is None:
            data = "".join(compact(event) + "\n" for event in self.events(session_id, messages, created)).encode()
        generation = sha256("generation " + session_id)[:32]
        suffix = ".zst" if encoding == "zstd" else ""
        name = f"{session_id}.jsonl.{reason}.{iso(created).replace(':', '-')}.{generation}{suffix}"
        self._put(
            "session_transcript_archives",
            session_id=session_id,
            generation=generation,
            session_key=key,
            reason=reason,
            encoding=encoding,
            archive_blob=data,
            archive_sha256=sha256(data),
            archive_name=name,
            created_at=created,
            published_at=created,
            publish_attempts=1,
            last_publish_attempt_at=created,
        )
        if published:
            folder = self.state / "agents" / self.agent / "sessions"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
        return name

    def origin(self, key: str, session_id: str, *, agent: str | None = None, session_key: str | None = None) -> None:
        """One origin row."""
        self._put(
            "memory_entry_origins",
            entry_key=key,
            agent_id=agent or self.agent,
            session_id=session_id,
            session_key=session_key,
            origin_class="owner",
            observed_at=T0,
        )

    def tombstone(self, session_id: str, *, agent: str | None = None) -> None:
        """A tombstone that an earlier purge (or another agent) left."""
        self._put(
            "memory_session_tombstones",
            session_id=session_id,
            agent_id=agent or self.agent,
            reason="forgotten",
            created_at=T0,
        )

    # -- index ----------------------------------------------------------------------------------
    def source(self, path: str, source: str = "memory", text: str = "") -> None:
        """One row of the index's file list."""
        self._put(
            "memory_index_sources",
            path=path,
            source=source,
            hash=sha256(text),
            mtime=float(T0),
            size=len(text.encode()),
        )

    def chunk(
        self,
        path: str,
        text: str,
        *,
        source: str = "memory",
        lines: tuple[int, int] = (1, 1),
        kind: str = "unknown",
        origin: str = "agent",
        provenance: bool = True,
        cached: bool = False,
    ) -> str:
        """One chunk row with its provenance and recall metadata. Returns its id."""
        digest = sha256(text)
        identity = sha256(f"{source}:{path}:{lines[0]}:{lines[1]}:{digest}:fts-only")
        self._put(
            "memory_index_chunks",
            id=identity,
            path=path,
            source=source,
            start_line=lines[0],
            end_line=lines[1],
            hash=digest,
            model="fts-only",
            text=text,
            embedding=b"",
            updated_at=T0,
        )
        if provenance:
            self._put(
                "memory_index_chunk_provenance",
                chunk_id=identity,
                origin_class=origin,
                session_kind=kind,
                observed_at=T0,
            )
            self._put("memory_index_chunk_recall_metadata", chunk_id=identity)
        if cached:
            self.cache(digest)
        return identity

    def cache(self, digest: str, vector: bytes = b"\0" * 32) -> None:
        """One row of the embedding cache, for the chunk text with this hash."""
        self._put(
            "memory_embedding_cache",
            provider="openai",
            model="fts-only",
            provider_key="k",
            hash=digest,
            embedding=vector,
            dims=len(vector) // 8,
            updated_at=T0,
        )

    # -- plugin state ---------------------------------------------------------------------------
    def plugin(self, namespace: str, logical: str, value: object) -> None:
        """One row of the memory plugin, in its envelope."""
        envelope = {
            "version": 1,
            "workspaceKey": self.workspace_key,
            "workspaceDir": os.path.abspath(self.workspace),
            "key": logical,
            "value": value,
        }
        self.plugin_row(PLUGIN, namespace, f"{self.workspace_key}:{sha256(logical)}", compact(envelope))

    def plugin_row(self, plugin: str, namespace: str, entry_key: str, text: str) -> None:
        """One raw plugin-state row, for damaged or foreign ones too."""
        self._order += 1
        row: Row = {
            "plugin_id": plugin,
            "namespace": namespace,
            "entry_key": entry_key,
            "value_json": text,
            "created_at": T0 + self._order,
            "expires_at": None,
        }
        self._shared.rows.append(("plugin_state_entries", row))

    def short_term(self, key: str, snippet: str, path: str = "memory/notes.md", *, signals: bool = True) -> None:
        """A recall candidate and, unless told otherwise, its phase signals."""
        self.plugin(
            "short-term-recall",
            key,
            {
                "key": key,
                "path": path,
                "startLine": 1,
                "endLine": 1,
                "source": "memory",
                "snippet": snippet,
                "recallCount": 1,
                "dailyCount": 1,
                "groundedCount": 0,
                "totalScore": 1.5,
                "maxScore": 0.5,
                "firstRecalledAt": iso(T0),
                "lastRecalledAt": iso(T0),
                "queryHashes": [],
                "recallDays": ["2026-11-20"],
                "conceptTags": [],
            },
        )
        if signals:
            self.plugin(
                "short-term-phase-signals", key, {"key": key, "lightHits": 1, "remHits": 0, "lastLightAt": iso(T0)}
            )

    def seen(self, scope: str, *, index: int = 0, hashes: Sequence[str] = ("0" * 40,)) -> None:
        """Hashes of messages that ingestion has already read."""
        self.plugin(
            "dreaming-session-ingestion-seen",
            f"{scope}:{index}",
            {"scope": scope, "index": index, "hashes": list(hashes)},
        )

    def checkpoint(self, state_key: str) -> None:
        """How far ingestion has read a transcript."""
        self.plugin(
            "dreaming-session-ingestion-files",
            state_key,
            {"mtimeMs": T0, "size": 10, "contentHash": sha256(state_key), "lineCount": 2, "lastContentLine": 2},
        )

    def backup(self, content: str, at: int = T0) -> None:
        """A stored earlier MEMORY.md."""
        digest = sha256(content)
        self.plugin(
            "dreaming-memory-backups",
            f"{iso(at)}:{digest[:12]}",
            {"createdAt": iso(at), "content": content, "contentHash": digest},
        )

    def observed(self, relative: str, session_id: str | None, *, session_key: str | None = None, at: int = T0) -> None:
        """A row of the write observer."""
        real = sha256(os.path.realpath(self.workspace))
        value: Row = {
            "version": 1,
            "workspaceKey": real,
            "relativePath": relative,
            "fileHash": sha256(relative),
            "originClass": "agent",
            "observedAt": at,
            "reservationId": sha256(relative)[:32],
        }
        if session_id is not None:
            value["sessionId"] = session_id
        if session_key is not None:
            value["sessionKey"] = session_key
        self.plugin_row(
            "core:memory-artifact-provenance", "workspace-files", f"{real}:{sha256(relative)}", compact(value)
        )

    def locked_by(self, owner: str, acquired: int, start: float | None = None) -> None:
        """The workspace lock, as a process holds it (or left it)."""
        value: Row = {"owner": owner, "acquiredAt": acquired}
        if start is not None:
            value["ownerStartTime"] = start
        self.plugin_row(PLUGIN, "short-term-locks", self.workspace_key, compact(value))

    # -- writing --------------------------------------------------------------------------------
    def agent_sql(self, statement: str) -> None:
        """A statement to run in the agent database at the end of `seal()`."""
        self._agent.statements.append(statement)

    def shared_sql(self, statement: str) -> None:
        """A statement to run in the shared database at the end of `seal()`."""
        self._shared.statements.append(statement)

    def _put(self, table: str, **row: object) -> None:
        self._agent.rows.append((table, row))

    def seal(self, write: Callable[[Path, Change], None] | None = None) -> StateMaker:
        """Writes the config and every waiting row, and closes the databases.

        `write`: what writes the rows, where this module's SQLite is too old for full-text tables that were purged.
        """
        (self.state / "openclaw.json").write_text(json.dumps(self.config, indent=2) + "\n")
        for path, change in ((self.agent_db, self._agent), (self.state_db, self._shared)):
            (write or write_rows)(path, change)
        self._agent, self._shared = Change(), Change()
        return self


def zstd_stored(data: bytes) -> bytes:
    """A zstd frame that holds the data in raw blocks: no library needed, every reader must take it."""
    frame = b"\x28\xb5\x2f\xfd\xa0" + len(data).to_bytes(4, "little")
    size = 131_072
    pieces = [data[at : at + size] for at in range(0, len(data), size)] or [b""]
    for number, piece in enumerate(pieces):
        last = number == len(pieces) - 1
        frame += (len(piece) << 3 | int(last)).to_bytes(3, "little") + piece
    return frame


def write_rows(path: Path, change: Change) -> None:
    """Writes the waiting rows of one database in one transaction."""
    if not change.rows and not change.statements:
        return
    with database(path) as db:
        if any(table == "memory_entry_origins" for table, _ in change.rows):
            db.execute(ORIGINS_DDL)
        if any(table == "memory_session_tombstones" for table, _ in change.rows):
            db.execute(TOMBSTONES_DDL)
        for table, row in change.rows:
            insert(db, table, row)
        if has_table(db, "session_nodes"):
            db.execute("UPDATE session_nodes SET entry_valid = 1")
        if has_table(db, "session_canonical_validation_pending"):
            db.execute("DELETE FROM session_canonical_validation_pending")
        for statement in change.statements:
            db.execute(statement)


def copy_template(template: Path, state: Path) -> None:
    """Copies an empty state directory of the host, writable."""
    shutil.copytree(template, state)
    for path in [state, *state.rglob("*")]:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


@functools.cache
def native_template(agent: str) -> Path:
    """An empty native state directory that the program made, once a process."""
    folder = Path(tempfile.mkdtemp(prefix="cenotaph-native-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    state = folder / "state"
    command = [sys.executable, "-m", "cenotaph", "--state-dir", str(state), "init", "--agent", agent]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"cenotaph init failed: {done.stderr}")
    return state


def make_native(state: Path, agent: str = AGENT) -> None:
    """An empty native state directory."""
    shutil.copytree(native_template(agent), state, symlinks=True)


def snapshot(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """Every path below `root` with its kind, mode and content: equal snapshots are equal trees."""
    found: dict[str, tuple[str, int, bytes]] = {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        if stat.S_ISLNK(info.st_mode):
            found[str(path.relative_to(root))] = ("link", 0, os.readlink(path).encode())
        elif stat.S_ISREG(info.st_mode):
            found[str(path.relative_to(root))] = ("file", stat.S_IMODE(info.st_mode), path.read_bytes())
        else:
            found[str(path.relative_to(root))] = ("folder", stat.S_IMODE(info.st_mode), b"")
    return found


def files_holding(root: Path, needle: bytes) -> list[str]:
    """Files below `root` whose raw bytes hold `needle`."""
    return [
        str(path.relative_to(root))
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink() and needle in path.read_bytes()
    ]
