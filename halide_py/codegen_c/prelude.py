"""The helpers that generated C may need; only those used are printed, so that small pipelines stay small.

Each entry: name -> (names it needs, text). Integer helpers have Halide's semantics: division and remainder whose remainder is never
negative, x/0 = x%0 = 0, shifts by any amount, no undefined behaviour (compiled with -fwrapv).
"""

from __future__ import annotations

HELPERS: dict[str, tuple[tuple[str, ...], str]] = {}


def _add(name: str, text: str, *needs: str) -> None:
    HELPERS[name] = needs, text


for _bits in (8, 16, 32, 64):
    _i, _u = f"int{_bits}_t", f"uint{_bits}_t"
    _add(f"hl_div_i{_bits}", f"""static inline {_i} hl_div_i{_bits}({_i} a, {_i} b) {{
    if (b == 0) return 0;
    if (b == -1) return ({_i})(0u - ({'uint64_t' if _bits == 64 else 'uint32_t'})a);
    {_i} q = ({_i})(a / b), r = ({_i})(a % b);
    return ({_i})(r < 0 ? (b > 0 ? q - 1 : q + 1) : q);
}}""")
    _add(f"hl_mod_i{_bits}", f"""static inline {_i} hl_mod_i{_bits}({_i} a, {_i} b) {{
    if (b == 0 || b == -1) return 0;
    {_i} r = ({_i})(a % b);
    return ({_i})(r < 0 ? (b > 0 ? r + b : r - b) : r);
}}""")
    _add(f"hl_div_u{_bits}", f"static inline {_u} hl_div_u{_bits}({_u} a, {_u} b) {{ return ({_u})(b ? a / b : 0); }}")
    _add(f"hl_mod_u{_bits}", f"static inline {_u} hl_mod_u{_bits}({_u} a, {_u} b) {{ return ({_u})(b ? a % b : 0); }}")
    _add(f"hl_cdiv_i{_bits}", f"static inline {_i} hl_cdiv_i{_bits}({_i} a, {_i} b) {{ return b == 0 ? 0 : b == -1 ? ({_i})(0 - a) : "
                              f"({_i})(a / b); }}")
    _add(f"hl_cmod_i{_bits}", f"static inline {_i} hl_cmod_i{_bits}({_i} a, {_i} b) {{ return b == 0 || b == -1 ? 0 : ({_i})(a % b); }}")
    for _s, _t in (("i", _i), ("u", _u)):
        _wide = "uint64_t" if _bits == 64 else "uint32_t"
        _add(f"hl_shl_{_s}{_bits}", f"""static inline {_t} hl_shl_{_s}{_bits}({_t} a, int64_t b) {{
    if (b < 0) return b <= -{_bits} ? ({_t})(a < 0 ? -1 : 0) : ({_t})(a >> -b);
    return b >= {_bits} ? ({_t})0 : ({_t})(({_wide})a << b);
}}""")
        _add(f"hl_shr_{_s}{_bits}", f"static inline {_t} hl_shr_{_s}{_bits}({_t} a, int64_t b) {{ return hl_shl_{_s}{_bits}(a, -b); "
                                    f"}}", f"hl_shl_{_s}{_bits}")
    _long = "ll" if _bits == 64 else ""
    _add(f"hl_clz_u{_bits}", f"static inline int hl_clz_u{_bits}({_u} a) {{ return a ? __builtin_clz{_long}(a) - "
                             f"{0 if _bits == 64 else 32 - _bits} : {_bits}; }}")
    _add(f"hl_ctz_u{_bits}", f"static inline int hl_ctz_u{_bits}({_u} a) {{ return a ? __builtin_ctz{_long}(a) : {_bits}; }}")
    _add(f"hl_popcount_u{_bits}", f"""static inline int hl_popcount_u{_bits}({_u} a) {{
#if (defined(__x86_64__) || defined(__i386__)) && !defined(__POPCNT__) /* the builtin would call a library */
    uint64_t x = a;
    x -= x >> 1 & 0x5555555555555555ull;
    x = (x & 0x3333333333333333ull) + (x >> 2 & 0x3333333333333333ull);
    return (int)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0full) * 0x0101010101010101ull >> 56);
#else
    return __builtin_popcount{_long}(a);
#endif
}}""")

