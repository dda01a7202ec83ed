/* hl_math.h: math functions of vectors of float and double, as macros that define one for a vector type.
 *
 * HL_MATH_EXP(name, F, I, U, T) defines `static F name(F)`. T is 32 or 64; F is a GNU vector of floats or doubles, I and U are vectors of
 * as many integers of that width, signed and unsigned. A vector of one lane serves scalars, so that scalar and vectorized code give the
 * same numbers. Only GNU C operators, besides square roots; no libraries (sin, cos and tan of huge arguments call C's, lane by lane).
 *
 * Largest errors against the exact value in units in the last place, by test, for float and double:
 * exp 1.1, log 0.9, sin and cos 1.6, tan 3.1, asin 2.5, acos 1.3, atan and atan2 2, sinh 2.5, cosh 1.6, tanh 2.7, asinh 2, acosh 2.7, atanh 2,
 * pow 1 and 1.1, hypot 1.3, erf (float) 1.4. Special values are those of C: exp(inf) = inf, log(-1) = NaN, pow(x, 0) = 1, signed
 * zeros, subnormals in and out.
 *
 * Sources: Cody and Waite, Software Manual for the Elementary Functions (reduction of arguments); Sun's fdlibm (what is summed in which
 * order, pow in two parts); coefficients: minimax fits of our own, by Remez' algorithm (tests/codegen/fit_math.py). Needs IEEE arithmetic: no
 * -ffast-math; products are made so that fusing them with sums changes nothing that matters.
 */
#ifndef HL_MATH_H
#define HL_MATH_H

#include "hl_vector.h"

#define HL_MATH_FUNCTION static inline
#define HL_MATH_RARELY static __attribute__((noinline, unused)) /* arguments that few programs have */
#define HL_SAME(F, v) ((v) - (F){})                       /* a vector of one number */

/* ---- what the two widths differ in */

#define HL_K(T, v) ((HL_FLOAT_##T)(v))
#define HL_FLOAT_32 float
#define HL_FLOAT_64 double
#define HL_INT_32 int
#define HL_INT_64 long long
#define HL_SIGN_32 (-2147483647 - 1)
#define HL_SIGN_64 (-9223372036854775807ll - 1)
#define HL_TOP_32 31
#define HL_TOP_64 63
#define HL_MANTISSA_32 23
#define HL_MANTISSA_64 52
#define HL_BIAS_32 127
#define HL_BIAS_64 1023
#define HL_ROUND_32 12582912.0f /* 1.5 * 2^23: adding it leaves the nearest integer in the low bits */
#define HL_ROUND_64 6755399441055744.0
#define HL_ROUND_BITS_32 0x4b400000
#define HL_ROUND_BITS_64 0x4338000000000000ll
#define HL_SMALLEST_BITS_32 0x00800000 /* the smallest normal number */
#define HL_SMALLEST_BITS_64 0x0010000000000000ll
#define HL_NORMAL_BITS_32 0x7f000000u /* how many there are */
#define HL_NORMAL_BITS_64 0x7fe0000000000000ull
#define HL_INFINITY_BITS_32 0x7f800000
#define HL_INFINITY_BITS_64 0x7ff0000000000000ll
#define HL_ONE_BITS_32 0x3f800000
#define HL_ONE_BITS_64 0x3ff0000000000000ll
#define HL_ROOT_HALF_BITS_32 0x3f3504f3
#define HL_ROOT_HALF_BITS_64 0x3fe6a09e667f3bcdll
#define HL_INFINITY_32 __builtin_inff()
#define HL_INFINITY_64 __builtin_inf()
#define HL_NAN_32 __builtin_nanf("")
#define HL_NAN_64 __builtin_nan("")
#define HL_LOG2E_32 0x1.715476p+0f
#define HL_LOG2E_64 0x1.71547652b82fep+0
#define HL_LN2_HIGH_32 0x1.62e4p-1f
#define HL_LN2_HIGH_64 0x1.62e42feep-1
#define HL_LN2_LOW_32 0x1.7f7d1cp-20f
#define HL_LN2_LOW_64 0x1.a39ef35793c76p-33
#define HL_HALF_PI_32 0x1.921fb6p+0f
#define HL_HALF_PI_64 0x1.921fb54442d18p+0
#define HL_HALF_PI_REST_32 (-0x1.777a5cp-25f)
#define HL_HALF_PI_REST_64 0x1.1a62633145c07p-54
#define HL_EXP_NEAR_32 87.0f /* exp of what is nearer to 0 is a normal number */
#define HL_EXP_NEAR_64 708.0
#define HL_EXP_NEAR_BITS_32 0x42ae0000u
#define HL_EXP_NEAR_BITS_64 0x4086200000000000ull
#define HL_EXP_LOW_32 (-104.0f) /* exp of what is lower is 0 */
#define HL_EXP_LOW_64 (-746.0)
#define HL_EXP_HIGH_32 90.0f /* exp of what is higher is infinite, half of it too */
#define HL_EXP_HIGH_64 711.0
#define HL_TINY_SCALE_32 24
#define HL_TINY_SCALE_64 54
#define HL_TRIG_NEAR_32 6000.0f /* reduced exactly enough up to here */
#define HL_TRIG_NEAR_64 1e6
/* pi / 2 in four parts; products of n with the first three are exact. */
#define HL_HALF_PI_PARTS_32 0x1.92p+0f, 0x1.fb4p-12f, 0x1.444p-24f, 0x1.68c234p-39f
#define HL_HALF_PI_PARTS_64 0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2ep-69, 0x1.b839a252049c1p-104

