"""No measured number stands in a chapter's prose, where it would go stale: a cell prints it, or a named golden has it.

What a cell sets may be spoken of, and what a definition says; a number that cells only print may not.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest

from tests.notebooks.test_chapters import CHINESE, SOURCES, names, outputs

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:\s?%)?")
OTHER_WORDS = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|\*\*\d\d\.\d\*\*", re.DOTALL)
DEFINED: dict[str, dict[str, str]] = {
    "03-memory": {
        "120": "a size that exercise 03.2 gives",
        "128": "100 bytes rounded up to a multiple of 32",
        "192": "128 and 64, two sizes rounded up to multiples of 32",
    },
    "04-deferred": {"256": "the step in which attention sees more cells"},
    "07-plan": {"95%": "what exercise 07.2 asks for", "95 %": "the same"},
    "09-attention": {"16384": "the cells that exercise 09.2 gives"},
    "10-quantization": {"4.5": "bits: 18 bytes for 32 weights, or 144 for 256"},
}
"""By chapter, numbers that a cell prints too and that are no measurement: where each comes from."""


def numbers(text: str) -> set[str]:
    """Those of three digits and more, those with a fraction, and percentages: smaller ones are counts of a sentence."""
    found = {number.replace(",", "").strip() for number in NUMBER.findall(text)}
    return {n for n in found if len(re.sub(r"\D", "", n)) > 2 or "." in n or "%" in n}


@pytest.mark.parametrize("source", [*SOURCES, *CHINESE], ids=names)
def test_no_measured_number_in_the_prose(source: Path) -> None:
    notebook = nbformat.read(source.with_suffix(".ipynb"), 4)
    texts = [o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in outputs(notebook)]
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    prose = [OTHER_WORDS.sub(" ", cell.source) for cell in notebook.cells if cell.cell_type == "markdown"]
    measured = numbers("\n".join(texts)) - numbers("\n".join(code)) - DEFINED.get(source.stem, {}).keys()
    assert numbers("\n".join(prose)) & measured == set()


def test_a_measured_number_is_found() -> None:
    assert numbers("it takes 3,546,112 bytes, 12 % more, and 0.5 s, for 32 tokens") == {"3546112", "12 %", "0.5"}
