"""`cenotaph forget`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cenotaph.cli.outcome import reported
from cenotaph.cli.progress import progress

_NONE: list[str] = []


def forget(  # noqa: PLR0913 -- one parameter for each option
    context: typer.Context,
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="Agent; else the default agent.")] = None,
    session: Annotated[
        list[str], typer.Option("--session", metavar="ID-OR-KEY", help="Session id or session key, exact. Repeatable.")
    ] = _NONE,
    hook_source: Annotated[
        list[str], typer.Option("--hook-source", metavar="SOURCE", help="Hook source, exact. Repeatable.")
    ] = _NONE,
    participant: Annotated[
        list[str],
        typer.Option("--participant", metavar="ACTOR-ID", help="Raw participant id, any namespace. Repeatable."),
    ] = _NONE,
    since: Annotated[
        str | None, typer.Option("--since", metavar="DATE", help="Only sessions created at or after this date.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would go; change nothing.")] = False,
    keep_shared: Annotated[
        bool,
        typer.Option("--keep-shared", help="Keep quoted lines whose only snippets surviving sessions also said."),
    ] = False,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="FILE", help="Write a signed certificate of the deletion; needs --key."),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option("--key", metavar="FILE", help="Private key that signs it; cenotaph keys new makes one."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Delete everything that memory derived from the selected sessions. Selectors are OR-ed.

    Source transcripts stay. Exit status 3: something is left, and the report says what; run the command again.
    """
    signing = _signing(certificate, key, dry_run=dry_run)
    with reported("Memory forget failed", as_json=as_json):
        from cenotaph.forget.report import describe  # noqa: PLC0415 -- heavy, and not needed for --help
        from cenotaph.memory import open as open_memory  # noqa: PLC0415 -- likewise

        with progress() as step, open_memory(context.obj, agent=agent) as memory:
            report = memory.forget(
                sessions=session,
                hook_sources=hook_source,
                participants=participant,
                since=since,
                dry_run=dry_run,
                keep_shared=keep_shared,
                certificate=signing,
                on_step=step,
            )
    typer.echo(report.to_json() if as_json else "\n".join(describe(report)))
    if certificate is not None:
        missing = "the deletion is not complete" if report.exit_status else "no session was selected"
        state = f"written to {certificate}" if certificate.exists() else f"not written, because {missing}"
        typer.echo(f"Certificate: {state}", err=as_json)
    raise typer.Exit(report.exit_status)


def _signing(certificate: Path | None, key: Path | None, *, dry_run: bool) -> tuple[Path, Path] | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise typer.BadParameter("--certificate FILE and --key FILE belong together; cenotaph keys new makes a key")
    if dry_run:
        raise typer.BadParameter("a dry run removes nothing, so there is nothing to certify; leave out --certificate")
    return certificate, key
