"""Object files and static libraries: collected, and joined into one."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Sequence

from ..errors import CompileError, InternalError
from .scratch import scratch_folder
from .toolchain import Toolchain


def archive(library: str, objects: Sequence[str], tools: Toolchain) -> None:
    """Add object files to a static library, which is made if there is none. Raises CompileError when there is no archiver."""
    if tools.is_zig:
        command = [*tools.command[:-1], "ar"]
    else:
        # others do not know foreign objects
        usual = ("llvm-ar",) if any(a.startswith("--target=") for a in tools.arch) else ("ar", "gcc-ar", "llvm-ar")
        found = next((p for p in map(shutil.which, (os.environ.get("AR", ""), *usual)) if p), None)
        if found is None:
            raise CompileError(f"No {usual[0]} found to make a static library; install it (Debian: apt-get install binutils, or llvm) or "
                               "set AR")
        command = [found]
    _run([*command, "rcs", library, *objects], "make the static library")


def join_objects(objects: Sequence[str], library: str, joined: str, tools: Toolchain) -> None:
    """Join object files and all that a static library contains into one object. Raises CompileError when there is no linker."""
    if tools.is_zig:
        with scratch_folder() as folder:  # its linker for macOS takes no libraries here
            _run([*tools.command[:-1], "ar", "x", library], "take a static library apart", folder)
            members = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
            _run([*tools.command, *tools.system, "-r", *objects, *members, "-o", joined], "join object files")
        return
    linker = shutil.which("ld") or shutil.which("ld.lld")
    if linker is None:
        raise CompileError("No ld found to join a pipeline and the runtime into one object: write a static_library, or use the target "
                           "feature no_runtime")
    _run([linker, "-r", *objects, "--whole-archive", library, "-o", joined], "join object files")


def _run(command: list[str], what: str, folder: str | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        raise InternalError(f"{command[0]} could not {what}: {done.stderr.strip()}")


def is_cut_off(data: bytes) -> bool:
    """Whether a little-endian ELF file ends before its last table: loading it would end the process."""
    if data[:4] != b"\x7fELF" or len(data) < 64:
        return True
    wide = data[4] == 2
    start, = struct.unpack_from("<Q" if wide else "<I", data, 40 if wide else 32)
    size, count = struct.unpack_from("<HH", data, 58 if wide else 46)
    return bool(data[5] == 1 and start + size * count > len(data))


def weakened(made: bytes) -> bytes:
    """An object file whose global symbols, where it defines them, are weak: other files may define them too.

    ELF and Mach-O of little-endian machines; other formats are given back as they are.
    """
    if made[:4] == b"\x7fELF" and made[5] == 1:
        return _weakened_elf(made)
    return _weakened_mach_o(made) if made[:4] == _MACH_O_64 else made


def _weakened_elf(elf: bytes) -> bytes:
    """Layout: System V ABI, chapter 4."""
    wide, data = elf[4] == 2, bytearray(elf)
    start, = struct.unpack_from("<Q" if wide else "<I", data, 40 if wide else 32)
    size, count = struct.unpack_from("<HH", data, 58 if wide else 46)
    for i in range(count):
        section = start + i * size
        kind, = struct.unpack_from("<I", data, section + 4)
        if kind != _SYMBOL_TABLE:
            continue
        offset, length = struct.unpack_from("<QQ" if wide else "<II", data, section + (24 if wide else 16))
        for symbol in range(offset, offset + length, 24 if wide else 16):
            info = symbol + (4 if wide else 12)
            defined, = struct.unpack_from("<H", data, info + 2)
            if data[info] >> 4 == _GLOBAL and defined:
                data[info] = _WEAK << 4 | data[info] & 15
    return bytes(data)


def _weakened_mach_o(mach_o: bytes) -> bytes:
    """Layout: Apple's <mach-o/loader.h> and <mach-o/nlist.h>."""
    data, command = bytearray(mach_o), 32  # commands follow the header
    commands, = struct.unpack_from("<I", data, 16)
    for _ in range(commands):
        kind, size = struct.unpack_from("<II", data, command)
        if kind == _LC_SYMTAB:
            offset, count = struct.unpack_from("<II", data, command + 8)
            for symbol in range(offset, offset + 16 * count, 16):
                described, = struct.unpack_from("<H", data, symbol + 6)
                if data[symbol + 4] == _EXTERNAL_IN_SECTION:
                    struct.pack_into("<H", data, symbol + 6, described | _WEAK_DEFINITION)
        command += size
    return bytes(data)


_SYMBOL_TABLE, _GLOBAL, _WEAK = 2, 1, 2
_MACH_O_64, _LC_SYMTAB, _EXTERNAL_IN_SECTION, _WEAK_DEFINITION = bytes.fromhex("cffaedfe"), 2, 0x0f, 0x80
