/* views_scalars_elements.c: computed right sides for views, scalars and elements. Short chains of
 * calls that make nodes; every intermediate is released. */
#include "builds.h"
#include "expr/properties.h"
#include "rewrite/guards.h"

#include <math.h>

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

/* Gives away `node`: the caller's reference becomes *out through one more make. */
static lop_status wrap(const lop_maker *mk, const lop_op *op, const lop_attr *attr,
                       const lop_node *inner, const lop_node **out) {
    lop_status st = lop_make1(mk, op, attr, inner, out);
    lop_node_unref(inner);
    return st;
}

LOP_BUILD(view_view) {
    lop_attr mode = {.i = {ATTR(m, 'm').i[0] ^ ATTR(m, 'n').i[0], 0, 0, 0}};
    if (mode.i[0]) return lop_make1(mk, &lop_op_view, &mode, HOLE(m, 'a'), out);
    *out = lop_node_ref(HOLE(m, 'a'));
    return LOP_OK;
}

LOP_BUILD(swap_swap) {
    lop_attr mode = {.i = {ATTR(m, 'm').i[0] ^ ATTR(m, 'n').i[0], 0, 0, 0}};
    if (mode.i[0]) return lop_make1(mk, &lop_op_swap, &mode, HOLE(m, 'a'), out);
    *out = lop_node_ref(HOLE(m, 'a'));
    return LOP_OK;
}

LOP_BUILD(view_real) {
    lop_attr mode = {.i = {ATTR(m, 'm').i[0] & LOP_T, 0, 0, 0}};
    if (mode.i[0]) return lop_make1(mk, &lop_op_view, &mode, HOLE(m, 'a'), out);
    *out = lop_node_ref(HOLE(m, 'a'));
    return LOP_OK;
}

LOP_BUILD(view_diag) {
    if (!(ATTR(m, 'm').i[0] & LOP_C) || !lop_is_complex(m->root->dtype)) {
        *out = lop_node_ref(m->root->child[0]);
        return LOP_OK;
    }
    const lop_node *d;
    lop_status st = lop_make1(mk, &lop_op_conjugate, NULL, HOLE(m, 'a'), &d);
    return st == LOP_OK ? wrap(mk, &lop_op_diag, NULL, d, out) : st;
}

LOP_BUILD(view_scaled) {
    lop_attr c = ATTR(m, 'c');
    if (ATTR(m, 'm').i[0] & LOP_C) lop_coef_put(&c, lop_coef_conj(mk->ctx, lop_coef_of(&c)));
    const lop_node *a;
    lop_status st = lop_make1(mk, &lop_op_view, &ATTR(m, 'm'), HOLE(m, 'a'), &a);
    return st == LOP_OK ? wrap(mk, &lop_op_scaled, &c, a, out) : st;
}

/* c a; of an a that is a multiple itself c d a', as of operators, and a' where c d is one. */
static lop_status multiple(const lop_maker *mk, const lop_attr *c, const lop_node *a,
                           const lop_node **out) {
    if (a->op == &lop_op_scale && lop_is_blas(a->child[0]->dtype) &&
        a->dtype == a->child[0]->dtype && a->weak == a->child[0]->weak) {
        const lop_coef d = lop_coef_of(&a->attr), by = lop_coef_of(c);
        if (lop_coef_test(mk->ctx, d, LOP_COEF_MODEST) &&
            lop_coef_test(mk->ctx, by, LOP_COEF_MODEST)) {
            const lop_attr both = lop_coef_attr(lop_coef_times(mk->ctx, by, d));
            lop_status st = lop_join(mk, &lop_op_scale, &both, a->child[0], NULL, out);
            if (st != LOP_OK || (*out)->dtype == a->dtype) {
                if (st == LOP_OK && lop_coef_test(mk->ctx, lop_coef_of(&both), LOP_COEF_ONE)) {
                    lop_node_unref(*out);
                    *out = lop_node_ref(a->child[0]);
                }
                return st;
            }
            lop_node_unref(*out);
            *out = NULL;
        }
    }
    return lop_join(mk, &lop_op_scale, c, a, NULL, out);
}

/* One kind again: each parameter is the product, sum, multiple or reciprocal of the operands' own.
 */
