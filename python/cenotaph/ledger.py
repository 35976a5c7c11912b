"""Reading the chains of receipts of one agent, for people and for certificates."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cenotaph import _core, layout
from cenotaph.errors import SelectionError
from cenotaph.receipts import Erasure, erasures

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cenotaph.place import Place


@dataclass(frozen=True, slots=True)
class Ledger:
    """The receipts of one agent, and whether their chains hold."""

    erasures: list[Erasure]
    links: list[_core.Link]
    """The chain of the agent database."""
    heads: list[tuple[str, _core.Link]]
    """Last link of each chain, with the name of its database."""
    broken: list[tuple[str, int, str]]
    """Database, position and reason of the first link that does not hold."""
    forgotten: frozenset[str]
    """Session ids with a tombstone."""

    def find(self, receipt: str) -> Erasure:
        """The one receipt whose id begins so. Raises `SelectionError`."""
        found = [erasure for erasure in self.erasures if erasure.id.startswith(receipt)]
        if len(found) != 1:
            number = f"{len(found)} receipts begin" if found else "No receipt begins"
            raise SelectionError(f"{number} with {receipt!r}; cenotaph receipts list shows them")
        return found[0]


def read_ledger(place: Place) -> Ledger:
    """Reads both databases. Changes nothing. Raises `StoreError`, `OSError`."""
    links: list[_core.Link] = []
    all_links: list[_core.Link] = []
    heads: list[tuple[str, _core.Link]] = []
    broken: list[tuple[str, int, str]] = []
    forgotten: frozenset[str] = frozenset()
    memory = _core.Store.open_agent(place.agent_database, place.agent, write=False)
    if memory:
        with closing(memory):
            links = _core.receipts(memory)
            forgotten = frozenset(memory.forgotten(place.agent))
            _look(place.agent_database.name, memory, links, heads, broken)
    all_links += links
    state = _core.StateStore.open(place.state_database, write=False)
    if state:
        with closing(state):
            others = _core.receipts(state)
            _look(place.state_database.name, state, others, heads, broken)
            all_links += others
    own = [erasure for erasure in erasures(all_links) if erasure.agent == place.agent]
    return Ledger(own, links, heads, broken, forgotten)


def _look(
    name: str,
    store: _core.Store | _core.StateStore,
    links: list[_core.Link],
    heads: list[tuple[str, _core.Link]],
    broken: list[tuple[str, int, str]],
) -> None:
    heads += [(name, links[-1])] if links else []
    fault = _core.check_receipts(store)
    broken += [(name, *fault)] if fault else []


def to_json(found: Iterable[Erasure]) -> str:
    """Receipts as JSON, times in ms since the epoch."""
    return json.dumps([_as_json(erasure) for erasure in found], ensure_ascii=False, indent=2)


def _as_json(erasure: Erasure) -> dict[str, Any]:
    return {
        "id": erasure.id,
        "agentId": erasure.agent,
        "begunAt": erasure.begun_at,
        "completedAt": erasure.completed_at,
        "sessions": len(erasure.sessions),
        "counts": dict(sorted(erasure.counts.items())),
        "links": [
            {
                "seq": link.seq,
                "stage": link.stage,
                "createdAt": link.created_at,
                "body": json.loads(link.body),
                "hash": link.hash,
            }
            for link in erasure.links
        ],
    }


def describe(found: Iterable[Erasure]) -> Iterator[str]:
    """A line for each receipt."""
    nothing = True
    for erasure in found:
        nothing = False
        yield _line(erasure)
    if nothing:
        yield "No receipts"


def _line(erasure: Erasure) -> str:
    ended = f"completed {layout.iso_moment(erasure.completed_at)}" if erasure.completed_at is not None else _OPEN
    return f"{erasure.id}  {layout.iso_moment(erasure.begun_at)}  {len(erasure.sessions)} sessions  {ended}"


_OPEN = "NOT COMPLETED: run its forget command again"


def describe_one(erasure: Erasure) -> Iterator[str]:
    """A receipt with its counts and links."""
    yield _line(erasure)
    yield from (f"  {name}: {count}" for name, count in sorted(erasure.counts.items()))
    for link in erasure.links:
        yield f"  link {link.seq}  {layout.iso_moment(link.created_at)}  {link.stage}  {link.hash}"
