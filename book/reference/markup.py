"""Text to HTML: Markdown as docstrings and pages have it, names that lead to where they are told, coloured code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

SOURCE = re.compile(
    r"(`[^`]+`(?:(?:,\s+(?:and\s+)?|\s+and\s+|\s+to\s+)`?[\w:*]+`?)*,?(?:\s+in)?\s+"
    r"(?:ggml|src|common|tools|include|examples)/[\w./-]+?\.(?:cpp|c|h)\b)"
)
"""Where a docstring says what a thing is in ggml: the function in backticks, then the file."""

BEGINS = r"(?:(?<=^)|(?<=[.:\n] )|(?<=\n))"
ALONE = re.compile(rf"{BEGINS}{SOURCE.pattern}(?:[,;] {SOURCE.pattern})*\.(?=\s|$)")
BEFORE_COLON = re.compile(rf"{BEGINS}{SOURCE.pattern}:\s+\w")


@dataclass
class Names:
    """Where each documented name is told: an address within the folder, by every way of writing the name."""

    urls: dict[str, str] = field(default_factory=dict)

    def add(self, url: str, *names: str) -> None:
        for name in names:
            self.urls.setdefault(name, url)

    def link(self, name: str, shown: str | None = None) -> Markup:
        """The name as code, and a link where it is documented."""
        code = f"<code>{escape(name if shown is None else shown)}</code>"
        url = self.urls.get(name.removesuffix("()"))
        return Markup(f'<a href="{url}">{code}</a>') if url else Markup(code)


def slug(text: str) -> str:
    return re.sub(r"[^\w]+", "-", text.lower()).strip("-")


def coloured(code: str, language: str) -> str:
    try:
        lexer = get_lexer_by_name(language or "text")
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    return str(highlight(code, lexer, HtmlFormatter()))


class Writer:
    """Renders Markdown; a code span that is a documented name becomes a link."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.markdown = MarkdownIt("commonmark").enable("table")
        self.markdown.renderer.rules["code_inline"] = self._code
        self.markdown.renderer.rules["fence"] = self._fence
        self.markdown.renderer.rules["heading_open"] = self._heading
        self.markdown.renderer.rules["table_open"] = lambda *_: '<div class="wide"><table>'
        self.markdown.renderer.rules["table_close"] = lambda *_: "</table></div>"

    def __call__(self, text: str) -> Markup:
        return Markup(self.markdown.render(text))

    def line(self, text: str) -> Markup:
        """One line of text, with no paragraph around it."""
        return Markup(self.markdown.renderInline(text))

    def _code(self, tokens: list[Token], k: int, *_: object) -> str:
        inside = any(t.type == "link_open" for t in tokens[:k]) and not any(t.type == "link_close" for t in tokens[:k])
        return f"<code>{escape(tokens[k].content)}</code>" if inside else str(self.names.link(tokens[k].content))

    def _fence(self, tokens: list[Token], k: int, *_: object) -> str:
        return coloured(tokens[k].content, tokens[k].info.strip())

    def _heading(self, tokens: list[Token], k: int, *_: object) -> str:
        return f'<{tokens[k].tag} id="{slug(tokens[k + 1].content)}">'


def parted(docstring: str) -> tuple[str, list[str]]:
    """What a docstring says, and what it names of ggml or llama.cpp.

    A sentence that only names the function and its file is taken out of the text, and so is a name that a sentence
    begins with and a colon follows.
    """
    found = SOURCE.findall(docstring)
    text = ALONE.sub("", docstring)
    text = BEFORE_COLON.sub(lambda match: match[0][-1].upper(), text)
    text = re.sub(r"(?<![`\w])VizggmlError(?![`\w])", "`VizggmlError`", text)
    return re.sub(r"[ \t]+\n", "\n", text).strip(), [re.sub(r"\s+", " ", one) for one in found]


def origin(source: str) -> str:
    """Whose function a source names."""
    return "ggml" if re.search(r"[ ,]ggml/", source) else "llama.cpp"
