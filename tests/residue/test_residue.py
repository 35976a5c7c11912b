"""Nothing is left: a needle of its own in every kind of artifact, a forget, and a raw scan of every byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from planting import KEPT_TEXT, KINDS, SURVIVOR, TARGET, Kind, needles_of, stage
from raw import scan, told

from state_maker import StateMaker, files_holding

Forget = Callable[..., dict[str, Any]]


def planted(maker: StateMaker, kinds: tuple[Kind, ...]) -> None:
    """Stages the kinds, and proves that the scan finds each."""
    stage(maker, kinds)
    found = {hit.kind for hit in scan([maker.root], needles_of(kinds))}
    assert {kind.name for kind in kinds} - found == set(), "planted, but not found before the forget"


def clean(maker: StateMaker, kinds: tuple[Kind, ...]) -> None:
    """No piece of any needle in any file."""
    hits = scan([maker.root], needles_of(kinds))
    assert not hits, told(hits)
    assert files_holding(maker.root, KEPT_TEXT.encode()) != []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_nothing_is_left_of(either: StateMaker, forget: Forget, kind: Kind) -> None:
    planted(either, (kind,))
    report = forget(either.state, sessions=[TARGET])
    assert report["pending"] == []
    clean(either, (kind,))


def test_nothing_is_left_of_everything_at_once(either: StateMaker, forget: Forget) -> None:
    planted(either, KINDS)
    report = forget(either.state, sessions=[TARGET])
    assert report["pending"] == []
    clean(either, KINDS)
    assert files_holding(either.state, SURVIVOR.encode()) != []
