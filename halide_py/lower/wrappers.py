"""Wrappers: callers for which a Func has a wrapper or a clone (`in_`, `clone_in`) call that instead.

Before: `g(x) = f(x)`, where f has the wrapper `f_in_g` for g. After: `g(x) = f_in_g(x)`, `f_in_g(x) = f(x)`; users' Functions stay as they are.

A wrapper for one caller goes before the one for all callers; wrappers of a Func call the Func itself. A wrapper that is wrapped in turn for the same
caller is called through its own wrapper. Behaviour: Halide's WrapCalls.cpp.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ..ir import nodes as n
from ..ir.function import Definition, Function
from ..ir.traverse import Rec, rewrite


def callee_for(caller: str, f: Function, env: Mapping[str, Function]) -> Function:
    """What `caller` calls where its definition says `f`."""
    while f.wrappers:
        wrapper = f.wrappers.get(caller)
        if wrapper is None and all(w.name != caller for w in f.wrappers.values()):
            wrapper = f.wrappers.get("")
        if wrapper is None:
            break
        f = env[wrapper.name]
    return f


def call_wrappers(env: Mapping[str, Function]) -> dict[str, Function]:
    """The Functions of `env`, which must hold all wrappers, with their calls going to wrappers."""
    return {name: _redirected(f, {g: new for g, old in env.items() if old.wrappers and g != name and (new := callee_for(name, old, env)) is not old})
            for name, f in env.items()}


def _redirected(f: Function, instead: Mapping[str, Function]) -> Function:
    if not instead:
        return f
    bits = n.symbol_bits(instead)

    def call(c: n.Call, rec: Rec) -> n.Expr:
        args = tuple(map(rec, c.args))
        callee = instead.get(c.name) if c.call_type is n.CallType.Halide else None
        if callee is None and all(x is y for x, y in zip(args, c.args)):
            return c
        return n.Call(c.type, callee.name if callee else c.name, args, c.call_type, callee or c.func, c.value_index, c.param)

    def redirected(d: Definition) -> Definition:
        values, args = (tuple(rewrite(e, {n.Call: call}, bits) for e in exprs) for exprs in (d.values, d.args))
        return dataclasses.replace(d, values=values, args=args, predicate=rewrite(d.predicate, {n.Call: call}, bits))

    assert f.pure is not None
    return dataclasses.replace(f, pure=redirected(f.pure), updates=[redirected(u) for u in f.updates])
