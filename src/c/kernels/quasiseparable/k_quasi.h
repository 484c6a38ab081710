/* k_quasi.h: quasi-separable matrices by their generators (k_quasi.c).
 *
 * A[i, j] = p_i^T a_{i-1} ... a_{j+1} q_j below the diagonal, d on it; above it the adjoint of what
 * lies below, or zeros (tri). p and q are n x J; a is n x J (diagonal transitions) or n x J^2 (full
 * ones, row by row). p_0, q_{n-1}, a_0 and a_{n-1} are not read. All four lie in C order and are
 * *borrowed*. Floats only; scratch is aligned to 64. */
#ifndef LOPK_QUASI_H
#define LOPK_QUASI_H

#include "base/buf.h"

typedef struct lopk_quasi {
    int64_t n, J;
    bool full, tri;
    lop_dtype dt; /* of d, p, q, a */
    const void *d, *p, *q, *a;
} lopk_quasi;

/* The sweeps of mode(A) x: downwards over what lies below the diagonal, upwards over its transpose;
 * which conjugate their generators. Of a Hermitian A the conjugate is the transpose. */
typedef struct lopk_quasi_sweeps {
    bool lower, upper, flip_lower, flip_upper;
} lopk_quasi_sweeps;
static inline lopk_quasi_sweeps lopk_quasi_sweeps_of(const lopk_quasi *g, int mode) {
    const bool t = (mode & 1) != 0, c = (mode & 2) != 0;
    return (lopk_quasi_sweeps){!g->tri || !t, !g->tri || t, g->tri ? c : t != c,
                               g->tri ? c : t == c};
}
/* y <- mode(A) x; all of g's dtype. y overlaps nothing. O(n J k), full transitions O(n J^2 k). */
size_t lopk_quasi_mm_scratch(int64_t J);
void lopk_quasi_mm(const lop_mat *y, const lopk_quasi *g, int mode, const lop_mat *x,
                   void *scratch);
/* y <- A. */
void lopk_quasi_dense(const lop_mat *y, const lopk_quasi *g, void *scratch);
/* y[t] <- the elements of diagonal k from its element `from` on. Each costs |k| steps. */
void lopk_quasi_diagonal(const lop_mat *y, const lopk_quasi *g, int64_t k, int64_t from,
                         void *scratch);

/* ---- solves with A = L D L^H; g->dt f64 or c128, tri false ---- */

size_t lopk_quasi_factor_bytes(int64_t n, int64_t J, lop_dtype dt);
size_t lopk_quasi_factor_scratch(int64_t n, int64_t J);
/* What is found lies in `factor`, that there is none too. */
void lopk_quasi_factor(void *factor, const lopk_quasi *g, void *scratch);
/* y <- A^-1 b, of `conj` its conjugate; b and y of any float dtype, real only where g is. Columns
 * are refined at most twice; LOP_SINGULAR where the backward error of one is not small then. */
size_t lopk_quasi_solve_scratch(int64_t n, int64_t J, int64_t k);
lop_status lopk_quasi_solve(const lop_mat *y, const void *factor, const lopk_quasi *g, bool conj,
                            const lop_mat *b, void *scratch) LOP_MUST_CHECK;
/* |A|_2 from below; the least pivot over the largest element of the diagonal, no less than the
 * reciprocal condition number of a definite A (1 of others). */
double lopk_quasi_norm(const void *factor);
double lopk_quasi_near(const void *factor);
/* The n pivots of a factor; NULL where they are not believed. */
const double *lopk_quasi_pivots(const void *factor);
/* y <- the diagonal of A^-1, by sums of squares. LOP_SINGULAR where A is not positive definite. */
lop_status lopk_quasi_invdiag(const lop_mat *y, const void *factor, const lopk_quasi *g,
                              void *scratch) LOP_MUST_CHECK;

/* ---- what a cotangent G says of generators, of what lies below its diagonal alone; g->dt f64 or
 * c128, g->d not read. out: as p, q and a, one after the other, dense. With that, the sum of
 * conj(G[i, j]) A[i, j] over i > j grows by Re sum(conj(out) da). mirrored: G + G^H is meant, where
 * all are real. ---- */

/* G = by left right, n x k times k x n; add: to what is there. O(n J k), with full transitions
 * O(n J^2 k). */
size_t lopk_quasi_pair_sums_scratch(int64_t n, int64_t J, int64_t k, lop_dtype dt);
/* Is each number found by one sweep? Then adding rounds as adding what is found elsewhere does:
 * whether two arguments are one memory changes no bit. */
