"""Compile a pipeline and load it: fingerprint -> cached shared object, or else lower -> C text -> shared object.

`HL_TIME=1` prints where the time went, to stderr.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from ..codegen_c import generate
from ..errors import CompileError, InternalError, PipelineError
from ..ir import nodes as n
from ..ir.build import NOTHING
from ..ir.function import Function
from ..ir.intrinsics import ExternFunction
from ..ir.module import LoweredArgument, LoweredFunction, LoweredModule
from ..ir.target import ISA_FEATURES, Target
from ..ir.target_words import TargetFeature
from ..ir.traverse import nodes_of, rewrite
from ..lower.pipeline import Observer, lower, with_outputs
from . import cache
from ._ffi import ffi
from .abi import ArgumentBlock, runtime
from .fingerprint import fingerprint
from .graph import Requirement
from .toolchain import Toolchain, compile_shared, toolchain

# Every library compiled for this process has one entry of a fixed name, so that no pipeline needs a declaration of its own.
ENTRY = 'HL_EXPORT int hl_pipeline_entry(void **args) {{ return {name}_argv(args); }}\n'
_numbers = itertools.count()
_TRIM_EVERY = 64
_SWEEP_FROM = 200_000  # nodes
_kept_nodes = [0]


def c_name(name: str) -> str:
    """A C identifier for a pipeline's name."""
    clean = re.sub(r"\W", "_", name)
    return "_" + clean if clean[:1].isdigit() else clean


class CompiledPipeline:
    """A loaded pipeline. `run` it on a block of argument addresses, in the order of `args`; the library is closed when this is dropped.

    May run in several threads at once, each with a block of its own. The GIL is released while it runs.
    """

    def __init__(self, path: str, name: str, args: tuple[LoweredArgument, ...]) -> None:
        self.name, self.args = name, args
        self._runtime = runtime()
        try:
            self._library = ffi.dlopen(path, ffi.RTLD_NOW)
        except OSError as e:
            raise InternalError(f"The compiled pipeline {name} cannot be loaded: {e}") from e
        try:
            self.entry = self._library.hl_pipeline_entry
        except AttributeError as e:
            raise InternalError(f"The compiled pipeline {name} has no entry: {e}") from e
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
        raise PipelineError(f"Error: {text or f'it failed with code {code}'} (in pipeline {self.name})", code)

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


def lower_to_module(outputs: Sequence[Function], args: Sequence[LoweredArgument], name: str, target: Target,
                    requirements: Sequence[Requirement] = (), observer: Observer | None = None) -> LoweredModule:
    """The pipeline as loop IR under its C name. Raises CompileError for options of the target that cannot be honoured."""
    _check_features(target)
    f = lower(outputs, args, c_name(name), target, requirements, observer)
    body = rewrite(f.body, {n.Assert: lambda s, rec: NOTHING}) if target.has_feature(TargetFeature.NoAsserts) else f.body
    return LoweredModule(f.name, [LoweredFunction(f.name, f.args, body, name)])


_HONOURED = ISA_FEATURES | {
    TargetFeature.JIT, TargetFeature.Debug, TargetFeature.EnableBacktraces, TargetFeature.NoAsserts, TargetFeature.NoBoundsQuery,
    TargetFeature.LargeBuffers, TargetFeature.NoRuntime, TargetFeature.EmbedBitcode, TargetFeature.EnableLLVMLoopOpt, TargetFeature.LLVMLargeCodeModel,
    TargetFeature.UserContext,
}
_INSTEAD = {
    TargetFeature.StrictFloat: "use strict_float() on expressions", TargetFeature.TraceLoads: "use Func.trace_loads()",
    TargetFeature.TraceStores: "use Func.trace_stores()", TargetFeature.TraceRealizations: "use Func.trace_realizations()",
    TargetFeature.ASAN: "set HL_SANITIZE=address", TargetFeature.TSAN: "set HL_SANITIZE=thread",
}


def _check_features(target: Target) -> None:
    """What is asked for and would be ignored is an error."""
    for f in target.features():
        if f not in _HONOURED:
            why = "pipelines are compiled for the CPU" if Target().with_feature(f).has_gpu_feature() else _INSTEAD.get(f, "it is not supported; remove it")
            raise CompileError(f"Target {target} has feature {f.label}: {why}")


def link_inputs(module: LoweredModule) -> list[str]:
    """Libraries and objects that the user's C functions called in a module come from."""
    found: dict[str, None] = {}
    for row in {c.func for f in module.functions for c in nodes_of(f.body, n.Call) if isinstance(c.func, ExternFunction)}:
        for o in row.objects:
            found[o] = None
        if row.library:
            found[row.library if os.path.sep in row.library else f"-l{row.library}"] = None
    return sorted(found)


def compile_pipeline(outputs: Sequence[Function], args: Sequence[LoweredArgument], name: str, target: Target,
                     requirements: Sequence[Requirement] = ()) -> CompiledPipeline:
    """A callable for a pipeline whose inputs are `args`, from the caches where they have it. Raises CompileError for what cannot be compiled."""
    times = Times()
    tools = toolchain(target)
    all_args = with_outputs(outputs, args)
    key = fingerprint(outputs, args, name, target, requirements, tools.identity())
    times.mark("fingerprint")
    compiled = _from_cache(key, name, all_args)
    if compiled is None:
        module = lower_to_module(outputs, args, name, target, requirements, times.observe)
        text = generate(module, tools.machine(target)) + ENTRY.format(name=module.name)
        times.mark("C text")
        compiled = _build(text, key, tools, link_inputs(module), name, all_args, times)
        _sweep()
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


def _build(text: str, key: str, tools: Toolchain, extra: Sequence[str], name: str, args: tuple[LoweredArgument, ...], times: Times) -> CompiledPipeline:
    """Compile C text, unless its shared object is there, and load it."""
    content = cache.digest(text, tools.identity(), *extra)
    path = cache.lookup(content)
    if path:
        try:
            compiled = CompiledPipeline(path, name, args)
            cache.remember_pipeline(key, content)
            times.mark("load, same C text")
            return compiled
        except InternalError:
            pass  # as above
    with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
        built = os.path.join(folder, f"pipeline{next(_numbers)}.so")
        compile_shared(text, built, tools, folder, extra)
        times.mark("C compile")
        path = cache.store(content, built)
        if path:
            cache.remember_pipeline(key, content)
        compiled = CompiledPipeline(path or built, name, args)
    times.mark("load")
    if next(_numbers) % _TRIM_EVERY == _TRIM_EVERY - 1:
        cache.trim()
    return compiled


def _sweep() -> None:
    """Drop dead IR nodes once they are many."""
    if len(n.TABLE) > max(_SWEEP_FROM, 2 * _kept_nodes[0]):
        n.sweep()
        _kept_nodes[0] = len(n.TABLE)
