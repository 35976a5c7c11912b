"""`cenotaph verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from cenotaph.cli.outcome import reported
from cenotaph.cli.progress import progress


def verify(
    context: typer.Context,
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="Agent; else the default agent.")] = None,
    receipt: Annotated[
        list[str] | None,
        typer.Option("--receipt", metavar="ID", help="Receipt of an erasure; else every one of the agent. Repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Look whether anything of past erasures has come back, from the keyed hashes that their receipts keep.

    Every byte of every file below the state directory and the workspaces is read. Exit status 3: something was found.
    """
    with reported("Verification failed", as_json=as_json):
        from cenotaph.memory import open as open_memory  # noqa: PLC0415 -- heavy, and not needed for --help
        from cenotaph.verify.again import describe  # noqa: PLC0415 -- likewise

        with progress() as step, open_memory(context.obj, agent=agent) as memory:
            step("Looking for what was removed")
            found = memory.verify(receipts=receipt or ())
    typer.echo(found.to_json() if as_json else "\n".join(describe(found)))
    raise typer.Exit(found.exit_status)
