/* profiler.c: where the time of pipelines goes, for code compiled with the target feature `profile`.
 *
 * Each thread knows the Func it works on and since when; entering or leaving a production adds the time since then to the Func that was worked on.
 * A thread that waits for others' parts of a parallel loop works on none. Nothing of this exists in code compiled without the feature.
 */
#include "hl_internal.h"

#include <pthread.h>
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

struct hl_profile_pipeline *hl_profile_pipeline(const char *name, int count, const char *const *funcs) {
    static struct hl_profile_func no_funcs[1];
    static struct hl_profile_pipeline none = {"out of memory", 0, no_funcs, 0, 0, NULL};
    pthread_mutex_lock(&lock);
    struct hl_profile_pipeline **end = &pipelines;
    while (*end && !same(*end, name, count, funcs)) {
        end = &(*end)->next;
    }
    if (!*end) {
        *end = make(name, count, funcs);
    }
    struct hl_profile_pipeline *found = *end;
    pthread_mutex_unlock(&lock);
    return found ? found : &none;
}

struct hl_profile_func *hl_profile_enter(struct hl_profile_func *func, int counted) {
    struct hl_profile_func *before = work.func;
    uint64_t t = now();
    if (before) {
        add(&before->nanoseconds, t - work.since);
    }
    if (func) {
        add(&func->entered, counted != 0);
        work.entered++;
    }
    work.func = func;
    work.since = t;
    return before;
}

void hl_profile_leave(struct hl_profile_func *before) {
    uint64_t t = now();
    if (work.func) {
        add(&work.func->nanoseconds, t - work.since);
    }
    work.func = before;
    work.since = t;
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

HL_OVERRIDABLE void halide_profiler_reset(void) {
    pthread_mutex_lock(&lock);
    for (struct hl_profile_pipeline *p = pipelines; p; p = p->next) {
        p->runs = p->nanoseconds = 0;
        for (int i = 0; i < p->count; i++) {
            p->funcs[i].nanoseconds = p->funcs[i].entered = 0;
        }
    }
    pthread_mutex_unlock(&lock);
}

HL_OVERRIDABLE void halide_profiler_report(void *user_context) {
    char line[512];
    for (const struct hl_profile_pipeline *p = hl_profile_first(); p; p = p->next) {
        uint64_t sum = 0;
        for (int i = 0; i < p->count; i++) {
            sum += p->funcs[i].nanoseconds;
        }
        if (!p->runs) {
            continue;
        }
        snprintf(line, sizeof(line), "%s: %.3f ms in %llu runs, %.2f threads\n", p->name, (double)p->nanoseconds / 1e6, (unsigned long long)p->runs,
                 (double)sum / ((double)p->nanoseconds + 1e-9));
        halide_print(user_context, line);
        for (int i = 0; i < p->count; i++) {
            const struct hl_profile_func *f = &p->funcs[i];
            snprintf(line, sizeof(line), "  %-24s %10.3f ms %5.1f%% %10llu times\n", f->name, (double)f->nanoseconds / 1e6,
                     100.0 * (double)f->nanoseconds / ((double)sum + 1e-9), (unsigned long long)f->entered);
            halide_print(user_context, line);
        }
    }
}
