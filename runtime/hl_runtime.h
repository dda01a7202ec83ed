/* hl_runtime.h: what generated code and programs that call it share: the buffer ABI and the runtime's functions.
 *
 * Layout and names are those of the public runtime header of Halide, so that a library made here links with programs
 * written against that header and its C++ buffer class. Where HalideRuntime.h can be found it is used for the shared part,
 * so both may be included, in any order; unless HL_OWN_DECLARATIONS is defined, as in files that see no other code. Valid C11 and C++; includes nothing else, because every pipeline is compiled with it.
 */
#ifndef HL_RUNTIME_H
#define HL_RUNTIME_H

#if !defined(HALIDE_HALIDERUNTIME_H) && !defined(HL_OWN_DECLARATIONS) && defined(__has_include)
#if __has_include("HalideRuntime.h")
#include "HalideRuntime.h"
#endif
#endif

#if defined(__INT64_TYPE__) && defined(__UINTPTR_TYPE__)
/* The same types as in <stdint.h> and <stddef.h>, without reading those files. */
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
#else
#include <stddef.h>
#include <stdint.h>
#endif

#ifdef __cplusplus
#define HL_BOOL bool
#define HL_NULL nullptr
#else
#define HL_BOOL _Bool
#define HL_NULL ((void *)0)
#endif

