/* solve_schur_complement.c: solves and determinants of a Block of 2 x 2 with a diagonal block A
 * that is cheap to solve for, by the Schur complement of A.
 *
 *   [A B; C D] [x; y] = [f; g]:   W = A^-1 B,  S = D - C W,  S y = g - C A^-1 f,  x = A^-1 f - W y
 *   det = det A det S
 *
 * (Golub and Van Loan, 3.2.11; either diagonal block may be A.) An A that is much nearer to a
 * singular matrix than the whole costs digits: the backward error is checked, one refinement tried,
 * else the dense form is factored.
 *
 * The diagonal blocks of the inverse, "corners":
 *
 *   (M^-1)_DD = S^-1    (M^-1)_AA = A^-1 + W S^-1 C A^-1        checked by a probe, as determinants
 *   both together are the diagonal of M^-1
 *   their inverses: S = D - C A^-1 B, which has an A that may be singular, as the corner then is;
 *   their determinants: det A / det M. These two for any blocks.
 *
 * Likewise solves and determinants of the first rows and columns, or the last, of the inverse of
 * an M of structure that has no blocks as it is written: its own parts are the blocks, a band's
 * bands. What comes out is looked at by M^-1 itself, which a singular M has none of.
 *
 * Of a Hermitian Block S is Hermitian: Cholesky, else LU, and over an A that is diagonal or
 * definite half a product.
 *
 * Where the blocks are circulants of one size, so are W and S: they are made by their first columns
 * (circulant_sums.c), in a few FFTs.
 *
 * Cost: q columns through A, 2 p q^2, 2/3 q^3 for q rows of D. */
#include "builds.h"
#include "expr/properties.h"
#include "ops/shared/column_norm.h"
#include "ops/shared/sparse_solver.h"
#include "rewrite/cheap_to_solve.h"
#include "rewrite/guards.h"
#include "thin_sum.h"

typedef struct bordered {
    const lop_maker *mk;
    const lop_node *whole, *a, *b, *c, *d; /* borrowed */
    lop_attr dt;                           /* the dtype, as an attribute */
    int first;                             /* 0: A stands first */
    bool circular;                         /* W and S are circulants */
    bool hermitian;                        /* S is, by how it is written */
    const lop_node *w, *s;                 /* owned: W and S as operators */
    const lop_node *sum;                   /* owned: S as it is written; NULL: batches, casts */
} bordered;

enum { CIRCULAR_ROWS = 64 }; /* of the whole: below, dense ones are quicker */
static bool is_circular(const lop_node *whole) {
    const lop_node *sizes = NULL;
    if (lop_nbatch(whole) > 0 || lop_rows(whole) < CIRCULAR_ROWS) return false;
    for (int i = 0; i < whole->n; i++) {
        const lop_node *a = whole->child[i];
        if (a->dtype != whole->dtype || lop_rows(a) != lop_rows(whole->child[0]) ||
            lop_holds_inverse(a, LOP_CIRCULANT_DEPTH / 2) ||
            !lop_is_circulant(a, LOP_CIRCULANT_DEPTH / 2, &sizes))
            return false;
    }
    return sizes != NULL;
}

/* W = A^-1 B and S = D - C W by their first columns. */
static lop_status circular_open(bordered *t) {
    const lop_attr minus = lop_attr_coef(-1, 0);
    const lop_node *in = NULL, *w = NULL, *cw = NULL, *less = NULL, *s = NULL;
    lop_status st = lop_make1(t->mk, &lop_op_inverse, NULL, t->a, &in);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_prod, NULL, in, t->b, &w);
    if (st == LOP_OK) st = lop_one_circulant(t->mk, w, &t->w);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_prod, NULL, t->c, t->w, &cw);
    if (st == LOP_OK) st = lop_make1(t->mk, &lop_op_scaled, &minus, cw, &less);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_sum, NULL, t->d, less, &s);
    if (st == LOP_OK) st = lop_one_circulant(t->mk, s, &t->s);
    const lop_node *gone[] = {in, w, cw, less, s};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* P - R O^-1 D. */
