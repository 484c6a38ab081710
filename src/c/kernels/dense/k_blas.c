/* k_blas.c: products and triangular solves by BLAS (blas_table.h); k_lapack.c has the factors.
 *
 * A matrix with one unit stride is column-major or the transpose of a column-major one; CBLAS's
 * order and transpose flags cover every mix, so nothing is copied. With y column-major, a's
 * transpose flag is that of its own layout; with y row-major likewise in CblasRowMajor. Conjugation
 * without transposition is OpenBLAS's CblasConjNoTrans. Costs: 2 m n k flops (8 when complex).
 * Where the library's integers have 32 bits, products of larger sizes run our own loops. Thresholds
 * measured 2026-11. */
#include "blas_layout.h"
#include "blas_table.h"
#include "k_blas.h"
#include "k_small_gemm.h"
#include "k_tiny_gemm.h"
#include "kernels/common/kernels.h"
#include "kernels/kron/k_kron.h"

#include <complex.h>
#include <math.h>

enum { TINY = 12, ALONE = 1 << 18, EACH = 7 * 7 * 7 };

static const float one_f = 1, zero_f = 0;
static const double one_d = 1, zero_d = 0;
static const float _Complex one_c = 1, zero_c = 0;
static const double _Complex one_z = 1, zero_z = 0;

/* y (m) = beta y + op(a) x for a of m x n, order and flag given; x and y at strides. */
static void call_gemv(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE flag, const lop_mat *a,
                      int64_t ld, bool flipped, const void *x, int64_t incx, void *y, int64_t incy,
                      bool add) {
    const int64_t m = flipped ? a->n : a->m, n = flipped ? a->m : a->n;
    switch (a->dt) {
    case LOP_f32:
        BLAS(cblas_sgemv)(order, flag, m, n, one_f, a->p, ld, x, incx, add ? one_f : zero_f, y,
                          incy);
        break;
    case LOP_f64:
        BLAS(cblas_dgemv)(order, flag, m, n, one_d, a->p, ld, x, incx, add ? one_d : zero_d, y,
                          incy);
        break;
    case LOP_c64:
        BLAS(cblas_cgemv)(order, flag, m, n, &one_c, a->p, ld, x, incx, add ? &one_c : &zero_c, y,
                          incy);
        break;
    default:
        BLAS(cblas_zgemv)(order, flag, m, n, &one_z, a->p, ld, x, incx, add ? &one_z : &zero_z, y,
                          incy);
    }
}

/* n == 1. False when layouts are not BLAS's. */
static bool try_gemv(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                     bool accumulate) {
    const bool col = is_col(a), row = is_row(a);
    const int64_t incx = b->m <= 1 ? 1 : b->rs, incy = y->m <= 1 ? 1 : y->rs;
    if (!(col || row) || incx < 1 || incy < 1 || !lop_blas_fits(incx) || !lop_blas_fits(incy))
        return false;
    if (!accumulate) lopk_zero(y); /* gemv with beta 0 may scale NaN by 0 */
    if (conj_a) {                  /* ConjTrans of the stored transpose; ConjNoTrans otherwise */
        if (row)
            call_gemv(CblasColMajor, CblasConjTrans, a, ld_row(a), true, b->p, incx, y->p, incy,
                      true);
        else
            call_gemv(CblasColMajor, CblasConjNoTrans, a, ld_col(a), false, b->p, incx, y->p, incy,
                      true);
        return true;
    }
    if (col)
        call_gemv(CblasColMajor, CblasNoTrans, a, ld_col(a), false, b->p, incx, y->p, incy, true);
    else
        call_gemv(CblasColMajor, CblasTrans, a, ld_row(a), true, b->p, incx, y->p, incy, true);
    return true;
}

