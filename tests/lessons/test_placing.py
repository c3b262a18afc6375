"""Chains as the allocator places them, against hand computation."""

from vizggml.lessons.placing import peak_of


def test_the_textbook_chain_takes_two_blocks() -> None:
    assert peak_of((8, 8, 8), alignment=8) == 16


def test_a_block_that_is_too_small_is_passed_over() -> None:
    """64 at 0, 32 at 64; 64 bytes are free at 0 when 96 are asked for: they begin at 96."""
    assert peak_of((64, 32, 96)) == 192
