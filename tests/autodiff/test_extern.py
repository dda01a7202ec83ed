"""C functions of the user's own: where their code comes from, what calls accept, and their gradients."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cffi
import numpy as np
import pytest

import halide_py as hl

x = hl.Var("x")

KNEE = """
#include <math.h>
static inline float knee(float x, float k) { return x < k ? x : k + (1.0f - k) * tanhf((x - k) / (1.0f - k)); }
"""
SOFTPLUS = """
#include <math.h>
double soft_plus(double v) { return v > 0 ? v + log1p(exp(-v)) : log1p(exp(v)); }
"""


def over(b: hl.Buffer, value: Any) -> hl.Func:
    f = hl.Func("f")
    f[x] = value
    return f


def values(f: hl.Func, n: int) -> Any:
    return np.array(f.realize([n]))


def test_source_text_with_a_gradient() -> None:
    knee = hl.extern("float knee(float x, float k)", source=KNEE)

    @knee.gradient
    def rule(adjoint: Any, result: Any, v: Any, k: Any) -> Any:
        t = hl.tanh((v - k) / (1 - k))
        return adjoint * hl.select(v >= k, 1 - t * t, 1), adjoint * hl.select(v >= k, 1 - t + (1 - t * t) * (v - 1) / (1 - k), 0)

    v = np.linspace(0, 2, 8).astype(np.float32)
    b, k = hl.Buffer(v), hl.Param(hl.Float(32), "k", 0.5)
    f = over(b, knee(b[x], k))
    expected = np.where(v < 0.5, v, 0.5 + 0.5 * np.tanh((v - 0.5) / 0.5))
    np.testing.assert_allclose(values(f, 8), expected, rtol=1e-6)
    r = hl.RDom([(0, 8)])
    loss = hl.Func("loss")
    loss[()] = 0.0
    loss[()] += f[r]
    d = hl.propagate_adjoints(loss)
    np.testing.assert_allclose(values(d[b], 8), np.where(v < 0.5, 1, 1 - np.tanh((v - 0.5) / 0.5) ** 2), rtol=1e-4, atol=1e-6)

    def sum_at(at: float) -> float:
        w = v.astype(float)
        return float(np.where(w < at, w, at + (1 - at) * np.tanh((w - at) / (1 - at))).sum())

    np.testing.assert_allclose(float(np.array(d[k].realize([]))), (sum_at(0.5001) - sum_at(0.4999)) / 2e-4, rtol=1e-3)


def test_stable_softplus_with_a_seed() -> None:
    softplus = hl.extern("double soft_plus(double v)", source=SOFTPLUS)
    softplus.gradient(lambda adjoint, result, v: adjoint / (1 + hl.exp(-v)))
    b, seed = hl.Buffer(np.array([-800.0, -2, 0, 3, 800])), hl.Buffer(np.array([1.0, 2, 3, 4, 5]))
    f = over(b, softplus(b[x]))
    np.testing.assert_allclose(values(f, 5), [0, 0.1269280110429725, 0.6931471805599453, 3.048587351573742, 800], rtol=1e-12)
    np.testing.assert_allclose(values(hl.propagate_adjoints(f, seed)[b], 5), [0, 0.238405844, 1.5, 3.810296507, 5], rtol=1e-8)


def test_shared_library_by_name_and_second_derivative_by_rule() -> None:
    j0, j1 = hl.extern("double j0(double x)", library="m"), hl.extern("double j1(double x)", library="m")
    j0.gradient(lambda adjoint, result, v: -adjoint * j1(v))
    b = hl.Buffer(np.array([0.5, 1.5]))
    f = over(b, j0(b[x]))
    np.testing.assert_allclose(values(f, 2), [0.9384698072408130, 0.5118276717359181], rtol=1e-12)
    np.testing.assert_allclose(values(hl.propagate_adjoints(f)[b], 2), [-0.2422684576748739, -0.5579365079100996], rtol=1e-12)


def test_shared_library_by_file_name() -> None:
    y0 = hl.extern("double y0(double x)", library="libm.so.6")
    f = hl.Func("f")
    f[x] = y0(hl.f64(x + 1))
    np.testing.assert_allclose(values(f, 1), [0.08825696421567697], rtol=1e-12)


def test_shared_library_by_path_and_object_file(tmp_path: Path) -> None:
    source = tmp_path / "twice.c"
    source.write_text("int twice_lib(int v) { return 2 * v; }\nint thrice_obj(int v) { return 3 * v; }\n")
    library, target = tmp_path / "libtwice.so", tmp_path / "thrice.o"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    subprocess.run(["cc", "-c", "-fPIC", "-o", str(target), str(source)], check=True)
    twice, thrice = hl.extern("int twice_lib(int v)", library=str(library)), hl.extern("int thrice_obj(int v)", objects=[target])
    f = hl.Func("f")
    f[x] = twice(x) + thrice(x)
    np.testing.assert_array_equal(values(f, 4), [0, 5, 10, 15])


def test_source_file(tmp_path: Path) -> None:
    (tmp_path / "halve.c").write_text("float halve(float v) { return v / 2; }\n")
    halve = hl.extern("float halve(float v)", source=tmp_path / "halve.c")
    f = hl.Func("f")
    f[x] = halve(hl.f32(x))
    np.testing.assert_array_equal(values(f, 3), [0, 0.5, 1])
    with pytest.raises(hl.CompileError, match="cannot read the C file"):
        hl.extern("float halve2(float v)", source="no_such_file.c")


def test_address_of_a_python_function() -> None:
    callback = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_float)(lambda v: 3 * v)
    tripled = hl.extern("float tripled(float x)", address=callback)
    f = hl.Func("f")
    f[x] = tripled(hl.f32(x))
    np.testing.assert_array_equal(values(f, 3), [0, 3, 6])
    with pytest.raises(hl.CompileError, match="address= takes"):
        hl.extern("float tripled2(float x)", address="nowhere")


@pytest.mark.parametrize(("prototype", "message"), [
    ("void f(int x)", "no result"), ("int f(int, ...)", "variable number"), ("float f(float *x)", "a pointer for argument x"),
    ("float *f(float x)", "a pointer for the result"), ("struct s f(int x)", "a struct, union or enum for the result"), ("float f(struct s x)", "argument x"),
    ("float f(float x[3])", "an array"), ("float f(x)", "gives no type"), ("float f(float x", "cannot read"), ("int x", "not the prototype of one function"),
    ("int f(int x); int g(int x)", "not the prototype of one function"), ("long double f(int x)", "no counterpart"),
])
def test_prototypes_that_cannot_be_called(prototype: str, message: str) -> None:
    with pytest.raises(hl.CompileError, match=message) as e:
        hl.extern(prototype)
    assert f"`{prototype}`" in str(e.value) and "test_extern.py:" in str(e.value)


def test_types_of_prototypes() -> None:
    types = {"unsigned char": hl.UInt(8), "short int": hl.Int(16), "unsigned": hl.UInt(32), "long long unsigned int": hl.UInt(64), "int8_t": hl.Int(8),
             "bool": hl.Bool(), "size_t": hl.UInt(64), "double": hl.Float(64), "void *": hl.Handle(), "signed": hl.Int(32), "const float": hl.Float(32)}
    for i, (text, t) in enumerate(types.items()):
        assert hl.extern(f"{text} typed{i}(int)").row.result == t, text
    assert hl.extern("int no_arguments(void)").row.args == ()


def test_arguments_are_checked() -> None:
    f = hl.extern("float checked(float x, int n)", source="static float checked(float x, int n) { return x * n; }")
    for args, message in (((1,), "takes 2 arguments, but is given 1"), ((x, 1), "Argument x of checked.. is float32, but is given x of type int32"),
                          ((1, 2.5), "Argument n of checked.. is int32, which cannot hold 2.5"), ((1, 1 << 40), "cannot hold"),
                          ((hl.f64(x), 2), "cast it: hl.cast.hl.Float.32")):
        with pytest.raises(hl.CompileError, match=message) as e:
            f(*args)
        assert "`float checked(float x, int n)`" in str(e.value)
    with pytest.raises(TypeError):
        f("a", 1)
    assert f(1, hl.u8(3)).type() == hl.Float(32) and f(hl.f16(2.5), True).type() == hl.Float(32)


def test_declaring_again() -> None:
    one = hl.extern("int again(int v)", source="static int again(int v) { return v + 1; }")
    same = hl.extern("int again(int v)", source="static int again(int v) { return v + 1; }")
    other = hl.extern("int again(int v)", source="static int again(int v) { return v + 10; }")
    assert one.row is same.row and one.row is not other.row
    f = hl.Func("f")
    f[x] = one(x) + 100 * other(x)
    np.testing.assert_array_equal(values(f, 2), [1001, 1102])
    hl.extern("int elsewhere(int v)", library="m")
    with pytest.raises(hl.CompileError, match="declared already"):
        hl.extern("float elsewhere(float v)", library="m")
    with pytest.raises(hl.CompileError, match="built-in function sin"):
        hl.extern("float sin(float v)", library="m")
    with pytest.raises(hl.CompileError, match="source and library"):
        hl.extern("float both(float v)", library="m", source="x;")


def test_functions_with_effects_are_called_each_time() -> None:
    counter = hl.extern("int next_number(void)", source="static int number; static int next_number(void) { return ++number; }", pure=False)
    f = hl.Func("f")
    f[x] = counter() * 100 + counter()
    np.testing.assert_array_equal(sorted(values(f, 2)), [102, 304])


def test_no_rule_is_an_error_that_shows_the_remedy() -> None:
    f = hl.extern("float without_rule(float v)", source="static float without_rule(float v) { return v * v; }")
    b = hl.Buffer(np.ones(3, np.float32))
    g = hl.Func("caller")
    g[x] = b[x]
    g[x] += f(b[x])
    with pytest.raises(hl.HalideError) as e:
        hl.propagate_adjoints(g)
    text = str(e.value)
    assert "without_rule" in text and "update 0 of Func caller" in text and "without_rule.gradient(lambda adjoint, result, v: ...)" in text
    constant = hl.Func("constant")
    constant[x] = f(hl.f32(x)) * b[x]  # no derivative is asked of it
    np.testing.assert_array_equal(values(hl.propagate_adjoints(constant)[b], 3), [0, 1, 4])


def test_a_wrong_rule_is_used_as_given() -> None:
    square = hl.extern("float square_7(float v)", source="static float square_7(float v) { return v * v; }")
    square.gradient(lambda adjoint, result, v: 7 * adjoint)
    b = hl.Buffer(np.array([1, 5], np.float32))
    f = over(b, square(b[x]))
    np.testing.assert_array_equal(values(hl.propagate_adjoints(f)[b], 2), [7, 7])


def test_implicit_gradient_reads_the_result() -> None:
    root = hl.extern("float root(float v)", source="#include <math.h>\nstatic float root(float v) { return sqrtf(v); }")
    root.gradient(lambda adjoint, result, v: adjoint / (2 * result))
    b = hl.Buffer(np.array([4, 9], np.float32))
    np.testing.assert_allclose(values(hl.propagate_adjoints(over(b, root(b[x])))[b], 2), [1 / 4, 1 / 6], rtol=1e-6)


def test_none_for_what_is_not_differentiable() -> None:
    power = hl.extern("float int_power(float v, int n)", source="static float int_power(float v, int n) { float p = 1; while (n-- > 0) p *= v; return p; }")
    power.gradient(lambda adjoint, result, v, k: (adjoint * hl.f32(k) * power(v, k - 1), None))
    b = hl.Buffer(np.array([2, 3], np.float32))
    np.testing.assert_allclose(values(hl.propagate_adjoints(over(b, power(b[x], 3)))[b], 2), [12, 27])


@pytest.mark.parametrize(("hook", "message"), [
    (lambda a, r, v: (a, a), "returned 2 adjoints for 1 arguments"), (lambda a, r, v: hl.f64(a), "an adjoint of type float64, .* argument is float32"),
    (lambda a, r, v: "x", "a str, .* return an Expr"), (lambda a, r, v: a * hl.f32(hl.Var("q")), "that uses q"),
])
def test_wrong_adjoints_are_named(hook: Any, message: str) -> None:
    f = hl.extern("float misruled(float v)", source="static float misruled(float v) { return v; }")
    b = hl.Buffer(np.ones(3, np.float32))
    with hl.gradient_rules({f: hook}), pytest.raises(hl.CompileError, match=message) as e:
        hl.propagate_adjoints(over(b, f(b[x])))
    assert "<lambda> for misruled" in str(e.value) and "test_extern.py:" in str(e.value)


def test_rules_for_a_while_and_for_good() -> None:
    b = hl.Buffer(np.array([1, 2], np.float32))
    f = over(b, hl.sin(b[x]))
    with hl.gradient_rules({"sin": lambda adjoint, result, v: 10 * adjoint}):
        with hl.gradient_rules({("sin", (hl.Float(32),)): lambda adjoint, result, v: 20 * adjoint}):
            np.testing.assert_array_equal(values(hl.propagate_adjoints(f)[b], 2), 20)
        np.testing.assert_array_equal(values(hl.propagate_adjoints(f)[b], 2), 10)
    np.testing.assert_allclose(values(hl.propagate_adjoints(f)[b], 2), np.cos([1, 2]), rtol=1e-6)
    mine = hl.extern("float mine(float v)", source="static float mine(float v) { return v; }")
    hl.register_gradient("mine", lambda adjoint, result, v: 3 * adjoint)
    np.testing.assert_array_equal(values(hl.propagate_adjoints(over(b, mine(b[x])))[b], 2), 3)
    with pytest.raises(hl.CompileError, match="no function 'nothing'"):
        hl.register_gradient("nothing", lambda *a: None)


def test_custom_gradient_of_a_function_of_exprs() -> None:
    @hl.custom_gradient
    def softplus(v: Any) -> Any:
        """Naive."""
        return hl.log(1 + hl.exp(v))

    b = hl.Buffer(np.array([-800.0, 0, 800]))
    f = over(b, softplus(b[x] * 2))
    with pytest.raises(hl.CompileError, match="softplus is a custom_gradient, but has no rule"):
        hl.propagate_adjoints(f)

    @softplus.backward
    def _(adjoint: Any, result: Any, v: Any) -> Any:
        return adjoint / (1 + hl.exp(-v))

    np.testing.assert_allclose(values(hl.propagate_adjoints(f)[b], 3), [0, 1, 2])
    assert softplus.__doc__ == "Naive." and np.isinf(values(f, 3)[2])


def test_stop_gradient() -> None:
    b = hl.Buffer(np.array([2, 3], np.float32))
    f = over(b, b[x] * hl.stop_gradient(b[x] * b[x]))
    np.testing.assert_array_equal(values(f, 2), [8, 27])
    np.testing.assert_array_equal(values(hl.propagate_adjoints(f)[b], 2), [4, 9])


def test_importing_the_package_reads_no_c_parser() -> None:
    subprocess.run([sys.executable, "-c", "import sys, halide_py; assert 'pycparser' not in sys.modules"], check=True)


@pytest.mark.parametrize("code", ["double other(double v) { return v; }", "double off1(double v, double w) { return v; }", "void off1(double v) {}",
                                  "float off1(float v) { return v; }"])
def test_source_that_does_not_define_the_prototype(code: str) -> None:
    """C would convert numbers in silence."""
    f = hl.Func("f")
    f[x] = hl.extern("double off1(double v)", source=code)(hl.f64(x))
    with pytest.raises(hl.HalideError, match=r"C source of off1, which has to define `double off1\(double v\)`"):
        f.realize([3])


@pytest.mark.parametrize("prototype", ["float at1(double v, int n)", "double at1(float v, int n)", "double at1(double v)", "double at1(double v, unsigned n)"])
def test_address_of_a_function_of_other_types(prototype: str) -> None:
    known = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int)(lambda v, k: v)
    with pytest.raises(hl.HalideError, match=r"is one of \(float64, int32\) -> float64"):
        hl.extern(prototype, address=known)
    assert hl.extern("double at2(double v, int n)", address=known).name() == "at2"


def test_rules_that_take_something_else() -> None:
    """A rule for an argument too few is named, wherever it is registered."""
    e, c, many = hl.extern("double few1(double v)", source="double few1(double v) { return v; }"), hl.custom_gradient(lambda v: v * v), hl.Func("many")
    e.gradient(lambda adjoint, result: adjoint)
    c.backward(lambda adjoint: adjoint)
    many.define_extern("few2", [hl.Buffer(np.ones(3))], hl.Float(64), 1, function=lambda a, b: None, regions=lambda r: [r], gradient=lambda adjoint: adjoint)
    one, two = hl.Func("one"), hl.Func("two")
    p = hl.Param(hl.Float(64), "p", 1.0)
    one[()], two[()] = e(p + 0), c(p + 0)
    for f, name in ((one, "few1"), (two, "lambda"), (many, "few2")):
        with pytest.raises(hl.HalideError, match=rf"rule .*{name}.* takes \(adjoint.*is given 3: adjoint, result, then each argument.*test_extern.py:\d+"):
            hl.propagate_adjoints(f)


def gives(f: Any) -> None:
    """A function of two numbers, v * n, with its rule, at some places."""
    f.gradient(lambda adjoint, result, v, k: (adjoint * hl.f64(k), None))
    b, g = hl.Buffer(np.array([0.5, -1.0, 2.0])), hl.Func("g")
    g[x] = f(b[x], x + 2)
    np.testing.assert_array_equal(np.array(g.realize([3])), [1, -3, 8])
    np.testing.assert_array_equal(np.array(hl.propagate_adjoints(g)[b].realize([3])), [2, 3, 4])


def test_address_of_functions_of_cffi_and_numba() -> None:
    """A Numba cfunc has an `address`, and itself as a function of ctypes."""
    ffi = cffi.FFI()
    gives(hl.extern("double scaled_cffi(double v, int n)", address=ffi.callback("double(double, int)", lambda v, n: v * n)))
    with pytest.raises(hl.HalideError, match=r"is one of \(float64, uint32\) -> float64"):
        hl.extern("double scaled_wrong(double v, int n)", address=ffi.callback("double(double, unsigned)", lambda v, n: v * n))

    function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int32)(lambda v, n: v * n)
    compiled = SimpleNamespace(ctypes=function, address=ctypes.cast(function, ctypes.c_void_p).value)
    gives(hl.extern("double scaled_numba(double v, int n)", address=compiled))
    with pytest.raises(hl.HalideError, match=r"is one of \(float64, int32\) -> float64"):
        hl.extern("float scaled_other(float v, int n)", address=compiled)


def test_static_library(tmp_path: Path) -> None:
    (tmp_path / "s.c").write_text("double scaled_static(double v, int n) { return v * n; }")
    subprocess.run(["gcc", "-c", "-fPIC", "-o", str(tmp_path / "s.o"), str(tmp_path / "s.c")], check=True)
    subprocess.run(["ar", "rcs", str(tmp_path / "libs.a"), str(tmp_path / "s.o")], check=True)
    gives(hl.extern("double scaled_static(double v, int n)", objects=tmp_path / "libs.a"))


STAGE = """
#include "HalideRuntime.h"
int STAGE(halide_buffer_t *in, double k, halide_buffer_t *out) {
    if (in->host == nullptr) { in->dim[0] = out->dim[0]; return 0; }
    double *a = (double *)in->host, *o = (double *)out->host;
    for (int i = 0; i < out->dim[0].extent; i++) o[i] = k * a[(i + out->dim[0].min - in->dim[0].min) * in->dim[0].stride];
    return 0;
}
"""


@pytest.mark.parametrize("how", ["registered", "given"])
def test_rule_of_an_extern_stage_in_c(how: str) -> None:
    """For a Func and a Param; the rule that one stage is given goes before the registered one."""
    name = f"scale_{how}"
    b, k, g, f = hl.Buffer(np.array([1.0, 2, 3, 4])), hl.Param(hl.Float(64), "k", 3.0), hl.Func("g"), hl.Func("f")

    def rule(adjoint: hl.Func, result: hl.Func, given: hl.Func, by: Any) -> Any:
        d, rate, r = hl.Func("d"), hl.Func("rate"), hl.RDom([(0, 4)])
        d[x] = adjoint[x] * by
        rate[()] = hl.sum(adjoint[r] * given[r])
        return d, rate

    def wrong(*given: Any) -> Any:
        raise AssertionError("the stage has a rule of its own")

    hl.register_extern_stage_gradient(name, rule if how == "registered" else wrong)
    g[x] = b[x] * b[x]
    g.compute_root()
    f.define_extern(name, [g, k], hl.Float(64), 1, source=STAGE.replace("STAGE", name), **({} if how == "registered" else {"gradient": rule}))
    d = hl.propagate_adjoints(f, hl.Buffer(np.array([1.0, 1, 2, 2])))
    np.testing.assert_array_equal(np.array(d[b].realize([4])), [6, 12, 36, 48])
    assert float(np.array(d[k].realize([]))) == 1 + 4 + 18 + 32


@pytest.mark.parametrize("how", ["definition", "two", "python", "c", "update"])
def test_what_is_below_an_extern_stage_has_a_region(how: str) -> None:
    """A convolution feeds the stage: where its adjoint is other than zero follows from the stage's rule, or from `bound`."""
    data, weights = np.arange(6.0), np.array([1.0, 2, 3])
    b, w, r, u = hl.Buffer(data), hl.Buffer(weights), hl.RDom([(0, 3)]), hl.RDom([(0, 1)])
    conv, f = hl.Func("conv"), hl.Func("squares")
    conv[x] = hl.f64(0)
    conv[x] += w[r] * b[x + r]
    conv.compute_root()
    if how == "c":
        conv.bound(x, 0, 4)

    def rule(adjoint: hl.Func, result: hl.Func, a: hl.Func) -> hl.Func:
        d, e = hl.Func("d"), hl.Func("e")
        e[x] = adjoint[x - 1] * 2
        if how == "python":
            d.define_extern("times", [adjoint.compute_root(), a], hl.Float(64), 1, function=lambda u, a, out: 2 * u * a)
        elif how == "c":
            source = STAGE.replace("double k, ", "").replace("= k * ", "= 2 * ").replace("halide_buffer_t *in", "halide_buffer_t *in, halide_buffer_t *by")
            source = source.replace("return 0; }\n", "by->dim[0] = out->dim[0]; return 0; }\n", 1)
            source = source.replace(".stride];", ".stride] * ((double *)by->host)[i + out->dim[0].min - by->dim[0].min];")
            d.define_extern("times_c", [adjoint.compute_root(), a], hl.Float(64), 1, source=source.replace("STAGE", "times_c"))
        elif how == "update":
            d[x] = hl.f64(0)
            d[x] += adjoint[x + u] * a[x] * 2
        else:
            d[x] = e[x + 1] * a[x] if how == "two" else adjoint[x] * a[x] * 2
        return d.compute_root()

    f.define_extern("squares", [conv], hl.Float(64), 1, function=lambda a, out: a * a, gradient=rule)
    loss, s = hl.Func("loss"), hl.RDom([(0, 4)])
    loss[()] = hl.f64(0)
    loss[()] += f.compute_root()[s]
    d = hl.propagate_adjoints(loss)
    values_of = np.array([data[i:i + 3] @ weights for i in range(4)])
    np.testing.assert_allclose(np.array(d[b].realize([6])), np.convolve(2 * values_of, weights))
    np.testing.assert_allclose(np.array(d[w].realize([3])), [2 * values_of @ data[i:i + 4] for i in range(3)])
