"""The house keeps its order: who may import whom, how long a module may be, what `import vizggml` may load."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "vizggml"
MODULES = sorted(PACKAGE.rglob("*.py"))
LINE_BUDGET = 500

FLOORS = (
    ("vizggml.errors", "vizggml.events"),
    ("vizggml.files",),
    ("vizggml.ggml.types",),
    ("vizggml.ggml.tensor",),
    ("vizggml.ggml.context",),
    ("vizggml.ggml",),
    ("vizggml.llama", "vizggml.timeline"),
    ("vizggml.lessons", "vizggml.views"),
    ("vizggml.export",),
    ("vizggml.widgets",),
    ("vizggml.lab",),
    ("vizggml.cli_block", "vizggml.cli_print", "vizggml.cli_export"),
    ("vizggml.cli_diff", "vizggml.cli_quantize"),
    ("vizggml.cli",),
    ("vizggml.__main__",),
)
ROOMS = {room: (floor, room) for floor, rooms in enumerate(FLOORS) for room in rooms}


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(path) for path in MODULES}


def room_of(module: str) -> tuple[int, str] | None:
    """The floor and the room of a module; None for the package's own lazy face."""
    best = max((room for room in ROOMS if module == room or module.startswith(room + ".")), key=len, default=None)
    return ROOMS[best] if best else None


def imports(path: Path) -> set[str]:
    """Modules of ours that a file imports when it runs: what stands under TYPE_CHECKING does not run."""
    tree = ast.parse(path.read_text())
    typing_only: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            typing_only.update(inner for child in node.body for inner in ast.walk(child))
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in NAMES else node.module)
    return {name for name in found if name.startswith("vizggml.")}


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_a_room_imports_only_from_floors_below(path: Path) -> None:
    here = room_of(module_name(path))
    if here is None:
        assert module_name(path) in {"vizggml", "vizggml.__main__"}
        return
    for name in imports(path):
        there = room_of(name)
        if there is None or there[1] == here[1]:
            continue
        assert there[0] < here[0], f"{module_name(path)} (floor {here[0]}) imports {name} (floor {there[0]})"


def test_no_circles() -> None:
    names = {module_name(path): path for path in MODULES}
    edges = {name: sorted((imports(path) & names.keys()) - {name}) for name, path in names.items()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail[trail.index(name) :], name))
        if name not in done:
            for other in edges[name]:
                if not name.startswith(other + "."):
                    visit(other, (*trail, name))
            done.add(name)

    for name in names:
        visit(name, ())


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_line_budget(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LINE_BUDGET


def test_import_is_light() -> None:
    heavy = ("matplotlib", "ipywidgets", "anywidget", "numba", "IPython", "jupyterlab", "graphviz")
    code = f"import sys, vizggml; print([m for m in {heavy!r} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert out.stdout.strip() == "[]"
