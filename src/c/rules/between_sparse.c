/* between_sparse.c: entries of A^-1 X A^-1 and A^-1 X A^-1 Y A^-1 of sparse A, X and Y, which
 * gradients of traces and diagonals of inverses read, and second derivatives of determinants; their
 * second derivatives read those with three inverses.
 *
 *   [A X; 0 A]^-1 = [A^-1, -A^-1 X A^-1; 0, A^-1]
 *   [A X 0; 0 A Y; 0 0 A]^-1 has A^-1 X A^-1 Y A^-1 in its corner
 *
 * whose factors are sparse, too, and whose inverses' entries are selected as any (solve_sparse.c);
 * the solver adds what the blocks above the diagonal have to be to what it checks. The dense form
 * else. */
#include "product_words.h"
#include "expr/properties.h"
#include "ops/projections/projections.h"
#include "ops/shared/sparse_solver.h"

/* A of A^-1 seen in *mode, of the adjoint of a Hermitian A as itself; NULL: it is none whose
 * entries are selected. */
static const lop_node *inverted(const lop_node *f, int64_t *mode) {
    const lop_node *a = lop_inverse_seen(f, mode);
    if (!a || !lop_sparse_selects(a)) return NULL;
    if (!lop_is_complex(a->dtype)) *mode &= LOP_T;
    if ((*mode & LOP_T) && lop_infer_hermitian(a))
        *mode ^= lop_is_complex(a->dtype) ? LOP_T | LOP_C : LOP_T;
    return a;
}

/* A as it is seen in both inverses, owned; NOMATCH: they are of two. */
static lop_status one_of_both(const lop_maker *mk, const lop_node *left, const lop_node *right,
                              const lop_node **a) {
    int64_t mode, other = 0;
    const lop_node *s = inverted(left, &mode), *t = s ? inverted(right, &other) : NULL;
    const lop_attr view = {.i = {mode, 0, 0, 0}};
    if (!t || mode != other || !lop_node_alike(s, t, LOP_INFER_DEPTH)) return LOP_NOMATCH;
    if (mode) return lop_make1(mk, &lop_op_view, &view, s, a);
    *a = lop_node_ref(s);
    return LOP_OK;
}

static lop_status square_like(const lop_maker *mk, const char *kind, int64_t n,
                              const lop_node **out) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {n, n}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    return lop_make(mk, kind, NULL, 0, NULL, &like, out);
}

/* Of fuller rows than FULL the dense inverse, which serves all uses at once, is quicker up to PER
 * rows for an entry in a row: measured 2026-11-29 with squares and fourth powers of Laplacians of
 * grids, 400 to 3,000 rows, whose products with Hessians took up to 170 times as long by the dense
 * inverse; of random graphs, which fill in, that is up to 3 times as quick. */
enum { FULL = 16, PER = 8 };
static bool is_dear(const lop_node *a) {
    const double n = (double)lop_rows(a), some = lop_sparse_entries(a);
    return some > FULL * n && PER * some > n * n;
}

/* A^-1 X A^-1 or A^-1 X A^-1 Y A^-1, times a number. */
enum { MOST = 3 };
typedef struct between {
    const lop_node *a, *x[MOST - 1]; /* owned */
    int count;                       /* of inverses */
    lop_coef by;
} between;

static void drop(between *b) {
    lop_node_unref(b->a);
    for (int i = 0; i < MOST - 1; i++) lop_node_unref(b->x[i]);
}

/* k times k blocks, zeros where there are none. */
static lop_status blocks_of(const lop_maker *mk, int k, int64_t n, const lop_node **child,
                            const lop_node **out) {
    const lop_attr sides = {.i = {k, k, 0, 0}};
    const lop_node *zeros = NULL;
    lop_status st = square_like(mk, "zeros", n, &zeros);
    for (int i = 0; i < k * k; i++) child[i] = child[i] ? child[i] : zeros;
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_block, &sides, k * k, child, NULL, out);
    lop_node_unref(zeros);
    return st;
}

lop_status lop_two_by_two(const lop_maker *mk, const lop_node *a, const lop_node *b,
                          const lop_node *c, const lop_node *d, const lop_node **out) {
    const lop_node *child[4] = {a, b, c, d};
    return blocks_of(mk, 2, lop_rows(b ? b : c), child, out);
}

