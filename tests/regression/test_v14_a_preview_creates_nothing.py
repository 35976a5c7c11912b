"""V14: a dry run creates and changes no file: not a database, not a -wal, not a folder."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from conftest import CommandLine
from scene import SECRET, TARGET, own, play
from state_maker import StateMaker, marker, snapshot


def test_v14_without_any_database(cli: CommandLine, tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "workspace" / "memory").mkdir(parents=True)
    (state / "workspace" / "MEMORY.md").write_text("- a\n")
    before = snapshot(tmp_path)
    report = cli.forget(state, "--session", TARGET, "--dry-run")
    assert snapshot(tmp_path) == before
    assert report["sessionResolutions"] == [{"sessionId": TARGET, "source": "unresolved"}]


def test_v14_without_the_directory(cli: CommandLine, tmp_path: Path) -> None:
    cli(tmp_path / "absent", "forget", "--session", TARGET, "--dry-run", "--json")
    assert snapshot(tmp_path) == {}


def filled(maker: StateMaker) -> StateMaker:
    """A state in which there is something to forget."""
    own(play(maker, {"MEMORY.md": f"{marker('gone:e')}\n- entry\n> {SECRET}\n"}), ["gone:e"])
    maker.short_term("gone:e", "some words")
    maker.chunk("MEMORY.md", f"> {SECRET}", cached=True)
    return maker.seal()


def test_v14_with_databases_at_rest(cli: CommandLine, either: StateMaker) -> None:
    filled(either)
    before = snapshot(either.root)
    report = cli.forget(either.state, "--session", TARGET, "--dry-run")
    assert report["artifacts"]["memoryEntries"] == 1
    assert snapshot(either.root) == before


def test_v14_beside_a_writer_that_left_its_log(cli: CommandLine, either: StateMaker) -> None:
    """A -wal with a committed row: the preview reads through it and leaves it as it is."""
    filled(either)
    writer = sqlite3.connect(either.agent_db, isolation_level=None)
    try:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("PRAGMA wal_autocheckpoint=0")
        writer.execute("INSERT INTO memory_entry_origins (entry_key, agent_id, session_id, origin_class, observed_at) "
                       "VALUES ('gone:late', 'main', ?, 'owner', 1)", (TARGET,))  # fmt: skip
        before = without_shared_memory(snapshot(either.root))
        report = cli.forget(either.state, "--session", TARGET, "--dry-run")
        assert without_shared_memory(snapshot(either.root)) == before
    finally:
        writer.close()
    assert report["entryKeys"] == ["gone:e", "gone:late"]


def without_shared_memory(tree: dict[str, Any]) -> dict[str, Any]:
    """Readers mark their place in the -shm of a log that is in use; it holds no data."""
    return {name: entry for name, entry in tree.items() if not name.endswith("-shm")}


def test_v14_an_empty_selection_creates_nothing_either(cli: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "state" / "workspace").mkdir(parents=True)
    before = snapshot(tmp_path)
    cli.forget(tmp_path / "state", "--hook-source", "none", "--dry-run")
    assert snapshot(tmp_path) == before
