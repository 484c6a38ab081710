/* k_spgemm.c: sparse times sparse, 13 dtypes x 2 index types.
 *
 * C[i, :] = sum_p a[i, k_p] B[k_p, :], row by row (Gustavson 1978), in two passes: the first
 * counts, so that the size is known before anything is stored, the second fills. A row is collected
 * in an array as long as a row of B, with a byte a column that says where (read 64 at a time,
 * which gives the columns in order), where it takes at least one product for 64 columns; else in a
 * hash table of twice its products, whose keys are sorted (by radix where many).
 *
 * Cost: 7 ns a product, counting 4 more (20,000 x 10,000, 20 entries a row, A A^T; EPYC,
 * 2026-11-22, benchmarks/sparse_products.py): bound by the caches. Of A A^T only the upper triangle
 * is computed: each row of A^T is sorted, and what lies left of the diagonal is passed by a pointer
 * that only moves on. */
#include "k_spgemm.h"
#include "k_clones.h"

#include <math.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Where the parts of `work` lie. */
typedef struct work_parts {
    void *sum;           /* b.n elements, zero between rows */
    unsigned char *mark; /* b.n bytes and up to 64 more, likewise */
    void *key, *value;   /* the table */
    void *list, *other;  /* keys found */
    int64_t *past;       /* upper: how far each row of b is passed */
} work_parts;

static inline int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

/* Does a row of this many products go to the dense accumulator? Reading the marks of 64 columns
 * costs about what hashing and sorting one product costs more. */
static inline bool is_dense(const lopk_spgemm *g, int64_t bound) { return bound >= g->b.n / 64; }

/* Of a table for n keys: at most half full. */
static inline int table_bits(int64_t n) {
    int bits = 3;
    while (((int64_t)1 << bits) < 2 * n) bits++;
    return bits;
}

/* Marks from column `from` on, which are zero then. */
static int64_t count_marks(unsigned char *mark, int64_t from, int64_t n) {
    int64_t count = 0;
    for (int64_t at = from; at < n;) {
        const int64_t end = at_most(at + 255, n);
        unsigned char sum = 0;
        for (; at < end; at++) sum = (unsigned char)(sum + (mark[at] >> 7));
        count += sum;
    }
    memset(mark + from, 0, (size_t)(n - from));
    return count;
}

/* GCC packs columns into vectors before it stores them, which takes 1.2 times as long. */
#if defined(__GNUC__) && !defined(__clang__)
#define SCALAR __attribute__((optimize("no-tree-slp-vectorize")))
#else
#define SCALAR
#endif
enum { MARK = 0x80 }; /* the bit that a vector of bytes gives at once */
enum { FEW = 64 };    /* hashed rows up to this are sorted by counting */
#define TOP_BIT ((uint64_t)1 << 63)

/* 64 marks as bits. */
static inline __attribute__((always_inline)) uint64_t mark_bits(const unsigned char *mark) {
    uint64_t bits = 0;
#ifdef __SSE2__
    for (int t = 0; t < 64; t += 16) {
        const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(mark + t));
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(v) << t;
    }
#else
    for (int t = 0; t < 64; t++) bits |= (uint64_t)(mark[t] >> 7) << t;
#endif
    return bits;
}

