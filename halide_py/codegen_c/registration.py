"""C++ text that tells a program's registry of pipelines about functions when the program starts, as tools that run any pipeline want it."""

from __future__ import annotations

from collections.abc import Sequence

_HEAD = """/* Made by halide_py. Link this with a program that defines halide_register_argv_and_metadata(): it is called for each function at start. */
struct halide_filter_metadata_t;

extern "C" {
extern void halide_register_argv_and_metadata(int (*filter_argv_call)(void **), const struct halide_filter_metadata_t *filter_metadata,
                                              const char *const *extra_key_value_pairs);
"""
_PAIRS = """#ifdef HALIDE_REGISTER_EXTRA_KEY_VALUE_PAIRS_FUNC
extern const char *const *HALIDE_REGISTER_EXTRA_KEY_VALUE_PAIRS_FUNC();
#define HL_REGISTRATION_PAIRS HALIDE_REGISTER_EXTRA_KEY_VALUE_PAIRS_FUNC()
#else
#define HL_REGISTRATION_PAIRS nullptr
#endif
}

namespace {
"""


def registration(names: Sequence[str]) -> str:
    """The text for functions of these C names."""
    declared = [f"extern int {name}_argv(void **args);\nextern const struct halide_filter_metadata_t *{name}_metadata();\n" for name in names]
    made = [f"const struct {name}_registration {{\n    {name}_registration() {{\n        halide_register_argv_and_metadata({name}_argv, {name}_metadata(), "
            f"HL_REGISTRATION_PAIRS);\n    }}\n}} {name}_registered;\n" for name in names]
    return "".join([_HEAD, *declared, _PAIRS, *made, "} // namespace\n"])
