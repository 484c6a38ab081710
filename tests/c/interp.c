/* interp.c: values, batches, arithmetic; one function a head, by name. Clarity before speed. */
#include "interp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IS(head) (!strcmp(s, head))

static bool ends(const char *s, const char *with) {
    size_t n = strlen(s), k = strlen(with);
    return n >= k && !strcmp(s + n - k, with);
}

typedef struct block {
    struct block *next;
    max_align_t room[];
} block;

static void *take(ip *p, size_t bytes) {
    block *b = calloc(1, sizeof *b + bytes + 16);
    if (!b) abort();
    b->next = p->blocks;
    p->blocks = b;
    return b->room;
}

void ip_open(ip *p, const lop_rand *rand, lop_dtype dt, bool fft) {
    *p = (ip){.rand = rand, .bools = dt == LOP_b8, .fft = fft};
}

void ip_close(ip *p) {
    while (p->blocks) {
        block *next = p->blocks->next;
        free(p->blocks);
        p->blocks = next;
    }
}

/* -- elements */

static val add(const ip *p, val a, val b) {
    return (val){p->bools ? a.i | b.i : a.i + b.i, a.re + b.re, a.im + b.im, a.mag + b.mag};
}
static val mul(const ip *p, val a, val b) {
    return (val){p->bools ? a.i & b.i : a.i * b.i, a.re * b.re - a.im * b.im,
                 a.re * b.im + a.im * b.re, a.mag * b.mag};
}
static val conj_of(val a) { return (val){a.i, a.re, -a.im, a.mag}; }
static val one(void) { return (val){1, 1, 0, 1}; }

/* The coefficient of a scale or scaled node. */
static val coef(const ip *p, const lop_attr *a) {
    val v = {p->bools ? a->i[0] != 0 : (uint64_t)a->i[0], (long double)a->re, (long double)a->im,
             0};
    v.mag = hypotl(v.re, v.im);
    return v;
}

/* -- arrays with batches */

static tv *blank(ip *p, const lop_shape *batch, int core, int64_t m, int64_t n) {
    tv *t = take(p, sizeof *t);
    *t = (tv){.batch = *batch, .core = core, .m = m, .n = n, .nb = 1};
    for (int i = 0; i < batch->ndim; i++) t->nb *= batch->dim[i];
    t->v = take(p, (size_t)(t->nb * m * n) * sizeof *t->v);
    return t;
}

static tv *fail(ip *p, const char *why) {
    if (!p->why) p->why = why;
    return NULL;
}

static bool broadcast(const lop_shape *a, const lop_shape *b, lop_shape *out) {
    out->ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int i = 0; i < out->ndim; i++) {
        int ia = i - out->ndim + a->ndim, ib = i - out->ndim + b->ndim;
        int64_t da = ia < 0 ? 1 : a->dim[ia], db = ib < 0 ? 1 : b->dim[ib];
        if (da != db && da != 1 && db != 1) return false;
        out->dim[i] = da == 1 ? db : da;
    }
    return true;
}

/* The matrix of `a` that belongs to element e of the broadcast batch. */
static mv part(const tv *a, const lop_shape *batch, int64_t e) {
    int64_t at = 0, step = 1;
    for (int i = batch->ndim - 1; i >= 0; i--) {
        int own = i - batch->ndim + a->batch.ndim;
        int64_t where = e % batch->dim[i];
        e /= batch->dim[i];
        if (own < 0) continue;
        if (a->batch.dim[own] != 1) at += where * step;
        step *= a->batch.dim[own];
    }
    return (mv){a->v + at * a->m * a->n, a->m, a->n};
}

typedef ip_fn fn2;

