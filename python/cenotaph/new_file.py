"""Writing a file that must not be there yet."""

from __future__ import annotations

import os
from pathlib import Path


def write_new(path: str | os.PathLike[str], data: bytes, mode: int) -> None:
    """Makes the file with these bytes and this mode, on disk when this returns; on an error there is none.

    Raises `FileExistsError` when something has that name, be it a link that leads nowhere; `OSError`.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except BaseException:
        Path(path).unlink(missing_ok=True)
        raise
