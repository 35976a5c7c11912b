"""Matches every difference between the recorded purge and ours to a number of design.md section 6.

Nothing is waved through by name. `World` computes what the peer's rules and what our rules leave;
the recorded state must be the first and ours the second, row by row and line by line. A difference
gets a number by experiment: with that one rule switched off, the difference must go away. What a
number claims is then checked once more on the text itself, by code that knows nothing of the rules.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import apsw
from reference import NUMBERS, OURS, PEER, text_of
from world import BACKUPS, Element, Left, Record, World

from state_maker import AGENT, AGENT_DB, PLUGIN, STATE_DB, sha256

Item: TypeAlias = dict[str, str]
Row: TypeAlias = tuple[Any, ...]

OWN_REPORT_FIELDS = {
    "externalMatches": "V18",
    "sharedSnippetLines": "V20",
    "sharedSnippetLocations": "V20",
    "pending": "V17",
    "measured": "design 11",
    "verification": "design 7",
    "receipt": "design 7",
}
OF_THE_RUN = ("dryRun", "measured", "verification", "receipt")
"""What a preview cannot say."""
OWN_FILES = ("cenotaph/receipts.key",)
FOLLOWING_TABLES = {
    "memory_index_chunks": "id",
    "memory_index_chunk_provenance": "chunk_id",
    "memory_index_chunk_recall_metadata": "chunk_id",
    "memory_index_chunks_fts": "id",
    "memory_index_chunks_vec": "id",
}


@dataclass
class Explained:
    """A difference with the numbers that make it."""

    item: Item
    numbers: frozenset[str]


@dataclass
class Verdict:
    """Every difference, explained or not."""

    explained: list[Explained] = field(default_factory=list[Explained])
    unexplained: list[str] = field(default_factory=list[str])

    def numbers(self) -> frozenset[str]:
        """All numbers that were met."""
        return frozenset(number for done in self.explained for number in done.numbers)


class Unexplained(Exception):
    """A difference that no number makes."""


@dataclass
class Sides:
    """Three states of one directory and the two reports."""

    world: World
    recorded: Path
    ours: Path
    recorded_report: Record
    our_report: Record
    open_copy: Callable[[Path], Any]
    read_rows: Callable[[Any, str, bool], tuple[list[str], Counter[Row]]]


class Explainer:
    """Explains the differences between two purged states."""

    def __init__(self, sides: Sides) -> None:
        self.sides = sides
        self.world = sides.world
        self.peer = sides.world.after(PEER)
        self.left = sides.world.after(OURS)
        self.differing = self.peer.elements() ^ self.left.elements()
        self.cause: dict[Element, frozenset[str]] = {}

    # -- which rule makes an element differ ------------------------------------------------------
    def numbers(self, element: Element) -> frozenset[str]:
        """The rules without which ours would be as the peer's, or with which the peer's would be as ours."""
        if element not in self.cause:
            theirs, ours = state_of(self.peer, element), state_of(self.left, element)
            found = frozenset(
                name.upper() for name in NUMBERS
                if state_of(self.world.after(OURS.without(name)), element) == theirs
                or state_of(self.world.after(PEER.having(name)), element) == ours
            )  # fmt: skip
            if not found:
                raise Unexplained(f"no rule alone makes {element} differ")
            self.cause[element] = found
        return self.cause[element]

    def numbers_of(self, elements: Iterable[Element]) -> frozenset[str]:
        """All numbers of all elements; at least one."""
        found = frozenset(number for element in elements for number in self.numbers(element))
        if not found:
            raise Unexplained("the rules make no difference here")
        return found

    # -- items -----------------------------------------------------------------------------------
    def explain(self, item: Item) -> frozenset[str]:
        """The numbers of one item of compare.py."""
        where, kind = item["where"], item["kind"]
        if kind.startswith("report"):
            return self.report_item(where, kind)
        if kind.startswith("file-"):
            return self.file_item(where)
        if kind in ("row-missing", "row-extra"):
            return self.row_item(*where.split(":", 1))
        if kind == "table" and where.split(":", 1)[1].startswith("cenotaph_") and item["detail"] == "only in B":
            return frozenset({"design 4"})
        raise Unexplained(f"{kind} at {where} is no difference that the design allows")

    # files
    def file_item(self, where: str) -> frozenset[str]:
        """A workspace file that differs."""
        if where in OWN_FILES:
            return frozenset({"design 7"})
        name = str(Path(where).relative_to("workspace")) if where.startswith("workspace/") else where
        if name not in self.world.memory and name not in self.world.corpus:
            raise Unexplained(f"{where} is no file that a purge may touch")
        for label, root, left in (("recorded", self.sides.recorded, self.peer), ("our", self.sides.ours, self.left)):
            path = root / where
            actual = path.read_bytes() if path.exists() else None
            if actual != left.files.get(name):
                raise Unexplained(f"the {label} {name} is not what the rules leave of it")
        lines = [e for e in self.differing if e[0] == "line" and e[1] == name]
        if lines and not same_lines(self, name):
            self.check_lines(name, lines)
            return self.numbers_of(lines)
        found = self.numbers_of(e for e in self.differing if e[0] == "bytes" and e[1] == name)
        self.check_bytes(name)
        return found

    def check_lines(self, name: str, lines: Iterable[Element]) -> None:
        """What the number of a line claims must show in the text."""
        text = text_of((self.world.memory | self.world.corpus)[name]).split("\n")
        for element in lines:
            numbers, at = self.numbers(element), int(element[2])
            if not any(CLAIMS[number](self, text, at) for number in numbers & CLAIMS.keys()):
                raise Unexplained(f"{name}:{at + 1} does not look like {sorted(numbers)}: {text[at][:120]!r}")

    def check_bytes(self, name: str) -> None:
        """V11: the same lines, and only the last terminator differs (or bytes that are no text)."""
        ours, theirs = self.left.files[name], self.peer.files[name]
        if valid((self.world.memory | self.world.corpus)[name]) and ours != theirs + b"\n":
            raise Unexplained(f"{name} differs in more than its last terminator")

    # databases
    def row_item(self, database: str, table: str) -> frozenset[str]:
        """Rows of one table that only one side has."""
        table = table.strip()
        vocabulary = table.endswith(" vocabulary")
        table = table.removesuffix(" vocabulary")
        if database == AGENT_DB.format(agent=AGENT):
            if vocabulary:
                return self.vocabulary(database, table)
            return self.agent_rows(database, table)
        if database == STATE_DB and table == "plugin_state_entries":
            return self.plugin_rows(database)
        raise Unexplained(f"rows of {database}:{table} may not differ")

    def rows(self, root: Path, database: str, table: str) -> tuple[list[str], Counter[Row]]:
        """All rows of a table, normalised as compare.py does."""
        with self.sides.open_copy(root / database) as db:
            return self.sides.read_rows(db, table, False)

    def agent_rows(self, database: str, table: str) -> frozenset[str]:
        """Rows of the agent database."""
        columns, theirs = self.rows(self.sides.recorded, database, table)
        _, ours = self.rows(self.sides.ours, database, table)
        _, before = self.rows(self.world.state, database, table)
        if ours - before:
            raise Unexplained(f"{table} has rows that were not there before: {list(ours - before)[:2]}")
        identity = row_identity(table, columns)
        for label, rows, left in (("recorded", theirs, self.peer), ("our", ours, self.left)):
            kept = {row for row in before if identity(row) in left.elements()}
            if set(rows) != kept:
                odd = list(set(rows) ^ kept)[:2]
                raise Unexplained(f"the {label} {table} is not what the rules leave of it: {odd}")
        return self.numbers_of(identity(row) for row in (theirs - ours) | (ours - theirs))

    def vocabulary(self, database: str, table: str) -> frozenset[str]:
        """Live terms of a full-text index: recomputed from the rows that it holds."""
        with self.sides.open_copy(self.sides.ours / database) as db:
            columns = [row["name"] for row in db.execute(f'PRAGMA table_info("{table}")')]
            rows = [tuple(row) for row in db.execute(f'SELECT * FROM "{table}"')]
            ddl = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
            live = vocabulary_of(db, table)
            db.rollback()
        scratch: Any = apsw.Connection(":memory:")
        scratch.execute(ddl)
        marks = ", ".join("?" * len(columns))
        scratch.executemany(f'INSERT INTO "{table}" VALUES ({marks})', rows)
        if live != vocabulary_of(scratch, table):
            raise Unexplained(f"the live terms of {table} are not those of its rows")
        return self.agent_rows(database, table)

    def plugin_rows(self, database: str) -> frozenset[str]:
        """Rows of plugin state."""
        columns, theirs = self.rows(self.sides.recorded, database, "plugin_state_entries")
        _, ours = self.rows(self.sides.ours, database, "plugin_state_entries")
        foreign = [row for row in (theirs - ours) | (ours - theirs) if row[columns.index("plugin_id")] != PLUGIN]
        if foreign:
            raise Unexplained(f"rows of another plugin differ: {foreign[:2]}")
        elements: set[Element] = set()
        for label, rows, left in (("recorded", theirs, self.peer), ("our", ours, self.left)):
            actual = plugin_values(columns, rows)
            if actual != left.plugin:
                odd = sorted(k for k in actual.keys() | left.plugin.keys() if actual.get(k) != left.plugin.get(k))[:3]
                raise Unexplained(f"the {label} plugin state is not what the rules leave of it: {odd}")
            elements |= {("plugin", *key, sha256(value)) for key, value in actual.items()}
        return self.numbers_of(e for e in self.differing if e[0] == "plugin" and e in elements)

    # reports
    def report_item(self, where: str, kind: str) -> frozenset[str]:
        """A field of the report that differs."""
        if kind == "report-key-order":
            raise Unexplained(f"{where}: the keys stand in another order")
        name = where.removeprefix("report.")
        if name in OWN_REPORT_FIELDS:
            self.check_own_field(name)
            return frozenset({OWN_REPORT_FIELDS[name]})
        if name.startswith("artifacts."):
            return self.count(name.removeprefix("artifacts."))
        if name in ("entryKeys", "mixedLineageEntryKeys"):
            return self.key_list(name)
        raise Unexplained(f"{where} may not differ")

    def check_own_field(self, name: str) -> None:
        """Fields that only we have."""
        value = self.sides.our_report[name]
        shared = sum(len(done.shared_lines) for done in self.left.outcome.memory.values())
        expected: dict[str, object] = {"externalMatches": [], "pending": [], "sharedSnippetLines": shared}
        if name in expected and value != expected[name]:
            raise Unexplained(f"report.{name} is {value}, expected {expected[name]}")
        proven = {"verification": ("result", "clean"), "receipt": ("completed", True)}
        if name in proven and not self.sides.our_report["dryRun"] and value[proven[name][0]] != proven[name][1]:
            raise Unexplained(f"report.{name} is {value}")
        if name == "sharedSnippetLocations" and shared_locations(value) != self.expected_locations():
            raise Unexplained(f"report.{name} names other lines than the rules: {value}")

    def expected_locations(self) -> Counter[tuple[str, int]]:
        """Lines whose snippets all stand in a surviving session's corpus."""
        return Counter(
            (name, line) for name, done in self.left.outcome.memory.items() for line in done.shared_lines
        )  # fmt: skip

    def count(self, name: str) -> frozenset[str]:
        """A number of the report: both sides must be what the rules make, row by row."""
        for label, report, left in (
            ("recorded", self.sides.recorded_report, self.peer), ("our", self.sides.our_report, self.left)
        ):  # fmt: skip
            if report["artifacts"].get(name) != left.counts[name]:
                raise Unexplained(
                    f"the {label} {name} is {report['artifacts'].get(name)}, the rules make it {left.counts[name]}"
                )
        found = frozenset(
            number.upper() for number in NUMBERS
            if self.world.after(OURS.without(number)).counts[name] != self.left.counts[name]
            or self.world.after(PEER.having(number)).counts[name] != self.peer.counts[name]
        )  # fmt: skip
        if not found:
            raise Unexplained(f"no rule changes {name}")
        return found

    def key_list(self, name: str) -> frozenset[str]:
        """V1 adds keys that share a unit with a selected one; nothing else may differ."""
        joined = self.left.outcome.selection.entry_keys - self.peer.outcome.selection.entry_keys
        theirs: list[str] = self.sides.recorded_report[name]
        ours: list[str] = self.sides.our_report[name]
        if not joined or set(ours) != set(theirs) | joined or len(ours) != len(set(ours)):
            raise Unexplained(f"report.{name} is {ours}, recorded {theirs}, joined by V1 {sorted(joined)}")
        if ours != sorted(ours, key=lambda key: key.encode("utf-16-be")):
            raise Unexplained(f"report.{name} is not in code-unit order")
        return self.numbers_of(("entry key", key) for key in joined)


