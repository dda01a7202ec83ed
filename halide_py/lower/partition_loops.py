"""Loops split into a steady state without boundary code and the few iterations that need it.

Before: `for x { out[x] = in[max(min(likely(x - 1), w - 1), 0)] }`. After: the same loop up to x = 1, `out[x] = in[x - 1]` up to x = w, and the
same loop for the rest.

What marks a boundary is `likely`: a condition in it is true in the steady state; the marked side of a Min, Max or Select is the one taken.
Each mark is solved for the loop variable (linear conditions; inner loop variables by their extremes; lanes of vectors likewise).
An innermost serial loop becomes three loops; any other keeps one loop with `if (steady) .. else ..`, two copies of its
body instead of three. Copies outside the steady state lose their marks, so that cold code is not split again.

Only where it pays: a mark counts if it varies with the innermost loop around it, or belongs to the loop being split; anything
else is loop invariant and hoisted by the C compiler. `likely_if_innermost` alone never causes a split, it only joins one.
Loops with Partition.Never stay; with Partition.Always they must split. Behaviour: Halide's PartitionLoops.cpp.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.interval import Interval
from ..ir.simplify import prove, simplify
from ..ir.traverse import Rec, free_variables, mentions, nodes_of, rewrite, substitute
from ..ir.types import INT32
from .copies import copy_with
from .guards import is_likely, strip_likely
from .linear import Limits, solve

_MARKS = n.symbol_bit("likely") | n.symbol_bit("likely_if_innermost")
_COPIED_NODES = 6000  # a larger body is not copied: compile time


@dataclass
class _Mark:
    """One boundary condition: `node` becomes `steady` where `condition` holds."""

    node: n.Expr
    steady: n.Expr
    condition: n.Expr
    triggers: bool


def _is_marked(e: n.Expr, innermost: bool) -> bool:
    """Whether a value is a marked one, through arithmetic but not through memory or calls."""
    if not e.symbols & _MARKS:
        return False
    if isinstance(e, n.Call):
        return e.name == "likely" or (innermost and e.name == "likely_if_innermost")
    return not isinstance(e, n.Load) and any(_is_marked(c, innermost) for c in e.children())


def _marks_in(root: n.Expr, innermost: bool) -> Iterator[_Mark]:
    """The marks of an expression, inner ones first."""
    found: list[_Mark] = []
    for e in nodes_of(root, (n.Call, n.Min, n.Max, n.Select)):
        if not e.symbols & _MARKS:
            continue
        if isinstance(e, (n.Min, n.Max)):
            a, c = _is_marked(e.a, innermost), _is_marked(e.b, innermost)
            if a != c:
                taken, other = (e.a, e.b) if a else (e.b, e.a)
                holds = n.LE(taken, other) if isinstance(e, n.Min) else n.LE(other, taken)
                found.append(_Mark(e, taken, holds, _is_marked(taken, False)))
        elif isinstance(e, n.Select) or e.name == "if_then_else":
            condition, *values = e.children()
            a, c = is_likely(values[0]), len(values) > 1 and is_likely(values[1])
            if a != c:
                found.append(_Mark(e, values[0] if a else values[1], condition if a else b.not_(condition), True))
        elif is_likely(e) and e.type.is_bool() and (innermost or e.name == "likely"):
            found.append(_Mark(e, b.true(e.type.lanes()), e.args[0], e.name == "likely"))
    return reversed(found)


@dataclass
class _Finder:
    """Collects the marks of one loop that can be solved for its variable."""

    loop: n.For
    innermost: bool
    scope: dict[str, Interval] = field(default_factory=dict)
    lets: dict[str, n.Expr] = field(default_factory=dict)
    accepted: dict[n.Node, n.Expr] = field(default_factory=dict)
    limits: list[tuple[_Mark, Limits]] = field(default_factory=list)
    triggered: bool = False

    def stmt(self, s: n.Stmt, around: str) -> None:
        """Look into a statement; `around` is the innermost loop variable around it."""
        if not s.symbols & _MARKS and not isinstance(s, n.LetStmt):
            return
        if isinstance(s, n.LetStmt):
            self.expr(s.value, around)
            self.lets[s.name] = s.value
            self.stmt(s.body, around)
        elif isinstance(s, n.For):
            self.expr(s.min, around)
            self.expr(s.extent, around)
            self.scope[s.name] = Interval(self.expand(s.min), self.expand(b.sub(b.add(s.min, s.extent), b.i32(1))))
            self.stmt(s.body, s.name)
        else:
            for child in s.children():
                self.stmt(child, around) if isinstance(child, n.Stmt) else self.expr(child, around)

    def expr(self, e: n.Expr, around: str) -> None:
        if not e.symbols & _MARKS:
            return
        for mark in _marks_in(e, self.innermost):
            if mark.node in self.accepted:
                continue
            condition = self.expand(mark.condition)
            if around != self.loop.name and not mentions(condition, around):
                continue
            limits = solve(condition, self.loop.name, self.scope)
            if limits is None or not self.possible(limits):
                continue
            self.accepted[mark.node] = mark.steady
            self.limits.append((mark, limits))
            self.triggered |= mark.triggers

    def expand(self, e: n.Expr) -> n.Expr:
        """`e` in terms of loop variables and what is outside, as it is in the steady state found so far."""
        e = strip_likely(self.steady(e))
        for _ in range(len(self.lets) + 1):
            inside = {name: strip_likely(self.steady(self.lets[name])) for name in free_variables(e) if name in self.lets}
            if not inside:
                break
            e = substitute(inside, e)
        return simplify(e)

    def steady(self, root: n.N) -> n.N:  # type: ignore[name-defined]
        """`root` where the accepted marks hold."""

        def replace(e: n.Expr, rec: Rec) -> n.Expr:
            new = self.accepted.get(e)
            return e.map_children(rec) if new is None else rec(new)  # type: ignore[no-any-return]

        kinds = {type(e) for e in self.accepted}
        return rewrite(root, dict.fromkeys(kinds, replace)) if kinds else root

    def possible(self, limits: Limits) -> bool:
        """Whether some iteration may be within the limits."""
        first, last = self.loop.min, b.sub(b.add(self.loop.min, self.loop.extent), b.i32(1))
        return not any(prove(n.LT(last, low)) for low in limits.low) and not any(prove(n.LT(high, first)) for high in limits.high)


def _is_small(s: n.Stmt) -> bool:
    everything = tuple(kind for kind in (*n.Expr.__subclasses__(), *n.Stmt.__subclasses__()))
    return sum(1 for _ in itertools.islice(nodes_of(s, everything), _COPIED_NODES)) < _COPIED_NODES


def _cold(finder: _Finder, side: str, suffix: str) -> n.Stmt:
    """The loop's body outside the steady state; on the `side` (low, high) where only one mark can be false, it is false."""
    body = finder.loop.body
    alone = [(mark, limits) for mark, limits in finder.limits if getattr(limits, side, ())]
    if len(alone) == 1 and alone[0][1].exact and len(alone[0][1].low) + len(alone[0][1].high) == 1 and is_likely(alone[0][0].node):
        never = alone[0][0].node

        def call(c: n.Call, rec: Rec) -> n.Expr:
            return b.FALSE if c is never else c.map_children(rec)

        if never.type.is_scalar():
            body = rewrite(body, {n.Call: call})
    name = finder.loop.name
    return copy_with({name: n.Variable(INT32, name + suffix)}, strip_likely(body), suffix)