static void call_gemm(enum CBLAS_ORDER order, enum CBLAS_TRANSPOSE fa, enum CBLAS_TRANSPOSE fb,
                      const lop_mat *y, int64_t ldy, const lop_mat *a, int64_t lda,
                      const lop_mat *b, int64_t ldb, double _Complex alpha, bool add) {
    const int64_t m = y->m, n = y->n, k = a->n;
    const float _Complex alpha_c = (float _Complex)alpha;
    switch (y->dt) {
    case LOP_f32:
        BLAS(cblas_sgemm)(order, fa, fb, m, n, k, crealf(alpha_c), a->p, lda, b->p, ldb,
                          add ? one_f : zero_f, y->p, ldy);
        break;
    case LOP_f64:
        BLAS(cblas_dgemm)(order, fa, fb, m, n, k, creal(alpha), a->p, lda, b->p, ldb,
                          add ? one_d : zero_d, y->p, ldy);
        break;
    case LOP_c64:
        BLAS(cblas_cgemm)(order, fa, fb, m, n, k, &alpha_c, a->p, lda, b->p, ldb,
                          add ? &one_c : &zero_c, y->p, ldy);
        break;
    default:
        BLAS(cblas_zgemm)(order, fa, fb, m, n, k, &alpha, a->p, lda, b->p, ldb,
                          add ? &one_z : &zero_z, y->p, ldy);
    }
}

static bool try_gemm(const lop_mat *y, double _Complex alpha, const lop_mat *a, bool conj_a,
                     const lop_mat *b, bool accumulate) {
    const bool ycol = is_col(y), yrow = is_row(y);
    if (!(ycol || yrow) || !(is_col(a) || is_row(a)) || !(is_col(b) || is_row(b))) return false;
    const bool col = ycol; /* the order to call in */
    const bool a_plain = col ? is_col(a) : is_row(a), b_plain = col ? is_col(b) : is_row(b);
    const int64_t lda = (col == a_plain) ? ld_col(a) : ld_row(a),
                  ldb = (col == b_plain) ? ld_col(b) : ld_row(b);
    const enum CBLAS_TRANSPOSE fa = a_plain ? (conj_a ? CblasConjNoTrans : CblasNoTrans)
                                            : (conj_a ? CblasConjTrans : CblasTrans);
    call_gemm(col ? CblasColMajor : CblasRowMajor, fa, b_plain ? CblasNoTrans : CblasTrans, y,
              col ? ld_col(y) : ld_row(y), a, lda, b, ldb, alpha, accumulate);
    return true;
}

/* Two columns (or rows), and up to four in single precision, one after another: gemv reads the
 * matrix at the speed of the cache it lies in, where loops that serve all columns at once fill a
 * quarter of a vector. 300 x 300 times two takes 0.6 of their time in double, 0.3 in single
 * precision (2026-11, EPYC, benchmarks/thin.py). */
static bool vectors_suit(const lop_mat *y, const lop_mat *a, const lop_mat *b) {
    enum { LEAST = 1 << 15, CACHED = 12 << 20 }; /* bytes */
    const int64_t few = min_of(y->m, y->n);
    const lop_mat *large = y->m < y->n ? b : a;
    const bool single = y->dt == LOP_f32;
    if (few < 2 || few > (single ? 4 : 2) || lop_is_complex(y->dt) || b->p == y->p ||
        a->p == y->p || !fits(large) || !fits(y) || min_of(large->m, large->n) <= 4 * few)
        return false;
    const double bytes = (double)large->m * (double)large->n * (double)size_of(y->dt);
    return bytes >= LEAST && bytes <= CACHED;
}
/* OpenBLAS 0.3.31 multiplies up to a million terms without packing where it has loops for AVX-512
 * and nothing is transposed: 300 x 300 times two takes a third of what our own loops do, in double
 * and single precision; with 64 rows and columns as long (2026-11, EPYC, benchmarks/thin.py). */
static bool unpacked_suits(const lop_mat *y, const lop_mat *a, const lop_mat *b) {
    const int64_t few = min_of(y->m, y->n), many = y->m + y->n - few;
    const double work = (double)few * (double)many * (double)a->n;
    const bool rows = is_row(y) && is_row(a) && is_row(b),
               columns = is_col(y) && is_col(a) && is_col(b);
    return few >= 2 && few <= (y->dt == LOP_f32 ? 8 : 4) && !lop_is_complex(y->dt) &&
           b->p != y->p && a->p != y->p && many >= 64 && a->n >= 64 && work <= 1e6 &&
           (rows || columns) && fits(a) && fits(b) && fits(y) && lopk_blas_loops() == 2;
}
static bool by_vectors(const lop_mat *y, const lop_mat *a, const lop_mat *b, bool accumulate) {
    const bool rows = y->m < y->n;
    const lop_mat large = rows ? flip(b) : *a, thin = rows ? flip(a) : *b, to = rows ? flip(y) : *y;
    for (int64_t j = 0; j < to.n; j++) {
        const int64_t size = size_of(y->dt);
        const lop_mat yj = {(char *)to.p + j * to.cs * size, to.m, 1, to.rs, 1, to.dt},
                      bj = {(char *)thin.p + j * thin.cs * size, thin.m, 1, thin.rs, 1, to.dt};
        if (!try_gemv(&yj, &large, false, &bj, accumulate)) return false; /* the first, if any */
    }
    return true;
}

