/* op_blocktridiagonal.c: square blocks on the diagonal and next to it,
 * A[k, k] = D_k, A[k + 1, k] = L_k, A[k, k + 1] = U_k.
 *
 * Storage: the raveled blocks, children L ((N - 1) b b), D (N b b) and U; without U the adjoints of
 * L stand above the diagonal. attr.i: b, the assumption (LOP_ASSUME_*), the path to one that was
 * assumed positive definite (rules/assumed_terms.h). Products by blocks, 2 (3 N - 2) b^2 k flops.
 * Solves: op_blocktridiagonal_solve.c.
 *
 * blockband  children L, D, (U): the matrix as Banded stores it, 2 b - 1 diagonals on either side
 * blockplus  children D, v: D with the vector v added to the diagonals of its blocks
 * Both with attr.i[0] = b. */
#include "ops/shared/blocktridiagonal.h"

#include "expr/random_instance.h"
#include "kernels/common/kernels.h"
#include "ops/projections/projections.h"

static lop_status wrong_count(const lop_node *n, int i, int64_t blocks, lop_err *err) {
    static const char *const where[3] = {"below", "on", "above"}, *const name[3] = {"lower", "diag",
                                                                                    "upper"};
    return lop_fail(
        err, LOP_DIM,
        "%lld blocks of %lld x %lld, %lld numbers, are due %s the diagonal (as %s), got "
        "%lld numbers",
        (long long)blocks, (long long)n->attr.i[0], (long long)n->attr.i[0],
        (long long)(blocks * n->attr.i[0] * n->attr.i[0]), where[i], name[i],
        (long long)lop_cols(n->child[i]));
}

lop_status lop_blocktri_shape(lop_node *n, int count, lop_err *err) {
    const lop_node *const *v = n->child;
    const int64_t b = n->attr.i[0];
    int64_t area;
    lop_shape batch = {0}, both;
    lop_node all = {.dtype = v[0]->dtype, .weak = v[0]->weak}, before;
    for (int i = 0; i < count; i++)
        if (v[i]->op->cls == LOP_OPERATOR || v[i]->core != 1)
            return lop_fail(err, LOP_DIM, "%s takes vectors", n->op->name);
    if (b < 0 || !lop_mul_ok(b, b, &area))
        return lop_fail(err, LOP_DIM, "blocks of %lld rows", (long long)b);
    const int64_t N = b > 0 ? lop_cols(v[1]) / area : 0, off = N > 0 ? N - 1 : 0;
    if (lop_cols(v[1]) != N * area) return wrong_count(n, 1, N, err);
    for (int i = 0; i < count; i++)
        if (i != 1 && lop_cols(v[i]) != off * area) return wrong_count(n, i, off, err);
    for (int i = 0; i < count; i++) {
        lop_status st = lop_shape_batch(&batch, 0, &v[i]->shape, 1, &both, err);
        if (st != LOP_OK) return st;
        batch = both;
        before = all;
        lop_node_promote(&all, &before, v[i]);
    }
    if (batch.ndim + 2 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    n->shape = batch;
    n->shape.dim[n->shape.ndim++] = N * b;
    n->shape.dim[n->shape.ndim++] = N * b;
    n->dtype = all.dtype;
    n->weak = all.weak;
    n->core = 2;
    return LOP_OK;
}

lop_status lop_blocktri_inputs(lop_emit *e, const lop_node *self, int count, lop_dtype dt,
                               int *in) {
    lop_status st = LOP_OK;
    for (int i = 0; i < count; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), dt, &st);
        in[i] = lop_emit_in_c_order(e, in[i], &st);
        if (in[i] < 0) return st;
    }
    return st;
}
lopk_blocktri lop_blocktri_of(const lop_mat *const *a, int64_t count, int64_t b) {
    return (lopk_blocktri){b > 0 ? a[1]->m / (b * b) : 0, b, a[1]->dt, a[0]->p, a[1]->p,
                           count > 2 ? a[2]->p : NULL};
}

static lop_status infer(lop_node *n, lop_err *err) {
    const int64_t a = n->attr.i[1];
    if (a == LOP_ASSUME_LOWER || a == LOP_ASSUME_UPPER)
        return lop_fail(
            err, LOP_DIM,
            "a BlockTridiagonal cannot be assumed triangular; give it zeros on one side");
    const lop_status st = lop_blocktri_shape(n, n->n, err);
    n->declared |= st == LOP_OK && lop_has_named_lines(n);
    return st;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    const int64_t a = n->attr.i[1];
    const bool real = !lop_is_complex(n->dtype),
               adjoint = a == LOP_ASSUME_HERMITIAN || a == LOP_ASSUME_POSITIVE;
    bool yes = false;
    if (t == LOP_POSITIVE) yes = a == LOP_ASSUME_POSITIVE;
    if (t == LOP_HERMITIAN) yes = adjoint || (real && a == LOP_ASSUME_SYMMETRIC);
    if (t == LOP_SYMMETRIC) yes = a == LOP_ASSUME_SYMMETRIC || (adjoint && real);
    return yes ? LOP_TRUE : LOP_UNKNOWN;
}

