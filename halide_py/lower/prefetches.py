"""Prefetches: in a loop that asks for it, hint at the memory that a later iteration will read.

IR before: `for y { out(x, y) = g(x, y) .. }` of a stage scheduled `prefetch(g, y, y, 2)`. After: at the head of the body, for each cache
line of the region of g that the body reads at y + 2, `prefetch(g(x, y + 2))`. The region is kept within what is there of g as the strategy
says: not hinted at all where it leaves it (GuardWithIf), clamped to it (Clamp), or left as it is, since prefetch instructions do not fault
(NonFaulting). No effect on values. Behaviour: Halide's Prefetch.cpp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..errors import CompileError, warn
from ..ir import build as b
from ..ir import nodes as n
from ..ir.boxes import boxes_required
from ..ir.function import Prefetch, PrefetchBoundStrategy
from ..ir.interval import Interval
from ..ir.module import LoweredArgument
from ..ir.simplify import simplify
from ..ir.traverse import Rec, nodes_of, rewrite, substitute
from .bounds_inference import FuncValues
from .buffers import field
from .environment import Environment
from .loop_nest import StageNest
from .schedule_functions import Nests

LINE = 64  # bytes

Ends = tuple[n.Expr, n.Expr]


class _Prefetcher:
    def __init__(self, env: Environment, nests: Nests, args: Sequence[LoweredArgument], values: FuncValues) -> None:
        self.env, self.values = env, values
        self.images = {a.name: a for a in args if a.is_buffer()}
        self.realized: dict[str, n.Realize] = {}
        self.wanted: dict[str, list[tuple[StageNest, Prefetch]]] = {}
        for stage in nests.stages:
            for nest in stage.ways():
                for p in nest.definition.schedule.prefetches:
                    self.wanted.setdefault(nest.loop_prefix + p.at, []).append((nest, p))

    def realize(self, r: n.Realize, rec: Rec) -> n.Stmt:
        self.realized[r.name] = r
        new: n.Stmt = r.map_children(rec)
        del self.realized[r.name]
        return new

    def loop(self, op: n.For, rec: Rec) -> n.Stmt:
        body = rec(op.body)
        for nest, p in reversed(self.wanted.get(op.name, ())):
            if op.kind is n.ForType.Vectorized:
                raise CompileError(f"Func {nest.function.name} is scheduled prefetch({p.what}, {p.at}, ...), but loop {p.at} is "
                                   f"vectorized; prefetch in a loop outside of it ({nest.function.site('prefetch', nest.index)})")
            hint = self.hint(op, nest, p)
            body = body if hint is None else b.block([hint, body])
        return op if body is op.body else n.For(op.name, op.min, op.extent, op.kind, op.partition, body)

    def hint(self, op: n.For, nest: StageNest, p: Prefetch) -> n.Stmt | None:
        """The loops of prefetches for the head of the body; None where there is nothing to read."""
        order = [loop.name.removeprefix(nest.loop_prefix) for loop in nest.loops]
        if order.index(p.source) > order.index(p.at):
            raise CompileError(f"Func {nest.function.name} is scheduled prefetch({p.what}, {p.at}, {p.source}, ...), but {p.source} is no "
                               f"loop around {p.at}; swap the two, or take one of {', '.join(order[1:order.index(p.at) + 1])} "
                               f"({nest.function.site('prefetch', nest.index)})")
        box = boxes_required(op.body, {}, self.values).get(p.what)
        bounds = self.bounds(p.what)
        if box is None or bounds is None or any(i.min is None or i.max is None for i in box.intervals):
            warn(f"prefetch({p.what}, {p.at}, {p.source}) of {nest.function.name} has no effect: the loop reads nothing of it that is "
                 "stored outside")
            return None
        source = nest.loop_prefix + p.source
        later = {source: b.add(n.Variable(op.min.type, source), p.offset)}
        region = [self.moved(i, later) for i in box.intervals]
        if p.strategy is PrefetchBoundStrategy.Clamp:
            region = [
                (b.max_(b.min_(low, high), first), b.max_(b.min_(last, high), first)) for (low, last), (first, high) in zip(region, bounds)
            ]
        loops = self.loops(p, f"{op.name}.{p.what}.prefetch", region)
        if p.strategy is PrefetchBoundStrategy.GuardWithIf:
            for (low, last), (first, high) in zip(region, bounds):
                loops = n.IfThenElse(b.and_(n.LE(first, low), n.LE(last, high)), loops)
        return loops

    @staticmethod
    def moved(i: Interval, later: Mapping[str, n.Expr]) -> Ends:
        assert i.min is not None and i.max is not None
        return simplify(substitute(later, i.min)), simplify(substitute(later, i.max))

    def bounds(self, name: str) -> list[Ends] | None:
        """The region of a Func or image that there is."""
        one = b.i32(1)
        if name in self.realized:
            r = self.realized[name]
            return [(low, b.sub(b.add(low, extent), one)) for low, extent in zip(r.mins, r.extents)]
        if name in self.images:
            a = self.images[name]
            fields = [(field(name, "min", d, a.param), field(name, "extent", d, a.param)) for d in range(a.dimensions)]
            return [(low, b.sub(b.add(low, extent), one)) for low, extent in fields]
        return None

    def loops(self, p: Prefetch, name: str, region: list[Ends]) -> n.Stmt:
        """One prefetch for each cache line, along the dimension that is densest in memory."""
        f = self.env.get(p.what)
        dense = 0 if f is None else f.args.index(f.schedule.storage_dims[0].var) if f.schedule.storage_dims else 0
        types = f.types if f is not None else (self.images[p.what].type,)
        step = max(LINE // types[0].bytes(), 1)
        at: list[n.Expr] = [b.add(n.Variable(low.type, f"{name}.{d}"), b.i32(0)) for d, (low, _) in enumerate(region)]
        if region:
            at[dense] = b.add(region[dense][0], b.mul(at[dense], b.i32(step)))
        s = b.block(
            n.Evaluate(n.Call(b.i32(0).type, "prefetch", (self.element(p.what, tuple(at), i),), n.CallType.Intrinsic))
            for i in range(len(types))
        )
        for d, (low, last) in enumerate(region):
            extent = b.add(b.sub(last, low), b.i32(1))
            if d == dense:
                low, extent = b.i32(0), b.div(b.add(extent, b.i32(step - 1)), b.i32(step))
            s = n.For(f"{name}.{d}", low, extent, n.ForType.Serial, n.Partition.Never, s)
        return s

    def element(self, name: str, at: tuple[n.Expr, ...], index: int) -> n.Expr:
        f = self.env.get(name)
        if f is not None:
            return n.Call(f.types[index], name, at, n.CallType.Halide, f, index)
        a = self.images[name]
        return n.Call(a.type, name, at, n.CallType.Image, None, 0, a.param)


def add_prefetches(stmt: n.Stmt, env: Environment, nests: Nests, args: Sequence[LoweredArgument], values: FuncValues) -> n.Stmt:
    """`stmt` with all prefetches that stages ask for. Names must be bound once."""
    prefetcher = _Prefetcher(env, nests, args, values)
    if not prefetcher.wanted:
        return stmt
    met = {loop.name for loop in nodes_of(stmt, n.For)}
    for name, asked in prefetcher.wanted.items():
        if name not in met:
            nest, p = asked[0]
            warn(f"prefetch({p.what}, {p.at}, {p.source}) of {nest.function.name} has no effect: loop {p.at} has one iteration")
    return rewrite(stmt, {n.Realize: prefetcher.realize, n.For: prefetcher.loop})
