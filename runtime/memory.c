/* memory.c: scratch memory. Freed blocks are kept by size class, so that a pipeline's second run meets no page faults; what is kept is
 * bounded (HL_SCRATCH_CACHE bytes, default 256 MiB) and goes back to the system beyond that.
 *
 * A block: [64 bytes: its class][capacity bytes][64 bytes to read beyond]. Classes grow by a quarter of a power of two, so at most a
 * fifth of a block is unused. Each class has its own lock, and each thread sets aside one block of each small class, so that threads which
 * allocate in their inner loops do not meet. Large blocks begin at different places of a page: of arrays at the same place, a loop's loads
 * wait for its stores 4096 bytes apart.
 */
#include "hl_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

enum {
    ALIGNMENT = 64,
    SMALLEST_LOG2 = 8,
    LARGEST_LOG2 = 31, /* blocks of 2 GiB and more are not kept */
    STEPS = 4,
    CLASSES = STEPS * (LARGEST_LOG2 - SMALLEST_LOG2) + 1,
    UNCACHED = CLASSES,
    SHIFTED = 4096,
    SMALL_CLASSES = STEPS * (16 - SMALLEST_LOG2) + 1 /* up to 64 KiB */
};

struct block {
    struct block *next;
    void *memory; /* what was allocated */
    size_t capacity;
    int size_class;
};

struct size_class {
    pthread_mutex_t lock;
    struct block *blocks;
};

static struct size_class classes[CLASSES];
static _Thread_local struct block *set_aside[SMALL_CLASSES];
static _Thread_local int known_thread;
static pthread_key_t thread_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_size_t kept_bytes;
static atomic_size_t large_blocks; /* made so far */
static size_t keep_limit;

static _Atomic(halide_malloc_t) custom_malloc;
static _Atomic(halide_free_t) custom_free;

/* Give back what a thread has set aside. */
static void release_thread(void *unused) {
    (void)unused;
    for (int k = 0; k < SMALL_CLASSES; k++) {
        hl_aligned_free(set_aside[k] ? set_aside[k]->memory : NULL);
        set_aside[k] = NULL;
    }
    known_thread = 0;
}

static void start(void) {
    const char *text = getenv("HL_SCRATCH_CACHE");
    keep_limit = text ? (size_t)strtoull(text, NULL, 10) : (size_t)256 << 20;
#ifdef SANITIZED
    keep_limit = 0; /* let the sanitizer see every allocation */
#endif
    for (int i = 0; i < CLASSES; i++) {
        pthread_mutex_init(&classes[i].lock, NULL);
    }
    pthread_key_create(&thread_end, release_thread);
}

/* The smallest class that holds `size`, with its capacity; UNCACHED beyond the largest. Within an octave the steps count from 0 to STEPS,
 * the last of which is the next octave's first. */
static int class_of(size_t size, size_t *capacity) {
    int log2 = SMALLEST_LOG2;
    if (size >> LARGEST_LOG2) {
        *capacity = size;
        return UNCACHED;
    }
    while (((size_t)2 << log2) <= size) {
        log2++;
    }
    size_t base = (size_t)1 << log2, step = base / STEPS;
    size_t steps = size <= base ? 0 : (size - base + step - 1) / step;
    *capacity = base + steps * step;
    return (log2 - SMALLEST_LOG2) * STEPS + (int)steps;
}

/* A kept block of a class, or null. */
static struct block *take(int k) {
    struct block *b = NULL;
    if (k < SMALL_CLASSES && set_aside[k]) {
        b = set_aside[k];
        set_aside[k] = NULL;
    } else if (k != UNCACHED) {
        pthread_mutex_lock(&classes[k].lock);
        b = classes[k].blocks;
        if (b) {
            classes[k].blocks = b->next;
        }
        pthread_mutex_unlock(&classes[k].lock);
        if (b) {
            atomic_fetch_sub(&kept_bytes, b->capacity);
        }
    }
    return b;
}

