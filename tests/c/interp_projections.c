/* interp_projections.c: what gradients read off an operator, entry by entry, as it is defined. */
#include "interp.h"

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

bool ip_is_projection(const char *s) {
    return strstr(s, "diagonal_sums") || !strcmp(s, "toeplitz_inverse_sums");
}
const tv *ip_projection(ip *p, const lop_node *node) {
    const char *s = node->op->name;
    const int64_t count = node->shape.dim[node->shape.ndim - 1];
    if (!strcmp(s, "toeplitz_inverse_sums")) return ip_eval(p, node->child[4]); /* by definition */
    const tv *a = ip_eval(p, node->child[0]),
             *b = a && node->n > 1 ? ip_eval(p, node->child[1]) : a;
    if (!a || !b) return NULL;
    if (!strcmp(s, "pair_diagonal_sums")) return pair_sums(p, node, a, b);
    if (!strcmp(s, "line_diagonal_sums")) return ip_zip(p, node, a, NULL, 1, count, 1, do_line);
    if (!strcmp(s, "toeplitz_diagonal_sums"))
        return ip_zip(p, node, a, b, 1, count, 1, do_constant);
    return sums(p, node, a);
}
