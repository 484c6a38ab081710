/* circulant_sums.c: what is made of circulants is one Circulant: of sums, multiples, views,
 * products and inverses its first column, each by the first columns of its parts.
 *
 *   C + D: c + d     C^T: c[-k mod n]     C D: the circular convolution     C^-1: C^-1 e
 *   a circular Convolution K: K e
 *
 * C^-1 e is within C u log2(n) cond(C) |C^-1| of the inverse's, as its columns by any backward
 * stable solve are; sums and products are as written from there on, and no inverse is taken of
 * what holds one: inverses, determinants and solves of such a sum are those of a fraction N D^-1,
 * (C + D E^-1) = (C E + D) E^-1, which has no inverse in N and D. Solutions that such a column
 * stands behind are checked, else by the dense form. Cost: a few FFTs. */
#include "builds.h"
#include "expr/properties.h"

/* The first column of the identity. */
static lop_status first_unit(const lop_maker *mk, const lop_node *eye, const lop_node **out) {
    lop_node like = {.shape = eye->shape, .dtype = eye->dtype, .weak = eye->weak, .core = 1};
    like.shape.ndim--;
    return lop_make(mk, "first_unit", NULL, 0, NULL, &like, out);
}

/* The first column of C^-1, C of the first column c. */
static lop_status of_inverse(const lop_maker *mk, const lop_node *inverse, const lop_node *c,
                             const lop_node *sizes, const lop_node **out) {
    const lop_attr first = {.i = {0, 0, 0, 0}}, matrix = {.i = {2, 0, 0, 0}};
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lop_rows(inverse), 1}}, .dtype = inverse->dtype, .core = 2};
    const lop_node *unit = NULL, *circulant = NULL, *x = NULL;
    if (lop_rows(inverse) == 0) return LOP_NOMATCH;
    lop_status st = lop_make(mk, "unit", &first, 0, NULL, &like, &unit);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_circulant, NULL, c, sizes, &circulant);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, circulant, unit, &x);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_ravel, &matrix, x, out);
    lop_node_unref(unit);
    lop_node_unref(circulant);
    lop_node_unref(x);
    return st;
}

/* That of a convolution that wraps round. */
static lop_status of_convolution(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_attr first = {.i = {0, 0, 0, 0}}, matrix = {.i = {2, 0, 0, 0}};
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lop_rows(a), 1}}, .dtype = a->dtype, .core = 2};
    const lop_node *unit = NULL, *x = NULL;
    if (lop_rows(a) == 0) return LOP_NOMATCH;
    lop_status st = lop_make(mk, "unit", &first, 0, NULL, &like, &unit);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, a, unit, &x);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_ravel, &matrix, x, out);
    lop_node_unref(unit);
    lop_node_unref(x);
    return st;
}

/* That of a view. Takes over c. */
static lop_status of_view(const lop_maker *mk, int64_t mode, const lop_node *c,
                          const lop_node *sizes, const lop_node **out) {
    const lop_node *next = NULL;
    lop_status st = LOP_OK;
    if ((mode & LOP_C) && lop_is_complex(c->dtype)) {
        st = lop_make1(mk, &lop_op_conjugate, NULL, c, &next);
        lop_node_unref(c);
        c = next;
    }
    if (st != LOP_OK || !(mode & LOP_T)) {
        *out = c;
        return st;
    }
    st = lop_make2(mk, &lop_op_circulant_flip, NULL, c, sizes, out);
    lop_node_unref(c);
    return st;
}

static lop_status cast_to(const lop_maker *mk, const lop_node *c, lop_dtype dt,
                          const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    return lop_make1(mk, &lop_op_cast, &d, c, out);
}

static lop_status column_of(const lop_maker *mk, const lop_node *a, const lop_node *sizes,
                            const lop_node **out);

/* Is a first column the identity's? */
static bool is_unit(const lop_node *c) {
    while (c->op == &lop_op_cast) c = c->child[0];
    return c->op == &lop_op_first_unit;
}

