"""Stages: one definition of a Function with its variables renamed to axes, and the regions that all stages run over.

A region is an interval a dimension, in constants and parameters: where the adjoint of a Func can be other than zero. Regions flow from the
output to what it reads, over all definitions, before anything is differentiated.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.boxes import boxes_required
from ..ir.function import Definition, Function
from ..ir.interval import FuncValues, Interval, bounds_of_expr
from ..ir.intrinsics import intrinsic
from ..ir.simplify import constant_bound, simplify
from ..ir.traverse import Rec, nodes_of, rewrite
from ..ir.types import INT32
from ..lower.bounds_inference import function_values
from ..lower.select_guards import guard_selects
from .contributions import Axis, fresh_axis
from .inlined import read_without_bounds, with_bodies
from .sweep import expand_lets

Region = tuple[Interval, ...]
_FAR = 1 << 30  # what may be anything of its type has no end


@dataclass
class Stage:
    """Definition `index` of `function` (0: the pure one) over axes. `pure` lists the dimensions that are free, `own` the calls of the
    Function itself, distinct, those that others depend on first. `perhaps_unused`: adjoints may be 0 because a condition or an update keeps
    the value from being used."""

    function: Function
    index: int
    args: tuple[n.Expr, ...]
    values: tuple[n.Expr, ...]
    predicate: n.Expr
    axes: tuple[Axis, ...]
    pure: frozenset[int]
    own: tuple[n.Call, ...] = field(default_factory=tuple)
    perhaps_unused: bool = False

    def where(self) -> str:
        """The definition, for messages."""
        d = self.function.stages()[self.index]
        place = f" ({d.where})" if d.where else ""
        return (f"the definition of Func {self.function.name}" if self.index == 0 else f"update {self.index - 1} of Func "
                                                                                       f"{self.function.name}") + place

    def loops(self) -> list[Axis]:
        """The axes of the reduction domain."""
        return [a for a in self.axes if not a.pure]

    def dimensions(self) -> dict[str, n.Variable]:
        """For each pure axis the dimension it stands for."""
        return {a.name: n.Variable(INT32, self.function.args[d]) for a, d in zip(self.axes, sorted(self.pure))}

    def scope(self) -> dict[str, Interval]:
        """The intervals of the axes."""
        return {a.name: a.interval for a in self.axes}

    def roots(self) -> tuple[n.Expr, ...]:
        """Every expression."""
        return (*self.values, *self.args, self.predicate)


def stage_of(f: Function, index: int, region: Region, inlined: Container[Function] = ()) -> Stage:
    """A definition over the axes of a region and of its reduction domain; for `inlined` Funcs stands what they read."""
    d = f.stages()[index]
    if any(c.name in ("gather", "scatter") and c.call_type is n.CallType.PureIntrinsic for c in nodes_of([*d.args, *d.values], n.Call)):
        raise CompileError(f"Update {index - 1} of Func {f.name} ({d.where}) has gather() or scatter(), which have no derivative; write "
                           "one update for each place, with the old values in another Func")
    pure = frozenset(range(len(f.args))) if index == 0 else _pure_dimensions(f, d)
    axes, names = [], {}
    for i in sorted(pure):
        axes.append(fresh_axis(f.args[i], region[i], True))
        names[f.args[i]] = axes[-1].variable()
    for r in d.rdom.variables if d.rdom else ():
        last = simplify(n.Sub(n.Add(r.min, r.extent), b.i32(1)))
        axes.append(fresh_axis(r.name, Interval(r.min, last), False))
        names[r.name] = axes[-1].variable()

    put_in = with_bodies(inlined)

    def over_axes(e: n.Expr) -> n.Expr:
        return _substitute(names, expand_lets(put_in(e)))

    args, values, predicate = tuple(map(over_axes, d.args)), tuple(map(over_axes, d.values)), over_axes(d.predicate)
    return Stage(f, index, args, values, predicate, tuple(axes), pure, own_calls(f, [*values, *args, predicate]))


def own_calls(f: Function, roots: Sequence[n.Expr]) -> tuple[n.Call, ...]:
    """The calls of `f` itself, one for each place, those that the places of others depend on first."""
    found: dict[tuple[n.Expr, ...], n.Call] = {}
    seen: set[n.Expr] = set()

    def visit(e: n.Expr) -> None:
        if e in seen or not e.symbols & n.symbol_bit(f.name):
            return
        seen.add(e)
        for k in e.children():
            visit(k)
        if isinstance(e, n.Call) and is_own(f, e):
            found.setdefault(e.args, e)

    for root in roots:
        visit(root)
    return tuple(found.values())


def is_own(f: Function, c: n.Call) -> bool:
    """Whether a call in a definition of `f` is one of `f`'s own."""
    return c.call_type is n.CallType.Halide and c.name == f.name


def _substitute(names: Mapping[str, n.Expr], e: n.Expr) -> n.Expr:
    """Replace Vars and RVars; a parameter that shares a name is left alone."""

    def variable(v: n.Variable, rec: Rec) -> n.Expr:
        return v if v.param is not None else names.get(v.name, v)

    return rewrite(e, {n.Variable: variable})


def _pure_dimensions(f: Function, d: Definition) -> frozenset[int]:
    return frozenset(
        i
        for i, (a, e) in enumerate(zip(f.args, d.args))
        if isinstance(e, n.Variable) and e.name == a and e.rdom is None and e.param is None
    )


