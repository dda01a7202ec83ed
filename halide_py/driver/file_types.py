"""The kinds of files made ahead of time, as users name them."""

from __future__ import annotations

import enum

from ..ir.target import Target
from ..ir.target_words import TargetOS


class OutputFileType(enum.IntEnum):
    """What `compile_to` can write. Values are Halide's, but for shared_library, which it has not; those for devices are refused."""

    assembly = 0
    bitcode = 1
    c_header = 2
    c_source = 3
    compiler_log = 4
    cpp_stub = 5
    featurization = 6
    function_info_header = 7
    hlpipe = 8
    llvm_assembly = 9
    object = 10
    python_extension = 11
    pytorch_wrapper = 12
    registration = 13
    schedule = 14
    static_library = 15
    stmt = 16
    conceptual_stmt = 17
    stmt_html = 18
    conceptual_stmt_html = 19
    device_code = 20
    shared_library = 21


EXTENSIONS = {
    kind: "." + (suffix or kind.name)
    for kind, suffix in (
        (OutputFileType.assembly, "s"),
        (OutputFileType.bitcode, "bc"),
        (OutputFileType.c_header, "h"),
        (OutputFileType.c_source, "halide_generated.cpp"),
        (OutputFileType.compiler_log, "halide_compiler_log"),
        (OutputFileType.cpp_stub, "stub.h"),
        (OutputFileType.featurization, ""),
        (OutputFileType.function_info_header, "function_info.h"),
        (OutputFileType.hlpipe, ""),
        (OutputFileType.llvm_assembly, "ll"),
        (OutputFileType.object, "o"),
        (OutputFileType.python_extension, "py.cpp"),
        (OutputFileType.pytorch_wrapper, "pytorch.h"),
        (OutputFileType.registration, "registration.cpp"),
        (OutputFileType.schedule, "schedule.py"),
        (OutputFileType.static_library, "a"),
        (OutputFileType.stmt, ""),
        (OutputFileType.conceptual_stmt, "conceptual.stmt"),
        (OutputFileType.stmt_html, "stmt.html"),
        (OutputFileType.conceptual_stmt_html, "conceptual.stmt.html"),
        (OutputFileType.device_code, ""),
        (OutputFileType.shared_library, "so"),
    )
}


def extension(kind: OutputFileType, target: Target) -> str:
    """What the name of a file of a kind ends in, for a target."""
    on_windows = {
        OutputFileType.object: ".obj", OutputFileType.static_library: ".lib", OutputFileType.shared_library: ".dll",
    } if target.os is TargetOS.Windows else {}
    return on_windows.get(kind, EXTENSIONS[kind])


class StmtOutputFormat(enum.IntEnum):
    """How `compile_to_lowered_stmt` writes."""

    Text = 0
    HTML = 1
