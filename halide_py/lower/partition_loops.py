"""Loops split into a steady state without boundary code and the few iterations that need it.

Before: `for x { out[x] = in[max(min(likely(x - 1), w - 1), 0)] }`. After: the same loop up to x = 1, `out[x] = in[x - 1]` up to x = w, and
the same loop for the rest.

What marks a boundary is `likely`: a condition in it is true in the steady state; the marked side of a Min, Max or Select is the one taken.
Each mark is solved for the loop variable (linear conditions; inner loop variables by their extremes; lanes of vectors likewise).
An innermost serial loop becomes three loops, or two nested ones if vectors are moved inwards and no more (`_shifted`), any serial loop with
boundaries at one end only becomes two; any other keeps one loop with `if (steady) .. else ..`, two copies of its body instead of three.
Copies outside the steady state lose their marks, so that cold code is not split again, but for those of vectors: a tile at the edge of an
image is mostly inside it, too.

Only where it pays: a mark counts if it varies with the innermost loop around it, belongs to the loop being split, decides whether a
statement runs or how often an inner loop does (what fills a sliding window), or is a vector, which keeps loads from being dense; anything
else is loop invariant and hoisted by the C compiler.
`likely_if_innermost` alone never causes a copy of the body, it only joins one.
Loops with Partition.Never stay; with Partition.Always they must split, and any mark that varies with them counts. Behaviour: Halide's
PartitionLoops.cpp.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.build import is_likely
from ..ir.conditions import strip_likely
from ..ir.function import Function
from ..ir.simplify import simplify
from ..ir.simplify.linear import gather, rebuild
from ..ir.traverse import Handler, N, Rec, free_variables, mentions, nodes_of, rewrite
from ..ir.types import BOOL, INT32
from .copies import copy_with
from .linear import Bound, Limits, Solver

_MARKS = n.symbol_bit("likely") | n.symbol_bit("likely_if_innermost")
_COPIED_NODES = 6000  # a larger body is not copied: compile time


@dataclass(frozen=True)
class _Mark:
    """One boundary condition: `node` becomes `steady` where `condition` holds. Those that do not trigger only join a split."""

    node: n.Expr
    steady: n.Expr
    condition: n.Expr
    triggers: bool

    def limit(self) -> n.Expr | None:
        """What a minimum is outside the steady state."""
        return None if not isinstance(self.node, n.Min) else self.node.b if self.steady is self.node.a else self.node.a


class _Finder:
    """Collects the marks of one loop that can be solved for its variable."""

    def __init__(self, loop: n.For, innermost: bool) -> None:
        self.loop, self.innermost = loop, innermost
        self.solver = Solver(loop.name, lambda e: strip_likely(self.steady(e)))
        self.accepted: dict[n.Node, n.Expr] = {}
        self.found: list[tuple[_Mark, Limits]] = []
        self.marked: dict[n.Expr, bool] = {}
        self.seen: set[tuple[n.Expr, str]] = set()
        self.bits = _MARKS  # of the marks, and of the lets with marks in their values
        self.always = loop.partition is n.Partition.Always
        self.trips = False  # whether a mark decides how often an inner loop runs

    def stmt(self, s: n.Stmt, around: str) -> None:
        """Look into a statement; `around` is the innermost loop variable around it."""
        if isinstance(s, n.LetStmt):
            self.expr(s.value, around)
            self.solver.let(s.name, s.value)
            if s.value.symbols & self.bits:
                self.bits |= n.symbol_bit(s.name)
            self.stmt(s.body, around)
        elif not s.symbols & self.bits:
            return
        elif isinstance(s, n.For):
            for e in (s.min, s.extent):
                self.expr(e, around)
                self.trip_count(e)
            self.solver.loop(s.name, s.min, b.sub(b.add(s.min, s.extent), b.i32(1)))
            self.stmt(s.body, s.name)
        else:
            guarded = isinstance(s, n.IfThenElse) and s.then_case.mask & (n.Store.bit | n.For.bit)
            for child in s.children():
                if isinstance(child, n.Stmt):
                    self.stmt(child, around)
                else:
                    self.expr(child, self.loop.name if guarded else around)

    def expr(self, e: n.Expr, around: str) -> None:
        """Look into an expression, inner marks first."""
        if not e.symbols & _MARKS or (e, around) in self.seen:
            return
        self.seen.add((e, around))
        for child in e.children():
            self.expr(child, around)
        mark = None if e in self.accepted else self.mark(e)
        limits = self.solver.solve(self.solver.resolve(mark.condition)) if mark is not None else None
        invariant = around != self.loop.name and limits is not None and around not in limits.loops and e.type.is_scalar()
        if mark is None or limits is None or invariant and not self.always:
            return
        self.accepted[e] = mark.steady
        self.found.append((mark, limits))

    def trip_count(self, e: n.Expr) -> None:
        """Look for conditions in the range of an inner loop, through lets."""
        if e.symbols & self.bits and self.solver.varies(e):
            for name in free_variables(e):
                self.trip_count(self.solver.lets.get(name, b.i32(0)))
            for c in nodes_of(e, (n.Call, n.Min, n.Max)):
                if c.type.is_bool() or isinstance(c, (n.Min, n.Max)):
                    self.expr(c, self.loop.name)
                    self.trips = self.trips or c in self.accepted

    def is_inside(self, e: n.Expr) -> bool:
        """Whether `e` mentions the loop's variable or what is bound in its body."""
        return self.solver.varies(e) or not self.solver.lets.keys().isdisjoint(free_variables(e))

    def mark(self, e: n.Expr) -> _Mark | None:
        """The boundary condition that `e` is."""
        if isinstance(e, (n.Min, n.Max)):
            if self.is_marked(e.a) == self.is_marked(e.b):
                return None
            taken, other = (e.a, e.b) if self.is_marked(e.a) else (e.b, e.a)
            holds = n.LE(taken, other) if isinstance(e, n.Min) else n.LE(other, taken)
            return _Mark(e, taken, holds, self.always or _triggers(taken))
        if isinstance(e, n.Select) or (isinstance(e, n.Call) and e.name == "if_then_else"):
            condition, *values = e.children()
            first, second = is_likely(values[0]), len(values) > 1 and is_likely(values[1])
            if first == second:
                return None
            return _Mark(e, values[0] if first else values[1], condition if first else b.not_(condition), True)
        if isinstance(e, n.Call) and is_likely(e) and e.type.is_bool() and (self.innermost or e.name == "likely"):
            return _Mark(e, b.true(e.type.lanes()), e.args[0], self.always or e.name == "likely")
        return None

    def is_marked(self, e: n.Expr) -> bool:
        """Whether a value is a marked one, through arithmetic but not through memory or calls."""
        if not e.symbols & _MARKS or isinstance(e, n.Load):
            return False
        if isinstance(e, n.Call):
            return e.name == "likely" or (self.innermost and e.name == "likely_if_innermost")
        if e not in self.marked:
            self.marked[e] = any(self.is_marked(c) for c in e.children())
        return self.marked[e]

    def limits(self, side: str) -> list[n.Expr]:
        """The limits from below (`low`) or above (`high`), of those that differ by a constant only the tightest."""
        tightest: dict[tuple[int, object, n.Expr], Bound] = {}
        for _, limits in self.found:
            for one in limits.low() if side == "low" else limits.high():
                key = one.factor, frozenset(one.terms), one.unless
                if key not in tightest or one.constant < tightest[key].constant:
                    tightest[key] = one
        end = b.add(self.loop.min, self.loop.extent)
        out = [one.limit(self.loop.min if side == "low" else b.sub(end, b.i32(1))) for one in tightest.values()]
        where = b.all_of({limits.where: None for _, limits in self.found})
        return out if side == "high" or b.is_true(where) else [*out, b.select(where, self.loop.min, end)]

    def steady(self, root: N) -> N:
        """`root` where the accepted marks hold."""

        def replace(e: n.Expr, rec: Rec) -> n.Expr:
            new = self.accepted.get(e)
            if new is None:
                return e.map_children(rec)  # type: ignore[no-any-return]
            return rec(new.args[0] if isinstance(new, n.Call) and is_likely(new) else new)  # type: ignore[no-any-return]

        handlers: dict[type[n.Node], Handler] = {**dict.fromkeys({type(e) for e in self.accepted}, replace), n.IfThenElse: _decided}
        return rewrite(root, handlers, _MARKS) if self.accepted else root


