"""Every kind of artifact that a session leaves, each with a needle of its own, in a state directory of either kind.

`live` kinds are what a forget has to find and take. `past` kinds are what programs without secure deletion left in
free pages, slack, full-text segments, logs and files of interrupted runs before; their needles are sentences that the
session said (or vectors of its chunks), so that a forget knows them.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import os
import sqlite3
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from raw import Needle, make_needle

from state_maker import CORPUS, StateMaker, corpus_line, iso, marker, sha256

TARGET, SURVIVOR = "5e551000-aaaa-4000-8000-00000000f0f0", "5e551000-bbbb-4000-8000-00000000a1a1"
DAY = "2026-11-20"
DEAD_PROCESS = 2**22 - 1
UUID = "0b2b7a4e-7a0f-4f0e-9d5c-1d2f3a4b5c6d"
KEPT_TEXT = "kept words of great interest about lathes and belts"
MEANWHILE = "memory/old.md"
"""Path of the index rows that are deleted carelessly before the forget."""

Plant: TypeAlias = "Callable[[Scene, Needle], None]"


def f64(vector: Iterable[float]) -> bytes:
    """A vector as chunks and the cache store it."""
    values = tuple(vector)
    return struct.pack(f"<{len(values)}d", *values)


def f32(vector: Iterable[float]) -> bytes:
    """A vector as the vector table stores it."""
    values = tuple(vector)
    return struct.pack(f"<{len(values)}f", *values)


@contextlib.contextmanager
def careless(path: Path) -> Generator[Any, None, None]:
    """A connection of a program that deletes without overwriting, with the vec0 module. Ends with a checkpoint."""
    import apsw

    library = pytest.importorskip("sqlite_vec", reason="needs the vec0 library of the package sqlite-vec")
    db: Any = apsw.Connection(str(path))
    try:
        db.enable_load_extension(True)
        db.load_extension(library.loadable_path())
        db.pragma("secure_delete", False)
        db.pragma("foreign_keys", True)
        db.set_busy_timeout(5000)
        yield db
        db.pragma("wal_checkpoint(TRUNCATE)")
    finally:
        db.close()


@dataclass
class Scene:
    """A state directory in the making. What is added with `later` is done in order after the rows are written."""

    maker: StateMaker
    said_lines: list[str] = field(default_factory=list[str])
    memory: list[str] = field(default_factory=list[str])
    diary: list[str] = field(default_factory=list[str])
    doomed: list[str] = field(default_factory=list[str])
    later: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    last: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    number: int = 1
    vectors: bool = False

    def said(self, text: str) -> str:
        """The session said it: a corpus line. Returns the snippet."""
        self.said_lines.append(f"User: {text}")
        return self.said_lines[-1]

    def key(self) -> str:
        """A fresh entry key of the session to forget."""
        self.number += 1
        key = f"memory:claim:{sha256(f'key {self.number}')[:12]}"
        self.maker.origin(key, TARGET)
        return key

    def doomed_chunk(self, text: str | None = None, **more: Any) -> str:
        """A chunk of the session's transcript. Returns its id."""
        self.number += 1
        identity = self.maker.chunk(
            f"sessions/main/{TARGET}.jsonl", text or f"some talk, part {self.number}", source="sessions",
            kind="interactive", origin="owner", lines=(self.number, self.number), **more,
        )  # fmt: skip
        self.doomed.append(identity)
        return identity

    def with_vector(self, identity: str, vector: Iterable[float]) -> None:
        """Gives a chunk its vector, in its own row."""
        self.maker.agent_sql(
            f"UPDATE memory_index_chunks SET embedding = x'{f64(vector).hex()}' WHERE id = '{identity}'"
        )

    def agent(self, work: Callable[[Any], None]) -> None:
        """Something that a careless program does in the agent database."""
        self._careless("agent_db", work)

    def shared(self, work: Callable[[Any], None]) -> None:
        """Something that a careless program does in the shared database."""
        self._careless("state_db", work)

    def _careless(self, name: str, work: Callable[[Any], None]) -> None:
        def run() -> None:
            with careless(getattr(self.maker, name)) as db:
                work(db)

        self.later.append(run)

    def vector_table(self, db: Any) -> None:
        """Makes the vector table once, with vectors of survivors."""
        if self.vectors:
            return
        self.vectors = True
        db.execute("CREATE VIRTUAL TABLE memory_index_chunks_vec USING vec0(id TEXT PRIMARY KEY, embedding FLOAT[16])")
        kept = [row[0] for row in db.execute("SELECT id FROM memory_index_chunks WHERE path = 'memory/other.md'")]
        for number, identity in enumerate(kept):
            add_vector(db, identity, make_needle(f"survivor {number}").vector)

    def seal(self) -> StateMaker:
        """Writes everything. Rows of survivors follow the planted ones, so that pages do not become empty."""
        maker = self.maker
        for number in range(40, 80):
            maker.chunk("memory/other.md", f"{number} {KEPT_TEXT}", lines=(number + 1, number + 1))
            maker.short_term(f"kept:{number}", f"{number} {KEPT_TEXT}")
        maker.corpus(DAY, [
            *(corpus_line(TARGET, number, text) for number, text in enumerate(self.said_lines, 2)),
            corpus_line(SURVIVOR, 2, f"User: {KEPT_TEXT}"),
        ])  # fmt: skip
        maker.file("MEMORY.md", "".join(["# Long-Term Memory\n\n- kept entry\n", *self.memory]))
        if self.diary:
            maker.file("DREAMS.md", "".join(["# Dream Diary\n\n", *self.diary]))
        maker.seal()
        for step in [*self.later, *self.last]:
            step()
        return maker