/* The circulants of columns a and b multiplied, as a column. */
static lop_status times(const lop_maker *mk, lop_dtype dt, const lop_node *a, const lop_node *b,
                        const lop_node *sizes, const lop_node **out) {
    const lop_node *wide[3] = {NULL, NULL, sizes};
    if (is_unit(a) || is_unit(b)) return cast_to(mk, is_unit(a) ? b : a, dt, out);
    for (int i = 0; i < 2; i++) { /* c I times the other */
        const lop_node *one = i ? b : a;
        if (one->op == &lop_op_scale && is_unit(one->child[0])) {
            const lop_status st = lop_make1(mk, &lop_op_scale, &one->attr, i ? a : b, &wide[0]);
            if (st == LOP_OK) *out = wide[0];
            return st;
        }
    }
    lop_status st = cast_to(mk, a, dt, &wide[0]);
    if (st == LOP_OK) st = cast_to(mk, b, dt, &wide[1]);
    if (st == LOP_OK) st = lop_make(mk, "circular_convolution", NULL, 3, wide, NULL, out);
    lop_node_unref(wide[0]);
    lop_node_unref(wide[1]);
    return st;
}

/* N D^-1, by first columns without an inverse in them, owned; D NULL: the identity. */
typedef struct fraction {
    const lop_node *n, *d;
} fraction;

static void drop_fraction(const fraction *f) {
    lop_node_unref(f->n);
    lop_node_unref(f->d);
}

/* N / D + M / E = (N E + M D) / (D E), over D alone where E is D, or where one has none. */
static lop_status add_fractions(const lop_maker *mk, lop_dtype dt, const fraction *a,
                                const fraction *b, const lop_node *sizes, fraction *out) {
    const bool same = a->d == b->d || (a->d && b->d && lop_node_alike(a->d, b->d, LOP_INFER_DEPTH));
    const lop_node *x = NULL, *y = NULL;
    lop_status st =
        same || !b->d ? (x = lop_node_ref(a->n), LOP_OK) : times(mk, dt, a->n, b->d, sizes, &x);
    if (st == LOP_OK)
        st =
            same || !a->d ? (y = lop_node_ref(b->n), LOP_OK) : times(mk, dt, b->n, a->d, sizes, &y);
    if (st == LOP_OK) st = lop_join(mk, &lop_op_add, NULL, x, y, &out->n);
    if (st == LOP_OK && (same || !a->d || !b->d))
        out->d = a->d || b->d ? lop_node_ref(a->d ? a->d : b->d) : NULL;
    else if (st == LOP_OK)
        st = times(mk, dt, a->d, b->d, sizes, &out->d);
    lop_node_unref(x);
    lop_node_unref(y);
    return st;
}

/* a as a fraction; NOMATCH: it is a product of two with an inverse each, of which the fraction
 * would have the product of their conditions. Recursion is as deep as LOP_CIRCULANT_DEPTH. */
static lop_status fraction_of(const lop_maker *mk, const lop_node *a, const lop_node *sizes,
                              fraction *out) {
    fraction f[2] = {{NULL, NULL}, {NULL, NULL}};
    *out = f[0];
    if (!lop_holds_inverse(a, LOP_CIRCULANT_DEPTH)) return column_of(mk, a, sizes, &out->n);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < a->n && i < 2; i++)
        st = fraction_of(mk, a->child[i], sizes, &f[i]);
    if (st == LOP_OK && a->op == &lop_op_inverse) {
        st = f[0].d ? (out->n = lop_node_ref(f[0].d), LOP_OK) : first_unit(mk, a, &out->n);
        out->d = lop_node_ref(f[0].n);
    } else if (st == LOP_OK && a->op == &lop_op_scaled) {
        st = lop_make1(mk, &lop_op_scale, &a->attr, f[0].n, &out->n);
        out->d = f[0].d ? lop_node_ref(f[0].d) : NULL;
    } else if (st == LOP_OK && a->op == &lop_op_sum) {
        st = add_fractions(mk, a->dtype, &f[0], &f[1], sizes, out);
    } else if (st == LOP_OK && a->op == &lop_op_prod && !(f[0].d && f[1].d)) {
        st = times(mk, a->dtype, f[0].n, f[1].n, sizes, &out->n);
        out->d = f[0].d || f[1].d ? lop_node_ref(f[0].d ? f[0].d : f[1].d) : NULL;
    } else if (st == LOP_OK) {
        st = LOP_NOMATCH;
    }
    drop_fraction(&f[0]);
    drop_fraction(&f[1]);
    if (st != LOP_OK) {
        drop_fraction(out);
        *out = (fraction){NULL, NULL};
    }
    return st;
}

