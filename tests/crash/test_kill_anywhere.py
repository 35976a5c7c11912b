"""Kill anywhere, run again = one run: SIGKILL at every step, and at many moments, then the same command once more."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import cenotaph
from conftest import CommandLine
from scene import SECRET, SURVIVOR, TARGET, agent_rows, own, play, state_rows
from state_maker import StateMaker, files_holding, marker, snapshot

KILLED = """
import os, signal, sys
import cenotaph

def step(name):
    if name == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

with cenotaph.open(sys.argv[1], agent="main") as memory:
    memory.forget(sessions=[sys.argv[2]], on_step=step)
"""
UNIT = f"{marker('kept:joined')}\n{marker('gone:e')}\n- stacked entry\n{marker('kept:k')}\n- own entry\n"


def scene(maker: StateMaker, notes: int = 3) -> StateMaker:
    """One of everything, with an entry that two keys share, and as many notes as asked for."""
    play(maker, {"MEMORY.md": UNIT, "USER.md": f"a\n> {SECRET}\n", "DREAMS.md": f"> {SECRET}\nb\n"})
    own(own(maker, ["gone:e"]), ["kept:joined", "kept:k"], SURVIVOR)
    for number in range(notes):
        name = f"memory/note-{number:04d}.md"
        maker.file(name, f"kept\n{marker('gone:e')}\n- entry\n> {SECRET}\n")
        maker.source(name)
        maker.chunk(name, f"> {SECRET}", cached=True)
    for key in ("gone:e", "kept:joined", "kept:k"):
        maker.short_term(key, "some words")
    for session in (TARGET, SURVIVOR):
        maker.seen(f"main:sessions/main/{session}")
        maker.checkpoint(f"main:sessions/main/{session}")
        maker.chunk(f"sessions/main/{session}.jsonl", f"words of {session}", source="sessions", kind="interactive")
    maker.backup(UNIT)
    return maker.seal()


def meaning(maker: StateMaker) -> dict[str, Any]:
    """What a state holds, without clock readings."""
    queries = (
        "SELECT * FROM memory_entry_origins ORDER BY 1, 2, 3",
        "SELECT session_id, agent_id FROM memory_session_tombstones ORDER BY 1",
        "SELECT id FROM memory_index_chunks ORDER BY 1",
        "SELECT path, source FROM memory_index_sources ORDER BY 1, 2",
        "SELECT hash FROM memory_embedding_cache ORDER BY 1",
    )
    plugin = "SELECT namespace, value_json FROM plugin_state_entries WHERE namespace <> 'short-term-meta' ORDER BY 1, 2"
    return {
        "files": snapshot(maker.workspace),
        "rows": [agent_rows(maker, query) for query in queries],
        "plugin": state_rows(maker, plugin),
    }


class Stage:
    """The same scene again and again, at the same path."""

    def __init__(self, maker: StateMaker) -> None:
        self.maker = maker
        self.pristine = maker.root.with_name("pristine")
        shutil.copytree(maker.root, self.pristine)

    def reset(self) -> StateMaker:
        """The scene as it was."""
        shutil.rmtree(self.maker.root)
        shutil.copytree(self.pristine, self.maker.root)
        return self.maker


def steps_of(maker: StateMaker) -> list[str]:
    """The steps of an uninterrupted run, in order, each once."""
    seen: list[str] = []
    with cenotaph.open(maker.state, agent="main") as memory:
        memory.forget(sessions=[TARGET], on_step=seen.append)
    return list(dict.fromkeys(seen))


def test_a_kill_at_any_step_is_made_good_by_the_next_run(either: StateMaker, cli: CommandLine) -> None:
    stage = Stage(scene(either))
    steps = steps_of(either)
    expected = meaning(either)
    assert len(steps) > 5
    wrong: dict[str, object] = {}
    for step in steps:
        stage.reset()
        command = [sys.executable, "-c", KILLED, str(either.state), TARGET, step]
        killed = subprocess.run(command, capture_output=True, check=False, timeout=60)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        cli.forget(either.state, "--session", TARGET)
        left = meaning(either)
        differing = {name: (left[name], expected[name]) for name in expected if left[name] != expected[name]}
        if differing or files_holding(either.root, SECRET.encode()):
            wrong[step] = differing
    assert wrong == {}


LOG_HEADER = bytes.fromhex("377f0682002de21800001000000000002f5597100e0a1cb2e57e58424f8239f5")
"""Header of a write-ahead log for pages of 4096 bytes, with its checksum; no frame follows."""


@pytest.mark.parametrize("which", ["agent_db", "state_db"])
def test_a_log_that_a_dead_writer_only_began(either: StateMaker, cli: CommandLine, which: str) -> None:
    """Killed after the header of the log and before its first frame: nothing is lost, nobody holds a lock."""
    path: Path = getattr(scene(either), which)
    for each in (either.agent_db, either.state_db):
        db = sqlite3.connect(each)
        db.execute("PRAGMA journal_mode=WAL")
        db.close()
    Path(f"{path}-wal").write_bytes(LOG_HEADER)
    Path(f"{path}-shm").write_bytes(bytes(32768))
    start = time.monotonic()
    assert cli.forget(either.state, "--session", TARGET, "--dry-run")["artifacts"]["memoryEntries"] == 5
    report = cli.forget(either.state, "--session", TARGET)
    assert report["artifacts"]["memoryEntries"] == 5
    assert time.monotonic() - start < 8
    assert files_holding(either.root, SECRET.encode()) == []


@pytest.mark.slow
def test_a_kill_at_any_moment_is_made_good_by_the_next_run(maker: StateMaker, cli: CommandLine) -> None:
    """Moments spread over a run that rewrites hundreds of files; most fall into the writing."""
    stage = Stage(scene(maker, notes=400))
    start = time.monotonic()
    cli.forget(maker.state, "--session", TARGET)
    taken = time.monotonic() - start
    expected = meaning(maker)
    for number in range(1, 21):
        kill_after(stage.reset(), taken * (0.4 + 0.6 * number / 20), cli)
        assert not leftovers(maker.workspace, cli, maker), number
        assert meaning(maker) == expected, number
        assert files_holding(maker.root, SECRET.encode()) == [], number


def kill_after(maker: StateMaker, seconds: float, cli: CommandLine) -> None:
    """Starts a purge and kills it."""
    command = [*CommandLine.command, "--state-dir", str(maker.state), "forget", "--agent", "main", "--session", TARGET]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=cli.environment())
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def leftovers(workspace: Path, cli: CommandLine, maker: StateMaker) -> list[str]:
    """Runs the command again; temporary files that are there after it."""
    cli.forget(maker.state, "--session", TARGET)
    return [str(path) for path in workspace.rglob("*.tmp")]


def test_what_a_rerun_needs_goes_last(maker: StateMaker) -> None:
    """Origin rows and corpus lines are how the next run finds the rest."""
    steps = steps_of(scene(maker))
    order = ["Writing tombstones", "Rewriting memory files", "Removing corpus lines", "Deleting origin rows"]
    assert [step for step in steps if step in order] == order
