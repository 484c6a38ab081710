/* pushed_inverses.c: traces of A^-1 U_1 Y, and diagonals of L A^-1 U_1 Y, where U_1 is a sparse
 * side of A's own, as in the derivatives of likelihoods of mixed models:
 *
 *   A = E + sum_i U_i V_i^H, E diagonal,   U = [U_1 U_2 ..],  V^H = [V_1^H; V_2^H; ..]
 *   A^-1 U = E^-1 U S^-1,   S = I + V^H E^-1 U          (Henderson and Searle 1981, eq. 17)
 *
 * A Hermitian, so that they are those of a product with S^-1, of as many rows as U has columns,
 * times the rows of U_1. The entries of A^-1, of which there are as many as pairs of rows that see
 * one column, are not needed, and nothing is lost between terms of E^-1's size. Accepted where a
 * probe is solved with by the same S, and E is not much nearer to a singular matrix than A is; else
 * by the dense form. Others are left alone: of an A whose pattern is not symmetric entries that are
 * 0 come out as 0 to rounding only. */
#include "builds.h"
#include "expr/properties.h"
#include "ops/shared/sparse_solver.h"
#include "pushed_inverses.h"
#include "rewrite/cheap_to_solve.h"
#include "sparse_updates.h"
#include "thin_sum.h"

enum { TERMS = LOP_PUSHED_TERMS, FEWEST = 64 };

/* A, and which U_i follows A^-1, and how many factors that takes; -1: none does. */
typedef struct pushed {
    lop_pushed all;
    int own, taken;
} pushed;

void lop_pushed_close(lop_pushed *p) {
    const lop_node *gone[] = {p->e, p->over, p->u, p->vh, p->s};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    for (int i = 0; i < p->terms; i++) {
        lop_node_unref(p->side[i]);
        lop_node_unref(p->across[i]);
    }
}

/* Is what follows, f[from] and on, round to the front where `cyclic`, the side of n factors? */
static bool follows(const lop_node *const *f, int all, int at, bool cyclic,
                    const lop_node *const *side, int n) {
    if (n >= all || (!cyclic && at + n >= all)) return false;
    for (int i = 0; i < n; i++)
        if (!lop_node_alike(f[(at + 1 + i) % all], side[i], LOP_INFER_DEPTH)) return false;
    return true;
}

static bool is_full(const lop_node *a) {
    while (a->op == &lop_op_view || a->op == &lop_op_scaled) a = a->child[0];
    return a->op == &lop_op_dense;
}

/* c U_i V_i^H of sparse factors, cut where the fewest columns meet. NOMATCH: it is none. */
static lop_status read_term(lop_pushed *p, const lop_node *term) {
    const lop_node *g[LOP_FACTORS], *vh = NULL;
    lop_coef c = lop_coef_const(1, 0);
    const int n = lop_factors_times(term, g, &c), i = p->terms;
    int cut = 1;
    if (n < 2 || i == TERMS || !lop_coef_test(p->mk->ctx, c, LOP_COEF_NEAR)) return LOP_NOMATCH;
    if (is_full(g[0]) || is_full(g[n - 1])) return LOP_NOMATCH; /* Woodbury's formula is for it */
    for (int j = 0; j < n; j++)
        if (lop_sparse_entries(g[j]) < 0 ||
            (lop_is_blas(g[j]->dtype) && g[j]->dtype != p->sum->dtype))
            return LOP_NOMATCH; /* integers count as floats from their leaves on */
    for (int j = 2; j < n; j++)
        if (lop_rows(g[j]) < lop_rows(g[cut])) cut = j;
    lop_status st = lop_product_of(p->mk, g, cut, &p->side[i]);
    if (st == LOP_OK) st = lop_product_of(p->mk, g + cut, n - cut, &vh);
    if (st == LOP_OK) st = lop_thin_multiple(p->mk, c, vh, &p->across[i]);
    lop_node_unref(vh);
    p->terms++;
    return st;
}

static int64_t columns(const lop_pushed *p) {
    int64_t all = 0;
    for (int i = 0; i < p->terms; i++) all += lop_cols(p->side[i]);
    return all;
}

