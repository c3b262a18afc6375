"""Forgetting compiled kernels that are older than any source here.

Numba keeps machine code in `__pycache__`, and takes it to be good as long as the one file that holds the function has
not changed. Kernels inline functions of other files, so the code of all of them goes when any file changes.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

STAMP = "fast.stamp"


def forget_stale(directory: Path) -> bool:
    """Delete the kept machine code in `directory` if a source changed since it was made; whether it did."""
    stamp = "\n".join(
        f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in sorted(directory.glob("*.py"))
    )
    kept = directory / "__pycache__" / STAMP
    with contextlib.suppress(OSError):
        if kept.read_text() == stamp:
            return False
    for suffix in ("nbi", "nbc"):
        for path in kept.parent.glob(f"*.{suffix}"):
            with contextlib.suppress(OSError):
                path.unlink()
    with contextlib.suppress(OSError):
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(stamp)
    return True
