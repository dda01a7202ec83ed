"""Machine addresses of functions that Python objects hold, for `extern` and extern stages, and their types, where the object knows them."""

from __future__ import annotations

import ctypes
import functools
import importlib
from typing import Any

from ..errors import user_error
from ..ir.types import Bool, Float, Handle, Int, Type, UInt
from .prototypes import Prototype

_CTYPES_FUNCTION: Any = ctypes.CFUNCTYPE(None).__mro__[1]  # what all of ctypes' function objects are


@functools.cache
def _cffi() -> Any:
    """cffi's in-line interface, to take addresses and types of its function objects."""
    return importlib.import_module("cffi").FFI()


def _is_cffi(given: Any) -> bool:
    return type(given).__module__ == "_cffi_backend"


def function_address(given: Any, prototype: str) -> int:
    """The machine address of a function object."""
    if given is None:
        return 0
    if isinstance(given, int) and not isinstance(given, bool):
        found = given
    elif isinstance(getattr(given, "address", None), int):  # Numba
        found = given.address
    elif isinstance(given, _CTYPES_FUNCTION):
        found = ctypes.cast(given, ctypes.c_void_p).value or 0
    elif _is_cffi(given):
        found = int(_cffi().cast("uintptr_t", given))
    else:
        raise user_error(f"extern: `{prototype}`: address= takes an int, a ctypes or cffi function, or a Numba cfunc, not {given!r}")
    if found <= 0:
        raise user_error(f"extern: `{prototype}`: the address is {found}, which is no function")
    return found


def check_signature(given: Any, p: Prototype) -> None:
    """Raise CompileError if a function object says that it has other types than the prototype: its code would read other registers."""
    found = _signature(given)
    if found is not None and found != (p.result, p.types):
        result, args = found
        shown = f"({', '.join(str(t or 'something else') for t in args)}) -> {result or 'something else'}"
        raise user_error(f"extern: `{p.text}`: the function at address=, {given!r}, is one of {shown}; write the prototype of these types")


def _signature(given: Any) -> tuple[Type | None, tuple[Type | None, ...]] | None:
    """Result and argument types, None for a type that no Expr has; None as a whole if the object does not know them."""
    if isinstance(getattr(given, "address", None), int):  # Numba
        given = getattr(given, "ctypes", None)
    if isinstance(given, _CTYPES_FUNCTION):
        return None if given.argtypes is None else (_ctypes_type(given.restype), tuple(map(_ctypes_type, given.argtypes)))
    if not _is_cffi(given):
        return None
    t = _cffi().typeof(given)
    return (_cffi_type(t.result), tuple(map(_cffi_type, t.args))) if t.kind == "function" else None


def _ctypes_type(t: Any) -> Type | None:
    code = getattr(t, "_type_", None)
    if code == "P":
        return Handle()
    if not isinstance(code, str) or code not in "?fdbhilqBHILQ":
        return None
    bits = 8 * ctypes.sizeof(t)
    return Bool() if code == "?" else Float(bits) if code in "fd" else UInt(bits) if code.isupper() else Int(bits)


def _cffi_type(t: Any) -> Type | None:
    if t.kind == "pointer":
        return Handle() if t.item.kind == "void" else None
    if t.kind != "primitive":
        return None
    bits, name = 8 * _cffi().sizeof(t), t.cname
    if name in ("float", "double", "_Bool"):
        return Bool() if name == "_Bool" else Float(bits)
    if name == "long double" or "complex" in name.lower():
        return None
    return UInt(bits) if name.startswith("u") or name == "size_t" else Int(bits)