/* y[e] = f(a[e], b[e]) over the broadcast batch. b may be NULL. */
static tv *zip(ip *p, const lop_node *node, const tv *a, const tv *b, int core, int64_t m,
               int64_t n, fn2 f) {
    lop_shape batch = a->batch;
    if (b && !broadcast(&a->batch, &b->batch, &batch)) return fail(p, "batches do not broadcast");
    tv *y = blank(p, &batch, core, m, n);
    for (int64_t e = 0; e < y->nb; e++)
        f(p, node, part(y, &batch, e), part(a, &batch, e), b ? part(b, &batch, e) : (mv){0});
    return y;
}

static void do_add(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)node;
    for (int64_t i = 0; i < y.m * y.n; i++) y.v[i] = add(p, a.v[i], b.v[i]);
}
static void do_mul(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)node;
    for (int64_t i = 0; i < y.m * y.n; i++) y.v[i] = mul(p, a.v[i], b.v[i]);
}
static void do_matmul(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)node;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t t = 0; t < a.n; t++)
            for (int64_t j = 0; j < y.n; j++) {
                val *to = &y.v[i * y.n + j];
                *to = add(p, *to, mul(p, a.v[i * a.n + t], b.v[t * b.n + j]));
            }
}
static void do_scale(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)b;
    val c = coef(p, &node->attr);
    for (int64_t i = 0; i < y.m * y.n; i++) y.v[i] = mul(p, c, a.v[i]);
}
/* A cast to a real dtype drops the imaginary part; anything else keeps the value. */
static void do_copy(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)b;
    memcpy(y.v, a.v, (size_t)(y.m * y.n) * sizeof *y.v);
    for (int64_t i = 0; i < y.m * y.n && !lop_is_complex(node->dtype); i++) y.v[i].im = 0;
}
static void do_conj(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)node;
    (void)b;
    for (int64_t i = 0; i < y.m * y.n; i++) y.v[i] = conj_of(a.v[i]);
}
static void do_mode(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)b;
    int64_t mode = node->attr.i[0];
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++) {
            val v = mode & LOP_T ? a.v[j * a.n + i] : a.v[i * a.n + j];
            y.v[i * y.n + j] = mode & LOP_C ? conj_of(v) : v;
        }
}
static void do_part(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)b;
    for (int64_t i = 0; i < y.m * y.n; i++) {
        y.v[i] = a.v[i];
        y.v[i].re = node->attr.i[0] ? a.v[i].im : a.v[i].re;
        y.v[i].im = 0;
        if (node->attr.i[0]) y.v[i].i = 0;
    }
}
static void do_kron(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)node;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++)
            y.v[i * y.n + j] = mul(p, a.v[i / b.m * a.n + j / b.n], b.v[i % b.m * b.n + j % b.n]);
}

static val quotient(val a, val b) {
    long double d = b.re * b.re + b.im * b.im, size = sqrtl(d);
    val v = {0, (a.re * b.re + a.im * b.im) / d, (a.im * b.re - a.re * b.im) / d, 0};
    v.mag = a.mag / size + hypotl(v.re, v.im) * b.mag / size;
    return v;
}
static void do_div(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)node;
    for (int64_t i = 0; i < y.m; i++) {
        if (b.v[i].re == 0 && b.v[i].im == 0) p->singular = true;
        for (int64_t j = 0; j < y.n; j++) y.v[i * y.n + j] = quotient(a.v[i * y.n + j], b.v[i]);
    }
}

static const tv *transposed(ip *p, const tv *a, lop_mode mode) {
    lop_node how = {.attr = {.i = {mode, 0, 0, 0}}};
    bool t = (mode & LOP_T) != 0;
    return zip(p, &how, a, NULL, 2, t ? a->n : a->m, t ? a->m : a->n, do_mode);
}
static const tv *matmul(ip *p, const tv *a, const tv *b) {
    if (!a || !b || a->core != 2 || b->core != 2 || a->n != b->m) return fail(p, "no product");
    return zip(p, NULL, a, b, 2, a->m, b->n, do_matmul);
}

/* -- solves */

#include "interp_invert.h"

