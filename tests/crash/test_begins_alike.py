"""A survivor that begins like what is forgotten is no residue, for the keyed hashes of a receipt neither."""

from __future__ import annotations

import signal
import subprocess

import pytest

import cenotaph
from conftest import CommandLine
from scene import SURVIVOR, TARGET
from state_maker import StateMaker, corpus_line, files_holding

ALIKE = "User: the minutes of the weekly meeting of the committee for lathes and belts, part "
GONE, KEPT = ALIKE + "one: the mongoose was seen", ALIKE + "two: nothing was seen"


def scene(maker: StateMaker) -> StateMaker:
    for session in (TARGET, SURVIVOR):
        maker.session(session)
    maker.corpus("2026-11-20", [corpus_line(TARGET, 2, GONE), corpus_line(SURVIVOR, 2, KEPT)])
    maker.file("MEMORY.md", f"> {GONE}\n> {KEPT}\n")
    maker.chunk("MEMORY.md", f"> {GONE}\n> {KEPT}")
    return maker.seal()


def test_a_run_finds_none(either: StateMaker, cli: CommandLine) -> None:
    scene(either)
    assert cli.forget(either.state, "--session", TARGET)["verification"]["result"] == "clean"
    assert files_holding(either.root, b"mongoose") == []
    assert files_holding(either.root, KEPT.encode()) != []


def test_a_later_verification_finds_none(either: StateMaker, cli: CommandLine) -> None:
    scene(either)
    cli.forget(either.state, "--session", TARGET)
    with cenotaph.open(either.state, agent="main") as memory:
        assert memory.verify().residue == []


@pytest.mark.parametrize("point", ["tombstones:committed", "index:committed", "origins:committed", "verify:begin"])
def test_a_run_that_was_killed_can_be_finished(either: StateMaker, cli: CommandLine, point: str) -> None:
    scene(either)
    wish = ("forget", "--agent", "main", "--session", TARGET)
    killed = subprocess.run(
        [*cli.command, "--state-dir", str(either.state), *wish],
        env=cli.environment({"CENOTAPH_KILL_POINTS": f"kill:{point}:1"}), capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert cli(either.state, *wish).status == 0
