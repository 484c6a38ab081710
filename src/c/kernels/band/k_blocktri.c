/* k_blocktri.c: see k_blocktri.h.
 *
 * With D, L, U the blocks on the diagonal, below and above it (Golub and Van Loan, 4.5.1):
 *
 *   S_0 = D_0,   W_k = S_k^-1 U_k,   S_k+1 = D_k+1 - L_k W_k
 *
 * S_k by LU with row exchanges. Rows are not exchanged between blocks, so the backward error of
 * what is solved by it is some u (max |S| + max |L|) (1 + max |W|) (Demmel, Higham and Schreiber
 * 1995, Stability of block LU factorization; here the transpose of theirs), which is measured.
 * Positive definite: S_k = R_k^H R_k by Cholesky, W_k = R_k^-H U_k, S_k+1 = D_k+1 - W_k^H W_k. */
#include "k_blocktri.h"

#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_by_divisions.h"
#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* The bits of a mode, as node.h has them. */
enum { PLAIN = 0, TURNED = 1, BAR = 2 };

/* Growth of the factors beside |A| up to which no solution is checked. */
static const double SOUND = 32;

static int64_t size_of(lop_dtype dt) { return (int64_t)lop_dtype_size(dt); }

/* Block number k of those at p, in C order; the other way round; in Fortran's order. */
static lop_mat block(const void *p, const lopk_blocktri *A, int64_t k) {
    return (lop_mat){
        (char *)(uintptr_t)p + k * A->b * A->b * size_of(A->dt), A->b, A->b, A->b, 1, A->dt};
}
static lop_mat flip(const lop_mat *a) { return (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt}; }
static lop_mat columns(void *p, const lopk_blocktri *A, int64_t k) {
    const lop_mat a = block(p, A, k);
    return flip(&a);
}

/* Block (i, j) of op(A); *conjugate: its conjugate is meant. False: it is zero. */
static bool piece(const lopk_blocktri *A, int mode, int64_t i, int64_t j, lop_mat *out,
                  bool *conjugate) {
    const bool turned = (mode & TURNED) != 0;
    const int64_t r = turned ? j : i, c = turned ? i : j;
    *conjugate = (mode & BAR) != 0;
    if (r == c) {
        *out = block(A->d, A, r);
    } else if (r == c + 1) {
        *out = block(A->low, A, c);
    } else if (c == r + 1 && A->up) {
        *out = block(A->up, A, r);
    } else if (c == r + 1) {
        const lop_mat below = block(A->low, A, r);
        *out = flip(&below);
        *conjugate = !*conjugate;
    } else {
        return false;
    }
    if (turned) *out = flip(out);
    return true;
}
static void move(const lop_mat *y, const lop_mat *x, bool conjugate) {
    if (conjugate)
        lopk_conj(y, x);
    else
        lopk_copy(y, x);
}
/* Rows of block k of x. */
static lop_mat rows(const lop_mat *x, int64_t b, int64_t k) {
    return (lop_mat){(char *)x->p + k * b * x->rs * size_of(x->dt), b, x->n, x->rs, x->cs, x->dt};
}

/* The blocks on or next to the diagonal of op(A), from block (row, col) on. */
typedef struct line_args {
    const void *p;
    int64_t rs, cs, row, col, count;
    bool conj, more;
} line_args;

static inline void grow(double *most, double x) { /* NaN stays */
    if (!(x <= *most)) *most = x;
}

#define LOPK_TEMPLATE "kernels/band/k_blocktri_per_dtype.h"
#include "kernels/common/k_each.h"

typedef void (*line_fn)(int64_t b, const line_args *g, const lop_mat *y, const lop_mat *x);
static const line_fn line_mm[LOP_NDTYPE] = {
    line_mm_b8,  line_mm_i8,  line_mm_u8,  line_mm_i16, line_mm_u16, line_mm_i32, line_mm_u32,
    line_mm_i64, line_mm_u64, line_mm_f32, line_mm_f64, line_mm_c64, line_mm_c128};

