"""`openclaw.json`: which agents there are, where their workspaces are, what may be remembered."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar, cast

from cenotaph import schema
from cenotaph.errors import ConfigError, SelectionError
from cenotaph.json5 import read_json5
from cenotaph.layout import (
    IMPLICIT_AGENT,
    absolute_path,
    canonical_agent_id,
    setting,
)
from cenotaph.schema import Json, as_list, as_table

__all__ = [
    "AgentConfig",
    "Config",
    "DeepPhase",
    "Dreaming",
    "ExcludeSessions",
    "ExtraPath",
    "LightPhase",
    "RemPhase",
    "Search",
    "config_path",
    "read_config",
    "resolve_agent",
    "workspace_of",
]

T = TypeVar("T")

PLUGIN = "plugins.entries.memory-core.config"
VALID_ENTRY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(frozen=True, slots=True)
class ExcludeSessions:
    """Which sessions may not be remembered. Values are trimmed and never blank; they match exactly."""

    hook_sources: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    chat_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LightPhase:
    """Light sleep: staging of recent candidates."""

    enabled: bool = True
    lookback_days: int = 2
    limit: int = 100
    dedupe_similarity: float = 0.9
    model: str | None = None


@dataclass(frozen=True, slots=True)
class RemPhase:
    """REM sleep: reflections over the last days."""

    enabled: bool = True
    lookback_days: int = 7
    limit: int = 10
    min_pattern_strength: float = 0.75
    model: str | None = None


@dataclass(frozen=True, slots=True)
class DeepPhase:
    """Deep sleep: promotion. Disabling it, or a limit of 0, disables the whole sweep."""

    enabled: bool = True
    limit: int = 10
    min_score: float = 0.75
    min_recall_count: int = 3
    min_unique_queries: int = 3
    recency_half_life_days: int = 14
    max_age_days: int = 30
    max_promoted_snippet_tokens: int = 160
    max_prior_entry_loss_fraction: float = 0.25
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Dreaming:
    """The sweep: when it runs, where its reports go, and its three phases."""

    enabled: bool = True
    frequency: str = "0 3 * * *"
    model: str | None = None
    timezone: str | None = None
    verbose_logging: bool = False
    storage_mode: Literal["inline", "separate", "both"] = "separate"
    separate_reports: bool = False
    light: LightPhase = field(default_factory=LightPhase)
    rem: RemPhase = field(default_factory=RemPhase)
    deep: DeepPhase = field(default_factory=DeepPhase)


@dataclass(frozen=True, slots=True)
class ExtraPath:
    """A file or folder outside the memory files that is searched too."""

    path: str
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """`memory.search` of one agent: its own values over the global ones, leaf by leaf."""

    enabled: bool = True
    remember_across_conversations: bool | None = None
    """None: not set, so on unless the host keeps direct messages apart."""
    sources: tuple[str, ...] = ("memory",)
    session_memory: bool = False
    extra_paths: tuple[ExtraPath, ...] = ()
    """Those of all agents first, then those of this one."""
    provider: str = "openai"
    model: str | None = None
    fallback: str = "none"
    remote_base_url: str | None = None
    remote_api_key: str | None = None
    """None also when the host keeps the key in a secret store."""
    remote_headers: Mapping[str, str] = field(default_factory=dict[str, str])
    remote_batch: bool = False
    input_type: str | None = None
    query_input_type: str | None = None
    document_input_type: str | None = None
    output_dimensionality: int | None = None
    local_model_path: str | None = None
    multimodal: bool = False
    modalities: tuple[str, ...] = ()
    max_file_bytes: int = 10_485_760
    tokenizer: Literal["unicode61", "trigram"] = "unicode61"
    vector_enabled: bool = True
    vector_extension_path: str | None = None
    max_results: int = 6
    min_score: float = 0.35
    cache_enabled: bool = True


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One agent of the roster."""

    id: str
    """Canonical."""
    workspace: str | None
    """As it is written in the file."""
    is_default: bool
    """Whether commands without `--agent` mean this one; it also owns the default workspace."""
    search: Search


@dataclass(frozen=True, slots=True)
class Config:
    """What the file says, with the defaults filled in."""

    path: Path
    agents: tuple[AgentConfig, ...]
    default_workspace: str | None = None
    user_timezone: str | None = None
    session_store: str | None = None
    citations: Literal["auto", "on", "off"] = "auto"
    exclude_sessions: ExcludeSessions = field(default_factory=ExcludeSessions)
    dreaming: Dreaming = field(default_factory=Dreaming)

    @property
    def default_agent(self) -> AgentConfig | None:
        """The agent that commands without `--agent` mean; None when several share the directory."""
        return next((agent for agent in self.agents if agent.is_default), None)


def config_path(state_dir: Path, env: Mapping[str, str] | None = None) -> Path:
    """The configuration file: `OPENCLAW_CONFIG_PATH`, else `openclaw.json` in the state directory."""
    named = setting("OPENCLAW_CONFIG_PATH", env)
    return absolute_path(named, env) if named else state_dir / "openclaw.json"


