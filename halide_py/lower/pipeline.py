"""The list of passes, in order, with the reason for the order; `lower` runs it.

Environment: `HL_DEBUG=2` prints the IR after each pass that changed it, `HL_DUMP=dir` writes it to `dir/NN-pass.txt`,
`HL_VERIFY=1` checks types and scopes after each pass.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import CompileError, HalideError, InternalError
from ..ir import nodes as n
from ..ir.conditions import strip_likely
from ..ir.function import Function
from ..ir.module import LoweredArgument, LoweredFunction, labelled
from ..ir.printer import to_text
from ..ir.simplify import remembering, simplify
from ..ir.target import Target
from ..ir.target_words import TargetFeature
from ..ir.traverse import deep_recursion, mentions
from ..ir.verify import verify
from . import (
    accumulators,
    allocation_bounds,
    atomics,
    bounds_inference,
    clamped_indices,
    constant_extents,
    hoist_storage,
    image_checks,
    lane_accumulators,
    lane_phases,
    parameter_checks,
    partition_loops,
    prefetches,
    region_overflow,
    ring_buffers,
    scatter_gather,
    skip_stages,
    sliding_window,
    small_allocations,
    storage_flattening,
    storage_folding,
    target_queries,
    tracing,
    trim_loops,
    tuples,
    undef,
    uniquify,
    unpack_buffers,
    unroll,
    vectorize,
)
from .async_producers import async_producers, check_async
from .bounds_inference import FuncValues, function_values
from .constant_overflow import check_constants
from .debug_files import check_debug_files, write_debug_files
from .default_loops import with_default_loops
from .devices import check_devices
from .environment import Environment, definition_roots, environment, with_outputs
from .fused_indices import fused_indices
from .inline import inline_functions
from .memoization import MemoKey, inject_memoization, memo_keys
from .near_indices import near_indices
from .promises import check_promises
from .schedule_functions import Nests, schedule_functions

Observer = Callable[[str, float, "n.Stmt | None"], None]
Requirement = tuple[n.Expr, tuple[n.Expr, ...]]


@dataclass
class Context:
    """What passes may ask for besides the statement."""

    outputs: Sequence[Function]
    args: tuple[LoweredArgument, ...]
    target: Target
    requirements: Sequence[Requirement]
    env: Environment = field(default_factory=dict)
    nests: Nests = field(default_factory=Nests)
    memo_keys: dict[str, MemoKey] = field(default_factory=dict)
    values: FuncValues = field(default_factory=dict)

    @property
    def output_names(self) -> dict[str, Function]:
        """The output Functions as lowered (inlined definitions), by name."""
        return {f.name: self.env[f.name] for f in self.outputs}


class Pass(NamedTuple):
    """One step: its name, what it does, and the node kinds that must be gone afterwards."""

    name: str
    run: Callable[[n.Stmt, Context], n.Stmt]
    removes: tuple[type[n.Node], ...] = ()


PASSES: tuple[Pass, ...] = (
    # From here on a store is one store.
    Pass("scatter_gather", lambda s, c: scatter_gather.expand_scatters(s)),
    # Coordinates are as they were written.
    Pass("clamped_indices", lambda s, c: clamped_indices.mark_clamped_indices(s)),
    # What is not stored needs no inputs.
    Pass("undef", lambda s, c: undef.remove_undef(s)),
    Pass("atomics", lambda s, c: atomics.inject_atomics(s, c.nests.stages)),
    # Region symbols must be defined before anything can ask how much of an image is touched.
    Pass("bounds_inference", lambda s, c: bounds_inference.bounds_inference(s, c.env, c.nests, c.output_names, c.values)),
    # Where regions are symbols in terms of each other.
    Pass("region_overflow", lambda s, c: region_overflow.check_regions(s, c.nests)),
    # Needs regions as lets around each production.
    Pass("sliding_window", lambda s, c: sliding_window.sliding_window(s, c.env, c.nests)),
    # What stages compute beyond what is asked for (RoundUp) follows what each iteration of a sliding window asks for.
    Pass("image_checks", lambda s, c: image_checks.add_image_checks(s, c.env, c.outputs, c.args, c.values)),
    # After sliding: boxes follow from what is really computed.
    Pass("allocation_bounds", lambda s, c: allocation_bounds.allocation_bounds(s, c.env, c.values, c.nests)),
    # Wants the regions by their names, and everything about them settled.
    Pass("memoization", lambda s, c: inject_memoization(s, c.env, c.memo_keys, c.nests)),
    # From here on each name is bound once, so simplification and memoising across scopes are right.
    Pass("uniquify", lambda s, c: uniquify.uniquify(s)),
    Pass("simplify", lambda s, c: simplify(s)),
    # Conditions are simple, and realizations are still where they are scheduled.
    Pass("skip_stages", lambda s, c: skip_stages.skip_stages(s, c.env)),
    # Wants simple bounds in terms of loop variables, and still sees coordinates.
    Pass("storage_folding", lambda s, c: storage_folding.storage_folding(s, c.env, c.values)),
    # Constant extents make constant strides, so before flattening; after folding, which shrinks some.
    Pass("small_allocations", lambda s, c: small_allocations.bound_small_allocations(s, c.env)),
    # Regions are what is really read now; hints are not to change them.
    Pass("prefetches", lambda s, c: prefetches.add_prefetches(s, c.env, c.nests, c.args, c.values)),
    # Reports coordinates and tuples, so before both are flattened.
    Pass("tracing", lambda s, c: tracing.inject_tracing(s, c.env, c.output_names, c.args, c.target)),
    Pass("debug_files", lambda s, c: write_debug_files(s, c.env, c.output_names)),
    # Traces and folds are in place, and both sides get them; storage is still what it is of.
    Pass("async_producers", lambda s, c: async_producers(s, c.env, set(c.output_names))),
    # Adds a coordinate that users of traces and messages about sizes need not see.
    Pass("ring_buffers", lambda s, c: ring_buffers.ring_buffers(s, c.env)),
    Pass("tuples", lambda s, c: tuples.split_tuples(s, c.env)),
    # Stores are single, coordinates are still apart, and nothing asks for the regions of realizations any more.
    Pass("accumulators", lambda s, c: accumulators.accumulators(s, c.nests)),
    Pass("storage_flattening", lambda s, c: storage_flattening.storage_flattening(s, c.env, c.args), (n.Realize, n.Provide)),
    # Sizes are lets around allocations now, in the symbols of the loops to be hoisted over.
    Pass("hoist_storage", lambda s, c: hoist_storage.hoist_storage(s, c.env), (n.HoistedStorage,)),
    Pass("parameter_checks", lambda s, c: parameter_checks.add_parameter_checks(s, c.args, c.requirements, c.nests.stages)),
    Pass("unpack_buffers", lambda s, c: unpack_buffers.unpack_buffers(s, c.args)),
    # Nothing before asks for a number; what follows folds them.
    Pass("target_queries", lambda s, c: target_queries.answer_target_queries(s, c.target)),
    # Flat indices become linear forms, which is what makes ramps dense below.
    Pass("simplify_flat", lambda s, c: simplify(s)),
    # Indices are linear forms, loops still scalar.
    Pass("fused_indices", lambda s, c: fused_indices(s)),
    # Needs the lets around loops, and regions that simplified; loops become vectors and copies next.
    Pass("constant_extents", lambda s, c: constant_extents.constant_extents(s)),
    # Before vectorizing: the guards of the steady state are still scalar conditions on loop variables.
    Pass("vectorize", lambda s, c: vectorize.vectorize(s)),
    Pass("unroll", lambda s, c: unroll.unroll(s)),
    # Remainders of unrolled coordinates are constants now; those along lanes become so.
    Pass("lane_phases", lambda s, c: lane_phases.lane_phases(s)),
    Pass("simplify_vectors", lambda s, c: simplify(s)),
    # Vectors and unrolled loops are gone; what is no guard any more needs no steady state.
    Pass("trim_loops", lambda s, c: trim_loops.trim_loops(s)),
    Pass("partition_loops", lambda s, c: partition_loops.partition_loops(s, c.env)),
    # Nothing asks what is likely any more, and indices without the marks are ramps again.
    Pass("strip_likely", lambda s, c: strip_likely(s)),
    # Loops are what they will be: a steady one and its tail have accumulators each.
    Pass("lane_accumulators", lambda s, c: lane_accumulators.lane_accumulators(s, c.target)),
    Pass("uniquify_copies", lambda s, c: uniquify.uniquify(s)),
    Pass("simplify_last", lambda s, c: simplify(s)),
    # Vector indices are what they will be in C.
    Pass("near_indices", lambda s, c: near_indices(s, c.args, c.target)),
)


def _located(e: CompileError, env: Environment) -> CompileError:
    """The error with the user's file:line of what it is about: a Func, a loop of one, or a buffer, by who reads it."""
    loop = re.match(r"(.*)\.s(\d+)(/\d+)?\.", e.about)
    if loop is not None and loop[1] in env:
        where = env[loop[1]].site(e.directive, int(loop[2]))
    elif e.about in env:
        f = env[e.about]
        where = f.pure.where if f.pure is not None else f.where
    else:
        stages = (d for f in env.values() for d in f.stages() if e.about)
        where = next((d.where for d in stages if any(mentions(x, e.about) for x in definition_roots(d))), "")
    return CompileError(f"{e} ({where})") if where else e


