"""Outputs that share memory with inputs: which reads are harmless, and the checks of the rest.

Before: nothing. After: asserts that no input and output buffer overlap in memory; where the pipeline reads an element of the input only to
compute the same element of the output, once, they may be one and the same memory. Any two outputs are apart.

Harmless are reads in the pure definition of an output of one value at its own coordinates, and reads of Funcs computed at root before it
(not in loops shared with it). An extern stage computed at root reads before it, too; one that is the output reads what and when it likes.
ShiftInwards computes elements again unless the extent is a multiple of the factor, which is asked at run time; any deeper split is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function, Split, SplitKind, StageSchedule, TailStrategy
from ..ir.module import ArgumentKind, LoweredArgument
from ..ir.traverse import nodes_of
from ..ir.types import BOOL
from .apply_splits import resolve_tails
from .buffers import buffer_handle, checked, field
from .environment import Environment, definition_roots
from .fused_stages import fuse_groups

_REREAD = "the pipeline reads the input where the output, or some of it, is written already, or computes elements twice"
_ELEMENTWISE = ("an element may only be overwritten by the one computed from it, once: give the same region of memory with the same "
                "strides, and extents that are multiples of the split factors, or use TailStrategy.GuardWithIf")


@dataclass(frozen=True)
class _Reads:
    """What of a pipeline matters to sharing: who reads each image, in the order of realization; Funcs that share loops (compute_with) have
    the same place."""

    order: Mapping[str, int]
    at_root: Collection[str]
    readers: Mapping[str, Sequence[tuple[Function, int, n.Call]]]


def _reads(env: Environment, outputs: Sequence[Function]) -> _Reads:
    readers: dict[str, list[tuple[Function, int, n.Call]]] = {}
    for f in env.values():
        for k, d in enumerate(f.stages()):
            for c in nodes_of(definition_roots(d), n.Call):
                if c.call_type is n.CallType.Image:
                    readers.setdefault(c.name, []).append((f, k, c))
    at_root = {f.name for f in outputs} | {f.name for f in env.values() if f.schedule.compute_level.is_root()}
    return _Reads({f.name: i for i, group in enumerate(fuse_groups(env)) for f in group}, at_root, readers)


def _harmless(reads: _Reads, image: str, output: Function) -> bool:
    """Whether overwriting elements of the image by those of the output, one by one, changes nothing that is read later."""
    for f, stage, call in reads.readers.get(image, ()):
        if f is output:
            if stage or len(f.types) > 1 or [getattr(a, "name", None) for a in call.args] != list(f.args):
                return False
        elif not (f.name in reads.at_root and reads.order[f.name] < reads.order[output.name]):
            return False
    return True


def _computed_once(f: Function, output: LoweredArgument) -> n.Expr | None:
    """The condition under which no element is computed twice, whatever specialization runs; None if that is not known."""
    if f.pure is None:
        return None
    conditions: list[n.Expr] = []
    for schedule in _variants(f.pure.schedule):
        whole = set(f.args)  # variables not split yet: an outer part may have the name of the whole
        for s, tail in zip(schedule.splits, resolve_tails(schedule.splits, True)):
            is_whole = s.old in whole
            whole -= {s.old, s.outer, s.inner}
            if s.kind is not SplitKind.Split or tail in (TailStrategy.GuardWithIf, TailStrategy.Predicate, TailStrategy.RoundUp):
                continue
            condition = _divides(s, f, output) if is_whole else None
            if condition is None:
                return None
            conditions.append(condition)
    return b.all_of(conditions)


def _variants(schedule: StageSchedule) -> Iterator[StageSchedule]:
    """A schedule and those of its specializations."""
    yield schedule
    for one in schedule.specializations:
        if one.schedule is not None:
            yield from _variants(one.schedule)


def _divides(s: Split, f: Function, output: LoweredArgument) -> n.Expr | None:
    factor = b.as_int(s.factor) if isinstance(s.factor, n.Expr) else None
    if factor is None:
        return None
    extent = field(output.name, "extent", f.args.index(s.old), output.param)
    return n.EQ(n.Mod(extent, b.i32(factor)), b.i32(0))


def overlap_checks(env: Environment, outputs: Sequence[Function], args: Sequence[LoweredArgument]) -> Iterator[n.Stmt]:
    """The asserts, for buffers whose shapes are known to be right: one for all buffers that are to be apart under one condition."""
    owner = {f.buffer_name(i): env[f.name] for f in outputs for i in range(len(f.types))}
    written = [a for a in args if a.kind is ArgumentKind.OutputBuffer and a.name in owner]
    reads = _reads(env, outputs)
    read = [a for a in args if a.is_buffer() and a.kind is not ArgumentKind.OutputBuffer and a.name in reads.readers]  # not only its shape
    groups: dict[tuple[n.Expr | None, tuple[LoweredArgument, ...]], list[LoweredArgument]] = {}
    for out in written:
        under: dict[n.Expr | None, list[LoweredArgument]] = {}
        for a in read:
            once = _computed_once(owner[out.name], out) if _harmless(reads, a.name, owner[out.name]) else None
            under.setdefault(once, []).append(a)
        for once, inputs in under.items():
            groups.setdefault((once, tuple(inputs)), []).append(out)
    for (once, ins), outs in groups.items():
        yield _apart(b.const(BOOL, 0) if once is None else once, _REREAD if once is None else _ELEMENTWISE, ins, outs)
    if len(written) > 1:
        yield _apart(b.const(BOOL, 0), "two outputs are apart", (), written)


def _apart(same_is_fine: n.Expr, reason: str, inputs: Sequence[LoweredArgument], outs: Sequence[LoweredArgument]) -> n.Stmt:
    """Each input is apart from each output; without inputs, the outputs from each other."""
    named = [e for kind, some in (("Input", inputs), ("Output", outs)) for a in some
             for e in (buffer_handle(a.name, a.param), b.string(f"{kind} buffer {a.name}"))]
    return checked("apart", same_is_fine, b.string(reason), b.i32(len(inputs)), b.i32(len(outs)), *named)
