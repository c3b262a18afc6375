"""A player of one line, where a test is about the page around it."""

from __future__ import annotations

import pytest

STUB = "export function create(options) { globalThis.created = options; } // </script><!-- <script>\n"


@pytest.fixture
def stub_player(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("vizggml.export.html.player_module", lambda: STUB)
    return STUB
