/* product_values.c: diagonals and traces of products whose parts fit: Kron by Kron, and a Block by
 * a Block. The product is not formed, nor is a dense form of its factors. */
#include "product_words.h"
#include "expr/properties.h"
#include "ops/shared/sparse_solver.h"
#include "sparse_updates.h"
#include "thin_sum.h"

enum { PARTS = 64 }; /* blocks of one row: more are left to the planner */

static int factors_of(const lop_node *p, lop_dtype dt, const lop_node **f, int room) {
    if (p->op != &lop_op_prod) {
        if (room < 1) return 0;
        f[0] = p;
        return 1;
    }
    if (p->dtype != dt) return 0;
    const int n = factors_of(p->child[0], dt, f, room),
              more = n ? factors_of(p->child[1], dt, f + n, room - n) : 0;
    return more ? n + more : 0;
}
int lop_product_factors(const lop_node *p, const lop_node **f, int room) {
    return factors_of(p, p->dtype, f, room);
}

const lop_node *lop_peeled(const lop_node *a, lop_coef *c) {
    if (a->op != &lop_op_scaled) return a;
    *c = lop_coef_times(a->ctx, *c, lop_coef_of(&a->attr));
    return a->child[0];
}

/* A factor of a product, seen through a view, and whether that is one of a product. */
typedef struct seen {
    const lop_node *node; /* borrowed */
    int mode;
    bool within;
} seen;

/* The factors of a product and of multiples of one, by whose numbers *c is multiplied, where
 * `views` of those it is a view of too; 0: there are too many. */
static int seen_factors(const lop_node *a, int mode, bool views, seen *f, lop_coef *c) {
    seen todo[LOP_FACTORS + 1] = {{.node = a, .mode = mode}};
    int waiting = 1, n = 0;
    while (waiting > 0) {
        seen t = todo[--waiting];
        const lop_node *x = t.node;
        if (x->op == &lop_op_scaled) {
            const lop_coef by = lop_coef_of(&x->attr);
            *c = lop_coef_times(x->ctx, *c, t.mode & LOP_C ? lop_coef_conj(x->ctx, by) : by);
            t.node = x->child[0];
            todo[waiting++] = t;
        } else if (views && x->op == &lop_op_view) {
            todo[waiting++] = (seen){x->child[0], t.mode ^ (int)x->attr.i[0], t.within};
        } else if (x->op == &lop_op_prod && waiting + 2 <= LOP_FACTORS) {
            const int first = t.mode & LOP_T ? 1 : 0;
            const bool within = t.within || t.mode;
            todo[waiting++] = (seen){x->child[1 - first], t.mode, within};
            todo[waiting++] = (seen){x->child[first], t.mode, within};
        } else if (x->op == &lop_op_prod || n == LOP_FACTORS) {
            return 0;
        } else {
            f[n++] = t;
        }
    }
    return n;
}

int lop_factors_times(const lop_node *a, const lop_node **f, lop_coef *c) {
    seen s[LOP_FACTORS];
    const int n = seen_factors(a, LOP_N, false, s, c);
    for (int i = 0; i < n; i++) f[i] = s[i].node;
    return n;
}

lop_status lop_word_opened(const lop_maker *mk, const lop_node *a, int mode, lop_word *w) {
    seen s[LOP_FACTORS];
    *w = (lop_word){.c = lop_coef_const(1, 0)};
    const int n = seen_factors(a, mode, true, s, &w->c);
    lop_status st = n ? LOP_OK : LOP_NOMATCH;
    for (int i = 0; st == LOP_OK && i < n; i++) {
        if (s[i].node->op == &lop_op_identity) continue;
        st = lop_view_once(mk, s[i].mode, s[i].node, &w->f[w->n]);
        if (st == LOP_OK) w->n++;
    }
    return st;
}

bool lop_has_few_entries(const lop_node *a) {
    if (lop_sparse_entries(a) >= 0) return true;
    while (a->op == &lop_op_view || a->op == &lop_op_scaled) a = a->child[0];
    return a->op == &lop_op_blockdiag;
}

/* Are they of floats, whose products may be taken in another order, and is there a sparse one that
 * is not diagonal within a view of a product? */
static bool worth_opening(const seen *f, int n) {
    bool found = false;
    for (int i = 0; i < n; i++) {
        const lop_node *a = f[i].node;
        if (!lop_is_blas(a->dtype)) return false;
        found |=
            f[i].within && a->op != &lop_op_dense && !lop_is_noise(a) && lop_has_few_entries(a);
    }
    return found;
}

