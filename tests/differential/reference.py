"""The purge of text, written for reading and not for speed.

It shares no code with the program. With `PEER` it does what OpenClaw 2026.9.6 does (forget.md 4.5),
with `OURS` what design.md section 6 asks for; each difference is one flag, named by its number, so
that a difference between two states can be traced to the rule that makes it: switch the rule off
and see whether the difference goes away.
"""

from __future__ import annotations

import functools
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

SPACE = "\t\n\x0b\x0c\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
"""ECMAScript white space, as the inside of a character class."""

MARKER = re.compile(f"[{SPACE}]*<!--[{SPACE}]*openclaw-memory-promotion:(.*?)[{SPACE}]*-->[{SPACE}]*")
LINEAGE = re.compile(f"[{SPACE}]*<!--[{SPACE}]*openclaw-memory-lineage:.*?[^{SPACE}].*?-->[{SPACE}]*")
MANAGED = re.compile(f"[{SPACE}]*<!--[{SPACE}]*openclaw:")
HEADING = re.compile(f"(#{{1,6}})[{SPACE}]")
BULLET = re.compile(f"([{SPACE}]*)[-*+][{SPACE}]")
SESSION_ID = re.compile(rf"\bSession ID:[{SPACE}]*([^{SPACE};]*)", re.IGNORECASE)
HOOK_ROW = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?(?:\*\*|__)Session (ID|Key)(?:(?:\*\*|__):|:(?:\*\*|__))[ \t]*(.*?)[ \t\r]*", re.IGNORECASE
)
NAMING_ROW = re.compile(
    r"[ \t]*(?:[-*+][ \t]+(?:\*\*|__)?|\*\*|__)Session ID(?:\*\*|__)?:(?:\*\*|__)?[ \t]*([^ \t\r;]*).*", re.IGNORECASE
)
CORPUS_SNIPPET = re.compile(rf"\[[^\]]*#L[0-9]+\][{SPACE}]*(.*)", re.DOTALL)
CORPUS_PREFIX = re.compile(rf"[{SPACE}]*\[([^\]]*)\]")
ARCHIVE_TAIL = re.compile(
    r"\.jsonl(?:\.(?:reset|deleted)\.[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}(?:\.[0-9]{3})?Z"
    r"(?:\.[0-9a-f]{32})?(?:\.zst)?)?"
)
LABELS = ("User: ", "Assistant: ")
STORED_MINIMUM = 12
VARIANT_MINIMUM = 24
PUNCTUATION_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


@dataclass(frozen=True)
class Rules:
    """Which of our rules are in force."""

    v1: bool = True
    v2: bool = True
    v3: bool = True
    v4: bool = True
    v5: bool = True
    v6: bool = True
    v11: bool = True
    v12: bool = True
    v13: bool = True

    def without(self, name: str) -> Rules:
        """The same rules but for one."""
        return replace(self, **{name: False})

    def having(self, name: str) -> Rules:
        """The same rules and one more."""
        return replace(self, **{name: True})


NUMBERS = ("v1", "v2", "v3", "v4", "v5", "v6", "v11", "v12", "v13")
OURS = Rules()
PEER = Rules(**dict.fromkeys(NUMBERS, False))


@dataclass(frozen=True)
class Selection:
    """What is to be forgotten: sessions of one agent, and the entries that derive from them."""

    agent: str
    ids: frozenset[str]
    keys: frozenset[str] = frozenset()
    entry_keys: frozenset[str] = frozenset()
    known_keys: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Needles:
    """Snippets of removed corpus lines, and which of them also stand in a surviving line."""

    stored: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()


@dataclass
class Scrubbed:
    """What is left of a file, and what was counted on the way."""

    content: bytes
    removed: frozenset[int] = frozenset()
    """0-based numbers of the removed lines."""
    entries: int = 0
    quoted: int = 0
    shared_lines: list[int] = field(default_factory=list[int])
    """1-based numbers of the removed lines whose snippets all stand in a survivor's corpus, too."""
    stacked: list[str] = field(default_factory=list[str])
    untraced: list[str] = field(default_factory=list[str])
    refused: bool = False


