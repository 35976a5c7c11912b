"""The canonical spelling of JSON (RFC 8785)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cenotaph.certificate import canonical

UNICODE = st.characters(exclude_categories=["Cs"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(UNICODE),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(UNICODE), inner),
)


def test_strings_and_literals_of_the_standard() -> None:
    """The example of RFC 8785, section 3.2.2, without its fractions."""
    given_text = (
        '{"numbers": [4.50e1, 0, -0, 1E3], "string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/", '
        '"literals": [null, true, false]}'
    )
    expected = '{"literals":[null,true,false],"numbers":[45,0,0,1000],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    assert canonical(json.loads(given_text)).decode() == expected


def test_members_stand_in_the_order_of_utf16_units() -> None:
    """The example of RFC 8785, section 3.2.3: a surrogate pair sorts before U+FB33."""
    names = ["€", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "ö"]
    ordered = ["\r", "1", "\u0080", "ö", "€", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical(dict.fromkeys(names, 0)))) == ordered


def test_control_characters_are_escaped_as_ecmascript_does() -> None:
    expected = '"\\u0000\\u0007\\b\\t\\n\\u000b\\f\\r\\u001f\x7f\\"\\\\/\u2028é"'
    assert canonical('\0\x07\b\t\n\v\f\r\x1f\x7f"\\/\u2028é').decode() == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (-0.0, "0"), (-1, "-1"), (2**53 - 1, "9007199254740991"), (3.0, "3"), (1e15, "1000000000000000")],
)
def test_whole_numbers(value: float, text: str) -> None:
    assert canonical(value).decode() == text


@pytest.mark.parametrize("value", [2**53, -(2**53), 10**400, 1e300])
def test_numbers_that_programs_read_differently_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="beyond 2\\^53 - 1"):
        canonical([value])


@pytest.mark.parametrize("value", [0.5, float("nan"), float("inf"), -float("inf")])
def test_fractions_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="not whole"):
        canonical({"a": value})


@pytest.mark.parametrize("value", ["\ud800", {"\udc00": 1}])
def test_lone_surrogates_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        canonical(value)


@pytest.mark.parametrize("value", [{1: 2}, {None: 2}, b"bytes", {1, 2}, object()])
def test_what_is_not_json_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        canonical(value)


@given(VALUES)
def test_the_spelling_says_the_same_and_is_the_only_one(value: object) -> None:
    spelled = canonical(value)
    assert json.loads(spelled) == value
    assert canonical(json.loads(spelled)) == spelled
