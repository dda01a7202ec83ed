"""Pipelines as bytes: the graph of Functions, schedules, parameters and nodes, written out and built again.

The bytes are a line that says what they are, a digest, and compressed JSON: a list of records, children before parents where nodes are
concerned. Records are dataclasses and nodes by class name, so reading them runs no code of the writer's. What is written depends on the
fields of our own classes; a digest of these is the format's version, and other versions are refused.
Python code in a pipeline (rules of custom gradients) is not written: what is read has rules in their place that say so when a derivative
asks for them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import json
import zlib
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, NoReturn

from ..errors import CompileError
from . import function, intrinsics, nodes, parameter, target_words
from .intrinsics import EXTERNS, ExternFunction
from .parameter import Parameter
from .traverse import deep_recursion
from .types import Type, TypeCode

Hook = Callable[[Any], Any]

_MAGIC = b"halide_py pipeline"
_CODE = {"gradient", "tangent"}  # fields that hold Python code
_SKIPPED = {"sites", "frozen", "extra", "given", "owner", "with_updates"}  # state of this process, given its default again


def _classes() -> dict[str, type]:
    found = [
        c
        for m in (nodes, function, parameter, intrinsics, target_words)
        for c in vars(m).values()
        if isinstance(c, type) and c.__module__ == m.__name__
    ]
    return {c.__name__: c for c in found if issubclass(c, (enum.Enum, nodes.Node)) or dataclasses.is_dataclass(c)}


_CLASSES = _classes()


def _fields(cls: type) -> tuple[str, ...]:
    if issubclass(cls, nodes.Node):
        return cls.fields
    return tuple(f.name for f in dataclasses.fields(cls) if f.name not in _SKIPPED)  # type: ignore[arg-type]


def _schema() -> str:
    """What the classes look like: two versions of this package understand each other if this is the same."""
    text = repr([(name, [m.name for m in c] if issubclass(c, enum.Enum) else _fields(c)) for name, c in sorted(_CLASSES.items())])
    return blake2b(text.encode(), digest_size=6).hexdigest()


_HEAD = _MAGIC + b" " + _schema().encode() + b"\n"


class _Writer:
    """Records by the identity of what they stand for."""

    def __init__(self, opaque: Hook) -> None:
        self.records: list[Any] = []
        self.places: dict[int, int] = {}
        self.kept: list[Any] = []  # so that no identity is used twice
        self.opaque = opaque

    def value(self, x: Any) -> Any:
        """A value as JSON: numbers, text and null are themselves, everything else an object with one key."""
        if x is None or isinstance(x, (str, bool)) or type(x) is int:
            return x
        if isinstance(x, float):
            return {"float": x.hex()}
        if isinstance(x, enum.Enum):
            return {"enum": [type(x).__name__, x.name]}
        if isinstance(x, Type):
            return {"type": [int(x.code()), x.bits(), x.lanes()]}
        if isinstance(x, (list, tuple)):
            return {"list" if isinstance(x, list) else "tuple": [self.value(e) for e in x]}
        if isinstance(x, dict):
            return {"dict": [[self.value(k), self.value(v)] for k, v in x.items()]}
        if type(x).__name__ not in _CLASSES:
            return {"opaque": self.opaque(x)}
        return {"at": self.record(x)}

    def record(self, x: Any) -> int:
        """The number of the record of an object."""
        found = self.places.get(id(x))
        if found is not None:
            return found
        self.kept.append(x)
        if isinstance(x, nodes.Node):  # after its children, which it is built from
            fields = [self.value(getattr(x, f)) for f in x.fields]
            self.records.append([type(x).__name__, *fields])
            self.places[id(x)] = len(self.records) - 1
            return len(self.records) - 1
        place = self.places[id(x)] = len(self.records)  # before its fields, which may lead back to it
        self.records.append(None)
        if isinstance(x, ExternFunction) and x.builtin:
            self.records[place] = ["builtin", x.name, self.value(x.args)]
            return place
        if isinstance(x, ExternFunction) and x.address:
            raise CompileError(f"The C function {x.name} is an address in this process and cannot be saved; give hl.extern its source or "
                               "library")
        fields = [bool(getattr(x, f)) if f in _CODE else self.value(getattr(x, f)) for f in _fields(type(x))]
        self.records[place] = [type(x).__name__, *fields]
        return place


def write(root: Any, opaque: Hook) -> bytes:
    """An object graph as bytes; `opaque` gives JSON for objects of other classes. Raises CompileError for C functions that are mere
    addresses."""
    w = _Writer(opaque)
    with deep_recursion():
        top = w.value(root)
    payload = zlib.compress(json.dumps([top, w.records], separators=(",", ":")).encode(), 6)
    return _HEAD + blake2b(payload, digest_size=16).digest() + payload


class _Lost:
    """Stands where Python code was: whatever is asked of it is an error."""

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def __getattr__(self, _: str) -> NoReturn:
        raise CompileError(f"The custom gradient of {self.__dict__['name']} is Python code and was not saved with the pipeline; define it "
                           "again to take derivatives")

    def __call__(self, *_: Any) -> NoReturn:
        self.__getattr__("")


class _Reader:
    """Objects by the number of their record."""

    def __init__(self, records: list[Any], opaque: Hook, replace: dict[str, Parameter]) -> None:
        self.records, self.opaque = records, opaque
        self.replaced: dict[Parameter, str] = {}
        self.objects: list[Any] = [self.empty(r) for r in records]
        for place, r in enumerate(records):
            if isinstance(self.objects[place], Parameter):
                name = r[1 + _fields(Parameter).index("name")]
                if name in replace:
                    self.objects[place] = replace[name]
                    self.replaced[replace[name]] = name
        self.nodes()

    def is_replaced(self, x: Any) -> bool:
        """Whether a parameter came from outside."""
        return isinstance(x, Parameter) and x in self.replaced

    @staticmethod
    def empty(r: list[Any]) -> Any:
        """What a record stands for, its fields to be filled; None for a node."""
        if r[0] == "builtin":
            return None
        cls = _CLASSES[r[0]]
        return None if issubclass(cls, nodes.Node) else object.__new__(cls)

    def value(self, v: Any) -> Any:
        """The inverse of the writer's."""
        if not isinstance(v, dict):
            return v
        ((kind, x),) = v.items()
        if kind == "at":
            return self.objects[x]
        if kind == "float":
            return float.fromhex(x)
        if kind == "enum":
            return _CLASSES[x[0]][x[1]]  # type: ignore[index]
        if kind == "type":
            return Type(TypeCode(x[0]), x[1], x[2])
        if kind == "dict":
            return {self.value(k): self.value(e) for k, e in x}
        if kind == "opaque":
            return self.opaque(x)
        return {"list": list, "tuple": tuple}[kind](self.value(e) for e in x)

    def nodes(self) -> None:
        """Build the nodes, then fill the rest."""
        for place, r in enumerate(self.records):
            if r[0] == "builtin":
                self.objects[place] = EXTERNS[(r[1], self.value(r[2]))]
            elif issubclass(_CLASSES[r[0]], nodes.Node):
                self.objects[place] = self.node(_CLASSES[r[0]], [self.value(v) for v in r[1:]])
        for place, r in enumerate(self.records):
            if r[0] != "builtin" and not issubclass(_CLASSES[r[0]], nodes.Node) and not self.is_replaced(self.objects[place]):
                self.fill(self.objects[place], r[1:])

    def node(self, cls: type, values: list[Any]) -> Any:
        """A node; what mentions a replaced parameter (`im`, `im.stride.0`) gets its name."""
        names = _fields(cls)
        if "param" in names and self.is_replaced(values[names.index("param")]):
            new, i = values[names.index("param")], names.index("name")
            values[i] = new.name + values[i][len(self.replaced[new]):]
        return cls(*values)

    def fill(self, x: Any, values: list[Any]) -> None:
        """Set the fields of a dataclass."""
        for f in dataclasses.fields(x):
            if f.name in _SKIPPED:
                object.__setattr__(x, f.name, f.default_factory() if f.default_factory is not dataclasses.MISSING else f.default)
        names = _fields(type(x))
        if len(names) != len(values):
            raise ValueError
        for name, v in zip(names, values):
            filled = self.value(v) if name not in _CODE else _Lost(values[names.index("name")]) if v else None
            object.__setattr__(x, name, filled)


