"""V17: exit 3 while something is known to be left; the same command finishes it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from test_v16_deleted_bytes import WORD, fill

from conftest import CommandLine
from scene import TARGET
from state_maker import StateMaker, files_holding


def pin(path: Path) -> sqlite3.Connection:
    """A reader in the middle of a transaction: the log cannot be emptied behind its back."""
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return reader


@pytest.mark.slow
@pytest.mark.parametrize("database", ["agent_db", "state_db"])
def test_v17_a_reader_that_pins_the_log_is_pending_work(cli: CommandLine, either: StateMaker, database: str) -> None:
    fill(either)
    path: Path = getattr(either, database)
    for each in (either.agent_db, either.state_db):
        with sqlite3.connect(each) as db:
            db.execute("PRAGMA journal_mode=WAL")
        db.close()
    reader = pin(path)
    try:
        report = cli.forget(either.state, "--session", TARGET, status=3)
        assert report["pending"] == ["wal"]
        assert either.read("MEMORY.md") == b"kept\n"
    finally:
        reader.close()
    again = cli.forget(either.state, "--session", TARGET)
    assert again["pending"] == []
    assert set(again["artifacts"].values()) == {0}
    assert files_holding(either.root, WORD.encode()) == []


def test_v17_nothing_pending_is_exit_zero(cli: CommandLine, either: StateMaker) -> None:
    fill(either)
    assert cli.forget(either.state, "--session", TARGET)["pending"] == []


def test_v17_a_preview_has_nothing_pending(cli: CommandLine, either: StateMaker) -> None:
    fill(either)
    assert cli.forget(either.state, "--session", TARGET, "--dry-run")["pending"] == []
