"""Two deletions at the same time end as one after the other would, or one of them says that it has to wait."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from typing import Any

import pytest
from stage import Stage, damaged, differing, meaning, residue, scene, steps_of

import cenotaph
from cenotaph import _core
from conftest import CommandLine, Done
from scene import SURVIVOR, TARGET
from state_maker import StateMaker

LIMIT = 30
"""Seconds that no run may take."""
ROUNDS = 4


def started(cli: CommandLine, maker: StateMaker, session: str) -> subprocess.Popen[str]:
    """A run that is not waited for."""
    command = [*cli.command, "--state-dir", str(maker.state), "forget", "--agent", "main", "--session", session]
    return subprocess.Popen(
        [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=cli.environment()
    )


def at_once(cli: CommandLine, maker: StateMaker, sessions: list[str], apart: float) -> list[Done]:
    """Runs that begin some seconds apart."""
    runs: list[subprocess.Popen[str]] = []
    for session in sessions:
        runs.append(started(cli, maker, session))
        time.sleep(apart)
    ended: list[Done] = []
    for run in runs:
        out, err = run.communicate(timeout=LIMIT)
        ended.append(Done(run.returncode, out, err))
    return ended


PASSING = ("it changed while it was read; run the command again", "-wal")
"""How things end that are left because the other one is writing, and that the next run finds gone."""


def wrong_ends(ended: list[Done]) -> list[str]:
    """Ends that are neither complete nor a request to wait or to look again."""
    return [f"exit {done.status}: {done.out[-300:]} {done.err[-300:]}" for done in ended if not is_right(done)]


def is_right(done: Done) -> bool:
    if done.status == 1:
        busy = ("Timed out waiting for memory workspace lock", "is busy", "is locked")
        return any(word in done.json["error"]["message"] for word in busy)
    pending = done.json["pending"]
    return bool(pending) == (done.status == 3) and all(item.endswith(PASSING) for item in pending)


def again(cli: CommandLine, maker: StateMaker, ended: list[Done], sessions: list[str]) -> None:
    """What an end that was no success asks for."""
    for done, session in zip(ended, sessions, strict=True):
        if done.status != 0:
            cli.forget(maker.state, "--session", session)


def receipts_wrong(maker: StateMaker) -> list[str]:
    """What is wrong with the chains: a link that does not hold, an erasure that was completed twice or never."""
    wrong: list[str] = []
    for store in (
        _core.Store.open_agent(maker.agent_db, "main", write=False),
        _core.StateStore.open(maker.state_db, write=False),
    ):
        assert store is not None
        try:
            broken = _core.check_receipts(store)
            wrong += [f"{broken}"] if broken else []
            links = _core.receipts(store)
        finally:
            store.close()
        if isinstance(store, _core.Store):
            completed = Counter(link.receipt for link in links if link.stage == "completed")
            wrong += [
                f"{receipt} was completed {completed[receipt]} times"
                for receipt in {link.receipt for link in links}
                if completed[receipt] != 1
            ]
    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("sessions", [[TARGET, TARGET], [TARGET, SURVIVOR], [TARGET, SURVIVOR, TARGET]], ids="-".join)
def test_at_once(either: StateMaker, cli: CommandLine, sessions: list[str]) -> None:
    """Beginning together, and some time apart, so that the second comes while the first does one thing or another."""
    stage = Stage(scene(either))
    for session in dict.fromkeys(sessions):
        cli.forget(either.state, "--session", session)
    expected = meaning(either)
    assert residue(either) == []
    wrong: dict[float, Any] = {}
    for number in range(ROUNDS * len(set(sessions))):
        stage.reset()
        ended = at_once(cli, either, sessions, 0.04 * number)
        again(cli, either, ended, sessions)
        found = [
            *wrong_ends(ended), *residue(either), *damaged(either), *receipts_wrong(either),
            *differing(meaning(either), expected).items(),
        ]  # fmt: skip
        if found:
            wrong[0.04 * number] = found
    assert wrong == {}


def test_a_second_one_at_every_step(maker: StateMaker, cli: CommandLine) -> None:
    """The second is begun at each step of the first, and waits for the lock while the first has it."""
    stage = Stage(scene(maker))
    steps = steps_of(maker)
    stage.reset()
    for session in (TARGET, SURVIVOR):
        cli.forget(maker.state, "--session", session)
    expected = meaning(maker)
    wrong: dict[str, Any] = {}
    for name in steps:
        stage.reset()
        runs: list[subprocess.Popen[str]] = []

        def step(now: str, name: str = name, runs: list[subprocess.Popen[str]] = runs) -> None:
            if now == name and not runs:
                runs.append(started(cli, maker, SURVIVOR))
                time.sleep(0.25)

        with cenotaph.open(maker.state, agent="main") as memory:
            report = memory.forget(sessions=[TARGET], on_step=step)
        out, err = runs[0].communicate(timeout=LIMIT)
        ended = [
            Done(report.exit_status, report.model_dump_json(by_alias=True), ""),
            Done(runs[0].returncode, out, err),
        ]
        again(cli, maker, ended, [TARGET, SURVIVOR])
        found = [
            *wrong_ends(ended), *residue(maker), *damaged(maker),
            *receipts_wrong(maker), *differing(meaning(maker), expected).items(),
        ]  # fmt: skip
        if found:
            wrong[name] = found
    assert wrong == {}
