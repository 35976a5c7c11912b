"""The shape of `openclaw.json`: small checks that report every problem with its path.

A closed table refuses keys that it does not know. An open one leaves them alone: the file belongs
to the host, and most of what it holds is none of our business.
"""

import json
import math
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

__all__ = ["ROOT", "Check", "Json", "as_list", "as_table", "as_text", "is_number", "read_table"]

Json: TypeAlias = object
Check: TypeAlias = Callable[[Json, str, list[str]], None]
"""Appends `<path>: <problem>` for all that is wrong with a value."""

SHOWN_AS_ROOT = "<root>"


def as_table(value: Json) -> Mapping[str, Json] | None:
    """`value` when it is an object, else None."""
    return cast("Mapping[str, Json]", value) if isinstance(value, dict) else None


def as_list(value: Json) -> list[Json] | None:
    """`value` when it is an array, else None."""
    return cast("list[Json]", value) if isinstance(value, list) else None


def as_text(value: Json) -> str | None:
    """`value` when it is a string, else None."""
    return value if isinstance(value, str) else None


def read_table(raw: bytes) -> Mapping[str, Json] | None:
    """The object that JSON text holds; None when it holds something else or cannot be read."""
    try:
        return as_table(json.loads(raw.decode()))
    except (ValueError, RecursionError):
        return None


def is_number(value: Json) -> bool:
    """Whether `value` is a finite number; `true` is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _quoted(words: object) -> str:
    return ", ".join(f'"{word}"' for word in cast("list[str]", words))


def _text(value: Json, path: str, problems: list[str]) -> None:
    if not isinstance(value, str):
        problems.append(f"{path}: must be a string")


def _flag(value: Json, path: str, problems: list[str]) -> None:
    if not isinstance(value, bool):
        problems.append(f"{path}: must be true or false")


def _one_of(*words: str) -> Check:
    def check(value: Json, path: str, problems: list[str]) -> None:
        if value in words:
            return
        choice = (
            f"must be one of the allowed values (allowed: {_quoted(words)})"
            if len(words) > 1
            else f"must be {_quoted(words)}"
        )
        problems.append(f"{path}: {choice}")

    return check


def _number(low: float = -math.inf, high: float = math.inf, *, whole: bool = False, above: bool = False) -> Check:
    """A number in `low..high`; `above` excludes `low` itself."""
    kind = "a whole number" if whole else "a number"
    span = [f"{'above' if above else 'of at least'} {low:g}"] if low > -math.inf else []
    span += [f"at most {high:g}"] if high < math.inf else []
    problem = " ".join(["must be", kind, " and ".join(span)]).rstrip()

    def check(value: Json, path: str, problems: list[str]) -> None:
        fits = isinstance(value, int | float) and is_number(value) and low <= value <= high
        if not fits or (whole and value % 1) or (above and value == low):  # type: ignore[operator]
            problems.append(f"{path}: {problem}")

    return check


def _array(item: Check) -> Check:
    def check(value: Json, path: str, problems: list[str]) -> None:
        items = as_list(value)
        if items is None:
            problems.append(f"{path}: must be an array")
            return
        for position, each in enumerate(items):
            item(each, f"{path}.{position}", problems)

    return check


def _map_of(item: Check) -> Check:
    """An object with any keys, whose values all pass `item`."""

    def check(value: Json, path: str, problems: list[str]) -> None:
        table = as_table(value)
        if table is None:
            problems.append(f"{path}: must be an object")
            return
        for key, each in table.items():
            item(each, f"{path}.{key}", problems)

    return check


def _table(fields: Mapping[str, Check], *, closed: bool, required: tuple[str, ...] = ()) -> Check:
    def check(value: Json, path: str, problems: list[str]) -> None:
        table = as_table(value)
        if table is None:
            problems.append(f"{path or SHOWN_AS_ROOT}: must be an object")
            return
        for key, each in table.items():
            inside = f"{path}.{key}" if path else key
            if key in fields:
                fields[key](each, inside, problems)
            elif closed:
                problems.append(f'{path}: unknown key "{key}"; allowed: {_quoted(fields)}')
        problems.extend(f'{path}: needs the key "{key}"' for key in required if key not in table)

    return check


def _closed(**fields: Check) -> Check:
    return _table(fields, closed=True)


def _open(fields: Mapping[str, Check]) -> Check:
    return _table(fields, closed=False)


def _extra_path(value: Json, path: str, problems: list[str]) -> None:
    if as_table(value) is None:
        if not isinstance(value, str):
            problems.append(f"{path}: must be a string or an object")
        return
    _table({"path": _text, "pattern": _text}, closed=True, required=("path",))(value, path, problems)


def _secret(value: Json, path: str, problems: list[str]) -> None:
    """A key in clear, or the host's reference to a secret store, which is not ours to read."""
    if not isinstance(value, str) and as_table(value) is None:
        problems.append(f"{path}: must be a string or an object")


