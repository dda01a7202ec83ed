"""Shared by every test: golden texts, the `slow` marker, and IR verification after each pass.

`--update-golden` rewrites golden texts; tests marked `slow` run only when HL_TEST_ALL=1 (`make test-all`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

os.environ.setdefault("HL_VERIFY", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden texts with what the code gives now")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: long; runs with HL_TEST_ALL=1 only")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("HL_TEST_ALL", "0") == "0":
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="slow; set HL_TEST_ALL=1"))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(text, name)` compares with `golden/<name>.txt` next to the test file; `--update-golden` rewrites it."""
    folder = Path(request.path).parent / "golden"
    update = request.config.getoption("--update-golden")

    def check(text: str, name: str) -> None:
        path = folder / f"{name}.txt"
        text = text.rstrip("\n") + "\n"
        if update:
            folder.mkdir(exist_ok=True)
            path.write_text(text)
            return
        assert path.exists(), f"no golden text {path.name}; run pytest --update-golden and review it"
        assert text == path.read_text(), f"differs from {path.name}; if the change is meant, run pytest --update-golden and review the diff"

    return check


@pytest.fixture
def effort() -> Callable[[Callable[[], object]], int]:
    """`effort(work)` is the number of function calls `work()` makes: what a test of complexity compares, the same on a busy machine."""

    def count(work: Callable[[], object]) -> int:
        calls = 0

        def profile(frame: FrameType, event: str, arg: object) -> None:
            nonlocal calls
            calls += event in ("call", "c_call")

        sys.setprofile(profile)
        try:
            work()
        finally:
            sys.setprofile(None)
        return calls

    return count
