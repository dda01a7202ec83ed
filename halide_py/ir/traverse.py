"""Walking and rewriting the DAG: each distinct node once, subtrees without the wanted kinds or names skipped whole."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from . import nodes as n

N = TypeVar("N", bound=n.Node)
Rec = Callable[[Any], Any]
Handler = Callable[[Any, Rec], Any]


@contextlib.contextmanager
def deep_recursion() -> Iterator[None]:
    """Room for the recursion of deep expressions, and the cyclic collector paused, while compiling."""
    limit, collecting = sys.getrecursionlimit(), gc.isenabled()
    sys.setrecursionlimit(max(limit, 400_000))
    gc.disable()
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
        if collecting:
            gc.enable()


def rewrite(root: N, handlers: Mapping[type[n.Node], Handler], symbols: int = -1) -> N:
    """Rebuild `root` bottom-up. `handlers[kind](node, rec)` returns the replacement of a node of that kind and calls `rec` on the
    children it wants rewritten; other nodes are rebuilt only where a child changed. Subtrees in which none of the kinds
    (or none of the names in the Bloom mask `symbols`) occurs are returned as they are."""
    memo: dict[n.Node, Any] = {}
    want = 0
    for kind in handlers:
        want |= kind.bit

    def rec(one: Any) -> Any:
        if not one.mask & want or not one.symbols & symbols and symbols != -1:
            return one
        new = memo.get(one)
        if new is None:
            handler = handlers.get(type(one))
            memo[one] = new = handler(one, rec) if handler else one.map_children(rec)  # noqa: F821 (deleted below, on purpose)
        return new

    try:
        return rec(root)  # type: ignore[no-any-return]
    finally:
        del rec  # noqa: F821  # a closure that refers to itself, while the collector is off


def nodes_of(roots: n.Node | Iterable[n.Node], kinds: type[n.Node] | tuple[type[n.Node], ...], symbols: int = -1) -> Iterator[Any]:
    """Every distinct node of the given kinds under the roots, parents before children, in program order. `symbols` as in `rewrite`."""
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    want = 0
    for kind in kinds:
        want |= kind.bit
    stack = [roots] if isinstance(roots, n.Node) else list(roots)[::-1]
    seen: set[n.Node] = set()
    while stack:
        one = stack.pop()
        if not one.mask & want or one in seen or not one.symbols & symbols and symbols != -1:
            continue
        seen.add(one)
        if isinstance(one, kinds):
            yield one
        stack.extend(one.children()[::-1])


def mentions(root: n.Node, name: str) -> bool:
    """Whether a Variable, Load, Store, Provide or Call of that name occurs."""
    bit = n.symbol_bit(name)
    if not root.symbols & bit:
        return False
    stack: list[n.Node] = [root]
    seen: set[n.Node] = set()
    while stack:
        one = stack.pop()
        if one in seen:
            continue
        if getattr(one, "name", None) == name and isinstance(one, (n.Variable, n.Load, n.Store, n.Provide, n.Call)):
            return True
        seen.add(one)
        stack += [k for k in one.children()[::-1] if k.symbols & bit]  # what comes first is often there
    return False


def substitute(values: Mapping[str, n.Expr], root: N, symbols: int | None = None) -> N:
    """Replace free Variables by name; `symbols` are the bits of these names, where the caller keeps them. Names bound inside `root` (Let,
    LetStmt, For) must not be among them or in their values (names are bound once, so this holds after `uniquify`)."""
    if not values:
        return root
    bits = n.symbol_bits(values) if symbols is None else symbols

    def variable(v: n.Variable, rec: Rec) -> n.Expr:
        return values.get(v.name, v)

    return rewrite(root, {n.Variable: variable}, bits)


def free_variables(root: n.Node | Iterable[n.Node]) -> dict[str, n.Variable]:
    """The Variables of the roots that no Let, LetStmt or For inside binds, by name, in first-use order."""
    found = {v.name: v for v in nodes_of(root, n.Variable)}
    for binder in nodes_of(root, (n.Let, n.LetStmt, n.For)):
        found.pop(binder.name, None)
    return found
