"""Vectorized and unrolled loops have constant extents.

Before: `vectorized (c, 0, min(w, 4)) { ... }`. After: `vectorized (c, 0, 4) { if (c < min(w, 4)) { ... } }`.

Where an extent is no constant as it stands, the lets around it are put in, which often cancel. Where it still is none, but never exceeds a
small constant, the loop runs to that one and its body is guarded. Loops of neither kind stay: `vectorize` and `unroll` refuse them.
Behaviour: Halide's BoundConstantExtentLoops.cpp.
"""

from __future__ import annotations

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.printer import to_text
from ..ir.simplify import constant_bound, simplify
from ..ir.traverse import Rec, nodes_of, rewrite, substitute
from ..ir.types import INT32
from .guards import has_effects, strip_likely

LARGEST = 1024  # iterations of a guarded body: beyond this an implied bound is an accident
_KINDS = (n.ForType.Vectorized, n.ForType.Unrolled)


def constant_extents(stmt: n.Stmt) -> n.Stmt:
    """`stmt` with constant extents for those loops, where there are such."""
    if all(f.kind not in _KINDS or b.as_int(f.extent) is not None for f in nodes_of(stmt, n.For)):
        return stmt
    lets: list[tuple[str, n.Expr]] = []

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
            count, guarded = _count(extent, lets)
            if count is not None:
                here = n.Variable(INT32, f.name)
                body = n.IfThenElse(b.likely(n.LT(here, b.add(f.min, extent))), body) if guarded else body
                extent = b.i32(count)
        return n.For(f.name, f.min, extent, f.kind, f.partition, rec(body))

    return rewrite(stmt, {n.LetStmt: let, n.For: loop})


def _count(extent: n.Expr, lets: list[tuple[str, n.Expr]]) -> tuple[int | None, bool]:
    """(number of iterations, whether some may have to be left out); None where no small number is found."""
    extent = simplify(extent)
    for name, value in reversed(lets):
        if b.as_int(extent) is None and extent.symbols & n.symbol_bit(name):
            extent = simplify(substitute({name: strip_likely(value)}, extent))
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
            "it by a constant factor first, or promise the extent with bound()")
    return extent
