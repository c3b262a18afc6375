"""The cells by themselves; expected values counted by hand."""

from __future__ import annotations

from vizggml.llama.kv_cells import KVCells


def filled() -> KVCells:
    """Cells 0 to 3 hold positions 0 to 3: of sequence 0, but 1 is shared and 3 is sequence 1's."""
    cells = KVCells(8, 2)
    for i, seqs in enumerate([(0,), (0, 1), (0,), (1,)]):
        cells.set(i, i, seqs)
    return cells


def test_counts() -> None:
    cells = filled()
    assert (len(cells), cells.used, cells.used_max_p1) == (8, 4, 4)
    assert (cells.seq_pos_min(0), cells.seq_pos_max(0)) == (0, 2)
    assert (cells.seq_pos_min(1), cells.seq_pos_max(1)) == (1, 3)
    assert cells.sequences(1) == [0, 1]
    assert cells.in_range(1, 3) == [1, 2]


def test_an_empty_cache_has_no_positions() -> None:
    cells = KVCells(4, 1)
    assert (cells.used, cells.used_max_p1, cells.seq_pos_min(0), cells.seq_pos_max(0)) == (0, 0, -1, -1)


def test_a_cell_is_empty_when_its_last_sequence_leaves() -> None:
    cells = filled()
    assert not cells.seq_rm(1, 0)
    assert cells.seq_rm(1, 1)
    assert cells.is_empty(1)
    assert (cells.used, cells.used_max_p1) == (3, 4)
    cells.rm(3)
    assert cells.used_max_p1 == 3


def test_moving_a_position_remembers_how_far_and_empties_below_zero() -> None:
    cells = filled()
    assert not cells.pos_add(2, -2)
    assert (int(cells.pos[2]), int(cells.shift[2]), cells.has_shift) == (0, -2, True)
    assert cells.pos_add(0, -1)
    assert cells.is_empty(0)
    assert int(cells.shift[0]) == 0
    cells.reset_shift()
    assert (int(cells.shift[2]), cells.has_shift) == (0, False)
