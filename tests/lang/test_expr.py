"""Expressions: types, literals, operators, conversions. Expected types and texts are those of Halide 21."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir.printer import to_text

x, y = hl.Var("x"), hl.Var("y")
u8, i8, u16, i32, u32, u64, f32, f64 = (hl.cast(t, x) for t in (
    hl.UInt(8), hl.Int(8), hl.UInt(16), hl.Int(32), hl.UInt(32), hl.UInt(64), hl.Float(32), hl.Float(64)))
condition = x < 3


def text(e: Any) -> str:
    return to_text(hl.Expr(e).as_node())


@pytest.mark.parametrize("e, expected", [
    (u8 + u16, "uint16"), (u8 + i8, "int8"), (u32 + i8, "int32"), (u64 + i8, "int64"), (u8 + f32, "float32"), (u64 * f32, "float32"),
    (f32 / f64, "float64"), (u8 + 1, "uint8"), (1 + u8, "uint8"), (u8 + True, "uint8"), (u8 + 1.5, "float32"), (f64 + 0.5, "float64"),
    (hl.f16(x) + 1, "float16"), (hl.f16(x) + 1.5, "float32"), (x + 2**31, "int64"), (u64 + 2**40, "int64"), (u8 < 3, "bool"),
    (x == y, "bool"), (x / 2, "int32"), (x // 2, "int32"), (f32 // 2, "float32"), (-u8, "uint8"), (u8 << 1, "uint8"), (x >> u8, "int32"),
    (1 << u8, "int32"), (u8 & 1, "uint8"), (u64 & 0xFFFFFFFFFF, "uint64"), (condition & True, "bool"), (condition ^ (y < 2), "bool"),
    (~condition, "bool"), (~u8, "uint8"), (x**2, "int32"), (x**y, "float32"), (2**x, "float32"), (f64**0.5, "float64"), (u8**3, "uint8"),
    (abs(i8), "uint8"), (hl.Expr(3), "int32"), (hl.Expr(2.5), "float32"), (hl.Expr(True), "bool"), (hl.Expr(2**31), "int64"),
    (hl.Expr(2**64), "float32"), (hl.Expr(x), "int32"),
])
def test_types(e: hl.Expr, expected: str) -> None:
    assert str(e.type()) == expected


@pytest.mark.parametrize("e, expected", [
    (-u8, "((uint8)0 - uint8(x))"), (x**-2, "(1/(x*x))"), (x**3, "((x*x)*x)"), (u8 << -1, "(uint8)shift_right(uint8(x), (uint8)1)"),
    (condition ^ (y < 2), "((x < 3) != (y < 2))"), (1 << u8, "shift_left(1, uint32(uint8(x)))"), (x + 1.5, "(float32(x) + 1.500000f)"),
    (3 - x, "(3 - x)"), (x < 3, "(x < 3)"),
])
def test_texts(e: hl.Expr, expected: str) -> None:
    assert text(e) == expected


@pytest.mark.parametrize("value, expected", [
    (np.float32(0.1), "float32"), (np.float64(0.5), "float32"), (np.float16(0.5), "float32"), (np.int64(3), "int32"), (np.uint8(3), "int32"),
    (np.int64(2**40), "int64"), (np.bool_(True), "int32"),
])
def test_numpy_scalars_are_the_numbers_they_hold(value: Any, expected: str) -> None:
    assert str((x + value).type()) == expected
    assert str((value + x).type()) == expected


def test_a_float_that_loses_digits_warns_at_the_users_line() -> None:
    with pytest.warns(RuntimeWarning, match="0.1 will be interpreted as a float32") as record:
        x + 0.1
    assert record[0].filename == __file__
    assert hl.f64(0.1).as_node().value == 0.1  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("error")
def test_a_float_that_loses_nothing_does_not_warn() -> None:
    x + 0.75
    x + hl.f64(0.123456789012345678)
    x + np.float32(0.1)
    x + float("inf")


@pytest.mark.parametrize("program", ["u8 + 256", "u8 + -1", "u8 < 256", "256 == u8", "condition & 2", "f32 + 16777217", "hl.f16(x) + 2049"])
def test_int_literals_must_fit(program: str) -> None:
    with pytest.raises(hl.HalideError, match="Integer constant .* changes its value to"):
        eval(program)


@pytest.mark.parametrize("program", ["condition and y < 2", "condition or y < 2", "not condition", "0 < x < 4", "bool(x)"])
def test_no_truth_value(program: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be converted to a bool.*'&'/'\|'/'~'"):
        eval(program)


@pytest.mark.parametrize("program", ["x + 'a'", "x + [1]", "None * x", "x << None", "x & 'a'", "x ** 'a'", "hl.Expr([1])", "hl.sin('a')"])
def test_what_is_no_expr_is_a_type_error(program: str) -> None:
    with pytest.raises(TypeError):
        eval(program)


def test_exprs_compare_to_none_and_are_unhashable() -> None:
    assert (x == None) is False  # noqa: E711
    for e in (x, x + 1, hl.RDom([(0, 3)]), hl.Param(hl.Int(32))):
        with pytest.raises(TypeError, match="unhashable"):
            hash(e)


def test_representations() -> None:
    assert repr(x) == "<halide.Var 'x'>" and str(x) == "x"
    assert repr(x + 1) == "<halide.Expr of type int32: (x + 1)>"
    assert repr(hl.Expr()) == "<undefined halide.Expr>"
    assert repr(hl.RVar("q")) == "<halide.RVar q((undefined), (undefined))>"
    assert repr(hl.RDom()) == "<halide.RDom RDom()>"
    assert repr(hl.Tuple([x, y])) == "<halide.Tuple of size 2>"


def test_implicit_vars() -> None:
    assert hl._.is_placeholder() and not x.is_placeholder()
    assert hl._1.same_as(hl.Var.implicit(1)) and hl.Var("_1").is_implicit() and hl._1.implicit_index() == 1
    assert not x.is_implicit() and x.implicit_index() == -1
    assert hl.Var.outermost().name() == "__outermost"
    assert not hl.Var().same_as(hl.Var())


def test_thousands_of_terms_build_fast(effort: Callable[[Callable[[], object]], int]) -> None:
    def build(terms: int) -> None:
        e = hl.Expr(0)
        for k in range(terms):
            e = e + x * (k + 7)
        s = x
        for _ in range(terms // 15):
            s = s * s + 1  # 2**200 nodes if copied
        hl.Func()[x] = e + s

    build(10)
    assert effort(lambda: build(3000)) < 2.2 * effort(lambda: build(1500))


def test_limits_of_types() -> None:
    assert text(hl.UInt(8).max()) == "(uint8)255" and text(hl.Int(32).min()) == "-2147483648" and text(hl.Float(32).max()) == "inff"


def test_operators_on_numpy_arrays_are_elementwise() -> None:
    taps = np.array([1, 2, 3]) * x
    assert taps.dtype == object and [text(e) for e in taps] == ["(1*x)", "(2*x)", "(3*x)"]
    shifted = x - np.array([[0.5], [2.0]], np.float32)
    assert shifted.shape == (2, 1) and text(shifted[1, 0]) == "(float32(x) - 2.000000f)"
    assert [text(e) for e in 2 ** np.array([x, y])] and [text(e) for e in (x // np.array([3, 5]))] == ["(x/3)", "(x/5)"]
    assert [text(e) for e in (x < np.array([3, 5]))] == ["(x < 3)", "(x < 5)"]
    f = hl.Func()
    f[x] = sum(np.array([1, 10, 100]) * np.array([x, x + 1, x + 2]))
    assert np.array(f.realize([2])).tolist() == [210, 321]


def test_names_are_strings_and_domains_are_lists() -> None:
    with pytest.raises(TypeError, match="name of a Var must be a string, not 3"):
        hl.Var(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="list of .* pairs"):
        hl.RDom(3)
    assert np.array(hl.Func(3).realize([])).item() == 3


@pytest.mark.parametrize("program", ["f + 1", "1 - f", "x * f", "f > 1", "-f", "abs(f)", "b + x", "x & b", "p / 2", "np.float32(2) * p", "hl.sqrt(f)", "hl.max(p, 1)",
                                     "hl.select(x > 1, b, 2)"])
def test_a_whole_func_or_image_is_no_value(program: str) -> None:
    """It says what to write instead."""
    f = hl.Func("whole")
    f[x] = x
    given = {"f": f, "b": hl.Buffer(np.zeros(3, np.int32), "whole_buffer"), "p": hl.ImageParam(hl.Int(32), 1, "whole_image")}
    with pytest.raises(TypeError, match=r"index it, as in whole\w*(\$\d+)?\[x, \.\.\.\]"):
        eval(program, {**globals(), **given})
    assert f == f and f != hl.Func() and given["b"] in (given["b"],)


@pytest.mark.parametrize(("program", "words"), [
    ("f['x']", r'a dimension is a Var: hl\.Var\("x"\)'), ("f[None]", "lack its return"), ("hl.sqrt(np.arange(3))", r"hl\.Buffer\(array\)"),
    ("f.split(x, hl.Var('o'), hl.Var('i'), 4, 'GuardWithIf')", r"split\(\) takes a TailStrategy, not 'GuardWithIf'"),
    ("f.compile_to_callable(3)", "a list of Params, ImageParams, Buffers and Arguments, not 3"),
    ("f.compile_to_static_library('f', 3)", "a list of Params, ImageParams, Buffers and Arguments, not 3"),
])
def test_wrong_classes_say_what_is_right(program: str, words: str) -> None:
    f = hl.Func("f")
    f[x] = x
    with pytest.raises(TypeError, match=words):
        eval(program, {**globals(), "f": f})


def test_a_value_outside_of_an_image_fits_its_type() -> None:
    image = hl.Buffer(np.zeros((2, 2), np.uint8))
    for value in (256, -1):
        with pytest.raises(hl.CompileError, match=f"exterior value {value} .* does not fit uint8"):
            hl.BoundaryConditions.constant_exterior(image, value)
    assert np.array(hl.BoundaryConditions.constant_exterior(image, 255).realize([3, 2]))[0].tolist() == [0, 0, 255]


@pytest.mark.parametrize("bits", [32, 64])
def test_comparisons_of_data_as_large_as_its_type(bits: int) -> None:
    """1 - i <= u is not 0 < i + u where that sum overflows."""
    x, t = hl.Var("x"), hl.Int(bits)
    small, large = np.array([5, -5, 6, 1], np.int16), np.array([2 ** (bits - 1) - 1, 7, 2 ** (bits - 1) - 3, -3], f"int{bits}")
    f = hl.Func("f")
    i, u = hl.cast(t, hl.Buffer(small)[x]), hl.Buffer(large)[x]
    f[x] = (1 - i <= u, 1 - i < u + 0, u >= 1 - i, 1 - i == u)
    left = [1 - int(v) for v in small]
    wanted = [[a <= int(b) for a, b in zip(left, large)], [a < int(b) for a, b in zip(left, large)],
              [a <= int(b) for a, b in zip(left, large)], [a == int(b) for a, b in zip(left, large)]]
    assert [np.asarray(out).tolist() for out in f.realize([4])] == wanted
