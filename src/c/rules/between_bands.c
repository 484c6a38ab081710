/* between_bands.c: A^-1 X A^-1 and A^-2 of bands A and X, which gradients of tr(A^-1) and second
 * derivatives of determinants read: on the band of A by the derivative of the factor's sweep
 * (op_band_between.c), checked, else off the dense form. */
#include "product_words.h"
#include "expr/properties.h"
#include "ops/shared/convolution.h"
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

enum { MOST = 32, TERMS = 8 };
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

/* Which diagonals the entries lie on: blocks, or a box of one level that does not wrap. */
static bool meet(const lop_node *root, int64_t *l, int64_t *u) {
    lopk_conv c;
    if (lie_on(root, l, u)) return true;
    if (root->attr.i[0] != LOP_AT_BOXES || lop_rows(root->child[0]) <= MOST ||
        !lop_conv_geometry(root->attr.i[1], &root->child[1]->shape, &root->child[2]->shape, &c) ||
        c.levels != 1 || c.circular || c.g[0] > MOST)
        return false;
    *u = c.shift[0];
    *l = c.g[0] - 1 - c.shift[0];
    return true;
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
    if (!meet(m->root, &l, &u)) return LOP_NOMATCH;
    lop_status st = read_between(mk, m->root->child[0], m->root->dtype, &r);
    if (st == LOP_OK && (u > r.b.l || l > r.b.u)) st = LOP_NOMATCH;
    if (st == LOP_OK) st = blocks_of(mk, m->root, l, u, diagonal_of, &r, out);
    drop(&r);
    return st;
}

/* The root's sums off diagonals u, ..., -l side by side. */
static lop_status sums_off(const lop_maker *mk, const lop_node *root, int64_t l, int64_t u,
                           const lop_node *lines, const lop_node **out) {
    const lop_node *v[3] = {lines, root->child[1], root->child[2]};
    lop_attr how = root->attr;
    how.i[2] = lop_rows(root->child[0]);
    how.i[3] = lop_band_pack(l, u);
    return lop_make_op(mk, &lop_op_band_entry_sums, &how, 3, v, NULL, out);
}

/* Of the inverse of what is a band by how it is written, as half of P + P.T of a BlockTridiagonal.
 */
LOP_BUILD(entries_inverse_band) {
    int64_t l, u;
    const lop_node *p = m->root->child[0], *a = p->child[0], *lines = NULL;
    if (!meet(m->root, &l, &u)) return LOP_NOMATCH;
    const lop_band b = lop_infer_bands(a);
    if (u > b.l || l > b.u) return LOP_NOMATCH;
    lop_status st = lop_band_of_inverse(mk, a, m->root->dtype, &lines);
    if (st == LOP_OK) st = sums_off(mk, m->root, b.u, b.l, lines, out);
    lop_node_unref(lines);
    return st;
}

/* -- L A^-1 R, L and R bands */

/* The factor that is the inverse of a band, and what stands in the place of it: the diagonals of
 * A^-1 that the asked ones read. */
typedef struct near {
    int at;
    const lop_node *a; /* owned: A, seen as it is there */
    int64_t low, high; /* -low, ..., high of A^-1 are read */
} near;

/* NOMATCH: there is no such factor, there are two, or what is read leaves A's own band. */
static lop_status read_near(const lop_maker *mk, const lop_word *w, int64_t l, int64_t u, near *r) {
    *r = (near){.at = -1, .low = l, .high = u};
    lop_status st = w->n > 1 && w->n <= TERMS ? LOP_OK : LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < w->n; i++) {
        int64_t mode;
        const lop_node *s = inverted(w->f[i], &mode);
        const lop_attr view = {.i = {mode, 0, 0, 0}};
        if (!s) {
            const lop_band b = lop_infer_bands(w->f[i]);
            if (b.l < 0 || b.u < 0 || b.l > MOST || b.u > MOST || lop_nbatch(w->f[i]) ||
                !lop_is_blas(w->f[i]->dtype))
                return LOP_NOMATCH;
            r->high += b.l;
            r->low += b.u;
        } else if (r->at >= 0) {
            return LOP_NOMATCH;
        } else {
            r->at = i;
            st = mode ? lop_make1(mk, &lop_op_view, &view, s, &r->a)
                      : (r->a = lop_node_ref(s), LOP_OK);
        }
    }
    if (st == LOP_OK && r->at < 0) st = LOP_NOMATCH;
    if (st != LOP_OK) return st;
    const lop_band b = lop_infer_bands(r->a);
    return r->high <= b.l && r->low <= b.u ? LOP_OK : LOP_NOMATCH;
}

