"""`cenotaph report`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cenotaph.cli.outcome import reported


class Selection(StrEnum):
    """Kinds of personal data that a page may show; `cenotaph.html_report.SELECTIONS`."""

    SESSIONS = "sessions"
    PARTICIPANTS = "participants"
    ENTRIES = "entries"
    FILES = "files"


_NONE: list[Selection] = []


def report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A report that forget --json printed.")],
    html: Annotated[Path, typer.Option("--html", metavar="OUT", help="The page to write, for its owner alone.")],
    show: Annotated[
        list[Selection], typer.Option("--show", help="Name these instead of only counting them. Repeatable.")
    ] = _NONE,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Heading of the page.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it is there.")] = False,
) -> None:
    """Make a page for the person who asked for an erasure: one file, no names unless selected, made to be printed."""
    with reported(f"No page can be made of {file}", as_json=False):
        from cenotaph.html_report import html_of, read_report, write_page  # noqa: PLC0415 -- not needed for --help

        write_page(html, html_of(read_report(file), show, title=title), replace=force)
    typer.echo(f"Page: {html}")
