"""The autoschedulers there are, their parameters, and how they are found by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import CompileError
from ..ir.function import Function
from ..ir.target import Target
from ..lower.environment import environment
from .adams2019 import adams2019
from .groups import Machine
from .li2018 import li2018
from .mullapudi2016 import mullapudi2016
from .plan import Plan
from .tree_search import Options

Values = Mapping[str, float]
_WORDS = {"true": 1.0, "false": 0.0}
_MACHINE = {"parallelism": 16.0, "last_level_cache_size": 16.0 * 1024 * 1024, "balance": 40.0}
_LIMITS = {**dict.fromkeys((*_MACHINE, "beam_size"), (1, math.inf)), "random_dropout": (0, 100)}


@dataclass(frozen=True)
class Autoscheduler:
    """An autoscheduler: its parameters with their defaults, and what makes the plan."""

    name: str
    defaults: Values
    plan: Callable[[Sequence[Function], Target, Values], Plan]
    refused: Mapping[str, str] = field(default_factory=dict)  # parameters that are empty or else an error, with what it says


def _mullapudi(outputs: Sequence[Function], target: Target, values: Values) -> Plan:
    machine = Machine(int(values["parallelism"]), int(values["last_level_cache_size"]), values["balance"])
    return mullapudi2016(outputs, target, machine)


def _li(outputs: Sequence[Function], target: Target, values: Values) -> Plan:
    return li2018(outputs, target, int(values["parallelism"]))


def _adams(outputs: Sequence[Function], target: Target, values: Values) -> Plan:
    options = Options(int(values["parallelism"]), int(values["beam_size"]), values["random_dropout"], int(values["random_dropout_seed"]),
                      not values["disable_subtiling"], int(values["memory_limit"]))
    return adams2019(outputs, target, options)


# experimental_gpu_schedule asks for loops on a GPU where the target has one; there is no such backend, so it changes nothing. What is known
# about trees of loops is always remembered; disable_memoized_features and disable_memoized_blocks would change the time of a search alone.
AUTOSCHEDULERS = {a.name: a for a in (
    Autoscheduler("Mullapudi2016", {**_MACHINE, "experimental_gpu_schedule": 0.0}, _mullapudi),
    Autoscheduler("Adams2019", {
        "parallelism": 16.0, "beam_size": 32.0, "random_dropout": 100.0, "random_dropout_seed": 0.0, "disable_subtiling": 0.0,
        "disable_memoized_features": 0.0, "disable_memoized_blocks": 0.0, "memory_limit": -1.0,
    }, _adams, {"weights_path": "the cost model is one of halide_py's own, not a network that has weights. Leave weights_path out"}),
    Autoscheduler("Li2018", {"parallelism": 16.0}, _li),
)}
_ELSEWHERE = {
    "Anderson2021": "it schedules for GPUs, which are not compiled for",
}


def _choices() -> str:
    *names, last = AUTOSCHEDULERS
    example = 'hl.AutoschedulerParams("Mullapudi2016", {"parallelism": 8})'
    return f"there are {', '.join(names)} and {last}; choose one by its name, as in {example}"


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
        if key in scheduler.refused:
            if text:
                raise CompileError(f"The parameter {key} of the autoscheduler {name} cannot be {text!r}: {scheduler.refused[key]}")
            continue
        if key not in values:
            raise CompileError(f"The autoscheduler {name} has no parameter {key}; it has {', '.join(values)}")
        try:
            values[key] = _WORDS[text.lower()] if text.lower() in _WORDS else float(text)
        except ValueError:
            raise CompileError(f"The parameter {key} of the autoscheduler {name} takes a number, not {text!r}") from None
        least, most = _LIMITS.get(key, (-math.inf, math.inf))
        if not least <= values[key] <= most:
            limit = "" if most == math.inf else f" and at most {most}"
            raise CompileError(f"The parameter {key} of the autoscheduler {name} must be at least {least}{limit}, not {text}")
    plan = scheduler.plan(outputs, target, values)
    placed = {step.func for step in plan.steps}
    for f in environment(outputs, wrapped=False).values():
        if f.schedule.default_loops and f.name not in placed and not f.schedule.compute_level.is_inline():
            plan.add(f.name, 0, "compute_inline")  # the schedule that derivatives come with gives way
    return plan