# -- text -------------------------------------------------------------------------------------
def text_of(content: bytes) -> str:
    """Bytes as text in which invalid bytes survive."""
    return content.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """The opposite of `text_of`."""
    return text.encode("utf-8", "surrogateescape")


def lines_of(content: bytes, rules: Rules) -> list[str]:
    """Lines without their LF; what follows the last LF is a line, too. The peer replaces what is no UTF-8 (V11)."""
    text = text_of(content) if rules.v11 else content.decode("utf-8", "replace")
    return text.split("\n")


def trimmed(text: str) -> str:
    """Text without ECMAScript white space at both ends."""
    return re.sub(f"^[{SPACE}]+|[{SPACE}]+$", "", text)


def blank(line: str) -> bool:
    """Nothing but white space."""
    return trimmed(line) == ""


def utf16_length(text: str) -> int:
    """Length in UTF-16 units; an invalid byte counts as one."""
    return sum(2 if ord(character) > 0xFFFF else 1 for character in text)


def normalised(text: str) -> str:
    """The form in which V3 compares."""
    folded = re.sub(f"[{SPACE}]+", " ", unicodedata.normalize("NFC", text)).strip(" ")
    return PUNCTUATION_ESCAPE.sub(r"\1", folded)


def spellings(snippet: str) -> set[str]:
    """The normalised forms of a snippet, with and without its label."""
    plain = normalised(snippet)
    return {plain} | {plain.removeprefix(label) for label in LABELS if plain.startswith(label)}


@functools.cache
def spelled_out(snippet: str, v3: bool, v4: bool) -> tuple[bytes, tuple[bytes, ...]]:
    """The stored form of a snippet, and those that count on a normalised line."""
    length = utf16_length(snippet)
    minimum = VARIANT_MINIMUM if v4 else STORED_MINIMUM
    variants = spellings(snippet) if v3 and length >= minimum else set[str]()
    return bytes_of(snippet), tuple(bytes_of(variant) for variant in variants)


@functools.lru_cache(maxsize=200_000)
def quoted_in(line: str, snippets: frozenset[str], v3: bool, v4: bool) -> frozenset[str]:
    """The snippets that the line quotes."""
    raw, form = bytes_of(line), bytes_of(normalised(line))
    found: set[str] = set()
    for snippet in snippets:
        stored, variants = spelled_out(snippet, v3, v4)
        if stored in raw or any(variant in form for variant in variants):
            found.add(snippet)
    return frozenset(found)


# -- references -------------------------------------------------------------------------------
def session_of(run: str) -> str:
    """A session id, out of an id or the name of a transcript file."""
    cut = run.find(".jsonl")
    while cut >= 0:
        if ARCHIVE_TAIL.fullmatch(run[cut:]):
            return run[:cut]
        cut = run.find(".jsonl", cut + 1)
    return run


def spelled(ids: Iterable[str]) -> set[str]:
    """Ids with the file name form of those that are too long for one."""
    found = set(ids)
    return found | {"session-" + hashlib.sha256(name.encode()).hexdigest() for name in found if len(name.encode()) > 96}


def names_session(text: str, selection: Selection) -> bool:
    """Rule R."""
    ids = spelled(selection.ids)
    agent = re.escape(selection.agent)
    run = rf"(?=([^{SPACE}\]#;:/]+))"
    start = rf"(?:^|(?<=[{SPACE}\[/:]))"
    for match in re.finditer(rf"{start}(?:sessions/{agent}/|{agent}:(?!sessions/)){run}", text):
        if session_of(match.group(1)) in ids:
            return True
    return any(match.group(1) in ids for match in SESSION_ID.finditer(text))


def in_corpus(line: str, selection: Selection, rules: Rules) -> bool:
    """Whether a corpus line belongs to a selected session (or, for the peer, mentions one)."""
    if not rules.v5:
        return names_session(line, selection)
    prefix = CORPUS_PREFIX.match(line)
    return prefix is not None and names_session(prefix.group(1), selection)


def corpus_snippet(line: str) -> str | None:
    """The text of a corpus line."""
    match = CORPUS_SNIPPET.fullmatch(re.sub(f"[{SPACE}]+$", "", line))
    return trimmed(match.group(1)) if match and trimmed(match.group(1)) else None


