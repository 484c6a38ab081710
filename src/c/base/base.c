/* base.c: status names, error text, the counted allocator, the test generator. Cost: negligible. */
#if defined(__linux__)
#define _DEFAULT_SOURCE 1 /* madvise, malloc_usable_size */
#endif

#include "base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__linux__)
#include <malloc.h>
#include <sys/mman.h>
#endif

typedef struct status_row {
    lop_status status;
    const char *name, *exception, *text;
} status_row;

static const status_row rows[] = {
#define LOP_STATUS(name, value, exc, text) {LOP_##name, #name, exc, text},
#include "status.def"
#undef LOP_STATUS
};

static const status_row *row_of(lop_status status) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status) return &rows[i];
    return &rows[sizeof rows / sizeof rows[0] - 1];
}

const char *lop_status_name(lop_status status) { return row_of(status)->name; }
const char *lop_status_exception(lop_status status) { return row_of(status)->exception; }

lop_status lop_fail(lop_err *err, lop_status status, const char *format, ...) {
    if (!err) return status;
    err->status = status;
    if (!format) {
        snprintf(err->text, sizeof err->text, "%s", row_of(status)->text);
        return status;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return status;
}

/* Large blocks (workspaces, spectra, results) on huge pages where the system gives them: a large
 * FFT is bound by page faults and TLB misses otherwise. Those that are freed are kept for the next
 * of their size, the oldest of them go: the system clears each page that it gives, which takes as
 * long as several sweeps over it. Nobody waits: where another thread is at the table (or was, when
 * the process was forked), memory comes from and goes to the system. Not where a sanitizer is to
 * see what is used after it was freed. */
#if defined(__SANITIZE_ADDRESS__)
#define KEEPS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KEEPS 0
#endif
#endif
#if !defined(KEEPS) && defined(__linux__) && defined(MADV_HUGEPAGE)
#define KEEPS 1
#endif

#if KEEPS
enum { SPARES = 128 };
static const size_t PAGE = (size_t)2 << 20, LEAST = (size_t)64 << 10;
typedef struct spare {
    void *block; /* NULL: none */
    size_t size;
    uint64_t since;
} spare;
static struct spares {
    atomic_flag busy;
    _Atomic size_t limit, bytes; /* bytes: written by who is at the table */
    uint64_t now;
    spare at[SPARES];
} spares = {.busy = ATOMIC_FLAG_INIT, .limit = (size_t)256 << 20};

static bool enter(void) {
    return !atomic_flag_test_and_set_explicit(&spares.busy, memory_order_acquire);
}
static void leave(void) { atomic_flag_clear_explicit(&spares.busy, memory_order_release); }
static void *take(spare *s) {
    void *block = s->block;
    spares.bytes -= s->size;
    *s = (spare){NULL, 0, 0};
    return block;
}
/* The smallest that is not much too large, of equal ones the last. */
static void *spare_of(size_t bytes) {
    if (spares.bytes < bytes || !enter()) return NULL;
    const size_t most = bytes + bytes / 4 + 4096;
    spare *best = NULL;
    for (spare *s = spares.at; s < spares.at + SPARES; s++)
        if (s->size >= bytes && s->size <= most &&
            (!best || s->size < best->size || (s->size == best->size && s->since > best->since)))
            best = s;
    void *block = best ? take(best) : NULL;
    leave();
    return block;
}
/* Gives the oldest back until as many bytes and a place more are there. */
static spare *make_room(size_t bytes, size_t limit) {
    for (;;) {
        spare *none = NULL, *oldest = NULL;
        for (spare *s = spares.at; s < spares.at + SPARES; s++) {
            if (!s->block)
                none = s;
            else if (!oldest || s->since < oldest->since)
                oldest = s;
        }
        if (none && (!oldest || spares.bytes + bytes <= limit)) return none;
        free(take(oldest));
    }
}
bool lop_spares_free(void) {
    if (!enter()) return false;
    const bool any = spares.bytes > 0;
    (void)make_room(0, 0);
    leave();
#ifdef __GLIBC__
    if (any) (void)malloc_trim(0); /* what lies between others' blocks goes to the system too */
#endif
    return any;
}
void lop_spares_bound(int64_t bytes) {
    spares.limit = bytes < 0 ? 0 : (size_t)bytes;
    if (!enter()) return; /* who gives next sees it */
    (void)make_room(0, spares.limit);
    leave();
}
int64_t lop_spares_bytes(void) { return (int64_t)spares.bytes; }

void *lop_block(size_t bytes) {
    if (bytes < LEAST) return malloc(bytes);
    void *block = spare_of(bytes);
    if (block || bytes < 2 * PAGE) return block ? block : malloc(bytes);
    if (posix_memalign(&block, PAGE, bytes)) return NULL;
    (void)madvise(block, bytes & ~(PAGE - 1), MADV_HUGEPAGE); /* what is left takes small ones */
    return block;
}
void lop_block_free(void *block) {
    const size_t size = malloc_usable_size(block);
    if (size >= LEAST && size <= spares.limit / 2 && enter()) {
        *make_room(size, spares.limit) = (spare){block, size, ++spares.now};
        spares.bytes += size;
        block = NULL;
        leave();
    }
    free(block);
}
#else
bool lop_spares_free(void) { return false; }
void lop_spares_bound(int64_t bytes) { (void)bytes; }
int64_t lop_spares_bytes(void) { return 0; }
void *lop_block(size_t bytes) { return malloc(bytes); }
void lop_block_free(void *block) { free(block); }
#endif
void *lop_block_resize(void *block, size_t bytes) {
    void *other = realloc(block, bytes);
    return other || !lop_spares_free() ? other : realloc(block, bytes);
}

static void *plain_alloc(void *user, size_t bytes) {
    (void)user;
    void *block = lop_block(bytes);
    return block || !lop_spares_free() ? block : lop_block(bytes);
}
static void plain_free(void *user, void *block) {
    (void)user;
    lop_block_free(block);
}
static void *plain_realloc(void *user, void *block, size_t bytes) {
    (void)user;
    return lop_block_resize(block, bytes);
}
void lop_ctx_init(lop_ctx *ctx, const lop_hooks *hooks) {
    static const lop_hooks plain = {plain_alloc, plain_realloc, plain_free, NULL};
    ctx->hooks = hooks ? *hooks : plain;
    atomic_init(&ctx->live, 0);
    ctx->next_serial = 1;
    ctx->costs = NULL;
    ctx->memory_limit = INT64_MAX;
    ctx->check_plans = false;
}

void *lop_alloc(lop_ctx *ctx, size_t bytes) {
    void *block = ctx->hooks.alloc(ctx->hooks.user, bytes ? bytes : 1);
    if (block) atomic_fetch_add_explicit(&ctx->live, 1, memory_order_relaxed);
    return block;
}

void *lop_calloc(lop_ctx *ctx, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    void *block = lop_alloc(ctx, bytes);
    if (block) memset(block, 0, bytes);
    return block;
}

void *lop_realloc(lop_ctx *ctx, void *block, size_t bytes) {
    if (!block) return lop_alloc(ctx, bytes);
    return ctx->hooks.realloc(ctx->hooks.user, block, bytes ? bytes : 1);
}

void lop_free(lop_ctx *ctx, void *block) {
    if (!block) return;
    atomic_fetch_sub_explicit(&ctx->live, 1, memory_order_relaxed);
    ctx->hooks.free(ctx->hooks.user, block);
}

uint64_t lop_rng_next(lop_rng *rng) {
    uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double lop_rng_normal(lop_rng *rng) { /* sum of 4 uniforms, scaled to variance 1 */
    double sum = 0;
    for (int i = 0; i < 4; i++) sum += (double)(lop_rng_next(rng) >> 11) * 0x1p-53 - 0.5;
    return sum * 1.7320508075688772;
}

int64_t lop_rng_range(lop_rng *rng, int64_t lo, int64_t hi) {
    return lo + (int64_t)(lop_rng_next(rng) % (uint64_t)(hi - lo));
}