def begin(maker: StateMaker) -> Scene:
    """Two sessions, the words of both stored in other words in their transcripts, and rows of the survivor."""
    scene = Scene(maker)
    for session, words in ((TARGET, "transcript of the one"), (SURVIVOR, "transcript of the other")):
        maker.session(session, messages=[{"role": "user", "content": words}])
    scene.said("one thing that everybody may know of")
    scene.doomed_chunk()
    maker.source(f"sessions/main/{TARGET}.jsonl", source="sessions")
    maker.source("memory/other.md")
    for number in range(40):
        maker.chunk("memory/other.md", f"{number} {KEPT_TEXT}", lines=(number + 1, number + 1))
        maker.short_term(f"kept:{number}", f"{number} {KEPT_TEXT}")
    return scene


def add_vector(db: Any, identity: str, vector: Iterable[float]) -> None:
    """One row of the vector table."""
    db.execute("INSERT INTO memory_index_chunks_vec (id, embedding) VALUES (?, ?)", (identity, f32(vector)))


# -- live: memory files -------------------------------------------------------------------------
def entry(scene: Scene, needle: Needle) -> None:
    scene.memory.append(f"\n{marker(scene.key())}\n- {needle.text}\n  more of it: {needle.words[1]}\n")


def quotation_in_memory(scene: Scene, needle: Needle) -> None:
    scene.memory.append(f"\n> {scene.said(needle.text)}\n")


def quotation_in_user_file(scene: Scene, needle: Needle) -> None:
    scene.maker.file("USER.md", f"about the user\n> {scene.said(needle.text)}\n")


def note_under_a_marker(scene: Scene, needle: Needle) -> None:
    scene.maker.file(f"memory/{DAY}-lunch.md", f"# Lunch\n\nkept\n{marker(scene.key())}\n- {needle.text}\n")


def note_of_the_hook(scene: Scene, needle: Needle) -> None:
    scene.maker.file(f"memory/{DAY}-0915.md", (
        f"# Session: {DAY} 09:15 UTC\n\n- **Session Key**: agent:main:dm:{TARGET}\n- **Session ID**: {TARGET}\n"
        f"- **Source**: telegram\n\n## Conversation Summary\n\nuser: {needle.text}\n"
    ))  # fmt: skip


def section_of_the_session(scene: Scene, needle: Needle) -> None:
    scene.maker.file(
        "memory/sections.md", f"# Top\n\n## From sessions/main/{TARGET}\n\n{needle.text}\n\n## Next\n\nkept\n"
    )


def diary_entry(scene: Scene, needle: Needle) -> None:
    scene.diary.append(
        f"<!-- openclaw:dreaming:diary:start -->\n---\n\n*November 20, 2026*\n\n{marker(scene.key())}\n"
        f"- {needle.text}\n<!-- openclaw:dreaming:diary:end -->\n\n"
    )