LOP_BUILD(closed) {
    const lop_node *a = m->root->child[0], *b = m->root->n > 1 ? m->root->child[1] : NULL,
                   *p[3] = {NULL, NULL, NULL};
    const lop_op *how = m->root->op, *op = &lop_op_scale;
    if (how == &lop_op_prod) op = &lop_op_mul;
    if (how == &lop_op_sum) op = &lop_op_add;
    if (how == &lop_op_inverse) op = &lop_op_recip;
    const lop_attr *attr = op == &lop_op_scale ? &m->root->attr : NULL;
    lop_status st = a->n <= 3 ? LOP_OK : LOP_INTERNAL;
    for (int i = 0; st == LOP_OK && i < a->n; i++)
        if (a->child[i]->op == &lop_op_sizes)
            p[i] = lop_node_ref(a->child[i]);
        else
            st = attr ? multiple(mk, attr, a->child[i], &p[i])
                      : lop_join(mk, op, NULL, a->child[i], b ? b->child[i] : NULL, &p[i]);
    if (st == LOP_OK) st = lop_make(mk, a->op->name, &a->attr, a->n, p, NULL, out);
    for (int i = 0; i < 3; i++) lop_node_unref(p[i]);
    return st;
}

/* A kind without children of the root's shape and dtype: the one that stood there. */
LOP_BUILD(one_kind) { return lop_make(mk, "identity", NULL, 0, NULL, m->root, out); }
LOP_BUILD(zeros) { return lop_make(mk, "zeros", NULL, 0, NULL, m->root, out); }

LOP_BUILD(solve_deficient) {
    const lop_node *a = m->root->child[0];
    const lop_attr how = {.i = {lop_infer_rank(a), lop_rows(a), 0, 0}};
    return lop_make(mk, "rank_deficient", &how, 0, NULL, m->root, out);
}

/* What is asked of the inverse of ?a. */
LOP_BUILD(value_deficient) {
    const lop_node *a = m->node[0];
    const lop_attr how = {.i = {lop_infer_rank(a), lop_rows(a), 0, 0}};
    return lop_make(mk, "rank_deficient", &how, 0, NULL, m->root, out);
}

LOP_BUILD(cast_x) {
    lop_attr a = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_node *x = HOLE(m, 'x');
    if (!x->weak && x->dtype == m->root->dtype) { /* not wrapped again at each level of a chain */
        *out = lop_node_ref(x);
        return LOP_OK;
    }
    return lop_make1(mk, &lop_op_cast, &a, HOLE(m, 'x'), out);
}

/* The kind with its parameters cast to the root's dtype, or what they take of it:
 * op(kind(cast a, ...), x...). */
LOP_BUILD(widen) {
    const lop_node *top = m->root->child[0], *k = top->op == &lop_op_view ? top->child[0] : top;
    const lop_node *p[4] = {0}, *kind = NULL, *seen = NULL,
                   *child[2] = {NULL, m->root->n > 1 ? m->root->child[1] : NULL};
    lop_status st = k->n <= 4 ? LOP_OK : LOP_NOMATCH; /* more: kernels, whose points are cut */
    lop_attr d = {.i = {0, 0, 0, (int64_t)lop_parameter_dtype(k, m->root->dtype) + 1}};
    for (int i = 0; st == LOP_OK && i < k->n; i++)
        if (k->child[i]->op == &lop_op_sizes)
            p[i] = lop_node_ref(k->child[i]);
        else
            st = lop_make1(mk, &lop_op_cast, &d, k->child[i], &p[i]);
    if (st == LOP_OK) st = lop_make(mk, k->op->name, &k->attr, k->n, p, NULL, &kind);
    if (st == LOP_OK && k != top) st = lop_make1(mk, &lop_op_view, &top->attr, kind, &seen);
    child[0] = seen ? seen : kind;
    if (st == LOP_OK)
        st = lop_make(mk, m->root->op->name, &m->root->attr, m->root->n, child, NULL, out);
    for (int i = 0; i < 4; i++) lop_node_unref(p[i]);
    lop_node_unref(kind);
    lop_node_unref(seen);
    return st;
}

