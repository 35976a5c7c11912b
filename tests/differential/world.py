"""What a state directory holds before a purge, and what the rules leave of it.

`World` reads a pristine state once; `World.after(rules)` says which lines, rows and report numbers
must remain. With `PEER` that is what the real program leaves, with `OURS` what we must leave.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from reference import OURS, Outcome, Rules, Scrubbed, Selection, blank, names_session, purge, scrub, session_of, text_of

from state_maker import AGENT, AGENT_DB, CORPUS, PLUGIN, STATE_DB, has_table, reading, sha256

Record: TypeAlias = dict[str, Any]
Element: TypeAlias = tuple[str, ...]
"""One thing that a purge keeps or removes: a line of a file, a row, a report entry."""

BACKUPS = "dreaming-memory-backups"
CRON_KEY = re.compile(r"agent:[^:]+:cron:[^:]+:run:")
NARRATIVE_RUN = re.compile(rb'"runId":"dreaming-narrative-')


@dataclass(frozen=True)
class Chunk:
    """A chunk row and its provenance."""

    id: str
    path: str
    source: str
    text: str
    hash: str
    origin_class: str | None
    session_kind: str | None


@dataclass
class Left:
    """What remains after a purge under some rules."""

    rules: Rules
    outcome: Outcome
    files: dict[str, bytes]
    chunks: set[str]
    sources: set[tuple[str, str]]
    cache: set[tuple[str, str, str, str]]
    origins: set[tuple[str, str]]
    plugin: dict[tuple[str, str], str]
    counts: dict[str, int] = field(default_factory=dict[str, int])

    def elements(self) -> set[Element]:
        """Everything that is still there, in one set."""
        found: set[Element] = {("chunk", name) for name in self.chunks}
        found |= {("source", *key) for key in self.sources}
        found |= {("cache", *key) for key in self.cache}
        found |= {("origin", *key) for key in self.origins}
        found |= {("plugin", *key, sha256(value)) for key, value in self.plugin.items()}
        found |= {("entry key", key) for key in self.outcome.selection.entry_keys}
        done: list[tuple[str, frozenset[int]]] = [(n, s.removed) for n, s in self.outcome.memory.items()]
        done += [(name, left.removed) for name, left in self.outcome.corpus.items()]
        found |= {("line", name, str(number)) for name, removed in done for number in removed}
        found |= {("bytes", name, hashlib.sha256(content).hexdigest()) for name, content in self.files.items()}
        return found


class World:
    """A pristine state directory, read once."""

    def __init__(self, state: Path, selected: list[str], scratch: Path, workspace: Path | None = None) -> None:
        self.state = state
        self.workspace = workspace or state / "workspace"
        self.ids = frozenset(selected)
        self.memory, self.corpus = read_workspace(self.workspace)
        with reading(state / AGENT_DB.format(agent=AGENT), scratch) as db:
            rows = db.execute("SELECT entry_key, session_id, agent_id FROM memory_entry_origins").fetchall()
            self.origins = [(str(r["entry_key"]), str(r["session_id"])) for r in rows if r["agent_id"] == AGENT]
            self.chunks = list(read_chunks(db))
            self.sources = {(str(r[0]), str(r[1])) for r in db.execute("SELECT path, source FROM memory_index_sources")}
            cache = "SELECT provider, model, provider_key, hash FROM memory_embedding_cache"
            self.cache = {(str(r[0]), str(r[1]), str(r[2]), str(r[3])) for r in db.execute(cache)}
            self.excluded = internal_sessions(db)
            self.keys = selected_keys(db, self.ids)
            self.has_vectors = has_table(db, "memory_index_chunks_vec")
        self.plugin: dict[tuple[str, str], Record] = {}
        with reading(state / STATE_DB, scratch) as db:
            query = "SELECT namespace, value_json FROM plugin_state_entries WHERE plugin_id = ?"
            for row in db.execute(query, (PLUGIN,)):
                record: Record = json.loads(row["value_json"])
                self.plugin[(str(row["namespace"]), str(record["key"]))] = record["value"]
        self.known: dict[Rules, Left] = {}

    def selection(self) -> Selection:
        """The selection before V1 joins keys to it."""
        return Selection(
            AGENT, self.ids, self.keys,
            frozenset(key for key, session in self.origins if session in self.ids),
            frozenset(key for key, _ in self.origins),
        )  # fmt: skip

    def after(self, rules: Rules = OURS) -> Left:
        """What remains under the rules."""
        if rules not in self.known:
            self.known[rules] = self._after(rules)
        return self.known[rules]

    def _after(self, rules: Rules) -> Left:
        backups = {
            key: str(value["content"]).encode() for (namespace, key), value in self.plugin.items()
            if namespace == BACKUPS
        }  # fmt: skip
        outcome = purge(self.memory, self.corpus, self.selection(), rules, backups)
        files = {name: done.content for name, done in outcome.memory.items()}
        files |= {name: left.content for name, left in outcome.corpus.items() if left.content is not None}
        left = Left(rules, outcome, files, set(), set(), set(), set(), {})
        self._index(left)
        keys = outcome.selection.entry_keys
        left.origins = {row for row in self.origins if row[0] not in keys}
        self._plugin(left)
        self._count(left, backups)
        return left

    def _index(self, left: Left) -> None:
        outcome = left.outcome
        before = self.memory | self.corpus
        changed = {name for name, content in before.items() if left.files.get(name) != content}
        deleted = {name for name in self.corpus if name not in left.files}
        stale = {c.path for c in self.chunks if c.source == "memory" and self._matches(c.text, left)}
        doomed: set[str] = set()
        touched: set[str] = set()
        for chunk in self.chunks:
            if (
                chunk.path in changed
                or (chunk.path in stale and chunk.source == "memory")
                or self._swept(chunk, outcome)
            ):
                doomed.add(chunk.id)
                if chunk.source == "sessions":
                    touched.add(chunk.path)
        left.chunks = {chunk.id for chunk in self.chunks} - doomed
        left.sources = {
            (path, source) for path, source in self.sources
            if path not in deleted and not (source == "sessions" and path in touched)
        }  # fmt: skip
        alive = {chunk.hash for chunk in self.chunks if chunk.id in left.chunks}
        kept = {row for row in self.cache if row[3] in alive} if left.rules.v12 else set[tuple[str, str, str, str]]()
        left.cache = kept if self.ids else set(self.cache)

    def _matches(self, text: str, left: Left) -> bool:
        done = scrub(text.encode("utf-8", "surrogateescape"), left.outcome.selection, left.outcome.needles, left.rules)
        return bool(done.removed)

    def _swept(self, chunk: Chunk, outcome: Outcome) -> bool:
        if names_session(chunk.path, outcome.selection):
            return True
        if chunk.source != "sessions" or not self.ids:
            return False
        internal = chunk.origin_class == "system" or chunk.session_kind in ("cron", "heartbeat")
        return internal or session_of(chunk.path.rsplit("/", 1)[-1]) in self.excluded

    def _plugin(self, left: Left) -> None:
        selection = left.outcome.selection
        gone = {key for (space, key), value in self.plugin.items() if space == "short-term-recall"
                and short_term_goes(key, value, selection)}  # fmt: skip
        for (space, key), value in self.plugin.items():
            kept: Record | None = value
            if space == "short-term-recall":
                kept = None if key in gone else value
            elif space == "short-term-phase-signals":
                kept = None if key in gone or key in selection.entry_keys else value
            elif space in ("dreaming-session-ingestion-seen", "dreaming-session-ingestion-files"):
                kept = None if scope_goes(str(value.get("scope", key)), selection, left.rules) else value
            elif space == "session-backfill-rewind" and left.rules.v13:
                kept = rewind_left(value, selection)
            elif space == BACKUPS:
                text = text_of(left.outcome.extra_texts[key].content)
                kept = value if text == value["content"] else {**value, "content": text, "contentHash": sha256(text)}
            elif space == "short-term-meta":
                kept = {"updatedAt": "*"}
            if kept is not None:
                left.plugin[(space, key)] = json.dumps(kept, sort_keys=True, ensure_ascii=False)

    def _count(self, left: Left, backups: dict[str, bytes]) -> None:
        outcome = left.outcome
        memory: list[tuple[str, Scrubbed]] = list(outcome.memory.items())
        chunks = len(self.chunks) - len(left.chunks)
        lost = {key for key in self.plugin if key not in left.plugin}
        scopes = {str(self.plugin[key].get("scope")) for key in lost if key[0] == "dreaming-session-ingestion-seen"}
        left.counts = {
            "memoryFiles": sum(self.memory[name] != done.content for name, done in memory),
            "memoryEntries": sum(done.entries for _, done in memory),
            "memoryLines": sum(done.quoted for _, done in memory),
            "sessionCorpusFiles": sum(bool(done.removed) for done in outcome.corpus.values()),
            "sessionCorpusLines": sum(len(done.removed) for done in outcome.corpus.values()),
            "indexChunks": chunks,
            "indexSources": len(self.sources) - len(left.sources),
            "ftsRows": chunks,
            "vectorRows": chunks if self.has_vectors else 0,
            "embeddingCacheRows": len(self.cache) - len(left.cache),
            "shortTermEntries": sum(space == "short-term-recall" for space, _ in lost),
            "seenHashScopes": len(scopes),
            "backups": sum(outcome.extra_texts[name].content != content for name, content in backups.items()),
            "originRows": len(self.origins) - len(left.origins),
        }


# -- reading ----------------------------------------------------------------------------------
def read_workspace(workspace: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Memory files and corpus files, by relative path, in the order of the report."""
    inside = sorted((workspace / "memory").rglob("*.md")) if (workspace / "memory").is_dir() else []
    names = ["MEMORY.md", "USER.md", *(str(path.relative_to(workspace)) for path in inside), "DREAMS.md", "dreams.md"]
    memory = {
        name: (workspace / name).read_bytes() for name in names
        if (workspace / name).is_file() and str(Path(name).parent) != CORPUS
    }  # fmt: skip
    folder = workspace / CORPUS
    corpus = {
        f"{CORPUS}/{path.name}": path.read_bytes() for path in sorted(folder.iterdir() if folder.is_dir() else [])
        if path.is_file() and path.suffix.lower() in (".txt", ".md")
    }  # fmt: skip
    return memory, corpus