lop_status lop_pushed_joined(const lop_pushed *p, const lop_node *const *part, int rows, int cols,
                             const lop_node **out) {
    const lop_attr shape = {.i = {rows, cols, 0, 0}};
    if (rows * cols > 1)
        return lop_make_op(p->mk, &lop_op_block, &shape, rows * cols, part, NULL, out);
    *out = lop_node_ref(part[0]);
    return LOP_OK;
}

/* x E^-1 U_j. */
static lop_status meets(const lop_pushed *p, const lop_node *x, int j, const lop_node **out) {
    const lop_node *eu = NULL;
    lop_status st = lop_make2(p->mk, &lop_op_prod, NULL, p->over, p->side[j], &eu);
    if (st == LOP_OK) st = lop_make2(p->mk, &lop_op_prod, NULL, x, eu, out);
    lop_node_unref(eu);
    return st;
}

/* Part i, j of I, or of zeros where i is not j. */
static lop_status plain(const lop_pushed *p, int i, int j, const lop_node **out) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {lop_cols(p->side[i]), lop_cols(p->side[j])}},
        .dtype = LOP_f64,
        .weak = LOP_WEAK,
        .core = 2};
    return lop_make(p->mk, i == j ? "identity" : "zeros", NULL, 0, NULL, &like, out);
}

/* S, by the sides. */
static lop_status make_small(lop_pushed *p) {
    const lop_node *part[TERMS * TERMS] = {NULL};
    lop_status st = lop_noise_inverse(p->mk, p->e, &p->over);
    for (int i = 0; st == LOP_OK && i < p->terms; i++)
        for (int j = 0; st == LOP_OK && j < p->terms; j++) {
            const lop_node *x = NULL, *eye = NULL, **to = &part[i * p->terms + j];
            st = meets(p, p->across[i], j, i == j ? &x : to);
            if (st == LOP_OK && i == j) st = plain(p, i, i, &eye);
            if (st == LOP_OK && i == j) st = lop_sum_closed(p->mk, x, eye, to);
            lop_node_unref(x);
            lop_node_unref(eye);
        }
    if (st == LOP_OK) st = lop_pushed_joined(p, part, p->terms, p->terms, &p->s);
    for (int i = 0; i < p->terms * p->terms; i++) lop_node_unref(part[i]);
    if (st == LOP_OK) st = lop_pushed_joined(p, p->side, 1, p->terms, &p->u);
    if (st == LOP_OK) st = lop_pushed_joined(p, p->across, p->terms, 1, &p->vh);
    return st == LOP_OK && p->s->dtype != p->sum->dtype ? LOP_NOMATCH : st;
}

lop_status lop_pushed_read(const lop_maker *mk, const lop_node *sum, lop_dtype dt, lop_pushed *p) {
    const lop_node *term[TERMS];
    const lop_sparse *outside = mk->ctx->sparse;
    *p = (lop_pushed){.mk = mk, .sum = sum};
    if (sum->op != &lop_op_sum || lop_nbatch(sum) > 0 || sum->dtype != dt || !outside ||
        (!outside->fewest && lop_rows(sum) < FEWEST) || !lop_infer_hermitian(sum))
        return LOP_NOMATCH;
    const int terms = lop_terms_of(sum, term, TERMS);
    lop_status st = terms ? LOP_OK : LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < terms; i++)
        st = lop_is_noise(term[i]) ? lop_plus(mk, term[i], &p->e) : read_term(p, term[i]);
    if (st != LOP_OK) return st;
    if (!p->terms || !p->e || !lop_is_noise(p->e) || !lop_noise_is_exact(p->e, sum) ||
        2 * columns(p) > lop_rows(sum))
        return LOP_NOMATCH;
    return make_small(p);
}

/* Which U_i, by its factors, follows the inverse at `at`; -1: none does. */
static int own_side(const lop_pushed *p, const lop_node *const *f, int all, int at, bool cyclic,
                    int *taken) {
    for (int i = 0; i < p->terms; i++) {
        const lop_node *g[LOP_FACTORS];
        lop_coef c = lop_coef_const(1, 0);
        *taken = lop_factors_times(p->side[i], g, &c);
        if (follows(f, all, at, cyclic, g, *taken)) return i;
    }
    return -1;
}

