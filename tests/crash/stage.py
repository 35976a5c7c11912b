"""A scene with one of everything, staged again and again at the same path, and what its end state means."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

from raw import Needle, Piece, look, pieces_of

import cenotaph
from scene import SECRET, SURVIVOR, TARGET, held_by, own, play
from state_maker import StateMaker, has_table, marker, reading

SAID = Needle("what the session said", SECRET.removeprefix("User: "), ("mongoose",))
UNIT = f"{marker('kept:joined')}\n{marker('gone:e')}\n- stacked entry\n{marker('kept:k')}\n- own entry\n"


def scene(maker: StateMaker, notes: int = 3) -> StateMaker:
    """One of everything, with an entry that two keys share, and as many notes as asked for."""
    play(maker, {"MEMORY.md": UNIT, "USER.md": f"a\n> {SECRET}\n", "DREAMS.md": f"> {SECRET}\nb\n"})
    own(own(maker, ["gone:e"]), ["kept:joined", "kept:k"], SURVIVOR)
    for number in range(notes):
        name = f"memory/note-{number:04d}.md"
        maker.file(name, f"kept\n{marker('gone:e')}\n- entry\n> {SECRET}\n")
        maker.source(name)
        maker.chunk(name, f"> {SECRET}", cached=True)
    for key in ("gone:e", "kept:joined", "kept:k"):
        maker.short_term(key, "some words")
    for session in (TARGET, SURVIVOR):
        maker.seen(f"main:sessions/main/{session}")
        maker.checkpoint(f"main:sessions/main/{session}")
        maker.chunk(f"sessions/main/{session}.jsonl", f"words of {session}", source="sessions", kind="interactive")
    maker.backup(UNIT)
    return maker.seal()


def meaning(maker: StateMaker) -> dict[str, Any]:
    """What a state holds, vectors and names of files too."""
    held = held_by(maker, tombstones="session_id, agent_id", chunks="id")
    return held | {"vectors": vectors_of(maker), "names": names_below(maker.state)}


def vectors_of(maker: StateMaker) -> list[tuple[Any, ...]]:
    """Ids in the vector table, if there is one."""
    with reading(maker.agent_db, maker.root / "scratch") as db:
        if not has_table(db, "memory_index_chunks_vec_rowids"):
            return []
        return [tuple(row) for row in db.execute("SELECT id FROM memory_index_chunks_vec_rowids ORDER BY 1")]


def names_below(state: Path) -> list[str]:
    """Files of a state directory, without those that come and go with a connection."""
    paths = (str(path.relative_to(state)) for path in state.rglob("*") if path.is_file())
    return sorted(path for path in paths if not path.endswith(("-wal", "-shm")))


def differing(left: dict[str, Any], right: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What is not the same in two meanings. Of files, only those that differ."""
    found = {name: (left[name], value) for name, value in right.items() if left[name] != value}
    if "files" in found:
        names = {*left["files"], *right["files"]}
        wrong = sorted(name for name in names if left["files"].get(name) != right["files"].get(name))
        found["files"] = (wrong, [])
    return found


def residue(maker: StateMaker, pieces: list[Piece] | None = None) -> list[str]:
    """Where anything that was said (or one of these pieces) can still be read, and temporary files that are left."""
    wanted = pieces_of([SAID]) if pieces is None else pieces
    left = [str(path) for path in maker.root.rglob("*") if path.name.endswith(".tmp") or ".cenotaph-" in path.name]
    return [*map(str, look([maker.root], wanted)), *left]


def damaged(maker: StateMaker) -> list[str]:
    """What SQLite says against the databases, looking at copies of them with their logs."""
    found: list[str] = []
    for path in (maker.agent_db, maker.state_db):
        with reading(path, maker.root / "scratch") as db:
            try:
                said = [row[0] for row in db.execute("PRAGMA integrity_check")]
            except sqlite3.DatabaseError as error:
                said = [str(error)]
        if said != ["ok"]:
            found.append(f"{path.name}: {said}")
    return found


class Stage:
    """The same scene again and again, at the same path."""

    def __init__(self, maker: StateMaker) -> None:
        self.maker = maker
        self.pristine = maker.root.with_name("pristine")
        shutil.copytree(maker.root, self.pristine)

    def reset(self) -> StateMaker:
        """The scene as it was."""
        shutil.rmtree(self.maker.root)
        shutil.copytree(self.pristine, self.maker.root)
        return self.maker


def steps_of(maker: StateMaker) -> list[str]:
    """The steps of an uninterrupted run, in order, each once."""
    seen: list[str] = []
    with cenotaph.open(maker.state, agent="main") as memory:
        memory.forget(sessions=[TARGET], on_step=seen.append)
    return list(dict.fromkeys(seen))
