"""`vizggml info FILE --block TENSOR:N`: one block of a tensor, opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vizggml.errors import VizggmlError

if TYPE_CHECKING:
    from vizggml.ggml.gguf import GGUF
    from vizggml.ggml.quants import Block


def block_of(gguf: GGUF, asked: str) -> tuple[str, int, Block]:
    """The block that `NAME` or `NAME:N` names. VizggmlError if there is none such, or the tensor has no blocks."""
    from vizggml.ggml.quants import open_block

    name, _, number = asked.rpartition(":")
    if asked in gguf.tensors or not number.isdecimal():
        name, number = asked, "0"
    if name not in gguf.tensors:
        raise VizggmlError(f"tensor {name!r}: {gguf.path.name} has none of that name; --tensors lists them")
    info, i = gguf.tensors[name], int(number)
    n = info.nbytes // info.type.type_size
    if i >= n:
        raise VizggmlError(f"tensor {name!r}: block {i}, it has blocks 0 to {n - 1}")
    size = info.type.type_size
    return name, i, open_block(info.type, gguf.tensor_bytes(name)[i * size :][:size])


def block_answer(name: str, i: int, block: Block) -> dict[str, Any]:
    """The block for programs."""
    fields = [
        {"name": f.name, "bytes": [f.start, f.stop], "numbers": f.numbers.ravel().tolist(), "meaning": f.meaning}
        for f in block.fields
    ]
    lists = {what: getattr(block, what).tolist() for what in ("scales", "mins", "codes", "values")}
    return {"tensor": name, "block": i, "type": block.type.name, "data": block.bytes.hex(), "fields": fields, **lists}


def print_block(name: str, i: int, block: Block) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from vizggml.views.block import facts_of_block

    facts, n, size = facts_of_block(block), len(block.codes), len(block.bytes)
    title = f"{name}, block {i}: {block.type}, {n} elements in {size} bytes, {8 * size / n:g} bits each"
    table = Table("field", "bytes", "meaning", "numbers", title=escape(title), title_justify="left")
    for f in facts.fields:
        table.add_row(f.name, f"{f.start} to {f.stop - 1}", escape(f.meaning), f.says)
    console = Console()
    console.print(table)
    for words in facts.words:
        console.print(words)
    console.print("codes  " + " ".join(map(str, block.codes.tolist())))
    console.print("values " + " ".join(f"{x:.4g}" for x in block.values.tolist()))
