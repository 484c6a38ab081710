/* kron_places.c: sums of Krons whose matrices stand at the same place, as spin chains are written:
 *
 *     (I (x) A (x) I) + (I (x) B (x) I)  =  I (x) (A + B) (x) I
 *
 * A term is read as identities of `before` and `after` rows around a window of one Dense factor of
 * at most WIDEST rows. Those in one place are added up, if one product with the sum costs less than
 * theirs. Terms of several factors stay: as one matrix their entries would be multiplied by each
 * other, out of range where the product with x is not, and structural zeros would meet inf. */
#include "builds.h"
#include "expr/coefficients.h"

enum { TERMS = 256, WIDEST = 16, FACTORS = 32, DEPTH = 12 };
/* What a pass over one entry takes, in flops; 2026-11-26, AMD EPYC, one thread. */
enum { PASS = 8 };

typedef struct window {
    const lop_node *whole; /* borrowed: the term */
    int64_t before, rows, after;
    double flops; /* an entry of x, factor by factor */
    bool dense;   /* narrow, and all factors are */
    int host;     /* the term that it is added to, perhaps itself; -1: it stays as it is */
} window;

/* c f_0 (x) f_1 (x) ..., each under a view. */
typedef struct factors {
    const lop_node *f[FACTORS]; /* borrowed */
    int mode[FACTORS], n;
    lop_coef c;
} factors;

/* Views go to the factors, multiples to the front. False: it is no such term. */
static bool read_factors(factors *t, const lop_node *a, int mode, int depth) {
    for (; a->op == &lop_op_view || a->op == &lop_op_scaled; a = a->child[0]) {
        const lop_coef by = lop_coef_of(&a->attr);
        if (a->op == &lop_op_view)
            mode ^= (int)a->attr.i[0];
        else
            t->c = lop_coef_times(a->ctx, t->c, mode & LOP_C ? lop_coef_conj(a->ctx, by) : by);
    }
    if (a->op == &lop_op_kron) {
        bool all = depth > 0;
        for (int i = 0; all && i < a->n; i++) all = read_factors(t, a->child[i], mode, depth - 1);
        return all;
    }
    if (t->n == FACTORS || !lop_is_square(a)) return false;
    t->mode[t->n] = mode;
    t->f[t->n++] = a;
    return true;
}

static bool is_eye(const factors *t, int i) { return t->f[i]->op == &lop_op_identity; }

/* A Kron in the precision of the sum, with a window. */
static bool read_window(window *w, factors *t, const lop_node *a, lop_dtype dt) {
    const lop_node *k = a;
    int first = 0, last;
    *w = (window){.whole = a, .before = 1, .rows = 1, .after = 1, .dense = true, .host = -1};
    *t = (factors){.n = 0, .c = lop_coef_const(1, 0)};
    while (k->op == &lop_op_view || k->op == &lop_op_scaled) k = k->child[0];
    if (k->op != &lop_op_kron || lop_nbatch(a) != 0 || lop_rows(a) == 0 ||
        lop_dtype_real(a->dtype) != lop_dtype_real(dt) || !read_factors(t, a, LOP_N, DEPTH) ||
        !lop_coef_test(a->ctx, t->c, LOP_COEF_MODEST))
        return false;
    for (; first < t->n && is_eye(t, first); first++) w->before *= lop_rows(t->f[first]);
    for (last = t->n; last > first && is_eye(t, last - 1); last--)
        w->after *= lop_rows(t->f[last - 1]);
    for (int i = first; i < last; i++) {
        w->rows *= lop_rows(t->f[i]);
        w->dense = w->dense && t->f[i]->op == &lop_op_dense;
        if (!is_eye(t, i)) w->flops += 2 * (double)lop_rows(t->f[i]) + PASS;
    }
    w->dense = w->dense && w->rows <= WIDEST && last == first + 1;
    return last > first;
}

/* The terms of a sum, the last one first. False: there are too many. */
static bool collect(window *t, int *n, const lop_node *a, lop_dtype dt, int depth) {
    factors f;
    for (; a->op == &lop_op_sum; a = a->child[0])
        if (depth == 0 || !collect(t, n, a->child[1], dt, depth - 1)) return false;
    if (*n == TERMS) return false;
    if (!read_window(&t[*n], &f, a, dt)) t[*n].rows = 0;
    ++*n;
    return true;
}

