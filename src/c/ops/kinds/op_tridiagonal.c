/* op_tridiagonal.c: three diagonals, A[i + 1, i] = dl[i], A[i, i] = d[i], A[i, i + 1] = du[i].
 *
 * Storage: three vectors of n - 1, n and n - 1 elements. Products by an own loop, 5 n k flops.
 * Solves: elimination with row exchanges, or L D L^H from both ends where assumed positive
 * definite (falls back on the former where a pivot is not positive), some 10 n + 5 n k flops.
 * attr.i[0]: the assumption (LOP_ASSUME_*); i[1]: 1 where it names dl, not du (a
 * transpose); i[2], of a sum: the path to one that was assumed positive definite, or 0
 * (rules/assumed_terms.h; determinants test that one where the sum is not definite). Golub and Van
 * Loan, Matrix Computations, 4.3. */
#include "expr/random_instance.h"
#include "expr/vjp.h"
#include "ops/shared/scaled_pair.h"
#include "kernels/band/k_band.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/kernels.h"

/* Batch and lengths of the three; n->shape without the core. */
static lop_status three(lop_node *n, lop_err *err) {
    const lop_node *const *v = n->child;
    for (int i = 0; i < 3; i++)
        if (v[i]->op->cls == LOP_OPERATOR || v[i]->core != 1)
            return lop_fail(err, LOP_DIM, "%s takes three vectors", n->op->name);
    int64_t size = lop_cols(v[1]), off = size > 0 ? size - 1 : 0;
    if (lop_cols(v[0]) != off || lop_cols(v[2]) != off)
        return lop_fail(err, LOP_DIM,
                        "a diagonal of %lld elements goes with %lld below and above, got %lld and "
                        "%lld",
                        (long long)size, (long long)off, (long long)lop_cols(v[0]),
                        (long long)lop_cols(v[2]));
    lop_shape two;
    lop_status st = lop_shape_batch(&v[0]->shape, 1, &v[1]->shape, 1, &two, err);
    if (st == LOP_OK) st = lop_shape_batch(&two, 0, &v[2]->shape, 1, &n->shape, err);
    if (st != LOP_OK) return st;
    if (n->shape.ndim + 2 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    lop_node_promote(n, v[0], v[1]);
    const lop_node so_far = {.dtype = n->dtype, .weak = n->weak};
    lop_node_promote(n, &so_far, v[2]);
    return LOP_OK;
}

static lop_status infer(lop_node *n, lop_err *err) {
    lop_status st = three(n, err);
    if (st != LOP_OK) return st;
    if (n->attr.i[0] == LOP_ASSUME_LOWER || n->attr.i[0] == LOP_ASSUME_UPPER)
        return lop_fail(
            err, LOP_DIM,
            "a Tridiagonal cannot be assumed triangular; use Banded with no diagonals on "
            "the other side");
    n->shape.dim[n->shape.ndim++] = lop_cols(n->child[1]);
    n->shape.dim[n->shape.ndim++] = lop_cols(n->child[1]);
    n->declared |= lop_has_named_lines(n);
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    const int64_t a = n->attr.i[0];
    const bool real = !lop_is_complex(n->dtype),
               adjoint = a == LOP_ASSUME_HERMITIAN || a == LOP_ASSUME_POSITIVE,
               same = n->child[0] == n->child[2];
    if (t == LOP_POSITIVE && a == LOP_ASSUME_POSITIVE) return LOP_TRUE;
    if (t == LOP_HERMITIAN && (adjoint || (real && (same || a == LOP_ASSUME_SYMMETRIC))))
        return LOP_TRUE;
    if (t == LOP_SYMMETRIC && (same || a == LOP_ASSUME_SYMMETRIC || (adjoint && real)))
        return LOP_TRUE;
    return LOP_UNKNOWN;
}

/* The three in dtype dt, as inputs in[0] to in[2]. */
static lop_status cast_three(lop_emit *e, const lop_node *self, lop_dtype dt, int *in) {
    lop_status st = LOP_OK;
    for (int i = 0; i < 3; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), dt, &st);
        if (in[i] < 0) return st;
    }
    return st;
}

