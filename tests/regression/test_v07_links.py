"""V7: linked root files are followed; links below memory/ are named, and no origin row goes that they may need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scene import SECRET, TARGET, origin_keys, own, play
from state_maker import StateMaker, marker

Forget = Callable[..., dict[str, Any]]
ENTRY = f"{marker('gone:e')}\n- secret entry\nkept\n> {SECRET}\n"


@pytest.mark.parametrize("name", ["MEMORY.md", "USER.md", "DREAMS.md"])
def test_v07_a_linked_root_file_is_rewritten_through_the_link(
    maker: StateMaker, forget: Forget, tmp_path: Path, name: str
) -> None:
    real = tmp_path / "elsewhere" / "file.md"
    real.parent.mkdir()
    real.write_text(ENTRY)
    own(play(maker), ["gone:e"])
    (maker.workspace / name).symlink_to(real)
    report = forget(maker.seal().state, sessions=[TARGET])
    assert real.read_text() == "kept\n"
    assert (maker.workspace / name).is_symlink()
    assert report["artifacts"]["memoryEntries"] == 1
    assert report["untargetableEntryKeys"] == []
    assert origin_keys(maker) == set()
    assert not [path.name for path in real.parent.iterdir() if path != real]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_v07_a_link_below_memory_is_named_and_its_origins_stay(
    maker: StateMaker, forget: Forget, tmp_path: Path, kind: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text(ENTRY)
    own(play(maker, {"memory/a.md": ENTRY}), ["gone:e"])
    link = maker.workspace / "memory" / ("link.md" if kind == "file" else "linked")
    link.symlink_to(outside / "secret.md" if kind == "file" else outside)
    report = forget(maker.seal().state, sessions=[TARGET])
    assert (outside / "secret.md").read_text() == ENTRY
    assert link.is_symlink()
    assert maker.read("memory/a.md") == b"kept\n"
    assert any(link.name in refusal for refusal in report["refusals"])
    assert origin_keys(maker) == {"gone:e"}
    assert report["artifacts"]["originRows"] == 0


def test_v07_the_origins_go_once_the_link_is_gone(maker: StateMaker, forget: Forget, tmp_path: Path) -> None:
    outside = tmp_path / "secret.md"
    outside.write_text(ENTRY)
    own(play(maker, {"memory/a.md": ENTRY}), ["gone:e"]).seal()
    link = maker.workspace / "memory" / "link.md"
    link.symlink_to(outside)
    forget(maker.state, sessions=[TARGET])
    link.unlink()
    report = forget(maker.state, sessions=[TARGET])
    assert report["artifacts"]["originRows"] == 1
    assert origin_keys(maker) == set()


def test_v07_a_link_to_a_file_that_is_read_anyway_is_no_reason_to_refuse(maker: StateMaker, forget: Forget) -> None:
    own(play(maker, {"memory/a.md": ENTRY}), ["gone:e"]).seal()
    (maker.workspace / "memory" / "again.md").symlink_to(maker.workspace / "memory" / "a.md")
    report = forget(maker.state, sessions=[TARGET])
    assert report["refusals"] == []
    assert origin_keys(maker) == set()
