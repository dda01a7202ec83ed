"""propagate_tangents: forward mode. Every Func that depends on a seeded input gets a dual, whose values are the Func's and their tangents.

In: Functions with definitions. Out: for `f[args] = e` the dual `g[args] = (e, e')`, stage by stage, where e' is the sum over the operands
of each node of its partial times the operand's tangent; reads of `f` itself become reads of `g`, so updates of every kind need no tape.
Partials come from the gradient rules, asked with the adjoint 1; conditions stay conditions, as in `sweep`. Functions of `custom_gradient`
are looked into: comparing with the reverse pass then checks their rules. Extern stages have rules of their own (`opaque`). Source: Griewank
and Walther, Evaluating Derivatives, section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import user_error
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.interval import Interval
from ..ir.parameter import Parameter
from ..ir.simplify import simplify
from ..ir.traverse import Rec, deep_recursion, free_variables, nodes_of, rewrite
from ..ir.types import INT32
from ..lang.buffer import Buffer
from ..lang.expr import Expr, to_node
from ..lang.func import Func
from ..lang.param import OutputImageParam
from ..lang.promotion import literal
from ..lower.environment import definition_roots, environment
from .adjoints import as_value, define, define_over, plain, reads
from .opaque import stage_tangent
from .rules import find_rule
from .schedule import default_schedule
from .singular import may_be_singular, quiet
from .stages import Stage, is_own, stage_of
from .sweep import Term, ask_hook, bits_of_floats, is_leaf, rule_for

Seeds = Mapping[Any, Any] | Iterable[tuple[Any, Any]]


class _Forward:
    """One forward pass; `seeds` are the tangents of inputs, as Funcs over their dimensions or as Exprs."""

    def __init__(self, seeds: Seeds) -> None:
        self.seeds: dict[Function | Parameter, Func | n.Expr] = {}
        self.duals: dict[Function, Func] = {}
        self.current: tuple[Function, Func] | None = None
        self.memo: dict[n.Expr, n.Expr | None] = {}
        for given, tangent in list(seeds.items() if isinstance(seeds, Mapping) else seeds):
            self._seed(given, tangent)

    def _seed(self, given: Any, tangent: Any) -> None:
        if isinstance(given, Func):
            key: Function | Parameter = given.function
            types, dimensions = given.function.types, given.dimensions()
        else:
            param = getattr(given, "param", None)
            if not isinstance(param, Parameter):
                raise TypeError(f"propagate_tangents() takes tangents of Funcs, Buffers, ImageParams and Params, not of {given!r}")
            key, types, dimensions = param, (param.type,), param.dimensions
        if not all(t.is_float() for t in types):
            raise user_error(f"propagate_tangents(): {key.name} has values of type {', '.join(map(str, types))}; only floats have tangents")
        if isinstance(key, Parameter) and not key.is_buffer and not isinstance(tangent, Func):
            node = b.const(key.type, tangent) if literal(tangent) is not None else to_node(tangent)
            if node.type is not key.type or any(v.param is None for v in free_variables(node).values()):
                raise user_error(f"propagate_tangents(): the tangent of {key.name} must be one value of type {key.type}")
            self.seeds[key] = node
            return
        found = Func(tangent) if isinstance(tangent, (Buffer, OutputImageParam)) else tangent
        if not isinstance(found, Func) or not found.defined():
            raise user_error(f"propagate_tangents(): the tangent of {key.name} must be a Func or a Buffer over its {dimensions} "
                             f"dimensions, not {tangent!r}")
        if found.dimensions() != dimensions or tuple(found.types()) != tuple(types):
            raise user_error(f"propagate_tangents(): the tangent of {key.name} has {found.dimensions()} dimensions and type "
                             f"{', '.join(map(str, found.types()))}, but {key.name} has {dimensions} and {', '.join(map(str, types))}")
        self.seeds[key] = found

    # -- Funcs

    def visit(self, f: Function) -> None:
        """Make the dual of a Function, if it depends on a seed; those it calls have been visited."""
        if f in self.seeds or not self._depends(f):
            return
        if f.extern is not None:
            self._extern(f)
            return
        dual = Func(f"{plain(f.name)}_dual")
        self.current = f, dual
        for k in range(len(f.stages())):
            stage = stage_of(f, k, (Interval.everything(),) * len(f.args))
            self.memo = {}
            tangents = [self._of_value(v, stage) for v in stage.values]
            args, values = (
                [self.retarget(e) for e in each] for each in (stage.args, (*stage.values, *(t for t in tangents if t is not None)))
            )
            define_over(dual, stage, args, values, self.retarget(stage.predicate))
        self.duals[f] = dual

    def _extern(self, f: Function) -> None:
        """The dual of an extern stage: what it computes, and what its rule says."""
        self.current, self.memo = None, {}
        tangent = stage_tangent(f, lambda given: self._of_argument(f, given))
        dual = Func(f"{plain(f.name)}_dual")
        at = [n.Variable(INT32, a) for a in f.args]
        define(dual, at, [*reads(Func.of(f), at), *reads(tangent, at)])
        self.duals[f] = dual

    def _of_argument(self, f: Function, given: Any) -> Any:
        """The tangent of an argument of an extern stage: a Func, an Expr, or None."""
        if isinstance(given, Func):
            seed, dual = self.seeds.get(given.function), self.duals.get(given.function)
            if seed is not None or dual is None:
                return seed
            moved = Func(f"{plain(given.name())}_tangent")
            at = [n.Variable(INT32, a) for a in given.function.args]
            define(moved, at, reads(dual, at)[len(given.function.types):])
            return moved.compute_root()
        param = getattr(given, "param", None)
        if isinstance(param, Parameter) and param.is_buffer:
            return self.seeds.get(param)
        found = None if literal(given) is not None else self.tangent(to_node(given), f"the arguments of Func {f.name}")
        return None if found is None else Expr.of(found)

    def _depends(self, f: Function) -> bool:
        return any(self._seeded(c) for d in f.stages() for c in nodes_of(definition_roots(d), (n.Call, n.Variable)))

    def _seeded(self, leaf: n.Expr) -> bool:
        target = leaf.func if isinstance(leaf, n.Call) and leaf.call_type is n.CallType.Halide else leaf.param  # type: ignore[attr-defined]
        return target is not None and (target in self.duals or target in self.seeds)

    def retarget(self, e: n.Expr) -> n.Expr:
        """`e` with the values of Funcs that have duals taken from these; what a custom_gradient marks is looked into."""

        def call(c: n.Call, rec: Rec) -> n.Expr:
            new: n.Call = c.map_children(rec)
            dual = self._dual_of(new)
            return new if dual is None else n.Call(new.type, dual.name(), new.args, n.CallType.Halide, dual.function, new.value_index)

        return simplify(rewrite(e, {n.Call: call}))

    def _dual_of(self, c: n.Call) -> Func | None:
        if self.current is not None and is_own(self.current[0], c):
            return self.current[1]
        return self.duals.get(c.func) if c.call_type is n.CallType.Halide and isinstance(c.func, Function) else None

    # -- Exprs

    def _of_value(self, v: n.Expr, stage: Stage) -> n.Expr | None:
        """The tangent of a value; None for an integer, which has none."""
        if not v.type.is_float():
            return None
        return self.tangent(v, stage.where()) or b.const(v.type, 0)

    def tangent(self, e: n.Expr, where: str) -> n.Expr | None:
        """The tangent of an Expr, None for zero."""
        if e not in self.memo:
            self.memo[e] = self._tangent(e, where)
        return self.memo[e]

    def _tangent(self, e: n.Expr, where: str) -> n.Expr | None:
        if is_leaf(e):
            return self._of_leaf(e)
        bits = bits_of_floats(e) if isinstance(e, (n.Reinterpret, n.Cast)) else None
        if bits is not None and any(is_leaf(c) and self._of_leaf(c) is not None for c in nodes_of(bits, (n.Call, n.Variable))):
            find_rule(bits, where)  # raises: bits of floats may not pass for constants
        if not e.type.is_float():
            return None
        operands = e.children()
        if isinstance(e, n.Call) and e.name == "custom_gradient" and "inside" in getattr(e.func, "extra", {}):
            return self.tangent(operands[0], where)
        tangents = [self.tangent(o, where) for o in operands]
        if not any(t is not None for t in tangents):
            return None
        partials = ask_hook(rule_for(e, where), e, operands, Term(b.const(e.type, 1)), where)
        singular = may_be_singular(e, False)
        out: n.Expr | None = None
        for partial, t in zip(partials, tangents):
            if partial is None or t is None or b.is_zero(partial.value):
                continue
            product = b.cast(e.type, n.Mul(partial.value, t))
            term = Term(quiet(product, t) if singular else product, partial.guard).select()
            out = term if out is None else n.Add(out, term)
        return None if out is None else simplify(out)

    def _of_leaf(self, e: n.Expr) -> n.Expr | None:
        if isinstance(e, n.Variable):
            found = self.seeds.get(e.param) if e.param is not None else None
            return reads(found, ())[0] if isinstance(found, Func) else found
        assert isinstance(e, n.Call)
        dual = self._dual_of(e)
        if dual is not None:
            f = self.current[0] if self.current is not None and is_own(self.current[0], e) else e.func
            assert isinstance(f, Function)
            return n.Call(e.type, dual.name(), e.args, n.CallType.Halide, dual.function, tangent_index(f, e.value_index))
        seed = self.seeds.get(e.func if e.call_type is n.CallType.Halide else e.param)  # type: ignore[arg-type]
        return reads(seed, e.args)[e.value_index] if isinstance(seed, Func) else None


def tangent_index(f: Function, value: int) -> int:
    """The index in a dual of the tangent of a value: tangents of the floats follow all the values."""
    return len(f.types) + sum(t.is_float() for t in f.types[:value])


def propagate_tangents(output: Func, tangents: Seeds) -> Func:
    """The derivative of `output` in a direction, by the forward mode: a Func of its dimensions, with the tangent of each float value.

    `tangents` says how the inputs move: pairs (input, tangent), or a dict. Inputs are Funcs, Buffers, ImageParams and Params; a tangent is
    a Func or Buffer over the same dimensions (for a Param a number or an Expr). One pass costs about two to three runs of the pipeline,
    whatever the number of outputs; `propagate_adjoints` serves many inputs and one output. Updates of every kind are supported without
    saved values.

    Extern stages need a rule (`register_extern_stage_tangent`). Raises CompileError for an operation or stage without one, and for tangents
    that do not match.

    >>> slope = hl.propagate_tangents(curve, [(k, 1.0)])  # d curve / dk, everywhere
    """
    f = output.function
    if not output.defined():
        raise user_error(f"propagate_tangents() of Func {f.name}, which has no definition")
    if not any(t.is_float() for t in f.types):
        raise user_error(f"propagate_tangents() of Func {f.name}, whose values are integers; only floats have derivatives")
    with deep_recursion():
        forward = _Forward(tangents)
        for one in environment([f]).values():
            forward.visit(one)
        forward.current = None
        result = Func(f"{plain(f.name)}_tangent")
        args = tuple(output.args())
        at = [a.as_node() for a in args]
        calls = [n.Call(t, f.name, tuple(at), n.CallType.Halide, f, i) for i, t in enumerate(f.types) if t.is_float()]
        forward.memo = {}
        result[args] = as_value([forward.tangent(c, f"Func {f.name}") or b.const(c.type, 0) for c in calls])
        default_schedule([*forward.duals.values(), result])
    return result

