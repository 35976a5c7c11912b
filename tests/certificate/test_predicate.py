"""What may stand in a predicate: the check of `certificate.py` and the published schema say the same."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from cenotaph.certificate import CertificateInvalid, Counts, canonical, check_predicate
from cenotaph.forget.report import Artifacts
from certificates import predicate

SCHEMA = json.loads((Path(__file__).parents[2] / "docs" / "erasure-v1.schema.json").read_text(encoding="utf-8"))
PUBLISHED: Any = Draft202012Validator(SCHEMA)
Path_ = tuple[str | int, ...]

WRONG: list[Any] = [
    None, True, False, -1, 0, 1, 2**53 - 1, 2**53, 1.5, "", "x", "words", "a/b", "a@b", " a", "é", "a" * 300, "a\x00",
    "A0" * 32, "a0" * 32, "a0" * 31, "a0" * 33, "a0" * 8, "session", "since", "Clear", "Purge", "clean", "vacuum",
    "2026-11-01", "2026-13-01", "2026-11-01T10:00Z", "2026-11-01T10:00:00.000Z", "2026-11-01T10:00:00Z",
    "2026-11-01T24:00:00.000Z", "2026-11-01T10:00:00.000+01:00", "٢٠٢٦-11-01", [], {}, [None], [{}], {"count": 1},
    {"kind": "since", "value": "2026-11-01"}, {"kind": "since", "value": "a0" * 32},
    {"kind": "session", "value": "2026-11-01"}, {"kind": "hook-source", "value": "a0" * 32},
]  # fmt: skip


def accepts(value: object) -> bool:
    try:
        check_predicate(value)
    except CertificateInvalid as refusal:
        return refusal.reason != "schema"
    return True


def members(value: Any) -> list[tuple[str | int, Any]]:
    """The members of an object, or the items of a list."""
    if isinstance(value, dict):
        return list(cast("dict[str | int, Any]", value).items())
    return list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []


def places(value: object, at: Path_ = ()) -> Iterator[Path_]:
    """Every place in a JSON value."""
    yield at
    for name, inner in members(value):
        yield from places(inner, (*at, name))


def changed(at: Path_, value: object) -> Any:
    """The full predicate with another value at one place."""
    if not at:
        return value
    whole: Any = predicate()
    holder = whole
    for name in at[:-1]:
        holder = holder[name]
    holder[at[-1]] = copy.deepcopy(value)
    return whole


PLACES = list(places(predicate()))


def test_the_schema_is_one_and_takes_a_full_predicate() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert PUBLISHED.is_valid(predicate())
    assert accepts(predicate())


@pytest.mark.parametrize("at", PLACES, ids=lambda at: ".".join(map(str, at)) or "whole")
def test_the_check_and_the_schema_agree(at: Path_) -> None:
    """Every place takes each of the values, loses each member, and gets one that is unknown."""
    outcomes = set[bool]()
    for value in WRONG:
        other = changed(at, value)
        outcomes.add(accepts(other))
        assert accepts(other) == PUBLISHED.is_valid(other), f"{value!r}"
    assert False in outcomes
    holder: Any = predicate()
    for name in at:
        holder = holder[name]
    if not isinstance(holder, dict):
        return
    whole = cast("dict[object, Any]", holder)
    for name in list(whole):
        other = changed(at, {key: value for key, value in whole.items() if key != name})
        assert not accepts(other)
        assert not PUBLISHED.is_valid(other)
    for more in (changed(at, {**whole, "text": "x"}), changed(at, {**whole, 1: "x"})):
        assert not accepts(more)
        assert not PUBLISHED.is_valid(json.loads(json.dumps(more)))


LEAVES = st.sampled_from(WRONG) | st.text(max_size=8) | st.integers() | st.floats(allow_nan=False)


@given(st.lists(st.tuples(st.sampled_from(PLACES), LEAVES | st.builds(predicate)), min_size=1, max_size=4))
def test_they_agree_on_any_mixture(changes: list[tuple[Path_, Any]]) -> None:
    """Several places at once, also with one predicate in another, as JSON in its canonical spelling brings it."""
    whole: Any = predicate()
    for at, value in changes:
        whole = replaced(whole, at, value)
    try:
        whole = json.loads(canonical(whole))
    except ValueError:  # it has no such spelling
        return
    assert accepts(whole) == PUBLISHED.is_valid(whole)


def replaced(value: Any, at: Path_, other: Any) -> Any:
    """With another value at one place, if the place is there."""
    if not at:
        return copy.deepcopy(other)
    inner = dict(members(value))
    if at[0] not in inner:
        return value
    inner[at[0]] = replaced(inner[at[0]], at[1:], other)
    return inner if isinstance(value, dict) else list(inner.values())


@pytest.mark.parametrize("at", [("receipt",), ("verification", "databaseMethod")])
def test_what_may_be_null(at: Path_) -> None:
    assert accepts(changed(at, None))


@pytest.mark.parametrize("at", [("agent",), ("createdAt",), ("keyId",), ("pending", 0), ("tool", "name")])
def test_no_line_break_hides_at_the_end(at: Path_) -> None:
    """A `$` lets one through in many languages; the check does not."""
    holder: Any = predicate()
    for name in at:
        holder = holder[name]
    assert not accepts(changed(at, f"{holder}\n"))


def test_every_object_of_the_schema_is_closed() -> None:
    objects = [
        part for part in (json.loads(text) for text in _objects(SCHEMA)) if part.get("type") == "object"
    ]  # fmt: skip
    assert len(objects) >= 12
    for part in objects:
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])


def _objects(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield json.dumps(value)
    for _, inner in members(value):
        yield from _objects(inner)


def test_the_counts_are_those_of_a_report() -> None:
    assert list(Counts.__annotations__) == list(Artifacts().model_dump(by_alias=True))


def test_a_refusal_names_the_member() -> None:
    with pytest.raises(CertificateInvalid, match=r"^The certificate's predicate\.methods\[1\]\.method is not one of "):
        check_predicate(changed(("methods", 1, "method"), "Purge"))
    with pytest.raises(
        CertificateInvalid, match=r"^The certificate's predicate\.counts\.backups is not a whole number"
    ):
        check_predicate(changed(("counts", "backups"), "many"))
