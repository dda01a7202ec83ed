"""Extern stages: the bounds query, what is passed, schedules, Python functions, symbols, gradients and errors."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import halide_py as hl

x, y, xo, xi, yo, yi = (hl.Var(v) for v in "x y xo xi yo yi".split())
rng = np.random.default_rng(5)
PHOTO = rng.normal(size=(19, 23)).astype(np.float32)

# A box of 2n + 1 in x, times k: reads n more on both sides, and says so.
BOX = r"""
#define AT(b, i, j) (((float *)(b)->host)[((i) - (b)->dim[0].min) * (b)->dim[0].stride + ((j) - (b)->dim[1].min) * (b)->dim[1].stride])
int box(halide_buffer_t *in, int n, float k, halide_buffer_t *out) {
    const halide_dimension_t *d = out->dim;
    if (in->host == 0) {
        in->dim[0].min = d[0].min - n; in->dim[0].extent = d[0].extent + 2 * n;
        in->dim[1].min = d[1].min; in->dim[1].extent = d[1].extent;
        return 0;
    }
    for (int j = d[1].min; j < d[1].min + d[1].extent; j++)
        for (int i = d[0].min; i < d[0].min + d[0].extent; i++) {
            float sum = 0;
            for (int t = -n; t <= n; t++) sum += AT(in, i + t, j);
            AT(out, i, j) = k * sum;
        }
    return 0;
}
"""


def func(name: str, *definition: Any) -> hl.Func:
    f = hl.Func(name)
    f[tuple(definition[:-1])] = definition[-1]
    return f


def box_of(a: Any, n: int, k: float) -> Any:
    return k * sum(a[:, i:a.shape[1] - 2 * n + i] for i in range(2 * n + 1))


def pipeline() -> tuple[hl.Func, hl.Func, hl.Func, Any]:
    """source -> box (extern, over x - 1 .. x + 1) -> out, and the values of out."""
    b = hl.Buffer(PHOTO)
    source = func("source", x, y, b[x, y] * 2)
    f = hl.Func("f")
    f.define_extern("box", [source, 1, hl.f32(0.5)], hl.Float(32), [x, y], source=BOX)
    out = func("out", x, y, f[x + 1, y] + f[x + 2, y + 1])
    boxed = box_of(PHOTO * 2, 1, 0.5)  # boxed[:, 0] is at x == 1
    return source, f, out, boxed[:-1, :-1] + boxed[1:, 1:]


SCHEDULES: dict[str, Callable[[hl.Func, hl.Func, hl.Func], Any]] = {
    "root": lambda s, f, o: (s.compute_root(), f.compute_root()),
    "inline": lambda s, f, o: s.compute_root(),
    "tiles": lambda s, f, o: (o.tile(x, y, xo, yo, xi, yi, 7, 5, hl.TailStrategy.GuardWithIf), s.compute_at(o, xo), f.compute_at(o, xo)),
    "rows in parallel": lambda s, f, o: (o.parallel(y), f.compute_at(o, y), s.compute_root()),
    "stored outside": lambda s, f, o: (f.store_root().compute_at(o, y), s.store_root().compute_at(o, y)),
    "its own loops": lambda s, f, o: (f.compute_root().split(y, yo, yi, 4).parallel(yo), s.compute_at(f, yo)),
    "guarded loops": lambda s, f, o: (f.compute_root().split(x, xo, xi, 5, hl.TailStrategy.GuardWithIf), s.compute_root().vectorize(x, 8)),
    "rounded loops": lambda s, f, o: (f.compute_root().split(y, yo, yi, 8, hl.TailStrategy.RoundUp), s.compute_root()),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_never_changes_the_result(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HL_VERIFY", "1")
    source, f, out, expected = pipeline()
    if name == "rounded loops":
        b = hl.Buffer(np.pad(PHOTO, ((0, 16), (0, 0))))
        source = func("source", x, y, b[x, y] * 2)
        f = hl.Func("f")
        f.define_extern("box", [source, 1, hl.f32(0.5)], hl.Float(32), [x, y], source=BOX)
        out = func("out", x, y, f[x + 1, y] + f[x + 2, y + 1])
    SCHEDULES[name](source, f, out)
    np.testing.assert_allclose(np.array(out.realize([20, 18])), expected, rtol=1e-5)
    assert f.is_extern() and f.extern_function_name() == "box" and not out.is_extern()


def test_images_and_queries_of_the_whole_pipeline() -> None:
    """What the C function answers is what the image must hold, also where it is called at an inner loop."""
    image = hl.ImageParam(hl.Float(32), 2, "photo")
    f = hl.Func("f")
    f.define_extern("box", [image, hl.Param(hl.Int(32), "n", 2), 1.0 * hl.Expr(hl.f32(1))], hl.Float(32), 2, source=BOX)
    out = func("out", x, y, f[x, y] * 3)
    for place in (f.compute_root, lambda: f.compute_at(out, y)):
        place()
        image.reset()
        out.infer_input_bounds([4, 3])
        assert [(image.dim(d).min().__class__, hl.Buffer(image.get()).dim(d).min(), image.get().dim(d).extent()) for d in range(2)][0][1:] == (-2, 8)
        image.set(hl.Buffer(PHOTO))
        shifted = hl.Buffer(hl.Float(32), [4, 3])
        shifted.set_min([2, 0])
        out.realize(shifted)
        np.testing.assert_allclose(np.array(shifted), 3 * box_of(PHOTO[:3, :8], 2, 1.0), rtol=1e-5)
        with pytest.raises(hl.HalideError, match="Input buffer photo is accessed at -2"):
            out.realize([4, 3])


def test_several_values_both_ways() -> None:
    pair = hl.Func("pair")
    pair[x] = (hl.f32(x), x * 10)
    pair.compute_root()
    f = hl.Func("f")
    f.define_extern("swap", [pair], [hl.Int(32), hl.Float(64)], 1, source=r"""
        int swap(halide_buffer_t *a, halide_buffer_t *b, halide_buffer_t *p, halide_buffer_t *q) {
            if (!a->host) { a->dim[0] = p->dim[0]; return 0; }
            for (int i = 0; i < p->dim[0].extent; i++) {
                const int at = p->dim[0].min + i - a->dim[0].min;
                ((int *)p->host)[i] = ((int *)b->host)[at];
                ((double *)q->host)[i] = ((float *)a->host)[at] / 2;
            }
            return 0;
        }""")
    out = func("out", x, hl.f64(f[x + 3][0]) + f[x + 3][1])
    np.testing.assert_array_equal(np.array(out.realize([3])), [31.5, 42, 52.5])
    first, second = f.realize([2])
    np.testing.assert_array_equal(np.array(first), [0, 10])
    np.testing.assert_array_equal(np.array(second), [0, 0.5])


def test_enlarged_outputs_and_chains() -> None:
    """One that computes whole blocks of 8 reads another one."""
    blocks = r"""
        int blocks(halide_buffer_t *in, halide_buffer_t *out) {
            halide_dimension_t *d = out->dim;
            if (!in->host) {
                const int low = d->min & ~7, high = (d->min + d->extent + 7) & ~7;
                d->min = low; d->extent = high - low; in->dim[0] = *d; return 0;
            }
            if (d->min & 7 || d->extent & 7) return 17;
            for (int i = 0; i < d->extent; i++) ((int *)out->host)[i] = ((int *)in->host)[d->min - in->dim->min + i] + 1;
            return 0;
        }"""
    start = func("start", x, x * x).compute_root()
    one, two = hl.Func("one"), hl.Func("two")
    one.define_extern("blocks", [start], hl.Int(32), 1, source=blocks)
    two.define_extern("blocks", [one], hl.Int(32), 1, source=blocks)
    one.compute_root()
    two.compute_root()
    out = func("out", x, two[x + 3])
    np.testing.assert_array_equal(np.array(out.realize([7])), (np.arange(7) + 3) ** 2 + 2)
    np.testing.assert_array_equal(np.array(two.realize([7])), np.arange(7) ** 2 + 2)  # a larger buffer is made, and cropped
    with pytest.raises(hl.HalideError, match="Output buffer two.* is accessed at 7, which is beyond the max"):
        two.realize(hl.Buffer(hl.Int(32), [7]))


def test_failures_are_reported() -> None:
    for code, message in (("in_query", "Bounds inference call to external stage fails returned non-zero value: 3"),
                          ("in_call", "Call to external stage fails returned non-zero value: 4")):
        f = hl.Func("f")
        f.define_extern("fails", [], hl.Int(32), 1, source=f"""
            int fails(halide_buffer_t *out) {{ const int query = !out->host, in_query = query ? 3 : 0, in_call = query ? 0 : 4; return {code}; }}""")
        with pytest.raises(hl.HalideError, match=message):
            func("g", x, f[x]).realize([4]) if f.compute_root() else None
    f = hl.Func("f")
    f.define_extern("broken", [], hl.Int(32), 1, source="\n\nint broken(halide_buffer_t *out) { return missing; }")
    with pytest.raises(hl.CompileError, match=r"does not compile: C source of broken:3:\d+: error: .*missing"):
        f.realize([4])
    f = hl.Func("f")
    f.define_extern("nowhere_to_be_found", [], hl.Int(32), 1)
    with pytest.raises(hl.CompileError, match="calls the C function nowhere_to_be_found, which no library"):
        f.realize([4])


def test_python_functions() -> None:
    b = hl.Buffer(PHOTO)
    source = func("source", x, y, b[x, y] + 1).compute_root()
    f, g = hl.Func("f"), hl.Func("g")

    def rows(a: Any, scale: float, out: Any, sums: Any) -> None:
        assert a.shape == out.shape == sums.shape and out.flags.writeable
        out[...] = a * scale
        sums[...] = np.cumsum(a, axis=1)

    f.define_extern("rows", [source, hl.Param(hl.Float(64), "scale", 3.0)], [hl.Float(32), hl.Float(32)], 2, function=rows)
    f.compute_root()
    out = func("out", x, y, f[x, y][0] + f[x, y][1])
    np.testing.assert_allclose(np.array(out.realize([23, 19])), (PHOTO + 1) * 3 + np.cumsum(PHOTO + 1, axis=1), rtol=2e-5)
    # Its own region, a whole image, a returned array, and rows computed one by one.
    g.define_extern("transposed", [b], hl.Float(32), 2, function=lambda a, out: a.T, regions=lambda region: [region[::-1]])
    late = func("late", x, y, g[x, y] * 2)
    g.compute_at(late, y)
    np.testing.assert_array_equal(np.array(late.realize([19, 23])), PHOTO.T * 2)

    def wrong(a: Any, out: Any) -> None:
        raise ZeroDivisionError("as it happens")

    h = hl.Func("h")
    h.define_extern("wrong", [b], hl.Float(32), 2, function=wrong)
    with pytest.raises(hl.PipelineError, match="external stage wrong.*\n.*ZeroDivisionError: as it happens") as e:
        h.realize([4, 4])
    assert isinstance(e.value.__cause__, ZeroDivisionError)
    np.testing.assert_array_equal(np.array(late.realize([19, 23])), PHOTO.T * 2)
    with pytest.raises(hl.CompileError, match="ahead of time"):
        late.compile_to_c("late.c", [], "late")


def test_symbols(tmp_path: Path) -> None:
    """C, C++ and C++ in a namespace; two stages of one symbol with other arguments; a library of the process, one that is linked."""
    (tmp_path / "a.cpp").write_text("""
        struct halide_buffer_t { unsigned long device; const void *i; unsigned char *host; };
        extern "C" int put_one(halide_buffer_t *a) { if (a->host) *(int *)a->host = 1; return 0; }
        int put(halide_buffer_t *b, float x, halide_buffer_t *a) { if (a->host) *(int *)a->host = (int)x; return 0; }
        namespace deep { namespace er { int put(halide_buffer_t *b, bool x, halide_buffer_t *a) { if (a->host) *(int *)a->host = 30 + x; return 0; } } }
    """)
    library = tmp_path / "libsymbols.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(library), str(tmp_path / "a.cpp")], check=True)
    b = hl.Buffer(np.zeros(1, np.int32))

    def run(name: str, *params: Any, **options: Any) -> int:
        f = hl.Func("f")
        f.define_extern(name, list(params), hl.Int(32), [], **options)
        return int(np.array(f.realize([])))

    assert run("put", b, hl.f32(20.5), mangling=hl.NameMangling.CPlusPlus, library=library) == 20
    assert run("deep::er::put", b, hl.Expr(True), mangling=hl.NameMangling.CPlusPlus, library=library) == 31
    ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
    assert run("put_one", mangling=hl.NameMangling.C) == 1


def test_gradients_of_stages() -> None:
    """A rule for the C function, whose adjoint is an extern stage too; a rule of one stage alone; images and scalars."""
    def stage(a: Any, k: Any, gradient: Any = None) -> hl.Func:
        f = hl.Func("stage")
        f.define_extern("cube_of", [a, k], hl.Float(64), 1, function=lambda a, k, out: k * a ** 3, gradient=gradient)
        return f.compute_root()

    def rule(adjoint: Any, result: Any, a: Any, k: Any) -> Any:
        d = hl.Func("d")
        d.define_extern("d_cube", [adjoint.compute_root(), a, k], hl.Float(64), 1, function=lambda u, a, k, out: u * 3 * k * a ** 2)
        r = hl.RDom([(0, 3)])
        return d.compute_root(), hl.sum(adjoint[r] * result[r]) / k

    v = np.array([1.0, -2, 0.5])
    b, k = hl.Buffer(v), hl.Param(hl.Float(64), "k", 2.0)
    inner = func("inner", x, b[x] * b[x]).compute_root()
    loss = func("loss", hl.sum(stage(inner, k)[hl.RDom([(0, 3)])]))
    with pytest.raises(hl.CompileError, match=r"Func stage.* extern stage, computed by the C function cube_of.*register_extern_stage_gradient\('cube_of'"):
        hl.propagate_adjoints(loss)
    hl.register_extern_stage_gradient("cube_of", rule)
    d = hl.propagate_adjoints(loss)
    np.testing.assert_allclose(np.array(d[b].realize([3])), 2 * 6 * v ** 5)
    np.testing.assert_allclose(float(np.array(d[k].realize([]))), (v ** 6).sum())
    own = stage(b, k, lambda adjoint, result, a, k: (func("seven", x, adjoint[x] * 7), None))
    np.testing.assert_array_equal(np.array(hl.propagate_adjoints(own)[b].realize([3])), 7)


def define(*params: Any, name: str = "f", dims: Any = 1, **options: Any) -> hl.Func:
    f = hl.Func("f")
    f.define_extern(name, list(params), hl.Int(32), dims, **options)
    return f


def inline_argument() -> Any:
    return define(func("g", x, x)).realize([4])


def vectorized_place() -> Any:
    return func("g", x, define()[x]).vectorize(x, 4).realize([8])


def defined_twice() -> Any:
    f = define()
    f.define_extern("f", [], hl.Int(32), 1)


def after_pure() -> Any:
    func("g", x, x).define_extern("f", [], hl.Int(32), 1)


def itself() -> Any:
    f = hl.Func("f")
    f.define_extern("f", [f], hl.Int(32), 1)


def folded() -> Any:
    f = hl.Func("f")
    f.define_extern("f", [], hl.Int(32), [x, y])
    out = func("out", x, y, f[x, y] + f[x, y + 1])
    f.store_root().compute_at(out, y).function.schedule.storage_dims[1].fold_factor = hl.Expr(2).as_node()
    return out.realize([4, 4])


def update_of_extern() -> Any:
    f = define(dims=[x])
    f[x] += 1


ERRORS: dict[str, tuple[Callable[[], Any], str]] = {
    "inline argument": (inline_argument, r"Func g.* is computed inline, but is an argument of the extern stage f.*g.*\.compute_root\(\)"),
    "vectorized": (vectorized_place, "Func f.* is an extern stage, so it cannot be computed inside the vectorized loop"),
    "vectorize": (lambda: define().vectorize(hl.Var("_0"), 4), "an extern stage computes whole regions"),
    "twice": (defined_twice, "it is an extern stage already"), "pure": (after_pure, "has a pure definition already"), "itself": (itself, "has itself as argument 1"),
    "undefined": (lambda: define(hl.Func("u")), "argument 1, Func u.*has no definition"), "Var": (lambda: define(x + 1), "depends on x"),
    "data": (lambda: define(func("g", x, x)[0]), r"depends on g"), "half": (lambda: define(hl.f16(1.0)), "float16, which C functions cannot take"),
    "name": (lambda: define(name="a b"), "cannot name a C function"), "namespace": (lambda: define(name="a::b"), "NameMangling.CPlusPlus"),
    "two origins": (lambda: define(source="int f;", library="m"), "source and library"), "Vars": (lambda: define(dims=[x, x]), "not distinct"),
    "device": (lambda: define(device_api=hl.DeviceAPI.CUDA), "device_api is CUDA"), "regions": (lambda: define(regions=lambda r: []), "regions= goes with function="),
    "other dimensions": (lambda: define(func("g", x, y, x), function=lambda a, o: None), "say with regions="),
    "fold": (folded, "fold_storage.*an extern stage reads or writes it"),
    "update": (update_of_extern, "f.* is an extern stage"),
    "no name": (lambda: func("g", x, x).extern_function_name(), "is not an extern stage"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str) -> None:
    attempt, message = ERRORS[name]
    with pytest.raises(hl.CompileError, match=message):
        attempt()


def test_ahead_of_time(tmp_path: Path) -> None:
    source, f, out, expected = pipeline()
    source.compute_root()
    f.compute_root()
    out.compile_to_c(str(tmp_path / "out.c"), [], "out")
    text = (tmp_path / "out.c").read_text()
    assert "int box" in text and "halide_error_extern_stage_failed" in text
    assert hl.ExternFuncArgument(f).is_func() and hl.ExternFuncArgument(3).is_expr() and hl.ExternFuncArgument(hl.Buffer(PHOTO)).is_buffer()
    assert hl.ExternFuncArgument(hl.ImageParam(hl.Int(8), 1)).is_image_param() and not hl.ExternFuncArgument().defined()
    with pytest.raises(TypeError, match="an argument of an extern stage is"):
        hl.ExternFuncArgument("text")


def test_saved_and_read_back() -> None:
    source, f, out, expected = pipeline()
    source.compute_root()
    f.compute_root()
    back = hl.deserialize_pipeline(hl.serialize_pipeline(hl.Pipeline(out)))
    np.testing.assert_allclose(np.array(back.realize([20, 18])), expected, rtol=1e-5)