/* a is_circulant, of levels of those sizes: its first column, owned. Recursion is as deep as
 * LOP_CIRCULANT_DEPTH. */
static lop_status column_of(const lop_maker *mk, const lop_node *a, const lop_node *sizes,
                            const lop_node **out) {
    const lop_node *c[2] = {NULL, NULL};
    if (a->op == &lop_op_identity) return first_unit(mk, a, out);
    if (a->op == &lop_op_circulant) {
        *out = lop_node_ref(a->child[0]);
        return LOP_OK;
    }
    if (lop_is_circular(a)) return of_convolution(mk, a, out);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < a->n; i++) st = column_of(mk, a->child[i], sizes, &c[i]);
    if (st == LOP_OK && a->op == &lop_op_scaled)
        st = lop_make1(mk, &lop_op_scale, &a->attr, c[0], out);
    else if (st == LOP_OK && a->op == &lop_op_view) {
        st = of_view(mk, a->attr.i[0], c[0], sizes, out);
        c[0] = NULL;
    } else if (st == LOP_OK && a->op == &lop_op_inverse)
        st = of_inverse(mk, a, c[0], sizes, out);
    else if (st == LOP_OK && a->op == &lop_op_sum)
        st = lop_join(mk, &lop_op_add, NULL, c[0], c[1], out);
    else if (st == LOP_OK)
        st = times(mk, a->dtype, c[0], c[1], sizes, out);
    lop_node_unref(c[0]);
    lop_node_unref(c[1]);
    return st;
}

lop_status lop_one_circulant(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_node *sizes = NULL, *c = NULL;
    if (!lop_is_circulant(a, LOP_CIRCULANT_DEPTH, &sizes) || !sizes) return LOP_NOMATCH;
    lop_status st =
        lop_holds_inverse(a, LOP_CIRCULANT_DEPTH) ? lop_spectral_column(mk, a, &c) : LOP_NOMATCH;
    if (st == LOP_NOMATCH) st = column_of(mk, a, sizes, &c);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_circulant, NULL, c, sizes, out);
    lop_node_unref(c);
    return st;
}

/* The root's action on a product. */
LOP_BUILD(circulant_value) {
    const lop_node *product = m->root->child[0], *one = NULL;
    if (!lop_is_blas(product->dtype)) return LOP_NOMATCH;
    if (product->op == &lop_op_sum && m->root->op != &lop_op_todense &&
        !lop_holds_inverse(product, LOP_CIRCULANT_DEPTH))
        return LOP_NOMATCH; /* by terms: few numbers of each */
    lop_status st = lop_one_circulant(mk, product, &one);
    if (st == LOP_OK && one->dtype != product->dtype) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, one, out);
    lop_node_unref(one);
    return st;
}

lop_status lop_solve_circulant(const lop_maker *mk, const lop_node *root, const lop_node *one,
                               const lop_node **out) {
    const lop_node *a = root->child[0], *b = NULL, *x = NULL;
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)a->dtype + 1}};
    if (!lop_holds_inverse(a, LOP_CIRCULANT_DEPTH))
        return lop_make2(mk, &lop_op_solve, NULL, one, root->child[1], out);
    if (root->dtype != a->dtype || lop_rows(a) == 0) return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_cast, &cast, root->child[1], &b);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, one, b, &x);
    if (st == LOP_OK) st = lop_check_or_dense(mk, a, x, b, out);
    lop_node_unref(b);
    lop_node_unref(x);
    return st;
}

