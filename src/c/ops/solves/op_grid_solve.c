/* op_grid_solve.c: S = s L + c I of the Laplacian L of a rectangular grid, by its eigenvectors.
 *
 *   grid_solve       children S, b: S^-1 b
 *   grid_shift_det   child S: its determinant, a pair (scaled_pair.h); attr.i[0] the dtype
 *
 * On an axis of n points L has the eigenvalues -4 sin^2(t) and these eigenvectors (Strang 1999,
 * sec. 2 and 4; Swarztrauber 1977):
 *
 *   zeros beyond the ends   t = pi (k + 1) / (2 (n + 1))   sines: a DST of type 1
 *   no flux                 t = pi k / (2 n)               cosines: a DCT of type 2, back by type 3
 *   periodic                t = pi k / n                   a DFT
 *
 * Of a box they are sums and products of the axes'. Cost: two transforms an axis, 5 N log2 N flops
 * each, and a division; all in float64. Error: C u log2(N) |S^-1| |b|, normwise. Where a sum of
 * eigenvalues is exactly zero the matrix is singular. */
#include "ops/shared/grid.h"

#include "expr/coefficients.h"
#include "kernels/common/kernels.h"
#include "kernels/dense/k_blas.h"
#include "kernels/fft/k_convolution.h"
#include "kernels/fft/k_fft.h"
#include "kernels/fft/k_transforms.h"
#include "ops/shared/scaled_pair.h"

#include <complex.h>
#include <math.h>
#include <string.h>

enum { SINES, COSINES, RING };

/* -- reading */

static bool read(const lop_node *a, lop_coef by, lop_grid *g, int depth) {
    if (depth == 0 || lop_nbatch(a)) return false;
    if (a->op == &lop_op_scaled)
        return read(a->child[0], lop_coef_times(a->ctx, by, lop_coef_of(&a->attr)), g, depth - 1);
    if (a->op == &lop_op_sum)
        return read(a->child[0], by, g, depth - 1) && read(a->child[1], by, g, depth - 1);
    if (a->op == &lop_op_identity) {
        g->c = lop_coef_plus(a->ctx, g->c, by);
        return true;
    }
    if (a->op != &lop_op_laplacian) return false;
    if (!g->laplacian) g->laplacian = a;
    const lop_node *first = g->laplacian;
    if (first->n != a->n || first->attr.i[0] != a->attr.i[0]) return false;
    for (int i = 0; i < a->n; i++)
        if (lop_rows(first->child[i]) != lop_rows(a->child[i])) return false;
    g->s = lop_coef_plus(a->ctx, g->s, by);
    return true;
}

/* By how it is written, without a look at its numbers. */
static bool may_be(const lop_node *a, int depth) {
    if (depth == 0 || lop_nbatch(a)) return false;
    if (a->op == &lop_op_scaled) return may_be(a->child[0], depth - 1);
    if (a->op == &lop_op_sum)
        return may_be(a->child[0], depth - 1) && may_be(a->child[1], depth - 1);
    return a->op == &lop_op_identity || a->op == &lop_op_laplacian;
}

bool lop_grid_read(const lop_node *a, lop_grid *g) {
    enum { DEPTH = 16 };
    *g = (lop_grid){.laplacian = NULL};
    return may_be(a, DEPTH) && read(a, lop_coef_const(1, 0), g, DEPTH) && g->laplacian &&
           g->laplacian->n <= LOPK_LEVELS && lop_rows(a) > 0 &&
           lop_coef_test(a->ctx, g->s, LOP_COEF_FINITE) &&
           lop_coef_test(a->ctx, g->c, LOP_COEF_FINITE) &&
           !lop_coef_test(a->ctx, g->s, LOP_COEF_ZERO);
}

/* What steps carry: how the ends are taken, the sizes, s and c. */
typedef struct grid_data {
    int64_t ends, axes, n[LOPK_LEVELS];
    double s_re, s_im, c_re, c_im;
} grid_data;
enum {
    GRID_INTS = sizeof(grid_data) / sizeof(int64_t),
    AT_S = GRID_INTS - 4,
    AT_C = GRID_INTS - 2
};

