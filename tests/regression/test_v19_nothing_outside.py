"""V19: nothing is written outside the state directory and the workspaces, not even for a compressed archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import CommandLine
from scene import play
from state_maker import StateMaker, compact, snapshot, zstd_stored

WORD = "zyzzogeton in the archive"


def archived(maker: StateMaker) -> StateMaker:
    """A session of which only a compressed archive is left."""
    call = {"type": "toolCall", "id": "c", "name": "write", "arguments": {"path": "memory/kept.md"}}
    message = {"role": "assistant", "content": [{"type": "text", "text": WORD}, call]}
    text = "".join(compact(event) + "\n" for event in maker.events("s-arch", [message]))
    maker.archive("s-arch", blob=zstd_stored(text.encode()), encoding="zstd")
    return play(maker).seal()


@pytest.mark.parametrize("flags", [["--dry-run"], []], ids=["preview", "purge"])
def test_v19_no_file_appears_elsewhere(cli: CommandLine, either: StateMaker, tmp_path: Path, flags: list[str]) -> None:
    archived(either)
    places = {name: tmp_path / "elsewhere" / name for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_STATE_HOME")}
    for place in places.values():
        place.mkdir(parents=True)
    before = snapshot(tmp_path / "elsewhere")
    done = cli(
        either.state, "forget", "--session", "s-arch", *flags, "--json",
        env={name: str(place) for name, place in places.items()},
    )  # fmt: skip
    assert done.status == 0, done.err
    assert snapshot(tmp_path / "elsewhere") == before
    assert done.json["sessionResolutions"][0]["source"] == "archived"


def test_v19_the_archive_is_read_all_the_same(cli: CommandLine, either: StateMaker) -> None:
    """The curated write stands in the compressed transcript only."""
    report = cli.forget(archived(either).state, "--session", "s-arch", "--dry-run")
    assert [write["relativePath"] for write in report["curatedWrites"]] == ["memory/kept.md"]
