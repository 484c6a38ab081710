/* tidy.c: what an expression is, whatever the order and the nesting it was written in.
 *
 *     (T + A) + c I        ->  (T + c I) + A        two terms that close to one kind do
 *     (c - 1) I + I        ->  c I                  like terms
 *     L - (A - A)          ->  L                    which may leave nothing
 *     I B, c (I B)         ->  B, c B               unit matrices as factors
 *     (c H^T) (D H)        ->  c ((H^T D) H)        two factors that close to one kind do
 *     A X + A Y            ->  A (X + Y)            products with a factor in common
 *     (I I^T) (x) B        ->  I (x) B
 *
 * When an expression is built, a closing rule sees two neighbours. Here, before an action is taken
 * apart, the terms of a sum are tried in pairs, in order of first appearance, and the factors of a
 * product with the next one. At most MOST_TERMS of them and so many levels: what is longer stays as
 * written. Integers stay as written: they wrap where they stand. Multiples of factors go to the
 * front where the planner's may (LOP_COEF_MODEST), and only where factors meet that close. */
#include "builds.h"
#include "expr/coefficients.h"
#include "expr/properties.h"
#include "tidy_krons.h"
#include "tidy_products.h"

enum { MOST_TERMS = 12, LEVELS = 8, ALIKE = 8 };

typedef struct terms {
    const lop_node *term[MOST_TERMS]; /* owned */
    int n;
    bool changed, products; /* two products became one */
} terms;

static lop_status tidy(const lop_maker *mk, const lop_node *a, int depth, const lop_node **out);

static const lop_node *less_multiple(const lop_node *a) {
    return a->op == &lop_op_scaled ? a->child[0] : a;
}

/* After an error nothing is handed out. */
static lop_status given_up(lop_status st, const lop_node **out) {
    if (st == LOP_OK) return st;
    lop_node_unref(*out);
    *out = NULL;
    return st;
}

/* The node closed, where a rule does so; takes over *a. */
static lop_status closed(const lop_maker *mk, const lop_node **a) {
    const lop_node *better = NULL;
    lop_status st = lop_close_once(mk, *a, &better);
    if (st == LOP_NOMATCH) return LOP_OK;
    if (st != LOP_OK) return st;
    if (better->dtype != (*a)->dtype || better->weak != (*a)->weak ||
        !lop_shape_equal(&better->shape, &(*a)->shape)) {
        lop_node_unref(better);
        return LOP_OK;
    }
    lop_node_unref(*a);
    *a = better;
    return LOP_OK;
}

/* A unit of a product or a sum, by its kind, so that what stays is the whole. */
static bool adds_nothing(const lop_node *whole, const lop_node *unit, const lop_op *kind,
                         const lop_node *stays) {
    return unit->op == kind && whole->dtype == stays->dtype && whole->weak == stays->weak &&
           lop_shape_equal(&whole->shape, &stays->shape);
}

/* A multiple by one, 2 (A / 2). */
static bool is_one(const lop_node *a) {
    return a->dtype == a->child[0]->dtype && a->weak == a->child[0]->weak &&
           lop_coef_test(a->ctx, lop_coef_of(&a->attr), LOP_COEF_ONE);
}

/* c (d A) as one multiple, which it is where it is written so; takes over *a. */
static lop_status merged(const lop_maker *mk, const lop_node **a) {
    const lop_node *outer = *a, *inner = outer->child[0], *one = NULL;
    if (outer->op != &lop_op_scaled || inner->op != &lop_op_scaled) return LOP_OK;
    const lop_coef both =
        lop_coef_times(mk->ctx, lop_coef_of(&outer->attr), lop_coef_of(&inner->attr));
    const lop_attr by = lop_coef_attr(both);
    if (!lop_coef_test(mk->ctx, both, LOP_COEF_MODEST)) return LOP_OK;
    lop_status st = LOP_OK;
    if (lop_coef_test(mk->ctx, both, LOP_COEF_ONE))
        one = lop_node_ref(inner->child[0]);
    else
        st = lop_make1(mk, &lop_op_scaled, &by, inner->child[0], &one);
    if (st != LOP_OK) return st;
    if (one->dtype != outer->dtype || one->weak != outer->weak) {
        lop_node_unref(one);
        return LOP_OK;
    }
    lop_node_unref(outer);
    *a = one;
    return LOP_OK;
}

