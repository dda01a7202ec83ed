/* checks.c: what a pipeline asks of the buffers it is given, and its answer to those who ask for their shapes. */
#include "hl_internal.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

typedef const struct halide_buffer_t *Buffer;

static int is_query(Buffer b) {
    return b->host == HL_NULL && b->device == 0;
}

HL_OVERRIDABLE int hl_check_kind(void *user_context, const void *buffer, const char *name, const char *label, uint32_t type,
                                 int32_t dimensions) {
    const Buffer b = (Buffer)buffer;
    if (b == HL_NULL) return halide_error_buffer_argument_is_null(user_context, name);
    uint32_t given;
    memcpy(&given, &b->type, sizeof(given));
    if (given != type && !is_query(b)) return halide_error_bad_type(user_context, label, given, type);
    /* Of queries too: the answer is written there. Without `dim` there is no shape to read. */
    const int32_t shaped = b->dimensions > 0 && b->dim == HL_NULL ? -1 : b->dimensions;
    return shaped == dimensions ? 0 : halide_error_bad_dimensions(user_context, label, shaped, dimensions);
}

static int32_t nearest(int64_t at) {
    return at < INT32_MIN ? INT32_MIN : at > INT32_MAX ? INT32_MAX : (int32_t)at;
}

HL_OVERRIDABLE int hl_check_region(void *user_context, const void *buffer, const char *label, HL_BOOL touched, int32_t dimensions, ...) {
    const Buffer b = (Buffer)buffer;
    int code = 0;
    va_list needs;
    va_start(needs, dimensions);
    for (int32_t d = 0; d < b->dimensions && code == 0; d++) {
        const int64_t low = b->dim[d].min, extent = b->dim[d].extent, high = low + extent - 1;
        if (extent < 0) {
            code = halide_error_buffer_extents_negative(user_context, label, d, b->dim[d].extent);
        } else if (d < dimensions) {
            const int64_t need_low = va_arg(needs, int64_t), need_high = va_arg(needs, int64_t);
            if (touched && (need_low < low || need_high > high)) {
                code = halide_error_access_out_of_bounds(user_context, label, d, nearest(need_low), nearest(need_high), nearest(low), nearest(high));
            }
        }
    }
    va_end(needs);
    if (code || !touched) return code;
    if (b->host == HL_NULL) return halide_error_host_is_null(user_context, label);
    return b->flags & halide_buffer_flag_device_dirty ? halide_error_device_dirty_with_no_device_support(user_context, label) : 0;
}

HL_OVERRIDABLE int hl_check_reach(void *user_context, const char *func, const char *dimension, int64_t low, int64_t high, int32_t count, ...) {
    int fits = low >= INT32_MIN && high <= INT32_MAX && high - low < INT32_MAX;
    va_list inner;
    va_start(inner, count);
    for (int32_t k = 0; k < count; k++) {
        const int64_t value = va_arg(inner, int64_t);
        fits &= value == (int32_t)value;
    }
    va_end(inner);
    return fits ? 0 : halide_error_region_too_large(user_context, func, dimension, low, high);
}

HL_OVERRIDABLE int hl_check_near(void *user_context, const void *buffer, const char *label) {
    const Buffer b = (Buffer)buffer;
    double reach = 0; /* exact as far as it matters: one product has 62 bits */
    if (b == HL_NULL || b->dim == HL_NULL || is_query(b)) return 0;
    for (int32_t d = 0; d < b->dimensions; d++) {
        const double low = b->dim[d].min, high = low + b->dim[d].extent - 1, stride = b->dim[d].stride;
        reach += (stride < 0 ? -stride : stride) * (-low > high ? -low : high);
    }
    if (reach <= INT32_MAX) return 0;
    hl_error_format(user_context, "%s reaches %.0f elements from coordinate zero, which is beyond the %d that vectors of 32 bit indices do; "
                    "compile for a target with the feature large_buffers", label, reach, INT32_MAX);
    return halide_error_code_buffer_allocation_too_large;
}

HL_OVERRIDABLE int hl_check_apart(void *user_context, HL_BOOL same_is_fine, const char *reason, int32_t inputs, int32_t outputs, ...) {
    const int32_t count = inputs + outputs;
    int code = 0;
    va_list firsts, seconds;
    va_start(firsts, outputs);
    for (int32_t i = 0; i < (inputs ? inputs : outputs) && code == 0; i++) {
        const void *const first = va_arg(firsts, const void *);
        const char *const first_label = va_arg(firsts, const char *);
        va_copy(seconds, firsts);
        for (int32_t k = i + 1; k < count && code == 0; k++) {
            const void *const second = va_arg(seconds, const void *);
            const char *const second_label = va_arg(seconds, const char *);
            if (k >= inputs && _halide_buffer_overlap(first, second, same_is_fine)) {
                code = halide_error_buffers_overlap(user_context, first_label, second_label, reason);
            }
        }
        va_end(seconds);
    }
    va_end(firsts);
    return code;
}

HL_OVERRIDABLE int32_t _halide_buffer_answer(void *buffer, uint32_t type, int32_t dimensions, ...) {
    struct halide_buffer_t *const b = (struct halide_buffer_t *)buffer;
    va_list shape;
    if (!is_query(b)) return 0;
    memcpy(&b->type, &type, sizeof(type));
    va_start(shape, dimensions);
    for (int32_t d = 0; d < dimensions; d++) {
        b->dim[d].min = va_arg(shape, int32_t);
        b->dim[d].extent = va_arg(shape, int32_t);
        b->dim[d].stride = va_arg(shape, int32_t);
        b->dim[d].flags = 0;
    }
    va_end(shape);
    return 0;
}
