"""A C++17 header that describes the arguments of pipelines at compile time: `constexpr auto args = NAME_argument_info();` is a
std::array."""

from __future__ import annotations

from ..ir.module import LoweredFunction, LoweredModule
from .ctypes_of import c_string
from .module import in_namespaces

_HEAD = """/* {names}: made by halide_py. What callers' templates can know of the arguments: name, kind, dimensions, type. */
#ifndef HL_FUNCTION_INFO_{guard}_H
#define HL_FUNCTION_INFO_{guard}_H

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "this header needs C++17"
#endif

#include <array>
#include <cstdint>
#include <string_view>
#if !defined(HALIDE_HALIDERUNTIME_H) && __has_include("HalideRuntime.h")
#include "HalideRuntime.h"
#endif
#if !defined(HALIDE_HALIDERUNTIME_H) && !defined(HL_FUNCTION_INFO_DEFINED)
#define HL_FUNCTION_INFO_DEFINED
namespace HalideFunctionInfo {{
enum ArgumentKind {{ InputScalar = 0, InputBuffer = 1, OutputBuffer = 2 }};
struct ArgumentType {{
    uint8_t code; /* 0 int, 1 uint, 2 float, 3 handle, 4 bfloat */
    uint8_t bits;
}};
struct ArgumentInfo {{
    std::string_view name;
    ArgumentKind kind;
    int32_t dimensions; /* 0 for scalars */
    ArgumentType type;
}};
}}
#define HL_FUNCTION_INFO_TYPE(code, bits) {{ code, bits }}
#elif !defined(HL_FUNCTION_INFO_TYPE)
#define HL_FUNCTION_INFO_TYPE(code, bits) halide_type_t((halide_type_code_t)(code), bits)
#endif

"""


def _function(f: LoweredFunction) -> str:
    rows = [
        f"        {{{c_string(a.shown)}, ::HalideFunctionInfo::{a.kind.name}, {a.dimensions}, HL_FUNCTION_INFO_TYPE({int(a.type.code())}, "
        f"{a.type.bits()})}},\n"
        for a in f.args
    ]
    return in_namespaces(f, f"inline constexpr std::array<::HalideFunctionInfo::ArgumentInfo, {len(f.args)}> {f.simple}_argument_info() "
                            f"{{\n"
                            f"    return {{{{\n{''.join(rows)}    }}}};\n}}\n")


def function_info(module: LoweredModule) -> str:
    """The text of the header."""
    names = ", ".join(f.qualified for f in module.functions)
    return _HEAD.format(names=names, guard=module.name.upper()) + "\n".join(map(_function, module.functions)) + "\n#endif\n"