def diary_quotation(scene: Scene, needle: Needle) -> None:
    scene.diary.append(f"One paragraph of prose.\nIt quotes: {scene.said(needle.text)}\n\n")


def history_highlight(scene: Scene, needle: Needle) -> None:
    scene.last.insert(0, lambda: append(
        scene.maker.workspace / "DREAMS.md",
        f"\n## Memory Consolidation History\n\n### {iso(1_795_165_200_000)}\n\n- Added: 1\n"
        f"{marker(key)}\n- `+ {needle.text}`\n",
    ))  # fmt: skip
    key = scene.key()


def append(path: Path, text: str) -> None:
    """Adds text to the end of a file."""
    with path.open("a") as file:
        file.write(text)


def report(phase: str, row: str) -> Plant:
    """A report of a dreaming phase that shows what the session said."""

    def plant(scene: Scene, needle: Needle) -> None:
        text = row.format(scene.said(needle.text))
        scene.maker.file(f"memory/dreaming/{phase}/{DAY}.md", f"# {phase.title()} Sleep\n\n{text}\n- kept row\n")

    return plant


# -- live: corpus and temporary files -------------------------------------------------------------
def corpus_text(scene: Scene, needle: Needle) -> None:
    scene.said(needle.text)


def corpus_of_an_archive(scene: Scene, needle: Needle) -> None:
    name = f"{TARGET}.jsonl.reset.2026-11-18T09-00-00.000Z.{'a' * 32}"
    scene.maker.file(f"{CORPUS}/2026-11-18.txt", f"[main/sessions/main/{name}#L2] User: {needle.text}\n")


def corpus_in_markdown(scene: Scene, needle: Needle) -> None:
    scene.maker.file(f"{CORPUS}/2026-11-17.md", corpus_line(TARGET, 2, f"User: {needle.text}") + "\nkept line\n")


def interrupted(name: str) -> Plant:
    """The temporary file of a rewrite whose process is gone."""

    def plant(scene: Scene, needle: Needle) -> None:
        scene.maker.file(name.format(pid=DEAD_PROCESS, uuid=UUID), f"half a file\n> {scene.said(needle.text)}\nno en")

    return plant


# -- live: index --------------------------------------------------------------------------------
def chunk_of_the_transcript(scene: Scene, needle: Needle) -> None:
    scene.doomed_chunk(needle.text)


def chunk_of_a_memory_file(scene: Scene, needle: Needle) -> None:
    scene.maker.file("memory/indexed.md", f"kept\n{marker(scene.key())}\n- an entry with a chunk\n")
    scene.maker.source("memory/indexed.md")
    scene.maker.chunk("memory/indexed.md", f"- an entry with a chunk, {needle.text}")


def chunk_that_overflows(scene: Scene, needle: Needle) -> None:
    scene.doomed_chunk(f"{needle.text}; " * 300)


def chunk_vector(scene: Scene, needle: Needle) -> None:
    scene.with_vector(scene.doomed_chunk(), needle.vector)


def cached_vector(scene: Scene, needle: Needle) -> None:
    text = "a text with a cached vector"
    scene.doomed_chunk(text)
    scene.maker.cache(sha256(text), f64(needle.vector))


def vector_row(scene: Scene, needle: Needle) -> None:
    identity = scene.doomed_chunk()

    def work(db: Any) -> None:
        scene.vector_table(db)
        add_vector(db, identity, needle.vector)

    scene.agent(work)


def recall_triggers(scene: Scene, needle: Needle) -> None:
    annotate(scene, "triggers", f"{needle.words[0]}; {needle.text}")


def recall_project(scene: Scene, needle: Needle) -> None:
    annotate(scene, "project_key", needle.text)


def annotate(scene: Scene, column: str, value: str) -> None:
    """Recall metadata of a chunk of the session."""
    identity = scene.doomed_chunk()
    quoted = value.replace("'", "''")
    scene.maker.agent_sql(
        f"UPDATE memory_index_chunk_recall_metadata SET {column} = '{quoted}' WHERE chunk_id = '{identity}'"
    )


