/* processor.c: the instruction sets that the processor has and whose registers the system keeps. The compilers' own builtin for this finds
 * none in programs linked by ziglang. Bits: Intel's manual, volume 2, CPUID. */
#include "hl_internal.h"

#include <stdatomic.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>

enum { ASKED = 1u << 31 };

static uint32_t sets_if(int usable, uint32_t word, const uint8_t (*rows)[2], int count) {
    uint32_t sets = 0;
    for (int i = 0; usable && i < count; i++) {
        sets |= word >> rows[i][0] & 1u ? 1u << rows[i][1] : 0;
    }
    return sets;
}

#define ROWS(rows) rows, (int)(sizeof(rows) / sizeof(rows[0]))

static uint32_t ask(void) {
    static const uint8_t sse[][2] = {{19, hl_has_sse4_1}, {20, hl_has_sse4_2}, {23, hl_has_popcnt}};
    static const uint8_t avx[][2] = {{28, hl_has_avx}, {12, hl_has_fma}, {29, hl_has_f16c}};
    static const uint8_t avx2[][2] = {{5, hl_has_avx2}}, bmi2[][2] = {{8, hl_has_bmi2}};
    static const uint8_t avx512[][2] = {{16, hl_has_avx512f}, {28, hl_has_avx512cd}, {30, hl_has_avx512bw},
                                        {17, hl_has_avx512dq}, {31, hl_has_avx512vl}, {21, hl_has_avx512ifma}};
    static const uint8_t later[][2] = {{1, hl_has_avx512vbmi}, {11, hl_has_avx512vnni}, {12, hl_has_avx512bitalg},
                                       {14, hl_has_avx512vpopcntdq}};
    static const uint8_t bf16[][2] = {{5, hl_has_avx512bf16}};
    uint32_t a = 0, b = 0, c = 0, d, e = 0, unused, features, kept = 0, high;
    if (!__get_cpuid(1, &a, &b, &features, &d)) {
        return ASKED;
    }
    if (features >> 27 & 1) { /* the system says which registers it keeps */
        __asm__ volatile("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    }
    __get_cpuid_count(7, 0, &a, &b, &c, &d);
    if (a) { /* how many more pages there are */
        __get_cpuid_count(7, 1, &e, &unused, &unused, &unused);
    }
    const int keeps_256 = (kept & 0x06) == 0x06;
#ifdef __APPLE__
    const int keeps_512 = keeps_256; /* from the first use on */
#else
    const int keeps_512 = keeps_256 && (kept & 0xe0) == 0xe0;
#endif
    return ASKED | sets_if(1, features, ROWS(sse)) | sets_if(keeps_256, features, ROWS(avx)) | sets_if(keeps_256, b, ROWS(avx2)) |
           sets_if(1, b, ROWS(bmi2)) | sets_if(keeps_512, b, ROWS(avx512)) | sets_if(keeps_512, c, ROWS(later)) |
           sets_if(keeps_512, e, ROWS(bf16));
}

HL_BOOL hl_processor_has(uint32_t sets) {
    static _Atomic uint32_t known;
    uint32_t has = atomic_load_explicit(&known, memory_order_relaxed);
    if (!has) {
        has = ask();
        atomic_store_explicit(&known, has, memory_order_relaxed);
    }
    return (sets & ~has) == 0;
}

#else

HL_BOOL hl_processor_has(uint32_t sets) {
    return sets == 0;
}
#endif

/* ---- Features of targets: those of x86 that can be asked for, by their numbers ---- */

static _Atomic(halide_can_use_target_features_t) custom_can_use;

static int has_feature(int feature) {
    const uint32_t avx512 = 1u << hl_has_avx512f | 1u << hl_has_avx512cd;
    const uint32_t skylake = avx512 | 1u << hl_has_avx512bw | 1u << hl_has_avx512dq | 1u << hl_has_avx512vl;
    const uint32_t cannonlake = skylake | 1u << hl_has_avx512ifma | 1u << hl_has_avx512vbmi;
    switch (feature) {
    case 5:
        return hl_processor_has(1u << hl_has_sse4_1);
    case 6:
        return hl_processor_has(1u << hl_has_avx);
    case 7:
        return hl_processor_has(1u << hl_has_avx2);
    case 9:
        return hl_processor_has(1u << hl_has_fma);
    case 11:
        return hl_processor_has(1u << hl_has_f16c);
    case 40:
    case 41:
        return hl_processor_has(avx512);
    case 42:
        return hl_processor_has(skylake);
    case 43:
        return hl_processor_has(cannonlake);
    case 44:
    case 45:
    case 46:
        return hl_processor_has(cannonlake | 1u << hl_has_avx512vnni | 1u << hl_has_avx512bitalg | 1u << hl_has_avx512vpopcntdq |
                                1u << hl_has_avx512bf16);
    default:
        return 1;
    }
}

HL_OVERRIDABLE int halide_default_can_use_target_features(int count, const uint64_t *features) {
    for (int i = 0; i < 64 * count; i++) {
        if (features[i / 64] >> (i % 64) & 1 && !has_feature(i)) {
            return 0;
        }
    }
    return 1;
}

HL_OVERRIDABLE int halide_can_use_target_features(int count, const uint64_t *features) {
    halide_can_use_target_features_t hook = atomic_load_explicit(&custom_can_use, memory_order_relaxed);
    return hook ? hook(count, features) : halide_default_can_use_target_features(count, features);
}

halide_can_use_target_features_t halide_set_custom_can_use_target_features(halide_can_use_target_features_t can_use) {
    halide_can_use_target_features_t previous = atomic_exchange(&custom_can_use, can_use);
    return previous ? previous : halide_default_can_use_target_features;
}
