"""V22: the workspace lock of a process that is provably gone is taken over at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import CommandLine
from scene import TARGET, own, play, state_rows
from state_maker import StateMaker, marker

UUID = "0b2b7a4e-7a0f-4f0e-9d5c-1d2f3a4b5c6d"


def dead_pid() -> int:
    """The id of a process that has just ended."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


def timed(cli: CommandLine, maker: StateMaker) -> float:
    """Seconds that a purge takes; the lock must be free afterwards."""
    start = time.monotonic()
    cli.forget(maker.state, "--session", TARGET)
    taken = time.monotonic() - start
    assert maker.read("MEMORY.md") == b""
    assert state_rows(maker, "SELECT value_json FROM plugin_state_entries WHERE namespace = 'short-term-locks'") == []
    return taken


def scene(maker: StateMaker) -> StateMaker:
    return own(play(maker, {"MEMORY.md": f"{marker('gone:e')}\n- entry\n"}), ["gone:e"])


@pytest.mark.parametrize("age_ms", [0, 30_000, 120_000], ids=["fresh", "half a minute", "stale"])
def test_v22_an_absent_owner_does_not_make_us_wait(cli: CommandLine, either: StateMaker, age_ms: int) -> None:
    scene(either).locked_by(f"{dead_pid()}:{UUID}", int(time.time() * 1000) - age_ms)
    assert timed(cli, either.seal()) < 5


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs process start times")
def test_v22_a_process_that_started_later_is_another_one(cli: CommandLine, either: StateMaker) -> None:
    scene(either).locked_by(f"{os.getpid()}:{UUID}", int(time.time() * 1000) - 40 * 24 * 3600 * 1000)
    assert timed(cli, either.seal()) < 5


@pytest.mark.slow
def test_v22_a_living_owner_is_respected(cli: CommandLine, either: StateMaker) -> None:
    owner = f"{os.getpid()}:{UUID}"
    scene(either).locked_by(owner, int(time.time() * 1000))
    either.seal()
    start = time.monotonic()
    done = cli(either.state, "forget", "--session", TARGET, "--json")
    assert 9 < time.monotonic() - start < 20
    assert done.status == 1
    assert done.json["error"]["message"] == (
        "Memory forget failed: Timed out waiting for memory workspace lock at "
        f"plugin-state:memory-core/short-term-locks/{either.workspace_key} (held by {owner})"
    )
    assert either.read("MEMORY.md") != b""


def test_v22_a_preview_needs_no_lock(cli: CommandLine, either: StateMaker) -> None:
    scene(either).locked_by(f"{os.getpid()}:{UUID}", int(time.time() * 1000))
    either.seal()
    start = time.monotonic()
    cli.forget(either.state, "--session", TARGET, "--dry-run")
    assert time.monotonic() - start < 5
