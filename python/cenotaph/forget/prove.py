"""Looking for what was removed until nothing is found, with the cheapest means that gets there.

A purge overwrites what it frees. What others freed before, without `secure_delete`, may lie in full-text
segments, free pages and the slack of used ones: each has a remedy of its own, in rising order of cost, and the next one
is only used where a search found something that needs it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from cenotaph import _core
from cenotaph.errors import CenotaphError
from cenotaph.verify.judge import KEPT_TABLES, Verdict, judge, named, roots_of
from cenotaph.verify.process import find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from cenotaph.forget.evidence import Evidence
    from cenotaph.forget.plan import Step
    from cenotaph.place import Place
    from cenotaph.stores import Stores
    from cenotaph.verify.process import Place as Hit

Remedy = Literal["full-text", "freelist", "vacuum"]
_PARTS: dict[Remedy, frozenset[str]] = {
    "full-text": frozenset({"row"}),
    "freelist": frozenset({"free"}),
    "vacuum": frozenset({"slack"}),
}
_STORE = _core.Store | _core.StateStore


_SHADOW = ".memory-reindex-"


@dataclass(slots=True)
class Proof:
    """What the search found in the end. `verdict` is None when it could not be run."""

    verdict: Verdict | None
    used: set[Remedy] = field(default_factory=set[Remedy])
    truncated: bool = True
    pending: list[str] = field(default_factory=list[str])

    @property
    def method(self) -> Literal["secure-delete", "freelist", "vacuum"]:
        """The most expensive means that was needed to get the databases clean."""
        if "vacuum" in self.used:
            return "vacuum"
        return "freelist" if "freelist" in self.used else "secure-delete"


def prove(place: Place, stores: Stores, evidence: Evidence, step: Step, *, finished: bool) -> Proof:
    """Truncates the logs and searches; where residue lies in a database of ours, removes it and searches again.

    What a program removed that left no receipt cannot be looked for: after that the costliest means are used first.

    `finished`: the purge did all that it had planned. If not, only the search is done, and what it finds is told in the
    verdict alone: the purge has said what is left to do. Raises `StoreError`, `OSError`.
    """
    step("Truncating the write-ahead logs")
    proof = Proof(None, truncated=stores.checkpoint())
    tried: set[tuple[str, Remedy]] = set()
    if evidence.unwitnessed and finished and proof.truncated:
        _apply_all(_all_remedies(place, stores), tried, proof, step)
        proof.truncated = stores.checkpoint()
    while True:
        step("Looking for what was removed")
        _core.kill_point("verify:begin")
        proof.verdict = _search(place, evidence, proof)
        _core.kill_point("verify:done")
        if proof.verdict is None or not finished or not proof.truncated:
            break
        remedies = [each for each in _remedies(place, stores, proof.verdict) if (each[0], each[2]) not in tried]
        if not remedies:
            break
        _apply_all(remedies, tried, proof, step)
        proof.truncated = stores.checkpoint()
    if not proof.truncated:
        proof.pending.insert(0, "wal")
    if finished and proof.verdict is not None:
        proof.pending += _what_is_left(place, proof.verdict, pinned=not proof.truncated)
    return proof


def _search(place: Place, evidence: Evidence, proof: Proof) -> Verdict | None:
    try:
        return judge(place, find(roots_of(place), evidence.sets, KEPT_TABLES))
    except CenotaphError as error:
        proof.pending.append(str(error))
        return None


def _all_remedies(place: Place, stores: Stores) -> list[tuple[str, _STORE, Remedy]]:
    """Those that leave no old byte, whatever it is."""
    found: list[tuple[str, _STORE, Remedy]] = []
    if stores.memory:
        found.append((place.agent_database.name, stores.memory, "full-text"))
        found.append((place.agent_database.name, stores.memory, "vacuum"))
    if stores.state:
        found.append((place.state_database.name, stores.state, "vacuum"))
    return found


def _remedies(place: Place, stores: Stores, verdict: Verdict) -> list[tuple[str, _STORE, Remedy]]:
    """Which of the databases needs what. Rewriting the file does the work of clearing its free pages, too."""
    found: list[tuple[str, _STORE, Remedy]] = []
    for path, store in ((place.agent_database, stores.memory), (place.state_database, stores.state)):
        hits = [hit for hit in verdict.residue if hit.path == os.path.realpath(path)]
        if store is None or not hits:
            continue
        needed: list[Remedy] = [remedy for remedy in _PARTS if any(_calls_for(hit, remedy) for hit in hits)]
        if "vacuum" in needed and "freelist" in needed:
            needed.remove("freelist")
        found.extend((path.name, store, remedy) for remedy in needed)
    return found


def _calls_for(hit: Hit, remedy: Remedy) -> bool:
    is_text = remedy != "full-text" or (hit.table or "").endswith(("_fts_data", "_fts"))
    return hit.part in _PARTS[remedy] and is_text


def _apply_all(
    remedies: Iterable[tuple[str, _STORE, Remedy]], tried: set[tuple[str, Remedy]], proof: Proof, step: Step
) -> None:
    for name, store, remedy in remedies:
        tried.add((name, remedy))
        step(f"Erasing old bytes in {name}")
        _apply(name, store, remedy, proof)


def _apply(name: str, store: _STORE, remedy: Remedy, proof: Proof) -> None:
    """A remedy that cannot be applied leaves its residue, which the next search reports."""
    try:
        _MEANS[remedy](store)
        proof.used.add(remedy)
    except (_core.StoreBusy, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        proof.pending.append(f"{name}: old bytes were not erased ({remedy}): {reason}")


_MEANS: dict[Remedy, Callable[[_STORE], object]] = {
    "full-text": _core.rebuild_full_text,
    "freelist": _core.erase_free_pages,
    "vacuum": _core.vacuum,
}


def _what_is_left(place: Place, verdict: Verdict, *, pinned: bool) -> list[str]:
    """`pinned`: a reader holds a log, and until it ends a database file has the pages that the log replaces."""
    own = {os.path.realpath(path) for path in (place.agent_database, place.state_database)} if pinned else set[str]()
    left = [hit for hit in verdict.residue if hit.path.removesuffix("-wal") not in own]
    unread = [f"Cannot read {named(place, path)}: {reason}" for path, reason in verdict.unread]
    return [*(_words(place, hit) for hit in left), *unread]


def _words(place: Place, hit: Hit) -> str:
    where = {
        "free": "free pages of ",
        "slack": f"unused bytes of {hit.table} in ",
        "row": f"rows of {hit.table} in " if hit.table else "pages of ",
        "member": "packed content of ",
    }.get(hit.part, "")
    building = "; an index run is building it, run this again when it has ended" if _SHADOW in hit.path else ""
    return f"Residue: {hit.needles} forgotten texts in {where}{named(place, hit.path)}{building}"
