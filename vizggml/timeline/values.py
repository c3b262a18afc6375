"""What is kept of a node's values: five figures and a sample, small enough to keep for every node of a run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vizggml.ggml.tensor import Tensor

VALUE_SAMPLES = 64


def sample_values(t: Tensor, n: int) -> tuple[list[float], NDArray[np.float32]]:
    """Minimum, maximum, mean, root of the mean square, and how many are not finite; and `n` values evenly spaced.

    The figures are of the finite values. A quantized tensor is taken as the bytes of its blocks.
    """
    array = t.array()
    flat = np.ravel(array)
    if t.type.name == "BF16":
        flat = (flat.astype(np.uint32) << 16).view(np.float32)
    sample = flat[np.linspace(0, len(flat) - 1, min(n, len(flat))).astype(np.int64)] if len(flat) else flat
    finite = np.isfinite(flat)
    n_bad = int(len(flat) - np.count_nonzero(finite))
    good = (flat[finite] if n_bad else flat).astype(np.float64)
    if not len(good):
        return [0.0, 0.0, 0.0, 0.0, float(n_bad)], sample.astype(np.float32)
    rms = float(np.sqrt(np.mean(good * good)))
    return [float(good.min()), float(good.max()), float(good.mean()), rms, float(n_bad)], sample.astype(np.float32)
