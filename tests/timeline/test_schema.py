"""What the recorder knows of every kind's fields."""

from __future__ import annotations

from dataclasses import fields

from vizggml.events import KINDS
from vizggml.timeline.schema import KIND_INDEX, TRACE_COLUMNS, WIDTHS, fields_of

FTYPES = """
    tensor context graph buffer allocator galloc cache seq int bytes offset float str bool dims ints tensors strs floats
    flags ns
""".split()


def test_every_field_of_every_kind_is_known() -> None:
    for kind in KINDS:
        own = [f.name for f in fields(kind) if f.name not in ("seq", "node", "cause")]
        assert [f.name for f in fields_of(kind)] == own
        assert {f.ftype for f in fields_of(kind)} <= set(FTYPES)
    assert len(KIND_INDEX) == len(KINDS) <= 256


def test_no_kind_has_a_field_that_the_bus_fills() -> None:
    for kind in KINDS:
        assert not {"seq", "node", "cause"} & set(kind.__annotations__)


def test_what_a_number_counts_is_told_by_its_name() -> None:
    ftypes = {(k.__name__, f.name): f.ftype for k in KINDS for f in fields_of(k)}
    assert ftypes["SearchBegin", "asked"] == "bytes"
    assert ftypes["SearchBegin", "tensor"] == "tensor"
    assert ftypes["BlockChosen", "offset"] == "offset"
    assert ftypes["BlockChosen", "exact"] == "bool"
    assert ftypes["GraphCreated", "size"] == "int"
    assert ftypes["NodeEnd", "ns"] == "ns"
    assert ftypes["FlagsSet", "flags"] == "flags"
    assert ftypes["OpRecorded", "src"] == "tensors"
    assert ftypes["LogitsReady", "logits"] == "floats"


def test_columns_of_a_trace() -> None:
    assert TRACE_COLUMNS["k.TensorCreated.ne"] == "i8"
    assert WIDTHS["k.TensorCreated.ne"] == 4
    assert TRACE_COLUMNS["k.OpRecorded.src.ptr"] == "u4"
    assert TRACE_COLUMNS["k.OpRecorded.src.val"] == "i4"
    assert TRACE_COLUMNS["k.LogitsReady.logits.val"] == "f8"
    assert TRACE_COLUMNS["k.BlockChosen.exact"] == "u1"
