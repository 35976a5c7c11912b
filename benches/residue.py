"""What can still be read after a deletion, beside the real program: `python benches/residue.py [--record]`.

The oracle generates state directories and says which facts belong to the forgotten sessions. Each directory is purged
once by this project and once by OpenClaw, from the same copy at the same path, and every byte of every file is searched
before and afterwards, with the oracle's own code. `OCDIR` names the package folder of the real program, with Node 24 on
PATH; without it its figures are those of the last record of any machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("CENOTAPH_SHARED") or ROOT.parent / "shared")
RECORDS = ROOT / "benches" / "records"
BEFORE, OURS, PEER = "before", "cenotaph", "OpenClaw 2026.9.6"


@dataclass(frozen=True)
class Row:
    """What one program left of the forgotten facts in one state directory.

    `readable`: facts that stand in full in some file. `terms`: facts whose rare word stands in a full-text segment, a
    free page or unused bytes of a database. `databases` and `files` say where the readable ones are. `live_rows`:
    readable facts by table, in rows that a query returns. `cpu_s` and `status` are those of the program.
    """

    state: str
    selection: str
    program: str
    facts: int
    readable: int
    terms: int
    databases: int
    files: int
    live_rows: dict[str, int]
    cpu_s: float
    status: int
    measured: bool = True


def oracle(name: str) -> Any:
    """A module of the oracle."""
    folder = str(SHARED / "oracle")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def look(root: Path, facts: set[str]) -> dict[str, Any]:
    """Counts what is left below a folder."""
    tool, common = oracle("residue"), oracle("common")
    finder = tool.Finder(facts, "zq")
    databases = set(common.sqlite_files(root))
    logs = {Path(f"{path}{end}") for path in databases for end in ("-wal", "-journal")}
    in_databases: set[bytes] = set()
    in_files: set[bytes] = set()
    terms: set[bytes] = set()
    live: dict[str, int] = {}
    for path in (each for each in root.rglob("*") if each.is_file()):
        data = path.read_bytes()
        if path not in databases | logs:
            in_files |= finder.tokens_in(data)
            continue
        in_databases |= finder.tokens_in(data)
        terms |= finder.terms_in(data)
        rows = tool.live_rows(path, finder) if path in databases else {}
        live |= {table: len(found) for table, found in rows.items() if not table.endswith(tool.TERM_LABEL)}
    return {
        "readable": len(in_databases | in_files),
        "terms": len(terms),
        "databases": len(in_databases),
        "files": len(in_files),
        "live_rows": live,
    }


def run(command: list[str], state: Path) -> tuple[float, int]:
    """CPU seconds and exit status of a purge."""
    home = state.parent / "home"
    home.mkdir(exist_ok=True)
    environment = {**os.environ, "OPENCLAW_STATE_DIR": str(state), "HOME": str(home), "TZ": "UTC"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, check=False, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):
        sys.exit(f"{command[0]} failed: {done.stdout.decode(errors='replace')[-500:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode


def ours(state: Path, wish: list[str]) -> list[str]:
    program = [sys.executable, "-m", "cenotaph", "--state-dir", str(state)]
    return [*program, "forget", "--agent", "main", *wish, "--json"]


def theirs(_: Path, wish: list[str]) -> list[str]:
    return ["node", f"{os.environ['OCDIR']}/openclaw.mjs", "memory", "forget", "--agent", "main", *wish, "--json"]


def compared(folder: Path, sessions: int, seed: int, selections: list[str]) -> list[Row]:
    """Both programs on copies of one directory."""
    name, at = f"s{sessions}-seed{seed}", folder / "at" / "state"
    pristine, manifest = folder / name, folder / f"{name}.manifest.json"
    generator = SHARED / "oracle" / "gen_state.py"
    command = [sys.executable, str(generator), str(pristine), "--template", str(SHARED / "oracle" / "template")]
    command += ["--sessions", str(sessions), "--seed", str(seed), "--at", str(at), "--manifest", str(manifest)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    told = json.loads(manifest.read_text(encoding="utf-8"))
    programs: list[tuple[str, Callable[[Path, list[str]], list[str]] | None]] = [(BEFORE, None), (OURS, ours)]
    programs += [(PEER, theirs)] if os.environ.get("OCDIR") else []
    rows: list[Row] = []
    for selection in selections:
        facts = oracle("residue").forgotten_tokens(told, selection, "vanish")
        for program, purge in programs:
            shutil.rmtree(at.parent, ignore_errors=True)
            shutil.copytree(pristine, at)
            cpu, status = run(purge(at, told["selections"][selection]["args"]), at) if purge else (0.0, 0)
            left = look(at, facts)
            rows.append(Row(name, selection, program, len(facts), **left, cpu_s=round(cpu, 2), status=status))
            print(line(rows[-1]), flush=True)
    return rows


def recorded(rows: list[Row]) -> list[Row]:
    """The peer's figures for the same directories, from a record."""
    wanted = {(row.state, row.selection) for row in rows}
    found: dict[tuple[str, str], Row] = {}
    for path in sorted(RECORDS.glob("residue-*.json")):
        for entry in json.loads(path.read_text(encoding="utf-8"))["rows"]:
            row = Row(**{**entry, "measured": False})
            if row.program == PEER and (row.state, row.selection) in wanted:
                found[row.state, row.selection] = row
    return list(found.values())


