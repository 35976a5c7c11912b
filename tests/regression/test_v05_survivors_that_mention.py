"""V5: only the rendered prefix of a corpus line decides whose line it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scene import DAY, SECRET, SURVIVOR, TARGET
from state_maker import CORPUS, StateMaker, corpus_line

MENTIONS = [
    f"User: look at sessions/main/{TARGET} for the details",
    f"User: the key is agent:main:{TARGET} if you need it",
    f"User: Session ID: {TARGET}; that was the one",
    f"Assistant: [main/sessions/main/{TARGET}#L9] was quoted here",
]


@pytest.mark.parametrize("mention", MENTIONS, ids=["path", "key", "session id", "prefix in the text"])
def test_v05_a_survivors_line_stays_and_is_no_needle(
    maker: StateMaker, forget: Callable[..., dict[str, Any]], mention: str
) -> None:
    maker.session(TARGET)
    maker.session(SURVIVOR)
    kept = corpus_line(SURVIVOR, 2, mention)
    maker.corpus(DAY, [corpus_line(TARGET, 2, SECRET), kept])
    maker.file("memory/note.md", f"- quoted: {mention[:30]} and more\n")
    maker.file("DREAMS.md", f"> {mention}\n" if "ession ID" not in mention else "dream\n")
    before = maker.read("DREAMS.md")
    report = forget(maker.seal().state, sessions=[TARGET])
    assert maker.read(f"{CORPUS}/{DAY}.txt").decode() == kept + "\n"
    assert maker.read("DREAMS.md") == before
    assert report["artifacts"]["sessionCorpusLines"] == 1
    assert report["artifacts"]["memoryLines"] == 0


PREFIXES = [
    f"[main/sessions/main/{TARGET}#L4] text of the line",
    f"  [main/sessions/main/{TARGET}#L4] text of the line",
    f"[main/sessions/main/{TARGET}.jsonl#L4] text of the line",
    f"[main/sessions/main/{TARGET}.jsonl.reset.2026-11-18T09-00-00.000Z#L4] text of the line",
    f"[main/sessions/main/{TARGET}.jsonl.deleted.2026-11-18T09-00-00.000Z.{'a' * 32}.zst#L4] text of the line",
    f"[main:{TARGET}] text without a line number",
]


@pytest.mark.parametrize("line", PREFIXES, ids=["live", "indented", "jsonl", "reset", "deleted zst", "key form"])
def test_v05_every_form_of_the_prefix_decides(
    maker: StateMaker, forget: Callable[..., dict[str, Any]], line: str
) -> None:
    maker.session(TARGET)
    maker.session(SURVIVOR)
    maker.corpus(DAY, [line, corpus_line(SURVIVOR, 2, "User: something else altogether")])
    report = forget(maker.seal().state, sessions=[TARGET])
    assert report["artifacts"]["sessionCorpusLines"] == 1
    assert b"text" not in maker.read(f"{CORPUS}/{DAY}.txt")
