/* The largest error of a function over a range of floats, in units in the last place of the exact value; the exact value is that in double. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define SIMD __attribute__((__simd__("notinbranch")))
#define FUNCTIONS(F) F(exp) F(log) F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) F(asinh) F(acosh) F(atanh) F(erf)

/* The C library's own vector versions; their errors, some units in the last place of a double, do not count here. */
#ifdef __x86_64__
#define DECLARE(name) SIMD double name(double);
FUNCTIONS(DECLARE)
#endif

#define REFERENCE(name)                                               \
    static void exact_##name(const float *a, double *want, int count) { \
        for (int i = 0; i < count; i++) want[i] = name((double)a[i]);  \
    }
FUNCTIONS(REFERENCE)

static const struct {
    const char *name;
    void (*exact)(const float *, double *, int);
} table[] = {
#define ROW(name) {#name, exact_##name},
    FUNCTIONS(ROW)};

/* Infinite where one of both is no number, or infinite, and the other is not the same; 0 has to have its sign. Without jumps, so that
 * compilers make vectors of it. */
static inline double error_of(float got, double want) {
    const float rounded = (float)want;
    uint32_t bits, other;
    memcpy(&bits, &rounded, 4);
    memcpy(&other, &got, 4);
    const uint32_t size = bits & 0x7fffffffu, exponent = size >> 23, most = other & 0x7fffffffu;
    const int same = (bits == other) | ((size > 0x7f800000u) & (most > 0x7f800000u));
    const int number = (size < 0x7f800000u) & (most < 0x7f800000u) & ((size != 0) | (bits >> 31 == other >> 31));
    const uint64_t inverse = (uint64_t)(1023 + 150 - (exponent ? exponent : 1)) << 52; /* of the unit */
    double factor;
    memcpy(&factor, &inverse, 8);
    const double error = fabs((double)got - want) * factor;
    return number ? error : same ? 0 : INFINITY;
}

/* f(args) computes `count` floats from a to out. `range`: the bits of the first float and of the one after the last. */
double largest_error(const char *name, int (*f)(void **), void **args, float *a, const float *out, int count, const uint64_t *range, float *where) {
    static double want[1 << 16];
    double worst = 0;
    void (*exact)(const float *, double *, int) = 0;
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name)) exact = table[i].exact;
    if (!exact || count > 1 << 16) return NAN;
    for (uint64_t first = range[0]; first < range[1]; first += (uint64_t)count) {
        for (int i = 0; i < count; i++) {
            uint32_t bits = (uint32_t)(first + (uint64_t)i);
            memcpy(a + i, &bits, 4);
        }
        if (f(args)) return NAN;
        exact(a, want, count);
        int64_t most = 0; /* the bits of an error, which are in its order */
        for (int i = 0; i < count; i++) {
            const double e = error_of(out[i], want[i]);
            int64_t bits;
            memcpy(&bits, &e, 8);
            most = bits > most ? bits : most;
        }
        double block;
        memcpy(&block, &most, 8);
        for (int i = 0; i < count && block > worst; i++)
            if (error_of(out[i], want[i]) == block) worst = block, *where = a[i];
    }
    return worst;
}
