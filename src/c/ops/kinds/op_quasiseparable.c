/* op_quasiseparable.c: A[i, j] = p_i^T a_{i-1} ... a_{j+1} q_j below the diagonal d.
 *
 * Above the diagonal stands the adjoint of what lies below, A = A^H (of d the real part counts), or
 * zeros where it is triangular. Children: d (n), p and q (n x J), a: n x J, diagonal transitions,
 * or n x J^2, full ones row by row. attr.i[0]: 1 where triangular. Integers are taken as float64.
 * Products by two sweeps, O(n J k) or O(n J^2 k); each element costs |i - j| steps. p_0, q_{n-1},
 * a_0 and a_{n-1} are not read. Eidelman and Gohberg 1999; Vandebril, Van Barel and Mastronardi,
 * Matrix Computations and Semiseparable Matrices, 2008. Solves: op_quasiseparable_solve.c.
 *
 * quasijoin   children x, y: the generators of a sum or an element-wise product of two, row by row;
 *             attr.i: how (LOPK_QUASI_*), the state dimensions of x and of y. */
#include "ops/projections/projections.h"
#include "ops/shared/quasiseparable.h"

#include "expr/random_instance.h"

#include <math.h>

lop_status lop_quasi_shape_from(lop_node *n, int first, lop_err *err) {
    static const int core[4] = {1, 2, 2, 2};
    const lop_node *const *v = n->child + first;
    int64_t square;
    lop_shape batch = {0}, both;
    lop_node sum = {.dtype = v[0]->dtype, .weak = v[0]->weak}, before;
    for (int i = 0; i < 4; i++)
        if (v[i]->op->cls == LOP_OPERATOR || v[i]->core != core[i])
            return lop_fail(err, LOP_DIM, "%s takes a vector d and matrices p, q, a", n->op->name);
    const int64_t size = lop_cols(v[0]), J = lop_cols(v[1]);
    if (lop_rows(v[1]) != size || lop_rows(v[2]) != size || lop_rows(v[3]) != size ||
        lop_cols(v[2]) != J)
        return lop_fail(err, LOP_DIM,
                        "d of %lld elements goes with p and q of as many rows and equally many "
                        "columns and a of as many rows, got %lld x %lld, %lld x %lld and %lld rows",
                        (long long)size, (long long)lop_rows(v[1]), (long long)J,
                        (long long)lop_rows(v[2]), (long long)lop_cols(v[2]),
                        (long long)lop_rows(v[3]));
    if (!lop_mul_ok(J, J, &square) || (lop_cols(v[3]) != J && lop_cols(v[3]) != square))
        return lop_fail(err, LOP_DIM,
                        "transitions between %lld states have %lld columns (diagonal) or the "
                        "square of that (full, row by row), got %lld",
                        (long long)J, (long long)J, (long long)lop_cols(v[3]));
    for (int i = 0; i < 4; i++) {
        lop_status st = lop_shape_batch(&batch, 0, &v[i]->shape, core[i], &both, err);
        if (st != LOP_OK) return st;
        batch = both;
        before = sum;
        lop_node_promote(&sum, &before, v[i]);
    }
    if (batch.ndim + 2 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    if (sum.dtype >= LOP_NDTYPE)
        return lop_fail(err, LOP_DTYPE, "%s takes float32, float64, complex64 and complex128",
                        n->op->name);
    n->shape = batch;
    n->shape.dim[n->shape.ndim++] = size;
    n->shape.dim[n->shape.ndim++] = size;
    n->dtype = lop_is_blas(sum.dtype) ? sum.dtype : LOP_f64;
    n->weak = sum.weak;
    n->core = 2;
    return LOP_OK;
}

lop_status lop_quasi_shape(lop_node *n, lop_err *err) { return lop_quasi_shape_from(n, 0, err); }
lop_status lop_quasi_inputs(lop_emit *e, const lop_node *const *v, lop_dtype dt, int *in) {
    lop_status st = LOP_OK;
    for (int i = 0; i < 4; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, v[i]), dt, &st);
        in[i] = lop_emit_in_c_order(e, in[i], &st);
        if (in[i] < 0) return st;
    }
    return st;
}
lopk_quasi lop_quasi_of(const lop_mat *const *a, bool tri) {
    return (lopk_quasi){a[0]->m, a[1]->n, a[3]->n != a[1]->n, tri, a[0]->dt, a[0]->p, a[1]->p,
                        a[2]->p, a[3]->p};
}

static lop_status infer(lop_node *n, lop_err *err) { return lop_quasi_shape(n, err); }

static lop_truth trait(const lop_node *n, lop_trait t) {
    const bool real = !lop_is_complex(n->dtype);
    if (n->attr.i[0]) return LOP_UNKNOWN;
    if (t == LOP_HERMITIAN || (t == LOP_SYMMETRIC && real)) return LOP_TRUE;
    return LOP_UNKNOWN;
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)child;
    return (lop_band){INT64_MAX, self->attr.i[0] ? 0 : INT64_MAX};
}

