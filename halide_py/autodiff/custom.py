"""Rules that users attach to functions of Exprs: `custom_gradient` and `stop_gradient`.

Both mark the value by a call of an intrinsic that is the identity, and that lowering drops: `custom_gradient(result, argument, ...)` has its rule in
the row it refers to, like any other function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..errors import user_error
from ..ir import nodes as n
from ..ir.intrinsics import ExternFunction, intrinsic
from ..lang.expr import Expr, to_expr, to_node


def stop_gradient(e: Any) -> Expr:
    """`e`, as a constant to the derivative: nothing flows back through it."""
    node = to_node(e)
    return Expr.of(intrinsic("stop_gradient", node.type, node))


class CustomGradient:
    """A function of Exprs with a gradient rule of its own; made by `custom_gradient`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._row: ExternFunction | None = None
        functools.update_wrapper(self, function)

    def backward(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        """Register the rule: `hook(adjoint, result, *args)` gives the adjoint of each argument, None for those without. Also a decorator."""
        self._hook = hook
        return hook

    def _gradient(self, adjoint: Any, result: Any, value: Any, *args: Any) -> tuple[Any, ...]:
        hook = getattr(self, "_hook", None)
        if hook is None:
            raise user_error(f"The function {self._function.__name__} is a custom_gradient, but has no rule; register one: @{self._function.__name__}.backward")
        given = hook(adjoint, result, *args)
        parts = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        return (None, *parts)

    def __call__(self, *args: Any) -> Expr:
        """The value, with the rule attached."""
        given = [to_expr(a) for a in args]
        value = to_node(self._function(*given))
        nodes = [g.as_node() for g in given]
        name = self._function.__name__
        row = ExternFunction(name, value.type, (value.type, *(a.type for a in nodes)), name, gradient=self._gradient)
        return Expr.of(n.Call(value.type, "custom_gradient", (value, *nodes), n.CallType.PureIntrinsic, row))


def custom_gradient(function: Callable[..., Any]) -> CustomGradient:
    """Decorator: give a function of Exprs a gradient rule of its own; the reverse pass does not look inside.

    >>> @hl.custom_gradient
    ... def softplus(x):
    ...     return hl.log(1 + hl.exp(x))
    >>> @softplus.backward
    ... def _(adjoint, result, x):
    ...     return adjoint / (1 + hl.exp(-x))
    """
    return CustomGradient(function)
