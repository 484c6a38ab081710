/* k_kernel_gradient.c: see k_kernel_gradient.h. A block of rows and columns at a time: the kernel's
 * derivative by its argument, times G, and the moments of that. Sums are formed in eight parts, so
 * that they go into vectors; their order depends on sizes alone. Of a pair G is multiplied out by
 * panels, that stay in a core's cache. */
#include "k_kernel_gradient.h"
#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"
#include "kernels/dense/k_blas.h"

#include <math.h>
#include <string.h>

enum { HIGH = 16, WIDE = 512, PANEL = 64, ABREAST = 8 };

/* What is needed for one block: W = G k'(s), G f(s) where that is asked for, distances, points. */
typedef struct block {
    const lopk_kernel *k; /* as given */
    lopk_kernel slope;    /* whose matrix is the derivative, but for `c` */
    double c, v;
    int64_t rows, cols, d;
    double *w, *value, *far, *panel, *x, *y, *numbers, *plain;
    char *rest;
} block;

static size_t doubles(int64_t d) {
    return (size_t)((3 * HIGH + PANEL) * WIDE) + (size_t)(d * (HIGH + WIDE + 4)) + 2 * LOPK_WEIGHTS;
}
size_t lopk_kernel_gradient_scratch(int64_t d) {
    return doubles(d) * sizeof(double) + lopk_kernel_scratch(d, LOP_f64, HIGH, WIDE, 0) + 128;
}

/* The length of coordinate q, squared, its reciprocal. */
static double weight_of(const lopk_kernel *k, int64_t q) {
    const double *w = k->at + LOPK_WEIGHTS, power = w[k->x.n + q];
    return k->at[LOPK_ONE] * w[q] * power * power;
}

/* The kernel whose matrix is the derivative of k's function by s, times b->c; the variance stays.
 */
static void differentiate(block *b) {
    const lopk_kernel *k = b->k;
    const int64_t d = k->x.n;
    const double s = k->at[LOPK_SHAPE];
    double by = 1;
    memcpy(b->numbers, k->at, (size_t)(LOPK_WEIGHTS + 2 * d) * sizeof(double));
    b->slope = *k;
    b->slope.at = b->numbers;
    switch (k->word) {
    case LOPK_RBF:
    case LOPK_MATERN12: b->c = -0.5; break; /* the latter still over r */
    case LOPK_MATERN32:
        b->c = -1.5;
        b->slope.word = LOPK_MATERN12;
        by = 3;
        break;
    case LOPK_MATERN52:
        b->c = -5.0 / 6;
        b->slope.word = LOPK_MATERN32;
        by = 5.0 / 3;
        break;
    case LOPK_RATIONAL:
        b->c = -0.5;
        b->numbers[LOPK_SHAPE] = s + 1;
        by = (s + 1) / s;
        break;
    case LOPK_POLYNOMIAL:
        b->c = k->degree;
        b->slope.degree = k->degree > 0 ? k->degree - 1 : 0;
        break;
    case LOPK_LINEAR:
        b->c = 1;
        b->slope.word = LOPK_POLYNOMIAL;
        b->slope.degree = 0;
        break;
    default: b->c = 1; break; /* periodic: of its logarithm */
    }
    if (k->ard)
        for (int64_t q = 0; q < d; q++) b->numbers[LOPK_WEIGHTS + q] *= by;
    else
        b->numbers[LOPK_ONE] *= by;
}

