"""Hashes of the lines that were ingested, in chunks for each scope: rows of `dreaming-session-ingestion-seen`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cenotaph.schema import as_list, as_text, read_table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


SEEN = "dreaming-session-ingestion-seen"
CHUNK, MOST_HASHES, MOST_SCOPES = 512, 4_096, 2_048


class Seen:
    """Hashes by scope, in the order in which they came."""

    def __init__(self, rows: Iterable[tuple[str, bytes]]) -> None:
        """`rows`: logical keys and values, oldest first. What cannot be read is left where it is."""
        chunks: dict[str, dict[int, list[str]]] = {}
        self._stored: dict[str, list[str]] = {}
        """Row keys of each scope. The scope that was written last comes last."""
        for key, value in rows:
            table = read_table(value) or {}
            scope, index = as_text(table.get("scope")), table.get("index")
            hashes = as_list(table.get("hashes"))
            if scope is None or not isinstance(index, int) or hashes is None:
                continue
            chunks.setdefault(scope, {})[index] = [each for each in hashes if isinstance(each, str)]
            self._stored[scope] = [*self._stored.pop(scope, []), key]
        self._hashes = {
            scope: [each for _, chunk in sorted(known.items()) for each in chunk] for scope, known in chunks.items()
        }
        self._changed: dict[str, None] = {}

    def of(self, *scopes: str) -> set[str]:
        """Hashes of these scopes."""
        return {each for scope in scopes for each in self._hashes.get(scope, ())}

    def add(self, scope: str, hashes: Iterable[str]) -> None:
        """Notes new hashes, the oldest of too many left out."""
        known = self._hashes.setdefault(scope, [])
        there = set(known)
        new = [each for each in dict.fromkeys(hashes) if each not in there]
        if new:
            self._hashes[scope] = [*known, *new][-MOST_HASHES:]
            self._changed[scope] = None

    def changes(self, live: Collection[str]) -> list[tuple[str, str, str | None]]:
        """Rows to write: namespace, logical key, JSON or None.

        Of too many scopes those go that have no session any more, then those that were written longest ago; never by
        their names (`live`: scopes of sessions that are there).
        """
        rows: list[tuple[str, str, str | None]] = []
        for scope in self._too_many(live):
            rows += [(SEEN, key, None) for key in self._stored.get(scope, ())]
            self._changed.pop(scope, None)
        for scope in self._changed:
            hashes = self._hashes[scope]
            chunks = [hashes[at : at + CHUNK] for at in range(0, len(hashes), CHUNK)]
            keys = [f"{scope}:{index}" for index in range(len(chunks))]
            for index, (key, chunk) in enumerate(zip(keys, chunks, strict=True)):
                value = {"scope": scope, "index": index, "hashes": chunk}
                rows.append((SEEN, key, json.dumps(value, ensure_ascii=False, separators=(",", ":"))))
            rows += [(SEEN, key, None) for key in self._stored.get(scope, ()) if key not in keys]
        return rows

    def _too_many(self, live: Collection[str]) -> list[str]:
        over = len(self._hashes) - MOST_SCOPES
        if over <= 0:
            return []
        oldest = [*(scope for scope in self._stored if scope not in self._changed), *self._changed]
        oldest += [scope for scope in self._hashes if scope not in self._stored and scope not in self._changed]
        return sorted(oldest, key=lambda scope: scope in live)[:over]
