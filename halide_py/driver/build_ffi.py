"""Writes `_ffi.py`, the out-of-line cffi module (ABI mode): run `python halide_py/driver/build_ffi.py` after changing the declarations.

Generated once and committed: declaring them at import would cost 130 ms of parsing.
"""

from __future__ import annotations

from pathlib import Path

import cffi

DECLARATIONS = """
struct halide_type_t { uint8_t code; uint8_t bits; uint16_t lanes; };
typedef struct halide_dimension_t { int32_t min, extent, stride; uint32_t flags; } halide_dimension_t;
typedef struct halide_buffer_t {
    uint64_t device; const void *device_interface; uint8_t *host; uint64_t flags;
    struct halide_type_t type; int32_t dimensions; halide_dimension_t *dim; void *padding;
} halide_buffer_t;
int hl_pipeline_entry(void **args);
typedef void (*halide_print_t)(void *user_context, const char *message);
halide_print_t halide_set_custom_print(halide_print_t print);
int halide_set_num_threads(int n);
int halide_get_num_threads(void);
void halide_shutdown_thread_pool(void);
const char *hl_last_error(void);
void hl_clear_error(void);
void hl_trim_memory(void);
"""


def main() -> None:
    """Generate the module next to this file."""
    ffi = cffi.FFI()
    ffi.cdef(DECLARATIONS)
    ffi.set_source("_ffi", None)
    ffi.emit_python_code(str(Path(__file__).with_name("_ffi.py")))


if __name__ == "__main__":
    main()