static void open_block(block *b, const lopk_kernel *k, void *scratch) {
    double *at = (double *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    b->k = k;
    b->d = k->x.n;
    b->v = k->at[LOPK_VARIANCE];
    b->w = at;
    b->value = b->w + HIGH * WIDE;
    b->far = b->value + HIGH * WIDE;
    b->panel = b->far + HIGH * WIDE;
    b->x = b->panel + PANEL * WIDE;
    b->y = b->x + HIGH * b->d;
    b->numbers = b->y + WIDE * b->d;
    b->plain = b->numbers + LOPK_WEIGHTS + 2 * b->d;
    b->rest = (char *)(at + doubles(b->d));
    memcpy(b->plain, k->at, (size_t)(LOPK_WEIGHTS + 2 * b->d) * sizeof(double));
    b->plain[LOPK_VARIANCE] = 1;
    differentiate(b);
}

static lop_mat rows_of(const lop_mat *a, int64_t from, int64_t count) {
    lop_mat part = *a;
    part.p = (char *)a->p + from * a->rs * (int64_t)sizeof(double);
    part.m = count;
    return part;
}

static void matrix_of(const block *b, lopk_kernel k, int64_t i, int64_t j, double *to) {
    const lop_mat out = {to, b->rows, b->cols, WIDE, 1, LOP_f64};
    k.x = rows_of(&k.x, i, b->rows);
    k.y = rows_of(&k.y, j, b->cols);
    if (!lopk_kernel_dense(&out, &k, 1, NULL, b->rest)) memset(to, 0, sizeof *to); /* no team */
}

/* far[r, j] = sum over the coordinates of ((x - y) / l)^2. */
LOPK_CLONES static void distances(const block *b) {
    for (int64_t r = 0; r < b->rows; r++) {
        double *to = b->far + r * WIDE;
        memset(to, 0, (size_t)b->cols * sizeof(double));
        for (int64_t q = 0; q < b->d; q++) {
            const double x = b->x[r * b->d + q], w = weight_of(b->k, q);
            const double *y = b->y + q * WIDE;
            for (int64_t j = 0; j < b->cols; j++) to[j] += (x - y[j]) * w * (x - y[j]);
        }
    }
}

/* to[r, j] *= c g[r, j]; and over r, where `over`. */
LOPK_CLONES static void weigh(const block *b, double *to, double c, const lop_mat *g, bool over) {
    for (int64_t r = 0; r < b->rows; r++) {
        double *at = to + r * WIDE;
        const double *p = (const double *)g->p + r * g->rs, *far = b->far + r * WIDE;
        if (g->cs == 1)
            for (int64_t j = 0; j < b->cols; j++) at[j] *= c * p[j];
        else
            for (int64_t j = 0; j < b->cols; j++) at[j] *= c * p[j * g->cs];
        for (int64_t j = 0; over && j < b->cols; j++) at[j] = far[j] > 0 ? at[j] / sqrt(far[j]) : 0;
    }
}

/* Of rows i and columns j on, as many as b says, where the cotangent is g. */
static void fill_block(block *b, const lop_mat *g, int64_t i, int64_t j, bool value) {
    const lop_mat *x = &b->k->x, *y = &b->k->y;
    const bool over = b->k->word == LOPK_MATERN12;
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t q = 0; q < b->d; q++)
            b->x[r * b->d + q] = ((const double *)x->p)[(i + r) * x->rs + q * x->cs];
    for (int64_t q = 0; q < b->d; q++)
        for (int64_t c = 0; c < b->cols; c++)
            b->y[q * WIDE + c] = ((const double *)y->p)[(j + c) * y->rs + q * y->cs];
    if (over || (value && b->k->word == LOPK_RATIONAL)) distances(b);
    matrix_of(b, b->slope, i, j, b->w);
    weigh(b, b->w, b->c, g, over);
    if (!value) return;
    lopk_kernel plain = *b->k; /* without the variance */
    plain.at = b->plain;
    matrix_of(b, plain, i, j, b->value);
    weigh(b, b->value, 1, g, false);
}

/* The sum of w over a row of the block; of w (x - y)^2; of w (x - y); of w x y. */
enum { PLAIN, SQUARES, DIFFERENCES, PRODUCTS };
LOPK_CLONES static double moment(const double *w, const double *y, double x, int64_t n, int what) {
    double s[ABREAST] = {0}, sum = 0;
    int64_t j = 0;
#define ALL(term)                                                                                  \
    for (; j + ABREAST <= n; j += ABREAST)                                                         \
        for (int u = 0; u < ABREAST; u++) s[u] += (term);                                          \
    for (int u = 0; j < n; j++) sum += (term);
    if (what == PLAIN) {
        ALL(w[j + u])
    } else if (what == SQUARES) {
        ALL(w[j + u] * (x - y[j + u]) * (x - y[j + u]))
    } else if (what == DIFFERENCES) {
        ALL(w[j + u] * (x - y[j + u]))
    } else {
        ALL(w[j + u] * x * y[j + u])
    }
#undef ALL
    for (int u = 0; u < ABREAST; u++) sum += s[u];
    return sum;
}

