"""Where the memory of one agent lives: its state directory, configuration and workspace, resolved."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cenotaph import _core, layout
from cenotaph.config import read_config, resolve_agent, workspace_of
from cenotaph.errors import ConfigError
from cenotaph.session_store import session_store_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cenotaph.config import AgentConfig, Config
    from cenotaph.session_store import SessionStore


@dataclass(frozen=True, slots=True)
class Place:
    """One agent of one state directory."""

    state_dir: Path
    config: Config
    agent_config: AgentConfig
    workspace: Path

    @property
    def agent(self) -> str:
        """Id of the agent."""
        return self.agent_config.id

    @property
    def agent_database(self) -> Path:
        """The database with origins, tombstones and index."""
        return layout.agent_database(self.state_dir, self.agent)

    @property
    def state_database(self) -> Path:
        """The database with plugin state."""
        return layout.state_database(self.state_dir)

    @property
    def workspace_key(self) -> str:
        """Hash of the workspace path, as plugin state has it."""
        return layout.workspace_key(self.workspace)

    @property
    def real_workspace_key(self) -> str:
        """Hash of the workspace's real path, as the write observer has it."""
        return layout.real_workspace_key(self.workspace)

    def relative(self, path: str) -> str:
        """A path as index and report name it: relative to the workspace with `/`, or absolute when it is outside."""
        for base in (str(self.workspace), os.path.realpath(self.workspace)):
            if path.startswith(base + os.sep):
                return path[len(base) + 1 :]
        return path

    def session_store(self, registered: Sequence[tuple[str, str]]) -> SessionStore:
        """Where the sessions are; `registered` is the registry of agent databases (agent id, path)."""

        def registry_owner(database: Path) -> str | None:
            wanted = os.path.realpath(database)
            paths = ((agent, self.state_dir / path) for agent, path in registered)
            return next((agent for agent, path in paths if os.path.realpath(path) == wanted), None)

        return session_store_of(
            self.config,
            self.agent_config,
            self.state_dir,
            registry_owner=registry_owner,
            schema_owner=_schema_owner,
        )


def _schema_owner(database: Path) -> str | None:
    store = _core.Store.open_sessions(database)
    if store is None:
        return None
    try:
        return store.owner
    finally:
        store.close()


def state_root(state_dir: str | os.PathLike[str] | None) -> Path:
    """The state directory that the caller or the environment names."""
    return layout.resolve_state_dir(None if state_dir is None else os.fspath(state_dir))


def find_place(state_dir: str | os.PathLike[str] | None, agent: str | None) -> Place:
    """Resolves state directory, configuration, agent and workspace. Reads only the configuration.

    Raises `ConfigError` for a directory that is not there (a deletion there would be a false comfort) and for a
    configuration that cannot be used, `SelectionError` for an agent that is not in it.
    """
    root = state_root(state_dir)
    if not root.is_dir():
        raise ConfigError(f"There is no state directory at {root}; name one with --state-dir, or make one with init")
    config = read_config(root)
    agent_config = resolve_agent(config, agent)
    return Place(root, config, agent_config, workspace_of(config, agent_config, root))
