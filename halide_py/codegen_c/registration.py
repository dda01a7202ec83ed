"""C++ text that tells a program's registry of pipelines about functions when the program starts, as tools that run any pipeline want it."""

from __future__ import annotations

from ..ir.module import LoweredFunction, LoweredModule
from .module import in_namespaces

_HEAD = """/* Made by halide_py. Link this with a program that defines halide_register_argv_and_metadata(): it is called for each function
at start. */ struct halide_filter_metadata_t;

extern "C" {
extern void halide_register_argv_and_metadata(int (*filter_argv_call)(void **), const struct halide_filter_metadata_t *filter_metadata,
                                              const char *const *extra_key_value_pairs);
#ifdef HALIDE_REGISTER_EXTRA_KEY_VALUE_PAIRS_FUNC
extern const char *const *HALIDE_REGISTER_EXTRA_KEY_VALUE_PAIRS_FUNC();
#define HL_REGISTRATION_PAIRS HALIDE_REGISTER_EXTRA_KEY_VALUE_PAIRS_FUNC()
#else
#define HL_REGISTRATION_PAIRS nullptr
#endif
}

"""


def _declared(f: LoweredFunction) -> str:
    text = f"int {f.simple}_argv(void **args);\nconst struct halide_filter_metadata_t *{f.simple}_metadata();\n"
    return in_namespaces(f, text) if f.namespaces is not None else f'extern "C" {{\n{text}}}\n'


def _registered(f: LoweredFunction) -> str:
    return (f"const struct {f.name}_registration {{\n    {f.name}_registration() {{\n        "
            f"halide_register_argv_and_metadata({f.qualified}_argv, {f.qualified}_metadata(), HL_REGISTRATION_PAIRS);\n    }}\n}} "
            f"{f.name}_registered;\n")


def registration(module: LoweredModule) -> str:
    """The text for the functions of a module."""
    return "".join([_HEAD, *map(_declared, module.functions), "\nnamespace {\n", *map(_registered, module.functions), "} // namespace\n"])