/* The node over tidy children. */
static lop_status over_children(const lop_maker *mk, const lop_node *a, int depth,
                                const lop_node **out) {
    const lop_node *child[2] = {NULL, NULL};
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < a->n; i++) st = tidy(mk, a->child[i], depth - 1, &child[i]);
    const bool same =
        st == LOP_OK && child[0] == a->child[0] && (a->n < 2 || child[1] == a->child[1]);
    if (same) *out = lop_node_ref(a);
    if (st == LOP_OK && !same) {
        st = lop_make_op(mk, a->op, &a->attr, a->n, child, NULL, out);
        if (st == LOP_OK) st = merged(mk, out);
        if (st == LOP_OK) st = closed(mk, out);
    }
    lop_node_unref(child[0]);
    lop_node_unref(child[1]);
    return given_up(st, out);
}

/* A view moved down at its root, as the table's rows do: T^T of a symmetric T is T. Takes over *a.
 */
static lop_status moved(const lop_maker *mk, const lop_node **a) {
    lop_status st = LOP_OK;
    for (int left = LEVELS; st == LOP_OK && (*a)->op == &lop_op_view && left > 0; left--) {
        const lop_node *next = NULL;
        st = lop_push_once(mk, *a, false, &next);
        if (st != LOP_OK) break;
        lop_node_unref(*a);
        *a = next;
    }
    return st == LOP_NOMATCH ? LOP_OK : st;
}

/* Is *out of the dtype of what it is to stand for? If not, nothing is handed out: NOMATCH. */
static lop_status same_as(const lop_node *whole, const lop_node **out) {
    if ((*out)->dtype == whole->dtype && (*out)->weak == whole->weak) return LOP_OK;
    lop_node_unref(*out);
    *out = NULL;
    return LOP_NOMATCH;
}

/* A Kron over tidy factors. */
static lop_status tidy_kron(const lop_maker *mk, const lop_node *a, int depth,
                            const lop_node **out) {
    const lop_node *f[MOST_TERMS] = {NULL};
    bool same = true;
    int n = 0;
    lop_status st = LOP_OK;
    for (; st == LOP_OK && n < a->n; n++) {
        st = tidy(mk, a->child[n], depth - 1, &f[n]);
        if (st == LOP_OK) st = moved(mk, &f[n]);
        same = same && f[n] == a->child[n];
    }
    if (st == LOP_OK) st = same ? LOP_NOMATCH : lop_make_op(mk, a->op, &a->attr, n, f, NULL, out);
    if (st == LOP_OK) st = same_as(a, out);
    if (st == LOP_NOMATCH) {
        *out = lop_node_ref(a);
        st = LOP_OK;
    }
    for (int i = 0; i < n; i++) lop_node_unref(f[i]);
    return given_up(st, out);
}

/* Terms of a sum of the dtype `dt`, each tidy. NOMATCH: there are too many. */
static lop_status collect(const lop_maker *mk, terms *t, const lop_node *a, lop_dtype dt,
                          int depth) {
    if (depth > 0 && a->op == &lop_op_sum && a->dtype == dt) {
        lop_status st = collect(mk, t, a->child[0], dt, depth - 1);
        return st == LOP_OK ? collect(mk, t, a->child[1], dt, depth - 1) : st;
    }
    if (t->n == MOST_TERMS) return LOP_NOMATCH;
    lop_status st = tidy(mk, a, depth - 1, &t->term[t->n]);
    if (st == LOP_OK) st = moved(mk, &t->term[t->n]);
    if (given_up(st, &t->term[t->n]) != LOP_OK) return st;
    t->changed = t->changed || t->term[t->n] != a;
    t->n++;
    return LOP_OK;
}

