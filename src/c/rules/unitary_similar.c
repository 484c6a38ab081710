/* unitary_similar.c: Q X Q^H with a unitary Q, alone and beside a multiple of the identity.
 *
 *   Q X Q^H + c I = Q (X + c I) Q^H      solves, determinants, inverses: a prior by its spectrum,
 * as F^H D F, plus noise is as diagonal as D det(Q X Q^H) = det X,   tr((Q X Q^H)^-1) = tr(X^-1)
 *   diag((Q X Q^H)^-1) = diag(Q X^-1 Q^H)
 *   A^-1 X A + c I = A^-1 (X + c I) A   likewise, where the inverse of A stands in the formula
 * already
 *
 * No check of a unitary Q: |X + c I| = |Q X Q^H + c I|, so that what is backward stable for the one
 * is for the other, and c is added to the numbers of X themselves. Not for products: there c x
 * would be rounded as Q (c I) Q^H x is. Q may be several factors, P F; each is unitary by its kind,
 * by how it is written or by assumption (unitary.c), and the last one its adjoint as views go to
 * the parts. Of A^-1 X A, formed, the errors are some u cond(A) |A^-1| |X| |A| beside c; of the
 * product that it is for solves with it some u cond(A) for each of A^-1, (X + c I)^-1 and A, which
 * is no more. Whether A has an inverse at all solves with the product see, as A is solved with; its
 * determinant is that of X + c I alone where A is known to have one. */
#include "builds.h"
#include "expr/properties.h"
#include "rewrite/cheap_to_solve.h"
#include "thin_sum.h"

enum { FACTORS = 12, LEVELS = 8 };

typedef struct similar {
    const lop_node *f[FACTORS]; /* borrowed: Q, what stands between, Q^H */
    int n, outer;               /* Q has `outer` factors */
    lop_coef c;                 /* times the product */
} similar;

/* A view of `a`, moved down to the parts as far as its root goes. Owned. */
static lop_status seen_as(const lop_maker *mk, int64_t mode, const lop_node *a,
                          const lop_node **out) {
    const lop_attr by = {.i = {mode, 0, 0, 0}};
    lop_status st = LOP_OK;
    if (mode)
        st = lop_make1(mk, &lop_op_view, &by, a, out);
    else
        *out = lop_node_ref(a);
    for (int left = LEVELS; st == LOP_OK && (*out)->op == &lop_op_view && left > 0; left--) {
        const lop_node *next = NULL;
        st = lop_push_once(mk, *out, false, &next);
        if (st != LOP_OK) break;
        lop_node_unref(*out);
        *out = next;
    }
    if (st == LOP_NOMATCH) st = LOP_OK;
    if (st != LOP_OK) {
        lop_node_unref(*out);
        *out = NULL;
    }
    return st;
}

/* P and the Permutation that its transpose is built as. */
static bool permutes_back(const lop_node *a, const lop_node *b) {
    if (a->op != &lop_op_permutation || b->op != &lop_op_permutation) return false;
    const lop_node *p = a->child[0], *q = b->child[0];
    return (q->op == &lop_op_inverse_permutation &&
            lop_node_alike(p, q->child[0], LOP_INFER_DEPTH)) ||
           (p->op == &lop_op_inverse_permutation &&
            lop_node_alike(p->child[0], q, LOP_INFER_DEPTH));
}

/* A of A^-1 and A, in either order; NULL: they are not that. */
static const lop_node *inverted_by(const lop_node *a, const lop_node *b) {
    if (a->op == &lop_op_inverse && lop_node_alike(a->child[0], b, LOP_INFER_DEPTH)) return b;
    return b->op == &lop_op_inverse && lop_node_alike(b->child[0], a, LOP_INFER_DEPTH) ? a : NULL;
}

/* NOMATCH: b is not the adjoint of a unitary a, as far as is seen, nor an inverse, of what is known
 * to have one but with `any`; or in fewer digits than those of dt. */
static lop_status undoes(const lop_maker *mk, lop_dtype dt, bool any, const lop_node *a,
                         const lop_node *b) {
    const lop_node *adjoint = NULL, *other = NULL, *in = inverted_by(a, b);
    const bool as_exact = a->weak || lop_dtype_real(a->dtype) == lop_dtype_real(dt);
    if (permutes_back(a, b)) return LOP_OK;
    if (in && as_exact && (any || lop_infer_regular(in) == LOP_TRUE)) return LOP_OK;
    if (!as_exact || !lop_infer_unitary(a)) return LOP_NOMATCH;
    lop_status st = seen_as(mk, LOP_H, a, &adjoint);
    if (st == LOP_OK) st = seen_as(mk, LOP_N, b, &other);
    if (st == LOP_OK && !lop_node_alike(adjoint, other, LOP_INFER_DEPTH)) st = LOP_NOMATCH;
    lop_node_unref(adjoint);
    lop_node_unref(other);
    return st;
}

