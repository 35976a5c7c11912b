"""What one ingestion came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from collections.abc import Iterator

_INCOMPLETE = 3


class ExcludedSession(BaseModel):
    """A session that may not be remembered, and why."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    session_id: str
    reason: str


class IngestReport(BaseModel):
    """Counts of one ingestion; no text."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)

    agent_id: str
    sessions: dict[str, int]
    """By outcome: `scanned`, `unchanged`, `excluded`, `internal`, `not-current`."""
    excluded: list[ExcludedSession]
    lines: int
    """Session lines that were new."""
    added_lines: int
    """Those of them that the corpus did not hold yet."""
    notes: int
    """Daily notes that were read."""
    note_signals: int
    unavailable: list[str]
    """What could not be read, and why."""
    has_more: bool
    """Whether lines were left for the next run."""

    @property
    def exit_status(self) -> int:
        """0, or 3 when something could not be read."""
        return _INCOMPLETE if self.unavailable else 0

    @classmethod
    def nothing(cls, agent: str) -> IngestReport:
        """Of an agent without databases."""
        return cls(
            agent_id=agent,
            sessions={},
            excluded=[],
            lines=0,
            added_lines=0,
            notes=0,
            note_signals=0,
            unavailable=[],
            has_more=False,
        )

    def to_json(self) -> str:
        """By wire names, with two blanks of indent."""
        return self.model_dump_json(by_alias=True, indent=2)


def describe(report: IngestReport) -> Iterator[str]:
    """The report for people, a line each."""
    yield f"Memory Ingestion ({report.agent_id})"
    yield "Sessions: " + (", ".join(f"{count} {name}" for name, count in sorted(report.sessions.items())) or "none")
    yield f"Session lines: {report.lines} new, {report.added_lines} added to the corpus"
    yield f"Daily notes: {report.notes} read, {report.note_signals} signals"
    yield from (f"Excluded: {each.session_id} ({each.reason})" for each in report.excluded)
    yield from (f"Could not be read: {each}" for each in report.unavailable)
    if report.has_more:
        yield "More is left: run it again."