static grid_data describe(const lop_grid *g) {
    grid_data d = {.ends = g->laplacian->attr.i[0],
                   .axes = g->laplacian->n,
                   .s_re = g->s.re,
                   .s_im = g->s.im,
                   .c_re = g->c.re,
                   .c_im = g->c.im};
    for (int i = 0; i < g->laplacian->n; i++) d.n[i] = lop_rows(g->laplacian->child[i]);
    return d;
}
static const grid_data *data_of(const lop_call *c) {
    return (const grid_data *)(const void *)c->step->data;
}

static double eigenvalue(int64_t ends, int64_t n, int64_t k) {
    const double half = 1.5707963267948966192;
    const double t = ends == SINES     ? half * (double)(k + 1) / (double)(n + 1)
                     : ends == COSINES ? half * (double)k / (double)n
                                       : 2 * half * (double)k / (double)n,
                 s = sin(t);
    return -4 * s * s;
}

/* -- transforms: a table of offsets, then for each axis its eigenvalues and its plans */

typedef struct axis_room {
    int64_t values, plan, back, end; /* from the beginning on; `work`: of one line */
    size_t work;
    bool fits;
} axis_room;

static int64_t rounded(size_t bytes) { return ((int64_t)bytes + 63) & ~(int64_t)63; }

static axis_room room_of(int64_t ends, int64_t n, int64_t from) {
    axis_room r = {.values = from, .fits = true};
    size_t plan, back = 0;
    if (ends == SINES) {
        plan = lopk_fft_plan_bytes(2 * (n + 1), LOP_f64);
        r.work =
            lopk_fft_work_bytes(2 * (n + 1), LOP_f64) + 64 + (size_t)(4 * (n + 2)) * sizeof(double);
    } else if (ends == COSINES) {
        plan = lopk_dct_plan_bytes(2, n, LOP_f64);
        back = lopk_dct_plan_bytes(3, n, LOP_f64);
        const size_t a = lopk_dct_work_bytes(2, n, LOP_f64), b = lopk_dct_work_bytes(3, n, LOP_f64);
        r.work = a > b ? a : b;
        r.fits = back != 0;
    } else {
        plan = lopk_fft_plan_bytes(n, LOP_c128);
        r.work = lopk_fft_work_bytes(n, LOP_c128) + 64 + (size_t)(4 * n) * sizeof(double);
    }
    r.fits = r.fits && plan != 0 && r.work != 0;
    r.plan = r.values + rounded((size_t)n * sizeof(double));
    r.back = r.plan + rounded(plan);
    r.end = r.back + rounded(back);
    return r;
}

static lop_status run_plans(const lop_call *c) {
    const grid_data *d = data_of(c);
    char *base = c->a[0]->p;
    int64_t from = 0;
    for (int l = 0; l < d->axes; l++) {
        const int64_t n = d->n[l];
        const axis_room r = room_of(d->ends, n, from);
        lop_status st;
        for (int64_t k = 0; k < n; k++)
            ((double *)(void *)(base + r.values))[k] = eigenvalue(d->ends, n, k);
        if (d->ends == COSINES) {
            st = lopk_dct_plan_init(base + r.plan, 2, n, LOP_f64);
            if (st == LOP_OK) st = lopk_dct_plan_init(base + r.back, 3, n, LOP_f64);
        } else if (d->ends == SINES) {
            st = lopk_fft_plan_init(base + r.plan, 2 * (n + 1), LOP_f64);
        } else {
            st = lopk_fft_plan_init(base + r.plan, n, LOP_c128);
        }
        if (st != LOP_OK) return lop_fail(c->err, LOP_INTERNAL, "no such transform");
        from = r.end;
    }
    return LOP_OK;
}

