"""Vectorized and unrolled loops have constant extents.

Before: `vectorized (c, 0, min(w, 4)) { ... }`. After: `vectorized (c, 0, 4) { if (c < min(w, 4)) { ... } }`.

Where an extent is no constant as it stands, the lets around it are put in, which often cancel, and what the conditions around it say
(`specialize(out.extent == 3)`). Where it still is none, but never exceeds a
small constant, the loop runs to that one and its body is guarded. Loops of neither kind stay: `vectorize` and `unroll` refuse them.
Behaviour: Halide's BoundConstantExtentLoops.cpp.
"""

from __future__ import annotations

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.conditions import strip_likely
from ..ir.printer import to_text
from ..ir.simplify import constant_bound, simplify, simplify_given
from ..ir.traverse import Rec, nodes_of, rewrite, substitute
from ..ir.types import INT32
from .guards import has_effects

LARGEST = 1024  # iterations of a guarded body: beyond this an implied bound is an accident
_KINDS = (n.ForType.Vectorized, n.ForType.Unrolled)


def constant_extents(stmt: n.Stmt) -> n.Stmt:
    """`stmt` with constant extents for those loops, where there are such."""
    if all(f.kind not in _KINDS or b.as_int(f.extent) is not None for f in nodes_of(stmt, n.For)):
        return stmt
    lets: list[tuple[str, n.Expr]] = []
    given: list[n.Expr] = []

    def let(s: n.LetStmt, rec: Rec) -> n.Stmt:
        known = not has_effects(s.value) and not s.value.mask & n.Load.bit
        if known:
            lets.append((s.name, s.value))
        body = rec(s.body)
        if known:
            lets.pop()
        return n.LetStmt(s.name, s.value, body)

    def loop(f: n.For, rec: Rec) -> n.Stmt:
        extent, body = f.extent, f.body
        if f.kind in _KINDS and b.as_int(extent) is None:
            count, guarded = _count(extent, lets, b.all_of(given))
            if count is not None:
                here = n.Variable(INT32, f.name)
                body = n.IfThenElse(b.likely(n.LT(here, b.add(f.min, extent))), body) if guarded else body
                extent = b.i32(count)
        return n.For(f.name, f.min, extent, f.kind, f.partition, rec(body))

    def where(condition: n.Expr, s: n.Stmt, rec: Rec) -> n.Stmt:
        given.append(b.TRUE if condition.mask & n.Load.bit else strip_likely(condition))  # what memory holds may change
        new: n.Stmt = rec(s)
        given.pop()
        return new

    def if_then_else(s: n.IfThenElse, rec: Rec) -> n.Stmt:
        other = where(b.not_(s.condition), s.else_case, rec) if s.else_case is not None else None
        return n.IfThenElse(s.condition, where(s.condition, s.then_case, rec), other)

    return rewrite(stmt, {n.LetStmt: let, n.For: loop, n.IfThenElse: if_then_else})


def with_lets(extent: n.Expr, lets: list[tuple[str, n.Expr]]) -> n.Expr:
    """`extent` with the values of the lets around it, the innermost last, until it is a constant: they often cancel."""
    extent = simplify(extent)
    for name, value in reversed(lets):
        if b.as_int(extent) is None and extent.symbols & n.symbol_bit(name):
            extent = simplify(substitute({name: strip_likely(value)}, extent))
    return extent


def _count(extent: n.Expr, lets: list[tuple[str, n.Expr]], given: n.Expr) -> tuple[int | None, bool]:
    """(number of iterations where the condition `given` holds, whether some may have to be left out); None where no small number is
    found."""
    extent = with_lets(extent, lets)
    if b.as_int(extent) is None and not b.is_true(given):
        extent = simplify_given(extent, given)
    exact = b.as_int(extent)
    if exact is not None:
        return exact, False
    most = constant_bound(extent, True)
    return (None if most is None or most > LARGEST else max(most, 0)), True


def constant_extent(loop: n.For, what: str) -> int:
    """The constant extent of a loop. Raises CompileError naming the loop when it has none."""
    extent = b.as_int(loop.extent)
    if extent is None:
        extent = b.as_int(simplify(loop.extent))
    if extent is None:
        raise CompileError(
            f"Loop {loop.name} is {what}, but its extent {to_text(loop.extent)} is not a constant and has no small constant bound; split "
            "it by a constant factor first, or promise the extent with bound()", loop.name, {"vectorized": "vectorize"}.get(what, "unroll"))
    return extent
