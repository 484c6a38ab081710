/* between_bands.c: A^-1 X A^-1 and A^-2 of bands A and X, which gradients of tr(A^-1) and second
 * derivatives of determinants read: on the band of A by the derivative of the factor's sweep
 * (op_band_between.c), checked, else off the dense form. */
#include "builds.h"
#include "expr/properties.h"
#include "ops/projections/projections.h"
#include "rewrite/cheap_to_solve.h"

/* A and X of the product, a view of both inverses moved to A; `b` is the band that holds both. */
typedef struct between {
    const lop_node *a, *x; /* owned */
    lop_band b;
} between;

static void drop(between *p) {
    lop_node_unref(p->a);
    lop_node_unref(p->x);
}

/* S of S^-1, seen through views: their mode in all. NULL: it is no inverse. */
static const lop_node *inverted(const lop_node *a, int64_t *mode) {
    for (*mode = LOP_N; a->op == &lop_op_view; a = a->child[0]) *mode ^= a->attr.i[0];
    if (a->op != &lop_op_inverse) return NULL;
    a = a->child[0];
    if (!lop_is_complex(a->dtype)) *mode &= LOP_T;
    if (*mode && lop_infer_hermitian(a) && (*mode & LOP_T))
        *mode = *mode == LOP_T && lop_is_complex(a->dtype) ? LOP_C : LOP_N;
    return a;
}

/* NOMATCH: P is not that, or its bands are wide. */
static lop_status read_between(const lop_maker *mk, const lop_node *p, lop_dtype dt, between *r) {
    const lop_node *left, *x, *right;
    int64_t mode = 0, other = 0;
    *r = (between){NULL};
    if (!lop_is_blas(dt) || lop_nbatch(p) > 0 || !lop_factors_between(p, &left, &x, &right))
        return LOP_NOMATCH;
    const lop_node *s = inverted(left, &mode), *t = s ? inverted(right, &other) : NULL;
    if (!t || mode != other || !lop_is_square(s) || lop_rows(s) < 2 || !lop_is_blas(s->dtype) ||
        s->op == &lop_op_diag || (x && (!lop_is_square(x) || lop_nbatch(x) > 0)) ||
        !lop_node_alike(s, t, LOP_INFER_DEPTH))
        return LOP_NOMATCH;
    const lop_attr view = {.i = {mode, 0, 0, 0}};
    const int64_t n = lop_rows(s);
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    lop_status st = LOP_OK;
    if (mode)
        st = lop_make1(mk, &lop_op_view, &view, s, &r->a);
    else
        r->a = lop_node_ref(s);
    if (st == LOP_OK && x)
        r->x = lop_node_ref(x);
    else if (st == LOP_OK)
        st = lop_make(mk, "identity", NULL, 0, NULL, &like, &r->x);
    if (st != LOP_OK) return st;
    const lop_band a = lop_infer_bands(r->a), in = lop_infer_bands(r->x);
    r->b = (lop_band){in.l > a.l ? in.l : a.l, in.u > a.u ? in.u : a.u};
    const bool narrow =
        a.l >= 0 && a.u >= 0 && r->b.l < n / 4 && r->b.u < n / 4 && lop_band_is_narrow(s, r->b);
    return narrow ? LOP_OK : LOP_NOMATCH;
}

/* Diagonal k of what was read of p. */
static lop_status diagonal_of(const lop_maker *mk, const between *r, const lop_node *p, int64_t k,
                              lop_dtype dt, const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}}, at = {.i = {k, 0, 0, 0}};
    const bool own = r->b.l == r->b.u && lop_infer_hermitian(r->a),
               definite = own && lop_infer_assumed_definite(r->a);
    const lop_attr how = {.i = {r->b.l, r->b.u,
                                definite ? LOP_ASSUME_POSITIVE
                                : own    ? LOP_ASSUME_TRIED
                                         : LOP_ASSUME_GENERAL,
                                k}};
    const lop_node *v[3] = {NULL}, *dense = NULL;
    lop_status st = lop_make_band(mk, r->a, r->b, dt, &v[0]);
    if (st == LOP_OK) st = lop_make_band(mk, r->x, r->b, dt, &v[1]);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &d, p, &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal, &at, dense, &v[2]);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_bandbetween, &how, 3, v, NULL, out);
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
    lop_node_unref(dense);
    return st;
}

