"""Adams2019: what its search finds, what its cost model counts, and what its parameters do."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import halide_py as hl
from halide_py.autoschedule.accesses import Piece, composed
from halide_py.autoschedule.pipeline import estimated_graph

sys.path.insert(0, str(Path(__file__).parent))

from unscheduled import Case, blur, harris, pyramid, window_sum  # noqa: E402

x, y, c = hl.vars("x y c")


def source(case: Case, **options: object) -> str:
    params = hl.AutoschedulerParams("Adams2019", options)
    text = hl.Pipeline(case.outputs).apply_autoscheduler(hl.Target("x86-64-linux-avx2"), params).schedule_source
    return text.partition("\n")[2]  # without the line that says the parameters


def test_stages_are_computed_for_tiles_in_vectors_and_on_threads() -> None:
    text = source(blur())
    assert "rows.compute_at(blur, " in text
    assert ".vectorize(x_vi)" in text and ".parallel(y_o)" in text


def test_rows_that_slide_are_kept_outside_of_the_loop_over_them() -> None:
    """Where the Func costs much, and is read by many rows."""
    f, g = hl.Func("dear"), hl.Func("tall")
    f[x, y] = hl.exp(hl.sin(hl.f32(x * y)))
    g[x, y] = sum((f[x, y + k] for k in range(24)), hl.f32(0))
    text = source(Case([g], (64, 64), (4096, 2048)))
    assert re.search(r"dear\.compute_at\(tall, y_m\)\.store_at\(tall, [xy]_o\)", text)


def test_a_loop_by_which_a_stage_chooses_is_unrolled() -> None:
    p = hl.ImageParam(hl.UInt(8), 2, "photo")
    p.set_estimates([(0, 2048), (0, 1024)])
    f = hl.Func("picks")
    f[x, y, c] = hl.mux(c, [p[x, y], p[x, y] / 2, p[x, y] / 3])
    assert ".unroll(c_ui)" in source(Case([f], (64, 64, 3), (2048, 1024, 3)))


@pytest.mark.parametrize("maker", [blur, harris, pyramid, window_sum], ids=lambda m: m.__name__)
def test_what_is_inlined_is_counted_as_the_compiler_finds_it(maker: Callable[[], Case]) -> None:
    """Reads by arithmetic on indices are those of the definition with the Funcs in it."""
    graph = estimated_graph([f.function for f in maker().outputs])
    inlined = frozenset(name for name, node in graph.nodes.items() if node.can_inline())
    pieces = {node.name: Piece(node.function, node.stages[0].definition, node.function.args) for node in reversed(graph.nodes.values()) if node.name in inlined}
    checked = 0
    for node in graph.nodes.values():
        for s in node.stages:
            if node.name not in inlined and graph.producers(node.name) & inlined:
                loops = [loop.name for loop in s.loops]
                found = composed([Piece(node.function, s.definition, loops).instructions()], pieces)
                whole = Piece(node.function, graph.inlined_definition(s, inlined), loops).instructions()
                assert sorted(a.name for a in found.loads) == sorted(a.name for a in whole.loads)
                checked += 1
    assert checked or maker is window_sum


def test_parameters_of_the_search() -> None:
    tiled = source(harris())
    assert source(harris(), beam_size=32) == tiled == source(harris(), disable_memoized_features=1)
    assert source(harris(), beam_size=1).count("compute") >= 1
    dropped = [source(harris(), random_dropout=1, random_dropout_seed=seed) for seed in (1, 1, 2, 3, 4, 5, 6)]
    assert dropped[0] == dropped[1] and len(set(dropped)) > 1
    assert "_m" not in source(pyramid(), disable_subtiling=1)


def test_memory_is_limited() -> None:
    """What is computed at the root is too large, or cannot be computed anywhere else."""
    def shared() -> Case:
        f, one, two = hl.Func("dear"), hl.Func("one"), hl.Func("two")
        f[x, y] = hl.exp(hl.sin(hl.f32(x * y)))
        one[x, y] = f[x, y] + f[x, y + 1]
        two[x, y] = f[x, y] - f[x + 1, y]
        return Case([one, two], (64, 64), (1024, 1024))

    assert "dear.compute_root()" in source(shared())
    assert "dear" not in source(shared(), memory_limit=1 << 20)  # outputs are not the pipeline's memory
    f, g, h = hl.Func("table"), hl.Func("lookup"), hl.Func("other")
    f[x] = hl.f32(0)
    f[x] += hl.f32(hl.RDom([(0, 10)]).x)
    g[x], h[x] = f[x] + f[1023 - x], f[x]
    g.set_estimate(x, 0, 1024)
    h.set_estimate(x, 0, 1024)
    with pytest.raises(hl.CompileError, match=r"Adams2019 finds no schedule that keeps less than 16 bytes: table.* has to be computed as a whole"):
        hl.Pipeline([g, h]).apply_autoscheduler(hl.get_host_target(), hl.AutoschedulerParams("Adams2019", {"memory_limit": 16}))
