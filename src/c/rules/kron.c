/* kron.c: computed right sides for Kron: factor by factor. */
#include "builds.h"

#include <math.h>

#define HOLE(m, c) ((m)->node[(c) - 'a'])
#define ATTR(m, c) ((m)->attr[(c) - 'a'])

/* The unfinished factor that is cheapest to do next: least 1/n - 1/m. Zero sizes first: they end
 * all. */
static int next_factor(const lop_node *k, const bool *done) {
    int best = -1;
    double least = 0;
    for (int i = 0; i < k->n; i++) {
        if (done[i]) continue;
        double m = (double)lop_rows(k->child[i]), n = (double)lop_cols(k->child[i]);
        double key = m == 0 ? -2 : n == 0 ? 2 : 1 / n - 1 / m;
        if (best < 0 || key < least) {
            best = i;
            least = key;
        }
    }
    return best;
}

/* One factor on the middle axis of x (rows L n R): fold, apply, unfold. Takes over x. */
static lop_status one_factor(const lop_maker *mk, const lop_node *f, int64_t L, int64_t R,
                             const lop_node *x, const lop_node **out) {
    int64_t k = lop_cols(x);
    bool own_batch = L != 1 && (lop_nbatch(f) > 0 || lop_nbatch(x) + 3 > LOP_MAXDIM);
    lop_attr to = {.i = {L, lop_cols(f), R, k}}, back = {.i = {L, lop_rows(f), R, k}};
    if (f->op == &lop_op_identity && lop_nbatch(f) == 0) {
        *out = x;
        return LOP_OK;
    }
    const lop_node *folded = NULL, *applied = NULL;
    lop_status st = LOP_OK;
    if (L == 1 && R == 1) {
        st = lop_make2(mk, &lop_op_apply, NULL, f, x, out);
        lop_node_unref(x);
        return st;
    }
    st = lop_make1(mk, own_batch ? &lop_op_gather : &lop_op_kron_unfold, &to, x, &folded);
    lop_node_unref(x);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, f, folded, &applied);
    if (st == LOP_OK)
        st = lop_make1(mk, own_batch ? &lop_op_spread : &lop_op_kron_fold, &back, applied, out);
    lop_node_unref(folded);
    lop_node_unref(applied);
    return st;
}

/* Takes over *x: op of it. */
static lop_status upon(const lop_maker *mk, const lop_op *op, const lop_attr *attr,
                       const lop_node **x) {
    const lop_node *inner = *x;
    lop_status st = lop_make1(mk, op, attr, inner, x);
    lop_node_unref(inner);
    return st;
}

/* Splits off a number far from one that multiplies a factor (or a view or the inverse of one): x
 * times that number alone may leave the range although x times all numbers is in it. *out: the
 * factor without its number, which goes into *mantissa 2^*power. */
static lop_status without_far_number(const lop_maker *mk, const lop_node *f, lop_dtype dt,
                                     double *mantissa, int64_t *power, const lop_node **out) {
    const lop_node *over[4], *a = f;
    int n = 0, p = 0, q = 0;
    bool inverse = false;
    for (; n < 4 && (a->op == &lop_op_view || a->op == &lop_op_inverse); a = a->child[0]) {
        inverse ^= a->op == &lop_op_inverse;
        over[n++] = a;
    }
    *out = lop_node_ref(f);
    if (a->op == &lop_op_scaled && lop_coef_test(mk->ctx, lop_coef_of(&a->attr), LOP_COEF_NEAR))
        return LOP_OK;
    if (a->op == &lop_op_scaled) (void)lop_coef_fix(mk->ctx, lop_coef_of(&a->attr));
    const double c = frexp(a->attr.re, &p);
    if (a->op != &lop_op_scaled || lop_dtype_real(dt) != LOP_f64 || a->attr.im != 0 || c == 0 ||
        !isfinite(c) || (p > -100 && p < 100))
        return LOP_OK;
    *mantissa = frexp(inverse ? *mantissa / c : *mantissa * c, &q);
    *power += q + (inverse ? -p : p);
    lop_node_unref(*out);
    *out = lop_node_ref(a->child[0]);
    lop_status st = LOP_OK;
    while (st == LOP_OK && n-- > 0) st = upon(mk, over[n]->op, &over[n]->attr, out);
    return st;
}

