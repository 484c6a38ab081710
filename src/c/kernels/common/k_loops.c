/* k_loops.c: copies, element-wise arithmetic, sums and the own matrix product, for 13 dtypes.
 *
 * The template k_loops_per_dtype.h gives, per dtype, loops over one line of elements; the drivers
 * here walk a matrix line by line: the inner direction is the one with unit stride in the output
 * unless that line is very short, and matrices that are one run of memory become one line.
 *
 * Cost: one pass. Transposing copies go in tiles of 32 so that each cache line is used whole.
 * Sums are pairwise (error growth log n): blocks of BLOCK elements summed in LANES interleaved
 * accumulators, merged as a binary counter (no recursion); see Higham 1993, "The accuracy of
 * floating point summation". Casts never meet undefined behaviour (floats are clamped before
 * conversion). The product has three forms (combination of rows, of columns, or dots), picked by
 * unit strides. */
#include "k_clones.h"
#include "k_turn.h"
#include "kernels.h"

#include <stdlib.h>
#include <string.h>

enum { LANES = 16, BLOCK = 256, TILE = 32, SHORT = 8 };

typedef void (*line1_fn)(int64_t n, void *y, int64_t ys, const void *x, int64_t xs);
typedef void (*line2_fn)(int64_t n, void *y, int64_t ys, const void *a, int64_t as, const void *b,
                         int64_t bs);
typedef void (*scale_fn)(int64_t n, void *y, int64_t ys, const void *x, int64_t xs,
                         double _Complex c, int64_t ci);
typedef void (*sum_fn)(int64_t n, void *out, const void *a, int64_t as);
typedef void (*dot_fn)(int64_t n, void *out, const void *a, int64_t as, const void *b, int64_t bs);
typedef void (*merge_fn)(void *into, const void *with);
typedef void (*rows_fn)(int64_t m, int64_t k, void *y, int64_t ys, const void *a, int64_t as,
                        bool conj_a, const void *b, int64_t bs);
typedef void (*matmul_fn)(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                          bool accumulate);

#define LOPK_TEMPLATE "kernels/common/k_loops_per_dtype.h"
#include "k_each.h"

