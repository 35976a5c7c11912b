"""The hand-built state directory, with every kind of artifact once, against what the real program printed for it."""

from __future__ import annotations

import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest
from reference import OURS, PEER
from world import World

from conftest import CommandLine
from state_maker import AGENT, AGENT_DB, STATE_DB

MAIL, GROUP = "5e551000-0000-4000-8000-000000000001", "5e551000-0000-4000-8000-000000000002"
NOTE = "memory/2026-11-20-0915.md"
RECORDED: dict[str, Any] = {
    "sessionIds": [MAIL],
    "participantMatches": [],
    "sessionResolutions": [{"sessionId": MAIL, "sessionKey": "agent:main:hook:gmail:inv-4411", "source": "live"}],
    "entryKeys": ["memory:claim:7fc0ab243c01", "memory:claim:fc104b93872a"],
    "mixedLineageEntryKeys": ["memory:claim:fc104b93872a"],
    "untargetableEntryKeys": ["memory:memory/2026-11-02.md:4:4:0a1b2c3d4e5f"],
    "curatedWrites": [
        {"relativePath": "memory/invoices.md", "observedAt": 1795165205000},
        {"relativePath": "memory/moved.md", "observedAt": 1795165204000},
        {"relativePath": "USER.md", "observedAt": 1795165204000},
    ],
    "artifacts": {
        "memoryFiles": 4, "memoryEntries": 5, "memoryLines": 2, "sessionCorpusFiles": 1, "sessionCorpusLines": 2,
        "indexChunks": 6, "indexSources": 4, "ftsRows": 6, "vectorRows": 6, "embeddingCacheRows": 8,
        "shortTermEntries": 2, "seenHashScopes": 2, "backups": 1, "originRows": 3,
    },
    "refusals": [],
}  # fmt: skip
"""What OpenClaw 2026.9.6 printed for `--session MAIL` (format.md 6)."""
OUR_COUNTS = {"memoryFiles": 5, "memoryEntries": 6, "embeddingCacheRows": 6}
"""V6: the note of the session-memory hook goes, one file and one entry more. V12: two chunks keep their cache rows."""


def sqlite_vec_library() -> str:
    """Path of the vec0 extension, from the package of the same name."""
    return pytest.importorskip("sqlite_vec", reason="needs the vec0 library of the package sqlite-vec").loadable_path()


def connect_with_vectors(path: Path) -> Any:
    """A connection that understands vec0 tables."""
    db: Any = apsw.Connection(str(path))
    db.enable_load_extension(True)
    db.load_extension(sqlite_vec_library())
    return db


def add_vectors(state: Path) -> None:
    """Fills a vec0 table as the host does: float32, keyed by chunk id."""
    db = connect_with_vectors(state / AGENT_DB.format(agent=AGENT))
    db.execute("CREATE VIRTUAL TABLE memory_index_chunks_vec USING vec0(id TEXT PRIMARY KEY, embedding FLOAT[4])")
    for identity, blob in db.execute("SELECT id, embedding FROM memory_index_chunks").fetchall():
        vector = struct.pack("<4f", *struct.unpack("<4d", blob))
        db.execute("INSERT INTO memory_index_chunks_vec (id, embedding) VALUES (?, ?)", (identity, vector))
    db.execute("UPDATE memory_index_meta SET value = json_set(value, '$.vectorDims', 4) "
               "WHERE key = 'memory_index_meta_v1'")  # fmt: skip
    db.pragma("wal_checkpoint(TRUNCATE)")
    db.close()


def build(shared: Path, state: Path, *, vectors: bool) -> Path:
    """Makes the hand-built directory."""
    script = shared / "oracle" / "build_state.py"
    subprocess.run([sys.executable, script, state], check=True, capture_output=True, timeout=60)
    if vectors:
        add_vectors(state)
    return state


