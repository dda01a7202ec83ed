"""Bounds inference: define the region each stage must compute, at each loop level, from what its consumers read.

IR before: loops over the free symbols `f.s0.x.min` .. `f.s0.x.max`. After: LetStmts that define them, at root and inside each
loop that holds productions. What one stage reads of another is found once, as a box in the reader's own symbols; every
loop level only re-defines the symbols. Limits: regions are boxes. Source: Ragan-Kelley et al., PLDI 2013, section 4.2;
Halide's src/BoundsInference.cpp.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.boxes import Box, boxes_either, boxes_required, merge_boxes
from ..ir.function import Bound, Definition, Function
from ..ir.interval import Interval, bounds_of_expr, type_interval
from ..ir.simplify import simplify
from ..ir.traverse import Rec, nodes_of, rewrite, substitute
from ..ir.types import INT32
from .apply_splits import var
from .environment import Environment
from .extern_stages import extern_query, required_by_extern
from .loop_nest import StageNest
from .schedule_functions import Nests, peel, rewrap
from .trusted_values import trusted_values

FuncValues = dict[tuple[str, int], Interval]


def function_values(env: Environment) -> FuncValues:
    """The interval of each value of each Func over all coordinates, where it is known without knowing the region."""
    out: FuncValues = {}
    for name, f in env.items():
        assert f.pure is not None
        scope = {a: Interval.everything() for a in f.args}
        intervals = [bounds_of_expr(value, scope, out) for value in f.pure.values]
        for u in f.updates:
            intervals = _updated(f, u, intervals, out)
        out.update({(name, i): interval for i, interval in enumerate(intervals)})
    return out


def _updated(f: Function, u: Definition, before: list[Interval], known: FuncValues) -> list[Interval]:
    """The intervals of the values after an update, which may read what it wrote itself.

    Induction: intervals that hold before and that one iteration stays inside always hold (the index of an argmax stays in its RDom). Values
    that one iteration takes further, as a sum does, may be anything of their type.
    """
    scope = {a: Interval.everything() for a in f.args}
    for v in u.schedule.rvars:
        scope[v.name] = Interval(v.min, b.sub(b.add(v.min, v.extent), b.i32(1)))

    def step(own: list[Interval]) -> list[Interval]:
        values = {**known, **{(f.name, i): interval for i, interval in enumerate(own)}}
        return [o.union(bounds_of_expr(e, scope, values)) for o, e in zip(own, u.values)]

    once = step(before)
    if (twice := step(once)) == once:
        return once
    # What grew may be anything; the rest has to hold with that, too.
    grown = [type_interval(t) if p != q else p for p, q, t in zip(once, twice, f.types)]
    return grown if step(grown) == grown else [type_interval(t) for t in f.types]


@dataclass
class Stage:
    """A stage with the boxes its consumers read of it: (consumer, consumer's stage) -> box in the consumer's symbols."""

    nest: StageNest
    required: dict[tuple[str, int], Box] = field(default_factory=dict)
    output_box: Box | None = None

    @property
    def name(self) -> str:
        """The Func's name."""
        return self.nest.function.name


def _reads(nest: StageNest, values: FuncValues) -> dict[str, Box]:
    """What a stage reads when its variables range over its region; which of it depends on the specialization that runs."""
    boxes = _reads_alone(nest, values) if nest.failure is None else {}
    for s in reversed(nest.specializations):
        boxes = boxes_either(s.condition, _reads_alone(s.nest, values) if s.failure is None else {}, boxes)
    return boxes


def _reads_alone(nest: StageNest, values: FuncValues) -> dict[str, Box]:
    if nest.function.extern is not None:
        return required_by_extern(nest.function)
    scope = {}
    for v in nest.base_variables:
        p = nest.prefix + v
        scope[v] = Interval(var(p + ".min"), var(p + ".max"))
    d = nest.definition
    return boxes_required(b.if_(d.predicate, n.Provide(nest.function.name, d.values, d.args, b.TRUE)), scope, values)


def _check_bounded(producer: Function, consumer: StageNest, box: Box) -> None:
    for d, interval in enumerate(box.intervals):
        if interval.is_bounded():
            continue
        which = "pure definition" if consumer.index == 0 else f"update {consumer.index - 1}"
        dim = producer.args[d] if d < len(producer.args) else str(d)
        raise CompileError(
            f"The {which} of Func {consumer.function.name} accesses dimension {d} ({dim}) of Func {producer.name} with an index that has "
            f"no bound; limit it with clamp() (or unsafe_promise_clamped()) at {consumer.definition.where or 'its definition'}")


def _wanted(stages: list[Stage], reads: list[dict[str, Box]], outputs: Iterable[str]) -> set[str]:
    """The Funcs that outputs read, directly or not: all but those whose every read is under conditions that never hold."""
    found: set[str] = set()
    work = list(outputs)
    while work:
        name = work.pop()
        if name not in found:
            found.add(name)
            work += (read for s, boxes in zip(stages, reads) if s.name == name for read in boxes)
    return found


def collect_stages(nests: Nests, outputs: dict[str, Function], values: FuncValues) -> list[Stage]:
    """All stages in order, each with what is required of it."""
    stages = [Stage(nest) for nest in nests.stages]
    position: dict[str, list[Stage]] = {}
    for s in stages:
        position.setdefault(s.name, []).append(s)
    reads = [_reads(s.nest, values) for s in stages]
    wanted = _wanted(stages, reads, outputs)
    for consumer, boxes in zip(stages, reads):
        nest = consumer.nest
        loops_over_nothing = consumer.name not in wanted and any(v in nest.base_variables for v in nest.function.args)
        for name, box in () if loops_over_nothing else boxes.items():
            for producer in position.get(name, ()):
                if producer.name == consumer.name and producer.nest.index >= nest.index:
                    continue  # a stage reads what its earlier stages, or its own earlier iterations, left
                _check_bounded(producer.nest.function, nest, box)
                producer.required[consumer.name, nest.index] = box
        if consumer.name in outputs:
            f = nest.function
            buffer = f.buffer_name(0)
            param = f.output_params[0] if f.output_params else None
            intervals = []
            for d in range(len(f.args)):
                low = n.Variable(INT32, f"{buffer}.min.{d}", param)
                extent = n.Variable(INT32, f"{buffer}.extent.{d}", param)
                intervals.append(Interval(low, b.sub(b.add(low, extent), b.i32(1))))
            consumer.output_box = Box(intervals)
    return stages


def _aligned(bound: Bound, low: n.Expr, high: n.Expr, here: bool, relied_on: bool) -> tuple[n.Expr, n.Expr]:
    """low..high under the promises and alignments of `bound`; `here`: of one realization, else of all those that loops inside make. What
    these compute beyond low..high asks for nothing further out, unless what it reads is relied upon."""
    if bound.extent is not None:
        start = bound.min if bound.min is not None else low
        more = b.sub(bound.extent, b.i32(1))
        if here or bound.min is not None:
            return start, b.add(start, more)
        return start, b.add(high, more) if relied_on else high  # the last begins no later than at `high`
    if bound.modulus is not None:
        one = b.i32(1)
        if bound.remainder is None:  # align_extent: only the end moves
            extent = b.add(b.sub(high, low), one)
            return low, b.sub(b.add(low, b.mul(b.div(b.sub(b.add(extent, bound.modulus), one), bound.modulus), bound.modulus)), one)
        low = b.add(b.mul(b.div(b.sub(low, bound.remainder), bound.modulus), bound.modulus), bound.remainder)
        blocks = b.div(b.add(b.sub(high, low), bound.modulus), bound.modulus)
        return low, b.sub(b.add(low, b.mul(blocks, bound.modulus)), one)
    return low, high


class BoundsInference:
    """The pass over one scheduled statement."""

    def __init__(self, nests: Nests, stages: list[Stage], trusted: set[str]) -> None:
        self.nests, self.stages, self.trusted = nests, stages, trusted
        self.nest_of = {(s.name, s.nest.index): s.nest for s in stages}
        self.productions: dict[n.Stmt, frozenset[str]] = {}
        self.queries = itertools.count()

    def produced_in(self, s: n.Stmt) -> frozenset[str]:
        """The Funcs produced inside `s`."""
        if not s.mask & n.Produce.bit:
            return frozenset()
        if s not in self.productions:
            self.productions[s] = frozenset(p.name for p in nodes_of(s, n.Produce))
        return self.productions[s]

    def box_of(self, stage: Stage, producing: Sequence[StageNest], inner: frozenset[str], at_root: bool) -> Box | None:
        """What is required of `stage` by the consumers that run here: the stages `producing`, and those produced `inner`."""
        boxes = self.boxes_of(stage, producing, inner, at_root)
        if not boxes:
            return None
        f = stage.nest.function
        update = next((s for s in self.stages if s.name == f.name and (f.name, s.nest.index) in boxes), None)
        if update is None or len(boxes) == 2 or f.extern is not None:
            return merge_boxes(*boxes.values())
        # An update that reads what it replaces needs all that is required of itself: with hundreds of them nothing is united twice.
        within, own = self.boxes_of(update, producing, inner, at_root).values(), boxes[f.name, update.nest.index]
        ends = [Interval(*(var(f"{update.nest.prefix}{v}.{end}") for end in ("min", "max"))) for v in f.args]
        free = [own[d] == ends[d] and all(bound.var != v for bound in f.schedule.bounds) for d, v in enumerate(f.args)]
        known = [{box[d] for box in within} if free[d] else set() for d in range(len(f.args))]
        parts = [Box([own[d] if i in known[d] else i for d, i in enumerate(box.intervals)], box.used) for box in boxes.values()]
        return merge_boxes(*{(*part.intervals, part.used): part for part in parts}.values())

    def boxes_of(
        self, stage: Stage, producing: Sequence[StageNest], inner: frozenset[str], at_root: bool
    ) -> dict[tuple[str, int], Box]:
        """What each of them requires; under a name that no Func has what an output is asked for."""
        boxes = {("", 0): stage.output_box} if at_root and stage.output_box is not None else {}
        for (consumer, index), required in stage.required.items():
            here = any(nest.function.name == consumer and nest.index == index for nest in producing)
            if here or consumer in inner:
                boxes[consumer, index] = required if here or stage.name in self.trusted else self.asked_by(consumer, index, required)
        return boxes

    def relies(self, stage: Stage) -> bool:
        """Whether a stage reads a Func whose every value is relied upon."""
        return any(s.name in self.trusted for s in self.stages if (stage.name, stage.nest.index) in s.required)

    def asked_by(self, consumer: str, index: int, required: Box) -> Box:
        """What is read for the region asked of a consumer, without what its loops compute beyond it."""
        nest = self.nest_of[consumer, index]
        asked = {
            f"{nest.prefix}{v}.{end}": var(f"{nest.prefix}{v}.{end}_required")
            for v in nest.covers
            if v in nest.base_variables
            for end in ("min", "max")
        }
        if not asked:
            return required
        return Box([Interval(i.min and substitute(asked, i.min), i.max and substitute(asked, i.max)) for i in required.intervals],
                   required.used and substitute(asked, required.used))

    def define(self, stage: Stage, body: n.Stmt, producing: Sequence[StageNest], inner: frozenset[str], at_root: bool) -> n.Stmt:
        """`body` with the region of `stage` defined around it."""
        nest, f = stage.nest, stage.nest.function
        box = self.box_of(stage, producing, inner, at_root)
        if box is None:
            if stage.required:
                return body
            box = Box([Interval(b.i32(0), b.i32(-1)) for _ in f.args])  # nobody wants it
        lets: list[tuple[str, n.Expr]] = []
        checks: list[n.Stmt] = []
        for rv in nest.definition.schedule.rvars:
            p = nest.prefix + rv.name
            lets += [(p + ".min", rv.min), (p + ".max", b.sub(b.add(rv.min, rv.extent), b.i32(1)))]
        for d, v in enumerate(f.args):
            if v not in nest.base_variables:
                continue
            interval = box.intervals[d]
            assert interval.min is not None and interval.max is not None
            need_low, need_high = simplify(interval.min), simplify(interval.max)
            low, high = need_low, need_high
            for bound in f.schedule.bounds:
                if bound.var == v:
                    here = _is_produced_here(body, f.name)
                    low, high = _aligned(bound, low, high, here, self.relies(stage))
                    if here and bound.extent is not None and nest.index == 0:
                        checks.append(_bound_check(f, v, (low, high), (need_low, need_high)))
            suffix = "_required" if nest.covers.get(v) else ""
            lets += [(f"{nest.prefix}{v}.min{suffix}", low), (f"{nest.prefix}{v}.max{suffix}", high)]
        for v in nest.covers:
            if v in nest.base_variables:
                low, high = nest.covered(v)
                lets += [(f"{nest.prefix}{v}.min", low), (f"{nest.prefix}{v}.max", high)]
        if f.extern is not None:
            body = extern_query(f, nest.definition, body, next(self.queries))
        return b.let_stmts(lets, b.block([*checks, body]))

    def infer(self, body: n.Stmt, producing: Sequence[StageNest], at_root: bool) -> n.Stmt:
        """`body` with the regions of everything produced in it defined."""
        inner = self.produced_in(body)
        for stage in self.stages:
            if stage.name in inner:
                body = self.define(stage, body, producing, inner, at_root)
        return body

    def loop(self, op: n.For, rec: Rec) -> n.Stmt:
        """A loop of some nest: regions inside it, and the part of its own stage that one iteration covers."""
        if not op.body.mask & n.Produce.bit:
            return op
        shared = self.nests.shared.get(op.name)
        members = shared.members if shared is not None else (self.nests.by_loop[op.name],)
        around, body = peel(op.body, ())
        produced = self.produced_in(body)
        inside = rec(body)
        if inside is not body:
            self.productions[inside] = produced
        body = self.infer(inside, [nest for nest, _ in members], at_root=False)
        lets: list[tuple[str, n.Expr]] = [] if shared is None else shared.lets()
        for nest, depth in members:
            if nest.function.extern is not None:
                body = extern_query(nest.function, nest.definition, body, next(self.queries))
            lets += nest.region_lets(depth, any_way=shared is not None)
        return n.For(op.name, op.min, op.extent, op.kind, op.partition, rewrap(around, b.let_stmts(lets, body)))


def _is_produced_here(s: n.Stmt, name: str) -> bool:
    """Whether the production of a Func is in a statement, but in none of its loops."""
    if isinstance(s, n.Produce) and s.name == name:
        return True
    return bool(s.mask & n.Produce.bit) and not isinstance(s, n.For) and any(
        isinstance(one, n.Stmt) and _is_produced_here(one, name) for one in s.children())


def _bound_check(f: Function, v: str, bound: tuple[n.Expr, n.Expr], need: tuple[n.Expr, n.Expr]) -> n.Stmt:
    """The region promised by bound() must cover the region required."""
    message = n.Call(INT32, "halide_error_explicit_bounds_too_small", (
        b.string(v), b.string(f.name), *bound, *need), n.CallType.Extern)
    return n.Assert(b.and_(b.le(bound[0], need[0]), b.le(need[1], bound[1])), message)


def bounds_inference(s: n.Stmt, env: Environment, nests: Nests, outputs: dict[str, Function], values: FuncValues) -> n.Stmt:
    """`s` with every region symbol defined."""
    stages = collect_stages(nests, outputs, values)
    exceed = any(nest.exceeds for nest in nests.stages)
    pass_ = BoundsInference(nests, stages, trusted_values(env, values) if exceed else set())
    produced = pass_.produced_in(s)
    body = rewrite(s, {n.For: pass_.loop})
    pass_.productions[body] = produced
    return pass_.infer(body, (), at_root=True)
