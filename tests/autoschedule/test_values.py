"""An autoscheduler never changes a result: pipelines of every kind, scheduled, give what they give without a schedule."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import halide_py as hl

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "oracle"))

import harness  # noqa: E402
from pipelines import random_script  # noqa: E402
from unscheduled import MAKERS, SCHEDULERS, Case, long_chain  # noqa: E402

from halide_py.errors import PipelineError  # noqa: E402


def realized(case: Case) -> list[np.ndarray]:
    results = hl.Pipeline(case.outputs).realize(list(case.size))
    return [np.array(b) for b in (results if isinstance(results, tuple) else [results])]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("maker", MAKERS, ids=lambda m: m.__name__)
def test_results_stay(maker: Callable[[], Case], scheduler: str) -> None:
    case = maker()
    for f in case.roots:
        f.compute_root()
    want, case = realized(case), maker()
    hl.Pipeline(case.outputs).apply_autoscheduler(hl.get_host_target(), hl.AutoschedulerParams(scheduler, {"parallelism": 8}))
    for got, expected in zip(realized(case), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=case.rounding, atol=case.rounding * float(np.abs(expected).max()))


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_outputs_may_have_any_size(scheduler: str) -> None:
    for size in ((1, 1), (3, 40), (37, 2)):
        x, y = hl.vars("x y")
        f, g = hl.Func("f"), hl.Func("g")
        f[x, y] = x * 3 + y
        g[x, y] = hl.sqrt(hl.f32(f[x, y] + f[x + 1, y + 1]))
        g.set_estimates([(0, 1024), (0, 1024)])
        hl.Pipeline(g).apply_autoscheduler(hl.get_host_target(), hl.AutoschedulerParams(scheduler))
        out = np.zeros(size[::-1], np.float32)
        g.realize(hl.Buffer(out))
        ys, xs = np.mgrid[0:size[1], 0:size[0]]
        np.testing.assert_allclose(out, np.sqrt((2 * (3 * xs + ys) + 4).astype(np.float32)), rtol=1e-6)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(n, marks=pytest.mark.slow) for n in range(6, 150))])
def test_random_pipelines(seed: int, scheduler: str) -> None:
    """Estimated to be large, so that they are cut and run in vectors; run small, by the interpreter of loop IR."""
    script = random_script(seed, 5, False)
    script.exact, script.mins = False, (0,) * len(script.mins)
    want, names = harness.expected(script), harness.build(script, scheduled=False)
    for f in script.outputs:
        names[f.name].set_estimates([(0, n) for n, _ in zip((300, 200, 40), f.args)])
    pipeline = hl.Pipeline([names[f.name] for f in script.outputs])
    pipeline.apply_autoscheduler(hl.get_host_target(), hl.AutoschedulerParams(scheduler, {"parallelism": 4}))
    try:
        got = harness.run_loop_ir(script, names)
    except PipelineError as error:
        assert any(reason in str(error) for reason in harness.EXPECTED_REFUSALS), error
        pytest.skip("the schedule needs more of an input than there is")
    harness.compare(got, want, script)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_long_pipelines_are_scheduled_fast(scheduler: str) -> None:
    case = long_chain()
    start = time.process_time()
    hl.Pipeline(case.outputs).apply_autoscheduler(hl.get_host_target(), hl.AutoschedulerParams(scheduler))
    assert time.process_time() - start < 20  # about 2 on a machine of its own, 5 on a busy one; a search that grows exponentially takes minutes
