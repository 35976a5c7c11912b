"""Every writing call fails once: a message, sound databases, and the next run finishes as if nothing had been.

The calls are made to fail by `fault.c`, which sees what goes through the C library. `rustix` makes its system calls
itself (measured: the renames, and changes of owner); renames are made to fail with strace where that is at hand.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from forks import Ended, Forks, forks
from stage import SAID, Stage, damaged, differing, meaning, residue, scene

from conftest import CommandLine
from scene import TARGET
from state_maker import StateMaker, database, files_holding

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
MOST = 200
"""Calls that are made to fail in one state directory; with more calls than this, every second (third ...) one."""


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled library."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("fault") / "fault.so"
    source = Path(__file__).with_name("fault.c")
    command = [compiler, "-O1", "-Wall", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return library


class Runs:
    """Purges, with a fault or without."""

    def __init__(self, server: Forks) -> None:
        self._server = server
        self.log = server.log

    def forget(self, maker: StateMaker, at: int = 0, number: int = errno.EIO, *, sticky: bool = False) -> Ended:
        """One purge. The `at`-th call fails (none if 0), with `sticky` also all after it."""
        self.log.unlink(missing_ok=True)
        fault = {"root": str(maker.root), "at": at, "errno": number, "sticky": sticky, "log": str(self.log)}
        wish = ("forget", "--agent", "main", "--session", TARGET, "--json")
        return self._server("--state-dir", str(maker.state), *wish, fault=fault)

    def calls(self) -> list[str]:
        """The calls of the last run, in order."""
        return self._server.logged()


@pytest.fixture
def runs(shim: Path, cli: CommandLine, tmp_path: Path) -> Generator[Runs]:
    """Runs with the library in them."""
    with forks(cli, tmp_path / "runs", shim) as server:
        yield Runs(server)


def wrong_words(ended: Ended) -> str | None:
    """What is wrong with how a run ended and what it said."""
    if ended.status not in (0, 1, 3):
        return f"exit {ended.status}: {ended.err[-300:]}"
    for word in ("Traceback", "panicked", "RUST_BACKTRACE", "Exception", "Error("):
        if word in ended.err + ended.out:
            return f"{word}: {ended.err[-300:]}"
    said: Any = json.loads(ended.out)
    if ended.status == 1:
        return None if is_one_sentence(said["error"]["message"], ended.err) else f"not one sentence: {ended.err}"
    if bool(said["pending"]) != (ended.status == 3):
        return f"exit {ended.status} with pending {said['pending']}"
    return None


def is_one_sentence(message: str, err: str) -> bool:
    """Whether standard error says what failed, once and in one line."""
    lines = err.strip().splitlines()
    return len(message) > 20 and len(lines) == 2 and lines[1] == f"[cenotaph] Reason: {message}"


def verdict(stage: Stage, runs: Runs, expected: dict[str, Any], ended: Ended) -> object:
    """What is wrong after a run with a fault and the next one without; None when nothing is."""
    maker = stage.maker
    said = wrong_words(ended) or damaged(maker)
    if said:
        return said
    again = runs.forget(maker)
    if again.status != 0:
        return f"the next run ended with {again.status}: {again.err[-300:]}"
    return damaged(maker) or differing(meaning(maker), expected) or residue(maker) or None


def strided(count: int) -> Iterator[int]:
    """Numbers of the calls that fail."""
    return iter(range(1, count + 1, -(-count // MOST)))


@pytest.mark.slow
@pytest.mark.parametrize("sticky", [False, True], ids=["once", "from then on"])
def test_a_call_that_fails(either: StateMaker, runs: Runs, sticky: bool) -> None:
    """ENOSPC, EIO and EACCES in turn. A full disk stays full: every fourth number, and all calls from there on."""
    stage = Stage(scene(either))
    assert runs.forget(either).status == 0
    count, expected = len(runs.calls()), meaning(either)
    assert count > 100
    assert residue(either) == []
    wrong: dict[str, object] = {}
    ends: Counter[int] = Counter()
    for number in list(strided(count))[:: 4 if sticky else 1]:
        stage.reset()
        kind = errno.ENOSPC if sticky else ERRORS[number % 3]
        ended = runs.forget(either, number, kind, sticky=sticky)
        ends[ended.status] += 1
        call = runs.calls()[number - 1 : number]
        found = verdict(stage, runs, expected, ended)
        if found:
            wrong[f"{call} {errno.errorcode[kind]}"] = found
    assert wrong == {}, f"{len(wrong)} of {sum(ends.values())}"
    assert ends[1] > 5


@pytest.mark.slow
def test_a_rename_that_fails(either: StateMaker, runs: Runs, cli: CommandLine) -> None:
    """Renames go past the C library; strace makes the N-th of every thread fail."""
    strace = shutil.which("strace")
    probe = [strace or "", "-f", "-e", "trace=none", sys.executable, "-c", ""]
    if strace is None or subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip("no strace, or it may not trace")
    stage = Stage(scene(either))
    assert runs.forget(either).status == 0
    expected = meaning(either)
    wrong: dict[str, object] = {}
    failed = 0
    for number in range(1, 100):
        stage.reset()
        kind = errno.errorcode[ERRORS[number % 3]]
        inject = f"inject=rename,renameat,renameat2:error={kind}:when={number}"
        command = [
            strace, "-f", "-qq", "-e", "trace=rename,renameat,renameat2", "-e", inject, "-o", str(runs.log),
            *cli.command, "--state-dir", str(either.state), "forget", "--agent", "main", "--session", TARGET, "--json",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100, env=cli.environment())
        if "(INJECTED)" not in runs.log.read_text():
            break
        failed += 1
        found = verdict(stage, runs, expected, Ended(done.returncode, done.stdout, done.stderr))
        if found:
            wrong[f"rename {number} {kind}"] = found
    assert wrong == {}
    assert failed > 2


def test_the_library_sees_what_the_command_does(either: StateMaker, runs: Runs) -> None:
    """Databases, logs, temporary files and corpus are all among the calls that can fail."""
    scene(either)
    assert runs.forget(either).status == 0
    calls = [call.split(" ", 2)[1:] for call in runs.calls()]
    assert {"fsync", "unlink"} <= {name for name, _ in calls}
    for part in ("openclaw-agent.sqlite", "-wal", ".cenotaph-"):
        assert [path for _, path in calls if part in path] != [], part
    assert {name for name, path in calls if "-wal" in path} & {"pwrite", "pwrite64", "write"}


# -- a disk that is really full ---------------------------------------------------------------------
def heavy(maker: StateMaker) -> StateMaker:
    """A database of some megabytes, with a careless past in it, so that making it clean needs room."""
    scene(maker)
    rows = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1500)"
    said, kept = f"{SAID.text}; " * 12, "kept words of great interest; " * 60
    with database(maker.agent_db) as db:
        db.execute(
            f"""{rows} INSERT INTO memory_index_chunks
            (id, path, source, start_line, end_line, hash, model, text, embedding, updated_at)
            SELECT 'heavy-' || x, CASE WHEN x % 3 = 0 THEN 'memory/old.md' ELSE 'memory/other.md' END, 'memory', x, x,
            'h' || x, 'fts-only', CASE WHEN x % 3 = 0 THEN '{said}' ELSE x || ' {kept}' END, x'', 1 FROM n"""
        )
    with database(maker.agent_db) as db:
        db.execute("PRAGMA secure_delete=OFF")
        db.execute("DELETE FROM memory_index_chunks WHERE path = 'memory/old.md'")
    return maker


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["native", "host"])
@pytest.mark.parametrize("room", [5, 25, 45, 70, 90, 110, 150, 200], ids=lambda room: f"{room} percent of it")
def test_a_disk_that_is_full(
    cli: CommandLine, small_disk: Path, request: pytest.FixtureRequest, kind: str, room: int
) -> None:
    """Room for a part of what making the database clean needs: refused or incomplete, and finished with room."""
    template = None if kind == "native" else request.getfixturevalue("shared") / "oracle" / "template"
    maker = heavy(StateMaker(small_disk / "place", template))
    needed = maker.agent_db.stat().st_size
    filler = small_disk / "filler"
    with filler.open("wb") as file:
        free = shutil.disk_usage(small_disk).free
        assert free > needed * room // 100, "the disk is too small for this test"
        file.write(b"\0" * (free - needed * room // 100))
    done = cli(maker.state, "forget", "--agent", "main", "--session", TARGET, "--json")
    said = wrong_words(Ended(done.status, done.out, done.err))
    assert said is None, said
    if done.status == 1:
        assert re.search(r"bytes free|full|space", done.json["error"]["message"]), done.json["error"]["message"]
    filler.unlink()
    assert damaged(maker) == []
    assert cli.forget(maker.state, "--session", TARGET)["pending"] == []
    assert damaged(maker) == []
    assert residue(maker) == []
    assert files_holding(maker.root, b"1498 kept words of great interest") != []
