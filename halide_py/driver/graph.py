"""Walks over a pipeline as its user built it: the expressions of a Function, the parameters a set of outputs depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.parameter import Parameter
from ..ir.traverse import nodes_of
from ..lower.environment import environment

Requirement = tuple[n.Expr, tuple[n.Expr, ...]]


def expressions(x: Any) -> Iterator[n.Expr]:
    """Every expression in a definition, a schedule or what is made of them; Functions and Parameters are not entered."""
    if isinstance(x, n.Expr):
        yield x
    elif isinstance(x, (list, tuple)):
        for one in x:
            yield from expressions(one)
    elif dataclasses.is_dataclass(x) and not isinstance(x, (Function, Parameter, type)):
        for field in dataclasses.fields(x):
            yield from expressions(getattr(x, field.name))


def function_expressions(f: Function) -> Iterator[n.Expr]:
    """The expressions of the definitions and schedules of one Function."""
    return expressions([f.stages(), f.schedule])


def constraint_expressions(p: Parameter) -> Iterator[n.Expr]:
    """The expressions that promise something about a parameter."""
    for e in (p.minimum, p.maximum, *(e for d in p.dims for e in (d.min, d.extent, d.stride))):
        if e is not None:
            yield e


def parameters(outputs: Sequence[Function], requirements: Sequence[Requirement] = ()) -> list[Parameter]:
    """The inputs of a pipeline: buffers by name, then scalars by name. Raises CompileError for two of one name."""
    own = {p for f in outputs for p in f.output_params}
    found: dict[str, Parameter] = {}
    entered: set[Parameter] = set()
    work = [e for f in environment(outputs).values() for e in function_expressions(f)]
    work += [*expressions(list(requirements)), *(e for p in own for e in constraint_expressions(p))]
    while work:
        fresh = [p for p in dict.fromkeys(e.param for e in nodes_of(work, (n.Variable, n.Call))) if p is not None and p not in own]
        work = []
        for p in fresh:
            known = found.setdefault(p.name, p)
            if known is not p:
                raise CompileError(f"Two different parameters or buffers of the pipeline are named {p.name}; give them distinct names")
            if p not in entered:
                entered.add(p)
                work += constraint_expressions(p)
    return sorted(found.values(), key=lambda p: (not p.is_buffer, p.name))
