"""Which lines of one transcript are new to the corpus: cursor, hashes, caps. `dreaming.md` 1.3 to 1.5.

Pure functions; nothing here reads a file or a database.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cenotaph.recall.keys import cut_utf16, normalised, utf16_length
from cenotaph.schema import as_text, read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from cenotaph.schema import Json
    from cenotaph.transcript import Line, OriginClass

SNIPPET_UNITS, LEAST_UNITS, RENDERED_UNITS = 280, 12, 344


@dataclass(frozen=True, slots=True)
class Source:
    """One session that may be read."""

    session_id: str
    session_key: str | None
    path: str
    """`sessions/<agent>/<session id>`, as corpus lines name it."""
    state_key: str
    """`<agent>:<path>`: key of its progress, and scope of its hashes."""
    old_scope: str
    """`<agent>:<session id>`: scope of hashes that older hosts wrote."""
    mtime_ms: int
    size: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a transcript has been read: a row of `dreaming-session-ingestion-files`."""

    mtime_ms: int
    size: int
    content_hash: str = ""
    line_count: int = 0
    last_content_line: int = 0
    excluded_reason: str | None = None

    def is_of(self, source: Source) -> bool:
        """Whether there is nothing new in the transcript, and nothing left of the old."""
        return (
            (self.mtime_ms, self.size) == (source.mtime_ms, source.size)
            and bool(self.content_hash)
            and self.last_content_line >= self.line_count
        )

    def to_json(self) -> str:
        """As the host stores it."""
        table: dict[str, object] = {
            "mtimeMs": self.mtime_ms,
            "size": self.size,
            "contentHash": self.content_hash,
            "lineCount": self.line_count,
            "lastContentLine": self.last_content_line,
        }
        if self.excluded_reason is not None:
            table["excludedReason"] = self.excluded_reason
        return json.dumps(table, ensure_ascii=False, separators=(",", ":"))


def read_progress(value: bytes) -> Progress | None:
    """The progress that a row holds; None for a damaged one, which means from the beginning."""
    table = read_table(value)
    if table is None:
        return None
    reason = (as_text(table.get("excludedReason")) or "").strip()
    return Progress(
        mtime_ms=_whole(table.get("mtimeMs")),
        size=_whole(table.get("size")),
        content_hash=as_text(table.get("contentHash")) or "",
        line_count=_whole(table.get("lineCount")),
        last_content_line=_whole(table.get("lastContentLine")),
        excluded_reason=reason or None,
    )


def _whole(value: Json) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 53 else 0


@dataclass(frozen=True, slots=True)
class Candidate:
    """A line for the corpus."""

    source: Source
    day: str
    rendered: str
    """The corpus line."""
    snippet: str
    message_hash: str
    origin_class: OriginClass
    observed_at: int
    """Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What a scan of a transcript came to. `is_capped`: more is left for the next one."""

    candidates: tuple[Candidate, ...]
    progress: Progress
    is_capped: bool


def scan(
    source: Source,
    agent: str,
    lines: Sequence[Line],
    before: Progress | None,
    seen: Collection[str],
    day_of: Callable[[int], str],
    is_wanted: Callable[[str], bool],
    most: int,
) -> Scan:
    """New lines of a transcript, at most `most`.

    A day that is not wanted is passed over for good, as a line that is too short is: what they hold is for a backfill.
    """
    found: list[Candidate] = []
    hashes = set(seen)
    at = _resume_at(lines, before)
    while at < len(lines) and len(found) < most:
        line = lines[at]
        at += 1
        snippet = cut_utf16(normalised(line.text), SNIPPET_UNITS)
        observed_at = line.observed_at or source.mtime_ms
        day = day_of(observed_at)
        if utf16_length(snippet) < LEAST_UNITS or not is_wanted(day):
            continue
        hashed = message_hash(source.state_key, line, snippet)
        if hashed in hashes or message_hash(source.old_scope, line, snippet) in hashes:
            continue
        hashes.add(hashed)
        rendered = cut_utf16(f"[{agent}/{source.path}#L{line.record_number}] {snippet}", RENDERED_UNITS)
        found.append(Candidate(source, day, rendered, snippet, hashed, line.origin_class, observed_at))
    progress = Progress(source.mtime_ms, source.size, content_hash(lines), len(lines), at)
    return Scan(tuple(found), progress, at < len(lines))


def _resume_at(lines: Sequence[Line], before: Progress | None) -> int:
    """Behind what was read, if that is still how the transcript begins; else at its beginning."""
    if before is None or not before.content_hash or before.line_count > len(lines):
        return 0
    is_same = content_hash(lines[: before.line_count]) == before.content_hash
    return min(before.last_content_line, before.line_count) if is_same else 0


def content_hash(lines: Sequence[Line]) -> str:
    """SHA-256 over what is read of a transcript."""
    digest = hashlib.sha256()
    for line in lines:
        fields = (line.text, line.record_number, line.observed_at, line.origin_class)
        digest.update(json.dumps(fields).encode() + b"\n")
    return digest.hexdigest()


def message_hash(scope: str, line: Line, snippet: str) -> str:
    """What makes a line known: SHA-1 over scope, time (or record number where it has none) and snippet."""
    basis = f"ts:{line.observed_at}" if line.observed_at else f"line:{line.record_number}"
    text = f"{scope}\n{basis}\n{snippet}"
    return hashlib.sha1(text.encode(errors="replace"), usedforsecurity=False).hexdigest()
