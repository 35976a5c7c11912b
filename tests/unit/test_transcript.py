"""Transcripts: who said what, what memory sees of it, and which memory files were written.

The expected values were observed on the host (OpenClaw 2026.9.6) where its behaviour is the standard.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from cenotaph.transcript import (
    CuratedWrite,
    Projection,
    curated_writes,
    is_cron_run_key,
    is_narrative_name,
    jsonl_events,
    parse_records,
    project,
)

T0 = 1_795_165_200_000
WORKSPACE = Path("/home/user/space")
OWNER = {"__openclaw": {"senderIsOwner": True}}
CONTEXT = "<<<{}_OPENCLAW_INTERNAL_CONTEXT>>>"


def user(content: object, **more: object) -> dict[str, object]:
    return {"role": "user", "content": content, **more}


def assistant(content: object, **more: object) -> dict[str, object]:
    return {"role": "assistant", "content": content, **more}


def events(*messages: dict[str, object]) -> list[bytes]:
    """A header and one event for each message, one second apart."""
    made: list[dict[str, Any]] = [{"type": "session", "id": "s"}]
    for position, message in enumerate(messages, 1):
        made.append({"type": "message", "message": {"timestamp": T0 + position * 1000, **message}})
    return [json.dumps(each).encode() for each in made]


def seen(*messages: dict[str, object]) -> list[str]:
    return [line.text for line in project(events(*messages), archived=False).lines]


def classes(*messages: dict[str, object]) -> list[str]:
    return [line.origin_class for line in project(events(*messages), archived=False).lines]


# -- records ------------------------------------------------------------------------------------


def test_archive_text_is_split_at_line_feeds_only() -> None:
    assert jsonl_events(b'{"a":1}\n{"b":"\xe2\x80\xa8"}\r\n{"c":1}') == [
        b'{"a":1}',
        b'{"b":"\xe2\x80\xa8"}\r',
        b'{"c":1}',
    ]
    assert jsonl_events(b'{"a":1}\n') == [b'{"a":1}']
    assert jsonl_events(b"") == []


def test_unreadable_records_keep_their_number() -> None:
    raw = [b'{"n":1}', b"{broken", b"[1]", b"", b'{"n":"\xff"}', b"[" * 100_000]
    assert [(each.number, each.data) for each in parse_records(raw)] == [(1, {"n": 1}), (5, {"n": "\ufffd"})]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dreaming-narrative-light-1", True),
        ("agent:main:dreaming-narrative-rem-zzz", True),
        ("agent:main:dreaming-narrative-rem:more", True),
        ("main:dreaming-narrative-rem", False),
        ("agent:main:x:dreaming-narrative-rem", False),
        ("agent:main:the dreaming-narrative-rem", False),
        ("dreaming-narrative", False),
        ("", False),
    ],
)
def test_narrative_names(name: str, *, expected: bool) -> None:
    assert is_narrative_name(name) is expected


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("agent:main:cron:nightly:run:7", True),
        ("agent:main:cron:nightly:run:7:deeper:still", True),
        ("agent:main:cron:nightly", False),
        ("agent:main:cron:nightly:run:", False),
        ("agent:main:x:cron:nightly:run:7", False),
        ("Agent:main:cron:nightly:run:7", False),
    ],
)
def test_cron_run_keys(key: str, *, expected: bool) -> None:
    assert is_cron_run_key(key) is expected


# -- origin classes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([assistant("before any user")], ["untrusted"]),
        ([user("hi", **OWNER), assistant("reply")], ["owner", "agent"]),
        ([user("hi"), assistant("reply")], ["untrusted", "untrusted"]),
        ([user("hi", __openclaw={"senderIsOwner": "true"})], ["untrusted"]),
        ([user("hi", provenance={"kind": "internal_system"}, **OWNER), assistant("a")], ["system", "system"]),
        (
            [user("hi", **OWNER), assistant("a", __openclaw={"turnTainted": True}), assistant("b")],
            ["owner", "untrusted", "agent"],
        ),
        ([user("hi", **OWNER), assistant("a", __openclaw={"turnTainted": "yes"})], ["owner", "agent"]),
        ([user("hi", **OWNER), user("other"), assistant("a")], ["owner", "untrusted", "untrusted"]),
        ([user("from b", provenance={"kind": "inter_session"}, **OWNER), assistant("a")], ["agent"]),
    ],
)
def test_origin_class(messages: list[dict[str, object]], expected: list[str]) -> None:
    assert classes(*messages) == expected


# -- projection ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t ",
        "System: [2026-11-20 09:00] a notice",
        "  System: [x] after blanks",
        "System: [x]without a blank",
        "System (untrusted): [2026-11-20] a notice",
        "System: [x] a notice\nSystem: [y] another\n\nand text below",
        "[cron:nightly] Summarise the ledger",
        "[cron: a b] with blanks",
        "[Fri 2026-11-20 09:00 UTC] System: [x] stamped",
        "[Fri 2026-11-20 09:00 UTC] [cron:x] stamped",
        "Exec finished (gateway id=abc, code 0) output",
        "exec Finished(abc, code 0)",
        "Exec completed (abc12345, code 0) :: output",
        "NO_REPLY",
        " no_reply ",
        "[Fri 2026-11-20 09:00 UTC] NO_REPLY",
        f"{CONTEXT.format('BEGIN')}\nnever closed",
    ],
)
def test_generated_user_text_is_dropped(text: str) -> None:
    assert seen(user(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "System: no bracket",
        "System:[x] no blank",
        "System: [] empty",
        "System: [x unclosed",
        "system: [x] lower case",
        "System (other): [x]",
        "[cron:] empty",
        "[CRON:x] upper case",
        "[cron:x unclosed",
        "text before [cron:x]",
        "Exec failed (abc, signal 9)",
        "Exec finished without parenthesis",
        "exec completed (abc12345, code 0)",
        "look: Exec finished (abc, code 0)",
        "NO_REPLY, she said",
        "HEARTBEAT_OK",
        "[2026-11-20 09:00 UTC] no weekday",
        "[Fri 2026-11-20] no time",
        "[Friday 2026-11-20 09:00 UTC] long weekday",
        "/status please",
    ],
)
def test_user_text_that_stays_as_it_is(text: str) -> None:
    assert seen(user(text)) == [f"User: {text}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Fri 2026-11-20 09:00 UTC] text", "text"),
        ("[fri 2026-11-20 09:00:05 Europe/Vienna]text", "text"),
        ("[Fri 2026-11-20 09:00][Sat 2026-11-21 10:00] text", "[Sat 2026-11-21 10:00] text"),
        (" [Fri 2026-11-20 09:00 UTC] text", "[Fri 2026-11-20 09:00 UTC] text"),
        ("a\n\tb\u00a0c\ufeffd\u0085e\x1cf", "a b c d\u0085e\x1cf"),
        (f"a\n {CONTEXT.format('BEGIN')} \nsecret\n{CONTEXT.format('END')}\nb", "a b"),
        (f"a\n{CONTEXT.format('BEGIN')}\nsecret", "a"),
        (
            f"{CONTEXT.format('BEGIN')}\n{CONTEXT.format('BEGIN')}\nx\n{CONTEXT.format('END')}\ny\n{CONTEXT.format('END')}\nz",
            "z",
        ),
        (f"a\n{CONTEXT.format('END')}\nb", "a b"),
        (f"a {CONTEXT.format('BEGIN')} inline", f"a {CONTEXT.format('BEGIN')} inline"),
    ],
)
def test_user_text_is_cleaned(text: str, expected: str) -> None:
    assert seen(user(text)) == [f"User: {expected}"]


@pytest.mark.parametrize(
    "text", ["HEARTBEAT_OK", " HEARTBEAT_OK\n", "NO_REPLY", "no_reply", "Exec finished (abc, code 0)"]
)
def test_empty_replies_are_dropped(text: str) -> None:
    assert seen(assistant(text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "heartbeat_ok",
        "HEARTBEAT_OK.",
        "System: [x] quoted",
        "[cron:x] quoted",
        "[Fri 2026-11-20 09:00 UTC] quoted",
    ],
)
def test_replies_that_stay(text: str) -> None:
    assert seen(assistant(text)) == [f"Assistant: {text}"]


def test_text_comes_from_text_blocks() -> None:
    blocks = [
        {"type": "text", "text": "one"},
        {"type": "image", "text": "no"},
        {"type": "thinking", "text": "no"},
        "no",
        {"type": "text", "text": 5},
        {"type": "text", "text": "two"},
    ]
    assert seen(user(blocks)) == ["User: one two"]
    assert seen(user({"text": "no"}), user(None), user(5)) == []


def test_other_roles_and_records_are_dropped() -> None:
    raw = [
        *events({"role": "toolResult", "content": "no"}, {"role": "system", "content": "no"}),
        b'{"type":"custom","message":{"role":"user","content":"no"}}',
        b'{"type":"message","message":"no"}',
        b'{"type":"message","message":{"role":["user"],"content":"no"}}',
    ]
    assert project(raw, archived=False) == Projection(())


@pytest.mark.parametrize("tool", ["heartbeat", "memory_search", "memory_get"])
def test_turns_of_the_host_itself_are_hidden_until_the_next_user_message(tool: str) -> None:
    inside = user("inside", provenance={"kind": "internal_system", "sourceTool": tool})
    assert seen(inside, assistant("hidden"), user("again"), assistant("shown")) == [
        "User: again",
        "Assistant: shown",
    ]


def test_other_internal_input_is_shown() -> None:
    inside = user("inside", provenance={"kind": "internal_system", "sourceTool": "other"})
    outside = user("outside", provenance={"kind": "external_user", "sourceTool": "heartbeat"})
    assert seen(inside, outside) == ["User: inside", "User: outside"]


def test_inter_session_input_is_dropped_and_its_reply_kept() -> None:
    assert seen(user("no", provenance={"kind": "inter_session"}), assistant("yes")) == ["Assistant: yes"]


def test_lines_know_their_record_and_time() -> None:
    lines = project(events(user("a"), {"role": "toolResult"}, assistant("b")), archived=False).lines
    assert [(line.record_number, line.observed_at) for line in lines] == [(2, T0 + 1000), (4, T0 + 3000)]


@pytest.mark.parametrize(
    ("message_time", "record_time", "expected"),
    [
        (1_795_165_200, None, T0),
        (1_795_165_200.75, None, T0 + 750),
        ("2026-11-20T09:00:05Z", "2020-01-01", T0 + 5000),
        ("2026-11-20", None, T0 - 9 * 3_600_000),
        ("2026-11-20T10:00:00.250+01:00", None, T0 + 250),
        ("1795165200", 1_795_165_201, T0 + 1000),
        (None, "2026-11-20T09:00:07.500Z", T0 + 7500),
        (0, "nonsense", 0),
        (True, None, 0),
        (float("inf"), None, 0),
        (None, None, 0),
    ],
)
def test_times(message_time: object, record_time: object, expected: int) -> None:
    record = {"type": "message", "timestamp": record_time, "message": user("x", timestamp=message_time)}
    assert project([json.dumps(record).encode()], archived=False).lines[0].observed_at == expected


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a" * 800, ["a" * 800]),
        ("a" * 790 + " " + "b" * 9 + " " + "c" * 20, ["a" * 790 + " " + "b" * 9, "c" * 20]),
        ("a" * 790 + " " + "b" * 20, ["a" * 790, "b" * 20]),
        ("a" * 800 + " " + "b" * 20, ["a" * 800, "b" * 20]),
        ("a" * 801 + " tail", ["a" * 800, "a tail"]),
        ("c" * 1700, ["c" * 800, "c" * 800, "c" * 100]),
        ("short " + "g" * 900, ["short", "g" * 800, "g" * 100]),
        ("\U0001f600" * 450, ["\U0001f600" * 400, "\U0001f600" * 50]),
        ("x" + "\U0001f600" * 450, ["x" + "\U0001f600" * 399, "\U0001f600" * 51]),
        ("\u00e9" * 801, ["\u00e9" * 800, "\u00e9"]),
    ],
)
def test_long_messages_are_wrapped(text: str, pieces: list[str]) -> None:
    assert seen(assistant(text)) == [f"Assistant: {piece}" for piece in pieces]


def test_wrapping_a_large_message_takes_linear_time() -> None:
    lines = seen(user("word " * 800_000))
    assert len(lines) == 5000
    assert all(len(line) <= len("User: ") + 800 for line in lines)


# -- internal runs ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "in_archive", "when_live"),
    [
        ({"type": "custom", "data": {"runId": "dreaming-narrative-x"}}, "narrative", "narrative"),
        ({"type": "custom", "data": {"runId": "agent:main:dreaming-narrative-x"}}, "narrative", "narrative"),
        (
            {"type": "custom", "data": {"sessionKey": "agent:main:dreaming-narrative-x"}},
            "narrative",
            "narrative",
        ),
        ({"type": "custom", "runId": "dreaming-narrative-x"}, "narrative", "narrative"),
        ({"type": "custom", "sessionKey": "agent:main:dreaming-narrative-x"}, "narrative", "narrative"),
        (
            {"type": "message", "message": assistant("a", __openclaw={"runId": "dreaming-narrative-x"})},
            "narrative",
            "narrative",
        ),
        (
            {
                "type": "message",
                "message": {"role": "toolResult", "__openclaw": {"runId": "dreaming-narrative-x"}},
            },
            "narrative",
            "narrative",
        ),
        ({"type": "message", "message": user("a", __openclaw={"runId": "dreaming-narrative-x"})}, None, None),
        ({"type": "message", "message": user("dreaming-narrative-x agent:main:cron:j:run:r")}, None, None),
        ({"type": "custom", "data": {"sessionKey": "agent:main:cron:j:run:r"}}, "cron", None),
        ({"type": "custom", "sessionKey": "agent:main:cron:j:run:r"}, "cron", None),
        ({"type": "custom", "data": {"sessionKey": "agent:main:cron:j"}}, None, None),
        ({"type": "custom", "runId": 5, "data": [1]}, None, None),
    ],
)
def test_internal_runs_show_nothing(record: dict[str, object], in_archive: str | None, when_live: str | None) -> None:
    raw = [*events(user("said before")), json.dumps(record).encode()]
    for archived, expected in ((True, in_archive), (False, when_live)):
        projection = project(raw, archived=archived)
        assert projection.internal == expected
        assert bool(projection.lines) == (expected is None)


def test_all_system_needs_a_line() -> None:
    system = user("made by the host", provenance={"kind": "internal_system"})
    assert project(events(system, assistant("reply")), archived=True).is_all_system
    assert not project(events(system, user("hi")), archived=True).is_all_system
    assert not project(events({"role": "toolResult"}), archived=True).is_all_system


# -- curated writes -----------------------------------------------------------------------------


def call(name: str, arguments: object, *, key: str = "arguments", kind: str = "toolCall") -> dict[str, object]:
    return assistant([{"type": "text", "text": "x"}, {"type": kind, "id": "c", "name": name, key: arguments}])


def written(*messages: dict[str, object]) -> list[str]:
    return [write.relative_path for write in curated_writes(events(*messages), WORKSPACE, 7)]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "memory/a.md"}, ["memory/a.md"]),
        (
            {"path": "memory/a.md", "file_path": "memory/b.md", "filePath": "memory/c.md"},
            ["memory/a.md", "memory/b.md", "memory/c.md"],
        ),
        ('{"file_path": "memory/a.md"}', ["memory/a.md"]),
        ("memory/a.md", []),
        ({"path": 5}, []),
        ({"path": ""}, []),
        ({"changes": [{"path": "memory/a.md"}], "input": "*** Add File: memory/b.md"}, []),
        ({"path": "MEMORY.md"}, ["MEMORY.md"]),
        ({"path": "USER.md"}, ["USER.md"]),
        ({"path": "memory/deep/er/a.txt"}, ["memory/deep/er/a.txt"]),
        ({"path": "memory/.dreams/a.txt"}, ["memory/.dreams/a.txt"]),
        ({"path": "DREAMS.md"}, []),
        ({"path": "memory.md"}, []),
        ({"path": "users/x/USER.md"}, []),
        ({"path": "memory"}, []),
        ({"path": "memory/"}, []),
        ({"path": " memory/a.md"}, []),
        ({"path": "memory\\a.md"}, ["memory/a.md"]),
        ({"path": "./memory/../memory/./a.md"}, ["memory/a.md"]),
        ({"path": "/home/user/space/memory/a.md"}, ["memory/a.md"]),
        ({"path": "/home/user/space2/memory/a.md"}, []),
        ({"path": "/home/user/space/../space2/memory/a.md"}, []),
        ({"path": "../memory/a.md"}, []),
        ({"path": "a.md", "cwd": "memory"}, ["memory/a.md"]),
        ({"path": "../memory/a.md", "cwd": "memory"}, ["memory/a.md"]),
        ({"path": "memory/a.md", "cwd": "/tmp"}, []),
        ({"path": "memory/a.md", "cwd": "/home/user/space"}, ["memory/a.md"]),
    ],
)
def test_paths_of_write_and_edit(arguments: object, expected: list[str]) -> None:
    assert written(call("write", arguments)) == expected
    assert written(call("edit", arguments, key="input", kind="tool_use")) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "memory/a.md"}, ["memory/a.md"]),
        (
            "*** Add File: memory/a.md\n+x\n*** Update File: memory/b.md\r\n*** Move to: memory/c.md\n",
            ["memory/a.md", "memory/b.md", "memory/c.md"],
        ),
        ("*** Delete File: memory/a.md", ["memory/a.md"]),
        ("*** Delete File:memory/a.md\n  *** Add File: memory/b.md\n*** Add File:  memory/c.md", []),
        ({"input": "*** Add File: memory/a.md", "patch": "*** Add File: memory/b.md"}, ["memory/a.md"]),
        ({"input": 5, "patch": "*** Add File: memory/b.md"}, ["memory/b.md"]),
        ('{"input": "*** Add File: memory/a.md"}', ["memory/a.md"]),
        ('"*** Add File: memory/a.md"', []),
        (
            {
                "changes": [
                    {"path": "memory/a.md", "kind": {"move_path": "memory/b.md"}},
                    {"path": "memory/c.md", "kind": "x"},
                    5,
                ]
            },
            ["memory/a.md", "memory/b.md", "memory/c.md"],
        ),
        ({"changes": {"memory/a.md": {"move_path": "memory/b.md"}, "src/x.py": {}}}, ["memory/a.md"]),
        ({"changes": "memory/a.md"}, []),
        ({"input": "*** Add File: a.md", "cwd": "memory"}, ["memory/a.md"]),
    ],
)
def test_paths_of_patches(arguments: object, expected: list[str]) -> None:
    assert written(call("apply_patch", arguments, kind="tool_call")) == expected


@pytest.mark.parametrize(
    "message",
    [
        call("Write", {"path": "memory/a.md"}),
        call("read", {"path": "memory/a.md"}),
        call("write", {"path": "memory/a.md"}, key="args"),
        call("write", {"path": "memory/a.md"}, kind="toolResult"),
        call("write", {"path": "memory/a.md"}) | {"role": "user"},
        call("write", {"path": "memory/a.md"}) | {"content": "toolCall write memory/a.md"},
    ],
)
def test_what_is_no_writing_call(message: dict[str, object]) -> None:
    assert written(message) == []


def test_arguments_come_before_input() -> None:
    block = {
        "type": "toolCall",
        "name": "write",
        "arguments": {"path": "memory/a.md"},
        "input": {"path": "memory/b.md"},
    }
    assert written(assistant([block])) == ["memory/a.md"]
    assert written(assistant([block | {"arguments": None}])) == ["memory/b.md"]


def test_the_first_call_of_a_file_gives_the_time() -> None:
    first, second = call("write", {"path": "memory/b.md"}), call("write", {"path": "memory/a.md"})
    assert curated_writes(events(first, second, first), WORKSPACE, 7) == [
        CuratedWrite("memory/b.md", T0 + 1000),
        CuratedWrite("memory/a.md", T0 + 2000),
    ]


def test_a_call_without_a_time_takes_the_fallback() -> None:
    assert curated_writes(
        events(
            call(
                "write",
                {"path": "USER.md"},
            )
            | {"timestamp": None}
        ),
        WORKSPACE,
        7,
    ) == [CuratedWrite("USER.md", 7)]


def test_escaped_tool_names_are_found() -> None:
    raw = events(call("write", {"path": "USER.md"}))
    escaped = [event.replace(b"toolCall", b"tool\\u0043all") for event in raw]
    assert escaped != raw
    assert [write.relative_path for write in curated_writes(escaped, WORKSPACE, 0)] == ["USER.md"]
