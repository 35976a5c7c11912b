"""The source distribution holds all that it needs, builds alone, and the wheel imports without the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MATURIN = Path(sys.executable).with_name("maturin")
pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a command without anything that leads back to the repository."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        text=True,
        capture_output=True,
        check=False,
        env=inherited | {"CARGO_TARGET_DIR": str(ROOT / "target" / "sdist")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution, far from the repository."""
    folder = tmp_path_factory.mktemp("sdist")
    run(MATURIN, "sdist", "--manifest-path", ROOT / "rust" / "py" / "Cargo.toml", "--out", folder, cwd=folder)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (source,) = (path for path in folder.iterdir() if path.is_dir())
    return source


def test_it_holds_the_lock_file_and_both_crates(unpacked: Path) -> None:
    for name in ("Cargo.lock", "pyproject.toml", "LICENSE", "README.md", "rust/core/src/lib.rs", "rust/py/src/lib.rs"):
        assert (unpacked / name).is_file(), name
    for name in ("__init__.py", "_core.pyi", "py.typed"):
        assert (unpacked / "python" / "cenotaph" / name).is_file(), name


@pytest.mark.timeout(900)
def test_its_wheel_imports_without_the_repository(unpacked: Path, tmp_path: Path) -> None:
    run(MATURIN, "build", "--release", "--locked", "--out", tmp_path / "dist", cwd=unpacked)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert "-cp311-abi3-" in wheel.name
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    assert {"cenotaph/__init__.py", "cenotaph/_core.pyi", "cenotaph/py.typed"} <= set(names)
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    where = run(python, "-I", "-c", "import cenotaph, cenotaph._core as core; print(core.__file__)", cwd=tmp_path)
    assert where.startswith(str(tmp_path))
    assert "forget" in run(tmp_path / "venv" / "bin" / "cenotaph", "--help", cwd=tmp_path)
