"""Clamped coordinates: `a(max(min(x, w - 1), 0))`, written by hand, is the boundary condition that `repeat_edge` marks.

IR before: a call of a Func or an image with a Min or Max in a coordinate, of which one side moves with loops and the other does not. After:
the moving side in `likely`, so that loops are split into a steady state without the clamp, in which loads of vectors are dense. Limits:
the moving side is a sum of variables with small factors, since what may leave int32, a hash, is limited by nothing but its clamp; what is
looked up by values that are read from memory stays as it is, too. Behaviour: the clamped ramps of Halide's PartitionLoops.cpp, and
scalars as well.
"""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.simplify.linear import gather
from ..ir.traverse import Rec, nodes_of, rewrite

LARGEST_FACTOR, FAR = 256, 1 << 24


def mark_clamped_indices(stmt: n.Stmt) -> n.Stmt:
    """`stmt` with the moving sides of clamps in coordinates marked as likely."""

    def call(c: n.Call, rec: Rec) -> n.Expr:
        new: n.Call = c.map_children(rec)
        if c.call_type not in (n.CallType.Halide, n.CallType.Image) or not any(a.mask & (n.Min.bit | n.Max.bit) for a in new.args):
            return new
        return n.Call(c.type, c.name, tuple(map(_marked, new.args)), c.call_type, c.func, c.value_index, c.param)

    return rewrite(stmt, {n.Call: call})


def _marked(coordinate: n.Expr) -> n.Expr:
    def clamp(e: n.Min | n.Max, rec: Rec) -> n.Expr:
        moving, still = (e.a, e.b) if _moves(e.a) else (e.b, e.a)
        if _reads(e) or _moves(still) or not isinstance(moving, (n.Min, n.Max)) and not _is_near(moving):
            return e
        new = n.Min if isinstance(e, n.Min) else n.Max
        return new(_likely(rec(e.a)), e.b) if _moves(e.a) else new(e.a, _likely(rec(e.b)))

    def call(c: n.Call, rec: Rec) -> n.Expr:
        return c

    return rewrite(coordinate, {n.Min: clamp, n.Max: clamp, n.Call: call})


def _likely(e: n.Expr) -> n.Expr:
    """The mark goes on what is clamped, not on the clamp of a clamp."""
    return e if isinstance(e, (n.Min, n.Max)) else b.likely(e)


def _is_near(e: n.Expr) -> bool:
    """Whether `e` is a coordinate near one of a loop: a sum of variables, and of quotients of such sums."""
    terms, constant = gather(e)
    if not terms or max(map(abs, terms.values())) > LARGEST_FACTOR or abs(constant) > FAR:
        return False
    return all(isinstance(t, n.Variable) or isinstance(t, n.Div) and b.as_int(t.b) is not None and _is_near(t.a) for t in terms)


def _reads(e: n.Expr) -> bool:
    """Whether `e` depends on memory."""
    return any(c.call_type in (n.CallType.Halide, n.CallType.Image) for c in nodes_of(e, n.Call))


def _moves(e: n.Expr) -> bool:
    """Whether `e` is computed from variables of loops."""
    return any(v.param is None for v in nodes_of(e, n.Variable))