static lop_status complement(const lop_maker *mk, const lop_node *own, const lop_node *right,
                             const lop_node *other, const lop_node *down, const lop_node **out) {
    const lop_attr minus = lop_attr_coef(-1, 0);
    const lop_node *in = NULL, *left = NULL, *low = NULL, *less = NULL;
    lop_status st = lop_inverse_closed(mk, other, &in);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, right, in, &left);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, left, down, &low);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaled, &minus, low, &less);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, own, less, out);
    const lop_node *gone[] = {in, left, low, less};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

static bool is_diagonal(const lop_node *a) {
    if (a->op == &lop_op_scaled) a = a->child[0];
    return a->op == &lop_op_diag || a->op == &lop_op_identity;
}

/* Positive definite by how it is written, or diagonal: what W and S by one product are made with.
 */
static bool is_simple(const lop_node *a) {
    return is_diagonal(a) ||
           (lop_nbatch(a) == 0 && lop_infer_semidefinite(a) && lop_infer_regular(a) == LOP_TRUE);
}

/* S's array, by W's or, half of it, by the product as a whole. Owned. */
static lop_status small_array(bordered *t, const lop_node *w, const lop_node **out) {
    const lop_node *d = NULL, *cw = NULL;
    if (lop_nbatch(t->whole) == 0 && t->whole->dtype == (lop_dtype)(t->dt.i[3] - 1)) {
        lop_status st = complement(t->mk, t->d, t->c, t->a, t->b, &t->sum);
        if (st != LOP_OK) return st;
        t->hermitian = lop_infer_hermitian(t->sum);
        if (t->hermitian && is_simple(t->a))
            return lop_make1(t->mk, &lop_op_todense, &t->dt, t->sum, out);
    }
    lop_status st = lop_make1(t->mk, &lop_op_todense, &t->dt, t->d, &d);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_apply, NULL, t->c, w, &cw);
    if (st == LOP_OK) st = lop_build_minus(t->mk, d, cw, out);
    lop_node_unref(d);
    lop_node_unref(cw);
    return st;
}

static lop_status bordered_open(bordered *t) {
    if (t->circular) return circular_open(t);
    const lop_node *b = NULL, *w = NULL, *s = NULL;
    lop_status st = lop_make1(t->mk, &lop_op_todense, &t->dt, t->b, &b);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_solve, NULL, t->a, b, &w);
    if (st == LOP_OK) st = lop_make1(t->mk, &lop_op_dense, NULL, w, &t->w);
    if (st == LOP_OK) st = small_array(t, w, &s);
    if (st == LOP_OK) st = lop_make1(t->mk, &lop_op_dense, NULL, s, &t->s);
    const lop_node *gone[] = {b, w, s};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
static void bordered_close(bordered *t) {
    lop_node_unref(t->w);
    lop_node_unref(t->s);
    lop_node_unref(t->sum);
}
static bordered bordered_by(const lop_maker *mk, const lop_node *whole, lop_dtype dt, int i) {
    return (bordered){.mk = mk,
                      .whole = whole,
                      .a = whole->child[3 * i],
                      .b = whole->child[1 + i],
                      .c = whole->child[2 - i],
                      .d = whole->child[3 - 3 * i],
                      .dt = {.i = {0, 0, 0, (int64_t)dt + 1}},
                      .first = i,
                      .circular = whole->dtype == dt && is_circular(whole)};
}
static bordered bordered_of(const lop_maker *mk, const lop_node *whole, lop_dtype dt) {
    return bordered_by(mk, whole, dt, lop_bordered_pivot(whole, true));
}