/* Takes over *x: x times mantissa 2^power, in two steps where that has no number. */
static lop_status times_far(const lop_maker *mk, double mantissa, int64_t power,
                            const lop_node **x) {
    const int64_t most = power > 4000    ? 4000
                         : power < -4000 ? -4000
                                         : power,
                  first = most > 1000 || most < -1000 ? most / 2 : most;
    const double part[2] = {ldexp(mantissa, (int)first), ldexp(1, (int)(most - first))};
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < 2; i++) {
        const lop_attr c = lop_attr_coef(part[i], 0);
        if (part[i] != 1) st = upon(mk, &lop_op_scale, &c, x);
    }
    return st;
}

LOP_BUILD(apply_kron) {
    const lop_node *k = m->root->child[0], *x;
    double mantissa = 1;
    int64_t power = 0;
    bool *done = lop_calloc(mk->ctx, (size_t)k->n, sizeof *done);
    if (!done) return lop_fail(mk->err, LOP_NOMEM, NULL);
    lop_attr d = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    lop_status st = lop_make1(mk, &lop_op_cast, &d, HOLE(m, 'x'), &x);
    for (int step = 0; st == LOP_OK && step < k->n; step++) {
        int i = next_factor(k, done);
        int64_t L = 1, R = 1;
        for (int j = 0; st == LOP_OK && j < k->n; j++) {
            int64_t size = done[j] ? lop_rows(k->child[j]) : lop_cols(k->child[j]);
            if (j != i && !lop_mul_ok(j < i ? L : R, size, j < i ? &L : &R))
                st = lop_fail(mk->err, LOP_OVERFLOW,
                              "an intermediate of this Kronecker product does not fit 64 bits");
        }
        const lop_node *y = NULL, *f = NULL;
        if (st == LOP_OK)
            st = without_far_number(mk, k->child[i], m->root->dtype, &mantissa, &power, &f);
        if (st == LOP_OK)
            st = one_factor(mk, f, L, R, x, &y);
        else
            lop_node_unref(x);
        lop_node_unref(f);
        x = y;
        done[i] = true;
    }
    lop_free(mk->ctx, done);
    if (st == LOP_OK) st = times_far(mk, mantissa, power, &x);
    if (st == LOP_OK) *out = x;
    return st;
}

/* A product over factors of arrays or numbers: `what` of the first, joined by `join` with the next.
 */
static lop_status fold_values(const lop_match *m, const lop_maker *mk, const lop_node *k,
                              const lop_op *what, const lop_attr *attr, const lop_op *join,
                              const lop_node **out) {
    (void)m;
    const lop_node *all = NULL;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < k->n; i++) {
        const lop_node *one = NULL, *both = NULL;
        st = lop_make1(mk, what, attr, k->child[i], &one);
        if (st == LOP_OK && all) st = lop_make2(mk, join, NULL, all, one, &both);
        if (st == LOP_OK && !all) both = lop_node_ref(one);
        lop_node_unref(one);
        lop_node_unref(all);
        all = both;
    }
    *out = all;
    return st;
}
/* Factors `from` to `to` as one operator: owned. */
static lop_status some_factors(const lop_maker *mk, const lop_node *k, int from, int to,
                               const lop_node **out) {
    if (to - from > 1) return lop_make(mk, "kron", NULL, to - from, k->child + from, NULL, out);
    *out = lop_node_ref(k->child[from]);
    return LOP_OK;
}

