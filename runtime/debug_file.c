/* debug_file.c: writes what a Func computed to a file: .npy, .tif and .tiff, .mat (level 5), and any other name as .tmp: five 32-bit numbers (four
 * extents, a code for the type) and the elements. Dimension 0 varies fastest in all of them. Little-endian machines only, as all of the runtime.
 */
#include "hl_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DIMENSIONS = 4 };

struct image {
    const uint8_t *first;
    int32_t dimensions, extent[MOST_DIMENSIONS];
    int64_t stride[MOST_DIMENSIONS], elements;
    int32_t code, bits, bytes;
};

static int ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static int put(FILE *f, const void *data, size_t size) {
    return fwrite(data, 1, size, f) == size;
}

static int put_zeros(FILE *f, size_t size) {
    static const char zeros[64];
    return put(f, zeros, size);
}

static int put_elements(FILE *f, const struct image *im) {
    int64_t at[MOST_DIMENSIONS];
    for (at[3] = 0; at[3] < im->extent[3]; at[3]++) {
        for (at[2] = 0; at[2] < im->extent[2]; at[2]++) {
            for (at[1] = 0; at[1] < im->extent[1]; at[1]++) {
                const uint8_t *row = im->first + im->bytes * (at[3] * im->stride[3] + at[2] * im->stride[2] + at[1] * im->stride[1]);
                for (at[0] = 0; at[0] < im->extent[0]; at[0]++) {
                    if (!put(f, row + im->bytes * at[0] * im->stride[0], (size_t)im->bytes)) {
                        return 0;
                    }
                }
            }
        }
    }
    return 1;
}

/* 0 to 3 for 1, 2, 4 and 8 bytes. */
static int size_class(const struct image *im) {
    return im->bytes == 1 ? 0 : im->bytes == 2 ? 1 : im->bytes == 4 ? 2 : 3;
}

/* NumPy's format 1.0: a[x, y, ...]. */
static int put_npy(FILE *f, const struct image *im) {
    char text[256];
    int n = snprintf(text, sizeof(text), "{'descr': '%c%c%d', 'fortran_order': True, 'shape': (", im->bytes == 1 ? '|' : '<',
                     im->code == halide_type_float ? 'f' : im->bits == 1 ? 'b' : im->code == halide_type_int ? 'i' : 'u', im->bytes);
    for (int d = 0; d < im->dimensions; d++) {
        n += snprintf(text + n, sizeof(text) - (size_t)n, "%d,", im->extent[d]);
    }
    n += snprintf(text + n, sizeof(text) - (size_t)n, "), }");
    while ((10 + n + 1) % 64) {
        text[n++] = ' ';
    }
    text[n++] = '\n';
    uint8_t head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (uint8_t)n, (uint8_t)(n >> 8)};
    return put(f, head, sizeof(head)) && put(f, text, (size_t)n) && put_elements(f, im);
}

/* A baseline image of planes: dimension 2 if it is small and the last, else dimension 3, are the channels. */
static int put_tiff(FILE *f, const struct image *im) {
    int last = im->extent[3] <= 1 && im->extent[2] < 5;
    uint32_t channels = (uint32_t)(last ? im->extent[2] : im->extent[3]), depth = (uint32_t)(last ? 1 : im->extent[2]);
    uint32_t plane = (uint32_t)im->extent[0] * (uint32_t)im->extent[1] * depth * (uint32_t)im->bytes;
    enum { TAGS = 13, TABLE = 8 + 2 + 12 * TAGS + 4, SHORT = 3, LONG = 4 };
    uint32_t data = TABLE + (channels > 1 ? 8 * channels : 0);
    const struct {
        uint16_t tag, type;
        uint32_t count, value;
    } tags[TAGS] = {
        {256, LONG, 1, (uint32_t)im->extent[0]},                      /* width */
        {257, LONG, 1, (uint32_t)im->extent[1]},                      /* height */
        {258, SHORT, 1, (uint32_t)im->bytes * 8},                     /* bits of a sample */
        {259, SHORT, 1, 1},                                           /* not compressed */
        {262, SHORT, 1, channels >= 3 ? 2 : 1},                       /* RGB, or 0 is black */
        {273, LONG, channels, channels > 1 ? TABLE : data},           /* where the planes are */
        {277, SHORT, 1, channels},                                    /* samples of a pixel */
        {278, LONG, 1, (uint32_t)im->extent[1]},                      /* rows of a strip: all */
        {279, LONG, channels, channels > 1 ? TABLE + 4 * channels : plane}, /* bytes of the planes */
        {284, SHORT, 1, 2},                                           /* one plane after the other */
        {296, SHORT, 1, 1},                                           /* no unit */
        {339, SHORT, 1, im->code == halide_type_float ? 3 : im->code == halide_type_int ? 2 : 1},
        {32997, LONG, 1, depth},
    };
    const uint16_t head[4] = {0x4949, 42, 8, 0}, count = TAGS;
    int ok = put(f, head, sizeof(head)) && put(f, &count, 2);
    for (int i = 0; i < TAGS; i++) {
        ok = ok && put(f, &tags[i], 12);
    }
    ok = ok && put_zeros(f, 4);
    for (uint32_t c = 0; channels > 1 && c < channels; c++) {
        uint32_t at = data + c * plane;
        ok = ok && put(f, &at, 4);
    }
    for (uint32_t c = 0; channels > 1 && c < channels; c++) {
        ok = ok && put(f, &plane, 4);
    }
    return ok && put_elements(f, im);
}