/* N and D^-1's D of a sum that holds inverses, as Circulants, owned; D NULL: there is none. */
static lop_status fraction_as_kinds(const lop_maker *mk, const lop_node *a, const lop_node **num,
                                    const lop_node **den) {
    const lop_node *sizes = NULL;
    fraction f = {NULL, NULL};
    if (!lop_is_circulant(a, LOP_CIRCULANT_DEPTH, &sizes) || !sizes || lop_rows(a) == 0)
        return LOP_NOMATCH;
    lop_status st = fraction_of(mk, a, sizes, &f);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_circulant, NULL, f.n, sizes, num);
    if (st == LOP_OK && f.d) st = lop_make2(mk, &lop_op_circulant, NULL, f.d, sizes, den);
    if (st == LOP_OK && ((*num)->dtype != a->dtype || (*den && (*den)->dtype != a->dtype)))
        st = LOP_NOMATCH;
    drop_fraction(&f);
    return st;
}

/* det N / det D; D N^-1 e as a circulant and what the root asks of it. */
static lop_status fraction_det(const lop_maker *mk, const lop_node *root, const lop_node *num,
                               const lop_node *den, const lop_node **out) {
    const lop_attr over = {.i = {-1, 0, 0, 0}};
    const lop_node *n = NULL, *d = NULL, *one = NULL;
    lop_status st = lop_make1(mk, root->op, &root->attr, num, &n);
    if (st == LOP_OK) st = lop_make1(mk, root->op, &root->attr, den, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_pow_det, &over, d, &one);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, n, one, out);
    const lop_node *gone[] = {n, d, one};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
/* What the root asks of the inverse of the sum, as one Circulant. */
static lop_status fraction_inverse(const lop_maker *mk, const lop_node *root, const lop_node *sum,
                                   const lop_node **out) {
    const lop_node *sizes = NULL, *inverse = NULL, *c = NULL, *one = NULL;
    if (!lop_is_circulant(sum, LOP_CIRCULANT_DEPTH, &sizes) || !sizes) return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_inverse, NULL, sum, &inverse);
    if (st == LOP_OK) st = lop_spectral_column(mk, inverse, &c);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_circulant, NULL, c, sizes, &one);
    if (st == LOP_OK) st = lop_make1(mk, root->op, &root->attr, one, out);
    const lop_node *gone[] = {inverse, c, one};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

lop_status lop_circulant_fraction(const lop_maker *mk, const lop_node *root, const lop_node *sum,
                                  const lop_node **out) {
    const lop_node *num = NULL, *den = NULL;
    if (root->op == &lop_op_solve) return lop_spectral_solve(mk, root, sum, out);
    if (root->op != &lop_op_scaledet) return fraction_inverse(mk, root, sum, out);
    lop_status st = fraction_as_kinds(mk, sum, &num, &den);
    if (st == LOP_OK && !den) st = LOP_NOMATCH;
    if (st == LOP_OK) st = fraction_det(mk, root, num, den, out);
    lop_node_unref(num);
    lop_node_unref(den);
    return st;
}

/* A solve with a convolution that wraps round. */
LOP_BUILD(circular_solve) {
    const lop_node *one = NULL;
    lop_status st = lop_one_circulant(mk, m->root->child[0], &one);
    if (st == LOP_OK && one->dtype != m->root->child[0]->dtype) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, one, m->root->child[1], out);
    lop_node_unref(one);
    return st;
}

/* -- what is beside a circulant matrix: only its sums along diagonals modulo n count
 *
 *   sums of C X, and of X C  =  c * (sums of X), the circular convolution with C's first column
 *   tr(C X)  =  c . (sums of X^T) */

/* The circulant factor of one level of a product, and the other one; NULL: there is none, or both
 * are, or the dtypes are not one. */
static const lop_node *circulant_factor(const lop_node *p, const lop_node **other) {
    const lop_node *sizes = NULL;
    if (lop_nbatch(p) || !lop_is_blas(p->dtype) || lop_rows(p) == 0) return NULL;
    for (int i = 0; i < 2; i++) {
        const lop_node *c = p->child[i];
        *other = p->child[1 - i];
        if ((*other)->dtype == p->dtype && lop_rows(*other) == lop_cols(*other) &&
            lop_is_circulant(c, LOP_CIRCULANT_DEPTH, &sizes) && sizes && sizes->shape.ndim == 1 &&
            !lop_is_circulant(*other, LOP_CIRCULANT_DEPTH, &sizes))
            return c;
    }
    return NULL;
}

