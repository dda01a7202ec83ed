"""What the features of a target change in C programs: each is watched at work."""

from __future__ import annotations

import re
from pathlib import Path

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
