"""Laws of design.md 11 that hold for every state: on small random workspaces with index, plugin state and backups."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import OURS, Needles, Scrub, Selection, bytes_of, key_of, text_of

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
)
from scene import agent_rows, held_by
from state_maker import StateMaker, corpus_line, snapshot

SETTINGS = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    derandomize=True,
    database=None,
)
NAMES = ("MEMORY.md", "memory/a.md", "memory/topics/b.md", "DREAMS.md", "USER.md")
IDENTICAL_LATER = ("sessionIds", "participantMatches", "sessionResolutions")


@dataclass
class Example:
    """A workspace, and which of its sessions are to be forgotten."""

    files: dict[str, bytes]
    sessions: list[str]
    keep_shared: bool


@st.composite
def examples(draw: st.DrawFn) -> Example:
    """Some notes and a selection."""
    contents = draw(st.lists(notes(), min_size=1, max_size=len(NAMES)))
    sessions = draw(
        st.lists(st.sampled_from([TARGET, TARGET, SURVIVOR, "unknown"]), min_size=1, max_size=2, unique=True)
    )
    return Example(dict(zip(NAMES, contents, strict=False)), sessions, draw(st.booleans()))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where examples are played, one at a time."""
    place = Path(tempfile.mkdtemp(prefix="cenotaph-laws-"))
    yield place
    shutil.rmtree(place, ignore_errors=True)


def staged(folder: Path, example: Example) -> StateMaker:
    """A native state with everything that a purge touches."""
    shutil.rmtree(folder / "place", ignore_errors=True)
    maker = StateMaker(folder / "place")
    maker.session(TARGET, TARGET_KEY)
    maker.session(SURVIVOR)
    for session, keys in ((TARGET, GONE_KEYS), (SURVIVOR, KEPT_KEYS)):
        for key in keys:
            maker.origin(key, session)
            maker.short_term(key, "some words")
        maker.seen(f"main:sessions/main/{session}")
        maker.checkpoint(f"main:sessions/main/{session}")
        maker.source(f"sessions/main/{session}.jsonl", "sessions")
        maker.chunk(f"sessions/main/{session}.jsonl", f"words of {session}", source="sessions", kind="interactive")
    said = [corpus_line(TARGET, 2 * number, text) for number, text in enumerate([*SAID, COMMON], 1)]
    maker.corpus("2026-11-20", [*said, corpus_line(SURVIVOR, 2, KEPT), corpus_line(SURVIVOR, 4, COMMON)])
    for name, content in example.files.items():
        maker.file(name, content)
        text = content.decode("utf-8", "replace")
        maker.source(name, text=text)
        for number, part in enumerate(text.split("\n\n")):
            maker.chunk(name, part, lines=(number + 1, number + 1), cached=True)
    maker.backup(example.files["MEMORY.md"].decode("utf-8", "replace"))
    return maker.seal()


def forget(maker: StateMaker, example: Example, *, dry_run: bool = False) -> dict[str, Any]:
    """One purge through the library."""
    import cenotaph

    with cenotaph.open(maker.state, agent="main") as memory:
        report = memory.forget(sessions=example.sessions, keep_shared=example.keep_shared, dry_run=dry_run)
    return report.model_dump(by_alias=True, mode="json")


def meaning(maker: StateMaker) -> dict[str, Any]:
    """What a state holds."""
    return held_by(maker, tombstones="session_id, agent_id, created_at", chunks="id, path, text")


def is_part_of(left: bytes, original: bytes) -> bool:
    """Whether `left` is `original` without some of its lines, each line with its own terminator."""
    rest = iter(split_keeping(original))
    return all(any(line == other for other in rest) for line in split_keeping(left))


def split_keeping(content: bytes) -> list[bytes]:
    """Lines with their LF."""
    parts = content.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


@SETTINGS
@given(example=examples())
def test_forgetting_twice_is_forgetting_once(folder: Path, example: Example) -> None:
    maker = staged(folder, example)
    first = forget(maker, example)
    once = meaning(maker)
    second = forget(maker, example)
    assert meaning(maker) == once
    assert set(second["artifacts"].values()) <= {0}
    assert second["entryKeys"] == second["mixedLineageEntryKeys"] == []
    assert {name: second[name] for name in IDENTICAL_LATER} == {name: first[name] for name in IDENTICAL_LATER}


@SETTINGS
@given(example=examples())
def test_a_preview_is_the_purge_and_changes_nothing(folder: Path, example: Example) -> None:
    maker = staged(folder, example)
    before = snapshot(maker.root)
    dry = forget(maker, example, dry_run=True)
    assert snapshot(maker.root) == before
    real = forget(maker, example)
    for report in (dry, real):
        for name in ("dryRun", "measured", "verification", "receipt"):
            del report[name]
    assert dry == real


@SETTINGS
@given(example=examples())
def test_what_stays_is_the_same_to_the_byte(folder: Path, example: Example) -> None:
    maker = staged(folder, example)
    forget(maker, example)
    for name, content in example.files.items():
        assert is_part_of(maker.read(name), content), name


def labelled(content: bytes) -> list[tuple[str, bytes]]:
    """Each marker's key with the first line that is no marker, lineage line or blank below it."""
    lines = content.split(b"\n")
    found: list[tuple[str, bytes]] = []
    for number, line in enumerate(lines):
        key = key_of(line.decode("utf-8", "surrogateescape"))
        if key is not None:
            below = (other for other in lines[number + 1 :] if other.strip() and b"openclaw-memory-" not in other)
            found.append((key, next(below, b"")))
    return found


def is_label_of_text(line: bytes) -> bool:
    """Whether a marker above this line labels it: nothing labels a heading, a rule or a managed comment."""
    text = line.strip()
    return bool(text) and not text.startswith((b"#", b"***", b"<!--", b"```", b"~~~", b"````"))


@SETTINGS
@given(example=examples())
def test_a_surviving_key_labels_the_text_that_it_labelled(folder: Path, example: Example) -> None:
    maker = staged(folder, example)
    forget(maker, example)
    for name, content in example.files.items():
        before = set(labelled(content)) | entries(content)
        after = [pair for pair in labelled(maker.read(name)) if is_label_of_text(pair[1])]
        assert [pair for pair in after if pair not in before] == [], name


def entries(content: bytes) -> set[tuple[str, bytes]]:
    """Each key with every line of the block that it labels."""
    lines = text_of(content).split("\n")
    lines[0] = lines[0].removeprefix("\ufeff")
    work = Scrub(lines, Selection("main", frozenset()), Needles(), OURS)
    found: set[tuple[str, bytes]] = set()
    for number in range(len(lines)):
        unit = work.unit_at(number)
        if unit is not None:
            found |= {(key, bytes_of(line)) for key in unit.keys for line in lines[unit.block : unit.end]}
    return found


@SETTINGS
@given(example=examples())
def test_selected_keys_and_sessions_leave_no_row(folder: Path, example: Example) -> None:
    maker = staged(folder, example)
    report = forget(maker, example)
    keys = set(report["entryKeys"])
    rows = agent_rows(maker, "SELECT entry_key, session_id FROM memory_entry_origins")
    assert not [row for row in rows if row[0] in keys or row[1] in example.sessions]
    tombstones = {row[0] for row in agent_rows(maker, "SELECT session_id FROM memory_session_tombstones")}
    assert tombstones == set(example.sessions)
    for name in example.files:
        left = {key for key, _ in labelled(maker.read(name))}
        assert not left & keys, name
