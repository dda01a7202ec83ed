"""A schedule never changes a result: random pipelines under random schedules, against the interpreter of the algorithm.

The default runs the same few seeds each time; HL_TEST_ALL=1 runs many, each in a child process. `hunt.py` runs any number.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hunt import Case, failures  # noqa: E402


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "loop_ir"])
def test_scheduled(seed: int, compiled: bool) -> None:
    Case(seed, compiled).run()


@pytest.mark.slow
@pytest.mark.parametrize("case", [
    Case(1000, scheduled=False), Case(2000), Case(3000, compiled=False), Case(4000, compiled=False, scheduled=False), Case(5000, funcs=8)], ids=str)
def test_many(case: Case) -> None:
    found = [f"seed {c.seed} {what}\n{printed}\n{c.text()}" for c, what, printed in failures([replace(case, seed=case.seed + k) for k in range(300)])]
    assert not found, "\n\n".join(found)
