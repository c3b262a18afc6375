"""The K family: super-blocks of 256 elements, whose groups of 16 or 32 have scales that are themselves quantized."""