/* y = a^-1 b; mag: |a^-1| (max |a| sum |y| + mag b), what a backward stable solve keeps. */
static void do_solve(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)node;
    int64_t n = a.n;
    number *work = take(p, (size_t)(2 * n * n) * sizeof *work), *inv = work + n * n;
    long double top = 0;
    for (int64_t i = 0; i < n * n; i++) {
        work[i] = (number){a.v[i].re, a.v[i].im};
        if (a.v[i].mag > top) top = a.v[i].mag;
    }
    invert(p, work, inv, n);
    for (int64_t j = 0; j < y.n && !p->singular; j++) {
        long double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            val s = {0};
            for (int64_t t = 0; t < n; t++) {
                const number v = inv[i * n + t];
                const val by = b.v[t * y.n + j];
                s.re += v.re * by.re - v.im * by.im;
                s.im += v.re * by.im + v.im * by.re;
            }
            s.i = fabsl(s.re) < 9e18L ? (uint64_t)(int64_t)roundl(s.re) : 0;
            y.v[i * y.n + j] = s;
            sum += hypotl(s.re, s.im);
        }
        for (int64_t i = 0; i < n; i++) {
            long double m = 0;
            for (int64_t t = 0; t < n; t++)
                m += hypotl(inv[i * n + t].re, inv[i * n + t].im) *
                     (top * sum + b.v[t * y.n + j].mag);
            y.v[i * y.n + j].mag = m;
        }
    }
}
static const tv *solve(ip *p, const tv *a, const tv *b) {
    if (a->core != 2 || a->m != a->n || b->core != 2 || b->m != a->m)
        return fail(p, "a solve does not fit");
    return zip(p, NULL, a, b, 2, b->m, b->n, do_solve);
}

/* Only one triangle of `a` is there (attr.i[0]: the lower one); seen through the mode attr.i[1]. */
static void do_triangle(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)b;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++)
            if (node->attr.i[0] ? i >= j : i <= j)
                y.v[i * y.n + j] = i == j && node->attr.i[2] ? one() : a.v[i * y.n + j];
}
static const tv *trisolve(ip *p, const lop_node *node, const tv *a, const tv *b) {
    const tv *t = zip(p, node, a, NULL, 2, a->m, a->n, do_triangle);
    return solve(p, transposed(p, t, (lop_mode)node->attr.i[1]), b);
}

static void do_recip(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)node;
    (void)b;
    for (int64_t i = 0; i < y.m; i++) {
        if (a.v[i].re == 0 && a.v[i].im == 0) p->singular = true;
        y.v[i] = quotient(one(), a.v[i]);
    }
}

/* What interp_conv.c builds on. */
tv *ip_blank(ip *p, const lop_shape *batch, int core, int64_t m, int64_t n) {
    return blank(p, batch, core, m, n);
}
const tv *ip_zip(ip *p, const lop_node *node, const tv *a, const tv *b, int core, int64_t m,
                 int64_t n, ip_fn f) {
    return zip(p, node, a, b, core, m, n, f);
}
val ip_add(const ip *p, val a, val b) { return add(p, a, b); }
val ip_mul(const ip *p, val a, val b) { return mul(p, a, b); }
const tv *ip_solve(ip *p, const tv *a, lop_mode mode, const tv *b) {
    return solve(p, transposed(p, a, mode), b);
}

/* -- leaves and constants */

static const tv *leaf(ip *p, const lop_node *node) {
    const lop_buf *b = lop_rand_find(p->rand, node->serial);
    if (!b || !lop_shape_equal(&b->shape, &node->shape)) return fail(p, "an unknown leaf");
    lop_shape batch = b->shape;
    batch.ndim -= node->core;
    int64_t m = node->core > 0 ? b->shape.dim[batch.ndim] : 1;
    tv *t = blank(p, &batch, node->core, m, node->core > 1 ? b->shape.dim[batch.ndim + 1] : 1);
    for (int64_t i = 0; i < t->nb * t->m * t->n; i++) t->v[i] = val_load(b->dt, b->p, i);
    return t;
}

