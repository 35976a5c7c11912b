"""The command line: words in, words out. Exit status: 0 done, 1 error, 2 wrong usage, 3 incomplete."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Annotated

import typer

from cenotaph.cli import certificate, forget, init, keys, receipts, report, verify

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Memory for AI agents that can forget on request and prove it.",
    epilog="Exit status: 0 done, 1 error, 2 wrong usage, 3 incomplete (the report says what is left).",
)


def _version(asked: bool) -> None:  # noqa: FBT001 -- the shape of an option callback
    if asked:
        from cenotaph._core import __version__  # noqa: PLC0415 -- only this option needs it

        typer.echo(f"cenotaph {__version__}")
        raise typer.Exit


@app.callback()
def _cenotaph(  # pyright: ignore[reportUnusedFunction] -- registered by the decorator
    context: typer.Context,
    state_dir: Annotated[
        Path | None,
        typer.Option(
            "--state-dir",
            metavar="DIR",
            help="State directory; else CENOTAPH_STATE_DIR, OPENCLAW_STATE_DIR, ~/.cenotaph.",
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version
    context.obj = state_dir


app.command("init")(init.init)
app.command("forget")(forget.forget)
app.command("verify")(verify.verify)
app.command("report")(report.report)
app.add_typer(receipts.app, name="receipts")
app.add_typer(keys.app, name="keys")
app.add_typer(certificate.app, name="certificate")


def main() -> None:
    """Runs the command line."""
    # A command makes no garbage worth collecting before it ends, and looking for it costs a twentieth of its time.
    gc.disable()
    app(prog_name="cenotaph")
