"""BoundaryConditions: Funcs that continue an image beyond its edges. For ABCD: repeat_edge AAABCDDD, constant_exterior, repeat_image
CDABCDAB,
mirror_image BAABCDDC, mirror_interior CBABCDCB.

`f` is an ImageParam, a Buffer (their bounds are used), or any of these or a Func with `bounds`, a list of (min, extent), one a dimension;
a dimension
whose bounds are undefined Exprs, or that has none, is left alone. All clamp the access, so nothing outside is ever read. The coordinates
that
need no change are marked `likely`, so loops over the interior carry no boundary code. Source: Halide's BoundaryConditions.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import user_error
from ..ir import build as b
from ..ir import nodes as n
from ..ir.build import likely
from ..ir.types import INT32
from . import definitions
from .expr import Expr, to_expr
from .func import Func
from .param import image_element
from .promotion import convert
from .rdom import Range
from .tuples import is_tuple_like, to_tuple
from .var import Var

Limits = tuple[n.Expr, n.Expr]  # min, extent
Coordinate = Callable[[n.Expr, n.Expr, n.Expr], n.Expr]


def _image_limits(f: Any) -> list[Limits | None]:
    """The bounds of an ImageParam or Buffer: constraints where there are some, else the symbols of its shape."""
    p = f.param
    out: list[Limits | None] = []
    for d in range(p.dimensions):
        low, extent = p.dims[d].min, p.dims[d].extent
        out.append((low if low is not None else n.Variable(INT32, f"{p.name}.min.{d}", p),
                    extent if extent is not None else n.Variable(INT32, f"{p.name}.extent.{d}", p)))
    return out


def _given_limits(name: str, f: Any, dims: int, bounds: Sequence[Any]) -> list[Limits | None]:
    if len(bounds) > dims:
        raise user_error(f"{name} called with more bounds ({len(bounds)}) than dimensions ({dims}) {f.name()} has.")
    out: list[Limits | None] = []
    for i, r in enumerate(map(Range.of, bounds)):
        if r.min.defined() != r.extent.defined():
            raise user_error(f"Partially undefined bounds for dimension {i} of {f.name()} in {name}: give both min and extent, or neither")
        out.append((convert(INT32, r.min.as_node()), convert(INT32, r.extent.as_node())) if r.min.defined() else None)
    return out + [None] * (dims - len(out))


class _Source:
    """What is continued: its dimensions, and their limits."""

    def __init__(self, name: str, f: Any, bounds: Sequence[Any] | None) -> None:
        if not (isinstance(f, Func) or hasattr(f, "param")):
            raise TypeError(f"{name}() takes an ImageParam, a Buffer or a Func, not {f!r}")
        if bounds is None and isinstance(f, Func):
            raise user_error(f"{name}() of Func {f.name()} needs bounds: a list of (min, extent), one a dimension")
        self.name, self.f, dims = name, f, f.dimensions()
        self.limits = _image_limits(f) if bounds is None else _given_limits(name, f, dims, bounds)
        self.args = f.args() if isinstance(f, Func) else [Var.implicit(i) for i in range(dims)]

    def at(self, coordinate: Coordinate) -> list[Expr]:
        """The source's values where `coordinate(x, min, extent)` says."""
        places = [a if limit is None else Expr.of(coordinate(a.as_node(), *limit)) for a, limit in zip(self.args, self.limits)]
        if not isinstance(self.f, Func):
            return [image_element(self.f.param, places)]
        ref = self.f[places]
        return [Expr.of(ref.element(i)) for i in range(self.f.outputs())]

    def func(self, values: Sequence[Expr]) -> Func:
        """A Func of the source's dimensions with these values."""
        out = Func(self.name)
        definitions.define(out.function, self.args, values)
        return out


def _inside_clamped(x: n.Expr, low: n.Expr, extent: n.Expr) -> n.Expr:
    """x in the steady state, the nearest coordinate inside otherwise."""
    return n.Max(n.Min(likely(x), b.sub(b.add(low, extent), b.i32(1))), low)


