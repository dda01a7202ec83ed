"""The gradient rules: one table of vector-Jacobian products for node kinds, intrinsics, built-in math and the user's C functions.

A hook takes (adjoint, result, *arguments), all Exprs, and returns the adjoint of each argument: one Expr for one argument, else a tuple;
None for an argument it is not differentiable in. `select(c, a, 0)` as an adjoint means a where c holds and nothing elsewhere; the sweep keeps c
as a condition instead of multiplying by its zero. The hooks of intrinsics and C functions stand in their rows of
`ir.intrinsics`; those of node kinds in `KINDS`. Exactly at a kink, `max(a, b)` and `min(a, b)` give the adjoint to a, and abs() gives none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..errors import CompileError, user_error
from ..ir import nodes as n
from ..ir.build import const
from ..ir.intrinsics import EXTERNS, INTRINSICS, ExternFunction, Intrinsic, math_call
from ..ir.types import Type
from ..lang.expr import Expr
from ..lang.extern import ExternFunctionHandle
from ..lang.ops import cast, select

Hook = Callable[..., Any]
KINDS: dict[type[n.Expr], Hook] = {}


def kind(*kinds: type[n.Expr]) -> Callable[[Hook], Hook]:
    """Decorator: the rule of node kinds."""
    def add(hook: Hook) -> Hook:
        KINDS.update(dict.fromkeys(kinds, hook))
        return hook
    return add


def operation(names: str) -> Callable[[Hook], Hook]:
    """Decorator: the rule of intrinsics and built-in math functions."""
    def add(hook: Hook) -> Hook:
        for name in names.split():
            for row in rows_named(name):
                row.gradient = hook
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


# ---------------------------------------------------------------------------------------------------------------
# Node kinds


@kind(n.Add)
def _add(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return adjoint, adjoint


@kind(n.Sub)
def _sub(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return adjoint, -adjoint


@kind(n.Mul)
def _mul(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return adjoint * b, adjoint * a


@kind(n.Div)
def _div(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return adjoint / b, -adjoint * result / b


@kind(n.Mod)
def _mod(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return adjoint, -adjoint * call("floor", a / b)


@kind(n.Max)
def _max(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return where(a >= b, adjoint), where(~(a >= b), adjoint)


@kind(n.Min)
def _min(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return where(a <= b, adjoint), where(~(a <= b), adjoint)


@kind(n.Select)
def _select(adjoint: Any, result: Any, condition: Any, a: Any, b: Any) -> Any:
    return None, where(condition, adjoint), where(~condition, adjoint)


@kind(n.Cast)
def _cast(adjoint: Any, result: Any, a: Any) -> Any:
    return cast(a.type(), adjoint) if a.type().is_float() else None


# ---------------------------------------------------------------------------------------------------------------
# Intrinsics


@operation("likely likely_if_innermost strict_float")
def _identity(adjoint: Any, result: Any, a: Any) -> Any:
    return adjoint


@operation("print memoize_tag unsafe_promise_clamped custom_gradient")
def _first(adjoint: Any, result: Any, a: Any, *rest: Any) -> Any:
    return (adjoint, *[None] * len(rest)) if rest else adjoint


@operation("return_second print_when require")
def _second(adjoint: Any, result: Any, first: Any, a: Any, *rest: Any) -> Any:
    return (None, adjoint, *[None] * len(rest))


@operation("if_then_else")
def _if_then_else(adjoint: Any, result: Any, condition: Any, *values: Any) -> Any:
    return (None, *(where(c, adjoint) for c, _ in zip((condition, ~condition), values)))


@operation("mux")
def _mux(adjoint: Any, result: Any, index: Any, *values: Any) -> Any:
    last = len(values) - 1
    return (None, *(where(index == i, adjoint) for i in range(last)), where((index < 0) | (index >= last), adjoint))


@operation("abs")
def _abs(adjoint: Any, result: Any, a: Any) -> Any:
    return where(a != 0, select(a > 0, adjoint, -adjoint))


@operation("lerp")
def _lerp(adjoint: Any, result: Any, zero: Any, one: Any, weight: Any) -> Any:
    w, t = weight, zero.type()
    if not w.type().is_float():
        w = cast(t, w) / number(w.type().max_value(), zero)
    w = cast(t, w)
    by_weight = cast(weight.type(), adjoint * (one - zero)) if weight.type().is_float() else None
    return adjoint * (1 - w), adjoint * w, by_weight


@operation("saturating_cast")
def _saturating_cast(adjoint: Any, result: Any, a: Any) -> Any:
    return cast(a.type(), adjoint) if a.type().is_float() else None


@operation("widening_add")
def _widening_add(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return cast(a.type(), adjoint), cast(b.type(), adjoint)


@operation("widening_sub")
def _widening_sub(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return cast(a.type(), adjoint), cast(b.type(), -adjoint)


@operation("widening_mul")
def _widening_mul(adjoint: Any, result: Any, a: Any, b: Any) -> Any:
    return cast(a.type(), adjoint * cast(result.type(), b)), cast(b.type(), adjoint * cast(result.type(), a))


@operation("undef random stop_gradient floor ceil trunc round")
def _constant(adjoint: Any, result: Any, *args: Any) -> Any:
    return (None,) * len(args) if len(args) != 1 else None


# ---------------------------------------------------------------------------------------------------------------
# Built-in math


@operation("sin fast_sin")
def _sin(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * call("cos", x)


@operation("cos fast_cos")
def _cos(adjoint: Any, result: Any, x: Any) -> Any:
    return -adjoint * call("sin", x)


@operation("tan")
def _tan(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * (1 + result * result)


@operation("asin")
def _asin(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / call("sqrt", 1 - x * x)


@operation("acos")
def _acos(adjoint: Any, result: Any, x: Any) -> Any:
    return -adjoint / call("sqrt", 1 - x * x)


@operation("atan")
def _atan(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (1 + x * x)


@operation("sinh")
def _sinh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * call("cosh", x)


@operation("cosh")
def _cosh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * call("sinh", x)


@operation("tanh")
def _tanh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * (1 - result * result)


@operation("asinh")
def _asinh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / call("sqrt", x * x + 1)


@operation("acosh")
def _acosh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (call("sqrt", x - 1) * call("sqrt", x + 1))


@operation("atanh")
def _atanh(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (1 - x * x)


@operation("exp fast_exp")
def _exp(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * result


@operation("log fast_log")
def _log(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / x


@operation("sqrt")
def _sqrt(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint / (result + result)


@operation("erf")
def _erf(adjoint: Any, result: Any, x: Any) -> Any:
    return adjoint * call("exp", -x * x) * number(2 / math.sqrt(math.pi), x)


@operation("pow fast_pow")
def _pow(adjoint: Any, result: Any, x: Any, y: Any) -> Any:
    return where(y != 0, adjoint * y * call("pow", x, y - 1)), where(x != 0, adjoint * result * call("log", x))


@operation("atan2")
def _atan2(adjoint: Any, result: Any, y: Any, x: Any) -> Any:
    square = x * x + y * y
    return adjoint * x / square, -adjoint * y / square


@operation("hypot")
def _hypot(adjoint: Any, result: Any, x: Any, y: Any) -> Any:
    return where(result > 0, adjoint * x / result), where(result > 0, adjoint * y / result)


@operation("fast_inverse")
def _inverse(adjoint: Any, result: Any, x: Any) -> Any:
    return -adjoint * result * result


@operation("fast_inverse_sqrt")
def _inverse_sqrt(adjoint: Any, result: Any, x: Any) -> Any:
    return -adjoint * result * result * result / 2


# ---------------------------------------------------------------------------------------------------------------
# Finding rules, and other rules for a while

_OVERRIDES: list[dict[Any, Hook]] = []


def _keys(given: Any) -> list[Any]:
    """The table rows that a key of `gradient_rules` means."""
    if isinstance(given, ExternFunctionHandle):
        return [given.row]
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str) and all(isinstance(t, Type) for t in given[1]):
        row = EXTERNS.get((given[0], tuple(given[1])))
        found: list[Any] = [row] if row else []
    elif isinstance(given, str):
        found = list(rows_named(given))
    else:
        raise user_error(f"gradient_rules: a rule is for a function, by name (\"exp\"), by name and argument types, or as hl.extern() gave it; not {given!r}")
    if not found:
        raise user_error(f"gradient_rules: there is no function {given!r}; names are those of hl.extern() prototypes and of built-in functions")
    return found


@contextmanager
def gradient_rules(rules: Mapping[Any, Hook]) -> Iterator[None]:
    """Other gradient rules inside a `with` block: `with hl.gradient_rules({"exp": hook, my_extern: other}): d = hl.propagate_adjoints(loss)`.

    Keys are names of functions (all signatures), (name, argument types), or what `hl.extern` returned. A hook takes (adjoint, result, *arguments) and
    returns the adjoint of each argument, as for `ExternFunctionHandle.gradient`. Raises CompileError for an unknown function.
    """
    _OVERRIDES.append({key: hook for given, hook in rules.items() for key in _keys(given)})
    try:
        yield
    finally:
        _OVERRIDES.pop()


def register_gradient(function: Any, hook: Hook) -> Hook:
    """Replace the gradient rule of a function from now on; `function` is a key as for `gradient_rules`. Returns the hook."""
    for row in _keys(function):
        row.gradient = hook
    return hook


def find_rule(e: n.Expr, where: str) -> Hook:
    """The hook for a node. `where` names the definition it occurs in. Raises CompileError, with the line that registers a rule, when there is none."""
    if not isinstance(e, n.Call):
        rule = KINDS.get(type(e))
        if rule is None:
            raise CompileError(f"{type(e).__name__} of type {e.type} in {where} has no gradient rule; hl.stop_gradient(...) around it makes it a constant")
        return rule
    row: Any = e.func if e.func is not None else INTRINSICS.get(e.name)
    found: Hook | None = next((o[row] for o in reversed(_OVERRIDES) if row in o), getattr(row, "gradient", None))
    if found is None:
        raise CompileError(_no_rule(e, row, where))
    return found


def _no_rule(e: n.Call, row: Any, where: str) -> str:
    names = ", ".join(f"a{i}" if len(e.args) > 1 else "x" for i in range(len(e.args)))
    if isinstance(row, ExternFunction) and not row.builtin:
        line = f"{row.name}.gradient(lambda adjoint, result, {names}: ...)"
        return (f"The C function {row.name} (`{row.prototype}`) is called in {where}, but has no gradient rule. Register one before "
                f"propagate_adjoints(), with what hl.extern() returned: {line}. It returns the adjoint of each argument, None where it is not "
                f"differentiable ({row.where})")
    return (f"{e.name}() is called in {where}, but has no gradient rule. Register one: hl.register_gradient({e.name!r}, lambda adjoint, result, {names}: ...), "
            "or make it a constant: hl.stop_gradient(...)")
