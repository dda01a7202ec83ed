/* trace.c: events of a traced pipeline, as lines of text through halide_print or as packets appended to the file HL_TRACE_FILE. */
#include "hl_internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic(halide_trace_t) custom_trace;
static atomic_int last_id;

static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;
static int trace_file = -1; /* -1: not looked for yet; 0: none, print text */
static int opened_file;     /* the file is ours to close */

/* ---- Text ---- */

/* A growing text; what does not fit into memory is dropped. */
struct text {
    char *data;
    size_t length, room;
};

__attribute__((format(printf, 2, 3))) static void append(struct text *t, const char *format, ...) {
    for (;;) {
        va_list args;
        va_start(args, format);
        int n = vsnprintf(t->data + t->length, t->room - t->length, format, args);
        va_end(args);
        if (n < 0) {
            return;
        }
        if (t->length + (size_t)n < t->room) {
            t->length += (size_t)n;
            return;
        }
        size_t room = 2 * t->room + (size_t)n;
        char *data = (char *)realloc(t->data, room);
        if (!data) {
            t->data[t->length] = 0;
            return;
        }
        t->data = data;
        t->room = room;
    }
}

static int bytes_of(struct halide_type_t type) {
    return type.bits <= 8 ? 1 : type.bits <= 16 ? 2 : type.bits <= 32 ? 4 : 8;
}

static uint64_t unsigned_at(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    switch (bytes) {
    case 1:
        return *at;
    case 2: {
        uint16_t v;
        memcpy(&v, at, sizeof(v));
        return v;
    }
    case 4: {
        uint32_t v;
        memcpy(&v, at, sizeof(v));
        return v;
    }
    default:
        memcpy(&value, at, sizeof(value));
        return value;
    }
}

static void append_value(struct text *t, struct halide_type_t type, const uint8_t *at) {
    int bytes = bytes_of(type);
    uint64_t bits = unsigned_at(at, bytes);
    if (type.code == halide_type_int) {
        int shift = 64 - 8 * bytes;
        append(t, "%" PRId64, (int64_t)(bits << shift) >> shift);
    } else if (type.code == halide_type_uint) {
        append(t, "%" PRIu64, bits);
    } else if (type.code == halide_type_bfloat) {
        append(t, "%e", hl_bfloat16_value((uint16_t)bits));
    } else if (type.code == halide_type_handle) {
        append(t, "0x%" PRIx64, bits);
    } else if (bytes == 2) {
        append(t, "%e", hl_float16_value((uint16_t)bits));
    } else if (bytes == 4) {
        float value;
        memcpy(&value, at, sizeof(value));
        append(t, "%f", (double)value);
    } else {
        double value;
        memcpy(&value, at, sizeof(value));
        append(t, "%e", value);
    }
}

/* `Store f.0(3, 4) = 7`, of a vector `Store f.0(<0, 1>, <4, 4>) = <7, 8>`. */
static void append_event(struct text *t, const struct halide_trace_event_t *e) {
    static const char *const names[] = {"Load",    "Store",       "Begin realization", "End realization", "Produce", "End produce",
                                        "Consume", "End consume", "Begin pipeline",    "End pipeline",    "Tag"};
    int lanes = e->type.lanes, vector = lanes > 1;
    append(t, "%s %s.%d(%s", (unsigned)e->event < 11 ? names[e->event] : "Event", e->func, e->value_index, vector ? "<" : "");
    for (int i = 0; i < e->dimensions; i++) {
        append(t, "%s%d", i == 0 ? "" : vector && i % lanes == 0 ? ">, <" : ", ", e->coordinates[i]);
    }
    append(t, vector ? ">)" : ")");
    if (e->event <= halide_trace_store) {
        append(t, vector ? " = <" : " = ");
        for (int i = 0; i < lanes; i++) {
            append(t, i == 0 ? "" : ", ");
            append_value(t, e->type, (const uint8_t *)e->value + i * bytes_of(e->type));
        }
        append(t, vector ? ">" : "");
    }
    if (e->trace_tag && *e->trace_tag) {
        append(t, " tag = \"%s\"", e->trace_tag);
    }
    append(t, "\n");
}

static int32_t print_event(void *user_context, const struct halide_trace_event_t *e, int32_t id) {
    struct text t = {(char *)malloc(512), 0, 512};
    if (!t.data) {
        return halide_error_out_of_memory(user_context);
    }
    append_event(&t, e);
    halide_print(user_context, t.data);
    free(t.data);
    return id;
}

/* ---- Packets ---- */

