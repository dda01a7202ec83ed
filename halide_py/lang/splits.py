"""The list of a stage's splits keeps each name for one loop: when a directive gives a name again, the loop that had it before (consumed by
now) gets another.

`f.split(x, x, xi, 8).split(x, x, xi2, 2)` records x -> x.1, xi and x.1 -> x, xi2. What users see is the list of loops, where names are as
they wrote them.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.function import Split, SplitKind, StageSchedule


def _made(s: Split) -> tuple[str, ...]:
    """The fields of a split that hold the names of the loops it makes."""
    return {SplitKind.Split: ("outer", "inner"), SplitKind.Rename: ("outer",), SplitKind.Fuse: ("old",)}[s.kind]


def _taken(s: Split) -> tuple[str, ...]:
    """The fields of a split that hold the names of the loops it replaces."""
    return {SplitKind.Split: ("old",), SplitKind.Rename: ("old",), SplitKind.Fuse: ("outer", "inner")}[s.kind]


def _names(s: Split, fields: tuple[str, ...]) -> list[str]:
    return [getattr(s, f) for f in fields]


def append_split(schedule: StageSchedule, new: Split) -> None:
    """Record a step whose names are those the user sees now."""
    for name in _names(new, _made(new)):
        new = _set_aside(schedule, name, new)
    schedule.splits.append(new)


def _set_aside(schedule: StageSchedule, name: str, new: Split) -> Split:
    """Rename the loop that `name` meant before `new`, which makes a loop of that name; returns `new` in terms of it."""
    splits = schedule.splits
    maker = next((i for i, s in enumerate(splits) if name in _names(s, _made(s))), -1)
    if maker < 0 and not (new.kind is SplitKind.Fuse and name in _names(new, _taken(new))):
        return new  # `name` is new, or that of an original variable, which may share it with the loop that replaces it
    used = {n for s in splits for n in (s.old, s.outer, s.inner)}
    other = next(n for n in (f"{name}.{k}" for k in range(1, len(splits) + 2)) if n not in used)
    if maker < 0:
        splits.append(Split(SplitKind.Rename, name, other))
    for i in range(maker, len(splits)) if maker >= 0 else ():
        s = splits[i]
        fields = _made(s) if i == maker else _taken(s)
        splits[i] = _renamed(s, fields, name, other)
    return _renamed(new, _taken(new), name, other)


def _renamed(s: Split, fields: tuple[str, ...], name: str, other: str) -> Split:
    """`s` with another name in those of the fields that hold `name`."""
    old, outer, inner = (other if f in fields and getattr(s, f) == name else getattr(s, f) for f in ("old", "outer", "inner"))
    return replace(s, old=old, outer=outer, inner=inner)
