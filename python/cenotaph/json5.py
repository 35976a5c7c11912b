"""A JSON5 file as the host reads it: `$include` of other files, `${NAME}` from the environment."""

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from cenotaph.errors import ConfigError
from cenotaph.schema import Json, as_list, as_table

__all__ = ["read_json5"]

INCLUDE = "$include"
MAX_INCLUDES = 10
MAX_DEPTH = 200
VARIABLE = re.compile(r"(\$?)\$\{([A-Z_][A-Z0-9_]*)\}")


def read_json5(path: Path, env: Mapping[str, str]) -> Json:
    """The content of `path`, with included files merged in and variables replaced.

    A variable that is not set stays as it is written; `$${NAME}` stands for a literal `${NAME}`.
    Raises `ConfigError` that names the file with the fault, `OSError` when `path` cannot be read.
    """
    return _expanded(_read(path, (path,)), env)


def _read(path: Path, chain: tuple[Path, ...]) -> Json:
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise _invalid(path, f"byte {error.start}: not UTF-8") from None
    return _merged(_parse(path, text), path, chain)


def _parse(path: Path, text: str) -> Json:
    # Most files are plain JSON, which is JSON5, and the parser of the standard library is loaded already.
    with suppress(ValueError, RecursionError):
        plain: Json = json.loads(text)
        return plain
    import pyjson5  # noqa: PLC0415 -- only when the file needs it

    try:
        return pyjson5.decode(text, maxdepth=MAX_DEPTH)
    except pyjson5.Json5DecoderException as error:
        raise _invalid(path, _fault(text, str(error.args[0]))) from None


def _fault(text: str, message: str) -> str:
    """The parser's message with line and column in front, its byte literals and code points spelled out."""
    place = re.search(r" (?:starting )?near (\d+)", message)
    offset = max(int(place[1]) - 1, 0) if place else 0
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    words = re.sub(r" (?:starting )?near \d+", "", message)
    words = re.sub(r"b'(\w+)'", r"\1", words)
    words = re.sub(r"U\+([0-9a-fA-F]{4,6})", lambda code: repr(chr(int(code[1], 16))), words)
    return f"line {line}, column {column}: {words}"


def _merged(value: Json, path: Path, chain: tuple[Path, ...]) -> Json:
    """`value` with every `$include` in it replaced by the files that it names."""
    items = as_list(value)
    if items is not None:
        return [_merged(item, path, chain) for item in items]
    table = as_table(value)
    if table is None:
        return value
    own: dict[str, Json] = {key: _merged(each, path, chain) for key, each in table.items() if key != INCLUDE}
    if INCLUDE not in table:
        return own
    result: Json = {}
    for name in _included_names(table[INCLUDE], path):
        result = _over(result, _included(name, path, chain))
    return _over(result, own) if own else result


def _included_names(value: Json, path: Path) -> list[str]:
    names = [value] if isinstance(value, str) else as_list(value)
    if names is None or not all(isinstance(name, str) for name in names):
        raise _invalid(path, f"{INCLUDE}: must be a file name or an array of file names")
    return [name for name in names if isinstance(name, str)]


def _included(name: str, path: Path, chain: tuple[Path, ...]) -> Json:
    target = Path(os.path.normpath(path.parent / name))
    if target in chain or len(chain) > MAX_INCLUDES:
        raise _invalid(path, f"{INCLUDE}: {name} includes itself, or the chain is too long")
    if not Path(os.path.realpath(target)).is_relative_to(os.path.realpath(chain[0].parent)):
        raise _invalid(path, f"{INCLUDE}: {name} lies outside of {chain[0].parent}")
    try:
        return _read(target, (*chain, target))
    except OSError as error:
        raise _invalid(path, f"{INCLUDE}: cannot read {target}: {error.strerror}") from error


def _over(below: Json, above: Json) -> Json:
    """`above` laid over `below`: objects key by key, arrays one after the other, else `above`."""
    low, high = as_table(below), as_table(above)
    if low is not None and high is not None:
        return {**low, **{key: _over(low[key], each) if key in low else each for key, each in high.items()}}
    first, second = as_list(below), as_list(above)
    return [*first, *second] if first is not None and second is not None else above


def _expanded(value: Json, env: Mapping[str, str]) -> Json:
    if isinstance(value, str):
        return VARIABLE.sub(lambda found: _variable(found, env), value)
    items = as_list(value)
    if items is not None:
        return [_expanded(item, env) for item in items]
    table = as_table(value)
    return value if table is None else {key: _expanded(each, env) for key, each in table.items()}


def _variable(found: re.Match[str], env: Mapping[str, str]) -> str:
    if found[1]:
        return found[0][1:]
    return env.get(found[2]) or found[0]


def _invalid(path: Path, problem: str) -> ConfigError:
    return ConfigError(f"Invalid config at {path}:\n- {problem}")
