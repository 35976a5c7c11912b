"""The process that reads every byte: needles in through a pipe, places out through another.

A process of its own, because closing any descriptor of a database drops every lock that the process holds on it.
Input: one line of JSON (`roots`, `keptTables`, `sizes`), then the sets of needles, one behind the other.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, BinaryIO

from cenotaph import _core

if TYPE_CHECKING:
    from typing import Any


def search(source: BinaryIO) -> dict[str, Any]:
    """Does what the input asks for; the answer as JSON has it."""
    asked = json.loads(source.readline())
    sets = [_core.Needles.from_bytes(source.read(size)) for size in asked["sizes"]]
    files, unread = _core.files_below(asked["roots"])
    answer: dict[str, Any] = {
        "files": len(files),
        "bytes": 0,
        "places": [],
        "failures": [list(pair) for pair in unread],
    }
    for needles in sets:
        places, failures, size = _core.find_residue(files, needles, asked["keptTables"])
        answer["bytes"] = max(answer["bytes"], size)
        answer["failures"] += [list(pair) for pair in failures]
        answer["places"] += [[at.path, at.part, at.table, at.needles, at.offset] for at in places]
    return answer


if __name__ == "__main__":
    json.dump(search(sys.stdin.buffer), sys.stdout)
