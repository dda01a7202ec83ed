"""Funcs whose every value is relied upon, also those that only the excess of a tail reads.

Before: stages of which RoundUp and ShiftInwards compute more than is asked for. After: the names of Funcs that must be computed for that
excess, too. Of all others the excess reads what happens to be in memory, and what it makes of it nobody reads: asking for more would ask
more of the inputs, which Halide does not. Relied upon are values that limit an index, values given to a C function of the user's or to
require(), and what these follow from.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir import nodes as n
from ..ir.interval import bounds_of_expr
from ..ir.interval_type import FuncValues
from ..ir.intrinsics import ExternFunction
from ..ir.traverse import nodes_of
from .environment import Environment, callees, definition_roots


def _stored(e: n.Expr | Iterable[n.Expr]) -> set[str]:
    """The Funcs that an expression reads."""
    return {c.name for c in nodes_of(e, n.Call) if c.call_type is n.CallType.Halide}


def _relied_on(roots: Iterable[n.Expr], values: FuncValues) -> set[str]:
    """Funcs whose values limit an index somewhere in `roots`, or leave the language."""
    found: set[str] = set()
    for c in nodes_of(roots, n.Call):
        if c.call_type in (n.CallType.Halide, n.CallType.Image):
            for index in c.args:
                if (names := _stored(index)) and bounds_of_expr(index, {}, values) != bounds_of_expr(index, {}, {}):
                    found |= names
        elif c.name == "require" or isinstance(c.func, ExternFunction) and not c.func.builtin:
            found |= _stored(c.args)
    return found


def trusted_values(env: Environment, values: FuncValues) -> set[str]:
    """The names of such Funcs."""
    found: set[str] = set()
    for f in env.values():
        for d in f.stages():
            roots = definition_roots(d)
            if any(root.mask & n.Call.bit for root in roots):
                written = n.Call(f.types[0], f.name, d.args, n.CallType.Halide)  # where a scatter writes is an index, too
                found |= _relied_on((*roots, written), values) - {f.name}
    found &= env.keys()
    stack = list(found)
    while stack:
        for callee in callees(env[stack.pop()]):
            if callee.name not in found and callee.name in env:
                found.add(callee.name)
                stack.append(callee.name)
    return found
