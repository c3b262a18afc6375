"""A real Chromium and a real JupyterLab, started and stopped; what the browser tests and the benchmark drive."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import nbformat
from playwright.sync_api import Browser, Page, expect, sync_playwright

REPOSITORY = Path(__file__).resolve().parents[2]
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
TOKEN = "for-the-tests"
START_S = 60
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}


@contextmanager
def chromium(more_flags: tuple[str, ...] = ()) -> Iterator[Browser]:
    """Chromium from the PATH, without a window; a user data folder of its own comes from Playwright."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        raise RuntimeError("no chromium on the PATH: the browser tests need one (apt install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, *more_flags])
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True)
class Lab:
    """A JupyterLab on a loopback port, its files in `folder`."""

    port: int
    folder: Path

    def write(self, name: str, *cells: str) -> None:
        """A notebook of code cells."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.folder / name)

    def open(self, page: Page, name: str) -> None:
        """Open a notebook, and wait for its kernel."""
        page.goto(f"http://127.0.0.1:{self.port}/lab/tree/{name}?token={TOKEN}&reset")
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=START_S * 1000)
        page.locator("#jp-main-statusbar").get_by_text("| Idle").first.wait_for(timeout=START_S * 1000)

    def run(self, page: Page, cell: int) -> None:
        """Run one cell, as a person does: a click into it, shift and enter; again if the kernel was not yet there."""
        shown = page.locator(".jp-CodeCell").nth(cell)
        for _ in range(START_S // 2):
            shown.locator(".cm-content").click()
            page.keyboard.press("Shift+Enter")
            try:
                expect(shown.locator(".jp-InputPrompt")).not_to_have_text("[ ]:", timeout=2000)
                return
            except AssertionError:
                continue
        raise RuntimeError(f"cell {cell} did not run")

    def output(self, page: Page, cell: int) -> str:
        """What a cell printed, waited for."""
        area = page.locator(".jp-CodeCell").nth(cell).locator(".jp-OutputArea-output").first
        area.wait_for(timeout=START_S * 1000)
        return area.inner_text().strip()


@contextmanager
def jupyterlab(folder: Path) -> Iterator[Lab]:
    """JupyterLab with its settings, data and files in `folder` alone."""
    files = folder / "files"
    for name in ("files", "config", "data", "runtime", "ipython", "home"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    port = free_port()
    environment = os.environ | {
        "HOME": str(folder / "home"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")])),
    }
    options = [f"--port={port}", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    options += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={files}", "--ServerApp.port_retries=0"]
    (folder / "config" / "labconfig").mkdir()
    (folder / "config" / "labconfig" / "default_setting_overrides.json").write_text(json.dumps(SETTINGS))
    with (folder / "log.txt").open("w") as log:
        command = [sys.executable, "-m", "jupyterlab", *options]
        server = subprocess.Popen(command, env=environment, cwd=files, stdout=log, stderr=log, start_new_session=True)
        try:
            wait_for(port, server, folder / "log.txt")
            yield Lab(port, files)
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(server.pid, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    url = f"http://127.0.0.1:{port}/api?token={TOKEN}"
    until = time.monotonic() + START_S
    while time.monotonic() < until and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not start: {log.read_text()[-2000:]}")


def refuse_network(page: Page) -> list[str]:
    """Refuse everything that is not a file or the page's own; the answer collects what was asked for."""
    asked: list[str] = []

    def judge(route: object, request: object) -> None:
        url = request.url  # type: ignore[attr-defined]
        if url.startswith(("file:", "data:", "blob:", "about:")):
            route.continue_()  # type: ignore[attr-defined]
        else:
            asked.append(url)
            route.abort()  # type: ignore[attr-defined]

    page.context.set_offline(True)
    page.route("**/*", judge)
    return asked