/* A of the inverse at `at`, and the side of it that follows. To be closed whatever comes back. */
static lop_status read(const lop_match *m, const lop_maker *mk, const lop_node *const *f, int n,
                       int at, pushed *p) {
    int64_t mode;
    const lop_node *sum = lop_inverse_seen(f[at], &mode);
    *p = (pushed){.own = -1};
    if (!sum || (lop_is_complex(sum->dtype) && mode != LOP_N && mode != LOP_H)) return LOP_NOMATCH;
    lop_status st = lop_pushed_read(mk, sum, m->root->dtype, &p->all);
    if (st != LOP_OK) return st;
    p->own = own_side(&p->all, f, n, at, m->root->op == &lop_op_trace, &p->taken);
    const bool whole = n == 1; /* the trace of A^-1 */
    if (p->own < 0 && !whole) return LOP_NOMATCH;
    const int64_t most = lop_cols(p->all.side[p->own < 0 ? 0 : p->own]);
    for (int i = 0; i < n; i++) /* what passes through fewer columns does less */
        if (2 * lop_rows(f[i]) <= most || 2 * lop_cols(f[i]) <= most) return LOP_NOMATCH;
    return LOP_OK;
}

lop_status lop_pushed_rows(const lop_pushed *p, int own, bool through, const lop_node *y,
                           const lop_node **out) {
    const lop_node *part[TERMS * TERMS] = {NULL}, *eye = NULL;
    const int cols = through ? p->terms : 1;
    lop_status st = y ? LOP_OK : plain(p, own, own, &eye);
    for (int i = 0; st == LOP_OK && i < p->terms; i++)
        for (int j = 0; st == LOP_OK && j < cols; j++) {
            const lop_node *given = y ? y : eye, **to = &part[i * cols + j];
            const lop_node like = {
                .shape = {.ndim = 2,
                          .dim = {lop_cols(p->side[i]), lop_cols(through ? p->side[j] : given)}},
                .dtype = LOP_f64,
                .weak = LOP_WEAK,
                .core = 2};
            if (i != own)
                st = lop_make(p->mk, "zeros", NULL, 0, NULL, &like, to);
            else if (through)
                st = meets(p, given, j, to);
            else
                *to = lop_node_ref(given);
        }
    if (st == LOP_OK) st = lop_pushed_joined(p, part, p->terms, cols, out);
    for (int i = 0; i < p->terms * cols; i++) lop_node_unref(part[i]);
    lop_node_unref(eye);
    return st;
}

/* L E^-1 U S^-1 [Y; 0], or of a trace S^-1 [Y; 0] E^-1 U. */
static lop_status product(const pushed *own, bool trace, const lop_node *const *f, int n, int at,
                          const lop_node **out) {
    const lop_node *part[LOP_FACTORS + 4], *rest[LOP_FACTORS], *y = NULL, *in = NULL, *rows = NULL;
    const lop_pushed *p = &own->all;
    const int last = trace ? n : n - at;
    int k = 0, behind = 0;
    for (int i = 1 + own->taken; i < last; i++) rest[behind++] = f[(at + i) % n];
    lop_status st = behind ? lop_product_of(p->mk, rest, behind, &y) : LOP_OK;
    if (st == LOP_OK) st = lop_pushed_rows(p, own->own, trace, y, &rows);
    if (st == LOP_OK) st = lop_inverse_closed(p->mk, p->s, &in);
    if (!trace) {
        for (int i = 0; i < at; i++) part[k++] = f[i];
        part[k++] = p->over;
        part[k++] = p->u;
    }
    part[k++] = in;
    part[k++] = rows;
    if (st == LOP_OK) st = lop_product_of(p->mk, part, k, out);
    lop_node_unref(y);
    lop_node_unref(in);
    lop_node_unref(rows);
    return st;
}

