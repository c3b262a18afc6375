"""The command line: one command for each thing a person does.

Exit code 0; 1 when the work failed, with one line on standard error; 2 for a command line that cannot be read; 130
when it was interrupted from the keyboard. `lab` ends with JupyterLab's own code.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from vizggml.cli_diff import diff
from vizggml.cli_export import check_output, view
from vizggml.cli_quantize import imatrix, quantize
from vizggml.errors import VizggmlError
from vizggml.files import write_whole

if TYPE_CHECKING:
    from vizggml.ggml.cgraph import Graph
    from vizggml.llama.context import Context
    from vizggml.llama.model import Model
    from vizggml.timeline.trace import Trace

app = typer.Typer(
    help="See how llama.cpp works: run a model, record everything it does, step through it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class FlashAttnType(StrEnum):
    """auto is on wherever the device has it, and the CPU does."""

    on = "on"
    off = "off"
    auto = "auto"


ModelArg = Annotated[str, typer.Argument(help="a GGUF file, or tiny, or smollm2", metavar="MODEL")]
Prompt = Annotated[str, typer.Option("-p", "--prompt", help="the text to continue")]
NPredict = Annotated[int, typer.Option("-n", "--n-predict", min=0, help="tokens to generate")]
CtxSize = Annotated[
    int, typer.Option("-c", "--ctx-size", min=1, help="tokens that the KV cache holds, rounded up to 256")
]
UBatch = Annotated[int, typer.Option("-ub", "--ubatch-size", min=1, help="tokens computed at once")]
FlashAttn = Annotated[
    FlashAttnType, typer.Option("-fa", "--flash-attn", help="flash attention; auto: on, as the CPU has it")
]
Threads = Annotated[
    int, typer.Option("-t", "--threads", min=1, help="threads that compute", show_default="one a core, at most 4")
]
Temp = Annotated[float, typer.Option("--temp", min=0.0, help="temperature; 0 takes the most likely token")]
TopK = Annotated[int, typer.Option("--top-k", help="keep the k most likely tokens; 0 keeps all")]
TopP = Annotated[float, typer.Option("--top-p", help="keep the likeliest tokens up to this probability")]
MinP = Annotated[float, typer.Option("--min-p", help="drop tokens below this share of the likeliest")]
Seed = Annotated[int, typer.Option("--seed", help="seed of the sampler")]
Textbook = Annotated[bool, typer.Option("--textbook", help="F32 activations: dequantize a row, multiply in F32")]
CacheTypeK = Annotated[str, typer.Option("-ctk", "--cache-type-k", help="type of the keys")]
CacheTypeV = Annotated[str, typer.Option("-ctv", "--cache-type-v", help="type of the values")]
Json = Annotated[bool, typer.Option("--json", help="answer in JSON")]
N_THREADS = min(os.cpu_count() or 1, 4)


def epilog(*examples: str) -> str:
    return "Example:  " + "  |  ".join(examples)


def open_context(
    model: str,
    n_ctx: int,
    n_ubatch: int,
    fa: FlashAttnType,
    threads: int,
    textbook: bool,
    type_k: str = "f16",
    type_v: str = "f16",
) -> tuple[Model, Context]:
    from vizggml.llama.model import load_model

    loaded = load_model(model)
    return loaded, make_context(loaded, n_ctx, n_ubatch, fa, threads, textbook, type_k, type_v)


def make_context(
    loaded: Model,
    n_ctx: int,
    n_ubatch: int,
    fa: FlashAttnType,
    threads: int,
    textbook: bool = False,
    type_k: str = "f16",
    type_v: str = "f16",
) -> Context:
    return loaded.context(
        n_ctx=n_ctx,
        n_ubatch=n_ubatch,
        swa_full=False,
        flash_attn=fa is not FlashAttnType.off,
        n_threads=threads,
        textbook=textbook,
        type_k=type_k,
        type_v=type_v,
    )


@app.command(epilog=epilog('vizggml run smollm2 -p "1, 2, 3, 4, 5, 6," -n 24 --temp 0', "vizggml run tiny -fa off"))
def run(
    model: ModelArg,
    prompt: Prompt = "Once upon a time",
    n_predict: NPredict = 64,
    ctx_size: CtxSize = 512,
    ubatch_size: UBatch = 512,
    flash_attn: FlashAttn = FlashAttnType.on,
    threads: Threads = N_THREADS,
    temp: Temp = 0.8,
    top_k: TopK = 40,
    top_p: TopP = 0.95,
    min_p: MinP = 0.05,
    seed: Seed = 1,
    textbook: Textbook = False,
    cache_type_k: CacheTypeK = "f16",
    cache_type_v: CacheTypeV = "f16",
    keep: Annotated[
        int | None, typer.Option(min=0, help="when the context is full, go on with so many first tokens and the newest")
    ] = None,
    load_state: Annotated[
        Path | None, typer.Option(help="a session file: what it holds of the prompt is not read")
    ] = None,
    save_state: Annotated[Path | None, typer.Option(help="write the session to this file, as llama.cpp does")] = None,
    json_: Json = False,
) -> None:
    """Continue a text, token by token."""
    if keep is not None and save_state is not None:
        raise VizggmlError("--save-state: not with --keep, which forgets tokens that the file must name")
    types = cache_type_k, cache_type_v
    loaded, context = open_context(model, ctx_size, ubatch_size, flash_attn, threads, textbook, *types)
    past = context.load_state(load_state) if load_state is not None else []
    sampling: dict[str, Any] = {"temp": temp, "top_k": top_k, "top_p": top_p, "min_p": min_p, "seed": seed}
    stream = context.generate(prompt, n_predict, **sampling, past=past, n_keep=keep)
    if not json_:
        print(prompt, end="", flush=True)
    tokens = []
    for token in stream:
        tokens.append(token)
        if not json_:
            print(token.text, end="", flush=True)
    if save_state is not None:
        read = [*loaded.vocab.tokenize(prompt), *(token.id for token in tokens)]
        context.save_state(save_state, read[: context.n_past])
    if json_:
        text = "".join(token.text for token in tokens)
        print(json.dumps({"prompt": prompt, "text": text, "tokens": [token.id for token in tokens]}))
    else:
        print()


@app.command(
    epilog=epilog('vizggml trace tiny -p "Once upon a time" -n 8 -o run.vgt', "vizggml trace tiny -fa off -o off.vgt")
)
def trace(
    model: ModelArg,
    output: Annotated[Path, typer.Option("-o", "--output", help="a trace (.vgt) or a page with the player (.html)")],
    prompt: Prompt = "Once upon a time",
    n_predict: NPredict = 8,
    ctx_size: CtxSize = 512,
    ubatch_size: UBatch = 512,
    flash_attn: FlashAttn = FlashAttnType.on,
    threads: Threads = N_THREADS,
    temp: Temp = 0.0,
    seed: Seed = 1,
    after: Annotated[int, typer.Option(min=0, help="leave out the planning and so many first tokens")] = 0,
    json_: Json = False,
) -> None:
    """Record a run: how its memory is planned, then from the prompt to the last token; with --after, only the end."""
    from vizggml.llama.model import load_model
    from vizggml.timeline.record import record

    check_output(output, (".vgt", ".html"))
    loaded = load_model(model)
    text = ""
    with ExitStack() as recording:
        if not after:
            recorded = recording.enter_context(record())
        context = make_context(loaded, ctx_size, ubatch_size, flash_attn, threads)
        stream = context.generate(prompt, max_tokens=n_predict + after, temp=temp, seed=seed)
        for n in range(after):
            token = next(stream, None)
            if token is None:
                raise VizggmlError(f"after {after}: the run ended after {n} tokens: {context.stopped}")
            text += token.text
        if after:
            recorded = recording.enter_context(record())
        for token in stream:
            text += token.text
            note(f"{len(recorded)} events: {text!r}")
    save_trace(recorded, output)
    if json_:
        print(json.dumps({"output": str(output), "events": len(recorded), "text": text}))
    else:
        print(f"{output}: {len(recorded)} events, {output.stat().st_size} bytes; the text: {prompt + text!r}")


app.command(epilog=epilog("vizggml view run.vgt", "vizggml view run.vgt -o map.gif --from 100 --to 400 --pane map"))(
    view
)


app.command(epilog=epilog("vizggml diff off.vgt on.vgt -o diff.html", "vizggml diff off.vgt on.vgt --json"))(diff)


@app.command(epilog=epilog("vizggml graph smollm2 -o decode.svg", "vizggml graph relu.json -o relu.dot"))
def graph(
    source: Annotated[str, typer.Argument(help="a graph file (.json), a GGUF file, tiny or smollm2")],
    output: Annotated[Path, typer.Option("-o", "--output", help="a picture (.svg), .dot, or a graph file (.json)")],
    n_tokens: Annotated[int, typer.Option("-n", "--n-tokens", min=1, help="tokens in the step that is drawn")] = 1,
    ctx_size: CtxSize = 512,
    flash_attn: FlashAttn = FlashAttnType.on,
) -> None:
    """Draw the computation graph of a model's step, or of a graph file."""
    check_output(output, (".svg", ".dot", ".json"))
    built = graph_of(source, n_tokens, ctx_size, flash_attn)
    write_whole(output, render_graph(built, output.suffix).encode("utf-8", "replace"), "output")
    print(f"{output}: {len(built.nodes)} nodes, {len(built.leafs)} leafs")


