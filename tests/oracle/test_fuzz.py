"""A schedule never changes a result: random pipelines under random schedules, against the interpreter of the algorithm."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, note, settings

sys.path.insert(0, str(Path(__file__).parent))

from harness import SLOW, build, compare, expected, refused, run_compiled, run_loop_ir  # noqa: E402
from pipelines import Script, pipelines  # noqa: E402

from halide_py.errors import CompileError, PipelineError  # noqa: E402

CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]


def examples(few: int, many: int) -> settings:
    """The same few examples each time by default; many random ones with HL_TEST_ALL=1."""
    return settings(max_examples=many if SLOW else few, deadline=None, derandomize=not SLOW, database=None, suppress_health_check=CHECKS)


def check(script: Script, run: object) -> None:
    note(script.text())
    want = expected(build(script, scheduled=False), script.shape)
    try:
        got = run(build(script), script.shape)
    except CompileError:
        assert script.schedule, "refused without a schedule"
        return
    except PipelineError as error:
        if not refused(error):
            raise
        return
    compare(got, want, script)


@pytest.mark.slow  # unscheduled reductions of reductions are computed again at each use, which an interpreter feels
@examples(12, 300)
@given(pipelines(scheduled=False))
def test_unscheduled_loop_ir(script: Script) -> None:
    check(script, lambda func, shape: run_loop_ir(func.function, shape))


@examples(30, 1500)
@given(pipelines())
def test_scheduled_loop_ir(script: Script) -> None:
    check(script, lambda func, shape: run_loop_ir(func.function, shape))


@examples(20, 800)
@given(pipelines())
def test_scheduled_compiled(script: Script) -> None:
    check(script, run_compiled)


@pytest.mark.slow
@examples(10, 300)
@given(pipelines(funcs=7))
def test_long_chains_loop_ir(script: Script) -> None:
    check(script, lambda func, shape: run_loop_ir(func.function, shape))