/* I (x) B, of not too many rows of blocks: B placed, nothing multiplied. */
static lop_status placed(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    enum { MOST = 64 };
    const lop_node *k = m->root->child[0], *rest = NULL, *one = NULL, *at[MOST];
    const int64_t many = lop_rows(k->child[0]);
    if (k->child[0]->op != &lop_op_identity || k->n < 2 || lop_nbatch(k) > 0 || many > MOST ||
        many < 1)
        return LOP_NOMATCH;
    lop_status st = some_factors(mk, k, 1, k->n, &rest);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &m->root->attr, rest, &one);
    for (int i = 0; i < many; i++) at[i] = one;
    if (st == LOP_OK) st = lop_make(mk, "blocks", NULL, (int)many, at, NULL, out);
    lop_node_unref(rest);
    lop_node_unref(one);
    return st;
}
LOP_BUILD(dense_kron) {
    const lop_status st = placed(m, mk, out);
    return st != LOP_NOMATCH ? st
                             : fold_values(m, mk, m->root->child[0], &lop_op_todense,
                                           &m->root->attr, &lop_op_kronarray, out);
}
LOP_BUILD(diagonal_kron) {
    return fold_values(m, mk, m->root->child[0], &lop_op_diagonal, &m->root->attr,
                       &lop_op_kronarray, out);
}

/* The tail, factors `split` and after, is n x n. */
static lop_status woven(const lop_match *m, const lop_maker *mk, int split, int64_t n,
                        const lop_node **out) {
    const lop_node *k = m->root->child[0], *half[2] = {0}, *v[4] = {0};
    int64_t offset = ATTR(m, 'k').i[0], r = (offset % n + n) % n, d = (offset - r) / n;
    int64_t at[4] = {d, r, d + 1, r - n};
    lop_status st = some_factors(mk, k, 0, split, &half[0]);
    if (st == LOP_OK) st = some_factors(mk, k, split, k->n, &half[1]);
    for (int i = 0; st == LOP_OK && i < (r ? 4 : 2); i++) {
        lop_attr a = {.i = {at[i], 0, 0, m->root->attr.i[3]}};
        st = lop_make1(mk, &lop_op_diagonal, &a, half[i % 2], &v[i]);
    }
    lop_attr how = {.i = {offset, n, m->root->shape.dim[m->root->shape.ndim - 1], 0}};
    if (st == LOP_OK)
        st = r ? lop_make(mk, "kron_diag_scatter", &how, 4, v, NULL, out)
               : lop_make2(mk, &lop_op_kronarray, NULL, v[0], v[1], out);
    for (int i = 0; i < 4; i++) lop_node_unref(v[i]);
    lop_node_unref(half[0]);
    lop_node_unref(half[1]);
    return st;
}

/* Each factor's elements along the diagonal, multiplied. */
static lop_status combed(const lop_match *m, const lop_maker *mk, const lop_node **out) {
    const lop_node *k = m->root->child[0], *all = NULL;
    lop_attr at = {.i = {ATTR(m, 'k').i[0], 1, 1, m->root->shape.dim[m->root->shape.ndim - 1]}};
    lop_attr d = {.i = {0, 0, 0, m->root->attr.i[3]}};
    lop_status st = LOP_OK;
    for (int i = k->n - 1; st == LOP_OK && i >= 0; i--) {
        const lop_node *f = k->child[i], *dense = NULL, *one = NULL, *both = NULL;
        st = lop_make1(mk, &lop_op_todense, &d, f, &dense);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_kron_diag_gather, &at, dense, &one);
        if (st == LOP_OK && all) st = lop_make2(mk, &lop_op_mul, NULL, one, all, &both);
        if (st == LOP_OK && !all) both = lop_node_ref(one);
        lop_node_unref(dense);
        lop_node_unref(one);
        lop_node_unref(all);
        all = both;
        if (i > 0 && at.i[3] > 0 &&
            (!lop_mul_ok(at.i[1], lop_rows(f), &at.i[1]) ||
             !lop_mul_ok(at.i[2], lop_cols(f), &at.i[2])))
            st = lop_fail(mk->err, LOP_OVERFLOW, NULL);
    }
    if (st == LOP_OK)
        *out = all;
    else
        lop_node_unref(all);
    return st;
}

