"""Costs: what one point of a stage costs, in operations and in bytes moved.

Every distinct value is computed once, as the generated code does, and indices count as any other arithmetic. Clamps of a marked boundary
condition cost nothing: loop partitioning takes them out of the steady state. Loads and stores are one operation each besides their bytes.
Source of the weights: Mullapudi et al., "Automatically Scheduling Halide Image Processing Pipelines", SIGGRAPH 2016; Halide's
RegionCosts.cpp.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from ..ir import nodes as n
from ..ir.function import Definition, Function
from ..ir.traverse import nodes_of

_FREE_CALLS = {"likely", "likely_if_innermost", "unsafe_promise_clamped", "undef", "stop_gradient", "strict_float"}
_DEAR_CALLS = {"lerp", "div_round_to_zero", "mod_round_to_zero", "random"}
_DEAR, _MATH_BITS = 5, 16  # operations of a dear intrinsic; bits of a type for which a math function is as dear as one
_FREE = (n.IntImm, n.UIntImm, n.FloatImm, n.StringImm, n.Variable, n.Reinterpret, n.Let)


@dataclass
class Work:
    """Operations, bytes moved, and of the bytes those of each Func and image."""

    arith: int = 0
    memory: int = 0
    loads: Counter[str] = field(default_factory=Counter)

    def move(self, name: str, size: int) -> None:
        """A load from or a store to `name`."""
        self.arith += 1
        self.memory += size
        self.loads[name] += size


def _marked(e: n.Expr) -> bool:
    """Whether an index is marked as what it likely is."""
    if isinstance(e, n.Call):
        return e.name in ("likely", "likely_if_innermost")
    return isinstance(e, (n.Min, n.Max)) and (_marked(e.a) or _marked(e.b))


def expression_work(roots: Iterable[n.Expr]) -> Work:
    """What evaluating these expressions once, together, takes."""
    work, seen, stack = Work(), set[n.Expr](), list(roots)
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        if isinstance(e, (n.Min, n.Max)) and _marked(e.a) != _marked(e.b):
            stack.append(e.a if _marked(e.a) else e.b)
            continue
        if isinstance(e, n.Call):
            _call(e, work)
        elif not isinstance(e, _FREE):
            work.arith += 1
        stack.extend(e.children())
    return work


def _call(c: n.Call, work: Work) -> None:
    if c.call_type in (n.CallType.Halide, n.CallType.Image):
        work.move(c.name, c.type.bytes())
    elif c.call_type in (n.CallType.PureExtern, n.CallType.Extern):
        work.arith += _DEAR * max(c.type.bits() // _MATH_BITS, 1)
    elif c.name not in _FREE_CALLS:
        work.arith += _DEAR if c.name in _DEAR_CALLS else 1


def definition_work(f: Function, d: Definition, pure: bool) -> Work:
    """What one point of a definition takes, its stores included."""
    work = expression_work(d.values if pure else (*d.values, *d.args, d.predicate))
    for t in f.types:
        work.move(f.name, t.bytes())
    return work


def is_trivial(f: Function) -> bool:
    """Whether computing a value again takes no more than loading it."""
    assert f.pure is not None
    works = [expression_work([v]) for v in f.pure.values]
    again = max(w.arith for w in works) + max(w.memory for w in works)
    return again <= 1 + max(t.bytes() for t in f.types)


def calls_only_at(f: Function, d: Definition, name: str) -> bool:
    """Whether a definition reads Func `name` only at the place it defines, once for each."""
    calls = [c for c in nodes_of((*d.values, *d.args, d.predicate), n.Call) if c.name == name and c.call_type is n.CallType.Halide]
    return all(c.args == d.args for c in calls) and (d.rdom is None or not calls)
