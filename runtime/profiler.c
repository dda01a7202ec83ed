/* profiler.c: where the time of pipelines goes, for code compiled with the target feature `profile`.
 *
 * Each thread knows the Func it works on and since when; entering or leaving a production adds the time since then to the Func that was worked on.
 * A thread that waits for others' parts of a parallel loop works on none. A Func is busy while at least one thread works on it. Scratch memory is counted
 * where it is taken and given back. Nothing of this exists in code compiled without the feature.
 */
#include "hl_internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hl_profile_pipeline *pipelines;

static _Thread_local struct {
    struct hl_profile_func *func;
    uint64_t since, entered;
} work;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void add(uint64_t *sum, uint64_t amount) {
    __atomic_fetch_add(sum, amount, __ATOMIC_RELAXED);
}

static int same(const struct hl_profile_pipeline *p, const char *name, int count, const char *const *funcs) {
    if (strcmp(p->name, name) != 0 || p->count != count) {
        return 0;
    }
    for (int i = 0; i < count; i++) {
        if (strcmp(p->funcs[i].name, funcs[i]) != 0) {
            return 0;
        }
    }
    return 1;
}

static char *copy(const char *text) {
    size_t n = strlen(text) + 1;
    char *made = malloc(n);
    return made ? memcpy(made, text, n) : NULL;
}

/* Ours for good: the library that a pipeline came from may be closed. */
static struct hl_profile_pipeline *make(const char *name, int count, const char *const *funcs) {
    struct hl_profile_pipeline *p = calloc(1, sizeof(*p));
    if (!p || !(p->funcs = calloc((size_t)count + 1, sizeof(*p->funcs))) || !(p->name = copy(name))) {
        return NULL;
    }
    for (int i = 0; i < count; i++) {
        if (!(p->funcs[i].name = copy(funcs[i]))) {
            return NULL;
        }
    }
    p->count = count;
    return p;
}

struct hl_profile_pipeline *hl_profile_pipeline(const char *name, int count, const char *const *funcs, const uint64_t *stack) {
    static struct hl_profile_func no_funcs[1];
    static struct hl_profile_pipeline none = {.name = "out of memory", .funcs = no_funcs};
    pthread_mutex_lock(&lock);
    struct hl_profile_pipeline **end = &pipelines;
    while (*end && !same(*end, name, count, funcs)) {
        end = &(*end)->next;
    }
    if (!*end) {
        *end = make(name, count, funcs);
    }
    struct hl_profile_pipeline *found = *end;
    for (int i = 0; found && i < count; i++) {
        found->funcs[i].stack_peak = stack[i];
    }
    pthread_mutex_unlock(&lock);
    return found ? found : &none;
}