# -- corpus -----------------------------------------------------------------------------------
@dataclass
class CorpusLeft:
    """What is left of a corpus file: None when only blanks would be."""

    content: bytes | None
    removed: frozenset[int]


def scrub_corpus_file(content: bytes, selection: Selection, rules: Rules) -> CorpusLeft:
    """Drops the lines of the selected sessions from one corpus file."""
    lines = lines_of(content, rules)
    removed = frozenset(number for number, line in enumerate(lines) if in_corpus(line, selection, rules))
    if not removed:
        return CorpusLeft(content, removed)
    rest = rebuilt(lines, removed, rules)
    return CorpusLeft(None if blank(text_of(rest)) else rest, removed)


def needles_of(files: Iterable[bytes], selection: Selection, rules: Rules) -> Needles:
    """The snippets of all removed corpus lines."""
    gone: set[str] = set()
    kept: set[str] = set()
    for content in files:
        for line in text_of(content).split("\n"):
            snippet = corpus_snippet(line)
            if snippet is not None:
                (gone if in_corpus(line, selection, rules) else kept).add(snippet)
    stored = frozenset(snippet for snippet in gone if utf16_length(snippet) >= STORED_MINIMUM)
    return Needles(stored, stored & kept)


# -- blocks -----------------------------------------------------------------------------------
def indent_of(line: str) -> int:
    """Columns before the first character that is no blank; a tab goes to the next multiple of 4."""
    column = 0
    for character in line:
        if character == " ":
            column += 1
        elif character == "\t":
            column += 4 - column % 4
        else:
            break
    return column


def fence_of(line: str) -> str | None:
    """The run of a line that opens a fenced block."""
    match = re.match(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})", line.rstrip("\r"))
    return match.group(1) if match else None


def closes(line: str, fence: str) -> bool:
    """Whether a line closes the fence."""
    run = line.strip(" \t\r")
    return indent_of(line) <= 3 and len(run) >= len(fence) and set(run) == {fence[0]}


def atx(line: str) -> bool:
    """A heading: hashes at column 0, as the host has it."""
    return HEADING.match(line) is not None


def thematic(line: str) -> bool:
    """A thematic break."""
    return re.fullmatch(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t\r]*", line) is not None


def list_offset(line: str) -> int | None:
    """The column at which the content of a list row starts; None for other lines."""
    match = re.match(r"([ \t]*)([-+*]|[0-9]{1,9}[.)])([ \t]+|\r?$)", line)
    if match is None or thematic(line):
        return None
    rest = line[match.end() :].rstrip("\r")
    marker_end = indent_of(line) + len(match.group(2))
    if rest == "":
        return marker_end + 1
    width = indent_of(" " * marker_end + match.group(3)) - marker_end
    return marker_end + (width if width <= 4 else 1)


def html(line: str) -> bool:
    """A comment, which may stand in no paragraph (other HTML is not tried here)."""
    return line.lstrip(" \t").startswith("<!--")


def interrupts(line: str) -> bool:
    """A line that ends a paragraph because it begins something else."""
    text = line.lstrip(" \t")
    head = re.match(r"([-+*]|1[.)])[ \t]+[^ \t\r]", text)
    return bool(atx(line) or thematic(line) or fence_of(line) or text.startswith(">") or head or html(line))


def foreign(line: str) -> bool:
    """A line that no block takes in: a marker, a lineage line, another managed comment."""
    return key_of(line) is not None or LINEAGE.fullmatch(line) is not None or MANAGED.match(line) is not None


def block_end(lines: Sequence[str], start: int, limit: int, base: int = 0) -> int:
    """End (exclusive) of the CommonMark block that begins at `start`; `start` when there is none.

    `base` is the indentation of the marker above it.
    """
    if start >= limit or foreign(lines[start]) or atx(lines[start]) or thematic(lines[start]):
        return start
    first = lines[start]
    if list_offset(first) is not None:
        return item_end(lines, start, limit)
    if indent_of(first) >= base + 4:
        return indented_end(lines, start, limit, base + 4)
    if (fence := fence_of(first)) is not None:
        return fenced_end(lines, start, limit, fence)
    if first.lstrip(" \t").startswith(">"):
        return quotation_end(lines, start, limit)
    return (html_end if html(first) else paragraph_end)(lines, start, limit)


