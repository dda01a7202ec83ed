"""Indented text as a web page whose blocks fold: loop nests and loop IR to read in a browser. One file."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

_WORDS = r"for|parallel|vectorized|unrolled|produce|consume|allocate|realize|let|if|else|assert|select|store|compute|in|free|return"
_TOKEN = re.compile(rf'(?P<text>"(?:[^"\\]|\\.)*")|(?P<comment>//.*|/\*.*?\*/)|(?P<word>\b(?:{_WORDS})\b)|(?P<number>\b\d[\w.+-]*\b)')
_STYLE = """body { font: 14px/1.35 monospace; margin: 1em 2em; color: #222; background: #fff }
details, div { margin-left: 2ch } summary { margin-left: -2ch; cursor: pointer } summary:hover, div:hover { background: #f0f4f8 }
.word { color: #7b30a0; font-weight: bold } .number { color: #1c5c9c } .text { color: #2a7a2a } .comment { color: #888 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #1c1c1c } summary:hover, div:hover { background: #2c3138 }
.word { color: #d79bf0 } .number { color: #8cc4ff } .text { color: #9bd79b } }"""


def _coloured(line: str) -> str:
    out, at = [], 0
    for m in _TOKEN.finditer(line):
        out.append(
            html.escape(line[at : m.start()], quote=False) + f'<span class="{m.lastgroup}">{html.escape(m.group(), quote=False)}</span>'
        )
        at = m.end()
    return "".join(out) + html.escape(line[at:], quote=False)


def folding(text: str, name_of: Callable[[str], str | None] = lambda line: None) -> str:
    """Lines as HTML; what is indented below a line folds away with it. `name_of` a line, if it gives one, marks it (`data-name`)."""
    lines = [line for line in text.splitlines() if line.strip()]
    depths = [len(line) - len(line.lstrip()) for line in lines]
    out: list[str] = []
    open_depths: list[int] = []
    for i, (line, depth) in enumerate(zip(lines, depths)):
        while open_depths and depth <= open_depths[-1]:
            open_depths.pop()
            out.append("</details>")
        name = name_of(line.strip())
        mark = "" if name is None else f' data-name="{html.escape(name)}"'
        if i + 1 < len(lines) and depths[i + 1] > depth:
            open_depths.append(depth)
            out.append(f"<details open><summary{mark}>{_coloured(line.strip())}</summary>")
        else:
            out.append(f"<div{mark}>{_coloured(line.strip())}</div>")
    return "\n".join(out + ["</details>"] * len(open_depths))


def page(title: str, body: str, style: str = "", script: str = "") -> str:
    """A page in one file."""
    code = f"<script>\n{script}\n</script>\n" if script else ""
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta '
            f'charset="utf-8"><title>{html.escape(title)}</title>\n<style>\n{_STYLE}{style}\n</style></head>\n'
            f"<body>\n{body}\n{code}</body></html>\n")


def to_html(title: str, text: str) -> str:
    """A page of `text`; what is indented below a line folds away with it."""
    return page(title, folding(text))
