"""Plan: a schedule as data, directive by directive, and as the Python text that gives it.

A `Step` is one call of a directive on one stage. Funcs are named as in the pipeline; one that a step makes (`rfactor`) is known by the name
that the step gives it. `lang.autoscheduling` applies steps, `source` here writes them: both read the same data, so that the text does what
was done.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.function import TailStrategy


@dataclass(frozen=True)
class Loop:
    """A Var or RVar that names a loop."""

    name: str
    is_rvar: bool = False


@dataclass(frozen=True)
class Place:
    """A loop of a stage of a Func, for compute_at."""

    func: str
    stage: int
    loop: Loop
    of_many: bool  # whether the Func has several stages, so that the stage must be said


Argument = Loop | Place | int | TailStrategy | tuple[tuple[Loop, Loop], ...]


@dataclass(frozen=True)
class Step:
    """`func.directive(args)`, on an update when `stage` > 0. `makes`: the name of the Func that results, for rfactor."""

    func: str
    stage: int
    directive: str
    args: tuple[Argument, ...] = ()
    makes: str = ""


@dataclass
class Plan:
    """The steps of a schedule, in the order in which they are to be done. `untouched`: stages that are left as they are on purpose."""

    steps: list[Step] = field(default_factory=list)

    def add(self, func: str, stage: int, directive: str, *args: Argument, makes: str = "") -> None:
        """One more step."""
        self.steps.append(Step(func, stage, directive, args, makes))
