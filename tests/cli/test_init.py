"""`cenotaph init` and `cenotaph.open(..., create=True)`."""

from __future__ import annotations

from pathlib import Path

import pytest

import cenotaph
from conftest import CommandLine


def modes(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): oct(path.stat().st_mode & 0o777) for path in sorted(root.rglob("*"))}


def test_a_new_directory_is_private_and_works(tmp_path: Path, cli: CommandLine) -> None:
    state = tmp_path / "state"
    done = cli(state, "init")
    assert (done.status, done.err) == (0, "")
    assert done.out == f"State directory: {state}\nWorkspace: {state / 'workspace'}\n"
    assert modes(state)["agents/main/agent/openclaw-agent.sqlite"] == "0o600"
    assert modes(state)["state/openclaw.sqlite"] == "0o600"
    assert modes(state)["agents"] == modes(state)["state"] == "0o700"
    assert cli.forget(state, "--session", "nobody")["artifacts"]["indexChunks"] == 0


def test_what_is_there_stays(tmp_path: Path, cli: CommandLine) -> None:
    cli(tmp_path, "init")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert cli(tmp_path, "init").status == 0
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_another_agent_is_named_in_the_configuration(tmp_path: Path, cli: CommandLine) -> None:
    assert cli(tmp_path / "state", "init", "--agent", "Bob").status == 0
    with cenotaph.open(tmp_path / "state") as memory:
        assert memory.agent == "bob"


def test_open_makes_one_too(tmp_path: Path) -> None:
    with cenotaph.open(tmp_path / "state", create=True) as memory:
        assert memory.forget(sessions=["nobody"]).pending == []
    assert (tmp_path / "state" / "workspace" / "memory").is_dir()


def test_a_state_directory_that_is_not_there_is_an_error(tmp_path: Path, cli: CommandLine) -> None:
    """A misspelt directory must not report a deletion."""
    done = cli(tmp_path / "misspelt", "forget", "--session", "x")
    assert done.status == 1
    assert f"There is no state directory at {tmp_path / 'misspelt'}" in done.err
    assert not (tmp_path / "misspelt").exists()
    with pytest.raises(cenotaph.ConfigError, match="There is no state directory"):
        cenotaph.open(tmp_path / "misspelt")
