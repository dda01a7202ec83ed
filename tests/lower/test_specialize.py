"""specialize and specialize_fail: which schedule runs, what each computes and reads, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.lower.print_loop_nest import loop_nest_text

x, y = hl.Var("x"), hl.Var("y")


def image(width: int) -> hl.Buffer:
    return hl.Buffer(np.arange(width, dtype=np.int32))


def code(f: hl.Func, folder: Path) -> str:
    f.compile_to_lowered_stmt(str(folder / "stmt"), f.infer_arguments())
    return (folder / "stmt").read_text()


def test_each_schedule_reads_exactly_what_it_needs() -> None:
    """Vectors only for rows of 8 and more; a row of 3 reads not one element more than 3."""
    im, double, f = hl.ImageParam(hl.Int(32), 1), hl.Func(), hl.Func()
    double[x] = im[x] * 2
    f[x] = double[x] + 1
    double.compute_root()
    f.specialize(f.output_buffer().width() >= 8).vectorize(x, 8)
    double.specialize(f.output_buffer().width() >= 8).vectorize(x, 4, hl.TailStrategy.RoundUp)
    for width in (1, 3, 7, 8, 12):
        im.set(image(width))
        assert np.array(f.realize([width])).tolist() == [2 * i + 1 for i in range(width)]
    im.set(image(9))
    with pytest.raises(hl.PipelineError, match="accessed at 11, which is beyond the max"):
        f.realize([9])


def test_what_a_condition_rules_out_is_neither_read_nor_computed(tmp_path: Path) -> None:
    p, wide, im, costly, f = hl.Param(hl.Bool()), hl.Param(hl.Int(32)), hl.ImageParam(hl.Int(32), 1), hl.Func("costly"), hl.Func("chosen")
    costly[x] = im[x + 100]
    f[x] = hl.select(p, costly[x], x) * wide
    costly.compute_at(f, x)
    f.specialize(~p & (wide == 4))
    f.specialize(~p).unroll(x, 2)
    text = loop_nest_text([f.function])
    assert text.count("produce costly") == 1 and text.count("chosen(...)") == 3
    assert "chosen.s0/1.x*4" in code(f, tmp_path)
    im.set(image(4))
    for value, want in ((4, [0, 4, 8, 12]), (3, [0, 3, 6, 9])):
        p.set(False)
        wide.set(value)
        assert np.array(f.realize([4])).tolist() == want
    p.set(True)
    with pytest.raises(hl.PipelineError, match="accessed at 103"):
        f.realize([4])


def test_nested_updates_and_later_directives() -> None:
    k, f = hl.Param(hl.Int(32)), hl.Func("steps")
    r = hl.RDom([(0, 5)])
    f[x, y] = x
    f[x, y] += r * k
    a = f.update().specialize(k > 10)
    a.specialize(k > 20).unroll(r)
    assert a.name() == f.update().name() and f.update().specialize(k > 10).dump_argument_list() == a.dump_argument_list()
    f.update().parallel(y)
    a.vectorize(x, 4)
    lines = [line.strip() for line in loop_nest_text([f.function]).splitlines()]
    assert [line.split()[0] for line in lines[4:] if not line.startswith("steps")] == ["for", "for", "unrolled", "for", "for", "vectorized", "for", "parallel", "for", "for"]
    for value in (1, 11, 21):
        k.set(value)
        np.testing.assert_array_equal(np.array(f.realize([5, 2])), np.array([[i + 10 * value for i in range(5)]] * 2))


def test_unrolled_by_an_extent_that_only_the_condition_tells(tmp_path: Path) -> None:
    f = hl.Func("brief")
    f[x] = x * x
    f.specialize(f.output_buffer().width() == 3).unroll(x)
    body = code(f, tmp_path)
    assert body.count("for (") == 1 and body.count("brief[") == 4
    assert [np.array(f.realize([w])).tolist() for w in (3, 4)] == [[0, 1, 4], [0, 1, 4, 9]]


def test_the_end_of_the_chain_may_fail() -> None:
    p, f = hl.Param(hl.Int(32)), hl.Func("guarded")
    f[x] = x + p
    s = f.specialize(p > 0)
    s.specialize(p > 9).specialize_fail("too large")
    f.specialize_fail("not positive")
    p.set(1)
    assert np.array(f.realize([2])).tolist() == [1, 2]
    for value, message in ((0, "not positive"), (10, "too large")):
        p.set(value)
        with pytest.raises(hl.PipelineError, match=f"specialize_fail.* was chosen: {message}") as caught:
            f.realize([2])
        assert caught.value.code == -31


@pytest.mark.parametrize("program, words", [
    ("f.specialize(p)", "must be of type bool"), ("f.specialize(x > 3)", "depends on Var x"), ("f.specialize(r > 3)", "depends on RVar"),
    ("f.specialize(g[0] > 3)", "reads g"), ("f.specialize_fail('')", "not empty"),
    ("f.specialize_fail('a'), f.specialize_fail('b')", "only one specialize_fail"), ("f.specialize_fail('a'), f.specialize(p > 1)", "after specialize_fail"),
    ("f.specialize(p > 1).split(y, y, x, 2)", "could not find argument .old."), ("g.specialize(p > 1), f.compile_jit()", "inline, but has specialize"),
])
def test_refused(program: str, words: str) -> None:
    f, g, p, r = hl.Func("f"), hl.Func("g"), hl.Param(hl.Int(32)), hl.RDom([(0, 3)])
    g[x] = x
    f[x] = g[x] + p
    with pytest.raises(hl.CompileError, match=words):
        eval(program, {**globals(), "f": f, "g": g, "p": p, "r": r})


def test_constant_conditions() -> None:
    def nest(condition: Any) -> str:
        f = hl.Func("constant")
        f[x, y] = x
        f.specialize(condition).vectorize(x, 4)
        assert np.array(f.realize([6, 2]))[1].tolist() == list(range(6))
        return loop_nest_text([f.function])

    assert "vectorized" in nest(True) and "vectorized" in nest(hl.Expr(1) < 2)


def test_undefined_values_stay_undefined() -> None:
    """A bool chosen between true and undef is no logic of the two."""
    f, p = hl.Func("partly"), hl.Param(hl.Int(32), "p", 5)
    f[x, y] = y < 3
    f[x, y] = hl.select(x < 1, hl.cast(hl.Bool(), 1), hl.undef(hl.Bool()))
    f.update(0).specialize(p == 2)
    for p_value in (5, 2):
        p.set(p_value)
        assert np.array(f.realize([3, 5])).tolist() == [[True, y < 3, y < 3] for y in range(5)]


def test_failures_beside_reads_of_a_single_value() -> None:
    """Of what one branch reads and the other, which fails, does not: a Func without dimensions."""
    single, out = hl.Func("single"), hl.Func("out")
    single[()] = 5
    out[x] = single[()] + x
    single.compute_root()
    out.specialize(out.output_buffer().width() > 1).vectorize(x, 2)
    out.specialize_fail("too narrow")
    assert np.asarray(out.realize([4])).tolist() == [5, 6, 7, 8]
    with pytest.raises(hl.HalideError, match="too narrow"):
        out.realize([1])
