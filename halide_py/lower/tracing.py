"""Tracing: report loads, stores, realizations and productions of the Funcs and images the user marked.

IR before: Provide, calls, Realize, Produce. After: the same with calls of `halide_trace_helper` around them (an Extern call: event,
coordinates, value). A traced value is bound by a let, reported, and used. Behaviour: Halide's src/Tracing.cpp; the text comes from the
runtime.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ..ir import build as b
from ..ir import nodes as n
from ..ir.boxes import Box, boxes_touched
from ..ir.function import Function
from ..ir.intrinsics import PLACES
from ..ir.module import LoweredArgument
from ..ir.target import Target
from ..ir.target_words import TargetFeature
from ..ir.traverse import Handler, Rec, nodes_of, rewrite
from ..ir.types import INT32, Type
from .buffers import field
from .environment import Environment
from .extern_stages import BUFFER_MARKS
from .schedule_functions import head_productions
from .undef import is_undef

EVENTS = {
    "load": 0,
    "store": 1,
    "begin_realization": 2,
    "end_realization": 3,
    "produce": 4,
    "end_produce": 5,
    "consume": 6,
    "end_consume": 7,
    "begin_pipeline": 8,
    "end_pipeline": 9,
    "tag": 10,
}


def event(
    kind: str,
    func: str,
    parent: n.Expr,
    coordinates: Sequence[n.Expr] = (),
    value: n.Expr | None = None,
    index: int = 0,
    tag: n.Expr | str = "",
    t: Type | None = None,
) -> n.Expr:
    """The intrinsic call that reports one event: trace(func, event, parent, value index, type, tag, number of coordinates, coordinates...,
    [value])."""
    of = value.type if value is not None else t or INT32
    label = b.string(tag) if isinstance(tag, str) else tag
    fixed = (
        b.string(func),
        b.i32(EVENTS[kind]),
        parent,
        b.i32(index),
        b.i32(int(of.code())),
        b.i32(of.bits()),
        label,
        b.i32(len(coordinates)),
    )
    return n.Call(INT32, "trace", (*fixed, *coordinates, *(() if value is None else (value,))), n.CallType.Intrinsic)


_FEATURES = (TargetFeature.TraceLoads, TargetFeature.TraceStores, TargetFeature.TraceRealizations)


def is_traced(f: Function) -> bool:
    """Whether anything of a Func is reported."""
    return f.trace_loads or f.trace_stores or f.trace_realizations


class _Tracer:
    def __init__(self, env: Environment, images: set[str]) -> None:
        self.env, self.images = env, images
        self.parent = n.Variable(INT32, "pipeline.trace_id")
        self.count = itertools.count()
        self.regions: dict[str, Sequence[n.Expr]] = {}  # of the realizations around: min, extent, min, extent, ...

    def call(self, c: n.Call, rec: Rec) -> n.Expr:
        if c.name in PLACES or c.name in BUFFER_MARKS:  # places, not loads
            return c
        new: n.Call = c.map_children(rec)
        image = new.call_type is n.CallType.Image and new.name in self.images
        if not image and not (new.call_type is n.CallType.Halide and new.name in self.env and self.env[new.name].trace_loads):
            return new
        name = f"{new.name}.load.{next(self.count)}"
        v = n.Variable(new.type, name)
        parent = self.parent if image else n.Variable(INT32, f"{new.name}.trace_id")
        report = event("load", new.name, parent if not image else self.parent, new.args, v, new.value_index)
        return n.Let(name, new, n.Call(new.type, "return_second", (report, v), n.CallType.Intrinsic))

    def provide(self, p: n.Provide, rec: Rec) -> n.Stmt:
        new: n.Provide = p.map_children(rec)
        f = self.env[new.name]
        if not f.trace_stores:
            return new
        values: list[n.Expr] = []
        for i, value in enumerate(new.values):
            if is_undef(value):
                values.append(value)
                continue
            name = f"{new.name}.store.{next(self.count)}"
            v = n.Variable(value.type, name)
            report = event("store", new.name, n.Variable(INT32, f"{new.name}.trace_id"), new.args, v, i)
            values.append(n.Let(name, value, n.Call(value.type, "return_second", (report, v), n.CallType.Intrinsic)))
        return n.Provide(new.name, tuple(values), new.args, new.predicate)

    def realize(self, r: n.Realize, rec: Rec) -> n.Stmt:
        f = self.env[r.name]
        box = [e for pair in zip(r.mins, r.extents) for e in pair]
        self.regions[r.name] = box
        new: n.Realize = r.map_children(rec)
        if not is_traced(f):
            return new
        body = self.scope(f, new.body, box)
        return n.Realize(new.name, new.types, new.memory, new.mins, new.extents, new.condition, body)

    def scope(self, f: Function, body: n.Stmt, box: Sequence[n.Expr]) -> n.Stmt:
        """`body` with the identity of the realization bound for the events in it."""
        name = f"{f.name}.trace_id"
        if not f.trace_realizations:
            return n.LetStmt(name, self.parent, body)
        begin = event("begin_realization", f.name, self.parent, box, t=f.types[0])
        end = n.Evaluate(event("end_realization", f.name, n.Variable(INT32, name), box, t=f.types[0]))
        return n.LetStmt(name, begin, b.block([body, end]))

    def block(self, k: n.Block, rec: Rec) -> n.Stmt:
        """What follows a production in a block consumes it."""
        stmts: list[n.Stmt] = [rec(s) for s in k.stmts]
        for i in range(len(k.stmts) - 1, -1, -1):
            s = k.stmts[i]
            for name in reversed(head_productions(s)) if isinstance(s, n.Produce) and stmts[i + 1:] else ():
                if name in self.env and self.env[name].trace_realizations:
                    stmts[i + 1:] = [b.block(self.consumed(name, stmts[i + 1:]))]
        return b.block(stmts)

    def consumed(self, name: str, rest: Sequence[n.Stmt]) -> list[n.Stmt]:
        """Consume events around what follows a production."""
        parent = n.Variable(INT32, f"{name}.trace_id")
        t, box = self.env[name].types[0], self.regions.get(name, ())
        return [n.Evaluate(event("consume", name, parent, box, t=t)), *rest, n.Evaluate(event("end_consume", name, parent, box, t=t))]

    def produce(self, p: n.Produce, rec: Rec) -> n.Stmt:
        new: n.Produce = p.map_children(rec)
        f = self.env.get(new.name)
        if f is None or not f.trace_realizations:
            return new
        parent = n.Variable(INT32, f"{new.name}.trace_id")
        box = self.regions.get(new.name, ())
        begin = n.Evaluate(event("produce", new.name, parent, box, t=f.types[0]))
        end = n.Evaluate(event("end_produce", new.name, parent, box, t=f.types[0]))
        return n.Produce(new.name, b.block([begin, new.body, end]))


def _shape(f: Function, box: Box | None, tracer: _Tracer) -> Iterator[n.Stmt]:
    """The event at the start that tells a Func's types and region: what viewers of traces lay out their windows by."""
    ends = [(i.min, i.max) for i in box.intervals] if box is not None else []
    parts: list[n.Expr] = [b.string("func_type_and_dim:"), b.i32(len(f.types))]
    for t in f.types:
        parts += [b.i32(int(t.code())), b.i32(t.bits()), b.i32(t.lanes())]
    parts.append(b.i32(len(ends)))
    for low, high in ends:
        if low is None or high is None:
            return
        parts += [low, b.add(b.sub(high, low), b.i32(1))]
    yield n.Evaluate(event("tag", f.name, tracer.parent, tag=n.Call(b.string("").type, "stringify", tuple(parts), n.CallType.Intrinsic)))