static double flops(const lop_node *self, int64_t k) {
    const double b = (double)self->attr.i[0], n = (double)lop_rows(self);
    return b > 0 ? 2 * (3 * n / b - 2) * b * b * (double)k : 0;
}

/* attr.i of the steps: b, how many vectors, mode; or element i, j. */
static lop_status run(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    const lopk_blocktri A = lop_blocktri_of(c->a + 2, i[1], i[0]);
    lopk_blocktri_mm(c->a[0], &A, (int)i[2], c->a[1]);
    return LOP_OK;
}
static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    int64_t k, batch;
    int in[4] = {x};
    lop_slot_sizes(e, out, NULL, &k, &batch);
    lop_status st = lop_blocktri_inputs(e, self, self->n, lop_slot_dtype(e, out), in + 1);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, "blocktridiagonal", run, out, 1 + self->n, in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {self->attr.i[0], self->n, mode, 0}};
    s->flags = LOP_STEP_COLUMNS;
    s->flops = flops(self, k) * (double)batch;
    return LOP_OK;
}

static lop_status run_dense(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    const lopk_blocktri A = lop_blocktri_of(c->a + 1, i[1], i[0]);
    lopk_blocktri_dense(c->a[0], &A);
    return LOP_OK;
}
static lop_status run_part(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    const lopk_blocktri A = lop_blocktri_of(c->a + 1, i[1], i[0]);
    if (A.N > 0) lopk_blocktri_part(c->a[0], &A, i[2], i[3]);
    return LOP_OK;
}
static lop_status run_band(const lop_call *c) {
    const int64_t *i = c->step->attr.i;
    const lopk_blocktri A = lop_blocktri_of(c->a + 1, i[1], i[0]);
    lopk_blocktri_band(c->a[0], &A);
    return LOP_OK;
}
/* One step that reads the blocks alone. */
static lop_status from_blocks(lop_emit *e, const lop_node *self, const char *name, lop_run how,
                              int64_t i, int64_t j, int out) {
    int in[3];
    lop_status st = lop_blocktri_inputs(e, self, self->n, lop_slot_dtype(e, out), in);
    if (st != LOP_OK) return st;
    lop_step *s = lop_emit_step(e, name, how, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {self->attr.i[0], self->n, i, j}};
    return LOP_OK;
}
static lop_status dense(lop_emit *e, const lop_node *self, int out) {
    return from_blocks(e, self, "set-blocks", run_dense, 0, 0, out);
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    return from_blocks(e, self, "part", run_part, k < 0 ? -k : 0, k > 0 ? k : 0, out);
}
static lop_status element(lop_emit *e, const lop_node *self, int64_t i, int64_t j, int out) {
    return from_blocks(e, self, "part", run_part, i, j, out);
}

static lop_band bands(const lop_node *self, const lop_band *child) {
    const int64_t b = self->attr.i[0], w = b < 1 ? 0 : b < INT64_MAX / 4 ? 2 * b - 1 : INT64_MAX;
    (void)child;
    return (lop_band){w, w};
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n) return LOP_UNABLE;
    int64_t b = lop_rng_range(&r->rng, 1, 5);
    while (n % b) b--;
    const int64_t N = n / b, off = N > 0 ? N - 1 : 0;
    const int count = (int)lop_rng_range(&r->rng, 2, 4);
    const lop_attr attr = {.i = {b, LOP_ASSUME_GENERAL, 0, 0}};
    const lop_node *v[3] = {NULL};
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < count; i++)
        st = lop_rand_vector(r, dt, (i == 1 ? N : off) * b * b, &v[i]);
    if (st == LOP_OK)
        st = lop_node_make(r->ctx, &lop_op_blocktridiagonal, &attr, count, v, NULL, out, r->err);
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
    return st;
}

/* Without U the blocks below stand above too, as adjoints. */
static const lop_node *vjp(lop_vjp *v, const lop_node *self, int child, const lop_node *g) {
    const int64_t b = self->attr.i[0];
    g = lop_vjp_assumed(v, g, self->attr.i[1]);
    const lop_node *own = g ? lop_vjp_blocks(v, g, b, child - 1) : NULL;
    if (child != 0 || self->n == 3) return own;
    return lop_vjp_make(v, &lop_op_add, NULL, own,
                        lop_vjp_blocks(v, lop_vjp_view(v, g, LOP_H), b, -1));
}

