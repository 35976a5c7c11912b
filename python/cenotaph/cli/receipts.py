"""`cenotaph receipts list|show|verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from cenotaph.cli.outcome import fail, reported

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="What erasures did: counts and keyed hashes, chained so that no link can be altered or taken out.",
)

_Agent = Annotated[str | None, typer.Option("--agent", metavar="ID", help="Agent; else the default agent.")]
_Json = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@app.command("list")
def list_receipts(context: typer.Context, agent: _Agent = None, as_json: _Json = False) -> None:
    """List the receipts, those that were begun and not completed marked."""
    with reported("Receipts cannot be read", as_json=as_json):
        from cenotaph.ledger import describe, read_ledger, to_json  # noqa: PLC0415 -- not needed for --help
        from cenotaph.place import find_place  # noqa: PLC0415 -- likewise

        ledger = read_ledger(find_place(context.obj, agent))
    typer.echo(to_json(ledger.erasures) if as_json else "\n".join(describe(ledger.erasures)))


@app.command("show")
def show_receipt(
    context: typer.Context,
    receipt: Annotated[str, typer.Argument(metavar="RECEIPT", help="Its id, or the beginning of it.")],
    agent: _Agent = None,
    as_json: _Json = False,
) -> None:
    """Show one receipt with every link that tells of it."""
    with reported("Receipts cannot be read", as_json=as_json):
        from cenotaph.ledger import describe_one, read_ledger, to_json  # noqa: PLC0415 -- not needed for --help
        from cenotaph.place import find_place  # noqa: PLC0415 -- likewise

        found = read_ledger(find_place(context.obj, agent)).find(receipt)
    typer.echo(to_json([found]) if as_json else "\n".join(describe_one(found)))


@app.command("verify")
def verify_chain(context: typer.Context, agent: _Agent = None, as_json: _Json = False) -> None:
    """Compute every hash of the chains again. Exit status 1 when a link does not hold."""
    with reported("Receipts cannot be read", as_json=as_json):
        from cenotaph.ledger import read_ledger  # noqa: PLC0415 -- not needed for --help
        from cenotaph.place import find_place  # noqa: PLC0415 -- likewise

        ledger = read_ledger(find_place(context.obj, agent))
    if ledger.broken:
        database, seq, reason = ledger.broken[0]
        fail(f"Link {seq} of the chain in {database} does not hold: {reason}", as_json=as_json)
    heads = [{"database": name, "links": head.seq, "hash": head.hash} for name, head in ledger.heads]
    if as_json:
        import json  # noqa: PLC0415 -- only --json needs it

        typer.echo(json.dumps({"ok": True, "chains": heads}, indent=2))
        return
    typer.echo(
        "\n".join(f"{head['database']}: {head['links']} links hold; head {head['hash']}" for head in heads)
        or "No receipts"
    )
