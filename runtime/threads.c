/* threads.c: mutexes, conditions and threads for C functions that pipelines call, as Halide's header declares them.
 *
 * A mutex or condition is one word that starts as zero and is never destroyed, so who waits does so elsewhere: in a place of a small table
 * that the word's address chooses. Words of a mutex: 0 free, 1 held, 2 held and somebody waits. A condition counts its signals.
 */
#include "hl_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

enum { PLACES_LOG2 = 6, PLACES = 1 << PLACES_LOG2 };

struct place {
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct halide_thread {
    pthread_t thread;
    void (*function)(void *);
    void *closure;
};

struct halide_mutex_array {
    struct halide_mutex *mutexes;
};

static struct place places[PLACES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start(void) {
    for (int i = 0; i < PLACES; i++) {
        pthread_mutex_init(&places[i].lock, NULL);
        pthread_cond_init(&places[i].changed, NULL);
    }
}

static struct place *place_of(const void *word) {
    pthread_once(&once, start);
    return &places[((uint64_t)(uintptr_t)word * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - PLACES_LOG2)];
}

static _Atomic uintptr_t *word_of(void *object) {
    return (_Atomic uintptr_t *)object;
}

HL_OVERRIDABLE void halide_mutex_lock(struct halide_mutex *mutex) {
    uintptr_t is_free = 0;
    if (atomic_compare_exchange_strong(word_of(mutex), &is_free, 1)) {
        return;
    }
    struct place *p = place_of(mutex);
    pthread_mutex_lock(&p->lock);
    while (atomic_exchange(word_of(mutex), 2) != 0) {
        pthread_cond_wait(&p->changed, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
}

static void wake(const void *word) {
    struct place *p = place_of(word);
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

HL_OVERRIDABLE void halide_mutex_unlock(struct halide_mutex *mutex) {
    if (atomic_exchange(word_of(mutex), 0) == 2) {
        wake(mutex);
    }
}

/* All that wait are woken, by a signal too: a place may have those of several conditions. */
HL_OVERRIDABLE void halide_cond_broadcast(struct halide_cond *cond) {
    atomic_fetch_add(word_of(cond), 1);
    wake(cond);
}

HL_OVERRIDABLE void halide_cond_signal(struct halide_cond *cond) {
    halide_cond_broadcast(cond);
}

HL_OVERRIDABLE void halide_cond_wait(struct halide_cond *cond, struct halide_mutex *mutex) {
    struct place *p = place_of(cond);
    uintptr_t seen = atomic_load(word_of(cond));
    halide_mutex_unlock(mutex);
    pthread_mutex_lock(&p->lock);
    while (atomic_load(word_of(cond)) == seen) {
        pthread_cond_wait(&p->changed, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    halide_mutex_lock(mutex);
}

HL_OVERRIDABLE struct halide_mutex_array *halide_mutex_array_create(uint64_t count) {
    struct halide_mutex_array *array = (struct halide_mutex_array *)malloc(sizeof(*array));
    if (array) {
        array->mutexes = count > SIZE_MAX ? NULL : (struct halide_mutex *)calloc((size_t)count, sizeof(struct halide_mutex));
        if (!array->mutexes) {
            free(array);
            array = NULL;
        }
    }
    return array;
}

HL_OVERRIDABLE void halide_mutex_array_destroy(void *user_context, void *array) {
    (void)user_context;
    if (array) {
        free(((struct halide_mutex_array *)array)->mutexes);
        free(array);
    }
}

HL_OVERRIDABLE int halide_mutex_array_lock(struct halide_mutex_array *array, int entry) {
    halide_mutex_lock(&array->mutexes[entry]);
    return 0;
}

HL_OVERRIDABLE int halide_mutex_array_unlock(struct halide_mutex_array *array, int entry) {
    halide_mutex_unlock(&array->mutexes[entry]);
    return 0;
}

static void *run(void *argument) {
    struct halide_thread *t = (struct halide_thread *)argument;
    t->function(t->closure);
    return NULL;
}

HL_OVERRIDABLE struct halide_thread *halide_spawn_thread(void (*f)(void *), void *closure) {
    struct halide_thread *t = (struct halide_thread *)malloc(sizeof(*t));
    if (t) {
        t->function = f;
        t->closure = closure;
        hl_stay_loaded();
        if (pthread_create(&t->thread, NULL, run, t) != 0) {
            free(t);
            t = NULL;
        }
    }
    return t;
}

HL_OVERRIDABLE void halide_join_thread(struct halide_thread *thread) {
    if (thread) {
        pthread_join(thread->thread, NULL);
        free(thread);
    }
}
