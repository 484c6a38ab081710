/* block_tridiagonal.c: computed right sides for BlockTridiagonal: sums, multiples; solves,
 * determinants and parts of inverses (op_blocktridiagonal_solve.c), with its band as fallback. */
#include "assumed_terms.h"
#include "ops/projections/projections.h"

/* Rows of a block from which sweeps by block are quicker than a band at once; measured 2026-11-22
 * on an AMD EPYC (Zen 3), one thread, at 5000 to 30,000 rows. */
enum { WIDE = 8 };

static int64_t size_of(const lop_node *a) { return a->attr.i[0]; }
static bool is_wide(const lop_node *a) { return size_of(a) >= WIDE; }

/* Owned vectors become the kind, or go. */
static lop_status kind(const lop_maker *mk, const lop_attr *attr, int n, const lop_node **v,
                       lop_status st, const lop_node **out) {
    if (st == LOP_OK) st = lop_make(mk, "blocktridiagonal", attr, n, v, NULL, out);
    for (int i = 0; i < n; i++) lop_node_unref(v[i]);
    return st;
}

/* Its vectors for what has such attributes; where those name no half by the one that a's names:
 * owned, n of them. */
static lop_status vectors_of(const lop_maker *mk, const lop_node *a, const lop_attr *of,
                             const lop_node **v, int *n) {
    *n = a->n;
    if (!lop_names_lines(of, 1) && lop_has_named_lines(a))
        return lop_named_lines(a, a->child, n, v, mk->err);
    for (int i = 0; i < a->n; i++) v[i] = lop_node_ref(a->child[i]);
    return LOP_OK;
}
static void drop(const lop_node **v) {
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
}

LOP_BUILD(blocktri_sum) {
    const lop_node *a = m->root->child[0], *b = m->root->child[1], *v[3] = {NULL}, *x[3] = {NULL},
                   *y[3] = {NULL};
    const lop_attr attr = lop_assumed_of_sum(a, b, 1);
    int n = 0, other = 0;
    if (size_of(a) != size_of(b) || lop_rows(a) != lop_rows(b)) return LOP_NOMATCH;
    lop_status st = vectors_of(mk, a, &attr, x, &n);
    if (st == LOP_OK) st = vectors_of(mk, b, &attr, y, &other);
    if (st == LOP_OK && n != other) st = LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < n; i++)
        st = lop_join(mk, &lop_op_add, NULL, x[i], y[i], &v[i]);
    drop(x);
    drop(y);
    return kind(mk, &attr, n, v, st, out);
}

static lop_attr blocktri_left(const lop_node *a, bool real, bool positive) {
    lop_attr left = a->attr;
    left.i[1] = lop_assumption_left(a->attr.i[1], real, positive);
    left.i[2] = 0;
    return left;
}

LOP_BUILD(blocktri_scaled) {
    const lop_node *a = m->root->child[0], *v[3] = {NULL}, *x[3] = {NULL};
    const bool positive = lop_is_positive_multiple(m->root);
    const lop_attr *c = &m->root->attr;
    lop_attr attr = blocktri_left(a, c->im == 0, positive);
    int n = 0;
    if (positive) attr.i[2] = lop_path_on(a->attr.i[2], false, LOP_PATH_WITHIN);
    lop_status st = vectors_of(mk, a, &attr, x, &n);
    if (st == LOP_OK && n == 2 && c->im != 0)
        st = LOP_NOMATCH; /* what stands above would be conjugated */
    for (int i = 0; st == LOP_OK && i < n; i++)
        st = lop_join(mk, &lop_op_scale, c, x[i], NULL, &v[i]);
    drop(x);
    return kind(mk, &attr, n, v, st, out);
}

