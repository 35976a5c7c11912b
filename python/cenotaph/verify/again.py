"""Verifying past erasures from what their receipts keep: keyed hashes, no text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from cenotaph import _core
from cenotaph.errors import SelectionError, StoreCorrupt
from cenotaph.receipts import erasures, receipt_key
from cenotaph.verify.judge import KEPT_TABLES, judge, named, roots_of, told
from cenotaph.verify.process import find

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cenotaph.place import Place
    from cenotaph.receipts import Erasure
    from cenotaph.verify.process import Place as Hit

_FOUND = 3


class FoundPlace(BaseModel):
    """A place that holds hashes of a past erasure. `hashes`: how many distinct ones."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    path: str
    part: str
    table: str | None
    hashes: int


class ReceiptVerification(BaseModel):
    """What a search for everything that these receipts tell of came to."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    agent_id: str
    receipts: list[str]
    incomplete: list[str]
    """Receipts among them that were begun and not completed: run their forget command again."""
    result: Literal["clean", "residue"]
    hashes: int
    files: int
    bytes: int
    residue: list[FoundPlace]
    kept: dict[str, int]
    review: list[FoundPlace]
    unread: list[str]

    @property
    def exit_status(self) -> int:
        """0 when nothing was found, 3 otherwise."""
        return 0 if self.result == "clean" and not self.incomplete else _FOUND

    def to_json(self) -> str:
        """By wire names, with two blanks of indent."""
        return self.model_dump_json(by_alias=True, indent=2)


def verify_receipts(place: Place, wanted: Sequence[str]) -> ReceiptVerification:
    """Searches for what the receipts `wanted` (ids; none: all of the agent) tell of. Changes nothing.

    Raises `StoreCorrupt` when the chain does not hold: what was altered in it could be what to look for. Raises
    `SelectionError` for an unknown receipt, `ConfigError` without the receipt key, `StoreError`, `OSError`.
    """
    chosen, shingles = _chosen(place, wanted)
    needles = _core.Needles.from_shingles(shingles, receipt_key(place.state_dir, create=False)) if chosen else None
    sets = [] if needles is None else [needles]
    verdict = judge(place, find(roots_of(place), sets, KEPT_TABLES))
    return ReceiptVerification(
        agent_id=place.agent,
        receipts=[erasure.id for erasure in chosen],
        incomplete=[erasure.id for erasure in chosen if not erasure.is_completed],
        result="clean" if verdict.is_clean else "residue",
        hashes=0 if needles is None else len(needles),
        files=verdict.files,
        bytes=verdict.bytes,
        residue=[_place(place, hit) for hit in verdict.residue],
        kept=verdict.kept,
        review=[_place(place, hit) for hit in verdict.review],
        unread=[f"{named(place, path)}: {reason}" for path, reason in verdict.unread],
    )


def _chosen(place: Place, wanted: Sequence[str]) -> tuple[list[Erasure], list[bytes]]:
    memory = _core.Store.open_agent(place.agent_database, place.agent, write=False)
    if memory is None:
        known: list[Erasure] = []
    else:
        known = [erasure for erasure in erasures(_core.receipts(memory)) if erasure.agent == place.agent]
    fault = _core.check_receipts(memory) if memory else None
    unknown = sorted(set(wanted) - {erasure.id for erasure in known})
    try:
        if fault:
            message = (
                f"Link {fault[0]} of the chain in {place.agent_database.name} does not hold: {fault[1]}; what is to be "
                "looked for is not known; put the database back from a copy"
            )
            raise StoreCorrupt(message)
        if unknown:
            message = f"There is no receipt {unknown[0]} of agent {place.agent}; cenotaph receipts list shows them"
            raise SelectionError(message)
        chosen = [erasure for erasure in known if not wanted or erasure.id in wanted]
        ids = [erasure.id for erasure in chosen]
        return chosen, _core.receipt_shingles(memory, ids) if memory else []
    finally:
        if memory:
            memory.close()


def _place(place: Place, hit: Hit) -> FoundPlace:
    return FoundPlace(path=named(place, hit.path), part=hit.part, table=hit.table, hashes=hit.needles)


def describe(found: ReceiptVerification) -> Iterator[str]:
    """The result for people, a line each."""
    yield f"Verification ({found.agent_id}): {told(found.result, found.hashes)}"
    yield f"Receipts: {len(found.receipts)}; {found.hashes} keyed hashes"
    yield f"Searched: {found.files} files, {found.bytes} bytes"
    for hit in found.residue:
        table = f" of {hit.table}" if hit.table else ""
        yield f"Residue: {hit.path} ({hit.part}{table}, {hit.hashes} hashes)"
    yield from (f"Kept by design: {what} ({places} places)" for what, places in sorted(found.kept.items()))
    yield from (f"To review, not edited: {hit.path} ({hit.hashes} hashes)" for hit in found.review)
    yield from (f"Cannot read {reason}" for reason in found.unread)
    yield from (f"Begun and not completed: {receipt}; run its forget command again" for receipt in found.incomplete)
