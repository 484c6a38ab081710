/* op_laplacian.c: second differences on a rectangular grid, summed over its axes, on raveled
 * vectors; scipy.sparse.linalg.LaplacianNd's sign and scale (-2 on the diagonal of an axis).
 *
 * L = sum_i I (x) L_i (x) I. At the ends of an axis: zeros beyond (Dirichlet), no flux (Neumann),
 * or the other end (periodic). An axis of one point gives 0 but for Dirichlet's -2.
 * Storage: none; the grid's sizes are those of the children, identities. Symmetric, negative
 * semidefinite. Cost: 6 flops an axis and point. attr.i: boundary (0 Dirichlet, 1 Neumann, 2
 * periodic), weakness, dtype. */
#include "expr/random_instance.h"
#include "ops/shared/scaled_pair.h"
#include "kernels/band/k_band.h"
#include "kernels/common/kernels.h"

#include <math.h>

static bool is_unsigned(lop_dtype dt) {
    return dt < LOP_NDTYPE && (lop_dtype_family(dt) == 'u' || lop_dtype_family(dt) == 'b');
}

static lop_status infer(lop_node *n, lop_err *err) {
    int64_t points = 1;
    if (n->n < 1) return lop_fail(err, LOP_DIM, "a grid has at least one axis");
    if (n->attr.i[0] < 0 || n->attr.i[0] > 2 || n->attr.i[1] < 0 ||
        n->attr.i[1] > LOP_WEAK_COMPLEX || n->attr.i[2] < 0 || n->attr.i[2] >= LOP_NDTYPE)
        return lop_fail(err, LOP_DIM, "no such Laplacian");
    for (int i = 0; i < n->n; i++) {
        const lop_node *axis = n->child[i];
        if (axis->op != &lop_op_identity || axis->shape.ndim != 2)
            return lop_fail(err, LOP_DIM, "a grid's axes are identities");
        if (!lop_mul_ok(points, lop_rows(axis), &points))
            return lop_fail(err, LOP_OVERFLOW, "a grid of that many points is too large");
    }
    n->shape = (lop_shape){.ndim = 2, .dim = {points, points}};
    n->weak = (uint8_t)n->attr.i[1];
    if (n->weak == LOP_WEAK) n->weak = LOP_WEAK_INT; /* negative entries: no bool */
    n->dtype = n->weak ? LOP_f64 : (lop_dtype)n->attr.i[2];
    if (!n->weak && is_unsigned(n->dtype))
        return lop_fail(err, LOP_DTYPE, "a Laplacian has negative entries: no dtype %s",
                        lop_dtype_name(n->dtype));
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    (void)n;
    return t == LOP_SYMMETRIC || t == LOP_HERMITIAN ? LOP_TRUE : LOP_UNKNOWN;
}

/* (left, n, right, boundary) of axis i. */
static lop_attr axis_of(const lop_node *self, int i) {
    lop_attr a = {.i = {1, lop_rows(self->child[i]), 1, self->attr.i[0]}};
    for (int j = 0; j < i; j++) a.i[0] *= lop_rows(self->child[j]);
    for (int j = i + 1; j < self->n; j++) a.i[2] *= lop_rows(self->child[j]);
    return a;
}

/* One step an axis: out = what has been summed so far + this axis's part. */
static lop_status run(const lop_call *c) {
    const lop_attr *a = &c->step->attr;
    const lop_mat *y = c->a[0], *so_far = c->step->n > 2 ? c->a[1] : NULL;
    if (!so_far)
        lopk_zero(y);
    else if (so_far->p != y->p)
        lopk_copy(y, so_far);
    lopk_laplace_axis(y, a->i[0], a->i[1], a->i[2], (int)a->i[3], c->a[so_far ? 2 : 1]);
    return LOP_OK;
}
static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    (void)mode;
    int64_t m, k, batch;
    int so_far = -1;
    lop_status st;
    lop_slot_sizes(e, out, &m, &k, &batch);
    const lop_shape shape = lop_emit_shape(e, out, m, k);
    for (int i = 0; i < self->n; i++) {
        const bool last = i + 1 == self->n;
        int to = last ? out : lop_emit_temp(e, lop_slot_dtype(e, out), 2, &shape, &st);
        if (to < 0) return st;
        int in[2] = {so_far < 0 ? x : so_far, x};
        lop_step *s = lop_emit_step(e, "laplace", run, to, so_far < 0 ? 1 : 2, in);
        if (!s) return LOP_NOMEM;
        s->attr = axis_of(self, i);
        s->flags = so_far < 0 ? 0 : LOP_STEP_INPLACE;
        s->flops = 6.0 * (double)m * (double)k * (double)batch;
        so_far = to;
    }
    return LOP_OK;
}

