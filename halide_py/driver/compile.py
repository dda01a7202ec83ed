"""Compile a pipeline and load it: fingerprint -> cached shared object, or else `build` it.

`HL_TIME=1` prints where the time went, to stderr.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

from .. import driver
from ..errors import InternalError, PipelineError, raised_by_callbacks
from ..ir.function import Function
from ..ir.module import ArgumentKind, LoweredArgument
from ..ir.target import Target
from ..lower.environment import with_outputs
from . import cache
from ._ffi import ffi
from .abi import ArgumentBlock, runtime
from .fingerprint import fingerprint
from .graph import Requirement
from .toolchain import toolchain


class LoadedPipeline:
    """A pipeline in memory. `run` it on a block of argument addresses, in the order of `args`.

    May run in several threads at once, each with a block of its own. The GIL is released while it runs.
    """

    def __init__(self, name: str, args: tuple[LoweredArgument, ...], entry: Any) -> None:
        self.name, self.args, self.entry = name, args, entry
        self._runtime = runtime()
        self._free: list[ArgumentBlock] = []

    def block(self) -> ArgumentBlock:
        """An argument block nobody uses; hand it back with `release`."""
        try:
            return self._free.pop()
        except IndexError:
            return ArgumentBlock([None if a.is_buffer() else a.type for a in self.args])

    def release(self, block: ArgumentBlock) -> None:
        """Let the next call use a block."""
        self._free.append(block)

    def run(self, block: ArgumentBlock) -> None:
        """Run. Raises PipelineError with what the pipeline reported."""
        code = self.entry(block.c)
        if code:
            self.fail(code)

    def fail(self, code: int) -> None:
        """Raise the error that the last run in this thread reported."""
        text = ffi.string(self._runtime.hl_last_error()).decode("utf-8", "replace")
        self._runtime.hl_clear_error()
        causes, raised_by_callbacks[:] = list(raised_by_callbacks), []
        if causes:
            text += f"\nPython raised {type(causes[0]).__name__}: {causes[0]}"
            raise PipelineError(f"Error: {text} (in pipeline {self.name})", code) from causes[0]
        raise PipelineError(f"Error: {text or f'it failed with code {code}'} (in pipeline {self.name}){self._advice(text)}", code)

    def _advice(self, text: str) -> str:
        """What to do about arrays that are not dense in dimension 0, such as images whose channels are interleaved."""
        found = re.match(r"Constraint violated: (.+)\.stride\.0 \(-?\d+\) == 1 \(1\)$", text)
        if found is None:
            return ""
        name = found[1]
        if any(a.shown == name and a.kind is ArgumentKind.OutputBuffer for a in self.args):  # "f", or "f.1" of a tuple
            f, _, element = name.partition(".")
            name = f"{f}.output_buffers()[{element}]" if element else f"{f}.output_buffer()"
        return (f". Elements that follow each other in dimension 0, the last axis of a NumPy array, must do so in memory: pass a copy "
                f"that is made so (numpy.ascontiguousarray), or let the pipeline take any stride: "
                f"{name}.dim(0).set_stride(hl.Expr())")


class CompiledPipeline(LoadedPipeline):
    """A pipeline compiled for this process; its library is closed when this is dropped."""

    def __init__(self, path: str, name: str, args: tuple[LoweredArgument, ...]) -> None:
        runtime()  # what the library needs
        try:
            self._library = ffi.dlopen(path, ffi.RTLD_NOW)
        except OSError as e:
            raise InternalError(f"The compiled pipeline {name} cannot be loaded: {e}") from e
        try:
            super().__init__(name, args, self._library.hl_pipeline_entry)
        except (AttributeError, ffi.error) as e:
            raise InternalError(f"The compiled pipeline {name} has no entry: {e}") from e

    def __del__(self) -> None:
        library = getattr(self, "_library", None)
        if library is not None and ffi is not None:
            self.entry = None
            ffi.dlclose(library)


class Times:
    """The table of HL_TIME=1."""

    def __init__(self) -> None:
        self.on = os.environ.get("HL_TIME", "0") not in ("", "0")
        self.rows: list[tuple[str, float]] = []
        self.start = self.last = time.perf_counter()

    def observe(self, name: str, seconds: float, changed: Any) -> None:
        """One lowering pass is done."""
        self.rows.append((f"lower: {name}", seconds))
        self.last = time.perf_counter()

    def mark(self, name: str) -> None:
        """What was done since the last mark."""
        now = time.perf_counter()
        self.rows.append((name, now - self.last))
        self.last = now

    def show(self, name: str) -> None:
        """Print the table if it is asked for."""
        if self.on:
            total = time.perf_counter() - self.start
            lines = [f"{seconds * 1e3:9.2f} ms  {what}" for what, seconds in self.rows]
            print("\n".join([f"compile {name}: {total * 1e3:.1f} ms", *lines]), file=sys.stderr)


def compile_pipeline(outputs: Sequence[Function], args: Sequence[LoweredArgument], name: str, target: Target,
                     requirements: Sequence[Requirement] = (), described: str = "") -> CompiledPipeline:
    """A callable for a pipeline whose inputs are `args`, from the caches where they have it. `described` is its fingerprint, if that is
    known.

    Raises CompileError for what cannot be compiled.
    """
    times = Times()
    tools = toolchain(target)
    all_args = with_outputs(outputs, args)
    key = cache.digest(described or fingerprint(outputs, args, name, target, requirements), tools.identity())
    times.mark("fingerprint")
    compiled = _from_cache(key, name, all_args)
    if compiled is None:
        compiled = driver.build.build(outputs, args, name, target, requirements, tools, key, times)
    else:
        times.mark("load from cache")
    times.show(name)
    return compiled


def _from_cache(key: str, name: str, args: tuple[LoweredArgument, ...]) -> CompiledPipeline | None:
    path = cache.pipeline_object(key)
    try:
        return CompiledPipeline(path, name, args) if path else None
    except InternalError:
        return None  # of another machine, say: build it again
