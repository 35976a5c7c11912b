"""The page for the person who asked: what it says, what it keeps to itself, and that it stands alone."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cenotaph.cli.report import Selection
from cenotaph.forget.report import ForgetReport
from cenotaph.html_report import SELECTIONS, NotAReport, html_of
from conftest import CommandLine, Done
from scene import SECRET, TARGET, own, play
from state_maker import StateMaker, marker

VOID = {"meta"}


def report() -> dict[str, Any]:
    """A report in which every field is filled; each string that could name somebody is unmistakable."""
    place = {"path": "canary-{}-path", "part": "free", "table": "canary-table", "needles": 2}
    found: dict[str, Any] = {
        "agentId": "canary-agent",
        "dryRun": False,
        "sessionIds": ["canary-session-1", "canary-session-2"],
        "participantMatches": [
            {"actorId": "canary-actor", "identities": [{"type": "canary-type", "id": "canary-identity"}]},
            {"actorId": "canary-stranger", "identities": []},
        ],
        "sessionResolutions": [
            {"sessionId": "canary-session-1", "sessionKey": "canary-session-key", "source": "live"},
            {"sessionId": "canary-session-2", "source": "unresolved"},
        ],
        "entryKeys": ["canary-entry-1", "canary-entry-2"],
        "mixedLineageEntryKeys": ["canary-mixed"],
        "untargetableEntryKeys": ["canary-untargetable"],
        "curatedWrites": [{"relativePath": "canary-written", "observedAt": 1_795_165_200_000}],
        "artifacts": {
            "memoryFiles": 3, "memoryEntries": 1_234, "memoryLines": 5, "sessionCorpusFiles": 6,
            "sessionCorpusLines": 7, "indexChunks": 8, "indexSources": 9, "ftsRows": 10, "vectorRows": 11,
            "embeddingCacheRows": 12, "shortTermEntries": 13, "seenHashScopes": 14, "backups": 15, "originRows": 16,
        },
        "refusals": ["canary-refusal"],
        "externalMatches": [{"path": "canary-external", "entries": 1, "lines": 2}],
        "sharedSnippetLines": 2,
        "sharedSnippetLocations": ["canary-shared:3"],
        "pending": ["wal", "canary-pending"],
        "measured": {
            "tombstones": 2, "leftoverFiles": 1, "fullText": "rewritten", "writeAheadLog": "pinned",
            "database": "freelist",
            "oldBlocks": [{"fileSystem": "canary-fs", "fate": "overwritten", "files": 3},
                          {"fileSystem": "canary-fs", "fate": "linked", "files": 1}],
        },
        "verification": {
            "result": "residue", "needles": 40, "sharedNeedles": 3, "files": 12, "bytes": 3_456_789,
            "residue": [{**place, "path": "canary-residue"}],
            "kept": [{"what": "canary-kept", "places": 2}],
            "review": [{**place, "path": "canary-review"}],
        },
        "receipt": {"id": "ab" * 16, "resumed": True, "completed": False, "chain": {"seq": 7, "hash": "cd" * 32}},
    }  # fmt: skip
    ForgetReport.model_validate(found)
    return found


CANARIES: dict[str, set[str]] = {
    "sessions": {"canary-agent", "canary-session-1", "canary-session-2", "canary-session-key"},
    "participants": {"canary-actor", "canary-stranger", "canary-type", "canary-identity"},
    "entries": {"canary-entry-1", "canary-entry-2", "canary-mixed", "canary-untargetable"},
    "files": {
        "canary-written", "canary-external", "canary-shared:3", "canary-refusal", "canary-pending", "canary-residue",
        "canary-review",
    },
}  # fmt: skip
ALL: set[str] = {name for names in CANARIES.values() for name in names}
NEVER = {"canary-table", "canary-fs", "canary-kept"}


class Reader(HTMLParser):
    """Reads a page strictly: every element is closed in turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.seen}

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


def canaries(page: str) -> set[str]:
    return set(re.findall(r"canary-[a-z0-9:-]*[a-z0-9]", page))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in cast("dict[str, Any]", value).values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from strings(inner)


# -- what it keeps to itself ------------------------------------------------------------------


def test_every_string_that_could_name_somebody_is_a_canary() -> None:
    plain = {
        "live", "unresolved", "wal", "rewritten", "pinned", "freelist", "overwritten", "linked", "residue", "free",
        "ab" * 16, "cd" * 32,
    }  # fmt: skip
    assert set(strings(report())) - plain == ALL | NEVER


