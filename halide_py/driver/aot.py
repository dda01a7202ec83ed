"""Ahead of time: files that work without Python."""

from __future__ import annotations

import os
import re
import tempfile

from ..codegen_c import Machine, generate, header
from ..errors import CompileError
from ..ir.module import LoweredModule
from .abi import STATIC_RUNTIME
from .cache import write_atomically
from .compile import link_inputs
from .toolchain import compile_shared, toolchain

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def check_identifier(name: str) -> None:
    """Raises CompileError unless `name` can name a C function."""
    if not _IDENTIFIER.fullmatch(name):
        raise CompileError(f"{name!r} cannot name a C function; use letters, digits and underscores, e.g. fn_name='{re.sub(chr(92) + 'W', '_', name) or 'f'}'")


def write_text(filename: str, text: str) -> None:
    """Write a file whole or not at all. Raises CompileError when the folder is missing or not writable."""
    folder = os.path.dirname(os.path.abspath(filename))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise CompileError(f"Cannot write {filename}: {folder} is not a folder that can be written")
    write_atomically(os.path.abspath(filename), text.encode())


def shared_library(prefix: str, module: LoweredModule, machine: Machine) -> None:
    """Write `PREFIX.so`, with the runtime linked in, and `PREFIX.h`."""
    write_text(prefix + ".h", header(module))
    with tempfile.TemporaryDirectory(prefix="halide_py-") as folder:
        made = os.path.join(folder, "library.so")
        compile_shared(generate(module, machine), made, toolchain(), folder, [*link_inputs(module), STATIC_RUNTIME, "-lpthread", "-lm"])
        with open(made, "rb") as file:
            write_atomically(os.path.abspath(prefix + ".so"), file.read())
    os.chmod(prefix + ".so", 0o755)
