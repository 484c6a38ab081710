/* op_dct.c: discrete cosine transforms of types 1 to 4, of one or several dimensions.
 *
 * As scipy.fft.dct and dctn define them; norm "ortho" makes the matrix orthogonal (scipy's
 * orthogonalize). Dimension by dimension, each line by one FFT (k_dct.c). The transpose is again a
 * transform, of type 2 for 3, with other weights at the ends; the inverse too, so it closes.
 * attr.i[0] type, [1] weakness, [2] dtype, [3] norm, + 3 the transpose. */
#include "ops/shared/convolution.h"

#include "kernels/fft/k_transforms.h"

#include <math.h>
#include <string.h>

enum { BACKWARD, ORTHO, FORWARD };

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *sizes = n->child[0];
    int64_t all, type = n->attr.i[0];
    if (sizes->op != &lop_op_sizes || n->attr.i[3] < BACKWARD || n->attr.i[3] > FORWARD + 3)
        return lop_fail(err, LOP_DIM, "dct takes sizes and a norm");
    if (type < 1 || type > 4)
        return lop_fail(err, LOP_DIM, "cosine transforms are of type 1 to 4, got %lld",
                        (long long)type);
    for (int l = 0; l < sizes->shape.ndim && type == 1; l++)
        if (sizes->shape.dim[l] < 2)
            return lop_fail(err, LOP_DIM,
                            "a cosine transform of type 1 has at least 2 points, "
                            "got %lld",
                            (long long)sizes->shape.dim[l]);
    if (n->attr.i[1] < 0 || n->attr.i[1] > LOP_WEAK_COMPLEX || n->attr.i[2] < 0 ||
        n->attr.i[2] >= LOP_NDTYPE)
        return lop_fail(err, LOP_DTYPE, NULL);
    if (n->attr.i[1]) n->attr.i[1] = LOP_WEAK_FLOAT;
    if (!n->attr.i[1] && !lop_is_blas((lop_dtype)n->attr.i[2]))
        return lop_fail(err, LOP_DTYPE, "a cosine transform is not of dtype %s",
                        lop_dtype_name((lop_dtype)n->attr.i[2]));
    lop_status st = lop_shape_count(&sizes->shape, &all, err);
    n->shape = (lop_shape){.ndim = 2, .dim = {all, all}};
    n->weak = (uint8_t)n->attr.i[1];
    n->dtype = n->weak ? LOP_f64 : (lop_dtype)n->attr.i[2];
    return st;
}

static lop_truth trait(const lop_node *self, lop_trait t) {
    const int64_t type = self->attr.i[0];
    const bool ortho = self->attr.i[3] % 3 == ORTHO;
    if (t == LOP_REAL) return LOP_TRUE;
    if (t == LOP_ORTHOGONAL && ortho) return LOP_TRUE;
    if ((t == LOP_SYMMETRIC || t == LOP_HERMITIAN) && (type == 4 || (type == 1 && ortho)))
        return LOP_TRUE;
    return LOP_UNKNOWN;
}

/* One dimension: scale last(weights) C_type first(weights); a weight for element 0, one for the
 * last where `ends`. */
typedef struct dct_level {
    int type;
    bool ends;
    double scale, before, after;
} dct_level;

static dct_level level_of(int64_t type, int64_t norm, bool trans, int64_t n) {
    const double root = 1.4142135623730950488,
                 N = type == 1 ? 2.0 * (double)(n - 1) : 2.0 * (double)n;
    const bool ortho = norm == ORTHO;
    dct_level d = {.type = (int)type, .ends = type == 1, .before = 1, .after = 1};
    d.scale = norm == BACKWARD ? 1 : ortho ? 1 / sqrt(N) : 1 / N;
    if (ortho && (type == 1 || type == 3)) d.before = root;
    if (ortho && (type == 1 || type == 2)) d.after = 1 / root;
    if (!trans || type == 4) return d;
    /* C1^T = E^-1 C1 E, C2^T = C3 E, C3^T = E^-1 C2 with E = diag(2, 1, .., 1, (2)) */
    const double before = d.before;
    d.before = d.after * (type == 3 ? 1 : 2);
    d.after = before * (type == 2 ? 1 : 0.5);
    if (type == 2) d.type = 3;
    if (type == 3) d.type = 2;
    return d;
}

/* Data: type, norm, trans, then the sizes; a plan for each level behind a table of offsets. */
enum { HEAD = 3 };

static lop_status run_plans(const lop_call *c) {
    const int64_t *d = c->step->data;
    char *base = c->a[0]->p;
    int64_t *at = (int64_t *)(void *)base, offset = 64;
    const lop_dtype dt = (lop_dtype)c->step->attr.i[0];
    for (int l = 0; l < c->step->ndata - HEAD; l++) {
        const dct_level v = level_of(d[0], d[1], d[2] != 0, d[HEAD + l]);
        at[l] = offset;
        if (lopk_dct_plan_init(base + offset, v.type, d[HEAD + l], dt) != LOP_OK)
            return lop_fail(c->err, LOP_INTERNAL, "no such transform");
        offset += ((int64_t)lopk_dct_plan_bytes(v.type, d[HEAD + l], dt) + 63) & ~(int64_t)63;
    }
    return LOP_OK;
}

