/* op_sparse_pair.c: the dense form (attr.i[0] 0) or a diagonal (1, at offset attr.i[1]) of A D B, A
 * and B sparse or views of sparse, d the diagonal of D where it is given; none of them dense on the
 * way. attr.i[3]: the dtype + 1 to compute in, as of todense. Made by rules/solve_sparse.c.
 *
 * Cost: a diagonal nnz A + nnz B operations; the dense form one for each pair of entries that meet,
 * nnz A nnz B / inner size where they lie evenly. */
#include "kernels/sparse/k_sparse_pair.h"
#include "expr/op.h"
#include "kernels/common/kernels.h"

static const lop_node *peel(const lop_node *a, lop_mode *mode) {
    *mode = a->op == &lop_op_view ? (lop_mode)a->attr.i[0] : LOP_N;
    return a->op == &lop_op_view ? a->child[0] : a;
}

static lop_status infer(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0], *b = n->child[1], *d = n->n > 2 ? n->child[2] : NULL;
    lop_mode mode;
    if (peel(a, &mode)->op != &lop_op_sparse || peel(b, &mode)->op != &lop_op_sparse ||
        lop_cols(a) != lop_rows(b) ||
        (d && (d->core != 1 || lop_nbatch(d) || lop_cols(d) != lop_cols(a))))
        return lop_fail(err, LOP_DIM, "sparsepair takes two sparse matrices that fit");
    if (n->attr.i[3] < 0 || n->attr.i[3] > LOP_NDTYPE || n->attr.i[0] < 0 || n->attr.i[0] > 1)
        return lop_fail(err, LOP_DTYPE, NULL);
    lop_node_promote(n, a, b);
    if (d) lop_node_promote(n, n, d);
    if (n->attr.i[3]) n->dtype = (lop_dtype)(n->attr.i[3] - 1);
    n->weak = LOP_STRONG;
    n->shape = (lop_shape){.ndim = 2, .dim = {lop_rows(a), lop_cols(b)}};
    n->core = 2;
    if (!n->attr.i[0]) return LOP_OK;
    int64_t k = n->attr.i[1];
    k = k < -lop_rows(a) ? -lop_rows(a) : k > lop_cols(b) ? lop_cols(b) : k;
    n->attr.i[1] = k;
    n->shape = (lop_shape){.ndim = 1, .dim = {lop_diag_length(lop_rows(a), lop_cols(b), k)}};
    n->core = 1;
    return LOP_OK;
}

/* A factor of the arrays data, i1, i2, seen through a mode. */
static lopk_factor factor(const lop_mat *const *a, int64_t code, int64_t m, int64_t n) {
    static const int formats[] = {LOPK_BY_ROWS, LOPK_BY_COLUMNS, LOPK_TRIPLETS};
    const int64_t nnz = a[0]->m < a[1]->m ? a[0]->m : a[1]->m;
    lopk_factor f = {
        formats[code & 3], (code & 4 * LOP_C) != 0, a[1]->p, a[2]->p, a[0]->p, m, n, nnz};
    if (!(code & 4 * LOP_T)) return f;
    if (f.format == LOPK_TRIPLETS) {
        f.index = a[2]->p;
        f.ptr = a[1]->p;
    } else {
        f.format = f.format == LOPK_BY_ROWS ? LOPK_BY_COLUMNS : LOPK_BY_ROWS;
    }
    return f;
}

static lopk_pair pair_of(const lop_step *s, const lop_mat *const *a) {
    const int64_t *size = s->data;
    lopk_pair p = {.a = factor(a + 1, size[3], size[0], size[1]),
                   .b = factor(a + 4, size[4], size[1], size[2]),
                   .d = s->n > 7 ? a[7]->p : NULL,
                   .dt = a[1]->dt,
                   .ix = a[2]->dt};
    return p;
}

/* Do the pointers of both factors, where they have such, begin with 0? */
static bool begins(const lop_step *s, const lop_mat *const *a) {
    const int64_t *size = s->data;
    return ((size[3] & 3) == LOPK_TRIPLETS || lopk_indptr_begins(a[3])) &&
           ((size[4] & 3) == LOPK_TRIPLETS || lopk_indptr_begins(a[6]));
}

static lop_status run(const lop_call *c) {
    const lopk_pair p = pair_of(c->step, c->a);
    const lop_mat *y = c->a[0];
    lop_status st = !begins(c->step, c->a) ? LOP_INDEX
                    : c->step->attr.i[0] ? lopk_pair_diagonal(y, &p, c->step->attr.i[1], c->scratch)
                                         : lopk_pair_dense(y, &p, c->scratch);
    if (st == LOP_INDEX)
        return lop_fail(c->err, st,
                        "a sparse index is out of bounds in a product of %lld x %lld and %lld x "
                        "%lld, or indptr is not increasing",
                        (long long)p.a.m, (long long)p.a.n, (long long)p.b.m, (long long)p.b.n);
    return st;
}

/* The three arrays of both factors and d: contiguous, data of one dtype, indices of another. */
static lop_status arrays(lop_emit *e, const lop_node *self, const lop_node *a, const lop_node *b,
                         int *in) {
    lop_status st = LOP_OK;
    lop_dtype index = lop_promote(lop_promote(a->child[1]->dtype, a->child[2]->dtype),
                                  lop_promote(b->child[1]->dtype, b->child[2]->dtype));
    for (int i = 0; i < (self->n > 2 ? 7 : 6); i++) {
        const lop_node *v = i < 3 ? a->child[i] : i < 6 ? b->child[i - 3] : self->child[2];
        in[i] = lop_emit_cast(e, lop_emit_value(e, v), i % 3 ? index : self->dtype, &st);
        in[i] = lop_emit_in_c_order(e, in[i], &st);
        if (in[i] < 0) return st;
    }
    return st;
}

static lop_status lower(lop_emit *e, const lop_node *self, int out) {
    lop_mode ma, mb;
    const lop_node *a = peel(self->child[0], &ma), *b = peel(self->child[1], &mb);
    const int64_t m = lop_rows(self->child[0]), inner = lop_rows(self->child[1]),
                  n = lop_cols(self->child[1]);
    const double na = (double)lop_cols(a->child[0]), nb = (double)lop_cols(b->child[0]);
    int in[7];
    int64_t bytes;
    lop_status st = arrays(e, self, a, b, in);
    if (st != LOP_OK) return st;
    const lopk_pair p = {.a = {.m = m, .n = inner, .nnz = lop_cols(a->child[0])},
                         .b = {.m = inner, .n = n, .nnz = lop_cols(b->child[0])},
                         .dt = self->dtype,
                         .ix = LOP_i64};
    if (!lopk_pair_work(&p, &bytes))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "a sparse product does not fit 64 bits");
    lop_step *s = lop_emit_step(e, "spgemm", run, out, self->n > 2 ? 7 : 6, in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->scratch = (size_t)bytes;
    s->flops = self->attr.i[0] ? 2 * (na + nb) : 2 * na * nb / (inner > 0 ? (double)inner : 1);
    return lop_emit_data(e,
                         (const int64_t[]){m, inner, n, a->attr.i[0] | (int64_t)ma << 2,
                                           b->attr.i[0] | (int64_t)mb << 2},
                         5);
}

const lop_op lop_op_sparsepair = {
    LOP_NAMED(sparsepair), .cls = LOP_ACTION, .min = 2,       .max = 3,
    .operators = 2,        .ints = 4,         .infer = infer, .lower = lower};
