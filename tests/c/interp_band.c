/* interp_band.c: permutations, offset diagonals, bands, triangles and the other small kinds, each
 * from its definition. One function a head: it fills one matrix (or vector) of the batch, which
 * comes zeroed, from the children's. */
#include "interp.h"

#include <math.h>
#include <string.h>

typedef void (*filler)(ip *p, const lop_node *node, mv y, const mv *c);

static val unit(void) { return (val){1, 1, 0, 1}; }
static val *at(mv y, int64_t i, int64_t j) { return &y.v[i * y.n + j]; }

static void permutation(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    (void)node;
    for (int64_t i = 0; i < y.m; i++) {
        int64_t j = (int64_t)c[0].v[i].i;
        *at(y, i, j < 0 ? j + y.n : j) = unit();
    }
}
static val number(int64_t i) {
    return (val){(uint64_t)i, (long double)i, 0, fabsl((long double)i)};
}
static void invperm(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    (void)node;
    for (int64_t i = 0; i < y.m; i++) {
        int64_t j = (int64_t)c[0].v[i].i;
        y.v[j < 0 ? j + y.m : j] = number(i);
    }
}
static void compose(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    (void)node;
    for (int64_t i = 0; i < y.m; i++) {
        int64_t j = (int64_t)c[1].v[i].i, k = (int64_t)c[0].v[j < 0 ? j + y.m : j].i;
        y.v[i] = number(k < 0 ? k + y.m : k);
    }
}

static void offdiag(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    int64_t k = node->attr.i[0];
    for (int64_t t = 0; t < c[0].m; t++)
        *at(y, t + (k < 0 ? -k : 0), t + (k > 0 ? k : 0)) = c[0].v[t];
}

static void tridiagonal(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    (void)node;
    for (int64_t i = 0; i < y.m; i++) {
        *at(y, i, i) = c[1].v[i];
        if (i + 1 < y.m) *at(y, i + 1, i) = c[0].v[i];
        if (i + 1 < y.m) *at(y, i, i + 1) = c[2].v[i];
    }
}
static void banded(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    int64_t l = node->attr.i[0], u = node->attr.i[1];
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++)
            if (i - j <= l && j - i <= u) *at(y, i, j) = *at(c[0], u + i - j, j);
}

static void triangular(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++)
            if (node->attr.i[0] ? i >= j : i <= j)
                *at(y, i, j) = i == j && node->attr.i[1] ? unit() : *at(c[0], i, j);
}
/* As (sparse_triangular_solve) has it: the elements of one triangle, those stored twice added. */
static void sparse_triangle(ip *p, const lop_node *node, mv y, const mv *c) {
    const int64_t *a = node->attr.i;
    for (int64_t line = 0; line < y.m; line++)
        for (int64_t q = (int64_t)c[2].v[line].i; q < (int64_t)c[2].v[line + 1].i; q++) {
            int64_t other = (int64_t)c[1].v[q].i, i = a[0] ? other : line, j = a[0] ? line : other;
            if (a[2] & 1 ? i >= j : i <= j) *at(y, i, j) = ip_add(p, *at(y, i, j), c[0].v[q]);
        }
    for (int64_t i = 0; i < y.m && a[2] & 2; i++) *at(y, i, i) = unit();
}
static void full(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)c;
    for (int64_t i = 0; i < y.m * y.n; i++) y.v[i] = ip_coef(p, &node->attr);
}
static void householder(ip *p, const lop_node *node, mv y, const mv *c) {
    val tau = {0}, sum = {0}, two = {2, 2, 0, 2}, minus = {p->bools ? 1 : ~(uint64_t)0, -1, 0, 1};
    for (int64_t i = 0; i < y.m; i++) {
        val h = c[0].v[i];
        h.im = -h.im;
        sum = ip_add(p, sum, ip_mul(p, c[0].v[i], h));
    }
    if (node->n > 1)
        tau = c[1].v[0];
    else if (y.m > 0)
        tau = ip_quotient(two, sum);
    if (node->n == 1 && y.m > 0 && sum.re == 0) p->singular = true; /* no direction */
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++) {
            val h = c[0].v[j];
            h.im = -h.im;
            h = ip_mul(p, ip_mul(p, minus, tau), ip_mul(p, c[0].v[i], h));
            *at(y, i, j) = i == j ? ip_add(p, unit(), h) : h;
        }
}

