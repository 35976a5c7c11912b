"""Where things are, and what time it is."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from cenotaph import layout
from cenotaph.errors import ConfigError
from cenotaph.layout import (
    absolute_path,
    agent_database,
    canonical_agent_id,
    clock_ms,
    home_dir,
    real_workspace_key,
    resolve_state_dir,
    sessions_folder,
    setting,
    state_database,
    workspace_key,
)

HOME = {"HOME": "/home/user"}


@pytest.mark.parametrize(
    ("explicit", "env", "expected"),
    [
        (None, {}, "/home/user/.cenotaph"),
        (None, {"OPENCLAW_STATE_DIR": "/oc"}, "/oc"),
        (None, {"OPENCLAW_STATE_DIR": "/oc", "CENOTAPH_STATE_DIR": "/ceno"}, "/ceno"),
        ("/given", {"OPENCLAW_STATE_DIR": "/oc", "CENOTAPH_STATE_DIR": "/ceno"}, "/given"),
        (None, {"OPENCLAW_STATE_DIR": "/oc", "CENOTAPH_STATE_DIR": " \t"}, "/oc"),
        (None, {"OPENCLAW_STATE_DIR": "", "CENOTAPH_STATE_DIR": ""}, "/home/user/.cenotaph"),
        (None, {"OPENCLAW_STATE_DIR": " ~/oc "}, "/home/user/oc"),
        (None, {"OPENCLAW_STATE_DIR": "~/oc", "OPENCLAW_HOME": "/moved"}, "/moved/oc"),
        ("~", {}, "/home/user"),
        ("~other/x", {}, str(Path.cwd() / "~other/x")),
        ("/a/../b/", {}, "/b"),
        ("rel", {}, str(Path.cwd() / "rel")),
    ],
)
def test_state_directory(explicit: str | None, env: dict[str, str], expected: str) -> None:
    assert resolve_state_dir(explicit, HOME | env) == Path(expected)


@pytest.mark.parametrize("blank", ["", "  ", "\t"])
def test_a_blank_state_directory_is_an_error(blank: str) -> None:
    with pytest.raises(ConfigError, match=r"^--state-dir must not be blank$"):
        resolve_state_dir(blank, HOME | {"CENOTAPH_STATE_DIR": "/ceno"})


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENOTAPH_STATE_DIR", "/from/process")
    assert resolve_state_dir() == Path("/from/process")
    assert setting("CENOTAPH_STATE_DIR") == "/from/process"
    assert setting("CENOTAPH_STATE_DIR", {}) is None


def test_home() -> None:
    assert home_dir(HOME) == Path("/home/user")
    assert home_dir(HOME | {"OPENCLAW_HOME": "/moved"}) == Path("/moved")
    assert home_dir({}) == Path.home()
    assert absolute_path("/a/~/b", HOME) == Path("/a/~/b")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("main", "main"),
        (" Main\n", "main"),
        ("a_b-9", "a_b-9"),
        ("Foo Bar", "foo-bar"),
        ("a..b//c", "a-b-c"),
        ("--a--", "a"),
        ("a--", "a--"),
        ("_a", "_a"),
        ("\u00c4gypten", "gypten"),
        ("!!!", "main"),
        ("", "main"),
        ("x" * 65, "x" * 64),
        ("x" * 64, "x" * 64),
        ("a" * 63 + " b", "a" * 63 + "-"),
    ],
)
def test_agent_ids(text: str, expected: str) -> None:
    assert canonical_agent_id(text) == expected


def test_files_of_an_agent() -> None:
    state = Path("/state")
    assert agent_database(state, "b1") == Path("/state/agents/b1/agent/openclaw-agent.sqlite")
    assert sessions_folder(state, "b1") == Path("/state/agents/b1/sessions")
    assert state_database(state) == Path("/state/state/openclaw.sqlite")


def test_workspace_keys_keep_and_follow_symlinks(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    assert workspace_key(link) == hashlib.sha256(str(link).encode()).hexdigest()
    assert real_workspace_key(link) == hashlib.sha256(os.path.realpath(real).encode()).hexdigest()
    assert workspace_key(real) != workspace_key(link)
    assert workspace_key(tmp_path / "x" / ".." / "real") == workspace_key(real)


def test_workspace_keys_of_paths_that_are_not_text() -> None:
    assert workspace_key(Path("/\udcff")) == hashlib.sha256(b"/\xff").hexdigest()


def test_the_clock_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CENOTAPH_CLOCK_MS", " ")
    before = time.time_ns() // 1_000_000
    assert before <= clock_ms() <= before + 60_000
    assert capsys.readouterr().err == ""


def test_the_stopped_clock_is_announced_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    layout.announce_stopped_clock.cache_clear()
    monkeypatch.setenv("CENOTAPH_CLOCK_MS", "1795165200000")
    assert [clock_ms(), clock_ms()] == [1_795_165_200_000] * 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "cenotaph: the clock is stopped at 1795165200000 ms (CENOTAPH_CLOCK_MS)\n"


@pytest.mark.parametrize("value", ["now", "-1", "1.5", "1e3", "\u0661", "9" * 17])
def test_a_clock_that_is_no_time_is_an_error(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENOTAPH_CLOCK_MS", value)
    with pytest.raises(ConfigError, match=r"^CENOTAPH_CLOCK_MS must be a number of"):
        clock_ms()
