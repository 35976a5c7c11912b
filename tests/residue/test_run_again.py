"""A forget after a forget: by this program, whose receipts tell what must not come back, or by another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from planting import KINDS, needles_of, purge_carelessly, stage
from planting import TARGET as PLANTED
from raw import scan, told
from stage import residue, scene
from test_same_after import add_rows

from scene import DAY, SECRET, SURVIVOR, TARGET, agent_rows, plugin_keys
from state_maker import StateMaker, corpus_line

Forget = Callable[..., dict[str, Any]]
WORDS = SECRET.removeprefix("User: ")
NOTE = f"a line of somebody\n- {WORDS}\n"


def write_again(maker: StateMaker) -> None:
    """Another program has the text still, and writes it wherever memory lies."""
    maker.file("memory/late.md", NOTE)
    maker.file("memory/packed.md", f"a line of somebody\n{json.dumps(json.dumps(SECRET))}\n")
    maker.chunk("memory/late.md", NOTE)
    maker.short_term("memory:memory/late.md:2:2", WORDS)
    maker.backup(f"# Memory\n\n{NOTE}")
    maker.seal(add_rows)


def test_what_came_back_goes_again(either: StateMaker, forget: Forget) -> None:
    scene(either)
    forget(either.state, sessions=[TARGET])
    write_again(either)
    assert residue(either) != []
    report = forget(either.state, sessions=[TARGET])
    assert report["pending"] == []
    assert residue(either) == []
    assert either.read("memory/late.md") == b"a line of somebody\n"
    assert either.read("memory/packed.md") == b"a line of somebody\n"
    assert "memory:memory/late.md:2:2" not in plugin_keys(either, "short-term-recall")
    assert report["artifacts"]["memoryLines"] == 2
    assert report["artifacts"]["indexChunks"] == report["artifacts"]["shortTermEntries"] == 1
    assert report["artifacts"]["backups"] == 1
    assert agent_rows(either, "SELECT count(*) FROM memory_index_chunks WHERE path LIKE 'memory/%'") == [(0,)]


def test_a_preview_tells_what_came_back(either: StateMaker, forget: Forget) -> None:
    scene(either)
    forget(either.state, sessions=[TARGET])
    write_again(either)
    preview = forget(either.state, sessions=[TARGET], dry_run=True)
    real = forget(either.state, sessions=[TARGET])
    assert preview["artifacts"] == real["artifacts"]


def test_a_session_that_was_forgotten_beside_it_counts_too(either: StateMaker, forget: Forget) -> None:
    """The receipt tells of both sessions; who forgets one of them again gets rid of all that came back."""
    scene(either)
    forget(either.state, sessions=[TARGET, SURVIVOR])
    write_again(either)
    assert forget(either.state, sessions=[SURVIVOR])["pending"] == []
    assert residue(either) == []


@pytest.mark.parametrize("keep_shared", [False, True], ids=["all", "keep-shared"])
def test_what_a_survivor_says_later_is_the_survivors(either: StateMaker, forget: Forget, *, keep_shared: bool) -> None:
    """Its corpus line stays, and is no residue; a quotation goes unless shared lines are kept."""
    scene(either)
    forget(either.state, sessions=[TARGET])
    line = corpus_line(SURVIVOR, 9, SECRET)
    either.corpus(DAY, [line])
    either.file("memory/late.md", NOTE)
    either.seal()
    report = forget(either.state, sessions=[TARGET], keep_shared=keep_shared)
    assert report["pending"] == []
    assert (either.workspace / f"memory/.dreams/session-corpus/{DAY}.txt").read_text() == f"{line}\n"
    kept = NOTE if keep_shared else "a line of somebody\n"
    assert either.read("memory/late.md").decode() == kept


def test_a_second_run_looks_for_what_the_first_one_removed(either: StateMaker, forget: Forget) -> None:
    scene(either)
    first = forget(either.state, sessions=[TARGET])
    second = forget(either.state, sessions=[TARGET])
    assert second["artifacts"] == dict.fromkeys(second["artifacts"], 0)
    assert second["verification"]["needles"] >= first["verification"]["needles"] > 0


def forgotten_by_another_program(maker: StateMaker) -> None:
    """Rows, lines and files are gone and the tombstone stands, but no byte was erased and no receipt written."""
    stage(maker, KINDS)
    purge_carelessly(maker)
    maker.tombstone(PLANTED)
    maker.seal(add_rows)


def test_what_another_program_forgot_is_erased_unseen(either: StateMaker, forget: Forget) -> None:
    """Nobody knows any more what to look for, so nothing old is left at all."""
    forgotten_by_another_program(either)
    assert scan([either.root], needles_of(KINDS))
    report = forget(either.state, sessions=[PLANTED])
    assert report["pending"] == []
    assert report["measured"]["database"] == "vacuum"
    assert any("left no receipt" in refusal for refusal in report["refusals"])
    hits = scan([either.root], needles_of(KINDS))
    assert not hits, told(hits)
    again = forget(either.state, sessions=[PLANTED])
    assert again["measured"]["database"] == "secure-delete", "the first run left a receipt"
    assert again["refusals"] == []
