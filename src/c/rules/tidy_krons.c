/* tidy_krons.c: products and sums of Krons that are one Kron, however their factors are cut.
 *
 *     (A (x) I) (I (x) B (x) I) (I (x) C)     ->  A (x) B (x) C
 *     (A (x) B) (I (x) B^-1 + A^-1 (x) I)     ->  A (x) I + I (x) B
 *     A (x) B + A (x) C                       ->  A (x) (B + C)
 *     I (x) B + c I                           ->  I (x) (B + c I)
 *
 * Factors are flattened, identities side by side are one, and are split where the other Kron has a
 * cut. A sum is multiplied out only where no factor has to be multiplied by another: one of the two
 * is an identity, or an inverse of what is known to have one. What is read is squares without
 * batch. Products and sums keep their componentwise bound n u |A| |B|. */
#include "builds.h"
#include "expr/coefficients.h"
#include "expr/properties.h"
#include "thin_sum.h"
#include "tidy_krons.h"

enum { FACTORS = 12, TERMS = 8, DEPTH = 6, ALIKE = 8, SMALL = 16 };

typedef struct row {
    const lop_node *f[FACTORS]; /* owned */
    int n;
} row;

static void drop(row *r) {
    for (int i = 0; i < r->n; i++) lop_node_unref(r->f[i]);
    r->n = 0;
}
static bool is_eye(const lop_node *a) { return a->op == &lop_op_identity; }
static bool is_plain(const lop_node *a) {
    return a->shape.ndim == 2 && lop_rows(a) > 0 && lop_cols(a) > 0;
}

/* One factor more. Takes over f. */
static lop_status put(const lop_maker *mk, row *r, const lop_node *f) {
    if (r->n > 0 && is_eye(f) && is_eye(r->f[r->n - 1])) {
        const int64_t rows = lop_rows(f) * lop_rows(r->f[r->n - 1]);
        lop_node_unref(f);
        lop_node_unref(r->f[--r->n]);
        f = NULL;
        lop_status st = lop_thin_identity(mk, rows, &f);
        if (st != LOP_OK) return st;
    }
    if (r->n == FACTORS) {
        lop_node_unref(f);
        return LOP_NOMATCH;
    }
    r->f[r->n++] = f;
    return LOP_OK;
}

/* The factors of a Kron of Krons. NOMATCH: too many, or a batch. */
static lop_status flatten(const lop_maker *mk, const lop_node *a, int depth, row *r) {
    lop_status st = is_plain(a) && depth > 0 ? LOP_OK : LOP_NOMATCH;
    if (a->op != &lop_op_kron) return st == LOP_OK ? put(mk, r, lop_node_ref(a)) : st;
    for (int i = 0; st == LOP_OK && i < a->n; i++) st = flatten(mk, a->child[i], depth - 1, r);
    return st;
}

/* The Kron of them. */
static lop_status one_kron(const lop_maker *mk, const row *r, const lop_node **out) {
    return lop_kron_of(mk, r->n, r->f, out);
}

/* Is one the inverse of the other, which is known to have one? */
static bool undoes(const lop_node *a, const lop_node *b) {
    return a->op == &lop_op_inverse && lop_node_alike(a->child[0], b, ALIKE) &&
           lop_infer_regular(b) == LOP_TRUE;
}

/* A B of one place, where nothing is multiplied: one is an identity, or they cancel. NOMATCH: they
 * do not. Owned. */
static lop_status freely(const lop_maker *mk, const lop_node *a, const lop_node *b,
                         const lop_node **out) {
    const lop_node *stays = is_eye(a) ? b : is_eye(b) ? a : NULL;
    if (!stays && a->op == &lop_op_prod && (undoes(a->child[1], b) || undoes(b, a->child[1])))
        stays = a->child[0];
    if (!stays && b->op == &lop_op_prod && (undoes(a, b->child[0]) || undoes(b->child[0], a)))
        stays = b->child[1];
    if (!stays && (undoes(a, b) || undoes(b, a))) return lop_thin_identity(mk, lop_rows(a), out);
    if (!stays) return LOP_NOMATCH;
    *out = lop_node_ref(stays);
    return LOP_OK;
}

