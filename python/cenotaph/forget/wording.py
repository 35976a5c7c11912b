"""From a plan, and what was measured, to the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cenotaph import _core
from cenotaph.forget.report import (
    Artifacts,
    CuratedWrite,
    ExternalMatch,
    ForgetReport,
    Kept,
    Measured,
    ParticipantMatch,
    ReceiptSummary,
    SessionResolution,
    Verification,
    utf16_order,
)
from cenotaph.forget.report import Place as ReportPlace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cenotaph.forget.evidence import Evidence
    from cenotaph.forget.plan import Plan
    from cenotaph.forget.select import Selection
    from cenotaph.place import Place
    from cenotaph.verify.judge import Verdict
    from cenotaph.verify.process import Place as Hit


def report_of(
    place: Place,
    plan: Plan,
    artifacts: Artifacts | None = None,
    measured: Measured | None = None,
    pending: Sequence[str] = (),
    verification: Verification | None = None,
    receipt: ReceiptSummary | None = None,
) -> ForgetReport:
    """The report of a plan; with `measured`, of the run that carried it out."""
    shared = [
        f"{file.relative}:{line}"
        for file, scan in zip(plan.listing.files, plan.scans, strict=True)
        for line in scan.shared_lines
    ]
    entry_keys = plan.lineage.entry_keys
    return ForgetReport(
        agent_id=place.agent,
        dry_run=measured is None,
        session_ids=sorted(plan.selection.session_ids, key=utf16_order),
        participant_matches=_participants(plan.selection),
        session_resolutions=_resolutions(plan.selection),
        entry_keys=sorted(entry_keys, key=utf16_order),
        mixed_lineage_entry_keys=sorted({*plan.lineage.mixed, *plan.stacked_keys}, key=utf16_order),
        untargetable_entry_keys=sorted(
            {key for scan in plan.scans for key in scan.untraced}.difference(entry_keys), key=utf16_order
        ),
        curated_writes=[CuratedWrite(relative_path=path, observed_at=at) for path, at in plan.curated],
        artifacts=artifacts or _planned(plan),
        refusals=plan.refusals,
        external_matches=[
            ExternalMatch(path=match.path, entries=match.entries, lines=match.lines) for match in plan.external
        ],
        shared_snippet_lines=len(shared),
        shared_snippet_locations=shared,
        pending=[*plan.unread, *pending],
        measured=measured,
        verification=verification,
        receipt=receipt,
    )


def verification_of(evidence: Evidence, verdict: Verdict | None, named: Callable[[str], str]) -> Verification:
    """What a search came to; `named` shortens paths."""
    if verdict is None:
        return Verification(
            result="not-run",
            needles=evidence.count,
            shared_needles=evidence.shared,
            files=0,
            bytes=0,
            residue=[],
            kept=[],
            review=[],
        )
    return Verification(
        result="clean" if verdict.is_clean else "residue",
        needles=evidence.count,
        shared_needles=evidence.shared,
        files=verdict.files,
        bytes=verdict.bytes,
        residue=[_place(hit, named) for hit in verdict.residue],
        kept=[Kept(what=what, places=places) for what, places in sorted(verdict.kept.items())],
        review=[_place(hit, named) for hit in verdict.review],
    )


def _place(hit: Hit, named: Callable[[str], str]) -> ReportPlace:
    return ReportPlace(path=named(hit.path), part=hit.part, table=hit.table, needles=hit.needles)


def _planned(plan: Plan) -> Artifacts:
    chosen = bool(plan.selection.targets)
    index = plan.index.counts if plan.index and chosen else None
    state = plan.state.counts if plan.state and chosen else None
    return Artifacts(
        memory_files=len(plan.changed),
        memory_entries=sum(scan.entries for scan in plan.scans),
        memory_lines=sum(scan.lines for scan in plan.scans),
        session_corpus_files=0
        if plan.unreadable
        else len(plan.corpus.rewritten_files) + len(plan.corpus.removed_files),
        session_corpus_lines=0 if plan.unreadable else plan.corpus.lines,
        index_chunks=index.chunks if index else 0,
        index_sources=index.sources if index else 0,
        fts_rows=index.fts_rows if index else 0,
        vector_rows=index.vector_rows if index else 0,
        embedding_cache_rows=index.embedding_cache_rows if index else 0,
        short_term_entries=state.short_term_entries if state else 0,
        seen_hash_scopes=state.seen_hash_scopes if state else 0,
        backups=state.backups if state else 0,
        origin_rows=0 if plan.hidden else plan.lineage.origin_rows,
    )


def _participants(selection: Selection) -> list[ParticipantMatch]:
    return [
        ParticipantMatch(actor_id=actor, identities=[identity.as_reported() for identity in identities])
        for actor, identities in selection.identities
    ]


def _resolutions(selection: Selection) -> list[SessionResolution]:
    targets = selection.targets
    order = _core.locale_order([target.session_id for target in targets])
    return [
        SessionResolution(
            session_id=targets[index].session_id,
            session_key=targets[index].session_key,
            source=targets[index].source,
        )
        for index in order
    ]
