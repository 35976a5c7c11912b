"""V16: no byte of deleted text stays in the databases: not in free pages, not in full-text segments, not in the WAL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from scene import SURVIVOR, TARGET, agent_rows, own, play
from state_maker import StateMaker, database, files_holding, marker

Forget = Callable[..., dict[str, Any]]
WORD = "zyzzogeton"
RECEIPTS = 32_768
"""Bytes that the tables of receipts take in a small database."""
SAID = f"User: remember that the {WORD} eats at noon on Fridays"


def fill(maker: StateMaker) -> StateMaker:
    """The word in every kind of artifact, and enough of other text around it to need many pages."""
    play(maker, {"MEMORY.md": f"{marker('gone:e')}\n- the {WORD} eats\nkept\n> {SAID}\n"}, secret=SAID)
    own(own(maker, ["gone:e"]), ["kept:k"], SURVIVOR)
    maker.source("MEMORY.md")
    for number in range(60):
        maker.chunk(
            "MEMORY.md", f"part {number} {WORD} " + "padding words of no interest " * 40, lines=(number, number)
        )
        maker.chunk(
            "memory/other.md", f"other {number} " + "kept words of great interest " * 40, lines=(number, number)
        )
    maker.chunk(f"sessions/main/{TARGET}.jsonl", SAID, source="sessions", kind="interactive", origin="owner")
    maker.short_term("gone:e", f"the {WORD} eats")
    maker.backup(f"{marker('gone:e')}\n- the {WORD} eats\nkept\n")
    return maker.seal()


def test_v16_no_byte_is_left(either: StateMaker, forget: Forget) -> None:
    fill(either)
    assert files_holding(either.state, WORD.encode()) != []
    forget(either.state, sessions=[TARGET])
    assert files_holding(either.root, WORD.encode()) == []
    assert files_holding(either.root, b"kept words of great interest") != []


def test_v16_full_text_segments_are_rewritten(either: StateMaker, forget: Forget) -> None:
    """The word was deleted and indexed again by others before: old segments hold it, live rows do not."""
    fill(either)
    with database(either.agent_db) as db:
        db.execute("UPDATE memory_index_chunks SET text = replace(text, ?, 'nothing') WHERE path = 'MEMORY.md' "
                   "AND start_line > 30", (WORD,))  # fmt: skip
    forget(either.state, sessions=[TARGET])
    assert files_holding(either.root, WORD.encode()) == []


def test_v16_what_is_freed_is_overwritten_where_it_lies(either: StateMaker, forget: Forget) -> None:
    """Rows that this purge frees are overwritten although the pages stay in the file."""
    fill(either)
    size = either.agent_db.stat().st_size
    forget(either.state, sessions=[TARGET])
    assert agent_rows(either, "SELECT count(*) FROM memory_index_chunks") == [(60,)]
    assert either.agent_db.stat().st_size <= size + RECEIPTS
    assert files_holding(either.state, WORD.encode()) == []


def test_v16_the_index_still_answers(either: StateMaker, forget: Forget) -> None:
    fill(either)
    forget(either.state, sessions=[TARGET])
    import apsw

    db: Any = apsw.Connection(str(either.agent_db))
    try:
        query = "SELECT count(*) FROM memory_index_chunks_fts WHERE memory_index_chunks_fts MATCH ?"
        assert db.execute(query, ("interest",)).fetchall() == [(60,)]
        assert db.execute(query, (WORD,)).fetchall() == [(0,)]
        assert db.pragma("integrity_check") == "ok"
        db.execute("INSERT INTO memory_index_chunks_fts(memory_index_chunks_fts) VALUES('integrity-check')")
    finally:
        db.close()


def test_v16_no_log_is_left_beside_the_databases(either: StateMaker, forget: Forget) -> None:
    fill(either)
    forget(either.state, sessions=[TARGET])
    logs = [path for path in either.state.rglob("*-wal") if path.stat().st_size]
    assert logs == []
    assert sqlite3.connect(either.state_db).execute("PRAGMA integrity_check").fetchone() == ("ok",)
