"""Func and FuncRef: definitions, `f[x, y] = e`, updates, self reference, implicit dimensions, tuples."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from ..errors import CompileError, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Definition, Function
from ..ir.names import anonymous_name, unique_name
from ..ir.types import Type
from . import definitions
from .expr import Expr, Operand, binary, floor_div, to_expr
from .func_schedule import FuncSchedulable
from .param import OutputImageParam
from .pipeline import Pipeline
from .stage import Stage
from .tuples import Tuple, is_tuple_like, to_tuple
from .var import Var, implicit_count


class Unevaluated:
    """`f[x] + e` where `f` has no definition yet; assigned back to the same place it defines `f` as 0 (or 1) and adds the update."""

    def __init__(self, ref: FuncRef, kind: Callable[[n.Expr, n.Expr], n.Expr], value: Any) -> None:
        self.ref, self.kind, self.value = ref, kind, value


class FuncRef(Operand):
    """A call of a Func, `f[x, y]`: an Expr, or for a tuple-valued Func as many as it has elements (`f[x][0]`)."""

    __slots__ = ("func", "args")

    def __init__(self, func: Func, args: Sequence[Any]) -> None:
        self.func, self.args = func, list(args)

    @property
    def is_tuple_ref(self) -> bool:
        """Whether the Func has several values."""
        return self.func.defined() and self.func.outputs() > 1

    def element(self, index: int) -> n.Expr:
        """The call of one value."""
        f = self.func.function
        if f.pure is None:
            raise CompileError(f"Func {f.name} is called before it is defined; define it first: {f.name}[...] = ... ({user_location()})")
        args = definitions.call_args(f, self.args)
        return n.Call(f.types[index], f.name, args, n.CallType.Halide, f, index)

    def as_node(self) -> n.Expr:
        f = self.func.function
        if len(f.types) > 1:
            raise CompileError(f"Func {f.name} has {len(f.types)} values, so a call of it is no single Expr; pick one: {f.name}[...][0] ({user_location()})")
        return self.element(0)

    def type(self) -> Type:
        """The Type of the value."""
        return self.as_node().type

    def size(self) -> int:
        """Number of values."""
        return self.func.outputs()

    def __len__(self) -> int:
        return self.func.outputs()

    def __getitem__(self, index: int) -> FuncTupleElementRef:
        if self.func.defined() and not 0 <= index < self.func.outputs():
            raise CompileError(f"Func {self.func.name()} has {self.func.outputs()} values; index {index} is out of range")
        return FuncTupleElementRef(self, index)

    def __setitem__(self, index: int, value: Any) -> None:
        f = self.func.function
        if f.pure is None:
            raise CompileError(f"Func {f.name} must have a definition before one element of its tuple is updated")
        values = [Expr.of(self.element(i)) for i in range(len(f.types))]
        if isinstance(value, Unevaluated):
            raise CompileError(f"Func {f.name} is not defined yet")
        values[index] = to_expr(value)
        self.func[tuple(self.args)] = Tuple(values) if len(values) > 1 else values[0]

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def _operator(self, kind: Any, other: Any, make: Callable[[Any, Any], Expr]) -> Any:
        if self.func.function.pure is None:
            return Unevaluated(self, kind, other)
        return make(self, other)

    def __add__(self, o: Any) -> Any:
        return self._operator(n.Add, o, lambda a, c: binary(n.Add, a, c))

    def __sub__(self, o: Any) -> Any:
        return self._operator(n.Sub, o, lambda a, c: binary(n.Sub, a, c))

    def __mul__(self, o: Any) -> Any:
        return self._operator(n.Mul, o, lambda a, c: binary(n.Mul, a, c))

    def __truediv__(self, o: Any) -> Any:
        return self._operator(n.Div, o, lambda a, c: binary(n.Div, a, c))

    def __floordiv__(self, o: Any) -> Any:
        return self._operator(n.Div, o, floor_div)

    def __repr__(self) -> str:
        return f"<halide.FuncRef {self.func.name()}({', '.join(map(repr, self.args))})>"


class FuncTupleElementRef(Operand):
    """One value of a call of a tuple-valued Func."""

    __slots__ = ("ref", "_index")

    def __init__(self, ref: FuncRef, index: int) -> None:
        self.ref, self._index = ref, index

    def as_node(self) -> n.Expr:
        return self.ref.element(self._index)

    def index(self) -> int:
        """Which value."""
        return self._index

    def type(self) -> Type:
        """The Type of the value."""
        return self.as_node().type


class Func(FuncSchedulable):
    """A stage of a pipeline: a function of integer coordinates, defined by `f[x, y] = expression` and any number of updates.

    `Func("name")`; `Func(expr)`, `Func(buffer)` and `Func(image_param)` define it at once over implicit dimensions;
    `Func(type, dimensions, name)` fixes the type beforehand. Schedule it with the directives (`tile`, `vectorize`, `compute_at`, ...) and run
    it with `realize`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        name, source, required = _constructor(args, kwargs)
        if "." in name:
            raise CompileError(f"The Func name {name!r} contains '.', which is reserved; choose another name")
        self.function = Function(unique_name(name) if name else anonymous_name("f"), where=user_location())
        self._pipeline: Pipeline | None = None
        if required is not None:
            types, self.function.required_dimensions = required
            self.function.required_types = tuple(types)
        if isinstance(source, Expr):
            self[Var("_")] = source
        elif source is not None:
            self[Var("_")] = source[Var("_")] if source.dimensions() else source[()]

    # -- what it is

    def name(self) -> str:
        """The name, unique in the process."""
        return self.function.name

    def defined(self) -> bool:
        """Whether it has a definition."""
        return self.function.pure is not None

    def _pure(self, call: str) -> Definition:
        if self.function.pure is None:
            raise CompileError(f"{call}() of Func {self.name()}, which is not defined yet")
        return self.function.pure

    def args(self) -> list[Var]:
        """The dimensions, innermost first."""
        return [Var(a) for a in self.function.args]

    def dimensions(self) -> int:
        """Number of dimensions; -1 while not defined (or the declared number)."""
        return len(self.function.args) if self.defined() else self.function.required_dimensions

    def type(self) -> Type:
        """The Type of the only value."""
        types = self.types()
        if len(types) != 1:
            raise CompileError(f"type() of Func {self.name()}, which has {len(types)} values; use types()")
        return types[0]

    def types(self) -> list[Type]:
        """The Type of each value."""
        if not self.defined() and self.function.required_types:
            return list(self.function.required_types)
        self._pure("types")
        return list(self.function.types)

    def outputs(self) -> int:
        """Number of values."""
        return len(self.types())

    def value(self) -> Expr:
        """The only value of the pure definition."""
        values = self._pure("value").values
        if len(values) != 1:
            raise CompileError(f"value() of Func {self.name()}, which has {len(values)} values; use values()")
        return Expr.of(values[0])

    def values(self) -> tuple[Expr, ...]:
        """The values of the pure definition."""
        return tuple(Expr.of(v) for v in self._pure("values").values)

    def has_update_definition(self) -> bool:
        """Whether there are updates."""
        return bool(self.function.updates)

    def num_update_definitions(self) -> int:
        """How many updates there are."""
        return len(self.function.updates)

    def _update(self, idx: int) -> Definition:
        if not 0 <= idx < len(self.function.updates):
            raise CompileError(f"Func {self.name()} has {len(self.function.updates)} updates, no number {idx}")
        return self.function.updates[idx]

    def update(self, idx: int = 0) -> Stage:
        """The schedule of update number `idx`."""
        self._update(idx)
        return Stage(self, idx + 1)

    def update_args(self, idx: int = 0) -> list[Expr]:
        """The coordinates an update writes."""
        return [Expr.of(a) for a in self._update(idx).args]

    def update_value(self, idx: int = 0) -> Expr:
        """The only value of an update."""
        return Expr.of(self._update(idx).values[0])

    def update_values(self, idx: int = 0) -> tuple[Expr, ...]:
        """The values of an update."""
        return tuple(Expr.of(v) for v in self._update(idx).values)

    def rvars(self, idx: int = 0) -> list[Any]:
        """The RVars of an update."""
        return definitions.rvars_of(self._update(idx))

    def is_extern(self) -> bool:
        """Whether it is defined by an extern stage."""
        return False

    # -- definitions

    def __getitem__(self, args: Any) -> FuncRef:
        if isinstance(args, (list, tuple)):
            return FuncRef(self, args)
        return FuncRef(self, (args,))

    def __setitem__(self, args: Any, value: Any) -> None:
        places = list(args) if isinstance(args, (list, tuple)) else [args]
        if isinstance(value, Unevaluated):
            self._define_by_update(places, value)
            return
        values = [e.as_node() for e in (to_tuple(value) if is_tuple_like(value) else [to_expr(value)])]
        if not values:
            raise CompileError(f"Func {self.name()} is given a tuple without elements")
        definitions.define(self.function, places, values)

    def _define_by_update(self, places: list[Any], value: Unevaluated) -> None:
        if value.ref.func is not self or len(value.ref.args) != len(places):
            raise CompileError(f"Func {value.ref.func.name()} is used in arithmetic before it is defined")
        kind = value.kind
        elements = [to_expr(v) for v in to_tuple(value.value)] if is_tuple_like(value.value) else [to_expr(value.value)]
        start = 0 if kind in (n.Add, n.Sub) else 1
        pure = [Var(f"_v{i}") if not isinstance(p, Var) else p for i, p in enumerate(places)]
        if [p for p in pure if p.is_placeholder()]:
            pure = [q for p in pure for q in ([Var.implicit(i) for i in range(implicit_count([e.as_node() for e in elements]))] if p.is_placeholder() else [p])]
        initial = [b.const(e.type(), start) for e in elements]
        definitions.define(self.function, list(pure), initial)
        ref = self[tuple(places)]
        make = floor_div if kind is n.Div else lambda a, c: binary(kind, a, c)
        if len(elements) == 1:
            self[tuple(places)] = make(ref, elements[0])
        else:
            self[tuple(places)] = Tuple([make(ref[i], e) for i, e in enumerate(elements)])

    def __call__(self, *args: Any) -> FuncRef:
        return self[args]

    # -- running and compiling: all through a Pipeline of this Func alone

    def pipeline(self) -> Pipeline:
        """The Pipeline whose only output this is; it keeps what was compiled."""
        if self._pipeline is None:
            self._pipeline = Pipeline(self)
        return self._pipeline

    def realize(self, *args: Any, **kwargs: Any) -> Any:
        """Compile if needed and run; see `Pipeline.realize`."""
        return self.pipeline().realize(*args, **kwargs)

    def compile_jit(self, *args: Any, **kwargs: Any) -> None:
        """Compile now rather than at the first realize; see `Pipeline.compile_jit`."""
        self.pipeline().compile_jit(*args, **kwargs)

    def compile_to_callable(self, *args: Any, **kwargs: Any) -> Any:
        """A Python function of the given arguments and the outputs; see `Pipeline.compile_to_callable`."""
        return self.pipeline().compile_to_callable(*args, **kwargs)

    def infer_arguments(self) -> Any:
        """The arguments the pipeline needs; see `Pipeline.infer_arguments`."""
        return self.pipeline().infer_arguments()

    def infer_input_bounds(self, *args: Any, **kwargs: Any) -> None:
        """Find the shapes the unset ImageParams need and allocate them; see `Pipeline.infer_input_bounds`."""
        self.pipeline().infer_input_bounds(*args, **kwargs)

    def print_loop_nest(self) -> None:
        """Print the scheduled loops; see `Pipeline.print_loop_nest`."""
        self.pipeline().print_loop_nest()

    def compile_to_lowered_stmt(self, *args: Any, **kwargs: Any) -> None:
        """Write the loop IR; see `Pipeline.compile_to_lowered_stmt`."""
        self.pipeline().compile_to_lowered_stmt(*args, **kwargs)

    def compile_to_c(self, *args: Any, **kwargs: Any) -> None:
        """Write the generated C; see `Pipeline.compile_to_c`."""
        self.pipeline().compile_to_c(*args, **kwargs)

    def compile_to_header(self, *args: Any, **kwargs: Any) -> None:
        """Write the C header; see `Pipeline.compile_to_header`."""
        self.pipeline().compile_to_header(*args, **kwargs)

    def compile_to_shared_library(self, *args: Any, **kwargs: Any) -> None:
        """Write a shared library and its header; see `Pipeline.compile_to_shared_library`."""
        self.pipeline().compile_to_shared_library(*args, **kwargs)

    def output_buffer(self) -> OutputImageParam:
        """The output buffer, to constrain its shape or to use its bounds in expressions."""
        return self.output_buffers()[0]

    def output_buffers(self) -> list[OutputImageParam]:
        """One a value."""
        self._pure("output_buffer")
        return [OutputImageParam.of(p) for p in self.function.output_params]

    def __repr__(self) -> str:
        return f"<halide.Func '{self.name()}'>"


