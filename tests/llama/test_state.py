"""States in files: the live llama.cpp reads ours, we read its, both go on alike; what is no state changes nothing."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings as examples
from hypothesis import strategies as st

from tests.llama.building import GOLDENS, golden
from tests.llama.made import Shape, write
from tests.llama.native import NativeContext
from tests.llama.oracle import wheel
from tests.llama.test_quantized_cache import ROTATED, nmse, settings
from vizggml.errors import VizggmlError
from vizggml.events import StateLoaded, StateSaved
from vizggml.llama.batch import Batch
from vizggml.llama.context import Context
from vizggml.llama.model import Model, load_model
from vizggml.timeline.record import record

TOKENS = list(range(20, 45))
GEMMA = Shape("gemma3", n_layer=7, n_embd=128, n_ff=96, head_dim=32, n_swa=40)
KINDS = [
    {"flash_attn": True, "type_k": "F16", "type_v": "F16"},
    {"flash_attn": False, "type_k": "F16", "type_v": "F16"},
    {"flash_attn": True, "type_k": "Q8_0", "type_v": "Q4_0"},
    {"flash_attn": False, "type_k": "IQ4_NL", "type_v": "F32"},
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("state") / "m.gguf", ROTATED, seed=5)


@pytest.fixture(scope="module")
def model(path: Path) -> Model:
    return load_model(path)


@pytest.fixture(scope="module")
def tiny() -> Model:
    return load_model("tiny")


def opened(model: Model, **given: Any) -> Context:
    return model.context(**{"n_ctx": 256, "n_threads": 1, "fast": False, **given})


def their_save(context: NativeContext, file: Path, tokens: Sequence[int], seq_id: int = -1) -> None:
    lib, ids = context.native.lib, (ctypes.c_int32 * len(tokens))(*tokens)
    handle, name, n = ctypes.c_void_p(context.handle), str(file).encode(), ctypes.c_size_t(len(tokens))
    if seq_id < 0:
        assert lib.llama_state_save_file(handle, name, ids, n)
    else:
        assert lib.llama_state_seq_save_file(handle, name, ctypes.c_int32(seq_id), ids, n)


def their_load(context: NativeContext, file: Path, seq_id: int = -1) -> list[int]:
    lib, ids, n = context.native.lib, (ctypes.c_int32 * 100)(), ctypes.c_size_t()
    handle, name, room = ctypes.c_void_p(context.handle), str(file).encode(), ctypes.c_size_t(100)
    if seq_id < 0:
        assert lib.llama_state_load_file(handle, name, ids, room, ctypes.byref(n))
    else:
        assert lib.llama_state_seq_load_file(handle, name, ctypes.c_int32(seq_id), ids, room, ctypes.byref(n))
    return list(ids[: n.value])


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: "-".join(map(str, k.values())))
def test_llama_cpp_goes_on_from_ours_and_we_from_its(
    kind: dict[str, Any], path: Path, model: Model, tmp_path: Path
) -> None:
    """With a hole in the cells and a shift that no decode has seen yet, which saving brings to the keys."""
    ours, file = opened(model, **kind), tmp_path / "session"
    ours.decode(TOKENS)
    ours.memory.seq_rm(0, 4, 9)
    ours.memory.seq_add(0, 9, -1, -5)
    ours.save_state(file, TOKENS[:20], newer=True)
    with wheel().model(path) as native, native.context(**settings(n_ctx=256, **kind)) as theirs:
        assert their_load(theirs, file) == TOKENS[:20]
        theirs.n_past = 20
        assert nmse(ours.decode([7]), theirs.decode([7])) < 1e-5
        their_save(theirs, file, [*TOKENS[:20], 7])
        again = opened(model, **kind)
        again.decode([1, 2, 3])
        assert again.load_state(file) == [*TOKENS[:20], 7]
        assert again.n_past == 21
        assert sorted(again.memory.cells.pos[:21].tolist()) == list(range(21))
        assert nmse(again.decode([8]), theirs.decode([8])) < 1e-5


def test_a_sequence_goes_into_another(path: Path, model: Model, tmp_path: Path) -> None:
    ours, file = opened(model, n_seq_max=3), tmp_path / "sequence"
    ours.decode(TOKENS)
    ours.decode(Batch.of([9, 8, 7], 0, seq_id=1))
    ours.memory.seq_cp(1, 2, 0, -1)
    ours.save_state(file, [9, 8, 7], seq_id=1, newer=True)
    want = ours.decode(Batch.of([5], 3, seq_id=1)).copy()
    with wheel().model(path) as native, native.context(**settings(n_ctx=256, **KINDS[0])) as theirs:
        theirs.decode([1, 2, 3, 4, 5])
        assert their_load(theirs, file, 0) == [9, 8, 7]
        theirs.n_past = 3
        assert nmse(want, theirs.decode([5])) < 1e-5
        their_save(theirs, file, [9, 8, 7, 5], 0)
    assert ours.load_state(file, seq_id=2) == [9, 8, 7, 5]
    assert [ours.memory.cells.seq_pos_max(s) for s in range(3)] == [24, 3, 3]
    assert ours.memory.cells.used == 25 + 4 + 4
    alone = ours.decode(Batch.of([6], 4, seq_id=2)).copy()
    assert nmse(alone, ours.decode(Batch.of([6], 4, seq_id=1))) < 1e-5


@pytest.mark.parametrize("seq_id", [-1, 0])
def test_two_caches_of_a_model_with_windows(seq_id: int, tmp_path: Path) -> None:
    """Of one sequence only the window goes into the file: not what will never be seen again.

    Of all, every cell; but llama.cpp then searches from the first cell on, and gave one that had left the window away.
    """
    path, file, tokens = write(tmp_path / "m.gguf", GEMMA, seed=4), tmp_path / "state", [*range(20, 120)]
    ours = opened(load_model(path), n_ctx=512, n_ubatch=32, type_k="F16")
    ours.decode(tokens)
    ours.save_state(file, tokens[:50], seq_id, newer=True)
    given = settings(n_ctx=512, n_ubatch=32, **KINDS[0])
    with wheel().model(path) as native, native.context(**given) as theirs:
        assert their_load(theirs, file, seq_id) == tokens[:50]
        theirs.n_past = 100
        assert nmse(ours.decode([7]), theirs.decode([7])) < 1e-5
        their_save(theirs, file, tokens[:50], seq_id)
        again = opened(load_model(path), n_ctx=512, n_ubatch=32)
        assert again.load_state(file, seq_id) == tokens[:50]
        assert [kv.cells.used for kv in again.memory.caches] == [101, 100 if seq_id < 0 else GEMMA.n_swa]
        assert nmse(again.decode([8]), theirs.decode([8])) < 1e-5
    made = [t.id for t in again.generate([*tokens, 7, 8, 9], 3, temp=0, past=[*tokens, 7, 8])]
    assert made == [t.id for t in opened(load_model(path), n_ctx=512).generate([*tokens, 7, 8, 9], 3, temp=0)]


@pytest.mark.parametrize("newer", [False, True])
def test_it_goes_on_to_the_same_tokens(newer: bool, tiny: Model, tmp_path: Path) -> None:
    """Against a run that never stopped; and nothing of the prompt that the state has is read again."""
    prompt, file = tiny.vocab.tokenize("Once upon a time"), tmp_path / "session"
    whole = [t.id for t in opened(tiny).generate(prompt, 20, temp=0)]
    first = opened(tiny)
    begun = [*prompt, *(t.id for t in first.generate(prompt, 8, temp=0))]
    first.save_state(file, begun[:-1], newer=newer)
    second = opened(tiny)
    past = second.load_state(file)
    assert past == begun[: second.n_past]
    decoded: list[int] = []
    decode = second.decode
    second.decode = lambda batch, *rest: (decoded.append(len(batch)), decode(batch, *rest))[1]  # type: ignore[method-assign]
    assert [t.id for t in second.generate(begun, 12, temp=0, past=past)] == whole[8:]
    assert decoded == [1] * 12


def test_what_the_prompt_does_not_begin_with_is_forgotten(tiny: Model) -> None:
    want = [t.id for t in opened(tiny).generate([1, 2, 3, 9], 5, temp=0)]
    for past in ([1, 2, 3, 4, 5], [1, 2, 3, 9], [1, 2, 3, 9, 9], [7], []):
        ctx = opened(tiny)
        ctx.decode(past or [8, 8])
        assert [t.id for t in ctx.generate([1, 2, 3, 9], 5, temp=0, past=past)] == want
    ctx = opened(tiny)
    ctx.decode([1, 2])
    assert [t.id for t in ctx.generate([1, 2, 3, 9], 5, temp=0, past=[1, 2, 3, 9, 4])] == want


def test_the_pins_session(tiny: Model, tmp_path: Path) -> None:
    """Recorded by goldens/record_cache.py: the pin's file, and the tokens with which the pin went on from it."""
    facts, file = golden("llama_session.json"), GOLDENS / "llama_session.bin"
    ctx = opened(tiny)
    assert ctx.load_state(file) == facts["tokens"]
    assert [t.id for t in ctx.generate([facts["next"]], len(facts["greedy"]), temp=0, keep=True)] == facts["greedy"]
    ours = opened(tiny)
    ours.decode(facts["tokens"])
    ours.save_state(tmp_path / "session", facts["tokens"])
    saved, pins = (tmp_path / "session").read_bytes(), file.read_bytes()
    n, until_keys = len(facts["tokens"]), len("llama") + 5 * 4 + 8 + 8 + 12
    assert len(saved) == len(pins)
    assert saved[: until_keys + 16 * n] == pins[: until_keys + 16 * n]


