"""Param: a scalar argument of a pipeline; ImageParam, OutputImageParam, Dimension: its buffers and what is known of their shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from ..errors import expect, user_error
from ..ir import build as b
from ..ir import nodes as n
from ..ir.names import anonymous_name, unique_name
from ..ir.nodes import MemoryType
from ..ir.parameter import Parameter as ParameterData
from ..ir.printer import to_text
from ..ir.traverse import nodes_of
from ..ir.types import INT32, Type, UInt
from . import definitions
from .edits import count_edit
from .expr import Expr, Operand, to_expr
from .parameter import Parameter
from .promotion import checked_type, convert, literal, lossless
from .rdom import Range
from .subscripted import Subscripted
from .wrapping import callers_of, wrapper

P = TypeVar("P", bound="OutputImageParam")


_ADDRESSES = UInt(64)


def scalar_value(what: str, t: Type, value: Any) -> int | float | bool:
    """A Python number as the value of a scalar of type `t`; for a handle, the address. Raises CompileError when it does not fit, TypeError
    when it is no number."""
    v = literal(value)
    if v is None:
        raise TypeError(f"{what} takes a number, not {value!r}")
    if t.is_float():
        return b.round_float(float(v), t)
    if isinstance(v, float) and (not math.isfinite(v) or v != int(v)) or not (_ADDRESSES if t.is_handle() else t).can_represent_value(v):
        raise user_error(f"{what}: the value {v} cannot be losslessly converted to type {t}")
    return bool(v) if t.is_bool() else int(v)


class Param(Operand):
    """A scalar argument: `k = Param(Float(32), "k", 0.5)`; `k.set(2.0)` before running. Name and value may be left out. Usable wherever
    an Expr is.

    Raises CompileError when a value cannot be represented in the type.
    """

    def __init__(self, type: Type, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(("name", "value") if args and isinstance(args[0], str) else ("value", "name"), args))
        if given.keys() & kwargs.keys() or kwargs.keys() - {"name", "value"} or len(args) > 2:
            raise TypeError("Param() takes a type, then a name, a value, or a name and a value")
        given.update(kwargs)
        name = given.get("name")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the name of a Param must be a string, not {name!r}")
        self.param = ParameterData(unique_name(name) if name else anonymous_name("p"), checked_type(type, "Param()"), False)
        if given.get("value") is not None:
            self.set(given["value"])

    def as_node(self) -> n.Expr:
        return n.Variable(self.param.type, self.param.name, self.param)

    def name(self) -> str:
        """The name of the argument."""
        return self.param.name

    def type(self) -> Type:
        """The type of the argument."""
        return self.param.type

    def set(self, value: Any) -> None:
        """The value for the next runs."""
        self.param.value = scalar_value(f"Param {self.param.name}", self.param.type, value)

    def get(self) -> int | float | bool | None:
        """The value set, None when there is none."""
        value: int | float | bool | None = self.param.value
        return value

    def _limit(self, e: Any, which: str) -> n.Expr | None:
        node = to_expr(e).node
        if node is None:
            return None
        t = self.param.type
        found = convert(t, node) if t.is_float() and b.as_const(node) is not None else lossless(t, node)
        if found is None:
            raise user_error(f"The {which} value of Param {self.param.name} must have its type {t}, but {to_text(node)} has type "
                             f"{node.type}")
        return found

    def set_range(self, min: Any, max: Any) -> None:
        """Values outside [min, max] are an error at run time; bounds inference believes the range."""
        self.set_min_value(min)
        self.set_max_value(max)

    def set_min_value(self, min: Any) -> None:
        """The smallest value allowed; `Expr()` for none."""
        self.param.minimum = self._limit(min, "minimum")
        count_edit()

    def set_max_value(self, max: Any) -> None:
        """The largest value allowed; `Expr()` for none."""
        self.param.maximum = self._limit(max, "maximum")
        count_edit()

    def min_value(self) -> Expr:
        """The smallest value allowed; undefined when there is none."""
        return Expr.of(self.param.minimum)

    def max_value(self) -> Expr:
        """The largest value allowed; undefined when there is none."""
        return Expr.of(self.param.maximum)

    def set_estimate(self, value: Any) -> None:
        """A typical value, for autoschedulers."""
        t = self.param.type
        self.param.estimate = b.const(t, scalar_value(f"The estimate of Param {self.param.name}", t, value))

    def parameter(self) -> Parameter:
        """The argument as data."""
        return Parameter.of(self.param)

    def __repr__(self) -> str:
        return f"<halide.Param '{self.param.name}' type {self.param.type}>"


class Dimension:
    """One dimension of an input or output buffer: its bounds as Exprs, and promises about them, which are checked at run time."""

    def __init__(self, param: ParameterData, index: int) -> None:
        if not 0 <= index < expect(param, ParameterData, "Dimension()").dimensions:
            raise user_error(f"Can't access dimension {index} of the {param.dimensions}-dimensional buffer {param.name}")
        self._param, self._index = param, index

    def _field(self, field: str) -> n.Expr:
        constraint: n.Expr | None = getattr(self._param.dims[self._index], field)
        return constraint if constraint is not None else n.Variable(INT32, f"{self._param.name}.{field}.{self._index}", self._param)

    def min(self) -> Expr:
        """The first coordinate."""
        return Expr.of(self._field("min"))

    def extent(self) -> Expr:
        """The number of elements along this dimension, an Expr."""
        return Expr.of(self._field("extent"))

    def max(self) -> Expr:
        """The last coordinate."""
        return Expr.of(b.sub(b.add(self._field("min"), self._field("extent")), b.i32(1)))

    def stride(self) -> Expr:
        """The distance in memory between neighbours, in elements."""
        return Expr.of(n.Variable(INT32, f"{self._param.name}.stride.{self._index}", self._param))

    def _promise(self, e: Any, field: str) -> n.Expr | None:
        node = to_expr(e).node
        if node is None:
            return None
        what = f"The {field} of dimension {self._index} of {self._param.name}"
        found = lossless(INT32, node) if not node.type.is_float() else None
        if found is None:
            raise user_error(f"{what} must be an int32, but {to_text(node)} has type {node.type}")
        for v in nodes_of(found, n.Variable):
            if v.param is None:
                raise user_error(f"{what} is set to {to_text(found)}, which uses {v.name}; it may only use constants and parameters")
        return found

    def set_min(self, min: Any) -> Dimension:
        """Promise the first coordinate; `Expr()` takes it back."""
        self._param.dims[self._index].min = self._promise(min, "min")
        count_edit()
        return self

    def set_extent(self, extent: Any) -> Dimension:
        """Promise the size; `Expr()` takes it back."""
        self._param.dims[self._index].extent = self._promise(extent, "extent")
        count_edit()
        return self

    def set_stride(self, stride: Any) -> Dimension:
        """Promise the stride; `Expr()` lifts the promise of stride 1 that dimension 0 has by default."""
        self._param.dims[self._index].stride = self._promise(stride, "stride")
        count_edit()
        return self

    def set_bounds(self, min: Any, extent: Any) -> Dimension:
        """Promise both bounds."""
        return self.set_min(min).set_extent(extent)

    def set_estimate(self, min: Any, extent: Any) -> Dimension:
        """Typical bounds, for autoschedulers."""
        d = self._param.dims[self._index]
        d.min_estimate, d.extent_estimate = self._promise(min, "estimated min"), self._promise(extent, "estimated extent")
        return self

    def dim(self, dimension: int) -> Dimension:
        """Another dimension of the same buffer."""
        return Dimension(self._param, dimension)

    def __repr__(self) -> str:
        return f"<halide.Dimension {self._index} of {self._param.name}>"


class OutputImageParam(Subscripted):
    """A buffer argument: its dimensions, and promises about its shape and memory. Func.output_buffer() gives that of a Func."""

    param: ParameterData | None

    def __init__(self) -> None:
        self.param = None

    @classmethod
    def of(cls: type[P], param: ParameterData) -> P:
        """The handle of a buffer parameter."""
        o = cls()
        o.param = param
        return o

    def _defined(self) -> ParameterData:
        if self.param is None:
            raise user_error(f"This {type(self).__name__} is undefined; give it a type and a number of dimensions")
        return self.param

    def name(self) -> str:
        """The name of the argument."""
        return self._defined().name

    def defined(self) -> bool:
        """Whether it has a type."""
        return self.param is not None

    def type(self) -> Type:
        """The type of the elements."""
        return self._defined().type

    def dimensions(self) -> int:
        """Number of dimensions."""
        return self._defined().dimensions

    def dim(self, dimension: int) -> Dimension:
        """A dimension of the buffer, to ask for its min, extent and stride or to promise them; 0 is the innermost."""
        return Dimension(self._defined(), dimension)

    def width(self) -> Expr:
        """Extent of dimension 0."""
        return self.dim(0).extent()

    def height(self) -> Expr:
        """Extent of dimension 1."""
        return self.dim(1).extent()

    def channels(self) -> Expr:
        """Extent of dimension 2."""
        return self.dim(2).extent()

    def left(self) -> Expr:
        """First coordinate of dimension 0."""
        return self.dim(0).min()

    def right(self) -> Expr:
        """Last coordinate of dimension 0."""
        return self.dim(0).max()

    def top(self) -> Expr:
        """First coordinate of dimension 1."""
        return self.dim(1).min()

    def bottom(self) -> Expr:
        """Last coordinate of dimension 1."""
        return self.dim(1).max()

    def host_alignment(self) -> int:
        """The promised alignment of the data, in bytes: at least that of the elements."""
        p = self._defined()
        return p.host_alignment or p.type.bytes()

    def set_host_alignment(self: P, alignment: int) -> P:
        """Promise the alignment of the data, in bytes; checked at run time. Raises CompileError for other than a power of two."""
        alignment = int(alignment)
        if alignment <= 0 or alignment & (alignment - 1):
            raise user_error(f"The host alignment of {self.name()} must be a power of two, not {alignment}")
        self._defined().host_alignment = alignment
        count_edit()
        return self

    def set_estimates(self: P, estimates: Sequence[Any]) -> P:
        """Typical bounds of all dimensions: a list of (min, extent) pairs or Ranges."""
        p = self._defined()
        if len(estimates) != p.dimensions:
            raise user_error(f"{p.name} has {p.dimensions} dimensions, but {len(estimates)} estimates are given")
        for i, r in enumerate(map(Range.of, estimates)):
            self.dim(i).set_estimate(r.min, r.extent)
        return self

    def store_in(self: P, memory_type: MemoryType) -> P:
        """Where the buffer lives; on a CPU that is Auto or Heap."""
        kind = MemoryType(memory_type)
        if kind not in (MemoryType.Auto, MemoryType.Heap):
            raise user_error(f"store_in(MemoryType.{kind.name}) of {self.name()}: a buffer that comes from outside lives on the heap")
        self._defined().memory = kind
        return self

    def parameter(self) -> Parameter:
        """The argument as data."""
        return Parameter.of(self._defined())

    def __repr__(self) -> str:
        kind = type(self).__name__
        if self.param is None:
            return f"<halide.{kind} {kind}()>"
        return f"<halide.{kind} '{self.param.name}', dims: {self.param.dimensions}, type: {self.param.type}>"


class ImageParam(OutputImageParam):
    """An input buffer of a pipeline: `im = ImageParam(UInt(8), 2, "im")`; `im[x, y]` is an element, `im.set(buffer)` binds the data."""

    def __init__(self, type: Type | None = None, dimensions: int = 0, name: str | None = None) -> None:
        super().__init__()
        if type is not None:
            t = checked_type(type, "ImageParam()")
            if not isinstance(dimensions, int) or dimensions < 0:
                raise TypeError(f"ImageParam() takes the number of dimensions after the type, not {dimensions!r}")
            self.param = ParameterData(unique_name(name) if name else anonymous_name("p"), t, True, dimensions)

    __iter__ = __contains__ = None  # subscripts make Exprs without end

    def __getitem__(self, args: Any) -> Expr:
        return image_element(self._defined(), definitions.places_of(args))

    def __call__(self, *args: Any) -> Expr:
        return image_element(self._defined(), definitions.places_of(args))

    def in_(self, *args: Any) -> Any:
        """A Func that Funcs read instead of this image, and that copies it, to be scheduled on its own: `im.in_(g).compute_at(g, y)` stages
        what g reads.

        `in_(g)` is for the reads of Func g, `in_([g, h])` for those of several, `in_()` for all others. The same arguments give the same
        Func.
        """
        return wrapper(self._defined(), callers_of(args, "in_") if args else None)

    def set(self, buffer: Any) -> None:
        """Bind the data for the next runs; an undefined Buffer unbinds. Raises CompileError for another type or number of dimensions."""
        p = self._defined()
        if not all(hasattr(buffer, name) for name in ("defined", "type", "dimensions")):
            raise TypeError(f"ImageParam {p.name} takes a Buffer, not a {buffer.__class__.__name__}; wrap an array: hl.Buffer(array)")
        if not buffer.defined():
            p.buffer = None
            return
        if buffer.type() is not p.type or buffer.dimensions() != p.dimensions:
            raise user_error(f"ImageParam {p.name} has type {p.type} and {p.dimensions} dimensions, but the Buffer has type "
                             f"{buffer.type()} and {buffer.dimensions()} dimensions")
        p.buffer = buffer

    def get(self) -> Any:
        """The Buffer bound, None when there is none."""
        return self._defined().buffer

    def reset(self) -> None:
        """Forget the Buffer that was set; to run the pipeline, set another."""
        self._defined().buffer = None

    def trace_loads(self) -> None:
        """Report each load at run time."""
        self._defined().trace_loads = True
        count_edit()


def image_element(p: ParameterData, places: Sequence[Any]) -> Expr:
    """The element of a buffer parameter at the given coordinates, `_` expanded."""
    args = definitions.call_args(p.name, p.dimensions, definitions.places_of(list(places)))
    return Expr.of(n.Call(p.type, p.name, args, n.CallType.Image, None, 0, p))
