"""Parameter: an argument of a pipeline as data, whatever made it (Param, ImageParam, the output of a Func)."""

from __future__ import annotations

from typing import Any

from ..errors import expect, user_error
from ..ir.build import const, round_float
from ..ir.names import anonymous_name, unique_name
from ..ir.nodes import MemoryType
from ..ir.parameter import DimConstraint
from ..ir.parameter import Parameter as ParameterData
from ..ir.types import Type
from .edits import count_edit
from .estimates import ArgumentEstimates, BufferConstraint
from .expr import Expr, to_expr


class Parameter:
    """The data behind a Param, an ImageParam or an output buffer: `Parameter(type, is_buffer, dimensions, name)`, or `param.parameter()`.

    Two handles of one argument share their data. Methods for buffers raise CompileError on scalars, and the reverse.
    """

    param: ParameterData | None

    def __init__(self, *args: Any) -> None:
        self.param = None
        if len(args) == 1 and isinstance(args[0], Parameter):
            self.param = args[0].param
        elif len(args) in (3, 4) and isinstance(args[0], Type):
            name = args[3] if len(args) == 4 else ""
            self.param = ParameterData(unique_name(name) if name else anonymous_name("p"), args[0], bool(args[1]), int(args[2]))
        elif args:
            raise TypeError("Parameter() takes nothing, a Parameter, or (type, is_buffer, dimensions) and a name")

    @staticmethod
    def of(param: ParameterData) -> Parameter:
        """The handle of an argument's data."""
        p = Parameter()
        p.param = param
        return p

    def _defined(self) -> ParameterData:
        if self.param is None:
            raise user_error("This Parameter is undefined")
        return self.param

    def _scalar(self) -> ParameterData:
        if self._defined().is_buffer:
            raise user_error(f"Parameter {self._defined().name} is a buffer, not a scalar")
        return self._defined()

    def _buffer(self) -> ParameterData:
        if not self._defined().is_buffer:
            raise user_error(f"Parameter {self._defined().name} is a scalar, not a buffer")
        return self._defined()

    def _dim(self, dim: int) -> DimConstraint:
        p = self._buffer()
        if not 0 <= dim < p.dimensions:
            raise user_error(f"Can't access dimension {dim} of the {p.dimensions}-dimensional Parameter {p.name}")
        return p.dims[dim]

    def defined(self) -> bool:
        """Whether it stands for an argument."""
        return self.param is not None

    def same_as(self, other: Parameter) -> bool:
        """Whether both stand for one argument."""
        return self.param is expect(other, Parameter, "same_as()").param

    def name(self) -> str:
        """The name of the argument."""
        return self._defined().name

    def type(self) -> Type:
        """The type of the scalar or of the elements."""
        return self._defined().type

    def is_buffer(self) -> bool:
        """Whether it is a buffer."""
        return self._defined().is_buffer

    def dimensions(self) -> int:
        """Number of dimensions; 0 for a scalar."""
        return self._defined().dimensions

    def get_argument_estimates(self) -> ArgumentEstimates:
        """What autoschedulers are told about the argument: its range and typical value, or the typical bounds of each dimension."""
        return ArgumentEstimates.of(self._defined())

    # -- scalars

    def scalar(self) -> Any:
        """The value set. Raises CompileError when there is none."""
        p = self._scalar()
        if p.value is None:
            raise user_error(f"Parameter {p.name} has no value; set one")
        return p.value

    def scalar_expr(self) -> Expr:
        """The value set, as a constant; undefined when there is none."""
        p = self._scalar()
        return Expr() if p.value is None else Expr.of(const(p.type, p.value))

    def set_scalar(self, *args: Any) -> None:
        """`set_scalar(value)` or `set_scalar(type, value)`: the value for the next runs."""
        p, value = self._scalar(), args[-1]
        if len(args) == 2 and args[0] is not p.type:
            raise user_error(f"Parameter {p.name} of type {p.type} cannot be set as {args[0]}")
        if not p.type.is_float() and not p.type.can_represent_value(value):
            raise user_error(f"Parameter {p.name}: the value {value} cannot be losslessly converted to type {p.type}")
        p.value = round_float(float(value), p.type) if p.type.is_float() else bool(value) if p.type.is_bool() else int(value)

    def set_default_value(self, expr: Any) -> None:
        """What is passed when nothing is given."""
        self._scalar().default = to_expr(expr).node

    def default_value(self) -> Expr:
        """What is passed when nothing is given; undefined when there is none."""
        return Expr.of(self._scalar().default)

    def set_min_value(self, expr: Any) -> None:
        """The smallest value allowed."""
        self._scalar().minimum = to_expr(expr).node
        count_edit()

    def min_value(self) -> Expr:
        """The smallest value allowed; undefined when there is none."""
        return Expr.of(self._scalar().minimum)

    def set_max_value(self, expr: Any) -> None:
        """The largest value allowed."""
        self._scalar().maximum = to_expr(expr).node
        count_edit()

    def max_value(self) -> Expr:
        """The largest value allowed; undefined when there is none."""
        return Expr.of(self._scalar().maximum)

    def set_estimate(self, expr: Any) -> None:
        """A typical value."""
        self._scalar().estimate = to_expr(expr).node

    def estimate(self) -> Expr:
        """A typical value; undefined when there is none."""
        return Expr.of(self._scalar().estimate)

    # -- buffers

    def buffer(self) -> Any:
        """The Buffer bound, None when there is none."""
        return self._buffer().buffer

    def set_buffer(self, buffer: Any) -> None:
        """Bind a Buffer of the type and the dimensions declared."""
        self._buffer().buffer = buffer

    def host_alignment(self) -> int:
        """The promised alignment of the data, in bytes."""
        return self._buffer().host_alignment or self._buffer().type.bytes()

    def set_host_alignment(self, bytes: int) -> None:
        """Promise the alignment of the data, in bytes."""
        self._buffer().host_alignment = int(bytes)
        count_edit()

    def memory_type(self) -> MemoryType:
        """Where the buffer lives."""
        return self._buffer().memory

    def store_in(self, memory_type: MemoryType) -> None:
        """Where the buffer lives."""
        self._buffer().memory = MemoryType(memory_type)

    def buffer_constraints(self) -> list[BufferConstraint]:
        """What is promised and typical of each dimension."""
        return [BufferConstraint.of(d) for d in self._buffer().dims]

    def min_constraint(self, dim: int) -> Expr:
        """The promised first coordinate; undefined when there is none."""
        return Expr.of(self._dim(dim).min)

    def extent_constraint(self, dim: int) -> Expr:
        """The promised size; undefined when there is none."""
        return Expr.of(self._dim(dim).extent)

    def stride_constraint(self, dim: int) -> Expr:
        """The promised stride; undefined when there is none."""
        return Expr.of(self._dim(dim).stride)

    def min_constraint_estimate(self, dim: int) -> Expr:
        """The typical first coordinate; undefined when there is none."""
        return Expr.of(self._dim(dim).min_estimate)

    def extent_constraint_estimate(self, dim: int) -> Expr:
        """The typical size; undefined when there is none."""
        return Expr.of(self._dim(dim).extent_estimate)

    def set_min_constraint(self, dim: int, expr: Any) -> None:
        """Promise the first coordinate."""
        self._dim(dim).min = to_expr(expr).node
        count_edit()

    def set_extent_constraint(self, dim: int, expr: Any) -> None:
        """Promise the size."""
        self._dim(dim).extent = to_expr(expr).node
        count_edit()

    def set_stride_constraint(self, dim: int, expr: Any) -> None:
        """Promise the stride."""
        self._dim(dim).stride = to_expr(expr).node
        count_edit()

    def set_min_constraint_estimate(self, dim: int, expr: Any) -> None:
        """The typical first coordinate."""
        self._dim(dim).min_estimate = to_expr(expr).node

    def set_extent_constraint_estimate(self, dim: int, expr: Any) -> None:
        """The typical size."""
        self._dim(dim).extent_estimate = to_expr(expr).node

    def __repr__(self) -> str:
        return f"<halide.Parameter '{self.param.name}' type {self.param.type}>" if self.param else "<halide.Parameter undefined>"
