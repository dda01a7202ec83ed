/* error_messages.c: the failures a pipeline can report. Each names the buffer, Func or parameter, the dimension and both numbers,
 * and gives the code the pipeline returns. */
#include "hl_internal.h"

#include <inttypes.h>
#include <string.h>

HL_OVERRIDABLE int halide_error_bounds_inference_call_failed(void *user_context, const char *extern_stage_name, int result) {
    hl_error_format(user_context, "Bounds inference call to external stage %s returned non-zero value: %d", extern_stage_name, result);
    return result;
}

HL_OVERRIDABLE int halide_error_extern_stage_failed(void *user_context, const char *extern_stage_name, int result) {
    hl_error_format(user_context, "Call to external stage %s returned non-zero value: %d", extern_stage_name, result);
    return result;
}

HL_OVERRIDABLE int halide_error_explicit_bounds_too_small(void *user_context, const char *func_name, const char *var_name,
                                                          int min_bound, int max_bound, int min_required, int max_required) {
    hl_error_format(user_context, "Bounds given for %s in %s (from %d to %d) do not cover required region (from %d to %d)", var_name,
                    func_name, min_bound, max_bound, min_required, max_required);
    return halide_error_code_explicit_bounds_too_small;
}

HL_OVERRIDABLE int halide_error_bad_type(void *user_context, const char *func_name, uint32_t type_given, uint32_t correct_type) {
    struct halide_type_t given, correct;
    char given_name[32], correct_name[32];
    memcpy(&given, &type_given, sizeof(given));
    memcpy(&correct, &correct_type, sizeof(correct));
    hl_error_format(user_context, "%s has type %s but type of the buffer passed in is %s", func_name,
                    hl_type_name(correct_name, correct), hl_type_name(given_name, given));
    return halide_error_code_bad_type;
}

HL_OVERRIDABLE int halide_error_bad_dimensions(void *user_context, const char *func_name, int32_t dimensions_given,
                                               int32_t correct_dimensions) {
    hl_error_format(user_context, "%s requires a buffer of exactly %d dimensions, but the buffer passed in has %d dimensions", func_name,
                    correct_dimensions, dimensions_given);
    return halide_error_code_bad_dimensions;
}

HL_OVERRIDABLE int halide_error_access_out_of_bounds(void *user_context, const char *func_name, int dimension, int min_touched,
                                                     int max_touched, int min_valid, int max_valid) {
    if (min_touched < min_valid) {
        hl_error_format(user_context, "%s is accessed at %d, which is before the min (%d) in dimension %d", func_name, min_touched,
                        min_valid, dimension);
    } else {
        hl_error_format(user_context, "%s is accessed at %d, which is beyond the max (%d) in dimension %d", func_name, max_touched,
                        max_valid, dimension);
    }
    return halide_error_code_access_out_of_bounds;
}

HL_OVERRIDABLE int halide_error_buffer_allocation_too_large(void *user_context, const char *buffer_name, uint64_t allocation_size,
                                                            uint64_t max_size) {
    hl_error_format(user_context, "Total allocation for buffer %s is %" PRIu64 ", which exceeds the maximum size of %" PRIu64, buffer_name,
                    allocation_size, max_size);
    return halide_error_code_buffer_allocation_too_large;
}

HL_OVERRIDABLE int halide_error_buffer_extents_negative(void *user_context, const char *buffer_name, int dimension, int extent) {
    hl_error_format(user_context, "The extents for buffer %s dimension %d is negative (%d)", buffer_name, dimension, extent);
    return halide_error_code_buffer_extents_negative;
}

HL_OVERRIDABLE int halide_error_buffer_extents_too_large(void *user_context, const char *buffer_name, int64_t actual_size,
                                                         int64_t max_size) {
    hl_error_format(user_context, "Product of extents for buffer %s is %" PRId64 ", which exceeds the maximum size of %" PRId64,
                    buffer_name, actual_size, max_size);
    return halide_error_code_buffer_extents_too_large;
}

