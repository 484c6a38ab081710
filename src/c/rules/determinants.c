/* determinants.c: computed right sides of determinants: pairs of mantissa and exponent (op_det.c).
 */
#include "assumed_terms.h"
#include "expr/properties.h"

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

/* 1 of an identity and of nothing, 0 of zeros. */
LOP_BUILD(det_const) {
    const lop_node *a = m->root->child[0], *root = m->root;
    lop_attr which = {.i = {a->op == &lop_op_identity || lop_rows(a) == 0, 0, 0, 0}};
    lop_node like = {.shape = root->shape, .dtype = root->dtype, .core = 1};
    return lop_make(mk, "const_det", &which, 0, NULL, &like, out);
}

LOP_BUILD(det_view) {
    const lop_node *d;
    lop_status st = lop_make1(mk, &lop_op_scaledet, &ATTR(m, 'k'), HOLE(m, 'a'), &d);
    if (st != LOP_OK) return st;
    if (!(ATTR(m, 'm').i[0] & LOP_C)) {
        *out = d;
        return LOP_OK;
    }
    st = lop_make1(mk, &lop_op_conjugate, NULL, d, out);
    lop_node_unref(d);
    return st;
}

LOP_BUILD(det_scaled) {
    lop_attr c = ATTR(m, 'c');
    c.i[3] = lop_rows(HOLE(m, 'a'));
    const lop_node *d;
    lop_status st = lop_make1(mk, &lop_op_scaledet, &ATTR(m, 'k'), HOLE(m, 'a'), &d);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, &lop_op_scale_det, &c, d, out);
    lop_node_unref(d);
    return st;
}

/* Each factor to the power of the other sizes' product. */
LOP_BUILD(det_kron) {
    const lop_node *k = m->root->child[0], *all = NULL;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < k->n; i++) {
        const lop_node *one = NULL, *raised = NULL, *both = NULL;
        lop_attr p = {.i = {1, 0, 0, 0}};
        for (int j = 0; st == LOP_OK && j < k->n; j++)
            if (j != i && !lop_mul_ok(p.i[0], lop_rows(k->child[j]), &p.i[0]))
                st = lop_fail(mk->err, LOP_OVERFLOW, NULL);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, k->child[i], &one);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_pow_det, &p, one, &raised);
        if (st == LOP_OK && all) st = lop_make2(mk, &lop_op_mul_det, NULL, all, raised, &both);
        if (st == LOP_OK && !all) both = lop_node_ref(raised);
        lop_node_unref(one);
        lop_node_unref(raised);
        lop_node_unref(all);
        all = both;
    }
    *out = all;
    return st;
}

/* The product of `n` owned pairs, two by two so that the tree is flat. Takes over all of them. */
static lop_status product_of(const lop_maker *mk, const lop_node **f, int n, lop_status st,
                             const lop_node **out) {
    for (int left = n; st == LOP_OK && left > 1; left = (left + 1) / 2)
        for (int i = 0; st == LOP_OK && i < left; i += 2) {
            const lop_node *a = f[i], *b = i + 1 < left ? f[i + 1] : NULL, *both = NULL;
            f[i] = NULL;
            if (b) {
                f[i + 1] = NULL;
                st = lop_make2(mk, &lop_op_mul_det, NULL, a, b, &both);
                lop_node_unref(a);
                lop_node_unref(b);
                a = both;
            }
            f[i / 2] = a;
        }
    *out = st == LOP_OK ? f[0] : NULL;
    for (int i = st == LOP_OK; i < n; i++) lop_node_unref(f[i]);
    return st;
}
LOP_BUILD(det_blockdiag) {
    const lop_node *k = m->root->child[0];
    const lop_node **f = lop_calloc(mk->ctx, (size_t)k->n, sizeof *f);
    if (!f) return lop_fail(mk->err, LOP_NOMEM, NULL);
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < k->n; i++)
        st = lop_make1(mk, &lop_op_scaledet, &m->root->attr, k->child[i], &f[i]);
    st = product_of(mk, f, k->n, st, out);
    lop_free(mk->ctx, (void *)f);
    return st;
}

/* -- kinds whose determinant is known */

