/* The independent witness of the ledger: preloaded, it counts what the C library's copy and allocation routines are
 * asked for by one module, found by name, with the embedded SQLite's own code left out.
 *
 * It knows nothing of the ledger and is not called by the code under test. A call counts when its return address lies
 * in the module's text. Configuration by environment:
 *   WITNESS_MODULE   part of the path of the module, such as "_core" or "onecopy"
 *   WITNESS_EXCLUDE  "START-END" (hex offsets into the module): callers there do not count (bundled SQLite)
 *   WITNESS_DUMP     file: counts are written there at exit, for programs that cannot be asked
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGE 4096 /* a copy or an allocation of at least this many bytes is counted apart */

struct counts {
    uint64_t copies, copied_bytes, large_copies, large_copied_bytes;
    uint64_t allocations, allocated_bytes, large_allocations, large_allocated_bytes;
};

static struct {
    _Atomic uint64_t copies, copied_bytes, large_copies, large_copied_bytes;
    _Atomic uint64_t allocations, allocated_bytes, large_allocations, large_allocated_bytes;
} now;

static _Atomic uintptr_t text_start, text_end, skip_start, skip_end;

static int look(struct dl_phdr_info *info, size_t size, void *name) {
    (void)size;
    const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
    char self[4096];
    if (!strcmp(path, "/proc/self/exe")) {
        /* the main program has no name here */
        extern char *program_invocation_name;
        snprintf(self, sizeof self, "%s", program_invocation_name);
        path = self;
    }
    if (!strstr(path, (const char *)name)) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            unsigned long long from = 0, to = 0;
            const char *skip = getenv("WITNESS_EXCLUDE");
            if (skip && sscanf(skip, "%llx-%llx", &from, &to) == 2) {
                skip_start = info->dlpi_addr + from;
                skip_end = info->dlpi_addr + to;
            }
            text_end = start + info->dlpi_phdr[i].p_memsz;
            text_start = start;
            return 1;
        }
    return 0;
}

/* Finds the module (it may be loaded late, by import). Returns 1 when it is known. */
int witness_find(void) {
    const char *name = getenv("WITNESS_MODULE");
    if (!name) return 0;
    dl_iterate_phdr(look, (void *)name);
    return text_start != 0;
}

void witness_reset(void) { memset((void *)&now, 0, sizeof now); }

void witness_read(struct counts *out) {
    *out = (struct counts){now.copies, now.copied_bytes, now.large_copies, now.large_copied_bytes,
                           now.allocations, now.allocated_bytes, now.large_allocations, now.large_allocated_bytes};
}

static inline int ours(void *caller) {
    uintptr_t at = (uintptr_t)caller;
    return at - text_start < text_end - text_start && at - skip_start >= skip_end - skip_start;
}

static inline void copied(void *caller, size_t n) {
    if (!text_start || !ours(caller)) return;
    now.copies++;
    now.copied_bytes += n;
    if (n >= LARGE) {
        now.large_copies++;
        now.large_copied_bytes += n;
    }
}

static inline void allocated(void *caller, size_t n) {
    if (!text_start || !ours(caller)) return;
    now.allocations++;
    now.allocated_bytes += n;
    if (n >= LARGE) {
        now.large_allocations++;
        now.large_allocated_bytes += n;
    }
}

/* The copies themselves are byte loops that the compiler must not turn back into calls of memcpy. */
__attribute__((optimize("no-tree-loop-distribute-patterns"))) static void *forward(void *to, const void *from, size_t n) {
    unsigned char *d = to;
    const unsigned char *s = from;
    for (size_t i = 0; i < n; i++) d[i] = s[i];
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    copied(__builtin_return_address(0), n);
    return forward(to, from, n);
}

__attribute__((optimize("no-tree-loop-distribute-patterns"))) void *memmove(void *to, const void *from, size_t n) {
    copied(__builtin_return_address(0), n);
    unsigned char *d = to;
    const unsigned char *s = from;
    if (d <= s || d >= s + n) return forward(to, from, n);
    while (n--) d[n] = s[n];
    return to;
}

extern void *__libc_malloc(size_t), *__libc_realloc(void *, size_t), *__libc_calloc(size_t, size_t);

void *malloc(size_t n) {
    allocated(__builtin_return_address(0), n);
    return __libc_malloc(n);
}

void *realloc(void *p, size_t n) {
    allocated(__builtin_return_address(0), n);
    return __libc_realloc(p, n);
}

void *calloc(size_t n, size_t size) {
    allocated(__builtin_return_address(0), n * size);
    return __libc_calloc(n, size);
}

__attribute__((destructor)) static void dump(void) {
    const char *path = getenv("WITNESS_DUMP");
    FILE *f = path ? fopen(path, "w") : NULL;
    if (!f) return;
    fprintf(f, "{\"copies\": %llu, \"copied_bytes\": %llu, \"large_allocated_bytes\": %llu}\n",
            (unsigned long long)now.copies, (unsigned long long)now.copied_bytes,
            (unsigned long long)now.large_allocated_bytes);
    fclose(f);
}

__attribute__((constructor)) static void start(void) { witness_find(); }
