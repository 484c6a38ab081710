/* k_entry_sums.c: sums of entries at named places, run by run: what names places calls for runs of
 * entries (i + t di, j + t dj) that belong to the numbers s + t ds, and the matrix, a product or a
 * band answers. */
#include "k_entry_sums.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

typedef struct run_of {
    int64_t i, j, s, count, di, dj, ds;
} run_of;
/* y, and what is read: a; or a and b, packed, of k columns each; or a band. */
typedef struct source {
    const lop_mat *y, *a;
    const void *u, *w;
    int64_t k, above;
    void (*put)(const struct source *from, const run_of *r);
} source;

#define FAM_F 2
#define FAM_C 3
#define FAM_B 0
#define FAM_I 1

#define DT f32
#define E float
#define FAM FAM_F
#define LOPK_TEMPLATE "kernels/sparse/k_entry_sums_per_dtype.h"
#include "kernels/common/k_each_one.h"
#define DT f64
#define E double
#define FAM FAM_F
#include "kernels/common/k_each_one.h"
#define DT c64
#define R float
#define FAM FAM_C
#include "kernels/common/k_each_one.h"
#define DT c128
#define R double
#define FAM FAM_C
#include "kernels/common/k_each_one.h"

typedef struct entries_table {
    void (*whole)(const source *, const run_of *);
    void (*pair)(const source *, const run_of *);
    void (*band)(const source *, const run_of *);
} entries_table;
#define ROW(dt) [LOP_##dt - LOP_f32] = {whole_##dt, pair_##dt, band_##dt}
static const entries_table tables[4] = {ROW(f32), ROW(f64), ROW(c64), ROW(c128)};

/* -- places */

static int64_t index_at(const lop_mat *a, int64_t i) {
    return a->dt == LOP_i32 ? ((const int32_t *)a->p)[i * a->rs]
                            : ((const int64_t *)a->p)[i * a->rs];
}
static bool counts(int64_t triangle, int64_t i, int64_t j) {
    switch (triangle) {
    case 1: return j <= i;
    case 2: return j < i;
    case 3: return j >= i;
    case 4: return j > i;
    default: return true;
    }
}
static lop_status one_entry(const lopk_places *p, const source *from, int64_t i, int64_t j,
                            int64_t at) {
    if (i < 0 || i >= p->m || j < 0 || j >= p->n) return LOP_INDEX;
    if (counts(p->triangle, i, j)) from->put(from, &(run_of){i, j, at, 1, 0, 0, 0});
    return LOP_OK;
}
static lop_status sparse(const lopk_places *p, const source *from) {
    const int64_t all = from->y->m, lines = p->kind == LOPK_BY_ROWS ? p->m : p->n;
    lop_status st = LOP_OK;
    if (p->kind == LOPK_BY_ENTRIES) {
        for (int64_t at = 0; st == LOP_OK && at < all; at++)
            st = one_entry(p, from, index_at(p->one, at), index_at(p->two, at), at);
        return st;
    }
    for (int64_t line = 0, last = 0; st == LOP_OK && line < lines; line++) {
        const int64_t start = index_at(p->two, line), end = index_at(p->two, line + 1);
        if (start != last || end < start || end > all) return LOP_INDEX;
        last = end;
        for (int64_t at = start; st == LOP_OK && at < end; at++) {
            const int64_t other = index_at(p->one, at);
            st = p->kind == LOPK_BY_ROWS ? one_entry(p, from, line, other, at)
                                         : one_entry(p, from, other, line, at);
        }
    }
    return st;
}
static void blocks(const lopk_places *p, const source *from) {
    const int64_t b = p->b, N = b > 0 ? p->m / b : 0, first = p->at < 0 ? 1 : 0,
                  last = p->at > 0 ? N - 1 : N;
    for (int64_t k = first; k < last; k++)
        for (int64_t i = 0; i < b; i++)
            from->put(from,
                      &(run_of){k * b + i, (k + p->at) * b, ((k - first) * b + i) * b, b, 0, 1, 1});
}

