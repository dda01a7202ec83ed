"""Boxes: what statements read and write, conditions believed."""

from __future__ import annotations

import random

import pytest
from evaluate import evaluate

from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.boxes import Box, boxes_provided, boxes_required, boxes_touched, constant_extent, merge_boxes
from halide_py.ir.interval import Interval
from halide_py.ir.intrinsics import intrinsic
from halide_py.ir.printer import to_text
from halide_py.ir.types import INT32

K = b.i32
X, Y, W, H, T = (n.Variable(INT32, v) for v in "xywht")
XO, XI = n.Variable(INT32, "xo"), n.Variable(INT32, "xi")
A, S, M, Q = n.Add, n.Sub, n.Mul, n.Div


def f(*args: n.Expr) -> n.Expr:
    return n.Call(INT32, "f", args, n.CallType.Halide)


def loop(name: str, low: n.Expr, extent: n.Expr, body: n.Stmt) -> n.Stmt:
    return n.For(name, low, extent, n.ForType.Serial, n.Partition.Auto, body)


def provide(value: n.Expr, *args: n.Expr) -> n.Stmt:
    return n.Provide("g", (value,), args, b.TRUE)


def text(box: Box) -> list[str]:
    return [f"{'-inf' if i.min is None else to_text(i.min)} .. {'inf' if i.max is None else to_text(i.max)}" for i in box.intervals]


def test_stencil() -> None:
    s = loop("y", K(0), H, loop("x", K(0), K(16), provide(A(f(A(X, K(1)), Y), f(S(X, K(1)), Y)), X, Y)))
    touched = boxes_touched(s, {})
    assert text(touched["f"]) == ["-1 .. 16", "0 .. (h + -1)"]
    assert text(touched["g"]) == ["0 .. 15", "0 .. (h + -1)"]
    assert set(boxes_required(s, {})) == {"f"} and set(boxes_provided(s, {})) == {"g"}
    assert touched["f"].used is None


def test_condition_on_split_index() -> None:
    e = A(M(XO, K(8)), XI)
    body = n.IfThenElse(n.LT(e, W), provide(f(A(e, K(2))), e))
    s = loop("xo", K(0), Q(A(W, K(7)), K(8)), loop("xi", K(0), K(8), body))
    assert text(boxes_touched(s, {})["f"]) == ["2 .. (w + 1)"]
    named = n.LetStmt("t", e, n.IfThenElse(n.And(n.LT(T, W), n.LT(K(3), H)), provide(f(A(T, K(2))), T)))
    s = loop("xo", K(0), Q(A(W, K(7)), K(8)), loop("xi", K(0), K(8), named))
    box = boxes_touched(s, {})["f"]
    assert text(box) == ["2 .. (w + 1)"]
    assert box.used is not None and to_text(box.used) == "(3 < h)"


def test_if_then_else_is_believed_and_select_is_not() -> None:
    clamp = intrinsic("if_then_else", INT32, n.And(n.LE(K(0), X), n.LT(X, W)), f(X), K(0))
    scope = {"x": Interval(K(-5), H)}
    assert text(boxes_required(clamp, scope)["f"]) == ["0 .. min(h, w + -1)"]
    select = n.Select(n.And(n.LE(K(0), X), n.LT(X, W)), f(X), K(0))
    assert text(boxes_required(select, scope)["f"]) == ["-5 .. h"]
    otherwise = intrinsic("if_then_else", INT32, intrinsic("likely", n.LT(X, W).type, n.LT(X, W)), K(0), f(X))
    assert text(boxes_required(otherwise, {"x": Interval(K(0), H)})["f"]) == ["max(w, 0) .. h"]


def test_a_branch_that_is_never_entered_touches_nothing() -> None:
    inner = intrinsic("if_then_else", INT32, n.And(n.LE(K(2), X), n.LT(X, K(5))), A(f(X), n.Call(INT32, "h", (X,), n.CallType.Halide)), K(0))
    outer = intrinsic("if_then_else", INT32, n.Or(n.LT(X, K(-1)), n.LT(K(3), X)), inner, f(K(7)))
    assert {k: text(v) for k, v in boxes_required(outer, {"x": Interval(K(-2), K(3))}).items()} == {"f": ["7 .. 7"]}
    assert {k: text(v) for k, v in boxes_required(outer, {"x": Interval(K(-2), K(4))}).items()} == {"f": ["2 .. 7"], "h": ["2 .. 4"]}
    never = loop("x", K(0), K(4), n.IfThenElse(n.EQ(X, K(9)), provide(f(X), X)))
    assert boxes_touched(never, {}) == {}


