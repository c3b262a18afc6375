"""The commands as the command line knows them: usage, options, defaults, examples."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from vizggml import cli

PROGRAM = "vizggml"


@dataclass(frozen=True)
class Parameter:
    """An argument or an option: every way to write it, what it takes, what it is when it is not said."""

    names: tuple[str, ...]
    takes: str
    default: str
    help: str
    needed: bool = False


@dataclass(frozen=True)
class Command:
    """One command. `examples` are whole command lines."""

    name: str
    text: str
    usage: str
    arguments: list[Parameter]
    options: list[Parameter]
    examples: list[str]


def commands() -> Iterator[Command]:
    """All commands, in the order of `vizggml --help`."""
    group: Any = typer.main.get_command(cli.app)
    for name, command in group.commands.items():
        hints = get_type_hints(inspect.unwrap(callback_of(name)), include_extras=True)
        arguments, options = [], []
        for parameter in command.params:
            if parameter.name == "help":
                continue
            is_argument = not parameter.opts[0].startswith("-")
            told = parameter_of(parameter, hints[parameter.name], is_argument)
            (arguments if is_argument else options).append(told)
        shown = [
            a.names[0] if p.required else f"[{a.names[0]}]" for a, p in zip(arguments, command.params, strict=False)
        ]
        usage = " ".join([PROGRAM, name, *shown, *(["[OPTIONS]"] if options else [])])
        text = as_code(" ".join(inspect.cleandoc(command.help or "").split()))
        examples = (command.epilog or "").partition("Example:")[2].split("  |  ")
        yield Command(name, text, usage, arguments, options, [e.strip() for e in examples if e.strip()])


def callback_of(name: str) -> Any:
    for registered in cli.app.registered_commands:
        callback = registered.callback
        if callback is not None and (registered.name or callback.__name__.replace("_", "-")) == name:
            return callback
    raise KeyError(name)


def parameter_of(parameter: Any, hint: Any, is_argument: bool) -> Parameter:
    plain, info = get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, None)
    plain = optional(plain)
    names = (parameter.metavar or parameter.name.upper(),) if is_argument else option_names(parameter)
    takes = "" if plain is bool else takes_of(plain, parameter, info)
    needed = bool(parameter.required) and not is_argument
    return Parameter(names, takes, default_of(parameter, plain), as_code(parameter.help or ""), needed)


def as_code(text: str) -> str:
    """Options that a text names, as code."""
    return re.sub(r"(?<![`\w])--[a-z][a-z-]*", r"`\g<0>`", text)


def option_names(parameter: Any) -> tuple[str, ...]:
    return (*parameter.opts, *parameter.secondary_opts)


def optional(hint: Any) -> Any:
    """The type without None."""
    if get_origin(hint) is UnionType or str(hint).startswith("typing.Optional"):
        return next(arg for arg in get_args(hint) if arg is not type(None))
    return hint


def takes_of(plain: Any, parameter: Any, info: Any) -> str:
    if get_origin(plain) is list:
        return f"{takes_of(get_args(plain)[0], parameter, info)}, may be repeated"
    if isinstance(plain, type) and issubclass(plain, Enum):
        return " | ".join(str(member.value) for member in plain)
    word = {int: "whole number", float: "number", Path: "path", str: "text"}.get(plain, str(plain))
    low, high = getattr(info, "min", None), getattr(info, "max", None)
    if low is not None:
        word += f" from {low:g}" + (f" to {high:g}" if high is not None else "")
    return word


def default_of(parameter: Any, plain: Any) -> str:
    """What it is when it is not said; nothing for what must be said, or what is then left out."""
    if isinstance(getattr(parameter, "show_default", None), str):
        return str(parameter.show_default)
    default = parameter.default
    if parameter.required or default is None or callable(default):
        return ""
    if plain is bool:
        return option_names(parameter)[0] if default else (*parameter.secondary_opts, "")[0]
    return str(default.value if isinstance(default, Enum) else default)