def differences(world: World, state: Path, scratch: Path) -> dict[str, object]:
    """Where a purged directory is not what the rules leave."""
    left, actual = world.after(OURS), World(state, sorted(world.ids), scratch)
    pairs: dict[str, tuple[object, object]] = {
        "files": (left.files, actual.memory | actual.corpus),
        "chunks": (left.chunks, {chunk.id for chunk in actual.chunks}),
        "sources": (left.sources, actual.sources),
        "cache": (left.cache, actual.cache),
        "origins": (left.origins, set(actual.origins)),
        "plugin": (left.plugin, actual.after(OURS).plugin),
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@pytest.mark.parametrize("vectors", [False, True], ids=["keywords", "vectors"])
def test_the_report_is_the_recorded_one_but_for_v6_and_v12(
    shared: Path, cli: CommandLine, tmp_path: Path, vectors: bool
) -> None:
    state = build(shared, tmp_path / "state", vectors=vectors)
    world = World(state, [MAIL], tmp_path / "scratch")
    recorded = RECORDED["artifacts"] | ({} if vectors else {"vectorRows": 0})
    assert world.after(PEER).counts == recorded
    dry = cli.forget(state, "--session", MAIL, "--dry-run")
    real = cli.forget(state, "--session", MAIL)
    for report in (dry, real):
        assert report["artifacts"] == recorded | OUR_COUNTS
        assert {name: report[name] for name in RECORDED if name != "artifacts"} == {
            name: value for name, value in RECORDED.items() if name != "artifacts"
        }
    assert differences(world, state, tmp_path / "scratch") == {}


def test_the_note_of_the_hook_is_what_v6_takes(shared: Path, cli: CommandLine, tmp_path: Path) -> None:
    state = build(shared, tmp_path / "state", vectors=False)
    world = World(state, [MAIL], tmp_path / "scratch")
    ours, theirs = world.after(OURS), world.after(PEER)
    assert [name for name in ours.files if ours.files[name] != theirs.files.get(name)] == [NOTE]
    cli.forget(state, "--session", MAIL)
    assert (state / "workspace" / NOTE).read_bytes() == b""


def test_forgotten_vectors_are_gone_and_the_rest_still_answers(shared: Path, cli: CommandLine, tmp_path: Path) -> None:
    state = build(shared, tmp_path / "state", vectors=True)
    path = state / AGENT_DB.format(agent=AGENT)
    db = connect_with_vectors(path)
    vectors = dict(db.execute("SELECT c.id, v.embedding FROM memory_index_chunks c JOIN memory_index_chunks_vec v "
                              "ON v.id = c.id").fetchall())  # fmt: skip
    db.close()
    cli.forget(state, "--session", MAIL)
    db = connect_with_vectors(path)
    kept = {row[0] for row in db.execute("SELECT id FROM memory_index_chunks")}
    assert len(kept) == 2
    assert {row[0] for row in db.execute("SELECT id FROM memory_index_chunks_vec")} == kept
    target = next(vectors[name] for name in sorted(kept))
    nearest = db.execute(
        "SELECT id FROM memory_index_chunks_vec WHERE embedding MATCH ? AND k = 8", (target,)
    ).fetchall()
    assert {row[0] for row in nearest} == kept
    assert db.pragma("integrity_check") == "ok"
    db.close()
    content = path.read_bytes()
    surviving = {vectors[name] for name in kept}
    left = [name for name, vector in vectors.items() if vector not in surviving and vector in content]
    assert left == []


@pytest.mark.parametrize(
    ("flags", "ids"),
    [
        (["--hook-source", "gmail"], [MAIL]),
        (["--participant", "501"], [GROUP]),
        (["--participant", "anna"], [GROUP]),
        (["--session", "agent:main:telegram:direct:42"], ["5e551000-0000-4000-8000-000000000004"]),
        (["--session", "nothing-of-the-kind"], ["nothing-of-the-kind"]),
    ],
    ids=["hook", "participant", "participant-anna", "archived-key", "unresolved"],
)
def test_every_selector_leaves_what_the_rules_leave(
    shared: Path, cli: CommandLine, tmp_path: Path, flags: list[str], ids: list[str]
) -> None:
    state = build(shared, tmp_path / "state", vectors=False)
    world = World(state, ids, tmp_path / "scratch")
    report = cli.forget(state, *flags)
    assert report["sessionIds"] == ids
    assert report["artifacts"] == world.after(OURS).counts
    assert differences(world, state, tmp_path / "scratch") == {}


def test_nothing_selected_changes_nothing(shared: Path, cli: CommandLine, tmp_path: Path) -> None:
    state = build(shared, tmp_path / "state", vectors=False)
    before = World(state, [], tmp_path / "scratch")
    report = cli.forget(state, "--hook-source", "no-such-source")
    after = World(state, [], tmp_path / "scratch")
    assert set(report["artifacts"].values()) == {0}
    assert report["untargetableEntryKeys"] == RECORDED["untargetableEntryKeys"]
    assert (before.memory, before.corpus, before.plugin) == (after.memory, after.corpus, after.plugin)
    assert (before.chunks, before.cache, before.origins) == (after.chunks, after.cache, after.origins)
    assert (state / STATE_DB).exists()
