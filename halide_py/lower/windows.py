"""The window of a Func that moves with a loop: which dimension moves, what is new in each iteration, and how long it takes to fill."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ..ir import build as b
from ..ir import nodes as n
from ..ir.conditions import strip_likely
from ..ir.function import Function
from ..ir.simplify import constant_bound, prove, simplify
from ..ir.traverse import Rec, free_variables, mentions, nodes_of, rewrite, substitute
from .apply_splits import var
from .movement import latest, monotonic, unclamped


@dataclass(eq=False)
class _Let:
    """A let at its place: names are bound again further in, so a value means what it does in the scope around it."""

    value: n.Expr
    around: Scope
    held: n.Expr | None  # what it is at least, of the loop's own stages, which do not run before its first iteration
    expanded: dict[bool, n.Expr] = field(default_factory=dict)

    def expand(self, kept: bool) -> n.Expr:
        """The value in terms of loops."""
        if kept not in self.expanded:
            e = self.around.expand(self.value, kept)
            self.expanded[kept] = simplify(b.max_(e, self.held)) if kept and self.held is not None else e
        return self.expanded[kept]


@dataclass(frozen=True)
class Scope:
    """What is known at a place in the body of the loop that is slid along."""

    lets: dict[str, _Let] = field(default_factory=dict)  # around, down to the loop
    inner: frozenset[str] = frozenset()  # loops in between
    steady: bool = True  # whether a guard that holds has held in all iterations before
    head: bool = True  # whether all of the loop's body is in here
    guards: tuple[n.Expr, ...] = ()  # those around all of it that may end it early
    late: bool = False  # whether others may, too

    def let(self, name: str, value: n.Expr, held: n.Expr | None = None) -> Scope:
        """The scope inside a let, `held` back at a value or not."""
        return replace(self, lets={**self.lets, name: _Let(value, self, held)})

    def expand(self, e: n.Expr, kept: bool = False) -> n.Expr:
        """`e` in terms of loops, and of lets further out; with `kept` no region of the loop's own stages begins before its first
        iteration."""
        inside = {k: self.lets[k].expand(kept) for k in free_variables(e) if k in self.lets}
        return simplify(substitute(inside, e)) if inside else e


_PURE = (n.CallType.PureIntrinsic, n.CallType.PureExtern)


def _steady(e: n.Expr) -> n.Expr:
    """`e` in the steady state of its loops: `min(likely(a), b)` is `a`."""

    def extremum(m: n.Min | n.Max, rec: Rec) -> n.Expr:
        for side in (m.a, m.b):
            if b.is_likely(side):
                return rec(side)  # type: ignore[no-any-return]
        return m.map_children(rec)  # type: ignore[no-any-return]

    def choice(s: n.Select, rec: Rec) -> n.Expr:
        return rec(s.true_value) if b.is_likely(s.condition) else s.map_children(rec)  # type: ignore[no-any-return]

    def call(c: n.Call, rec: Rec) -> n.Expr:
        return rec(c.args[0]) if b.is_likely(c) else c.map_children(rec)  # type: ignore[no-any-return]

    return simplify(rewrite(e, {n.Min: extremum, n.Max: extremum, n.Select: choice, n.Call: call}))


@dataclass(frozen=True)
class Window:
    """The region of a Func in the one dimension `v` that moves with loop variable `x`. New elements come in at the end `lead`, `trail` is
    the other one; `sign` says whether they rise or fall. `kept` is `trail` where no reader runs before its first iteration."""

    v: str
    x: str
    sign: int
    lead: n.Expr
    trail: n.Expr
    kept: n.Expr
    same_lead: bool  # whether `lead` does not depend on where readers start

    def _at(self, e: n.Expr, place: n.Expr) -> n.Expr:
        return simplify(substitute({self.x: place}, e))

    def _reaches(self, a: n.Expr, c: n.Expr) -> bool:
        """Whether `a` is certainly at `c` or behind it."""
        return prove(b.le(a, c) if self.sign > 0 else b.le(c, a))

    def _further(self, a: n.Expr, c: n.Expr) -> n.Expr:
        return b.max_(a, c) if self.sign > 0 else b.min_(a, c)

    @property
    def fresh(self) -> n.Expr:
        """The first element that the iteration before has not got."""
        return self._at(b.add(self.lead, b.i32(self.sign)), b.sub(var(self.x), b.i32(1)))

    def overlaps(self) -> bool:
        """Whether iterations may have elements in common, in the steady state."""
        return not self._reaches(_steady(self.fresh), _steady(self.trail))

    def distance(self, first: n.Expr) -> int:
        """How many iterations before `first` the window begins to fill, if each only adds what is new; 0 where that is not known."""
        lead = strip_likely(self.lead)
        for trail in (self.kept, unclamped(self.kept, self.x)) if self.same_lead and mentions(self.kept, self.x) else ():
            limit = b.mul(b.sub(self._at(trail, first), b.i32(self.sign)), b.i32(self.sign))
            before = latest(lead, self.x, simplify(limit), self.sign)
            most = None if before is None else constant_bound(b.sub(b.sub(first, before), b.i32(1)), True)
            if most is not None:
                return max(most, 0)
        return 0

    def start(self, first: n.Expr, distance: int) -> n.Expr:
        """Where the region starts in a loop that begins so many iterations before `first`, the first one that needs the window."""
        fresh, known = self.fresh, self._at(self.kept, first)
        ahead = strip_likely(fresh if self._reaches(_steady(self.trail), _steady(fresh)) else self._further(fresh, self.trail))
        begin = simplify(b.sub(first, b.i32(distance)))
        if self._reaches(self._at(strip_likely(fresh), begin), known):
            return self._further(b.likely(ahead), known)
        if not distance:
            trail = strip_likely(self.trail)
            return n.Select(b.likely(n.LT(first, var(self.x))), ahead, trail if self._at(trail, first) is known else known)
        moved = self._at(self.kept, b.add(var(self.x), b.i32(distance)))
        return n.Select(b.likely(n.LT(begin, var(self.x))), self._further(ahead, known), moved)


def _finishes_what_it_writes(f: Function, v: str, asked: list[n.Expr], scope: Scope) -> bool:
    """Whether all stages of `f` write the same elements along dimension `v`, those that are asked of the last, or each of them the same
    ones in all iterations of the loops in between: no iteration leaves values unfinished that another one has finished."""
    ends = [(f"{f.name}.s{k}.{v}.min", f"{f.name}.s{k}.{v}.max") for k in range(len(f.stages()))]
    written = [[scope.expand(var(name)) for name in pair] for pair in ends if pair[0] in scope.lets]
    if not any(mentions(e, loop) for pair in written for e in pair for loop in scope.inner):
        return True
    return all(x is y for pair in written for x, y in zip(pair, asked))


def window(f: Function, dims: list[str], x: str, scope: Scope) -> Window | None:
    """How the region of `f`, produced in `scope`, moves with loop `x` in one of the dimensions `dims`; None where it cannot slide."""
    ends = {}
    for v in f.args:  # as asked of the last stage that has it: regions of earlier ones may follow from what later ones overshoot
        prefix = next((p for k in range(len(f.updates), -1, -1) if (p := f"{f.name}.s{k}.{v}.") + "min" in scope.lets), None)
        if prefix is None:
            return None
        ends[v] = [var(p + "_required" if p + "_required" in scope.lets else p) for p in (prefix + "min", prefix + "max")]
    whole = {v: [scope.expand(e) for e in pair] for v, pair in ends.items()}
    moving = [v for v, pair in whole.items() if any(mentions(e, x) for e in pair)]
    asked_at_run_time = any(c.call_type not in _PURE for pair in whole.values() for e in pair for c in nodes_of(e, n.Call))
    if not scope.steady or len(moving) > 1 or not dims or asked_at_run_time:
        return None
    v = moving[0] if moving else dims[-1]  # what does not move is there after one iteration
    if v not in dims or any(f"{f.name}.s{index}.{v}.min_required" in scope.lets for index in range(len(f.updates))):
        return None  # a stage that computes more than is asked for would reset values its updates have finished
    if f.updates and scope.inner and not all(_finishes_what_it_writes(f, u, whole[u], scope) for u in f.args if u != v):
        return None  # so would iterations of loops in between
    ways = {monotonic(strip_likely(e), x) for e in whole[v]}
    if None in ways or {1, -1} <= ways:
        return None
    rising = -1 not in ways
    plain = [strip_likely(e) for e in whole[v]]
    kept = [strip_likely(scope.expand(e, kept=True)) for e in ends[v]]
    same_lead = simplify(kept[rising]) is simplify(plain[rising])
    return Window(v, x, 1 if rising else -1, whole[v][rising], whole[v][not rising], kept[not rising], same_lead)
