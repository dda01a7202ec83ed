"""gradient="auto": what C functions compute as Exprs, against the compiled C code, and their derivatives, against differences of it."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradient_checks import image, run

import halide_py as hl

x = hl.Var("x")
S = np.array([-1.7, -0.6, 0.35, 0.9, 2.3])  # on both sides of most things
P = np.abs(S)
K = np.array([-3, -1, 0, 2, 5])
HEAD = "#include <math.h>\n#include <float.h>\n#include <stdint.h>\n#include <stdbool.h>\n"

# Each text defines a function of its name; of its parameters, doubles and floats are differentiated in. `samples` are their values.
FUNCTIONS: dict[str, tuple[str, list[Any]]] = {
    "straight": ("double straight(double a, double b) { double c = a * b; c += a; c -= 2 * b; c *= c; c /= 3 + b * b; return -c; }", [S, P]),
    "branch": ("double branch(double v) { double r; if (v > 0) r = sqrt(v); else r = v * v - v; return r; }", [S]),
    "nested_ifs": ("double nested_ifs(double v) { if (v < -1) { if (v < -1.5) return v * v * v; v = v + 1; } else if (v > 2) v *= 3; return v * v; }", [S]),
    "early_return": ("double early_return(double v) { if (v <= 0) return 0; double w = log(v); if (w > 0.5) return w * w; return w; }", [S]),
    "ternary": ("double ternary(double v) { return v > 0 ? v > 1 ? v * v : v : -v * 0.1; }", [S]),
    "logic": ("double logic(double v, double w) { return (v > 0 && w > 1) || !(v > -1) ? v * w : w; }", [S, P]),
    "comma": ("double comma(double v) { double a, b; a = v, b = a * v; return (a += 1, a * b); }", [S]),
    "horner": ("double horner(double v) { static const double c[] = {0.5, -1, 2, 0.25}; double s = 0; for (int i = 3; i >= 0; i--) s = s * v + c[i]; return s; }", [S]),
    "sized": ("double sized(double v) { const double c[4] = {1, 2}; double s = 0; for (unsigned i = 0; i < sizeof c / sizeof c[0]; ++i) s += c[i] * pow(v, i); return s; }", [P]),
    "newton": ("double newton(double a) { double v = a; for (int i = 0; i < 40; i++) { double w = 0.5 * (v + a / v); if (fabs(w - v) < 1e-14) return w; v = w; } return v; }", [P]),
    "do_while": ("double do_while(double v) { int k = 0; do { v = sin(v) + 0.5; } while (++k < 4); return v; }", [S]),
    "continued": ("double continued(double v) { double s = 0; for (int i = 0; i < 7; i++) { if (i % 3 == 1) continue; if (v * i > 4) continue; s += v * i; } return s; }", [S]),
    "broken": ("double broken(double v) { double s = 1; int i; for (i = 0; i < 9; i++) { s *= v; if (s > 2) break; } return s + i; }", [S]),
    "nested_loops": ("double nested_loops(double v) { double s = 0; for (int i = 0; i < 3; i++) for (int j = i; j < 3; j++) { if (v < 0 && j == 2) break; s += v * i + j * v * v; } return s; }", [S]),
    "return_in_a_loop": ("double return_in_a_loop(double v) { for (int i = 1; i < 6; i++) { if (i > 4 && v < 0) break; if (v * i > 3) return v * v * i; } return v / 2; }", [S]),
    "bounded_by_data": ("double bounded_by_data(double v, int n) { double s = 1; for (int i = 0; i < n && i < 8; i++) s *= v; return s; }", [S, K]),
    "counted_down": ("double counted_down(double v) { int n = 5; double s = 0; while (n-- > 0) s += v / (n + 1); return s; }", [S]),
    "switched": ("double switched(double v, int k) { switch (k) { case -3: return v; case 0: v *= 2; case 2: v = v * v; break; default: v += 1; break; case 5: v = 1 / v; } return v * 3; }",
                 [S, K]),
    "switch_in_a_loop": ("double switch_in_a_loop(double v) { double s = 0; for (int i = 0; i < 5; i++) { switch (i) { case 1: continue; case 3: s *= v; break; default: s += v; } s += 1; } return s; }",
                         [S]),
    "helpers": ("static double square(double v) { return v * v; }\nstatic double twice(double v) { return square(v) + square(v + 1); }\ndouble helpers(double v) { return twice(sin(v)); }", [S]),
    "recursive": ("static double power(double v, int n) { return n == 0 ? 1 : n % 2 ? v * power(v, n - 1) : power(v * v, n / 2); }\ndouble recursive(double v) { return power(v, 13); }", [S]),
    "arrays": ("double arrays(double v, int k) { double t[4], s = 0; for (int i = 0; i < 4; i++) t[i] = v * i; t[k & 3] = v * v * v; for (int i = 0; i < 4; i++) s += t[i] * (i + 1); return s; }",
               [S, K]),
    "table": ("static const double steps[2][3] = {{1, 2, 3}, {0.5, 0.25}};\ndouble table(double v, int k) { return v * steps[k > 0][k & 1] + steps[1][0]; }", [S, K]),
    "passed_on": ("static void scale(double *t, int n, double by) { for (int i = 0; i < n; i++) t[i] *= by; }\nstatic double sum(const double t[3]) { return t[0] + t[1] * t[2]; }\n"
                  "double passed_on(double v) { double t[3] = {v, 2, v * v}; scale(t, 3, v); return sum(t); }", [S]),
    "matrix": ("double matrix(double a, double b) { double m[2][2] = {{a, b}, {1, a * b}}, p[2][2] = {{0}}; for (int i = 0; i < 2; i++) for (int j = 0; j < 2; j++)\n"
               "for (int k = 0; k < 2; k++) p[i][j] += m[i][k] * m[k][j]; return p[0][0] + p[1][0] * p[1][1] - p[0][1]; }", [S, P]),
    "constants": ("#define GAIN 3.5\nenum { FIRST = 2, SECOND };\nstatic const int three = SECOND;\nconst double base = GAIN / 7;\ndouble constants(double v) { return v * base + three / FIRST * v * v + 'a' - 0x1p-2 * v + 1e2L * 0; }"
                  .replace(" + 1e2L * 0", ""), [S]),
    "typedefs": ("typedef double real;\ntypedef real number;\nnumber typedefs(number v) { typedef int whole; whole k = v; return v * k; }", [S + 0.01]),
    "soft": ("static inline __attribute__((always_inline)) double soft(double v) { return v > 0 ? v + log1p(exp(-v)) : log1p(exp(v)); }", [S * 20]),
    "huber": ("double huber(double v, double k) { const double a = fabs(v); return a <= k ? 0.5 * v * v : k * (a - 0.5 * k); }", [S, P[::-1] * 1.1]),
    "gelu": ("double gelu(double v) { return 0.5 * v * (1 + erf(v * M_SQRT1_2)) + 0 * (double)isnan(v); }", [S]),
    "library": ("double library(double v) { return sin(v) + cos(v) * tan(v / 2) + asin(v / 3) + acos(v / 4) + atan(v) + sinh(v) + cosh(v) + tanh(v) + exp(v) + asinh(v); }", [S]),
    "library_positive": ("double library_positive(double v) { return log(v) + log2(v) + log10(v) + log1p(v) + sqrt(v) + cbrt(v) + acosh(v + 1) + atanh(v / 4) + exp2(v) + expm1(v) + erfc(v); }", [P]),
    "library_of_two": ("double library_of_two(double a, double b) { return pow(b, a) + atan2(a, b) + hypot(a, b) + fmod(7 * a, b) + remainder(5 * a, b) + copysign(a, -b) + fdim(a, b) + fmin(a, b)"
                       " * fmax(a, b) + fma(a, b, a); }", [S, P[::-1] * 1.1]),
    "roundings": ("double roundings(double v) { return v * (floor(v) + ceil(v) + trunc(v) + round(v) + rint(v) + lround(2 * v) + llrint(v) + nearbyint(v)); }", [S]),
    "halves": ("double halves(int k) { return round(k * 0.5) * 10 + rint(k * 0.5); }", [K]),
    "signs": ("double signs(double v) { return signbit(v) ? -v * v : copysign(v, 3.0) * (isfinite(1 / v) ? 2 : 1); }", [S]),
    "limits": ("double limits(double v) { return v < DBL_MAX && v > -INFINITY ? v * FLT_EPSILON * 1e7 : HUGE_VAL; }", [S]),
    "cast_away": ("double cast_away(double v) { int k = (int)(v * 2); return v * k + (double)(float)0.1 * v; }", [S + 0.01]),
    "increments": ("double increments(double v) { int i = 3; int j = i++ * 2 + --i; double w = v; w++; return w * j + i - (v--, v); }", [S]),
    "assigned_in_a_condition": ("double assigned_in_a_condition(double v) { double w, u = 0; if ((w = v * 2) > 1 && (u = w * w) > 0) return u; return w + u; }", [S]),
    "side_of_a_ternary": ("double side_of_a_ternary(double v) { double u = 1; double w = v > 0 ? (u = v * v) : (u = -v); return w + 10 * u; }", [S]),
    "shadows": ("double shadows(double v) { double a = v; { double a = 2; v *= a; } for (int a = 0; a < 2; a++) v += a; return a * v; }", [S]),
    "parameters_change": ("double parameters_change(double v, int n) { v *= v; n += 2; v = v * n; return v; }", [S, K]),
    "booleans": ("double booleans(double v) { bool up = v; _Bool one = 0.25; int both = up + one + (v > 0) + !v; return v * both; }", [S]),
    "integers_of_all_widths": ("double integers_of_all_widths(double v, int k) { int8_t a = k * 100; uint8_t b = k; unsigned short c = -k; int64_t d = (int64_t)k << 33; uint32_t e = k; long f = e + 1;"
                               " return v * (a + b + c + (double)d + e / 3u + f); }", [S, K]),
    "floats": ("float floats(float v, float w) { float a = v * w + 1.5f; a = a / (1 + w * w); return expf(-a * a) + sqrtf(w) * 2; }", [S, P]),
    "promoted": ("float promoted(float v) { return exp(v) * 0.1 + v / 3; }", [S]),
    "mixed": ("double mixed(float v, double w, int8_t k) { return v * w + k * v - (k / 2) * w; }", [S, P, K]),
    "attributes": ("__attribute__((const)) static double attributes(double v) { double __restrict_free = v; return __restrict_free * v; }", [S]),
    "unused_pointer": ("static int counter;\nvoid touch(int *p) { *p = counter; }\ndouble unused_pointer(double v) { return v * v; }", [S]),
}

INTEGERS: dict[str, tuple[str, list[Any]]] = {
    "divided": ("int divided(int a, int b) { return a / (b | 1) * 100 + a % (b | 1); }", [np.array([-7, 7, -8, 123456]), np.array([2, -3, 5, -7])]),
    "unsigned_wraps": ("unsigned unsigned_wraps(unsigned a, int b) { return a - b * 3u; }", [np.array([0, 1, 5]), np.array([4, -9, 1])]),
    "compared": ("int compared(int a, unsigned b) { return (a < b) + 2 * (a == (int)b) + 4 * ((int8_t)a > b) + 8 * ((unsigned char)a < (signed char)b); }",
                 [np.array([-1, 300, 5, 200]), np.array([1, 44, 5, 255])]),
    "shifted": ("int shifted(int a, int b) { return (a << 3) + (a >> (b & 7)) + ((unsigned)a >> 28) + (1 << (b & 3)); }", [np.array([-9, 1000, 77]), np.array([1, 6, 3])]),
    "bits": ("int bits(int a, int b) { int r = a & b; r |= a ^ 0xff; r ^= ~b; r <<= 2; r >>= 1; r %= 1001; return r; }", [np.array([-9, 1000, 77]), np.array([1, -6, 3])]),
    "narrow": ("int8_t narrow(int a, uint16_t b) { uint8_t c = a + b; int16_t d = (int16_t)(b * 3); return c + d; }", [np.array([-9, 1000, 77]), np.array([1, 60000, 3])]),
    "long_ones": ("int64_t long_ones(int a, int64_t b) { return a * b + 4000000000 + 0xffffffff + (a > 0 ? 1u : -1) + 077; }", [np.array([-9, 1000, 77]), np.array([1, -1 << 40, 3])]),
    "absolutes": ("int absolutes(int a, int64_t b) { return abs(a) + labs(b) % 1000 + (a ? -a : a); }".replace("abs(a)", "__builtin_abs(a)").replace("labs(b)", "__builtin_labs(b)"),
                  [np.array([-9, 0, 77]), np.array([1, -12345, 3])]),
    "of_floats": ("int of_floats(float a, double b) { return (int)a + (int)b + (a > b) + (int)(a * 10) % 3; }", [np.array([-9.75, 0.1, 77]), np.array([1.5, -12345.9, 3])]),
}

_C_TYPES = {"double": ctypes.c_double, "float": ctypes.c_float, "int": ctypes.c_int, "unsigned": ctypes.c_uint, "int8_t": ctypes.c_int8, "uint8_t": ctypes.c_uint8,
            "int16_t": ctypes.c_int16, "uint16_t": ctypes.c_uint16, "int64_t": ctypes.c_int64, "number": ctypes.c_double}


def prototype(name: str, text: str) -> tuple[str, list[str]]:
    """The declaration of a function, as `hl.extern` takes it, and its types, the result's first."""
    found = re.search(rf"(\w+) {name}\(([^)]*)\) {{", text)
    assert found is not None
    result, params = found[1], [p.split() for p in found[2].split(",")]
    return f"{result} {name}({found[2]})".replace("number", "double"), [result, *(p[-2] for p in params)]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Any]:
    """Functions of a C text, called through ctypes."""
    folder = tmp_path_factory.mktemp("c")
    for name, (text, _) in {**FUNCTIONS, **INTEGERS}.items():
        (folder / f"{name}.c").write_text(HEAD + re.sub(r"static (inline )?(?=(__attribute__\S+ )?double (soft|attributes)\()", "", text))
    subprocess.run(["cc", "-O0", "-ffp-contract=off", "-fwrapv", "-shared", "-fPIC", "-o", "all.so", *(f"{name}.c" for name in {**FUNCTIONS, **INTEGERS}), "-lm"],
                   check=True, cwd=folder)
    library = ctypes.CDLL(str(folder / "all.so"))

    def function(name: str, text: str) -> Any:
        types = prototype(name, text)[1]
        found = library[name]
        found.restype, found.argtypes = _C_TYPES[types[0]], [_C_TYPES[t] for t in types[1:]]
        return found

    return function


