"""A deletion while another process reads, writes, holds the host's lock or builds an index: every wait has an end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from intruder import intruder
from stage import damaged, residue, scene

from conftest import CommandLine, Done
from scene import SECRET, TARGET, state_rows
from state_maker import StateMaker, files_holding

LIMIT = 30
"""Seconds that no run may take."""
UUID = "0b2b7a4e-7a0f-4f0e-9d5c-1d2f3a4b5c6d"


def timed(cli: CommandLine, maker: StateMaker, *more: str) -> tuple[Done, float]:
    """One run and its seconds."""
    begun = time.monotonic()
    done = cli(maker.state, "forget", "--agent", "main", "--session", TARGET, "--json", *more)
    taken = time.monotonic() - begun
    assert taken < LIMIT, done.err
    return done, taken


def finished(cli: CommandLine, maker: StateMaker) -> list[str]:
    """Runs it with nobody in the way; what is wrong then."""
    return [*cli.forget(maker.state, "--session", TARGET)["pending"], *residue(maker), *damaged(maker)]


# -- (a) readers --------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("where", ["agent", "state"])
def test_a_reader_that_stays(either: StateMaker, cli: CommandLine, where: str) -> None:
    """It sees what it saw before, the run ends in time and says what it waits for, and the next one finishes."""
    scene(either)
    query = {"agent": "SELECT text FROM memory_index_chunks", "state": "SELECT value_json FROM plugin_state_entries"}
    with intruder(either) as program:
        program("hold", where=where, statement=query[where])
        done, taken = timed(cli, either)
        assert done.status == 3
        assert [item for item in done.json["pending"] if item.startswith("wal")] != []
        assert taken < 9, "the limit of a checkpoint is five seconds"
        assert done.json["measured"]["writeAheadLog"] == "pinned"
        preview, taken = timed(cli, either, "--dry-run")
        assert preview.status == 0
        assert taken < 5
    assert finished(cli, either) == []


@pytest.mark.slow
def test_readers_that_come_and_go(either: StateMaker, cli: CommandLine) -> None:
    scene(either)
    with intruder(either) as program:
        program("keep_reading", pause=0.005, length=0.02)
        done, _ = timed(cli, either)
        read = program("finish")["read"]
    assert done.status in (0, 3), done.err
    assert read > 10
    if done.status == 0:
        assert residue(either) == []
    else:
        assert [item for item in done.json["pending"] if item.startswith("wal")] != []
    assert finished(cli, either) == []


# -- (b) writers --------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.2, 0.02, 0.001])
def test_a_program_that_keeps_writing(either: StateMaker, cli: CommandLine, pause: float) -> None:
    """Complete, or one sentence that says what to do; nothing of the writer is lost."""
    scene(either)
    with intruder(either) as program:
        program("keep_writing", pause=pause, text="words of somebody else", path="memory/other.md")
        time.sleep(0.2)
        done, _ = timed(cli, either)
        counted = program("finish")
    assert counted["written"] > 2
    assert counted["busy"] == 0
    if done.status == 1:
        message = done.json["error"]["message"]
        assert "keep changing; stop the programs that write them" in message
    elif done.status == 0:
        assert residue(either) == []
    else:
        assert done.json["pending"] != []
    assert pause < 0.1 or done.status in (0, 3), done.out
    assert finished(cli, either) == []
    assert files_holding(either.state, b"words of somebody else") != []


def test_a_writer_that_does_not_end(either: StateMaker, cli: CommandLine) -> None:
    """A write transaction that stays open: the run gives up after its limit and says which database it is about."""
    scene(either)
    before = {path: path.read_bytes() for path in either.workspace.rglob("*") if path.is_file()}
    with intruder(either) as program:
        program("hold", where="agent", statement="UPDATE memory_index_state SET revision = revision RETURNING 1")
        done, taken = timed(cli, either)
    assert done.status == 1
    assert "openclaw-agent.sqlite" in done.json["error"]["message"]
    assert 5 < taken < LIMIT
    assert {path: path.read_bytes() for path in before} == before
    assert finished(cli, either) == []


# -- (c) the host's lock ------------------------------------------------------------------------------
HOLDER = """
import json, os, sqlite3, sys, time
path, key, uuid, length = sys.argv[1:5]
db = sqlite3.connect(path, isolation_level=None, timeout=10)
with open("/proc/self/stat") as file:
    start = int(file.read().rsplit(")", 1)[1].split()[19])
