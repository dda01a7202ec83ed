"""Every row of the table of gradient rules, by central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gradient_checks import check, total

import halide_py as hl
from halide_py.autodiff.rule_table import KINDS
from halide_py.ir import nodes as n
from halide_py.ir.intrinsics import C_LIBRARY, EXTERNS, INTRINSICS, intrinsic
from halide_py.ir.traverse import nodes_of
from halide_py.lower.environment import environment

x = hl.Var("x")
POSITIVE = np.array([0.3, 0.7, 1.4, 2.6])
SIGNED = np.array([-1.3, -0.4, 0.6, 1.7])
UNIT = np.array([-0.8, -0.3, 0.2, 0.9])
ABOVE_ONE = np.array([1.2, 1.9, 2.5, 4.0])

ONE: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "sin": (hl.sin, SIGNED), "cos": (hl.cos, SIGNED), "tan": (hl.tan, UNIT), "asin": (hl.asin, UNIT), "acos": (hl.acos, UNIT), "atan": (hl.atan, SIGNED),
    "sinh": (hl.sinh, SIGNED), "cosh": (hl.cosh, SIGNED), "tanh": (hl.tanh, SIGNED), "asinh": (hl.asinh, SIGNED), "acosh": (hl.acosh, ABOVE_ONE),
    "atanh": (hl.atanh, UNIT), "exp": (hl.exp, SIGNED), "log": (hl.log, POSITIVE), "sqrt": (hl.sqrt, POSITIVE), "abs": (hl.abs, SIGNED),
    "floor": (lambda e: hl.floor(e) + e, SIGNED), "ceil": (lambda e: hl.ceil(e) * e, SIGNED), "trunc": (lambda e: hl.trunc(e) * e, SIGNED),
    "round": (lambda e: hl.round(e) * e, SIGNED), "mod": (lambda e: (e * 3) % hl.f64(0.7), SIGNED), "div": (lambda e: 1 / e, SIGNED),
    "power": (lambda e: e ** 5, SIGNED), "negative power": (lambda e: e ** -2, SIGNED), "minus": (lambda e: -e - 2 * e, SIGNED),
    "select": (lambda e: hl.select(e > 0, e * e, e * 3), SIGNED), "max": (lambda e: hl.max(e, 0) * hl.max(hl.f64(0.5), e), SIGNED),
    "min": (lambda e: hl.min(e * e, e + 2), SIGNED), "clamp": (lambda e: hl.clamp(e * 2, hl.f64(-1), hl.f64(1.5)), SIGNED),
    "cast": (lambda e: hl.f64(hl.f32(e)) * e, SIGNED), "strict_float": (lambda e: hl.strict_float(e * e), SIGNED),
    "likely": (lambda e: hl.likely(e) * hl.likely_if_innermost(e), SIGNED), "lerp": (lambda e: hl.lerp(e, e * e, hl.f64(0.25)), SIGNED),
    "lerp weight": (lambda e: hl.lerp(hl.f64(1), hl.f64(4), e), POSITIVE[:2]), "lerp by uint": (lambda e: hl.lerp(e, e * e, hl.u8(x * 20)), SIGNED),
    "mux": (lambda e: hl.mux(x % 3, [e, e * e, e * e * e]), SIGNED), "require": (lambda e: hl.require(e < 10, e * e, "no"), SIGNED),
    "memoize_tag": (lambda e: hl.memoize_tag(e * e, hl.i32(3)), SIGNED), "print_when": (lambda e: hl.print_when(e > 100, e * e), SIGNED),
    "unsafe_promise_clamped": (lambda e: hl.unsafe_promise_clamped(e * e, hl.f64(0), hl.f64(10)), SIGNED),
    "saturating_cast": (lambda e: hl.saturating_cast(hl.Float(64), hl.f32(e)) * e, SIGNED),
    "random": (lambda e: hl.f64(hl.random_float()) * e, SIGNED), "fract": (hl.fract, SIGNED),
    "integer": (lambda e: hl.f64(hl.i32(e * 10)) * e, SIGNED + 0.033), "absd": (lambda e: hl.absd(e, hl.f64(0.5)), SIGNED),
    "select of an index": (lambda e: hl.select(x < 2, e * e, e * 3), SIGNED),
    "if_then_else": (lambda e: node("if_then_else", e, hl.Expr(x) < 2, e * e, e * 3), SIGNED), "return_second": (lambda e: node("return_second", e, hl.i32(1), e * e), SIGNED),
    "print": (lambda e: hl.select(e > 100, hl.print(e * e), e * e), SIGNED), "stop_gradient": (lambda e: hl.stop_gradient(hl.f64(x) + 1) * e, SIGNED),
    "with_gradient": (lambda e: hl.with_gradient(e * e, [(e, 2 * e)]), SIGNED), "undef": (lambda e: hl.select(x < 9, e * e, hl.undef(hl.Float(64))), SIGNED),
}


def node(name: str, like: hl.Expr, *args: hl.Expr) -> hl.Expr:
    """A call of an intrinsic that users have no name for."""
    return hl.Expr.of(intrinsic(name, like.type(), *(a.as_node() for a in args)))


@pytest.mark.parametrize("name", ONE)
def test_function_of_one(name: str) -> None:
    function, at = ONE[name]

    def build(a: Any) -> hl.Func:
        f = hl.Func("f")
        f[x] = function(a[x])
        return total(f, at.size)

    rounds = name in ("cast", "saturating_cast")  # through float32, whose steps are wide
    check(build, at, tolerance=1e-3 if rounds else 1e-6, eps=1e-2 if rounds else 1e-6)


TWO: dict[str, tuple[Callable[[Any, Any], Any], Any, Any]] = {
    "add": (lambda a, b: a + b, SIGNED, UNIT), "sub": (lambda a, b: a - b, SIGNED, UNIT), "mul": (lambda a, b: a * b, SIGNED, UNIT),
    "div": (lambda a, b: a / b, SIGNED, UNIT), "mod": (lambda a, b: a % b, SIGNED * 2.9, POSITIVE), "pow": (hl.pow, POSITIVE, SIGNED),
    "atan2": (hl.atan2, SIGNED, UNIT), "hypot": (hl.hypot, SIGNED, UNIT), "max": (hl.max, SIGNED, UNIT), "min": (hl.min, SIGNED, UNIT),
    "lerp": (lambda a, b: hl.lerp(a, b, a * b), SIGNED, UNIT), "select": (lambda a, b: hl.select(a > b, a * b, b), SIGNED, UNIT),
}
C_CASES = {"log1p": (POSITIVE,), "expm1": (SIGNED,), "exp2": (SIGNED,), "log2": (POSITIVE,), "log10": (POSITIVE,), "cbrt": (SIGNED,), "erfc": (SIGNED,),
           "fmod": (SIGNED * 2.9, POSITIVE), "remainder": (SIGNED * 2.9, POSITIVE), "copysign": (SIGNED, -UNIT), "fdim": (SIGNED, UNIT), "fmin": (SIGNED, UNIT),
           "fmax": (SIGNED, UNIT), "fma": (SIGNED, UNIT, POSITIVE)}


@pytest.mark.parametrize("name", C_CASES)
def test_function_of_the_c_library(name: str) -> None:
    values = C_CASES[name]
    check(c_build(name), *values, compiled=name in ("fma", "cbrt"))


def c_build(name: str) -> Callable[..., hl.Func]:
    function = hl.extern(f"double {name}({', '.join(f'double a{i}' for i in range(C_LIBRARY[name]))})")

    def build(*images: Any) -> hl.Func:
        f = hl.Func("f")
        f[x] = function(*(a[x] for a in images))
        return total(f, 4)

    return build


@pytest.mark.parametrize("name", TWO)
def test_function_of_two(name: str) -> None:
    function, p, q = TWO[name]

    def build(a: Any, b: Any) -> hl.Func:
        f = hl.Func("f")
        f[x] = function(a[x], b[x])
        return total(f, p.size)

    check(build, p, q)


FAST: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "fast_exp": (hl.fast_exp, np.exp), "fast_log": (hl.fast_log, lambda v: 1 / v), "fast_sin": (hl.fast_sin, np.cos),
    "fast_cos": (hl.fast_cos, lambda v: -np.sin(v)), "fast_inverse": (hl.fast_inverse, lambda v: -1 / v ** 2),
    "fast_inverse_sqrt": (hl.fast_inverse_sqrt, lambda v: -0.5 * v ** -1.5), "erf": (hl.erf, lambda v: 2 / np.sqrt(np.pi) * np.exp(-v * v)),
    "fast_pow": (lambda e: hl.fast_pow(e, e * 2), lambda v: v ** (2 * v) * (2 + 2 * np.log(v))),
}


@pytest.mark.parametrize("name", FAST)
def test_function_of_float32_only(name: str) -> None:
    function, derivative = FAST[name]
    v = POSITIVE.astype(np.float32)
    b = hl.Buffer(v)
    f = hl.Func("f")
    f[x] = function(b[x])
    got = np.array(hl.propagate_adjoints(f)[b].realize([v.size]))
    np.testing.assert_allclose(got, derivative(POSITIVE), rtol=2e-3)
    report = hl.check_gradients(f, [b], [(0, v.size)])
    assert report, str(report)
    hl.check_dot_product(f, [b], [(0, v.size)])


WIDENING = ("widening_add", "widening_sub", "widening_mul")


def widening(name: str, p: hl.Buffer, q: hl.Buffer) -> hl.Func:
    """Of two singles a double."""
    f = hl.Func("f")
    f[x] = getattr(hl, name)(p[x], q[x]) * hl.f64(x + 1)
    return f


@pytest.mark.parametrize("name", WIDENING)
def test_widening_of_floats(name: str) -> None:
    """It is exact, and so are differences over a step of a power of two."""
    arrays = [SIGNED.astype(np.float32), UNIT.astype(np.float32)]
    buffers = [hl.Buffer(a) for a in arrays]
    f = widening(name, *buffers)
    d = hl.propagate_adjoints(f)
    step = np.float32(2 ** -6)
    for k, b in enumerate(buffers):
        ends = [np.array(widening(name, *(hl.Buffer(a + sign * step * (j == k)) for j, a in enumerate(arrays))).realize([4])) for sign in (1, -1)]
        np.testing.assert_allclose(np.array(d[b].realize([4])), (ends[0] - ends[1]) / (2 * step), rtol=1e-5)
    hl.check_dot_product(f, buffers, [(0, 4)])


def test_no_rule_lacks_a_check() -> None:
    """Every kind of node and every function with a rule that comes with the language occurs in the pipelines that are checked above, as a float."""
    single = POSITIVE.astype(np.float32)
    defined = [hl.Func() for _ in FAST]
    for f, (function, _) in zip(defined, FAST.values()):
        f[x] = function(hl.Buffer(single)[x])
    for function, at in ONE.values():
        defined.append(hl.Func())
        defined[-1][x] = function(hl.Buffer(at)[x])
    for function, p, q in TWO.values():
        defined.append(hl.Func())
        defined[-1][x] = function(hl.Buffer(p)[x], hl.Buffer(q)[x])
    defined += [c_build(name)(*map(hl.Buffer, values)) for name, values in C_CASES.items()]
    defined += [widening(name, hl.Buffer(single), hl.Buffer(single)) for name in WIDENING]
    seen: set[Any] = set()
    for f in defined:
        for g in environment([f.function]).values():
            for e in nodes_of([v for d in g.stages() for v in d.values], (*KINDS, n.Call)):
                if e.type.is_float():
                    seen |= {type(e), e.name} if isinstance(e, n.Call) else {type(e)}
    assert not set(KINDS) - seen
    assert not {row.name for row in EXTERNS.values() if row.builtin and row.gradient is not None} - seen
    assert not {name for name, row in INTRINSICS.items() if row.gradient is not None} - seen - {"random"}  # drawn as integers, of which floats are made


def test_float16_keeps_its_type() -> None:
    p = hl.ImageParam(hl.Float(16), 1, "half")
    f = hl.Func("f")
    f[x] = p[x] * p[x]
    assert hl.propagate_adjoints(f)[p].type() == hl.Float(16)


def test_every_float_operation_has_a_rule() -> None:
    """Integer operations need none: what is an integer is a constant."""
    integer = {"absd", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right", "popcount", "count_leading_zeros",
               "count_trailing_zeros", "div_round_to_zero", "mod_round_to_zero", "is_nan", "is_inf", "is_finite", "widen_right_add",
               "widen_right_sub", "widen_right_mul",
               "widening_shift_left", "widening_shift_right", "rounding_shift_left", "rounding_shift_right", "saturating_add", "saturating_sub",
               "halving_add", "halving_sub", "rounding_halving_add", "mul_shift_right", "rounding_mul_shift_right", "concat_bits", "extract_bits", "stringify",
               "trace", "target_arch_is", "target_os_is", "target_has_feature", "target_bits", "target_natural_vector_size", "user_context_value"}
    integer |= {"whole_buffer", "buffer_part"}  # handles
    lowered = {"async_window", "debug_to_file", "memo_fetch", "memo_keep", "prefetch", "semaphore_acquire", "semaphore_release", "semaphores"}  # made by lowering, after differentiation
    whole_updates = {"gather", "scatter"}  # refused with a message of their own
    assert {name for name, row in INTRINSICS.items() if row.gradient is None} <= integer | lowered | whole_updates
    assert not [row.name for row in EXTERNS.values() if row.builtin and row.gradient is None]
    assert {k.__name__ for k in KINDS} >= {"Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Select", "Cast"}


def test_the_extremum_of_equal_values_is_the_first() -> None:
    """A kink gives the adjoint to one side only, and abs() none at 0."""
    z = np.zeros(1, np.float32)
    for function, expected in ((lambda e: hl.max(e, 0), 1), (lambda e: hl.max(hl.f32(0), e), 0), (lambda e: hl.min(e, 0), 1), (hl.abs, 0)):
        b = hl.Buffer(z)
        f = hl.Func("f")
        f[x] = function(b[x])
        assert np.array(hl.propagate_adjoints(f)[b].realize([1]))[0] == expected


GUARDED: dict[str, tuple[Callable[[Any], Any], Any, Any]] = {
    "sqrt": (lambda e: hl.select(e > 0, hl.sqrt(e), 0), [0.0, 4.0, -1.0], [0, 0.25, 0]),
    "log": (lambda e: hl.select(e > 0, hl.log(e), 3 * e), [0.0, 4.0], [3, 0.25]),
    "division": (lambda e: hl.select(e != 0, 1 / e, e), [0.0, 2.0], [1, -0.25]),
    "atan2": (lambda e: hl.select(e > 0, hl.atan2(hl.f32(0), e), 2 * e), [0.0, 2.0], [2, 0]),
    "max": (lambda e: hl.max(1 + e, hl.sqrt(e)), [0.0], [1]),
    "nested": (lambda e: hl.select(e > 0, hl.select(e > 1, hl.log(e - 1), e), hl.sqrt(-e)), [0.0, 0.5, 3.0], [-np.inf, 1, 0.5]),
    "pow at 0": (lambda e: hl.pow(e, hl.f32(0.0)) + e, [0.0, 2.0], [1, 1]),
    "hypot at 0": (lambda e: hl.hypot(e, e), [0.0], [0]),
}


@pytest.mark.parametrize("name", GUARDED)
def test_branches_not_taken_leak_no_nan(name: str) -> None:
    function, at, expected = GUARDED[name]
    b = hl.Buffer(np.array(at, np.float32))
    f = hl.Func("f")
    f[x] = function(b[x])
    np.testing.assert_allclose(np.array(hl.propagate_adjoints(f)[b].realize([len(at)])), expected, rtol=1e-6)
