"""Extern stages: `Func.define_extern`, a Func whose values a C function (or a Python one) computes a region at a time.

What is recorded is an `ir.function.ExternStage`, and a pure definition whose values mention what the function reads, so that every walk
over definitions finds it. `lower.extern_stages` makes the calls.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

from ..errors import user_error, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Definition, Dim, ExternStage, Function, StageSchedule, StorageDim
from ..ir.intrinsics import ExternFunction
from ..ir.module import NameMangling
from ..ir.parameter import Parameter
from ..ir.printer import to_text
from ..ir.target_words import DeviceAPI
from ..ir.traverse import free_variables, nodes_of
from ..ir.types import INT32, Handle, Type
from .addresses import function_address
from .edits import count_edit
from .expr import convertible, to_node
from .extern import linker_path, source_text
from .extern_python import PythonStage
from .var import Var

HANDLE = Handle()
Hook = Callable[..., Any]


class ExternFuncArgument:
    """One argument of an extern stage: a Func, a Buffer or ImageParam, a Param, another scalar Expr or a number. Lists of any of these do
    as well."""

    def __init__(self, source: Any = None) -> None:
        self.source: Any = source.source if isinstance(source, ExternFuncArgument) else source
        kind = self.source
        self.arg: Function | Parameter | n.Expr | None = None
        if kind is None:
            return
        param = getattr(kind, "param", None)
        if isinstance(getattr(kind, "function", None), Function):
            self.arg = kind.function
        elif isinstance(param, Parameter) and param.is_buffer:
            self.arg = param
        elif convertible(kind):
            self.arg = to_node(kind)
        else:
            raise TypeError(f"an argument of an extern stage is a Func, Buffer, ImageParam, Param, Expr or number, not {kind!r}")

    def defined(self) -> bool:
        """Whether it holds anything."""
        return self.arg is not None

    def is_func(self) -> bool:
        """Whether it is a Func."""
        return isinstance(self.arg, Function)

    def is_expr(self) -> bool:
        """Whether it is passed by value."""
        return isinstance(self.arg, n.Expr)

    def is_buffer(self) -> bool:
        """Whether it is a Buffer with data of its own."""
        return isinstance(self.arg, Parameter) and not self.is_image_param()

    def is_image_param(self) -> bool:
        """Whether it is an ImageParam or OutputImageParam."""
        return isinstance(self.arg, Parameter) and type(self.source).__name__ != "Buffer"


def define_extern(
    f: Function,
    function_name: str,
    params: Sequence[Any],
    types: Type | Sequence[Type],
    arguments: int | Sequence[Var],
    mangling: NameMangling = NameMangling.Default,
    device_api: DeviceAPI = DeviceAPI.Host,
    *,
    source: Any = None,
    library: Any = None,
    objects: Any = (),
    address: Any = None,
    function: Hook | None = None,
    regions: Hook | None = None,
    gradient: Hook | None = None,
    tangent: Hook | None = None,
) -> None:
    """What `Func.define_extern` does; see there."""
    where = user_location()
    what = f"define_extern of Func {f.name}"
    if f.extern is not None:
        raise user_error(f"{what}: it is an extern stage already, of {f.extern.row.name}")
    if f.pure is not None:
        raise user_error(f"{what}: it has a pure definition already ({f.pure.where}); an extern stage is its only definition")
    if f.frozen:
        raise user_error(f"{what}: it has been used in the definition of another Func already")
    if device_api not in (DeviceAPI["Host"], DeviceAPI["None"]):
        raise user_error(f"{what}: device_api is {device_api.name}, but pipelines run on the CPU; use DeviceAPI.Host")
    given = [p if isinstance(p, ExternFuncArgument) else ExternFuncArgument(p) for p in params]
    args = tuple(_argument(what, f, i, g) for i, g in enumerate(given))
    results = (types,) if isinstance(types, Type) else tuple(types)
    if not results or not all(isinstance(t, Type) and t.is_scalar() and not t.is_handle() for t in results):
        raise user_error(f"{what}: types must be one or more scalar types, not {types!r}")
    names = [f"_{i}" for i in range(arguments)] if isinstance(arguments, int) else [v.name() for v in arguments]
    if len(set(names)) < len(names):
        raise user_error(f"{what}: the dimensions ({', '.join(names)}) are not distinct")
    if f.required_types and results != f.required_types or f.required_dimensions >= 0 and len(names) != f.required_dimensions:
        raise user_error(f"{what}: it is declared with types {list(map(str, f.required_types))} and {f.required_dimensions} dimensions, "
                         f"but defined with types {list(map(str, results))} and {len(names)} dimensions")
    kinds = [a if isinstance(a, n.Expr) else None for a in args for _ in range(len(a.types) if isinstance(a, Function) else 1)]
    c_types = tuple(HANDLE if e is None else e.type for e in kinds) + (HANDLE,) * len(results)
    origin = [
        k
        for k, v in (("source", source), ("library", library), ("objects", objects), ("address", address), ("function", function))
        if v not in (None, ())
    ]
    if len(origin) > 1:
        raise user_error(f"{what}: its code is given as {' and '.join(origin)}; it can come from one of them")
    if regions is not None and function is None:
        raise user_error(f"{what}: regions= goes with function=; a C function answers the bounds query itself")
    if function is not None:
        address = PythonStage(f.name, function, regions, [_dimensions_of(a) for a in args], len(names), c_types, len(results)).pointer
    row = _row(what, function_name, c_types, NameMangling(mangling), source, library, objects, address, where)
    in_place = function is not None and regions is None
    _record(f, ExternStage(row, args, tuple(g.source for g in given), gradient, tangent, in_place), names, results, where)


def _argument(what: str, f: Function, i: int, given: ExternFuncArgument) -> Function | Parameter | n.Expr:
    a = given.arg
    if a is None:
        raise user_error(f"{what}: argument {i + 1} is undefined")
    if a is f:
        raise user_error(f"{what}: it has itself as argument {i + 1}")
    if isinstance(a, Function) and a.pure is None:
        raise user_error(f"{what}: argument {i + 1}, Func {a.name}, has no definition yet")
    if isinstance(a, n.Expr):
        loose = [v.name for v in free_variables(a).values() if v.param is None]
        data = [c.name for c in nodes_of(a, n.Call) if c.call_type in (n.CallType.Halide, n.CallType.Image)]
        if loose or data:
            raise user_error(f"{what}: argument {i + 1}, {to_text(a)}, depends on {', '.join(loose or data)}; what is passed by value may "
                             "only depend on parameters. Pass the Func or image itself")
        if not a.type.is_scalar() or a.type.is_float() and a.type.bits() < 32:
            raise user_error(f"{what}: argument {i + 1} is of type {a.type}, which C functions cannot take; cast it")
    return a


def _dimensions_of(a: Function | Parameter | n.Expr) -> int | None:
    """Number of dimensions of a buffer, None for a scalar."""
    return None if isinstance(a, n.Expr) else len(a.args) if isinstance(a, Function) else a.dimensions


def _record(f: Function, extern: ExternStage, names: Sequence[str], types: tuple[Type, ...], where: str) -> None:
    f.args, f.types, f.extern = tuple(names), types, extern
    mentioned = tuple(m for a in extern.args for m in _mentions(a))
    values = tuple(n.Call(t, extern.row.name, mentioned, n.CallType.Extern, extern.row, i) for i, t in enumerate(types))
    variables = tuple(n.Variable(INT32, v) for v in names)
    dims = [*(Dim(v, n.ForType.Extern) for v in names), Dim(OUTERMOST)]
    f.pure = Definition(variables, values, schedule=StageSchedule(dims=dims), where=where)
    f.schedule.storage_dims = [StorageDim(v) for v in names]
    f.declare_outputs(types, len(names))
    f.where = f.where or where
    for a in extern.args:
        if isinstance(a, Function):
            a.frozen = True
    count_edit()


def _mentions(a: Function | Parameter | n.Expr) -> tuple[n.Expr, ...]:
    """An argument as the definition mentions it."""
    if isinstance(a, n.Expr):
        return (a,)
    if isinstance(a, Function):
        calls = [n.Call(t, a.name, (b.i32(0),) * len(a.args), n.CallType.Halide, a, i) for i, t in enumerate(a.types)]
    else:
        calls = [n.Call(a.type, a.name, (b.i32(0),) * a.dimensions, n.CallType.Image, None, 0, a)]
    return tuple(n.Call(HANDLE, "whole_buffer", (c,), n.CallType.Intrinsic) for c in calls)


# ---------------------------------------------------------------------------------------------------------------
# The C function

_C_TYPES = {**{f"int{w}": f"int{w}_t" for w in (8, 16, 32, 64)}, **{f"uint{w}": f"uint{w}_t" for w in (8, 16, 32, 64)}, "float32": "float",
            "float64": "double", "uint1": "bool", "bool": "bool"}
_ITANIUM = {
    "int8_t": "a",
    "uint8_t": "h",
    "int16_t": "s",
    "uint16_t": "t",
    "int32_t": "i",
    "uint32_t": "j",
    "int64_t": "l",
    "uint64_t": "m",
    "float": "f",
    "double": "d",
    "bool": "b",
}
_NAME = re.compile(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*")


def _c_type(t: Type) -> str:
    return "struct halide_buffer_t *" if t.is_handle() else "HL_BOOL" if t.is_bool() else _C_TYPES[str(t)]


def _row(what: str, name: str, types: tuple[Type, ...], mangling: NameMangling, source: Any, library: Any, objects: Any, address: Any,
         where: str) -> ExternFunction:
    """The C function: a name in the translation unit of its own, whatever else is called like it, bound to the symbol."""
    cpp = mangling is NameMangling.CPlusPlus
    if not _NAME.fullmatch(name) or "::" in name and not cpp:
        raise user_error(f"{what}: {name!r} cannot name a C function" + ("; a name with :: needs "
                                                                         "NameMangling.CPlusPlus" if "::" in name else ""))
    shown = f"int {name}({', '.join(map(_c_type, types)).replace('HL_BOOL', 'bool')})"
    text = source_text(source, shown)
    paths = tuple(linker_path(o) for o in ([objects] if isinstance(objects, str) or not hasattr(objects, "__iter__") else objects))
    place = linker_path(library)
    number = function_address(address, shown)
    key = blake2b(repr((name, [str(t) for t in types], cpp, text, place, paths, number)).encode(), digest_size=4).hexdigest()
    c_name = f"{name.replace('::', '_')}_{key}"
    parameters = ", ".join(map(_c_type, types))
    prototype = f'int {c_name}({parameters}) __asm__("{_label_prefix()}{_mangled(name, types) if cpp else name}")'
    return ExternFunction(
        name, INT32, types, c_name, False, prototype, text, place, paths, number, where=where, stage=True, extra={"alive": address}
    )


def _label_prefix() -> str:
    return "_" if sys.platform == "darwin" else ""


def _mangled(name: str, types: Sequence[Type]) -> str:
    """The symbol of a C++ function of these parameters, as the Itanium ABI spells it; `S0_` is the pointer seen before."""
    parts = name.split("::")
    spelled = "".join(f"{len(p)}{p}" for p in parts)
    first = len(parts) - 1  # substitutions taken by the namespaces
    out, seen = f"_ZN{spelled}E" if len(parts) > 1 else f"_Z{spelled}", False
    for t in types:
        if not t.is_handle():
            out += _ITANIUM[_c_type(t).replace("HL_BOOL", "bool")]
        else:
            out += (f"S{first}_" if seen else "P15halide_buffer_t")
            seen = True
    return out + ("" if types else "v")