static lop_status zero_or_one(const lop_match *m, const lop_maker *mk, bool one,
                              const lop_node **out) {
    lop_attr which = {.i = {one, 0, 0, 0}};
    lop_node like = {.shape = m->root->shape, .dtype = m->root->dtype, .core = 1};
    return lop_make(mk, "const_det", &which, 0, NULL, &like, out);
}
/* i^turns base^(halves / 2) 2^(twos / 2). */
static lop_status closed(const lop_match *m, const lop_maker *mk, int64_t turns, int64_t base,
                         int64_t halves, int64_t twos, const lop_node **out) {
    lop_attr how = {.i = {turns, base, halves, twos}};
    lop_node like = {.shape = m->root->shape, .dtype = m->root->dtype, .core = 1};
    return lop_make(mk, "closed_det", &how, 0, NULL, &like, out);
}

LOP_BUILD(det_permutation) {
    lop_attr dt = {.i = {(int64_t)m->root->dtype, 0, 0, 0}};
    return lop_make1(mk, &lop_op_permutation_det, &dt, HOLE(m, 'p'), out);
}
/* On the main diagonal as Diag; elsewhere rows of zeros. */
LOP_BUILD(det_offdiag) {
    const lop_node *k = m->root->child[0], *d;
    if (k->attr.i[0] != 0 || lop_rows(k) == 0) return zero_or_one(m, mk, lop_rows(k) == 0, out);
    lop_status st = lop_make1(mk, &lop_op_cast, &ATTR(m, 'k'), HOLE(m, 'a'), &d);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, &lop_op_vector_det, NULL, d, out);
    lop_node_unref(d);
    return st;
}
/* Of rank one: 0, but for 1 x 1. */
LOP_BUILD(det_full) {
    const lop_node *a = m->root->child[0], *one;
    lop_attr c = a->attr;
    if (lop_rows(a) != 1) return zero_or_one(m, mk, lop_rows(a) == 0, out);
    lop_status st = zero_or_one(m, mk, true, &one);
    if (st != LOP_OK) return st;
    c.i[3] = 1;
    st = lop_make1(mk, &lop_op_scale_det, &c, one, out);
    lop_node_unref(one);
    return st;
}
/* A product of transforms, one a level, each to the power of the other sizes' product. */
typedef lop_status (*level_fn)(const lop_match *m, const lop_maker *mk, int64_t n,
                               const lop_node **out);
static lop_status level_by_level(const lop_match *m, const lop_maker *mk, level_fn level,
                                 const lop_node **out) {
    const lop_shape *s = &HOLE(m, 's')->shape;
    const lop_node *f[LOP_MAXDIM] = {NULL};
    const int64_t all = lop_rows(m->root->child[0]);
    lop_status st = LOP_OK;
    if (all == 0) return zero_or_one(m, mk, true, out);
    for (int l = 0; st == LOP_OK && l < s->ndim; l++) {
        const lop_node *one = NULL;
        lop_attr p = {.i = {all / s->dim[l], 0, 0, 0}};
        st = level(m, mk, s->dim[l], &one);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_pow_det, &p, one, &f[l]);
        lop_node_unref(one);
    }
    return product_of(mk, f, s->ndim, st, out);
}
/* Norms are backward, ortho, forward: times 1, N^-1/2, N^-1 a row. */
static int64_t halves_of(int64_t norm, int64_t n) { return (1 - norm) * n; }

/* The multiplicities of the eigenvalues 1, -1, -i, i: McClellan and Parks 1972. */
static lop_status one_dft(const lop_match *m, const lop_maker *mk, int64_t n,
                          const lop_node **out) {
    static const int turns[8] = {3, 0, 2, 1, 1, 2, 0, 3};
    return closed(m, mk, turns[n % 8], n, halves_of(ATTR(m, 't').i[0], n), 0, out);
}
LOP_BUILD(det_dft) { return level_by_level(m, mk, one_dft, out); }

/* With orthogonal rows and columns but for the ends, which count sqrt 2 in type 2 and its inverse
 * in type 3: Strang 1999. */
static lop_status one_dct(const lop_match *m, const lop_maker *mk, int64_t n,
                          const lop_node **out) {
    const lop_attr *t = &ATTR(m, 't');
    const int64_t type = t->i[0], norm = t->i[3] % 3, N = type == 1 ? 2 * (n - 1) : 2 * n;
    const int64_t twos = norm == 1 ? 0 : type == 2 ? 1 : type == 3 ? -1 : 0;
    return closed(m, mk, n / 2 % 2 * 2, N, halves_of(norm, n), twos, out);
}
LOP_BUILD(det_dct) { return level_by_level(m, mk, one_dct, out); }

LOP_BUILD(det_hadamard) {
    const int64_t n = lop_rows(m->root->child[0]);
    return closed(m, mk, n == 2 ? 2 : 0, n, n, 0, out);
}

