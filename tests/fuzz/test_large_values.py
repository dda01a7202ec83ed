"""Expressions of int32 and int64 whose values are as large as their type: wherever no step of what was written overflows, the value is exact.

Rewriting may bring in sums that nobody wrote (`a - 1 < b` as `a < b + 1`), which overflow where these did not.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import halide_py as hl

Value = Callable[[int], int]  # at a place; raises OverflowError where a step overflows
x = hl.Var("x")
SIZE = 64
COMPARISONS = (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge)


class Expressions:
    """Random expressions of four images, each with its exact value."""

    def __init__(self, bits: int, seed: int) -> None:
        self.type, self.rng = hl.Int(bits), random.Random(seed)
        self.low, self.high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        special = [self.low, self.low + 1, self.low + 5, self.high, self.high - 1, self.high - 7, 0, 1, -1, 2, -3, self.high // 2, self.low // 3]
        rows = [[self.rng.choice(special) if self.rng.random() < 0.8 else self.rng.randint(self.low, self.high) for _ in range(SIZE)] for _ in range(4)]
        self.images = [(hl.Buffer(np.array(row, f"int{bits}")), row) for row in rows]

    def fitting(self, value: int) -> int:
        if not self.low <= value <= self.high:
            raise OverflowError
        return value

    def draw(self, depth: int) -> tuple[Any, Value]:
        if depth == 0 or self.rng.random() < 0.12:
            if self.rng.random() < 0.2:
                c = self.rng.choice([0, 1, -1, 2, 3, 5, -7])
                return hl.cast(self.type, c), lambda i: c
            image, row = self.rng.choice(self.images)
            return image[x], lambda i: row[i]
        (a, at_a), (b, at_b), (c, at_c), (d, at_d) = (self.draw(depth - 1) for _ in range(4))
        kind, k = self.rng.randrange(9), self.rng.choice([2, 3, 4, 8])
        compare = self.rng.choice(COMPARISONS)
        choices: list[tuple[Any, Value]] = [
            (a + b, lambda i: self.fitting(at_a(i) + at_b(i))),
            (a - b, lambda i: self.fitting(at_a(i) - at_b(i))),
            (a * k, lambda i: self.fitting(at_a(i) * k)),
            (a // k, lambda i: at_a(i) // k),
            (a % k, lambda i: at_a(i) % k),
            (hl.min(a, b), lambda i: min(at_a(i), at_b(i))),
            (hl.min(a, b) - a, lambda i: self.fitting(min(at_a(i), at_b(i)) - at_a(i))),
            (hl.clamp(a, b, c), lambda i: max(min(at_a(i), at_c(i)), at_b(i))),
            (hl.select(compare(a, b), c, d), lambda i: (at_c(i), at_d(i))[not compare(at_a(i), at_b(i))]),
        ]
        return choices[kind]


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("seed", range(8))
def test_no_sum_overflows_that_was_not_written(seed: int, bits: int, width: int) -> None:
    drawn = [Expressions(bits, 100 * seed + k).draw(3) for k in range(12)]
    f = hl.Func("f")
    f[x] = tuple(e for e, _ in drawn)
    if width > 1:
        f.vectorize(x, width)
    checked = 0
    for (e, value), got in zip(drawn, f.realize([SIZE]), strict=True):
        for i, have in enumerate(np.asarray(got).tolist()):
            try:
                want = value(i)
            except OverflowError:
                continue
            checked += 1
            assert have == want, f"{e} at {i}"
    assert checked > SIZE
