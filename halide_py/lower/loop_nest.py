"""Loop nests: what one stage's splits, fuses and loop order say, worked out.

In: a Definition with its StageSchedule. Out: a `StageNest`: the loops outermost first, the lets and guards between them,
the Provide inside, and each original variable as an expression of loop variables, which is all that bounds inference
asks for. Source: the tail strategies are those of Halide (src/ApplySplit.cpp, Schedule.h).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Definition, Function, SplitKind
from ..ir.interval import Bounds, Interval
from ..ir.simplify import simplify
from ..ir.traverse import Rec, free_variables, mentions, rewrite, substitute
from .apply_splits import AppliedSplits, Fused, resolve_tails, var
from .extern_stages import extern_call
from .guards import has_effects
from .inline import substitute_vars


@dataclass(frozen=True)
class Loop:
    """One loop of a nest."""

    name: str
    min: n.Expr
    extent: n.Expr
    kind: n.ForType
    partition: n.Partition


@dataclass(frozen=True)
class Container:
    """A let (`name` set) or a guard between the loops; `depth` is the number of loops around it. `range` is the value as intervals
    should see it: limited by the guards inside."""

    name: str
    value: n.Expr
    depth: int
    range: n.Expr

    def wrap(self, body: n.Stmt) -> n.Stmt:
        """`body` inside the let or the guard."""
        return n.LetStmt(self.name, self.value, body) if self.name else n.IfThenElse(self.value, body)


@dataclass(eq=False)
class StageNest:
    """Stage `index` of `function` as loops. `variables` maps each pure Var and RVar (unqualified) to its value in terms of loops and
    lets."""

    function: Function
    index: int
    definition: Definition
    loops: list[Loop]
    containers: list[Container]
    provide: n.Stmt  # the innermost statement: a Provide, or the call of an extern stage
    variables: dict[str, n.Expr]
    base_variables: tuple[str, ...]
    covers: dict[str, bool] = field(default_factory=dict)
    fused: dict[str, Fused] = field(default_factory=dict)
    variant: int = 0  # number of the specialization this is; 0 for none
    specializations: list[SpecializedNest] = field(default_factory=list)  # tried in order before this one
    failure: n.Stmt | None = None  # what happens instead, when the last specialization was specialize_fail()
    beyond: bool = False  # whether more is stored than `variables` say (PredicateLoads)

    @property
    def prefix(self) -> str:
        """What this stage's bounds are named after: `f.s0.`."""
        return f"{self.function.name}.s{self.index}."

    @property
    def exceeds(self) -> bool:
        """Whether more is computed than is asked for: by tails, or because of bound_extent()."""
        return bool(self.covers) or any(bound.extent is not None and bound.min is None for bound in self.function.schedule.bounds)

    @property
    def loop_prefix(self) -> str:
        """What its loops are named after: `f.s0.`, `f.s0/1.` for its first specialization."""
        return loop_prefix(self.function, self.index, self.variant)

    def between(self, depth: int) -> list[Container]:
        """The lets and guards just inside loop number `depth - 1`, outermost first."""
        return [c for c in self.containers if c.depth == depth]

    def depth(self) -> int:
        """How many loops are run here: those of an extern stage's own come last, and are its function's."""
        return sum(loop.kind is not n.ForType.Extern for loop in self.loops)

    def ways(self) -> tuple[StageNest, ...]:
        """This nest and those of the specializations."""
        return (self, *(s.nest for s in self.specializations))

    def region_lets(self, depth: int, any_way: bool = False) -> list[tuple[str, n.Expr]]:
        """The symbols of the region of each variable inside loop number `depth - 1`, with their values; with `any_way` those of the
        specialization that runs, all of which have these loops."""
        ends = {(v, end): e for v, interval in self.region(depth).items() for end, e in (("min", interval.min), ("max", interval.max))}
        for s in reversed(self.specializations if any_way else []):
            for v, interval in s.nest.region(depth).items():
                for end, e in (("min", interval.min), ("max", interval.max)):
                    other = ends[v, end]
                    assert e is not None and other is not None
                    ends[v, end] = b.select(s.condition, e, other)
        return [(f"{self.prefix}{v}.{end}", e) for (v, end), e in ends.items() if e is not None]

    def stmt(self) -> n.Stmt:
        """The whole nest: that of the first specialization whose condition holds, else this one."""
        return self.chosen(StageNest.loop_stmt)

    def chosen(self, loops: Callable[[StageNest], n.Stmt]) -> n.Stmt:
        """What `loops` makes of the first specialization whose condition holds, else of this nest."""
        body = loops(self) if self.failure is None else self.failure
        for s in reversed(self.specializations):
            body = n.IfThenElse(s.condition, loops(s.nest) if s.failure is None else s.failure, body)
        return body

    def loop_stmt(self) -> n.Stmt:
        """The loops of this nest alone, its loop bounds frozen around them."""
        return b.let_stmts(self.frozen_bounds(), self.loops_at(()))

    def loops_at(self, values: Sequence[n.Expr]) -> n.Stmt:
        """The loops and what is inside; of the outermost ones only the iterations at `values`."""
        body = self.provide
        if self.function.extern is not None and self.depth():
            body = b.let_stmts(self.region_lets(self.depth()), body)
        for depth in range(self.depth(), -1, -1):
            for c in reversed(self.between(depth)):
                body = c.wrap(body)
            if depth > len(values):
                loop = self.loops[depth - 1]
                body = n.For(loop.name, loop.min, loop.extent, loop.kind, loop.partition, body)
            elif depth:
                loop = self.loops[depth - 1]
                body = n.For(loop.name, values[depth - 1], b.i32(1), n.ForType.Serial, loop.partition, body)
        return body

    def frozen_bounds(self) -> list[tuple[str, n.Expr]]:
        """The loop bounds as lets around the nest: `f.s0.x.loop_min`, `.loop_max`, `.loop_extent`."""
        lets: list[tuple[str, n.Expr]] = []
        for v in self.base_variables:
            p = self.loop_prefix + v
            low, high = self.asked(v)
            lets += [(p + ".loop_min", low), (p + ".loop_max", high), (p + ".loop_extent", b.add(b.sub(high, low), b.i32(1)))]
        return lets

    def scope_inside(self, depth: int) -> Bounds:
        """The interval of every loop variable and let inside loop number `depth - 1`, those further out being symbols."""
        inside = Bounds({})
        for d in range(depth + 1, len(self.loops) + 1):
            loop = self.loops[d - 1]
            low = inside.of(loop.min)
            high = inside.of(b.sub(b.add(loop.min, loop.extent), b.i32(1)))
            inside.bind(loop.name, Interval(low.min, high.max))
            for c in self.between(d):
                if c.name:
                    inside.bind(c.name, self._let_interval(c, inside, depth))
        return inside

    def _let_interval(self, c: Container, inside: Bounds, depth: int) -> Interval:
        """What a let covers. Where a whole fused loop runs, its variables cover their own ranges, which `%` and `/` do not tell."""
        whole = self.fused.get(c.name)
        if whole is not None and (depth == 0 or whole.loop in inside.scope):
            return Interval(inside.of(whole.min).min, inside.of(whole.max).max)
        return inside.of(c.range)

    def region(self, depth: int) -> dict[str, Interval]:
        """The interval each variable covers inside loop number `depth - 1` and the containers just inside it."""
        inside = self.scope_inside(depth)
        out: dict[str, Interval] = {}
        for v, value in self.variables.items():
            interval = inside.of(value)
            out[v] = Interval(interval.min and simplify(interval.min), interval.max and simplify(interval.max))
        return out

    @functools.cached_property
    def whole(self) -> dict[str, Interval]:
        """The interval each variable covers in all."""
        return self.region(0)

    def asked(self, v: str) -> tuple[n.Expr, n.Expr]:
        """The symbols of the interval of `v` that is asked for."""
        suffix = "_required" if self.covers.get(v) else ""  # what the loops compute beyond it follows from the splits
        return var(f"{self.prefix}{v}.min{suffix}"), var(f"{self.prefix}{v}.max{suffix}")

    def covered(self, v: str) -> tuple[n.Expr, n.Expr]:
        """The interval of `v` that the loops really compute, more than what is asked for under RoundUp and ShiftInwards only."""
        low, high = self._covered(v)
        for s in reversed(self.specializations):
            lower, higher = s.nest._covered(v) if s.failure is None else self.asked(v)
            low, high = b.select(s.condition, lower, low), b.select(s.condition, higher, high)
        return simplify(low), simplify(high)

    def _covered(self, v: str) -> tuple[n.Expr, n.Expr]:
        interval = self.whole[v]
        assert interval.min is not None and interval.max is not None
        values: dict[str, n.Expr] = {}
        for u in self.base_variables:
            low, high = self.asked(u)
            p = self.loop_prefix + u
            values |= {p + ".loop_min": low, p + ".loop_max": high, p + ".loop_extent": b.add(b.sub(high, low), b.i32(1))}
        return simplify(substitute(values, interval.min)), simplify(substitute(values, interval.max))