/* x / a, for D^-1 x with D = diag(a): a in the dtype of the quotient from its leaves on. */
LOP_BUILD(over_diag) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_node *a;
    lop_status st = lop_make1(mk, &lop_op_cast, &d, HOLE(m, 'a'), &a);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_div, NULL, HOLE(m, 'x'), a, out);
    lop_node_unref(a);
    return st;
}

/* The root's operation on ?a and a ?x that has all digits of the result. */
LOP_BUILD(with_digits) {
    lop_attr d = {.i = {1, 0, 0, (int64_t)lop_digits_of(m->root->dtype, HOLE(m, 'x')->dtype) + 1}};
    const lop_node *x = NULL;
    lop_status st = lop_make1(mk, &lop_op_cast, &d, HOLE(m, 'x'), &x);
    if (st == LOP_OK) st = lop_make2(mk, m->root->op, &m->root->attr, HOLE(m, 'a'), x, out);
    lop_node_unref(x);
    return st;
}

/* x / c: a power of two or not, one rounding. The coefficient keeps its dtype class. Takes over x.
 */
static lop_status over(const lop_maker *mk, lop_attr c, const lop_node *x, const lop_node **out) {
    lop_attr r = c, first;
    int k = 0;
    const lop_coef by = lop_coef_of(&c);
    /* c = d 2^k: 1 / d is near 1, 2^-k in two steps where c is far from it, in float32 too */
    const bool far = !lop_coef_test(mk->ctx, by, LOP_COEF_NEAR);
    if (far) {
        lop_coef_put(&c, lop_coef_fix(mk->ctx, by));
        (void)frexp(fmax(fabs(c.re), fabs(c.im)), &k);
        c.re = ldexp(c.re, -k);
        c.im = ldexp(c.im, -k);
    }
    lop_coef_put(&r, lop_coef_over(mk->ctx, lop_coef_const(1, 0), lop_coef_of(&c)));
    if (r.i[1] > 0 && r.i[1] < LOP_WEAK_FLOAT) r.i[1] = LOP_WEAK_FLOAT;
    if (r.i[1] == 0) r.i[2] = (int64_t)lop_promote_weak(LOP_WEAK_FLOAT, (lop_dtype)r.i[2]);
    first = lop_attr_coef(ldexp(1, -(k / 2)), 0);
    r.re = far ? ldexp(r.re, -(k - k / 2)) : r.re;
    r.im = far ? ldexp(r.im, -(k - k / 2)) : r.im;
    lop_status st = LOP_OK;
    if (far) st = wrap(mk, &lop_op_scale, &first, x, &x);
    return st == LOP_OK ? wrap(mk, &lop_op_scale, &r, x, out) : st;
}

/* A^-1 x, then over c. */
LOP_BUILD(solve_scaled) {
    const lop_attr c = ATTR(m, 'c');
    const lop_node *x;
    if (!lop_coef_test(mk->ctx, lop_coef_of(&c), LOP_COEF_FINITE)) return LOP_NOMATCH;
    lop_status st = lop_make2(mk, &lop_op_solve, NULL, HOLE(m, 'a'), HOLE(m, 'x'), &x);
    return st == LOP_OK ? over(mk, c, x, out) : st;
}
/* Diagonal of (c A)^-1 likewise. */
LOP_BUILD(inverse_scaled_value) {
    const lop_attr c = ATTR(m, 'c');
    const lop_node *inverse = NULL, *x = NULL;
    if (!lop_coef_test(mk->ctx, lop_coef_of(&c), LOP_COEF_FINITE)) return LOP_NOMATCH;
    lop_status st = lop_inverse_closed(mk, HOLE(m, 'a'), &inverse);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, inverse, &x);
    lop_node_unref(inverse);
    return st == LOP_OK ? over(mk, c, x, out) : st;
}

/* Rows from which the inverse is made as such. By Cholesky, with the factor, it takes 0.6 of the
 * time of a solve with the identity (2026-11-26, `inv(Dense(A, "pos")).toarray()`, a Xeon of 2
 * cores); by LU it takes as long. Fewer rows have a factor of another layout, that of stacks, which
 * their solves and determinants share and of which no inverse is made. */
enum { LEAST_INVERSE = 33 };

static bool is_made(const lop_node *solve, const lop_node *x) {
    return x->op == &lop_op_eye && lop_rows(x) >= LEAST_INVERSE &&
           lop_shape_equal(&x->shape, &solve->shape);
}

