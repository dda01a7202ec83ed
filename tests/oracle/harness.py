"""Runs a script's pipeline three ways: the algorithm interpreter, the loop IR interpreter after lowering, and compiled C."""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from script import Script

from halide_py.errors import CompileError, PipelineError
from halide_py.ir import nodes as n
from halide_py.ir.function import Function
from halide_py.ir.module import ArgumentKind, LoweredArgument
from halide_py.ir.parameter import Parameter
from halide_py.ir.target import Target
from halide_py.ir.traverse import nodes_of
from halide_py.lower.pipeline import lower
from halide_py.reference import algorithm
from halide_py.reference.loop_expressions import TooMuchWork
from halide_py.reference.loop_ir import run_lowered
from halide_py.reference.storage import BufferArgument, numpy_type

SCHEDULE = "<schedule>"
ITERATIONS = 60_000  # of loops that are interpreted: some seconds; schedules that compute again and again what they could keep take millions

# What a pipeline may say when it runs, and the directives that are to blame; of a region that one query does not settle, none.
EXPECTED_REFUSALS = {
    "do not cover required region": r"\.bound(_extent)?\(", "too small to store the required region": r"\.(bound_storage|fold_storage)\(",
    "not any of these": r"\.specialize_fail\(", "is accessed at": "$^", "finds no size": "$^",
}


Run = Callable[[Script, dict[str, Any]], list[np.ndarray]]


def build(script: Script, scheduled: bool = True) -> dict[str, Any]:
    """Execute the definitions and the schedule, each of whose lines is a line of a file named SCHEDULE; returns the script's names. Directives
    that are refused leave the script."""
    names: dict[str, Any] = {}

    def run(text: str, file: str = "<generated pipeline>") -> None:
        exec(compile(text, file, "exec"), names)

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        run(script.preamble())
        accepted: list[str] = []
        for line in script.schedule if scheduled else []:
            try:
                run("\n" * len(accepted) + line, SCHEDULE)
                accepted.append(line)
            except (CompileError, NameError):  # a name that a refused directive would have made
                pass
        if scheduled:
            script.schedule[:] = accepted
    return names


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


def lowered(outputs: Sequence[Function]) -> Any:
    """The pipeline in loop IR."""
    args = []
    for p in sorted({p for f in outputs for p in parameters(f)}, key=lambda p: p.name):
        kind = ArgumentKind.InputBuffer if p.is_buffer else ArgumentKind.InputScalar
        args.append(LoweredArgument(p.name, kind, p.type, p.dimensions, p))
    return lower(outputs, args, outputs[0].name, Target.host())


def run_loop_ir(script: Script, names: dict[str, Any]) -> list[np.ndarray]:
    """Lower and interpret, or compile what takes too many iterations. Unless `script.exact`, a bounds query first, then the run on buffers
    of the size it asks for, cropped."""
    fn = lowered(functions(script, names))
    shape, mins = list(script.shape), list(script.mins)
    given: list[Any] = []
    for arg in fn.args:
        if arg.kind is ArgumentKind.OutputBuffer:
            given.append(BufferArgument(None, list(mins), arg.type, list(shape), [int(np.prod(shape[:d])) for d in range(len(shape))]))
        elif arg.kind is ArgumentKind.InputBuffer:
            buffer = arg.param.buffer
            given.append((np.asarray(buffer).T, [buffer.dim(d).min() for d in range(arg.dimensions)]))
        else:
            given.append(arg.param.value)
    if not script.exact:
        run_lowered(fn, given, strict=False)
    outputs = []
    for i, arg in enumerate(fn.args):
        if arg.kind is ArgumentKind.OutputBuffer:
            array = np.zeros(given[i].extents, numpy_type(arg.type), order="F")
            outputs.append((array, given[i].mins))
            given[i] = BufferArgument(array, given[i].mins, arg.type)
    try:
        run_lowered(fn, given, strict=False, iterations=ITERATIONS)
    except TooMuchWork:
        return run_compiled(script, names)
    cropped = [a[tuple(slice(m - low, m - low + e) for low, m, e in zip(lows, mins, shape))] for a, lows in outputs]
    if any(a.shape != tuple(shape) for a in cropped):
        raise PipelineError("The bounds given do not cover required region and what is asked for, as the query answered")
    return cropped


def run_compiled(script: Script, names: dict[str, Any]) -> list[np.ndarray]:
    """Compile and run, through the public API."""
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(script.run(), "<generated pipeline>", "exec"), names)
    return [a.T for a in names["results"]]


def functions(script: Script, names: dict[str, Any]) -> list[Function]:
    return [names[f.name].function for f in script.outputs]


def expected(script: Script) -> list[np.ndarray]:
    """What the algorithm says."""
    return algorithm.realize(functions(script, build(script, scheduled=False)), script.shape, script.mins)


def compare(got: list[np.ndarray], want: list[np.ndarray], script: Script) -> None:
    """Bit for bit; generated floats are small integers, so exact as well."""
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w, err_msg="\n" + script.text())


def legal(script: Script, run: Run) -> list[np.ndarray] | None:
    """What `run` gives of the script without the directives that are refused: when compiling, one by one, by the lines that the errors name, or
    None if one names no line; when it runs, by what the error says."""
    while True:
        names = build(script)
        try:
            return run(script, names)
        except CompileError as error:
            assert script.schedule, "refused without a schedule"
            lines = re.findall(rf"{SCHEDULE}:(\d+)", str(error))
            if not lines:
                return None
            del script.schedule[int(lines[-1]) - 1]
        except PipelineError as error:
            blamed = "|".join(pattern for reason, pattern in EXPECTED_REFUSALS.items() if reason in str(error)) or "$^"
            kept = [line for line in script.schedule if not re.search(blamed, line)]
            if len(kept) == len(script.schedule):
                raise
            script.schedule[:] = kept


def check(script: Script, run: Run) -> bool:
    """The scheduled script gives what the algorithm says; False if it is refused, for a reason its schedule may have."""
    want = expected(script)
    try:
        got = legal(script, run)
    except PipelineError as error:
        spilled = script.exact and "Output buffer" in str(error)  # an update writes where it likes, which a buffer given must have
        if not spilled and (not script.schedule or not any(reason in str(error) for reason in EXPECTED_REFUSALS)):
            raise
        return False
    if got is not None:
        compare(got, want, script)
    return got is not None
