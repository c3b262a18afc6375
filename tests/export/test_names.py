"""A trace has the exports as methods."""

from __future__ import annotations

import subprocess
import sys


def test_the_exporters_are_found_from_below() -> None:
    """In a process of its own: nothing here has imported the exports before."""
    code = """
from vizggml.timeline.trace import EXPORTERS, Trace, new_meta
assert not EXPORTERS
trace = Trace(new_meta(), [], {})
trace.to_html
print(sorted(EXPORTERS))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['dot', 'html', 'png', 'svg']"