LOP_BUILD(diagonal_kron_off) {
    const lop_node *k = m->root->child[0];
    int64_t rows = 1, cols = 1;
    if (k->n == 1) return lop_make1(mk, &lop_op_diagonal, &m->root->attr, k->child[0], out);
    for (int i = k->n - 1; i > 0; i--) {
        if (!lop_mul_ok(rows, lop_rows(k->child[i]), &rows) ||
            !lop_mul_ok(cols, lop_cols(k->child[i]), &cols))
            break;
        if (rows == cols && rows > 0) return woven(m, mk, i, rows, out);
    }
    return combed(m, mk, out);
}
LOP_BUILD(trace_kron) {
    return fold_values(m, mk, m->root->child[0], &lop_op_trace, &m->root->attr, &lop_op_mul, out);
}

LOP_BUILD(element_kron) {
    const lop_node *k = m->root->child[0], *all = NULL;
    int64_t i = ATTR(m, 'k').i[0], j = ATTR(m, 'k').i[1];
    lop_status st = LOP_OK;
    for (int f = k->n - 1; st == LOP_OK && f >= 0; f--) {
        const lop_node *one = NULL, *both = NULL, *a = k->child[f];
        lop_attr at = {.i = {i % lop_rows(a), j % lop_cols(a), 0, ATTR(m, 'k').i[3]}};
        i /= lop_rows(a);
        j /= lop_cols(a);
        st = lop_make1(mk, &lop_op_element, &at, a, &one);
        if (st == LOP_OK && all) st = lop_make2(mk, &lop_op_mul, NULL, one, all, &both);
        if (st == LOP_OK && !all) both = lop_node_ref(one);
        lop_node_unref(one);
        lop_node_unref(all);
        all = both;
    }
    *out = all;
    return st;
}

/* -- KronSum */

/* Sizes before and after operand i; beyond 64 bits only beside a size 0. */
static void around(const lop_node *k, int i, int64_t *L, int64_t *R) {
    *L = *R = 1;
    for (int j = 0; j < k->n; j++)
        if (j != i && !lop_mul_ok(j < i ? *L : *R, lop_rows(k->child[j]), j < i ? L : R))
            *(j < i ? L : R) = 0;
}

/* all + one, where there is something already. Takes over both. */
static lop_status add_to(const lop_maker *mk, lop_status st, const lop_node *one,
                         const lop_node **all) {
    const lop_node *both = NULL;
    if (st == LOP_OK && *all) {
        st = lop_make2(mk, &lop_op_add, NULL, *all, one, &both);
        lop_node_unref(one);
        lop_node_unref(*all);
        *all = both;
    } else if (st == LOP_OK) {
        *all = one;
    }
    return st;
}

LOP_BUILD(apply_kronsum) {
    const lop_node *k = m->root->child[0], *x = NULL, *all = NULL;
    lop_attr d = {.i = {1, 0, 0, (int64_t)m->root->dtype + 1}};
    lop_status st = lop_make1(mk, &lop_op_cast, &d, HOLE(m, 'x'), &x);
    for (int i = 0; st == LOP_OK && i < k->n; i++) {
        const lop_node *one = NULL;
        int64_t L, R;
        around(k, i, &L, &R);
        st = one_factor(mk, k->child[i], L, R, lop_node_ref(x), &one);
        st = add_to(mk, st, one, &all);
    }
    lop_node_unref(x);
    if (st == LOP_OK)
        *out = all;
    else
        lop_node_unref(all);
    return st;
}

