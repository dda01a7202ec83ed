"""Loop nests: what one stage's splits, fuses and loop order say, worked out.

In: a Definition with its StageSchedule. Out: a `StageNest`: the loops outermost first, the lets and guards between them,
the Provide inside, and each original variable as an expression of loop variables, which is all that bounds inference
asks for. Source: the tail strategies are those of Halide (src/ApplySplit.cpp, Schedule.h).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Definition, Function, Split, SplitKind, TailStrategy
from ..ir.interval import Bounds, Interval
from ..ir.intrinsics import intrinsic
from ..ir.simplify import simplify
from ..ir.traverse import Rec, free_variables, rewrite, substitute
from ..ir.types import INT32
from .extern_stages import extern_call
from .inline import substitute_vars


def var(name: str) -> n.Expr:
    """An int32 Variable."""
    return n.Variable(INT32, name)


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


@dataclass(frozen=True)
class Fused:
    """The range of a variable that was fused into `loop`. `extent` is that of the inner of the two if this is the outer."""

    loop: str
    min: n.Expr
    max: n.Expr
    extent: n.Expr | None = None


@dataclass(eq=False)
class StageNest:
    """Stage `index` of `function` as loops. `variables` maps each pure Var and RVar (unqualified) to its value in terms of loops and lets."""

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
    def loop_prefix(self) -> str:
        """What its loops are named after: `f.s0.`, `f.s0/1.` for its first specialization."""
        return loop_prefix(self.function, self.index, self.variant)

    def between(self, depth: int) -> list[Container]:
        """The lets and guards just inside loop number `depth - 1`, outermost first."""
        return [c for c in self.containers if c.depth == depth]

    def depth(self) -> int:
        """How many loops are run here: those of an extern stage's own come last, and are its function's."""
        return sum(loop.kind is not n.ForType.Extern for loop in self.loops)

    def region_lets(self, depth: int) -> list[tuple[str, n.Expr]]:
        """The symbols of the region of each variable inside loop number `depth - 1`, with their values."""
        lets: list[tuple[str, n.Expr]] = []
        for v, interval in self.region(depth).items():
            assert interval.min is not None and interval.max is not None
            lets += [(f"{self.prefix}{v}.min", interval.min), (f"{self.prefix}{v}.max", interval.max)]
        return lets

    def stmt(self) -> n.Stmt:
        """The whole nest: that of the first specialization whose condition holds, else this one."""
        body = self.loop_stmt() if self.failure is None else self.failure
        for s in reversed(self.specializations):
            body = n.IfThenElse(s.condition, s.nest.loop_stmt() if s.failure is None else s.failure, body)
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


def resolve_tails(splits: Sequence[Split], pure_definition: bool) -> list[TailStrategy]:
    """The tail strategy of each split, Auto replaced by what Halide picks (src/Func.cpp, Stage::split)."""
    tails: list[TailStrategy] = []
    shifted: dict[str, n.Expr] = {}  # variables inside the outer part of a ShiftInwards split, with its factor
    inner: set[str] = set()
    for s in splits:
        tail = s.tail
        if s.kind is not SplitKind.Split:
            if s.kind is SplitKind.Rename and s.old in shifted:
                shifted[s.outer] = shifted[s.old]
            if s.kind is SplitKind.Rename and s.old in inner:
                inner.add(s.outer)
            tails.append(tail)
            continue
        assert s.factor is not None
        if tail is TailStrategy.Auto:
            previous, now = b.as_int(shifted[s.old]) if s.old in shifted else None, b.as_int(s.factor)
            if s.exact:
                tail = TailStrategy.GuardWithIf
            elif not pure_definition:
                tail = TailStrategy.GuardWithIf if s.old in inner else TailStrategy.RoundUp
            elif previous is not None and now is not None and previous >= now:
                tail = TailStrategy.RoundUp
            else:
                tail = TailStrategy.ShiftInwards
        old_factor = shifted.pop(s.old, None)
        if tail is TailStrategy.ShiftInwards:
            shifted[s.outer] = s.factor
        elif old_factor is not None:
            shifted[s.outer] = shifted[s.inner] = old_factor
        inner.add(s.inner)
        tails.append(tail)
    return tails


class _Builder:
    """Applies the splits of one stage in order."""

    def __init__(self, f: Function, index: int, d: Definition, prefix: str) -> None:
        self.f, self.d = f, d
        self.prefix = prefix
        self.where = f"Func {f.name}, " + ("pure definition" if index == 0 else f"update {index - 1}")
        self.bounds: dict[str, tuple[n.Expr, n.Expr, n.Expr]] = {}  # min, max, extent
        self.multiple: dict[str, int] = {}  # constants known to divide the extent
        self.lets: list[tuple[str, n.Expr]] = []  # in order of application: the last is outermost
        self.guards: list[n.Expr] = []
        self.load_guards: list[n.Expr] = []  # for reads only, for stores only, and for what is stored rather than kept
        self.store_guards: list[n.Expr] = []
        self.blends: list[n.Expr] = []
        self.values: dict[str, n.Expr] = {}
        self.ancestors: dict[str, set[str]] = {}
        self.ranges: dict[str, n.Expr] = {}  # values and lets as intervals should see them: limited by guards
        self.covers: dict[str, bool] = {}
        self.fused: dict[str, Fused] = {}
        self.origins: dict[str, list[str]] = {}  # what a variable was split from, and that from; names may be taken up again

    def base(self, v: str) -> None:
        p = self.prefix + v
        self.bounds[v] = var(p + ".loop_min"), var(p + ".loop_max"), var(p + ".loop_extent")
        self.values[v] = self.ranges[v] = var(p)
        self.ancestors[v] = {v}

    def replace(self, name: str, value: n.Expr, limited: n.Expr) -> None:
        """Express a loop variable by later ones; `limited` is its value as intervals should see it."""
        self.values = {k: substitute({name: value}, e) for k, e in self.values.items()}
        self.ranges = {k: substitute({name: limited}, e) for k, e in self.ranges.items()}
        self.lets = [(k, substitute({name: value}, e)) for k, e in self.lets]
        for guards in (self.guards, self.load_guards, self.store_guards, self.blends):
            guards[:] = [substitute({name: value}, e) for e in guards]

    def let(self, name: str, value: n.Expr) -> None:
        self.lets.append((name, value))
        self.ranges[name] = value

    def split(self, s: Split, tail: TailStrategy) -> None:
        p, factor = self.prefix, s.factor
        assert factor is not None
        size = b.as_int(factor)
        if size is not None and size <= 0:
            raise CompileError(f"In schedule for {self.where}: can't split {s.old} by {size}; split factors must be strictly positive")
        old_min, old_max, old_extent = self.bounds[s.old]
        blocks = b.div(b.add(old_extent, b.sub(factor, b.i32(1))), factor)
        outer, inner, base_name = var(p + s.outer), var(p + s.inner), f"{p}{s.inner}.base"
        base = b.add(b.mul(outer, factor), old_min)
        value = limited = b.add(var(base_name), inner)
        guard: tuple[list[n.Expr], n.Expr] | None = None
        known = self.multiple.get(s.old)
        ancestors = self.ancestors[s.old]
        exact = size == 1 or (known is not None and size is not None and known % size == 0)
        if not exact:
            inside = b.likely(n.LE(value, old_max))
            if tail in (TailStrategy.GuardWithIf, TailStrategy.Predicate, TailStrategy.PredicateLoads):
                limited = intrinsic("unsafe_promise_clamped", INT32, value, value, old_max)
            if tail in (TailStrategy.ShiftInwards, TailStrategy.ShiftInwardsAndBlend):
                fresh = b.likely(n.LE(base, value))  # the block before stops short of it
                mark = n.Call(INT32, "likely_if_innermost", (base,), n.CallType.PureIntrinsic)
                base = n.Min(mark, b.add(old_max, b.sub(b.i32(1), factor)))
                self.overshoot(s.old, (b.min_(b.i32(0), b.sub(old_extent, factor)), b.i32(0)))
                guard = (self.blends, fresh) if tail is TailStrategy.ShiftInwardsAndBlend else None
            elif limited is value or tail is TailStrategy.PredicateLoads:
                self.overshoot(s.old, (b.i32(0), b.sub(b.mul(blocks, factor), old_extent)))
            lists = {TailStrategy.PredicateLoads: self.load_guards, TailStrategy.PredicateStores: self.store_guards, TailStrategy.RoundUpAndBlend: self.blends,
                     TailStrategy.GuardWithIf: self.guards, TailStrategy.Predicate: self.guards}
            if tail in lists:
                guard = lists[tail], inside
            if limited is value:
                self.covers.update(dict.fromkeys(ancestors, True))
        self.replace(p + s.old, value, limited)
        self.let(base_name, base)
        if guard is not None:
            guard[0].append(guard[1])
        if exact and known is not None and size:
            self.multiple[s.outer] = known // size
        else:
            self.multiple.pop(s.outer, None)
        if size is not None:
            self.multiple[s.inner] = size
        self.bounds[s.outer] = b.i32(0), b.sub(blocks, b.i32(1)), blocks
        self.bounds[s.inner] = b.i32(0), b.sub(factor, b.i32(1)), factor
        self.ancestors[s.outer] = self.ancestors[s.inner] = ancestors
        self.origins[s.outer] = self.origins[s.inner] = [*self.origins.get(s.old, []), s.old]

    def fused_let(self, name: str, value: n.Expr, fused: Fused) -> None:
        self.fused[name] = fused
        self.let(name, intrinsic("unsafe_promise_clamped", INT32, value, fused.min, fused.max))

    def overshoot(self, v: str, by: tuple[n.Expr, n.Expr] | None) -> None:
        """`v` leaves its range, by (at most 0, at least 0) if that is known: so does the outer of the variables fused into it (`/`; `%` stays)."""
        origins = self.origins.get(v, [])
        for name, fused in list(self.fused.items()):
            if fused.extent is None or fused.loop.removeprefix(self.prefix) not in (v, *origins):
                continue
            i, value = next((i, e.args[0]) for i, (k, e) in enumerate(self.lets) if k == name and isinstance(e, n.Call))
            del self.lets[i], self.fused[name]
            if by is None or fused.loop.removeprefix(self.prefix) in origins:
                self.let(name, value)
            else:
                row = n.Max(fused.extent, b.i32(1))
                low = b.add(fused.min, b.div(by[0], row))
                high = b.add(fused.max, b.div(b.add(by[1], b.sub(row, b.i32(1))), row))
                self.fused_let(name, value, Fused(fused.loop, low, high, fused.extent))
            self.overshoot(name.removeprefix(self.prefix), None)

    def fuse(self, s: Split) -> None:
        p = self.prefix
        fused = var(p + s.old)
        (inner_min, inner_max, inner_extent), (outer_min, outer_max, outer_extent) = self.bounds[s.inner], self.bounds[s.outer]
        self.fused_let(p + s.inner, b.add(b.mod(fused, inner_extent), inner_min), Fused(p + s.old, inner_min, inner_max))
        self.fused_let(p + s.outer, b.add(b.div(fused, inner_extent), outer_min), Fused(p + s.old, outer_min, outer_max, inner_extent))
        total = b.mul(inner_extent, outer_extent)
        self.bounds[s.old] = b.i32(0), b.sub(total, b.i32(1)), total
        self.ancestors[s.old] = self.ancestors[s.inner] | self.ancestors[s.outer]
        if s.inner in self.multiple or s.outer in self.multiple:
            self.multiple[s.old] = self.multiple.get(s.inner, 1) * self.multiple.get(s.outer, 1)

    def rename(self, s: Split) -> None:
        new = var(self.prefix + s.outer)
        self.replace(self.prefix + s.old, new, new)
        self.bounds[s.outer], self.ancestors[s.outer] = self.bounds[s.old], self.ancestors[s.old]
        if s.old in self.multiple:
            self.multiple[s.outer] = self.multiple.pop(s.old)


def build_nest(f: Function, index: int, d: Definition, variant: int = 0) -> StageNest:
    """The loop nest of stage `index` of `f`, defined by `d`. Raises CompileError for splits that cannot be honoured."""
    builder = _Builder(f, index, d, loop_prefix(f, index, variant))
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
    containers = _place(items, [loop.name for loop in loops])
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


def _place(items: list[tuple[str, n.Expr, n.Expr]], loops: list[str]) -> list[Container]:
    """Each let and guard as far out as the loops and lets it uses allow; lets before guards at one depth."""
    depth_of = {name: i + 1 for i, name in enumerate(loops)}
    out: list[Container] = []
    for name, value, limited in items:
        depth = max((depth_of.get(v, 0) for v in free_variables(value)), default=0)
        out.append(Container(name, value, depth, limited))
        if name:
            depth_of[name] = depth
    return [c for c in out if c.name] + [c for c in out if not c.name]
