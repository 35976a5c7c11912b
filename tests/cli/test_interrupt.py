"""Ctrl-C ends a long run at once, with nothing half done, and the same command finishes it."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from conftest import CommandLine
from scene import SECRET, TARGET, play, state_rows
from state_maker import StateMaker

FILLER = b"- the lathe belt is rotated every two weeks, says the note of the day\n"


@pytest.mark.slow
def test_ctrl_c_ends_a_long_scan_and_a_rerun_finishes(maker: StateMaker, cli: CommandLine) -> None:
    play(maker).seal()
    large = FILLER * (30_000_000 // len(FILLER))
    for number in range(40):
        maker.file(f"memory/note-{number:03d}.md", large)
    maker.file("memory/zz.md", f"> {SECRET}\nkept\n")
    command = [*cli.command, "--state-dir", str(maker.state), "forget", "--session", TARGET]
    child = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=cli.environment(),
        # A shell that runs the tests in the background has children ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 -- one thread
    )
    while not state_rows(maker, "SELECT 1 FROM plugin_state_entries WHERE namespace = 'short-term-locks'"):
        assert child.poll() is None, "the run ended before it could be interrupted"
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGINT)
    begun = time.monotonic()
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert b"Interrupted. Run the same command again to finish." in err
    assert time.monotonic() - begun < 5
    assert not state_rows(maker, "SELECT 1 FROM plugin_state_entries WHERE namespace = 'short-term-locks'")
    assert cli.forget(maker.state, "--session", TARGET)["pending"] == []
    assert maker.read("memory/zz.md") == b"kept\n"
