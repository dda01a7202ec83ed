"""What an autoscheduler cannot do, it says, with the line to write."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import halide_py as hl

x, y = hl.vars("x y")


def pipeline(estimates: bool = True, hand: Callable[[hl.Func, hl.Func], object] = lambda f, g: None) -> hl.Pipeline:
    p = hl.ImageParam(hl.Float(32), 2, "photo")
    p.set_estimates([(0, 1000), (0, 800)])
    f, g = hl.Func("soft"), hl.Func("bright")
    f[x, y] = hl.sqrt(p[x, y]) + p[x + 1, y]
    g[x, y] = f[x, y] + f[x, y + 1]
    if estimates:
        g.set_estimates([(0, 900), (0, 700)])
    hand(f, g)
    return hl.Pipeline(g)


def apply(p: hl.Pipeline, name: str = "Mullapudi2016", **options: object) -> hl.AutoSchedulerResults:
    return p.apply_autoscheduler(hl.get_host_target(), hl.AutoschedulerParams(name, options))


@pytest.mark.parametrize("scheduler", ["Mullapudi2016", "Adams2019", "Li2018"])
def test_missing_estimates(scheduler: str) -> None:
    with pytest.raises(hl.CompileError, match=r'estimate for dimension x of output "bright.*bright.set_estimate\(x, 0, 1024\)'):
        apply(pipeline(estimates=False), scheduler)

    p = hl.ImageParam(hl.Float(32), 2, "picture")
    f = hl.Func("f")
    f[x, y] = p[x, y]
    f.set_estimates([(0, 10), (0, 10)])
    with pytest.raises(hl.CompileError, match=r'min value of ImageParam "picture.*" in dimension 0 .*picture.set_estimates\(\[\(0, 1024\), \(0, 1024\)\]\)'):
        apply(hl.Pipeline(f), scheduler)
    p.dim(0).set_estimate(0, 640)
    with pytest.raises(hl.CompileError, match='"picture.*" in dimension 1'):
        apply(hl.Pipeline(f), scheduler)
    p.dim(1).set_bounds(0, 480)
    apply(hl.Pipeline(f), scheduler)  # what is promised is known

    count = hl.Param(hl.Int(32), "count")
    total = hl.Func("total")
    total[x] = hl.f32(0)
    total[x] += hl.f32(x) * hl.RDom([(0, count)]).x
    total.set_estimate(x, 0, 100)
    with pytest.raises(hl.CompileError, match=r'Func total.* depends on the Param "count.*", which has no estimate.*count.set_estimate\(8\)'):
        apply(hl.Pipeline(total), scheduler)
    count.set_estimate(20)
    apply(hl.Pipeline(total), scheduler)


def test_data_that_is_bound_needs_no_estimate() -> None:
    p = hl.ImageParam(hl.Float(32), 2, "picture")
    p.set(hl.Buffer(np.zeros((30, 40), np.float32)))
    f = hl.Func("f")
    f[x, y] = hl.sqrt(p[x, y])
    f.set_estimates([(0, 40), (0, 30)])
    assert "f.compute_root()" in apply(hl.Pipeline(f)).schedule_source


def test_names_and_parameters() -> None:
    for name, message in (("Anderson2021", "Anderson2021 is not available: it schedules for GPUs.*there are Mullapudi2016, Adams2019 and Li2018.*AutoschedulerParams"),
                          ("Nobody", "Could not find autoscheduler named 'Nobody'.*there are Mullapudi2016, Adams2019 and Li2018"),
                          ("", "Could not find autoscheduler named ''")):
        with pytest.raises(hl.CompileError, match=message):
            apply(pipeline(), name)
    for options, message in (({"paralelism": 4}, "Mullapudi2016 has no parameter paralelism; it has parallelism, last_level_cache_size, balance"),
                             ({"balance": "much"}, "balance of the autoscheduler Mullapudi2016 takes a number, not 'much'"), ({"parallelism": 0}, "at least 1, not 0")):
        with pytest.raises(hl.CompileError, match=message):
            apply(pipeline(), **options)
    apply(pipeline(), parallelism=2, last_level_cache_size=1 << 20, balance=12.5, experimental_gpu_schedule="false")
    for options, message in (({"weights_path": "baseline.weights"}, "weights_path of the autoscheduler Adams2019 cannot be 'baseline.weights': .*Leave weights_path out"),
                             ({"beam_size": 0}, "beam_size .* at least 1, not 0"), ({"random_dropout": 101}, "random_dropout .* at least 0 and at most 100, not 101"),
                             ({"last_level_cache_size": 1}, "Adams2019 has no parameter last_level_cache_size; it has parallelism, beam_size")):
        with pytest.raises(hl.CompileError, match=message):
            apply(pipeline(), "Adams2019", **options)
    apply(pipeline(), "Adams2019", weights_path="", disable_memoized_features=1, disable_memoized_blocks=1, disable_subtiling=1, memory_limit=-1)
    with pytest.raises(TypeError, match="takes an AutoschedulerParams, not 'Mullapudi2016'"):
        pipeline().apply_autoscheduler(hl.get_host_target(), "Mullapudi2016")


@pytest.mark.parametrize(("hand", "found"), [
    (lambda f, g: f.compute_root(), r"soft.* \(compute_root\(\)\)"), (lambda f, g: f.compute_at(g, y), r"compute_at\(\)"), (lambda f, g: g.split(x, x, hl.Var("i"), 4), "split"),
    (lambda f, g: g.parallel(y), "parallel loop y of its definition"), (lambda f, g: g.reorder(y, x), "reorder"), (lambda f, g: f.bound(x, 0, 9), r"bound\(\)"),
    (lambda f, g: g.specialize(g.output_buffer().dim(0).extent() > 9), "specialize"), (lambda f, g: f.clone_in(g), "clone_in"), (lambda f, g: f.memoize(), "memoize"),
    (lambda f, g: f.in_(g).compute_root(), r"compute_root\(\)"),
])
def test_what_is_scheduled_by_hand_is_refused(hand: Callable[[hl.Func, hl.Func], object], found: str) -> None:
    p = pipeline(hand=hand)
    for scheduler in ("Mullapudi2016", "Adams2019", "Li2018"):
        with pytest.raises(hl.CompileError, match=f"cannot auto-schedule function.*{found}"):
            apply(p, scheduler)


def test_what_says_nothing_about_loops_is_kept() -> None:
    """Promises about an output, layouts, and copies for one caller that nobody placed."""
    p = pipeline(hand=lambda f, g: (g.bound(x, 0, 900), f.in_(g), g.output_buffer().dim(0).set_stride(1)))
    assert "compute_root" in apply(p).schedule_source


def test_unbounded_accesses() -> None:
    p = hl.ImageParam(hl.Int(32), 2, "where")
    p.set_estimates([(0, 100), (0, 100)])
    f, g = hl.Func("lookup"), hl.Func("g")
    f[x] = hl.f32(0)
    f[x] += hl.sqrt(hl.f32(x) + hl.RDom([(0, 9)]).x)
    g[x, y] = f[p[x, y]]
    g.set_estimates([(0, 100), (0, 100)])
    with pytest.raises(hl.CompileError, match=r"lookup.* at dimension 0 is not bounded.*lookup.set_estimate\(x, 0, 256\)"):
        apply(hl.Pipeline(g), "Li2018")
    f.set_estimate(x, 0, 256)
    apply(hl.Pipeline(g), "Li2018")


def test_plugins_of_schedulers_that_are_here() -> None:
    for name in ("autoschedule_mullapudi2016", "autoschedule_li2018", "autoschedule_adams2019", "/opt/lib/libautoschedule_li2018.so"):
        hl.load_plugin(name)
    with pytest.raises(hl.CompileError, match="Anderson2021 is not available"):
        hl.load_plugin("autoschedule_anderson2021")
    with pytest.raises(hl.CompileError, match="cannot be loaded"):
        hl.load_plugin("autoschedule_mine")
