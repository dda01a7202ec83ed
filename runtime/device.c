/* device.c: the functions that copy buffers to and from devices, for programs written for any: there are none here. What needs no device succeeds. */
#include "hl_internal.h"

HL_OVERRIDABLE int halide_error_no_device_interface(void *user_context) {
    halide_error(user_context, "Buffer has a non-zero device but no device interface: there are no devices in this runtime");
    return halide_error_code_no_device_interface;
}

static int without_device(void *user_context, const struct halide_buffer_t *buffer, const char *routine) {
    if (!buffer) {
        return halide_error_buffer_is_null(user_context, routine);
    }
    return buffer->device ? halide_error_no_device_interface(user_context) : 0;
}

HL_OVERRIDABLE int halide_copy_to_host(void *user_context, struct halide_buffer_t *buffer) {
    int code = without_device(user_context, buffer, "halide_copy_to_host");
    if (!code && buffer->flags & halide_buffer_flag_device_dirty) {
        code = halide_error_device_dirty_with_no_device_support(user_context, "halide_copy_to_host");
    }
    return code;
}

HL_OVERRIDABLE int halide_copy_to_device(void *user_context, struct halide_buffer_t *buffer, const struct halide_device_interface_t *interface) {
    (void)buffer;
    (void)interface;
    return halide_error_no_device_interface(user_context);
}

HL_OVERRIDABLE int halide_device_malloc(void *user_context, struct halide_buffer_t *buffer, const struct halide_device_interface_t *interface) {
    return halide_copy_to_device(user_context, buffer, interface);
}

HL_OVERRIDABLE int halide_device_free(void *user_context, struct halide_buffer_t *buffer) {
    return without_device(user_context, buffer, "halide_device_free");
}

HL_OVERRIDABLE int halide_device_sync(void *user_context, struct halide_buffer_t *buffer) {
    return without_device(user_context, buffer, "halide_device_sync");
}

HL_OVERRIDABLE int halide_device_detach_native(void *user_context, struct halide_buffer_t *buffer) {
    return without_device(user_context, buffer, "halide_device_detach_native");
}

HL_OVERRIDABLE void halide_device_release(void *user_context, const struct halide_device_interface_t *interface) {
    (void)user_context;
    (void)interface;
}

HL_OVERRIDABLE double halide_float16_bits_to_double(uint16_t bits) {
    return hl_float16_value(bits);
}

HL_OVERRIDABLE float halide_float16_bits_to_float(uint16_t bits) {
    return (float)hl_float16_value(bits);
}
