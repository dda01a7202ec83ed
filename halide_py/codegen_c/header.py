"""The header of an ahead-of-time library: self-contained C11 and C++17, no warnings, and at peace with the public runtime header."""

from __future__ import annotations

from ..ir.module import LoweredModule
from .module import signature

_ABI = """#if !defined(HALIDE_HALIDERUNTIME_H) && !defined(HL_RUNTIME_H) && !defined(HL_BUFFER_T_DEFINED)
#define HL_BUFFER_T_DEFINED
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
    const void *device_interface;
    uint8_t *host; /* the element at the min coordinates; null: the call only writes the shape it needs */
    uint64_t flags;
    struct halide_type_t type;
    int32_t dimensions;
    struct halide_dimension_t *dim; /* innermost first */
    void *padding;
};
#endif
"""


def header(module: LoweredModule) -> str:
    """The text of `NAME.h`: the buffer struct and the functions of the module, each 0 on success."""
    guard = f"HL_PIPELINE_{module.name.upper()}_H"
    lines = [f"/* {module.name}: made by halide_py. Each function gives 0, or an error code; hl_last_error() then has the message. */",
             f"#ifndef {guard}", f"#define {guard}", "", "#include <stdint.h>", "", "#ifdef __cplusplus", 'extern "C" {', "#endif", "", _ABI]
    for f in module.functions:
        lines += [f"{signature(f)};", f"int {f.name}_argv(void **args);"]
    lines += ["const char *hl_last_error(void);", "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(lines)
