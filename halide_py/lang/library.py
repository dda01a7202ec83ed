"""Libraries made ahead of time, loaded back: their functions as Callables, from the metadata they contain."""

from __future__ import annotations

import os
import sys
from typing import Any

from .. import driver
from ..driver._ffi import ffi
from ..driver.abi import runtime
from ..driver.compile import LoadedPipeline
from ..errors import CompileError
from ..ir.module import USER_CONTEXT, ArgumentKind, LoweredArgument
from ..ir.target import ISA_FEATURES, Target, get_host_target
from ..ir.types import Type, TypeCode
from .callable import Callable

_VERSION = 1  # of halide_filter_metadata_t


def load_library(filename: str | os.PathLike[str], function: str = "") -> Callable:
    """A function of a shared library written by `compile_to_shared_library`, as a Python function of its inputs and outputs.

    `function` names it if the library has several. Arguments are checked as for any Callable. Raises CompileError for files that are no
    such library, libraries for another machine or for instructions this processor lacks, and names that are not there.
    """
    path = os.path.abspath(os.fspath(filename))
    if "\0" in path:
        raise CompileError(f"Cannot load {path!r}: it names no file")
    runtime()  # loaded first, its functions are the library's too: one thread pool, errors and prints as everywhere
    if sys.platform == "linux" and os.path.isfile(path) and driver.binaries.is_cut_off(driver.files.read_bytes(path)):
        raise CompileError(f"Cannot load {path}: it is no shared library of this system (not ELF, or cut off)")
    try:
        library = ffi.dlopen(path, ffi.RTLD_NOW | ffi.RTLD_NODELETE)
        listed = library.hl_library()
    except OSError as e:
        raise CompileError(f"Cannot load {path}: {_reason(e, path)}") from None
    except (AttributeError, ffi.error):
        raise CompileError(f"{path} is not a library of pipelines; compile_to_shared_library() makes one") from None
    found: dict[str, Any] = {}
    i = 0
    while listed[i].metadata:
        data = listed[i].metadata()
        if data.version != _VERSION:
            raise CompileError(f"{path} has metadata of version {data.version}, and this halide_py reads version {_VERSION}; compile it "
                               "again")
        found[ffi.string(data.name).decode()] = (data, listed[i].argv)
        i += 1
    name = function or (next(iter(found)) if len(found) == 1 else "")
    if name not in found:
        asked = f"no function {function}" if function else "several functions; say which"
        raise CompileError(f"{path} has {asked}: there are {', '.join(found)}")
    data, entry = found[name]
    _check_target(path, ffi.string(data.target).decode())
    args = tuple(_argument(data.arguments[k]) for k in range(data.num_arguments))
    first = next((k for k, a in enumerate(args) if a.kind is ArgumentKind.OutputBuffer), len(args))
    if args and args[0].name == USER_CONTEXT:
        raise CompileError(f"{name} of {path} takes a user context, which Python has none of; compile it without the target feature "
                           "user_context")
    return Callable(LoadedPipeline(name, args, entry), first, first)


def _reason(e: OSError, path: str) -> str:
    if not os.path.exists(path):
        return "there is no such file"
    return "it is no shared library of this system (" + str(e).rpartition(": ")[2] + ")"


def _check_target(path: str, text: str) -> None:
    target, host = Target(text), get_host_target()
    if (target.arch, target.bits, target.os) != (host.arch, host.bits, host.os):
        raise CompileError(f"{path} was compiled for {target}, and this is {host}")
    lacking = sorted(f.label for f in ISA_FEATURES & set(target.features()) - set(host.features()))
    if lacking:
        raise CompileError(f"{path} was compiled for processors with {', '.join(lacking)}, which this one lacks")


def _argument(a: Any) -> LoweredArgument:
    t = Type(TypeCode(int(a.type.code)), int(a.type.bits), 1)
    return LoweredArgument(ffi.string(a.name).decode(), ArgumentKind(a.kind), t, int(a.dimensions))