_KINDS = {"double": (hl.Float(64), np.float64), "number": (hl.Float(64), np.float64), "float": (hl.Float(32), np.float32), "int": (hl.Int(32), np.int32),
          "unsigned": (hl.UInt(32), np.uint32), "int8_t": (hl.Int(8), np.int8), "uint16_t": (hl.UInt(16), np.uint16), "int64_t": (hl.Int(64), np.int64)}


def inputs_of(types: list[str], samples: list[Any]) -> tuple[list[Any], list[Any]]:
    images = [image(1, _KINDS[t][0]) for t in types]
    return images, [np.asarray(s).astype(_KINDS[t][1]) for t, s in zip(types, samples)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_value_and_derivative(name: str, compiled: Any) -> None:
    text, samples = FUNCTIONS[name]
    shown, types = prototype(name, text)
    f = hl.extern(shown, source=HEAD + text, gradient="auto")
    images, arrays = inputs_of(types[1:], samples)
    c_function = compiled(name, text)
    held = dict(zip((p.name() for p in images), arrays))
    value = hl.Func("value")
    value[x] = f.as_expr(*(p[x] for p in images))
    single = types[0] == "float" or "float" in types[1:]
    expected = [c_function(*(a[i].item() for a in arrays)) for i in range(len(arrays[0]))]
    np.testing.assert_array_max_ulp(run(value, arrays[0].shape, held), np.array(expected, np.float32 if types[0] == "float" else np.float64), 8)
    called = hl.Func("called")
    called[x] = f(*(p[x] for p in images))
    d = hl.propagate_adjoints(called)
    eps = 1e-2 if single else 1e-6
    for k, (p, a) in enumerate(zip(images, arrays)):
        if a.dtype.kind != "f":
            continue
        slopes = []
        for i in range(a.size):
            at = [b[i].item() for b in arrays]
            ends = [c_function(*(v + step if j == k else v for j, v in enumerate(at))) for step in (eps, -eps)]
            slopes.append((ends[0] - ends[1]) / (2 * eps))
        np.testing.assert_allclose(run(d[p], a.shape, held), slopes, rtol=2e-2 if single else 1e-6, atol=1e-3 if single else 1e-7)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_those_of_c(name: str, compiled: Any) -> None:
    text, samples = INTEGERS[name]
    shown, types = prototype(name, text)
    f = hl.extern(shown, source=HEAD + text, gradient="auto")
    images, arrays = inputs_of(types[1:], samples)
    value = hl.Func("value")
    value[x] = f.as_expr(*(p[x] for p in images))
    function = compiled(name, text)
    expected = [function(*(a[i].item() for a in arrays)) for i in range(len(arrays[0]))]
    np.testing.assert_array_equal(run(value, arrays[0].shape, dict(zip((p.name() for p in images), arrays))), expected)


REFUSED: dict[str, tuple[str, str]] = {
    "pointer": ("double f(double v) {\n    double *p = &v;\n    return *p;\n}", r"a pointer, at line 2, column 12 of the source of f: `double \*p = &v;`"),
    "dereference": ("double f(double v) { double t[2] = {v, v}; return *t; }", "a pointer, at line 1"),
    "unbounded while": ("double f(double v) {\n    double s = 1;\n    while (s < v) s *= 2;\n    return s;\n}", r"has not ended, .*1024 turns.*, at line 3, column 5"),
    "number of turns": ("double f(double v, int n) { for (int i = 0; i < n; i++) v *= v;\n return v; }", "bounded by a constant, at line 1, column 29"),
    "forever": ("double f(double v) { for (;;) v = v + 1; return v; }", "1024 turns"),
    "goto": ("double f(double v) {\n again:\n    v = v * v;\n    if (v > 2) goto again;\n    return v;\n}", "goto, at line 2"),
    "global": ("double gain = 2;\ndouble f(double v) { return v * gain; }", "the global variable gain, which is not const, at line 2"),
    "static": ("double f(double v) { static double last = 0; last += v; return last; }", "the variable last, which is static and keeps its value"),
    "volatile": ("double f(double v) { volatile double w = v; return w; }", "a volatile variable, at line 1, column 38"),
    "varargs": ("#include <stdarg.h>\nstatic double first(int n, ...) { return n; }\ndouble f(double v) { return v * first(1, v); }", r"first\(\) takes a variable number of arguments, at line 3"),
    "struct": ("struct pair { double a, b; };\ndouble f(double v) { struct pair p = {v, v}; return p.a; }", "a struct or union, at line 2"),
    "long double": ("double f(double v) { long double w = v; return w; }", "the type long double, at line 1"),
    "long double constant": ("double f(double v) { return v * 2.5L; }", "a constant of type long double"),
    "unknown function": ("double g(double);\ndouble f(double v) { return g(v); }", r"a call of g\(\), of which the source has no definition .*g = hl.extern\(\.\.\.\), g.gradient\(lambda adjoint, result, a0"),
    "function without rule": ("double declared_without_rule(double);\ndouble f(double v) { return declared_without_rule(v); }", r"declared_without_rule\(\), which has no gradient rule \(register one before"),
    "function pointer": ("static double g(double v) { return v; }\ndouble f(double v) { double (*h)(double) = g; return h(v); }", "a pointer, at line 2"),
    "endless recursion": ("double f(double v) { return v > 0 ? f(v - 1) : v; }", r"calls of f\(\) in each other, more than 48 deep"),
    "no return": ("double f(double v) {\n    if (v > 0) return v;\n}", r"the end of f\(\) can be reached without a return, at line 1"),
    "no value": ("double f(double v) { double w; return v * w; }", "a variable is read before it has a value, at line 1, column 43"),
    "out of range": ("double f(double v) { double t[2] = {v, 1}; return t[2]; }", "index 2 is outside of the 2 elements of t"),
    "size of an array": ("double f(double v, int n) { double t[n]; return v; }", "the array t, whose size is no constant"),
    "part of an array": ("static double g(double *t) { return t[0]; }\ndouble f(double v) { double t[2][2] = {{v}}; return g(t[0]); }", "a part of the array t"),
    "assigned const": ("double f(double v) { const double w = v; w = 2; return w; }", "an assignment to w, which is const"),
    "designated": ("double f(double v) { double t[2] = {[1] = v}; return t[1]; }", "a designated initializer"),
    "string": ("double f(double v) { return v * sizeof \"abc\"; }", "a string"),
    "no C": ("double f(double v) {\n    return v +* ;\n}", r"it is no C: expected expression before .;. token, at line 2, column \d+"),
    "C++": ("#include <math.h>\ntemplate <class T> T g(T v) { return v; }\ndouble f(double v) { return g(v); }", r"it is no C: .*at line 2"),
    "absent": ("double other(double v) { return v; }", r"the source has no definition of f\(\)"),
    "other type": ("float f(double v) { return v; }", r"f\(\) returns float32, but `double f\(double v\)` says float64"),
    "divided by zero": ("double f(double v) { return v * (1 / 0); }", "/ by 0"),
    "shifted too far": ("double f(double v) { return v * (1 << 40); }", "a shift by 40"),
    "too many operations": ("double f(double v) { for (int i = 0; i < 1000; i++) for (int j = 0; j < 1000; j++) v += i * j; return v; }", "more than 200000 operations"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_expr_is_refused_with_its_place(name: str) -> None:
    """The message has the place in the C text, what to do instead, and the user's line."""
    text, message = REFUSED[name]
    hl.extern("double declared_without_rule(double v)", source="double declared_without_rule(double v) { return v; }")
    shown = "double f(double v, int n)" if ", int n)" in text else "double f(double v)"
    with pytest.raises(hl.CompileError, match=message) as e:
        hl.extern(shown, source=text, gradient="auto")
    names = "v, n" if "int n" in shown else "v"
    assert f"f.gradient(lambda adjoint, result, {names}: ...)" in str(e.value) and "test_c_functions.py:" in str(e.value) and f"`{shown}`" in str(e.value)


def test_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "curve.c"
    path.write_text("double curve(double v) {\n    double *w = &v;\n    return *w;\n}\n")
    with pytest.raises(hl.CompileError, match=r"at line 2, column 12 of .*curve\.c: `double \*w = &v;`"):
        hl.extern("double curve(double v)", source=path, gradient="auto")
    path.write_text("double curve(double v) { return v * v; }\n")
    f = hl.extern("double curve(double v)", source=path, gradient="auto")
    b = hl.Buffer(np.array([3.0]))
    called = hl.Func("called")
    called[x] = f(b[x])
    assert np.array(hl.propagate_adjoints(called)[b].realize([1])) == 6


def test_arguments_of_extern() -> None:
    with pytest.raises(hl.CompileError, match=r"reads the function's C text; give it as source=, or give a rule: without_text.gradient\(lambda adjoint, result, v"):
        hl.extern("double without_text(double v)", library="m", gradient="auto")
    with pytest.raises(TypeError, match='a rule .adjoint, result, v. or "auto", not 3'):
        hl.extern("double with_number(double v)", source="double with_number(double v) { return v; }", gradient=3)
    with pytest.raises(hl.CompileError, match="has no C source"):
        hl.extern("double y1(double v)", library="m").as_expr(hl.f64(1.0))
    with pytest.raises(hl.HalideError, match=r'called_plain.gradient\(lambda adjoint, result, v: ...\) \(or let its source say: hl.extern\(..., gradient="auto"\)\)'):
        plain = hl.extern("double called_plain(double v)", source="static double called_plain(double v) { return v; }")
        b = hl.Buffer(np.ones(2))
        f = hl.Func("f")
        f[x] = plain(b[x])
        hl.propagate_adjoints(f)


def called(f: Any, b: hl.Buffer) -> hl.Func:
    g = hl.Func("g")
    g[x] = f(b[x])
    return g


def slopes(f: Any, b: hl.Buffer) -> Any:
    return np.array(hl.propagate_adjoints(called(f, b))[b].realize([b.width()]))


def test_rules_by_hand_go_first() -> None:
    text = "static double quad(double v) { return v * v; }\nstatic double outer(double v) { return quad(v) + v; }\n"
    b = hl.Buffer(np.array([1.0, 2]))
    outer = hl.extern("double outer(double v)", source=text, gradient="auto")
    np.testing.assert_array_equal(slopes(outer, b), [3, 5])
    quad = hl.extern("double quad(double v)", source=text, gradient=lambda adjoint, result, v: 100 * adjoint)
    np.testing.assert_array_equal(slopes(quad, b), 100)
    other = text.replace("outer", "second")  # another text: its quad() is not the one with the rule
    np.testing.assert_array_equal(slopes(hl.extern("double second(double v)", source=other, gradient="auto"), b), [3, 5])
    with hl.gradient_rules({outer: lambda adjoint, result, v: 7 * adjoint}):
        np.testing.assert_array_equal(slopes(outer, b), 7)
    outer.gradient(lambda adjoint, result, v: 8 * adjoint)
    np.testing.assert_array_equal(slopes(outer, b), 8)


def test_calls_of_other_externs_use_their_rules() -> None:
    j1 = hl.extern("double j1(double v)", library="m")
    hl.extern("double j0(double v)", library="m", gradient=lambda adjoint, result, v: -adjoint * j1(v))
    f = hl.extern("double bessel(double v)", source="#include <math.h>\nstatic double bessel(double v) { return v * j0(2 * v); }", gradient="auto")
    v = np.array([0.3, 1.1])
    expected = [0.9120048634972114 - 0.6 * 0.28670098806391617, 0.11036226692218396 - 2.2 * 0.5559630498190639]
    np.testing.assert_allclose(slopes(f, hl.Buffer(v)), expected, rtol=1e-6)


def test_several_functions_of_one_source_in_one_pipeline() -> None:
    text = "static double shared(double v) { return v + 1; }\ndouble one_of_two(double v) { return shared(v) * v; }\ndouble two_of_two(double v) { return shared(v) - v * v; }\n"
    one, two = (hl.extern(f"double {name}(double v)", source=text, gradient="auto") for name in ("one_of_two", "two_of_two"))
    b = hl.Buffer(np.array([1.0, 2]))
    f = hl.Func("f")
    f[x] = one(b[x]) * two(b[x])
    np.testing.assert_array_equal(np.array(f.realize([2])), [2, -6])
    np.testing.assert_array_equal(np.array(hl.propagate_adjoints(f)[b].realize([2])), [3 * 1 - 2 * 1, 5 * -1 - 6 * 3])


def test_functions_of_the_c_library() -> None:
    """Known with their derivatives, by the prototype alone."""
    log1p = hl.extern("double log1p(double v)", library="m")
    assert log1p.row.builtin and hl.extern("double log1p(double x)").row is log1p.row
    b = hl.Buffer(np.array([0.0, 1]))
    np.testing.assert_allclose(np.array(called(log1p, b).realize([2])), np.log1p([0, 1]))
    np.testing.assert_allclose(slopes(log1p, b), [1, 0.5])
    with pytest.raises(hl.CompileError, match="the name of a function of the C library, which is known"):
        hl.extern("double log1p(double v)", source="double log1p(double v) { return v; }")


def test_math_is_that_of_c() -> None:
    """exp() of a float is that of the double in C; C++'s <math.h> would take the float's."""
    source = HEAD + "float widened(float v) { return (float)(exp(v) * 1e-3 - v * 1e-3); }"
    f = hl.extern("float widened(float v)", source=source, gradient="auto")
    v = np.linspace(-1e-3, 1e-3, 64).astype(np.float32)
    b = hl.Buffer(v)
    exact = (np.exp(v.astype(np.float64)) * 1e-3 - v.astype(np.float64) * 1e-3).astype(np.float32)
    np.testing.assert_array_max_ulp(np.array(called(f, b).realize([64])), exact, 1)
    np.testing.assert_array_max_ulp(np.array(called(f.as_expr, b).realize([64])), exact, 1)


def test_forward_mode_second_order_and_vectors() -> None:
    f = hl.extern("float cubic(float v)", source="static float cubic(float v) { return v < 0 ? v : v * v * v; }", gradient="auto")
    v = np.linspace(-2, 2, 16).astype(np.float32)
    b = hl.Buffer(v)
    g = called(f, b)
    one = hl.Func("one")
    one[x] = hl.f32(1)
    expected = np.where(v < 0, 1, 3 * v * v)
    np.testing.assert_allclose(np.array(hl.propagate_tangents(g, [(b, one)]).realize([16])), expected, rtol=1e-6)
    d = hl.propagate_adjoints(g)[b]
    d.compute_root().vectorize(d.args()[0], 8)
    np.testing.assert_allclose(np.array(d.realize([16])), expected, rtol=1e-6)
    loss = hl.Func("loss")
    r = hl.RDom([(0, 16)])
    loss[()] = 0.0
    loss[()] += d[r] * d[r]
    np.testing.assert_allclose(np.array(hl.propagate_adjoints(loss)[b].realize([16])), np.where(v < 0, 0, 36 * v ** 3), rtol=1e-5)
    assert hl.check_gradients(g, [b], [(0, 16)], eps=1e-3) and hl.check_dot_product(g, [b], [(0, 16)])


def test_a_pipeline_that_was_saved_keeps_the_derivative() -> None:
    f = hl.extern("double saved_one(double v)", source="static double saved_one(double v) { return v * v * v; }", gradient="auto")
    p = hl.ImageParam(hl.Float(64), 1, "saved_input")
    g = hl.Func("saved_func")
    g[x] = f(p[x])
    back = hl.deserialize_pipeline(hl.serialize_pipeline(hl.Pipeline(g)), {"saved_input": p.parameter()})
    p.set(hl.Buffer(np.array([2.0])))
    assert np.array(hl.propagate_adjoints(back.outputs()[0])[p].realize([1])) == 12


def test_ahead_of_time(tmp_path: Path) -> None:
    f = hl.extern("float knee_of_aot(float v, float k)", source=HEAD + "static float knee_of_aot(float v, float k) { return v < k ? v : k + (1 - k) * tanhf((v - k) / (1 - k)); }",
                  gradient="auto")
    p, k = hl.ImageParam(hl.Float(32), 1, "levels"), hl.Param(hl.Float(32), "knee")
    g = hl.Func("curve")
    g[x] = f(p[x], k)
    seed = hl.Func("seed")
    seed[x] = hl.f32(1)
    d = hl.propagate_adjoints(g, seed, [(0, p.width())])[p]
    path = tmp_path / "knee"
    d.compile_to_shared_library(str(path), [p, k], "knee_gradient")
    v = np.linspace(0, 2, 9).astype(np.float32)
    out = np.zeros(9, np.float32)
    hl.load_library(f"{path}.so")(hl.Buffer(v), 0.5, hl.Buffer(out))
    np.testing.assert_allclose(out, np.where(v < 0.5, 1, 1 - np.tanh((v - 0.5) / 0.5) ** 2), rtol=1e-4, atol=1e-5)