static void product(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                    bool accumulate) {
    if (unpacked_suits(y, a, b) && try_gemm(y, 1, a, conj_a, b, accumulate)) return;
    if (vectors_suit(y, a, b) && by_vectors(y, a, b, accumulate)) return;
    if (lopk_thin_suits(y, a, b, NULL) && lopk_thin_gemm(y, a, conj_a, b, accumulate, NULL)) return;
    if (lopk_small_suits(y, a, b, 1)) {
        lopk_small_gemm(y, 0, a, conj_a, b, 0, 1, accumulate);
        return;
    }
    if (a->n == 1 && lopk_rank_one(y, 1, a, b, accumulate ? y : NULL)) return;
    if (!fits(a) || !fits(y)) {
        lopk_matmul_loop(y, a, conj_a, b, accumulate);
        return;
    }
    if (y->n == 1 && (y->m > TINY || a->n > TINY)) {
        if (try_gemv(y, a, conj_a, b, accumulate)) return;
    } else if (y->m == 1 && !conj_a && (y->n > TINY || a->n > TINY)) {
        const lop_mat yt = flip(y), at = flip(a), bt = flip(b); /* y^T = b^T a^T */
        if (try_gemv(&yt, &bt, false, &at, accumulate)) return;
    } else if (y->m > TINY || y->n > TINY || a->n > TINY) {
        if (try_gemm(y, 1, a, conj_a, b, accumulate)) return;
    }
    lopk_matmul_loop(y, a, conj_a, b, accumulate);
}

bool lopk_gemm_parts(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                     bool accumulate, const lopk_team *team) {
    const bool thin =
        !unpacked_suits(y, a, b) && !vectors_suit(y, a, b) && lopk_thin_suits(y, a, b, team);
    if (thin) return lopk_thin_gemm(y, a, conj_a, b, accumulate, team);
    lopk_gemm(y, a, conj_a, b, accumulate);
    return true;
}

void lopk_gemm(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b, bool accumulate) {
    LOP_ASSERT(y->dt == a->dt && y->dt == b->dt && y->m == a->m && a->n == b->m && y->n == b->n);
    LOP_ASSERT(lop_is_blas(y->dt));
    conj_a = conj_a && lop_is_complex(a->dt);
    if (y->m == 0 || y->n == 0) return;
    if (a->n == 0) {
        if (!accumulate) lopk_zero(y);
        return;
    }
    product(y, a, conj_a, b, accumulate);
}

bool lopk_gemm_add(const lop_mat *y, double _Complex alpha, const lop_mat *a, bool conj_a,
                   const lop_mat *b) {
    LOP_ASSERT(y->dt == a->dt && y->dt == b->dt && y->m == a->m && a->n == b->m && y->n == b->n);
    LOP_ASSERT(lop_is_blas(y->dt) && (lop_is_complex(y->dt) || cimag(alpha) == 0));
    if (y->m == 0 || y->n == 0 || a->n == 0) return true;
    if (a->n == 1 && lopk_rank_one(y, creal(alpha), a, b, y)) return true;
    if (!fits(a) || !fits(y)) return false;
    return try_gemm(y, alpha, a, conj_a && lop_is_complex(a->dt), b, true);
}

void lopk_gemm_batch(const lop_mat *y, int64_t y_step, const lop_mat *a, bool conj_a,
                     const lop_mat *b, int64_t b_step, int64_t count) {
    if (lopk_kron_few(y, y_step, a, conj_a, b, b_step, count)) return;
    if (lopk_small_suits(y, a, b, count)) {
        lopk_small_gemm(y, y_step, a, conj_a, b, b_step, count, false);
        return;
    }
    lop_mat yy = *y, bb = *b;
    for (int64_t e = 0; e < count; e++) {
        lopk_gemm(&yy, a, conj_a, &bb, false);
        yy.p = (char *)yy.p + y_step * size_of(y->dt);
        bb.p = (char *)bb.p + b_step * size_of(b->dt);
    }
}

