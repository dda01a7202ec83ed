"""Adjoint Funcs: the sum of all contributions to the adjoint of one Func, image or parameter, as an ordinary Func.

Contributions that have one value at each point make the pure definition; those summed over a reduction domain, or scattered, become
updates, those over the same domain and place in one update.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace

from ..ir import build as b
from ..ir import nodes as n
from ..ir.interval import Interval
from ..ir.simplify import simplify
from ..ir.traverse import nodes_of, substitute
from ..ir.types import INT32, Type
from ..lang.expr import Expr
from ..lang.func import Func
from ..lang.rdom import RDom
from ..lang.tuples import Tuple
from ..lang.var import Var
from .blocks import sum_apart
from .contributions import Contribution, Placed, check_bounded
from .domains import domain_over, mentioning, mentions
from .phases import together
from .pieces import placed_pieces
from .scatters import scatter_apart
from .stages import Region, Stage


def zero(t: Type) -> n.Expr:
    """The constant 0 of a type."""
    return b.const(t, 0)


def as_value(values: Sequence[n.Expr]) -> Expr | Tuple:
    """What is assigned to a Func: one Expr, or a Tuple of several."""
    exprs = [Expr.of(v) for v in values]
    return exprs[0] if len(exprs) == 1 else Tuple(exprs)


def define(f: Func, args: Sequence[n.Expr], values: Sequence[n.Expr]) -> None:
    """`f[args] = values`. Plain Variables among the first definition's args are its dimensions."""
    first = not f.defined()
    f[tuple(Var(a.name) if first and isinstance(a, n.Variable) else Expr.of(a) for a in args)] = as_value(values)


def reads(f: Func, at: Sequence[n.Expr]) -> list[n.Expr]:
    """The calls of all values of a Func at a place."""
    return [n.Call(t, f.name(), tuple(at), n.CallType.Halide, f.function, i) for i, t in enumerate(f.function.types)]


def plain(name: str) -> str:
    """A Func's name as the beginning of that of a companion."""
    return name.replace("$", "_")


def at_root(f: Func) -> Func:
    """Computed once, by default loops."""
    f.compute_root()
    f.function.schedule.default_loops = True
    return f


def define_over(f: Func, stage: Stage, args: Sequence[n.Expr], values: Sequence[n.Expr], predicate: n.Expr) -> None:
    """A definition of `f`, of the same dimensions as the stage's Function, over the stage's axes."""
    names: dict[str, n.Expr] = dict(stage.dimensions())
    loops = stage.loops()
    if loops:
        domain = domain_over([(a.interval.min, a.interval.max) for a in loops if a.interval.min is not None and a.interval.max is not None])
        names.update({a.name: domain[i].as_node() for i, a in enumerate(loops)})
        if not b.is_true(predicate):
            domain.where(Expr.of(substitute(names, predicate)))
    args, values = ([substitute(names, e) for e in each] for each in (args, values))
    if loops and not mentions(domain, [*args, *values]):
        values = [mentioning(domain, v) for v in values]
    define(f, args, values)


@dataclass
class _Update:
    """One update to be: contributions to the values at one place over one domain."""

    lhs: tuple[n.Expr, ...]
    domain: RDom | None
    values: dict[int, list[n.Expr]] = field(default_factory=dict)


