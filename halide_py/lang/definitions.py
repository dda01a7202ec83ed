"""Definitions: check what a user wrote on both sides of `f[...] = ...` and record it. After an error the Func is as before."""

from __future__ import annotations

import warnings
from typing import Any, Sequence

from ..errors import CompileError, HalideWarning, user_location
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Definition, Dim, DimKind, Function, ReductionDomain, StageSchedule, StorageDim
from ..ir.parameter import Parameter
from ..ir.printer import to_text
from ..ir.traverse import Rec, free_variables, nodes_of, rewrite
from ..ir.types import INT32
from .expr import literal, to_node
from .var import RVar, Var, implicit_count


def index_node(f: str, i: int, x: Any) -> n.Expr:
    """Coordinate `i` of a call of `f`: an integer, as int32."""
    e = to_node(x)
    if e.type.is_float() or e.type.is_handle() or (literal(x) is not None and isinstance(literal(x), float)):
        raise CompileError(f"Argument {i} of {f} is {to_text(e)} of type {e.type}; coordinates are integers, use an explicit cast ({user_location()})")
    return b.cast(INT32, e)


def expand_placeholder(args: Sequence[Any], count: int) -> list[Any]:
    """`_` replaced by `count` implicit Vars."""
    out: list[Any] = []
    for a in args:
        if isinstance(a, Var) and a.is_placeholder():
            out += [Var.implicit(i) for i in range(count)]
        else:
            out.append(a)
    return out


def has_placeholder(args: Sequence[Any]) -> bool:
    """Whether `_` is among the arguments."""
    return any(isinstance(a, Var) and a.is_placeholder() for a in args)


def spread(args: Sequence[Any]) -> list[Any]:
    """A multi-dimensional RDom among the arguments stands for its RVars."""
    out: list[Any] = []
    for a in args:
        if hasattr(a, "domain") and a.domain is not None and len(a) > 1:
            out += list(a)
        else:
            out.append(a)
    return out


def call_args(f: Function, args: Sequence[Any]) -> tuple[n.Expr, ...]:
    """The coordinates of a call of `f`, `_` expanded. Raises CompileError for a wrong number."""
    args = spread(args)
    if has_placeholder(args):
        args = expand_placeholder(args, len(f.args) - (len(args) - 1))
    if len(args) != len(f.args):
        raise CompileError(f"Func {f.name} is called with {len(args)} arguments, but was defined with {len(f.args)} ({user_location()})")
    return tuple(index_node(f"Func {f.name}", i, a) for i, a in enumerate(args))


def rvars_of(d: Definition) -> list[RVar]:
    """The RVars of an update."""
    return [RVar.of(d.rdom, i) for i in range(len(d.rdom.variables))] if d.rdom else []


def define(f: Function, places: Sequence[Any], values: Sequence[n.Expr]) -> None:
    """Record `f[places] = values`: the pure definition when there is none, else an update."""
    places = spread(places)
    if f.pure is None:
        _define_pure(f, places, tuple(values))
    else:
        _define_update(f, places, tuple(values))


def _check_types(f: Function, values: tuple[n.Expr, ...], dims: int) -> None:
    if f.required_types:
        got = tuple(v.type for v in values)
        if got != f.required_types:
            raise CompileError(f"Func {f.name} is constrained to type {_types(f.required_types)} but is defined with type {_types(got)}")
    if f.required_dimensions >= 0 and dims != f.required_dimensions:
        raise CompileError(f"Func {f.name} is constrained to {f.required_dimensions} dimensions but is defined with {dims} dimensions")


def _types(types: Sequence[Any]) -> str:
    return ", ".join(map(str, types))


