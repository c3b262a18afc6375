"""What a trace can be made into. A trace has each as a method too: `trace.to_html(path)`, ..."""

from vizggml.export.compare_html import compare_to_html
from vizggml.export.csv import to_csv
from vizggml.export.dot import to_dot
from vizggml.export.gif import to_gif
from vizggml.export.html import to_html
from vizggml.export.perfetto import to_perfetto
from vizggml.export.picture import to_pdf, to_png, to_svg
from vizggml.timeline.diff import EXPORTERS as COMPARISON_EXPORTERS
from vizggml.timeline.trace import EXPORTERS

EXPORTERS |= {
    "csv": to_csv,
    "dot": to_dot,
    "gif": to_gif,
    "html": to_html,
    "pdf": to_pdf,
    "perfetto": to_perfetto,
    "png": to_png,
    "svg": to_svg,
}
COMPARISON_EXPORTERS["html"] = compare_to_html

__all__ = ["to_csv", "to_dot", "to_gif", "to_html", "to_pdf", "to_perfetto", "to_png", "to_svg"]
