"""The memory of one agent, as a program uses it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from cenotaph import _core, layout
from cenotaph.config import config_path
from cenotaph.forget import apply
from cenotaph.forget.plan import Wish
from cenotaph.forget.select import selectors
from cenotaph.place import Place, find_place, state_root

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from cenotaph.forget.report import ForgetReport
    from cenotaph.verify.again import ReceiptVerification


class Memory:
    """One agent of one state directory. Made by `cenotaph.open`; a context manager."""

    def __init__(self, place: Place) -> None:
        self._place = place

    @property
    def agent(self) -> str:
        """Id of the agent."""
        return self._place.agent

    def forget(
        self,
        *,
        sessions: Sequence[str] = (),
        hook_sources: Sequence[str] = (),
        participants: Sequence[str] = (),
        since: str | None = None,
        dry_run: bool = False,
        keep_shared: bool = False,
        certificate: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None,
        on_step: Callable[[str], None] = lambda _: None,
    ) -> ForgetReport:
        """Deletes everything that memory derived from the selected sessions.

        Selectors are OR-ed, exact and case-sensitive.
        `sessions`: session ids or keys. `hook_sources`: exact hook sources. `participants`: raw participant ids, in any
        identity namespace. `since`: ISO 8601; only sessions created at or after it. `dry_run`: report what would go and
        change nothing. `keep_shared`: keep quoted lines whose only snippets surviving sessions also said.
        `certificate`: the file to write a signed certificate to, and the file of the private key (`cenotaph keys new`);
        it is written when the deletion was completed, and not in a dry run. `on_step` is told the name of each step.

        Source transcripts stay. Look at `report.pending` (or `report.exit_status`): what it names is not yet gone, and
        the same call finishes it.

        Raises `SelectionError` (no selector, a blank one, a bad date), `ForgetRefused` or `KeyUnusable` before anything
        is written, `StoreBusy`, `StoreCorrupt`, `StoreTooNew`, `ConfigError`, `OSError`; `CenotaphError` when the
        deletion is complete and its certificate could not be written.
        """
        wish = Wish(selectors(sessions, hook_sources, participants, since), keep_shared)
        if dry_run:
            return apply.preview(self._place, wish, on_step)
        if certificate is None:
            return apply.forget(self._place, wish, on_step)
        return self._forget_certified(wish, Path(certificate[0]), Path(certificate[1]), on_step)

    def _forget_certified(self, wish: Wish, path: Path, key_file: Path, on_step: Callable[[str], None]) -> ForgetReport:
        from cenotaph.forget.attest import Census, notary, write_certificate  # noqa: PLC0415 -- loads cryptography

        signer, census = notary(path, key_file), Census()
        report = apply.forget(self._place, wish, on_step, census)
        write_certificate(self._place, wish, report, census, signer)
        return report

    def verify(self, *, receipts: Sequence[str] = ()) -> ReceiptVerification:
        """Looks whether anything of past erasures has come back, from the keyed hashes that their receipts keep.

        `receipts`: ids; none means every one of this agent. Reads every byte below the state directory and the
        workspaces, in a process of its own; changes nothing. Look at `result` and `incomplete`.

        Raises `SelectionError` for an unknown receipt, `ConfigError` without the receipt key, `StoreError`, `OSError`.
        """
        from cenotaph.verify.again import verify_receipts  # noqa: PLC0415 -- a deletion does not need it

        return verify_receipts(self._place, receipts)

    def close(self) -> None:
        """Ends the use. Databases are only open while a call runs, so there is nothing that could be lost."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open(  # noqa: A001 -- `cenotaph.open` is what a reader looks for
    state_dir: str | os.PathLike[str] | None = None, *, agent: str | None = None, create: bool = False
) -> Memory:
    """The memory of `agent` (default: the configuration's default agent) in a state directory.

    `state_dir`: else CENOTAPH_STATE_DIR, OPENCLAW_STATE_DIR, `~/.cenotaph`. `create`: make a native state directory
    where there is none. Raises `ConfigError`, `SelectionError` for an unknown agent, `OSError`.
    """
    return Memory(create_place(state_dir, agent=agent) if create else find_place(state_dir, agent))


def create_place(state_dir: str | os.PathLike[str] | None, *, agent: str | None) -> Place:
    """Makes what is missing of a native state directory: configuration, databases, workspace. What is there stays.

    Raises `ConfigError`, `SelectionError` when there is a configuration and `agent` is not in it, `OSError`.
    """
    root = state_root(state_dir)
    owner = layout.canonical_agent_id(agent) if agent and agent.strip() else agent
    configuration = config_path(root)
    if not configuration.exists():
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        configuration.write_text(_first_configuration(owner), encoding="utf-8")
        configuration.chmod(0o600)
    place = find_place(root, owner)
    _core.create_native(place.state_dir, place.agent, layout.clock_ms())
    (place.workspace / "memory").mkdir(mode=0o700, parents=True, exist_ok=True)
    return place


def _first_configuration(agent: str | None) -> str:
    """Without a roster there is one agent, `main`; another one has to be named."""
    import json  # noqa: PLC0415 -- only a new state directory needs it

    roster = {"agents": {"entries": {agent: {"default": True}}}} if agent not in (None, "main") else {}
    return json.dumps(roster, indent=2) + "\n"