/* X (Y Z)^H = X Z^H Y^H, that ways by what stands beside an inverse see the factors. */
LOP_BUILD(views_opened) {
    const lop_node *p = m->root->child[0], *f[LOP_FACTORS] = {NULL}, *all = NULL, *times = NULL;
    seen s[LOP_FACTORS];
    lop_coef c = lop_coef_const(1, 0);
    const int n = lop_nbatch(p) == 0 && p->dtype == m->root->dtype && lop_is_blas(p->dtype)
                      ? seen_factors(p, LOP_N, true, s, &c)
                      : 0;
    if (!worth_opening(s, n)) return LOP_NOMATCH;
    const lop_attr by = lop_coef_attr(c);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < n; i++) st = lop_view_once(mk, s[i].mode, s[i].node, &f[i]);
    if (st == LOP_OK) st = lop_product_of(mk, f, n, &all);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaled, &by, all, &times);
    if (st == LOP_OK && times->dtype != p->dtype) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, times, out);
    for (int i = 0; i < n; i++) lop_node_unref(f[i]);
    lop_node_unref(all);
    lop_node_unref(times);
    return st;
}

/* A of A^-1, borrowed, and the mode in which it is seen; NULL: f is no inverse. */
const lop_node *lop_inverse_seen(const lop_node *f, int64_t *mode) {
    *mode = 0;
    if (f->op == &lop_op_view) {
        *mode = f->attr.i[0];
        f = f->child[0];
    }
    if (f->op != &lop_op_inverse) return NULL;
    f = f->child[0];
    if (f->op == &lop_op_view) {
        *mode ^= f->attr.i[0];
        f = f->child[0];
    }
    return f;
}

lop_status lop_product_of(const lop_maker *mk, const lop_node *const *f, int n,
                          const lop_node **out) {
    const lop_node *all = lop_node_ref(f[0]);
    lop_status st = LOP_OK;
    for (int i = 1; st == LOP_OK && i < n; i++) {
        const lop_node *more = NULL;
        st = lop_make2(mk, &lop_op_prod, NULL, all, f[i], &more);
        lop_node_unref(all);
        all = more;
    }
    *out = all;
    return st;
}

/* (A (x) B) (C (x) D) = (A C) (x) (B D). */
LOP_BUILD(value_prod_krons) {
    const lop_node *p = m->root->child[0], *a = p->child[0], *b = p->child[1], *kron = NULL;
    if (!lop_is_blas(m->root->dtype) || a->n != b->n) return LOP_NOMATCH;
    for (int i = 0; i < a->n; i++)
        if (lop_cols(a->child[i]) != lop_rows(b->child[i])) return LOP_NOMATCH;
    const lop_node **f = lop_calloc(mk->ctx, (size_t)a->n, sizeof *f);
    if (!f) return lop_fail(mk->err, LOP_NOMEM, NULL);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < a->n; i++)
        st = lop_make2(mk, &lop_op_prod, NULL, a->child[i], b->child[i], &f[i]);
    if (st == LOP_OK) st = lop_make(mk, "kron", NULL, a->n, f, NULL, &kron);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, kron, out);
    for (int i = 0; i < a->n; i++) lop_node_unref(f[i]);
    lop_free(mk->ctx, (void *)f);
    lop_node_unref(kron);
    return st;
}

/* Is `other` of c I + other a Kron beside a Kron, or a product of few columns? Its entries are sums
 * of products themselves, rounded by u |U| |V|, so that c I + other is known no better. */
static bool is_shift_of(const lop_node *other, const lop_node *beside) {
    enum { FEW = 4 };
    if (other->op == &lop_op_kron) return beside->op == &lop_op_kron;
    if (other->op == &lop_op_scaled) other = other->child[0];
    return other->op == &lop_op_prod && beside->op != &lop_op_sum && lop_nbatch(other) == 0 &&
           lop_infer_rank(other) <= lop_rows(other) / FEW;
}

/* A sum, or a view of one. */
static const lop_node *sum_within(const lop_node *a) {
    const lop_node *in = a->op == &lop_op_view ? a->child[0] : a;
    return in->op == &lop_op_sum && lop_nbatch(in) == 0 ? in : NULL;
}

