/* diagonals_of_products.c: diagonals and traces of products that need neither a dense form nor a
 * product with each unit vector.
 *
 *   diag(S A S^T) = S diag(A)                      S a Selection or a Permutation
 *   diag(A (B + U C V^H) D) = diag(A B D) + diag((A U C) (V^H D))
 *   diag(A B) = diag(A B[:, :m])                   of m rows and many more columns
 *
 * The second, of any terms of a sum, where all factors have few entries, or few columns or rows, or
 * are circulant, or inverses of what is solved with at once: n k flops where unit vectors take n^2.
 * What has no part of few columns goes as a product of circulants, between one inverse twice, or
 * for a trace with entries of the inverse of a sparse matrix (solve_sparse.c). A product
 * that is an operator is the chain of its applications, so that each entry of what is written is
 * off by n u |A| (|B| + |U| |C| |V^H|) |D| too: terms of a sum are applied each by itself. The
 * other two leave out entries that a diagonal does not show: nothing else is rounded. */
#include "builds.h"
#include "ops/shared/sparse_solver.h"
#include "expr/properties.h"
#include "rewrite/guards.h"

enum { FACTORS = 8, TERMS = 8, THIN = 8, DEEP = 6, ENTRIES = 64 };

static const lop_node *stripped(const lop_node *a) {
    while (a->op == &lop_op_scaled || a->op == &lop_op_view) a = a->child[0];
    return a;
}

/* The product that the root asks of: its factors, 2 or more. 0: not for here. */
static int read(const lop_match *m, const lop_node **f) {
    const lop_node *p = m->root->child[0];
    if (!lop_is_blas(m->root->dtype) || p->dtype != m->root->dtype || lop_nbatch(p) > 0) return 0;
    const int n = lop_product_factors(p, f, FACTORS);
    return n < 2 ? 0 : n;
}

/* -- few entries, few columns */

static bool blocks_are_small(const lop_node *a) {
    double all = 0;
    for (int i = 0; i < a->n; i++)
        all += (double)lop_rows(a->child[i]) * (double)lop_cols(a->child[i]);
    return all <= ENTRIES * (double)lop_rows(a);
}
static bool has_few(const lop_node *a) {
    a = stripped(a);
    if (lop_nbatch(a) > 0) return false;
    return a->op == &lop_op_blockdiag ? blocks_are_small(a) : lop_has(a, LOP_FLAG_few_entries);
}
static bool is_thin(const lop_node *a) { /* a matrix of few columns or rows, as it is held */
    const int64_t m = lop_rows(a), n = lop_cols(a);
    const lop_node *in = stripped(a);
    return (m <= n / THIN || n <= m / THIN) && in->op == &lop_op_dense && lop_nbatch(a) == 0;
}
static bool is_diagonal(const lop_node *a) { return lop_has(stripped(a), LOP_FLAG_diagonal); }
static bool is_quick_inverse(const lop_node *a) {
    const lop_node *in = stripped(a);
    if (in->op != &lop_op_inverse || lop_nbatch(a) > 0) return false;
    in = in->child[0];
    const bool update = in->op == &lop_op_lowrankupdate && is_diagonal(in->child[0]) &&
                        lop_cols(in->child[1]) <= lop_rows(in) / THIN;
    return (update || lop_cheap_to_solve(in)) && lop_infer_regular(in) != LOP_FALSE;
}
static bool is_circular(const lop_node *a) {
    const lop_node *sizes = NULL;
    return lop_is_circulant(a, LOP_CIRCULANT_DEPTH, &sizes);
}
/* U V^H of few columns, in whichever way it is written: somewhere within it there are few. */
static bool is_low(const lop_node *a, int depth) {
    if (depth == 0 || !lop_is_square(a) || lop_nbatch(a) > 0) return false;
    if (a->op == &lop_op_scaled) return is_low(a->child[0], depth - 1);
    if (a->op == &lop_op_lowrank) return lop_cols(a->child[0]) <= lop_rows(a) / THIN;
    return a->op == &lop_op_prod &&
           (lop_cols(a->child[0]) <= lop_rows(a) / THIN || is_low(a->child[0], depth - 1) ||
            is_low(a->child[1], depth - 1));
}
static bool is_light(const lop_node *a, int depth) {
    if (is_quick_inverse(a) || is_circular(a)) return true;
    if (has_few(a) || is_thin(a) || is_low(a, DEEP) || lop_sparse_entries(a) >= 0) return true;
    if (depth == 0) return false;
    if (a->op == &lop_op_scaled) return is_light(a->child[0], depth - 1);
    if (a->op == &lop_op_sum)
        return is_light(a->child[0], depth - 1) && is_light(a->child[1], depth - 1);
    return a->op == &lop_op_lowrankupdate && lop_cols(a->child[1]) <= lop_rows(a) / THIN &&
           lop_nbatch(a) == 0 && is_light(a->child[0], depth - 1);
}

