"""Random statements store the same values before and after simplification, facts, lets and rebinding of names included."""

from __future__ import annotations

import random
from typing import Any

import pytest
from evaluate import Overflow, evaluate

from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.printer import to_text
from halide_py.ir.simplify import simplify
from halide_py.ir.types import BOOL, INT32

K = b.i32
NAMES = ["p", "q", "i", "j", "k", "s", "t", "u"]


class Maker:
    """Makes statements over free names p and q; loops and lets take fresh names from the rest, sometimes again in disjoint scopes."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def index(self, names: list[str], depth: int) -> n.Expr:
        rng = self.rng
        r = rng.random()
        if depth == 0 or r < 0.25:
            return n.Variable(INT32, rng.choice(names)) if rng.random() < 0.7 else K(rng.randint(-6, 9))
        a = self.index(names, depth - 1)
        if r < 0.45:
            return rng.choice([n.Mul, n.Div, n.Mod])(a, K(rng.choice([1, 2, 3, 4, 8])))
        c = self.index(names, depth - 1)
        if r < 0.5:
            return n.Select(self.condition(names, depth - 1), a, c)
        return rng.choice([n.Add, n.Sub, n.Min, n.Max])(a, c)

    def condition(self, names: list[str], depth: int) -> n.Expr:
        rng = self.rng
        if depth > 0 and rng.random() < 0.3:
            return rng.choice([n.And, n.Or])(self.condition(names, depth - 1), self.condition(names, depth - 1))
        c: n.Expr = rng.choice([n.LT, n.LE, n.EQ, n.NE, n.GT])(self.index(names, 1), self.index(names, 1))
        return n.Call(BOOL, "likely", (c,), n.CallType.PureIntrinsic) if rng.random() < 0.1 else c

    def stmt(self, names: list[str], free: list[str], depth: int) -> n.Stmt:
        rng = self.rng
        r = rng.random()
        if depth == 0 or r < 0.15:
            return n.Store("out", self.index(names, 2), self.index(names, 1), b.TRUE)
        if r < 0.35:
            half = len(free) // 2 if rng.random() < 0.5 else len(free)  # else: both parts may bind the same names
            return b.block([self.stmt(names, free[:half], depth - 1), self.stmt(names, free[half:] if half < len(free) else free, depth - 1)])
        if r < 0.6:
            no = self.stmt(names, free, depth - 1) if rng.random() < 0.5 else None
            return n.IfThenElse(self.condition(names, 1), self.stmt(names, free, depth - 1), no)
        if not free:
            return self.stmt(names, free, depth - 1)
        name = free[0]
        body = self.stmt([*names, name], free[1:], depth - 1)
        if r < 0.8:
            return n.LetStmt(name, self.index(names, 2), body)
        low, high = self.index(names, 1), self.index(names, 1)
        extent = rng.choice([K(rng.randint(0, 3)), n.Min(self.index(names, 1), K(3)), n.Sub(high, low), n.Min(n.Sub(high, low), K(2))])
        return n.For(name, low, extent, n.ForType.Serial, n.Partition.Auto, body)


def run(s: n.Stmt, env: dict[str, Any], out: list[tuple[int, int]]) -> None:
    """Append every store to `out`."""
    if isinstance(s, n.Block):
        for x in s.stmts:
            run(x, env, out)
    elif isinstance(s, n.Store):
        out.append((evaluate(s.index, dict(env)), evaluate(s.value, dict(env))))
    elif isinstance(s, n.IfThenElse):
        if evaluate(s.condition, dict(env)):
            run(s.then_case, env, out)
        elif s.else_case is not None:
            run(s.else_case, env, out)
    elif isinstance(s, n.LetStmt):
        run(s.body, {**env, s.name: evaluate(s.value, dict(env))}, out)
    elif isinstance(s, n.For):
        low = evaluate(s.min, dict(env))
        for i in range(low, low + evaluate(s.extent, dict(env))):
            run(s.body, {**env, s.name: i}, out)
    else:
        assert s is b.NOTHING


@pytest.mark.parametrize("block", range(6))
def test_random_statements(block: int) -> None:
    stores = 0
    for seed in range(block * 250, block * 250 + 250):
        rng = random.Random(seed)
        s = Maker(rng).stmt(NAMES[:2], NAMES[2:], 6)
        out = simplify(s)
        again = simplify(out)
        for _ in range(8):
            env = {"p": rng.randint(-9, 12), "q": rng.randint(-9, 12)}
            want: list[tuple[int, int]] = []
            try:
                run(s, env, want)
            except Overflow:
                continue
            for one in (out, again):
                got: list[tuple[int, int]] = []
                run(one, env, got)
                assert got == want, f"seed {seed} with {env}:\n{to_text(s)}becomes\n{to_text(one)}"
            stores += len(want)
    assert stores > 1000
