/* op_circulant_quotient.c: functions of circulants by their eigenvalues, number by number.
 *
 *   circulant_spectrum    the eigenvalues of C(c): of a real c half of the last level, as an rfft
 *   circulant_quotient    F^-1 (t / (b1 b2 ...)) F x, of spectra t, b1, ... in double precision
 *
 * One pair of transforms whatever the function: a product, sum or solve of functions of circulants
 * is one of their eigenvalues. Each computed eigenvalue is one of a circulant within C u log2(n)
 * |C| of C, and all uses of C have the same; a quotient adds a few rounding errors to each number.
 * A divisor that is exactly zero is a singular matrix. */
#include "kernels/dense/k_blas.h"
#include "kernels/fft/k_fft.h"
#include "ops/shared/convolution.h"

#include <float.h>
#include <math.h>
#include <string.h>

int64_t lop_spectrum_length(const lop_node *sizes, lop_dtype dt) {
    int64_t all = 1;
    for (int l = 0; l < sizes->shape.ndim; l++) {
        const int64_t n = sizes->shape.dim[l];
        all *= lop_is_complex(dt) || l + 1 < sizes->shape.ndim ? n : n / 2 + 1;
    }
    return all;
}

static lop_status infer_spectrum(lop_node *n, lop_err *err) {
    const lop_node *c = n->child[0], *sizes = n->child[1];
    lop_status st = lop_conv_infer(n, c, sizes, err);
    if (st != LOP_OK) return st;
    if (!lop_is_blas(c->dtype) || lop_cols(c) == 0)
        return lop_fail(err, LOP_DTYPE, "circulant_spectrum takes a vector of floats");
    n->core = 1;
    n->shape.dim[n->shape.ndim++] = lop_spectrum_length(sizes, c->dtype);
    n->dtype = lop_promote(c->dtype, LOP_c64);
    return LOP_OK;
}
static lop_status run_copy(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const lop_mat from = {(char *)c->a[1]->p + c->step->attr.i[0], y->m, 1, 1, 1, y->dt};
    lopk_copy(y, &from);
    return LOP_OK;
}
static lop_status lower_spectrum(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    lopk_conv c;
    size_t at = 0;
    lop_circular_geometry(self->child[1], &c);
    const int g = lop_emit_cast(e, lop_emit_value(e, self->child[0]), self->child[0]->dtype, &st),
              blob = g < 0 ? -1 : lop_conv_spectrum(e, &c, g, &at, &st);
    if (blob < 0) return st;
    lop_step *s = lop_emit_step(e, "eigenvalues", run_copy, out, 1, &blob);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = (int64_t)at;
    return LOP_OK;
}
const lop_op lop_op_circulant_spectrum = {
    LOP_NAMED(circulant_spectrum), .cls = LOP_ARRAY,       .min = 2, .max = 2,
    .infer = infer_spectrum,       .lower = lower_spectrum};

/* -- circulant_quotient: children sizes, x, t, b1, ...; attr.i[0] the dtype of the matrix + 1;
 * i[1] is 1 where t too is an inverse's: zeros there are a singular matrix as well. */

enum { TOP = 2 };

static lop_status infer_quotient(lop_node *n, lop_err *err) {
    const lop_node *sizes = n->child[0], *x = n->child[1];
    const lop_dtype dt = (lop_dtype)(n->attr.i[0] - 1);
    int64_t all;
    if (sizes->op != &lop_op_sizes || x->core != 2 || n->attr.i[0] < 1 || !lop_is_blas(dt) ||
        lop_promote(x->dtype, dt) != x->dtype || lop_dtype_real(x->dtype) != lop_dtype_real(dt))
        return lop_fail(err, LOP_DTYPE, "circulant_quotient takes sizes and columns");
    lop_status st = lop_shape_count(&sizes->shape, &all, err);
    if (st != LOP_OK) return st;
    if (all != lop_rows(x) || all == 0)
        return lop_fail(err, LOP_DIM, "circulant_quotient: columns that fit are needed");
    for (int i = TOP; i < n->n; i++) {
        const lop_node *s = n->child[i];
        if (s->core != 1 || s->shape.ndim != 1 || s->dtype != LOP_c128 ||
            lop_cols(s) != lop_spectrum_length(sizes, dt))
            return lop_fail(err, LOP_DIM, "circulant_quotient: spectra that fit are needed");
    }
    n->shape = x->shape;
    n->core = 2;
    n->dtype = x->dtype;
    return LOP_OK;
}

static lop_status run_plan(const lop_call *c) {
    const lop_status st =
        lopk_nd_plan_init(c->a[0]->p, c->step->data, c->step->ndata, (lop_dtype)c->step->attr.i[0]);
    return st == LOP_OK ? st : lop_fail(c->err, LOP_INTERNAL, "no such FFT");
}

/* NaN where a divisor is out of range: it is not one to divide by. */
static void drop_infinite(const lop_mat *q, const lop_mat *b) {
    const int64_t cell = (int64_t)lop_dtype_size(q->dt);
    for (int64_t k = 0; k < q->m; k++) {
        const double _Complex z = lop_get(b->dt, (const char *)b->p + k * b->rs * cell, 0);
        if (!isfinite(creal(z)) || !isfinite(cimag(z)))
            lop_set(q->dt, (char *)q->p + k * cell, 0, NAN);
    }
}

