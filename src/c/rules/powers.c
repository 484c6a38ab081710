/* powers.c: A^p for large p without p products.
 *
 *   diag(d)^p = diag(d^p), I^p = I, 0^p = 0, (A (x) B)^p = A^p (x) B^p, block by block
 *   A^p = (A^(p/2))^2, times A where p is odd: dense, where log2(p) products of matrices cost less
 *         than p with the right side, and fit the memory limit
 *
 * Both keep the error of p products, p n u |A|^p |x| (Higham 2002, sec. 3.5 and 18). What is left
 * is the chain of p products. */
#include "builds.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

enum { LONGEST = 1 << 16 }; /* products in a chain: some 600 bytes of plan each */

static int64_t power_of(const lop_match *m) { return ATTR(m, 'p').i[0]; }

/* The dense form of A^p in the dtype that `form` names: that of A^(p/2), squared, and A times it
 * where p is odd. */
static lop_status squared(const lop_match *m, const lop_maker *mk, const lop_attr *form,
                          const lop_node **out) {
    lop_attr half = {.i = {power_of(m) / 2, 0, 0, 0}};
    const lop_node *base = HOLE(m, 'a'), *power = NULL, *array = NULL, *dense = NULL,
                   *square = NULL;
    lop_status st = lop_make1(mk, &lop_op_power, &half, base, &power);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, form, power, &array);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, array, &dense);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, dense, array, &square);
    if (st == LOP_OK && power_of(m) % 2)
        st = lop_make2(mk, &lop_op_apply, NULL, base, square, out);
    else if (st == LOP_OK)
        *out = lop_node_ref(square);
    lop_node_unref(power);
    lop_node_unref(array);
    lop_node_unref(dense);
    lop_node_unref(square);
    return st;
}
LOP_BUILD(power_squared) { return squared(m, mk, &m->root->attr, out); }

LOP_BUILD(apply_power_squared) {
    lop_attr form = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_node *array = NULL, *dense = NULL;
    lop_status st = squared(m, mk, &form, &array);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, array, &dense);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, dense, HOLE(m, 'x'), out);
    lop_node_unref(array);
    lop_node_unref(dense);
    return st;
}

/* A kind of one power: identity, zeros. */
LOP_BUILD(power_itself) {
    (void)mk;
    *out = lop_node_ref(m->root->child[0]);
    return LOP_OK;
}

/* Factor by factor, block by block. */
/* The chain A (A^(p-1) x). */
LOP_BUILD(apply_power) {
    lop_attr less = ATTR(m, 'p');
    if (less.i[0] == 0 && lop_nbatch(HOLE(m, 'a')) == 0) return lop_build_cast_x(m, mk, out);
    if (less.i[0] == 0) { /* x broadcasts against A's batch */
        lop_node like = {
            .shape = HOLE(m, 'a')->shape, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
        const lop_node *eye;
        lop_status st = lop_make(mk, "identity", NULL, 0, NULL, &like, &eye);
        if (st != LOP_OK) return st;
        st = lop_make2(mk, &lop_op_apply, NULL, eye, HOLE(m, 'x'), out);
        lop_node_unref(eye);
        return st;
    }
    if (less.i[0] == 1) return lop_make2(mk, &lop_op_apply, NULL, HOLE(m, 'a'), HOLE(m, 'x'), out);
    if (less.i[0] > LONGEST)
        return lop_fail(mk->err, LOP_LIMIT,
                        "A ** %lld of %lld rows would take that many products one after the other, "
                        "and its dense form by squaring more time or memory than allowed: apply a "
                        "lower power (up to %d) several times",
                        (long long)less.i[0], (long long)lop_rows(HOLE(m, 'a')), LONGEST);
    const lop_node *power = NULL, *inner = NULL;
    less.i[0]--;
    lop_status st = lop_make1(mk, &lop_op_power, &less, HOLE(m, 'a'), &power);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, power, HOLE(m, 'x'), &inner);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, HOLE(m, 'a'), inner, out);
    lop_node_unref(power);
    lop_node_unref(inner);
    return st;
}

enum { CLOSED = 8 };

