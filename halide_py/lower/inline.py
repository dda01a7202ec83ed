"""Inline: replace calls of Funcs that are computed inline by their values.

IR before: definitions that call `g(x + 1)`. After: the same with g's value at x + 1, for each g whose compute level is
inline and which has no updates. Inline Funcs with updates (inline reductions) stay; they are realized around each use.
Limits: self-calls are never inlined. Source: Lattner-style value numbering makes the result a DAG, so a stencil of
stencils stays as small as its distinct values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import TypeVar

from ..errors import CompileError
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Definition, Function
from ..ir.intrinsics import GRADIENT_MARKS
from ..ir.simplify import simplify
from ..ir.traverse import Rec, rewrite
from .environment import Environment
from .extern_stages import check_extern_arguments
from .select_guards import guard_predicate, guard_selects

DROPPED = (*GRADIENT_MARKS, "memoize_tag")  # said to the derivative and to memoization, which have read the definitions before

N = TypeVar("N", bound=n.Node)


def substitute_vars(values: Mapping[str, n.Expr], root: N) -> N:
    """Replace Vars and RVars by name; a pipeline parameter that happens to share the name is left alone."""
    if not values:
        return root
    bits = n.symbol_bits(values)

    def variable(v: n.Variable, rec: Rec) -> n.Expr:
        return v if v.param is not None else values.get(v.name, v)

    return rewrite(root, {n.Variable: variable}, bits)


def is_inlined(f: Function, outputs: set[str]) -> bool:
    """Whether calls of `f` are replaced by its value."""
    return f.schedule.compute_level.is_inline() and not f.updates and f.name not in outputs and f.extern is None


def check_inlined_schedule(f: Function) -> None:
    """Directives that only make sense with a loop nest of one's own. Raises CompileError naming the first."""
    assert f.pure is not None
    for dim in f.pure.schedule.dims:
        if dim.var != OUTERMOST and dim.for_type is not n.ForType.Serial:
            verb, directive = {n.ForType.Parallel: ("parallel", "parallel"), n.ForType.Vectorized: ("vectorized", "vectorize"),
                               n.ForType.Unrolled: ("unrolled", "unroll")}[dim.for_type]
            raise CompileError(
                f"Func {f.name} is scheduled inline, but its dimension {dim.var} is marked {verb}; give {f.name} a loop nest of its own "
                f"with compute_root() or compute_at(), or drop the directive ({f.site(directive, 0)})")
    if f.pure.schedule.specializations:
        raise CompileError(f"Func {f.name} is scheduled inline, but has specialize(); give {f.name} a loop nest of its own with "
                           f"compute_root() or compute_at(), or drop the directive ({f.site('specialize', 0)})")
    for asked, directive in ((f.schedule.is_async, "async_"), (f.schedule.memoized, "memoize")):
        if asked:
            raise CompileError(f"Func {f.name} has {directive}() but is computed inline; call compute_at() or compute_root() too "
                               f"({f.site(directive)})")


def check_inlined_storage(f: Function) -> None:
    """Directives about storage that outlives one use, which an inline Func has not, with updates or without. Raises CompileError naming the
    first."""
    s = f.schedule
    for asked, directive, what in ((not s.store_level.is_inline(), "store_at", "store_at() or store_root()"),
                                   (not s.hoist_level.is_inline(), "hoist_storage", "hoist_storage() or hoist_storage_root()"),
                                   (s.ring_buffer is not None, "ring_buffer", "ring_buffer()")):
        if asked:
            raise CompileError(f"Func {f.name} has {what} but is computed inline; call compute_at() or compute_root() too "
                               f"({f.site(directive)})")


def inline_functions(env: Environment, outputs: set[str]) -> Environment:
    """The environment without the Functions that are computed inline. Raises CompileError for one with directives for a loop nest of its
    own."""
    inlined = [name for name, f in env.items() if is_inlined(f, outputs)]
    for name in inlined:
        check_inlined_schedule(env[name])
    for name, f in env.items():
        if f.schedule.compute_level.is_inline() and name not in outputs:
            check_inlined_storage(f)
    return inline_named(env, inlined)


def inline_named(env: Environment, inlined: Collection[str]) -> Environment:
    """The environment without the Functions named; the definitions of the others call only what is left, and are free of marks for the
    derivative and for memoization."""
    bodies: dict[str, Function] = {}
    kept: Environment = {}

    def call(c: n.Call, rec: Rec) -> n.Expr:
        new = c.map_children(rec)
        if c.name in DROPPED and c.call_type in (n.CallType.PureIntrinsic, n.CallType.Intrinsic):
            return new.args[0]  # type: ignore[no-any-return]
        if c.call_type is not n.CallType.Halide or c.name not in bodies:
            return new  # type: ignore[no-any-return]
        callee = bodies[c.name]
        assert callee.pure is not None
        args = {name: simplify(a) for name, a in zip(callee.args, new.args)}
        return substitute_vars(args, callee.pure.values[c.value_index])

    def definition(d: Definition) -> Definition:
        check_extern_arguments(d, bodies)
        values, args = (tuple(guard_selects(rewrite(e, {n.Call: call})) for e in part) for part in (d.values, d.args))
        predicate = guard_predicate(rewrite(d.predicate, {n.Call: call}))
        if (values, args, predicate) == (d.values, d.args, d.predicate):
            return d
        return dataclasses.replace(d, values=values, args=args, predicate=predicate)

    for name, f in env.items():
        assert f.pure is not None
        new = dataclasses.replace(f, pure=definition(f.pure), updates=[definition(u) for u in f.updates])
        if name in inlined:
            bodies[name] = new
        else:
            kept[name] = new
    return kept