/* H_0 H_1 ... on the unit matrix, one reflection after the other from the right. */
static void reflections(ip *p, const lop_node *node, mv y, const mv *c) {
    enum { MOST = 64 };
    const val two = {2, 2, 0, 2}, minus = {0, -1, 0, 1};
    val t[MOST];
    (void)node;
    if (y.m > MOST) {
        p->why = "more rows than the interpreter reflects";
        return;
    }
    for (int64_t i = 0; i < y.m; i++) *at(y, i, i) = unit();
    for (int64_t j = 0; j < c[0].m; j++) {
        const int64_t w = c[0].n < y.m - j ? c[0].n : y.m - j;
        val sum = {0};
        for (int64_t i = 0; i < w; i++) {
            val h = *at(c[0], j, i);
            h.im = -h.im;
            sum = ip_add(p, sum, ip_mul(p, *at(c[0], j, i), h));
        }
        if (sum.re == 0) continue;
        for (int64_t r = 0; r < y.m; r++) { /* row r times v tau, less that times v^H */
            t[r] = (val){0};
            for (int64_t i = 0; i < w; i++)
                t[r] = ip_add(p, t[r], ip_mul(p, *at(y, r, j + i), *at(c[0], j, i)));
            t[r] = ip_mul(p, ip_mul(p, minus, ip_quotient(two, sum)), t[r]);
            for (int64_t i = 0; i < w; i++) {
                val h = *at(c[0], j, i);
                h.im = -h.im;
                *at(y, r, j + i) = ip_add(p, *at(y, r, j + i), ip_mul(p, t[r], h));
            }
        }
    }
}

/* Differences by repeated differencing: column j is what becomes of the j-th unit vector, on a line
 * long enough for whatever lies beyond the ends. */
static void difference(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)c;
    const int64_t *a = node->attr.i, order = a[1], n = a[0], pad = 2 * order + 4;
    const bool halves = a[2] == 2 && order % 2;
    enum { LONGEST = 400 };
    long double line[LONGEST];
    for (int64_t j = 0; j < n && n + 2 * pad <= LONGEST; j++) {
        for (int64_t t = 0; t < n + 2 * pad; t++) line[t] = 0;
        for (int64_t t = 0; t < n + 2 * pad; t++)
            if (t == j + pad || (a[3] == 2 && (t - pad - j) % n == 0)) line[t] = 1;
        for (int64_t d = 0; d < order; d++)
            for (int64_t t = 0; t + 1 < n + 2 * pad; t++) line[t] = line[t + 1] - line[t];
        for (int64_t i = 0; i < y.m; i++) { /* line[t] is the difference of points t to t + order */
            int64_t t = pad + i;
            if (a[3] && a[2] == 1) t -= order;
            if (a[3] && a[2] == 2) t -= halves ? (order + 1) / 2 : order / 2;
            long double v = halves ? (line[t] + line[t + 1]) / 2 : line[t];
            *at(y, i, j) = (val){(uint64_t)(int64_t)v, v, 0, fabsl(v)};
            if (p->bools) at(y, i, j)->i = v != 0;
        }
    }
}
static void laplacian(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)c;
    int64_t right = 1;
    for (int axis = node->n - 1; axis >= 0; axis--) {
        int64_t n = lop_rows(node->child[axis]);
        for (int64_t i = 0; i < y.m; i++)
            for (int step = -1; step <= 1; step += 2) { /* to either side, and what stays */
                int64_t at_axis = i / right % n, to = at_axis + step, j = i + step * right;
                if (node->attr.i[0] == 2 && to < 0) j = i + (n - 1) * right;
                if (node->attr.i[0] == 2 && to >= n) j = i - (n - 1) * right;
                bool inside = node->attr.i[0] == 2 || (to >= 0 && to < n);
                if (inside && j == i) continue; /* its own neighbour */
                val one = unit(), minus = {p->bools ? 1 : ~(uint64_t)0, -1, 0, 1};
                if (inside) *at(y, i, j) = ip_add(p, *at(y, i, j), one);
                if (inside || node->attr.i[0] == 0) *at(y, i, i) = ip_add(p, *at(y, i, i), minus);
            }
        right *= n;
    }
}

