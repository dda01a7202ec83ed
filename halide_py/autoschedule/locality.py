"""Locality: in which order loops run so that memory is walked in small steps.

The stride of a loop is the sum, over everything its stage reads and writes, of the bytes one iteration steps ahead there. Loops whose
iterations are independent are ordered by it, the smallest innermost; those whose order matters keep it among themselves. Source: Mullapudi
et al., SIGGRAPH 2016, section 4.4; Halide's AutoSchedule.cpp (analyze_spatial_locality, reorder_dims).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir import nodes as n
from ..ir.build import as_int
from ..ir.traverse import mentions, nodes_of
from .loops import StageLoops
from .pipeline import PipelineGraph, Stage
from .regions import Region, Regions, extent


class Locality:
    """Strides in one pipeline."""

    def __init__(self, graph: PipelineGraph, regions: Regions) -> None:
        self.graph, self.regions = graph, regions

    def strides(self, name: str, region: Region, image: n.Call | None) -> list[int] | None:
        """Bytes between neighbours in each dimension of a Func or image of which this region is stored."""
        node = self.graph.nodes.get(name)
        extents = [extent(span) for span in region]
        if node is not None:
            names = [d.var for d in node.function.schedule.storage_dims]
            order = [node.function.args.index(v) for v in names]
            step = node.element_bytes()
        else:
            order, step = list(range(len(region))), self.regions.images[name][0]
        out: list[int] = [0] * len(region)
        element = step
        for d in order:
            e = extents[d]
            if e is None:
                return None
            out[d] = step
            step *= e
        if image is not None and image.param is not None:
            for d, constraint in enumerate(image.param.dims):  # a layout that is promised
                known = None if constraint.stride is None else as_int(constraint.stride)
                out[d] = out[d] if known is None else abs(known) * element
        return out

    def of_loops(self, s: Stage, inlined: frozenset[str], allocated: Mapping[str, Region]) -> dict[str, int] | None:
        """The stride of each loop of a stage; `allocated` are the regions that are stored for a tile. None: not known."""
        d = self.graph.inlined_definition(s, inlined)
        accesses = [
            (c.name, c.args, c) for c in nodes_of((*d.values, *d.args), n.Call) if c.call_type in (n.CallType.Halide, n.CallType.Image)
        ]
        out = {loop.name: 0 for loop in s.loops}
        for name, args, call in [*accesses, (s.name, d.args, None)]:
            region = allocated.get(name) or self.regions.whole.get(name)
            strides = (
                None
                if region is None
                else self.strides(name, region, call if call is not None and call.call_type is n.CallType.Image else None)
            )
            if strides is None:
                return None
            for loop in out:
                out[loop] += max((stride for stride, e in zip(strides, args) if mentions(e, loop)), default=0)
        return out

    def reorder(self, s: Stage, loops: StageLoops, inlined: frozenset[str], allocated: Mapping[str, Region]) -> None:
        """Order the loops of a stage that has not been touched yet."""
        strides = self.of_loops(s, inlined, allocated) if len(loops.loops) > 1 else None
        if strides is None:
            return
        names = [(r.var.name, not r.var.is_rvar or r.var.free) for r in loops.loops]
        free = sorted((name for name, is_free in names if is_free), key=strides.__getitem__)
        fixed = [name for name, is_free in names if not is_free]
        order = []
        while free or fixed:
            take_fixed = bool(fixed) and (not free or strides[fixed[0]] < strides[free[0]])
            order.append((fixed if take_fixed else free).pop(0))
        loops.reorder(order)