def superseded_key(scene: Scene, needle: Needle) -> None:
    identity = scene.doomed_chunk()
    scene.maker.agent_sql(
        "UPDATE memory_index_chunk_provenance SET supersedes_key = "
        f"'memory:memory/{needle.words[0]}-{needle.words[1]}.md:4:4' WHERE chunk_id = '{identity}'"
    )


def path_of_a_corpus_file(scene: Scene, needle: Needle) -> None:
    name = f"{CORPUS}/{needle.words[0]}-{needle.words[1]}.md"
    scene.maker.file(name, corpus_line(TARGET, 2, "User: nothing of note was said") + "\n")
    scene.maker.source(name)
    scene.maker.chunk(name, corpus_line(TARGET, 2, "User: nothing of note was said"))


def full_text_row_of_no_chunk(scene: Scene, needle: Needle) -> None:
    text = scene.said(needle.text)
    scene.agent(lambda db: db.execute(
        "INSERT INTO memory_index_chunks_fts (rowid, text, id, path, source, model, start_line, end_line) "
        "VALUES (900001, ?, 'gone', ?, 'sessions', 'fts-only', 1, 1)", (text, f"sessions/main/{TARGET}.jsonl"),
    ))  # fmt: skip


# -- live: plugin state ---------------------------------------------------------------------------
def short_term_entry(scene: Scene, needle: Needle) -> None:
    scene.maker.short_term(scene.key(), needle.text)


def short_term_of_the_session(scene: Scene, needle: Needle) -> None:
    scene.maker.short_term("free:key", f"[main/sessions/main/{TARGET}#L9] {needle.text}")


def short_term_in_ascii(scene: Scene, needle: Needle) -> None:
    key = scene.key()
    value = {"key": key, "path": "memory/notes.md", "snippet": needle.text}
    envelope = {
        "version": 1, "workspaceKey": scene.maker.workspace_key, "workspaceDir": str(scene.maker.workspace),
        "key": key, "value": value,
    }  # fmt: skip
    row_key = f"{scene.maker.workspace_key}:{sha256(key)}"
    scene.maker.plugin_row("memory-core", "short-term-recall", row_key, json.dumps(envelope))


def phase_signals(scene: Scene, needle: Needle) -> None:
    key = f"memory:memory/{needle.words[0]}-{needle.words[1]}.md:3:3"
    scene.maker.origin(key, TARGET)
    scene.maker.plugin("short-term-phase-signals", key, {"key": key, "lightHits": 1, "remHits": 0})


def seen_hashes(scene: Scene, needle: Needle) -> None:
    scene.maker.seen(f"main:sessions/main/{TARGET}", hashes=[needle.digest[:40], needle.digest[24:]])


def ingested_file(scene: Scene, needle: Needle) -> None:
    scene.maker.plugin(
        "dreaming-session-ingestion-files", f"main:sessions/main/{TARGET}",
        {"mtimeMs": 1, "size": 10, "contentHash": needle.digest, "lineCount": 2, "lastContentLine": 2},
    )  # fmt: skip


def rewind_row(scene: Scene, needle: Needle) -> None:
    path = f"main:sessions/main/{TARGET}"
    kept = {"contentIndex": 1, "hash": "a" * 40, "scope": "main:other", "stateKey": "main:other"}
    gone = {"contentIndex": 2, "hash": needle.digest[:40], "scope": path, "stateKey": path}
    scene.maker.plugin("session-backfill-rewind", "both", {"version": 1, "candidates": [kept, gone]})


def backup(scene: Scene, needle: Needle) -> None:
    text = f"# Long-Term Memory\n\n{marker(scene.key())}\n- {needle.text}\n" + "kept\n" * 200
    scene.maker.backup(text, 1_795_165_100_000)


def backup_quotation(scene: Scene, needle: Needle) -> None:
    scene.maker.backup("kept\n" * 2000 + f"> {scene.said(needle.text)}\nkept\n", 1_795_165_000_000)


