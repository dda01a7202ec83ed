"""The viewer of a lowered pipeline: loops, C source and allocations side by side in one HTML file that needs nothing else.

Blocks fold. A loop, a Func or an allocation has one name in all three; a click on one shows the others. The panes begin at the first of
them, below the checks of the arguments.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..codegen_c.allocations import constant_elements, stack_elements
from ..ir import nodes as n
from ..ir.html import folding, page
from ..ir.printer import to_text

_IN_LOOPS = re.compile(r"(?:(?:for|parallel|vectorized|unrolled) \((?P<loop>[^,]+),|produce (?P<func>\S+) \{|allocate "
                       r"(?P<storage>[^\[]+)\[)")
_IN_C = re.compile(r"/\* (?:parallel )?(?P<name>\S+) \*/")

_STYLE = """
body { margin: 0; display: grid; grid: auto 1fr / 1fr 1fr; height: 100vh } body > * { overflow: auto; padding: .5em 1em; border-right: 1px
solid #8884 } header { grid-column: 1 / 3; max-height: 25vh; border-bottom: 1px solid #8884 } h2 { font: bold 14px sans-serif; margin: 0 0
.3em } section div { padding-left: 4ch; text-indent: -4ch }
td, th { text-align: left; padding: 0 1.5em 0 0 } [data-name] { cursor: pointer } .on { background: #ffe9a8 !important }
@media (prefers-color-scheme: dark) { .on { background: #5a4a10 !important } }"""
_SCRIPT = """document.querySelectorAll('section').forEach(pane => {
  const first = pane.querySelector('[data-name]');
  if (first) pane.scrollTop = first.offsetTop - pane.offsetTop - 40;
});
document.body.addEventListener('click', event => {
  const from = event.target.closest('[data-name]');
  if (!from) return;
  document.querySelectorAll('.on').forEach(e => e.classList.remove('on'));
  const panes = new Set();
  document.querySelectorAll('[data-name]').forEach(e => {
    if (e.dataset.name !== from.dataset.name) return;
    e.classList.add('on');
    const pane = e.closest('body > *');
    if (pane === from.closest('body > *') || panes.has(pane)) return;
    panes.add(pane);
    for (let d = e.parentElement.closest('details'); d; d = d.parentElement.closest('details')) d.open = true;
    e.scrollIntoView({block: 'center'});
  });
});"""


class Storage(NamedTuple):
    """An allocation: its size in bytes where that is a constant."""

    name: str
    size: str
    bytes: int | None
    place: str
    loops: tuple[str, ...]


def allocations(s: n.Stmt, loops: tuple[str, ...] = ()) -> Iterator[Storage]:
    """All allocations, in order."""
    if not s.mask & n.Allocate.bit:
        return
    if isinstance(s, n.Allocate):
        count = constant_elements(s)
        size, place = None if count is None else count * s.type.bytes(), "heap" if stack_elements(s) is None else "stack"
        yield Storage(s.name, f"{s.type} × " + (" × ".join(map(to_text, s.extents)) or "1"), size, place, loops)
    inner = (*loops, s.name) if isinstance(s, n.For) else loops
    for child in s.children():
        if isinstance(child, n.Stmt):
            yield from allocations(child, inner)


def _table(storage: Sequence[Storage]) -> str:
    if not storage:
        return "<div>No allocations.</div>"
    rows = "".join(f'<tr data-name="{html.escape(a.name)}"><td>{html.escape(a.name)}</td><td>{html.escape(a.size)}</td>'
                   f"<td>{'known at run time' if a.bytes is None else f'{a.bytes:,}'}</td><td>{a.place}</td>"
                   f"<td>{html.escape(' / '.join(a.loops)) or 'root'}</td></tr>\n"
                   for a in storage)
    return f"<table><tr><th>allocation</th><th>elements</th><th>bytes</th><th>where</th><th>in the loops</th></tr>\n{rows}</table>"


def _name_in_loops(line: str) -> str | None:
    m = _IN_LOOPS.match(line)
    return m and (m["loop"] or m["func"] or m["storage"])


def _name_in_c(line: str) -> str | None:
    m = _IN_C.search(line)
    return m and m["name"]


def viewer(title: str, bodies: Sequence[n.Stmt], c_text: str) -> str:
    """The page for lowered statements and the C text made of them."""
    storage = [a for body in bodies for a in allocations(body)]
    loops = "".join(to_text(body) + "\n" for body in bodies)
    body = (f'<header><h2>Allocations of {html.escape(title)}</h2>\n{_table(storage)}</header>\n<section id="loops"><h2>Loops</h2>\n'
            f'{folding(loops, _name_in_loops)}</section>\n<section id="c"><h2>C source</h2>\n{folding(c_text, _name_in_c)}</section>')
    return page(title, body, _STYLE, _SCRIPT)