def _all_traced(env: Environment, target: Target) -> Environment:
    """The Functions with what the target's features trace of each."""
    loads, stores, realizations = map(target.has_feature, _FEATURES)
    if not (loads or stores or realizations):
        return env
    return {name: replace(f, trace_loads=f.trace_loads or loads, trace_stores=f.trace_stores or stores,
                          trace_realizations=f.trace_realizations or realizations) for name, f in env.items()}


def inject_tracing(stmt: n.Stmt, env: Environment, outputs: Mapping[str, Function], args: Sequence[LoweredArgument], target: Target,
                   name: str = "") -> n.Stmt:
    """`stmt` with reports of everything marked, by directives or by the target's features; unchanged when nothing is."""
    env = _all_traced(env, target)
    outputs = {o: env[o] for o in outputs}
    images = {a.name for a in args if a.param is not None and (a.param.trace_loads or target.has_feature(TargetFeature.TraceLoads))}
    marked = [f for f in env.values() if is_traced(f)]
    tags = [(f, tag) for f in env.values() for tag in f.trace_tags]
    if not marked and not images and not tags and not target.has_feature(TargetFeature.TracePipeline):
        return stmt
    tracer = _Tracer(env, images)
    for f in outputs.values():
        buffer, param = f.buffer_name(0), f.output_params[0] if f.output_params else None
        tracer.regions[f.name] = [field(buffer, what, d, param) for d in range(len(f.args)) for what in ("min", "extent")]
    boxes = boxes_touched(stmt, {})
    shapes = [shape for f in sorted(marked, key=lambda f: f.name) for shape in _shape(f, boxes.get(f.name), tracer)]
    handlers: dict[type[n.Node], Handler] = {
        n.Call: tracer.call, n.Provide: tracer.provide, n.Realize: tracer.realize, n.Block: tracer.block, n.Produce: tracer.produce}
    body = rewrite(stmt, handlers)
    title = name or next(iter(outputs))
    reports = shapes + [n.Evaluate(event("tag", f.name, tracer.parent, tag=tag)) for f, tag in tags]
    begin = event("begin_pipeline", title, b.i32(0))
    end = n.Evaluate(event("end_pipeline", title, tracer.parent))

    def pipeline(s: n.Stmt) -> n.Stmt:
        for f in outputs.values():
            s = tracer.scope(f, s, tracer.regions[f.name]) if is_traced(f) else s
        return n.LetStmt("pipeline.trace_id", begin, b.block([*reports, s, end]))

    return _inside_checks(body, pipeline)


def _inside_checks(stmt: n.Stmt, wrap: Callable[[n.Stmt], n.Stmt]) -> n.Stmt:
    """Apply `wrap` to the smallest part of the statement after the checks of the arguments: the let chain or realization that holds the
    production."""
    done = False

    def walk(s: n.Stmt) -> n.Stmt:
        nonlocal done
        if done or not s.mask & n.Produce.bit:
            return s
        if isinstance(s, n.IfThenElse) and (s.else_case is None or not s.else_case.mask & n.Produce.bit):
            return n.IfThenElse(s.condition, walk(s.then_case), s.else_case)
        at = next(i for i, x in enumerate(s.stmts) if x.mask & n.Produce.bit) if isinstance(s, n.Block) else 0
        if isinstance(s, n.Block) and at:
            return b.block([*s.stmts[:at], walk(b.block(s.stmts[at:]))])
        if isinstance(s, n.LetStmt) and any(isinstance(x, n.Assert) for x in nodes_of(s.body, n.Assert)):
            return n.LetStmt(s.name, s.value, walk(s.body))
        done = True
        return wrap(s)

    return walk(stmt)
