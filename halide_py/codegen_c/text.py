"""The C text of a module: one file, or several that are compiled at the same time and linked together."""

from __future__ import annotations

import re
from typing import NamedTuple

_LINKED = '__attribute__((visibility("hidden")))'  # known to the other files, to nobody else
_UNROLLED = re.compile(r"#pragma GCC unroll (\d+)")
_FIRST_LOOP = 12000  # what a file with loops costs before their number matters
_LIGHT = '#pragma GCC optimize("O1")\n'
_LONG_BLOCK = 50_000  # characters of code between braces
_NO_TREES = '#pragma GCC optimize("no-tree-ter", "no-tree-reassoc")\n'


class Task(NamedTuple):
    """A function that may be compiled apart from its caller, with the functions that only it calls."""

    signature: str
    body: str
    own: str = ""
    struct: str = ""  # of its closure

    def defined(self, linkage: str) -> str:
        """Everything but the struct."""
        return f"{self.own}{linkage} {self.signature} {self.body}"


class Text(NamedTuple):
    """What a module's C text is put together from."""

    head: str
    functions: tuple[str | Task, ...]
    entries: str
    apart: bool  # whether its tasks may be compiled apart: not with variables of the file, or a user's C text

    def whole(self) -> str:
        """One file."""
        return _without_trees(_joined(
            self.head, *(f"{one.struct}{one.defined('static')}" if isinstance(one, Task) else one for one in self.functions), self.entries
        ))

    def parts(self, most: int) -> list[str]:
        """At most so many files, which take about as long to compile as each other."""
        tasks = (
            sorted((one for one in self.functions if isinstance(one, Task)), key=lambda one: -_work(one.body, one.own))
            if self.apart
            else []
        )
        if not tasks or most < 2:
            return [self.whole()]
        files: list[list[str]] = [[self.entries], *([] for _ in range(most - 1))]
        for one in tasks:
            text = one.defined(_LINKED)
            min(files, key=lambda file: _work(*file, text)).append(text)
        shared = _joined(self.head, *(f"{one.struct}{_LINKED} "
                                      f"{one.signature};" for one in tasks), *(one for one in self.functions if isinstance(one, str)))
        return [_lightly_optimized(_joined(shared, *file)) for file in files if file]


def _work(*texts: str) -> int:
    """What compiling a file of these texts costs, in characters of a loop: measured with gcc."""
    return _FIRST_LOOP * any(map(_has_loops, texts)) + sum(map(_size, texts))


def _size(text: str) -> int:
    """Straight-line code costs less, what is unrolled more."""
    return len(text) * (3 + max(map(int, _UNROLLED.findall(text)), default=1)) // 4 if _has_loops(text) else len(text) * 5 // 6


def _has_loops(text: str) -> bool:
    return "for (" in text or "while (" in text


def _lightly_optimized(text: str) -> str:
    """Code without loops runs once, and gcc takes a fifth longer to compile it well."""
    return _without_trees(text) if _has_loops(text) else _LIGHT + text


def _without_trees(text: str) -> str:
    """gcc makes trees of long sums and puts what is used once into them; registers for those are allocated in quadratic time: 3000 terms of
    `x % 7` take half a minute with, 3 s without."""
    return _NO_TREES + text if max(map(len, re.split("[{}]", text))) > _LONG_BLOCK else text


def _joined(*parts: str) -> str:
    return "\n".join(p.rstrip("\n") + "\n" for p in parts if p)