/* The next piece of rows `size` of a factor: itself, or a part of an identity. */
static lop_status piece(const lop_maker *mk, const lop_node *f, int64_t size,
                        const lop_node **out) {
    if (is_eye(f)) return lop_thin_identity(mk, size, out);
    *out = lop_node_ref(f);
    return LOP_OK;
}

/* Place by place; `free`: no factor is multiplied by another. */
static lop_status side_by_side(const lop_maker *mk, const row *a, const row *b, bool free,
                               row *out) {
    int64_t left[2] = {0, 0};
    lop_status st = LOP_OK;
    for (int i = 0, j = 0; st == LOP_OK && (i < a->n || j < b->n);) {
        if (i == a->n || j == b->n) return LOP_NOMATCH;
        if (!lop_is_square(a->f[i]) || !lop_is_square(b->f[j])) return LOP_NOMATCH;
        if (left[0] == 0) left[0] = lop_rows(a->f[i]);
        if (left[1] == 0) left[1] = lop_rows(b->f[j]);
        const int64_t size = left[0] < left[1] ? left[0] : left[1];
        if ((left[0] > size && (!is_eye(a->f[i]) || left[0] % size)) ||
            (left[1] > size && (!is_eye(b->f[j]) || left[1] % size)))
            return LOP_NOMATCH;
        const lop_node *x = NULL, *y = NULL, *one = NULL;
        st = piece(mk, a->f[i], size, &x);
        if (st == LOP_OK) st = piece(mk, b->f[j], size, &y);
        if (st == LOP_OK) st = freely(mk, x, y, &one);
        if (st == LOP_NOMATCH && !free) st = lop_make2(mk, &lop_op_prod, NULL, x, y, &one);
        lop_node_unref(x);
        lop_node_unref(y);
        if (st == LOP_OK) st = put(mk, out, one);
        left[0] = left[0] > size ? left[0] / size : 0;
        left[1] = left[1] > size ? left[1] / size : 0;
        if (left[0] == 0) i++;
        if (left[1] == 0) j++;
    }
    return st;
}

static lop_status met(const lop_maker *mk, const lop_node *a, const lop_node *b, bool free,
                      const lop_node **out) {
    row x = {.n = 0}, y = {.n = 0}, both = {.n = 0};
    lop_status st = flatten(mk, a, DEPTH, &x);
    if (st == LOP_OK) st = flatten(mk, b, DEPTH, &y);
    if (st == LOP_OK) st = side_by_side(mk, &x, &y, free, &both);
    if (st == LOP_OK) st = one_kron(mk, &both, out);
    drop(&x);
    drop(&y);
    drop(&both);
    return st;
}

/* c A with A peeled off; the identity counts as a Kron of its size. */
static const lop_node *peeled(const lop_node *a, lop_coef *c) {
    *c = lop_coef_const(1, 0);
    if (a->op != &lop_op_scaled) return a;
    *c = lop_coef_of(&a->attr);
    return a->child[0];
}

/* K (sum of terms), or the sum times K, term by term. */
static lop_status multiplied_out(const lop_maker *mk, const lop_node *k, const lop_node *sum,
                                 bool first, const lop_node **out) {
    const lop_node *term[TERMS], *all = NULL;
    const int n = lop_terms_of(sum, term, TERMS);
    lop_status st = n > 1 ? LOP_OK : LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        const lop_node *one = NULL, *by = NULL;
        lop_coef c;
        const lop_node *a = peeled(term[i], &c);
        if (a->op != &lop_op_kron && !is_eye(a))
            st = LOP_NOMATCH;
        else
            st = met(mk, first ? k : a, first ? a : k, true, &one);
        if (st == LOP_OK) st = lop_thin_multiple(mk, c, one, &by);
        if (st == LOP_OK) st = lop_plus(mk, by, &all);
        lop_node_unref(one);
        lop_node_unref(by);
    }
    if (st == LOP_OK) *out = lop_node_ref(all);
    lop_node_unref(all);
    return st;
}

