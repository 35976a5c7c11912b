"""V15: what cannot be read is a refusal; the rest is done, and the exit status says incomplete."""

from __future__ import annotations

from typing import Any

import pytest

from conftest import CommandLine
from scene import SECRET, SURVIVOR, TARGET, origin_keys, own, play, plugin_keys
from state_maker import StateMaker, marker


def scene(maker: StateMaker) -> StateMaker:
    """Something to forget, beside which the damage lies."""
    own(play(maker, {"MEMORY.md": f"{marker('gone:e')}\n- entry\n> {SECRET}\nkept\n"}), ["gone:e"])
    maker.short_term("gone:e", "some words")
    return maker


def damaged_participant(maker: StateMaker) -> None:
    maker.session("s-odd", participants=[("{not json", "anna")])


def unknown_namespace(maker: StateMaker) -> None:
    maker.session("s-odd", participants=[({"type": "nobody knows"}, "anna")])


def damaged_recall_row(maker: StateMaker) -> None:
    maker.plugin_row("memory-core", "short-term-recall", f"{maker.workspace_key}:{'f' * 64}", "{not json")


def damaged_backup(maker: StateMaker) -> None:
    maker.plugin("dreaming-memory-backups", "odd", {"createdAt": 1, "content": 2})


@pytest.mark.parametrize("damage", [damaged_participant, unknown_namespace, damaged_recall_row, damaged_backup],
                         ids=lambda change: change.__name__)  # fmt: skip
def test_v15_the_rest_is_done(cli: CommandLine, either: StateMaker, damage: Any) -> None:
    damage(scene(either))
    either.seal()
    report = cli.forget(either.state, "--session", TARGET, status=3)
    assert report["refusals"] != []
    assert report["pending"] != []
    assert either.read("MEMORY.md") == b"kept\n"
    assert "gone:e" not in plugin_keys(either, "short-term-phase-signals")
    assert report["artifacts"]["memoryEntries"] == 1


def test_v15_a_participant_that_can_be_read_is_still_found(cli: CommandLine, either: StateMaker) -> None:
    scene(either)
    either.session("s-anna", participants=[({"type": "profile"}, "anna")])
    damaged_participant(either)
    either.seal()
    report = cli.forget(either.state, "--participant", "anna", status=3)
    assert "s-anna" in report["sessionIds"]
    assert SURVIVOR not in report["sessionIds"]


def test_v15_without_damage_it_is_complete(cli: CommandLine, either: StateMaker) -> None:
    scene(either).seal()
    report = cli.forget(either.state, "--session", TARGET)
    assert (report["refusals"], report["pending"]) == ([], [])
    assert origin_keys(either) == set()