/* c A + d A, of one A; zeros where nothing is left. NOMATCH: they are not that. */
static lop_status like_terms(const lop_maker *mk, const lop_node *a, const lop_node *b,
                             const lop_node *sum, const lop_node **out) {
    const bool x = a->op == &lop_op_scaled, y = b->op == &lop_op_scaled;
    const lop_node *of = x ? a->child[0] : a;
    const lop_coef one = lop_coef_const(1, 0);
    if (!lop_node_alike(of, y ? b->child[0] : b, ALIKE)) return LOP_NOMATCH;
    const lop_coef c = x ? lop_coef_of(&a->attr) : one, d = y ? lop_coef_of(&b->attr) : one,
                   all = lop_coef_plus(mk->ctx, c, d);
    if (!lop_coef_test(mk->ctx, all, LOP_COEF_FINITE)) return LOP_NOMATCH;
    if (lop_coef_test(mk->ctx, all, LOP_COEF_ZERO))
        return lop_make_op(mk, &lop_op_zeros, NULL, 0, NULL, sum, out);
    const lop_attr attr = lop_coef_attr(all);
    lop_status st = lop_make1(mk, &lop_op_scaled, &attr, of, out);
    if (st == LOP_OK && ((*out)->dtype != sum->dtype || (*out)->weak != sum->weak)) {
        lop_node_unref(*out);
        *out = NULL;
        return LOP_NOMATCH;
    }
    return st;
}

/* A multiple of the identity that more than one Kron might take. */
static bool is_shift_of_many(const terms *t, int i, int j) {
    int krons = 0;
    if (less_multiple(t->term[i])->op != &lop_op_identity &&
        less_multiple(t->term[j])->op != &lop_op_identity)
        return false;
    for (int k = 0; k < t->n; k++) krons += less_multiple(t->term[k])->op == &lop_op_kron;
    return krons > 1;
}

/* Terms i and j as one, in *out; NOMATCH: they stay two. */
static lop_status pair(const lop_maker *mk, terms *t, int i, int j, const lop_node **out) {
    const lop_node *sum = NULL;
    for (int k = 0; k < 2; k++) {
        const lop_node *a = t->term[k ? j : i];
        if (!lop_is_blas(a->dtype) && !a->weak) return LOP_NOMATCH;
    }
    lop_status st = lop_make2(mk, &lop_op_sum, NULL, t->term[i], t->term[j], &sum);
    if (st != LOP_OK) return st;
    for (int k = 0; k < 2; k++) {
        const lop_node *other = t->term[k ? i : j];
        if (!adds_nothing(sum, t->term[k ? j : i], &lop_op_zeros, other)) continue;
        lop_node_unref(sum);
        *out = lop_node_ref(other);
        return LOP_OK;
    }
    st = lop_close_once(mk, sum, out);
    if (st == LOP_OK) st = same_as(sum, out);
    if (st == LOP_NOMATCH && !is_shift_of_many(t, i, j))
        st = lop_krons_add(mk, t->term[i], t->term[j], out);
    if (st == LOP_OK) st = same_as(sum, out);
    if (st == LOP_NOMATCH) st = like_terms(mk, t->term[i], t->term[j], sum, out);
    if (st == LOP_NOMATCH) {
        st = lop_products_add(mk, t->term[i], t->term[j], out);
        if (st == LOP_OK) st = same_as(sum, out);
        t->products = t->products || st == LOP_OK;
    }
    lop_node_unref(sum);
    return st;
}

/* Each term with each before it, until none of them meet. */
static lop_status merge(const lop_maker *mk, terms *t) {
    for (int j = 1; j < t->n; j++)
        for (int i = 0; i < j; i++) {
            const lop_node *one = NULL;
            lop_status st = pair(mk, t, i, j, &one);
            if (st == LOP_NOMATCH) continue;
            if (st != LOP_OK) return st;
            lop_node_unref(t->term[i]);
            lop_node_unref(t->term[j]);
            t->term[i] = one;
            for (int k = j + 1; k < t->n; k++) t->term[k - 1] = t->term[k];
            t->n--;
            t->changed = true;
            j = 0; /* what they became may meet others */
            break;
        }
    return LOP_OK;
}

