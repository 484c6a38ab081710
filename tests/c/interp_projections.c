/* interp_projections.c: what gradients read off an operator, entry by entry, as it is defined. */
#include "interp.h"

#include "ops/projections/projections.h"

#include <math.h>
#include <string.h>

/* The place of entry (i, j) of m x n among the sums; -1: none. */
static int64_t line_of(const int64_t *how, int64_t m, int64_t n, int64_t i, int64_t j) {
    const int64_t d = how[0] ? i + j : how[2] ? j - i : i - j;
    if (how[1]) return (d + n) % n;
    return how[0] ? d : how[2] ? d + m - 1 : d + n - 1;
}
static void do_sums(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)b;
    for (int64_t i = 0; i < a.m; i++)
        for (int64_t j = 0; j < a.n; j++) {
            val *to = &y.v[line_of(node->attr.i, a.m, a.n, i, j)];
            *to = ip_add(p, *to, a.v[i * a.n + j]);
        }
}
/* Transforms are accurate by the norm of what they sum. */
static void do_norm(ip *p, const lop_node *node, mv y, mv a, mv b) {
    long double all = 0;
    (void)p, (void)node, (void)b;
    for (int64_t i = 0; i < a.m * a.n; i++) all += a.v[i].mag * a.v[i].mag;
    y.v[0].mag = sqrtl(all);
}
static const tv *sums(ip *p, const lop_node *node, const tv *a) {
    const tv *s = ip_zip(p, node, a, NULL, 1, node->shape.dim[node->shape.ndim - 1], 1, do_sums);
    const tv *norm = p->fft ? ip_zip(p, node, a, NULL, 0, 1, 1, do_norm) : NULL;
    for (int64_t i = 0; norm && i < s->nb * s->m; i++) s->v[i].mag += norm->v[i / s->m].mag;
    return s;
}

static void do_product(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)node;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++)
            for (int64_t t = 0; t < a.n; t++)
                y.v[i * y.n + j] =
                    ip_add(p, y.v[i * y.n + j], ip_mul(p, a.v[i * a.n + t], b.v[t * b.n + j]));
}
static const tv *pair_sums(ip *p, const lop_node *node, const tv *a, const tv *b) {
    const tv *ab = ip_zip(p, node, a, b, 2, a->m, b->n, do_product);
    return ab ? sums(p, node, ab) : NULL;
}

/* The one diagonal of an m x n matrix; flags and sizes are packed. */
static void do_line(ip *p, const lop_node *node, mv y, mv d, mv b) {
    const int64_t *at = node->attr.i, k = at[3], how[3] = {at[0] & 1, at[0] & 2, at[0] & 4};
    (void)b;
    for (int64_t t = 0; t < d.m; t++) {
        val *to = &y.v[line_of(how, at[1], at[2], t + (k < 0 ? -k : 0), t + (k > 0 ? k : 0))];
        *to = ip_add(p, *to, d.v[t]);
    }
}
static void do_constant(ip *p, const lop_node *node, mv y, mv c, mv r) {
    for (int64_t i = 0; i < c.m; i++)
        for (int64_t j = 0; j < r.m; j++) {
            val *to = &y.v[line_of(node->attr.i, c.m, r.m, i, j)];
            *to = ip_add(p, *to, i >= j ? c.v[i - j] : r.v[j - i]);
        }
}

/* -- sums of entries at places */

/* Is number s of the box one of entry (i, j), level by level? Modes as of a convolution; 4: the
 * numbers are all diagonals. */
