"""Receipts of erasures: what their links in the two chains say, and the key of the hashes in them.

A link holds counts and keyed hashes: HMAC-SHA256 under a key of 32 random bytes that lies in the state directory, mode
0600. Without the key nobody can test a guess against them; who destroys it makes them say nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from cenotaph import _core
from cenotaph.errors import ConfigError
from cenotaph.new_file import write_new

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path
    from typing import Any

    from cenotaph.place import Place

SESSION_DIGITS = 32
"""What a receipt keeps of the keyed hash of a session id; a certificate has all 64 hex digits."""
_KEY_BYTES = 32
_TEMPORARY = ".cenotaph-{}.tmp"
_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class Erasure:
    """What the links of one receipt say together. Times in ms since the epoch."""

    id: str
    agent: str
    begun_at: int
    completed_at: int | None
    sessions: frozenset[str]
    """Keyed hashes of the session ids, their first `SESSION_DIGITS` hex digits."""
    counts: dict[str, int]
    """Rows that were deleted, over all runs; what is not in a database is counted by the completed link."""
    links: tuple[_core.Link, ...]

    @property
    def is_completed(self) -> bool:
        """Whether everything was gone and had been looked for in vain."""
        return self.completed_at is not None


def key_path(state_dir: Path) -> Path:
    """Where the key of the keyed hashes lies."""
    return state_dir / "cenotaph" / "receipts.key"


def receipt_key(state_dir: Path, *, create: bool) -> bytes:
    """The key of the keyed hashes, 32 bytes.

    Raises `ConfigError` when there is none (and none is to be made) or the file holds something else, `OSError`.
    """
    path = key_path(state_dir)
    if create:
        _make_key(path)
    if not path.exists():
        raise ConfigError(f"There is no receipt key at {path}: no receipt was written here, or the key was destroyed")
    key = path.read_bytes()
    if len(key) != _KEY_BYTES:
        message = f"{path} is no receipt key of {_KEY_BYTES} bytes; put back the one that receipts were written with"
        raise ConfigError(message)
    return key


def _make_key(path: Path) -> None:
    """Makes the key unless there is one, and removes what a killed run left.

    Another run may be at work: then its file is removed here, or ours there, and who lost it tries again.
    """
    path.parent.mkdir(mode=0o700, exist_ok=True)
    for left in path.parent.glob(_TEMPORARY.format("*")):
        left.unlink(missing_ok=True)
    for _ in range(_ATTEMPTS):
        if path.exists():
            return
        with suppress(FileNotFoundError):
            _write_key(path)


def _write_key(path: Path) -> None:
    """Makes the key under a temporary name first: a reader finds all of it or nothing, and of two writers one wins."""
    fresh = path.with_name(_TEMPORARY.format(secrets.token_hex(4)))
    write_new(fresh, secrets.token_bytes(_KEY_BYTES), 0o600)
    try:
        try:
            os.link(fresh, path)
        except FileExistsError:
            return
        _core.sync_folders([path])
    finally:
        fresh.unlink(missing_ok=True)


def keyed(key: bytes, kind: str, value: str) -> str:
    """Keyed hash of an identifier: HMAC-SHA256 in hex, over its kind, a zero byte and itself."""
    return hmac.new(key, f"{kind}\0{value}".encode(), hashlib.sha256).hexdigest()


def key_id(key: bytes) -> str:
    """Which key keyed hashes were made with: the first 16 hex digits of its SHA-256."""
    return hashlib.sha256(key).hexdigest()[:16]


def erasures(links: Iterable[_core.Link]) -> list[Erasure]:
    """The receipts that these links tell of, in the order in which they were begun."""
    by_receipt: dict[str, list[_core.Link]] = {}
    for link in links:
        by_receipt.setdefault(link.receipt, []).append(link)
    return [_erasure(found) for found in by_receipt.values()]


def _erasure(links: list[_core.Link]) -> Erasure:
    sessions: set[str] = set()
    counts: dict[str, int] = {}
    for link in links:
        body = body_of(link)
        hashed = body.get("sessions") if link.stage == "begun" else None
        sessions.update(each for each in _listed(hashed) if isinstance(each, str))
        for name, count in _counted(link.stage, body):
            counts[name] = counts.get(name, 0) + count
    return Erasure(
        id=links[0].receipt,
        agent=links[0].agent,
        begun_at=links[0].created_at,
        completed_at=next((link.created_at for link in links if link.stage == "completed"), None),
        sessions=frozenset(sessions),
        counts=counts,
        links=tuple(links),
    )


def body_of(link: _core.Link) -> dict[str, Any]:
    """What a link says. A link that was altered into no object says nothing: its hash tells of that, in every check."""
    try:
        body: object = json.loads(link.body)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", body) if isinstance(body, dict) else {}


def _counted(stage: str, body: dict[str, Any]) -> list[tuple[str, int]]:
    counts: object = body if stage == "deleted" else body.get("files") if stage == "completed" else None
    named = cast("dict[str, object]", counts) if isinstance(counts, dict) else {}
    return [(name, count) for name, count in named.items() if isinstance(count, int)]


def _listed(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def erasures_of(place: Place, memory: _core.Store, sessions: Collection[str]) -> list[Erasure]:
    """Receipts of this agent that tell of one of these sessions, which are given by their keyed hashes."""
    wanted = frozenset(sessions)
    return [
        erasure
        for erasure in erasures(_core.receipts(memory))
        if erasure.agent == place.agent and erasure.sessions & wanted
    ]