/* What meets the corner on the right under a trace. */
static lop_status in_corner(const lop_maker *mk, int k, const lop_node *y, const lop_node **out) {
    const lop_node *child[MOST * MOST] = {NULL};
    child[(k - 1) * k] = y;
    return blocks_of(mk, k, lop_rows(y), child, out);
}

/* A on the diagonal, X and Y above it. Owned; NOMATCH. */
static lop_status chained(const lop_maker *mk, const between *b, const lop_node **out) {
    const int k = b->count;
    const lop_node *child[MOST * MOST] = {NULL};
    int64_t all;
    for (int i = 0; i < k - 1; i++)
        if (lop_sparse_entries(b->x[i]) < 0 || lop_rows(b->x[i]) != lop_rows(b->a) ||
            !lop_is_square(b->x[i]))
            return LOP_NOMATCH;
    if (is_dear(b->a) || !lop_mul_ok(k, lop_rows(b->a), &all)) return LOP_NOMATCH;
    for (int i = 0; i < k; i++) child[i * k + i] = b->a;
    for (int i = 0; i < k - 1; i++) child[i * k + i + 1] = b->x[i];
    lop_status st = blocks_of(mk, k, lop_rows(b->a), child, out);
    if (st != LOP_OK || lop_sparse_selects(*out)) return st;
    lop_node_unref(*out);
    *out = NULL;
    return LOP_NOMATCH;
}

/* The factors from..to, those behind the last one the first ones again; I where there are none. */
static lop_status some_of(const lop_maker *mk, const lop_node *const *f, int n, int from, int to,
                          const lop_node **out) {
    const lop_node *part[LOP_FACTORS];
    int k = 0;
    for (int i = from; i < to; i++) part[k++] = f[i % n];
    return k ? lop_product_of(mk, part, k, out)
             : square_like(mk, "identity", lop_rows(f[from % n]), out);
}

/* Which factors are inverses, where the others are sparse; how many, 0: not two or three. */
static int inverses(const lop_node *const *f, int n, int at[MOST]) {
    int64_t mode;
    int found = 0;
    for (int i = 0; i < n; i++) {
        const lop_node *s = inverted(f[i], &mode);
        if (s && found == MOST) return 0;
        if (s)
            at[found++] = i;
        else if (lop_sparse_entries(f[i]) < 0)
            return 0;
    }
    return found > 1 ? found : 0;
}

/* What stands between the inverses at[0], at[1]... among n factors. NOMATCH: they are of several
 * matrices. */
static lop_status read_factors(const lop_maker *mk, const lop_node *const *f, int n, const int *at,
                               between *b) {
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < b->count - 1; i++) {
        const lop_node *a = NULL;
        st = one_of_both(mk, f[at[i]], f[at[i + 1]], i ? &a : &b->a);
        lop_node_unref(a);
        if (st == LOP_OK) st = some_of(mk, f, n, at[i] + 1, at[i + 1], &b->x[i]);
    }
    return st;
}

/* Is the root a main diagonal of enough rows that those of outer factors are worth their entries?
 */
static bool takes_rows(const lop_maker *mk, const lop_node *root) {
    const lop_node *p = root->child[0];
    const lop_sparse *outside = mk->ctx->sparse;
    return root->op == &lop_op_diagonal && lop_is_blas(root->dtype) && root->attr.i[0] == 0 &&
           lop_nbatch(p) == 0 && outside && p->dtype == root->dtype &&
           (outside->fewest || lop_rows(p) >= LOP_ROWS_FEWEST);
}

/* The factors before and behind A^-1 X A^-1 and longer ones, those behind transposed, as rows that
 * meet. Owned; NOMATCH: there are none on a side, or too many entries would meet. */
static lop_status read_rows(const lop_maker *mk, const lop_word *w, const int *at, const between *b,
                            const lop_node **u, const lop_node **v) {
    const int last = at[b->count - 1];
    const bool before = at[0] > 0, behind = last < w->n - 1;
    if (!before && !behind) return LOP_NOMATCH;
    lop_status st = before ? lop_product_of(mk, w->f, at[0], u)
                           : square_like(mk, "identity", lop_rows(b->a), u);
    if (st == LOP_OK)
        st = behind ? lop_transposed_product(mk, w->f, last + 1, w->n, v)
                    : square_like(mk, "identity", lop_rows(b->a), v);
    if (st == LOP_OK &&
        (!lop_shape_equal(&(*u)->shape, &(*v)->shape) || lop_rows_are_full(*u, *v, b->a)))
        st = LOP_NOMATCH;
    return st;
}

