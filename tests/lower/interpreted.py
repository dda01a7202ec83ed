"""Runs a pipeline in the interpreter of loop IR, as it is lowered."""

from __future__ import annotations

import numpy as np

import halide_py as hl
from halide_py.ir.module import ArgumentKind
from halide_py.ir.target import Target
from halide_py.lower.pipeline import lower
from halide_py.reference.loop_ir import run_lowered
from halide_py.reference.storage import BufferArgument


def interpreted(func: hl.Func, shape: tuple[int, ...]) -> np.ndarray:
    """The values of a Func of one int32 value over `shape`, dimension 0 first: a bounds query, then the run on a buffer of the size it asks for."""
    fn = lower([func.function], func.pipeline()._arguments(), func.name(), Target.host())
    strides = [int(np.prod(shape[:d])) for d in range(len(shape))]
    given: list[object] = []
    for arg in fn.args:
        if arg.kind is ArgumentKind.OutputBuffer:
            given.append(BufferArgument(None, [0] * len(shape), arg.type, list(shape), strides))
        else:
            assert arg.param is not None
            given.append((np.asarray(arg.param.buffer).T, [0] * arg.dimensions) if arg.is_buffer() else arg.param.value)
    run_lowered(fn, given, strict=False)
    query = given[-1]
    array = np.zeros(query.extents, np.int32, order="F")
    given[-1] = BufferArgument(array, query.mins, fn.args[-1].type)
    run_lowered(fn, given, strict=False)
    return array[tuple(slice(-m, -m + e) for m, e in zip(query.mins, shape))]
