"""One short-term entry: what it holds, how it is stored, and what a signal changes in it. `dreaming.md` 2.1 and 2.3."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from cenotaph.layout import iso_moment
from cenotaph.recall.keys import claim_hash, normalised, query_hash
from cenotaph.recall.tags import concept_tags
from cenotaph.schema import as_list, as_table, as_text, is_number, read_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cenotaph.schema import Json
    from cenotaph.sessions import SessionKind
    from cenotaph.transcript import OriginClass

SignalKind: TypeAlias = Literal["recall", "daily", "grounded"]

MOST_HASHES = 32
MOST_DAYS = 16
_COUNTERS: dict[SignalKind, str] = {"recall": "recall_count", "daily": "daily_count", "grounded": "grounded_count"}
_TRUST: tuple[OriginClass, ...] = ("owner", "agent", "system", "untrusted")
"""From the most trusted to the least."""
_KINDS: tuple[SessionKind, ...] = ("interactive", "cron", "heartbeat", "subagent", "unknown")


def _least_trusted(one: OriginClass, two: OriginClass) -> OriginClass:
    return one if _TRUST.index(one) > _TRUST.index(two) else two


@dataclass(frozen=True, slots=True)
class Provenance:
    """Who said it, in what kind of session, when (ms since the epoch)."""

    origin_class: OriginClass = "agent"
    session_kind: SessionKind = "unknown"
    observed_at: int = 0
    supersedes_key: str | None = None

    def merged(self, other: Provenance) -> Provenance:
        """Of one claim from two places: the least trusted class, the kind that both have, the later time."""
        return Provenance(
            _least_trusted(self.origin_class, other.origin_class),
            self.session_kind if self.session_kind == other.session_kind else "unknown",
            max(self.observed_at, other.observed_at),
            self.supersedes_key if self.supersedes_key == other.supersedes_key else None,
        )


@dataclass(frozen=True, slots=True)
class Signal:
    """That something was noticed: a line of a note, of the corpus, or a search result."""

    kind: SignalKind
    path: str
    start_line: int
    end_line: int
    snippet: str
    score: float
    query: str
    day: str
    """To which day it counts."""
    provenance: Provenance = field(default_factory=Provenance)
    is_deduped: bool = False
    """Whether the same query counts once a day."""
    count: int = 1

    @property
    def claim(self) -> str:
        """Claim hash."""
        return claim_hash(self.snippet)


@dataclass(frozen=True, slots=True)
class Entry:
    """A claim with its signals. Times are ISO 8601 in UTC, days `YYYY-MM-DD`, lines count from 1."""

    key: str
    path: str
    start_line: int
    end_line: int
    snippet: str
    recall_count: int = 0
    daily_count: int = 0
    grounded_count: int = 0
    total_score: float = 0.0
    max_score: float = 0.0
    first_recalled_at: str = ""
    last_recalled_at: str = ""
    query_hashes: tuple[str, ...] = ()
    user_query_hashes: tuple[str, ...] | None = None
    recall_days: tuple[str, ...] = ()
    concept_tags: tuple[str, ...] = ()
    provenance: Provenance | None = None
    claim: str | None = None
    project_key: str | None = None
    promoted_at: str | None = None

    @property
    def signals(self) -> int:
        """All of its signals."""
        return self.recall_count + self.daily_count + self.grounded_count


def noticed(entry: Entry | None, key: str, signal: Signal, now_ms: int) -> Entry:
    """The entry after one more signal; `entry` is None for a new one."""
    if entry is None:
        entry = Entry(key, signal.path, signal.start_line, signal.end_line, signal.snippet)
        repeats = False
    else:
        repeats = query_hash(signal.query) in entry.query_hashes
    hashed = query_hash(signal.query)
    is_known = signal.is_deduped and repeats and signal.day in entry.recall_days
    added = 0 if is_known else signal.count
    counter = _COUNTERS[signal.kind]
    keeps_place = signal.kind == "daily" and entry.signals > 0
    # A note that is read again, word for word, was not recalled again.
    is_same = repeats and normalised(entry.snippet) == normalised(signal.snippet)
    keeps_time = entry.signals > 0 and is_same and (signal.kind == "daily" or signal.is_deduped)
    score = _clamped(signal.score)
    now = iso_moment(now_ms)
    place = entry if keeps_place else signal
    snippet = entry.snippet if keeps_place else signal.snippet
    days = (signal.day,) if keeps_time else (signal.day, now[: len("2026-11-20")])
    own = entry.user_query_hashes if signal.kind != "recall" else _recent(entry.user_query_hashes or (), hashed)
    return replace(
        entry,
        path=place.path,
        start_line=place.start_line,
        end_line=place.end_line,
        snippet=snippet,
        total_score=entry.total_score + score * added,
        max_score=max(entry.max_score, score),
        first_recalled_at=entry.first_recalled_at or now,
        last_recalled_at=entry.last_recalled_at if keeps_time else now,
        query_hashes=_recent(entry.query_hashes, hashed),
        user_query_hashes=own,
        recall_days=_recent_days(entry.recall_days, days),
        concept_tags=tuple(concept_tags(place.path, snippet)),
        provenance=entry.provenance.merged(signal.provenance) if entry.provenance else signal.provenance,
        claim=entry.claim or signal.claim,
        **{counter: getattr(entry, counter) + added},
    )


def _clamped(score: float) -> float:
    return min(max(score, 0.0), 1.0) if math.isfinite(score) else 0.0


def _recent(hashes: tuple[str, ...], new: str) -> tuple[str, ...]:
    """With the new one, the oldest of too many left out."""
    return (hashes if new in hashes else (*hashes, new))[-MOST_HASHES:]


def _recent_days(days: tuple[str, ...], new: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*days, *new)))[-MOST_DAYS:]


# -- as it is stored ------------------------------------------------------------------------------


def to_json(entry: Entry) -> str:
    """Compact JSON in the order of the host: `format.md` 3."""
    optional: dict[str, object] = {
        "provenance": _provenance_table(entry.provenance) if entry.provenance else None,
        "claimHash": entry.claim,
        "projectKey": entry.project_key,
        "promotedAt": entry.promoted_at,
    }
    own = entry.user_query_hashes
    table: dict[str, object] = {
        "key": entry.key,
        "path": entry.path,
        "startLine": entry.start_line,
        "endLine": entry.end_line,
        "source": "memory",
        "snippet": entry.snippet,
        "recallCount": entry.recall_count,
        "dailyCount": entry.daily_count,
        "groundedCount": entry.grounded_count,
        "totalScore": _number(entry.total_score),
        "maxScore": _number(entry.max_score),
        "firstRecalledAt": entry.first_recalled_at,
        "lastRecalledAt": entry.last_recalled_at,
        "queryHashes": list(entry.query_hashes),
        **({} if own is None else {"userQueryHashes": list(own)}),
        "recallDays": list(entry.recall_days),
        "conceptTags": list(entry.concept_tags),
        **{name: value for name, value in optional.items() if value is not None},
    }
    return json.dumps(table, ensure_ascii=False, separators=(",", ":"))


def _number(value: float) -> float:
    """As JavaScript writes it: whole numbers without a fraction."""
    return int(value) if value.is_integer() else value


def _provenance_table(provenance: Provenance) -> dict[str, object]:
    table: dict[str, object] = {
        "originClass": provenance.origin_class,
        "sessionKind": provenance.session_kind,
        "observedAt": provenance.observed_at,
    }
    return table if provenance.supersedes_key is None else table | {"supersedesKey": provenance.supersedes_key}


def from_json(value: bytes) -> Entry | None:
    """The entry that a row holds; None for a row that no host would read: without key, path, whole lines or snippet."""
    table = read_table(value)
    if table is None or table.get("source") != "memory":
        return None
    key, path, snippet = (as_text(table.get(name)) for name in ("key", "path", "snippet"))
    start, end = _whole(table.get("startLine")), _whole(table.get("endLine"))
    if not key or not path or not snippet or start is None or end is None:
        return None
    own = as_list(table.get("userQueryHashes"))
    entry = Entry(
        key=key,
        path=path,
        start_line=start,
        end_line=end,
        snippet=snippet,
        recall_count=_whole(table.get("recallCount")) or 0,
        daily_count=_whole(table.get("dailyCount")) or 0,
        grounded_count=_whole(table.get("groundedCount")) or 0,
        total_score=_float(table.get("totalScore")),
        max_score=_float(table.get("maxScore")),
        first_recalled_at=as_text(table.get("firstRecalledAt")) or "",
        last_recalled_at=as_text(table.get("lastRecalledAt")) or "",
        query_hashes=_texts(table, "queryHashes"),
        user_query_hashes=None if own is None else _texts(table, "userQueryHashes"),
        recall_days=_texts(table, "recallDays"),
        concept_tags=_texts(table, "conceptTags"),
        provenance=_provenance(table.get("provenance")),
        claim=as_text(table.get("claimHash")),
        project_key=as_text(table.get("projectKey")),
        promoted_at=as_text(table.get("promotedAt")),
    )
    if own is None and entry.daily_count == entry.grounded_count == 0:
        # Whatever found it was a search.
        return replace(entry, user_query_hashes=entry.query_hashes)
    return entry


def _provenance(value: Json) -> Provenance | None:
    table = as_table(value)
    if table is None:
        return None
    stored = table.get("originClass")
    named = table.get("sessionKind")
    origin_class: OriginClass = stored if stored in _TRUST else "untrusted"
    session_kind: SessionKind = named if named in _KINDS else "unknown"
    return Provenance(
        origin_class,
        session_kind,
        _whole(table.get("observedAt")) or 0,
        as_text(table.get("supersedesKey")),
    )


def _whole(value: Json) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) and value == int(value) else None


def _float(value: Json) -> float:
    return float(value) if is_number(value) and isinstance(value, int | float) else 0.0


def _texts(table: Mapping[str, Json], name: str) -> tuple[str, ...]:
    return tuple(each for each in as_list(table.get(name)) or () if isinstance(each, str))
