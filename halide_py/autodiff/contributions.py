"""Contributions: what one definition adds to the adjoint of what it reads, and where; turned from scatters into gathers.

`f[x] = 3 * g[2*x + 1]` over x in [0, n) contributes 3 * df[x] to dg at 2*x + 1. `place` solves that for x: dg[u] += 3 * df[(u - 1) / 2]
where (u - 1) % 2 == 0 and 0 <= (u - 1) / 2 < n, so that the adjoint of a stencil is a stencil. Each coordinate is solved for the variable
that runs over the most values; variables that are left become a reduction domain. A coordinate that cannot be solved (clamped,
data-dependent) stays on the left-hand side, as a scatter. Source: Li et al., Differentiable programming for image processing and deep
learning in Halide, ACM TOG 37(4), 2018, section 4.2 (scatter-to-gather conversion).
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.interval import Interval, bounds_of_expr
from ..ir.simplify import linear, simplify
from ..ir.traverse import nodes_of, substitute
from ..ir.types import INT32
from .sweep import Term


@dataclass(frozen=True)
class Axis:
    """A variable that a definition is evaluated over: `name` is an internal one, unlike any user's. `interval` has no end where it is not
    known. `pure` for a Func's own dimension; `title` is what messages call it."""

    name: str
    interval: Interval
    pure: bool
    title: str

    def variable(self) -> n.Variable:
        """The variable as an expression."""
        return n.Variable(INT32, self.name)

    def size(self) -> int:
        """The number of values, a large number when it is no constant."""
        if self.interval.min is None or self.interval.max is None:
            return 1 << 62
        return b.as_int(simplify(n.Sub(self.interval.max, self.interval.min))) or (0 if self.interval.is_point() else 1 << 61)

    def inside(self, e: n.Expr) -> n.Expr:
        """Whether `e` is one of the values."""
        low = b.TRUE if self.interval.min is None else n.LE(self.interval.min, e)
        high = b.TRUE if self.interval.max is None else n.LE(e, self.interval.max)
        return simplify(b.and_(low, high))


_NUMBERS = itertools.count()
_FEW = 4
_WORTH = 4  # places a term, for a gather of one to be worth it: it runs in vectors and threads


def fresh_axis(name: str, interval: Interval, pure: bool) -> Axis:
    """An axis of a new internal name (`x.17`) for what messages call `name`."""
    return Axis(f"{name}.{next(_NUMBERS)}", interval, pure, name)


@dataclass(frozen=True)
class Contribution:
    """`term` is added to the adjoint at `coordinates`, for all values of the axes for which the conditions hold. `vanishes`: the axes
    which may leave their intervals: the value is exactly zero there, and safe to evaluate."""

    coordinates: tuple[n.Expr, ...]
    term: Term
    axes: tuple[Axis, ...]
    vanishes: frozenset[str] = frozenset()
    conditions: tuple[n.Expr, ...] = ()


@dataclass
class Placed:
    """A contribution in the target's own variables: `lhs` has the variable itself where the coordinate was solved. `conditions` are those
    of solving; the value counts where they and the guard hold. `axes` are summed over. `regions` need no test: elsewhere the value is zero
    anyway."""

    lhs: tuple[n.Expr, ...]
    value: n.Expr
    guard: n.Expr
    conditions: list[n.Expr]
    axes: list[Axis]
    scatters: bool
    regions: list[n.Expr]

    def is_pure(self) -> bool:
        """Whether it can stand in a pure definition: one value for each point."""
        return not self.axes and not self.is_scatter()

    def is_scatter(self) -> bool:
        """Whether a coordinate could not be solved."""
        return self.scatters

    def condition(self) -> n.Expr:
        """When it counts."""
        return simplify(b.all_of([*self.conditions, self.guard]))