void lopk_gemm_each(const lop_mat *y, int64_t y_step, const lop_mat *a, int64_t a_step, bool conj_a,
                    const lop_mat *b, int64_t b_step, int64_t count) {
    const int64_t m = y->m, n = y->n, k = a->n;
    if (m <= LOPK_TINY && n <= LOPK_TINY && k <= LOPK_TINY && k > 0 && m * n * k <= EACH) {
        lopk_tiny_gemm(y, y_step, a, a_step, conj_a, b, b_step, count);
        return;
    }
    lop_mat yy = *y, aa = *a, bb = *b;
    for (int64_t e = 0; e < count; e++) {
        lopk_gemm(&yy, &aa, conj_a, &bb, false);
        yy.p = (char *)yy.p + y_step * size_of(y->dt);
        aa.p = (char *)aa.p + a_step * size_of(a->dt);
        bb.p = (char *)bb.p + b_step * size_of(b->dt);
    }
}

/* Which triangle syrk makes of U^H U. On two threads OpenBLAS 0.3.31 shares out the columns of the
 * lower one by columns better, which is the upper one by rows: 2000 x 200 takes 0.77 of one
 * thread's time, the other 0.86. On one thread that one is quicker by 3 % (2026-11, EPYC). */
bool lopk_gram_is_upper(bool col, int64_t n) { return !col && n >= 160 && lopk_threads() > 1; }

static void call_syrk(enum CBLAS_ORDER order, bool adjoint, const lop_mat *y, int64_t ldy,
                      const lop_mat *a, int64_t lda) {
    const int64_t n = y->n, k = a->m;
    const enum CBLAS_UPLO lo =
        lopk_gram_is_upper(order == CblasColMajor, n) ? CblasUpper : CblasLower;
    switch (y->dt) {
    case LOP_f32:
        BLAS(cblas_ssyrk)(order, lo, CblasTrans, n, k, one_f, a->p, lda, zero_f, y->p, ldy);
        break;
    case LOP_f64:
        BLAS(cblas_dsyrk)(order, lo, CblasTrans, n, k, one_d, a->p, lda, zero_d, y->p, ldy);
        break;
    case LOP_c64:
        if (adjoint)
            BLAS(cblas_cherk)(order, lo, CblasConjTrans, n, k, one_f, a->p, lda, zero_f, y->p, ldy);
        else
            BLAS(cblas_csyrk)(order, lo, CblasTrans, n, k, &one_c, a->p, lda, &zero_c, y->p, ldy);
        break;
    default:
        if (adjoint)
            BLAS(cblas_zherk)(order, lo, CblasConjTrans, n, k, one_d, a->p, lda, zero_d, y->p, ldy);
        else
            BLAS(cblas_zsyrk)(order, lo, CblasTrans, n, k, &one_z, a->p, lda, &zero_z, y->p, ldy);
    }
}

/* In blocks, for the cache. */
#define MIRROR(T, conjugate)                                                                       \
    for (int64_t ib = 0; ib < n; ib += 32)                                                         \
        for (int64_t jb = 0; jb <= ib; jb += 32)                                                   \
            for (int64_t i = ib; i < min_of(n, ib + 32); i++)                                      \
                for (int64_t j = jb; j < min_of(i + 1, jb + 32); j++) {                            \
                    T *from = (T *)p + i * r + j * c, *to = (T *)p + j * r + i * c, v = *from;     \
                    if (swap) *from = conjugate(v);                                                \
                    if (i != j) *to = adjoint && !swap ? conjugate(v) : v;                         \
                }
static inline float same_f(float v) { return v; }
static inline double same_d(double v) { return v; }
void lopk_mirror_triangle(void *p, int64_t n, int64_t r, int64_t c, lop_dtype dt, bool adjoint,
                          bool swap) {
    switch (dt) {
    case LOP_f32: MIRROR(float, same_f) break;
    case LOP_f64: MIRROR(double, same_d) break;
    case LOP_c64: MIRROR(float _Complex, conjf) break;
    default: MIRROR(double _Complex, conj)
    }
}
#undef MIRROR

