/* solve_normal_equations.c: (R^H R)^-1 b for a Dense R: normal equations, with fallback to QR of
 * R (op_normal_equations.c). Where b is written R^H w the fallback solves the least-squares problem
 * itself. */
#include "builds.h"
#include "planner/chain.h"
#include "ops/shared/factor.h"

/* Is it c R^H R with one factor R, a Dense, and c > 0? Then the symbols, R^H first. */
static bool read_gram(lop_chain *ch, const lop_maker *mk, lop_dtype dt, const lop_node *op,
                      lop_sym *f, lop_coef *c) {
    if (!lop_chain_read(ch, mk->ctx, dt, op, NULL)) return false;
    const lop_chstate *st = &ch->state;
    const lop_chterm *t = &st->term[st->group[0].term[0]];
    if (st->group[0].n != 1 || t->n != 2 || !lop_coef_test(mk->ctx, t->c, LOP_COEF_POSITIVE))
        return false;
    *c = t->c;
    for (int i = 0; i < 2; i++) {
        f[i] = t->f[i];
        if (lop_sym_is_group(f[i]) || lop_sym_inverse(f[i]) ||
            ch->atom[lop_sym_number(f[i])].node->op != &lop_op_dense)
            return false;
    }
    return lop_chain_seen(ch, st, f[1], LOP_H) == f[0];
}

/* w, borrowed, where x is *by times R^H w as the planner writes it. */
static const lop_node *made_with(lop_chain *ch, lop_sym rh, const lop_node *x, lop_coef *by) {
    lop_chterm t = {.c = {.re = 1}};
    *by = lop_coef_const(1, 0);
    if (x->op == &lop_op_scale && x->attr.im == 0) {
        *by = lop_coef_of(&x->attr);
        x = x->child[0];
    }
    bool is = x->op == &lop_op_apply && lop_chain_term(ch, x->child[0], false, &t) && t.n == 1 &&
              t.f[0] == rh && t.c.im == 0 && lop_cols(x->child[1]) == lop_cols(x);
    if (is) *by = lop_coef_times(ch->ctx, *by, t.c);
    return is ? x->child[1] : NULL;
}

/* (R^H R)^-1 b; b NULL: R^H w. */
static lop_status solve_for(const lop_maker *mk, const lop_node *op, lop_dtype dt,
                            const lop_node *b, const lop_node *w, const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}}, adjoint = {.i = {LOP_H, 0, 0, 0}};
    const lop_node *oph = NULL, *square = NULL, *gram = NULL, *r = NULL, *rhw = NULL;
    if (!lop_is_complex(op->dtype)) adjoint.i[0] = LOP_T;
    lop_status st = lop_make1(mk, &lop_op_view, &adjoint, op, &oph);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, oph, op, &square);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &d, square, &gram);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &d, op, &r);
    if (st == LOP_OK && !b) st = lop_make2(mk, &lop_op_apply, NULL, oph, w, &rhw);
    if (st == LOP_OK) {
        const lop_node *child[4] = {gram, b ? b : rhw, r, w};
        st = lop_make(mk, "normal_equations_solve", NULL, b ? 3 : 4, child, NULL, out);
    }
    const lop_node *gone[] = {oph, square, gram, r, rhw};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(solve_normal) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1], *op, *x;
    lop_dtype dt = m->root->dtype;
    lop_chain ch;
    lop_sym f[2];
    lop_coef c, by;
    /* small ones of a batch go all at once, by Cholesky or LU */
    if (lop_nbatch(m->root) > 0 && lop_stack_fits(lop_rows(a), dt)) return LOP_NOMATCH;
    if (!read_gram(&ch, mk, dt, a, f, &c)) return LOP_NOMATCH;
    const lop_node *w = made_with(&ch, f[0], b, &by), *base = ch.atom[lop_sym_number(f[1])].node;
    lop_attr view = {.i = {lop_sym_mode(f[1]), 0, 0, 0}}, over;
    if (!w) by = lop_coef_const(1, 0);
    over = lop_coef_attr(lop_coef_over(mk->ctx, by, c));
    lop_status st = LOP_OK;
    op = lop_node_ref(base);
    if (view.i[0]) {
        lop_node_unref(base);
        st = lop_make1(mk, &lop_op_view, &view, base, &op);
    }
    if (st != LOP_OK) return st;
    st = solve_for(mk, op, dt, w ? NULL : b, w, out);
    lop_node_unref(op);
    if (st != LOP_OK || lop_coef_test(mk->ctx, lop_coef_of(&over), LOP_COEF_ONE)) return st;
    x = *out;
    st = lop_make1(mk, &lop_op_scale, &over, x, out);
    lop_node_unref(x);
    return st;
}
