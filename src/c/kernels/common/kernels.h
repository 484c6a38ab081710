/* kernels.h: own loops on raw memory. No allocation, no error text, no nodes, no Python.
 *
 * Contract of every function here unless its comment says otherwise:
 * - All matrices are *borrowed*; a kernel writes only its first argument. Shapes fit (asserted in
 *   debug builds only); all matrices share one dtype, any of the 13; strides are >= 0, in elements;
 *   an output has no two elements at one address. Elements are aligned to their own size.
 * - The output may be *the same* matrix as an input (same pointer and strides) in the element-wise
 *   functions (copy, conj, add, sub, mul, div, scale, rowscale); any other overlap is undefined.
 * - Sizes 0 are legal. Nothing fails but what returns lop_status. Same input, build and CPU give
 *   the same bits.
 * - Integers wrap. bool is NumPy's matmul meaning: multiply is AND, add and subtract are OR; a bool
 *   counts as true when not 0, results are 0 or 1. Complex products are (ac - bd, ad + bc).
 * - `conj` flags do nothing on real dtypes.
 * - An "index vector" is an m x 1 lop_mat of dtype i32 or i64; "contiguous" there means rs == 1. */
#ifndef LOPK_KERNELS_H
#define LOPK_KERNELS_H

#include "k_threads.h"

/* ---- copies and element-wise arithmetic (k_loops.c) ---- */

/* y <- x, any pair of dtypes, same shape. NumPy's astype: complex to real drops the imaginary part;
 * anything to bool is != 0; float to integer truncates and wraps to the dtype as NumPy's does on
 * x86 (-1.0 to uint8 is 255), NaN gives 0, beyond int64 (uint64 for u64) saturates first. Blocked
 * when one side is C and the other Fortran ordered. */
void lopk_copy(const lop_mat *y, const lop_mat *x);
void lopk_conj(const lop_mat *y, const lop_mat *x); /* y <- conj(x), same dtype */
void lopk_zero(const lop_mat *y);
/* y[i, i + k] <- d[t], t = 0, 1, .. from the diagonal's first element in y; d has its length and
 * y's dtype, m x 1; the rest of y is kept. */
void lopk_set_diag(const lop_mat *y, int64_t k, const lop_mat *d);

/* y <- a op b. An input with m == 1 or n == 1 broadcasts along that direction against y. */
void lopk_add(const lop_mat *y, const lop_mat *a, const lop_mat *b);
void lopk_sub(const lop_mat *y, const lop_mat *a, const lop_mat *b);
void lopk_mul(const lop_mat *y, const lop_mat *a, const lop_mat *b);
void lopk_div(const lop_mat *y, const lop_mat *a, const lop_mat *b); /* f32 f64 c64 c128; Smith */

/* y <- c x. Integer and bool dtypes use ci (wrapped to the dtype); real ones creal(c); a c with
 * zero imaginary part multiplies both parts of complex data by the real number. x may broadcast. */
void lopk_scale(const lop_mat *y, double _Complex c, int64_t ci, const lop_mat *x);

/* y[i, j] <- d[i] x[i, j] (conj_d: conj(d[i])); d is m x 1. */
void lopk_rowscale(const lop_mat *y, const lop_mat *d, bool conj_d, const lop_mat *x);

/* out (1 x 1) <- sum of x; pairwise for floats. Integers wrap in x's dtype; bool: any. */
void lopk_sum(const lop_mat *out, const lop_mat *x);
/* out (1 x 1) <- sum of a * b over all elements, no conjugation; a and b of one shape. */
void lopk_dot(const lop_mat *out, const lop_mat *a, const lop_mat *b);

/* y[i] <- sum over t of a[i, t] b[t, i], for the m of the vector y; pairwise; a and b
 * conjugated where asked. One pass over both, whatever their orders. */
void lopk_row_dots(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b, bool conj_b);

/* Is no entry of a real square matrix further from that across the diagonal than n u / 2 of it (64
 * u at most)? Then either half is the matrix to working accuracy. */
bool lopk_halves_agree(const lop_mat *a);

/* y[m,n] (+)= op(a)[m,k] b[k,n]; op conjugates when conj_a. Transpose by swapping strides. y may
 * not overlap a or b. Exact for integers; meant for those, for tiny sizes, and for odd strides. */