@dataclass
class AdjointSum:
    """The adjoint of something (`what`) with the given dimensions and value types, as it is gathered. `base` is where it starts from
    (default 0), `sizes` how many places there are in each dimension, as far as that is known. Outside of the `region`, if there is one,
    nothing else may be read: the adjoint is 0 there. `leaves_out`, once it is built: places in between may have got nothing."""

    name: str
    args: tuple[str, ...]
    types: tuple[Type, ...]
    what: str
    contributions: list[tuple[int, Contribution, str]] = field(default_factory=list)
    base: list[n.Expr] | None = None
    sizes: tuple[int | None, ...] = ()
    region: Region = ()
    leaves_out: bool = False

    def within(self, region: Region) -> AdjointSum:
        """The same sum, of which the region is known."""
        self.region, self.sizes = region, tuple(map(_size, region))
        return self

    def add(self, index: int, c: Contribution, where: str) -> None:
        """One more contribution, to value `index`, from the definition that `where` names."""
        self.contributions.append((index, c, where))

    def variables(self) -> tuple[n.Variable, ...]:
        """The dimensions as expressions."""
        return tuple(n.Variable(INT32, a) for a in self.args)

    def build(self, safe: Container[str] = ()) -> Func:
        """The Func. `safe`: the Funcs that may be read anywhere. Users who ask for its updates, to schedule them, get them instead of sums
        apart."""
        f = Func(self.name)
        if self._define(f, safe, True):
            f.function.with_updates = lambda: self._define_anew(f, safe)
        return f

    def _define_anew(self, f: Func, safe: Container[str]) -> None:
        """Definitions with updates; the pure one keeps its schedule."""
        g = f.function
        assert g.pure is not None
        schedule, frozen = g.pure.schedule, g.frozen
        g.with_updates, g.pure, g.updates, g.frozen = None, None, [], False
        self._define(f, safe, False)
        assert g.pure is not None
        g.pure, g.frozen = replace(g.pure, schedule=schedule), frozen

    def _define(self, f: Func, safe: Container[str], may_be_apart: bool) -> bool:
        """Define the Func; whether a sum is a Func of its own."""
        pure: list[list[n.Expr]] = [[] for _ in self.types]
        placed: list[list[Placed]] = [[] for _ in self.types]
        updates: dict[object, _Update] = {}
        sums: set[str] = set()
        domains: dict[object, RDom] = {}
        for index, c, where in self.contributions:
            for p in placed_pieces(c, self.variables()):
                self.leaves_out = self.leaves_out or p.is_scatter() or any(k.mask & n.Mod.bit for k in p.conditions)
                if p.is_pure():
                    placed[index].append(p)
                    continue
                check_bounded(p.axes, self.what, where)
                make = scatter_apart if p.is_scatter() else sum_apart
                apart = make(self.name, self.args, p, self.sizes or (None,) * len(self.args)) if may_be_apart else None
                if apart is not None:
                    pure[index].append(apart)
                    sums |= {k.name for k in nodes_of(apart, n.Call)}
                    continue
                domain = _domain(p, domains)
                lhs = tuple(_over(p, domain, e) for e in p.lhs)
                update = updates.setdefault((lhs, None if domain is None else domain.reduction), _Update(lhs, domain))
                update.values.setdefault(index, []).append(_over(p, domain, p.value if p.is_scatter() else _selected(p)))
        for same, terms in zip(placed, pure):
            terms[:0] = map(_selected, together(same))
        base = self.base or [zero(t) for t in self.types]
        define(f, self.variables(), [self._inside(_sum(start, terms), sums, safe) for start, terms in zip(base, pure)])
        for u in updates.values():
            values = {i: _sum(None, terms) for i, terms in u.values.items()}
            if u.domain is not None and not mentions(u.domain, [*u.lhs, *values.values()]):
                values = {i: mentioning(u.domain, v) for i, v in values.items()}
            define(f, u.lhs, [n.Add(old, values[i]) if i in values else old for i, old in enumerate(reads(f, u.lhs))])
        return bool(sums)

    def _inside(self, value: n.Expr, sums: Container[str], safe: Container[str]) -> n.Expr:
        """A value that reads what it may inside of the region only, 0 elsewhere: users of the adjoint rely on both."""
        unsafe = [
            c
            for c in nodes_of(value, n.Call)
            if c.call_type in (n.CallType.Halide, n.CallType.Image) and c.name not in safe and c.name not in sums
        ]
        if not self.region or not any(v.name in self.args for v in nodes_of([a for c in unsafe for a in c.args], n.Variable)):
            return value
        inside: list[n.Expr] = []
        for v, i in zip(self.variables(), self.region):
            inside += [] if i.min is None else [n.LE(i.min, v)]
            inside += [] if i.max is None else [n.LE(v, i.max)]
        return b.select(b.likely(b.all_of(inside)), value, zero(value.type)) if inside else value


def _size(i: Interval) -> int | None:
    """The number of values of an interval, where that is known now."""
    return b.as_int(simplify(b.add(b.sub(i.max, i.min), b.i32(1)))) if i.min is not None and i.max is not None else None


def _sum(start: n.Expr | None, terms: Sequence[n.Expr]) -> n.Expr:
    out = None if start is None or b.is_zero(start) and terms else start
    for t in terms:
        out = t if out is None else n.Add(out, t)
    assert out is not None
    return simplify(out)


def _selected(p: Placed) -> n.Expr:
    """The value where it counts, zero elsewhere. Conditions of solving hold in the interior, which loop partitioning may use; those of
    remainders, at every other place or so."""
    remainders = [c for c in p.conditions if c.mask & n.Mod.bit]
    conditions = simplify(b.all_of(c for c in p.conditions if not c.mask & n.Mod.bit))
    if p.is_pure() and not b.is_true(conditions):
        conditions = b.likely(conditions)
    return b.select(b.and_(b.all_of([conditions, *remainders]), p.guard), p.value, zero(p.value.type))


def _domain(p: Placed, domains: dict[object, RDom]) -> RDom | None:
    """The domain that a contribution is summed over, shared with others of the same ranges and predicate. Conditions restrict the domain of
    a scatter, rather than the value: it may not touch places that do not count."""
    condition = p.condition() if p.is_scatter() else b.TRUE
    ranges = [(a.interval.min, a.interval.max) for a in p.axes]
    if not ranges:
        if b.is_true(condition):
            return None
        ranges = [(b.i32(0), b.i32(0))]
    numbered: dict[str, n.Expr] = {a.name: n.Variable(INT32, f"axis.{i}") for i, a in enumerate(p.axes)}
    key = (*ranges, substitute(numbered, condition))
    if key not in domains:
        domain = domains[key] = domain_over([(low, high) for low, high in ranges if low is not None and high is not None])
        if not b.is_true(condition):
            domain.where(Expr.of(_over(p, domain, condition)))
    return domains[key]


def _over(p: Placed, domain: RDom | None, e: n.Expr) -> n.Expr:
    """An expression over the axes of a contribution, over the domain made of them."""
    return simplify(substitute({a.name: domain[i].as_node() for i, a in enumerate(p.axes)}, e)) if domain is not None else e
