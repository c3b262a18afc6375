"""Set up and run, with nothing but Python: `python run.py lab` opens the tour, `python run.py test` runs every check,
`python run.py book` makes the chapters into a site.

Each command makes `.venv` beside this file, installs vizggml into it, and goes on there. `test` also needs Chromium,
and takes it from the system's packages when it is missing and this is Debian or Ubuntu with root.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = Path(os.environ.get("VIZGGML_VENV", HERE / ".venv"))
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
MINIMUM = (3, 11)
WORKERS = 4
"""Of all tests so many files are run at once, at most: the browser's mostly wait."""


def run(*command: str | Path) -> None:
    print("$", *command, flush=True)
    code = subprocess.run([str(part) for part in command], cwd=HERE, check=False).returncode
    if code:
        sys.exit(code)


def install(extra: str) -> None:
    """Install the checkout, editable, unless what was installed last is what pyproject.toml still says."""
    stamp = VENV / f"installed{extra}"
    wanted = hashlib.sha256((HERE / "pyproject.toml").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    if not (BIN / "python").exists() and not (BIN / "python.exe").exists():
        print("$ python -m venv", VENV, flush=True)
        try:
            venv.create(VENV, with_pip=True)
        except subprocess.CalledProcessError:
            shutil.rmtree(VENV, ignore_errors=True)
            sys.exit("run.py: this Python cannot make a virtual environment (Debian: apt-get install python3-venv)")
    run(BIN / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "-e", f".{extra}")
    stamp.write_text(wanted)


def chromium() -> None:
    """The browser tests drive a real Chromium."""
    if any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")):
        return
    if shutil.which("apt-get") is None or (hasattr(os, "geteuid") and os.geteuid() != 0):
        sys.exit("run.py: the browser tests need Chromium on the PATH: install it with your system's packages")
    run("apt-get", "update", "-qq")
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core")


def lab(arguments: list[str]) -> None:
    install("[fast,models]")
    run(BIN / "vizggml", "lab", *arguments)


def check(_: list[str]) -> None:
    install("[test]")
    run(BIN / "ruff", "format", "--check", ".")
    run(BIN / "ruff", "check", ".")
    run(BIN / "mypy")


def test(arguments: list[str]) -> None:
    check([])
    chromium()
    if not arguments:
        run(BIN / "python", "tests/mutate_emits.py", "--fast")
        arguments = ["-n", str(min(WORKERS, os.cpu_count() or 1)), "--dist", "loadfile"]
    run(BIN / "python", "-m", "pytest", *arguments)


def book(arguments: list[str]) -> None:
    install("[book]")
    run(BIN / "python", "book/book.py", *(arguments or ["build/book"]))


COMMANDS = {"lab": lab, "check": check, "test": test, "book": book}


def main() -> None:
    if sys.version_info < MINIMUM:
        sys.exit(f"run.py: vizggml needs Python {MINIMUM[0]}.{MINIMUM[1]} or newer, this is {sys.version.split()[0]}")
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        sys.exit(f"usage: python run.py {' | '.join(COMMANDS)}")
    COMMANDS[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    main()
