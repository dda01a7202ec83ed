"""Estimates: what outputs, inputs and parameters will typically be, as users said with `set_estimate`; errors that show the line to write.

A size or value that is promised anyway (a constant bound, the shape of a buffer that is bound, the value of a Param) needs no estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.build import as_const, as_int, const, i32
from ..ir.function import Function
from ..ir.parameter import Parameter
from ..ir.simplify import simplify
from ..ir.traverse import nodes_of, rewrite

Span = tuple[int, int]  # first and last
EXAMPLE = 1024  # the extent in the line that an error shows


def buffer_dimension(p: Parameter, d: int) -> tuple[int | None, int | None]:
    """(min, extent) of dimension `d` of a buffer: the estimate, else what is promised, else the shape of the data that is bound."""
    dim = p.dims[d]
    low, extent = (
        as_int(simplify(e)) if e is not None else None
        for e in (
            dim.min_estimate if dim.min_estimate is not None else dim.min,
            dim.extent_estimate if dim.extent_estimate is not None else dim.extent,
        )
    )
    if p.buffer is not None:
        bound = p.buffer.dim(d)
        low, extent = bound.min() if low is None else low, bound.extent() if extent is None else extent
    return low, extent


def parameter_value(p: Parameter) -> int | float | None:
    """What a scalar parameter will be: its estimate, else its value, else its default."""
    if p.estimate is not None:
        return as_const(simplify(p.estimate))
    if p.value is not None:
        return p.value  # type: ignore[no-any-return]
    return None if p.default is None else as_const(p.default)


def _variable(v: n.Variable, rec: Callable[[n.Expr], n.Expr]) -> n.Expr:
    p = v.param
    if p is None:
        return v
    if not p.is_buffer:
        value = parameter_value(p)
        return v if value is None else const(v.type, value)
    what, _, d = v.name[len(p.name) + 1:].partition(".")
    if what not in ("min", "extent") or not d.isdigit():
        return v
    found = buffer_dimension(p, int(d))[what == "extent"]
    return v if found is None else i32(found)


def substitute_estimates(e: n.Expr) -> n.Expr:
    """`e` with parameters, and the mins and extents of buffers, replaced by what they are estimated to be, where that is known."""
    return rewrite(e, {n.Variable: _variable})


def with_estimates(e: n.Expr) -> n.Expr:
    """The same, simplified."""
    return simplify(substitute_estimates(e))


def output_estimates(f: Function) -> list[Span]:
    """The region of an output that is estimated. Raises CompileError naming the first dimension without an estimate."""
    spans = []
    for d, var in enumerate(f.args):
        low: int | None = None
        extent: int | None = None
        for bound in (*f.schedule.bounds, *f.schedule.estimates):  # of several the last counts, an estimate more than a promise
            if bound.var == var and bound.min is not None and bound.extent is not None:
                low, extent = as_int(with_estimates(bound.min)), as_int(with_estimates(bound.extent))
        if (low is None or extent is None) and f.output_params:
            low, extent = buffer_dimension(f.output_params[0], d)
        if low is None or extent is None or extent < 1:
            name = f.name.partition("$")[0]
            raise CompileError(f"Please provide a valid estimate for dimension {var} of output \"{f.name}\": an autoscheduler needs to "
                               f"know how large it typically is. For example: {name}.set_estimate({var}, 0, {EXAMPLE})")
        spans.append((low, low + extent - 1))
    return spans


def func_estimate(f: Function, d: int) -> Span | None:
    """What a user estimated dimension `d` of a Func, not an output, to be."""
    for bound in reversed(f.schedule.estimates):
        if bound.var == f.args[d] and bound.min is not None and bound.extent is not None:
            low, extent = as_int(with_estimates(bound.min)), as_int(with_estimates(bound.extent))
            if low is not None and extent is not None:
                return low, low + extent - 1
    return None


def check_inputs(expressions: Iterable[n.Expr]) -> None:
    """Raise CompileError naming the first input image, dimension of it, or parameter in a size that has no estimate."""
    for c in nodes_of(expressions, n.Call):
        p = c.param
        for d in range(p.dimensions if p is not None and c.call_type is n.CallType.Image else 0):
            assert p is not None
            missing = [what for what, found in zip(("min", "extent"), buffer_dimension(p, d)) if found is None]
            if missing:
                pairs = ", ".join(f"(0, {EXAMPLE})" for _ in range(p.dimensions))
                raise CompileError(f"Estimate of the {missing[0]} value of ImageParam \"{p.name}\" in dimension {d} is not specified: an "
                                   "autoscheduler needs to know how large inputs typically are. For example: "
                                   f"{p.name.partition('$')[0]}.set_estimates([{pairs}])")


def size_of(e: n.Expr, what: str) -> int:
    """A size that depends on parameters, as a number. Raises CompileError naming the parameter without an estimate."""
    value = as_int(with_estimates(e))
    if value is None:
        for v in nodes_of(e, n.Variable):
            if v.param is not None and not v.param.is_buffer and parameter_value(v.param) is None:
                raise CompileError(f"{what} depends on the Param \"{v.param.name}\", which has no estimate: an autoscheduler needs to know "
                                   f"what it typically is. For example: {v.param.name.partition('$')[0]}.set_estimate(8)")
        raise CompileError(f"{what} is not known before the pipeline runs, and an autoscheduler needs a number")
    return value
