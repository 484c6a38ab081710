/* k_kernel_matrix.c: kernel matrices by tiles.
 *
 * Columns go in blocks of 256 (of 64 in many dimensions), rows in blocks of 8 (of 64 where many
 * vectors are multiplied): a block's points are packed, the sums over the coordinates are formed in
 * registers four rows at a time, the function is taken in place, and the tile, which lies in the
 * first cache (else the second), is multiplied and forgotten. Where y is x, tiles below the
 * diagonal are not evaluated: the one above serves twice. Distances are sums of squared
 * differences, never |x|^2 + |y|^2 - 2 x y, which cancels. Order and blocks depend on sizes alone:
 * so do the bits. Measured 2026-11, Gaussian of three coordinates: see benchmarks/kernel_matrix.py.
 */
#include "k_kernel_matrix.h"
#include "k_kernel_matrix_copy.h"
#include "k_kernel_matrix_loops.h"
#include "kernels/dense/k_small_gemm.h"
#include "kernels/common/k_threads.h"
#include "kernels/common/kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { FEW = 8, MANY = 64, WIDE = 256, NARROW = 64, NEAR = 16, CHUNK = 256, SIDES = 63 };

void lopk_kernel_exp2(lop_dtype dt, void *y, const void *x, int64_t count) {
    loops_of(dt == LOP_f64)->exps(y, x, count);
}

/* -- numbers */

void lopk_kernel_numbers(int word, double variance, double shape, const lop_mat *length, int64_t d,
                         double *at) {
    const double *l = length->p;
    const bool ard = length->m != 1;
    double *w = at + LOPK_WEIGHTS, *power = w + d;
    at[LOPK_VARIANCE] = variance;
    at[LOPK_SHAPE] = shape;
    at[LOPK_ONE] = 1;
    for (int64_t k = 0; k < d; k++) {
        double size = l[ard ? k * length->rs : 0];
        int e = 0;
        if (word != LOPK_PERIODIC && isfinite(size)) size = frexp(size, &e);
        power[k] = ldexp(1, -e);
        w[k] = fmin(1 / (size * size), DBL_MAX);
        if (isnan(size)) w[k] = size;
        if (!ard && word <= LOPK_RATIONAL) {
            at[LOPK_ONE] = w[k];
            w[k] = 1;
        }
    }
}

/* -- one product's working memory */

/* Rows and columns that a tile has room for. */
typedef struct tile_room {
    int64_t high, wide;
} tile_room;

typedef struct work {
    const lopk_kernel *k;
    const kernel_loops *f;
    int n;
    bool is_double;
    int64_t size, block, rows; /* bytes of a number; columns and rows of a tile */
    tile_room r;
    int64_t m, cols, ld; /* of the block at hand; ld: whole vectors */
    double variance;
    char *tile, *other, *weights, *x[LOPK_KERNELS], *y[LOPK_KERNELS], *rest;
} work;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static size_t round64(int64_t bytes) { return ((size_t)bytes + 63) & ~(size_t)63; }
static int64_t block_of(int64_t d) { return d <= NEAR ? WIDE : NARROW; }

static int64_t coordinates(const lopk_kernel *k, int n) {
    int64_t d = 0;
    for (int i = 0; i < n; i++) d += k[i].x.n;
    return d;
}

static tile_room room_of(int64_t d, int64_t m, int64_t n, bool many) {
    const int64_t high = many ? MANY : FEW, wide = block_of(d);
    return (tile_room){least((m + 3) / 4 * 4, high), least((n + 15) / 16 * 16, wide)};
}

size_t lopk_kernel_scratch(int64_t d, lop_dtype dt, int64_t m, int64_t n, int64_t columns) {
    const int64_t size = dt == LOP_f64 ? 8 : 4, chunk = least(columns, CHUNK) + 1;
    const int64_t most = m > n ? m : n, lines = LOPK_KERNELS * 3 + 8;
    const tile_room r = room_of(d, most, most, columns > 1);
    return round64(size * (2 * r.high * r.wide + d * (1 + r.high + r.wide) +
                           2 * (r.high + r.wide) * chunk)) +
           (size_t)lines * 64;
}

