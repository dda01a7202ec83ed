"""Allocation bounds: give each Realize the box that its body really touches.

IR before: `Realize g` over the symbols `g.x.min_realized`, `g.x.extent_realized`. After: LetStmts around it define them. Where g is
produced right inside its Realize and every stage writes point by point, the box is the region its stages were told to compute. Else it
follows from the accesses in the body: one bottom-up walk, in which boxes travel outwards and lose each let and loop variable on the way.
Source: Halide's src/AllocationBoundsInference.cpp.
"""

from __future__ import annotations

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.boxes import Box, boxes_touched, merge_boxes
from ..ir.conditions import strip_likely
from ..ir.interval import Bounds, Interval
from ..ir.simplify import simplify
from ..ir.traverse import mentions, nodes_of, substitute
from .apply_splits import var
from .bounds_inference import FuncValues
from .environment import Environment
from .extern_stages import is_query_symbol
from .guards import first_iteration
from .loop_nest import StageNest
from .region_overflow import check_box
from .schedule_functions import Nests, head_productions

Boxes = dict[str, Box]


def _merge(into: Boxes, more: Boxes) -> Boxes:
    for name, box in more.items():
        into[name] = merge_boxes(into[name], box) if name in into else box
    return into


class _Elimination:
    """The ends of intervals when one variable ranges over an interval."""

    def __init__(self, name: str, interval: Interval) -> None:
        self.name, self.bounds = name, Bounds({name: interval})
        self.point = None if interval.min is None or interval.min is not interval.max else strip_likely(interval.min)

    def end(self, e: n.Expr | None, upper: bool) -> n.Expr | None:
        """The lower or upper end. What a let stands for is put in as it is: there are many lets between two loops, and loops simplify."""
        if e is None or not mentions(e, self.name):
            return e
        if self.point is not None:
            return substitute({self.name: self.point}, e)
        e = self.bounds.of(simplify(e))[upper]
        return e and simplify(e)