def judge(explainer: Explainer, items: Iterable[Item]) -> Verdict:
    """Explains what can be explained."""
    verdict = Verdict()
    for item in items:
        try:
            verdict.explained.append(Explained(item, explainer.explain(item)))
        except Unexplained as reason:
            verdict.unexplained.append(f"[{item['kind']}] {item['where']}: {reason}\n    {item['detail']}")
    return verdict


# -- what a number claims, read off the text ---------------------------------------------------
PROMOTION = re.compile(r"openclaw-memory-promotion:(.*?)\s*-->")


def claims_stack(explainer: Explainer, text: list[str], at: int) -> bool:
    """V1: above the line (or on it) stand several markers, one of them of a selected session."""
    peer_keys = explainer.peer.outcome.selection.entry_keys
    all_keys = explainer.left.outcome.selection.entry_keys
    top = at
    while top > 0 and not PROMOTION.search(text[top]) and text[top].strip():
        top -= 1
    while top > 0 and ("openclaw-memory-" in text[top - 1] or not text[top - 1].strip()):
        top -= 1
    keys: list[str] = []
    for line in text[top:]:
        match = PROMOTION.search(line)
        if match:
            keys.append(match.group(1).strip())
        elif line.strip() and "openclaw-memory-" not in line:
            break
    stacked = len(keys) > 1 and any(key in peer_keys for key in keys)
    joined = any(key in all_keys - peer_keys for key in keys)
    return stacked or joined or orphaned(explainer, text, at)