static const tv *constant(ip *p, const lop_node *node, const char *what) {
    lop_shape batch = node->shape;
    batch.ndim -= node->core;
    tv *t = blank(p, &batch, node->core, batch.dim[batch.ndim],
                  node->core == 2 ? batch.dim[batch.ndim + 1] : 1);
    if (!strcmp(what, "closed_det")) return t->v[0] = ip_detclosed(node), t;
    if (!strcmp(what, "const_det")) {
        for (int64_t e = 0; e < t->nb; e++) t->v[2 * e] = node->attr.i[0] ? one() : (val){0};
        return t;
    }
    const int64_t wrap = !strcmp(what, "bandprobe") ? t->n : INT64_MAX;
    for (int64_t i = 0; !strcmp(what, "ones") && i < t->nb * t->m * t->n; i++) t->v[i] = one();
    if (!strcmp(what, "ones") || !strcmp(what, "zeros")) return t;
    for (int64_t e = 0; e < t->nb; e++)
        for (int64_t i = 0; i < t->m; i++)
            for (int64_t j = 0; j < t->n; j++)
                if (!strcmp(what, "unit") ? i == node->attr.i[0] : i % wrap == j)
                    t->v[(e * t->m + i) * t->n + j] = one();
    return t;
}

/* -- kinds */

static void do_diag(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)node;
    (void)b;
    for (int64_t i = 0; i < y.m; i++) y.v[i * y.n + i] = a.v[i];
}
static void do_selection(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)node;
    (void)b;
    for (int64_t i = 0; i < y.m; i++) {
        int64_t at = (int64_t)a.v[i].i;
        y.v[i * y.n + (at < 0 ? at + y.n : at)] = one();
    }
}
static void do_toeplitz(ip *p, const lop_node *node, mv y, mv c, mv r) {
    (void)node;
    long double all = 0;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++) y.v[i * y.n + j] = i >= j ? c.v[i - j] : r.v[j - i];
    if (!p->fft) return;
    for (int64_t i = 0; i < c.m; i++) all += c.v[i].mag * c.v[i].mag;
    for (int64_t j = 1; j < r.m; j++) all += r.v[j].mag * r.v[j].mag;
    for (int64_t i = 0; i < y.m * y.n; i++) y.v[i].mag = sqrtl(all);
}

static const tv *kron(ip *p, const lop_node *node) {
    const tv *all = ip_eval(p, node->child[0]);
    for (int i = 1; all && i < node->n; i++) {
        const tv *f = ip_eval(p, node->child[i]);
        all = f ? zip(p, NULL, all, f, 2, all->m * f->m, all->n * f->n, do_kron) : NULL;
    }
    return all;
}

static const tv *lowrank(ip *p, const tv *u, const tv *v, const tv *c) {
    const tv *left = c ? matmul(p, u, c) : u;
    return left ? matmul(p, left, transposed(p, v, LOP_H)) : NULL;
}

static const tv *power(ip *p, const lop_node *node, const tv *a) {
    lop_shape none = {0};
    tv *eye = blank(p, &none, 2, a->m, a->m);
    for (int64_t i = 0; i < a->m; i++) eye->v[i * a->m + i] = one();
    const tv *y = matmul(p, a, eye);
    if (node->attr.i[0] == 0) { /* the identity, with a's batch */
        for (int64_t i = 0; i < y->nb * y->m * y->n; i++)
            y->v[i] = i % (y->m * y->n) % (y->m + 1) ? (val){0} : one();
        return y;
    }
    for (int64_t k = 1; y && k < node->attr.i[0]; k++) y = matmul(p, a, y);
    return y;
}

/* -- parts, sums, foldings */

