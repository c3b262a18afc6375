"""Recording events as a trace, and folding a trace into tracks."""
