"""What the features of a target change in C programs: each is watched at work."""

from __future__ import annotations

import mmap
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import HELPERS, blur, run, x, y

import halide_py as hl

TRACED = HELPERS + """
struct halide_trace_event_t { const char *func; void *value; int32_t *coordinates; const char *tag; struct halide_type_t type; int event, parent, index, dimensions; };
typedef int32_t (*handler)(void *, const struct halide_trace_event_t *);
handler halide_set_custom_trace(handler);
static int counts[11];
static int32_t count(void *context, const struct halide_trace_event_t *e) {
    static int id;
    (void)context;
    __atomic_add_fetch(&counts[e->event], 1, __ATOMIC_RELAXED);
    return __atomic_add_fetch(&id, 1, __ATOMIC_RELAXED);
}
int main(void) {
    uint16_t in[45] = {0}, out[32];
    struct halide_buffer_t a = image(in, dims_in, 1, 16, 9, 5), b = image(out, dims_out, 1, 16, 8, 4);
    halide_set_custom_trace(count);
    if (traced(&a, 2, &b)) return 1;
    for (int i = 0; i < 11; i++) printf("%d ", counts[i]);
    return 0;
}
"""


@pytest.mark.parametrize("features, want", [
    ("trace_pipeline", "0 0 0 0 0 0 0 0 1 1 0"), ("trace_loads", "T 0 0 0 0 0 0 0 1 1 T"), ("trace_stores", "0 T 0 0 0 0 0 0 1 1 T"),
    ("trace_realizations", "0 0 2 2 2 2 1 1 1 1 T"), ("trace_loads-trace_stores-trace_realizations", "T T 2 2 2 2 1 1 1 1 T"), ("no_asserts", "0 0 0 0 0 0 0 0 0 0 0")])
def test_events_of_traced_pipelines(tmp_path: Path, features: str, want: str) -> None:
    """`T`: some. Events in the order of their codes: load, store, begin and end of realizations, of productions, of consumption, of the pipeline, tags."""
    f, p, k = blur("inside")
    g = hl.Func("traced")
    g[x, y] = f[x, y]
    f.compute_root()
    g.compile_to_static_library(str(tmp_path / "traced"), [p, k], "traced", hl.Target(f"host-{features}"))
    out = run(tmp_path, '#include "traced.h"\n' + TRACED, str(tmp_path / "traced.a")).removesuffix("status 0").split()
    assert len(out) == 11 and all(int(got) > 0 if wanted == "T" else got == wanted for got, wanted in zip(out, want.split())), out


def test_debug_tells_how_a_pipeline_is_called(tmp_path: Path) -> None:
    f, p, k = blur("told")
    f.compile_to_static_library(str(tmp_path / "told"), [p, k], "ns_told", hl.Target("host-debug-user_context"))
    program = '#include "told.h"\n' + HELPERS + """
int main(void) {
    uint16_t in[45] = {0}, out[32];
    struct halide_buffer_t a = image(in, dims_in, 1, 16, 9, 5), b = image(out, dims_out, 1, 16, 8, 4);
    if (ns_told(0, &a, 2, &b)) return 1;
    dims_in[0].extent = 5;
    return ns_told(0, &a, 2, &b) == -4 && ns_told(0, 0, 2, &b) == -12 ? 0 : 1;
}
"""
    out = re.sub(r"0x[0-9a-f]+|\$\d+", "", run(tmp_path, program, str(tmp_path / "told.a")))
    call = (f"Entering Pipeline ns_told\nTarget: {hl.Target('host-debug-user_context')}\n Input Buffer input: buffer(0, (nil), , 0, uint16, {{0, 9, 1}}, {{0, 5, 9}})\n"
            " Input uint16 scale: 2\n Output Buffer told: buffer(0, (nil), , 0, uint16, {0, 8, 1}, {0, 4, 8})\n")
    again = call.replace("{0, 9, 1}", "{0, 5, 1}")
    null = re.sub(r"input: .*", "input: nullptr", call)
    beyond = "Error: Input buffer input is accessed at 8, which is beyond the max (4) in dimension 0\n"
    assert out == f"{call}Exiting Pipeline ns_told\n{again}{beyond}{null}Error: Buffer argument input is nullptr\nstatus 0"
    f.compile_to_c(str(tmp_path / "silent.c"), [p, k])
    assert "Entering" not in (tmp_path / "silent.c").read_text()


@pytest.mark.parametrize("features, code", [("", -8), ("-no_asserts", 0)])
def test_no_asserts_checks_nothing_at_run_time(tmp_path: Path, features: str, code: int) -> None:
    f, p, k = blur("trusting")
    p.dim(0).set_min(0)
    f.compile_to_static_library(str(tmp_path / "trusting"), [p, k], "trusting", hl.Target(f"host{features}"))
    program = '#include "trusting.h"\n' + HELPERS + """
int main(void) {
    uint16_t in[45] = {0}, out[32];
    struct halide_buffer_t a = image(in, dims_in, 1, 16, 9, 5), b = image(out, dims_out, 1, 16, 8, 4);
    dims_in[0].min = dims_out[0].min = 1;
    a.host -= 0;
    printf("%d\\n", trusting(&a, 2, &b));
    return 0;
}
"""
    assert run(tmp_path, program, str(tmp_path / "trusting.a")).startswith(f"{code}\n")


