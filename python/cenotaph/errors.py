"""The errors that this package raises on its own account; I/O errors stay `OSError`."""

from cenotaph._core import (
    CenotaphError,
    ForgetRefused,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
)

__all__ = [
    "CenotaphError",
    "ConfigError",
    "ForgetRefused",
    "KeyUnusable",
    "ResidueFound",
    "SelectionError",
    "SelectorMissing",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreTooNew",
]


class ConfigError(CenotaphError):
    """The configuration cannot be used; the message names the file and every problem in it."""


class SelectionError(CenotaphError):
    """What the caller asked for names no agent, session or date that can be used."""


class SelectorMissing(SelectionError):
    """The caller selected nothing at all; nothing at all is what happens."""


class KeyUnusable(CenotaphError):
    """A key file cannot be used, or not be made; the message names the file and says why."""


class ResidueFound(CenotaphError):
    """A verification found bytes that a deletion promised to remove."""
