"""Random expressions and updates over all types at all vector widths, against the interpreter; HL_TEST_ALL=1 tries many more, `make fuzz` for as long as you like."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import expressions  # noqa: E402
import updates  # noqa: E402

import halide_py as hl  # noqa: E402
from halide_py.ir import nodes as n  # noqa: E402
from halide_py.ir.intrinsics import C_LIBRARY, EXTERNS, INTRINSICS  # noqa: E402
from halide_py.ir.traverse import nodes_of  # noqa: E402

SEEDS = 400 if os.environ.get("HL_TEST_ALL", "0") != "0" else 6


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("draw", [expressions.draw, updates.draw], ids=["expressions", "updates"])
def test_compiled_is_as_interpreted(draw: Callable[[int], expressions.AnyScript], seed: int) -> None:
    script = draw(seed)
    wrong = expressions.failure(script)
    assert not wrong, f"{wrong}\n{expressions.minimal(script, steps=60).text()}"


def test_scripts_stand_alone_and_shrink() -> None:
    """What a failure prints can be run; the smallest failing part is found."""
    script = next(s for s in map(expressions.draw, range(3, 99)) if "random_" not in s.text())  # random numbers differ from Func to Func
    names: dict[str, object] = {}
    exec(script.text(), names)
    wanted = expressions.build(script).realize([expressions.SIZE])
    for got, want in zip(names["f"].realize([expressions.SIZE]), wanted, strict=True):  # type: ignore[attr-defined]
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    leaf, other = expressions.Tree("u8", "u8_in[x + 1]"), expressions.Tree("u8", "u8_in[x + 2]")
    product = expressions.Tree("u8", "({0} * {1})", (leaf, other))
    tree = expressions.Tree("i32", "hl.i32({0})", (expressions.Tree("u8", "hl.max({0}, {1})", (expressions.Tree("u8", "(~{0})", (product,)), leaf)),))
    small = expressions.minimal(expressions.Script((tree,), ("",), (False,), 8, 0), lambda s: "bad" if "*" in s.text() else "")
    assert small.width == 1 and small.value(0) == "hl.i32((u8_in[x + 1] * u8_in[x + 2]))"
    assert isinstance(expressions.build(small), hl.Func)


def test_updates_shrink() -> None:
    """To the one stage, value and operation that fail."""
    script = next(s for s in map(updates.draw, range(99)) if len(s.types) > 1 and "product(" in s.text() and ".where(" in s.text())
    small = expressions.minimal(script, lambda s: "bad" if "product(" in s.text() else "")
    assert isinstance(small, updates.Script) and len(small.stages) == len(small.types) == 1
    lines = small.definition().splitlines()
    assert len(lines) == 7 and "where" not in small.text() and len(lines[4]) < 80, small.text()
    assert isinstance(expressions.build(small), hl.Func)


# What random expressions do not have, and why.
LEFT_OUT = {
    **dict.fromkeys(("async_window", "buffer_part", "whole_buffer", "debug_to_file", "memo_fetch", "memo_keep", "prefetch", "semaphores", "semaphore_acquire",
                     "semaphore_release", "trace", "if_then_else"), "only lowering makes it"),
    **dict.fromkeys(("gather", "scatter", "undef"), "part of an update, no value"), "custom_gradient": "needs a rule; the identity when it is compiled",
    **dict.fromkeys(("target_arch_is", "target_bits", "target_has_feature", "target_natural_vector_size", "target_os_is"), "the interpreter has no target"),
    **dict.fromkeys(C_LIBRARY, "the language has no name for it: C sources call it"), "user_context_value": "a handle", "print": "prints; print_when is there", "return_second": "made of print"}


def drawn(seeds: int) -> Iterator[tuple[expressions.Script, hl.Func]]:
    for seed in range(seeds):
        script = expressions.draw(seed)
        yield script, expressions.build(script)


def test_every_intrinsic_type_and_width_is_drawn() -> None:
    """A new row of the table has to be drawn, or said why not."""
    names, kinds, widths = set(), set(), set()
    for script, f in drawn(300):
        widths.add(script.width)
        for e in nodes_of(f.function.pure.values, tuple(kind for kind in vars(n).values() if isinstance(kind, type) and issubclass(kind, n.Expr) and kind is not n.Expr)):
            kinds.add(e.type)
            if isinstance(e, n.Call):
                names.add(e.name)
    table = {*INTRINSICS, *(row.name for row in EXTERNS.values() if row.builtin)}
    assert table - names == {*LEFT_OUT}
    assert kinds >= {hl.Bool(), hl.Float(16), hl.BFloat(16), hl.Float(32), hl.Float(64), *(t(bits) for t in (hl.Int, hl.UInt) for bits in (8, 16, 32, 64))}
    assert widths == {*expressions.WIDTHS} and max(widths) == 64


@pytest.mark.parametrize("lanes", [2, 3, 4, 8, 64])
def test_extension_of_a_load_under_a_mask(lanes: int) -> None:
    """gcc 12 with AVX-512 could not compile it: an extended load, chosen by a mask."""
    x, f = hl.Var("x"), hl.Func("f")
    index, values = (np.arange(72) % 3).astype(np.uint16), np.arange(72, dtype=np.int8)
    narrow = hl.mux(hl.u8(hl.Buffer(index)[x]), [hl.u16(hl.Buffer(values)[x]), hl.u16(1), hl.u16(2)])
    wide = hl.mux(hl.i32(hl.Buffer(index.astype(np.int64))[x]), [hl.i64(hl.Buffer(values)[x]), hl.i64(hl.Buffer(index)[x]), hl.i64(2)])
    f[x] = (hl.cosh(hl.strict_float(hl.f64(narrow))), wide)
    f.vectorize(x, lanes)
    expected = np.cosh(np.where(index == 0, values.astype(np.uint16), index.clip(1)).astype(np.float64))
    cosines, chosen = map(np.asarray, f.realize([72]))
    np.testing.assert_allclose(cosines, expected, rtol=1e-14)
    assert np.array_equal(chosen, np.where(index == 0, values, index))
