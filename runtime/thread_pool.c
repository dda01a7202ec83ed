/* thread_pool.c: parallel loops. One pool per process serves every pipeline and every calling thread.
 *
 * A loop is a `struct loop` on its caller's stack, in a list. Iterations are claimed by an atomic counter, without the lock. The caller
 * works on its own loop; idle workers join the newest loop that has iterations left. A caller whose iterations are all claimed waits
 * for those still running, and meanwhile helps loops that were started inside its own: nesting can neither deadlock nor
 * leave processors idle, and stacks are as deep as the program's own nesting. Idle threads spin for some microseconds, then sleep.
 *
 * After fork() the child has no workers and starts its own at its first parallel loop.
 */
#include "hl_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_THREADS = 256, SPINS = 2000 };

struct loop {
    halide_task_t task;
    void *user_context;
    uint8_t *closure;
    int min;
    int64_t size;
    _Atomic int64_t next;     /* iterations claimed, may run past size */
    atomic_int failed;        /* the first failure: claimed by who sets it */
    int result;               /* what that iteration gave */
    char *message;            /* and its error message */
    atomic_int helpers;       /* threads besides the caller that work on it; changed under the lock */
    struct loop *parent;      /* the loop whose iteration started this one */
    struct loop *below;       /* next older one in the list */
    unsigned generation;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* there is a loop to help with, or the pool ends */
    pthread_cond_t done; /* a loop lost its last helper, or there is a loop to help with */
    struct loop *newest;
    pthread_t threads[MOST_THREADS];
    int started;         /* workers that exist */
    int wanted;          /* threads to use, callers included; 0: not known yet */
    int idle;            /* workers asleep */
    int waiting;         /* callers asleep */
    int ending;
    unsigned generation; /* counts forks */
    atomic_int spins;    /* how long to look for work before sleeping; 0 with more threads than processors */
    atomic_uint changes; /* counts new loops and ends, for those that spin */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static _Thread_local struct loop *current; /* the loop whose iteration this thread runs */
static _Atomic(halide_do_par_for_t) custom_do_par_for;
static _Atomic(halide_do_task_t) custom_do_task;

/* ---- Fork ---- */

#ifndef _WIN32 /* which has none */

static void before_fork(void) {
    hl_async_before_fork();
    pthread_mutex_lock(&pool.lock);
    hl_memory_before_fork();
    hl_memo_before_fork();
    hl_trace_before_fork();
}

static void after_fork_in_parent(void) {
    hl_trace_after_fork();
    hl_memo_after_fork();
    hl_memory_after_fork();
    pthread_mutex_unlock(&pool.lock);
    hl_async_after_fork_in_parent();
}

static void after_fork_in_child(void) {
    hl_trace_after_fork();
    hl_memo_after_fork();
    hl_memory_after_fork();
    pool.newest = NULL;
    pool.started = pool.idle = pool.waiting = pool.ending = 0;
    pool.generation++; /* loops from before the fork wait for nobody */
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    pthread_mutex_unlock(&pool.lock);
    hl_async_after_fork_in_child();
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

#endif

/* ---- Number of threads ---- */

static int default_threads(void) {
    const char *text = getenv("HL_NUM_THREADS");
    int n = text ? atoi(text) : 0;
    return n > 0 ? n : hl_processors();
}

static void set_wanted(int n) {
    pool.wanted = n < MOST_THREADS ? n : MOST_THREADS;
    atomic_store(&pool.spins, pool.wanted <= hl_processors() ? SPINS : 0);
}

static int wanted_threads(void) {
    if (pool.wanted == 0) {
        set_wanted(default_threads());
    }
    return pool.wanted;
}

int halide_get_num_threads(void) {
    pthread_mutex_lock(&pool.lock);
    int n = wanted_threads();
    pthread_mutex_unlock(&pool.lock);
    return n;
}

int halide_set_num_threads(int n) {
    if (n < 0) {
        hl_error_format(NULL, "halide_set_num_threads: the number of threads must be at least 0, got %d", n);
        return halide_error_code_generic_error;
    }
    pthread_mutex_lock(&pool.lock);
    int previous = wanted_threads();
    set_wanted(n == 0 ? default_threads() : n);
    pthread_mutex_unlock(&pool.lock);
    return previous;
}

/* ---- Work ---- */

static int has_work(struct loop *l) {
    return atomic_load_explicit(&l->next, memory_order_relaxed) < l->size;
}

/* The first failure wins: keep its result and its message, which may have to travel to the caller's thread. */
static void fail(struct loop *l, int result) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&l->failed, &none, 1)) {
        return;
    }
    l->result = result;
    size_t n = strlen(hl_last_error()) + 1;
    l->message = (char *)malloc(n);
    if (l->message) {
        memcpy(l->message, hl_last_error(), n);
    }
    atomic_store(&l->next, l->size);
}