bool lopk_quasi_pair_at_once(bool mirrored, const lop_mat *left, const lop_mat *right);
void lopk_quasi_pair_sums(void *out, const lopk_quasi *g, bool mirrored, double by, bool add,
                          const lop_mat *left, const lop_mat *right, void *scratch);
/* What is kept of the inverse of a Hermitian A of K states, from its factor: its part below the
 * diagonal is one of K states with full transitions. O(n K^3). */
size_t lopk_quasi_inverse_bytes(int64_t n, int64_t K, lop_dtype dt);
size_t lopk_quasi_inverse_scratch(int64_t K);
void lopk_quasi_inverse(void *kept, const void *factor, const lopk_quasi *A, void *scratch);
/* G = A^-1: O(n J K (J + K)). LOP_SINGULAR where A is not positive definite; *near: as of a factor.
 */
size_t lopk_quasi_inverse_sums_scratch(int64_t n, int64_t J, int64_t K, lop_dtype dt);
typedef lop_status lopk_quasi_sums(void *out, const void *kept, int64_t K, const lopk_quasi *g,
                                   bool mirrored, double *near, void *scratch);
lopk_quasi_sums lopk_quasi_inverse_sums LOP_MUST_CHECK;
/* Likewise for the generators of A itself, from its factor, of J^2 numbers a row in the scratch
 * that is of J = K: nothing of A^-1 is kept. */
lop_status lopk_quasi_own_sums(void *out, const void *factor, const lopk_quasi *A, bool mirrored,
                               double *near, void *scratch) LOP_MUST_CHECK;

/* What is kept of M = A^-1 Y A^-1, Y Hermitian of J states, from what is kept of A^-1: its diagonal
 * and its part below, of R states with full transitions. O(n R^2). Sums with G = M as those with
 * G = A^-1, scratch that of R states; its diagonal, y. */
int64_t lopk_quasi_between_states(int64_t K, int64_t J);
size_t lopk_quasi_between_bytes(int64_t n, int64_t R, lop_dtype dt);
size_t lopk_quasi_between_scratch(int64_t n, int64_t K, int64_t J);
void lopk_quasi_between(void *kept, const void *inverse_kept, int64_t K, const lopk_quasi *Y,
                        void *scratch);
lopk_quasi_sums lopk_quasi_between_sums LOP_MUST_CHECK;
lop_status lopk_quasi_between_diagonal(const lop_mat *y, const void *kept, lop_dtype dt,
                                       double *near) LOP_MUST_CHECK;

/* ---- solves with A = P L U of a band in which the states are unknowns (k_quasi_lu.c); as above,
 * for A that is not definite. A larger one does not fit: no call below takes it ---- */

#define LOPK_QUASI_UNIT 0x1p-53
#define LOPK_QUASI_GOOD (24 * LOPK_QUASI_UNIT)   /* backward error that needs no refinement */
#define LOPK_QUASI_ENOUGH (90 * LOPK_QUASI_UNIT) /* that is believed, or 10 n units */

bool lopk_quasi_lu_fits(int64_t n, int64_t J);
size_t lopk_quasi_lu_bytes(int64_t n, int64_t J, bool full, lop_dtype dt);
size_t lopk_quasi_lu_scratch(int64_t n, int64_t J); /* of all three */
lop_status lopk_quasi_lu_factor(void *lu, const lopk_quasi *g, void *scratch) LOP_MUST_CHECK;
/* As lopk_quasi_solve; LOP_RANK: pivot *pivot (from 1) of the band is exactly zero. Where A or b is
 * not finite, NaN. */
lop_status lopk_quasi_lu_solve(const lop_mat *y, const void *lu, const lopk_quasi *g, bool conj,
                               const lop_mat *b, int64_t *pivot, void *scratch) LOP_MUST_CHECK;
/* det A = 2^*twos times the product of *pivots, borrowed, negated where *odd. LOP_RANK: A is not
 * finite or a pivot is zero (is_zero); LOP_SINGULAR: not to be believed. */
lop_status lopk_quasi_lu_det(const void *lu, const lopk_quasi *g, lop_mat *pivots, bool *odd,
                             int64_t *twos, void *scratch) LOP_MUST_CHECK;
bool lopk_quasi_lu_is_zero(const void *lu);
double lopk_quasi_lu_norm(const void *lu); /* |A|_2 from below */
/* y <- the diagonal of A^-1, O(n J^3), and O(n J) times the elements found by solves, where the
 * band is ill-conditioned and A is not. LOP_RANK: pivot *pivot, from 1, is zero; LOP_SINGULAR: a
 * solve is not to be believed. */
