"""Kill anywhere, run again = one run: SIGKILL at every step, and at many moments, then the same command once more."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stage import Stage, meaning, scene, steps_of

from conftest import CommandLine
from scene import SECRET, TARGET
from state_maker import StateMaker, files_holding

KILLED = """
import os, signal, sys
import cenotaph

def step(name):
    if name == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

with cenotaph.open(sys.argv[1], agent="main") as memory:
    memory.forget(sessions=[sys.argv[2]], on_step=step)
"""


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