lop_status lop_pushed_solution(const void *of, const lop_node *v, const lop_node **out) {
    const lop_pushed *p = of;
    const lop_maker *mk = p->mk;
    const lop_node *w = NULL, *g = NULL, *z = NULL, *uz = NULL, *y = NULL;
    lop_status st = lop_make2(mk, &lop_op_solve, NULL, p->e, v, &w);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, p->vh, w, &g);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, p->s, g, &z);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, p->u, z, &uz);
    if (st == LOP_OK) st = lop_build_minus(mk, v, uz, &y);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_solve, NULL, p->e, y, out);
    const lop_node *gone[] = {w, g, z, uz, y};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

lop_status lop_product_by_dense(const lop_maker *mk, const lop_node *root, const lop_node **out) {
    const lop_node *d = NULL;
    lop_status st = lop_diagonal_of_dense(mk, root->dtype, root->child[0], &d);
    if (st != LOP_OK || root->op != &lop_op_trace) {
        *out = d;
        return st;
    }
    st = lop_make1(mk, &lop_op_sumall, NULL, d, out);
    lop_node_unref(d);
    return st;
}

/* tr(E^-1) - tr(S^-1 V^H E^-2 U). */
static lop_status trace_alone(const lop_pushed *p, const lop_node *root, const lop_node **out) {
    const lop_maker *mk = p->mk;
    const lop_attr *k = &root->attr;
    const lop_node *part[TERMS * TERMS] = {NULL}, *all = NULL, *in = NULL, *both = NULL,
                                 *own = NULL, *low = NULL;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < p->terms; i++)
        for (int j = 0; st == LOP_OK && j < p->terms; j++) {
            const lop_node *x = NULL;
            st = lop_make2(mk, &lop_op_prod, NULL, p->across[i], p->over, &x);
            if (st == LOP_OK) st = meets(p, x, j, &part[i * p->terms + j]);
            lop_node_unref(x);
        }
    if (st == LOP_OK) st = lop_pushed_joined(p, part, p->terms, p->terms, &all);
    if (st == LOP_OK) st = lop_inverse_closed(mk, p->s, &in);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, in, all, &both);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_trace, k, both, &low);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_trace, k, p->over, &own);
    if (st == LOP_OK) st = lop_build_minus(mk, own, low, out);
    for (int i = 0; i < p->terms * p->terms; i++) lop_node_unref(part[i]);
    const lop_node *gone[] = {all, in, both, own, low};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

LOP_BUILD(pushed_inverse) {
    const lop_node *f[LOP_FACTORS], *root = m->root, *p = root->child[0], *all = NULL,
                                    *value = NULL, *times = NULL, *alt = NULL;
    lop_coef c = lop_coef_const(1, 0);
    const bool trace = root->op == &lop_op_trace,
               plain = lop_nbatch(p) == 0 && lop_is_blas(root->dtype) && p->dtype == root->dtype &&
                       (!trace || lop_is_square(p));
    const int n = plain ? lop_factors_times(p, f, &c) : 0;
    const lop_attr by = lop_coef_attr(c);
    pushed own = {.own = -1};
    lop_status st = LOP_NOMATCH;
    int at = 0;
    for (; at < n; at++) {
        st = read(m, mk, f, n, at, &own);
        if (st != LOP_NOMATCH) break;
        lop_pushed_close(&own.all);
        own = (pushed){.own = -1};
    }
    if (st == LOP_OK && n > 1) st = product(&own, trace, f, n, at, &all);
    if (st == LOP_OK && n > 1) st = lop_make1(mk, root->op, &root->attr, all, &value);
    if (st == LOP_OK && n == 1) st = trace_alone(&own.all, root, &value);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &by, value, &times);
    if (st == LOP_OK && times->dtype != root->dtype) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_product_by_dense(mk, root, &alt);
    const lop_noise_check k = {mk, own.all.sum, own.all.e, lop_pushed_solution, &own.all};
    if (st == LOP_OK) st = lop_noise_checked(&k, times, alt, out);
    lop_pushed_close(&own.all);
    const lop_node *gone[] = {all, value, times, alt};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