lop_status lop_reads_between_sparse(const lop_maker *mk, const lop_node *root, const lop_word *w) {
    between b = {.by = lop_coef_const(1, 0)};
    const lop_node *all = NULL, *u = NULL, *v = NULL;
    int at[MOST];
    b.count = inverses(w->f, w->n, at);
    const bool ends = b.count && at[0] == 0 && at[b.count - 1] == w->n - 1,
               rows = b.count && !ends && takes_rows(mk, root);
    lop_status st = b.count && (ends || rows || root->op == &lop_op_trace) ? LOP_OK : LOP_NOMATCH;
    if (st == LOP_OK) st = read_factors(mk, w->f, w->n, at, &b);
    if (st == LOP_OK && rows) st = read_rows(mk, w, at, &b, &u, &v);
    if (st == LOP_OK) st = chained(mk, &b, &all);
    const lop_node *gone[] = {all, u, v};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    drop(&b);
    return st;
}

/* Of a product that begins and ends with inverses the matrix of blocks, and the product without its
 * number. Owned; NOMATCH. */
static lop_status read_between(const lop_maker *mk, const lop_node *p, between *b,
                               const lop_node **plain, const lop_node **out) {
    lop_word w;
    int at[MOST];
    if (lop_nbatch(p) > 0) return LOP_NOMATCH;
    lop_status st = lop_word_opened(mk, p, LOP_N, &w);
    b->by = w.c;
    b->count = st == LOP_OK ? inverses(w.f, w.n, at) : 0;
    if (st == LOP_OK && (b->count == 0 || at[0] != 0 || at[b->count - 1] != w.n - 1))
        st = LOP_NOMATCH;
    if (st == LOP_OK) st = read_factors(mk, w.f, w.n, at, b);
    if (st == LOP_OK) st = chained(mk, b, out);
    if (st == LOP_OK) st = lop_product_of(mk, w.f, w.n, plain);
    lop_word_close(&w);
    return st;
}

/* The parts of the inverse of the whole are those of -A^-1 X A^-1 and of A^-1 X A^-1 Y A^-1. */
static lop_status turned(const lop_maker *mk, const between *b, const lop_node *value,
                         const lop_node **out) {
    const lop_attr sign = lop_attr_coef(b->count == 2 ? -1 : 1, 0);
    return lop_make1(mk, &lop_op_scale, &sign, value, out);
}
/* What has been found of the whole, times the number of the product. */
static lop_status numbered(const lop_maker *mk, const between *b, const lop_node *value,
                           const lop_node **out) {
    const lop_coef sign = lop_coef_const(b->count == 2 ? -1 : 1, 0);
    const lop_attr by = lop_coef_attr(lop_coef_times(mk->ctx, b->by, sign));
    return lop_make1(mk, &lop_op_scale, &by, value, out);
}

enum { NEAR = 2 }; /* diagonals that bands have */

