/* op_named_lines.c: of a band or of blocks that are assumed symmetric or Hermitian, the numbers
 * that the named part says (op_named.c is of whole matrices):
 *
 * named_band    ab of a Banded with w diagonals on either side: those above, and below the same,
 *               conjugated; attr.i: Hermitian, w
 * named_blocks  square blocks, raveled: each by its upper triangle, or each transposed; attr.i:
 *               Hermitian, rows of one, transposed
 *
 * With `Hermitian` the diagonal is real. What lies elsewhere is never read. Cost: one pass. */
#include "expr/op.h"
#include "kernels/common/kernels.h"

static void real_diagonal(const lop_mat *d) {
    for (int64_t i = 0; i < d->m; i++)
        lop_set(d->dt, d->p, i * d->rs, creal(lop_get(d->dt, d->p, i * d->rs)));
}
static lop_mat line(const lop_mat *a, int64_t row, int64_t column, int64_t m, int64_t step) {
    const int64_t at = (row * a->rs + column * a->cs) * (int64_t)lop_dtype_size(a->dt);
    return (lop_mat){(char *)a->p + at, m, 1, step, 1, a->dt};
}
static void turned(const lop_mat *to, const lop_mat *from, bool adjoint) {
    if (adjoint)
        lopk_conj(to, from);
    else
        lopk_copy(to, from);
}

static lop_status infer_band(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    if (a->core != 2 || lop_rows(a) != 2 * n->attr.i[1] + 1)
        return lop_fail(err, LOP_DIM, "named_band takes as many diagonals below as above");
    n->shape = a->shape;
    n->core = 2;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}