def orphaned(explainer: Explainer, text: list[str], at: int) -> bool:
    """V1: a label whose block went."""
    if "openclaw-memory-" not in text[at]:
        return False
    below = at + 1
    while below < len(text) and ("openclaw-memory-" in text[below] or not text[below].strip()):
        below += 1
    kept = explainer.left.elements()
    return below < len(text) and any(e[0] == "line" and e[2] == str(below) for e in kept)


def claims_block(_: Explainer, text: list[str], at: int) -> bool:
    """V2: the line hangs below a marker (in its block, or wrongly taken for it) or below a session row."""
    near = text[max(0, at - 200) : at + 1]
    return any(PROMOTION.search(line) or "session" in line.lower() for line in near)


def claims_variant(explainer: Explainer, text: list[str], at: int) -> bool:
    """V3: no stored snippet stands in the line, but one does when both are folded."""
    stored = explainer.left.outcome.needles.stored
    if any(snippet in text[at] for snippet in stored):
        return False

    def folded(value: str) -> str:
        plain = unicodedata.normalize("NFC", re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", value))
        return " ".join(re.sub(r"^(User|Assistant): ", "", plain.strip()).split())

    return any(folded(snippet) in folded(text[at]) for snippet in stored if len(snippet) >= 20)


def claims_mention(explainer: Explainer, text: list[str], at: int) -> bool:
    """V5: the line belongs to a survivor and only mentions a selected session."""
    prefix, _, rest = text[at].partition("]")
    ids = explainer.world.ids
    return not any(name in prefix for name in ids) and any(name in rest for name in ids)


def claims_hook(_: Explainer, text: list[str], at: int) -> bool:
    """V6: the line is in a section with a bold session row."""
    return any(re.search(r"(\*\*|__)Session (ID|Key)", line) for line in text)


CLAIMS: dict[str, Callable[[Explainer, list[str], int], bool]] = {
    "V1": claims_stack,
    "V2": claims_block,
    "V3": claims_variant,
    "V4": claims_variant,
    "V5": claims_mention,
    "V6": claims_hook,
}


def state_of(left: Left, element: Element) -> object:
    """What has become of an element: the content of a file or row, or whether it is there."""
    if element[0] == "bytes":
        return left.files.get(element[1])
    if element[0] == "plugin":
        return left.plugin.get((element[1], element[2]))
    return element in left.elements()


# -- small parts -------------------------------------------------------------------------------
def valid(content: bytes) -> bool:
    """Whether the bytes are UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def same_lines(explainer: Explainer, name: str) -> bool:
    """Whether both sides removed the same lines of a file (but for the empty piece after the last terminator)."""
    original = text_of((explainer.world.memory | explainer.world.corpus)[name]).split("\n")
    last = str(len(original) - 1) if original[-1] == "" else ""
    return all(e[2] == last for e in explainer.differing if e[0] == "line" and e[1] == name)


def row_identity(table: str, columns: list[str]) -> Callable[[Row], Element]:
    """How the rows of a table are named among the elements of a world."""

    def pick(kind: str, *names: str) -> Callable[[Row], Element]:
        places = [columns.index(name) for name in names]
        return lambda row: (kind, *(str(row[place]) for place in places))

    if table in FOLLOWING_TABLES:
        return pick("chunk", FOLLOWING_TABLES[table])
    if table in ("memory_index_sources", "memory_index_paths_fts"):
        return pick("source", "path", "source")
    if table == "memory_embedding_cache":
        return pick("cache", "provider", "model", "provider_key", "hash")
    if table == "memory_entry_origins":
        return pick("origin", "entry_key", "session_id")
    raise Unexplained(f"rows of {table} may not differ")


def plugin_values(columns: list[str], rows: Counter[Row]) -> dict[tuple[str, str], str]:
    """Rows of the memory plugin: (namespace, logical key) to value."""
    found: dict[tuple[str, str], str] = {}
    for row in rows:
        named = dict(zip(columns, row, strict=True))
        if named["plugin_id"] == PLUGIN:
            record = json.loads(named["value_json"])
            value = record["value"]
            if named["namespace"] == BACKUPS and sha256(value["content"]) != value["contentHash"]:
                raise Unexplained(f"the hash of backup {record['key']} is not that of its content")
            found[(named["namespace"], record["key"])] = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return found


def vocabulary_of(db: Any, table: str) -> set[tuple[str, int, int]]:
    """Terms of a full-text index that lead to a row."""
    db.execute(f'CREATE VIRTUAL TABLE temp."check_{table}" USING fts5vocab(main, "{table}", row)')
    return {(row[0], row[1], row[2]) for row in db.execute(f'SELECT term, doc, cnt FROM temp."check_{table}"')}


def shared_locations(value: list[str]) -> Counter[tuple[str, int]]:
    """Lines named by `sharedSnippetLocations` as `path:line`."""
    split = [location.rsplit(":", 1) for location in value]
    return Counter((name, int(line)) for name, line in split)