static void small_mm(const lop_mat *y, const lopk_blocktri *A, int mode, const lop_mat *x) {
    static const int64_t off[3] = {0, -1, 1}; /* column less row */
    for (int i = 0; i < 3; i++) {
        const int64_t row = off[i] < 0, col = off[i] > 0;
        lop_mat a;
        bool conjugate;
        if (A->N <= row + col) continue;
        (void)piece(A, mode, row, col, &a, &conjugate);
        const line_args g = {a.p, a.rs, a.cs, row, col, A->N - row - col, conjugate, i > 0};
        line_mm[A->dt](A->b, &g, y, x);
    }
}

/* Multiplications in a block and its columns up to which a call takes longer than they do (up to 4
 * rows, 16 columns); measured
 * 2026-11-22 on an AMD EPYC (Zen 3), one thread. */
enum { SMALL = 50 };

void lopk_blocktri_mm(const lop_mat *y, const lopk_blocktri *A, int mode, const lop_mat *x) {
    const int64_t b = A->b;
    const bool small = b <= 4 ? x->n <= 16 : b <= SMALL && x->n <= SMALL && b * b * x->n <= SMALL;
    if (!lop_is_blas(A->dt) || small) {
        small_mm(y, A, mode, x);
        return;
    }
    for (int64_t i = 0; i < A->N; i++) {
        const lop_mat yi = rows(y, A->b, i);
        for (int64_t j = i > 0 ? i - 1 : 0, first = j; j <= i + 1 && j < A->N; j++) {
            const lop_mat xj = rows(x, A->b, j);
            lop_mat a;
            bool conjugate;
            if (!piece(A, mode, i, j, &a, &conjugate)) continue;
            lopk_gemm(&yi, &a, conjugate, &xj, j > first);
        }
    }
}

void lopk_blocktri_dense(const lop_mat *y, const lopk_blocktri *A) {
    lopk_zero(y);
    for (int64_t i = 0; i < A->N; i++)
        for (int64_t j = i > 0 ? i - 1 : 0; j <= i + 1 && j < A->N; j++) {
            const int64_t at = (i * y->rs + j * y->cs) * A->b * size_of(y->dt);
            const lop_mat to = {(char *)y->p + at, A->b, A->b, y->rs, y->cs, y->dt};
            lop_mat a;
            bool conjugate;
            if (piece(A, PLAIN, i, j, &a, &conjugate)) move(&to, &a, conjugate);
        }
}

void lopk_blocktri_band(const lop_mat *ab, const lopk_blocktri *A) {
    const int64_t b = A->b;
    lopk_zero(ab);
    for (int64_t i = 0; i < A->N; i++)
        for (int64_t j = i > 0 ? i - 1 : 0; j <= i + 1 && j < A->N; j++) {
            lop_mat a;
            bool conjugate;
            if (!piece(A, PLAIN, i, j, &a, &conjugate)) continue;
            for (int64_t c = 0; c < b; c++) {
                const int64_t row = 2 * b - 1 + (i - j) * b - c,
                              at = row * ab->rs + (j * b + c) * ab->cs;
                const lop_mat to = {(char *)ab->p + at * size_of(ab->dt), b, 1, ab->rs, 1, ab->dt},
                              from = {(char *)a.p + c * a.cs * size_of(a.dt), b, 1, a.rs, 1, a.dt};
                move(&to, &from, conjugate);
            }
        }
}

void lopk_blocktri_part(const lop_mat *y, const lopk_blocktri *A, int64_t i, int64_t j) {
    const int64_t b = A->b;
    for (int64_t t = 0; t < y->m;) {
        const int64_t r = (i + t) % b, c = (j + t) % b, most = b - (r > c ? r : c),
                      count = most < y->m - t ? most : y->m - t;
        lop_mat a, to = {(char *)y->p + t * y->rs * size_of(y->dt), count, 1, y->rs, 1, y->dt};
        bool conjugate;
        if (piece(A, PLAIN, (i + t) / b, (j + t) / b, &a, &conjugate)) {
            const lop_mat from = {(char *)a.p + (r * a.rs + c * a.cs) * size_of(a.dt),
                                  count,
                                  1,
                                  a.rs + a.cs,
                                  1,
                                  a.dt};
            move(&to, &from, conjugate);
        } else {
            lopk_zero(&to);
        }
        t += count;
    }
}

