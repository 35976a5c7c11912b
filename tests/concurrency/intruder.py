"""Another program with the same databases: a process of its own, which does one thing at a time when it is told to.

Its SQLite is that of the package apsw; no two SQLite libraries may be in one process on the same file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO, Any

from state_maker import StateMaker

PROGRAM = """
import hashlib, json, sys, threading, time
import apsw

agent_path, state_path = sys.argv[1:3]
held, threads, stop = [], [], threading.Event()
counted = {"written": 0, "refused": 0, "busy": 0, "read": 0}

def connect(path):
    db = apsw.Connection(path)
    db.set_busy_timeout(15000)
    db.execute("PRAGMA foreign_keys = ON")
    return db

def revision():
    db = connect(agent_path)
    try:
        return db.execute("SELECT revision FROM memory_index_state WHERE id = 1").fetchone()[0]
    finally:
        db.close()

def is_buried(db, session):
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'memory_session_tombstones'").fetchone():
        return False
    return bool(db.execute("SELECT 1 FROM memory_session_tombstones WHERE session_id = ?", (session,)).fetchone())

def insert(db, text, path, source, number):
    digest = hashlib.sha256(text.encode()).hexdigest()
    name = hashlib.sha256(f"{source}:{path}:{number}:{number}:{digest}:fts-only".encode()).hexdigest()
    db.execute("INSERT OR IGNORE INTO memory_index_sources (path, source, hash, mtime, size) VALUES (?, ?, '', 1, 1)",
               (path, source))
    db.execute("INSERT OR IGNORE INTO memory_index_chunks (id, path, source, start_line, end_line, hash, model, text, "
               "embedding, updated_at) VALUES (?, ?, ?, ?, ?, ?, 'fts-only', ?, x'', 1)",
               (name, path, source, number, number, digest, text))
    db.execute("INSERT OR IGNORE INTO memory_embedding_cache VALUES ('openai', 'fts-only', 'k', ?, zeroblob(32), 4, 1)",
               (digest,))

def publish(text, path, source="memory", number=1, seen=None, session=None):
    "One chunk in one transaction. `seen`: the revision at which the text was read; `session`: whose text it is."
    db = connect(agent_path)
    try:
        db.execute("BEGIN IMMEDIATE")
        now = db.execute("SELECT revision FROM memory_index_state WHERE id = 1").fetchone()[0]
        if (seen is not None and now != seen) or (session is not None and is_buried(db, session)):
            db.execute("ROLLBACK")
            return "discarded"
        insert(db, text, path, source, number)
        db.execute("COMMIT")
        return "published"
    finally:
        db.close()

def origin(key, session):
    db = connect(agent_path)
    try:
        db.execute("INSERT OR IGNORE INTO memory_entry_origins VALUES (?, 'main', ?, NULL, 'owner', 1)", (key, session))
    finally:
        db.close()

def rows(where, statement, values):
    db = connect(agent_path if where == "agent" else state_path)
    try:
        return [list(row) for row in db.execute(statement, values)]
    finally:
        db.close()

def hold(where, statement):
    "Leaves a transaction open."
    db = connect(agent_path if where == "agent" else state_path)
    db.execute("BEGIN")
    db.execute(statement).fetchall()
    held.append(db)

def release():
    while held:
        held.pop().close()

def keep_writing(pause, text, path):
    "Publishes one chunk after another, and deletes the oldest."
    def work():
        db, number = connect(agent_path), 0
        while not stop.is_set():
            number += 1
            try:
                db.execute("BEGIN IMMEDIATE")
                insert(db, f"{number} {text}", path, "memory", number)
                db.execute("DELETE FROM memory_index_chunks WHERE path = ? AND start_line <= ?", (path, number - 50))
                db.execute("COMMIT")
                counted["written"] += 1
            except apsw.BusyError:
                counted["busy"] += 1
                if not db.getautocommit():
                    db.execute("ROLLBACK")
            time.sleep(pause)
        db.close()
    threads.append(threading.Thread(target=work))
    threads[-1].start()

def keep_reading(pause, length):
    "Opens one read transaction after another on both databases."
    def work(path):
        db = connect(path)
        while not stop.is_set():
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM sqlite_master").fetchall()
            time.sleep(length)
            db.execute("COMMIT")
            counted["read"] += 1
            time.sleep(pause)
        db.close()
    for path in (agent_path, state_path):
        threads.append(threading.Thread(target=work, args=(path,)))
        threads[-1].start()

def finish():
    stop.set()
    for thread in threads:
        thread.join()
    threads.clear()
    stop.clear()
    return dict(counted)

CALLS = {each.__name__: each for each in
         (revision, publish, origin, rows, hold, release, keep_writing, keep_reading, finish)}
print("ready", flush=True)
for line in sys.stdin:
    name, arguments = json.loads(line)
    try:
        answer = {"answer": CALLS[name](**arguments)}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
finish()
release()
"""


class Intruder:
    """The other end of its pipes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._to: IO[str] = process.stdin  # pyright: ignore[reportAttributeAccessIssue] -- both are pipes
        self._from: IO[str] = process.stdout  # pyright: ignore[reportAttributeAccessIssue]
        assert self._from.readline() == "ready\n"

    def __call__(self, name: str, **arguments: Any) -> Any:
        """Does one thing, see `PROGRAM`, and waits for it."""
        self._to.write(json.dumps([name, arguments]) + "\n")
        self._to.flush()
        answer = json.loads(self._from.readline())
        assert "error" not in answer, f"{name}: {answer['error']}"
        return answer["answer"]

    def kill(self) -> None:
        """Ends it without a warning."""
        self.process.kill()
        self.process.wait()


@contextmanager
def intruder(maker: StateMaker) -> Generator[Intruder]:
    """A program that has the databases of a state."""
    command = [sys.executable, "-c", PROGRAM, str(maker.agent_db), str(maker.state_db)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Intruder(process)
        finally:
            if process.poll() is None:
                process.communicate(timeout=60)
