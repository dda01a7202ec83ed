"""The fingerprint of a pipeline: a digest of its definitions, schedules, constraints, arguments and target, of the compiler and of our own
version.

Two pipelines of one fingerprint compile to the same code, so a second process can skip lowering. Each interned node is visited once;
Functions and parameters count by name.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import os
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from ..ir import nodes as n
from ..ir.function import Function, ReductionDomain
from ..ir.module import LoweredArgument
from ..ir.parameter import Parameter
from ..ir.target import Target
from ..ir.traverse import deep_recursion
from ..ir.types import Type
from ..lower.environment import environment
from .graph import Requirement

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_COMPILER = ("ir", "lower", "codegen_c", "driver", "_runtime")
# what does not reach the code
_IGNORED = {
    "where", "sites", "min_estimate", "extent_estimate", "estimate", "gradient", "tangent", "frozen", "extra", "given", "with_updates"
}


@functools.cache
def own_version() -> str:
    """What our own compiler is: name, size and time of each of its files."""
    return _version(_COMPILER)


@functools.cache
def header_version() -> str:
    """What the headers are that all generated C includes."""
    return _version((os.path.join("_runtime", "include"),))


def _version(parts: tuple[str, ...]) -> str:
    h = blake2b(digest_size=16)
    for part in parts:
        for folder, folders, files in os.walk(os.path.join(_PACKAGE, part), followlinks=True):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            for name in sorted(files):
                stat = os.stat(os.path.join(folder, name))
                h.update(f"{part}/{name} {stat.st_size} {stat.st_mtime_ns};".encode())
    return h.hexdigest()


class _Digest:
    """Digests of values, remembered for nodes, and the parameters met on the way."""

    def __init__(self) -> None:
        self.nodes: dict[n.Node, bytes] = {}
        self.parameters: dict[str, Parameter] = {}

    def of(self, x: Any) -> bytes:
        """The digest of any part of a pipeline."""
        if isinstance(x, n.Node):
            found = self.nodes.get(x)
            if found is None:
                found = self.nodes[x] = self.join(type(x).__name__, *[getattr(x, f) for f in x.fields])
            return found
        if isinstance(x, (str, Type, enum.Enum)):
            return str(x).encode()
        if isinstance(x, float):
            return x.hex().encode()
        if isinstance(x, (int, bytes)) or x is None:
            return repr(x).encode()
        if isinstance(x, (list, tuple)):
            return self.join(*x)
        if isinstance(x, Parameter):
            self.parameters[x.name] = x
            return b"parameter " + x.name.encode()
        if isinstance(x, Function):
            return b"function " + x.name.encode()
        if isinstance(x, ReductionDomain):
            return b"domain " + x.name.encode()
        if isinstance(x, dict):
            return self.join(*sorted(x.items()))
        if dataclasses.is_dataclass(x) and not isinstance(x, type):
            return self.join(type(x).__name__, *[getattr(x, f.name) for f in dataclasses.fields(x) if f.name not in _IGNORED])
        raise TypeError(f"no fingerprint of {type(x).__name__}")

    def join(self, *parts: Any) -> bytes:
        """One digest of several."""
        h = blake2b(digest_size=16)
        for p in parts:
            d = self.of(p)
            h.update(len(d).to_bytes(4, "little"))
            h.update(d)
        return h.digest()

    def function(self, f: Function) -> bytes:
        """A Function with all it owns: definitions, reduction domains, schedules, constraints on its buffers."""
        domains = [d.rdom.variables for d in f.stages() if d.rdom is not None]
        fields = [getattr(f, field.name) for field in dataclasses.fields(f) if field.name not in (*_IGNORED, "output_params")]
        return self.join(domains, *fields, *[self.constraints(p) for p in f.output_params])

    def constraints(self, p: Parameter) -> bytes:
        """What is promised about a parameter; not its value."""
        return self.join(p.name, p.type, p.is_buffer, p.dimensions, p.minimum, p.maximum, p.host_alignment, p.dims, p.trace_loads)


def fingerprint(
    outputs: Sequence[Function], args: Sequence[LoweredArgument], name: str, target: Target, requirements: Sequence[Requirement]
) -> str:
    """A digest of all that a pipeline's C text depends on."""
    with deep_recursion():
        d = _Digest()
        whole = d.join(own_version(), name, target.to_string(), [d.function(f) for f in environment(outputs).values()],
                       [f.name for f in outputs], [(a.name, a.kind, a.type, a.dimensions, a.param) for a in args], list(requirements))
        done: set[str] = set()
        while d.parameters.keys() - done:  # constraints may mention more parameters
            for key in sorted(d.parameters.keys() - done):
                done.add(key)
                whole = d.join(whole, d.constraints(d.parameters[key]))
        return whole.hex()
