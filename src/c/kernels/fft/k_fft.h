/* k_fft.h: FFT with plans in the caller's memory, and the products by FFT made of it.
 *
 * A plan is for one length n and one dtype: f32 and f64 plans do real transforms (rfft, irfft), c64
 * and c128 plans complex ones (cfft). Every n >= 1 is supported (prime factors above 31 by
 * Bluestein). A plan is a blob without pointers: it may be moved or copied; after init it is
 * read-only and any number of threads may use it. Work memory is one call's own. Plan, work and
 * scratch: any alignment of 16 or better; results do not depend on it.
 *
 * The transform is out[k] = sum_j in[j] exp(-2 pi i j k / n) for sign -1, + for sign +1; unscaled.
 * Error: |out - exact|_2 <= C u log2(n) |out|_2, C below 3.
 * "C" below is the complex dtype of the plan's precision; strides count elements. */
#ifndef LOPK_FFT_H
#define LOPK_FFT_H

#include "base/buf.h"

/* The length N >= n at which a transform is fastest, by a cost model with measured constants: of
 * the form 2^a 3^b 5^c, above the unit a multiple of it (f32 128, f64 32, c64 64, c128 16: whole
 * vectors in both steps), below it even. 2 for n <= 2, below 2 n otherwise. dt must be a BLAS
 * dtype. */
int64_t lopk_fft_good(int64_t n, lop_dtype dt);

/* Bytes for a plan and for work. 0 when n < 1, n > 2^40 or dt is not a BLAS dtype. */
size_t lopk_fft_plan_bytes(int64_t n, lop_dtype dt);
size_t lopk_fft_work_bytes(int64_t n, lop_dtype dt); /* for rfft, irfft, cfft */
/* Fills plan_bytes bytes at plan. LOP_UNABLE when plan_bytes would be 0. */
lop_status lopk_fft_plan_init(void *plan, int64_t n, lop_dtype dt) LOP_MUST_CHECK;
int64_t lopk_fft_length(const void *plan);
lop_dtype lopk_fft_dtype(const void *plan);

/* out (n/2 + 1 of C) <- the transform of in (n_in real, zero-padded to n; more than n are ignored).
 * out and in do not overlap. */
void lopk_rfft(const void *plan, const void *in, int64_t n_in, int64_t stride_in, void *out,
               void *work);
/* out (n_out reals, the first of n) <- scale * inverse transform of in (n/2 + 1 of C; the imaginary
 * parts of in[0] and, n even, in[n/2] are not used). scale = 1.0 / n gives numpy.fft.irfft. `in` is
 * not changed. */
void lopk_irfft(const void *plan, const void *in, void *out, int64_t n_out, int64_t stride_out,
                double scale, void *work);
/* out (n_out of C, the first of n) <- scale * transform of in (n_in of C, zero-padded). */
void lopk_cfft(const void *plan, const void *in, int64_t n_in, int64_t stride_in, void *out,
               int64_t n_out, int64_t stride_out, int sign, double scale, void *work);

/* ---- products ----
 * A *spectrum* is the transform of a kernel e of the plan's length N: N/2 + 1 of C for real plans,
 * N of C for complex ones, in natural order (so of a circulant's first column: its eigenvalues). */
int64_t lopk_spectrum_count(const void *plan); /* elements of C */

/* spectrum <- that of the circulant in which the m x n Toeplitz matrix (c, r), m = c->m, n = r->m,
 * is embedded: e = [c_0 .. c_{m-1}, 0 .., r_{n-1} .. r_1]; needs N >= m + n - 1. c, r are vectors
 * of the plan's dtype, any stride; r[0] is not read. work: lopk_toeplitz_work_bytes. */
void lopk_toeplitz_spectrum(const void *plan, const lop_mat *c, const lop_mat *r, void *spectrum,
                            void *work);
size_t lopk_toeplitz_work_bytes(int64_t n, lop_dtype dt); /* n = the plan's length N */

/* y <- op(E)[offset : offset + y->m, : x->m] x for the circulant E of length N with that spectrum,
 * column by column; op by trans and conj, all four from one spectrum (real plans: T and H both
 * conjugate the spectrum; complex: T reads it backwards, H conjugates, conj both). So with offset
 * 0: the Toeplitz product, its transpose, adjoint, conjugate; a circulant's (N = n); a
 * convolution's (offset picks the mode). offset + y->m <= N, x->m <= N. dtypes: the plan's for y
 * and x; a real plan also takes complex y and x of its precision (real and imaginary parts apart).
 * y and x may be the same matrix. work: lopk_toeplitz_work_bytes. Error a column: C u log2(N)
 * |spectrum|_inf |x|_2 normwise, not componentwise. */
void lopk_toeplitz_fft(const lop_mat *y, const void *spectrum, const void *plan, const lop_mat *x,
                       int64_t offset, bool trans, bool conj, void *work);

/* ---- columns that lie across each other ----
 * Of a matrix in C order a column has one number in each cache line: some at a time are brought
 * together, multiplied and put back, so that each line is fetched once for all of them. x and y may
 * be the same matrix where the product takes that. */
/* Bytes for products of k columns, m numbers from n: a multiple of 64; 0 where there is no need, or
 * they are too long. With 0 bytes product(y, x, arg) is called once. */
typedef void (*lopk_product_fn)(const lop_mat *y, const lop_mat *x, const void *arg);
size_t lopk_panel_bytes(int64_t m, int64_t n, int64_t k, lop_dtype dt);
void lopk_by_panels(const lop_mat *y, const lop_mat *x, void *panel, size_t bytes,
                    lopk_product_fn product, const void *arg);

#endif