static lop_status tidy_sum(const lop_maker *mk, const lop_node *a, int depth,
                           const lop_node **out) {
    terms t = {.n = 0};
    lop_status st = collect(mk, &t, a, a->dtype, depth);
    if (st == LOP_OK) st = merge(mk, &t);
    if (st == LOP_NOMATCH || (st == LOP_OK && !t.changed)) {
        *out = lop_node_ref(a);
        st = LOP_OK;
    } else if (st == LOP_OK) {
        const lop_node *sum = lop_node_ref(t.term[0]);
        for (int i = 1; st == LOP_OK && i < t.n; i++) {
            const lop_node *more = NULL;
            st = lop_make2(mk, &lop_op_sum, NULL, sum, t.term[i], &more);
            lop_node_unref(sum);
            sum = more;
        }
        *out = sum;
        if (st == LOP_OK && t.products && lop_infer_hermitian(a) && !lop_infer_hermitian(sum)) {
            lop_node_unref(sum); /* U V^H + V U^H + U U^H: said by pairs of terms */
            *out = lop_node_ref(a);
        }
    }
    for (int i = 0; i < t.n; i++) lop_node_unref(t.term[i]);
    return st;
}

/* -- products */

typedef struct row {
    const lop_node *factor[MOST_TERMS]; /* owned */
    int n;
    lop_coef c; /* of the multiples */
} row;

/* Factors of a product of the dtype `dt`, each tidy. NOMATCH: there are too many. */
static lop_status collect_factors(const lop_maker *mk, row *r, const lop_node *a, lop_dtype dt,
                                  int depth) {
    if (depth > 0 && a->op == &lop_op_prod && a->dtype == dt) {
        lop_status st = collect_factors(mk, r, a->child[0], dt, depth - 1);
        return st == LOP_OK ? collect_factors(mk, r, a->child[1], dt, depth - 1) : st;
    }
    if (depth > 0 && a->op == &lop_op_scaled &&
        lop_coef_test(mk->ctx, lop_coef_of(&a->attr), LOP_COEF_MODEST)) {
        const lop_coef c = lop_coef_times(mk->ctx, r->c, lop_coef_of(&a->attr));
        if (lop_coef_test(mk->ctx, c, LOP_COEF_MODEST)) {
            r->c = c;
            return collect_factors(mk, r, a->child[0], dt, depth - 1);
        }
    }
    if (r->n == MOST_TERMS) return LOP_NOMATCH;
    if (a->op == &lop_op_inverse && less_multiple(a->child[0])->op == &lop_op_identity) {
        const lop_node *inner = a->child[0]; /* (c I)^-1 */
        const lop_coef c = inner->op == &lop_op_scaled
                               ? lop_coef_over(mk->ctx, r->c, lop_coef_of(&inner->attr))
                               : r->c;
        if (!lop_coef_test(mk->ctx, c, LOP_COEF_MODEST)) return LOP_NOMATCH;
        r->c = c;
        r->factor[r->n++] = lop_node_ref(less_multiple(inner));
        return LOP_OK;
    }
    lop_status st = tidy(mk, a, depth - 1, &r->factor[r->n]);
    if (st == LOP_OK) st = moved(mk, &r->factor[r->n]);
    if (given_up(st, &r->factor[r->n]) != LOP_OK) return st;
    r->n++;
    return LOP_OK;
}

/* Factors i and i + 1 as one, in *out; NOMATCH: they stay two. */
static lop_status neighbours(const lop_maker *mk, const row *r, int i, const lop_node **out) {
    const lop_node *a = r->factor[i], *b = r->factor[i + 1], *both = NULL;
    if (a->op == &lop_op_identity && lop_nbatch(a) == 0) {
        *out = lop_node_ref(b);
        return LOP_OK;
    }
    if (b->op == &lop_op_identity && lop_nbatch(b) == 0) {
        *out = lop_node_ref(a);
        return LOP_OK;
    }
    if ((!lop_is_blas(a->dtype) && !a->weak) || (!lop_is_blas(b->dtype) && !b->weak))
        return LOP_NOMATCH;
    lop_status st = lop_make2(mk, &lop_op_prod, NULL, a, b, &both);
    if (st == LOP_OK) st = lop_close_once(mk, both, out);
    if (st == LOP_NOMATCH) st = lop_krons_meet(mk, a, b, out);
    if (st == LOP_NOMATCH) st = lop_products_project(a, b, out);
    if (st == LOP_OK) st = same_as(both, out);
    lop_node_unref(both);
    return st;
}

