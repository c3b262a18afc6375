"""Many columns at once: tiles of unpacked weight rows by tiles of columns.

Each product is summed in the order in which ggml sums it, whatever the tiles: `multiply_codes` as the dot product of
two packed rows, `multiply_floats` as `tinyBLAS` of ggml/src/ggml-cpu/llamafile/sgemm.cpp. Only `multiply_decoded`, for
types without either and for the textbook's way, goes along the row.

Rows of weights, of columns and of the result are each given as (address, bytes from one to the next). Before a tile of
columns is multiplied it is prepared in the scratch, once for all the rows that follow.
"""

from __future__ import annotations

from vizggml.ggml.kernels.fast.codes import (
    LEVELS,
    SIGNED_FIVES,
    UNSIGNED_FIVES,
    put_fives,
    put_levels,
    put_signed_fives,
)
from vizggml.ggml.kernels.fast.lanes import (
    BYTES,
    LANES,
    SIGNED_NIBBLES,
    UNSIGNED_NIBBLES,
    add_pair,
    call_to_float,
    compiled,
    fma,
    half,
    high_nibbles,
    high_signed,
    load_f32,
    load_i8,
    low_nibbles,
    low_signed,
    pair_products,
    put_shorts_i8,
    put_single,
    signed_pair_products,
    single,
    times,
    to_f32,
    total,
    zeros,
)
from vizggml.ggml.kernels.fast.rows import gemm, zero_f32

DOTS, CODES, FLOATS, DECODED = range(4)
"""Ways to multiply; DOTS has no tiles."""

TILE_ROWS, TILE_COLUMNS = 32, 128
"""Weight rows unpacked at a time, and columns they are multiplied with."""

Rows = tuple[int, int]
Block = tuple[int, int, int, int, int]
"""Kind of codes; bytes of a block of weights, and where its codes begin; the same of the activations."""

CODE_BLOCKS: dict[str, Block] = {
    "Q4_0": (SIGNED_NIBBLES, 18, 2, 34, 2),
    "Q4_1": (UNSIGNED_NIBBLES, 20, 4, 36, 4),
    "Q5_0": (SIGNED_FIVES, 22, 6, 34, 2),
    "Q5_1": (UNSIGNED_FIVES, 24, 8, 36, 4),
    "Q8_0": (BYTES, 34, 2, 34, 2),
    "IQ4_NL": (LEVELS, 18, 2, 34, 2),
}