def _three_loops(f: n.For, finder: _Finder, steady: n.Stmt, lows: list[n.Expr], highs: list[n.Expr]) -> n.Stmt:
    """Prologue, steady state and epilogue, those of the outer two that may have iterations."""
    end = simplify(b.add(f.min, f.extent))
    bindings: list[tuple[str, n.Expr]] = []
    start = f.min
    stop = end
    parts: list[n.Stmt] = []
    if lows:
        for low in lows:
            start = b.max_(start, low)
        bindings.append((f.name + ".steady", simplify(b.min_(start, end))))
        start = n.Variable(INT32, bindings[-1][0])
        parts.append(n.For(f.name + ".prologue", f.min, b.sub(start, f.min), f.kind, n.Partition.Never, _cold(finder, "low", ".prologue")))
    if highs:
        for high in highs:
            stop = b.min_(stop, b.add(high, b.i32(1)))
        bindings.append((f.name + ".epilogue_start", simplify(b.max_(stop, start))))
        stop = n.Variable(INT32, bindings[-1][0])
    parts.append(n.For(f.name, start, b.sub(stop, start), f.kind, f.partition, steady))
    if highs:
        parts.append(n.For(f.name + ".epilogue", stop, b.sub(end, stop), f.kind, n.Partition.Never, _cold(finder, "high", ".epilogue")))
    return b.let_stmts(bindings, b.block(parts))