/* -- terms of a factor, and of the product */

typedef struct terms {
    const lop_node *at[TERMS]; /* owned */
    int n;
} terms;

static void drop(terms *t) {
    for (int i = 0; i < t->n; i++) lop_node_unref(t->at[i]);
    t->n = 0;
}
/* Takes `a` over. */
static lop_status put(terms *t, const lop_node *a) {
    if (t->n == TERMS) {
        lop_node_unref(a);
        return LOP_NOMATCH;
    }
    t->at[t->n++] = a;
    return LOP_OK;
}

/* U C V^H as a product. */
static lop_status low_part(const lop_maker *mk, const lop_node *u, const lop_node *v,
                           const lop_node *c, const lop_node **out) {
    const lop_attr adjoint = {.i = {LOP_H, 0, 0, 0}};
    const lop_node *vh = NULL, *uc = NULL;
    lop_status st = lop_make1(mk, &lop_op_view, &adjoint, v, &vh);
    if (st == LOP_OK && c) st = lop_make2(mk, &lop_op_prod, NULL, u, c, &uc);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, uc ? uc : u, vh, out);
    lop_node_unref(vh);
    lop_node_unref(uc);
    return st;
}

static lop_status open_terms(const lop_maker *mk, const lop_node *a, terms *t, int depth) {
    const lop_node *low = NULL;
    if (depth > 0 && a->op == &lop_op_sum) {
        lop_status st = open_terms(mk, a->child[0], t, depth - 1);
        return st == LOP_OK ? open_terms(mk, a->child[1], t, depth - 1) : st;
    }
    if (depth > 0 && a->op == &lop_op_scaled && !has_few(a)) {
        terms in = {.n = 0};
        lop_status st = open_terms(mk, a->child[0], &in, depth - 1);
        for (int i = 0; st == LOP_OK && i < in.n; i++) {
            st = lop_make1(mk, &lop_op_scaled, &a->attr, in.at[i], &low);
            if (st == LOP_OK) st = put(t, low);
        }
        drop(&in);
        return st;
    }
    if (a->op == &lop_op_lowrank) {
        lop_status st = low_part(mk, a->child[0], a->child[1], a->n > 2 ? a->child[2] : NULL, &low);
        return st == LOP_OK ? put(t, low) : st;
    }
    if (depth > 0 && a->op == &lop_op_lowrankupdate) {
        lop_status st = open_terms(mk, a->child[0], t, depth - 1);
        if (st == LOP_OK)
            st = low_part(mk, a->child[1], a->child[2], a->n > 3 ? a->child[3] : NULL, &low);
        return st == LOP_OK ? put(t, low) : st;
    }
    if (a->op == &lop_op_view) { /* of a Diag, which is one */
        lop_status st = lop_close_once(mk, a, &low);
        if (st != LOP_NOMATCH) return st == LOP_OK ? put(t, low) : st;
    }
    return put(t, lop_node_ref(a));
}

static bool is_narrow(const lop_node *a) {
    if (!lop_is_square(a)) return false;
    const lop_band b = lop_infer_bands(a);
    return 8 * (b.l + b.u) <= lop_rows(a);
}

/* Is the diagonal of the product of these as cheap as their entries are few? Of one that has few
 * columns it is; of sparse matrices two are multiplied entry by entry. */
static bool is_quick(const lop_node *const *f, int n) {
    int scattered = 0, bands = 0, others = 0, circular = 0;
    for (int i = 0; i < n; i++) {
        if (is_low(f[i], DEEP) || is_thin(f[i])) return true;
        circular += is_circular(f[i]);
    }
    if (circular == n) return true;
    for (int i = 0; i < n; i++) {
        if (is_diagonal(f[i])) continue;
        if (is_narrow(f[i]))
            bands++;
        else if (stripped(f[i])->op == &lop_op_sparse)
            scattered++;
        else
            others++;
    }
    return bands + scattered + others <= 1 || scattered + others == 0 ||
           (bands + others == 0 && scattered == 2);
}

