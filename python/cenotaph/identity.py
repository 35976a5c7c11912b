"""Who took part in a session: the identities of participant rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from cenotaph.schema import Json, as_text, read_table

__all__ = ["Identity", "parse_identity"]


@dataclass(frozen=True, slots=True)
class Identity:
    """A participant: an actor id within a name space."""

    namespace: tuple[tuple[str, str | None], ...]
    """Fields in their fixed order, `type` first."""
    actor_id: str

    def as_reported(self) -> dict[str, str | None]:
        """The identity as reports show it."""
        return {**dict(self.namespace), "id": self.actor_id}


def _is_text(value: Json) -> bool:
    return isinstance(value, str) and bool(value)


def _is_text_or_null(value: Json) -> bool:
    return value is None or _is_text(value)


def _is_sender_kind(value: Json) -> bool:
    return value in ("human", "bot", "unknown")


_Fields: TypeAlias = Mapping[str, Callable[[Json], bool]]

IDENTITY_FIELDS: Mapping[str, _Fields] = {
    "profile": {},
    "agent": {},
    "remote": {"pluginId": _is_text, "domain": _is_text, "idKind": _is_text},
    "observation": {
        "pluginId": _is_text_or_null,
        "accountId": _is_text_or_null,
        "senderKind": _is_sender_kind,
    },
    "legacy": {"actorType": _is_text, "source": _is_text_or_null},
}


def parse_identity(namespace: bytes, actor_id: str) -> Identity | None:
    """The identity of a participant row; None when its name space is damaged or of no known type."""
    fields = _namespace(namespace)
    return Identity(fields, actor_id) if fields else None


@lru_cache(maxsize=256)
def _namespace(raw: bytes) -> tuple[tuple[str, str | None], ...]:
    """The fields in their fixed order; empty when they are not what their type asks for."""
    table = read_table(raw) or {}
    kind = as_text(table.get("type")) or ""
    fields = IDENTITY_FIELDS.get(kind)
    if fields is None or set(table) != {"type", *fields}:
        return ()
    if not all(is_valid(table[name]) for name, is_valid in fields.items()):
        return ()
    return (("type", kind), *((name, as_text(table[name])) for name in fields))
