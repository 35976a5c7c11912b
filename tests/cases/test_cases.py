"""The cases from public bug reports that need no more than `forget`; stricter expectations count, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import TESTS, CommandLine
from scene import SURVIVOR, TARGET
from state_maker import StateMaker, corpus_line

SHARED = Path(os.environ.get("CENOTAPH_SHARED", TESTS.parent.parent / "shared"))
CASES = SHARED / "cases"


def commands(case: Path) -> set[str]:
    """The commands that a case runs."""
    spec: dict[str, Any] = json.loads((case / "case.json").read_text())
    found: set[str] = set()
    for step in spec["steps"]:
        runs: list[list[str]] = [step[name] for name in ("run", "start", "args") if name in step]
        found |= {run[0] for run in [*runs, *step.get("parallel", [])]}
    return found


FORGET_CASES = [
    case for case in sorted(CASES.glob("[BDS][0-9][0-9]-*")) if "forget" in commands(case)
] if CASES.is_dir() else []  # fmt: skip


@pytest.fixture(scope="module")
def known_commands(cli: CommandLine) -> set[str]:
    """Commands that this version has."""
    every = {name for case in FORGET_CASES for name in commands(case)}
    return {name for name in every if cli("/nonexistent", name, "--help").status == 0}


@pytest.mark.slow
@pytest.mark.parametrize("case", FORGET_CASES, ids=lambda case: case.name)
def test_case(case: Path, shared: Path, cli: CommandLine, known_commands: set[str]) -> None:
    missing = commands(case) - known_commands
    if missing:
        pytest.skip(f"needs {', '.join(sorted(missing))}")
    done = subprocess.run(
        [sys.executable, shared / "cases" / "_tools" / "run_case.py", case,
         "--cmd", " ".join(CommandLine.command), "--base", shared / "oracle" / "template"],
        capture_output=True, text=True, check=False, timeout=300, env=cli.environment(),
    )  # fmt: skip
    assert done.stdout, done.stderr
    result = json.loads(done.stdout)
    assert result["fails"] == []
    assert result["pass"]


SEPARATED = "\x01\x02"
"""Put behind each character it makes short patterns long enough to be snippets, and changes no `is part of`."""


@pytest.mark.parametrize("name", ["A01-matcher-overlaps", "A03-case-folding-is-not-matching"])
def test_matcher_case(shared: Path, maker: StateMaker, cli: CommandLine, name: str) -> None:
    """Patterns become snippets, lines become lines of a note: what the purge removes is what must hit."""
    patterns: list[str] = json.loads((shared / "cases" / name / "patterns.json").read_text())
    lines: list[dict[str, Any]] = json.loads((shared / "cases" / name / "lines.json").read_text())

    def spread(text: str) -> str:
        return "".join(character + SEPARATED for character in text)

    maker.session(TARGET)
    maker.session(SURVIVOR)
    maker.corpus("2026-11-20", [corpus_line(TARGET, 2 * n, spread(p)) for n, p in enumerate(patterns, 1) if p])
    maker.file("memory/lines.md", "".join(f"{number} {spread(line['line'])}\n" for number, line in enumerate(lines)))
    cli.forget(maker.seal().state, "--session", TARGET)
    left = {int(line.split(" ", 1)[0]) for line in maker.read("memory/lines.md").decode().split("\n") if line}
    assert left == {number for number, line in enumerate(lines) if not line["hit"]}
