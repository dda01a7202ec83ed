"""GPU and Hexagon directives: they split and order loops as they say, and what is scheduled by one is refused when compiling, by its name and line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import halide_py as hl

x, y, z, xo, yo, zo, xi, yi, zi = hl.vars("x y z xo yo zo xi yi zi")
DIRECTIVES: dict[str, Callable[[hl.Func], object]] = {
    "gpu_tile(": lambda f: f.gpu_tile(x, y, xo, yo, xi, yi, 8, 8), "gpu(": lambda f: f.gpu(x, y), "gpu_blocks(": lambda f: f.gpu_blocks(x, y),
    "gpu_threads(": lambda f: f.update().gpu_threads(y, x, hl.DeviceAPI.CUDA), "gpu_lanes(": lambda f: f.gpu_lanes(x), "hexagon(": lambda f: f.hexagon(y),
    "gpu_single_thread(": lambda f: f.gpu_single_thread(hl.DeviceAPI.OpenCL), "gpu_threads()": lambda f: f.specialize(f.output_buffer().width() > 3).gpu_threads(x),
    "copy_to_device(CUDA)": lambda f: f.in_().copy_to_device(hl.DeviceAPI.CUDA),
}


def func() -> hl.Func:
    f = hl.Func("f")
    f[x, y, z] = x + y
    return f


@pytest.mark.parametrize("name", DIRECTIVES)
def test_refused_when_compiling(name: str) -> None:
    f, out = func(), hl.Func("out")
    f[x, y, z] += 1
    out[x, y, z] = f[x, y, z]
    f.compute_root()
    DIRECTIVES[name](f)
    for use in (lambda: out.realize([4, 4, 4]), out.print_loop_nest):
        with pytest.raises(hl.CompileError, match=r"test_devices\.py:\d+.*no such backend: it makes code for the CPU. Use parallel\(\)") as caught:
            use()
        assert name in str(caught.value) and ("DSP" if name == "hexagon(" else "GPU") in str(caught.value)


def test_what_nobody_uses_is_not_refused() -> None:
    f, out = func(), hl.Func("out")
    f.gpu_tile(x, xi, 8)
    out[x] = x
    out.realize([3])


@pytest.mark.parametrize("call, want", [
    ("f.gpu_tile(x, xo, xi, 8)", "xi xo y z"), ("f.gpu_tile(x, xi, 8, hl.TailStrategy.RoundUp)", "xi x y z"),
    ("f.gpu_tile(x, y, xo, yo, xi, yi, 8, 4)", "xi yi xo yo z"), ("f.gpu_tile(x, y, xi, yi, 8, 4, hl.TailStrategy.GuardWithIf, hl.DeviceAPI.Metal)", "xi yi x y z"),
    ("f.gpu_tile(x, y, z, xo, yo, zo, xi, yi, zi, 8, 4, 2)", "xi yi zi xo yo zo"), ("f.gpu_tile(x, y, z, xi, yi, zi, 8, 4, 2)", "xi yi zi x y z"),
    ("f.gpu_tile(x, y, tx=xi, ty=yi, x_size=8, y_size=4)", "xi yi x y z"),
])
def test_tiles(call: str, want: str) -> None:
    f = func()
    assert eval(call, globals(), {"f": f}) is f
    assert f.dump_argument_list() == f"Vars: {want} __outermost\n"


@pytest.mark.parametrize("call", ["f.gpu_tile(x, 8)", "f.gpu_tile(x, y, xi, yi, 8)", "f.gpu_tile(x, 8, xi)", "f.gpu_blocks()", "f.gpu_blocks(x, y, z, xi)", "f.gpu(x)",
                                  "f.gpu_threads(x, wrong=y)", "f.gpu_blocks(3)"])
def test_wrong_arguments(call: str) -> None:
    with pytest.raises(TypeError):
        eval(call, globals(), {"f": func()})


def test_unknown_loops_are_refused_at_once() -> None:
    with pytest.raises(hl.CompileError, match=r"test_devices\.py:\d+.*could not find argument 1 of gpu_threads\(\): xi\nVars: x y z __outermost"):
        func().gpu_threads(x, xi)
