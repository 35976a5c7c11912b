"""V8: more ids, keys and chunks than SQLite takes parameters (32,766)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scene import agent_rows, origin_keys
from state_maker import T0, StateMaker, database, marker

Forget = Callable[..., dict[str, Any]]
MANY = 40_000


def fill(maker: StateMaker, keys: int, chunks: int, session: str) -> None:
    """Origin rows and chunk rows in bulk."""
    with database(maker.agent_db) as db:
        db.executemany(
            "INSERT INTO memory_entry_origins (entry_key, agent_id, session_id, origin_class, observed_at) "
            "VALUES (?, 'main', ?, 'owner', ?)",
            ((f"key:{number:06d}", session, T0) for number in range(keys)),
        )
        db.executemany(
            "INSERT INTO memory_index_chunks (id, path, source, start_line, end_line, hash, model, text, embedding, "
            "updated_at) VALUES (?, ?, 'sessions', 1, 1, ?, 'fts-only', ?, x'', ?)",
            ((f"chunk:{n:06d}", f"sessions/main/{session}.jsonl", f"h{n}", f"words {n}", T0) for n in range(chunks)),
        )


@pytest.mark.slow
def test_v08_very_many_keys_and_chunks(either: StateMaker, forget: Forget) -> None:
    either.session("s-many")
    either.origin("key:first", "s-many")
    either.file("MEMORY.md", "".join(f"{marker(f'key:{n:06d}')}\n- entry {n}\n" for n in range(0, MANY, 10)) + "kept\n")
    either.seal()
    fill(either, MANY, MANY, "s-many")
    report = forget(either.state, sessions=["s-many"])
    assert either.read("MEMORY.md") == b"kept\n"
    assert report["artifacts"]["originRows"] == MANY + 1
    assert report["artifacts"]["indexChunks"] == MANY
    assert report["artifacts"]["memoryEntries"] == MANY // 10
    assert origin_keys(either) == set()
    assert agent_rows(either, "SELECT count(*) FROM memory_index_chunks") == [(0,)]


@pytest.mark.slow
def test_v08_very_many_session_ids(maker: StateMaker, forget: Forget) -> None:
    maker.session("s-000001")
    maker.session("s-kept")
    maker.origin("gone", "s-039999")
    maker.origin("kept", "s-kept")
    maker.seal()
    report = forget(maker.state, sessions=[f"s-{number:06d}" for number in range(MANY)])
    assert len(report["sessionIds"]) == MANY
    assert agent_rows(maker, "SELECT count(*) FROM memory_session_tombstones") == [(MANY,)]
    assert origin_keys(maker) == {"kept"}
