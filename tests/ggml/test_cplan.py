"""The plan against `ggml_graph_plan` of the wheel, op by op and over random graphs."""

from __future__ import annotations

import random

import pytest

from tests.oracle_graph import mirrored
from vizggml.errors import VizggmlError
from vizggml.events import Event, NodePlanned, PlanEnd, PlanMaximum, bus
from vizggml.ggml import ops
from vizggml.ggml.buffer import BufferType
from vizggml.ggml.cgraph import Graph
from vizggml.ggml.context import Context
from vizggml.ggml.cplan import (
    ALL_THREADS_OPS,
    AVX512_AMX,
    AVX512_VNNI,
    NEON,
    PER_HEAD_OPS,
    SINGLE_TASK_OPS,
    WORK_SIZES,
    get_n_tasks,
    graph_plan,
)
from vizggml.ggml.tensor import Tensor
from vizggml.ggml.threadpool import ThreadPool
from vizggml.ggml.types import FLAG_COMPUTE, GLU_OPS, OPS, TYPES, UNARY_OPS

THREADS = (1, 2, 4, 16)


def context() -> Context:
    return Context(1 << 24, no_alloc=True)


def graph_of(
    ctx: Context, op: str, type: str, ne: tuple[int, ...], *src: Tensor | None, params: tuple[int, ...] = ()
) -> Graph:
    """A graph of one node, whatever its op: a plan reads only types and shapes."""
    node = ctx.new_tensor(type, ne)
    node.op, node.op_params, node.src, node.flags = op, params, list(src), FLAG_COMPUTE
    g = Graph(ctx, 16)
    g.build_forward_expand(node)
    return g


def assert_planned_as_ggml(g: Graph) -> None:
    with mirrored(g) as theirs:
        for n_threads in THREADS:
            plan = graph_plan(g, n_threads)
            assert (plan.work_size, plan.n_threads) == theirs.plan(n_threads), (g.nodes[-1].op, n_threads)


@pytest.mark.parametrize("type", [t for t in TYPES if TYPES[t].vec_dot_type])
@pytest.mark.parametrize("src1_type", ["F32", "F16"])
def test_mul_mat(type: str, src1_type: str) -> None:
    c = context()
    src0, src1 = c.new_tensor(type, (512, 24, 2)), c.new_tensor(src1_type, (512, 7, 4))
    assert_planned_as_ggml(graph_of(c, "MUL_MAT", "F32", (24, 7, 4), src0, src1))


@pytest.mark.parametrize("type", ["F32", "F16", "Q4_0", "Q4_1", "Q8_0", "Q6_K"])
def test_mul_mat_id(type: str) -> None:
    c = context()
    experts, x, ids = c.new_tensor(type, (256, 64, 8)), c.new_tensor("F32", (256, 2, 5)), c.new_tensor("I32", (2, 5))
    assert_planned_as_ggml(graph_of(c, "MUL_MAT_ID", "F32", (64, 2, 5), experts, x, ids))


@pytest.mark.parametrize("dk", [64, 96, 128, 576])
@pytest.mark.parametrize("dv", [64, 128, 512])
@pytest.mark.parametrize("n_head", [2, 9, 512])
def test_flash_attn_ext(dk: int, dv: int, n_head: int) -> None:
    c = context()
    q, k, v = c.new_tensor("F32", (dk, 3, n_head)), c.new_tensor("F16", (dk, 256)), c.new_tensor("F16", (dv, 256))
    assert_planned_as_ggml(graph_of(c, "FLASH_ATTN_EXT", "F32", (dv, n_head, 3), q, k, v))


def test_flash_attention_with_the_tiles_of_a_published_description() -> None:
    # 16 threads, tiles of 256 x 256, heads of 96: 229,376 floats a thread, 14,680,064 bytes
    c = context()
    q, k, v = (c.new_tensor("F32", (96, 4, 8)), c.new_tensor("F16", (96, 256)), c.new_tensor("F16", (96, 256)))
    g = graph_of(c, "FLASH_ATTN_EXT", "F32", (96, 8, 4), q, k, v)
    plan = graph_plan(g, 16, flash_tile=(256, 256))
    assert plan.work_sizes == (14_680_064,)
    assert plan.flash_tile == (256, 256)


