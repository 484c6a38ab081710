/* low_rank_inverse_projections.c: what gradients read off the inverse of an update of low rank, as
 * of a determinant of Toeplitz + U U^H.
 *
 *   p(A^-1) = p(B^-1) - p(W Y),   A = B + U C V^H of k columns,
 *   W = B^-1 U,  Y = S^-1 C V^H B^-1,  S = I + C V^H W
 *
 * for a projection p, which is linear: of B^-1 by what B is, of a pair of thin factors as of any.
 * Nothing of n rows and columns is formed. Accepted as the diagonal of A^-1 is (checked_value: a
 * probe is solved for, and B is not much nearer to a singular matrix than A), else off the inverse
 * of the dense form. */
#include "expr/properties.h"
#include "low_rank_woodbury.h"
#include "rewrite/cheap_to_solve.h"
#include "rewrite/guards.h"
#include "thin_sum.h"

enum { PART = 2 }; /* rows for a column */

lop_status lop_woodbury_left(const woodbury *s, const lop_node **out) {
    const lop_node *vb = NULL, *t = NULL;
    lop_status st = lop_woodbury_right(s, &vb);
    if (st == LOP_OK && s->p.c) st = lop_make2(s->mk, &lop_op_apply, NULL, s->p.c, vb, &t);
    if (st == LOP_OK) st = lop_woodbury_inner(s, t ? t : vb, out);
    lop_node_unref(vb);
    lop_node_unref(t);
    return st;
}

/* W Y as an operator. Owned. */
static lop_status thin_part(const woodbury *s, const lop_node **out) {
    const lop_node *y = NULL, *yo = NULL;
    lop_status st = lop_woodbury_left(s, &y);
    if (st == LOP_OK) st = lop_make1(s->mk, &lop_op_dense, NULL, y, &yo);
    if (st == LOP_OK) st = lop_make2(s->mk, &lop_op_prod, NULL, s->w, yo, out);
    lop_node_unref(y);
    lop_node_unref(yo);
    return st;
}

/* The root's projection of `a` instead. Owned. */
static lop_status projected(const lop_match *m, const lop_maker *mk, const lop_node *a,
                            const lop_node **out) {
    enum { MOST = 4 };
    const lop_node *child[MOST] = {a};
    if (m->root->n > MOST) return LOP_NOMATCH;
    for (int i = 1; i < m->root->n; i++) child[i] = m->root->child[i];
    return lop_make_op(mk, m->root->op, &m->root->attr, m->root->n, child, NULL, out);
}

static lop_status of_update(const lop_match *m, const lop_maker *mk, const lop_node *a,
                            const lop_node **out) {
    const lop_dtype dt = m->root->dtype;
    const lop_node *inverse = NULL, *own = NULL, *thin = NULL, *low = NULL, *value = NULL,
                   *array = NULL, *dense = NULL, *alt = NULL;
    woodbury s = {.mk = mk, .a = a, .p = parts_of(a)};
    s.dt = (lop_attr){.i = {0, 0, 0, (int64_t)dt + 1}};
    if (!lop_is_blas(dt) || lop_nbatch(a) > 0 || lop_nbatch(m->root) > 0 ||
        PART * lop_cols(s.p.u) > lop_rows(a) ||
        !(lop_cheap_to_solve(s.p.base) || s.p.base->op == &lop_op_inverse))
        return LOP_NOMATCH;
    lop_status st = lop_woodbury_open(&s);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, s.p.base, &inverse);
    if (st == LOP_OK) st = projected(m, mk, inverse, &own);
    if (st == LOP_OK) st = thin_part(&s, &thin);
    if (st == LOP_OK) st = projected(m, mk, thin, &low);
    if (st == LOP_OK) st = lop_build_minus(mk, own, low, &value);
    if (st == LOP_OK) st = lop_inverse_array(mk, a, dt, &array);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, array, &dense);
    if (st == LOP_OK) st = projected(m, mk, dense, &alt);
    if (st == LOP_OK) st = lop_woodbury_checked(&s, &lop_op_checked_value, value, alt, out);
    const lop_node *gone[] = {inverse, own, thin, low, value, array, dense, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_woodbury_close(&s);
    return st;
}

LOP_BUILD(projection_inverse_update) { return of_update(m, mk, m->root->child[0]->child[0], out); }

/* B + U C V^H of a LowRank, where B is itself a sum. */
static lop_status sum_with_lowrank(const lop_maker *mk, const lop_node *sum, const lop_node **out) {
    const bool last = sum->child[1]->op == &lop_op_lowrank;
    const lop_node *low = sum->child[last], *child[4] = {sum->child[!last]};
    if (low->op != &lop_op_lowrank) return LOP_NOMATCH;
    for (int i = 0; i < low->n; i++) child[i + 1] = low->child[i];
    return lop_make_op(mk, &lop_op_lowrankupdate, NULL, low->n + 1, child, NULL, out);
}

lop_status lop_woodbury_of_sum(const lop_maker *mk, lop_dtype dt, const lop_node *a,
                               const lop_node **out) {
    lop_status st = LOP_NOMATCH;
    if (a->op == &lop_op_lowrankupdate)
        *out = lop_node_ref(a);
    else if (a->op == &lop_op_sum)
        st = lop_thin_update(mk, dt, a, PART, out);
    if (st == LOP_NOMATCH && !*out && a->op == &lop_op_sum) st = sum_with_lowrank(mk, a, out);
    if (!*out) return st == LOP_OK ? LOP_NOMATCH : st;
    if ((*out)->op == &lop_op_lowrankupdate && lop_nbatch(*out) == 0) {
        const parts p = parts_of(*out);
        if (PART * lop_cols(p.u) <= lop_rows(*out) &&
            (lop_cheap_to_solve(p.base) || p.base->op == &lop_op_inverse))
            return LOP_OK;
    }
    lop_node_unref(*out);
    *out = NULL;
    return LOP_NOMATCH;
}

/* Of B + U M V^H as it is written. */
LOP_BUILD(projection_inverse_thin_sum) {
    const lop_node *all = NULL;
    lop_status st = lop_woodbury_of_sum(mk, m->root->dtype, m->root->child[0]->child[0], &all);
    if (st == LOP_OK) st = of_update(m, mk, all, out);
    lop_node_unref(all);
    return st;
}