/* A and a diagonal of whatever sort, in either order. */
LOP_BUILD(blocktri_plus) {
    const bool first = m->root->child[0]->op == &lop_op_blocktridiagonal;
    const lop_node *a = m->root->child[first ? 0 : 1], *o = m->root->child[first ? 1 : 0], *d,
                   *v[3] = {NULL};
    const bool multiple = o->op == &lop_op_scaled, known = multiple || o->op == &lop_op_identity,
               real = multiple ? o->attr.im == 0 : !lop_is_complex(o->dtype) || known;
    const lop_attr size = {.i = {size_of(a), 0, 0, 0}};
    lop_attr attr = blocktri_left(a, real, known && (!multiple || lop_is_positive_multiple(o)));
    if (attr.i[1] == LOP_ASSUME_HERMITIAN && !(multiple && lop_is_negative_multiple(o)))
        attr.i[2] = lop_path_on(a->attr.i[2], a->attr.i[1] == LOP_ASSUME_POSITIVE,
                                LOP_PATH_BESIDE_DIAGONAL); /* the blocks are the first term */
    lop_status st = lop_make_diagonal(mk, o, &d);
    if (st != LOP_OK) return st;
    int n = 0;
    st = vectors_of(mk, a, &attr, v, &n);
    const lop_node *main = v[1];
    v[1] = NULL;
    if (st == LOP_OK) st = lop_join(mk, &lop_op_blockplus, &size, main, d, &v[1]);
    lop_node_unref(main);
    lop_node_unref(d);
    return kind(mk, &attr, n, v, st, out);
}

/* The blocks of `a` in dtype dt from their leaves on, in v. */
static lop_status cast_to(const lop_maker *mk, const lop_node *a, lop_dtype dt,
                          const lop_node **v) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)dt + 1}};
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < a->n; i++)
        st = lop_make1(mk, &lop_op_cast, &d, a->child[i], &v[i]);
    return st;
}
/* The same matrix as a Banded; `assumed`: with its assumption. Owned. */
static lop_status banded(const lop_maker *mk, const lop_node *a, int n, const lop_node **v,
                         bool assumed, const lop_node **out) {
    const int64_t b = size_of(a), w = b > 0 ? 2 * b - 1 : 0;
    const lop_attr size = {.i = {b, 0, 0, 0}},
                   attr = {.i = {w, w, assumed ? a->attr.i[1] : LOP_ASSUME_GENERAL, 0}};
    const lop_node *ab;
    lop_status st = lop_make_op(mk, &lop_op_blockband, &size, n, v, NULL, &ab);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, &lop_op_banded, &attr, ab, out);
    lop_node_unref(ab);
    return st;
}

LOP_BUILD(blocktri_solve) {
    const lop_node *top = m->root->child[0], *a = top->op == &lop_op_view ? top->child[0] : top,
                   *band = NULL, *seen = NULL, *v[5] = {NULL};
    const lop_dtype dt = m->root->dtype;
    const lop_attr cast = {.i = {1, 0, 0, (int64_t)dt + 1}},
                   how = {.i = {size_of(a), a->attr.i[1], top == a ? LOP_N : top->attr.i[0], 0}};
    const int n = a->n;
    const bool wide = is_wide(a);
    if (!lop_is_blas(dt)) return LOP_NOMATCH;
    lop_status st = cast_to(mk, a, dt, v);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &cast, m->root->child[1], &v[n]);
    if (st == LOP_OK) st = banded(mk, a, n, v, !wide, &band);
    if (st == LOP_OK && top != a)
        st = lop_make1(mk, &lop_op_view, &top->attr, band, &seen);
    else
        seen = lop_node_ref(band);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, seen, v[n], wide ? &v[n + 1] : out);
    if (st == LOP_OK && wide)
        st = lop_make_op(mk, &lop_op_block_tridiagonal_solve, &how, n + 2, v, NULL, out);
    for (int i = 0; i < n + 2; i++) lop_node_unref(v[i]);
    lop_node_unref(band);
    lop_node_unref(seen);
    return st;
}

LOP_BUILD(blocktri_det) {
    const lop_node *a = m->root->child[0], *band = NULL, *v[4] = {NULL};
    const lop_dtype dt = (lop_dtype)(m->root->attr.i[3] ? m->root->attr.i[3] - 1 : a->dtype);
    const int n = a->n;
    const lop_attr how = {.i = {size_of(a), a->attr.i[1], 0, 0}};
    lop_assumed d = {.n = 0};
    if (!lop_is_blas(dt)) return LOP_NOMATCH;
    lop_status st = cast_to(mk, a, dt, v);
    if (st == LOP_OK) st = lop_assumed_in_sum(mk, a, &d);
    const bool beside = d.n > 0, wide = is_wide(a) && !beside;
    if (st == LOP_OK) st = banded(mk, a, n, v, !wide, &band);
    if (st == LOP_OK && beside)
        st = lop_det_beside_assumed(mk, &m->root->attr, &lop_op_banded_det, band->attr, 2, 1,
                                    band->child, &d, out);
    else if (st == LOP_OK)
        st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, band, wide ? &v[n] : out);
    if (st == LOP_OK && wide) st = lop_make_op(mk, &lop_op_block_det, &how, n + 1, v, NULL, out);
    for (int i = 0; i < 4; i++) lop_node_unref(v[i]);
    lop_node_unref(band);
    lop_assumed_free(&d);
    return st;
}

