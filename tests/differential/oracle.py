"""Finds the oracle's files, stages its states where they were recorded, and lends out its tools."""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

AT = Path("/tmp/cenotaph-oracle/state")
"""Where the recorded states ran: plugin-state keys hash the path of the workspace."""
RECORDED = (("s50-seed7", 50, 7), ("s50-seed23", 50, 23), ("s500-seed7", 500, 7))


def tool(shared: Path, name: str) -> ModuleType:
    """A module of the oracle."""
    folder = str(shared / "oracle")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def recordings(shared: Path) -> list[tuple[str, str]]:
    """Names of all recordings: (state, selection)."""
    golden = shared / "oracle" / "golden"
    return [
        (name, path.name.removesuffix(".report.json"))
        for name, _, _ in RECORDED
        for path in sorted((golden / name).glob("*.report.json"))
    ]


def generate(shared: Path, name: str, into: Path) -> Path:
    """Makes the pristine state of a recording. The manifest lies beside it."""
    sessions, seed = next((count, seed) for known, count, seed in RECORDED if known == name)
    pristine = into / name
    if not pristine.exists():
        oracle = shared / "oracle"
        subprocess.run(
            [sys.executable, oracle / "gen_state.py", pristine, "--template", oracle / "template",
             "--sessions", str(sessions), "--seed", str(seed), "--at", AT],
            check=True, capture_output=True, timeout=300,
        )  # fmt: skip
    return pristine


def selection_arguments(pristine: Path, selection: str) -> list[str]:
    """The flags of a recorded selection."""
    manifest: dict[str, Any] = json.loads(Path(f"{pristine}.manifest.json").read_text())
    return list(manifest["selections"][selection]["args"])


def recorded_state(shared: Path, name: str, selection: str, into: Path) -> Path:
    """Unpacks what the real program left."""
    target = into / f"{name}-{selection}"
    if not target.exists():
        archive = shared / "oracle" / "golden" / name / f"{selection}.state.tar.xz"
        with tarfile.open(archive) as packed:
            packed.extractall(target, filter="data")
    return target / "state"


def recorded_report(shared: Path, name: str, selection: str, kind: str = "report") -> Path:
    """What the real program printed: `report` or `dry`."""
    return shared / "oracle" / "golden" / name / f"{selection}.{kind}.json"


@contextlib.contextmanager
def staged(pristine: Path) -> Generator[Path, None, None]:
    """A copy of a state at the recorded path, which one process at a time may use."""
    AT.parent.mkdir(parents=True, exist_ok=True)
    with (AT.parent / "stage.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(AT, ignore_errors=True)
        shutil.copytree(pristine, AT, symlinks=True)
        try:
            yield AT
        finally:
            shutil.rmtree(AT, ignore_errors=True)