PAIRS = [
    ("F32", "F32"),
    ("F32", "F16"),
    ("F16", "BF16"),
    ("BF16", "F16"),
    ("F32", "I32"),
    ("I32", "F32"),
    ("F32", "Q8_0"),
    ("F16", "Q4_0"),
    ("Q8_0", "F32"),
    ("Q4_1", "Q4_1"),
]


@pytest.mark.parametrize(("src", "dst"), PAIRS)
@pytest.mark.parametrize("op", ["CPY", "DUP", "CONT"])
def test_copies(op: str, src: str, dst: str) -> None:
    c = context()
    a, b = c.new_tensor(src, (64, 5)), c.new_tensor(dst, (64, 5))
    assert_planned_as_ggml(graph_of(c, op, dst, (64, 5), a, b))
    assert_planned_as_ggml(graph_of(c, op, dst, (64, 5), a))


@pytest.mark.parametrize("type", ["F32", "F16", "Q8_0"])
@pytest.mark.parametrize("op", ["ADD", "ADD_ID", "ADD1", "ACC", "OUT_PROD", "SET_ROWS", "GET_ROWS", "MUL", "SUB"])
def test_ops_with_two_sources(op: str, type: str) -> None:
    c = context()
    a, b = c.new_tensor(type, (64, 5)), c.new_tensor("F32", (64, 5))
    for dst in ("F32", "F16", "Q8_0"):
        assert_planned_as_ggml(graph_of(c, op, dst, (64, 5), a, b, b))


@pytest.mark.parametrize("op", sorted(SINGLE_TASK_OPS | ALL_THREADS_OPS | PER_HEAD_OPS | {"SOFT_MAX"}))
def test_every_op(op: str) -> None:
    c = context()
    a, b, d = c.new_tensor("F32", (64, 3)), c.new_tensor("F32", (64, 6)), c.new_tensor("F32", (32, 4))
    assert_planned_as_ggml(graph_of(c, op, "F32", (32, 6), a, b, d, params=(2, 0, 3)))


@pytest.mark.parametrize("desc", UNARY_OPS)
def test_unary(desc: str) -> None:
    c = context()
    a = c.new_tensor("F32", (64, 3))
    assert_planned_as_ggml(graph_of(c, "UNARY", "F32", (64, 3), a, params=(UNARY_OPS.index(desc),)))


@pytest.mark.parametrize("desc", GLU_OPS)
def test_glu(desc: str) -> None:
    c = context()
    a = c.new_tensor("F32", (64, 3))
    assert_planned_as_ggml(graph_of(c, "GLU", "F32", (32, 3), a, params=(GLU_OPS.index(desc),)))


@pytest.mark.parametrize("op", ["MAP_CUSTOM1", "MAP_CUSTOM2", "MAP_CUSTOM3", "CUSTOM"])
@pytest.mark.parametrize("n_tasks", [-1, 1, 3])
def test_custom_ops_say_how_many_tasks_they_want(op: str, n_tasks: int) -> None:
    c = context()
    a = c.new_tensor("F32", (64, 3))
    assert_planned_as_ggml(graph_of(c, op, "F32", (64, 3), a, a, a, params=(0, 0, n_tasks)))


@pytest.mark.parametrize(("n", "k"), [(1, 1), (2, 2)])
def test_kinds_of_attention_and_convolution_with_branches(n: int, k: int) -> None:
    c = context()
    q, b = c.new_tensor("F32", (64, 3)), c.new_tensor("F16", (64, 130 + n))
    assert_planned_as_ggml(graph_of(c, "FLASH_ATTN_BACK", "F32", (64,), q, b, q))
    assert_planned_as_ggml(
        graph_of(c, "GATED_DELTA_NET", "F32", (64,), q, b, c.new_tensor("F32", (16, 2)), params=(k,))
    )
    for type in ("F32", "F16"):
        kernel, data = c.new_tensor(type, (5, 3, 2)), c.new_tensor("F32", (20, 2))
        assert_planned_as_ggml(graph_of(c, "CONV_TRANSPOSE_1D", "F32", (24, 3), kernel, data))
        assert_planned_as_ggml(graph_of(c, "CONV_TRANSPOSE_2D", "F32", (24, 3), kernel, data))


