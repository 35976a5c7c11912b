"""Transcripts: records, who said a line, what memory may see of it, and which memory files it wrote.

Pure functions over bytes. What is a secret is for the caller to say.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from cenotaph.schema import Json, as_list, as_table

__all__ = [
    "CuratedWrite",
    "InternalRun",
    "Line",
    "OriginClass",
    "Projection",
    "Record",
    "curated_writes",
    "is_cron_run_key",
    "is_narrative_name",
    "jsonl_events",
    "parse_records",
    "project",
]

OriginClass: TypeAlias = Literal["owner", "agent", "untrusted", "system"]
InternalRun: TypeAlias = Literal["narrative", "cron"]
Table: TypeAlias = Mapping[str, Json]

WRAP_UNITS = 800
SECONDS_BELOW = 100_000_000_000
NARRATIVE_PREFIX = "dreaming-narrative-"
RECALL_TOOLS = ("memory_search", "memory_get")
SPACES = re.compile("[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+")
CRON_RUN_KEY = re.compile(r"agent:[^:]+:cron:[^:]+:run:[^:]+(?::.*)?", re.DOTALL)
CONTEXT_START = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>"
CONTEXT_END = "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>"
TIME_STAMP = re.compile(r"\[(?:mon|tue|wed|thu|fri|sat|sun) \d{4}-\d\d-\d\d \d\d:\d\d[^\]]*\]", re.IGNORECASE)
GENERATED_LINE = re.compile(r"System(?: \(untrusted\))?: \[[^\]]+\]|\[cron:[^\]]+\]")
EXEC_NOTICE = re.compile(r"exec (?:finished ?\(|completed \([^)]*\) ::)", re.IGNORECASE)
SILENT_REPLY = "no_reply"
HEARTBEAT_REPLY = "HEARTBEAT_OK"
LABELS = {"user": "User: ", "assistant": "Assistant: "}

TOOL_CALL_TYPES = ("toolCall", "tool_call", "tool_use")
WRITING_TOOLS = ("write", "edit", "apply_patch")
PATH_KEYS = ("path", "file_path", "filePath")
PATCH_PATH = re.compile("^\\*\\*\\* (?:(?:Add|Update|Delete) File|Move to): ([^\n\r\u2028\u2029]+)", re.MULTILINE)
MAY_CALL_TOOLS = re.compile(rb"tool(?:Call|_call|_use)|\\u00[2-7]")
ROOT_FILES = ("MEMORY.md", "USER.md")


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a transcript; `number` is its 1-based position, the header being 1."""

    number: int
    data: Table


@dataclass(frozen=True, slots=True)
class Line:
    """One line that memory may see: label included, at most 800 UTF-16 units without it."""

    text: str
    record_number: int
    observed_at: int
    """Milliseconds since the epoch; 0 when the record carries no time."""
    origin_class: OriginClass


@dataclass(frozen=True, slots=True)
class Projection:
    """What memory may see of a transcript: nothing when it is of an internal run."""

    lines: tuple[Line, ...]
    internal: InternalRun | None = None

    @property
    def is_all_system(self) -> bool:
        """Whether there are lines and the host itself wrote them all."""
        return bool(self.lines) and all(line.origin_class == "system" for line in self.lines)


@dataclass(frozen=True, slots=True)
class CuratedWrite:
    """A memory file that a tool call of the session wrote, or tried to."""

    relative_path: str
    observed_at: int
    """Milliseconds since the epoch."""


def jsonl_events(text: bytes) -> list[bytes]:
    """The lines of an archive, each one event."""
    events = text.split(b"\n")
    return events[:-1] if not events[-1] else events


def parse_records(events: Iterable[bytes]) -> Iterator[Record]:
    """The events that are JSON objects; what is not readable keeps its number and is left out."""
    for number, event in enumerate(events, 1):
        try:
            data = as_table(json.loads(event.decode(errors="replace")))
        except (ValueError, RecursionError):
            continue
        if data is not None:
            yield Record(number, data)


def is_narrative_name(text: str) -> bool:
    """Whether a session key or run id is of a dream narrative."""
    parts = text.split(":", 2)
    return (parts[2] if len(parts) > 2 else text).startswith(NARRATIVE_PREFIX)  # noqa: PLR2004


def is_cron_run_key(key: str) -> bool:
    """Whether a session key is of one run of a cron job."""
    return CRON_RUN_KEY.fullmatch(key) is not None


