/* async_tasks.c: producers that run beside their consumers, and the semaphores by which they wait for each other.
 *
 * Each task of a fork has a thread of its own, the consumer the caller's and the producer one of those kept here: a task that waits takes
 * nothing away from parallel loops, so there is no deadlock whatever the number of threads. When a task fails, all that wait for semaphores
 * of its fork give up, and the fork gives the failure that came first.
 */
#include "hl_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { GAVE_UP = 1, KEPT_THREADS = 16, SPINS = 2000 };

/* The semaphores of one fork, in memory of generated code: HL_GROUP_WORDS words and one more for each semaphore. */
struct group {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    atomic_int failed, sleeping; /* `sleeping`: tasks that wait for `changed`, or are about to */
    int spins;                   /* how long to look before sleeping; 0 on one processor */
    _Atomic int64_t count[];
};
_Static_assert(sizeof(struct group) <= 8 * HL_GROUP_WORDS, "generated code allocates too little");

int hl_semaphores_init(void *group, int32_t n, const int32_t *counts) {
    struct group *g = (struct group *)group;
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    atomic_init(&g->failed, 0);
    atomic_init(&g->sleeping, 0);
    g->spins = hl_processors() > 1 ? SPINS : 0;
    for (int32_t i = 0; i < n; i++) {
        atomic_init(&g->count[i], counts[i]);
    }
    return 0;
}

/* Whether the wait for a semaphore is over: it is taken, or the fork has failed. */
static int is_over(struct group *g, int32_t i) {
    int64_t count = atomic_load(&g->count[i]);
    while (count > 0) {
        if (atomic_compare_exchange_weak(&g->count[i], &count, count - 1)) {
            return 1;
        }
    }
    return atomic_load(&g->failed);
}

int hl_semaphore_acquire(void *group, int32_t i) {
    struct group *g = (struct group *)group;
    int over = is_over(g, i);
    for (int k = g->spins; k > 0 && !over; k--) {
        hl_pause_briefly();
        over = is_over(g, i);
    }
    if (!over) {
        pthread_mutex_lock(&g->lock);
        atomic_fetch_add(&g->sleeping, 1); /* before the last look: who releases after it sees that somebody sleeps */
        while (!is_over(g, i)) {
            pthread_cond_wait(&g->changed, &g->lock);
        }
        atomic_fetch_sub(&g->sleeping, 1);
        pthread_mutex_unlock(&g->lock);
    }
    return atomic_load(&g->failed) ? GAVE_UP : 0;
}

int hl_semaphore_release(void *group, int32_t i) {
    struct group *g = (struct group *)group;
    atomic_fetch_add(&g->count[i], 1);
    if (atomic_load(&g->sleeping)) {
        pthread_mutex_lock(&g->lock);
        pthread_cond_broadcast(&g->changed);
        pthread_mutex_unlock(&g->lock);
    }
    return 0;
}

/* ---- Threads ---- */

struct job {
    halide_task_t task;
    void *user_context;
    uint8_t *closure;
    struct group *group;
    int result;
    char *message; /* of the failure, to become the caller's */
    int done;
    pthread_cond_t finished;
};

struct helper {
    struct helper *next;
    struct job *job;
    pthread_cond_t wake;
    pthread_t thread;
};

