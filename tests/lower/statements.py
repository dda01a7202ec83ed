"""Small words for writing loop IR by hand, and running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.traverse import Rec, rewrite
from halide_py.ir.types import INT32
from halide_py.reference.loop_ir import run_stmt

SERIAL, PARALLEL, VECTOR, UNROLLED = n.ForType.Serial, n.ForType.Parallel, n.ForType.Vectorized, n.ForType.Unrolled


def var(name: str) -> n.Expr:
    return n.Variable(INT32, name)


def as_expr(e: n.Expr | int | str) -> n.Expr:
    return b.i32(e) if isinstance(e, int) else var(e) if isinstance(e, str) else e


def loop(name: str, extent: n.Expr | int | str, body: n.Stmt, kind: n.ForType = SERIAL, low: n.Expr | int | str = 0,
         partition: n.Partition = n.Partition.Auto) -> n.For:
    return n.For(name, as_expr(low), as_expr(extent), kind, partition, body)


def load(name: str, index: n.Expr | int | str) -> n.Expr:
    return n.Load(INT32, name, as_expr(index), b.TRUE)


def store(name: str, index: n.Expr | int | str, value: n.Expr | int | str) -> n.Stmt:
    return n.Store(name, as_expr(value), as_expr(index), b.TRUE)


def add(x: n.Expr | int | str, y: n.Expr | int | str) -> n.Expr:
    return b.add(as_expr(x), as_expr(y))


def sub(x: n.Expr | int | str, y: n.Expr | int | str) -> n.Expr:
    return b.sub(as_expr(x), as_expr(y))


def mul(x: n.Expr | int | str, y: n.Expr | int | str) -> n.Expr:
    return b.mul(as_expr(x), as_expr(y))


def lt(x: n.Expr | int | str, y: n.Expr | int | str) -> n.Expr:
    return n.LT(as_expr(x), as_expr(y))


def likely_clamp(e: n.Expr | int | str, low: n.Expr | int | str, high: n.Expr | int | str) -> n.Expr:
    return n.Max(n.Min(b.likely(as_expr(e)), as_expr(high)), as_expr(low))


def allocate(name: str, size: n.Expr | int | str, body: n.Stmt) -> n.Stmt:
    return n.Allocate(name, INT32, n.MemoryType.Auto, (as_expr(size),), b.TRUE, 0, body)


def serial(stmt: n.Stmt) -> n.Stmt:
    """`stmt` with all its loops serial: what a loop transformation must agree with."""

    def one(f: n.For, rec: Rec) -> n.Stmt:
        return n.For(f.name, f.min, f.extent, SERIAL, f.partition, rec(f.body))

    return rewrite(stmt, {n.For: one})


def run(stmt: n.Stmt, sizes: Mapping[str, int], **scalars: int) -> dict[str, list[int]]:
    """What is in the buffers after `stmt`: each starts with its own sequence of numbers."""
    memory = {name: np.arange(size, dtype=np.int32) * (3 + k) % 17 for k, (name, size) in enumerate(sizes.items())}
    run_stmt(stmt, memory, scalars)
    return {name: array.tolist() for name, array in memory.items()}


def kinds(stmt: n.Stmt) -> set[str]:
    """The names of the loop kinds that occur."""
    return {f.kind.name for f in loops(stmt)}


def loops(stmt: n.Node) -> list[n.For]:
    """All loops, outermost first."""
    found: list[n.For] = []
    work: list[n.Node] = [stmt]
    while work:
        one = work.pop()
        if isinstance(one, n.For):
            found.append(one)
        work.extend(reversed(one.children()))
    return found


def names_bound_once(stmt: n.Stmt) -> bool:
    """Whether no name is bound to two different values."""
    bound: dict[str, object] = {}
    work: list[n.Node] = [stmt]
    while work:
        one = work.pop()
        if isinstance(one, (n.Let, n.LetStmt)) and bound.setdefault(one.name, one.value) is not one.value:
            return False
        work.extend(one.children())
    return True


def chain(*stmts: n.Stmt) -> n.Stmt:
    return b.block(stmts)


def provide(name: str, args: Sequence[n.Expr | int | str], *values: n.Expr | int | str) -> n.Stmt:
    return n.Provide(name, tuple(map(as_expr, values)), tuple(map(as_expr, args)), b.TRUE)
