"""The machine that makes nodes: interning, the facts kept per node, and the methods each class of nodes is given.

Nodes are immutable and interned: building the same node twice gives the same object, so identity is equality, a memo
keyed by node is sound and shared subtrees cost nothing. Three facts are kept per node for free skipping:

* `mask`: the kinds that occur in it, one bit a class (`node.mask & For.bit`);
* `symbols`: a Bloom filter of the names it mentions (variables, loads, stores, calls of Funcs and images); see `symbol_bit`;
* `type` (expressions): its Type.

`TABLE` holds every live node, children before parents; `sweep` frees the dead ones.
"""

from __future__ import annotations

import functools
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .types import BOOL, Type

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[Any], Any]:
        return lambda decorator: decorator


TABLE: dict[tuple[Any, ...], Node] = {}
_T = TypeVar("_T", bound=type)
_SYMBOL_BITS: dict[str, int] = {}
_BITS: Iterator[int] = iter(range(1000))


def symbol_bit(name: str) -> int:
    """The Bloom filter bit of a name in `Node.symbols`: absent bit = certainly not mentioned."""
    bit = _SYMBOL_BITS.get(name)
    if bit is None:
        bit = _SYMBOL_BITS[name] = 1 << zlib.crc32(name.encode()) % 251  # not hash(): two runs must make the same code
    return bit


def symbol_bits(names: Iterable[str]) -> int:
    """The bits of several names."""
    bits = 0
    for name in names:
        bits |= symbol_bit(name)
    return bits


class Node:
    """Anything in the IR. Identity is equality."""

    __slots__ = ("mask", "symbols")
    mask: int
    symbols: int
    bit: ClassVar[int] = 0
    fields: ClassVar[tuple[str, ...]] = ()
    kids: ClassVar[tuple[str, ...]] = ()  # fields that hold nodes or tuples of nodes

    def map_children(self, f: Callable[[Any], Any]) -> Any:
        """This node with `f` applied to each child; the very same object when no child changed."""
        raise NotImplementedError  # every concrete class gets its own, see `node`

    def children(self) -> tuple[Any, ...]:
        """The child nodes, in field order, tuples flattened."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, f) for f in self.fields)


class Expr(Node):
    """A node with a value."""

    __slots__ = ("type",)
    type: Type


class Stmt(Node):
    """A node with an effect."""

    __slots__ = ()


_SINGLE = ("Expr", "Stmt")
_OPTIONAL = ("Expr | None", "Stmt | None")
_TUPLE = ("tuple[Expr, ...]", "tuple[Stmt, ...]")


@dataclass_transform(frozen_default=True)
def node(cls: _T) -> _T:
    """Give `cls` slots, an interning constructor, and `map_children`/`children` for its annotated fields.

    `_type` (a source expression over the fields) says how the type of an Expr follows from them; `_name` names the field
    that enters `symbols`; `_key` overrides how a field enters the interning key. The methods are compiled when the first
    node of the class is built: most programs build few kinds.
    """
    fields: dict[str, str] = {k: v for k, v in cls.__annotations__.items() if not v.startswith("ClassVar")}
    body = {k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__", "__slots__", *fields)}
    bit, defaults = 1 << next(_BITS), {f: cls.__dict__[f] for f in fields if f in cls.__dict__}

    def first(kind: Any, *args: Any, **kwargs: Any) -> Any:
        scope: dict[str, Any] = {"TABLE": TABLE, "new": object.__new__, "BOOL": BOOL, "BIT": bit,
                                 "SYMBOL_BITS": _SYMBOL_BITS, "symbol_bit": symbol_bit}
        exec(_compiled(_methods(fields, defaults, body, issubclass(kind, Expr))), scope)
        kind.map_children, kind.children, kind.__new__ = scope["map_children"], scope["children"], scope["__new__"]
        return kind(*args, **kwargs)

    slots = tuple(f for f in fields if not (f == "type" and issubclass(cls, Expr)))
    kids = tuple(f for f, t in fields.items() if t in (*_SINGLE, *_OPTIONAL, *_TUPLE))
    body.update(__slots__=slots, bit=bit, fields=tuple(fields), kids=kids, __new__=first)
    return type(cls)(cls.__name__, cls.__bases__, body)


@functools.cache
def _compiled(text: str) -> CodeType:
    """Classes of one shape (all of arithmetic, all comparisons) share their code."""
    return compile(text, "<node>", "exec")


def _methods(fields: dict[str, str], defaults: dict[str, Any], body: dict[str, Any], has_value: bool) -> str:
    """The source of a class's constructor, `map_children` and `children`."""
    one, opt, many = ([f for f, t in fields.items() if t in kinds] for kinds in (_SINGLE, _OPTIONAL, _TUPLE))
    kids = [f for f in fields if f in one or f in opt or f in many]
    return "\n".join([*_constructor(fields, defaults, body, has_value, one, opt, many), *_mapping(fields, kids, one, opt, many),
                      *_listing(kids, one, opt)])


