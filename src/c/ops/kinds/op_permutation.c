/* op_permutation.c: the rows in another order, P x = x[p], and index vectors made from others.
 *
 * Storage: the index vector; negative indices count from the end as NumPy's. Orthogonal: P^T, P^-1
 * and P^H put the rows back. That p holds each index once is checked on each call, since it may be
 * written to between calls: n marks beside the n k copies. attr.i[1] weakness, i[2] dtype.
 *
 * inverse_permutation p: q with q[p[i]] = i. compose (p, q): p[q[i]]; P_q P_p = P_compose(p, q). */
#include "expr/random_instance.h"
#include "ops/shared/scaled_pair.h"
#include "kernels/common/kernels.h"

#include <string.h>

static lop_status index_vector(const lop_node *n, const lop_node *p, lop_err *err) {
    char f = p->dtype < LOP_NDTYPE ? lop_dtype_family(p->dtype) : 'f';
    if (p->op->cls == LOP_OPERATOR || p->core != 1 || (f != 'i' && f != 'u'))
        return lop_fail(err, LOP_DTYPE, "%s takes a vector of integers", n->op->name);
    return LOP_OK;
}

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *p = n->child[0];
    lop_status st = index_vector(n, p, err);
    if (st != LOP_OK) return st;
    if (n->attr.i[1] < 0 || n->attr.i[1] > LOP_WEAK_COMPLEX || n->attr.i[2] < 0 ||
        n->attr.i[2] >= LOP_NDTYPE)
        return lop_fail(err, LOP_DTYPE, "no such dtype");
    if (p->shape.ndim + 1 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    n->shape = p->shape;
    n->shape.dim[n->shape.ndim] = n->shape.dim[n->shape.ndim - 1];
    n->shape.ndim++;
    n->weak = (uint8_t)n->attr.i[1];
    n->dtype = n->weak ? LOP_f64 : (lop_dtype)n->attr.i[2];
    return LOP_OK;
}

static lop_truth trait(const lop_node *n, lop_trait t) {
    (void)n;
    return t == LOP_ORTHOGONAL ? LOP_TRUE : LOP_UNKNOWN;
}

/* index[i] = p[i] counted from the front, or (back) index[p[i]] = i. Both vectors have n entries;
 * marks n bytes. */
static lop_status read_index(const lop_mat *p, bool back, int64_t *index, unsigned char *marks,
                             lop_err *err) {
    int64_t n = p->m;
    memset(marks, 0, (size_t)n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = ((const int64_t *)p->p)[i * p->rs], at = v < 0 ? v + n : v;
        if (at < 0 || at >= n)
            return lop_fail(err, LOP_INDEX,
                            "index %lld at position %lld is out of bounds for size %lld",
                            (long long)v, (long long)i, (long long)n);
        if (marks[at])
            return lop_fail(err, LOP_DOMAIN,
                            "a permutation holds each index once; %lld at position %lld is there "
                            "before (use Selection for repeated rows)",
                            (long long)v, (long long)i);
        marks[at] = 1;
        index[back ? at : i] = back ? i : at;
    }
    return LOP_OK;
}
static size_t index_bytes(const lop_node *p) { return (size_t)lop_cols(p) * (sizeof(int64_t) + 1); }

static lop_status run(const lop_call *c) {
    const lop_mat *y = c->a[0];
    int64_t n = y->m, *index = c->scratch;
    lop_status st = read_index(c->a[2], (c->step->attr.i[0] & LOP_T) != 0, index,
                               (unsigned char *)(index + n), c->err);
    if (st != LOP_OK) return st;
    return lopk_take_rows(y, &(lop_mat){index, n, 1, 1, 1, LOP_i64}, c->a[1]);
}

