"""V13: rewind rows, seen scopes of foreign archives and left-over temporary files go too."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from scene import SECRET, SURVIVOR, TARGET, play, plugin_keys, state_rows
from state_maker import CORPUS, StateMaker, files_holding

Forget = Callable[..., dict[str, Any]]
REWIND = "session-backfill-rewind"
SEEN = "dreaming-session-ingestion-seen"


def candidate(session: str) -> dict[str, Any]:
    """One entry of a rewind row."""
    path = f"main:sessions/main/{session}"
    return {"contentIndex": 1, "hash": "a" * 40, "scope": path, "stateKey": path}


def test_v13_rewind_rows_lose_the_session(either: StateMaker, forget: Forget) -> None:
    play(either)
    either.plugin(REWIND, "only", {"version": 1, "candidates": [candidate(TARGET)]})
    either.plugin(REWIND, "both", {"version": 1, "candidates": [candidate(TARGET), candidate(SURVIVOR)]})
    either.plugin(REWIND, "other", {"version": 1, "candidates": [candidate(SURVIVOR)]})
    either.plugin(REWIND, "complete-baseline:main", {"version": 1, "complete": True, "agentId": "main"})
    forget(either.seal().state, sessions=[TARGET])
    query = "SELECT value_json FROM plugin_state_entries WHERE namespace = ?"
    texts = [row[0] for row in state_rows(either, query, REWIND)]
    assert not [text for text in texts if TARGET in text]
    assert {"other", "complete-baseline:main"} <= plugin_keys(either, REWIND)
    assert "only" not in plugin_keys(either, REWIND)


def test_v13_archive_scopes_go(either: StateMaker, forget: Forget) -> None:
    play(either)
    either.seen(f"archive:main:/old/{TARGET}.jsonl")
    either.seen(f"archive:main:/old/{TARGET}.jsonl.reset.2026-11-18T09-00-00.000Z", index=1)
    either.seen(f"archive:main:/old/{SURVIVOR}.jsonl")
    either.seen(f"archive:main:/old/{TARGET}-2.jsonl")
    report = forget(either.seal().state, sessions=[TARGET])
    kept = {f"archive:main:/old/{SURVIVOR}.jsonl:0", f"archive:main:/old/{TARGET}-2.jsonl:0"}
    assert plugin_keys(either, SEEN) == kept
    assert report["artifacts"]["seenHashScopes"] == 2


def test_v13_left_over_rewrites_go(maker: StateMaker, forget: Forget) -> None:
    play(maker, {"memory/note.md": f"> {SECRET}\n"})
    dead = 2**22 - 1
    leftovers = [
        f"MEMORY.md.forget.{dead}.0b2b7a4e-7a0f-4f0e-9d5c-1d2f3a4b5c6d.tmp",
        f"memory/note.md.forget.{dead}.0b2b7a4e-7a0f-4f0e-9d5c-1d2f3a4b5c6d.tmp",
        f"{CORPUS}/2026-11-20.txt.forget.{dead}.0b2b7a4e-7a0f-4f0e-9d5c-1d2f3a4b5c6d.tmp",
    ]
    for name in leftovers:
        maker.file(name, f"half a file\n> {SECRET}\n")
    forget(maker.seal().state, sessions=[TARGET])
    assert not [name for name in leftovers if (maker.workspace / name).exists()]
    assert files_holding(maker.workspace, SECRET.encode()) == []


def test_v13_a_rewrite_of_a_living_process_is_left_alone(maker: StateMaker, forget: Forget) -> None:
    name = f"memory/note.md.forget.{os.getpid()}.0b2b7a4e-7a0f-4f0e-9d5c-1d2f3a4b5c6d.tmp"
    play(maker, {name: "being written\n"}).seal()
    forget(maker.state, sessions=[TARGET])
    assert maker.read(name) == b"being written\n"
