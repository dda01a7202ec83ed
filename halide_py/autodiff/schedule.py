"""The default schedule of what the reverse pass makes: nothing is recomputed many times over, however long the pipeline.

An adjoint Func with updates, or read in more than one place, where data says, or inside a loop over a reduction domain, is computed at the
root; the others are inlined. Funcs of the user's that are still inline and dear, with updates (an inline reduction, say) or reading many
places, would be computed again at each use; those that the derivative reads are computed at the root too, unless the user has said
otherwise, or nothing limits where they are read. All of them get vectors and threads when lowered (`lower.default_loops`), stage by stage
where the user gives no directive. All of it can be changed by hand afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

from ..ir import nodes as n
from ..ir.function import Function, root_level
from ..ir.traverse import nodes_of
from ..lang.edits import count_edit
from ..lang.func import Func
from ..lower.bounds_inference import function_values
from ..lower.environment import definition_roots, environment
from .inlined import read_without_bounds

_DEAR = 8  # reads of memory


def default_schedule(made: Sequence[Func], forward: Container[Function] = ()) -> list[Function]:
    """Schedule the Funcs `made` for a derivative, and what they read; gives those with default loops. `forward`: the Funcs that were there
    before."""
    everything = environment([f.function for f in dict.fromkeys(made)], wrapped=False)
    uses: Counter[str] = Counter()
    for f in everything.values():
        for d in f.stages():
            for c in nodes_of(definition_roots(d), n.Call):
                if c.call_type is n.CallType.Halide and c.name != f.name:
                    uses[c.name] += 1 if d.rdom is None and not any(k.func or k.param for k in nodes_of(c.args, n.Call)) else 2
    names = {f.name() for f in made}
    loose = read_without_bounds(everything.values(), set(), function_values(everything))
    touched: list[Function] = []
    reads: dict[str, int] = {}  # of memory, for an element
    for name, f in everything.items():
        calls = [c for c in nodes_of(definition_roots(f.stages()[0]), n.Call) if c.call_type in (n.CallType.Halide, n.CallType.Image)]
        reads[name] = sum(reads.get(c.name, 1) for c in calls)
        if _is_untouched(f) and f not in loose and (f.updates or name in names or reads[name] > _DEAR):
            touched.append(f)
            f.schedule.default_loops = True
            if f.updates or uses[name] > 1 or name not in names:
                f.schedule.compute_level = root_level()
        elif f.schedule.default_loops and f not in forward:
            touched.append(f)
        if not f.schedule.compute_level.is_inline():
            reads[name] = 1
    count_edit()
    return touched


def _is_untouched(f: Function) -> bool:
    s = f.schedule
    return s.compute_level.is_inline() and not s.inline_requested and not any(d.schedule.touched for d in f.stages())
