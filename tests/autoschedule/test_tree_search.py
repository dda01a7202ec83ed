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


def columns() -> Case:
    """Maxima over 2, 4, ... rows of the whole image, of which others are then taken along rows."""
    photo = hl.ImageParam(hl.Float(32), 3, "photo")
    photo.set_estimates([(0, 1536), (0, 2560), (0, 3)])
    near, t = hl.BoundaryConditions.repeat_edge(photo), hl.Var("t")
    log, widest, out = hl.Func("log"), hl.Func("widest"), hl.Func("out")
    log[x, y, c, t] = near[x, y, c]
    r = hl.RDom([(-26, 2586), (1, 5)])
    log[x, r.x, c, r.y] = hl.max(log[x, r.x, c, r.y - 1], log[x, r.x + hl.clamp(1 << r.y, 0, 64), c, r.y - 1])
    dx = hl.RDom([(-26, 53)])
    widest[x, y, c] = hl.f32(0)
    widest[x, y, c] = hl.max(widest[x, y, c], log[x + dx, y, c, 5])
    out[x, y, c] = widest[x, y, c] + 1
    return Case([out], (64, 64, 3), (1536, 2560, 3))


def test_loops_are_cut_around_those_that_are_there() -> None:
    """`widest` is computed for small tiles, `log`, which is decided upon later and needs all rows, for strips of columns around these."""
    text = re.sub(r"\n *", "", source(columns()))
    assert "log.compute_at(out, x_o)" in text and "widest.compute_at(out, " in text and ".split(y, y_m, " in text


def test_a_walk_over_the_same_data_again_and_again_goes_by_columns() -> None:
    """All rows of a block of columns fit the cache, all rows of a strip do not; and a loop in which all read the same runs inside."""
    text = source(columns())
    assert ".reorder(x_vi, rx, ry, x_vo, c)" in text and ".reorder(x_vi, t, x_vo, y, c)" in text


def test_bins_are_counted_one_after_another() -> None:
    """Vectors of a row of bins each would be stored lane by lane, all over."""
    photo = hl.ImageParam(hl.UInt(8), 2, "photo")
    photo.set_estimates([(0, 2048), (0, 1024)])
    bins, out, r = hl.Func("bins"), hl.Func("out"), hl.RDom([(0, 2048)])
    bins[x, y] = 0
    bins[photo[r, y], y] += 1
    out[x, y] = bins[x, y] / 2
    text = source(Case([out], (64, 64), (256, 1024)))
    assert "bins.update(0)" in text and "vectorize" not in text.partition("bins.update(0)")[2].partition("\n\n")[0]


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
