"""Memory for AI agents that can forget on request and prove it.

    with cenotaph.open("/path/to/state") as memory:
        report = memory.forget(sessions=["a-session-id"], dry_run=True)

The names below are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cenotaph.errors import (
        CenotaphError,
        ConfigError,
        ForgetRefused,
        ResidueFound,
        SelectionError,
        StoreBusy,
        StoreCorrupt,
        StoreError,
        StoreTooNew,
    )
    from cenotaph.forget.report import ForgetReport
    from cenotaph.memory import Memory, open  # noqa: A004 -- `cenotaph.open` is what a reader looks for

__all__ = [
    "CenotaphError",
    "ConfigError",
    "ForgetRefused",
    "ForgetReport",
    "Memory",
    "ResidueFound",
    "SelectionError",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreTooNew",
    "open",
]

_HOMES = {"ForgetReport": "cenotaph.forget.report", "Memory": "cenotaph.memory", "open": "cenotaph.memory"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 -- only the first use of a name needs it

    return getattr(import_module(_HOMES.get(name, "cenotaph.errors")), name)
