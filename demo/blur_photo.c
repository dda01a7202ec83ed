/* Blurs a photograph (binary PPM) with the library that halide_py made ahead of time: blur_photo IN.ppm OUT.ppm. No Python here. */
#include "blur.h"

#include <stdio.h>
#include <stdlib.h>

/* A buffer of interleaved 8-bit RGB, dimensions x, y, channel; `dim` has room for three dimensions. */
static struct halide_buffer_t interleaved(uint8_t *pixels, struct halide_dimension_t *dim, int width, int height) {
    struct halide_buffer_t b = {0};
    const struct halide_dimension_t shape[3] = {{0, width, 3, 0}, {0, height, 3 * width, 0}, {0, 3, 1, 0}};
    for (int d = 0; d < 3; d++) {
        dim[d] = shape[d];
    }
    b.host = pixels;
    b.type.code = 1; /* unsigned integers */
    b.type.bits = 8;
    b.type.lanes = 1;
    b.dimensions = 3;
    b.dim = dim;
    return b;
}

int main(int argc, char **argv) {
    int width, height, top;
    struct halide_dimension_t in_dim[3], out_dim[3];
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!file || fscanf(file, "P6 %d %d %d", &width, &height, &top) != 3 || fgetc(file) == EOF) {
        fprintf(stderr, "usage: blur_photo IN.ppm OUT.ppm\n");
        return 2;
    }
    size_t bytes = 3 * (size_t)width * (size_t)height;
    uint8_t *pixels = malloc(bytes), *blurred = malloc(bytes);
    if (!pixels || !blurred || fread(pixels, 1, bytes, file) != bytes) {
        fprintf(stderr, "blur_photo: %s is cut short\n", argv[1]);
        return 2;
    }
    fclose(file);

    struct halide_buffer_t in = interleaved(pixels, in_dim, width, height), out = interleaved(blurred, out_dim, width, height);
    int code = blur(&in, &out); /* a failure has been reported on stderr */
    file = code ? NULL : fopen(argv[2], "wb");
    if (!file) {
        return 1;
    }
    fprintf(file, "P6\n%d %d\n255\n", width, height);
    fwrite(blurred, 1, bytes, file);
    fclose(file);
    free(pixels);
    free(blurred);
    return 0;
}
