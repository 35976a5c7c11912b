"""Starting the search and waiting for its answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cenotaph.errors import CenotaphError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cenotaph import _core


@dataclass(frozen=True, slots=True)
class Place:
    """One place with needles; fields as in `_core.Place`."""

    path: str
    part: str
    table: str | None
    needles: int
    offset: int


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to. `failures`: files that could not be read to their end, with the reason."""

    places: tuple[Place, ...]
    failures: tuple[tuple[str, str], ...]
    files: int
    bytes: int


def find(roots: Sequence[str], needles: Sequence[_core.Needles], kept_tables: Sequence[str]) -> Found:
    """Searches every file below the roots for each set of needles, in a child process.

    The needles go through a pipe: they are on no command line and in no file. Raises `CenotaphError` when the child
    cannot be started or does not end well.
    """
    sets = [each.to_bytes() for each in needles]
    head = {"roots": list(roots), "keptTables": list(kept_tables), "sizes": [len(data) for data in sets]}
    command = [sys.executable, "-P", "-m", "cenotaph.verify.child"]
    asked = b"".join([json.dumps(head).encode(), b"\n", *sets])
    try:
        done = subprocess.run(command, input=asked, capture_output=True, check=False, env=_environment())
    except OSError as error:
        message = f"The verification could not be started: {error.strerror}; run cenotaph verify later"
        raise CenotaphError(message) from error
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        message = f"The verification ended with status {done.returncode}: {last or 'no message'}"
        raise CenotaphError(message)
    return _found(done.stdout)


def _environment() -> dict[str, str]:
    """As here, with the folders in which this process finds its modules."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {name: value for name, value in os.environ.items() if name != "CENOTAPH_KILL_POINTS"} | {"PYTHONPATH": path}


def _found(answer: bytes) -> Found:
    data = json.loads(answer)
    return Found(
        places=tuple(Place(*place) for place in data["places"]),
        failures=tuple((path, reason) for path, reason in data["failures"]),
        files=data["files"],
        bytes=data["bytes"],
    )