def _define_pure(f: Function, places: Sequence[Any], values: tuple[n.Expr, ...]) -> None:
    where = user_location()
    if has_placeholder(places):
        places = expand_placeholder(places, implicit_count(values))
    elif implicit_count(values) > sum(isinstance(p, Var) and p.is_implicit() for p in places):
        raise CompileError(f"Func {f.name} uses implicit dimensions (_) on the right, but not on the left, of its definition ({where})")
    names: list[str] = []
    for i, p in enumerate(places):
        if not isinstance(p, Var):
            e = to_node(p)
            v = e if isinstance(e, n.Variable) and e.param is None and e.rdom is None else None
            if v is None:
                raise CompileError(f"Argument {i} of the first definition of Func {f.name} is {to_text(e)}; every argument of the first definition must be a Var. "
                                   f"Give it a pure definition first, e.g. {f.name}[x] = 0 ({where})")
            names.append(v.name)
        else:
            names.append(p.name())
    for i, v in enumerate(names):
        if v in names[:i]:
            raise CompileError(f"Arguments {names.index(v)} and {i} of the definition of Func {f.name} are both {v}; they must be distinct ({where})")
    for value in values:
        for v in free_variables(value).values():
            if v.rdom is not None:
                raise CompileError(f"The pure definition of Func {f.name} uses {v.name} of a reduction domain; define it first, then update it, "
                                   f"or use an inline reduction such as hl.sum() ({where})")
            if v.param is None and v.name not in names:
                raise CompileError(f"Undefined variable {v.name} in the definition of Func {f.name}; its dimensions are ({', '.join(names)}) ({where})")
    for c in nodes_of(values, n.Call):
        if c.func is f:
            raise CompileError(f"The pure definition of Func {f.name} calls itself; use an update ({where})")
    _check_types(f, values, len(names))
    freeze_callees(values)
    f.args, f.types = tuple(names), tuple(v.type for v in values)
    schedule = StageSchedule(dims=[*(Dim(v) for v in names), Dim(OUTERMOST)])
    f.pure = Definition(tuple(n.Variable(INT32, v) for v in names), values, schedule=schedule, where=where)
    f.schedule.storage_dims = [StorageDim(v) for v in names]
    f.output_params = [Parameter(f.buffer_name(i), t, True, len(names)) for i, t in enumerate(f.types)]
    f.where = f.where or where


def freeze_callees(roots: Sequence[n.Expr]) -> None:
    """A Func that is called by a definition can get no more updates."""
    for c in nodes_of(roots, n.Call):
        if c.call_type is n.CallType.Halide and isinstance(c.func, Function):
            c.func.frozen = True


def _without_self(f: Function, e: n.Expr) -> n.Expr:
    """Calls of `f` inside its own updates are by name only, so that Function and definition form no cycle."""

    def call(c: n.Call, rec: Rec) -> n.Expr:
        new = c.map_children(rec)
        return n.Call(new.type, new.name, new.args, new.call_type, None, new.value_index) if new.func is f else new

    return rewrite(e, {n.Call: call}, n.symbol_bit(f.name))


def _one_rdom(f: Function, roots: Sequence[n.Expr], where: str) -> ReductionDomain | None:
    found: dict[int, ReductionDomain] = {}
    for v in nodes_of(roots, n.Variable):
        if v.rdom is not None:
            found.setdefault(id(v.rdom), v.rdom)
    if len(found) > 1:
        names = " and ".join(d.name for d in found.values())
        raise CompileError(f"An update of Func {f.name} uses multiple reduction domains, {names}; use one RDom with more dimensions ({where})")
    return next(iter(found.values()), None)


