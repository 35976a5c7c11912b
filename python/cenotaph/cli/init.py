"""`cenotaph init`."""

from __future__ import annotations

from typing import Annotated

import typer

from cenotaph.cli.outcome import reported


def init(
    context: typer.Context,
    agent: Annotated[str, typer.Option("--agent", metavar="ID", help="Agent of the new state directory.")] = "main",
) -> None:
    """Make a native state directory: configuration, databases, workspace. What is there stays."""
    from cenotaph.memory import create_place  # noqa: PLC0415 -- heavy, and not needed for --help

    with reported("Memory init failed", as_json=False):
        made = create_place(context.obj, agent=agent)
        typer.echo(f"State directory: {made.state_dir}")
        typer.echo(f"Workspace: {made.workspace}")
