/* Checks of the C runtime, one function each; `checks NAME` runs one and exits 0 when it holds. Also built under sanitizers. */
#include "hl_runtime.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "line %d does not hold: %s\n", __LINE__, #condition);   \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

#define CHECK_TEXT(text, wanted)                                                                    \
    do {                                                                                            \
        if (strcmp(text, wanted)) {                                                                 \
            fprintf(stderr, "line %d:\n  got    %s\n  wanted %s\n", __LINE__, text, wanted);        \
            exit(1);                                                                                \
        }                                                                                           \
    } while (0)

/* ---- Parallel loops ---- */

static int count_once(void *user_context, int i, uint8_t *closure) {
    (void)user_context;
    ((int *)closure)[i - 3]++;
    return 0;
}

static void every_iteration_once(void) {
    static int counts[10000];
    for (int size = 0; size < 10000; size = size * 2 + 1) {
        memset(counts, 0, sizeof(counts));
        CHECK(halide_do_par_for(NULL, count_once, 3, size, (uint8_t *)counts) == 0);
        for (int i = 0; i < 10000; i++) {
            CHECK(counts[i] == (i < size));
        }
    }
}

static int inner_sum(void *user_context, int i, uint8_t *closure) {
    (void)user_context;
    atomic_fetch_add((atomic_long *)closure, i);
    return 0;
}

static int middle_loop(void *user_context, int i, uint8_t *closure) {
    (void)i;
    return halide_do_par_for(user_context, inner_sum, 0, 50, closure);
}

static int outer_loop(void *user_context, int i, uint8_t *closure) {
    (void)i;
    return halide_do_par_for(user_context, middle_loop, 0, 5, closure);
}

static void nested(void) {
    for (int repeat = 0; repeat < 50; repeat++) {
        atomic_long sum = 0;
        CHECK(halide_do_par_for(NULL, outer_loop, -2, 7, (uint8_t *)&sum) == 0);
        CHECK(sum == 7 * 5 * (49 * 50 / 2));
    }
}

static void *run_nested(void *unused) {
    nested();
    return unused;
}

