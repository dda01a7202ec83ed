"""rfactor: an associative reduction in two steps, so that its partial results can be computed side by side.

Before: `f(x) = f(x) + e(x, r)` over a domain r = (r.x, r.y). After `rfactor(r.y, u)`:

    f_intm(x, u) = 0;  f_intm(x, u) = f_intm(x, u) + e(x, r.x, u)   over r.x
    f(x) = f(x) + f_intm(x, r.y)                                    over r.y

What is kept may be part of an RVar that was split, or RVars fused. The operation and its identity come from `associativity`. Where the
order matters (arg max picks the first of equals), only the outer loops can be kept, which leaves the order as it was. Source: Suriyakumar
et al., "Parallel associative reductions in Halide", CGO 2017; Halide's Func.cpp (Stage::rfactor).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from ..ir import build as b
from ..ir import nodes as n
from ..ir.associativity import Combination, combination
from ..ir.conditions import conjuncts
from ..ir.function import OUTERMOST, Definition, Dim, Function, ReductionDomain, ReductionVariable, Split, SplitKind, StageSchedule
from ..ir.names import unique_name
from ..ir.nodes import ForType
from ..ir.traverse import nodes_of, rewrite
from ..ir.types import INT32
from . import definitions
from .edits import count_edit
from .expr import Expr
from .independence import rvar_kind
from .var import Var

Fail = Callable[[str], NoReturn]


@dataclass
class _Loops:
    """The loops over (parts of) RVars as they are now: their ranges, what each RVar is in terms of them, and the guards of splits."""

    bounds: dict[str, tuple[n.Expr, n.Expr]]  # min, extent
    values: dict[str, n.Expr]
    guards: list[n.Expr] = field(default_factory=list)

    def replace(self, name: str, value: n.Expr) -> tuple[n.Expr, n.Expr]:
        """Express a loop that is consumed by others; gives its range."""
        self.values = {k: _renamed({name: value}, e) for k, e in self.values.items()}
        self.guards = [_renamed({name: value}, e) for e in self.guards]
        return self.bounds.pop(name)


def _loop(name: str) -> n.Expr:
    return n.Variable(INT32, name)


def _renamed(values: Mapping[str, n.Expr], e: n.Expr) -> n.Expr:
    """`e` with Vars and RVars replaced by name; parameters stay."""
    return rewrite(e, {n.Variable: lambda v, rec: v if v.param is not None else values.get(v.name, v)})


def _loops(d: Definition, fail: Fail) -> _Loops:
    """The loops that the splits and fuses so far make of the RVars."""
    out = _Loops({v.name: (v.min, v.extent) for v in d.schedule.rvars}, {v.name: _loop(v.name) for v in d.schedule.rvars})
    one = b.i32(1)
    for s in d.schedule.splits:
        if s.kind is SplitKind.Fuse:
            if (s.inner in out.bounds) != (s.outer in out.bounds):
                fail(f"can't perform rfactor() on a stage that fuses a Var with an RVar ({s.inner} and {s.outer} into {s.old})")
            if s.inner in out.bounds:
                low, extent = out.bounds[s.inner]
                out.replace(s.inner, b.add(b.mod(_loop(s.old), extent), low))
                outer_low, outer_extent = out.replace(s.outer, b.add(b.div(_loop(s.old), extent), out.bounds[s.outer][0]))
                out.bounds[s.old] = b.i32(0), b.mul(extent, outer_extent)
        elif s.old in out.bounds and s.kind is SplitKind.Rename:
            out.bounds[s.outer] = out.replace(s.old, _loop(s.outer))
        elif s.old in out.bounds:
            assert s.factor is not None
            low, extent = out.bounds[s.old]
            inside = b.add(b.mul(_loop(s.outer), s.factor), _loop(s.inner))
            out.replace(s.old, b.add(inside, low))
            size, known = b.as_int(extent), b.as_int(s.factor)
            if size is None or known is None or size % known:
                out.guards.append(n.LT(inside, extent))
            out.bounds[s.outer] = b.i32(0), b.div(b.add(extent, b.sub(s.factor, one)), s.factor)
            out.bounds[s.inner] = b.i32(0), s.factor
    return out


def rfactor(f: Function, index: int, preserved: Sequence[tuple[str, str]], fail: Fail) -> Function:
    """Factor update `index` of `f`, keeping the loops named first in each pair as Vars of the intermediate Function, which is returned.

    `f` is changed only when all is well; `fail` raises with a reason otherwise.
    """
    d = f.updates[index]
    if d.schedule.specializations:
        fail("rfactor() must come before specialize()")
    loops = _loops(d, fail)
    order = [dim.var for dim in d.schedule.dims if dim.var in loops.bounds]  # innermost first
    kept = dict(preserved)
    taken = {*f.args, *(dim.var for dim in d.schedule.dims)}
    for r, v in preserved:
        if r not in order:
            fail(f"can't perform rfactor() on {r} since either it is not in the reduction domain, or has already been consumed by another "
                 "scheduling directive")
        if v in taken:
            fail(f"can't perform rfactor() with Var {v}, because the name is in use already; choose a new one")
        taken.add(v)
    if len(kept) != len(preserved):
        fail("rfactor() names an RVar twice")
    found = combination(f, d)
    if isinstance(found, str):
        fail(f"can't perform rfactor() because we can't prove associativity of the operator: {found}")
    if not found.commutative and [r for r in order if r not in kept] + [r for r in order if r in kept] != order:
        fail(f"can't perform rfactor() keeping {', '.join(kept)}, because which of equal values wins depends on the order; only the "
             "outermost loops over RVars can be kept: reorder them first")
    return _Factoring(f, index, d, loops, kept, order, found).run()


@dataclass
class _Factoring:
    """One rfactor, all checks done."""

    f: Function
    index: int
    d: Definition
    loops: _Loops
    kept: dict[str, str]
    order: list[str]
    found: Combination

    def run(self) -> Function:
        f, d = self.f, self.d
        intm = Function(unique_name(f"{f.name}_intm"), where=d.where)
        definitions.define(intm, [Var(a) for a in (*f.args, *self.kept.values())], [Expr.of(e) for e in self.found.identity])
        intm.updates.append(self.partial(intm))
        intm.frozen = True
        f.updates[self.index] = self.total(intm)
        count_edit()
        return intm

    def domain(self, name: str, variables: Sequence[str]) -> ReductionDomain | None:
        """A reduction domain over some of the loops."""
        if not variables:
            return None
        return ReductionDomain(name, tuple(ReductionVariable(r, *self.loops.bounds[r]) for r in variables), frozen=True)

    def in_terms_of(self, rdom: ReductionDomain | None, vars: Mapping[str, str]) -> Callable[[n.Expr], n.Expr]:
        """Rewrites expressions of RVars into loops of `rdom`, and into Vars for those renamed."""
        names: dict[str, n.Expr] = {r.name: n.Variable(INT32, r.name, None, rdom) for r in (rdom.variables if rdom else ())}
        names |= {r: n.Variable(INT32, v) for r, v in vars.items()}
        values = {r: _renamed(names, e) for r, e in self.loops.values.items()}
        return lambda e: _renamed(values, e)

    def partial(self, intm: Function) -> Definition:
        """The update of the intermediate: over the loops not kept, those kept being Vars."""
        d = self.d
        rest = [r for r in self.order if r not in self.kept]
        rdom = self.domain(unique_name("r"), rest)
        new = self.in_terms_of(rdom, self.kept)
        inner = {r: n.Variable(INT32, r, None, rdom) for r in rest} | {r: n.Variable(INT32, v) for r, v in self.kept.items()}
        args = (*map(new, d.args), *(n.Variable(INT32, v) for v in self.kept.values()))
        predicate = b.all_of([new(d.predicate), *(_renamed(inner, g) for g in self.loops.guards)])
        own = tuple(n.Call(t, intm.name, args, n.CallType.Halide, None, i) for i, t in enumerate(intm.types))
        values = self.found.combine(own, tuple(map(new, self.found.parts)))
        dims = [replace(dim, var=self.kept[dim.var], exact=True) if dim.var in self.kept else dim for dim in d.schedule.dims]
        return self.definition(intm, args, values, rdom, predicate, dims, d)

    def total(self, intm: Function) -> Definition:
        """The new update of the Func: over the loops kept."""
        f, d = self.f, self.d
        kept = [r for r in self.order if r in self.kept]
        rdom = self.domain(unique_name("r"), kept)
        new = self.in_terms_of(rdom, {})
        inside = {r: n.Variable(INT32, r, None, rdom) for r in kept}
        conditions = [
            c for c in (new(d.predicate), *(_renamed(inside, g) for g in self.loops.guards)) for c in conjuncts(c, True) if not b.is_true(c)
        ]
        mine = [c for c in conditions if self.is_own(c, rdom)]
        args = tuple(map(new, d.args))
        exact = len(mine) == len(conditions)
        args = tuple(e if self.is_own(e, rdom) and (exact or isinstance(e, n.Variable) and e.rdom is None) else n.Variable(INT32, a)
                     for a, e in zip(f.args, args))
        own = tuple(n.Call(t, f.name, args, n.CallType.Halide, None, i) for i, t in enumerate(f.types))
        at = (*args, *(inside[r] for r in self.kept))
        values = self.found.combine(own, tuple(n.Call(t, intm.name, at, n.CallType.Halide, intm, i) for i, t in enumerate(f.types)))
        dims = [replace(dim, for_type=ForType.Serial if dim.is_rvar() else dim.for_type) for dim in d.schedule.dims
                if dim.var in self.kept or dim.var not in self.loops.bounds]
        pure = [a for a, e in zip(f.args, args) if isinstance(e, n.Variable) and e.name == a and e.rdom is None]
        had = {a for a, e in zip(f.args, d.args) if isinstance(e, n.Variable) and e.name == a and e.rdom is None}
        dims[-1:-1] = [Dim(a) for a in pure if a not in had]
        return self.definition(f, args, values, rdom, b.all_of(mine), dims, d)

    def is_own(self, e: n.Expr, rdom: ReductionDomain | None) -> bool:
        """Whether an expression depends on the RVars of one domain only."""
        return all(
            v.rdom is None and v.name not in self.loops.bounds or v.rdom is rdom and rdom is not None for v in nodes_of(e, n.Variable)
        )

    def definition(self, g: Function, args: tuple[n.Expr, ...], values: tuple[n.Expr, ...], rdom: ReductionDomain | None, predicate: n.Expr,
                   dims: Sequence[Dim], d: Definition) -> Definition:
        """A definition with the loops `dims`; of the splits, those of Vars remain."""
        rvars = list(rdom.variables) if rdom else []
        kinds = {r.name: rvar_kind(g, r, args, values, predicate) for r in rvars}
        pure = Dim(OUTERMOST).kind
        dims = [replace(dim, kind=kinds.get(dim.var, pure)) for dim in dims]
        schedule = StageSchedule(rvars, _splits_of_vars(d), dims, d.schedule.touched, d.schedule.allow_race_conditions, d.schedule.atomic,
                                 d.schedule.override_associativity)
        return Definition(args, values, rdom, predicate, schedule, d.where)


def _splits_of_vars(d: Definition) -> list[Split]:
    """The splits, fuses and renames of loops over Vars."""
    reduction = {v.name for v in d.schedule.rvars}
    out = []
    for s in d.schedule.splits:
        source = s.inner if s.kind is SplitKind.Fuse else s.old
        if source in reduction:
            reduction |= {s.old} if s.kind is SplitKind.Fuse else {s.outer, s.inner}
        else:
            out.append(replace(s))
    return out