@contextlib.contextmanager
def refusing_what_is_malformed() -> Iterator[None]:
    """Around uses of what was read: bytes that no `write` made may be any graph. Raises CompileError for what trips over them."""
    try:
        yield
    except (zlib.error, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, MemoryError) as e:
        raise CompileError(f"This saved pipeline is malformed ({type(e).__name__}: {e})") from None


def read(data: bytes, opaque: Hook, replace: dict[str, Parameter]) -> Any:
    """The object graph in bytes made by `write`, with other parameters in the place of those named in `replace`.

    Raises CompileError for bytes that are something else, were damaged, or come from a version with another format.
    """
    if not data.startswith(_MAGIC):
        raise CompileError("These bytes are not a pipeline saved by halide_py")
    if not data.startswith(_HEAD):
        raise CompileError("This pipeline was saved by another version of halide_py, whose format differs; save it again with this one")
    digest, payload = data[len(_HEAD):len(_HEAD) + 16], data[len(_HEAD) + 16:]
    if blake2b(payload, digest_size=16).digest() != digest:
        raise CompileError("This saved pipeline is damaged: its digest is not that of its data")
    with refusing_what_is_malformed(), deep_recursion():
        top, records = json.loads(zlib.decompress(payload))
        return _Reader(records, opaque, replace).value(top)