def test_every_op_with_a_formula_or_a_task_count_is_one_of_ggmls() -> None:
    assert (SINGLE_TASK_OPS | ALL_THREADS_OPS | PER_HEAD_OPS | set(WORK_SIZES)) <= set(OPS)


def test_an_empty_tensor_takes_one_task() -> None:
    c = context()
    a = c.new_tensor("F32", (64, 0))
    assert_planned_as_ggml(graph_of(c, "ADD", "F32", (64, 0), a, a))


def random_graph(rng: random.Random) -> Graph:
    c = context()
    g = Graph(c, 64)
    width = 32 * rng.randint(1, 16)
    x = c.new_tensor("F32", (width, rng.randint(1, 9)))
    for _ in range(rng.randint(1, 12)):
        rows = x.ne[1]
        match rng.choice(("mul_mat", "add", "norm", "soft_max", "rope", "cast", "get_rows", "silu", "cont", "scale")):
            case "mul_mat":
                out = 32 * rng.randint(1, 16)
                type = rng.choice(["F32", "F16", "Q8_0", "Q4_0", "Q4_1"])
                x = ops.mul_mat(c, c.new_tensor(type, (x.ne[0], out)), x)
            case "add":
                x = ops.add(c, x, c.new_tensor("F32", (x.ne[0], 1)))
            case "norm":
                x = ops.mul(c, ops.rms_norm(c, x, 1e-5), c.new_tensor("F32", (x.ne[0],)))
            case "soft_max":
                x = ops.soft_max_ext(c, x, c.new_tensor(rng.choice(["F32", "F16"]), (x.ne[0], rows)), 0.5, 0.0)
            case "rope":
                heads = ops.reshape_3d(c, x, x.ne[0], 1, rows)
                turned = ops.rope(c, heads, c.new_tensor("I32", (rows,)), x.ne[0], rng.choice([0, 2]))
                x = ops.reshape_2d(c, turned, x.ne[0], rows)
            case "cast":
                to = rng.choice(["F16", "BF16", "Q8_0"])
                x = ops.cast(c, ops.cast(c, x, to), "F32")
            case "get_rows":
                x = ops.get_rows(c, x, c.new_tensor("I32", (rng.randint(1, 9),)))
            case "silu":
                x = ops.silu(c, x)
            case "cont":
                x = ops.reshape_2d(c, ops.cont(c, ops.transpose(c, x)), x.ne[0], rows)
            case _:
                x = ops.scale(c, x, 2.0)
    g.build_forward_expand(x)
    return g


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs(seed: int) -> None:
    assert_planned_as_ggml(random_graph(random.Random(seed)))


def two_nodes() -> Graph:
    c = context()
    x = c.new_tensor("F32", (64, 4), name="x")
    y = ops.soft_max(c, x)
    w = c.new_tensor("Q8_0", (64, 32), name="w")
    out = ops.add(c, ops.mul_mat(c, w, y), c.new_tensor("F32", (32,), name="bias"))
    g = Graph(c, 16)
    g.build_forward_expand(out)
    return g


