"""Make the chapters into a site: static pages with working players, no kernel, nothing fetched.

python book/book.py OUT            # all chapters, both languages
python book/book.py OUT 05         # those whose name begins so
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from markupsafe import Markup
from nbconvert import HTMLExporter
from nbformat.v4 import new_output

sys.path.insert(0, str(Path(__file__).parent))

import build
from pages import NAMES, SECTIONS, Link, Page, Site
from players import Kept, Players, image
from reference import make_reference

from vizggml.views.pictures import picture

TITLES = {"en": "vizggml: the chapters", "zh": "vizggml：各章"}
OPENINGS = {
    "en": "How llama.cpp works, step by step: each chapter builds a part of it in a few lines, then steps through the "
    "real thing. Every player in these pages runs; click into one and press → and ←.",
    "zh": "一步一步看懂 llama.cpp：每一章先用几行代码搭出它的一个部分，再逐步走过真正的实现。"
    "页面里的播放器都能操作：点进去，按 → 和 ←。",
}
NOTES = {
    "en": "This page is the notebook {}, as it ran. To run it yourself and change it: <code>python3 run.py lab</code>.",
    "zh": "本页是 notebook {} 运行一遍的样子。想自己运行、修改，用 <code>python3 run.py lab</code>。",
}
DOES = {
    "00-tour": "加载 tiny 模型，生成文本，点一个词，一步步看它是怎么算出来的",
    "01-tensors": "亲手写步长；转置、reshape、permute 都不搬一个字节；看什么时候非复制不可",
    "02-views": "搭一串视图，看偏移怎样加成一个和；为什么有四种 op 什么也不算",
    "03-memory": "把 arena 写满，把张量搬进缓冲区，映射一个文件，看模型一页页进来",
    "04-deferred": "先写下操作，晚些再算；把图复用的条件一个个打破",
    "05-galloc": "图分配器：relu(Wx + b) 的三种分配，然后是真实一步解码的图",
    "06-graph": "深度优先遍历、哈希集合、使用计数、环；两种顺序为什么占用的内存不同",
    "07-plan": "把生命周期画成矩形；计算时不再分配；一份规划省多少，在哪些图上省",
    "08-kv-cache": "缓存花多少、省多少；分组的头、量化的缓存、滑动窗口",
    "09-attention": "scratch 取最大值，不求和；十行写出分块与在线 softmax",
    "10-quantization": "亲手写一个 Q4_0 块；K 与 IQ 类型；重要性；真实权重上误差与比特数的关系",
    "11-backends": "线程与屏障；一部分层放到第二个设备上，看 split 与复制",
    "12-one-picture": "一个 token 走过的全部路程，以及 14 GB 怎么装得下的那笔账",
}
"""What a reader does in each chapter; in English README's table says it."""
COVERS = {
    "00-tour": "tokens",
    "01-tensors": "tensor",
    "02-views": "graph",
    "03-memory": "arena",
    "04-deferred": "reuse",
    "05-galloc": "timeline",
    "06-graph": "graph",
    "07-plan": "timeline",
    "08-kv-cache": "kv",
    "09-attention": "scratch",
    "10-quantization": "block",
    "11-backends": "threads",
    "12-one-picture": "step",
}
"""The pane that stands for each chapter in the list."""
NOTHING = 130
"""A figure that says that there is nothing to draw is no higher."""
HEAD, LEGEND = 62, 26
LEAST = 0.2
"""Of its width a cover's height: a lower figure would stand too large."""
VIEW = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)" width="[\d.]+" height="[\d.]+"')
GROUND = re.compile(r'(<g id="patch_[12]">\s*<path [^>]*style="fill: )#ffffff')
TITLE = re.compile(r"<title>([^<]*)</title>")
HEADING = re.compile(r"^# (.+)$", re.MULTILINE)
ROW = re.compile(r"^\| `(\d\d-[\w-]+)` \| (.+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Chapter:
    """`path` is where its page lies in the site; `does` what a reader does in it."""

    source: Path
    language: str
    title: str
    does: str

    @property
    def path(self) -> str:
        folder = "" if self.language == "en" else f"{self.language}/"
        return f"{folder}{self.source.stem}.html"


def found(prefix: str = "") -> list[Chapter]:
    table = dict(ROW.findall((build.NOTEBOOKS.parent / "README.md").read_text("utf-8")))
    does = {"en": table, "zh": DOES}
    return [
        Chapter(source, language, title_of(source), does[language].get(source.stem, ""))
        for language in NAMES
        for source in build.chapters(prefix, language)
    ]


def title_of(source: Path) -> str:
    heading = HEADING.search(re.sub(r"^# %%.*$|^# ?", "", source.read_text("utf-8"), flags=re.MULTILINE))
    return heading[1] if heading else source.stem


def playing(notebook: Any) -> tuple[Any, Players]:
    """The notebook with a figure in the place of a player's two outputs, and what the figures have in common."""
    players = Players()
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"{number}"
        if cell.cell_type == "code":
            cell.outputs = figured(cell.outputs, players)
    return notebook, players


def figured(outputs: list[Any], players: Players) -> list[Any]:
    """A cell's outputs as a page shows them: players as figures, no stderr."""
    shown, drawn = [], ""
    outputs = [output for output in outputs if output.get("name") != "stderr"]
    for output, after in pairwise([*outputs, None]):
        data = output.get("data", {})
        if build.WIDGET in data and after is not None and build.is_kept(after):
            drawn = data[build.SVG]
        elif build.is_kept(output):
            shown.append(as_html(players.figure(Kept(data["text/html"]), drawn)))
        elif build.SVG in data:
            shown.append(as_html(still(data[build.SVG])))
        else:
            data.pop(build.WIDGET, None)
            shown.append(output)
    return shown


def still(svg: str) -> str:
    """A picture in its figure; a plot of matplotlib's without its white ground: a dark page turns its colours round."""
    bare = GROUND.sub(r"\1none", svg)
    title = TITLE.search(svg)
    drawn = image(bare, unescape(title[1]) if title else "figure")
    return f'<figure class="{"still" if bare == svg else "plot"}">{drawn}</figure>'


def as_html(text: str) -> Any:
    return new_output("display_data", {"text/html": text})


def body_of(notebook: Any) -> Markup:
    """The cells as HTML; links between notebooks become links between pages."""
    exporter = HTMLExporter(template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True)
    body, _ = exporter.from_notebook_node(build.without_this_machine(notebook))
    return Markup(re.sub(r'href="([^":]*?)\.ipynb(#[^"]*)?"', r'href="\1.html\2"', body))


class Links(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if tag == "a" and said.get("href"):
            self.targets.add(str(said["href"]))
        if said.get("id"):
            self.ids.add(str(said["id"]))


def broken_links(folder: Path) -> list[str]:
    """Links of the pages in `folder` that lead nowhere; those that leave the site are among them."""
    folder = folder.resolve()
    pages: dict[Path, Links] = {}
    for page in sorted(folder.rglob("*.html")):
        pages[page] = Links()
        pages[page].feed(page.read_text("utf-8"))
    broken = []
    for page, links in pages.items():
        for target in sorted(links.targets):
            path, _, anchor = target.partition("#")
            there = (page.parent / unquote(path)).resolve() if path else page
            if there not in pages or (anchor and not {anchor, unquote(anchor)} & pages[there].ids):
                broken.append(f"{page.relative_to(folder)}: {target}")
    return broken


def make(
    folder: Path, chapters: list[Chapter], run: Callable[[Path], Any] = build.execute, *, reference: bool = True
) -> list[Path]:
    """The site of the chapters in `folder`, with the reference; its pages.

    `run` gives a chapter's notebook with its outputs.
    """
    site = Site(folder, sections=("chapters", "reference") if reference else ("chapters",))
    progress = build.Progress(len(chapters))
    pictures: dict[str, str] = {}
    for k, chapter in enumerate(chapters):
        with progress.chapter(chapter.source, chapter.language) as told:
            notebook = run(chapter.source)
            pictures[chapter.path] = cover(chapter, notebook)
            warnings = build.complaints(notebook)
            page = site.write(page_of(chapter, chapters, k, notebook))
            told.append(f"{page.stat().st_size / 1024:,.0f} KiB")
        progress.warn(warnings)
    for language in NAMES:
        own = [c for c in chapters if c.language == language]
        if own:
            site.write(index_of(own, pictures, len(own) < len(chapters)))
    if reference:
        with progress.console.status("the reference"):
            write_reference(site)
    (folder / ".nojekyll").touch()
    progress.end(f"{len(site.written)} pages in {folder}")
    return site.written


def write_reference(site: Site) -> None:
    for sheet in make_reference():
        path = f"reference/{sheet.name}"
        site.write(Page(path, sheet.title, sheet.body, section="reference", description=sheet.description))


def page_of(chapter: Chapter, chapters: list[Chapter], k: int, notebook: Any) -> Page:
    beside = [chapters[j] if 0 <= j < len(chapters) else None for j in (k - 1, k + 1)]
    before, after = (Link(c.title, c.path) if c and c.language == chapter.language else None for c in beside)
    twins = {c.language: c.path for c in chapters if c.source.stem == chapter.source.stem and c is not chapter}
    name = Markup("<code>{}</code>").format(chapter.source.with_suffix(".ipynb").name)
    shown, players = playing(notebook)
    return Page(
        chapter.path,
        chapter.title,
        body_of(shown),
        chapter.language,
        note=Markup(NOTES[chapter.language]).format(name),
        description=f"{chapter.title}: {chapter.does}." if chapter.does else chapter.title,
        before=before,
        after=after,
        twins=twins,
        players=players,
    )


def cover(chapter: Chapter, notebook: Any) -> str:
    """What stands for a chapter in the list: a pane with something in it, of a player that opens it where one does."""
    pane = COVERS.get(chapter.source.stem, "step")
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs if build.is_kept(o)]
    kept = [player for player in (Kept(o.data["text/html"]) for o in outputs) if player.page]
    for player in sorted(kept, key=lambda player: pane not in player.panes):
        drawn = str(picture(player.tracks(), pane, theme="auto"))
        box = VIEW.search(drawn)
        if box and float(box[2]) > NOTHING:
            return trimmed(drawn, box)
    return ""


def trimmed(svg: str, box: re.Match[str]) -> str:
    """A figure, of which `box` is the size as it says it, without its heading and its legend."""
    width = float(box[1])
    height = max(float(box[2]) - HEAD - LEGEND, LEAST * width)
    return svg.replace(box[0], f'viewBox="0 {HEAD} {width:g} {height:g}" width="{width:g}" height="{height:g}"')


def index_of(chapters: list[Chapter], pictures: dict[str, str], other: bool) -> Page:
    """The first page of a language: its chapters, what is done in each, a picture of each."""
    language = chapters[0].language
    body = Markup('<h1>{}</h1><p class="opening">{}</p><ol class="chapters">').format(
        TITLES[language], OPENINGS[language]
    )
    for chapter in chapters:
        drawn = Markup(image(pictures[chapter.path], "")) if pictures[chapter.path] else ""
        centred = " centred" if COVERS.get(chapter.source.stem) == "graph" else ""
        body += Markup(
            '<li><a href="{}"><span class="cover{}">{}</span><span class="title">{}</span></a><p>{}</p></li>\n'
        ).format(f"{chapter.source.stem}.html", centred, drawn, chapter.title, sentence(chapter.does))
    twins = {k: SECTIONS["chapters"][k].path for k in NAMES if k != language} if other else {}
    path = SECTIONS["chapters"][language].path
    return Page(path, TITLES[language], body + Markup("</ol>"), language, description=OPENINGS[language], twins=twins)


def sentence(words: str) -> str:
    """With a capital and a full stop."""
    stop = "。" if words and max(words) >= "\u4e00" else "."
    return f"{words[:1].upper()}{words[1:]}{stop}" if words else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("prefix", nargs="?", default="")
    chosen = parser.parse_args()
    chapters = found(chosen.prefix)
    if not chapters:
        sys.exit(f"no chapter's name begins with {chosen.prefix!r}")
    make(chosen.folder, chapters)
    broken = broken_links(chosen.folder)
    if broken and not chosen.prefix:
        sys.exit("links that lead nowhere:\n" + "\n".join(broken))
    print(f"Open it in a browser: {(chosen.folder / 'index.html').resolve()}")


if __name__ == "__main__":
    main()
