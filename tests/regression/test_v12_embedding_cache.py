"""V12: paid-for cache rows of surviving chunks stay; those of removed and of unknown text go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scene import SECRET, TARGET, agent_rows, play
from state_maker import StateMaker, sha256

Forget = Callable[..., dict[str, Any]]


def cached(maker: StateMaker) -> set[str]:
    """Hashes in the cache."""
    return {row[0] for row in agent_rows(maker, "SELECT hash FROM memory_embedding_cache")}


def test_v12_only_rows_of_survivors_stay(either: StateMaker, forget: Forget) -> None:
    play(either, {"memory/note.md": f"> {SECRET}\n", "memory/clean.md": "kept\n"})
    either.source("memory/note.md")
    either.source("memory/clean.md")
    either.chunk("memory/note.md", f"> {SECRET}", cached=True)
    either.chunk("memory/note.md", "rest of the note", lines=(2, 2), cached=True)
    either.chunk("memory/clean.md", "kept", cached=True)
    either.chunk(f"sessions/main/{TARGET}.jsonl", "own words", source="sessions", kind="interactive", cached=True)
    either.cache(sha256("text that no chunk has any more"))
    report = forget(either.seal().state, sessions=[TARGET])
    assert cached(either) == {sha256("kept")}
    assert report["artifacts"]["embeddingCacheRows"] == 4


def test_v12_an_empty_selection_drops_nothing(maker: StateMaker, forget: Forget) -> None:
    play(maker)
    maker.cache(sha256("text that no chunk has any more"))
    report = forget(maker.seal().state, hook_sources=["no-such-source"])
    assert report["artifacts"]["embeddingCacheRows"] == 0
    assert len(cached(maker)) == 1
