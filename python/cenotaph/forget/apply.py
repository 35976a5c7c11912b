"""Carrying out a plan, in the order of destruction of DESIGN.md, and counting what really went."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cenotaph import _core, layout
from cenotaph.forget.evidence import Evidence, completed_body, gather, new_evidence
from cenotaph.forget.plan import make_plan
from cenotaph.forget.prove import Proof, prove
from cenotaph.forget.report import Artifacts, ChainHead, ForgetReport, Measured, OldBlocks, ReceiptSummary
from cenotaph.forget.wording import report_of, verification_of
from cenotaph.receipts import receipt_key
from cenotaph.stores import Stores, open_stores, workspace_lock
from cenotaph.verify.judge import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cenotaph.forget.attest import Census
    from cenotaph.forget.plan import Plan, Step, Wish
    from cenotaph.place import Place

_READS = 5
_UNSTEADY = "The databases change faster than they can be read; stop the programs that write them, then run this again"
_UNWITNESSED = (
    "Some of the sessions were forgotten before by a program that left no receipt: what it removed cannot be looked "
    "for, so the databases were written anew."
)
_REPLANS = 10
_AT_ONCE = 4
"""Files that are rewritten at the same time, each beside its old content."""
_FILE_COUNTS = ("memoryFiles", "memoryEntries", "memoryLines", "sessionCorpusFiles", "sessionCorpusLines")
"""Counts that no transaction of a database could record."""
_SPARE_BYTES = 1 << 20
"""Room for journal pages and directory entries."""


@dataclass(slots=True)
class _Tally:
    """What went so far."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    tombstones: int = 0
    leftovers: int = 0
    joined: int = 0
    """Origin rows that this run itself wrote; they are not counted as deleted."""
    files: set[str] = field(default_factory=set[str])
    blocks: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """What became of old blocks: file system and fate."""
    linked: list[str] = field(default_factory=list[str])
    pending: list[str] = field(default_factory=list[str])

    @property
    def artifacts(self) -> Artifacts:
        """The counts as the report has them."""
        return Artifacts(**self.counts, memory_files=len(self.files))

    def add(self, **counts: int) -> None:
        for name, count in counts.items():
            self.counts[name] = self.counts.get(name, 0) + count

    def replaced(self, relative: str, old: tuple[str, str] | None) -> None:
        """Notes what became of the blocks of a file."""
        if old is None:
            return
        self.blocks[old] += 1
        if old[1] == "linked":
            self.linked.append(relative)


def preview(place: Place, wish: Wish, step: Step) -> ForgetReport:
    """The plan as a report. Creates and changes no file.

    Raises `StoreError`, `ConfigError`, `OSError`.
    """
    for _ in range(_READS):
        with open_stores(place, write=False) as stores:
            plan = make_plan(place, stores, wish, step)
            if stores.unchanged():
                return report_of(place, plan)
    raise _core.StoreBusy(_UNSTEADY)


def forget(place: Place, wish: Wish, step: Step, census: Census | None = None) -> ForgetReport:
    """Deletes what the selected sessions left behind, looks for it, and reports what was measured.

    `census`, where one is given, is told which entries there were before and afterwards.

    Raises `ForgetRefused` before anything is written, `StoreBusy` when a lock is held for over 10 seconds,
    `StoreError`, `ConfigError`, `OSError`. A file that cannot be rewritten, or residue that was found, is `pending` in
    the report.
    """
    _refuse_unwritable(place)
    step("Waiting for the workspace lock")
    with open_stores(place, write=True) as stores:
        tally = _Tally()
        with workspace_lock(place, stores.state):
            plan = make_plan(place, stores, wish, step)
            if not stores.unchanged():
                raise _core.StoreBusy(_UNSTEADY)
            _core.kill_point("planned")
            if not plan.selection.targets:
                nothing = Proof(None, truncated=stores.checkpoint())
                return report_of(place, plan, Artifacts(), _measured(tally, nothing))
            _refuse_early(place, stores, plan)
            key = receipt_key(place.state_dir, create=True)
            forgotten = stores.memory.forgotten(place.agent) if stores.memory else []
            evidence = new_evidence(plan, key, forgotten)
            if census:
                census.begin(plan.listing.files, key)
            plan = _destroy(place, stores, wish, step, plan, tally, evidence)
            if census:
                census.end(plan.listing.files, key, plan.lineage.entry_keys)
        proof = prove(place, stores, evidence, step, finished=not (tally.pending or plan.unread))
        tally.pending += proof.pending
        receipt = _complete(place, stores, evidence, tally, proof, finished=not (tally.pending or plan.unread))
        told = [_UNWITNESSED] if evidence.unwitnessed else []
        plan = replace(plan, refusals=[*plan.refusals, *told, *map(_link_elsewhere, tally.linked)])
        return report_of(
            place,
            plan,
            tally.artifacts,
            _measured(tally, proof),
            tally.pending,
            verification_of(evidence, proof.verdict, lambda path: named(place, path)),
            receipt,
        )


