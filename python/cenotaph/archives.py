"""Transcript archives as files: what their names tell, and where they lie."""

import os
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

__all__ = ["ArchiveFile", "ArchiveName", "ArchivesFound", "find_archive_files", "parse_archive_name"]

ARCHIVE_NAME = re.compile(
    r"(?P<id>.+)\.jsonl\.(?P<reason>reset|deleted)"
    r"\.(?P<stamp>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{1,3})?Z)"
    r"(?:\.(?P<generation>[0-9a-f]{32}))?(?P<zst>\.zst)?",
    re.DOTALL,
)
NO_TRANSCRIPT = re.compile(r".+\.trajectory|.+\.checkpoint\.[0-9a-fA-F-]{36}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ArchiveName:
    """What the name of an archive file tells."""

    session_id: str
    """`session-<hash>` when the id has over 96 bytes."""
    reason: Literal["reset", "deleted"]
    created_at: int
    """Milliseconds since the epoch, from the stamp."""
    generation: str | None
    is_compressed: bool


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A transcript archive found in a folder."""

    path: Path
    name: ArchiveName
    is_shared: bool = False
    """Whether other agents keep archives in the same folder."""


@dataclass(frozen=True, slots=True)
class ArchivesFound:
    """The archive files of some folders, sorted by folder and name."""

    files: tuple[ArchiveFile, ...]
    refusals: tuple[str, ...] = ()


def parse_archive_name(name: str) -> ArchiveName | None:
    """Takes the name of an archive file apart; None for backups, checkpoints, trajectories and others."""
    found = ARCHIVE_NAME.fullmatch(name)
    if found is None or NO_TRANSCRIPT.fullmatch(found["id"]) or not _is_unicode(name):
        return None
    day, clock = found["stamp"][:-1].split("T")
    try:
        moment = datetime.fromisoformat(f"{day}T{clock.replace('-', ':')}").replace(tzinfo=UTC)
    except ValueError:
        return None
    return ArchiveName(
        session_id=found["id"],
        reason="reset" if found["reason"] == "reset" else "deleted",
        created_at=int(moment.timestamp() * 1000),
        generation=found["generation"],
        is_compressed=found["zst"] is not None,
    )


def _is_unicode(name: str) -> bool:
    """Whether the name is text; one that is not cannot be the id of a session."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def find_archive_files(folders: Iterable[Path], shared: Collection[Path] = ()) -> ArchivesFound:
    """Lists the transcript archives in `folders`; a folder that is not there has none."""
    files: list[ArchiveFile] = []
    refusals: list[str] = []
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
        except FileNotFoundError:
            continue
        except OSError as error:
            refusals.append(f"Cannot list the archives in {folder}: {error.strerror}")
            continue
        parsed = ((name, parse_archive_name(name)) for name in names)
        files += [ArchiveFile(folder / name, found, folder in shared) for name, found in parsed if found]
    return ArchivesFound(tuple(files), tuple(refusals))