/* Diagonal k of p as diagonal -k of its transpose. */
static lop_status diagonal_turned(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_attr k = {.i = {-m->root->attr.i[0], 0, 0, m->root->attr.i[3]}};
    const lop_node *turned = NULL, *value = NULL;
    lop_word w;
    lop_status st = lop_word_opened(mk, m->root->child[0], LOP_T, &w);
    const lop_attr by = lop_coef_attr(w.c);
    if (st == LOP_OK) st = w.n ? lop_product_of(mk, w.f, w.n, &turned) : LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &k, turned, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, value, out);
    lop_word_close(&w);
    lop_node_unref(turned);
    lop_node_unref(value);
    return st;
}
/* Diagonal k of the dense form. Owned. */
static lop_status diagonal_of_dense(const lop_maker *mk, const lop_node *root,
                                    const lop_node *plain, const lop_node **out) {
    const lop_attr d = {.i = {0, 0, 0, (int64_t)root->dtype + 1}},
                   k = {.i = {root->attr.i[0], 0, 0, 0}};
    const lop_node *dense = NULL;
    lop_status st = lop_make1(mk, &lop_op_todense, &d, plain, &dense);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal, &k, dense, out);
    lop_node_unref(dense);
    return st;
}
/* Diagonal k of the corner is diagonal k + (count - 1) n of the whole, where k >= 0. */
LOP_BUILD(diagonal_between_sparse) {
    const lop_node *p = m->root->child[0], *plain = NULL, *all = NULL, *alt = NULL, *less = NULL,
                   *value = NULL;
    const int64_t k = m->root->attr.i[0];
    between b = {.by = lop_coef_const(1, 0)};
    if (!lop_is_blas(m->root->dtype) || k > NEAR || k < -NEAR || k >= lop_rows(p))
        return LOP_NOMATCH;
    lop_status st = read_between(mk, p, &b, &plain, &all);
    const bool turns = st == LOP_OK && k < 0;
    const lop_attr at = {.i = {(b.count - 1) * lop_rows(p) + k, 0, 0, 0}};
    if (turns) st = diagonal_turned(m, mk, out);
    if (st == LOP_OK && !turns) st = diagonal_of_dense(mk, m->root, plain, &alt);
    if (st == LOP_OK && !turns) st = turned(mk, &b, alt, &less);
    const lop_node *child[2] = {all, less};
    if (st == LOP_OK && !turns)
        st = lop_make_op(mk, &lop_op_sparsediag, &at, 2, child, NULL, &value);
    if (st == LOP_OK && !turns) st = numbered(mk, &b, value, out);
    const lop_node *gone[] = {plain, all, alt, less, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    drop(&b);
    return st;
}

/* [U 0 .. | .. 0 W] of so many blocks each. Owned. */
static lop_status outer_rows(const lop_maker *mk, int k, const lop_node *u, const lop_node *w,
                             const lop_node **out) {
    const lop_attr row = {.i = {1, 2 * k, 0, 0}};
    const lop_node like = {.shape = {.ndim = 2, .dim = {lop_rows(u), lop_cols(u)}},
                           .dtype = LOP_f64,
                           .weak = LOP_WEAK,
                           .core = 2};
    const lop_node *child[2 * MOST], *zeros = NULL;
    lop_status st = lop_make(mk, "zeros", NULL, 0, NULL, &like, &zeros);
    for (int i = 0; i < 2 * k; i++) child[i] = zeros;
    child[0] = u;
    child[2 * k - 1] = w;
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_block, &row, 2 * k, child, NULL, out);
    lop_node_unref(zeros);
    return st;
}

/* The diagonal of the product without its number as a chain. Owned. */
static lop_status chain_of_plain(const lop_match *m, const lop_maker *mk, const lop_node *plain,
                                 const lop_node **out) {
    lop_match own = *m;
    const lop_node *root = NULL;
    lop_status st = lop_make1(mk, &lop_op_diagonal, &m->root->attr, plain, &root);
    own.root = root;
    if (st == LOP_OK) st = lop_build_chain_diagonal(&own, mk, out);
    if (st == LOP_NOMATCH && root) st = lop_diagonal_of_dense(mk, m->root->dtype, plain, out);
    lop_node_unref(root);
    return st;
}

/* The diagonal of U A^-1 X A^-1 W^T, and longer ones, all sparse: where rows of U and W meet. */
LOP_BUILD(rows_between_sparse) {
    const lop_node *p = m->root->child[0], *plain = NULL, *all = NULL, *u = NULL, *v = NULL,
                   *both = NULL, *alt = NULL, *less = NULL, *value = NULL;
    lop_word w;
    int at[MOST];
    if (!takes_rows(mk, m->root)) return LOP_NOMATCH;
    lop_status st = lop_word_opened(mk, p, LOP_N, &w);
    between b = {.by = w.c, .count = st == LOP_OK ? inverses(w.f, w.n, at) : 0};
    if (st == LOP_OK && b.count == 0) st = LOP_NOMATCH;
    if (st == LOP_OK) st = read_factors(mk, w.f, w.n, at, &b);
    if (st == LOP_OK) st = read_rows(mk, &w, at, &b, &u, &v);
    if (st == LOP_OK) st = chained(mk, &b, &all);
    if (st == LOP_OK) st = outer_rows(mk, b.count, u, v, &both);
    if (st == LOP_OK) st = lop_product_of(mk, w.f, w.n, &plain);
    if (st == LOP_OK) st = chain_of_plain(m, mk, plain, &alt);
    if (st == LOP_OK) st = turned(mk, &b, alt, &less);
    const lop_node *child[3] = {all, both, less};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparserows, NULL, 3, child, NULL, &value);
    if (st == LOP_OK) st = numbered(mk, &b, value, out);
    const lop_node *gone[] = {plain, all, u, v, both, alt, less, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    lop_word_close(&w);
    drop(&b);
    return st;
}

