"""SIGKILL at every named kill point, and at two hundred moments: the next run ends where an uninterrupted one does.

`CENOTAPH_KILL_POINTS=log:PATH` appends the name of every kill point that is passed; `kill:NAME:N` kills the process
when NAME is passed for the N-th time.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import planting
import pytest
from forks import Ended, Forks, forks
from raw import present
from stage import Stage, damaged, differing, meaning, residue, scene

from conftest import CommandLine
from scene import TARGET
from state_maker import StateMaker

ENOUGH = 20
"""Fewer distinct kill points than this cannot lie between and inside all steps."""
LIVE = [kind for kind in planting.KINDS if not kind.past]
PLACES = ("native", "host", "oracle")


class Found(StateMaker):
    """A state directory that somebody else made."""

    def __init__(self, root: Path, state: Path, workspace: Path) -> None:  # pyright: ignore[reportMissingSuperCall]
        self.root, self.state, self.workspace, self.agent = root, state, workspace, "main"


@dataclass
class Play:
    """A state directory, what to forget in it, and what must not be left then."""

    maker: StateMaker
    selection: list[str]
    left: Callable[[], list[str]]


def everything(maker: StateMaker) -> Play:
    """Every kind of artifact, with stacked markers, notes and vectors."""
    staged = planting.begin(maker)
    for kind in LIVE:
        kind.plant(staged, planting.make_needle(kind.name))
    for number in range(12):
        key, other = staged.key(), f"kept:stacked-{number}"
        maker.origin(other, planting.SURVIVOR)
        markers = f"{planting.marker(other)}\n{planting.marker(key)}\n"
        maker.file(f"memory/many-{number:02d}.md", f"# Kept\n\n{markers}- stacked entry {number}\n\nkept too\n")
    staged.seal()
    there = present([maker.root], planting.needles_of(LIVE))
    assert {kind for kind, _, _ in there} == {kind.name for kind in LIVE}
    return Play(maker, ["--session", planting.TARGET], lambda: residue(maker, there))


def generated(folder: Path, shared: Path) -> Play:
    """The oracle's generator: twenty sessions, a tenth of them to forget."""
    state = folder / "state"
    script = shared / "oracle" / "gen_state.py"
    command = [
        sys.executable, str(script), str(state), "--template", str(shared / "oracle" / "template"), "--sessions", "20",
        "--seed", "11", "--at", str(state), "--manifest", str(folder.with_name("manifest.json")),
        "--short-term", "60",
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    manifest = json.loads(folder.with_name("manifest.json").read_text())
    chosen = manifest["selections"]["tenth"]
    gone = {token for session in chosen["sessions"] for token in manifest["sessions"][session]["vanish"]}
    assert len(gone) > 10
    maker = Found(folder, state, state / "workspace")
    return Play(maker, chosen["args"], lambda: [*tokens_left(folder, gone), *residue(maker, [])])


def tokens_left(root: Path, gone: set[str]) -> list[str]:
    """Words of the oracle's facts that can be read anywhere."""
    wanted = {token.encode() for token in gone}
    return [
        str(path)
        for path in root.rglob("*")
        if path.is_file() and wanted.intersection(re.findall(rb"zq-[0-9a-f]{12}", path.read_bytes()))
    ]


def play(kind: str, folder: Path, request: pytest.FixtureRequest) -> Play:
    """A state directory of one of the three kinds."""
    if kind == "native":
        return everything(StateMaker(folder))
    shared: Path = request.getfixturevalue("shared")
    if kind == "oracle":
        folder.mkdir()
        return generated(folder, shared)
    maker = scene(StateMaker(folder, shared / "oracle" / "template"))
    return Play(maker, ["--session", TARGET], lambda: residue(maker))


@pytest.fixture
def server(cli: CommandLine, tmp_path: Path) -> Generator[Forks]:
    """Where the runs are forked."""
    with forks(cli, tmp_path / "runs") as running:
        yield running


class Sweep:
    """The same purge again and again, interrupted and finished."""

    def __init__(self, server: Forks, actors: Play) -> None:
        self.server, self.actors = server, actors
        self.stage = Stage(actors.maker)
        whole = self.run({"CENOTAPH_KILL_POINTS": f"log:{server.log}"})
        assert whole.status == 0, whole.err
        self.seconds = whole.seconds
        self.passed = Counter(server.logged())
        self.expected = meaning(actors.maker)
        left = actors.left()
        assert left == [], "the uninterrupted run leaves something"

    def run(self, env: dict[str, str] | None = None, kill: float | None = None) -> Ended:
        """One purge."""
        state = str(self.actors.maker.state)
        wish = ["--state-dir", state, "forget", "--agent", "main", *self.actors.selection, "--json"]
        return self.server(*wish, env=env, kill=kill)

    def finished(self) -> object:
        """Runs it again; what is wrong then, or None."""
        maker = self.actors.maker
        broken = damaged(maker)
        if broken:
            return broken
        again = self.run()
        if again.status != 0:
            return f"exit {again.status}: {again.out[-300:]} {again.err[-300:]}"
        return damaged(maker) or differing(meaning(maker), self.expected) or self.actors.left() or None


def passages(count: int) -> list[int]:
    """The first, the middle and the last time."""
    return sorted({1, (count + 1) // 2, count})


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", PLACES)
def test_a_kill_at_every_kill_point(kind: str, server: Forks, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    sweep = Sweep(server, play(kind, tmp_path / "place", request))
    assert len(sweep.passed) > ENOUGH, sorted(sweep.passed)
    wrong: dict[str, object] = {}
    for name, count in sweep.passed.items():
        for number in passages(count):
            sweep.stage.reset()
            killed = sweep.run({"CENOTAPH_KILL_POINTS": f"kill:{name}:{number}"})
            found = sweep.finished() if killed.status == -signal.SIGKILL else f"not killed, exit {killed.status}"
            if found:
                wrong[f"{name}:{number}"] = found
    assert wrong == {}, f"{len(wrong)} of {sum(len(passages(count)) for count in sweep.passed.values())}"


def moments(seed: int, seconds: float, count: int) -> Iterator[float]:
    """Moments spread evenly over a run, each shifted by chance."""
    chance = random.Random(seed)
    for number in range(count):
        yield seconds * (number + chance.random()) / count


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", ["native", "host"])
def test_two_hundred_kills_by_time(kind: str, server: Forks, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A hundred for each kind."""
    sweep = Sweep(server, play(kind, tmp_path / "place", request))
    wrong: dict[float, object] = {}
    killed = 0
    for moment in moments(7, sweep.seconds, 100):
        sweep.stage.reset()
        killed += sweep.run(kill=moment).status == -signal.SIGKILL
        found = sweep.finished()
        if found:
            wrong[moment] = found
    assert wrong == {}, f"{len(wrong)} of 100, {killed} killed"
    assert killed > 50


def test_without_the_switch_nothing_is_logged(maker: StateMaker, server: Forks) -> None:
    """A misspelt switch, or none, neither logs nor kills."""
    scene(maker)
    shutil.copytree(maker.root, maker.root.with_name("copy"))
    for value in ("", "log", "kill:planned", "kill:planned:x", "kill:no such point:1"):
        wish = ["--state-dir", str(maker.state), "forget", "--agent", "main", "--session", TARGET, "--json"]
        ended = server(*wish, env={"CENOTAPH_KILL_POINTS": value})
        assert ended.status == 0, (value, ended.err)
    assert server.logged() == []
    assert not os.path.exists("log")