/* A (+) B (+) C as A (x) I + I (x) B (x) I + I (x) C. Owned. */
static lop_status opened(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_node *all = NULL;
    lop_status st = is_plain(a) && a->n <= FACTORS && a->n > 1 ? LOP_OK : LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < a->n; i++) {
        row r = {.n = 0};
        const lop_node *term = NULL;
        for (int j = 0; st == LOP_OK && j < a->n; j++) {
            const lop_node *f = lop_node_ref(a->child[j]);
            if (j != i) {
                lop_node_unref(f);
                f = NULL;
                st = lop_thin_identity(mk, lop_rows(a->child[j]), &f);
            }
            if (st == LOP_OK) r.f[r.n++] = f;
        }
        if (st == LOP_OK) st = one_kron(mk, &r, &term);
        if (st == LOP_OK) st = lop_plus(mk, term, &all);
        lop_node_unref(term);
        drop(&r);
    }
    if (st == LOP_OK && all->dtype == a->dtype)
        *out = lop_node_ref(all);
    else if (st == LOP_OK)
        st = LOP_NOMATCH;
    lop_node_unref(all);
    return st;
}

LOP_BUILD(dense_kronsum) {
    const lop_node *sum = NULL;
    if (!lop_is_blas(m->root->dtype) || m->root->child[0]->n != 2) return LOP_NOMATCH;
    lop_status st = opened(mk, m->root->child[0], &sum);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &m->root->attr, sum, out);
    lop_node_unref(sum);
    return st;
}

/* K (A (+) B), or the other way round. */
static lop_status with_kronsum(const lop_maker *mk, const lop_node *k, const lop_node *kronsum,
                               bool first, const lop_node **out) {
    const lop_node *sum = NULL;
    lop_status st = opened(mk, kronsum, &sum);
    if (st == LOP_OK) st = multiplied_out(mk, k, sum, first, out);
    lop_node_unref(sum);
    return st;
}

lop_status lop_krons_meet(const lop_maker *mk, const lop_node *a, const lop_node *b,
                          const lop_node **out) {
    if (a->op == &lop_op_kron && b->op == &lop_op_kron) return met(mk, a, b, false, out);
    if (a->op == &lop_op_kron && b->op == &lop_op_sum) return multiplied_out(mk, a, b, true, out);
    if (a->op == &lop_op_sum && b->op == &lop_op_kron) return multiplied_out(mk, b, a, false, out);
    if (a->op == &lop_op_kron && b->op == &lop_op_kronsum) return with_kronsum(mk, a, b, true, out);
    if (a->op == &lop_op_kronsum && b->op == &lop_op_kron)
        return with_kronsum(mk, b, a, false, out);
    return LOP_NOMATCH;
}

/* c F + d G as one factor. */
static lop_status both_of(const lop_maker *mk, lop_coef c, const lop_node *f, lop_coef d,
                          const lop_node *g, const lop_node **out) {
    const lop_node *x = NULL, *y = NULL;
    lop_status st = lop_thin_multiple(mk, c, f, &x);
    if (st == LOP_OK) st = lop_thin_multiple(mk, d, g, &y);
    if (st == LOP_OK) st = lop_sum_closed(mk, x, y, out);
    lop_node_unref(x);
    lop_node_unref(y);
    return st;
}

/* The one place in which they differ; -1: there is none, or more. */
static int differs_at(const row *a, const row *b) {
    int at = -1, many = 0;
    if (a->n != b->n) return -1;
    for (int i = 0; i < a->n; i++) {
        if (!lop_shape_equal(&a->f[i]->shape, &b->f[i]->shape)) return -1;
        if (lop_node_alike(a->f[i], b->f[i], ALIKE)) continue;
        at = i;
        many++;
    }
    return many == 1 ? at : -1;
}

