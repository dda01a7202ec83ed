"""Param, ImageParam, OutputImageParam, Dimension: the runtime arguments of a pipeline and what is known of their shapes."""

from __future__ import annotations

from typing import Any, Sequence

from ..errors import CompileError, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.names import anonymous_name, unique_name
from ..ir.nodes import MemoryType
from ..ir.parameter import Parameter
from ..ir.types import INT32, Type
from .definitions import expand_placeholder, has_placeholder, index_node, spread
from .expr import Expr, Operand, literal, to_expr
from .var import Range


class Param(Operand):
    """A scalar argument: `k = Param(Float(32), "k", 0.5)`; `k.set(2.0)` before running. Usable wherever an Expr is.

    Raises CompileError when a value cannot be represented in the type.
    """

    def __init__(self, type: Type, *args: Any, **kwargs: Any) -> None:
        name, value = kwargs.get("name"), kwargs.get("value")
        for a in args:
            if isinstance(a, str):
                name = a
            else:
                value = a
        self.param = Parameter(unique_name(name) if name else anonymous_name("p"), type, False)
        if value is not None:
            self.set(value)

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
        v = literal(value)
        v = value.item() if v is None and hasattr(value, "item") else v
        t = self.param.type
        if v is None:
            raise TypeError(f"Param {self.param.name} cannot be set to {value!r}")
        if t.is_bool():
            v = bool(v)
        elif not t.can_represent_value(v) or (isinstance(v, float) and not t.is_float()):
            raise CompileError(f"Param {self.param.name} of type {t} cannot be set to {v}, which it cannot represent ({user_location()})")
        self.param.value = float(v) if t.is_float() else v

    def get(self) -> Any:
        """The value set, None when there is none."""
        return self.param.value

    def _limit(self, e: Any) -> n.Expr | None:
        x = to_expr(e)
        return None if x.node is None else b.cast(self.param.type, x.node) if not isinstance(x.node, n.FloatImm) else b.const(self.param.type, x.node.value)

    def set_range(self, min: Any, max: Any) -> None:
        """Values outside [min, max] are an error at run time; bounds inference believes the range."""
        self.set_min_value(min)
        self.set_max_value(max)

    def set_min_value(self, e: Any) -> None:
        """The smallest value allowed; Expr() for none."""
        self.param.minimum = self._limit(e)

    def set_max_value(self, e: Any) -> None:
        """The largest value allowed; Expr() for none."""
        self.param.maximum = self._limit(e)

    def min_value(self) -> Expr:
        """The smallest value allowed."""
        return Expr.of(self.param.minimum) if self.param.minimum is not None else Expr()

    def max_value(self) -> Expr:
        """The largest value allowed."""
        return Expr.of(self.param.maximum) if self.param.maximum is not None else Expr()

    def set_estimate(self, value: Any) -> None:
        """A typical value, for autoschedulers."""
        self.param.estimate = b.const(self.param.type, value)

    def parameter(self) -> Parameter:
        """The argument as data."""
        return self.param

    def __repr__(self) -> str:
        return f"<halide.Param '{self.param.name}' of type {self.param.type}>"


class Dimension:
    """One dimension of an input or output buffer: its bounds as Exprs, and promises about them."""

    def __init__(self, param: Parameter, index: int) -> None:
        if not 0 <= index < param.dimensions:
            raise CompileError(f"{param.name} has {param.dimensions} dimensions, no number {index}")
        self._param, self._index = param, index

    def _field(self, field: str) -> n.Expr:
        constraint = getattr(self._param.dims[self._index], field)
        if constraint is not None:
            return constraint  # type: ignore[no-any-return]
        return n.Variable(INT32, f"{self._param.name}.{field}.{self._index}", self._param)

    def min(self) -> Expr:
        """The first coordinate."""
        return Expr.of(self._field("min"))

    def extent(self) -> Expr:
        """The size."""
        return Expr.of(self._field("extent"))

    def max(self) -> Expr:
        """The last coordinate."""
        return Expr.of(b.sub(b.add(self._field("min"), self._field("extent")), b.i32(1)))

    def stride(self) -> Expr:
        """The distance in memory between neighbours, in elements."""
        return Expr.of(n.Variable(INT32, f"{self._param.name}.stride.{self._index}", self._param))

    def _value(self, e: Any) -> n.Expr | None:
        x = to_expr(e)
        return None if x.node is None else b.cast(INT32, x.node)

    def set_min(self, min: Any) -> Dimension:
        """Promise the first coordinate; Expr() takes it back."""
        self._param.dims[self._index].min = self._value(min)
        return self

    def set_extent(self, extent: Any) -> Dimension:
        """Promise the size."""
        self._param.dims[self._index].extent = self._value(extent)
        return self

    def set_stride(self, stride: Any) -> Dimension:
        """Promise the stride; Expr() lifts the promise of stride 1 that dimension 0 has by default."""
        self._param.dims[self._index].stride = self._value(stride)
        return self

    def set_bounds(self, min: Any, extent: Any) -> Dimension:
        """Promise both bounds."""
        return self.set_min(min).set_extent(extent)

    def set_estimate(self, min: Any, extent: Any) -> Dimension:
        """Typical bounds, for autoschedulers."""
        d = self._param.dims[self._index]
        d.min_estimate, d.extent_estimate = self._value(min), self._value(extent)
        return self

    def dim(self, i: int) -> Dimension:
        """Another dimension of the same buffer."""
        return Dimension(self._param, i)