static lop_status run(const lop_call *c) {
    const int64_t mode = c->step->attr.i[0];
    const bool t = (mode & LOP_T) != 0;
    lopk_tri_mm(c->a[0], c->a[t ? 4 : 2], c->a[3], c->a[t ? 2 : 4], (mode & LOP_C) != 0, c->a[1]);
    return LOP_OK;
}
static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    int64_t m, k, batch;
    int in[4] = {x};
    lop_slot_sizes(e, out, &m, &k, &batch);
    lop_status st = cast_three(e, self, lop_slot_dtype(e, out), in + 1);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "tridiagonal", run, out, 4, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = mode;
    s->flags = LOP_STEP_COLUMNS;
    s->flops = 5.0 * (double)m * (double)k * (double)batch;
    return LOP_OK;
}

static lop_status run_dense(const lop_call *c) {
    lopk_zero(c->a[0]);
    for (int i = 0; i < 3; i++)
        if (c->a[i + 1]->m) lopk_set_diag(c->a[0], i - 1, c->a[i + 1]);
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    int in[3];
    lop_status st = cast_three(e, self, lop_slot_dtype(e, out), in);
    if (st != LOP_OK) return st;
    return lop_emit_step(e, "set-diags", run_dense, out, 3, in) ? LOP_OK : LOP_NOMEM;
}

/* Diagonal k from its element `from` on, as many as there is room for; zeros further out. */
static lop_status run_part(const lop_call *c) {
    lop_mat d = *c->a[1];
    if (c->step->attr.i[0] < 0) {
        lopk_zero(c->a[0]);
        return LOP_OK;
    }
    d.p = (char *)d.p + c->step->attr.i[0] * d.rs * (int64_t)lop_dtype_size(d.dt);
    d.m = c->a[0]->m;
    if (d.m > 0) lopk_copy(c->a[0], &d);
    return LOP_OK;
}
static lop_status part(lop_emit *e, const lop_node *self, int64_t k, int64_t from, int out) {
    bool none = k < -1 || k > 1;
    int in = lop_emit_value(e, self->child[none ? 1 : k + 1]);
    lop_step *s = lop_emit_step(e, none ? "zero" : "part", run_part, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = none ? -1 : from;
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    return part(e, self, k, 0, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return part(e, self, j - i, i < j ? i : j, out);
}

static double flops(const lop_node *self, int64_t k) {
    return 5 * (double)lop_rows(self) * (double)k;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n) return LOP_UNABLE;
    const lop_node *v[3] = {0};
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < 3; i++)
        st = lop_rand_vector(r, dt, i == 1 ? n : n ? n - 1 : 0, &v[i]);
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_tridiagonal, NULL, 3, v, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
    return st;
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    (void)self;
    (void)child;
    return (lop_band){1, 1};
}

static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    return lop_vjp_diagonal(v, lop_vjp_assumed(v, g, self->attr.i[0]), child - 1);
}

const lop_op lop_op_tridiagonal = {
    LOP_NAMED(tridiagonal),
    .flags = LOP_FLAG_band | LOP_FLAG_diagonals | LOP_FLAG_few_entries | LOP_FLAG_entries |
             LOP_FLAG_at_once | LOP_FLAG_tells | LOP_FLAG_anew | LOP_FLAG_linear,
    .title = "Tridiagonal",
    .cls = LOP_OPERATOR,
    .min = 3,
    .max = 3,
    .ints = 3,
    .param =
        {{"dl", LOP_P_ARRAY, 1, NULL, "Below the diagonal, shape (..., n - 1). Borrowed."},
         {"d", LOP_P_ARRAY, 1, NULL, "The diagonal, shape (..., n). Borrowed."},
         {"du", LOP_P_ARRAY, 1, NULL, "Above the diagonal, shape (..., n - 1). Borrowed."},
         {"assume_a", LOP_P_ASSUME, 0, "None",
          "What is assumed of it: 'pos', 'her', 'sym' or 'gen'. With the first three d and du are "
          "all of it, and no function reads dl."}},
    .doc = {.brief = "A matrix with three diagonals.",
            .extended = "Multiples, transposes and sums with other Tridiagonal, Diag and Identity "
                        "are Tridiagonal again, without computing.",
            .cost =
                "Build: O(1), no copy. Product with k columns: 5 n k flops; solve: about 10 n + "
                "5 n k.",
            .notes = "Solves eliminate with exchanges of rows; assumed positive definite, without "
                     "(and with them after all where a pivot is not positive). Singular: "
                     "LinAlgError.",
            .limits = "Eigenvalues take O(n^2) and cannot be interrupted.",
            .example = ">>> T = pl.Tridiagonal(np.ones(2), np.full(3, 2.0), np.ones(2))\n>>> T @ "
                       "np.ones(3), pl.inv(T) @ np.array([3., 4., 3.])\n(array([3., 4., 3.]), "
                       "array([1., 1., 1.]))"},
    .bands = bands,
    .infer = infer,
    .vjp = vjp,
    .trait = trait,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};

