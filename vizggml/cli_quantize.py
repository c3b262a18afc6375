"""`vizggml quantize` and `vizggml imatrix`."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vizggml.cli_export import progress_bar

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
