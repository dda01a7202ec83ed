"""Build a pipeline that no cache has: lower -> C text -> shared object."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Sequence

from ..codegen_c import text_of
from ..codegen_c.ctypes_of import TAKEN
from ..codegen_c.sources import declared_only, not_defined
from ..errors import CompileError, InternalError
from ..ir import nodes as n
from ..ir.build import FALSE, NOTHING
from ..ir.function import Function
from ..ir.intrinsics import ExternFunction
from ..ir.module import LoweredArgument, LoweredFunction, LoweredModule
from ..ir.simplify import simplify
from ..ir.target import ISA_FEATURES, Target
from ..ir.target_words import TargetFeature
from ..ir.traverse import nodes_of, rewrite
from ..lower.buffers import IS_BOUNDS_QUERY
from ..lower.environment import with_outputs
from ..lower.pipeline import Observer, lower
from . import cache
from .c_compiler import Compilation
from .compile import CompiledPipeline, Times
from .fingerprint import header_version
from .graph import Requirement
from .scratch import scratch_folder
from .toolchain import Toolchain

# Every library compiled for this process has one entry of a fixed name, so that no pipeline needs a declaration of its own.
ENTRY = "hl_pipeline_entry"
_numbers = itertools.count()
_TRIM_EVERY = 64
_SWEEP_FROM = 200_000  # nodes
_kept_nodes = [0]


def c_name(name: str) -> str:
    """A C identifier for a pipeline's name."""
    clean = re.sub(r"\W", "_", name)
    return "_" + clean if clean[:1].isdigit() or clean in TAKEN else clean


def lower_to_module(outputs: Sequence[Function], args: Sequence[LoweredArgument], name: str, target: Target,
                    requirements: Sequence[Requirement] = (), observer: Observer | None = None) -> LoweredModule:
    """The pipeline as loop IR under its C name. Raises CompileError for options of the target that cannot be honoured."""
    _check_features(target)
    f = lower(outputs, args, c_name(name), target, requirements, observer)
    body = rewrite(f.body, {n.Assert: lambda s, rec: NOTHING}) if target.has_feature(TargetFeature.NoAsserts) else f.body
    if target.has_feature(TargetFeature.NoBoundsQuery):
        body = simplify(rewrite(body, {n.Call: lambda e, rec: FALSE if e.name == IS_BOUNDS_QUERY else e.map_children(rec)}))
    debugged = target.to_string() if target.has_feature(TargetFeature.Debug) else ""
    profiled, strict = target.has_feature(TargetFeature.Profile), target.has_feature(TargetFeature.StrictFloat)
    return LoweredModule(f.name, [LoweredFunction(f.name, f.args, body, name, profiled=profiled, debugged=debugged, strict=strict)])


_HONOURED = ISA_FEATURES | {
    TargetFeature.JIT,
    TargetFeature.Debug,
    TargetFeature.EnableBacktraces,
    TargetFeature.NoAsserts,
    TargetFeature.NoBoundsQuery,
    TargetFeature.LargeBuffers,
    TargetFeature.NoRuntime,
    TargetFeature.EmbedBitcode,
    TargetFeature.EnableLLVMLoopOpt,
    TargetFeature.LLVMLargeCodeModel,
    TargetFeature.UserContext,
    TargetFeature.CPlusPlusMangling,
    TargetFeature.Profile,
    TargetFeature.TraceLoads,
    TargetFeature.TraceStores,
    TargetFeature.TraceRealizations,
    TargetFeature.TracePipeline,
    TargetFeature.StrictFloat,
    TargetFeature.CheckUnsafePromises,
}
_INSTEAD = {
    TargetFeature.ProfileByTimer: "use profile",
    TargetFeature.ASAN: "set HL_SANITIZE=address",
    TargetFeature.TSAN: "set HL_SANITIZE=thread",
}


def _check_features(target: Target) -> None:
    """What is asked for and would be ignored is an error."""
    for f in target.features():
        if f not in _HONOURED:
            why = (
                "pipelines are compiled for the CPU"
                if Target().with_feature(f).has_gpu_feature()
                else _INSTEAD.get(f, "it is not supported; remove it")
            )
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


def build(outputs: Sequence[Function], args: Sequence[LoweredArgument], name: str, target: Target, requirements: Sequence[Requirement],
          tools: Toolchain, key: str, times: Times) -> CompiledPipeline:
    """Lower, compile and load a pipeline, and remember it under `key`, its fingerprint. Raises CompileError for what cannot be compiled."""
    with scratch_folder() as folder, Compilation(tools, folder) as compilation:

        def observe(what: str, seconds: float, changed: n.Stmt | None) -> None:
            times.observe(what, seconds, changed)
            compilation.get_ready()

        module = lower_to_module(outputs, args, name, target, requirements, observe)
        texts = text_of(module, tools.machine(target), only_entry=ENTRY).parts(compilation.ways)
        times.mark("C text")
        content, all_args = cache.digest(*texts, tools.identity(), header_version(), *link_inputs(module)), with_outputs(outputs, args)
        compiled = _from_same_text(content, name, all_args)
        if compiled is None:
            built = os.path.join(folder, f"pipeline{next(_numbers)}.so")
            compilation.finish(texts, built, link_inputs(module))
            times.mark("C compile")
            compiled = _loaded([p for p in (cache.store(content, built), built) if p], name, all_args)
    cache.remember_pipeline(key, content)
    times.mark("load")
    if next(_numbers) % _TRIM_EVERY == _TRIM_EVERY - 1:
        cache.trim()
    _sweep()
    return compiled


def _from_same_text(content: str, name: str, args: tuple[LoweredArgument, ...]) -> CompiledPipeline | None:
    """The pipeline that was compiled of the same C text before, if any."""
    path = cache.lookup(content)
    try:
        return CompiledPipeline(path, name, args) if path else None
    except InternalError:
        return None  # a file of another machine, say: compile again


def _loaded(paths: Sequence[str], name: str, args: tuple[LoweredArgument, ...]) -> CompiledPipeline:
    """The first of these files with one content that loads: a folder may be mounted such that nothing in it runs."""
    for path in paths:
        try:
            return CompiledPipeline(path, name, args)
        except InternalError as e:
            why = e
    missing = re.search(r"undefined symbol: (\w+)", str(why))
    if missing is None:
        if "map segment" in str(why):
            raise CompileError(f"Pipeline {name} was compiled, but nothing in {os.path.dirname(path)} may be run (it is mounted noexec); "
                               "set HL_CACHE_DIR or TMPDIR to a folder where programs may") from None
        raise why
    private = declared_only(missing[1])
    if private:
        raise CompileError(f"Pipeline {name}: {not_defined(private)}") from None
    raise CompileError(f"Pipeline {name} calls the C function {missing[1]}, which no library of the process has; say where its code is "
                       "(library=, source=, objects=), or load it before with ctypes.CDLL(path, ctypes.RTLD_GLOBAL)") from None


def _sweep() -> None:
    """Drop dead IR nodes once they are many."""
    if len(n.TABLE) > max(_SWEEP_FROM, 2 * _kept_nodes[0]):
        n.sweep()
        _kept_nodes[0] = len(n.TABLE)
