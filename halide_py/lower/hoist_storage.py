"""Hoisted storage: move an allocation from the loop a Func is stored at out to the loop that `hoist_storage` names.

IR before: `hoisted storage g { for y { let g.extent.0 = .. allocate g[.. * g.extent.0] .. } }`, flattened. After: `allocate g[..]` in the
place of the node, each extent the largest that any iteration asks for; the strides stay those of the iteration. Limits: an extent without
bound over the loops in between is a CompileError. Behaviour: Halide's HoistedStorage.
"""

from __future__ import annotations

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.interval import Interval, bounds_of_expr
from ..ir.simplify import simplify
from ..ir.traverse import Rec, mentions, rewrite
from .environment import Environment

Extents = list[n.Expr | None]


class _Hoist:
    """Takes the allocations of some buffers out of a statement; their extents travel outwards and lose each let and loop on the way."""

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.taken: dict[str, n.Allocate] = {}

    def visit(self, s: n.Stmt) -> tuple[n.Stmt, dict[str, Extents]]:
        """The statement without the allocations, and their extents in the symbols around it."""
        if not s.mask & n.Allocate.bit:
            return s, {}
        found: dict[str, Extents] = {}

        def inside(child: n.Node) -> n.Node:
            if not isinstance(child, n.Stmt):
                return child
            new, more = self.visit(child)
            for name, extents in more.items():
                found[name] = [_larger(x, y) for x, y in zip(found[name], extents)] if name in found else extents
            return new

        new: n.Stmt = s.map_children(inside)
        if isinstance(s, n.LetStmt):
            found = {name: [largest_over(e, s.name, Interval.point(s.value)) for e in extents] for name, extents in found.items()}
        elif isinstance(s, n.For):
            whole = Interval(s.min, b.sub(b.add(s.min, s.extent), b.i32(1)))
            found = {name: [largest_over(e, s.name, whole) for e in extents] for name, extents in found.items()}
        elif isinstance(s, n.Allocate) and s.name in self.names:
            self.taken[s.name] = s
            assert isinstance(new, n.Allocate)
            return new.body, {**found, s.name: list(s.extents)}
        return new, found


def _larger(x: n.Expr | None, y: n.Expr | None) -> n.Expr | None:
    return None if x is None or y is None else b.max_(x, y)


def largest_over(e: n.Expr | None, name: str, interval: Interval) -> n.Expr | None:
    """The largest value of `e` while `name` ranges over `interval`."""
    return e if e is None or not mentions(e, name) else bounds_of_expr(simplify(e), {name: interval}).max


def bounded(extents: Extents, f: Function) -> tuple[n.Expr, ...]:
    """The sizes of the hoisted storage of `f`. Raises CompileError where one has no bound."""
    sizes = tuple(simplify(e) for e in extents if e is not None)
    if len(sizes) < len(extents):
        raise CompileError(f"Func {f.name} is scheduled hoist_storage(), but the size of its region has no bound outside of the loops that "
                           f"it is hoisted over; use bound_storage() or bound_extent(), or hoist it less far ({f.site('hoist_storage')})")
    return sizes


def hoist_storage(stmt: n.Stmt, env: Environment) -> n.Stmt:
    """`stmt` with each hoisted allocation in the place of its HoistedStorage."""

    def hoisted(s: n.HoistedStorage, rec: Rec) -> n.Stmt:
        f = env[s.name]
        hoist = _Hoist({f.buffer_name(i) for i in range(len(f.types))})
        body, found = hoist.visit(rec(s.body))
        for name, extents in found.items():
            a = hoist.taken[name]
            body = n.Allocate(a.name, a.type, a.memory, bounded(extents, f), b.TRUE, a.padding, body)
        return body

    return rewrite(stmt, {n.HoistedStorage: hoisted})