def _outside(x: n.Expr, low: n.Expr, extent: n.Expr) -> n.Expr:
    return n.Or(n.LT(x, low), n.GE(x, b.add(low, extent)))


def _wherever_outside(x: n.Expr, low: n.Expr, extent: n.Expr, other: n.Expr) -> n.Expr:
    """x inside, `other` outside. The whole of the inside is likely, so that partitioning drops both the select and the clamp."""
    return n.Select(_outside(x, low, extent), other, likely(_inside_clamped(x, low, extent)))


def repeat_edge(f: Any, bounds: Sequence[Any] | None = None) -> Func:
    """The nearest element inside: AAABCDDD."""
    source = _Source("repeat_edge", f, bounds)
    return source.func(source.at(_inside_clamped))


def constant_exterior(f: Any, exterior: Any, bounds: Sequence[Any] | None = None) -> Func:
    """`exterior` (an Expr of the source's type, or as many as a Func has values) everywhere outside."""
    source = _Source("constant_exterior", f, bounds)
    outer = to_tuple(exterior) if is_tuple_like(exterior) else [to_expr(exterior)]
    values = source.at(_inside_clamped)
    if len(outer) != len(values):
        raise user_error(f"constant_exterior() got {len(outer)} exterior values for the {len(values)} of {f.name()}")
    outside: n.Expr = b.FALSE
    for a, limit in zip(source.args, source.limits):
        if limit is not None:
            outside = b.or_(outside, _outside(a.as_node(), *limit))
    chosen = []
    for v, o in zip(values, outer):
        inner, other = v.as_node(), o.as_node()
        value = b.as_int(other)
        if value is not None and inner.type.is_int_or_uint() and not inner.type.can_represent_value(value):
            raise user_error(f"The exterior value {value} of constant_exterior() does not fit {inner.type}, the type of {f.name()}; cast "
                             "one of them")
        if value is not None or inner.type.is_float() and b.as_const(other) is not None:
            other = convert(inner.type, other)
        if other.type is not inner.type:
            raise user_error(f"The exterior value of constant_exterior() has type {other.type}, but {f.name()} has type {inner.type}; cast "
                             "it")
        chosen.append(Expr.of(b.select(outside, other, likely(inner))))
    return source.func(chosen)


def repeat_image(f: Any, bounds: Sequence[Any] | None = None) -> Func:
    """The image again and again: CDABCDAB."""
    def coordinate(x: n.Expr, low: n.Expr, extent: n.Expr) -> n.Expr:
        return _wherever_outside(x, low, extent, b.add(b.mod(b.sub(x, low), extent), low))

    source = _Source("repeat_image", f, bounds)
    return source.func(source.at(coordinate))


def mirror_image(f: Any, bounds: Sequence[Any] | None = None) -> Func:
    """Mirrored with the edge doubled: BAABCDDC."""
    def coordinate(x: n.Expr, low: n.Expr, extent: n.Expr) -> n.Expr:
        period = b.mul(extent, b.i32(2))
        c = b.mod(b.sub(x, low), period)
        c = n.Select(n.GE(c, extent), b.sub(b.sub(period, b.i32(1)), c), c)
        c = n.Max(n.Min(b.add(c, low), b.sub(b.add(low, extent), b.i32(1))), low)
        return _wherever_outside(x, low, extent, c)

    source = _Source("mirror_image", f, bounds)
    return source.func(source.at(coordinate))


def mirror_interior(f: Any, bounds: Sequence[Any] | None = None) -> Func:
    """Mirrored about the edge element: CBABCDCB."""
    def coordinate(x: n.Expr, low: n.Expr, extent: n.Expr) -> n.Expr:
        last = b.sub(extent, b.i32(1))
        c = b.sub(b.mod(b.sub(x, low), b.mul(last, b.i32(2))), last)
        c = b.sub(last, n.Max(c, b.sub(b.i32(0), c)))
        c = n.Max(n.Min(b.add(c, low), b.add(low, last)), low)
        return _wherever_outside(x, low, extent, c)

    source = _Source("mirror_interior", f, bounds)
    return source.func(source.at(coordinate))
