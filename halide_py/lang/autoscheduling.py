"""Autoscheduling: give a Pipeline's Funcs the directives of an autoscheduler's plan."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import autoschedule
from ..autoschedule.plan import Argument, Loop, Place, Plan
from ..ir.function import Function
from ..ir.target import Target, get_jit_target_from_environment
from ..lower.environment import topological_order
from .autoscheduler_params import AutoschedulerParams, AutoSchedulerResults
from .func import Func
from .loop_level import LoopLevel
from .rdom import RVar
from .var import Var


def apply_autoscheduler(outputs: Sequence[Function], target: Target, params: AutoschedulerParams) -> AutoSchedulerResults:
    """Schedule the pipeline of these outputs. Raises CompileError, with nothing changed, as the autoscheduler does."""
    if target.has_unknowns():
        target = get_jit_target_from_environment()
    plan = autoschedule.registry.schedule(params.name, outputs, target, params.extra)
    functions = topological_order(outputs)
    options = "".join(f", {key}={value}" for key, value in params.extra.items())
    results = AutoSchedulerResults()
    results.target, results.autoscheduler_params = Target(target), AutoschedulerParams(params.name, params.extra)
    results.schedule_source = autoschedule.source.source(plan, {f.name: f for f in functions}, {f.name: i for i, f in enumerate(functions)},
                                                         f"Schedule by {params.name} for {target}{options}")
    _apply(plan, functions)
    return results


def _apply(plan: Plan, functions: Sequence[Function]) -> None:
    funcs: dict[str, Any] = {f.name: Func.of(f) for f in functions}

    def argument(a: Argument) -> Any:
        if isinstance(a, Loop):
            return RVar(a.name) if a.is_rvar else Var(a.name)
        if isinstance(a, Place):
            return LoopLevel(funcs[a.func], argument(a.loop), a.stage if a.of_many else -1)
        return [(argument(r), argument(v)) for r, v in a] if isinstance(a, tuple) else a

    for step in plan.steps:
        handle = funcs[step.func] if step.stage == 0 else funcs[step.func].update(step.stage - 1)
        result = getattr(handle, step.directive)(*map(argument, step.args))
        if step.makes:
            funcs[step.makes] = result
