"""propagate_adjoints: reverse mode over a whole pipeline. Funcs are visited users first, the stages of each backwards.

What a Func's adjoint is gathered from is complete when the Func is reached; then its adjoint Func is made, its updates are reversed one
by one (`updates`, `tape`), and its definitions contribute to the adjoints of what they read. Source: Li et al., Differentiable programming
for image processing and deep learning in Halide, ACM TOG 37(4), 2018; behaviour of Halide's src/Derivative.cpp.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from ..errors import CompileError, expect, user_error
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.interval import Interval
from ..ir.parameter import Parameter
from ..ir.simplify import simplify
from ..ir.traverse import deep_recursion, substitute
from ..ir.types import INT32
from ..lang.buffer import Buffer
from ..lang.edits import count_edit
from ..lang.expr import to_node
from ..lang.func import Func
from ..lower.environment import environment
from .adjoints import AdjointSum, define, plain, reads
from .contributions import Contribution, vanishing
from .opaque import FuncRule, apply_rule, everything, ordered, read_parameters, rule_of, visible
from .schedule import default_schedule
from .stages import Region, Regions, Stage, stage_of
from .supports import support
from .sweep import Term, reverse
from .tape import reverse_loop
from .updates import reverse_update, seeds

_UNUSED = "the output does not depend on it, or only inside of a custom_gradient, of which it is no argument"


class Derivative:
    """The adjoints of everything an output depends on: `d[f]` is the Func of the output's derivative for the values of `f`.

    `d[func]` is for the values of the pure definition of a Func, `d[func, k]` for its values behind update k; `d[buffer]`, `d[image_param]`
    are for the elements of an input, `d[param]` for a scalar parameter (a Func without dimensions). The dimensions are those of the Func or
    input, the types those of its values. An adjoint is 0 where the output does not depend on a value. All of them are ordinary Funcs, which
    can be scheduled by hand (they come with a default schedule) and differentiated again.

    `notes` says which updates had to save intermediate values, and how many.
    """

    def __init__(self, done: _Pass) -> None:
        self.scheduled: list[Function] = []
        self._stages, self._inputs, self._kept, self.notes = done.stages, done.inputs, done.kept, done.notes

    def __getitem__(self, key: Any) -> Func:
        if isinstance(key, tuple) and len(key) == 2 and isinstance(key[0], Func):
            return self._of_func(key[0], int(key[1]))
        if isinstance(key, Func):
            return self._of_func(key, -1)
        param = getattr(key, "param", None)
        if not isinstance(param, Parameter):
            raise TypeError(f"a Derivative is indexed by a Func, (Func, update), Buffer, ImageParam or Param, not {key!r}")
        if param not in self._inputs:
            why = _UNUSED if param.type.is_float() else f"it is of type {param.type}; integers are constants to the derivative"
            if isinstance(key, Buffer) and param.type.is_float():
                zeros, exprs = ", ".join("0" * param.dimensions), ", ".join(["hl.i32(0)"] * param.dimensions)
                why += f"; an element by plain numbers, {param.name}[{zeros}], is the number itself: write {param.name}[{exprs}]"
            raise user_error(f"There is no derivative for {param.name}: {why}")
        found = self._inputs[param]
        if isinstance(found, CompileError):
            raise found
        return found

    def __contains__(self, key: Any) -> bool:
        """Whether the output depends on an input (a Buffer, ImageParam, Param or Argument) by floats; where it does, reading `d[key]` may
        still raise."""
        return getattr(key, "param", None) in self._inputs

    def _of_func(self, f: Func, update: int) -> Func:
        count = f.num_update_definitions()
        if not -1 <= update < count:
            raise user_error(f"There is no derivative for update {update} of Func {f.name()}, which has {count} updates")
        found = self._stages.get((f.function, update + 1))
        if found is None:
            integer = "its values are integers, which are constants to the derivative"
            raise user_error(f"There is no derivative for Func {f.name()}: {_UNUSED if any(t.is_float() for t in f.types()) else integer}")
        if isinstance(found, CompileError):
            raise found
        return found

    def funcs(self) -> list[Func]:
        """Every adjoint Func, once, to be scheduled by hand."""
        return list(dict.fromkeys(f for f in (*self._stages.values(), *self._kept, *self._inputs.values()) if isinstance(f, Func)))

    def __repr__(self) -> str:
        return f"<halide.Derivative for {', '.join(dict.fromkeys(f.name for f, _ in self._stages))}>"


class _Pass:
    """One reverse pass; the Context of `updates` and `tape`."""

    def __init__(self, output: Function, adjoint: Func, region: Region) -> None:
        environment([output], wrapped=False)  # everything has a definition, and a name of its own
        whole, seen = ordered(output, everything), set(ordered(output, visible))
        self.order = [f for f in whole if f in seen]
        self.regions = Regions(whole, output, region)
        self.sums: dict[Function | Parameter, AdjointSum] = {}
        self.stages: dict[tuple[Function, int], Func | CompileError] = {}
        self.inputs: dict[Parameter, Func | CompileError] = {}
        self.adjoints: set[str] = {adjoint.name()}
        self.perhaps_unused: set[Function] = set()
        self.kept: list[Func] = []
        self.notes: list[str] = []
        self.waiting: dict[FuncRule, dict[Function, Func]] = {}
        self.regions.flow(output)
        self._behind(output, adjoint)
        for f in whole[1:]:
            self.regions.flow(f)
            if f in seen:
                self._function(f)
        for target, s in self.sums.items():
            if isinstance(target, Parameter):
                self._input(target, s)
        for f in self.regions.inlined:
            self.stages[f, 0] = CompileError(
                f"There is no derivative for Func {f.name} ({f.where}): data says where it is read, and nothing limits the index, so no "
                "region holds it. What it reads has derivatives; or limit the index with hl.clamp()"
            )
        self._zeros()

    # -- the Context of updates

    def adjoint_sum(self, f: Function, stage: int) -> AdjointSum:
        """An empty sum for the adjoint of a Func behind a stage."""
        name = f"{plain(f.name)}_adjoint" if stage == 0 else f"{plain(f.name)}_adjoint_update{stage - 1}"
        regions = self.regions.of.get(f)  # none of a Func that is still to come
        return AdjointSum(name, f.args, f.types, f"Func {f.name}").within(regions[stage] if regions else ())

    def finish(self, s: AdjointSum) -> Func:
        """The Func of a sum."""
        f = s.build(self.adjoints)
        self.adjoints.add(f.name())
        return f

    def add(self, target: AdjointSum, stage: Stage, leaf: n.Expr, term: Term) -> None:
        """One contribution of a stage."""
        coordinates: tuple[n.Expr, ...] = leaf.args if isinstance(leaf, n.Call) else ()
        index = leaf.value_index if isinstance(leaf, n.Call) else 0
        vanishes = vanishing([*coordinates, term.value, term.guard], self.adjoints, [a.name for a in stage.axes if a.pure])
        target.add(index, Contribution(coordinates, term, stage.axes, vanishes), stage.where())

    def spread(self, stage: Stage, leaves: Sequence[tuple[n.Expr, Term]]) -> None:
        """The contributions of a stage to what it read."""
        for leaf, term in leaves:
            self.add(self._sum_of(leaf), stage, leaf, term)
            if isinstance(leaf, n.Call) and isinstance(leaf.func, Function) and (stage.perhaps_unused or not b.is_true(term.guard)):
                self.perhaps_unused.add(leaf.func)

    def _sum_of(self, leaf: n.Expr) -> AdjointSum:
        assert isinstance(leaf, (n.Call, n.Variable))
        return self._sum_for(leaf.func if isinstance(leaf, n.Call) and leaf.call_type is n.CallType.Halide else leaf.param)

    def _sum_for(self, target: Any) -> AdjointSum:
        if target not in self.sums:
            if isinstance(target, Function):
                self.sums[target] = self.adjoint_sum(target, len(target.updates))
            else:
                args = tuple(f"_{i}" for i in range(target.dimensions))
                what = f"the {'input' if target.is_buffer else 'parameter'} {target.name}"
                self.sums[target] = AdjointSum(f"{plain(target.name)}_adjoint", args, (target.type,), what, sizes=_sizes(target))
        return self.sums[target]

    def _input(self, p: Parameter, s: AdjointSum) -> None:
        """The adjoint of an input; what is wrong with it is said when it is asked for, not when others are."""
        try:
            self.inputs[p] = self.finish(s)
        except CompileError as e:
            self.inputs[p] = e

    # -- the walk

    def _function(self, f: Function) -> None:
        rule = rule_of(f)
        s = self.sums.get(f) if f in self.regions.of else None  # not in: read under conditions that never hold
        if s is not None:
            adjoint = self.finish(s.within(self.regions.of[f][-1]))
            if s.leaves_out:
                self.perhaps_unused.add(f)
            self._behind(f, adjoint)
        elif rule is not None:
            self._result(rule, f, None)

    def _behind(self, f: Function, adjoint: Func) -> None:
        """Walk the stages of a Func backwards from the adjoint behind the last one."""
        rule = rule_of(f)
        if rule is not None:
            self.stages.update({(f, k): adjoint for k in range(len(f.updates) + 1)})
            self._result(rule, f, adjoint)
            return
        region = self.regions.of[f]
        for k in range(len(f.updates), 0, -1):
            self.stages[f, k] = adjoint
            stage = self._stage(f, k)
            before = reverse_update(self, stage, adjoint)
            if before is not adjoint:  # places that are written over
                self.perhaps_unused.add(f)
            adjoint = reverse_loop(self, stage, adjoint, region[k - 1]) if before is None else before
        self.stages[f, 0] = adjoint
        stage = self._stage(f, 0)
        given = seeds(stage, stage.values, reads(adjoint, stage.args), b.TRUE)
        leaves = reverse(given, stage.where(), lambda term: self._keep(stage, term), stage.perhaps_unused)
        self.spread(stage, leaves)

    def _stage(self, f: Function, k: int) -> Stage:
        stage = stage_of(f, k, self.regions.of[f][k], self.regions.inlined)
        return dataclasses.replace(stage, perhaps_unused=f in self.perhaps_unused)

    def _result(self, rule: FuncRule, f: Function, adjoint: Func | None) -> None:
        """The adjoint of one result of a rule, None for zero; behind the last result that the output depends on, the rule is asked."""
        known = self.waiting.setdefault(rule, {})
        if adjoint is not None:
            known[f] = adjoint
        left = self.order[self.order.index(f) + 1:]
        if not known or any(o in left for o in rule.outputs):
            return
        adjoints = [known.get(o) or self.adjoint_sum(o, len(o.updates)).build() for o in rule.outputs]
        given, leaves = apply_rule(rule, adjoints)
        regions = {a.name(): self.regions.of[o][-1] for a, o in zip(adjoints, rule.outputs) if o in self.regions.of}
        for one in given:
            self._sum_for(one.target).add(one.index, one.contribution, rule.title())
            if isinstance(one.target, Function):
                self.regions.given(one.target, support(one.source, regions), rule.outputs[0].extern is not None)
            if isinstance(one.target, Function) and not self.perhaps_unused.isdisjoint(rule.outputs):
                self.perhaps_unused.add(one.target)
        for leaf, term in leaves:
            at = leaf.args if isinstance(leaf, n.Call) else ()
            self._sum_of(leaf).add(leaf.value_index if isinstance(leaf, n.Call) else 0, Contribution(at, term, ()), rule.title())

    def _keep(self, stage: Stage, term: Term) -> Term:
        """A term that is used at several places, as a Func of its own: 0 outside of the region, so that a stencil of it needs no
        conditions."""
        f = Func(f"{plain(stage.function.name)}_adjoint_inside")
        inside = simplify(b.all_of(a.inside(a.variable()) for a in stage.axes))
        value = b.select(b.and_(inside if b.is_true(inside) else b.likely(inside), term.guard), term.value, b.const(term.value.type, 0))
        define(f, [n.Variable(INT32, a) for a in stage.function.args], [substitute(stage.dimensions(), value)])
        self.adjoints.add(f.name())
        self.kept.append(f)
        return Term(reads(f, stage.args)[0])

    def _zeros(self) -> None:
        """Adjoints of what the output depends on without any derivative."""
        for f in self.order:
            if (f, 0) not in self.stages and any(t.is_float() for t in f.types):
                zero = self.adjoint_sum(f, len(f.updates)).build()
                self.stages.update({(f, k): zero for k in range(len(f.updates) + 1)})
            for p in read_parameters(f):
                if p not in self.inputs:
                    args = tuple(f"_{i}" for i in range(p.dimensions))
                    self.inputs[p] = AdjointSum(f"{plain(p.name)}_adjoint", args, (p.type,), p.name).build()


def _sizes(p: Parameter) -> tuple[int | None, ...]:
    """The extents of an input, as far as they are known now."""
    return tuple(
        p.buffer.dim(d).extent() if p.buffer is not None else b.as_int(e) if (e := p.dims[d].extent) is not None else None
        for d in range(p.dimensions)
    )


def propagate_adjoints(output: Func, adjoint: Func | Buffer | None = None, output_bounds: Any = None) -> Derivative:
    """The derivatives of `output` for every Func, input and parameter it depends on, by the reverse mode.

    Without `adjoint` the output is a scalar (a Func without dimensions), or the sum of all its values. With a Buffer of adjoints, one for
    each value over the buffer's bounds, each is weighted. With a Func of adjoints the region is `output_bounds`: a (min, extent) pair for
    each dimension.

    Raises CompileError for an operation without gradient rule (naming the function, the Func and the update, with the line that registers a
    rule), for a sum over a region that is not known, and for adjoints that do not match the output.

    >>> loss = hl.Func("loss")
    >>> loss[()] = 0.0
    >>> loss[()] += (image[r.x] - target[r.x]) ** 2
    >>> d = hl.propagate_adjoints(loss)
    >>> d[image].realize([n])
    """
    if not expect(output, Func, "propagate_adjoints()").defined():
        raise user_error(f"propagate_adjoints() of Func {output.name()}, which has no definition")
    if not any(t.is_float() for t in output.types()):
        raise user_error(f"propagate_adjoints() of Func {output.name()}, whose values are integers; only floats have derivatives")
    with deep_recursion():
        seed, region = _seed(output, adjoint, output_bounds)
        done = _Pass(output.function, seed, region)
        out = Derivative(done)
        out.scheduled = default_schedule(out.funcs(), ordered(output.function, everything))
    return out


def schedule_gradients(d: Derivative, loops: bool = True) -> Derivative:
    """Turn the default loops of a Derivative's Funcs on or off: vectors over the first dimension, threads over the last.

    They are on after `propagate_adjoints`, and concern stages without directives only: scheduling a stage of `d[f]`, or computing another
    Func at one of its loops, replaces them there. Without them every loop is serial. Where Funcs are computed stays as it is. Gives `d`.
    """
    for f in d.scheduled:
        f.schedule.default_loops = loops
    count_edit()
    return d


def _seed(output: Func, adjoint: Func | Buffer | None, bounds: Any) -> tuple[Func, Region]:
    """The adjoint of the output as a Func that is 0 outside of its region, and the region."""
    f = output.function
    if adjoint is None:
        if len(f.types) > 1:
            raise user_error(f"propagate_adjoints() of Func {f.name}, which has {len(f.types)} values; give it a Func with the adjoint of "
                             "each, and bounds")
        return _ones(f), (Interval.everything(),) * len(f.args)
    if isinstance(adjoint, Buffer):
        if bounds is not None:
            raise user_error("propagate_adjoints() takes output_bounds with a Func of adjoints; a Buffer has its own bounds")
        region = tuple(_interval(adjoint.dim(d).min(), adjoint.dim(d).extent()) for d in range(adjoint.dimensions()))
        given = Func(adjoint)
    else:
        if bounds is None:
            raise user_error("propagate_adjoints() with a Func of adjoints needs output_bounds: a (min, extent) pair for each dimension")
        region = tuple(_interval(*_pair(r)) for r in bounds)
        given = adjoint
    if given.dimensions() != len(f.args) or len(region) != len(f.args):
        raise user_error(f"propagate_adjoints(): Func {f.name} has {len(f.args)} dimensions, but its adjoint has {given.dimensions()} and "
                         f"output_bounds {len(region)}")
    if given.outputs() != len(f.types):
        raise user_error(f"propagate_adjoints(): Func {f.name} has {len(f.types)} values, but its adjoint {given.outputs()}")
    return _limited(f, given, region), region


def _pair(r: Any) -> tuple[Any, Any]:
    return (r.min, r.extent) if hasattr(r, "extent") else (r[0], r[1])


def _interval(low: Any, extent: Any) -> Interval:
    first, size = b.cast(INT32, to_node(low)), b.cast(INT32, to_node(extent))
    return Interval(simplify(first), simplify(b.sub(b.add(first, size), b.i32(1))))


def _ones(f: Function) -> Func:
    seed = Func(f"{plain(f.name)}_adjoint")
    define(seed, [n.Variable(INT32, a) for a in f.args], [b.const(t, 1) for t in f.types])
    return seed


def _limited(f: Function, given: Func, region: Region) -> Func:
    """The given adjoints as the types of the output, 0 outside of the region."""
    seed = Func(f"{plain(f.name)}_adjoint")
    args = [n.Variable(INT32, a) for a in f.args]
    inside: n.Expr = b.TRUE
    for x, i in zip(args, region):
        assert i.min is not None and i.max is not None
        inside = b.and_(inside, b.and_(n.LE(i.min, x), n.LE(x, i.max)))
    values = []
    for t, v in zip(f.types, reads(given, args)):
        if t.is_float() != v.type.is_float():
            raise user_error(f"propagate_adjoints(): the adjoint of Func {f.name} is {v.type}, but its values are {t}")
        values.append(b.select(inside if b.is_true(inside) else b.likely(inside), b.cast(t, v), b.const(t, 0)))
    define(seed, args, values)
    return seed


