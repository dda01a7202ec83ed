"""Funcs the reverse pass does not look inside: results of `custom_gradient` functions, and extern stages. A rule turns their adjoints into
those of the arguments.

A `FuncRule` hangs at each Function it stands for; those of extern stages are found by the name of the C function. To the reverse pass such
a Function reads its arguments and nothing else, and the regions of what it really reads still follow from its definitions. A rule
of several results is asked once, when the adjoints of all are complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.function import Function
from ..ir.interval import Interval
from ..ir.parameter import Parameter
from ..ir.traverse import free_variables, nodes_of
from ..ir.types import Type
from ..lang.expr import Expr, convertible, to_node
from ..lang.func import Func
from ..lang.param import ImageParam
from ..lang.promotion import literal
from ..lower import environment
from .adjoints import reads
from .contributions import Contribution, fresh_axis
from .rule_table import ask
from .sweep import Term, reverse

Target = Function | Parameter
Callees = Callable[[Function], Iterable[Function]]


@dataclass(eq=False)
class FuncRule:
    """`hook(adjoint, result, *inputs)` gives the adjoint of each input; `adjoint` and `result` are Funcs, or tuples of them for several
    results.
    `name` is the function's, `where` that of the call; `inputs` are the arguments as the user gave them."""

    name: str
    where: str
    outputs: tuple[Function, ...]
    inputs: tuple[Any, ...]
    hook: Callable[..., Any]

    def title(self) -> str:
        """What messages call it."""
        return f"The gradient rule of {self.name}() ({self.where})"


@dataclass(frozen=True)
class Given:
    """One contribution of a rule, to value `index` of a target, from the Func `source`."""

    source: Function
    target: Target
    index: int
    contribution: Contribution


_STAGES: dict[str, Callable[..., Any]] = {}  # the rules of extern stages, by the name of the C function
_TANGENTS: dict[str, Callable[..., Any]] = {}  # those for forward mode


