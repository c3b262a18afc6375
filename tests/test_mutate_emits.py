"""The script that takes events away finds every one, and leaves modules that still run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.mutate_emits import ROOT, TESTS, Mutation, first_fit, mutations, own_tests

EVERY = mutations([], fast=False)


def test_every_emit_is_found() -> None:
    for path in (ROOT / "vizggml").rglob("*.py"):
        module = path.relative_to(ROOT / "vizggml").as_posix()
        code = ast.unparse(ast.parse(path.read_text()))
        without_text = re.sub(r'"""[\s\S]*?"""', "", code)
        found = [m for m in EVERY if m.module == module and m.text == "(-1)"]
        assert len(found) == without_text.count("bus.emit("), module


@pytest.mark.parametrize("mutation", EVERY, ids=str)
def test_a_mutated_module_still_parses(mutation: Mutation) -> None:
    source = (ROOT / "vizggml" / mutation.module).read_bytes()
    mutated = mutation.apply(source)
    ast.parse(mutated)
    assert mutated.count(b"bus.emit(") == source.count(b"bus.emit(") - (mutation.text == "(-1)")


def test_first_fit_is_one_change() -> None:
    mutation = first_fit()
    before = (ROOT / "vizggml/ggml/tallocr.py").read_text().splitlines()
    after = mutation.apply((ROOT / "vizggml/ggml/tallocr.py").read_bytes()).decode().splitlines()
    changed = [line for line, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b]
    assert changed == [mutation.line]


def test_the_tests_of_each_module_exist() -> None:
    for mutation in EVERY:
        tests = own_tests(mutation.module)
        assert tests, mutation.module
        assert all((ROOT / test).exists() for test in tests)
    assert all((ROOT / "vizggml" / module).exists() for module in TESTS)
    assert Path("tests/ggml/test_tallocr.py").as_posix() in own_tests("ggml/tallocr.py")


def test_the_fast_form_takes_one_of_each_module() -> None:
    fast = mutations([], fast=True)
    assert len({m.module for m in fast}) == len({m.module for m in EVERY})
    assert len(fast) == len({m.module for m in fast}) + 1
    assert {m.module for m in mutations(["tallocr"], fast=False)} == {"ggml/tallocr.py"}
