"""`cenotaph keys new`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cenotaph.cli.outcome import reported

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Key pairs that certificates are signed with.")


@app.callback()
def _keys() -> None:  # pyright: ignore[reportUnusedFunction] -- keeps `new` a word of its own
    pass


@app.command("new")
def new(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="File of the private key; the public one gets .pub.")],
) -> None:
    """Make a key pair: PATH, which its owner alone can read, and PATH.pub. Nothing is ever overwritten."""
    with reported("No key was made", as_json=False):
        from cenotaph.certificate import key_id  # noqa: PLC0415 -- heavy, and not needed for --help
        from cenotaph.keys import new_key_pair  # noqa: PLC0415 -- likewise

        made = key_id(new_key_pair(path).public_key())
    typer.echo(f"Private key: {path}\nPublic key: {path}.pub\nKey id: {made}")
