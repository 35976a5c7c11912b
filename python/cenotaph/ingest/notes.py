"""Which daily notes have something to tell, and what: `dreaming.md` 2.4."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from cenotaph.daily_notes import note_chunks, note_day
from cenotaph.recall.entry import Provenance, Signal
from cenotaph.schema import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cenotaph import _core

NOTES = "dreaming-daily-ingestion"
SCORE, QUERY = 0.62, "__dreaming_daily__:"
LEAST_DAYS, LEAST_OF_ALL, LEAST_OF_EACH = 14, 20, 6


@dataclass(frozen=True, slots=True)
class Note:
    """A daily note, and how it was when it was listed."""

    path: str
    """Relative to the workspace."""
    file: Path
    day: str
    mtime_ms: int
    size: int

    def is_known(self, row: Mapping[str, object] | None, today: str) -> bool:
        """Whether it was read on this day, and is as it was then."""
        return row is not None and (row.get("mtimeMs"), row.get("size"), row.get("lastDreamingDayIngested")) == (
            self.mtime_ms,
            self.size,
            today,
        )

    def row(self, today: str) -> tuple[str, str, str | None]:
        """That it was read today."""
        value = {"mtimeMs": self.mtime_ms, "size": self.size, "lastDreamingDayIngested": today}
        return NOTES, self.path, json.dumps(value, separators=(",", ":"))


def daily_notes(workspace: Path, today: str, lookback_days: int) -> list[Note]:
    """Notes of the last days, the newest first, the plain name of a day before those with a slug."""
    folder = workspace / "memory"
    earliest = (date.fromisoformat(today) - timedelta(days=max(LEAST_DAYS, lookback_days))).isoformat()
    found: list[Note] = []
    for entry in os.scandir(folder) if folder.is_dir() else ():
        day = note_day(entry.name)
        if day is None or day < earliest or not entry.is_file(follow_symlinks=False):
            continue
        about = entry.stat(follow_symlinks=False)
        found.append(Note(f"memory/{entry.name}", Path(entry.path), day, about.st_mtime_ns // 1_000_000, about.st_size))
    found.sort(key=lambda note: (note.file.name != f"{note.day}.md", note.file.name))
    return sorted(found, key=lambda note: note.day, reverse=True)


@dataclass(frozen=True, slots=True)
class Noted:
    """What notes had to tell. `rows`: what to write so that they are not read again today."""

    signals: tuple[Signal, ...]
    rows: tuple[tuple[str, str, str | None], ...]
    read: int
    unreadable: tuple[str, ...]


def read_notes(
    notes: Iterable[Note],
    rows: Iterable[tuple[str, bytes]],
    observed: Iterable[_core.ObservedWrite],
    today: str,
    limit: int,
) -> Noted:
    """Signals of the notes that are new or changed, or were not read today.

    `rows`: logical keys and values of what was read before. `limit`: of light sleep; four times as many signals are
    taken, evenly from all notes.
    """
    known = {key: read_table(value) for key, value in rows}
    writes = {write.relative_path: write for write in observed}
    listed = list(notes)
    pending = [note for note in listed if not note.is_known(known.get(note.path), today)]
    most = max(LEAST_OF_ALL, 4 * limit)
    of_each = max(LEAST_OF_EACH, -(-most // max(len(pending), 1)))
    signals: list[Signal] = []
    written: list[tuple[str, str, str | None]] = []
    unreadable: list[str] = []
    for note in pending:
        try:
            data = note.file.read_bytes()
        except OSError as error:
            unreadable.append(f"{note.path}: {error.strerror}")
            continue
        signals += _signals(note, data, writes.get(note.path), min(of_each, most - len(signals)))
        written.append(note.row(today))
    there = {note.path for note in listed}
    written += [(NOTES, key, None) for key in known if key not in there]
    return Noted(tuple(signals), tuple(written), len(pending) - len(unreadable), tuple(unreadable))


def _signals(note: Note, data: bytes, write: _core.ObservedWrite | None, most: int) -> list[Signal]:
    chunks = note_chunks(data.decode(errors="replace"))[: max(most, 0)]
    provenance = _provenance(note, data, write)
    return [
        Signal(
            kind="daily",
            path=note.path,
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            snippet=chunk.snippet,
            score=SCORE,
            query=QUERY + note.day,
            day=note.day,
            provenance=provenance,
        )
        for chunk in chunks
    ]


def _provenance(note: Note, data: bytes, write: _core.ObservedWrite | None) -> Provenance:
    """What an untrusted session wrote once stays untrusted, whoever edited it since."""
    if write is None:
        return Provenance("agent", "unknown", note.mtime_ms)
    is_same = write.file_hash == hashlib.sha256(data).hexdigest()
    return Provenance(
        "untrusted" if write.origin_class == "untrusted" else "agent",
        "unknown",
        write.observed_at if is_same else note.mtime_ms,
    )