HL_OVERRIDABLE int halide_error_constraints_make_required_region_smaller(void *user_context, const char *buffer_name, int dimension,
                                                                         int constrained_min, int constrained_extent,
                                                                         int required_min, int required_extent) {
    int64_t required_max = (int64_t)required_min + required_extent - 1;
    int64_t constrained_max = (int64_t)constrained_min + constrained_extent - 1;
    hl_error_format(user_context,
                    "Applying the constraints on %s to the required region made it smaller in dimension %d. Required size: %d to %" PRId64
                    ". Constrained size: %d to %" PRId64 ".",
                    buffer_name, dimension, required_min, required_max, constrained_min, constrained_max);
    return halide_error_code_constraints_make_required_region_smaller;
}

HL_OVERRIDABLE int halide_error_constraint_violated(void *user_context, const char *var, int val, const char *constrained_var,
                                                    int constrained_val) {
    hl_error_format(user_context, "Constraint violated: %s (%d) == %s (%d)", var, val, constrained_var, constrained_val);
    return halide_error_code_constraint_violated;
}

#define PARAM_OUT_OF_RANGE(suffix, type, format)                                                                            \
    HL_OVERRIDABLE int halide_error_param_too_small_##suffix(void *user_context, const char *param_name, type val, type min_val) { \
        hl_error_format(user_context, "Parameter %s is " format " but must be at least " format, param_name, val, min_val);        \
        return halide_error_code_param_too_small;                                                                              \
    }                                                                                                                          \
    HL_OVERRIDABLE int halide_error_param_too_large_##suffix(void *user_context, const char *param_name, type val, type max_val) { \
        hl_error_format(user_context, "Parameter %s is " format " but must be at most " format, param_name, val, max_val);         \
        return halide_error_code_param_too_large;                                                                              \
    }

PARAM_OUT_OF_RANGE(i64, int64_t, "%" PRId64)
PARAM_OUT_OF_RANGE(u64, uint64_t, "%" PRIu64)
PARAM_OUT_OF_RANGE(f64, double, "%e")

HL_OVERRIDABLE int halide_error_out_of_memory(void *user_context) {
    halide_error(user_context, "Out of memory (halide_malloc returned nullptr)");
    return halide_error_code_out_of_memory;
}

HL_OVERRIDABLE int halide_error_buffer_argument_is_null(void *user_context, const char *buffer_name) {
    hl_error_format(user_context, "Buffer argument %s is nullptr", buffer_name);
    return halide_error_code_buffer_argument_is_null;
}

HL_OVERRIDABLE int halide_error_debug_to_file_failed(void *user_context, const char *func, const char *filename, int error_code) {
    hl_error_format(user_context, "Failed to dump function %s to file %s with error %d", func, filename, error_code);
    return halide_error_code_debug_to_file_failed;
}

HL_OVERRIDABLE int halide_error_unaligned_host_ptr(void *user_context, const char *func_name, int alignment) {
    hl_error_format(user_context, "The host pointer of %s is not aligned to a %d bytes boundary.", func_name, alignment);
    return halide_error_code_unaligned_host_ptr;
}

HL_OVERRIDABLE int halide_error_host_is_null(void *user_context, const char *func_name) {
    hl_error_format(user_context, "The host pointer of %s is null, but the pipeline will access it on the host.", func_name);
    return halide_error_code_host_is_null;
}

HL_OVERRIDABLE int halide_error_bad_fold(void *user_context, const char *func_name, const char *var_name, const char *loop_name) {
    hl_error_format(user_context, "The folded storage dimension %s of %s was accessed out of order by loop %s.", var_name, func_name,
                    loop_name);
    return halide_error_code_bad_fold;
}

HL_OVERRIDABLE int halide_error_bad_extern_fold(void *user_context, const char *func_name, int dim, int min, int extent, int valid_min,
                                                int fold_factor) {
    int64_t max = (int64_t)min + extent - 1, valid_max = (int64_t)valid_min + fold_factor - 1;
    if (min < valid_min || max > valid_max) {
        hl_error_format(user_context,
                        "Cannot fold dimension %d of %s because an extern stage accesses [%d, %" PRId64
                        "], which is outside the range currently valid: [%d, %" PRId64 "].",
                        dim, func_name, min, max, valid_min, valid_max);
    } else {
        hl_error_format(user_context,
                        "Cannot fold dimension %d of %s because an extern stage accesses [%d, %" PRId64
                        "], which wraps around the boundary of the fold, which occurs at multiples of %d.",
                        dim, func_name, min, max, fold_factor);
    }
    return halide_error_code_bad_extern_fold;
}