static bool stands_at(const lop_node *node, int64_t s, int64_t i, int64_t j) {
    const lop_shape *g = &node->child[1]->shape, *n = &node->child[2]->shape;
    const int64_t mode = node->attr.i[1];
    for (int l = n->ndim - 1; l >= 0; l--) {
        const int64_t k = g->dim[l], in = n->dim[l];
        int64_t out = in, shift = 0;
        if (mode == 0) out = in + k - 1;
        if (mode == 1) shift = (k - 1) / 2;
        if (mode == 2) out = in > k ? in - k + 1 : k - in + 1, shift = (in > k ? k : in) - 1;
        if (mode == 4) out = k - in + 1, shift = in - 1;
        const int64_t off = i % out - j % in + shift - s % k;
        if (mode == 3 ? off % in != 0 : off != 0) return false;
        s /= k, i /= out, j /= in;
    }
    return true;
}
static bool in_triangle(int64_t which, int64_t i, int64_t j) {
    return which == 0 || (which == 1 && j <= i) || (which == 2 && j < i) ||
           (which == 3 && j >= i) || (which == 4 && j > i);
}
/* y_s += a[i, j] where number s stands at (i, j); `at`: row and column of each sparse one. */
static void do_entries(ip *p, const lop_node *node, mv y, mv a, mv at) {
    const int64_t *how = node->attr.i;
    for (int64_t s = 0; s < y.m; s++)
        for (int64_t i = 0; i < a.m; i++)
            for (int64_t j = 0; j < a.n; j++) {
                bool here;
                if (how[0] < 3) {
                    here = i == (int64_t)at.v[2 * s].i && j == (int64_t)at.v[2 * s + 1].i &&
                           in_triangle(how[1], i, j);
                } else if (how[0] == 3) {
                    const int64_t b = node->child[1]->shape.dim[0], k = s / b / b;
                    here = i == (k + (how[1] < 0)) * b + s / b % b &&
                           j == (k + (how[1] > 0)) * b + s % b;
                } else {
                    here = stands_at(node, s, i, j);
                }
                if (here) y.v[s] = ip_add(p, y.v[s], a.v[i * a.n + j]);
            }
}
static const tv *places(ip *p, const lop_node *node) {
    const tv *one = ip_eval(p, node->child[1]), *two = one ? ip_eval(p, node->child[2]) : NULL;
    const lop_shape none = {.ndim = 0};
    tv *at = two ? ip_blank(p, &none, 2, one->m, 2) : NULL;
    for (int64_t s = 0, line = 0; at && s < one->m; s++) {
        const bool coo = node->attr.i[0] == 2, rows = node->attr.i[0] != 1;
        while (!coo && (int64_t)two->v[line + 1].i <= s) line++;
        at->v[2 * s].i = coo ? one->v[s].i : rows ? (uint64_t)line : one->v[s].i;
        at->v[2 * s + 1].i = coo ? two->v[s].i : rows ? one->v[s].i : (uint64_t)line;
    }
    return at;
}
static void do_widened(ip *p, const lop_node *node, mv y, mv ab, mv b) {
    const int64_t u = node->attr.i[3] & 0xffff;
    (void)p, (void)b;
    for (int64_t j = 0; j < ab.m; j++)
        for (int64_t d = 0; d < ab.n; d++)
            if (j + d - u >= 0 && j + d - u < y.m) y.v[(j + d - u) * y.n + j] = ab.v[j * ab.n + d];
}
static const tv *entry_sums(ip *p, const lop_node *node) {
    const tv *a = ip_eval(p, node->child[0]),
             *b = a && node->n > 3 ? ip_eval(p, node->child[3]) : a,
             *at = b && node->attr.i[0] < 3 ? places(p, node) : NULL;
    if (!b || (node->attr.i[0] < 3 && !at)) return NULL;
    if (node->n > 3) a = ip_zip(p, node, a, b, 2, a->m, b->n, do_product);
    if (!strcmp(node->op->name, "band_entry_sums"))
        a = ip_zip(p, node, a, NULL, 2, node->attr.i[2], a->m, do_widened);
    return a ? ip_zip(p, node, a, at, 1, node->shape.dim[node->shape.ndim - 1], 1, do_entries)
             : NULL;
}

/* The numbers of a and, behind them, those of b. */
static void do_join(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p, (void)node;
    for (int64_t i = 0; i < y.m; i++) y.v[i] = i < a.m * a.n ? a.v[i] : b.v[i - a.m * a.n];
}
static const tv *join(ip *p, const lop_node *node, const tv *a, const tv *b) {
    return a && b ? ip_zip(p, node, a, b, 1, a->m * a->n + b->m * b->n, 1, do_join) : NULL;
}

