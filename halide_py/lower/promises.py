"""Promises that are checked: with the target feature `check_unsafe_promises`, each `unsafe_promise_clamped` of the user asks for what it
promises where it is computed.

Before: `unsafe_promise_clamped(e, low, high)` in definitions. After: `unsafe_promise_clamped(require(low <= e && e <= high, e), low,
high)`, so that bounds still rely on it. Promises that lowering makes are true by construction and come later. Behaviour: Halide's feature
of that name, src/UnsafePromises.cpp.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Definition, Function
from ..ir.intrinsics import intrinsic
from ..ir.printer import to_text
from ..ir.traverse import Rec, nodes_of, rewrite
from ..ir.types import INT32, Handle
from .environment import Environment

_PROMISE = "unsafe_promise_clamped"


Asked = tuple[n.Expr, tuple[n.Expr, ...]]  # a condition, and the parts of its message


def _asked(c: n.Call) -> Asked:
    """What a promise comes down to."""
    e, low, high = c.args
    ends = [(low, e, e.type.min_value()), (e, high, e.type.max_value())]
    kept = b.all_of(n.LE(x, y) for x, y, open_end in ends if b.as_const(y if x is e else x) != open_end)
    return kept, (b.string(f"from {_PROMISE}, of"), e)


def _is_promise(e: n.Node) -> bool:
    return isinstance(e, n.Call) and e.name == _PROMISE and e.call_type is n.CallType.PureIntrinsic


def _call(c: n.Call, rec: Rec) -> n.Expr:
    new: n.Call = c.map_children(rec)
    if not _is_promise(c):
        return new
    kept, message = _asked(new)
    error = n.Call(INT32, "halide_error_requirement_failed", (b.string(to_text(kept)), intrinsic("stringify", Handle(), *message)),
                   n.CallType.Extern)
    return intrinsic(_PROMISE, new.type, intrinsic("require", new.type, kept, new.args[0], error), *new.args[1:])


def _checked(e: n.Expr) -> n.Expr:
    return rewrite(e, {n.Call: _call}, n.symbol_bit(_PROMISE))


def _definition(d: Definition) -> Definition:
    values, args = tuple(map(_checked, d.values)), tuple(map(_checked, d.args))
    return dataclasses.replace(d, values=values, args=args, predicate=_checked(d.predicate))


def _function(f: Function) -> Function:
    assert f.pure is not None
    extern = f.extern and dataclasses.replace(f.extern, args=tuple(_checked(a) if isinstance(a, n.Expr) else a for a in f.extern.args))
    return dataclasses.replace(f, pure=_definition(f.pure), updates=[_definition(u) for u in f.updates], extern=extern)


def check_promises(env: Environment, requirements: Sequence[Asked]) -> tuple[Environment, list[Asked]]:
    """The environment with every promise in its definitions checked; the requirements with those that they and the bounds of reduction
    domains make, which are asked for before anything runs. Raises CompileError for those that read an image."""
    rdoms = [d.rdom for f in env.values() for d in f.stages() if d.rdom]
    domains = [e for r in rdoms for v in r.variables for e in (v.min, v.extent) if any(map(_is_promise, nodes_of(e, n.Call)))]
    for c in nodes_of(domains, n.Call):
        if c.call_type is n.CallType.Image:
            raise CompileError(f"{_PROMISE} in the bounds of a reduction domain that read {c.name} cannot be checked; compile without "
                               "check_unsafe_promises, or promise it of parameters")
    promises = [_asked(c) for c in nodes_of([*domains, *(c for c, _ in requirements)], n.Call) if _is_promise(c)]
    return {name: _function(f) for name, f in env.items()}, [*promises, *requirements]
