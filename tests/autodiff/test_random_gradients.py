"""Random pipelines, a fixed set of seeds (`random_gradients.py` runs others)."""

from __future__ import annotations

import pytest
from random_gradients import check, check_narrow, eager, script

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # floats that are rounded


@pytest.mark.parametrize("seed", range(16))
def test_derivatives_of_random_pipelines(seed: int) -> None:
    check(script(seed, 3))


@pytest.mark.parametrize("seed", [101])
def test_compiled_derivatives_of_random_pipelines(seed: int) -> None:
    check(script(seed, 3), compiled=True)


def test_a_func_that_is_never_read() -> None:
    """All reads of an adjoint stand under conditions that never hold: its region is empty, not unknown."""
    check("""
rng = np.random.default_rng(7004)
p, q, k = hl.ImageParam(F64, 2, 'p'), hl.ImageParam(F64, 1, 'q'), hl.Param(F64, 'k', 0.7)
t = hl.ImageParam(hl.Int(32), 1, 't')
inputs = {p: rng.normal(size=(5, 4)), q: rng.normal(size=5), t: rng.integers(-1, 6, 5).astype(np.int32)}
P, Q, T = (hl.BoundaryConditions.repeat_edge(i, [(0, 5), (0, 4)][:i.dimensions()]) for i in (p, q, t))
never = hl.Func('never')
never[x, y] = Q[hl.clamp(hl.i32(hl.floor(Q[x] * 2.0)), -2, 3)] * Q[y]
f = hl.Func('f')
f[x, y] = hl.select(hl.abs(hl.f64(2.0)) > 0.2, hl.f64(0.5), never[x, x - 1])
r = hl.RDom([(1, 3)])
r.where(T[r.x] < 1)
f[hl.clamp(T[r.x], 0, 4), y] += never[hl.clamp(T[r.x], 0, 4), hl.clamp(r.x + -2, 0, 3)]
loss, s = hl.Func('loss'), hl.RDom([(-1, 5), (0, 3)])
loss[()] = hl.f64(0)
loss[()] += f[s.x, s.y] * hl.f64(s.x) + P[s.x - 1, s.x + 2] + (P[0, 1] + Q[2] + k) * 0.01
""".splitlines(), compiled=True)


@pytest.mark.parametrize("seed", [201, 202, 3024, 3028])
def test_second_derivatives_of_random_pipelines(seed: int) -> None:
    """3024: a sum that is put into a Func stands under a condition, which keeps an input in range. 3028: an index that one element says is clamped."""
    check(script(seed, 1 if seed == 3024 else 2), second=True)


@pytest.mark.parametrize("seed", [40000, 40001, 50001])
def test_sums_apart_of_random_pipelines(seed: int) -> None:
    """Blocks, packed copies and scatters in blocks, which are for long sums, of the short sums of random pipelines."""
    with eager():
        check(script(seed, 2))


@pytest.mark.parametrize("seed", [2003, 2100])
def test_scheduled_derivatives_of_random_pipelines(seed: int) -> None:
    """Extern stages are real ones here. 2003: a condition that is not taken reads an input under a condition of its own."""
    check(script(seed, 1), scheduled=seed)


@pytest.mark.parametrize("narrow", ["float32", "fast", "float16"])
def test_derivatives_in_fewer_bits(narrow: str) -> None:
    check_narrow(script(2004, 2), narrow)