/* The rows of A, or of D. */
static lop_status rows_of(const bordered *t, const lop_node *x, bool rest, const lop_node **out) {
    const int64_t p = lop_rows(t->whole->child[0]), n = lop_rows(t->whole);
    const bool second = rest != (t->first == 1);
    const lop_attr at = {.i = {second ? p : 0, second ? n - p : p, 0, lop_cols(x)}};
    return lop_make1(t->mk, &lop_op_slice, &at, x, out);
}
static lop_status both_of(const bordered *t, const lop_node *x, const lop_node *y,
                          const lop_node **out) {
    const lop_attr shape = {.i = {2, 1, 0, 0}};
    const lop_node *part[2] = {t->first ? y : x, t->first ? x : y};
    return lop_make_op(t->mk, &lop_op_grid, &shape, 2, part, NULL, out);
}

/* S y = h. */
static lop_status by_small(const bordered *t, const lop_node *h, const lop_node **out) {
    const lop_attr tried = {.i = {1, 0, 0, 0}};
    if (t->circular) return lop_make2(t->mk, &lop_op_solve, NULL, t->s, h, out);
    return t->hermitian ? lop_make2(t->mk, &lop_op_cholesky_solve, &tried, t->s->child[0], h, out)
                        : lop_make2(t->mk, &lop_op_lu_solve, NULL, t->s->child[0], h, out);
}
/* Its determinant. */
static lop_status det_of_small(const bordered *t, const lop_attr *k, const lop_node **out) {
    const lop_attr tried = {.i = {1, 0, 0, 0}};
    if (t->circular) return lop_make1(t->mk, &lop_op_scaledet, k, t->s, out);
    return t->hermitian ? lop_make1(t->mk, &lop_op_cholesky_det, &tried, t->s->child[0], out)
                        : lop_make1(t->mk, &lop_op_lu_det, NULL, t->s->child[0], out);
}

static lop_status by_complement(const bordered *t, const lop_node *b, const lop_node **out) {
    const lop_node *f = NULL, *g = NULL, *z = NULL, *cz = NULL, *h = NULL, *y = NULL, *wy = NULL,
                   *x = NULL;
    lop_status st = rows_of(t, b, false, &f);
    if (st == LOP_OK) st = rows_of(t, b, true, &g);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_solve, NULL, t->a, f, &z);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_apply, NULL, t->c, z, &cz);
    if (st == LOP_OK) st = lop_build_minus(t->mk, g, cz, &h);
    if (st == LOP_OK) st = by_small(t, h, &y);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_apply, NULL, t->w, y, &wy);
    if (st == LOP_OK) st = lop_build_minus(t->mk, z, wy, &x);
    if (st == LOP_OK) st = both_of(t, x, y, out);
    const lop_node *gone[] = {f, g, z, cz, h, y, wy, x};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* x + S r, S by the complement, of what x leaves of b. */
static lop_status refined(const bordered *t, const lop_check *k, const lop_node *x,
                          const lop_node *b, const lop_node **out) {
    const lop_node *r = NULL, *dx = NULL;
    lop_status st = lop_check_residual(k, x, b, &r);
    if (st == LOP_OK) st = by_complement(t, r, &dx);
    if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_add, NULL, x, dx, out);
    lop_node_unref(r);
    lop_node_unref(dx);
    return st;
}

/* A's own solutions by an update lose what A's condition takes: then refined twice at once. */
LOP_BUILD(solve_bordered) {
    bordered t = bordered_of(mk, m->root->child[0], m->root->dtype);
    lop_check k = {.mk = mk, .a = t.whole, .room = LOP_ROOM_MADE};
    const lop_attr cast = {.i = {1, 0, 0, t.dt.i[3]}};
    const bool sure = lop_bordered_pivot(t.whole, false) >= 0;
    const lop_node *b = NULL, *x = NULL, *x2 = NULL, *x3 = NULL, *dense = NULL, *alt = NULL,
                   *second = NULL;
    lop_status st = bordered_open(&t);
    if (st == LOP_OK) st = lop_check_open(&k, m->root->dtype);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, m->root->child[1], &b);
    if (st == LOP_OK) st = by_complement(&t, b, &x);
    if (st == LOP_OK) st = refined(&t, &k, x, b, &x2);
    if (st == LOP_OK && !sure) st = refined(&t, &k, x2, b, &x3);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &t.dt, t.whole, &dense);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_lu_solve, NULL, dense, b, &alt);
    k.exact = sure;
    if (st == LOP_OK) st = lop_check_instead(&k, sure ? x2 : x3, b, alt, sure ? &second : out);
    k.exact = false;
    k.room = LOP_ROOM_REFINED;
    if (st == LOP_OK && sure) st = lop_check_instead(&k, x, b, second, out);
    const lop_node *gone[] = {b, x, x2, x3, dense, alt, second};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&k);
    bordered_close(&t);
    return st;
}

