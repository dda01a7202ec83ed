"""Outputs in the memory of inputs: allowed element for element, refused where it would change what is read; views of one array do not hinder."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halide_py as hl

x, y, xi = hl.Var("x"), hl.Var("y"), hl.Var("xi")


def image() -> hl.ImageParam:
    return hl.ImageParam(hl.Int(32), 2, "picture")


def doubled(p: Any, schedule: Callable[[hl.Func], object] = lambda f: None) -> hl.Func:
    f = hl.Func("doubled")
    f[x, y] = p[x, y] * 2
    schedule(f)
    return f


def run(f: hl.Func, p: hl.ImageParam, given: np.ndarray, out: np.ndarray) -> None:
    p.set(hl.Buffer(given))
    f.realize(hl.Buffer(out))


SCHEDULES: dict[str, Callable[[hl.Func], object]] = {
    "none": lambda f: None,
    "whole vectors": lambda f: f.vectorize(x, 4).parallel(y),
    "guarded": lambda f: f.vectorize(x, 5, hl.TailStrategy.GuardWithIf),
    "tiled": lambda f: f.split(x, x, xi, 4).split(y, y, hl.Var("yi"), 3),
}


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_element_for_element(schedule: Callable[[hl.Func], object]) -> None:
    p, a = image(), np.arange(6 * 8, dtype=np.int32).reshape(6, 8)
    want = a * 2
    run(doubled(p, schedule), p, a, a)
    np.testing.assert_array_equal(a, want)


def test_a_producer_at_root_is_done_before() -> None:
    p, a = image(), np.arange(6 * 8, dtype=np.int32).reshape(6, 8)
    g, f = hl.Func("g"), hl.Func("f")
    g[x, y] = p[7 - x, y]
    f[x, y] = p[x, y] + g[x, y]
    g.compute_root()
    want = a + a[:, ::-1]
    run(f, p, a, a)
    np.testing.assert_array_equal(a, want)


def test_producers_in_loops_of_their_own_are_done_before() -> None:
    """Two that share loops with each other, and not with the output; and an extern stage."""
    p, a = image(), np.arange(6 * 8, dtype=np.int32).reshape(6, 8)
    g, h, f = hl.Func("g"), hl.Func("h"), hl.Func("f")
    g[x, y] = p[7 - x, y]
    h[x, y] = p[x, 5 - y]
    f[x, y] = p[x, y] + g[x, y] + h[x, y]
    g.compute_root()
    h.compute_root().compute_with(g, y)
    want = a + a[:, ::-1] + a[::-1]
    run(f, p, a, a)
    np.testing.assert_array_equal(a, want)

    p, a = image(), np.arange(6 * 8, dtype=np.int32).reshape(6, 8)
    g, f = hl.Func("g"), hl.Func("f")
    g.define_extern("flipped", [p], hl.Int(32), 2, function=lambda given, out: np.copyto(out, given[:, ::-1]))
    f[x, y] = p[x, y] + g[x, y]
    g.compute_root()
    want = a + a[:, ::-1]
    run(f, p, a, a)
    np.testing.assert_array_equal(a, want)


def test_producers_that_share_the_loops_of_the_output_are_not() -> None:
    """g reads the row after the one that f has written; alone it would be done before."""
    p, a = image(), np.arange(7 * 8, dtype=np.int32).reshape(7, 8)
    g, f = hl.Func("g"), hl.Func("f")
    g[x, y] = p[x, y] - p[x, 0]
    f[x, y] = p[x, y] * 2
    both = hl.Pipeline([g, f])
    p.set(hl.Buffer(a))
    other, want = np.zeros((7, 8), np.int32), (a - a[0], a * 2)
    both.realize([hl.Buffer(other), hl.Buffer(a)])
    np.testing.assert_array_equal(other, want[0])
    np.testing.assert_array_equal(a, want[1])
    f.compute_with(g, y)
    with pytest.raises(hl.HalideError, match="share memory"):
        both.realize([hl.Buffer(other), hl.Buffer(a)])


def blurred(p: Any) -> hl.Func:
    f = hl.Func("blurred")
    f[x, y] = p[x, y] + p[x + 1, y]
    return f


def updated(p: Any) -> hl.Func:
    f = hl.Func("updated")
    f[x, y] = 0
    f[x, y] += p[x, y]
    return f


def produced(p: Any) -> hl.Func:
    g, f = hl.Func("g"), hl.Func("f")
    g[x, y] = p[x, y]
    f[x, y] = g[x, y] * 2
    g.compute_at(f, y)
    return f


def paired(p: Any) -> hl.Func:
    f = hl.Func("paired")
    f[x, y] = (p[x, y], p[x, y] + 1)
    return f


REFUSED: dict[str, Callable[[Any], hl.Func]] = {
    "neighbours": blurred, "an update": updated, "a producer inside": produced,
    "some computed twice": lambda p: doubled(p, lambda f: f.vectorize(x, 5)),
    "some in a specialization": lambda p: doubled(p, lambda f: f.specialize(p.width() > 4).vectorize(x, 5)),
    "splits of splits": lambda p: doubled(p, lambda f: f.split(x, x, xi, 4).split(xi, xi, hl.Var("xii"), 2)),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_refused_only_when_memory_is_shared(make: Callable[[Any], hl.Func]) -> None:
    p, a = image(), np.arange(7 * 9, dtype=np.int32).reshape(7, 9)
    f = make(p)
    inner = np.ascontiguousarray(a[:6, :8])
    run(f, p, a, inner)  # apart
    with pytest.raises(hl.HalideError, match=r"Input buffer picture.* and Output buffer .* share memory"):
        run(f, p, a, a[:6, :8])


def test_shifted_memory_is_refused() -> None:
    p, a = image(), np.arange(7 * 9, dtype=np.int32).reshape(7, 9)
    with pytest.raises(hl.HalideError, match="share memory: an element may only be overwritten by the one computed from it"):
        run(doubled(p), p, a[1:], a[:6])


def test_two_outputs_are_apart() -> None:
    p, a = image(), np.zeros((4, 4), np.int32)
    p.set(hl.Buffer(np.ones((4, 4), np.int32)))
    out = hl.Buffer(a)
    with pytest.raises(hl.HalideError, match="Output buffer .* and Output buffer .* share memory"):
        paired(p).realize([out, out])


VIEWS = {
    "halves": lambda a: (a[:, :4], a[:, 4:]), "columns by turns": lambda a: (a[:, ::2], a[:, 1::2]), "tiles": lambda a: (a[:3, 4:], a[3:, :4]),
    "rows by turns": lambda a: (a[::2], a[1::2]), "corners": lambda a: (a[:4, :4], a[2:, 4:]),
}


@pytest.mark.parametrize("views", VIEWS.values(), ids=VIEWS)
def test_views_of_one_array_are_apart(views: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]) -> None:
    p, a = image(), np.arange(6 * 8, dtype=np.int32).reshape(6, 8)
    given, out = views(a)
    p.dim(0).set_stride(hl.Expr())
    f = blurred(p)
    f.output_buffer().dim(0).set_stride(hl.Expr())
    want = given[:, :-1] + given[:, 1:]
    run(f, p, given, out[:, :-1])
    np.testing.assert_array_equal(out[:, :-1], want)


def test_overlap_of_random_views_is_exact() -> None:
    """The check agrees with NumPy's on views of one array with the same strides."""
    rng, base = np.random.default_rng(3), np.zeros((12, 15), np.int32)
    for _ in range(60):
        rows, columns = rng.integers(1, 4, 2)
        a, b = (base[r:r + h:rows, c:c + w:columns] for r, c, h, w in zip(rng.integers(0, 6, 2), rng.integers(0, 6, 2), rng.integers(1, 6, 2), rng.integers(2, 8, 2)))
        size = tuple(int(min(s)) for s in zip(a.shape, b.shape))
        a, b = a[:size[0], :size[1]], b[:size[0], :size[1]]
        p = image()
        p.dim(0).set_stride(hl.Expr())
        p.set(hl.Buffer(a))
        f = updated(p)
        f.output_buffer().dim(0).set_stride(hl.Expr())
        if np.shares_memory(a, b):
            with pytest.raises(hl.HalideError, match="share memory"):
                f.realize(hl.Buffer(b))
        else:
            f.realize(hl.Buffer(b))


def test_many_buffers_are_checked_by_few_calls(tmp_path: Path) -> None:
    """A check for each input and output would be most of the code, and all of the C compiler's time."""
    inputs, f = [hl.ImageParam(hl.Int(32), 1) for k in range(40)], hl.Func()
    f[x] = tuple(p[x] + k for k, p in enumerate(inputs))
    text = tmp_path / "many.c"
    f.compile_to_c(str(text), inputs, "many")
    assert 1 <= text.read_text().count("= hl_check_apart(") <= 2
    outputs = [np.zeros(4, np.int32) for _ in inputs]
    for p in inputs:
        p.set(hl.Buffer(np.arange(4, dtype=np.int32)))
    f.realize([hl.Buffer(out) for out in outputs])
    assert [int(out[3]) for out in outputs] == [3 + k for k in range(40)]
    inputs[7].set(hl.Buffer(outputs[30]))
    with pytest.raises(hl.HalideError, match=rf"Input buffer {inputs[7].name()} and Output buffer {re.escape(f.name())}\.30 share memory"):
        f.realize([hl.Buffer(out) for out in outputs])
