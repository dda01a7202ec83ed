"""What the loop IR interpreter does for calls of the C runtime: error reports, buffer fields, and the user's own C functions."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from ..errors import InternalError, PipelineError
from ..ir.intrinsics import ExternFunction
from ..ir.types import INT32, Type, TypeCode
from .scalar import Operation, Value, math_function
from .storage import BufferArgument

# Message (with the arguments by position) and error code, as in the public runtime header.
ERRORS: dict[str, tuple[str, int]] = {
    "bounds_inference_call_failed": ("Bounds inference call to external stage {0} returned non-zero value: {1}", 0),
    "extern_stage_failed": ("Call to external stage {0} returned non-zero value: {1}", 0),
    "explicit_bounds_too_small": ("Bounds given for {1} in {0} (from {2} to {3}) do not cover required region (from {4} to {5})", -2),
    "bad_type": ("{0} has type {2} but type of the buffer passed in is {1}", -3),
    "bad_dimensions": ("{0} requires a buffer of exactly {2} dimensions, but the buffer passed in has {1} dimensions", -43),
    "access_out_of_bounds": ("", -4),
    "buffer_allocation_too_large": ("Total allocation for buffer {0} is {1}, which exceeds the maximum size of {2}", -5),
    "buffer_extents_negative": ("The extents for buffer {0} dimension {1} is negative ({2})", -28),
    "buffer_extents_too_large": ("Product of extents for buffer {0} is {1}, which exceeds the maximum size of {2}", -6),
    "constraints_make_required_region_smaller": ("Applying the constraints on {0} to the required region made it smaller in dimension "
                                                 "{1}.", -7),
    "constraint_violated": ("Constraint violated: {0} ({1}) == {2} ({3})", -8),
    "param_too_small_i64": ("Parameter {0} is {1} but must be at least {2}", -9),
    "param_too_small_u64": ("Parameter {0} is {1} but must be at least {2}", -9),
    "param_too_small_f64": ("Parameter {0} is {1} but must be at least {2}", -9),
    "param_too_large_i64": ("Parameter {0} is {1} but must be at most {2}", -10),
    "param_too_large_u64": ("Parameter {0} is {1} but must be at most {2}", -10),
    "param_too_large_f64": ("Parameter {0} is {1} but must be at most {2}", -10),
    "out_of_memory": ("Out of memory (halide_malloc returned nullptr)", -11),
    "buffer_argument_is_null": ("Buffer argument {0} is nullptr", -12),
    "unaligned_host_ptr": ("The host pointer of {0} is not aligned to a {1} bytes boundary.", -24),
    "host_is_null": ("The host pointer of {0} is null, but the pipeline will access it on the host.", -34),
    "bad_fold": ("The folded storage dimension {1} of {0} was accessed out of order by loop {2}.", -25),
    "fold_factor_too_small": ("The fold factor ({2}) of dimension {1} of {0} is too small to store the required region accessed by loop "
                              "{3} ({4}).", -26),
    "requirement_failed": ("Requirement Failed: ({0}) {1}", -27),
    "specialize_fail": ("A schedule specialized with specialize_fail() was chosen: {0}", -31),
    "storage_bound_too_small": (
        "The explicit allocation bound ({2}) of dimension {1} of {0} is too small to store the required region ({3}).", -45),
    "split_factor_not_positive": (
        ("In schedule for func {0}, the factor used to split the variable {1} into {2} and {3} is {4}. This evaluated to {5}, "
        "which is not strictly positive. Consider using max({4}, 1) instead."), -46),
    "buffers_overlap": ("{0} and {1} share memory: {2}", -47),
    "region_too_large": (
        ("Func {0} is required from {2} to {3} in dimension {1}; this, its extent or a value it is computed from is beyond int32. "
        "Limit the index with clamp(), or make the output smaller."), -48),
}


def _type_from_bits(bits: int) -> Type:
    return Type(TypeCode(bits & 0xFF), bits >> 8 & 0xFF, bits >> 16)


def raise_error(name: str, args: list[Value]) -> NoReturn:
    """What `halide_error_*` does: raise PipelineError with its message and code."""
    key = name.removeprefix("halide_error_")
    if key not in ERRORS:
        raise InternalError(f"The reference interpreter does not know the error {name}")
    text, code = ERRORS[key]
    if key == "access_out_of_bounds":
        low = args[2] < args[4]
        text = "{0} is accessed at {2}, which is before the min ({4}) in dimension {1}" if low else (
            "{0} is accessed at {3}, which is beyond the max ({5}) in dimension {1}")
    if key == "bad_type":
        args = [args[0], *(_type_from_bits(bits) for bits in args[1:])]
    raise PipelineError(text.format(*args), code or int(args[1]))


def _answer(buffer: BufferArgument, packed: int, dimensions: int, *shape: int) -> int:
    if buffer.array is None:
        buffer.type = _type_from_bits(packed)
        buffer.mins[:], buffer.extents[:], buffer.strides[:] = shape[0::3], shape[1::3], shape[2::3]
    return 0


def _check_kind(buffer: BufferArgument | None, name: str, label: str, packed: int, dimensions: int) -> int:
    if buffer is None:
        raise_error("buffer_argument_is_null", [name])
    t = buffer.type
    given = 0 if t is None else int(t.code()) | t.bits() << 8 | t.lanes() << 16
    if buffer.array is not None and given != packed:
        raise_error("bad_type", [label, given, packed])
    has = len(buffer.extents) if buffer.array is None else buffer.array.ndim
    if has != dimensions:
        raise_error("bad_dimensions", [label, has, dimensions])
    return 0


def _check_region(buffer: BufferArgument, label: str, touched: int, dimensions: int, *ends: int) -> int:
    for d, (low, extent) in enumerate(zip(buffer.mins, buffer.extents)):
        if extent < 0:
            raise_error("buffer_extents_negative", [label, d, extent])
        if touched and d < dimensions:
            first, last = (max(INT32.min_value(), min(INT32.max_value(), end)) for end in ends[2 * d:2 * d + 2])
            if ends[2 * d] < low or ends[2 * d + 1] >= low + extent:
                raise_error("access_out_of_bounds", [label, d, first, last, low, low + extent - 1])
    if touched and buffer.array is None:
        raise_error("host_is_null", [label])
    return 0


def _check_reach(func: str, dimension: str, low: int, high: int, count: int, *inner: int) -> int:
    if high - low >= INT32.max_value() or not all(INT32.can_represent_value(value) for value in (low, high, *inner)):
        raise_error("region_too_large", [func, dimension, low, high])
    return 0


def _check_apart(same_is_fine: int, reason: str, inputs: int, outputs: int, *named: Any) -> int:
    labelled: list[tuple[BufferArgument, str]] = list(zip(named[::2], named[1::2], strict=True))
    pairs = itertools.product(labelled[:inputs], labelled[inputs:]) if inputs else itertools.combinations(labelled, 2)
    for (a, first), (b, second) in pairs:
        if a.array is not None and b.array is not None and np.shares_memory(a.array, b.array) and not (same_is_fine and a.array is b.array):
            raise_error("buffers_overlap", [first, second, reason])
    return 0


BUFFER_FUNCTIONS: dict[str, Callable[..., Value]] = {
    "_halide_buffer_get_host": lambda b: 0 if b.array is None else b.array.__array_interface__["data"][0],
    "_halide_buffer_get_min": lambda b, d: b.mins[d],
    "_halide_buffer_get_extent": lambda b, d: b.extents[d],
    "_halide_buffer_get_stride": lambda b, d: b.strides[d],
    "_halide_buffer_digest": lambda b: 0 if b.array is None else hash(b.array.tobytes()),
    "_halide_buffer_is_bounds_query": lambda b: int(b.array is None),
    "_halide_buffer_answer": _answer,
    "hl_check_kind": _check_kind,
    "hl_check_region": _check_region,
    "hl_check_reach": _check_reach,
    "hl_check_near": lambda b, label: 0,
    "hl_check_apart": _check_apart,
}


def _ctype(t: Type) -> Any:
    if t.is_float():
        return {32: ctypes.c_float, 64: ctypes.c_double}[t.bits()]
    if t.is_bool():
        return ctypes.c_bool
    if t.is_handle():
        return ctypes.c_void_p
    return getattr(ctypes, f"c_{'int' if t.is_int() else 'uint'}{t.bits()}")


@functools.cache
def _compile(source: str) -> ctypes.CDLL:
    compiler = next((c for c in (os.environ.get("HL_CC"), os.environ.get("CC"), "gcc", "clang", "cc") if c and shutil.which(c)), None)
    if compiler is None:
        raise InternalError("The reference interpreter found no C compiler for an extern function's source")
    folder = tempfile.mkdtemp(prefix="halide_py_reference_")
    try:
        path = os.path.join(folder, "extern.c")
        with open(path, "w") as file:
            file.write(source)
        library = os.path.join(folder, "extern.so")
        subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-o", library, path, "-lm"], check=True)
        return ctypes.CDLL(library)
    finally:
        shutil.rmtree(folder)


def extern_function(name: str, row: ExternFunction | None, externs: Mapping[str, Operation]) -> Operation | None:
    """The callable for a C function: the caller's own, built-in math, or the user's C code through ctypes; None if unknown."""
    if name in externs:
        return externs[name]
    if row is None:
        return None
    if row.builtin:
        return math_function(name, row.result)
    prototype = ctypes.CFUNCTYPE(_ctype(row.result), *(_ctype(t) for t in row.args))
    if row.address:
        return prototype(row.address)
    if row.source:
        return prototype((row.name, _compile(row.source)))
    return prototype((row.name, ctypes.CDLL(row.library or None)))
