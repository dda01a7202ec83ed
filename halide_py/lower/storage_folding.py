"""Storage folding: keep only the part of a Func's storage that a sliding window still needs, as a circular buffer.

IR before: `Realize g` over all rows, produced inside a serial loop `for y` that needs rows y - 1 .. y + 1. After: the extent of that dimension is the
smallest power of two that holds the window, and its coordinates are taken modulo it. Limits: the first serial loop inside the Realize, one
dimension, window of constant size, both ends never falling; Funcs that are read by a vector along that dimension are left alone.
Source: Ragan-Kelley et al., PLDI 2013, section 4.3; behaviour of Halide's src/StorageFolding.cpp.
"""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.boxes import Box, boxes_touched
from ..ir.interval import Interval
from ..ir.simplify import constant_bound, simplify
from ..ir.traverse import Rec, mentions, nodes_of, rewrite
from .bounds_inference import FuncValues
from .environment import Environment
from .sliding_window import monotonic, slidable_dims


def _serial_loop(s: n.Stmt, name: str) -> n.For | None:
    """The first loop inside a Realize, if it is serial and all uses of the Func are in it."""
    while True:
        if isinstance(s, (n.LetStmt, n.Produce)) or isinstance(s, n.Realize) and s.name != name:
            s = s.body
        elif isinstance(s, n.IfThenElse) and s.else_case is None:
            s = s.then_case
        elif isinstance(s, n.Block):
            using = [one for one in s.stmts if mentions(one, name)]
            if len(using) != 1:
                return None
            s = using[0]
        elif isinstance(s, n.For):
            extent = b.as_int(s.extent)
            if extent == 1:
                s = s.body
                continue
            return s if s.kind is n.ForType.Serial else None
        else:
            return None


def _window(box: Box, d: int, loop: n.For) -> int | None:
    """The constant size of the window that one iteration touches in dimension `d`, when it moves forward with the loop."""
    interval: Interval = box.intervals[d]
    if interval.min is None or interval.max is None:
        return None
    low, high = simplify(interval.min), simplify(interval.max)
    if monotonic(low, loop.name) != 1 or monotonic(high, loop.name) != 1:
        return None
    return constant_bound(simplify(b.add(b.sub(high, low), b.i32(1))), True)


def _fold(s: n.Stmt, name: str, d: int, factor: int) -> n.Stmt:
    """Coordinates of dimension `d` of Func `name` modulo `factor`."""

    def folded(args: tuple[n.Expr, ...]) -> tuple[n.Expr, ...]:
        return tuple(b.mod(a, b.const(a.type, factor)) if i == d else a for i, a in enumerate(args))

    def call(c: n.Call, rec: Rec) -> n.Expr:
        new: n.Call = c.map_children(rec)
        if new.name != name or new.call_type is not n.CallType.Halide:
            return new
        return n.Call(new.type, new.name, folded(new.args), new.call_type, new.func, new.value_index, new.param)

    def provide(p: n.Provide, rec: Rec) -> n.Stmt:
        new: n.Provide = p.map_children(rec)
        return new if new.name != name else n.Provide(new.name, new.values, folded(new.args), new.predicate)

    return rewrite(s, {n.Call: call, n.Provide: provide}, n.symbol_bit(name))


def storage_folding(stmt: n.Stmt, env: Environment, values: FuncValues) -> n.Stmt:
    """`stmt` with the storage of sliding Funcs folded where that is certain to be right."""

    def realized(r: n.Realize, rec: Rec) -> n.Stmt:
        new: n.Realize = r.map_children(rec)
        f = env[new.name]
        loop = _serial_loop(new.body, new.name)
        dims = slidable_dims(f)
        if loop is None or not dims:
            return new
        body = loop.body
        if not any(p.name == new.name for p in nodes_of(body, n.Produce)):
            return new
        box = boxes_touched(body, {}, values).get(new.name)
        if box is None:
            return new
        for d, v in enumerate(f.args):
            if v not in dims:
                continue
            size = _window(box, d, loop)
            if size is None:
                continue
            factor = 1 << (size - 1).bit_length()
            whole = constant_bound(new.extents[d], False)
            if whole is not None and whole <= factor:
                continue
            mins = tuple(b.i32(0) if i == d else low for i, low in enumerate(new.mins))
            extents = tuple(b.i32(factor) if i == d else e for i, e in enumerate(new.extents))
            return n.Realize(new.name, new.types, new.memory, mins, extents, new.condition, _fold(new.body, new.name, d, factor))
        return new

    return rewrite(stmt, {n.Realize: realized})
