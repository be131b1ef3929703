/* Preloaded: how much of the heap is in use, and the most that was, to the byte as the C library hands it out.
 *
 * With PYTHONMALLOC=malloc every object of Python's is seen, and what an extension allocates beside them.
 */
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <errno.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static atomic_llong live, peak;

static void add(long long n)
{
    long long now = atomic_fetch_add(&live, n) + n, most = atomic_load(&peak);
    while (now > most && !atomic_compare_exchange_weak(&peak, &most, now))
        ;
}

static void *given(void *p)
{
    if (p)
        add((long long)malloc_usable_size(p));
    return p;
}

void *malloc(size_t n) { return given(__libc_malloc(n)); }
void *calloc(size_t n, size_t size) { return given(__libc_calloc(n, size)); }
void *memalign(size_t alignment, size_t n) { return given(__libc_memalign(alignment, n)); }
void *aligned_alloc(size_t alignment, size_t n) { return given(__libc_memalign(alignment, n)); }

int posix_memalign(void **into, size_t alignment, size_t n)
{
    void *p = given(__libc_memalign(alignment, n));
    if (!p)
        return ENOMEM;
    *into = p;
    return 0;
}

/* A block that moves is counted once: large ones are remapped by the kernel, and no page is there twice. */
void *realloc(void *old, size_t n)
{
    long long before = old ? (long long)malloc_usable_size(old) : 0;
    void *p = __libc_realloc(old, n);
    if (p)
        add((long long)malloc_usable_size(p) - before);
    else if (old && n == 0)
        add(-before);
    return p;
}

void free(void *p)
{
    if (p)
        add(-(long long)malloc_usable_size(p));
    __libc_free(p);
}

long long heap_live(void) { return atomic_load(&live); }
long long heap_peak(void) { return atomic_load(&peak); }
void heap_reset(void) { atomic_store(&peak, atomic_load(&live)); }
