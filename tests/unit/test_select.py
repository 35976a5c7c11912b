"""Selectors: what they mean, and what is refused before anything is looked at."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from cenotaph.errors import SelectionError, SelectorMissing
from cenotaph.forget.select import Selection, parse_date, select, selectors
from cenotaph.identity import Identity
from cenotaph.sessions import Session, Sessions, SessionSource

ANNA = Identity((("type", "profile"),), "anna")
REMOTE_ANNA = Identity((("type", "remote"), ("pluginId", "telegram"), ("domain", "d"), ("idKind", "user")), "anna")


def session(
    session_id: str,
    key: str,
    *,
    source: SessionSource = "live",
    created_at: int = 1_000,
    hook: str | None = None,
    people: tuple[Identity, ...] = (),
) -> Session:
    generation = "g1" if source == "archived" else None
    return Session(
        session_id,
        key,
        source,
        created_at,
        "interactive",
        hook_source=hook,
        participants=people,
        generation=generation,
    )


KNOWN = Sessions(
    (
        session("old", "agent:main:a", source="retained"),
        session("now", "agent:main:a", created_at=2_000, people=(ANNA, REMOTE_ANNA)),
        session("mail", "agent:main:hook:gmail:x", created_at=3_000, hook="gmail", people=(ANNA,)),
        session("gone", "agent:main:b", source="archived"),
        session("now", "agent:main:a", source="archived"),
    )
)


def chosen(**asked: object) -> Selection:
    wanted = {"sessions": (), "hook_sources": (), "participants": (), "since": None} | asked
    return select(selectors(**wanted), KNOWN)  # pyright: ignore[reportArgumentType] -- a table of cases


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"sessions": ["now"]}, [("now", "live")]),
        ({"sessions": ["agent:main:a"]}, [("old", "live"), ("now", "live")]),
        ({"sessions": ["now", "agent:main:a", "now"]}, [("old", "live"), ("now", "live")]),
        ({"sessions": ["gone"]}, [("gone", "archived")]),
        ({"sessions": ["agent:main:b"]}, [("gone", "archived")]),
        ({"sessions": ["NOW", " now", "no"]}, [("NOW", "unresolved"), (" now", "unresolved"), ("no", "unresolved")]),
        ({"hook_sources": ["gmail"]}, [("mail", "live")]),
        ({"hook_sources": ["Gmail"]}, []),
        ({"participants": ["anna"]}, [("now", "live"), ("mail", "live")]),
        ({"participants": ["ann"]}, []),
        ({"sessions": ["gone"], "hook_sources": ["gmail"]}, [("mail", "live"), ("gone", "archived")]),
    ],
)
def test_selectors_are_exact_and_ored(asked: dict[str, object], found: list[tuple[str, str]]) -> None:
    assert [(target.session_id, target.source) for target in chosen(**asked).targets] == found


def test_since_is_inclusive_and_what_it_drops_is_still_resolved() -> None:
    asked = {"sessions": ["agent:main:a", "unknown"], "since": "1970-01-01T00:00:02Z"}
    assert [target.session_id for target in chosen(**asked).targets] == ["now", "unknown"]


def test_identities_come_once_each_in_the_order_of_the_sessions() -> None:
    assert chosen(participants=["zoe", "anna"]).identities == (("anna", (ANNA, REMOTE_ANNA)), ("zoe", ()))


def test_a_key_is_whole_when_every_generation_is_selected() -> None:
    assert chosen(sessions=["now"]).whole_keys == ()
    assert chosen(sessions=["agent:main:a"]).whole_keys == ("agent:main:a",)


@pytest.mark.parametrize("option", ["sessions", "hook_sources", "participants"])
@pytest.mark.parametrize("blank", ["", "  ", "\t"])
def test_blank_selectors_are_refused(option: str, blank: str) -> None:
    with pytest.raises(SelectionError, match="must not be blank"):
        chosen(**{option: ["now", blank]})


def test_no_selector_is_refused() -> None:
    with pytest.raises(SelectorMissing, match=r"^Memory forget requires --session <id-or-key>"):
        chosen(since="2026-11-01")


@pytest.fixture
def new_york() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("1970-01-02", 86_400_000),
        ("1970", 0),
        ("1970-02", 31 * 86_400_000),
        ("1970-01-01T00:00:01.500Z", 1_500),
        ("1970-01-01T02:00+02:00", 0),
        ("1970-01-01T00:00", 5 * 3_600_000),
        ("2026-08-26", 1_787_702_400_000),
    ],
)
def test_dates_are_read_as_ecmascript_reads_them(new_york: None, text: str, milliseconds: int) -> None:
    assert parse_date(text) == milliseconds


@pytest.mark.parametrize("text", ["", "yesterday", "1787745600001", "2026-13-01", "2026-02-30", "20261120"])
def test_other_dates_are_refused(text: str) -> None:
    with pytest.raises(SelectionError, match=r"^Invalid memory session date: "):
        parse_date(text)
