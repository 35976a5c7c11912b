"""The short-term entries of a workspace: read once, changed in memory, written back where they changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cenotaph.layout import iso_moment
from cenotaph.recall.entry import Entry, Signal, from_json, noticed, to_json
from cenotaph.recall.keys import claim_key, recall_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cenotaph import _core

MOST_ENTRIES = 512
ENTRIES, PHASES, META = "short-term-recall", "short-term-phase-signals", "short-term-meta"


class ShortTerm:
    """Entries by key, found by claim hash without a search."""

    def __init__(self, entries: dict[str, Entry], dropped: set[str]) -> None:
        self._before = entries
        self._entries = dict(entries)
        self._dropped = dropped
        """Keys of rows that no host reads; the next write removes them."""
        self._by_claim: dict[str, list[str]] = {}
        for entry in entries.values():
            self._index(entry)

    @classmethod
    def read(cls, state: _core.StateStore, workspace_key: str) -> ShortTerm:
        """What the rows of a workspace hold. Raises `StoreError`."""
        entries: dict[str, Entry] = {}
        dropped: set[str] = set()
        for key, value in state.rows(workspace_key, ENTRIES):
            entry = from_json(value)
            if entry is None or entry.key != key:
                dropped.add(key)
            else:
                entries[key] = entry
        return cls(entries, dropped)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, key: str) -> Entry | None:
        """The entry of a key."""
        return self._entries.get(key)

    def key_of(self, signal: Signal) -> str:
        """The key under which a signal counts: `dreaming.md` 2.1.

        A note or session line joins an entry of the same claim that a search or a backfill made, and the other way.
        """
        claim = signal.claim
        alike = [self._entries[key] for key in self._by_claim.get(claim, ())]
        if signal.kind == "daily":
            found = (each.key for each in alike if each.key != claim_key(claim) and _was_looked_for(each))
            return next(found, claim_key(claim))
        if claim_key(claim) in self._entries:
            return claim_key(claim)
        key = recall_key(signal.path, signal.start_line, signal.end_line)
        known = self._entries.get(key)
        is_taken = known is not None and known.claim not in (None, claim)
        return f"{key}:{claim}" if is_taken or signal.kind == "grounded" else key

    def notice(self, signal: Signal, now_ms: int) -> str:
        """Counts a signal; the key of its entry."""
        key = self.key_of(signal)
        known = self._entries.get(key)
        entry = noticed(known, key, signal, now_ms)
        self._entries[key] = entry
        if known is None:
            self._index(entry)
        return key

    def _index(self, entry: Entry) -> None:
        if entry.claim:
            self._by_claim.setdefault(entry.claim, []).append(entry.key)

    def changes(self, state: _core.StateStore, workspace_key: str, now_ms: int) -> list[tuple[str, str, str | None]]:
        """Rows to write so that the store holds what is here, the least useful of too many entries left out.

        Only what changed is among them. Namespace, logical key, JSON or None.
        """
        kept = {entry.key: entry for entry in _most_useful(self._entries.values())}
        gone = {*self._before, *self._dropped} - set(kept)
        rows: list[tuple[str, str, str | None]] = [(ENTRIES, key, None) for key in sorted(gone)]
        rows += [(ENTRIES, key, to_json(entry)) for key, entry in kept.items() if self._before.get(key) != entry]
        if not rows:
            return []
        if gone:
            # A new entry of the same key must not inherit what the old one had earned.
            rows += [(PHASES, key, None) for key, _ in state.rows(workspace_key, PHASES) if key in gone]
        return [*rows, (META, "recall", json.dumps({"updatedAt": iso_moment(now_ms)}, separators=(",", ":")))]


def _was_looked_for(entry: Entry) -> bool:
    return entry.recall_count + entry.grounded_count > 0


def _most_useful(entries: Iterable[Entry]) -> list[Entry]:
    """At most 512: lately recalled before long ago, many signals before few, high scores before low."""
    listed = list(entries)
    if len(listed) <= MOST_ENTRIES:
        return listed
    listed.sort(key=lambda entry: entry.key)
    listed.sort(
        key=lambda entry: (
            entry.last_recalled_at,
            entry.signals,
            entry.total_score,
            entry.max_score,
            entry.promoted_at or "",
        ),
        reverse=True,
    )
    return listed[:MOST_ENTRIES]
