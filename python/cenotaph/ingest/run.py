"""One ingestion: what is new in sessions and notes, into the corpus and the short-term store.

Order of writing, under the workspace lock: origins, corpus lines, then everything else in one transaction. A run that
dies between them is repeated by the next one: origins are there already, lines are not added twice, and what was read
is only marked as read at the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cenotaph import _core, layout
from cenotaph.admission import FORGOTTEN, admission
from cenotaph.days import day_of, is_within, zone_of
from cenotaph.ingest.notes import NOTES, daily_notes, read_notes
from cenotaph.ingest.report import ExcludedSession, IngestReport
from cenotaph.ingest.seen import SEEN, Seen
from cenotaph.ingest.session_lines import Candidate, Progress, Source, read_progress, scan
from cenotaph.recall.entry import Provenance, Signal
from cenotaph.recall.store import ShortTerm
from cenotaph.session_store import events_of, read_sessions
from cenotaph.stores import open_stores, workspace_lock
from cenotaph.transcript import project

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cenotaph.admission import Admission
    from cenotaph.place import Place
    from cenotaph.sessions import Session
    from cenotaph.stores import Stores

PROGRESS = "dreaming-session-ingestion-files"
SCORE, QUERY = 0.58, "__dreaming_sessions__:"
MOST_LINES, LEAST_OF_EACH, MOST_OF_EACH = 240, 12, 80
_CORPUS = "memory/.dreams/session-corpus"


@dataclass(frozen=True, slots=True)
class Reach:
    """How much one run takes. `lookback_days` None: every day; `is_capped` False: all there is."""

    lookback_days: int | None
    is_capped: bool = True


@dataclass(frozen=True, slots=True)
class _Rules:
    """What holds for every session of a run."""

    day_of: Callable[[int], str]
    is_wanted: Callable[[str], bool]
    redact: Callable[[str], str]
    reach: Reach


@dataclass(slots=True)
class _Read:
    """What the sessions had to tell."""

    candidates: list[Candidate]
    progress: dict[str, Progress | None]
    """By state key; None removes a row."""
    excluded: list[ExcludedSession]
    outcomes: Counter[str]
    unavailable: list[str]
    scopes: frozenset[str] = frozenset()
    """Scopes of all sessions that are there."""
    is_capped: bool = False


def ingest(place: Place, reach: Reach, redact: Callable[[str], str], step: Callable[[str], None]) -> IngestReport:
    """Reads what is new and records it. `redact` takes secrets out of the text of a message.

    Raises `StoreBusy` when a lock is held for over 10 seconds, `ForgetRefused` when the corpus folder is a link,
    `StoreError`, `ConfigError`, `OSError`. A session that cannot be read is in the report, and the rest is done.
    """
    step("Waiting for the workspace lock")
    with open_stores(place, write=True) as stores, workspace_lock(place, stores.state):
        if stores.memory is None or stores.state is None:
            return IngestReport.nothing(place.agent)
        return _ingest(place, stores.memory, stores.state, stores, reach, redact, step)


def _ingest(
    place: Place,
    memory: _core.Store,
    state: _core.StateStore,
    stores: Stores,
    reach: Reach,
    redact: Callable[[str], str],
    step: Callable[[str], None],
) -> IngestReport:
    now = layout.clock_ms()
    zone = zone_of(place.config)
    today = day_of(now, zone)
    short_term = ShortTerm.read(state, place.workspace_key)
    step("Reading notes")
    lookback = reach.lookback_days or 0
    notes = read_notes(
        daily_notes(place.workspace, today, lookback),
        state.rows(place.workspace_key, NOTES),
        state.observed_writes(place.real_workspace_key),
        today,
        place.config.dreaming.light.limit,
    )
    for signal in notes.signals:
        short_term.notice(signal, now)
    step("Reading sessions")
    seen = Seen(state.rows(place.workspace_key, SEEN))

    def is_wanted(day: str) -> bool:
        return reach.lookback_days is None or is_within(day, now, reach.lookback_days)

    rules = _Rules(lambda at: day_of(at, zone), is_wanted, redact, reach)
    read = _read_sessions(place, memory, state, stores, seen, rules)
    step("Recording origins")
    fresh = _with_origins(place, memory, short_term, read, today)
    _core.kill_point("ingest:origins")
    step("Writing the corpus")
    added = _write_corpus(place, short_term, fresh, today, now)
    _core.kill_point("ingest:corpus")
    step("Writing the short-term store")
    for candidate in fresh:
        seen.add(candidate.source.state_key, [candidate.message_hash])
    rows = [
        *short_term.changes(state, place.workspace_key, now),
        *notes.rows,
        *seen.changes(read.scopes),
        *((PROGRESS, key, each.to_json() if each else None) for key, each in read.progress.items()),
    ]
    state.put_rows(place.workspace_key, str(place.workspace), rows, now)
    _core.kill_point("ingest:state")
    return IngestReport(
        agent_id=place.agent,
        sessions=dict(read.outcomes),
        excluded=read.excluded,
        lines=len(fresh),
        added_lines=added,
        notes=notes.read,
        note_signals=len(notes.signals),
        unavailable=[*read.unavailable, *notes.unreadable],
        has_more=read.is_capped,
    )


# -- sessions -------------------------------------------------------------------------------------


def _read_sessions(
    place: Place,
    memory: _core.Store,
    state: _core.StateStore,
    stores: Stores,
    seen: Seen,
    rules: _Rules,
) -> _Read:
    known = read_sessions(stores.sessions, stores.location, place.agent)
    forgotten = frozenset(memory.forgotten(place.agent))
    policy = place.config.exclude_sessions
    decided = [(session, admission(session, policy, forgotten)) for session in known.sessions]
    before = {key: read_progress(value) for key, value in state.rows(place.workspace_key, PROGRESS)}
    sizes = dict(stores.sessions.transcript_sizes()) if stores.sessions else {}
    sources = sorted(
        (
            (_source(place.agent, session, sizes), session, verdict)
            for session, verdict in decided
            if session.is_current and verdict.verdict in ("admitted", "excluded") and session.kind == "interactive"
        ),
        key=lambda each: each[0].path,
    )
    read = _Read([], {}, [], Counter(), list(known.refusals))
    read.outcomes.update(verdict.verdict for _, verdict in decided if verdict.verdict not in ("admitted", "excluded"))
    most, of_each = _caps(len(sources), rules.reach)
    for source, session, verdict in sources:
        if verdict.verdict == "excluded":
            _exclude(read, source, verdict)
            continue
        progress = before.get(source.state_key)
        if progress is not None and progress.is_of(source):
            read.outcomes["unchanged"] += 1
            continue
        room = most - len(read.candidates)
        if room <= 0:
            read.is_capped = True
            break
        try:
            lines = project(
                list(events_of(stores.sessions, stores.location, session)), archived=False, redact=rules.redact
            )
        except (OSError, _core.StoreError) as error:
            read.unavailable.append(f"{session.session_id}: {error}")
            continue
        if lines.internal:
            read.outcomes["internal"] += 1
            continue
        hashes = seen.of(source.state_key, source.old_scope)
        found = scan(
            source, place.agent, lines.lines, progress, hashes, rules.day_of, rules.is_wanted, min(of_each, room)
        )
        read.candidates += found.candidates
        read.progress[source.state_key] = found.progress
        read.is_capped |= found.is_capped
        read.outcomes["scanned"] += 1
    own = f"{place.agent}:sessions/{place.agent}/"
    read.scopes = frozenset(
        _source(place.agent, session, sizes).state_key for session in known.sessions if session.source != "archived"
    )
    read.progress.update((key, None) for key in before if key.startswith(own) and key not in read.scopes)
    read.progress = {key: each for key, each in read.progress.items() if before.get(key) != each}
    return read


def _caps(sources: int, reach: Reach) -> tuple[int, int]:
    """Lines of one run, and of one session in it."""
    if not reach.is_capped:
        return 1 << 62, 1 << 62
    even = -(-MOST_LINES // max(sources, 1))
    return MOST_LINES, min(MOST_OF_EACH, max(LEAST_OF_EACH, even))


def _source(agent: str, session: Session, sizes: Mapping[str, int]) -> Source:
    path = f"sessions/{agent}/{session.session_id}"
    return Source(
        session_id=session.session_id,
        session_key=session.session_key,
        path=path,
        state_key=f"{agent}:{path}",
        old_scope=f"{agent}:{session.session_id}",
        mtime_ms=session.transcript_updated_at or session.created_at,
        size=sizes.get(session.session_id, 0),
    )


def _exclude(read: _Read, source: Source, verdict: Admission) -> None:
    """Replaces what was read of it before: when the rule goes, it is read from the beginning."""
    read.outcomes["excluded"] += 1
    read.excluded.append(ExcludedSession(session_id=source.session_id, reason=verdict.reason or ""))
    read.progress[source.state_key] = Progress(source.mtime_ms, 0, excluded_reason=verdict.reason)


# -- writing --------------------------------------------------------------------------------------


def _with_origins(place: Place, memory: _core.Store, short_term: ShortTerm, read: _Read, today: str) -> list[Candidate]:
    """Records where each line comes from; the lines of sessions that were forgotten meanwhile are left out."""
    origins = [
        (
            short_term.key_of(_signal(candidate, 0, today)),
            candidate.source.session_id,
            candidate.source.session_key,
            candidate.origin_class,
            candidate.observed_at,
        )
        for candidate in read.candidates
    ]
    refused = frozenset(memory.stage_origins(place.agent, origins)) if origins else frozenset[str]()
    for candidate in read.candidates:
        if candidate.source.session_id in refused:
            read.progress[candidate.source.state_key] = Progress(
                candidate.source.mtime_ms, 0, excluded_reason=FORGOTTEN
            )
    return [candidate for candidate in read.candidates if candidate.source.session_id not in refused]


def _write_corpus(place: Place, short_term: ShortTerm, candidates: Sequence[Candidate], today: str, now: int) -> int:
    """Adds the lines to the files of their days, and counts a signal for each; how many were not there before."""
    added = 0
    for day in sorted({candidate.day for candidate in candidates}):
        of_day = [candidate for candidate in candidates if candidate.day == day]
        lines = [candidate.rendered.encode() for candidate in of_day]
        numbers, fresh = _core.append_lines(place.workspace, f"{_CORPUS}/{day}.txt", lines)
        added += fresh
        for candidate, number in zip(of_day, numbers, strict=True):
            short_term.notice(_signal(candidate, number, today), now)
    return added


def _signal(candidate: Candidate, line: int, today: str) -> Signal:
    return Signal(
        kind="daily",
        path=f"{_CORPUS}/{candidate.day}.txt",
        start_line=line,
        end_line=line,
        snippet=candidate.snippet,
        score=SCORE,
        query=QUERY + candidate.day,
        day=today,
        provenance=Provenance(candidate.origin_class, "interactive", candidate.observed_at),
        is_deduped=True,
    )
