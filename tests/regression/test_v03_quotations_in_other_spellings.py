"""V3: a quotation is recognised without its label, decomposed, with other blanks, with Markdown escapes."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest

from scene import TARGET, play
from state_maker import StateMaker

SAID = "User: the café [west] keeps *violet* mongooses for Ángel"
PLAIN = SAID.removeprefix("User: ")

SPELLINGS = {
    "stored": SAID,
    "without label": PLAIN,
    "inside a sentence": f'they said "{PLAIN}", twice',
    "decomposed": unicodedata.normalize("NFD", SAID),
    "decomposed without label": unicodedata.normalize("NFD", PLAIN),
    "doubled blanks": SAID.replace(" ", "  "),
    "tab": PLAIN.replace(" ", "\t"),
    "no-break space": PLAIN.replace(" ", "\u00a0"),
    "escapes": PLAIN.replace("[", "\\[").replace("]", "\\]").replace("*", "\\*"),
    "everything": unicodedata.normalize("NFD", PLAIN).replace(" ", "  ").replace("*", "\\*"),
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS.keys())
@pytest.mark.parametrize("end", ["\n", "\r\n", ""], ids=["lf", "crlf", "bare"])
def test_v03_every_spelling_goes(
    maker: StateMaker, forget: Callable[..., dict[str, Any]], spelling: str, end: str
) -> None:
    play(maker, {"DREAMS.md": f"above\n> {spelling}{end}"}, secret=SAID).seal()
    report = forget(maker.state, sessions=[TARGET])
    assert maker.read("DREAMS.md") == b"above\n"
    assert report["artifacts"]["memoryLines"] == 1


OTHERS = {
    "other case": PLAIN.upper(),
    "a word less": PLAIN.replace("*violet* ", ""),
    "over two lines": PLAIN.replace(" keeps", "\nkeeps"),
    "paraphrase": "mongooses are kept in the café",
    "cut short": PLAIN[:-6],
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS.keys())
def test_v03_other_words_stay(maker: StateMaker, forget: Callable[..., dict[str, Any]], text: str) -> None:
    play(maker, {"DREAMS.md": f"above\n> {text}\n"}, secret=SAID).seal()
    report = forget(maker.state, sessions=[TARGET])
    assert maker.read("DREAMS.md").decode() == f"above\n> {text}\n"
    assert report["artifacts"]["memoryLines"] == 0


def test_v03_backups_and_chunks_are_matched_alike(maker: StateMaker, forget: Callable[..., dict[str, Any]]) -> None:
    play(maker, {"memory/clean.md": "nothing\n"}, secret=SAID)
    maker.backup(f"keep\n> {PLAIN}\n")
    maker.source("memory/clean.md")
    maker.chunk("memory/clean.md", f"> {PLAIN.replace(' ', '  ')}")
    report = forget(maker.seal().state, sessions=[TARGET])
    assert report["artifacts"]["backups"] == 1
    assert report["artifacts"]["indexChunks"] == 1
