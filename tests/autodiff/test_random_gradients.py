"""Random pipelines, a fixed set of seeds (`random_gradients.py` runs others)."""

from __future__ import annotations

import pytest
from random_gradients import check, script

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
