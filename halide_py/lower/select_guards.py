"""Select guards: a Select whose condition keeps an access of one of its branches in range becomes `if_then_else`.

IR before: `select(x < 4, a(x), b(x - 4))`. After: `if_then_else(x < 4, a(x), b(x - 4))`: only the chosen side is evaluated, so bounds
inference may believe the condition and the loads are really skipped. Of `select(x > 0 && a(x - 1) > 0, u, v)` the first part keeps the
second in range: `if_then_else(x > 0, select(a(x - 1) > 0, u, v), v)`; so it does where the conjunction, or a disjunction `x <= 0 || a(x -
1) > 0`, stands anywhere in an expression: `if_then_else(x <= 0, true, a(x - 1) > 0)`. An index that is data is promised to be where the
condition wants it: `select(0 <= i(x) && i(x) < 4, a(i(x)), v)` reads `a(promise_clamped(i(x), 0, 3))` under its condition. Limits: only
where an argument of a call in the branch shares a variable, or data, with the condition, outside of remainders, and is not itself
clamped; every other Select stays branch free.
"""

from __future__ import annotations

from ..ir import build as b
from ..ir import nodes as n
from ..ir.intrinsics import intrinsic
from ..ir.traverse import Rec, free_variables, nodes_of, rewrite
from ..ir.types import INT32


def _is_limited(e: n.Expr) -> bool:
    """Whether an index is limited by its own form."""
    if isinstance(e, (n.Min, n.Max, n.Mod)):
        return True
    return isinstance(e, n.Call) and e.name in ("unsafe_promise_clamped", "if_then_else")


def decides(condition: n.Expr, branch: n.Expr) -> bool:
    """Whether the condition limits an index of a Func or image called in the branch."""
    if not branch.mask & n.Call.bit:
        return False
    remainders, names = _limits(condition)
    if not names and not remainders:
        return False
    for c in nodes_of(branch, n.Call):
        if c.call_type not in (n.CallType.Halide, n.CallType.Image):
            continue
        for a in c.args:
            if b.as_int(a) is not None or isinstance(a, n.Select):
                continue
            if _is_limited(a):
                if any(k is a for k in nodes_of(condition, type(a))):  # the condition limits it further
                    return True
                continue
            if names & free_variables(a).keys() or not remainders.isdisjoint(nodes_of(a, n.Mod)):
                return True
    return False


def _limits(condition: n.Expr) -> tuple[set[n.Expr], set[str]]:
    """What a condition limits: remainders, and variables outside of them, since `x % 2 == 0` says nothing of x / 2."""
    remainders: set[n.Expr] = set()

    def remainder(m: n.Mod, rec: Rec) -> n.Expr:
        remainders.add(m)
        return b.const(m.type, 0)

    rest = rewrite(condition, {n.Mod: remainder})
    return remainders, {v.name for v in free_variables(rest).values() if v.param is None}


def _compares_variables(condition: n.Expr) -> bool:
    """Whether a condition is made of comparisons of integers that read no memory: what bounds inference can use."""
    if isinstance(condition, (n.And, n.Or)):
        return _compares_variables(condition.a) and _compares_variables(condition.b)
    if isinstance(condition, n.Not):
        return _compares_variables(condition.a)
    if isinstance(condition, n.Call) and condition.name == "likely":
        return _compares_variables(condition.args[0])
    if not isinstance(condition, (n.LT, n.LE, n.GT, n.GE, n.EQ)):
        return False
    compared = condition.a.args[0] if isinstance(condition.a, n.Call) and condition.a.name == "abs" else condition.a
    return compared.type.is_int() and not any(c.call_type in (n.CallType.Halide, n.CallType.Image) for c in nodes_of(condition, n.Call))


def _parts(condition: n.Expr) -> tuple[n.Expr, n.Expr]:
    """A condition as the conjunction of what compares variables and the rest; either may be TRUE."""
    if _compares_variables(condition):
        return condition, b.TRUE
    if isinstance(condition, n.Call) and condition.name == "likely":
        plain, rest = _parts(condition.args[0])
        return plain if b.is_true(plain) else b.likely(plain), rest
    if not isinstance(condition, n.And):
        return b.TRUE, condition
    first, second = _parts(condition.a), _parts(condition.b)
    return b.and_(first[0], second[0]), b.and_(first[1], second[1])


def _alternatives(condition: n.Expr) -> tuple[n.Expr, n.Expr]:
    """A condition as the disjunction of what compares variables and the rest; either may be FALSE."""
    if _compares_variables(condition):
        return condition, b.FALSE
    if not isinstance(condition, n.Or):
        return b.FALSE, condition
    first, second = _alternatives(condition.a), _alternatives(condition.b)
    return b.or_(first[0], second[0]), b.or_(first[1], second[1])


def _reads(e: n.Expr) -> bool:
    return any(c.call_type in (n.CallType.Halide, n.CallType.Image) for c in nodes_of(e, n.Call))


Limits = dict[n.Expr, tuple[n.Expr | None, n.Expr | None]]


