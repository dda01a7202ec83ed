"""Splits, fuses and renames of one stage, applied: every variable in terms of the final loops, the lets and guards this takes.

In: the Splits of a schedule in order, with the variables' symbolic bounds. Out: an `AppliedSplits`: bounds of each loop, values, guards,
and which variables cover more than asked for. Source: the tail strategies are those of Halide (src/ApplySplit.cpp, Schedule.h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Definition, Function, Split, SplitKind, TailStrategy
from ..ir.intrinsics import intrinsic
from ..ir.traverse import substitute
from ..ir.types import INT32


def var(name: str) -> n.Expr:
    """An int32 Variable."""
    return n.Variable(INT32, name)


@dataclass(frozen=True)
class Fused:
    """The range of a variable that was fused into `loop`. `extent` is that of the inner of the two if this is the outer."""

    loop: str
    min: n.Expr
    max: n.Expr
    extent: n.Expr | None = None


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


class AppliedSplits:
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
            lists = {
                TailStrategy.PredicateLoads: self.load_guards,
                TailStrategy.PredicateStores: self.store_guards,
                TailStrategy.RoundUpAndBlend: self.blends,
                TailStrategy.GuardWithIf: self.guards,
                TailStrategy.Predicate: self.guards,
            }
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
        self.let(name, _clamped(value, fused))

    def overshoot(self, v: str, by: tuple[n.Expr, n.Expr] | None) -> None:
        """`v` leaves its range, by (at most 0, at least 0) if that is known: so does the outer of the variables fused into it (`/`; `%`
        stays)."""
        origins = self.origins.get(v, [])
        for name, fused in list(self.fused.items()):
            if fused.extent is None or fused.loop.removeprefix(self.prefix) not in (v, *origins):
                continue
            i, value = next((i, e.args[0]) for i, (k, e) in enumerate(self.lets) if k == name and isinstance(e, n.Call))
            del self.fused[name]
            rows: tuple[n.Expr, n.Expr] | None = None
            if by is not None and fused.loop.removeprefix(self.prefix) not in origins:
                row = n.Max(fused.extent, b.i32(1))
                rows = b.div(by[0], row), b.div(b.add(by[1], b.sub(row, b.i32(1))), row)
                self.fused[name] = wider = Fused(fused.loop, b.add(fused.min, rows[0]), b.add(fused.max, rows[1]), fused.extent)
                value = _clamped(value, wider)
            self.lets[i], self.ranges[name] = (name, value), value  # where it was: it may need lets outside of it
            self.overshoot(name.removeprefix(self.prefix), rows)

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


def _clamped(value: n.Expr, fused: Fused) -> n.Expr:
    """What a fused variable is, within its range."""
    return intrinsic("unsafe_promise_clamped", INT32, value, fused.min, fused.max)
