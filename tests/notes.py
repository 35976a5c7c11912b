"""Strategies that make Markdown notes as memory holds them: markers, stacks, sections, quotations, odd bytes."""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st

from state_maker import lineage, marker

TARGET, SURVIVOR = "5e551000-aaaa-4000-8000-000000000001", "5e551000-bbbb-4000-8000-000000000002"
TARGET_KEY = "agent:main:hook:gmail:inv-1"
GONE_KEYS, KEPT_KEYS, STRAY_KEY = ("gone:a", "gone:b"), ("kept:c", "kept:d"), "stray:e"
SAID = (
    "User: the café [west] keeps *violet* mongooses",
    "Assistant: noted — 会議 on Friday at nine, with 🎉",
    "User: thanks a lot!",
    "User: hi there mum",
)
COMMON = "User: sounds good, let us do that tomorrow"
KEPT = "User: the other session talked of lathes and belts"

WORDS = st.sampled_from(["lathe", "belt", "kettle oils", "Größe", "*bold*", "a|b", "zq-1f", "x"])


def spelled(text: str) -> st.SearchStrategy[str]:
    """A snippet in one of the spellings that V3 is about."""
    plain = text.split(": ", 1)[-1]
    escaped = plain.replace("[", "\\[").replace("*", "\\*")
    forms = [
        text, plain, unicodedata.normalize("NFD", text), unicodedata.normalize("NFD", plain),
        text.replace(" ", "  "), plain.replace(" ", "\t"), escaped, plain.upper(), plain[:-4], text.lower(),
    ]  # fmt: skip
    return st.sampled_from(forms)


quotations = st.one_of(*(spelled(text) for text in (*SAID, COMMON, KEPT)))
indents = st.sampled_from(["", "", "", "  ", "    ", "\t"])
keys = st.sampled_from([*GONE_KEYS, *KEPT_KEYS, STRAY_KEY])
sessions = st.sampled_from([TARGET, SURVIVOR, TARGET + "-2", TARGET[:-1]])
markers = st.builds(marker, keys)


@st.composite
def rows(draw: st.DrawFn) -> str:
    """A list row, a quotation, or running text."""
    text = draw(st.one_of(WORDS, WORDS, quotations))
    shape = draw(st.sampled_from(["- {}", "- {}", "* {}", "> {}", "{}", "{}", 'said "{}" twice']))
    return draw(indents) + shape.format(text)


@st.composite
def references(draw: st.DrawFn) -> str:
    """A line that may name a session."""
    session = draw(sessions)
    return draw(
        st.sampled_from(
            [
                f"## Session sessions/main/{session}",
                f"### [main:{session}]",
                f"# see main:{session}; done",
                f"## Session ID: {session}",
                f"Session ID: {session}",
                f"- Session ID: {session}; mail",
                f"  - session id: {session}",
                f"plain sessions/main/{session} here",
                f"## sessions/main/{session}.jsonl.reset.2026-11-18T09-00-00.000Z",
                f"## sessions/main/{session}.",
            ]
        )
    )


def hook_rows(session: str) -> st.SearchStrategy[str]:
    """A bold row of the session-memory hook. A note that names two sessions says nothing, and is not made."""
    return st.sampled_from(
        [
            f"- **Session ID**: {session}",
            f"**Session ID:** {session}",
            f"- **Session Key**: {TARGET_KEY}",
            "- **Session Key**: agent:main:dm:other",
            "- **Source**: gmail",
        ]
    )


headings = st.sampled_from(["# Top", "## Part", "### Deep", "#### Deeper", "#no heading", "## Part"])
blanks = st.sampled_from(["", "", "", "  "])
others = st.sampled_from(
    ["***", "| a | b |", "<!-- openclaw:dreaming:diary:end -->", lineage("lin-1"), "1. one", "2. two", "    code"]
)  # fmt: skip

lines = st.one_of(rows(), rows(), rows(), markers, markers, blanks, blanks, headings, references(), others)
plain_lines = st.one_of(rows(), rows(), markers, markers, blanks, headings, st.just(lineage("lin-1")))


@st.composite
def units(draw: st.DrawFn) -> list[str]:
    """A marker, or several over one entry, with the entry."""
    found = draw(st.lists(st.one_of(markers, markers, st.just(lineage("lin-1")), st.just("")), min_size=1, max_size=4))
    return [*found, draw(rows()), *draw(st.lists(st.builds("  {}".format, WORDS), max_size=2))]


@st.composite
def fenced(draw: st.DrawFn) -> list[str]:
    """A fenced block, perhaps labelled by a marker, perhaps with markers inside."""
    fence = draw(st.sampled_from(["```", "~~~", "````"]))
    inside = draw(st.lists(st.one_of(rows(), headings, blanks, markers, st.just("~~ ~~")), max_size=5))
    return [*draw(st.lists(markers, max_size=1)), fence + draw(st.sampled_from(["", "sh"])), *inside, fence]


@st.composite
def hook_notes(draw: st.DrawFn) -> list[str]:
    """A note as the session-memory hook writes it, or nearly."""
    head = draw(st.lists(hook_rows(draw(sessions)), min_size=1, max_size=3))
    body = draw(st.lists(st.one_of(rows(), blanks, headings), max_size=4))
    return [draw(headings), "", *head, "", *body]


@st.composite
def notes(draw: st.DrawFn) -> bytes:
    """A whole note, with line ends, byte order mark and bytes that are no text."""
    parts = draw(
        st.lists(
            st.one_of(lines.map(lambda line: [line]), units(), units(), hook_notes(), fenced()), min_size=1, max_size=10
        )
    )
    flat = [line for part in parts for line in part]
    ends = draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "mixed"]))
    pieces: list[bytes] = []
    for number, line in enumerate(flat):
        content = line.encode()
        if not line.startswith(("<!--", "~~~", "```")) and draw(st.integers(0, 30)) == 0:
            content += draw(st.sampled_from([b"\xff", b"caf\xe9", b"\xe4\xbc", b"\0"]))
        end = ends if ends != "mixed" else "\r\n" if number % 2 else "\n"
        pieces.append(content + end.encode())
    whole = b"".join(pieces)
    if draw(st.integers(0, 3)) == 0:
        whole = whole.removesuffix(b"\n").removesuffix(b"\r")
    return (b"\xef\xbb\xbf" if draw(st.integers(0, 9)) == 0 else b"") + whole
