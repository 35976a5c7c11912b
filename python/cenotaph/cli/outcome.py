"""How a command ends when it cannot do what was asked: one sentence on stderr, JSON on stdout where that was asked."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from cenotaph.errors import CenotaphError, SelectorMissing

if TYPE_CHECKING:
    from collections.abc import Generator

_FAILED = 1
_INTERRUPTED = 130


@contextmanager
def reported(what: str, *, as_json: bool) -> Generator[None]:
    """Turns the errors that a user can meet into a message and exit status 1.

    `what` begins the sentence, as in `Memory forget failed: ...`.
    """
    try:
        yield
    except SelectorMissing as error:
        fail(str(error), as_json=as_json)
    except (CenotaphError, OSError) as error:
        fail(f"{what}: {_sentence(error)}", as_json=as_json)
    except KeyboardInterrupt:
        typer.echo("[cenotaph] Interrupted. Run the same command again to finish.", err=True)
        raise typer.Exit(_INTERRUPTED) from None


def fail(message: str, *, as_json: bool) -> None:
    """Prints the failure and leaves with exit status 1."""
    if as_json:
        import json  # noqa: PLC0415 -- only a failure with --json needs it

        error = {"ok": False, "error": {"type": "cli_error", "message": message}}
        typer.echo(json.dumps(error, ensure_ascii=False, indent=2))
    typer.echo(f"[cenotaph] The CLI command failed.\n[cenotaph] Reason: {message}", err=True)
    raise typer.Exit(_FAILED)


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)
