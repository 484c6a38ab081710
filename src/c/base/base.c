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

/* Large blocks (workspaces, spectra) on huge pages where the system gives them: a large FFT is
 * bound by page faults and TLB misses otherwise. The last ones that were freed, up to 128 MB each,
 * are kept for the next of their size: the system clears each page that it gives, which takes as
 * long as several sweeps over it. */
#if defined(__linux__) && defined(MADV_HUGEPAGE)
enum { SPARES = 2 };
static const size_t PAGE = (size_t)2 << 20, LARGEST = (size_t)128 << 20;
static _Atomic(void *) spare[SPARES];

static void *spare_of(size_t bytes) {
    for (int i = 0; i < SPARES; i++) {
        void *block = atomic_exchange(&spare[i], NULL), *none = NULL;
        if (!block) continue;
        const size_t size = malloc_usable_size(block);
        if (size >= bytes && size - bytes <= bytes / 4 + PAGE) return block;
        if (!atomic_compare_exchange_strong(&spare[i], &none, block)) free(block);
    }
    return NULL;
}
bool lop_spares_free(void) {
    bool any = false;
    for (int i = 0; i < SPARES; i++) {
        void *block = atomic_exchange(&spare[i], NULL);
        any = any || block;
        free(block);
    }
    return any;
}
static void *huge_block(size_t bytes) {
    const size_t whole = (bytes + PAGE - 1) & ~(PAGE - 1);
    void *block = whole <= LARGEST ? spare_of(whole) : NULL;
    if (block) return block;
    block = aligned_alloc(PAGE, whole);
    if (block) (void)madvise(block, whole, MADV_HUGEPAGE);
    return block;
}
static void *plain_alloc(void *user, size_t bytes) {
    (void)user;
    const bool huge = bytes >= 2 * PAGE && bytes <= SIZE_MAX - PAGE;
    void *block = huge ? huge_block(bytes) : malloc(bytes);
    if (block || !lop_spares_free()) return block;
    return huge ? huge_block(bytes) : malloc(bytes);
}
static void plain_free(void *user, void *block) {
    (void)user;
    const size_t size = malloc_usable_size(block);
    if (size < 2 * PAGE || size > LARGEST || ((uintptr_t)block & (PAGE - 1))) {
        free(block);
        return;
    }
    for (int i = 0; i < SPARES && block; i++) {
        void *none = NULL;
        if (i == SPARES - 1)
            block = atomic_exchange(&spare[i], block);
        else if (atomic_compare_exchange_strong(&spare[i], &none, block))
            block = NULL;
    }
    free(block);
}
#else
bool lop_spares_free(void) { return false; }
static void *plain_alloc(void *user, size_t bytes) {
    (void)user;
    return malloc(bytes);
}
static void plain_free(void *user, void *block) {
    (void)user;
    free(block);
}
#endif
static void *plain_realloc(void *user, void *block, size_t bytes) {
    (void)user;
    void *other = realloc(block, bytes);
    return other || !lop_spares_free() ? other : realloc(block, bytes);
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
