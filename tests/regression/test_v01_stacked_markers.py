"""V1: the markers over one entry and the entry are one unit; any selected key takes the whole of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scene import SURVIVOR, TARGET, origin_keys, own, play, plugin_keys
from state_maker import StateMaker, lineage, marker

E, E2, K, K2 = marker("gone:e"), marker("gone:e2"), marker("kept:k"), marker("kept:k2")
LINEAGE = lineage("lin-1")
Forget = Callable[..., dict[str, Any]]

UNITS = {
    "selected first": (f"{E}\n{K}\n- shared\n- stranger\n", "- stranger\n", 2),
    "selected last": (f"{K}\n{E}\n- shared\n- stranger\n", "- stranger\n", 2),
    "three": (f"{K}\n{E}\n{K2}\n- shared\n- stranger\n", "- stranger\n", 3),
    "all selected": (f"{E}\n{E2}\n- shared\n- stranger\n", "- stranger\n", 2),
    "lineage above": (f"{LINEAGE}\n{K}\n{E}\n- shared\n- stranger\n", "- stranger\n", 2),
    "lineage between": (f"{K}\n{LINEAGE}\n{E}\n- shared\n  deeper\n- stranger\n", "- stranger\n", 2),
    "lineage before the block": (f"{E}\n{LINEAGE}\n{K}\n- shared\n- stranger\n", "- stranger\n", 2),
    "blank between": (f"{K}\n\n{E}\n\n- shared\n- stranger\n", "- stranger\n", 2),
    "block between": (f"{K}\n- own\n{E}\n- secret\n- stranger\n", f"{K}\n- own\n- stranger\n", 1),
    "carriage returns": (f"{K}\r\n{E}\r\n- shared\r\n- stranger\r\n", "- stranger\r\n", 2),
    "no block": (f"text\n\n{K}\n{E}\n## Heading\n", "text\n\n## Heading\n", 2),
}


@pytest.mark.parametrize(("before", "after", "entries"), UNITS.values(), ids=UNITS.keys())
def test_v01_a_unit_goes_whole(maker: StateMaker, forget: Forget, before: str, after: str, entries: int) -> None:
    play(maker, {"MEMORY.md": before})
    own(own(maker, ["gone:e", "gone:e2"]), ["kept:k", "kept:k2"], SURVIVOR).seal()
    report = forget(maker.state, sessions=[TARGET])
    assert maker.read("MEMORY.md").decode() == after
    assert report["artifacts"]["memoryEntries"] == entries


def test_v01_the_other_keys_are_listed_and_forgotten_with_it(maker: StateMaker, forget: Forget) -> None:
    play(maker, {"MEMORY.md": f"{K}\n{E}\n- shared\n{K2}\n- own\n"})
    own(own(maker, ["gone:e"]), ["kept:k", "kept:k2"], SURVIVOR)
    for key in ("gone:e", "kept:k", "kept:k2"):
        maker.short_term(key, "some words of a recall row")
    report = forget(maker.seal().state, sessions=[TARGET])
    assert report["entryKeys"] == ["gone:e", "kept:k"]
    assert report["mixedLineageEntryKeys"] == ["kept:k"]
    assert report["untargetableEntryKeys"] == []
    assert report["artifacts"]["originRows"] == 2
    assert report["artifacts"]["shortTermEntries"] == 2
    assert origin_keys(maker) == {"kept:k2"}
    assert plugin_keys(maker, "short-term-recall") == {"kept:k2"}
    assert plugin_keys(maker, "short-term-phase-signals") == {"kept:k2"}


def test_v01_a_joined_key_takes_its_other_units_too(maker: StateMaker, forget: Forget) -> None:
    files = {
        "MEMORY.md": f"{K}\n{E}\n- shared\n",
        "memory/a.md": f"{K2}\n{K}\n- twin\n",
        "memory/b.md": f"{K2}\n- far\n- x\n",
    }
    own(own(play(maker, files), ["gone:e"]), ["kept:k", "kept:k2"], SURVIVOR)
    report = forget(maker.seal().state, sessions=[TARGET])
    assert report["entryKeys"] == ["gone:e", "kept:k", "kept:k2"]
    assert [maker.read(name) for name in files] == [b"", b"", b"- x\n"]
    assert origin_keys(maker) == set()


def test_v01_no_marker_is_left_to_label_a_stranger(maker: StateMaker, forget: Forget) -> None:
    from scene import SECRET

    before = f"{LINEAGE}\n{K}\n- {SECRET}\n- stranger\n{K2}\n- first\n  {SECRET}\n- other\n"
    own(play(maker, {"MEMORY.md": before}), ["kept:k", "kept:k2"], SURVIVOR)
    report = forget(maker.seal().state, sessions=[TARGET])
    assert maker.read("MEMORY.md").decode() == f"- stranger\n{K2}\n- first\n- other\n"
    assert report["artifacts"]["memoryEntries"] == 0
    assert report["artifacts"]["memoryLines"] == 2
    assert origin_keys(maker) == {"kept:k", "kept:k2"}


def test_v01_a_backup_loses_the_unit_too(maker: StateMaker, forget: Forget) -> None:
    text = f"{K}\n{E}\n- shared\n- stranger\n"
    play(maker, {"MEMORY.md": text}).backup(text)
    own(own(maker, ["gone:e"]), ["kept:k"], SURVIVOR).seal()
    report = forget(maker.state, sessions=[TARGET])
    assert report["artifacts"]["backups"] == 1
    from scene import state_rows

    query = "SELECT json_extract(value_json, '$.value.content') FROM plugin_state_entries WHERE namespace = ?"
    assert state_rows(maker, query, "dreaming-memory-backups") == [("- stranger\n",)]
