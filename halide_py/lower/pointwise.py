"""The dimensions of a Function that all its stages treat point by point."""

from __future__ import annotations

from ..ir import nodes as n
from ..ir.function import Function
from ..ir.traverse import nodes_of


def pointwise_dims(f: Function) -> list[str]:
    """The dimensions that every stage of `f` writes and reads back at the pure Var itself."""
    dims = []
    for d, v in enumerate(f.args if f.extern is None else ()):
        here = [u.args[d] for u in f.updates]
        for u in f.updates:
            calls = nodes_of([*u.values, *u.args, u.predicate], n.Call)
            here += [c.args[d] for c in calls if c.name == f.name and c.call_type is n.CallType.Halide]
        if all(isinstance(a, n.Variable) and a.name == v for a in here):
            dims.append(v)
    return dims
