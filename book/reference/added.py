"""The worked examples of how to add something: pieces of code, each with the file and the place where it goes.

They are kept as text: `=== FILE | PLACE`, then the lines. A place is `a new file`, `at the end`, or `before`, `after`
or `instead of` a line of the file, which stands there once (or is the `first` or `last` of its like). A test puts all
of them into a copy of the project and runs its tests there, so they fit the code as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "pages" / "added"
EXAMPLES = ("op", "architecture", "event", "pane")


@dataclass(frozen=True)
class Piece:
    """`text` goes into `file` at `place`; `line` is the line that the place is beside, if there is one."""

    file: str
    place: str
    line: str
    which: str
    text: str

    @property
    def where(self) -> str:
        """The place in words."""
        which = f"the {self.which} " if self.which else ""
        return f"{self.place} {which}`{self.line.strip()}`" if self.line else self.place

    @property
    def language(self) -> str:
        return {".js": "javascript", ".py": "python"}.get(Path(self.file).suffix, "text")

    def put(self, root: Path) -> None:
        """Put the piece into the project at `root`. ValueError if its line is not there, or not once."""
        path = root / self.file
        if self.place == "a new file":
            path.write_text(self.text, "utf-8")
            return
        text = path.read_text("utf-8")
        if self.place == "at the end":
            path.write_text(f"{text}\n\n{self.text}", "utf-8")
            return
        lines = text.splitlines(keepends=True)
        found = [k for k, line in enumerate(lines) if line.rstrip("\n") == self.line]
        if not found or (len(found) > 1 and not self.which):
            raise ValueError(f"{self.file}: the line {self.line!r} is there {len(found)} times")
        at = found[-1 if self.which == "last" else 0]
        first = at + (self.place == "after")
        lines[first : at + (self.place != "before")] = [self.text]
        path.write_text("".join(lines), "utf-8")


def pieces(example: str) -> list[Piece]:
    """The pieces of one example, in the order in which they are put."""
    found = []
    for part in re.split(r"^=== ", (FOLDER / f"{example}.txt").read_text("utf-8"), flags=re.MULTILINE)[1:]:
        head, _, text = part.partition("\n")
        file, place, *rest = head.split(" | ")
        line, which = (*rest, "", "")[:2]
        found.append(Piece(file, place, line, which, text))
    return found
