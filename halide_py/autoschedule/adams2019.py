"""Adams2019: the cheapest schedule that a beam search over trees of loops finds, by a cost model of our own.

Source: Adams, Ma, Anderson, Baghdadi, Li, Gharbi, Steiner, Johnson, Fatahalian, Durand, Ragan-Kelley, "Learning to Optimize Halide with
Tree Search and Random Programs", ACM TOG 38(4), 2019. The learned weights of the paper are not used.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.function import Function
from ..ir.target import Target
from .nest_costs import NestCosts
from .nest_plan import plan_of
from .pipeline import estimated_graph
from .plan import Plan
from .regions import bounded_graph
from .tree_search import Options, Search


def adams2019(outputs: Sequence[Function], target: Target, options: Options) -> Plan:
    """The schedule of a pipeline that has none. Raises CompileError for what lacks an estimate."""
    graph, regions = bounded_graph(estimated_graph(outputs))
    costs = NestCosts(graph, regions, target, options.cores)
    return plan_of(Search(costs, options).best(), costs)
