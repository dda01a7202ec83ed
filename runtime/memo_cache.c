/* memo_cache.c: what memoized Funcs computed. One cache per process, shared by all pipelines and threads.
 *
 * An entry is a copy of a realization's memory under a key of 64-bit words: what is computed, over which region, from which parameters. Entries are
 * in a hash table and in a list by last use; beyond the limit those unused for longest go. Copies are made without the lock: an entry counts
 * its users and is freed by whoever lets go of it last.
 */
#include "hl_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024 };

struct entry {
    struct entry *next;           /* of the bucket */
    struct entry *newer, *older;  /* by last use */
    uint64_t hash, eviction_key;
    int64_t bytes;
    int32_t words;                /* of the key, which the data follows */
    int32_t users;                /* the cache itself, while it is in there, and those who copy */
    int has_eviction_key;
};

static struct {
    pthread_mutex_t lock;
    struct entry *buckets[BUCKETS];
    struct entry *newest, *oldest;
    int64_t bytes, limit;
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER, .limit = 1 << 20};

static int64_t *key_of(struct entry *e) {
    return (int64_t *)(e + 1);
}

static uint8_t *data_of(struct entry *e) {
    return (uint8_t *)(key_of(e) + e->words);
}

static int64_t size_of(const struct entry *e) {
    return (int64_t)sizeof(struct entry) + 8 * (int64_t)e->words + e->bytes;
}

static uint64_t mixed(uint64_t h, uint64_t word) {
    h = (h ^ word) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 32);
}

static uint64_t hash_of(const int64_t *key, int32_t words) {
    uint64_t h = (uint64_t)words;
    for (int32_t i = 0; i < words; i++) {
        h = mixed(h, (uint64_t)key[i]);
    }
    return h;
}

/* ---- The list and the table; all with the lock held. ---- */

static void let_go(struct entry *e) {
    if (--e->users == 0) {
        free(e);
    }
}

static void leave_list(struct entry *e) {
    *(e->newer ? &e->newer->older : &cache.newest) = e->older;
    *(e->older ? &e->older->newer : &cache.oldest) = e->newer;
}

static void become_newest(struct entry *e) {
    e->newer = NULL;
    e->older = cache.newest;
    *(cache.newest ? &cache.newest->newer : &cache.oldest) = e;
    cache.newest = e;
}

static void drop(struct entry *e) {
    struct entry **at = &cache.buckets[e->hash % BUCKETS];
    while (*at != e) {
        at = &(*at)->next;
    }
    *at = e->next;
    leave_list(e);
    cache.bytes -= size_of(e);
    let_go(e);
}

static void shrink_to(int64_t limit) {
    while (cache.oldest && cache.bytes > limit) {
        drop(cache.oldest);
    }
}

static struct entry *find(uint64_t hash, const int64_t *key, int32_t words, int64_t bytes) {
    struct entry *e = cache.buckets[hash % BUCKETS];
    while (e && !(e->hash == hash && e->words == words && e->bytes == bytes && !memcmp(key_of(e), key, 8 * (size_t)words))) {
        e = e->next;
    }
    return e;
}

/* ---- For generated code ---- */

int hl_memo_fetch(const int64_t *key, int32_t words, void *to, int64_t bytes) {
    uint64_t hash = hash_of(key, words);
    pthread_mutex_lock(&cache.lock);
    struct entry *e = find(hash, key, words, bytes);
    if (e) {
        leave_list(e);
        become_newest(e);
        e->users++;
    }
    pthread_mutex_unlock(&cache.lock);
    if (!e) {
        return 0;
    }
    memcpy(to, data_of(e), (size_t)bytes);
    pthread_mutex_lock(&cache.lock);
    let_go(e);
    pthread_mutex_unlock(&cache.lock);
    return 1;
}

int hl_memo_keep(const int64_t *key, int32_t words, const void *from, int64_t bytes, int32_t has_eviction_key, uint64_t eviction_key) {
    size_t size = sizeof(struct entry) + 8 * (size_t)words + (size_t)bytes;
    struct entry *e = (struct entry *)malloc(size); /* where there is no memory nothing is kept: it is computed again */
    if (!e) {
        return 0;
    }
    *e = (struct entry){.hash = hash_of(key, words), .eviction_key = eviction_key, .bytes = bytes, .words = words, .users = 1,
                        .has_eviction_key = has_eviction_key};
    memcpy(key_of(e), key, 8 * (size_t)words);
    memcpy(data_of(e), from, (size_t)bytes);
    pthread_mutex_lock(&cache.lock);
    if (find(e->hash, key, words, bytes) || size_of(e) > cache.limit) { /* another thread was first, or it will never fit */
        free(e);
    } else {
        e->next = cache.buckets[e->hash % BUCKETS];
        cache.buckets[e->hash % BUCKETS] = e;
        become_newest(e);
        cache.bytes += size_of(e);
        shrink_to(cache.limit);
    }
    pthread_mutex_unlock(&cache.lock);
    return 0;
}

static uint64_t digest_dimension(const struct halide_buffer_t *b, int32_t d, const uint8_t *at, uint64_t h) {
    int64_t bytes = (b->type.bits + 7) / 8;
    if (d < 0) {
        uint64_t value = 0;
        memcpy(&value, at, (size_t)bytes);
        return mixed(h, value);
    }
    for (int32_t i = 0; i < b->dim[d].extent; i++) {
        h = digest_dimension(b, d - 1, at + (int64_t)i * b->dim[d].stride * bytes, h);
    }
    return h;
}

int64_t _halide_buffer_digest(const void *buffer) {
    const struct halide_buffer_t *b = (const struct halide_buffer_t *)buffer;
    return b && b->host ? (int64_t)digest_dimension(b, b->dimensions - 1, b->host, 1) : 0;
}

/* ---- For programs ---- */

void halide_memoization_cache_set_size(int64_t size) {
    pthread_mutex_lock(&cache.lock);
    cache.limit = size > 0 ? size : 1 << 20;
    shrink_to(cache.limit);
    pthread_mutex_unlock(&cache.lock);
}

void halide_memoization_cache_evict(void *user_context, uint64_t eviction_key) {
    (void)user_context;
    pthread_mutex_lock(&cache.lock);
    for (struct entry *e = cache.newest, *older; e; e = older) {
        older = e->older;
        if (e->has_eviction_key && e->eviction_key == eviction_key) {
            drop(e);
        }
    }
    pthread_mutex_unlock(&cache.lock);
}

void halide_memoization_cache_cleanup(void) {
    pthread_mutex_lock(&cache.lock);
    shrink_to(0);
    pthread_mutex_unlock(&cache.lock);
}

/* ---- Fork ---- */

void hl_memo_before_fork(void) {
    pthread_mutex_lock(&cache.lock);
}

void hl_memo_after_fork(void) {
    pthread_mutex_unlock(&cache.lock);
}