def fenced_end(lines: Sequence[str], start: int, limit: int, fence: str) -> int:
    """To the closing fence, or to the next managed line, or to the end."""
    for number in range(start + 1, limit):
        if foreign(lines[number]):
            return number
        if closes(lines[number], fence):
            return number + 1
    return limit


def item_end(lines: Sequence[str], start: int, limit: int) -> int:
    """A list row with what is indented below it.

    An unindented line right below is a line of its own: whoever wrote it knew of no lazy continuation.
    """
    offset = list_offset(lines[start])
    assert offset is not None
    end = start + 1
    for number in range(start + 1, limit):
        line = lines[number]
        if foreign(line):
            break
        if blank(line):
            continue
        hangs = number == end and indent_of(line) > 0 and not thematic(line) and list_offset(line) is None
        if indent_of(line) < offset and not hangs:
            break
        end = number + 1
    return end


def quotation_end(lines: Sequence[str], start: int, limit: int) -> int:
    """A block quote with its lazy lines."""
    for number in range(start + 1, limit):
        line = lines[number]
        if foreign(line) or blank(line) or (not line.lstrip(" \t").startswith(">") and interrupts(line)):
            return number
    return limit


def html_end(lines: Sequence[str], start: int, limit: int) -> int:
    """A comment, to the line that closes it."""
    for number in range(start, limit):
        if "-->" in lines[number]:
            return number + 1
    return limit


def indented_end(lines: Sequence[str], start: int, limit: int, columns: int) -> int:
    """Indented code: deep lines, and blank ones between them."""
    end = start + 1
    for number in range(start + 1, limit):
        if blank(lines[number]):
            continue
        if foreign(lines[number]) or indent_of(lines[number]) < columns:
            break
        end = number + 1
    return end


def paragraph_end(lines: Sequence[str], start: int, limit: int) -> int:
    """A paragraph with its lazy lines, its setext underline and what is indented more right below it."""
    depth, children = indent_of(lines[start]), False
    for number in range(start + 1, limit):
        line = lines[number]
        if foreign(line) or blank(line) or atx(line):
            return number
        underline = re.fullmatch(r"[ \t]*(?:=+|-+)[ \t\r]*", line) is not None
        if indent_of(line) > depth:
            children = children or interrupts(line)
        elif children or (interrupts(line) and not underline):
            return number
        if underline and not children:
            return number + 1
    return limit


# -- the scrub --------------------------------------------------------------------------------
@dataclass
class Unit:
    """Markers and the block that they label."""

    start: int
    block: int
    end: int
    labels: list[int]
    keys: list[str]


def key_of(line: str) -> str | None:
    """The key of a marker line."""
    match = MARKER.fullmatch(line)
    return trimmed(match.group(1)) or None if match else None


def fence_map(lines: Sequence[str]) -> tuple[list[int | None], dict[int, int]]:
    """For each line the opening line of the fence that it is inside of; and closing lines with their opening ones."""
    inside_of: list[int | None] = []
    closing: dict[int, int] = {}
    opened: int | None = None
    fence = ""
    for number, line in enumerate(lines):
        if opened is not None and closes(line, fence):
            closing[number] = opened
            opened = None
            inside_of.append(None)
            continue
        inside_of.append(opened)
        if opened is None and (run := fence_of(line)) is not None:
            opened, fence = number, run
    return inside_of, closing


