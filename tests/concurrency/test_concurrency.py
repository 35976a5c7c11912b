"""Forget while others read, write, lock and forget: nothing forgotten is published later, nobody waits for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from conftest import CommandLine
from scene import SECRET, SURVIVOR, TARGET, agent_rows, own, play
from state_maker import StateMaker, files_holding, marker

LONGEST = 60
"""Seconds within which a command has ended, whatever the others do: a few waits of ten seconds each at most."""
ENTRY = "- the violet entry that came of what was said\n"

READER = """
import apsw, sys
db = apsw.Connection(sys.argv[1])
db.execute("BEGIN")
db.execute("SELECT count(*) FROM memory_index_chunks").fetchone()
print("ready", flush=True)
sys.stdin.readline()
"""
WRITER = """
import apsw, sys, time
db = apsw.Connection(sys.argv[1])
db.set_busy_timeout(20_000)
print("ready", flush=True)
for number in range(100_000):
    db.execute(
        "INSERT OR REPLACE INTO memory_index_chunks (id, path, source, start_line, end_line, hash, model, text, "
        "embedding, updated_at) VALUES (?, 'memory/other.md', 'memory', 1, 2, ?, 'fts-only', ?, x'', 1)",
        (f"busy-{number % 50}", f"h{number}", f"kept words number {number} of a busy writer"),
    )
    time.sleep(0.005)
"""
INDEXER = """
import apsw, sys
db = apsw.Connection(sys.argv[1])
db.set_busy_timeout(20_000)
text = open(sys.argv[2]).read()
revision = db.execute("SELECT session_id FROM memory_session_tombstones").fetchall()
print("embedded", flush=True)
sys.stdin.readline()
db.execute("BEGIN IMMEDIATE")
now = db.execute("SELECT session_id FROM memory_session_tombstones").fetchall()
if now == revision:
    db.execute(
        "INSERT INTO memory_index_chunks (id, path, source, start_line, end_line, hash, model, text, embedding, "
        "updated_at) VALUES ('late', 'MEMORY.md', 'memory', 1, 2, 'h', 'fts-only', ?, x'', 1)", (text,)
    )
db.execute("COMMIT")
print("published" if now == revision else "given up", flush=True)
"""


def scene(maker: StateMaker, *, owner: str | None = None) -> StateMaker:
    """One session to forget, in files, corpus, index and plugin state; with a lock of `owner` on the workspace."""
    play(maker, {"MEMORY.md": f"{marker('gone:e')}\n{ENTRY}\nkept\n> {SECRET}\n"})
    own(own(maker, ["gone:e"]), ["kept:k"], SURVIVOR)
    maker.source("MEMORY.md")
    maker.chunk("MEMORY.md", f"> {SECRET}", cached=True)
    maker.short_term("gone:e", "the violet entry")
    if owner:
        maker.locked_by(owner, int(time.time() * 1000))
    return maker.seal()


@contextmanager
def beside(script: str, *arguments: str | Path) -> Generator[subprocess.Popen[str]]:
    """Another process, ready when the block begins and gone when it ends."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() != ""
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> str:
    """Lets the other go on, and returns what it says then."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def clean(maker: StateMaker) -> None:
    """No file holds what was said, and the databases are whole."""
    assert files_holding(maker.root, SECRET.encode()) == []
    assert files_holding(maker.root, ENTRY.strip("- \n").encode()) == []
    assert agent_rows(maker, "PRAGMA integrity_check") == [("ok",)]


def forget(cli: CommandLine, maker: StateMaker, *arguments: str) -> Any:
    start = time.monotonic()
    done = cli(maker.state, "forget", "--agent", "main", *(arguments or ("--session", TARGET)), "--json")
    assert time.monotonic() - start < LONGEST
    assert "Traceback" not in done.err
    return done


def test_a_reader_with_an_open_transaction(cli: CommandLine, either: StateMaker) -> None:
    scene(either)
    with beside(READER, either.agent_db):
        done = forget(cli, either)
        assert (done.status, done.json["pending"]) == (3, ["wal"])
        assert done.json["receipt"]["completed"] is False
    again = forget(cli, either)
    assert (again.status, again.json["pending"]) == (0, [])
    assert again.json["receipt"]["completed"]
    assert again.json["receipt"]["id"] == done.json["receipt"]["id"]
    clean(either)


def test_a_writer_of_chunks(cli: CommandLine, either: StateMaker) -> None:
    """The log may be busy at the end; without the writer the same command ends it."""
    scene(either)
    with beside(WRITER, either.agent_db):
        done = forget(cli, either)
        assert done.status in (0, 1, 3), done.err
        if done.status == 1:
            assert "Memory forget failed" in done.json["error"]["message"]
    assert forget(cli, either).status == 0
    clean(either)
    assert agent_rows(either, "SELECT count(*) > 0 FROM memory_index_chunks WHERE id LIKE 'busy-%'") == [(1,)]


def test_the_lock_of_a_living_host(cli: CommandLine, either: StateMaker) -> None:
    """The host's lock on the workspace, held by a process that lives: a limit, a message, and nothing changed."""
    scene(either, owner=f"{os.getpid()}:{uuid4()}")
    before = either.read("MEMORY.md")
    done = forget(cli, either)
    assert done.status == 1
    assert str(os.getpid()) in done.json["error"]["message"]
    assert either.read("MEMORY.md") == before
    assert agent_rows(either, "SELECT count(*) FROM memory_session_tombstones") == [(0,)]


@pytest.mark.parametrize("other", [TARGET, SURVIVOR], ids=["same session", "other session"])
def test_a_second_forget(cli: CommandLine, either: StateMaker, other: str) -> None:
    scene(either)
    command = [*cli.command, "--state-dir", str(either.state), "forget", "--agent", "main", "--json", "--session"]
    start = time.monotonic()
    running = [
        subprocess.Popen([*command, session], stdout=subprocess.PIPE, text=True, env=cli.environment())
        for session in (TARGET, other)
    ]
    reports = [json.loads(process.communicate(timeout=LONGEST)[0]) for process in running]
    assert time.monotonic() - start < LONGEST
    # A reader in the middle of its search can pin the log of the other for that moment.
    assert all(process.returncode in (0, 3) for process in running), reports
    for session in (TARGET, other):
        assert forget(cli, either, "--session", session).status == 0
    clean(either)
    assert cli(either.state, "receipts", "verify").status == 0
    assert "NOT COMPLETED" not in cli(either.state, "receipts", "list").out


def test_an_index_run_between_embedding_and_publishing(cli: CommandLine, either: StateMaker) -> None:
    """A run that looks at the tombstones again when it publishes gives up."""
    scene(either)
    with beside(INDEXER, either.agent_db, either.workspace / "MEMORY.md") as indexer:
        assert forget(cli, either).status == 0
        assert told(indexer) == "given up"
    clean(either)


def test_what_is_published_after_all_is_found_and_goes(cli: CommandLine, either: StateMaker) -> None:
    """A program that knows nothing of tombstones puts the text back: verify says so, and the next forget ends it."""
    scene(either)
    text = either.workspace / "late.txt"
    assert forget(cli, either).status == 0
    text.write_text(f"> {SECRET}\n")
    with beside(INDEXER, either.agent_db, text) as careless:
        assert told(careless) == "published"
    text.unlink()
    found = cli(either.state, "verify", "--json")
    assert (found.status, found.json["result"]) == (3, "residue")
    database = str(either.agent_db.relative_to(either.state))
    assert {place["path"].removesuffix("-wal") for place in found.json["residue"]} == {database}
    assert SECRET not in found.out
