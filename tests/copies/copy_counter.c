/* An independent counter of copies, to check the ledger: preloaded, it counts calls of the C library's copy and
 * allocation functions by one module, which is found by name, without the code of the embedded SQLite.
 *
 * It is independent of the ledger, and the code under test does not call it. A call counts if its return address is in
 * the module's text. A block that `realloc` moves is a copy of its contents, unless both blocks came from mmap (then
 * pages are moved, not bytes); it counts if the module calls, or Python, in whose objects the module writes. Bytes that
 * the module passes to the kernel (write, send and similar calls) count too: they show how much was sent.
 *
 * Not seen: copies of a few to a few hundred bytes that the compiler has inlined. So the payload of a test is long
 * cells, and copies below 64 bytes are ignored: without masked loads, kernels copy the last bytes of a text into a
 * block.
 *
 * Configuration by environment:
 *   COPY_COUNTER_MODULE   part of the path of the module, such as "_core" or "onecopy"
 *   COPY_COUNTER_EXCLUDE  "START-END" (hex offsets into the module): callers there do not count (bundled SQLite)
 *   COPY_COUNTER_DUMP     folder: each process writes its counts there at exit, into PID.json, for programs that do not
 *                         report them. A child starts with counts of 0, after a fork with or without exec.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define BLOCK 64   /* copies below this are not counted: the tail of a text, never one */
#define LARGE 4096 /* a copy or an allocation of at least this many bytes is counted separately */

#define COUNTS(type)                                                                                                   \
    type copies, copied_bytes, large_copies, large_copied_bytes, moves, moved_bytes;                                   \
    type allocations, allocated_bytes, large_allocations, large_allocated_bytes;                                       \
    type mapped_bytes, sent_bytes

struct counts {
    COUNTS(uint64_t);
};

static struct {
    COUNTS(_Atomic uint64_t);
} now;

static _Atomic uintptr_t text_start, text_end, skip_start, skip_end;

/* Python's own code: the main program, or its library. */
static struct {
    uintptr_t start, end;
} python[2];

static int look(struct dl_phdr_info *info, size_t size, void *name) {
    (void)size;
    const char *path = info->dlpi_name && *info->dlpi_name ? info->dlpi_name : "/proc/self/exe";
    char self[4096];
    if (!strcmp(path, "/proc/self/exe")) {
        /* the main program has an empty name here */
        extern char *program_invocation_name;
        snprintf(self, sizeof self, "%s", program_invocation_name);
        path = self;
    }
    int is_main = !info->dlpi_name || !*info->dlpi_name;
    if (is_main || strstr(path, "libpython")) {
        for (int i = 0; i < info->dlpi_phnum; i++)
            if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
                python[!is_main].start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
                python[!is_main].end = python[!is_main].start + info->dlpi_phdr[i].p_memsz;
            }
    }
    if (!strstr(path, (const char *)name)) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
            uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            unsigned long long from = 0, to = 0;
            const char *skip = getenv("COPY_COUNTER_EXCLUDE");
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

/* Finds the module (it may be loaded late, by import). Returns 1 when it is found. */
int copy_counter_find(void) {
    const char *name = getenv("COPY_COUNTER_MODULE");
    if (!name) return 0;
    dl_iterate_phdr(look, (void *)name);
    return text_start != 0;
}

void copy_counter_reset(void) { memset((void *)&now, 0, sizeof now); }

void copy_counter_read(struct counts *out) {
    *out = (struct counts){now.copies, now.copied_bytes, now.large_copies, now.large_copied_bytes, now.moves,
                           now.moved_bytes, now.allocations, now.allocated_bytes, now.large_allocations,
                           now.large_allocated_bytes, now.mapped_bytes, now.sent_bytes};
}

static inline int ours(void *caller) {
    uintptr_t at = (uintptr_t)caller;
    return at - text_start < text_end - text_start && at - skip_start >= skip_end - skip_start;
}

