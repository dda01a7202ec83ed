"""Indices of what two fused variables go through as one: where rows lie end to end, that is the fused loop itself, dense to the last.

Before: `let y = t / w, x = t % w` (`Func.fuse`, each promised to be in its range) around `f[y*w + x]`. After: `f[t]`. That holds for
every w but 0, and then the loop does not run. Indices are flat and simple, lets are bound once, loops are no vectors yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..ir import build as b
from ..ir import nodes as n
from ..ir.simplify.linear import Terms, gather, rebuild
from ..ir.traverse import Rec, nodes_of, rewrite
from ..ir.types import INT32

_PROMISE = "unsafe_promise_clamped"


class _Part(NamedTuple):
    """A let that is a quotient, or a multiple of a remainder, and something else."""

    variable: n.Expr
    factor: int
    rest: n.Expr


class _Pair(NamedTuple):
    """What one fused variable was taken apart into: `whole / width + row.rest` and `whole % width * column.factor + column.rest`."""

    whole: n.Expr
    width: n.Expr
    row: _Part
    column: _Part


def _pairs(s: n.Stmt) -> Iterator[_Pair]:
    rows: dict[tuple[n.Expr, n.Expr], _Part] = {}
    columns: dict[tuple[n.Expr, n.Expr], _Part] = {}
    for let in nodes_of(s, n.LetStmt, n.symbol_bit(_PROMISE)):
        value = let.value
        if type(value) is n.Call and value.name == _PROMISE and value.type is INT32:
            terms, constant = gather(value.args[0])
            for e, c in terms.items():
                if isinstance(e, n.Mod) or isinstance(e, n.Div) and c == 1:
                    rest = {t: k for t, k in terms.items() if t is not e}
                    part = _Part(n.Variable(INT32, let.name), c, rebuild(INT32, rest, constant))
                    (rows if type(e) is n.Div else columns)[e.a, e.b] = part
    for key, row in rows.items():
        if key in columns:
            yield _Pair(*key, row, columns[key])


def _line(terms: Terms, row: n.Expr, width: n.Expr, scale: int) -> tuple[n.Expr, n.Expr] | None:
    """The term of a linear form that is `(row + more) * width * scale`, and `more`."""
    size = b.as_int(width)
    if size is not None:
        return (row, b.i32(0)) if terms.get(row) == scale * size else None
    for e, c in terms.items():
        if c == scale and isinstance(e, n.Mul) and (e.a is width or e.b is width):
            inside, constant = gather(e.a if e.b is width else e.b)
            if inside.pop(row, 0) == 1:
                return e, rebuild(INT32, inside, constant)
    return None


def _joined(terms: Terms, pair: _Pair) -> n.Expr | None:
    """What to add to the rest of a linear form, whose rows and columns are taken out, if they lie end to end."""
    row, (column, factor, rest), width = pair.row, pair.column, pair.width
    scale = terms.get(column)
    found = None if scale is None else _line(terms, row.variable, width, scale * factor)
    if scale is None or found is None:
        return None
    term, more = found
    del terms[term], terms[column]
    along = b.add(pair.whole, b.mul(b.add(row.rest, more), width))
    return b.mul(b.add(b.mul(along, b.i32(factor)), rest), b.i32(scale))


def fused_indices(s: n.Stmt) -> n.Stmt:
    """`s` with such indices."""
    pairs = list(_pairs(s)) if s.symbols & n.symbol_bit(_PROMISE) else []
    if not pairs:
        return s

    def index(e: n.Expr) -> n.Expr:
        if e.type is not INT32:
            return e
        terms, constant = gather(e)
        more = [joined for pair in pairs if (joined := _joined(terms, pair)) is not None]
        if not more:
            return e
        out = rebuild(INT32, terms, constant)
        for joined in more:
            out = b.add(out, joined)
        return out

    def load(e: n.Load, rec: Rec) -> n.Expr:
        new: n.Load = e.map_children(rec)
        return n.Load(new.type, new.name, index(new.index), new.predicate, new.param)

    def store(one: n.Store, rec: Rec) -> n.Stmt:
        new: n.Store = one.map_children(rec)
        return n.Store(new.name, new.value, index(new.index), new.predicate, new.param)

    return rewrite(s, {n.Load: load, n.Store: store})