/* Run iterations until none is left. Without the lock. */
static void work_on(struct loop *l) {
    struct loop *outer = current;
    current = l;
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&l->next, 1, memory_order_relaxed);
        if (i >= l->size) {
            break;
        }
        int result = halide_do_task(l->user_context, l->task, (int)(l->min + i), l->closure);
        if (result) {
            fail(l, result);
            break;
        }
    }
    current = outer;
}

/* ---- The list; all with the lock held. ---- */

static void unlink_loop(struct loop *l) {
    for (struct loop **at = &pool.newest; *at; at = &(*at)->below) {
        if (*at == l) {
            *at = l->below;
            return;
        }
    }
}

static int started_inside(const struct loop *l, const struct loop *outer) {
    while (l && l != outer) {
        l = l->parent;
    }
    return l != NULL;
}

/* The newest loop with iterations left, of those inside `outer` if there is one. Drops from the list those that have none. */
static struct loop *loop_to_help(const struct loop *outer) {
    struct loop **at = &pool.newest;
    while (*at) {
        if (!has_work(*at)) {
            *at = (*at)->below;
        } else if (!outer || started_inside(*at, outer)) {
            return *at;
        } else {
            at = &(*at)->below;
        }
    }
    return NULL;
}

/* Spin for a while, without the lock, until there are new loops or `l`, if given, has no helpers left. */
static void watch(const struct loop *l) {
    unsigned seen = atomic_load(&pool.changes);
    pthread_mutex_unlock(&pool.lock);
    for (int i = atomic_load(&pool.spins); i > 0 && atomic_load_explicit(&pool.changes, memory_order_acquire) == seen; i--) {
        if (l && atomic_load_explicit(&l->helpers, memory_order_acquire) == 0) {
            break;
        }
        hl_pause_briefly();
    }
    pthread_mutex_lock(&pool.lock);
}

static void help(struct loop *l) {
    atomic_fetch_add_explicit(&l->helpers, 1, memory_order_relaxed);
    pthread_mutex_unlock(&pool.lock);
    hl_clear_error();
    work_on(l);
    pthread_mutex_lock(&pool.lock);
    /* After this the loop may be gone: its caller may return. */
    if (atomic_fetch_sub_explicit(&l->helpers, 1, memory_order_release) == 1 && pool.waiting) {
        pthread_cond_broadcast(&pool.done);
    }
}

/* ---- Workers ---- */

