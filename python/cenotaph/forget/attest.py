"""From a finished deletion to its certificate: what it says, without text and without identifiers in clear."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cenotaph import _core, layout
from cenotaph.certificate import Counts, merkle_root, sign
from cenotaph.errors import CenotaphError, ForgetRefused
from cenotaph.forget.evidence import hashed_selectors
from cenotaph.keys import load_private_key
from cenotaph.new_file import write_new
from cenotaph.receipts import erasures, key_id, keyed, receipt_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from cenotaph.forget.plan import Wish
    from cenotaph.forget.report import ForgetReport, Measured, Verification
    from cenotaph.place import Place

_CLEAR, _NOT = "Clear", "none"
_READABLE = 0o644


@dataclass(slots=True)
class Census:
    """The memory entries of a workspace before and after a deletion, as keyed hashes of file, keys and bytes."""

    before: list[tuple[frozenset[str], bytes]] = field(default_factory=list[tuple[frozenset[str], bytes]])
    after: list[bytes] = field(default_factory=list[bytes])
    selected: frozenset[str] = frozenset()
    """Entry keys that went."""

    @property
    def survivors(self) -> list[bytes]:
        """Entries that were there before and none of whose keys was selected."""
        return [leaf for keys, leaf in self.before if not keys & self.selected]

    def begin(self, files: Sequence[_core.MemoryFile], key: bytes) -> None:
        """Notes what is there before anything goes."""
        self.before = list(_entries(files, key))

    def end(self, files: Sequence[_core.MemoryFile], key: bytes, selected: Iterable[str]) -> None:
        """Notes what is there afterwards."""
        self.selected = frozenset(selected)
        self.after = [leaf for _, leaf in _entries(files, key)]


def _entries(files: Sequence[_core.MemoryFile], key: bytes) -> Iterable[tuple[frozenset[str], bytes]]:
    there = [file for file in files if Path(file.path).exists()]
    for file, entries in zip(there, _core.entries_of([file.path for file in there]), strict=True):
        for keys, digest in entries:
            named = "\0".join([file.relative, *keys, digest.hex()])
            yield frozenset(keys), bytes.fromhex(keyed(key, "entry", named))


@dataclass(frozen=True, slots=True)
class Notary:
    """Where a certificate goes and what signs it."""

    path: Path
    key: Ed25519PrivateKey


def notary(path: Path, key_file: Path) -> Notary:
    """Looks at everything that could fail later. Raises `KeyUnusable`, `ForgetRefused`, `OSError`."""
    key = load_private_key(key_file)
    # A link that leads nowhere is there, too.
    if os.path.lexists(path):
        raise ForgetRefused(f"{path} is already there; name another file for the certificate, nothing was changed")
    if not os.access(path.parent, os.W_OK):
        raise ForgetRefused(f"{path.parent} cannot be written; name another file for the certificate")
    return Notary(path, key)


def write_certificate(place: Place, wish: Wish, report: ForgetReport, census: Census, signer: Notary) -> bool:
    """Writes the certificate of a deletion that was completed; of another one there is none, and False is returned.

    Raises `CenotaphError` when it cannot be written: the deletion is done then, and running it again certifies that
    nothing is left of it.
    """
    found, measured = report.verification, report.measured
    if report.exit_status or measured is None or found is None:
        return False
    predicate = _predicate(place, wish, report, census, found, measured)
    subjects = {"surviving entries": predicate["entries"]["after"]["root"]}
    if predicate["receipt"]:
        subjects["receipt chain"] = predicate["receipt"]["chain"]["hash"]
    data = sign(predicate, subjects, signer.key)
    try:
        write_new(signer.path, data, _READABLE)
    except OSError as error:
        message = (
            f"the deletion is complete, but its certificate could not be written to {signer.path}: {error.strerror}; "
            "run the same command with another file"
        )
        raise CenotaphError(message) from error
    return True


def _predicate(
    place: Place, wish: Wish, report: ForgetReport, census: Census, found: Verification, measured: Measured
) -> dict[str, Any]:
    key = receipt_key(place.state_dir, create=False)
    receipt = report.receipt
    chain = receipt.chain if receipt else None
    survivors = census.survivors
    return {
        "tool": {"name": "cenotaph", "version": _core.__version__},
        "agent": keyed(key, "agent", place.agent),
        "createdAt": layout.iso_moment(layout.clock_ms()),
        "selectors": list(hashed_selectors(wish, key)),
        "sessions": sorted(keyed(key, "session", each) for each in report.session_ids),
        "keyId": key_id(key),
        "counts": _counts(place, report, receipt.id if receipt else ""),
        "methods": list(_methods(report, measured)),
        "verification": {
            "result": found.result,
            "needles": found.needles,
            "sharedNeedles": found.shared_needles,
            "files": found.files,
            "bytes": found.bytes,
            "databaseMethod": measured.database,
        },
        "kept": list(_kept(report, found)),
        "review": {"count": len(found.review) + len(report.external_matches)},
        "refusals": {"count": len(report.refusals)},
        "pending": [],
        "receipt": {"id": receipt.id, "chain": {"seq": chain.seq, "hash": chain.hash}} if receipt and chain else None,
        "entries": {
            "before": {"count": len(survivors), "root": merkle_root(survivors)},
            "after": {"count": len(census.after), "root": merkle_root(census.after)},
            "altered": (Counter(survivors) - Counter(census.after)).total(),
        },
        "fileSystems": _file_systems(measured),
    }


def _kept(report: ForgetReport, found: Verification) -> Iterable[dict[str, str | int]]:
    yield {"what": "source transcripts", "count": len(report.session_ids)}
    if report.curated_writes:
        yield {"what": "curated writes", "count": len(report.curated_writes)}
    yield from ({"what": f"places with erased text in {kept.what}", "count": kept.places} for kept in found.kept)


def _counts(place: Place, report: ForgetReport, receipt: str) -> dict[str, int]:
    """Of all runs of the receipt: what an interrupted run deleted from a database stands in its links."""
    counts: dict[str, int] = report.artifacts.model_dump(by_alias=True)
    for store in (
        _core.Store.open_agent(place.agent_database, place.agent, write=False),
        _core.StateStore.open(place.state_database, write=False),
    ):
        if store is None:
            continue
        try:
            own = [each for each in erasures(_core.receipts(store)) if each.id == receipt]
        finally:
            store.close()
        for name, count in (pair for erasure in own for pair in erasure.counts.items()):
            counts[name] = max(counts.get(name, 0), count)
    return {name: counts[name] for name in Counts.__annotations__}


def _methods(report: ForgetReport, measured: Measured) -> Iterable[dict[str, str]]:
    """Methods in the words of NIST SP 800-88: Clear is overwriting in place by the means that every program has."""
    counts = report.artifacts
    yield {
        "artifact": "database rows",
        "method": _CLEAR,
        "technique": "deleted with SQLite secure_delete, which zeroes each cell; write-ahead log truncated",
    }
    if measured.full_text == "rewritten":
        yield {
            "artifact": "full-text index",
            "method": _CLEAR,
            "technique": "segments written anew from the surviving rows in the transaction of the deletion",
        }
    if counts.vector_rows:
        yield {"artifact": "vectors", "method": _CLEAR, "technique": "slots overwritten with zeros"}
    yield {"artifact": "unused database pages", "method": _CLEAR, "technique": _PAGES[measured.database]}
    if measured.old_blocks:
        cleared = all(blocks.fate == "overwritten" for blocks in measured.old_blocks)
        technique = "rewritten without the text and replaced atomically; old blocks " + (
            "overwritten" if cleared else "not overwritten on every file system, see fileSystems"
        )
        yield {"artifact": "memory and corpus files", "method": _CLEAR if cleared else _NOT, "technique": technique}
    yield {"artifact": "source transcripts", "method": _NOT, "technique": "kept by design"}


_PAGES = {
    "secure-delete": "searched byte for byte; nothing had to be done",
    "freelist": "free pages of earlier deletions erased",
    "vacuum": "database file written anew without earlier deletions",
}
_OVERWRITTEN = {"overwritten": "yes", "unsupported": "unsupported"}


def _file_systems(measured: Measured) -> list[dict[str, str | int]]:
    files: Counter[tuple[str, str]] = Counter()
    for blocks in measured.old_blocks:
        files[blocks.file_system, _OVERWRITTEN.get(blocks.fate, "no")] += blocks.files
    return [{"type": kind, "overwritten": done, "files": number} for (kind, done), number in sorted(files.items())]
