/* overlap.c: whether two buffers have memory in common. */
#include "hl_internal.h"

enum { MOST_DIMENSIONS = 16 };

typedef const struct halide_buffer_t *Buffer;

static int64_t size_of(Buffer b) {
    return (b->type.bits + 7) / 8 * b->type.lanes;
}

/* The first byte and the one after the last; 0 for a buffer without elements. */
static int range(Buffer b, intptr_t *low, intptr_t *high) {
    *low = (intptr_t)b->host;
    *high = *low + (intptr_t)size_of(b);
    for (int d = 0; d < b->dimensions; d++) {
        const intptr_t reach = (intptr_t)(b->dim[d].extent - 1) * b->dim[d].stride * (intptr_t)size_of(b);
        if (b->dim[d].extent <= 0) return 0;
        *(reach < 0 ? low : high) += reach;
    }
    return b->host != HL_NULL;
}

/* Whether dimension d takes part in addresses. */
static int counts(Buffer b, int d) {
    return b->dim[d].extent > 1;
}

static int same_place(Buffer a, Buffer b) {
    intptr_t origin = (intptr_t)a->host - (intptr_t)b->host;
    if (a->dimensions != b->dimensions || size_of(a) != size_of(b)) return 0;
    for (int d = 0; d < a->dimensions; d++) {
        const intptr_t stride = a->dim[d].stride;
        if (stride != b->dim[d].stride && (counts(a, d) || counts(b, d))) return 0;
        origin -= ((intptr_t)a->dim[d].min - b->dim[d].min) * stride * (intptr_t)size_of(a);
    }
    return origin == 0;
}

struct axis {
    int64_t stride, extent_a, extent_b;
};

/* Whether a sum of q[k] * stride[k], with q[k] what an index of a less one of b can be, comes within an element of `offset`.
 * The strides fall, and each is at least what the ones after it reach, so that two values of each q are enough to try. */
static int meets(const struct axis *axes, int count, int64_t offset, int64_t size) {
    if (count == 0) return offset < size && -offset < size;
    const struct axis *x = axes;
    int64_t q = offset / x->stride - (offset % x->stride < 0); /* floor */
    for (int k = 0; k < 2; k++, q++) {
        if (q < x->extent_a && -q < x->extent_b && meets(axes + 1, count - 1, offset - q * x->stride, size)) return 1;
    }
    return 0;
}

/* 1 or 0 when buffers of one layout meet or not; -1 when they have no common layout. */
static int nested_meet(Buffer a, Buffer b) {
    struct axis axes[MOST_DIMENSIONS];
    int count = 0;
    const int64_t size = size_of(a);
    if (a->dimensions != b->dimensions || size_of(b) != size || a->dimensions > MOST_DIMENSIONS) return -1;
    for (int d = 0; d < a->dimensions; d++) {
        if (!counts(a, d) && !counts(b, d)) continue;
        struct axis x = {(int64_t)a->dim[d].stride * size, a->dim[d].extent, b->dim[d].extent};
        if (a->dim[d].stride != b->dim[d].stride || x.stride <= 0) return -1;
        int k = count++;
        for (; k > 0 && axes[k - 1].stride < x.stride; k--) axes[k] = axes[k - 1];
        axes[k] = x;
    }
    int64_t reach = size;
    for (int k = count - 1; k >= 0; k--) {
        const int64_t most = axes[k].extent_a > axes[k].extent_b ? axes[k].extent_a : axes[k].extent_b;
        if (axes[k].stride < reach) return -1;
        reach += (most - 1) * axes[k].stride;
    }
    return meets(axes, count, (intptr_t)b->host - (intptr_t)a->host, size);
}

HL_OVERRIDABLE HL_BOOL _halide_buffer_overlap(const void *first, const void *second, HL_BOOL same_is_fine) {
    const Buffer a = (Buffer)first, b = (Buffer)second;
    intptr_t a_low, a_high, b_low, b_high;
    if (!range(a, &a_low, &a_high) || !range(b, &b_low, &b_high) || a_high <= b_low || b_high <= a_low) return 0;
    if (same_is_fine && same_place(a, b)) return 0;
    return nested_meet(a, b) != 0;
}