@app.command(epilog=epilog("vizggml graph tiny -o tiny.json", "vizggml alloc tiny.json --alignment 32 --json"))
def alloc(
    graphs: Annotated[list[Path], typer.Argument(metavar="GRAPH.json...", help="graph files; one answer a line")],
    alignment: Annotated[int, typer.Option(min=1, help="bytes; a power of two")] = 32,
    max_chunk: Annotated[
        int | None, typer.Option(min=1, help="bytes that one chunk, a piece of the buffer, may hold")
    ] = None,
    in_place: Annotated[bool, typer.Option(help="let a node reuse the memory of its parent")] = True,
    json_: Json = False,
) -> None:
    """Place the tensors of a graph as ggml's graph allocator does."""
    from vizggml.cli_print import live_line, print_alloc
    from vizggml.ggml.buffer import BufferType
    from vizggml.ggml.graph_file import load_graph, report_of
    from vizggml.ggml.liveness import graph_liveness, live_report, places_reported

    for path in graphs:
        file = load_graph(path)
        report = report_of(file, alignment=alignment, max_chunk=max_chunk, in_place=in_place)
        live = graph_liveness(file.graph, BufferType("CPU", alignment), in_place=in_place)
        if json_:
            print(json.dumps({**report, "live": live_report(live, file.tensors)}))
        else:
            print_alloc(path, report, {str(id): tensor.name for id, tensor in file.tensors.items()})
            print(live_line(live, live.reached(places_reported(report, file.tensors))))


