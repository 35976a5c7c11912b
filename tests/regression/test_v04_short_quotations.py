"""V4: other spellings count only for snippets of 24 UTF-16 units or more; the stored form from 12 on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scene import TARGET, play
from state_maker import StateMaker

Forget = Callable[..., dict[str, Any]]


def left(maker: StateMaker, forget: Forget, said: str, line: str) -> bytes:
    """What is left of a note that quotes `said` as `line`."""
    play(maker, {"memory/note.md": f"above\n{line}\n"}, secret=said).seal()
    forget(maker.state, sessions=[TARGET])
    return maker.read("memory/note.md").removeprefix(b"above\n")


def test_v04_thanks_a_lot_empties_no_innocent_line(maker: StateMaker, forget: Forget) -> None:
    assert left(maker, forget, "User: thanks a lot", "- thanks a lot for the cake") == b"- thanks a lot for the cake\n"


def test_v04_the_stored_form_of_a_short_one_still_goes(maker: StateMaker, forget: Forget) -> None:
    assert left(maker, forget, "User: thanks a lot", "> User: thanks a lot!") == b""


@pytest.mark.parametrize(
    ("said", "goes"),
    [
        ("User: seventeen letters", False),
        ("User: eighteen letters..", True),
        ("User: emoji \U0001f40b\U0001f40b in two", False),
        ("User: emoji \U0001f40b\U0001f40b in twos", True),
    ],
    ids=["23", "24", "23 with surrogates", "24 with surrogates"],
)
def test_v04_the_limit_is_24_units(maker: StateMaker, forget: Forget, said: str, goes: bool) -> None:
    assert len(said.encode("utf-16-le")) // 2 == (24 if goes else 23)
    line = "- " + said.removeprefix("User: ")
    assert left(maker, forget, said, line) == (b"" if goes else f"{line}\n".encode())


@pytest.mark.parametrize(
    ("said", "goes"),
    [("User: hi mum", True), ("User: hi mu", False), ("User: \U0001f40b\U0001f40b\U0001f40b", True)],
    ids=["12", "11", "12 with surrogates"],
)
def test_v04_the_stored_minimum_is_12_units(maker: StateMaker, forget: Forget, said: str, goes: bool) -> None:
    assert left(maker, forget, said, f"> {said}") == (b"" if goes else f"> {said}\n".encode())


def test_v04_a_short_corpus_line_goes_although_it_is_no_needle(maker: StateMaker, forget: Forget) -> None:
    left(maker, forget, "User: ok", "> User: ok")
    assert b"User: ok" not in maker.read("memory/.dreams/session-corpus/2026-11-20.txt")
    assert maker.read("memory/note.md") == b"above\n> User: ok\n"
