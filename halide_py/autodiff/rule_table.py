"""The table of gradient rules, and what the rules that come with the language are written with.

A hook takes (adjoint, result, *arguments), all Exprs, and returns the adjoint of each argument: one Expr for one argument, else a tuple;
None for an argument it is not differentiable in. `select(c, a, 0)` as an adjoint means a where c holds and nothing elsewhere; the sweep
keeps c as a condition instead of multiplying by its zero. The hooks of intrinsics and C functions stand in their rows of `ir.intrinsics`;
those of node kinds in `KINDS`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.build import const
from ..ir.intrinsics import EXTERNS, INTRINSICS, ExternFunction, Intrinsic, math_call
from ..lang.expr import Expr
from ..lang.ops import select

Hook = Callable[..., Any]
KINDS: dict[type[n.Expr], Hook] = {}


def ask(hook: Hook, title: str, first: str, *given: Any) -> Any:
    """What a user's rule says. `first` names what it is given in front of the arguments. Raises CompileError, which begins with `title`,
    for a rule that takes another number of them."""
    try:
        inspect.signature(hook).bind(*given)
    except TypeError:
        raise CompileError(f"{title} takes {inspect.signature(hook)}, but is given {len(given)}: {first}, then each "
                           f"argument{place_of(hook)}") from None
    except ValueError:  # a function of a C module, which does not say what it takes
        pass
    return hook(*given)


def place_of(hook: Hook) -> str:
    """Where a rule stands, for the end of a message."""
    code = getattr(hook, "__code__", None)
    return f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""


def kind(*kinds: type[n.Expr]) -> Callable[[Hook], Hook]:
    """Decorator: the rule of node kinds."""
    def add(hook: Hook) -> Hook:
        KINDS.update(dict.fromkeys(kinds, hook))
        return hook
    return add


def operation(names: str) -> Callable[[Hook], Hook]:
    """Decorator: the rule of intrinsics and built-in math functions, unless the user was there first."""
    def add(hook: Hook) -> Hook:
        for name in names.split():
            for row in rows_named(name):
                row.gradient = row.gradient or hook
        return hook
    return add


def rows_named(name: str) -> list[Intrinsic | ExternFunction]:
    """The rows of the table of that name: an intrinsic, and a function for each signature."""
    found: list[Intrinsic | ExternFunction] = [INTRINSICS[name]] if name in INTRINSICS else []
    return found + [row for (other, _), row in EXTERNS.items() if other == name]


def number(value: float, like: Any) -> Expr:
    """A constant of the type of an Expr."""
    return Expr.of(const(like.type(), value))


def call(name: str, *args: Expr) -> Expr:
    """A built-in math function at the type of its arguments."""
    return Expr.of(math_call(name, *(a.as_node() for a in args)))


def where(condition: Expr, adjoint: Any) -> Expr:
    """`adjoint` where the condition holds, nothing elsewhere."""
    return select(condition, adjoint, number(0, adjoint))  # type: ignore[no-any-return]