/* A A ... A as one kind, as products of Krons close to. Owned; NOMATCH: they do not. */
static lop_status closed_power(const lop_maker *mk, int64_t p, const lop_node *a,
                               const lop_node **out) {
    const lop_node *all = lop_node_ref(a);
    lop_status st = p > CLOSED ? LOP_NOMATCH : LOP_OK;
    for (int64_t i = 1; st == LOP_OK && i < p; i++) {
        const lop_node *product = NULL, *one = NULL;
        st = lop_make2(mk, &lop_op_prod, NULL, all, a, &product);
        if (st == LOP_OK) st = lop_close_once(mk, product, &one);
        lop_node_unref(product);
        if (st != LOP_OK) break;
        lop_node_unref(all);
        all = one;
    }
    if (st == LOP_OK && all->dtype == a->dtype)
        *out = lop_node_ref(all);
    else if (st == LOP_OK)
        st = LOP_NOMATCH;
    lop_node_unref(all);
    return st;
}

static lop_status power_or_base(const lop_maker *mk, int64_t p, const lop_node *a,
                                const lop_node **out) {
    const lop_attr attr = {.i = {p, 0, 0, 0}};
    *out = p == 1 ? lop_node_ref(a) : NULL;
    return p == 1 ? LOP_OK : lop_make1(mk, &lop_op_power, &attr, a, out);
}

/* The root's action on A^p where that closes, else on A^h A^(p - h). */
LOP_BUILD(power_halves) {
    const int64_t p = power_of(m);
    const lop_node *left = NULL, *right = NULL, *all = NULL;
    if (p < 2) return LOP_NOMATCH;
    lop_status st = closed_power(mk, p, HOLE(m, 'a'), &all);
    if (st == LOP_NOMATCH) {
        st = power_or_base(mk, p / 2, HOLE(m, 'a'), &left);
        if (st == LOP_OK) st = power_or_base(mk, p - p / 2, HOLE(m, 'a'), &right);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, left, right, &all);
    }
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, all, out);
    lop_node_unref(left);
    lop_node_unref(right);
    lop_node_unref(all);
    return st;
}

/* The dense form of A^p where that closes, and of A^2 as of a product. */
LOP_BUILD(power_closed) {
    const int64_t p = power_of(m);
    const lop_node *all = NULL;
    if (p < 2 || p > CLOSED) return LOP_NOMATCH;
    lop_status st = closed_power(mk, p, HOLE(m, 'a'), &all);
    if (st == LOP_NOMATCH && p == 2)
        st = lop_make2(mk, &lop_op_prod, NULL, HOLE(m, 'a'), HOLE(m, 'a'), &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &m->root->attr, all, out);
    lop_node_unref(all);
    return st;
}

/* The root's action on the inverse of A^p, as of one kind, else of A^h A^(p - h). */
LOP_BUILD(inverse_power) {
    const int64_t p = power_of(m);
    const lop_node *left = NULL, *right = NULL, *all = NULL, *inverse = NULL;
    if (p < 2 || p > CLOSED) return LOP_NOMATCH;
    lop_status st = closed_power(mk, p, HOLE(m, 'a'), &all);
    if (st == LOP_NOMATCH) {
        st = power_or_base(mk, p / 2, HOLE(m, 'a'), &left);
        if (st == LOP_OK) st = power_or_base(mk, p - p / 2, HOLE(m, 'a'), &right);
        if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, left, right, &all);
    }
    if (st == LOP_OK) st = lop_inverse_closed(mk, all, &inverse);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, inverse, out);
    const lop_node *gone[] = {left, right, all, inverse};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

enum { MOST_SOLVES = 8 };

/* A^-p x by p solves with one factor. */
LOP_BUILD(solve_power) {
    const int64_t p = ATTR(m, 'p').i[0];
    const lop_node *x = NULL;
    if (p < 1 || p > MOST_SOLVES) return LOP_NOMATCH;
    lop_status st = lop_build_cast_x(m, mk, &x);
    for (int64_t i = 0; st == LOP_OK && i < p; i++) {
        const lop_node *next = NULL;
        st = lop_make2(mk, &lop_op_solve, NULL, HOLE(m, 'a'), x, &next);
        lop_node_unref(x);
        x = next;
    }
    *out = x;
    return st;
}
