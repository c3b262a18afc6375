"""The deferred builders, with ggml's names without its prefix and the context first.

A builder computes nothing: it checks shapes (VizggmlError), makes the result tensor in the context's arena and writes
the operation and its sources into it.
"""

from __future__ import annotations

from vizggml.ggml.op_record import *  # noqa: F403
from vizggml.ggml.ops_math import *  # noqa: F403
from vizggml.ggml.ops_model import *  # noqa: F403
from vizggml.ggml.ops_view import *  # noqa: F403