static void do_band(ip *p, const lop_node *node, mv y, mv all, mv b) {
    (void)p, (void)b;
    for (int64_t i = 0, at = 0; i < node->n; i++) {
        const int64_t k = node->attr.i[1] - i, from = k > 0 ? k : 0,
                      count = lop_cols(node->child[i]);
        for (int64_t t = 0; t < count; t++) y.v[(from + t) * node->n + i] = all.v[at++];
    }
}
static const tv *band_join(ip *p, const lop_node *node) {
    const tv *all = ip_eval(p, node->child[0]);
    for (int i = 1; all && i < node->n; i++) all = join(p, node, all, ip_eval(p, node->child[i]));
    return all ? ip_zip(p, node, all, NULL, 2, node->attr.i[3], node->n, do_band) : NULL;
}

/* The sum over the place of x of g times conj(x), which stands behind or (attr.i[0]) before. */
static void do_partial(ip *p, const lop_node *node, mv y, mv g, mv x) {
    const bool first = node->attr.i[0] != 0;
    for (int64_t i = 0; i < g.m; i++)
        for (int64_t j = 0; j < g.n; j++) {
            const int64_t r = first ? i / y.m : i % x.m, c = first ? j / y.n : j % x.n,
                          at = first ? i % y.m : i / x.m, to = first ? j % y.n : j / x.n;
            val v = x.v[r * x.n + c];
            v.im = -v.im;
            y.v[at * y.n + to] = ip_add(p, y.v[at * y.n + to], ip_mul(p, g.v[i * g.n + j], v));
        }
}

/* -- generators: by all paths p_i a_{i-1} ... a_{j+1} q_j from column j to row i */

static val conjugated(val v) {
    v.im = -v.im;
    return v;
}
typedef struct paths {
    int64_t J;
    bool full;
    const val *p, *q, *a;
    val *s, *t; /* n + 1 rows: states that come from q_j, and those that go to p_i */
} paths;
static int64_t number_at(const paths *w, int64_t x, int64_t z) {
    return w->full ? x * w->J + z : x;
}
static const val *numbers_of(const paths *w, int64_t k) {
    return w->a + k * (w->full ? w->J * w->J : w->J);
}
/* to = a_k from, or with its transpose. */
static void moved(ip *p, const paths *w, int64_t k, bool turned, const val *from, val *to) {
    for (int64_t x = 0; x < w->J; x++) {
        val sum = {0};
        for (int64_t z = w->full ? 0 : x; z < (w->full ? w->J : x + 1); z++) {
            const int64_t at = turned ? number_at(w, z, x) : number_at(w, x, z);
            sum = ip_add(p, sum, ip_mul(p, numbers_of(w, k)[at], from[z]));
        }
        to[x] = sum;
    }
}
/* y += by conj(v) */
static void count_in(ip *p, val *y, val by, val v) {
    *y = ip_add(p, *y, ip_mul(p, by, conjugated(v)));
}
/* What the element `by` at (i, j) says of all that its path goes by. */
static void one_path(ip *p, const paths *w, int64_t n, int64_t i, int64_t j, val by, val *y) {
    const int64_t J = w->J;
    memcpy(w->s + (j + 1) * J, w->q + j * J, (size_t)J * sizeof *w->s);
    memcpy(w->t + i * J, w->p + i * J, (size_t)J * sizeof *w->t);
    for (int64_t k = j + 1; k < i; k++) moved(p, w, k, false, w->s + k * J, w->s + (k + 1) * J);
    for (int64_t k = i - 1; k > j; k--) moved(p, w, k, true, w->t + (k + 1) * J, w->t + k * J);
    for (int64_t x = 0; x < J; x++) {
        count_in(p, &y[i * J + x], by, w->s[i * J + x]);
        count_in(p, &y[(n + j) * J + x], by, w->t[(j + 1) * J + x]);
    }
    for (int64_t k = j + 1; k < i; k++) {
        val *to = y + 2 * n * J + (numbers_of(w, k) - w->a);
        for (int64_t x = 0; x < J; x++)
            for (int64_t z = w->full ? 0 : x; z < (w->full ? J : x + 1); z++)
                count_in(p, &to[number_at(w, x, z)], by,
                         ip_mul(p, w->t[(k + 1) * J + x], w->s[k * J + z]));
    }
}
/* held: p, q and a, one behind the other */
static void do_generators(ip *p, const lop_node *node, mv y, mv g, mv held) {
    const lop_node *first = node->child[node->n - 3], *last = node->child[node->n - 1];
    const lop_shape none = {.ndim = 0};
    const int64_t n = g.m, J = lop_cols(first);
    const tv *s = ip_blank(p, &none, 2, n + 1, J), *t = ip_blank(p, &none, 2, n + 1, J);
    if (!s || !t) return;
    const paths w = {J,   lop_cols(last) != J, held.v, held.v + n * J, held.v + 2 * n * J, s->v,
                     t->v};
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j + 1; i < n; i++) {
            const val own = g.v[i * n + j];
            one_path(p, &w, n, i, j, node->attr.i[0] ? ip_add(p, own, g.v[j * n + i]) : own, y.v);
        }
}
static const tv *generator_sums(ip *p, const lop_node *node, const tv *g) {
    const tv *held = g ? ip_eval(p, node->child[node->n - 3]) : NULL;
    for (int k = 2; held && k > 0; k--)
        held = join(p, node, held, ip_eval(p, node->child[node->n - k]));
    return held ? ip_zip(p, node, g, held, 1, held->m, 1, do_generators) : NULL;
}