class Scrub:
    """One pass over one file."""

    def __init__(self, lines: Sequence[str], selection: Selection, needles: Needles, rules: Rules) -> None:
        self.lines = lines
        self.selection = selection
        self.needles = needles
        self.rules = rules
        self.fences, self.closing = fence_map(lines)
        self.removed: set[int] = set()
        self.noted: set[int] = set()
        self.doomed = self.lines_of_selected_units()
        self.counted = Scrubbed(b"")

    def run(self) -> Scrubbed:
        """Walks the lines once and fills `counted`."""
        notes = self.hook_notes() if self.rules.v6 else []
        labels: list[tuple[Unit, list[int]]] = []
        number = 0
        while number < len(self.lines):
            end = self.end_of_note(number, notes)
            if end is not None:
                self.remove(number, end)
                self.noted.update(range(number, end))
                self.counted.entries += 1
                number = end
                continue
            unit = self.unit_at(number)
            if unit is not None and self.is_selected(unit):
                self.take_unit(unit)
                number = unit.end
                continue
            if unit is not None and self.rules.v1:
                labels.append((unit, list(range(unit.block, unit.end))))
                number = unit.block
                continue
            number = self.plain_line(number)
        if self.rules.v1:
            self.drop_orphan_labels(labels)
        return self.counted

    def lines_of_selected_units(self) -> dict[int, int]:
        """Lines in the units of selected keys, with the end of their unit."""
        found: dict[int, int] = {}
        for number in range(len(self.lines)):
            unit = self.unit_at(number)
            if unit is not None and number not in found and self.is_selected(unit):
                found.update(dict.fromkeys(range(unit.start, unit.end), unit.end))
        return found

    def is_selected(self, unit: Unit) -> bool:
        """Whether any key of the unit is selected."""
        return any(key in self.selection.entry_keys for key in unit.keys)

    def remove(self, start: int, end: int) -> None:
        """Marks a range of lines as removed."""
        self.removed.update(range(start, end))

    def plain_line(self, number: int) -> int:
        """Rules b to d. Returns the next line to look at."""
        line = self.lines[number]
        matching = quoted_in(line, self.needles.stored, self.rules.v3, self.rules.v4)
        if matching:
            self.remove(number, number + 1)
            self.counted.quoted += 1
            if matching <= self.needles.shared:
                self.counted.shared_lines.append(number + 1)
            return number + 1
        starts_section = HEADING.match(line) or SESSION_ID.search(line)
        if starts_section and names_session(line, self.selection):
            end = self.section_end(number)
            if self.rules.v1:  # an entry that began in the section goes whole
                end = max(end, self.doomed.get(end - 1, end))
            self.remove(number, end)
            if self.rules.v2:
                self.keep_closing_fences(number, end)
            self.counted.entries += 1
            return end
        return number + 1

    def keep_closing_fences(self, start: int, end: int) -> None:
        """V2: what closes code that was opened above the section stays, or all that follows is code."""
        self.removed -= {number for number, opened in self.closing.items() if start < number < end and opened < start}

    # units
    def unit_at(self, number: int) -> Unit | None:
        """The unit that starts at a line."""
        return self.stack_at(number) if self.rules.v1 else self.single_at(number)

    def stack_at(self, number: int) -> Unit | None:
        """V1: every marker over one block, and the lineage line above them."""
        lines, keys, labels = self.lines, list[str](), list[int]()
        first = number
        if LINEAGE.fullmatch(lines[number]):
            if number + 1 >= len(lines) or key_of(lines[number + 1]) is None:
                return None
        elif key_of(lines[number]) is None:
            return None
        last = number
        while number < len(lines):
            key = key_of(lines[number])
            if key is not None:
                keys.append(key)
            elif not LINEAGE.fullmatch(lines[number]):
                if blank(lines[number]):
                    number += 1
                    continue
                break
            labels.append(number)
            last = number
            number += 1
        start = last + 1
        while start < len(lines) and blank(lines[start]):
            start += 1
        end = self.block_limit(start, last)
        if end == start:
            start = end = last + 1
        return Unit(first, start, end, labels, keys)

    def single_at(self, number: int) -> Unit | None:
        """The peer: one marker, one entry."""
        lines = self.lines
        key = key_of(lines[number])
        if key is None:
            return None
        # The peer cuts lines out as it goes: what is above a marker then is the last line that stayed.
        above = next((each for each in reversed(range(number)) if each not in self.removed), None)
        first = above if above is not None and LINEAGE.fullmatch(lines[above]) else number
        start = number + 1
        if self.rules.v2:
            while start < len(lines) and blank(lines[start]):
                start += 1
            end = self.block_limit(start, number)
            return (
                Unit(first, start, end, [number], [key])
                if end > start
                else Unit(first, number + 1, number + 1, [number], [key])
            )
        if start < len(lines) and key_of(lines[start]) is None:
            start += 1
        return Unit(first, number + 1, self.indented_tail(start), [number], [key])

    def indented_tail(self, number: int) -> int:
        """Lines that start with white space and hold more than white space."""
        while number < len(self.lines) and re.match(f"[{SPACE}]+[^{SPACE}]", self.lines[number]):
            number += 1
        return number

    def block_limit(self, start: int, label: int) -> int:
        """End of the block at `start`, not beyond the fence that holds its marker."""
        lines = self.lines
        if not self.rules.v2:
            return self.indented_tail(start + 1) if start < len(lines) else start
        limit = len(lines) - 1 if lines[-1] == "" else len(lines)
        opened = self.fences[label]
        if opened is not None:
            limit = next((end for end, begin in self.closing.items() if begin == opened), limit)
        return block_end(lines, start, limit, indent_of(lines[label]))

    def take_unit(self, unit: Unit) -> None:
        """Removes a unit and counts its markers."""
        self.remove(unit.start, unit.end)
        self.counted.entries += len(unit.keys)
        self.counted.stacked += [key for key in unit.keys if key not in self.selection.entry_keys]

    def drop_orphan_labels(self, labels: list[tuple[Unit, list[int]]]) -> None:
        """A marker whose whole block went by other rules would label a stranger.

        So would one that labels nothing, when the line below it goes.
        """
        for unit, block in labels:
            held = [number for number in block if not blank(self.lines[number])]
            if not held:
                below = [number for number in range(unit.end, len(self.lines)) if not blank(self.lines[number])][:1]
                by_itself = [number for number in below if names_session(self.lines[number], self.selection)]
                held = [number for number in below if number not in self.noted or number in by_itself]
            if held and all(number in self.removed for number in held):
                self.removed.update(range(unit.start, unit.end) if unit.end > unit.block else unit.labels)

    # sections
    def section_end(self, start: int) -> int:
        """Where a section that names a selected session ends."""
        lines, line = self.lines, self.lines[start]
        heading, bullet = HEADING.match(line), BULLET.match(line)
        row_end = len(lines)
        if bullet and not heading:
            row_end = self.row_end(start, len(bullet.group(1)))
        for number in range(start + 1, row_end):
            if SESSION_ID.search(lines[number]):
                return number
            other = self.heading_at(number, start)
            if other and (not heading or len(other) <= len(heading.group(1))):
                return number
        return row_end

    def row_end(self, start: int, column: int) -> int:
        """End of a list row and what hangs below it."""
        lines = self.lines
        if self.rules.v2:
            offset = list_offset(lines[start])
            assert offset is not None
            end = start + 1
            for number in range(start + 1, len(lines)):
                if foreign(lines[number]):
                    break
                if blank(lines[number]):
                    continue
                indent = indent_of(lines[number])
                if indent < offset and not (number == end and indent > min(column, indent_of(lines[start]))):
                    break
                end = number + 1
            return end
        for number in range(start + 1, len(lines)):
            text = lines[number]
            depth = -1 if blank(text) else len(text) - len(re.sub(f"^[{SPACE}]+", "", text))
            if depth <= column:
                return number
        return len(lines)

    def heading_at(self, number: int, start: int | None = None) -> str | None:
        """The hashes of a heading line. In code (V2) there are none, but for a section that began in that code."""
        fence = self.fences[number]
        if self.rules.v2 and fence is not None and (start is None or self.fences[start] != fence):
            return None
        match = HEADING.match(self.lines[number])
        return match.group(1) if match else None

    def end_of_note(self, number: int, notes: Iterable[tuple[int, int, int]]) -> int | None:
        """Where the hook's note ends that begins here, or that began in a section that is gone and is named below."""
        ends = [
            end for start, row, end in notes if start == number or (start < number <= row and start in self.removed)
        ]
        return max(ends, default=None)

    def hook_notes(self) -> list[tuple[int, int, int]]:
        """V6: sections of the session-memory hook that name a selected session: start, naming row, end."""
        rows = [(number, match) for number, match in enumerate(map(HOOK_ROW.fullmatch, self.lines)) if match]
        found: list[tuple[int, int, int]] = []
        for number, match in rows:
            if match.group(1).lower() == "id" and session_of(match.group(2)) in spelled(self.selection.ids):
                start, end = self.note_around(number, to_stranger=True)
                found.append((start, number, end))
        gone = {line for start, _, end in found for line in range(start, end)} | self.doomed.keys()
        for number, match in rows:
            if match.group(1).lower() == "key" and match.group(2) in self.selection.keys:
                start, end = self.note_around(number, to_stranger=False)
                if not any(self.names_stranger(line) for line in range(start, end) if line not in gone):
                    found.append((start, number, end))
        return found

    def names_stranger(self, number: int) -> bool:
        """Whether a row says that its note is of a session that is not selected."""
        row = NAMING_ROW.fullmatch(self.lines[number])
        return row is not None and session_of(row.group(1)) not in spelled(self.selection.ids)

    def note_around(self, number: int, *, to_stranger: bool) -> tuple[int, int]:
        """From the nearest heading above to the next one that is not below it.

        Without one, from its run of lines; and then the row of another session may end it.
        """
        start = number
        while start > 0 and self.heading_at(start) is None:
            start -= 1
        heading = self.heading_at(start)
        if heading is None:
            start = number
            while start > 0 and not blank(self.lines[start - 1]):
                start -= 1
        level = len(heading or "#######")
        end = number + 1
        while end < len(self.lines):
            other = self.heading_at(end)
            if other and len(other) <= level:
                break
            if to_stranger and heading is None and self.names_stranger(end):
                break
            end += 1
        return start, end


