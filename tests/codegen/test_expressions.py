"""Random expressions of all types at many widths: scalar C, vector C at 16, 32 and 64 bytes, and the reference interpreter agree."""

from __future__ import annotations

import random

import numpy as np
import pytest
from c_run import CHECKS, FLAGS, function, load, run, store
from random_c_exprs import FLOATS, HALVES, INTS, Maker

from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.traverse import deep_recursion
from halide_py.ir.types import Bool, Type
from halide_py.reference.loop_ir import run_lowered
from halide_py.reference.storage import BufferArgument, numpy_type

ALL = [*INTS, *FLOATS, *HALVES, Bool()]
COUNT = 96


def short(t: Type) -> str:
    return str(t)


def data(t: Type, rng: np.random.Generator) -> np.ndarray:
    """Values that reach the corners of the type."""
    if t.is_bool():
        return rng.integers(0, 2, COUNT).astype(np.bool_)
    if t.is_bfloat():
        return (rng.integers(-64, 64, COUNT) / 4).astype(np.float32).view(np.uint32) >> 16
    if t.is_float():
        return (rng.integers(-1000, 1000, COUNT) / 8).astype(numpy_type(t))
    low, high = int(t.min_value()), int(t.max_value())
    values = rng.integers(low, high, COUNT, dtype=numpy_type(t), endpoint=True)
    values[rng.integers(0, COUNT, COUNT // 3)] = rng.integers(max(low, -9), 9, COUNT // 3).astype(numpy_type(t))
    values[:4] = [low, high, 0, 1]
    return values


def module_of(seed: int, lanes: int, depth: int):  # type: ignore[no-untyped-def]
    """A function that stores one random expression of each type, and its argument arrays."""
    rng, inputs, outputs, stmts = random.Random(seed), {}, {}, []
    chosen = rng.sample(ALL, 4)

    def leaf(t: Type) -> n.Expr:
        name = f"in_{short(t)}"
        inputs[name] = t
        return load(t, name, rng.randint(0, 8), lanes) if rng.random() < 0.8 else b.broadcast(load(t, name, rng.randint(0, 8), 1), lanes)

    with deep_recursion():
        for t in chosen:
            name = f"out_{short(t)}"
            outputs[name] = t
            stmts.append(store(name, Maker(rng, lanes, leaf).make(t, depth), 0))
    return function("f", b.block(stmts), inputs, outputs), inputs, outputs


def bits_equal(got: np.ndarray, want: np.ndarray) -> bool:
    if got.dtype.kind == "f":
        return bool(np.all((got == want) | (np.isnan(got) & np.isnan(want))))
    return bool(np.array_equal(got, want))


def check(seed: int, lanes: int, vector_bytes: int, flags=FLAGS, language: str = "c++", depth: int = 3) -> None:  # type: ignore[no-untyped-def]
    module, inputs, outputs = module_of(seed, lanes, depth)
    rng = np.random.default_rng(seed)
    arrays = [np.ascontiguousarray(data(t, rng).astype(np.uint16) if t.is_bfloat() else data(t, rng)) for t in inputs.values()]
    results = [np.zeros(COUNT, np.uint16 if t.is_bfloat() else numpy_type(t)) for t in outputs.values()]
    wanted = [np.zeros_like(r) for r in results]
    types = [*inputs.values(), *outputs.values()]
    run_lowered(module.functions[0], [BufferArgument(a, [0], t if t.is_bfloat() else None) for a, t in zip([*arrays, *wanted], types)])
    assert run(module, [*arrays, *results], vector_bytes, flags, language) == 0
    for got, want, name in zip(results, wanted, outputs):
        assert bits_equal(got, want), (name, got[:lanes], want[:lanes])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("lanes,vector_bytes", [(1, 32), (4, 16), (5, 32), (8, 32), (16, 32), (32, 32), (32, 16), (64, 64), (3, 32)])
def test_random(seed: int, lanes: int, vector_bytes: int) -> None:
    check(seed, lanes, vector_bytes)


@pytest.mark.parametrize("seed", range(100, 105))
@pytest.mark.parametrize("lanes", [1, 8, 32])
def test_random_undefined_behaviour(seed: int, lanes: int) -> None:
    check(seed, lanes, 32, CHECKS)


@pytest.mark.parametrize("seed", range(200, 204))
@pytest.mark.parametrize("lanes", [1, 16])
def test_random_as_c(seed: int, lanes: int) -> None:
    check(seed, lanes, 32, FLAGS, "c")
