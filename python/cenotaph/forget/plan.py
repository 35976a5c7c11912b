"""What a deletion would remove, found without writing a byte.

A dry run is this plan; a real run makes it again under the workspace lock and carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from cenotaph import _core
from cenotaph.forget.evidence import earlier_runs
from cenotaph.forget.external import external_files
from cenotaph.forget.select import Selection, select
from cenotaph.session_store import archive_text, events_of, read_sessions
from cenotaph.sessions import Excluded, excluded_session_ids
from cenotaph.transcript import curated_writes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from cenotaph.forget.evidence import Earlier
    from cenotaph.forget.select import Selectors
    from cenotaph.place import Place
    from cenotaph.sessions import Session, Sessions
    from cenotaph.stores import Stores
    from cenotaph.transcript import CuratedWrite

Step: TypeAlias = "Callable[[str], None]"
"""Is told the name of each step as it begins."""
Stamp: TypeAlias = "tuple[int, int, int, int, int] | None"

_ROUNDS = 8
"""Stacked markers may add keys that uncover more stacked markers; each round is one more pass over the files."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the caller asked for: selectors, and whether lines that others also said stay (V20)."""

    selectors: Selectors
    keep_shared: bool


@dataclass(frozen=True, slots=True)
class ExternalMatch:
    """A file of `extraPaths` that holds forgotten text."""

    path: str
    entries: int
    lines: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that goes, and what is known of it."""

    selection: Selection
    refs: _core.Refs
    scrubber: _core.Scrubber
    lineage: _core.Lineage
    earlier: Earlier | None
    extra_keys: list[str]
    """Keys that are selected although no origin row says so: stacked markers, and keys that an earlier plan found."""
    stacked_keys: list[str]
    listing: _core.MemoryFiles
    scans: list[_core.FileScan]
    corpus: _core.Corpus
    stamps: list[Stamp]
    """Of memory files, then of corpus files, as they were before they were read."""
    external: list[ExternalMatch]
    index: _core.IndexPlan | None
    state: _core.StatePlan | None
    curated: list[tuple[str, int]]
    refusals: list[str]
    unread: list[str]
    """Refusals that leave the deletion incomplete."""
    hidden: bool
    """Whether text may survive in a place that was not read: then no origin row is dropped."""
    unreadable: bool
    """Whether a memory or corpus file could not be read: then no corpus line is dropped either, because what the file
    quotes can only be found by it."""

    @property
    def changed(self) -> list[_core.MemoryFile]:
        """Memory files that lose something, in reading order."""
        return [file for file, scan in zip(self.listing.files, self.scans, strict=True) if scan.changed]


@dataclass(frozen=True, slots=True)
class _Texts:
    """What the workspace says."""

    scrubber: _core.Scrubber
    lineage: _core.Lineage
    stacked: list[str]
    scans: list[_core.FileScan]


def make_plan(place: Place, stores: Stores, wish: Wish, step: Step, extra_keys: Sequence[str] = ()) -> Plan:
    """Finds everything that the selected sessions left behind.

    `extra_keys` stay selected whatever the origin rows say. Raises `StoreError`, `ConfigError`, `OSError`.
    """
    step("Reading sessions")
    known = read_sessions(stores.sessions, stores.location, place.agent)
    selection = select(wish.selectors, known)
    ids = selection.session_ids
    refs = _core.Refs(place.agent, ids, selection.whole_keys)
    step("Reading the workspace")
    listing = _core.memory_files(place.workspace)
    corpus_files = [_core.MemoryFile(path, path) for path in listing.corpus]
    stamps = _core.file_stamps([*listing.files, *corpus_files])
    corpus = _core.scan_corpus(listing.corpus, refs)
    earlier = earlier_runs(place, stores.memory, ids)
    lineage = _lineage(place, stores, ids, extra_keys)
    scrubber = _scrubber(wish, lineage, refs, corpus, listing, earlier)
    texts = _read_texts(place, stores, ids, listing, lineage, scrubber, extra_keys)
    external = _external_matches(place, texts.scrubber, listing) if ids else []
    step("Reading plugin state and index")
    entry_keys = texts.lineage.entry_keys
    state = stores.state and stores.state.plan(place.workspace_key, place.agent, refs, texts.scrubber, entry_keys)
    excluded = _internal(stores, known, selection)
    index = stores.memory and _plan_index(place, stores.memory, excluded.ids, selection, refs, texts, listing, corpus)
    curated, unreadable = _curated_writes(place, stores, selection)
    unread = [*known.refusals, *excluded.refusals, *unreadable, *_unread(listing, texts.scans, corpus, state)]
    unreadable_files = bool(listing.failures or corpus.failures or any(scan.error for scan in texts.scans))
    return Plan(
        selection=selection,
        refs=refs,
        scrubber=texts.scrubber,
        lineage=texts.lineage,
        earlier=earlier,
        extra_keys=sorted({*extra_keys, *texts.stacked}),
        stacked_keys=texts.stacked,
        listing=listing,
        scans=texts.scans,
        corpus=corpus,
        stamps=stamps,
        external=external,
        index=index,
        state=state,
        curated=curated,
        refusals=[*_history_refusals(listing, texts.scans), *_link_refusals(place, listing), *unread],
        unread=unread,
        hidden=bool(listing.links) or unreadable_files,
        unreadable=unreadable_files,
    )


def _lineage(place: Place, stores: Stores, ids: list[str], extra_keys: Sequence[str]) -> _core.Lineage:
    if stores.memory is None:
        return _core.Lineage(sorted(extra_keys))
    return stores.memory.lineage(place.agent, ids, extra_keys)


def _scrubber(
    wish: Wish,
    lineage: _core.Lineage,
    refs: _core.Refs,
    corpus: _core.Corpus,
    listing: _core.MemoryFiles,
    earlier: Earlier | None,
) -> _core.Scrubber:
    scrubber = _core.Scrubber(refs, lineage.entry_keys, lineage.known_keys, corpus, wish.keep_shared, listing.corpus)
    if earlier is None:
        return scrubber
    erased = _core.unsaid(earlier.needles, refs, listing.corpus) if wish.keep_shared else earlier.needles
    return scrubber.with_erased(erased)


def _read_texts(
    place: Place,
    stores: Stores,
    ids: list[str],
    listing: _core.MemoryFiles,
    lineage: _core.Lineage,
    scrubber: _core.Scrubber,
    extra_keys: Sequence[str],
) -> _Texts:
    stacked: list[str] = []
    for _ in range(_ROUNDS):
        scans = scrubber.scan_files(listing.files)
        added = {key for scan in scans for key in scan.stacked}.difference(lineage.entry_keys)
        if not added:
            return _Texts(scrubber, lineage, stacked, scans)
        stacked = sorted({*stacked, *added})
        lineage = _lineage(place, stores, ids, [*extra_keys, *stacked])
        scrubber = scrubber.with_keys(lineage.entry_keys, lineage.known_keys)
    message = f"Stacked markers still name new entry keys after {_ROUNDS} passes; look at the markers in MEMORY.md"
    raise _core.ForgetRefused(message)


def _plan_index(
    place: Place,
    memory: _core.Store,
    excluded: Collection[str],
    selection: Selection,
    refs: _core.Refs,
    texts: _Texts,
    listing: _core.MemoryFiles,
    corpus: _core.Corpus,
) -> _core.IndexPlan:
    changed = [file.relative for file, scan in zip(listing.files, texts.scans, strict=True) if scan.changed]
    deleted = [place.relative(path) for path in corpus.removed_files]
    rewritten = [place.relative(path) for path in corpus.rewritten_files]
    return memory.plan_index(
        refs,
        _core.Refs(place.agent, sorted(excluded)),
        texts.scrubber,
        [*changed, *rewritten, *deleted],
        deleted,
        [name for file in external_files(place) for name in (file.path, place.relative(file.path))],
        bool(selection.targets),
    )


def _external_matches(place: Place, scrubber: _core.Scrubber, listing: _core.MemoryFiles) -> list[ExternalMatch]:
    own = {file.path for file in listing.files}
    files = [file for file in external_files(place) if file.path not in own]
    scans = scrubber.scan_files(files)
    return [
        ExternalMatch(file.relative, scan.entries, scan.lines)
        for file, scan in zip(files, scans, strict=True)
        if scan.changed
    ]


def _internal(stores: Stores, known: Sessions, selection: Selection) -> Excluded:
    if not selection.targets:
        return Excluded(frozenset())
    return excluded_session_ids(known.sessions, lambda session: archive_text(stores.sessions, session))


def _curated_writes(place: Place, stores: Stores, selection: Selection) -> tuple[list[tuple[str, int]], list[str]]:
    """What the write observer saw, then what tool calls of the transcripts named; and transcripts that are damaged."""
    ids = {target.session_id for target in selection.targets}
    keys = {target.session_key for target in selection.targets if target.session_key}
    writes: dict[str, int] = {}
    for write in stores.state.observed_writes(place.real_workspace_key) if stores.state and ids else ():
        if write.session_id in ids or (write.session_id is None and write.session_key in keys):
            writes.setdefault(write.relative_path, write.observed_at)
    refusals: list[str] = []
    for session in _in_reading_order(selection):
        try:
            for write in _called_writes(place, stores, session):
                writes.setdefault(write.relative_path, write.observed_at)
        except (OSError, _core.StoreError) as error:
            refusals.append(f"Cannot read the transcript of {session.session_id}: {error}")
    paths = list(writes)
    return [(paths[index], writes[paths[index]]) for index in _core.locale_order(paths)], refusals


def _in_reading_order(selection: Selection) -> list[Session]:
    """Current sessions by key, then archives: the first call that names a file gives its time, so the order shows."""
    chosen = [target.session for target in selection.targets if target.session]
    current = [session for session in chosen if session.source == "live"]
    archived = [session for session in chosen if session.source == "archived"]
    return sorted(current, key=lambda session: session.session_key or "") + archived


def _called_writes(place: Place, stores: Stores, session: Session) -> list[CuratedWrite]:
    at = session.transcript_updated_at or session.created_at
    return curated_writes(events_of(stores.sessions, stores.location, session), place.workspace, at)


def _history_refusals(listing: _core.MemoryFiles, scans: list[_core.FileScan]) -> list[str]:
    return [
        f"Cannot trace historical consolidation highlights in {file.relative}; review them manually."
        for file, scan in zip(listing.files, scans, strict=True)
        if scan.history_refused
    ]


def _link_refusals(place: Place, listing: _core.MemoryFiles) -> list[str]:
    return [
        f"Not followed: the link {place.relative(link)}; origin rows are kept, because text may survive behind it."
        for link in listing.links
    ]


def _unread(
    listing: _core.MemoryFiles,
    scans: list[_core.FileScan],
    corpus: _core.Corpus,
    state: _core.StatePlan | None,
) -> list[str]:
    files: Iterable[tuple[str, str]] = (
        *listing.failures,
        *((file.relative, scan.error) for file, scan in zip(listing.files, scans, strict=True) if scan.error),
        *corpus.failures,
    )
    return [
        *(f"Cannot read {path}: {reason}" for path, reason in files),
        *(f"Cannot read the plugin state row {row}; it is left as it is." for row in (state.failures if state else ())),
    ]
