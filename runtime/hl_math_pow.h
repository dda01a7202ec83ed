/* hl_math_pow.h: powers, hypot and erf; part of hl_math.h, which says what the arguments of the macros are. */
#ifndef HL_MATH_POW_H
#define HL_MATH_POW_H

/* ---- hypot: scaled by a power of 2 where the sum of squares would overflow or be lost */

#define HL_HYPOT_LEAST_BITS_32 0x0d800000 /* 2^-100: of smaller sums of squares much may be lost */
#define HL_HYPOT_LEAST_BITS_64 0x07b0000000000000ll
#define HL_HYPOT_LARGE_32 0x1p+62f
#define HL_HYPOT_LARGE_64 0x1p+500
#define HL_HYPOT_SMALL_32 0x1p-40f
#define HL_HYPOT_SMALL_64 0x1p-440
#define HL_HYPOT_UP_32 0x1p+86f
#define HL_HYPOT_UP_64 0x1p+600
#define HL_HYPOT_DOWN_32 0x1p-86f
#define HL_HYPOT_DOWN_64 0x1p-600
#define HL_MATH_HYPOT(NAME, F, I, U, T)                                                                               \
    HL_MATH_SQRT(NAME##_sqrt, F, I, U, T)                                                                             \
    HL_MATH_RARELY F NAME##_scaled(F x, F y) {                                                                        \
        const F a = HL_ABS(F, I, T, x), b = HL_ABS(F, I, T, y);                                                       \
        const F down = HL_SAME(F, HL_HYPOT_DOWN_##T), up = HL_SAME(F, HL_HYPOT_UP_##T), one = HL_SAME(F, HL_K(T, 1)); \
        const F infinity = HL_SAME(F, HL_INFINITY_##T);                                                               \
        const I steep = b > a;                                                                                        \
        const F most = HL_SELECT(F, steep, b, a);                                                                     \
        const I large = most > HL_HYPOT_LARGE_##T, small = most < HL_HYPOT_SMALL_##T;                                 \
        const F first = HL_SELECT(F, large, down, one), scale = HL_SELECT(F, small, up, first);                       \
        const F second = HL_SELECT(F, large, up, one), back = HL_SELECT(F, small, down, second);                      \
        const F u = a * scale, v = b * scale, r = NAME##_sqrt(u * u + v * v) * back;                                  \
        const I m = (a == infinity) | (b == infinity);                                                                \
        return HL_SELECT(F, m, infinity, r);                                                                          \
    }                                                                                                                 \
    HL_MATH_FUNCTION F NAME(F x, F y) {                                                                               \
        const F sum = x * x + y * y, usual = NAME##_sqrt(sum);                                                        \
        const U above = (U)sum - HL_HYPOT_LEAST_BITS_##T;                                                             \
        I rare = (I)(above >= (U){} + (HL_INFINITY_BITS_##T - HL_HYPOT_LEAST_BITS_##T));                              \
        if (HL_ANY_FROM(T, above, (unsigned HL_INT_##T)(HL_INFINITY_BITS_##T - HL_HYPOT_LEAST_BITS_##T), rare)) {     \
            rare &= (((I)x | (I)y) & ~HL_SIGN_##T) != 0; /* zeros are common */                                       \
            if (HL_ANY(rare)) {                                                                                       \
                const F scaled = NAME##_scaled(x, y);                                                                 \
                return HL_SELECT(F, rare, scaled, usual);                                                             \
            }                                                                                                         \
        }                                                                                                             \
        return usual;                                                                                                 \
    }

/* ---- erf of floats: far from 0 as 1 - 2^-g(|x|) */

#define HL_MATH_ERF(NAME, F, I, U, T)                                                                                          \
    HL_MATH_FUNCTION F NAME(F x) {                                                                                             \
        const F a = HL_ABS(F, I, T, x), z = x * x, zz = z * z, four = HL_SAME(F, 4.0f), near = x * HL_POLY_ERF_NEAR(z, zz) + x; \
        const I m = a > four, large = a > 0.875f;                                                                              \
        const F b = HL_SELECT(F, m, four, a), bb = b * b, g = HL_POLY_ERF_FAR(b, bb), shifted = HL_ROUND_32 - g;               \
        const F r = (HL_ROUND_32 - shifted) - g, rr = r * r, p = r * HL_POLY_ERF_EXP2(r, rr) + 1.0f;                           \
        const F far = 1.0f - (F)((I)p + ((I)shifted << HL_MANTISSA_32)), signed_far = HL_WITH_SIGN(F, I, T, far, x);           \
        return HL_SELECT(F, large, signed_far, near);                                                                          \
    }

/* ---- powers */

/* What C says about zeros, infinities, NaN and negative bases; `v` is |x|^y where nothing of this applies. */
#define HL_POW_SPECIALS(NAME, F, I, T)                                                                                        \
    HL_MATH_RARELY F NAME(F x, F y, F v) {                                                                                    \
        const F ax = HL_ABS(F, I, T, x), ay = HL_ABS(F, I, T, y), one = HL_SAME(F, HL_K(T, 1)), zero = {};                    \
        const F infinity = HL_SAME(F, HL_INFINITY_##T), bad = HL_SAME(F, HL_NAN_##T);                                         \
        const I even = ay >= (HL_FLOAT_##T)(2ll << HL_MANTISSA_##T); /* or not finite */                                      \
        const F safe = HL_SELECT(F, even, zero, y);                                                                           \
        const I number = __builtin_convertvector(safe, I);                                                                    \
        const I whole = (__builtin_convertvector(number, F) == safe) & (ay <= infinity), odd = whole & ~even & -(number & 1); \
        const I grows = ((ax > one) & (y > zero)) | ((ax < one) & (y < zero));                                                \
        I m = (ax == infinity) | (ax == zero) | (ay == infinity);                                                             \
        const F extreme = HL_SELECT(F, grows, infinity, zero);                                                                \
        v = HL_SELECT(F, m, extreme, v);                                                                                      \
        m = (x < zero) & ~whole & (ax < infinity) & (ay < infinity);                                                          \
        v = HL_SELECT(F, m, bad, v);                                                                                          \
        v = (F)((I)v ^ ((I)x & odd & HL_SIGN_##T));                                                                           \
        m = ~(x == x) | ~(y == y);                                                                                            \
        v = HL_SELECT(F, m, bad, v);                                                                                          \
        m = (x == one) | (y == zero) | ((ax == one) & (ay == infinity));                                                      \
        return HL_SELECT(F, m, one, v);                                                                                       \
    }
#define HL_POW_IS_SPECIAL(F, I, T, x, y)                                                                           \
    (((I)(x) < HL_SMALLEST_BITS_##T) | ((I)(x) >= HL_INFINITY_BITS_##T) | ~(HL_ABS(F, I, T, y) < HL_INFINITY_##T))

/* Of floats: 2^(y log2(x)). The logarithm and the product are computed in doubles, of which as many as floats make D; what is left of the
 * exponent beside an integer in floats again. HL_POW_PARTS is for as many floats as doubles fit a register, HL_MATH_POW_32 puts together
 * what EXPONENTS and ANY give for all: the function itself, or one that takes halves apart. */
#define HL_POW_SPLIT(F, I, x) /* 2^exponent m, sqrt(1/2) <= m < sqrt(2) */                                                \
    const I exponent = ((I)x - HL_ROOT_HALF_BITS_32) >> HL_MANTISSA_32;                                                  \
    const F m = (F)((I)x - (exponent << HL_MANTISSA_32));
#define HL_POW_PARTS(NAME, F, I, D, L)                                                                                   \
    HL_POW_SPECIALS(NAME##_specials, F, I, 32)                                                                           \
    HL_MATH_FUNCTION D NAME##_log2(F m, I exponent) {                                                                    \
        HL_WIDEN(wide, D, m)                                                                                             \
        HL_WIDEN_INTEGERS(k, D, exponent)                                                                                \
        const D f = wide - 1.0, s = f / (wide + 1.0), z = s * s, zz = z * z;                                             \
        return s * HL_POLY_POW_LOG2(z, zz) + k;                                                                          \
    }                                                                                                                    \
    HL_MATH_FUNCTION F NAME##_exponents(F m, I exponent, F y, F *whole) {                                                \
        HL_WIDEN(wide, D, y)                                                                                             \
        const D t = wide * NAME##_log2(m, exponent), shifted = t + HL_ROUND_64, n = shifted - HL_ROUND_64;               \
        *whole = __builtin_convertvector(n, F);                                                                          \
        return __builtin_convertvector(t - n, F);                                                                        \
    }                                                                                                                    \
    HL_MATH_RARELY F NAME##_any(F x, F y) {                                                                              \
        const F ax = HL_ABS(F, I, 32, x), raised = ax * 0x1p+24f;                                                        \
        const I tiny = (I)ax < HL_SMALLEST_BITS_32, scale = tiny & 24;                                                   \
        const F base = HL_SELECT(F, tiny, raised, ax);                                                                   \
        HL_POW_SPLIT(F, I, base)                                                                                         \
        HL_WIDEN(wide, D, y)                                                                                             \
        D t = wide * NAME##_log2(m, exponent - scale);                                                                   \
        const D low = HL_SAME(D, -200.0), high = HL_SAME(D, 200.0);                                                      \
        L b = t < low;                                                                                                   \
        t = HL_SELECT(D, b, low, t);                                                                                     \
        b = t > high;                                                                                                    \
        t = HL_SELECT(D, b, high, t);                                                                                    \
        const D shifted = t + HL_ROUND_64, r = t - (shifted - HL_ROUND_64), e = r * HL_POLY_EXP2_64(r) + 1.0;            \
        return NAME##_specials(x, y, __builtin_convertvector((D)((L)e + ((L)shifted << HL_MANTISSA_64)), F));            \
    }
#define HL_MATH_POW_32(NAME, F, I, U, EXPONENTS, ANY)                                                                    \
    HL_MATH_FUNCTION F NAME(F x, F y) {                                                                                  \
        if (!HL_FUSES) return ANY(x, y); /* rounding the products, too, powers that are floats would not be exact */     \
        HL_POW_SPLIT(F, I, x)                                                                                            \
        F n;                                                                                                             \
        const F r = EXPONENTS(m, exponent, y, &n), rr = r * r, line = r * 0x1.62e43p-1f + 1.0f;                          \
        const F rest = r * 0x1.62e43p-1f + (1.0f - line), p = line + (rest + HL_POLY_POW_EXP2(r, rr));                   \
        const F v = (F)((I)p + ((I)(n + HL_ROUND_32) << HL_MANTISSA_32));                                                \
        /* At most so much is |y log2(x)|; below 125.5 all is normal. Known early, as waiting for n is not free. */      \
        const F bound = HL_ABS(F, I, 32, y) * (HL_ABS(F, I, 32, __builtin_convertvector(exponent, F)) + 0.5f);           \
        const U above = (U)x - HL_SMALLEST_BITS_32, size = (U)bound + (HL_NORMAL_BITS_32 - 0x42fb0000u);                 \
        const I less = (I)(above < size);                                                                                \
        const U most = HL_SELECT(U, less, size, above);                                                                  \
        const I rare = (I)(most >= HL_NORMAL_BITS_32);                                                                   \
        if (HL_ANY_FROM(32, most, HL_NORMAL_BITS_32, rare)) {                                                            \
            const F w = ANY(x, y);                                                                                       \
            return HL_SELECT(F, rare, w, v);                                                                             \
        }                                                                                                                \
        return v;                                                                                                        \
    }

/* Of doubles: log2 and the product as sums of two numbers, of which the first has few enough bits to multiply without rounding. */
#define HL_HIGH_BITS(F, I, x) ((F)((I)(x) & -4294967296ll))
#define HL_MATH_POW_64(NAME, F, I, U, T)                                                                                                  \
    HL_POW_SPECIALS(NAME##_specials, F, I, T)                                                                                             \
    HL_MATH_FUNCTION F NAME##_positive(F x, F y, F scale) {                                                                               \
        HL_LOG_PARTS(F, I, U, T, x)                                                                                                       \
        const F two = f + 2.0, two_high = HL_HIGH_BITS(F, I, two), two_low = f - (two_high - 2.0), inverse = 1.0 / two;                   \
        const F s_high = HL_HIGH_BITS(F, I, s), s_low = inverse * ((f - s_high * two_high) - s_high * two_low);                           \
        const F square = s_high * s_high, r = z * z * HL_POLY_POW(z) + s_low * (s_high + s); /* log = 2/3 s (3 + s^2 + r) */              \
        const F sum = square + 3.0 + r, sum_high = HL_HIGH_BITS(F, I, sum), sum_low = r - ((sum_high - 3.0) - square);                    \
        const F u = s_high * sum_high, v = s_low * sum_high + sum_low * s;                                                                \
        const F log_high = HL_HIGH_BITS(F, I, u + v), log_low = v - (log_high - u), e = k - scale;                                        \
        const F product = 0x1.ec709ep-1 * log_high, rest = -0x1.e2fe0145b01f5p-28 * log_high + log_low * 0x1.ec709dc3a03fdp-1;            \
        const F log2_high = HL_HIGH_BITS(F, I, (product + rest) + e), log2_low = rest - ((log2_high - e) - product);                      \
        const F y_high = HL_HIGH_BITS(F, I, y);                                                                                           \
        F low = (y - y_high) * log2_high + y * log2_low, high = y_high * log2_high;                                                       \
        const F zero = {}, least = HL_SAME(F, -1100.0), most = HL_SAME(F, 1100.0), whole = high + low;                                    \
        const I under = whole < least, over = whole > most;                                                                               \
        low = HL_SELECT(F, under, zero, low);                                                                                             \
        low = HL_SELECT(F, over, zero, low);                                                                                              \
        high = HL_SELECT(F, under, least, high);                                                                                          \
        high = HL_SELECT(F, over, most, high);                                                                                            \
        const F shifted = (high + low) + HL_ROUND_64, left = high - (shifted - HL_ROUND_64), t = HL_HIGH_BITS(F, I, left + low);          \
        const F a = t * 0x1.62e43p-1, b = (low - (t - left)) * 0x1.62e42fefa39efp-1 + t * -0x1.05c610ca86c39p-29;                         \
        const F c = a + b, d = b - (c - a), p = c * c * HL_POLY_EXP_64(c) + c;                                                            \
        const I n = (I)shifted - HL_ROUND_BITS_64, n_half = (I)((U)(n + 4096) >> 1) - 2048;                                               \
        return (p + (d + d * p) + 1.0) * (F)((n_half + HL_BIAS_64) << HL_MANTISSA_64) * (F)((n - n_half + HL_BIAS_64) << HL_MANTISSA_64); \
    }                                                                                                                                     \
    HL_MATH_RARELY F NAME##_any(F x, F y) {                                                                                               \
        const F ax = HL_ABS(F, I, T, x), zero = {}, raised = ax * 0x1p+54, by = HL_SAME(F, 54.0);                                         \
        const I tiny = (I)ax < HL_SMALLEST_BITS_64;                                                                                       \
        const F base = HL_SELECT(F, tiny, raised, ax), scale = HL_SELECT(F, tiny, by, zero);                                              \
        return NAME##_specials(x, y, NAME##_positive(base, y, scale));                                                                    \
    }                                                                                                                                     \
    HL_MATH_FUNCTION F NAME(F x, F y) {                                                                                                   \
        const I special = HL_POW_IS_SPECIAL(F, I, T, x, y);                                                                               \
        if (HL_ANY(special)) return NAME##_any(x, y);                                                                                     \
        return NAME##_positive(x, y, (F){});                                                                                              \
    }

#endif /* HL_MATH_POW_H */