/* -- tridiagonal_solve: children dl, d, du, b; attributes as the kind's */

static lop_status infer_solve(lop_node *n, lop_err *err) {
    lop_status st = three(n, err);
    const lop_node *b = n->child[3];
    if (st != LOP_OK) return st;
    if (b->core != 2 || lop_rows(b) != lop_cols(n->child[1]))
        return lop_fail(err, LOP_DIM, "right-hand sides that fit are needed");
    lop_shape both;
    st = lop_shape_batch(&n->shape, 0, &b->shape, 2, &both, err);
    if (st != LOP_OK) return st;
    const lop_node a = {.dtype = n->dtype, .weak = n->weak};
    n->shape = both;
    n->shape.dim[n->shape.ndim++] = lop_rows(b);
    n->shape.dim[n->shape.ndim++] = lop_cols(b);
    lop_node_promote_inverse(n, &a, b);
    return LOP_OK;
}

/* By the range of the pivots, and by what has become of right-hand sides of these lengths. */
static void note_near(const lop_call *c, double least, double most, const double *from) {
    const lop_mat *y = c->a[0];
    lop_call_near(c, lopk_range_ratio(least, most), lopk_eps(y->dt));
    lop_call_near(c, lopk_outgrown_from(y, from, most), lopk_eps(y->dt));
}
static lop_status run_general(const lop_call *c) {
    int64_t where;
    double from[LOPK_GROWTHS], least, most;
    lopk_copy(c->a[0], c->a[1]);
    lopk_lengths(c->a[0], from);
    lop_status st = lopk_gtsv(c->a[2], c->a[3], c->a[4], c->scratch, c->a[0], &where);
    const int64_t n = c->a[3]->m;
    const lop_dtype dt = c->a[3]->dt;
    const lop_mat pivots = {lopk_gtsv_pivots(c->scratch, n, dt), n, n, 1, 0, dt};
    if (st == LOP_OK && c->a[0]->n > 0) {
        lopk_pivot_range(&pivots, &least, &most);
        note_near(c, least, most, from);
    }
    if (st != LOP_SINGULAR) return st;
    return lop_fail(c->err, st, "Singular matrix: pivot %lld of %lld is exactly zero",
                    (long long)where + 1, (long long)c->a[3]->m);
}
static lop_status run_positive(const lop_call *c) {
    int64_t where;
    double from[LOPK_GROWTHS], least, most;
    const bool below = c->step->attr.i[1] != 0;
    lopk_copy(c->a[0], c->a[1]);
    lopk_lengths(c->a[0], from);
    lop_status st = lopk_ptsv(c->a[3], c->a[below ? 2 : 4], !below, c->scratch, c->a[0], &where);
    if (st == LOP_OK && c->a[0]->n > 0) {
        lopk_twist_range(c->scratch, c->a[3]->m, 1, c->a[3]->dt, &least, &most);
        note_near(c, least, most, from);
    }
    return st;
}
static lop_status lower_solve(lop_emit *e, const lop_node *self, int out) {
    int in[4], mask = -1;
    int64_t m, k;
    lop_status st = cast_three(e, self, self->dtype, in + 1);
    if (st != LOP_OK) return st;
    in[0] = lop_emit_cast(e, lop_emit_value(e, self->child[3]), self->dtype, &st);
    if (in[0] < 0) return st;
    lop_slot_sizes(e, out, &m, &k, NULL);
    size_t room = lopk_gtsv_bytes(m, self->dtype);
    if (self->attr.i[0] == LOP_ASSUME_POSITIVE) {
        mask = lop_emit_mask(e, out, &st);
        if (mask < 0) return st;
        lop_step *s = lop_emit_step(e, "ptsv", run_positive, out, 4, in);
        if (!s) return LOP_NOMEM;
        s->attr = self->attr;
        s->fail = mask;
        s->scratch = room;
        s->flops = (double)m * (4 + 5 * (double)k);
    }
    lop_step *s = lop_emit_step(e, "gtsv", run_general, out, 4, in);
    if (!s) return LOP_NOMEM;
    s->flags = mask < 0 ? LOP_STEP_COLUMNS : 0;
    s->when = mask;
    s->when_set = mask >= 0;
    s->scratch = room;
    s->flops = mask >= 0 ? 0 : (double)m * (6 + 6 * (double)k);
    return LOP_OK;
}
const lop_op lop_op_tridiagonal_solve = {
    LOP_NAMED(tridiagonal_solve), .cls = LOP_ARRAY,    .min = 4, .max = 4, .ints = 2,
    .infer = infer_solve,         .lower = lower_solve};