/* -- numbers */

/* By the lengths and the period, of W = G k. */
static void periodic_sums(const block *b, int64_t lengths, double *out) {
    const double pi = 3.14159265358979323846, period = b->k->at[LOPK_SHAPE];
    for (int64_t q = 0; q < b->d; q++) {
        const double w = weight_of(b->k, q);
        double square = 0, turn = 0;
        for (int64_t r = 0; r < b->rows; r++)
            for (int64_t j = 0; j < b->cols; j++) {
                const double t = b->x[r * b->d + q] - b->y[q * WIDE + j],
                             one = sin(pi * t / period);
                square += b->w[r * WIDE + j] * one * one;
                turn += b->w[r * WIDE + j] * t * sin(2 * pi * t / period);
            }
        out[1 + (lengths > 1 ? q : 0)] += 4 * w * sqrt(w) * square;
        out[1 + lengths] += 2 * pi * w / (period * period) * turn;
    }
}

/* By alpha: k (-log z + (z - 1) / z), z = 1 + s / (2 alpha). */
static double rational_sum(const block *b) {
    const double alpha = b->k->at[LOPK_SHAPE];
    double sum = 0;
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t j = 0; j < b->cols; j++) {
            const double t = b->far[r * WIDE + j] / (2 * alpha);
            sum += b->value[r * WIDE + j] * (t / (1 + t) - log1p(t));
        }
    return sum;
}

static void block_sums(const block *b, int64_t lengths, double *out) {
    const bool dot = b->k->word >= LOPK_POLYNOMIAL;
    for (int64_t r = 0; r < b->rows; r++) {
        const double *w = b->w + r * WIDE;
        out[0] += moment(b->value + r * WIDE, NULL, 0, b->cols, PLAIN);
        if (b->k->word == LOPK_PERIODIC) continue;
        if (b->k->word == LOPK_POLYNOMIAL) out[1 + lengths] += moment(w, NULL, 0, b->cols, PLAIN);
        for (int64_t q = 0; q < b->d; q++) {
            const double at = weight_of(b->k, q), x = b->x[r * b->d + q];
            out[1 + (lengths > 1 ? q : 0)] -=
                2 * at * sqrt(at) *
                moment(w, b->y + q * WIDE, x, b->cols, dot ? PRODUCTS : SQUARES);
        }
    }
    if (b->k->word == LOPK_PERIODIC) periodic_sums(b, lengths, out);
    if (b->k->word == LOPK_RATIONAL) out[1 + lengths] += b->v * rational_sum(b);
}

/* -- points */

/* The derivative of s, or of the product, or of the periodic's logarithm, summed over the block. */
static double point_sum(const block *b, int64_t r, int64_t q) {
    const double pi = 3.14159265358979323846, at = weight_of(b->k, q), x = b->x[r * b->d + q],
                 *w = b->w + r * WIDE, *y = b->y + q * WIDE;
    if (b->k->word >= LOPK_POLYNOMIAL) return at * moment(w, y, 1, b->cols, PRODUCTS);
    if (b->k->word != LOPK_PERIODIC) return 2 * at * moment(w, y, x, b->cols, DIFFERENCES);
    const double period = b->k->at[LOPK_SHAPE];
    double sum = 0;
    for (int64_t j = 0; j < b->cols; j++) sum += w[j] * sin(2 * pi * (x - y[j]) / period);
    return -2 * pi / period * at * sum;
}

