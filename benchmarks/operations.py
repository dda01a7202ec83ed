"""Every operation on vectors, ours against Halide's from PyPI: `python benchmarks/operations.py [PART OF A NAME ...]`, sorted by ratio.

Both modules run in one process, one thread, under the same schedule: vectors of the machine's natural size. Arguments and results stay in
the first cache. A round times both in turn, the order turning around; what counts is the best of each, less that of a call on half of each
row: the cost of an element in the inner loop, not of calls and rows.
"""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

os.environ["HL_NUM_THREADS"] = "1"
import halide  # noqa: E402

import halide_py  # noqa: E402

BYTES, ROWS = 8192, 128
Make = Callable[..., Any]


class Row(NamedTuple):
    """An operation `make(hl, *arguments)`, the types of its arguments, and where these lie."""

    name: str
    types: tuple[str, ...]
    make: Make
    low: float = 0.0
    high: float = 0.0


def unary(t: str) -> Iterator[Row]:
    """Functions of floats."""
    wide, ten, one, large = (-100, 100), (-10, 10), (-1, 1), (1e-3, 1e3)
    ranges = {**dict.fromkeys("sin cos tan floor ceil round trunc abs fract".split(), wide), "exp": (-80, 80), "log": large, "erf": (-4, 4),
              **dict.fromkeys("atan sinh cosh tanh asinh".split(), ten), **dict.fromkeys("asin acos atanh".split(), one), "acosh": (1, 100),
              "sqrt": (0, 100), "fast_exp": (-80, 80), "fast_log": large, "fast_sin": wide, "fast_cos": wide, "fast_inverse": (0.1, 100),
              "fast_inverse_sqrt": (0.1, 100)}
    for name, (low, high) in ranges.items():
        if t == "float32" or name != "erf" and "fast" not in name:
            yield Row(f"{name} {t}", (t,), lambda hl, a, name=name: getattr(hl, name)(a), low, high)
    for name in ("is_nan", "is_inf", "is_finite"):
        yield Row(f"{name} {t}", (t,), lambda hl, a, name=name: hl.select(getattr(hl, name)(a), a + 1, a), -1, 1)


def floats(t: str) -> Iterator[Row]:
    """Functions of two floats, and operators."""
    for name in ("atan2", "hypot", "pow") + (("fast_pow",) if t == "float32" else ()):
        yield Row(f"{name} {t}", (t, t), lambda hl, a, b, name=name: getattr(hl, name)(a, b), 0.1, 10)
    for exponent in (0.45, 2.4, 3, -1, 0.5):
        yield Row(f"pow(x, {exponent}) {t}", (t,), lambda hl, a, exponent=exponent: hl.pow(a, hl.cast(a.type(), exponent)), 0.01, 10)
    yield Row(f"x ** int32 {t}", (t, "int32"), lambda hl, a, b: hl.pow(a, b), 1, 5)
    yield Row(f"x / y {t}", (t, t), lambda hl, a, b: a / b, 0.1, 10)
    yield Row(f"x % y {t}", (t, t), lambda hl, a, b: a % b, 0.1, 10)
    yield Row(f"x % 2.5 {t}", (t,), lambda hl, a: a % 2.5, -10, 10)
    yield Row(f"lerp {t}", (t, t, t), lambda hl, a, b, c: hl.lerp(a, b, c), 0, 1)
    yield Row(f"a * b + c {t}", (t, t, t), lambda hl, a, b, c: a * b + c, 0, 1)
    yield Row(f"strict a * b + c {t}", (t, t, t), lambda hl, a, b, c: hl.strict_float(a * b + c), 0, 1)
    for name in ("min", "max"):
        yield Row(f"{name} {t}", (t, t), lambda hl, a, b, name=name: getattr(hl, name)(a, b), -1, 1)
    yield Row(f"clamp {t}", (t,), lambda hl, a: hl.clamp(a, -0.5, 0.5), -1, 1)
    yield Row(f"select {t}", (t, t), lambda hl, a, b: hl.select(a > b, a + 1, b), -1, 1)
    for to in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        yield Row(f"{to} of {t}", (t,), lambda hl, a, to=to: hl.cast(kind(hl, to), a), 0, 100)
        yield Row(f"{t} of {to}", (to,), lambda hl, a: hl.cast(kind(hl, t), a))
        yield Row(f"saturating_cast {to} of {t}", (t,), lambda hl, a, to=to: hl.saturating_cast(kind(hl, to), a), -300, 300)