void lopk_blocktri_plus(const lop_mat *d, int64_t b, const lop_mat *v) {
    for (int64_t k = 0; b > 0 && k < v->m / b; k++) {
        const lop_mat to = {(char *)d->p + k * b * b * d->rs * size_of(d->dt),
                            b,
                            1,
                            (b + 1) * d->rs,
                            1,
                            d->dt},
                      from = {(char *)v->p + k * b * v->rs * size_of(v->dt), b, 1, v->rs, 1, v->dt};
        lopk_add(&to, &to, &from);
    }
}

/* ---- the factor: what is known of it, S, W, the exchanges ---- */

typedef struct head {
    int64_t state;
    double norm, norm_t, near;
    int64_t positive;
} head;
enum { HEAD = 64 };

static size_t round_up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
static size_t blocks_bytes(int64_t N, int64_t b, lop_dtype dt) {
    return round_up((size_t)N * (size_t)b * (size_t)b * lop_dtype_size(dt));
}
static size_t exchanges_bytes(int64_t N, int64_t b) {
    return round_up((size_t)N * (size_t)b * sizeof(int64_t));
}
size_t lopk_blocktri_factor_bytes(int64_t N, int64_t b, lop_dtype dt) {
    return HEAD + 2 * blocks_bytes(N, b, dt) + exchanges_bytes(N, b) + (size_t)b * 8;
}
static lop_mat S_of(const void *factor, const lopk_blocktri *A, int64_t k) {
    return columns((char *)(uintptr_t)factor + HEAD, A, k);
}
static lop_mat W_of(const void *factor, const lopk_blocktri *A, int64_t k) {
    return columns((char *)(uintptr_t)factor + HEAD + blocks_bytes(A->N, A->b, A->dt), A, k);
}
static int64_t *exchanges(const void *factor, const lopk_blocktri *A, int64_t k) {
    char *p = (char *)(uintptr_t)factor + HEAD + 2 * blocks_bytes(A->N, A->b, A->dt);
    return (int64_t *)(void *)p + k * A->b;
}
int lopk_blocktri_state(const void *factor) { return (int)((const head *)factor)->state; }
bool lopk_blocktri_is_positive(const void *factor) { return ((const head *)factor)->positive != 0; }
double lopk_blocktri_norm(const void *factor, bool trans) {
    return trans ? ((const head *)factor)->norm_t : ((const head *)factor)->norm;
}

double lopk_blocktri_near(const void *factor) { return ((const head *)factor)->near; }

/* The largest sums of moduli of the rows and columns of a block in C order (columns and rows of one
 * in Fortran's); of complex numbers the sum of their parts. */
static void sums_of(const lop_mat *a, double *sum, double *rows, double *columns) {
    if (a->dt == LOP_f32)
        sums_f32(a->m, a->p, sum, rows, columns);
    else if (a->dt == LOP_f64)
        sums_f64(a->m, a->p, sum, rows, columns);
    else if (a->dt == LOP_c64)
        sums_c64(a->m, a->p, sum, rows, columns);
    else
        sums_c128(a->m, a->p, sum, rows, columns);
}

/* y -= a^H a, its lower triangle, in panels. */
static bool less_gram(const lop_mat *y, const lop_mat *a) {
    const int64_t n = y->n, eighth = (n + 7) / 8, many = n < 64 ? n : eighth < 48 ? 48 : eighth;
    for (int64_t i = 0; i < n; i += many) {
        const int64_t to = n < i + many ? n : i + many;
        const lop_mat
            at = {(char *)a->p + i * a->cs * size_of(a->dt), to - i, a->m, a->cs, a->rs, a->dt},
            left = {a->p, a->m, to, a->rs, a->cs, a->dt},
            out = {(char *)y->p + i * y->rs * size_of(y->dt), to - i, to, y->rs, y->cs, y->dt};
        if (!lopk_gemm_add(&out, -1, &at, true, &left)) return false;
    }
    return true;
}

static bool factor_positive(void *factor, const lopk_blocktri *A) {
    for (int64_t k = 0; k < A->N; k++) {
        const lop_mat S = S_of(factor, A, k), D = block(A->d, A, k);
        int64_t info;
        lopk_copy(&S, &D);
        if (k > 0) {
            const lop_mat W = W_of(factor, A, k - 1), before = S_of(factor, A, k - 1),
                          low = block(A->low, A, k - 1), up = flip(&low);
            lopk_conj(&W, &up);
            if (lopk_trsm(&before, true, false, 'N', &W) != LOP_OK || !less_gram(&S, &W))
                return false;
        }
        if (lopk_potrf(&S, &info) != LOP_OK) return false;
    }
    return true;
}

