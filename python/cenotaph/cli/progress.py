"""What a person at a terminal sees of work that takes over a second. Nothing is shown when stderr is a pipe."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from rich.status import Status

_PATIENCE_S = 1.0


class _Shown:
    """A line that appears once the work has gone on for a second."""

    def __init__(self) -> None:
        self._step = "Starting"
        self._status: Status | None = None
        self._timer = Timer(_PATIENCE_S, self._appear)
        self._timer.daemon = True

    def start(self) -> None:
        self._timer.start()

    def step(self, what: str) -> None:
        self._step = what
        if self._status is not None:
            self._status.update(what)

    def stop(self) -> None:
        self._timer.cancel()
        self._timer.join()
        if self._status is not None:
            self._status.stop()

    def _appear(self) -> None:
        from rich.console import Console  # noqa: PLC0415 -- most runs end before it is needed

        status = Console(stderr=True).status(self._step)
        status.start()
        self._status = status


@contextmanager
def progress() -> Generator[Callable[[str], None]]:
    """Gives a function that takes the name of the step that begins."""
    if not sys.stderr.isatty():
        yield lambda _step: None
        return
    shown = _Shown()
    shown.start()
    try:
        yield shown.step
    finally:
        shown.stop()