/* y_k = 2 sum_j x_j sin(pi (j + 1) (k + 1) / (n + 1)), in place: the odd extension's transform. */
static void sines(const void *plan, double *line, int64_t n, void *work) {
    double *odd = work, *seen = odd + 2 * (n + 1);
    void *own = (void *)(((uintptr_t)(seen + 2 * (n + 2)) + 63) & ~(uintptr_t)63);
    odd[0] = odd[n + 1] = 0;
    for (int64_t j = 0; j < n; j++) {
        odd[j + 1] = line[j];
        odd[2 * n + 1 - j] = -line[j];
    }
    lopk_rfft(plan, odd, 2 * (n + 1), 1, seen, own);
    for (int64_t k = 0; k < n; k++) line[k] = -seen[2 * (k + 1) + 1];
}
/* The DFT of re + i im, in place. */
static void ring(const void *plan, double *re, double *im, int64_t n, bool back, void *work) {
    double *in = work, *out = in + 2 * n;
    void *own = (void *)(((uintptr_t)(out + 2 * n) + 63) & ~(uintptr_t)63);
    for (int64_t j = 0; j < n; j++) {
        in[2 * j] = re[j];
        in[2 * j + 1] = im[j];
    }
    lopk_cfft(plan, in, n, 1, out, n, 1, back ? 1 : -1, 1, own);
    for (int64_t j = 0; j < n; j++) {
        re[j] = out[2 * j];
        im[j] = out[2 * j + 1];
    }
}

typedef struct boxes {
    double *re, *im; /* im NULL: all is real */
    double *line;    /* LINES lines of both */
    void *work;
    int64_t count;
} boxes;

/* So many lines that lie beside each other are fetched together: a cache line of doubles. */
enum { LINES = 8 };

static void move(double *box, double *line, int64_t n, int64_t stride, int64_t many, bool in) {
    for (int64_t j = 0; j < n; j++)
        for (int64_t t = 0; t < many; t++) {
            double *a = box + j * stride + t, *b = line + t * n + j;
            if (in)
                *b = *a;
            else
                *a = *b;
        }
}

/* All lines of axis l, whose elements lie `stride` apart. */
static void along(const grid_data *d, int l, const char *plans, const axis_room *r, boxes *b,
                  int64_t stride, bool back) {
    const int64_t n = d->n[l];
    const void *plan = plans + (back && d->ends == COSINES ? r->back : r->plan);
    for (int64_t from = 0; from < b->count; from += n * stride)
        for (int64_t i = 0; i < stride; i += LINES) {
            const int64_t many = stride - i < LINES ? stride - i : LINES, at = from + i;
            double *re = b->line, *im = b->line + LINES * n;
            move(b->re + at, re, n, stride, many, true);
            if (b->im) move(b->im + at, im, n, stride, many, true);
            for (int64_t t = 0; t < many; t++) {
                double *own[2] = {re + t * n, b->im ? im + t * n : NULL};
                if (d->ends == RING) ring(plan, own[0], own[1], n, back, b->work);
                for (int p = 0; p < 2 && d->ends != RING; p++) {
                    if (!own[p]) continue;
                    if (d->ends == SINES)
                        sines(plan, own[p], n, b->work);
                    else
                        lopk_dct(plan, own[p], b->work);
                }
            }
            move(b->re + at, re, n, stride, many, false);
            if (b->im) move(b->im + at, im, n, stride, many, false);
        }
}

/* The sums of the axes' eigenvalues, one after another; `where` begins as zeros. */
static double sum_at(const grid_data *d, const char *plans, const axis_room *r,
                     const int64_t *where) {
    double all = 0;
    for (int l = 0; l < d->axes; l++)
        all += ((const double *)(const void *)(plans + r[l].values))[where[l]];
    return all;
}
static void next(const grid_data *d, int64_t *where) {
    for (int64_t l = d->axes - 1; l >= 0 && ++where[l] == d->n[l]; l--) where[l] = 0;
}

/* Division by s lambda + c, and by what there and back multiply with. */
static lop_status divide(const lop_call *c, const grid_data *d, const char *plans,
                         const axis_room *r, boxes *b) {
    int64_t where[LOPK_LEVELS] = {0};
    double low = INFINITY, high = 0, all = 1;
    for (int l = 0; l < d->axes; l++)
        all *= d->ends == SINES     ? 2 * (double)(d->n[l] + 1)
               : d->ends == COSINES ? 2 * (double)d->n[l]
                                    : (double)d->n[l];
    for (int64_t i = 0; i < b->count; i++, next(d, where)) {
        const double v = sum_at(d, plans, r, where), re = d->s_re * v + d->c_re,
                     im = d->s_im * v + d->c_im, size = hypot(re, im);
        low = size < low ? size : low;
        high = size > high ? size : high;
        if (size == 0)
            return lop_fail(c->err, LOP_RANK,
                            "Singular matrix: eigenvalue %lld of the "
                            "Laplacian of a grid and its shift is exactly zero",
                            (long long)i);
        if (im == 0) {
            b->re[i] /= re * all;
            if (b->im) b->im[i] /= re * all;
        } else {
            const double _Complex q = (b->re[i] + I * b->im[i]) / ((re + I * im) * all);
            b->re[i] = creal(q);
            b->im[i] = cimag(q);
        }
    }
    lop_call_near(c, low / high, lopk_eps(c->a[0]->dt));
    return LOP_OK;
}

