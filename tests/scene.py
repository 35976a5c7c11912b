"""The scene that most tests play in: one session to forget, one to keep, and a sentence that one of them said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from state_maker import StateMaker, corpus_line, reading, snapshot

TARGET, SURVIVOR = "s-target", "s-survivor"
SECRET = "User: please remember the violet mongoose of forty-two"
KEPT = "User: the other session talked of lathes and belts"
DAY = "2026-11-20"


def play(maker: StateMaker, files: Mapping[str, str | bytes] | None = None, *, secret: str = SECRET) -> StateMaker:
    """Two sessions, a corpus line of each, and the given workspace files. The caller seals."""
    maker.session(TARGET)
    maker.session(SURVIVOR)
    maker.corpus(DAY, [corpus_line(TARGET, 2, secret), corpus_line(SURVIVOR, 2, KEPT)])
    for name, content in (files or {}).items():
        maker.file(name, content)
    return maker


def own(maker: StateMaker, keys: Iterable[str], session: str = TARGET) -> StateMaker:
    """Origin rows of one session."""
    for key in keys:
        maker.origin(key, session)
    return maker


def agent_rows(maker: StateMaker, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Rows of the agent database, read from a copy."""
    return _rows(maker.agent_db, maker.root, query, values)


def state_rows(maker: StateMaker, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Rows of the shared database, read from a copy."""
    return _rows(maker.state_db, maker.root, query, values)


def _rows(path: Path, root: Path, query: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
    with reading(path, root / "scratch") as db:
        return [tuple(row) for row in db.execute(query, values)]


def origin_keys(maker: StateMaker) -> set[str]:
    """Entry keys that still have an origin row."""
    return {row[0] for row in agent_rows(maker, "SELECT entry_key FROM memory_entry_origins")}


def plugin_keys(maker: StateMaker, namespace: str) -> set[str]:
    """Logical keys of a namespace of plugin state."""
    query = "SELECT json_extract(value_json, '$.key') FROM plugin_state_entries WHERE namespace = ?"
    return {row[0] for row in state_rows(maker, query, namespace)}


def held_by(maker: StateMaker, *, tombstones: str, chunks: str) -> dict[str, Any]:
    """What a state holds: files to the byte, rows without clock readings and counters; `tombstones` and `chunks` name
    the columns of these tables.
    """
    queries = (
        "SELECT * FROM memory_entry_origins ORDER BY 1, 2, 3",
        f"SELECT {tombstones} FROM memory_session_tombstones ORDER BY 1",
        f"SELECT {chunks} FROM memory_index_chunks ORDER BY 1",
        "SELECT path, source FROM memory_index_sources ORDER BY 1, 2",
        "SELECT hash FROM memory_embedding_cache ORDER BY 1",
    )
    plugin = "SELECT namespace, value_json FROM plugin_state_entries WHERE namespace <> 'short-term-meta' ORDER BY 1, 2"
    return {
        "files": snapshot(maker.workspace),
        "rows": [agent_rows(maker, query) for query in queries],
        "plugin": state_rows(maker, plugin),
    }
