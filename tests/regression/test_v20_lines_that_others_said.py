"""V20: removed lines whose snippets all stand in a survivor's corpus are counted, listed, and kept on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scene import DAY, SECRET, SURVIVOR, TARGET
from state_maker import CORPUS, StateMaker, corpus_line

Forget = Callable[..., dict[str, Any]]
COMMON = "User: sounds good, let us do that tomorrow then"
NOTE = f"# Note\n- {COMMON}\n- {SECRET}\n- {COMMON} and {SECRET}\nkept\n"


def scene(maker: StateMaker) -> StateMaker:
    """Both sessions said the common line; only one said the secret."""
    maker.session(TARGET)
    maker.session(SURVIVOR)
    maker.corpus(DAY, [corpus_line(TARGET, 2, COMMON), corpus_line(TARGET, 4, SECRET)])
    maker.corpus("2026-11-21", [corpus_line(SURVIVOR, 2, COMMON)])
    maker.file("memory/note.md", NOTE)
    return maker.seal()


def test_v20_completeness_first_but_counted(maker: StateMaker, forget: Forget) -> None:
    report = forget(scene(maker).state, sessions=[TARGET])
    assert maker.read("memory/note.md") == b"# Note\nkept\n"
    assert report["artifacts"]["memoryLines"] == 3
    assert report["sharedSnippetLines"] == 1
    assert report["sharedSnippetLocations"] == ["memory/note.md:2"]


def test_v20_the_preview_lists_them(maker: StateMaker, forget: Forget) -> None:
    report = forget(scene(maker).state, sessions=[TARGET], dry_run=True)
    assert report["sharedSnippetLocations"] == ["memory/note.md:2"]


def test_v20_keep_shared_keeps_them(maker: StateMaker, forget: Forget) -> None:
    report = forget(scene(maker).state, sessions=[TARGET], keep_shared=True)
    assert maker.read("memory/note.md").decode() == f"# Note\n- {COMMON}\nkept\n"
    assert report["artifacts"]["memoryLines"] == 2
    assert COMMON.encode() in maker.read(f"{CORPUS}/2026-11-21.txt")
    assert not (maker.workspace / CORPUS / f"{DAY}.txt").exists()


def test_v20_a_line_is_shared_no_more_once_both_are_forgotten(maker: StateMaker, forget: Forget) -> None:
    report = forget(scene(maker).state, sessions=[TARGET, SURVIVOR], keep_shared=True)
    assert maker.read("memory/note.md") == b"# Note\nkept\n"
    assert report["sharedSnippetLines"] == 0
