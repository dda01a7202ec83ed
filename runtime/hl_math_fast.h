/* hl_math_fast.h: the functions fast_* of floats; part of hl_math.h, which says what the arguments of the macros are.
 * Exact to 1e-5 of the result (fast_log: or 1e-5 near 1) for arguments that are normal numbers and give such; nothing is said of others.
 * Sources: as hl_math.h, with shorter polynomials; the inverse square root starts from a shift of the bits (Lomont 2003). */
#ifndef HL_MATH_FAST_H
#define HL_MATH_FAST_H

#define HL_MATH_FAST_EXP(NAME, F, I, U, T)                                                                                  \
    HL_MATH_FUNCTION F NAME(F x) {                                                                                          \
        const F low = HL_SAME(F, -87.0f), high = HL_SAME(F, 88.0f);                                                         \
        const I under = x < low, over = x > high;                                                                           \
        x = HL_SELECT(F, under, low, x);                                                                                    \
        x = HL_SELECT(F, over, high, x);                                                                                    \
        const F shifted = x * HL_LOG2E_32 + HL_ROUND_32, r = x - (shifted - HL_ROUND_32) * 0x1.62e43p-1f;                   \
        const F p = r * r * (((0x1.126bcep-7f * r + 0x1.573b24p-5f) * r + 0x1.55543cp-3f) * r + 0x1.fffdc4p-2f) + r + 1.0f; \
        return (F)((I)p + ((I)shifted << 23));                                                                              \
    }

#define HL_MATH_FAST_LOG(NAME, F, I, U, T)                                                                                           \
    HL_MATH_FUNCTION F NAME(F x) {                                                                                                   \
        const U biased = (U)((I)x + (HL_ONE_BITS_32 - HL_ROOT_HALF_BITS_32)) >> 23;                                                  \
        const F k = (F)((I)biased + HL_ROUND_BITS_32) - (HL_ROUND_32 + 127.0f);                                                      \
        const F f = (F)((I)x - (I)(biased << 23) + HL_ONE_BITS_32) - 1.0f;                                                           \
        return f * ((((((0x1.f428p-4f * f - 0x1.80ab9cp-3f) * f + 0x1.a2e9fep-3f) * f - 0x1.fde2e6p-3f) * f + 0x1.5527f8p-2f) * f - \
            0x1.0001d6p-1f) * f + 0x1.00000ep+0f) + k * 0x1.62e43p-1f;                                                               \
    }

/* x = n pi + r, |r| <= pi / 2, and the sine of that; for the cosine n is an integer and 1/2. Exact to 1e-5 up to |x| = 100; the error grows
 * with x. */
#define HL_FAST_WAVE(NAME, F, I, PLUS, MINUS)                                                                       \
    HL_MATH_FUNCTION F NAME(F x) {                                                                                  \
        const F shifted = x * 0x1.45f306p-2f PLUS + HL_ROUND_32, n = shifted - HL_ROUND_32 MINUS;                     \
        const F r = (x - n * 0x1.922p+1f) - n * -0x1.2aeef4p-17f, z = r * r;                                        \
        const F y = r * z * ((-0x1.858108p-13f * z + 0x1.107a5p-7f) * z - 0x1.555186p-3f) + r;                      \
        return (F)((I)y ^ ((I)shifted << 31));                                                                      \
    }
#define HL_MATH_FAST_SIN(NAME, F, I, U, T) HL_FAST_WAVE(NAME, F, I, , )
#define HL_MATH_FAST_COS(NAME, F, I, U, T) HL_FAST_WAVE(NAME, F, I, +0.5f, -0.5f)

/* By Newton's method; NaN at 0 where the machine has an instruction to start from. */
#define HL_MATH_FAST_INVERSE(NAME, F, I, U, T)                          \
    HL_MATH_FUNCTION F NAME(F x) {                                      \
        F y = x;                                                        \
        return hl_inverse_32(&y, sizeof y) ? y * (2.0f - x * y) : 1.0f / x; \
    }

/* By Newton's method, once or twice; finite at 0. */
#define HL_MATH_FAST_INVERSE_SQRT(NAME, F, I, U, T)         \
    HL_MATH_FUNCTION F NAME(F x) {                          \
        const F half = 0.5f * x;                                \
        const I bits = (I)x, least = (I){} + 0x00800000; /* those of 2^-126 */ \
        const I tiny = bits < least;                            \
        F y = (F)HL_SELECT(I, tiny, least, bits);               \
        if (!hl_inverse_sqrt_32(&y, sizeof y)) {            \
            y = (F)(0x5f375a86 - (I)((U)y >> 1));           \
            y = y * (1.5f - half * y * y);                  \
        }                                                   \
        return y * (1.5f - half * y * y);                   \
    }

/* As 2^(y log2(x)); in all 1e-5 and 2e-7 |y log2(x)| of the result. 0 for x = 0. */
#define HL_MATH_FAST_POW(NAME, F, I, U, T)                                                                                        \
    HL_MATH_FUNCTION F NAME(F x, F y) {                                                                                           \
        HL_LOG_PARTS(F, I, U, T, x)                                                                                               \
        const F low = HL_SAME(F, -126.0f), high = HL_SAME(F, 127.5f), zero = {};                                                  \
        F t = y * (s * HL_POLY_LOG2_32(z) + k);                \
        const I under = t < low, over = t > high, none = x == zero;                                                               \
        t = HL_SELECT(F, under, low, t);                                                                                          \
        t = HL_SELECT(F, over, high, t);                                                                                          \
        const F shifted = t + HL_ROUND_32, r = t - (shifted - HL_ROUND_32), p = r * HL_POLY_EXP2_32(r) + 1.0f;                    \
        const F v = (F)((I)p + ((I)shifted << HL_MANTISSA_32));                                                                   \
        return HL_SELECT(F, none, zero, v);                                                                                       \
    }

#endif /* HL_MATH_FAST_H */
