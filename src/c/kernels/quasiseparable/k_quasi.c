/* k_quasi.c: products, factors and solves of quasi-separable matrices in O(n).
 *
 * A product is two sweeps that carry J numbers a column: s <- a_i s + q_i x_i downwards, and its
 * transpose upwards. The factor is A = L D L^H, L unit lower with generators p, W, a:
 *   D_i = d_i - p_i^T S conj(p_i),  W_i = (q_i - a_i S conj(p_i)) / D_i,
 *   S <- a_i S a_i^H + D_i W_i W_i^H
 * (Eidelman and Gohberg 1999, Integral Equations Oper. Theory 34; Foreman-Mackey et al. 2017,
 * Astron. J. 154, for diagonal a; for covariances it is the Kalman filter's recursion). There are
 * no exchanges: that is stable for positive definite A; a solve is checked, refined at most twice,
 * and refused where its backward error stays large. Solves and factors are in double precision.
 * Cost: O(n J k) with diagonal transitions, O(n J^2 k) with full ones; a factor O(n J^2), O(n J^3).
 */
#include "k_quasi.h"

#include "kernels/dense/k_blas.h"
#include "k_quasi_unrolled.h"
#include "k_quasi_arithmetic.h"
#include "kernels/common/kernels.h"

#include <string.h>

enum { ROUNDS = 2 }; /* refinements */
#define UNIT LOPK_QUASI_UNIT
#define GOOD LOPK_QUASI_GOOD
#define ENOUGH LOPK_QUASI_ENOUGH

