"""The same after: a pinned log, an earlier careless deletion, a thousand forgets, a forget of everything."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from planting import KINDS, SURVIVOR, TARGET, begin, careless, needles_of, purge_carelessly, stage
from raw import TAIL, Needle, letters, make_needle, occurrences, scan, told

import cenotaph
from conftest import CommandLine
from state_maker import Change, StateMaker, corpus_line, files_holding, marker

Forget = Callable[..., dict[str, Any]]
READER = """
import sqlite3, sys
held = []
for path in sys.argv[1:]:
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    db.execute("BEGIN")
    db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    held.append(db)
print("reading", flush=True)
sys.stdin.readline()
"""


@contextmanager
def reading(*paths: Path) -> Generator[None]:
    """Another process with an open read transaction on each database."""
    command = [sys.executable, "-c", READER, *map(str, paths)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "reading\n"
            yield
        finally:
            child.communicate("\n", timeout=30)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["agent", "shared", "both"])
def test_a_log_that_a_reader_pins(cli: CommandLine, either: StateMaker, which: str) -> None:
    """Incomplete while somebody reads, and the same command finishes it once the reader has ended."""
    live = [kind for kind in KINDS if not kind.past]
    stage(either, live)
    databases = {"agent": [either.agent_db], "shared": [either.state_db], "both": [either.agent_db, either.state_db]}
    with reading(*databases[which]):
        report = cli.forget(either.state, "--session", TARGET, status=3)
        assert [item for item in report["pending"] if item.startswith("wal")] != [], report["pending"]
    again = cli.forget(either.state, "--session", TARGET)
    assert again["pending"] == []
    hits = scan([either.root], needles_of(live))
    assert not hits, told(hits)


def test_an_earlier_careless_deletion(either: StateMaker, forget: Forget) -> None:
    """Rows of what the session said went before, and left their bytes; the corpus still tells what to look for."""
    scene = stage(either, KINDS)
    purge_carelessly(either, files=False)
    known = [needle for needle in needles_of(KINDS) if f"User: {needle.text}" in scene.said_lines]
    assert len(known) > 20
    forget(either.state, sessions=[TARGET])
    hits = scan([either.root], known)
    assert not hits, told(hits)


def test_a_forget_of_everything(cli: CommandLine, either: StateMaker) -> None:
    stage(either, KINDS)
    both = ["--session", TARGET, "--session", SURVIVOR, "--since", "1970-01-01"]
    assert cli.forget(either.state, *both)["pending"] == []
    hits = scan([either.root], needles_of(KINDS))
    assert not hits, told(hits)
    corpus = either.workspace / "memory/.dreams/session-corpus"
    left = {path.name: path.read_text() for path in corpus.iterdir()}
    assert left == {"2026-11-17.md": "kept line\n"}, "a line of no session"


def test_a_forget_after_a_forget(either: StateMaker, forget: Forget) -> None:
    """The second finds nothing to do, and leaves nothing either."""
    stage(either, KINDS)
    forget(either.state, sessions=[TARGET])
    report = forget(either.state, sessions=[TARGET])
    assert report["pending"] == []
    assert report["artifacts"]["indexChunks"] == 0
    hits = scan([either.root], needles_of(KINDS))
    assert not hits, told(hits)


# -- a thousand in a row ----------------------------------------------------------------------------
ROUNDS, EACH = 10, 100
FAMILY = letters("family", TAIL)
"""Every word of the thousand ends alike, so that one look finds what is left of any of them."""


def session_name(number: int) -> str:
    return f"5e551000-cccc-4000-8000-{number:012d}"


def needle_of(number: int) -> Needle:
    word = letters(f"row {number}", 6) + FAMILY
    return Needle(f"session {number}", f"the {word} of number {number} is kept at noon")


def remember(maker: StateMaker, numbers: range) -> None:
    """Sessions with a corpus line, an entry, a chunk, a short-term entry and, every tenth, a quotation each."""
    lines: list[str] = []
    entries: list[str] = []
    for number in numbers:
        session, needle, key = session_name(number), needle_of(number), f"memory:claim:{number:012d}"
        maker.session(session)
        lines.append(corpus_line(session, 2, f"User: {needle.text}"))
        entries.append(f"{marker(key)}\n- {needle.text}\n")
        maker.origin(key, session)
        maker.chunk(f"sessions/main/{session}.jsonl", needle.text, source="sessions", kind="interactive")
        maker.short_term(key, needle.text)
        if number % 10 == 0:
            maker.file(f"memory/note-{number:04d}.md", f"kept\n> User: {needle.text}\n")
    maker.corpus("2026-11-20", lines)
    maker.file("MEMORY.md", "# Long-Term Memory\n\n- kept entry\n" + "".join(entries))
    maker.seal(add_rows)


def add_rows(path: Path, change: Change) -> None:
    """Writes waiting rows with a SQLite that knows the format which secure deletion gives a full-text table."""
    with careless(path) as db, db:
        for table, row in change.rows:
            known = {info[1] for info in db.execute(f"PRAGMA table_info({table})")}
            names = [name for name in row if name in known]
            marks = ", ".join("?" * len(names))
            values = [row[name] for name in names]
            db.execute(f"INSERT OR REPLACE INTO {table} ({', '.join(names)}) VALUES ({marks})", values)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_thousand_in_a_row(maker: StateMaker) -> None:
    """In ten rounds, each with new sessions in the place of the forgotten ones: every one of them is gone at once."""
    for begin_at in range(0, ROUNDS * EACH, EACH):
        numbers = range(begin_at, begin_at + EACH)
        remember(maker, numbers)
        with cenotaph.open(maker.state, agent="main") as memory:
            for number in numbers:
                report = memory.forget(sessions=[session_name(number)])
                assert report.exit_status == 0, (number, report.pending)
                if number == begin_at + EACH // 2:
                    gone = [needle_of(each) for each in numbers if each <= number]
                    hits = scan([maker.root], gone[::5])
                    assert not hits, f"after {number}: {told(hits)}"
                    assert files_holding(maker.root, needle_of(number + 1).text.encode()) != []
        assert files_holding(maker.root, FAMILY.encode()) == [], f"after {begin_at + EACH}"
    assert maker.read("MEMORY.md") == b"# Long-Term Memory\n\n- kept entry\n"


# -- what is kept by design -------------------------------------------------------------------------
def test_the_transcript_keeps_its_own_words(either: StateMaker, forget: Forget) -> None:
    """The same sentence in the transcript: found there as often as it is stored, and nowhere else."""
    import apsw

    needle = make_needle("said in the transcript")
    scene = begin(either)
    either.session(TARGET, messages=[{"role": "user", "content": needle.text}, {"role": "assistant", "content": "ok"}])
    archive = either.archive(TARGET, messages=[{"role": "user", "content": needle.text}])
    scene.memory.append(f"> {scene.said(needle.text)}\n")
    scene.doomed_chunk(needle.text)
    either.short_term("gone:e", f"sessions/main/{TARGET} {needle.text}")
    scene.seal()
    forget(either.state, sessions=[TARGET])

    hits = scan([either.root], [needle])
    published = str(either.state / "agents/main/sessions" / archive)
    assert {hit.file for hit in hits} == {str(either.agent_db), published}
    data = either.agent_db.read_bytes()
    places = occurrences(data, needle.words[0].encode())
    db: Any = apsw.Connection(str(either.agent_db), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        kept = [
            *(row[0] for row in db.execute("SELECT event_json FROM transcript_events")),
            *(bytes(row[0]).decode() for row in db.execute("SELECT archive_blob FROM session_transcript_archives")),
        ]
        own = {
            row[0]
            for row in db.execute(
                "SELECT pageno FROM dbstat WHERE name IN ('transcript_events', 'session_transcript_archives')"
            )
        }
        size = db.pragma("page_size")
    finally:
        db.close()
    assert len(places) == sum(text.count(needle.words[0]) for text in kept) == 2
    assert {place // size + 1 for place in places} <= own
    assert needle.text in [json.loads(text).get("message", {}).get("content") for text in kept[:-1]]
