"""The test is tested: what the raw scan looks for is there after a purge that is careless with bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from planting import KINDS, TARGET, Kind, begin, careless, needles_of, purge_carelessly, spelled_otherwise, stage
from raw import make_needle, scan

from cenotaph.forget import prove
from state_maker import StateMaker, files_holding


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_careless_purge_leaves(either: StateMaker, kind: Kind) -> None:
    stage(either, [kind])
    purge_carelessly(either)
    assert {hit.kind for hit in scan([either.root], needles_of([kind]))} == {kind.name}


def test_words_in_segments_outlive_a_vacuum(either: StateMaker) -> None:
    """A rewritten database holds no text that was deleted; the segments of its full-text tables hold the words."""
    kinds = [kind for kind in KINDS if kind.name in ("segments with deleted words", "chunk of the transcript")]
    stage(either, kinds)
    purge_carelessly(either, files=False)
    for path in (item for item in either.workspace.rglob("*") if item.is_file()):
        path.unlink()
    with careless(either.agent_db) as db:
        db.execute("VACUUM")
    hits = scan([either.root], needles_of(kinds))
    assert {hit.spelling for hit in hits} == {"word, utf-8"}
    assert {hit.kind for hit in hits} == {"chunk of the transcript"} if either.native else {kind.name for kind in kinds}


def test_without_its_means_the_product_says_what_the_scan_finds(
    either: StateMaker, forget: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are purged with secure deletion, old bytes are left where they are: its search and this one see the same."""
    kinds = [kind for kind in KINDS if kind.past]
    stage(either, kinds)

    def none(*_: object) -> list[object]:
        return []

    monkeypatch.setattr(prove, "_remedies", none)
    report = forget(either.state, sessions=[TARGET])
    hits = {hit.file for hit in scan([either.root], needles_of(kinds))}
    assert hits == {str(either.agent_db), str(either.state_db)}
    assert report["verification"]["result"] == "residue"
    found = report["verification"]["residue"]
    assert {place["path"] for place in found} == {
        str(path.relative_to(either.state)) for path in (either.agent_db, either.state_db)
    }
    assert {"free", "slack"} <= {place["part"] for place in found}
    assert len(report["pending"]) == len(found)


def test_every_spelling_is_seen(maker: StateMaker) -> None:
    scene = begin(maker)
    needle = make_needle("spellings")
    spelled_otherwise(scene, needle)
    scene.seal()
    hits = scan([maker.root], [needle])
    files = {hit.file.split(" ")[0] for hit in hits if hit.spelling.startswith("text")}
    assert len(files) == len(list((maker.workspace / "other").iterdir()))


def test_a_needle_is_not_found_where_it_is_not(either: StateMaker) -> None:
    begin(either).seal()
    assert scan([either.root], needles_of(KINDS)) == []


def test_needles_share_nothing() -> None:
    """A piece of one needle in another would name the wrong artifact."""
    needles = needles_of(KINDS)
    words = [word[-8:] for needle in needles for word in needle.words]
    assert len(set(words)) == 2 * len(KINDS)
    assert not [word for word in words for needle in needles if word in needle.text and word[-8:] not in {
        own[-8:] for own in needle.words
    }]  # fmt: skip


def test_a_piece_of_a_row_is_enough(maker: StateMaker) -> None:
    """Half a needle is found: the beginning of a freed cell is overwritten by its link."""
    begin(maker).seal()
    needle = make_needle("half")
    (maker.workspace / "half.bin").write_bytes(b"\0" * 100 + needle.text.encode()[9:])
    assert scan([maker.root], [needle]) != []
    assert files_holding(maker.root, needle.text.encode()) == []
