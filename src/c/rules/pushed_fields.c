/* pushed_fields.c: traces of A^-1 U M^-1 Y, where
 *
 *   A = E + c U M^-1 V^H,   E diagonal,   H = M + c V^H E^-1 U      (sparse_updates.c)
 *   A^-1 U M^-1 = E^-1 U H^-1
 *
 * as in the derivatives by c: they are those of a product with H^-1 alone, and nothing is lost
 * between terms. Accepted where a probe is solved with by the same H, and E is not much nearer to a
 * singular matrix than A is; else by the dense form. */
#include "builds.h"
#include "expr/properties.h"
#include "sparse_updates.h"
#include "thin_sum.h"

/* The factors of a product. Owned where they are seen from the other side: a trace is also that of
 * the transposed product. */
typedef struct row {
    const lop_node *f[LOP_FACTORS];
    int n;
    bool owned;
} row;

static void drop(row *r) {
    for (int i = 0; r->owned && i < r->n; i++) lop_node_unref(r->f[i]);
}

static lop_status turned(const lop_maker *mk, const row *r, row *out) {
    lop_status st = LOP_OK;
    *out = (row){.owned = true};
    for (int i = r->n - 1; st == LOP_OK && i >= 0; i--) {
        st = lop_view_once(mk, LOP_T, r->f[i], &out->f[out->n]);
        if (st == LOP_OK) out->n++;
    }
    return st;
}

/* How many factors after the one at `at`, round to the front, are U M^-1; 0: they are others. */
static int own_factors(const row *r, int at, const lop_seen *s) {
    const lop_node *u[LOP_FACTORS];
    lop_coef c = lop_coef_const(1, 0);
    int64_t mode;
    const int n = s->u ? lop_factors_times(s->u, u, &c) : 0;
    if ((s->u && n == 0) || n + 2 > r->n || !lop_coef_test(s->m->ctx, c, LOP_COEF_ONE)) return 0;
    for (int i = 0; i < n; i++)
        if (!lop_node_alike(r->f[(at + 1 + i) % r->n], u[i], LOP_INFER_DEPTH)) return 0;
    const lop_node *m = lop_inverse_seen(r->f[(at + 1 + n) % r->n], &mode);
    return m && mode == LOP_N && lop_node_alike(m, s->m, LOP_INFER_DEPTH) ? n + 1 : 0;
}

/* The trace of H^-1 Y E^-1 U. */
static lop_status trace_of(const lop_match *m, const lop_seen *s, const row *r, int at, int taken,
                           const lop_node **out) {
    const lop_maker *mk = s->mk;
    const lop_node *part[LOP_FACTORS + 3], *in = NULL, *all = NULL;
    int k = 1;
    lop_status st = lop_inverse_closed(mk, s->h, &in);
    part[0] = in;
    for (int i = 1 + taken; i < r->n; i++) part[k++] = r->f[(at + i) % r->n];
    part[k++] = s->over;
    if (s->u) part[k++] = s->u;
    if (st == LOP_OK) st = lop_product_of(mk, part, k, &all);
    if (st == LOP_OK) st = lop_make1(mk, m->root->op, &m->root->attr, all, out);
    lop_node_unref(in);
    lop_node_unref(all);
    return st;
}

/* `value` times c, checked by a probe; else by the dense form of the product. */
static lop_status checked(const lop_match *m, const lop_seen *s, const lop_node *value, lop_coef c,
                          const lop_node **out) {
    const lop_attr by = lop_coef_attr(c);
    const lop_noise_check k = {s->mk, s->sum, s->e, lop_seen_solution, s};
    const lop_node *times = NULL, *alt = NULL;
    lop_status st = lop_make1(s->mk, &lop_op_scale, &by, value, &times);
    if (st == LOP_OK && times->dtype != m->root->dtype) st = LOP_NOMATCH;
    if (st == LOP_OK) st = lop_product_by_dense(s->mk, m->root, &alt);
    if (st == LOP_OK) st = lop_noise_checked(&k, times, alt, out);
    lop_node_unref(times);
    lop_node_unref(alt);
    return st;
}

/* By the inverse at `at`. NOMATCH: it is not such a one. */
static lop_status beside(const lop_match *m, const lop_maker *mk, const row *given, int at,
                         lop_coef c, const lop_node **out) {
    int64_t mode;
    const lop_node *sum = lop_inverse_seen(given->f[at], &mode), *value = NULL;
    if (!sum || sum->op != &lop_op_sum || (mode != LOP_N && mode != LOP_T)) return LOP_NOMATCH;
    row r = *given;
    lop_seen s;
    lop_status st = lop_seen_read(mk, sum, m->root->dtype, &s);
    if (st == LOP_OK && (s.own || s.factored)) st = LOP_NOMATCH;
    if (st == LOP_OK && mode == LOP_T) {
        st = turned(mk, given, &r);
        at = given->n - 1 - at;
    }
    const int taken = st == LOP_OK ? own_factors(&r, at, &s) : 0;
    if (st == LOP_OK && !taken) st = LOP_NOMATCH;
    if (st == LOP_OK) st = trace_of(m, &s, &r, at, taken, &value);
    if (st == LOP_OK) st = checked(m, &s, value, c, out);
    lop_node_unref(value);
    drop(&r);
    lop_seen_close(&s);
    return st;
}

LOP_BUILD(pushed_field) {
    const lop_node *p = m->root->child[0];
    lop_coef c = lop_coef_const(1, 0);
    row r = {.n = 0};
    if (lop_nbatch(p) > 0 || !lop_is_blas(m->root->dtype) || p->dtype != m->root->dtype ||
        !lop_is_square(p))
        return LOP_NOMATCH;
    r.n = lop_factors_times(p, r.f, &c);
    lop_status st = LOP_NOMATCH;
    for (int at = 0; st == LOP_NOMATCH && at < r.n; at++) st = beside(m, mk, &r, at, c, out);
    return st;
}