/* The solve in *out as the fallback branch of one in mixed precision. */
static lop_status mixed(const lop_maker *mk, const lop_op *op, const lop_attr *attr,
                        const lop_node *dense, const lop_node *x, const lop_node **out) {
    const lop_node *safe = *out, *child[3] = {dense, x, safe};
    const bool cholesky = op == &lop_op_cholesky_solve;
    const lop_attr how = {.i = {!cholesky && attr ? attr->i[0] : LOP_N, cholesky, 0, 0}};
    if (safe->dtype != LOP_f64 && safe->dtype != LOP_c128) return LOP_OK;
    lop_status st = lop_make_op(mk, &lop_op_mixed_precision_solve, &how, 3, child, NULL, out);
    lop_node_unref(safe);
    return st;
}

static lop_status by_factor(const lop_match *m, const lop_maker *mk, const lop_op *op,
                            const lop_attr *attr, const lop_node **out) {
    lop_attr d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_node *dense, *x = HOLE(m, 'x');
    lop_status st = lop_make1(mk, &lop_op_todense, &d, HOLE(m, 'a'), &dense);
    if (st != LOP_OK) return st;
    if (is_made(m->root, x)) {
        lop_attr how = {.i = {op == &lop_op_lu_solve ? 0 : attr ? 1 + attr->i[0] : 1, 0, 0, 0}};
        st = lop_make1(mk, &lop_op_invert, &how, dense, out);
    } else {
        st = lop_make2(mk, op, attr, dense, x, out);
        if (st == LOP_OK && mk->ctx->mixed) st = mixed(mk, op, attr, dense, x, out);
    }
    lop_node_unref(dense);
    return st;
}
LOP_BUILD(shift) {
    const lop_node *a = HOLE(m, 'a'),
                   *x = m->root->child[0] == a ? m->root->child[1] : m->root->child[0];
    lop_attr by =
        x->op == &lop_op_scale ? lop_coef_attr(lop_coef_of(&x->attr)) : lop_attr_coef(1, 0);
    return lop_make1(mk, &lop_op_shift, &by, a, out);
}

/* A view of what is its own transpose or adjoint: less of a view, or none. */
static lop_status less_of_view(const lop_maker *mk, const lop_node *view, const lop_node **out) {
    const lop_node *a = view->child[0];
    int64_t mode = view->attr.i[0];
    bool symmetric = lop_node_trait(a, LOP_SYMMETRIC) == LOP_TRUE;
    if (mode & LOP_T) mode ^= symmetric ? LOP_T : LOP_H;
    if (symmetric && lop_node_trait(a, LOP_HERMITIAN) == LOP_TRUE) mode = 0; /* it is real */
    lop_attr less = {.i = {lop_is_complex(a->dtype) ? mode : 0, 0, 0, 0}};
    if (less.i[0]) return lop_make1(mk, &lop_op_view, &less, a, out);
    *out = lop_node_ref(a);
    return LOP_OK;
}
LOP_BUILD(own_view) { return less_of_view(mk, m->root, out); }
LOP_BUILD(solve_own_view) {
    const lop_node *a;
    lop_status st = less_of_view(mk, m->root->child[0], &a);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_solve, NULL, a, HOLE(m, 'x'), out);
    lop_node_unref(a);
    return st;
}