/* The root's action on the product without its number, by the dense form. */
static lop_status entries_of_plain(const lop_maker *mk, const lop_node *root, const lop_node *plain,
                                   const lop_node **out) {
    const lop_node *child[3] = {plain, root->child[1], root->child[2]}, *again = NULL;
    lop_status st = lop_make_op(mk, &lop_op_entry_sums, &root->attr, 3, child, NULL, &again);
    if (st == LOP_OK) st = lop_entries_of_dense(mk, again, out);
    lop_node_unref(again);
    return st;
}

LOP_BUILD(entries_between_sparse) {
    const lop_node *root = m->root, *plain = NULL, *all = NULL, *alt = NULL, *less = NULL,
                   *value = NULL;
    between b = {.by = lop_coef_const(1, 0)};
    if (!lop_is_blas(root->dtype) || root->n != 3 || root->attr.i[0] > LOP_AT_COO ||
        root->attr.i[1] != 0)
        return LOP_NOMATCH;
    lop_status st = read_between(mk, root->child[0], &b, &plain, &all);
    const lop_attr at = {.i = {root->attr.i[0], b.count, 0, 0}}; /* of the block in the corner */
    if (st == LOP_OK) st = entries_of_plain(mk, root, plain, &alt);
    if (st == LOP_OK) st = turned(mk, &b, alt, &less);
    const lop_node *child[4] = {all, root->child[1], root->child[2], less};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparseentries, &at, 4, child, NULL, &value);
    if (st == LOP_OK) st = numbered(mk, &b, value, out);
    const lop_node *gone[] = {plain, all, alt, less, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    drop(&b);
    return st;
}

/* tr(A^-1 X A^-1 Y) and tr(A^-1 X A^-1 Y A^-1 Z), whatever stands first. */
LOP_BUILD(trace_between_sparse) {
    const lop_node *p = m->root->child[0], *last = NULL, *all = NULL, *z = NULL, *d = NULL,
                   *alt = NULL, *less = NULL, *value = NULL, *plain = NULL;
    lop_word w;
    int at[MOST];
    if (lop_nbatch(p) > 0 || !lop_is_blas(m->root->dtype)) return LOP_NOMATCH;
    lop_status st = lop_word_opened(mk, p, LOP_N, &w);
    between b = {.by = w.c};
    b.count = st == LOP_OK ? inverses(w.f, w.n, at) : 0;
    if (st == LOP_OK && b.count == 0) st = LOP_NOMATCH;
    if (st == LOP_OK) st = read_factors(mk, w.f, w.n, at, &b);
    if (st == LOP_OK) st = some_of(mk, w.f, w.n, at[b.count - 1] + 1, w.n + at[0], &last);
    if (st == LOP_OK) st = chained(mk, &b, &all);
    if (st == LOP_OK && (!lop_is_square(last) || lop_rows(last) != lop_rows(b.a))) st = LOP_NOMATCH;
    if (st == LOP_OK) st = in_corner(mk, b.count, last, &z);
    if (st == LOP_OK && lop_sparse_entries(z) < 0) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_product_of(mk, w.f, w.n, &plain);
    if (st == LOP_OK) st = lop_diagonal_of_dense(mk, m->root->dtype, plain, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_sumall, NULL, d, &alt);
    if (st == LOP_OK) st = turned(mk, &b, alt, &less);
    const lop_node *child[3] = {all, z, less};
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_sparsetrace, NULL, 3, child, NULL, &value);
    if (st == LOP_OK) st = numbered(mk, &b, value, out);
    const lop_node *gone[] = {last, all, z, d, alt, less, value, plain};
    for (size_t k = 0; k < sizeof gone / sizeof gone[0]; k++) lop_node_unref(gone[k]);
    lop_word_close(&w);
    drop(&b);
    return st;
}