/* c and K of c I + K, or of a view of that. NOMATCH: it is not that. K owned. */
static lop_status read_shifted(const lop_maker *mk, const lop_node *a, const lop_node *beside,
                               lop_coef *c, const lop_node **k) {
    const lop_node *sum = sum_within(a);
    for (int i = 0; i < 2; i++) {
        const lop_node *eye = sum->child[i];
        *c = lop_coef_const(1, 0);
        if (eye->op == &lop_op_scaled) {
            *c = lop_coef_of(&eye->attr);
            eye = eye->child[0];
        }
        if (eye->op != &lop_op_identity || !is_shift_of(sum->child[1 - i], beside)) continue;
        if (a != sum && (a->attr.i[0] & LOP_C)) *c = lop_coef_conj(mk->ctx, *c);
        if (a != sum) return lop_make1(mk, &lop_op_view, &a->attr, sum->child[1 - i], k);
        *k = lop_node_ref(sum->child[1 - i]);
        return LOP_OK;
    }
    return LOP_NOMATCH;
}

/* (c I + K) L, or L (c I + K), as K L + c L. */
LOP_BUILD(value_shifted) {
    const lop_node *p = m->root->child[0], *k = NULL, *low = NULL, *times = NULL, *all = NULL;
    const bool first = !sum_within(p->child[0]);
    const lop_node *l = p->child[first ? 0 : 1], *sum = p->child[first ? 1 : 0];
    lop_coef c;
    if (!lop_is_blas(m->root->dtype) || !sum_within(sum) || p->dtype != m->root->dtype)
        return LOP_NOMATCH;
    lop_status st = read_shifted(mk, sum, l, &c, &k);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, first ? l : k, first ? k : l, &low);
    if (st == LOP_OK) st = lop_thin_multiple(mk, c, l, &times);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_sum, NULL, low, times, &all);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, all, out);
    const lop_node *gone[] = {k, low, times, all};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}

/* A view of a Kron as a Kron of views. Owned. */
static lop_status kron_of_views(const lop_maker *mk, const lop_node *a, const lop_node **out) {
    const lop_node *k = a->op == &lop_op_view ? a->child[0] : a;
    if (k == a || k->op != &lop_op_kron) {
        *out = lop_node_ref(a);
        return LOP_OK;
    }
    const lop_node **f = lop_calloc(mk->ctx, (size_t)k->n, sizeof *f);
    if (!f) return lop_fail(mk->err, LOP_NOMEM, NULL);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < k->n; i++)
        st = lop_make1(mk, &lop_op_view, &a->attr, k->child[i], &f[i]);
    if (st == LOP_OK) st = lop_make(mk, "kron", NULL, k->n, f, NULL, out);
    for (int i = 0; i < k->n; i++) lop_node_unref(f[i]);
    lop_free(mk->ctx, (void *)f);
    return st;
}
static lop_status product(const lop_maker *mk, const lop_node *a, const lop_node *b,
                          const lop_node **out) {
    const lop_node *left = NULL, *right = NULL;
    lop_status st = kron_of_views(mk, a, &left);
    if (st == LOP_OK) st = kron_of_views(mk, b, &right);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_prod, NULL, left, right, out);
    lop_node_unref(left);
    lop_node_unref(right);
    return st;
}

/* The sum over j of the values of A_ij B_ji. */
static lop_status row_by_column(const lop_match *m, const lop_maker *mk, const lop_node *a,
                                const lop_node *b, int64_t i, const lop_node **out) {
    const int64_t inner = a->attr.i[1], outer = a->attr.i[0];
    const lop_node *all = NULL;
    lop_status st = LOP_OK;
    for (int64_t j = 0; st == LOP_OK && j < inner; j++) {
        const lop_node *both = NULL, *value = NULL, *sum = NULL;
        st = product(mk, a->child[i * inner + j], b->child[j * outer + i], &both);
        if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, both, &value);
        if (st == LOP_OK && all) st = lop_make2(mk, &lop_op_add, NULL, all, value, &sum);
        if (st == LOP_OK && !all) sum = lop_node_ref(value);
        const lop_node *gone[] = {both, value, all};
        for (size_t k = 0; k < sizeof gone / sizeof gone[0]; k++) lop_node_unref(gone[k]);
        all = sum;
    }
    *out = all;
    return st;
}

/* Do the blocks of A and B multiply, with square ones on the main diagonal? */
static bool blocks_fit(const lop_node *a, const lop_node *b, int64_t offset) {
    const int64_t p = a->attr.i[0], q = a->attr.i[1];
    if (b->attr.i[0] != q || b->attr.i[1] != p || p * q > PARTS || p < 1 || q < 1) return false;
    for (int64_t j = 0; j < q; j++)
        if (lop_cols(a->child[j]) != lop_rows(b->child[j * p])) return false;
    for (int64_t i = 0; i < p; i++)
        if (lop_rows(a->child[i * q]) != lop_cols(b->child[i])) return p == 1;
    return p == 1 || offset == 0;
}

/* Block i of the result is the sum over j of the values of A_ij B_ji. Where the planner has dense
 * factors alone, one product's diagonal is as cheap: this is for structured blocks. */
