"""`vizggml view`: a trace made into whatever the output's name ends in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vizggml.errors import VizggmlError

if TYPE_CHECKING:
    from vizggml.timeline.trace import Trace

OPTIONS: dict[str, tuple[str, ...]] = {
    ".html": ("step", "pane"),
    ".svg": ("step", "pane", "theme"),
    ".png": ("step", "pane", "theme"),
    ".pdf": ("step", "pane", "theme"),
    ".gif": ("from", "to", "fps", "pane", "theme"),
    ".csv": ("step", "table"),
    ".dot": (),
    ".json": (),
}
"""The suffixes, and the options that go with each."""


class Theme(StrEnum):
    light = "light"
    dark = "dark"


def view(
    trace_file: Annotated[Path, typer.Argument(metavar="TRACE", help="a trace file (.vgt)")],
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="what to write: a page (.html), a figure (.svg .png .pdf), an animation (.gif), a table (.csv), "
            "the graph (.dot) or a trace for Perfetto (.json); a page beside TRACE if not said",
        ),
    ] = None,
    step: Annotated[
        int | None,
        typer.Option(help="the step that a page opens at, or a figure draws (where most memory is held)"),
    ] = None,
    pane: Annotated[
        list[str] | None, typer.Option(help="what is drawn: map, timeline, graph, events, ...; a page takes several")
    ] = None,
    from_: Annotated[int | None, typer.Option("--from", help="first step of an animation")] = None,
    to: Annotated[int | None, typer.Option("--to", help="last step of an animation")] = None,
    fps: Annotated[float | None, typer.Option(help="frames a second of an animation")] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="of .csv: tensors with their places (if not said), nodes, edges, events; a track: arena, block, "
            "buffer, cache, cell, chunk, count, eval, kv, life, live, node, place, reserve, reuse, scratch, split, "
            "thread, token; or a table of the player, such as free"
        ),
    ] = None,
    theme: Annotated[Theme | None, typer.Option(help="of a figure")] = None,
    browser: Annotated[bool, typer.Option(help="open a page that was written")] = True,
) -> None:
    """Make a trace into a page with the player, a figure, an animation, a table or a trace for Perfetto."""
    target = output or trace_file.with_suffix(".html")
    check_output(target, tuple(OPTIONS))
    said = {"step": step, "pane": pane or None, "from": from_, "to": to, "fps": fps, "table": table, "theme": theme}
    given = {name: value for name, value in said.items() if value is not None}
    check_options(target.suffix, given)
    from vizggml.timeline.trace import load_trace

    print(WRITERS[target.suffix](load_trace(trace_file), target, given))
    if browser and target.suffix == ".html":
        import webbrowser

        webbrowser.open(target.resolve().as_uri())


def check_options(suffix: str, given: dict[str, Any]) -> None:
    """VizggmlError for an option that does not go with the output."""
    for name in given:
        if name not in OPTIONS[suffix]:
            fitting = ", ".join(s for s, names in OPTIONS.items() if name in names)
            raise VizggmlError(f"--{name} does not go with {suffix}: it is for {fitting}")
    if suffix != ".html" and len(given.get("pane", ())) > 1:
        raise VizggmlError(f"--pane: {suffix} draws one pane, not {len(given['pane'])}")


def _page(trace: Trace, path: Path, given: dict[str, Any]) -> str:
    from vizggml.export import to_html
    from vizggml.widgets.view import check_panes

    to_html(trace, path, step=given.get("step"), panes=check_panes(given.get("pane")))
    return str(path)


def _figure(trace: Trace, path: Path, given: dict[str, Any]) -> str:
    from vizggml.export import to_pdf, to_png, to_svg

    pane, step, theme = given.get("pane", ["step"])[0], given.get("step"), str(given.get("theme", Theme.light))
    if path.suffix == ".svg":
        to_svg(trace, path, pane=pane, step=step, theme=theme)
    elif path.suffix == ".png":
        to_png(trace, path, pane, step=step, theme=theme)
    else:
        to_pdf(trace, path, pane, step=step, theme=theme)
    return f"{path}: {'' if pane == 'step' else f'{pane}, '}{_step_words(trace, pane, step)}"


def _step_words(trace: Trace, pane: str, step: int | None) -> str:
    from vizggml.views.pictures import FULLEST, usual_step

    if step is not None:
        return f"step {step:,}"
    why = "where the most memory is held" if pane in FULLEST else "the last"
    return f"step {usual_step(trace.tracks(), pane):,}, {why}; --step draws another"


def _animation(trace: Trace, path: Path, given: dict[str, Any]) -> str:
    from vizggml.export.gif import FPS, sampling, to_gif

    first = given.get("from", trace.tracks().opening)
    pane, fps, theme = given.get("pane", ["map"])[0], given.get("fps", FPS), str(given.get("theme", Theme.light))
    with progress_bar("looking for changes", "painting") as told:
        n = to_gif(trace, path, first, given.get("to"), fps=fps, pane=pane, theme=theme, progress=told)
    last = given.get("to", len(trace) - 1)
    words = sampling(last - first + 1, n)
    said = f"; {words}, --from and --to choose fewer steps" if words else ""
    return f"{path}: {n} frames of steps {first:,} to {last:,}, {path.stat().st_size:,} bytes{said}"


def _table(trace: Trace, path: Path, given: dict[str, Any]) -> str:
    from vizggml.export import to_csv

    name = given.get("table", "tensors")
    return f"{path}: {to_csv(trace, path, name, step=given.get('step')):,} rows of {name}"


def _graph(trace: Trace, path: Path, given: dict[str, Any]) -> str:
    from vizggml.export import to_dot

    to_dot(trace, path)
    return str(path)


def _perfetto(trace: Trace, path: Path, given: dict[str, Any]) -> str:
    from vizggml.export import to_perfetto

    return f"{path}: {to_perfetto(trace, path):,} entries; open it at ui.perfetto.dev"


WRITERS: dict[str, Callable[[Trace, Path, dict[str, Any]], str]] = {
    ".html": _page,
    ".svg": _figure,
    ".png": _figure,
    ".pdf": _figure,
    ".gif": _animation,
    ".csv": _table,
    ".dot": _graph,
    ".json": _perfetto,
}


@contextmanager
def progress_bar(*stages: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal's standard error for work that is done in `stages`, each counted from 1 to its total."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        waiting = list(stages)
        tasks: list[Any] = []

        def told(done: int, total: int) -> None:
            if done == 1 and waiting:
                tasks.append(bar.add_task(waiting.pop(0), total=total))
            bar.update(tasks[-1], completed=done)

        yield told


def check_output(path: Path, suffixes: tuple[str, ...]) -> None:
    """Refuse before any work is done what could not be written after it."""
    if path.suffix not in suffixes:
        raise VizggmlError(f"output {str(path)!r}: the name must end in {' or '.join(suffixes)}")
    if not path.resolve().parent.is_dir():
        raise VizggmlError(f"output {str(path)!r}: there is no folder {str(path.parent)!r}")
    if path.is_dir():
        raise VizggmlError(f"output {str(path)!r}: it is a folder")
