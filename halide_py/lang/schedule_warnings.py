"""Warnings about schedules that are legal but surely not meant, told whenever a pipeline is compiled (also when the compiled code comes out
of a cache).

Source: Halide's Inline.cpp and ScheduleFunctions.cpp, whose wording is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..errors import warn
from ..ir.function import Function, Split, SplitKind
from ..ir.printer import to_text
from ..lower.environment import environment


def warn_about_schedules(outputs: Sequence[Function]) -> None:
    """Print a line for each loop or bounds directive on a Func computed inline, and for each update left unscheduled beside scheduled
    stages."""
    names = {f.name for f in outputs}
    for f in environment(outputs).values():
        inlined = f.name not in names and f.schedule.compute_level.is_inline() and not f.updates
        for message in _inlined(f) if inlined else _forgotten(f):
            warn(message)


def _inlined(f: Function) -> Iterator[str]:
    assert f.pure is not None
    for s in f.pure.schedule.splits:
        yield f"It is meaningless to {_split(f, s)} because {f.name} is scheduled inline."
    for bound in f.schedule.bounds:
        because = "because the function is scheduled inline."
        if bound.modulus is not None:
            remainder = "undefined" if bound.remainder is None else to_text(bound.remainder)
            yield (f"It is meaningless to align the bounds of dimension {bound.var} of function {f.name} to have modulus/remainder "
                   f"[{to_text(bound.modulus)}, {remainder}] {because}")
        elif bound.extent is not None:
            low = "undefined" if bound.min is None else to_text(bound.min)
            within = f"[{low}, {to_text(bound.extent)}]"
            yield f"It is meaningless to bound dimension {bound.var} of function {f.name} to be within {within} {because}"


def _split(f: Function, s: Split) -> str:
    if s.kind is SplitKind.Rename:
        return f"rename variable {s.old} of function {f.name} to {s.outer}"
    if s.kind is SplitKind.Fuse:
        return f"fuse variables {s.inner} and {s.outer}"
    assert s.factor is not None
    return f"split variable {s.old} of function {f.name} into {s.outer} * {to_text(s.factor)} + {s.inner}"


def _forgotten(f: Function) -> Iterator[str]:
    touched = [d.schedule.touched for d in f.stages()]
    if any(touched):
        for k, done in enumerate(touched[1:]):
            if not done:
                yield (f"Update definition {k} of function {f.name} has not been scheduled, even though some other definitions have been. "
                       f"You may have forgotten to schedule it. If this was intentional, call {f.name}.update({k}).unscheduled() to "
                       "suppress this warning.")
