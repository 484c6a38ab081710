/* kron_places.c: sums of Krons whose matrices stand at the same place, as spin chains are written:
 *
 *     (I (x) A (x) I) + (I (x) B (x) I)  =  I (x) (A + B) (x) I
 *
 * A term is read as identities of `before` and `after` rows around one Dense factor of at most
 * WIDEST rows. Those in one place are added up: one product in place of each. Terms of several
 * factors stay: as one matrix their entries would be multiplied by each other, out of range where
 * the product with x is not, and structural zeros would meet inf. */
#include "builds.h"
#include "expr/coefficients.h"

enum { TERMS = 256, WIDEST = 16, DEPTH = 12 };

/* A term: identities around one matrix, c I (x) F (x) I, F under a view. */
typedef struct place {
    const lop_node *whole; /* borrowed: the term */
    const lop_node *f;     /* borrowed; NULL: it is no such term */
    lop_coef c;
    int64_t before, after, rows;
    int mode;
    int host; /* the term that it is added to, perhaps itself; -1: it stays as it is */
} place;

/* Views go to the factors, multiples to the front. False: it is no such term. */
static bool read_factors(place *w, const lop_node *a, int mode, int depth) {
    for (; a->op == &lop_op_view || a->op == &lop_op_scaled; a = a->child[0]) {
        const lop_coef by = lop_coef_of(&a->attr);
        if (a->op == &lop_op_view)
            mode ^= (int)a->attr.i[0];
        else
            w->c = lop_coef_times(a->ctx, w->c, mode & LOP_C ? lop_coef_conj(a->ctx, by) : by);
    }
    if (a->op == &lop_op_kron) {
        bool all = depth > 0;
        for (int i = 0; all && i < a->n; i++) all = read_factors(w, a->child[i], mode, depth - 1);
        return all;
    }
    if (!lop_is_square(a)) return false;
    if (a->op == &lop_op_identity) {
        *(w->f ? &w->after : &w->before) *= lop_rows(a);
        return true;
    }
    if (w->f || a->op != &lop_op_dense) return false;
    w->f = a;
    w->mode = mode;
    w->rows = lop_rows(a);
    return true;
}

/* A Kron in the precision of the sum. */
static place read_place(const lop_node *a, lop_dtype dt) {
    place w = {
        .whole = a, .c = lop_coef_const(1, 0), .before = 1, .after = 1, .mode = LOP_N, .host = -1};
    const lop_node *k = a;
    while (k->op == &lop_op_view || k->op == &lop_op_scaled) k = k->child[0];
    if (k->op != &lop_op_kron || lop_nbatch(a) != 0 || lop_rows(a) == 0 ||
        lop_dtype_real(a->dtype) != lop_dtype_real(dt) || !read_factors(&w, a, LOP_N, DEPTH) ||
        w.rows > WIDEST || !lop_coef_test(a->ctx, w.c, LOP_COEF_MODEST))
        w.f = NULL;
    return w;
}

/* The terms of a sum, the last one first. False: there are too many. */
static bool collect(place *t, int *n, const lop_node *a, lop_dtype dt, int depth) {
    for (; a->op == &lop_op_sum; a = a->child[0])
        if (depth == 0 || !collect(t, n, a->child[1], dt, depth - 1)) return false;
    if (*n == TERMS) return false;
    t[(*n)++] = read_place(a, dt);
    return true;
}

/* Are there others in this place, and their dense forms smaller than what passes through? */
static bool pays(const place *t, int n, int host, int64_t k) {
    const double through = (double)lop_rows(t[host].whole) * (double)k, size = (double)t[host].rows;
    int guests = 0;
    for (int i = 0; i < n; i++) guests += t[i].host == host;
    return guests > 1 && guests * size * size <= through;
}

/* Each takes the others in its place. Does any pay? */
static bool settle(place *t, int n, int64_t k) {
    bool some = false;
    for (int h = 0; h < n; h++) {
        if (!t[h].f || t[h].host >= 0) continue;
        for (int i = h; i < n; i++)
            if (t[i].f && t[i].host < 0 && t[i].before == t[h].before && t[i].rows == t[h].rows)
                t[i].host = h;
        const bool good = pays(t, n, h, k);
        for (int i = h; !good && i < n; i++)
            if (t[i].host == h) t[i].host = -1;
        some = some || good;
    }
    return some;
}