static struct {
    pthread_mutex_t lock;
    struct helper *idle;
    int kept, ending;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Run one task. The first that fails says so; the other gives up at its next semaphore. */
static int run(struct group *g, halide_task_t task, void *user_context, int index, uint8_t *closure) {
    int result = halide_do_task(user_context, task, index, closure);
    if (result) {
        pthread_mutex_lock(&g->lock);
        result = atomic_exchange(&g->failed, 1) ? GAVE_UP : result;
        pthread_cond_broadcast(&g->changed);
        pthread_mutex_unlock(&g->lock);
    }
    return result;
}

static void do_job(struct job *j) {
    hl_clear_error();
    j->result = run(j->group, j->task, j->user_context, 0, j->closure);
    if (j->result && j->result != GAVE_UP) {
        size_t n = strlen(hl_last_error()) + 1;
        j->message = (char *)malloc(n);
        if (j->message) {
            memcpy(j->message, hl_last_error(), n);
        }
    }
}

static void *helper(void *argument) {
    struct helper *h = (struct helper *)argument;
    pthread_mutex_lock(&pool.lock);
    h->thread = pthread_self();
    for (;;) {
        while (!h->job && !pool.ending) {
            pthread_cond_wait(&h->wake, &pool.lock);
        }
        struct job *j = h->job;
        if (!j) {
            break; /* the end: whoever waits for this thread frees what is its */
        }
        pthread_mutex_unlock(&pool.lock);
        do_job(j);
        pthread_mutex_lock(&pool.lock);
        h->job = NULL;
        j->done = 1;
        pthread_cond_signal(&j->finished); /* after this the job may be gone */
        if (pool.kept >= KEPT_THREADS && !pool.ending) {
            pthread_detach(h->thread);
            free(h);
            break;
        }
        pool.kept++;
        h->next = pool.idle;
        pool.idle = h;
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* Hand a job to an idle thread or a new one. Gives 0 where there is none to be had. */
static int start(struct job *j) {
    pthread_mutex_lock(&pool.lock);
    struct helper *h = pool.idle;
    if (h) {
        pool.idle = h->next;
        pool.kept--;
        h->job = j;
        pthread_cond_signal(&h->wake);
        pthread_mutex_unlock(&pool.lock);
        return 1;
    }
    pthread_mutex_unlock(&pool.lock);
    h = (struct helper *)calloc(1, sizeof(*h));
    if (!h) {
        return 0;
    }
    h->job = j;
    pthread_cond_init(&h->wake, NULL);
    hl_stay_loaded();
    pthread_t thread;
    if (pthread_create(&thread, NULL, helper, h) != 0) {
        free(h);
        return 0;
    }
    return 1;
}

int hl_fork(void *user_context, void *group, halide_task_t task, uint8_t *closure) {
    struct group *g = (struct group *)group;
    struct job j = {.task = task, .user_context = user_context, .closure = closure, .group = g};
    pthread_cond_init(&j.finished, NULL);
    if (!start(&j)) {
        hl_error_format(user_context, "There are no resources for one more thread, which a Func scheduled async_() needs");
        return halide_error_code_generic_error;
    }
    int result = run(g, task, user_context, 1, closure);
    pthread_mutex_lock(&pool.lock);
    while (!j.done) {
        pthread_cond_wait(&j.finished, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    pthread_cond_destroy(&j.finished);
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    if (j.message) {
        hl_set_last_error(j.message);
        free(j.message);
    }
    return j.result && j.result != GAVE_UP ? j.result : result;
}

/* ---- Fork, and the end ---- */

void hl_async_before_fork(void) {
    pthread_mutex_lock(&pool.lock);
}

void hl_async_after_fork_in_parent(void) {
    pthread_mutex_unlock(&pool.lock);
}

void hl_async_after_fork_in_child(void) { /* no thread but this one has come along */
    pool.idle = NULL;
    pool.kept = 0;
    pthread_mutex_unlock(&pool.lock);
}

/* A library that is unloaded must not leave threads in its code. */
HL_AT_UNLOAD() static void end_threads(void) {
    pthread_mutex_lock(&pool.lock);
    pool.ending = 1;
    struct helper *idle = pool.idle;
    pool.idle = NULL;
    for (struct helper *h = idle; h; h = h->next) {
        pthread_cond_signal(&h->wake);
    }
    pthread_mutex_unlock(&pool.lock);
    while (idle) {
        struct helper *h = idle;
        idle = h->next;
        pthread_join(h->thread, NULL);
        free(h);
    }
}
