"""Every operator and function gives the type and the values that Halide gives, for all pairs of types.

What Halide gives is recorded in `operators.npz` (`record_operators.py` writes it), so the whole matrix is compared always: what our interpreter says.
Compiled in vectors (whose last lanes are scalars) are all works on two of a type, and of two types an eighth, another one for each pair; all of it with
HL_TEST_ALL=1. Three pairs are not recorded: Halide 21 has no function that makes half floats of doubles there, and cannot run them.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from operators import COUNT, PAIRS, TYPES, Type, exprs, values

import halide_py
from halide_py.reference import algorithm

ALL = os.environ.get("HL_TEST_ALL", "0") != "0"
MISSING = [(("Float", 64), ("Int", 16)), (("Float", 64), ("UInt", 16)), (("Float", 64), ("Float", 16))]
RECORDED = [pair for pair in PAIRS if pair not in MISSING]
AT_ONCE = 100  # works in one pipeline: twice as many take the C compiler more than twice the time


@functools.cache
def record() -> tuple[dict[str, Any], Mapping[str, np.ndarray]]:
    arrays = dict(np.load(Path(__file__).parent / "operators.npz"))
    index = json.loads(bytes(arrays.pop("index")).decode())
    assert index["count"] == COUNT
    return index, arrays


def name_of(t: Type) -> str:
    return f"{t[0]}{t[1]}"


def reasons(name: str, t: Type, u: Type) -> str:
    """Why a work is not compared, or is taken there but not here; "" if there is no reason."""
    floats, bools, sizes = "Float" in (t[0], u[0]), 1 in (t[1], u[1]), (t[1], u[1])
    if floats and name in ("u8", "u64", "lerp"):
        return "a negative float as an unsigned integer is undefined"
    if name == "//" and ("Float", 16) in (t, u):
        return "0 / 0 is NaN, and floor of it too; Halide's half floor gives -infinity"
    if name == "%" and floats and bools:
        return "x % 0 is NaN; Halide gives x where the 0 was a bool"
    if floats and name in ("halving_add", "halving_sub", "rounding_halving_add"):
        return "of integers here; there it is taken and ends the compiler"
    if (floats or bools) and any(word in name for word in ("shift", "<<", ">>", "bits", "&", "|", "^", "~", "halving", "count", "saturating")):
        return "bits of floats and of bools: taken there, but not compiled, or the other way round"
    if name == "x + 2 ** 33" and 16 in sizes and floats:
        return "2 ** 33 is beyond half floats, so infinity; Halide takes some of its bits"
    if 64 in sizes and name.startswith(("widening", "widen_right", "concat")):
        return "128 bits"
    return ""


def unlike(t: Type, u: Type, got: Mapping[str, np.ndarray]) -> list[str]:
    """Which values are not those of the record."""
    index, arrays = record()
    pair = f"{name_of(t)} {name_of(u)}"
    out = []
    for name, array in got.items():
        _, first, size = index[pair][name]
        want = np.frombuffer(arrays[pair][first:first + size].tobytes(), array.dtype)
        tolerance = 0 if array.dtype.kind != "f" else 2e-2 if array.dtype == np.float16 else 1e-5
        same = np.allclose(array.astype(np.float64), want.astype(np.float64), tolerance, tolerance / 10, equal_nan=True) if tolerance else np.array_equal(array, want)
        if not same:
            k = int(np.argmax(array != want))
            out.append(f"{name}: {array[k]} instead of {want[k]} at {k}")
    return out


def compared(t: Type, u: Type) -> dict[str, Any]:
    """Our Exprs of the works that the record has values of, after their types were compared, and who refuses what."""
    ours, refused = exprs(halide_py, t, u, halide_py.Var("x"))
    index = record()[0][f"{name_of(t)} {name_of(u)}"]
    there = {name for name, what in index.items() if what == "refused"}
    assert {name for name in there ^ refused if not reasons(name, t, u) and index[name] != ""} == set()
    both = {name: e for name, e in ours.items() if isinstance(index[name], list)}
    assert {name: str(e.type()) for name, e in both.items()} == {name: index[name][0] for name in both}
    return {name: e for name, e in both.items() if not reasons(name, t, u)}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("t,u", RECORDED, ids=name_of)
def test_interpreted_as_in_halide(t: Type, u: Type) -> None:
    works, f = compared(t, u), halide_py.Func("f")
    f[halide_py.Var("x")] = halide_py.Tuple(list(works.values()))
    assert unlike(t, u, dict(zip(works, algorithm.realize([f.function], (COUNT,)), strict=True))) == []


def chosen(t: Type, u: Type) -> dict[tuple[Type, str], Any]:
    """The Exprs that are compiled of a pair."""
    step, first = (1, 0) if ALL or t == u else (8, PAIRS.index((t, u)) % 8)
    return {(u, name): e for name, e in list(compared(t, u).items())[first::step]}


@pytest.mark.parametrize("t", TYPES, ids=name_of)
def test_compiled_as_in_halide(t: Type) -> None:
    works = [item for u in TYPES if (t, u) in RECORDED for item in chosen(t, u).items()]
    for first in range(0, len(works), AT_ONCE):
        got = values(halide_py, dict(works[first:first + AT_ONCE]), halide_py.Var("x"), 13)
        assert {u: unlike(t, u, {name: value for (v, name), value in got.items() if v == u}) for u in TYPES} == {u: [] for u in TYPES}