def boxes(stage: Stage, values: FuncValues) -> dict[str, Region]:
    """What a stage reads of each Func and image, its own Func included, believing the conditions that reads stand under, and what values of
    Funcs can be."""
    found: dict[str, Region] = {}
    for e in stage.roots():
        zero = b.const(e.type, 0)
        guarded = e if e is stage.predicate or b.is_true(stage.predicate) else intrinsic("if_then_else", e.type, stage.predicate, e, zero)
        for name, box in boxes_required(guard_selects(guarded), stage.scope(), values).items():
            region = tuple(map(usable, box.intervals))
            found[name] = union(found[name], region) if name in found else region
    return found


def boxes_of(stage: Stage, places: Sequence[tuple[n.Expr, ...]]) -> Region:
    """The region around some coordinates while the axes of a stage run."""
    found = [tuple(usable(bounds_of_expr(a, stage.scope())) for a in args) for args in places]
    out = found[0]
    for box in found[1:]:
        out = union(out, box)
    return out


def union(a: Region, c: Region) -> Region:
    """The region around two."""
    return tuple(p.union(q) for p, q in zip(a, c))


def usable(i: Interval) -> Interval:
    """An interval with ends that a reduction domain can have, of constants and parameters: an end that reads data is at what it can be at
    most."""

    def end(e: n.Expr | None, upper: bool) -> n.Expr | None:
        if e is None or e.type is not INT32:
            return None
        free = any(v.param is None for v in nodes_of(e, n.Variable))
        data = any(c.call_type in (n.CallType.Halide, n.CallType.Image) for c in nodes_of(e, n.Call))
        if not free and not data:
            return e
        limit = constant_bound(e, upper)
        return None if limit is None or abs(limit) > _FAR else b.i32(limit)

    return Interval(end(i.min, False), end(i.max, True))


class Regions:
    """The region of each stage of each Function: `of[f][k]` is where the adjoint of `f` after stage k may be other than zero. Those of
    `inlined` are gone."""

    def __init__(self, order: Sequence[Function], output: Function, region: Region) -> None:
        """`order`: users before what they use, the order in which `flow` is to be called."""
        self.values = function_values({f.name: f for f in reversed(order)})
        self.inlined = read_without_bounds(order, {output.name}, self.values)
        self.needed: dict[Function, Region] = {output: region}
        self.of: dict[Function, list[Region]] = {}
        self.rules: dict[Function, Region] = {}

    def given(self, f: Function, support: Region | None, opaque: bool) -> None:
        """A rule gives an adjoint of a Function, which may be other than zero over `support`, None where that is not known. `opaque`: no
        definitions say where the Function is read; else the rule has its word only if they do not read it at all."""
        region = support or (Interval.everything(),) * len(f.args)
        if opaque:
            self.need(f, region)
        else:
            self.rules[f] = union(self.rules[f], region) if f in self.rules else region

    def need(self, f: Function, region: Region) -> None:
        """A Function is read over a region, too."""
        self.needed[f] = union(self.needed[f], region) if f in self.needed else region

    def flow(self, f: Function) -> None:
        """All users of a Function have been here; so its own region is known, and it says what it needs of others, if it is needed."""
        if f not in self.needed and f in self.rules:
            self.need(f, self.rules[f])
        if f not in self.needed:
            return
        region = self.needed[f] = promised(f, self.needed[f])
        if f.extern is not None:  # what it reads, only the C function knows: `need` says what its rule does
            self.of[f] = [region]
            return
        after: list[Region] = [region]
        for k in range(len(f.updates), -1, -1):
            stage = stage_of(f, k, region, self.inlined)
            read = boxes(stage, self.values)
            for callee in callees(stage):
                box = read.get(callee.name)
                if box is not None:  # else under conditions that never hold
                    self.need(callee, box)
            region = union(region, read[f.name]) if f.name in read else region
            after.append(region)
        # after[0] is behind the last update; after[j] in front of update len - j
        self.of[f] = list(reversed(after[:-1]))


def promised(f: Function, region: Region) -> Region:
    """A region whose open ends are those that `bound` gives."""
    out = dict(zip(f.args, region))
    for p in f.schedule.bounds:
        if p.min is not None and p.extent is not None:
            i, last = out[p.var], simplify(n.Sub(n.Add(p.min, p.extent), b.i32(1)))
            out[p.var] = usable(Interval(p.min if i.min is None else i.min, last if i.max is None else i.max))
    return tuple(out.values())


def callees(stage: Stage) -> list[Function]:
    """The Functions a stage calls, itself left out."""
    found = [c.func for c in nodes_of(stage.roots(), n.Call) if isinstance(c.func, Function) and not is_own(stage.function, c)]
    return list(dict.fromkeys(found))


def replace_own(f: Function, e: n.Expr, value: Mapping[tuple[tuple[n.Expr, ...], int], n.Expr]) -> n.Expr:
    """`e` with the calls of `f` itself replaced, by coordinates and value index."""

    def call(c: n.Call, rec: Rec) -> n.Expr:
        if is_own(f, c):
            return value[c.args, c.value_index]
        return c.map_children(rec)  # type: ignore[no-any-return]

    return rewrite(e, {n.Call: call}, n.symbol_bit(f.name))

