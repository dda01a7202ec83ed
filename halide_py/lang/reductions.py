"""Inline reductions: sum, product, maximum, minimum, argmax, argmin of an expression over an RDom, usable inside any expression.

Each is an anonymous Func with an update, computed where it is used. The RDom is found in the expression, or given first
when the expression has several. Every other variable of the expression (RVars of other RDoms too) becomes a dimension of the Func.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import user_error
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import ReductionDomain
from ..ir.names import anonymous_name
from ..ir.traverse import free_variables, substitute
from ..ir.types import INT32
from . import definitions
from .expr import Expr, to_expr
from .func import Func
from .rdom import RDom, RVar

Fold = Callable[[n.Expr, n.Expr], n.Expr]


def _arguments(what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[ReductionDomain | None, n.Expr, Func]:
    """(RDom given, expression, the Func to define) of a call: (expr), (rdom, expr), each with a name or a fresh Func last."""
    values = list(args)
    target = kwargs.pop("name", None) or kwargs.pop("f", None)
    if values and isinstance(values[-1], (str, Func)):
        target = values.pop()
    names = ("rdom", "expr") if len(values) > 1 or "rdom" in kwargs else ("expr",)
    given = {**dict(zip(names, values)), **kwargs}
    if "expr" not in given or given.keys() - {"rdom", "expr"} or len(values) > len(names):
        raise TypeError(f"{what}() takes an Expr, or an RDom and an Expr, then a name")
    rdom = given.get("rdom")
    if rdom is not None and not isinstance(rdom, RDom):
        raise TypeError(f"the first of two arguments of {what}() must be an RDom, not {rdom!r}")
    f = target if isinstance(target, Func) else Func(target or what)
    if f.defined():
        raise user_error(f"Func {f.name()} passed to {what} already has a definition")
    return (rdom.reduction if rdom is not None else None), to_expr(given["expr"]).as_node(), f


class _Reduction:
    """One inline reduction in the making: its Func, the domain, the Func's dimensions and where it is called."""

    def __init__(self, what: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        explicit, e, self.func = _arguments(what, args, dict(kwargs))
        free = [v for v in free_variables(e).values() if v.param is None]
        self.domain = explicit or _found(what, free)
        outer = [v for v in free if v.rdom is not self.domain]
        renamed = {v.name: n.Variable(INT32, anonymous_name("v")) for v in outer if v.rdom is not None}
        self.expr = substitute(renamed, e)
        self.call_args = [Expr.of(v) for v in outer]
        self.dims = [Expr.of(renamed.get(v.name, v)) for v in outer]

    def start(self, values: Sequence[n.Expr]) -> list[n.Expr]:
        """Give the Func its pure definition; returns the calls of it that the update starts from."""
        definitions.define(self.func.function, self.dims, [Expr.of(v) for v in values])
        f = self.func.function
        args = definitions.call_args(f.name, len(f.args), self.dims)
        return [n.Call(t, f.name, args, n.CallType.Halide, f, i) for i, t in enumerate(f.types)]

    def update(self, values: Sequence[n.Expr]) -> tuple[Expr, ...]:
        """Give the Func its update over the domain; returns what stands for it in the user's expression."""
        definitions.define(self.func.function, self.dims, [Expr.of(v) for v in values], self.domain)
        call = self.func[tuple(self.call_args)]
        return tuple(Expr.of(call.element(i)) for i in range(len(values)))


def _found(what: str, free: Sequence[n.Variable]) -> ReductionDomain:
    domains = {id(v.rdom): (v.name, v.rdom) for v in free if v.rdom is not None}
    if not domains:
        raise user_error(f"Expression passed to {what} must reference a reduction domain; use an RVar of an RDom in it, or give the RDom "
                         "first")
    if len(domains) > 1:
        names = ", ".join(name for name, _ in domains.values())
        raise user_error(f'Inline reduction "{what}" refers to reduction variables from multiple reduction domains: {names}. '
                         f"Say which one is meant: {what}(rdom, expression)")
    return next(d for _, d in domains.values())


def _fold(what: str, start: Callable[[n.Expr], n.Expr], step: Fold, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Expr:
    r = _Reduction(what, args, kwargs)
    (me,) = r.start([start(r.expr)])
    return r.update([step(me, r.expr)])[0]


def _lowest(e: n.Expr) -> n.Expr:
    return b.const(e.type, e.type.min_value())


def _highest(e: n.Expr) -> n.Expr:
    return b.const(e.type, e.type.max_value())


def sum(*args: Any, **kwargs: Any) -> Expr:
    """`sum(expr)`, `sum(rdom, expr)`, then a name: the sum over the RDom, in the expression's own type (which wraps as that type does); 0
    over an empty one."""
    return _fold("sum", lambda e: b.const(e.type, 0), n.Add, args, kwargs)


def product(*args: Any, **kwargs: Any) -> Expr:
    """The product over the RDom, with arguments as for sum(); 1 over an empty one.

    >>> hl.evaluate(hl.product(hl.RDom([(1, 5)]).x + 0))
    120
    """
    return _fold("product", lambda e: b.const(e.type, 1), n.Mul, args, kwargs)


def maximum(*args: Any, **kwargs: Any) -> Expr:
    """The largest value over the RDom, with arguments as for sum(); the type's smallest (-inf for floats) over an empty one.

    >>> hl.evaluate(hl.maximum(hl.RDom([(1, 5)]).x + 0))
    5
    """
    return _fold("maximum", _lowest, n.Max, args, kwargs)


def minimum(*args: Any, **kwargs: Any) -> Expr:
    """The smallest value over the RDom, with arguments as for sum(); the type's largest (inf for floats) over an empty one.

    >>> hl.evaluate(hl.minimum(hl.RDom([(1, 5)]).x + 0))
    1
    """
    return _fold("minimum", _highest, n.Min, args, kwargs)


def _arg(what: str, start: Callable[[n.Expr], n.Expr], better: Fold, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Expr, ...]:
    r = _Reduction(what, args, kwargs)
    rvars = [RVar.of(r.domain, i).as_node() for i in range(len(r.domain.variables))]
    old = r.start([*(b.i32(0) for _ in rvars), start(r.expr)])
    wins = better(r.expr, old[-1])
    return r.update([n.Select(wins, new, kept) for new, kept in zip([*rvars, r.expr], old)])


def argmax(*args: Any, **kwargs: Any) -> tuple[Expr, ...]:
    """(coordinates..., value) of the largest value over the RDom, with arguments as for sum(); the first one on ties.

    >>> r = hl.RDom([(-3, 7)])
    >>> hl.evaluate(hl.argmax(r.x * r.x))
    (-3, 9)
    """
    return _arg("argmax", _lowest, n.GT, args, kwargs)


def argmin(*args: Any, **kwargs: Any) -> tuple[Expr, ...]:
    """(coordinates..., value) of the smallest value over the RDom, with arguments as for sum(); the first one on ties.

    >>> r = hl.RDom([(-3, 7)])
    >>> hl.evaluate(hl.argmin(r.x * r.x))
    (0, 0)
    """
    return _arg("argmin", _highest, n.LT, args, kwargs)