static void many_callers(void) {
    pthread_t threads[6];
    for (int i = 0; i < 6; i++) {
        CHECK(pthread_create(&threads[i], NULL, run_nested, NULL) == 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* ---- Both threads of a pair must be inside at once for either to leave: shows that iterations do run at the same time. ---- */

static int meet(void *user_context, int i, uint8_t *closure) {
    atomic_int *inside = (atomic_int *)closure;
    (void)user_context, (void)i;
    atomic_fetch_add(inside, 1);
    for (int waited = 0; atomic_load(inside) < 2 && waited < 5000; waited++) {
        usleep(1000);
    }
    return atomic_load(inside) < 2;
}

static void iterations_overlap(void) {
    halide_set_num_threads(2);
    for (int repeat = 0; repeat < 20; repeat++) {
        atomic_int inside = 0;
        CHECK(halide_do_par_for(NULL, meet, 0, 2, (uint8_t *)&inside) == 0);
        usleep(repeat < 10 ? 0 : 2000); /* also from sleep, not only from spinning */
    }
}

static int start_meeting(void *user_context, int i, uint8_t *closure) {
    /* One iteration ends at once; its thread has to help with the loop inside the other. */
    return i == 0 ? 0 : halide_do_par_for(user_context, meet, 0, 2, closure);
}

static void waiting_callers_help(void) {
    halide_set_num_threads(2);
    for (int repeat = 0; repeat < 20; repeat++) {
        atomic_int inside = 0;
        CHECK(halide_do_par_for(NULL, start_meeting, 0, 2, (uint8_t *)&inside) == 0);
    }
}

/* ---- Failures ---- */

static int fail_at_40(void *user_context, int i, uint8_t *closure) {
    atomic_fetch_add((atomic_int *)closure, 1);
    return i == 40 ? halide_error_access_out_of_bounds(user_context, "Input buffer photo", 0, 0, 4, 0, 3) : 0;
}

static void failure_reaches_the_caller(void) {
    for (int repeat = 0; repeat < 100; repeat++) {
        atomic_int calls = 0;
        hl_clear_error();
        CHECK(halide_do_par_for(NULL, fail_at_40, 0, 1000000, (uint8_t *)&calls) == halide_error_code_access_out_of_bounds);
        CHECK_TEXT(hl_last_error(), "Input buffer photo is accessed at 4, which is beyond the max (3) in dimension 0");
        CHECK(calls < 1000000); /* the rest is not run */
    }
}

static int always_fail(void *user_context, int i, uint8_t *closure) {
    (void)closure;
    usleep(100);
    halide_error(user_context, hl_stringify("si", "iteration", (int64_t)i));
    return 100 + i;
}

static void first_failure_wins(void) {
    for (int repeat = 0; repeat < 100; repeat++) {
        int result = halide_do_par_for(NULL, always_fail, 0, 8, NULL);
        CHECK(result >= 100 && result < 108);
        CHECK_TEXT(hl_last_error(), hl_stringify("si", "iteration", (int64_t)(result - 100)));
    }
}

static int fail_inside(void *user_context, int i, uint8_t *closure) {
    atomic_int calls = 0;
    (void)closure;
    return i == 3 ? halide_do_par_for(user_context, fail_at_40, 0, 100, (uint8_t *)&calls) : 0;
}

static void nested_failure(void) {
    for (int repeat = 0; repeat < 50; repeat++) {
        hl_clear_error();
        CHECK(halide_do_par_for(NULL, fail_inside, 0, 6, NULL) == halide_error_code_access_out_of_bounds);
        CHECK(strstr(hl_last_error(), "photo"));
    }
}

static void *other_thread(void *unused) {
    CHECK_TEXT(hl_last_error(), "");
    halide_error(NULL, "theirs\n");
    CHECK_TEXT(hl_last_error(), "theirs");
    return unused;
}

static void errors_are_per_thread(void) {
    pthread_t thread;
    halide_error(NULL, "ours");
    pthread_create(&thread, NULL, other_thread, NULL);
    pthread_join(thread, NULL);
    CHECK_TEXT(hl_last_error(), "ours");
    hl_clear_error();
    CHECK_TEXT(hl_last_error(), "");
}

static char handled[256];

static void handler(void *user_context, const char *message) {
    snprintf(handled, sizeof(handled), "%s: %s", (const char *)user_context, message);
}

static void error_handler(void) {
    char where[] = "here", long_message[10000];
    CHECK(halide_set_error_handler(handler) == halide_default_error);
    CHECK(halide_error_buffer_argument_is_null(where, "input") == halide_error_code_buffer_argument_is_null);
    CHECK_TEXT(handled, "here: Buffer argument input is nullptr");
    CHECK_TEXT(hl_last_error(), "");
    CHECK(halide_set_error_handler(NULL) == handler);
    memset(long_message, 'x', sizeof(long_message));
    long_message[sizeof(long_message) - 1] = 0;
    halide_error_specialize_fail(NULL, long_message);
    CHECK(strlen(hl_last_error()) == 4095);
}

static uint32_t type_bits(int code, int bits, int lanes) {
    return (uint32_t)code | (uint32_t)bits << 8 | (uint32_t)lanes << 16;
}

static void messages(void) {
    CHECK(halide_error_bad_type(NULL, "Input buffer im", type_bits(2, 32, 1), type_bits(1, 8, 4)) == -3);
    CHECK_TEXT(hl_last_error(), "Input buffer im has type uint8x4 but type of the buffer passed in is float32");
    CHECK(halide_error_bad_dimensions(NULL, "Output buffer f", 2, 3) == -43);
    CHECK_TEXT(hl_last_error(), "Output buffer f requires a buffer of exactly 3 dimensions, but the buffer passed in has 2 dimensions");
    CHECK(halide_error_access_out_of_bounds(NULL, "b", 1, -1, 9, 0, 3) == -4);
    CHECK_TEXT(hl_last_error(), "b is accessed at -1, which is before the min (0) in dimension 1");
    CHECK(halide_error_explicit_bounds_too_small(NULL, "f", "x", 0, 7, -1, 8) == -2);
    CHECK_TEXT(hl_last_error(), "Bounds given for x in f (from 0 to 7) do not cover required region (from -1 to 8)");
    CHECK(halide_error_constraint_violated(NULL, "im.stride.0", 3, "1", 1) == -8);
    CHECK_TEXT(hl_last_error(), "Constraint violated: im.stride.0 (3) == 1 (1)");
    CHECK(halide_error_param_too_small_i64(NULL, "p", -5, 0) == -9);
    CHECK_TEXT(hl_last_error(), "Parameter p is -5 but must be at least 0");
    CHECK(halide_error_param_too_large_u64(NULL, "p", UINT64_MAX, 10) == -10);
    CHECK_TEXT(hl_last_error(), "Parameter p is 18446744073709551615 but must be at most 10");
    CHECK(halide_error_param_too_large_f64(NULL, "p", 1.5, 1) == -10);
    CHECK_TEXT(hl_last_error(), "Parameter p is 1.500000e+00 but must be at most 1.000000e+00");
    CHECK(halide_error_constraints_make_required_region_smaller(NULL, "f", 2, 0, 4, 0, 5) == -7);
    CHECK_TEXT(hl_last_error(), "Applying the constraints on f to the required region made it smaller in dimension 2. Required size: 0 to 4. "
                                "Constrained size: 0 to 3.");
    CHECK(halide_error_requirement_failed(NULL, "x > 0", "x is 0") == -27);
    CHECK_TEXT(hl_last_error(), "Requirement Failed: (x > 0) x is 0");
    CHECK(halide_error_buffer_extents_too_large(NULL, "b", 1LL << 40, INT32_MAX) == -6);
    CHECK_TEXT(hl_last_error(), "Product of extents for buffer b is 1099511627776, which exceeds the maximum size of 2147483647");
    CHECK(halide_error_extern_stage_failed(NULL, "stage", 17) == 17);
    CHECK(halide_error_out_of_memory(NULL) == -11);
}

/* ---- Number of threads ---- */

static void number_of_threads(void) {
    CHECK(halide_get_num_threads() == 3); /* HL_NUM_THREADS of the test */
    CHECK(halide_set_num_threads(1) == 3);
    CHECK(halide_get_num_threads() == 1);
    nested();
    CHECK(halide_set_num_threads(5) == 1);
    nested();
    CHECK(halide_set_num_threads(2) == 5);
    nested();
    halide_shutdown_thread_pool();
    nested();
    CHECK(halide_set_num_threads(0) == 2);
    CHECK(halide_get_num_threads() == 3);
    CHECK(halide_set_num_threads(-1) < 0);
    CHECK(strstr(hl_last_error(), "-1"));
}

static atomic_int custom_calls;

static int counting_task(void *user_context, halide_task_t task, int i, uint8_t *closure) {
    atomic_fetch_add(&custom_calls, 1);
    return halide_default_do_task(user_context, task, i, closure);
}

static int backwards(void *user_context, halide_task_t task, int min, int size, uint8_t *closure) {
    int result = 0;
    for (int i = size - 1; i >= 0 && !result; i--) {
        result = task(user_context, min + i, closure);
    }
    return result;
}

static void parallel_hooks(void) {
    atomic_long sum = 0;
    CHECK(halide_set_custom_do_task(counting_task) == halide_default_do_task);
    CHECK(halide_do_par_for(NULL, inner_sum, 0, 10, (uint8_t *)&sum) == 0);
    CHECK(custom_calls == 10 && sum == 45);
    CHECK(halide_set_custom_do_par_for(backwards) == halide_default_do_par_for);
    CHECK(halide_do_par_for(NULL, inner_sum, 0, 10, (uint8_t *)&sum) == 0);
    CHECK(custom_calls == 10 && sum == 90);
    CHECK(halide_set_custom_do_par_for(NULL) == backwards);
    CHECK(halide_set_custom_do_task(NULL) == counting_task);
}

/* ---- Fork ---- */

static int wait_for(pid_t child) {
    int status = 0;
    for (int waited = 0; waited < 20000; waited++) {
        if (waitpid(child, &status, WNOHANG) == child) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
        }
        usleep(1000);
    }
    kill(child, 9);
    waitpid(child, &status, 0);
    return 254;
}

static void fork_after_parallel(void) {
    for (int repeat = 0; repeat < 20; repeat++) {
        nested();
        pid_t child = fork();
        if (child == 0) {
            nested();
            iterations_overlap();
            _exit(0);
        }
        CHECK(wait_for(child) == 0);
    }
    nested();
}

static atomic_int stop;

static void *keep_running(void *unused) {
    while (!atomic_load(&stop)) {
        nested();
        halide_free(NULL, halide_malloc(NULL, 5000));
    }
    return unused;
}

static void fork_while_others_run(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, keep_running, NULL);
    for (int repeat = 0; repeat < 20; repeat++) {
        pid_t child = fork();
        if (child == 0) {
            nested();
            halide_free(NULL, halide_malloc(NULL, 5000));
            _exit(0);
        }
        CHECK(wait_for(child) == 0);
    }
    atomic_store(&stop, 1);
    pthread_join(thread, NULL);
}

static int fork_in_task(void *user_context, int i, uint8_t *closure) {
    (void)user_context, (void)closure;
    if (i == 1) {
        pid_t child = fork();
        if (child == 0) {
            nested();
            _exit(0);
        }
        return wait_for(child);
    }
    usleep(1000);
    return 0;
}

static void fork_inside_a_loop(void) {
    for (int repeat = 0; repeat < 10; repeat++) {
        CHECK(halide_do_par_for(NULL, fork_in_task, 0, 4, NULL) == 0);
    }
}

/* ---- Memory ---- */

static void memory(void) {
    static const size_t sizes[] = {0, 1, 63, 64, 255, 256, 257, 319, 320, 321, 4096, 100000, 1 << 20, (1 << 20) + 1, 50000000};
    for (int repeat = 0; repeat < 2; repeat++) {
        uint8_t *blocks[15];
        for (int i = 0; i < 15; i++) {
            blocks[i] = (uint8_t *)halide_malloc(NULL, sizes[i]);
            CHECK(blocks[i] && (uintptr_t)blocks[i] % 64 == 0);
            memset(blocks[i], i, sizes[i] + 64); /* the bytes beyond may be touched */
            CHECK(blocks[i][-64] == blocks[i][-64]);
        }
        for (int i = 0; i < 15; i++) {
            CHECK(sizes[i] == 0 || (blocks[i][0] == i && blocks[i][sizes[i] - 1] == i));
            halide_free(NULL, blocks[i]);
        }
    }
    halide_free(NULL, NULL);
    CHECK(halide_malloc(NULL, (size_t)-1) == NULL);
    CHECK(halide_malloc(NULL, (size_t)1 << 62) == NULL);
    hl_trim_memory();
}

static void memory_is_kept(void) {
    void *first = halide_malloc(NULL, 1 << 20);
    halide_free(NULL, first);
    void *second = halide_malloc(NULL, (1 << 20) - 100); /* of the same class */
    CHECK(first == second);
    void *third = halide_malloc(NULL, 1 << 20);
    CHECK(third != second);
    halide_free(NULL, second);
    halide_free(NULL, third);
}

static long resident_kib(void) {
    long total = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        CHECK(fscanf(f, "%ld %ld", &total, &resident) == 2);
        fclose(f);
    }
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static void kept_memory_is_bounded(void) { /* HL_SCRATCH_CACHE=16777216 */
    void *blocks[64];
    for (int i = 0; i < 64; i++) {
        blocks[i] = halide_malloc(NULL, 1 << 20);
        memset(blocks[i], 1, 1 << 20);
    }
    for (int i = 0; i < 64; i++) {
        halide_free(NULL, blocks[i]);
    }
    CHECK(resident_kib() < 40 << 10);
    hl_trim_memory();
    CHECK(resident_kib() < 15 << 10);
}

static int allocate_in_task(void *user_context, int i, uint8_t *closure) {
    (void)closure;
    size_t size = 1000 + 97 * (size_t)(i % 50);
    uint8_t *a = (uint8_t *)halide_malloc(user_context, size), *b = (uint8_t *)halide_malloc(user_context, 3 * size);
    memset(a, i, size);
    memset(b, i + 1, 3 * size);
    int wrong = a[size - 1] != (uint8_t)i || b[0] != (uint8_t)(i + 1);
    halide_free(user_context, a);
    halide_free(user_context, b);
    return wrong;
}

static void memory_in_parallel(void) {
    CHECK(halide_do_par_for(NULL, allocate_in_task, 0, 20000, NULL) == 0);
}

static int outstanding;

static void *counting_malloc(void *user_context, size_t size) {
    outstanding++;
    return halide_default_malloc(user_context, size);
}

static void counting_free(void *user_context, void *ptr) {
    outstanding--;
    halide_default_free(user_context, ptr);
}

static void memory_hooks(void) {
    CHECK(halide_set_custom_malloc(counting_malloc) == halide_default_malloc);
    CHECK(halide_set_custom_free(counting_free) == halide_default_free);
    void *p = halide_malloc(NULL, 10);
    CHECK(outstanding == 1);
    halide_free(NULL, p);
    CHECK(outstanding == 0);
    CHECK(halide_set_custom_malloc(NULL) == counting_malloc);
    CHECK(halide_set_custom_free(NULL) == counting_free);
}

/* ---- Text ---- */

static char printed[4096];

static void record(void *user_context, const char *message) {
    (void)user_context;
    strncat(printed, message, sizeof(printed) - strlen(printed) - 1);
}

static void printing(void) {
    CHECK(halide_set_custom_print(record) == halide_default_print);
    hl_print(NULL, "isfuebhg", (int64_t)-3, "x*", 0.1, UINT64_MAX, 1.0 / 3, 1, 0x2e66, 0xbf80);
    CHECK_TEXT(printed, "-3 x* 0.100000 18446744073709551615 3.333333e-01 true 9.997559e-02 -1.000000e+00\n");
    CHECK_TEXT(hl_stringify("fee", -0.0, 1.0 / 0.0, -1.0 / 0.0), "-0.000000 inf -inf");
    CHECK_TEXT(hl_stringify("hhh", 0x0001, 0xfc00, 0x3c00), "5.960464e-08 -inf 1.000000e+00");
    CHECK_TEXT(hl_stringify(""), "");
    char long_text[3000];
    memset(long_text, 'y', sizeof(long_text));
    long_text[sizeof(long_text) - 1] = 0;
    CHECK(strlen(hl_stringify("sss", long_text, long_text, long_text)) == 1023);
    CHECK(halide_set_custom_print(NULL) == record);
}

static void tracing(void) {
    int32_t region[] = {0, 4, 1, 2}, at[] = {3, 5}, lanes[] = {0, 1, 7, 7};
    int32_t value = -7;
    float values[] = {0.5f, 1};
    uint8_t byte = 200, truth = 1;
    halide_set_custom_print(record);
    int32_t id = halide_trace_helper(NULL, "f", NULL, region, 0, 32, 1, halide_trace_begin_realization, 1, 0, 4, "");
    CHECK(id > 0);
    halide_trace_helper(NULL, "f", &value, at, 0, 32, 1, halide_trace_store, id, 0, 2, "");
    halide_trace_helper(NULL, "f", values, lanes, 2, 32, 2, halide_trace_load, id, 1, 4, NULL);
    halide_trace_helper(NULL, "f", &byte, at, 1, 8, 1, halide_trace_store, id, 0, 1, "");
    halide_trace_helper(NULL, "f", &truth, at, 1, 1, 1, halide_trace_store, id, 0, 1, "");
    CHECK(halide_trace_helper(NULL, "g", NULL, NULL, 0, 0, 0, halide_trace_tag, id, 0, 0, "tell") != id);
    halide_trace_helper(NULL, "p", NULL, NULL, 0, 0, 0, halide_trace_end_pipeline, id, 0, 0, "");
    halide_set_custom_print(NULL);
    CHECK_TEXT(printed, "Begin realization f.0(0, 4, 1, 2)\n"
                        "Store f.0(3, 5) = -7\n"
                        "Load f.1(<0, 1>, <7, 7>) = <0.500000, 1.000000>\n"
                        "Store f.0(3) = 200\n"
                        "Store f.0(3) = 1\n"
                        "Tag g.0() tag = \"tell\"\n"
                        "End pipeline p.0()\n");
}

static void trace_file(void) { /* HL_TRACE_FILE is set */
    int32_t at[] = {3, 5};
    uint16_t value = 77;
    struct halide_trace_packet_t head;
    unsigned char rest[64];
    int32_t id = halide_trace_helper(NULL, "name", &value, at, 1, 16, 1, halide_trace_store, 9, 0, 2, "tag");
    CHECK(halide_shutdown_trace() == 0);
    FILE *f = fopen(getenv("HL_TRACE_FILE"), "rb");
    CHECK(f && fread(&head, sizeof(head), 1, f) == 1);
    CHECK(head.size == 28 + 8 + 2 + 5 + 4 + 1 && head.id == id && head.event == halide_trace_store && head.parent_id == 9);
    CHECK(fread(rest, 1, sizeof(rest), f) == head.size - sizeof(head));
    CHECK(!memcmp(rest, at, 8) && !memcmp(rest + 8, &value, 2) && !memcmp(rest + 10, "name\0tag", 9));
    fclose(f);
}

/* ---- Memoization ---- */

static void memo_cache(void) {
    int32_t data[256], got[256];
    for (int i = 0; i < 256; i++) {
        data[i] = i;
    }
    const int64_t one[2] = {1, 2}, two[2] = {1, 3};
    CHECK(!hl_memo_fetch(one, 2, got, sizeof(data)));
    hl_memo_keep(one, 2, data, sizeof(data), 1, 7);
    data[0] = 99; /* the cache has a copy of its own */
    hl_memo_keep(two, 2, data, sizeof(data), 0, 7);
    CHECK(hl_memo_fetch(one, 2, got, sizeof(data)) && got[0] == 0 && got[255] == 255);
    CHECK(hl_memo_fetch(two, 2, got, sizeof(data)) && got[0] == 99);
    CHECK(!hl_memo_fetch(one, 1, got, sizeof(data)) && !hl_memo_fetch(one, 2, got, sizeof(data) - 4));
    halide_memoization_cache_evict(NULL, 7); /* the second was kept under no eviction key */
    CHECK(!hl_memo_fetch(one, 2, got, sizeof(data)) && hl_memo_fetch(two, 2, got, sizeof(data)));
    halide_memoization_cache_set_size(3000); /* for two of about 1.1 kB */
    hl_memo_keep(one, 2, data, sizeof(data), 0, 0);
    CHECK(hl_memo_fetch(two, 2, got, sizeof(data)));
    const int64_t three[2] = {1, 4};
    hl_memo_keep(three, 2, data, sizeof(data), 0, 0); /* `one` was used the longest ago */
    CHECK(!hl_memo_fetch(one, 2, got, sizeof(data)) && hl_memo_fetch(two, 2, got, sizeof(data)) && hl_memo_fetch(three, 2, got, sizeof(data)));
    halide_memoization_cache_cleanup();
    CHECK(!hl_memo_fetch(two, 2, got, sizeof(data)));
    halide_memoization_cache_set_size(0);
}

static int use_cache(void *user_context, int index, uint8_t *closure) {
    (void)user_context, (void)closure;
    int64_t data[64], key[1] = {index % 17};
    if (hl_memo_fetch(key, 1, data, sizeof(data))) {
        for (int i = 0; i < 64; i++) {
            CHECK(data[i] == key[0] * i);
        }
    } else {
        for (int i = 0; i < 64; i++) {
            data[i] = key[0] * i;
        }
        hl_memo_keep(key, 1, data, sizeof(data), index % 2, (uint64_t)index % 3);
    }
    if (index % 50 == 0) {
        halide_memoization_cache_evict(NULL, 1);
    }
    return 0;
}

static void memo_cache_in_parallel(void) {
    halide_memoization_cache_set_size(5000); /* not enough for all */
    CHECK(halide_do_par_for(NULL, use_cache, 0, 3000, NULL) == 0);
    halide_memoization_cache_cleanup();
}

/* ---- Buffers ---- */

static void buffer_checks(void) {
    enum { FLOAT32X2 = 2 | 32 << 8 | 2 << 16, UINT8 = 1 | 8 << 8 | 1 << 16 };
    halide_dimension_t dims[2] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    halide_buffer_t b = {0};
    uint8_t data[80];
    b.dim = dims;
    b.dimensions = 2;
    CHECK(sizeof(b) == 56 && sizeof(dims[0]) == 16 && sizeof(b.type) == 4);
    CHECK(hl_check_kind(NULL, NULL, "b", "Input b", UINT8, 2) == halide_error_code_buffer_argument_is_null);
    CHECK(hl_check_kind(NULL, &b, "b", "Input b", UINT8, 2) == 0 && hl_check_kind(NULL, &b, "b", "Input b", UINT8, 1) == halide_error_code_bad_dimensions);
    b.dim = NULL;
    CHECK(hl_check_kind(NULL, &b, "b", "Input b", UINT8, 2) == halide_error_code_bad_dimensions && strstr(hl_last_error(), "has -1"));
    b.dim = dims;
    CHECK(_halide_buffer_answer(&b, FLOAT32X2, 2, 5, 6, 1, -3, 10, 6) == 0 && b.type.code == 2 && b.type.bits == 32 && b.type.lanes == 2);
    CHECK(dims[0].min == 5 && dims[0].extent == 6 && dims[0].stride == 1 && dims[1].min == -3 && dims[1].extent == 10 && dims[1].stride == 6);
    CHECK(hl_check_region(NULL, &b, "Input b", 0, 2, (int64_t)0, (int64_t)99, (int64_t)0, (int64_t)99) == 0);
    CHECK(hl_check_region(NULL, &b, "Input b", 1, 2, (int64_t)5, (int64_t)10, (int64_t)-3, (int64_t)6) == halide_error_code_host_is_null);
    b.host = data;
    CHECK(_halide_buffer_answer(&b, UINT8, 2, 0, 0, 0, 0, 0, 0) == 0 && b.type.bits == 32 && dims[0].min == 5); /* not a query */
    CHECK(hl_check_kind(NULL, &b, "b", "Input b", UINT8, 2) == halide_error_code_bad_type);
    CHECK(hl_check_region(NULL, &b, "Input b", 1, 2, (int64_t)5, (int64_t)10, (int64_t)-3, (int64_t)6) == 0);
    CHECK(hl_check_region(NULL, &b, "Input b", 1, 1, (int64_t)4, (int64_t)10) == halide_error_code_access_out_of_bounds);
    CHECK(strstr(hl_last_error(), "Input b is accessed at 4, which is before the min (5) in dimension 0"));
    CHECK(hl_check_region(NULL, &b, "Input b", 1, 2, (int64_t)5, (int64_t)10, (int64_t)0, (int64_t)1 << 40) == halide_error_code_access_out_of_bounds);
    CHECK(strstr(hl_last_error(), "2147483647, which is beyond the max (6) in dimension 1"));
    dims[1].extent = -1;
    CHECK(hl_check_region(NULL, &b, "Input b", 0, 0) == halide_error_code_buffer_extents_negative);
    b.dimensions = 0;
    data[0] = 1;
    int64_t digest = _halide_buffer_digest(&b);
    data[0] = 2;
    CHECK(digest != _halide_buffer_digest(&b) && _halide_buffer_digest(NULL) == 0);
}

static void reach_of_regions(void) {
    const int64_t most = INT32_MAX, least = INT32_MIN;
    CHECK(hl_check_reach(NULL, "f", "x", least, -2, 0) == 0 && hl_check_reach(NULL, "f", "x", 1, most, 1, most) == 0);
    CHECK(hl_check_reach(NULL, "f", "x", least, -1, 0) == halide_error_code_region_too_large); /* the extent */
    CHECK(hl_check_reach(NULL, "f", "x", 1, most + 1, 0) == halide_error_code_region_too_large);
    CHECK(hl_check_reach(NULL, "f", "x", 0, 9, 2, (int64_t)5, least - 1) == halide_error_code_region_too_large && strstr(hl_last_error(), "0 to 9"));
}

static void buffers_apart(void) {
    uint8_t data[8];
    halide_dimension_t dim = {0, 4, 1, 0};
    halide_buffer_t a = {0}, b = {0};
    a.dim = b.dim = &dim;
    a.dimensions = b.dimensions = 1;
    a.type.bits = b.type.bits = 8;
    a.type.lanes = b.type.lanes = 1;
    a.host = data;
    b.host = data + 4;
    CHECK(hl_check_apart(NULL, 0, "why", 1, 1, &a, "a", &b, "b") == 0);
    b.host = data + 3;
    CHECK(hl_check_apart(NULL, 1, "why", 1, 1, &a, "a", &b, "b") == halide_error_code_buffers_overlap && strstr(hl_last_error(), "a and b share memory: why"));
    b.host = data;
    CHECK(hl_check_apart(NULL, 1, "why", 1, 1, &a, "a", &b, "b") == 0 && hl_check_apart(NULL, 0, "why", 1, 1, &a, "a", &b, "b") != 0);
    /* Of many: inputs may overlap each other, outputs may not. */
    halide_buffer_t c = a;
    c.host = data + 4;
    CHECK(hl_check_apart(NULL, 0, "why", 2, 1, &a, "a", &b, "b", &c, "c") == 0);
    CHECK(hl_check_apart(NULL, 0, "why", 1, 2, &c, "c", &a, "a", &b, "b") == 0);
    CHECK(hl_check_apart(NULL, 0, "why", 0, 3, &c, "c", &a, "a", &b, "b") != 0 && strstr(hl_last_error(), "a and b share memory: why"));
    c.host = data + 1;
    CHECK(hl_check_apart(NULL, 1, "why", 2, 1, &a, "a", &b, "b", &c, "c") != 0 && strstr(hl_last_error(), "a and c share memory"));
}

#define NAMED(check) {#check, check}
static const struct {
    const char *name;
    void (*run)(void);
} checks[] = {
    NAMED(every_iteration_once), NAMED(nested), NAMED(many_callers), NAMED(iterations_overlap), NAMED(waiting_callers_help),
    NAMED(failure_reaches_the_caller), NAMED(first_failure_wins), NAMED(nested_failure), NAMED(errors_are_per_thread),
    NAMED(error_handler), NAMED(messages), NAMED(number_of_threads), NAMED(parallel_hooks), NAMED(fork_after_parallel),
    NAMED(fork_while_others_run), NAMED(fork_inside_a_loop), NAMED(memory), NAMED(memory_is_kept), NAMED(kept_memory_is_bounded),
    NAMED(memory_in_parallel), NAMED(memory_hooks), NAMED(printing), NAMED(tracing), NAMED(trace_file), NAMED(buffer_checks), NAMED(buffers_apart), NAMED(reach_of_regions),
    NAMED(memo_cache), NAMED(memo_cache_in_parallel),
};

int main(int argc, char **argv) {
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        if (argc == 2 && !strcmp(argv[1], checks[i].name)) {
            checks[i].run();
            return 0;
        }
    }
    fprintf(stderr, "usage: checks NAME\n");
    return 2;
}
