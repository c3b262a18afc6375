"""`vizggml quantize` and `vizggml imatrix`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vizggml.cli_export import progress_bar
from vizggml.errors import VizggmlError

if TYPE_CHECKING:
    from vizggml.llama.quantize import Report

Json = Annotated[bool, typer.Option("--json", help="answer in JSON")]


def quantize(
    source: Annotated[str, typer.Argument(help="a GGUF file, or tiny, or smollm2", metavar="IN")],
    output: Annotated[Path, typer.Argument(help="the GGUF file to write", metavar="OUT")],
    mixture: Annotated[str, typer.Argument(help="what to make of it: Q4_K_M, Q5_0, IQ4_NL, ...", metavar="TYPE")],
    imatrix: Annotated[
        Path | None, typer.Option(help="an importance matrix, from vizggml imatrix or llama.cpp's")
    ] = None,
    allow_requantize: Annotated[
        bool, typer.Option("--allow-requantize", help="take what is quantized already, with a loss")
    ] = False,
    json_: Json = False,
) -> None:
    """Write a model in another type, tensor by tensor as llama.cpp chooses, byte for byte the file that it writes."""
    from vizggml.llama.imatrix_file import read_imatrix
    from vizggml.llama.models import resolve_model
    from vizggml.llama.quantize import quantize_file

    path = resolve_model(source)
    matrix = read_imatrix(imatrix) if imatrix is not None else None
    with progress_bar("tensors") as told:
        done = quantize_file(path, output, mixture, imatrix=matrix, allow_requantize=allow_requantize, progress=told)
    if json_:
        print(json.dumps(answer(output, done)))
    else:
        print_quantized(output, done)


def imatrix(
    model: Annotated[str, typer.Argument(help="a GGUF file, or tiny, or smollm2", metavar="MODEL")],
    text: Annotated[Path, typer.Argument(help="a text; of two chunks of tokens at least", metavar="TEXT")],
    output: Annotated[Path, typer.Option("-o", "--output", help="the file to write")] = Path("imatrix.gguf"),
    ctx_size: Annotated[int, typer.Option("-c", "--ctx-size", min=1, help="tokens of a chunk")] = 512,
    chunks: Annotated[int | None, typer.Option(min=1, help="the most chunks to take")] = None,
    process_output: Annotated[bool, typer.Option("--process-output", help="take the output matrix, too")] = False,
    threads: Annotated[int, typer.Option("-t", "--threads", min=1, help="threads that compute")] = 2,
    json_: Json = False,
) -> None:
    """Find out from a text how much each column of each matrix matters: llama.cpp's importance matrix."""
    from vizggml.llama.imatrix import imatrix_of_text
    from vizggml.llama.imatrix_file import write_imatrix
    from vizggml.llama.model import load_model

    if not output.resolve().parent.is_dir():
        raise VizggmlError(f"output {str(output)!r}: there is no folder {str(output.parent)!r}")
    loaded = load_model(model)
    with progress_bar("chunks") as told:
        found = imatrix_of_text(
            loaded,
            text,
            n_ctx=ctx_size,
            n_chunks=chunks,
            process_output=process_output,
            n_threads=threads,
            progress=told,
        )
    write_imatrix(output, found)
    if json_:
        facts = {"output": str(output), "entries": len(found.entries), "chunks": found.chunk_count}
        print(json.dumps(facts | {"chunk_size": found.chunk_size}))
    else:
        n = found.chunk_count
        print(f"{output}: {len(found.entries)} matrices, {n} chunk{'s' if n != 1 else ''} of {found.chunk_size} tokens")


def answer(output: Path, done: Report) -> dict[str, object]:
    tensors = [
        {
            "name": t.name,
            "ne": list(t.ne),
            "from": t.source.name,
            "type": t.type.name,
            "bytes": t.nbytes,
            "importance": t.importance,
        }
        for t in done.tensors
    ]
    return {
        "output": str(output),
        "type": done.mixture,
        "bytes_before": done.before,
        "bytes": done.after,
        "bits_per_weight": round(done.bits_per_weight, 4),
        "tensors": tensors,
    }


def print_quantized(output: Path, done: Report) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("type", title=escape(f"{output}: {done.mixture}"), title_justify="left")
    for column in ("tensors", "weighed", "bytes before", "bytes"):
        table.add_column(column, justify="right")
    for type, n in Counter(t.type.name for t in done.tensors).most_common():
        of_type = [t for t in done.tensors if t.type.name == type]
        weighed = sum(t.importance for t in of_type)
        sizes = sum(t.nbytes_before for t in of_type), sum(t.nbytes for t in of_type)
        table.add_row(type, str(n), str(weighed or ""), *(f"{size:,}" for size in sizes))
    table.add_section()
    table.add_row("all", str(len(done.tensors)), "", f"{done.before:,}", f"{done.after:,}")
    console = Console()
    console.print(table)
    console.print(f"{done.bits_per_weight:.2f} bits a weight")