def halves(t: str) -> Iterator[Row]:
    """Half floats: conversions both ways, and arithmetic."""
    for other in ("float32", "float64", "int16", "uint8", "int32"):
        yield Row(f"{other} of {t}", (t,), lambda hl, a, other=other: hl.cast(kind(hl, other), a), 0, 100)
        yield Row(f"{t} of {other}", (other,), lambda hl, a: hl.cast(kind(hl, t), a), 0, 100)
    yield Row(f"a + b {t}", (t, t), lambda hl, a, b: a + b, -1, 1)
    yield Row(f"a * b + c {t}", (t, t, t), lambda hl, a, b, c: a * b + c, -1, 1)
    yield Row(f"a / b {t}", (t, t), lambda hl, a, b: a / b, 1, 2)
    yield Row(f"max {t}", (t, t), lambda hl, a, b: hl.max(a, b), -1, 1)
    yield Row(f"select {t}", (t, t), lambda hl, a, b: hl.select(a > b, a, b + 1), -1, 1)
    yield Row(f"sqrt {t}", (t,), lambda hl, a: hl.sqrt(a), 0, 1)
    yield Row(f"floor {t}", (t,), lambda hl, a: hl.floor(a), -10, 10)
    yield Row(f"abs {t}", (t,), lambda hl, a: hl.abs(a), -10, 10)