@dataclass
class SpecializedNest:
    """The nest of a stage for the runs in which `condition` holds, or the statement that fails them."""

    condition: n.Expr
    nest: StageNest
    failure: n.Stmt | None = None


def loop_prefix(f: Function, index: int, variant: int) -> str:
    """What the loops of a stage are named after."""
    return f"{f.stage_name(index)}/{variant}." if variant else f"{f.stage_name(index)}."


def build_nest(f: Function, index: int, d: Definition, variant: int = 0) -> StageNest:
    """The loop nest of stage `index` of `f`, defined by `d`. Raises CompileError for splits that cannot be honoured."""
    builder = AppliedSplits(f, index, d, loop_prefix(f, index, variant))
    rvars = [v.name for v in d.schedule.rvars]
    pure = [a for a in f.args if any(type(e) is n.Variable and e.name == a for e in d.args)]
    base = (*pure, *rvars)
    for v in base:
        builder.base(v)
    for bound in f.schedule.bounds:
        extent = b.as_int(bound.extent) if bound.extent is not None else b.as_int(bound.modulus) if bound.modulus is not None else None
        if extent and bound.var in builder.bounds:
            builder.multiple[bound.var] = extent
    for rv in d.schedule.rvars:
        extent = b.as_int(rv.extent)
        if extent:
            builder.multiple[rv.name] = extent
    for s, tail in zip(d.schedule.splits, resolve_tails(d.schedule.splits, index == 0)):
        if s.kind is SplitKind.Split:
            builder.split(s, tail)
        elif s.kind is SplitKind.Fuse:
            builder.fuse(s)
        else:
            builder.rename(s)
    p = builder.prefix
    loops = []
    outermost_first = d.schedule.dims[::-1]
    for dim in sorted(outermost_first, key=lambda dim: dim.for_type is n.ForType.Extern):
        low, _, count = (b.i32(0), b.i32(0), b.i32(1)) if dim.var == OUTERMOST else builder.bounds[dim.var]
        loops.append(Loop(p + dim.var, low, count, dim.for_type, dim.partition))
    values = builder.values
    predicate = substitute_vars(values, d.predicate)
    guards = list(builder.guards)
    if not b.is_true(predicate):
        guards.append(b.likely(predicate))
    loads, stores, blends = (b.all_of(guards) for guards in (builder.load_guards, builder.store_guards, builder.blends if index else ()))

    def exact(e: n.Expr) -> n.Expr:
        return _guarded_reads(substitute_vars(values, e), loads)

    args, results = tuple(map(exact, d.args)), tuple(map(exact, d.values))
    if not b.is_true(blends):  # of a pure definition, what is stored again is what is there
        own = [n.Call(t, f.name, d.args, n.CallType.Halide, None, i) for i, t in enumerate(f.types)]
        d = replace(d, values=(*d.values, *own))
        results = tuple(n.Select(blends, e, exact(me)) for e, me in zip(results, own))
    provide = extern_call(f, d) if f.extern is not None else n.Provide(f.name, results, args, stores)
    items = [*((name, e, builder.ranges[name]) for name, e in reversed(builder.lets)), *(("", g, g) for g in guards)]
    containers = _place(items, [loop.name for loop in loops], f.name)
    return StageNest(f, index, d, loops, containers, provide, {v: builder.ranges[v] for v in values}, base, builder.covers, builder.fused,
                     variant, beyond=bool(builder.load_guards))