/* Element by element: p_i^T a_{i-1} ... a_{j+1} q_j from the right. */
static void quasiseparable(ip *p, const lop_node *node, mv y, const mv *c) {
    enum { STATES = 64 };
    const int64_t J = c[1].n;
    const bool full = c[3].n != J, tri = node->attr.i[0] != 0;
    if (J > STATES) {
        p->why = "more states than the interpreter holds";
        return;
    }
    for (int64_t i = 0; i < y.m; i++) {
        *at(y, i, i) = c[0].v[i];
        if (!tri) at(y, i, i)->im = 0;
        for (int64_t j = 0; j < i; j++) {
            val s[STATES] = {{0}}, t[STATES], sum = {0};
            for (int64_t l = 0; l < J; l++) s[l] = *at(c[2], j, l);
            for (int64_t r = j + 1; r < i; r++) {
                for (int64_t l = 0; l < J; l++) {
                    t[l] = (val){0};
                    for (int64_t k = 0; k < J; k++)
                        if (full || k == l)
                            t[l] = ip_add(p, t[l],
                                          ip_mul(p, *at(c[3], r, full ? l * J + k : l), s[k]));
                }
                memcpy(s, t, sizeof s);
            }
            for (int64_t l = 0; l < J; l++) sum = ip_add(p, sum, ip_mul(p, *at(c[1], i, l), s[l]));
            *at(y, i, j) = sum;
            sum.im = -sum.im;
            if (!tri) *at(y, j, i) = sum;
        }
    }
}
static void quasijoin(ip *p, const lop_node *node, mv y, const mv *c) {
    const int64_t *a = node->attr.i, J = a[0] % 2 && y.n ? (int64_t)sqrt((double)y.n) : y.n;
    const bool pairs = a[0] >= 2;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t r = 0; r < (a[0] % 2 ? J : 1); r++)
            for (int64_t l = 0; l < J; l++) {
                val part[2];
                bool there[2];
                for (int s = 0; s < 2; s++) {
                    const int64_t n = a[1 + s], before = s ? a[1] : 0,
                                  col = !pairs ? l - before
                                        : s    ? l % a[2]
                                               : l / a[2],
                                  row = !pairs ? r - before
                                        : s    ? r % a[2]
                                               : r / a[2];
                    const bool square = a[0] % 2 && c[s].n != n;
                    there[s] = col >= 0 && col < n && (a[0] % 2 == 0 || (row >= 0 && row < n));
                    part[s] = (val){0};
                    if (there[s] && (a[0] % 2 == 0 || square || row == col))
                        part[s] = *at(c[s], i, square ? row * n + col : col);
                }
                *at(y, i, a[0] % 2 ? r * J + l : l) = pairs      ? ip_mul(p, part[0], part[1])
                                                      : there[0] ? part[0]
                                                                 : part[1];
            }
}

