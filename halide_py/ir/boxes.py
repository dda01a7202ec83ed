"""Boxes: the region of each Func and image that a statement reads or writes, one interval a dimension.

Walks a statement with the intervals of its loop variables and lets, and unites the intervals of the coordinates of every Call
(Halide, Image) and Provide. Conditions of IfThenElse and `if_then_else` are believed: in the branch, a linear condition
limits the variables in it and the linear form it speaks of, and a branch whose condition never holds touches nothing. Conditions of
Select are not. Source: Halide's src/Bounds.cpp (boxes_touched).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from . import nodes as n
from .build import TRUE, as_int, const, is_true, select
from .conditions import conjuncts, limit, shared_choices
from .interning import symbol_bit, symbol_bits
from .interval import Bounds, FuncValues, Interval
from .simplify import simplify
from .simplify.calls import reads_memory
from .traverse import deep_recursion, substitute


@dataclass(eq=False)
class Box:
    """An interval a dimension; `used` is the condition under which the box is touched at all, None for always."""

    intervals: list[Interval] = field(default_factory=list)
    used: n.Expr | None = None

    def __len__(self) -> int:
        return len(self.intervals)

    def __getitem__(self, d: int) -> Interval:
        return self.intervals[d]

    def is_bounded(self) -> bool:
        """Whether every dimension is limited on both sides."""
        return all(i.is_bounded() for i in self.intervals)


def merge_boxes(*boxes: Box) -> Box:
    """The smallest box that holds all of them, at least one; touched if any is. None is changed."""
    if len(boxes) == 1:
        return boxes[0]
    conditions = dict.fromkeys(box.used for box in boxes)
    used: n.Expr | None = None
    if None not in conditions:
        for c in conditions:
            assert c is not None
            used = c if used is None else n.Or(used, c)
        used = None if used is None else simplify(used) if len(conditions) > 1 else used
    return Box([Interval.hull(dims) for dims in zip(*(box.intervals for box in boxes))], used)


def boxes_either(condition: n.Expr, a: Mapping[str, Box], b: Mapping[str, Box]) -> dict[str, Box]:
    """What is touched when `condition`, the same for all, decides between two statements. Neither mapping is changed."""
    out = {}
    for name in {**a, **b}:
        x, y = a.get(name), b.get(name)
        if x is None or y is None:
            box = x if x is not None else b[name]
            decides = condition if x is not None else n.Not(condition)
            out[name] = Box(box.intervals, simplify(decides if box.used is None else n.And(decides, box.used)))
        else:
            used = None if x.used is None and y.used is None else simplify(select(condition, x.used or TRUE, y.used or TRUE))
            out[name] = Box([_either(condition, i, j) for i, j in zip(x.intervals, y.intervals)], used)
    return out


def _either(condition: n.Expr, a: Interval, b: Interval) -> Interval:
    low = None if a.min is None or b.min is None else simplify(select(condition, a.min, b.min))
    return Interval(low, None if a.max is None or b.max is None else simplify(select(condition, a.max, b.max)))


_Names = Collection[str] | None
_NOTHING: FuncValues = {}


def boxes_required(node: n.Node, scope: Mapping[str, Interval], func_values: FuncValues = _NOTHING, names: _Names = None) -> dict[str, Box]:
    """What `node` reads of each Func and image (or of those named, which costs less), while variables range over `scope`."""
    return _boxes(node, scope, func_values, names, reads=True, writes=False)


def boxes_provided(node: n.Node, scope: Mapping[str, Interval], func_values: FuncValues = _NOTHING, names: _Names = None) -> dict[str, Box]:
    """What `node` writes of each Func (or of those named)."""
    return _boxes(node, scope, func_values, names, reads=False, writes=True)


def boxes_touched(node: n.Node, scope: Mapping[str, Interval], func_values: FuncValues = _NOTHING, names: _Names = None) -> dict[str, Box]:
    """What `node` reads or writes of each Func and image (or of those named)."""
    return _boxes(node, scope, func_values, names, reads=True, writes=True)


def _boxes(
    node: n.Node, scope: Mapping[str, Interval], func_values: FuncValues, names: _Names, reads: bool, writes: bool
) -> dict[str, Box]:
    walk = _Walk(scope, func_values, names, reads, writes)
    with deep_recursion():
        if isinstance(node, n.Expr):
            walk.expr(node)
        elif isinstance(node, n.Stmt):
            walk.stmt(node)
        return walk.finish()


class _Dimension:
    """The distinct ends seen in one dimension; united once at the end."""

    __slots__ = ("mins", "maxs", "open_min", "open_max")

    def __init__(self) -> None:
        self.mins: dict[n.Expr, None] = {}
        self.maxs: dict[n.Expr, None] = {}
        self.open_min = self.open_max = False

    def add(self, i: Interval) -> None:
        """Include an interval."""
        if i.min is None:
            self.open_min = True
        else:
            self.mins[i.min] = None
        if i.max is None:
            self.open_max = True
        else:
            self.maxs[i.max] = None

    def interval(self, b: Bounds) -> Interval:
        """The union."""
        return Interval(None if self.open_min else _fold(b, n.Min, self.mins), None if self.open_max else _fold(b, n.Max, self.maxs))


def _fold(b: Bounds, kind: type[n.Min] | type[n.Max], ends: Iterable[n.Expr]) -> n.Expr:
    out: n.Expr | None = None
    for e in ends:
        out = e if out is None else kind(out, e)
    assert out is not None
    return b.simple(out)


_TOUCHING = n.Call.bit | n.Provide.bit


class _Walk:
    def __init__(self, scope: Mapping[str, Interval], func_values: FuncValues, names: _Names, reads: bool, writes: bool) -> None:
        self.bounds = Bounds(scope, func_values)
        self.names = names
        self.symbols = -1 if names is None else symbol_bits(names)  # what mentions none of them is passed by
        self.func_values = func_values
        self.reads, self.writes = reads, writes
        self.lets: dict[str, n.Expr] = {}  # integer lets that vary, as expressions of loop variables: ends of one loop stay correlated
        self.let_symbols = 0
        self.seen: list[set[n.Expr]] = [set()]  # what was visited, last under the innermost condition; under fewer is enough
        self.found: dict[str, list[_Dimension]] = {}
        self.used: dict[str, list[n.Expr] | None] = {}
        self.conditions: list[n.Expr] = []  # of enclosing branches, free of scope variables
        self.reached = True  # False in branches whose conditions never hold

    def finish(self) -> dict[str, Box]:
        """The boxes found."""
        out: dict[str, Box] = {}
        for name, dims in self.found.items():
            conditions = self.used[name]
            used = None
            for c in conditions or ():
                used = c if used is None else n.Or(used, c)
            used = None if used is None else simplify(used)
            out[name] = Box([d.interval(self.bounds) for d in dims], None if used is None or is_true(used) else used)
        return out

    def touch(self, name: str, args: Iterable[n.Expr]) -> None:
        """Include a point of a Func or image."""
        if self.reached and (self.names is None or name in self.names):
            self.include(name, [self.bounds.of(self.expand(a)) for a in args], self.conditions)

    def include(self, name: str, intervals: Sequence[Interval], holding: Sequence[n.Expr]) -> None:
        """Include a box that is touched where all conditions hold."""
        dims = self.found.get(name)
        if dims is None:
            dims = self.found[name] = [_Dimension() for _ in intervals]
            self.used[name] = []
        for d, i in zip(dims, intervals):
            d.add(i)
        conditions = self.used[name]
        if not holding:
            self.used[name] = None
        elif conditions is not None:
            here = holding[0]
            for c in holding[1:]:
                here = n.And(here, c)
            if here not in conditions:
                conditions.append(here)

    # ---- expressions

    def expr(self, e: n.Expr) -> None:
        """Visit the calls in `e`."""
        if not e.mask & n.Call.bit or not e.symbols & self.symbols or not self.reads or any(e in s for s in self.seen):
            return
        self.seen[-1].add(e)
        if type(e) is n.Let:
            self.expr(e.value)
            self.let(e.name, e.value)
            self.expr(e.body)
            return
        if type(e) is n.Call:
            if e.name == "if_then_else" and e.call_type is n.CallType.PureIntrinsic:
                self.choice(e)
                return
            if e.call_type is n.CallType.Halide or e.call_type is n.CallType.Image:
                self.touch(e.name, e.args)
        for k in e.children():
            self.expr(k)

    def choice(self, e: n.Call) -> None:
        """if_then_else: each value is read only where its condition holds and none before does. Choices that both of two values come from
        are made in any case; visited here, and not under either condition, a shared tree of them is walked once."""
        for c in shared_choices(e):
            self.expr(c)
        entered: list[_Branch] = []
        for i in range(0, len(e.args) - 1, 2):
            self.expr(e.args[i])
            condition = self.bounds.simple(self.expand(e.args[i]))
            with _Branch(self, condition, True):
                self.expr(e.args[i + 1])
            entered.append(_Branch(self, condition, False))
            entered[-1].__enter__()
        if len(e.args) % 2:
            self.expr(e.args[-1])
        for branch in reversed(entered):
            branch.__exit__(None, None, None)

    # ---- statements

    def let(self, name: str, value: n.Expr) -> None:
        """A let: its name ranges over what its value does; the result must not mention it."""
        value = self.expand(value)
        before = self.lets.pop(name, None)
        t = value.type
        if t.overflow_is_undefined() and t.is_scalar() and self.bounds.varies(value) and not reads_memory(value):
            # Written out where it is used, as it is: simplified alone it would no longer cancel against the other end. Nobody asks for its
            # interval then.
            self.let_symbols |= symbol_bit(name)
            self.lets[name] = value
            if before is not value and (before is not None or name in self.bounds.scope):
                self.seen = [set()]
            return
        if before is not None:
            self.seen = [set()]
        self.bind(name, self.bounds.of(value))

    def expand(self, e: n.Expr) -> n.Expr:
        """`e` with the lets that vary written out: x - x.min is exact where the interval of x minus that of x.min is not."""
        return substitute(self.lets, e, self.let_symbols) if e.symbols & self.let_symbols else e

    def bind(self, name: str, interval: Interval) -> None:
        """Enter the scope of a name."""
        if self.bounds.bind(name, interval):
            self.seen = [set()]

    def stmt(self, s: n.Stmt) -> None:
        """Visit everything in `s`."""
        while type(s) is n.LetStmt and s.symbols & self.symbols:
            self.expr(s.value)
            self.let(s.name, s.value)
            s = s.body
        if not s.mask & _TOUCHING or not s.symbols & self.symbols:
            return
        if type(s) is n.For:
            self.expr(s.min)
            self.expr(s.extent)
            b = self.bounds
            first, extent = self.expand(s.min), self.expand(s.extent)
            last = n.Sub(n.Add(first, extent), const(s.extent.type, 1))
            low, high = b.of(first), b.of(last)
            b.ends = {k: v for k, v in b.ends.items() if k != s.name}
            if b.varies(first) or b.varies(last):
                b.ends[s.name] = first, b.simple(last)
            self.lets.pop(s.name, None)
            self.bind(s.name, Interval(low.min, high.max))
            self.stmt(s.body)
        elif type(s) is n.IfThenElse:
            self.expr(s.condition)
            condition = self.bounds.simple(self.expand(s.condition))
            if s.else_case is not None and not self.bounds.varies(condition) and not reads_memory(condition):
                self.decided(condition, s.then_case, s.else_case)
                return
            with _Branch(self, condition, True):
                self.stmt(s.then_case)
            if s.else_case is not None:
                with _Branch(self, condition, False):
                    self.stmt(s.else_case)
        elif type(s) is n.Provide:
            self.provide(s)
        else:
            for k in s.children():
                if isinstance(k, n.Stmt):
                    self.stmt(k)
                else:
                    self.expr(k)

    def decided(self, condition: n.Expr, then_case: n.Stmt, else_case: n.Stmt) -> None:
        """Two statements of which one runs, whatever the variables in scope are: each counts only where it runs."""
        apart = []
        for s, holds in ((then_case, True), (else_case, False)):
            outer = self.found, self.used, self.conditions
            self.found, self.used = {}, {}
            seen, self.seen = self.seen, [set()]
            with _Branch(self, condition, holds):
                self.conditions = []
                self.stmt(s)
                apart.append(self.finish())
            self.found, self.used, self.conditions = outer
            self.seen = seen
        for name, box in boxes_either(condition, *apart).items():
            self.include(name, box.intervals, self.conditions if box.used is None else [*self.conditions, box.used])

    def provide(self, s: n.Provide) -> None:
        """A Provide; its predicate is for what it writes."""
        self.expr(s.predicate)
        for e in (*s.values, *s.args):
            self.expr(e)
        if self.writes:
            with _Branch(self, self.bounds.simple(self.expand(s.predicate)), True):
                self.touch(s.name, s.args)


class _Branch:
    """What is visited inside is visited under a simplified condition."""

    def __init__(self, walk: _Walk, condition: n.Expr, holds: bool) -> None:
        self.walk, self.condition, self.holds = walk, condition, holds
        self.active = not is_true(condition) or not holds

    def __enter__(self) -> None:
        walk = self.walk
        if not self.active:
            return
        self.saved = walk.bounds, walk.seen, walk.conditions, walk.reached
        outer = walk.bounds
        walk.bounds = inner = outer.copy()
        walk.seen = [*walk.seen, set()]
        walk.conditions = list(walk.conditions)
        for c in conjuncts(self.condition, self.holds):
            walk.reached = limit(inner, c) and walk.reached
            if not outer.varies(c) and not reads_memory(c):
                walk.conditions.append(c)

    def __exit__(self, *_: object) -> None:
        if self.active:
            self.walk.bounds, self.walk.seen, self.walk.conditions, self.walk.reached = self.saved


def constant_extent(i: Interval) -> int | None:
    """The number of values in an interval, where that is a constant."""
    if i.min is None or i.max is None:
        return None
    size = as_int(simplify(n.Sub(i.max, i.min)))
    return None if size is None else max(size + 1, 0)


__all__ = ["Box", "boxes_provided", "boxes_required", "boxes_touched", "constant_extent", "merge_boxes"]