static void do_diagonal(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)b;
    int64_t k = node->attr.i[0], i0 = k < 0 ? -k : 0, j0 = k > 0 ? k : 0;
    for (int64_t t = 0; t < y.m; t++) y.v[t] = a.v[(i0 + t) * a.n + j0 + t];
}
static const tv *diagonal(ip *p, const lop_node *node, const tv *a) {
    int64_t k = node->attr.i[0], len = a->m + (k < 0 ? k : 0), cols = a->n - (k > 0 ? k : 0);
    if (k < -a->m || k > a->n) len = 0;
    if (cols < len) len = cols;
    return zip(p, node, a, NULL, 1, len < 0 ? 0 : len, 1, do_diagonal);
}
static void do_sum(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)node;
    (void)b;
    for (int64_t i = 0; i < a.m * a.n; i++) y.v[0] = add(p, y.v[0], a.v[i]);
}
static void do_line(ip *p, const lop_node *node, mv y, mv a, mv b) {
    const int64_t *at = node->attr.i;
    for (int64_t t = 0; t < y.m * y.n; t++) y.v[t] = a.v[at[0] ? t * a.n + at[1] : at[1] * a.n + t];
    (void)p, (void)b;
}
static void do_pick(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    (void)b;
    y.v[0] = a.v[node->attr.i[0] * a.n + node->attr.i[1]];
}
#include "interp_more.h"

static void do_det(ip *p, const lop_node *node, mv y, mv a, mv b) {
    ip_det(p, node, y.v, a.v, a.m, b.v);
}

#include "interp_slices.h"

mv ip_part(const tv *a, const lop_shape *batch, int64_t e) { return part(a, batch, e); }
bool ip_broadcast(const lop_shape *a, const lop_shape *b, lop_shape *o) {
    return broadcast(a, b, o);
}
val ip_quotient(val a, val b) { return quotient(a, b); }
val ip_coef(const ip *p, const lop_attr *a) { return coef(p, a); }

#include "interp_compose.h"

/* -- dispatch */
static const tv *two(ip *p, const lop_node *node, const char *s, const tv *a, const tv *b) {
    bool fits = a->core == b->core && a->m == b->m && a->n == b->n;
    if (IS("add") || IS("sum"))
        return fits ? zip(p, node, a, b, a->core, a->m, a->n, do_add)
                    : fail(p, "a sum does not fit");
    if (IS("mul")) return fits ? zip(p, node, a, b, a->core, a->m, a->n, do_mul) : fail(p, "mul");
    if (IS("prod") || IS("apply")) return matmul(p, a, b);
    if (IS("check_isometry")) return a;
    if (IS("solve") || IS("cholesky_solve")) return solve(p, a, b);
    if (IS("lu_solve")) return solve(p, transposed(p, a, (lop_mode)node->attr.i[0]), b);
    if (IS("ldl_solve")) return solve(p, zip(p, node, a, NULL, 2, a->m, a->n, do_mirror), b);
    if (IS("half_solve")) return halfsolve(p, node, a, b);
    if (IS("joint") || IS("joint_array")) return in_a_row(p, node);
    if (IS("triangular_solve")) return trisolve(p, node, a, b);
    if (IS("div")) return a->m == b->m ? zip(p, node, a, b, 2, a->m, a->n, do_div) : fail(p, "div");
    if (IS("toeplitz")) return zip(p, node, a, b, 2, a->m, b->m, do_toeplitz);
    if (IS("sliced") || IS("array_slice")) return sliced(p, node, a, b);
    if (IS("scatter_slice")) return zip(p, node, a, b, 2, node->attr.i[0], a->n, do_putback);
    if (IS("diagrun")) return zip(p, node, a, b, 1, node->attr.i[2], 1, do_diagrun);
    if (IS("kronarray")) return zip(p, node, a, b, a->core, a->m * b->m, a->n * b->n, do_kron);
    if (IS("mul_det") || IS("cholesky_det")) /* b of cholesky_det was assumed, no more */
        return zip(p, node, a, IS("mul_det") ? b : NULL, 1, 2, 1, do_det);
    if (IS("sparsepair")) return sparse_pair(p, node, a, b);
    if (IS("product_diagonal")) {
        const tv *as = transposed(p, a, (lop_mode)node->attr.i[1]),
                 *ab = matmul(p, as, transposed(p, b, (lop_mode)node->attr.i[2]));
        return ab ? diagonal(p, node, ab) : NULL;
    }
    if (IS("lowrank")) {
        const tv *c = node->n > 2 ? ip_eval(p, node->child[2]) : NULL;
        return node->n > 2 && !c ? NULL : lowrank(p, a, b, c);
    }
    return fail(p, node->op->name);
}