LOP_BUILD(cholsolve) { return by_factor(m, mk, &lop_op_cholesky_solve, NULL, out); }
LOP_BUILD(cholsolve_tried) {
    lop_attr tried = {.i = {1 + lop_infer_assumed_definite(HOLE(m, 'a')), 0, 0, 0}};
    return by_factor(m, mk, &lop_op_cholesky_solve, &tried, out);
}
LOP_BUILD(lusolve) { return by_factor(m, mk, &lop_op_lu_solve, NULL, out); }
/* What a Dense is assumed to be; in a dtype that is complex a real one stays symmetric. */
static lop_attr own_adjoint(const lop_node *a) {
    return (lop_attr){
        .i = {a->attr.i[0] == LOP_ASSUME_HERMITIAN && lop_is_complex(a->dtype), 0, 0, 0}};
}
LOP_BUILD(ldlsolve) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}},
                   how = own_adjoint(HOLE(m, 'a'));
    const lop_node *dense;
    lop_status st = lop_make1(mk, &lop_op_todense, &d, HOLE(m, 'a'), &dense);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_ldl_solve, &how, dense, HOLE(m, 'x'), out);
    lop_node_unref(dense);
    return st;
}
LOP_BUILD(det_ldl) {
    const lop_attr how = own_adjoint(HOLE(m, 'a'));
    const lop_node *dense;
    lop_status st = lop_make1(mk, &lop_op_todense, &ATTR(m, 'k'), HOLE(m, 'a'), &dense);
    if (st != LOP_OK) return st;
    return wrap(mk, &lop_op_ldl_det, &how, dense, out);
}
/* Not where the inverse is made as such: seen transposed, its rows are solutions, and its columns
 * are not. */
LOP_BUILD(lusolve_view) {
    if (is_made(m->root, HOLE(m, 'x'))) return LOP_NOMATCH;
    return by_factor(m, mk, &lop_op_lu_solve, &ATTR(m, 'm'), out);
}

/* attr.i[0]: lower or not, attr.i[1]: mode; the triangle is read where it lies. */
LOP_BUILD(trisolve) {
    const lop_node *a = HOLE(m, 'a');
    lop_attr how = {.i = {0, a->op == &lop_op_view ? a->attr.i[0] : 0, 0, 0}};
    if (a->op == &lop_op_view) a = a->child[0];
    how.i[0] = a->attr.i[0] == LOP_ASSUME_LOWER;
    return lop_make2(mk, &lop_op_triangular_solve, &how, a->child[0], HOLE(m, 'x'), out);
}

/* D + c I, either order: the diagonal plus a vector of c in the identity's dtype. */
LOP_BUILD(diag_plus_identity) {
    const lop_node *root = m->root, *ones = NULL, *d = NULL;
    bool last = root->child[0]->op == &lop_op_diag;
    const lop_node *id = root->child[last ? 1 : 0];
    const lop_attr *c = id->op == &lop_op_scaled ? &id->attr : NULL;
    if (c) id = id->child[0];
    lop_node like = {.shape = id->shape, .dtype = id->dtype, .weak = id->weak, .core = 1};
    like.shape.ndim--;
    lop_status st = lop_make(mk, "ones", NULL, 0, NULL, &like, &ones);
    if (st == LOP_OK && c) st = wrap(mk, &lop_op_scale, c, ones, &ones);
    if (st != LOP_OK) return st;
    st =
        lop_join(mk, &lop_op_add, NULL, last ? HOLE(m, 'a') : ones, last ? ones : HOLE(m, 'a'), &d);
    lop_node_unref(ones);
    return st == LOP_OK ? wrap(mk, &lop_op_diag, NULL, d, out) : st;
}

/* The real or imaginary part of an array, in dtype `dt`. Takes over `value`. */
static lop_status part_of_array(const lop_maker *mk, const lop_attr *part, lop_dtype dt,
                                const lop_node *value, const lop_node **out) {
    lop_attr cast = {.i = {0, 0, 0, (int64_t)dt + 1}}, real = cast, turn = lop_attr_coef(0, -1);
    lop_status st = LOP_OK;
    if (part->i[0]) st = wrap(mk, &lop_op_scale, &turn, value, &value);
    if (st == LOP_OK) real.i[3] = (int64_t)lop_dtype_real(value->dtype) + 1;
    if (st == LOP_OK) st = wrap(mk, &lop_op_cast, &real, value, &value);
    return st == LOP_OK ? wrap(mk, &lop_op_cast, &cast, value, out) : st;
}

LOP_BUILD(part_value) {
    const lop_node *a = HOLE(m, 'a'), *value;
    lop_attr own = m->root->attr;
    own.i[3] = (int64_t)lop_promote(a->dtype, (lop_dtype)(own.i[3] - 1)) + 1;
    const lop_node *child[3] = {a};
    if (m->root->n > 3) return LOP_NOMATCH;
    for (int i = 1; i < m->root->n; i++)
        child[i] = m->root->child[i]; /* where a projection looks */
    lop_status st = lop_make_op(mk, m->root->op, &own, m->root->n, child, NULL, &value);
    return st == LOP_OK ? part_of_array(mk, &ATTR(m, 'p'), m->root->dtype, value, out) : st;
}

