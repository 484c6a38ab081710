/* op_circulant.c: C[i, j] = c[i - j mod n], of one level or several (blocks of circulants).
 *
 * Storage: the first column c, raveled, and the sizes of its levels; the operator acts on raveled
 * boxes of those sizes. Diagonal under the Fourier transform, so products of circulants and
 * inverses are circulant again. Products by definition or FFT: convolution.c. Solves divide by the
 * eigenvalues (kept): the matrix is normal, so the computed x solves a matrix within C u log2(n)
 * |C| of this one for a right-hand side as near: backward stable at any condition, no check is
 * needed. */
#include "ops/projections/projections.h"
#include "ops/shared/convolution.h"
#include "ops/shared/scaled_pair.h"

#include <math.h>
#include <string.h>

static lop_status infer(lop_node *n, lop_err *err) {
    lop_status st = lop_conv_infer(n, n->child[0], n->child[1], err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_cols(n->child[0]);
    n->shape.dim[n->shape.ndim++] = lop_cols(n->child[0]);
    return LOP_OK;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lopk_conv c;
    lop_circular_geometry(self->child[1], &c);
    return lop_conv_apply(e, &c, self->child[0], mode, x, out);
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    lopk_conv c;
    lop_circular_geometry(self->child[1], &c);
    return lop_conv_dense(e, &c, self->child[0], out);
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    lopk_conv c;
    lop_circular_geometry(self->child[1], &c);
    return lop_conv_diagonal(e, &c, self->child[0], k, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    lopk_conv c;
    lop_circular_geometry(self->child[1], &c);
    return lop_conv_element(e, &c, self->child[0], i, j, out);
}
static double flops(const lop_node *self, int64_t k) {
    lopk_conv c;
    lop_circular_geometry(self->child[1], &c);
    return lop_conv_flops(&c, k);
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n) return LOP_UNABLE;
    const lop_node *v[2] = {0};
    int64_t sizes[2] = {n, 1};
    for (int64_t p = 2; p < 4; p++)
        if (n % p == 0 && lop_rng_range(&r->rng, 0, 2)) sizes[0] = n / p, sizes[1] = p;
    lop_status st = lop_rand_vector(r, dt, n, &v[0]);
    if (st == LOP_OK) st = lop_sizes_make(r->ctx, sizes[1] > 1 ? 2 : 1, sizes, &v[1], r->err);
    if (st == LOP_OK) st = lop_node_make(r->ctx, &lop_op_circulant, NULL, 2, v, NULL, out, r->err);
    lop_node_unref(v[0]);
    lop_node_unref(v[1]);
    return st;
}

static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const lop_node *n = self->child[1];
    if (child) return lop_vjp_unable(v);
    return n->shape.ndim == 1 ? lop_vjp_sums(v, g, (lopk_lines){.circular = true})
                              : lop_vjp_boxes(v, g, LOP_CONV_CIRCULAR, n, n);
}

