"""V10: a tombstone that another agent left for the same session id is an error before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

import cenotaph
from scene import TARGET, agent_rows, origin_keys, own, play
from state_maker import StateMaker, marker


def test_v10_the_other_agent_is_named_and_nothing_is_written(either: StateMaker) -> None:
    own(play(either, {"MEMORY.md": f"{marker('gone:e')}\n- entry\n"}), ["gone:e"])
    either.tombstone(TARGET, agent="second")
    either.chunk(f"sessions/main/{TARGET}.jsonl", "words", source="sessions", kind="interactive")
    either.seal()
    before: dict[str, Any] = {str(path): path.read_bytes() for path in either.workspace.rglob("*") if path.is_file()}
    with cenotaph.open(either.state, agent="main") as memory, pytest.raises(cenotaph.ForgetRefused, match="second"):
        memory.forget(sessions=[TARGET])
    assert {str(path): path.read_bytes() for path in either.workspace.rglob("*") if path.is_file()} == before
    assert origin_keys(either) == {"gone:e"}
    assert agent_rows(either, "SELECT count(*) FROM memory_index_chunks") == [(1,)]
    assert agent_rows(either, "SELECT session_id, agent_id FROM memory_session_tombstones") == [(TARGET, "second")]


def test_v10_a_tombstone_of_this_agent_is_no_obstacle(maker: StateMaker) -> None:
    own(play(maker, {"MEMORY.md": f"{marker('gone:e')}\n- entry\n"}), ["gone:e"])
    maker.tombstone(TARGET)
    maker.seal()
    with cenotaph.open(maker.state, agent="main") as memory:
        memory.forget(sessions=[TARGET])
    assert maker.read("MEMORY.md") == b""
    query = "SELECT session_id, agent_id, created_at FROM memory_session_tombstones"
    assert agent_rows(maker, query) == [(TARGET, "main", 1_795_165_200_000)]