static lop_status run_solve(const lop_call *c) {
    const grid_data *d = data_of(c);
    const lop_mat *y = c->a[0], *x = c->a[1];
    const char *plans = c->a[2]->p;
    const bool whole = lop_is_complex(y->dt);
    const int64_t size = (int64_t)lop_dtype_size(y->dt);
    axis_room r[LOPK_LEVELS];
    boxes b = {.re = c->scratch, .count = y->m};
    int64_t most = 0, from = 0;
    for (int l = 0; l < d->axes; l++) {
        r[l] = room_of(d->ends, d->n[l], from);
        from = r[l].end;
        most = d->n[l] > most ? d->n[l] : most;
    }
    b.im = whole || d->ends == RING ? b.re + b.count : NULL;
    b.line = b.re + 2 * b.count;
    b.work = (void *)(((uintptr_t)(b.line + 2 * LINES * most) + 63) & ~(uintptr_t)63);
    for (int64_t j = 0; j < y->n; j++) {
        for (int64_t i = 0; i < b.count; i++) {
            const double _Complex z =
                lop_get(x->dt, (const char *)x->p + (i * x->rs + j * x->cs) * size, 0);
            b.re[i] = creal(z);
            if (b.im) b.im[i] = cimag(z);
        }
        int64_t stride = 1;
        for (int l = (int)d->axes - 1; l >= 0; stride *= d->n[l--])
            along(d, l, plans, &r[l], &b, stride, false);
        lop_status st = divide(c, d, plans, r, &b);
        if (st != LOP_OK) return st;
        stride = 1;
        for (int l = (int)d->axes - 1; l >= 0; stride *= d->n[l--])
            along(d, l, plans, &r[l], &b, stride, true);
        for (int64_t i = 0; i < b.count; i++)
            lop_set(y->dt, (char *)y->p + (i * y->rs + j * y->cs) * size, 0,
                    whole ? b.re[i] + I * b.im[i] : b.re[i]);
    }
    return LOP_OK;
}

/* The slot of the plans; -1 with the status in *st. Scratch of a step on them in *scratch. */
static int emit_plans(lop_emit *e, const lop_grid *g, size_t *scratch, lop_status *st) {
    grid_data d = describe(g);
    int64_t end = 0, most = 0, count = 1;
    size_t work = 0;
    for (int l = 0; l < d.axes; l++) {
        const int64_t n = d.n[l];
        const bool small = n < INT64_MAX / 1024 && lop_mul_ok(count, n, &count);
        const axis_room r = small ? room_of(d.ends, n, end) : (axis_room){0};
        if (!r.fits || count > INT64_MAX / 64) {
            *st = lop_fail(lop_emit_err(e), LOP_OVERFLOW, "no transform has %lld points",
                           (long long)n);
            return -1;
        }
        end = r.end;
        work = r.work > work ? r.work : work;
        most = n > most ? n : most;
    }
    *scratch = (size_t)(2 * count + 2 * LINES * most) * sizeof(double) + 64 + work;
    d.s_re = d.s_im = d.c_re = d.c_im = 0; /* one set of plans for all shifts */
    return lop_emit_derived_data(e, "grid-plan", run_plans, (size_t)end, 0, NULL, NULL,
                                 (const int64_t *)(const void *)&d, GRID_INTS, 0, 0, st);
}

/* The step appended last has the grid's data. */
static lop_status emit_grid(lop_emit *e, const lop_grid *g, const grid_data *d) {
    lop_data_number number[2];
    int many = 0;
    if (g->s.num) number[many++] = (lop_data_number){AT_S, g->s.num};
    if (g->c.num) number[many++] = (lop_data_number){AT_C, g->c.num};
    return lop_emit_data_numbers(e, (const int64_t *)(const void *)d, GRID_INTS, number, many);
}

