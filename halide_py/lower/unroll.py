"""Unrolled loops become copies of their body.

Before: `unrolled (c, 0, 3) { out[c] = c }`. After: `out[0] = 0; out[1] = 1; out[2] = 2`.

An extent that is not constant but has a small constant bound (`min(w, 4)`) gives that many copies, each guarded. Otherwise a
CompileError names the loop. Names bound inside to values that differ between copies are renamed, so that each is bound once.
Behaviour: Halide's UnrollLoops.cpp.
"""

from __future__ import annotations

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.printer import to_text
from ..ir.simplify import constant_bound, simplify
from ..ir.traverse import Rec, rewrite
from .copies import copy_with

LARGEST = 1024  # copies of a guarded body: beyond this an implied bound is an accident


def _copies(loop: n.For) -> tuple[int, bool]:
    """(number of copies, whether they need guards)."""
    extent = simplify(loop.extent)
    exact = b.as_int(extent)
    if exact is not None:
        return exact, False
    most = constant_bound(extent, True)
    if most is None or most > LARGEST:
        raise CompileError(f"Loop {loop.name} is unrolled, but its extent {to_text(loop.extent)} is not a constant and has no small "
                           f"constant bound; "
                           "split it by a constant factor first, or promise the extent with bound()")
    return most, True


def unroll(stmt: n.Stmt) -> n.Stmt:
    """Replace every unrolled loop, innermost first. Raises CompileError for a loop of unknown extent."""

    def loop(f: n.For, rec: Rec) -> n.Stmt:
        body = rec(f.body)
        if f.kind is not n.ForType.Unrolled:
            return n.For(f.name, f.min, f.extent, f.kind, f.partition, body)
        count, guarded = _copies(f)
        out: list[n.Stmt] = []
        for i in range(count):
            one = copy_with({f.name: b.add(f.min, b.i32(i))}, body, f".{i}")
            out.append(n.IfThenElse(b.likely(n.LT(b.i32(i), f.extent)), one) if guarded else one)
        return b.block(out)

    return rewrite(stmt, {n.For: loop})