static double flops(const lop_node *self, int64_t k) {
    const double n = (double)lop_rows(self), J = (double)lop_cols(self->child[1]),
                 sides = self->attr.i[0] ? 1 : 2;
    return n * (double)k * (1 + sides * (4 * J + (double)lop_cols(self->child[3])));
}

static lop_status run(const lop_call *c) {
    const lopk_quasi g = lop_quasi_of(c->a + 2, c->step->attr.i[0] != 0);
    lopk_quasi_mm(c->a[0], &g, (int)c->step->attr.i[1], c->a[1], c->scratch);
    return LOP_OK;
}
static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    int64_t k, batch;
    int in[5] = {x};
    lop_slot_sizes(e, out, NULL, &k, &batch);
    lop_status st = lop_quasi_inputs(e, self->child, lop_slot_dtype(e, out), in + 1);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "quasiseparable", run, out, 5, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = self->attr.i[0];
    s->attr.i[1] = mode;
    s->flags = LOP_STEP_COLUMNS;
    s->scratch = lopk_quasi_mm_scratch(lop_cols(self->child[1]));
    s->flops = flops(self, k) * (double)batch;
    return LOP_OK;
}

/* attr.i: triangular; dense or not; diagonal, first element. */
static lop_status run_part(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    const lopk_quasi g = lop_quasi_of(c->a + 1, i[0] != 0);
    if (i[1])
        lopk_quasi_dense(c->a[0], &g, c->scratch);
    else
        lopk_quasi_diagonal(c->a[0], &g, i[2], i[3], c->scratch);
    return LOP_OK;
}
static lop_status part(lop_emit *e, const lop_node *self, const lop_attr *attr, int out) {
    int in[4];
    lop_status st = lop_quasi_inputs(e, self->child, lop_slot_dtype(e, out), in);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, attr->i[1] ? "quasi-dense" : "quasi-part", run_part, out, 4, in);
    if (!s) return LOP_NOMEM;
    const double n = (double)lop_rows(self), J = (double)lop_cols(self->child[1]);
    s->attr = *attr;
    s->scratch = lopk_quasi_mm_scratch(lop_cols(self->child[1]));
    s->flops = (double)lop_cols(self->child[3]) * lop_slot_elements(e, out) *
                   (attr->i[1] ? 1 : fmin(n, (double)(attr->i[2] < 0 ? -attr->i[2] : attr->i[2]))) +
               J;
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    const lop_attr attr = {.i = {self->attr.i[0], 1, 0, 0}};
    return part(e, self, &attr, out);
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    const lop_attr attr = {.i = {self->attr.i[0], 0, k, 0}};
    return part(e, self, &attr, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    const lop_attr attr = {.i = {self->attr.i[0], 0, j - i, i < j ? i : j}};
    return part(e, self, &attr, out);
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n || !lop_is_blas(dt)) return LOP_UNABLE;
    const int64_t J = lop_rng_range(&r->rng, 1, 4);
    const bool full = lop_rng_range(&r->rng, 0, 2) != 0;
    const lop_attr attr = {.i = {lop_rng_range(&r->rng, 0, 2), 0, 0, 0}};
    const lop_node *v[4] = {NULL};
    lop_status st = lop_rand_vector(r, dt, n, &v[0]);
    for (int i = 1; st == LOP_OK && i < 4; i++)
        st = lop_rand_matrix(r, dt, n, i == 3 && full ? J * J : J, &v[i]);
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_quasiseparable, &attr, 4, v, NULL, out, r->err);
    for (int i = 0; i < 4; i++) lop_node_unref(v[i]);
    return st;
}

static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const bool tri = self->attr.i[0] != 0;
    if (child == 0) { /* of a Hermitian one only the real part counts */
        if (!tri && !v->real)
            g = lop_vjp_times(v, 0.5, 0, lop_vjp_sum(v, g, lop_vjp_view(v, g, LOP_H)));
        return g ? lop_vjp_diagonal(v, g, 0) : NULL;
    }
    return lop_vjp_generators(v, g, self, child);
}

