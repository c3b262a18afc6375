"""Several sequences in one cache: random batches and operations, on ours and on the live llama.cpp in the wheel.

After each step both must hold the same positions of the same sequences in the same order of cells (llama.cpp's are read
from its session file), and each decode must give the same logits: keys have been turned as positions were moved.
"""

from __future__ import annotations

import ctypes
import random
import struct
from ctypes import POINTER, c_int8, c_int32
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.llama.native import Batch as NativeBatch
from tests.llama.native import NativeContext
from tests.llama.oracle import wheel
from tests.llama.test_quantized_cache import nmse, settings
from tests.llama.test_state import their_save
from vizggml.errors import VizggmlError
from vizggml.llama.batch import Batch
from vizggml.llama.context import Context
from vizggml.llama.model import load_model

N_SEQ, N_CTX, STEPS = 3, 256, 14
Cells = list[tuple[int, tuple[int, ...]]]


def their_decode(context: NativeContext, batch: Batch) -> NDArray[np.float32] | None:
    """None if the batch is refused."""
    n = len(batch)
    ids = [(c_int32 * len(seqs))(*seqs) for seqs in batch.seq_id]
    status = context.native.llama_decode(
        context.handle,
        NativeBatch(
            n,
            (c_int32 * n)(*batch.token),
            None,
            (c_int32 * n)(*batch.pos),
            (c_int32 * n)(*map(len, batch.seq_id)),
            (POINTER(c_int32) * n)(*[ctypes.cast(seqs, POINTER(c_int32)) for seqs in ids]),
            (c_int8 * n)(*map(int, batch.output)),
        ),
    )
    if status:
        return None
    logits = context.native.llama_get_logits(context.handle)
    return np.array(np.ctypeslib.as_array(logits, (batch.n_outputs, context.model.n_vocab)))


def their_cells(context: NativeContext, file: Path) -> Cells:
    """The position and the sequences of each cell that is not empty, in the cells' order."""
    their_save(context, file, [])
    data = file.read_bytes()
    at = 12 + 4 + struct.unpack_from("<I", data, 12)[0] + 4
    (n,) = struct.unpack_from("<I", data, at)
    at += 4
    cells: Cells = []
    for _ in range(n):
        pos, n_seq = struct.unpack_from("<iI", data, at)
        cells.append((pos, struct.unpack_from(f"<{n_seq}i", data, at + 8)))
        at += 8 + 4 * n_seq
    return cells


def our_cells(context: Context) -> Cells:
    cells = context.memory.caches[0].cells
    return [(int(cells.pos[i]), tuple(cells.sequences(int(i)))) for i in np.flatnonzero(cells.pos >= 0)]


def random_batch(rng: random.Random, cells: Cells) -> Batch:
    """Tokens of several sequences, mixed; some in two sequences that hold the same.

    (A token of sequences that differ sees one of them; which, llama.cpp leaves open.)
    """
    held = [[(i, pos) for i, (pos, seqs) in enumerate(cells) if s in seqs] for s in range(N_SEQ)]
    batch = Batch()
    for n in range(rng.randint(1, 9)):
        s = rng.randrange(N_SEQ)
        seqs = [o for o in range(N_SEQ) if o == s or (held[o] == held[s] and rng.random() < 0.6)]
        pos = max((pos for _, pos in held[s]), default=-1) + 1
        batch.add(rng.randrange(160), pos, seqs, output=rng.random() < 0.7)
        for o in seqs:
            held[o].append((N_CTX + n, pos))
    batch.output[-1] = True
    return batch


def random_operation(rng: random.Random, last: int) -> tuple[str, tuple[int, ...]]:
    s, o = rng.randrange(N_SEQ), rng.randrange(N_SEQ)
    p0 = rng.randint(0, max(0, last))
    p1 = rng.choice([-1, rng.randint(p0, last + 2)])
    return rng.choice(
        [
            ("seq_rm", (s, p0, p1)),
            ("seq_rm", (-1, p0, p1)),
            ("seq_cp", (s, o, p0, p1)),
            ("seq_add", (s, p0, p1, rng.randint(-p0 - 2, 5))),
            ("seq_add", (s, 0, -1, rng.randint(-3, 3))),
            ("seq_keep", (s,)),
        ]
    )


@pytest.mark.parametrize("seed", range(12))
def test_random_sequences_of_operations(seed: int, small: Path, tmp_path: Path) -> None:
    rng, native = random.Random(seed), wheel()
    kinds = [("F16", "F16", True), ("F16", "F16", False), ("F32", "BF16", True)]
    type_k, type_v, flash_attn = kinds[seed % len(kinds)]
    given = {"n_ctx": N_CTX, "n_ubatch": rng.choice([4, 64]), "n_seq_max": N_SEQ, "kv_unified": True}
    given |= {"type_k": type_k, "type_v": type_v, "flash_attn": flash_attn}
    ours = load_model(small).context(n_threads=1, fast=False, **given)
    with native.model(small) as model, model.context(**settings(**given)) as theirs:
        memory = native.llama_get_memory(theirs.handle)
        for _ in range(STEPS):
            kv = ours.memory
            if rng.random() < 0.5 or not our_cells(ours):
                batch = random_batch(rng, our_cells(ours))
                want = their_decode(theirs, batch)
                assert want is not None
                assert nmse(ours.decode(batch), want) < 1e-4
            else:
                name, values = random_operation(rng, max(kv.seq_pos_max(s) for s in range(N_SEQ)))
                getattr(kv, name)(*values)
                getattr(native, f"llama_memory_{name}")(memory, *values)
            assert our_cells(ours) == their_cells(theirs, tmp_path / "s")


def test_sequences_that_hold_other_positions_share_no_token(small: Path) -> None:
    ours = load_model(small).context(n_threads=1, fast=False, n_seq_max=N_SEQ, n_ctx=N_CTX)
    given = settings(n_ctx=N_CTX, n_seq_max=N_SEQ, kv_unified=True, type_k="F16", type_v="F16")
    with wheel().model(small) as model, model.context(**given) as theirs:
        for first in ([1, 2, 3], [4, 5, 6]):
            batch = Batch.of(first, 0, seq_id=first[0] // 4)
            ours.decode(batch)
            assert their_decode(theirs, batch) is not None
        ours.memory.seq_rm(0, 0, 1)
        wheel().llama_memory_seq_rm(wheel().llama_get_memory(theirs.handle), 0, 0, 1)
        shared = Batch([7], [3], [(0, 1)], [True])
        assert their_decode(theirs, shared) is None
    why = "^batch: token 0 is in sequences 0 and 1, which have diverged: the cache holds positions 1 to 2, and 0 to 2$"
    with pytest.raises(VizggmlError, match=why):
        ours.decode(shared)
