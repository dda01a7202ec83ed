"""The autoschedulers there are, their parameters, and how they are found by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import CompileError
from ..ir.function import Function
from ..ir.target import Target
from ..lower.environment import environment
from .groups import Machine
from .li2018 import li2018
from .mullapudi2016 import mullapudi2016
from .plan import Plan

Values = Mapping[str, float]
_WORDS = {"true": 1.0, "false": 0.0}
_MACHINE = {"parallelism": 16.0, "last_level_cache_size": 16.0 * 1024 * 1024, "balance": 40.0}


@dataclass(frozen=True)
class Autoscheduler:
    """An autoscheduler: its parameters with their defaults, and what makes the plan."""

    name: str
    defaults: Values
    plan: Callable[[Sequence[Function], Target, Values], Plan]


def _mullapudi(outputs: Sequence[Function], target: Target, values: Values) -> Plan:
    machine = Machine(int(values["parallelism"]), int(values["last_level_cache_size"]), values["balance"])
    return mullapudi2016(outputs, target, machine)


def _li(outputs: Sequence[Function], target: Target, values: Values) -> Plan:
    return li2018(outputs, target, int(values["parallelism"]))


# experimental_gpu_schedule asks for loops on a GPU where the target has one; there is no such backend, so it changes nothing.
AUTOSCHEDULERS = {a.name: a for a in (
    Autoscheduler("Mullapudi2016", {**_MACHINE, "experimental_gpu_schedule": 0.0}, _mullapudi),
    Autoscheduler("Li2018", {"parallelism": 16.0}, _li),
)}
_ELSEWHERE = {
    "Adams2019": "its cost model is a trained network whose weights are not part of halide_py",
    "Anderson2021": "it schedules for GPUs, which are not compiled for",
}


def _choices() -> str:
    example = 'hl.AutoschedulerParams("Mullapudi2016", {"parallelism": 8})'
    return f"there are {' and '.join(AUTOSCHEDULERS)}; choose one by its name, as in {example}"


def find(name: str) -> Autoscheduler:
    """The autoscheduler of that name. Raises CompileError with those there are."""
    found = AUTOSCHEDULERS.get(name)
    if found is None:
        if name in _ELSEWHERE:
            raise CompileError(f"The autoscheduler {name} is not available: {_ELSEWHERE[name]}. As autoschedulers {_choices()}")
        raise CompileError(f"Could not find autoscheduler named '{name}': as autoschedulers {_choices()}")
    return found


def plugin_name(path: str) -> str:
    """The autoscheduler that Halide's plugin of this name or path is. Raises CompileError as `find` does, and for what is no
    autoscheduler."""
    word = path.replace("\\", "/").rpartition("/")[2].partition(".")[0].removeprefix("lib").removeprefix("autoschedule_")
    known = {name.lower(): name for name in (*AUTOSCHEDULERS, *_ELSEWHERE)}
    if word.lower() not in known:
        raise CompileError(f"load_plugin({path!r}): plugins are made for Halide's own library and cannot be loaded. The autoschedulers "
                           f"need none: {_choices()}")
    return find(known[word.lower()]).name


def schedule(name: str, outputs: Sequence[Function], target: Target, extra: Mapping[str, str]) -> Plan:
    """The plan of an autoscheduler with its parameters as text. Raises CompileError for unknown names and values, and as the autoscheduler
    does."""
    scheduler = find(name)
    values = dict(scheduler.defaults)
    for key, text in extra.items():
        if key not in values:
            raise CompileError(f"The autoscheduler {name} has no parameter {key}; it has {', '.join(values)}")
        try:
            values[key] = _WORDS[text.lower()] if text.lower() in _WORDS else float(text)
        except ValueError:
            raise CompileError(f"The parameter {key} of the autoscheduler {name} takes a number, not {text!r}") from None
        if key in _MACHINE and not values[key] >= 1:
            raise CompileError(f"The parameter {key} of the autoscheduler {name} must be at least 1, not {text}")
    plan = scheduler.plan(outputs, target, values)
    placed = {step.func for step in plan.steps}
    for f in environment(outputs, wrapped=False).values():
        if f.schedule.default_loops and f.name not in placed and not f.schedule.compute_level.is_inline():
            plan.add(f.name, 0, "compute_inline")  # the schedule that derivatives come with gives way
    return plan
