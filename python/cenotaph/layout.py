"""Where things are: state directory, databases, folders, the keys of workspaces, and the clock."""

import hashlib
import os
import re
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from cenotaph.errors import ConfigError

__all__ = [
    "absolute_path",
    "agent_database",
    "canonical_agent_id",
    "clock_ms",
    "home_dir",
    "iso_moment",
    "real_workspace_key",
    "resolve_state_dir",
    "sessions_folder",
    "setting",
    "state_database",
    "workspace_key",
]

AGENT_DATABASE_NAME = "openclaw-agent.sqlite"
STATE_VARIABLES = ("CENOTAPH_STATE_DIR", "OPENCLAW_STATE_DIR")
CLOCK_VARIABLE = "CENOTAPH_CLOCK_MS"
IMPLICIT_AGENT = "main"
MAX_AGENT_ID = 64
NOT_IN_AGENT_ID = re.compile(r"[^a-z0-9_-]+")
VALID_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def setting(name: str, env: Mapping[str, str] | None = None) -> str | None:
    """Value of an environment variable without surrounding blanks; None when unset or blank."""
    value = (os.environ if env is None else env).get(name, "").strip()
    return value or None


def home_dir(env: Mapping[str, str] | None = None) -> Path:
    """The folder that `~` stands for; `OPENCLAW_HOME` moves it, as it does for the host."""
    moved = setting("OPENCLAW_HOME", env)
    home = setting("HOME", env)
    return Path(moved or home or os.path.expanduser("~"))


def absolute_path(text: str, env: Mapping[str, str] | None = None) -> Path:
    """`text` as an absolute path, a leading `~` (alone or before a slash) being the home folder.

    Symlinks are kept, because keys of stored rows are made from paths as they were given.
    """
    if text == "~" or text.startswith("~/"):
        text = str(home_dir(env)) + text[1:]
    return Path(os.path.abspath(text))


def resolve_state_dir(explicit: str | None = None, env: Mapping[str, str] | None = None) -> Path:
    """The state directory, absolute: `--state-dir`, then the two variables, then `~/.cenotaph`."""
    if explicit is not None and not explicit.strip():
        message = "--state-dir must not be blank"
        raise ConfigError(message)
    named = explicit or next(filter(None, (setting(name, env) for name in STATE_VARIABLES)), None)
    return absolute_path(named or "~/.cenotaph", env)


def canonical_agent_id(text: str) -> str:
    """The canonical form of an agent id: lower case, `[a-z0-9_-]`, at most 64 characters, or `main`."""
    trimmed = text.strip().lower()
    if VALID_AGENT_ID.fullmatch(trimmed):
        return trimmed
    return NOT_IN_AGENT_ID.sub("-", trimmed).strip("-")[:MAX_AGENT_ID] or IMPLICIT_AGENT


def agent_database(state_dir: Path, agent: str) -> Path:
    """Database of one agent: sessions, index, origins, tombstones."""
    return state_dir / "agents" / agent / "agent" / AGENT_DATABASE_NAME


def state_database(state_dir: Path) -> Path:
    """Database that all agents share: plugin state, locks, the registry of agent databases."""
    return state_dir / "state" / "openclaw.sqlite"


def sessions_folder(state_dir: Path, agent: str) -> Path:
    """Folder of an agent's published transcript archives."""
    return state_dir / "agents" / agent / "sessions"


def workspace_key(workspace: Path) -> str:
    """Key of a workspace in plugin state: SHA-256 of its absolute path, symlinks not resolved."""
    return _hash(os.path.abspath(workspace))


def real_workspace_key(workspace: Path) -> str:
    """Key of a workspace in the rows of the write observer: SHA-256 of its real path."""
    return _hash(os.path.realpath(workspace))


def clock_ms() -> int:
    """Now, in milliseconds since the epoch. `CENOTAPH_CLOCK_MS` stops the clock there."""
    pinned = setting(CLOCK_VARIABLE)
    if pinned is None:
        return time.time_ns() // 1_000_000
    if not re.fullmatch(r"[0-9]{1,16}", pinned):
        message = f"{CLOCK_VARIABLE} must be a number of milliseconds since the epoch"
        raise ConfigError(message)
    announce_stopped_clock(pinned)
    return int(pinned)


def iso_moment(milliseconds: int) -> str:
    """A time in ms since the epoch as ISO 8601 in UTC, with milliseconds."""
    stamp = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{stamp:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


@cache
def announce_stopped_clock(pinned: str) -> None:
    """Say on the error output, once, that the time is not the real one."""
    sys.stderr.write(f"cenotaph: the clock is stopped at {pinned} ms ({CLOCK_VARIABLE})\n")


def _hash(path: str) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()
