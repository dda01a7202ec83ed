/* hl_math_trig.h: circular functions and their inverses; part of hl_math.h, which says what the arguments of the macros are. */
#ifndef HL_MATH_TRIG_H
#define HL_MATH_TRIG_H

/* ---- circular functions: x = n pi / 2 + r, |r| <= pi / 4; the quadrant n says which polynomial and which sign */

/* r = x - n pi / 2; what rounding drops from two of the differences goes into the last. */
#define HL_MINUS_HALF_PIS(F, x, ...) HL_MINUS_PARTS(F, x, __VA_ARGS__)
#define HL_MINUS_PARTS(F, x, A, B, C, D)                                                                      \
    const F u = x - n * A, v = u - n * B, v2 = v - n * C;                                                     \
    const F r = v2 - ((n * B - (u - v)) + ((n * C - (v - v2)) + n * D)); /* a difference, so that -0 stays */

#define HL_REDUCE_TRIG(F, I, T, x)                                                                  \
    const F shifted = x * HL_K(T, 0x1.45f306dc9c883p-1) + HL_ROUND_##T, n = shifted - HL_ROUND_##T; \
    HL_MINUS_HALF_PIS(F, x, HL_HALF_PI_PARTS_##T)                                                   \
    const F a = HL_ABS(F, I, T, r), z = r * r;                                                      \
    const F s = z * HL_POLY_SIN_##T(z) * a + a, half = HL_K(T, 0.5) * z, w = HL_K(T, 1) - half;     \
    const F c = ((HL_K(T, 1) - w) - half + z * z * HL_POLY_COS_##T(z)) + w;

#define HL_TRIG_FAR(F, I, T, x, y, LIBRARY)                               \
    const I far = ~(HL_ABS(F, I, T, x) <= HL_TRIG_NEAR_##T);              \
    if (HL_ANY(far)) {                                                    \
        for (unsigned i = 0; i < sizeof(F) / sizeof(HL_FLOAT_##T); i++) { \
            if (far[i]) y[i] = LIBRARY(x[i]);                             \
        }                                                                 \
    }

#define HL_SINCOS(NAME, F, I, U, T, QUADRANT, LIBRARY)                                       \
    HL_MATH_FUNCTION F NAME(F x) {                                                           \
        HL_REDUCE_TRIG(F, I, T, x)                                                           \
        const I q = (I)shifted + (QUADRANT), odd = (q & 1) != 0;                             \
        F y = HL_SELECT(F, odd, c, s);                                                       \
        y = (F)((I)y ^ ((I)((U)(q & 2) << (HL_TOP_##T - 1))) ^ ((I)r & ~odd & HL_SIGN_##T)); \
        HL_TRIG_FAR(F, I, T, x, y, LIBRARY)                                                  \
        return y;                                                                            \
    }
#define HL_LIBRARY_32(name) __builtin_##name##f
#define HL_LIBRARY_64(name) __builtin_##name
#define HL_MATH_SIN(NAME, F, I, U, T) HL_SINCOS(NAME, F, I, U, T, 0, HL_LIBRARY_##T(sin))
#define HL_MATH_COS(NAME, F, I, U, T) HL_SINCOS(NAME, F, I, U, T, 1, HL_LIBRARY_##T(cos))
#define HL_MATH_TAN(NAME, F, I, U, T)                                            \
    HL_MATH_FUNCTION F NAME(F x) {                                               \
        HL_REDUCE_TRIG(F, I, T, x)                                               \
        const I odd = ((I)shifted & 1) != 0;                                     \
        const F over = HL_SELECT(F, odd, c, s), under = HL_SELECT(F, odd, s, c); \
        F y = (F)((I)(over / under) ^ (((I)r ^ odd) & HL_SIGN_##T));             \
        HL_TRIG_FAR(F, I, T, x, y, HL_LIBRARY_##T(tan))                          \
        return y;                                                                \
    }

/* ---- inverse circular functions */

/* atan(low / high), 0 <= low <= high: above tan(pi / 8) it is pi / 4 + atan((low - high) / (low + high)). */
#define HL_ATAN_QUOTIENT(NAME, F, I, U, T)                                                                                      \
    HL_MATH_FUNCTION F NAME(F low, F high) {                                                                                    \
        const I m = low > HL_K(T, 0x1.a827999fcef32p-2) * high;                                                                 \
        const F minus = low - high, plus = low + high, over = HL_SELECT(F, m, minus, low), under = HL_SELECT(F, m, plus, high); \
        const F t = over / under, z = t * t, y = t * (z * HL_POLY_ATAN_##T(z)), near = y + t;                                   \
        const F far = ((y + HL_K(T, 0.5) * HL_HALF_PI_REST_##T) + t) + HL_K(T, 0.5) * HL_HALF_PI_##T;                           \
        return HL_SELECT(F, m, far, near);                                                                                      \
    }
#define HL_MATH_ATAN(NAME, F, I, U, T)                                                                                     \
    HL_ATAN_QUOTIENT(NAME##_quotient, F, I, U, T)                                                                          \
    HL_MATH_FUNCTION F NAME(F x) {                                                                                         \
        const F a = HL_ABS(F, I, T, x), one = HL_SAME(F, HL_K(T, 1));                                                      \
        const I large = a > one;                                                                                           \
        const F low = HL_SELECT(F, large, one, a), high = HL_SELECT(F, large, a, one), small = NAME##_quotient(low, high); \
        const F rest = HL_HALF_PI_##T - (small - HL_HALF_PI_REST_##T), y = HL_SELECT(F, large, rest, small);               \
        return HL_WITH_SIGN(F, I, T, y, x);                                                                                \
    }
#define HL_MATH_ATAN2(NAME, F, I, U, T)                                                                                \
    HL_ATAN_QUOTIENT(NAME##_quotient, F, I, U, T)                                                                      \
    HL_MATH_FUNCTION F NAME(F y, F x) {                                                                                \
        const F ax = HL_ABS(F, I, T, x), ay = HL_ABS(F, I, T, y);                                                      \
        const I steep = ay > ax;                                                                                       \
        F low = HL_SELECT(F, steep, ax, ay), high = HL_SELECT(F, steep, ay, ax);                                       \
        const I tiny = (I)high < HL_SMALLEST_BITS_##T;                                                                 \
        const I odd = tiny | ((I)high >= HL_INFINITY_BITS_##T - (2ll << HL_MANTISSA_##T));                             \
        if (HL_ANY(odd)) { /* both 0 or subnormal, both infinite, or a sum that overflows */                           \
            const F raised = high * (HL_FLOAT_##T)(1ll << HL_TINY_SCALE_##T);                                          \
            const F raised_low = low * (HL_FLOAT_##T)(1ll << HL_TINY_SCALE_##T);                                       \
            const F one = HL_SAME(F, HL_K(T, 1)), quarter = high * HL_K(T, 0.25), quarter_low = low * HL_K(T, 0.25);   \
            const I large = (I)high >= HL_INFINITY_BITS_##T - (2ll << HL_MANTISSA_##T), both = low == HL_INFINITY_##T; \
            high = HL_SELECT(F, large, quarter, high);                                                                 \
            low = HL_SELECT(F, large, quarter_low, low);                                                               \
            high = HL_SELECT(F, tiny, raised, high);                                                                   \
            low = HL_SELECT(F, tiny, raised_low, low);                                                                 \
            const I none = (I)high == 0;                                                                               \
            high = HL_SELECT(F, none, one, high);                                                                      \
            high = HL_SELECT(F, both, one, high);                                                                      \
            low = HL_SELECT(F, both, one, low);                                                                        \
        }                                                                                                              \
        const F small = NAME##_quotient(low, high), rest = HL_HALF_PI_##T - (small - HL_HALF_PI_REST_##T);             \
        const F first = HL_SELECT(F, steep, rest, small);                                                              \
        const F other = HL_K(T, 2) * HL_HALF_PI_##T - (first - HL_K(T, 2) * HL_HALF_PI_REST_##T);                      \
        const I left = (I)x < 0, bad = ~(x == x) | ~(y == y);                                                          \
        const F turned = HL_SELECT(F, left, other, first), sum = x + y, out = HL_WITH_SIGN(F, I, T, turned, y);        \
        return HL_SELECT(F, bad, sum, out);                                                                            \
    }

/* asin(t) for t = a up to 1/2; above, for t = sqrt((1 - a) / 2), whose arc sine is (pi / 2 - asin(a)) / 2. */
#define HL_REDUCE_ASIN(NAME, F, I, T, x)                                                                     \
    const F a = HL_ABS(F, I, T, x);                                                                          \
    const I large = a > HL_K(T, 0.5);                                                                        \
    const F other = HL_K(T, 0.5) - HL_K(T, 0.5) * a, square = a * a, z = HL_SELECT(F, large, other, square); \
    const F root = NAME##_sqrt(z), t = HL_SELECT(F, large, root, a), p = t * (z * HL_POLY_ASIN_##T(z)) + t;

#define HL_MATH_ASIN(NAME, F, I, U, T)                                                                     \
    HL_MATH_SQRT(NAME##_sqrt, F, I, U, T)                                                                  \
    HL_MATH_FUNCTION F NAME(F x) {                                                                         \
        HL_REDUCE_ASIN(NAME, F, I, T, x)                                                                   \
        const F rest = HL_HALF_PI_##T - ((p + p) - HL_HALF_PI_REST_##T), y = HL_SELECT(F, large, rest, p); \
        return HL_WITH_SIGN(F, I, T, y, x);                                                                \
    }
#define HL_MATH_ACOS(NAME, F, I, U, T)                                                                          \
    HL_MATH_SQRT(NAME##_sqrt, F, I, U, T)                                                                       \
    HL_MATH_FUNCTION F NAME(F x) {                                                                              \
        HL_REDUCE_ASIN(NAME, F, I, T, x)                                                                        \
        const F sine = HL_WITH_SIGN(F, I, T, p, x), near = HL_HALF_PI_##T - (sine - HL_HALF_PI_REST_##T);       \
        const F twice = p + p, back = HL_K(T, 2) * HL_HALF_PI_##T - (twice - HL_K(T, 2) * HL_HALF_PI_REST_##T); \
        const I left = x < (F){};                                                                               \
        const F far = HL_SELECT(F, left, back, twice);                                                          \
        return HL_SELECT(F, large, far, near);                                                                  \
    }

#endif /* HL_MATH_TRIG_H */