/* -- triangular_det: children dl, d, du; attributes as the kind's. Further children are
 * determinants of what was assumed positive definite, which fail where it is not. */

static lop_status infer_det(lop_node *n, lop_err *err) {
    lop_status st = three(n, err);
    if (st == LOP_OK) st = lop_assumed_infer(n, 3, err);
    if (st != LOP_OK) return st;
    if (!lop_is_blas(n->dtype))
        return lop_fail(err, LOP_DIM, "%s takes vectors of floats", n->op->name);
    return lop_pair_infer(n, &n->shape, 0, n->dtype);
}
static lop_status run_det(const lop_call *c) {
    lop_mat pivots;
    bool odd;
    lop_status st = lopk_gttrf(c->a[1], c->a[2], c->a[3], c->scratch, &pivots, &odd);
    if (st != LOP_OK && st != LOP_SINGULAR) return st;
    lop_pair a = st == LOP_OK ? lop_pair_product(&pivots) : (lop_pair){0, 0, 0};
    lop_pair_store(c->a[0], odd ? (lop_pair){-a.re, -a.im, a.e} : a);
    return LOP_OK;
}
static lop_status run_det_positive(const lop_call *c) {
    lop_mat pivots;
    const bool below = c->step->attr.i[1] != 0;
    lop_status st = lopk_pttrf(c->a[2], c->a[below ? 1 : 3], !below, c->scratch, &pivots);
    if (st == LOP_OK) lop_pair_store(c->a[0], lop_pair_product(&pivots));
    return st;
}
static lop_status lower_det(lop_emit *e, const lop_node *self, int out) {
    int in[3 + LOP_ASSUMED_TERMS], mask = -1;
    int64_t m = lop_cols(self->child[1]);
    lop_dtype dt = lop_promote(lop_promote(self->child[0]->dtype, self->child[1]->dtype),
                               self->child[2]->dtype);
    const bool alone = self->attr.i[0] == LOP_ASSUME_ALONE;
    lop_status st = cast_three(e, self, dt, in);
    if (st != LOP_OK) return st;
    size_t room = lopk_gtsv_bytes(m, dt);
    if (self->attr.i[0] == LOP_ASSUME_POSITIVE || alone) {
        if (!alone) mask = lop_emit_mask(e, out, &st);
        if (st != LOP_OK) return st;
        lop_step *s = lop_emit_step(e, "pttrf", run_det_positive, out, 3, in);
        if (!s) return LOP_NOMEM;
        s->attr = self->attr;
        s->fail = mask;
        s->scratch = room;
        s->flops = 4.0 * (double)m;
        if (alone) return LOP_OK;
    }
    for (int i = 3; i < self->n; i++) in[i] = lop_emit_value(e, self->child[i]);
    lop_step *s = lop_emit_step(e, "gttrf", run_det, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->when = mask;
    s->when_set = mask >= 0;
    s->scratch = room;
    s->flops = mask >= 0 ? 0 : 6.0 * (double)m;
    return LOP_OK;
}
const lop_op lop_op_triangular_det = {
    LOP_NAMED(triangular_det), .cls = LOP_ARRAY,  .min = 3, .max = 3 + LOP_ASSUMED_TERMS, .ints = 2,
    .infer = infer_det,        .lower = lower_det};
