"""Every figure beside a peer, in one run: `make bench`, or `python benches/run.py [--quick] [--record]`.

Each row has the CPU seconds of this project and of a peer for the same bytes, and their ratio. The floor is a scan for
newlines with `memchr`. `--record` writes benches/records/<machine>.json.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from corpora import careless, corpus_file, notes, snippets, state

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Row:
    """One comparison. `ratio`: peer divided by ours, so above 1 is faster than the peer."""

    bench: str
    size: str
    peer: str
    ours_cpu_s: float
    peer_cpu_s: float

    @property
    def ratio(self) -> float:
        return self.peer_cpu_s / self.ours_cpu_s if self.ours_cpu_s else float("inf")


def cpu_of(command: list[str], runs: int) -> float:
    """Median CPU seconds (user and system) of a command and its children."""
    figures: list[float] = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Into a pipe: to /dev/null, grep stops at the first match.
        done = subprocess.run(command, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode not in (0, 1):
            sys.exit(f"{command[0]} failed: {done.stderr.decode(errors='replace')}")
        figures.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(figures)


def core_cpu(code: str, runs: int) -> float:
    """Median CPU seconds of a call into the core, timed inside its process; importing does not count."""
    script = (
        "import statistics, sys, time\nfrom cenotaph import _core\nassert not _core.DEBUG_BUILD\n"
        f"{code}\nfigures = []\nfor _ in range({runs}):\n    begun = time.process_time()\n    work()\n"
        "    figures.append(time.process_time() - begun)\nprint(statistics.median(figures))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True, check=True)
    return float(done.stdout)


def prefix_rows(folder: Path, megabytes: int, runs: int) -> list[Row]:
    path = folder / "2026-11-20.txt"
    rows: list[Row] = []
    for count in (1, 100, 1_000):
        ids = corpus_file(path, megabytes, sessions=50 * count)[:count]
        refs = folder / "refs.txt"
        refs.write_text("".join(f"sessions/main/{each}#L\n" for each in ids), encoding="utf-8")
        ours = core_cpu(
            f"ids = [line[14:-2] for line in open({str(refs)!r}).read().split()]\n"
            f"refs = _core.Refs('main', ids)\ndef work(): _core.scan_corpus([{str(path)!r}], refs, 1)",
            runs,
        )
        size = f"{megabytes} MB, {count} sessions"
        rows += [
            Row(
                "prefix scan", size, "grep -F -f", ours, cpu_of(["grep", "-c", "-F", "-f", str(refs), str(path)], runs)
            ),
            Row("prefix scan", size, "newline floor", ours, cpu_of(["wc", "-l", str(path)], runs)),
        ]
        if shutil.which("rg"):
            command = ["rg", "-j1", "--no-mmap", "-c", "-F", "-f", str(refs), str(path)]
            rows.append(Row("prefix scan", size, "rg -F -f", ours, cpu_of(command, runs)))
    return rows


def kernel_rows(*, quick: bool) -> list[dict[str, object]]:
    """Gram engine beside aho-corasick and the newline floor, from the Rust example."""
    command = ["cargo", "run", "--release", "--quiet", "-p", "cenotaph-core", "--example", "scan", "--", "--json"]
    command += ["--quick"] if quick else []
    done = subprocess.run(command, text=True, capture_output=True, check=True, cwd=ROOT)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def scrub_rows(folder: Path, megabytes: int, runs: int) -> list[Row]:
    rows: list[Row] = []
    for count in (10, 1_000, 10_000, 100_000):
        workspace = folder / f"notes-{count}"
        needles = snippets(count)
        notes(workspace / "memory", megabytes, needles)
        pattern = folder / "needles.txt"
        pattern.write_text("\n".join(needles) + "\n", encoding="utf-8")
        corpus = folder / f"corpus-{count}.txt"
        corpus.write_text("".join(f"[main/sessions/main/x#L2] {each}\n" for each in needles), encoding="utf-8")
        ours = core_cpu(
            "refs = _core.Refs('main', ['x'])\n"
            f"found = _core.scan_corpus([{str(corpus)!r}], refs, 1)\n"
            f"files = _core.memory_files({str(workspace)!r}).files\n"
            "def work(): _core.Scrubber(refs, [], [], found).scan_files(files, 1)",
            runs,
        )
        size = f"{megabytes} MB, {count} needles"
        if shutil.which("rg"):
            command = ["rg", "-j1", "--no-mmap", "-c", "-F", "-f", str(pattern), str(workspace)]
            rows.append(Row("scrub", size, "rg -F -f", ours, cpu_of(command, runs)))
        if count <= 10_000:  # with more, grep takes minutes
            command = ["grep", "-r", "-c", "-F", "-f", str(pattern), str(workspace)]
            rows.append(Row("scrub", size, "grep -F -f", ours, cpu_of(command, runs)))
        shutil.rmtree(workspace)
    return rows


def verify_rows(folder: Path, megabytes: int, runs: int) -> list[Row]:
    """Every byte of a state directory for 1,000 needles in all spellings; the peers look for one spelling."""
    root, needles = folder / "verify", snippets(1_050)[:1_000]
    pattern = folder / "verify-needles.txt"
    pattern.write_text("\n".join(needles) + "\n", encoding="utf-8")
    state(root, megabytes, needles)
    size = sum(each.stat().st_size for each in root.rglob("*") if each.is_file())
    ours = core_cpu(
        f"needles = _core.Needles(open({str(pattern)!r}, 'rb').read().splitlines())\n"
        f"files = _core.files_below([{str(root)!r}])[0]\n"
        "def work(): _core.find_residue(files, needles, ['transcript_events'], 1)",
        runs,
    )
    named = f"{megabytes} MB at {size / ours / 1e9:.2f} GB/s"
    command = ["grep", "-r", "-a", "-c", "-F", "-f", str(pattern), str(root)]
    rows = [Row("verify", named, "grep -F -f", ours, cpu_of(command, runs))]
    if shutil.which("rg"):
        command = ["rg", "-j1", "-uu", "-a", "--no-mmap", "-c", "-F", "-f", str(pattern), str(root)]
        rows.append(Row("verify", named, "rg -F -f", ours, cpu_of(command, runs)))
    shutil.rmtree(root)
    return rows


def remedy_rows(folder: Path, runs: int) -> list[Row]:
    """Erasing the free pages that a careless deletion left, beside VACUUM, which also cleans used pages."""
    rows: list[Row] = []
    for auto_vacuum, mode in ((0, "zeros over them"), (2, "given back")):
        place = folder / f"remedy-{auto_vacuum}"
        create = f"from cenotaph import _core; _core.create_native({str(place)!r}, 'main', 1)"
        subprocess.run([sys.executable, "-c", create], check=True)
        path = place / "agents" / "main" / "agent" / "openclaw-agent.sqlite"
        careless(path, auto_vacuum)
        figures = {
            name: statistics.median(
                core_cpu(
                    f"import shutil\nshutil.copy({str(path)!r}, {str(path) + '.copy'!r})\n"
                    f"store = _core.Store.open_agent({str(path) + '.copy'!r}, 'main', write=True)\n"
                    f"def work(): (_core.{name}(store), store.checkpoint())",
                    1,
                )
                for _ in range(runs)
            )
            for name in ("erase_free_pages", "vacuum")
        }
        size = f"{path.stat().st_size >> 20} MB, {mode}"
        rows.append(Row("free pages", size, "VACUUM", figures["erase_free_pages"], figures["vacuum"]))
    return rows


PEER_CPU_S = {("2000", "one"): 21.0, ("2000", "tenth"): 26.0}
"""CPU of OpenClaw 2026.9.6 for the same purge, measured once on a machine of 2 vCPUs."""


def forget_rows(folder: Path, runs: int) -> list[Row]:
    """The whole purge, from the command line, of a generated host directory."""
    oracle = ROOT.parent / "shared" / "oracle"
    if not oracle.is_dir():
        return []
    pristine, at = folder / "s2000", folder / "at" / "state"
    command = [sys.executable, str(oracle / "gen_state.py"), str(pristine), "--template", str(oracle / "template")]
    subprocess.run([*command, "--sessions", "2000", "--at", str(at)], check=True, stdout=subprocess.DEVNULL)
    selections = json.loads((folder / "s2000.manifest.json").read_text(encoding="utf-8"))["selections"]
    rows: list[Row] = []
    for name in ("one", "tenth"):
        figures: list[float] = []
        for _ in range(runs):
            shutil.rmtree(at, ignore_errors=True)
            shutil.copytree(pristine, at)
            program = [sys.executable, "-m", "cenotaph", "--state-dir", str(at), "forget", "--agent", "main"]
            figures.append(cpu_of([*program, *selections[name]["args"], "--json"], 1))
        peer = PEER_CPU_S["2000", name]
        rows.append(Row("forget", f"2000 sessions, {name}", "OpenClaw 2026.9.6", statistics.median(figures), peer))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller inputs, fewer runs")
    parser.add_argument("--record", action="store_true", help="write benches/records/<machine>.json")
    parser.add_argument("--only-verify", action="store_true", help="the section verify alone")
    parser.add_argument("--verify-megabytes", type=int, help="size of its state directory (1000, quick: 64)")
    asked = parser.parse_args()
    megabytes, runs = (16, 3) if asked.quick else (128, 5)
    verified = asked.verify_megabytes or (64 if asked.quick else 1_000)
    with tempfile.TemporaryDirectory(prefix="cenotaph-bench-") as name:
        folder = Path(name)
        rows = verify_rows(folder, verified, 3)
        if not asked.only_verify:
            rows += [*prefix_rows(folder, megabytes, runs), *scrub_rows(folder, megabytes, runs)]
            rows += [*remedy_rows(folder, runs), *forget_rows(folder, runs)]
    kernels = [] if asked.only_verify else kernel_rows(quick=asked.quick)
    print(f"{'bench':12} {'size':26} {'peer':20} {'ours s':>8} {'peer s':>8} {'ratio':>7}")
    for row in rows:
        print(
            f"{row.bench:12} {row.size:26} {row.peer:20} {row.ours_cpu_s:8.3f} {row.peer_cpu_s:8.3f} {row.ratio:7.1f}"
        )
    for kernel in kernels:
        print(json.dumps(kernel))
    if asked.record:
        record(rows, kernels)


def record(rows: list[Row], kernels: list[dict[str, object]]) -> None:
    """Writes the figures with the machine's name."""
    cpu = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        platform.processor(),
    )
    revision = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], text=True, capture_output=True, check=False, cwd=ROOT
    )
    target = (
        ROOT / "benches" / "records" / f"{platform.system()}-{platform.machine()}-{cpu}.json".replace(" ", "-").lower()
    )
    figures = [asdict(row) | {"ratio": round(row.ratio, 2)} for row in rows]
    content = {"cpu": cpu, "revision": revision.stdout.strip(), "python": platform.python_version()}
    text = json.dumps(content | {"rows": figures, "kernels": kernels}, indent=1)
    target.write_text(text + "\n", encoding="utf-8")
    print(f"recorded in {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