def _constructor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any, Any]:
    """(name, what to define it as, (types, dimensions) it must have)."""
    name = kwargs.pop("name", "")
    if kwargs.keys() - {"required_type", "required_types", "required_dimensions"}:
        raise TypeError(f"Func() got unexpected arguments {sorted(kwargs)}")
    types = kwargs.get("required_types") or ([kwargs["required_type"]] if "required_type" in kwargs else None)
    rest = list(args)
    if rest and isinstance(rest[0], str):
        return rest[0], None, None
    if types is None and rest and isinstance(rest[0], Type):
        types = [rest.pop(0)]
    elif types is None and rest and isinstance(rest[0], (list, tuple)):
        types = list(rest.pop(0))
    if types is not None:
        dims = kwargs.get("required_dimensions", rest.pop(0) if rest else -1)
        return (rest[0] if rest else name), None, (types, int(dims))
    if rest and isinstance(rest[0], Operand):
        return name, to_expr(rest[0]), None
    return name, (rest[0] if rest else None), None


def lambda_func(*args: Any) -> Func:
    """An anonymous Func: `lambda_func(x, y, x + y)`."""
    f = Func()
    f[tuple(args[:-1])] = args[-1]
    return f


def funcs(names: str) -> tuple[Func, ...]:
    """Several Funcs at once: `f, g = funcs("f g")`."""
    return tuple(Func(v) for v in names.replace(",", " ").split())


def evaluate(e: Any) -> Any:
    """The value of an Expr without free Vars (or of a tuple of them), computed now."""
    f = Func("evaluate")
    f[()] = e
    out = f.realize()
    return tuple(o[()] for o in out) if isinstance(out, (list, tuple)) else out[()]