/* Called in a's order; where y is in the other one the result comes out transposed, that is
 * conjugated. Below 64 columns the mirroring costs what the half saves (2026-11, EPYC). */
void lopk_gram(const lop_mat *y, const lop_mat *a, bool adjoint) {
    LOP_ASSERT(y->m == y->n && y->n == a->n && y->dt == a->dt && lop_is_blas(y->dt));
    adjoint = adjoint && lop_is_complex(y->dt);
    const bool col = is_col(a), ycol = is_col(y), small = y->n < 64 || a->m < 8;
    if (small || !fits(a) || !fits(y) || !(col || is_row(a)) || !(ycol || is_row(y))) {
        const lop_mat t = flip(a);
        lopk_gemm(y, &t, adjoint, a, false);
        return;
    }
    const int64_t ldy = ycol ? ld_col(y) : ld_row(y);
    call_syrk(col ? CblasColMajor : CblasRowMajor, adjoint, y, ldy, a, col ? ld_col(a) : ld_row(a));
    const bool from_columns = col || lopk_gram_is_upper(col, y->n);
    lopk_mirror_triangle(y->p, y->n, from_columns ? 1 : ldy, from_columns ? ldy : 1, y->dt, adjoint,
                         adjoint && col != ycol);
}

/* Panel by panel: rows of the result by what of the panel is not zero. */
void lopk_gram_triangle(const lop_mat *y, const lop_mat *a, bool adjoint, bool lower) {
    const int64_t n = y->n, size = (int64_t)lop_dtype_size(y->dt), eighth = (n + 7) / 8,
                  many = n < 64        ? n
                         : eighth < 48 ? 48
                                       : eighth;
    LOP_ASSERT(y->m == n && a->m == n && a->n == n && y->dt == a->dt && lop_is_blas(y->dt));
    adjoint = adjoint && lop_is_complex(y->dt);
    for (int64_t i = 0; i < n; i += many) {
        const int64_t to = min_of(n, i + many), first = lower ? i : 0, past = lower ? n : to,
                      left = lower ? 0 : i, right = lower ? to : n;
        const lop_mat own = {(char *)a->p + (first * a->rs + i * a->cs) * size,
                             to - i,
                             past - first,
                             a->cs,
                             a->rs,
                             a->dt},
                      all = {(char *)a->p + (first * a->rs + left * a->cs) * size,
                             past - first,
                             right - left,
                             a->rs,
                             a->cs,
                             a->dt},
                      to_y = {(char *)y->p + (i * y->rs + left * y->cs) * size,
                              to - i,
                              right - left,
                              y->rs,
                              y->cs,
                              y->dt};
        lopk_gemm(&to_y, &own, adjoint, &all, false);
    }
    lopk_mirror_triangle(y->p, n, lower ? y->rs : y->cs, lower ? y->cs : y->rs, y->dt, adjoint,
                         false);
    for (int64_t i = 0; adjoint && i < n; i++)
        lop_set(y->dt, y->p, i * (y->rs + y->cs), creal(lop_get(y->dt, y->p, i * (y->rs + y->cs))));
}

void lopk_gemm_half(const lop_mat *y, const lop_mat *a, bool adjoint, const lop_mat *b) {
    LOP_ASSERT(y->m == y->n && y->n == a->n && a->m == b->m && b->n == a->n && y->dt == a->dt);
    const int64_t n = y->n, size = (int64_t)lop_dtype_size(y->dt), eighth = (n + 7) / 8,
                  many = n < 64        ? n
                         : eighth < 48 ? 48
                                       : eighth; /* thinner panels are slow */
    adjoint = adjoint && lop_is_complex(y->dt);
    for (int64_t i = 0; i < n; i += many) {
        const int64_t to = min_of(n, i + many);
        const lop_mat at = {(char *)a->p + i * a->cs * size, to - i, a->m, a->cs, a->rs, a->dt},
                      bt = {b->p, b->m, to, b->rs, b->cs, b->dt},
                      yt = {(char *)y->p + i * y->rs * size, to - i, to, y->rs, y->cs, y->dt};
        lopk_gemm(&yt, &at, adjoint, &bt, false);
    }
    if (many < n) lopk_mirror_triangle(y->p, n, y->rs, y->cs, y->dt, adjoint, false);
}

