"""BoundaryConditions: Funcs that continue an image beyond its edges. For ABCD: repeat_edge AAABCDDD, constant_exterior, repeat_image CDABCDAB,
mirror_image BAABCDDC, mirror_interior CBABCDCB.

`f` is an ImageParam, a Buffer (their bounds are used), or a Func with `bounds`, a list of (min, extent) a dimension; a dimension
whose bounds are undefined Exprs, or that has none, is left alone. All clamp the access, so nothing outside is ever read. The
coordinates that need no change are marked `likely`, so loops over the interior carry no boundary code.
"""

from __future__ import annotations

from typing import Any, Sequence

from ..errors import CompileError, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic
from ..ir.types import INT32
from .expr import Expr, to_expr
from .func import Func
from .ops import select
from .tuples import Tuple
from .var import Range, Var


def _source(name: str, f: Any, bounds: Any) -> tuple[Any, list[Var], list[tuple[n.Expr, n.Expr] | None]]:
    """What to call, its dimensions, and per dimension (min, extent) or None."""
    dims = f.dimensions()
    if bounds is None:
        if isinstance(f, Func):
            raise CompileError(f"BoundaryConditions.{name}() of Func {f.name()} needs bounds: a list of (min, extent), one a dimension ({user_location()})")
        p = f.param
        limits: list[tuple[n.Expr, n.Expr] | None] = []
        for d in range(dims):
            low, extent = p.dims[d].min, p.dims[d].extent
            limits.append((low if low is not None else n.Variable(INT32, f"{p.name}.min.{d}", p),
                           extent if extent is not None else n.Variable(INT32, f"{p.name}.extent.{d}", p)))
    else:
        if len(bounds) > dims:
            raise CompileError(f"BoundaryConditions.{name}() got {len(bounds)} bounds for {dims} dimensions ({user_location()})")
        limits = []
        for r in bounds:
            r = r if isinstance(r, Range) else Range(r)
            if r.min.defined() != r.extent.defined():
                raise CompileError(f"BoundaryConditions.{name}() got bounds of which only one end is defined ({user_location()})")
            limits.append((b.cast(INT32, r.min.as_node()), b.cast(INT32, r.extent.as_node())) if r.min.defined() else None)
        limits += [None] * (dims - len(limits))
    args = f.args() if isinstance(f, Func) else [Var.implicit(i) for i in range(dims)]
    return f, args, limits


def _values(ref: Any, f: Any) -> list[Expr]:
    if isinstance(f, Func) and f.outputs() > 1:
        return [to_expr(ref[i]) for i in range(f.outputs())]
    return [to_expr(ref)]


def _likely(e: n.Expr) -> n.Expr:
    return intrinsic("likely", e.type, e)


def _last(low: n.Expr, extent: n.Expr) -> n.Expr:
    return b.sub(b.add(low, extent), b.i32(1))


def _clamped(e: n.Expr, low: n.Expr, high: n.Expr) -> n.Expr:
    return n.Max(n.Min(e, high), low)


def _remap(name: str, f: Any, bounds: Any, coordinate: Any) -> Func:
    source, args, limits = _source(name, f, bounds)
    out = Func(name)
    places = [a if limit is None else Expr.of(coordinate(a.as_node(), *limit)) for a, limit in zip(args, limits)]
    values = _values(source[tuple(places)], source)
    out[tuple(args)] = Tuple(values) if len(values) > 1 else values[0]
    return out


def repeat_edge(f: Any, bounds: Sequence[Any] | None = None) -> Func:
    """The nearest element inside: AAABCDDD."""
    return _remap("repeat_edge", f, bounds, lambda x, low, extent: _clamped(_likely(x), low, _last(low, extent)))


def constant_exterior(f: Any, exterior: Any, bounds: Sequence[Any] | None = None) -> Func:
    """`exterior` (an Expr, or as many as the Func has values) everywhere outside."""
    source, args, limits = _source("constant_exterior", f, bounds)
    out = Func("constant_exterior")
    outside: n.Expr = b.FALSE
    places: list[Any] = []
    for a, limit in zip(args, limits):
        if limit is None:
            places.append(a)
            continue
        low, extent = limit
        x = a.as_node()
        outside = b.or_(outside, n.Or(n.LT(x, low), n.GE(x, b.add(low, extent))))
        places.append(Expr.of(_clamped(_likely(x), low, _last(low, extent))))
    values = _values(source[tuple(places)], source)
    outer = [to_expr(e) for e in (exterior if isinstance(exterior, (list, tuple, Tuple)) else [exterior])]
    if len(outer) != len(values):
        raise CompileError(f"constant_exterior() got {len(outer)} exterior values for {len(values)} values ({user_location()})")
    chosen = [select(Expr.of(outside), Expr.of(b.cast(v.type(), o.as_node()) if not isinstance(o.as_node(), n.FloatImm) else b.const(v.type(), o.as_node().value)),
                     Expr.of(_likely(v.as_node()))) for v, o in zip(values, outer)]
    out[tuple(args)] = Tuple(chosen) if len(chosen) > 1 else chosen[0]
    return out


def _inside(x: n.Expr, low: n.Expr, extent: n.Expr) -> n.Expr:
    return n.And(n.GE(x, low), n.LT(x, b.add(low, extent)))


def repeat_image(f: Any, bounds: Sequence[Any] | None = None) -> Func:
    """The image again and again: CDABCDAB."""
    def coordinate(x: n.Expr, low: n.Expr, extent: n.Expr) -> n.Expr:
        wrapped = b.add(b.mod(b.sub(x, low), extent), low)
        return _clamped(n.Select(_inside(x, low, extent), _likely(x), wrapped), low, _last(low, extent))

    return _remap("repeat_image", f, bounds, coordinate)


def mirror_image(f: Any, bounds: Sequence[Any] | None = None) -> Func:
    """Mirrored with the edge doubled: BAABCDDC."""
    def coordinate(x: n.Expr, low: n.Expr, extent: n.Expr) -> n.Expr:
        c = b.mod(b.sub(x, low), b.mul(extent, b.i32(2)))
        c = n.Select(n.GE(c, extent), b.sub(b.sub(b.mul(extent, b.i32(2)), b.i32(1)), c), c)
        return _clamped(n.Select(_inside(x, low, extent), _likely(x), b.add(c, low)), low, _last(low, extent))

    return _remap("mirror_image", f, bounds, coordinate)


def mirror_interior(f: Any, bounds: Sequence[Any] | None = None) -> Func:
    """Mirrored about the edge element: CBABCDCB."""
    def coordinate(x: n.Expr, low: n.Expr, extent: n.Expr) -> n.Expr:
        limit = b.sub(extent, b.i32(1))
        c = b.mod(b.sub(x, low), n.Max(b.mul(limit, b.i32(2)), b.i32(1)))
        c = b.sub(limit, _abs(b.sub(c, limit)))
        return _clamped(n.Select(_inside(x, low, extent), _likely(x), b.add(c, low)), low, _last(low, extent))

    return _remap("mirror_interior", f, bounds, coordinate)


def _abs(e: n.Expr) -> n.Expr:
    """|e| as int32."""
    return n.Max(e, b.sub(b.i32(0), e))