def integers(t: str) -> Iterator[Row]:
    """Operators and intrinsics of integers."""
    bits, signed = int(t.lstrip("uint")), t[0] == "i"
    for name, f in {"a + b": lambda a, b: a + b, "a * b": lambda a, b: a * b, "a / b": lambda a, b: a / b, "a % b": lambda a, b: a % b,
                    "a << b": lambda a, b: a << (b & 7), "a >> b": lambda a, b: a >> (b & 7)}.items():
        yield Row(f"{name} {t}", (t, t), lambda hl, a, b, f=f: f(a, b), 1, 100)
    for d in (3, 7, 10, 16, 37, 100, 641):
        if d < 1 << bits - signed:
            yield Row(f"a / {d} {t}", (t,), lambda hl, a, d=d: a / hl.cast(a.type(), d))
            yield Row(f"a % {d} {t}", (t,), lambda hl, a, d=d: a % hl.cast(a.type(), d))
    if signed:
        yield Row(f"a / -7 {t}", (t,), lambda hl, a: a / hl.cast(a.type(), -7))
        yield Row(f"a % -7 {t}", (t,), lambda hl, a: a % hl.cast(a.type(), -7))
        yield Row(f"abs {t}", (t,), lambda hl, a: hl.abs(a))
    yield Row(f"div_round_to_zero 7 {t}", (t,), lambda hl, a: hl.div_round_to_zero(a, hl.cast(a.type(), 7)))
    yield Row(f"a * 37 {t}", (t,), lambda hl, a: a * hl.cast(a.type(), 37))
    yield Row(f"a << 3 {t}", (t,), lambda hl, a: a << 3)
    yield Row(f"a >> 3 {t}", (t,), lambda hl, a: a >> 3)
    for name in ("absd", "min", "max", "saturating_add", "saturating_sub", "halving_add", "rounding_halving_add", "halving_sub"):
        yield Row(f"{name} {t}", (t, t), lambda hl, a, b, name=name: getattr(hl, name)(a, b))
    if bits < 64:
        for name in ("widening_add", "widening_sub", "widening_mul"):
            yield Row(f"{name} {t}", (t, t), lambda hl, a, b, name=name: getattr(hl, name)(a, b))
    for name in ("popcount", "count_leading_zeros", "count_trailing_zeros"):
        yield Row(f"{name} {t}", (t,), lambda hl, a, name=name: getattr(hl, name)(a), 1, 100)
    u = f"uint{bits}"
    yield Row(f"rounding_shift_right 3 {t}", (t,), lambda hl, a: hl.rounding_shift_right(a, hl.cast(kind(hl, u), 3)))
    yield Row(f"rounding_shift_right b {t}", (t, u), lambda hl, a, b: hl.rounding_shift_right(a, b & 7))
    for q in (bits // 2, bits - 1, bits):
        for name in ("mul_shift_right", "rounding_mul_shift_right"):
            yield Row(f"{name} {q} {t}", (t, t), lambda hl, a, b, q=q, name=name: getattr(hl, name)(a, b, hl.cast(kind(hl, u), q)))
    yield Row(f"clamp {t}", (t,), lambda hl, a: hl.clamp(a, hl.cast(a.type(), 10), hl.cast(a.type(), 90)))
    yield Row(f"select {t}", (t, t), lambda hl, a, b: hl.select(a > b, a + 1, b))
    yield Row(f"a == b {t}", (t, t), lambda hl, a, b: hl.cast(kind(hl, "uint8"), a == b), 0, 2)
    yield Row(f"lerp {t}", (t, t, u), lambda hl, a, b, c: hl.lerp(a, b, c))
    for to in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        if to != t:
            yield Row(f"{to} of {t}", (t,), lambda hl, a, to=to: hl.cast(kind(hl, to), a))
            yield Row(f"saturating_cast {to} of {t}", (t,), lambda hl, a, to=to: hl.saturating_cast(kind(hl, to), a))


def rows() -> Iterator[Row]:
    """All of them."""
    for t in ("float32", "float64"):
        yield from unary(t)
        yield from floats(t)
    for t in ("float16", "bfloat16"):
        yield from halves(t)
    for t in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        yield from integers(t)


def size(name: str) -> int:
    """The bits of a type by its NumPy name."""
    return int(re.sub(r"\D", "", name))


def kind(hl: Any, name: str) -> Any:
    """A type by its NumPy name."""
    bits = size(name)
    return (hl.BFloat if name[0] == "b" else hl.Float if name[0] == "f" else hl.UInt if name[0] == "u" else hl.Int)(bits)


def place(size: int, index: int) -> np.ndarray:
    """Bytes that begin at a multiple of 64, those of one index never a multiple of 4096 behind those of another."""
    memory = np.zeros(size + 8192, np.uint8)
    start = (index * 1088 - memory.ctypes.data) % 4096
    return memory[start:start + size]


def data(row: Row, t: str, count: int, index: int) -> np.ndarray:
    """The values of an argument, as memory holds them for either module."""
    rng = np.random.default_rng(index)
    if row.low == row.high and "float" not in t:
        values = rng.integers(0, 256, count * np.dtype(t).itemsize, dtype=np.uint8)
    elif t == "bfloat16":
        values = (rng.uniform(row.low, row.high or 100, count).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        values = rng.uniform(row.low, row.high or 100, count).astype(t)
    out = place(values.nbytes, index + 1)
    out[:] = values.view(np.uint8)
    return out.view(HELD_AS.get(t, t))


HELD_AS = {"bfloat16": "uint16", "uint64": "int64"}  # types that buffers of one of both lack


def compiled(hl: Any, row: Row, arrays: list[np.ndarray], count: int) -> tuple[Callable[[int], None], np.ndarray]:
    """A call over the rows, in whole or half as wide, and the first row of the result."""
    x, y, f = hl.Var("x"), hl.Var("y"), hl.Func("f")
    inputs = [hl.ImageParam(kind(hl, HELD_AS.get(t, t)), 1, f"a{k}") for k, t in enumerate(row.types)]
    value = row.make(hl, *(p[x] if t not in HELD_AS else hl.reinterpret(kind(hl, t), p[x]) for p, t in zip(inputs, row.types)))
    t = str(value.type())
    f[x, y] = value if t not in HELD_AS else hl.reinterpret(kind(hl, HELD_AS[t]), value)
    target = hl.get_host_target()
    f.vectorize(x, target.natural_vector_size(value.type()))
    call = f.compile_to_callable(inputs, target)
    line = place(count * value.type().bytes(), 0).view(HELD_AS.get(t, t))
    out = np.lib.stride_tricks.as_strided(line, (ROWS, count), (0, line.itemsize))  # the same row again and again
    buffers, whole, part = [hl.Buffer(a) for a in arrays], hl.Buffer(out), hl.Buffer(out[:, :count // 2])
    return (lambda width: call(*buffers, whole if width == count else part)), line


def best(call: Callable[[int], None], size: int, repeat: int) -> float:
    """The least time of a call."""
    least = 1e9
    for _ in range(repeat):
        start = time.perf_counter()
        call(size)
        least = min(least, time.perf_counter() - start)
    return least


def measure(row: Row, rounds: int) -> tuple[float, float, float, bool] | str:
    """Ours over Halide's, the nanoseconds an element of each, and whether results are alike."""
    width = max([8, *(size(t) for t in row.types)]) // 8
    count = BYTES // max(width, 1)
    try:
        arrays = [data(row, t, count, k) for k, t in enumerate(row.types)]
        calls = [compiled(hl, row, arrays, count) for hl in (halide_py, halide)]
    except (RuntimeError, ValueError, TypeError) as error:  # what one of both lacks is a row of its own
        return f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"
    whole, part = [1e9, 1e9], [1e9, 1e9]
    for k in range(rounds):
        for i in ((0, 1), (1, 0))[k % 2]:
            whole[i] = min(whole[i], best(calls[i][0], count, 12))
            part[i] = min(part[i], best(calls[i][0], count // 2, 12))
    ours, theirs = ((w - p) / (ROWS * count / 2) * 1e9 for w, p in zip(whole, part))
    with np.errstate(all="ignore"):
        a, c = (out[:count].astype(np.float64) for _, out in calls)
        alike = np.allclose(a, c, rtol=1e-3, atol=1e-3, equal_nan=True)
    return ours / max(theirs, 1e-9), ours, theirs, alike


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--above", type=float, default=0, help="print only ratios above this")
    options = parser.parse_args()
    table, failed = [], []
    for row in rows():
        if options.names and not any(n in row.name for n in options.names):
            continue
        result = measure(row, options.rounds)
        if isinstance(result, str):
            failed.append((row.name, result))
        else:
            table.append((*result, row.name))
    for ratio, ours, theirs, alike, name in sorted(table, reverse=True):
        if ratio >= options.above:
            print(f"{name:40}{theirs:9.4f}{ours:9.4f} ns{ratio:8.2f}{'' if alike else '  results differ'}", flush=True)
    for name, message in failed:
        print(f"{name:40}{message}")


if __name__ == "__main__":
    main()