def test_nobody_is_named_unless_selected() -> None:
    page = html_of(report())
    assert "canary" not in page
    assert "It names nobody." in Reader(page).text


@pytest.mark.parametrize("kind", SELECTIONS)
def test_each_selection_names_its_own_and_only_its_own(kind: str) -> None:
    assert canaries(html_of(report(), [kind])) == CANARIES[kind]


def test_all_selections_together() -> None:
    assert canaries(html_of(report(), SELECTIONS)) == ALL


def test_the_command_line_offers_the_selections() -> None:
    assert tuple(Selection) == SELECTIONS


# -- what it says -----------------------------------------------------------------------------


def test_counts_in_plain_words() -> None:
    text = Reader(html_of(report())).text
    for said in (
        "The erasure is not complete: 2 things are left to do.",
        "derived from 2 conversations was to be erased.",
        "1 conversation that is still there",
        "2 persons were named; conversations in which they took part count as a whole. Known by name today: 1.",
        "Entries in memory files 1,234",
        "1 entry that came from several conversations went as a whole.",
        "An earlier run was interrupted.",
        "40 erased pieces of text were looked for",
        "in 12 files (3.5 MB)",
        "1 place holds some still.",
        "3 pieces were not looked for, because conversations that stay said the same.",
        "The old content of 3 rewritten or removed files was overwritten with zeros.",
        "1 file that the agent was told to write",
        "1 entry of unknown origin",
        "Another program is still reading an old state of the data",
        "1 step is left to do.",
        "1 place was not read or not changed.",
        "number 7",
        "ab" * 16,
        "cd" * 32,
    ):
        assert said in text, said
    assert not re.search(r"[a-z][A-Z]", text), "a field name"


def test_every_kind_of_artifact_has_its_row() -> None:
    numbers = re.findall(r'<td class="number">([0-9,]+)</td>', html_of(report()))
    assert numbers == ["3", "1,234", *map(str, range(5, 17))]


def with_(**changed: object) -> dict[str, Any]:
    return report() | changed


CLEAN: dict[str, Any] = {
    "result": "clean",
    "needles": 1,
    "sharedNeedles": 0,
    "files": 1,
    "bytes": 5,
    "residue": [],
    "review": [],
}
DONE: dict[str, Any] = {
    "pending": [], "refusals": [], "verification": CLEAN,
    "receipt": {"id": "ab" * 16, "resumed": False, "completed": True, "chain": None},
}  # fmt: skip
OUTCOMES: dict[str, tuple[dict[str, Any], str]] = {
    "complete": (DONE, "The erasure is complete. A search of every byte found nothing that was to be erased."),
    "but": ({**DONE, "refusals": ["x"]}, "to be erased. But 1 place was not read or not changed."),
    "pending": ({**DONE, "pending": ["x"]}, "The erasure is not complete: 1 thing is left to do."),
    "residue": ({**DONE, "verification": {**CLEAN, "result": "residue"}}, "not complete: a search found traces"),
    "open": ({**DONE, "receipt": {"completed": False}}, "not complete: its receipt is not closed."),
    "unchecked": ({**DONE, "verification": None}, "does not tell whether anything was left of it."),
    "not run": ({**DONE, "verification": {**CLEAN, "result": "not-run"}}, "does not tell whether anything was left"),
    "nothing": ({**DONE, "sessionIds": []}, "Nothing was erased: no conversation matches what was asked."),
}


@pytest.mark.parametrize(("changed", "said"), OUTCOMES.values(), ids=OUTCOMES)
def test_the_outcome_stands_first(changed: dict[str, Any], said: str) -> None:
    page = html_of(with_(**changed))
    (status,) = re.findall(r'<p class="status">(.*?)</p>', page)
    assert said in status
    assert ("The erasure is complete." in page) == (said in (OUTCOMES["complete"][1], OUTCOMES["but"][1]))


def test_a_preview_says_so_and_claims_nothing() -> None:
    text = Reader(html_of(with_(dryRun=True, pending=[], measured=None, verification=None, receipt=None))).text
    assert "PREVIEW: nothing was removed." in text
    assert "What would be removed" in text
    assert "What was removed" not in text
    assert "complete" not in text
    assert "A preview leaves no receipt." in text