/* Element (i, j) from the blocks below, on and above the diagonal, raveled. */
static void blocktridiagonal(ip *p, const lop_node *node, mv y, const mv *c) {
    const int64_t b = node->attr.i[0], n = y.m;
    (void)p;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            const int64_t r = i / b, s = j / b, k = r < s ? r : s;
            if (r - s > 1 || s - r > 1) continue;
            if (s <= r) {
                *at(y, i, j) = c[r == s].v[(k * b + i % b) * b + j % b];
            } else if (node->n > 2) {
                *at(y, i, j) = c[2].v[(k * b + i % b) * b + j % b];
            } else {
                *at(y, i, j) = c[0].v[(k * b + j % b) * b + i % b];
                at(y, i, j)->im = -at(y, i, j)->im;
            }
        }
}
static void blockband(ip *p, const lop_node *node, mv y, const mv *c) {
    lop_shape none = {0};
    const int64_t n = y.n, u = y.m / 2;
    const tv *a = ip_blank(p, &none, 2, n, n);
    blocktridiagonal(p, node, ip_part(a, &none, 0), c);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++)
            if (i - j <= u && j - i <= u) *at(y, u + i - j, j) = a->v[i * n + j];
}
static void blockplus(ip *p, const lop_node *node, mv y, const mv *c) {
    const int64_t b = node->attr.i[0];
    for (int64_t t = 0; t < y.m; t++) {
        const int64_t row = t / b, column = t % b;
        y.v[t] = row % b == column ? ip_add(p, c[0].v[t], c[1].v[row]) : c[0].v[t];
    }
}

/* y = mode(A)^-1 b with A from its filler. */
static void solved(ip *p, const lop_node *node, filler f, const mv *c, int64_t mode, mv b, mv y) {
    lop_shape none = {0};
    tv *a = ip_blank(p, &none, 2, b.m, b.m), *t = ip_blank(p, &none, 2, b.m, b.m),
       *x = ip_blank(p, &none, 2, b.m, b.n);
    f(p, node, ip_part(a, &none, 0), c);
    for (int64_t i = 0; i < b.m; i++)
        for (int64_t j = 0; j < b.m; j++) {
            val v = mode & LOP_T ? a->v[j * b.m + i] : a->v[i * b.m + j];
            if (mode & LOP_C) v.im = -v.im;
            t->v[i * b.m + j] = v;
        }
    memcpy(x->v, b.v, (size_t)(b.m * b.n) * sizeof *b.v);
    const tv *s = ip_solve(p, t, LOP_N, x);
    if (s) memcpy(y.v, s->v, (size_t)(b.m * b.n) * sizeof *b.v);
}
static void tridisolve(ip *p, const lop_node *node, mv y, const mv *c) {
    solved(p, node, tridiagonal, c, 0, c[3], y);
}
static void quasitri(ip *p, const lop_node *node, mv y, const mv *c) {
    const lop_attr tri = {.i = {1, 0, 0, 0}};
    lop_node like = {.attr = tri};
    solved(p, &like, quasiseparable, c, node->attr.i[0], c[4], y);
}
static void bandsolve(ip *p, const lop_node *node, mv y, const mv *c) {
    solved(p, node, banded, c, node->attr.i[3], c[1], y);
}

static void sparsetrisolve(ip *p, const lop_node *node, mv y, const mv *c) {
    solved(p, node, sparse_triangle, c, node->attr.i[1], c[3], y);
}

