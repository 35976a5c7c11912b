"""V18: files of `memory.search.extraPaths` are looked at and named, never edited; only their chunks go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from scene import SECRET, TARGET, agent_rows, own, play
from state_maker import StateMaker, marker

Forget = Callable[..., dict[str, Any]]


def outside(maker: StateMaker, tmp_path: Path) -> Path:
    """A note outside the workspace that quotes the secret, with two chunks."""
    note = tmp_path / "extra" / "note.md"
    note.parent.mkdir()
    note.write_text(f"{marker('gone:e')}\n- entry\n> {SECRET}\n\nthe rest of the note\n")
    maker.config["memory"]["search"]["extraPaths"] = [str(note.parent)]
    for path in (str(note),):
        maker.source(path)
        maker.chunk(path, f"> {SECRET}", lines=(1, 3))
        maker.chunk(path, "the rest of the note", lines=(5, 5))
    return note


def test_v18_the_file_is_named_and_not_edited(maker: StateMaker, forget: Forget, tmp_path: Path) -> None:
    note = outside(own(play(maker), ["gone:e"]), tmp_path)
    before = note.read_bytes()
    report = forget(maker.seal().state, sessions=[TARGET])
    assert note.read_bytes() == before
    assert [match["path"] for match in report["externalMatches"]] == [str(note)]
    assert (report["externalMatches"][0]["entries"], report["externalMatches"][0]["lines"]) == (1, 1)
    assert report["artifacts"]["memoryFiles"] == 0


def test_v18_its_chunk_goes_and_the_rest_stays_searchable(either: StateMaker, forget: Forget, tmp_path: Path) -> None:
    outside(own(play(either), ["gone:e"]), tmp_path)
    report = forget(either.seal().state, sessions=[TARGET])
    assert agent_rows(either, "SELECT text FROM memory_index_chunks") == [("the rest of the note",)]
    assert report["artifacts"]["indexChunks"] == 1


def test_v18_the_preview_names_it_too(maker: StateMaker, forget: Forget, tmp_path: Path) -> None:
    outside(own(play(maker), ["gone:e"]), tmp_path)
    maker.seal()
    dry = forget(maker.state, sessions=[TARGET], dry_run=True)
    assert dry["externalMatches"] == forget(maker.state, sessions=[TARGET])["externalMatches"]


def test_v18_a_file_without_a_match_is_not_named(maker: StateMaker, forget: Forget, tmp_path: Path) -> None:
    note = tmp_path / "clean.md"
    note.write_text("nothing to see\n")
    maker.config["memory"]["search"]["extraPaths"] = [str(note)]
    report = forget(play(maker).seal().state, sessions=[TARGET])
    assert report["externalMatches"] == []
