"""Bad input: a message that says what to do, the right exit status, and nothing changed.

Exit status: 1 error, 2 wrong usage, 3 incomplete. With --json the error stands on stdout as JSON, and for people on
stderr in any case.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import CommandLine, Done, PlainUser
from scene import SECRET, TARGET, origin_keys, own, play
from state_maker import StateMaker, database, files_holding, marker, octet_length, snapshot

UUID = "0b2b7a4e-7a0f-4f0e-9d5c-1d2f3a4b5c6d"
ENTRY = f"{marker('gone:e')}\n- entry\nkept\n> {SECRET}\n"


def scene(maker: StateMaker) -> StateMaker:
    """Something that a purge would remove from files, index and plugin state."""
    own(play(maker, {"MEMORY.md": ENTRY}), ["gone:e"])
    maker.short_term("gone:e", "some words")
    maker.source("MEMORY.md")
    maker.chunk("MEMORY.md", f"> {SECRET}", cached=True)
    return maker.seal()


def fails(done: Done, message: str, status: int = 1) -> None:
    """An error as every command reports it."""
    assert done.status == status, f"exit {done.status}: {done.out} {done.err}"
    printed = json.loads(done.out)
    assert printed["ok"] is False
    assert printed["error"]["type"] == "cli_error"
    assert re.search(message, printed["error"]["message"]), printed["error"]["message"]
    assert "[cenotaph]" in done.err
    assert re.search(message, done.err), done.err
    assert "Traceback" not in done.err


def refused(cli: CommandLine, maker: StateMaker, message: str, *flags: str, previews: bool = True) -> None:
    """The same error from purge and preview, and a directory that is the same to the byte."""
    before = snapshot(maker.root)
    arguments = flags or ("--agent", "main", "--session", TARGET)
    for more in ([], ["--dry-run"]) if previews else ([],):
        fails(cli(maker.state, "forget", *arguments, *more, "--json"), message)
        assert snapshot(maker.root) == before


# -- selectors --------------------------------------------------------------------------------
MISSING = (
    r"^(\[cenotaph\] .*\n.*)?Memory forget requires --session <id-or-key>, --hook-source <source>, "
    r"or --participant <actor-id>\."
)
SELECTORS: dict[str, tuple[str, list[str]]] = {
    "none": (MISSING, ["--agent", "main"]),
    "only a date": (MISSING, ["--agent", "main", "--since", "2026-11-01"]),
    "empty session": ("must not be blank", ["--session", ""]),
    "blank session": ("must not be blank", ["--session", "  "]),
    "blank hook source": ("must not be blank", ["--hook-source", " "]),
    "blank participant": ("must not be blank", ["--participant", "\t"]),
    "one blank among others": ("must not be blank", ["--session", TARGET, "--session", ""]),
    "word for a date": ("Invalid memory session date: yesterday", ["--session", TARGET, "--since", "yesterday"]),
    "digits for a date": (
        "Invalid memory session date: 1787745600001", ["--session", TARGET, "--since", "1787745600001"]
    ),
    "no such day": ("Invalid memory session date: 2026-13-40", ["--session", TARGET, "--since", "2026-13-40"]),
    "blank date": ("Invalid memory session date:", ["--session", TARGET, "--since", " "]),
    "unknown agent": ('Unknown agent id "nosuch"', ["--agent", "nosuch", "--session", TARGET]),
    "blank agent": ("--agent must not be blank", ["--agent", " ", "--session", TARGET]),
}  # fmt: skip


@pytest.mark.parametrize(("message", "flags"), SELECTORS.values(), ids=SELECTORS.keys())
def test_selectors_that_select_nothing_are_errors(
    cli: CommandLine, maker: StateMaker, message: str, flags: list[str]
) -> None:
    refused(cli, scene(maker), message, *flags)


@pytest.mark.parametrize(
    "arguments",
    [["forget", "--sesion", TARGET], ["forget", "--session"], ["forget", TARGET], ["forgive"], ["--state-dir"]],
    ids=["misspelt option", "option without value", "stray word", "unknown command", "no directory"],
)
def test_wrong_usage_is_status_2(cli: CommandLine, maker: StateMaker, arguments: list[str]) -> None:
    scene(maker)
    before = snapshot(maker.root)
    done = cli(maker.state, *arguments)
    assert done.status == 2
    assert done.err
    assert "Traceback" not in done.err
    assert snapshot(maker.root) == before


def test_the_error_for_people_needs_no_json(cli: CommandLine, maker: StateMaker) -> None:
    done = cli(scene(maker).state, "forget", "--agent", "nosuch", "--session", TARGET)
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("[cenotaph] The CLI command failed.\n[cenotaph] Reason: Memory forget failed: Unknown ")


# -- databases --------------------------------------------------------------------------------
def not_a_database(maker: StateMaker) -> None:
    maker.agent_db.write_bytes(b"this is a text file, and a rather long one at that\n" * 400)


def truncated(maker: StateMaker) -> None:
    content = maker.agent_db.read_bytes()
    maker.agent_db.write_bytes(content[: len(content) // 2 // 4096 * 4096])


def cut_in_the_header(maker: StateMaker) -> None:
    maker.agent_db.write_bytes(maker.agent_db.read_bytes()[:60])


def version(number: int) -> Callable[[StateMaker], None]:
    def change(maker: StateMaker) -> None:
        with database(maker.agent_db) as db:
            db.execute(f"PRAGMA user_version = {number}")
            if not maker.native:
                db.execute("UPDATE schema_meta SET schema_version = ?", (number,))

    return change


def other_agent(maker: StateMaker) -> None:
    with database(maker.agent_db) as db:
        db.execute("UPDATE schema_meta SET agent_id = 'second' WHERE meta_key = 'primary'")


def other_role(maker: StateMaker) -> None:
    with database(maker.agent_db) as db:
        db.execute("UPDATE schema_meta SET role = 'global' WHERE meta_key = 'primary'")


def folder_for_a_database(maker: StateMaker) -> None:
    maker.agent_db.unlink()
    maker.agent_db.mkdir()


DATABASES: dict[str, tuple[str, Callable[[StateMaker], None]]] = {
    "not SQLite": (r"openclaw-agent\.sqlite.*not a database|not a database.*openclaw-agent\.sqlite", not_a_database),
    "truncated": (r"openclaw-agent\.sqlite", truncated),
    "cut in the header": (r"openclaw-agent\.sqlite", cut_in_the_header),
    "newer": (r"openclaw-agent\.sqlite.*\b99\b|\b99\b.*openclaw-agent\.sqlite", version(99)),
    "folder": (r"openclaw-agent\.sqlite", folder_for_a_database),
}
HOST_DATABASES: dict[str, tuple[str, Callable[[StateMaker], None]]] = {
    "next version": (r"\b24\b.*\b23\b|\b23\b.*\b24\b", version(24)),
    "older": (r"\b22\b.*\b23\b|\b23\b.*\b22\b", version(22)),
    "much older": (r"\b16\b.*\b23\b|\b23\b.*\b16\b", version(16)),
    "of another agent": ("second", other_agent),
    "of another role": ("global", other_role),
}


@pytest.mark.parametrize(("message", "damage"), DATABASES.values(), ids=DATABASES.keys())
def test_databases_that_cannot_be_used(
    cli: CommandLine, either: StateMaker, message: str, damage: Callable[[StateMaker], None]
) -> None:
    damage(scene(either))
    refused(cli, either, message)


@pytest.mark.parametrize(("message", "damage"), HOST_DATABASES.values(), ids=HOST_DATABASES.keys())
def test_host_databases_that_are_not_ours_to_touch(
    cli: CommandLine, host_maker: StateMaker, message: str, damage: Callable[[StateMaker], None]
) -> None:
    damage(scene(host_maker))
    refused(cli, host_maker, message)


def test_a_shared_database_that_is_no_database(cli: CommandLine, either: StateMaker) -> None:
    scene(either).state_db.write_bytes(b"this is a text file, and a rather long one at that\n" * 400)
    refused(cli, either, r"openclaw\.sqlite")


# -- locks ------------------------------------------------------------------------------------
HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=5)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def held() -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """Holds a write transaction on a database in another process."""
    children: list[subprocess.Popen[str]] = []

    def hold(path: Path) -> subprocess.Popen[str]:
        child = subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True)  # fmt: skip
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        return child

    yield hold
    for child in children:
        child.communicate()


def rows_of(path: Path) -> list[str]:
    """All rows of a database: a lock that was taken and given back changes bytes, but no row."""
    db = sqlite3.connect(path)
    db.create_function("octet_length", 1, octet_length, deterministic=True)
    try:
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' "
                                               "AND sql NOT LIKE 'CREATE VIRTUAL%'")]  # fmt: skip
        return sorted(f"{table}: {row!r}" for table in tables for row in db.execute(f'SELECT * FROM "{table}"'))
    finally:
        db.close()


@pytest.mark.slow
@pytest.mark.parametrize("which", ["agent_db", "state_db"])
def test_a_database_that_another_process_holds(
    cli: CommandLine, either: StateMaker, held: Callable[[Path], subprocess.Popen[str]], which: str
) -> None:
    scene(either)
    paths: list[Path] = [either.agent_db, either.state_db]
    rows = [rows_of(path) for path in paths]
    files = snapshot(either.workspace)
    holder = held(getattr(either, which))
    start = time.monotonic()
    done = cli(either.state, "forget", "--agent", "main", "--session", TARGET, "--json")
    waited = time.monotonic() - start
    fails(done, str(holder.pid))
    assert 8 < waited < 30
    holder.communicate()
    assert [rows_of(path) for path in paths] == rows
    assert snapshot(either.workspace) == files
    cli.forget(either.state, "--session", TARGET)
    assert either.read("MEMORY.md") == b"kept\n"


def test_a_preview_does_not_wait_for_a_writer(
    cli: CommandLine, either: StateMaker, held: Callable[[Path], subprocess.Popen[str]]
) -> None:
    scene(either)
    held(either.agent_db)
    report = cli.forget(either.state, "--session", TARGET, "--dry-run", timeout=8)
    assert report["artifacts"]["memoryEntries"] == 1


@pytest.mark.slow
def test_a_workspace_that_a_living_process_has_locked(cli: CommandLine, either: StateMaker) -> None:
    owner = f"{os.getpid()}:{UUID}"
    either.locked_by(owner, int(time.time() * 1000))
    scene(either)
    files = snapshot(either.workspace)
    done = cli(either.state, "forget", "--agent", "main", "--session", TARGET, "--json")
    fails(done, f"Timed out waiting for memory workspace lock at plugin-state:memory-core/short-term-locks/"
                f"{either.workspace_key} \\(held by {re.escape(owner)}\\)")  # fmt: skip
    assert snapshot(either.workspace) == files
    assert origin_keys(either) == {"gone:e"}


# -- configuration ----------------------------------------------------------------------------
CONFIGS = {
    "no JSON": ("{ not: [json", r"openclaw\.json"),
    "a list": ("[]", r"openclaw\.json"),
    "a word that is not allowed": (
        json.dumps({"plugins": {"entries": {"memory-core": {"config": {"memoryPolicy": {"excludeSessions": {
            "chatTypes": ["bogus"]}}}}}}}),
        r"openclaw\.json.*chatTypes\.0.*direct.*group.*channel",
    ),
    "a name that is not known": (
        json.dumps({"plugins": {"entries": {"memory-core": {"config": {"memoryPolicy": {"excludeSessions": {
            "rooms": []}}}}}}}),
        r"rooms",
    ),
    "a word for a list": (
        json.dumps({"plugins": {"entries": {"memory-core": {"config": {"memoryPolicy": {"excludeSessions": {
            "channels": "slack"}}}}}}}),
        r"channels.*(array|list)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), CONFIGS.values(), ids=CONFIGS.keys())
def test_configurations_that_cannot_be_used(cli: CommandLine, maker: StateMaker, text: str, message: str) -> None:
    (scene(maker).state / "openclaw.json").write_text(text)
    refused(cli, maker, f"(?s){message}")


def test_a_configuration_that_is_a_folder(cli: CommandLine, maker: StateMaker) -> None:
    path = scene(maker).state / "openclaw.json"
    path.unlink()
    path.mkdir()
    refused(cli, maker, r"openclaw\.json")


# -- file systems -----------------------------------------------------------------------------
def on(disk: Path, request: pytest.FixtureRequest, kind: str) -> StateMaker:
    """A state directory on that file system."""
    if kind == "native":
        return StateMaker(disk / "place")
    shared: Path = request.getfixturevalue("shared")
    return StateMaker(disk / "place", shared / "oracle" / "template")


@pytest.mark.parametrize("kind", ["native", "host"])
def test_a_file_system_that_is_read_only(
    cli: CommandLine, small_disk: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    maker = scene(on(small_disk, request, kind))
    before = snapshot(maker.root)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    dry = cli.forget(maker.state, "--session", TARGET, "--dry-run")
    assert dry["artifacts"]["memoryEntries"] == 1
    done = cli(maker.state, "forget", "--agent", "main", "--session", TARGET, "--json")
    fails(done, r"(?i)read.?only|cannot be written")
    assert str(maker.root) in json.loads(done.out)["error"]["message"]
    assert snapshot(maker.root) == before


@pytest.mark.parametrize("room", [0, 40_000], ids=["none", "too little"])
def test_a_file_system_without_room(
    cli: CommandLine, small_disk: Path, request: pytest.FixtureRequest, room: int
) -> None:
    maker = on(small_disk, request, "native")
    maker.file("memory/large.md", f"{marker('gone:e')}\n- entry\n" + "a line that stays\n" * 120_000)
    scene(maker)
    filler = small_disk / "filler"
    free = shutil.disk_usage(small_disk).free
    filler.write_bytes(b"\0" * max(0, free - room))
    before = snapshot(maker.root)
    fails(cli(maker.state, "forget", "--agent", "main", "--session", TARGET, "--json"), r"(?i)free|no space|room")
    after = snapshot(maker.root)
    assert {n: e for n, e in after.items() if n.startswith("work")} == {
        name: entry for name, entry in before.items() if name.startswith("work")
    }
    assert origin_keys_elsewhere(maker, request) == {"gone:e"}
    filler.unlink()
    cli.forget(maker.state, "--session", TARGET)
    assert maker.read("MEMORY.md") == b"kept\n"


def origin_keys_elsewhere(maker: StateMaker, request: pytest.FixtureRequest) -> set[str]:
    """Origin rows of a database on a full disk, read from a copy on another one."""
    folder: Path = request.getfixturevalue("tmp_path") / "copy"
    folder.mkdir(exist_ok=True)
    for name in (maker.agent_db, Path(f"{maker.agent_db}-wal")):
        if name.exists():
            shutil.copy(name, folder / name.name)
    db = sqlite3.connect(folder / maker.agent_db.name)
    try:
        return {row[0] for row in db.execute("SELECT entry_key FROM memory_entry_origins")}
    finally:
        db.close()


def test_a_folder_that_cannot_be_read_is_named_and_the_rest_is_done(maker: StateMaker) -> None:
    plain = PlainUser()
    maker.file("memory/shut/secret.md", ENTRY)
    maker.file("memory/open.md", ENTRY)
    scene(maker)
    folder = maker.workspace / "memory" / "shut"
    folder.chmod(0)
    try:
        dry = plain.forget(maker.state, "--session", TARGET, "--dry-run", status=3)
        real = plain.forget(maker.state, "--session", TARGET, status=3)
    finally:
        folder.chmod(0o755)
    for report in (dry, real):
        assert any("memory/shut" in refusal for refusal in report["refusals"])
        assert any("memory/shut" in rest for rest in report["pending"])
    assert maker.read("memory/open.md") == b"kept\n"
    assert maker.read("memory/shut/secret.md").decode() == ENTRY
    assert origin_keys(maker) == {"gone:e"}
    assert files_holding(maker.workspace / "memory" / ".dreams", SECRET.encode()) != []
    again = plain.forget(maker.state, "--session", TARGET)
    assert again["artifacts"]["sessionCorpusLines"] == 1
    assert maker.read("memory/shut/secret.md") == b"kept\n"
    assert files_holding(maker.workspace, SECRET.encode()) == []
    assert origin_keys(maker) == set()


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_done(maker: StateMaker) -> None:
    plain = PlainUser()
    path = maker.file("memory/shut.md", ENTRY)
    scene(maker)
    path.chmod(0)
    report = plain.forget(maker.state, "--session", TARGET, status=3)
    path.chmod(0o644)
    assert any("memory/shut.md" in rest for rest in report["pending"])
    assert maker.read("MEMORY.md") == b"kept\n"
    assert origin_keys(maker) == {"gone:e"}


def test_a_folder_that_cannot_be_written_is_refused_before_anything_is(maker: StateMaker) -> None:
    plain = PlainUser()
    maker.file("memory/fixed/note.md", ENTRY)
    scene(maker)
    folder = maker.workspace / "memory" / "fixed"
    folder.chmod(0o555)
    before = snapshot(maker.workspace)
    done = plain(maker.state, "forget", "--agent", "main", "--session", TARGET, "--json")
    folder.chmod(0o755)
    fails(done, "memory/fixed")
    folder.chmod(0o555)
    assert snapshot(maker.workspace) == before
    folder.chmod(0o755)
    assert origin_keys(maker) == {"gone:e"}


# -- files that change under us ---------------------------------------------------------------
def test_a_file_that_became_a_folder_between_plan_and_apply(maker: StateMaker) -> None:
    import cenotaph

    maker.file("memory/note.md", ENTRY)
    scene(maker)
    path = maker.workspace / "memory" / "note.md"

    def swap(step: str) -> None:
        if step == "Rewriting memory files" and path.is_file():
            path.unlink()
            path.mkdir()
            (path / "inside.txt").write_text("of someone else\n")

    with cenotaph.open(maker.state, agent="main") as memory:
        report = memory.forget(sessions=[TARGET], on_step=swap)
    assert report.exit_status == 3
    assert any("memory/note.md" in rest for rest in report.pending)
    assert (path / "inside.txt").read_text() == "of someone else\n"
    assert origin_keys(maker) == {"gone:e"}
    shutil.rmtree(path)
    path.write_text(ENTRY)
    with cenotaph.open(maker.state, agent="main") as memory:
        assert memory.forget(sessions=[TARGET]).exit_status == 0
    assert path.read_bytes() == b"kept\n"
    assert origin_keys(maker) == set()


def test_a_file_that_grew_between_plan_and_apply_is_planned_again(maker: StateMaker) -> None:
    import cenotaph

    path = maker.file("memory/note.md", ENTRY)
    clean = maker.file("memory/clean.md", "nothing\n")
    scene(maker)
    done: list[str] = []

    def grow(step: str) -> None:
        if step == "Rewriting memory files" and not done:
            done.append(step)
            path.write_text(path.read_text() + f"late\n> {SECRET}\nlast\n")
            clean.write_text(f"nothing\n> {SECRET}\n")

    with cenotaph.open(maker.state, agent="main") as memory:
        report = memory.forget(sessions=[TARGET], on_step=grow)
    assert path.read_bytes() == b"kept\nlate\nlast\n"
    assert clean.read_bytes() == b"nothing\n"
    assert report.exit_status == 0