#ifdef __cplusplus
extern "C" {
#endif

#ifndef HALIDE_HALIDERUNTIME_H

/* Values of halide_type_t.code. */
typedef enum halide_type_code_t
#ifdef __cplusplus
    : uint8_t
#endif
{
    halide_type_int = 0,
    halide_type_uint = 1,
    halide_type_float = 2,
    halide_type_handle = 3,
    halide_type_bfloat = 4
} halide_type_code_t;

struct halide_device_interface_t;
typedef struct halide_dimension_t halide_dimension_t;
typedef struct halide_buffer_t halide_buffer_t;

#ifndef HL_BUFFER_T_DEFINED /* the header of a library made ahead of time may have come first */
#define HL_BUFFER_T_DEFINED
/* The type of a buffer's elements; `code` is a halide_type_code_t. */
struct halide_type_t {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};

/* One dimension: coordinates min .. min + extent - 1, `stride` elements apart. */
struct halide_dimension_t {
    int32_t min, extent, stride;
    uint32_t flags;
};

/* An n-dimensional array. `host` is the address of the element at the min coordinates. Buffers with neither host nor device are
 * bounds queries: the pipeline writes the shape it needs into them and computes nothing. */
struct halide_buffer_t {
    uint64_t device;
    const struct halide_device_interface_t *device_interface;
    uint8_t *host;
    uint64_t flags;
    struct halide_type_t type;
    int32_t dimensions;
    halide_dimension_t *dim;
    void *padding;
};
#endif

/* Values of the bits of halide_buffer_t.flags. */
enum { halide_buffer_flag_host_dirty = 1, halide_buffer_flag_device_dirty = 2 };

/* A default, minimum or maximum of a scalar argument; the argument's type tells which member. */
struct halide_scalar_value_t {
    union {
        HL_BOOL b;
        int8_t i8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
        float f32;
        double f64;
        void *handle;
    } u;
};

enum halide_argument_kind_t {
    halide_argument_kind_input_scalar = 0,
    halide_argument_kind_input_buffer = 1,
    halide_argument_kind_output_buffer = 2
};

/* One argument of a pipeline, as its metadata describes it. */
struct halide_filter_argument_t {
    const char *name;
    int32_t kind; /* halide_argument_kind_t */
    int32_t dimensions;
    struct halide_type_t type;
    const struct halide_scalar_value_t *scalar_def, *scalar_min, *scalar_max, *scalar_estimate;
    int64_t const *const *buffer_estimates; /* min and extent of each dimension, any of them null */
};

/* What `NAME_metadata()` of a library made ahead of time gives. */
struct halide_filter_metadata_t {
    int32_t version; /* 1 */
    int32_t num_arguments;
    const struct halide_filter_argument_t *arguments;
    const char *target;
    const char *name;
};

/* What a pipeline returns: 0, or one of these with a message given to halide_error before. */
enum halide_error_code_t {
    halide_error_code_success = 0,
    halide_error_code_generic_error = -1,
    halide_error_code_explicit_bounds_too_small = -2,
    halide_error_code_bad_type = -3,
    halide_error_code_access_out_of_bounds = -4,
    halide_error_code_buffer_allocation_too_large = -5,
    halide_error_code_buffer_extents_too_large = -6,
    halide_error_code_constraints_make_required_region_smaller = -7,
    halide_error_code_constraint_violated = -8,
    halide_error_code_param_too_small = -9,
    halide_error_code_param_too_large = -10,
    halide_error_code_out_of_memory = -11,
    halide_error_code_buffer_argument_is_null = -12,
    halide_error_code_debug_to_file_failed = -13,
    halide_error_code_no_device_interface = -19,
    halide_error_code_unimplemented = -20,
    halide_error_code_symbol_not_found = -21,
    halide_error_code_internal_error = -22,
    halide_error_code_unaligned_host_ptr = -24,
    halide_error_code_bad_fold = -25,
    halide_error_code_fold_factor_too_small = -26,
    halide_error_code_requirement_failed = -27,
    halide_error_code_buffer_extents_negative = -28,
    halide_error_code_trace_failed = -30,
    halide_error_code_specialize_fail = -31,
    halide_error_code_host_is_null = -34,
    halide_error_code_bad_extern_fold = -35,
    halide_error_code_host_and_device_dirty = -37,
    halide_error_code_buffer_is_null = -38,
    halide_error_code_bad_dimensions = -43,
    halide_error_code_device_dirty_with_no_device_support = -44,
    halide_error_code_storage_bound_too_small = -45,
    halide_error_code_split_factor_not_positive = -46,
    halide_error_code_buffers_overlap = -47,
    halide_error_code_region_too_large = -48
};

/* ---- Hooks: each setter gives the previous function; null restores the default. ---- */

typedef void (*halide_error_handler_t)(void *user_context, const char *message);
typedef void (*halide_print_t)(void *user_context, const char *message);
typedef void *(*halide_malloc_t)(void *user_context, size_t size);
typedef void (*halide_free_t)(void *user_context, void *ptr);

/* Take the message of a failure. By default it becomes the calling thread's last error (hl_last_error); it never ends the process. */
void halide_error(void *user_context, const char *message);
void halide_default_error(void *user_context, const char *message);
halide_error_handler_t halide_set_error_handler(halide_error_handler_t handler);

/* Write a message as it is; to stderr by default. */
void halide_print(void *user_context, const char *message);
void halide_default_print(void *user_context, const char *message);
halide_print_t halide_set_custom_print(halide_print_t print);

/* Scratch memory aligned to 64 bytes, readable 64 bytes before and beyond. Null when there is none. Nothing else points there. */
#ifdef __GNUC__
__attribute__((malloc))
#endif
void *halide_malloc(void *user_context, size_t size);
void halide_free(void *user_context, void *ptr);
void *halide_default_malloc(void *user_context, size_t size);
void halide_default_free(void *user_context, void *ptr);
halide_malloc_t halide_set_custom_malloc(halide_malloc_t user_malloc);
halide_free_t halide_set_custom_free(halide_free_t user_free);

/* ---- Parallel loops ---- */

typedef int (*halide_task_t)(void *user_context, int index, uint8_t *closure);
typedef int (*halide_do_par_for_t)(void *, halide_task_t, int, int, uint8_t *);
typedef int (*halide_do_task_t)(void *, halide_task_t, int, uint8_t *);

/* Call task(user_context, i, closure) for min <= i < min + size on the threads of the pool and the calling one. Gives 0, or
 * what the first failing call gave; its error message becomes the calling thread's. May be nested. */
int halide_do_par_for(void *user_context, halide_task_t task, int min, int size, uint8_t *closure);
int halide_default_do_par_for(void *user_context, halide_task_t task, int min, int size, uint8_t *closure);
halide_do_par_for_t halide_set_custom_do_par_for(halide_do_par_for_t do_par_for);
int halide_do_task(void *user_context, halide_task_t task, int index, uint8_t *closure);
int halide_default_do_task(void *user_context, halide_task_t task, int index, uint8_t *closure);
halide_do_task_t halide_set_custom_do_task(halide_do_task_t do_task);

/* Threads that work on a parallel loop, the caller included. 0 stands for the default: HL_NUM_THREADS, or the processors this
 * process may use. Gives the previous number; a negative one is an error. */
int halide_set_num_threads(int n);
int halide_get_num_threads(void);
/* End the pool's threads; they start again when needed. */
void halide_shutdown_thread_pool(void);

/* For C functions that pipelines call. A mutex or condition starts as zeros; nobody destroys it. A wait may end without a signal. */
struct halide_mutex {
    uintptr_t _private[1];
};
struct halide_cond {
    uintptr_t _private[1];
};
struct halide_mutex_array;
struct halide_thread;
void halide_mutex_lock(struct halide_mutex *mutex);
void halide_mutex_unlock(struct halide_mutex *mutex);
void halide_cond_signal(struct halide_cond *cond);
void halide_cond_broadcast(struct halide_cond *cond);
void halide_cond_wait(struct halide_cond *cond, struct halide_mutex *mutex);
struct halide_mutex_array *halide_mutex_array_create(uint64_t count);
void halide_mutex_array_destroy(void *user_context, void *array);
int halide_mutex_array_lock(struct halide_mutex_array *array, int entry);
int halide_mutex_array_unlock(struct halide_mutex_array *array, int entry);
/* A thread that calls f(closure), null when there is none to be had; joining it frees it. */
struct halide_thread *halide_spawn_thread(void (*f)(void *), void *closure);
void halide_join_thread(struct halide_thread *thread);

/* Whether the processor may have the features of a target, bits of `count` words: 0 if it is known to lack one, else 1. The function of
 * several targets asks before it takes one. */
typedef int (*halide_can_use_target_features_t)(int count, const uint64_t *features);
int halide_can_use_target_features(int count, const uint64_t *features);
int halide_default_can_use_target_features(int count, const uint64_t *features);
halide_can_use_target_features_t halide_set_custom_can_use_target_features(halide_can_use_target_features_t can_use);

/* ---- Tracing ---- */

enum halide_trace_event_code_t {
    halide_trace_load = 0,
    halide_trace_store = 1,
    halide_trace_begin_realization = 2,
    halide_trace_end_realization = 3,
    halide_trace_produce = 4,
    halide_trace_end_produce = 5,
    halide_trace_consume = 6,
    halide_trace_end_consume = 7,
    halide_trace_begin_pipeline = 8,
    halide_trace_end_pipeline = 9,
    halide_trace_tag = 10
};

/* One event. `coordinates` of a vector access: all lanes' first coordinate, all lanes' second, ...; of a region: min, extent, ... */
struct halide_trace_event_t {
    const char *func;
    void *value;
    int32_t *coordinates;
    const char *trace_tag;
    struct halide_type_t type;
    enum halide_trace_event_code_t event;
    int32_t parent_id;
    int32_t value_index;
    int32_t dimensions;
};

/* The header of a packet of a binary trace (HL_TRACE_FILE); coordinates, value, name and tag follow. */
struct halide_trace_packet_t {
    uint32_t size;
    int32_t id;
    struct halide_type_t type;
    enum halide_trace_event_code_t event;
    int32_t parent_id;
    int32_t value_index;
    int32_t dimensions;
};

typedef int32_t (*halide_trace_t)(void *user_context, const struct halide_trace_event_t *event);
/* Report an event; gives its identity, to be `parent_id` of those that belong to it. Prints it as text, or appends a packet
 * to the file that HL_TRACE_FILE names. */
int32_t halide_trace(void *user_context, const struct halide_trace_event_t *event);
int32_t halide_default_trace(void *user_context, const struct halide_trace_event_t *event);
halide_trace_t halide_set_custom_trace(halide_trace_t trace);
void halide_set_trace_file(int fd);
int halide_get_trace_file(void *user_context);
int halide_shutdown_trace(void);

/* ---- Devices: there are none. What needs none succeeds: a copy to the host of what is there, a free of nothing. ---- */

int halide_copy_to_host(void *user_context, struct halide_buffer_t *buffer);
int halide_copy_to_device(void *user_context, struct halide_buffer_t *buffer, const struct halide_device_interface_t *interface);
int halide_device_malloc(void *user_context, struct halide_buffer_t *buffer, const struct halide_device_interface_t *interface);
int halide_device_free(void *user_context, struct halide_buffer_t *buffer);
int halide_device_sync(void *user_context, struct halide_buffer_t *buffer);
int halide_device_detach_native(void *user_context, struct halide_buffer_t *buffer);
void halide_device_release(void *user_context, const struct halide_device_interface_t *interface);

/* float16 as other floats. */
double halide_float16_bits_to_double(uint16_t bits);
float halide_float16_bits_to_float(uint16_t bits);

/* ---- Profiler: of pipelines compiled with the target feature `profile`. ---- */

/* Print a table of the time that each pipeline and Func took so far; start again from zero. */
void halide_profiler_report(void *user_context);
void halide_profiler_reset(void);

/* ---- Memoization ---- */

/* Bytes that the results of memoized Funcs may take; 0 stands for the default, 1 MiB. Those unused for longest go first. */
void halide_memoization_cache_set_size(int64_t size);
/* Forget all results kept under an eviction key. */
void halide_memoization_cache_evict(void *user_context, uint64_t eviction_key);
/* Forget all results. */
void halide_memoization_cache_cleanup(void);

/* ---- Error reports: each gives the code to return. ---- */

int halide_error_bounds_inference_call_failed(void *user_context, const char *extern_stage_name, int result);
int halide_error_extern_stage_failed(void *user_context, const char *extern_stage_name, int result);
int halide_error_explicit_bounds_too_small(void *user_context, const char *func_name, const char *var_name, int min_bound,
                                           int max_bound, int min_required, int max_required);
int halide_error_bad_type(void *user_context, const char *func_name, uint32_t type_given, uint32_t correct_type);
int halide_error_bad_dimensions(void *user_context, const char *func_name, int32_t dimensions_given, int32_t correct_dimensions);
int halide_error_access_out_of_bounds(void *user_context, const char *func_name, int dimension, int min_touched, int max_touched,
                                      int min_valid, int max_valid);
int halide_error_buffer_allocation_too_large(void *user_context, const char *buffer_name, uint64_t allocation_size,
                                             uint64_t max_size);
int halide_error_buffer_extents_negative(void *user_context, const char *buffer_name, int dimension, int extent);
int halide_error_buffer_extents_too_large(void *user_context, const char *buffer_name, int64_t actual_size, int64_t max_size);
int halide_error_constraints_make_required_region_smaller(void *user_context, const char *buffer_name, int dimension,
                                                          int constrained_min, int constrained_extent, int required_min,
                                                          int required_extent);
int halide_error_constraint_violated(void *user_context, const char *var, int val, const char *constrained_var,
                                     int constrained_val);
int halide_error_param_too_small_i64(void *user_context, const char *param_name, int64_t val, int64_t min_val);
int halide_error_param_too_small_u64(void *user_context, const char *param_name, uint64_t val, uint64_t min_val);
int halide_error_param_too_small_f64(void *user_context, const char *param_name, double val, double min_val);
int halide_error_param_too_large_i64(void *user_context, const char *param_name, int64_t val, int64_t max_val);
int halide_error_param_too_large_u64(void *user_context, const char *param_name, uint64_t val, uint64_t max_val);
int halide_error_param_too_large_f64(void *user_context, const char *param_name, double val, double max_val);
int halide_error_out_of_memory(void *user_context);
int halide_error_buffer_argument_is_null(void *user_context, const char *buffer_name);
int halide_error_debug_to_file_failed(void *user_context, const char *func, const char *filename, int error_code);
int halide_error_unaligned_host_ptr(void *user_context, const char *func_name, int alignment);
int halide_error_host_is_null(void *user_context, const char *func_name);
int halide_error_bad_fold(void *user_context, const char *func_name, const char *var_name, const char *loop_name);
int halide_error_bad_extern_fold(void *user_context, const char *func_name, int dim, int min, int extent, int valid_min,
                                 int fold_factor);
int halide_error_fold_factor_too_small(void *user_context, const char *func_name, const char *var_name, int fold_factor,
                                       const char *loop_name, int required_extent);
int halide_error_requirement_failed(void *user_context, const char *condition, const char *message);
int halide_error_specialize_fail(void *user_context, const char *message);
int halide_error_host_and_device_dirty(void *user_context);
int halide_error_no_device_interface(void *user_context);
int halide_error_buffer_is_null(void *user_context, const char *routine);
int halide_error_device_dirty_with_no_device_support(void *user_context, const char *buffer_name);
int halide_error_storage_bound_too_small(void *user_context, const char *func_name, const char *var_name, int provided_size,
                                         int required_size);
int halide_error_split_factor_not_positive(void *user_context, const char *func_name, const char *orig, const char *outer,
                                           const char *inner, const char *factor_str, int factor);
int halide_error_buffers_overlap(void *user_context, const char *first, const char *second, const char *reason);
int halide_error_region_too_large(void *user_context, const char *func_name, const char *var_name, int64_t min_required,
                                  int64_t max_required);

#endif /* HALIDE_HALIDERUNTIME_H */

/* ---- Ours ---- */

/* The message of the calling thread's last error, "" when there is none; valid until the thread's next error. */
const char *hl_last_error(void);
void hl_clear_error(void);
/* The code of a library on a processor that lacks what it was compiled for; it is asked for at each call. */
enum { hl_error_code_wrong_cpu = -1001 };
int hl_error_wrong_cpu(void *user_context, const char *func_name, const char *needs);

/* Whether the processor has all of the instruction sets whose numbers are the bits of `sets`. */
enum hl_instruction_set {
    hl_has_sse4_1,
    hl_has_sse4_2,
    hl_has_popcnt,
    hl_has_avx,
    hl_has_avx2,
    hl_has_fma,
    hl_has_f16c,
    hl_has_bmi2,
    hl_has_avx512f,
    hl_has_avx512cd,
    hl_has_avx512bw,
    hl_has_avx512dq,
    hl_has_avx512vl,
    hl_has_avx512ifma,
    hl_has_avx512vbmi,
    hl_has_avx512vnni,
    hl_has_avx512bitalg,
    hl_has_avx512vpopcntdq,
    hl_has_avx512bf16
};
HL_BOOL hl_processor_has(uint32_t sets);

/* The functions of a shared library, which `hl_library` of it gives; the last one has null pointers. */
struct hl_library_entry {
    const struct halide_filter_metadata_t *(*metadata)(void);
    int (*argv)(void **args);
};

/* What the profiler knows of a Func: time that threads worked on it, and time in which at least one did; scratch memory in bytes, `stack_peak` that
 * on the stack of a thread. Of a pipeline: time between start and end of runs. `next` is another pipeline. */
struct hl_profile_memory {
    uint64_t current, peak, total, count;
};
struct hl_profile_func {
    const char *name;
    uint64_t nanoseconds, busy, entered;
    struct hl_profile_memory memory;
    uint64_t stack_peak, since;
    int32_t threads;
    char lock;
};
struct hl_profile_pipeline {
    const char *name;
    int32_t count;
    struct hl_profile_func *funcs;
    uint64_t runs, nanoseconds;
    struct hl_profile_memory memory;
    struct hl_profile_pipeline *next;
};
struct hl_profile_run {
    struct hl_profile_pipeline *pipeline;
    uint64_t start, entered;
};
struct hl_profile_allocation {
    struct hl_profile_pipeline *pipeline;
    struct hl_profile_func *func;
    uint64_t bytes;
};
const struct hl_profile_pipeline *hl_profile_first(void);
/* The lines of the table that halide_profiler_report prints. */
void hl_profile_table(void (*print)(void *context, const char *line), void *context);
/* For generated code: the record of a pipeline; work on a Func (null: on none) from here, `counted` if a
 * production starts, on the one before from there; a run from here to there; memory of a Func (null: of none) held from here to there. */
struct hl_profile_pipeline *hl_profile_pipeline(const char *name, int count, const char *const *funcs, const uint64_t *stack);
struct hl_profile_func *hl_profile_enter(struct hl_profile_func *func, int counted);
void hl_profile_leave(struct hl_profile_func *before);
struct hl_profile_run hl_profile_begin(struct hl_profile_pipeline *pipeline);
void hl_profile_finish(const struct hl_profile_run *run);
struct hl_profile_allocation hl_profile_allocate(struct hl_profile_pipeline *pipeline, struct hl_profile_func *func, uint64_t bytes);
void hl_profile_free(const struct hl_profile_allocation *held);

/* Make a message the calling thread's last error, without telling the handler: what a handler does that keeps messages. */
void hl_set_last_error(const char *message);

/* Give back to the system the scratch memory kept for the next run; of small blocks set aside by threads, the caller's. */
void hl_trim_memory(void);

/* Values as text, joined by spaces. `kinds` has a letter for each argument: i int64_t, u uint64_t, b bool (as int), f float
 * (6 decimals), e double (scientific), h float16 bits and g bfloat16 bits (as int), p pointer, s C string.
 * The text is valid until the thread has made eight more. */
const char *hl_stringify(const char *kinds, ...);
/* The same, as one line to halide_print. Gives 0. */
int hl_print(void *user_context, const char *kinds, ...);
/* A text and what a buffer says of itself, as one line to halide_print: for the target feature debug. */
void hl_debug_buffer(void *user_context, const char *text, const struct halide_buffer_t *buffer);

/* Report one event of a trace from its parts; gives the event's identity. `value` and `coordinates` are null where the event has none. */
int halide_trace_helper(void *user_context, const char *func, void *value, int *coordinates, int type_code, int type_bits,
                        int type_lanes, int event, int parent_id, int value_index, int dimensions, const char *trace_tag);

/* Tasks that run at the same time. `group` is memory of HL_GROUP_WORDS 64-bit words and one for each of its n semaphores, which start at `counts`.
 * To acquire takes one, waiting for it; it gives 0, or another number where a task of the fork has failed: then leave with that. */
enum { HL_GROUP_WORDS = 16 };
int hl_semaphores_init(void *group, int32_t n, const int32_t *counts);
int hl_semaphore_acquire(void *group, int32_t i);
int hl_semaphore_release(void *group, int32_t i);
/* Call task(user_context, 0, closure) and task(user_context, 1, closure) at the same time; gives 0 or the failure that came first. */
int hl_fork(void *user_context, void *group, halide_task_t task, uint8_t *closure);

/* Copy the result kept under a key of `words` words to a realization of that many bytes; gives 1 if there is one, else 0. */
int hl_memo_fetch(const int64_t *key, int32_t words, void *to, int64_t bytes);
/* Keep a copy of a realization under a key. Gives 0. */
int hl_memo_keep(const int64_t *key, int32_t words, const void *from, int64_t bytes, int32_t has_eviction_key, uint64_t eviction_key);
/* Write a region to a file, whose name's end says the format. `shape`: extent and stride (in elements) of each dimension. Gives 0 or an error code. */
int hl_debug_to_file(const char *filename, const void *first, int32_t code, int32_t bits, int32_t dimensions, const int64_t *shape);
/* A hash of a buffer's elements; 0 without data. */
int64_t _halide_buffer_digest(const void *buffer);

/* ---- Buffers that callers pass, for generated code: `buffer` is a halide_buffer_t *, passed around as a handle. `label` is how messages name
 * it, `type` are the four bytes of a halide_type_t. What checks gives 0 or an error's code. ---- */

/* Whether two buffers have bytes of memory in common. `same_is_fine`: not so if each element of both lies where the other's of the same
 * coordinates does. Exact for buffers of the same strides whose dimensions nest (views of one array), else by first and last address. */
HL_BOOL _halide_buffer_overlap(const void *first, const void *second, HL_BOOL same_is_fine);
/* Whether there is a buffer of that type (a query may have any) and number of dimensions. */
int hl_check_kind(void *user_context, const void *buffer, const char *name, const char *label, uint32_t type, int32_t dimensions);
/* Whether no extent is negative and, if the buffer is `touched`, there is data, and the first and last coordinate touched of each of
 * `dimensions` dimensions, given as two int64_t, are inside. */
int hl_check_region(void *user_context, const void *buffer, const char *label, HL_BOOL touched, int32_t dimensions, ...);
/* Whether a region of a Func, its extent, and `count` values of int64_t that it is computed from are within int32. */
int hl_check_reach(void *user_context, const char *func, const char *dimension, int64_t low, int64_t high, int32_t count, ...);
/* Whether no element is 2^31 elements or more from the one of coordinate zero; bounds queries and what is no buffer pass. */
int hl_check_near(void *user_context, const void *buffer, const char *label);
/* Whether no input overlaps an output or, without inputs, no two outputs do; of each, inputs first, the buffer and its label. If they do,
 * `reason` says what that would harm. */
int hl_check_apart(void *user_context, HL_BOOL same_is_fine, const char *reason, int32_t inputs, int32_t outputs, ...);
/* If the buffer is a bounds query, its type and, as int32_t, min, extent and stride of each dimension. Gives 0. */
int32_t _halide_buffer_answer(void *buffer, uint32_t type, int32_t dimensions, ...);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HL_RUNTIME_H */
