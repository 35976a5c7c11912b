"""What a daily note says, in pieces: `dreaming.md` 2.4. Pure functions over text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from cenotaph.recall.keys import cut_utf16, normalised, utf16_length

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST_UNITS, MOST_UNITS, MOST_LINES = 8, 280, 4
_NAME = re.compile(r"(\d{4}-\d\d-\d\d)(?:-[^/]+)?\.md")
_BLOCK = re.compile(r"\s*<!-- openclaw:dreaming:(light|rem):(start|end) -->\s*")
_BLOCK_HEADINGS = {"light": "## Light Sleep", "rem": "## REM Sleep"}
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+(.*)")
_FILE_NAME = re.compile(r"\S+\.[A-Za-z0-9]{1,5}")
_DATE = re.compile(
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day,?\s+)?"
    r"(?:\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    r"|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+\d{1,2}(?:st|nd|rd|th)?(?:,?\s+\d{4})?"
    r"|\d{1,2}\.?\s+(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?(?:\s+\d{4})?)"
    r"(?:\s*[(,\u2013-]?\s*(?:mon|tues|wednes|thurs|fri|satur|sun)day\)?)?",
    re.IGNORECASE,
)
_TIME_WORDS = frozenset(
    ("today", "yesterday", "tomorrow", "morning", "noon", "midday", "afternoon", "evening", "night", "midnight")
)


@dataclass(frozen=True, slots=True)
class NoteChunk:
    """One thing that a note says: at most 280 UTF-16 units, from line to line (counted from 1)."""

    snippet: str
    start_line: int
    end_line: int


def note_day(name: str) -> str | None:
    """The day of a file `YYYY-MM-DD.md` or `YYYY-MM-DD-<anything>.md`; None for other names and for no day."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    try:
        date.fromisoformat(found[1])
    except ValueError:
        return None
    return found[1]


def note_chunks(text: str) -> list[NoteChunk]:
    """The pieces of a note, in order. What the host wrote itself (light and REM blocks) is left out."""
    reader = _Reader()
    lines = text.removeprefix("\ufeff").split("\n")
    for number, line in enumerate(_without_blocks(line.removesuffix("\r") for line in lines), 1):
        reader.read(number, line)
    reader.close()
    return reader.chunks


def _without_blocks(lines: Iterator[str]) -> list[str]:
    """The lines, those of managed blocks and of their headings blank. An open block reaches to the end."""
    kept: list[str] = []
    inside: str | None = None
    for line in lines:
        mark = _BLOCK.fullmatch(line)
        if mark is not None and mark[2] == "start" and inside is None:
            inside = mark[1]
            _blank_heading(kept, _BLOCK_HEADINGS[mark[1]])
        kept.append("" if inside or mark else line)
        if mark is not None and mark[2] == "end" and mark[1] == inside:
            inside = None
    return kept


def _blank_heading(lines: list[str], heading: str) -> None:
    """Blanks the heading right above, with nothing but blank lines between."""
    for at in range(len(lines) - 1, -1, -1):
        if lines[at].strip() == heading:
            lines[at] = ""
        if lines[at].strip():
            return


@dataclass(slots=True)
class _Item:
    """A list item whose end has not been seen."""

    indent: int
    texts: list[str]
    start: int
    end: int
    has_children: bool = False

    @property
    def text(self) -> str:
        return normalised(" ".join(self.texts))


@dataclass(slots=True)
class _Reader:
    """The state between two lines."""

    chunks: list[NoteChunk] = field(default_factory=list[NoteChunk])
    context: str = ""
    """The heading above."""
    items: list[_Item] = field(default_factory=list[_Item])
    """The item that is being read, below its ancestors."""
    prose: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def read(self, number: int, line: str) -> None:
        heading = _HEADING.fullmatch(line)
        item = _ITEM.fullmatch(line)
        if not line.strip():
            self.close()
        elif heading is not None:
            self.close()
            title = normalised(heading[1] or "")
            if title and not _says_nothing(title):
                self.context = title
        elif item is not None:
            self._close_prose()
            self._begin_item(_width(item[1]), item[2], number)
        elif self.items:
            self.items[-1].texts.append(line)
            self.items[-1].end = number
        else:
            self._add_prose(number, normalised(line))

    def close(self) -> None:
        """Ends whatever is open."""
        self._close_prose()
        while self.items:
            self._close_item()

    def _begin_item(self, indent: int, text: str, number: int) -> None:
        while self.items and self.items[-1].indent >= indent:
            self._close_item()
        if self.items and not self.items[-1].has_children:
            self.items[-1].has_children = True
            self._add_item(self.items[-1])
        self.items.append(_Item(indent, [text], number, number))

    def _close_item(self) -> None:
        item = self.items[-1]
        if not item.has_children:
            self._add_item(item)
        self.items.pop()

    def _add_item(self, item: _Item) -> None:
        if item.has_children and item.text.endswith(":"):
            return
        ancestors = [each.text.removesuffix(":") for each in self.items[: self.items.index(item)]]
        self._add(" > ".join([*ancestors, item.text]), item.text, item.start, item.end)

    def _add_prose(self, number: int, text: str) -> None:
        joined = normalised(" ".join([*(said for _, said in self.prose), text]))
        if self.prose and (len(self.prose) == MOST_LINES or utf16_length(joined) > MOST_UNITS):
            self._close_prose()
        self.prose.append((number, text))

    def _close_prose(self) -> None:
        if self.prose:
            text = " ".join(said for _, said in self.prose)
            self._add(text, text, self.prose[0][0], self.prose[-1][0])
            self.prose.clear()

    def _add(self, text: str, own: str, start: int, end: int) -> None:
        if utf16_length(normalised(own)) < LEAST_UNITS:
            return
        qualified = normalised(f"{self.context}: {text}" if self.context else text)
        self.chunks.append(NoteChunk(cut_utf16(qualified, MOST_UNITS).rstrip(), start, end))


def _says_nothing(title: str) -> bool:
    """Headings that only say which file or when it is."""
    words = title.casefold().strip(" .:!")
    is_file = _FILE_NAME.fullmatch(title) is not None
    return is_file or words in _TIME_WORDS or _DATE.fullmatch(words) is not None


def _width(indent: str) -> int:
    return sum(4 if character == "\t" else 1 for character in indent)
