"""Runs a script's pipeline three ways: the algorithm interpreter, the loop IR interpreter after lowering, and compiled C."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from pipelines import Script

from halide_py.errors import PipelineError
from halide_py.ir import nodes as n
from halide_py.ir.function import Function
from halide_py.ir.module import ArgumentKind, LoweredArgument
from halide_py.ir.parameter import Parameter
from halide_py.ir.target import Target
from halide_py.ir.traverse import nodes_of
from halide_py.lower.pipeline import lower
from halide_py.reference import algorithm
from halide_py.reference.loop_ir import run_lowered
from halide_py.reference.storage import BufferArgument, numpy_type

SLOW = os.environ.get("HL_TEST_ALL", "0") != "0"
EXPECTED_REFUSALS = ("do not cover required region", "is accessed at", "too small to store the required region")  # `bound` too small; a region that one query does not settle


def build(script: Script, scheduled: bool = True) -> Any:
    """Execute the definitions and the schedule; returns the output Func."""
    names: dict[str, Any] = {}
    text = script.preamble() + "\n" + "\n".join(script.schedule if scheduled else []) + "\n"
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        exec(compile(text, "<generated pipeline>", "exec"), names)
    return names[script.funcs[-1].name]


def parameters(f: Function) -> Iterator[Parameter]:
    """Every parameter that `f` depends on, each once."""
    seen: set[Any] = set()
    work = [f]
    while work:
        for stage in work.pop().stages():
            for e in nodes_of((*stage.args, *stage.values, stage.predicate), (n.Call, n.Variable)):
                if e.param is not None and e.param not in seen:
                    seen.add(e.param)
                    yield e.param
                if isinstance(e, n.Call) and isinstance(e.func, Function) and e.func not in seen:
                    seen.add(e.func)
                    work.append(e.func)


def lowered(f: Function) -> Any:
    """The pipeline of one Func in loop IR."""
    args = []
    for p in sorted(parameters(f), key=lambda p: p.name):
        kind = ArgumentKind.InputBuffer if p.is_buffer else ArgumentKind.InputScalar
        args.append(LoweredArgument(p.name, kind, p.type, p.dimensions, p))
    return lower([f], args, f.name, Target.host())


def run_loop_ir(f: Function, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Lower and interpret: a bounds query first, then the run on buffers of the size it asks for, cropped to `shape`."""
    fn = lowered(f)
    given: list[Any] = []
    for arg in fn.args:
        if arg.kind is ArgumentKind.OutputBuffer:
            given.append(BufferArgument(None, [0] * len(shape), arg.type, list(shape), [int(np.prod(shape[:d])) for d in range(len(shape))]))
        elif arg.kind is ArgumentKind.InputBuffer:
            buffer = arg.param.buffer
            given.append((np.asarray(buffer).T, [buffer.dim(d).min() for d in range(arg.dimensions)]))
        else:
            given.append(arg.param.value)
    run_lowered(fn, given, strict=False)
    outputs = []
    for i, arg in enumerate(fn.args):
        if arg.kind is ArgumentKind.OutputBuffer:
            array = np.zeros(given[i].extents, numpy_type(arg.type), order="F")
            outputs.append((array, given[i].mins))
            given[i] = BufferArgument(array, given[i].mins, arg.type)
    run_lowered(fn, given, strict=False)
    return [a[tuple(slice(-m, -m + e) for m, e in zip(mins, shape))] for a, mins in outputs]


def run_compiled(func: Any, shape: tuple[int, ...]) -> list[np.ndarray]:
    """Compile and run, through the public API."""
    result = func.realize(list(shape))
    return [np.asarray(b).T for b in (result if isinstance(result, (list, tuple)) else [result])]


def expected(func: Any, shape: tuple[int, ...]) -> list[np.ndarray]:
    """What the algorithm says."""
    return algorithm.realize([func.function], shape)


def compare(got: list[np.ndarray], want: list[np.ndarray], script: Script) -> None:
    """Bit for bit; generated floats are small integers, so exact as well."""
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w, err_msg="\n" + script.text())


def refused(error: PipelineError) -> bool:
    """Whether a run may be refused for this reason under a random schedule."""
    return any(reason in str(error) for reason in EXPECTED_REFUSALS)
