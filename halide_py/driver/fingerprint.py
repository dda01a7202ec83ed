"""The fingerprint of a pipeline: a digest of its definitions, schedules, constraints, arguments, target and of our own version.

Two pipelines of one fingerprint compile to the same code, so a second process can skip lowering. Each interned node is visited once; objects count by name.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import os
from hashlib import blake2b
from typing import Any, Sequence

from ..ir import nodes as n
from ..ir.function import Function, ReductionDomain
from ..ir.intrinsics import ExternFunction
from ..ir.module import LoweredArgument
from ..ir.parameter import Parameter
from ..ir.target import Target
from ..ir.traverse import deep_recursion
from ..ir.types import Type
from ..lower.environment import environment

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@functools.lru_cache(maxsize=None)
def own_version() -> str:
    """What our own code is: name, size and time of each source file."""
    h = blake2b(digest_size=16)
    for folder, _, files in sorted(os.walk(_PACKAGE)):
        for name in sorted(files):
            if name.endswith((".py", ".h", ".so")):
                stat = os.stat(os.path.join(folder, name))
                h.update(f"{name} {stat.st_size} {stat.st_mtime_ns};".encode())
    return h.hexdigest()


class _Digest:
    """Numbers for values; equal values get equal digests."""

    def __init__(self) -> None:
        self.nodes: dict[n.Node, bytes] = {}
        self.params: dict[str, Parameter] = {}

    def of(self, x: Any) -> bytes:
        """The digest of any part of a pipeline."""
        if isinstance(x, n.Node):
            found = self.nodes.get(x)
            if found is None:
                found = self.nodes[x] = self.join(type(x).__name__, *(getattr(x, f) for f in x.fields))
            return found
        if isinstance(x, (str, int, float, bool, type(None), bytes)):
            return repr(x).encode() if not isinstance(x, float) else x.hex().encode()
        if isinstance(x, enum.Enum):
            return str(x).encode()
        if isinstance(x, Type):
            return str(x).encode()
        if isinstance(x, (list, tuple)):
            return self.join(*x)
        if isinstance(x, Parameter):
            self.params[x.name] = x
            return b"param " + x.name.encode()
        if isinstance(x, Function):
            return b"func " + x.name.encode()
        if isinstance(x, ReductionDomain):
            return b"rdom " + x.name.encode()
        if isinstance(x, ExternFunction):
            fields = (x.name, x.result, x.args, x.c_name, x.pure, x.source, x.library, x.objects, x.address)
            return self.join(*fields)
        if dataclasses.is_dataclass(x):
            return self.join(*(getattr(x, f.name) for f in dataclasses.fields(x) if f.name != "where"))
        raise TypeError(f"no fingerprint of {type(x).__name__}")

    def join(self, *parts: Any) -> bytes:
        """One digest of several."""
        h = blake2b(digest_size=16)
        for p in parts:
            d = self.of(p)
            h.update(len(d).to_bytes(4, "little"))
            h.update(d)
        return h.digest()


def _constraints(d: _Digest, p: Parameter) -> bytes:
    return d.join(p.name, p.type, p.is_buffer, p.dimensions, p.minimum, p.maximum, p.host_alignment, [(c.min, c.extent, c.stride) for c in p.dims], p.trace_loads)


def fingerprint(outputs: Sequence[Function], args: Sequence[LoweredArgument], name: str, target: Target, requirements: Sequence[Any], compiler: str) -> str:
    """The key of a pipeline in the cache."""
    with deep_recursion():
        d = _Digest()
        parts: list[Any] = [own_version(), compiler, name, target.to_string(), os.environ.get("HL_SANITIZE", "")]
        for f in environment(outputs).values():
            stages = [(s.args, s.values, s.predicate, s.rdom.variables if s.rdom else None, s.schedule) for s in f.stages()]
            parts.append(d.join(f.name, f.args, f.types, stages, f.schedule, f.trace_loads, f.trace_stores, f.trace_realizations, f.trace_tags))
            for p in f.output_params:
                parts.append(_constraints(d, p))
        parts += [(a.name, a.kind, a.type, a.dimensions) for a in args]
        parts += [f.name for f in outputs]
        parts += list(requirements)
        body = d.join(*parts)
        seen: set[str] = set()
        while d.params.keys() - seen:  # constraints may mention more parameters
            for key in sorted(d.params.keys() - seen):
                seen.add(key)
                body = d.join(body, _constraints(d, d.params[key]))
        return body.hex()