/* C's circulant of one column, or its transpose's. Owned. */
static lop_status one_column(const lop_maker *mk, const lop_node *c, bool turned,
                             const lop_node **out) {
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}};
    const lop_node *seen = NULL;
    lop_status st = turned ? lop_make1(mk, &lop_op_view, &turn, c, &seen) : LOP_OK;
    if (st == LOP_OK) st = lop_one_circulant(mk, turned ? seen : c, out);
    lop_node_unref(seen);
    return st;
}

lop_status lop_sums_as_toeplitz(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_node *a = m->root->child[0], *one = NULL, *row = NULL, *t = NULL;
    if (m->root->attr.i[0] || lop_nbatch(a) || !lop_is_blas(a->dtype) || lop_rows(a) == 0)
        return LOP_NOMATCH;
    lop_status st = lop_one_circulant(mk, a, &one);
    if (st == LOP_OK && (one->dtype != a->dtype || one->child[1]->shape.ndim > 1)) st = LOP_NOMATCH;
    if (st == LOP_OK)
        st = lop_make2(mk, &lop_op_circulant_flip, NULL, one->child[0], one->child[1], &row);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_toeplitz, NULL, one->child[0], row, &t);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, t, out);
    lop_node_unref(one);
    lop_node_unref(row);
    lop_node_unref(t);
    return st;
}

LOP_BUILD(sums_beside_circulant) {
    const int64_t *how = m->root->attr.i;
    const lop_node *x = NULL, *p = m->root->child[0], *one = NULL, *v[3] = {NULL};
    if (!how[0] && !how[1]) return lop_sums_as_toeplitz(m, mk, out);
    const lop_node *c = !how[0] ? circulant_factor(p, &x) : NULL;
    if (!c || p->dtype != m->root->dtype) return LOP_NOMATCH;
    lop_status st = one_column(mk, c, how[2] != 0, &one);
    if (st == LOP_OK) st = cast_to(mk, one->child[0], m->root->dtype, &v[0]);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, x, &v[1]);
    if (st == LOP_OK) v[2] = one->child[1];
    if (st == LOP_OK) st = lop_make(mk, "circular_convolution", NULL, 3, v, NULL, out);
    lop_node_unref(one);
    lop_node_unref(v[0]);
    lop_node_unref(v[1]);
    return st;
}

/* A Toeplitz matrix, or its inverse, of which sums along diagonals are few numbers, those of
 * products with circulant matrices, of which the middle may be a diagonal one, and sums of such. */
static bool has_few_sums(const lop_node *x, bool beside, int depth) {
    if (depth == 0) return false;
    if (x->op == &lop_op_view || x->op == &lop_op_scaled || x->op == &lop_op_inverse)
        return has_few_sums(x->child[0], beside, depth - 1);
    const lop_node *other = NULL;
    if (x->op == &lop_op_prod)
        return circulant_factor(x, &other) && has_few_sums(other, true, depth - 1);
    if (x->op == &lop_op_sum && beside)
        return has_few_sums(x->child[0], true, depth - 1) &&
               has_few_sums(x->child[1], true, depth - 1);
    return x->op == &lop_op_toeplitz || (beside && x->op == &lop_op_diag);
}

LOP_BUILD(trace_beside_circulant) {
    enum { DEPTH = 8 };
    const lop_node *x = NULL, *p = m->root->child[0], *one = NULL, *column = NULL, *sums = NULL,
                   *all = NULL;
    const lop_node *c = circulant_factor(p, &x);
    const lop_attr turned = {.i = {0, 1, 1, (int64_t)m->root->dtype + 1}};
    if (!c || p->dtype != m->root->dtype || !has_few_sums(x, false, DEPTH)) return LOP_NOMATCH;
    lop_status st = one_column(mk, c, false, &one);
    if (st == LOP_OK) st = cast_to(mk, one->child[0], m->root->dtype, &column);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal_sums, &turned, x, &sums);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul, NULL, column, sums, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, all, out);
    const lop_node *gone[] = {one, column, sums, all};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