LOP_BUILD(value_prod_blocks) {
    const lop_node *p = m->root->child[0], *a = p->child[0], *b = p->child[1],
                   *part[PARTS] = {NULL};
    const bool trace = m->root->op == &lop_op_trace;
    const int64_t rows = a->attr.i[0];
    bool structured = false;
    for (int i = 0; i < a->n; i++) structured = structured || a->child[i]->op != &lop_op_dense;
    if (!lop_is_blas(m->root->dtype) || !structured ||
        !blocks_fit(a, b, trace ? 0 : m->root->attr.i[0]))
        return LOP_NOMATCH;
    if (rows == 1) return row_by_column(m, mk, a, b, 0, out);
    const lop_attr shape = {.i = {rows, 1, 0, 0}};
    const lop_node *all = NULL;
    lop_status st = LOP_OK;
    for (int64_t i = 0; st == LOP_OK && i < rows; i++) {
        st = row_by_column(m, mk, a, b, i, &part[i]);
        if (st == LOP_OK && trace && i > 0) {
            st = lop_make2(mk, &lop_op_add, NULL, all, part[i], out);
            lop_node_unref(all);
            all = st == LOP_OK ? *out : NULL;
        } else if (st == LOP_OK && trace) {
            all = lop_node_ref(part[i]);
        }
    }
    if (st == LOP_OK && !trace)
        st = lop_make_op(mk, &lop_op_grid, &shape, (int)rows, part, NULL, out);
    if (st != LOP_OK && trace) lop_node_unref(all);
    if (st == LOP_OK && trace) *out = all;
    for (int64_t i = 0; i < rows; i++) lop_node_unref(part[i]);
    return st;
}

/* -- a diagonal factor at either end of a product, however it is nested */

enum { FACTORS = 24 };

/* The product without its first (`end` 0) or last factor, which is a Diag: that in *diag. NOMATCH:
 * it is none, or a part on the way has another dtype, whose numbers may wrap, or, with `square`,
 * is not square. */
static lop_status without_end(const lop_maker *mk, const lop_node *p, int end, bool square,
                              int depth, const lop_node **diag, const lop_node **out) {
    const lop_node *child[2] = {p->child[0], p->child[1]}, *rest = NULL;
    if (depth == 0 || (square && (!lop_is_square(child[0]) || !lop_is_square(child[1]))))
        return LOP_NOMATCH;
    if (child[end]->op == &lop_op_diag) {
        *diag = child[end];
        *out = lop_node_ref(child[1 - end]);
        return LOP_OK;
    }
    if (child[end]->op != &lop_op_prod || child[end]->dtype != p->dtype) return LOP_NOMATCH;
    lop_status st = without_end(mk, child[end], end, square, depth - 1, diag, &rest);
    if (st != LOP_OK) return st;
    child[end] = rest;
    st = lop_make2(mk, &lop_op_prod, NULL, child[0], child[1], out);
    lop_node_unref(rest);
    return st;
}

/* tr(D A B) = d . diag(A B). */
LOP_BUILD(trace_ends) {
    const lop_node *p = m->root->child[0], *diag = NULL, *rest = NULL;
    if (!lop_is_blas(m->root->dtype)) return LOP_NOMATCH;
    lop_status st = without_end(mk, p, 0, true, FACTORS, &diag, &rest);
    if (st == LOP_NOMATCH) st = without_end(mk, p, 1, true, FACTORS, &diag, &rest);
    lop_node_unref(rest);
    return st == LOP_OK ? lop_build_trace_diagonal(m, mk, out) : st;
}

/* diag(D A B) = d diag(A B), diag(A B D) = diag(A B) d. */
LOP_BUILD(diagonal_ends) {
    const lop_node *p = m->root->child[0], *diag = NULL, *rest = NULL, *d = NULL, *value = NULL;
    if (m->root->attr.i[0] != 0 || !lop_is_blas(m->root->dtype) || !lop_is_square(p))
        return LOP_NOMATCH;
    lop_status st = without_end(mk, p, 0, false, FACTORS, &diag, &rest);
    const bool first = st == LOP_OK;
    if (st == LOP_NOMATCH) st = without_end(mk, p, 1, false, FACTORS, &diag, &rest);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_cast, &m->root->attr, diag->child[0], &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_diagonal, &m->root->attr, rest, &value);
    if (st == LOP_OK)
        st = lop_make2(mk, &lop_op_mul, NULL, first ? d : value, first ? value : d, out);
    const lop_node *gone[] = {rest, d, value};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) lop_node_unref(gone[i]);
    return st;
}