def _decided(s: n.IfThenElse, rec: Rec) -> n.Stmt:
    """A branch whose condition may have become a constant, so that dead code is not split further."""
    condition = rec(s.condition)
    if b.is_true(condition):
        return rec(s.then_case)  # type: ignore[no-any-return]
    if b.is_false(condition):
        return b.NOTHING if s.else_case is None else rec(s.else_case)
    return s.map_children(rec)  # type: ignore[no-any-return]


def _triggers(e: n.Expr) -> bool:
    """Whether a marked value is so by `likely` and not only by `likely_if_innermost`."""
    return any(c.name == "likely" for c in nodes_of(e, n.Call))


def _is_small(s: n.Stmt) -> bool:
    everything = tuple(kind for kind in (*n.Expr.__subclasses__(), *n.Stmt.__subclasses__()))
    return sum(1 for _ in itertools.islice(nodes_of(s, everything), _COPIED_NODES)) < _COPIED_NODES


def _cold(finder: _Finder, side: str, suffix: str) -> n.Stmt:
    """The loop's body outside the steady state; on the `side` (low, high) where only one mark can be false, it is false."""
    f, body = finder.loop, finder.loop.body
    alone = [(mark.node, limits) for mark, limits in finder.found if side and (limits.low() if side == "low" else limits.high())]
    never, limits = alone[0] if len(alone) == 1 else (f.min, Limits())
    if is_likely(never) and never.type is BOOL and limits.exact and len(limits.bounds) == 1:

        def call(c: n.Call, rec: Rec) -> n.Expr:
            return b.FALSE if c is never else c.map_children(rec)

        body = rewrite(body, {n.Call: call, n.IfThenElse: _decided}, _MARKS)
    if not any(one.partition is n.Partition.Always for one in nodes_of(body, n.For)):
        body = strip_likely(body, keep_vectors=True)
    return copy_with({f.name: n.Variable(INT32, f.name + suffix)}, body, suffix)


