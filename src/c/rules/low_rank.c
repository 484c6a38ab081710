/* low_rank.c: computed right sides for LowRank and LowRankUpdate: views, dense forms, closing,
 * and a Householder with a tau of its own as one. Their inverses are in low_rank_inverse.c. */
#include "expr/properties.h"
#include "low_rank_parts.h"
#include "thin_sum.h"

static lop_status from_parts(const lop_maker *mk, const parts *p, const lop_node **out) {
    const lop_node *child[4];
    int n = 0;
    if (p->base) child[n++] = p->base;
    child[n++] = p->u;
    child[n++] = p->v;
    if (p->c) child[n++] = p->c;
    return lop_make(mk, p->base ? "lowrankupdate" : "lowrank", NULL, n, child, NULL, out);
}

static void release(parts *p) {
    lop_node_unref(p->base);
    lop_node_unref(p->u);
    lop_node_unref(p->v);
    lop_node_unref(p->c);
}

/* What is one operand stays one, so that U C U^H is known to be Hermitian. */
LOP_BUILD(view_update) {
    parts a = parts_of(m->root->child[0]), b = {0};
    int64_t mode = m->root->attr.i[0];
    bool turn = (mode & LOP_T) != 0, conj = mode == LOP_T || mode == LOP_C;
    lop_status st = seen(mk, mode, a.base, &b.base);
    if (st == LOP_OK) st = seen(mk, conj ? LOP_C : LOP_N, turn ? a.v : a.u, &b.u);
    if (st == LOP_OK && a.u == a.v) b.v = lop_node_ref(b.u);
    if (st == LOP_OK && a.u != a.v) st = seen(mk, conj ? LOP_C : LOP_N, turn ? a.u : a.v, &b.v);
    if (st == LOP_OK) st = seen(mk, mode, a.c, &b.c);
    if (st == LOP_OK) st = from_parts(mk, &b, out);
    release(&b);
    return st;
}

/* That of the update of which it is the view. */
LOP_BUILD(entries_inverse_view) {
    const lop_node *root = m->root, *inverse = NULL, *update = NULL;
    lop_match own = *m;
    own.root = root->child[0]->child[0];
    lop_status st = lop_build_view_update(&own, mk, &update);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_inverse, NULL, update, &inverse);
    const lop_node *child[3] = {inverse, root->child[1], root->child[2]};
    if (st == LOP_OK) st = lop_make_op(mk, root->op, &root->attr, 3, child, NULL, out);
    lop_node_unref(update);
    lop_node_unref(inverse);
    return st;
}

/* apply, todense, diagonal, element: that of base plus that of the rest. */
LOP_BUILD(update_value) {
    parts all = parts_of(m->root->child[0]), rest = all;
    const lop_node *low = NULL, *x = NULL, *one = NULL, *two = NULL;
    lop_attr d = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    bool apply = m->root->op == &lop_op_apply;
    rest.base = NULL;
    lop_status st = from_parts(mk, &rest, &low);
    if (st == LOP_OK && apply) st = lop_make1(mk, &lop_op_cast, &d, m->root->child[1], &x);
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        const lop_node *child[2] = {i ? low : all.base, x};
        st = lop_make(mk, m->root->op->name, &m->root->attr, apply ? 2 : 1, child, NULL,
                      i ? &two : &one);
    }
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, one, two, out);
    lop_node_unref(low);
    lop_node_unref(x);
    lop_node_unref(one);
    lop_node_unref(two);
    return st;
}

/* -- closing */

/* c A, closed where it is of one kind, as one multiple where A is one. NULL stays. */
static lop_status multiple(const lop_maker *mk, const lop_attr *c, const lop_node *a,
                           const lop_node **out) {
    const lop_node *written = NULL, *better = NULL;
    if (!a) return LOP_OK;
    lop_status st = lop_make1(mk, &lop_op_scaled, c, a, &written);
    if (st != LOP_OK) return st;
    if (a->op == &lop_op_scaled) {
        const lop_coef both = lop_coef_times(mk->ctx, lop_coef_of(c), lop_coef_of(&a->attr));
        const lop_attr attr = lop_coef_attr(both);
        if (lop_coef_test(mk->ctx, both, LOP_COEF_FINITE))
            st = lop_make1(mk, &lop_op_scaled, &attr, a->child[0], &better);
    } else {
        st = lop_close_once(mk, written, &better);
    }
    const bool same =
        st == LOP_OK && better && better->dtype == written->dtype && better->weak == written->weak;
    if (st == LOP_OK || st == LOP_NOMATCH) {
        *out = lop_node_ref(same ? better : written);
        st = LOP_OK;
    }
    lop_node_unref(written);
    lop_node_unref(better);
    return st;
}

