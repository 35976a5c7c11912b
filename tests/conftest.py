"""Fixtures of all tests: where the oracle lies, how to run the command line, how to make a state."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parent
for folder in (TESTS, TESTS / "differential", TESTS / "residue", TESTS / "crash", TESTS / "concurrency"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))

from state_maker import StateMaker  # noqa: E402 -- found through the path above

CLEAN_ENVIRONMENT = (
    "CENOTAPH_STATE_DIR",
    "OPENCLAW_STATE_DIR",
    "OPENCLAW_CONFIG_PATH",
    "OPENCLAW_HOME",
    "OPENCLAW_PROFILE",
    "OPENCLAW_WORKSPACE_DIR",
    "CENOTAPH_CLOCK_MS",
)


def pytest_configure(config: pytest.Config) -> None:
    """Names the markers."""
    config.addinivalue_line("markers", "slow: takes over ten seconds; runs by default, deselect with -m 'not slow'")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the oracle, the cases and the specification; without it the test is skipped."""
    named = os.environ.get("CENOTAPH_SHARED")
    folder = Path(named) if named else TESTS.parent.parent / "shared"
    if not (folder / "oracle" / "compare.py").exists():
        pytest.skip("no oracle: set CENOTAPH_SHARED to the shared folder")
    return folder


@dataclass
class Done:
    """What a command printed and how it ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The printed JSON."""
        return json.loads(self.out)


class CommandLine:
    """Runs the command line of this checkout in a child process."""

    command = (sys.executable, "-m", "cenotaph")

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """The test's environment without the variables that choose a state directory."""
        kept = {name: value for name, value in os.environ.items() if name not in CLEAN_ENVIRONMENT}
        return {**kept, **(extra or {})}

    def __call__(
        self, state: Path | str, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 120
    ) -> Done:
        """Runs one command on a state directory."""
        done = subprocess.run(
            [*self.command, "--state-dir", str(state), *arguments],
            capture_output=True, text=True, timeout=timeout, check=False, env=self.environment(env),
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr)

    def forget(self, state: Path | str, *arguments: str, status: int = 0, timeout: float = 120) -> Any:
        """Runs `forget --json` and returns the report; any other exit status is a failure."""
        done = self(state, "forget", "--agent", "main", *arguments, "--json", timeout=timeout)
        assert done.status == status, f"exit {done.status}\n{done.out}\n{done.err}"
        return done.json


class PlainUser(CommandLine):
    """The command line under the file modes that hold for everyone: root without its power to pass them by."""

    def __init__(self) -> None:
        if os.geteuid() == 0:
            setpriv = shutil.which("setpriv")
            if setpriv is None:
                pytest.skip("needs setpriv to obey file modes as root")
            dropped = "-dac_override,-dac_read_search"
            prefix = (setpriv, f"--bounding-set={dropped}", f"--inh-caps={dropped}")
            self.command = (*prefix, *CommandLine.command)


@pytest.fixture(scope="session")
def cli() -> CommandLine:
    """The command line."""
    return CommandLine()


@pytest.fixture
def maker(tmp_path: Path) -> StateMaker:
    """A native state directory to fill."""
    return StateMaker(tmp_path / "place")


@pytest.fixture
def host_maker(tmp_path: Path, shared: Path) -> StateMaker:
    """A state directory of the host, made from the oracle's template."""
    return StateMaker(tmp_path / "host", shared / "oracle" / "template")


@pytest.fixture(params=["native", "host"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> StateMaker:
    """Both kinds of state directory, one after the other; the host's only with the oracle at hand."""
    if request.param == "native":
        return StateMaker(tmp_path / "native")
    folder: Path = request.getfixturevalue("shared")
    return StateMaker(tmp_path / "host", folder / "oracle" / "template")


@pytest.fixture
def forget() -> Callable[..., dict[str, Any]]:
    """The library's `forget`, with the report as the command line prints it."""

    def run(state: Path, **wish: Any) -> dict[str, Any]:
        import cenotaph

        with cenotaph.open(state, agent="main") as memory:
            report = memory.forget(**wish)
        return report.model_dump(by_alias=True, mode="json")

    return run


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MB of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=24m", "cenotaph-test", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("cannot mount a file system here")
    yield place
    subprocess.run(["mount", "-o", "remount,rw", str(place)], check=False, capture_output=True)
    subprocess.run(["umount", "-l", str(place)], check=True)
