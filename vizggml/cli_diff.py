"""`vizggml diff A.vgt B.vgt`: what differs between two traces, as text, as JSON, or as a page."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer


def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="a trace file (.vgt)")],
    b: Annotated[Path, typer.Argument(metavar="B", help="the trace to hold against it")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="also write a page with both side by side (.html)")
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="list every change, not only the weightiest")] = False,
    json_: Annotated[bool, typer.Option("--json", help="answer in JSON")] = False,
) -> None:
    """Compare two traces by structure: nodes, plans of memory, events. Nothing is run."""
    from vizggml.cli_export import check_output
    from vizggml.timeline.diff import diff as compared
    from vizggml.timeline.diff_words import SHOWN, text
    from vizggml.timeline.trace import load_trace

    if output is not None:
        check_output(output, (".html",))
    names = (a.stem, b.stem) if a.stem != b.stem else (str(a), str(b))
    found = compared(load_trace(a), load_trace(b), labels=names)
    if output is not None:
        from vizggml.export.compare_html import compare_to_html

        compare_to_html(found, output)
    if json_:
        print(json.dumps({**found.answer(), **({"output": str(output)} if output is not None else {})}))
        return
    at = found.pairs.index(found.main) if found.main is not None else 0
    more = f"--all lists them, --json has every tensor in .pairs[{at}].changes"
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    print(text(found, None if all_ else SHOWN, more, width))
    if output is not None:
        print(f"\n{output}: both side by side, {output.stat().st_size} bytes")