/* All lines of the box z along level l, which has n elements at a distance of s. */
static void along(const dct_level *v, const void *plan, const lop_mat *z, int64_t n, int64_t s,
                  void *line, void *work) {
    const int64_t size = (int64_t)lop_dtype_size(z->dt);
    for (int64_t i = 0; i < z->m; i++) {
        if (i / s % n) continue; /* not the first of its line */
        const lop_mat from = {(char *)z->p + i * size, n, 1, s, 1, z->dt},
                      to = {line, n, 1, 1, 1, z->dt}, first = {line, 1, 1, 1, 1, z->dt},
                      last = {(char *)line + (n - 1) * size, 1, 1, 1, 1, z->dt};
        lopk_copy(&to, &from);
        lopk_scale(&first, v->before, 0, &first);
        if (v->ends) lopk_scale(&last, v->before, 0, &last);
        lopk_dct(plan, line, work);
        lopk_scale(&first, v->after, 0, &first);
        if (v->ends) lopk_scale(&last, v->after, 0, &last);
        lopk_scale(&from, v->scale, 0, &to);
    }
}

static lop_status run_dct(const lop_call *c) {
    const int64_t *d = c->step->data, *at = (const int64_t *)c->a[2]->p;
    const lop_mat *y = c->a[0], *x = c->a[1];
    const lop_dtype dt = lop_dtype_real(y->dt);
    const int64_t size = (int64_t)lop_dtype_size(dt), parts = lop_is_complex(y->dt) ? 2 : 1;
    const size_t box = ((size_t)(y->m * size) + 63) & ~(size_t)63;
    char *line = (char *)c->scratch + box, *work = line + box;
    for (int64_t t = 0; t < y->n * parts; t++) {
        const int64_t col = t / parts, part = t % parts;
        const lop_mat in = {(char *)x->p + (col * x->cs * parts + part) * size,
                            x->m,
                            1,
                            x->rs * parts,
                            1,
                            dt},
                      out = {(char *)y->p + (col * y->cs * parts + part) * size,
                             y->m,
                             1,
                             y->rs * parts,
                             1,
                             dt},
                      z = {c->scratch, y->m, 1, 1, 1, dt};
        lopk_copy(&z, &in);
        int64_t s = 1;
        for (int l = c->step->ndata - HEAD - 1; l >= 0; l--) {
            const dct_level v = level_of(d[0], d[1], d[2] != 0, d[HEAD + l]);
            along(&v, (const char *)c->a[2]->p + at[l], &z, d[HEAD + l], s, line, work);
            s *= d[HEAD + l];
        }
        lopk_copy(&out, &z);
    }
    return LOP_OK;
}
static lop_status run_nothing(const lop_call *c) {
    (void)c;
    return LOP_OK;
}

static int describe(const lop_node *self, bool trans, int64_t *d) {
    const lop_shape *n = &self->child[0]->shape;
    d[0] = self->attr.i[0];
    d[1] = self->attr.i[3] % 3;
    d[2] = trans != (self->attr.i[3] >= 3);
    for (int l = 0; l < n->ndim; l++) d[HEAD + l] = n->dim[l];
    return HEAD + n->ndim;
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    const lop_shape *n = &self->child[0]->shape;
    lop_dtype dt = lop_dtype_real(lop_slot_dtype(e, out));
    int64_t k, batch, d[HEAD + LOPK_LEVELS];
    size_t plans = 64, work = 0;
    if (lop_rows(self) == 0)
        return lop_emit_step(e, "nothing", run_nothing, out, 1, &x) ? LOP_OK : LOP_NOMEM;
    const int nd = describe(self, (mode & LOP_T) != 0, d);
    for (int l = 0; l < n->ndim; l++) {
        const dct_level v = level_of(d[0], d[1], d[2] != 0, n->dim[l]);
        const size_t plan = lopk_dct_plan_bytes(v.type, n->dim[l], dt),
                     own = lopk_dct_work_bytes(v.type, n->dim[l], dt);
        if (!plan || !own)
            return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "no transform has %lld points",
                            (long long)n->dim[l]);
        plans += (plan + 63) & ~(size_t)63;
        if (own > work) work = own;
    }
    lop_attr attr = {.i = {dt, 0, 0, 0}};
    int in[2] = {x, lop_emit_derived_data(e, "dct-plan", run_plans, plans, 0, NULL, &attr, d, nd, 0,
                                          0, &st)};
    if (in[1] < 0) return st;
    lop_slot_sizes(e, out, NULL, &k, &batch);
    lop_step *s = lop_emit_step(e, "dct", run_dct, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->scratch = 2 * (((size_t)lop_rows(self) * lop_dtype_size(dt) + 63) & ~(size_t)63) + work;
    s->flags = LOP_STEP_COLUMNS;
    s->flops = 0.5 * lopk_conv_fft_flops(n->dim, n->ndim) * (double)k * (double)batch;
    return lop_emit_data(e, d, nd);
}

