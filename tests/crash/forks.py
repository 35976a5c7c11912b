"""Runs of the command line as forks of one process that has imported it: hundreds of them in a minute."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from conftest import CommandLine

SERVER = """
import ctypes, json, os, signal, sys, time, traceback
import cenotaph.forget.apply, cenotaph.memory
from cenotaph.cli import main

shim = ctypes.CDLL(sys.argv[1]) if sys.argv[1] else None

def run(ask):
    signal.alarm(100)
    for number, path in enumerate(ask["outputs"], 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    os.environ.update(ask["environment"])
    sys.argv = ["cenotaph", *ask["arguments"]]
    if shim:
        fault = ask["fault"]
        root, log = fault["root"].encode(), fault["log"].encode()
        shim.fault_arm(root, ctypes.c_long(fault["at"]), fault["errno"], int(fault["sticky"]), log)
    status = 70
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

for line in sys.stdin:
    ask = json.loads(line)
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        run(ask)
    ended = 0
    while ask["kill"] is not None and not ended and time.monotonic() - start < ask["kill"]:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0 if ended else 0.0005)
    if not ended:
        if ask["kill"] is not None:
            os.kill(child, signal.SIGKILL)
        ended, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), time.monotonic() - start, flush=True)
"""


@dataclass
class Ended:
    """How a run ended. `status` is negative for a signal."""

    status: int
    out: str
    err: str
    seconds: float = 0.0


class Forks:
    """The server, its outputs, and the file to which a log can go."""

    def __init__(self, server: subprocess.Popen[str], folder: Path) -> None:
        self._server = server
        self._outputs = [folder / "out", folder / "err"]
        self.log = folder / "log"

    def __call__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        fault: Mapping[str, Any] | None = None,
        kill: float | None = None,
    ) -> Ended:
        """One run. `kill`: seconds after which it gets SIGKILL. `fault`: what `fault.c` is armed with."""
        ask = {
            "arguments": arguments, "environment": dict(env or {}), "fault": fault, "kill": kill,
            "outputs": [str(path) for path in self._outputs],
        }  # fmt: skip
        stdin, stdout = pipes(self._server)
        stdin.write(json.dumps(ask) + "\n")
        stdin.flush()
        status, seconds = stdout.readline().split()
        out, err = (path.read_text() for path in self._outputs)
        return Ended(int(status), out, err, float(seconds))

    def logged(self) -> list[str]:
        """Lines of the log."""
        return self.log.read_text().splitlines() if self.log.exists() else []


def pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    """Both ends that we hold."""
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


@contextmanager
def forks(cli: CommandLine, folder: Path, shim: Path | None = None) -> Generator[Forks]:
    """A server of runs, with a library in it if one is given."""
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(shim or "")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=cli.environment({"LD_PRELOAD": str(shim)} if shim else None),
    ) as server:  # fmt: skip
        try:
            yield Forks(server, folder)
        finally:
            pipes(server)[0].close()
            server.wait(30)
