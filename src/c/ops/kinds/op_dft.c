/* op_dft.c: the discrete Fourier transform, of one or several dimensions.
 *
 * F[j, k] = s exp(-2 pi i j k / n), the product of those of the levels on raveled boxes; s by the
 * norm. Symmetric; F^-1 is the conjugate with the opposite norm, so inverses close. No storage; the
 * FFT's plan is a derived value. attr.i[0] norm, [1] weakness, [2] dtype. */
#include "ops/shared/convolution.h"

#include "kernels/fft/k_transforms.h"

#include <math.h>

enum { BACKWARD, ORTHO, FORWARD };

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *sizes = n->child[0];
    int64_t all;
    if (sizes->op != &lop_op_sizes || n->attr.i[0] < BACKWARD || n->attr.i[0] > FORWARD)
        return lop_fail(err, LOP_DIM, "dft takes sizes and a norm");
    if (n->attr.i[1] < 0 || n->attr.i[1] > LOP_WEAK_COMPLEX || n->attr.i[2] < 0 ||
        n->attr.i[2] >= LOP_NDTYPE)
        return lop_fail(err, LOP_DTYPE, NULL);
    if (n->attr.i[1]) n->attr.i[1] = LOP_WEAK_COMPLEX;
    if (!n->attr.i[1] && !lop_is_complex((lop_dtype)n->attr.i[2]))
        return lop_fail(err, LOP_DTYPE, "a Fourier transform is complex, not %s",
                        lop_dtype_name((lop_dtype)n->attr.i[2]));
    lop_status st = lop_shape_count(&sizes->shape, &all, err);
    n->shape = (lop_shape){.ndim = 2, .dim = {all, all}};
    n->weak = (uint8_t)n->attr.i[1];
    n->dtype = n->weak ? LOP_c128 : (lop_dtype)n->attr.i[2];
    return st;
}

static lop_truth trait(const lop_node *self, lop_trait t) {
    if (t == LOP_SYMMETRIC) return LOP_TRUE;
    return t == LOP_ORTHOGONAL && self->attr.i[0] == ORTHO ? LOP_TRUE : LOP_UNKNOWN;
}

static double scale_of(const lop_node *self) {
    const double n = (double)lop_rows(self);
    return self->attr.i[0] == BACKWARD ? 1 : self->attr.i[0] == ORTHO ? 1 / sqrt(n) : 1 / n;
}

static lop_status run_plan(const lop_call *c) {
    lop_status st =
        lopk_nd_plan_init(c->a[0]->p, c->step->data, c->step->ndata, (lop_dtype)c->step->attr.i[0]);
    return st == LOP_OK ? st : lop_fail(c->err, LOP_INTERNAL, "no such FFT");
}
static lop_status run_dft(const lop_call *c) {
    lopk_nd_transform(c->a[0], c->a[2]->p, c->a[1], c->step->attr.i[0] ? 1 : -1, c->step->attr.re,
                      c->scratch);
    return LOP_OK;
}
static lop_status run_nothing(const lop_call *c) {
    (void)c;
    return LOP_OK;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    const lop_shape *n = &self->child[0]->shape;
    lop_dtype dt = lop_slot_dtype(e, out);
    int64_t k, batch;
    if (lop_rows(self) == 0)
        return lop_emit_step(e, "nothing", run_nothing, out, 1, &x) ? LOP_OK : LOP_NOMEM;
    size_t plan = lopk_nd_plan_bytes(n->dim, n->ndim, dt),
           work = lopk_nd_work_bytes(n->dim, n->ndim, dt);
    if (!plan || !work)
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "no FFT has %lld elements",
                        (long long)lop_rows(self));
    lop_attr attr = {.i = {dt, 0, 0, 0}};
    int in[2] = {x, lop_emit_derived_data(e, "fft-plan", run_plan, plan, 0, NULL, &attr, n->dim,
                                          n->ndim, 0, 0, &st)};
    if (in[1] < 0) return st;
    lop_slot_sizes(e, out, NULL, &k, &batch);
    lop_step *s = lop_emit_step(e, "fft", run_dft, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {mode & LOP_C, 0, 0, 0}, .re = scale_of(self)};
    s->scratch = work;
    s->flags = LOP_STEP_COLUMNS;
    s->flops = lopk_conv_fft_flops(n->dim, n->ndim) * (double)k * (double)batch;
    return LOP_OK;
}