/* Rows' sums: the largest of S, W and L. */
typedef struct sizes {
    double S, W, low, other;
} sizes;

static bool factor_general(void *factor, const lopk_blocktri *A, head *h, sizes *most) {
    double *sum = (void *)((char *)exchanges(factor, A, 0) + exchanges_bytes(A->N, A->b));
    for (int64_t k = 0; k < A->N; k++) {
        const lop_mat S = S_of(factor, A, k), D = block(A->d, A, k);
        int64_t info;
        lopk_copy(&S, &D);
        sums_of(&D, sum, &h->norm, &h->norm_t);
        if (k > 0) {
            const lop_mat W = W_of(factor, A, k - 1), low = block(A->low, A, k - 1);
            if (!lopk_gemm_add(&S, -1, &low, false, &W)) return false;
            sums_of(&W, sum, &most->other, &most->W);
            sums_of(&low, sum, &most->low, &h->norm_t);
        }
        sums_of(&S, sum, &most->other, &most->S);
        if (lopk_getrf(&S, exchanges(factor, A, k), &info) != LOP_OK || lopk_lu_is_spoilt(&S))
            return false;
        if (k + 1 < A->N) {
            const lop_mat W = W_of(factor, A, k);
            lop_mat up;
            bool conjugate;
            (void)piece(A, PLAIN, k, k + 1, &up, &conjugate);
            move(&W, &up, conjugate);
            sums_of(&W, sum, &h->norm_t, &h->norm);
            if (lopk_getrs(&S, exchanges(factor, A, k), 'N', &W) != LOP_OK) return false;
        }
    }
    grow(&h->norm, most->low);
    return true;
}

/* The range of the pivots. */
static void range_of(const void *factor, const lopk_blocktri *A, bool positive, head *h) {
    double least = INFINITY, most = 0;
    for (int64_t k = 0; k < A->N; k++) {
        const lop_mat S = S_of(factor, A, k);
        for (int64_t i = 0; i < A->b; i++) {
            const double size = cabs(lop_get(S.dt, S.p, i * (S.rs + S.cs)));
            if (!(size >= least)) least = size;
            grow(&most, size);
        }
    }
    h->near = lopk_range_ratio(least, most);
    if (!positive) return;
    h->near *= h->near;
    h->norm = h->norm_t = most * most;
}

void lopk_blocktri_factor(void *factor, const lopk_blocktri *A, bool positive) {
    head h = {LOPK_BLOCKTRI_SOUND, 0, 0, 1, positive};
    sizes most = {0, 0, 0, 0};
    const bool done = positive ? factor_positive(factor, A) : factor_general(factor, A, &h, &most);
    const double grown = (most.S + most.low) * (1 + most.W),
                 modulus = lop_is_complex(A->dt) ? sqrt(0.5) : 1; /* at least, beside its parts */
    h.norm *= modulus;
    h.norm_t *= modulus;
    const double norm = h.norm;
    if (done) range_of(factor, A, positive, &h);
    if (!done || !isfinite(grown)) {
        h.state = LOPK_BLOCKTRI_FAILED;
    } else if (grown > SOUND * norm) {
        h.state = LOPK_BLOCKTRI_GROWN;
        h.near = 1;
    }
    memcpy(factor, &h, sizeof h);
}

void lopk_blocktri_pivots(const void *factor, const lopk_blocktri *A, int64_t k, lop_mat *pivots,
                          bool *odd) {
    const int64_t *ipiv = exchanges(factor, A, k);
    *pivots = S_of(factor, A, k);
    pivots->rs += pivots->cs;
    pivots->n = 1;
    *odd = false;
    for (int64_t i = 0; i < A->b; i++) *odd ^= ipiv[i] != i + 1;
}

/* x -= op(a) y. */
static bool less(const lop_mat *x, const lop_mat *a, bool conjugate, const lop_mat *y, void *t) {
    if (x->n > 1) return lopk_gemm_add(x, -1, a, conjugate, y);
    const lop_mat product = {t, x->m, 1, 1, x->m, x->dt};
    lopk_gemm(&product, a, conjugate, y, false);
    lopk_sub(x, x, &product);
    return true;
}

