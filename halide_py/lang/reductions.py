"""Inline reductions: sum, product, maximum, minimum, argmax, argmin of an expression over an RDom, usable inside any expression.

Each is an anonymous Func with an update, computed where it is used. The RDom is found in the expression, or given first
when the expression has several. Every other variable of the expression becomes a dimension of the Func.
"""

from __future__ import annotations

from typing import Any, Callable

from ..errors import CompileError, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import ReductionDomain
from ..ir.traverse import free_variables, substitute
from ..ir.types import INT32
from .expr import Expr, to_expr
from .func import Func
from .tuples import Tuple
from .var import RDom, RVar, Var


class _Reduction:
    """The parts of one inline reduction."""

    def __init__(self, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        values = list(args)
        self.name = kwargs.get("name", what)
        if values and isinstance(values[-1], str):
            self.name = values.pop()
        rdom = kwargs.get("rdom", values.pop(0) if len(values) > 1 else None)
        expr = kwargs.get("expr", values[0] if values else None)
        if expr is None:
            raise TypeError(f"{what}() takes an Expr, or an RDom and an Expr")
        self.what, self.expr = what, to_expr(expr).as_node()
        self.domain = rdom.domain if isinstance(rdom, RDom) and rdom.domain else self._find()
        own = {v.name for v in self.domain.variables}
        self.free = [v for v in free_variables(self.expr).values() if v.name not in own and v.param is None]

    def _find(self) -> ReductionDomain:
        domains = {id(v.rdom): v.rdom for v in free_variables(self.expr).values() if v.rdom is not None}
        if not domains:
            raise CompileError(f"{self.what}() of an expression without a reduction domain; use an RDom in it ({user_location()})")
        if len(domains) > 1:
            names = ", ".join(d.name for d in domains.values())
            raise CompileError(f"{self.what}() of an expression with several reduction domains ({names}); say which: {self.what}(rdom, expression) ({user_location()})")
        return next(iter(domains.values()))

    def func(self) -> tuple[Func, list[Var], list[Expr], n.Expr]:
        """A fresh Func, its dimensions, the coordinates to call it at, and the expression over the dimensions. RVars of other domains become dimensions."""
        f = Func(self.name)
        dims, renamed = [], {}
        for v in self.free:
            dim = Var(v.name)
            if v.rdom is not None:
                renamed[v.name] = dim.as_node()
            dims.append(dim)
        return f, dims, [Expr.of(v) for v in self.free], _rename(renamed, self.expr)


def _rename(values: dict[str, n.Expr], e: n.Expr) -> n.Expr:
    return substitute(values, e)


def _fold(what: str, start: Callable[[n.Expr], n.Expr], step: Callable[[n.Expr, n.Expr], n.Expr], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Expr:
    r = _Reduction(what, args, kwargs)
    f, dims, coordinates, e = r.func()
    f[tuple(dims)] = Expr.of(start(e))
    f[tuple(dims)] = _with_domain(f, dims, r, lambda old: step(old, e))
    return Expr.of(f[tuple(coordinates)].as_node())


def _with_domain(f: Func, dims: list[Var], r: _Reduction, value: Callable[[n.Expr], n.Expr]) -> Expr:
    """The update's value; when the expression does not mention the domain at all, it is mentioned for it."""
    e = value(f[tuple(dims)].as_node())
    if not any(v.rdom is r.domain for v in free_variables(e).values()):
        first = n.Variable(INT32, r.domain.variables[0].name, None, r.domain)
        e = n.Select(n.GE(first, r.domain.variables[0].min), e, f[tuple(dims)].as_node())
    return Expr.of(e)


def _lowest(e: n.Expr) -> n.Expr:
    return b.const(e.type, e.type.min_value())


def _highest(e: n.Expr) -> n.Expr:
    return b.const(e.type, e.type.max_value())


def sum(*args: Any, **kwargs: Any) -> Expr:
    """The sum of an expression over its RDom, in the expression's own type (which wraps as that type does); 0 over an empty one."""
    return _fold("sum", lambda e: b.const(e.type, 0), n.Add, args, kwargs)


def product(*args: Any, **kwargs: Any) -> Expr:
    """The product of an expression over its RDom; 1 over an empty one."""
    return _fold("product", lambda e: b.const(e.type, 1), n.Mul, args, kwargs)


def maximum(*args: Any, **kwargs: Any) -> Expr:
    """The largest value of an expression over its RDom; the type's smallest (-inf for floats) over an empty one."""
    return _fold("maximum", _lowest, n.Max, args, kwargs)


def minimum(*args: Any, **kwargs: Any) -> Expr:
    """The smallest value of an expression over its RDom; the type's largest (inf for floats) over an empty one."""
    return _fold("minimum", _highest, n.Min, args, kwargs)


def _arg(what: str, start: Callable[[n.Expr], n.Expr], better: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Expr, ...]:
    r = _Reduction(what, args, kwargs)
    f, dims, coordinates, e = r.func()
    place = tuple(dims)
    rvars = [Expr.of(RVar.of(r.domain, i).as_node()) for i in range(len(r.domain.variables))]
    f[place] = Tuple([*(Expr.of(v.min) for v in r.domain.variables), Expr.of(start(e))])
    old = [to_expr(f[place][i]) for i in range(len(rvars) + 1)]
    new = [*rvars, Expr.of(e)]
    wins = better(e, old[-1].as_node())
    f[place] = Tuple([Expr.of(n.Select(wins, a.as_node(), c.as_node())) for a, c in zip(new, old)])
    call = f[tuple(coordinates)]
    return tuple(to_expr(call[i]) for i in range(len(new)))


def argmax(*args: Any, **kwargs: Any) -> tuple[Expr, ...]:
    """(coordinates..., value) of the largest value over an RDom; the first one on ties."""
    return _arg("argmax", _lowest, n.GT, args, kwargs)


def argmin(*args: Any, **kwargs: Any) -> tuple[Expr, ...]:
    """(coordinates..., value) of the smallest value over an RDom; the first one on ties."""
    return _arg("argmin", _highest, n.LT, args, kwargs)
