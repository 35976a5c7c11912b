"""The report of a deletion: a plan before it, a measurement after it.

Field names on the wire are those of OpenClaw's `memory forget --json`; the fields that it does not have come after
its own. There is no text of any session in a report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer
from pydantic.alias_generators import to_camel

from cenotaph import layout
from cenotaph.verify.judge import told

if TYPE_CHECKING:
    from collections.abc import Iterator

INCOMPLETE = 3
"""Exit status of a deletion that knows of something it could not do."""


class _Wire(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="forbid")


class SessionResolution(_Wire):
    """How one selected session was found. `session_key` is absent for an unresolved value."""

    session_id: str
    session_key: str | None = None
    source: Literal["live", "archived", "unresolved"]

    @model_serializer(mode="wrap")
    def _without_absent_key(self, handler: SerializerFunctionWrapHandler) -> dict[str, object]:
        fields: dict[str, object] = handler(self)
        return {name: value for name, value in fields.items() if value is not None}


class ParticipantMatch(_Wire):
    """The typed identities behind one raw participant id; empty when no live session has it."""

    actor_id: str
    identities: list[dict[str, str | None]]


class CuratedWrite(_Wire):
    """A file that a selected session wrote on purpose, and that is left alone. `observed_at` in ms since the epoch."""

    relative_path: str
    observed_at: int


class ExternalMatch(_Wire):
    """A file of `memory.search.extraPaths` that holds forgotten text and is left alone."""

    path: str
    entries: int
    lines: int


class Artifacts(_Wire):
    """Counts of what a deletion removes, or removed."""

    memory_files: int = 0
    memory_entries: int = 0
    memory_lines: int = 0
    session_corpus_files: int = 0
    session_corpus_lines: int = 0
    index_chunks: int = 0
    index_sources: int = 0
    fts_rows: int = 0
    vector_rows: int = 0
    embedding_cache_rows: int = 0
    short_term_entries: int = 0
    seen_hash_scopes: int = 0
    backups: int = 0
    origin_rows: int = 0


class OldBlocks(_Wire):
    """Blocks of files that were replaced or removed.

    `overwritten`: zeros were written over them; `linked`: another name still leads to them; `unsupported`: the file
    system writes changes elsewhere and keeps them; `failed`: they could not be written.
    """

    file_system: str
    fate: Literal["overwritten", "linked", "unsupported", "failed"]
    files: int


class Measured(_Wire):
    """What only a real run can know. `None` in the report of a dry run."""

    tombstones: int
    """Sessions that had no tombstone before."""
    leftover_files: int
    """Temporary files of interrupted rewrites that were removed."""
    full_text: Literal["rewritten", "untouched"]
    """Whether the segments of the full-text index were written anew."""
    write_ahead_log: Literal["truncated", "pinned"]
    """`pinned`: a reader of another process keeps old pages; run the same command when it is gone."""
    database: Literal["secure-delete", "freelist", "vacuum"]
    """What it took until no forgotten byte was found in the databases: deleting alone, which overwrites; erasing free
    pages, too; writing the file anew, because old bytes lay in pages that are in use."""
    old_blocks: list[OldBlocks]
    """What became of the blocks of rewritten and removed files, by file system."""


class Place(_Wire):
    """A place where a verification found forgotten texts. `part`: file, member, row, slack, free, log, journal."""

    path: str
    part: str
    table: str | None
    needles: int


class Kept(_Wire):
    """Places that hold forgotten texts by design."""

    what: str
    places: int


class Verification(_Wire):
    """What a byte for byte search of the state directory and the workspaces came to."""

    result: Literal["clean", "residue", "not-run"]
    needles: int
    """Texts, words and embeddings that were looked for, each in all its spellings."""
    shared_needles: int
    """Texts that were not looked for, because surviving sessions said them too."""
    files: int
    bytes: int
    residue: list[Place]
    kept: list[Kept]
    review: list[Place]
    """Files that a deletion never edits; their owner may want to."""


class ChainHead(_Wire):
    """Last link of the chain of receipts; `hash` in hex."""

    seq: int
    hash: str


class ReceiptSummary(_Wire):
    """The receipt of a run."""

    id: str
    resumed: bool
    """It was begun by an earlier run that did not get to the end; the counts are what that one had left."""
    completed: bool
    chain: ChainHead | None


class ForgetReport(_Wire):
    """What `forget` will do, or did."""

    agent_id: str
    dry_run: bool
    session_ids: list[str]
    participant_matches: list[ParticipantMatch]
    session_resolutions: list[SessionResolution]
    entry_keys: list[str]
    mixed_lineage_entry_keys: list[str]
    untargetable_entry_keys: list[str]
    curated_writes: list[CuratedWrite]
    artifacts: Artifacts
    refusals: list[str]
    external_matches: list[ExternalMatch]
    shared_snippet_lines: int
    """Removed lines of which every matching snippet also stands in the corpus of a session that stays."""
    shared_snippet_locations: list[str]
    """The same lines as `path:line`."""
    pending: list[str]
    """What is known to be left; the same command, run again, finishes it."""
    measured: Measured | None
    verification: Verification | None
    """None in the report of a dry run, and where nothing was selected."""
    receipt: ReceiptSummary | None
    """None in the report of a dry run, and where there is no agent database to keep one."""

    @property
    def exit_status(self) -> int:
        """0 when nothing is known to be left, 3 otherwise."""
        return INCOMPLETE if self.pending else 0

    def to_json(self) -> str:
        """The report as the command line prints it: by its wire names, with two blanks of indent."""
        return self.model_dump_json(by_alias=True, indent=2)


def utf16_order(text: str) -> bytes:
    """Sort key of UTF-16 code units, the order of key lists in a report."""
    return text.encode("utf-16-be", "surrogatepass")


def describe(report: ForgetReport) -> Iterator[str]:
    """The report for people, a line each, with the labels of the memory command line."""
    counts = report.artifacts
    title = "Memory Deletion Preview" if report.dry_run else "Memory Deletion"
    yield f"{title} ({report.agent_id})"
    yield f"Source sessions: {len(report.session_ids)}"
    yield f"Source transcripts retained: {len(report.session_ids)}"
    yield f"Deleted entries: {len(report.entry_keys)}"
    yield f"Mixed-lineage entries deleted whole: {len(report.mixed_lineage_entry_keys)}"
    yield f"Entries without targetable provenance: {len(report.untargetable_entry_keys)}"
    yield f"Curated writes retained: {len(report.curated_writes)}"
    yield (
        f"Memory artifacts: {counts.memory_files} files, {counts.memory_entries} entries, "
        f"{counts.memory_lines} quoted lines"
    )
    yield f"Session corpus: {counts.session_corpus_files} files, {counts.session_corpus_lines} lines"
    yield (
        f"Index artifacts: {counts.index_chunks} chunks, {counts.index_sources} sources, {counts.fts_rows} full-text "
        f"rows, {counts.vector_rows} vector rows, {counts.embedding_cache_rows} cached embeddings"
    )
    yield (
        f"Plugin state: {counts.short_term_entries} short-term entries, {counts.seen_hash_scopes} seen-hash scopes, "
        f"{counts.backups} backups"
    )
    yield f"Origin rows: {counts.origin_rows}"
    yield from _details(report)


def _details(report: ForgetReport) -> Iterator[str]:
    yield from _joined("Session IDs", report.session_ids)
    for resolution in report.session_resolutions:
        yield f"Session resolution: {resolution.session_id} ({resolution.source})"
    for match in report.participant_matches:
        who = f"{match.actor_id}: {_identities(match)}"
        yield f"Raw participant selector: {who}. Matches select whole sessions across identity namespaces."
    yield from _joined("Mixed-lineage entry keys", report.mixed_lineage_entry_keys)
    yield from _joined("Untargetable entry keys", report.untargetable_entry_keys)
    for write in report.curated_writes:
        yield f"Curated write retained: {write.relative_path} ({layout.iso_moment(write.observed_at)})"
    for match in report.external_matches:
        yield f"External match, not edited: {match.path} ({match.entries} entries, {match.lines} quoted lines)"
    yield from (f"Refused: {refusal}" for refusal in report.refusals)
    yield from _shared(report)
    yield from _proof(report)
    yield from (f"Pending: {rest}" for rest in report.pending)
    if report.dry_run:
        yield "Dry run: no memory files, index rows, or plugin state were changed."


def _proof(report: ForgetReport) -> Iterator[str]:
    found = report.verification
    if found is not None:
        yield (
            f"Verification: {told(found.result, found.needles)} "
            f"({found.needles} needles, {found.files} files, {found.bytes} bytes; "
            f"{found.shared_needles} texts that surviving sessions also said were not looked for)"
        )
        yield from (f"Kept by design: {kept.what} ({kept.places} places)" for kept in found.kept)
        yield from (f"To review, not edited: {place.path} ({place.needles} forgotten texts)" for place in found.review)
    if report.measured is not None:
        yield f"Database bytes: {_METHODS[report.measured.database]}"
        yield from (_blocks(old) for old in report.measured.old_blocks)
    if report.receipt is not None:
        state = "completed" if report.receipt.completed else "not completed"
        resumed = ", resumed from an earlier run; the counts are what it had left" if report.receipt.resumed else ""
        yield f"Receipt: {report.receipt.id} ({state}{resumed})"


_METHODS = {
    "secure-delete": "overwritten as they were deleted",
    "freelist": "overwritten as they were deleted; free pages of earlier deletions erased",
    "vacuum": "overwritten as they were deleted; the file was written anew to clear earlier deletions",
}
_FATES = {
    "overwritten": "overwritten",
    "linked": "left, because another name leads to them",
    "unsupported": "left, because the file system does not write in place",
    "failed": "could not be overwritten",
}


def _blocks(old: OldBlocks) -> str:
    return f"Old blocks of {old.files} files on {old.file_system}: {_FATES[old.fate]}"


def _joined(label: str, values: list[str]) -> Iterator[str]:
    if values:
        yield f"{label}: {', '.join(values)}"


def _shared(report: ForgetReport) -> Iterator[str]:
    if report.shared_snippet_lines:
        yield f"Lines that surviving sessions also said: {report.shared_snippet_lines} (kept with --keep-shared)"
    yield from (f"Shared line: {location}" for location in report.shared_snippet_locations)


def _identities(match: ParticipantMatch) -> str:
    import json  # noqa: PLC0415 -- only a participant selection needs it

    if not match.identities:
        return "no live match"
    return ", ".join(json.dumps(identity, ensure_ascii=False, separators=(",", ":")) for identity in match.identities)