/* The columns of B or W over zeros, for the check that sees how W grows; of circulants the first
 * one, which is as long as each of the others. */
static lop_status above_zeros(const bordered *t, const lop_node *a, const lop_node **out) {
    const int64_t q = lop_cols(t->b), columns = t->circular ? 1 : q;
    const lop_attr first = {.i = {0, 0, 0, 0}};
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {q, columns}}, .dtype = (lop_dtype)(t->dt.i[3] - 1), .core = 2};
    const lop_node *zeros = NULL, *none = NULL, *unit = NULL, *column = NULL;
    lop_status st = lop_make(t->mk, "zeros", NULL, 0, NULL, &like, &zeros);
    if (st == LOP_OK) st = lop_make1(t->mk, &lop_op_todense, &t->dt, zeros, &none);
    if (st == LOP_OK && t->circular) st = lop_make(t->mk, "unit", &first, 0, NULL, &like, &unit);
    if (st == LOP_OK)
        st = t->circular ? lop_make2(t->mk, &lop_op_apply, NULL, a, unit, &column)
                         : lop_make1(t->mk, &lop_op_todense, &t->dt, a, &column);
    if (st == LOP_OK) st = both_of(t, column, none, out);
    const lop_node *gone[] = {zeros, none, unit, column};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(det_bordered) {
    const lop_dtype dt = (lop_dtype)(m->root->attr.i[3] - 1);
    bordered t = bordered_of(mk, m->root->child[0], dt);
    lop_check k = {.mk = mk, .a = t.whole};
    const lop_node *base = NULL, *small = NULL, *det = NULL, *x = NULL, *r = NULL, *dense = NULL,
                   *alt = NULL, *u = NULL, *w = NULL;
    lop_status st = bordered_open(&t);
    if (st == LOP_OK) st = lop_check_open(&k, dt);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, t.a, &base);
    if (st == LOP_OK) st = det_of_small(&t, &m->root->attr, &small);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, base, small, &det);
    if (st == LOP_OK) st = by_complement(&t, k.v, &x);
    if (st == LOP_OK) st = lop_check_residual(&k, x, k.v, &r);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &t.dt, t.whole, &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_lu_det, NULL, dense, &alt);
    if (st == LOP_OK) st = above_zeros(&t, t.b, &u);
    if (st == LOP_OK) st = above_zeros(&t, t.w, &w);
    const lop_node *child[9] = {det, x, r, k.v, k.q, k.u, w, u, alt};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_checked_det, NULL, 9, child, NULL, out);
    const lop_node *gone[] = {base, small, det, x, r, dense, alt, u, w};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&k);
    bordered_close(&t);
    return st;
}

/* -- corners of the inverse */

typedef struct corner {
    const lop_node *whole;                      /* borrowed: what is inverted */
    const lop_node *own, *other, *right, *down; /* owned: own = P, of P - R O^-1 D */
    int at;                                     /* the first or the second of the two */
    bool written;                               /* they stand so in a Block */
} corner;

static void drop_corner(corner *c) {
    const lop_node *gone[] = {c->own, c->other, c->right, c->down};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
}