# -- projection ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Turn:
    """What the last user message decided about all that follows it."""

    origin: OriginClass = "untrusted"
    hidden: bool = False
    """Inside a heartbeat, or inside recalled memory."""


def project(events: Sequence[bytes], *, archived: bool, redact: Callable[[str], str] = str) -> Projection:
    """The lines of a transcript that memory may see.

    `archived` transcripts are also recognised as cron runs by their records; a live one is by its key.
    `redact` is given the text of each message, in one line, before it is cut.
    """
    lines: list[Line] = []
    turn = _Turn()
    for record in parse_records(events):
        internal = _internal_run(record.data, archived=archived)
        if internal:
            return Projection((), internal)
        message = as_table(record.data.get("message"))
        if record.data.get("type") == "message" and message is not None:
            lines += _message_lines(record, message, turn, redact)
    return Projection(tuple(lines))


def _message_lines(record: Record, message: Table, turn: _Turn, redact: Callable[[str], str]) -> Iterator[Line]:
    role = message.get("role")
    if role == "user":
        _start_turn(message, turn)
    if turn.hidden or not isinstance(role, str) or role not in LABELS:
        return
    provenance = _provenance(message)
    if role == "user" and provenance.get("kind") == "inter_session":
        return
    text = redact(_sanitised(_content_text(message.get("content")), role))
    observed_at = _observed_at(record.data, message) or 0
    origin = turn.origin if role == "user" else _reply_class(message, turn.origin)
    for piece in _wrapped(text):
        yield Line(LABELS[role] + piece, record.number, observed_at, origin)


def _start_turn(message: Table, turn: _Turn) -> None:
    provenance = _provenance(message)
    is_system = provenance.get("kind") == "internal_system"
    tool = provenance.get("sourceTool")
    turn.hidden = is_system and (tool == "heartbeat" or tool in RECALL_TOOLS)
    if is_system:
        turn.origin = "system"
    else:
        turn.origin = "owner" if _stamp(message).get("senderIsOwner") is True else "untrusted"


def _reply_class(message: Table, turn: OriginClass) -> OriginClass:
    if _stamp(message).get("turnTainted") is True:
        return "untrusted"
    return "agent" if turn == "owner" else turn


def _provenance(message: Table) -> Table:
    return as_table(message.get("provenance")) or {}


def _stamp(message: Table) -> Table:
    return as_table(message.get("__openclaw")) or {}


def _content_text(content: Json) -> str:
    if isinstance(content, str):
        return content
    blocks = [as_table(block) or {} for block in as_list(content) or []]
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    return "\n".join(text for text in texts if isinstance(text, str))


def _sanitised(text: str, role: str) -> str:
    """One line without what the host itself put in; empty when nothing else is left."""
    if "_OPENCLAW_INTERNAL_CONTEXT>>>" in text:
        text = _without_context(text)
    if role == "user":
        stamp = TIME_STAMP.match(text)
        text = text[stamp.end() :] if stamp else text
    text = SPACES.sub(" ", text).strip(" ")
    return "" if _is_noise(text, role) else text


def _without_context(text: str) -> str:
    """`text` without the blocks that the host marks as its own; an open one reaches to the end."""
    depth = 0
    kept: list[str] = []
    for line in text.split("\n"):
        marker = line.strip()
        if marker == CONTEXT_START:
            depth += 1
        elif marker == CONTEXT_END:
            depth = max(depth - 1, 0)
        elif depth == 0:
            kept.append(line)
    return "\n".join(kept)


def _is_noise(text: str, role: str) -> bool:
    if text.lower() == SILENT_REPLY or EXEC_NOTICE.match(text):
        return True
    return text == HEARTBEAT_REPLY if role == "assistant" else GENERATED_LINE.match(text) is not None


def _wrapped(text: str) -> Iterator[str]:
    """Pieces of at most 800 UTF-16 units, cut at a blank where there is one."""
    start = 0
    while start < len(text):
        end = _piece_end(text, start)
        if end < len(text):
            blank = text.rfind(" ", start + 1, end + 1)
            end = end if blank < 0 else blank
        yield text[start:end]
        start = end + 1 if text[end : end + 1] == " " else end