/* Set a block aside for this thread's next allocation of its class; 0 when there is one already. */
static int put_aside(struct block *b) {
    int k = b->size_class;
    if (k >= SMALL_CLASSES || set_aside[k] || keep_limit == 0) {
        return 0;
    }
    if (!known_thread) {
        known_thread = pthread_setspecific(thread_end, &known_thread) == 0;
    }
    if (known_thread) {
        set_aside[k] = b;
    }
    return known_thread;
}

HL_OVERRIDABLE void *halide_default_malloc(void *user_context, size_t size) {
    size_t capacity = size;
    (void)user_context;
    pthread_once(&once, start);
    if (size > SIZE_MAX / 2) {
        return NULL;
    }
    int k = class_of(size, &capacity);
    struct block *b = take(k);
    if (!b) {
        size_t shift = capacity < SHIFTED ? 0 : (atomic_fetch_add(&large_blocks, 1) * 5 % 16) * 256;
        void *memory = hl_aligned_alloc(ALIGNMENT, shift + capacity + 2 * ALIGNMENT);
        if (!memory) {
            return NULL;
        }
        b = (struct block *)((uint8_t *)memory + shift);
        b->memory = memory;
        b->capacity = capacity;
        b->size_class = k;
    }
    return (uint8_t *)b + ALIGNMENT;
}

HL_OVERRIDABLE void halide_default_free(void *user_context, void *ptr) {
    (void)user_context;
    if (!ptr) {
        return;
    }
    struct block *b = (struct block *)((uint8_t *)ptr - ALIGNMENT);
    int k = b->size_class;
    if (put_aside(b)) {
        return;
    }
    if (k == UNCACHED || atomic_fetch_add(&kept_bytes, b->capacity) + b->capacity > keep_limit) {
        if (k != UNCACHED) {
            atomic_fetch_sub(&kept_bytes, b->capacity);
        }
        hl_aligned_free(b->memory);
        return;
    }
    pthread_mutex_lock(&classes[k].lock);
    b->next = classes[k].blocks;
    classes[k].blocks = b;
    pthread_mutex_unlock(&classes[k].lock);
}

void hl_trim_memory(void) {
    pthread_once(&once, start);
    release_thread(NULL);
    for (int i = 0; i < CLASSES; i++) {
        pthread_mutex_lock(&classes[i].lock);
        struct block *b = classes[i].blocks;
        classes[i].blocks = NULL;
        pthread_mutex_unlock(&classes[i].lock);
        while (b) {
            struct block *next = b->next;
            atomic_fetch_sub(&kept_bytes, b->capacity);
            hl_aligned_free(b->memory);
            b = next;
        }
    }
}

/* A library that is unloaded gives back what it kept; after the pool has ended its threads, hence the priority. */
HL_AT_UNLOAD((101)) static void trim_at_unload(void) {
    hl_trim_memory();
    pthread_key_delete(thread_end);
}

halide_malloc_t halide_set_custom_malloc(halide_malloc_t user_malloc) {
    halide_malloc_t previous = atomic_exchange(&custom_malloc, user_malloc);
    return previous ? previous : halide_default_malloc;
}

halide_free_t halide_set_custom_free(halide_free_t user_free) {
    halide_free_t previous = atomic_exchange(&custom_free, user_free);
    return previous ? previous : halide_default_free;
}

HL_OVERRIDABLE void *halide_malloc(void *user_context, size_t size) {
    halide_malloc_t hook = atomic_load_explicit(&custom_malloc, memory_order_relaxed);
    return hook ? hook(user_context, size) : halide_default_malloc(user_context, size);
}

HL_OVERRIDABLE void halide_free(void *user_context, void *ptr) {
    halide_free_t hook = atomic_load_explicit(&custom_free, memory_order_relaxed);
    if (hook) {
        hook(user_context, ptr);
    } else {
        halide_default_free(user_context, ptr);
    }
}

void hl_memory_before_fork(void) {
    pthread_once(&once, start);
    for (int i = 0; i < CLASSES; i++) {
        pthread_mutex_lock(&classes[i].lock);
    }
}

void hl_memory_after_fork(void) {
    for (int i = CLASSES - 1; i >= 0; i--) {
        pthread_mutex_unlock(&classes[i].lock);
    }
}
