"""What the command line prints for people: tables, and pictures beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vizggml.llama.plan import MAPPED
from vizggml.llama.plan_words import what_it_is

if TYPE_CHECKING:
    from vizggml.ggml.graph_file import AllocReport
    from vizggml.ggml.liveness import Liveness, Reached
    from vizggml.llama.fit import Fit
    from vizggml.llama.plan import Plan
    from vizggml.llama.plan_words import Otherwise

AT_PEAK = 8


def print_info(facts: dict[str, Any], listed: list[dict[str, Any]]) -> None:
    console = Console()
    table = Table(
        "key", "value", title=escape(f"{facts['file']}: GGUF version {facts['version']}"), title_justify="left"
    )
    for key, value in facts["metadata"].items():
        table.add_row(escape(key), escape(str(value)))
    console.print(table)
    if listed:
        table = Table("tensor", "type", "ne", "offset", "bytes")
        for t in listed:
            table.add_row(escape(t["name"]), t["type"], dims(t["ne"]), f"{t['offset']:,}", f"{t['bytes']:,}")
        console.print(table)
    console.print(f"{facts['n_tensors']} tensors, {facts['bytes']:,} bytes")


def print_alloc(path: Path, report: AllocReport, names: dict[str, str]) -> None:
    chunks = [chunk for buffer in report["buffers"] for chunk in buffer["chunks"]]
    table = Table("id", "tensor", "chunk", "offset", "size", "reuses", title=escape(f"{path}"), title_justify="left")
    for id, at in report["tensors"].items():
        reuses = "" if at["reuses"] is None else str(at["reuses"])
        table.add_row(id, escape(names[id]), str(at["chunk"]), f"{at['offset']:,}", f"{at['size']:,}", reuses)
    console = Console()
    console.print(table)
    console.print(f"{report['size']:,} bytes in {_n(len(chunks), 'chunk')}: the pieces that the buffer is made of")


def live_line(live: Liveness, reached: Reached) -> str:
    """What the graph cannot do without, what it would be if nothing shared a place, and what is between, in a line."""
    above = (
        f"{reached.above_bound:,} more than the lower bound" if reached.above_bound else "the lower bound is reached"
    )
    return (
        f"lower bound {live.bound:,} bytes (the most that lives at once), "
        f"no reuse {live.no_reuse:,} bytes (if no two tensors shared memory): {above}"
    )


def print_plan(name: str, found: Plan, others: Sequence[Otherwise], fitted: Fit | None) -> None:
    """The buffers, what stands at the peak of the compute buffer, what would change it, and who gets which layers."""
    console = Console()
    console.print(_buffers(name, found))
    console.print(_peak(found))
    if others:
        console.print(_others(found, others))
    if fitted is not None:
        print_fit(console, fitted)


def _table(title: str, *columns: str, right: Sequence[str] = ()) -> Table:
    table = Table(title=escape(title), title_justify="left", caption_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left")
    return table


def _buffers(name: str, found: Plan) -> Table:
    title = f"{name}: {found.architecture}, {found.nodes} nodes, {_n(found.splits, 'split')}"
    table = _table(title, "buffer", "bytes", "rounded", "how", right=("bytes", "rounded"))

    def row(what: str, size: int, how: str) -> None:
        table.add_row(what, f"{size:,}", _size(size), how)

    for buft, size in found.model.items():
        row(f"weights, {buft}", size, "mapped" if buft == MAPPED else "allocated")
    for size in found.kv:
        row("KV cache", size, "allocated")
    row("output", found.output, "allocated")
    row("compute", found.compute, "allocated")
    table.add_section()
    row("allocated", found.allocated, "all but the mapping")
    if found.mapped:
        row("mapped", found.mapped, "a range of the file: read when touched")
    if found.copied:
        row("of it copied", found.copied, "into CPU_REPACK, then not read again")
    return table


def _peak(found: Plan) -> Table:
    """The largest tensors, and what each of them is."""
    largest = sorted(found.peak, key=lambda t: -t["size"])[:AT_PEAK]
    title = f"At the peak of the compute buffer: {_n(len(found.peak), 'tensor')}"
    table = _table(title, "tensor", "op", "shape", "bytes", "what it is", right=("bytes",))
    for t in largest:
        shape = f"{dims(t['ne'])} {t['type']}"
        op = "input" if t["op"] == "NONE" else t["op"]
        table.add_row(escape(t["name"]), op, shape, f"{t['size']:,}", escape(what_it_is(t)))
    more = sorted(found.peak, key=lambda t: -t["size"])[AT_PEAK:]
    if more:
        table.add_row(f"{len(more)} more", "", "", f"{sum(t['size'] for t in more):,}", "with --json all are listed")
    return table


def _others(found: Plan, others: Sequence[Otherwise]) -> Table:
    table = _table(
        "The same with one option changed",
        "option",
        "compute",
        "rounded",
        "KV cache",
        right=("compute", "rounded", "KV cache"),
    )
    for option, plan in [("as asked", found), *((other.option, other.plan) for other in others)]:
        table.add_row(option, f"{plan.compute:,}", _size(plan.compute), _size(sum(plan.kv)))
    return table


def print_fit(console: Console, fitted: Fit) -> None:
    table = Table("memory", "layers", title=f"{_n(fitted.splits, 'split')}, {_n(fitted.copies, 'tensor')} copied")
    table.title_justify = "left"
    for column in ("weights", "KV cache", "output", "compute", "left"):
        table.add_column(column, justify="right")
    for share in fitted.shares:
        first, end = share["layers"]
        layers = f"{first} to {end - 1}" if end > first else "none"
        parts = (share["model"], share["kv"], share["output"], share["compute"], share["left"])
        table.add_row(_size(share["size"]), layers, *map(_size, parts))
    console.print(table)


def dims(ne: Sequence[int]) -> str:
    """`49152 x 512`: without the ones at the end."""
    n = max((k for k, size in enumerate(ne) if size != 1), default=0) + 1
    return " x ".join(map(str, ne[:n]))


def _n(n: int, what: str) -> str:
    return f"{n} {what}{'s' if n != 1 else ''}"


def _size(n: int) -> str:
    from vizggml.views.labels import size

    return size(n)


def plan_recorded(name: str, make: Callable[[], Plan], picture: Path | None, trace: Path | None) -> Plan:
    """Make a plan while it is recorded; draw the lifetimes in its last reservation, and keep the trace."""
    from vizggml.export import to_pdf, to_png, to_svg
    from vizggml.timeline.record import record

    with record() as recorded:
        found = make()
    recorded.meta["model"] = name
    if trace is not None:
        recorded.save(trace)
    if picture is not None and picture.suffix == ".svg":
        to_svg(recorded, picture, pane="timeline")
    elif picture is not None and picture.suffix == ".pdf":
        to_pdf(recorded, picture, "timeline")
    elif picture is not None:
        to_png(recorded, picture, "timeline")
    return found
