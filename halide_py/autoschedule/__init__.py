"""Floor 4: autoschedulers, which decide where each Func of a pipeline is computed and how its loops run, from estimates of sizes.

In: the Functions of a pipeline, without a schedule. Out: a `plan.Plan`, directives as data; `lang.autoscheduling` gives them to the Funcs
and writes them as Python text. Nothing here changes a Function. Imports `lower`, `ir`, `errors`.

    pipeline   Functions as stages with costs and reads, what is inlined beforehand
    regions    which regions a tile of a stage needs, as numbers: `numeric` makes Python functions of the symbolic bounds
    mullapudi2016: tiles, groups, locality     li2018
    adams2019: tree_search over nests, with nest_costs of the instructions of stages, whose accesses are arithmetic; nest_plan
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..deferred import deferred

if TYPE_CHECKING:
    from . import registry as registry
    from . import source as source

__getattr__ = deferred(__name__, {name: name for name in ("registry", "source")})
