"""The program's purge of text against the slow and obvious one, on small random workspaces."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import OURS, PEER, Outcome, Selection, purge
from world import read_workspace

from notes import (
    COMMON,
    GONE_KEYS,
    KEPT,
    KEPT_KEYS,
    SAID,
    SURVIVOR,
    TARGET,
    TARGET_KEY,
    notes,
)  # fmt: skip
from state_maker import CORPUS, StateMaker, corpus_line

SETTINGS = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)  # fmt: skip
CORPUS_LINES = [
    *(corpus_line(TARGET, 2 * number, text) for number, text in enumerate([*SAID, COMMON], 1)),
    corpus_line(SURVIVOR, 2, KEPT),
    corpus_line(SURVIVOR, 4, COMMON),
]


@pytest.fixture(scope="module")
def template() -> Iterator[StateMaker]:
    """Sessions, origin rows and corpus; each example adds its notes to a copy."""
    folder = Path(tempfile.mkdtemp(prefix="cenotaph-reference-"))
    maker = StateMaker(folder / "place")
    maker.session(TARGET, TARGET_KEY)
    maker.session(SURVIVOR)
    for key in GONE_KEYS:
        maker.origin(key, TARGET)
    for key in KEPT_KEYS:
        maker.origin(key, SURVIVOR)
    maker.corpus("2026-11-20", CORPUS_LINES)
    yield maker.seal()
    shutil.rmtree(folder, ignore_errors=True)


SELECTION = Selection(
    "main", frozenset({TARGET}), frozenset({TARGET_KEY}), frozenset(GONE_KEYS), frozenset({*GONE_KEYS, *KEPT_KEYS})
)


def staged(template: StateMaker, files: dict[str, bytes]) -> StateMaker:
    """A copy of the template with these notes, at the same path."""
    place = template.root / "example"
    shutil.rmtree(place, ignore_errors=True)
    maker = StateMaker.__new__(StateMaker)
    maker.__dict__.update(template.__dict__)
    maker.root, maker.state, maker.workspace = place, place / "state", place / "work"
    shutil.copytree(template.state, maker.state)
    shutil.copytree(template.workspace, maker.workspace)
    config: dict[str, Any] = {"agents": {"defaults": {"workspace": str(maker.workspace)}}}
    (maker.state / "openclaw.json").write_text(json.dumps(config))
    for name, content in files.items():
        maker.file(name, content)
    return maker


def forget(maker: StateMaker, **wish: Any) -> dict[str, Any]:
    """One purge through the library."""
    import cenotaph

    with cenotaph.open(maker.state, agent="main") as memory:
        return memory.forget(sessions=[TARGET], **wish).model_dump(by_alias=True, mode="json")


def expected(files: dict[str, bytes], corpus: dict[str, bytes]) -> Outcome:
    """What the reference makes of it."""
    return purge(files, corpus, SELECTION, OURS)


@SETTINGS
@given(contents=st.lists(notes(), min_size=1, max_size=4))
def test_the_purge_is_the_reference(template: StateMaker, contents: list[bytes]) -> None:
    names = ["MEMORY.md", "memory/a.md", "memory/topics/b.md", "DREAMS.md"]
    files = dict(zip(names, contents, strict=False))
    maker = staged(template, files)
    _, corpus = read_workspace(maker.workspace)
    outcome = expected(files, corpus)
    report = forget(maker)
    for name, content in files.items():
        left = maker.read(name)
        done = outcome.memory[name]
        assert left == done.content, (name, content, sorted(done.removed))
    assert maker.read(f"{CORPUS}/2026-11-20.txt") == outcome.corpus[f"{CORPUS}/2026-11-20.txt"].content
    assert report["entryKeys"] == sorted(outcome.selection.entry_keys)
    counts = report["artifacts"]
    assert counts["memoryFiles"] == sum(outcome.memory[name].content != files[name] for name in files)
    assert counts["memoryEntries"] == sum(done.entries for done in outcome.memory.values())
    assert counts["memoryLines"] == sum(done.quoted for done in outcome.memory.values())
    untraced = {key for done in outcome.memory.values() for key in done.untraced}
    assert report["untargetableEntryKeys"] == sorted(untraced)
    locations = [f"{name}:{line}" for name, done in outcome.memory.items() for line in done.shared_lines]
    assert sorted(report["sharedSnippetLocations"]) == sorted(locations)


@SETTINGS
@given(content=notes())
def test_what_the_peer_removes_goes_here_too_but_for_v2(content: bytes) -> None:
    """A line that only the peer removes is one that it takes for a part of an entry, and that V2 knows is none."""
    corpus = {"corpus": "\n".join(CORPUS_LINES).encode()}
    ours, theirs = (purge({"note": content}, corpus, SELECTION, rules).memory["note"] for rules in (OURS, PEER))
    knowing = purge({"note": content}, corpus, SELECTION, PEER.having("v2")).memory["note"]
    lines = content.split(b"\n")
    spared = {n for n in theirs.removed - ours.removed if lines[n]}
    assert not spared & knowing.removed
