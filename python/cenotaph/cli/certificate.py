"""`cenotaph certificate verify|timestamp|timestamp-check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cenotaph.cli.outcome import reported
from cenotaph.cli.progress import progress

if TYPE_CHECKING:
    from cenotaph.certificate import CertificateInvalid, Predicate, StateFacts

_REFUSED = 3
_READABLE = 0o644

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Certificates of erasures: signed, without text, to be checked by anyone who has the public key.",
)


@app.command("verify")
def verify(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.")],
    key: Annotated[Path, typer.Option("--key", metavar="K", help="Public key of the signer, PEM.")],
    state_dir: Annotated[
        Path | None,
        typer.Option(
            "--state-dir", metavar="DIR", help="State directory to hold it against; else only the file is checked."
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="Agent; else the default agent.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what it says as JSON.")] = False,
) -> None:
    """Check a certificate: that it was signed with this key and not altered since, and what it says.

    With --state-dir also: that the directory holds the receipt, the chain and the tombstones that it names, and that a
    search of every byte finds nothing of what was erased. Exit status 3: the certificate is refused.
    """
    with reported("The certificate cannot be checked", as_json=as_json):
        from cenotaph.certificate import CertificateInvalid, check_state, key_id  # noqa: PLC0415 -- not for --help
        from cenotaph.certificate import verify as verify_file  # noqa: PLC0415 -- likewise
        from cenotaph.keys import load_public_key  # noqa: PLC0415 -- likewise

        public_key = load_public_key(key)
        try:
            said = verify_file(file.read_bytes(), public_key)
            facts = _facts(state_dir or context.obj, agent, said)
            if facts is not None:
                check_state(said, facts)
        except CertificateInvalid as refusal:
            _refuse(refusal, as_json=as_json)
            raise typer.Exit(_REFUSED) from None
    _tell(said, key_id(public_key), facts, as_json=as_json)


@app.command("timestamp")
def timestamp(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE.tsq", help="The query to write; not overwritten.")],
) -> None:
    """Write a query (RFC 3161) that asks a time stamp authority for a stamp of a certificate. Nothing is sent."""
    with reported("No query was written", as_json=False):
        from cenotaph.new_file import write_new  # noqa: PLC0415 -- not needed for --help
        from cenotaph.timestamp import query  # noqa: PLC0415 -- likewise

        write_new(out, query(file.read_bytes()), _READABLE)
    typer.echo(f"Query: {out}")


@app.command("timestamp-check")
def timestamp_check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The certificate.")],
    response: Annotated[Path, typer.Option("--response", metavar="FILE.tsr", help="What the authority answered.")],
    trust: Annotated[Path, typer.Option("--trust", metavar="CA.pem", help="Certificates that you trust, PEM.")],
    query: Annotated[
        Path | None, typer.Option("--query", metavar="FILE.tsq", help="The query; with it, its nonce is checked.")
    ] = None,
) -> None:
    """Check a time stamp (RFC 3161) of a certificate. Exit status 3: it is refused."""
    with reported("The time stamp cannot be checked", as_json=False):
        from cenotaph.timestamp import TimestampRefused, check  # noqa: PLC0415 -- not needed for --help

        asked = query.read_bytes() if query else None
        try:
            moment = check(response.read_bytes(), file.read_bytes(), trust.read_bytes(), asked)
        except TimestampRefused as refusal:
            typer.echo(f"[cenotaph] Time stamp refused: {refusal}", err=True)
            raise typer.Exit(_REFUSED) from None
    typer.echo(f"Time stamp: this certificate was there at {moment:%Y-%m-%dT%H:%M:%SZ}")


def _facts(state_dir: Path | None, agent: str | None, said: Predicate) -> StateFacts | None:
    if state_dir is None:
        return None
    from cenotaph.certify import state_facts  # noqa: PLC0415 -- only a state directory needs it
    from cenotaph.place import find_place  # noqa: PLC0415 -- likewise

    with progress() as step:
        step("Looking for what was erased")
        return state_facts(find_place(state_dir, agent), said)


def _refuse(refusal: CertificateInvalid, *, as_json: bool) -> None:
    if as_json:
        import json  # noqa: PLC0415 -- only --json needs it

        error = {"type": "certificate_refused", "reason": refusal.reason, "message": str(refusal)}
        typer.echo(json.dumps({"ok": False, "error": error}, ensure_ascii=False, indent=2))
    typer.echo(f"[cenotaph] Certificate refused ({refusal.reason}): {refusal}", err=True)


def _tell(said: Predicate, key: str, facts: StateFacts | None, *, as_json: bool) -> None:
    if as_json:
        import json  # noqa: PLC0415 -- only --json needs it

        found = {"ok": True, "key": key, "stateChecked": facts is not None, "predicate": said}
        typer.echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    from cenotaph.certify import describe  # noqa: PLC0415 -- not needed for --json

    typer.echo("\n".join(describe(said, key, facts)))
