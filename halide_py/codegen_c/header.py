"""The header of an ahead-of-time library: self-contained C11 and C++17, no warnings, and at peace with the public runtime header."""

from __future__ import annotations

from ..ir.module import LoweredArgument, LoweredFunction, LoweredModule
from .module import in_namespaces, public_parameter

_ABI = """#if !defined(HALIDE_HALIDERUNTIME_H) && defined(__has_include)
#if __has_include("HalideRuntime.h")
#include "HalideRuntime.h" /* the same structs */
#endif
#endif
#if !defined(HALIDE_HALIDERUNTIME_H) && !defined(HL_BUFFER_T_DEFINED)
#define HL_BUFFER_T_DEFINED
struct halide_device_interface_t;
struct halide_type_t {
    uint8_t code; /* 0 int, 1 uint, 2 float, 3 handle, 4 bfloat */
    uint8_t bits;
    uint16_t lanes;
};
struct halide_dimension_t {
    int32_t min, extent, stride; /* stride in elements */
    uint32_t flags;
};
struct halide_buffer_t {
    uint64_t device;
    const struct halide_device_interface_t *device_interface;
    uint8_t *host; /* the element at the min coordinates; null: the call only writes the shape it needs */
    uint64_t flags;
    struct halide_type_t type;
    int32_t dimensions;
    struct halide_dimension_t *dim; /* innermost first */
    void *padding;
};
#endif
"""


def _parameter(a: LoweredArgument) -> str:
    return public_parameter(a).replace("HL_BOOL", "bool")


def header(module: LoweredModule, last_error: str = "hl_last_error") -> str:
    """The text of `NAME.h`, C11 and C++17: the buffer struct and the functions of the module, each 0 on success. `last_error`: where
    messages are."""
    guard = f"HL_PIPELINE_{module.name.upper()}_H"
    c_plus_plus = [f for f in module.functions if f.namespaces is not None]
    lines = [f"/* {module.name}: made by halide_py. Each function gives 0, or an error code; {last_error}() then has the message. */",
             f"#ifndef {guard}", f"#define {guard}", "", "#include <stdbool.h>", "#include <stdint.h>", "", _ABI,
             "struct halide_filter_metadata_t;", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += [_declarations(f) for f in module.functions if f.namespaces is None]
    lines += [f"const char *{last_error}(void);", "", "#ifdef __cplusplus", "}", "#endif", ""]
    if c_plus_plus:
        lines += ["#ifndef __cplusplus", '#error "these functions have C++ linkage"', "#endif", ""]
        lines += [in_namespaces(f, _declarations(f)) for f in c_plus_plus]
    return "\n".join([*lines, "#endif", ""])


def _declarations(f: LoweredFunction) -> str:
    arguments = ", ".join(_parameter(a) for a in f.args) or "void"
    argv = f"int {f.simple}_argv(void **args); /* buffers, and pointers to scalars */\n" if f.has_argv else ""
    described = f"const struct halide_filter_metadata_t *{f.simple}_metadata(void);\n" if f.has_metadata else ""
    return f"int {f.simple}({arguments});\n{argv}{described}"
