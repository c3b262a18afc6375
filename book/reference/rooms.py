"""Which names the reference tells, page by page and group by group."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from vizggml import lessons


@dataclass(frozen=True)
class Group:
    """Names of one heading. `module` is what they are imported from; `names` as a person types them after it."""

    title: str
    module: str
    names: tuple[str, ...]
    words: str = ""


@dataclass(frozen=True)
class Room:
    """One page of the reference to Python names."""

    path: str
    title: str
    words: str
    groups: tuple[Group, ...]


def group(title: str, module: str, names: str, words: str = "") -> Group:
    return Group(title, module, tuple(names.split()), words)


FACE = Room(
    "vizggml.html",
    "vizggml",
    "What `import vizggml as vg` gives, and what its functions answer with. An attribute of the package is loaded when "
    "it is first used.",
    (
        group("The package", "vizggml", "load_model record load_trace view live diff compare block_picture"),
        group("Errors", "vizggml", "VizggmlError"),
        group(
            "A model and its context",
            "vizggml.llama",
            """model.Model context.Context cparams.ContextParams generation.Token batch.Batch vocab.Vocab
            hparams.HParams""",
            "`vg.load_model(...)` answers with a `Model`, its `context(...)` with a `Context`.",
        ),
        group(
            "What was recorded",
            "vizggml.timeline",
            "trace.Trace tracks.Tracks diff.Diff diff.PairDiff diff.Whole",
            "`vg.record()` and `vg.load_trace(...)` answer with a `Trace`, its `tracks()` with `Tracks`, and "
            "`vg.diff(...)` with a `Diff`. A trace has a method for each of the [exports](figures.html#exports) too.",
        ),
        group("Players", "vizggml.widgets", "view.Player live.Live compare.Comparison"),
    ),
)

ENGINE = Room(
    "ggml.html",
    "vizggml.ggml",
    "The engine alone, with ggml's names: `from vizggml import ggml`. Shapes are in ggml's order, `ne[0]` fastest; the "
    "NumPy shape of the same tensor is `ne` backwards, always of four dimensions. Sizes, strides and offsets are "
    "bytes. A builder makes a tensor and writes down what it will be; it computes nothing, and raises `VizggmlError` "
    "for shapes or types that do not fit.",
    (
        group("Tensors and the arena", "vizggml.ggml", "Context Tensor Address Type TYPES type_named TENSOR_OVERHEAD"),
        group(
            "Builders: element by element",
            "vizggml.ggml",
            """add add_inplace sub sub_inplace mul mul_inplace div div_inplace add1 add_id scale scale_inplace
            scale_bias clamp fill sqr sqr_inplace sqrt sqrt_inplace log log_inplace sin sin_inplace cos
            cos_inplace leaky_relu""",
            "The second operand of `add`, `sub`, `mul` and `div` is repeated to the shape of the first. What ends in "
            "`_inplace` writes over its first operand.",
        ),
        group(
            "Builders: activations and gates",
            "vizggml.ggml",
            """unary unary_inplace abs abs_inplace sgn neg neg_inplace step tanh tanh_inplace elu relu relu_inplace
            sigmoid sigmoid_inplace gelu gelu_inplace gelu_erf gelu_quick silu silu_inplace hardswish hardsigmoid
            exp exp_inplace expm1 softplus floor ceil round trunc
            glu glu_split reglu reglu_split geglu geglu_split geglu_erf geglu_erf_split geglu_quick geglu_quick_split
            swiglu swiglu_split""",
        ),
        group(
            "Builders: rows",
            "vizggml.ggml",
            """norm rms_norm rms_norm_inplace group_norm l2_norm sum sum_rows cumsum mean argmax count_equal argsort
            top_k diag_mask_inf diag_mask_zero""",
        ),
        group(
            "Builders: products and attention",
            "vizggml.ggml",
            """mul_mat mul_mat_set_prec mul_mat_set_hint mul_mat_id out_prod soft_max soft_max_inplace soft_max_ext
            soft_max_add_sinks rope rope_inplace rope_ext flash_attn_ext flash_attn_ext_set_prec
            flash_attn_ext_add_sinks PREC_UNDEFINED PREC_F32 HINT_SRC0_IS_HADAMARD ROPE_TYPE_NORMAL ROPE_TYPE_NEOX
            ROPE_TYPE_MROPE""",
        ),
        group(
            "Builders: views and copies",
            "vizggml.ggml",
            """reshape reshape_1d reshape_2d reshape_3d reshape_4d view view_1d view_2d view_3d view_4d permute
            transpose dup dup_inplace cpy cast cont cont_1d cont_2d cont_3d cont_4d concat repeat repeat_4d get_rows
            set_rows set set_inplace""",
        ),
        group("Graphs", "vizggml.ggml", "Graph graph_overhead graph_overhead_custom"),
        group(
            "Buffers and mapped files",
            "vizggml.ggml",
            "Buffer BufferType MappedFile alloc_ctx_tensors_from_buft cpu_buffer_type view_init",
        ),
        group(
            "The graph allocator",
            "vizggml.ggml",
            "GraphAllocator DynTallocr Liveness graph_liveness places_planned places_reported",
        ),
        group("Planning and computing", "vizggml.ggml", "Plan graph_plan ThreadPool graph_compute compute_releasing"),
        group("Backends", "vizggml.ggml", "BackendSched CPUBackend DeviceBackend DeviceBufferType"),
        group("Files", "vizggml.ggml", "GGUF read_gguf write_gguf read_graph write_graph alloc_report"),
        group(
            "Quantized blocks",
            "vizggml.ggml.quants",
            "quantize dequantize open_block block.Block",
            "Not attributes of `ggml`: `from vizggml.ggml.quants import quantize`.",
        ),
    ),
)

LLAMA = Room(
    "llama.html",
    "vizggml.llama",
    "What llama.cpp adds to ggml, for those who go below `Model` and `Context`: plans from a file's header alone, "
    "whole files into other types, importance, pages of a mapped file.",
    (
        group(
            "Plans without weights",
            "vizggml.llama",
            """plan.plan_file plan.plan_shape plan.shape_model plan.file_model plan.plan plan.Plan
            fit.fit fit.memory_sizes""",
        ),
        group("Shapes", "vizggml.llama", "shapes.shape_named shapes.hparams_of shapes.tensor_shapes"),
        group(
            "Quantizing files",
            "vizggml.llama",
            """quantize.quantize_file mixtures.tensor_types imatrix.compute_imatrix imatrix.imatrix_of_text
            imatrix_file.read_imatrix imatrix_file.write_imatrix""",
        ),
        group(
            "The cache, batches and pages",
            "vizggml.llama",
            "kv_cache_iswa.create_memory batch.split residency.pages_watched models.resolve_model",
        ),
    ),
)

FIGURES = Room(
    "figures.html",
    "Traces, figures, exports",
    "What reads a trace: sentences, pictures, files for other programs. Each export is a method of a trace too: "
    '`trace.to_svg(path, pane="kv")`.',
    (
        group("Exports", "vizggml.export", "to_html to_svg to_png to_pdf to_gif to_csv to_perfetto to_dot"),
        group("Two traces", "vizggml.export", "compare_html.compare_to_html"),
        group("Pictures", "vizggml.views", "pictures.picture pictures.usual_step pictures.PICTURES svg.Svg"),
        group("Plans in a trace", "vizggml.views", "memory.read_plan memory.plan_ids"),
        group("Sentences", "vizggml.timeline", "sentences.render sentences.fields_in"),
        group(
            "Columns and schema",
            "vizggml.timeline",
            """schema.fields_of schema.columns_of schema.Field columns.Columns columns.pack columns.unpack
            columns.read_file columns.write_file values.Values values.sample_values""",
            "What the page on the [trace file](trace-file.html) describes, in Python.",
        ),
        group("Events", "vizggml.events", "bus.Event bus.Bus bus.event"),
    ),
)

LESSONS = Room(
    "lessons.html",
    "vizggml.lessons",
    "What the chapters' cells call: `from vizggml import lessons`.",
    (group("Exercises and figures", "vizggml.lessons", " ".join(lessons.__all__)),),
)

ROOMS = (FACE, ENGINE, LLAMA, FIGURES, LESSONS)


def untold() -> list[str]:
    """Public names that no room tells: of vizggml, vizggml.ggml, vizggml.lessons and vizggml.export."""
    told = {f"{g.module}.{name}" for room in ROOMS for g in room.groups for name in g.names}
    modules = ("vizggml", "vizggml.ggml", "vizggml.lessons", "vizggml.export")
    public = {f"{m}.{name}" for m in modules for name in importlib.import_module(m).__all__}
    return sorted(public - told - {"vizggml.ggml"})
