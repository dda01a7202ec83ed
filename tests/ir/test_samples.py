"""Sampled assignments refute what cannot be proved, and nothing that the prover proves."""

from __future__ import annotations

import random
import time

import pytest

from halide_py.codegen_c.products import _factors
from halide_py.ir import nodes as n
from halide_py.ir.build import i32
from halide_py.ir.simplify import linear, simplify
from halide_py.ir.simplify.prover import _Search
from halide_py.ir.simplify.samples import refuted
from halide_py.ir.simplify.simplify import Simplifier
from halide_py.ir.types import INT32

X, Y, LOW, HIGH = (n.Variable(INT32, name) for name in ("x", "y", "f.x.min", "f.x.max"))


def _limited() -> Simplifier:
    """x in low .. high, y in 0 .. x - low."""
    return Simplifier({"x": (LOW, HIGH), "y": (i32(0), n.Sub(X, LOW))})


@pytest.mark.parametrize("e", [n.Sub(Y, X), n.Sub(LOW, X), n.Sub(n.Min(X, Y), LOW), n.Sub(n.Div(X, i32(4)), n.Div(HIGH, i32(3))),
                               n.Sub(n.Mod(X, i32(4)), i32(3)), n.Sub(i32(-8), X)])
def test_what_is_not_so_is_refuted(e: n.Expr) -> None:
    assert refuted(_limited(), *linear.gather(e))


@pytest.mark.parametrize("e", [n.Sub(HIGH, X), n.Sub(X, LOW), n.Sub(n.Max(X, Y), X), n.Sub(n.Sub(X, LOW), Y), n.Mod(X, i32(4)),
                               n.Sub(n.Add(X, i32(3)), n.Mul(n.Div(X, i32(4)), i32(4)))])
def test_what_is_so_is_not(e: n.Expr) -> None:
    assert not refuted(_limited(), *linear.gather(e))


def test_facts_count() -> None:
    s = _limited()
    assert refuted(s, *linear.gather(n.Sub(i32(10), Y)))
    s.facts.append(linear.gather(n.Sub(i32(10), Y)))
    assert not refuted(s, *linear.gather(n.Sub(i32(10), Y)))


def _random(rng: random.Random, depth: int) -> n.Expr:
    if depth == 0:
        return rng.choice([X, Y, LOW, HIGH, i32(rng.randrange(-9, 9))])
    kind = rng.choice([n.Add, n.Sub, n.Min, n.Max, n.Mul, n.Div, n.Mod, n.Select])
    a = _random(rng, depth - 1)
    if kind in (n.Mul, n.Div, n.Mod):
        return kind(a, i32(rng.randrange(1, 9)))
    b = _random(rng, depth - 1)
    return n.Select(n.LT(X, Y), a, b) if kind is n.Select else kind(a, b)


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_refuted_that_is_proved(seed: int) -> None:
    rng = random.Random(seed)
    proved = 0
    for _ in range(300):
        s = _limited()
        for _ in range(rng.randrange(3)):
            s.facts.append(linear.gather(simplify(_random(rng, 1))))
        terms, constant = linear.gather(s.expr(n.Sub(_random(rng, 2), _random(rng, 2))))
        low = _Search(s, 30, 0).run(dict(terms), constant)
        if low is not None and low >= 0:
            proved += 1
            assert not refuted(s, terms, constant)
    assert proved > 3


def test_ranges_without_ends_cost_nothing() -> None:
    """Whether a product fits halfwords was searched for in a range of 65536 numbers where nothing limits a factor."""
    start = time.process_time()
    for k in range(1000):
        assert _factors(n.Mul(n.Variable(INT32, f"v{k}"), Y)) is None
    assert time.process_time() - start < 0.5