/* attr.i: first row and column, whether along a diagonal; re the scale; data the sizes. */
static lop_status run_entries(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const int64_t *at = c->step->attr.i, *n = c->step->data, size = (int64_t)lop_dtype_size(y->dt);
    for (int64_t i = 0; i < y->m; i++)
        for (int64_t j = 0; j < y->n; j++) {
            int64_t row = at[0] + i, col = at[1] + (at[2] ? i : j);
            double re = c->step->attr.re, im = 0;
            for (int l = c->step->ndata - 1; l >= 0; l--) {
                double a, b;
                lopk_turn(lopk_mulmod(row % n[l], col % n[l], n[l]), n[l], &a, &b);
                const double old = re;
                re = re * a + im * b; /* times a - i b */
                im = im * a - old * b;
                row /= n[l];
                col /= n[l];
            }
            lop_set(y->dt, (char *)y->p + (i * y->rs + j * y->cs) * size, 0, re + im * I);
        }
    return LOP_OK;
}
static lop_status entries(lop_emit *e, const lop_node *self, int64_t i, int64_t j, bool diagonal,
                          int out) {
    const lop_shape *n = &self->child[0]->shape;
    lop_step *s = lop_emit_step(e, "entries", run_entries, out, 0, NULL);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {i, j, diagonal, 0}, .re = scale_of(self)};
    return lop_emit_data(e, n->dim, n->ndim);
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    return entries(e, self, 0, 0, false, out);
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    return entries(e, self, k < 0 ? -k : 0, k > 0 ? k : 0, true, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return entries(e, self, i, j, true, out);
}
static double flops(const lop_node *self, int64_t k) {
    return lopk_conv_fft_flops(self->child[0]->shape.dim, self->child[0]->shape.ndim) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n || !lop_is_complex(dt)) return LOP_UNABLE;
    const lop_node *sizes;
    const bool two = n % 2 == 0 && n > 0;
    const int64_t size[2] = {two ? n / 2 : n, 2};
    lop_attr attr = {.i = {lop_rng_range(&r->rng, 0, 3), 0, dt, 0}};
    lop_status st = lop_sizes_make(r->ctx, two ? 2 : 1, size, &sizes, r->err);
    if (st != LOP_OK) return st;
    st = lop_node_make(r->ctx, &lop_op_dft, &attr, 1, &sizes, NULL, out, r->err);
    lop_node_unref(sizes);
    return st;
}

const lop_op lop_op_dft = {
    LOP_NAMED(dft),
    .flags = LOP_FLAG_transform | LOP_FLAG_at_once | LOP_FLAG_own_inverse,
    .title = "DFT",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .ints = 3,
    .param = {{"n", LOP_P_SIZES, 0, NULL, "Size, or the shape of the raveled arrays it acts on.",
               NULL},
              {"norm", LOP_P_WORD, 0, "None",
               "'backward' (None): as scipy.linalg.dft(n) and numpy.fft.fft; 'ortho': unitary, "
               "divided by sqrt(n); 'forward': divided by n.",
               "backward ortho forward"},
              {"dtype", LOP_P_DTYPE, 0, "None",
               "complex64 or complex128; None follows what it meets (float32 gives complex64).",
               NULL}},
    .doc = {.brief = "The discrete Fourier transform, ``numpy.fft.fftn`` of raveled arrays.",
            .extended = "``inv(F)`` is the inverse transform, ``F.H`` the unscaled one back.",
            .cost = "Build, storage: O(1). Product: one FFT a column, any n (large primes by "
                    "Bluestein's convolution). The FFT's tables are kept.",
            .notes = "Accurate normwise: C u log2(n) |x|.",
            .limits = "It has 5 levels at most.",
            .example = ">>> (pl.DFT(4) @ np.array([1., 0., 0., 0.])).real\n"
                       "array([1., 1., 1., 1.])"},
    .infer = infer,
    .trait = trait,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};
