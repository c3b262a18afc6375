"""The engine alone, with ggml's names."""