size_t lopk_quasi_lu_invdiag_scratch(int64_t n, int64_t J, bool full, lop_dtype dt);
lop_status lopk_quasi_lu_invdiag(const lop_mat *y, const void *lu, const lopk_quasi *g,
                                 int64_t *pivot, void *scratch) LOP_MUST_CHECK;
/* |A|_2 from below; scratch as a factor's. */
double lopk_quasi_size(const lopk_quasi *g, void *scratch);

/* D and W (n x J) of A = L diag(D) L^H, L unit lower with generators p, W, a. LOP_SINGULAR: *where
 * is the first row whose pivot is not positive. */
lop_status lopk_quasi_ldl(double *D, void *W, const lopk_quasi *g, void *scratch,
                          int64_t *where) LOP_MUST_CHECK;

/* out[0] <- b^H A^-1 b of one vector b, out[1] <- log det A, in one pass that keeps nothing;
 * scratch as a factor's. LOP_SINGULAR where a pivot is not above 1e-6 of its diagonal element: to
 * be found by a checked solve then. */
lop_status lopk_quasi_quad(double *out, const lopk_quasi *g, const void *b,
                           void *scratch) LOP_MUST_CHECK;

/* What a likelihood gathers: b^H A^-1 b, det A = mantissa 2^exponent, the least D_i / d_i. */
typedef struct lopk_quasi_walk {
    double quad, mantissa, exponent, least;
} lopk_quasi_walk;
/* The recursion of 4 to 16 states (k_quasi_simd.c): the first row whose pivot is no number or 0
 * (positive: or negative), n: none. D and W, or b and *w, may be NULL. */
bool lopk_quasi_is_wide(const lopk_quasi *g);
int64_t lopk_quasi_wide(const lopk_quasi *g, bool positive, double *D, double *W, const double *b,
                        lopk_quasi_walk *w);

/* ---- y <- mode(A)^-1 b of a tri, by substitution; all of g's dtype, f64 or c128 ----
 * LOP_SINGULAR: element *where of d is exactly zero. */
lop_status lopk_quasi_substitute(const lop_mat *y, const lopk_quasi *g, int mode, const lop_mat *b,
                                 void *scratch, int64_t *where) LOP_MUST_CHECK;

/* ---- the generators of covariances at n times (k_quasi_covariance.c), float64 ----
 * d (n), p and q (n x J) and a, from numbers c: Matern of smoothness `which` + 1/2, 0 to 2 (J =
 * which + 1, full; c: variance, sqrt(2 which + 1) over the length scale), or one of these two, J =
 * 2. The first row whose time is not at or after the one before, n: none. */
enum {
    LOPK_QUASI_ROTATING = 3, /* diagonal; exp(-c[2] r) (c[0] cos(c[3] r) + c[1] sin(c[3] r)) */
    LOPK_QUASI_DAMPED        /* full; an oscillator of variance c[0] and decay c[3], c[1] twice its
                              * quality, c[2] = sqrt(|1 - c[1]^2|) */
};
int64_t lopk_quasi_covariance(int which, const double *c, int64_t n, const double *t, double *d,
                              double *p, double *q, double *a);
/* Of Matern functions of smoothness `order` + 1/2, from the n products x of a step and a rate: out
 * <- p (n x J) or a (moves: n x J^2), differentiated by x so many times; out (n) <- of each row the
 * inner product of that with g. g is not NULL. */
void lopk_quasi_matern_rows(int order, bool moves, int derivative, int64_t n, const double *x,
                            double *out);
void lopk_quasi_matern_sums(int order, bool moves, int derivative, int64_t n, const double *x,
                            const double *g, double *out);

/* ---- generators of sums and products (LOPK_QUASI_*): y from a (n x ja) and b (n x jb) ---- */
enum {
    LOPK_QUASI_BESIDE, /* [a b] */
    LOPK_QUASI_BLOCKS, /* transitions [a 0; 0 b], J^2 columns of y */
    LOPK_QUASI_PAIRS,  /* row by row a (x) b */
    LOPK_QUASI_KRONS   /* transitions a (x) b, J^2 columns of y */
};
/* ja and jb are the state dimensions of a and b; all of one float dtype, C order. */
void lopk_quasi_join(const lop_mat *y, int how, int64_t ja, const lop_mat *a, int64_t jb,
                     const lop_mat *b);

#endif