static const tv *only(ip *p, const lop_node *node, const char *s, const tv *a) {
    bool t = (node->attr.i[0] & LOP_T) != 0;
    if (IS("dense") || IS("todense") || IS("cast") || IS("nearone") || IS("assume") ||
        IS("assume_band"))
        return zip(p, node, a, NULL, a->core, a->m, a->n, do_copy);
    if (IS("scale") || IS("scaled")) return zip(p, node, a, NULL, a->core, a->m, a->n, do_scale);
    if (IS("slice")) return zip(p, node, a, NULL, 2, node->attr.i[1], node->attr.i[3], do_slice);
    if (IS("repeat")) return zip(p, node, a, NULL, 1, node->attr.i[0], 1, do_repeat);
    if (IS("recip")) return zip(p, node, a, NULL, 1, a->m, 1, do_recip);
    if (IS("conjugate")) return zip(p, node, a, NULL, a->core, a->m, a->n, do_conj);
    if (IS("view") || IS("swap"))
        return zip(p, node, a, NULL, 2, t ? a->n : a->m, t ? a->m : a->n, do_mode);
    if (IS("part")) return zip(p, node, a, NULL, 2, a->m, a->n, do_part);
    if (IS("diag")) return zip(p, node, a, NULL, 2, a->m, a->m, do_diag);
    if (IS("selection")) return zip(p, node, a, NULL, 2, a->m, node->attr.i[0], do_selection);
    if (IS("sliced") || IS("array_slice") || IS("run_values")) return sliced(p, node, a, NULL);
    if (IS("scatter_slice")) return zip(p, node, a, NULL, 2, node->attr.i[0], a->n, do_putback);
    if (IS("power")) return power(p, node, a);
    if (IS("diagonal") || IS("array_diagonal")) return diagonal(p, node, a);
    if (IS("element") || IS("array_element")) return zip(p, node, a, NULL, 0, 1, 1, do_pick);
    if (IS("kron_diag_gather")) return zip(p, node, a, NULL, 1, node->attr.i[3], 1, do_comb);
    if (ends(s, "_det") || IS("scaledet")) return zip(p, node, a, NULL, 1, 2, 1, do_det);
    if (IS("gram")) {
        const tv *at = zip(p, node, a, NULL, 2, a->n, a->m, do_mode);
        return at ? matmul(p, at, a) : NULL;
    }
    if (IS("matvec_row"))
        return zip(p, node, a, NULL, 2, node->attr.i[0] ? a->m : 1, node->attr.i[0] ? 1 : a->n,
                   do_line);
    if (IS("sumall")) return zip(p, node, a, NULL, 0, 1, 1, do_sum);
    if (!strncmp(s, "inver", 5)) { /* inverse, invert */
        lop_shape none = {0};
        tv *eye = blank(p, &none, 2, a->m, a->m);
        for (int64_t i = 0; i < a->m; i++) eye->v[i * a->m + i] = one();
        return solve(p, a, eye);
    }
    if (IS("kron_unfold") || IS("kron_fold") || IS("gather") || IS("spread"))
        return refold(p, node, a);
    return fail(p, node->op->name);
}

