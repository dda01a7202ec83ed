"""Compiles rules to one Python function per root kind, on first use.

A function reads the types of the root's children once and tests each rule's shape from the outside in; operands of
commutative operations are tried in both orders. Rules are tried in the order of their tables; the first that matches wins.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .. import nodes as n
from ..build import as_const, const, euclid_div, euclid_mod
from ..types import BOOL, Type
from .patterns import Pattern, Rule
from .rules_arithmetic import ARITHMETIC
from .rules_compare import COMPARISONS, EXTREMA
from .rules_logic import CONNECTIVES, SELECTS

if TYPE_CHECKING:
    from .simplify import Simplifier

RULES: list[Rule] = [*ARITHMETIC, *EXTREMA, *COMPARISONS, *CONNECTIVES, *SELECTS]
Compiled = Callable[[Any], "n.Expr | None"]
_COMPILED: dict[type[n.Node], Compiled] = {}
_COMMUTE = (n.Add, n.Mul, n.Min, n.Max, n.And, n.Or, n.EQ, n.NE)
_GUARDS = {n.Add: "({} + {})", n.Sub: "({} - {})", n.Mul: "({} * {})", n.LT: "({} < {})", n.LE: "({} <= {})", n.And: "({} and {})",
           n.Or: "({} or {})", n.Mod: "euclid_mod({}, {})", n.Div: "euclid_div({}, {})", n.Min: "min({}, {})", n.Max: "max({}, {})"}
_TYPES = {
    "int": "t.is_int_or_uint() and not t.is_bool()",
    "exact": "t.overflow_is_undefined()",
    "float": "t.is_float()",
    "bool": "t.is_bool()",
}


def apply_rules(s: Simplifier, e: n.Expr) -> n.Expr:
    """`e`, whose children are simplified, after the first rule that matches it (and simplification of that), or `e` itself."""
    kind = type(e)
    rewrite = _COMPILED.get(kind)
    if rewrite is None:
        rewrite = _COMPILED[kind] = compile_table(kind, [r for r in RULES if r.left.kind is kind])
    out = rewrite(e)
    return e if out is None else s.expr(out)


def compile_table(kind: type[n.Node], rules: Iterable[Rule]) -> Compiled:
    """One function that tries `rules` on a node of `kind` and gives what it becomes, or None."""
    lines = ["def rewrite(e):"]
    kids = kind.kids
    lines += [f"    k_{k} = type(e.{k})" for k in kids]
    lines += [f"    t = e.{'true_value' if kind is n.Select else 'a'}.type"]
    for rule in rules:
        for left in variants(rule.left):
            lines += _Rule(rule, left).lines()
    lines.append("    return None")
    scope: dict[str, Any] = {
        "as_const": as_const, "const": const, "BOOL": BOOL, "euclid_div": euclid_div, "euclid_mod": euclid_mod, "power": is_power_of_two,
        "sign": math.copysign, **{c.__name__: c for c in _node_kinds()}}
    exec("\n".join(lines), scope)
    return scope["rewrite"]  # type: ignore[no-any-return]


def is_power_of_two(value: Any) -> bool:
    """1, 2, 4, ..."""
    return isinstance(value, int) and value > 0 and not value & (value - 1)


def _node_kinds() -> list[type[n.Node]]:
    return [n.Add, n.Sub, n.Mul, n.Div, n.Mod, n.Min, n.Max, n.EQ, n.NE, n.LT, n.LE, n.And, n.Or, n.Not, n.Select]


def variants(p: Any) -> list[Any]:
    """The pattern with operands of commutative operations in every order, without repetitions."""
    if not isinstance(p, Pattern) or isinstance(p.kind, str):
        return [p]
    out: dict[str, Pattern] = {}
    for args in itertools.product(*map(variants, p.args)):
        for order in ([args, args[::-1]] if p.kind in _COMMUTE else [args]):
            one = Pattern(p.kind, *order)
            out.setdefault(_canonical(one), one)
    return list(out.values())


def _canonical(p: Any) -> str:
    """A pattern as text, wildcards of any name numbered by first occurrence where it makes no difference to keep names."""
    if not isinstance(p, Pattern):
        return repr(p)
    name = p.kind if isinstance(p.kind, str) else p.kind.__name__
    return f"{name}({', '.join(map(str, p.args)) if name in ('wild', 'const', 'bool') else ', '.join(map(_canonical, p.args))})"


class _Rule:
    """The code of one rule in one order of operands."""

    def __init__(self, rule: Rule, left: Pattern) -> None:
        self.rule, self.left = rule, left
        self.tests: list[str] = []
        self.bound: dict[str, str] = {}
        self.constants: set[str] = set()

    def lines(self) -> list[str]:
        """Nested tests, then the result."""
        kinds: list[tuple[str, Pattern]] = []
        for k, p in zip(self.left.kind.kids, self.left.args):
            if isinstance(p, Pattern) and not isinstance(p.kind, str):
                self.tests.append(f"k_{k} is {p.kind.__name__}")
                kinds.append((f"e.{k}", p))
            else:
                kinds.append((f"e.{k}", p))  # type: ignore[arg-type]
        if self.rule.types == "int" and self.left.kind in (n.And, n.Or):  # of what is compared
            self.tests.append(_TYPES["int"].replace("t.", "e.a.a.type."))
        elif self.rule.types != "any":
            self.tests.append(_TYPES[self.rule.types])
        for path, p in kinds:
            self.match(path, p, known=True)
        if self.rule.when is not None:
            self.tests.append(self.guard(self.rule.when))
        condition = " and ".join(f"({t})" for t in self.tests) or "True"
        return [f"    if {condition}:", f"        return {self.build(self.rule.right, 't')}"]

    def match(self, path: str, p: Any, known: bool = False) -> None:
        """Tests that the node at `path` matches `p`."""
        if not isinstance(p, Pattern):
            self.tests.append(f"as_const({path}) == {p!r}")
        elif p.kind == "bool":
            self.tests.append(f"as_const({path}) == {p.args[0]} and {path}.type.is_bool()")
        elif p.kind == "wild":
            name = f"w_{p.args[0]}"
            if name in self.bound:
                self.tests.append(f"{path} is {self.bound[name]}")
            else:
                self.bound[name] = path
        elif p.kind == "const":
            name = str(p.args[0])
            if name in self.constants:
                self.tests.append(f"as_const({path}) == {name}")
            else:
                self.constants.add(name)
                self.bound[f"w_{name}"] = path
                self.tests.append(f"({name} := as_const({path})) is not None")
        else:
            if not known:
                self.tests.append(f"type({path}) is {p.kind.__name__}")
            for k, arg in zip(p.kind.kids, p.args):
                self.match(f"{path}.{k}", arg)

    def guard(self, p: Any) -> str:
        """Python source of a condition or number made of constants."""
        if not isinstance(p, Pattern):
            return repr(p)
        if p.kind == "const":
            return str(p.args[0])
        if p.kind == "fits":
            return f"t.can_represent_value({self.guard(p.args[0])})"
        if p.kind == "power":
            return f"power({self.guard(p.args[0])})"
        if p.kind in ("plus_zero", "minus_zero"):
            value = self.guard(p.args[0])
            return f"({value} == 0 and sign(1, {value}) {'>' if p.kind == 'plus_zero' else '<'} 0)"
        if p.kind == "same_type":
            a, b = (self.bound[f"w_{x.args[0]}"] for x in p.args)  # type: ignore[union-attr]
            return f"{a}.type.lanes() == t.lanes() and {a}.type is {b}.type"
        return _GUARDS[p.kind].format(*map(self.guard, p.args))

    def build(self, p: Any, t: str) -> str:
        """Python source of the expression that `p` stands for; numbers in it have type `t`."""
        if not isinstance(p, Pattern):
            return f"const({t}, {p!r})"
        if p.kind == "bool":
            return f"const(BOOL.with_lanes(t.lanes()), {p.args[0]})"
        if p.kind in ("wild", "const"):
            return self.bound[f"w_{p.args[0]}"]
        if p.kind == "fold":
            return f"const({t}, {self.guard(p.args[0])})"
        return f"{p.kind.__name__}({', '.join(self.build(a, t) for a in p.args)})"


def instantiate(p: Any, values: dict[str, n.Expr], t: Type) -> n.Expr:
    """The expression that a pattern stands for with wildcards bound to `values`: what the tests evaluate."""
    if not isinstance(p, Pattern):
        return const(t, p)
    if p.kind == "bool":
        return const(BOOL.with_lanes(t.lanes()), p.args[0])  # type: ignore[arg-type]
    if p.kind in ("wild", "const"):
        return values[str(p.args[0])]
    if p.kind == "fold":
        return const(t, guard_value(p.args[0], values, t))
    return p.kind(*[instantiate(a, values, t) for a in p.args])  # type: ignore[no-any-return]


def guard_value(p: Any, values: dict[str, n.Expr], t: Type) -> Any:
    """The value of a guard or `fold` for constants bound in `values`."""
    rule = _Rule(Rule(Pattern(n.Not, Pattern("wild", "x")), 0), Pattern(n.Not))  # type: ignore[arg-type]
    rule.bound = {f"w_{k}": f"w_{k}" for k in values}
    scope: dict[str, Any] = {k: as_const(v) for k, v in values.items()}
    scope.update({f"w_{k}": v for k, v in values.items()})
    scope.update(t=t, euclid_mod=euclid_mod, euclid_div=euclid_div, power=is_power_of_two, sign=math.copysign)
    return eval(rule.guard(p), scope)