/* Rows r and columns c of a, closed. */
static lop_status part_of(const lop_maker *mk, const lop_node *a, const int64_t r[2],
                          const int64_t c[2], const lop_node **out) {
    const lop_attr at[2] = {{.i = {0, r[0], 1, r[1]}}, {.i = {1, c[0], 1, c[1]}}};
    const lop_node *in = lop_node_ref(a);
    for (int i = 0; i < 2; i++) {
        const lop_node *cut = NULL, *kind = NULL;
        lop_status st = lop_make1(mk, &lop_op_sliced, &at[i], in, &cut);
        lop_node_unref(in);
        if (st == LOP_OK) st = lop_close_once(mk, cut, &kind);
        in = st == LOP_OK ? kind : lop_node_ref(cut);
        lop_node_unref(cut);
        if (st == LOP_NOMATCH) st = LOP_OK;
        if (st != LOP_OK) return st;
    }
    *out = in;
    return LOP_OK;
}

/* The parts of a Block of 2 x 2, borrowed in part; false: it is none, or is cut elsewhere. */
static bool parts_as_written(const lop_node *b, int64_t start, int64_t count, corner *c) {
    if (b->op != &lop_op_block || b->attr.i[0] != 2 || b->attr.i[1] != 2 ||
        !lop_is_square(b->child[0]) || !lop_is_square(b->child[3]))
        return false;
    const int64_t p = lop_rows(b->child[0]), q = lop_rows(b->child[3]);
    const bool second = start == p;
    if (start != (second ? p : 0) || count != (second ? q : p)) return false;
    c->own = lop_node_ref(b->child[second ? 3 : 0]);
    c->other = lop_node_ref(b->child[second ? 0 : 3]);
    c->right = lop_node_ref(b->child[second ? 2 : 1]);
    c->down = lop_node_ref(b->child[second ? 1 : 2]);
    c->at = second;
    return true;
}

/* Is what is inverted itself factored at once, so that the answer can be looked at by its inverse?
 */
static bool corner_pays(const lop_node *b, int64_t count) {
    enum { PART = 6 };
    const bool quick = lop_cheap_to_solve(b) || lop_sparse_pays(b);
    return lop_solved_as_update(b) || (quick && PART * count >= lop_rows(b));
}

/* Of what is inverted and cut to its first rows or its last: those, and the others. To be dropped
 * whatever comes back. */
static lop_status read_corner(const lop_maker *mk, const lop_node *a, corner *c) {
    *c = (corner){NULL};
    if (a->op != &lop_op_sliced || a->n != 1 || a->child[0]->op != &lop_op_sliced ||
        a->child[0]->n != 1)
        return LOP_NOMATCH;
    const lop_node *in = a->child[0], *inverse = in->child[0];
    const lop_attr *x = &a->attr, *y = &in->attr;
    if (inverse->op != &lop_op_inverse || x->i[0] + y->i[0] != 1 || x->i[0] < 0 || y->i[0] < 0)
        return LOP_NOMATCH;
    const lop_node *b = inverse->child[0];
    const int64_t n = lop_rows(b), own[2] = {x->i[1], x->i[3]},
                  rest[2] = {own[0] > 0 ? 0 : own[1], n - own[1]};
    if (lop_nbatch(b) > 0 || b->dtype != a->dtype || !lop_is_blas(a->dtype) || own[1] == 0 ||
        rest[1] == 0 || own[0] != y->i[1] || own[1] != y->i[3] || x->i[2] != 1 || y->i[2] != 1)
        return LOP_NOMATCH;
    c->whole = b;
    c->written = parts_as_written(b, own[0], own[1], c);
    if (c->written) return LOP_OK;
    if ((own[0] > 0 && own[0] + own[1] != n) || !corner_pays(b, own[1])) return LOP_NOMATCH;
    c->at = own[0] > 0;
    lop_status st = part_of(mk, b, own, own, &c->own);
    if (st == LOP_OK) st = part_of(mk, b, rest, rest, &c->other);
    if (st == LOP_OK) st = part_of(mk, b, own, rest, &c->right);
    if (st == LOP_OK) st = part_of(mk, b, rest, own, &c->down);
    return st;
}