def test_a_title_does_not_hide_that_it_is_a_preview() -> None:
    page = html_of(with_(dryRun=True), title="For <Anna>")
    assert "<title>For &lt;Anna&gt;</title>" in page
    assert "<h1>For &lt;Anna&gt;</h1>" in page
    assert "PREVIEW: nothing was removed." in page


def test_a_report_of_the_memory_command_of_openclaw() -> None:
    """It has none of the fields that came later, and some that nobody here knows."""
    names = [
        "agentId", "dryRun", "sessionIds", "participantMatches", "sessionResolutions", "entryKeys",
        "mixedLineageEntryKeys", "untargetableEntryKeys", "curatedWrites", "artifacts", "refusals",
    ]  # fmt: skip
    older = {name: report()[name] for name in names} | {"unknown": {"canary-new": "canary-new"}}
    page = html_of(older)
    assert "canary" not in page
    assert "The report tells of no check." in page
    assert "The report names no receipt." in page


def test_words_that_are_not_known_are_left_out() -> None:
    odd = with_(
        verification={**CLEAN, "result": "canary-result"},
        measured={"database": "canary-database", "oldBlocks": [{"fate": "canary-fate", "files": 1}]},
        receipt={"id": "canary receipt", "chain": {"seq": 1, "hash": "canary hash"}},
        sessionResolutions=[{"sessionId": "s", "source": "canary-source"}],
    )
    assert "canary" not in html_of(odd)


# -- that it stands alone ---------------------------------------------------------------------


def test_it_is_one_closed_file_without_script_or_reference() -> None:
    read = Reader(html_of(report(), SELECTIONS))
    assert not read.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form", "a", "svg"}
    for tag, attributes in read.seen:
        assert not {"src", "href", "srcset", "style", "action"} & attributes.keys(), tag
        assert not any(name.startswith("on") for name in attributes)
    page = html_of(report())
    assert page.startswith("<!DOCTYPE html>\n")
    assert "default-src 'none'; style-src 'unsafe-inline'" in page
    assert not re.search(r"url\(|@import|https?:", page)


def test_it_can_be_read_by_everyone_and_printed() -> None:
    page = html_of(report(), SELECTIONS)
    read = Reader(page)
    assert ("html", {"lang": "en"}) in read.seen
    headings = [tag for tag, _ in read.seen if re.fullmatch("h[1-6]", tag)]
    assert headings == ["h1"] + ["h2"] * 6
    cells = [attributes for tag, attributes in read.seen if tag == "th"]
    assert cells
    assert all(attributes.get("scope") in {"row", "col"} for attributes in cells)
    tables = [tag for tag, _ in read.seen if tag == "table"]
    assert len(tables) == len([tag for tag, _ in read.seen if tag == "caption"]) == 1
    assert "@media print" in page
    assert "break-inside: avoid" in page


HOSTILE = "</code></style></title><script>alert(1)</script><img src=x onerror=y>\"'&\x00\x1b\u202e\ud800\r\n"


def spoiled(value: Any) -> Any:
    """Every canary becomes something that tries to break out."""
    if isinstance(value, str):
        return HOSTILE if value.startswith("canary") else value
    if isinstance(value, dict):
        return {name: spoiled(inner) for name, inner in cast("dict[str, Any]", value).items()}
    return [spoiled(inner) for inner in cast("list[Any]", value)] if isinstance(value, list) else value


def test_nothing_in_a_report_breaks_out() -> None:
    page = html_of(spoiled(report()), SELECTIONS, title=HOSTILE)
    read = Reader(page)
    assert read.tags == Reader(html_of(report(), SELECTIONS)).tags
    assert page.encode()
    assert not re.search("[\x00\x1b\u202e]", page)
    assert "<script>alert(1)</script>" in read.text


@given(st.text())
def test_any_text_is_shown_or_replaced(text: str) -> None:
    read = Reader(html_of(with_(refusals=[text]), ["files"]))
    assert read.tags == Reader(html_of(report(), ["files"])).tags


# -- what is no report ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other", [None, [], 1, "x", {}, {"ok": False, "error": {"message": "canary"}}, with_(dryRun=1), with_(artifacts=[])]
)
def test_what_is_no_report(other: object) -> None:
    with pytest.raises(NotAReport, match=r"^It is not the report of a deletion; cenotaph forget --json prints one$"):
        html_of(other)