@app.command(epilog=epilog("vizggml info smollm2", "vizggml info tiny --block blk.0.attn_q.weight:3"))
def info(
    model: ModelArg,
    tensors: Annotated[bool, typer.Option("--tensors", help="list every tensor")] = False,
    block: Annotated[str | None, typer.Option(metavar="TENSOR[:N]", help="open a block of a quantized tensor")] = None,
    json_: Json = False,
) -> None:
    """What a GGUF file says of itself; no weight is read."""
    from vizggml.cli_print import print_info
    from vizggml.ggml.gguf import read_gguf
    from vizggml.llama.models import resolve_model

    path = resolve_model(model)
    gguf = read_gguf(path)
    if block is not None:
        from vizggml.cli_block import block_answer, block_of, print_block

        opened = block_of(gguf, block)
        print(json.dumps(block_answer(*opened))) if json_ else print_block(*opened)
        return
    listed = [
        {"name": t.name, "type": t.type.name, "ne": list(t.ne), "offset": t.offset, "bytes": t.nbytes}
        for t in gguf.tensors.values()
    ]
    facts = {
        "file": str(path),
        "version": gguf.version,
        "alignment": gguf.alignment,
        "bytes": path.stat().st_size,
        "n_tensors": len(listed),
        "metadata": {key: short(value) for key, value in gguf.metadata.items()},
    }
    if json_:
        print(json.dumps(facts | ({"tensors": listed} if tensors else {})))
    else:
        print_info(facts, listed if tensors else [])