def read_chunks(db: Any) -> Iterator[Chunk]:
    """Chunk rows with their provenance, where they have one."""
    query = (
        "SELECT c.id, c.path, c.source, c.text, c.hash, p.origin_class, p.session_kind FROM memory_index_chunks c "
        "LEFT JOIN memory_index_chunk_provenance p ON p.chunk_id = c.id"
    )
    for row in db.execute(query):
        yield Chunk(*(row[number] for number in range(7)))


def internal_sessions(db: Any) -> frozenset[str]:
    """Sessions that no index may hold: cron runs and dream narratives."""
    found: set[str] = set()
    for row in db.execute("SELECT session_id, session_key FROM session_windows"):
        if internal_key(row["session_key"]):
            found.add(row["session_id"])
    if has_table(db, "session_transcript_archives"):
        for row in db.execute("SELECT session_id, session_key, archive_blob FROM session_transcript_archives"):
            if internal_key(row["session_key"]) or NARRATIVE_RUN.search(row["archive_blob"]):
                found.add(row["session_id"])
    return frozenset(found)


def internal_key(key: str) -> bool:
    """A key of a cron run or of a dream narrative."""
    return bool(CRON_KEY.match(key)) or key.split(":", 2)[-1].startswith("dreaming-narrative-")


def selected_keys(db: Any, ids: frozenset[str]) -> frozenset[str]:
    """Session keys of which every generation is selected."""
    generations: dict[str, set[str]] = {}
    for row in db.execute("SELECT session_id, session_key FROM session_windows"):
        generations.setdefault(row["session_key"], set()).add(row["session_id"])
    return frozenset(key for key, sessions in generations.items() if sessions <= ids)


def short_term_goes(key: str, value: Record, selection: Selection) -> bool:
    """Whether a recall candidate derives from a selected session."""
    if key in selection.entry_keys or value.get("key") in selection.entry_keys:
        return True
    lines = f"{value.get('path', '')}\n{value.get('snippet', '')}".split("\n")
    return any(names_session(line, selection) for line in lines if not blank(line))


def scope_goes(scope: str, selection: Selection, rules: Rules) -> bool:
    """Whether a seen scope or a checkpoint belongs to a selected session."""
    if rules.v13 and scope.startswith(f"archive:{selection.agent}:"):
        return session_of(scope.rsplit("/", 1)[-1]) in selection.ids
    return names_session(scope, selection)


def rewind_left(value: Record, selection: Selection) -> Record | None:
    """A rewind row without the candidates of selected sessions."""
    candidates: list[Record] | None = value.get("candidates")
    if candidates is None:
        return value
    rest = [c for c in candidates if not names_session(str(c["scope"]), selection)
            and not names_session(str(c["stateKey"]), selection)]  # fmt: skip
    if len(rest) == len(candidates):
        return value
    return {**value, "candidates": rest} if rest else None
