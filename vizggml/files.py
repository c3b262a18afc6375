"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from vizggml.errors import VizggmlError


def write_whole(path: str | os.PathLike[str], data: bytes, what: str = "file") -> None:
    """Write `data` under another name in the same folder, then put it in place: what was there stays until then.

    VizggmlError, naming `what`, if it cannot be written.
    """
    target = Path(path)
    temporary: Path | None = None
    try:
        if target.is_dir():
            raise VizggmlError(f"{what} {str(target)!r}: it is a folder")
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise VizggmlError(f"{what} {str(target)!r}: cannot be written: {error.strerror or error}") from None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