def test_each_node_says_its_tasks_and_the_formula() -> None:
    g = two_nodes()
    events: list[Event] = []
    unsubscribe = bus.subscribe(None, events.append)
    try:
        plan = graph_plan(g, 2)
    finally:
        unsubscribe()
    planned = [e for e in events if isinstance(e, NodePlanned)]
    # 4 bytes x 64 elements x 2 tasks; 256 activations as Q8_0 are 8 blocks of 34 bytes, padded to a multiple of 64
    assert [(e.n_tasks, e.work_size) for e in planned] == [(2, 512), (2, 320), (2, 0)]
    assert [e.terms for e in planned] == [
        "F32 4 B x row 64 x tasks 2",
        "activations as Q8_0: 256 elements = 272, to a multiple of 64",
        "",
    ]
    assert [e.tensor for e in planned] == [n.id for n in g.nodes] == [e.node for e in planned]
    assert [(e.tensor, e.work_size, e.cause) for e in events if isinstance(e, PlanMaximum)] == [
        (g.nodes[0].id, 512, planned[0].seq)
    ]
    (end,) = [e for e in events if isinstance(e, PlanEnd)]
    assert (end.graph, end.n_threads, end.work_size, end.padding) == (g.id, 2, 512 + 128, 128)
    assert (plan.n_tasks, plan.work_sizes, plan.work_size) == ((2, 2, 2), (512, 320, 0), 640)
    assert plan.work_data.nbytes == 640


def test_the_tiled_workspace_depends_on_the_instruction_set() -> None:
    c = context()
    g = graph_of(c, "MUL_MAT", "F32", (8, 1), c.new_tensor("Q6_K", (256, 8)), c.new_tensor("F32", (256, 1)))
    # one Q8_K block of 292 bytes, padded to 320; 64 bytes and two slots of 512 KiB for the tiled kernels
    assert graph_plan(g, 2, isa=AVX512_VNNI).work_sizes == (320 + 64 + 2 * 512 * 1024,)
    assert graph_plan(g, 2, isa=NEON).work_sizes == (320,)


def test_weights_in_an_extra_buffer_type_follow_its_rule() -> None:
    c = Context(1 << 16, no_alloc=True)
    w, x = c.new_tensor("Q4_0", (64, 8)), c.new_tensor("F32", (64, 3))
    BufferType("CPU_REPACK").alloc_buffer(w.nbytes, "weights").tensor_alloc(w, 0)
    plain = graph_of(c, "MUL_MAT", "F32", (8, 3), w, x)
    # 192 activations as Q8_0: 6 blocks of 34 bytes, without the padding to 64
    assert graph_plan(plain, 1).work_sizes == (204,)
    ids = c.new_tensor("I32", (2, 3))
    by_id = graph_of(c, "MUL_MAT_ID", "F32", (8, 2, 3), w, x, ids)
    # 204 to a multiple of 8, and 8 bytes for each expert (1) and token (1), and one more
    assert graph_plan(by_id, 1).work_sizes == (208 + 8 * 1 * 2,)
    v = c.new_tensor("Q8_0", (64, 8))
    BufferType("AMX").alloc_buffer(v.nbytes, "weights").tensor_alloc(v, 0)
    amx = graph_of(c, "MUL_MAT", "F32", (8, 3), v, x)
    assert graph_plan(amx, 1, isa=AVX512_AMX).work_sizes == (3 * 68,)
    assert graph_plan(amx, 1, isa=AVX512_VNNI).work_sizes == (256,)


def test_threads_by_default_are_the_pools_or_four() -> None:
    g = two_nodes()
    assert graph_plan(g).n_threads == 4
    with ThreadPool(3) as pool:
        plan = graph_plan(g, threadpool=pool)
        assert plan.n_threads == 3
        assert plan.threadpool is pool


def test_an_op_without_a_task_count_is_an_error() -> None:
    c = context()
    node = c.new_tensor("F32", (4,), name="odd")
    node.op = "COUNT"
    with pytest.raises(VizggmlError, match="node 'odd': op COUNT has no task count"):
        get_n_tasks(node, 2)


def test_a_type_without_a_dot_product_is_an_error() -> None:
    c = context()
    w = c.new_tensor("I32", (64, 8), name="w")
    g = graph_of(c, "MUL_MAT", "F32", (8, 3), w, c.new_tensor("F32", (64, 3)))
    with pytest.raises(VizggmlError, match="tensor 'w': type I32 has no dot product"):
        graph_plan(g, 1)
    with pytest.raises(VizggmlError, match="op MUL_MAT needs a source 1"):
        graph_plan(graph_of(c, "MUL_MAT", "F32", (8, 3), w), 1)
