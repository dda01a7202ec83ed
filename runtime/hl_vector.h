/* hl_vector.h: the few things generated code needs of the compiler besides vector types, in C and in C++. Includes nothing. */
#ifndef HL_VECTOR_H
#define HL_VECTOR_H

#ifdef __cplusplus
#define HL_EXTERN_C extern "C"
#else
#define HL_EXTERN_C extern
#endif
#ifdef _WIN32
#define HL_EXPORT_ATTRIBUTE __attribute__((dllexport))
#else
#define HL_EXPORT_ATTRIBUTE __attribute__((visibility("default")))
#endif
#ifdef __cplusplus
#define HL_EXPORT extern "C" HL_EXPORT_ATTRIBUTE
#else
#define HL_EXPORT HL_EXPORT_ATTRIBUTE
#endif
#define HL_RESTRICT __restrict__
/* Whether gcc compiles, whose builtins for instructions other compilers lack. */
#if defined(__GNUC__) && !defined(__clang__)
#define HL_GCC 1
#else
#define HL_GCC 0
#endif
#define HL_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Lanes of `a` where the mask `m` (integers, -1 or 0, as wide as the lanes) is set, of `b` elsewhere; the arguments are names.
 * GNU C++ has ?: on vectors, which compilers turn into min, max, abs and blend instructions; C gets the bits. */
#ifdef __cplusplus
#define HL_SELECT(type, m, a, b) ((m) ? (a) : (b))
#else
#define HL_SELECT(type, m, a, b) ((type)(((m) & (__typeof__(m))(a)) | (~(m) & (__typeof__(m))(b))))
#endif

#endif /* HL_VECTOR_H */