/* P - R O^-1 D as an operator. */
static lop_status complement_of(const lop_maker *mk, const corner *c, const lop_node **out) {
    lop_status st = complement(mk, c->own, c->right, c->other, c->down, out);
    if (st == LOP_OK && (*out)->dtype != c->whole->dtype) {
        lop_node_unref(*out);
        *out = NULL;
        st = LOP_NOMATCH;
    }
    return st;
}

/* Of what is not written in blocks looked at by the inverse, which is applied to it. */
LOP_BUILD(solve_corner) {
    corner c;
    const lop_node *s = NULL, *b = NULL, *x = NULL;
    lop_status st = read_corner(mk, m->root->child[0], &c);
    if (st == LOP_OK) st = complement_of(mk, &c, &s);
    if (st == LOP_OK) st = lop_build_cast_x(m, mk, &b);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, s, b, c.written ? out : &x);
    if (st == LOP_OK && !c.written) st = lop_check_or_dense(mk, m->root->child[0], x, b, out);
    drop_corner(&c);
    lop_node_unref(s);
    lop_node_unref(b);
    lop_node_unref(x);
    return st;
}

/* Of blocks that are written. */
LOP_BUILD(inverse_corner) {
    corner c;
    const lop_node *s = NULL;
    lop_status st = read_corner(mk, m->root->child[0]->child[0], &c);
    if (st == LOP_OK && !c.written) st = LOP_NOMATCH;
    if (st == LOP_OK) st = complement_of(mk, &c, &s);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, s, out);
    drop_corner(&c);
    lop_node_unref(s);
    return st;
}

LOP_BUILD(det_corner) {
    corner c;
    const lop_attr power = {.i = {-1, 0, 0, 0}};
    const lop_node *all = NULL, *under = NULL, *over = NULL;
    lop_status st = read_corner(mk, m->root->child[0], &c);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, c.whole, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_pow_det, &power, all, &under);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, c.other, &over);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_mul_det, NULL, over, under, out);
    drop_corner(&c);
    lop_node_unref(all);
    lop_node_unref(under);
    lop_node_unref(over);
    return st;
}

/* The corner by W and S as an operator. */
static lop_status corner_by(const bordered *t, bool pivot, const lop_node **out) {
    const lop_node *si = NULL, *in = NULL, *left = NULL, *right = NULL, *low = NULL;
    const lop_node *s = t->hermitian && !pivot ? t->sum : t->s;
    lop_status st = lop_make1(t->mk, &lop_op_inverse, NULL, s, &si);
    if (st == LOP_OK && !pivot) *out = lop_node_ref(si);
    if (st == LOP_OK && pivot) {
        st = lop_inverse_closed(t->mk, t->a, &in);
        if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_prod, NULL, t->w, si, &left);
        if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_prod, NULL, t->c, in, &right);
        if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_prod, NULL, left, right, &low);
        if (st == LOP_OK) st = lop_make2(t->mk, &lop_op_sum, NULL, in, low, out);
    }
    const lop_node *gone[] = {si, in, left, right, low};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* The same of the inverse of the dense form. */
static lop_status corner_of_dense(const lop_match *m, const lop_maker *mk, const corner *c,
                                  const lop_node **out) {
    const int64_t p = lop_rows(c->whole->child[0]), n = lop_rows(c->own), from = c->at ? p : 0;
    const lop_attr at = {.i = {from, n, from, n}}, k = {.i = {m->root->attr.i[0], 0, 0, 0}};
    const bool dense = m->root->op == &lop_op_todense;
    const lop_node *all = NULL, *cut = NULL;
    lop_status st = lop_inverse_array(mk, c->whole, m->root->dtype, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_slice, &at, all, dense ? out : &cut);
    if (st == LOP_OK && !dense) st = lop_make1(mk, &lop_op_array_diagonal, &k, cut, out);
    lop_node_unref(all);
    lop_node_unref(cut);
    return st;
}