/* Singular but where there are zeros beyond the ends. */
LOP_BUILD(det_laplacian) {
    const lop_node *k = m->root->child[0], *sizes;
    lop_node like = {.shape = {.ndim = k->n}, .dtype = LOP_f64, .weak = LOP_WEAK};
    lop_attr dt = {.i = {(int64_t)m->root->dtype, 0, 0, 0}};
    const int64_t n = lop_rows(k);
    if (k->attr.i[0] != 0 || n == 0) return zero_or_one(m, mk, n == 0, out);
    if (k->n == 1) return closed(m, mk, n % 2 * 2, n + 1, 2, 0, out);
    if (k->n > LOP_MAXDIM) return LOP_NOMATCH;
    for (int i = 0; i < k->n; i++) like.shape.dim[i] = lop_rows(k->child[i]);
    lop_status st = lop_make(mk, "sizes", NULL, 0, NULL, &like, &sizes);
    if (st != LOP_OK) return st;
    st = lop_make1(mk, &lop_op_grid_det, &dt, sizes, out);
    lop_node_unref(sizes);
    return st;
}

/* Order 0 is the identity; on a ring constants vanish; forward and backward it is triangular; the
 * second central one is a Laplacian. */
LOP_BUILD(det_difference) {
    const lop_node *k = m->root->child[0];
    const int64_t n = lop_rows(k), order = k->attr.i[1], kind = k->attr.i[2],
                  boundary = k->attr.i[3];
    if (n == 0 || order == 0) return zero_or_one(m, mk, true, out);
    if (boundary == 2) return zero_or_one(m, mk, false, out);
    if (boundary == 0) return LOP_NOMATCH;
    if (kind < 2) return closed(m, mk, kind == 0 && order % 2 && n % 2 ? 2 : 0, 1, 0, 0, out);
    return order == 2 ? closed(m, mk, n % 2 * 2, n + 1, 2, 0, out) : LOP_NOMATCH;
}

/* -- Cholesky, worth a try, beside terms that were assumed positive definite */

static int digits_of(int64_t path) {
    int n = 0;
    for (; path > 0; path >>= LOP_PATH_BITS) n++;
    return n;
}

int64_t lop_path_on(int64_t path, bool positive, int digit) {
    const int64_t on = positive ? LOP_PATH_END : path;
    return on > 0 && digits_of(on) < LOP_PATH_DIGITS ? on << LOP_PATH_BITS | digit : 0;
}

/* Into both of two of a kind; where that is too long, into the first that has something. */
static int64_t path_on_both(int64_t first, int64_t second) {
    const int n = digits_of(first);
    if (first > 0 && second > 0 && 1 + n + digits_of(second) <= LOP_PATH_DIGITS)
        return (second << LOP_PATH_BITS * n | first) << LOP_PATH_BITS | LOP_PATH_BOTH;
    const int64_t path = lop_path_on(first, false, LOP_PATH_BESIDE_KIND);
    return path > 0 ? path : lop_path_on(second, false, LOP_PATH_BESIDE_KIND + 1);
}

lop_attr lop_assumed_of_sum(const lop_node *a, const lop_node *b, int word) {
    const int64_t p = a->attr.i[word], q = b->attr.i[word];
    const bool first = p == LOP_ASSUME_POSITIVE, second = q == LOP_ASSUME_POSITIVE;
    lop_attr attr = a->attr;
    attr.i[2] = 0;
    if ((first || p == LOP_ASSUME_HERMITIAN) && (second || q == LOP_ASSUME_HERMITIAN)) {
        if (first && second) return attr;
        attr.i[word] = LOP_ASSUME_HERMITIAN;
        attr.i[2] =
            path_on_both(first ? LOP_PATH_END : a->attr.i[2], second ? LOP_PATH_END : b->attr.i[2]);
    } else if (p != q) {
        attr.i[word] = LOP_ASSUME_GENERAL;
    }
    return attr;
}

void lop_assumed_free(lop_assumed *d) {
    for (int i = 0; i < d->n; i++) lop_node_unref(d->at[i]);
    d->n = 0;
}

/* Keeps `a`, which is given away. */
static void keep(lop_assumed *d, const lop_node *a) {
    bool known = d->n == LOP_ASSUMED_TERMS;
    for (int i = 0; i < d->n; i++) known |= d->at[i] == a;
    if (known)
        lop_node_unref(a);
    else
        d->at[d->n++] = a;
}