void lopk_matmul_loop(const lop_mat *y, const lop_mat *a, bool conj_a, const lop_mat *b,
                      bool accumulate);

/* ---- gather, scatter, sparse (k_sparse.c) ----
 * Every index is checked on each call. On LOP_INDEX y holds anything. Index vectors are i32 or i64
 * (LOP_DTYPE otherwise, and when the two of one call differ); y may not overlap any input. */

/* y[i, :] <- x[index[i], :]; index (y->m x 1, any stride) in [0, x->m). */
lop_status lopk_take_rows(const lop_mat *y, const lop_mat *index, const lop_mat *x) LOP_MUST_CHECK;
/* y <- 0; y[index[i], :] += x[i, :], in order; index (x->m x 1) in [0, y->m). The transpose. */
lop_status lopk_scatter_rows_add(const lop_mat *y, const lop_mat *index,
                                 const lop_mat *x) LOP_MUST_CHECK;

/* Does indptr begin with 0? One that was overwritten must not leave out entries in silence. */
bool lopk_indptr_begins(const lop_mat *indptr);

/* y <- op(A) x, A of y->m rows and x->m columns, op conjugates. indptr has y->m + 1 entries (CSR)
 * or x->m + 1 (CSC); indices and data at least indptr[last]. All three contiguous. data, x, y share
 * a dtype. The transpose of a CSR matrix is the CSC matrix of the same arrays. Duplicates add. */
lop_status lopk_csr_mm(const lop_mat *y, const lop_mat *indptr, const lop_mat *indices,
                       const lop_mat *data, bool conj, const lop_mat *x) LOP_MUST_CHECK;
/* The same, the rows in parts on the team's threads where there is enough to do; CALLBACK: stopped.
 */
lop_status lopk_csr_mm_parts(const lop_mat *y, const lop_mat *indptr, const lop_mat *indices,
                             const lop_mat *data, bool conj, const lop_mat *x,
                             const lopk_team *team) LOP_MUST_CHECK;
/* `scratch`: `room` bytes, or NULL. Large ones that have lopk_scatter_room go in parts, which says
 * the order of the sums; `team` only who takes the parts (or right-hand sides), NULL: the caller's
 * thread. CALLBACK: stopped. */
lop_status lopk_csc_mm(const lop_mat *y, const lop_mat *indptr, const lop_mat *indices,
                       const lop_mat *data, bool conj, const lop_mat *x, const lopk_team *team,
                       size_t room, void *scratch) LOP_MUST_CHECK;
/* row, col, data of one length, contiguous. */
lop_status lopk_coo_mm(const lop_mat *y, const lop_mat *row, const lop_mat *col,
                       const lop_mat *data, bool conj, const lop_mat *x, const lopk_team *team,
                       size_t room, void *scratch) LOP_MUST_CHECK;
/* Bytes of scratch for nnz entries, m rows of y and k right-hand sides; 0: it goes in one part.
 * False: more than 64 bits hold. */
bool lopk_scatter_room(int64_t nnz, int64_t m, int64_t k, lop_dtype dt,
                       int64_t *bytes) LOP_MUST_CHECK;

/* ---- Toeplitz without FFT (k_toeplitz.c) ----
 * y <- op(T) x. T is c->m x r->m: T[i, j] = i >= j ? c[i - j] : r[j - i]; r[0] is not read. c and r
 * are vectors (any stride). trans: the transpose; conj: conjugate; both: the adjoint. y is
 * (trans ? r->m : c->m) x k, x (trans ? c->m : r->m) x k. y overlaps nothing. Componentwise
 * accurate: n u |T| |x|. 2 m n k operations, about 4 to 8 a cycle. */
void lopk_toeplitz_direct(const lop_mat *y, const lop_mat *c, const lop_mat *r, bool trans,
                          bool conj, const lop_mat *x);
/* Up to this n (of the larger side) the direct way is the faster one for one vector; measured. */
int64_t lopk_toeplitz_crossover(lop_dtype dt, int64_t m, int64_t n);

/* ---- fingerprint (k_fingerprint.c) ----
 * 128 bits of every byte of the m x n elements, of m, n, rs, cs, dt, and of the seed, so that
 * fingerprints chain. Not cryptographic. The bytes between strided elements do not count. */
lop_fingerprint lopk_fingerprint(lop_fingerprint seed, const lop_mat *a);

#endif
