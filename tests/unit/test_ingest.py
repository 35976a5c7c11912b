"""What ingestion writes: corpus lines, origins, short-term rows; again, after a kill, and for forgotten sessions."""

from __future__ import annotations

import json
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from cenotaph import _core
from cenotaph.admission import admission
from cenotaph.config import ExcludeSessions
from cenotaph.daily_notes import NoteChunk, note_chunks, note_day
from cenotaph.days import day_of, is_within
from cenotaph.ingest.run import Reach, ingest
from cenotaph.ingest.seen import Seen
from cenotaph.place import find_place
from cenotaph.recall.keys import claim_hash, cut_utf16, utf16_length
from cenotaph.sessions import Session
from scene import agent_rows, state_rows
from state_maker import StateMaker

SAID = "Remember that I drink tea without milk."
EVERY_DAY = Reach(None)


def run(maker: StateMaker) -> dict[str, object]:
    report = ingest(find_place(maker.state, "main"), EVERY_DAY, str, lambda _: None)
    return report.model_dump(by_alias=True)


def corpus(maker: StateMaker) -> list[str]:
    folder = maker.workspace / "memory/.dreams/session-corpus"
    return [line for path in sorted(folder.glob("*.txt")) for line in path.read_text().splitlines()]


def spoken(maker: StateMaker) -> StateMaker:
    messages = [{"role": "user", "content": SAID, "__openclaw": {"senderIsOwner": True}}]
    maker.session("s-one", messages=messages)
    return maker.seal()


def test_a_line_has_its_origin_and_its_entry(either: StateMaker) -> None:
    spoken(either)
    assert run(either)["addedLines"] == 1
    assert corpus(either) == [f"[main/sessions/main/s-one#L2] User: {SAID}"]
    key = f"memory:claim:{claim_hash(f'User: {SAID}')}"
    assert agent_rows(either, "SELECT entry_key, session_id, origin_class FROM memory_entry_origins") == [
        (key, "s-one", "owner")
    ]
    (row,) = state_rows(either, "SELECT value_json FROM plugin_state_entries WHERE namespace = 'short-term-recall'")
    value = json.loads(row[0])["value"]
    assert (value["key"], value["dailyCount"], value["startLine"]) == (key, 1, 1)


def test_a_second_run_finds_nothing_new(either: StateMaker) -> None:
    spoken(either)
    run(either)
    again = run(either)
    assert (again["lines"], again["sessions"]) == (0, {"unchanged": 1})
    assert len(corpus(either)) == 1


def test_a_forgotten_session_leaves_nothing(either: StateMaker) -> None:
    either.tombstone("s-one")
    spoken(either)
    assert run(either)["excluded"] == [{"sessionId": "s-one", "reason": "forgotten"}]
    assert corpus(either) == []
    assert agent_rows(either, "SELECT count(*) FROM memory_entry_origins") == [(0,)]


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("hook_source", "hookExternalContentSource:Gmail"),
        ("channel", "channel:Gmail"),
        ("chat_type", "chatType:Gmail"),
    ],
)
def test_policy_is_exact(field: str, reason: str) -> None:
    policy = ExcludeSessions(("Gmail",), ("Gmail",), ("Gmail",))
    plain = Session("s", "agent:main:x", "live", 1, "interactive")
    assert admission(plain, policy, ()).verdict == "admitted"
    for value, expected in (("Gmail", reason), ("gmail", None), ("Gmail2", None)):
        session = Session("s", "agent:main:x", "live", 1, "interactive", **{field: value})  # pyright: ignore[reportArgumentType]
        assert admission(session, policy, ()).reason == expected
        assert admission(session, policy, ("s",)).reason == "forgotten"


def test_lines_are_added_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/day.txt").write_bytes(b"one\r\ntorn")
    assert _core.append_lines(tmp_path, "a/day.txt", [b"two", b"one", b"two", b"torn"]) == ([3, 1, 3, 2], 1)
    assert (tmp_path / "a/day.txt").read_bytes() == b"one\r\ntorn\ntwo\n"
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(_core.ForgetRefused, match="is a link"):
        _core.append_lines(tmp_path, "b/day.txt", [b"three"])
    assert b"three" not in (tmp_path / "a/day.txt").read_bytes()


def test_a_note_in_pieces() -> None:
    note = (
        "# 2026-11-20\n\n## Garden\n\n- roses need water\n  - in the evening only\n- tools:\n  - the long rake\n\n"
        "Plain one.\nPlain two.\n"
    )
    assert note_chunks(note.replace("\n", "\r\n")) == note_chunks(note)
    assert note_chunks(note) == [
        NoteChunk("Garden: roses need water", 5, 5),
        NoteChunk("Garden: roses need water > in the evening only", 6, 6),
        NoteChunk("Garden: tools > the long rake", 8, 8),
        NoteChunk("Garden: Plain one. Plain two.", 10, 11),
    ]
    assert note_chunks("## Light Sleep\n<!-- openclaw:dreaming:light:start -->\n- staged words\n") == []


def test_days() -> None:
    assert [note_day(name) for name in ("2026-11-20.md", "2026-11-20-x.md", "2026-02-30.md", "x.md")] == [
        "2026-11-20",
        "2026-11-20",
        None,
        None,
    ]
    zone = ZoneInfo("America/New_York")
    # The day on which the clocks go back in New York: `cases/D08`.
    moments = {"2026-10-31": 1793505540000, "2026-11-01": 1793511000000, "1970-01-01": 1e30}
    assert {day: day_of(at, zone) for day, at in moments.items()} == {day: day for day in moments}
    now = 1795230000000
    assert is_within("2026-11-19", now, 2)
    assert not is_within("2026-11-18", now, 2)


def test_the_oldest_scopes_go_first_whatever_their_names() -> None:
    rows = [(f"{name}:0", json.dumps({"scope": name, "index": 0, "hashes": ["h"]}).encode()) for name in ("z", "a")]
    seen = Seen(rows)
    for number in range(2_047):
        seen.add(f"m{number}", ["h"])
    assert [row[1] for row in seen.changes(()) if row[2] is None] == ["z:0"]


def test_a_cut_never_splits_a_character() -> None:
    assert cut_utf16("a😀b", 2) == "a"
    assert utf16_length("a😀b") == 4
