"""The root of every error that vizggml raises on purpose."""


class VizggmlError(Exception):
    """An input or a request that cannot be served: one line that names the thing, the value and the limit."""
