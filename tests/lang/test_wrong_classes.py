"""Arguments of a wrong class: every public name says what it takes, in a TypeError, a ValueError or a HalideError, and never fails inside.

The names and the classes of their arguments are those of Halide's Python bindings, which `wrong_classes.txt` lists, one method or function a line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halide_py as hl

NAMES = (Path(__file__).parent / "wrong_classes.txt").read_text().split()
ALLOWED = (TypeError, ValueError, hl.HalideError, IndexError)  # IndexError: a dimension or element there is not


def instances() -> dict[str, Any]:
    """One object of every class whose methods are called."""
    x, y = hl.Var("x"), hl.Var("y")
    f, g, pair = hl.Func("f"), hl.Func("g"), hl.Func("pair")
    r = hl.RDom([(0, 3), (0, 3)], "r")
    f[x, y] = x + y
    g[x] = 0
    g[x] += r.x
    pair[x] = (x, x)
    image = hl.ImageParam(hl.UInt(8), 2, "im")
    buffer = hl.Buffer(np.arange(6, dtype=np.uint8).reshape(2, 3))
    each = [f, f[x, y], pair[x][0], g.update(0), r, r.x, image, hl.Param(hl.Int(32), "p", 5), buffer, x, x + 1, hl.Tuple((x, y)), hl.Int(32), hl.Target("host"),
            hl.Pipeline([f]), hl.Range(0, 1), hl.VarOrRVar(x), image.dim(0), hl.LoopLevel(f, x), f.output_buffer(), hl.EvictionKey(hl.Expr(1)),
            hl.Argument(hl.Param(hl.Int(32))), hl.ArgumentEstimates(), hl.ExternFuncArgument(1), hl.Parameter(hl.UInt(8), True, 2, "q"), buffer.dim(0)]
    return {type(one).__name__: one for one in each}


def wrong(objects: dict[str, Any]) -> list[Any]:
    """A value of each of many classes; whatever an argument is to be, most of them are wrong."""
    return [3, "a", None, [], {}, 3.5, object(), test_wrong_classes, hl.Int(32), objects["Var"] + 1, objects["Var"], hl.Func, b"x", (1, 2), objects["Func"],
            objects["Buffer"], objects["RDom"]]


def bound(name: str, objects: dict[str, Any]) -> Callable[..., Any]:
    """The function to call."""
    owner, _, method = name.rpartition(".")
    if not owner or method == "__init__":
        return getattr(hl, owner or name)  # type: ignore[no-any-return]
    if owner == "BoundaryConditions":
        return getattr(hl.BoundaryConditions, method)  # type: ignore[no-any-return]
    static = isinstance(inspect.getattr_static(getattr(hl, owner), method), (staticmethod, classmethod))
    return getattr(getattr(hl, owner) if static else objects[owner], method)  # type: ignore[no-any-return]


def arity(call: Callable[..., Any]) -> range:
    """The numbers of positional arguments to try: at least one, at most five."""
    parameters = inspect.signature(call).parameters.values()
    plain = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    most = 3 if any(p.kind is p.VAR_POSITIONAL for p in parameters) else 0
    return range(max(1, sum(p.default is p.empty for p in plain)), max(len(plain), most, 1) + 1)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_classes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)  # what takes a file name may take "a"
    bad = []
    for count in arity(bound(name, instances())):
        for k in range(len(wrong(instances()))):
            objects = instances()
            value = wrong(objects)[k]
            try:
                bound(name, objects)(*[value] * count)
            except ALLOWED as e:
                text = str(e)
                if len(text) < 8:
                    bad.append(f"{name}({', '.join([repr(value)] * count)}): {type(e).__name__} says {text!r}")
            except Exception as e:  # noqa: BLE001 (what is not allowed)
                bad.append(f"{name}({', '.join([repr(value)] * count)}): {type(e).__name__}: {e}")
    capfd.readouterr()
    assert not bad, "\n".join(bad[:9])
