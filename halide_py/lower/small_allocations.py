"""Small storage gets constant extents, so that it lives on the stack and its index arithmetic folds.

Before, in a loop: `realize g [x, min(w, 18)]`. After: `realize g [x, 18]`, where the constant bounds of all extents make at most
`LARGEST` bytes. Storage the user asked to be on the stack or in registers gets its bounds at any size; a CompileError says so
where registers cannot be bounded. Storage outside all loops is left alone: its extents follow the caller's sizes.
Behaviour: Halide's BoundSmallAllocations.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.interval import Interval
from ..ir.simplify import constant_bound
from ..ir.traverse import Rec, free_variables, rewrite
from .constant_extents import with_lets

LARGEST = 16 * 1024  # bytes: what one call may take from a thread's stack without thought


class _Bounder:
    def __init__(self, env: Mapping[str, Function]) -> None:
        self.env = env
        self.scope: dict[str, Interval] = {}  # loops and lets around
        self.loops = 0

    def run(self, stmt: n.Stmt) -> n.Stmt:
        return rewrite(stmt, {n.LetStmt: self.let, n.For: self.loop, n.Realize: self.realize}) if stmt.mask & n.Realize.bit else stmt

    def let(self, s: n.LetStmt, rec: Rec) -> n.Stmt:
        if not s.body.mask & n.Realize.bit:
            return s
        if s.value.type.is_int():
            self.scope[s.name] = Interval.point(s.value)
        return n.LetStmt(s.name, s.value, rec(s.body))

    def loop(self, s: n.For, rec: Rec) -> n.Stmt:
        if not s.body.mask & n.Realize.bit:
            return s
        self.scope[s.name] = Interval(s.min, b.sub(b.add(s.min, s.extent), b.i32(1)))
        self.loops += 1
        body = rec(s.body)
        self.loops -= 1
        return n.For(s.name, s.min, s.extent, s.kind, s.partition, body)

    def around(self, e: n.Expr) -> dict[str, Interval]:
        """The part of the scope that `e` depends on, in the order of binding."""
        needed: set[str] = set()
        work = [e]
        while work:
            for name in free_variables(work.pop()):
                if name in self.scope and name not in needed:
                    needed.add(name)
                    work.extend(end for end in (self.scope[name].min, self.scope[name].max) if end is not None)
        return {name: interval for name, interval in self.scope.items() if name in needed}

    def realize(self, r: n.Realize, rec: Rec) -> n.Stmt:
        extents = self.bounded(r)
        return n.Realize(r.name, r.types, r.memory, r.mins, extents, r.condition, rec(r.body))

    def bounded(self, r: n.Realize) -> tuple[n.Expr, ...]:
        """The extents as constants where that is wanted and possible, else as they are."""
        asked = r.memory in (n.MemoryType.Stack, n.MemoryType.Register)
        if not (self.loops or asked) or r.memory is n.MemoryType.Heap or all(b.as_int(e) is not None for e in r.extents):
            return r.extents
        size = max(t.bytes() for t in r.types)
        sizes: list[n.Expr] = []
        bounds = self.storage_bounds(r)
        for d, e in enumerate(r.extents):
            most = bounds[d] if d in bounds else self.most(e)
            size = size * most if most is not None else LARGEST + 1
            if most is None or (size > LARGEST and not asked):
                if r.memory is n.MemoryType.Register:
                    where = f" ({self.env[r.name].site('store_in')})" if r.name in self.env else ""
                    raise CompileError(f"Func {r.name} is stored in registers, but the size of its region has no constant bound; use "
                                       f"bound_storage(), bound_extent() or a split by a constant, or store_in(MemoryType.Heap){where}")
                return r.extents
            sizes.append(e if d in bounds else b.i32(max(most, 0)))
        return tuple(sizes)

    def most(self, e: n.Expr) -> int | None:
        """What `e` never exceeds: as intervals say, or once the lets around it are put in."""
        around = self.around(e)
        found = constant_bound(e, True, around)
        if found is None and (lets := [(name, i.min) for name, i in around.items() if i.min is i.max and i.min is not None]):
            e = with_lets(e, lets)
            found = constant_bound(e, True, self.around(e))
        return found

    def storage_bounds(self, r: n.Realize) -> dict[int, int]:
        """The dimensions that bound_storage() makes constant; their extents stay, to be checked where storage is laid out."""
        if r.name not in self.env:
            return {}
        f = self.env[r.name]
        found = {f.args.index(s.var): b.as_int(s.bound) for s in f.schedule.storage_dims if s.bound is not None}
        return {d: most for d, most in found.items() if most is not None}

def bound_small_allocations(stmt: n.Stmt, env: Mapping[str, Function] | None = None) -> n.Stmt:
    """`stmt` with constant extents for small realizations of the Functions of `env`. Names must be bound once."""
    return _Bounder(env or {}).run(stmt)