LOP_BUILD(apply_part) {
    const lop_node *a = HOLE(m, 'a'), *x = HOLE(m, 'x'), *one = NULL, *conj = NULL, *two = NULL,
                   *both = NULL;
    bool imag = ATTR(m, 'p').i[0] != 0;
    lop_attr mode = {.i = {LOP_C, 0, 0, 0}},
             half = imag ? lop_attr_coef(0, -0.5) : lop_attr_coef(0.5, 0),
             minus = lop_attr_coef(-1, 0);
    lop_status st = lop_make2(mk, &lop_op_apply, NULL, a, x, &one);
    if (st != LOP_OK) return st;
    if (!lop_is_complex(x->dtype))
        return part_of_array(mk, &ATTR(m, 'p'), m->root->dtype, one, out);
    st = lop_make1(mk, &lop_op_view, &mode, a, &conj);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, conj, x, &two);
    if (st == LOP_OK && imag) st = wrap(mk, &lop_op_scale, &minus, two, &two);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_add, NULL, one, two, &both);
    if (st == LOP_OK) st = wrap(mk, &lop_op_scale, &half, both, out);
    lop_node_unref(one);
    lop_node_unref(two);
    lop_node_unref(conj);
    return st;
}

static lop_status eye_of(const lop_maker *mk, int64_t n, lop_dtype dt, const lop_node **out) {
    lop_node like = {.shape = {.ndim = 2, .dim = {n, n}}, .dtype = dt, .core = 2};
    return lop_make(mk, "eye", NULL, 0, NULL, &like, out);
}
LOP_BUILD(eye) {
    lop_node like = {.shape = m->root->shape, .dtype = m->root->dtype, .core = 2};
    return lop_make(mk, "eye", NULL, 0, NULL, &like, out);
}
LOP_BUILD(apply_eye) {
    const lop_node *eye;
    lop_status st = eye_of(mk, lop_cols(HOLE(m, 'a')), m->root->dtype, &eye);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_apply, NULL, HOLE(m, 'a'), eye, out);
    lop_node_unref(eye);
    return st;
}

LOP_BUILD(diagonal_view) {
    lop_attr k = ATTR(m, 'k');
    int64_t mode = ATTR(m, 'm').i[0];
    if (mode & LOP_T) k.i[0] = -k.i[0];
    lop_status st = lop_make1(mk, &lop_op_diagonal, &k, HOLE(m, 'a'), out);
    if (st != LOP_OK || !(mode & LOP_C)) return st;
    return wrap(mk, &lop_op_conjugate, NULL, *out, out);
}

/* Both factors dense, the product never. Where that is more than the product itself, the dense
 * form. */
LOP_BUILD(diagonal_prod) {
    lop_attr k = ATTR(m, 'k'), only = {.i = {k.i[0], 0, 0, 0}};
    const lop_node *a = NULL, *b = NULL;
    lop_status st =
        lop_make1(mk, &lop_op_todense, &(lop_attr){.i = {0, 0, 0, k.i[3]}}, HOLE(m, 'a'), &a);
    if (st == LOP_OK)
        st = lop_make1(mk, &lop_op_todense, &(lop_attr){.i = {0, 0, 0, k.i[3]}}, HOLE(m, 'b'), &b);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_product_diagonal, &only, a, b, out);
    lop_node_unref(a);
    lop_node_unref(b);
    return st;
}
LOP_BUILD(diagonal_dense) {
    lop_attr d = {.i = {0, 0, 0, ATTR(m, 'k').i[3]}}, k = {.i = {ATTR(m, 'k').i[0], 0, 0, 0}};
    const lop_node *dense;
    lop_status st = lop_make1(mk, &lop_op_todense, &d, HOLE(m, 'a'), &dense);
    return st == LOP_OK ? wrap(mk, &lop_op_array_diagonal, &k, dense, out) : st;
}