static int32_t write_packet(void *user_context, int file, const struct halide_trace_event_t *e, int32_t id) {
    size_t coordinates = e->coordinates ? sizeof(int32_t) * (size_t)e->dimensions : 0;
    size_t value = e->value ? (size_t)e->type.lanes * (size_t)bytes_of(e->type) : 0;
    const char *tag = e->trace_tag ? e->trace_tag : "";
    size_t name = strlen(e->func) + 1, tag_bytes = strlen(tag) + 1, header = sizeof(struct halide_trace_packet_t);
    size_t size = (header + coordinates + value + name + tag_bytes + 3) & ~(size_t)3;
    uint8_t *packet = (uint8_t *)calloc(1, size), *at = packet;
    if (!packet) {
        return halide_error_out_of_memory(user_context);
    }
    struct halide_trace_packet_t head = {(uint32_t)size, id, e->type, e->event, e->parent_id, e->value_index, e->dimensions};
    const struct {
        const void *from;
        size_t bytes;
    } parts[] = {{&head, header}, {e->coordinates, coordinates}, {e->value, value}, {e->func, name}, {tag, tag_bytes}};
    for (int i = 0; i < 5; i++) {
        if (parts[i].bytes) {
            memcpy(at, parts[i].from, parts[i].bytes);
        }
        at += parts[i].bytes;
    }
    pthread_mutex_lock(&file_lock);
    ssize_t written = 0;
    for (size_t done = 0; done < size && written >= 0; done += (size_t)(written > 0 ? written : 0)) {
        written = write(file, packet + done, size - done);
    }
    pthread_mutex_unlock(&file_lock);
    free(packet);
    if (written < 0) {
        halide_error(user_context, "Could not write to the trace file.");
        return halide_error_code_trace_failed;
    }
    return id;
}

void halide_set_trace_file(int fd) {
    pthread_mutex_lock(&file_lock);
    trace_file = fd;
    pthread_mutex_unlock(&file_lock);
}

HL_OVERRIDABLE int halide_get_trace_file(void *user_context) {
    int failed = 0;
    pthread_mutex_lock(&file_lock);
    if (trace_file < 0) {
        const char *name = getenv("HL_TRACE_FILE");
        trace_file = 0;
        if (name && *name) {
            int file = hl_open_trace(name);
            failed = file < 0;
            trace_file = failed ? 0 : file;
            opened_file = !failed;
        }
    }
    int file = trace_file;
    pthread_mutex_unlock(&file_lock);
    if (failed) {
        hl_error_format(user_context, "Could not open the file HL_TRACE_FILE names: %s", getenv("HL_TRACE_FILE"));
    }
    return file;
}

int halide_shutdown_trace(void) {
    int result = 0;
    pthread_mutex_lock(&file_lock);
    if (opened_file) {
        result = close(trace_file) ? halide_error_code_trace_failed : 0;
        opened_file = 0;
        trace_file = -1;
    }
    pthread_mutex_unlock(&file_lock);
    return result;
}

/* ---- Entry ---- */

HL_OVERRIDABLE int32_t halide_default_trace(void *user_context, const struct halide_trace_event_t *event) {
    int32_t id = atomic_fetch_add(&last_id, 1) + 1;
    int file = halide_get_trace_file(user_context);
    return file > 0 ? write_packet(user_context, file, event, id) : print_event(user_context, event, id);
}

halide_trace_t halide_set_custom_trace(halide_trace_t trace) {
    halide_trace_t previous = atomic_exchange(&custom_trace, trace);
    return previous ? previous : halide_default_trace;
}

HL_OVERRIDABLE int32_t halide_trace(void *user_context, const struct halide_trace_event_t *event) {
    halide_trace_t hook = atomic_load(&custom_trace);
    return hook ? hook(user_context, event) : halide_default_trace(user_context, event);
}

HL_OVERRIDABLE int halide_trace_helper(void *user_context, const char *func, void *value, int *coordinates, int type_code,
                                       int type_bits, int type_lanes, int event, int parent_id, int value_index, int dimensions,
                                       const char *trace_tag) {
    struct halide_trace_event_t e = {func,
                                     value,
                                     coordinates,
                                     trace_tag,
                                     {(uint8_t)type_code, (uint8_t)type_bits, (uint16_t)type_lanes},
                                     (enum halide_trace_event_code_t)event,
                                     parent_id,
                                     value_index,
                                     dimensions};
    return halide_trace(user_context, &e);
}

void hl_trace_before_fork(void) {
    pthread_mutex_lock(&file_lock);
}

void hl_trace_after_fork(void) {
    pthread_mutex_unlock(&file_lock);
}