/* Element (i, j) of the axis's part. */
static int64_t entry(const lop_attr *a, int64_t i, int64_t j) {
    const int64_t n = a->i[1], right = a->i[2], p = i / right % n, q = j / right % n;
    const int64_t apart = p < q ? q - p : p - q;
    int64_t v = 0;
    if (i - p * right != j - q * right) return 0;
    if (apart == 0) v = -2 + (a->i[3] == 1 ? (p == 0) + (p == n - 1) : 0);
    if (apart == 1) v = 1;
    if (a->i[3] == 2 && apart == n - 1) v += n == 1 ? 2 : 1;
    return v;
}
/* Adds to y the axis's part of diagonal attr.re, from its element attr.im on. */
static lop_status run_part(const lop_call *c) {
    const lop_attr *a = &c->step->attr;
    const lop_mat *y = c->a[0], *so_far = c->step->n > 1 ? c->a[1] : NULL;
    const int64_t k = (int64_t)a->re, from = (int64_t)a->im;
    int64_t *to = y->p;
    for (int64_t t = 0; t < y->m; t++) {
        const int64_t v = entry(a, from + t + (k < 0 ? -k : 0), from + t + (k > 0 ? k : 0));
        to[t * y->rs] = v + (so_far ? ((const int64_t *)so_far->p)[t * so_far->rs] : 0);
    }
    return LOP_OK;
}
static lop_status run_copy(const lop_call *c) {
    lopk_copy(c->a[0], c->a[1]);
    return LOP_OK;
}
static lop_status part(lop_emit *e, const lop_node *self, int64_t k, int64_t from, int core,
                       int64_t count, int out) {
    const lop_shape shape = {.ndim = core, .dim = {count}};
    lop_status st;
    int so_far = -1;
    for (int i = 0; i < self->n; i++) {
        int to = lop_emit_temp(e, LOP_i64, core, &shape, &st);
        if (to < 0) return st;
        lop_step *s = lop_emit_step(e, "part", run_part, to, so_far < 0 ? 0 : 1, &so_far);
        if (!s) return LOP_NOMEM;
        s->attr = axis_of(self, i);
        s->attr.re = (double)k;
        s->attr.im = (double)from;
        s->flags = so_far < 0 ? 0 : LOP_STEP_INPLACE;
        so_far = to;
    }
    return lop_emit_step(e, "cast", run_copy, out, 1, &so_far) ? LOP_OK : LOP_NOMEM;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    return part(e, self, k, 0, 1, lop_diag_length(lop_rows(self), lop_rows(self), k), out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return part(e, self, j - i, i < j ? i : j, 0, 1, out);
}

static double flops(const lop_node *self, int64_t k) {
    return 6.0 * self->n * (double)lop_rows(self) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n || is_unsigned(dt)) return LOP_UNABLE;
    const lop_node *axis[3] = {0};
    lop_attr a = {.i = {lop_rng_range(&r->rng, 0, 3), 0, (int64_t)dt, 0}};
    int axes = 0;
    lop_status st = LOP_OK;
    for (int64_t left = n; st == LOP_OK && axes < 3 && (axes == 0 || left > 1); axes++) {
        int64_t size = axes == 2 || n == 0 ? left : 1 + lop_rng_range(&r->rng, 0, left);
        while (size > 1 && left % size) size--;
        lop_node like = {.shape = {.ndim = 2, .dim = {size, size}},
                         .dtype = LOP_f64,
                         .weak = LOP_WEAK,
                         .core = 2};
        st = lop_node_make(r->ctx, &lop_op_identity, NULL, 0, NULL, &like, &axis[axes], r->err);
        left = size > 0 ? left / size : 0;
        if (axes == 1 && left > 1) continue;
    }
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_laplacian, &a, axes, axis, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(axis[i]);
    return st;
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)child;
    int64_t wide = 1;
    for (int i = 0; i < self->n; i++) { /* an axis of one point has no neighbours: the next has */
        const lop_attr a = axis_of(self, i);
        int64_t far = a.i[1] > 1 ? a.i[2] : 0;
        if (self->attr.i[0] == 2 && a.i[1] > 2) far *= a.i[1] - 1; /* the ends meet */
        if (far > wide) wide = far;
    }
    return (lop_band){wide, wide};
}

