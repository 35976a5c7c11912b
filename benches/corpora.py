"""Seeded inputs for the benchmarks: never checked in, always the same."""

from __future__ import annotations

import json
import random
import sqlite3
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SYLLABLES = ["ka", "lo", "mi", "ren", "ta", "vo", "shi", "pu", "der", "an", "gra", "el", "os", "ine", "quo", "bar"]


def words(rng: random.Random, count: int) -> str:
    """`count` made-up words."""
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(count))


def corpus_file(path: Path, megabytes: int, sessions: int, seed: int = 7) -> list[str]:
    """Writes a corpus file of about `megabytes`; the session ids in it."""
    rng = random.Random(seed)
    ids = [f"{rng.getrandbits(128):032x}" for _ in range(sessions)]
    lines = [f"[main/sessions/main/{rng.choice(ids)}#L{n}] User: {words(rng, 12)}\n" for n in range(20_000)]
    block = "".join(lines).encode()
    with path.open("wb") as out:
        for _ in range(max(1, megabytes * 1_000_000 // len(block))):
            out.write(block)
    return ids


def snippets(count: int, seed: int = 11) -> list[str]:
    """`count` distinct snippets of 24 to 150 bytes, of the same words as the notes and in none of them."""
    rng = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        found[rng.choice(["User: ", "Assistant: "]) + words(rng, rng.randint(4, 12))] = None
    return [snippet for snippet in found if len(snippet) >= 24][:count]


def notes(folder: Path, megabytes: int, needles: list[str], seed: int = 13) -> None:
    """Writes a workspace of daily notes of about `megabytes`; one line in 2,000 quotes a needle."""
    rng = random.Random(seed)
    labels = ["User: ", "Assistant: ", "", ""]
    pool = [rng.choice(labels) + words(rng, rng.randint(5, 20)) for _ in range(5_000)]
    written, number = 0, 0
    folder.mkdir(parents=True, exist_ok=True)
    while written < megabytes * 1_000_000:
        lines = [f"- {rng.choice(pool)}\n" for _ in range(12_000)]
        for at in range(0, len(lines), 2_000):
            lines[at] = f"> {rng.choice(needles)}\n"
        text = f"# Note {number}\n\n" + "".join(lines)
        (folder / f"note-{number:05d}.md").write_text(text, encoding="utf-8")
        written, number = written + len(text.encode()), number + 1


def state(folder: Path, megabytes: int, needles: list[str], seed: int = 17) -> None:
    """Writes what a state directory holds, about `megabytes`: half of it notes, half of it one SQLite database.

    The transcripts in the database quote a needle in one event of 2,000, the index does not.
    """
    notes(folder / "workspace" / "memory", megabytes // 2, needles)
    rng = random.Random(seed)
    pool = [words(rng, rng.randint(20, 200)) for _ in range(2_000)]
    vectors = [rng.randbytes(1_536) for _ in range(200)]
    conn = sqlite3.connect(folder / "openclaw-agent.sqlite")
    conn.execute("CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT)")
    conn.execute("CREATE TABLE memory_index_chunks (id TEXT PRIMARY KEY, text TEXT, embedding BLOB)")
    written, seq = 0, 0
    while written < megabytes * 1_000_000 // 2:
        said = rng.choice(needles) if seq % 2_000 == 0 else rng.choice(pool)
        event = json.dumps({"type": "message", "message": {"role": "user", "content": said}})
        conn.execute("INSERT INTO transcript_events VALUES (?, ?, ?)", (f"session-{seq // 100}", seq, event))
        chunk = (f"{rng.getrandbits(128):032x}", rng.choice(pool), rng.choice(vectors))
        conn.execute("INSERT INTO memory_index_chunks VALUES (?, ?, ?)", chunk)
        written, seq = written + len(event) + len(chunk[1]) + 1_700, seq + 1
    conn.commit()
    conn.close()


def careless(path: Path, auto_vacuum: int, rows: int = 200_000) -> None:
    """Fills a database and deletes a tenth of it without `secure_delete`, so that old text lies in free pages."""
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("PRAGMA secure_delete = OFF")
    conn.execute(f"PRAGMA auto_vacuum = {auto_vacuum}")
    conn.execute("VACUUM")
    conn.execute("CREATE TABLE filler (id INTEGER PRIMARY KEY, text TEXT)")
    conn.execute("BEGIN")
    said = "the careless secret " * 20
    conn.executemany("INSERT INTO filler (text) VALUES (?)", ((f"{row} {said}",) for row in range(rows)))
    conn.execute("COMMIT")
    conn.execute("DELETE FROM filler WHERE id <= ?", (rows // 10,))
    conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    conn.close()
