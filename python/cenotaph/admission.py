"""Which sessions may be remembered: decided from metadata, before a transcript is read. `forget.md` 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Container

    from cenotaph.config import ExcludeSessions
    from cenotaph.sessions import Session

FORGOTTEN = "forgotten"

Verdict = Literal["admitted", "excluded", "internal", "not-current"]


@dataclass(frozen=True, slots=True)
class Admission:
    """What is decided about one session, and by what."""

    verdict: Verdict
    reason: str | None = None
    """`forgotten`, `hookExternalContentSource:<value>`, `channel:<value>`, `chatType:<value>`; the kind of an internal
    session; None when it is admitted."""
    rule: str | None = None
    """Where the rule stands that excluded it: path in `openclaw.json`, or `memory_session_tombstones`."""


_POLICY = "plugins.entries.memory-core.config.memoryPolicy.excludeSessions"


def excluded(session: Session, policy: ExcludeSessions, forgotten: Container[str]) -> Admission | None:
    """Why a session may not be remembered; None when it may.

    In this order, first hit: tombstone, hook source, channel, chat type. Values match exactly, case and all; what a
    session does not say matches nothing.
    """
    if session.session_id in forgotten:
        return Admission("excluded", FORGOTTEN, "memory_session_tombstones")
    rules = (
        ("hookExternalContentSource", session.hook_source, policy.hook_sources, "hookExternalContentSources"),
        ("channel", session.channel, policy.channels, "channels"),
        ("chatType", session.chat_type, policy.chat_types, "chatTypes"),
    )
    for name, value, values, member in rules:
        if value is not None and value in values:
            return Admission("excluded", f"{name}:{value}", f"{_POLICY}.{member}")
    return None


def admission(session: Session, policy: ExcludeSessions, forgotten: Container[str]) -> Admission:
    """What ingestion does with a session, and why."""
    barred = excluded(session, policy, forgotten)
    if barred is not None:
        return barred
    if session.is_internal or session.kind == "subagent":
        return Admission("internal", "narrative" if session.is_narrative else session.kind)
    if not session.is_current:
        return Admission("not-current", session.source)
    return Admission("admitted")