@dataclass
class _Solver:
    target: tuple[n.Variable, ...]
    axes: dict[str, Axis]
    vanishes: frozenset[str]
    bound: dict[str, n.Expr] = field(default_factory=dict)
    conditions: list[n.Expr] = field(default_factory=list)
    lhs: list[n.Expr | None] = field(default_factory=list)
    regions: list[n.Expr] = field(default_factory=list)

    def now(self, e: n.Expr) -> n.Expr:
        """An expression with what is solved put in."""
        return simplify(substitute(self.bound, e))

    def has_axes(self, e: n.Expr) -> bool:
        """Whether an axis that is not solved occurs."""
        return any(v.name in self.axes for v in nodes_of(e, n.Variable))

    def choices(self, e: n.Expr) -> list[tuple[Axis, int]]:
        """The axes `e` is affine in, with their factors."""
        terms, _ = linear.gather(e)
        found = []
        for term, factor in terms.items():
            if isinstance(term, n.Variable) and term.name in self.axes:
                others = [t for t in terms if t is not term]
                if not any(v is term for v in nodes_of(others, n.Variable)):
                    found.append((self.axes[term.name], factor))
        return found

    def solve(self, e: n.Expr, value: n.Expr, axis: Axis, factor: int) -> None:
        """Bind an axis so that e == value."""
        rest = simplify(n.Sub(value, n.Sub(e, b.mul(axis.variable(), b.i32(factor)))))
        if abs(factor) == 1:
            self.bind(axis, simplify(n.Div(rest, b.i32(factor))))
            return
        k = abs(factor)
        terms, constant = linear.gather(rest)
        remainder = -constant % k  # that of the other terms, where there is a solution: written so, offsets of one phase have one form
        others = linear.rebuild(rest.type, terms, 0)
        self.conditions.append(simplify(n.EQ(n.Mod(others, b.i32(k)), b.i32(remainder))))
        quotient = n.Add(n.Div(others, b.i32(k)), b.i32((constant + remainder) // k))
        self.bind(axis, simplify(quotient if factor > 0 else n.Sub(b.i32(0), quotient)))

    def bind(self, axis: Axis, solution: n.Expr) -> None:
        """Replace an axis by its value everywhere."""
        del self.axes[axis.name]
        one = {axis.name: solution}
        self.bound = {k: simplify(substitute(one, v)) for k, v in self.bound.items()}
        self.conditions = [simplify(substitute(one, c)) for c in self.conditions]
        self.bound[axis.name] = solution
        (self.regions if axis.name in self.vanishes else self.conditions).append(axis.inside(solution))


def _quotients(e: n.Expr) -> Iterator[tuple[n.Expr, int, n.Expr]]:
    """Each (a, k, c) with e = a / k + c and a constant k > 1."""
    terms, _ = linear.gather(e)
    for term, factor in terms.items():
        divisor = b.as_int(term.b) if factor == 1 and isinstance(term, n.Div) else None
        if isinstance(term, n.Div) and divisor is not None and divisor > 1:
            yield term.a, divisor, simplify(n.Sub(e, term))


@dataclass(frozen=True)
class _Equation:
    """`coordinate == value`, to be solved for `axis` in dimension `d`; `remainder` is the axis that undoing a division brought in."""

    d: int
    coordinate: n.Expr
    value: n.Expr
    axis: Axis
    factor: int
    remainder: Axis | None

    def size(self) -> int:
        """The number of values that solving saves."""
        return self.axis.size() // abs(self.factor) // (1 if self.remainder is None else self.remainder.size() + 1)

    def pays(self, axes: Mapping[str, Axis]) -> bool:
        """Whether a gather has fewer terms than a scatter, or not many more: it visits them once for each place that other axes reach."""
        rest = simplify(n.Sub(self.coordinate, b.mul(self.axis.variable(), b.i32(self.factor))))
        if not any(v.name in axes for v in nodes_of(rest, n.Variable)):
            return True
        reach = bounds_of_expr(rest, {name: a.interval for name, a in axes.items()})
        return Axis("", reach, False, "").size() < _WORTH * (self.axis.size() + 1)


def _equations(s: _Solver, coordinates: Sequence[n.Expr], divided: bool) -> Iterator[_Equation]:
    """What could be solved next, divisions too if `divided`."""
    for d, c in enumerate(coordinates):
        if s.lhs[d] is not None:
            continue
        e = s.now(c)
        value: n.Expr = s.target[d]
        for axis, factor in s.choices(e):
            yield _Equation(d, e, value, axis, factor, None)
        for inner, k, rest in _quotients(e) if divided else ():
            remainder = fresh_axis("remainder", Interval(b.i32(0), b.i32(k - 1)), False)
            multiple = n.Add(n.Mul(n.Sub(value, rest), b.i32(k)), remainder.variable())
            for axis, factor in s.choices(inner):
                if not any(v.name == axis.name for v in nodes_of(rest, n.Variable)):
                    yield _Equation(d, inner, multiple, axis, factor, remainder)


def _step(s: _Solver, coordinates: Sequence[n.Expr], divided: bool) -> bool:
    """Solve one more coordinate for the axis of most values; False when none is left that can be."""
    best = max((e for e in _equations(s, coordinates, divided) if e.pays(s.axes)), key=_Equation.size, default=None)
    if best is None:
        return False
    if best.remainder is not None:
        s.axes[best.remainder.name] = best.remainder
    s.solve(best.coordinate, best.value, best.axis, best.factor)
    s.lhs[best.d] = s.target[best.d]
    return True


def place(c: Contribution, target: Sequence[n.Variable], divided: bool = True) -> Placed:
    """The contribution in terms of the target's own variables. `divided`: whether divisions are undone, by an axis of the remainders each;
    what is a scatter all the same is one without them, whose terms cost less."""
    s = _Solver(tuple(target), {a.name: a for a in c.axes}, c.vanishes, conditions=list(c.conditions), lhs=[None] * len(target))
    while _step(s, c.coordinates, divided):
        pass
    rest = [d for d, e in enumerate(s.lhs) if e is None]
    for d in rest:
        e = s.now(c.coordinates[d])
        if s.axes or s.has_axes(e):
            s.lhs[d] = e
        else:  # one point, or a diagonal: a test costs less than a scatter
            s.conditions.append(simplify(n.EQ(s.target[d], e)))
            s.lhs[d] = s.target[d]
    lhs = tuple(e for e in s.lhs if e is not None)
    conditions = [s.now(k) for k in s.conditions]
    kept = [k for k in conditions if not b.is_true(k)]
    axes = list(s.axes.values())
    scatters = lhs != s.target
    if scatters and divided and len({a.name for a in axes} - {a.name for a in c.axes}):
        return place(c, target, False)
    if scatters:  # those of few values innermost: they share what is computed, and write to different places one after the other
        axes.sort(key=lambda a: a.size() >= _FEW)
    return Placed(lhs, s.now(c.term.value), s.now(c.term.guard), kept, axes, scatters, [s.now(k) for k in s.regions])


def check_bounded(axes: Iterable[Axis], what: str, where: str) -> None:
    """Raise CompileError when an axis to be summed over has no known interval."""
    for a in axes:
        if not a.interval.is_bounded():
            raise CompileError(f"The derivative of {what} sums over {a.title} of {where}, but the region it is needed over is not known: "
                               "an access to it is not bounded. Clamp the index with hl.clamp(index, 0, n - 1), say where a Func "
                               "is needed with bound(x, min, extent), or give propagate_adjoints() the bounds of the output")


def vanishing(roots: Sequence[n.Expr], names: Container[str], axes: Iterable[str]) -> frozenset[str]:
    """Those of the axes that a value may leave, given that the Funcs of certain names are zero outside of their regions: if all else is
    read at places that do not depend on the axis (weights, say)."""
    kept = set(axes)
    for c in nodes_of(roots, n.Call):
        if c.call_type in (n.CallType.Halide, n.CallType.Image) and c.name not in names:
            kept -= {v.name for v in nodes_of(c.args, n.Variable)}
    return frozenset(kept)