/* I of the places of a, one of which is no identity. */
static lop_status cut_as(const lop_maker *mk, const row *a, row *out) {
    int others = 0;
    lop_status st = LOP_OK;
    for (int i = 0; i < a->n; i++) others += !is_eye(a->f[i]);
    if (others != 1) return LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < a->n; i++) {
        if (!lop_is_square(a->f[i])) return LOP_NOMATCH;
        st = lop_thin_identity(mk, lop_rows(a->f[i]), &out->f[out->n]);
        if (st == LOP_OK) out->n++; /* side by side they stay apart here */
    }
    return st;
}

/* Small matrices at one place, two of perhaps many: kron_places.c adds them all up at once. */
static bool of_one_place(const row *a, const row *b, int at) {
    for (int i = 0; i < a->n; i++)
        if (i != at && !is_eye(a->f[i])) return false;
    const lop_node *x = a->f[at], *y = b->f[at];
    while (x->op == &lop_op_view || x->op == &lop_op_scaled) x = x->child[0];
    while (y->op == &lop_op_view || y->op == &lop_op_scaled) y = y->child[0];
    return x->op == &lop_op_dense && y->op == &lop_op_dense && lop_rows(x) <= SMALL;
}

lop_status lop_krons_add(const lop_maker *mk, const lop_node *a, const lop_node *b,
                         const lop_node **out) {
    lop_coef c, d;
    row x = {.n = 0}, y = {.n = 0};
    const lop_node *one = NULL;
    a = peeled(a, &c);
    b = peeled(b, &d);
    const bool krons = a->op == &lop_op_kron && b->op == &lop_op_kron;
    if (!krons && !(a->op == &lop_op_kron && is_eye(b)) && !(b->op == &lop_op_kron && is_eye(a)))
        return LOP_NOMATCH;
    lop_status st = is_eye(a) ? LOP_OK : flatten(mk, a, DEPTH, &x);
    if (st == LOP_OK && !is_eye(b)) st = flatten(mk, b, DEPTH, &y);
    if (st == LOP_OK && is_eye(a)) st = is_plain(a) ? cut_as(mk, &y, &x) : LOP_NOMATCH;
    if (st == LOP_OK && is_eye(b)) st = is_plain(b) ? cut_as(mk, &x, &y) : LOP_NOMATCH;
    const int at = st == LOP_OK ? differs_at(&x, &y) : -1;
    if (st == LOP_OK && (at < 0 || of_one_place(&x, &y, at))) st = LOP_NOMATCH;
    if (st == LOP_OK) st = both_of(mk, c, x.f[at], d, y.f[at], &one);
    if (st == LOP_OK) {
        lop_node_unref(x.f[at]);
        x.f[at] = one;
        st = one_kron(mk, &x, out);
    }
    drop(&x);
    drop(&y);
    return st;
}

/* B + U V^H, U and V Krons cut alike: with U V^H as one Kron, where B is one with it. */
lop_status lop_krons_update(const lop_maker *mk, const lop_node *base, const lop_node *u,
                            const lop_node *v, const lop_node **out) {
    const lop_attr h = {.i = {LOP_H, 0, 0, 0}};
    const lop_node *low = NULL;
    row all = {.n = 0};
    if (u->op != &lop_op_kron || v->op != &lop_op_kron || u->n != v->n || u->n > FACTORS ||
        !is_plain(u) || !is_plain(v))
        return LOP_NOMATCH;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < u->n; i++) {
        const lop_node *x = u->child[i], *y = v->child[i], *seen = NULL, *one = NULL;
        if (lop_rows(x) != lop_rows(y) || lop_cols(x) != lop_cols(y)) st = LOP_NOMATCH;
        if (st == LOP_OK && is_eye(x) && is_eye(y)) {
            all.f[all.n++] = lop_node_ref(x);
            continue;
        }
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_view, &h, y, &seen);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, x, seen, &one);
        if (st == LOP_OK) all.f[all.n++] = one;
        lop_node_unref(seen);
    }
    if (st == LOP_OK) st = one_kron(mk, &all, &low);
    if (st == LOP_OK) st = lop_krons_add(mk, base, low, out);
    lop_node_unref(low);
    drop(&all);
    return st;
}