static lop_status read_similar(const lop_maker *mk, const lop_node *a, bool any, similar *s) {
    s->c = lop_coef_const(1, 0);
    s->outer = 0;
    if (a->op == &lop_op_scaled) {
        s->c = lop_coef_of(&a->attr);
        a = a->child[0];
    }
    if (a->op != &lop_op_prod || lop_nbatch(a) > 0 || !lop_is_blas(a->dtype) || !lop_is_square(a))
        return LOP_NOMATCH;
    s->n = lop_product_factors(a, s->f, FACTORS);
    lop_status st = LOP_OK;
    while (st == LOP_OK && s->n - 2 * s->outer > 2) {
        st = undoes(mk, a->dtype, any, s->f[s->outer], s->f[s->n - 1 - s->outer]);
        s->outer += st == LOP_OK;
    }
    if (st == LOP_NOMATCH) st = LOP_OK;
    return st == LOP_OK && s->outer == 0 ? LOP_NOMATCH : st;
}

/* c X. Owned. */
static lop_status between(const lop_maker *mk, const similar *s, const lop_node **out) {
    const lop_node *x = NULL;
    lop_status st = lop_product_of(mk, s->f + s->outer, s->n - 2 * s->outer, &x);
    if (st == LOP_OK) st = lop_thin_multiple(mk, s->c, x, out);
    lop_node_unref(x);
    return st;
}

/* Q x Q^H; takes over x. */
static lop_status around(const lop_maker *mk, const similar *s, const lop_node *x,
                         const lop_node **out) {
    const lop_node *f[FACTORS];
    const int k = s->outer;
    for (int i = 0; i < k; i++) {
        f[i] = s->f[i];
        f[k + 1 + i] = s->f[s->n - k + i];
    }
    f[k] = x;
    lop_status st = lop_product_of(mk, f, 2 * k + 1, out);
    lop_node_unref(x);
    return st;
}

lop_status lop_shifted_similar(const lop_maker *mk, const lop_node *sum, const lop_node **out) {
    similar s;
    lop_coef c;
    const lop_node *k = NULL, *x = NULL, *shifted = NULL;
    lop_status st = lop_read_shift(mk, sum, &k, &c);
    if (st == LOP_OK && lop_coef_test(mk->ctx, c, LOP_COEF_ZERO)) st = LOP_NOMATCH;
    if (st == LOP_OK) st = read_similar(mk, k, true, &s);
    if (st == LOP_OK) st = between(mk, &s, &x);
    if (st == LOP_OK) st = lop_shifted(mk, x, c, &shifted);
    if (st == LOP_OK) st = around(mk, &s, shifted, out);
    lop_node_unref(k);
    lop_node_unref(x);
    if (st == LOP_OK && ((*out)->dtype != sum->dtype || (*out)->weak != sum->weak)) {
        lop_node_unref(*out);
        *out = NULL;
        st = LOP_NOMATCH;
    }
    return st;
}

/* The determinant of the product, by what stands between. */
LOP_BUILD(det_similar) {
    similar s;
    const lop_node *x = NULL;
    lop_status st = read_similar(mk, m->root->child[0], false, &s);
    if (st == LOP_OK) st = between(mk, &s, &x);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, x, out);
    lop_node_unref(x);
    return st;
}

/* The trace of the inverse of a product, or of a sum that is one. */
LOP_BUILD(trace_inverse_similar) {
    const lop_node *a = m->root->child[0]->child[0], *whole = NULL, *x = NULL, *inverse = NULL;
    similar s;
    lop_status st = LOP_OK;
    if (a->op == &lop_op_sum)
        st = lop_nbatch(a) > 0 ? LOP_NOMATCH : lop_shifted_similar(mk, a, &whole);
    else
        whole = lop_node_ref(a);
    if (st == LOP_OK) st = read_similar(mk, whole, false, &s);
    if (st == LOP_OK) st = between(mk, &s, &x);
    if (st == LOP_OK) st = lop_inverse_closed(mk, x, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, inverse, out);
    lop_node_unref(whole);
    lop_node_unref(x);
    lop_node_unref(inverse);
    return st;
}

/* A diagonal of the inverse of a product whose Q picks rows. */
LOP_BUILD(diagonal_inverse_similar) {
    similar s;
    const lop_node *x = NULL, *inverse = NULL, *whole = NULL;
    lop_status st = read_similar(mk, m->root->child[0]->child[0], false, &s);
    if (st == LOP_OK && !lop_has(s.f[0], LOP_FLAG_one_entry)) st = LOP_NOMATCH;
    if (st == LOP_OK) st = between(mk, &s, &x);
    if (st == LOP_OK) st = lop_inverse_closed(mk, x, &inverse);
    if (st == LOP_OK) st = around(mk, &s, inverse, &whole);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, whole, out);
    lop_node_unref(x);
    lop_node_unref(whole);
    return st;
}