def _link_elsewhere(relative: str) -> str:
    return (
        f"{relative} has another name (a hard link) under which its old content can still be read; it was not touched."
    )


def _measured(tally: _Tally, proof: Proof) -> Measured:
    blocks = [
        OldBlocks.model_validate({"file_system": system, "fate": fate, "files": files})
        for (system, fate), files in sorted(tally.blocks.items())
    ]
    return Measured(
        tombstones=tally.tombstones,
        leftover_files=tally.leftovers,
        full_text="rewritten" if tally.counts.get("fts_rows") else "untouched",
        write_ahead_log="truncated" if proof.truncated else "pinned",
        database=proof.method,
        old_blocks=blocks,
    )


def _complete(
    place: Place, stores: Stores, evidence: Evidence, tally: _Tally, proof: Proof, *, finished: bool
) -> ReceiptSummary | None:
    """Marks the receipt complete, with those of the earlier runs that this one finished."""
    if stores.memory is None:
        return None
    if finished:
        counts = tally.artifacts.model_dump(by_alias=True)
        files = {name: counts[name] for name in _FILE_COUNTS if counts[name]}
        body = completed_body(evidence, proof, files, _head(stores.state))
        for receipt in dict.fromkeys([evidence.receipt, *(erasure.id for erasure in evidence.resumed)]):
            _core.complete_receipt(stores.memory, receipt, place.agent, body, layout.clock_ms())
        stores.checkpoint()
    head = _head(stores.memory)
    return ReceiptSummary(id=evidence.receipt, resumed=bool(evidence.resumed), completed=finished, chain=head)


def _head(store: _core.Store | _core.StateStore | None) -> ChainHead | None:
    links = _core.receipts(store) if store else []
    return ChainHead(seq=links[-1].seq, hash=links[-1].hash) if links else None


def _refuse_unwritable(place: Place) -> None:
    """Refuses before a database is opened for writing, which would leave files beside it."""
    for database in (place.agent_database, place.state_database):
        if database.exists():
            _refuse_without_room(str(database.parent), 0)


def _refuse_early(place: Place, stores: Stores, plan: Plan) -> None:
    """Refuses what can be seen to fail half way, while nothing has been written."""
    if stores.memory:
        _refuse_taken_tombstones(place, stores.memory, plan)
    needed: dict[str, list[int]] = {}
    for path in (*(file.path for file in plan.changed), *plan.corpus.rewritten_files, *plan.corpus.removed_files):
        needed.setdefault(os.path.dirname(path), []).append(os.stat(path).st_size)
    for folder, sizes in needed.items():
        _refuse_without_room(folder, sum(sorted(sizes)[-_AT_ONCE:]))
    if plan.index and plan.index.counts.chunks:
        _refuse_without_room(str(place.agent_database.parent), place.agent_database.stat().st_size)


def _refuse_taken_tombstones(place: Place, memory: _core.Store, plan: Plan) -> None:
    taken = memory.tombstones_of_others(place.agent, plan.selection.session_ids)
    if taken:
        session_id, agent = taken[0]
        message = (
            f"Session {session_id} was forgotten for agent {agent} in the same database, and a tombstone holds one "
            f"agent: run forget for agent {agent}, or give the sessions different ids"
        )
        raise _core.ForgetRefused(message)


def _refuse_without_room(folder: str, size: int) -> None:
    if not os.access(folder, os.W_OK):
        raise _core.ForgetRefused(f"{folder} cannot be written; make it writable, nothing was changed")
    free, needed = shutil.disk_usage(folder).free, size + _SPARE_BYTES
    if free < needed:
        message = f"{folder} has {free} bytes free, {needed} are needed; make room, nothing was changed"
        raise _core.ForgetRefused(message)


def _destroy(
    place: Place, stores: Stores, wish: Wish, step: Step, plan: Plan, tally: _Tally, evidence: Evidence
) -> Plan:
    """Steps 1 to 6. What changed while it was read is planned again before the evidence goes."""
    first = plan
    for attempt in range(_REPLANS):
        step("Noting what must vanish")
        gather(place, stores, wish, plan, evidence)
        try:
            _purge_databases(place, stores, step, plan, tally)
        except _core.LineageChanged:
            if attempt == _REPLANS - 1:
                raise
            plan = make_plan(place, stores, wish, step, plan.lineage.entry_keys)
            continue
        step("Rewriting memory files")
        _rewrite_files(plan.changed, plan.scrubber, tally)
        if tally.pending or not _changed_since(place, plan):
            break
        plan = make_plan(place, stores, wish, step, plan.lineage.entry_keys)
    else:
        tally.pending.append("memory files keep changing")
    if not tally.pending:
        _destroy_evidence(place, stores, step, plan, tally)
    return _joined(first, plan)


