/* solve_two_krons.c: solves and determinants of S = k A (x) C + l B (x) D, the generalized
 * Sylvester equation k A X C^T + l B X D^T = F, for solve_eigenbasis.c, which tries the pencils'
 * eigenvectors before. What is written with arrays that are identities, `Kron(np.eye(n), A) +
 * Kron(B, np.eye(m))`, comes here too, as a rule does not read entries:
 *
 *   S = (A (x) D) (l A^-1 B (x) I + k I (x) D^-1 C) = (B (x) C) (k B^-1 A (x) I + l I (x) C^-1 D),
 *
 * a Kronecker sum, solved by Schur forms (op_kronsum_schur.c; Chu 1987). Each is as good as what
 * is inverted in it: the residual is checked, the second is tried where the first fails, and then
 * the dense form. LAPACK's QZ is no way round: it has no solver for one such equation. Cost: two
 * Schur forms, 25 n_i^3, two LU forms, kept, and 5 m n (m + n) a column. */
#include "sum_of_krons.h"

bool lop_two_krons_read(const lop_kron_sum *s) {
    return s->n == 2 && s->nt == 2 && !s->eye && lop_kron_sum_pays(s, LOP_COST_SCHUR_FORM);
}

/* One of the two ways: term `t` keeps its first factor, the other its second. Factors that are all
 * seen by one view are taken without it, so that every view has the same forms. */
typedef struct way {
    const lop_kron_sum *s;
    int view;
    const lop_node *outer[2]; /* what is inverted, and */
    const lop_node *inner[2]; /* what the Schur forms are of: owned, dense forms */
    lop_status st;
} way;

static const lop_node *dense_of(const way *w, int t, int i, lop_status *st) {
    const lop_kron_sum *s = w->s;
    const lop_kron_factor *f = &s->t[t].f[i];
    const int64_t n = s->t[t].size[i];
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, n}}, .dtype = s->dt, .core = 2};
    const int mode = w->view ? LOP_N : f->mode;
    const lop_attr view = {.i = {mode, 0, 0, 0}}, d = {.i = {0, 0, 0, (int64_t)s->dt + 1}};
    const lop_node *seen = NULL, *out = NULL;
    if (*st == LOP_OK && f->node && mode)
        *st = lop_make1(s->mk, &lop_op_view, &view, f->node, &seen);
    if (*st == LOP_OK && !f->node)
        *st = lop_make(s->mk, "eye", NULL, 0, NULL, &like, &out);
    else if (*st == LOP_OK)
        *st = lop_make1(s->mk, &lop_op_todense, &d, seen ? seen : f->node, &out);
    lop_node_unref(seen);
    return out;
}

/* c A^-1 B. Owned. */
static const lop_node *quotient(const lop_kron_sum *s, const lop_node *a, const lop_node *b,
                                lop_coef c, lop_status *st) {
    const lop_attr by = lop_coef_attr(c);
    const lop_node *q = NULL, *out = NULL;
    if (*st == LOP_OK) *st = lop_make2(s->mk, &lop_op_lu_solve, NULL, a, b, &q);
    if (*st != LOP_OK || lop_coef_test(s->mk->ctx, c, LOP_COEF_ONE)) return q;
    *st = lop_make1(s->mk, &lop_op_scale, &by, q, &out);
    lop_node_unref(q);
    return out;
}

static way open_way(const lop_kron_sum *s, int t, int view) {
    way w = {.s = s, .view = view, .st = LOP_OK};
    const bool conj = (w.view & LOP_C) != 0;
    for (int i = 0; i < 2; i++) {
        const int own = i == 0 ? t : 1 - t, other = 1 - own;
        const lop_coef c = s->t[other].c;
        w.outer[i] = dense_of(&w, own, i, &w.st);
        const lop_node *b = dense_of(&w, other, i, &w.st);
        w.inner[i] = quotient(s, w.outer[i], b, conj ? lop_coef_conj(s->mk->ctx, c) : c, &w.st);
        lop_node_unref(b);
    }
    return w;
}

static void close_way(way *w) {
    for (int i = 0; i < 2; i++) {
        lop_node_unref(w->outer[i]);
        lop_node_unref(w->inner[i]);
    }
}

