"""Where the sessions of an agent are, for every form of `session.store`."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from cenotaph.config import Config, read_config, resolve_agent
from cenotaph.errors import ConfigError
from cenotaph.session_store import SessionStore, session_store_of

ENV = {"HOME": "/home/user"}


def read(folder: Path, content: object) -> Config:
    (folder / "openclaw.json").write_text(json.dumps(content))
    return read_config(folder, ENV)


STATE = Path("/state")
OWN_DATABASE = "/state/agents/b/agent/openclaw-agent.sqlite"
OWN_FOLDER = "/state/agents/b/sessions"


def store(
    folder: Path,
    path: str | None,
    *,
    registry: Mapping[str, str] | None = None,
    schema: Mapping[str, str] | None = None,
) -> SessionStore:
    """The store of agent b, where a is the default agent."""
    content = {"agents": {"entries": {"a": {"default": True}, "b": {}}}} | (
        {} if path is None else {"session": {"store": path}}
    )
    config = read(folder, content)
    return session_store_of(
        config,
        resolve_agent(config, "b"),
        STATE,
        registry_owner=lambda database: (registry or {}).get(str(database)),
        schema_owner=lambda database: (schema or {}).get(str(database)),
        env=ENV,
    )


@pytest.mark.parametrize(
    ("path", "database", "folders", "shared"),
    [
        (None, OWN_DATABASE, [OWN_FOLDER], []),
        ("  ", OWN_DATABASE, [OWN_FOLDER], []),
        ("/state/agents/{agentId}/sessions/sessions.json", OWN_DATABASE, [OWN_FOLDER], []),
        ("/state/agents/b/sessions/sessions.json", OWN_DATABASE, [OWN_FOLDER], []),
        (OWN_DATABASE, OWN_DATABASE, [OWN_FOLDER, "/state/agents/b/agent"], []),
        ("/x/{agentId}/sessions.json", "/x/b/openclaw-agent.sqlite", [OWN_FOLDER, "/x/b"], []),
        (
            "/x/agents/{agentId}/sessions/sessions.json",
            "/x/agents/b/agent/openclaw-agent.sqlite",
            [OWN_FOLDER, "/x/agents/b/sessions"],
            [],
        ),
        ("/x/sessions.json", "/x/openclaw-agent.sqlite", [OWN_FOLDER, "/x"], ["/x"]),
        (
            "/x/agent/sessions.json",
            "/x/agent/openclaw-agent.sqlite",
            [OWN_FOLDER, "/x/agent", "/x/sessions"],
            ["/x/agent", "/x/sessions"],
        ),
        ("~/x/store.json", "/home/user/x/store.sqlite", [OWN_FOLDER, "/home/user/x"], ["/home/user/x"]),
        ("/x/store.tar.json", "/x/store.tar.sqlite", [OWN_FOLDER, "/x"], ["/x"]),
        ("/x/store", "/x/store.sqlite", [OWN_FOLDER, "/x"], ["/x"]),
        ("/x/store.sqlite", "/x/store.sqlite", [OWN_FOLDER, "/x"], ["/x"]),
        ("/x/y/../store.sqlite", "/x/store.sqlite", [OWN_FOLDER, "/x"], ["/x"]),
        ("/x/{agentId}.sqlite", "/x/b.sqlite", [OWN_FOLDER, "/x"], []),
    ],
)
def test_session_stores(path: str | None, database: str, folders: list[str], shared: list[str], tmp_path: Path) -> None:
    found = store(tmp_path, path)
    assert str(found.database) == database
    assert [str(folder) for folder in found.archive_folders] == folders
    assert [str(folder) for folder in found.shared_folders] == shared


def test_relative_stores_are_relative_to_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert store(tmp_path, "x/store.json").database == Path.cwd() / "x/store.sqlite"


@pytest.mark.parametrize(
    ("path", "registry", "schema", "owner"),
    [
        (None, {}, {}, "b"),
        ("/x/store.sqlite", {"/x/store.sqlite": "c"}, {"/x/store.sqlite": "d"}, "c"),
        ("/x/store.sqlite", {}, {"/x/store.sqlite": "d"}, "d"),
        ("/x/store.sqlite", {}, {}, "a"),
        ("/x/{agentId}.sqlite", {}, {"/x/b.sqlite": "d"}, "b"),
        ("/x/store.json", {}, {"/x/store.sqlite": "a"}, "b"),
    ],
)
def test_owner_of_rows_without_an_agent(
    path: str | None, registry: dict[str, str], schema: dict[str, str], owner: str, tmp_path: Path
) -> None:
    assert store(tmp_path, path, registry=registry, schema=schema).owner == owner


@pytest.mark.parametrize(
    ("path", "owners", "database"),
    [
        ("/x/store.json", {"/x/store.sqlite": "b"}, "/x/store.sqlite"),
        ("/x/store.json", {"/x/store.sqlite": "a"}, "/x/store.b.sqlite"),
        ("/x/store.json", {"/x/store.sqlite": "a", "/x/store.b.sqlite": "b"}, "/x/store.b.sqlite"),
        ("/x/store.json", {"/x/store.sqlite": "a", "/x/store.b.sqlite": "c"}, "/x/store.b.2.sqlite"),
        (
            "/x/store.json",
            {"/x/store.sqlite": "a", "/x/store.b.sqlite": "c", "/x/store.b.2.sqlite": "c"},
            "/x/store.b.3.sqlite",
        ),
        ("/x/sessions.json", {"/x/openclaw-agent.sqlite": "a"}, "/x/openclaw-agent.b.sqlite"),
    ],
)
def test_a_store_that_another_agent_owns_becomes_a_family(
    path: str, owners: dict[str, str], database: str, tmp_path: Path
) -> None:
    assert str(store(tmp_path, path, registry=owners).database) == database
    assert str(store(tmp_path, path, schema=owners).database) == database


@pytest.mark.parametrize("path", ["/state/agents/a/sessions/sessions.json", "/x/agents/a/agent/openclaw-agent.sqlite"])
def test_a_store_in_the_home_of_another_agent_is_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'belongs to agent "a", not to "b"\.$'):
        store(tmp_path, path)


def test_two_names_of_one_archive_folder_count_once(tmp_path: Path) -> None:
    (tmp_path / "agents/main/sessions").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "agents/main/sessions")
    config = read(tmp_path, {"session": {"store": str(tmp_path / "link/store.json")}})
    found = session_store_of(config, config.agents[0], tmp_path, env=ENV)
    assert found.archive_folders == (tmp_path / "agents/main/sessions",)
    assert found.shared_folders == ()
