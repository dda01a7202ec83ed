"""prefetch: hints at what a later iteration reads, where that is there; values stay."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import halide_py as hl

x, y, xi, yi = hl.Var("x"), hl.Var("y"), hl.Var("xi"), hl.Var("yi")
DATA = np.random.default_rng(0).integers(0, 99, (18, 17)).astype(np.int32)
Bounds = hl.PrefetchBoundStrategy


class Funcs:
    """out reads f above and below, f an image."""

    def __init__(self) -> None:
        self.im = hl.ImageParam(hl.Int(32), 2, "im")
        self.im.set(hl.Buffer(DATA))
        self.f, self.out = hl.Func("f"), hl.Func("out")
        self.f[x, y] = self.im[x, y] * 3
        self.out[x, y] = self.f[x, y] + self.f[x, y + 1]


# schedule, what the C text says
SCHEDULES: dict[str, tuple[Callable[[Funcs], object], list[str]]] = {
    "a Func": (lambda s: (s.f.compute_root(), s.out.prefetch(s.f, y, y, 2)), ["__builtin_prefetch(f"]),
    "an image": (lambda s: s.out.prefetch(s.im, y, y, 2), ["__builtin_prefetch(im"]),
    "clamped, around vectors": (lambda s: s.out.vectorize(x, 8).prefetch(s.im, x, y, 2, Bounds.Clamp), ["__builtin_prefetch(im"]),
    "without a guard": (lambda s: (s.f.compute_root(), s.out.prefetch(s.f, x, x, 1, Bounds.NonFaulting)), ["__builtin_prefetch(f"]),
    "tiles, other storage": (lambda s: (s.f.compute_root().reorder_storage(y, x), s.out.tile(x, y, xi, yi, 8, 8).parallel(y).prefetch(s.f, x, x)),
                             ["__builtin_prefetch(f"]),
    "nothing is stored": (lambda s: s.out.prefetch(s.f, y, y), []),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_values_stay(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schedule, words = SCHEDULES[name]
    s = Funcs()
    schedule(s)
    np.testing.assert_array_equal(np.array(s.out.realize([17, 17])), 3 * (DATA[:-1] + DATA[1:]))
    s.out.compile_to_c(str(tmp_path / "out.c"), [s.im], "out")
    text = (tmp_path / "out.c").read_text()
    assert all(w in text for w in words) and ("__builtin_prefetch" in text) == bool(words)
    assert ("has no effect" in capsys.readouterr().out) == (not words)


def test_the_region_of_the_later_iteration(tmp_path: Path) -> None:
    """Row y + 2 of f is asked for, once a cache line."""
    s = Funcs()
    s.f.compute_root()
    s.out.bound(x, 0, 64).prefetch(s.f, y, y, 2)
    path = tmp_path / "out.txt"
    s.out.compile_to_lowered_stmt(str(path), [s.im])
    text = path.read_text()
    hint = text[text.index("prefetch(f"):].splitlines()[0]
    assert "*16" in hint.replace(" ", ""), hint  # int32: 16 to a line of 64 bytes
    head = text[:text.index("prefetch(f")].splitlines()[-4:]
    assert any(", 0, 4)" in line for line in head) and any("y + 2" in line for line in head), head


REFUSED: dict[str, tuple[Callable[[Funcs], object], list[str]]] = {
    "no such loop": (lambda s: s.out.prefetch(s.im, xi, y), ["In schedule for out", "argument 'at' of prefetch()", "xi"]),
    "an offset of coordinates": (lambda s: s.out.prefetch(s.im, y, y, x), ["offset of prefetch(), x", "constants and parameters"]),
    "at and from swapped": (lambda s: (s.out.prefetch(s.im, y, x), s.out.compile_jit()), ["out", "x is no loop around y", "swap"]),
    "in a vectorized loop": (lambda s: (s.out.split(x, x, xi, 8).vectorize(xi).prefetch(s.im, xi, x), s.out.compile_jit()), ["loop xi is vectorized"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_says_why(name: str) -> None:
    schedule, words = REFUSED[name]
    with pytest.raises(hl.CompileError) as caught:
        schedule(Funcs())
    assert all(w in str(caught.value) for w in words), str(caught.value)
