"""What the language promises, and the tests that hold it: `language_tests.txt` is the table, here is what keeps it true.

A line of that file: promise ;; tests, each as folder/file::name below `tests/`.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LINES = [line.split(" ;; ") for line in (TESTS / "lang" / "language_tests.txt").read_text().splitlines()]


@functools.cache
def defined(file: Path) -> frozenset[str]:
    """The tests of a file."""
    return frozenset(s.name for s in ast.parse(file.read_text()).body if isinstance(s, ast.FunctionDef) and s.name.startswith("test_"))


@pytest.mark.parametrize(("promise", "names"), LINES, ids=[promise for promise, _ in LINES])
def test_is_held_by_tests_there_are(promise: str, names: str) -> None:
    lost = [name for name in names.split(", ") if name.partition("::")[2] not in defined(TESTS / name.partition("::")[0])]
    assert not lost, f"{promise}: {lost} are not there; say which tests hold it now"


def test_promises_are_told_apart() -> None:
    assert len({promise for promise, _ in LINES}) == len(LINES) > 40