const lop_op lop_op_blocktridiagonal = {
    LOP_NAMED(blocktridiagonal),
    .flags = LOP_FLAG_band | LOP_FLAG_few_entries | LOP_FLAG_entries | LOP_FLAG_at_once |
             LOP_FLAG_tells | LOP_FLAG_linear | LOP_FLAG_raveled,
    .title = "BlockTridiagonal",
    .cls = LOP_OPERATOR,
    .min = 2,
    .max = 3,
    .ints = 3,
    .param =
        {{"lower", LOP_P_ARRAY, 3, NULL,
          "The blocks below the diagonal, shape (..., N - 1, b, b): block (k + 1, k) is "
          "``lower[k]``. Borrowed, as the others."},
         {"diag", LOP_P_ARRAY, 3, NULL, "Those on the diagonal, shape (..., N, b, b)."},
         {"upper", LOP_P_ARRAY, 3, "None",
          "Those above it: block (k, k + 1) is ``upper[k]``. None: the adjoints of ``lower``."},
         {"assume_a", LOP_P_ASSUME, 1, "None",
          "What is assumed of the whole: 'pos', 'her', 'sym' or 'gen'. With the first three the "
          "lower "
          "blocks and the upper triangles of diag are all of it, and no function reads the rest."}},
    .doc =
        {.brief = "Square blocks of one size on the diagonal and next to it.",
         .extended = "The precision matrix of a Markov process with b states at N times, or of a "
                     "grid, line by line. Sums of two, multiples and sums with diagonals are "
                     "BlockTridiagonal again, without computing.",
         .cost = "Build: O(1), no copy where the blocks lie in C order. Product with k columns: 2 "
                 "(3 N - 2) b^2 k flops. Solve: 14/3 N b^3 flops for the factor (7/3 by "
                 "Cholesky), which is kept, and 6 N b^2 k (4); entries of the "
                 "inverse within the blocks 12 N b^3.",
         .notes =
             "Solves sweep block by block: Cholesky where assumed positive definite, or Hermitian "
             "and definite (LU where that fails), else LU with exchanges of rows within the "
             "diagonal blocks. "
             "Where the growth of those factors could cost digits, each column's backward "
             "error is checked and refined twice; what stays above 10 n u, and "
             "determinants and entries of the inverse there, use the form of a `Banded`. "
             "Blocks of fewer than 8 rows are solved as a band at once.",
         .limits = "The blocks are square and of one size. The Cholesky factor is a "
                   "Banded; LU and spectra are those of the band. A product of two stays "
                   "lazy. The blocks of the inverse, which its diagonal, gradients, and "
                   "trace(inv(A) @ B) with a B of blocks of the same size read, are kept "
                   "beside the factor.",
         .example = ">>> A = pl.BlockTridiagonal(-np.ones((2, 1, 1)), 2 * np.ones((3, 1, 1)))\n"
                    ">>> pl.solve(A, [1., 0., 1.])\narray([1., 1., 1.])"},
    .bands = bands,
    .vjp = vjp,
    .infer = infer,
    .trait = trait,
    .apply = apply,
    .dense = dense,
    .diagonal = diagonal,
    .element = element,
    .flops = flops,
    .random = random_instance};

/* -- blockband */

static lop_status infer_band(lop_node *n, lop_err *err) {
    const int64_t b = n->attr.i[0];
    lop_status st = lop_blocktri_shape(n, n->n, err);
    if (st != LOP_OK) return st;
    if (b > INT64_MAX / 8) return lop_fail(err, LOP_OVERFLOW, NULL);
    n->shape.dim[n->shape.ndim - 2] = b > 0 ? 4 * b - 1 : 1;
    return LOP_OK;
}
static lop_status lower_band(lop_emit *e, const lop_node *self, int out) {
    return from_blocks(e, self, "blockband", run_band, 0, 0, out);
}
const lop_op lop_op_blockband = {
    LOP_NAMED(blockband), .cls = LOP_ARRAY,   .min = 2, .max = 3, .ints = 1,
    .infer = infer_band,  .lower = lower_band};

/* -- blockplus */

static lop_status infer_plus(lop_node *n, lop_err *err) {
    const lop_node *d = n->child[0], *v = n->child[1];
    const int64_t b = n->attr.i[0];
    int64_t due;
    if (d->op->cls == LOP_OPERATOR || v->op->cls == LOP_OPERATOR || d->core != 1 || v->core != 1 ||
        b < 0 || !lop_mul_ok(lop_cols(v), b, &due) || due != lop_cols(d))
        return lop_fail(err, LOP_DIM, "blockplus takes blocks and as many rows");
    lop_status st = lop_shape_batch(&d->shape, 1, &v->shape, 1, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_cols(d);
    n->core = 1;
    lop_node_promote(n, d, v);
    return LOP_OK;
}
static lop_status run_plus(const lop_call *c) {
    lopk_copy(c->a[0], c->a[1]);
    lopk_blocktri_plus(c->a[0], c->step->attr.i[0], c->a[2]);
    return LOP_OK;
}
static lop_status lower_plus(lop_emit *e, const lop_node *self, int out) {
    int in[2];
    lop_status st = LOP_OK;
    for (int i = 0; i < 2; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), self->dtype, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s = lop_emit_step(e, "blockplus", run_plus, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    return LOP_OK;
}
const lop_op lop_op_blockplus = {
    LOP_NAMED(blockplus), .cls = LOP_ARRAY,   .min = 2, .max = 2, .ints = 1,
    .infer = infer_plus,  .lower = lower_plus};