def _constructor(fields: dict[str, str], defaults: dict[str, Any], body: dict[str, Any], has_value: bool,
                 one: list[str], opt: list[str], many: list[str]) -> list[str]:
    params = ", ".join(f + (f"={defaults[f]!r}" if f in defaults else "") for f in fields)
    key = ", ".join(body.get("_key", {}).get(f, f) for f in fields)
    name = body.get("_name")

    def gather(fact: str, start: str) -> list[str]:
        return [f"    {fact} = {' | '.join([start, *(f'{k}.{fact}' for k in one)])}",
                *(f"    if {k} is not None: {fact} |= {k}.{fact}" for k in opt),
                *(f"    for _k in {k}: {fact} |= _k.{fact}" for k in many),
                f"    self.{fact} = {fact}"]

    return [f"def __new__(cls, {params}):", f"    key = (cls, {key})",
            "    self = TABLE.get(key)", "    if self is not None: return self",
            "    self = new(cls)", *(f"    self.{f} = {f}" for f in fields),
            *([f"    self.type = {body['_type']}"] if has_value and "type" not in fields else []),
            *gather("mask", "BIT"), *gather("symbols", f"(SYMBOL_BITS.get({name}) or symbol_bit({name}))" if name else "0"),
            "    return TABLE.setdefault(key, self)"]


def _mapping(fields: dict[str, str], kids: list[str], one: list[str], opt: list[str], many: list[str]) -> list[str]:
    lines = ["def map_children(self, f):", *(f"    {k} = f(self.{k})" for k in one),
             *(f"    {k} = None if self.{k} is None else f(self.{k})" for k in opt)]
    for k in many:
        lines += [f"    {k} = self.{k}", f"    if {k}:", f"        _new = [f(_k) for _k in {k}]", f"        for _o, _n in zip({k}, _new):",
                  "            if _o is not _n:", f"                {k} = tuple(_new)", "                break"]
    if not kids:
        return [*lines, "    return self"]
    return [*lines, f"    if {' and '.join(f'{k} is self.{k}' for k in kids)}: return self",
            f"    return type(self)({', '.join(k if k in kids else f'self.{k}' for k in fields)})"]


def _listing(kids: list[str], one: list[str], opt: list[str]) -> list[str]:
    parts = [f"(self.{k},)" if k in one else f"(() if self.{k} is None else (self.{k},))" if k in opt else f"self.{k}" for k in kids]
    return ["def children(self):", f"    return {' + '.join(parts) or '()'}"]


def _calibrate() -> int:
    """Reference count, as `sweep` sees it, of a node that nobody but the table holds."""
    probe: dict[int, Node] = {0: object.__new__(Node)}
    held = list(probe.values())
    while held:
        one = held.pop()
        return sys.getrefcount(one)
    return 0


_DEAD = _calibrate()


def sweep() -> int:
    """Drop every node that only the table and dead parents hold; returns how many went.

    Children were built before their parents, so one walk from the newest entry backwards finds each parent first.
    """
    items = list(TABLE.items())
    before = len(items)
    while items:
        key, one = items.pop()
        if sys.getrefcount(one) <= _DEAD:
            del TABLE[key]
        del key, one
    return before - len(TABLE)
