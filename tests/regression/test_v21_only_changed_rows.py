"""V21: one pass each, and only rows that change are written."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from scene import SURVIVOR, TARGET, own, play, state_rows
from state_maker import StateMaker, marker

Forget = Callable[..., dict[str, Any]]


def test_v21_kept_rows_keep_their_time(either: StateMaker, forget: Forget) -> None:
    own(own(play(either), ["gone:e"]), ["kept:k"], SURVIVOR)
    for key in ("gone:e", "kept:k"):
        either.short_term(key, "some words")
    for session in (TARGET, SURVIVOR):
        either.seen(f"main:sessions/main/{session}")
        either.checkpoint(f"main:sessions/main/{session}")
    either.backup(f"{marker('gone:e')}\n- entry\n")
    either.backup("nothing selected\n", at=1_795_000_000_000)
    either.seal()
    query = (
        "SELECT rowid, namespace, entry_key, value_json, created_at FROM plugin_state_entries "
        "WHERE namespace <> 'short-term-meta'"
    )
    before = set(state_rows(either, query))
    forget(either.state, sessions=[TARGET])
    after = set(state_rows(either, query))
    written = after - before
    assert [row[1] for row in written] == ["dreaming-memory-backups"]
    assert len(after) == len(before) - 4


@pytest.mark.slow
def test_v21_very_many_archives_are_read_once(maker: StateMaker, forget: Forget) -> None:
    """A session list that is rebuilt for each archive is quadratic: 3,000 of them would take minutes."""
    for number in range(3000):
        maker.archive(f"s-{number:05d}", published=number % 2 == 0)
    play(maker).seal()
    start = time.monotonic()
    report = forget(maker.state, sessions=["s-00007", "s-00008"])
    assert time.monotonic() - start < 20
    assert {entry["source"] for entry in report["sessionResolutions"]} == {"archived"}
