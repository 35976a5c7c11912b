"""Our purge beside the recorded purge of the real program: every difference has a number (design.md 6)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import oracle
import pytest
from explain import OF_THE_RUN, OWN_REPORT_FIELDS, Explainer, Sides, Verdict, judge
from reference import OURS
from world import World

from conftest import TESTS, CommandLine
from state_maker import snapshot

SHARED = Path(os.environ.get("CENOTAPH_SHARED", TESTS.parent.parent / "shared"))
RECORDINGS = oracle.recordings(SHARED) if SHARED.is_dir() else []
EXPECTED_NUMBERS = {
    ("s50-seed7", "gmail"): {"V1"},
    ("s50-seed7", "mix"): {"V11"},
    ("s50-seed7", "participant"): {"V11"},
    ("s50-seed7", "tenth"): {"V1"},
    ("s50-seed23", "mix"): {"V1", "V11"},
    ("s500-seed7", "tenth"): {"V1"},
}
"""Numbers that make a difference on disk; the other recordings must come out the same."""


@dataclass
class Run:
    """One recording and what we made of the same state."""

    name: str
    selection: str
    pristine: Path
    world: World
    recorded: Path
    ours: Path
    recorded_dry: Path
    recorded_real: Path
    dry: dict[str, Any]
    real: dict[str, Any]
    dry_changed: list[str]

    def sides(self, shared: Path, *, dry: bool) -> Sides:
        """The two sides, for the explainer."""
        compare, common = oracle.tool(shared, "compare"), oracle.tool(shared, "common")
        theirs = json.loads((self.recorded_dry if dry else self.recorded_real).read_text())
        ours = self.dry if dry else self.real
        return Sides(self.world, self.recorded, self.ours, theirs, ours, common.open_copy, compare.read_rows)


def changed_paths(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Paths that differ between two snapshots."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


@pytest.fixture(scope="module", params=RECORDINGS, ids="-".join)
def run(
    request: pytest.FixtureRequest, shared: Path, cli: CommandLine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Run]:
    """Stages the state where it was recorded, previews, purges, and takes the result away."""
    name, selection = request.param
    folder = tmp_path_factory.mktemp("recording")
    pristine = oracle.generate(shared, name, folder)
    arguments = oracle.selection_arguments(pristine, selection)
    ours = folder / "ours"
    with oracle.staged(pristine) as state:
        before = snapshot(state)
        dry = cli.forget(state, *arguments, "--dry-run")
        dry_changed = changed_paths(before, snapshot(state))
        real = cli.forget(state, *arguments)
        shutil.copytree(state, ours, symlinks=True)
    recorded = oracle.recorded_state(shared, name, selection, folder)
    world = World(pristine, real["sessionIds"], folder / "scratch")
    yield Run(
        name, selection, pristine, world, recorded, ours, oracle.recorded_report(shared, name, selection, "dry"),
        oracle.recorded_report(shared, name, selection), dry, real, dry_changed,
    )  # fmt: skip
    shutil.rmtree(folder, ignore_errors=True)


def complain(verdict: Verdict) -> str:
    """What a developer needs to see."""
    return f"{len(verdict.unexplained)} differences without a number:\n" + "\n".join(verdict.unexplained)


@pytest.mark.slow
def test_every_difference_has_a_number(run: Run, shared: Path, tmp_path: Path) -> None:
    compare = oracle.tool(shared, "compare")
    report = tmp_path / "ours.json"
    report.write_text(json.dumps(run.real))
    items = compare.compare(run.recorded, run.ours, run.recorded_real, report).items
    verdict = judge(Explainer(run.sides(shared, dry=False)), items)
    assert not verdict.unexplained, complain(verdict)
    on_disk = frozenset(n for done in verdict.explained if done.item["kind"] != "report" for n in done.numbers)
    assert on_disk - {"design 4", "design 7"} == EXPECTED_NUMBERS.get((run.name, run.selection), set())


@pytest.mark.slow
def test_the_preview_differs_from_the_recorded_one_by_numbers_only(run: Run, shared: Path, tmp_path: Path) -> None:
    compare = oracle.tool(shared, "compare")
    report = tmp_path / "ours.json"
    report.write_text(json.dumps(run.dry))
    diff = compare.Diff()
    compare.compare_reports(run.recorded_dry, report, diff)
    verdict = judge(Explainer(run.sides(shared, dry=True)), diff.items)
    assert not verdict.unexplained, complain(verdict)


def test_what_is_left_is_what_the_reference_leaves(run: Run) -> None:
    left = run.world.after(OURS)
    names = [*run.world.memory, *run.world.corpus]
    actual = {name: run.ours / "workspace" / name for name in names}
    wrong = [
        name for name, path in actual.items()
        if (path.read_bytes() if path.exists() else None) != left.files.get(name)
    ]  # fmt: skip
    assert wrong == []
    assert run.real["artifacts"] == left.counts


def test_the_preview_changes_no_byte(run: Run) -> None:
    assert run.dry_changed == []


def test_the_preview_is_the_purge(run: Run) -> None:
    same = {key: value for key, value in run.dry.items() if key not in OF_THE_RUN}
    assert same == {key: value for key, value in run.real.items() if key not in OF_THE_RUN}
    assert (run.dry["dryRun"], run.real["dryRun"]) == (True, False)


def test_the_fields_stand_in_the_recorded_order(run: Run) -> None:
    recorded = json.loads(run.recorded_real.read_text())
    assert list(run.real) == [*recorded, *(name for name in run.real if name in OWN_REPORT_FIELDS)]
    assert list(run.real["artifacts"]) == list(recorded["artifacts"])


def test_the_lists_are_the_recorded_ones_but_for_v1(run: Run) -> None:
    recorded = json.loads(run.recorded_real.read_text())
    for name in ("sessionIds", "participantMatches", "sessionResolutions", "curatedWrites", "refusals"):
        assert run.real[name] == recorded[name], name
    joined = set(run.real["entryKeys"]) - set(recorded["entryKeys"])
    assert set(run.real["mixedLineageEntryKeys"]) == set(recorded["mixedLineageEntryKeys"]) | joined
    assert set(run.real["untargetableEntryKeys"]) == set(recorded["untargetableEntryKeys"]) - joined


@pytest.mark.parametrize("check", ["residue.py", "survive.py"])
def test_no_canary_of_a_forgotten_session_is_left_and_no_other_is_missing(run: Run, shared: Path, check: str) -> None:
    """`residue.py` looks at every byte of every file, `survive.py` for what had to stay."""
    command = [sys.executable, shared / "oracle" / check, run.ours, f"{run.pristine}.manifest.json", run.selection]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:]