/* These diagonals of A^-1 as a band. Owned. */
static lop_status near_inverse(const lop_maker *mk, const near *r, lop_dtype dt,
                               const lop_node **out) {
    const lop_band b = lop_infer_bands(r->a);
    const lop_attr turn = {.i = {LOP_T, 0, 0, 0}},
                   rows = {.i = {0, b.l - r->high, 1, r->high + r->low + 1}},
                   how = {.i = {r->low, r->high, LOP_ASSUME_GENERAL, 0}};
    const lop_node *lines = NULL, *ab = NULL, *some = NULL;
    lop_status st = lop_band_of_inverse(mk, r->a, dt, &lines);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_swap, &turn, lines, &ab);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_slice, &rows, ab, &some);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_banded, &how, some, out);
    lop_node_unref(lines);
    lop_node_unref(ab);
    lop_node_unref(some);
    return st;
}

/* Diagonals u, ..., -l of a band side by side, of no fewer rows than columns. Owned. */
static lop_status lines_of(const lop_maker *mk, const lop_node *a, lop_band b, lop_dtype dt,
                           const lop_node **out) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lop_cols(a), b.l + b.u + 1}}, .dtype = dt, .core = 2};
    const lop_attr how = {.i = {b.l, b.u, 0, 0}}, turn = {.i = {LOP_T, 0, 0, 0}},
                   rows = {.i = {0, 0, 1, lop_cols(a)}};
    const lop_node *probe = NULL, *few = NULL, *ab = NULL, *lines = NULL;
    lop_status st = lop_make(mk, "bandprobe", NULL, 0, NULL, &like, &probe);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, a, probe, &few);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_band_from_products, &how, few, &ab);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_swap, &turn, ab, &lines);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_slice, &rows, lines, out);
    lop_node_unref(probe);
    lop_node_unref(few);
    lop_node_unref(ab);
    lop_node_unref(lines);
    return st;
}

/* The root's value of w times its number, through what is near, in the place of the inverse. */
static lop_status of_near(const lop_maker *mk, const lop_node *root, const lop_word *w, int64_t l,
                          int64_t u, const lop_node **out) {
    const lop_dtype dt = root->dtype;
    const lop_attr by = lop_coef_attr(w->c);
    const lop_node *f[TERMS], *band = NULL, *p = NULL, *lines = NULL, *sums = NULL;
    near r;
    lop_status st = read_near(mk, w, l, u, &r);
    if (st == LOP_OK) st = near_inverse(mk, &r, dt, &band);
    for (int i = 0; st == LOP_OK && i < w->n; i++) f[i] = i == r.at ? band : w->f[i];
    if (st == LOP_OK) st = lop_product_of(mk, f, w->n, &p);
    const lop_band b = st == LOP_OK ? lop_infer_bands(p) : (lop_band){0, 0};
    if (st == LOP_OK && (b.l < l || b.u < u || b.l + b.u >= lop_cols(p))) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lines_of(mk, p, b, dt, &lines);
    if (st == LOP_OK) st = sums_off(mk, root, b.l, b.u, lines, &sums);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, sums, out);
    const lop_node *gone[] = {r.a, band, p, lines, sums};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
/* Likewise of a product through few columns. */
static lop_status of_thin(const lop_maker *mk, const lop_node *root, const lop_word *w,
                          const lop_node **out) {
    const lop_node *child[3] = {NULL, root->n > 1 ? root->child[1] : NULL,
                                root->n > 2 ? root->child[2] : NULL},
                   *value = NULL;
    const lop_attr by = lop_coef_attr(w->c);
    bool thin = false;
    for (int i = 0; i < w->n; i++)
        thin = thin || TERMS * lop_infer_rank(w->f[i]) <= lop_rows(root->child[0]);
    if (!thin) return LOP_NOMATCH;
    lop_status st = lop_product_of(mk, w->f, w->n, &child[0]);
    if (st == LOP_OK) st = lop_make_op(mk, root->op, &root->attr, root->n, child, NULL, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, value, out);
    lop_node_unref(child[0]);
    lop_node_unref(value);
    return st;
}

