"""eager_inline: the definition changes at once, its values stay; what cannot be inlined is refused."""

from __future__ import annotations

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir.printer import to_text
from halide_py.reference import algorithm

x, y, u = hl.Var("x"), hl.Var("y"), hl.Var("u")


def text(f: hl.Func, stage: int = 0) -> str:
    return " ".join(to_text(v) for v in f.function.stages()[stage].values)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
@pytest.mark.parametrize("as_list", [True, False])
def test_chains_are_inlined_whatever_their_order(order: tuple[int, ...], as_list: bool) -> None:
    im, chain, last = hl.Buffer(np.arange(90, dtype=np.uint8).reshape(9, 10)), [hl.Func(f"chain_{i}") for i in range(3)], hl.Func("last")
    unrelated = hl.Func("unrelated")
    unrelated[x] = x
    chain[0][x, y] = (im[x, y], im[x, y + 1] * hl.f32(0.5))
    chain[1][x, y] = chain[0][x + 1, y][0] + chain[0][y, x][1]
    chain[2][x, y] = chain[1][x, y] * chain[1][x, y + 1] + hl.stop_gradient(x)
    last[x, y] = chain[2][x, chain[0][x, y][0] % 3]
    want = algorithm.realize([last.function], (5, 4))[0]
    given = [*(chain[i] for i in order), unrelated]
    assert last.eager_inline(*([given] if as_list else given)) is last
    assert "chain" not in text(last) and "stop_gradient" in text(last)
    np.testing.assert_array_equal(np.array(last.realize([5, 4])).T, want)
    assert "chain" in text(chain[2])  # only the definition named


def test_one_stage_is_changed_and_can_be_factored() -> None:
    g, f, r = hl.Func("g"), hl.Func("f"), hl.RDom([(0, 64)])
    g[x, y] = x + y * 2
    f[x] = g[x, 0]
    f[x] += g[x, r.x]
    want = algorithm.realize([f.function], (6,))[0]
    f.update().eager_inline(g)
    assert f"{g.name()}(" in text(f) and f"{g.name()}(" not in text(f, 1)
    f.update().rfactor(r.x, u).compute_root()
    np.testing.assert_array_equal(np.array(f.realize([6])), want)
    h = hl.Func("h")
    h[x] = g[x, 1]
    h[x] += g[x, 2]
    h.eager_inline(g)
    assert f"{g.name()}(" not in text(h) and f"{g.name()}(" in text(h, 1)


def test_a_compiled_pipeline_notices() -> None:
    g, f = hl.Func("g"), hl.Func("f")
    g[x] = x * 3
    f[x] = g[x] + 1
    g.compute_root()
    assert list(f.realize([3])) == [1, 4, 7]
    f.eager_inline(g)
    assert list(f.realize([3])) == [1, 4, 7] and f"{g.name()}(" not in text(f)


def test_what_cannot_be_inlined_is_named() -> None:
    f, undefined, updated, special, k = hl.Func("f"), hl.Func("undefined"), hl.Func("updated"), hl.Func("special"), hl.Param(hl.Int(32), "k")
    external = hl.Func("external")
    external.define_extern("anything", [], hl.Int(32), 1)
    updated[x] = x
    updated[0] += 1
    special[x] = x
    special.compute_root().specialize(k > 1)
    f[x] = updated[x] + special[x] + external[x]
    before = text(f)
    for func, message in ((undefined, "passed the Func undefined.*, which is undefined"), (updated, "updated.*, which has updates"), (f, "definition of its own"),
                          (special, "special.*, which has a specialization"), (external, "external.*, which is an extern stage")):
        with pytest.raises(hl.CompileError, match=message):
            f.eager_inline(func)
    for wrong in (3, None, "g", [3], x):
        with pytest.raises(TypeError, match="takes Funcs, or a list of them"):
            f.eager_inline(wrong)
    assert text(f) == before
