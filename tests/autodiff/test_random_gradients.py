"""Random pipelines, a fixed set of seeds (`random_gradients.py` runs others)."""

from __future__ import annotations

import pytest
from random_gradients import check, eager, script

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # floats that are rounded


@pytest.mark.parametrize("seed", range(16))
def test_derivatives_of_random_pipelines(seed: int) -> None:
    check(script(seed, 3))


@pytest.mark.parametrize("seed", [101])
def test_compiled_derivatives_of_random_pipelines(seed: int) -> None:
    check(script(seed, 3), compiled=True)


def test_a_func_that_is_never_read() -> None:
    """All reads of an adjoint stand under conditions that never hold: its region is empty, not unknown."""
    check(script(7004, 2), compiled=True)


@pytest.mark.parametrize("seed", [201, 202])
def test_second_derivatives_of_random_pipelines(seed: int) -> None:
    check(script(seed, 2), second=True)


@pytest.mark.parametrize("seed", [40000, 40001, 50001])
def test_sums_apart_of_random_pipelines(seed: int) -> None:
    """Blocks, packed copies and scatters in blocks, which are for long sums, of the short sums of random pipelines."""
    with eager():
        check(script(seed, 2))
