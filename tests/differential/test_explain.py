"""The explainer must accept what the rules make and refuse everything else: it is damaged here on purpose."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import oracle
import pytest
from explain import Explainer, Sides, judge
from reference import OURS, PEER
from world import BACKUPS, World

from state_maker import AGENT, AGENT_DB, PLUGIN, STATE_DB, database

NAME, SELECTION = "s50-seed7", "gmail"


class Bench:
    """A recording and a forged state of ours, made from the recorded one by the rules alone."""

    def __init__(self, shared: Path, folder: Path) -> None:
        self.shared = shared
        self.pristine = oracle.generate(shared, NAME, folder)
        self.recorded = oracle.recorded_state(shared, NAME, SELECTION, folder)
        self.report = json.loads(oracle.recorded_report(shared, NAME, SELECTION).read_text())
        self.world = World(self.pristine, self.report["sessionIds"], folder / "scratch")
        self.folder = folder

    def forge(self, target: Path) -> dict[str, object]:
        """Writes what we must leave; returns the report that belongs to it."""
        shutil.copytree(self.recorded, target, symlinks=True)
        peer, ours = self.world.after(PEER), self.world.after(OURS)
        for name, content in ours.files.items():
            (target / "workspace" / name).write_bytes(content)
        with database(target / AGENT_DB.format(agent=AGENT)) as db:
            for chunk in peer.chunks - ours.chunks:
                db.execute("DELETE FROM memory_index_chunks WHERE id = ?", (chunk,))
            for key, session in peer.origins - ours.origins:
                db.execute("DELETE FROM memory_entry_origins WHERE entry_key = ? AND session_id = ?", (key, session))
        with database(target / STATE_DB) as db:
            forge_plugin_state(db, ours.plugin)
        joined = ours.outcome.selection.entry_keys - peer.outcome.selection.entry_keys
        shared_lines = [
            f"{name}:{line}" for name, done in ours.outcome.memory.items() for line in done.shared_lines
        ]  # fmt: skip
        report: dict[str, object] = dict(self.report)
        for field in ("entryKeys", "mixedLineageEntryKeys"):
            report[field] = sorted({*self.report[field], *joined})
        report["artifacts"] = {name: ours.counts[name] for name in self.report["artifacts"]}
        return report | {"externalMatches": [], "sharedSnippetLines": len(shared_lines), "pending": [],
                         "sharedSnippetLocations": shared_lines, "measured": None,
                         "verification": {"result": "clean"}, "receipt": {"completed": True}}  # fmt: skip

    def judged(self, target: Path, report: dict[str, object]) -> tuple[list[str], frozenset[str]]:
        """Unexplained differences and the numbers of the explained ones."""
        compare, common = oracle.tool(self.shared, "compare"), oracle.tool(self.shared, "common")
        ours = self.folder / f"{target.name}.json"
        ours.write_text(json.dumps(report))
        theirs = oracle.recorded_report(self.shared, NAME, SELECTION)
        items = compare.compare(self.recorded, target, theirs, ours).items
        sides = Sides(self.world, self.recorded, target, self.report, report, common.open_copy, compare.read_rows)
        verdict = judge(Explainer(sides), items)
        return verdict.unexplained, verdict.numbers()


def forge_plugin_state(db: sqlite3.Connection, plugin: dict[tuple[str, str], str]) -> None:
    """Leaves only the rows that the rules leave, with their values."""
    for row in db.execute("SELECT rowid, namespace, value_json FROM plugin_state_entries WHERE plugin_id = ?",
                          (PLUGIN,)).fetchall():  # fmt: skip
        record = json.loads(row["value_json"])
        value = plugin.get((row["namespace"], record["key"]))
        if value is None:
            db.execute("DELETE FROM plugin_state_entries WHERE rowid = ?", (row["rowid"],))
        elif row["namespace"] == BACKUPS:
            record["value"] = json.loads(value)
            text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
            db.execute("UPDATE plugin_state_entries SET value_json = ? WHERE rowid = ?", (text, row["rowid"]))


@pytest.fixture(scope="module")
def bench(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """One recording in which V1 shows."""
    return Bench(shared, tmp_path_factory.mktemp("explain"))


def test_what_the_rules_leave_is_explained(bench: Bench, tmp_path: Path) -> None:
    unexplained, numbers = bench.judged(tmp_path / "ours", bench.forge(tmp_path / "ours"))
    assert unexplained == []
    assert {"V1", "V17", "V18", "V20"} <= numbers


def drop_a_curated_line(target: Path, _: dict[str, object]) -> None:
    path = target / "workspace" / "MEMORY.md"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2] + lines[3:]))


def keep_the_stacked_line(target: Path, _: dict[str, object]) -> None:
    path = target / "workspace" / "MEMORY.md"
    path.write_bytes(path.read_bytes() + b"- left over\n")


def touch_another_file(target: Path, _: dict[str, object]) -> None:
    path = next(iter(sorted((target / "workspace" / "memory").rglob("2026-*.md"))))
    path.write_bytes(path.read_bytes() + b"\n")


def leave_a_temporary_file(target: Path, _: dict[str, object]) -> None:
    (target / "workspace" / "memory" / ".cenotaph-1.tmp").write_text("rest")


def drop_a_survivors_origin(target: Path, _: dict[str, object]) -> None:
    with database(target / AGENT_DB.format(agent=AGENT)) as db:
        db.execute("DELETE FROM memory_entry_origins WHERE rowid = (SELECT max(rowid) FROM memory_entry_origins)")


def drop_a_chunk(target: Path, _: dict[str, object]) -> None:
    with database(target / AGENT_DB.format(agent=AGENT)) as db:
        db.execute("DELETE FROM memory_index_chunks WHERE chunk_rowid = "
                   "(SELECT min(chunk_rowid) FROM memory_index_chunks)")  # fmt: skip


def forget_the_tombstone(target: Path, _: dict[str, object]) -> None:
    with database(target / AGENT_DB.format(agent=AGENT)) as db:
        db.execute("DELETE FROM memory_session_tombstones WHERE rowid = 1")


def change_a_backup(target: Path, _: dict[str, object]) -> None:
    with database(target / STATE_DB) as db:
        db.execute("UPDATE plugin_state_entries SET value_json = replace(value_json, 'Long-Term', 'Short-Term') "
                   "WHERE namespace = ?", (BACKUPS,))  # fmt: skip


def drop_an_observer_row(target: Path, _: dict[str, object]) -> None:
    with database(target / STATE_DB) as db:
        db.execute("DELETE FROM plugin_state_entries WHERE plugin_id <> ?", (PLUGIN,))


def drop_a_trigger(target: Path, _: dict[str, object]) -> None:
    with database(target / AGENT_DB.format(agent=AGENT)) as db:
        name = db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND name LIKE '%fts%'").fetchone()[0]
        db.execute(f"DROP TRIGGER {name}")


def add_a_foreign_table(target: Path, _: dict[str, object]) -> None:
    with database(target / AGENT_DB.format(agent=AGENT)) as db:
        db.execute("CREATE TABLE receipts (x)")


def miscount(_: Path, report: dict[str, object]) -> None:
    counts = report["artifacts"]
    assert isinstance(counts, dict)
    report["artifacts"] = {**counts, "memoryEntries": 1}


def list_a_key_too_many(_: Path, report: dict[str, object]) -> None:
    keys = report["entryKeys"]
    assert isinstance(keys, list)
    report["entryKeys"] = [*keys, "memory:claim:ffffffffffff"]


def hide_a_shared_line(_: Path, report: dict[str, object]) -> None:
    report["sharedSnippetLines"] = 0


def add_a_field(_: Path, report: dict[str, object]) -> None:
    report["surprise"] = 1


DAMAGE = [
    drop_a_curated_line, keep_the_stacked_line, touch_another_file, leave_a_temporary_file, drop_a_survivors_origin,
    drop_a_chunk, forget_the_tombstone, change_a_backup, drop_an_observer_row, drop_a_trigger, add_a_foreign_table,
    miscount, list_a_key_too_many, hide_a_shared_line, add_a_field,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda change: change.__name__)
def test_damage_is_not_explained(
    bench: Bench, tmp_path: Path, damage: Callable[[Path, dict[str, object]], None]
) -> None:
    target = tmp_path / "ours"
    report = bench.forge(target)
    damage(target, report)
    unexplained, _ = bench.judged(target, report)
    assert unexplained
