"""The C side as Python sees it: the runtime library, buffers in the layout of `halide_buffer_t`, blocks of arguments."""

from __future__ import annotations

import atexit
import functools
import os
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InternalError
from ..ir.types import Type
from ._ffi import ffi

RUNTIME_DIR = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "_runtime")
INCLUDE_DIR = os.path.join(RUNTIME_DIR, "include")
STATIC_RUNTIME = os.path.join(RUNTIME_DIR, "libhalide_py_runtime.a")
SHARED_RUNTIME = os.path.join(RUNTIME_DIR, "libhalide_py_runtime.so")
HOST_DIRTY, DEVICE_DIRTY = 1, 2  # bits of halide_buffer_t.flags


@ffi.callback("void(void *, const char *)")  # type: ignore[untyped-decorator]
def _print(user_context: Any, message: Any) -> None:
    """What pipelines print goes where Python's print goes."""
    sys.stdout.write(ffi.string(message).decode("utf-8", "replace"))


@functools.cache
def runtime() -> Any:
    """The runtime library, loaded once with its symbols visible to pipelines. Raises InternalError when it was not built."""
    if not os.path.exists(SHARED_RUNTIME):
        raise InternalError("The C runtime of halide_py is missing; build it with `pip install -e .` or `python setup.py build_runtime --inplace`")
    library = ffi.dlopen(SHARED_RUNTIME, ffi.RTLD_NOW | ffi.RTLD_GLOBAL)
    library.halide_set_custom_print(_print)
    atexit.register(library.halide_set_custom_print, ffi.NULL)  # no callback into an interpreter that is gone
    return library


def set_num_threads(n: int) -> int:
    """Threads that work on parallel loops, the caller included; 0: the default, `HL_NUM_THREADS` or the processors there are.

    Gives the previous number. Raises ValueError for a negative one.
    """
    if n < 0:
        raise ValueError(f"set_num_threads({n}): the number of threads must not be negative")
    return int(runtime().halide_set_num_threads(n))


def get_num_threads() -> int:
    """Threads that work on parallel loops, the caller included."""
    return int(runtime().halide_get_num_threads())


class RawBuffer:
    """A `halide_buffer_t` on memory that `owner` keeps alive; dimensions innermost first, strides in elements. Host 0: a bounds query."""

    __slots__ = ("c", "dims", "owner", "writable")

    def __init__(self, t: Type, shape: Sequence[tuple[int, int, int]], host: int, owner: Any, writable: bool = True) -> None:
        self.c = c = ffi.new("halide_buffer_t *")
        self.dims = ffi.new("halide_dimension_t[]", [(low, extent, stride, 0) for low, extent, stride in shape] or 1)
        c.type = (int(t.code()), t.bits(), 1)
        c.dimensions, c.dim = len(shape), self.dims
        c.host = ffi.cast("uint8_t *", host)
        self.owner, self.writable = owner, writable

    @staticmethod
    def query(t: Type, sizes: Sequence[tuple[int, int]]) -> RawBuffer:
        """A bounds query that asks for (min, extent) of each dimension."""
        return RawBuffer(t, [(low, extent, 0) for low, extent in sizes], 0, None)

    @staticmethod
    def of_array(t: Type, array: np.ndarray[Any, Any]) -> RawBuffer:
        """On a NumPy array of elements of type `t`: the last axis becomes dimension 0, mins are 0. The strides must be multiples of the element."""
        size = array.itemsize
        shape = [(0, extent, stride // size) for extent, stride in zip(array.shape[::-1], array.strides[::-1])]
        return RawBuffer(t, shape, address_of(array), array, array.flags.writeable)

    def shape(self) -> list[tuple[int, int, int]]:
        """(min, extent, stride) of each dimension as it is now; a bounds query changes it."""
        return [(d.min, d.extent, d.stride) for d in self.dims[0:self.c.dimensions]]


def address_of(array: np.ndarray[Any, Any]) -> int:
    """The address of an array's first element, also for arrays that may not be written."""
    return int(array.__array_interface__["data"][0])


_SCALARS = {"f32": "float *", "f64": "double *", "f16": "uint16_t *", "handle": "uint64_t *"}


class ScalarCell:
    """A C variable of type `t`; its address goes into an argument block, `set` gives it a value."""

    __slots__ = ("c", "_half")

    def __init__(self, t: Type) -> None:
        kind = "handle" if t.is_handle() else f"f{t.bits()}" if t.is_float() else ""
        self.c = ffi.new(_SCALARS[kind] if kind else f"{'int' if t.is_int() else 'uint'}{t.bytes() * 8}_t *")
        self._half = kind == "f16"

    def set(self, value: int | float | bool) -> None:
        """The value for the next call. Raises OverflowError for one that does not fit."""
        self.c[0] = int(np.float16(value).view(np.uint16)) if self._half else value


class ArgumentBlock:
    """What a pipeline's entry takes: addresses of scalars and buffers. One call at a time may use it."""

    __slots__ = ("c", "cells")

    def __init__(self, scalars: Sequence[Type | None]) -> None:
        """One place an argument: the Type of a scalar, None for a buffer."""
        self.c = ffi.new("void *[]", max(len(scalars), 1))
        self.cells = [None if t is None else ScalarCell(t) for t in scalars]
        for i, cell in enumerate(self.cells):
            if cell is not None:
                self.c[i] = cell.c