static void *worker(void *argument) {
    int index = (int)(intptr_t)argument;
    int watched = 1;
    pthread_mutex_lock(&pool.lock);
    while (!pool.ending) {
        int may_work = index < pool.wanted - 1;
        struct loop *l = may_work ? loop_to_help(NULL) : NULL;
        if (l) {
            help(l);
            watched = 0;
        } else if (may_work && !watched) {
            watch(NULL);
            watched = 1;
        } else {
            pool.idle++;
            pthread_cond_wait(&pool.work, &pool.lock);
            pool.idle--;
        }
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* Start the workers that are wanted and missing. Fewer is fine: the caller does what is left. Lock held. */
static void start_workers(int64_t useful) {
    int wanted = wanted_threads() - 1;
    if (useful < wanted) {
        wanted = (int)useful;
    }
    if (pool.started < wanted) {
        hl_stay_loaded();
    }
    while (pool.started < wanted && pthread_create(&pool.threads[pool.started], NULL, worker, (void *)(intptr_t)pool.started) == 0) {
        pool.started++;
    }
}

void halide_shutdown_thread_pool(void) {
    pthread_mutex_lock(&pool.lock);
    int n = pool.started;
    pool.ending = n > 0;
    pool.started = 0;
    atomic_fetch_add(&pool.changes, 1);
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < n; i++) {
        pthread_join(pool.threads[i], NULL);
    }
    pthread_mutex_lock(&pool.lock);
    pool.ending = 0;
    pthread_mutex_unlock(&pool.lock);
}

/* A library that is unloaded must not leave threads in its code. */
HL_AT_UNLOAD() static void shutdown_at_unload(void) {
    halide_shutdown_thread_pool();
}

/* ---- Loops ---- */

static void publish(struct loop *l) {
    pthread_mutex_lock(&pool.lock);
    start_workers(l->size - 1);
    l->generation = pool.generation;
    l->below = pool.newest;
    pool.newest = l;
    atomic_fetch_add_explicit(&pool.changes, 1, memory_order_release);
    if (pool.idle) {
        /* A single signal could reach a worker that may not work. */
        if (l->size == 2 && pool.started < pool.wanted) {
            pthread_cond_signal(&pool.work);
        } else {
            pthread_cond_broadcast(&pool.work);
        }
    }
    if (pool.waiting) {
        pthread_cond_broadcast(&pool.done);
    }
    pthread_mutex_unlock(&pool.lock);
}

/* Wait until nobody works on it any more, helping loops inside it. */
static void finish(struct loop *l) {
    int watched = 0;
    pthread_mutex_lock(&pool.lock);
    if (l->generation == pool.generation) {
        unlink_loop(l);
    }
    while (l->generation == pool.generation && atomic_load_explicit(&l->helpers, memory_order_acquire) > 0) {
        struct loop *inner = loop_to_help(l);
        if (inner) {
            help(inner);
            watched = 0;
        } else if (!watched) {
            watch(l);
            watched = 1;
        } else {
            pool.waiting++;
            pthread_cond_wait(&pool.done, &pool.lock);
            pool.waiting--;
            watched = 0;
        }
    }
    pthread_mutex_unlock(&pool.lock);
}

static int run_alone(void *user_context, halide_task_t task, int min, int size, uint8_t *closure) {
    for (int i = 0; i < size; i++) {
        int result = halide_do_task(user_context, task, min + i, closure);
        if (result) {
            return result;
        }
    }
    return 0;
}

HL_OVERRIDABLE int halide_default_do_par_for(void *user_context, halide_task_t task, int min, int size, uint8_t *closure) {
    if (size <= 1 || halide_get_num_threads() == 1) {
        return run_alone(user_context, task, min, size, closure);
    }
    struct loop l = {.task = task, .user_context = user_context, .closure = closure, .min = min, .size = size, .parent = current};
    publish(&l);
    work_on(&l);
    finish(&l);
    if (l.message) {
        /* A handler of the program's own was told in the worker's thread already; the caller's last error still has to be set. */
        hl_set_last_error(l.message);
        free(l.message);
    }
    return l.result;
}

/* ---- Hooks ---- */

HL_OVERRIDABLE int halide_do_par_for(void *user_context, halide_task_t task, int min, int size, uint8_t *closure) {
    halide_do_par_for_t hook = atomic_load_explicit(&custom_do_par_for, memory_order_relaxed);
    return hook ? hook(user_context, task, min, size, closure) : halide_default_do_par_for(user_context, task, min, size, closure);
}

halide_do_par_for_t halide_set_custom_do_par_for(halide_do_par_for_t do_par_for) {
    halide_do_par_for_t previous = atomic_exchange(&custom_do_par_for, do_par_for);
    return previous ? previous : halide_default_do_par_for;
}

HL_OVERRIDABLE int halide_default_do_task(void *user_context, halide_task_t task, int index, uint8_t *closure) {
    return task(user_context, index, closure);
}

HL_OVERRIDABLE int halide_do_task(void *user_context, halide_task_t task, int index, uint8_t *closure) {
    halide_do_task_t hook = atomic_load_explicit(&custom_do_task, memory_order_relaxed);
    return hook ? hook(user_context, task, index, closure) : task(user_context, index, closure);
}

halide_do_task_t halide_set_custom_do_task(halide_do_task_t do_task) {
    halide_do_task_t previous = atomic_exchange(&custom_do_task, do_task);
    return previous ? previous : halide_default_do_task;
}