/* The diagonal in the operator's dtype, summed in the trace's (integers: 64 bits, as np.trace). */
LOP_BUILD(trace_diagonal) {
    lop_attr own = {.i = {0, 0, 0, m->root->attr.i[3]}},
             wide = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_node *d = NULL, *cast = NULL;
    lop_status st = lop_make1(mk, &lop_op_diagonal, &own, m->root->child[0], &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &wide, d, &cast);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, cast, out);
    lop_node_unref(d);
    lop_node_unref(cast);
    return st;
}

LOP_BUILD(trace_identity) {
    const lop_node *a = m->root->child[0], *one = NULL;
    if (lop_rows(a) == 0) return lop_build_trace_diagonal(m, mk, out);
    lop_attr at = {.i = {0, 0, 0, m->root->attr.i[3]}}, n = lop_attr_coef((double)lop_rows(a), 0);
    lop_status st = lop_make1(mk, &lop_op_element, &at, a, &one);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &n, one, out);
    lop_node_unref(one);
    return st;
}

LOP_BUILD(element_view) {
    lop_attr k = ATTR(m, 'k');
    int64_t mode = ATTR(m, 'm').i[0];
    if (mode & LOP_T) {
        int64_t i = k.i[0];
        k.i[0] = k.i[1];
        k.i[1] = i;
    }
    lop_status st = lop_make1(mk, &lop_op_element, &k, HOLE(m, 'a'), out);
    if (st != LOP_OK || !(mode & LOP_C)) return st;
    return wrap(mk, &lop_op_conjugate, NULL, *out, out);
}
LOP_BUILD(element_dense) {
    lop_attr at = {.i = {ATTR(m, 'k').i[0], ATTR(m, 'k').i[1], 0, 0}},
             d = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    const lop_node *e, *a = HOLE(m, 'a');
    bool sum = a->op != &lop_op_array; /* an expression is computed in the wider dtype */
    lop_status st =
        lop_make1(mk, sum ? &lop_op_cast : &lop_op_array_element, sum ? &d : &at, a, &e);
    if (st != LOP_OK) return st;
    return sum ? wrap(mk, &lop_op_array_element, &at, e, out) : wrap(mk, &lop_op_cast, &d, e, out);
}
LOP_BUILD(element_eye) {
    lop_attr at = {.i = {ATTR(m, 'k').i[0] == ATTR(m, 'k').i[1] ? 0 : 1, 0, 0, 0}};
    lop_node like = {.shape = m->root->shape, .dtype = m->root->dtype, .core = 2};
    like.shape.dim[like.shape.ndim++] = 2;
    like.shape.dim[like.shape.ndim++] = 2;
    const lop_node *eye; /* one element of a 2 x 2 unit matrix */
    lop_status st = lop_make(mk, "eye", NULL, 0, NULL, &like, &eye);
    return st == LOP_OK ? wrap(mk, &lop_op_array_element, &at, eye, out) : st;
}
LOP_BUILD(element_column) {
    lop_attr k = ATTR(m, 'k'), row = {.i = {k.i[0], 0, 0, 0}}, one = {.i = {k.i[1], 0, 0, 0}};
    lop_node like = {.shape = {.ndim = 2, .dim = {lop_cols(HOLE(m, 'a')), 1}},
                     .dtype = m->root->dtype,
                     .core = 2};
    const lop_node *unit, *column;
    lop_status st = lop_make(mk, "unit", &one, 0, NULL, &like, &unit);
    if (st != LOP_OK) return st;
    st = lop_make2(mk, &lop_op_apply, NULL, HOLE(m, 'a'), unit, &column);
    lop_node_unref(unit);
    return st == LOP_OK ? wrap(mk, &lop_op_array_element, &row, column, out) : st;
}

lop_status lop_make_diagonal(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    if (a->op == &lop_op_scaled) {
        const lop_node *d = NULL;
        lop_status st = lop_make_diagonal(mk, a->child[0], &d);
        return st == LOP_OK ? wrap(mk, &lop_op_scale, &a->attr, d, out) : st;
    }
    if (a->op == &lop_op_diag) {
        *out = lop_node_ref(a->child[0]);
        return LOP_OK;
    }
    lop_node like = {.shape = a->shape, .dtype = a->dtype, .weak = a->weak, .core = 1};
    like.shape.ndim--;
    return lop_make(mk, "ones", NULL, 0, NULL, &like, out);
}
