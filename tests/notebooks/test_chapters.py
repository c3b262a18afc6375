"""The chapters run from top to bottom, and what is committed is what a code host can show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jupytext
import nbformat
import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len

from tests.chapters import build, ran, ran_again
from vizggml.lessons.telling import WIDTH

SOURCES = build.chapters()
CHINESE = build.chapters(language="zh")
MACHINE = re.compile(r"(?<![\w.~])/(home|root|work|tmp|Users|opt|usr)/")
"""Where a path of one machine begins."""
PRINTED = {
    "00-tour": [
        "Once upon a time",
        "<Model tiny.gguf: llama, 4 layers, width 256>",
        " events",
        "the plan takes 3,546,112 bytes; at node 29",
    ],
    "01-tensors": [
        "56 of the 150 nodes",
        "t ne (3, 4, 1, 1) nb (16, 4, 48, 48) at 368",
        "ggml.permute(1, 2, 0, 3): (32, 64, 4, 1)",
        "t is not computed: its op moves no byte.",
        "steps: 16 16 -28 16 16 -28 16 16 -28 16 16",
        "plain attention: 30 CONT in 1086 nodes; llama.cpp: 30 in 1086",
        "flash attention: 0 CONT in 936 nodes; llama.cpp: 0 in 936",
    ],
    "02-views": [
        "turned  made from head    view_src cache  view_offs 40",
        "offset 176 + 96 bytes ends past its 256 bytes",
        "where tail lies:     Address(8 of 32)",
        "After z nobody needs x: its 128 B at offset 0 of chunk 0 are free again.",
        "  8 SET_ROWS",
        "[0. 0. 7. 7.]",
    ],
    "03-memory": [
        "not enough space for a TENSOR (needed 1664, available 1504)",
        " go into one small buffer of 224 B.\nc has its memory: 120 B at offset 0 of buffer 1.",
        "mapped, nothing touched:    0 of 880 pages",
        "all of it:                880 of 880 pages",
        "after it has ended:   0 of our 880 pages shared",
        "dropped:                    0 of 880 pages",
        "the same byte again:     True",
        "CPU_Mapped: 96,576,768 bytes",
        "llama.cpp:  96,576,768 bytes",
    ],
    "04-deferred": [
        "described: 40,001,200,000 bytes of numbers",
        "in arena:  1,472 bytes of records",
        "sqr:          [ 2.  6. 12.]",
        "sqr_inplace:  [ 2.  8. 18.]",
        "n cannot be written over p: views of p are still needed.",
        "ubatch.n_seqs_unq (params) was 1, and 2 is",
        "kq_mask.ne[0] was 256 and must be 512",
        "plain attention: 1,086 nodes",
        "llama.cpp built anew for 1, 7",
        "after a prompt of 250, built anew for 1, 7",
    ],
    "05-galloc": [
        "wx at 0, wx+b at 8, out at 0; peak 16",
        "wx goes to offset 0 of chunk 0, its free end",
        "wx+b goes to offset 8 of chunk 0, its free end",
        "out goes to offset 0 of chunk 0: best fit exact",
        "the buffer has 16 bytes",
        "    W at   0\n    x at  32\n    b at  64\n   wx at  96\n wx+b at  96\n  out at  96",
        "the buffer has 128 bytes",
        "-a  holes: 64 at 0, 128 at 96      end: 288",
        "64 B at 160 join the free block before them",
        "best: 160    first: 224   worst: 224",
        "best: 224    first: 192   worst: 192",
        "the largest live set: 160",
        "norm cannot be written over h: other nodes still read h.",
        "524,928: True",
        "smollm2, n_tokens = 512\nin place     1,353.26 98.25  0.0%  0.0%  2.9%",
        "100,663,296 bytes  result_output MUL_MAT 512 x 49,152",
        "llama.cpp:     103,024,640 bytes\nvizggml:       103,024,640\nyour 25 lines: 103,024,640",
    ],
    "08-kv-cache": [
        "text of 64: 2,006 tokens given",
        "the same, bit for bit: True",
        "new token, 6    0    0    0 -inf    0    0 -inf -inf -inf -inf",
        "2,147,483,648 bytes: 2.0 GiB",
        "layers [0, 1, 2]: 256 cells, 393,216 bytes",
        " q8_0   25,067,520   25,067,520   25,067,520",
        " q8_0        1,296        1,296",
        "window: 2,359,296 bytes, by hand 2,359,296",
    ],
    "06-graph": [
        "131,071 visits to 17 tensors",
        "nodes: ['a', 'b', 'sum', 'out']",
        "{2: 32, 3: 1136, 8: 400, 9: 1504, 14: 768, 15: 1872}",
        "size 8, 17 slots",
        "{'x': 3, 'square': 1, 'out': 0}",
        "a tensor needs itself: 'd' <- 'b' <- 'a' <- 'd'",
        "left to right: long wide slim out",
        "    1,312 bytes",
        "right to left: wide slim long out",
        "    1,056 bytes",
        "SmolLM2: 1,086 nodes; llama.cpp: 1,086",
    ],
    "07-plan": [
        "{'a': 0, 'b': 64, 'c': 0, 'd': 64, 'out': 96}",
        "288 bytes of results in 192 bytes",
        "alive: [64, 96, 96, 96, 192, 96]  lower bound: 192",
        "BufferAllocated      0",
        "    llama.cpp: 103,024,640 bytes",
        "    ours:      103,024,640 bytes",
        "    llama.cpp:     203,552 bytes",
        "    ours:          203,552 bytes",
        "the buffer is as it was: True",
    ],
    "09-attention": [
        "planned   131,328 bytes",
        "kq-0  134,217,728 bytes",
        "out / S: 36.8806, in one go: 36.8806",
        "14,680,064 bytes on 16 threads",
        "minimind 8,192  160,442,368   27,277,312",
        "MiniMind as planned: True",
    ],
    "10-quantization": [
        "18 bytes, 4.5 bits a weight",
        "byte  0 s4 s4 s0 s0 s0 s0 s0 s0",
        "byte 11 m7 m7 m7 m7 s7 s7 s7 s7",
        "as open_block reads them: True",
        "-127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113",
        "byte for byte the same: True",
        "     F16: 16.01 bits a weight,  70.0 GB",
    ],
    "11-backends": [
        "DEV0: nodes 93 to 129",
        "the same logits: True",
        "right rows without a barrier: 4 of 8",
        "best possible:  0.67",
        "    32      35  2,512,896 bytes",
    ],
    "12-one-picture": [
        "The graph is built anew: ubatch.n_tokens (params) was 5, and 1",
        "The graph of the last evaluation is used again",
        "0 buffers allocated in them",
        "together  15.73 GB",
        "smollm2.compute.flash.2048  107,493,376  107,493,376  the same",
        "    text  ' 7, 8, 9, 10, 11, 12, 13'  ' 7, 8, 9, 10, 11, 12, 13'",
        "KV cache                       45.00                       45.00",
    ],
}
"""What a reader must find in a chapter: strides and places that ggml gives, counts of its graphs, its log's sizes."""


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def printed(notebook: Any) -> str:
    texts = [o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in outputs(notebook)]
    return "\n".join(texts)


