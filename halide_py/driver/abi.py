"""The C side as Python sees it: the runtime library, and buffers in the layout of `halide_buffer_t`."""

from __future__ import annotations

import os
import sys
from typing import Any, Sequence

import numpy as np

from ..errors import InternalError
from ..ir.types import Type
from ._ffi import ffi

RUNTIME_DIR = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_runtime")
INCLUDE_DIR = os.path.join(RUNTIME_DIR, "include")
STATIC_RUNTIME = os.path.join(RUNTIME_DIR, "libhalide_py_runtime.a")
SHARED_RUNTIME = os.path.join(RUNTIME_DIR, "libhalide_py_runtime.so")

NULL: Any = ffi.NULL
_loaded: list[Any] = []


@ffi.callback("void(void *, const char *)")  # type: ignore[untyped-decorator]
def _print(user_context: Any, message: Any) -> None:
    """What pipelines print goes where Python's print goes."""
    sys.stdout.write(ffi.string(message).decode("utf-8", "replace"))


def runtime() -> Any:
    """The runtime library, loaded once with its symbols visible to pipelines. Raises InternalError when it was not built."""
    if not _loaded:
        if not os.path.exists(SHARED_RUNTIME):
            raise InternalError("The C runtime of halide_py is missing; build it with `pip install -e .` or `python setup.py build_runtime --inplace`")
        lib = ffi.dlopen(SHARED_RUNTIME, ffi.RTLD_NOW | ffi.RTLD_GLOBAL)
        lib.halide_set_custom_print(_print)
        _loaded.append(lib)
    return _loaded[0]


def set_num_threads(n: int) -> int:
    """Threads that work on parallel loops, the caller included; 0: the default. Gives the previous number."""
    return int(runtime().halide_set_num_threads(n))


class RawBuffer:
    """A `halide_buffer_t` on memory that `owner` keeps alive; dimensions innermost first, strides in elements."""

    __slots__ = ("c", "dims", "owner", "address")

    def __init__(self, t: Type, shape: Sequence[tuple[int, int, int]], host: int, owner: Any) -> None:
        self.c = ffi.new("halide_buffer_t *")
        self.dims = ffi.new("halide_dimension_t[]", max(len(shape), 1))
        for d, (low, extent, stride) in zip(self.dims, shape):
            d.min, d.extent, d.stride, d.flags = low, extent, stride, 0
        c = self.c
        c.type.code, c.type.bits, c.type.lanes = int(t.code()), t.bits(), 1
        c.dimensions, c.dim = len(shape), self.dims
        c.host = ffi.cast("uint8_t *", host)
        self.owner = owner
        self.address = int(ffi.cast("uintptr_t", c))

    def shape(self) -> list[tuple[int, int, int]]:
        """(min, extent, stride) of each dimension as it is now; a bounds query changes it."""
        return [(d.min, d.extent, d.stride) for d in self.dims[0:self.c.dimensions]]




def scalar_cell(t: Type, value: int | float | bool) -> Any:
    """A C variable of type `t` that holds `value`; its address goes into an argument block."""
    if t.is_bool():
        return ffi.new("uint8_t *", int(value))
    if t.is_float():
        if t.bits() == 16:
            return ffi.new("uint16_t *", int(np.float16(value).view(np.uint16)))
        return ffi.new("float *" if t.bits() == 32 else "double *", value)
    if t.is_handle():
        return ffi.new("uint64_t *", value)
    return ffi.new(("int" if t.is_int() else "uint") + f"{t.bits()}_t *", value)
