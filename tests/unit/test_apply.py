"""What a run does when the ground keeps moving."""

from __future__ import annotations

import pytest

import cenotaph
from cenotaph.forget import apply
from scene import SECRET, TARGET, own, play
from state_maker import StateMaker, marker


def test_files_that_keep_changing_are_pending_and_the_evidence_stays(
    maker: StateMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Corpus lines and origin rows go last: a rerun needs them to find what was written meanwhile."""
    play(maker, {"MEMORY.md": f"{marker('gone:e')}\n- entry\n", "DREAMS.md": f"> {SECRET}\n"})
    own(maker, ["gone:e"]).seal()
    corpus = maker.read("memory/.dreams/session-corpus/2026-11-20.txt")
    rounds = 0

    def always(*_: object) -> bool:
        nonlocal rounds
        rounds += 1
        return True

    with monkeypatch.context() as patch, cenotaph.open(maker.state) as memory:
        patch.setattr(apply, "_changed_since", always)
        report = memory.forget(sessions=[TARGET])
    assert rounds > 1
    assert report.pending == ["memory files keep changing"]
    assert report.exit_status == 3
    assert maker.read("memory/.dreams/session-corpus/2026-11-20.txt") == corpus
    with cenotaph.open(maker.state) as memory:
        finished = memory.forget(sessions=[TARGET])
    assert finished.pending == []
    assert finished.artifacts.origin_rows == 1
    assert SECRET.encode() not in maker.read("memory/.dreams/session-corpus/2026-11-20.txt")