/* NOMATCH: none of them meet. */
static lop_status meet(const lop_maker *mk, row *r) {
    const int before = r->n;
    for (int i = 0; i + 1 < r->n; i++) {
        const lop_node *one = NULL;
        lop_status st = neighbours(mk, r, i, &one);
        if (st == LOP_NOMATCH) continue;
        if (st != LOP_OK) return st;
        lop_node_unref(r->factor[i]);
        lop_node_unref(r->factor[i + 1]);
        r->factor[i] = one;
        for (int k = i + 2; k < r->n; k++) r->factor[k - 1] = r->factor[k];
        r->n--;
        i = i > 0 ? i - 2 : -1; /* what they became may meet the one before */
    }
    return r->n < before ? LOP_OK : LOP_NOMATCH;
}

/* NOMATCH: no factors met, or the product would be of another dtype. */
static lop_status joined(const lop_maker *mk, const lop_node *a, int depth, const lop_node **out) {
    row r = {.c = lop_coef_const(1, 0)};
    lop_status st = collect_factors(mk, &r, a, a->dtype, depth);
    if (st == LOP_OK) st = meet(mk, &r);
    if (st == LOP_OK) *out = lop_node_ref(r.factor[0]);
    for (int i = 1; st == LOP_OK && i < r.n; i++) {
        const lop_node *left = *out;
        st = lop_make2(mk, &lop_op_prod, NULL, left, r.factor[i], out);
        lop_node_unref(left);
        if (st != LOP_OK) *out = NULL;
    }
    if (st == LOP_OK && !lop_coef_test(mk->ctx, r.c, LOP_COEF_ONE)) {
        const lop_attr by = lop_coef_attr(r.c);
        const lop_node *product = *out;
        st = lop_make1(mk, &lop_op_scaled, &by, product, out);
        lop_node_unref(product);
        if (st != LOP_OK) *out = NULL;
    }
    if (st == LOP_OK && ((*out)->dtype != a->dtype || (*out)->weak != a->weak ||
                         !lop_shape_equal(&(*out)->shape, &a->shape)))
        st = LOP_NOMATCH;
    for (int i = 0; i < r.n; i++) lop_node_unref(r.factor[i]);
    return given_up(st, out);
}

/* `a` itself, retained, where there is nothing to do. */
static lop_status tidy(const lop_maker *mk, const lop_node *a, int depth, const lop_node **out) {
    *out = NULL;
    if (depth > 0 && a->op == &lop_op_prod) {
        for (int i = 0; i < 2; i++)
            if (adds_nothing(a, a->child[i], &lop_op_identity, a->child[1 - i]))
                return tidy(mk, a->child[1 - i], depth - 1, out);
        lop_status st = lop_is_blas(a->dtype) ? joined(mk, a, depth, out) : LOP_NOMATCH;
        return st == LOP_NOMATCH ? over_children(mk, a, depth, out) : st;
    }
    if (depth > 0 && a->op == &lop_op_scaled && is_one(a))
        return tidy(mk, a->child[0], depth - 1, out);
    if (depth > 0 && (a->op == &lop_op_scaled || a->op == &lop_op_view))
        return over_children(mk, a, depth, out);
    if (depth > 0 && a->op == &lop_op_sum)
        return lop_is_blas(a->dtype) || a->weak ? tidy_sum(mk, a, depth, out)
                                                : over_children(mk, a, depth, out);
    if (depth > 0 && a->op == &lop_op_kron && a->n <= MOST_TERMS && lop_is_blas(a->dtype))
        return tidy_kron(mk, a, depth, out);
    *out = lop_node_ref(a);
    return LOP_OK;
}

/* Of `a`; NOMATCH where nothing changes. */
static lop_status tidied(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    lop_status st = tidy(mk, a, LEVELS, out);
    if (st != LOP_OK || *out != a) return st;
    lop_node_unref(*out);
    *out = NULL;
    return LOP_NOMATCH;
}

LOP_BUILD(tidy) { return tidied(mk, m->root, out); }

LOP_BUILD(tidy_inverse) {
    const lop_node *a = NULL;
    lop_status st = tidied(mk, m->root->child[0], &a);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, &lop_op_inverse, NULL, a, out);
    lop_node_unref(a);
    return st;
}
