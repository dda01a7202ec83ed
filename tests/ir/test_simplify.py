"""The simplifier: equal values on every width, fixed points, and the forms other passes count on."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from evaluate import Overflow, evaluate, same
from random_exprs import FLOATS, INTS, Maker, environment

from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.interval import Interval
from halide_py.ir.intrinsics import intrinsic
from halide_py.ir.printer import to_text
from halide_py.ir.simplify import constant_bound, prove, ranges, remembering, simplify
from halide_py.ir.types import BOOL, INT32, Float, Int, UInt

K = b.i32
X, Y, Z, W = (n.Variable(INT32, v) for v in "xyzw")
U8, U8Y = n.Variable(UInt(8), "u"), n.Variable(UInt(8), "v")
F = n.Variable(Float(32), "f")
C, D = n.Variable(BOOL, "c"), n.Variable(BOOL, "d")
Effort = Callable[[Callable[[], object]], int]
A, S, M, Q, R = n.Add, n.Sub, n.Mul, n.Div, n.Mod


def ramp(base: n.Expr, stride: int = 1, lanes: int = 8) -> n.Expr:
    return n.Ramp(base, K(stride), lanes)


def x8(e: n.Expr) -> n.Expr:
    return n.Broadcast(e, 8)


FORMS: list[tuple[n.Expr, str]] = [
    (A(A(X, K(1)), K(2)), "(x + 3)"),
    (S(A(M(X, K(2)), K(1)), M(X, K(2))), "1"),
    (S(K(0), S(X, Y)), "(y - x)"),
    (A(M(X, K(4)), M(Y, K(4))), "((x + y)*4)"),
    (M(M(X, K(3)), S(K(0), Y)), "((x*y)*-3)"),
    (A(M(Q(X, K(8)), K(8)), R(X, K(8))), "x"),
    (S(A(X, K(3)), M(Q(A(X, K(3)), K(8)), K(8))), "((x + 3) % 8)"),
    (Q(A(A(M(X, K(8)), Y), K(11)), K(8)), "((x + ((y + 3)/8)) + 1)"),
    (Q(A(M(X, K(4)), K(6)), K(8)), "((x + 1)/2)"),
    (Q(Q(X, K(4)), K(8)), "(x/32)"),
    (Q(X, K(-4)), "(0 - (x/4))"),
    (R(A(A(M(X, K(8)), Y), K(11)), K(8)), "((y + 3) % 8)"),
    (R(A(M(X, K(4)), K(3)), K(8)), "(((x % 2)*4) + 3)"),
    (R(R(X, K(16)), K(8)), "(x % 8)"),
    (Q(R(X, K(8)), K(8)), "0"),
    (n.Min(A(X, K(1)), A(X, K(2))), "(x + 1)"),
    (n.Min(n.Max(X, K(0)), K(7)), "max(min(x, 7), 0)"),
    (n.Max(n.Min(X, Y), X), "x"),
    (n.Min(A(X, Y), A(X, Z)), "(x + min(y, z))"),
    (n.Min(M(X, K(4)), M(Y, K(4))), "(min(x, y)*4)"),
    (n.Min(A(X, K(1)), A(Y, K(1))), "(min(x, y) + 1)"),
    (n.Min(n.Cast(INT32, U8), K(300)), "int32((uint8)u)"),
    (S(n.Max(X, Y), X), "max(y - x, 0)"),
    (A(n.Min(X, Y), n.Max(Y, X)), "(x + y)"),
    (n.LT(A(X, K(1)), A(X, Y)), "(1 < y)"),
    (n.LE(X, K(3)), "(x < 4)"),
    (n.LE(X, Y), "(x <= y)"),
    (n.GE(X, A(Y, K(1))), "(y < x)"),
    (n.LT(M(X, K(4)), K(13)), "(x < 4)"),
    (n.EQ(M(X, K(4)), K(13)), "(uint1)0"),
    (n.LT(n.Min(X, Y), X), "(y < x)"),
    (n.LT(Q(X, K(8)), K(3)), "(x < 24)"),
    (n.LE(U8, b.const(UInt(8), 255)), "(uint1)1"),
    (n.LT(A(U8, b.const(UInt(8), 1)), U8), "(((uint8)u + (uint8)1) < (uint8)u)"),
    (S(A(U8, U8Y), U8), "(uint8)v"),
    (n.And(n.LT(X, K(3)), n.LT(X, K(5))), "(x < 3)"),
    (n.And(n.LT(X, K(3)), n.LT(K(5), X)), "(uint1)0"),
    (n.Or(n.LT(X, K(5)), n.LT(K(3), X)), "(uint1)1"),
    (n.Not(n.And(n.LT(X, Y), n.EQ(X, K(2)))), "((y <= x) || (x != 2))"),
    (n.And(C, n.Not(C)), "(uint1)0"),
    (n.Select(C, n.Select(C, X, Y), Z), "select((uint1)c, x, z)"),
    (n.Select(n.Not(C), X, Y), "select((uint1)c, y, x)"),
    (n.Select(n.LT(X, Y), X, Y), "min(x, y)"),
    (n.Select(C, b.TRUE, D), "((uint1)c || (uint1)d)"),
    (A(n.Select(C, X, K(1)), n.Select(C, K(2), Y)), "select((uint1)c, x + 2, y + 1)"),
    (A(ramp(X), x8(Y)), "ramp(x + y, 1, 8)"),
    (M(ramp(X), x8(K(3))), "ramp(x*3, 3, 8)"),
    (M(ramp(X), x8(Y)), "ramp(x*y, y, 8)"),
    (S(ramp(X), ramp(Y)), "x8(x - y)"),
    (Q(ramp(M(X, K(8))), x8(K(8))), "x8(x)"),
    (R(ramp(M(X, K(8))), x8(K(8))), "ramp(0, 1, 8)"),
    (n.LT(ramp(M(X, K(8))), x8(M(Y, K(8)))), "x8(x < y)"),
    (n.Min(x8(X), x8(Y)), "x8(min(x, y))"),
    (n.Shuffle((ramp(X),), (3,)), "(x + 3)"),
    (n.Shuffle((ramp(X, 2),), (1, 3, 5)), "ramp(x + 2, 4, 3)"),
    (n.Load(UInt(8), "im", X, b.TRUE), "(uint8)im[x]"),
    (n.Load(UInt(8, 8), "im", x8(X), b.true(8)), "x8((uint8)im[x])"),
    (n.Cast(INT32, n.Cast(Int(16), U8)), "int32((uint8)u)"),
    (n.Cast(UInt(8), n.Cast(INT32, U8)), "(uint8)u"),
    (n.Cast(Float(32), K(3)), "3.000000f"),
    (intrinsic("shift_left", INT32, X, K(3)), "(x*8)"),
    (intrinsic("shift_right", INT32, X, K(3)), "(x/8)"),
    (intrinsic("likely", BOOL, n.LT(K(1), K(2))), "(uint1)1"),
    (intrinsic("if_then_else", INT32, n.LT(K(2), K(1)), X, Y), "y"),
    (n.Let("t", A(X, K(2)), M(n.Variable(INT32, "t"), n.Variable(INT32, "t"))), "((x + 2)*(x + 2))"),
    (n.Let("t", M(X, Y), A(n.Variable(INT32, "t"), K(1))), "((x*y) + 1)"),
    (n.Let("t", M(X, Y), Z), "z"),
    (A(F, b.const(Float(32), 0.0)), "((float32)f + 0.000000f)"),
    (S(F, b.const(Float(32), 0.0)), "(float32)f"),
    (M(F, b.const(Float(32), 0.0)), "((float32)f*0.000000f)"),
    (M(F, b.const(Float(32), 1.0)), "(float32)f"),
    (n.VectorReduce(n.ReduceOp.Add, x8(X), 1), "(x*8)"),
]


@pytest.mark.parametrize("e, text", FORMS, ids=[f"{i}:{t}" for i, (_, t) in enumerate(FORMS)])
def test_forms(e: n.Expr, text: str) -> None:
    out = simplify(e)
    assert to_text(out) == text
    assert simplify(out) is out


@pytest.mark.parametrize("block", range(8))
def test_random_expressions_keep_their_value(block: int) -> None:
    compared = 0
    for seed in range(block * 100, block * 100 + 100):
        rng = random.Random(seed)
        t = rng.choice([*INTS, INT32, INT32, INT32, BOOL, BOOL, *FLOATS])
        types = [t] if not t.is_bool() and rng.random() < 0.5 else [INT32] if rng.random() < 0.5 else None
        e = Maker(rng, types).expr(t.with_lanes(rng.choice([1, 1, 1, 4])), rng.randint(2, 5))
        out = simplify(e)
        assert out.type is e.type
        assert simplify(out) is out, f"seed {seed}: {to_text(e)} gives {to_text(out)} gives {to_text(simplify(out))}"
        for _ in range(12):
            env = environment(rng)
            try:
                left, right = evaluate(e, dict(env)), evaluate(out, dict(env))
            except Overflow:
                continue
            assert same(left, right), f"seed {seed}: {to_text(e)} = {left}, {to_text(out)} = {right} with {env}"
            compared += 1
    assert compared > 300


def test_unchanged_is_the_same_node() -> None:
    for text_form, _ in FORMS:
        out = simplify(text_form)
        before = len(n.TABLE)
        assert simplify(out) is out
        assert len(n.TABLE) - before < 40  # what is tried may make nodes; the result may not


def test_effort_is_linear(effort: Effort) -> None:
    def sums(terms: int) -> None:
        e: n.Expr = X
        for i in range(terms):
            e = A(e, n.Variable(INT32, f"v{i}"))
        assert simplify(S(simplify(e), e)) is K(0)

    def shared(depth: int) -> None:
        e: n.Expr = X
        for _ in range(depth):
            e = n.Max(A(e, e), M(e, K(3)))
        simplify(e)

    def minima(terms: int) -> None:
        chain: n.Expr = X
        for i in range(terms):
            chain = n.Min(chain, A(n.Variable(INT32, f"v{i}"), K(i % 5)))
        simplify(chain)

    for work, size in ((sums, 300), (shared, 20), (minima, 300)):
        work(size // 4)
        assert effort(lambda: work(2 * size)) < 2.5 * effort(lambda: work(size)), work.__name__  # noqa: B023 (called at once)


def test_prove() -> None:
    low, extent = n.Variable(INT32, "f.s0.x.min"), n.Variable(INT32, "f.extent")
    high = S(A(low, extent), K(1))
    loop = {"x": Interval(low, high)}
    assert prove(n.LE(low, X), loop)
    assert prove(n.LT(X, A(low, extent)), loop)
    assert not prove(n.LT(X, S(A(low, extent), K(1))), loop)
    assert prove(n.LE(n.Min(X, Y), n.Max(Y, X)))
    assert prove(n.LE(n.Min(Y, n.Max(low, X)), n.Max(X, low)))
    assert prove(n.LE(X, M(Q(A(X, K(7)), K(8)), K(8))))
    assert prove(n.LT(M(Q(X, K(8)), K(8)), A(X, K(1))))
    assert prove(n.LT(R(X, K(8)), K(8)))
    assert prove(n.And(n.LE(K(0), R(X, Y)), n.LE(n.Cast(INT32, U8), K(255))))
    assert prove(n.LE(A(M(X, K(8)), Y), K(63)), {"x": Interval(K(0), K(7)), "y": Interval(K(0), K(7))})
    assert not prove(n.LE(A(M(X, K(8)), Y), K(62)), {"x": Interval(K(0), K(7)), "y": Interval(K(0), K(7))})
    assert prove(n.LE(n.Min(M(X, K(8)), S(W, K(8))), S(W, K(8))))
    assert not prove(n.LT(U8, A(U8, b.const(UInt(8), 1))))


def test_constant_bound() -> None:
    low = n.Variable(INT32, "lo")
    tile = S(n.Max(A(A(M(X, K(8)), K(7)), K(2)), M(X, K(8))), S(M(X, K(8)), K(1)))
    assert constant_bound(tile, True) == 10 and constant_bound(tile, False) == 10
    clamped = S(n.Min(A(X, K(7)), Y), n.Min(X, Y))
    assert constant_bound(clamped, True) == 7
    assert constant_bound(S(X, low), True, {"x": Interval(low, A(low, K(31)))}) == 31
    assert constant_bound(X, True) is None
    assert constant_bound(n.Cast(INT32, U8), True) == 255


def loop(name: str, low: n.Expr, extent: n.Expr, body: n.Stmt, kind: n.ForType = n.ForType.Serial) -> n.Stmt:
    return n.For(name, low, extent, kind, n.Partition.Auto, body)


def store(index: n.Expr, value: n.Expr = X) -> n.Stmt:
    return n.Store("out", value, index, b.TRUE)


def test_statements() -> None:
    one = simplify(loop("x", Y, K(1), store(X)))
    assert to_text(one) == "out[y] = y\n"
    assert simplify(loop("x", Y, K(0), store(X))) is b.NOTHING
    bounded = simplify(loop("x", K(0), K(8), store(n.Min(X, K(7)))))
    assert to_text(bounded) == "for (x, 0, 8) {\n out[x] = x\n}\n"
    condition = simplify(loop("x", Y, Z, n.IfThenElse(n.LT(X, A(Y, Z)), store(X), store(K(0)))))
    assert to_text(condition) == "for (x, y, z) {\n out[x] = x\n}\n"
    inside = simplify(n.IfThenElse(n.LT(X, Y), n.IfThenElse(n.LT(X, A(Y, K(2))), store(K(0)), store(K(1))), n.IfThenElse(n.LE(Y, X), store(K(2)))))
    assert to_text(inside) == "if (x < y) {\n out[0] = x\n} else {\n out[2] = x\n}\n"
    after = simplify(b.block([n.IfThenElse(n.LT(X, K(3)), store(n.Min(X, K(5)))), store(n.Min(X, K(5)))]))
    assert to_text(after) == "if (x < 3) {\n out[x] = x\n}\nout[min(x, 5)] = x\n"


def test_facts_do_not_leak_through_lets() -> None:
    """What is known of y in a branch bears on t there, not after it."""
    t = n.Variable(INT32, "t")
    value = A(M(Y, Z), Y)
    use = store(n.Select(n.LT(K(0), t), K(1), K(2)), t)
    s = n.LetStmt("t", value, b.block([n.IfThenElse(n.And(n.LT(K(0), A(M(Y, Z), Y)), C), use), use]))
    out = to_text(simplify(s))
    assert "out[1] = t" in out and "out[select(0 < t, 1, 2)] = t" in out


def test_a_loop_known_to_be_empty_says_nothing_of_what_follows() -> None:
    """Its extent is positive nowhere: inside it false would hold, and after it every false condition would be true."""
    dead = n.For("i", K(0), n.Sub(Z, Y), n.ForType.Serial, n.Partition.Auto, n.IfThenElse(n.LT(X, Z), store(X)))
    last = store(n.Select(n.LT(K(-1), X), K(1), K(2)))
    out = to_text(simplify(n.IfThenElse(n.LE(Z, Y), b.block([dead, loop("x", K(-1), K(1), store(X)), loop("x", K(0), Y, last)]))))
    assert out == "if (z <= y) {\n out[-1] = -1\n for (x, 0, y) {\n  out[1] = x\n }\n}\n"


def test_what_is_remembered_holds_without_facts(effort: Effort) -> None:
    """Facts of one simplification are not those of the next, in either order, whether they limit the name itself or what defines it."""
    small, few = {"x": Interval(K(0), K(3))}, n.LT(X, K(5))
    clamped = n.LetStmt("y", n.Min(n.Max(X, K(0)), K(3)), n.Evaluate(n.Call(INT32, "f", (n.LT(Y, K(5)), few), n.CallType.Extern)))
    with remembering():
        for _ in range(2):
            assert simplify(few) is few and simplify(n.LT(Y, K(5))) is not b.TRUE
            assert simplify(few, small) is b.TRUE and simplify(M(X, K(0)), small) is K(0)
            assert to_text(simplify(clamped)) == "f((uint1)1, x < 5)\n"
        sums = [A(A(M(X, K(k)), Y), n.Min(Z, M(W, K(k)))) for k in range(40)]
        first, again = (effort(lambda: [simplify(e) for e in sums]) for _ in range(2))
        assert again < first / 2


def test_lets() -> None:
    t, q = n.Variable(INT32, "t"), n.Variable(INT32, "q")
    heavy = M(Y, Z)
    s = n.LetStmt("t", heavy, n.LetStmt("q", A(t, K(1)), store(q, q)))
    assert to_text(simplify(s)) == "let q = (y*z) + 1\nout[q] = q\n"
    equal = n.LetStmt("t", heavy, n.LetStmt("q", A(heavy, K(0)), loop("x", t, b.sub(A(q, K(2)), t), store(b.sub(q, t)))))
    assert to_text(simplify(equal)) == "let t = y*z\nfor (x, t, 2) {\n out[0] = x\n}\n"
    once_more = b.block([n.LetStmt("t", heavy, store(t, t)), n.LetStmt("q", heavy, store(q, q))])
    assert to_text(simplify(once_more)).count("let ") == 2  # the first is out of scope
    dead = n.LetStmt("t", heavy, n.LetStmt("q", M(t, t), store(X)))
    assert to_text(simplify(dead)) == "out[x] = x\n"
    load = n.LetStmt("t", n.Load(INT32, "out", X, b.TRUE), b.block([store(K(0), K(1)), store(K(1), t)]))
    assert to_text(simplify(load)).startswith("let t = ")  # not moved past the store
    effect = n.LetStmt("t", n.Call(INT32, "f", (), n.CallType.Extern), store(X))
    assert simplify(effect) is effect
    again = b.block([loop("x", K(0), K(4), store(n.Min(X, K(7)))), loop("x", K(0), K(40), store(n.Min(X, K(7))))])
    assert "out[min(x, 7)]" in to_text(simplify(again)) and "out[x]" in to_text(simplify(again))


def test_long_let_chain_is_linear(effort: Effort) -> None:
    def simplified(lets: int) -> None:
        body: n.Stmt = store(n.Variable(INT32, f"t{lets - 1}"))
        for i in reversed(range(lets)):
            before = n.Variable(INT32, f"t{i - 1}") if i else X
            body = n.LetStmt(f"t{i}", M(A(before, Y), A(before, Z)), body)
        assert isinstance(simplify(body), n.LetStmt)

    simplified(100)
    assert effort(lambda: simplified(800)) < 2.3 * effort(lambda: simplified(400))


def test_ranges_that_facts_leave_empty_do_not_divide_by_zero() -> None:
    """p < 1 and p == 1, as of a specialization of a specialization, leave divisors from 1 to 0."""
    assert ranges._div((3, 9), (1, 0)) == (3, 9)
