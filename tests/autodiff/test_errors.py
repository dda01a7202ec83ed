"""What the derivative refuses, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halide_py as hl

x = hl.Var("x")
b, index = hl.Buffer(np.ones(10, np.float32), name="floats"), hl.Buffer(np.zeros(10, np.int32), name="numbers")


def defined(name: str, value: Any) -> hl.Func:
    f = hl.Func(name)
    f[x] = value
    return f


def unbounded_access() -> Any:
    f, g = defined("f", b[hl.clamp(x, 0, 9)]), hl.Func("g")
    f.compute_root()  # inline, what it reads would do
    g[()] = 0.0
    g[()] += f[index[hl.RDom([(0, 10)])]]
    return hl.propagate_adjoints(g)[b]


def unbounded_parameter() -> Any:
    k = hl.Param(hl.Float(32), "k", 1.0)
    return hl.propagate_adjoints(defined("f", k * b[x]))[k]


def unbounded_recursion() -> Any:
    e = defined("e", b[x])
    r = hl.RDom([(0, 10)])
    e[hl.i32(b[r])] = e[hl.i32(b[r]) + 1] * 2
    return hl.propagate_adjoints(defined("h", e[x]))


def scatter_and_gather() -> Any:
    q = defined("swapped", b[x])
    q[hl.scatter([0, 1])] = hl.gather([q[1], q[0]])
    return hl.propagate_adjoints(q)


def two_values() -> Any:
    t = hl.Func("pair")
    t[x] = (b[x], b[x])
    return hl.propagate_adjoints(t)


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "unbounded access": (unbounded_access, r"input floats sums over x of the definition of Func f.*hl\.clamp"),
    "unbounded parameter": (unbounded_parameter, r"parameter k.* sums over x"),
    "unbounded recursion": (unbounded_recursion, r"update 0 of Func e.*values of dimension x it accesses"),
    "gather and scatter": (scatter_and_gather, r"Update 0 of Func swapped.*gather\(\) or scatter\(\)"),
    "bits of a float": (lambda: hl.propagate_adjoints(defined("f", hl.reinterpret(hl.Float(32), hl.reinterpret(hl.UInt(32), b[x]) & 1))),
                        "Reinterpret.*stop_gradient"),
    "a logarithm by bits": (lambda: hl.propagate_adjoints(defined("f", hl.f32(hl.reinterpret(hl.Int(32), b[x]) - 127))), "Reinterpret.*stop_gradient"),
    "forward by bits": (lambda: hl.propagate_tangents(defined("f", hl.f32(hl.reinterpret(hl.Int(32), b[x]) - 127)), [(b, b)]), "Reinterpret.*stop_gradient"),
    "integer output": (lambda: hl.propagate_adjoints(defined("f", hl.i32(b[x]))), "whose values are integers"),
    "undefined output": (lambda: hl.propagate_adjoints(hl.Func("nothing")), "nothing.* has no definition"),
    "several values": (two_values, r"Func pair\S*, which has 2 values"),
    "unrelated Func": (lambda: hl.propagate_adjoints(defined("f", b[x]))[defined("g", b[x])], "no derivative for Func g.*does not depend on it"),
    "integer Func": (lambda: hl.propagate_adjoints(defined("f", b[x]))[defined("g", x)], "no derivative for Func g.*integers"),
    "integer input": (lambda: hl.propagate_adjoints(defined("f", b[index[x]]))[index], "no derivative for numbers.*int32"),
    "no such update": (lambda: (f := defined("f", b[x])) and hl.propagate_adjoints(f)[f, 0], "update 0 of Func f"),
    "seed dimensions": (lambda: hl.propagate_adjoints(defined("f", b[x]), hl.Buffer(np.ones((2, 2), np.float32))), "1 dimensions, but its adjoint has 2"),
    "seed type": (lambda: hl.propagate_adjoints(defined("f", b[x]), index), "adjoint of Func f.* is int32"),
    "seed Func without bounds": (lambda: hl.propagate_adjoints(defined("f", b[x]), defined("s", hl.f32(1))), "needs output_bounds"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    attempt, message = ERRORS[name]
    with pytest.raises(hl.CompileError, match=message) as e:
        attempt()
    assert "test_errors.py:" in str(e.value), "the user's line is missing"


def test_key_of_another_kind() -> None:
    with pytest.raises(TypeError, match="indexed by a Func"):
        hl.propagate_adjoints(defined("f", b[x]))["x"]


def test_an_input_that_cannot_be_had_does_not_block_the_others() -> None:
    k = hl.Param(hl.Float(32), "k", 2.0)
    d = hl.propagate_adjoints(defined("f", k * b[x]))
    np.testing.assert_array_equal(np.array(d[b].realize([4])), 2)


def test_elements_of_a_buffer_by_plain_numbers_are_constants() -> None:
    """As in Halide they are numbers to Python; the error says so, and what to write."""
    b, x = hl.Buffer(np.array([2.0, 3.0]), "knobs"), hl.Var("x")
    f = hl.Func("f")
    f[x] = hl.f64(x) * b[1]
    with pytest.raises(hl.HalideError, match=r"There is no derivative for knobs.*knobs\[0\], is the number itself: write knobs\[hl.i32\(0\)\]"):
        hl.propagate_adjoints(f, hl.Buffer(np.ones(3)))[b]
    g = hl.Func("g")
    g[x] = hl.f64(x) * b[hl.i32(1)]
    np.testing.assert_array_equal(np.array(hl.propagate_adjoints(g, hl.Buffer(np.ones(3)))[b].realize([2])), [0, 3])
