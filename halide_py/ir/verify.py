"""Checks that loop IR is well formed: operand types and lanes agree, names and storage are in scope where they are used.

Run after each pass when HL_VERIFY=1 (the tests set it). It proves nothing about values; the reference interpreters do that.
Limits: a name may be bound several times in disjoint scopes (passes that copy code do so until `uniquify`), but not again
inside its own scope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..errors import InternalError
from . import nodes as n
from .module import LoweredArgument
from .traverse import nodes_of
from .types import BOOL

_ARITHMETIC = (n.Add, n.Sub, n.Mul, n.Div, n.Mod, n.Min, n.Max)
_COMPARISON = (n.EQ, n.NE, n.LT, n.LE, n.GT, n.GE)
_LOGIC = (n.And, n.Or)
_NONE: frozenset[str] = frozenset()
Complain = Callable[[str], None]


def _check_predicated(e: n.Load | n.Store, complain: Complain) -> None:
    index = e.index.type
    value = e.type if isinstance(e, n.Load) else e.value.type
    if not index.is_int() or index.bits() not in (32, 64):
        complain(f"index of type {index} into {e.name}")
    if value.lanes() != index.lanes():
        complain(f"{value.lanes()} lanes at {index.lanes()} indices of {e.name}")
    if e.predicate.type is not BOOL.with_lanes(index.lanes()):
        complain(f"predicate of type {e.predicate.type} for {index.lanes()} lanes of {e.name}")


def _check_condition(e: n.Expr, what: str, complain: Complain) -> None:
    if e.type is not BOOL:
        complain(f"{what} of type {e.type}")


def _check_for(s: n.For, complain: Complain) -> None:
    if s.min.type is not s.extent.type or not s.min.type.is_int() or not s.min.type.is_scalar():
        complain(f"loop {s.name} from {s.min.type} over {s.extent.type}")


def _check_provide(s: n.Provide, complain: Complain) -> None:
    for a in s.args:
        if not a.type.is_int_or_uint():
            complain(f"coordinate of type {a.type} of {s.name}")
    _check_condition(s.predicate, f"predicate of {s.name}", complain)


def _check_realize(s: n.Realize, complain: Complain) -> None:
    if len(s.mins) != len(s.extents):
        complain(f"{len(s.mins)} mins and {len(s.extents)} extents of {s.name}")
    _check_condition(s.condition, f"condition of {s.name}", complain)


def _check_select(e: n.Select, complain: Complain) -> None:
    c = e.condition.type
    if e.true_value.type is not e.false_value.type:
        complain(f"select between {e.true_value.type} and {e.false_value.type}")
    if not c.element_of().is_bool() or c.lanes() not in (1, e.type.lanes()):
        complain(f"select of {e.type} by {c}")


def _check_call(e: n.Call, complain: Complain) -> None:
    if e.call_type in (n.CallType.Halide, n.CallType.Image):
        for a in e.args:
            if not a.type.is_int_or_uint():
                complain(f"coordinate of type {a.type} in a call of {e.name}")
    elif e.name in ("likely", "likely_if_innermost", "strict_float") and e.args[0].type is not e.type:
        complain(f"{e.name} turns {e.args[0].type} into {e.type}")


def _check_ramp(e: n.Ramp, complain: Complain) -> None:
    if e.base.type is not e.stride.type or e.lanes < 2:
        complain(f"ramp of {e.lanes} lanes from {e.base.type} by {e.stride.type}")


def _check_shuffle(e: n.Shuffle, complain: Complain) -> None:
    total = sum(v.type.lanes() for v in e.vectors)
    if len({v.type.element_of() for v in e.vectors}) != 1 or any(not 0 <= i < total for i in e.indices):
        complain(f"shuffle of {[str(v.type) for v in e.vectors]} by {e.indices}")


def _check_reinterpret(e: n.Reinterpret, complain: Complain) -> None:
    if e.type.bits() * e.type.lanes() != e.value.type.bits() * e.value.type.lanes():
        complain(f"reinterpret of {e.value.type} as {e.type}")


def _check_cast(e: n.Cast, complain: Complain) -> None:
    if e.type.lanes() != e.value.type.lanes():
        complain(f"cast of {e.value.type} to {e.type}")


def _check_reduce(e: n.VectorReduce, complain: Complain) -> None:
    if e.value.type.lanes() % e.lanes:
        complain(f"reduction of {e.value.type} to {e.lanes} lanes")


def _check_not(e: n.Not, complain: Complain) -> None:
    if not e.type.element_of().is_bool():
        complain(f"Not of {e.type}")


_CHECKS: dict[type[n.Node], Callable[[Any, Complain], None]] = {
    n.Cast: _check_cast, n.Reinterpret: _check_reinterpret, n.Not: _check_not, n.Select: _check_select, n.Load: _check_predicated,
    n.Ramp: _check_ramp, n.Call: _check_call, n.Shuffle: _check_shuffle, n.VectorReduce: _check_reduce, n.For: _check_for,
    n.Provide: _check_provide, n.Realize: _check_realize, n.Store: _check_predicated,
    n.IfThenElse: lambda s, complain: _check_condition(s.condition, "if", complain),
    n.Assert: lambda s, complain: _check_condition(s.condition, "assert", complain),
    n.Allocate: lambda s, complain: _check_condition(s.condition, f"condition of {s.name}", complain),
}


_BINARY = (*_ARITHMETIC, *_COMPARISON, *_LOGIC)


def _check_binary(e: Any, complain: Complain) -> None:
    kind = type(e).__name__
    if e.a.type is not e.b.type:
        complain(f"{kind} of {e.a.type} and {e.b.type}")
    if type(e) in _LOGIC and not e.a.type.element_of().is_bool():
        complain(f"{kind} of {e.a.type}")


class _Scopes:
    """Walks statements with the names in scope; what each expression mentions is memoised.

    Variables enter the sets as they are named, storage with a `[]` behind the name.
    """

    def __init__(self, complain: Complain, known: frozenset[str]) -> None:
        self.complain, self.known = complain, known
        self.mentioned: dict[n.Expr, frozenset[str]] = {}

    def free(self, e: n.Expr) -> frozenset[str]:
        """Names and storage that `e` needs from outside."""
        found = self.mentioned.get(e)
        if found is None:
            found = self.mentioned[e] = self._free(e)
        return found

    def _free(self, e: n.Expr) -> frozenset[str]:
        if type(e) is n.Variable:
            return _NONE if e.param is not None else frozenset((e.name,))
        parts = [self.free(child) for child in e.children()]
        if type(e) is n.Let:
            return parts[0] | (parts[1] - {e.name})
        own = _NONE
        if type(e) is n.Load and e.param is None or type(e) is n.Call and e.call_type is n.CallType.Halide:
            own = frozenset((e.name + "[]",))
        return own.union(*parts) if parts else own

    def stmt(self, s: n.Stmt, scope: frozenset[str]) -> None:
        """Check that everything `s` mentions is in `scope`."""
        name = getattr(s, "name", "")
        for e in s.children():
            if isinstance(e, n.Expr):
                missing = self.free(e) - scope - self.known
                if missing:
                    self.complain(f"{', '.join(sorted(missing))} used by {type(s).__name__} {name} but not in scope")
        if type(s) is n.LetStmt or type(s) is n.For:
            if name in scope:
                self.complain(f"{name} bound again inside its own scope")
            scope |= {name}
        elif type(s) is n.Realize or type(s) is n.Allocate:
            scope |= {name + "[]", name} if type(s) is n.Allocate else {name + "[]"}  # the name alone is the pointer
        elif (type(s) is n.Provide or type(s) is n.Store and s.param is None) and name + "[]" not in scope | self.known:
            self.complain(f"{type(s).__name__} to {name}, which has no storage here")
        for child in s.children():
            if isinstance(child, n.Stmt):
                self.stmt(child, scope)


def _known(args: Iterable[LoweredArgument]) -> frozenset[str]:
    """Names in scope everywhere: arguments, their buffers and the symbols of their shapes."""
    names: set[str] = set()
    for arg in args:
        names.add(arg.name)
        if arg.is_buffer():
            whole = arg.name.rsplit(".", 1)[0]
            names |= {f"{arg.name}.buffer", f"{arg.name}[]", f"{whole}[]", f"{whole}.buffer"}
            names |= {f"{arg.name}.{what}.{d}" for what in ("min", "extent", "stride") for d in range(arg.dimensions)}
    return frozenset(names)


def verify(stmt: n.Stmt, args: Iterable[LoweredArgument] = (), after: str = "", scopes: bool = True) -> None:
    """Raise InternalError, naming the pass `after` which the IR came out of it, for everything malformed in `stmt`.

    `args` are the arguments of the pipeline (inputs and outputs): their names, buffers and shape symbols are in scope.
    Without `scopes` only types are checked: early passes leave names for later ones to bind.
    """
    problems: list[str] = []
    for one in nodes_of(stmt, (*_BINARY, *_CHECKS)):
        _CHECKS.get(type(one), _check_binary)(one, problems.append)
    if scopes:
        _Scopes(problems.append, _known(args)).stmt(stmt, _NONE)
    if problems:
        more = f" (and {len(problems) - 8} more)" if len(problems) > 8 else ""
        raise InternalError(f"Malformed IR{f' after {after}' if after else ''}: {'; '.join(dict.fromkeys(problems[:8]))}{more}")
