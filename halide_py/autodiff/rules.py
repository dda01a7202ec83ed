"""Finding the gradient rule of a node, replacing rules, and other rules for a while. What a rule is, `rule_table` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..errors import CompileError, user_error
from ..ir import nodes as n
from ..ir.intrinsics import EXTERNS, INTRINSICS, ExternFunction
from ..ir.types import Type
from ..lang.extern import ExternFunctionHandle
from . import math_rules, node_rules
from .rule_table import KINDS, Hook, rows_named

RULE_MODULES = (math_rules, node_rules)  # imported for the rules they put into the table
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
        raise user_error("gradient_rules: a rule is for a function, by name (\"exp\"), by name and argument types, or as hl.extern() gave "
                         f"it; not {given!r}")
    if not found:
        raise user_error(f"gradient_rules: there is no function {given!r}; names are those of hl.extern() prototypes and of built-in "
                         "functions")
    return found


@contextmanager
def gradient_rules(rules: Mapping[Any, Hook]) -> Iterator[None]:
    """Other gradient rules inside a `with` block: `with hl.gradient_rules({"exp": hook, my_extern: other}): d =
    hl.propagate_adjoints(loss)`.

    Keys are names of functions (all signatures), (name, argument types), or what `hl.extern` returned. A hook takes (adjoint, result,
    *arguments) and returns the adjoint of each argument, as for `ExternFunctionHandle.gradient`. Raises CompileError for an unknown
    function.
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


def registered(row: Any) -> Hook | None:
    """The hook of a row of the table, None if it has none."""
    return next((o[row] for o in reversed(_OVERRIDES) if row in o), getattr(row, "gradient", None))


def find_rule(e: n.Expr, where: str) -> Hook:
    """The hook for a node. `where` names the definition it occurs in. Raises CompileError, with the line that registers a rule, when there
    is none."""
    if not isinstance(e, n.Call):
        rule = KINDS.get(type(e))
        if rule is None:
            raise CompileError(f"{type(e).__name__} of type {e.type} in {where} has no gradient rule; hl.stop_gradient(...) around it "
                               "makes it a constant")
        return rule
    row: Any = e.func if e.func is not None else INTRINSICS.get(e.name)
    found = registered(row)
    if found is None:
        raise CompileError(_no_rule(e, row, where))
    return found


def _no_rule(e: n.Call, row: Any, where: str) -> str:
    if isinstance(row, ExternFunction) and not row.builtin:
        line = f"{row.name}.gradient(lambda adjoint, result, {', '.join(row.names())}: ...)"
        if row.source:
            line += ' (or let its source say: hl.extern(..., gradient="auto"))'
        return (f"The C function {row.name} (`{row.prototype}`) is called in {where}, but has no gradient rule. Register one before "
                f"propagate_adjoints(), with what hl.extern() returned: {line}. It returns the adjoint of each argument, None where it is "
                f"not differentiable ({row.where})")
    names = ", ".join(f"a{i}" if len(e.args) > 1 else "x" for i in range(len(e.args)))
    return (f"{e.name}() is called in {where}, but has no gradient rule. Register one: hl.register_gradient({e.name!r}, lambda adjoint, "
            f"result, {names}: ...), or make it a constant: hl.stop_gradient(...)")
