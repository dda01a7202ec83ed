"""Compiles generated C with the system's compiler and calls it on NumPy arrays, without the driver; builders for lowered functions."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from halide_py.codegen_c import Machine, generate
from halide_py.driver.abi import SHARED_RUNTIME
from halide_py.ir import build as b
from halide_py.ir import nodes as n
from halide_py.ir.module import ArgumentKind, LoweredArgument, LoweredFunction, LoweredModule
from halide_py.ir.types import INT32, Handle, Type

ROOT = Path(__file__).resolve().parents[2]
SANITIZERS = os.environ.get("HL_SANITIZE", "")  # as for pipelines: `make test-sanitized`
FLAGS = (*([f"-fsanitize={SANITIZERS}", "-fno-sanitize-recover=all", "-g"] if SANITIZERS else []), "-O2", "-march=native", "-mtune=skylake", "-fwrapv", "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-w")
CHECKS = ("-O1", "-march=native", "-fwrapv", "-fno-math-errno", "-fPIC", "-shared", "-w", "-fsanitize=undefined", "-fno-sanitize-recover=all")


class Dimension(ctypes.Structure):
    _fields_ = [("min", ctypes.c_int32), ("extent", ctypes.c_int32), ("stride", ctypes.c_int32), ("flags", ctypes.c_uint32)]


class BufferT(ctypes.Structure):
    _fields_ = [("device", ctypes.c_uint64), ("interface", ctypes.c_void_p), ("host", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("dimensions", ctypes.c_int32), ("dim", ctypes.POINTER(Dimension)), ("padding", ctypes.c_void_p)]


@functools.cache
def host_features() -> frozenset[str]:
    """Instruction sets of this machine, as the driver would find them."""
    text = subprocess.run(["gcc", "-march=native", "-dM", "-E", "-x", "c", os.devnull], capture_output=True, text=True, check=True).stdout
    return frozenset(line.split()[1].strip("_").lower() for line in text.splitlines() if line.startswith("#define __"))


def machine(vector_bytes: int = 32, features: frozenset[str] | None = None) -> Machine:
    """A machine with vectors of this width; widths this host does not have still compile."""
    return Machine(vector_bytes, host_features() if features is None else features, "gcc")


@functools.cache
def runtime() -> ctypes.CDLL:
    """The installed runtime library: the very copy that pipelines of this process use, so that there is one last error and one print hook."""
    return ctypes.CDLL(SHARED_RUNTIME, mode=ctypes.RTLD_GLOBAL)


def build(text: str, flags: Sequence[str] = FLAGS, language: str = "c++") -> ctypes.CDLL:
    """The shared object of a C text."""
    runtime()
    included = "".join(h.read_text() for h in sorted((ROOT / "runtime").glob("*.h")))
    name = hashlib.sha256((text + repr(flags) + language + included).encode()).hexdigest()[:16]
    folder = os.path.join(tempfile.gettempdir(), "halide_py_codegen_tests")
    os.makedirs(folder, exist_ok=True)
    source, library = os.path.join(folder, f"{name}.{os.getpid()}.c"), os.path.join(folder, name + ".so")
    if not os.path.exists(library):
        mine = f"{library}.{os.getpid()}"  # several workers may want the same at once
        Path(source).write_text(text)
        done = subprocess.run(["g++" if language == "c++" else "gcc", *flags, "-I", str(ROOT / "runtime"), "-x", language, source, "-o", mine, "-x", "none", "-lm"],
                              capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:3000] + "\n" + text
        os.replace(mine, library)
    return ctypes.CDLL(library)


def call(library: ctypes.CDLL, name: str, args: Sequence[Any]) -> int:
    """Call NAME_argv with arrays (dimension 0 is the last axis) and ctypes scalars; gives its result."""
    block, _alive = argument_block(args)
    return int(getattr(library, name + "_argv")(block))


def argument_block(args: Sequence[Any]) -> tuple[Any, list[Any]]:
    """What NAME_argv takes, and what has to live as long."""
    keep: list[Any] = []
    block = (ctypes.c_void_p * max(len(args), 1))()
    for i, a in enumerate(args):
        if isinstance(a, np.ndarray):
            dims = (Dimension * max(a.ndim, 1))()
            for d in range(a.ndim):
                dims[d] = Dimension(0, a.shape[-1 - d], a.strides[-1 - d] // a.itemsize, 0)
            code = {"i": 0, "u": 1, "f": 2, "b": 1}[a.dtype.kind]
            held = BufferT(0, None, a.ctypes.data, 0, code, 1 if a.dtype.kind == "b" else a.itemsize * 8, 1, a.ndim, dims, None)
            keep += [dims, held, a]
        else:
            held = a
            keep.append(held)
        block[i] = ctypes.addressof(held)
    return block, keep


# ---- lowered functions by hand


def var(name: str, t: Type = INT32) -> n.Expr:
    return n.Variable(t, name)


def host(name: str, body: n.Stmt) -> n.Stmt:
    """Bind the data pointer of a buffer argument."""
    return n.LetStmt(name, n.Call(Handle(), "_halide_buffer_get_host", (var(name + ".buffer", Handle()),), n.CallType.Extern), body)


def ramp(base: n.Expr | int, lanes: int, stride: int = 1) -> n.Expr:
    base = b.i32(base) if isinstance(base, int) else base
    return base if lanes == 1 else n.Ramp(base, b.i32(stride), lanes)


def load(t: Type, name: str, base: n.Expr | int, lanes: int, stride: int = 1) -> n.Expr:
    return n.Load(t.with_lanes(lanes), name, ramp(base, lanes, stride), b.true(lanes))


def store(name: str, value: n.Expr, base: n.Expr | int, stride: int = 1) -> n.Stmt:
    lanes = value.type.lanes()
    return n.Store(name, value, ramp(base, lanes, stride), b.true(lanes))


def loop(name: str, extent: n.Expr | int, body: n.Stmt, kind: n.ForType = n.ForType.Serial) -> n.Stmt:
    extent = b.i32(extent) if isinstance(extent, int) else extent
    return n.For(name, b.i32(0), extent, kind, n.Partition.Auto, body)


def function(name: str, body: n.Stmt, inputs: dict[str, Type] | None = None, outputs: dict[str, Type] | None = None,
             scalars: dict[str, Type] | None = None) -> LoweredModule:
    """A module of one function: input buffers, scalars, output buffers in this order; host pointers bound."""
    args = [LoweredArgument(k, ArgumentKind.InputBuffer, t, 1) for k, t in (inputs or {}).items()]
    args += [LoweredArgument(k, ArgumentKind.InputScalar, t) for k, t in (scalars or {}).items()]
    args += [LoweredArgument(k, ArgumentKind.OutputBuffer, t, 1) for k, t in (outputs or {}).items()]
    for k in [*(inputs or {}), *(outputs or {})]:
        body = host(k, body)
    return LoweredModule(name, [LoweredFunction(name, tuple(args), body, name)])


def run(module: LoweredModule, args: Sequence[Any], vector_bytes: int = 32, flags: Sequence[str] = FLAGS, language: str = "c++") -> int:
    """Generate, compile, call the first function."""
    return call(build(generate(module, machine(vector_bytes)), flags, language), module.name, args)
