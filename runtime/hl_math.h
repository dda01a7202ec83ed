/* hl_math.h: exp, log, sin, cos, tanh and pow of float vectors, as macros that define a function for a vector type.
 *
 * HL_MATH_EXP(name, F, I) defines `static F name(F)`; F is a GNU vector of floats, I one of int32_t with as many lanes. A vector of one
 * lane serves scalars, so that scalar and vectorized code give the same numbers. Only GNU C operators: no intrinsics, no libraries
 * (sin and cos of arguments beyond 6000 call the C library, lane by lane).
 *
 * Errors against the exact value, in units in the last place, by test: exp 1, log 1, sin and cos 2 (of arguments up to 6000), tanh 2,
 * pow 0.6. Special values are those of C: exp(inf) = inf, log(-1) = NaN, log(0) = -inf, pow(x, 0) = 1, subnormals in and out.
 *
 * Sources: Cody and Waite, Software Manual for the Elementary Functions (argument reduction); Moshier, Cephes (polynomials). Needs IEEE arithmetic: no -ffast-math.
 */
#ifndef HL_MATH_H
#define HL_MATH_H

#include "hl_vector.h"

#define HL_MATH_FUNCTION static inline
#define HL_ROUND_MAGIC 12582912.0f /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */

/* exp(x) = 2^n exp(r), |r| <= ln(2) / 2; 2^n in two factors, so that results go through subnormals to 0 and overflow to inf. */
#define HL_MATH_EXP(NAME, F, I)                                                                        \
    HL_MATH_FUNCTION F NAME(F x) {                                                                     \
        const F low = -104.0f - (F){}, high = 89.0f - (F){};                                           \
        I m = x < low;                                                                                 \
        x = HL_SELECT(F, m, low, x);                                                                   \
        m = x > high;                                                                                  \
        x = HL_SELECT(F, m, high, x);                                                                  \
        const F shifted = x * 0x1.715476p+0f + HL_ROUND_MAGIC, n = shifted - HL_ROUND_MAGIC;           \
        const F r = (x - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f;                                      \
        F p = 1.9875691500e-4f * r + 1.3981999507e-3f;                                                 \
        p = p * r + 8.3334519073e-3f;                                                                  \
        p = p * r + 4.1665795894e-2f;                                                                  \
        p = p * r + 1.6666665459e-1f;                                                                  \
        p = p * r + 5.0000001201e-1f;                                                                  \
        p = p * (r * r) + r + 1.0f;                                                                    \
        const I k = (I)shifted - 0x4b400000, half = k >> 1;                                            \
        return p * (F)((half + 127) << 23) * (F)((k - half + 127) << 23);                              \
    }

/* log(2^e m) = e log(2) + log(m), m in [sqrt(1/2), sqrt(2)). */
#define HL_MATH_LOG(NAME, F, I)                                                                        \
    HL_MATH_FUNCTION F NAME(F x) {                                                                     \
        const I tiny = x < 0x1p-126f;                                                                  \
        const F raised = x * 0x1p+24f, scaled = HL_SELECT(F, tiny, raised, x);                         \
        const I e = ((I)scaled - 0x3f3504f3) >> 23;                                                    \
        const F f = (F)((I)scaled - (e << 23)) - 1.0f, z = f * f;                                      \
        const F k = __builtin_convertvector(e + (tiny & -24), F);                                      \
        F p = 7.0376836292e-2f * f - 1.1514610310e-1f;                                                 \
        p = p * f + 1.1676998740e-1f;                                                                  \
        p = p * f - 1.2420140846e-1f;                                                                  \
        p = p * f + 1.4249322787e-1f;                                                                  \
        p = p * f - 1.6668057665e-1f;                                                                  \
        p = p * f + 2.0000714765e-1f;                                                                  \
        p = p * f - 2.4999993993e-1f;                                                                  \
        p = p * f + 3.3333331174e-1f;                                                                  \
        p = p * f * z + k * -2.12194440e-4f;                                                           \
        F r = (p - 0.5f * z + f) + k * 0.693359375f;                                                   \
        const F infinity = __builtin_inff() - (F){}, bad = __builtin_nanf("") - (F){}, minus = -infinity; \
        I m = x == (F){};                                                                              \
        r = HL_SELECT(F, m, minus, r);                                                                 \
        m = x < (F){};                                                                                 \
        r = HL_SELECT(F, m, bad, r);                                                                   \
        m = ~(x < infinity) & ~(x < (F){});                                                            \
        return HL_SELECT(F, m, x, r);                                                                  \
    }

/* x = n pi / 2 + r; the quadrant n says which polynomial and which sign. */
#define HL_MATH_SINCOS(NAME, F, I, QUADRANT, LIBRARY)                                                  \
    HL_MATH_FUNCTION F NAME(F x) {                                                                     \
        const F shifted = x * 0x1.45f306p-1f + HL_ROUND_MAGIC, n = shifted - HL_ROUND_MAGIC;           \
        const I q = (I)shifted + (QUADRANT);                                                           \
        const F r = (((x - n * 0x1.92p+0f) - n * 0x1.fb4p-12f) - n * 0x1.444p-24f) - n * 0x1.68c234p-39f; \
        const F a = (F)((I)r & 0x7fffffff), z = r * r;                                                 \
        F s = -1.9515295891e-4f * z + 8.3321608736e-3f;                                                \
        s = (s * z - 1.6666654611e-1f) * z * a + a;                                                    \
        F c = 2.443315711809948e-5f * z - 1.388731625493765e-3f;                                       \
        c = (c * z + 4.166664568298827e-2f) * (z * z) - 0.5f * z + 1.0f;                               \
        const I odd = (q & 1) != 0;                                                                    \
        F y = HL_SELECT(F, odd, c, s);                                                                 \
        y = (F)((I)y ^ ((q & 2) << 30) ^ ((I)r & ~odd & (-2147483647 - 1)));                           \
        const I far = ((I)x & 0x7fffffff) > 0x45bb8000; /* 6000 */                                     \
        if (HL_UNLIKELY(hl_any(&far, sizeof far))) {                                                   \
            for (unsigned i = 0; i < sizeof(F) / 4; i++) {                                             \
                if (far[i]) y[i] = LIBRARY(x[i]);                                                      \
            }                                                                                          \
        }                                                                                              \
        return y;                                                                                      \
    }
#define HL_MATH_SIN(NAME, F, I) HL_MATH_SINCOS(NAME, F, I, 0, __builtin_sinf)
#define HL_MATH_COS(NAME, F, I) HL_MATH_SINCOS(NAME, F, I, 1, __builtin_cosf)

/* A polynomial near 0, 1 - 2 / (exp(2x) + 1) elsewhere. */
#define HL_MATH_TANH(NAME, F, I)                                                                       \
    HL_MATH_EXP(NAME##_exp, F, I)                                                                      \
    HL_MATH_FUNCTION F NAME(F x) {                                                                     \
        const I sign = (I)x & (-2147483647 - 1);                                                       \
        const F a = (F)((I)x & 0x7fffffff), z = x * x;                                                 \
        F p = -5.70498872745e-3f * z + 2.06390887954e-2f;                                              \
        p = p * z - 5.37397155531e-2f;                                                                 \
        p = p * z + 1.33314422036e-1f;                                                                 \
        p = p * z - 3.33332819422e-1f;                                                                 \
        p = p * z * a + a;                                                                             \
        const F far = 1.0f - 2.0f / (NAME##_exp(a + a) + 1.0f);                                        \
        const I m = a < 0.625f;                                                                        \
        const F y = HL_SELECT(F, m, p, far);                                                           \
        return (F)((I)y | sign);                                                                       \
    }

/* What C says about zeros, infinities, NaN and negative bases; `v` is |x|^y where nothing of this applies. */
#define HL_MATH_POW_SPECIALS(NAME, F, I)                                                               \
    HL_MATH_FUNCTION F NAME(F x, F y, F ax, F v, F infinity) {                                         \
        const F ay = (F)((I)y & 0x7fffffff), one = 1.0f - (F){}, zero = {};                            \
        const I ybits = (I)ay;                                                                         \
        const I y_large = ybits >= 0x4b800000; /* 2^24: an even integer, or not finite */              \
        const F safe = HL_SELECT(F, y_large, zero, y);                                                 \
        const I whole = __builtin_convertvector(safe, I);                                              \
        const I is_whole = (__builtin_convertvector(whole, F) == safe) & (ybits <= 0x7f800000);        \
        const I is_odd = is_whole & ~y_large & -(whole & 1);                                           \
        const I grows = ((ax > 1.0f) & (y > 0.0f)) | ((ax < 1.0f) & (y < 0.0f));                       \
        I m = (ax == infinity) | (ax == 0.0f) | (ay == infinity);                                      \
        const F extreme = HL_SELECT(F, grows, infinity, zero);                                         \
        v = HL_SELECT(F, m, extreme, v);                                                               \
        m = (x < 0.0f) & ~is_whole & (ax < infinity) & (ybits < 0x7f800000);                           \
        const F bad = __builtin_nanf("") - (F){};                                                      \
        v = HL_SELECT(F, m, bad, v);                                                                   \
        v = (F)((I)v ^ ((I)x & is_odd & (-2147483647 - 1)));                                           \
        m = ~(x == x) | ~(y == y);                                                                     \
        v = HL_SELECT(F, m, bad, v);                                                                   \
        m = (x == 1.0f) | (y == 0.0f) | ((ax == 1.0f) & (ay == infinity));                             \
        return HL_SELECT(F, m, one, v);                                                                \
    }

/* exp2(y log2 |x|) in double; signs and special values after that. D and L: vectors of as many double and int64_t. */
#define HL_MATH_POW(NAME, F, I, D, L)                                                                  \
    HL_MATH_POW_SPECIALS(NAME##_specials, F, I)                                                        \
    HL_MATH_FUNCTION F NAME(F x, F y) {                                                                \
        const F ax = (F)((I)x & 0x7fffffff), infinity = __builtin_inff() - (F){};                      \
        const D d = __builtin_convertvector(ax, D), w = __builtin_convertvector(y, D);                 \
        const L e = ((L)d - 0x3fe6a09e667f3bcdll) >> 52;                                               \
        const D m = (D)((L)d - (e << 52));                                                             \
        const D s = (m - 1.0) / (m + 1.0), z = s * s;                                                  \
        D p = z * (1.0 / 13) + 1.0 / 11;                                                               \
        p = p * z + 1.0 / 9;                                                                           \
        p = p * z + 1.0 / 7;                                                                           \
        p = p * z + 1.0 / 5;                                                                           \
        p = p * z + 1.0 / 3;                                                                           \
        p = p * z + 1.0;                                                                               \
        const D k = (D)(e + 0x4338000000000000ll) - 6755399441055744.0; /* e as a double */            \
        D t = w * (p * s * 2.8853900817779268 + k);                                                    \
        const D low = -200.0 - (D){}, high = 200.0 - (D){};                                            \
        L b = t < low;                                                                                 \
        t = HL_SELECT(D, b, low, t);                                                                   \
        b = t > high;                                                                                  \
        t = HL_SELECT(D, b, high, t);                                                                  \
        const D shifted = t + 6755399441055744.0, r = (t - (shifted - 6755399441055744.0)) * 0.6931471805599453; \
        D q = r * (1.0 / 40320) + 1.0 / 5040;                                                          \
        q = q * r + 1.0 / 720;                                                                         \
        q = q * r + 1.0 / 120;                                                                         \
        q = q * r + 1.0 / 24;                                                                          \
        q = q * r + 1.0 / 6;                                                                           \
        q = q * r + 0.5;                                                                               \
        q = q * r + 1.0;                                                                               \
        q = q * r + 1.0;                                                                               \
        F v = __builtin_convertvector((D)((L)q + (((L)shifted - 0x4338000000000000ll) << 52)), F);     \
        return NAME##_specials(x, y, ax, v, infinity);                                                 \
    }

/* Whether any bit is set in a mask of `size` bytes, a power of two of at least 4. */
static inline __attribute__((always_inline)) int hl_any(const void *mask, unsigned long size) {
    typedef long long hl_words32 __attribute__((vector_size(32)));
    if (size == 4) {
        int word;
        __builtin_memcpy(&word, mask, 4);
        return word;
    }
#if defined(__AVX__)
    if (size == 32) {
        hl_words32 words;
        __builtin_memcpy(&words, mask, 32);
        return !__builtin_ia32_ptestz256(words, words);
    }
#endif
    long long all = 0, word;
    for (unsigned long i = 0; i < size; i += 8) {
        __builtin_memcpy(&word, (const char *)mask + i, 8);
        all |= word;
    }
    return all != 0;
}

#endif /* HL_MATH_H */
