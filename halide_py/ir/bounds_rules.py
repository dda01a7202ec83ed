"""The interval of each kind of expression from those of its operands. Source: Halide's src/Bounds.cpp for what is considered bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import nodes as n
from .bounds import RULES, Bounds
from .build import FALSE, TRUE, as_const, as_int, const, is_false, is_likely, is_true, select
from .conditions import conjuncts, limit
from .interval_type import Interval, type_interval
from .simplify import linear
from .simplify.ranges import UNKNOWN, Range, fit, wraps
from .simplify.ranges import add as add_ranges
from .simplify.ranges import times as scale_range

EVERYTHING = Interval.everything()


def _variable(b: Bounds, e: n.Variable) -> Interval:
    found = b.scope.get(e.name)
    if found is None:
        return Interval(e, e) if e.type.is_scalar() else type_interval(e.type)
    return _limited(b, found, {e: 1}, 0) if b.limits else found


def _leaf(rule: Callable[[Bounds, Any], Interval]) -> Callable[[Bounds, Any], Interval]:
    """The rule of what a linear form takes as a whole: conditions may speak of it."""

    def limited(b: Bounds, e: Any) -> Interval:
        found = rule(b, e)
        return _limited(b, found, {e: 1}, 0) if b.limits and e.type.overflow_is_undefined() else found

    return limited


def _limited(b: Bounds, i: Interval, terms: linear.Terms, constant: int) -> Interval:
    """`i` intersected with what conditions say of the linear form, or of a part of it."""
    for form, low, high in b.limits:
        times = _multiple(form, terms)
        if not times:
            continue
        rest = {t: k for t, k in terms.items() if t not in form}
        more = b.sum_of(next(iter(form)), rest, constant)
        if times < 0:
            low, high = high, low
        if low is not None and more.min is not None:
            i = i.intersection(Interval(b.simple(n.Add(linear.scaled(low, times), more.min)), None))
        if high is not None and more.max is not None:
            i = i.intersection(Interval(None, b.simple(n.Add(linear.scaled(high, times), more.max))))
    return i


def _multiple(form: linear.Terms, terms: linear.Terms) -> int:
    """How many times `form` is a part of `terms`; 0 if it is not."""
    if len(form) > len(terms):
        return 0
    x, c = next(iter(form.items()))
    w = terms.get(x)
    if w is None or w % c or not all(terms.get(t) == k * (w // c) for t, k in form.items()):
        return 0
    return w // c


def _linear(b: Bounds, e: n.Expr, terms: linear.Terms, constant: int) -> Interval:
    """A linear form of the type of `e`, with what is known of it as a whole."""
    # A condition on just this form says more than what it says of each variable.
    whole = bool(b.limits) and any(_multiple(form, terms) and len(form) == len(terms) for form, _, _ in b.limits)
    i = b.sum_of(e, terms, constant, whole)
    if any(wraps(b.simplifier, x, c) for x, c in terms.items()):
        return EVERYTHING
    if b.ends and any(type(x) is n.Variable and x.name in b.ends for x in terms):
        i = i.intersection(Interval(_tied(b, e, terms, constant, False), _tied(b, e, terms, constant, True)))
    return _regrouped(b, e, terms, constant, _limited(b, i, terms, constant)) if b.limits else i


def _regrouped(b: Bounds, e: n.Expr, terms: linear.Terms, constant: int, i: Interval) -> Interval:
    """`i` intersected with what conditions say inside of a quotient: the simplifier takes (16*x + y)/2 apart, to 8*x + y/2."""
    for q, c in terms.items():
        d = as_int(q.b) if type(q) is n.Div else None
        if d is None or d <= 0:
            continue
        inside, k = linear.gather(q.a)  # type: ignore[attr-defined]
        outside = {t: w for t, w in terms.items() if t is not q}
        for t in [t for t, w in outside.items() if w % c == 0 and b.varies(t)]:
            inside[t] = inside.get(t, 0) + outside.pop(t) // c * d
        if any(_multiple(form, inside) for form, _, _ in b.limits):
            quotient = b.monotone(_linear(b, e, {t: w for t, w in inside.items() if w}, k), lambda x, by=q.b: n.Div(x, by))  # type: ignore
            rest = b.sum_of(e, outside, constant)
            low, high = (quotient.min, quotient.max) if c > 0 else (quotient.max, quotient.min)
            i = i.intersection(Interval(None if low is None or rest.min is None else b.simple(n.Add(linear.scaled(low, c), rest.min)),
                                        None if high is None or rest.max is None else b.simple(n.Add(linear.scaled(high, c), rest.max))))
    return i


def _arithmetic(b: Bounds, e: Any) -> Interval:
    """Sums and products."""
    t = e.type
    if t.overflow_is_undefined() and linear.edges(e) is not None:
        return _linear(b, e, *linear.gather(e))
    x, y = b.bounds(e.a), b.bounds(e.b)
    kind = type(e)
    exact = _exact_range(kind, b.range(x), b.range(y))
    if kind is n.Mul:
        out = _product(b, x, y)
    else:
        if kind is n.Sub:
            y = Interval(y.max, y.min)
        out = Interval(None if x.min is None or y.min is None else b.simple(kind(x.min, y.min)),
                       None if x.max is None or y.max is None else b.simple(kind(x.max, y.max)))
    if t.overflow_is_undefined():
        return EVERYTHING if None not in exact and fit(exact, t) != exact else out
    return out if not t.is_int_or_uint() or None not in exact and fit(exact, t) == exact else type_interval(t)


def _tied(b: Bounds, e: n.Expr, terms: linear.Terms, constant: int, upper: bool) -> n.Expr | None:
    """An end of a linear form with the loops in it whose ranges vary at their ends, and quotients at what they are quotients of:
    (y + 3 - x)/4*4 + x is at most y + 3. None where nothing cancels by that."""
    form = {x: c for x, c in terms.items() if type(x) is not n.Variable or x.name not in b.ends}
    kept = [x for x in form if b.varies(x)]
    work = [(b.ends[x.name][(c > 0) == upper], c) for x, c in terms.items() if type(x) is n.Variable and x.name in b.ends]
    while work:
        end, c = work.pop()
        more, k = linear.form(end)
        constant += c * k
        for t, w in more.items():
            d = as_int(t.b) if type(t) is n.Div else None
            if d is not None and d > 1 and c * w % d == 0:
                part = c * w // d
                constant -= 0 if (part > 0) == upper else part * (d - 1)
                work.append((t.a, part))  # type: ignore[attr-defined]
            else:
                form[t] = form.get(t, 0) + c * w
    if all(form.get(x) for x in kept):
        return None
    i = b.sum_of(e, {t: c for t, c in form.items() if c}, constant)
    return i.max if upper else i.min


def _exact_range(kind: type[n.Node], x: Range, y: Range) -> Range:
    """The range over the unbounded integers."""
    if kind is n.Add:
        return add_ranges(x, y)
    if None in x or None in y:
        return UNKNOWN
    if kind is n.Sub:
        return add_ranges(x, scale_range(y, -1))
    corners = [p * q for p in x for q in y]  # type: ignore[operator]
    return min(corners), max(corners)


def sign(b: Bounds, i: Interval) -> int:
    """1 if no value is below 0, -1 if none is above, 0 if that is not known."""
    if i.min is None and i.max is None:
        return 0
    for end, way in ((i.min, 1), (i.max, -1)):
        if end is None:
            continue
        value = as_const(end)
        if value is None and end.type.is_int_or_uint():
            value = b.simplifier.range(end)[0 if way > 0 else 1]
        if value is not None and value * way >= 0:
            return way
    return 0


def _product(b: Bounds, x: Interval, y: Interval) -> Interval:
    if sign(b, x) and not (sign(b, y) and y.is_point()):  # the factor of known sign second, best one that is a point
        x, y = y, x
    s = sign(b, y)

    def times(p: n.Expr | None, q: n.Expr | None) -> n.Expr | None:
        if p is None or q is None:
            return None
        i, j = as_int(p), as_int(q)
        if i is not None and j is not None and p.type.overflow_is_undefined() and not p.type.can_represent_value(i * j):
            return None  # a limit that does not fit says nothing
        return b.simple(n.Mul(p, q))

    if y.is_point() and s:
        return Interval(times(x.min, y.min), times(x.max, y.max)) if s > 0 else Interval(times(x.max, y.min), times(x.min, y.max))
    if s > 0 and sign(b, x) > 0:
        return Interval(times(x.min, y.min), times(x.max, y.max))
    if not x.is_bounded() or not y.is_bounded():
        return EVERYTHING
    corners = [times(p, q) for p in {x.min: 0, x.max: 0} for q in {y.min: 0, y.max: 0}]
    return EVERYTHING if None in corners else b.join([Interval(c, c) for c in corners])


def _div(b: Bounds, e: n.Div) -> Interval:
    x, y = b.bounds(e.a), b.bounds(e.b)
    t = e.type.element_of()
    d = None if not y.is_point() else as_const(y.min)  # type: ignore[arg-type]
    if d is not None and d != 0:
        divisor = const(t, d)
        out = b.monotone(x if d > 0 else Interval(x.max, x.min), lambda p: n.Div(p, divisor))
        return out if t.overflow_is_undefined() or t.is_float() or t.is_uint() or d > 0 else type_interval(t)
    if t.is_float():
        # One divisor, whatever its sign, maps ends to ends; several do if they are all on one side of zero.
        if not x.is_bounded() or not y.is_bounded() or not (y.is_point() or _excludes_zero(y)):
            return EVERYTHING
        return b.join([Interval.point(b.simple(n.Div(p, q))) for p in (x.min, x.max) for q in (y.min, y.max)])  # type: ignore[arg-type]
    low = b.range(y)[0]
    if low is not None and low > 0 and y.min is not None:
        if y.is_point():
            return b.monotone(x, lambda p: n.Div(p, y.min))  # type: ignore[arg-type]
        if y.max is not None and x.is_bounded():
            return b.join([Interval.point(b.simple(n.Div(p, q))) for p in (x.min, x.max) for q in (y.min, y.max)])  # type: ignore[arg-type]
    if b.nonnegative(x):
        if low is not None and low >= 0:
            return Interval(const(t, 0), x.max)
    if not t.overflow_is_undefined():
        return type_interval(t)
    if not x.is_bounded():
        return EVERYTHING
    zero = const(t, 0)
    size = n.Max(n.Max(x.max, n.Sub(zero, x.min)), zero)  # type: ignore[arg-type]
    return Interval(b.simple(n.Sub(zero, size)), b.simple(size))


def _excludes_zero(i: Interval) -> bool:
    low = None if i.min is None else as_const(i.min)
    high = None if i.max is None else as_const(i.max)
    return low is not None and low > 0 or high is not None and high < 0


def _mod(b: Bounds, e: n.Mod) -> Interval:
    t = e.type.element_of()
    if t.is_float():
        d = as_const(e.b)
        return Interval(const(t, 0), const(t, d)) if d is not None and d > 0 else EVERYTHING
    x, y = b.bounds(e.a), b.bounds(e.b)
    zero, one = const(t, 0), const(t, 1)
    high: n.Expr | None = None
    if y.is_bounded():
        low = b.range(y)[0]
        size: n.Expr = y.max  # type: ignore[assignment]
        if t.is_int() and t.bits() < 32 and (low is None or low == t.min_value()):
            return Interval(zero, x.max if b.nonnegative(x) and x.max is not None else const(t, t.max_value()))  # -min wraps
        if low is None or low < 0:
            size = n.Max(n.Max(size, n.Sub(zero, y.min)), one)  # type: ignore[arg-type]
        elif low == 0:
            size = n.Max(size, one)
        high = b.simple(n.Sub(size, one))
    if b.nonnegative(x) and x.max is not None:
        high = x.max if high is None else b.simple(n.Min(x.max, high))
    if high is None and t.bits() < 32:
        high = const(t, t.max_value())
    return Interval(zero, high)


def _extremum(b: Bounds, e: Any) -> Interval:
    x, y = b.bounds(e.a), b.bounds(e.b)
    kind = type(e)

    def both(p: n.Expr | None, q: n.Expr | None, either: bool) -> n.Expr | None:
        if p is None or q is None:
            return (q if p is None else p) if either else None
        return p if p is q else b.simple(kind(p, q))

    return Interval(both(x.min, y.min, kind is n.Max), both(x.max, y.max, kind is n.Min))


def _select(b: Bounds, e: n.Select) -> Interval:
    x, y = _in_branch(b, e.true_value, e.condition, True), _in_branch(b, e.false_value, e.condition, False)
    if x is None or y is None:
        return y or x or b.bounds(e.true_value)
    fixed = b.bounds(e.condition)
    if fixed.min is None or fixed.min is not fixed.max or e.type.is_vector() or is_likely(e.condition):
        # what is likely speaks of a loop further out: ends that follow its variable fold, a choice between them does not
        return b.join([x, y])
    c = fixed.min  # the same for all: it decides between the intervals
    low, high = (None if p is None or q is None else b.simple(select(c, p, q)) for p, q in ((x.min, y.min), (x.max, y.max)))
    return Interval(low, high)


def _in_branch(b: Bounds, value: n.Expr, condition: n.Expr, holds: bool) -> Interval | None:
    """The interval of an integer where `condition` holds or does not: `select(x < 0, 0, x)` is not below 0. None if it holds
    nowhere."""
    if (
        not value.type.overflow_is_undefined()
        or not value.symbols & condition.symbols & b.bits
        or not (b.varies(value) and b.varies(condition))
    ):
        return b.bounds(value)
    branch = b.branch()
    if branch is None:
        return b.bounds(value)
    possible = [limit(branch, c) for c in conjuncts(condition, holds)]
    return branch.bounds(value) if all(possible) else None


def _condition(b: Bounds, e: n.Expr) -> Interval:
    if is_true(e):
        return Interval.point(TRUE)
    return Interval.point(FALSE) if is_false(e) else Interval(FALSE, TRUE)


def _cast(b: Bounds, e: n.Cast) -> Interval:
    t, source = e.type.element_of(), e.value.type.element_of()
    x = b.bounds(e.value)
    if t.is_handle() or source.is_handle() or t.is_bool():
        return type_interval(t)
    if t.overflow_is_undefined():  # a limit that does not fit says nothing
        x = Interval(
            *(
                None if isinstance(v := None if p is None else as_const(p), int) and not t.can_represent_value(v) else p
                for p in (x.min, x.max)
            )
        )
    if t.overflow_is_undefined() or t.is_float() or t.can_represent(source):
        return b.monotone(x, lambda p: n.Cast(t, p))
    low, high = (as_const(p) if p is not None else None for p in (x.min, x.max)) if source.is_float() else b.range(x)
    if low is not None and high is not None and low >= t.min_value() and high <= t.max_value():
        return b.monotone(x, lambda p: n.Cast(t, p))
    return type_interval(t)


def _let(b: Bounds, e: n.Let) -> Interval:
    b.bind(e.name, b.bounds(e.value))
    return b.of(e.body)


def _ramp(b: Bounds, e: n.Ramp) -> Interval:
    base, step = b.bounds(e.base), b.bounds(e.stride)
    t = e.type.element_of()
    if not t.overflow_is_undefined() and not t.is_float():
        return b.constant(t, b.simplifier.range(e)) if t.bits() < 32 else type_interval(t)
    last = e.lanes - 1
    zero = const(t, 0)
    way = sign(b, step)

    def end(p: n.Expr | None, q: n.Expr | None, sign: int) -> n.Expr | None:
        if p is None or q is None and way != sign:
            return None
        if way == sign or q is None:
            return p
        reach = q if way == -sign else (n.Max if sign < 0 else n.Min)(q, zero)
        return b.simple(n.Add(p, n.Mul(reach, const(t, last))))

    return Interval(end(base.min, step.min, 1), end(base.max, step.max, -1))


def _shuffle(b: Bounds, e: n.Shuffle) -> Interval:
    return b.join([b.bounds(v) for v in e.vectors])


def _reduce(b: Bounds, e: n.VectorReduce) -> Interval:
    x = b.bounds(e.value)
    if e.op in (n.ReduceOp.Min, n.ReduceOp.Max):
        return x
    t = e.type.element_of()
    count = e.value.type.lanes() // e.lanes
    if e.op is n.ReduceOp.Add and t.overflow_is_undefined():
        return b.monotone(x, lambda p: linear.scaled(p, count))
    return b.constant(t, b.simplifier.range(e)) if t.is_int_or_uint() and t.bits() < 32 else type_interval(t)


RULES.update({
    n.IntImm: lambda b, e: Interval(e, e), n.UIntImm: lambda b, e: Interval(e, e), n.FloatImm: lambda b, e: Interval(e, e),
    n.Variable: _variable, n.Add: _arithmetic, n.Sub: _arithmetic, n.Mul: _arithmetic, n.Div: _leaf(_div), n.Mod: _leaf(_mod),
    n.Min: _extremum, n.Max: _extremum, n.Select: _select, n.Cast: _cast, n.Let: _let, n.Ramp: _ramp, n.Shuffle: _shuffle,
    n.Broadcast: lambda b, e: b.bounds(e.value), n.VectorReduce: _reduce,
    **dict.fromkeys((n.EQ, n.NE, n.LT, n.LE, n.GT, n.GE, n.And, n.Or, n.Not), _condition)})