@app.command(
    epilog=epilog("vizggml plan smollm2 -c 2048 -fa off", "vizggml plan --shape llama-70b --type Q4_K_M --fit 24G,24G")
)
def plan(
    model: Annotated[
        str | None, typer.Argument(metavar="FILE", help="a GGUF file, or tiny, or smollm2; its header is enough")
    ] = None,
    shape: Annotated[
        str | None, typer.Option(help="no file: minimind-64m, llama-7b, llama-70b, mixtral-8x7b, qwen3-30b-a3b")
    ] = None,
    type_: Annotated[
        str | None, typer.Option("--type", help="what --shape is quantized to, such as Q4_K_M; F16 if not said")
    ] = None,
    ctx_size: Annotated[
        int, typer.Option("-c", "--ctx-size", min=0, help="tokens, rounded up to 256; 0: as many as in training")
    ] = 512,
    batch_size: Annotated[int, typer.Option("-b", "--batch-size", min=1, help="tokens of one decode")] = 2048,
    ubatch_size: UBatch = 512,
    flash_attn: FlashAttn = FlashAttnType.auto,
    cache_type_k: CacheTypeK = "f16",
    cache_type_v: CacheTypeV = "f16",
    parallel: Annotated[int, typer.Option("-np", "--np", "--parallel", min=1, help="sequences at once")] = 1,
    kv_unified: Annotated[bool, typer.Option("--kv-unified", help="one cache for all sequences")] = False,
    swa_full: Annotated[bool, typer.Option("--swa-full", help="layers with a window have all cells")] = False,
    fit: Annotated[str | None, typer.Option(help="two memories, such as 15G,12G: which layers go where")] = None,
    picture: Annotated[Path | None, typer.Option(help="the compute buffer over the graph (.svg .png .pdf)")] = None,
    trace_: Annotated[
        Path | None, typer.Option("--trace", help="the planning as a trace (.vgt), to diff or view")
    ] = None,
    json_: Json = False,
) -> None:
    """Count what llama.cpp will allocate, to the byte. No weight is read."""
    from vizggml.cli_print import plan_recorded, print_plan
    from vizggml.llama.cparams import ContextParams
    from vizggml.llama.fit import fit as fit_into
    from vizggml.llama.fit import memory_sizes
    from vizggml.llama.plan import file_model, shape_model
    from vizggml.llama.plan import plan as plan_model
    from vizggml.llama.plan_words import otherwise

    if (model is None) == (shape is None):
        given = "one is needed, both are missing" if model is None else "only one of them, not both"
        raise typer.BadParameter(f"FILE or --shape: {given}; see vizggml plan --help")
    if type_ is not None and shape is None:
        raise typer.BadParameter("--type is for --shape: a file has its types")
    if picture is not None:
        check_output(picture, (".svg", ".png", ".pdf"))
    if trace_ is not None:
        check_output(trace_, (".vgt",))
    params = ContextParams(
        n_ctx=ctx_size,
        n_batch=batch_size,
        n_ubatch=ubatch_size,
        n_seq_max=parallel,
        flash_attn=flash_attn is not FlashAttnType.off,
        type_k=cache_type_k,
        type_v=cache_type_v,
        kv_unified=kv_unified,
        swa_full=swa_full,
    )
    sizes = memory_sizes(fit) if fit is not None else None
    hparams, tensors = shape_model(shape, type_ or "F16") if shape is not None else file_model(model or "")
    if picture is not None or trace_ is not None:
        found = plan_recorded(shape or model or "", lambda: plan_model(hparams, tensors, params), picture, trace_)
    else:
        found = plan_model(hparams, tensors, params)
    fitted = fit_into(hparams, tensors, params, sizes) if sizes is not None else None
    if json_:
        print(json.dumps({**found.answer(), **({"fit": fitted.answer()} if fitted is not None else {})}))
    else:
        others = otherwise(params, lambda changed: plan_model(hparams, tensors, changed))
        print_plan(shape or model or "", found, list(others), fitted)


