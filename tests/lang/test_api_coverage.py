"""The language is all there, and works: every name of its areas, with its signature, gives what the example in `language_api.txt` says.

A line of that file: name ;; signatures ;; example ;; value. Operators have tests of their own.
"""

from __future__ import annotations

import inspect
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halide_py as hl

LINES = [tuple(part.strip() for part in line.split(";;")) for line in (Path(__file__).parent / "language_api.txt").read_text().splitlines()]


def values_of(f: hl.Func, *shape: int) -> list[Any]:
    return np.asarray(f.realize(list(shape))).tolist()


def refusal(call: Any) -> str:
    """The type that the refusal of a call asks for."""
    with pytest.raises(hl.HalideError) as caught:
        call()
    return "bool" if "bool" in str(caught.value) else str(caught.value)


def set_attribute(owner: Any, name: str, value: Any) -> Any:
    setattr(owner, name, value)
    return getattr(owner, name)


def partly_undefined() -> list[int]:
    f, x = hl.Func("partly"), hl.Var("x")
    f[x] = x
    f[x] = hl.select(x == 0, 7, hl.undef(hl.Int(32)))
    return values_of(f, 3)


def swapped_ends() -> list[int]:
    f, x = hl.Func("ends"), hl.Var("x")
    f[x] = x
    f[hl.scatter([0, 3])] = hl.gather([f[3], f[0]])
    return values_of(f, 4)


def forms_of_definition() -> list[int]:
    """Expr, Tuple, call of a Func, numbers, += on an undefined Func; by Var, tuple of Vars, Exprs, RVars."""
    x, y, f, g, h, r = hl.Var("x"), hl.Var("y"), hl.Func("one"), hl.Func("two"), hl.Func("three"), hl.RDom([(0, 4)])
    f[x] = x * 10
    g[x, y] = (f[x], y)
    g[x, 1] = (g[x, 0][0] + 1, 21)
    h[x] += r.x * x
    h[2] = h[3] + 25
    return [hl.evaluate(f[1]), hl.evaluate(g[1, 1][1]), hl.evaluate(h[2])]


def squares_in_c() -> tuple[list[int], str]:
    """The values 2..4 of an extern stage, and the name of its function."""
    f = hl.Func("c_stage")
    f.define_extern("api_squares", [], hl.Int(32), 1, source="""
        #include "HalideRuntime.h"
        int api_squares(halide_buffer_t *out) {
            if (out->host)
                for (int i = 0; i < out->dim[0].extent; i++) ((int *)out->host)[i] = (out->dim[0].min + i) * (out->dim[0].min + i);
            return 0;
        }""")
    buffer = hl.Buffer(hl.Int(32), [3])
    buffer.set_min([2])
    f.realize(buffer)
    return np.asarray(buffer).tolist(), f.extern_function_name()


def fixtures() -> dict[str, Any]:
    """What examples may use besides the public names."""
    x, y, f, pair = hl.Var("x"), hl.Var("y"), hl.Func("f"), hl.Func("pair")
    r, r1, half = hl.RDom([(0, 3), (0, 3)], "r"), hl.RDom([(0, 3)], "r1"), hl.RDom([(0, 5)], "half")
    half.where(half.x < 3)
    f[x, y] = x + 10 * y
    f[r1.x + 5, y] += 1
    pair[x] = (x, x * x)
    p = hl.Param(hl.Int(32), "p", 5)
    image = hl.Buffer(np.arange(6, dtype=np.uint8).reshape(2, 3))
    im = hl.ImageParam(hl.UInt(8), 2, "im")
    helpers = {k: v for k, v in globals().items() if inspect.isfunction(v)}
    return {**helpers, **{name: getattr(hl, name) for name in hl.__all__}, **locals(), "math": math}


def keywords(signature: str) -> set[str]:
    """The argument names that may be used as keywords."""
    return set(re.findall(r"(?<=[(,])\s*(\w+)(?=:)", re.sub(r"\[[^]]*\]", "", signature)))


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0])
def test_signature(line: tuple[str, ...]) -> None:
    name, signatures, _, _ = line
    owner, _, attribute = name.rpartition(".")
    thing = getattr(hl, owner or attribute)
    if not signatures.startswith("="):  # attributes may be those of instances; their examples tell
        thing = getattr(thing, attribute) if owner else thing
        parameters = inspect.signature(thing).parameters
        if not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in parameters.values()):
            assert keywords(signatures) <= parameters.keys()


def test_examples(capsys: pytest.CaptureFixture[str]) -> None:
    """Every name does what its example says; the Exprs of all examples are compiled together."""
    names = fixtures()
    results = [(name, eval(example, names), eval(value, names)) for name, _, example, value in LINES]
    exprs = {name: got for name, got, _ in results if isinstance(got, (hl.Expr, hl.FuncRef, hl.FuncTupleElementRef))}
    computed = dict(zip(exprs, hl.evaluate(tuple(exprs.values()))))
    wrong = []
    for name, got, want in results:
        got = computed.get(name, got)
        if got != (pytest.approx(want, rel=1e-5) if isinstance(want, float) else want):
            wrong.append(f"{name} gives {got}, not {want}")
    assert not wrong
    assert capsys.readouterr().out.endswith("5 is five\n")
    print(f"language: {len(results)} of {len(LINES)} names")