def _one_loop(f: n.For, finder: _Finder, steady: n.Stmt, lows: list[n.Expr], highs: list[n.Expr]) -> n.Stmt:
    """One loop that asks in each iteration whether it is in the steady state."""
    here = n.Variable(INT32, f.name)
    bindings = [(f"{f.name}.steady_min{i}", e) for i, e in enumerate(lows)] + [(f"{f.name}.steady_max{i}", e) for i, e in enumerate(highs)]
    bounds = [n.Variable(INT32, name) for name, _ in bindings]
    inside = b.all_of([*(n.LE(e, here) for e in bounds[:len(lows)]), *(n.LE(here, e) for e in bounds[len(lows):])])
    side = "low" if not highs else "high" if not lows else ""
    cold = n.LetStmt(f.name + ".cold", here, _cold(finder, side, ".cold"))
    return b.let_stmts(bindings, n.For(f.name, f.min, f.extent, f.kind, f.partition, n.IfThenElse(inside, steady, cold)))


def _distinct(limits: list[n.Expr]) -> list[n.Expr]:
    """The limits without repetitions and without those another one implies."""
    out: list[n.Expr] = []
    for e in dict.fromkeys(limits):
        constant = b.as_int(simplify(b.sub(e, out[-1]))) if out else None
        if constant is None:
            out.append(e)
        elif constant > 0:
            out[-1] = e
    return out


def partition_loops(stmt: n.Stmt) -> n.Stmt:
    """Split the loops of `stmt` where that pays, outermost first. Raises CompileError for Partition.Always without effect."""

    def loop(f: n.For, rec: Rec) -> n.Stmt:
        new = None
        if f.partition is not n.Partition.Never and f.symbols & _MARKS:
            new = split(f, rec)
        if new is None and f.partition is n.Partition.Always:
            raise CompileError(f"Loop {f.name} is scheduled partition(Always), but no boundary condition in it depends on it in a way that can be split off; "
                               "use Partition.Auto")
        return n.For(f.name, f.min, f.extent, f.kind, f.partition, rec(f.body)) if new is None else new

    def split(f: n.For, rec: Rec) -> n.Stmt | None:
        innermost = not f.body.mask & n.For.bit
        finder = _Finder(f, innermost)
        finder.stmt(f.body, f.name)
        if not finder.triggered or not (f.partition is n.Partition.Always or _is_small(f.body)):
            return None
        last = b.sub(b.add(f.min, f.extent), b.i32(1))
        lows = _distinct([e for _, limits in finder.limits for e in limits.low if not prove(n.LE(e, f.min))])
        negated = _distinct([simplify(b.sub(b.i32(0), e)) for _, limits in finder.limits for e in limits.high if not prove(n.LE(last, e))])
        highs = [simplify(b.sub(b.i32(0), e)) for e in negated]
        steady = rec(finder.steady(f.body))
        if not lows and not highs:
            return n.For(f.name, f.min, f.extent, f.kind, f.partition, steady)
        form = _three_loops if innermost and f.kind is n.ForType.Serial else _one_loop
        return form(f, finder, steady, lows, highs)

    return rewrite(stmt, {n.For: loop})