@pytest.mark.parametrize("target", ["host", "host-large_buffers"])
def test_buffers_beyond_two_gigabytes(target: str) -> None:
    """Sizes and offsets in memory have 64 bits. Nothing but a few pages of the array is touched."""
    whole = np.zeros((1 << 16, 48 << 10), np.uint8)  # 3 GiB, of the system's zero page
    whole[-2:, -40:] = np.arange(80, dtype=np.uint8).reshape(2, 40)
    image, f = hl.ImageParam(hl.UInt(8), 2), hl.Func("far_away")
    f[x, y] = image[x, y] + 1
    f.vectorize(x, 16)
    image.set(hl.Buffer(whole))
    out = hl.Buffer(hl.UInt(8), [40, 2])
    out.translate([whole.shape[1] - 40, whole.shape[0] - 2])
    f.realize(out, hl.Target(target))
    assert (np.asarray(out) == whole[-2:, -40:] + 1).all()
    assert hl.Target(target).maximum_buffer_size() == (2**63 - 1 if "large" in target else 2**31 - 1)


class Sparse:
    """An array whose rows lie 4 GiB apart, in memory that is not there until it is written."""

    def __init__(self, dtype: Any, rows: int = 7, width: int = 64) -> None:
        size = np.dtype(dtype).itemsize
        step = min((4 << 30) // size, (1 << 31) - 64)  # strides are int32
        self.memory = mmap.mmap(-1, (rows + 1) * step * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000))
        first = np.frombuffer(self.memory, dtype, 1)
        self.array = np.lib.stride_tricks.as_strided(first, (rows, width), (step * size, size), writeable=True)


def far_cases(image: hl.ImageParam) -> dict[str, tuple[hl.Func, Any]]:
    """Funcs that reach far, and what they are of the values: dense, gathered, scattered, reduced, in tuples, strided."""
    r, names = hl.RDom([(0, 64), (0, 7)]), ("dense", "gathered", "scattered", "reduced", "both")
    f = {name: hl.Func(name) for name in names}
    f["dense"][x, y] = image[x, 6 - y]
    f["dense"].vectorize(x, 16).parallel(y)
    f["gathered"][x, y] = image[x * 5 % 64, x * y % 7]
    f["gathered"].vectorize(x, 16)
    f["scattered"][x, y] = hl.cast(image.type(), 0)
    f["scattered"][63 - r.x, r.x * 3 % 7] = image[63 - r.x, r.x * 3 % 7]
    f["scattered"].update().allow_race_conditions().vectorize(r.x, 16)
    f["reduced"][x, y] = image[x, y]
    f["reduced"][x, y] += image[x, r.y % 2]
    f["reduced"].update().vectorize(x, 8)
    f["both"][x, y] = (image[x, y], image[y, x % 7])
    f["both"].vectorize(x, 8)
    v, (row, column) = np.arange(7 * 64).reshape(7, 64) % 100, np.mgrid[:7, :64]
    hit = np.zeros((7, 64), bool)
    hit[np.arange(64) * 3 % 7, 63 - np.arange(64)] = True
    wanted = (v[::-1], v[column * row % 7, column * 5 % 64], np.where(hit, v, 0), v + 64 * sum(v[k % 2] for k in range(7)),
              (v, v[column % 7, row]))
    return {name: (f[name], want) for name, want in zip(names, wanted)}


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("target", ["host", "host-large_buffers"])
def test_rows_that_lie_gigabytes_apart(dtype: Any, target: str) -> None:
    """Read and written; only vectors of indices that no line holds need the feature, and say so."""
    t = hl.Buffer(np.zeros(1, dtype)).type()
    source, result = Sparse(dtype), Sparse(dtype)
    source.array[...] = np.arange(7 * 64).reshape(7, 64) % 100
    image = hl.ImageParam(t, 2, "image")
    image.set(hl.Buffer(source.array))
    for name, (f, want) in far_cases(image).items():
        results = [hl.Buffer(result.array), hl.Buffer(t, [64, 7])][:len(f.types())]
        if target == "host" and name in ("gathered", "scattered", "both"):
            with pytest.raises(hl.PipelineError, match="(In|Out)put buffer .* reaches .* compile for a target with the feature large_buffers"):
                f.realize(results, hl.Target(target))
            continue
        f.realize(results, hl.Target(target))
        for got, wanted in zip(results, want if len(results) > 1 else [want]):
            np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted).astype(dtype), name)


def test_coordinates_far_from_zero() -> None:
    """Where a buffer begins is counted in 64 bits."""
    source = Sparse(np.float32, 3)
    source.array[...] = np.arange(3 * 64).reshape(3, 64)
    image, f = hl.ImageParam(hl.Float(32), 2, "image"), hl.Func("moved")
    there = hl.Buffer(source.array)
    there.translate([-1000000, 100000])
    image.set(there)
    f[x, y] = image[x - 1000000, y + 100000]
    f.vectorize(x, 16)
    assert (np.asarray(f.realize([64, 3])) == source.array).all()


def test_allocations_for_vectors_of_indices_are_limited_too() -> None:
    g, f, k = hl.Func("stored"), hl.Func("f"), hl.Param(hl.Int(32), "k", 70000)
    g[x, y] = hl.u8(x + y)
    f[x] = g[x * 3 % k, x * x % k]
    g.compute_root()
    f.vectorize(x, 8)
    with pytest.raises(hl.PipelineError, match="Total allocation for buffer stored.* is 4900000000, which exceeds the maximum size of 2147483647"):
        f.realize([8])
    k.set(20)
    assert np.asarray(f.realize([8])).tolist() == [i * 3 % 20 + i * i % 20 for i in range(8)]
