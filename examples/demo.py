"""Makes a small native state directory, previews a purge, applies it, and checks every byte.

    python examples/demo.py [DIR]

Two sessions talked: Ada, who mailed an invoice, and the owner, who likes coffee without sugar. Both were remembered:
as corpus lines, as entries of MEMORY.md, as a quotation in the diary, in the index, in staging and in a backup. Then
Ada asks to be forgotten.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

T0 = 1_795_165_200_000  # 2026-11-20T09:00:00Z
ADA = "5e551000-0000-4000-8000-000000000001"
OWNER = "5e551000-0000-4000-8000-000000000002"
FACT = "User: Brightwater invoice 4411 is due on Friday the 27th"
COFFEE = "User: I always take my coffee without sugar these days"
DAY = "memory/.dreams/session-corpus/2026-11-20.txt"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def entry_key(snippet: str) -> str:
    return "memory:claim:" + hashlib.sha1(snippet.encode(), usedforsecurity=False).hexdigest()[:12]


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def cenotaph(state: Path, *words: str, show: bool = True) -> str:
    command = [sys.executable, "-m", "cenotaph", "--state-dir", str(state), *words]
    if show:
        print(f"\n$ cenotaph --state-dir {state} {' '.join(words)}", flush=True)
    done = subprocess.run(command, text=True, capture_output=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    if show:
        print(done.stdout, end="", flush=True)
    return done.stdout


def write_workspace(workspace: Path) -> dict[str, str]:
    promoted = [(FACT, "Brightwater invoice 4411 falls on Friday the 27th."), (COFFEE, "Coffee without sugar.")]
    entries = [f"<!-- openclaw-memory-promotion:{entry_key(said)} -->\n- {text}" for said, text in promoted]
    files = {
        "MEMORY.md": "# Long-Term Memory\n\n" + "\n".join(entries) + "\n- Written by hand: the office closes at six.\n",
        "DREAMS.md": f"# Dream Diary\n\nA letter said: {FACT} and a comet passed.\nThe kettle sang.\n",
        DAY: f"[main/sessions/main/{ADA}#L2] {FACT}\n[main/sessions/main/{OWNER}#L2] {COFFEE}\n",
    }
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return files


def write_sessions(database: sqlite3.Connection) -> None:
    for session_id, key, source, said in (
        (ADA, "agent:main:hook:gmail:ada", "gmail", FACT),
        (OWNER, "agent:main:main", None, COFFEE),
    ):
        entry = {"sessionId": session_id, "updatedAt": T0} | ({"hookExternalContentSource": source} if source else {})
        database.execute(
            "INSERT INTO session_nodes(session_key, current_session_id, entry_json, entry_valid, updated_at) "
            "VALUES (?, ?, ?, 1, ?)",
            (key, session_id, compact(entry), T0),
        )
        database.execute(
            "INSERT INTO session_windows(session_id, session_key, created_at, updated_at, transcript_updated_at, "
            "session_entry_provenance, hook_external_content_source) VALUES (?, ?, ?, ?, ?, 1, ?)",
            (session_id, key, T0, T0, T0, source),
        )
        message = {"role": "user", "content": said.removeprefix("User: "), "timestamp": T0 + 1000}
        for seq, event in enumerate(
            ({"type": "session", "version": 4, "id": session_id}, {"type": "message", "id": "m1", "message": message})
        ):
            database.execute(
                "INSERT INTO transcript_events(session_id, seq, event_json, created_at) VALUES (?, ?, ?, ?)",
                (session_id, seq, compact(event), T0),
            )
        database.execute(
            "INSERT INTO memory_entry_origins VALUES (?, 'main', ?, ?, 'untrusted', ?)",
            (entry_key(said), session_id, key, T0),
        )


def write_index(database: sqlite3.Connection, files: dict[str, str]) -> None:
    for name, text in files.items():
        if not name.endswith(".md"):
            continue
        database.execute(
            "INSERT INTO memory_index_sources(path, source, hash, mtime, size) VALUES (?, 'memory', ?, ?, ?)",
            (name, sha256(text), float(T0), len(text.encode())),
        )
        end = text.count("\n")
        chunk = sha256(f"memory:{name}:1:{end}:{sha256(text)}:fts-only")
        database.execute(
            "INSERT INTO memory_index_chunks(id, path, source, start_line, end_line, hash, model, text, embedding, "
            "updated_at) VALUES (?, ?, 'memory', 1, ?, ?, 'fts-only', ?, x'', ?)",
            (chunk, name, end, sha256(text), text, T0),
        )


def write_plugin_state(database: sqlite3.Connection, workspace: Path, files: dict[str, str]) -> None:
    owner = sha256(str(workspace))

    def put(namespace: str, key: str, value: object) -> None:
        record = {"version": 1, "workspaceKey": owner, "workspaceDir": str(workspace), "key": key, "value": value}
        database.execute(
            "INSERT INTO plugin_state_entries VALUES ('memory-core', ?, ?, ?, ?, NULL)",
            (namespace, f"{owner}:{sha256(key)}", compact(record), T0),
        )

    for session_id, said in ((ADA, FACT), (OWNER, COFFEE)):
        key = entry_key(said)
        put("short-term-recall", key, {"key": key, "path": DAY, "startLine": 1, "endLine": 1, "snippet": said})
        scope = f"main:sessions/main/{session_id}"
        put(
            "dreaming-session-ingestion-seen", f"{scope}:0", {"scope": scope, "index": 0, "hashes": [sha256(said)[:40]]}
        )
    content = files["MEMORY.md"]
    made = "2026-11-20T09:00:00.000Z"
    backup = {"createdAt": made, "content": content, "contentHash": sha256(content)}
    put("dreaming-memory-backups", f"{made}:{sha256(content)[:12]}", backup)


def make(state: Path) -> None:
    cenotaph(state, "init")
    workspace = state / "workspace"
    files = write_workspace(workspace)
    agent = sqlite3.connect(state / "agents/main/agent/openclaw-agent.sqlite")
    with agent:
        write_sessions(agent)
        write_index(agent, files)
    agent.close()
    shared = sqlite3.connect(state / "state/openclaw.sqlite")
    with shared:
        write_plugin_state(shared, workspace, files)
    shared.close()


def kept_transcript(state: Path) -> int:
    """How often the fact stands in the transcript, which is kept by design."""
    database = sqlite3.connect(state / "agents/main/agent/openclaw-agent.sqlite")
    (count,) = database.execute(
        "SELECT count(*) FROM transcript_events WHERE event_json LIKE '%Brightwater%'"
    ).fetchone()
    database.close()
    return count


def find_bytes(state: Path) -> list[tuple[str, int]]:
    needle = b"Brightwater"
    found = ((path, path.read_bytes().count(needle)) for path in sorted(state.rglob("*")) if path.is_file())
    return [(str(path.relative_to(state)), count) for path, count in found if count]


def show_bytes(state: Path, title: str) -> int:
    print(f"\n{title}")
    places = find_bytes(state)
    for name, count in places:
        print(f"  {count:3} x  {name}")
    return sum(count for _, count in places)


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="cenotaph-demo-"))
    state = root.resolve()
    print(f"A state directory with two sessions, at {state}")
    make(state)
    print("\nMEMORY.md before:\n" + (state / "workspace/MEMORY.md").read_text(encoding="utf-8"))
    show_bytes(state, "Where the word of Ada's session stands, in bytes of every file:")
    cenotaph(state, "forget", "--hook-source", "gmail", "--dry-run")
    cenotaph(state, "forget", "--hook-source", "gmail")
    print("\nMEMORY.md after:\n" + (state / "workspace/MEMORY.md").read_text(encoding="utf-8"))
    left = show_bytes(state, "Where the word stands now:")
    kept = kept_transcript(state)
    print(f"  of these, {kept} in the session's own transcript, which forget keeps by design")
    if left != kept:
        sys.exit("CHECK FAILED: the word stands somewhere else")
    again = json.loads(cenotaph(state, "forget", "--hook-source", "gmail", "--dry-run", "--json", show=False))
    if any(again["artifacts"].values()):
        sys.exit(f"CHECK FAILED: a second run would still remove something: {again['artifacts']}")
    print("\nChecked: no byte of it outside the transcript, and a second run finds nothing to do.")


if __name__ == "__main__":
    main()
