"""Scalar and buffer arguments: values, ranges, constraints, access."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halide_py as hl
from halide_py.ir.printer import to_text

x, y = hl.vars("x y")


def text(e: Any) -> str:
    return to_text(hl.Expr(e).as_node())


def test_scalars() -> None:
    k = hl.Param(hl.Float(32), "k_scalar", 0.5)
    assert (k.name(), k.type(), k.get(), repr(k)) == ("k_scalar", hl.Float(32), 0.5, "<halide.Param 'k_scalar' type float32>")
    assert hl.Param(hl.Int(32), 3).get() == 3 and hl.Param(hl.Bool(), "flag", True).get() is True and hl.Param(hl.UInt(8)).get() is None
    assert hl.Param(hl.Int(32), name="named", value=7).get() == 7 and hl.Param(hl.UInt(8)).name().startswith("p")
    address = hl.Param(hl.Handle(), "address", 2**64 - 1)
    assert address.get() == 2**64 - 1 and hl.evaluate(hl.reinterpret(hl.UInt(64), address)) == 2**64 - 1
    with pytest.raises(hl.CompileError, match="address: the value -1 cannot be losslessly converted"):
        address.set(-1)
    k.set_range(0.0, 1.0)
    assert text(k.min_value()) == "0.000000f" and text(k.max_value()) == "1.000000f"
    k.set_max_value(hl.Expr())
    assert not k.max_value().defined()
    k.set_estimate(0.25)
    data = k.parameter()
    assert data.scalar() == 0.5 and data.same_as(k.parameter()) and not data.is_buffer() and text(data.estimate()) == "0.250000f"


@pytest.mark.parametrize("t, value", [(hl.UInt(8), 256), (hl.UInt(8), -1), (hl.Int(32), 1.5), (hl.Bool(), 2), (hl.Int(32), 2**31), (hl.Int(8), float("nan"))])
def test_values_that_do_not_fit(t: hl.Type, value: Any) -> None:
    p = hl.Param(t)
    with pytest.raises(hl.HalideError, match=re.escape(f"{p.name()}: the value {value} cannot be losslessly converted to type {t}")):
        p.set(value)
    assert p.get() is None


def test_images() -> None:
    im = hl.ImageParam(hl.UInt(16), 2, "im_access")
    assert repr(im) == "<halide.ImageParam 'im_access', dims: 2, type: uint16>"
    assert repr(hl.ImageParam()) == "<halide.ImageParam ImageParam()>"
    assert repr(hl.OutputImageParam()) == "<halide.OutputImageParam OutputImageParam()>"
    assert text(im[x, y + 1]) == "(uint16)im_access(x, y + 1)" and text(im[hl._]) == "(uint16)im_access(_0, _1)" and text(im(x, 0)) == "(uint16)im_access(x, 0)"
    assert text(im.width()) == "im_access.extent.0" and text(im.bottom()) == "((im_access.min.1 + im_access.extent.1) - 1)"
    assert text(im.dim(1).stride()) == "im_access.stride.1" and text(im.dim(0).dim(1).min()) == "im_access.min.1"
    assert im.dimensions() == 2 and im.type() == hl.UInt(16) and im.defined() and im.get() is None


def test_constraints() -> None:
    im, p = hl.ImageParam(hl.UInt(8), 3), hl.Param(hl.Int(32), "rows_promised")
    im.dim(0).set_stride(3).set_bounds(0, p)
    im.dim(2).set_stride(1).set_extent(3).set_estimate(0, 3)
    dims = im.param.dims  # type: ignore[union-attr]
    assert text(im.width()) == "rows_promised" and dims[0].stride.value == 3 and dims[1].stride is None and dims[2].extent.value == 3  # type: ignore[union-attr]
    im.dim(0).set_stride(hl.Expr())
    assert dims[0].stride is None
    assert im.set_host_alignment(32).host_alignment() == 32
    data = im.parameter()
    assert data.is_buffer() and data.dimensions() == 3 and text(data.extent_constraint(0)) == "rows_promised" and not data.stride_constraint(1).defined()
    data.set_min_constraint(1, 5)
    assert text(im.top()) == "5"


def test_output_buffers() -> None:
    f = hl.Func("with_output")
    f[x, y] = (x, 1.5)
    first, second = f.output_buffers()
    assert first.name() == "with_output.0" and second.type() == hl.Float(32) and f.output_buffer().dimensions() == 2
    first.dim(0).set_bounds(0, 16)
    assert text(f.output_buffer().width()) == "16"


@pytest.mark.parametrize("program", ["im[x]", "im[x, y, x]", "im[1.5, y]", "im.dim(2)", "im.channels()", "im.dim(0).set_min(x)", "im.dim(0).set_extent(1.5)",
                                     "im.set_host_alignment(3)", "im.set_estimates([(0, 1)])", "hl.ImageParam().dim(0)", "im.parameter().scalar()",
                                     "hl.Param(hl.Int(32)).parameter().buffer()", "hl.Param(hl.Int(32)).parameter().scalar()"])
def test_refused(program: str) -> None:
    im = hl.ImageParam(hl.UInt(8), 2)
    with pytest.raises(hl.HalideError):
        eval(program, {"hl": hl, "x": x, "y": y, "im": im})


@pytest.mark.parametrize("program", ["hl.Param(hl.Int(32)).set('a')", "hl.Param(hl.Int(32), 1, 2)", "hl.Param(hl.Int(32), 'n', 1, 2)", "im.set([1, 2])",
                                     "hl.Parameter(3)", "hl.Range.of(3)"])
def test_wrong_python_types(program: str) -> None:
    im = hl.ImageParam(hl.UInt(8), 2)
    with pytest.raises(TypeError):
        eval(program, {"hl": hl, "x": x, "y": y, "im": im})


@pytest.mark.parametrize(("make", "meant"), [
    (lambda: hl.cast(np.uint8, hl.Var("x")), "hl.UInt(8)"), (lambda: hl.ImageParam(np.dtype("f4"), 2), "hl.Float(32)"), (lambda: hl.Param(bool), "hl.Bool()"),
    (lambda: hl.Buffer(np.int16, [4]), "hl.Int(16)"), (lambda: hl.undef(float), "hl.Float(64)"), (lambda: hl.reinterpret("q!", hl.Var("x")), "hl.Float(32)"),
    (lambda: hl.saturating_cast(hl.Var("x"), np.int8), "hl.Float(32)"), (lambda: hl.ImageParam(hl.UInt(8), "im"), "number of dimensions"),
    (lambda: list(hl.ImageParam(hl.UInt(8), 1)), "not iterable"), (lambda: list(hl.Func("f")), "not iterable"), (lambda: 3 in hl.Func("f"), "not "),
])
def test_what_numpy_users_try(make: Callable[[], object], meant: str) -> None:
    """A dtype is no Type: the message names the one meant. Subscripts never end, so what has them is not iterated over."""
    with pytest.raises(TypeError) as caught:
        make()
    assert meant in str(caught.value)