def read_config(state_dir: Path, env: Mapping[str, str] | None = None) -> Config:
    """Reads and checks the configuration. No file means an empty one.

    Raises `ConfigError` that names every problem, and `OSError` when the file cannot be read.
    """
    path = config_path(state_dir, env)
    root: Json = read_json5(path, os.environ if env is None else env) if path.exists() else {}
    problems: list[str] = []
    schema.ROOT(root, "", problems)
    if not problems:
        _check_roster(_Values(root), problems)
    if problems:
        raise ConfigError("\n- ".join([f"Invalid config at {path}:", *problems]))
    return _config(path, _Values(root))


def resolve_agent(config: Config, requested: str | None) -> AgentConfig:
    """The agent that `--agent` names, or the default one. Raises `SelectionError`."""
    if requested is None:
        if config.default_agent:
            return config.default_agent
        raise SelectionError("Several agents are configured and none is the default; pass --agent <id>.")
    wanted = requested.strip()
    if not wanted:
        raise SelectionError("--agent must not be blank")
    for agent in config.agents:
        if agent.id == wanted:
            return agent
    message = f'Unknown agent id "{wanted}". Run openclaw agents list to see configured agents.'
    raise SelectionError(message)


def workspace_of(config: Config, agent: AgentConfig, state_dir: Path, env: Mapping[str, str] | None = None) -> Path:
    """Absolute path of an agent's workspace; symlinks are kept."""
    return absolute_path(_workspace_text(config, agent, state_dir, env), env)


def _workspace_text(config: Config, agent: AgentConfig, state_dir: Path, env: Mapping[str, str] | None) -> str:
    own, shared = _path_text(agent.workspace), _path_text(config.default_workspace)
    if own:
        return own
    if agent.is_default:
        return shared or setting("OPENCLAW_WORKSPACE_DIR", env) or str(state_dir / "workspace")
    return f"{shared}/{agent.id}" if shared else str(state_dir / f"workspace-{agent.id}")


def _path_text(text: str | None) -> str:
    return (text or "").replace("\0", "").strip()


# -- from the checked file to plain data -------------------------------------------------------


class _Values:
    """Access to a checked tree; a path that leads nowhere gives None."""

    def __init__(self, root: Json) -> None:
        self._root = root

    def get(self, path: str) -> Json:
        value = self._root
        for key in path.split("."):
            value = (as_table(value) or {}).get(key)
        return value

    def at(self, path: str) -> "_Values":
        return _Values(self.get(path))

    def text(self, path: str) -> str | None:
        value = self.get(path)
        return value if isinstance(value, str) else None

    def is_true(self, path: str) -> bool:
        return self.get(path) is True

    def texts(self, path: str) -> tuple[str, ...]:
        """Trimmed, without blank ones."""
        items = as_list(self.get(path)) or []
        return tuple(item.strip() for item in items if isinstance(item, str) and item.strip())


def _filled(kind: Callable[..., T], values: _Values, paths: Mapping[str, str], **more: Json) -> T:
    """A `kind` with the fields whose paths lead to a value; its own defaults stand for the others."""
    given = {name: _plain(values.get(path)) for name, path in paths.items()}
    return kind(**{name: value for name, value in (given | more).items() if value is not None})


