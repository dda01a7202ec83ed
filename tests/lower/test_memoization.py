"""memoize: a result is used again only where it is what would be computed; and it is used again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import halide_py as hl

x, y = hl.Var("x"), hl.Var("y")
Y, X = np.mgrid[0:5, 0:6]


@pytest.fixture(autouse=True)
def empty_cache() -> Iterator[None]:
    yield
    hl.memoization_cache_cleanup()
    hl.memoization_cache_set_size(0)


def test_parameters_and_regions_are_keys_and_results_come_back() -> None:
    tick = hl.extern("int32_t tick(int32_t v)", source="static int32_t tick(int32_t v) { static int32_t n; return v * 0 + ++n; }", pure=False)
    p, q, f, g = hl.Param(hl.Int(32), "p", 3), hl.Param(hl.Float(32), "q", 0.5), hl.Func("f"), hl.Func("g")
    f[x, y] = (x * p + y * hl.i32(q * 10), tick(x))  # the second value tells one computation from another
    f[x, y] = (f[x, y][0] + 1, f[x, y][1])
    g[x, y] = (f[x, y][0] + f[x + 1, y][0], f[x, y][1])
    f.compute_root().memoize()
    seen: dict[tuple[int, float, int], np.ndarray] = {}
    for key in [(3, 0.5, 6), (3, 0.5, 6), (4, 0.5, 6), (3, 1.5, 6), (3, 0.5, 4), (4, 0.5, 6), (3, 0.5, 6)]:
        pv, qv, width = key
        p.set(pv), q.set(qv)
        values, ticks = (np.array(b) for b in g.realize([width, 5]))
        np.testing.assert_array_equal(values, ((2 * X + 1) * pv + 2 * Y * int(qv * 10) + 2)[:, :width])
        if key in seen:
            np.testing.assert_array_equal(ticks, seen[key], err_msg=f"{key} was computed again")
        else:
            assert ticks.min() > max((t.max() for t in seen.values()), default=0), f"{key} came out of the cache"
            seen[key] = ticks


def test_data_of_a_buffer_is_a_key_and_that_of_an_image_is_what_its_tag_says() -> None:
    data, image = np.arange(12, dtype=np.int32), np.arange(12, dtype=np.int32)
    buffer, im, version = hl.Buffer(data), hl.ImageParam(hl.Int(32), 1, "im"), hl.Param(hl.Int(32), "version", 0)
    im.set(hl.Buffer(image))
    f, g, out = hl.Func("f"), hl.Func("g"), hl.Func("out")
    f[x] = buffer[x] * 2
    r = hl.RDom([(0, 3)])
    g[x] = hl.memoize_tag(hl.sum(im[x] + r * 0), version)  # what is inside of a Func of its own is tagged, too
    out[x] = f[x] + g[x]
    f.compute_root().memoize()
    g.compute_root().memoize()
    np.testing.assert_array_equal(np.array(out.realize([12])), 5 * np.arange(12))
    data[3] = 100
    np.testing.assert_array_equal(np.array(out.realize([12])), 2 * data + 3 * np.arange(12))
    image[4] = 50
    np.testing.assert_array_equal(np.array(out.realize([12])), 2 * data + 3 * np.arange(12), "the tag has not changed")
    version.set(1)
    np.testing.assert_array_equal(np.array(out.realize([12])), 2 * data + 3 * image)


def test_tuples_in_parallel_loops() -> None:
    p, f, g = hl.Param(hl.Int(32), "p", 1), hl.Func("f"), hl.Func("g")
    f[x, y] = (x * y + p, hl.f32(y))
    g[x, y] = f[x, y][0] + f[x, y + 1][0] + hl.i32(f[x, y][1])
    f.compute_at(g, y).memoize().vectorize(x, 4)
    g.parallel(y)
    for value in (1, 2, 1):
        p.set(value)
        np.testing.assert_array_equal(np.array(g.realize([6, 5])), X * (2 * Y + 1) + 2 * value + Y)


def test_eviction_and_size() -> None:
    image = np.zeros(8, np.int32)
    im, f, g = hl.ImageParam(hl.Int(32), 1, "im"), hl.Func("f"), hl.Func("g")
    im.set(hl.Buffer(image))
    f[x] = hl.memoize_tag(im[x], 0)
    g[x] = f[x]
    f.compute_root().memoize(hl.EvictionKey(hl.u64(77)))

    def first(value: int) -> int:
        image[0] = value
        return int(np.array(g.realize([8]))[0])

    assert [first(1), first(2)] == [1, 1]
    hl.memoization_cache_evict(76)
    assert first(3) == 1
    hl.memoization_cache_evict(77)
    assert [first(4), first(5)] == [4, 4]
    hl.memoization_cache_set_size(10)  # nothing fits
    assert [first(6), first(7)] == [6, 7]
    with pytest.raises(ValueError, match="-1"):
        hl.memoization_cache_set_size(-1)


COUNTED = """
int counted(halide_buffer_t *in, int k, halide_buffer_t *out) {
    static int calls;
    const halide_dimension_t d = out->dim[0];
    if (!in->host) {
        in->dim[0].min = d.min + 1, in->dim[0].extent = d.extent;
        return 0;
    }
    calls++;
    for (int i = 0; i < d.extent; i++) ((int *)out->host)[i] = k * ((int *)in->host)[d.min + 1 - in->dim[0].min + i] + 1000 * calls;
    return 0;
}
"""


@pytest.mark.parametrize("schedule", [
    lambda source, f, out: (source.compute_root(), f.compute_root()), lambda source, f, out: (source.compute_root().memoize(), f.compute_root()),
    lambda source, f, out: (out.split(x, y, x, 4), f.compute_at(out, y), source.compute_at(out, y)),
    lambda source, f, out: (f.compute_root().split(x, y, x, 4), source.compute_at(f, y)),
])
@pytest.mark.parametrize("given", ["a Func", "a Buffer"])
def test_extern_stages(schedule: Callable[..., object], given: str) -> None:
    """The function is called again for other parameters, data and regions, and only then."""
    k, p, data = hl.Param(hl.Int(32), "k", 2), hl.Param(hl.Int(32), "p", 1), np.arange(12, dtype=np.int32)
    source, f, out = hl.Func("source"), hl.Func("f"), hl.Func("out")
    source[x] = hl.Buffer(data)[hl.clamp(x, 0, 11)] * p
    f.define_extern("counted", [source if given == "a Func" else hl.Buffer(data), k], hl.Int(32), [x], source=COUNTED)
    out[x] = f[x]
    schedule(source, f, out)
    f.memoize()
    seen: dict[tuple[int, int, int, int], np.ndarray] = {}
    for key in [(2, 1, 0, 8), (2, 1, 0, 8), (3, 1, 0, 8), (2, 1, 7, 8), (2, 1, 0, 8), (3, 1, 0, 8), (2, 1, 0, 4)]:
        k.set(key[0]), p.set(key[1])
        data[:] = np.arange(12) + key[2]
        values = np.array(out.realize([key[3]]))
        np.testing.assert_array_equal(values % 1000, key[0] * (data[1:key[3] + 1]))
        known = seen.get(key)
        assert known is None or (known == values).all(), f"{key} was computed again"
        if known is None and key[3] == 8:
            assert values.min() > max((v.max() for v in seen.values()), default=0), f"{key} came out of the cache"
        seen[key] = values


PREAMBLE = """
f, g, h = hl.Func("f"), hl.Func("g"), hl.Func("h")
im = hl.ImageParam(hl.Int(32), 2, "im")
f[x, y] = x
g[x, y] = f[x, y]
"""
REFUSED = {
    "inlined": ("f.memoize(); g.compile_jit()", "f", "inline", "compute_root()"),
    "an output": ("g.memoize(); g.compile_jit()", "g", "output"),
    "stored elsewhere": ("f.compute_at(g, x).store_root().memoize(); g.compile_jit()", "f", "store_root()"),
    "an image without a tag": ("h[x, y] = im[x, y]; g[x, y] += h[x, y]; h.compute_root().memoize(); g.compile_jit()", "h", "data of im", "memoize_tag()"),
    "an image of an extern stage": ("h.define_extern('c', [im], hl.Int(32), [x, y], source='int c(halide_buffer_t *a, halide_buffer_t *b) { return 0;}'); "
                                    "g[x, y] += h[x, y]; h.compute_root().memoize(); g.compile_jit()", "h", "data of im"),
    "a key of coordinates": ("h[x, y] = hl.memoize_tag(x, y); g[x, y] += h[x, y]; h.compute_root().memoize(); g.compile_jit()", "h", "key y"),
    "a float as eviction key": ("hl.EvictionKey(hl.f32(3))", "scalar integer", "float32"),
    "two eviction keys": ("f.memoize(hl.EvictionKey(hl.i32(3))).memoize(hl.EvictionKey(hl.i32(4)))", "In schedule for f", "key 4", "already: 3"),
    "in a vectorized loop": ("g.vectorize(x, 4); f.compute_at(g, x); f.store_at(g, x); f.compute_at(g, hl.Var('x.v0')).store_at(g, hl.Var('x.v0')).memoize(); "
                             "g.compile_jit()", "f", "vectorized"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_memoized_says_why(name: str) -> None:
    program, *words = REFUSED[name]
    with pytest.raises(hl.CompileError) as caught:
        exec(PREAMBLE + "\n".join(program.split("; ")), {"hl": hl, "x": x, "y": y})
    assert all(w in str(caught.value) for w in words), str(caught.value)