def _three_loops(f: n.For, finder: _Finder, steady: n.Stmt, lows: list[n.Expr], highs: list[n.Expr], rec: Rec) -> n.Stmt:
    """Prologue, steady state and epilogue, those of the outer two that may have iterations."""
    end = b.add(f.min, f.extent)
    bindings: list[tuple[str, n.Expr]] = []
    start = f.min
    stop = end
    parts: list[n.Stmt] = []
    if lows:
        for low in lows:
            start = b.max_(start, low)
        bindings.append((f.name + ".steady", b.min_(start, end)))
        start = n.Variable(INT32, bindings[-1][0])
        parts.append(
            n.For(f.name + ".prologue", f.min, b.sub(start, f.min), f.kind, n.Partition.Never, rec(_cold(finder, "low", ".prologue")))
        )
    if highs:
        for high in highs:
            stop = b.min_(stop, b.add(high, b.i32(1)))
        bindings.append((f.name + ".epilogue_start", b.max_(stop, start)))
        stop = n.Variable(INT32, bindings[-1][0])
    parts.append(n.For(f.name, start, b.sub(stop, start), f.kind, f.partition, steady))
    if highs:
        parts.append(
            n.For(f.name + ".epilogue", stop, b.sub(end, stop), f.kind, n.Partition.Never, rec(_cold(finder, "high", ".epilogue")))
        )
    return b.let_stmts(bindings, b.block(parts))


def _one_loop(f: n.For, finder: _Finder, steady: n.Stmt, lows: list[n.Expr], highs: list[n.Expr], rec: Rec) -> n.Stmt:
    """One loop that asks in each iteration whether it is in the steady state. Where it is not, few of the vectors inside may be at a
    boundary."""
    here = n.Variable(INT32, f.name)
    bindings = [(f"{f.name}.steady_min{i}", e) for i, e in enumerate(lows)] + [(f"{f.name}.steady_max{i}", e) for i, e in enumerate(highs)]
    bounds = [n.Variable(INT32, name) for name, _ in bindings]
    inside = b.all_of([*(n.LE(e, here) for e in bounds[:len(lows)]), *(n.LE(here, e) for e in bounds[len(lows):])])
    side = "low" if not highs else "high" if not lows else ""
    cold = n.LetStmt(f.name + ".cold", here, rec(_cold(finder, side, ".cold")))
    return b.let_stmts(bindings, n.For(f.name, f.min, f.extent, f.kind, f.partition, n.IfThenElse(inside, steady, cold)))