/* The root's value of a product times its number, which lies on diagonals l to u; NOMATCH. */
typedef lop_status near_value(const lop_maker *mk, const lop_node *root, const lop_word *w,
                              int64_t l, int64_t u, const lop_node **out);
/* Of w with a term, seen through the mode, in the place of factor `at`; added to *sum. */
static lop_status add_term(const lop_maker *mk, const lop_node *root, const lop_word *w, int at,
                           const lop_node *term, int mode, int64_t l, int64_t u, near_value *of,
                           bool *pays, const lop_node **sum) {
    lop_word all;
    const lop_node *one = NULL, *more = NULL;
    lop_status st = lop_word_with(mk, w, at, term, mode, &all);
    if (st == LOP_OK) st = of(mk, root, &all, l, u, &one);
    *pays = *pays || st == LOP_OK;
    if (st == LOP_NOMATCH) st = of_thin(mk, root, &all, &one);
    if (st == LOP_OK && one->dtype != root->dtype) st = LOP_NOMATCH;
    if (st == LOP_OK && *sum) st = lop_make2(mk, &lop_op_add, NULL, *sum, one, &more);
    lop_word_close(&all);
    if (st != LOP_OK || *sum) {
        lop_node_unref(one);
        one = more;
    }
    if (st != LOP_OK) return st;
    lop_node_unref(*sum);
    *sum = one;
    return LOP_OK;
}

/* Of what the root is asked of, alone or as a term of a sum among bands, which `wide` tells from a
 * band, the others of few columns. */
static lop_status among_bands(const lop_maker *mk, const lop_node *root,
                              bool (*wide)(const lop_node *), int64_t l, int64_t u, near_value *of,
                              const lop_node **out) {
    const lop_node *term[TERMS], *sum = NULL;
    int at = -1, mode = LOP_N, terms = 0;
    lop_coef c = lop_coef_const(1, 0);
    lop_word w;
    bool pays = false;
    lop_status st = lop_word_opened(mk, root->child[0], LOP_N, &w);
    for (int i = 0; st == LOP_OK && at < 0 && i < w.n; i++) {
        const lop_node *s = wide(w.f[i]) ? lop_sum_seen(w.f[i], &mode, &c) : NULL;
        if (s && (terms = lop_terms_of(s, term, TERMS)) > 0) at = i;
    }
    if (st == LOP_OK && at < 0) {
        st = of(mk, root, &w, l, u, out);
    } else if (st == LOP_OK) {
        w.c = lop_coef_times(mk->ctx, w.c, c);
        for (int i = 0; st == LOP_OK && i < terms; i++)
            st = add_term(mk, root, &w, at, term[i], mode, l, u, of, &pays, &sum);
        if (st == LOP_OK && !pays) st = LOP_NOMATCH;
        if (st == LOP_OK)
            *out = sum;
        else
            lop_node_unref(sum);
    }
    lop_word_close(&w);
    return st;
}

static bool has_many_diagonals(const lop_node *a) {
    const lop_band b = lop_infer_bands(a);
    return b.l > MOST || b.u > MOST;
}
LOP_BUILD(entries_near_band_inverse) {
    const lop_node *root = m->root, *a = root->child[0];
    int64_t l, u;
    if (!meet(root, &l, &u) || lop_rows(a) < lop_cols(a) || lop_nbatch(a) ||
        !lop_is_blas(root->dtype) || !lop_is_blas(a->dtype))
        return LOP_NOMATCH;
    return among_bands(mk, root, has_many_diagonals, l, u, of_near, out);
}

/* -- diagonal k of L A^-1 X A^-1 R, L and R bands: what derivatives by a band's factor read */

