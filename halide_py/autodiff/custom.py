"""Rules that users attach to functions of Exprs or of Funcs: `custom_gradient`, `with_gradient` and `stop_gradient`.

A function of Exprs marks its value by a call of an intrinsic that is the identity, and that lowering drops: `custom_gradient(result,
argument, ...)` has its rule in the row it refers to, like any other function. A function of Funcs hangs its rule at the Funcs it returns
(`opaque`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import user_error, user_location
from ..ir import nodes as n
from ..ir.build import const
from ..ir.intrinsics import ExternFunction, intrinsic
from ..lang.expr import Expr, convertible, to_expr, to_node
from ..lang.func import Func
from ..lang.ops import cast
from ..lang.promotion import literal
from ..lang.tuples import is_tuple_like, to_tuple
from .opaque import FuncRule, wrapped
from .rule_table import ask

Hook = Callable[..., Any]


def stop_gradient(e: Any) -> Expr:
    """`e`, as a constant to the derivative: nothing flows back through it."""
    node = to_node(e)
    return Expr.of(intrinsic("stop_gradient", node.type, node))


def _marked(name: str, value: n.Expr, args: Sequence[n.Expr], hook: Hook, **extra: Any) -> Expr:
    """A value whose derivative is `hook(adjoint, result, value, *args)`. `inside`: the forward mode looks at the value instead."""
    row = ExternFunction(name, value.type, (value.type, *(a.type for a in args)), name, gradient=hook, extra=extra)
    return Expr.of(n.Call(value.type, "custom_gradient", (value, *args), n.CallType.PureIntrinsic, row))


def with_gradient(value: Any, partials: Mapping[Any, Any] | Sequence[tuple[Any, Any]]) -> Expr:
    """`value`, whose derivative for each argument is the partial that is given: pairs `[(argument, partial), ...]` of Exprs.

    What `value` is made of is not looked at. An argument is any float Expr; derivatives go on through it. A partial is a number or an Expr
    of the value's type. A straight-through estimator, which rounds but has the derivative of the identity:

    >>> quantized = hl.with_gradient(hl.round(e), [(e, 1.0)])

    Raises CompileError for an argument that is no float, and for a partial of another type than the value.
    """
    node = to_node(value)
    pairs = list(partials.items() if isinstance(partials, Mapping) else partials)
    if not node.type.is_float():
        raise user_error(f"with_gradient: the value is {node.type}; only floats have derivatives")
    args = [to_node(a) for a, _ in pairs]
    rates = [const(node.type, p) if literal(p) is not None else to_node(p) for _, p in pairs]
    for i, (a, p) in enumerate(zip(args, rates)):
        if not a.type.is_float() or p.type is not node.type:
            raise user_error(f"with_gradient: argument {i + 1} is {a.type} and its partial {p.type}; both have to be floats, the partial "
                             f"of the value's type, {node.type}")

    def hook(adjoint: Expr, result: Expr, value: Expr, *rest: Expr) -> tuple[Expr | None, ...]:
        given, by = rest[:len(rest) // 2], rest[len(rest) // 2:]
        return (None, *(cast(a.type(), adjoint * p) for a, p in zip(given, by)), *(None for _ in by))

    return _marked("with_gradient", node, [*args, *rates], hook)


class CustomGradient:
    """A function of Exprs or of Funcs with a gradient rule of its own; made by `custom_gradient`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._hook: Hook | None = None
        functools.update_wrapper(self, function)

    def backward(self, hook: Hook) -> Hook:
        """Register the rule: `hook(adjoint, result, *args)` gives the adjoint of each argument, None for those without. Also a decorator.

        For a function of Exprs all of them are Exprs (`adjoint` and `result` tuples of them if it returns several). For one of Funcs
        `adjoint` and `result` are Funcs (tuples of Funcs if it returns several); it gives for a Func or image a Func over the same
        dimensions, for a Param or other Expr an Expr or a Func without dimensions.
        """
        self._hook = hook
        return hook

    def _rule(self) -> Hook:
        if self._hook is None:
            raise user_error(f"The function {self._function.__name__} is a custom_gradient, but has no rule; register one: "
                             f"@{self._function.__name__}.backward")
        return self._hook

    def _ask(self, *given: Any) -> Any:
        return ask(self._rule(), f"The gradient rule of {self._function.__name__}()", "adjoint, result", *given)

    def _of_exprs(self, adjoint: Any, result: Any, value: Any, *args: Any) -> tuple[Any, ...]:
        given = self._ask(adjoint, result, *args)
        parts = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        return (None, *parts)

    def _of_several(self, name: str, values: Sequence[n.Expr], args: Sequence[n.Expr]) -> tuple[Expr, ...]:
        """The results of a function of Exprs that returns several. A rule is linear in the adjoints: it is asked for one result at a time,
        the others being 0."""
        count = len(values)

        def hook_of(i: int) -> Hook:
            def hook(adjoint: Expr, result: Expr, value: Expr, *rest: Expr) -> tuple[Any, ...]:
                results, given = rest[:count], rest[count:]
                adjoints = tuple(adjoint if j == i else Expr.of(const(r.type(), 0)) for j, r in enumerate(results))
                parts = self._ask(adjoints, results, *given)
                return (None, *[None] * count, *(parts if isinstance(parts, (tuple, list)) else (parts,)))
            return hook

        return tuple(
            _marked(name, v, [*values, *args], hook_of(i), inside=True) if v.type.is_float() else Expr.of(v) for i, v in enumerate(values)
        )

    def _of_funcs(self, *given: Any) -> Any:
        return self._ask(*given)

    def __call__(self, *args: Any) -> Any:
        """The value, with the rule attached."""
        name = self._function.__name__
        exprs = all(map(convertible, args))
        value = self._function(*(a if literal(a) is not None or not exprs else to_expr(a) for a in args))
        results = list(value) if isinstance(value, (tuple, list)) else [value]
        if results and all(isinstance(r, Func) for r in results):
            return self._funcs(name, results, args, isinstance(value, (tuple, list)))
        if not exprs:
            raise user_error(f"custom_gradient: {name}() is given Funcs or images, so it has to return a Func or a tuple of Funcs, not "
                             f"{value!r}")
        nodes = list(map(to_node, args))
        if is_tuple_like(value):
            return self._of_several(name, list(map(to_node, to_tuple(value))), nodes)
        return _marked(name, to_node(value), nodes, self._of_exprs, inside=True)

    def _funcs(self, name: str, results: Sequence[Func], args: Sequence[Any], several: bool) -> Any:
        taken = {a.function for a in args if isinstance(a, Func)}
        outs: list[Func] = []
        for f in results:
            if not f.defined():
                raise user_error(f"custom_gradient: {name}() returned Func {f.name()}, which has no definition")
            own = f.function.gradient is None and f.function not in taken
            outs.append(f if own else wrapped(f))
            taken.add(outs[-1].function)
        rule = FuncRule(name, user_location(), tuple(f.function for f in outs), tuple(args), self._of_funcs)
        for f in outs:
            f.function.gradient = rule
        return tuple(outs) if several else outs[0]


def custom_gradient(function: Callable[..., Any]) -> CustomGradient:
    """Decorator: give a function of Exprs, or of Funcs, a gradient rule of its own; the reverse pass does not look inside.

    >>> @hl.custom_gradient
    ... def softplus(x):
    ...     return hl.log(1 + hl.exp(x))
    >>> @softplus.backward
    ... def _(adjoint, result, x):
    ...     return adjoint / (1 + hl.exp(-x))

    What it returns decides: an Expr or a tuple of Exprs, or a Func or tuple of Funcs. Arguments of the latter may be Funcs, images (Buffer,
    ImageParam), Params, Exprs without Vars, and anything else, which is passed on. What the derivative should reach has to be an argument.
    """
    return CustomGradient(function)