/* What solves with a diagonal block. */
static lop_status with_block(const void *factor, const lopk_blocktri *A, bool positive, int64_t k,
                             char trans, const lop_mat *x) {
    const lop_mat S = S_of(factor, A, k);
    return positive ? lopk_trsm(&S, true, false, trans, x)
                    : lopk_getrs(&S, exchanges(factor, A, k), trans, x);
}

/* One way down and one back. Of A = L U the blocks of L's diagonal are divided by on the way
 * through L; of a transpose that is the way back. */
lop_status lopk_blocktri_solve(const void *factor, const lopk_blocktri *A, bool positive, int mode,
                               const lop_mat *x, void *t) {
    const bool turned = !positive && (mode & TURNED) != 0, bar = mode == (TURNED | BAR);
    const char back = positive || bar ? 'C' : 'T';
    lop_status st = LOP_OK;
    for (int64_t k = 0; st == LOP_OK && k < A->N; k++) {
        const lop_mat xk = rows(x, A->b, k);
        if (k > 0) {
            const lop_mat before = rows(x, A->b, k - 1), W = W_of(factor, A, k - 1),
                          left = positive || turned ? flip(&W) : block(A->low, A, k - 1);
            if (!less(&xk, &left, positive || bar, &before, t)) return LOP_OVERFLOW;
        }
        if (!turned) st = with_block(factor, A, positive, k, 'N', &xk);
    }
    for (int64_t k = A->N - 1; st == LOP_OK && k >= 0; k--) {
        const lop_mat xk = rows(x, A->b, k);
        if (k + 1 < A->N) {
            const lop_mat after = rows(x, A->b, k + 1), low = block(A->low, A, k),
                          right = turned ? flip(&low) : W_of(factor, A, k);
            if (!less(&xk, &right, turned && bar, &after, t)) return LOP_OVERFLOW;
        }
        if (positive || turned) st = with_block(factor, A, positive, k, back, &xk);
    }
    return st;
}

/* ---- entries of the inverse: from the last block to the first, with Z = A^-1,
 *
 *   Z[k, k+1] = -W Z[k+1, k+1],   Z[k+1, k] = -Z[k+1, k+1] G,   G = L_k S_k^-1,
 *   Z[k, k] = S_k^-1 + W Z[k+1, k+1] G
 *
 * (Takahashi's recurrence by blocks; of a Cholesky factor R_k^-1 W_k for W, and G = W^H). */

size_t lopk_blocktri_inverse_bytes(int64_t b, lop_dtype dt) { return 4 * blocks_bytes(1, b, dt); }

/* T <- S_k^-1, W <- W_k or R_k^-1 W_k, Gt <- G^T (in general) or conj(W) (positive). */
static lop_status terms(const void *factor, const lopk_blocktri *A, bool positive, int64_t k,
                        const lop_mat *T, const lop_mat *W, const lop_mat *Gt) {
    const lop_mat S = S_of(factor, A, k);
    lop_status st = LOP_OK;
    int64_t info;
    if (k + 1 < A->N) {
        const lop_mat was = W_of(factor, A, k), low = block(A->low, A, k), up = flip(&low);
        lopk_copy(W, &was);
        if (positive) {
            st = lopk_trsm(&S, true, false, 'C', W);
            lopk_conj(Gt, W);
        } else {
            lopk_copy(Gt, &up);
            st = lopk_getrs(&S, exchanges(factor, A, k), 'T', Gt);
        }
    }
    if (st != LOP_OK) return st;
    if (!positive) return lopk_inverse_of_lu(&S, exchanges(factor, A, k), 'N', T);
    lopk_copy(T, &S);
    return lopk_potri(T, &info);
}

/* sum[r] += a[r, :] x[:, r], size[r] likewise of moduli. */
#define ROWS_BY_COLUMNS(T, modulus)                                                                \
    for (int64_t r = 0; r < b; r++)                                                                \
        for (int64_t c = 0; c < b; c++) {                                                          \
            const T p = ((const T *)a->p)[r * a->rs + c * a->cs] * ((const T *)x->p)[c * b + r];   \
            sum[r] += (double _Complex)p;                                                          \
            size[r] += (double)modulus(p);                                                         \
        }