/* Multiples of the identity are multiples of the product of the others. */
static lop_status without_identities(const lop_maker *mk, const lop_node *const *f, int n,
                                     const lop_node **out) {
    const lop_node *rest[FACTORS], *all = NULL;
    lop_coef c = lop_coef_const(1, 0);
    int left = 0;
    for (int i = 0; i < n; i++) {
        const bool times = f[i]->op == &lop_op_scaled;
        const lop_node *in = times ? f[i]->child[0] : f[i];
        if (in->op != &lop_op_identity || in->dtype != f[0]->dtype || !lop_is_square(in)) {
            rest[left++] = f[i];
            continue;
        }
        if (times) c = lop_coef_times(mk->ctx, c, lop_coef_of(&f[i]->attr));
    }
    if (left == n || left == 0) return lop_product_of(mk, f, n, out);
    lop_status st = lop_product_of(mk, rest, left, &all);
    if (st == LOP_OK && all->dtype != f[0]->dtype) {
        lop_node_unref(all);
        return lop_product_of(mk, f, n, out);
    }
    const lop_attr by = lop_coef_attr(c);
    if (st == LOP_OK && lop_coef_test(mk->ctx, c, LOP_COEF_ONE))
        *out = lop_node_ref(all);
    else if (st == LOP_OK)
        st = lop_make1(mk, &lop_op_scaled, &by, all, out);
    lop_node_unref(all);
    return st;
}

/* The sum over all choices of one term a factor. */
static lop_status spread(const lop_match *m, const lop_maker *mk, const terms *of, int n,
                         const lop_node **out) {
    int at[FACTORS] = {0}, i;
    const lop_node *sum = NULL;
    lop_status st = LOP_OK;
    do {
        const lop_node *f[FACTORS], *p = NULL, *value = NULL;
        for (i = 0; i < n; i++) f[i] = of[i].at[at[i]];
        const bool turns = m->root->op == &lop_op_trace && lop_turns_to_inverse(f, n);
        st = without_identities(mk, f, n, &p);
        if (st == LOP_OK && !is_quick(f, n) && !turns)
            st = lop_is_between_update(mk, stripped(p), m->root->dtype);
        if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, p, &value);
        if (st == LOP_OK && sum) {
            const lop_node *both = NULL;
            st = lop_make2(mk, &lop_op_add, NULL, sum, value, &both);
            lop_node_unref(sum);
            sum = both;
        } else if (st == LOP_OK) {
            sum = lop_node_ref(value);
        }
        lop_node_unref(p);
        lop_node_unref(value);
        for (i = n - 1; i >= 0 && ++at[i] == of[i].n; i--) at[i] = 0;
    } while (st == LOP_OK && i >= 0);
    if (st == LOP_OK)
        *out = sum;
    else
        lop_node_unref(sum);
    return st;
}

/* Has it a diagonal of O(n) numbers that are read off? */
static bool is_at_hand(const lop_node *a, int depth) {
    if (depth == 0 || lop_nbatch(a) > 0 || !lop_is_square(a)) return false;
    if (a->op == &lop_op_inverse) {
        const lop_node *in = stripped(a->child[0]);
        return is_diagonal(in) || in->op == &lop_op_circulant ||
               (lop_has(in, LOP_FLAG_band) && is_narrow(in));
    }
    if (a->op == &lop_op_lowrankupdate)
        return lop_cols(a->child[1]) <= lop_rows(a) / THIN && is_at_hand(a->child[0], depth - 1);
    if (a->op == &lop_op_prod)
        return (is_diagonal(a->child[0]) && is_at_hand(a->child[1], depth - 1)) ||
               (is_diagonal(a->child[1]) && is_at_hand(a->child[0], depth - 1));
    if (a->op == &lop_op_power || a->op == &lop_op_sliced || a->op == &lop_op_block ||
        a->op == &lop_op_lowrank)
        return false;
    for (int i = 0; i < a->n; i++)
        if (a->child[i]->op->cls == LOP_OPERATOR && !is_at_hand(a->child[i], depth - 1))
            return false;
    return true;
}

/* Are they all light, but for at most one whose diagonal is at hand: a Kernel, a Dense? */
static bool are_light(const lop_node *const *f, int n) {
    int heavy = 0;
    for (int i = 0; i < n; i++) {
        if (is_light(f[i], DEEP)) continue;
        if (heavy++ || !is_at_hand(f[i], DEEP)) return false;
    }
    return true;
}

LOP_BUILD(value_of_terms) {
    const lop_node *f[FACTORS];
    terms of[FACTORS] = {{.n = 0}};
    const int n = read(m, f);
    int64_t all = 1;
    lop_status st = n ? LOP_OK : LOP_NOMATCH;
    if (st == LOP_OK && !are_light(f, n)) st = LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        st = open_terms(mk, f[i], &of[i], DEEP);
        all *= of[i].n;
        if (all > TERMS) st = LOP_NOMATCH;
    }
    if (st == LOP_OK && all < 2) st = LOP_NOMATCH;
    if (st == LOP_OK) st = spread(m, mk, of, n, out);
    for (int i = 0; i < n; i++) drop(&of[i]);
    return st;
}

