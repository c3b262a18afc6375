"""quantize and dequantize against the real library, byte for byte and bit for bit; and their events."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import oracle_quants as real
from tests.ggml.quants.strategies import all_kinds, importances, rows
from vizggml.errors import VizggmlError
from vizggml.events import BlockDecoded, BlockEncoded, Event, RowsDecoded, RowsEncoded, bus
from vizggml.ggml import quants
from vizggml.ggml.context import Context
from vizggml.ggml.quants.block import summary
from vizggml.ggml.types import BF16, F16, F32, IQ4_NL, Q4_0, Q4_1, Q6_K, Q8_0, Q8_1, Q8_K, Type, type_named

ENCODED = tuple(type_named(name) for name in quants.ENCODERS if name != "F32")
WEIGHTED = tuple(type_named(name) for name in quants.WEIGHTED)
ON_A_GRID = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")
"""Types with a codebook. Their searches take long for few rows; ggml ends the process where a cost is infinite."""
ACTIVATIONS = (F16, BF16, Q8_0, Q8_1, Q8_K, IQ4_NL)
DECODED = tuple(type_named(name) for name in quants.DECODERS if name not in ("F32", "Q8_1"))


@pytest.mark.parametrize("type", [t for t in ENCODED if t.name not in ON_A_GRID], ids=str)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_quantize_equals_ggml_byte_for_byte(type: Type, data: st.DataObject) -> None:
    x = data.draw(rows(max(32, type.blck_size)))
    np.testing.assert_array_equal(quants.quantize(type, x), real.quantize(type, x))


@pytest.mark.parametrize("type", [t for t in WEIGHTED if t.name not in ON_A_GRID], ids=str)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_quantize_with_importance_equals_ggml_byte_for_byte(type: Type, data: st.DataObject) -> None:
    x = data.draw(rows(type.blck_size))
    importance = data.draw(importances(x.shape[1]))
    np.testing.assert_array_equal(quants.quantize(type, x, importance), real.quantize(type, x, importance))


@pytest.mark.parametrize("name", ON_A_GRID)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=4, deadline=None)
def test_codebook_types_equal_ggml_byte_for_byte(name: str, data: st.DataObject, seed: int) -> None:
    """Rows of all kinds at once: what they cost is a search over all of them."""
    type, x = type_named(name), all_kinds(seed, 512, 6e4)
    importance = data.draw(importances(512))
    np.testing.assert_array_equal(quants.quantize(type, x, importance), real.quantize(type, x, importance))
    if name in quants.ENCODERS:
        np.testing.assert_array_equal(quants.quantize(type, x), real.quantize(type, x))


@pytest.mark.parametrize("type", [t for t in ENCODED if t.name not in ON_A_GRID], ids=str)
@pytest.mark.parametrize("what", [[np.nan], [np.inf], [-np.inf], [np.nan, np.inf, -np.inf]], ids=str)
def test_what_is_not_finite_is_encoded_as_ggml_does(type: Type, what: list[float]) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(16, 512)).astype(np.float32)
    x[rng.random(x.shape) < 0.01] = rng.choice(what)
    np.testing.assert_array_equal(quants.quantize(type, x), real.quantize(type, x))
    if type.name in quants.WEIGHTED:
        importance = rng.random(512).astype(np.float32)
        np.testing.assert_array_equal(quants.quantize(type, x, importance), real.quantize(type, x, importance))


@pytest.mark.parametrize(
    ("name", "value"),
    [("IQ2_XS", np.nan), ("IQ2_XS", np.inf), ("IQ2_XS", 1e30), ("IQ2_S", np.nan), ("IQ3_XXS", np.nan), ("IQ3_S", 1e30)],
)
def test_codebook_types_say_what_they_cannot_encode(name: str, value: float) -> None:
    """ggml aborts the process here: no point is the nearest."""
    x = np.random.default_rng(6).normal(size=(1, 256)).astype(np.float32)
    x[0, ::8] = value
    with pytest.raises(VizggmlError, match="a block holds values or importance too large, or not finite"):
        quants.quantize(name, x, np.ones(256))


@pytest.mark.parametrize("type", [type_named(n) for n in quants.ENCODERS if n in quants.LAYOUTS], ids=str)
def test_importance_is_ignored_where_ggml_ignores_it(type: Type) -> None:
    x = np.random.default_rng(7).normal(size=(2, 512)).astype(np.float32)
    importance = np.linspace(0, 1, 512, dtype=np.float32)
    same = np.array_equal(quants.quantize(type, x, importance), quants.quantize(type, x))
    assert same is (type.name not in quants.WEIGHTED)
    if type.name not in real.REF:
        np.testing.assert_array_equal(quants.quantize(type, x, importance), real.quantize(type, x, importance))


@pytest.mark.parametrize("type", ACTIVATIONS, ids=str)
@given(data=st.data())
@settings(max_examples=120, deadline=None)
def test_from_float_equals_the_cpu_backend_byte_for_byte(type: Type, data: st.DataObject) -> None:
    x = data.draw(rows(max(32, type.blck_size)))
    ours, theirs = quants.from_float(type, x), real.from_float(type, x)
    if type is IQ4_NL:  # ggml leaves the codes of a block that it takes as zero as they were
        zero = np.abs(x).reshape(*ours.shape[:-1], 32).max(axis=-1) < 1e-15
        theirs.reshape(ours.shape)[zero] = ours[zero] = 0
    np.testing.assert_array_equal(ours.reshape(len(x), -1), theirs)


@pytest.mark.parametrize("type", DECODED, ids=str)
@given(seed=st.integers(0, 2**32 - 1), n_rows=st.integers(1, 3), n_blocks=st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_dequantize_equals_ggml_bit_for_bit(type: Type, seed: int, n_rows: int, n_blocks: int) -> None:
    """Any bytes at all are blocks, infinite and NaN scales included."""
    n_blocks *= max(1, 32 // type.blck_size)
    blocks = np.random.default_rng(seed).integers(0, 256, (n_rows, n_blocks, type.type_size), np.uint8)
    ours = quants.dequantize(type, blocks)
    theirs = real.to_float(type, blocks, n_blocks * type.blck_size)
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
    same = ~np.isnan(ours)
    np.testing.assert_array_equal(ours[same].view(np.uint32), theirs[same].view(np.uint32))


def test_f32_is_only_bytes() -> None:
    x = np.float32([[1.5, -2.0]])
    assert quants.quantize("f32", x).tobytes() == x.tobytes()
    assert quants.dequantize("F32", quants.quantize(F32, x).reshape(1, 2, 4)).tolist() == [[1.5, -2.0]]


def test_q8_1_is_code_times_scale() -> None:
    """d = 127/127 = 1, codes 0..31, s = 496: worked by hand."""
    x = np.arange(32, dtype=np.float32)
    x[0] = -127
    blocks = quants.quantize(Q8_1, x).reshape(1, 36)
    assert blocks[0, :4].view(np.float16).tolist() == [1.0, 496.0 - 127.0]
    assert quants.dequantize(Q8_1, blocks).tolist() == x.tolist()


@pytest.mark.parametrize("type", [F32, *ENCODED], ids=str)
def test_tensors_and_leading_axes(type: Type) -> None:
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 256)).astype(np.float32)
    t = Context(1 << 20).new_tensor(type, (256, 4, 3, 2))
    rows_of_bytes = quants.quantize(type, x)
    assert rows_of_bytes.shape == (2, 3, 4, type.row_size(256))
    assert t.data is not None
    t.data.memory[t.data.offset : t.data.offset + t.nbytes] = rows_of_bytes.ravel()
    want = quants.dequantize(type, rows_of_bytes.reshape(2, 3, 4, -1, type.type_size))
    np.testing.assert_array_equal(quants.to_float(t), want)
    assert np.square(want - x).mean() < np.square(x).mean()


def test_to_float_of_a_transposed_view() -> None:
    t = Context(1 << 16).new_tensor(BF16, (3, 2)).set([[16256, 16384, 16448], [16512, 16544, 16576]])
    t.ne, t.nb = (2, 3, 1, 1), (t.nb[1], t.nb[0], t.nb[2], t.nb[3])
    assert quants.to_float(t)[0, 0].tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quants.quantize("I32", np.zeros(256)), "type I32: no quantizer"),
        (lambda: quants.quantize("Q4_0", np.zeros(33)), "type Q4_0: a row of 33 elements is not a multiple of 32"),
        (lambda: quants.dequantize("I8", np.zeros((1, 1), np.uint8)), "type I8: no dequantizer"),
        (lambda: quants.dequantize("Q8_0", np.zeros((1, 33), np.uint8)), r"shape \(1, 33\) are not blocks of 34"),
        (lambda: quants.quantize("IQ2_XXS", np.zeros(256)), "type IQ2_XXS: cannot be encoded without importance"),
        (
            lambda: quants.quantize("Q4_K", np.zeros((2, 256)), [1] * 512),
            r"importance of shape \(512,\) is not for rows",
        ),
        (lambda: quants.open_block("F16", b"ab"), "type F16: has no blocks; those that have are Q4_0"),
        (lambda: quants.open_block("Q4_0", b"ab"), "type Q4_0: a block has 18 bytes, not 2"),
        (lambda: quants.scaled_and_mins(Q4_0, np.zeros((1, 18), np.uint8)), "type Q4_0: has no minimums"),
        (lambda: quants.quantize("Q9_9", np.zeros(32)), "type 'Q9_9' is not one of ggml's"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(call: object, message: str) -> None:
    with pytest.raises(VizggmlError, match=message):
        call()  # type: ignore[operator]


def test_events_of_rows() -> None:
    seen: list[Event] = []
    stop = bus.subscribe(None, seen.append)
    try:
        rows_of_bytes = quants.quantize(Q4_1, np.zeros((3, 64)))
        quants.dequantize(Q4_1, rows_of_bytes.reshape(3, 2, 20))
    finally:
        stop()
    kinds = [RowsEncoded, BlockEncoded, BlockEncoded, RowsDecoded, BlockDecoded, BlockDecoded]
    assert [type(e) for e in seen] == kinds
    assert [e.cause for e in seen] == [-1, 0, 0, -1, 3, 3]
    encoded, decoded = seen[0], seen[3]
    assert isinstance(encoded, RowsEncoded)
    assert isinstance(decoded, RowsDecoded)
    assert (encoded.tensor, encoded.type, encoded.n_rows, encoded.n_blocks, encoded.nbytes, encoded.importance) == (
        -1,
        "Q4_1",
        3,
        6,
        120,
        False,
    )
    assert (decoded.tensor, decoded.type, decoded.n_rows, decoded.n_blocks, decoded.nbytes) == (-1, "Q4_1", 3, 6, 120)


def test_an_encoded_block_tells_what_it_was_made_of() -> None:
    seen: list[Event] = []
    stop = bus.subscribe(None, seen.append)
    x = np.arange(128, dtype=np.float32).reshape(2, 64)
    costs = np.linspace(1, 2, 64, dtype=np.float32)
    try:
        whole = quants.quantize("Q4_0", x, costs)
        quants.quantize("Q4_0", x[1:], first_block=2)
    finally:
        stop()
    assert [type(e) for e in seen] == [RowsEncoded, BlockEncoded, BlockEncoded, RowsEncoded]
    for i, e in enumerate(seen[1:3]):
        assert isinstance(e, BlockEncoded)
        assert (e.block, bytes(e.data)) == (i, whole[0, 18 * i : 18 * i + 18].tobytes())
        assert e.original == tuple(range(32 * i, 32 * i + 32))
        assert e.importance == tuple(costs[32 * i : 32 * i + 32].tolist())


def test_events_name_the_tensor() -> None:
    t = Context(1 << 16).new_tensor(Q8_0, (32, 2))
    seen: list[Event] = []
    stop = bus.subscribe(RowsDecoded, seen.append)
    try:
        quants.to_float(t)
    finally:
        stop()
    assert [e.tensor for e in seen if isinstance(e, RowsDecoded)] == [t.id]


@pytest.mark.parametrize(
    ("name", "x", "scale", "low", "first_codes"),
    [
        ("Q4_0", np.linspace(-8, 7.5, 32), 1.0, -8.0, (0, 1, 1, 2)),
        ("Q4_1", np.arange(32) % 16 + 3, 1.0, 3.0, (0, 1, 2, 3)),
        ("Q8_0", np.arange(32) + 96, 1.0, 0.0, (96, 97, 98, 99)),
        ("Q8_1", np.arange(32) + 96, 1.0, 0.0, (96, 97, 98, 99)),
    ],
)
def test_all_blocks_are_told_to_those_who_ask_by_name(
    name: str, x: np.ndarray, scale: float, low: float, first_codes: tuple[int, ...]
) -> None:
    """The scale, minimum and codes are worked by hand: element = scale * code + minimum."""
    seen: list[BlockEncoded | BlockDecoded] = []
    stops = [bus.subscribe(kind, seen.append) for kind in (BlockEncoded, BlockDecoded)]  # type: ignore[arg-type]
    try:
        rows_of_bytes = quants.quantize(name, np.stack([x, x]))
        quants.dequantize(name, rows_of_bytes.reshape(2, 1, -1))
    finally:
        for stop in stops:
            stop()
    assert [(type(e), e.block) for e in seen] == [
        (BlockEncoded, 0),
        (BlockEncoded, 1),
        (BlockDecoded, 0),
        (BlockDecoded, 1),
    ]
    for e in seen:
        assert (e.type, e.scale, e.min, e.codes[:4]) == (name, scale, low, first_codes)
        assert len(e.codes) == 32


def test_parts_of_the_k_family_rebuild_the_floats() -> None:
    blocks = np.random.default_rng(3).integers(0, 256, (1, 2, 210), np.uint8)
    blocks[..., 208:] = np.float16([0.25]).view(np.uint8)
    scale, _, codes = summary(Q6_K, blocks)
    own = np.repeat(blocks[..., 192:208].view(np.int8), 16, axis=-1)
    np.testing.assert_array_equal(
        quants.dequantize(Q6_K, blocks)[0], (scale[..., None] * own * (codes.astype(np.float32) - 32)).ravel()
    )
    eights = quants.quantize(Q8_K, np.linspace(-127, 127, 256)).reshape(1, 292)
    scale, _, codes = summary(Q8_K, eights)
    np.testing.assert_array_equal(quants.dequantize("Q8_K", eights), (scale[..., None] * codes).ravel())


def test_every_table_names_types_of_ggml() -> None:
    for table in (quants.ENCODERS, quants.WEIGHTED, quants.FROM_FLOAT, quants.DECODERS, quants.LAYOUTS):
        for name in table:
            assert type_named(name).name == name


@pytest.mark.parametrize("name", sorted({*quants.ENCODERS, *quants.WEIGHTED}))
@pytest.mark.parametrize("n_rows", [0, 2])
def test_no_rows_and_rows_of_nothing(name: str, n_rows: int) -> None:
    type = type_named(name)
    shape = (n_rows, 0 if n_rows else type.blck_size)
    costs = np.ones(shape[-1:], np.float32) if name in quants.WEIGHTED else None
    rows = quants.quantize(type, np.zeros(shape, np.float32), costs)
    assert rows.shape == (n_rows, type.row_size(shape[1]))
    assert quants.dequantize(type, rows.reshape(n_rows, shape[1] // type.blck_size, type.type_size)).shape == shape