static lop_status run_band(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1];
    const int64_t w = c->step->attr.i[1], n = a->n;
    const bool adjoint = c->step->attr.i[0] != 0 && lop_is_complex(a->dt);
    lopk_zero(y);
    for (int64_t k = 0; k <= w && k < n; k++) {
        const lop_mat from = line(a, w - k, k, n - k, a->cs),
                      above = line(y, w - k, k, n - k, y->cs),
                      below = line(y, w + k, 0, n - k, y->cs);
        lopk_copy(&above, &from);
        if (k == 0 && adjoint) real_diagonal(&above);
        if (k > 0) turned(&below, &from, adjoint);
    }
    return LOP_OK;
}
static lop_status lower_by(lop_emit *e, const lop_node *self, int out, lop_run run) {
    const int in = lop_emit_value(e, self->child[0]);
    lop_step *s = lop_emit_step(e, self->op->name, run, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = self->attr;
    s->bytes = 2 * lop_slot_elements(e, out) * (double)lop_dtype_size(self->dtype);
    return LOP_OK;
}
static lop_status lower_band(lop_emit *e, const lop_node *self, int out) {
    return lower_by(e, self, out, run_band);
}
const lop_op lop_op_named_band = {
    LOP_NAMED(named_band), .cls = LOP_ARRAY,   .min = 1, .max = 1, .ints = 2,
    .infer = infer_band,   .lower = lower_band};

static lop_status infer_blocks(lop_node *n, lop_err *err) {
    const lop_node *a = n->child[0];
    const int64_t b = n->attr.i[1];
    int64_t area;
    if (a->core != 1 || b < 0 || !lop_mul_ok(b, b, &area) ||
        (area ? lop_cols(a) % area != 0 : lop_cols(a) != 0))
        return lop_fail(err, LOP_DIM, "named_blocks takes whole blocks");
    n->shape = a->shape;
    n->core = 1;
    n->dtype = a->dtype;
    n->weak = a->weak;
    return LOP_OK;
}
static lop_status run_blocks(const lop_call *c) {
    const lop_mat *y = c->a[0], *a = c->a[1];
    const int64_t b = c->step->attr.i[1], N = b > 0 ? a->m / (b * b) : 0;
    const bool adjoint = c->step->attr.i[0] != 0 && lop_is_complex(a->dt);
    for (int64_t r = 0; c->step->attr.i[2] && r < N * b; r++) {
        const int64_t at = r / b * b * b + r % b;
        const lop_mat from = line(a, r * b, 0, b, a->rs), to = line(y, at, 0, b, b * y->rs);
        lopk_copy(&to, &from);
    }
    for (int64_t r = 0; !c->step->attr.i[2] && r < N * b;
         r++) { /* a row from its diagonal on, and the column below that */
        const int64_t at = r * b + r % b, rest = b - r % b;
        const lop_mat from = line(a, at, 0, rest, a->rs), right = line(y, at, 0, rest, y->rs),
                      below = line(y, at, 0, rest, b * y->rs), one = line(y, at, 0, 1, y->rs);
        turned(&below, &from, adjoint);
        lopk_copy(&right, &from);
        if (adjoint) real_diagonal(&one);
    }
    return LOP_OK;
}
static lop_status lower_blocks(lop_emit *e, const lop_node *self, int out) {
    return lower_by(e, self, out, run_blocks);
}
const lop_op lop_op_named_blocks = {
    LOP_NAMED(named_blocks), .cls = LOP_ARRAY,     .min = 1, .max = 1, .ints = 3,
    .infer = infer_blocks,   .lower = lower_blocks};

/* -- the parameters of a kind that is assumed to be its own adjoint, or symmetric */

static int64_t word_of(const lop_node *n) {
    return n->op == &lop_op_tridiagonal ? n->attr.i[0] : n->attr.i[n->op == &lop_op_banded ? 2 : 1];
}
bool lop_has_named_lines(const lop_node *n) {
    const bool three = n->op == &lop_op_tridiagonal, blocks = n->op == &lop_op_blocktridiagonal;
    if (!three && !blocks && n->op != &lop_op_banded) return false;
    const int64_t word = word_of(n);
    const bool adjoint = word != LOP_ASSUME_SYMMETRIC;
    if (word < LOP_ASSUME_SYMMETRIC || word > LOP_ASSUME_POSITIVE) return false;
    if (n->op == &lop_op_banded) return n->child[0]->op != &lop_op_named_band && n->attr.i[0] > 0;
    if (blocks) return n->child[1]->op != &lop_op_named_blocks;
    return (n->child[0] != n->child[2] || (adjoint && lop_is_complex(n->dtype))) &&
           n->child[1]->op != &lop_op_named_blocks;
}

enum {
    TERMS = 64
}; /* sums opened: longer ones are named as a whole, and nothing is looked for in
    * their terms */

/* The conjugate of x, or its blocks by their upper triangles; of a sum term by term, as the terms
 * that were assumed definite are found by their places in it (rules/assumed_terms.h). */
static lop_status made(const lop_node *x, const lop_op *op, int64_t adjoint, int64_t size,
                       int *left, const lop_node **out, lop_err *err) {
    const lop_attr how = {.i = {adjoint, size, 0, 0}};
    const bool plus = x->op == &lop_op_blockplus,
               opens = *left > 0 && (plus || x->op == &lop_op_add || x->op == &lop_op_conjugate ||
                                     (x->op == &lop_op_scale && x->attr.im == 0));
    const lop_node *v[2] = {NULL, NULL};
    lop_status st = LOP_OK;
    if (!lop_is_complex(x->dtype) &&
        (op == &lop_op_conjugate || (op == &lop_op_named_blocks && size == 1))) {
        *out = lop_node_ref(x);
        return LOP_OK;
    }
    *left -= opens;
    for (int i = 0; st == LOP_OK && opens && i < x->n; i++)
        st = made(x->child[i], op, adjoint, plus && i == 1 ? 1 : size, left, &v[i], err);
    if (st == LOP_OK && opens)
        st = lop_node_make(x->ctx, x->op, &x->attr, x->n, v, NULL, out, err);
    else if (st == LOP_OK)
        st =
            lop_node_make(x->ctx, op, op == &lop_op_conjugate ? NULL : &how, 1, &x, NULL, out, err);
    for (int i = 0; i < 2; i++) lop_node_unref(v[i]);
    return st;
}
bool lop_names_lines(const lop_attr *of, int word) {
    return of->i[word] >= LOP_ASSUME_SYMMETRIC && of->i[word] <= LOP_ASSUME_POSITIVE;
}
lop_status lop_named_lines(const lop_node *n, const lop_node *const *child, int *count,
                           const lop_node **out, lop_err *err) {
    const int64_t adjoint = word_of(n) != LOP_ASSUME_SYMMETRIC;
    int left = TERMS, none = 0, more = TERMS;
    if (n->op == &lop_op_banded) {
        *count = 1;
        return made(child[0], &lop_op_named_band, adjoint, n->attr.i[0], &none, &out[0], err);
    }
    if (n->op == &lop_op_blocktridiagonal) { /* those above are the adjoints of those below */
        const bool own = adjoint || !lop_is_complex(n->dtype);
        const lop_attr turn = {.i = {0, n->attr.i[0], 1, 0}};
        *count = own ? 2 : 3;
        out[0] = lop_node_ref(child[0]);
        const lop_status st =
            made(child[1], &lop_op_named_blocks, adjoint, n->attr.i[0], &left, &out[1], err);
        return st != LOP_OK || own ? st
                                   : lop_node_make(n->ctx, &lop_op_named_blocks, &turn, 1, child,
                                                   NULL, &out[2], err);
    }
    const int from = n->attr.i[1] ? 0 : 2, to = 2 - from;
    const bool conj = adjoint && lop_is_complex(child[from]->dtype),
               real = adjoint && lop_is_complex(child[1]->dtype);
    *count = 3;
    out[from] = lop_node_ref(child[from]);
    lop_status st = LOP_OK;
    if (conj)
        st = made(child[from], &lop_op_conjugate, 0, 0, &left, &out[to], err);
    else
        out[to] = lop_node_ref(child[from]);
    if (st == LOP_OK && (real || conj))
        st = made(child[1], &lop_op_named_blocks, adjoint, 1, &more, &out[1], err);
    else if (st == LOP_OK)
        out[1] = lop_node_ref(child[1]);
    return st;
}