class OutputImageParam:
    """A buffer argument: its dimensions, and promises about its shape and memory."""

    param: Parameter | None = None

    @staticmethod
    def of(param: Parameter) -> OutputImageParam:
        """The handle of a buffer parameter."""
        o = OutputImageParam()
        o.param = param
        return o

    def _defined(self) -> Parameter:
        if self.param is None:
            raise CompileError("This ImageParam is undefined; give it a type and a number of dimensions")
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
        """One dimension."""
        return Dimension(self._defined(), dimension)

    def _named(self, what: str, index: int) -> Dimension:
        p = self._defined()
        if index >= p.dimensions:
            raise CompileError(f"{what}() of {p.name}, which has {p.dimensions} dimensions")
        return Dimension(p, index)

    def width(self) -> Expr:
        """Extent of dimension 0."""
        return self._named("width", 0).extent()

    def height(self) -> Expr:
        """Extent of dimension 1."""
        return self._named("height", 1).extent()

    def channels(self) -> Expr:
        """Extent of dimension 2."""
        return self._named("channels", 2).extent()

    def left(self) -> Expr:
        """First coordinate of dimension 0."""
        return self._named("left", 0).min()

    def right(self) -> Expr:
        """Last coordinate of dimension 0."""
        return self._named("right", 0).max()

    def top(self) -> Expr:
        """First coordinate of dimension 1."""
        return self._named("top", 1).min()

    def bottom(self) -> Expr:
        """Last coordinate of dimension 1."""
        return self._named("bottom", 1).max()

    def host_alignment(self) -> int:
        """The promised alignment of the data, in bytes."""
        return self._defined().host_alignment

    def set_host_alignment(self, alignment: int) -> Any:
        """Promise the alignment of the data, in bytes; checked at run time."""
        self._defined().host_alignment = int(alignment)
        return self

    def set_estimates(self, estimates: Sequence[Any]) -> Any:
        """Typical bounds of all dimensions."""
        p = self._defined()
        if len(estimates) != p.dimensions:
            raise CompileError(f"{p.name} has {p.dimensions} dimensions, but {len(estimates)} estimates are given")
        for i, e in enumerate(estimates):
            r = e if isinstance(e, Range) else Range(e)
            self.dim(i).set_estimate(r.min, r.extent)
        return self

    def store_in(self, memory_type: MemoryType) -> Any:
        """Where the buffer lives."""
        self._defined().memory = MemoryType(memory_type)
        return self

    def parameter(self) -> Parameter:
        """The argument as data."""
        return self._defined()

    def __repr__(self) -> str:
        return f"<halide.{type(self).__name__} " + (f"'{self.param.name}' of type {self.param.type}>" if self.param else "undefined>")


class ImageParam(OutputImageParam):
    """An input buffer of a pipeline: `im = ImageParam(UInt(8), 2, "im")`; `im[x, y]` is an element, `im.set(buffer)` binds the data."""

    def __init__(self, type: Type | None = None, dimensions: int = 0, name: str | None = None) -> None:
        if type is not None:
            self.param = Parameter(unique_name(name) if name else anonymous_name("im"), type, True, int(dimensions))

    def __getitem__(self, args: Any) -> Expr:
        return image_element(self._defined(), args)

    __call__ = __getitem__

    def set(self, buffer: Any) -> None:
        """Bind the data for the next runs. Raises CompileError for another type or number of dimensions."""
        p = self._defined()
        if buffer.defined() and (buffer.type() is not p.type or buffer.dimensions() != p.dimensions):
            raise CompileError(f"ImageParam {p.name} is {p.dimensions}-dimensional {p.type}, but the Buffer is {buffer.dimensions()}-dimensional {buffer.type()}")
        p.buffer = buffer

    def get(self) -> Any:
        """The Buffer bound, None when there is none."""
        return self._defined().buffer

    def reset(self) -> None:
        """Unbind."""
        self._defined().buffer = None

    def trace_loads(self) -> None:
        """Report each load at run time."""
        self._defined().trace_loads = True


def image_element(p: Parameter, args: Any) -> Expr:
    """The element of a buffer parameter at the given coordinates, `_` expanded."""
    places = spread(list(args) if isinstance(args, (list, tuple)) else [args])
    if has_placeholder(places):
        places = expand_placeholder(places, p.dimensions - (len(places) - 1))
    if len(places) != p.dimensions:
        raise CompileError(f"{p.name} is accessed with {len(places)} arguments, but has {p.dimensions} dimensions ({user_location()})")
    return Expr.of(n.Call(p.type, p.name, tuple(index_node(p.name, i, a) for i, a in enumerate(places)), n.CallType.Image, None, 0, p))
