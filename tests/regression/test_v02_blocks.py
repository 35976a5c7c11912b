"""V2: an entry is the CommonMark block that follows its marker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scene import SURVIVOR, TARGET, own, play
from state_maker import StateMaker, marker

E, K = marker("gone:e"), marker("kept:k")

BLOCKS = {
    "row": ("- entry\n- next\n", "- next\n"),
    "children": ("- entry\n  - child\n    - grandchild\n- next\n", "- next\n"),
    "deeper text": ("- entry\n  more\n\tand more\n- next\n", "- next\n"),
    "blank, then deeper text": ("- entry\n\n  second paragraph\n\n- next\n", "\n- next\n"),
    "unindented line below a row stays": ("- entry\nby hand\n- next\n", "by hand\n- next\n"),
    "blank before the block": ("\n- entry\n- next\n", "- next\n"),
    "two blanks before the block": ("\n\n- entry\n\nafter\n", "\nafter\n"),
    "fence": ("```\nsecret\n\nmore\n```\nafter\n", "after\n"),
    "tilde fence": ("~~~~ text\nsecret\n~~~\n~~~~\nafter\n", "after\n"),
    "fence never closed": ("```\nsecret\n\nmore\n", ""),
    "fence inside a row": ("- entry\n\n  ```\n  secret\n\n  ```\n- next\n", "- next\n"),
    "paragraph": ("first\nsecond\n\nafter\n", "\nafter\n"),
    "paragraph with rows below it": ("first\n  - child\n  - child\n- next\n", "- next\n"),
    "setext heading": ("Title\n=====\n\nafter\n", "\nafter\n"),
    "quotation": ("> entry\n> more\nlazy\n\nafter\n", "\nafter\n"),
    "indented code": ("    code\n\n    code\n\nafter\n", "\nafter\n"),
    "numbered row": ("1. entry\n   more\n2. next\n", "2. next\n"),
    "table": ("| a | b |\n|---|---|\n| c | d |\n\nafter\n", "\nafter\n"),
    "heading stays": ("## Heading\nbody\n", "## Heading\nbody\n"),
    "rule stays": ("***\n- next\n", "***\n- next\n"),
    "next marker stays": (f"- own\n{K}\n- kept\n", f"{K}\n- kept\n"),
    "marker below the row stays": (f"- entry\n  {K}\n  - kept child\n", f"  {K}\n  - kept child\n"),
    "other comment stays": (
        "<!-- openclaw:dreaming:diary:end -->\nrest\n",
        "<!-- openclaw:dreaming:diary:end -->\nrest\n",
    ),
    "end of the file": ("", ""),
    "blanks at the end stay": ("\n\n", "\n\n"),
    "no newline at the end": ("- entry", ""),
    "carriage returns": ("- entry\r\n\r\n  more\r\n- next\r\n", "- next\r\n"),
}


@pytest.mark.parametrize(("below", "after"), BLOCKS.values(), ids=BLOCKS.keys())
def test_v02_the_block_goes_and_no_more(
    maker: StateMaker, forget: Callable[..., dict[str, Any]], below: str, after: str
) -> None:
    play(maker, {"MEMORY.md": f"before\n\n{E}\n{below}"})
    own(own(maker, ["gone:e"]), ["kept:k"], SURVIVOR).seal()
    report = forget(maker.state, sessions=[TARGET])
    assert maker.read("MEMORY.md").decode() == f"before\n\n{after}"
    assert report["artifacts"]["memoryEntries"] == 1


def test_v02_siblings_of_an_indented_marker_stay(maker: StateMaker, forget: Callable[..., dict[str, Any]]) -> None:
    play(maker, {"MEMORY.md": f"- parent\n  {E}\n  - entry\n    child\n  - sibling\n- next\n"})
    own(maker, ["gone:e"]).seal()
    forget(maker.state, sessions=[TARGET])
    assert maker.read("MEMORY.md") == b"- parent\n  - sibling\n- next\n"


def test_v02_a_fence_around_the_marker_stays(maker: StateMaker, forget: Callable[..., dict[str, Any]]) -> None:
    play(maker, {"MEMORY.md": f"```\nabove\n{E}\n- entry\n```\nbelow\n"})
    own(maker, ["gone:e"]).seal()
    forget(maker.state, sessions=[TARGET])
    assert maker.read("MEMORY.md") == b"```\nabove\n```\nbelow\n"


def test_v02_a_hash_inside_a_fence_ends_no_section(maker: StateMaker, forget: Callable[..., dict[str, Any]]) -> None:
    before = f"## Session sessions/main/{TARGET}\n\n```sh\n# comment\nsecret\n```\n\nstill secret\n## Next\nkept\n"
    play(maker, {"memory/note.md": before}).seal()
    forget(maker.state, sessions=[TARGET])
    assert maker.read("memory/note.md") == b"## Next\nkept\n"


def test_v02_detail_after_a_blank_belongs_to_its_row(maker: StateMaker, forget: Callable[..., dict[str, Any]]) -> None:
    before = f"# Log\n- Session ID: {TARGET}; mail\n\n  detail of it\n- next row\n"
    play(maker, {"memory/note.md": before}).seal()
    forget(maker.state, sessions=[TARGET])
    assert maker.read("memory/note.md") == b"# Log\n- next row\n"
