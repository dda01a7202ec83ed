"""Functions on Exprs: result types, which arguments are refused, and what they build."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from typing import Any

import pytest

import halide_py as hl
from halide_py.ir.printer import to_text

x, y = hl.Var("x"), hl.Var("y")
u8, i8, u16, i16, u32, i64, f32, f64 = (hl.cast(t, x) for t in (
    hl.UInt(8), hl.Int(8), hl.UInt(16), hl.Int(16), hl.UInt(32), hl.Int(64), hl.Float(32), hl.Float(64)))
condition = x < 3


def text(e: Any) -> str:
    return to_text(hl.Expr(e).as_node())


@pytest.mark.parametrize("e, expected", [
    (hl.min(u8, 5), "int32"), (hl.max(x, 1.5), "float32"), (hl.min(x, y, 3), "int32"), (hl.clamp(u8, 0, 255), "uint8"),
    (hl.clamp(x, u8, y), "int32"), (hl.clamp(f32, 0, 1), "float32"), (hl.select(condition, u8, 300), "uint8"),
    (hl.select(condition, 1, u8), "uint8"), (hl.select(condition, 1, 2.5), "float32"), (hl.select(True, x, y), "int32"),
    (hl.mux(x, [1, 2]), "int32"), (hl.mux(x, [u8]), "uint8"), (hl.lerp(u8, u8, 0.5), "uint8"), (hl.lerp(0, u8, 0.5), "uint8"),
    (hl.absd(u8, 3), "uint32"), (hl.absd(i8, i8), "uint8"), (hl.absd(f32, 2), "float32"), (hl.sin(x), "float32"), (hl.sqrt(f64), "float64"),
    (hl.exp(hl.f16(x)), "float16"), (hl.floor(x), "float32"), (hl.atan2(x, f64), "float32"), (hl.pow(x, 2), "int32"), (hl.pow(x, 0.5), "float32"),
    (hl.is_nan(f32), "bool"), (hl.popcount(u8), "uint8"), (hl.div_round_to_zero(x, u8), "int32"), (hl.cast(hl.UInt(8), 300), "uint8"),
    (hl.u8_sat(x), "uint8"), (hl.reinterpret(hl.Float(32), x), "float32"), (hl.undef(hl.UInt(8)), "uint8"), (hl.random_float(), "float32"),
    (hl.random_int(x), "int32"), (hl.random_uint(), "uint32"), (hl.widening_add(u8, u8), "uint16"), (hl.widening_sub(u8, u8), "int16"),
    (hl.widening_mul(u8, i8), "int16"), (hl.widening_mul(u8, x), "int64"), (hl.widening_shift_left(u8, 3), "uint16"),
    (hl.halving_add(u8, u8), "uint8"), (hl.saturating_add(u8, 3), "int32"), (hl.rounding_shift_right(u8, 2), "uint8"),
    (hl.mul_shift_right(u8, u8, 3), "uint8"), (hl.widen_right_add(u16, u8), "uint16"), (hl.concat_bits([u8, u8]), "uint16"),
    (hl.extract_bits(hl.UInt(8), x, 8), "uint8"), (hl.print(u8, "is", x), "uint8"), (hl.print_when(condition, u8, "is"), "uint8"),
    (hl.require(condition, u8, "why"), "uint8"), (hl.memoize_tag(u8, x), "uint8"), (hl.likely(u8), "uint8"), (hl.strict_float(f64), "float64"),
    (hl.unsafe_promise_clamped(u8, 0, hl.Expr()), "uint8"), (hl.fast_exp(f32), "float32"), (hl.erf(f32), "float32"), (hl.fract(x), "float32"),
])
def test_types(e: hl.Expr, expected: str) -> None:
    assert str(e.type()) == expected


@pytest.mark.parametrize("e, expected", [
    (hl.u8(300), "(uint8)44"), (hl.i8(200), "(int8)-56"), (hl.u8(1.75), "(uint8)1"), (hl.cast(hl.Bool(), 2), "(uint1)0"),
    (hl.select(condition, 1, y < 2, 2, 3), "select(x < 3, 1, select(y < 2, 2, 3))"), (hl.max(x, 1, y), "max(x, max(1, y))"),
    (hl.clamp(x, 0, 9), "max(min(x, 9), 0)"), (hl.fast_pow(x, 2), "(x*x)"), (hl.rounding_shift_right(u8, -2), "(uint8)rounding_shift_left(uint8(x), (uint8)2)"),
    (hl.div_round_to_zero(u8, u8), "(uint8(x)/uint8(x))"), (hl.clamp(u8, x % 10, 20), "max(min(uint8(x), (uint8)20), uint8(x % 10))"),
])
def test_texts(e: hl.Expr, expected: str) -> None:
    assert text(e) == expected


@pytest.mark.parametrize("program, error, message", [
    ("hl.min(x)", ValueError, "at least 2"), ("hl.select(condition, 1)", ValueError, "at least 3"),
    ("hl.select(condition, 1, 2, 3)", ValueError, "odd number"), ("hl.select(x, 1, 2)", hl.HalideError, r"must be a boolean:\n  x has "
                                                                                                        "type int32"),
    ("hl.select(condition, u8, x)", hl.HalideError, "do not have a matching type"),
    ("hl.select((condition, condition), (x, y, 0), (1, 2, 3, 4))", hl.HalideError, "requires all Tuples to have identical sizes."),
    ("hl.select((condition, condition), (x, y), condition, (x, y), (1, 2))", hl.HalideError, "may not mix Expr and Tuple for the "
                                                                                             "condition elements."),
    ("hl.select(condition, (x, y), x)", hl.HalideError, "between a Tuple and a single value"),
    ("hl.mux(x, [])", hl.HalideError, "non-empty"), ("hl.mux(x, [1, u8])", hl.HalideError, "same type"),
    ("hl.clamp(u8, 0, 256)", hl.HalideError, r"third argument \(256\) has type int32"), ("hl.clamp(u8, x, 9)", hl.HalideError, "second argument"),
    ("hl.unsafe_promise_clamped(u8, 0, 300)", hl.HalideError, "max argument"), ("hl.lerp(u8, x, 0.5)", hl.HalideError, "different type int32"),
    ("hl.lerp(u8, u8, x)", hl.HalideError, "unsigned integer or a float"), ("hl.lerp(u8, u8, 1.5)", hl.HalideError, r"not in the range \[0.0, 1.0\]"),
    ("hl.lerp(i64, i64, 0.5)", hl.HalideError, "64-bit"), ("hl.cast(hl.Handle(), x)", hl.HalideError, "only legal way"),
    ("hl.reinterpret(hl.Float(64), x)", hl.HalideError, "32 bits.*64 bits"), ("hl.is_nan(x)", hl.HalideError, "only works for float"),
    ("hl.erf(f64)", hl.HalideError, "float32"), ("hl.fast_log(x)", hl.HalideError, "float32"), ("hl.popcount(f32)", hl.HalideError, "must be an integer"),
    ("hl.div_round_to_zero(f32, 2)", hl.HalideError, "must be an integer"), ("hl.mul_shift_right(u8, u8, x)", hl.HalideError, "must be unsigned"),
    ("hl.mul_shift_right(u8, u8, -1)", hl.HalideError, "must be unsigned"), ("hl.widen_right_add(u8, u8)", hl.HalideError, "type mismatch"),
    ("hl.widening_add(i64, i64)", hl.HalideError, "twice its width"), ("hl.concat_bits([u8, u8, u8])", hl.HalideError, "3 arguments"),
    ("hl.require(x, x)", hl.HalideError, "boolean"), ("hl.random_float(u8)", hl.HalideError, "int32.*uint8"),
    ("u8 << 8", hl.HalideError, "less than the 8 bits"),
    ("u8 & x", hl.HalideError, "both be signed or both be unsigned"), ("u8 & 1.0", hl.HalideError, "bitwise and must be an integer"),
    ("~f32", hl.HalideError, "must be an integer"), ("hl.Expr('a') + 1", hl.HalideError, "pointer arithmetic"),
    ("hl.Expr() + 1", hl.HalideError, r"operator\+"),
    ("hl.logical_not(x)", hl.HalideError, "must be a bool"), ("hl.print('text')", hl.HalideError, "first argument"),
    ("hl.Tuple([])", hl.HalideError, "at least one"),
])
def test_refused(program: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        eval(program)


def test_tuples_in_select_and_mux() -> None:
    chosen = hl.select(condition, (x, y), (1, 2))
    assert isinstance(chosen, tuple) and [text(e) for e in chosen] == ["select(x < 3, x, 1)", "select(x < 3, y, 2)"]
    each = hl.select((x < 1, y < 2), (x, y), (1, 2))
    assert [text(e) for e in each] == ["select(x < 1, x, 1)", "select(y < 2, y, 2)"]
    g = hl.Func()
    g[x] = (x, x + 1)
    of_call = hl.select(condition, g[x], (1, 2))
    assert len(of_call) == 2
    m = hl.mux(x, [(x, y), (y, x)])
    assert isinstance(m, hl.Tuple) and [text(e) for e in m] == ["mux(x, x, y)", "mux(x, y, x)"]
    assert text(hl.mux(x, g[y])) == f"mux(x, {g.name()}(y), {g.name()}(y))"


def test_abs_of_unsigned_warns_on_standard_output() -> None:
    out = io.StringIO()
    with redirect_stdout(out):
        assert hl.abs(u8).type() == hl.UInt(8)
    assert out.getvalue() == "Warning: abs of an unsigned type is a no-op\n"


def test_each_random_call_is_its_own_stream() -> None:
    a, b = hl.random_float(), hl.random_float()
    assert a.node is not b.node
    f, g = hl.Func(), hl.Func()
    f[x, y] = a
    g[x] = a
    (first,), (second,) = f.values(), g.values()
    assert len(first.as_node().args) == 4 and len(second.as_node().args) == 3  # type: ignore[attr-defined]
    assert all(e.type == hl.UInt(32) for e in first.as_node().args)  # type: ignore[attr-defined]


def test_types_of_mixed_operands() -> None:
    half, flag = hl.cast(hl.Float(16), x), hl.cast(hl.Bool(), x)
    assert hl.atan2(half, u8).type() == hl.hypot(u8, half).type() == hl.Float(16)
    assert hl.widening_add(flag, flag).type() == hl.UInt(8) and hl.widening_sub(flag, flag).type() == hl.Int(8)
    assert hl.concat_bits([hl.i16(x), hl.i16(y)]).type() == hl.Int(32)
    for refused in (hl.halving_add, hl.halving_sub, hl.rounding_halving_add):
        with pytest.raises(hl.HalideError, match="must be an integer"):
            refused(half, half)
    with pytest.raises(hl.HalideError, match="must be an integer"):
        hl.concat_bits([half, half])


def test_mixed_operands_keep_their_values() -> None:
    """Integers of different signs, or next to half floats, are not squeezed into the other's type before they become floats."""
    assert hl.evaluate(hl.hypot(hl.i8(-120), hl.u8(209))) == 241
    assert hl.evaluate(hl.atan2(hl.i8(-128), hl.u8(255))) == pytest.approx(-0.46521502)
    assert hl.evaluate(hl.widening_mul(hl.f16(1), hl.i16(32767))) == 32767