lop_status lopk_herk_less(const lop_mat *y, const lop_mat *a) {
    LOP_ASSERT(y->m == y->n && y->n == a->m && y->dt == a->dt && lop_is_blas(y->dt));
    if (!fits(a) || !fits(y)) return LOP_OVERFLOW;
    if (!is_col(a) || !is_col(y)) return LOP_INTERNAL;
    const int64_t n = y->n, k = a->n, ld = ld_col(y), lda = ld_col(a);
    const enum CBLAS_ORDER col = CblasColMajor;
    const enum CBLAS_UPLO low = CblasLower;
    const enum CBLAS_TRANSPOSE no = CblasNoTrans;
    switch (y->dt) {
    case LOP_f32: BLAS(cblas_ssyrk)(col, low, no, n, k, -1, a->p, lda, 1, y->p, ld); break;
    case LOP_f64: BLAS(cblas_dsyrk)(col, low, no, n, k, -1, a->p, lda, 1, y->p, ld); break;
    case LOP_c64: BLAS(cblas_cherk)(col, low, no, n, k, -1, a->p, lda, 1, y->p, ld); break;
    default: BLAS(cblas_zherk)(col, low, no, n, k, -1, a->p, lda, 1, y->p, ld);
    }
    return LOP_OK;
}

typedef struct tri_args {
    enum CBLAS_ORDER order;
    enum CBLAS_UPLO uplo;
    enum CBLAS_TRANSPOSE trans;
    enum CBLAS_DIAG diag;
    int64_t m, n, lda, ldb;
} tri_args;

/* The order is b's; a in the other order is its transpose: uplo and trans change. 'C' of such a
 * matrix is a plain conjugate, which BLAS calls ConjNoTrans (OpenBLAS has it for triangular calls
 * too). */
static lop_status tri_of(tri_args *t, const lop_mat *a, bool lower, bool unit, char trans,
                         const lop_mat *b) {
    LOP_ASSERT(a->m == a->n && a->n == b->m && a->dt == b->dt);
    if (!fits(a) || !fits(b)) return LOP_OVERFLOW;
    const bool col = is_col(b);
    if (!(col || is_row(b)) || !(is_col(a) || is_row(a))) return LOP_INTERNAL;
    const bool same = col ? is_col(a) : is_row(a);
    t->order = col ? CblasColMajor : CblasRowMajor;
    t->uplo = lower == same ? CblasLower : CblasUpper;
    if (same)
        t->trans = trans == 'N' ? CblasNoTrans : trans == 'T' ? CblasTrans : CblasConjTrans;
    else
        t->trans = trans == 'N' ? CblasTrans : trans == 'T' ? CblasNoTrans : CblasConjNoTrans;
    if (!lop_is_complex(a->dt) && t->trans == CblasConjNoTrans) t->trans = CblasNoTrans;
    t->diag = unit ? CblasUnit : CblasNonUnit;
    t->m = b->m;
    t->n = b->n;
    t->lda = col == same ? ld_col(a) : ld_row(a);
    t->ldb = col ? ld_col(b) : ld_row(b);
    return LOP_OK;
}

#define TRIANGULAR(how, name, s, d, c, z)                                                          \
    how lop_status name(const lop_mat *a, bool lower, bool unit, char trans, const lop_mat *b) {   \
        tri_args t;                                                                                \
        if (b->m == 0 || b->n == 0) return LOP_OK;                                                 \
        const lop_status st = tri_of(&t, a, lower, unit, trans, b);                                \
        if (st != LOP_OK) return st;                                                               \
        switch (a->dt) {                                                                           \
        case LOP_f32:                                                                              \
            BLAS(s)(t.order, CblasLeft, t.uplo, t.trans, t.diag, t.m, t.n, one_f, a->p, t.lda,     \
                    b->p, t.ldb);                                                                  \
            break;                                                                                 \
        case LOP_f64:                                                                              \
            BLAS(d)(t.order, CblasLeft, t.uplo, t.trans, t.diag, t.m, t.n, one_d, a->p, t.lda,     \
                    b->p, t.ldb);                                                                  \
            break;                                                                                 \
        case LOP_c64:                                                                              \
            BLAS(c)(t.order, CblasLeft, t.uplo, t.trans, t.diag, t.m, t.n, &one_c, a->p, t.lda,    \
                    b->p, t.ldb);                                                                  \
            break;                                                                                 \
        default:                                                                                   \
            BLAS(z)(t.order, CblasLeft, t.uplo, t.trans, t.diag, t.m, t.n, &one_z, a->p, t.lda,    \
                    b->p, t.ldb);                                                                  \
        }                                                                                          \
        return LOP_OK;                                                                             \
    }
