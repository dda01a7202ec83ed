"""The symbols that describe storage, in one place: the shape fields of buffer arguments and the runtime calls on them.

An argument `p` is `p.buffer` (a handle to its `halide_buffer_t`), `p` (its host pointer), `p.min.0`, `p.extent.0`,
`p.stride.0`, ... and `p.offset`, the flat index of coordinate zero: min.0 * stride.0 + min.1 * stride.1 + ...
"""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.parameter import Parameter
from ..ir.types import BOOL, INT32, INT64, Handle, Type

HANDLE = Handle()
IS_BOUNDS_QUERY = "_halide_buffer_is_bounds_query"


def buffer_handle(name: str, param: Parameter | None = None) -> n.Expr:
    """The `halide_buffer_t *` of argument `name`."""
    return n.Variable(HANDLE, f"{name}.buffer", param)


def field(name: str, what: str, d: int, param: Parameter | None = None) -> n.Expr:
    """Variable `name.what.d`; `what` is min, extent or stride."""
    return n.Variable(INT32, f"{name}.{what}.{d}", param)


def constraint(param: Parameter | None, what: str, d: int) -> n.Expr | None:
    """What the user promised about a field of dimension `d`, None if nothing."""
    if param is None or d >= len(param.dims):
        return None
    value = getattr(param.dims[d], what)
    return value if isinstance(value, n.Expr) else None


def known_field(name: str, what: str, d: int, param: Parameter | None) -> n.Expr:
    """The field as the checked part of the pipeline may use it: the constraint if that is a constant, else the Variable."""
    promised = constraint(param, what, d)
    return promised if promised is not None and b.as_int(promised) is not None else field(name, what, d, param)


def offset(name: str, dimensions: int, param: Parameter | None) -> n.Expr:
    """The value of `name.offset`, an int64."""
    total: n.Expr = b.const(INT64, 0)
    for d in range(dimensions):
        low, stride = (b.cast(INT64, known_field(name, what, d, param)) for what in ("min", "stride"))
        total = b.add(total, b.mul(low, stride))
    return total


def runtime_call(result: Type, name: str, *args: n.Expr) -> n.Expr:
    """A call of the runtime: an error reporter or a buffer accessor."""
    return n.Call(result, name, args, n.CallType.Extern)


def error(name: str, *args: n.Expr) -> n.Expr:
    """The call that reports an error and gives its code, for an Assert."""
    return runtime_call(INT32, f"halide_error_{name}", *args)


def checked(what: str, *args: n.Expr) -> n.Stmt:
    """Leave the pipeline with the code that the runtime's check of that name gives, unless it is 0."""
    code = runtime_call(INT32, f"hl_check_{what}", *args)
    return n.Assert(n.EQ(code, b.i32(0)), code)


def is_bounds_query(name: str, param: Parameter | None = None) -> n.Expr:
    """Whether the caller passed the buffer without data, to learn its shape."""
    return runtime_call(BOOL, IS_BOUNDS_QUERY, buffer_handle(name, param))