/* The inverse of the same band, lazily. Owned. */
static lop_status inverse_of_band(const lop_maker *mk, const lop_node *a, int n, const lop_node **v,
                                  const lop_node **out) {
    const lop_node *band;
    lop_status st = banded(mk, a, n, v, !is_wide(a), &band);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, &lop_op_inverse, NULL, band, out);
    lop_node_unref(band);
    return st;
}

LOP_BUILD(blocktri_inverse_diagonal) {
    const lop_node *a = m->root->child[0]->child[0], *inverse = NULL, *v[4] = {NULL};
    const lop_dtype dt = m->root->dtype;
    const int n = a->n;
    const lop_attr how = {.i = {size_of(a), a->attr.i[1], 0, 0}};
    const bool here =
        m->root->attr.i[0] == 0 && is_wide(a); /* as solves: narrow ones by the band */
    if (!lop_is_blas(dt)) return LOP_NOMATCH;
    lop_status st = cast_to(mk, a, dt, v);
    if (st == LOP_OK) st = inverse_of_band(mk, a, n, v, &inverse);
    if (st == LOP_OK)
        st = lop_make1(mk, &lop_op_diagonal, &m->root->attr, inverse, here ? &v[n] : out);
    if (st == LOP_OK && here) st = lop_make_op(mk, &lop_op_blockinvdiag, &how, n + 1, v, NULL, out);
    for (int i = 0; i < 4; i++) lop_node_unref(v[i]);
    lop_node_unref(inverse);
    return st;
}

/* The blocks of A^-1, or of a view of it, where A has blocks: which its gradient reads. */
LOP_BUILD(blocktri_inverse_blocks) {
    const lop_node *top = m->root->child[0]->child[0],
                   *a = top->op == &lop_op_view ? top->child[0] : top, *v[4] = {NULL};
    const int64_t *at = m->root->attr.i, b = size_of(a), mode = top == a ? LOP_N : top->attr.i[0];
    const lop_attr how = {.i = {b, a->attr.i[1], at[1], mode}};
    const int n = a->n;
    if (!lop_is_blas(m->root->dtype) || at[0] != LOP_AT_BLOCKS || m->root->n != 3 ||
        lop_cols(m->root->child[1]) != b || at[1] < -1 || at[1] > 1)
        return LOP_NOMATCH;
    lop_status st = cast_to(mk, a, m->root->dtype, v);
    if (st == LOP_OK) st = lop_entries_of_dense(mk, m->root, &v[n]);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_blockinvblocks, &how, n + 1, v, NULL, out);
    for (int i = 0; i < 4; i++) lop_node_unref(v[i]);
    return st;
}

/* tr(A^-1 B) = tr(B A^-1) of blocks of one size. */
LOP_BUILD(blocktri_inverse_trace) {
    const lop_node *p = m->root->child[0], *both = NULL, *inverse = NULL, *v[7] = {NULL};
    const bool first = p->child[0]->op == &lop_op_inverse;
    const lop_node *a = p->child[first ? 0 : 1]->child[0], *b = p->child[first ? 1 : 0];
    const lop_dtype dt = m->root->dtype;
    const int n = a->n;
    const lop_attr how = {.i = {size_of(a), a->attr.i[1], n, 0}};
    if (!lop_is_blas(dt) || size_of(a) != size_of(b) || lop_rows(a) != lop_rows(b))
        return LOP_NOMATCH;
    lop_status st = cast_to(mk, a, dt, v);
    if (st == LOP_OK) st = cast_to(mk, b, dt, v + n);
    if (st == LOP_OK) st = inverse_of_band(mk, a, n, v, &inverse);
    if (st == LOP_OK)
        st = lop_make2(mk, &lop_op_prod, NULL, first ? inverse : b, first ? b : inverse, &both);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_trace, &m->root->attr, both, &v[n + b->n]);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_blockinvtrace, &how, n + b->n + 1, v, NULL, out);
    for (int i = 0; i < 7; i++) lop_node_unref(v[i]);
    lop_node_unref(inverse);
    lop_node_unref(both);
    return st;
}