# -- past: databases --------------------------------------------------------------------------------
def insert_chunk(db: Any, number: int, text: str, path: str = MEANWHILE) -> None:
    """A chunk as a host program writes one."""
    digest = sha256(text)
    db.execute(
        "INSERT INTO memory_index_chunks (id, path, source, start_line, end_line, hash, model, text, embedding, "
        "updated_at) VALUES (?, ?, 'memory', ?, ?, ?, 'fts-only', ?, x'', 1)",
        (sha256(f"{path}:{number}:{digest}"), path, number, number, digest, text),
    )


def free_pages(scene: Scene, needle: Needle) -> None:
    text = scene.said(needle.text)

    def work(db: Any) -> None:
        with db:
            for number in range(60):
                insert_chunk(db, number, f"{number} {text}; " * 20)
        with db:
            db.execute("DELETE FROM memory_index_chunks WHERE path = ?", (MEANWHILE,))

    scene.last.append(lambda: run(scene.maker.agent_db, work))


def run(path: Path, work: Callable[[Any], None]) -> None:
    """Lets a careless program do one thing."""
    with careless(path) as db:
        work(db)


def slack_of_deleted_rows(scene: Scene, needle: Needle) -> None:
    text = scene.said(needle.text)

    def work(db: Any) -> None:
        with db:
            for number in range(60):
                words, path = (text, MEANWHILE) if number % 3 == 1 else (KEPT_TEXT, "memory/other.md")
                insert_chunk(db, 1000 + number, f"{number} {words}", path)
        with db:
            db.execute("DELETE FROM memory_index_chunks WHERE path = ?", (MEANWHILE,))

    scene.agent(work)


def slack_of_shrunk_rows(scene: Scene, needle: Needle) -> None:
    text = scene.said(needle.text)

    def work(db: Any) -> None:
        with db:
            for number in range(30):
                insert_chunk(db, 2000 + number, f"{number} {text}", "memory/shrunk.md")
        with db:
            db.execute("UPDATE memory_index_chunks SET text = 'short' WHERE path = 'memory/shrunk.md'")

    scene.agent(work)


def slack_of_overflow_pages(scene: Scene, needle: Needle) -> None:
    text = scene.said(needle.text)

    def work(db: Any) -> None:
        with db:
            for number in range(12):
                insert_chunk(db, 3000 + number, f"{number} {text}; " * 90)
        with db:
            db.execute("DELETE FROM memory_index_chunks WHERE path = ?", (MEANWHILE,))
            for number in range(60):
                insert_chunk(db, 3100 + number, f"{number} {'kept at length ' * 250}", "memory/other.md")

    scene.agent(work)


def segments_with_deleted_words(scene: Scene, needle: Needle) -> None:
    text = scene.said(needle.text)

    def work(db: Any) -> None:
        with db:
            insert_chunk(db, 4000, text)
        with db:
            insert_chunk(db, 4001, KEPT_TEXT, "memory/other.md")
            db.execute("DELETE FROM memory_index_chunks WHERE path = ?", (MEANWHILE,))

    scene.agent(work)


def recall_rows_of_before(scene: Scene, needle: Needle) -> None:
    text = scene.said(needle.text)

    def work(db: Any) -> None:
        with db:
            for number in range(40):
                insert_chunk(db, 5000 + number, f"{number} of no interest", MEANWHILE if number % 2 else "memory/b.md")
            db.execute(
                "INSERT INTO memory_index_chunk_recall_metadata (chunk_id, triggers) SELECT id, ? FROM "
                "memory_index_chunks WHERE path IN (?, 'memory/b.md')", (text, MEANWHILE),
            )  # fmt: skip
        with db:
            db.execute("UPDATE memory_index_chunk_recall_metadata SET triggers = 'x' WHERE triggers = ?", (text,))
            db.execute("DELETE FROM memory_index_chunks WHERE path = ?", (MEANWHILE,))

    scene.agent(work)


def cached_vectors_of_before(scene: Scene, needle: Needle) -> None:
    scene.with_vector(scene.doomed_chunk(), needle.vector)

    def work(db: Any) -> None:
        with db:
            for number in range(40):
                vector = needle.vector if number % 2 else make_needle(f"cached {number}").vector
                db.execute(
                    "INSERT INTO memory_embedding_cache VALUES ('openai', 'm', 'k', ?, ?, 16, 1)",
                    (sha256(f"cached {number}"), f64(vector)),
                )
        with db:
            db.execute("DELETE FROM memory_embedding_cache WHERE embedding = ?", (f64(needle.vector),))

    scene.agent(work)