/* (outer^-1 (x) outer^-1) b, under the view. */
static lop_status outwards(const way *w, const lop_node *b, const lop_node **out) {
    const lop_maker *mk = w->s->mk;
    const lop_attr view = {.i = {w->view, 0, 0, 0}};
    const lop_node *f[2] = {NULL, NULL}, *kron = NULL;
    lop_status st = w->st;
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        const lop_node *a = NULL, *inverse = NULL;
        st = lop_make1(mk, &lop_op_dense, NULL, w->outer[i], &a);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, a, &inverse);
        if (st == LOP_OK && w->view)
            st = lop_make1(mk, &lop_op_view, &view, inverse, &f[i]);
        else if (st == LOP_OK)
            f[i] = lop_node_ref(inverse);
        lop_node_unref(a);
        lop_node_unref(inverse);
    }
    if (st == LOP_OK) st = lop_make(mk, "kron", NULL, 2, f, NULL, &kron);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, kron, b, out);
    const lop_node *gone[] = {f[0], f[1], kron};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The Kronecker sum's solution, under the view. */
static lop_status inwards(const way *w, const lop_node *b, const lop_node **out) {
    const int64_t turn = (w->view & LOP_T) != 0;
    const lop_attr how = {.i = {turn, turn, w->view == LOP_T || w->view == LOP_C, 0}};
    const lop_node *child[3] = {w->inner[0], w->inner[1], b};
    return lop_make_op(w->s->mk, &lop_op_schur_solve, &how, 3, child, NULL, out);
}

/* What is outside comes first, of transposes last. */
static lop_status solved(const way *w, const lop_node *b, const lop_node **out) {
    const lop_node *y = NULL;
    const bool turned = (w->view & LOP_T) != 0;
    lop_status st = w->st;
    if (st == LOP_OK) st = turned ? inwards(w, b, &y) : outwards(w, b, &y);
    if (st == LOP_OK) st = turned ? outwards(w, y, out) : inwards(w, y, out);
    lop_node_unref(y);
    return st;
}

/* det(outer)^(the other's rows) each, times the Kronecker sum's. */
static lop_status det_of(const way *w, const lop_node **out) {
    const lop_maker *mk = w->s->mk;
    const lop_node *all = NULL;
    lop_status st = w->st;
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_schur_det, NULL, 2, w->inner, NULL, &all);
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        const lop_attr power = {.i = {lop_rows(w->outer[1 - i]), 0, 0, 0}};
        const lop_node *one = NULL, *raised = NULL, *both = NULL;
        st = lop_make1(mk, &lop_op_lu_det, NULL, w->outer[i], &one);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_pow_det, &power, one, &raised);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, all, raised, &both);
        const lop_node *gone[] = {one, raised, all};
        for (size_t j = 0; j < sizeof gone / sizeof gone[0]; j++) lop_node_unref(gone[j]);
        all = both;
    }
    *out = all;
    return st;
}

/* What way w finds where it is sound, else `alt`, also where a factor fails. */
static lop_status else_alt(const way *w, const lop_check *k, const lop_node *b, const lop_node *alt,
                           const lop_node **out) {
    const lop_maker *mk = w->s->mk;
    const lop_node *x = NULL, *det = NULL, *r = NULL;
    lop_status st = solved(w, b ? b : k->v, &x);
    if (st == LOP_OK && b) {
        st = lop_check_instead(k, x, b, alt, out);
    } else if (st == LOP_OK) {
        st = det_of(w, &det);
        if (st == LOP_OK) st = lop_check_residual(k, x, k->v, &r);
        const lop_node *child[9] = {det, x, r, k->v, k->q, k->u, x, k->v, alt};
        if (st == LOP_OK) st = lop_make_op(mk, &lop_op_checked_det, NULL, 9, child, NULL, out);
    }
    const lop_node *gone[] = {x, det, r};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* Of what way t inverts. */
static int identities(const lop_kron_sum *s, int t) {
    return (s->t[t].f[0].node == NULL) + (s->t[1 - t].f[1].node == NULL);
}

lop_status lop_two_krons_build(const lop_kron_sum *s, const lop_node *b, const lop_node **out) {
    lop_check k = {.mk = s->mk, .a = s->sum};
    /* a determinant's factors are not conjugated afterwards */
    const int seen = lop_kron_sum_view(s), view = b || !(seen & LOP_C) ? seen : LOP_N;
    const lop_node *alt = NULL;
    const int first = identities(s, 1) > identities(s, 0); /* the way that is tried first */
    lop_status st = lop_kron_sum_directly(s, b, &alt);
    if (st == LOP_OK) st = lop_check_open(&k, s->dt);
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        way w = open_way(s, i == 0 ? 1 - first : first, view);
        const lop_node *found = NULL;
        st = else_alt(&w, &k, b, alt, &found);
        close_way(&w);
        lop_node_unref(alt);
        alt = found;
    }
    *out = alt;
    lop_check_close(&k);
    return st;
}