/* ones (x) d (x) ones. Takes over d. */
static lop_status spread_out(const lop_maker *mk, int64_t L, const lop_node *d, int64_t R,
                             const lop_node **out) {
    lop_status st = LOP_OK;
    for (int side = 0; st == LOP_OK && side < 2; side++) {
        lop_node like = {.shape = {.ndim = 1, .dim = {side ? R : L}}, .dtype = d->dtype, .core = 1};
        const lop_node *ones = NULL, *wide = NULL;
        if (like.shape.dim[0] == 1) continue;
        st = lop_make(mk, "ones", NULL, 0, NULL, &like, &ones);
        if (st == LOP_OK)
            st = lop_make2(mk, &lop_op_kronarray, NULL, side ? d : ones, side ? ones : d, &wide);
        lop_node_unref(ones);
        lop_node_unref(d);
        d = wide;
    }
    *out = d;
    return st;
}

/* The main diagonal; of a kronsum of Diags all there is: a diag then. */
LOP_BUILD(diagonal_kronsum) {
    bool value = m->root->op == &lop_op_diagonal;
    const lop_node *k = value ? m->root->child[0] : m->root, *all = NULL;
    lop_attr own = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < k->n; i++) {
        const lop_node *d = NULL, *one = NULL;
        int64_t L, R;
        around(k, i, &L, &R);
        st = value ? lop_make1(mk, &lop_op_diagonal, &own, k->child[i], &d) : LOP_OK;
        if (!value) d = lop_node_ref(k->child[i]->child[0]);
        if (st == LOP_OK) st = spread_out(mk, L, d, R, &one);
        st = add_to(mk, st, one, &all);
    }
    if (st == LOP_OK && !value)
        st = lop_make1(mk, &lop_op_diag, NULL, all, out);
    else if (st == LOP_OK)
        *out = lop_node_ref(all);
    lop_node_unref(all);
    return st;
}

/* tr = sum of tr A_i N / n_i. */
LOP_BUILD(trace_kronsum) {
    const lop_node *k = m->root->child[0], *all = NULL;
    lop_status st = LOP_OK;
    for (int i = 0; st == LOP_OK && i < k->n; i++) {
        const lop_node *t = NULL, *one = NULL;
        int64_t L, R;
        around(k, i, &L, &R);
        lop_attr c = lop_attr_coef((double)L * (double)R, 0);
        st = lop_make1(mk, &lop_op_trace, &m->root->attr, k->child[i], &t);
        if (st == LOP_OK) st = lop_make1(mk, &lop_op_scale, &c, t, &one);
        lop_node_unref(t);
        st = add_to(mk, st, one, &all);
    }
    if (st == LOP_OK)
        *out = all;
    else
        lop_node_unref(all);
    return st;
}

/* The sum over operands of their elements, where all other indices agree; zeros of the whole batch
 * to begin with. */
LOP_BUILD(element_kronsum) {
    const lop_node *k = m->root->child[0], *zeros = NULL, *all = NULL;
    int64_t row = ATTR(m, 'k').i[0], col = ATTR(m, 'k').i[1], L, R;
    lop_node like = {.shape = k->shape, .dtype = m->root->dtype, .core = 2};
    lop_attr none = {.i = {0, 0, 0, (int64_t)m->root->dtype + 1}};
    lop_status st = lop_make(mk, "zeros", NULL, 0, NULL, &like, &zeros);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_element, &none, zeros, &all);
    lop_node_unref(zeros);
    for (int i = 0; st == LOP_OK && i < k->n; i++) {
        const lop_node *a = k->child[i], *one = NULL;
        int64_t n = lop_rows(a);
        around(k, i, &L, &R);
        if (row / (n * R) != col / (n * R) || row % R != col % R) continue;
        lop_attr at = {.i = {row / R % n, col / R % n, 0, ATTR(m, 'k').i[3]}};
        st = lop_make1(mk, &lop_op_element, &at, a, &one);
        st = add_to(mk, st, one, &all);
    }
    if (st == LOP_OK)
        *out = all;
    else
        lop_node_unref(all);
    return st;
}