/* p or q of op_weighted_sums.c as it is defined; a: x, then w. */
static void do_weights(ip *p, const lop_node *node, mv y, mv a, mv g) {
    const int64_t n = g.m;
    const val zero = {0};
    val f = zero;
    for (int64_t k = 0; k < n; k++) {
        val by = zero;
        for (int64_t i = 0; i < n; i++) {
            val less = g.v[i];
            less.re = -less.re, less.im = -less.im;
            if (i >= k) by = ip_add(p, by, g.v[i]);
            if (i >= n - k) by = ip_add(p, by, less);
        }
        by = ip_quotient(by, a.v[0]);
        const val x = ip_mul(p, by, a.v[k]), w = ip_mul(p, by, a.v[2 * n - 1 - k]);
        f = ip_add(p, f, ip_mul(p, w, a.v[k]));
        if (node->attr.i[0])
            y.v[n - 1 - k] = x;
        else
            y.v[k] = w;
    }
    f = ip_quotient(f, a.v[0]);
    f.re = -f.re, f.im = -f.im;
    if (!node->attr.i[0]) y.v[0] = ip_add(p, y.v[0], f);
}
static const tv *weights(ip *p, const lop_node *node) {
    const tv *x = ip_eval(p, node->child[0]), *w = ip_eval(p, node->child[1]),
             *g = ip_eval(p, node->child[2]);
    return x && w && g ? ip_zip(p, node, join(p, node, x, w), g, 2, x->m, 1, do_weights) : NULL;
}

