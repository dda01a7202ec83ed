/* hl_internal.h: what the runtime's own files share. */
#ifndef HL_INTERNAL_H
#define HL_INTERNAL_H

#include "hl_runtime.h"

/* A program linked with the static library may define these functions itself instead of setting a hook. */
#define HL_OVERRIDABLE __attribute__((weak))

/* What runs when a library is unloaded. Windows has ended all other threads by then, whatever they held; there a library that has started
 * threads stays loaded (hl_stay_loaded) and gives back nothing. */
#ifdef _WIN32
#define HL_AT_UNLOAD(priority) __attribute__((unused))
#else
#define HL_AT_UNLOAD(priority) __attribute__((destructor priority))
#endif

/* What systems name differently (system.c). `hl_open_trace` gives a file descriptor to append to, or -1. */
void hl_stay_loaded(void);
int hl_processors(void); /* that this process may use */
int hl_open_trace(const char *name);
void *hl_aligned_alloc(size_t alignment, size_t size);
void hl_aligned_free(void *memory);

/* Report a failure with a printf-style message. */
void hl_error_format(void *user_context, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* `uint8`, `float32x4`, ... written to `text` of at least 32 bytes; gives `text`. */
const char *hl_type_name(char *text, struct halide_type_t type);

double hl_float16_value(uint16_t bits);
double hl_bfloat16_value(uint16_t bits);

/* What the one pthread_atfork handler calls around fork(). */
void hl_memory_before_fork(void);
void hl_memory_after_fork(void);
void hl_async_before_fork(void);
void hl_async_after_fork_in_parent(void);
void hl_async_after_fork_in_child(void);
void hl_memo_before_fork(void);
void hl_memo_after_fork(void);
void hl_trace_before_fork(void);
void hl_trace_after_fork(void);

/* Let the processor's other thread go on: in loops that wait. */
static inline void hl_pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

#endif
