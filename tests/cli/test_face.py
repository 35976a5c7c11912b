"""What the command line shows: labels, JSON, exit status, and silence on a pipe."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import time

from conftest import CommandLine
from scene import SECRET, TARGET, own, play
from state_maker import StateMaker, marker

WHOLE = "Matches select whole sessions across identity namespaces."
LABELS = f"""\
Memory Deletion Preview (main)
Source sessions: 2
Source transcripts retained: 2
Deleted entries: 1
Mixed-lineage entries deleted whole: 1
Entries without targetable provenance: 1
Curated writes retained: 1
Memory artifacts: 2 files, 1 entries, 1 quoted lines
Session corpus: 1 files, 1 lines
Index artifacts: 0 chunks, 0 sources, 0 full-text rows, 0 vector rows, 0 cached embeddings
Plugin state: 0 short-term entries, 0 seen-hash scopes, 0 backups
Origin rows: 2
Session IDs: nobody, s-target
Session resolution: nobody (unresolved)
Session resolution: s-target (live)
Raw participant selector: anna: {{"type":"profile","id":"anna"}}. {WHOLE}
Raw participant selector: zoe: no live match. {WHOLE}
Mixed-lineage entry keys: gone:e
Untargetable entry keys: stray:k
Curated write retained: memory/by-hand.md (2026-11-20T09:00:00.000Z)
Dry run: no memory files, index rows, or plugin state were changed.
"""


def scene(maker: StateMaker) -> StateMaker:
    text = f"{marker('gone:e')}\n- entry\n{marker('stray:k')}\n- stray\n"
    play(maker, {"MEMORY.md": text, "DREAMS.md": f"> {SECRET}\n"})
    maker.session(TARGET, participants=[({"type": "profile"}, "anna")])
    own(own(maker, ["gone:e"]), ["gone:e"], "s-survivor")
    maker.observed("memory/by-hand.md", TARGET, at=1_795_165_200_000)
    return maker.seal()


SELECTION = ("--session", "nobody", "--participant", "anna", "--participant", "zoe")


def test_the_labels_for_people(maker: StateMaker, cli: CommandLine) -> None:
    done = cli(scene(maker).state, "forget", *SELECTION, "--dry-run")
    assert (done.status, done.err) == (0, "")
    assert done.out == LABELS


def test_the_library_gives_what_the_command_line_prints(maker: StateMaker, cli: CommandLine) -> None:
    import cenotaph

    scene(maker)
    printed = cli.forget(maker.state, *SELECTION, "--dry-run")
    with cenotaph.open(maker.state, agent="main") as memory:
        report = memory.forget(sessions=["nobody"], participants=["anna", "zoe"], dry_run=True)
    assert report.model_dump(by_alias=True) == printed
    assert "sessionKey" not in printed["sessionResolutions"][0]
    assert report.exit_status == 0


def test_fields_come_in_the_order_of_the_memory_command(maker: StateMaker, cli: CommandLine) -> None:
    names = list(cli.forget(scene(maker).state, "--session", TARGET, "--dry-run"))
    assert names[:11] == [
        "agentId",
        "dryRun",
        "sessionIds",
        "participantMatches",
        "sessionResolutions",
        "entryKeys",
        "mixedLineageEntryKeys",
        "untargetableEntryKeys",
        "curatedWrites",
        "artifacts",
        "refusals",
    ]


def test_an_error_with_json_is_json_on_stdout_and_words_on_stderr(maker: StateMaker, cli: CommandLine) -> None:
    done = cli(scene(maker).state, "forget", "--session", TARGET, "--since", "soon", "--json")
    message = "Memory forget failed: Invalid memory session date: soon"
    assert done.status == 1
    assert json.loads(done.out) == {"ok": False, "error": {"type": "cli_error", "message": message}}
    assert done.err == f"[cenotaph] The CLI command failed.\n[cenotaph] Reason: {message}\n"


def test_an_unknown_option_is_wrong_usage(maker: StateMaker, cli: CommandLine) -> None:
    assert cli(scene(maker).state, "forget", "--sesion", TARGET).status == 2


def test_progress_is_for_terminals(maker: StateMaker, cli: CommandLine) -> None:
    """Work of over a second shows its step on a terminal; here it waits ten seconds for a lock that we hold."""
    play(maker)
    maker.locked_by(f"{os.getpid()}:00000000-0000-4000-8000-000000000000", int(time.time() * 1000))
    maker.seal()
    leader, follower = pty.openpty()
    command = [*cli.command, "--state-dir", str(maker.state), "forget", "--session", TARGET]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=follower, env=cli.environment())
    os.close(follower)
    shown = b""
    try:
        while part := os.read(leader, 4096):
            shown += part
    except OSError:  # the last writer is gone
        pass
    os.close(leader)
    assert child.wait() == 1
    assert b"Waiting for the workspace lock" in shown
    assert b"Timed out waiting for memory workspace lock" in shown