def _plain(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    items = as_list(value)
    return value if items is None else tuple(items)


def _check_roster(values: _Values, problems: list[str]) -> None:
    """What the single checks cannot see: names of entries, and who owns the directory."""
    entries = _roster(values)
    for place, name, _ in entries:
        if place.startswith("agents.entries") and not VALID_ENTRY_NAME.fullmatch(name):
            problems.append(f"{place}: agent ids have letters, digits, - and _ only, at most 64")
    ids = [canonical_agent_id(name) for _, name, _ in entries]
    problems += [
        f'{place}: agent "{agent}" is configured twice'
        for position, ((place, _, _), agent) in enumerate(zip(entries, ids, strict=True))
        if agent in ids[:position]
    ]
    explicit = values.text("agents.ownership") == "explicit"
    defaults = [place for place, _, entry in entries if entry.is_true("default")]
    if explicit and defaults:
        problems.append(f'agents.ownership: "explicit" cannot be combined with {defaults[0]}.default')
    elif len(defaults) > 1:
        problems.append(f"{defaults[1]}.default: only one agent can be the default")
    elif len(entries) > 1 and not explicit and not defaults:
        problems.append('agents.ownership: several agents need "explicit", or one agent with default: true')


def _roster(values: _Values) -> list[tuple[str, str, _Values]]:
    """Path in the file, id as written, and values of each configured agent."""
    entries = as_table(values.get("agents.entries")) or {}
    if entries:
        return [(f"agents.entries.{name}", name, _Values(entry)) for name, entry in entries.items()]
    listed = [_Values(entry) for entry in as_list(values.get("agents.list")) or []]
    return [(f"agents.list.{at}", entry.text("id") or "", entry) for at, entry in enumerate(listed)]


def _config(path: Path, values: _Values) -> Config:
    roster = _roster(values) or [("", IMPLICIT_AGENT, _Values({}))]
    alone = len(roster) == 1
    explicit = values.text("agents.ownership") == "explicit"
    plugin = values.at(PLUGIN)
    citations = values.text("memory.citations") or "auto"
    return Config(
        path=path,
        agents=tuple(
            AgentConfig(
                id=canonical_agent_id(name),
                workspace=entry.text("workspace"),
                is_default=alone or (not explicit and entry.is_true("default")),
                search=_search(values.get("memory.search"), entry.get("memory.search")),
            )
            for _, name, entry in roster
        ),
        default_workspace=values.text("agents.defaults.workspace"),
        user_timezone=values.text("agents.defaults.userTimezone"),
        session_store=values.text("session.store"),
        citations=cast("Literal['auto', 'on', 'off']", citations),
        exclude_sessions=_exclude_sessions(plugin.at("memoryPolicy.excludeSessions")),
        dreaming=_dreaming(plugin.at("dreaming")),
    )


_PHASE = {"enabled": "enabled", "limit": "limit"}
_LIGHT = {**_PHASE, "lookback_days": "lookbackDays", "dedupe_similarity": "dedupeSimilarity"}
_REM = {**_PHASE, "lookback_days": "lookbackDays", "min_pattern_strength": "minPatternStrength"}
_DEEP = {
    **_PHASE,
    "min_score": "minScore",
    "min_recall_count": "minRecallCount",
    "min_unique_queries": "minUniqueQueries",
    "recency_half_life_days": "recencyHalfLifeDays",
    "max_age_days": "maxAgeDays",
    "max_promoted_snippet_tokens": "maxPromotedSnippetTokens",
    "max_prior_entry_loss_fraction": "maxPriorEntryLossFraction",
}
_DREAMING = {
    "enabled": "enabled",
    "frequency": "frequency",
    "model": "model",
    "timezone": "timezone",
    "verbose_logging": "verboseLogging",
    "storage_mode": "storage.mode",
    "separate_reports": "storage.separateReports",
}
_SEARCH = {
    "enabled": "enabled",
    "remember_across_conversations": "rememberAcrossConversations",
    "sources": "sources",
    "session_memory": "experimental.sessionMemory",
    "provider": "provider",
    "model": "model",
    "fallback": "fallback",
    "remote_base_url": "remote.baseUrl",
    "remote_headers": "remote.headers",
    "remote_batch": "remote.batch.enabled",
    "input_type": "inputType",
    "query_input_type": "queryInputType",
    "document_input_type": "documentInputType",
    "output_dimensionality": "outputDimensionality",
    "local_model_path": "local.modelPath",
    "multimodal": "multimodal.enabled",
    "modalities": "multimodal.modalities",
    "max_file_bytes": "multimodal.maxFileBytes",
    "tokenizer": "store.fts.tokenizer",
    "vector_enabled": "store.vector.enabled",
    "vector_extension_path": "store.vector.extensionPath",
    "max_results": "query.maxResults",
    "min_score": "query.minScore",
    "cache_enabled": "cache.enabled",
}


def _exclude_sessions(values: _Values) -> ExcludeSessions:
    return ExcludeSessions(
        hook_sources=values.texts("hookExternalContentSources"),
        channels=values.texts("channels"),
        chat_types=values.texts("chatTypes"),
    )


def _dreaming(values: _Values) -> Dreaming:
    common = values.text("execution.defaults.model") or values.text("model")

    def phase(kind: Callable[..., T], name: str, paths: Mapping[str, str]) -> T:
        own = values.at(f"phases.{name}")
        return _filled(kind, own, paths, model=own.text("execution.model") or common)

    return _filled(
        Dreaming,
        values,
        _DREAMING,
        light=phase(LightPhase, "light", _LIGHT),
        rem=phase(RemPhase, "rem", _REM),
        deep=phase(DeepPhase, "deep", _DEEP),
    )


def _search(shared: Json, own: Json) -> Search:
    values = _Values(_leaf_by_leaf(shared, own))
    listed = [path for each in (shared, own) for path in as_list(_Values(each).get("extraPaths")) or []]
    return _filled(
        Search,
        values,
        _SEARCH,
        remote_api_key=values.text("remote.apiKey"),
        extra_paths=tuple(_extra_path(each) for each in listed),
    )


def _extra_path(value: Json) -> ExtraPath:
    if isinstance(value, str):
        return ExtraPath(value)
    values = _Values(value)
    return ExtraPath(values.text("path") or "", values.text("pattern"))


def _leaf_by_leaf(below: Json, above: Json) -> Json:
    low, high = as_table(below), as_table(above)
    if low is None or high is None:
        return below if above is None else above
    return {key: _leaf_by_leaf(low.get(key), high.get(key)) for key in {**low, **high}}
