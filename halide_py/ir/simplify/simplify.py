"""The state of one simplification: memo, facts about names, and dispatch to the handlers of each kind of expression.

Works bottom-up, once per distinct node and set of facts. Facts: constant ranges and symbolic limits of variables, the values
of lets, conditions known to hold. The memo has layers, each for the nodes that mention certain names: below all a `Memo` for
what no fact concerns, which all simplifications of one lowering share (`remembering`); above it one for the names bound here;
and where facts concern what was simplified before (conditions, a name bound twice), one more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from .. import nodes as n
from ..build import as_int
from . import linear
from .prover import lower_limit
from .ranges import UNKNOWN, Range, intersect, range_of
from .samples import Sample, sample_of

Handler = Callable[["Simplifier", Any], n.Expr]
HANDLERS: dict[type[n.Node], Handler] = {}
Limits = Mapping[str, tuple[n.Expr | None, n.Expr | None]] | None  # of variables, inclusive: an Interval each
_ALL = -1


class Memo:
    """What was found of the nodes whose symbols meet `bits`."""

    __slots__ = ("bits", "exprs", "ranges", "samples", "big")

    def __init__(self, bits: int, big: set[n.Expr]) -> None:
        self.bits = bits
        self.exprs: dict[n.Expr, n.Expr] = {}
        self.ranges: dict[n.Expr, Range] = {}
        self.samples: dict[n.Expr, Sample] = {}
        self.big = big  # sums of many terms, taken as terms when met again


_shared: ContextVar[Memo | None] = ContextVar("_shared", default=None)


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """What is simplified without facts inside is simplified once. It is forgotten at the end: results never depend on earlier
    compilations."""
    token, found = _shared.set(Memo(_ALL, set())), linear.found.set(linear.Found({}, {}))
    try:
        yield
    finally:
        _shared.reset(token)
        linear.found.reset(found)


def handles(*kinds: type[n.Node]) -> Callable[[Handler], Handler]:
    """Register a function as the handler of expression kinds."""
    def register(f: Handler) -> Handler:
        for kind in kinds:
            HANDLERS[kind] = f
        return f
    return register


class Simplifier:
    """What is known while one Expr or Stmt is simplified. `bounds` gives limits of free variables."""

    def __init__(self, bounds: Limits = None) -> None:
        self.base = _shared.get() or Memo(_ALL, set())
        self.top = self.base  # the innermost layer
        self.own = Memo(0, self.base.big)
        self.layers = [self.base]
        self.big = self.base.big
        self.known: dict[str, Range] = {}
        self.limits: dict[str, tuple[n.Expr | None, n.Expr | None]] = {}
        self.order: dict[str, int] = {}  # when a name was bound: inner names later
        self.values: dict[str, n.Expr] = {}  # lets that are substituted
        self.depends: dict[str, tuple[int, int]] = {}  # its bit, and the symbols of what defines or limits it
        self.truths: dict[n.Expr, bool] = {}  # conditions known to hold, or not
        self.facts: list[tuple[linear.Terms, int]] = []  # linear forms known to be >= 0
        self.uses: dict[str, int] = {}  # of let names, in the tree being simplified
        self.kept: dict[str, n.Expr] = {}  # simplified values of the lets that stay
        self.named: dict[n.Expr, n.Expr] = {}  # those that are pure -> the variable, where it is in scope
        for name, (low, high) in (bounds or {}).items():
            self.limit(name, low, high)

    # ---- memo

    def expr(self, e: n.Expr) -> n.Expr:
        """`e` simplified."""
        memo = (self.top if e.symbols & self.top.bits else self._layer(e)).exprs
        new = memo.get(e)
        if new is None:
            handler = HANDLERS.get(type(e))
            new = handler(self, e) if handler is not None else e.map_children(self.expr)
            memo[e] = new
            memo.setdefault(new, new)
        return new

    def range(self, e: n.Expr) -> Range:
        """The constant range of `e`."""
        memo = (self.top if e.symbols & self.top.bits else self._layer(e)).ranges
        found = memo.get(e)
        if found is None:
            memo[e] = found = range_of(self, e)
        return found

    def sample(self, e: n.Expr) -> Sample:
        """What `e` is under a few assignments to its variables that agree with what is known."""
        memo = (self.top if e.symbols & self.top.bits else self._layer(e)).samples
        found = memo.get(e)
        if found is None:
            memo[e] = found = sample_of(self, e)
        return found

    def _layer(self, e: n.Expr) -> Memo:
        symbols = e.symbols
        if symbols:
            for layer in reversed(self.layers):
                if layer.bits & symbols:
                    return layer
        return self.base

    @contextlib.contextmanager
    def layer(self, bits: int) -> Iterator[None]:
        """Nodes that mention a name in `bits`, or one defined by such names, are simplified afresh inside."""
        for bit, symbols in self.depends.values():  # in the order of binding: definitions come first
            if symbols & bits:
                bits |= bit
        self.top = Memo(bits, self.big)
        self.layers.append(self.top)
        try:
            yield
        finally:
            self.layers.pop()
            self.top = self.layers[-1]

    # ---- facts

    def known_range(self, name: str) -> Range | None:
        """The constant range of a variable."""
        return self.known.get(name)

    def note_range(self, name: str, r: Range) -> None:
        """Record the constant range of a variable; once recorded it stays."""
        if r is not UNKNOWN:
            self.known[name] = r

    def limit(self, name: str, low: n.Expr | None, high: n.Expr | None) -> None:
        """Record that a variable lies between two expressions, inclusive."""
        self.bind(name, (0 if low is None else low.symbols) | (0 if high is None else high.symbols))
        self.limits[name] = (low, high)
        r = (None if low is None else self.range(low)[0], None if high is None else self.range(high)[1])
        self.note_range(name, intersect(self.known.get(name, UNKNOWN), r))

    def bind(self, name: str, symbols: int) -> None:
        """Record that a name is bound here, to something that mentions `symbols`."""
        self.order[name] = len(self.order)
        self.depends.pop(name, None)
        bit = n.symbol_bit(name)
        self.depends[name] = (bit, symbols)
        if not self.own.bits:
            self.layers.insert(1, self.own)
            self.top = self.layers[-1]
        self.own.bits |= bit

    def is_bound(self, name: str) -> bool:
        """Whether facts about a name were recorded before: what mentions it may be memoised."""
        return name in self.order

    def least(self, terms: linear.Terms, constant: int, budget: int = 12) -> int | None:
        """A number that a linear form over int32 or int64 is never below."""
        return lower_limit(self, terms, constant, budget)

    def decide(self, a: n.Expr, b: n.Expr, budget: int = 12) -> bool | None:
        """True if a <= b always, False if a > b always (signed, not overflowing), None if neither is found."""
        terms, constant = linear.difference(b, a)
        low = self.least(terms, constant, budget)
        if low is not None and low >= 0:
            return True
        low = self.least({e: -c for e, c in terms.items()}, -constant - 1, budget)
        return False if low is not None and low >= 0 else None

    def constant(self, e: n.Expr) -> int | None:
        """The integer that a simplified `e` is."""
        return as_int(e)
