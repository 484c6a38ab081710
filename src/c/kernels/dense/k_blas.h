/* k_blas.h: BLAS and LAPACK on lop_mat, by the functions of blas_table.h.
 *
 * Only the four BLAS dtypes; all matrices of one call share one. All memory is *borrowed*, the work
 * memory too. OpenBLAS is thread-safe; every function here may run without the GIL.
 *
 * "Column-major" below: rs == 1 (or m <= 1) and cs >= max(1, m) (or n <= 1).
 * "Simple": column-major, or the transpose of that (cs == 1 or n <= 1, rs >= max(1, n) or m <= 1).
 * Where the library's integers have 32 bits, LAPACK's functions return LOP_OVERFLOW when a size or
 * stride is 2^31 or more; products of these sizes take our own loop. */
#ifndef LOPK_BLAS_H
#define LOPK_BLAS_H

#include "kernels/common/k_threads.h"

/* y (+)= op(a) b, op conjugates when conj_a; y m x n, a m x k, b k x n. Any mix of simple layouts
 * without copies; anything else runs lopk_matmul_loop. y overlaps neither. accumulate false never
 * reads y (NaN there is harmless). n == 1 or m == 1 run gemv, k == 1 a loop; small sizes own loops
 * (k_small_gemm.h), which may take any strides of a and b. */
void lopk_gemm(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b, bool accumulate);
/* The same; what BLAS does not run goes to the threads of the team. False: stopped. */
bool lopk_gemm_parts(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                     bool accumulate, const lopk_team *team) LOP_MUST_CHECK;
/* y <- y + alpha op(a) b by BLAS; false where its layouts or sizes are not BLAS's, y is then as it
 * was. alpha is real where y is. */
bool lopk_gemm_add(const lop_mat *y, double _Complex alpha, const lop_mat *a, bool conj_a,
                   const lop_mat *b);
/* k_rank_one.c: y = alpha a b (from is NULL), or from + alpha a b (y itself, or another), for a
 * column and a row of real numbers; false where the layouts are not made for it, y is then as it
 * was. lopk_gemm and lopk_gemm_add call it. */
bool lopk_rank_one(const lop_mat *y, double alpha, const lop_mat *a, const lop_mat *b,
                   const lop_mat *from);
/* y[e] = op(a) b[e] for e < count, y and b moving on by y_step and b_step elements. */
void lopk_gemm_batch(const lop_mat *y, int64_t y_step, const lop_mat *a, bool conj_a,
                     const lop_mat *b, int64_t b_step, int64_t count);

/* y[e] = op(a[e]) b[e], all three moving. */
void lopk_gemm_each(const lop_mat *y, int64_t y_step, const lop_mat *a, int64_t a_step, bool conj_a,
                    const lop_mat *b, int64_t b_step, int64_t count);

/* y = a^T a, or a^H a (`adjoint`), n x n for a k x n: half the flops of a product, and exactly
 * (Hermitian-)symmetric. y overlaps not a. Small sizes and layouts that are not simple run
 * lopk_gemm. */
void lopk_gram(const lop_mat *y, const lop_mat *a, bool adjoint);
/* The same of a square triangle, zeros standing in the other one: in panels, n^3 / 3 flops and a
 * little more. */
void lopk_gram_triangle(const lop_mat *y, const lop_mat *a, bool adjoint, bool lower);

/* y = op(A) x by the upper triangle of a symmetric or (`adjoint`) Hermitian A, any strides; op
 * conjugates. y overlaps neither. scratch: lopk_symm_scratch bytes, aligned to 64. */
void lopk_symm(const lop_mat *y, const lop_mat *a, bool adjoint, bool conj, const lop_mat *x,
               void *scratch);
size_t lopk_symm_scratch(int64_t n, int64_t columns, lop_dtype dt); /* 0 for one column */
/* The same of one column (k_symv.c). False, and nothing is done: of layouts without lines side by
 * side. */
bool lopk_symv(const lop_mat *y, const lop_mat *a, bool adjoint, bool conj, const lop_mat *x);
/* The matrix whose upper triangle is a's. y may be a, else overlaps it not at all. */
void lopk_whole_of_half(const lop_mat *y, const lop_mat *a, bool adjoint);
/* y = a^T b, or a^H b (`adjoint`), known to be (Hermitian-)symmetric: one triangle in panels, then
 * mirrored. a and b k x n; y overlaps neither. Small sizes run lopk_gemm. */
void lopk_gemm_half(const lop_mat *y, const lop_mat *a, bool adjoint, const lop_mat *b);

/* k_weighted_gram.c: the first k rows of y (k + 1 x k, simple) = u^H diag(d)^-1 u, exactly
 * Hermitian; in the last one the sums of squares of u's columns. u m x k, d m real numbers of u's
 * precision, any strides. SINGULAR where one is 0. scratch aligned to 64. y overlaps neither. */