def _joined(first: Plan, last: Plan) -> Plan:
    """The selection as it was found before anything went, with the keys that later plans added."""
    stacked = sorted({*first.stacked_keys, *last.stacked_keys})
    return first if first is last else replace(first, lineage=last.lineage, stacked_keys=stacked)


def _purge_databases(place: Place, stores: Stores, step: Step, plan: Plan, tally: _Tally) -> None:
    ids, keys, digest = plan.selection.session_ids, plan.extra_keys, plan.lineage.digest
    now = layout.clock_ms()
    if stores.memory and plan.index:
        step("Writing tombstones")
        tally.tombstones += stores.memory.bury(place.agent, ids, keys, digest, now)
        joined, digest = stores.memory.join_origins(place.agent, plan.stacked_keys, ids, keys, digest)
        tally.joined += joined
        step("Deleting index rows")
        gone = stores.memory.purge_index(place.agent, plan.index, ids, keys, digest)
        tally.add(
            index_chunks=gone.chunks,
            index_sources=gone.sources,
            fts_rows=gone.fts_rows,
            vector_rows=gone.vector_rows,
            embedding_cache_rows=gone.embedding_cache_rows,
        )
    if stores.state and plan.state:
        step("Deleting plugin state")
        rows = stores.state.apply(plan.state, now)
        tally.add(
            short_term_entries=rows.short_term_entries,
            seen_hash_scopes=rows.seen_hash_scopes,
            backups=rows.backups,
        )


def _rewrite_files(files: Sequence[_core.MemoryFile], scrubber: _core.Scrubber, tally: _Tally) -> None:
    rewritten: list[str] = []
    for file, found in zip(files, scrubber.rewrite_files(files), strict=True):
        if found.error is not None:
            tally.pending.append(f"{file.relative}: {found.error}")
        elif found.changed:
            rewritten.append(file.path)
            tally.replaced(file.relative, found.old)
            tally.files.add(file.relative)
            tally.add(memory_entries=found.entries, memory_lines=found.lines)
    _core.sync_folders(rewritten)


def _changed_since(place: Place, plan: Plan) -> bool:
    """Whether there are other files now, or one that the plan left alone, or a corpus file, is not the one it read."""
    listing = _core.memory_files(place.workspace)
    if _paths(listing) != _paths(plan.listing):
        return True
    left_alone = [not scan.changed for scan in plan.scans] + [True] * len(plan.listing.corpus)
    corpus = [_core.MemoryFile(path, path) for path in plan.listing.corpus]
    now = _core.file_stamps([*plan.listing.files, *corpus])
    return any(same and before != after for same, before, after in zip(left_alone, plan.stamps, now, strict=True))


def _paths(listing: _core.MemoryFiles) -> list[str]:
    return [*(file.path for file in listing.files), *listing.corpus]


def _destroy_evidence(place: Place, stores: Stores, step: Step, plan: Plan, tally: _Tally) -> None:
    """Corpus lines, origin rows and left-over files: what a rerun would have needed to find the rest."""
    step("Removing corpus lines")
    files = [] if plan.unreadable else [*plan.corpus.rewritten_files, *plan.corpus.removed_files]
    for path, (lines, old, reason) in zip(files, _core.remove_corpus_lines(files, plan.refs), strict=True):
        tally.replaced(place.relative(path), old)
        if reason is None:
            tally.add(session_corpus_files=1, session_corpus_lines=lines)
        else:
            tally.pending.append(f"{place.relative(path)}: {reason}")
    _core.sync_folders(files)
    if tally.pending:
        return
    swept = [
        (path, *outcome)
        for path, outcome in zip(plan.listing.leftovers, _core.remove_leftovers(plan.listing.leftovers), strict=True)
    ]
    for store in (stores.memory, stores.state):
        swept += _core.sweep_beside(store) if store else []
    for path, old, reason in swept:
        tally.replaced(named(place, path), old)
        if reason is None:
            tally.leftovers += 1
        else:
            tally.pending.append(f"{named(place, path)}: {reason}")
    if stores.memory and not plan.hidden:
        step("Deleting origin rows")
        gone = stores.memory.delete_origins(place.agent, plan.lineage.entry_keys)
        tally.add(origin_rows=max(gone - tally.joined, 0))
