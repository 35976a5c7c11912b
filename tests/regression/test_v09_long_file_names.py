"""V9: a file whose name is as long as the file system allows is rewritten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scene import SECRET, TARGET, own, play
from state_maker import CORPUS, StateMaker, corpus_line, marker


@pytest.mark.parametrize("length", [200, 243, 255])
def test_v09_a_long_name_is_no_obstacle(maker: StateMaker, forget: Callable[..., dict[str, Any]], length: int) -> None:
    name = "memory/" + "n" * (length - 3) + ".md"
    corpus = f"{CORPUS}/" + "c" * (length - 4) + ".txt"
    own(play(maker, {name: f"{marker('gone:e')}\n- secret\nkept\n> {SECRET}\n"}), ["gone:e"])
    maker.file(corpus, corpus_line(TARGET, 4, "User: one more thing of that session") + "\nkept\n")
    report = forget(maker.seal().state, sessions=[TARGET])
    assert report["pending"] == []
    assert maker.read(name) == b"kept\n"
    assert maker.read(corpus) == b"kept\n"
    folder = (maker.workspace / name).parent
    assert [path.name for path in folder.iterdir() if path.is_file()] == [name.removeprefix("memory/")]
