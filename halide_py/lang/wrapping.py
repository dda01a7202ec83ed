"""Wrappers and clones of a Func or an image: `f.in_(g)`, `f.clone_in(g)`, `image.in_(g)`.

The wrappers of a Function are kept in it, by the name of the caller; what a wrapper calls is an alias of the Function that does not know of
its wrappers, so that they form no cycle. Lowering makes the callers call them (`lower/wrappers.py`). Source: Halide's Func.cpp.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..errors import user_error, user_location
from ..ir import nodes as n
from ..ir.function import Definition, Function
from ..ir.names import unique_name
from ..ir.parameter import Parameter
from ..ir.traverse import Rec, rewrite
from . import definitions
from .edits import count_edit
from .expr import Expr
from .var import Var


class Handles:
    """How a Function becomes the Func users hold; `func` says so, which imports this."""

    of: Callable[[Function], Any]


def wrapper(f: Function | Parameter, callers: Sequence[Function] | None, clone: bool = False) -> Any:
    """The Func that `callers` (None: all that have no wrapper of their own) call instead of Func or image `f`; made when there is none
    yet."""
    directive = "clone_in" if clone else "in_"
    what = f"{directive}() of {'ImageParam' if isinstance(f, Parameter) else 'Func'} {f.name}"
    if isinstance(f, Function) and f.pure is None:
        raise user_error(f"{what}, which has no definition yet; define it first")
    if callers is not None and not callers:
        raise user_error(f"{what} for an empty list of Funcs; name at least one caller")
    names = [""] if callers is None else [g.name for g in callers]
    if isinstance(f, Function) and f.name in names:
        raise user_error(f'Cannot create wrapper of itself ("{f.name}"): {directive}() takes the Funcs that call it')
    found = {f.wrappers.get(name) for name in names}
    if found == {None}:
        name = _name(f, callers, clone)
        if isinstance(f, Function) and f.with_updates is not None:  # what is copied stays as it is
            f.with_updates()
        made = _image_copy(f, name) if isinstance(f, Parameter) else _clone(f, name) if clone else _copy(f, name)
        f.wrappers.update(dict.fromkeys(names, made))
        count_edit()
        return Handles.of(made)
    old = next(w for w in found if w is not None)
    sharing = sorted(name for name, w in f.wrappers.items() if w is old)
    if len(found) > 1 or sharing != sorted(set(names)):
        raise user_error(f"{what} for {', '.join(names)}: {old.name} is shared by {', '.join(sharing)} already, and one caller has one "
                         "wrapper; ask for it with the same Funcs as when it was made")
    if bool(old.wraps) is clone:
        raise user_error(f"{what} for {', '.join(names) or 'all callers'}: {'in_' if clone else 'clone_in'}() made {old.name} for the same "
                         "caller already, and one caller has one wrapper")
    return Handles.of(old)


def _name(f: Function | Parameter, callers: Sequence[Function] | None, clone: bool) -> str:
    """The name Halide gives to a wrapper."""
    if callers is None:
        kind = "global_wrapper"
    else:
        kind = (
            f"{'clone' if clone else ''}{'_' if clone else ''}in_{callers[0].name}"
            if len(callers) == 1
            else "clone"
            if clone
            else "wrapper"
        )
    return unique_name(f"{f.name}_{kind}${len(f.wrappers)}")


def _copy(f: Function, name: str) -> Function:
    """`name(x, ...) = f(x, ...)`, inline as any new Func."""
    f.frozen = True
    alias = replace(f, wrappers={})
    here = tuple(Var(a).as_node() for a in f.args)
    return _stand_in(name, f, f.args, [n.Call(t, f.name, here, n.CallType.Halide, alias, i) for i, t in enumerate(f.types)])


def _image_copy(p: Parameter, name: str) -> Function:
    """`name(x, ...) = image(x, ...)`; what stands for the image is resolved by its name."""
    alias = Parameter(p.name, p.type, True, p.dimensions, stands_in=True, owner=weakref.ref(p))
    Parameter.any_wrapped = True
    args = tuple(Var.implicit(i).name() for i in range(p.dimensions))
    here = tuple(Var(a).as_node() for a in args)
    return _stand_in(name, p, args, [n.Call(p.type, p.name, here, n.CallType.Image, None, 0, alias)])


def _stand_in(name: str, f: Function | Parameter, args: Sequence[str], values: Sequence[n.Expr]) -> Function:
    new = Function(name, where=user_location(), wraps=f.name)
    definitions.define(new, [Var(a) for a in args], [Expr.of(e) for e in values])
    new.frozen = True
    return new


def _clone(f: Function, name: str) -> Function:
    """A Function of its own with the definitions and the schedule of `f`."""

    def call(c: n.Call, rec: Rec) -> n.Expr:
        new: n.Call = c.map_children(rec)
        own = c.name == f.name and c.call_type is n.CallType.Halide
        return n.Call(c.type, name, new.args, c.call_type, None, c.value_index) if own else new

    def own(e: n.Expr) -> n.Expr:
        return rewrite(e, {n.Call: call}, n.symbol_bit(f.name))

    def definition(d: Definition) -> Definition:
        return replace(
            d, args=tuple(map(own, d.args)), values=tuple(map(own, d.values)), predicate=own(d.predicate), schedule=d.schedule.copy()
        )

    assert f.pure is not None
    s = f.schedule
    schedule = replace(s, storage_dims=[replace(d) for d in s.storage_dims], bounds=list(s.bounds), estimates=list(s.estimates))
    new = replace(f, name=name, pure=definition(f.pure), updates=[definition(u) for u in f.updates], schedule=schedule, wrappers={},
                  trace_tags=list(f.trace_tags))
    new.declare_outputs(f.types, len(f.args))
    return new


def callers_of(args: Sequence[Any], directive: str) -> list[Function]:
    """The Functions of `(g)` or `([g, h])`. Raises TypeError for anything else."""
    given = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    found = [getattr(g, "function", None) for g in given]
    if len(args) != 1 or not all(isinstance(f, Function) for f in found):
        raise TypeError(f"{directive}() takes a Func or a list of Funcs, not {args!r}")
    return found  # type: ignore[return-value]