def _piece_end(text: str, start: int) -> int:
    """Where the piece from `start` reaches 800 UTF-16 units, or `text` its end."""
    piece = text[start : start + WRAP_UNITS]
    if piece.isascii() or max(piece) <= "\uffff":
        return start + len(piece)
    units = 0
    for position, character in enumerate(piece):
        units += 2 if character > "\uffff" else 1
        if units > WRAP_UNITS:
            return start + position
    return start + len(piece)


# -- internal runs ------------------------------------------------------------------------------


def _internal_run(record: Table, *, archived: bool) -> InternalRun | None:
    data = as_table(record.get("data")) or {}
    message = as_table(record.get("message")) or {}
    names = [record.get("runId"), record.get("sessionKey"), data.get("runId"), data.get("sessionKey")]
    if message.get("role") in ("assistant", "toolResult"):
        names.append(_stamp(message).get("runId"))
    if any(isinstance(name, str) and is_narrative_name(name) for name in names):
        return "narrative"
    keys = (record.get("sessionKey"), data.get("sessionKey"))
    if archived and any(isinstance(key, str) and is_cron_run_key(key) for key in keys):
        return "cron"
    return None


# -- curated writes -----------------------------------------------------------------------------


def curated_writes(events: Iterable[bytes], workspace: Path, fallback_ms: int) -> list[CuratedWrite]:
    """Memory files that tool calls of the transcript name, each with its first call, in order.

    `fallback_ms` stands for the time of records that carry none. Whether a call succeeded is not asked.
    """
    found: dict[str, int] = {}
    for record in parse_records(event if MAY_CALL_TOOLS.search(event) else b"" for event in events):
        message = as_table(record.data.get("message"))
        if message is None or message.get("role") != "assistant":
            continue
        at = _observed_at(record.data, message)
        for path in _called_paths(message, workspace):
            found.setdefault(path, fallback_ms if at is None else at)
    return [CuratedWrite(path, at) for path, at in found.items()]


def _called_paths(message: Table, workspace: Path) -> Iterator[str]:
    for block in as_list(message.get("content")) or []:
        call = as_table(block) or {}
        name = call.get("name")
        if call.get("type") not in TOOL_CALL_TYPES or name not in WRITING_TOOLS:
            continue
        arguments = call.get("arguments")
        table = _arguments(call.get("input") if arguments is None else arguments, is_patch=name == "apply_patch")
        base = _text(table.get("cwd"))
        for path in _named_paths(table, is_patch=name == "apply_patch"):
            memory_path = _memory_path(workspace / base / path, workspace)
            if memory_path:
                yield memory_path


def _arguments(value: Json, *, is_patch: bool) -> Table:
    """Arguments as a table; text that is no JSON is the patch itself."""
    if not isinstance(value, str):
        return as_table(value) or {}
    try:
        return as_table(json.loads(value)) or {}
    except (ValueError, RecursionError):
        return {"patch": value} if is_patch else {}


def _named_paths(table: Table, *, is_patch: bool) -> Iterator[str]:
    yield from filter(None, (_text(table.get(key)) for key in PATH_KEYS))
    if not is_patch:
        return
    yield from PATCH_PATH.findall(_text(table.get("input")) or _text(table.get("patch")))
    changes = table.get("changes")
    yield from as_table(changes) or ()
    for each in as_list(changes) or []:
        change = as_table(each) or {}
        moved = (as_table(change.get("kind")) or {}).get("move_path")
        yield from filter(None, (_text(change.get("path")), _text(moved)))


def _memory_path(path: Path, workspace: Path) -> str | None:
    """`path` relative to the workspace when it is a memory file in it."""
    target, root = Path(os.path.normpath(path)), Path(os.path.normpath(workspace))
    if not target.is_relative_to(root):
        return None
    parts = target.relative_to(root).as_posix().replace("\\", "/").split("/")
    is_memory = len(parts) > 1 and parts[0] == "memory"
    return "/".join(parts) if is_memory or (len(parts) == 1 and parts[0] in ROOT_FILES) else None


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _observed_at(record: Table, message: Table) -> int | None:
    """Time of the message, else of the record, in milliseconds; None when neither has one."""
    for value in (message.get("timestamp"), record.get("timestamp")):
        at = _milliseconds(value)
        if at is not None:
            return at
    return None


def _milliseconds(value: Json) -> int | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not 0 < value < float("inf"):
            return None
        return int(value * 1000 if value < SECONDS_BELOW else value)
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value.strip())
    except ValueError:
        return None
    if len(value.strip()) == len("2026-11-20"):
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
