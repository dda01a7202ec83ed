"""Every rewrite rule is right: by random values on every width it claims, and by z3 for the integer ones; and every rule fires."""

from __future__ import annotations

import random
from typing import Any

import pytest
from evaluate import Overflow, evaluate, same
from random_exprs import Maker

from halide_py.ir import nodes as n
from halide_py.ir.build import const, wrap
from halide_py.ir.simplify.compile_rules import RULES, compile_table, guard_value, instantiate, variants
from halide_py.ir.simplify.patterns import Pattern, Rule
from halide_py.ir.types import BOOL, INT32, Float, Int, Type, UInt

WIDTHS = [Int(8), UInt(8), Int(16), UInt(16), INT32, UInt(32), Int(64), UInt(64)]
TYPES = {"int": WIDTHS, "exact": [INT32, Int(64)], "bool": [BOOL], "float": [Float(32), Float(64)], "any": [*WIDTHS, BOOL, Float(32)]}


def _name(rule: Rule) -> str:
    return f"{_text(rule.left)} -> {_text(rule.right)} [{rule.types}]"


def _text(p: Any) -> str:
    if not isinstance(p, Pattern):
        return str(p)
    if p.kind in ("wild", "const", "bool"):
        return str(p.args[0])
    return f"{p.kind if isinstance(p.kind, str) else p.kind.__name__}({', '.join(map(_text, p.args))})"


def wild_types(p: Any, t: Type, out: dict[str, Type], base: Type | None = None) -> dict[str, Type]:
    """The type of each wildcard of a pattern whose operands have type `base` and which itself has type `t`."""
    base = base or t
    if not isinstance(p, Pattern) or p.kind == "bool":
        return out
    if p.kind in ("wild", "const"):
        out[str(p.args[0])] = t
        return out
    for i, a in enumerate(p.args):
        condition = p.kind in (n.And, n.Or, n.Not) or p.kind is n.Select and not i
        wild_types(a, BOOL if condition else base if p.kind in (n.EQ, n.NE, n.LT, n.LE) else t, out, base)
    return out


def operand_type(rule: Rule, t: Type) -> Type:
    """The type of the root's operands, which numbers in a rule have: bool for rules on conditions of integers too."""
    return BOOL if rule.left.kind in (n.And, n.Or, n.Not) else t


@pytest.mark.parametrize("rule", RULES, ids=_name)
def test_rule_by_random_values(rule: Rule) -> None:
    rng = random.Random(_name(rule))
    maker = Maker(rng)
    for t in TYPES[rule.types]:
        kinds = wild_types(rule.left, t, {})
        tried = 0
        for _ in range(3000):
            values = {k: const(u, maker.number(u) if not u.is_bool() else rng.randint(0, 1)) for k, u in kinds.items()}
            if rng.random() < 0.3 and len(values) > 1:  # equal values now and then
                a, b = rng.sample(list(values), 2)
                if kinds[a] is kinds[b]:
                    values[a] = values[b]
            if rule.when is not None and not guard_value(rule.when, values, t):
                continue
            top = operand_type(rule, t)
            try:
                left = evaluate(instantiate(rule.left, values, t), {})
                right = evaluate(instantiate(rule.right, values, top), {})
            except Overflow:
                continue
            assert same(left, right), f"{t}: {values} gives {left} and {right}"
            tried += 1
            if tried == 60:
                break
        assert tried >= 5, f"no sample of {t} met the guard"


def _fixed_constants(rule: Rule, t: Type, rng: random.Random, maker: Maker) -> dict[str, n.Expr]:
    kinds = wild_types(rule.left, t, {})
    for _ in range(5000):
        values: dict[str, n.Expr] = {k: const(u, maker.number(u)) if k[0] == "c" else n.Variable(u, k) for k, u in kinds.items()}
        if rule.when is None or guard_value(rule.when, values, t):
            return values
    raise AssertionError("guard never met")