def room_for(way: int, depth: int, columns: int) -> int:
    """Floats of scratch for rows of `depth` elements."""
    room: int = tile_width(columns)
    n_blocks = depth // 32
    return {
        DOTS: 0,
        CODES: TILE_ROWS * (depth // 4 + 9 * n_blocks + room) + 2 * room * n_blocks,
        FLOATS: (TILE_ROWS + room) * depth,
        DECODED: depth * room + TILE_ROWS * depth + TILE_ROWS * room + depth,
    }[way]


@compiled()
def tile_width(columns: int) -> int:
    return min(TILE_COLUMNS, (columns + 31) // 32 * 32)


@compiled()
def has_minimums(block: Block) -> bool:
    """Whether codes have no sign: a minimum is added to them instead."""
    return block[0] == UNSIGNED_NIBBLES or block[0] == UNSIGNED_FIVES


@compiled()
def unpack_codes(block: Block, w: Rows, n_blocks: int, count: int, codes: int, scales: int, minimums: int) -> None:
    """`count` rows, in pairs: 32 codes of one, 32 of the other, a byte each; scales, each eight times; minimums.

    Rows beyond, to a multiple of four, are the last one again.
    """
    for i in range((count + 3) // 4 * 4):
        at = w[0] + min(i, count - 1) * w[1]
        pair = i // 2 * n_blocks
        for b in range(n_blocks):
            packed, out = at + block[2], codes + 64 * (pair + b) + 32 * (i % 2)
            if block[0] == UNSIGNED_NIBBLES:
                put_shorts_i8(out, low_nibbles(packed))
                put_shorts_i8(out + 16, high_nibbles(packed))
            elif block[0] == SIGNED_NIBBLES:
                put_shorts_i8(out, low_signed(packed))
                put_shorts_i8(out + 16, high_signed(packed))
            elif block[0] == UNSIGNED_FIVES:
                put_fives(out, packed)
            elif block[0] == SIGNED_FIVES:
                put_signed_fives(out, packed)
            elif block[0] == LEVELS:
                put_levels(out, packed)
            else:
                put_shorts_i8(out, load_i8(packed))
                put_shorts_i8(out + 16, load_i8(packed + 16))
            if has_minimums(block):
                put_single(minimums + 4 * (i * n_blocks + b), half(at + 2))
            d = half(at)
            for lane in range(8):
                put_single(scales + 64 * (pair + b) + 32 * (i % 2) + 4 * lane, d)
            at += block[1]


@compiled()
def unpack_scales(block: Block, x: Rows, n_blocks: int, count: int, scales: int, sums: int, width: int) -> None:
    """The scales of `count` columns, (columns, n_blocks), and their blocks' sums, (n_blocks, width)."""
    zero_f32(sums, n_blocks * width)
    for i in range(count):
        for b in range(n_blocks):
            at = x[0] + i * x[1] + b * block[3]
            put_single(scales + 4 * (i * n_blocks + b), half(at))
            if has_minimums(block):
                put_single(sums + 4 * (b * width + i), half(at + 2))


@compiled()
def codes_4_by_2(
    signed: bool, codes: int, scales: int, n_blocks: int, x: Rows, bytes: int, d: Rows, out: Rows, up: int
) -> None:
    """Two pairs of rows by two columns: sums of eight lanes each, added to what is there."""
    a, b, c, e = zeros(), zeros(), zeros(), zeros()
    (x0, x1), (d0, d1), beyond = x, d, 64 * n_blocks
    for _ in range(n_blocks):
        s0, s1 = load_f32(scales), load_f32(scales + beyond)
        left, right = single(d0), single(d1)
        if signed:
            a = fma(to_f32(signed_pair_products(codes, x0)), times(s0, left), a)
            b = fma(to_f32(signed_pair_products(codes, x1)), times(s0, right), b)
            c = fma(to_f32(signed_pair_products(codes + beyond, x0)), times(s1, left), c)
            e = fma(to_f32(signed_pair_products(codes + beyond, x1)), times(s1, right), e)
        else:
            a = fma(to_f32(pair_products(codes, x0)), times(s0, left), a)
            b = fma(to_f32(pair_products(codes, x1)), times(s0, right), b)
            c = fma(to_f32(pair_products(codes + beyond, x0)), times(s1, left), c)
            e = fma(to_f32(pair_products(codes + beyond, x1)), times(s1, right), e)
        codes, scales = codes + 64, scales + 64
        x0, x1, d0, d1 = x0 + bytes, x1 + bytes, d0 + 4, d1 + 4
    add_pair(out[0], up, a)
    add_pair(out[0] + 2 * up, up, c)
    if out[1] != out[0]:
        add_pair(out[1], up, b)
        add_pair(out[1] + 2 * up, up, e)


@compiled()
def codes_scratch(n: int, room: int, scratch: int) -> tuple[int, int, int, int, int, int]:
    """Where lie codes, scales and minimums of rows; their products; scales and sums of columns."""
    n_blocks = n // 32
    scales = scratch + TILE_ROWS * n
    minimums = scales + 32 * TILE_ROWS * n_blocks
    c = minimums + 4 * TILE_ROWS * n_blocks
    d = c + 4 * TILE_ROWS * room
    return scratch, scales, minimums, c, d, d + 4 * room * n_blocks


@compiled()
def prepare_codes(block: Block, x: Rows, n: int, count: int, room: int, scratch: int) -> None:
    _, _, _, _, d, sums = codes_scratch(n, room, scratch)
    unpack_scales(block, x, n // 32, count, d, sums, room)


@compiled()
def multiply_codes(
    block: Block, w: Rows, x: Rows, y: Rows, n: int, rows: tuple[int, int], count: int, room: int, scratch: int
) -> None:
    """As `ggml_vec_dot_q4_1_q8_1` and its like; what the minimums add is summed by itself, block after block."""
    n_blocks = n // 32
    codes, scales, minimums, c, d, sums = codes_scratch(n, room, scratch)
    for row in range(rows[0], rows[1], TILE_ROWS):
        height = min(TILE_ROWS, rows[1] - row)
        unpack_codes(block, (w[0] + row * w[1], w[1]), n_blocks, height, codes, scales, minimums)
        zero_f32(c, TILE_ROWS * room)
        if has_minimums(block):
            gemm(c, room, minimums, n_blocks, sums, room, height, n_blocks, (count + 31) // 32 * 32)
        for i in range(0, height, 4):
            pair = 64 * (i // 2 * n_blocks)
            for j in range(0, count, 2):
                k = min(j + 1, count - 1)
                out = c + 4 * i * room
                codes_4_by_2(
                    not has_minimums(block),
                    codes + pair,
                    scales + pair,
                    n_blocks,
                    (x[0] + j * x[1] + block[4], x[0] + k * x[1] + block[4]),
                    block[3],
                    (d + 4 * j * n_blocks, d + 4 * k * n_blocks),
                    (out + 4 * j, out + 4 * k),
                    4 * room,
                )
        put_tile(c, room, y, row, height, count)


@compiled()
def put_tile(c: int, room: int, y: Rows, row: int, height: int, count: int) -> None:
    """The products (height, room) at c to the result, whose rows are columns."""
    for j in range(count):
        to = y[0] + j * y[1] + 4 * row
        for i in range(height):
            put_single(to + 4 * i, single(c + 4 * (i * room + j)))


@compiled()
def floats_4_by_2(w: int, n: int, x0: int, x1: int, y0: int, y1: int, count: int) -> None:
    """Four rows by two columns of n floats; `count` of the rows go to the result."""
    a0, a1, a2, a3, b0, b1, b2, b3 = zeros(), zeros(), zeros(), zeros(), zeros(), zeros(), zeros(), zeros()
    for i in range(0, 4 * n, 4 * LANES):
        left, right = load_f32(x0 + i), load_f32(x1 + i)
        r0, r1 = load_f32(w + i), load_f32(w + 4 * n + i)
        r2, r3 = load_f32(w + 8 * n + i), load_f32(w + 12 * n + i)
        a0, a1, a2, a3 = fma(r0, left, a0), fma(r1, left, a1), fma(r2, left, a2), fma(r3, left, a3)
        b0, b1, b2, b3 = fma(r0, right, b0), fma(r1, right, b1), fma(r2, right, b2), fma(r3, right, b3)
    for i, (a, b) in enumerate(((a0, b0), (a1, b1), (a2, b2), (a3, b3))):
        if i < count:
            put_single(y0 + 4 * i, total(a))
            put_single(y1 + 4 * i, total(b))


@compiled()
def prepare_floats(decoder: int, x: Rows, n: int, count: int, scratch: int) -> None:
    for j in range(count):
        call_to_float(decoder, x[0] + j * x[1], n, scratch + 4 * (TILE_ROWS + j) * n)


@compiled()
def multiply_floats(decoder: int, w: Rows, y: Rows, n: int, rows: tuple[int, int], count: int, scratch: int) -> None:
    """As `tinyBLAS`: sixteen sums along a row. n is a multiple of 16."""
    a, b = scratch, scratch + 4 * TILE_ROWS * n
    for row in range(rows[0], rows[1], TILE_ROWS):
        height = min(TILE_ROWS, rows[1] - row)
        for i in range(height):
            call_to_float(decoder, w[0] + (row + i) * w[1], n, a + 4 * i * n)
        zero_f32(a + 4 * height * n, -height % 4 * n)
        for i in range(0, height, 4):
            for j in range(0, count, 2):
                k = min(j + 1, count - 1)
                out = y[0] + 4 * (row + i)
                floats_4_by_2(
                    a + 4 * i * n, n, b + 4 * j * n, b + 4 * k * n, out + j * y[1], out + k * y[1], height - i
                )


@compiled()
def decode_transposed(decoder: int, x: Rows, n: int, count: int, out: int, width: int, row: int) -> None:
    """`count` rows of n elements as columns of `out` (n, width), then zeros. `row` has room for one decoded row."""
    for p in range(n if count < width else 0):
        zero_f32(out + 4 * (p * width + count), width - count)
    for i in range(count):
        call_to_float(decoder, x[0] + i * x[1], n, row)
        for p in range(n):
            put_single(out + 4 * (p * width + i), single(row + 4 * p))


@compiled()
def prepare_decoded(decoder: int, x: Rows, n: int, count: int, room: int, scratch: int) -> None:
    spare = scratch + 4 * (n * room + TILE_ROWS * n + TILE_ROWS * room)
    decode_transposed(decoder, x, n, count, scratch, room, spare)


@compiled()
def multiply_decoded(
    decoder: int, w: Rows, y: Rows, n: int, rows: tuple[int, int], count: int, room: int, scratch: int
) -> None:
    """Tiles are computed whole: rows and columns beyond the matrix are zeros (numbers left there could be slow)."""
    b, a = scratch, scratch + 4 * n * room
    c = a + 4 * TILE_ROWS * n
    for row in range(rows[0], rows[1], TILE_ROWS):
        height = min(TILE_ROWS, rows[1] - row)
        for i in range(height):
            call_to_float(decoder, w[0] + (row + i) * w[1], n, a + 4 * i * n)
        whole = (height + 3) // 4 * 4
        zero_f32(a + 4 * height * n, (whole - height) * n)
        zero_f32(c, TILE_ROWS * room)
        gemm(c, room, a, n, b, room, whole, n, (count + 31) // 32 * 32)
        put_tile(c, room, y, row, height, count)