const lop_op lop_op_laplacian = {
    LOP_NAMED(laplacian),
    .flags = LOP_FLAG_closed_spectrum | LOP_FLAG_few_entries | LOP_FLAG_scattered |
             LOP_FLAG_entries | LOP_FLAG_composed,
    .title = "Laplacian",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = -1,
    .ints = 3,
    .param = {{"grid_shape", LOP_P_GRID, 0, NULL, "Sizes of the grid's axes; an int means one."},
              {"boundary_conditions", LOP_P_WORD, 0, "'neumann'",
               "'dirichlet' (zero beyond the ends), 'neumann' (no flux) or 'periodic'.",
               "dirichlet neumann periodic"},
              {"dtype", LOP_P_DTYPE, 0, "'int8'",
               "Data type; None adopts that of whatever it meets, at least an integer (float64 "
               "alone)."}},
    .doc = {.brief = "The Laplacian of a rectangular grid, on raveled vectors.",
            .extended = "Sign and scale of scipy.sparse.linalg.LaplacianNd: spacing 1, -2 on the "
                        "diagonal of an axis; negative semidefinite.",
            .cost = "Build, storage: O(1). Product with k columns: 6 flops an axis, point and "
                    "column. Solves with s L + c I: 10 N log2 N flops a column, by transforms; "
                    "of narrow bands and fewer than 64 points by a band or dense.",
            .notes = "The default data type is int8, as LaplacianNd's: a product with floats is "
                     "of floats. Of an axis of one point only 'dirichlet' leaves anything, -2.",
            .limits = "Its entries are negative: it takes no bool or unsigned data type of "
                      "its own; beside bools it gives integers.",
            .example = ">>> pl.Laplacian((2, 3)) @ np.array([1., 0., 0., 0., 0., 0.])\narray([-2., "
                       " 1.,  0.,  1.,  0.,  0.])"},
    .bands = bands,
    .infer = infer,
    .trait = trait,
    .apply = apply,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};

/* -- grid_det: the determinant with zeros beyond the ends, of a grid of child's sizes; attr.i[0]
 * the dtype. Eigenvalues are sums over the axes of -4 sin^2(pi k / (2 (n + 1))), k = 1 to n. */

static lop_status infer_det(lop_node *n, lop_err *err) {
    const lop_shape none = {0};
    int64_t points;
    if (n->child[0]->op != &lop_op_sizes || n->attr.i[0] < LOP_f32 || n->attr.i[0] > LOP_c128)
        return lop_fail(err, LOP_DIM, "grid_det takes sizes");
    lop_status st = lop_shape_count(&n->child[0]->shape, &points, err);
    return st == LOP_OK ? lop_pair_infer(n, &none, 0, (lop_dtype)n->attr.i[0]) : st;
}
static lop_status run_det(const lop_call *c) {
    const int64_t *n = c->step->data;
    const double quarter = 0.785398163397448309616; /* of pi */
    double *table[LOP_MAXDIM], *at = c->scratch;
    int64_t points = 1, where[LOP_MAXDIM] = {0};
    const int axes = c->step->ndata;
    for (int a = 0; a < axes; a++, at += n[a - 1]) {
        table[a] = at;
        points *= n[a];
        for (int64_t k = 0; k < n[a]; k++) {
            const double s = sin(quarter * 2 * (double)(k + 1) / (double)(n[a] + 1));
            at[k] = -4 * s * s;
        }
    }
    lop_pair all = {1, 0, 0};
    for (int64_t p = 0; p < points; p++) {
        double sum = 0;
        for (int a = 0; a < axes; a++) sum += table[a][where[a]];
        all = lop_pair_onto(all, (lop_pair){sum, 0, 0}, false);
        for (int a = axes - 1; a >= 0 && ++where[a] == n[a]; a--) where[a] = 0;
    }
    lop_pair_store(c->a[0], lop_pair_scaled(all));
    return LOP_OK;
}
static lop_status lower_det(lop_emit *e, const lop_node *self, int out) {
    const lop_shape *n = &self->child[0]->shape;
    int64_t all = 0;
    for (int a = 0; a < n->ndim; a++)
        if (!lop_add_ok(all, n->dim[a], &all) || all > INT64_MAX / 64)
            return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    lop_step *s = lop_emit_step(e, "grid_det", run_det, out, 0, NULL);
    if (!s) return LOP_NOMEM;
    s->scratch = (size_t)all * sizeof(double);
    return lop_emit_data(e, n->dim, n->ndim);
}
const lop_op lop_op_grid_det = {
    LOP_NAMED(grid_det), .cls = LOP_ARRAY,   .min = 1,          .max = 1,
    .ints = 1,           .infer = infer_det, .lower = lower_det};