static inline void copied(void *caller, size_t n) {
    if (n < BLOCK || !text_start || !ours(caller)) return;
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

static inline int of_python(void *caller) {
    uintptr_t at = (uintptr_t)caller;
    return at - python[0].start < python[0].end - python[0].start ||
           at - python[1].start < python[1].end - python[1].start;
}

static inline ssize_t sent(void *caller, ssize_t n) {
    if (n > 0 && text_start && ours(caller)) now.sent_bytes += (uint64_t)n;
    return n;
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
extern void *__libc_memalign(size_t, size_t);

/* glibc: the second bit of the size before a block is set if it came from mmap. */
static inline int from_mmap(void *p) { return (((size_t *)p)[-1] & 2) != 0; }

void *malloc(size_t n) {
    allocated(__builtin_return_address(0), n);
    return __libc_malloc(n);
}

void *realloc(void *p, size_t n) {
    void *caller = __builtin_return_address(0);
    allocated(caller, n);
    if (!p || !text_start || !(ours(caller) || of_python(caller))) return __libc_realloc(p, n);
    size_t held = malloc_usable_size(p);
    int paged = from_mmap(p);
    uintptr_t before = (uintptr_t)p;
    void *q = __libc_realloc(p, n);
    held = held < n ? held : n;
    if (q && (uintptr_t)q != before && held >= LARGE && !(paged && from_mmap(q))) {
        now.moves++;
        now.moved_bytes += held;
    }
    return q;
}

void *calloc(size_t n, size_t size) {
    allocated(__builtin_return_address(0), n * size);
    return __libc_calloc(n, size);
}

int posix_memalign(void **out, size_t alignment, size_t n) {
    allocated(__builtin_return_address(0), n);
    *out = __libc_memalign(alignment, n);
    return *out ? 0 : 12; /* ENOMEM */
}

void *aligned_alloc(size_t alignment, size_t n) {
    allocated(__builtin_return_address(0), n);
    return __libc_memalign(alignment, n);
}

static inline void mapped(void *caller, size_t n) {
    if (text_start && ours(caller)) now.mapped_bytes += n;
}

void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    mapped(__builtin_return_address(0), n);
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}

/* Moved pages are neither copied nor new. */
void *mremap(void *at, size_t before, size_t n, int flags, ...) {
    va_list more;
    va_start(more, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(more, void *) : NULL;
    va_end(more);
    if (n > before) mapped(__builtin_return_address(0), n - before);
    return (void *)syscall(SYS_mremap, at, before, n, flags, to);
}

/* Direct system calls, without the C library's wrappers. */
ssize_t write(int fd, const void *bytes, size_t n) {
    return sent(__builtin_return_address(0), syscall(SYS_write, fd, bytes, n));
}

ssize_t writev(int fd, const struct iovec *parts, int n) {
    return sent(__builtin_return_address(0), syscall(SYS_writev, fd, parts, n));
}

ssize_t send(int fd, const void *bytes, size_t n, int flags) {
    return sent(__builtin_return_address(0), syscall(SYS_sendto, fd, bytes, n, flags, NULL, 0));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    return sent(__builtin_return_address(0), syscall(SYS_sendmsg, fd, message, flags));
}

/* A module that is loaded late counts from its first call on. */
void *dlopen(const char *path, int flags) {
    static void *(*next)(const char *, int);
    if (!next) next = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
    void *made = next(path, flags);
    if (made && !text_start) copy_counter_find();
    return made;
}

__attribute__((destructor)) static void dump(void) {
    const char *directory = getenv("COPY_COUNTER_DUMP");
    char path[4096];
    if (!directory) return;
    snprintf(path, sizeof path, "%s/%d.json", directory, (int)getpid());
    FILE *f = fopen(path, "w");
    if (!f) return;
#define SAY(name, after) fprintf(f, "\"" #name "\": %llu" after, (unsigned long long)now.name)
    fputs("{", f);
    SAY(copies, ", ");
    SAY(copied_bytes, ", ");
    SAY(large_copies, ", ");
    SAY(large_copied_bytes, ", ");
    SAY(moves, ", ");
    SAY(moved_bytes, ", ");
    SAY(allocations, ", ");
    SAY(allocated_bytes, ", ");
    SAY(large_allocations, ", ");
    SAY(large_allocated_bytes, ", ");
    SAY(mapped_bytes, ", ");
    SAY(sent_bytes, "}\n");
    fclose(f);
}

__attribute__((constructor)) static void start(void) {
    pthread_atfork(NULL, NULL, copy_counter_reset);
    copy_counter_find();
}
