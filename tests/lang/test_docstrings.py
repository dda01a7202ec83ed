"""Docstrings teach: those of the language say more than a line, and what their examples show is so."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path
from typing import Any

import pytest

import halide_py as hl

NAMES = [line.split(";;")[0].strip() for line in (Path(__file__).parent / "language_api.txt").read_text().splitlines()]
DOCUMENTED = [name for name in NAMES if "__" not in name.replace("__init__", "")]


def documented(name: str) -> Any:
    """What has the docstring: a function, a class in place of its __init__; None for attributes of instances."""
    owner, _, attribute = name.rpartition(".")
    if not owner or attribute == "__init__":
        return getattr(hl, owner or attribute)
    found = inspect.getattr_static(getattr(hl, owner), attribute, None)
    if found is None or inspect.ismemberdescriptor(found):
        return None
    return found.fget if isinstance(found, property) else getattr(getattr(hl, owner), attribute)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_docstring(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    thing = documented(name)
    if thing is None:  # told by its class
        assert name in ("Range.min", "Range.extent")
        return
    text = inspect.cleandoc(thing.__doc__ or "")
    assert len(text.splitlines()) > 1
    x, y = hl.vars("x y")
    test = doctest.DocTestParser().get_doctest(text, {"hl": hl, "x": x, "y": y}, name, None, None)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(test, out=report.append)
    assert not report, "".join(report)


def test_no_public_name_is_without() -> None:
    without = []
    for name in hl.__all__:
        thing = getattr(hl, name)
        members = [(f"{name}.{k}", v) for k, v in inspect.getmembers(thing) if not k.startswith("_") and callable(v)] if inspect.isclass(thing) else []
        without += [k for k, v in [(name, thing), *members] if callable(v) and not inspect.getdoc(v)]
    assert without == []
