/* errors.c: where messages go. Each thread has its last error; a handler may be set instead. Nothing here ends the process. */
#include "hl_internal.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

enum { MESSAGE_BYTES = 4096 };

static _Thread_local char last_error[MESSAGE_BYTES];
static _Atomic(halide_error_handler_t) error_handler;

const char *hl_last_error(void) {
    return last_error;
}

void hl_clear_error(void) {
    last_error[0] = 0;
}

void hl_set_last_error(const char *message) {
    size_t n = 0;
    for (; n < MESSAGE_BYTES - 1 && message[n]; n++) {
        last_error[n] = message[n];
    }
    while (n > 0 && last_error[n - 1] == '\n') {
        n--;
    }
    last_error[n] = 0;
}

HL_OVERRIDABLE void halide_default_error(void *user_context, const char *message) {
    (void)user_context;
    hl_set_last_error(message);
#ifdef HL_ERRORS_TO_STDERR
    fprintf(stderr, "Error: %s\n", last_error);
#endif
}

halide_error_handler_t halide_set_error_handler(halide_error_handler_t handler) {
    halide_error_handler_t previous = atomic_exchange(&error_handler, handler);
    return previous ? previous : halide_default_error;
}

HL_OVERRIDABLE void halide_error(void *user_context, const char *message) {
    halide_error_handler_t handler = atomic_load(&error_handler);
    if (handler) {
        handler(user_context, message);
    } else {
        halide_default_error(user_context, message);
    }
}

void hl_error_format(void *user_context, const char *format, ...) {
    char message[MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    halide_error(user_context, message);
}