/* `value`, by W and S, checked by a probe of the solution; else `alt`. */
static lop_status or_dense(const bordered *t, const lop_node *value, const lop_node *alt,
                           const lop_node **out) {
    lop_check k = {.mk = t->mk, .a = t->whole};
    const lop_node *x = NULL, *r = NULL, *u = NULL, *w = NULL;
    lop_status st = lop_check_open(&k, (lop_dtype)(t->dt.i[3] - 1));
    if (st == LOP_OK) st = by_complement(t, k.v, &x);
    if (st == LOP_OK) st = lop_check_residual(&k, x, k.v, &r);
    if (st == LOP_OK) st = above_zeros(t, t->b, &u);
    if (st == LOP_OK) st = above_zeros(t, t->w, &w);
    const lop_node *child[9] = {value, x, r, k.v, k.q, k.u, w, u, alt};
    if (st == LOP_OK) st = lop_make_op(t->mk, &lop_op_checked_value, NULL, 9, child, NULL, out);
    const lop_node *gone[] = {x, r, u, w};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_check_close(&k);
    return st;
}

/* The diagonal of the inverse: that of its two corners. */
LOP_BUILD(bordered_inverse_diagonal) {
    const lop_node *block = m->root->child[0]->child[0];
    if (lop_nbatch(block) > 0 || block->dtype != m->root->dtype || m->root->attr.i[0] != 0 ||
        lop_bordered_pivot(block, false) < 0 || lop_border_is_sparse(block))
        return LOP_NOMATCH;
    bordered t = bordered_of(mk, block, m->root->dtype);
    const lop_attr line = {.i = {2, 1, 0, 0}};
    const lop_node *part[2] = {NULL, NULL}, *value = NULL, *all = NULL, *alt = NULL;
    lop_status st = bordered_open(&t);
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        const lop_node *op = NULL;
        st = corner_by(&t, t.first == i, &op);
        if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, op, &part[i]);
        lop_node_unref(op);
    }
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_grid, &line, 2, part, NULL, &value);
    if (st == LOP_OK) st = lop_inverse_array(mk, block, m->root->dtype, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal, NULL, all, &alt);
    if (st == LOP_OK) st = or_dense(&t, value, alt, out);
    const lop_node *gone[] = {part[0], part[1], value, all, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    bordered_close(&t);
    return st;
}

/* The root, diagonal or dense form, of a corner: by the other block where that is diagonal or
 * definite, which leaves an inverse of the corner's own size. */
LOP_BUILD(value_corner) {
    corner c;
    const lop_node *op = NULL, *value = NULL, *alt = NULL;
    bordered t = {.w = NULL};
    lop_status st = read_corner(mk, m->root->child[0], &c);
    const bool beside =
        st == LOP_OK && is_simple(c.other) && lop_rows(c.other) >= lop_rows(c.own) / 2;
    if (st == LOP_OK && (!c.written || m->root->dtype != c.whole->dtype ||
                         (!beside && lop_bordered_pivot(c.whole, false) < 0)))
        st = LOP_NOMATCH;
    if (st == LOP_OK)
        t = bordered_by(mk, c.whole, m->root->dtype,
                        beside ? 1 - c.at : lop_bordered_pivot(c.whole, true));
    if (st == LOP_OK) st = bordered_open(&t);
    if (st == LOP_OK) st = corner_by(&t, t.first == c.at, &op);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, op, &value);
    if (st == LOP_OK) st = corner_of_dense(m, mk, &c, &alt);
    if (st == LOP_OK) st = or_dense(&t, value, alt, out);
    const lop_node *gone[] = {op, value, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    drop_corner(&c);
    bordered_close(&t);
    return st;
}