/* op_displaced.c as it is defined: weights from row i on. */
static void do_displaced(ip *p, const lop_node *node, mv y, mv a, mv w) {
    const int64_t how = node->attr.i[0], n = a.m;
    const bool all = how == LOP_DISPLACED_BY_ALL,
               down = how == LOP_DISPLACED_BY_ROW_ABOVE || how == LOP_DISPLACED_ON;
    for (int64_t i = all ? 0 : 1; i < n; i++) { /* between rows i - 1 and i */
        val by = {0};
        for (int64_t l = all ? 0 : i; w.v && l < n; l++) by = ip_add(p, by, w.v[l]);
        for (int64_t j = 0; j < a.n; j++) {
            const val x = a.v[(all || !down ? i : i - 1) * a.n + j];
            y.v[(all || down ? i : i - 1) * a.n + j] = w.v ? ip_mul(p, by, x) : x;
        }
    }
}
static void do_displaced_diagonal(ip *p, const lop_node *node, mv y, mv a, mv gh) {
    const int64_t k = gh.m / (2 * a.m);
    val d = a.v[0];
    (void)node;
    for (int64_t i = 0; i < a.m; i++) {
        for (int64_t j = 0; i > 0 && j < k; j++) {
            val part = ip_mul(p, gh.v[i * k + j], gh.v[(a.m + i - 1) * k + j]);
            part.re = -part.re, part.im = -part.im;
            d = ip_add(p, d, part);
        }
        y.v[i] = d;
    }
}
static const tv *displaced(ip *p, const lop_node *node) {
    const tv *a = ip_eval(p, node->child[0]);
    if (!strcmp(node->op->name, "displaced_diagonal")) {
        const tv *g = ip_eval(p, node->child[1]), *h = ip_eval(p, node->child[2]);
        return a && g && h
                   ? ip_zip(p, node, a, join(p, node, g, h), 1, a->m, 1, do_displaced_diagonal)
                   : NULL;
    }
    const tv *w = node->n > 1 ? ip_eval(p, node->child[1]) : NULL;
    return a && (w || node->n == 1) ? ip_zip(p, node, a, w, 2, a->m, a->n, do_displaced) : NULL;
}

bool ip_is_projection(const char *s) {
    if (strstr(s, "generator_sums") || strstr(s, "quasi_between") ||
        !strcmp(s, "quasi_inverse_sums"))
        return true;
    if (!strcmp(s, "band_join") || strstr(s, "kron_partial")) return true;
    return strstr(s, "diagonal_sums") || strstr(s, "entry_sums") ||
           !strcmp(s, "toeplitz_inverse_sums") || !strcmp(s, "toeplitz_between_sums") ||
           strstr(s, "toeplitz_weight") || strstr(s, "displaced") || !strcmp(s, "sparseentries");
}
const tv *ip_projection(ip *p, const lop_node *node) {
    const char *s = node->op->name;
    const int64_t count = node->shape.dim[node->shape.ndim - 1];
    if (!strcmp(s, "band_join")) return band_join(p, node);
    if (strstr(s, "entry_sums")) return entry_sums(p, node);
    if (!strcmp(s, "sparseentries")) return ip_eval(p, node->child[3]);
    if (!strcmp(s, "quasi_inverse_sums") || strstr(s, "quasi_between"))
        return ip_eval(p, node->child[node->n - 1]);
    if (!strcmp(s, "displaced_checked")) return ip_eval(p, node->child[0]);
    if (strstr(s, "displaced")) return displaced(p, node);
    if (!strcmp(s, "toeplitz_weights")) return weights(p, node);
    if (!strcmp(s, "toeplitz_weighted_sums")) {
        const tv *x = ip_eval(p, node->child[1]); /* whose first number is divided by */
        return x ? ip_eval(p, node->child[x->v[0].re == 0 && x->v[0].im == 0 ? 7 : 0]) : NULL;
    }
    if (!strcmp(s, "toeplitz_inverse_sums") || !strcmp(s, "toeplitz_between_sums"))
        return ip_eval(p, node->child[node->n - 1]); /* by definition */
    const tv *a = ip_eval(p, node->child[0]),
             *b = a && node->n > 1 ? ip_eval(p, node->child[1]) : a;
    if (!a || !b) return NULL;
    if (!strcmp(s, "generator_sums")) return generator_sums(p, node, a);
    if (!strcmp(s, "pair_generator_sums"))
        return generator_sums(p, node, ip_zip(p, node, a, b, 2, a->m, b->n, do_product));
    if (strstr(s, "kron_partial"))
        return ip_zip(p, node, a, b, 2, a->m / b->m, a->n / b->n, do_partial);
    if (!strcmp(s, "pair_diagonal_sums")) return pair_sums(p, node, a, b);
    if (!strcmp(s, "line_diagonal_sums")) return ip_zip(p, node, a, NULL, 1, count, 1, do_line);
    if (!strcmp(s, "toeplitz_diagonal_sums"))
        return ip_zip(p, node, a, b, 1, count, 1, do_constant);
    return sums(p, node, a);
}