def rebuilt(lines: Sequence[str], removed: Iterable[int], rules: Rules) -> bytes:
    """The file without the removed lines."""
    gone = set(removed)
    if not rules.v11:
        return bytes_of("\n".join(line for number, line in enumerate(lines) if number not in gone))
    last = len(lines) - 1
    physical = [line + "\n" if number < last else line for number, line in enumerate(lines)]
    return bytes_of("".join(line for number, line in enumerate(physical) if number not in gone))


def history_refused(content: bytes) -> bool:
    """Highlights of the consolidation history that no marker traces."""
    lines = text_of(content).split("\n")
    for number, line in enumerate(lines):
        if line.removesuffix("\r") == "## Memory Consolidation History":
            return any(re.match(r"  - `[+-] ", below) for below in lines[number + 1 :])
    return False


def scrub(content: bytes, selection: Selection, needles: Needles, rules: Rules = OURS) -> Scrubbed:
    """Removes from one file what the rules say."""
    lines = lines_of(content, rules)
    # To the peer a byte order mark is a part of the first line; to us it is none, and a heading may follow it.
    seen = [lines[0].removeprefix("\ufeff"), *lines[1:]] if rules.v2 else lines
    work = Scrub(seen, selection, needles, rules)
    result = work.run()
    result.removed = frozenset(work.removed)
    result.content = rebuilt(lines, work.removed, rules) if work.removed else content
    known = selection.known_keys | selection.entry_keys
    result.untraced = [key for line in lines if (key := key_of(line)) is not None and key not in known]
    result.refused = history_refused(result.content)
    return result


# -- the whole text part ----------------------------------------------------------------------
@dataclass
class Outcome:
    """Every file after the purge, and the selection that V1 made of it."""

    selection: Selection
    needles: Needles
    memory: dict[str, Scrubbed]
    corpus: dict[str, CorpusLeft]
    extra_texts: dict[str, Scrubbed]


def purge(
    memory: dict[str, bytes],
    corpus: dict[str, bytes],
    selection: Selection,
    rules: Rules = OURS,
    extra: dict[str, bytes] | None = None,
) -> Outcome:
    """Scrubs memory files, corpus files and other texts (backups); with V1 until no key joins any more."""
    needles = needles_of(corpus.values(), selection, rules)
    others = extra or {}
    while True:
        files = {name: scrub(content, selection, needles, rules) for name, content in memory.items()}
        texts = {name: scrub(content, selection, needles, rules) for name, content in others.items()}
        joined = {key for done in [*files.values(), *texts.values()] for key in done.stacked}
        if not rules.v1 or joined <= selection.entry_keys:
            break
        selection = replace(selection, entry_keys=selection.entry_keys | joined)
    left = {name: scrub_corpus_file(content, selection, rules) for name, content in corpus.items()}
    return Outcome(selection, needles, files, left, texts)
