"""Definitions: check what a user wrote on both sides of `f[...] = ...` and record it. After an error the Func is as before.

Source of the rules: Halide's Function.cpp (define, define_update) and Func.cpp (FuncRef).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from .. import lang
from ..errors import user_error, user_location, warn
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import OUTERMOST, Definition, Dim, Function, ReductionDomain, StageSchedule, StorageDim
from ..ir.intrinsics import intrinsic
from ..ir.printer import to_text
from ..ir.traverse import Rec, free_variables, nodes_of, rewrite
from ..ir.types import INT32, UInt
from .edits import count_edit
from .expr import Expr, to_node
from .promotion import convert
from .rdom import RDom
from .var import Var, implicit_count, implicit_names

_TAGS = itertools.count()  # numbers the definitions that draw random numbers


def places_of(args: Any) -> list[Any]:
    """What stands between the brackets of `f[...]`, one by one; a multi-dimensional RDom stands for its RVars."""
    out: list[Any] = []
    for a in args if isinstance(args, (list, tuple)) else [args]:
        out += list(a) if isinstance(a, RDom) and a.dimensions() > 1 else [a]
    return out


def coordinate(callee: str, index: int, x: Any) -> n.Expr:
    """Coordinate `index` of a call or a definition of `callee`: an integer, as int32."""
    if isinstance(x, Expr) and x.node is None:
        raise user_error(f'Argument {index + 1} in call to "{callee}" is undefined')
    e = to_node(x)
    if not e.type.is_int_or_uint():
        raise user_error(f'Implicit cast from {e.type} to int in argument {index + 1} in call to "{callee}" is not allowed. Use an '
                         'explicit cast, '
                         f"such as i32({to_text(e)}).")
    return convert(INT32, e)


def expand_placeholder(args: Sequence[Any], dimensions: int) -> tuple[list[Any], int]:
    """`_` among the arguments replaced by as many implicit Vars as are missing; also their number, -1 without `_`."""
    for i, a in enumerate(args):
        if isinstance(a, Var) and a.is_placeholder() or isinstance(a, Expr) and isinstance(a.node, n.Variable) and a.node.name == "_":
            count = max(dimensions - (len(args) - 1), 0)
            return [*args[:i], *(Var.implicit(k) for k in range(count)), *args[i + 1:]], count
    return list(args), -1


def call_args(callee: str, dimensions: int, args: Sequence[Any]) -> tuple[n.Expr, ...]:
    """The coordinates of a call of a Func or image, `_` expanded. Raises CompileError for a wrong number or type."""
    places, _ = expand_placeholder(args, dimensions)
    if len(places) != dimensions:
        raise user_error(f'Func "{callee}" was called with {len(places)} arguments, but was defined with {dimensions}')
    return tuple(coordinate(callee, i, a) for i, a in enumerate(places))


def define(f: Function, places: Sequence[Any], values: Sequence[Expr], rdom: ReductionDomain | None = None) -> None:
    """Record `f[places] = values`: the pure definition when there is none, else an update, over `rdom` if none of its RVars is mentioned.
    Counts as an edit."""
    for i, v in enumerate(values):
        if v.node is None:
            raise user_error(f'Value {i + 1} in definition of "{f.name}" is undefined')
    nodes = tuple(v.as_node() for v in values)
    if f.pure is None:
        _define_pure(f, places, nodes)
    else:
        _define_update(f, places, nodes, rdom)
    count_edit()


# ---------------------------------------------------------------------------------------------------------------
# The first definition


def _list(items: Sequence[Any]) -> str:
    return f"({', '.join(map(str, items))})" if len(items) != 1 else str(items[0])


def _check_requirements(f: Function, values: tuple[n.Expr, ...], dims: int) -> None:
    got = tuple(v.type for v in values)
    if f.required_types and got != f.required_types:
        raise user_error(f'Func "{f.name}" is constrained to only hold values of type {_list(f.required_types)} but is defined with '
                         f'values of type {_list(got)}')
    if f.required_dimensions >= 0 and dims != f.required_dimensions:
        raise user_error(f'Func "{f.name}" is constrained to have exactly {f.required_dimensions} dimensions, but is defined with {dims} '
                         'dimensions')


def _argument_names(f: Function, places: Sequence[Any]) -> list[str]:
    """The names of the pure Vars on the left of a first definition."""
    names: list[str] = []
    for i, p in enumerate(places):
        e = coordinate(f.name, i, p)
        if not (isinstance(e, n.Variable) and e.param is None and e.rdom is None):
            raise user_error(f'Argument {i + 1} in initial definition of "{f.name}" is not a Var. It is {to_text(e)}; give the Func a '
                             'pure definition first, '
                             f"such as {f.name}[x] = 0, then this is an update")
        if e.name in names:
            raise user_error(f'In pure definition of Func "{f.name}":\nIn left-hand-side of definition, arguments {i} and '
                             f'{names.index(e.name)} '
                             f'both have the name "{e.name}"')
        names.append(e.name)
    return names


def _define_pure(f: Function, places: Sequence[Any], values: tuple[n.Expr, ...]) -> None:
    where = user_location()
    if f.frozen:
        raise user_error(f"Func {f.name} cannot be given a pure definition, because it has already been used in the definition of another "
                         "Func")
    places, _ = expand_placeholder(places, len(places) - 1 + implicit_count(values))
    names = _argument_names(f, places)
    missing = [v for v in implicit_names(values) if v not in names]
    if missing:
        raise user_error(f"Right-hand-side of definition of {f.name} uses implicit variables ({', '.join(missing)}), but the "
                         "left-hand-side does not contain the placeholder symbol '_'")
    for v in free_variables(values).values():
        if v.rdom is not None:
            raise user_error(f'In pure definition of Func "{f.name}":\nReduction domain referenced in pure function definition: {v.name}. '
                             'Define the Func '
                             "first, then update it, or use an inline reduction such as hl.sum()")
        if v.param is None and v.name not in names:
            raise user_error(f'Undefined variable "{v.name}" in definition of Func "{f.name}", whose dimensions are ({", ".join(names)})')
    for c in nodes_of(values, n.Call):
        if c.name in ("gather", "scatter") and c.call_type is n.CallType.PureIntrinsic:
            raise user_error(f"{c.name}() in the pure definition of Func {f.name}; it has a meaning in updates only")
    _check_requirements(f, values, len(names))
    values = draw_random(values, [n.Variable(INT32, v) for v in names])
    _freeze_callees(values)
    schedule = StageSchedule(dims=[*(Dim(v) for v in names), Dim(OUTERMOST)])
    f.args, f.types = tuple(names), tuple(v.type for v in values)
    f.pure = Definition(tuple(n.Variable(INT32, v) for v in names), values, schedule=schedule, where=where)
    f.schedule.storage_dims = [StorageDim(v) for v in names]
    f.declare_outputs(f.types, len(names))
    f.where = f.where or where


def _freeze_callees(roots: Sequence[n.Expr]) -> None:
    """A Func that is called by a definition can get no more updates."""
    for c in nodes_of(roots, n.Call):
        if c.call_type is n.CallType.Halide and isinstance(c.func, Function):
            c.func.frozen = True


def draw_random(roots: tuple[n.Expr, ...], variables: Sequence[n.Expr]) -> tuple[n.Expr, ...]:
    """Each call of random_* as a hash of its seed and number, the coordinates of the definition it is used in, and a tag of that
    definition."""
    if not any(c.name == "random" for c in nodes_of(roots, n.Call)):
        return roots
    unsigned = UInt(32)
    here = [*(b.cast(unsigned, v) for v in variables), b.const(unsigned, next(_TAGS))]

    def call(c: n.Call, rec: Rec) -> n.Expr:
        new: n.Call = c.map_children(rec)
        if c.name != "random" or all(a.type is unsigned for a in c.args):  # the latter was drawn already
            return new
        return intrinsic("random", c.type, *(convert(unsigned, a) for a in new.args), *here)

    return tuple(rewrite(e, {n.Call: call}, n.symbol_bit("random")) for e in roots)


# ---------------------------------------------------------------------------------------------------------------
# Updates


def _without_self(f: Function, e: n.Expr) -> n.Expr:
    """Calls of `f` inside its own updates are by name only, so that Function and definition form no cycle."""

    def call(c: n.Call, rec: Rec) -> n.Expr:
        new: n.Call = c.map_children(rec)
        return n.Call(new.type, new.name, new.args, new.call_type, None, new.value_index) if new.func is f else new

    return rewrite(e, {n.Call: call}, n.symbol_bit(f.name))


def _only_rdom(f: Function, roots: Sequence[n.Expr]) -> ReductionDomain | None:
    found: dict[int, ReductionDomain] = {}
    for v in nodes_of(roots, n.Variable):
        if v.rdom is not None:
            found.setdefault(id(v.rdom), v.rdom)
    if len(found) > 1:
        names = " and ".join(d.name for d in found.values())
        raise user_error(f'Multiple reduction domains found in definition of Func "{f.name}": {names}. Use one RDom with more dimensions')
    return next(iter(found.values()), None)


def _update_coordinates(f: Function, what: str, places: Sequence[Any], values: Sequence[n.Expr]) -> tuple[n.Expr, ...]:
    """The left-hand side of an update, `_` expanded."""
    count = implicit_count(values)
    places, given = expand_placeholder(places, len(f.args))
    if given >= 0 and count > given:
        raise user_error(f"The update definition of {f.name} uses {count} implicit variables, but the initial definition uses only {given} "
                         "implicit variables")
    if len(places) != len(f.args):
        raise user_error(f'{what}:\nFunc "{f.name}" was called with {len(places)} arguments, but was defined with {len(f.args)}')
    return tuple(coordinate(f.name, i, p) for i, p in enumerate(places))


def _check_values(f: Function, what: str, values: Sequence[n.Expr]) -> None:
    if len(values) != len(f.types):
        raise user_error(f"{what}:\nNumber of tuple elements for update definition must match number of tuple elements for pure "
                         f"definition: {len(values)} and {len(f.types)}")
    for i, (v, t) in enumerate(zip(values, f.types)):
        if v.type is not t:
            raise user_error(f"{what}:\nTuple element {i} of update definition has type {v.type}, but pure definition has type {t}. Cast "
                             f"the value: hl.cast(t, {to_text(v) if len(to_text(v)) < 80 else '...'})")


def _define_update(f: Function, places: Sequence[Any], values: tuple[n.Expr, ...], over: ReductionDomain | None) -> None:
    where = user_location()
    what = f'In update definition {len(f.updates)} of Func "{f.name}"'
    if f.wraps:
        raise user_error(f"Func {f.name} cannot be given an update: it stands for {f.wraps}, of which in_() made it; update {f.wraps} "
                         "before it is wrapped")
    if f.frozen:
        raise user_error(f"Func {f.name} cannot be given a new update definition, because it has already been realized or used in the "
                         "definition of another Func")
    if f.extern is not None:
        raise user_error(f"{what}: {f.name} is an extern stage ({f.where}), which has no updates; define another Func from it and update "
                         "that")
    _check_values(f, what, values)
    args = tuple(_without_self(f, a) for a in _update_coordinates(f, what, places, values))
    values = tuple(_without_self(f, v) for v in values)
    pure = {a for a, e in zip(f.args, args) if isinstance(e, n.Variable) and e.name == a and e.rdom is None and e.param is None}
    rdom = _only_rdom(f, [*args, *values]) or over
    predicate = _without_self(f, b.all_of(rdom.predicates)) if rdom else b.TRUE
    roots = [*args, *values, predicate]
    _check_variables(f, roots, pure)
    _check_self_calls(f, roots, pure)
    _check_several(what, args, values)
    hides = not rdom and len(pure) == len(f.args) and not any(c.name == f.name for c in nodes_of(values, n.Call))
    rvars = list(rdom.variables) if rdom else []
    inside = [n.Variable(INT32, a) for a in f.args if a in pure] + [n.Variable(INT32, r.name, None, rdom) for r in rvars]
    drawn = draw_random((*args, *values, predicate), inside)
    args, values, predicate = drawn[:len(args)], drawn[len(args):-1], drawn[-1]
    if hides:
        warn(f"{what}:\nUpdate definition completely hides earlier definitions, because all the arguments are pure, it contains no "
             f"self-references, and no reduction domain. This may be an accidental re-definition of an already-defined function. ({where})")
    if rdom:
        rdom.frozen = True
    _freeze_callees(drawn)
    dims = [Dim(r.name, kind=lang.independence.rvar_kind(f, r, args, values, predicate)) for r in rvars]
    dims += [Dim(a) for a in f.args if a in pure] + [Dim(OUTERMOST)]
    f.updates.append(Definition(args, values, rdom, predicate, StageSchedule(rvars=rvars, dims=dims), where))


def _check_variables(f: Function, roots: Sequence[n.Expr], pure: set[str]) -> None:
    for v in free_variables(roots).values():
        if v.rdom is None and v.param is None and v.name not in pure:
            raise user_error(f'Undefined variable "{v.name}" in definition of Func "{f.name}". In an update a Var must stand alone, in '
                             'its own place, on the '
                             f"left-hand side: ({', '.join(f.args)})")


def _check_self_calls(f: Function, roots: Sequence[n.Expr], pure: set[str]) -> None:
    for c in nodes_of(roots, n.Call):
        if c.name != f.name or c.call_type is not n.CallType.Halide:
            continue
        for a, e in zip(f.args, c.args):
            if a in pure and not (isinstance(e, n.Variable) and e.name == a):
                raise user_error(f'In definition of Func "{f.name}":\nAll of a function\'s recursive references to itself must contain '
                                 'the same pure variables in the '
                                 f"same places as on the left-hand-side, but {to_text(c)} has {to_text(e)} in the place of {a}. Use an "
                                 f"RDom instead of the Var {a}")


def _check_several(what: str, args: Sequence[n.Expr], values: Sequence[n.Expr]) -> None:
    """gather and scatter: all of one size, none inside another."""
    found = [c for c in nodes_of([*args, *values], n.Call) if c.name in ("gather", "scatter") and c.call_type is n.CallType.PureIntrinsic]
    sizes = {len(c.args) for c in found}
    if len(sizes) > 1:
        raise user_error(f"{what}:\nAll gather() and scatter() of one update must have the same number of Exprs, not "
                         f"{', '.join(map(str, sorted(sizes)))}")
    for c in found:
        inner = [d for d in nodes_of(c.args, n.Call) if d in found]
        if inner:
            raise user_error(f"{what}:\n{inner[0].name}() inside {c.name}() has no meaning; nest the arguments instead")