static void open_work(work *w, const lopk_kernel *k, int n, const lop_mat *out, bool many,
                      void *scratch) {
    char *at = (char *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    int64_t d = coordinates(k, n);
    memset(w, 0, sizeof *w);
    w->k = k;
    w->n = n;
    w->is_double = out->dt == LOP_f64 || out->dt == LOP_c128;
    w->f = loops_of(w->is_double);
    w->size = w->is_double ? 8 : 4;
    w->variance = 1;
    for (int i = 0; i < n; i++) w->variance *= k[i].at[LOPK_VARIANCE];
    w->block = block_of(d);
    w->rows = many ? MANY : FEW;
    w->r = room_of(d, k[0].x.m, k[0].y.m, many);
#define TAKE(p, count)                                                                             \
    (p) = at;                                                                                      \
    at += round64((count) * w->size)
    TAKE(w->tile, w->r.high * w->r.wide);
    TAKE(w->other, w->r.high * w->r.wide);
    TAKE(w->weights, d);
    for (int i = 0; i < n; i++) {
        TAKE(w->x[i], w->r.high * k[i].x.n);
        TAKE(w->y[i], w->r.wide * k[i].x.n);
    }
#undef TAKE
    w->rest = at;
    d = 0;
    for (int i = 0; i < n; i++)
        for (int64_t q = 0; q < k[i].x.n; q++)
            put(w->is_double, w->weights, d++, k[i].at[LOPK_WEIGHTS + q]);
}

static char *place_of(const work *w, const void *p, int64_t at) {
    return (char *)(uintptr_t)p + at * w->size;
}

/* -- packing */

static inline double point(const work *w, const lop_mat *a, int64_t i, int64_t q) {
    return get(w->is_double, a->p, i * a->rs + q * a->cs);
}
static bool is_dot(const lopk_kernel *k) { return k->word >= LOPK_POLYNOMIAL; }

/* Rows i .. i + m of the x, whole fours: beyond them the last again. */
static void pack_rows(work *w, int64_t i, int64_t m) {
    w->m = m;
    for (int f = 0; f < w->n; f++) {
        const lopk_kernel *k = &w->k[f];
        const int64_t d = k->x.n;
        const double *weight = k->at + LOPK_WEIGHTS, *power = weight + d;
        for (int64_t q = 0; q < d; q++) {
            char *to = place_of(w, w->x[f], q), *last = place_of(w, to, (m - 1) * d);
            scaled(w->is_double, to, d, place_of(w, k->x.p, i * k->x.rs + q * k->x.cs), k->x.rs, m,
                   power[q], is_dot(k) ? weight[q] : 1);
            scaled(w->is_double, place_of(w, last, d), d, last, 0, (m + 3) / 4 * 4 - m, 1, 1);
        }
    }
}
/* Rows j .. j + n of the y, coordinate by coordinate, whole vectors. */
static void pack_columns(work *w, int64_t j, int64_t n) {
    const int64_t wide = w->f->width;
    w->cols = n;
    w->ld = (n + wide - 1) / wide * wide;
    for (int f = 0; f < w->n; f++) {
        const lopk_kernel *k = &w->k[f];
        const double *power = k->at + LOPK_WEIGHTS + k->x.n;
        for (int64_t q = 0; q < k->x.n; q++) {
            char *to = place_of(w, w->y[f], q * w->ld), *last = place_of(w, to, n - 1);
            scaled(w->is_double, to, 1, place_of(w, k->y.p, j * k->y.rs + q * k->y.cs), k->y.rs, n,
                   power[q], 1);
            scaled(w->is_double, place_of(w, last, 1), 1, last, 0, w->ld - n, 1, 1);
        }
    }
}
/* x[row + i] and y[column + i] as one point each that is compared with none: their difference and
 * 0, or their products and 1. */
static void pack_pairs(work *w, int64_t row, int64_t column, int64_t n) {
    pack_columns(w, column, n);
    w->m = 1;
    for (int f = 0; f < w->n; f++) {
        const lopk_kernel *k = &w->k[f];
        const int64_t d = k->x.n;
        const double *weight = k->at + LOPK_WEIGHTS, *power = weight + d;
        for (int64_t q = 0; q < d; q++) {
            for (int64_t c = 0; c < w->ld; c++) {
                const double p = point(w, &k->x, row + (c < n ? c : n - 1), q) * power[q],
                             y = get(w->is_double, w->y[f], q * w->ld + c);
                put(w->is_double, w->y[f], q * w->ld + c, is_dot(k) ? y * (p * weight[q]) : y - p);
            }
            for (int64_t r = 0; r < 4; r++)
                put(w->is_double, w->x[f], r * d + q, is_dot(k) ? 1 : 0);
        }
    }
}

/* -- one tile */

static map_job function_of(const lopk_kernel *k) {
    const double log2e = 1.44269504088896340736, one = k->at[LOPK_ONE], s = k->at[LOPK_SHAPE];
    map_job g = {.word = k->word, .degree = k->degree, .a = 1};
    switch (k->word) {
    case LOPK_RBF: g.a = -0.5 * log2e * one; break;
    case LOPK_PERIODIC: g.a = -2 * log2e; break;
    case LOPK_MATERN12: g.a = sqrt(one); break;
    case LOPK_MATERN32: g.a = sqrt(3 * one); break;
    case LOPK_MATERN52: g.a = sqrt(5 * one); break;
    case LOPK_RATIONAL:
        g.a = 0.5 * one / s;
        g.b = -s;
        break;
    case LOPK_POLYNOMIAL: g.b = s; break;
    default: break;
    }
    if (k->word >= LOPK_MATERN12 && k->word <= LOPK_MATERN52) g.b = -log2e;
    return g;
}

/* The packed rows against the packed columns: the product of the factors, without the variance. */
static void fill_tile(work *w) {
    const int64_t rows = (w->m + 3) / 4 * 4;
    int64_t d = 0;
    for (int f = 0; f < w->n; f++) {
        const lopk_kernel *k = &w->k[f];
        const tile_job g = {.x = w->x[f],
                            .y = w->y[f],
                            .w = w->weights + d * w->size,
                            .tile = f ? w->other : w->tile,
                            .rows = rows,
                            .cols = w->ld,
                            .d = k->x.n,
                            .turn = k->word == LOPK_PERIODIC ? 1 / k->at[LOPK_SHAPE] : 0};
        map_job map = function_of(k);
        map.tile = g.tile;
        map.count = rows * w->ld;
        d += k->x.n;
        if (is_dot(k))
            w->f->dots(&g);
        else if (k->word == LOPK_PERIODIC)
            w->f->sines(&g);
        else if (k->ard)
            w->f->weighted(&g);
        else
            w->f->plain(&g);
        if (k->word != LOPK_LINEAR) w->f->map(&map);
        if (f) w->f->times(w->tile, w->other, map.count);
    }
}

/* -- products */

/* v and out as reals: a complex column is two. */
typedef struct real_view {
    char *p;
    int64_t rs, cs, parts;
} real_view;
static real_view real_of(const lop_mat *a) {
    const int64_t parts = lop_is_complex(a->dt) ? 2 : 1;
    return (real_view){a->p, a->rs * parts, a->cs * parts, parts};
}
static inline int64_t place(const real_view *a, int64_t i, int64_t c) {
    return a->parts == 1 ? i * a->rs + c * a->cs : i * a->rs + c / 2 * a->cs + c % 2;
}

typedef struct product {
    work w;
    real_view v, out;
    int64_t from, count; /* real columns at hand */
    char *vj, *vi, *yi, *yj;
} product;

/* Number c of row `at`, of the columns at hand. */
static char *number_of(const product *p, const real_view *a, int64_t at, int64_t c) {
    return place_of(&p->w, a->p, place(a, at, p->from + c));
}
/* Rows at .. at + n of v, row by row. */
static void take(const product *p, char *to, int64_t at, int64_t n) {
    const work *w = &p->w;
    const int64_t k = p->count;
    if (k > 1 && p->v.parts == 1)
        for (int64_t i = 0; i < n; i++)
            scaled(w->is_double, place_of(w, to, i * k), 1, number_of(p, &p->v, at + i, 0), p->v.cs,
                   k, 1, 1);
    else
        for (int64_t c = 0; c < k; c++)
            scaled(w->is_double, place_of(w, to, c), k, number_of(p, &p->v, at, c), p->v.rs, n, 1,
                   1);
}
/* out += variance times rows of `from`, row by row. */
static void give(const product *p, const char *from, int64_t at, int64_t n) {
    const work *w = &p->w;
    const int64_t k = p->count;
    if (k > 1 && p->out.parts == 1)
        for (int64_t i = 0; i < n; i++)
            add_scaled(w->is_double, number_of(p, &p->out, at + i, 0), p->out.cs,
                       place_of(w, from, i * k), 1, k, w->variance);
    else
        for (int64_t c = 0; c < k; c++)
            add_scaled(w->is_double, number_of(p, &p->out, at, c), p->out.rs, place_of(w, from, c),
                       k, n, w->variance);
}
static void clear(const product *p, char *a, int64_t rows) {
    memset(a, 0, (size_t)(rows * p->count * p->w.size));
}

/* The tile at rows i, times v's rows of the columns; mirrored: its transpose times v's rows i too.
 */
static void use_tile(product *p, int64_t i, bool mirrored) {
    work *w = &p->w;
    const lop_dtype dt = w->is_double ? LOP_f64 : LOP_f32;
    if (mirrored) take(p, p->vi, i, w->m);
    if (p->count == 1) {
        const dot_job g = {w->tile, p->vj, p->vi, p->yi, p->yj, w->m, w->cols, w->ld};
        clear(p, p->yi, w->m);
        if (mirrored)
            w->f->both(&g);
        else
            w->f->dot(&g);
    } else {
        const lop_mat k = {w->tile, w->m, w->cols, w->ld, 1, dt},
                      kt = {w->tile, w->cols, w->m, 1, w->ld, dt},
                      vj = {p->vj, w->cols, p->count, p->count, 1, dt},
                      vi = {p->vi, w->m, p->count, p->count, 1, dt},
                      yi = {p->yi, w->m, p->count, p->count, 1, dt},
                      yj = {p->yj, w->cols, p->count, p->count, 1, dt};
        lopk_small_gemm(&yi, 0, &k, false, &vj, 0, 1, false);
        if (mirrored) lopk_small_gemm(&yj, 0, &kt, false, &vi, 0, 1, true);
    }
    give(p, p->yi, i, w->m);
}

/* Rows from .. to against the columns j .. end. False: stopped. */
static bool some_rows(product *p, const lopk_part *part, int64_t from, int64_t to, int64_t j,
                      int64_t end) {
    work *w = &p->w;
    for (; j < end; j += w->block) {
        if (lopk_stopped(part)) return false;
        pack_columns(w, j, least(end - j, w->block));
        take(p, p->vj, j, w->cols);
        for (int64_t i = from; i < to; i += w->rows) {
            pack_rows(w, i, least(to - i, w->rows));
            fill_tile(w);
            use_tile(p, i, false);
        }
    }
    return true;
}

/* The points from .. to against the points j .. end behind them, or themselves (from is j): tiles
 * above the diagonal serve twice. */
static bool some_twice(product *p, const lopk_part *part, int64_t from, int64_t to, int64_t j,
                       int64_t end) {
    work *w = &p->w;
    const bool themselves = from == j;
    for (; j < end; j += w->block) {
        if (lopk_stopped(part)) return false;
        pack_columns(w, j, least(end - j, w->block));
        take(p, p->vj, j, w->cols);
        clear(p, p->yj, w->cols);
        const int64_t last = themselves ? j + w->cols : to;
        for (int64_t i = from; i < last; i += w->rows) {
            pack_rows(w, i, least(last - i, w->rows));
            fill_tile(w);
            use_tile(p, i, i < j);
        }
        if (from < j) give(p, p->yj, j, w->cols);
    }
    return true;
}

/* -- on several threads */

typedef struct apply_job {
    const lop_mat *out, *v;
    const lopk_kernel *k;
    int n;
    int64_t from, count; /* real columns at hand */
    int64_t size;        /* points of a part; with `same`, of each of its two sides */
    int sides, turn[SIDES];
} apply_job;

static void open_product(product *p, const apply_job *g, void *room) {
    const int64_t columns = g->v->n * real_of(g->v).parts, chunk = least(columns, CHUNK);
    *p = (product){.v = real_of(g->v), .out = real_of(g->out), .from = g->from, .count = g->count};
    open_work(&p->w, g->k, g->n, g->out, columns > 1, room);
    p->vj = p->w.rest;
    p->vi = p->vj + round64(p->w.r.wide * chunk * p->w.size);
    p->yi = p->vi + round64(p->w.r.high * chunk * p->w.size);
    p->yj = p->yi + round64(p->w.r.high * chunk * p->w.size);
}

static void part_of_rows(void *job, const lopk_part *part) {
    const apply_job *g = job;
    const int64_t from = part->index * g->size;
    product p;
    open_product(&p, g, part->room);
    (void)some_rows(&p, part, from, least(from + g->size, g->out->m), 0, g->v->m);
}

/* Where y is x, points go in an odd number of sides, which meet as in a tournament: in round r side
 * r meets itself, and r + k meets r - k. So in a round no two parts write to one side, and sums are
 * formed in the order of the rounds, whoever forms them. */
static void part_of_pairs(void *job, const lopk_part *part) {
    apply_job *g = job;
    const int games = (g->sides + 1) / 2, round = (int)(part->index / games),
              k = (int)(part->index % games), one = (round + k) % g->sides,
              other = (round - k + g->sides) % g->sides;
    const int a = one < other ? one : other, b = one < other ? other : one;
    const int64_t n = g->v->m, i = a * g->size, j = b * g->size;
    if (!lopk_turn_wait(part, &g->turn[a], round)) return;
    if (a != b && !lopk_turn_wait(part, &g->turn[b], round)) return;
    if (j < n) { /* the last side may be empty */
        product p;
        open_product(&p, g, part->room);
        if (!some_twice(&p, part, i, least(i + g->size, n), j, least(j + g->size, n))) return;
    }
    lopk_turn_pass(part, &g->turn[a]);
    if (a != b) lopk_turn_pass(part, &g->turn[b]);
}

/* How many threads are worth their start: each has a quarter of a millisecond to do. */
static int64_t helpers(const lopk_kernel *k, int n, int64_t rows, int64_t cols, int64_t columns) {
    double each = 2 * (double)columns;
    for (int i = 0; i < n; i++) each += 30 + 3 * (double)k[i].x.n;
    return (int64_t)fmin(each * (double)rows * (double)cols / 8e6, LOPK_MAXTHREADS) + 1;
}
/* Rows of a part: some for each thread, whole tiles, and few enough to be asked often. */
static int64_t part_rows(const lopk_team *team, int64_t m) {
    const int64_t threads = team && team->threads > 1 ? team->threads : 1,
                  rows = (m / (8 * threads) + MANY - 1) / MANY * MANY;
    return rows < MANY ? MANY : least(rows, 64 * MANY);
}

bool lopk_kernel_apply(const lop_mat *out, const lopk_kernel *k, int n, bool same, const lop_mat *v,
                       const lopk_team *team, void *scratch) {
    const int64_t columns = v->n * real_of(v).parts, d = coordinates(k, n), block = block_of(d);
    const lop_dtype dt = lop_dtype_real(out->dt);
    const size_t room = lopk_kernel_scratch(d, dt, out->m, v->m, columns);
    apply_job g = {.out = out, .v = v, .k = k, .n = n, .size = part_rows(team, out->m)};
    void *own = (void *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    lopk_zero(out);
    if (out->m == 0 || out->n == 0 || v->m == 0) return true;
    int64_t parts = (out->m - 1) / g.size + 1, rows = out->m;
    if (same) {
        g.size = ((out->m - 1) / (block * SIDES) + 1) * block;
        g.sides = (int)((out->m - 1) / g.size + 1) | 1;
        parts = (int64_t)g.sides * (g.sides + 1) / 2;
        rows = out->m / 2;
    }
    for (; g.from < columns; g.from += CHUNK) {
        g.count = least(columns - g.from, CHUNK);
        memset(g.turn, 0, sizeof g.turn);
        if (!lopk_parts(team, helpers(k, n, rows, v->m, g.count), parts, room, own,
                        same ? part_of_pairs : part_of_rows, &g))
            return false;
    }
    return true;
}

/* -- entries */

static void store(const work *w, const lop_mat *out, int64_t i, int64_t j, double v) {
    const real_view o = real_of(out);
    put(w->is_double, out->p, place(&o, i, o.parts * j), v);
    if (o.parts == 2) put(w->is_double, out->p, place(&o, i, 2 * j + 1), 0);
}

/* Row r of the tile, from out[i, j] on. */
static void store_row(const work *w, const lop_mat *out, int64_t i, int64_t j, int64_t r) {
    const real_view o = real_of(out);
    if (o.parts == 1 && o.cs == 1)
        scaled(w->is_double, place_of(w, o.p, i * o.rs + j), 1, place_of(w, w->tile, r * w->ld), 1,
               w->cols, w->variance, 1);
    else
        for (int64_t c = 0; c < w->cols; c++)
            store(w, out, i, j + c, w->variance * get(w->is_double, w->tile, r * w->ld + c));
}

static void part_of_entries(void *job, const lopk_part *part) {
    const apply_job *g = job;
    const lop_mat *out = g->out;
    const int64_t from = part->index * g->size, to = least(from + g->size, out->m);
    work w;
    open_work(&w, g->k, g->n, out, false, part->room);
    for (int64_t j = 0; j < out->n; j += w.block) {
        if (lopk_stopped(part)) return;
        pack_columns(&w, j, least(out->n - j, w.block));
        for (int64_t i = from; i < to; i += w.rows) {
            pack_rows(&w, i, least(to - i, w.rows));
            fill_tile(&w);
            for (int64_t r = 0; r < w.m; r++) store_row(&w, out, i + r, j, r);
        }
    }
}

bool lopk_kernel_dense(const lop_mat *out, const lopk_kernel *k, int n, const lopk_team *team,
                       void *scratch) {
    apply_job g = {.out = out, .k = k, .n = n, .size = part_rows(team, out->m)};
    void *own = (void *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    if (out->m == 0 || out->n == 0) return true;
    return lopk_parts(
        team, helpers(k, n, out->m, out->n, 0), (out->m - 1) / g.size + 1,
        lopk_kernel_scratch(coordinates(k, n), lop_dtype_real(out->dt), out->m, out->n, 0), own,
        part_of_entries, &g);
}

void lopk_kernel_diagonal(const lop_mat *out, const lopk_kernel *k, int n, int64_t row,
                          int64_t column, void *scratch) {
    work w;
    if (out->m == 0) return;
    open_work(&w, k, n, out, false, scratch);
    for (int64_t i = 0; i < out->m; i += w.block) {
        pack_pairs(&w, row + i, column + i, least(out->m - i, w.block));
        fill_tile(&w);
        for (int64_t c = 0; c < w.cols; c++)
            store(&w, out, i + c, 0, w.variance * get(w.is_double, w.tile, c));
    }
}
