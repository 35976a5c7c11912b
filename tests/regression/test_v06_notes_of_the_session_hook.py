"""V6: bold `Session ID` and `Session Key` rows are recognised; the note's whole section goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scene import SURVIVOR, TARGET, own, play
from state_maker import StateMaker, marker

Forget = Callable[..., dict[str, Any]]
KEY = "agent:main:hook:gmail:inv-1"


def note(*rows: str) -> str:
    """A note as the hook writes it, with these rows in its head."""
    return (
        "# Session: 2026-11-20 09:15 UTC\n\n"
        + "".join(row + "\n" for row in rows)
        + ("- **Source**: gmail\n\n## Conversation Summary\n\nuser: secret words\n")
    )


ROWS = {
    "bold list row": f"- **Session ID**: {TARGET}",
    "colon inside": f"- **Session ID:** {TARGET}",
    "star row": f"* **Session ID**: {TARGET}",
    "no list": f"**Session ID**: {TARGET}",
    "no list, colon inside": f"**Session ID:** {TARGET}",
    "with key above": f"- **Session Key**: {KEY}\n- **Session ID**: {TARGET}",
    "carriage return": f"- **Session ID**: {TARGET}\r",
}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_v06_the_whole_note_goes(maker: StateMaker, forget: Forget, row: str) -> None:
    play(maker, {"memory/2026-11-20-0915.md": note(row)}).seal()
    report = forget(maker.state, sessions=[TARGET])
    assert maker.read("memory/2026-11-20-0915.md") == b""
    assert report["artifacts"]["memoryEntries"] == 1
    assert report["artifacts"]["memoryFiles"] == 1


def test_v06_only_its_section_goes(maker: StateMaker, forget: Forget) -> None:
    head, rest = "# Day\n\nfirst\n\n", "## Session B\n\nkept\n"
    text = f"{head}## Session A\n\n- **Session ID**: {TARGET}\n\n### Deeper\n\nsecret\n\n{rest}"
    play(maker, {"memory/day.md": text}).seal()
    forget(maker.state, sessions=[TARGET])
    assert maker.read("memory/day.md") == b"# Day\n\nfirst\n\n## Session B\n\nkept\n"


def test_v06_a_note_of_another_session_stays(maker: StateMaker, forget: Forget) -> None:
    text = note(f"- **Session ID**: {SURVIVOR}")
    play(maker, {"memory/a.md": text, "memory/b.md": note(f"- **Session ID**: {TARGET}-2")}).seal()
    forget(maker.state, sessions=[TARGET])
    assert maker.read("memory/a.md").decode() == text
    assert maker.read("memory/b.md") != b""


def test_v06_a_key_row_counts_when_no_id_is_given(maker: StateMaker, forget: Forget) -> None:
    maker.session("s-keyed", KEY)
    play(maker, {"memory/a.md": note(f"- **Session Key**: {KEY}")}).seal()
    report = forget(maker.state, sessions=[KEY])
    assert report["sessionIds"] == ["s-keyed"]
    assert maker.read("memory/a.md") == b""


def test_v06_a_key_row_is_no_reason_when_a_generation_of_it_stays(maker: StateMaker, forget: Forget) -> None:
    maker.session("s-new", KEY)
    maker.session("s-old", KEY, current=False, created=1_795_000_000_000)
    text = note(f"- **Session Key**: {KEY}")
    play(maker, {"memory/a.md": text}).seal()
    forget(maker.state, sessions=["s-old"])
    assert maker.read("memory/a.md").decode() == text


@pytest.mark.parametrize("id_first", [False, True], ids=["key first", "id first"])
def test_v06_the_id_decides_where_both_are_given(maker: StateMaker, forget: Forget, id_first: bool) -> None:
    maker.session("s-keyed", KEY)
    rows = [f"- **Session Key**: {KEY}", f"- **Session ID**: {SURVIVOR}"]
    text = note(*(reversed(rows) if id_first else rows))
    play(maker, {"memory/a.md": text}).seal()
    forget(maker.state, sessions=[KEY])
    assert maker.read("memory/a.md").decode() == text


def test_v06_what_was_counted_inside_is_counted_once(maker: StateMaker, forget: Forget) -> None:
    from scene import SECRET

    text = f"# Session\n\n{marker('gone:e')}\n- entry\n> {SECRET}\n- **Session ID**: {TARGET}\n\nrest\n"
    own(play(maker, {"memory/a.md": text}), ["gone:e"]).seal()
    report = forget(maker.state, sessions=[TARGET])
    assert maker.read("memory/a.md") == b""
    assert (report["artifacts"]["memoryEntries"], report["artifacts"]["memoryLines"]) == (1, 0)


def test_v06_a_hash_inside_a_fence_is_no_heading(maker: StateMaker, forget: Forget) -> None:
    text = f"# Session\n\n- **Session ID**: {TARGET}\n\n```sh\n# comment\nsecret\n```\nrest\n# Other\nkept\n"
    play(maker, {"memory/a.md": text}).seal()
    forget(maker.state, sessions=[TARGET])
    assert maker.read("memory/a.md") == b"# Other\nkept\n"
