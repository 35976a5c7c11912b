"""Calendar days on the clock that memory keeps: `dreaming.timezone`, else the user's zone, else that of the machine."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

if TYPE_CHECKING:
    from cenotaph.config import Config

DAY_MS = 86_400_000


def zone_of(config: Config) -> tzinfo | None:
    """The zone that is configured; None is the machine's own, also in place of a zone that nobody knows."""
    for name in (config.dreaming.timezone, config.user_timezone):
        if name and name.strip():
            try:
                return ZoneInfo(name.strip())
            except (ZoneInfoNotFoundError, ValueError, OSError):
                return None
    return None


def day_of(milliseconds: float, zone: tzinfo | None) -> str:
    """The day of a moment (ms since the epoch) as `YYYY-MM-DD`.

    What no calendar holds counts as the epoch, so that a wrong clock in a transcript stops nothing.
    """
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
        return moment.astimezone(zone).strftime("%Y-%m-%d").zfill(len("2026-11-20"))
    except (OverflowError, OSError, ValueError):
        return "1970-01-01"


def is_within(day: str, now_ms: int, lookback_days: int) -> bool:
    """Whether a day ends (23:59:59.999 UTC) at or after the moment `lookback_days` before now."""
    try:
        begin = datetime.fromisoformat(day).replace(tzinfo=UTC)
    except ValueError:
        return False
    end_ms = int(begin.timestamp()) * 1000 + DAY_MS - 1
    return end_ms >= now_ms - lookback_days * DAY_MS