def _define_update(f: Function, places: Sequence[Any], values: tuple[n.Expr, ...]) -> None:
    where = user_location()
    number = len(f.updates)
    what = f"update {number} of Func {f.name}"
    if f.frozen:
        raise CompileError(f"Func {f.name} was already used by another Func or realized, so it cannot get another definition ({where})")
    if has_placeholder(places):
        count = len(f.args) - (len(places) - 1)
        if implicit_count(values) > max(count, 0):
            raise CompileError(f"{what} uses {implicit_count(values)} implicit dimensions, but _ stands for {count} there ({where})")
        places = expand_placeholder(places, count)
    if len(places) != len(f.args):
        raise CompileError(f"{what} has {len(places)} arguments, but the Func was defined with {len(f.args)} ({where})")
    if len(values) != len(f.types):
        raise CompileError(f"{what} gives {len(values)} values, but the Func has {len(f.types)} ({where})")
    for i, (v, t) in enumerate(zip(values, f.types)):
        if v.type is not t:
            element = f"element {i} of " if len(values) > 1 else ""
            raise CompileError(f"In {what}, {element}the value {to_text(v)} has type {v.type}, but the Func has type {t}; add a cast ({where})")
    args = tuple(index_node(what, i, p) for i, p in enumerate(places))
    args, values = tuple(_without_self(f, a) for a in args), tuple(_without_self(f, v) for v in values)
    rdom = _one_rdom(f, [*args, *values], where)
    predicate = _without_self(f, b.all_of(rdom.predicates)) if rdom else b.TRUE
    pure = {a for a, e in zip(f.args, args) if isinstance(e, n.Variable) and e.name == a and e.rdom is None and e.param is None}
    _check_free(f, what, [*args, *values, predicate], pure, where)
    _check_self_calls(f, what, [*args, *values, predicate], pure, where)
    if not rdom and all(a in pure for a in f.args) and not any(c.name == f.name for c in nodes_of(values, n.Call)):
        warnings.warn(f"{what} at {where} hides the earlier definition completely; this may be an accidental redefinition", HalideWarning, stacklevel=4)
    if rdom:
        rdom.frozen = True
    freeze_callees([*args, *values, predicate])
    rvars = list(rdom.variables) if rdom else []
    dims = [Dim(r.name, kind=_rvar_kind(f, r.name, args, values, predicate)) for r in rvars]
    dims += [Dim(a) for a in f.args if a in pure] + [Dim(OUTERMOST)]
    f.updates.append(Definition(args, values, rdom, predicate, StageSchedule(rvars=rvars, dims=dims), where))


def _check_free(f: Function, what: str, roots: Sequence[n.Expr], pure: set[str], where: str) -> None:
    for v in free_variables(roots).values():
        if v.rdom is None and v.param is None and v.name not in pure:
            raise CompileError(f"Undefined variable {v.name} in {what}; on the left stand only ({', '.join(f.args)}) as Vars, each in its own place ({where})")


def _check_self_calls(f: Function, what: str, roots: Sequence[n.Expr], pure: set[str], where: str) -> None:
    for c in nodes_of(roots, n.Call):
        if c.name != f.name or c.call_type is not n.CallType.Halide:
            continue
        for a, e in zip(f.args, c.args):
            if a in pure and not (isinstance(e, n.Variable) and e.name == a):
                raise CompileError(f"In {what}, all of the Func's recursive references to itself must contain the same pure variables in the same places as on the "
                                   f"left-hand side: {a} is {to_text(e)} in {to_text(c)}; use an RDom instead of the Var {a} ({where})")


def _rvar_kind(f: Function, name: str, args: Sequence[n.Expr], values: Sequence[n.Expr], predicate: n.Expr) -> DimKind:
    """PureRVar when iterations of the RVar touch elements of their own only: some coordinate is the RVar plus something without it, and the Func is
    read back at that very coordinate."""
    own = [i for i, a in enumerate(args) if _is_offset_of(a, name)]
    calls = [c for c in nodes_of([*values, *args, predicate], n.Call) if c.name == f.name and c.call_type is n.CallType.Halide]
    independent = any(all(c.args[i] is args[i] for c in calls) for i in own)
    return DimKind.PureRVar if independent else DimKind.ImpureRVar


def _is_offset_of(e: n.Expr, name: str) -> bool:
    if isinstance(e, n.Variable):
        return e.name == name
    if isinstance(e, (n.Add, n.Sub)) and b.as_int(e.b) is not None:
        return _is_offset_of(e.a, name)
    return isinstance(e, n.Add) and b.as_int(e.a) is not None and _is_offset_of(e.b, name)