HL_OVERRIDABLE int halide_error_fold_factor_too_small(void *user_context, const char *func_name, const char *var_name, int fold_factor,
                                                      const char *loop_name, int required_extent) {
    hl_error_format(user_context,
                    "The fold factor (%d) of dimension %s of %s is too small to store the required region accessed by loop %s (%d).",
                    fold_factor, var_name, func_name, loop_name, required_extent);
    return halide_error_code_fold_factor_too_small;
}

HL_OVERRIDABLE int halide_error_requirement_failed(void *user_context, const char *condition, const char *message) {
    hl_error_format(user_context, "Requirement Failed: (%s) %s", condition, message);
    return halide_error_code_requirement_failed;
}

HL_OVERRIDABLE int halide_error_specialize_fail(void *user_context, const char *message) {
    hl_error_format(user_context, "A schedule specialized with specialize_fail() was chosen: %s", message);
    return halide_error_code_specialize_fail;
}

HL_OVERRIDABLE int halide_error_host_and_device_dirty(void *user_context) {
    halide_error(user_context, "Buffer has both host and device dirty bits set.");
    return halide_error_code_host_and_device_dirty;
}

HL_OVERRIDABLE int halide_error_buffer_is_null(void *user_context, const char *routine) {
    hl_error_format(user_context, "Buffer pointer passed to %s is null.", routine);
    return halide_error_code_buffer_is_null;
}

HL_OVERRIDABLE int halide_error_device_dirty_with_no_device_support(void *user_context, const char *buffer_name) {
    hl_error_format(user_context,
                    "The buffer %s is dirty on device, but this pipeline was compiled with no support for device to host copies.",
                    buffer_name);
    return halide_error_code_device_dirty_with_no_device_support;
}

HL_OVERRIDABLE int halide_error_storage_bound_too_small(void *user_context, const char *func_name, const char *var_name,
                                                        int provided_size, int required_size) {
    hl_error_format(user_context,
                    "The explicit allocation bound (%d) of dimension %s of %s is too small to store the required region (%d).",
                    provided_size, var_name, func_name, required_size);
    return halide_error_code_storage_bound_too_small;
}

HL_OVERRIDABLE int halide_error_split_factor_not_positive(void *user_context, const char *func_name, const char *orig, const char *outer,
                                                          const char *inner, const char *factor_str, int factor) {
    hl_error_format(user_context,
                    "In schedule for func %s, the factor used to split the variable %s into %s and %s is %s. This evaluated to %d, which "
                    "is not strictly positive. Consider using max(%s, 1) instead.",
                    func_name, orig, outer, inner, factor_str, factor, factor_str);
    return halide_error_code_split_factor_not_positive;
}

HL_OVERRIDABLE int halide_error_buffers_overlap(void *user_context, const char *first, const char *second, const char *reason) {
    hl_error_format(user_context, "%s and %s share memory: %s", first, second, reason);
    return halide_error_code_buffers_overlap;
}

HL_OVERRIDABLE int halide_error_region_too_large(void *user_context, const char *func_name, const char *var_name,
                                                 int64_t min_required, int64_t max_required) {
    hl_error_format(user_context,
                    "Func %s is required from %" PRId64 " to %" PRId64 " in dimension %s; this, its extent or a value it is computed from is beyond "
                    "int32. Limit the index with clamp(), or make the output smaller.",
                    func_name, min_required, max_required, var_name);
    return halide_error_code_region_too_large;
}

HL_OVERRIDABLE int hl_error_wrong_cpu(void *user_context, const char *func_name, const char *needs) {
    hl_error_format(user_context, "%s was compiled for processors with %s, and this one lacks some of them; compile it for an older target", func_name, needs);
    return hl_error_code_wrong_cpu;
}