def _shifted(f: n.For, finder: _Finder) -> n.Stmt | None:
    """The steady state, then one by one the iterations whose vectors are moved inwards, all through one copy of the body: in part 0 of the
    loop `min(x * 8, w - 8)` is `x * 8`, in the others, where x is 0, it is `w - 8`; of several minima some may not be moved yet, so there
    they stay minima. Only where x is used in such minima alone."""
    highs, here, end = finder.limits("high"), n.Variable(INT32, f.name), b.add(f.min, f.extent)
    if len(highs) != 1 or finder.limits("low"):
        return None
    part, stop = n.Variable(INT32, f.name + ".part"), n.Variable(INT32, f.name + ".steady_end")
    in_steady_state = n.LT(part, b.i32(1))
    starts: list[tuple[str, n.Expr]] = []
    moved: dict[n.Expr, n.Expr] = {}
    several = len({mark.node for mark, _ in finder.found}) > 1
    iteration = b.sub(b.add(stop, part), b.i32(1))
    for mark, _ in finder.found:
        terms, constant = gather(strip_likely(mark.steady))
        factor = terms.pop(here, 0)
        rest, limit = rebuild(INT32, terms, constant), mark.limit()
        if limit is None or finder.is_inside(rest) or finder.is_inside(limit):
            return None
        start = n.Variable(INT32, f"{f.name}.start{len(starts)}")
        last = n.Min(b.add(rest, b.mul(iteration, b.i32(factor))), limit) if several else limit
        starts.append((start.name, n.Select(in_steady_state, b.add(rest, b.mul(f.min, b.i32(factor))), last)))
        moved[mark.node] = b.add(start, b.mul(here, b.i32(factor)))
    if mentions(rewrite(f.body, {n.Min: lambda e, rec: b.i32(0) if e in moved else e.map_children(rec)}, _MARKS), f.name):
        return None
    body = rewrite(f.body, {n.Min: lambda e, rec: moved.get(e) or e.map_children(rec)}, _MARKS)
    loop = n.For(f.name, b.i32(0), n.Select(in_steady_state, b.sub(stop, f.min), b.i32(1)), f.kind, n.Partition.Never, body)
    parts = n.For(part.name, b.i32(0), b.add(b.sub(end, stop), b.i32(1)), f.kind, n.Partition.Never, b.let_stmts(starts, loop))
    return n.LetStmt(stop.name, b.max_(b.min_(end, b.add(highs[0], b.i32(1))), f.min), parts)


def _check_always(stmt: n.Stmt, env: Mapping[str, Function]) -> None:
    """Refuse Partition.Always for loops without boundaries, before loops around them are split, which may take the boundaries away."""
    for f in nodes_of(stmt, n.For):
        if f.partition is not n.Partition.Always:
            continue
        finder = _Finder(f, not f.body.mask & n.For.bit)
        finder.stmt(f.body, f.name)
        if not finder.found:
            where = [g.site("partition", k) for name, g in env.items() for k in range(len(g.stages()))
                     if f.name.startswith((f"{name}.s{k}.", f"{name}.s{k}/"))]
            raise CompileError(f"Loop {f.name} is scheduled partition(Always), but no boundary condition in it depends on it in a way that "
                               f"can be split off; use Partition.Auto{f' ({where[0]})' if where else ''}")


def partition_loops(stmt: n.Stmt, env: Mapping[str, Function] | None = None) -> n.Stmt:
    """Split the loops of `stmt` where that pays, outermost first. Raises CompileError for Partition.Always without effect; `env`: whose
    loops they are."""
    _check_always(stmt, env or {})

    def loop(f: n.For, rec: Rec) -> n.Stmt:
        new = split(f, rec) if f.partition is not n.Partition.Never and f.symbols & _MARKS else None
        return n.For(f.name, f.min, f.extent, f.kind, f.partition, rec(f.body)) if new is None else new

    def split(f: n.For, rec: Rec) -> n.Stmt | None:
        innermost = not f.body.mask & n.For.bit
        finder = _Finder(f, innermost)
        finder.stmt(f.body, f.name)
        if not any(mark.triggers for mark, _ in finder.found):
            return _shifted(f, finder) if innermost and f.kind is n.ForType.Serial else None
        if f.partition is not n.Partition.Always and not _is_small(f.body):
            return None
        steady = finder.steady(f.body)
        steady = rec(simplify(steady) if finder.trips else steady)  # loops that run once are no loops: what is around them is innermost
        lows, highs = finder.limits("low"), finder.limits("high")
        several = f.kind is n.ForType.Serial and (innermost or not (lows and highs))
        return (_three_loops if several else _one_loop)(f, finder, steady, lows, highs, rec)

    return rewrite(stmt, {n.For: loop})
