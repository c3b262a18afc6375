"""The cells of a KV cache: which position and which sequences each holds. The bytes are elsewhere (kv_cache.py)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EMPTY = -1

Saved = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_]]


def is_masked_swa(n_swa: int, p0: NDArray[np.integer], p1: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Whether position `p0` is out of the window of the token at `p1`. `llama_hparams::is_masked_swa`."""
    return np.asarray(p1 - p0 >= n_swa)


class KVCells:
    """`llama_kv_cells`, src/llama-kv-cells.h.

    `pos[i]` is the position in cell `i`, -1 if it is empty; `seq[s, i]` whether sequence `s` sees it; `shift[i]` how
    far `pos[i]` was moved since the keys were last turned to match; `token[i]` the token that was read into it, -1
    where that is not known.
    """

    def __init__(self, n_cells: int, n_seq_max: int) -> None:
        self.pos: NDArray[np.int32] = np.full(n_cells, EMPTY, np.int32)
        self.shift: NDArray[np.int32] = np.zeros(n_cells, np.int32)
        self.token: NDArray[np.int32] = np.full(n_cells, EMPTY, np.int32)
        self.seq: NDArray[np.bool_] = np.zeros((n_seq_max, n_cells), np.bool_)
        self.has_shift = False

    def __len__(self) -> int:
        return len(self.pos)

    @property
    def used(self) -> int:
        """How many cells are not empty."""
        return int(np.count_nonzero(self.pos != EMPTY))

    @property
    def used_max_p1(self) -> int:
        """One past the last cell that is not empty."""
        used = np.flatnonzero(self.pos != EMPTY)
        return int(used[-1]) + 1 if used.size else 0

    def is_empty(self, i: int) -> bool:
        return bool(self.pos[i] == EMPTY)

    def sequences(self, i: int) -> list[int]:
        """The sequences that see cell `i`."""
        return [int(s) for s in np.flatnonzero(self.seq[:, i])]

    def in_range(self, p0: int, p1: int) -> list[int]:
        """The cells with a position from `p0` to below `p1`."""
        return [int(i) for i in np.flatnonzero((self.pos >= p0) & (self.pos < p1))]

    def seq_pos_min(self, s: int) -> int:
        """The lowest position of sequence `s`, -1 if it has none."""
        held = self.pos[self.seq[s]]
        return int(held.min()) if held.size else -1

    def seq_pos_max(self, s: int) -> int:
        """The highest position of sequence `s`, -1 if it has none."""
        held = self.pos[self.seq[s]]
        return int(held.max()) if held.size else -1

    def tokens_of(self, s: int) -> list[tuple[int, int]]:
        """The positions of sequence `s`, rising, whose token is known, and the token."""
        known = np.flatnonzero(self.seq[s] & (self.token != EMPTY))
        order = known[np.argsort(self.pos[known], kind="stable")]
        return list(zip(self.pos[order].tolist(), self.token[order].tolist(), strict=True))

    def out_of_window(self, n_swa: int) -> NDArray[np.bool_]:
        """Which cells no later token will see: of one sequence, `n_swa` or more before its next position.

        Nowhere, if `n_swa` is 0.
        """
        if not n_swa:
            return np.zeros(len(self), np.bool_)
        next_pos = np.where(self.seq, self.pos, EMPTY).max(axis=1) + 1
        only: NDArray[np.bool_] = np.count_nonzero(self.seq, axis=0) == 1
        return only & is_masked_swa(n_swa, self.pos, next_pos[self.seq.argmax(axis=0)])

    def set(self, i: int, pos: int, seqs: tuple[int, ...], token: int = EMPTY) -> None:
        """Fill the empty cell `i`."""
        self.pos[i], self.token[i] = pos, token
        self.seq[list(seqs), i] = True

    def rm(self, i: int) -> None:
        """Empty cell `i`."""
        self.pos[i], self.shift[i], self.token[i] = EMPTY, 0, EMPTY
        self.seq[:, i] = False

    def seq_rm(self, i: int, s: int) -> bool:
        """Take sequence `s` out of cell `i`; whether the cell is empty now."""
        self.seq[s, i] = False
        if self.seq[:, i].any():
            return False
        self.rm(i)
        return True

    def pos_add(self, i: int, delta: int) -> bool:
        """Move the position in cell `i`; below 0 the cell is emptied: whether it was."""
        self.pos[i] += delta
        self.shift[i] += delta
        self.has_shift = True
        if self.pos[i] >= 0:
            return False
        self.rm(i)
        return True

    def copy(self) -> Saved:
        """All that `restore` needs to make the cells as they are now."""
        return self.pos.copy(), self.shift.copy(), self.token.copy(), self.seq.copy()

    def restore(self, saved: Saved) -> None:
        self.pos[:], self.shift[:], self.token[:], self.seq[:] = saved

    def reset_shift(self) -> None:
        self.shift[:] = 0
        self.has_shift = False