for _s in "iu":
    _t, _product = f"{'' if _s == 'i' else 'u'}int64_t", f"{'' if _s == 'i' else 'unsigned '}__int128"
    _limits = (
        "p > INT64_MAX_ ? INT64_MAX_ : p < -INT64_MAX_ - 1 ? -INT64_MAX_ - 1 : (int64_t)p"
        if _s == "i"
        else "p >> 64 ? ~(uint64_t)0 : (uint64_t)p"
    )
    _add(f"hl_mulshr_{_s}64", f"""static inline {_t} hl_mulshr_{_s}64({_t} a, {_t} b, uint64_t shift, int rounding) {{
    __extension__ {_product} p = ({_product})a * b;
    const int half = rounding && shift ? (shift <= 128 ? (int)(p >> (shift - 1)) & 1 : p < 0) : 0;
    p = (shift < 128 ? p >> shift : p < 0 ? ({_product})-1 : 0) + half;
    return {_limits.replace('INT64_MAX_', '9223372036854775807ll')};
}}""")
_add("hl_mod_f32", "static inline float hl_mod_f32(float a, float b) { return a - b * __builtin_floorf(a / b); }")
_add("hl_mod_f64", "static inline double hl_mod_f64(double a, double b) { return a - b * __builtin_floor(a / b); }")
for _bits, _f in ((32, "float"), (64, "double")):
    for _to in (8, 16, 32, 64):
        for _s in "iu":
            _t = f"{'int' if _s == 'i' else 'uint'}{_to}_t"
            _wide_int = "int64_t" if _s == "i" or _to < 64 else "uint64_t"
            _limit = "9223372036854774784.0" if _wide_int == "int64_t" else "18446744073709549568.0"
            _low = "-9223372036854775808.0" if _wide_int == "int64_t" else "0.0"
            _add(f"hl_{_s}{_to}_of_f{_bits}", f"""static inline {_t} hl_{_s}{_to}_of_f{_bits}({_f} a) {{
    return a >= {_low} && a <= {_limit} ? ({_t})({_wide_int})a : ({_t})0;
}}""")
_add("hl_f32_of_f16", """static inline float hl_f32_of_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 1023u, bits;
    float f;
    if (e == 0) {
        f = (float)m * 5.9604644775390625e-8f;
        __builtin_memcpy(&bits, &f, 4);
        bits |= sign;
    } else {
        bits = sign | (e == 31 ? 0x7f800000u : (e + 112u) << 23) | m << 13;
    }
    __builtin_memcpy(&f, &bits, 4);
    return f;
}""")
_add("hl_f16_of_f32", """static inline uint16_t hl_f16_of_f32(float f) {
    uint32_t bits;
    __builtin_memcpy(&bits, &f, 4);
    uint32_t sign = (bits >> 16) & 0x8000u, a = bits & 0x7fffffffu;
    if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (a >= 0x47800000u) return (uint16_t)(sign | 0x7c00u);
    if (a < 0x38800000u) {
        float g;
        __builtin_memcpy(&g, &a, 4);
        g += 0.5f; /* units of 2^-24 in the last place, rounded to even by the addition */
        uint32_t r;
        __builtin_memcpy(&r, &g, 4);
        return (uint16_t)(sign | (r - 0x3f000000u));
    }
    a += 0xc8000fffu + ((a >> 13) & 1u);
    return (uint16_t)(sign | a >> 13);
}""")
_add("hl_round_f16", "static inline float hl_round_f16(float f) { return "
                     "hl_f32_of_f16(hl_f16_of_f32(f)); }", "hl_f32_of_f16", "hl_f16_of_f32")