const lop_op lop_op_circulant = {
    LOP_NAMED(circulant),
    .flags = LOP_FLAG_closed_spectrum | LOP_FLAG_entries | LOP_FLAG_at_once | LOP_FLAG_own_inverse |
             LOP_FLAG_tells | LOP_FLAG_meets | LOP_FLAG_linear | LOP_FLAG_raveled,
    .title = "Circulant",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 2,
    .param = {{"c", LOP_P_ARRAY, -1, NULL,
               "First column, shape (..., n); with levels, (..., n1, n2, ...). Borrowed.", NULL},
              {"levels", LOP_P_LEVELS, 0, "1",
               "How many trailing dimensions of c are its levels: 2 makes a block circulant matrix "
               "with circulant blocks (BCCB), which convolves raveled n1 x n2 arrays "
               "periodically.",
               NULL}},
    .doc = {.brief = "A circulant matrix, as scipy.linalg.circulant: ``C[i, j]`` is "
                     "``c[(i - j) % n]``.",
            .extended = "Sums, multiples, products and transposes of circulants are circulant. "
                        "Solves divide by the eigenvalues, the Fourier transform of c.",
            .cost = "Build: O(1). Product: two FFTs of length n a column (up to 2 n where n has "
                    "large prime factors); the spectrum is kept. Solve: the same. Memory O(n).",
            .notes = "Products by FFT are accurate normwise, C u log2(N) |spectrum| |x|; "
                     "pl.config(fft=False) gives direct loops with a componentwise bound; small "
                     "and integer ones always have it. The kept spectrum is checked against the "
                     "content of c on each call. Solves are backward stable. An eigenvalue that is "
                     "exactly zero raises LinAlgError.",
            .limits = "It has 5 levels at most. As a factor in a sum of Krons it counts as a "
                      "dense one.",
            .example = ">>> pl.Circulant([1., 2., 3.]) @ np.array([1., 0., 0.])\n"
                       "array([1., 2., 3.])\n"
                       ">>> pl.Circulant([[4., 1.], [1., 0.]], levels=2).toarray()\n"
                       "array([[4., 1., 1., 0.],\n       [1., 4., 0., 1.],\n       "
                       "[1., 0., 4., 1.],\n       [0., 1., 1., 4.]])"},
    .infer = infer,
    .vjp = vjp,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};

/* -- array expressions of first columns */

/* circulant_flip: the first column of the transpose, c[-k mod n] on every level. */
static lop_status infer_flip(lop_node *n, lop_err *err) {
    lop_status st = lop_conv_infer(n, n->child[0], n->child[1], err);
    n->core = 1;
    if (st == LOP_OK) n->shape.dim[n->shape.ndim++] = lop_cols(n->child[0]);
    return st;
}
static lop_status run_flip(const lop_call *c) {
    const lop_mat *y = c->a[0], *x = c->a[1];
    const int64_t *n = c->step->data, size = (int64_t)lop_dtype_size(y->dt);
    for (int64_t i = 0; i < y->m; i++) {
        int64_t rest = i, from = 0, step = 1;
        for (int l = c->step->ndata - 1; l >= 0; l--) {
            const int64_t k = rest % n[l];
            rest /= n[l];
            from += (k ? n[l] - k : 0) * step;
            step *= n[l];
        }
        memcpy((char *)y->p + i * y->rs * size, (const char *)x->p + from * x->rs * size,
               (size_t)size);
    }
    return LOP_OK;
}
static lop_status lower_flip(lop_emit *e, const lop_node *self, int out) {
    int in = lop_emit_value(e, self->child[0]);
    const lop_shape *s = &self->child[1]->shape;
    if (!lop_emit_step(e, "circulant_flip", run_flip, out, 1, &in)) return LOP_NOMEM;
    return lop_emit_data(e, s->dim, s->ndim);
}
const lop_op lop_op_circulant_flip = {
    LOP_NAMED(circulant_flip), .cls = LOP_ARRAY,   .min = 2, .max = 2,
    .infer = infer_flip,       .lower = lower_flip};

/* circular_convolution: the first column of a product, the circular convolution of the two. */
static lop_status infer_conv(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1];
    lop_status st = lop_conv_infer(n, a, n->child[2], err);
    if (st == LOP_OK) st = lop_conv_infer(n, b, n->child[2], err);
    if (st == LOP_OK) st = lop_shape_batch(&a->shape, 1, &b->shape, 1, &n->shape, err);
    if (st != LOP_OK) return st;
    n->core = 1;
    n->shape.dim[n->shape.ndim++] = lop_cols(a);
    lop_node_promote(n, a, b);
    return LOP_OK;
}
static lop_status lower_conv(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    lopk_conv c;
    lop_circular_geometry(self->child[2], &c);
    int x = lop_emit_cast(e, lop_emit_value(e, self->child[1]), self->dtype, &st);
    return x < 0 ? st : lop_conv_apply(e, &c, self->child[0], LOP_N, x, out);
}
const lop_op lop_op_circular_convolution = {LOP_NAMED(circular_convolution),
                                            .cls = LOP_ARRAY,
                                            .min = 3,
                                            .max = 3,
                                            .infer = infer_conv,
                                            .lower = lower_conv};