HEAD = f"{'state':12} {'selection':11} {'program':18} {'facts':>5} {'readable':>8} {'terms':>6} {'CPU s':>6}  where"


def line(row: Row) -> str:
    where = [f"{row.databases} in databases"] if row.databases else []
    where += [f"{row.files} in files"] if row.files else []
    where += [] if row.measured else ["recorded earlier"]
    share = f"{100 * row.readable / row.facts:.0f} %" if row.facts else "-"
    return (
        f"{row.state:12} {row.selection:11} {row.program:18} {row.facts:5} {row.readable:8} {row.terms:6} "
        f"{row.cpu_s:6.1f}  {share} readable: {', '.join(where) or 'nowhere'}"
    )


def record(rows: list[Row]) -> None:
    """Writes the figures with the machine's name."""
    cpu = next(
        (each.split(":")[1].strip() for each in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in each),
        platform.processor(),
    )
    revision = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], text=True, capture_output=True, check=False, cwd=ROOT
    )
    name = f"residue-{platform.system()}-{platform.machine()}-{cpu}.json".replace(" ", "-").lower()
    content = {"cpu": cpu, "revision": revision.stdout.strip(), "python": platform.python_version()}
    text = json.dumps(content | {"peer": PEER, "rows": [asdict(row) for row in rows]}, indent=1)
    (RECORDS / name).write_text(text + "\n", encoding="utf-8")
    print(f"recorded in benches/records/{name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, nargs="+", default=[50, 500])
    parser.add_argument("--seeds", type=int, nargs="+", default=[7, 23])
    parser.add_argument("--selections", nargs="+", default=["one", "mix", "tenth"])
    parser.add_argument("--record", action="store_true", help="write benches/records/residue-<machine>.json")
    asked = parser.parse_args()
    if not (SHARED / "oracle" / "residue.py").exists():
        sys.exit("no oracle: set CENOTAPH_SHARED to the shared folder")
    if asked.record and not os.environ.get("OCDIR"):
        sys.exit("a record needs the figures of the real program: set OCDIR")
    print(HEAD)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="cenotaph-residue-") as folder:
        for sessions in asked.sessions:
            for seed in asked.seeds:
                rows += compared(Path(folder), sessions, seed, asked.selections)
    if not os.environ.get("OCDIR"):
        print(*map(line, recorded(rows)), sep="\n")
    if asked.record:
        record(rows)
    if any(row.readable or row.terms for row in rows if row.program == OURS):
        sys.exit("this project left something")


if __name__ == "__main__":
    main()
