"""The report of a deletion as one page for the person who asked for it.

The page stands alone: no script, nothing from elsewhere. It counts; a name, an id or a path of the report stands in it
only where the caller selected its kind. It reads reports of this version, older ones, and OpenClaw's, which lack some
fields.
"""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cenotaph.errors import CenotaphError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

SELECTIONS = ("sessions", "participants", "entries", "files")
"""Kinds of personal data that a page shows only on demand."""


class NotAReport(CenotaphError):
    """What was given is not the report of a deletion; the message says why."""


def html_of(report: object, show: Collection[str] = (), *, title: str | None = None) -> str:
    """The page, as HTML in one string, without a character that UTF-8 cannot spell.

    `report`: parsed JSON of `forget --json`. `show`: which of `SELECTIONS` may be named. `title`: heading of the page.
    Raises `NotAReport`; a field that is missing is left out, one of another type than it should have is an error.
    """
    page = _Page(_Fields(_checked(report), ""), frozenset(show))
    label = title or ("Preview of an erasure" if page.is_preview else "Report of an erasure")
    body = "\n".join(_body(page, label))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{_POLICY}\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(label)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n"
        "</html>\n"
    )


def read_report(path: Path) -> object:
    """Parsed JSON of a file. Raises `NotAReport`, `OSError`."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        raise NotAReport("It is not JSON; cenotaph forget --json prints a report") from None


def write_page(path: Path, page: str, *, replace: bool) -> None:
    """Writes the whole file or none of it, mode 0600.

    Raises `OSError`, of which `FileExistsError` when the file is there and not to be replaced.
    """
    try:
        descriptor, fresh = tempfile.mkstemp(dir=path.parent, prefix=".cenotaph-", suffix=".tmp")
    except OSError as error:
        # The name that the caller knows, not the one of the moment.
        raise OSError(error.errno, error.strerror, str(path.parent)) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(page.encode())
            file.flush()
            os.fsync(descriptor)
        if replace:
            Path(fresh).replace(path)
        else:
            # A rename would replace a file that came in between; a link does not.
            path.hardlink_to(fresh)
    except FileExistsError:
        raise FileExistsError(errno.EEXIST, "It is already there; choose another name or give --force", path) from None
    finally:
        Path(fresh).unlink(missing_ok=True)


_POLICY = (
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light">'
)
# Margins and no page size: it prints on A4 and on Letter.
_STYLE = """\
@page { margin: 20mm; }
html { background: #fff; color: #111; font: 100%/1.5 system-ui, sans-serif; }
body { margin: 0; }
main { max-width: 44rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.6rem; line-height: 1.2; }
h2 { font-size: 1.2rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; font-weight: bold; padding: .5rem 0; }
th, td { border-bottom: 1px solid #767676; padding: .3rem .5rem; text-align: left; vertical-align: top; }
td.number { text-align: right; white-space: nowrap; }
code { font-family: ui-monospace, monospace; font-size: .9em; overflow-wrap: anywhere; }
.status { border: 2px solid #111; padding: .75rem 1rem; font-weight: bold; }
footer { border-top: 1px solid #767676; margin-top: 2rem; font-size: .9rem; }
@media print {
  html { font-size: 11pt; color: #000; }
  main { max-width: none; padding: 0; }
  h1, h2, caption { break-after: avoid; }
  tr, li, p, .status { break-inside: avoid; }
  thead { display: table-header-group; }
}
"""


# -- reading what may be missing --------------------------------------------------------------


_SAFE_INTEGER = 2**53 - 1
_NO_REPORT = "It is not the report of a deletion; cenotaph forget --json prints one"


def _checked(report: object) -> dict[str, Any]:
    if not isinstance(report, dict):
        raise NotAReport(_NO_REPORT)
    fields = cast("dict[str, Any]", report)
    is_report = (
        isinstance(fields.get("dryRun"), bool)
        and isinstance(fields.get("sessionIds"), list)
        and isinstance(fields.get("artifacts"), dict)
    )
    if not is_report:
        raise NotAReport(_NO_REPORT)
    return fields


@dataclass(frozen=True, slots=True)
class _Fields:
    """Members of a JSON object, by type. Absent and null are the same."""

    members: dict[str, Any]
    where: str

    def count(self, name: str) -> int | None:
        value = self.members.get(name)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _SAFE_INTEGER):
            return value
        raise self._wrong(name, "a whole number")

    def text(self, name: str) -> str | None:
        value = self.members.get(name)
        if value is None or isinstance(value, str):
            return value
        raise self._wrong(name, "a text")

    def flag(self, name: str) -> bool | None:
        value = self.members.get(name)
        if value is None or isinstance(value, bool):
            return value
        raise self._wrong(name, "true or false")

    def texts(self, name: str) -> list[str]:
        values = self._list(name)
        if all(isinstance(value, str) for value in values):
            return cast("list[str]", values)
        raise self._wrong(name, "a list of texts")

    def object(self, name: str) -> _Fields | None:
        value = self.members.get(name)
        if value is None:
            return None
        if isinstance(value, dict):
            return _Fields(cast("dict[str, Any]", value), f"{self.where}{name}.")
        raise self._wrong(name, "an object")

    def objects(self, name: str) -> list[_Fields]:
        values = self._list(name)
        if all(isinstance(value, dict) for value in values):
            return [_Fields(cast("dict[str, Any]", value), f"{self.where}{name}[].") for value in values]
        raise self._wrong(name, "a list of objects")

    def _list(self, name: str) -> list[object]:
        value = self.members.get(name)
        if value is None or isinstance(value, list):
            return cast("list[object]", value or [])
        raise self._wrong(name, "a list")

    def _wrong(self, name: str, what: str) -> NotAReport:
        # An identity's members are named by the file itself.
        member = _UNPRINTABLE.sub("\ufffd", f"{self.where}{name}")
        return NotAReport(f"It is damaged: its {member} is not {what}; make the report again")


@dataclass(frozen=True, slots=True)
class _Page:
    report: _Fields
    show: frozenset[str]

    @property
    def is_preview(self) -> bool:
        return self.report.flag("dryRun") is True

    def shows(self, kind: str) -> bool:
        return kind in self.show


# -- spelling ---------------------------------------------------------------------------------

# Controls that could hide or turn text, and halves of surrogate pairs, which UTF-8 cannot spell.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def _text(text: str) -> str:
    return escape(_UNPRINTABLE.sub("\ufffd", text))


def _code(text: str) -> str:
    return f"<code><bdi>{_text(text)}</bdi></code>"


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _size(count: int) -> str:
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB"]
    while size >= 1000 and len(units) > 1:  # noqa: PLR2004 -- decimal units
        size, units = size / 1000, units[1:]
    return f"{count:,} bytes" if units[0] == "bytes" else f"{size:.1f} {units[0]}"


def _list_of(items: Collection[str]) -> Iterator[str]:
    """`items` are HTML."""
    if items:
        yield "<ul>"
        yield from (f"<li>{item}</li>" for item in items)
        yield "</ul>"


def _named(intro: str, values: Collection[str]) -> Iterator[str]:
    """`values` are not HTML."""
    if values:
        yield f"<p>{intro}</p>"
        yield from _list_of([_code(value) for value in values])


# -- the page ---------------------------------------------------------------------------------


def _body(page: _Page, label: str) -> Iterator[str]:
    yield f"<h1>{_text(label)}</h1>"
    yield f'<p class="status">{_status(page)}</p>'
    sections = (
        ("What was asked", _asked),
        ("What would be removed" if page.is_preview else "What was removed", _removed),
        ("How it was checked", _check),
        ("What is kept, and why", _kept),
        ("What could not be done", _left),
        ("Proof", _proof),
    )
    for heading, lines in sections:
        yield f"<section>\n<h2>{heading}</h2>"
        yield from lines(page)
        yield "</section>"
    named = [each for each in SELECTIONS if page.shows(each)]
    shown = f"Shown by name at the wish of the operator: {', '.join(named)}." if named else "It names nobody."
    yield f"<footer><p>This page holds no text of any conversation. {shown}</p></footer>"


def _status(page: _Page) -> str:
    report = page.report
    if page.is_preview:
        return "PREVIEW: nothing was removed. This page shows what an erasure would do."
    if not report.texts("sessionIds"):
        return "Nothing was erased: no conversation matches what was asked."
    left = report.texts("pending")
    if left:
        things = _number(len(left), "thing is", "things are")
        return f"The erasure is not complete: {things} left to do. See “What could not be done”."
    return _outcome(report)


def _outcome(report: _Fields) -> str:
    checked, receipt = report.object("verification"), report.object("receipt")
    result = checked.text("result") if checked else None
    if result == "residue":
        return "The erasure is not complete: a search found traces of it. See “What could not be done”."
    if receipt and receipt.flag("completed") is False:
        return "The erasure is not complete: its receipt is not closed. The operator runs the same erasure again."
    if result != "clean":
        return "The erasure was carried out. The report does not tell whether anything was left of it."
    refused = len(report.texts("refusals"))
    places = _number(refused, "place was", "places were")
    but = f" But {places} not read or not changed. See “What could not be done”." if refused else ""
    return f"The erasure is complete. A search of every byte found nothing that was to be erased.{but}"


def _asked(page: _Page) -> Iterator[str]:
    sessions = page.report.texts("sessionIds")
    talks = _number(len(sessions), "conversation", "conversations") if sessions else "no conversation that is known"
    yield f"<p>Everything that the memory of an agent had derived from {talks} was to be erased.</p>"
    yield from _list_of(list(_found(page.report.objects("sessionResolutions"))))
    matches = page.report.objects("participantMatches")
    if matches:
        known = sum(bool(match.objects("identities")) for match in matches)
        who = _number(len(matches), "person was named; conversations", "persons were named; conversations")
        yield f"<p>{who} in which they took part count as a whole. Known by name today: {known:,}.</p>"
    agent = page.report.text("agentId")
    if page.shows("sessions"):
        yield from _named("The agent:", [agent] if agent else [])
        yield from _named("The conversations:", [*dict.fromkeys([*sessions, *_session_names(page.report)])])
    if page.shows("participants"):
        yield from _named("The persons:", [*dict.fromkeys(_person_names(matches))])


_SOURCES = {
    "live": ("conversation that is still there", "conversations that are still there"),
    "archived": ("conversation in the archive", "conversations in the archive"),
    "unresolved": ("name of a conversation that is no longer there", "names of conversations no longer there"),
}


def _found(resolutions: list[_Fields]) -> Iterator[str]:
    sources = [each.text("source") for each in resolutions]
    for source, (one, many) in _SOURCES.items():
        if source in sources:
            yield _number(sources.count(source), one, many)


def _session_names(report: _Fields) -> Iterator[str]:
    for each in report.objects("sessionResolutions"):
        yield from filter(None, (each.text("sessionId"), each.text("sessionKey")))


def _person_names(matches: list[_Fields]) -> Iterator[str]:
    for match in matches:
        yield from filter(None, [match.text("actorId")])
        for identity in match.objects("identities"):
            named = ((name, identity.text(name)) for name in identity.members)
            yield ", ".join(f"{name}: {value}" for name, value in named if value is not None)


_ARTIFACTS = {
    "memoryFiles": "memory files that were changed",
    "memoryEntries": "entries in memory files",
    "memoryLines": "lines in memory files that quoted what was said",
    "sessionCorpusFiles": "files with excerpts that were changed",
    "sessionCorpusLines": "excerpts of what was said",
    "indexChunks": "passages in the search index",
    "indexSources": "files that the search index listed",
    "ftsRows": "passages in the word search",
    "vectorRows": "passages in the search by meaning",
    "embeddingCacheRows": "stored computations for the search by meaning",
    "shortTermEntries": "notes in short-term memory",
    "seenHashScopes": "records of what had been read already",
    "backups": "backup copies that text was taken out of",
    "originRows": "records of which conversation an entry came from",
}


def _removed(page: _Page) -> Iterator[str]:
    artifacts = page.report.object("artifacts")
    counts = [(words, artifacts.count(name)) for name, words in _ARTIFACTS.items()] if artifacts else []
    rows = [(words, count) for words, count in counts if count]
    if rows:
        verb = "would be removed" if page.is_preview else "was removed"
        yield f"<table>\n<caption>What {verb}, by kind</caption>"
        yield '<thead><tr><th scope="col">Kind</th>\n<th scope="col">Number</th></tr></thead>\n<tbody>'
        for words, count in rows:
            yield f'<tr><th scope="row">{words.capitalize()}</th>\n<td class="number">{count:,}</td></tr>'
        yield "</tbody>\n</table>"
    else:
        yield "<p>Memory held nothing that was derived from these conversations.</p>"
    yield from _list_of(list(_removed_besides(page)))
    if page.shows("entries"):
        yield from _named("The entries:", page.report.texts("entryKeys"))
        yield from _named(
            "Of these, entries that came from several conversations:", page.report.texts("mixedLineageEntryKeys")
        )
    if page.shows("files"):
        shared = page.report.texts("sharedSnippetLocations")
        yield from _named("Lines that other conversations also said:", shared)


def _removed_besides(page: _Page) -> Iterator[str]:
    report, go = page.report, "would go" if page.is_preview else "went"
    mixed = len(report.texts("mixedLineageEntryKeys"))
    if mixed:
        came = _number(mixed, "entry that came", "entries that came")
        yield f"{came} from several conversations {go} as a whole."
    shared = report.count("sharedSnippetLines")
    if shared:
        yield f"Other conversations, which stay, had also said {_number(shared, 'line', 'lines')} of what {go}."
    measured = report.object("measured")
    barred = measured.count("tombstones") if measured else None
    if barred:
        taken = _number(barred, "conversation was", "conversations were")
        yield f"{taken} marked as forgotten: memory takes in nothing that is marked."
    receipt = report.object("receipt")
    if receipt and receipt.flag("resumed"):
        yield "An earlier run was interrupted. The numbers are what it had left."


def _check(page: _Page) -> Iterator[str]:
    found = page.report.object("verification")
    result = found.text("result") if found else None
    if found is None or result not in ("clean", "residue"):
        yield (
            "<p>A preview removes nothing, so there is nothing to check.</p>"
            if page.is_preview
            else "<p>The report tells of no check.</p>"
        )
        return
    looked = [
        _number(found.count("needles") or 0, "erased piece of text was", "erased pieces of text were"),
        "looked for, byte for byte and in every spelling in which they are stored, in",
        _number(found.count("files") or 0, "file", "files"),
        f"({_size(found.count('bytes') or 0)}) of the agent's data.",
    ]
    places = len(found.objects("residue"))
    ended = (
        "Nothing was found." if result == "clean" else f"{_number(places, 'place holds', 'places hold')} some still."
    )
    yield f"<p>{' '.join(looked)} {ended}</p>"
    yield from _list_of(list(_check_besides(page, found)))


_METHODS = {
    "secure-delete": "What was deleted from databases was overwritten with zeros at once.",
    "freelist": "What was deleted from databases was overwritten with zeros, and so were the remains of earlier "
    "deletions by other programs.",
    "vacuum": "What was deleted from databases was overwritten with zeros; a database was written anew to be rid of "
    "the remains of earlier deletions by other programs.",
}
_FATES = {
    "overwritten": "was overwritten with zeros",
    "linked": "was left, because another name of the file leads to it",
    "unsupported": "was left, because the file system does not overwrite in place",
    "failed": "could not be overwritten",
}


def _check_besides(page: _Page, found: _Fields) -> Iterator[str]:
    shared = found.count("sharedNeedles")
    if shared:
        pieces = _number(shared, "piece was", "pieces were")
        yield f"{pieces} not looked for, because conversations that stay said the same."
    measured = page.report.object("measured")
    if measured is None:
        return
    yield from filter(None, [_METHODS.get(measured.text("database") or "")])
    blocks = measured.objects("oldBlocks")
    for fate, words in _FATES.items():
        files = sum(block.count("files") or 0 for block in blocks if block.text("fate") == fate)
        if files:
            old = _number(files, "rewritten or removed file", "rewritten or removed files")
            yield f"The old content of {old} {words}."


def _kept(page: _Page) -> Iterator[str]:
    report = page.report
    yield from _list_of(list(_kept_kinds(report)))
    yield (
        "<p>No program can speak for copies that it does not see: backups and snapshots elsewhere, spare blocks of "
        "solid-state drives, and files that somebody took along.</p>"
    )
    if page.shows("entries"):
        yield from _named("Entries of unknown origin:", report.texts("untargetableEntryKeys"))
    if page.shows("files"):
        written = [each.text("relativePath") for each in report.objects("curatedWrites")]
        outside = [each.text("path") for each in report.objects("externalMatches")]
        yield from _named("Files that the agent wrote on purpose:", [*filter(None, written)])
        yield from _named("Files outside its memory:", [*filter(None, outside)])
        yield from _named("Files for their owner to review:", [*_paths(report, "review")])


def _kept_kinds(report: _Fields) -> Iterator[str]:
    sessions = len(report.texts("sessionIds"))
    if sessions:
        yield (
            f"The conversations themselves ({sessions:,}): an erasure of memory removes what was derived from them. "
            "Who wants the records gone, too, asks the operator to delete them."
        )
    written = len(report.objects("curatedWrites"))
    if written:
        files = _number(written, "file", "files")
        yield f"{files} that the agent was told to write during these conversations: a person decides about them."
    unknown = len(report.texts("untargetableEntryKeys"))
    if unknown:
        entries = _number(unknown, "entry", "entries")
        yield f"{entries} of unknown origin: nothing tells which conversation they came from."
    outside = len(report.objects("externalMatches"))
    if outside:
        files = _number(outside, "file outside the agent's memory has", "files outside the agent's memory have")
        yield f"{files} the same text: the agent may read them, but they belong to somebody else."
    review = _places(report, "review")
    if review:
        yield f"{_number(review, 'place', 'places')} with the same text in files that an erasure never edits."


def _places(report: _Fields, name: str) -> int:
    found = report.object("verification")
    return len(found.objects(name)) if found else 0


def _paths(report: _Fields, name: str) -> Iterator[str]:
    found = report.object("verification")
    for place in found.objects(name) if found else ():
        yield from filter(None, [place.text("path")])


def _left(page: _Page) -> Iterator[str]:
    report = page.report
    pending, refusals, residue = report.texts("pending"), report.texts("refusals"), _places(report, "residue")
    if not (pending or refusals or residue):
        yield "<p>Nothing: all that was planned can be done.</p>" if page.is_preview else "<p>Nothing.</p>"
        return
    yield from _list_of(list(_left_kinds(pending, refusals, residue)))
    if page.shows("files"):
        yield from _named("Left to do:", [each for each in pending if each != _LOG])
        yield from _named("Not read or not changed:", refusals)
        yield from _named("Where traces were found:", [*_paths(report, "residue")])


_LOG = "wal"


def _left_kinds(pending: list[str], refusals: list[str], residue: int) -> Iterator[str]:
    if _LOG in pending:
        yield (
            "Another program is still reading an old state of the data and keeps it from being cleared. When that "
            "program has ended, the operator runs the same erasure again."
        )
    rest = len(pending) - pending.count(_LOG)
    if rest:
        yield f"{_number(rest, 'step is', 'steps are')} left to do. The operator runs the same erasure again."
    if residue:
        hold = _number(residue, "place still holds", "places still hold")
        yield f"{hold} traces. The operator looks at them and runs the same erasure again."
    if refusals:
        places = _number(len(refusals), "place was", "places were")
        yield f"{places} not read or not changed. The operator opens them and runs the same erasure again."


_IDENTIFIER = re.compile(r"[0-9a-fA-F-]{1,64}")


def _proof(page: _Page) -> Iterator[str]:
    receipt = page.report.object("receipt")
    number = receipt.text("id") if receipt else None
    if receipt is None or number is None or not _IDENTIFIER.fullmatch(number):
        yield "<p>A preview leaves no receipt.</p>" if page.is_preview else "<p>The report names no receipt.</p>"
        return
    ended = "" if receipt.flag("completed") else " It is not closed yet, because something is left to do."
    yield f"<p>The receipt of this erasure is {_code(number)}.{ended}</p>"
    chain = receipt.object("chain")
    head = chain.text("hash") if chain else None
    if chain is not None and head is not None and _IDENTIFIER.fullmatch(head):
        yield (
            f"<p>It stands in a chain of receipts, from which none can be taken out unseen. The chain ended at number "
            f"{chain.count('seq') or 0:,} with {_code(head)}.</p>"
        )
    yield (
        "<p>If the operator made a signed certificate of this erasure, anybody with their public key can check "
        "it with <code>cenotaph certificate verify</code>. A certificate names nobody.</p>"
    )
