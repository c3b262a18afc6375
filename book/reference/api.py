"""The public names of a module, from its source: signatures with their types, docstrings, what they are in ggml."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import griffe
from markupsafe import Markup

from reference.markup import Names, parted

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 88
"""A signature longer than this has a line for each parameter."""
LONGEST_VALUE = 30
NOTHING = Markup("")
SKIPPED = ("snapshot", "describe")
"""How what stands tells a recording of itself: no caller needs them."""
SPECIAL = ("__init__", "__len__", "__getitem__", "__iter__", "__getattr__")


@dataclass
class Entry:
    """One documented name. `path` is where it is defined; `anchor` what leads to it on its page."""

    name: str
    anchor: str
    path: str
    kind: str
    signature: Markup
    file: str
    text: str
    sources: list[str]
    module: str = ""
    members: list[Entry] = field(default_factory=list)
    attributes: list[tuple[str, Markup]] = field(default_factory=list)


@cache
def package() -> Any:
    return griffe.load("vizggml", search_paths=[str(ROOT)], resolve_aliases=False)


def home_of(module: str, name: str) -> str:
    """Where a public name is defined, as a dotted path."""
    thing = getattr(importlib.import_module(module), name)
    if inspect.ismodule(thing):
        return thing.__name__
    own = getattr(thing, "__module__", None)
    if isinstance(own, str) and own.startswith("vizggml.") and hasattr(thing, "__qualname__"):
        return f"{own}.{thing.__qualname__}"
    homes = getattr(importlib.import_module(module), "_HOMES", {})
    for part, names in homes.items():
        if isinstance(names, str) and name in names.split():
            return f"{module}.{part}.{name}"
    found = package()[module.removeprefix("vizggml").removeprefix(".")] if module != "vizggml" else package()
    member = found.members[name]
    return str(member.target_path) if member.is_alias else f"{module}.{name}"


def found_at(path: str) -> Any:
    return package()[path.removeprefix("vizggml.")]


def is_written(path: str) -> bool:
    """Whether a name is in the source as itself; a builder that a table makes is not."""
    module, _, name = path.rpartition(".")
    return module == "vizggml" or name in found_at(module).members


def docstring_of(thing: Any) -> str:
    return inspect.cleandoc(thing.docstring.value) if thing.docstring else ""


class Reader:
    """Makes entries; `names` says which types in a signature are links."""

    def __init__(self, names: Names) -> None:
        self.names = names

    def entry(self, path: str, anchor: str, name: str) -> Entry:
        """The entry of what is defined at `path`, shown as `name`."""
        if not is_written(path):
            return self._made(path, anchor, name)
        thing = found_at(path)
        text, sources = parted(docstring_of(thing))
        file = str(Path(thing.filepath).relative_to(ROOT))
        if thing.is_class:
            signature = self._class(thing, name)
            entry = Entry(name, anchor, path, "class", signature, file, text, sources)
            self._fill(entry, thing)
            return entry
        if thing.is_module:
            return Entry(name, anchor, path, "module", Markup(escape(f"import {path}")), file, text, sources)
        kind = "function" if thing.is_function else "constant"
        signature = self._function(thing, name) if thing.is_function else self._constant(thing, name)
        return Entry(name, anchor, path, kind, signature, file, text, sources)

    def _made(self, path: str, anchor: str, name: str) -> Entry:
        """A function that a table made: its docstring is its own, its parameters are those of what made it."""
        module = importlib.import_module(path.rpartition(".")[0])
        made = getattr(module, name)
        text, sources = parted(inspect.cleandoc(made.__doc__ or ""))
        said = inspect.signature(made)
        parameters = [self._parameter(p.name, self._typed(str(p.annotation), module)) for p in said.parameters.values()]
        signature = laid_out(name, parameters, self._typed(str(said.return_annotation), module))
        file = str(Path(found_at(module.__name__).filepath).relative_to(ROOT))
        return Entry(name, anchor, path, "function", signature, file, text, sources)

    def _typed(self, annotation: str, module: Any) -> Markup:
        def linked(match: re.Match[str]) -> str:
            thing = getattr(module, match[0], None)
            path = f"{getattr(thing, '__module__', '')}.{match[0]}"
            return self._name(match[0], path)

        return Markup(re.sub(r"[A-Za-z_]\w*", linked, escape(annotation, quote=False)))

    def _name(self, shown: str, path: str) -> str:
        url = self.names.urls.get(path)
        return f'<a href="{url}">{escape(shown)}</a>' if url else escape(shown)

    def _expression(self, expression: Any) -> Markup:
        if expression is None:
            return Markup("")
        if isinstance(expression, str):
            return Markup(escape(expression, quote=False))
        parts = []
        for part in expression.iterate(flat=True):
            if isinstance(part, griffe.ExprName):
                parts.append(self._name(part.name, part.canonical_path))
            else:
                parts.append(escape(str(part), quote=False))
        return Markup("".join(parts))

    def _default(self, default: Any) -> Markup:
        """A default; of a constant of ours that is a plain value, the value."""
        if isinstance(default, griffe.ExprName | griffe.ExprAttribute) and default.canonical_path.startswith(
            "vizggml."
        ):
            home, _, name = default.canonical_path.rpartition(".")
            value = getattr(importlib.import_module(home), name)
            if type(value) in (int, float, str) and len(repr(value)) <= LONGEST_VALUE:
                return Markup(escape(repr(value), quote=False))
        return self._expression(default)

    def _parameter(self, name: str, annotation: Markup, default: Markup = NOTHING) -> Markup:
        said = Markup(f'<span class="p">{escape(name)}</span>')
        if annotation:
            said += Markup(": ") + annotation
        if default:
            said += Markup(" = " if annotation else "=") + default
        return said

    def _parameters(self, function: Any, bound: bool) -> list[Markup]:
        shown: list[Markup] = []
        starred = False
        for k, p in enumerate(function.parameters):
            if bound and k == 0:
                continue
            kind = p.kind.value if p.kind else ""
            if kind == "keyword-only" and not starred:
                shown.append(Markup("*"))
                starred = True
            stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
            starred = starred or stars == "*"
            default = Markup("") if stars or p.default is None else self._default(p.default)
            shown.append(self._parameter(stars + p.name, self._expression(p.annotation), default))
        return shown

    def _function(self, function: Any, name: str) -> Markup:
        bound = function.parent.is_class and "staticmethod" not in function.labels
        returns = self._expression(function.returns)
        if is_context_manager(function):
            name, returns = f"with {name}", self._expression(function.returns.slice)
        return laid_out(name, self._parameters(function, bound), returns)

    def _class(self, cls: Any, name: str) -> Markup:
        maker = cls.members.get("__init__")
        if maker is None or not maker.is_function:
            maker = next((b.members["__init__"] for b in bases(cls) if "__init__" in b.members), None)
        return laid_out(name, self._parameters(maker, True) if maker else [], Markup(""))

    def _constant(self, attribute: Any, name: str) -> Markup:
        said = self._parameter(name, self._expression(attribute.annotation))
        value = str(attribute.value) if attribute.value is not None else ""
        return said + (Markup(" = ") + escape(value, quote=False) if 0 < len(value) <= WIDTH else Markup(""))

    def _fill(self, entry: Entry, cls: Any) -> None:
        """The members that a caller may use; of a base class too, if it is ours."""
        seen: set[str] = set()
        for owner in (cls, *bases(cls)):
            for name, member in owner.members.items():
                if name in (*seen, *SKIPPED) or member.is_alias or (name.startswith("_") and name not in SPECIAL):
                    continue
                seen.add(name)
                self._member(entry, name, member)

    def _member(self, entry: Entry, name: str, member: Any) -> None:
        text, sources = parted(docstring_of(member))
        path, anchor = str(member.path), f"{entry.anchor}.{name}"
        file = entry.file
        if member.is_function:
            if name == "__init__" or (name.startswith("__") and not (text or sources)):
                return
            signature = self._function(member, name)
            entry.members.append(Entry(name, anchor, path, "method", signature, file, text, sources))
        elif member.is_attribute and "property" in member.labels:
            signature = self._parameter(name, self._expression(member.annotation))
            entry.members.append(Entry(name, anchor, path, "property", signature, file, text, sources))
        elif member.is_attribute and (text or sources):
            signature = self._parameter(name, self._expression(member.annotation))
            entry.members.append(Entry(name, anchor, path, "attribute", signature, file, text, sources))
        elif member.is_attribute and name not in parameters_of(found_at(entry.path)):
            entry.attributes.append((name, self._expression(member.annotation)))


def is_context_manager(function: Any) -> bool:
    return function.is_function and any(str(d.value) == "contextmanager" for d in function.decorators)


def parameters_of(cls: Any) -> set[str]:
    maker = cls.members.get("__init__")
    return {p.name for p in maker.parameters} if maker is not None and maker.is_function else set()


def bases(cls: Any) -> Iterator[Any]:
    """The classes of ours that `cls` extends, nearest first."""
    for base in cls.bases:
        path = getattr(base, "canonical_path", str(base))
        if path.startswith("vizggml."):
            found = found_at(path)
            yield found
            yield from bases(found)


def laid_out(name: str, parameters: list[Markup], returns: Markup) -> Markup:
    """A signature on one line, or with a line for each parameter."""
    end = Markup(" -&gt; ") + returns if returns else Markup("")
    inside = Markup(", ").join(parameters)
    head = Markup(f'<span class="n">{escape(name)}</span>')
    line = head + Markup("(") + inside + Markup(")") + end
    if len(line.striptags()) <= WIDTH:
        return line
    body = Markup("").join(Markup("    ") + p + Markup(",\n") for p in parameters)
    return head + Markup("(\n") + body + Markup(")") + end
