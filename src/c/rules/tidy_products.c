/* tidy_products.c: sums of products that begin or end alike are one product.
 *
 *     A X + A Y         ->  A (X + Y)
 *     U C V + U F V     ->  U (C + F) V
 *     X^T + Y^T         ->  (X + Y)^T       in between, so that (U + V) (U + V)^T is seen again
 *
 *     P P                  ->  P                    P = U (V U)^-1 V, and I - P: what has no such
 *                                                  inverse raises either way
 *
 * |X + Y| |B| is no more than |X| |B| + |Y| |B|, entry by entry: the bound of a product stays. Only
 * where the one product is no wider than the narrower of the two: A u v^T + A w z^T, of two thin
 * terms one of full width, stays as it is written, and so does A^-1 u v^T A^-1 + A^-1 D A^-1, whose
 * diagonal goes term by term. What is read has no batch. */
#include "tidy_products.h"
#include "expr/coefficients.h"
#include "expr/properties.h"
#include "thin_sum.h"

enum { FACTORS = 12, DEPTH = 8, ALIKE = 8 };

typedef struct row {
    const lop_node *f[FACTORS]; /* borrowed */
    int n;
    lop_coef c;
} row;

/* The factors of a product, multiples of them taken out. False: too many. */
static bool read(lop_ctx *ctx, const lop_node *a, int depth, row *r) {
    if (depth > 0 && a->op == &lop_op_scaled) {
        r->c = lop_coef_times(ctx, r->c, lop_coef_of(&a->attr));
        return lop_coef_test(ctx, r->c, LOP_COEF_MODEST) && read(ctx, a->child[0], depth - 1, r);
    }
    if (depth > 0 && a->op == &lop_op_prod)
        return read(ctx, a->child[0], depth - 1, r) && read(ctx, a->child[1], depth - 1, r);
    if (r->n == FACTORS || a->shape.ndim != 2) return false;
    r->f[r->n++] = a;
    return true;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The narrowest place between `from` and `to`. */
static int64_t width(const row *r, int from, int to) {
    int64_t w = from < to ? lop_rows(r->f[from]) : INT64_MAX;
    for (int i = from; i < to; i++) w = least(w, lop_cols(r->f[i]));
    return w;
}

/* c times the factors from `from` up to `to`. Owned. */
static lop_status between(const lop_maker *mk, const row *r, int from, int to,
                          const lop_node **out) {
    const lop_node *all = lop_node_ref(r->f[from]);
    lop_status st = LOP_OK;
    for (int i = from + 1; st == LOP_OK && i < to; i++) {
        const lop_node *left = all;
        all = NULL;
        st = lop_make2(mk, &lop_op_prod, NULL, left, r->f[i], &all);
        lop_node_unref(left);
    }
    if (st == LOP_OK) st = lop_thin_multiple(mk, r->c, all, out);
    lop_node_unref(all);
    return st;
}

/* x + y; of two views of one sort the view of the sum. */
static lop_status sum_of(const lop_maker *mk, const lop_node *x, const lop_node *y,
                         const lop_node **out) {
    const lop_node *sum = NULL;
    if (x->op != &lop_op_view || y->op != &lop_op_view || x->attr.i[0] != y->attr.i[0])
        return lop_sum_closed(mk, x, y, out);
    lop_status st = lop_sum_closed(mk, x->child[0], y->child[0], &sum);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_view, &x->attr, sum, out);
    lop_node_unref(sum);
    return st;
}

/* How many factors they have in common at the beginning, and behind these at the end. */
static void in_common(const row *x, const row *y, int *first, int *last) {
    const int most = x->n < y->n ? x->n : y->n;
    for (*first = 0; *first < most && lop_node_alike(x->f[*first], y->f[*first], ALIKE);) ++*first;
    for (*last = 0; *first + *last < most &&
                    lop_node_alike(x->f[x->n - 1 - *last], y->f[y->n - 1 - *last], ALIKE);)
        ++*last;
}

lop_status lop_products_add(const lop_maker *mk, const lop_node *a, const lop_node *b,
                            const lop_node **out) {
    row x = {.c = lop_coef_const(1, 0)}, y = x;
    int first, last;
    if (!lop_is_blas(a->dtype) || !lop_is_blas(b->dtype) || !read(mk->ctx, a, DEPTH, &x) ||
        !read(mk->ctx, b, DEPTH, &y) || x.n < 2 || y.n < 2)
        return LOP_NOMATCH;
    in_common(&x, &y, &first, &last);
    if (first + last == 0 || first + last == x.n || first + last == y.n) return LOP_NOMATCH;
    const int64_t before = width(&x, 0, x.n), other = width(&y, 0, y.n);
    const int64_t rows = lop_rows(x.f[first]), columns = lop_cols(x.f[x.n - 1 - last]);
    const int64_t after =
        least(least(rows, columns), least(width(&x, 0, first), width(&x, x.n - last, x.n)));
    if (after > least(before, other)) return LOP_NOMATCH;
    const lop_node *in[2] = {NULL, NULL}, *sum = NULL;
    lop_status st = between(mk, &x, first, x.n - last, &in[0]);
    if (st == LOP_OK) st = between(mk, &y, first, y.n - last, &in[1]);
    if (st == LOP_OK) st = sum_of(mk, in[0], in[1], &sum);
    row all = {.c = lop_coef_const(1, 0)};
    for (int i = 0; i < first; i++) all.f[all.n++] = x.f[i];
    all.f[all.n++] = sum;
    for (int i = 0; i < last; i++) all.f[all.n++] = x.f[x.n - last + i];
    if (st == LOP_OK) st = between(mk, &all, 0, all.n, out);
    lop_node_unref(in[0]);
    lop_node_unref(in[1]);
    lop_node_unref(sum);
    return st;
}

/* -- projectors */

/* Is it U (V U)^-1 V, however that is nested? */
static bool is_projector(const lop_node *a) {
    row x = {.c = lop_coef_const(1, 0)}, in = x;
    int at = 0;
    if (!lop_is_blas(a->dtype) || !read(a->ctx, a, DEPTH, &x) ||
        !lop_coef_test(a->ctx, x.c, LOP_COEF_ONE))
        return false;
    while (at < x.n && x.f[at]->op != &lop_op_inverse) at++;
    if (at == x.n || !read(a->ctx, x.f[at]->child[0], DEPTH, &in) || in.n != x.n - 1 ||
        !lop_coef_test(a->ctx, in.c, LOP_COEF_ONE))
        return false;
    const int behind = x.n - 1 - at; /* V, then U */
    for (int i = 0; i < in.n; i++)
        if (!lop_node_alike(in.f[i], x.f[i < behind ? at + 1 + i : i - behind], ALIKE))
            return false;
    return at > 0 && behind > 0;
}

lop_status lop_products_project(const lop_node *a, const lop_node *b, const lop_node **out) {
    const lop_node *p = a;
    if (a->shape.ndim != 2 || !lop_node_alike(a, b, ALIKE)) return LOP_NOMATCH;
    for (int i = 0; p == a && a->op == &lop_op_sum && i < 2; i++) { /* I - P */
        const lop_node *less = a->child[i];
        if (a->child[1 - i]->op == &lop_op_identity && less->op == &lop_op_scaled &&
            lop_coef_test(a->ctx, lop_coef_of(&less->attr), LOP_COEF_MINUS_ONE))
            p = less->child[0];
    }
    if (!is_projector(p)) return LOP_NOMATCH;
    *out = lop_node_ref(a);
    return LOP_OK;
}