def run_passes(s: n.Stmt, context: Context, observe: Observer) -> n.Stmt:
    """Apply PASSES in order; each is timed, watched and held to what it promises to remove."""
    for p in PASSES:
        start = time.perf_counter()
        try:
            new = p.run(s, context)
        except CompileError as e:
            raise _located(e, context.env) from None
        except (HalideError, KeyboardInterrupt):
            raise
        except (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as e:
            raise InternalError(f"halide_py failed in pass {p.name} ({type(e).__name__}: {e}); please report this with the program; "
                                "HL_DUMP=dir writes the IR after each pass") from e
        left = [kind.__name__ for kind in p.removes if kind.bit & new.mask]
        if left:
            raise InternalError(f"pass {p.name} left {', '.join(left)} behind")
        observe(p.name, time.perf_counter() - start, None if new is s else new)
        s = new
    return s


def _watcher(observer: Observer | None, context: Context) -> Observer:
    """The observer that does what the HL_ variables ask, then calls the caller's."""
    dump, debug, checked = os.environ.get("HL_DUMP"), os.environ.get("HL_DEBUG", "0"), os.environ.get("HL_VERIFY") == "1"
    number, settled = 0, False  # until uniquify, regions have symbols bound by a later pass, or bound twice

    def watch(name: str, seconds: float, changed: n.Stmt | None) -> None:
        nonlocal number, settled
        settled = settled or name == "uniquify"
        if observer is not None:
            observer(name, seconds, changed)
        if changed is None:
            return
        if checked:
            verify(changed, context.args, name, settled)
        if dump:
            os.makedirs(dump, exist_ok=True)
            with open(os.path.join(dump, f"{number:02d}-{name}.txt"), "w", encoding="utf-8") as file:
                file.write(to_text(changed))
        if debug >= "2":
            print(f"---- after {name}\n{to_text(changed)}", file=sys.stderr)
        number += 1

    return watch


def lower(outputs: Sequence[Function], args: Sequence[LoweredArgument], name: str, target: Target,
          requirements: Sequence[Requirement] = (), observer: Observer | None = None) -> LoweredFunction:
    """Lower a pipeline to loop IR.

    `args` are the inputs in call order; the outputs are appended. `requirements` are conditions with the Exprs of their messages, checked
    first at run time. Raises CompileError for definitions and schedules that cannot be honoured.
    """
    context = Context(outputs, labelled(with_outputs(outputs, args)), target, requirements)
    watch = _watcher(observer, context)
    with deep_recursion(), remembering():
        start = time.perf_counter()
        names = {f.name for f in outputs}
        defined = environment(outputs)
        check_constants(defined)
        check_devices(defined)
        check_async(defined, names)
        check_debug_files(defined, names)
        if target.has_feature(TargetFeature.CheckUnsafePromises):
            defined, context.requirements = check_promises(defined, requirements)
        context.memo_keys = memo_keys(defined, names)
        context.env = inline_functions(with_default_loops(defined, names, target), names)
        s, context.nests = schedule_functions(context.env, names)
        context.values = function_values(context.env)
        watch("schedule_functions", time.perf_counter() - start, s)
        body = run_passes(s, context, watch)
    return LoweredFunction(name, context.args, body, name)