static int64_t volume(const int64_t *dim, int64_t levels) {
    int64_t all = 1;
    for (int64_t l = 0; l < levels; l++) all *= dim[l];
    return all;
}
static void place_of(int64_t at, const int64_t *dim, int64_t levels, int64_t *to) {
    for (int64_t l = levels; l-- > 0;) {
        to[l] = at % dim[l];
        at /= dim[l];
    }
}
/* The last level of the line that begins at row i and column j: number s there. */
static void line_of_boxes(const lopk_conv *c, const source *from, int64_t i, int64_t j, int64_t s,
                          int64_t number) {
    const int64_t l = c->levels - 1, off = c->shift[l] - s; /* column minus row */
    if (c->circular) {
        for (int64_t t = 0; t < c->out[l];) {
            const int64_t to = (((t + off) % c->in[l]) + c->in[l]) % c->in[l],
                          count = c->out[l] - t < c->in[l] - to ? c->out[l] - t : c->in[l] - to;
            from->put(from, &(run_of){i + t, j + to, number, count, 1, 1, 0});
            t += count;
        }
        return;
    }
    const int64_t lo = off < 0 ? -off : 0,
                  hi = c->out[l] < c->in[l] - off ? c->out[l] : c->in[l] - off;
    if (hi > lo) from->put(from, &(run_of){i + lo, j + lo + off, number, hi - lo, 1, 1, 0});
}
static void boxes(const lopk_conv *c, const source *from) {
    const int64_t l = c->levels - 1, numbers = volume(c->g, c->levels), outer = volume(c->out, l);
    int64_t s[LOPK_LEVELS], i[LOPK_LEVELS];
    if (volume(c->in, c->levels) == 0 || volume(c->out, c->levels) == 0) return;
    for (int64_t number = 0; number < numbers; number++) {
        place_of(number, c->g, c->levels, s);
        for (int64_t at = 0; at < outer; at++) {
            int64_t column = 0;
            place_of(at, c->out, l, i);
            bool inside = true;
            for (int64_t k = 0; inside && k < l; k++) {
                int64_t j = i[k] + c->shift[k] - s[k];
                if (c->circular) j = ((j % c->in[k]) + c->in[k]) % c->in[k];
                inside = j >= 0 && j < c->in[k];
                column = column * c->in[k] + j;
            }
            if (inside) line_of_boxes(c, from, at * c->out[l], column * c->in[l], s[l], number);
        }
    }
}

static lop_status at_places(const lopk_places *p, const source *from) {
    lopk_zero(from->y);
    if (p->kind == LOPK_BLOCKS)
        blocks(p, from);
    else if (p->kind == LOPK_BOXES)
        boxes(&p->boxes, from);
    else
        return sparse(p, from);
    return LOP_OK;
}

/* -- of a matrix, a product, a band */

lop_status lopk_entry_sums(const lop_mat *y, const lopk_places *p, const lop_mat *a) {
    const source from = {.y = y, .a = a, .put = tables[y->dt - LOP_f32].whole};
    return at_places(p, &from);
}

size_t lopk_pair_entry_sums_bytes(int64_t m, int64_t n, int64_t k, lop_dtype dt) {
    int64_t all;
    if (!lop_add_ok(m, n, &all) || !lop_mul_ok(all, k, &all) ||
        !lop_mul_ok(all, (int64_t)lop_dtype_size(dt), &all) || !lop_add_ok(all, 64, &all))
        return 0;
    return (size_t)all;
}
lop_status lopk_pair_entry_sums(const lop_mat *y, const lopk_places *p, const lop_mat *a,
                                const lop_mat *b, void *scratch) {
    const int64_t k = a->n;
    char *u = scratch, *w = u + (size_t)(p->m * k) * lop_dtype_size(y->dt);
    const lop_mat left = {u, p->m, k, k, 1, y->dt}, right = {w, k, p->n, 1, k, y->dt};
    if (k == 0) {
        lopk_zero(y);
        return LOP_OK;
    }
    lopk_copy(&left, a);
    lopk_copy(&right, b);
    const source from = {.y = y, .u = u, .w = w, .k = k, .put = tables[y->dt - LOP_f32].pair};
    return at_places(p, &from);
}

lop_status lopk_band_entry_sums(const lop_mat *y, const lopk_places *p, const lop_mat *ab,
                                int64_t u) {
    const source from = {.y = y, .a = ab, .above = u, .put = tables[y->dt - LOP_f32].band};
    return at_places(p, &from);
}
