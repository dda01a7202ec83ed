"""Func and FuncRef: definitions, `f[x, y] = e`, updates, self reference, implicit dimensions, tuples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import lang
from ..errors import CompileError, expect, user_error, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.names import anonymous_name, unique_name
from ..ir.printer import to_text
from ..ir.types import Type
from . import definitions
from .devices import DeviceCopies
from .expr import Expr, Operand, binary, convertible, to_expr
from .func_queries import FuncQueries
from .func_schedule import FuncSchedulable
from .param import image_element
from .runnable import Runnable
from .subscripted import Subscripted
from .tuples import Tuple, is_tuple_like, to_tuple
from .var import Var, implicit_count
from .wrapping import Handles, callers_of, wrapper


class UnevaluatedFuncRefExpr:
    """`f[x] + e` where `f` has no definition yet; assigned back to the same place it defines `f` as 0 (or 1) there and adds the update."""

    def __init__(self, ref: FuncRef, kind: Callable[[n.Expr, n.Expr], n.Expr], value: Any) -> None:
        self.ref, self.kind, self.value = ref, kind, value


# The type's name in Halide's bindings, which Python's TypeErrors show.
UnevaluatedFuncRefExpr.__name__ = "halide.halide_._UnevaluatedFuncRefExpr"


class FuncRef(Operand):
    """A call of a Func, `f[x, y]`: an Expr, or for a tuple-valued Func as many as it has elements (`f[x][0]`)."""

    __slots__ = ("func", "places")

    def __init__(self, func: Func, args: Any) -> None:
        self.func = expect(func, Func, "FuncRef()")
        f = func.function
        self.places: list[Any] = [a if isinstance(a, Var) else Expr.of(definitions.coordinate(f.name, i, a))
                                  for i, a in enumerate(definitions.places_of(args))]
        if f.pure is not None:
            self.places = [Expr.of(e) for e in definitions.call_args(f.name, len(f.args), self.places)]

    @property
    def is_tuple_ref(self) -> bool:
        """Whether the Func has several values."""
        return len(self.func.function.types) > 1

    def coordinates(self) -> tuple[n.Expr, ...]:
        """Where the Func is called. Raises CompileError while it has no definition."""
        f = self.func.function
        if f.pure is None:
            raise user_error(f'Can\'t call Func "{f.name}" because it has not yet been defined. As long as it is undefined, it has no '
                             f'values.')
        return definitions.call_args(f.name, len(f.args), self.places)

    def element(self, index: int) -> n.Expr:
        """The call of one value."""
        args, f = self.coordinates(), self.func.function
        return n.Call(f.types[index], f.name, args, n.CallType.Halide, f, index)

    def as_node(self) -> n.Expr:
        if self.is_tuple_ref:
            name = self.func.name()
            raise user_error(f'Can\'t convert a reference Func "{name}" to an Expr, because {name} returns a Tuple. Pick one value: '
                             f'{name}[...][0]')
        return self.element(0)

    def type(self) -> Type:
        """The Type of the value; before the Func is defined, the one it was declared with. Raises CompileError where neither is known.

        >>> hl.Func(hl.UInt(8), 1)[x].type() == hl.UInt(8)
        True
        """
        f = self.func.function
        return f.required_types[0] if f.pure is None and len(f.required_types) == 1 else self.as_node().type

    def types(self) -> list[Type]:
        """The Type of each value; before the Func is defined, those it was declared with. Raises CompileError where neither is known.

        >>> f = hl.Func()
        >>> f[x] = (x, hl.u8(x))
        >>> f[x].types() == [hl.Int(32), hl.UInt(8)]
        True
        """
        return self.func.types()

    def size(self) -> int:
        """Number of values; 0 while the Func is undefined.

        >>> f = hl.Func()
        >>> f[x] = (x, 2 * x)
        >>> f[x].size()
        2
        """
        return len(self.func.function.types)

    def __len__(self) -> int:
        return self.size()

    def _check_index(self, index: int) -> int:
        self.coordinates()
        name = self.func.name()
        if not self.is_tuple_ref:
            raise user_error(f'Can\'t index into a reference to Func "{name}", because it does not return a Tuple.')
        if not 0 <= index < self.size():
            raise user_error(f'Tuple index out of range in reference to Func "{name}": {index} of {self.size()} values')
        return int(index)

    def __getitem__(self, index: int) -> FuncTupleElementRef:
        return FuncTupleElementRef(self, self._check_index(index))

    def __setitem__(self, index: int, value: Any) -> None:
        """Update one value of a tuple-valued Func, the others keep theirs: `f[x][0] = e`."""
        index = self._check_index(index)
        values = [Expr.of(self.element(i)) for i in range(self.size())]
        values[index] = to_expr(value)
        self.func[tuple(self.places)] = values

    def __iter__(self) -> Iterator[FuncTupleElementRef]:
        self._check_index(0)
        return (self[i] for i in range(self.size()))

    def _operator(self, kind: Callable[[n.Expr, n.Expr], n.Expr], other: Any) -> Any:
        if self.func.function.pure is None and (convertible(other) or is_tuple_like(other)):
            return UnevaluatedFuncRefExpr(self, kind, other)
        return binary(kind, self, other)

    def __add__(self, o: Any) -> Any:
        return self._operator(n.Add, o)

    def __sub__(self, o: Any) -> Any:
        return self._operator(n.Sub, o)

    def __mul__(self, o: Any) -> Any:
        return self._operator(n.Mul, o)

    def __truediv__(self, o: Any) -> Any:
        return self._operator(n.Div, o)

    def __repr__(self) -> str:
        return f"<halide.FuncRef {self.func.name()}({', '.join(to_text(a.as_node()) for a in self.places)})>"


class FuncTupleElementRef(Operand):
    """One value of a call of a tuple-valued Func."""

    __slots__ = ("ref", "_index")

    def __init__(self, ref: FuncRef, index: int) -> None:
        self.ref, self._index = ref, index

    def as_node(self) -> n.Expr:
        return self.ref.element(self._index)

    def index(self) -> int:
        """Which value.

        >>> f = hl.Func()
        >>> f[x] = (x, 2 * x)
        >>> f[x][1].index()
        1
        """
        return self._index

    def type(self) -> Type:
        """The Type of the value."""
        return self.ref.func.function.types[self._index]

    def __repr__(self) -> str:
        return f"<halide.FuncTupleElementRef {self._index} of {self.ref!r}>"


class Func(FuncQueries, FuncSchedulable, DeviceCopies, Runnable, Subscripted):
    """A stage of a pipeline: a function of integer coordinates, defined by `f[x, y] = expression` and any number of updates.

    `Func("name")`; `Func(expr)`, `Func(buffer)` and `Func(image_param)` define it at once over implicit dimensions;
    `Func(type, dimensions, name)` fixes types and dimensions beforehand. Schedule it with the directives (`tile`, `vectorize`,
    `compute_at`, ...)
    and run it with `realize`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        name, source, types, dimensions = _constructor(args, kwargs)
        if "." in name:
            raise user_error(f'Func name "{name}" is invalid. Func names may not contain the character \'.\', as it is reserved as a '
                             'separator')
        self.function = Function(unique_name(name) if name else anonymous_name("f"), where=user_location())
        self.function.required_types, self.function.required_dimensions = types, dimensions
        if isinstance(source, (Operand, int, float)):
            self[Var("_")] = source
        elif source is not None:
            self[Var("_")] = image_element(source.param, [Var("_")])

    @staticmethod
    def of(function: Function) -> Func:
        """A handle on a Function that has one already."""
        new = object.__new__(Func)
        Runnable.__init__(new)
        new.function = function
        return new

    # -- who calls what in its stead

    def in_(self, *args: Any, f: Any = None, fs: Sequence[Any] | None = None) -> Func:
        """A Func that callers call instead of this one, and that copies it, to be scheduled on its own: `f.in_(g).compute_at(g, y)` stages
        what g reads of f.

        `in_(g)` is for the calls made by Func g, `in_([g, h])` for those of several, `in_()` for all others. The same arguments give the
        same Func. Raises CompileError for this Func itself, for an empty list, and where one of several callers has a wrapper of its own.
        """
        args = (*args, *(given for given in (f, fs) if given is not None))
        return wrapper(self.function, callers_of(args, "in_") if args else None)  # type: ignore[no-any-return]

    def clone_in(self, *args: Any, f: Any = None, fs: Sequence[Any] | None = None) -> Func:
        """A Func with this one's definitions and a copy of its schedule that the Func (or each Func of the list) given calls instead.

        Raises CompileError as `in_` does.
        """
        args = (*args, *(given for given in (f, fs) if given is not None))
        return wrapper(self.function, callers_of(args, "clone_in"), clone=True)  # type: ignore[no-any-return]

    def define_extern(self, function_name: str, params: Sequence[Any], *shape: Any, **options: Any) -> None:
        """Define the Func as an extern stage, computed by a C function: `f.define_extern("solve", [g, image, 3], hl.Float(32), 2)`.

        Then come `types` (or `type`), `dimensionality` or a list of Vars (`arguments`), `mangling` and `device_api`. The C function is
        `int solve(args..., halide_buffer_t *output...)`: a `halide_buffer_t *` for each value of a Func, for a Buffer or ImageParam;
        scalars by value; one `halide_buffer_t *` for each type. A result other than 0 ends the pipeline with an error. It is called first
        with buffers without data (`host == 0`), of which the outputs have the region that is wanted: it then writes min and extent of the
        dimensions it needs of each input, and may enlarge the outputs'. Func arguments need a place of their own (`compute_root`). Loops
        are the function's own, until one is split.

        Where the code is: `source=` (C text or a C file, part of the pipeline's translation unit, which is compiled as C++), `library=`,
        `objects=`, `address=` as for `hl.extern`; else a symbol of the process, a library loaded with RTLD_GLOBAL for example. Or
        `function=`, a Python function that gets NumPy arrays (last axis: dimension 0), of the inputs the region asked for, and of the
        outputs to fill; or returns the outputs. `regions=` tells what it needs: from the output region, (min, extent) a dimension, it gives
        such a list for each buffer argument; without it that is the output region. `gradient=` is the rule `hook(adjoint, result, *params)`
        for the derivative, see `hl.register_extern_stage_gradient`; `tangent=` that for forward mode, see
        `hl.register_extern_stage_tangent`.
        """
        names = ("types", "arguments", "mangling", "device_api")
        given = dict(zip(names, shape))
        for name, value in options.items():
            key = {"type": "types", "dimensionality": "arguments"}.get(name, name)
            if key in given:
                raise TypeError(f"define_extern() got {name} twice")
            given[key] = value
        if len(shape) > len(names) or "types" not in given or "arguments" not in given:
            raise TypeError("define_extern() takes the function's name, its arguments, the types of the values and the dimensions")
        lang.extern_stage.define_extern(self.function, function_name, params, given.pop("types"), given.pop("arguments"), **given)

    # -- definitions

    __iter__ = __contains__ = None  # subscripts make references without end

    def __getitem__(self, args: Any) -> FuncRef:
        return FuncRef(self, args)

    def __call__(self, *args: Any) -> FuncRef:
        return FuncRef(self, args)

    def __setitem__(self, args: Any, value: Any) -> None:
        places = definitions.places_of(args)
        if isinstance(value, UnevaluatedFuncRefExpr):
            self._define_by_update(places, value)
        else:
            definitions.define(self.function, places, to_tuple(value))

    def _define_by_update(self, places: list[Any], value: UnevaluatedFuncRefExpr) -> None:
        f, other = self.function, value.ref.func.function
        same = f is other and [e.as_node() for e in FuncRef(self, places).places] == [e.as_node() for e in value.ref.places]
        if not same:
            if f is not other:
                advice = f"Func {other.name} has no definition yet: define it, {other.name}[x, ...] = ..., before Func {f.name} uses it"
            else:
                advice = f"An update that stands for the first definition reads what it writes; define {f.name}[x, ...] = ... first"
            where = f"Cannot use an unevaluated reference to '{other.name}' to define an update at a different location."
            raise user_error(f"{where} {advice}")
        if f.pure is not None:
            raise user_error(f"Cannot use an unevaluated reference to '{other.name}' to define an update when a pure definition already "
                             "exists.")
        elements = to_tuple(value.value)
        places, _ = definitions.expand_placeholder(places, len(places) - 1 + implicit_count([e.as_node() for e in elements]))
        types = f.required_types if len(f.required_types) == len(elements) else [e.type() for e in elements]
        start = 0 if value.kind in (n.Add, n.Sub) else 1
        pure = [p if isinstance(p, Var) else Var() for p in places]
        try:
            definitions.define(f, pure, [Expr.of(b.const(t, start)) for t in types])
            ref = FuncRef(self, places)
            me = list(ref) if len(elements) > 1 else [ref]
            given = elements if is_tuple_like(value.value) else [value.value]  # a number takes the Func's type, as in any other update
            definitions.define(f, places, [binary(value.kind, a, e) for a, e in zip(me, given)])
        except (CompileError, TypeError):
            f.pure, f.args, f.types, f.output_params, f.schedule.storage_dims = None, (), (), [], []
            raise

    def __repr__(self) -> str:
        return f"<halide.Func '{self.name()}'>"


