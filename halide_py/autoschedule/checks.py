"""Checks: an autoscheduler schedules whole pipelines, so one that is scheduled in part by hand is refused, with the directive that is in
the way.

The default schedule of derivatives (`default_loops`) is none of a user's and gives way. Layouts of storage, bounds of outputs and estimates
stay.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..errors import CompileError
from ..ir.function import OUTERMOST, Function, StageSchedule
from ..ir.nodes import ForType


def check_unscheduled(functions: Iterable[Function], outputs: Collection[str]) -> None:
    """Raise CompileError naming the first Func that has directives, and which."""
    for f in functions:
        for g in (f, *f.wrappers.values()):
            found = _placement(g, g.name in outputs) if g is f or g.wraps else "clone_in()"
            for k, d in enumerate(g.stages()):
                found = found or _loops(f, d.schedule, k)
            if found:
                raise CompileError(f'AutoSchedule: cannot auto-schedule function "{g.name}" since it is scheduled by hand already '
                                   f'({found}). An autoscheduler '
                                   f"schedules whole pipelines: leave the directives out, or schedule by hand and call no autoscheduler "
                                   f"({g.where})")


def _placement(f: Function, is_output: bool) -> str:
    """What says where a Func is computed."""
    s = f.schedule
    made = s.default_loops
    asked = {
        "compute_root()": s.compute_level.is_root() and not made,
        "compute_at()": not (s.compute_level.is_inline() or s.compute_level.is_root()),
        "store_at() or store_root()": not s.store_level.is_inline(),
        "hoist_storage()": not s.hoist_level.is_inline(),
        "ring_buffer()": s.ring_buffer is not None,
        "bound() or align_bounds()": bool(s.bounds) and not is_output and not made,
        "async_()": s.is_async,
        "memoize()": s.memoized,
        "fold_storage()": any(d.fold_factor is not None for d in s.storage_dims),
    }
    return next((directive for directive, there in asked.items() if there), "")


def _loops(f: Function, s: StageSchedule, stage: int) -> str:
    """What says how the loops of a stage run."""
    stage_name = f"update {stage - 1}" if stage else "its definition"
    pure = [a for a in f.args if any(d.var == a for d in s.dims)]
    changed = s.splits or [d.var for d in s.dims] != [*(v.name for v in s.rvars), *pure, OUTERMOST]
    asked = {
        f"split(), fuse(), rename() or reorder() of {stage_name}": bool(changed), f"specialize() of {stage_name}": bool(s.specializations),
        f"compute_with() of {stage_name}": not s.fuse_level.is_inline(), f"prefetch() of {stage_name}": bool(s.prefetches),
        **{f"{d.for_type.name.lower()} loop {d.var} of {stage_name}": d.for_type not in (ForType.Serial, ForType.Extern) for d in s.dims},
    }
    return next((directive for directive, there in asked.items() if there), "")