const lop_op lop_op_quasiseparable = {
    LOP_NAMED(quasiseparable),
    .flags = LOP_FLAG_raveled,
    .title = "QuasiSeparable",
    .cls = LOP_OPERATOR,
    .min = 4,
    .max = 4,
    .ints = 1,
    .param =
        {{"d", LOP_P_ARRAY, 1, NULL,
          "The diagonal, shape (..., n). Borrowed, as the others. Of a Hermitian A the real part "
          "counts."},
         {"p", LOP_P_ARRAY, 2, NULL, "Shape (..., n, J): what row i reads from J states."},
         {"q", LOP_P_ARRAY, 2, NULL, "Shape (..., n, J): what column j adds to them."},
         {"a", LOP_P_ARRAY, 2, NULL,
          "Transitions, shape (..., n, J), diagonal ones, or (..., n, J * J), full ones row by "
          "row (``A.reshape(n, J * J)``)."},
         {"triangular", LOP_P_FLAG, 0, "False",
          "True: zeros above the diagonal; else what makes A Hermitian."}},
    .doc =
        {.brief = "A matrix whose part below the diagonal is carried by J states: ``A[i, j] = "
                  "p[i] @ a[i-1] @ ... @ a[j+1] @ q[j]`` for i > j.",
         .extended =
             "The covariance of a state-space (Markov) process at n sorted times, as of Matern "
             "kernels; `quasiseparable` makes those. Sums, element-wise products, real multiples "
             "and sums with diagonals are QuasiSeparable again, without computing.",
         .cost = "Build: O(1), no copy. Product with k columns: O(n J k), with full transitions "
                 "O(n J^2 k). Solve, determinant, diagonal of the inverse: O(n J^2) for a "
                 "factor, O(n J^3) with full transitions or of an indefinite one.",
         .notes = "Solves by L D L^H without exchanges, in double precision, for positive "
                  "definite matrices; each column's backward error is checked, and where it "
                  "stays above max(1e-14, 10 n u) after two refinements, or a pivot vanishes, LU "
                  "with exchanges of a band in which the states are unknowns is taken, checked "
                  "likewise, in O(n J^3) (of fewer than 32 J + 32 rows the dense form). Rounding "
                  "errors are those of the generators: products are accurate "
                  "relative to abs(p) abs(a) ... abs(q). p[0], q[-1], a[0] and a[-1] are not "
                  "read.",
         .limits = "It is Hermitian or lower triangular: with another upper part it is a "
                   "sum, L + M.T, whose products are O(n) and whose solves are dense. A "
                   "product of two is not multiplied out, nor is an inverse written as "
                   "one. A slice is dense where it is solved with, also the covariance "
                   "between two sets of times, which is two Selections of one. "
                   "sqrt_inv_matmul, norms and eigenvalues take the dense form. The state "
                   "of a sum is moved by one full matrix as soon as one term's transitions "
                   "are full (Matern 3/2 and 5/2, oscillators of low quality). Complex "
                   "ones have loops for up to two states of diagonal transitions only. The "
                   "band's factor takes n (2 J + 1) (9 J + 1) numbers. The diagonal of the "
                   "inverse of an indefinite one is held against three solves, not against "
                   "all.",
         .example = ">>> t = np.array([0., 1., 3., 4.])\n>>> a = np.exp(-np.diff(t, prepend=0, "
                    "append=0))[:, None]\n>>> K = pl.QuasiSeparable(np.ones(4), a[:4], "
                    "np.ones((4, 1)), a[:4])\n>>> np.allclose(K.toarray(), np.exp(-abs(t[:, "
                    "None] - t)))\nTrue"},
    .infer = infer,
    .trait = trait,
    .bands = bands,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .vjp = vjp,
    .vjp_together = true,
    .random = random_instance};

/* -- quasijoin */

static lop_status infer_join(lop_node *n, lop_err *err) {
    const lop_node *x = n->child[0], *y = n->child[1];
    const int64_t how = n->attr.i[0], jx = n->attr.i[1], jy = n->attr.i[2];
    int64_t J = 0, sx, sy, cols = 0;
    bool fits = x->core == 2 && y->core == 2 && x->op->cls == LOP_ARRAY && jx >= 0 && jy >= 0 &&
                y->op->cls == LOP_ARRAY && lop_rows(x) == lop_rows(y) && how >= 0 && how <= 3 &&
                lop_mul_ok(jx, jx, &sx) && lop_mul_ok(jy, jy, &sy);
    const bool states = how == LOPK_QUASI_BESIDE || how == LOPK_QUASI_PAIRS,
               pairs = how == LOPK_QUASI_PAIRS || how == LOPK_QUASI_KRONS;
    fits = fits && (lop_cols(x) == jx || (!states && lop_cols(x) == sx)) &&
           (lop_cols(y) == jy || (!states && lop_cols(y) == sy));
    fits = fits && (pairs ? lop_mul_ok(jx, jy, &J) : lop_add_ok(jx, jy, &J));
    cols = J;
    if (fits && !states) fits = lop_mul_ok(J, J, &cols);
    if (!fits) return lop_fail(err, LOP_DIM, "quasijoin takes generators of as many rows");
    lop_status st = lop_shape_batch(&x->shape, 2, &y->shape, 2, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_rows(x);
    n->shape.dim[n->shape.ndim++] = cols;
    n->core = 2;
    lop_node_promote(n, x, y);
    if (!lop_is_blas(n->dtype)) n->dtype = LOP_f64;
    return LOP_OK;
}
static lop_status run_join(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    lopk_quasi_join(c->a[0], (int)i[0], i[1], c->a[1], i[2], c->a[2]);
    return LOP_OK;
}
static lop_status lower_join(lop_emit *e, const lop_node *self, int out) {
    int in[2];
    lop_status st = LOP_OK;
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        in[i] = lop_emit_in_c_order(e, in[i], &st);
        if (in[i] < 0) return st;
    }
    lop_emit_c_order(e, out);
    lop_step *s = lop_emit_step(e, "quasi-join", run_join, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}
const lop_op lop_op_quasijoin = {
    LOP_NAMED(quasijoin), .cls = LOP_ARRAY,   .min = 2, .max = 2, .ints = 3,
    .infer = infer_join,  .lower = lower_join};
