"""What a place with needles means: residue, kept by design, or a file that only its owner may change."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cenotaph import _core, layout
from cenotaph.config import workspace_of
from cenotaph.verify.process import Place as Hit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cenotaph.place import Place
    from cenotaph.verify.process import Found

KEPT_TABLES = (
    "transcript_events",
    "session_transcript_archives",
    "session_transcript_cold_archives",
    "session_transcript_active_events",
    "session_transcript_index_state",
    "session_transcript_fts_data",
    "session_transcript_fts_idx",
    "session_transcript_fts_content",
    "session_transcript_fts_docsize",
    "session_transcript_fts_config",
    "session_transcript_fts_rows",
    "session_nodes",
    "session_windows",
    "session_participants",
    "transcript_event_identities",
    "trajectory_runtime_events",
    "acp_parent_stream_events",
    "session_pending_inputs",
    "session_input_completions",
    "context_engine_turn_outbox",
    "message_tool_run_outcomes",
    "conversations",
    "conversation_deliveries",
)
"""Tables of what was said, which a deletion of memory keeps: `format.md` 2."""

Meaning = Literal["residue", "kept", "review"]
_TRANSCRIPTS = "source transcripts"
_ARCHIVES = "transcript archives"


def told(result: Literal["clean", "residue", "not-run"], wanted: int) -> str:
    """A result for people. `wanted`: how many needles were looked for; of none, nothing can be said."""
    if result == "clean":
        return "nothing found" if wanted else "nothing to look for"
    return "RESIDUE FOUND" if result == "residue" else "not run"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a search means for one agent. `unread`: files that may hold residue and could not be read."""

    residue: tuple[Hit, ...]
    kept: dict[str, int]
    """Places with needles that stay by design, counted by what they are."""
    review: tuple[Hit, ...]
    unread: tuple[tuple[str, str], ...]
    files: int
    bytes: int

    @property
    def is_clean(self) -> bool:
        """Whether every byte was read and no residue found."""
        return not self.residue and not self.unread


@dataclass(frozen=True, slots=True)
class _Layout:
    """Real paths that tell what a file is."""

    workspace: str
    sessions: tuple[str, ...]
    """Folders of published transcripts, of every agent."""
    other_workspaces: tuple[str, ...]
    other_databases: frozenset[str]
    """Of agents with other workspaces: what they hold does not come from this one."""
    memory: frozenset[str]
    """Memory files, corpus files and left-over temporary files of the workspace."""


def roots_of(place: Place) -> list[str]:
    """State directory and workspaces of all agents: what a deletion promises something about."""
    spaces = [workspace_of(place.config, agent, place.state_dir) for agent in place.config.agents]
    return [os.path.realpath(root) for root in dict.fromkeys([place.state_dir, place.workspace, *spaces])]


def judge(place: Place, found: Found) -> Verdict:
    """Sorts what was found."""
    known = _layout(place)
    by_meaning: dict[Meaning, list[Hit]] = {"residue": [], "kept": [], "review": []}
    kept: dict[str, int] = {}
    for hit in found.places:
        meaning, what = _meaning(known, hit)
        by_meaning[meaning].append(hit)
        if meaning == "kept":
            kept[what] = kept.get(what, 0) + 1
    unread = [(path, reason) for path, reason in found.failures if _of_file(known, path)[0] == "residue"]
    return Verdict(
        residue=tuple(by_meaning["residue"]),
        kept=kept,
        review=tuple(by_meaning["review"]),
        unread=tuple(unread),
        files=found.files,
        bytes=found.bytes,
    )


def _meaning(known: _Layout, hit: Hit) -> tuple[Meaning, str]:
    if hit.part in ("row", "member") and hit.table in KEPT_TABLES:
        return "kept", _TRANSCRIPTS
    return _of_file(known, hit.path)


def _of_file(known: _Layout, path: str) -> tuple[Meaning, str]:
    real = os.path.realpath(path)
    if _is_below(real, known.workspace):
        return (
            ("residue", "") if real in known.memory or _is_below(real, known.workspace + "/memory") else ("review", "")
        )
    if any(_is_below(real, folder) for folder in known.sessions):
        return "kept", _ARCHIVES
    others = any(_is_below(real, space) for space in known.other_workspaces)
    if others or real.removesuffix("-wal").removesuffix("-journal") in known.other_databases:
        return "review", ""
    return "residue", ""


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(folder + os.sep)


def _layout(place: Place) -> _Layout:
    listing = _core.memory_files(place.workspace)
    own = os.path.realpath(place.workspace)
    others = {
        agent.id: os.path.realpath(workspace_of(place.config, agent, place.state_dir))
        for agent in place.config.agents
        if agent.id != place.agent
    }
    apart = {agent for agent, space in others.items() if space != own}
    sessions = [layout.sessions_folder(place.state_dir, agent) for agent in _agents(place)]
    return _Layout(
        workspace=own,
        sessions=tuple(map(os.path.realpath, sessions)),
        other_workspaces=tuple(others[agent] for agent in apart),
        other_databases=frozenset(os.path.realpath(layout.agent_database(place.state_dir, agent)) for agent in apart),
        memory=frozenset(
            map(os.path.realpath, (*(file.path for file in listing.files), *listing.corpus, *listing.leftovers))
        ),
    )


def _agents(place: Place) -> Iterable[str]:
    """Of the configuration, and of the folders that are there."""
    folder = place.state_dir / "agents"
    found = (entry.name for entry in folder.iterdir()) if folder.is_dir() else ()
    return {place.agent, *(agent.id for agent in place.config.agents), *found}


def named(place: Place, path: str) -> str:
    """A path as the report names files: relative to the workspace, else to the state directory, else absolute."""
    for base in (os.path.realpath(place.workspace), os.path.realpath(place.state_dir)):
        if path.startswith(base + os.sep):
            return path[len(base) + 1 :]
    return path