/* y = (det A, 0) with A, n x n, from its filler. */
static void det_of(ip *p, const lop_node *node, filler f, int64_t n, const mv *c, mv y) {
    lop_shape none = {0};
    tv *a = ip_blank(p, &none, 2, n, n);
    f(p, node, ip_part(a, &none, 0), c);
    y.v[0] = ip_determinant(a->v, n);
}
static void detperm(ip *p, const lop_node *node, mv y, const mv *c) {
    det_of(p, node, permutation, c[0].m, c, y);
}
static void dettri(ip *p, const lop_node *node, mv y, const mv *c) {
    det_of(p, node, tridiagonal, c[1].m, c, y);
}
static void detband(ip *p, const lop_node *node, mv y, const mv *c) {
    det_of(p, node, banded, c[0].n, c, y);
}
static void dethouse(ip *p, const lop_node *node, mv y, const mv *c) {
    det_of(p, node, householder, c[0].m, c, y);
}
static void detreflect(ip *p, const lop_node *node, mv y, const mv *c) {
    det_of(p, node, reflections, node->attr.i[0], c, y);
}
static void around(ip *p, const lop_node *node, mv y, const mv *c) {
    const lop_shape *s = &node->child[1]->shape;
    (void)p;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++) {
            int64_t from = 0, block = y.m, row = i, column = j;
            for (int l = 0; l < s->ndim; l++) {
                block /= s->dim[l];
                int64_t d = row / block - column / block;
                row %= block;
                column %= block;
                from += (d < 0 ? d + s->dim[l] : d) * block;
            }
            *at(y, i, j) = c[0].v[from];
        }
}
static void detcirc(ip *p, const lop_node *node, mv y, const mv *c) {
    det_of(p, node, around, c[0].m, c, y);
}
/* Neighbours on a grid, with zeros beyond its ends. */
static void grid(ip *p, const lop_node *node, mv y, const mv *c) {
    const lop_shape *s = &node->child[0]->shape;
    (void)p;
    (void)c;
    for (int64_t i = 0; i < y.m; i++) {
        int64_t right = 1;
        *at(y, i, i) = number(-2 * s->ndim);
        for (int l = s->ndim - 1; l >= 0; right *= s->dim[l], l--) {
            int64_t k = i / right % s->dim[l];
            if (k > 0) *at(y, i, i - right) = unit();
            if (k + 1 < s->dim[l]) *at(y, i, i + right) = unit();
        }
    }
}
static void detgrid(ip *p, const lop_node *node, mv y, const mv *c) {
    int64_t n = 1;
    for (int l = 0; l < node->child[0]->shape.ndim; l++) n *= node->child[0]->shape.dim[l];
    det_of(p, node, grid, n, c, y);
}

/* d^p, or d^p x row by row. */
static void diagpow(ip *p, const lop_node *node, mv y, const mv *c) {
    const val one = {1, 1, 0, 1};
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++) {
            val v = node->n > 1 ? c[1].v[i * y.n + j] : one;
            for (int64_t t = 0; t < node->attr.i[0]; t++) v = ip_mul(p, c[0].v[i], v);
            y.v[i * y.n + j] = v;
        }
}

/* Matrices one after the other, along the diagonal. */
static void of_rows(ip *p, const lop_node *node, mv y, const mv *c) {
    const int64_t g = node->attr.i[0], n = y.n / g, m = y.m / g;
    (void)p;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++)
            y.v[i * y.n + j] = m > 0 && n > 0 && i / m == j / n ? c[0].v[i * n + j % n] : (val){0};
}

/* The band of A from A E, columns w apart in one: ab[u + i - j, j] = A[i, j]. */
static void bandform(ip *p, const lop_node *node, mv y, const mv *c) {
    const int64_t u = node->attr.i[1];
    (void)p;
    for (int64_t r = 0; r < y.m; r++)
        for (int64_t j = 0; j < y.n; j++) {
            const int64_t i = j + r - u;
            y.v[r * y.n + j] = i < 0 || i >= y.n ? (val){0} : c[0].v[i * y.m + j % y.m];
        }
}

