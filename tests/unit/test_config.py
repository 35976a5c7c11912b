"""What `openclaw.json` says: agents, workspaces, policy, search, and where sessions are."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from cenotaph.config import (
    AgentConfig,
    Config,
    DeepPhase,
    Dreaming,
    ExcludeSessions,
    ExtraPath,
    LightPhase,
    RemPhase,
    Search,
    config_path,
    read_config,
    resolve_agent,
    workspace_of,
)
from cenotaph.errors import ConfigError, SelectionError

PLUGIN = "plugins.entries.memory-core.config"
ENV = {"HOME": "/home/user"}


def write(folder: Path, content: object) -> Path:
    path = folder / "openclaw.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def read(folder: Path, content: object, env: Mapping[str, str] = ENV) -> Config:
    write(folder, content)
    return read_config(folder, env)


def problems(folder: Path, content: object) -> list[str]:
    """What the error says, without the path of the file."""
    path = write(folder, content)
    with pytest.raises(ConfigError) as caught:
        read_config(folder, ENV)
    first, *lines = str(caught.value).split("\n")
    assert first == f"Invalid config at {path}:"
    assert all(line.startswith("- ") for line in lines)
    return [line[2:] for line in lines]


def nested(path: str, value: object) -> dict[str, Any]:
    """`{"a": {"b": value}}` for `a.b`."""
    for key in reversed(path.split(".")):
        value = {key: value}
    return cast("dict[str, Any]", value)


def plugin(path: str, value: object) -> dict[str, Any]:
    return nested(f"{PLUGIN}.{path}", value)


# -- the file -----------------------------------------------------------------------------------


def test_no_file_is_an_empty_configuration(tmp_path: Path) -> None:
    config = read_config(tmp_path, ENV)
    main = AgentConfig("main", None, is_default=True, search=Search())
    assert config == Config(tmp_path / "openclaw.json", (main,))
    assert config.default_agent == main


def test_an_empty_object_is_the_same(tmp_path: Path) -> None:
    assert read(tmp_path, "{}") == read_config(
        tmp_path / "absent", ENV | {"OPENCLAW_CONFIG_PATH": str(tmp_path / "openclaw.json")}
    )


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({}, "/state/openclaw.json"),
        ({"OPENCLAW_CONFIG_PATH": "  "}, "/state/openclaw.json"),
        ({"OPENCLAW_CONFIG_PATH": "/etc/other.json"}, "/etc/other.json"),
        ({"OPENCLAW_CONFIG_PATH": "~/other.json"}, "/home/user/other.json"),
    ],
)
def test_path_of_the_file(env: dict[str, str], expected: str) -> None:
    assert config_path(Path("/state"), ENV | env) == Path(expected)


# -- checks -------------------------------------------------------------------------------------

EXCLUDE = "memoryPolicy.excludeSessions"


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        (
            f"{EXCLUDE}.chatTypes",
            ["bogus"],
            '.chatTypes.0: must be one of the allowed values (allowed: "direct", "group", "channel")',
        ),
        (
            f"{EXCLUDE}.chatTypes",
            ["direct", 5],
            '.chatTypes.1: must be one of the allowed values (allowed: "direct", "group", "channel")',
        ),
        (f"{EXCLUDE}.channels", "telegram", ".channels: must be an array"),
        (f"{EXCLUDE}.hookExternalContentSources", [5], ".hookExternalContentSources.0: must be a string"),
        (
            f"{EXCLUDE}.rooms",
            [],
            ': unknown key "rooms"; allowed: "hookExternalContentSources", "channels", "chatTypes"',
        ),
        (EXCLUDE, [], ": must be an object"),
        ("memoryPolicy.foo", 1, ': unknown key "foo"; allowed: "excludeSessions"'),
        ("foo", 1, ': unknown key "foo"; allowed: "memoryPolicy", "dreaming"'),
        ("dreaming", None, ": must be an object"),
        ("dreaming.enabled", "yes", ".enabled: must be true or false"),
        ("dreaming.frequency", 5, ".frequency: must be a string"),
        (
            "dreaming.storage.mode",
            "x",
            '.mode: must be one of the allowed values (allowed: "inline", "separate", "both")',
        ),
        ("dreaming.storage.x", 1, ': unknown key "x"; allowed: "mode", "separateReports"'),
        ("dreaming.execution.defaults.speed", "x", ': unknown key "speed"; allowed: "model"'),
        ("dreaming.phases.night", {}, ': unknown key "night"; allowed: "light", "rem", "deep"'),
        ("dreaming.phases.light.lookbackDays", "5", ".lookbackDays: must be a whole number of at least 0"),
        ("dreaming.phases.light.limit", -1, ".limit: must be a whole number of at least 0"),
        ("dreaming.phases.light.limit", True, ".limit: must be a whole number of at least 0"),
        ("dreaming.phases.rem.limit", 1.5, ".limit: must be a whole number of at least 0"),
        (
            "dreaming.phases.light.dedupeSimilarity",
            1.01,
            ".dedupeSimilarity: must be a number of at least 0 and at most 1",
        ),
        ("dreaming.phases.deep.maxAgeDays", 0, ".maxAgeDays: must be a whole number of at least 1"),
        (
            "dreaming.phases.deep.maxPromotedSnippetTokens",
            0,
            ".maxPromotedSnippetTokens: must be a whole number of at least 1",
        ),
        (
            "dreaming.phases.deep.recovery",
            {},
            ': unknown key "recovery"; allowed: "enabled", "limit", "minScore"',
        ),
    ],
)
def test_problems_of_the_plugin_configuration(path: str, value: object, problem: str, tmp_path: Path) -> None:
    (found,) = problems(tmp_path, plugin(path, value))
    parent, _, key = path.rpartition(".")
    where = ".".join(filter(None, (PLUGIN, parent)))
    expected = f"{where}{problem}" if "unknown key" in problem or problem.startswith(".") else f"{where}.{key}{problem}"
    assert found.startswith(expected)


SEARCH_PROBLEMS: list[tuple[str, object, str]] = [
    ("bogus", 1, 'memory.search: unknown key "bogus"; allowed: "enabled", '),
    ("sources", "memory", "memory.search.sources: must be an array"),
    ("sources", ["zz"], 'memory.search.sources.0: must be one of the allowed values (allowed: "memory", "sessions")'),
    ("experimental.zz", 1, 'memory.search.experimental: unknown key "zz"; allowed: "sessionMemory"'),
    ("extraPaths", [5], "memory.search.extraPaths.0: must be a string or an object"),
    (
        "extraPaths",
        [{"path": "x", "pat": 1}],
        'memory.search.extraPaths.0: unknown key "pat"; allowed: "path", "pattern"',
    ),
    ("extraPaths", [{}], 'memory.search.extraPaths.0: needs the key "path"'),
    ("remote.apiKey", 5, "memory.search.remote.apiKey: must be a string or an object"),
    ("remote.headers", {"a": 1}, "memory.search.remote.headers.a: must be a string"),
    ("remote.headers", [], "memory.search.remote.headers: must be an object"),
    ("remote.batch.wait", 1, 'memory.search.remote.batch: unknown key "wait"; allowed: "enabled"'),
    ("outputDimensionality", 0, "memory.search.outputDimensionality: must be a whole number above 0"),
    (
        "multimodal.modalities",
        ["x"],
        'memory.search.multimodal.modalities.0: must be one of the allowed values (allowed: "image", "audio", "all")',
    ),
    ("multimodal.maxFileBytes", 0, "memory.search.multimodal.maxFileBytes: must be a number above 0"),
    (
        "store.fts.tokenizer",
        "x",
        'memory.search.store.fts.tokenizer: must be one of the allowed values (allowed: "unicode61", "trigram")',
    ),
    ("store.driver", "x", 'memory.search.store: unknown key "driver"; allowed: "fts", "vector"'),
    ("query.minScore", 2, "memory.search.query.minScore: must be a number of at least 0 and at most 1"),
    ("query.maxResults", "5", "memory.search.query.maxResults: must be a whole number above 0"),
    ("cache.maxEntries", 5, 'memory.search.cache: unknown key "maxEntries"; allowed: "enabled"'),
]


@pytest.mark.parametrize(("path", "value", "problem"), SEARCH_PROBLEMS)
def test_problems_of_search(path: str, value: object, problem: str, tmp_path: Path) -> None:
    content = nested(f"memory.search.{path}", value)
    (found,) = problems(tmp_path, content)
    assert found.startswith(problem)
    (found,) = problems(tmp_path, {"agents": {"entries": {"a": content}}})
    assert found.startswith(f"agents.entries.a.{problem}")


OTHER_PROBLEMS: list[tuple[object, list[str]]] = [
    ([], ["<root>: must be an object"]),
    ({"agents": 5}, ["agents: must be an object"]),
    ({"agents": {"entries": []}}, ["agents.entries: must be an object"]),
    ({"agents": {"list": {}}}, ["agents.list: must be an array"]),
    ({"agents": {"list": [{}]}}, ['agents.list.0: needs the key "id"']),
    (
        {"agents": {"list": [{"id": "a", "workspace": 5, "memory": {"search": {"x": 1}}}]}},
        ["agents.list.0.workspace: must be a string", "agents.list.0.memory.search: unknown key"],
    ),
    (
        {"agents": {"entries": {"a": {"workspace": 5, "default": "no"}}}},
        [
            "agents.entries.a.workspace: must be a string",
            "agents.entries.a.default: must be true or false",
        ],
    ),
    ({"agents": {"ownership": "x"}}, ['agents.ownership: must be "explicit"']),
    ({"agents": {"defaults": {"workspace": 5}}}, ["agents.defaults.workspace: must be a string"]),
    ({"agents": {"entries": {"b c": {}}}}, ["agents.entries.b c: agent ids have"]),
    (
        {"agents": {"entries": {"A": {}, "a": {}}, "ownership": "explicit"}},
        ['agents.entries.a: agent "a" is configured twice'],
    ),
    ({"agents": {"entries": {"a": {}, "b": {}}}}, ["agents.ownership: several agents need"]),
    (
        {"agents": {"entries": {"a": {"default": True}, "b": {"default": True}}}},
        ["agents.entries.b.default: only one"],
    ),
    (
        {"agents": {"entries": {"a": {"default": True}, "b": {}}, "ownership": "explicit"}},
        ['agents.ownership: "explicit" cannot be combined with agents.entries.a.default'],
    ),
    ({"session": {"store": 5}}, ["session.store: must be a string"]),
    (
        {"memory": {"citations": "x"}},
        ['memory.citations: must be one of the allowed values (allowed: "auto", "on", "off")'],
    ),
]


@pytest.mark.parametrize(("content", "expected"), OTHER_PROBLEMS)
def test_other_problems(content: object, expected: list[str], tmp_path: Path) -> None:
    found = problems(tmp_path, content)
    assert len(found) == len(expected)
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


def test_what_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    content: dict[str, Any] = {
        "gateway": {"port": "x"},
        "agents": {"entries": {"a": {"model": 5, "memory": {"x": 1}}}, "defaults": {"models": []}, "x": 1},
        "session": {"dmScope": 5},
        "memory": {"backend": 5},
        "plugins": {"allow": 5, "entries": {"other": 5, "memory-core": {"enabled": "x"}}},
    }
    assert read(tmp_path, content).agents[0].id == "a"


# -- values -------------------------------------------------------------------------------------


def test_policy_lists_are_trimmed(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        plugin(
            EXCLUDE,
            {
                "hookExternalContentSources": [" gmail ", "", "  "],
                "channels": ["Irc"],
                "chatTypes": ["group"],
            },
        ),
    )
    assert config.exclude_sessions == ExcludeSessions(("gmail",), ("Irc",), ("group",))


def test_all_values_of_dreaming(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        plugin(
            "dreaming",
            {
                "enabled": False,
                "frequency": "0 4 * * *",
                "model": "m",
                "timezone": "Europe/Vienna",
                "verboseLogging": True,
                "storage": {"mode": "both", "separateReports": True},
                "execution": {"defaults": {"model": "d"}},
                "phases": {
                    "light": {
                        "enabled": False,
                        "lookbackDays": 3,
                        "limit": 4,
                        "dedupeSimilarity": 0.5,
                        "execution": {"model": "l"},
                    },
                    "rem": {"enabled": False, "lookbackDays": 5, "limit": 6.0, "minPatternStrength": 0},
                    "deep": {
                        "enabled": False,
                        "limit": 0,
                        "minScore": 1,
                        "minRecallCount": 1,
                        "minUniqueQueries": 2,
                        "recencyHalfLifeDays": 3,
                        "maxAgeDays": 4,
                        "maxPromotedSnippetTokens": 5,
                        "maxPriorEntryLossFraction": 0.5,
                    },
                },
            },
        ),
    )
    assert config.dreaming == Dreaming(
        enabled=False,
        frequency="0 4 * * *",
        model="m",
        timezone="Europe/Vienna",
        verbose_logging=True,
        storage_mode="both",
        separate_reports=True,
        light=LightPhase(False, 3, 4, 0.5, "l"),
        rem=RemPhase(False, 5, 6, 0.0, "d"),
        deep=DeepPhase(False, 0, 1, 1, 2, 3, 4, 5, 0.5, "d"),
    )
    assert isinstance(config.dreaming.rem.limit, int)


def test_phases_use_the_common_model(tmp_path: Path) -> None:
    assert read(tmp_path, plugin("dreaming.model", "m")).dreaming == Dreaming(
        model="m", light=LightPhase(model="m"), rem=RemPhase(model="m"), deep=DeepPhase(model="m")
    )


def test_all_values_of_search(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        {
            "memory": {
                "citations": "off",
                "search": {
                    "enabled": False,
                    "rememberAcrossConversations": False,
                    "sources": ["memory", "sessions"],
                    "experimental": {"sessionMemory": True},
                    "extraPaths": ["/a", {"path": "/b", "pattern": "*.md"}],
                    "provider": "openai-compatible",
                    "model": "m",
                    "fallback": "local",
                    "remote": {
                        "baseUrl": "http://x",
                        "apiKey": "${KEY}",
                        "headers": {"A": "b"},
                        "batch": {"enabled": True},
                    },
                    "inputType": "i",
                    "queryInputType": "q",
                    "documentInputType": "d",
                    "outputDimensionality": 8,
                    "local": {"modelPath": "/m"},
                    "multimodal": {"enabled": True, "modalities": ["all"], "maxFileBytes": 5},
                    "store": {
                        "fts": {"tokenizer": "trigram"},
                        "vector": {"enabled": False, "extensionPath": "/v"},
                    },
                    "query": {"maxResults": 9, "minScore": 0},
                    "cache": {"enabled": False},
                },
            }
        },
        ENV | {"KEY": "secret"},
    )
    assert config.citations == "off"
    assert config.agents[0].search == Search(
        enabled=False,
        remember_across_conversations=False,
        sources=("memory", "sessions"),
        session_memory=True,
        extra_paths=(ExtraPath("/a"), ExtraPath("/b", "*.md")),
        provider="openai-compatible",
        model="m",
        fallback="local",
        remote_base_url="http://x",
        remote_api_key="secret",
        remote_headers={"A": "b"},
        remote_batch=True,
        input_type="i",
        query_input_type="q",
        document_input_type="d",
        output_dimensionality=8,
        local_model_path="/m",
        multimodal=True,
        modalities=("all",),
        max_file_bytes=5,
        tokenizer="trigram",
        vector_enabled=False,
        vector_extension_path="/v",
        max_results=9,
        min_score=0,
        cache_enabled=False,
    )


def test_an_agent_overrides_search_leaf_by_leaf(tmp_path: Path) -> None:
    shared = {
        "sources": ["memory"],
        "query": {"maxResults": 9, "minScore": 0.1},
        "remote": {"headers": {"A": "1", "B": "1"}},
        "extraPaths": ["/all"],
    }
    own = {
        "sources": ["sessions"],
        "query": {"minScore": 0.2},
        "remote": {"headers": {"B": "2"}},
        "extraPaths": [{"path": "/one"}],
    }
    config = read(
        tmp_path,
        {
            "memory": {"search": shared},
            "agents": {"ownership": "explicit", "entries": {"a": {"memory": {"search": own}}, "b": {}}},
        },
    )
    first, second = (agent.search for agent in config.agents)
    assert (first.sources, first.max_results, first.min_score) == (("sessions",), 9, 0.2)
    assert first.remote_headers == {"A": "1", "B": "2"}
    assert first.extra_paths == (ExtraPath("/all"), ExtraPath("/one"))
    assert (second.sources, second.min_score, second.extra_paths) == (("memory",), 0.1, (ExtraPath("/all"),))


def test_a_reference_to_a_secret_store_is_no_key(tmp_path: Path) -> None:
    config = read(tmp_path, nested("memory.search.remote.apiKey", {"source": "env", "id": "KEY"}))
    assert config.agents[0].search.remote_api_key is None


# -- agents -------------------------------------------------------------------------------------

SOLO: dict[str, Any] = {"agents": {"entries": {"Solo": {}}}}
MARKED = {"agents": {"entries": {"a": {}, "b": {"default": True}}}}
EXPLICIT: dict[str, Any] = {"agents": {"ownership": "explicit", "entries": {"a": {}, "b": {}}}}


ROSTERS: list[tuple[object, list[str], str | None]] = [
    ({}, ["main"], "main"),
    ({"agents": {"entries": {}}}, ["main"], "main"),
    (SOLO, ["solo"], "solo"),
    (SOLO | {"agents": SOLO["agents"] | {"ownership": "explicit"}}, ["solo"], "solo"),
    (MARKED, ["a", "b"], "b"),
    (EXPLICIT, ["a", "b"], None),
    (
        {"agents": {"list": [{"id": "Foo Bar", "default": True}, {"id": "b1"}]}},
        ["foo-bar", "b1"],
        "foo-bar",
    ),
    ({"agents": {"list": []}}, ["main"], "main"),
]


@pytest.mark.parametrize(("content", "ids", "default"), ROSTERS)
def test_roster_and_default(content: object, ids: list[str], default: str | None, tmp_path: Path) -> None:
    config = read(tmp_path, content)
    assert [agent.id for agent in config.agents] == ids
    assert (config.default_agent.id if config.default_agent else None) == default


RESOLVED: list[tuple[object, str | None, str]] = [
    ({}, None, "main"),
    ({}, "main", "main"),
    (MARKED, None, "b"),
    (MARKED, " a ", "a"),
    (SOLO, "solo", "solo"),
    (EXPLICIT, "b", "b"),
]


@pytest.mark.parametrize(("content", "requested", "expected"), RESOLVED)
def test_agents_that_resolve(content: object, requested: str | None, expected: str, tmp_path: Path) -> None:
    assert resolve_agent(read(tmp_path, content), requested).id == expected


UNRESOLVED: list[tuple[object, str | None, str]] = [
    ({}, "", "--agent must not be blank"),
    ({}, " \t", "--agent must not be blank"),
    ({}, "nosuch", 'Unknown agent id "nosuch". Run openclaw agents list to see configured agents.'),
    ({}, " nosuch ", 'Unknown agent id "nosuch". Run openclaw agents list to see configured agents.'),
    (SOLO, "Solo", 'Unknown agent id "Solo". Run openclaw agents list to see configured agents.'),
    (SOLO, "main", 'Unknown agent id "main". Run openclaw agents list to see configured agents.'),
    (EXPLICIT, None, "Several agents are configured and none is the default; pass --agent <id>."),
]


@pytest.mark.parametrize(("content", "requested", "message"), UNRESOLVED)
def test_agents_that_do_not(content: object, requested: str | None, message: str, tmp_path: Path) -> None:
    with pytest.raises(SelectionError) as caught:
        resolve_agent(read(tmp_path, content), requested)
    assert str(caught.value) == message


# -- workspaces ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agents", "env", "expected"),
    [
        ({}, {}, {"main": "/state/workspace"}),
        ({}, {"OPENCLAW_WORKSPACE_DIR": "/env"}, {"main": "/env"}),
        ({}, {"OPENCLAW_WORKSPACE_DIR": " "}, {"main": "/state/workspace"}),
        ({"defaults": {"workspace": "/all"}}, {"OPENCLAW_WORKSPACE_DIR": "/env"}, {"main": "/all"}),
        ({"entries": {"a": {"workspace": "/own"}}, "defaults": {"workspace": "/all"}}, {}, {"a": "/own"}),
        ({"entries": {"a": {"workspace": "~/own"}}}, {}, {"a": "/home/user/own"}),
        ({"entries": {"a": {"workspace": "/o\0wn/../x/"}}}, {}, {"a": "/x"}),
        ({"entries": {"a": {"workspace": " \0 "}}}, {}, {"a": "/state/workspace"}),
        ({"entries": {"a": {"workspace": "rel/x"}}}, {}, {"a": str(Path.cwd() / "rel/x")}),
        (
            {
                "entries": {"a": {"default": True}, "b": {}, "c": {"workspace": "/c"}},
                "defaults": {"workspace": "~/all"},
            },
            {},
            {"a": "/home/user/all", "b": "/home/user/all/b", "c": "/c"},
        ),
        (
            {"entries": {"a": {"default": True}, "b": {}}},
            {"OPENCLAW_WORKSPACE_DIR": "/env"},
            {"a": "/env", "b": "/state/workspace-b"},
        ),
        (
            {"entries": {"a": {}, "b": {}}, "ownership": "explicit"},
            {"OPENCLAW_WORKSPACE_DIR": "/env"},
            {"a": "/state/workspace-a", "b": "/state/workspace-b"},
        ),
        (
            {"entries": {"a": {}, "b": {}}, "ownership": "explicit", "defaults": {"workspace": "/all"}},
            {},
            {"a": "/all/a", "b": "/all/b"},
        ),
    ],
)
def test_workspaces(agents: object, env: dict[str, str], expected: dict[str, str], tmp_path: Path) -> None:
    config = read(tmp_path, {"agents": agents})
    found = {agent.id: str(workspace_of(config, agent, Path("/state"), ENV | env)) for agent in config.agents}
    assert found == expected
