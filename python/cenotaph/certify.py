"""Certificates and state directories: what a directory says today, and what a certificate says, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cenotaph import receipts
from cenotaph.certificate import StateFacts
from cenotaph.errors import CenotaphError
from cenotaph.ledger import read_ledger
from cenotaph.verify.judge import told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cenotaph.certificate import Predicate, Selector
    from cenotaph.ledger import Ledger
    from cenotaph.place import Place


def state_facts(place: Place, certificate: Predicate) -> StateFacts:
    """What this agent's databases say about the deletion that a certificate tells of. Changes nothing.

    Every byte is searched for what was erased, unless the receipt or its hash key is not there, or the chain does not
    hold: then nobody knows what to look for, and `check_state` refuses the certificate for that reason. Raises
    `CenotaphError` when a file cannot be read, so that nothing can be said about it; `ConfigError`, `StoreError`,
    `OSError`.
    """
    ledger = read_ledger(place)
    completed = {erasure.id for erasure in ledger.erasures if erasure.is_completed}
    has_key = receipts.key_path(place.state_dir).exists()
    key = receipts.receipt_key(place.state_dir, create=False) if has_key else b""
    return StateFacts(
        chain=[(link.seq, link.hash) for link in ledger.links],
        chain_intact=not ledger.broken,
        completed=completed,
        hash_key_id=receipts.key_id(key) if has_key else "",
        others_reach=bool(ledger.broken) or _state_reaches(ledger, certificate),
        buried={receipts.keyed(key, "session", session) for session in ledger.forgotten} if has_key else frozenset(),
        residue=_residue(place, ledger, certificate) if has_key and not ledger.broken else None,
    )


def _state_reaches(ledger: Ledger, certificate: Predicate) -> bool:
    """Whether the state database has the link that the completed receipt names; only a chain that holds tells."""
    receipt = certificate["receipt"]
    there: list[object] = [{"seq": link.seq, "hash": link.hash} for link in ledger.state_links]
    named = [
        receipts.body_of(link).get("stateChain")
        for link in ledger.links
        if receipt is not None and link.receipt == receipt["id"] and link.stage == "completed"
    ]
    return all(head is None or head in there for head in named)


def _residue(place: Place, ledger: Ledger, certificate: Predicate) -> int | None:
    """What is found of all that was ever erased of the certificate's sessions: an earlier run may have removed it."""
    receipt = certificate["receipt"]
    sessions = {each[: receipts.SESSION_DIGITS] for each in certificate["sessions"]}
    completed = {erasure.id for erasure in ledger.erasures if erasure.is_completed}
    if receipt is None or receipt["id"] not in completed:
        return None
    there = {link.receipt for link in ledger.links}
    wanted = [erasure.id for erasure in ledger.erasures if erasure.id in there and erasure.sessions & sessions]
    from cenotaph.verify.again import verify_receipts  # noqa: PLC0415 -- only a receipt that is there needs a search

    found = verify_receipts(place, wanted or [receipt["id"]])
    if found.unread and not found.residue:
        message = f"The search could not be completed: {found.unread[0]}; make it readable and check again"
        raise CenotaphError(message)
    return sum(hit.hashes for hit in found.residue)


def describe(certificate: Predicate, key: str, facts: StateFacts | None) -> Iterator[str]:
    """What a valid certificate says, a line each. `key`: id of the key that it was checked with."""
    counts, search, entries = certificate["counts"], certificate["verification"], certificate["entries"]
    yield f"Certificate: valid, signed with key {key[:16]}"
    yield f"Made: {certificate['createdAt']} by {certificate['tool']['name']} {certificate['tool']['version']}"
    yield f"Asked for: {_asked(certificate['selectors'])}"
    yield f"Sessions erased from memory: {len(certificate['sessions'])}"
    yield (
        f"Removed: {counts['memoryEntries']} memory entries, {counts['memoryLines']} quoted lines, "
        f"{counts['sessionCorpusLines']} corpus lines, {counts['indexChunks']} index chunks, "
        f"{counts['vectorRows']} vectors, {counts['backups']} backups"
    )
    yield (
        f"Verification: {told(search['result'], search['needles'])} "
        f"({search['needles']} needles, {search['files']} files, {search['bytes']} bytes)"
    )
    yield (
        f"Memory entries: {entries['before']['count']} before, {entries['after']['count']} after, "
        f"{entries['altered']} of those that stay altered"
    )
    yield from (f"Kept by design: {kept['what']} ({kept['count']})" for kept in certificate["kept"])
    if certificate["review"]["count"]:
        yield f"Left for a person to review: {certificate['review']['count']}"
    if certificate["refusals"]["count"]:
        yield f"Places that could not be read or changed: {certificate['refusals']['count']}"
    yield from (f"Left to do when it was made: {rest}" for rest in certificate["pending"])
    yield from _receipt(certificate, facts)


def _asked(selectors: list[Selector]) -> str:
    kinds = [selector["kind"] for selector in selectors]
    named = [f"{kinds.count(kind)} by {kind}" for kind in dict.fromkeys(kinds) if kind != "since"]
    dates = [f"created at or after {selector['value']}" for selector in selectors if selector["kind"] == "since"]
    return ", ".join(named + dates) or "nothing"


def _receipt(certificate: Predicate, facts: StateFacts | None) -> Iterator[str]:
    receipt = certificate["receipt"]
    yield "Receipt: none" if receipt is None else f"Receipt: {receipt['id']}, chain link {receipt['chain']['seq']}"
    if facts is not None:
        yield "State directory: holds the receipt and the tombstones, and nothing that was erased was found in it"
