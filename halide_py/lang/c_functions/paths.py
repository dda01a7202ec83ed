"""Ways through a C function: what its variables hold on each, under which condition it is taken, and what they hold where ways meet.

A `Path` is the way that is being followed. Its conditions are those under which it is taken since each enclosing `Level` (a call, a loop, a
turn of a loop, a switch) was entered. `return`, `break` and `continue` end it and leave it at their level; at the end of the level the ways
that were left there and the one that came through meet: every variable becomes a select among what it holds on each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...ir import build as b
from ...ir import nodes as n
from ...ir.types import Type

Value = n.Expr | tuple[n.Expr | None, ...] | None  # of a scalar, of an array, of what has none yet


@dataclass(frozen=True)
class Slot:
    """A variable: where its value is found, its type, its extents if it is an array, and whether it is const."""

    number: int
    type: Type
    dims: tuple[int, ...] = ()
    const: bool = False

    def size(self) -> int:
        """The number of elements."""
        out = 1
        for d in self.dims:
            out *= d
        return out


@dataclass
class Path:
    """One way: the values of variables, and its condition since each level was entered."""

    values: dict[int, Value] = field(default_factory=dict)
    conditions: tuple[n.Expr, ...] = ()

    def fork(self, condition: n.Expr = b.TRUE) -> Path:
        """A way of its own from here on, taken if a condition holds."""
        return Path(dict(self.values), tuple(b.and_(c, condition) for c in self.conditions))

    def entered(self) -> Path:
        """The same way inside of one more level."""
        return Path(self.values, (*self.conditions, b.TRUE))

    def left(self, depth: int) -> Path:
        """The same way outside of all levels behind the first `depth`."""
        return Path(self.values, self.conditions[:depth])


@dataclass
class Level:
    """What ways can be left to: a call (`return`), a loop or switch (`break`), a turn of a loop (`continue`)."""

    kind: str
    depth: int  # how many levels are around it
    result: Type | None = None  # of a call
    waiting: list[Path] = field(default_factory=list)


def meet(paths: Sequence[Path], depth: int) -> Path | None:
    """The one way on from several that exclude each other, each of which is chosen by its condition at level `depth`. The levels from there
    on are left."""
    if not paths:
        return None
    out = paths[-1]
    for p in reversed(paths[:-1]):
        out = _joined(_choice(p.conditions[depth], out.conditions[depth]), p, out)
    return out.left(depth)


def choose(condition: n.Expr, first: Path | None, second: Path | None) -> Path | None:
    """The one way on from the two sides of a condition."""
    return second if first is None else first if second is None else _joined(condition, first, second)


def _joined(condition: n.Expr, p: Path, q: Path) -> Path:
    values = dict(p.values)
    for k, v in q.values.items():
        values[k] = _select(condition, values[k], v) if k in values else v
    return Path(values, tuple(map(_either, p.conditions, q.conditions)))


def _select(condition: n.Expr, a: Value, c: Value) -> Value:
    if a is c:
        return a
    if isinstance(a, tuple) and isinstance(c, tuple):
        return tuple(_element(condition, x, y) for x, y in zip(a, c))
    assert not isinstance(a, tuple) and not isinstance(c, tuple)
    return _element(condition, a, c)


def _element(condition: n.Expr, a: n.Expr | None, c: n.Expr | None) -> n.Expr | None:
    """What has no value on one way may not be read behind it: any value does."""
    if a is None or c is None:
        return c if a is None else a
    return b.select(condition, a, c)


def _split(e: n.Expr) -> tuple[n.Expr, n.Expr]:
    return (e.a, e.b) if isinstance(e, n.And) else (b.TRUE, e)


def _either(p: n.Expr, q: n.Expr) -> n.Expr:
    """p or q; (r and c) or (r and not c) is r."""
    if b.not_(p) is q or p is b.not_(q):
        return b.TRUE
    (before, c), (other, d) = _split(p), _split(q)
    return before if before is other and (b.not_(c) is d or c is b.not_(d)) else b.or_(p, q)


def _choice(p: n.Expr, q: n.Expr) -> n.Expr:
    """What tells p from q, of which one holds."""
    (before, c), (other, d) = _split(p), _split(q)
    return c if before is other and (b.not_(c) is d or c is b.not_(d)) else p