/* -- what is picked */

/* Are they S and S^T? The transpose of a permutation may be that of the inverse order. */
static bool picks(const lop_node *a, const lop_node *b) {
    const lop_node *in = b->op == &lop_op_view && (b->attr.i[0] & LOP_T) ? b->child[0] : NULL;
    if (a->op == &lop_op_selection) return in && lop_node_alike(a, in, LOP_INFER_DEPTH);
    if (a->op != &lop_op_permutation) return false;
    if (in) return lop_node_alike(a, in, LOP_INFER_DEPTH);
    if (b->op != a->op) return false;
    const lop_node *p = a->child[0], *q = b->child[0];
    return (p->op == &lop_op_inverse_permutation && lop_node_alike(p->child[0], q, DEEP)) ||
           (q->op == &lop_op_inverse_permutation && lop_node_alike(q->child[0], p, DEEP));
}

static lop_status ones_of(const lop_maker *mk, int64_t n, lop_dtype dt, const lop_node **out) {
    const lop_node like = {.shape = {.ndim = 2, .dim = {n, 1}}, .dtype = dt, .core = 2};
    return lop_make(mk, "bandprobe", NULL, 0, NULL, &like, out);
}

/* S (diag(A) 1). */
LOP_BUILD(diagonal_picked) {
    const lop_node *f[FACTORS], *d = NULL, *between = NULL, *x = NULL, *column = NULL, *few = NULL,
                                *one = NULL, *row = NULL;
    const lop_attr main_one = {.i = {0, 0, 0, m->root->attr.i[3]}}, turn = {.i = {LOP_T, 0, 0, 0}},
                   main = {.i = {0, 0, 0, 0}};
    const int n = read(m, f);
    if (n != 3 || m->root->attr.i[0] != 0 || !picks(f[0], f[2]) || lop_rows(f[0]) < 2 ||
        !is_at_hand(f[1], DEEP))
        return LOP_NOMATCH;
    lop_status st = lop_make1(mk, &lop_op_diagonal, &main_one, f[1], &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diag, NULL, d, &between);
    if (st == LOP_OK) st = ones_of(mk, lop_cols(f[1]), m->root->dtype, &x);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, between, x, &column);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, f[0], column, &few);
    if (st == LOP_OK) st = ones_of(mk, lop_rows(f[0]), m->root->dtype, &one);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_swap, &turn, one, &row);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_product_diagonal, &main, few, row, out);
    const lop_node *gone[] = {d, between, x, column, few, one, row};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(trace_picked) {
    const lop_node *f[FACTORS];
    const int n = read(m, f);
    if (n != 3 || !picks(f[0], f[2]) || lop_rows(f[0]) < 2 || !is_at_hand(f[1], DEEP))
        return LOP_NOMATCH;
    return lop_build_trace_diagonal(m, mk, out);
}

/* -- of many more columns than rows, or rows than columns */

static bool is_held(const lop_node *a) {
    a = stripped(a);
    return a->op == &lop_op_dense || has_few(a);
}

LOP_BUILD(diagonal_of_rows) {
    const lop_node *f[FACTORS], *cut = NULL, *all = NULL, *dense = NULL;
    const int n = read(m, f);
    bool held = true;
    if (!n || m->root->attr.i[0] != 0) return LOP_NOMATCH;
    const int64_t rows = lop_rows(m->root->child[0]), cols = lop_cols(m->root->child[0]);
    if (rows < 1 || cols < 1 || (2 * rows > cols && 2 * cols > rows)) return LOP_NOMATCH;
    for (int i = 0; i < n; i++) held = held && is_held(f[i]);
    if (held) return LOP_NOMATCH;
    const int end = rows < cols ? n - 1 : 0;
    const lop_attr first = {.i = {rows < cols, 0, 1, rows < cols ? rows : cols}},
                   dt = {.i = {0, 0, 0, m->root->attr.i[3]}};
    lop_status st;
    if (rows > cols && !is_held(f[0])) { /* as many products as there are columns */
        st = lop_make1(mk, &lop_op_todense, &dt, m->root->child[0], &dense);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_array_diagonal, &m->root->attr, dense, out);
        lop_node_unref(dense);
        return st;
    }
    st = lop_make1(mk, &lop_op_sliced, &first, f[end], &cut);
    if (st == LOP_OK) {
        f[end] = cut;
        st = lop_product_of(mk, f, n, &all);
    }
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, all, out);
    lop_node_unref(cut);
    lop_node_unref(all);
    return st;
}
