"""Chromium and JupyterLab for the tests here, started once; whatever the console calls an error fails the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.driver import Lab, chromium, jupyterlab

HARMLESS = ("favicon.ico", "ResizeObserver loop", "404 (Not Found)", "widget model not found")
"""What JupyterLab's own page complains of: a missing icon, translations, layout observers, a kernel that is gone."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with jupyterlab(tmp_path_factory.mktemp("lab")) as started:
        yield started


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Make pages; `quiet=True` says that JupyterLab's own complaints are no errors."""
    contexts, errors = [], []

    def make(quiet: bool = False, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()

        def tell(text: str) -> None:
            if not (quiet and any(word in text for word in HARMLESS)):
                errors.append(text)

        page.on("console", lambda message: tell(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: tell(str(error)))
        return page

    yield make
    for context in contexts:
        context.close()
    assert errors == []