/* The number of threads at work on a Func changes by `by`; a lock is needed only where it becomes or was 0, for then the Func's busy time begins or ends. */
static void working(struct hl_profile_func *f, int32_t by, uint64_t t) {
    int32_t threads = __atomic_load_n(&f->threads, __ATOMIC_RELAXED);
    while (threads > (by < 0)) {
        if (__atomic_compare_exchange_n(&f->threads, &threads, threads + by, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            return;
        }
    }
    while (__atomic_test_and_set(&f->lock, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
    threads = __atomic_add_fetch(&f->threads, by, __ATOMIC_RELAXED);
    if (by > 0 && threads == 1) {
        f->since = t;
    } else if (threads == 0 && t > f->since) {
        f->busy += t - f->since;
    }
    __atomic_clear(&f->lock, __ATOMIC_RELEASE);
}

/* The calling thread works on another Func, or none. Gives the one before. */
static struct hl_profile_func *work_on(struct hl_profile_func *func) {
    struct hl_profile_func *before = work.func;
    uint64_t t = now();
    if (before) {
        add(&before->nanoseconds, t - work.since);
    }
    if (before != func) {
        if (before) {
            working(before, -1, t);
        }
        if (func) {
            working(func, 1, t);
        }
    }
    work.func = func;
    work.since = t;
    return before;
}

struct hl_profile_func *hl_profile_enter(struct hl_profile_func *func, int counted) {
    if (func) {
        add(&func->entered, counted != 0);
        work.entered++;
    }
    return work_on(func);
}

void hl_profile_leave(struct hl_profile_func *before) {
    work_on(before);
}

static void take(struct hl_profile_memory *m, uint64_t bytes) {
    uint64_t current = __atomic_add_fetch(&m->current, bytes, __ATOMIC_RELAXED), peak = __atomic_load_n(&m->peak, __ATOMIC_RELAXED);
    while (current > peak && !__atomic_compare_exchange_n(&m->peak, &peak, current, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    add(&m->total, bytes);
    add(&m->count, 1);
}

struct hl_profile_allocation hl_profile_allocate(struct hl_profile_pipeline *pipeline, struct hl_profile_func *func, uint64_t bytes) {
    struct hl_profile_allocation held = {pipeline, func, bytes};
    if (bytes) { /* else it is one that a condition left out */
        take(&pipeline->memory, bytes);
        if (func) {
            take(&func->memory, bytes);
        }
    }
    return held;
}

void hl_profile_free(const struct hl_profile_allocation *held) {
    add(&held->pipeline->memory.current, 0 - held->bytes);
    if (held->func) {
        add(&held->func->memory.current, 0 - held->bytes);
    }
}

struct hl_profile_run hl_profile_begin(struct hl_profile_pipeline *p) {
    struct hl_profile_run run = {p, now(), work.entered};
    return run;
}

void hl_profile_finish(const struct hl_profile_run *run) {
    if (work.entered != run->entered) { /* not a bounds query, nor refused */
        add(&run->pipeline->runs, 1);
        add(&run->pipeline->nanoseconds, now() - run->start);
    }
}

const struct hl_profile_pipeline *hl_profile_first(void) {
    pthread_mutex_lock(&lock);
    const struct hl_profile_pipeline *first = pipelines;
    pthread_mutex_unlock(&lock);
    return first;
}

static void forget(struct hl_profile_memory *m) {
    m->peak = m->current;
    m->total = m->count = 0;
}

HL_OVERRIDABLE void halide_profiler_reset(void) {
    pthread_mutex_lock(&lock);
    for (struct hl_profile_pipeline *p = pipelines; p; p = p->next) {
        p->runs = p->nanoseconds = 0;
        forget(&p->memory);
        for (int i = 0; i < p->count; i++) {
            p->funcs[i].nanoseconds = p->funcs[i].busy = p->funcs[i].entered = 0;
            p->funcs[i].since = now();
            forget(&p->funcs[i].memory);
        }
    }
    pthread_mutex_unlock(&lock);
}

static double ratio(uint64_t a, uint64_t b) {
    return b ? (double)a / (double)b : 0;
}

void hl_profile_table(void (*print)(void *context, const char *line), void *context) {
    char line[1024];
    for (const struct hl_profile_pipeline *p = hl_profile_first(); p; p = p->next) {
        uint64_t sum = 0;
        if (!p->runs) {
            continue;
        }
        for (int i = 0; i < p->count; i++) {
            sum += p->funcs[i].nanoseconds;
        }
        snprintf(line, sizeof(line), "%s\n total time: %.3f ms  runs: %llu  time per run: %.3f ms\n average threads used: %.2f\n", p->name,
                 (double)p->nanoseconds / 1e6, (unsigned long long)p->runs, (double)p->nanoseconds / 1e6 / (double)p->runs, ratio(sum, p->nanoseconds));
        print(context, line);
        snprintf(line, sizeof(line), " heap allocations: %llu  peak heap usage: %llu bytes\n", (unsigned long long)p->memory.count,
                 (unsigned long long)p->memory.peak);
        print(context, line);
        for (int i = 0; i < p->count; i++) {
            const struct hl_profile_func *f = &p->funcs[i];
            int n = snprintf(line, sizeof(line), "  %-24s %10.3f ms (%5.1f%%)  times: %-8llu threads: %.2f", f->name, (double)f->nanoseconds / 1e6,
                             100 * ratio(f->nanoseconds, sum), (unsigned long long)f->entered, ratio(f->nanoseconds, f->busy));
            if (f->memory.count && n < (int)sizeof(line)) {
                n += snprintf(line + n, sizeof(line) - (size_t)n, "  peak: %llu bytes  num: %llu  avg: %.0f bytes", (unsigned long long)f->memory.peak,
                              (unsigned long long)f->memory.count, ratio(f->memory.total, f->memory.count));
            }
            if (f->stack_peak && n < (int)sizeof(line)) {
                snprintf(line + n, sizeof(line) - (size_t)n, "  stack: %llu bytes", (unsigned long long)f->stack_peak);
            }
            print(context, line);
            print(context, "\n");
        }
    }
}

HL_OVERRIDABLE void halide_profiler_report(void *user_context) {
    hl_profile_table(halide_print, user_context);
}