/* One step back along a path; NULL where there is no such step. */
static const lop_node *before(const lop_node *v, int digit) {
    while (v && v->op == &lop_op_cast) v = v->child[0];
    if (!v) return NULL;
    if (digit == LOP_PATH_WITHIN)
        return v->op == &lop_op_scale || v->op == &lop_op_conjugate ? v->child[0] : NULL;
    if (v->op != &lop_op_add && v->op != &lop_op_blockplus) return NULL;
    return digit > 0 ? v->child[(digit - 1) % 2] : NULL;
}

/* The parameters of what is looked at on the way back; NULL: not to be found. */
typedef struct on_way {
    const lop_node *v[3];
} on_way;

static void step_back(on_way *at, int n, int digit) {
    const bool all = digit >= LOP_PATH_BESIDE_KIND;
    for (int i = all ? 0 : 1; i < (all ? n : 2); i++) at->v[i] = before(at->v[i], digit);
}

/* Of a sum of what was assumed positive definite and of others of its kind, or diagonals, that may
 * be anything: the former. */
static lop_status assumed_before(lop_assumed *d, const lop_node *a) {
    const int word = a->op == &lop_op_blocktridiagonal;
    on_way way[LOP_PATH_DIGITS] = {{{NULL}}};
    lop_attr how = a->attr;
    int64_t path = how.i[2];
    if (how.i[word] != LOP_ASSUME_HERMITIAN) return LOP_OK;
    how.i[word] = LOP_ASSUME_POSITIVE;
    how.i[2] = 0;
    for (int i = 0; i < a->n; i++) way[0].v[i] = a->child[i];
    for (int open = 1; path > 0 && open > 0; path >>= LOP_PATH_BITS) {
        const int digit = (int)(path & LOP_PATH_END);
        on_way *at = &way[open - 1];
        if (digit == LOP_PATH_BOTH && open < LOP_PATH_DIGITS) { /* the first's way is next */
            way[open++] = *at;
            step_back(at, a->n, LOP_PATH_BESIDE_KIND + 1);
            step_back(&way[open - 1], a->n, LOP_PATH_BESIDE_KIND);
        } else if (digit != LOP_PATH_END) {
            step_back(at, a->n, digit);
        } else {
            bool found = true;
            for (int i = 0; i < a->n; i++) found &= at->v[i] != NULL;
            const lop_node *made = NULL;
            lop_status st =
                found ? lop_make_op(d->mk, a->op, &how, a->n, at->v, NULL, &made) : LOP_OK;
            if (st != LOP_OK) return st;
            if (made) keep(d, made);
            open--;
        }
    }
    return LOP_OK;
}

/* Is it of a kind whose sums are of the kind again? */
static bool sums_close(const lop_node *a) {
    return a->op == &lop_op_tridiagonal || a->op == &lop_op_blocktridiagonal;
}

static lop_status gather(lop_assumed *d, const lop_node *a) {
    const bool kind = a->op == &lop_op_dense || a->op == &lop_op_banded || sums_close(a);
    lop_status st = LOP_OK;
    if (--d->left < 0) return st;
    if (kind && lop_node_trait(a, LOP_POSITIVE) == LOP_TRUE) {
        keep(d, lop_node_ref(a));
        return st;
    }
    if (sums_close(a)) st = assumed_before(d, a);
    for (int i = 0; st == LOP_OK && i < a->n; i++)
        if (a->child[i]->op->cls == LOP_OPERATOR) st = gather(d, a->child[i]);
    return st;
}

/* *minus: something semidefinite is taken away. */
static lop_status gather_terms(lop_assumed *d, const lop_node *a, bool *minus) {
    if (--d->left < 0) return LOP_OK;
    if (a->op == &lop_op_sum) {
        const lop_status st = gather_terms(d, a->child[0], minus);
        return st == LOP_OK ? gather_terms(d, a->child[1], minus) : st;
    }
    if (a->op == &lop_op_scaled &&
        lop_coef_test(a->ctx, lop_coef_of(&a->attr), LOP_COEF_NEGATIVE)) {
        *minus |= lop_infer_semidefinite(a->child[0]);
        return LOP_OK;
    }
    const lop_node *of = a->op == &lop_op_view ? a->child[0] : a;
    return sums_close(of) || lop_infer_semidefinite(a) ? gather(d, a) : LOP_OK;
}