TRIANGULAR(static, trsm, cblas_strsm, cblas_dtrsm, cblas_ctrsm, cblas_ztrsm)
TRIANGULAR(static, trmm, cblas_strmm, cblas_dtrmm, cblas_ctrmm, cblas_ztrmm)
#undef TRIANGULAR

typedef lop_status triangular(const lop_mat *a, bool lower, bool unit, char trans,
                              const lop_mat *b);

/* By so many columns at a time that OpenBLAS takes one thread (0.3.31: fewer than 1024 numbers, 512
 * complex ones), where waking others costs more than there is to do. */
static lop_status by_columns(triangular *run, const lop_mat *a, bool lower, bool unit, char trans,
                             const lop_mat *b) {
    const double work = (double)a->n * (double)a->n * (double)b->n;
    const int64_t most = lop_is_complex(a->dt) ? 511 : 1023;
    const int64_t many = at_least_1(work <= ALONE && a->n > 0 ? most / a->n : b->n);
    lop_status st = LOP_OK;
    for (int64_t j = 0; st == LOP_OK && j < b->n; j += many) {
        const lop_mat some = {(char *)b->p + j * b->cs * size_of(b->dt),
                              b->m,
                              min_of(many, b->n - j),
                              b->rs,
                              b->cs,
                              b->dt};
        st = run(a, lower, unit, trans, &some);
    }
    return st;
}

lop_status lopk_trsm(const lop_mat *a, bool lower, bool unit, char trans, const lop_mat *b) {
    return by_columns(trsm, a, lower, unit, trans, b);
}

/* One column: trmv, a third of trmm's time (n = 1000, 2026-11). */
static bool try_trmv(const lop_mat *a, bool lower, bool unit, char trans, const lop_mat *b) {
    const int64_t inc = b->m <= 1 ? 1 : b->rs;
    const bool col = is_col(a);
    if (!fits(a) || !(col || is_row(a)) || inc < 1 || !lop_blas_fits(inc)) return false;
    const enum CBLAS_ORDER order = col ? CblasColMajor : CblasRowMajor;
    const enum CBLAS_UPLO uplo = lower ? CblasLower : CblasUpper;
    const enum CBLAS_DIAG diag = unit ? CblasUnit : CblasNonUnit;
    const enum CBLAS_TRANSPOSE flag = trans == 'N'   ? CblasNoTrans
                                      : trans == 'T' ? CblasTrans
                                                     : CblasConjTrans;
    const int64_t n = a->n, ld = col ? ld_col(a) : ld_row(a);
    switch (a->dt) {
    case LOP_f32: BLAS(cblas_strmv)(order, uplo, flag, diag, n, a->p, ld, b->p, inc); break;
    case LOP_f64: BLAS(cblas_dtrmv)(order, uplo, flag, diag, n, a->p, ld, b->p, inc); break;
    case LOP_c64: BLAS(cblas_ctrmv)(order, uplo, flag, diag, n, a->p, ld, b->p, inc); break;
    default: BLAS(cblas_ztrmv)(order, uplo, flag, diag, n, a->p, ld, b->p, inc);
    }
    return true;
}

lop_status lopk_trmm(const lop_mat *a, bool lower, bool unit, char trans, const lop_mat *b) {
    if (b->n == 1 && b->m > 0 && try_trmv(a, lower, unit, trans, b)) return LOP_OK;
    return lopk_threads() > 1 ? by_columns(trmm, a, lower, unit, trans, b)
                              : trmm(a, lower, unit, trans, b);
}

int lopk_threads(void) { return BLAS(openblas_get_num_threads)(); }
void lopk_set_threads(int n) { BLAS(openblas_set_num_threads)(n < 1 ? 1 : n); }
const char *lopk_blas_config(void) { return BLAS(openblas_get_config)(); }