LOP_BUILD(diagonal_between_bands) {
    const lop_node *p = m->root->child[0];
    const int64_t k = m->root->attr.i[0];
    between r;
    lop_status st = read_between(mk, p, m->root->dtype, &r);
    if (st == LOP_OK && (k > r.b.l || -k > r.b.u)) st = LOP_NOMATCH;
    if (st == LOP_OK) st = diagonal_of(mk, &r, p, k, m->root->dtype, out);
    drop(&r);
    return st;
}

LOP_BUILD(trace_between_bands) {
    between r;
    const lop_status st = read_between(mk, m->root->child[0], m->root->dtype, &r);
    drop(&r);
    return st == LOP_OK ? lop_build_trace_diagonal(m, mk, out) : st;
}

enum { MOST = 32 };
/* How diagonal k of `p` is made, by what was read of it. */
typedef lop_status diagonal_maker(const lop_maker *mk, const between *r, const lop_node *p,
                                  int64_t k, lop_dtype dt, const lop_node **out);

/* Which diagonals the blocks lie on that are asked for: l to the left, u to the right. False: the
 * entries are no such blocks, or too large. */
static bool lie_on(const lop_node *root, int64_t *l, int64_t *u) {
    if (root->attr.i[0] != LOP_AT_BLOCKS || root->n != 3) return false;
    const int64_t b = lop_cols(root->child[1]), place = root->attr.i[1], off = place * b;
    if (b < 1 || b > MOST / 4 || place < -1 || place > 1) return false;
    *u = off + b - 1 > 0 ? off + b - 1 : 0;
    *l = b - 1 - off > 0 ? b - 1 - off : 0;
    return lop_rows(root->child[0]) > MOST;
}

/* Blocks beside the diagonal, off the diagonals that they lie on. */
static lop_status blocks_of(const lop_maker *mk, const lop_node *root, int64_t l, int64_t u,
                            diagonal_maker *make, const between *r, const lop_node **out) {
    const lop_node *p = root->child[0], *d[MOST] = {NULL},
                   *v[3] = {NULL, root->child[1], root->child[2]};
    const lop_attr at = {.i = {l, u, lop_rows(p), lop_cols(p)}};
    lop_attr how = root->attr;
    lop_status st = LOP_OK;
    for (int64_t k = 0; st == LOP_OK && k <= l + u; k++)
        st = make(mk, r, p, u - k, root->dtype, &d[k]);
    if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_band_join, &at, (int)(l + u + 1), d, NULL, &v[0]);
    how.i[2] = lop_rows(p);
    how.i[3] = lop_band_pack(l, u);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_band_entry_sums, &how, 3, v, NULL, out);
    for (int k = 0; k < MOST; k++) lop_node_unref(d[k]);
    lop_node_unref(v[0]);
    return st;
}

LOP_BUILD(entries_between_bands) {
    int64_t l, u;
    between r;
    if (!lie_on(m->root, &l, &u)) return LOP_NOMATCH;
    lop_status st = read_between(mk, m->root->child[0], m->root->dtype, &r);
    if (st == LOP_OK && (u > r.b.l || l > r.b.u)) st = LOP_NOMATCH;
    if (st == LOP_OK) st = blocks_of(mk, m->root, l, u, diagonal_of, &r, out);
    drop(&r);
    return st;
}

static lop_status diagonal_of_inverse(const lop_maker *mk, const between *r, const lop_node *p,
                                      int64_t k, lop_dtype dt, const lop_node **out) {
    (void)r;
    const lop_attr at = {.i = {k, 0, 0, (int64_t)dt + 1}};
    return lop_make1(mk, &lop_op_diagonal, &at, p, out);
}

/* Of the inverse of what is a band by how it is written, as half of P + P.T of a BlockTridiagonal.
 */
LOP_BUILD(entries_inverse_band) {
    int64_t l, u;
    const lop_node *p = m->root->child[0], *a = p->child[0];
    if (!lie_on(m->root, &l, &u) || !lop_is_blas(m->root->dtype) || lop_nbatch(p) > 0 ||
        !lop_is_square(a))
        return LOP_NOMATCH;
    const lop_band b = lop_infer_bands(a);
    if (b.l < 0 || b.u < 0 || u > b.l || l > b.u || !lop_band_is_narrow(a, b)) return LOP_NOMATCH;
    return blocks_of(mk, m->root, l, u, diagonal_of_inverse, NULL, out);
}