/* A heap of the `most` largest so far, the smallest at its top; gives how many there are. */
static inline int64_t heap_push(double *heap, int64_t n, int64_t most, double v) {
    int64_t at;
    if (n < most) {
        for (at = n; at > 0 && heap[(at - 1) / 2] > v; at = (at - 1) / 2)
            heap[at] = heap[(at - 1) / 2];
        heap[at] = v;
        return n + 1;
    }
    if (!n || v <= heap[0]) return n;
    for (at = 0;;) {
        int64_t child = 2 * at + 1;
        if (child >= n) break;
        if (child + 1 < n && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= v) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = v;
    return n;
}

#define IX int32_t
#define I_(name) LOPK_CAT(name, _i32)
#include "k_spgemm_i.h"
#undef IX
#undef I_
#define IX int64_t
#define I_(name) LOPK_CAT(name, _i64)
#include "k_spgemm_i.h"
#undef IX
#undef I_

#define LOPK_TEMPLATE "k_spgemm_t.h"
#include "k_each.h"

typedef bool (*fill_fn)(const lopk_spgemm *g, int64_t lo, int64_t hi, const int64_t *bound,
                        const work_parts *w, const int64_t *at, void *index, void *data,
                        int64_t *count);
typedef bool (*transpose_fn)(const lopk_csr *a, bool conj, void *ptr, void *index, void *data);
typedef bool (*sampled_fn)(const lopk_spgemm *g, const lopk_csr *mask, int64_t lo, int64_t hi,
                           void *sums, unsigned char *mark, const int64_t *at, void *index,
                           void *data, int64_t *count);
typedef bool (*keep_fn)(int64_t m, const int64_t *at, void *index, void *data, double least,
                        int64_t most, double *heap, int64_t *count);
typedef bool (*meet_fn)(int64_t m, const int64_t *at, void *index, void *data, const lopk_csr *mask,
                        int64_t lo, int64_t *count);
typedef bool (*mirror_fn)(int64_t m, bool conj, const int64_t *at, const void *index,
                          const void *data, const int64_t *lower, const int64_t *to, int64_t *next,
                          void *toindex, void *todata);

#define PAIR(f, dt) [LOP_##dt] = {f##_##dt##_i32, f##_##dt##_i64}
#define TABLE(type, table, f)                                                                      \
    static const type table[LOP_NDTYPE][2] = {                                                     \
        PAIR(f, b8),  PAIR(f, i8),  PAIR(f, u8),  PAIR(f, i16), PAIR(f, u16),                      \
        PAIR(f, i32), PAIR(f, u32), PAIR(f, i64), PAIR(f, u64), PAIR(f, f32),                      \
        PAIR(f, f64), PAIR(f, c64), PAIR(f, c128)};
TABLE(fill_fn, fill_table, fill)
TABLE(transpose_fn, transpose_table, transpose)
TABLE(sampled_fn, sampled_table, sampled)
TABLE(keep_fn, keep_table, keep)
TABLE(meet_fn, meet_table, meet)
TABLE(mirror_fn, mirror_table, mirror)

static inline int wide(lop_dtype ix) { return ix == LOP_i64; }
static inline bool is_index(lop_dtype ix) { return ix == LOP_i32 || ix == LOP_i64; }
static inline lop_status checked(bool ok) { return ok ? LOP_OK : LOP_INDEX; }

lop_status lopk_spgemm_bound(const lopk_spgemm *g, int64_t lo, int64_t hi, int64_t *bound) {
    if (!is_index(g->ix)) return LOP_DTYPE;
    return checked(wide(g->ix) ? bound_i64(g, lo, hi, bound) : bound_i32(g, lo, hi, bound));
}

lopk_spgemm_need lopk_spgemm_needs(const lopk_spgemm *g, int64_t rows, const int64_t *bound) {
    lopk_spgemm_need need = {0, false};
    for (int64_t i = 0; i < rows; i++) {
        if (bound[i] <= 0) continue;
        if (is_dense(g, bound[i]))
            need.dense = true;
        else if (at_most(bound[i], g->b.n) > need.hash)
            need.hash = at_most(bound[i], g->b.n);
    }
    return need;
}

/* The parts of `work`, one after the other, each at a multiple of 64 bytes; their size. */
static bool parts(const lopk_spgemm *g, const lopk_spgemm_need *need, char *work, work_parts *w,
                  int64_t *bytes) {
    const int64_t size = (int64_t)lop_dtype_size(g->dt), ix = (int64_t)lop_dtype_size(g->ix),
                  n = need->dense ? g->b.n : 0, table = need->hash ? 1 : 0,
                  slots = table && need->hash < INT64_MAX / 8 ? (int64_t)1 << table_bits(need->hash)
                                                              : table * (INT64_MAX / 2);
    const int64_t count[] = {n,          n ? n + 64 : 0,       slots, slots, need->hash,
                             need->hash, g->upper ? g->b.m : 0},
                  each[] = {size, 1, ix, size, ix, ix, 8};
    void **to[] = {&w->sum,   (void **)(void *)&w->mark, &w->key, &w->value, &w->list,
                   &w->other, (void **)(void *)&w->past};
    int64_t at = 0, part;
    for (int i = 0; i < 7; i++) {
        if (!lop_mul_ok(count[i], each[i], &part) || !lop_add_ok(part, 63, &part)) return false;
        if (work) *to[i] = work + at;
        if (!lop_add_ok(at, part & ~(int64_t)63, &at)) return false;
    }
    *bytes = at;
    return true;
}

bool lopk_spgemm_work(const lopk_spgemm *g, const lopk_spgemm_need *need, int64_t *bytes) {
    work_parts w;
    return parts(g, need, NULL, &w, bytes);
}

lop_status lopk_spgemm_count(const lopk_spgemm *g, int64_t lo, int64_t hi, const int64_t *bound,
                             const lopk_spgemm_need *need, void *work, int64_t *count) {
    work_parts w = {0};
    int64_t bytes;
    if (!is_index(g->ix)) return LOP_DTYPE;
    if (!parts(g, need, work, &w, &bytes)) return LOP_OVERFLOW;
    return checked(wide(g->ix) ? count_i64(g, lo, hi, bound, &w, count)
                               : count_i32(g, lo, hi, bound, &w, count));
}

lop_status lopk_spgemm_fill(const lopk_spgemm *g, int64_t lo, int64_t hi, const int64_t *bound,
                            const lopk_spgemm_need *need, void *work, const int64_t *at,
                            void *index, void *data, int64_t *count) {
    work_parts w = {0};
    int64_t bytes;
    if (!is_index(g->ix)) return LOP_DTYPE;
    if (!parts(g, need, work, &w, &bytes)) return LOP_OVERFLOW;
    return checked(fill_table[g->dt][wide(g->ix)](g, lo, hi, bound, &w, at, index, data, count));
}

bool lopk_sampled_work(const lopk_spgemm *g, int64_t *bytes) {
    return lop_mul_ok(g->a.n, (int64_t)lop_dtype_size(g->dt) + 1, bytes);
}

lop_status lopk_spgemm_sampled(const lopk_spgemm *g, const lopk_csr *mask, int64_t lo, int64_t hi,
                               void *work, const int64_t *at, void *index, void *data,
                               int64_t *count) {
    unsigned char *mark = (unsigned char *)work + g->a.n * (int64_t)lop_dtype_size(g->dt);
    if (!is_index(g->ix)) return LOP_DTYPE;
    return checked(
        sampled_table[g->dt][wide(g->ix)](g, mask, lo, hi, work, mark, at, index, data, count));
}

lop_status lopk_csr_transpose(const lopk_csr *a, lop_dtype dt, lop_dtype ix, bool conj, void *ptr,
                              void *index, void *data) {
    if (!is_index(ix)) return LOP_DTYPE;
    return checked(transpose_table[dt][wide(ix)](a, conj, ptr, index, data));
}

lop_status lopk_csr_keep(lop_dtype dt, lop_dtype ix, int64_t m, const int64_t *at, void *index,
                         void *data, double least, int64_t most, double *work, int64_t *count) {
    if (!is_index(ix)) return LOP_DTYPE;
    return checked(keep_table[dt][wide(ix)](m, at, index, data, least, most, work, count));
}

lop_status lopk_csr_meet(lop_dtype dt, lop_dtype ix, int64_t m, const int64_t *at, void *index,
                         void *data, const lopk_csr *mask, int64_t lo, int64_t *count) {
    if (!is_index(ix)) return LOP_DTYPE;
    return checked(meet_table[dt][wide(ix)](m, at, index, data, mask, lo, count));
}

lop_status lopk_mirror_count(lop_dtype ix, int64_t m, const int64_t *at, const void *index,
                             int64_t *lower) {
    if (!is_index(ix)) return LOP_DTYPE;
    return checked(wide(ix) ? lower_i64(m, at, index, lower) : lower_i32(m, at, index, lower));
}

lop_status lopk_mirror(lop_dtype dt, lop_dtype ix, int64_t m, bool conj, const int64_t *at,
                       const void *index, const void *data, const int64_t *lower, const int64_t *to,
                       int64_t *next, void *toindex, void *todata) {
    if (!is_index(ix)) return LOP_DTYPE;
    return checked(
        mirror_table[dt][wide(ix)](m, conj, at, index, data, lower, to, next, toindex, todata));
}