/* c (B + U C V^H): the factor goes to the middle, which is left out where it is one again. */
LOP_BUILD(scaled_lowrank) {
    parts a = parts_of(m->root->child[0]), b = {.u = lop_node_ref(a.u), .v = lop_node_ref(a.v)};
    const lop_attr *c = &m->root->attr;
    const lop_node *eye = NULL, *mid = NULL, *without = NULL;
    lop_node like = {.shape = {.ndim = 2, .dim = {lop_cols(a.u), lop_cols(a.u)}},
                     .dtype = LOP_f64,
                     .weak = LOP_WEAK,
                     .core = 2};
    lop_status st = LOP_OK;
    if (!a.c) st = lop_make(mk, "identity", NULL, 0, NULL, &like, &eye);
    if (st == LOP_OK) st = multiple(mk, c, a.c ? a.c : eye, &mid);
    if (st == LOP_OK) st = multiple(mk, c, a.base, &b.base);
    const bool one = st == LOP_OK && lop_cols(a.u) == lop_cols(a.v) &&
                     (mid->op == &lop_op_identity ||
                      (mid->op == &lop_op_scaled && mid->child[0]->op == &lop_op_identity &&
                       lop_coef_test(mk->ctx, lop_coef_of(&mid->attr), LOP_COEF_ONE)));
    if (one) st = from_parts(mk, &b, &without);
    const bool same = without && without->dtype == m->root->dtype && without->weak == m->root->weak;
    b.c = mid;
    if (st == LOP_OK && same) *out = lop_node_ref(without);
    if (st == LOP_OK && !same) st = from_parts(mk, &b, out);
    lop_node_unref(eye);
    lop_node_unref(without);
    release(&b);
    return st;
}

static lop_status side_by_side(const lop_maker *mk, const lop_node *a, const lop_node *b,
                               const lop_node **out) {
    lop_attr row = {.i = {1, 2, 0, 0}};
    return lop_make2(mk, &lop_op_block, &row, a, b, out);
}

/* The middle, or an identity in its place: owned. */
static lop_status middle(const lop_maker *mk, const parts *p, const lop_node **out) {
    lop_node like = {.shape = {.ndim = 2, .dim = {lop_cols(p->u), lop_cols(p->u)}},
                     .dtype = LOP_f64,
                     .weak = LOP_WEAK,
                     .core = 2};
    *out = lop_node_ref(p->c);
    return p->c ? LOP_OK : lop_make(mk, "identity", NULL, 0, NULL, &like, out);
}

/* Sums of lowrank and lowrankupdate (one of them at most): columns side by side. */
LOP_BUILD(lowrank_plus) {
    parts a = parts_of(m->root->child[0]), b = parts_of(m->root->child[1]);
    parts all = {.base = lop_node_ref(a.base ? a.base : b.base)};
    const lop_node *mid[2] = {NULL, NULL};
    lop_status st = a.base && b.base ? LOP_NOMATCH : side_by_side(mk, a.u, b.u, &all.u);
    if (st == LOP_OK && a.u == a.v && b.u == b.v) all.v = lop_node_ref(all.u);
    if (st == LOP_OK && !all.v) st = side_by_side(mk, a.v, b.v, &all.v);
    if (st == LOP_OK && (a.c || b.c)) {
        st = middle(mk, &a, &mid[0]);
        if (st == LOP_OK) st = middle(mk, &b, &mid[1]);
        if (st == LOP_OK) st = lop_make(mk, "blockdiag", NULL, 2, mid, NULL, &all.c);
    }
    if (st == LOP_OK) st = from_parts(mk, &all, out);
    lop_node_unref(mid[0]);
    lop_node_unref(mid[1]);
    release(&all);
    return st;
}

