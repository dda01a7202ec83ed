"""Compile a pipeline: fingerprint -> cached shared object, or lower -> C text -> shared object; load it through cffi.

`HL_TIME=1` prints where the time went.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
import tempfile
import time
from typing import Any, Sequence

from ..codegen_c import Machine, generate
from ..errors import InternalError, PipelineError
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.intrinsics import ExternFunction
from ..ir.module import LoweredArgument, LoweredFunction, LoweredModule
from ..ir.target import Target
from ..ir.traverse import nodes_of
from ..ir.types import UInt
from ..lower.pipeline import lower, with_outputs
from . import cache
from ._ffi import ffi
from .abi import runtime
from .fingerprint import fingerprint
from .toolchain import Toolchain, compile_shared, toolchain

_TEMPORARY = itertools.count()
# Every library compiled for this process has one entry of a fixed name, so that cffi needs no declaration a pipeline.
ENTRY = """
#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default"))) int hl_pipeline_entry(void **args) {{ return {name}_argv(args); }}
"""


def c_name(name: str) -> str:
    """A C identifier for a pipeline's name."""
    clean = re.sub(r"\W", "_", name)
    return clean if not clean[:1].isdigit() else "_" + clean


def machine_of(t: Toolchain, target: Target) -> Machine:
    """What code generation may use: what both the compiler's host and the target have."""
    width = 32 if "avx2" in t.features else 16
    width = min(width, target.natural_vector_size(UInt(8)))
    return Machine(vector_bytes=width, features=frozenset(t.features), compiler=t.kind)


class CompiledPipeline:
    """A loaded pipeline: call it with an argument block. The library is closed when this is dropped."""

    def __init__(self, path: str, name: str, args: tuple[LoweredArgument, ...]) -> None:
        self.name, self.args, self.path = name, args, path
        self._library = runtime()
        try:
            self._module = ffi.dlopen(path, ffi.RTLD_NOW)
            self.entry = self._module.hl_pipeline_entry
        except (OSError, AttributeError) as e:
            raise InternalError(f"The compiled pipeline {name} cannot be loaded: {e}") from e

    def run(self, block: Any) -> None:
        """Run on a block of argument addresses. Raises PipelineError with what the pipeline reported."""
        code = self.entry(block)
        if code:
            self.fail(code)

    def fail(self, code: int) -> None:
        """Raise the error a run reported."""
        text = ffi.string(self._library.hl_last_error()).decode("utf-8", "replace")
        self._library.hl_clear_error()
        raise PipelineError(f"Error: in pipeline {self.name}: {text or f'it failed with code {code}'}", code)

    def __del__(self) -> None:
        module = getattr(self, "_module", None)
        if module is not None and sys is not None:
            try:
                ffi.dlclose(module)
            except (ValueError, TypeError):
                pass  # the interpreter is going away


class _Times:
    """The table of HL_TIME=1."""

    def __init__(self) -> None:
        self.on = os.environ.get("HL_TIME", "0") not in ("", "0")
        self.rows: list[tuple[str, float]] = []
        self.start = self.last = time.perf_counter()

    def observe(self, name: str, seconds: float, changed: Any) -> None:
        """One lowering pass."""
        self.rows.append((f"lower: {name}", seconds))
        self.last = time.perf_counter()

    def mark(self, name: str) -> None:
        """What was done since the last mark."""
        now = time.perf_counter()
        self.rows.append((name, now - self.last))
        self.last = now

    def show(self, name: str) -> None:
        """Print the table."""
        if self.on:
            total = time.perf_counter() - self.start
            lines = [f"{seconds * 1e3:9.2f} ms  {what}" for what, seconds in self.rows]
            print("\n".join([f"compile {name}: {total * 1e3:.1f} ms", *lines]), file=sys.stderr)


def lowered_module(outputs: Sequence[Function], args: Sequence[LoweredArgument], name: str, target: Target, requirements: Sequence[Any] = (),
                   observer: Any = None) -> LoweredModule:
    """The pipeline as loop IR under its C name."""
    f = lower(outputs, args, c_name(name), target, requirements, observer)
    return LoweredModule(c_name(name), [LoweredFunction(f.name, f.args, f.body, name)])


def link_inputs(module: LoweredModule) -> list[str]:
    """Libraries and objects that the extern functions called in a module come from."""
    found: dict[str, None] = {}
    for f in module.functions:
        for call in nodes_of(f.body, n.Call):
            row = call.func
            if isinstance(row, ExternFunction):
                for o in row.objects:
                    found[o] = None
                if row.library:
                    found[row.library if os.path.sep in row.library else f"-l{row.library}"] = None
    return list(found)


def compile_pipeline(outputs: Sequence[Function], args: Sequence[LoweredArgument], name: str, target: Target,
                     requirements: Sequence[Any] = ()) -> CompiledPipeline:
    """A callable for a pipeline, from the caches where they have it. Raises CompileError for what cannot be compiled."""
    times = _Times()
    tools = toolchain()
    machine = machine_of(tools, target)
    all_args = with_outputs(outputs, args)
    key = fingerprint(outputs, args, name, target, requirements, tools.identity() + str(machine))
    times.mark("fingerprint")
    path = cache.lookup("p" + key)
    if path:
        try:
            return CompiledPipeline(path, name, all_args)
        except InternalError:
            path = ""  # a damaged or foreign entry: build it again
    module = lowered_module(outputs, args, name, target, requirements, times.observe)
    text = generate(module, machine) + ENTRY.format(name=module.name)
    times.mark("C text")
    path = build(text, tools, link_inputs(module), name)
    times.mark("C compile")
    if cache.cache_dir():
        cache.link("p" + key, path)
    compiled = CompiledPipeline(path, name, all_args)
    if not cache.cache_dir():
        os.unlink(path)
    times.mark("load")
    times.show(name)
    n.sweep()
    return compiled


def build(text: str, tools: Toolchain, extra: Sequence[str], name: str) -> str:
    """The path of the shared object for a C text, from the cache or the compiler."""
    key = "c" + cache.digest(text, tools.identity(), os.environ.get("HL_SANITIZE", ""), *extra)
    path = cache.lookup(key)
    if path:
        return path
    with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
        made = os.path.join(folder, "pipeline.so")
        compile_shared(text, made, tools, folder, extra)
        target = cache.cache_dir()
        if target:
            cache.link(key, made)
            if next(_TEMPORARY) % 64 == 63:
                cache.trim()
            return os.path.join(target, key + ".so")
        kept = os.path.join(tempfile.gettempdir(), f"halide_py-{os.getpid()}-{next(_TEMPORARY)}.so")
        os.replace(made, kept)
        return kept

