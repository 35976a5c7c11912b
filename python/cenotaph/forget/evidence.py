"""What a deletion is about to remove, kept in memory as needles and in the receipt as keyed hashes."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cenotaph import _core, layout
from cenotaph.receipts import SESSION_DIGITS, erasures_of, key_id, key_path, keyed, receipt_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from cenotaph.forget.plan import Plan, Wish
    from cenotaph.forget.prove import Proof
    from cenotaph.forget.report import ChainHead
    from cenotaph.place import Place
    from cenotaph.receipts import Erasure
    from cenotaph.stores import Stores


@dataclass(frozen=True, slots=True)
class Earlier:
    """What earlier runs for some of the same sessions left behind."""

    erasures: list[Erasure]
    needles: _core.Needles
    """What they removed, as keyed hashes; it goes wherever it came back."""


@dataclass(slots=True)
class Evidence:
    """What must not be found afterwards, and the receipt that says so."""

    key: bytes
    receipt: str
    sessions: list[str]
    """Keyed hashes of the selected session ids, sorted."""
    resumed: list[Erasure] = field(default_factory=list["Erasure"])
    """Receipts of earlier runs for the same sessions that did not get to the end; this run completes them."""
    erased: list[_core.Needles] = field(default_factory=list[_core.Needles])
    """What earlier runs removed."""
    needles: list[_core.Needles] = field(default_factory=list[_core.Needles])
    """What this run removes, a set for each plan."""
    shared: int = 0
    candidates: int = 0
    unwitnessed: bool = False
    """Whether some of the sessions were forgotten by a program that left no receipt: nobody knows what it removed."""

    @property
    def sets(self) -> list[_core.Needles]:
        """Everything to look for."""
        return [each for each in (*self.erased, *self.needles) if len(each)]

    @property
    def count(self) -> int:
        """Needles of all sets."""
        return sum(map(len, self.sets))


def earlier_runs(place: Place, memory: _core.Store | None, session_ids: Iterable[str]) -> Earlier | None:
    """What receipts tell of these sessions; None when there is none, or the key of their hashes was destroyed.

    Raises `ForgetRefused` when the hashes are damaged, `ConfigError` when the key is, `OSError`.
    """
    if memory is None or not key_path(place.state_dir).exists():
        return None
    key = receipt_key(place.state_dir, create=False)
    found = erasures_of(place, memory, _hashed(key, session_ids))
    if not found:
        return None
    shingles = _core.receipt_shingles(memory, [erasure.id for erasure in found])
    return Earlier(found, _core.Needles.from_shingles(shingles, key))


def _hashed(key: bytes, session_ids: Iterable[str]) -> list[str]:
    return sorted(keyed(key, "session", each)[:SESSION_DIGITS] for each in session_ids)


def new_evidence(plan: Plan, key: bytes, forgotten: Collection[str]) -> Evidence:
    """The receipt of this run: that of an earlier one for the same sessions that was not completed, else a new one.

    `forgotten`: session ids with a tombstone of this agent.
    """
    sessions = _hashed(key, plan.selection.session_ids)
    known = plan.earlier.erasures if plan.earlier else []
    resumed = [each for each in known if not each.is_completed and each.sessions <= set(sessions)]
    before = _hashed(key, set(plan.selection.session_ids).intersection(forgotten))
    return Evidence(
        key,
        receipt=resumed[0].id if resumed else secrets.token_hex(16),
        sessions=sessions,
        resumed=resumed,
        unwitnessed=not {each for erasure in known for each in erasure.sessions}.issuperset(before),
    )


def gather(place: Place, stores: Stores, wish: Wish, plan: Plan, evidence: Evidence) -> None:
    """Reads what the plan removes, and has every deletion from now on add a link to the receipt."""
    gathered = _core.gather(
        plan.refs,
        plan.scrubber,
        plan.corpus,
        plan.listing.files,
        plan.listing.corpus,
        stores.memory,
        plan.index,
        stores.state,
        plan.state,
        wish.keep_shared,
        plan.earlier.needles if plan.earlier else None,
    )
    evidence.needles.append(gathered.needles)
    # A later plan knows no more of earlier runs, only of what survivors said since.
    evidence.erased = [gathered.erased] if gathered.erased else []
    evidence.shared += gathered.shared
    evidence.candidates += gathered.candidates
    body = json.dumps(_begun(wish, plan, evidence, gathered), sort_keys=True, separators=(",", ":"))
    now = layout.clock_ms()
    for store in (stores.memory, stores.state):
        if store:
            shingles = gathered.needles.shingles(evidence.key)
            _core.keep_receipt(store, evidence.receipt, place.agent, now, body, shingles)


def _begun(wish: Wish, plan: Plan, evidence: Evidence, gathered: _core.Gathered) -> dict[str, object]:
    return {
        "entryKeys": len(plan.lineage.entry_keys),
        "keyId": key_id(evidence.key),
        "needles": len(gathered.needles),
        "selectors": list(hashed_selectors(wish, evidence.key)),
        "sessions": evidence.sessions,
        "sharedNeedles": gathered.shared,
        "tool": _core.__version__,
    }


def hashed_selectors(wish: Wish, key: bytes) -> Iterable[dict[str, str]]:
    """What was asked for, identifiers as keyed hashes, the date in clear."""
    asked = wish.selectors
    named = (
        ("session", asked.sessions),
        ("hook-source", asked.hook_sources),
        ("participant", asked.participants),
    )
    for kind, values in named:
        yield from ({"kind": kind, "value": keyed(key, kind, value)} for value in sorted(values))
    if asked.since_ms is not None:
        yield {"kind": "since", "value": layout.iso_moment(asked.since_ms)}


def completed_body(evidence: Evidence, proof: Proof, files: dict[str, int], state: ChainHead | None) -> str:
    """What the last link of a receipt says: counts that no transaction could record, and what the search came to.

    `state`: last link of the chain in the state database. Who puts back an older copy of that database, which may hold
    what was deleted, takes this link out of it.
    """
    verdict = proof.verdict
    body = {
        "database": proof.method,
        "files": files,
        "needles": evidence.count,
        "searchedBytes": verdict.bytes if verdict else 0,
        "searchedFiles": verdict.files if verdict else 0,
        "sharedNeedles": evidence.shared,
        "stateChain": state.model_dump() if state else None,
    }
    return json.dumps(body, sort_keys=True, separators=(",", ":"))