/* The two inverses of one A among w's factors and how far the others beside them reach; NOMATCH. */
typedef struct beside {
    int at[2];
    int64_t l, u;
} beside;
static lop_status read_beside(const lop_word *w, beside *r) {
    const lop_node *s[2] = {NULL};
    int64_t mode[2];
    int found = 0;
    *r = (beside){{0, 0}, 0, 0};
    for (int i = 0; i < w->n && found < 3; i++) {
        int64_t seen;
        const lop_node *a = inverted(w->f[i], &seen);
        if (a && found < 2) {
            s[found] = a;
            mode[found] = seen;
            r->at[found] = i;
        }
        found += a != NULL;
    }
    if (found != 2 || mode[0] != mode[1] || !lop_node_alike(s[0], s[1], LOP_INFER_DEPTH) ||
        (r->at[0] == 0 && r->at[1] == w->n - 1))
        return LOP_NOMATCH;
    for (int i = 0; i < w->n; i++) {
        const lop_band b = lop_infer_bands(w->f[i]);
        if (i >= r->at[0] && i <= r->at[1]) continue;
        if (b.l < 0 || b.u < 0 || b.l > MOST || b.u > MOST || lop_nbatch(w->f[i]) ||
            !lop_is_square(w->f[i]) || !lop_is_blas(w->f[i]->dtype))
            return LOP_NOMATCH;
        r->l += b.l;
        r->u += b.u;
    }
    return LOP_OK;
}

/* Diagonals l below to u above of p, which has n rows, as a band. Owned. */
static lop_status lines_as_band(const lop_maker *mk, const lop_node *p, int64_t l, int64_t u,
                                lop_dtype dt, const lop_node **out) {
    const lop_attr all = {.i = {l, u, lop_rows(p), lop_cols(p)}}, turn = {.i = {LOP_T, 0, 0, 0}},
                   how = {.i = {l, u, LOP_ASSUME_GENERAL, 0}};
    const lop_node *d[MOST] = {NULL}, *lines = NULL, *ab = NULL;
    lop_status st = l + u < MOST ? LOP_OK : LOP_NOMATCH;
    for (int64_t k = 0; st == LOP_OK && k <= l + u; k++) {
        const lop_attr at = {.i = {u - k, 0, 0, (int64_t)dt + 1}};
        st = lop_make1(mk, &lop_op_diagonal, &at, p, &d[k]);
    }
    if (st == LOP_OK)
        st = lop_make_op(mk, &lop_op_band_join, &all, (int)(l + u + 1), d, NULL, &lines);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_swap, &turn, lines, &ab);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_banded, &how, ab, out);
    for (int k = 0; k < MOST; k++) lop_node_unref(d[k]);
    lop_node_unref(lines);
    lop_node_unref(ab);
    return st;
}

/* Diagonal k = u = -l of w times its number. */
static lop_status of_beside(const lop_maker *mk, const lop_node *root, const lop_word *w,
                            int64_t below, int64_t k, const lop_node **out) {
    (void)below;
    const lop_dtype dt = root->dtype;
    const lop_attr by = lop_coef_attr(w->c);
    const lop_node *f[LOP_FACTORS], *p = NULL, *band = NULL, *whole = NULL, *d = NULL;
    beside s;
    between r = {NULL};
    int n = 0;
    lop_status st = read_beside(w, &s);
    if (st != LOP_OK) return st;
    const int64_t u = k + s.l > 0 ? k + s.l : 0, l = s.u - k > 0 ? s.u - k : 0;
    st = lop_product_of(mk, w->f + s.at[0], s.at[1] - s.at[0] + 1, &p);
    if (st == LOP_OK) st = read_between(mk, p, dt, &r);
    if (st == LOP_OK && (u > r.b.l || l > r.b.u)) st = LOP_NOMATCH;
    drop(&r);
    if (st == LOP_OK) st = lines_as_band(mk, p, l, u, dt, &band);
    for (int i = 0; i < w->n; i++)
        if (i <= s.at[0] || i > s.at[1]) f[n++] = i == s.at[0] ? band : w->f[i];
    if (st == LOP_OK) st = lop_product_of(mk, f, n, &whole);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &root->attr, whole, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, d, out);
    const lop_node *gone[] = {p, band, whole, d};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