lop_status lop_assumed_terms(const lop_maker *mk, const lop_node *sum, lop_assumed *d) {
    bool minus = false;
    *d = (lop_assumed){.mk = mk, .left = LOP_INFER_NODES};
    const lop_status st = sum->op == &lop_op_sum ? gather_terms(d, sum, &minus) : LOP_OK;
    if (minus || st != LOP_OK) lop_assumed_free(d);
    return st;
}

lop_status lop_assumed_within(const lop_maker *mk, const lop_node *a, lop_assumed *d) {
    *d = (lop_assumed){.mk = mk, .left = LOP_INFER_NODES};
    const lop_status st = lop_infer_semidefinite(a) ? gather(d, a) : LOP_OK;
    if (st != LOP_OK) lop_assumed_free(d);
    return st;
}

lop_status lop_assumed_in_sum(const lop_maker *mk, const lop_node *a, lop_assumed *d) {
    *d = (lop_assumed){.mk = mk};
    const lop_status st = assumed_before(d, a);
    if (st != LOP_OK) lop_assumed_free(d);
    return st;
}

LOP_BUILD(det_tridiagonal) {
    const lop_node *a = m->root->child[0], *v[3] = {NULL, NULL, NULL};
    lop_assumed d;
    lop_attr how = a->attr;
    how.i[2] = 0;
    lop_status st = lop_assumed_in_sum(mk, a, &d);
    for (int i = 0; st == LOP_OK && i < 3; i++)
        st = lop_make1(mk, &lop_op_cast, &ATTR(m, 'k'), a->child[i], &v[i]);
    if (st == LOP_OK)
        st = d.n ? lop_det_beside_assumed(mk, &ATTR(m, 'k'), &lop_op_triangular_det, how, 0, 3, v,
                                          &d, out)
                 : lop_make(mk, "triangular_det", &how, 3, v, NULL, out);
    for (int i = 0; i < 3; i++) lop_node_unref(v[i]);
    lop_assumed_free(&d);
    return st;
}

LOP_BUILD(det_tried) {
    const lop_node *a = HOLE(m, 'a'), *child[1 + LOP_ASSUMED_TERMS] = {NULL};
    const lop_attr tried = {.i = {1, 0, 0, 0}};
    lop_assumed d;
    lop_status st = lop_assumed_terms(mk, a, &d);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &ATTR(m, 'k'), a, &child[0]);
    for (int i = 0; st == LOP_OK && i < d.n; i++) {
        const lop_node *p = d.at[i];
        const lop_band b = lop_infer_bands(p);
        const bool own = lop_is_blas(p->dtype); /* else as the sum's floats */
        const lop_dtype dt = own ? p->dtype : (lop_dtype)(ATTR(m, 'k').i[3] - 1);
        st = p->op != &lop_op_dense && b.l == b.u && lop_band_is_narrow(p, b)
                 ? lop_make_band(mk, p, b, dt, &child[i + 1])
                 : lop_make1(mk, &lop_op_todense, own ? NULL : &ATTR(m, 'k'), p, &child[i + 1]);
    }
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_cholesky_det, &tried, 1 + d.n, child, NULL, out);
    for (int i = 0; i <= d.n; i++) lop_node_unref(child[i]);
    lop_assumed_free(&d);
    return st;
}

lop_status lop_det_beside_assumed(const lop_maker *mk, const lop_attr *k, const lop_op *op,
                                  lop_attr how, int word, int n, const lop_node *const *v,
                                  const lop_assumed *d, const lop_node **out) {
    const lop_node *child[3 + LOP_ASSUMED_TERMS] = {NULL}, *arm[2] = {NULL, NULL};
    lop_status st = LOP_OK;
    for (int i = 0; i < n; i++) child[i] = v[i];
    for (int i = 0; st == LOP_OK && i < d->n; i++)
        st = lop_make1(mk, &lop_op_scaledet, k, d->at[i], &child[n + i]);
    how.i[word] = LOP_ASSUME_ALONE;
    if (st == LOP_OK) st = lop_make_op(mk, op, &how, n, child, NULL, &arm[0]);
    how.i[word] = LOP_ASSUME_GENERAL;
    if (st == LOP_OK) st = lop_make_op(mk, op, &how, n + d->n, child, NULL, &arm[1]);
    if (st == LOP_OK) st = lop_make_op(mk, &lop_op_spectral, NULL, 2, arm, NULL, out);
    for (int i = 0; i < d->n; i++) lop_node_unref(child[n + i]);
    lop_node_unref(arm[0]);
    lop_node_unref(arm[1]);
    return st;
}