@pytest.mark.parametrize("rule", RULES, ids=_name)
def test_rule_fires(rule: Rule) -> None:
    rng = random.Random(1)
    maker = Maker(rng)
    t = TYPES[rule.types][0]
    if rule.types == "any":
        t = Float(32)
    values = _fixed_constants(rule, t, rng, maker)
    rewrite = compile_table(rule.left.kind, [rule])
    assert rewrite(instantiate(rule.left, values, t)) is instantiate(rule.right, values, operand_type(rule, t))
    for left in variants(rule.left):
        assert rewrite(instantiate(left, values, t)) is not None


z3 = pytest.importorskip("z3")


def _bits(p: Any, values: dict[str, Any], t: Type, width: int) -> Any:
    """A pattern as a z3 term of 8-bit vectors; conditions as z3 Bools."""
    if not isinstance(p, Pattern):
        return z3.BitVecVal(p, width)
    if p.kind == "bool":
        return z3.BoolVal(bool(p.args[0]))
    if p.kind in ("wild", "const"):
        return values[str(p.args[0])]
    if p.kind == "fold":
        return z3.BitVecVal(values["fold", id(p)], width)
    a = [_bits(q, values, t, width) for q in p.args]
    signed = t.is_int()
    less = (lambda x, y: x < y) if signed else z3.ULT
    zero = z3.BitVecVal(0, width)
    if p.kind in (n.Div, n.Mod):
        x, y = (z3.SignExt(width, v) if signed else z3.ZeroExt(width, v) for v in a)
        r = z3.SRem(x, y)
        r = z3.If(r < 0, z3.If(y < 0, r - y, r + y), r)
        out = z3.Extract(width - 1, 0, (x - r) / y if p.kind is n.Div else r)
        return z3.If(a[1] == 0, zero, out)
    table = {n.Add: lambda x, y: x + y, n.Sub: lambda x, y: x - y, n.Mul: lambda x, y: x * y, n.Min: lambda x, y: z3.If(less(x, y), x, y),
             n.Max: lambda x, y: z3.If(less(x, y), y, x), n.LT: less, n.LE: lambda x, y: z3.Not(less(y, x)), n.EQ: lambda x, y: x == y,
             n.NE: lambda x, y: x != y, n.And: z3.And, n.Or: z3.Or, n.Not: z3.Not, n.Select: z3.If}
    return table[p.kind](*a)


def _folds(p: Any, values: dict[str, n.Expr], t: Type) -> dict[Any, int]:
    if not isinstance(p, Pattern):
        return {}
    if p.kind == "fold":
        return {("fold", id(p)): wrap(guard_value(p.args[0], values, t), t)}
    out: dict[Any, int] = {}
    for a in p.args:
        out.update(_folds(a, values, t))
    return out


@pytest.mark.parametrize("rule", [r for r in RULES if r.types in ("int", "bool", "any")], ids=_name)
@pytest.mark.parametrize("t", [Int(8), UInt(8)], ids=str)
def test_rule_by_z3(rule: Rule, t: Type) -> None:
    """For all values of the expressions; constants sampled. Eight bits, which wrap, stand for every width."""
    rng = random.Random(2)
    maker = Maker(rng)
    top = BOOL if rule.types == "bool" else t
    for _ in range(3):
        values = _fixed_constants(rule, top, rng, maker)
        kinds = wild_types(rule.left, top, {})
        terms: dict[Any, Any] = {}
        for k, u in kinds.items():
            e = values[k]
            if k[0] == "c":
                terms[k] = z3.BitVecVal(e.value, 8)  # type: ignore[attr-defined]
            else:
                terms[k] = z3.Bool(k) if u.is_bool() else z3.BitVec(k, 8)
        terms.update(_folds(rule.right, values, t))
        solver = z3.Solver()
        solver.set("timeout", 3000)
        right = rule.right if isinstance(rule.right, Pattern) else Pattern("number", rule.right)
        r = z3.BitVecVal(rule.right, 8) if right.kind == "number" else _bits(rule.right, terms, t, 8)
        solver.add(_bits(rule.left, terms, t, 8) != r)
        assert solver.check() != z3.sat, f"{solver.model()} with {values}"
