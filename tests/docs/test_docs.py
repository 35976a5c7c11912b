"""What the documents say is run and looked up here."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DESIGN = (ROOT / "DESIGN.md").read_text(encoding="utf-8")
PACKAGE = sorted((ROOT / "python" / "cenotaph").rglob("*.py"))
PYTHON_BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
CONSOLE_LINES = [
    line.removeprefix("$ ").split()
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ ")
]


def run_cli(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "cenotaph", *words], text=True, capture_output=True, check=True)
    return done.stdout


def options_of(command: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", run_cli(command, "--help"))) - {"--help"}


@pytest.mark.parametrize("block", PYTHON_BLOCKS)
def test_python_blocks_of_the_readme_run(block: str, tmp_path: Path) -> None:
    script = tmp_path / "block.py"
    script.write_text(block, encoding="utf-8")
    subprocess.run([sys.executable, str(script)], check=True, cwd=tmp_path, capture_output=True)


def test_the_readme_has_blocks_to_run() -> None:
    assert PYTHON_BLOCKS
    assert CONSOLE_LINES


@pytest.mark.parametrize("words", CONSOLE_LINES, ids=" ".join)
def test_console_lines_of_the_readme_run(words: list[str], tmp_path: Path) -> None:
    program, state_dir, _, *rest = words
    assert (program, state_dir) == ("cenotaph", "--state-dir")
    run_cli("--state-dir", str(tmp_path), *rest)


def test_every_option_of_forget_is_in_the_readme() -> None:
    missing = {option for option in options_of("forget") if option not in README}
    assert missing <= {"--agent"}, f"README.md does not tell of {missing}"


def test_every_file_that_the_design_names_is_there() -> None:
    table = DESIGN.split("| place | what it does |")[1].split("\n\n")[0]
    for row in table.splitlines()[2:]:
        folder = ""
        for name in re.findall(r"`([^`]+)`", row.split("|")[1]):
            path = name if name.startswith(("rust/", "python/")) else folder + name
            folder = path.rsplit("/", 1)[0] + "/" if name.startswith(("rust/", "python/")) else folder
            assert (ROOT / path).exists(), f"DESIGN.md names {path}"


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_package_opens_no_database_from_python(path: Path) -> None:
    """One SQLite per process: closing a descriptor of another library drops the locks of this one."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.split(".")[0] in {"sqlite3", "apsw", "pysqlite3"} for name in names)


LAYERS = [
    "cli",
    "memory",
    "certify",
    "forget",
    "verify",
    "ledger",
    "receipts",
    "place",
    "session_store",
    "sessions",
    "transcript",
    "archives",
    "identity",
    "config",
    "json5",
    "schema",
    "layout",
    "errors",
]


@pytest.mark.parametrize("path", PACKAGE, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    """A module imports only from its own layer or one below; see DESIGN.md."""
    layer = path.relative_to(ROOT / "python" / "cenotaph").parts[0].removesuffix(".py")
    if layer not in LAYERS:
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cenotaph."):
            wanted = (node.module or "").split(".")[1]
            assert wanted not in LAYERS or LAYERS.index(wanted) >= LAYERS.index(layer), f"{path.name} imports {wanted}"


def test_the_demo_runs_and_checks_itself(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py"), str(tmp_path / "state")],
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Checked: no byte of it outside the transcript" in done.stdout
