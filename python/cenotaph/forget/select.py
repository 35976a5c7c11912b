"""Which sessions a deletion is about: ids and keys, hook sources, participants; OR-ed, exact, never a prefix."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cenotaph.errors import SelectionError, SelectorMissing

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from cenotaph.identity import Identity
    from cenotaph.sessions import Session, Sessions

_ISO = re.compile(
    r"(?P<year>\d{4}|[+-]\d{6})(?:-(?P<month>\d\d)(?:-(?P<day>\d\d))?)?"
    r"(?:T(?P<time>\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(?P<zone>Z|[+-]\d\d:\d\d)?)?"
)
_MISSING = "Memory forget requires --session <id-or-key>, --hook-source <source>, or --participant <actor-id>."


@dataclass(frozen=True, slots=True)
class Selectors:
    """What the caller asked for. `since_ms`: ms since the epoch, inclusive."""

    sessions: tuple[str, ...]
    hook_sources: tuple[str, ...]
    participants: tuple[str, ...]
    since_ms: int | None


@dataclass(frozen=True, slots=True)
class Target:
    """One selected session. `session` is None for an id that nothing in the state directory knows."""

    session_id: str
    session_key: str | None
    source: Literal["live", "archived", "unresolved"]
    session: Session | None


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected sessions, and who the raw participant ids turned out to be."""

    targets: tuple[Target, ...]
    identities: tuple[tuple[str, tuple[Identity, ...]], ...]
    whole_keys: tuple[str, ...]
    """Session keys of which every known generation is selected."""

    @property
    def session_ids(self) -> list[str]:
        """Ids of the selected sessions, each once."""
        return [target.session_id for target in self.targets]


def selectors(
    sessions: Sequence[str], hook_sources: Sequence[str], participants: Sequence[str], since: str | None
) -> Selectors:
    """Checks what the caller asked for.

    Raises `SelectorMissing` without any selector, `SelectionError` for a blank one or a date that cannot be read.
    """
    for option, values in (("session", sessions), ("hook-source", hook_sources), ("participant", participants)):
        if any(not value.strip() for value in values):
            raise SelectionError(f"--{option} must not be blank")
    if not (sessions or hook_sources or participants):
        raise SelectorMissing(_MISSING)
    since_ms = None if since is None else parse_date(since)
    return Selectors(tuple(sessions), tuple(hook_sources), tuple(participants), since_ms)


def parse_date(text: str) -> int:
    """Milliseconds since the epoch of an ISO 8601 date or time.

    As in ECMAScript: a date alone is midnight UTC, a time without a zone is local. Raises `SelectionError`.
    """
    from datetime import UTC, datetime  # noqa: PLC0415 -- only --since needs it

    match = _ISO.fullmatch(text.strip())
    if match is None or len(match["year"]) != 4:  # noqa: PLR2004 -- years of more digits are outside `datetime`
        raise SelectionError(f"Invalid memory session date: {text}")
    day = f"{match['year']}-{match['month'] or '01'}-{match['day'] or '01'}"
    zone = match["zone"] or ("" if match["time"] else "Z")
    try:
        moment = datetime.fromisoformat(f"{day}T{match['time'] or '00:00'}{zone}")
        since_epoch = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise SelectionError(f"Invalid memory session date: {text}") from error
    return since_epoch.days * 86_400_000 + since_epoch.seconds * 1000 + since_epoch.microseconds // 1000


def select(asked: Selectors, known: Sessions) -> Selection:
    """Resolves the selectors: live windows first, then archives by id or key, the rest as literal ids."""
    named = set(asked.sessions)
    windows = [session for session in known.sessions if session.source != "archived"]
    live_ids = {session.session_id for session in windows}
    live = [session for session in windows if _is_selected(session, asked, named)]
    archived = [
        session
        for session in known.sessions
        if session.source == "archived"
        and session.session_id not in live_ids
        and (session.session_id in named or session.session_key in named)
    ]
    resolved = {name for session in (*live, *archived) for name in (session.session_id, session.session_key)}
    found = [Target(session.session_id, session.session_key, "live", session) for session in _since(live, asked)]
    found += [_archived(session) for session in _since(archived, asked)]
    found += [Target(name, None, "unresolved", None) for name in asked.sessions if name not in resolved]
    targets = tuple({target.session_id: target for target in found}.values())
    return Selection(targets, _identities(asked, targets), _whole_keys(targets, known))


def _archived(session: Session) -> Target:
    """As the host does: an archive file without a row in the registry is read, but its id counts as unresolved."""
    return Target(session.session_id, session.session_key, "archived" if session.generation else "unresolved", session)


def _is_selected(session: Session, asked: Selectors, named: set[str]) -> bool:
    return (
        session.session_id in named
        or session.session_key in named
        or session.hook_source in asked.hook_sources
        or any(identity.actor_id in asked.participants for identity in session.participants)
    )


def _since(sessions: Iterable[Session], asked: Selectors) -> list[Session]:
    return [session for session in sessions if asked.since_ms is None or session.created_at >= asked.since_ms]


def _identities(asked: Selectors, targets: tuple[Target, ...]) -> tuple[tuple[str, tuple[Identity, ...]], ...]:
    wanted = dict.fromkeys(sorted(asked.participants))
    every = [identity for target in targets if target.session for identity in target.session.participants]
    return tuple(
        (actor, tuple(dict.fromkeys(identity for identity in every if identity.actor_id == actor))) for actor in wanted
    )


def _whole_keys(targets: tuple[Target, ...], known: Sessions) -> tuple[str, ...]:
    chosen = {target.session_id for target in targets}
    keys = {target.session_key or target.session_id for target in targets}
    partly = {session.session_key for session in known.sessions if session.session_id not in chosen}
    return tuple(sorted(keys - partly))