app.command(epilog=epilog("vizggml quantize model-f16.gguf model-q4.gguf Q4_K_M --imatrix imatrix.gguf"))(quantize)


app.command(epilog=epilog("vizggml imatrix model-f16.gguf text.txt -o imatrix.gguf -c 512"))(imatrix)


@app.command(epilog=epilog("vizggml lab", "vizggml lab my-chapters --no-browser"))
def lab(
    folder: Annotated[Path, typer.Argument(help="where the chapters are laid")] = Path("vizggml-chapters"),
    browser: Annotated[bool, typer.Option(help="open a browser")] = True,
    port: Annotated[int | None, typer.Option(help="port of JupyterLab")] = None,
) -> None:
    """Open JupyterLab on the tour. The chapters are copied; what you changed in them is never overwritten."""
    from vizggml.lab import jupyter_command, lay

    folder = folder.resolve()
    laid = lay(folder)
    print(f"chapters in {folder}: {len(laid.new)} new, {len(laid.updated)} brought up to date")
    for name in laid.kept:
        print(f"  {name} is yours: left as you changed it (move it away, and a fresh one is laid)")
    raise typer.Exit(subprocess.run(jupyter_command(folder, browser=browser, port=port), check=False).returncode)


def graph_of(source: str, n_tokens: int, n_ctx: int, fa: FlashAttnType) -> Graph:
    if source.endswith(".json"):
        from vizggml.ggml.graph_file import read_graph

        return read_graph(Path(source))
    from vizggml.llama.model import load_model

    context = load_model(source).context(n_ctx=n_ctx, n_ubatch=n_tokens, flash_attn=fa is not FlashAttnType.off)
    return context.step_graph(n_tokens)


def render_graph(built: Graph, suffix: str) -> str:
    if suffix == ".json":
        from vizggml.ggml.graph_file import graph_json

        return json.dumps(graph_json(built))
    if suffix == ".dot":
        from vizggml.export.dot import graph_dot

        return graph_dot(built)
    from vizggml.export.picture import graph_svg

    return graph_svg(built)


def save_trace(recorded: Trace, output: Path) -> None:
    if output.suffix == ".html":
        from vizggml.export import to_html

        to_html(recorded, output)
    else:
        recorded.save(output)


def short(value: object) -> object:
    """Metadata for reading: long arrays are cut to their first elements, long texts to their beginning."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, str):
        return value if len(value) <= 400 else value[:400] + f"... {len(value)} characters in all"
    if isinstance(value, Sequence | np.ndarray):
        shown = [short(value[i]) for i in range(min(len(value), 8))]
        return shown if len(value) <= 8 else [*shown, f"... {len(value)} in all"]
    return value


def note(text: str) -> None:
    """Progress, on a terminal's standard error only."""
    if sys.stderr.isatty():
        print("\r\x1b[2K" + text[-100:], end="", file=sys.stderr, flush=True)


def main() -> None:
    """Run the command line; one line for what failed, never a traceback."""
    # weights that overflow end in one line, not in NumPy's remarks on the way
    warnings.simplefilter("ignore", RuntimeWarning)
    try:
        app()
    except VizggmlError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def fail(message: str) -> None:
    print("vizggml: " + " ".join(message.splitlines()), file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