def everything(ctx: Context) -> list[Any]:
    kv = ctx.memory
    cells = kv.cells
    return [cells.pos.tolist(), cells.seq.tolist(), kv.head, *(t.array().tobytes() for t in (*kv.k, *kv.v))]


@pytest.fixture(scope="module")
def session(model: Model, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    ctx, file = opened(model, n_seq_max=2), tmp_path_factory.mktemp("session") / "s"
    ctx.decode([3, 4, 5])
    ctx.memory.seq_cp(0, 1, 1, 2)
    ctx.save_state(file, [3, 4, 5])
    return file.read_bytes()


@drawn(data=st.data())
@examples(max_examples=150, deadline=None)
def test_damaged_files_end_in_one_clear_error_and_change_nothing(
    data: st.DataObject, model: Model, session: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    broken, head = bytearray(session), 110
    if data.draw(st.booleans()):
        del broken[data.draw(st.integers(0, len(broken) - 1)) :]
    else:
        at = 4 * data.draw(st.integers(0, head // 4))
        number = data.draw(st.sampled_from([0, 1, 2, 3, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**16]))
        broken[at : at + 4] = struct.pack("<I", number)
    file = tmp_path_factory.getbasetemp() / "broken"
    file.write_bytes(broken)
    ctx = contexts(model)
    before = everything(ctx)
    said = ""
    try:
        ctx.load_state(file)
    except VizggmlError as error:
        said = str(error)
    if said:
        assert re.fullmatch(f"state '{file}': [^\n]{{5,200}}", said)
        assert everything(ctx) == before
    else:
        ctx.decode([1])
        CONTEXTS.clear()


CONTEXTS: list[Context] = []


def contexts(model: Model) -> Context:
    """One for all the files that change nothing."""
    if not CONTEXTS:
        ctx = opened(model, n_seq_max=2)
        ctx.decode([9, 8, 7, 6])
        CONTEXTS.append(ctx)
    return CONTEXTS[0]


def test_what_is_refused_says_why(model: Model, tiny: Model, session: bytes, tmp_path: Path) -> None:
    file = tmp_path / "s"
    file.write_bytes(session)
    two = {"n_seq_max": 2}
    for ctx, why in (
        (opened(model), r"cell 1 is of 2 sequences, here there may be 1"),
        (opened(model, flash_attn=False, **two), "it was saved with flash attention on, here it is off"),
        (opened(model, type_k="q8_0", **two), "cache_k_l0: F16 in 384 bytes, here Q8_0 in 204 bytes"),
        (opened(model, type_v="f32", **two), "cache_v_l0: F16 in 384 bytes, here F32 in 768 bytes"),
        (opened(tiny, **two), "it is of a 'qwen3' model, this is 'llama'"),
    ):
        with pytest.raises(VizggmlError, match=f"^state '{file}': {why}$"):
            ctx.load_state(file)
    ctx = opened(model, **two)
    for broken, why in (
        (b"GGUF" + session[4:], r"it does not begin as a session does \(magic 46554747, must be 6767736e\)"),
        (session[:4] + b"\x09" + session[5:], "version 9 of a session, known are 10 and 11"),
        (session + b"12345", "5 bytes are left after its end"),
        (session[:-1], r"cache_v_l1 \(1152 bytes\) at byte \d+ end past the file \(\d+ bytes\)"),
        (b"", r"magic \(4 bytes\) at byte 0 end past the file \(0 bytes\)"),
    ):
        file.write_bytes(broken)
        with pytest.raises(VizggmlError, match=f"^state '{file}': {why}$"):
            ctx.load_state(file)
    with pytest.raises(VizggmlError, match="there is no such file"):
        ctx.load_state(tmp_path / "none")
    with pytest.raises(VizggmlError, match=r"sequence 2 is not one of 0 to 1 \(n_seq_max\)"):
        ctx.save_state(file, seq_id=2)
    with pytest.raises(VizggmlError, match="a token is not one of 0 to 159"):
        ctx.save_state(file, [160])


def test_room_is_counted_before_a_sequence_is_replaced(model: Model, tmp_path: Path) -> None:
    ctx, file = opened(model, n_seq_max=2), tmp_path / "s"
    ctx.decode([5] * 200)
    ctx.save_state(file, seq_id=0)
    ctx.memory.clear()
    ctx.decode(Batch.of([6] * 100, 0, seq_id=1))
    with pytest.raises(VizggmlError, match="it has 200 cells, there is room for 156"):
        ctx.load_state(file, seq_id=0)
    assert ctx.load_state(file, seq_id=1) == []
    assert ctx.memory.cells.used == 200


def test_saving_and_loading_are_told(model: Model, tmp_path: Path) -> None:
    ctx, file = opened(model), tmp_path / "s"
    ctx.decode([3, 4, 5])
    with record() as trace:
        ctx.save_state(file, [3, 4])
        ctx.load_state(file)
    told = [e for e in trace.events if isinstance(e, StateSaved | StateLoaded)]
    want = (-1, 2, 3, file.stat().st_size)
    assert [type(e) for e in told] == [StateSaved, StateLoaded]
    assert [(e.seq_id, e.n_tokens, e.n_cells, e.nbytes) for e in told] == [want, want]
