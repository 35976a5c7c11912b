"""Beside the real program, where it is installed: set OCDIR to its package folder and have Node 24 on PATH.

Not part of the ordinary run: the program is 650 MB and takes seconds to start.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import oracle
import pytest
from explain import Explainer, Sides, judge
from hypothesis import HealthCheck, Phase, given, seed, settings
from reference import PEER, Selection, purge
from test_build_state import MAIL, build
from world import World, read_workspace

from conftest import CommandLine
from notes import COMMON, GONE_KEYS, KEPT, KEPT_KEYS, SAID, SURVIVOR, TARGET, TARGET_KEY, notes
from state_maker import AGENT_DB, STATE_DB, StateMaker, corpus_line, database

OCDIR = os.environ.get("OCDIR", "")
pytestmark = [
    pytest.mark.skipif(not OCDIR, reason="needs the real program: set OCDIR"),
    pytest.mark.slow,
    pytest.mark.timeout(1800),
]


def host_environment(state: Path) -> dict[str, str]:
    """What the real program is started with."""
    home = state.parent / "home"
    home.mkdir(exist_ok=True)
    return {**os.environ, "OPENCLAW_STATE_DIR": str(state), "HOME": str(home), "TZ": "UTC"}


def host(state: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a memory command of the real program."""
    return subprocess.run(
        ["node", f"{OCDIR}/openclaw.mjs", "memory", command, "--agent", "main", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        env=host_environment(state),
    )


def host_forget(state: Path, *arguments: str) -> dict[str, Any]:
    """The report of the real program's `forget`."""
    done = host(state, "forget", *arguments, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def both(
    shared: Path, cli: CommandLine, pristine: Path, arguments: Sequence[str], folder: Path
) -> tuple[list[str], frozenset[str]]:
    """Purges copies of one state with both programs at one path; what differs without a number, and the numbers."""
    compare, common = oracle.tool(shared, "compare"), oracle.tool(shared, "common")
    left: list[Path] = []
    reports: list[dict[str, Any]] = []
    for name in ("theirs", "ours"):
        with oracle.staged(pristine) as state:
            reports.append(host_forget(state, *arguments) if name == "theirs" else cli.forget(state, *arguments))
            if name == "theirs":
                subprocess.run(["python3", shared / "oracle" / "clean_host_rows.py", state], check=True, timeout=60)
            with database(state / STATE_DB) as db:  # a note that the host makes when it starts
                db.execute("DELETE FROM schema_meta WHERE meta_key = 'state-migrations'")
            left.append(folder / name)
            shutil.copytree(state, folder / name, symlinks=True)
    files = [folder / "theirs.json", folder / "ours.json"]
    for path, report in zip(files, reports, strict=True):
        path.write_text(json.dumps(report))
    items = compare.compare(*left, *files).items
    world = World(pristine, reports[1]["sessionIds"], folder / "scratch")
    sides = Sides(world, left[0], left[1], reports[0], reports[1], common.open_copy, compare.read_rows)
    verdict = judge(Explainer(sides), items)
    return verdict.unexplained, verdict.numbers()


@pytest.mark.parametrize("flags", [["--session", MAIL], ["--participant", "anna"]], ids=["mail", "anna"])
def test_the_hand_built_state(shared: Path, cli: CommandLine, tmp_path: Path, flags: list[str]) -> None:
    with oracle.staged(tmp_path) as state:
        build(shared, state, vectors=False)
        pristine = tmp_path / "pristine"
        shutil.copytree(state, pristine, symlinks=True)
    unexplained, numbers = both(shared, cli, pristine, flags, tmp_path)
    assert unexplained == []
    assert "V12" in numbers


@pytest.mark.parametrize("selection", ["one", "mix"])
def test_two_thousand_sessions(shared: Path, cli: CommandLine, tmp_path: Path, selection: str) -> None:
    tool = shared / "oracle"
    pristine = tmp_path / "s2000"
    subprocess.run(
        ["python3", tool / "gen_state.py", pristine, "--template", tool / "template", "--sessions", "2000",
         "--seed", "11", "--at", oracle.AT],
        check=True, capture_output=True, timeout=600,
    )  # fmt: skip
    arguments = oracle.selection_arguments(pristine, selection)
    unexplained, _ = both(shared, cli, pristine, arguments, tmp_path)
    assert unexplained == []


def receipts(state: Path) -> list[list[tuple[object, ...]]]:
    """The rows of our own table, in both databases."""
    left: list[list[tuple[object, ...]]] = []
    for path in (state / AGENT_DB.format(agent="main"), state / STATE_DB):
        with database(path) as db:
            left.append([tuple(row) for row in db.execute("SELECT * FROM cenotaph_receipts ORDER BY seq")])
    return left


def test_the_real_program_goes_on_with_what_we_leave(shared: Path, cli: CommandLine, tmp_path: Path) -> None:
    pristine = oracle.generate(shared, "s50-seed7", tmp_path)
    arguments = oracle.selection_arguments(pristine, "mix")
    with oracle.staged(pristine) as state:
        config = json.loads((state / "openclaw.json").read_text())
        config["memory"] = {"search": {"provider": "none"}}
        (state / "openclaw.json").write_text(json.dumps(config))
        cli.forget(state, *arguments)
        ours = receipts(state)
        assert all(ours)
        for command in (["status"], ["search", "meeting"], ["index", "--force"]):
            done = host(state, *command)
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        report = host_forget(state, *arguments, "--dry-run")
        assert set(report["artifacts"].values()) == {0}
        assert report["entryKeys"] == []
        assert receipts(state) == ours, "it accepts our tables and leaves them alone"
        again = cli.forget(state, *arguments, "--dry-run")
        assert {name for name, count in again["artifacts"].items() if count} <= {"embeddingCacheRows"}


def tree(root: int) -> list[int]:
    """A process and all that it started: the real program does its work in a child."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found)


def is_locked(state: Path) -> bool:
    """Whether somebody holds the lock of the workspace."""
    db = sqlite3.connect(f"file:{state / STATE_DB}?mode=ro", uri=True, timeout=5)
    try:
        query = "SELECT 1 FROM plugin_state_entries WHERE namespace = 'short-term-locks'"
        return db.execute(query).fetchone() is not None
    finally:
        db.close()


def test_the_real_program_has_the_lock(shared: Path, cli: CommandLine, tmp_path: Path) -> None:
    """It is stopped while it has it: we wait, and go on when it has gone on and given it back."""
    pristine = oracle.generate(shared, "s500-seed7", tmp_path)
    facts = oracle.tool(shared, "residue").forgotten_tokens(
        json.loads(Path(f"{pristine}.manifest.json").read_text()), "tenth", "vanish"
    )
    wish = ["forget", "--agent", "main", *oracle.selection_arguments(pristine, "tenth"), "--json"]
    with oracle.staged(pristine) as state:
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        theirs = subprocess.Popen(
            ["node", f"{OCDIR}/openclaw.mjs", "memory", *wish], env=host_environment(state), **quiet
        )
        while not is_locked(state):
            assert theirs.poll() is None, "it ended before it was seen with the lock"
            time.sleep(0.002)
        stopped = tree(theirs.pid)
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        held = is_locked(state)
        begun = time.monotonic()
        ours = subprocess.Popen([*cli.command, "--state-dir", str(state), *wish], env=cli.environment(), **quiet)
        try:
            time.sleep(3)
            assert not held or ours.poll() is None, "it did not wait"
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
        assert ours.wait(60) in (0, 3)
        assert time.monotonic() - begun < 30
        assert theirs.wait(120) == 0
        assert held, "the lock was given back before the program was stopped: nothing was tested"
        assert cli.forget(state, *wish[3:-1])["pending"] == []
        left = oracle.tool(shared, "residue").scan(state, facts)
        # What the other one left in free pages nobody knows any more: it took the corpus, too.
        assert set(left) <= {AGENT_DB.format(agent="main"), STATE_DB}
        tables = {table for entry in left.values() for table in entry["liveRows"]}
        assert [table for table in tables if not table.endswith(" (term)")] == []


def random_notes(count: int) -> list[bytes]:
    """Many random notes, always the same ones."""
    found: list[bytes] = []

    @seed(2026)
    @settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None,
              suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])  # fmt: skip
    @given(notes())
    def collect(content: bytes) -> None:
        found.append(content)

    collect()
    return found


def test_the_reference_is_the_peer_on_random_notes(host_maker: StateMaker) -> None:
    """One purge of hundreds of notes by the real program: it leaves what the reference leaves in the peer's mode."""
    maker = host_maker
    maker.session(TARGET, TARGET_KEY)
    maker.session(SURVIVOR)
    for session, keys in ((TARGET, GONE_KEYS), (SURVIVOR, KEPT_KEYS)):
        for key in keys:
            maker.origin(key, session)
    said = [corpus_line(TARGET, 2 * number, text) for number, text in enumerate([*SAID, COMMON], 1)]
    maker.corpus("2026-11-20", [*said, corpus_line(SURVIVOR, 2, KEPT), corpus_line(SURVIVOR, 4, COMMON)])
    for number, content in enumerate(random_notes(800)):
        maker.file(f"memory/note-{number:04d}.md", content)
    maker.seal()
    memory, corpus = read_workspace(maker.workspace)
    selection = Selection(
        "main", frozenset({TARGET}), frozenset({TARGET_KEY}), frozenset(GONE_KEYS), frozenset({*GONE_KEYS, *KEPT_KEYS})
    )
    outcome = purge(memory, corpus, selection, PEER)
    report = host_forget(maker.state, "--session", TARGET)
    wrong = [
        (name, content, maker.read(name), outcome.memory[name].content)
        for name, content in memory.items()
        if maker.read(name) != outcome.memory[name].content
    ]
    assert not wrong, f"{len(wrong)} notes, e.g. {min(wrong, key=lambda each: len(each[1]))}"
    assert report["artifacts"]["memoryEntries"] == sum(done.entries for done in outcome.memory.values())
    assert report["artifacts"]["memoryLines"] == sum(done.quoted for done in outcome.memory.values())