static lop_status apply(lop_emit *e, const lop_node *self, lop_mode mode, int x, int out) {
    lop_status st;
    int in[2] = {x, lop_emit_cast(e, lop_emit_value(e, self->child[0]), LOP_i64, &st)};
    if (in[1] < 0) return st;
    lop_step *s = lop_emit_step(e, mode & LOP_T ? "unpermute" : "permute", run, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = mode;
    s->scratch = index_bytes(self->child[0]);
    s->flags = LOP_STEP_COLUMNS;
    return LOP_OK;
}

/* Entry (i, j) is 1 where p[i] is j. */
static lop_status run_diagonal(const lop_call *c) {
    const lop_mat *y = c->a[0], *p = c->a[1];
    int64_t k = c->step->attr.i[0], size = (int64_t)lop_dtype_size(y->dt), *index = c->scratch;
    lop_status st = read_index(p, false, index, (unsigned char *)(index + p->m), c->err);
    if (st != LOP_OK) return st;
    for (int64_t t = 0; t < y->m; t++) {
        int64_t i = t + (k < 0 ? -k : 0), j = t + (k > 0 ? k : 0);
        lop_set(y->dt, (char *)y->p + t * y->rs * size, 0, index[i] == j);
    }
    return LOP_OK;
}
static lop_status diagonal(lop_emit *e, const lop_node *self, int64_t k, int out) {
    lop_status st;
    int in = lop_emit_cast(e, lop_emit_value(e, self->child[0]), LOP_i64, &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, "hits", run_diagonal, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr.i[0] = k;
    s->scratch = index_bytes(self->child[0]);
    return LOP_OK;
}

static double flops(const lop_node *self, int64_t k) {
    (void)self;
    (void)k;
    return 0;
}

static lop_status random_instance(lop_rand *r, int64_t m, int64_t n, lop_dtype dt,
                                  const lop_node **out) {
    if (m != n) return LOP_UNABLE;
    const lop_node *p;
    lop_attr a = {.i = {0, 0, (int64_t)dt, 0}};
    lop_status st = lop_rand_permutation(r, n, &p);
    if (st != LOP_OK) return st;
    st = lop_node_make(r->ctx, &lop_op_permutation, &a, 1, &p, NULL, out, r->err);
    lop_node_unref(p);
    return st;
}

const lop_op lop_op_permutation = {
    LOP_NAMED(permutation),
    .flags = LOP_FLAG_closed_spectrum | LOP_FLAG_few_entries | LOP_FLAG_one_entry |
             LOP_FLAG_entries | LOP_FLAG_at_once | LOP_FLAG_own_inverse | LOP_FLAG_tells |
             LOP_FLAG_indices | LOP_FLAG_meets,
    .title = "Permutation",
    .cls = LOP_OPERATOR,
    .min = 1,
    .max = 1,
    .ints = 3,
    .param = {{"p", LOP_P_INDEX, 1, NULL,
               "The order, shape (..., n): each of 0 to n - 1 once; negative ones count from the "
               "end. Borrowed."},
              {"dtype", LOP_P_DTYPE, 0, "None",
               "Data type; None adopts that of whatever it meets (float64 alone)."}},
    .doc = {.brief = "Reorders rows: ``P @ x`` is ``x[p]``.",
            .extended = "Products of permutations, ``P.T`` and ``inv(P)`` are Permutation again, "
                        "without computing; a solve puts the rows back.",
            .cost = "Build: O(1). Product with k columns: n k copies, and n marks for the check.",
            .notes = "Every call checks that p holds each index once: ValueError where it does "
                     "not, IndexError beyond the bounds.",
            .example = ">>> P = pl.Permutation([2, 0, 1])\n>>> P @ np.array([5., 6., 7.]), P.T @ "
                       "(P @ np.arange(3.))\n(array([7., 5., 6.]), array([0., 1., 2.]))"},
    .infer = infer,
    .trait = trait,
    .apply = apply,
    .diagonal = diagonal,
    .flops = flops,
    .random = random_instance};

/* -- index vectors from others */

static lop_status infer_indices(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->n > 1 ? n->child[1] : a;
    lop_status st = index_vector(n, a, err);
    if (st == LOP_OK) st = index_vector(n, b, err);
    if (st == LOP_OK && lop_cols(a) != lop_cols(b))
        st = lop_fail(err, LOP_DIM, "orders of %lld and %lld rows do not fit",
                      (long long)lop_cols(a), (long long)lop_cols(b));
    if (st == LOP_OK) st = lop_shape_batch(&a->shape, 1, &b->shape, 1, &n->shape, err);
    if (st != LOP_OK) return st;
    n->shape.dim[n->shape.ndim++] = lop_cols(a);
    n->core = 1;
    n->dtype = LOP_i64;
    return LOP_OK;
}

static void store(const lop_mat *y, const int64_t *index) {
    for (int64_t i = 0; i < y->m; i++) ((int64_t *)y->p)[i * y->rs] = index[i];
}
static lop_status run_invperm(const lop_call *c) {
    const lop_mat *p = c->a[1];
    int64_t *index = c->scratch;
    lop_status st = read_index(p, true, index, (unsigned char *)(index + p->m), c->err);
    if (st == LOP_OK) store(c->a[0], index);
    return st;
}
static lop_status run_compose(const lop_call *c) {
    const lop_mat *p = c->a[1], *q = c->a[2];
    int64_t n = p->m, *inner = c->scratch, *outer = inner + n;
    unsigned char *marks = (unsigned char *)(outer + n);
    lop_status st = read_index(p, false, inner, marks, c->err);
    if (st == LOP_OK) st = read_index(q, false, outer, marks, c->err);
    if (st != LOP_OK) return st;
    for (int64_t i = 0; i < n; i++) outer[i] = inner[outer[i]];
    store(c->a[0], outer);
    return LOP_OK;
}
static lop_status lower_indices(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in[2] = {-1, -1};
    for (int i = 0; i < self->n; i++) {
        in[i] = lop_emit_cast(e, lop_emit_value(e, self->child[i]), LOP_i64, &st);
        if (in[i] < 0) return st;
    }
    lop_step *s =
        lop_emit_step(e, self->op->name, self->n > 1 ? run_compose : run_invperm, out, self->n, in);
    if (!s) return LOP_NOMEM;
    s->scratch = (size_t)self->n * index_bytes(self->child[0]);
    return LOP_OK;
}
const lop_op lop_op_inverse_permutation = {
    LOP_NAMED(inverse_permutation), .cls = LOP_ARRAY,      .min = 1, .max = 1,
    .infer = infer_indices,         .lower = lower_indices};
const lop_op lop_op_compose = {LOP_NAMED(compose), .cls = LOP_ARRAY,       .min = 2,
                               .max = 2,           .infer = infer_indices, .lower = lower_indices};

/* -- permutation_det: the sign of the order, by its cycles; attr.i[0] the dtype */

static lop_status infer_detperm(lop_node *n, lop_err *err) {
    lop_status st = index_vector(n, n->child[0], err);
    if (st != LOP_OK) return st;
    if (n->attr.i[0] < LOP_f32 || n->attr.i[0] > LOP_c128) return lop_fail(err, LOP_DTYPE, NULL);
    return lop_pair_infer(n, &n->child[0]->shape, 1, (lop_dtype)n->attr.i[0]);
}
static lop_status run_detperm(const lop_call *c) {
    const lop_mat *p = c->a[1];
    int64_t *index = c->scratch;
    unsigned char *marks = (unsigned char *)(index + p->m);
    lop_status st = read_index(p, false, index, marks, c->err);
    if (st != LOP_OK) return st;
    lop_pair sign = lop_pair_one();
    memset(marks, 0, (size_t)p->m);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t at = i; !marks[at]; at = index[at]) { /* one exchange less than elements */
            marks[at] = 1;
            if (index[at] != i) sign.re = -sign.re;
        }
    lop_pair_store(c->a[0], sign);
    return LOP_OK;
}
static lop_status lower_detperm(lop_emit *e, const lop_node *self, int out) {
    lop_status st;
    int in = lop_emit_cast(e, lop_emit_value(e, self->child[0]), LOP_i64, &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, "permutation_det", run_detperm, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->scratch = index_bytes(self->child[0]);
    return LOP_OK;
}
const lop_op lop_op_permutation_det = {
    LOP_NAMED(permutation_det), .cls = LOP_ARRAY,      .min = 1, .max = 1, .ints = 1,
    .infer = infer_detperm,     .lower = lower_detperm};