/* -- grid_solve */

static lop_status infer_solve(lop_node *n, lop_err *err) {
    const lop_node *b = n->child[1];
    lop_grid g;
    if (!lop_grid_read(n->child[0], &g) || b->core != 2 || lop_rows(b) != lop_rows(n->child[0]) ||
        !lop_is_blas(b->dtype) || ((g.s.im != 0 || g.c.im != 0) && !lop_is_complex(b->dtype)))
        return lop_fail(err, LOP_DIM, "grid_solve takes a Laplacian, shifted, and what it fits");
    n->shape = b->shape;
    n->dtype = b->dtype;
    return LOP_OK;
}
static lop_status lower_solve(lop_emit *e, const lop_node *self, int out) {
    lop_grid g;
    lop_status st;
    size_t scratch;
    int64_t m, k, batch;
    if (!lop_grid_read(self->child[0], &g)) return LOP_INTERNAL;
    const grid_data d = describe(&g);
    int in[2] = {lop_emit_cast(e, lop_emit_value(e, self->child[1]), self->dtype, &st), -1};
    if (in[0] < 0) return st;
    in[1] = emit_plans(e, &g, &scratch, &st);
    if (in[1] < 0) return st;
    lop_slot_sizes(e, out, &m, &k, &batch);
    lop_step *s = lop_emit_step(e, "grid-solve", run_solve, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->scratch = scratch;
    s->flags = LOP_STEP_COLUMNS;
    const double parts = lop_is_complex(self->dtype) || d.ends == RING ? 2 : 1;
    s->flops = parts * 10 * (double)m * log2((double)m + 1) * (double)k * (double)batch;
    return emit_grid(e, &g, &d);
}
const lop_op lop_op_grid_solve = {LOP_NAMED(grid_solve), .cls = LOP_ACTION,   .min = 2, .max = 2,
                                  .infer = infer_solve,  .lower = lower_solve};

/* -- grid_shift_det */

static lop_status infer_det(lop_node *n, lop_err *err) {
    const lop_shape none = {0};
    lop_grid g;
    if (!lop_grid_read(n->child[0], &g) || n->attr.i[0] < LOP_f32 || n->attr.i[0] > LOP_c128)
        return lop_fail(err, LOP_DIM, "grid_shift_det takes a Laplacian, shifted");
    return lop_pair_infer(n, &none, 0, (lop_dtype)n->attr.i[0]);
}
static lop_status run_det(const lop_call *c) {
    const grid_data *d = data_of(c);
    const char *plans = c->a[1]->p;
    int64_t where[LOPK_LEVELS] = {0}, count = 1, from = 0;
    axis_room r[LOPK_LEVELS];
    for (int l = 0; l < d->axes; l++) {
        r[l] = room_of(d->ends, d->n[l], from);
        from = r[l].end;
        count *= d->n[l];
    }
    const bool whole = d->s_im != 0 || d->c_im != 0;
    lop_pair all = {1, 0, 0};
    for (int64_t i = 0; i < count; i++, next(d, where)) {
        const double v = sum_at(d, plans, r, where);
        const lop_pair one = {d->s_re * v + d->c_re, d->s_im * v + d->c_im, 0};
        all = lop_pair_onto(all, one, whole);
    }
    lop_pair_store(c->a[0], lop_pair_scaled(all));
    return LOP_OK;
}
static lop_status lower_det(lop_emit *e, const lop_node *self, int out) {
    lop_grid g;
    lop_status st;
    size_t scratch;
    if (!lop_grid_read(self->child[0], &g)) return LOP_INTERNAL;
    const grid_data d = describe(&g);
    const int in = emit_plans(e, &g, &scratch, &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, "grid-det", run_det, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->flops = 4.0 * (double)lop_rows(self->child[0]);
    return emit_grid(e, &g, &d);
}
const lop_op lop_op_grid_shift_det = {
    LOP_NAMED(grid_shift_det), .cls = LOP_ACTION, .min = 1, .max = 1, .ints = 1,
    .infer = infer_det,        .lower = lower_det};
