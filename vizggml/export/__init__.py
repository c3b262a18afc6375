"""What a trace can be made into. A trace has each as a method too: `trace.to_html(path)`, ..."""

from vizggml.export.dot import to_dot
from vizggml.export.html import to_html
from vizggml.export.png import to_png
from vizggml.export.svg import to_svg
from vizggml.timeline.trace import EXPORTERS

EXPORTERS |= {"dot": to_dot, "html": to_html, "png": to_png, "svg": to_svg}

__all__ = ["to_dot", "to_html", "to_png", "to_svg"]
