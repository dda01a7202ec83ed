"""Refuses what is scheduled for other processors than the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..errors import CompileError
from ..ir.function import Function, StageSchedule


def _schedules(s: StageSchedule) -> Iterator[StageSchedule]:
    """A schedule and those of its specializations."""
    yield s
    for special in s.specializations:
        if special.schedule is not None:
            yield from _schedules(special.schedule)


def check_devices(env: Mapping[str, Function]) -> None:
    """Raise CompileError for a Func with a directive that needs a GPU or a DSP."""
    for f in env.values():
        for d in f.stages():
            for s in _schedules(d.schedule):
                if s.device:
                    raise CompileError(f"Func {f.name} is scheduled {s.device}, but this build has no such backend: it makes code for the "
                                       "CPU. Use parallel(), vectorize(), unroll() and tile() instead")