def one_line(text: str) -> str:
    """A sentence is the same wherever its lines break."""
    return " ".join(text.split())


def names(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def test_there_are_chapters() -> None:
    assert {source.stem for source in SOURCES} >= set(PRINTED)


@pytest.mark.parametrize("source", [*SOURCES, *CHINESE], ids=names)
def test_a_chapter_runs(source: Path) -> None:
    text = printed(ran(source))
    assert text.strip()
    for wanted in PRINTED.get(source.stem, []):
        assert one_line(wanted) in one_line(text)


@pytest.mark.parametrize("source", [source for source in SOURCES if source.stem != "00-tour"], ids=names)
def test_what_is_to_be_changed_does_the_same_after_all_cells(source: Path) -> None:
    """A reader runs all, then comes back to "Change this": nothing that it needs has become something else."""
    cells = ran_again(source)
    assert cells
    for first, second in cells:
        assert said(second) == said(first), second.source


def said(cell: Any) -> list[str]:
    """What it printed. Contexts and buffers are counted from those that stand when a recording begins."""
    texts = [output.text for output in cell.outputs if output.output_type == "stream"]
    return [re.sub(r"\b(context|buffer) \d+", r"\1", text) for text in texts]


def test_what_a_cell_prints_is_one_output(tmp_path: Path) -> None:
    """However slowly it is printed: on a page each output has a frame of its own."""
    source = tmp_path / "slow.py"
    source.write_text("# %%\nprint('one', flush=True)\nprint('two', flush=True)\n", "utf-8")
    (output,) = outputs(build.execute(source))
    assert output.text == "one\ntwo\n"


@pytest.mark.parametrize("source", CHINESE, ids=names)
def test_both_languages_have_the_same_code(source: Path) -> None:
    twin = jupytext.read(source.parent.parent / source.name)
    here = jupytext.read(source)
    assert [c.cell_type for c in here.cells] == [c.cell_type for c in twin.cells]
    code = [[c.source for c in n.cells if c.cell_type == "code"] for n in (here, twin)]
    assert code[0] == code[1]
    words = [[c.source for c in n.cells if c.cell_type == "markdown"] for n in (here, twin)]
    assert all(max(text) >= "\u4e00" for text in words[0] if text not in words[1])


@pytest.mark.parametrize("source", [*SOURCES, *CHINESE], ids=names)
def test_no_star_is_left_in_the_text(source: Path) -> None:
    """Beside Chinese, `**...。**` is no mark: what closes must not stand between a full stop and a character."""
    texts = [MarkdownIt().render(c.source) for c in jupytext.read(source).cells if c.cell_type == "markdown"]
    words = re.sub(r"<pre>.*?</pre>|<code>.*?</code>|<[^>]+>", "", "\n".join(texts), flags=re.DOTALL)
    assert "*" not in words


@pytest.mark.parametrize("source", [*SOURCES, *CHINESE], ids=names)
def test_what_is_committed_is_the_text_with_its_pictures(source: Path) -> None:
    committed = nbformat.read(source.with_suffix(".ipynb"), 4)
    written = jupytext.read(source)
    assert [(c.cell_type, c.source) for c in committed.cells] == [(c.cell_type, c.source) for c in written.cells]
    data = [output.get("data", {}) for output in outputs(committed)]
    assert any("image/svg+xml" in d or "image/png" in d for d in data)
    assert not any(build.WIDGET in d or build.KEPT in d.get("text/html", "") for d in data)
    assert "widgets" not in committed.metadata
    assert not MACHINE.search(source.with_suffix(".ipynb").read_text("utf-8"))
    for wanted in PRINTED.get(source.stem, []):
        assert one_line(wanted) in one_line(printed(committed))


@pytest.mark.parametrize("source", [*SOURCES, *CHINESE], ids=names)
def test_no_line_is_wider_than_a_narrow_notebook(source: Path) -> None:
    """JupyterLab's code font is 7.83 pixels wide: 700 pixels, less the prompt and the margins, hold 74 of it."""
    committed = nbformat.read(source.with_suffix(".ipynb"), 4)
    code = [line for cell in committed.cells if cell.cell_type == "code" for line in cell.source.splitlines()]
    shown = [o for o in outputs(committed) if "image/svg+xml" not in o.get("data", {})]
    texts = [o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in shown]
    wide = [line for line in (*code, *"\n".join(texts).splitlines()) if cell_len(line) > WIDTH]
    assert wide == []