/* A matrix named after the file. */
static int put_mat(FILE *f, const struct image *im, const char *filename) {
    static const uint8_t classes[3][4] = {{8, 10, 12, 14}, {9, 11, 13, 15}, {0, 0, 7, 6}}, types[3][4] = {{1, 3, 5, 12}, {2, 4, 6, 13}, {0, 0, 7, 9}};
    uint32_t class = classes[im->code][size_class(im)], type = types[im->code][size_class(im)];
    uint64_t bytes = (uint64_t)im->elements * (uint64_t)im->bytes;
    if (!type || bytes >> 32) {
        return 0;
    }
    const char *name = strrchr(filename, '/') ? strrchr(filename, '/') + 1 : filename;
    uint32_t length = (uint32_t)(strrchr(name, '.') - name), name_room = (length + 7) & ~7u, room = (uint32_t)((bytes + 7) & ~7ull);
    uint32_t dims = im->dimensions < 2 ? 2 : (uint32_t)im->dimensions, dims_room = (dims + 1) & ~1u;
    char head[128];
    memset(head, ' ', sizeof(head));
    memcpy(head, "MATLAB 5.0 MAT-file, written by halide_py", 41);
    memset(head + 116, 0, 8);
    memcpy(head + 124, "\0\1IM", 4);
    const uint32_t tags[] = {14, 16 + 8 + 4 * dims_room + 8 + name_room + 8 + room, 6, 8, class, 0, 5, 4 * dims};
    const uint32_t name_tag[] = {1, length}, data_tag[] = {type, (uint32_t)bytes};
    return put(f, head, sizeof(head)) && put(f, tags, sizeof(tags)) && put(f, im->extent, 4 * dims) && put_zeros(f, 4 * (dims_room - dims)) &&
           put(f, name_tag, sizeof(name_tag)) && put(f, name, length) && put_zeros(f, name_room - length) && put(f, data_tag, sizeof(data_tag)) &&
           put_elements(f, im) && put_zeros(f, room - (uint32_t)bytes);
}

static int put_tmp(FILE *f, const struct image *im) {
    static const int32_t types[3][4] = {{3, 5, 7, 9}, {2, 4, 6, 8}, {-1, -1, 0, 1}};
    int32_t type = types[im->code][size_class(im)];
    return type >= 0 && put(f, im->extent, sizeof(im->extent)) && put(f, &type, 4) && put_elements(f, im);
}

int hl_debug_to_file(const char *filename, const void *first, int32_t code, int32_t bits, int32_t dimensions, const int64_t *shape) {
    struct image im = {.first = (const uint8_t *)first, .dimensions = dimensions, .extent = {1, 1, 1, 1}, .elements = 1, .code = code, .bits = bits,
                       .bytes = (bits + 7) / 8};
    if (dimensions > MOST_DIMENSIONS || code > halide_type_float) {
        return halide_error_code_debug_to_file_failed;
    }
    for (int d = 0; d < dimensions; d++) {
        im.extent[d] = shape[2 * d] > 0 ? (int32_t)shape[2 * d] : 0;
        im.stride[d] = shape[2 * d + 1];
        im.elements *= im.extent[d];
    }
    FILE *f = fopen(filename, "wb");
    if (!f) {
        return halide_error_code_debug_to_file_failed;
    }
    int ok = ends_with(filename, ".npy")                                    ? put_npy(f, &im)
             : ends_with(filename, ".tif") || ends_with(filename, ".tiff") ? put_tiff(f, &im)
             : ends_with(filename, ".mat")                                  ? put_mat(f, &im, filename)
                                                                            : put_tmp(f, &im);
    return (fclose(f) == 0) & ok ? 0 : halide_error_code_debug_to_file_failed;
}