def register_extern_stage_gradient(name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
    """Give every extern stage of a C function its gradient rule: `hook(adjoint, result, *params)`.

    `adjoint` and `result` are Funcs, `params` what `define_extern` was given. It returns for each a Func over the same dimensions (which
    may be an extern stage itself), an Expr or a Func without dimensions for a scalar, or None. `define_extern(..., gradient=hook)` is for
    one stage alone, and goes first. Returns the hook.
    """
    if not callable(hook):
        raise TypeError(f"register_extern_stage_gradient({name!r}, ...) takes a function (adjoint, result, *params), not {hook!r}")
    _STAGES[name] = hook
    return hook


def register_extern_stage_tangent(name: str, hook: Callable[..., Any]) -> Callable[..., Any]:
    """Give every extern stage of a C function its rule for forward mode: `hook(tangents, result, *params)`.

    `result` is the stage's Func, `params` what `define_extern` was given, `tangents` a tuple with the tangent of each: a Func over the
    dimensions of a Func or image, an Expr for a scalar, None for what does not move. It returns the tangent of the result: a Func over its
    dimensions, with one value for each of its floats (which may be an extern stage itself). `define_extern(..., tangent=hook)` is for one
    stage alone, and goes first. Returns the hook.
    """
    if not callable(hook):
        raise TypeError(f"register_extern_stage_tangent({name!r}, ...) takes a function (tangents, result, *params), not {hook!r}")
    _TANGENTS[name] = hook
    return hook


def stage_tangent(f: Function, tangents: Callable[[Any], Any]) -> Func:
    """The tangent of an extern stage by its rule; `tangents` gives that of an argument. Raises CompileError without a rule, and for one
    that gives something else."""
    extern = f.extern
    assert extern is not None
    name = extern.row.name
    hook = extern.tangent or _TANGENTS.get(name)
    given = _given(f)
    if hook is None:
        args = ", ".join(f"a{i}" for i in range(len(given)))
        raise CompileError(f"Func {f.name} is an extern stage, computed by the C function {name}, and depends on what propagate_tangents() "
                           f"was given, but has no rule for forward mode ({f.where}). Register one before: "
                           f"hl.register_extern_stage_tangent({name!r}, lambda tangents, result, {args}: ...). It returns a Func of "
                           "tangents; tangents has that of each argument, None for what does not move")
    found = ask(hook, f"The tangent rule of {name}() ({f.where})", "tangents, result", tuple(map(tangents, given)), Func.of(f), *given)
    floats = tuple(t for t in f.types if t.is_float())
    if not isinstance(found, Func) or not found.defined() or found.dimensions() != len(f.args) or tuple(found.types()) != floats:
        got = (
            f"Func {found.name()} of {found.dimensions()} dimensions and types {', '.join(map(str, found.types()))}"
            if isinstance(found, Func) and found.defined()
            else repr(found)
        )
        raise CompileError(f"The tangent rule of {name}() ({f.where}) returned {got}; return a Func over the {len(f.args)} dimensions of "
                           f"{f.name}, of types {', '.join(map(str, floats))}")
    return found


def _given(f: Function) -> tuple[Any, ...]:
    """The arguments of an extern stage, also of a pipeline that was saved and read back."""
    assert f.extern is not None
    return f.extern.given or tuple(map(_handle, f.extern.args))


def rule_of(f: Function) -> FuncRule | None:
    """The rule that stands for a Function, None when its definitions do. That of an extern stage without any raises CompileError when it is
    asked."""
    if f.gradient is None and f.extern is not None:
        name = f.extern.row.name
        title = f"The gradient rule of {name}() ({f.where})"
        f.gradient = FuncRule(name, f.where, (f,), _given(f), lambda *given: ask(_extern_hook(f), title, "adjoint, result", *given))
    return f.gradient  # type: ignore[no-any-return]


def _handle(a: Function | Parameter | n.Expr) -> Any:
    return Func.of(a) if isinstance(a, Function) else ImageParam.of(a) if isinstance(a, Parameter) else Expr.of(a)


def _extern_hook(f: Function) -> Callable[..., Any]:
    extern = f.extern
    assert extern is not None
    hook = extern.gradient or _STAGES.get(extern.row.name)
    if hook is None:
        args = ", ".join(f"a{i}" for i in range(len(extern.given)))
        raise CompileError(f"Func {f.name} is an extern stage, computed by the C function {extern.row.name}, which has no gradient rule "
                           f"({f.where}). Register one before propagate_adjoints(): hl.register_extern_stage_gradient({extern.row.name!r}, "
                           f"lambda adjoint, result, {args}: ...). It returns a Func of adjoints for each argument, None where it is not "
                           "differentiable")
    return hook


def ordered(output: Function, callees: Callees) -> list[Function]:
    """The output and all it reaches, users before what they use."""
    done: dict[Function, None] = {}
    entered = {output}
    stack: list[tuple[Function, Iterator[Function]]] = [(output, iter(callees(output)))]
    while stack:
        f, rest = stack[-1]
        callee = next((c for c in rest if c not in entered), None)
        if callee is None:
            done[f] = None
            stack.pop()
        else:
            entered.add(callee)
            stack.append((callee, iter(callees(callee))))
    return list(reversed(done))


def visible(f: Function) -> list[Function]:
    """What a Function reads as the reverse pass sees it."""
    rule = rule_of(f)
    return environment.callees(f) if rule is None else _arguments(rule)


def everything(f: Function) -> list[Function]:
    """What a Function reads, and the arguments of its rule, which may be more."""
    rule = rule_of(f)
    return environment.callees(f) if rule is None else list(dict.fromkeys([*environment.callees(f), *_arguments(rule)]))


def _arguments(rule: FuncRule) -> list[Function]:
    """The Functions among the arguments of a rule, and those its Exprs read."""
    found: dict[Function, None] = {}
    for given in rule.inputs:
        if isinstance(given, Func):
            found[given.function] = None
        elif _is_expr(given):
            found.update({c.func: None for c in nodes_of(to_node(given), n.Call) if isinstance(c.func, Function)})
    return list(found)


def read_parameters(f: Function) -> list[Parameter]:
    """The float parameters and images that a Function reads, as the reverse pass sees it."""
    rule = rule_of(f)
    if rule is None:
        roots = [e for d in f.stages() for e in (*d.values, *d.args, d.predicate)]
        images = []
    else:
        roots = [to_node(given) for given in rule.inputs if _is_expr(given)]
        images = [given.param for given in rule.inputs if _is_image(given)]
    found = [
        c.param for c in nodes_of(roots, (n.Call, n.Variable)) if isinstance(c, n.Call) or c.param is not None and not c.param.is_buffer
    ]
    return [p for p in dict.fromkeys([*found, *images]) if isinstance(p, Parameter) and p.type.is_float()]


def _is_expr(given: Any) -> bool:
    """Whether an argument is an Expr (a Param is one, an image or a number is none)."""
    return literal(given) is None and not _is_image(given) and convertible(given)


def _is_image(given: Any) -> bool:
    param = getattr(given, "param", None)
    return isinstance(param, Parameter) and param.is_buffer


def apply_rule(rule: FuncRule, adjoints: Sequence[Func]) -> tuple[list[Given], list[tuple[n.Expr, Term]]]:
    """What a rule adds to the adjoints of Funcs and images it was given, and of the leaves of Exprs."""
    results = tuple(map(Func.of, rule.outputs))
    single = len(results) == 1
    returned = rule.hook(adjoints[0] if single else tuple(adjoints), results[0] if single else results, *rule.inputs)
    parts = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    if len(parts) != len(rule.inputs):
        raise CompileError(f"{rule.title()} returned {len(parts)} adjoints for {len(rule.inputs)} arguments; return one for each, None "
                           "where it is not differentiable")
    given: list[Given] = []
    leaves: list[tuple[n.Expr, Term]] = []
    for i, (argument, part) in enumerate(zip(rule.inputs, parts)):
        what = f"{rule.title()} returned for argument {i + 1}"
        if part is None:
            continue
        if isinstance(argument, Func):
            f = argument.function
            given += _for_dimensions(what, f, f.types, f.args, part)
        elif _is_image(argument):
            p = argument.param
            names = tuple(f"_{d}" for d in range(p.dimensions))
            given += _for_dimensions(f"{what}, {p.name},", p, (p.type,), names, part)
        elif _is_expr(argument):
            leaves += _for_expr(what, to_node(argument), part)
        else:
            raise CompileError(f"{what}, {argument!r}, an adjoint; it is a constant: return None")
    return given, leaves


def _for_dimensions(
    what: str, target: Target, types: Sequence[Type], names: Sequence[str], part: Any
) -> Iterator[Given]:
    """A Func of adjoints, over the dimensions of a Func or image."""
    if not isinstance(part, Func):
        raise CompileError(f"{what} a {type(part).__name__}; return a Func over the {len(names)} dimensions of {target.name}")
    found = part.function
    if not part.defined() or len(found.args) != len(names) or len(found.types) != len(types):
        shape = f"of {len(found.args)} dimensions and {len(found.types)} values" if part.defined() else "without definition"
        raise CompileError(f"{what} Func {part.name()} {shape}, but {target.name} has {len(names)} dimensions and {len(types)} values")
    for t, got in zip(types, found.types):
        if t.is_float() and got is not t:
            raise CompileError(f"{what} Func {part.name()} of type {got}, but {target.name} is {t}; cast it")
    axes = tuple(fresh_axis(name, Interval.everything(), True) for name in names)
    at = tuple(a.variable() for a in axes)
    for i, (t, value) in enumerate(zip(types, reads(part, at))):
        if t.is_float():
            yield Given(found, target, i, Contribution(at, Term(value), axes))


def _for_expr(what: str, argument: n.Expr, part: Any) -> list[tuple[n.Expr, Term]]:
    """The adjoint of an Expr without free Vars, passed on to what it is made of."""
    if isinstance(part, Func):
        if not part.defined() or part.dimensions():
            raise CompileError(f"{what} Func {part.name()}, which has dimensions; the argument is one value: return an Expr or a Func "
                               "without dimensions")
        value = reads(part, ())[0]
    else:
        value = b.const(argument.type, part) if literal(part) is not None else to_node(part)
    stray = [v.name for v in free_variables([value, argument]).values() if v.param is None]
    if stray:
        raise CompileError(f"{what} uses {', '.join(stray)}; the argument and its adjoint are one value each: sum over an RDom")
    if not argument.type.is_float():
        return []
    if value.type is not argument.type:
        raise CompileError(f"{what} an adjoint of type {value.type}, but the argument is {argument.type}; cast it")
    return reverse([(argument, Term(value))], what)


def wrapped(f: Func) -> Func:
    """A Func of its own with the values of another: rules cannot hang at what has a meaning of its own."""
    new = Func(f"{f.name().replace('$', '_')}_with_gradient")
    new[tuple(f.args())] = f[tuple(f.args())] if f.outputs() == 1 else tuple(f[tuple(f.args())])
    return new


