/* system.c: what the systems name differently: memory on a boundary, processors, files, libraries that stay. */
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "hl_internal.h"

#include <fcntl.h>
#include <stdlib.h>

#ifdef _WIN32
#include <io.h>
#include <malloc.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

/* Ending threads while the loader holds its lock would wait forever. */
void hl_stay_loaded(void) {
    HMODULE me;
    GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, (LPCSTR)(void *)hl_stay_loaded, &me);
}

int hl_processors(void) {
    DWORD n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return n > 0 ? (int)n : 1;
}

int hl_open_trace(const char *name) {
    return _open(name, _O_WRONLY | _O_CREAT | _O_APPEND | _O_BINARY | _O_NOINHERIT, 0666);
}

void *hl_aligned_alloc(size_t alignment, size_t size) {
    return _aligned_malloc(size, alignment);
}

void hl_aligned_free(void *memory) {
    _aligned_free(memory);
}

#else
#include <sched.h>
#include <unistd.h>

void hl_stay_loaded(void) {
}

int hl_processors(void) {
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) {
        return CPU_COUNT(&set);
    }
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

int hl_open_trace(const char *name) {
    return open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

void *hl_aligned_alloc(size_t alignment, size_t size) {
    void *memory = NULL;
    return posix_memalign(&memory, alignment, size) ? NULL : memory;
}

void hl_aligned_free(void *memory) {
    free(memory);
}
#endif
