"""Take each event away, one at a time, and see that a test fails.

    python tests/mutate_emits.py                        every `bus.emit(...)` of the package, and first fit for best fit
    python tests/mutate_emits.py --module ggml/tallocr  only that module's
    python tests/mutate_emits.py --own                  only the module's own tests
    python tests/mutate_emits.py --fast                 only one event of each module, and its own tests, which are
                                                        known to pass: a quick check after all tests have run
    python tests/mutate_emits.py --list                 only say where the events are

Each is done in a copy of the package in a temporary folder. First the module's own tests run; where they notice
nothing, all tests but the browser's do. Exit code 1 if a removal went unnoticed, 2 if the tests fail as they are.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
COPIED = ("vizggml", "tests", "bench", "assets", "book", "notebooks", "pyproject.toml", "README.md", "run.py")
NOT_COPIED = shutil.ignore_patterns("node_modules", "__pycache__", ".*_cache")

TESTS: dict[str, tuple[str, ...]] = {
    "ggml/context.py": ("tests/ggml/test_context.py",),
    "ggml/tensor.py": ("tests/ggml/test_tensor.py", "tests/ggml/test_context.py"),
    "ggml/op_record.py": ("tests/ggml/test_ops.py",),
    "ggml/releasing.py": ("tests/ggml/test_releasing.py", "tests/timeline/test_fold.py"),
    "ggml/sched_assign.py": ("tests/ggml/test_sched.py",),
    "ggml/quants/__init__.py": ("tests/ggml/quants",),
    "llama/kv_cache.py": ("tests/llama/test_kv_cache.py", "tests/llama/test_kv_cache_iswa.py"),
    "llama/context.py": ("tests/llama/test_context.py", "tests/llama/test_routing.py"),
    "llama/generation.py": ("tests/llama/test_context.py", "tests/llama/test_generation.py"),
}
"""A module's own tests where they are not, or not only, in the file of the same name."""

EVERY_TEST = ("tests", "--ignore=tests/browser", "--ignore=tests/test_lab.py")

FIRST_FIT = (
    "vizggml/ggml/tallocr.py",
    "if size <= block.size <= best_size:",
    "if size <= block.size and best_size == SIZE_MAX:",
)
"""The first block that is large enough, instead of the smallest."""


@dataclass(frozen=True)
class Mutation:
    """One change of the package: what is at `begin` to `end` of the module becomes `text`."""

    module: str
    line: int
    what: str
    begin: int
    end: int
    text: str

    def __str__(self) -> str:
        return f"vizggml/{self.module}:{self.line}: {self.what}"

    def apply(self, source: bytes) -> bytes:
        return source[: self.begin] + self.text.encode() + source[self.end :]


def call_sites(path: Path) -> Iterator[Mutation]:
    """Every `bus.emit(...)` of a module, replaced by the number of no event."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    module = path.relative_to(ROOT / "vizggml").as_posix()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "bus.emit":
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            yield Mutation(module, node.lineno, emitted(node), begin, end, "(-1)")


def emitted(call: ast.Call) -> str:
    """What is emitted, as the source says it."""
    what = call.args[0] if call.args else call
    return ast.unparse(what.func if isinstance(what, ast.Call) else what)


def first_fit() -> Mutation:
    path, before, after = FIRST_FIT
    source = (ROOT / path).read_text()
    if source.count(before) != 1:
        raise SystemExit(f"{path}: expected one line {before!r}, found {source.count(before)}")
    begin = len(source[: source.index(before)].encode())
    line = source[: source.index(before)].count("\n") + 1
    return Mutation(
        "ggml/tallocr.py", line, "first fit instead of best fit", begin, begin + len(before.encode()), after
    )


def mutations(modules: Sequence[str], fast: bool) -> list[Mutation]:
    found: list[Mutation] = []
    for path in sorted((ROOT / "vizggml").rglob("*.py")):
        module = path.relative_to(ROOT / "vizggml").as_posix()
        if not modules or any(wanted in module for wanted in modules):
            sites = sorted(call_sites(path), key=lambda m: m.line)
            found += sites[len(sites) // 2 :][:1] if fast else sites
            if module == "ggml/tallocr.py":
                found.append(first_fit())
    return found


def own_tests(module: str) -> tuple[str, ...]:
    """The test files of a module: those of the table, or the one of the same name."""
    if module in TESTS:
        return TESTS[module]
    path = Path(module)
    mirrored = Path("tests") / path.parent / f"test_{path.name}"
    return (mirrored.as_posix(),) if (ROOT / mirrored).exists() else ()


class Copy:
    """The project in a temporary folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=NOT_COPIED)
            elif source.exists():
                shutil.copy(source, folder / name)

    def tests_pass(self, tests: Sequence[str], timeout: int) -> tuple[bool, str]:
        """Whether the tests pass, and the first that does not."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-x",
            "-q",
            "--no-header",
            "--tb=no",
            "-p",
            "no:cacheprovider",
            *tests,
        ]
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=timeout, check=False
            )
        except subprocess.TimeoutExpired:
            return False, f"no answer within {timeout} s"
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return done.returncode == 0, failed[0].split(" - ")[0] if failed else (done.stdout + done.stderr)[-300:]

    def noticed(self, mutation: Mutation, own_only: bool, timeout: int) -> str:
        """The test that fails with the mutation, "" if none does."""
        path = self.folder / "vizggml" / mutation.module
        before = path.read_bytes()
        path.write_bytes(mutation.apply(before))
        try:
            own = own_tests(mutation.module)
            rounds = [own] if own else []
            if not own_only or not own:
                rounds.append(EVERY_TEST)
            for tests in rounds:
                passed, failure = self.tests_pass(tests, timeout)
                if not passed:
                    return failure
            return ""
        finally:
            path.write_bytes(before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", action="append", default=[], help="only modules with this in their path")
    parser.add_argument("--own", action="store_true", help="run only the module's own tests")
    parser.add_argument("--fast", action="store_true", help="one event of each module, and only the module's own tests")
    parser.add_argument("--list", action="store_true", help="only list what would be taken away")
    parser.add_argument("--timeout", type=int, default=900, help="seconds for one run of the tests")
    options = parser.parse_args()
    chosen = mutations(options.module, options.fast)
    if options.list:
        print(*chosen, sep="\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="vizggml-mutate-") as folder:
        copy = Copy(Path(folder))
        groups = {own_tests(m.module) or EVERY_TEST for m in chosen}
        for tests in sorted(groups) if not options.fast else ():
            passed, failure = copy.tests_pass(tests, options.timeout)
            if not passed:
                print(f"the tests fail as they are: {failure}", file=sys.stderr)
                return 2
        unnoticed: list[Mutation] = []
        for number, mutation in enumerate(chosen, 1):
            begin = time.monotonic()
            failure = copy.noticed(mutation, options.own or options.fast, options.timeout)
            said = failure or "NOBODY NOTICED"
            print(f"[{number}/{len(chosen)}] {mutation}: {said} ({time.monotonic() - begin:.0f} s)", flush=True)
            if not failure:
                unnoticed.append(mutation)
    print(f"{len(chosen) - len(unnoticed)} of {len(chosen)} noticed")
    for mutation in unnoticed:
        print(f"unnoticed: {mutation}", file=sys.stderr)
    return 1 if unnoticed else 0


if __name__ == "__main__":
    raise SystemExit(main())
