"""The reverse sweep over one expression: from the adjoints of its roots to those of the calls and parameters it reads.

Each node is visited once, users before operands, its adjoint being the sum of what its users gave it. A condition under which a node is
used at all (the branch of a select, the winner of a max) travels along as a guard instead of becoming a factor of zero, so that
0 * inf never turns into NaN; where that condition stands in another Func, the adjoint 0 arrives, and what functions and quotients make of
it is 0 (`singular`). Limits: integers are constants (a float that becomes an integer passes nothing on). Source: Griewank and
Walther, Evaluating Derivatives, 2nd ed., section 3.2 (incremental reverse mode).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .. import lang
from ..errors import CompileError
from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import ExternFunction
from ..ir.printer import to_text
from ..ir.simplify import simplify
from ..ir.traverse import Rec, free_variables, nodes_of, rewrite, substitute
from ..lang.expr import Expr, to_node
from ..lang.promotion import literal
from ..lower.select_guards import decides
from .rule_table import Hook, ask, place_of
from .rules import find_rule, registered
from .singular import may_be_singular, quiet


@dataclass(frozen=True)
class Term:
    """A part of an adjoint: `value` where `guard` holds, nothing elsewhere."""

    value: n.Expr
    guard: n.Expr = b.TRUE

    def select(self) -> n.Expr:
        """As one expression."""
        return b.select(self.guard, self.value, b.const(self.value.type, 0))


def total(terms: Sequence[Term]) -> Term:
    """The sum of terms; their common guard is kept."""
    guards = list(dict.fromkeys(t.guard for t in terms))
    values = list(dict.fromkeys(t.value for t in terms))
    if len(guards) == 1:
        return Term(_sum([t.value for t in terms]), guards[0])
    either = guards[0]
    for g in guards[1:]:
        either = b.or_(either, g)
    either = simplify(either)
    if len(values) == 1 and _disjoint(guards):
        return Term(values[0], either)
    return Term(_sum([t.select() for t in terms]), either)


def _disjoint(guards: list[n.Expr]) -> bool:
    return all(b.is_false(simplify(b.and_(g, h))) for i, g in enumerate(guards) for h in guards[:i])


def _sum(values: Iterable[n.Expr]) -> n.Expr:
    out: n.Expr | None = None
    for v in values:
        out = v if out is None else n.Add(out, v)
    assert out is not None
    return out


def is_leaf(e: n.Expr) -> bool:
    """A float that comes from elsewhere: an element of a Func or image, a scalar parameter."""
    if isinstance(e, n.Variable):
        return e.param is not None and not e.param.is_buffer and e.type.is_float()
    return isinstance(e, n.Call) and e.call_type in (n.CallType.Halide, n.CallType.Image) and e.type.is_float()


def _order(roots: Iterable[n.Expr]) -> list[n.Expr]:
    """The float nodes that depend on a leaf, operands before users."""
    done: dict[n.Expr, bool] = {}
    order: list[n.Expr] = []

    def visit(e: n.Expr) -> bool:
        found = done.get(e)
        if found is None:
            done[e] = found = is_leaf(e)
            if isinstance(e, (n.Reinterpret, n.Cast)) and bits_of_floats(e):  # that has no rule, and may not pass for a constant
                done[e] = found = True
            elif not found and e.type.is_float():
                found = sum(map(visit, e.children())) > 0  # of all of them: each that depends on a leaf is listed
                done[e] = found
            if found:
                order.append(e)
        return found

    for root in roots:
        visit(root)
    return order


def bits_of_floats(e: n.Expr) -> n.Expr | None:
    """The Reinterpret that makes an integer of the bits of a leaf, or a float of integers that depend on one, in what `e` is computed from
    by arithmetic of integers; conditions and indices may look at bits."""
    if isinstance(e, n.Reinterpret):
        return e if any(map(is_leaf, nodes_of(e, (n.Call, n.Variable)))) else None
    if e.type.is_bool() or isinstance(e, n.Call) and e.call_type in (n.CallType.Halide, n.CallType.Image):
        return None
    return next(filter(None, (bits_of_floats(k) for k in e.children() if e.mask & n.Reinterpret.bit and not k.type.is_float())), None)


def expand_lets(e: n.Expr) -> n.Expr:
    """The expression without lets; sharing keeps it small."""

    def let(node: n.Let, rec: Rec) -> n.Expr:
        return rec(substitute({node.name: node.value}, node.body))  # type: ignore[no-any-return]

    return rewrite(e, {n.Let: let})


Keep = Callable[[Term], Term]


def reverse(
    seeds: Sequence[tuple[n.Expr, Term]], where: str, keep: Keep | None = None, perhaps_unused: bool = False
) -> list[tuple[n.Expr, Term]]:
    """The adjoints of the leaves under some roots, each root given with its own adjoint. `where` names the definition for messages.

    `keep` is offered the adjoint of each sum that several leaves stand under, to put it into a Func of its own: they all start from it.
    `perhaps_unused`: an adjoint of 0 may mean that nobody uses the value.
    """
    terms: dict[n.Expr, list[Term]] = {}
    for root, term in seeds:
        terms.setdefault(root, []).append(term)
    order = _order(terms)
    active = set(order)
    leaves: list[tuple[n.Expr, Term]] = []
    for e in reversed(order):
        if e not in terms:
            continue
        adjoint = total(terms.pop(e))
        if b.is_zero(adjoint.value) or b.is_false(adjoint.guard):
            continue
        if keep is not None and isinstance(e, (n.Add, n.Sub)) and not _is_cheap(adjoint) and _stand_under(e, active):
            kept = keep(adjoint)
            adjoint = kept if _is_linear(e, active) or not decides(adjoint.guard, e) else Term(kept.value, adjoint.guard)
        if is_leaf(e):
            leaves.append((e, adjoint))
            continue
        operands = e.children()
        singular = perhaps_unused and may_be_singular(e, keep is not None)
        for operand, given in zip(operands, ask_hook(rule_for(e, where), e, operands, adjoint, where)):
            if given is not None and operand in active:
                given = Term(quiet(given.value, adjoint.value), given.guard) if singular else given
                terms.setdefault(operand, []).append(given)
    return leaves


def rule_for(e: n.Expr, where: str) -> Hook:
    """The hook for a node: that of the table, or the derivative of what a C function's source says. Raises CompileError when there is
    none."""
    row = e.func if isinstance(e, n.Call) else None
    if isinstance(row, ExternFunction) and row.auto and registered(row) is None:
        return _translated(row, where)
    bits = bits_of_floats(e) if isinstance(e, n.Cast) else None
    return find_rule(e if bits is None else bits, where)


def _translated(row: ExternFunction, where: str) -> Hook:
    made = lang.c_functions.translation(row)

    def hook(adjoint: Expr, result: Expr, *args: Expr) -> Any:
        leaves = reverse([(made.value, Term(adjoint.as_node()))], f"{row.name}(), called in {where}")
        actual = {p.name: a.as_node() for p, a in zip(made.params, args)}
        given = {leaf: Expr.of(substitute(actual, term.select())) for leaf, term in leaves}
        parts = tuple(given.get(p) for p in made.params)
        return parts if len(parts) != 1 else parts[0]

    return hook


def _is_cheap(t: Term) -> bool:
    """Whether an adjoint is an element of a Func or a constant, up to a constant factor."""
    e = t.value
    while isinstance(e, n.Mul):
        if b.as_const(e.b) is not None:
            e = e.a
        elif b.as_const(e.a) is not None:
            e = e.b
        else:
            return False
    return b.is_true(t.guard) and (b.as_const(e) is not None or isinstance(e, n.Call) and e.call_type is n.CallType.Halide)


def _is_linear(e: n.Expr, active: Container[n.Expr]) -> bool:
    """Whether leaves are added up, times constants: the partials read nothing, so they need no condition where the adjoint is 0."""
    todo = [e]
    while todo:
        e = todo.pop()
        if isinstance(e, (n.Add, n.Sub, n.Cast)) or isinstance(e, n.Mul) and (b.as_const(e.a) is not None or b.as_const(e.b) is not None):
            todo += [k for k in e.children() if k in active]
        elif not is_leaf(e):
            return False
    return True


def _stand_under(e: n.Expr, active: set[n.Expr]) -> bool:
    """Whether elements of Funcs or images at different places stand under a sum."""
    first: n.Expr | None = None
    for c in nodes_of(e, n.Call):
        if is_leaf(c) and c in active:
            if first is not None:
                return True
            first = c
    return False


def ask_hook(hook: Hook, e: n.Expr, operands: Sequence[n.Expr], adjoint: Term, where: str) -> list[Term | None]:
    """What a hook gives each operand, checked."""
    ours = (getattr(hook, "__module__", "") or "").startswith(__package__)  # none in code that exec() runs
    all_given = [Expr.of(adjoint.value), Expr.of(e), *map(Expr.of, operands)]
    given = hook(*all_given) if ours else ask(hook, f"{_title(hook, e)}, in {where},", "adjoint, result", *all_given)
    parts = list(given) if isinstance(given, (tuple, list)) else [given]
    if len(parts) != len(operands):
        raise CompileError(f"{_title(hook, e)} returned {len(parts)} adjoints for {len(operands)} arguments, in {where}; return one for "
                           f"each, None where the function is not differentiable{place_of(hook)}")
    out = [None if p is None else _checked(p, i, o, adjoint.guard, hook, e, where) for i, (p, o) in enumerate(zip(parts, operands))]
    if not ours:
        _check_variables(out, adjoint, hook, e, where)
    return out


def _check_variables(given: Sequence[Term | None], adjoint: Term, hook: Hook, e: n.Expr, where: str) -> None:
    known = free_variables([e, adjoint.value, adjoint.guard])
    for i, term in enumerate(given):
        stray = (
            [v.name for v in free_variables([term.value, term.guard]).values() if v.name not in known and v.param is None] if term else []
        )
        if stray:
            raise CompileError(f"{_title(hook, e)} returned for argument {i + 1} an adjoint that uses {', '.join(stray)}, in {where}; it "
                               f"may only use the adjoint, the result, the arguments and parameters{place_of(hook)}")


def _checked(part: Any, i: int, operand: n.Expr, guard: n.Expr, hook: Hook, e: n.Expr, where: str) -> Term | None:
    if not operand.type.is_float():
        return None
    what = f"{_title(hook, e)} returned for argument {i + 1}, {_short(operand)},"
    value = literal(part)
    try:
        node = b.const(operand.type, value) if value is not None else to_node(part)
    except TypeError:
        raise CompileError(f"{what} a {type(part).__name__}, in {where}; return an Expr{place_of(hook)}") from None
    if node.type is not operand.type:
        raise CompileError(f"{what} an adjoint of type {node.type}, in {where}, but the argument is {operand.type}; cast "
                           f"it{place_of(hook)}")
    if isinstance(node, n.Select) and b.is_zero(node.false_value):
        return Term(node.true_value, b.and_(guard, node.condition))
    return Term(node, guard)


def _short(e: n.Expr) -> str:
    text = re.sub(r"(?<=[\w$])\.\d+\b", "", to_text(e))  # without the numbers of internal axes
    return text if len(text) < 60 else text[:57] + "..."


def _title(hook: Hook, e: n.Expr) -> str:
    name = e.name if isinstance(e, n.Call) else type(e).__name__
    prototype = f" of `{e.func.prototype}`" if isinstance(e, n.Call) and isinstance(e.func, ExternFunction) and e.func.prototype else ""
    return f"The gradient rule {getattr(hook, '__name__', repr(hook))} for {name}{prototype}"
