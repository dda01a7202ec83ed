"""The runtime's functions under other names, so that a program may hold several runtimes, each with its own threads, hooks and caches.

`halide_NAME` becomes `PREFIXNAME`, other names get the prefix in front: in C text by macros in front of everything, in object files by
objcopy.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Mapping

from ..errors import CompileError, InternalError
from ..ir.module import RuntimeLinkage
from .abi import INCLUDE_DIR, SOURCE_DIR, STATIC_RUNTIME

Prefixes = Mapping[RuntimeLinkage, str]
_DECLARED = re.compile(r"^(?!static\b|typedef\b|enum\b)[\w ]+[ *]((?:_?halide|hl)_\w+)\(", re.MULTILINE)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def _declared(path: str) -> tuple[str, ...]:
    with open(path, encoding="utf-8") as file:
        return tuple(dict.fromkeys(_DECLARED.findall(file.read())))


@functools.cache
def public_functions() -> tuple[str, ...]:
    """What generated code and programs may call, in the order of the header."""
    return _declared(os.path.join(INCLUDE_DIR, "hl_runtime.h"))


def checked_prefixes(given: Mapping[RuntimeLinkage, str]) -> dict[RuntimeLinkage, str]:
    """Prefixes as users give them. Raises CompileError for one that is not the beginning of a C identifier."""
    prefixes = {RuntimeLinkage(linkage): prefix for linkage, prefix in given.items()}
    for linkage, prefix in prefixes.items():
        if not isinstance(prefix, str) or not _IDENTIFIER.fullmatch(prefix):
            raise CompileError(f"The prefix {prefix!r} for RuntimeLinkage.{linkage.name} cannot begin a C identifier; use letters, digits "
                               "and underscores")
    return prefixes


def renamed(name: str, prefix: str) -> str:
    """A function's name under a prefix; as it is for none."""
    return prefix + name.removeprefix("halide_") if prefix else name


def macros(prefix: str) -> str:
    """C text in front of everything else that renames what is declared and called; '' for no prefix."""
    return "".join(f"#define {name} {renamed(name, prefix)}\n" for name in public_functions()) if prefix else ""


def all_macros(prefixes: Prefixes) -> str:
    """C text in front of the runtime's own files that renames its functions, also those that it does not declare to others."""
    inside = prefixes.get(RuntimeLinkage.Internal, "")
    internal = _declared(os.path.join(SOURCE_DIR, "hl_internal.h")) if inside else ()
    return macros(prefixes.get(RuntimeLinkage.Export, "")) + "".join(f"#define {name} {renamed(name, inside)}\n" for name in internal)


def static_runtime(prefixes: Prefixes, folder: str) -> str:
    """The runtime's static library; under other names, a copy in `folder`. Raises CompileError when there is no objcopy."""
    outside, inside = prefixes.get(RuntimeLinkage.Export, ""), prefixes.get(RuntimeLinkage.Internal, "")
    if not outside and not inside:
        return STATIC_RUNTIME
    nm, objcopy = (next((p for p in map(shutil.which, (tool, f"llvm-{tool}")) if p), "") for tool in ("nm", "objcopy"))
    if not nm or not objcopy:
        raise CompileError("No nm and objcopy found to rename the runtime's functions: install them (Debian: apt-get install binutils)")
    public = set(public_functions())
    defined = sorted(
        {line.split()[-1] for line in _run([nm, "--defined-only", "--extern-only", STATIC_RUNTIME]).splitlines() if line.count(" ") == 2}
    )
    listed, copy = os.path.join(folder, "names"), os.path.join(folder, "runtime.a")
    with open(listed, "w", encoding="ascii") as file:
        for name in defined:
            file.write(f"{name} {renamed(name, outside if name in public or name.startswith('halide_') else inside)}\n")
    _run([objcopy, f"--redefine-syms={listed}", STATIC_RUNTIME, copy])
    return copy


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InternalError(f"{command[0]} could not rename the runtime's functions: {done.stderr.strip()}")
    return done.stdout