value = json.dumps({"owner": f"{os.getpid()}:{uuid}", "acquiredAt": int(time.time() * 1000), "ownerStartTime": start})
where = "plugin_id = 'memory-core' AND namespace = 'short-term-locks' AND entry_key = ?"
db.execute("INSERT INTO plugin_state_entries VALUES ('memory-core', 'short-term-locks', ?, ?, 1, NULL)", (key, value))
print("locked", flush=True)
time.sleep(float(length))
db.execute(f"DELETE FROM plugin_state_entries WHERE {where}", (key,))
print("unlocked", flush=True)
"""


@contextmanager
def lock_holder(maker: StateMaker, seconds: float) -> Generator[subprocess.Popen[str]]:
    """A process that holds the workspace lock as the host does, for some time."""
    command = [sys.executable, "-c", HOLDER, str(maker.state_db), maker.workspace_key, UUID, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_lock_is_given_back_in_time(either: StateMaker, cli: CommandLine) -> None:
    scene(either)
    with lock_holder(either, 2.5):
        done, taken = timed(cli, either)
    assert done.status == 0
    assert taken > 1.5
    assert residue(either) == []


@pytest.mark.slow
def test_the_lock_is_not_given_back(either: StateMaker, cli: CommandLine) -> None:
    """Ten seconds, the host's sentence, nothing changed; and once its holder is dead it is taken over at once."""
    scene(either)
    before = {path: path.read_bytes() for path in either.workspace.rglob("*") if path.is_file()}
    with lock_holder(either, 60) as holder:
        done, taken = timed(cli, either)
        assert done.status == 1
        assert f"(held by {holder.pid}:{UUID})" in done.json["error"]["message"]
        assert 9 < taken < LIMIT
        assert {path: path.read_bytes() for path in before} == before
        holder.kill()
        holder.wait()
        done, taken = timed(cli, either)
    assert done.status == 0
    assert taken < 5
    assert finished(cli, either) == []
    assert state_rows(either, "SELECT 1 FROM plugin_state_entries WHERE namespace = 'short-term-locks'") == []


# -- (e) an index that is being built -------------------------------------------------------------------
BUILDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("CREATE TABLE memory_index_chunks (id TEXT PRIMARY KEY, path TEXT, text TEXT)")
db.execute("INSERT INTO memory_index_chunks VALUES ('one', 'memory/old.md', ?)", (sys.argv[2],))
db.execute("BEGIN IMMEDIATE")
print("building", flush=True)
sys.stdin.readline()
"""


@contextmanager
def index_builder(maker: StateMaker) -> Generator[Path]:
    """A process that builds an index beside the database, with forgotten text in it."""
    path = Path(f"{maker.agent_db}.memory-reindex-{UUID}")
    command = [sys.executable, "-c", BUILDER, str(path), SECRET]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "building\n"
        try:
            yield path
        finally:
            process.kill()


@pytest.mark.parametrize("age", [0, 3600], ids=["fresh", "for an hour"])
def test_an_index_that_is_being_built(either: StateMaker, cli: CommandLine, age: int) -> None:
    """Its builder must find the index revision changed and discard it; until then it is named as left."""
    scene(either)
    with index_builder(either) as path:
        os.utime(path, (time.time() - age, time.time() - age))
        done, _ = timed(cli, either)
        assert done.status == 3
        assert [item for item in done.json["pending"] if path.name in item] != [], done.json["pending"]
        assert path.exists()
    os.utime(path, (time.time() - 3600, time.time() - 3600))  # its builder was killed and touches it no more
    assert finished(cli, either) == []
    assert not path.exists()


def test_the_builder_discards_its_index(either: StateMaker, cli: CommandLine) -> None:
    scene(either)
    with index_builder(either) as path:
        done, _ = timed(cli, either)
        assert done.status == 3
        path.unlink()
    assert finished(cli, either) == []