_add("hl_f32_of_bf16", """static inline float hl_f32_of_bf16(uint16_t h) {
    uint32_t bits = (uint32_t)h << 16;
    float f;
    __builtin_memcpy(&f, &bits, 4);
    return f;
}""")
_add("hl_bf16_of_f32", """static inline uint16_t hl_bf16_of_f32(float f) {
    uint32_t bits;
    __builtin_memcpy(&bits, &f, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 64u);
    return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}""")
_add("hl_round_bf16", "static inline float hl_round_bf16(float f) { return "
                      "hl_f32_of_bf16(hl_bf16_of_f32(f)); }", "hl_f32_of_bf16", "hl_bf16_of_f32")
for _name in ("f16", "bf16"):
    _add(f"hl_{_name}_of_f64", f"""static inline float hl_{_name}_of_f64(double d) {{
    float f = (float)d; /* rounded to odd: then rounding again is rounding once */
    uint32_t bits;
    __builtin_memcpy(&bits, &f, 4);
    if ((double)f != d && d == d && !(bits & 1u) && (bits & 0x7fffffffu) != 0x7f800000u) {{
        bits = ((double)f > d) == (d > 0) ? bits - 1u : bits + 1u;
        if ((bits & 0x7fffffffu) == 0x7fffffffu) bits = (d < 0 ? 0x80000001u : 1u);
        __builtin_memcpy(&f, &bits, 4);
    }}
    return hl_round_{_name}(f);
}}""", f"hl_round_{_name}")
_add("hl_scratch", """struct hl_scratch {
    void *memory, *user_context;
};
static inline void hl_scratch_end(struct hl_scratch *s) {
    if (s->memory) halide_free(s->user_context, s->memory);
}
#define HL_SCRATCH __attribute__((cleanup(hl_scratch_end)))""")
_add("hl_profiled", """static inline void hl_profile_end(struct hl_profile_func **before) { hl_profile_leave(*before); }
#define HL_PROFILED __attribute__((cleanup(hl_profile_end), unused))
#define HL_PROFILED_RUN __attribute__((cleanup(hl_profile_finish), unused))
#define HL_PROFILED_MEMORY __attribute__((cleanup(hl_profile_free), unused))""")
_add("hl_lock", """#ifdef __cplusplus
extern "C"
#endif
int sched_yield(void);
static char hl_locks[256];
static char *hl_lock_of(const void *element) {
    char *lock = hl_locks + ((uint64_t)(uintptr_t)element * 0x9e3779b97f4a7c15ull >> 56);
    for (int spins = 0; __atomic_test_and_set(lock, __ATOMIC_ACQUIRE); spins++)
        if (spins > 64) sched_yield();
    return lock;
}
static inline void hl_unlock(char *const *lock) { __atomic_clear(*lock, __ATOMIC_RELEASE); }
#define HL_LOCK __attribute__((cleanup(hl_unlock)))""")
_add("hl_times", """static inline int64_t hl_times(int64_t a, int64_t b) {
    int64_t r;
    return a <= 0 || b <= 0 ? 0 : __builtin_mul_overflow(a, b, &r) ? INT64_C_MAX : r;
}""".replace("INT64_C_MAX", "9223372036854775807ll"))
_add("hl_bytes", """static inline size_t hl_bytes(int64_t count, int64_t padding, int64_t size) {
    int64_t r;
    if (count < 0) count = 0;
    return __builtin_add_overflow(count, padding, &r) || __builtin_mul_overflow(r, size, &r) ? (size_t)-1 / 4 : (size_t)r;
}""")


def helpers(names: set[str]) -> str:
    """The text of the helpers named, with what they need, each once and in order of need."""
    out: list[str] = []
    done: set[str] = set()

    def put(name: str) -> None:
        if name in done:
            return
        done.add(name)
        needs, text = HELPERS[name]
        for other in needs:
            put(other)
        out.append(text)

    for name in sorted(names):
        put(name)
    return "\n".join(out) + ("\n" if out else "")
