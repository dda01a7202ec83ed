/* print.c: text out, and values as text in the forms the language defines. */
#include "hl_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { TEXTS = 8, TEXT_BYTES = 1024 };

static _Atomic(halide_print_t) custom_print;
static _Thread_local char texts[TEXTS][TEXT_BYTES];
static _Thread_local unsigned next_text;

HL_OVERRIDABLE void halide_default_print(void *user_context, const char *message) {
    (void)user_context;
    fputs(message, stderr);
}

halide_print_t halide_set_custom_print(halide_print_t print) {
    halide_print_t previous = atomic_exchange(&custom_print, print);
    return previous ? previous : halide_default_print;
}

HL_OVERRIDABLE void halide_print(void *user_context, const char *message) {
    halide_print_t hook = atomic_load(&custom_print);
    if (hook) {
        hook(user_context, message);
    } else {
        halide_default_print(user_context, message);
    }
}

static double float_value(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

double hl_bfloat16_value(uint16_t bits) {
    return float_value((uint32_t)bits << 16);
}

double hl_float16_value(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 0x3ff;
    if (exponent == 31) {
        return float_value(sign | 0x7f800000 | mantissa << 13);
    }
    if (exponent == 0) { /* zero and subnormals: mantissa * 2^-24 */
        double value = (double)mantissa / 16777216.0;
        return sign ? -value : value;
    }
    return float_value(sign | (exponent + 112) << 23 | mantissa << 13);
}

const char *hl_type_name(char *text, struct halide_type_t type) {
    static const char *const codes[] = {"int", "uint", "float", "handle", "bfloat"};
    const char *code = (unsigned)type.code < 5 ? codes[(unsigned)type.code] : "bad_type_code";
    if (type.lanes == 1) {
        snprintf(text, 32, "%s%d", code, type.bits);
    } else {
        snprintf(text, 32, "%s%dx%d", code, type.bits, type.lanes);
    }
    return text;
}

/* One value of the list as text at `at`; gives the length it has or would have. */
static int format_value(char *at, size_t room, char kind, va_list *args) {
    switch (kind) {
    case 'i':
        return snprintf(at, room, "%" PRId64, va_arg(*args, int64_t));
    case 'u':
        return snprintf(at, room, "%" PRIu64, va_arg(*args, uint64_t));
    case 'b':
        return snprintf(at, room, "%s", va_arg(*args, int) ? "true" : "false");
    case 'f':
        return snprintf(at, room, "%f", va_arg(*args, double));
    case 'e':
        return snprintf(at, room, "%e", va_arg(*args, double));
    case 'h':
        return snprintf(at, room, "%e", hl_float16_value((uint16_t)va_arg(*args, int)));
    case 'g':
        return snprintf(at, room, "%e", hl_bfloat16_value((uint16_t)va_arg(*args, int)));
    case 'p':
        return snprintf(at, room, "0x%" PRIxPTR, (uintptr_t)va_arg(*args, void *));
    default: {
        const char *string = va_arg(*args, const char *);
        return snprintf(at, room, "%s", string ? string : "<nullptr>");
    }
    }
}

static void format_values(char *text, size_t size, const char *kinds, va_list *args) {
    size_t length = 0;
    text[0] = 0;
    for (const char *kind = kinds; *kind && length + 1 < size; kind++) {
        if (kind != kinds) {
            text[length++] = ' ';
        }
        int n = format_value(text + length, size - length, *kind, args);
        if (n > 0) {
            length += (size_t)n;
        }
    }
}

const char *hl_stringify(const char *kinds, ...) {
    char *text = texts[next_text++ % TEXTS];
    va_list args;
    va_start(args, kinds);
    format_values(text, TEXT_BYTES, kinds, &args);
    va_end(args);
    return text;
}

int hl_print(void *user_context, const char *kinds, ...) {
    char line[4096];
    va_list args;
    va_start(args, kinds);
    format_values(line, sizeof(line) - 1, kinds, &args);
    va_end(args);
    size_t n = strlen(line);
    line[n] = '\n';
    line[n + 1] = 0;
    halide_print(user_context, line);
    return 0;
}

void hl_debug_buffer(void *user_context, const char *text, const struct halide_buffer_t *buffer) {
    char line[4096], type[32];
    if (!buffer) {
        snprintf(line, sizeof(line), "%snullptr\n", text);
        halide_print(user_context, line);
        return;
    }
    size_t n = (size_t)snprintf(line, sizeof(line), "%sbuffer(%" PRIu64 ", %p, %p, %" PRIu64 ", %s", text, buffer->device,
                                (const void *)buffer->device_interface, (void *)buffer->host, buffer->flags, hl_type_name(type, buffer->type));
    for (int32_t d = 0; buffer->dim && d < buffer->dimensions && n < sizeof(line) - 64; d++) {
        const halide_dimension_t *dim = &buffer->dim[d];
        n += (size_t)snprintf(line + n, sizeof(line) - n, ", {%d, %d, %d}", dim->min, dim->extent, dim->stride);
    }
    snprintf(line + (n < sizeof(line) - 3 ? n : sizeof(line) - 3), 3, ")\n");
    halide_print(user_context, line);
}