/* Entry (j, k) of one level of size n. */
static double entry(int64_t type, int64_t norm, int64_t n, int64_t j, int64_t k) {
    static const int64_t eighths[5] = {0, 0, 4, 4, 8};
    const dct_level v = level_of(type, norm, false, n);
    const int64_t den = type == 1 ? 2 * (n - 1) : eighths[type] * n, a = type < 3 ? j : 2 * j + 1,
                  b = type == 2 || type == 4 ? 2 * k + 1 : k;
    double c, s;
    lopk_turn(lopk_mulmod(a, b, den), den, &c, &s);
    const bool ends = (type == 1 || type == 3) && (k == 0 || (type == 1 && k == n - 1)),
               last = (type == 1 || type == 2) && (j == 0 || (type == 1 && j == n - 1));
    return v.scale * (ends ? v.before : 2) * (last ? v.after : 1) * c;
}

/* attr.i: first row and column, whether along a diagonal. */
static lop_status run_entries(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const int64_t *at = c->step->attr.i, *d = c->step->data, size = (int64_t)lop_dtype_size(y->dt);
    for (int64_t i = 0; i < y->m; i++)
        for (int64_t j = 0; j < y->n; j++) {
            int64_t row = at[0] + i, col = at[1] + (at[2] ? i : j);
            double all = 1;
            for (int l = c->step->ndata - 1; l >= HEAD; l--) {
                const int64_t a = row % d[l], b = col % d[l];
                all *= d[2] ? entry(d[0], d[1], d[l], b, a) : entry(d[0], d[1], d[l], a, b);
                row /= d[l];
                col /= d[l];
            }
            lop_set(y->dt, (char *)y->p + (i * y->rs + j * y->cs) * size, 0, all);
        }
    return LOP_OK;
}
static lop_status entries(lop_emit *e, const lop_node *self, int64_t i, int64_t j, bool diagonal,
                          int out) {
    int64_t d[HEAD + LOPK_LEVELS];
    lop_step *s = lop_emit_step(e, "entries", run_entries, out, 0, NULL);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {i, j, diagonal, 0}};
    return lop_emit_data(e, d, describe(self, false, d));
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
    return 0.5 * lopk_conv_fft_flops(self->child[0]->shape.dim, self->child[0]->shape.ndim) *
           (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n || lop_is_complex(dt) || !lop_is_blas(dt)) return LOP_UNABLE;
    const lop_node *sizes;
    const bool two = n % 2 == 0 && n > 2;
    const int64_t size[2] = {two ? n / 2 : n, 2};
    lop_attr attr = {
        .i = {lop_rng_range(&r->rng, n < 2 ? 2 : 1, 5), 0, dt, lop_rng_range(&r->rng, 0, 3)}};
    lop_status st = lop_sizes_make(r->ctx, two ? 2 : 1, size, &sizes, r->err);
    if (st != LOP_OK) return st;
    st = lop_node_make(r->ctx, &lop_op_dct, &attr, 1, &sizes, NULL, out, r->err);
    lop_node_unref(sizes);
    return st;
}

const lop_op lop_op_dct = {
    LOP_NAMED(dct),
    .flags = LOP_FLAG_transform | LOP_FLAG_at_once | LOP_FLAG_own_inverse,
    .title = "DCT",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .ints = 4,
    .param = {{"n", LOP_P_SIZES, 0, NULL, "Size, or the shape of the raveled arrays it acts on.",
               NULL},
              {"type", LOP_P_INT, 0, "2", "1 to 4, as in scipy.fft.dct.", NULL},
              {"norm", LOP_P_WORD, 3, "None",
               "'backward' (None), 'ortho' (an orthogonal matrix) or 'forward', as in "
               "scipy.fft.dct.",
               "backward ortho forward"},
              {"dtype", LOP_P_DTYPE, 0, "None",
               "float32 or float64, or a complex dtype; None follows what it meets.", NULL}},
    .doc = {.brief = "The discrete cosine transform, ``scipy.fft.dctn`` of raveled arrays.",
            .extended = "``inv`` of it is the inverse transform.",
            .cost = "Build, storage: O(1). Product: one real FFT of the size a column (type 1: of "
                    "twice that). Its tables are kept.",
            .notes = "Accurate normwise: C u log2(n) |x|. A complex dtype transforms real and "
                     "imaginary parts.",
            .limits = "It has 5 levels at most.",
            .example = ">>> pl.DCT(3, type=1) @ np.array([1., 2., 3.])\narray([ 8., -2.,  0.])"},
    .infer = infer,
    .trait = trait,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};