Handles.of = Func.of


def _constructor(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, Any, tuple[Type, ...], int]:
    """(name, what to define it as, the types and the number of dimensions it must have)."""
    names = ("required_types", "required_dimensions", "name")
    given = {("required_types" if k == "required_type" else k): v for k, v in kwargs.items()}
    if not args and not given.keys() - {"name"}:
        return given.get("name") or "", None, (), -1
    if len(args) == 1 and not kwargs:
        if isinstance(args[0], str):
            return args[0], None, (), -1
        if isinstance(args[0], (Operand, int, float)) or hasattr(args[0], "param"):
            return "", args[0], (), -1
    given.update(zip(names, args))
    if given.keys() == set(names) or given.keys() == set(names[:2]):
        types = given["required_types"]
        types = (types,) if isinstance(types, Type) else tuple(types)
        if all(isinstance(t, Type) for t in types):
            return given.get("name", ""), None, types, int(given["required_dimensions"])
    raise TypeError("Func() takes a name, or an Expr, Buffer or ImageParam, or (type or types, dimensions, name)")


_LAMBDAS = itertools.count()


def lambda_func(*args: Any) -> Func:
    """An anonymous Func: `lambda_func(x, y, x + y)`.

    >>> hl.lambda_func(x, y, x + y).dimensions()
    2
    """
    f = Func(f"lambda_{next(_LAMBDAS)}")
    f[args[:-1]] = args[-1]
    return f


def funcs(names: str) -> tuple[Func, ...]:
    """Several Funcs at once: `f, g = funcs("f g")`; spaces or commas between the names.

    Raises TypeError for what is no string.

    >>> f, g = hl.funcs("f, g")
    >>> g.defined()
    False
    """
    return tuple(Func(v) for v in expect(names, str, "funcs()").replace(",", " ").split())


def evaluate(expr: Any) -> Any:
    """The value of an Expr without free Vars, computed now, as a Python number; of a tuple of Exprs a tuple of numbers.

    >>> hl.evaluate(hl.sqrt(hl.f32(4)) + 1)
    3.0
    """
    values = to_tuple(expr)
    f = Func(f"evaluate_func_{len(values)}")
    f[()] = Tuple(values)
    out = f.realize()
    return tuple(o[()] for o in out) if isinstance(out, (list, tuple)) else out[()]


def evaluate_may_gpu(expr: Any) -> Any:
    """Like evaluate(); there being no GPU code, on the CPU.

    >>> hl.evaluate_may_gpu(hl.Expr(2) + 3)
    5
    """
    return evaluate(expr)
