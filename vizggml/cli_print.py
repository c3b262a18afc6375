"""What the command line prints for people: tables, and pictures beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from vizggml.ggml.graph_file import AllocReport
    from vizggml.ggml.liveness import Liveness, Reached
    from vizggml.llama.fit import Fit
    from vizggml.llama.plan import Plan

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
            shape = " x ".join(map(str, t["ne"]))
            table.add_row(escape(t["name"]), t["type"], shape, f"{t['offset']:,}", f"{t['bytes']:,}")
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
    console.print(f"{report['size']:,} bytes in {len(chunks)} chunk{'s' if len(chunks) != 1 else ''}")


def live_line(live: Liveness, reached: Reached) -> str:
    """What the graph cannot do without, what it would be if nothing shared a place, and what is between, in a line."""
    above = (
        f"{reached.above_bound:,} more than the lower bound" if reached.above_bound else "the lower bound is reached"
    )
    return f"lower bound {live.bound:,} bytes, no reuse {live.no_reuse:,} bytes: {above}"


def print_plan(name: str, found: Plan, fitted: Fit | None) -> None:
    """The buffers, what stands at the peak of the compute buffer, and who gets which layers."""
    table = Table(title=escape(f"{name}: {found.architecture}, {found.nodes} nodes, {_n(found.splits, 'split')}"))
    table.title_justify = "left"
    table.add_column("buffer")
    table.add_column("bytes", justify="right")
    table.add_column("", justify="right")
    rows = [(f"weights, {buft}", size) for buft, size in found.model.items()]
    rows += [("KV cache", size) for size in found.kv]
    rows += [("output", found.output), ("compute", found.compute)]
    for what, size in rows:
        table.add_row(what, f"{size:,}", _size(size))
    if len(found.model) > 1:
        table.caption = "CPU_Mapped is a range of the file: matrices that are copied to CPU_REPACK lie in it too"
        table.caption_justify = "left"
    table.add_section()
    table.add_row("all", f"{found.total:,}", _size(found.total))
    console = Console()
    console.print(table)
    largest = sorted(found.peak, key=lambda t: -t["size"])[:AT_PEAK]
    peak = Table("tensor", title=f"at the peak of the compute buffer: {_n(len(found.peak), 'tensor')}")
    peak.title_justify = "left"
    for column in ("offset", "bytes", ""):
        peak.add_column(column, justify="right")
    for t in largest:
        peak.add_row(escape(t["name"]), f"{t['offset']:,}", f"{t['size']:,}", _size(t["size"]))
    console.print(peak)
    if fitted is not None:
        print_fit(console, fitted)


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


def _n(n: int, what: str) -> str:
    return f"{n} {what}{'s' if n != 1 else ''}"


def _size(n: int) -> str:
    from vizggml.views.labels import size

    return size(n)


def plan_recorded(name: str, make: Callable[[], Plan], picture: Path | None, trace: Path | None) -> Plan:
    """Make a plan while it is recorded; draw the lifetimes in its last reservation, and keep the trace."""
    from vizggml.export import to_png, to_svg
    from vizggml.timeline.record import record

    with record() as recorded:
        found = make()
    recorded.meta["model"] = name
    if trace is not None:
        recorded.save(trace)
    if picture is not None and picture.suffix == ".svg":
        to_svg(recorded, picture, pane="timeline")
    elif picture is not None:
        to_png(recorded, picture, "timeline")
    return found