/* ---- polynomials: (exp(r) - 1 - r) / r^2, |r| <= ln(2) / 2; (log((1 + s) / (1 - s)) - 2 s) / s^3 and, in z = r^2, (sin(r) - r) / r^3 and
 * (cos(r) - 1 + z / 2) / z^2, |r| <= pi / 4; (atan(t) - t) / t^3, |t| <= tan(pi / 8); (asin(t) - t) / t^3, |t| <= 1 / 2 */

#define HL_POLY_EXP_32(r) ((((0x1.6db44p-10f * r + 0x1.123b54p-7f) * r + 0x1.55545ep-5f) * r + 0x1.55548ep-3f) * r + 0x1p-1f)
#define HL_POLY_EXP_64(r) \
    (((((((((0x1.af85bdbfbcde1p-26 * r + 0x1.28b047cf05e8p-22) * r + 0x1.71dddfa51c03fp-19) * r + 0x1.a019969553b99p-16) * r + \
    0x1.a01a01baf5c3ep-13) * r + 0x1.6c16c185a6a6cp-10) * r + 0x1.111111110d5fap-7) * r + 0x1.5555555550034p-5) * r + \
    0x1.5555555555561p-3) * r + 0x1.000000000000bp-1)
#define HL_POLY_LOG_32(z) ((0x1.31e342p-2f * z + 0x1.995eb8p-2f) * z + 0x1.55557ap-1f)
#define HL_POLY_LOG_64(z) \
    ((((((0x1.2f0602807cb8fp-3 * z + 0x1.39a1ac59cdb5fp-3) * z + 0x1.74663f678c82ap-3) * z + 0x1.c71c520746222p-3) * z + \
    0x1.24924941f33d1p-2) * z + 0x1.999999997fd9cp-2) * z + 0x1.5555555555592p-1)
#define HL_POLY_SIN_32(z) ((-0x1.994e84p-13f * z + 0x1.11076p-7f) * z - 0x1.555546p-3f)
#define HL_POLY_SIN_64(z) \
    (((((0x1.5d931cb977b9cp-33 * z - 0x1.ae5e66a4fb227p-26) * z + 0x1.71de357850e19p-19) * z - 0x1.a01a019c12694p-13) * z + \
    0x1.111111110f882p-7) * z - 0x1.5555555555549p-3)
#define HL_POLY_COS_32(z) ((0x1.9a027ap-16f * z - 0x1.6c0c8cp-10f) * z + 0x1.55554ap-5f)
#define HL_POLY_COS_64(z) \
    (((((-0x1.8faf7ae997ef8p-37 * z + 0x1.1ee9edbde2cb6p-29) * z - 0x1.27e4f80ceb0f4p-22) * z + 0x1.a01a019cb661ap-16) * z - \
    0x1.6c16c16c151b4p-10) * z + 0x1.555555555554cp-5)
#define HL_POLY_ATAN_32(z) ((((-0x1.f26bacp-5f * z + 0x1.b206fp-4f) * z - 0x1.23b71ap-3f) * z + 0x1.9991b4p-3f) * z - 0x1.55554ap-2f)
#define HL_POLY_ATAN_64(z) \
    ((((((((((-0x1.25bee84823136p-6 * z + 0x1.37fd9d7ff2edbp-5) * z - 0x1.9ce30ef6783ccp-5) * z + 0x1.df130f454e7fap-5) * z - \
    0x1.10ebfd5769098p-4) * z + 0x1.3b111f775f29dp-4) * z - 0x1.745cf93c83e9ap-4) * z + 0x1.c71c70e9972a3p-4) * z - 0x1.24924922b6fd4p-3) \
    * z + 0x1.9999999995a0ep-3) * z - 0x1.555555555553ep-2)
