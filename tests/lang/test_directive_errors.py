"""Every directive says what is wrong with it: the user's file and line, the Func and stage, the directive, the argument, and what there is instead."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import halide_py as hl

x, y, xi, yi, lost = hl.vars("x y xi yi lost")
Call = Callable[[Any], object]

# On a stage with loops x, y (pure) or r$x, r$y, x, y: each names a loop that there is not.
LOOPS: dict[str, Call] = {
    "split": lambda s: s.split(lost, xi, yi, 4), "fuse": lambda s: s.fuse(x, lost, xi), "rename": lambda s: s.rename(lost, xi),
    "reorder": lambda s: s.reorder(x, lost), "tile": lambda s: s.tile(x, lost, xi, yi, 4, 4), "vectorize": lambda s: s.vectorize(lost, 4),
    "unroll": lambda s: s.unroll(lost), "parallel": lambda s: s.parallel(lost), "serial": lambda s: s.serial(lost),
    "partition": lambda s: s.partition(lost, hl.Partition.Never), "never_partition": lambda s: s.never_partition(lost),
    "always_partition": lambda s: s.always_partition([lost]), "prefetch": lambda s: s.prefetch(hl.Func("other"), lost, lost),
    "gpu": lambda s: s.gpu(lost, x), "gpu_blocks": lambda s: s.gpu_blocks(lost), "gpu_threads": lambda s: s.gpu_threads(lost),
    "gpu_lanes": lambda s: s.gpu_lanes(lost), "gpu_tile": lambda s: s.gpu_tile(lost, xi, 4), "hexagon": lambda s: s.hexagon(lost),
}
# Of a Func as a whole: the directive, what the message names, and the words that say what to do.
WHOLE: dict[str, tuple[Call, str]] = {
    "bound": (lambda f: f.bound(lost, 0, 3), r"bound\(\) on lost.*\(x, y\)"), "bound_extent": (lambda f: f.bound_extent(lost, 3), r"bound_extent\(\) on lost.*\(x, y\)"),
    "align_bounds": (lambda f: f.align_bounds(lost, 2), r"align_bounds\(\) on lost.*\(x, y\)"),
    "align_extent": (lambda f: f.align_extent(x, 0), r"'modulus' of align_extent\(\) is 0, but must be positive"),
    "set_estimate": (lambda f: f.set_estimate(lost, 0, 3), r"set_estimate\(\) on lost.*\(x, y\)"),
    "set_estimates": (lambda f: f.set_estimates([(0, 3)]), r"set_estimates\(\) got 1 estimates, but Func f has 2"),
    "reorder_storage": (lambda f: f.reorder_storage(lost, x), r"reorder.* lost .*storage dimensions \(x, y\)|lost to reorder in the storage dimensions \(x, y\)"),
    "align_storage": (lambda f: f.align_storage(lost, 4), r"lost, argument 'dim' of align_storage\(\), in the storage dimensions \(x, y\)"),
    "bound_storage": (lambda f: f.bound_storage(lost, 4), r"lost, argument 'dim' of bound_storage\(\), in the storage dimensions \(x, y\)"),
    "fold_storage": (lambda f: f.fold_storage(lost, 4), r"lost, argument 'dim' of fold_storage\(\), in the storage dimensions \(x, y\)"),
    "ring_buffer": (lambda f: f.ring_buffer(0), r"'extent' of ring_buffer\(\) is 0, but must be positive"),
    "store_in": (lambda f: f.store_in(hl.MemoryType.VTCM), r"store_in\(MemoryType.VTCM\) needs a device.*use Heap, Stack, Register or Auto"),
    "memoize": (lambda f: f.memoize(hl.EvictionKey(hl.u64(1))).memoize(hl.EvictionKey(hl.u64(2))), r"memoize\(\) with the eviction key .*has one already"),
    "specialize": (lambda f: f.specialize(hl.Expr(3)), r"'condition' passed to specialize must be of type bool"),
    "specialize_fail": (lambda f: f.specialize_fail(""), r"'message' of specialize_fail\(\) must be a text"),
    "compute_with": (lambda f: f.compute_with(f, x), r"computed with \(f, x\), a loop of its own Func"),
}
# What is found when compiling: the message names the Func, its line, the directive and what there is instead.
LATE: dict[str, tuple[Call, str]] = {
    "compute_at": (lambda f: f.compute_at(hl.Func("stranger"), x), r"compute_at.*compute_root"),
    "store_at": (lambda f: f.compute_root().store_at(hl.Func("stranger"), x), r"store"),
    "hoist_storage": (lambda f: f.compute_root().hoist_storage(hl.Func("stranger"), x), r"hoist"),
    "ring_buffer": (lambda f: f.compute_root().ring_buffer(2), r"ring_buffer.*hoist_storage"),
    "async_": (lambda f: f.async_(), r"async_\(\).*add compute_root\(\) or compute_at\(\)"),
    "memoize": (lambda f: f.memoize(), r"memoize.*compute_root"),
    "fold_storage": (lambda f: f.compute_root().fold_storage(x, 4), r"fold_storage needs store_at\(\) or store_root\(\) with compute_at\(\)"),
    "compute_with": (lambda f: f.compute_root().compute_with(hl.LoopLevel(hl.Func("stranger"), x)), r"compute_with\(stranger, x\)"),
    "debug_to_file": (lambda f: f.debug_to_file("f.npy"), r"debug_to_file.*add compute_root\(\) or compute_at\(\)"),
    "always_partition": (lambda f: f.compute_root().always_partition(x), r"partition\(Always\).*use Partition.Auto"),
    "gpu_blocks": (lambda f: f.compute_root().gpu_blocks(x), r"gpu_blocks\(\).*Use parallel\(\)"),
}


def func() -> hl.Func:
    f, r = hl.Func("f"), hl.RDom([(0, 3), (0, 3)], "r")
    f[x, y] = x + y
    f[x, y] = f[x, y] * 2 + r.x - r.y
    return f


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(hl.CompileError) as caught:
        call()
    return str(caught.value)


@pytest.fixture(autouse=True)
def plain_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("halide_py.ir.names._COUNTS", {})


@pytest.mark.parametrize("stage", [0, 1])
@pytest.mark.parametrize("directive", LOOPS)
def test_loops_that_are_not_there(directive: str, stage: int) -> None:
    f = func()
    message = refusal(lambda: LOOPS[directive](f.update() if stage else f))
    title = r"f\.update\(0\)" if stage else "f"
    assert re.search(rf"In schedule for {title} at \S*test_directive_errors\.py:\d+, ", message), message
    assert f"{directive}()" in message and "lost" in message, message
    assert re.search(r"Vars: (r\$x r\$y )?x y __outermost" if stage else "Vars: x y __outermost", message), message


@pytest.mark.parametrize("directive", WHOLE)
def test_arguments_of_a_func(directive: str) -> None:
    call, words = WHOLE[directive]
    message = refusal(lambda: call(func()))
    assert re.search(r"In schedule for f at \S*test_directive_errors\.py:\d+, ", message), message
    assert re.search(words, message), message


@pytest.mark.parametrize("directive", LATE)
def test_what_is_found_when_compiling(directive: str) -> None:
    call, words = LATE[directive]
    f, out = hl.Func("f"), hl.Func("out")
    f[x, y] = x + y
    out[x, y] = f[x, y] + 1
    call(f)
    message = refusal(out.compile_jit)
    assert re.search(r"\bf\b", message) and "test_directive_errors.py:" in message, message
    assert re.search(words, message), message