/* Beyond these products of a few eigenvalues are no numbers, or have lost all digits. */
static const double SMALLEST = 1e-90, LARGEST = 1e90;
/* Where a divisor is in range, what a product on top of it has lost is lost of the whole too. */
static lop_status leaves_range(const lop_call *c, double most, bool alone) {
    if (alone || !(most > 0) || !(most <= DBL_MAX) || (most >= SMALLEST && most <= LARGEST))
        return LOP_OK;
    return lop_fail(c->err, LOP_OVERFLOW,
                    "eigenvalues of circulants that are multiplied with one another reach %.1e: "
                    "products of more leave the range of float64; scale the matrices",
                    most);
}

/* The quotient of all spectra, in q. */
static lop_status divide(const lop_call *c, const lop_mat *q) {
    const lop_mat *const *of = c->a + 1 + TOP;
    const int many = c->step->n - 1 - TOP;
    const lop_mat top = {of[0]->p, q->m, q->m, of[0]->rs, 0, q->dt};
    double low, high;
    bool zero = false;
    lopk_copy(q, of[0]);
    lopk_pivot_range(&top, &low, &high);
    const bool alone = many == 2 && low == 1 && high == 1;
    for (int i = c->step->attr.i[2] ? 0 : 1; i < many; i++) {
        const lop_mat along = {of[i]->p, q->m, q->m, of[i]->rs, 0, q->dt},
                      b = {of[i]->p, q->m, 1, of[i]->rs, 1, q->dt};
        double least, most;
        lopk_pivot_range(&along, &least, &most);
        zero = zero || least == 0;
        if (i == 0) continue;
        const lop_status st = leaves_range(c, most, alone);
        if (st != LOP_OK) return st;
        lop_call_near(c, lopk_range_ratio(least, most), lopk_eps(c->a[0]->dt));
        lopk_div(q, q, &b);
        if (!(most <= DBL_MAX)) drop_infinite(q, &b);
    }
    if (!zero) return LOP_OK;
    return lop_fail(c->err, LOP_SINGULAR,
                    "Singular matrix: an eigenvalue of the circulant is exactly zero");
}
static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* attr.i: bytes of the panel that the scratch begins with, of the quotient behind it. */
static void product(const lop_mat *y, const lop_mat *x, const void *arg) {
    const lop_call *c = arg;
    const int64_t *at = c->step->attr.i;
    char *quotient = (char *)c->scratch + at[0];
    lopk_nd_product(y, (const lopk_conv *)(const void *)c->step->data, quotient, c->a[2]->p, false,
                    false, x, quotient + at[1]);
}
static lop_status run_quotient(const lop_call *c) {
    const lop_mat *t = c->a[1 + TOP];
    const int64_t *at = c->step->attr.i, cell = (int64_t)lop_dtype_size(t->dt);
    const bool narrow = lop_dtype_real(c->a[0]->dt) == LOP_f32;
    char *quotient = (char *)c->scratch + at[0],
         *wide = narrow ? (char *)c->scratch + at[3] : quotient;
    const lop_mat q = {wide, t->m, 1, 1, 1, t->dt};
    const lop_status st = divide(c, &q);
    if (st != LOP_OK) return st;
    for (int64_t k = 0; narrow && k < q.m; k++)
        lop_set(LOP_c64, quotient, k, lop_get(t->dt, wide + k * cell, 0));
    lopk_by_panels(c->a[0], c->a[1], c->scratch, (size_t)at[0], product, c);
    return LOP_OK;
}

static lop_status lower_quotient(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    lopk_conv c;
    int64_t N[LOPK_LEVELS], m, k, batch;
    const lop_dtype dt = (lop_dtype)(self->attr.i[0] - 1);
    int in[LOP_MAXARG];
    lop_circular_geometry(self->child[0], &c);
    const bool fits = lopk_conv_lengths(&c, dt, true, N);
    const size_t plan = fits ? lopk_nd_plan_bytes(N, c.levels, dt) : 0,
                 work = fits ? lopk_nd_work_bytes(N, c.levels, dt) : 0;
    if (!plan || !work)
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "no FFT is as long as this matrix needs");
    in[0] = lop_emit_value(e, self->child[1]);
    const lop_attr attr = {.i = {dt, 0, 0, 0}};
    in[1] = lop_emit_derived_data(e, "fft-plan", run_plan, plan, 0, NULL, &attr, N, (int)c.levels,
                                  0, 0, &st);
    if (in[1] < 0) return st;
    for (int i = TOP; i < self->n; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, "circulant-quotient", run_quotient, out, self->n, in);
    if (!s) return LOP_NOMEM;
    lop_slot_sizes(e, out, &m, &k, &batch);
    const size_t panel = lopk_panel_bytes(m, m, k, self->dtype),
                 quotient = rounded(lopk_nd_spectrum_bytes(N, c.levels, dt));
    const size_t before = panel + quotient + rounded(work),
                 wide = rounded((size_t)lop_cols(self->child[TOP]) * lop_dtype_size(LOP_c128));
    s->attr =
        (lop_attr){.i = {(int64_t)panel, (int64_t)quotient, self->attr.i[1], (int64_t)before}};
    s->scratch = before + (lop_dtype_real(dt) == LOP_f32 ? wide : 0);
    s->flags = LOP_STEP_COLUMNS;
    s->flops = lopk_conv_fft_flops(N, c.levels) * (lop_is_complex(dt) ? 2 : 1) * (double)k *
                   (double)batch +
               (double)(self->n - TOP - 1) * (double)lop_cols(self->child[TOP]);
    return lop_emit_data(e, (const int64_t *)&c, LOPK_CONV_INTS);
}
const lop_op lop_op_circulant_quotient = {
    LOP_NAMED(circulant_quotient), .cls = LOP_ARRAY,       .min = TOP + 1, .max = 6, .ints = 2,
    .infer = infer_quotient,       .lower = lower_quotient};
