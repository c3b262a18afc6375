"""`python -m vizggml` is the command line."""

from vizggml.cli import main

main()