/* Is `in` another matrix in the place of `w`? */
static bool holds(const window *w, const window *in) {
    return in->dense && in->before == w->before && in->rows == w->rows;
}

/* Is one product cheaper than those of all who have this host, and are their dense forms smaller
 * than what passes through? */
static bool pays(const window *t, int n, int host, int64_t k) {
    const double through = (double)lop_rows(t[host].whole) * (double)k, size = (double)t[host].rows;
    double flops = 0;
    int guests = 0;
    for (int i = 0; i < n; i++) {
        if (t[i].host != host) continue;
        flops += t[i].flops + PASS; /* and it is added */
        guests++;
    }
    return guests > 1 && 2 * size + 2 * PASS <= flops && guests * size * size <= through;
}

/* Each takes the others in its place. Does any pay? */
static bool settle(window *t, int n, int64_t k) {
    bool some = false;
    for (int64_t size = WIDEST; size > 0; size--)
        for (int h = 0; h < n; h++) {
            if (t[h].rows != size || !t[h].dense || t[h].host >= 0) continue;
            for (int i = 0; i < n; i++)
                if (t[i].host < 0 && holds(&t[h], &t[i])) t[i].host = h;
            const bool good = pays(t, n, h, k);
            for (int i = 0; !good && i < n; i++)
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

/* A term as an operator of its host's window. */
static lop_status within(const lop_maker *mk, const window *host, const window *w, lop_dtype dt,
                         const lop_node **out) {
    const lop_node *f[FACTORS + 2] = {0}, *all = NULL;
    int n = 0, i = 0;
    factors t;
    window again;
    if (!read_window(&again, &t, w->whole, dt)) return lop_fail(mk->err, LOP_INTERNAL, NULL);
    while (is_eye(&t, i)) i++;
    while (is_eye(&t, t.n - 1)) t.n--;
    lop_status st = add_eye(mk, w->before / host->before, f, &n);
    for (; st == LOP_OK && i < t.n; i++, n++) {
        const lop_attr mode = {.i = {t.mode[i]}};
        if (t.mode[i] == LOP_N || is_eye(&t, i))
            f[n] = lop_node_ref(t.f[i]);
        else
            st = lop_make1(mk, &lop_op_view, &mode, t.f[i], &f[n]);
    }
    if (st == LOP_OK) st = add_eye(mk, w->after / host->after, f, &n);
    if (st == LOP_OK) st = kron_of(mk, f, n, &all);
    for (int j = 0; j < FACTORS + 2; j++) lop_node_unref(f[j]);
    if (st == LOP_OK && !lop_coef_test(mk->ctx, t.c, LOP_COEF_ONE)) {
        const lop_attr c = lop_coef_attr(t.c);
        st = lop_make1(mk, &lop_op_scaled, &c, all, out);
    } else if (st == LOP_OK) {
        *out = lop_node_ref(all);
    }
    lop_node_unref(all);
    return st;
}

/* *sum + one, where there is something already. Takes over `one`. */
static lop_status plus(const lop_maker *mk, const lop_node *one, const lop_node **sum) {
    const lop_node *both = NULL;
    lop_status st = *sum ? lop_make2(mk, &lop_op_sum, NULL, *sum, one, &both) : LOP_OK;
    if (st == LOP_OK) {
        lop_node_unref(*sum);
        *sum = both ? both : lop_node_ref(one);
    }
    lop_node_unref(one);
    return st;
}

/* I (x) (the dense form of the sum of those of one host) (x) I. */
static lop_status gathered(const lop_maker *mk, const window *t, int n, int host, lop_dtype dt,
                           const lop_node **out) {
    const lop_node *sum = NULL, *array = NULL, *f[3] = {0};
    const lop_attr own = {.i = {0}};
    lop_status st = LOP_OK;
    int nf = 0;
    for (int i = n - 1; st == LOP_OK && i >= 0; i--) {
        const lop_node *one = NULL;
        if (t[i].host != host) continue;
        st = within(mk, &t[host], &t[i], dt, &one);
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
    window *t = lop_calloc(mk->ctx, TERMS, sizeof *t);
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
            st = gathered(mk, t, n, host, a->dtype, &one);
        else
            one = lop_node_ref(t[i].whole);
        if (st == LOP_OK) st = plus(mk, one, &sum);
    }
    lop_free(mk->ctx, t);
    if (st == LOP_OK) st = lop_make2(mk, &lop_op_apply, NULL, sum, m->root->child[1], out);
    lop_node_unref(sum);
    return st;
}