_COUNT = _number(0, whole=True)
_POSITIVE = _number(0, whole=True, above=True)
_SHARE = _number(0, 1)
_MODEL = _closed(model=_text)

_SEARCH = _closed(
    enabled=_flag,
    rememberAcrossConversations=_flag,
    sources=_array(_one_of("memory", "sessions")),
    experimental=_closed(sessionMemory=_flag),
    extraPaths=_array(_extra_path),
    provider=_text,
    model=_text,
    fallback=_text,
    remote=_closed(baseUrl=_text, apiKey=_secret, headers=_map_of(_text), batch=_closed(enabled=_flag)),
    inputType=_text,
    queryInputType=_text,
    documentInputType=_text,
    outputDimensionality=_POSITIVE,
    local=_closed(modelPath=_text),
    multimodal=_closed(
        enabled=_flag,
        modalities=_array(_one_of("image", "audio", "all")),
        maxFileBytes=_number(0, above=True),
    ),
    store=_closed(
        fts=_closed(tokenizer=_one_of("unicode61", "trigram")),
        vector=_closed(enabled=_flag, extensionPath=_text),
    ),
    query=_closed(maxResults=_POSITIVE, minScore=_SHARE),
    cache=_closed(enabled=_flag),
)

_EXCLUDE_SESSIONS = _closed(
    hookExternalContentSources=_array(_text),
    channels=_array(_text),
    chatTypes=_array(_one_of("direct", "group", "channel")),
)

_DREAMING = _closed(
    enabled=_flag,
    frequency=_text,
    model=_text,
    timezone=_text,
    verboseLogging=_flag,
    storage=_closed(mode=_one_of("inline", "separate", "both"), separateReports=_flag),
    execution=_closed(defaults=_MODEL),
    phases=_closed(
        light=_closed(
            enabled=_flag,
            lookbackDays=_COUNT,
            limit=_COUNT,
            dedupeSimilarity=_SHARE,
            execution=_MODEL,
        ),
        rem=_closed(
            enabled=_flag,
            lookbackDays=_COUNT,
            limit=_COUNT,
            minPatternStrength=_SHARE,
            execution=_MODEL,
        ),
        deep=_closed(
            enabled=_flag,
            limit=_COUNT,
            minScore=_SHARE,
            minRecallCount=_COUNT,
            minUniqueQueries=_COUNT,
            recencyHalfLifeDays=_COUNT,
            maxAgeDays=_number(1, whole=True),
            maxPromotedSnippetTokens=_number(1, whole=True),
            maxPriorEntryLossFraction=_SHARE,
            execution=_MODEL,
        ),
    ),
)

_PLUGIN = _closed(memoryPolicy=_closed(excludeSessions=_EXCLUDE_SESSIONS), dreaming=_DREAMING)

_AGENT: Mapping[str, Check] = {
    "default": _flag,
    "workspace": _text,
    "memory": _open({"search": _SEARCH}),
}

ROOT: Check = _open(
    {
        "agents": _open(
            {
                "ownership": _one_of("explicit"),
                "defaults": _open({"workspace": _text, "userTimezone": _text}),
                "entries": _map_of(_open(_AGENT)),
                "list": _array(_table({"id": _text, **_AGENT}, closed=False, required=("id",))),
            }
        ),
        "session": _open({"store": _text}),
        "memory": _open({"search": _SEARCH, "citations": _one_of("auto", "on", "off")}),
        "plugins": _open({"entries": _open({"memory-core": _open({"config": _PLUGIN})})}),
    }
)
"""The whole file."""