class AllocationBounds:
    """The pass; `boxes` of a statement are those of the realized Funcs it touches, in the symbols in scope around it."""

    def __init__(self, env: Environment, values: FuncValues, nests: Nests) -> None:
        self.env, self.values, self.nests = env, values, nests
        self.exceeding = {nest.function.name for nest in nests.stages if nest.exceeds}
        self.live: set[str] = set()  # Funcs whose box is looked for in what is being visited
        self.bits = 0  # their symbols

    def leaf(self, s: n.Node, scope: dict[str, Interval] | None = None) -> Boxes:
        """Boxes of a statement or expression without structure of its own."""
        return boxes_touched(s, scope or {}, self.values, self.live) if s.symbols & self.bits else {}

    def eliminate(self, boxes: Boxes, name: str, interval: Interval) -> Boxes:
        """The boxes when variable `name` ranges over `interval`."""
        bit = n.symbol_bit(name)
        over: _Elimination | None = None
        for key, box in boxes.items():
            if any(e is not None and e.symbols & bit for i in box.intervals for e in (i.min, i.max)):
                over = over or _Elimination(name, interval)
                boxes[key] = Box([Interval(over.end(i.min, False), over.end(i.max, True)) for i in box.intervals])
        return boxes

    def visit(self, s: n.Stmt) -> tuple[n.Stmt, Boxes]:
        """The statement with its Realizes bounded, and what it touches of the Funcs that are live."""
        if not s.mask & n.Realize.bit and not s.symbols & self.bits:
            return s, {}
        if isinstance(s, n.Block):
            parts = [self.visit(one) for one in s.stmts]
            boxes: Boxes = {}
            for _, found in parts:
                _merge(boxes, found)
            return b.block(one for one, _ in parts), boxes
        if isinstance(s, n.LetStmt):
            head = self.leaf(s.value)
            body, boxes = self.visit(s.body)
            if not is_query_symbol(s.name):  # else what further out is asked under the same name contains it
                boxes = self.eliminate(boxes, s.name, Interval.point(s.value))
            return n.LetStmt(s.name, s.value, body), _merge(boxes, head)
        if isinstance(s, n.For):
            body, boxes = self.visit(s.body)
            last = b.sub(b.add(s.min, s.extent), b.i32(1))
            return n.For(s.name, s.min, s.extent, s.kind, s.partition, body), self.eliminate(boxes, s.name, Interval(s.min, last))
        if isinstance(s, (n.Produce, n.HoistedStorage)):
            body, boxes = self.visit(s.body)
            return type(s)(s.name, body), boxes
        if isinstance(s, n.Realize):
            return self.realize(s)
        if isinstance(s, n.IfThenElse):
            return self.guard(s)
        return s, self.leaf(s)

    def guard(self, s: n.IfThenElse) -> tuple[n.Stmt, Boxes]:
        """Both cases; accesses of a plain guarded statement are limited by the condition."""
        first = first_iteration(s.condition)
        if not s.mask & (n.Realize.bit | n.For.bit | n.LetStmt.bit):
            boxes = self.leaf(s)
            return s, boxes if first is None else self.eliminate(boxes, first[0].name, Interval.point(b.max_(*first)))
        head = self.leaf(n.Evaluate(s.condition))
        then_case, boxes = self.visit(s.then_case)
        if first is not None:
            boxes = self.eliminate(boxes, first[0].name, Interval.point(b.max_(*first)))
        else_case = None
        if s.else_case is not None:
            else_case, more = self.visit(s.else_case)
            _merge(boxes, more)
        return n.IfThenElse(s.condition, then_case, else_case), _merge(boxes, head)

    def _overshoots(self, s: n.Realize) -> bool:
        """Whether more of a Func inside the Realize is computed than is asked for: its excess reads more than is computed."""
        return any(p.name in self.exceeding and p.name != s.name for p in nodes_of(s.body, n.Produce))

    def realize(self, s: n.Realize) -> tuple[n.Stmt, Boxes]:
        """Close the box of one Realize with lets around it."""
        f = self.env[s.name]
        box = None if self._overshoots(s) else _computed_box(s, self.nests.of(f))
        if box is not None:
            body, boxes = self.visit(s.body)
        else:
            live, bits = self.live, self.bits
            self.live, self.bits = live | {s.name}, bits | n.symbol_bit(s.name)
            body, boxes = self.visit(s.body)
            self.live, self.bits = live, bits
            box = boxes.pop(s.name, None)
        lets: list[tuple[str, n.Expr]] = []
        checks: list[n.Stmt] = []
        for d, v in enumerate(f.args):
            interval = box.intervals[d] if box is not None else Interval(b.i32(0), b.i32(0))
            if interval.min is None or interval.max is None:
                raise CompileError(f"Func {f.name} is accessed without a bound in dimension {d} ({v}), so it cannot be allocated; limit "
                                   f"the index with clamp(), or bound({v}, ...) ({f.where})")
            p = f"{s.name}.{v}"
            low, extent = simplify(interval.min), simplify(b.add(b.sub(interval.max, interval.min), b.i32(1)))
            lets += [(p + ".min_realized", low), (p + ".extent_realized", extent)]
            if not _is_pointwise(self.nests.of(f), d):
                checks += check_box(f.name, v, low, simplify(interval.max))
        realized = n.Realize(s.name, s.types, s.memory, s.mins, s.extents, s.condition, body)
        return b.block([*checks, b.let_stmts(lets, realized)]), boxes


def _is_pointwise(stages: list[StageNest], d: int) -> bool:
    """Whether every stage writes where its pure definition does in dimension `d`; what others write is in no region."""
    v = stages[0].function.args[d]
    return all(isinstance(a := nest.definition.args[d], n.Variable) and a.name == v and a.rdom is None for nest in stages)


def _computed_box(s: n.Realize, stages: list[StageNest]) -> Box | None:
    """The region the stages compute, when the production stands right inside the Realize and no stage scatters; None otherwise."""
    if any(one.beyond for nest in stages for one in nest.ways()):
        return None
    if s.name not in head_productions(s.body):
        return None
    intervals = []
    for d, v in enumerate(stages[0].function.args):
        if not _is_pointwise(stages, d):
            return None
        low, high = var(f"{stages[0].prefix}{v}.min"), var(f"{stages[0].prefix}{v}.max")
        for nest in stages[1:]:
            if nest.covers.get(v):  # a rounded-up update writes more than the pure definition
                low, high = b.min_(low, var(f"{nest.prefix}{v}.min")), b.max_(high, var(f"{nest.prefix}{v}.max"))
        intervals.append(Interval(low, high))
    return Box(intervals)


def allocation_bounds(s: n.Stmt, env: Environment, values: FuncValues, nests: Nests) -> n.Stmt:
    """`s` with the box of every Realize defined."""
    return AllocationBounds(env, values, nests).visit(s)[0]