lop_status lopk_weighted_gram(const lop_mat *y, const lop_mat *u, const lop_mat *d,
                              void *scratch) LOP_MUST_CHECK;
/* y (k x k, simple) = u^H diag(d) u, exactly Hermitian; all else as there. */
void lopk_scaled_gram(const lop_mat *y, const lop_mat *u, const lop_mat *d, void *scratch);
size_t lopk_weighted_gram_scratch(int64_t m, int64_t k, lop_dtype dt); /* of both */

/* Writes the lower triangle of the n x n matrix at p, whose strides are r and c, over the upper
 * one, conjugated if `adjoint`; `swap`: conjugates the lower one and leaves the other as it was
 * read. */
bool lopk_gram_is_upper(bool col, int64_t n);
void lopk_mirror_triangle(void *p, int64_t n, int64_t r, int64_t c, lop_dtype dt, bool adjoint,
                          bool swap);

/* Cholesky in place of the lower triangle (upper is not read, not written): a = L L^H. a n x n,
 * column-major. *info 0, or i > 0: the leading minor of order i is not positive (LOP_SINGULAR). */
lop_status lopk_potrf(const lop_mat *a, int64_t *info) LOP_MUST_CHECK;
/* Sizes above the first are factored in block columns of the second (k_cholesky_large.c); tests set
 * them. */
extern int64_t lopk_potrf_largest, lopk_potrf_block;
/* The same by one call of LAPACK, which crashes at some sizes: k_cholesky_large.c calls it. */
lop_status lopk_potrf_whole(const lop_mat *a, int64_t *info) LOP_MUST_CHECK;
/* The lower triangle of y (n x n) <- y - a a^H; a n x k; both column-major, the upper triangle is
 * not touched. */
lop_status lopk_herk_less(const lop_mat *y, const lop_mat *a) LOP_MUST_CHECK;
/* b <- (L L^H)^-1 b; a from potrf; b n x k, column-major. */
lop_status lopk_potrs(const lop_mat *a, const lop_mat *b) LOP_MUST_CHECK;
/* a <- its inverse, whole, from potrf's factor. */
lop_status lopk_potri(const lop_mat *a, int64_t *info) LOP_MUST_CHECK;
/* The same, y <- the inverse by L^-T in x, column-major; all three apart. Of small matrices: BLAS
 * takes one thread, where potri wakes the others 25 times for 100 rows (OpenBLAS 0.3.31). */
lop_status lopk_inverse_of_cholesky(const lop_mat *low, const lop_mat *x,
                                    const lop_mat *y) LOP_MUST_CHECK;

/* Is a square matrix of a size for which LAPACK's getrf and potrf wake BLAS's other threads, and
 * gain less by them than blocks of lopk_lone_block columns do? False where there is one thread. */
bool lopk_goes_by_blocks(const lop_mat *a);
/* One of those so small that the blocks, too, gain more from waking nobody (k_alone.c). */
bool lopk_goes_alone(const lop_mat *a);
enum { lopk_lone_block = 32 };
/* k_alone.c, on this thread: y -= a b; the lower triangle of y -= a a^H (column-major, the upper
 * one is not touched); b <- op(A)^-1 b; b <- b L^-H for potrf's lower triangle, whose diagonal has
 * reciprocals (both column-major). a and L have up to lopk_lone_block columns. */
void lopk_gemm_less_alone(const lop_mat *y, const lop_mat *a, const lop_mat *b);
lop_status lopk_herk_less_alone(const lop_mat *y, const lop_mat *a) LOP_MUST_CHECK;
lop_status lopk_trsm_alone(const lop_mat *a, bool lower, bool unit, char trans,
                           const lop_mat *b) LOP_MUST_CHECK;
lop_status lopk_solve_right_alone(const lop_mat *l, const lop_mat *b) LOP_MUST_CHECK;
/* LU with row exchanges in place, a m x n column-major; ipiv min(m, n), 1-based as LAPACK's. *info
 * i > 0: U[i-1, i-1] is exactly 0 (LOP_SINGULAR; the factors are complete all the same). */
lop_status lopk_getrf(const lop_mat *a, int64_t *ipiv, int64_t *info) LOP_MUST_CHECK;
/* x <- op(A)^-1 from A's getrf, trans 'N', 'T' or 'C'; both column-major and apart. */
lop_status lopk_inverse_of_lu(const lop_mat *lu, const int64_t *ipiv, char trans,
                              const lop_mat *x) LOP_MUST_CHECK;
/* b <- op(A)^-1 b, trans 'N', 'T' or 'C'; b n x k, column-major. */
lop_status lopk_getrs(const lop_mat *a, const int64_t *ipiv, char trans,
                      const lop_mat *b) LOP_MUST_CHECK;