/* circulant_solve: mode(C)^-1 b; children c, sizes, b; attr.i[0] the mode. */
static lop_status infer_solve(lop_node *n, lop_err *err) {
    const lop_node *c = n->child[0], *b = n->child[2];
    lop_status st = lop_conv_infer(n, c, n->child[1], err);
    if (st != LOP_OK) return st;
    if (b->core != 2 || lop_rows(b) != lop_cols(c) || n->attr.i[0] < 0 || n->attr.i[0] > 3)
        return lop_fail(err, LOP_DIM, "circulant_solve: right-hand sides that fit are needed");
    st = lop_shape_batch(&c->shape, 1, &b->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(b);
    n->shape.dim[n->shape.ndim++] = lop_cols(b);
    n->core = 2;
    lop_node_promote_inverse(n, c, b);
    return LOP_OK;
}
static lop_status lower_solve(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    lopk_conv c;
    lop_circular_geometry(self->child[1], &c);
    int x = lop_emit_cast(e, lop_emit_value(e, self->child[2]), self->dtype, &st);
    return x < 0 ? st : lop_conv_solve(e, &c, self->child[0], (lop_mode)self->attr.i[0], x, out);
}
const lop_op lop_op_circulant_solve = {
    LOP_NAMED(circulant_solve), .cls = LOP_ARRAY,    .min = 3, .max = 3, .ints = 1,
    .infer = infer_solve,       .lower = lower_solve};

/* -- circulant_det: the product of the eigenvalues; children c, sizes -- */

static lop_status infer_det(lop_node *n, lop_err *err) {
    const lop_node *c = n->child[0];
    lop_status st = lop_conv_infer(n, c, n->child[1], err);
    if (st == LOP_OK && !lop_is_blas(c->dtype))
        st = lop_fail(err, LOP_DTYPE, "circulant_det takes a vector of floats");
    return st == LOP_OK ? lop_pair_infer(n, &c->shape, 1, c->dtype) : st;
}

/* 2^k times c, near 1 at its largest: what the transform adds up stays in range. */
static double near_one(const lop_mat *to, const lop_mat *c) {
    double top = 0;
    int k = 0;
    for (int64_t i = 0; i < c->m; i++) {
        const double _Complex z = lop_get(c->dt, c->p, i * c->rs);
        top = fmax(top, fmax(fabs(creal(z)), fabs(cimag(z))));
    }
    lopk_copy(to, c);
    if (!(top > 0 && isfinite(top))) return 0;
    (void)frexp(top, &k);
    lopk_scale(to, ldexp(1, -k / 2), 0, to); /* 2^-k alone may be out of range */
    lopk_scale(to, ldexp(1, -k + k / 2), 0, to);
    return (double)k;
}

/* Of a real c the spectrum has half of its last level; the rest are conjugates. So the product is
 * real: of |z|^2, and of those that are their own conjugates. */
static lop_pair of_half(const char *spectrum, lop_dtype wide, const int64_t *n, int64_t levels) {
    const int64_t last = n[levels - 1], row = last / 2 + 1;
    int64_t lines = 1;
    lop_pair all = {1, 0, 0};
    for (int64_t l = 0; l + 1 < levels; l++) lines *= n[l];
    for (int64_t o = 0; o < lines; o++) {
        int64_t rest = o, mirror = 0, step = 1;
        for (int64_t l = levels - 2; l >= 0; l--) {
            const int64_t at = rest % n[l];
            rest /= n[l];
            mirror += (at ? n[l] - at : 0) * step;
            step *= n[l];
        }
        for (int64_t k = 0; k < row; k++) {
            const bool within = k == 0 || 2 * k == last; /* its conjugate is in the half too */
            const double _Complex z = lop_get(wide, spectrum, o * row + k);
            const lop_pair size = {hypot(creal(z), cimag(z)), 0, 0}, own = {creal(z), 0, 0};
            if (within && mirror < o) continue;
            all = lop_pair_onto(all, within && mirror == o ? own : size, false);
            if (!within || mirror != o) all = lop_pair_onto(all, size, false);
        }
    }
    return lop_pair_scaled(all);
}

static lop_status run_fft_plan(const lop_call *c) {
    lop_status st =
        lopk_nd_plan_init(c->a[0]->p, c->step->data, c->step->ndata, (lop_dtype)c->step->attr.i[0]);
    return st == LOP_OK ? st : lop_fail(c->err, LOP_INTERNAL, "no such FFT");
}
static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
static lop_status run_det(const lop_call *c) {
    const lopk_conv *g = (const lopk_conv *)(const void *)c->step->data;
    const lop_mat *v = c->a[1];
    const lop_dtype dt = v->dt, wide = lop_promote(dt, LOP_c64);
    if (v->m == 0) {
        lop_pair_store(c->a[0], lop_pair_one());
        return LOP_OK;
    }
    char *spectrum = c->scratch;
    char *copy = spectrum + rounded(lopk_nd_spectrum_bytes(g->in, g->levels, dt)),
         *work = copy + rounded((size_t)v->m * lop_dtype_size(dt));
    const lop_mat own = {copy, v->m, 1, 1, 1, dt};
    const double k = near_one(&own, v);
    lop_status st = lopk_nd_spectrum(c->a[2]->p, g, &own, false, spectrum, work);
    if (st != LOP_OK) return st;
    const lop_mat all = {spectrum, v->m, 1, 1, 1, wide};
    lop_pair det = dt == wide ? lop_pair_product(&all) : of_half(spectrum, wide, g->in, g->levels);
    if (!lop_pair_is_zero(det)) det.e += k * (double)v->m;
    lop_pair_store(c->a[0], det);
    return LOP_OK;
}
static lop_status lower_det(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    lopk_conv c;
    const lop_node *v = self->child[0];
    int in[2] = {lop_emit_value(e, v), -1};
    int64_t N[LOPK_LEVELS];
    size_t scratch = 0;
    lop_circular_geometry(self->child[1], &c);
    if (lop_cols(v) > 0) {
        size_t plan = lopk_conv_lengths(&c, v->dtype, true, N)
                          ? lopk_nd_plan_bytes(N, c.levels, v->dtype)
                          : 0;
        if (!plan)
            return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "no FFT has %lld elements",
                            (long long)lop_cols(v));
        const lop_attr attr = {.i = {v->dtype, 0, 0, 0}};
        in[1] = lop_emit_derived_data(e, "fft-plan", run_fft_plan, plan, 0, NULL, &attr, N,
                                      (int)c.levels, 0, 0, &st);
        if (in[1] < 0) return st;
        scratch = rounded(lopk_nd_spectrum_bytes(N, c.levels, v->dtype)) +
                  rounded((size_t)lop_cols(v) * lop_dtype_size(v->dtype)) +
                  lopk_nd_work_bytes(N, c.levels, v->dtype);
    }
    lop_step *s = lop_emit_step(e, "circulant_det", run_det, out, scratch ? 2 : 1, in);
    if (!s) return LOP_NOMEM;
    s->scratch = scratch;
    s->flops = scratch ? lopk_conv_fft_flops(N, c.levels) : 0;
    return lop_emit_data(e, (const int64_t *)&c, LOPK_CONV_INTS);
}
const lop_op lop_op_circulant_det = {
    LOP_NAMED(circulant_det), .cls = LOP_ARRAY,  .min = 2, .max = 2,
    .infer = infer_det,       .lower = lower_det};
