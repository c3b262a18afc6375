"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from vizggml.errors import VizggmlError


@contextmanager
def written_whole(path: str | os.PathLike[str], what: str = "file") -> Iterator[BinaryIO]:
    """A file under another name in the same folder, put in place at the end: what was there stays until then.

    VizggmlError, naming `what`, if it cannot be written. What fails on the way leaves nothing behind.
    """
    target = Path(path)
    temporary: Path | None = None
    try:
        if target.is_dir():
            raise VizggmlError(f"{what} {str(target)!r}: it is a folder")
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            yield file
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise VizggmlError(f"{what} {str(target)!r}: cannot be written: {error.strerror or error}") from None
        raise


def write_whole(path: str | os.PathLike[str], data: bytes, what: str = "file") -> None:
    """Write `data` as a file that appears whole or not at all. VizggmlError, naming `what`, if it cannot be written."""
    with written_whole(path, what) as file:
        file.write(data)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