/* A value is what its own dtype makes of it: integers wrap, bool is OR and AND. */
static void narrow(const tv *t, lop_dtype dt) {
    int bits = 8 * (int)lop_dtype_size(dt);
    uint64_t top = bits < 64 ? (uint64_t)1 << bits : 0;
    for (int64_t k = 0; k < t->nb * t->m * t->n; k++) {
        val *v = &t->v[k];
        if (top) v->i &= top - 1;
        if (top && lop_dtype_family(dt) == 'i' && v->i >= top / 2) v->i -= top;
        v->re = lop_dtype_family(dt) == 'i' ? (long double)(int64_t)v->i : (long double)v->i;
        v->im = 0;
        v->mag = fabsl(v->re);
    }
}

/* The dtype in which an action works on its operator. */
static lop_dtype working(const lop_node *node) {
    bool says = node->op != &lop_op_apply && node->op != &lop_op_solve && node->attr.i[3];
    return says ? (lop_dtype)(node->attr.i[3] - 1) : node->dtype;
}

static const tv *dispatch(ip *p, const lop_node *node) {
    const char *s = node->op->name;
    if (node->op == &lop_op_array) return leaf(p, node);
    if (IS("identity") || IS("zeros") || IS("eye") || IS("unit") || IS("ones") || IS("const_det") ||
        IS("closed_det") || IS("bandprobe"))
        return constant(p, node, s);
    if (IS("rank_deficient")) return p->singular = true, constant(p, node, "zeros");
    if (IS("sparse")) return sparse(p, node);
    if (IS("kron")) return kron(p, node);
    if (IS("kron_diag_scatter")) return weave(p, node);
    if (ip_band_knows(s)) return ip_band(p, node);
    if (ip_is_conv(node)) return ip_conv(p, node);
    if (IS("kernel")) return ip_kernel(p, node);
    if (is_composed(s)) return composed(p, node, s);
    if (in_bytes(node)) return results(p, node);
    if (IS("probe")) return constant(p, node, "ones"); /* any numbers do */
    if (ip_is_projection(s)) return ip_projection(p, node);
    if (node->n == 0) return fail(p, s);
    bool bools = p->bools, inside = p->inside, action = node->op->cls == LOP_ACTION;
    if (action) p->bools = working(node) == LOP_b8;
    p->inside = p->inside || action;
    if (node->op == &lop_op_cast) { /* 1: of a value; 0: down to the leaves */
        p->inside = node->attr.i[0] == 0;
        p->bools = node->dtype == LOP_b8;
    }
    const tv *a = ip_eval(p, node->child[0]);
    p->bools = bools;
    p->inside = inside;
    if (a && IS("trace")) {
        lop_node main = {.n = 0};
        const tv *d = diagonal(p, &main, a);
        if (!lop_is_blas(working(node))) narrow(d, working(node));
        return zip(p, NULL, d, NULL, 0, 1, 1, do_sum);
    }
    if (!a || node->n == 1) return a ? only(p, node, s, a) : NULL;
    const tv *b = ip_eval(p, node->child[1]);
    return b ? two(p, node, s, a, b) : NULL;
}

const tv *ip_eval(ip *p, const lop_node *node) {
    bool bools = p->bools, inside = p->inside, own = node->op->cls != LOP_OPERATOR && !p->inside;
    if (own) p->bools = node->dtype == LOP_b8;
    if (node->op->cls == LOP_OPERATOR) p->inside = true;
    const tv *t = dispatch(p, node);
    p->bools = bools;
    p->inside = inside;
    if (!t) return NULL;
    if (own && !lop_is_blas(node->dtype) && !of_bytes(node)) narrow(t, node->dtype);
    lop_shape shape = t->batch;
    if (t->core > 0) shape.dim[shape.ndim++] = t->m;
    if (t->core > 1) shape.dim[shape.ndim++] = t->n;
    if (t->core != node->core || !lop_shape_equal(&shape, &node->shape))
        return fail(p, "the node's shape is wrong");
    return t;
}
