"""Another program acts between two steps of a deletion, at each of them in turn.

Whatever it does: what is forgotten is gone and the status is 0, or the report says what is left, with status 3, and the
next run finishes. A clean report over something that can still be read is the one thing that must not be.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from intruder import Intruder, intruder
from stage import Stage, damaged, residue, scene, steps_of

import cenotaph
from cenotaph import ForgetReport
from scene import SECRET, TARGET, agent_rows, origin_keys
from state_maker import StateMaker, marker

LIMIT = 30
"""Seconds that no run may take."""
QUOTED = f"> {SECRET}"


def interrupted(maker: StateMaker, at: str, act: Callable[[], object]) -> ForgetReport:
    """A deletion during which `act` is called once, when the step `at` begins."""
    waiting = [act]

    def step(name: str) -> None:
        if name == at and waiting:
            waiting.pop()()

    begun = time.monotonic()
    with cenotaph.open(maker.state, agent="main") as memory:
        report = memory.forget(sessions=[TARGET], on_step=step)
    assert waiting == [], f"there was no step {at}"
    assert time.monotonic() - begun < LIMIT
    return report


def steps(maker: StateMaker) -> tuple[Stage, list[str]]:
    """The stage, and the steps of an uninterrupted run. The first step comes before anything was read."""
    stage = Stage(scene(maker))
    found = steps_of(maker)
    assert len(found) > 10
    assert residue(maker) == []
    return stage, found


def lie(maker: StateMaker, report: ForgetReport) -> list[str]:
    """What is wrong with a report: something can be read that it does not tell of, or a complaint about nothing."""
    left = residue(maker)
    if report.exit_status == 0:
        return left
    return [] if left else [f"nothing is left, but: {report.pending}"]


def finish(maker: StateMaker) -> list[str]:
    """Runs it again; what is wrong then."""
    with cenotaph.open(maker.state, agent="main") as memory:
        report = memory.forget(sessions=[TARGET])
    return [*report.pending, *residue(maker), *damaged(maker)]


Act = Callable[[Intruder, StateMaker, int], object]


def publish_if_unchanged(program: Intruder, maker: StateMaker, seen: int) -> object:
    """An index run that had read and embedded the text before: it looks at revision and tombstones as it publishes."""
    return program("publish", text=QUOTED, path="memory/late.md", seen=seen, session=TARGET)


def publish_transcript(program: Intruder, maker: StateMaker, seen: int) -> object:
    """The same of a transcript, without a look at the revision: the tombstone alone has to do."""
    return program("publish", text=SECRET, path=f"sessions/main/{TARGET}.jsonl", source="sessions", session=TARGET)


@pytest.mark.slow
@pytest.mark.parametrize("act", [publish_if_unchanged, publish_transcript], ids=lambda act: act.__name__)
def test_an_index_run_between_embedding_and_publishing(either: StateMaker, act: Act) -> None:
    """Before the tombstones it publishes, and the deletion takes it; afterwards nothing forgotten is published."""
    stage, names = steps(either)
    buried = names.index("Deleting index rows")
    answers: dict[str, object] = {}
    wrong: dict[str, object] = {}
    for name in names:
        stage.reset()
        with intruder(either) as program:
            seen: int = program("revision")

            def work(name: str = name, seen: int = seen, program: Intruder = program) -> None:
                answers[name] = act(program, either, seen)

            report = interrupted(either, name, work)
        found = [*lie(either, report), *report.pending, *damaged(either)]
        if found:
            wrong[name] = found
    assert wrong == {}
    assert [answers[name] for name in names] == ["published"] * buried + ["discarded"] * (len(names) - buried)


@pytest.mark.slow
def test_a_program_that_looks_at_nothing(either: StateMaker) -> None:
    """It publishes forgotten text when it likes: not ours to stop, but the report tells, and the next run cleans."""
    stage, names = steps(either)
    too_late = names.index("Deleting plugin state")
    wrong: dict[str, object] = {}
    statuses: list[int] = []
    path = f"sessions/main/{TARGET}.jsonl"
    for name in names:
        stage.reset()
        with intruder(either) as program:
            report = interrupted(
                either, name, lambda: program("publish", text=SECRET, path=path, source="sessions", number=9)
            )
        statuses.append(report.exit_status)
        found = lie(either, report) or finish(either)
        if found:
            wrong[name] = found
    assert wrong == {}
    assert statuses == [0] * too_late + [3] * (len(names) - too_late)


def quote_in_a_chunk(program: Intruder, maker: StateMaker) -> None:
    """Of a memory file that does not exist."""
    program("publish", text=QUOTED, path="memory/late.md")


def quote_in_a_file(program: Intruder, maker: StateMaker) -> None:
    """Of which there was no trace before."""
    maker.file("memory/late.md", f"somebody wrote\n{QUOTED}\n")


Late = Callable[[Intruder, StateMaker], None]


def quoted_at(maker: StateMaker, name: str, act: Late) -> ForgetReport:
    """A deletion during which the forgotten words are quoted anew."""
    with intruder(maker) as program:
        return interrupted(maker, name, lambda: act(program, maker))


@pytest.mark.slow
@pytest.mark.parametrize("act", [quote_in_a_chunk, quote_in_a_file], ids=lambda act: act.__name__)
def test_a_quotation_that_is_new(either: StateMaker, act: Late) -> None:
    """Taken along while the corpus is there to tell what was said, and told afterwards."""
    stage, names = steps(either)
    wrong: dict[str, object] = {}
    statuses: dict[str, int] = {}
    for name in names:
        stage.reset()
        report = quoted_at(either, name, act)
        statuses[name] = report.exit_status
        found = [*lie(either, report), *damaged(either)]
        if found:
            wrong[name] = found
    assert wrong == {}
    assert statuses["Deleting index rows"] == 0
    assert statuses["Looking for what was removed"] == 3


@pytest.mark.parametrize("act", [quote_in_a_chunk, quote_in_a_file], ids=lambda act: act.__name__)
def test_a_quotation_that_came_too_late_goes_with_the_next_run(maker: StateMaker, act: Late) -> None:
    scene(maker)
    assert quoted_at(maker, "Looking for what was removed", act).exit_status == 3
    assert finish(maker) == []


def test_a_clean_report_means_that_nothing_is_left(maker: StateMaker) -> None:
    """A short-term entry without an origin row holds what the session said, word for word."""
    maker.short_term("memory:memory/notes.md:3:3", QUOTED)
    scene(maker)
    with cenotaph.open(maker.state, agent="main") as memory:
        report = memory.forget(sessions=[TARGET])
    assert lie(maker, report) == []


@pytest.mark.slow
def test_a_program_with_other_things_to_write(either: StateMaker) -> None:
    """What it writes stays, and the deletion is complete."""
    stage, names = steps(either)
    wrong: dict[str, object] = {}
    for name in names:
        stage.reset()
        with intruder(either) as program:
            report = interrupted(
                either, name, lambda: program("publish", text="words of somebody else", path="memory/other.md")
            )
        kept = agent_rows(either, "SELECT text FROM memory_index_chunks WHERE path = 'memory/other.md'")
        found = [*lie(either, report), *report.pending, *damaged(either)]
        if found or kept != [("words of somebody else",)]:
            wrong[name] = (found, kept)
    assert wrong == {}


@pytest.mark.slow
def test_an_origin_that_is_added(either: StateMaker) -> None:
    """A promotion writes its origin row before its text: the entry is forgotten with the rest, or named as left."""
    stage, names = steps(either)
    wrong: dict[str, object] = {}
    statuses: dict[str, int] = {}
    for name in names:
        stage.reset()
        with intruder(either) as program:

            def promote(program: Intruder = program) -> None:
                program("origin", key="late:e", session=TARGET)
                path = either.workspace / "MEMORY.md"
                path.write_bytes(path.read_bytes() + f"\n{marker('late:e')}\n- about a heron of sixty-one\n".encode())

            report = interrupted(either, name, promote)
        statuses[name] = report.exit_status
        found = lie(either, report) or finish(either)
        # Text that nobody planned to remove is known by its key alone: while the key has a row, a rerun finds it.
        if b"heron" in either.read("MEMORY.md") or "late:e" in origin_keys(either):
            found.append("the entry is there after a second run")
        if found:
            wrong[name] = found
    assert wrong == {}
    assert statuses["Reading sessions"] == statuses["Writing tombstones"] == 0


@pytest.mark.slow
def test_an_editor(either: StateMaker) -> None:
    """Somebody writes into the files meanwhile: their lines stay, and nothing forgotten does."""
    stage, names = steps(either)
    wrong: dict[str, object] = {}
    for name in names:
        stage.reset()

        def edit() -> None:
            for file in ("MEMORY.md", "memory/note-0001.md"):
                path = either.workspace / file
                path.write_bytes(path.read_bytes() + b"- a line of somebody\n")

        report = interrupted(either, name, edit)
        texts = [either.read(file) for file in ("MEMORY.md", "memory/note-0001.md")]
        found = [*lie(either, report), *report.pending, *damaged(either)]
        if found or not all(text.endswith(b"- a line of somebody\n") for text in texts):
            wrong[name] = (found, texts)
    assert wrong == {}
