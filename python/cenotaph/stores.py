"""The databases of one run, and the lock of its workspace."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from cenotaph import _core, layout

if TYPE_CHECKING:
    from collections.abc import Generator

    from cenotaph.place import Place
    from cenotaph.session_store import SessionStore


@dataclass(frozen=True, slots=True)
class Stores:
    """Open connections; None where there is no such database. `sessions` may be the same store as `memory`."""

    memory: _core.Store | None
    sessions: _core.Store | None
    state: _core.StateStore | None
    location: SessionStore
    """Where `sessions` is, and the archive files beside it."""

    def unchanged(self) -> bool:
        """Whether the databases that were opened without a lock are still the ones that were read."""
        return all(store.unchanged() for store in (self.memory, self.sessions, self.state) if store)

    def checkpoint(self) -> bool:
        """Truncates the write-ahead logs; False while a reader of another process pins one."""
        truncated = [store.checkpoint() for store in (self.memory, self.state) if store]
        return all(truncated)


@contextmanager
def open_stores(place: Place, *, write: bool) -> Generator[Stores]:
    """Opens what there is, and closes it. A writer that finds no state database makes one, to hold the workspace lock.

    Raises `StoreBusy`, `StoreCorrupt`, `StoreTooNew`, `OSError`.
    """
    opened: list[_core.Store | _core.StateStore] = []
    try:
        memory = _core.Store.open_agent(place.agent_database, place.agent, write=write)
        opened += [memory] if memory else []
        if write and memory and not place.state_database.exists():
            _core.StateStore.create_minimal(place.state_database)
        state = _core.StateStore.open(place.state_database, write=write)
        opened += [state] if state else []
        sessions = memory
        location = place.session_store(state.agent_databases() if state else ())
        if location.database != place.agent_database:
            sessions = _core.Store.open_sessions(location.database)
            opened += [sessions] if sessions else []
        yield Stores(memory, sessions, state, location)
    finally:
        for store in reversed(opened):
            store.close()


@contextmanager
def workspace_lock(place: Place, state: _core.StateStore | None) -> Generator[None]:
    """Holds the lock that the host takes for the same workspace; without a state database there is no host."""
    if state is None:
        yield
        return
    owner = f"{os.getpid()}:{uuid4()}"
    state.lock_workspace(place.workspace_key, owner, layout.clock_ms())
    try:
        yield
    finally:
        state.unlock_workspace(place.workspace_key, owner)
