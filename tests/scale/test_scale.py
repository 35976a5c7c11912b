"""Large input is done, within memory bounded by the longest line and the needle tables, not by the workspace."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from scene import KEPT, SECRET, SURVIVOR, TARGET, play
from state_maker import StateMaker, marker, sha256

pytestmark = pytest.mark.slow

MANY = 100_000
FILLER = "- the lathe belt is rotated every two weeks, says the note of the day\n"


MEASURED = """
import sys
from cenotaph.cli import main
try:
    main()
finally:
    with open("/proc/self/status") as status:
        print(next(line for line in status if line.startswith("VmHWM")).split()[1], file=sys.stderr)
"""


def measured_forget(state: Path, *arguments: str) -> tuple[dict[str, Any], int]:
    """The report, and the most memory that the process held (MB), by its own account.

    The usage that `wait4` gives begins with the memory of the process that forked, which is the test runner.
    """
    command = [sys.executable, "-c", MEASURED, "--state-dir", str(state), "forget", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), int(done.stderr.split()[-1]) // 1024


def test_a_hundred_thousand_chunks(maker: StateMaker) -> None:
    path = f"sessions/main/{TARGET}.jsonl"
    play(maker).seal()
    rows = (
        (sha256(f"chunk {n}"), path, "sessions", n, n, sha256(f"text {n}"), "fts-only", f"{SECRET} {n}", b"", 0)
        for n in range(MANY)
    )
    with closing(sqlite3.connect(maker.agent_db)) as db, db:
        db.executemany(
            "INSERT INTO memory_index_chunks(id, path, source, start_line, end_line, hash, model, text, embedding, "
            "updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
    report, memory = measured_forget(maker.state, "--session", TARGET)
    assert report["artifacts"]["indexChunks"] == MANY
    assert report["artifacts"]["ftsRows"] == MANY
    assert memory < 400


def test_a_hundred_thousand_entry_keys(maker: StateMaker) -> None:
    entries = "".join(f"{marker(f'gone:{n}')}\n- entry number {n}\n" for n in range(MANY))
    play(maker, {"MEMORY.md": f"before\n{entries}after\n"}).seal()
    with closing(sqlite3.connect(maker.agent_db)) as db, db:
        db.executemany(
            "INSERT INTO memory_entry_origins VALUES (?, 'main', ?, NULL, 'owner', 0)",
            ((f"gone:{n}", TARGET) for n in range(MANY)),
        )
    report, memory = measured_forget(maker.state, "--session", TARGET)
    assert maker.read("MEMORY.md") == b"before\nafter\n"
    assert len(report["entryKeys"]) == report["artifacts"]["memoryEntries"] == MANY
    assert report["artifacts"]["originRows"] == MANY
    assert memory < 500


def test_a_workspace_of_two_gigabytes(maker: StateMaker) -> None:
    play(maker).seal()
    clean = (FILLER * (20_000_000 // len(FILLER))).encode()
    for number in range(100):
        text = clean if number % 25 else clean + f"> {SECRET}\n".encode()
        maker.file(f"memory/note-{number:03d}.md", text)
    report, memory = measured_forget(maker.state, "--session", TARGET)
    assert report["artifacts"]["memoryFiles"] == report["artifacts"]["memoryLines"] == 4
    assert all(maker.read(f"memory/note-{number:03d}.md") == clean for number in (0, 1, 25, 50, 75, 99))
    assert memory < 200


def test_a_file_of_three_hundred_megabytes(maker: StateMaker) -> None:
    play(maker).seal()
    path = maker.file("memory/large.md", "")
    block = (FILLER * 1_000).encode()
    with path.open("wb") as out:
        out.write(f"> {SECRET}\n".encode())
        for _ in range(300_000_000 // len(block)):
            out.write(block)
        out.write(f"> {SECRET}".encode())
    size = path.stat().st_size
    report, memory = measured_forget(maker.state, "--session", TARGET)
    assert report["artifacts"]["memoryLines"] == 2
    assert path.stat().st_size == size - 2 * len(f"> {SECRET}") - 1
    assert memory < 200


def test_a_line_of_fifty_megabytes(maker: StateMaker) -> None:
    line = b"x" * 25_000_000 + SECRET.encode() + b"y" * 25_000_000
    play(maker, {"memory/line.md": b"above\n" + line + b"\nbelow\n" + KEPT.encode() + b"\n"}).seal()
    report, memory = measured_forget(maker.state, "--session", TARGET)
    assert maker.read("memory/line.md") == b"above\nbelow\n" + KEPT.encode() + b"\n"
    assert report["artifacts"]["memoryLines"] == 1
    assert memory < 400


@pytest.mark.parametrize("length", [243, 255])
def test_long_file_names(maker: StateMaker, length: int) -> None:
    name = "memory/" + "n" * (length - 3) + ".md"
    play(maker, {name: f"> {SECRET}\nkept\n"}).seal()
    report, _ = measured_forget(maker.state, "--session", TARGET)
    assert maker.read(name) == b"kept\n"
    assert report["artifacts"]["memoryFiles"] == 1


def test_a_hundred_thousand_sessions(maker: StateMaker) -> None:
    """Ids and keys of sessions go through tables, not through statement parameters (V8)."""
    play(maker)
    maker.corpus(
        "2026-11-21", (f"[main/sessions/main/many-{n}#L2] User: this is what number {n} said" for n in range(MANY))
    )
    maker.seal()
    from cenotaph import open as open_memory

    with open_memory(maker.state, agent="main") as memory:
        report = memory.forget(sessions=[f"many-{n}" for n in range(MANY)])
    assert report.artifacts.session_corpus_lines == MANY
    assert len(report.session_ids) == MANY
    assert SURVIVOR not in report.session_ids