#define HL_POLY_ASIN_32(z) ((((0x1.59cbaep-5f * z + 0x1.8bb616p-6f) * z + 0x1.748a1ep-5f) * z + 0x1.33016ap-4f) * z + 0x1.5555cap-3f)
#define HL_POLY_ASIN_64(z) \
    (((((((((((0x1.05aab9238f877p-5 * z - 0x1.0a86a2f92f96fp-6) * z + 0x1.406709ebce056p-6) * z + 0x1.ab290191f8a16p-8) * z + \
    0x1.8ed5fcf74431dp-7) * z + 0x1.c6faed921d42dp-7) * z + 0x1.1c6c04df14d99p-6) * z + 0x1.6e89f211bfe08p-6) * z + 0x1.f1c72c4d9a246p-6) \
    * z + 0x1.6db6db4247f2ep-5) * z + 0x1.333333336eaa4p-4) * z + 0x1.5555555555391p-3)
#define HL_POLY_POW(z) /* 3/5 + 3/7 s^2 + ..., of pow below */ \
    (((((((0x1.6f3cd916207dap-3 * z + 0x1.66c9fa95fcbc5p-3) * z + 0x1.99af28edd2001p-3) * z + 0x1.d89d2207f96fep-3) * z + \
    0x1.1745d2088b7aap-2) * z + 0x1.555555546528p-2) * z + 0x1.b6db6db6dc318p-2) * z + 0x1.3333333333331p-1)
#define HL_POLY_LOG2_32(z) /* log2((1 + s) / (1 - s)) / s */ \
    (((0x1.ba1cc4p-2f * z + 0x1.274706p-1f) * z + 0x1.ec70e6p-1f) * z + 0x1.715476p+1f)
#define HL_POLY_POW_LOG2(z, zz) /* the same for double */ \
    (((0x1.21b33efbe0813p-2 * z + 0x1.47952a5582c5dp-2) * zz + (0x1.a61a2feadda12p-2 * z + 0x1.2776c291b9ec9p-1)) * zz + \
    (0x1.ec709dc53dd4ap-1 * z + 0x1.71547652b825p+1))
#define HL_POLY_EXP2_32(r) /* (2^r - 1) / r, |r| <= 1 / 2 */ \
    (((((0x1.446c82p-13f * r + 0x1.5f08a2p-10f) * r + 0x1.3b29e4p-7f) * r + 0x1.c6af6cp-5f) * r + 0x1.ebfbep-3f) * r + 0x1.62e43p-1f)
#define HL_POLY_EXP2_64(r) /* to 2^-33 */ \
    ((((((0x1.00dc4ec3f5f11p-16 * r + 0x1.44400a91bf2c1p-13) * r + 0x1.5d874c79ff8cap-10) * r + 0x1.3b2a1b64a40dfp-7) * r + \
    0x1.c6b08dc5e2c24p-5) * r + 0x1.ebfbe04600b63p-3) * r + 0x1.62e42fef95ecap-1)
/* The two of erf and 2^r there in steps of pairs: their terms do not wait for each other. */
#define HL_POLY_ERF_NEAR(z, zz) /* erf(x) / x - 1, x <= 0.875 */ \
    (((-0x1.45a778p-11f * z + 0x1.49e7fp-8f) * zz + (-0x1.b6f93cp-6f * z + 0x1.ce218ep-4f)) * zz + (-0x1.81270ep-2f * z + 0x1.06eba6p-3f))
#define HL_POLY_ERF_FAR(x, z) /* -log2(1 - erf(x)), 0.87 <= x <= 4; the last less 4e-8, for how sums round */ \
    (((-0x1.2f34fcp-12f * z + (0x1.23e174p-8f * x - 0x1.08bf5cp-5f)) * z + (0x1.342444p-3f * x + 0x1.d65c48p-1f)) * z + \
    (0x1.a092bp+0f * x + 0x1.a18c88p-13f))
#define HL_POLY_ERF_EXP2(r, z) \
    (((0x1.446c82p-13f * r + 0x1.5f08a2p-10f) * z + (0x1.3b29e4p-7f * r + 0x1.c6af6cp-5f)) * z + (0x1.ebfbep-3f * r + 0x1.62e43p-1f))
#define HL_POLY_POW_EXP2(r, z) /* 2^r - 1 less its first term, of which the last bits are here */ \
    (z * ((z * 0x1.446c82p-13f + (0x1.5f08a2p-10f * r + 0x1.3b29e4p-7f)) * z + (0x1.c6af6cp-5f * r + 0x1.ebfbep-3f)) + r * -0x1.05c61p-29f)