/* b <- op(A)^-1 b for triangular a (n x n, simple: only the named triangle is read, and not the
 * diagonal when unit); trans 'N', 'T' or 'C'; b n x k, simple. Zeros on the diagonal give inf or
 * NaN: test first with lopk_diag_has_zero. */
lop_status lopk_trsm(const lop_mat *a, bool lower, bool unit, char trans,
                     const lop_mat *b) LOP_MUST_CHECK;
/* b <- op(A) b, the same arguments. */
lop_status lopk_trmm(const lop_mat *a, bool lower, bool unit, char trans,
                     const lop_mat *b) LOP_MUST_CHECK;
/* The 0-based index of the first exact zero on the diagonal of a, -1 if none. Any stride. */
int64_t lopk_diag_has_zero(const lop_mat *a);
/* k_substitution.c: does it hold numbers below the normal ones, whose reciprocals may be inf? Then
 * x <- op(a)^-1 x by a division each, as lopk_trsm but slowly; a's diagonal counts. */
bool lopk_diag_is_tiny(const lop_mat *a);
double lopk_top(const lop_mat *a);                  /* the largest |part| of an element; no NaN */
void lopk_shift_range(const lop_mat *a, int power); /* all elements times 2^power */
void lopk_substitute(const lop_mat *a, bool lower, char trans, const lop_mat *x);
/* Likewise with gbtrf's factor, of `l` diagonals below and l + u above, and x <- D^-1 x of
 * lopk_ldl's blocks. */
void lopk_substitute_band(const lop_mat *ab, int64_t l, int64_t u, const int64_t *ipiv, char trans,
                          const lop_mat *x);
void lopk_substitute_blocks(const lop_mat *d, bool hermitian, const void *beside,
                            const int64_t *ipiv, const lop_mat *x);

/* Reciprocal condition number (1-norm) from getrf's or potrf's factor. anorm: the 1-norm of the
 * matrix before (lopk_norm1). work: lopk_gecon_bytes(n, dt) bytes, aligned to 16. */
size_t lopk_gecon_bytes(int64_t n, lop_dtype dt);
lop_status lopk_gecon(const lop_mat *a, double anorm, double *rcond, void *work) LOP_MUST_CHECK;
lop_status lopk_pocon(const lop_mat *a, double anorm, double *rcond, void *work) LOP_MUST_CHECK;
/* Largest column sum of |a[i, j]| (complex: true moduli); any strides; NaN gives NaN.
 * uplo 'L' / 'U': a is Hermitian and only that triangle is read; 'G': all of it. */
double lopk_norm1(char uplo, const lop_mat *a);
/* k_condition.c: the reciprocal condition number (1-norm) by a factor: column-major, of getrf (L
 * and U) or potrf (the lower triangle). 1 where a pass over the triangle finds it far from
 * lopk_eps, of what holds a zero pivot, NaN or inf. `a` is the matrix (of Cholesky's its upper
 * triangle is read); NULL where it is gone: its 1-norm then, 0 where that of L L^H is to be found.
 * work: lopk_near_bytes, aligned to 16. */
double lopk_near(const lop_mat *f, bool cholesky, const lop_mat *a, double norm, void *work);
size_t lopk_near_bytes(int64_t n, lop_dtype dt);
/* min |d| / max |d| over the diagonal of a, any strides: of a triangle no less than the reciprocal
 * condition number. 1 of NaN and inf, and where there is none. */
double lopk_pivot_ratio(const lop_mat *a);
void lopk_pivot_range(const lop_mat *a, double *least, double *most);
/* The same of a vector (a's first column), of complex numbers to a factor of sqrt(2), in one pass
 * that knows whether there is a zero: 0 then, and only then. */
double lopk_vector_ratio(const lop_mat *a);
/* The same of numbers known to lie between `least` and `most`, in modulus. */
double lopk_range_ratio(double least, double most);
/* What solutions x of A x = b say of A, of which `norm` bounds the 2-norm from below: the least
 * |b| / (norm |x| sqrt(n)) of the first few columns, sqrt(n) for what an accidental b has of the
 * direction that grows most (30 at most). 1 where that is no number or above 1. Any strides. */
double lopk_outgrown(const lop_mat *x, const lop_mat *b, double norm);
/* The same where x is to lie in b's place: |b| of so many columns before. */
enum { LOPK_GROWTHS = 8 };
void lopk_lengths(const lop_mat *b, double *out);
double lopk_outgrown_from(const lop_mat *x, const double *from, double norm);
/* Of one column of m rows, whose length is known, and b's. */
double lopk_outgrown_by(double length, double from, int64_t m, double norm);
double lopk_eps(lop_dtype dt); /* below which a matrix counts as singular to working precision */

int lopk_threads(void);
void lopk_set_threads(int n);       /* process-wide, OpenBLAS's pool */
const char *lopk_blas_config(void); /* static text */

#endif