def _limits_of_data(condition: n.Expr) -> Limits:
    """The int32 values that read memory and that a conjunction compares with what reads none, and between which numbers they are. Of a sum
    with a constant it is the other part: indices may have it with another constant."""
    if isinstance(condition, n.Call) and condition.name == "likely":
        return _limits_of_data(condition.args[0])
    if isinstance(condition, n.And):
        found = _limits_of_data(condition.a)
        for e, (low, high) in _limits_of_data(condition.b).items():
            before = found.get(e, (None, None))
            found[e] = (before[0] if low is None else low if before[0] is None else b.max_(before[0], low),
                        before[1] if high is None else high if before[1] is None else b.min_(before[1], high))
        return found
    if not isinstance(condition, (n.LT, n.LE, n.GT, n.GE)) or condition.a.type is not INT32:
        return {}
    small, large = (condition.a, condition.b) if isinstance(condition, (n.LT, n.LE)) else (condition.b, condition.a)
    step = 1 if isinstance(condition, (n.LT, n.GT)) else 0
    if _reads(small) and not _reads(large):
        data, constant = _without_constant(small)
        return {data: (None, b.sub(large, b.i32(step + constant)))}
    if _reads(large) and not _reads(small):
        data, constant = _without_constant(large)
        return {data: (b.add(small, b.i32(step - constant)), None)}
    return {}


def _without_constant(e: n.Expr) -> tuple[n.Expr, int]:
    total = 0
    while isinstance(e, (n.Add, n.Sub)) and (constant := b.as_int(e.b)) is not None:
        e, total = e.a, total + (constant if isinstance(e, n.Add) else -constant)
    return e, total


def _promised(branch: n.Expr, limits: Limits) -> n.Expr:
    """A branch whose indices are known to be within limits."""
    def limited(e: n.Expr, rec: Rec) -> n.Expr:
        if isinstance(e, n.Call) and e.name == "unsafe_promise_clamped":
            return e  # once is enough
        if e in limits:
            ends = (b.const(INT32, known) if end is None else end
                    for end, known in zip(limits[e], (INT32.min_value(), INT32.max_value())))
            return intrinsic("unsafe_promise_clamped", INT32, e, *ends)
        return e.map_children(rec)  # type: ignore[no-any-return]

    def call(c: n.Call, rec: Rec) -> n.Expr:
        if c.call_type not in (n.CallType.Halide, n.CallType.Image):
            return c.map_children(rec)  # type: ignore[no-any-return]
        args = tuple(rewrite(a, dict.fromkeys({n.Call, *map(type, limits)}, limited)) for a in c.args)
        return c if args == c.args else n.Call(c.type, c.name, args, c.call_type, c.func, c.value_index, c.param)

    return rewrite(branch, {n.Call: call}) if limits else branch


def guard_selects(e: n.Expr) -> n.Expr:
    """`e` with its deciding Selects made lazy."""

    def select(s: n.Select, rec: Rec) -> n.Expr:
        plain, rest = _parts(s.condition)
        rest = rec(rest)
        new = n.Select(b.and_(plain, rest), rec(s.true_value), rec(s.false_value))
        inner = promised = _promised(new.true_value, _limits_of_data(new.condition))
        if promised is not new.true_value:
            inner = n.Call(new.type, "if_then_else", (rest, promised, new.false_value), n.CallType.PureIntrinsic)
        elif not b.is_true(rest):
            inner = b.select(rest, new.true_value, new.false_value)
        if b.is_true(plain):
            return new if promised is new.true_value else inner
        if promised is new.true_value and not (decides(plain, inner) or decides(plain, new.false_value)):
            return new
        return n.Call(new.type, "if_then_else", (plain, inner, new.false_value), n.CallType.PureIntrinsic)

    def call(c: n.Call, rec: Rec) -> n.Expr:
        new: n.Call = c.map_children(rec)
        if new.name != "if_then_else":
            return new
        args = list(new.args)  # a Func's, whose variables may be data here
        for i in range(1, len(args), 2):
            args[i] = _promised(args[i], _limits_of_data(args[i - 1]))
        return n.Call(new.type, new.name, tuple(args), new.call_type, new.func)

    def conjunction(c: n.And, rec: Rec) -> n.Expr:
        plain, rest = _parts(c)
        if b.is_true(plain) or not decides(plain, rest):
            return c.map_children(rec)  # type: ignore[no-any-return]
        return n.Call(c.type, "if_then_else", (plain, rec(rest), b.FALSE), n.CallType.PureIntrinsic)

    def disjunction(c: n.Or, rec: Rec) -> n.Expr:
        plain, rest = _alternatives(c)
        if b.is_false(plain) or not decides(plain, rest):
            return c.map_children(rec)  # type: ignore[no-any-return]
        return n.Call(c.type, "if_then_else", (plain, b.TRUE, rec(rest)), n.CallType.PureIntrinsic)

    return rewrite(e, {n.Select: select, n.Call: call, n.And: conjunction, n.Or: disjunction})


def guard_predicate(e: n.Expr) -> n.Expr:
    """The same for the predicate of an update, which stays a conjunction that begins with what limits loops."""
    guarded = guard_selects(e)
    return b.and_(_parts(e)[0], guarded) if isinstance(guarded, n.Call) and isinstance(e, n.And) else guarded