/* An identity unless it has one row. Owned, as the next of f. */
static lop_status add_eye(const lop_maker *mk, int64_t rows, const lop_node **f, int *n) {
    const lop_node like = {
        .shape = {.ndim = 2, .dim = {rows, rows}}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 2};
    if (rows == 1) return LOP_OK;
    return lop_make(mk, "identity", NULL, 0, NULL, &like, &f[(*n)++]);
}

static lop_status kron_of(const lop_maker *mk, const lop_node *const *f, int n,
                          const lop_node **out) {
    if (n != 1) return lop_make(mk, "kron", NULL, n, f, NULL, out);
    *out = lop_node_ref(f[0]);
    return LOP_OK;
}

/* c F of a term. */
static lop_status matrix_of(const lop_maker *mk, const place *w, const lop_node **out) {
    const lop_attr mode = {.i = {w->mode}}, c = lop_coef_attr(w->c);
    const lop_node *f = NULL;
    lop_status st = LOP_OK;
    if (w->mode == LOP_N)
        f = lop_node_ref(w->f);
    else
        st = lop_make1(mk, &lop_op_view, &mode, w->f, &f);
    if (st == LOP_OK && !lop_coef_test(mk->ctx, w->c, LOP_COEF_ONE))
        st = lop_make1(mk, &lop_op_scaled, &c, f, out);
    else if (st == LOP_OK)
        *out = lop_node_ref(f);
    lop_node_unref(f);
    return st;
}

/* *sum + one, where there is something already. Takes over `one`. */
static lop_status plus(const lop_maker *mk, const lop_node *one, const lop_node **sum) {
    lop_status st = lop_plus(mk, one, sum);
    lop_node_unref(one);
    return st;
}

/* I (x) (the dense form of the sum of those of one host) (x) I. */
static lop_status gathered(const lop_maker *mk, const place *t, int n, int host,
                           const lop_node **out) {
    const lop_node *sum = NULL, *array = NULL, *f[3] = {0};
    const lop_attr own = {.i = {0}};
    lop_status st = LOP_OK;
    int nf = 0;
    for (int i = n - 1; st == LOP_OK && i >= 0; i--) {
        const lop_node *one = NULL;
        if (t[i].host != host) continue;
        st = matrix_of(mk, &t[i], &one);
        if (st == LOP_OK) st = plus(mk, one, &sum);
    }
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_todense, &own, sum, &array);
    if (st == LOP_OK) st = add_eye(mk, t[host].before, f, &nf);
    if (st == LOP_OK) st = lop_make1(mk, &lop_op_dense, NULL, array, &f[nf++]);
    if (st == LOP_OK) st = add_eye(mk, t[host].after, f, &nf);
    if (st == LOP_OK) st = kron_of(mk, f, nf, out);
    lop_node_unref(sum);
    lop_node_unref(array);
    for (int i = 0; i < 3; i++) lop_node_unref(f[i]);
    return st;
}

LOP_BUILD(apply_kron_places) {
    const lop_node *a = m->root->child[0], *sum = NULL;
    const int64_t k = lop_cols(m->root->child[1]);
    int n = 0;
    place *t = lop_calloc(mk->ctx, TERMS, sizeof *t);
    if (!t) return lop_fail(mk->err, LOP_NOMEM, NULL);
    lop_status st = lop_is_blas(a->dtype) && collect(t, &n, a, a->dtype, TERMS) && settle(t, n, k)
                        ? LOP_OK
                        : LOP_NOMATCH;
    for (int i = n - 1; st == LOP_OK && i >= 0; i--) {
        const lop_node *one = NULL;
        const int host = t[i].host;
        bool done = false; /* the host's sum stands where its first term stood */
        for (int j = i + 1; j < n; j++) done = done || (host >= 0 && t[j].host == host);
        if (done) continue;
        if (host >= 0)
            st = gathered(mk, t, n, host, &one);
        else
            one = lop_node_ref(t[i].whole);
        if (st == LOP_OK) st = plus(mk, one, &sum);
    }
    lop_free(mk->ctx, t);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, sum, m->root->child[1], out);
    lop_node_unref(sum);
    return st;
}