static bool is_no_band(const lop_node *a) {
    const lop_band b = lop_infer_bands(a);
    return b.l < 0 || b.u < 0 || !lop_band_is_narrow(a, b);
}
LOP_BUILD(diagonal_beside_between_bands) {
    const lop_node *root = m->root, *a = root->child[0];
    const int64_t k = root->attr.i[0];
    if (lop_nbatch(a) || !lop_is_blas(root->dtype) || !lop_is_square(a)) return LOP_NOMATCH;
    return among_bands(mk, root, is_no_band, -k, k, of_beside, out);
}

/* -- of what is meant for a factor of a KronSum: the sums of blocks' diagonals, which lie on one */

static bool is_identity(const lop_node *x) {
    if (x->op == &lop_op_todense) x = x->child[0];
    return x->op == &lop_op_identity || x->op == &lop_op_eye;
}
/* OK where diagonal k of p has a way of its own, as of A^-1 and A^-1 X A^-1 of bands; NOMATCH. */
static lop_status is_read(const lop_maker *mk, const lop_node *p, lop_dtype dt, int64_t k) {
    lop_band b = {0, 0};
    const lop_node *a = p;
    lop_status st = LOP_OK;
    between r;
    while (a->op == &lop_op_view) a = a->child[0];
    if (a->op == &lop_op_inverse && lop_is_square(a)) {
        const lop_node *s = a->child[0];
        b = lop_infer_bands(s);
        if (!lop_is_blas(s->dtype) || b.l != b.u || !lop_band_is_narrow(s, b)) return LOP_NOMATCH;
    } else {
        st = read_between(mk, p, dt, &r);
        b = r.b;
        drop(&r);
    }
    if (st != LOP_OK) return st;
    return b.l > 0 && k <= b.l && -k <= b.u ? LOP_OK : LOP_NOMATCH;
}

/* Diagonal k of sum_q P[(., q), (., q)] is the sum over q of one of P's. */
LOP_BUILD(diagonal_of_partial) {
    const lop_node *root = m->root, *part = root->child[0]->child[0], *p = part->child[0],
                   *x = part->child[1];
    const bool first = part->attr.i[0] != 0;
    const int64_t k = root->attr.i[0], n = lop_rows(p), places = lop_rows(x),
                  own = places > 0 ? n / places : 0, off = first ? k : k * places;
    const lop_dtype dt = part->dtype;
    if (!is_identity(x) || lop_nbatch(p) || root->dtype != dt || !lop_is_blas(dt) ||
        !lop_is_square(p) || own < 2 || k >= own || -k >= own)
        return LOP_NOMATCH;
    lop_status st = is_read(mk, p, dt, off);
    if (st != LOP_OK) return st;
    const lop_attr at = {.i = {off, 0, 0, (int64_t)dt + 1}}, where = {.i = {off, n, n, 0}},
                   fold = {.i = {1, first ? places : own, first ? own : places, 1}},
                   turn = {.i = {LOP_T, 0, 0, 0}}, matrix = {.i = {2, 0, 0, 0}},
                   rows = {.i = {0, k < 0 ? -k : 0, 1, own - (k < 0 ? -k : k)}};
    const lop_node *d = NULL, *line = NULL, *ones[2] = {NULL}, *c = NULL, *folded = NULL,
                   *op = NULL, *seen = NULL, *sums = NULL, *some = NULL;
    st = lop_make1(mk, &lop_op_diagonal, &at, p, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_offdiag, &where, d, &line);
    if (st == LOP_OK) st = lop_ones_column(mk, dt, n, &ones[0]);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, line, ones[0], &c);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_kron_unfold, &fold, c, &folded);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, folded, &op);
    if (st == LOP_OK && first) st = lop_make1(mk, &lop_op_view, &turn, op, &seen);
    if (st == LOP_OK) st = lop_ones_column(mk, dt, places, &ones[1]);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, first ? seen : op, ones[1], &sums);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_slice, &rows, sums, &some);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_ravel, &matrix, some, out);
    const lop_node *gone[] = {d, line, ones[0], ones[1], c, folded, op, seen, sums, some};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