def _guarded_reads(e: n.Expr, condition: n.Expr) -> n.Expr:
    """`e` reading Funcs and images only where the condition holds."""
    if b.is_true(condition):
        return e

    def call(c: n.Call, rec: Rec) -> n.Expr:
        new: n.Call = c.map_children(rec)
        if c.call_type not in (n.CallType.Halide, n.CallType.Image):
            return new
        return n.Call(c.type, "if_then_else", (condition, new, b.const(c.type, 0)), n.CallType.PureIntrinsic)

    return rewrite(e, {n.Call: call})


def _place(items: list[tuple[str, n.Expr, n.Expr]], loops: list[str], func: str) -> list[Container]:
    """Each let and guard as far out as the loops and lets it uses allow, but innermost what iterations change: a guard that reads the Func
    itself or has effects; lets before guards at one depth. Lets stay inside the outermost loop: the region of the whole nest is defined
    outside of it, and may not mention them."""
    depth_of = {name: i + 1 for i, name in enumerate(loops)}
    out: list[Container] = []
    for name, value, limited in items:
        depth = max((depth_of.get(v, 0) for v in free_variables(value)), default=0)
        if name:
            depth = max(depth, 1)
        elif mentions(value, func) or has_effects(value):
            depth = len(loops)
        out.append(Container(name, value, depth, limited))
        if name:
            depth_of[name] = depth
    return [c for c in out if c.name] + [c for c in out if not c.name]