def test_triangle() -> None:
    s = loop("y", K(0), K(10), loop("x", K(0), K(10), n.IfThenElse(n.LT(A(X, Y), K(6)), provide(f(X, Y, A(X, Y)), X, Y))))
    assert text(boxes_touched(s, {})["f"]) == ["0 .. 5", "0 .. 5", "0 .. 5"]


def test_lets_and_unbounded() -> None:
    s = loop("x", K(0), K(4), n.LetStmt("t", M(X, K(3)), provide(f(A(T, K(1)), f(T, K(0))), X)))
    assert text(boxes_required(s, {})["f"]) == ["0 .. 10", "-inf .. inf"]
    values = {("f", 0): Interval(K(1), K(2))}
    assert text(boxes_required(s, {}, values)["f"]) == ["0 .. 10", "0 .. 2"]


def test_names_bound_twice_in_disjoint_scopes() -> None:
    body = provide(f(A(X, K(1))), X)
    s = b.block([loop("x", K(0), K(4), body), loop("x", K(10), K(4), body)])
    assert text(boxes_touched(s, {})["f"]) == ["1 .. 14"]
    lets = b.block([n.LetStmt("t", K(3), provide(f(T), K(0))), n.LetStmt("t", K(7), provide(f(T), K(0)))])
    assert text(boxes_touched(lets, {})["f"]) == ["3 .. 7"]


def test_a_guard_by_a_minimum_limits_by_either_side() -> None:
    """The tail of a guarded split inside a guarded tile: neither side of the minimum alone is the bound of the inner loop."""
    end = n.Min(A(M(X, K(4)), K(3)), W)
    point = A(M(X, K(4)), M(Y, K(3)))
    s = loop("x", K(0), K(100), loop("y", K(0), K(2), n.IfThenElse(n.LE(point, end), provide(f(point), X))))
    assert text(boxes_touched(s, {})["f"]) == ["0 .. min(((min(w, 399)/4)*4) + 3, w)"]


def test_merge() -> None:
    used = n.LT(X, K(0))
    out = merge_boxes(Box([Interval(K(0), X)], used), Box([Interval(K(2), K(5))]))
    assert text(out) == ["0 .. max(x, 5)"] and out.used is None
    assert merge_boxes(Box([Interval(K(0), X)], used), Box([Interval(K(0), X)], used)).used is used
    assert constant_extent(Interval(X, A(X, K(7)))) == 8 and constant_extent(Interval(X, Y)) is None


@pytest.mark.parametrize("seed", range(40))
def test_random_nests_stay_inside(seed: int) -> None:
    """Run a random nest; every coordinate touched lies in the box."""
    rng = random.Random(seed)
    extents = [K(rng.randint(1, 6)), n.Min(W, K(rng.randint(1, 6)))]
    terms = [M(X, K(rng.choice([1, 2, 3, -1]))), M(Y, K(rng.choice([1, 4, -2])))]
    index = A(A(rng.choice(terms), rng.choice(terms)), K(rng.randint(-3, 3)))
    bound = A(W, K(rng.randint(-4, 8)))
    condition = rng.choice([n.LT(index, bound), n.LE(bound, index), n.And(n.LT(X, Y), n.LT(index, bound)), n.EQ(X, Y), n.Or(n.LT(X, Y), n.LT(bound, index))])
    shifted = rng.choice([A(index, Y), index, M(index, K(2)), S(bound, index)])
    s = loop("x", K(0), extents[0], loop("y", K(rng.randint(-2, 2)), extents[1], n.IfThenElse(condition, provide(f(shifted), X), provide(f(index), Y))))
    assert isinstance(s, n.For) and isinstance(s.body, n.For)
    boxes = boxes_touched(s, {})
    for w in range(9):
        for x in range(evaluate(s.extent, {"w": w})):
            low = evaluate(s.body.min, {})
            for y in range(low, low + evaluate(s.body.extent, {"w": w})):
                env = {"w": w, "x": x, "y": y}
                holds = evaluate(condition, dict(env))
                for name, e in (("f", shifted if holds else index), ("g", X if holds else Y)):
                    i = boxes[name].intervals[0]
                    v = evaluate(e, dict(env))
                    assert i.min is not None and i.max is not None
                    assert evaluate(i.min, dict(env)) <= v <= evaluate(i.max, dict(env))