#define TABLE(type, table, function)                                                               \
    static const type table[LOP_NDTYPE] = {                                                        \
        [LOP_b8] = function##_b8,    [LOP_i8] = function##_i8,   [LOP_u8] = function##_u8,         \
        [LOP_i16] = function##_i16,  [LOP_u16] = function##_u16, [LOP_i32] = function##_i32,       \
        [LOP_u32] = function##_u32,  [LOP_i64] = function##_i64, [LOP_u64] = function##_u64,       \
        [LOP_f32] = function##_f32,  [LOP_f64] = function##_f64, [LOP_c64] = function##_c64,       \
        [LOP_c128] = function##_c128};
TABLE(line2_fn, add_table, line_add)
TABLE(line2_fn, sub_table, line_sub)
TABLE(line2_fn, mul_table, line_mul)
TABLE(dot_fn, dot_table, block_dot)
TABLE(sum_fn, sum_table, block_sum)
TABLE(rows_fn, rows_table, short_rows)
TABLE(merge_fn, merge_table, merge)
TABLE(scale_fn, scale_table, line_scale)
TABLE(matmul_fn, matmul_table, matmul)
#undef TABLE

static const line1_fn *const cast_table[LOP_NDTYPE] = {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real) [LOP_##name] = casts_##name,
#include "base/dtype.def"
#undef LOP_DTYPE
};

static const int64_t size_table[LOP_NDTYPE] = {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real) [LOP_##name] = (bytes),
#include "base/dtype.def"
#undef LOP_DTYPE
};

/* How to walk y with two inputs: `outer` lines of `inner` elements; i: stride along, o: between. */
typedef struct walk {
    int64_t inner, outer, yi, yo, ai, ao, bi, bo;
} walk;

static inline int64_t row_stride(const lop_mat *a) { return a->m == 1 ? 0 : a->rs; }
static inline int64_t col_stride(const lop_mat *a) { return a->n == 1 ? 0 : a->cs; }
static inline bool same_shape(const lop_mat *a, const lop_mat *b) {
    return a->m == b->m && a->n == b->n;
}

static inline walk walk_of(const lop_mat *y, const lop_mat *a, const lop_mat *b) {
    LOP_ASSERT((a->m == y->m || a->m == 1) && (a->n == y->n || a->n == 1));
    LOP_ASSERT((b->m == y->m || b->m == 1) && (b->n == y->n || b->n == 1));
    if (y->n == 1) return (walk){y->m, 1, y->rs, 0, row_stride(a), 0, row_stride(b), 0};
    if (y->m != 1 && same_shape(a, y) && same_shape(b, y)) {
        const bool c = lop_mat_is_c(y) && lop_mat_is_c(a) && lop_mat_is_c(b);
        if (c || (lop_mat_is_f(y) && lop_mat_is_f(a) && lop_mat_is_f(b)))
            return (walk){y->m * y->n, 1, 1, 0, 1, 0, 1, 0};
    }
    bool rows = y->cs <= y->rs || y->m == 1; /* lines are rows */
    if (rows && y->n < SHORT && y->m > y->n)
        rows = false;
    else if (!rows && y->m < SHORT && y->n > y->m)
        rows = true;
    if (rows)
        return (walk){y->n,          y->m,          y->cs,         y->rs,
                      col_stride(a), row_stride(a), col_stride(b), row_stride(b)};
    return (walk){y->m,          y->n,          y->rs,         y->cs,
                  row_stride(a), col_stride(a), row_stride(b), col_stride(b)};
}

static void drive2(line2_fn f, const lop_mat *y, const lop_mat *a, const lop_mat *b) {
    const walk w = walk_of(y, a, b);
    if (w.outer == 1) {
        f(w.inner, y->p, w.yi, a->p, w.ai, b->p, w.bi);
        return;
    }
    const int64_t size = size_table[y->dt];
    char *py = y->p;
    const char *pa = a->p, *pb = b->p;
    for (int64_t o = 0; o < w.outer; o++)
        f(w.inner, py + o * w.yo * size, w.yi, pa + o * w.ao * size, w.ai, pb + o * w.bo * size,
          w.bi);
}

/* y <- f(x) by tiles when the two disagree about the inner direction. */
static void drive1(line1_fn f, const lop_mat *y, const lop_mat *x) {
    walk w = walk_of(y, x, x);
    const int64_t ysize = size_table[y->dt], xsize = size_table[x->dt];
    char *py = y->p;
    const char *px = x->p;
    const bool crossed = w.ao < w.ai && w.inner > SHORT && w.outer > SHORT;
    const int64_t ti = crossed ? TILE : w.inner, to = crossed ? TILE : w.outer;
    if (w.inner == 0 || w.outer == 0) return;
    for (int64_t o0 = 0; o0 < w.outer; o0 += to)
        for (int64_t i0 = 0; i0 < w.inner; i0 += ti) {
            const int64_t n = w.inner - i0 < ti ? w.inner - i0 : ti;
            const int64_t end = w.outer - o0 < to ? w.outer : o0 + to;
            for (int64_t o = o0; o < end; o++)
                f(n, py + (o * w.yo + i0 * w.yi) * ysize, w.yi, px + (o * w.ao + i0 * w.ai) * xsize,
                  w.ai);
        }
}

void lopk_copy(const lop_mat *y, const lop_mat *x) {
    LOP_ASSERT(same_shape(y, x));
    if (y->dt == x->dt && y->dt != LOP_b8) {
        const walk w = walk_of(y, x, x);
        if (w.outer == 1 && w.yi == 1 && w.ai == 1) {
            if (w.inner > 0 && y->p != x->p)
                memmove(y->p, x->p, (size_t)(w.inner * size_table[y->dt]));
            return;
        }
        const int64_t size = size_table[y->dt];
        if (size >= 4 && w.yi == 1 && w.ao == 1 && w.ai > 1 && w.inner > SHORT && w.outer > SHORT) {
            lopk_copy_turned(y->p, w.yo * size, x->p, w.ai * size, w.inner, w.outer, size);
            return;
        }
    }
    drive1(cast_table[y->dt][x->dt], y, x);
}

void lopk_conj(const lop_mat *y, const lop_mat *x) {
    LOP_ASSERT(same_shape(y, x) && y->dt == x->dt);
    if (y->dt == LOP_c64)
        drive1(line_conj_c64, y, x);
    else if (y->dt == LOP_c128)
        drive1(line_conj_c128, y, x);
    else
        lopk_copy(y, x);
}

void lopk_zero(const lop_mat *y) {
    const int64_t size = size_table[y->dt];
    if (y->m == 0 || y->n == 0) return;
    const walk w = walk_of(y, y, y);
    char *p = y->p;
    for (int64_t o = 0; o < w.outer; o++) {
        char *q = p + o * w.yo * size;
        if (w.yi == 1)
            memset(q, 0, (size_t)(w.inner * size));
        else
            for (int64_t i = 0; i < w.inner; i++) memset(q + i * w.yi * size, 0, (size_t)size);
    }
}

void lopk_set_diag(const lop_mat *y, int64_t k, const lop_mat *d) {
    const int64_t i0 = k < 0 ? -k : 0, j0 = k < 0 ? 0 : k;
    if (i0 >= y->m || j0 >= y->n) return;
    const int64_t size = size_table[y->dt];
    const int64_t len = y->m - i0 < y->n - j0 ? y->m - i0 : y->n - j0;
    const lop_mat line = {
        (char *)y->p + (i0 * y->rs + j0 * y->cs) * size, len, 1, y->rs + y->cs, 1, y->dt};
    lopk_copy(&line, d);
}

void lopk_add(const lop_mat *y, const lop_mat *a, const lop_mat *b) {
    LOP_ASSERT(y->dt == a->dt && y->dt == b->dt);
    drive2(add_table[y->dt], y, a, b);
}
void lopk_sub(const lop_mat *y, const lop_mat *a, const lop_mat *b) {
    LOP_ASSERT(y->dt == a->dt && y->dt == b->dt);
    drive2(sub_table[y->dt], y, a, b);
}
void lopk_mul(const lop_mat *y, const lop_mat *a, const lop_mat *b) {
    LOP_ASSERT(y->dt == a->dt && y->dt == b->dt);
    drive2(mul_table[y->dt], y, a, b);
}
void lopk_div(const lop_mat *y, const lop_mat *a, const lop_mat *b) {
    LOP_ASSERT(y->dt == a->dt && y->dt == b->dt && lop_is_blas(y->dt));
    static const line2_fn table[4] = {line_div_f32, line_div_f64, line_div_c64, line_div_c128};
    if (lop_is_blas(y->dt)) drive2(table[y->dt - LOP_f32], y, a, b);
}

void lopk_rowscale(const lop_mat *y, const lop_mat *d, bool conj_d, const lop_mat *x) {
    LOP_ASSERT(y->dt == d->dt && y->dt == x->dt && d->m == y->m && d->n == 1);
    line2_fn f = mul_table[y->dt];
    if (conj_d && y->dt == LOP_c64) f = line_mulc_c64;
    if (conj_d && y->dt == LOP_c128) f = line_mulc_c128;
    drive2(f, y, d, x);
}

void lopk_scale(const lop_mat *y, double _Complex c, int64_t ci, const lop_mat *x) {
    LOP_ASSERT(y->dt == x->dt);
    const walk w = walk_of(y, x, x);
    const scale_fn f = scale_table[y->dt];
    const int64_t size = size_table[y->dt];
    char *py = y->p;
    const char *px = x->p;
    for (int64_t o = 0; o < w.outer; o++)
        f(w.inner, py + o * w.yo * size, w.yi, px + o * w.ao * size, w.ai, c, ci);
}

/* Block results merged as a binary counter: level l holds the sum of 2^l blocks. */
typedef struct pairwise {
    merge_fn merge;
    uint64_t blocks;
    int depth;
    double _Complex level[64];
} pairwise;

static void pairwise_pushed(pairwise *s) { /* a new block lies at level[depth] */
    s->depth++;
    for (uint64_t c = ++s->blocks; (c & 1) == 0; c >>= 1) {
        s->merge(&s->level[s->depth - 2], &s->level[s->depth - 1]);
        s->depth--;
    }
}
static void pairwise_finish(pairwise *s, const lop_mat *out) {
    const size_t size = (size_t)size_table[out->dt];
    for (; s->depth > 1; s->depth--) s->merge(&s->level[s->depth - 2], &s->level[s->depth - 1]);
    if (s->depth == 1)
        memcpy(out->p, &s->level[0], size);
    else
        memset(out->p, 0, size);
}

void lopk_sum(const lop_mat *out, const lop_mat *x) {
    LOP_ASSERT(out->dt == x->dt);
    const int64_t size = size_table[x->dt];
    const walk w = walk_of(x, x, x);
    const char *px = x->p;
    pairwise s;
    s.merge = merge_table[x->dt];
    s.blocks = 0;
    s.depth = 0;
    for (int64_t o = 0; o < w.outer; o++)
        for (int64_t i = 0; i < w.inner; i += BLOCK) {
            const int64_t n = w.inner - i < BLOCK ? w.inner - i : BLOCK;
            sum_table[x->dt](n, &s.level[s.depth], px + (o * w.yo + i * w.yi) * size, w.yi);
            pairwise_pushed(&s);
        }
    pairwise_finish(&s, out);
}

void lopk_dot(const lop_mat *out, const lop_mat *a, const lop_mat *b) {
    LOP_ASSERT(out->dt == a->dt && out->dt == b->dt && same_shape(a, b));
    const int64_t size = size_table[a->dt];
    const walk w = walk_of(a, a, b);
    const char *pa = a->p, *pb = b->p;
    pairwise s;
    s.merge = merge_table[a->dt];
    s.blocks = 0;
    s.depth = 0;
    for (int64_t o = 0; o < w.outer; o++)
        for (int64_t i = 0; i < w.inner; i += BLOCK) {
            const int64_t n = w.inner - i < BLOCK ? w.inner - i : BLOCK;
            dot_table[a->dt](n, &s.level[s.depth], pa + (o * w.ao + i * w.ai) * size, w.ai,
                             pb + (o * w.bo + i * w.bi) * size, w.bi);
            pairwise_pushed(&s);
        }
    pairwise_finish(&s, out);
}

/* ---- the diagonal of a product ---- */
/* LINE: bytes read side by side; TOGETHER: rows whose sums are open; FEW: terms of a short row. */
enum { PITCH = BLOCK + 8, LINE = 64, WIDEST = 16, TOGETHER = 64, FEW = 32 };

/* Four by four of 4 bytes, two by two of 8: `to` has PITCH elements a row, `from` is ts bytes a
 * line.
 */
typedef uint32_t four __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t two __attribute__((vector_size(16), aligned(4), may_alias)); /* c64 too */
static inline void turn_4(char *to, const char *from, int64_t ts) {
    const four a = *(const four *)from, b = *(const four *)(from + ts),
               c = *(const four *)(from + 2 * ts), d = *(const four *)(from + 3 * ts),
               e = __builtin_shufflevector(a, b, 0, 4, 1, 5),
               f = __builtin_shufflevector(c, d, 0, 4, 1, 5),
               g = __builtin_shufflevector(a, b, 2, 6, 3, 7),
               h = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(four *)to = __builtin_shufflevector(e, f, 0, 1, 4, 5);
    *(four *)(to + 4 * PITCH) = __builtin_shufflevector(e, f, 2, 3, 6, 7);
    *(four *)(to + 8 * PITCH) = __builtin_shufflevector(g, h, 0, 1, 4, 5);
    *(four *)(to + 12 * PITCH) = __builtin_shufflevector(g, h, 2, 3, 6, 7);
}
static inline void turn_8(char *to, const char *from, int64_t ts) {
    const two a = *(const two *)from, b = *(const two *)(from + ts);
    *(two *)to = __builtin_shufflevector(a, b, 0, 2);
    *(two *)(to + 8 * PITCH) = __builtin_shufflevector(a, b, 1, 3);
}
/* Rows of n elements, one after another in `to`, from where element t of row r lies at r rs + t ts
 * bytes. */
static inline __attribute__((always_inline)) void
turn(int64_t size, char *to, const char *from, int64_t rs, int64_t ts, int rows, int64_t n) {
    const int side = rs == size && size == 4 ? 4 : rs == size && size == 8 ? 2 : 1;
    const int64_t whole = n / side * side, wide = rows / side * side;
    for (int64_t t = 0; t < whole; t += side) {
        for (int64_t j = 0; j < side; j++) /* the rows after these; they may lie behind the end */
            __builtin_prefetch(
                (const void *)((uintptr_t)from + (size_t)((t + j) * ts + rows * rs)));
        for (int64_t r = 0; r < wide; r += side) {
            char *o = to + (r * PITCH + t) * size;
            const char *i = from + t * ts + r * rs;
            if (side == 4)
                turn_4(o, i, ts);
            else if (side == 2)
                turn_8(o, i, ts);
            else
                memcpy(o, i, (size_t)size);
        }
    }
    for (int64_t t = 0; side > 1 && t < n; t++)
        for (int64_t r = t < whole ? wide : 0; r < rows; r++)
            memcpy(to + (r * PITCH + t) * size, from + t * ts + r * rs, (size_t)size);
}

/* One operand's lines: where they lie, or turned (and conjugated) in a place of their own. */
typedef struct lines {
    const char *p;
    int64_t rs, ts; /* bytes from row to row, from term to term */
    bool conj, turned;
    char *own;
} lines;
static lines lines_of(const lop_mat *a, bool conj, char *own) {
    const int64_t size = size_table[a->dt];
    conj = conj && lop_is_complex(a->dt);
    const int64_t rs = a->rs * size, ts = a->cs * size;
    return (lines){a->p, rs, ts, conj, conj || (llabs(ts) > llabs(rs) && ts != size), own};
}
static const char *ready(const lines *l, lop_dtype dt, int64_t i, int rows, int64_t t, int64_t n) {
    const char *from = l->p + i * l->rs + t * l->ts;
    if (!l->turned) return from;
    switch (size_table[dt]) { /* constants, for the loops within */
    case 4: turn(4, l->own, from, l->rs, l->ts, rows, n); break;
    case 8: turn(8, l->own, from, l->rs, l->ts, rows, n); break;
    case 16: turn(16, l->own, from, l->rs, l->ts, rows, n); break;
    default: turn(size_table[dt], l->own, from, l->rs, l->ts, rows, n);
    }
    const lop_mat all = {l->own, rows, n, PITCH, 1, dt};
    if (l->conj) lopk_conj(&all, &all);
    return l->own;
}

/* Both lie row beside row: sums of whole lines, in blocks of terms. */
static void beside(const lop_mat *y, const lines *a, const lines *b, int64_t k) {
    enum { ROOM = 16384 };
    char rooms[4][ROOM] __attribute__((aligned(64)));
    const lop_dtype dt = y->dt;
    const int64_t size = size_table[dt], many = ROOM / size;
    const lines *l[2] = {a, b};
    for (int64_t i = 0; i < y->m; i += many) {
        const int64_t n = y->m - i < many ? y->m - i : many;
        const lop_mat all = {rooms[0], n, 1, 1, 1, dt}, part = {rooms[1], n, 1, 1, 1, dt},
                      to = {(char *)y->p + i * y->rs * size, n, 1, y->rs, 1, dt};
        lopk_zero(&all);
        for (int64_t t = 0; t < k; t += BLOCK) {
            lopk_zero(&part);
            for (int64_t u = t; u < k && u < t + BLOCK; u++) {
                const char *in[2];
                for (int j = 0; j < 2; j++) {
                    in[j] = l[j]->p + i * size + u * l[j]->ts;
                    if (!l[j]->conj) continue;
                    const lop_mat from = {(char *)(uintptr_t)in[j], n, 1, 1, 1, dt},
                                  own = {rooms[2 + j], n, 1, 1, 1, dt};
                    lopk_conj(&own, &from);
                    in[j] = own.p;
                }
                mul_table[dt](n, rooms[3], 1, in[0], 1, in[1], 1);
                add_table[dt](n, rooms[1], 1, rooms[1], 1, rooms[3], 1);
            }
            lopk_add(&all, &all, &part);
        }
        lopk_copy(&to, &all);
    }
}

/* Rows of a few terms, one after another in both: none is worth a block of its own. */
static bool short_rows(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *bt,
                       bool conj_b) {
    const bool whole = lop_is_complex(y->dt);
    conj_a = conj_a && whole;
    conj_b = conj_b && whole;
    if (a->n > FEW || a->cs != 1 || bt->cs != 1 || (conj_a && conj_b)) return false;
    const lop_mat *first = conj_b ? bt : a, *second = conj_b ? a : bt;
    rows_table[y->dt](y->m, a->n, y->p, y->rs, first->p, first->rs, conj_a || conj_b, second->p,
                      second->rs);
    return true;
}

/* As many rows at a time as elements share a line of memory, so that each is read once, and a few
 * times that one after another, whose lines are fetched ahead; in blocks, and the sums of the
 * blocks as pairs. */
void lopk_row_dots(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b, bool conj_b) {
    LOP_ASSERT(y->dt == a->dt && y->dt == b->dt && a->n == b->m && y->m <= a->m && y->m <= b->n);
    char rooms[2][PITCH * LINE] __attribute__((aligned(64)));
    const int64_t size = size_table[y->dt], k = a->n,
                  most = LINE / size < WIDEST ? LINE / size : WIDEST;
    const dot_fn dot = dot_table[y->dt];
    const lop_mat bt = {b->p, b->n, b->m, b->cs, b->rs, b->dt};
    if (k > 1 && short_rows(y, a, conj_a, &bt, conj_b)) return;
    const lines la = lines_of(a, conj_a, rooms[0]), lb = lines_of(&bt, conj_b, rooms[1]);
    const int64_t as = la.turned ? 1 : a->cs, bs = lb.turned ? 1 : b->rs,
                  ar = la.turned ? PITCH * size : la.rs, br = lb.turned ? PITCH * size : lb.rs;
    const bool apart = k == 1 || (la.ts != size && lb.ts != size); /* one column has no next one */
    if (la.rs == size && lb.rs == size && apart && y->m >= TOGETHER / 2) {
        beside(y, &la, &lb, k);
        return;
    }
    const int64_t together = la.turned || lb.turned ? TOGETHER : 1;
    pairwise s[TOGETHER];
    for (int64_t from = 0; from < y->m; from += together) {
        const int64_t end = y->m - from < together ? y->m : from + together;
        for (int64_t i = from; i < end; i++) {
            s[i - from].merge = merge_table[y->dt];
            s[i - from].blocks = 0;
            s[i - from].depth = 0;
        }
        for (int64_t t = 0; t < k; t += BLOCK)
            for (int64_t i = from; i < end; i += most) {
                const int64_t n = k - t < BLOCK ? k - t : BLOCK;
                const int rows = (int)(end - i < most ? end - i : most);
                const char *pa = ready(&la, y->dt, i, rows, t, n),
                           *pb = ready(&lb, y->dt, i, rows, t, n);
                for (int r = 0; r < rows; r++) {
                    pairwise *sum = &s[i + r - from];
                    dot(n, &sum->level[sum->depth], pa + r * ar, as, pb + r * br, bs);
                    pairwise_pushed(sum);
                }
            }
        for (int64_t i = from; i < end; i++) {
            const lop_mat out = {(char *)y->p + i * y->rs * size, 1, 1, 1, 1, y->dt};
            pairwise_finish(&s[i - from], &out);
        }
    }
}

void lopk_matmul_loop(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                      bool accumulate) {
    LOP_ASSERT(y->dt == a->dt && y->dt == b->dt && y->m == a->m && a->n == b->m && y->n == b->n);
    matmul_table[y->dt](y, a, conj_a, b, accumulate);
}
