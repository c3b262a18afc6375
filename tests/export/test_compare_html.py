"""The page of a comparison: one file, equal bytes for equal traces, nothing read as markup."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest

from tests.timeline.made import trace_of
from tests.timeline.test_diff import lesson, planned
from vizggml.errors import VizggmlError
from vizggml.export.compare_html import compare_html
from vizggml.timeline.diff import diff


def test_equal_traces_give_equal_pages(stub_player: str) -> None:
    pages = {compare_html(diff(planned(lesson()), planned(lesson(scaled=True)))) for _ in range(2)}
    assert len(pages) == 1


def test_only_the_script_of_the_page_may_run(stub_player: str) -> None:
    page = compare_html(diff(planned(lesson()), planned(lesson(n=10))))
    script = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "default-src 'none'" in page
    assert "http" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL).replace("http-equiv", "")


def test_without_scripts_the_figures_are_read(stub_player: str) -> None:
    page = compare_html(diff(planned(lesson()), planned(lesson(n=10)), labels=("<i>A</i>", "B")))
    assert "<h1>Peak 128 -&gt; 288 B</h1>" in page
    assert "<td>peak</td><td>128 B</td><td>288 B</td>" in page
    assert "<i>A" not in page


def test_what_cannot_be_written_is_refused(tmp_path: Path, stub_player: str) -> None:
    found = diff(planned(lesson()), planned(lesson()))
    with pytest.raises(VizggmlError, match="step 9999: the trace has steps 0 to"):
        found.to_html(tmp_path / "x.html", step=9999)
    with pytest.raises(VizggmlError, match="cannot be written"):
        found.to_html(tmp_path / "none" / "x.html")
    empty = diff(trace_of(), trace_of())
    empty.to_html(tmp_path / "empty.html")
    assert "The two traces are alike" in (tmp_path / "empty.html").read_text()
