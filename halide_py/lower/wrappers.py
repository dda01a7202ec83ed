"""Wrappers: callers for which a Func has a wrapper or a clone (`in_`, `clone_in`) call that instead.

Before: `g(x) = f(x)`, where f has the wrapper `f_in_g` for g. After: `g(x) = f_in_g(x)`, `f_in_g(x) = f(x)`; users' Functions stay as they
are.

A wrapper for one caller goes before the one for all callers; wrappers of a Func call the Func itself. A wrapper that is wrapped in turn for
the same caller is called through its own wrapper. Images have wrappers likewise; in their definitions stands another Parameter for the
image. Behaviour: Halide's WrapCalls.cpp.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.function import Definition, Function
from ..ir.parameter import Parameter
from ..ir.traverse import Rec, rewrite


def _wrapper(caller: str, wrappers: Mapping[str, Function]) -> Function | None:
    """What `caller` calls in the stead of what has these wrappers."""
    own = wrappers.get(caller)
    return own if own is not None or any(w.name == caller for w in wrappers.values()) else wrappers.get("")


def _callee(caller: str, wrappers: Mapping[str, Function]) -> Function | None:
    """The wrapper to call, through its own wrappers."""
    found = _wrapper(caller, wrappers)
    return None if found is None else _callee(caller, found.wrappers) or found


def call_wrappers(env: Mapping[str, Function], images: Mapping[str, Parameter]) -> dict[str, Function]:
    """The Functions of `env`, which must hold all wrappers, with their calls going to wrappers; `images` are those that have some."""
    wrapped = {f.name: f.wrappers for f in env.values() if f.wrappers}
    out = {}
    for name, f in env.items():
        calls = {g: new for g, wrappers in wrapped.items() if g != name and (new := _callee(name, wrappers)) is not None}
        reads = {p.name: new for p in images.values() if (new := _callee(name, p.wrappers)) is not None}
        out[name] = _redirected(f, calls, reads, images)
    return out


def _redirected(f: Function, calls: Mapping[str, Function], reads: Mapping[str, Function], images: Mapping[str, Parameter]) -> Function:
    bits = n.symbol_bits([*calls, *images, *([f.wraps] if f.wraps else [])])
    if not bits:
        return f

    def call(c: n.Call, rec: Rec) -> n.Expr:
        new: n.Call = c.map_children(rec)
        if c.call_type is n.CallType.Halide and c.name in calls:
            callee = calls[c.name]
            return n.Call(c.type, callee.name, new.args, c.call_type, callee, c.value_index)
        if c.call_type is not n.CallType.Image or c.param is None or c.name not in images and not c.param.stands_in:
            return new
        if c.param.stands_in:
            if c.name not in images:
                raise CompileError(f"Func {f.name} stands for {c.name}, of which in_() made it, which is gone; keep {c.name}")
            return n.Call(c.type, c.name, new.args, c.call_type, c.func, c.value_index, images[c.name])
        reader = reads.get(c.name)
        return new if reader is None else n.Call(c.type, reader.name, new.args, n.CallType.Halide, reader)

    def redirected(d: Definition) -> Definition:
        values, args = (tuple(rewrite(e, {n.Call: call}, bits) for e in exprs) for exprs in (d.values, d.args))
        return dataclasses.replace(d, values=values, args=args, predicate=rewrite(d.predicate, {n.Call: call}, bits))

    assert f.pure is not None
    return dataclasses.replace(f, pure=redirected(f.pure), updates=[redirected(u) for u in f.updates])