static void add_points(const block *b, int64_t i, const lop_mat *out) {
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t q = 0; q < b->d; q++)
            ((double *)out->p)[(i + r) * out->rs + q * out->cs] += point_sum(b, r, q);
}

/* -- the blocks of a cotangent */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Its rows i to i + PANEL of columns j to j + WIDE, where it is a pair: multiplied out. */
static lop_mat panel_of(const block *b, const lopk_cotangent *g, int64_t i, int64_t j) {
    const int64_t m = least(PANEL, g->a.m - i), n = least(WIDE, g->b.n - j);
    const lop_mat made = {b->panel, m, n, n, 1, LOP_f64}, left = rows_of(&g->a, i, m);
    lop_mat right = g->b;
    right.p = (double *)g->b.p + j * g->b.cs;
    right.n = n;
    lopk_gemm(&made, &left, false, &right, false);
    return made;
}
/* Its square block at (i, i), where it is a diagonal. */
static lop_mat square_of(const block *b, const lopk_cotangent *g, int64_t i) {
    memset(b->panel, 0, (size_t)(HIGH * HIGH) * sizeof(double));
    for (int64_t r = 0; r < least(b->rows, b->cols); r++)
        b->panel[r * HIGH + r] = g->a.p ? ((const double *)g->a.p)[(i + r) * g->a.rs] : 1;
    return (lop_mat){b->panel, b->rows, b->cols, HIGH, 1, LOP_f64};
}

/* Adds what all blocks give to the numbers, or to the points. */
static void add_blocks(block *b, const lopk_cotangent *g, int64_t lengths, double *numbers,
                       const lop_mat *points) {
    const int64_t m = b->k->x.m, n = b->k->y.m, high = g->form == LOPK_BY_PAIR ? PANEL : HIGH,
                  wide = g->form == LOPK_BY_DIAGONAL ? HIGH : WIDE;
    for (int64_t top = 0; top < m; top += high)
        for (int64_t j = wide == HIGH ? top : 0; j < (wide == HIGH ? least(n, top + 1) : n);
             j += wide) {
            lop_mat all = g->a;
            if (g->form == LOPK_BY_PAIR) all = panel_of(b, g, top, j);
            for (int64_t i = top; i < least(top + high, m); i += HIGH) {
                b->rows = least(HIGH, m - i);
                b->cols = least(wide, n - j);
                lop_mat one = g->form == LOPK_BY_DIAGONAL ? square_of(b, g, i) : all;
                if (g->form == LOPK_BY_PAIR)
                    one = rows_of(&all, i - top, b->rows);
                else if (g->form == LOPK_BY_MATRIX)
                    one.p = (double *)all.p + i * all.rs + j * all.cs;
                fill_block(b, &one, i, j, numbers != NULL);
                if (numbers) block_sums(b, lengths, numbers);
                if (points) add_points(b, i, points);
            }
        }
}

void lopk_kernel_number_sums(const lopk_kernel *k, const lopk_cotangent *g, int64_t lengths,
                             double *out, void *scratch) {
    block b;
    if (lopk_kernel_line_sums(k, g, lengths, out)) return;
    open_block(&b, k, scratch);
    memset(out, 0, (size_t)(2 + lengths) * sizeof *out);
    add_blocks(&b, g, lengths, out, NULL);
}

static lop_mat turned_over(const lop_mat *a) {
    return (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt};
}
void lopk_kernel_point_sums(const lopk_kernel *k, const lopk_cotangent *g, bool of_y,
                            const lop_mat *out, void *scratch) {
    block b;
    lopk_kernel turned = *k;
    lopk_cotangent gt = *g;
    if (of_y) { /* k(x, y) = k(y, x) */
        turned.x = k->y;
        turned.y = k->x;
        if (g->form != LOPK_BY_DIAGONAL) gt.a = turned_over(&g->a);
        if (g->form == LOPK_BY_PAIR) {
            gt.a = turned_over(&g->b);
            gt.b = turned_over(&g->a);
        }
    }
    open_block(&b, &turned, scratch);
    lopk_zero(out);
    add_blocks(&b, &gt, 0, NULL, out);
}