/* The order of points on a line, and the generators of Matern's functions of them. */
static void line_order(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    (void)node;
    for (int64_t i = 0; i < y.m; i++) {
        int64_t before = 0;
        for (int64_t j = 0; j < y.m; j++)
            before += c[0].v[j].re < c[0].v[i].re || (c[0].v[j].re == c[0].v[i].re && j < i);
        y.v[before] = number(i);
    }
}
static void line_generators(ip *p, const lop_node *node, mv y, const mv *c) {
    (void)p;
    const int64_t order = node->attr.i[0], which = node->attr.i[1], J = order + 1;
    int next = 2;
    const long double variance = node->attr.i[2] & 1 ? c[next++].v[0].re : 1,
                      length = node->attr.i[2] & 2 ? c[next++].v[0].re : 1,
                      rate = sqrtl(2 * (long double)order + 1) / length;
    for (int64_t i = 0; i < y.m; i++) {
        const int64_t at = (int64_t)c[1].v[i].i, was = i > 0 ? (int64_t)c[1].v[i - 1].i : at;
        const long double x = rate * (c[0].v[at].re - c[0].v[was].re), e = expl(-x),
                          jordan[3] = {e, e * x, e * x * x / 2};
        for (int64_t j = 0; j < y.n; j++) {
            const int64_t row = which == 3 ? j / J : 0, col = which == 3 ? j % J : j;
            long double v = variance;
            if (which == 2 && j == 2) v *= 2 / 3.0L;
            if (which == 1 || which == 3) v = col < row ? 0 : jordan[col - row];
            y.v[i * y.n + j] = (val){.re = v, .mag = fabsl(v) * (1 + x)};
        }
    }
}

static const struct {
    const char *name;
    filler fill;
} heads[] = {
#define HEAD(name) {#name, name}
    HEAD(permutation),
    {"inverse_permutation", invperm},
    HEAD(compose),
    HEAD(line_order),
    HEAD(line_generators),
    HEAD(offdiag),
    HEAD(tridiagonal),
    {"tridiagonal_solve", tridisolve},
    HEAD(banded),
    {"band_solve", bandsolve},
    {"band_from_products", bandform},
    {"blocks_of_rows", of_rows},
    HEAD(triangular),
    HEAD(full),
    HEAD(householder),
    HEAD(difference),
    HEAD(laplacian),
    {"permutation_det", detperm},
    {"triangular_det", dettri},
    HEAD(diagpow),
    {"banded_det", detband},
    {"householder_det", dethouse},
    HEAD(reflections),
    {"reflections_det", detreflect},
    {"circulant_det", detcirc},
    {"grid_det", detgrid},
    {"sparse_triangular_solve", sparsetrisolve},
    {"sparsetriangular", triangular},
    HEAD(quasiseparable),
    HEAD(quasijoin),
    HEAD(quasitri),
    HEAD(blocktridiagonal),
    HEAD(blockband),
    HEAD(blockplus),
#undef HEAD
};

static filler find(const char *name) {
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        if (!strcmp(heads[i].name, name)) return heads[i].fill;
    return NULL;
}
bool ip_band_knows(const char *name) { return find(name) != NULL; }

const tv *ip_band(ip *p, const lop_node *node) {
    enum { MOST = 6 };
    const tv *child[MOST] = {0};
    lop_shape batch = {0}, both;
    for (int i = 0; i < node->n && i < MOST; i++) {
        child[i] = ip_eval(p, node->child[i]);
        if (!child[i]) return NULL;
        if (node->child[i]->op == &lop_op_sizes) continue; /* its shape is no batch */
        if (!ip_broadcast(&batch, &child[i]->batch, &both)) {
            p->why = "batches do not broadcast";
            return NULL;
        }
        batch = both;
    }
    if (node->n == 0) {
        batch = node->shape;
        batch.ndim -= node->core;
    }
    int nb = node->shape.ndim - node->core;
    tv *y = ip_blank(p, &batch, node->core, node->shape.dim[nb],
                     node->core > 1 ? node->shape.dim[nb + 1] : 1);
    for (int64_t e = 0; e < y->nb; e++) {
        mv c[MOST] = {{0}};
        for (int i = 0; i < node->n && i < MOST; i++) c[i] = ip_part(child[i], &batch, e);
        find(node->op->name)(p, node, ip_part(y, &batch, e), c);
    }
    return y;
}