static void rows_by_columns(double _Complex *sum, double *size, const lop_mat *a,
                            const lop_mat *x) {
    const int64_t b = a->m;
    switch (a->dt) {
    case LOP_f32: ROWS_BY_COLUMNS(float, fabsf) break;
    case LOP_f64: ROWS_BY_COLUMNS(double, fabs) break;
    case LOP_c64: ROWS_BY_COLUMNS(float _Complex, cabsf) break;
    default: ROWS_BY_COLUMNS(double _Complex, cabs)
    }
}

/* The diagonal of A Z against ones. */
static bool is_inverse(const lopk_blocktri *A, const lopk_blocktri *Z, char *work) {
    const int64_t b = A->b;
    const double u = A->dt == LOP_f32 || A->dt == LOP_c64 ? FLT_EPSILON : DBL_EPSILON,
                 most = 64 * u * sqrt((double)A->N * (double)b);
    const lop_mat up = {work, b, b, b, 1, A->dt};
    double _Complex *sum = (void *)(work + blocks_bytes(1, b, A->dt));
    double *size = (void *)(sum + b);
    for (int64_t k = 0; k < A->N; k++) {
        for (int64_t r = 0; r < b; r++) sum[r] = -1, size[r] = 0;
        for (int64_t j = k > 0 ? k - 1 : 0; j <= k + 1 && j < A->N; j++) {
            lop_mat a, z;
            bool conjugate;
            (void)piece(A, PLAIN, k, j, &a, &conjugate);
            if (conjugate) {
                lopk_conj(&up, &a);
                a = up;
            }
            (void)piece(Z, PLAIN, j, k, &z, &conjugate);
            rows_by_columns(sum, size, &a, &z);
        }
        for (int64_t r = 0; r < b; r++)
            if (!(cabs(sum[r]) <= most * size[r])) return false;
    }
    return true;
}

lop_status lopk_blocktri_inverse(void *to, const void *factor, const lopk_blocktri *A,
                                 bool positive, void *work) {
    const int64_t b = A->b, one = b * b * size_of(A->dt);
    const size_t step = blocks_bytes(1, b, A->dt);
    const lopk_blocktri Z = {
        A->N, b, A->dt, (char *)to + A->N * one, to, (char *)to + (2 * A->N - 1) * one};
    const lop_mat W = columns(work, A, 0), Gt = columns((char *)work + step, A, 0),
                  T = columns((char *)work + 2 * step, A, 0), G = flip(&Gt);
    if (lopk_blocktri_state(factor) != LOPK_BLOCKTRI_SOUND) return LOP_SINGULAR;
    for (int64_t k = A->N - 1; k >= 0; k--) {
        const lop_mat here = block(Z.d, A, k);
        lop_status st = terms(factor, A, positive, k, &T, &W, &Gt);
        if (st != LOP_OK) return st;
        lopk_copy(&here, &T);
        if (k + 1 == A->N) continue;
        const lop_mat after = block(Z.d, A, k + 1), up = block(Z.up, A, k),
                      low = block(Z.low, A, k);
        lopk_gemm(&up, &W, false, &after, false);
        lopk_gemm(&here, &up, false, &G, true);
        lopk_gemm(&low, &after, false, &G, false);
        lopk_scale(&up, -1, -1, &up);
        lopk_scale(&low, -1, -1, &low);
    }
    return is_inverse(A, &Z, work) ? LOP_OK : LOP_SINGULAR;
}

void lopk_blocktri_trace(const lop_mat *out, const lopk_blocktri *A, const lopk_blocktri *B,
                         void *work) {
    double _Complex sum = 0;
    for (int64_t k = 0; k < A->N; k++)
        for (int64_t j = k > 0 ? k - 1 : 0; j <= k + 1 && j < A->N; j++) {
            double _Complex term[1];
            const lop_mat one = {term, 1, 1, 1, 1, A->dt};
            lop_mat a, b, bar = columns(work, A, 0);
            bool conjugate;
            (void)piece(A, PLAIN, k, j, &a, &conjugate);
            (void)piece(B, TURNED, k, j, &b, &conjugate);
            if (conjugate) {
                lopk_conj(&bar, &b);
                b = bar;
            }
            lopk_dot(&one, &a, &b);
            sum += lop_get(A->dt, term, 0);
        }
    lop_set(A->dt, out->p, 0, sum);
}
