"""Files outside the memory of a workspace that the index reads: `memory.search.extraPaths`. Read, never edited."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cenotaph import _core, layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cenotaph.config import ExtraPath
    from cenotaph.place import Place


def external_files(place: Place) -> list[_core.MemoryFile]:
    """The Markdown files that `extraPaths` names, each once, in the order of the configuration."""
    found: dict[str, _core.MemoryFile] = {}
    for extra in place.agent_config.search.extra_paths:
        for path in _files(_root(place, extra), extra.pattern):
            name = str(path)
            found.setdefault(os.path.realpath(path), _core.MemoryFile(place.relative(name), name))
    return list(found.values())


def _root(place: Place, extra: ExtraPath) -> Path:
    """As the index resolves it: relative to the workspace, `~` being the home folder."""
    home = extra.path == "~" or extra.path.startswith("~/")
    return layout.absolute_path(extra.path if home else str(place.workspace / extra.path))


def _files(root: Path, pattern: str | None) -> Iterator[Path]:
    if root.is_symlink():
        return
    if root.is_file():
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(".md") and not path.is_symlink() and _fits(path.relative_to(root), pattern):
                yield path


def _fits(relative: Path, pattern: str | None) -> bool:
    from fnmatch import fnmatchcase  # noqa: PLC0415 -- only a pattern needs it

    return pattern is None or fnmatchcase(relative.as_posix(), pattern.replace("**/", "*"))