static size_t room(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
/* Few states have gradient loops of known sizes, whose states stand in registers. */
enum { FEW = 9, MORE = 16 };
static int key(const lopk_quasi *g) { return g->J <= 4 ? 2 * (int)g->J + g->full : 0; }
/* Columns at once, of `wide` in the loops below. */
static int at_once(const lopk_quasi *g, int wide, int64_t left) {
    return left < wide || (lop_is_complex(g->dt) && lopk_quasi_is_few(g)) ? 1 : wide;
}
/* Is the one the other's transpose, in the same memory? */
static bool turned_alike(const lop_mat *a, const lop_mat *b) {
    return a->p == b->p && a->cs == b->rs && a->rs == b->cs;
}
/* What stands before D and W in a factor. */
typedef struct head {
    double found, definite, trusted, largest, least;
} head;
static double *pivots_at(const void *factor) {
    return (double *)(uintptr_t)((const char *)factor + room(sizeof(head)));
}
static void *w_at(const void *factor, int64_t n) {
    return (char *)pivots_at(factor) + room((size_t)n * sizeof(double));
}

#define DT f32
#define EL float
#define WIDE 8
#define CJ(c, v) ((void)(c), (v))
#define RE(v) (v)
#include "k_quasi_per_dtype.h"
#undef DT
#undef EL
#undef WIDE
#define DT f64
#define EL double
#define WIDE 8
#define IM(v) (0.0)
#define REAL true
#include "k_quasi_per_dtype.h"
#include "k_quasi_solve_per_dtype.h"
#include "k_quasi_sums_per_dtype.h"
#include "k_quasi_own_per_dtype.h"
#include "k_quasi_between_per_dtype.h"
#undef DT
#undef EL
#undef WIDE
#undef CJ
#undef RE
#undef IM
#undef REAL
#define DT c64
#define EL float _Complex
#define WIDE 4
#define CJ(c, v) ((c) ? conjf(v) : (v))
#define RE(v) crealf(v)
#include "k_quasi_per_dtype.h"
#undef DT
#undef EL
#undef CJ
#undef RE
#define DT c128
#define EL double _Complex
#define CJ(c, v) ((c) ? conj(v) : (v))
#define RE(v) creal(v)
#define IM(v) cimag(v)
#define REAL false
#include "k_quasi_per_dtype.h"
#include "k_quasi_solve_per_dtype.h"
#include "k_quasi_sums_per_dtype.h"
#include "k_quasi_own_per_dtype.h"
#include "k_quasi_between_per_dtype.h"

#define BY_FLOAT(dt, f, ...)                                                                       \
    ((dt) == LOP_f32   ? f##_f32(__VA_ARGS__)                                                      \
     : (dt) == LOP_f64 ? f##_f64(__VA_ARGS__)                                                      \
     : (dt) == LOP_c64 ? f##_c64(__VA_ARGS__)                                                      \
                       : f##_c128(__VA_ARGS__))
#define BY_DOUBLE(dt, f, ...) ((dt) == LOP_f64 ? f##_f64(__VA_ARGS__) : f##_c128(__VA_ARGS__))

/* Two states of eight columns, of complex ones four. */
size_t lopk_quasi_mm_scratch(int64_t J) { return room((size_t)J * 16 * 16); }
void lopk_quasi_mm(const lop_mat *y, const lopk_quasi *g, int mode, const lop_mat *x,
                   void *scratch) {
    LOP_ASSERT(y->dt == g->dt && x->dt == g->dt && y->m == g->n && x->m == g->n && x->n == y->n);
    if (g->n > 0) BY_FLOAT(g->dt, mm, y, g, mode, x, scratch);
}
void lopk_quasi_dense(const lop_mat *y, const lopk_quasi *g, void *scratch) {
    BY_FLOAT(g->dt, dense, y, g, scratch);
}
void lopk_quasi_diagonal(const lop_mat *y, const lopk_quasi *g, int64_t k, int64_t from,
                         void *scratch) {
    BY_FLOAT(g->dt, diagonal, y, g, k, from, scratch);
}
void lopk_quasi_join(const lop_mat *y, int how, int64_t ja, const lop_mat *a, int64_t jb,
                     const lop_mat *b) {
    BY_FLOAT(y->dt, join, y, how, ja, a, jb, b);
}

size_t lopk_quasi_factor_bytes(int64_t n, int64_t J, lop_dtype dt) {
    return room(sizeof(head)) + room((size_t)n * sizeof(double)) +
           room((size_t)n * (size_t)J * lop_dtype_size(dt));
}
static size_t states(int64_t J) { return room((3 * (size_t)J + 18) * (size_t)J * 16); }
size_t lopk_quasi_factor_scratch(int64_t n, int64_t J) {
    return room((size_t)n * 6 * 16) + states(J);
}
size_t lopk_quasi_solve_scratch(int64_t n, int64_t J, int64_t k) {
    return room((size_t)n * (k >= 8 ? 34 : k >= 4 ? 18 : 6) * 16) + states(J);
}

void lopk_quasi_factor(void *factor, const lopk_quasi *g, void *scratch) {
    head *h = factor;
    double *D = pivots_at(factor), least = INFINITY;
    void *W = w_at(factor, g->n);
    *h = (head){0, 0, 0, 0, 0};
    const int64_t where = BY_DOUBLE(g->dt, ldl, g, false, D, W, scratch);
    if (where < g->n) return;
    for (int64_t i = 0; i < g->n; i++) {
        const double d = g->dt == LOP_f64 ? ((const double *)g->d)[i]
                                          : creal(((const double _Complex *)g->d)[i]);
        least = D[i] < least ? D[i] : least;
        h->largest = fabs(d) > h->largest ? fabs(d) : h->largest;
    }
    h->found = 1;
    h->least = least;
    h->definite = least > 0;
    h->trusted = least > 0 || BY_DOUBLE(g->dt, trial, g, h, D, W, scratch);
}

lop_status lopk_quasi_solve(const lop_mat *y, const void *factor, const lopk_quasi *g, bool conj,
                            const lop_mat *b, void *scratch) {
    const head *h = factor;
    const double *D = pivots_at(factor);
    const void *W = w_at(factor, g->n);
    if (h->found == 0) return LOP_SINGULAR;
    if (g->n == 0 || y->n == 0) return LOP_OK;
    return BY_DOUBLE(g->dt, solve, y, g, h, D, W, conj, b, scratch) ? LOP_OK : LOP_SINGULAR;
}
double lopk_quasi_size(const lopk_quasi *g, void *scratch) {
    double most = 0;
    char *s = (char *)scratch + room((size_t)g->n * 2 * 16);
    for (int64_t i = 0; i < g->n; i++) {
        const double d = g->dt == LOP_f64 ? ((const double *)g->d)[i]
                                          : creal(((const double _Complex *)g->d)[i]);
        most = fmax(most, fabs(d));
    }
    return fmax(most, g->dt == LOP_f64
                          ? size_of_f64(g, 3, scratch, (double *)scratch + g->n, s)
                          : size_of_c128(g, 3, scratch, (double _Complex *)scratch + g->n, s));
}
double lopk_quasi_norm(const void *factor) { return ((const head *)factor)->largest; }
double lopk_quasi_near(const void *factor) {
    const head *h = factor;
    return h->definite != 0 ? lopk_range_ratio(h->least, h->largest) : 1;
}
const double *lopk_quasi_pivots(const void *factor) {
    const head *h = factor;
    return h->found != 0 && h->trusted != 0 ? pivots_at(factor) : NULL;
}
lop_status lopk_quasi_invdiag(const lop_mat *y, const void *factor, const lopk_quasi *g,
                              void *scratch) {
    const head *h = factor;
    const double *D = pivots_at(factor);
    const void *W = w_at(factor, g->n);
    if (h->definite == 0) return LOP_SINGULAR;
    BY_DOUBLE(g->dt, invdiag, y->p, y->rs, g, D, W, scratch);
    return LOP_OK;
}
/* Of the states at all rows and of what moves them. */
static size_t sums_scratch(int64_t n, int64_t J, int64_t k, lop_dtype dt) {
    const int64_t most = J > k ? J : k;
    return room((size_t)((n + 3) * J * k + 5 * most * most + most) * lop_dtype_size(dt));
}
bool lopk_quasi_pair_at_once(bool mirrored, const lop_mat *left, const lop_mat *right) {
    const int64_t k = left->n;
    return (k == 1 || k == 2 || k == 8) && (!mirrored || turned_alike(left, right));
}
size_t lopk_quasi_pair_sums_scratch(int64_t n, int64_t J, int64_t k, lop_dtype dt) {
    return sums_scratch(n, J, k < 8 ? (k < 2 ? 1 : 2) : 8, dt);
}
void lopk_quasi_pair_sums(void *out, const lopk_quasi *g, bool mirrored, double by, bool add,
                          const lop_mat *left, const lop_mat *right, void *scratch) {
    LOP_ASSERT(left->m == g->n && right->n == g->n && left->n == right->m);
    LOP_ASSERT(!mirrored || !lop_is_complex(g->dt));
    BY_DOUBLE(g->dt, pairs, out, g, mirrored, by, add, left, right, scratch);
}
/* What the inverse of one with K states is kept as: definite or not and how near it is to a
 * singular one; x, W, b and the diagonal e. */
typedef struct inverse {
    double definite, near;
} inverse;
static void *inverse_part(const void *kept, int64_t n, int64_t K, lop_dtype dt, int part) {
    const int64_t before = part == 0 ? 0 : part == 1 ? K : part == 2 ? 2 * K : (K + 2) * K;
    return (char *)(uintptr_t)kept + room(sizeof(inverse)) +
           (size_t)(n * before) * lop_dtype_size(dt);
}
size_t lopk_quasi_inverse_bytes(int64_t n, int64_t K, lop_dtype dt) {
    return room(sizeof(inverse)) + room((size_t)(n * ((K + 2) * K + 1)) * lop_dtype_size(dt));
}
size_t lopk_quasi_inverse_scratch(int64_t K) { return room((size_t)(2 * K * K) * 16); }
void lopk_quasi_inverse(void *kept, const void *factor, const lopk_quasi *A, void *scratch) {
    const head *h = factor;
    void *x = inverse_part(kept, A->n, A->J, A->dt, 0),
         *b = inverse_part(kept, A->n, A->J, A->dt, 2),
         *e = inverse_part(kept, A->n, A->J, A->dt, 3);
    *(inverse *)kept = (inverse){h->definite, lopk_quasi_near(factor)};
    if (h->definite == 0) return;
    const double *D = pivots_at(factor);
    void *W = w_at(factor, A->n);
    memcpy(inverse_part(kept, A->n, A->J, A->dt, 1), W,
           (size_t)(A->n * A->J) * lop_dtype_size(A->dt));
    BY_DOUBLE(A->dt, inverse, x, b, e, A, D, W, scratch);
}
size_t lopk_quasi_inverse_sums_scratch(int64_t n, int64_t J, int64_t K, lop_dtype dt) {
    return sums_scratch(n, J, K, dt);
}
lop_status lopk_quasi_inverse_sums(void *out, const void *kept, int64_t K, const lopk_quasi *g,
                                   bool mirrored, double *near, void *scratch) {
    const inverse *h = kept;
    void *x = inverse_part(kept, g->n, K, g->dt, 0), *W = inverse_part(kept, g->n, K, g->dt, 1),
         *b = inverse_part(kept, g->n, K, g->dt, 2);
    *near = h->near;
    if (h->definite == 0) return LOP_SINGULAR;
    BY_DOUBLE(g->dt, quasi_sums, out, K, x, W, b, g, mirrored, scratch);
    return LOP_OK;
}

lop_status lopk_quasi_own_sums(void *out, const void *factor, const lopk_quasi *A, bool mirrored,
                               double *near, void *scratch) {
    const head *h = factor;
    const double *D = pivots_at(factor);
    const void *W = w_at(factor, A->n);
    *near = lopk_quasi_near(factor);
    if (h->definite == 0) return LOP_SINGULAR;
    BY_DOUBLE(A->dt, own_sums, out, A, D, W, mirrored, scratch);
    return LOP_OK;
}

/* What is kept of A^-1 Y A^-1: whether there is an inverse, d, p, q, a. */
static void *product_part(const void *kept, int64_t n, int64_t R, lop_dtype dt, int part) {
    const int64_t before = part == 0 ? 0 : part == 1 ? 1 : part == 2 ? 1 + R : 1 + 2 * R;
    return (char *)(uintptr_t)kept + room(sizeof(inverse)) +
           (size_t)(n * before) * lop_dtype_size(dt);
}
int64_t lopk_quasi_between_states(int64_t K, int64_t J) { return 2 * K + J; }
size_t lopk_quasi_between_bytes(int64_t n, int64_t R, lop_dtype dt) {
    return room(sizeof(inverse)) + room((size_t)(n * (1 + (2 + R) * R)) * lop_dtype_size(dt));
}
size_t lopk_quasi_between_scratch(int64_t n, int64_t K, int64_t J) {
    return room((size_t)((n + 2) * J * K + 2 * K * K + J * J + 4 * K + J) * 16);
}
void lopk_quasi_between(void *kept, const void *inverse_kept, int64_t K, const lopk_quasi *Y,
                        void *scratch) {
    const int64_t R = lopk_quasi_between_states(K, Y->J);
    void *to[4], *from[4];
    for (int i = 0; i < 4; i++) {
        to[i] = product_part(kept, Y->n, R, Y->dt, i);
        from[i] = inverse_part(inverse_kept, Y->n, K, Y->dt, i);
    }
    *(inverse *)kept = *(const inverse *)inverse_kept;
    if (((const inverse *)kept)->definite == 0) return;
    BY_DOUBLE(Y->dt, between, to, from, K, Y, scratch);
}
lop_status lopk_quasi_between_sums(void *out, const void *kept, int64_t R, const lopk_quasi *g,
                                   bool mirrored, double *near, void *scratch) {
    const inverse *h = kept;
    void *p = product_part(kept, g->n, R, g->dt, 1), *q = product_part(kept, g->n, R, g->dt, 2),
         *a = product_part(kept, g->n, R, g->dt, 3);
    *near = h->near;
    if (h->definite == 0) return LOP_SINGULAR;
    BY_DOUBLE(g->dt, quasi_sums, out, R, p, q, a, g, mirrored, scratch);
    return LOP_OK;
}
lop_status lopk_quasi_between_diagonal(const lop_mat *y, const void *kept, lop_dtype dt,
                                       double *near) {
    const inverse *h = kept;
    const lop_mat d = {product_part(kept, y->m, 0, dt, 0), y->m, 1, 1, 1, dt};
    *near = h->near;
    if (h->definite == 0) return LOP_SINGULAR;
    lopk_copy(y, &d);
    return LOP_OK;
}

lop_status lopk_quasi_ldl(double *D, void *W, const lopk_quasi *g, void *scratch, int64_t *where) {
    *where = BY_DOUBLE(g->dt, ldl, g, true, D, W, scratch);
    return *where == g->n ? LOP_OK : LOP_SINGULAR;
}

lop_status lopk_quasi_quad(double *out, const lopk_quasi *g, const void *b, void *scratch) {
    const int64_t where = BY_DOUBLE(g->dt, quad, g, b, out, scratch);
    return where == g->n && out[2] >= LEAST ? LOP_OK : LOP_SINGULAR;
}

lop_status lopk_quasi_substitute(const lop_mat *y, const lopk_quasi *g, int mode, const lop_mat *b,
                                 void *scratch, int64_t *where) {
    lopk_copy(y, b);
    for (int64_t j = 0; j < y->n; j++) {
        void *column = (char *)y->p + j * y->cs * (int64_t)lop_dtype_size(y->dt);
        *where = BY_DOUBLE(g->dt, substitute, column, y->rs, g, (mode & 1) != 0, (mode & 2) != 0,
                           scratch);
        if (*where < g->n) return LOP_SINGULAR;
    }
    return LOP_OK;
}