/* Whether products are added without rounding. */
#if defined(__FMA__) || defined(__aarch64__) || defined(__ARM_FEATURE_FMA)
#define HL_FUSES 1
#else
#define HL_FUSES 0
#endif

#define HL_ABS(F, I, T, x) ((F)((I)(x) & ~HL_SIGN_##T))
#define HL_WITH_SIGN(F, I, T, x, s) ((F)((I)(x) | ((I)(s) & HL_SIGN_##T))) /* x >= 0 with the sign of s */
#define HL_ANY(mask) HL_UNLIKELY(hl_any(&mask, sizeof mask))
/* Whether a lane of the unsigned vector is at least `least`; `mask` says which, and is not made where the machine compares at once. */
#define HL_ANY_FROM(T, vector, least, mask) \
    HL_UNLIKELY(HL_COMPARES(sizeof vector) ? hl_any_from_##T(&vector, least) : hl_any(&mask, sizeof mask))

/* ---- exponentials: x = k ln(2) + r, |r| <= ln(2) / 2 */

#define HL_REDUCE_EXP(F, I, T, x)                                                  \
    const F shifted = x * HL_LOG2E_##T + HL_ROUND_##T, n = shifted - HL_ROUND_##T; \
    const F r = (x - n * HL_LN2_HIGH_##T) - n * HL_LN2_LOW_##T;                    \
    const F p = r * r * HL_POLY_EXP_##T(r) + r; /* exp(r) - 1 */

/* Far from 0, 2^k comes in two factors, so that results go through subnormals to 0 and overflow to infinity; `less` powers of 2 fewer. */
#define HL_MATH_EXP(NAME, F, I, U, T)                                                                                              \
    HL_MATH_RARELY F NAME##_far(F x, int less) {                                                                                   \
        const F low = HL_SAME(F, HL_EXP_LOW_##T), high = HL_SAME(F, HL_EXP_HIGH_##T);                                              \
        I m = x < low;                                                                                                             \
        x = HL_SELECT(F, m, low, x);                                                                                               \
        m = x > high;                                                                                                              \
        x = HL_SELECT(F, m, high, x);                                                                                              \
        HL_REDUCE_EXP(F, I, T, x)                                                                                                  \
        const I k = (I)shifted - (HL_ROUND_BITS_##T + less), half = (I)((U)(k + 4096) >> 1) - 2048;                                \
        return (p + HL_K(T, 1)) * (F)((half + HL_BIAS_##T) << HL_MANTISSA_##T) * (F)((k - half + HL_BIAS_##T) << HL_MANTISSA_##T); \
    }                                                                                                                              \
    HL_MATH_FUNCTION F NAME(F x) {                                                                                                 \
        const U size = (U)((I)x & ~HL_SIGN_##T);                                                                                   \
        const I far = (I)(size > HL_EXP_NEAR_BITS_##T);                                                                            \
        if (HL_ANY_FROM(T, size, HL_EXP_NEAR_BITS_##T + 1, far)) return NAME##_far(x, 0);                                          \
        HL_REDUCE_EXP(F, I, T, x)                                                                                                  \
        return (F)((I)(p + HL_K(T, 1)) + ((I)shifted << HL_MANTISSA_##T));                                                         \
    }

/* exp(x) - 1 of 0 <= x <= 88 (709). */
#define HL_EXPM1(NAME, F, I, U, T)                                              \
    HL_MATH_FUNCTION F NAME(F x) {                                              \
        HL_REDUCE_EXP(F, I, T, x)                                               \
        const F power = (F)(((I)shifted << HL_MANTISSA_##T) + HL_ONE_BITS_##T); \
        return p * power + (power - HL_K(T, 1));                                \
    }

/* From a = |x|: near 0 through exp(a) - 1, which does not cancel; elsewhere through exp(a) / 2, which overflows when the result does. */
#define HL_MATH_SINH(NAME, F, I, U, T)                                                \
    HL_EXPM1(NAME##_expm1, F, I, U, T)                                                \
    HL_MATH_EXP(NAME##_exp, F, I, U, T)                                               \
    HL_MATH_FUNCTION F NAME(F x) {                                                    \
        const F a = HL_ABS(F, I, T, x), nine = HL_SAME(F, HL_K(T, 9));                \
        const I far = ~(a <= nine);                                                   \
        const F b = HL_SELECT(F, far, nine, a), e = NAME##_expm1(b);                  \
        F y = HL_K(T, 0.5) * (e + e / (e + HL_K(T, 1)));                              \
        if (HL_ANY(far)) {                                                            \
            const F half = NAME##_exp_far(a, 1), large = half - HL_K(T, 0.25) / half; \
            y = HL_SELECT(F, far, large, y);                                          \
        }                                                                             \
        return HL_WITH_SIGN(F, I, T, y, x);                                           \
    }
#define HL_MATH_COSH(NAME, F, I, U, T)                                                    \
    HL_MATH_EXP(NAME##_exp, F, I, U, T)                                                   \
    HL_MATH_FUNCTION F NAME(F x) {                                                        \
        const F a = HL_ABS(F, I, T, x);                                                   \
        const I far = ~(a <= HL_EXP_NEAR_##T);                                            \
        const F half = HL_ANY(far) ? NAME##_exp_far(a, 1) : HL_K(T, 0.5) * NAME##_exp(a); \
        return half + HL_K(T, 0.25) / half;                                               \
    }
#define HL_MATH_TANH(NAME, F, I, U, T)                                                              \
    HL_EXPM1(NAME##_expm1, F, I, U, T)                                                              \
    HL_MATH_FUNCTION F NAME(F x) {                                                                  \
        const F a = HL_ABS(F, I, T, x), limit = HL_SAME(F, HL_K(T, 22));                            \
        const I far = a > limit;                                                                    \
        const F b = HL_SELECT(F, far, limit, a), e = NAME##_expm1(b + b), y = e / (e + HL_K(T, 2)); \
        return HL_WITH_SIGN(F, I, T, y, x);                                                         \
    }

/* ---- logarithms: x = 2^k m, m in [sqrt(1/2), sqrt(2)), s = (m - 1) / (m + 1) */

#define HL_LOG_PARTS(F, I, U, T, x)                                                            \
    const U biased = (U)((I)x + (HL_ONE_BITS_##T - HL_ROOT_HALF_BITS_##T)) >> HL_MANTISSA_##T; \
    const F k = (F)((I)biased + HL_ROUND_BITS_##T) - (HL_ROUND_##T + HL_BIAS_##T);             \
    const F f = (F)((I)x - (I)(biased << HL_MANTISSA_##T) + HL_ONE_BITS_##T) - HL_K(T, 1);     \
    const F s = f / (f + HL_K(T, 2)), z = s * s;
/* log(1 + f), plus e ln(2) and something small */
#define HL_LOG_SUM(F, T, e, small)                                                      \
    const F half = HL_K(T, 0.5) * f * f, inner = s * (half + z * HL_POLY_LOG_##T(z));   \
    return e * HL_LN2_HIGH_##T - ((half - (inner + (e * HL_LN2_LOW_##T + small))) - f);

#define HL_MATH_LOG(NAME, F, I, U, T)                                                                               \
    HL_MATH_FUNCTION F NAME##_normal(F x, F scale) {                                                                \
        HL_LOG_PARTS(F, I, U, T, x)                                                                                 \
        const F e = k - scale, nothing = {};                                                                        \
        HL_LOG_SUM(F, T, e, nothing)                                                                                \
    }                                                                                                               \
    HL_MATH_RARELY F NAME##_special(F x) {                                                                          \
        const F zero = {}, infinity = HL_SAME(F, HL_INFINITY_##T), bad = HL_SAME(F, HL_NAN_##T), minus = -infinity; \
        const I tiny = (I)x < HL_SMALLEST_BITS_##T;                                                                 \
        const F raised = x * (HL_FLOAT_##T)(1ll << HL_TINY_SCALE_##T), by = HL_SAME(F, HL_K(T, HL_TINY_SCALE_##T)); \
        const F scaled = HL_SELECT(F, tiny, raised, x), scale = HL_SELECT(F, tiny, by, zero);                       \
        F y = NAME##_normal(scaled, scale);                                                                         \
        I m = x == zero;                                                                                            \
        y = HL_SELECT(F, m, minus, y);                                                                              \
        m = x < zero;                                                                                               \
        y = HL_SELECT(F, m, bad, y);                                                                                \
        m = ~(x < infinity) & ~(x < zero);                                                                          \
        return HL_SELECT(F, m, x, y);                                                                               \
    }                                                                                                               \
    HL_MATH_FUNCTION F NAME(F x) {                                                                                  \
        const U above = (U)x - HL_SMALLEST_BITS_##T; /* in one comparison: below the smallest normal number it wraps */          \
        const I special = (I)(above >= HL_NORMAL_BITS_##T);                                                                         \
        if (HL_ANY_FROM(T, above, HL_NORMAL_BITS_##T, special)) return NAME##_special(x);                                           \
        return NAME##_normal(x, (F){});                                                                             \
    }

/* log(1 + x) of x >= 0: what rounding 1 + x drops is made up for. */
#define HL_LOG1P(NAME, F, I, U, T)                                                                                                \
    HL_MATH_FUNCTION F NAME(F x) {                                                                                                \
        const F u = x + HL_K(T, 1);                                                                                               \
        const I large = x > HL_K(T, 2);                                                                                           \
        const F lost = x - (u - HL_K(T, 1)), lost_large = HL_K(T, 1) - (u - x), rest = HL_SELECT(F, large, lost_large, lost) / u; \
        HL_LOG_PARTS(F, I, U, T, u)                                                                                               \
        HL_LOG_SUM(F, T, k, rest)                                                                                                 \
    }

/* asinh(a) = log1p(a + a^2 / (1 + sqrt(1 + a^2))); of huge numbers log(2a), NaN and infinity stay. */
#define HL_MATH_ASINH(NAME, F, I, U, T)                                                                    \
    HL_MATH_SQRT(NAME##_sqrt, F, I, U, T)                                                                  \
    HL_LOG1P(NAME##_log1p, F, I, U, T)                                                                     \
    HL_MATH_FUNCTION F NAME(F x) {                                                                         \
        const F a = HL_ABS(F, I, T, x), one = HL_SAME(F, HL_K(T, 1));                                      \
        const I huge = ~(a < (HL_FLOAT_##T)(1ll << HL_TINY_SCALE_##T));                                    \
        const F b = HL_SELECT(F, huge, one, a), z = b * b;                                                 \
        const F t = b + z / (NAME##_sqrt(z + one) + one), arg = HL_SELECT(F, huge, a, t);                  \
        F y = NAME##_log1p(arg);                                                                           \
        if (HL_ANY(huge)) {                                                                                \
            const I special = ~(a < HL_INFINITY_##T);                                                      \
            const F twice = (y + HL_LN2_LOW_##T) + HL_LN2_HIGH_##T, far = HL_SELECT(F, special, a, twice); \
            y = HL_SELECT(F, huge, far, y);                                                                \
        }                                                                                                  \
        return HL_WITH_SIGN(F, I, T, y, x);                                                                \
    }
#define HL_MATH_ACOSH(NAME, F, I, U, T)                                                                                         \
    HL_MATH_SQRT(NAME##_sqrt, F, I, U, T)                                                                                       \
    HL_LOG1P(NAME##_log1p, F, I, U, T)                                                                                          \
    HL_MATH_FUNCTION F NAME(F x) {                                                                                              \
        const F one = HL_SAME(F, HL_K(T, 1));                                                                                   \
        const I special = ~((x >= one) & (x < (HL_FLOAT_##T)(1ll << HL_TINY_SCALE_##T)));                                       \
        const F b = HL_SELECT(F, special, one, x), t = b - one, arg = t + NAME##_sqrt(t * (b + one));                           \
        F y = NAME##_log1p(arg);                                                                                                \
        if (HL_ANY(special)) {                                                                                                  \
            const I huge = (x > one) & (x < HL_INFINITY_##T), low = x < one;                                                    \
            const F largest = HL_SELECT(F, huge, x, one), far = (NAME##_log1p(largest) + HL_LN2_LOW_##T) + HL_LN2_HIGH_##T;     \
            const F bad = HL_SAME(F, HL_NAN_##T), outside = HL_SELECT(F, low, bad, x), rare = HL_SELECT(F, huge, far, outside); \
            y = HL_SELECT(F, special, rare, y);                                                                                 \
        }                                                                                                                       \
        return y;                                                                                                               \
    }
#define HL_MATH_ATANH(NAME, F, I, U, T)                                                                                            \
    HL_LOG1P(NAME##_log1p, F, I, U, T)                                                                                             \
    HL_MATH_FUNCTION F NAME(F x) {                                                                                                 \
        const F a = HL_ABS(F, I, T, x), one = HL_SAME(F, HL_K(T, 1)), zero = {};                                                   \
        const I special = ~(a < one);                                                                                              \
        const F b = HL_SELECT(F, special, zero, a), y = HL_K(T, 0.5) * NAME##_log1p((b + b) / (one - b));                          \
        const I edge = a == one;                                                                                                   \
        const F infinity = HL_SAME(F, HL_INFINITY_##T), bad = HL_SAME(F, HL_NAN_##T), outside = HL_SELECT(F, edge, infinity, bad); \
        const F out = HL_SELECT(F, special, outside, y);                                                                           \
        return HL_WITH_SIGN(F, I, T, out, x);                                                                                      \
    }

/* ---- square roots, what the machine has no instruction for is done lane by lane */

#if defined(__clang__)
#if __has_builtin(__builtin_elementwise_sqrt)
#define HL_ELEMENTWISE_SQRT /* since clang 17 */
#endif
#endif
#if defined(HL_ELEMENTWISE_SQRT)
#define HL_MATH_SQRT(NAME, F, I, U, T) HL_MATH_FUNCTION F NAME(F x) { return __builtin_elementwise_sqrt(x); }
#else
#define HL_MATH_SQRT(NAME, F, I, U, T)                                                                     \
    HL_MATH_FUNCTION F NAME(F x) {                                                                         \
        F y = x;                                                                                           \
        if (hl_sqrt_##T(&y, sizeof y)) return y;                                                           \
        for (unsigned i = 0; i < sizeof(F) / sizeof(HL_FLOAT_##T); i++) y[i] = HL_LIBRARY_##T(sqrt)(x[i]); \
        return y;                                                                                          \
    }
#endif

/* ---- helpers */

/* Whether any bit is set in a mask of `size` bytes, a power of two of at least 4. */
static inline __attribute__((always_inline)) int hl_any(const void *mask, unsigned long size) {
    if (size == 4) {
        int word;
        __builtin_memcpy(&word, mask, 4);
        return word;
    }
#if defined(__AVX512F__) && !defined(__clang__)
    if (size == 64) {
        typedef int hl_words64 __attribute__((vector_size(64)));
        hl_words64 words;
        __builtin_memcpy(&words, mask, 64);
        return __builtin_ia32_ptestmd512(words, words, (unsigned short)-1) != 0;
    }
#endif
#if defined(__AVX__)
    if (size == 32) {
        typedef long long hl_words32 __attribute__((vector_size(32)));
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

#if defined(__AVX512F__) && !defined(__clang__)
#define HL_COMPARES(size) ((size) == 64)
#else
#define HL_COMPARES(size) 0
#endif
static inline __attribute__((always_inline, unused)) int hl_any_from_32(const void *vector, unsigned least) {
#if defined(__AVX512F__) && !defined(__clang__)
    typedef int hl_words64 __attribute__((vector_size(64)));
    hl_words64 words;
    __builtin_memcpy(&words, vector, 64);
    return __builtin_ia32_ucmpd512_mask(words, (int)least - (hl_words64){}, 5, (unsigned short)-1);
#endif
    return (void)vector, (void)least, 0;
}
static inline __attribute__((always_inline, unused)) int hl_any_from_64(const void *vector, unsigned long long least) {
#if defined(__AVX512F__) && !defined(__clang__)
    typedef long long hl_words64 __attribute__((vector_size(64)));
    hl_words64 words;
    __builtin_memcpy(&words, vector, 64);
    return __builtin_ia32_ucmpq512_mask(words, (long long)least - (hl_words64){}, 5, (unsigned char)-1);
#endif
    return (void)vector, (void)least, 0;
}

/* A vector `to` of the doubles that as many floats, or integers, are; gcc makes two halves of the generic form. */
#define HL_WIDEN(to, D, from) \
    D to;                     \
    if (!hl_widen(&to, &from, sizeof to, 0)) to = __builtin_convertvector(from, D);
#define HL_WIDEN_INTEGERS(to, D, from) \
    D to;                              \
    if (!hl_widen(&to, &from, sizeof to, 1)) to = __builtin_convertvector(from, D);
static inline __attribute__((always_inline, unused)) int hl_widen(void *to, const void *from, unsigned long size, int integers) {
#if defined(__AVX512F__) && !defined(__clang__)
    if (size == 64) {
        typedef double hl_wide __attribute__((vector_size(64)));
        typedef float hl_floats __attribute__((vector_size(32)));
        typedef int hl_integers __attribute__((vector_size(32)));
        hl_floats f;
        __builtin_memcpy(&f, from, 32);
        const hl_wide wide = integers ? __builtin_ia32_cvtdq2pd512_mask((hl_integers)f, (hl_wide){}, (unsigned char)-1)
                                      : __builtin_ia32_cvtps2pd512_mask(f, (hl_wide){}, (unsigned char)-1, 4);
        __builtin_memcpy(to, &wide, 64);
        return 1;
    }
#endif
    return (void)to, (void)from, (void)size, (void)integers, 0;
}

/* Square roots of a whole vector in place where the machine has an instruction for its size, which the result tells. clang has other names
 * for the instructions, and makes them of a loop by itself. */
#define HL_IN_PLACE(element, bytes, instruction) \
    if (size == bytes) { \
        typedef element hl_vector __attribute__((vector_size(bytes))); \
        hl_vector x; \
        __builtin_memcpy(&x, vector, bytes); \
        x = instruction; \
        __builtin_memcpy(vector, &x, bytes); \
        return 1; \
    }
static inline __attribute__((always_inline, unused)) int hl_sqrt_32(void *vector, unsigned long size) {
#if defined(__AVX512F__) && !defined(__clang__)
    HL_IN_PLACE(float, 64, __builtin_ia32_sqrtps512_mask(x, x, (unsigned short)-1, 4))
#endif
#if defined(__AVX__) && !defined(__clang__)
    HL_IN_PLACE(float, 32, __builtin_ia32_sqrtps256(x))
#endif
#if defined(__SSE2__) && !defined(__clang__)
    HL_IN_PLACE(float, 16, __builtin_ia32_sqrtps(x))
#endif
    return (void)vector, (void)size, 0;
}
static inline __attribute__((always_inline, unused)) int hl_sqrt_64(void *vector, unsigned long size) {
#if defined(__AVX512F__) && !defined(__clang__)
    HL_IN_PLACE(double, 64, __builtin_ia32_sqrtpd512_mask(x, x, (unsigned char)-1, 4))
#endif
#if defined(__AVX__) && !defined(__clang__)
    HL_IN_PLACE(double, 32, __builtin_ia32_sqrtpd256(x))
#endif
#if defined(__SSE2__) && !defined(__clang__)
    HL_IN_PLACE(double, 16, __builtin_ia32_sqrtpd(x))
#endif
    return (void)vector, (void)size, 0;
}

/* Inverse square roots to 2^-14, where there is an instruction; it gives the same for a lane of any vector. */
static inline __attribute__((always_inline, unused)) int hl_inverse_sqrt_32(void *vector, unsigned long size) {
#if defined(__AVX512F__) && defined(__AVX512VL__) && !defined(__clang__)
    if (size < 16) {
        typedef float hl_vector __attribute__((vector_size(16)));
        hl_vector x = {1.0f, 1.0f, 1.0f, 1.0f};
        __builtin_memcpy(&x, vector, size);
        x = __builtin_ia32_rsqrt14ps128_mask(x, x, (unsigned char)-1);
        __builtin_memcpy(vector, &x, size);
        return 1;
    }
    HL_IN_PLACE(float, 16, __builtin_ia32_rsqrt14ps128_mask(x, x, (unsigned char)-1))
    HL_IN_PLACE(float, 32, __builtin_ia32_rsqrt14ps256_mask(x, x, (unsigned char)-1))
    HL_IN_PLACE(float, 64, __builtin_ia32_rsqrt14ps512_mask(x, x, (unsigned short)-1))
#endif
    return (void)vector, (void)size, 0;
}

/* Inverses to 2^-11, where there is an instruction; it gives the same for a lane of any vector. */
static inline __attribute__((always_inline, unused)) int hl_inverse_32(void *vector, unsigned long size) {
#if defined(__SSE2__) && !defined(__clang__) && (!defined(__AVX512F__) || defined(__AVX512VL__))
#if defined(__AVX512VL__)
#define HL_INVERSE4(x) __builtin_ia32_rcp14ps128_mask(x, x, (unsigned char)-1)
#define HL_INVERSE8(x) __builtin_ia32_rcp14ps256_mask(x, x, (unsigned char)-1)
    HL_IN_PLACE(float, 64, __builtin_ia32_rcp14ps512_mask(x, x, (unsigned short)-1))
#else
#define HL_INVERSE4(x) __builtin_ia32_rcpps(x)
#define HL_INVERSE8(x) __builtin_ia32_rcpps256(x)
#endif
    if (size < 16) {
        typedef float hl_vector __attribute__((vector_size(16)));
        hl_vector x = {1.0f, 1.0f, 1.0f, 1.0f};
        __builtin_memcpy(&x, vector, size);
        x = HL_INVERSE4(x);
        __builtin_memcpy(vector, &x, size);
        return 1;
    }
    HL_IN_PLACE(float, 16, HL_INVERSE4(x))
#if defined(__AVX__)
    HL_IN_PLACE(float, 32, HL_INVERSE8(x))
#endif
#endif
    return (void)vector, (void)size, 0;
}

#include "hl_math_fast.h"
#include "hl_math_pow.h"
#include "hl_math_trig.h"

#endif /* HL_MATH_H */