DAMAGED: list[tuple[dict[str, Any], str]] = [
    ({"artifacts": {"memoryLines": "many"}}, r"artifacts\.memoryLines is not a whole number"),
    ({"artifacts": {"memoryLines": -1}}, r"artifacts\.memoryLines is not a whole number"),
    ({"verification": {**CLEAN, "bytes": 10**400}}, r"verification\.bytes is not a whole number"),
    (
        {"participantMatches": [{"identities": [{"\x1b[31m\n": 1}]}]},
        r"participantMatches.*\[\]\.\ufffd\[31m\ufffd is not a text",
    ),
    ({"artifacts": {"memoryLines": True}}, r"artifacts\.memoryLines is not a whole number"),
    ({"entryKeys": {}}, "entryKeys is not a list"),
    ({"sessionIds": [1]}, "sessionIds is not a list of texts"),
    ({"pending": "wal"}, "pending is not a list"),
    ({"curatedWrites": ["canary"]}, "curatedWrites is not a list of objects"),
    ({"verification": []}, "verification is not an object"),
    ({"verification": {"result": 1}}, r"verification\.result is not a text"),
    ({"receipt": {"id": "ab", "completed": "no"}}, r"receipt\.completed is not true or false"),
]


@pytest.mark.parametrize(("changed", "message"), DAMAGED)
def test_a_damaged_report(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(NotAReport, match=rf"^It is damaged: its {message}; make the report again$"):
        html_of(with_(**changed), SELECTIONS)


# -- the command ------------------------------------------------------------------------------


def run(cli: CommandLine, *words: str | Path) -> Done:
    command = [*cli.command, "report", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=cli.environment())
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report()), encoding="utf-8")
    return path


def test_a_page_of_a_real_deletion(cli: CommandLine, maker: StateMaker, tmp_path: Path) -> None:
    files = {"MEMORY.md": f"{marker('gone:e')}\n- entry\n\n> {SECRET}\n"}
    own(play(maker, files), ["gone:e"]).seal()
    report_file, page = tmp_path / "r.json", tmp_path / "page.html"
    printed = cli(maker.state, "forget", "--session", TARGET, "--json").out
    report_file.write_text(printed, encoding="utf-8")
    done = run(cli, report_file, "--html", page, "--title", "Your request of May")
    assert (done.status, done.out, done.err) == (0, f"Page: {page}\n", "")
    content = page.read_text(encoding="utf-8")
    assert "The erasure is complete." in content
    assert "<h1>Your request of May</h1>" in content
    assert json.loads(printed)["receipt"]["id"] in content
    for private in (TARGET, "gone:e", str(maker.root), "violet"):
        assert private not in content
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    named = run(cli, report_file, "--html", tmp_path / "named.html", "--show", "sessions", "--show", "entries")
    assert named.status == 0
    assert TARGET in (tmp_path / "named.html").read_text(encoding="utf-8")


def test_nothing_is_replaced_without_force(cli: CommandLine, saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("precious", encoding="utf-8")
    done = run(cli, saved, "--html", page)
    assert (done.status, done.out, page.read_text(encoding="utf-8")) == (1, "", "precious")
    assert f"{page}: It is already there; choose another name or give --force" in done.err
    assert run(cli, saved, "--html", page, "--force").status == 0
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert sorted(os.listdir(tmp_path)) == ["page.html", "report.json"]


@pytest.mark.parametrize("content", [b"", b"text", b"\xff", b"[]", b'{"ok": false}', b"[" * 100_000])
def test_a_file_that_is_no_report(cli: CommandLine, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "other"
    file.write_bytes(content)
    done = run(cli, file, "--html", tmp_path / "page.html")
    assert (done.status, done.out) == (1, "")
    assert re.search(rf"Reason: No page can be made of {file}: It is not (JSON|the report of a deletion);", done.err)
    assert os.listdir(tmp_path) == ["other"]


def test_folders_that_are_not_there(cli: CommandLine, saved: Path, tmp_path: Path) -> None:
    for words in ((saved, "--html", tmp_path / "no" / "page"), (tmp_path / "no", "--html", tmp_path / "page")):
        done = run(cli, *words)
        assert (done.status, done.out) == (1, "")
        assert f"{tmp_path / 'no'}: No such file or directory" in done.err
    assert run(cli, saved).status == 2
    assert run(cli, saved, "--html", tmp_path / "page", "--show", "everything").status == 2
