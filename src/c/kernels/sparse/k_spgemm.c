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
#include "kernels/common/k_clones.h"

#include <math.h>
#include <stdatomic.h>
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
#include "k_spgemm_per_index.h"
#undef IX
#undef I_
#define IX int64_t
#define I_(name) LOPK_CAT(name, _i64)
#include "k_spgemm_per_index.h"
#undef IX
#undef I_

#define LOPK_TEMPLATE "kernels/sparse/k_spgemm_per_dtype.h"
#include "kernels/common/k_each.h"

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

/* The parts of `work`, one after the other, each at a multiple of 64 bytes; their size. */
static bool parts(const lopk_spgemm *g, const lopk_spgemm_rows *need, char *work, work_parts *w,
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

/* -- rows in parts */

enum { PART = 16384 };     /* products of a part: 0.1 ms */
enum { WORTH = 4 * PART }; /* of a thread that is to be started */

void lopk_spgemm_cut(const lopk_spgemm *g, lopk_spgemm_rows *r) {
    int64_t products = 0, entries = 0;
    double all = 0;
    r->parts = r->entries = r->hash = 0;
    r->dense = false;
    r->edge[0] = 0;
    for (int64_t i = 0; i < r->rows; i++) {
        const int64_t some = r->bound[i] > 0 ? r->bound[i] : 0, room = at_most(some, g->b.n);
        if (products > 0 && some > PART - products) {
            r->edge[++r->parts] = i;
            products = entries = 0;
        }
        products = some > PART ? PART : products + some;
        entries += room;
        all += (double)some;
        if (entries > r->entries) r->entries = entries;
        if (some && is_dense(g, some))
            r->dense = true;
        else if (room > r->hash)
            r->hash = room;
    }
    if (r->rows > 0) r->edge[++r->parts] = r->rows;
    r->enough = all / WORTH < LOPK_MAXTHREADS ? (int64_t)(all / WORTH) : LOPK_MAXTHREADS;
}

static inline int64_t round64(int64_t n) { return (n + 63) & ~(int64_t)63; }

bool lopk_spgemm_work(const lopk_spgemm *g, const lopk_spgemm_rows *r, bool held, int64_t *bytes) {
    work_parts w;
    int64_t index, data;
    if (!parts(g, r, NULL, &w, bytes)) return false;
    if (!held) return true;
    return lop_mul_ok(r->entries, (int64_t)lop_dtype_size(g->ix), &index) &&
           lop_mul_ok(r->entries, (int64_t)lop_dtype_size(g->dt), &data) &&
           lop_add_ok(index, data, &index) && lop_add_ok(index, 128, &index) &&
           lop_add_ok(*bytes, index, bytes);
}

typedef struct rows_job {
    const lopk_spgemm *g;
    const lopk_spgemm_rows *r;
    const int64_t *at;
    char *index, *data; /* NULL: count */
    int64_t *count;
    int64_t bytes, next; /* next: where the part whose turn it is goes */
    bool held;
    int turn;
    atomic_int status, rooms;
    _Atomic(void *) room[LOPK_MAXTHREADS];
} rows_job;

/* A helper's memory holds anything when it comes to its first part. */
static void clean(rows_job *j, const lopk_part *part) {
    const int known = part->first ? 0 : atomic_load(&j->rooms);
    if (part->first) return;
    for (int i = 0; i < known; i++)
        if (atomic_load(&j->room[i]) == part->room) return;
    memset(part->room, 0, (size_t)j->bytes);
    atomic_store(&j->room[atomic_fetch_add(&j->rooms, 1)], part->room);
}

/* Rows of one part where they are to lie, or held; false: a bad index. */
static bool some_rows(rows_job *j, const lopk_part *part, int64_t from, int64_t to, char *index,
                      char *data) {
    const lopk_spgemm *g = j->g;
    const int64_t lo = j->r->lo + from, hi = j->r->lo + to, *bound = j->r->bound + from;
    int64_t bytes, *count = j->count ? j->count + from : NULL;
    work_parts w = {0};
    if (!parts(g, j->r, part->room, &w, &bytes)) return false;
    if (!j->index)
        return wide(g->ix) ? count_i64(g, lo, hi, bound, &w, count)
                           : count_i32(g, lo, hi, bound, &w, count);
    const int64_t start = j->held ? 0 : j->next, *at = count ? &start : j->at + from;
    return fill_table[g->dt][wide(g->ix)](g, lo, hi, bound, &w, at, index, data, count);
}

static void part_of_rows(void *job, const lopk_part *part) {
    rows_job *j = job;
    const int64_t from = j->r->edge[part->index], to = j->r->edge[part->index + 1],
                  ix = (int64_t)lop_dtype_size(j->g->ix), el = (int64_t)lop_dtype_size(j->g->dt);
    char *index = j->index, *data = j->data;
    int64_t n = 0;
    clean(j, part);
    if (j->held) {
        index = (char *)part->room + j->bytes;
        data = index + round64(j->r->entries * ix);
    }
    if (atomic_load(&j->status) == LOP_OK && !some_rows(j, part, from, to, index, data))
        atomic_store(&j->status, (int)LOP_INDEX);
    if (!j->index || !j->count) return;
    if (j->held && !lopk_turn_wait(part, &j->turn, (int)part->index)) return;
    if (atomic_load(&j->status) == LOP_OK) {
        for (int64_t i = from; i < to; i++) n += j->count[i];
        if (j->held) {
            memcpy(j->index + j->next * ix, index, (size_t)(n * ix));
            memcpy(j->data + j->next * el, data, (size_t)(n * el));
        }
        j->next += n;
    }
    if (j->held) lopk_turn_pass(part, &j->turn);
}

static lop_status in_parts(rows_job *j, const lopk_team *team, void *work) {
    int64_t room;
    if (!is_index(j->g->ix)) return LOP_DTYPE;
    j->held = j->index && j->count && team && team->threads > 1;
    if (!lopk_spgemm_work(j->g, j->r, false, &j->bytes) ||
        !lopk_spgemm_work(j->g, j->r, j->held, &room))
        return LOP_OVERFLOW;
    if (!lopk_parts(team, j->r->enough, j->r->parts, (size_t)room, work, part_of_rows, j))
        return LOP_CALLBACK;
    return (lop_status)atomic_load(&j->status);
}

lop_status lopk_spgemm_count(const lopk_spgemm *g, const lopk_spgemm_rows *r, const lopk_team *team,
                             void *work, int64_t *count) {
    rows_job j = {.g = g, .r = r, .count = count};
    return in_parts(&j, team, work);
}

lop_status lopk_spgemm_fill(const lopk_spgemm *g, const lopk_spgemm_rows *r, const lopk_team *team,
                            void *work, const int64_t *at, void *index, void *data,
                            int64_t *count) {
    rows_job j = {.g = g, .r = r, .at = at, .index = index, .data = data, .count = count};
    j.next = count ? at[0] : 0;
    return in_parts(&j, team, work);
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