def vector_of_no_chunk(scene: Scene, needle: Needle) -> None:
    def work(db: Any) -> None:
        scene.vector_table(db)
        add_vector(db, sha256("a chunk that is gone"), needle.vector)

    scene.agent(work)


def ghost_in_a_vector_slot(scene: Scene, needle: Needle) -> None:
    """What a program without vec0 may do: clear the bit and the id of the slot, and leave the vector in it."""

    def work(db: Any) -> None:
        scene.vector_table(db)
        identity = sha256("a chunk whose vector became a ghost")
        add_vector(db, identity, needle.vector)
        table = "memory_index_chunks_vec"
        chunk, slot = db.execute(
            f"SELECT chunk_id, chunk_offset FROM {table}_rowids WHERE id = ?", (identity,)
        ).fetchone()
        validity, ids = db.execute(
            f"SELECT validity, rowids FROM {table}_chunks WHERE chunk_id = ?", (chunk,)
        ).fetchone()
        bits, numbers = bytearray(validity), bytearray(ids)
        bits[slot // 8] &= ~(1 << slot % 8)
        numbers[slot * 8 : slot * 8 + 8] = bytes(8)
        with db:
            db.execute(
                f"UPDATE {table}_chunks SET validity = ?, rowids = ? WHERE chunk_id = ?",
                (bytes(bits), bytes(numbers), chunk),
            )
            db.execute(f"DELETE FROM {table}_rowids WHERE id = ?", (identity,))

    scene.agent(work)


def backups_of_before(scene: Scene, needle: Needle) -> None:
    text = scene.said(needle.text)

    def work(db: Any) -> None:
        insert = "INSERT INTO plugin_state_entries VALUES ('memory-core', 'dreaming-memory-backups', ?, ?, 1, NULL)"
        with db:
            for number in range(12):
                content = json.dumps({"value": {"content": f"> {number} {text}\n" * 80}}, ensure_ascii=False)
                db.execute(insert, (f"{scene.maker.workspace_key}:old-{number}", content))
        with db:
            db.execute("DELETE FROM plugin_state_entries WHERE entry_key GLOB '*:old-*'")

    scene.last.append(lambda: run(scene.maker.state_db, work))


def short_term_rows_of_before(scene: Scene, needle: Needle) -> None:
    text = scene.said(needle.text)

    def work(db: Any) -> None:
        insert = "INSERT INTO plugin_state_entries VALUES ('memory-core', 'memory-host.event-cursors', ?, ?, 1, NULL)"
        with db:
            for number in range(40):
                words = text if number % 3 == 1 else KEPT_TEXT
                value = json.dumps({"number": number, "snippet": words}, ensure_ascii=False)
                db.execute(insert, (f"old-{number % 3}-{number}", value))
        with db:
            db.execute("DELETE FROM plugin_state_entries WHERE entry_key GLOB 'old-1-*'")

    scene.shared(work)


# -- past: logs, journals and databases beside the databases ---------------------------------------------
WRITER = """
import sqlite3, sys, os
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA journal_mode=WAL")
db.execute("PRAGMA wal_autocheckpoint=0")
db.execute("CREATE TABLE IF NOT EXISTS scratch_of_a_test (words TEXT)")
db.execute("INSERT INTO scratch_of_a_test VALUES (?)", (sys.argv[2],))
db.execute("DELETE FROM scratch_of_a_test")
db.execute("INSERT INTO scratch_of_a_test VALUES ('kept')")
os._exit(0)
"""


def log_of_a_killed_program(which: str) -> Plant:
    """A write-ahead log with a row in an early frame that later frames deleted. Its writer ended without closing."""

    def plant(scene: Scene, needle: Needle) -> None:
        text = scene.said(needle.text)

        def leave() -> None:
            path: Path = getattr(scene.maker, which)
            subprocess.run([sys.executable, "-c", WRITER, str(path), text], check=True, timeout=60)

        scene.last.append(leave)

    return plant


def journal_that_was_kept(scene: Scene, needle: Needle) -> None:
    """A rollback journal whose header was blanked, as `journal_mode=PERSIST` leaves it."""
    text = scene.said(needle.text)

    def leave() -> None:
        page = (text.encode() + b"; ") * 30
        Path(f"{scene.maker.agent_db}-journal").write_bytes(bytes(512) + page.ljust(4104, b"\0"))

    scene.last.append(leave)


def index_that_was_being_built(scene: Scene, needle: Needle) -> None:
    """The shadow index of a forced indexing that died yesterday."""
    text = scene.said(needle.text)

    def leave() -> None:
        path = Path(f"{scene.maker.agent_db}.memory-reindex-{UUID}")
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE memory_index_chunks (id TEXT PRIMARY KEY, path TEXT, text TEXT)")
        db.execute("INSERT INTO memory_index_chunks VALUES ('one', 'memory/old.md', ?)", (text,))
        db.commit()
        db.close()
        yesterday = time.time() - 86_400
        os.utime(path, (yesterday, yesterday))

    scene.last.append(leave)


# -- kept files -----------------------------------------------------------------------------------
def spelled_otherwise(scene: Scene, needle: Needle) -> None:
    """For the test of the scan itself: the spellings that no artifact of ours has. Not forgotten by anybody."""
    text = needle.text
    for name, data in {
        "u16le": text.encode("utf-16-le"),
        "u16be": text.encode("utf-16-be"),
        "b64-0": base64.b64encode(text.encode()),
        "b64-1": base64.b64encode(b"x" + text.encode()),
        "b64-2": base64.b64encode(b"xy" + text.encode()),
        "gz": b"front" + gzip.compress(gzip.compress(text.encode())),
        "json": json.dumps(text).encode(),
        "json-json": json.dumps(json.dumps(text)).encode(),
    }.items():
        scene.maker.file(f"other/{name}.bin", data)


@dataclass(frozen=True)
class Kind:
    """An artifact kind: its name in the tests, and how a needle gets into it."""

    name: str
    plant: Plant
    past: bool = False


KINDS: tuple[Kind, ...] = (
    Kind("entry of MEMORY.md", entry),
    Kind("quotation in MEMORY.md", quotation_in_memory),
    Kind("quotation in USER.md", quotation_in_user_file),
    Kind("note under a marker", note_under_a_marker),
    Kind("note of the session hook", note_of_the_hook),
    Kind("section of the session", section_of_the_session),
    Kind("entry of the diary", diary_entry),
    Kind("quotation in the diary", diary_quotation),
    Kind("report of light sleep", report("light", "- Candidate: {}\n  - confidence: 0.58")),
    Kind("report of REM sleep", report("rem", "### Possible Lasting Truths\n- {} [confidence=0.71]")),
    Kind("report of deep sleep", report("deep", "- Promoted: {}")),
    Kind("corpus", corpus_text),
    Kind("corpus of an archive", corpus_of_an_archive),
    Kind("corpus in Markdown", corpus_in_markdown),
    Kind("temporary file of ours", interrupted(".cenotaph-{uuid}.tmp")),
    Kind("temporary file of ours below memory", interrupted("memory/deep/.cenotaph-a1b2c3.tmp")),
    Kind("temporary file of ours in the corpus", interrupted(CORPUS + "/.cenotaph-d4e5f6.tmp")),
    Kind("temporary file of the host's forget", interrupted("MEMORY.md.forget.{pid}.{uuid}.tmp")),
    Kind("temporary file of the host's promotion", interrupted("MEMORY.md.promotion.{pid}.{uuid}.tmp")),
    Kind("temporary file of the host in the corpus", interrupted(CORPUS + "/2026-11-19.txt.forget.{pid}.{uuid}.tmp")),
    Kind("chunk of the transcript", chunk_of_the_transcript),
    Kind("chunk of a memory file", chunk_of_a_memory_file),
    Kind("chunk in overflow pages", chunk_that_overflows),
    Kind("embedding of a chunk", chunk_vector),
    Kind("embedding cache", cached_vector),
    Kind("vector table", vector_row),
    Kind("recall triggers", recall_triggers),
    Kind("recall project", recall_project),
    Kind("provenance", superseded_key),
    Kind("path of a source", path_of_a_corpus_file),
    Kind("full-text row of no chunk", full_text_row_of_no_chunk),
    Kind("short-term entry", short_term_entry),
    Kind("short-term entry that names the session", short_term_of_the_session),
    Kind("short-term entry in ASCII", short_term_in_ascii),
    Kind("phase signals", phase_signals),
    Kind("seen hashes", seen_hashes),
    Kind("ingested file", ingested_file),
    Kind("rewind row", rewind_row),
    Kind("backup", backup),
    Kind("quotation in a long backup", backup_quotation),
    Kind("slack of deleted rows", slack_of_deleted_rows, past=True),
    Kind("slack of shrunk rows", slack_of_shrunk_rows, past=True),
    Kind("slack of overflow pages", slack_of_overflow_pages, past=True),
    Kind("segments with deleted words", segments_with_deleted_words, past=True),
    Kind("recall rows of before", recall_rows_of_before, past=True),
    Kind("cached vectors of before", cached_vectors_of_before, past=True),
    Kind("vector of no chunk", vector_of_no_chunk, past=True),
    Kind("ghost in a vector slot", ghost_in_a_vector_slot, past=True),
    Kind("short-term rows of before", short_term_rows_of_before, past=True),
    Kind("free pages of the agent database", free_pages, past=True),
    Kind("free pages of the shared database", backups_of_before, past=True),
    Kind("log of the agent database", log_of_a_killed_program("agent_db"), past=True),
    Kind("log of the shared database", log_of_a_killed_program("state_db"), past=True),
    Kind("rollback journal that was kept", journal_that_was_kept, past=True),
    Kind("index that was being built", index_that_was_being_built, past=True),
)


def needles_of(kinds: Iterable[Kind]) -> list[Needle]:
    """The needles of some kinds."""
    return [make_needle(kind.name) for kind in kinds]


def stage(maker: StateMaker, kinds: Iterable[Kind]) -> Scene:
    """A state directory with a needle in each of these artifact kinds."""
    scene = begin(maker)
    for kind in kinds:
        kind.plant(scene, make_needle(kind.name))
    scene.seal()
    return scene


CARELESS_AGENT = (
    "DELETE FROM memory_index_chunks WHERE path <> 'memory/other.md'",
    "DELETE FROM memory_index_chunks_fts WHERE rowid > 900000",
    "DELETE FROM memory_index_sources WHERE path <> 'memory/other.md'",
    "DELETE FROM memory_embedding_cache",
    "DELETE FROM memory_entry_origins WHERE session_id = '" + TARGET + "'",
)
CARELESS_STATE = (
    """DELETE FROM plugin_state_entries WHERE namespace <> 'dreaming-memory-backups'
    AND json_extract(value_json, '$.key') NOT GLOB 'kept:*'""",
    """UPDATE plugin_state_entries SET value_json = json_set(value_json, '$.value.content', 'kept')
    WHERE namespace = 'dreaming-memory-backups'""",
)


def purge_carelessly(maker: StateMaker, *, files: bool = True) -> None:
    """A purge that is right about rows and lines and knows nothing of bytes: no secure deletion, no new segments.

    Vectors stay behind without their chunk. Files are replaced, and their old content is left under a temporary name.
    """
    for path, statements in ((maker.agent_db, CARELESS_AGENT), (maker.state_db, CARELESS_STATE)):
        with careless(path) as db:
            # The connection of a program that never heard of it, on tables of ours too.
            secure = db.execute("SELECT v FROM memory_index_chunks_fts_config WHERE k = 'secure-delete'") if (
                path == maker.agent_db
            ) else iter(())  # fmt: skip
            if next(secure, None):
                db.execute(
                    "INSERT INTO memory_index_chunks_fts (memory_index_chunks_fts, rank) VALUES ('secure-delete', 0)"
                )
                db.execute(
                    "INSERT INTO memory_index_paths_fts (memory_index_paths_fts, rank) VALUES ('secure-delete', 0)"
                )
            with db:
                for statement in statements:
                    db.execute(statement)
    for path in sorted(maker.workspace.rglob("*")) if files else ():
        if path.is_file() and path.suffix != ".tmp":
            path.rename(f"{path}.forget.{DEAD_PROCESS}.{UUID}.tmp")
            path.write_text("kept\n")