/* base + lowrank, in either order: the sum is the root, or what the root or its inverse acts on. */
LOP_BUILD(plus_lowrank) {
    bool acts = m->root->op != &lop_op_sum,
         inverse = acts && m->root->child[0]->op == &lop_op_inverse;
    const lop_node *sum = acts ? m->root->child[0] : m->root, *update = NULL, *child[2] = {NULL};
    if (inverse) sum = sum->child[0];
    bool last = sum->child[1]->op == &lop_op_lowrank;
    parts p = parts_of(sum->child[last ? 1 : 0]);
    p.base = sum->child[last ? 0 : 1];
    lop_status st = from_parts(mk, &p, acts ? &update : out);
    if (st == LOP_OK && inverse) {
        const lop_node *a = update;
        st = lop_make1(mk, &lop_op_inverse, NULL, a, &update);
        lop_node_unref(a);
    }
    if (st != LOP_OK || !acts) return st;
    child[0] = update;
    if (m->root->n > 1) child[1] = m->root->child[1];
    st = lop_make(mk, m->root->op->name, &m->root->attr, m->root->n, child, NULL, out);
    lop_node_unref(update);
    return st;
}

lop_status lop_update_of(const lop_maker *mk, const lop_node *base, const lop_node *low,
                         const lop_node **out) {
    parts p = parts_of(low);
    const lop_node *sum = NULL;
    lop_status st = LOP_OK;
    if (base && p.base) st = lop_make2(mk, &lop_op_sum, NULL, base, p.base, &sum);
    p.base = sum ? sum : base ? base : p.base;
    if (st == LOP_OK) st = from_parts(mk, &p, out);
    lop_node_unref(sum);
    return st;
}

/* -- I - tau v v^H with a tau of its own */

/* v as a column. Owned. */
static lop_status column_of(const lop_maker *mk, const lop_node *v, const lop_node **out) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lop_cols(v), 1}}, .dtype = v->dtype, .core = 2};
    const lop_node *d = NULL, *ones = NULL, *array = NULL;
    lop_status st = lop_make1(mk, &lop_op_diag, NULL, v, &d);
    if (st == LOP_OK) st = lop_make(mk, "ones", NULL, 0, NULL, &like, &ones);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, d, ones, &array);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, array, out);
    lop_node_unref(d);
    lop_node_unref(ones);
    lop_node_unref(array);
    return st;
}

static lop_status update_of_reflection(const lop_maker *mk, const lop_node *h,
                                       const lop_node **out) {
    const lop_attr once = {.i = {1, 0, 0, 0}}, minus = lop_attr_coef(-1, 0);
    const lop_node *v = h->child[0], *eye = NULL, *u = NULL, *tau = NULL, *c = NULL, *less = NULL;
    if (lop_nbatch(h) > 0 || h->weak || v->weak || h->child[1]->weak || !lop_is_blas(v->dtype) ||
        !lop_is_blas(h->child[1]->dtype))
        return LOP_NOMATCH;
    lop_status st = lop_thin_identity(mk, lop_rows(h), &eye);
    if (st == LOP_OK) st = column_of(mk, v, &u);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_repeat, &once, h->child[1], &tau);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diag, NULL, tau, &c);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaled, &minus, c, &less);
    const lop_node *child[4] = {eye, u, u, less};
    if (st == LOP_OK) st = lop_make(mk, "lowrankupdate", NULL, 4, child, NULL, out);
    const lop_node *gone[] = {eye, u, tau, c, less};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    if (st == LOP_OK && ((*out)->dtype != h->dtype || (*out)->weak)) {
        lop_node_unref(*out);
        *out = NULL;
        st = LOP_NOMATCH;
    }
    return st;
}

/* What the root asks of it, or of its inverse. */
LOP_BUILD(householder_update) {
    const lop_node *root = m->root, *inner = root->child[0], *update = NULL, *inverse = NULL;
    const bool below = inner->op == &lop_op_inverse;
    lop_status st = update_of_reflection(mk, below ? inner->child[0] : inner, &update);
    if (st == LOP_OK && below) st = lop_make1(mk, &lop_op_inverse, NULL, update, &inverse);
    const lop_node *child[2] = {below ? inverse : update, root->n > 1 ? root->child[1] : NULL};
    if (st == LOP_OK) st = lop_make(mk, root->op->name, &root->attr, root->n, child, NULL, out);
    lop_node_unref(update);
    lop_node_unref(inverse);
    return st;
}
