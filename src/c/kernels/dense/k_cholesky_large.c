/* k_cholesky_large.c: Cholesky factors of large matrices in block columns, and Hermitian pencils by
 * them; so those of small ones for which LAPACK's would wake BLAS's threads (lopk_goes_by_blocks).
 *
 * No call of LAPACK's potrf has more than LARGEST columns: OpenBLAS 0.3.34's own (float64, cores
 * with AVX-512, one thread) writes past its buffer from about 10,900 on (seen 2026-11; 0.3.30 and
 * 0.3.31 do not). So on every version block columns are factored, the rows below solved with and
 * the rest updated, which is how LAPACK goes itself: n^3 / 3 flops, the same rounding bounds, and
 * at these sizes the same time. sygvd and hegvd would call that potrf too, so their four steps are
 * taken one by one (Golub and Van Loan 2013, 8.7.2). */
#include "k_blas.h"
#include "k_eigen.h"
#include "kernels/common/kernels.h"

enum { LARGEST = 8192, BLOCK = 4096 };
int64_t lopk_potrf_largest = LARGEST, lopk_potrf_block = BLOCK;

static lop_mat flip(const lop_mat *a) { return (lop_mat){a->p, a->n, a->m, a->cs, a->rs, a->dt}; }
static lop_mat part(const lop_mat *a, int64_t i, int64_t m, int64_t j, int64_t n) {
    const int64_t at = i * a->rs + j * a->cs;
    return (lop_mat){(char *)a->p + at * (int64_t)lop_dtype_size(a->dt), m, n, a->rs, a->cs, a->dt};
}
/* b <- b L^-H for the lower triangle l: the transposes are conj(L)^-1 b^T. */
static lop_status solve_right(const lop_mat *l, const lop_mat *b, bool alone) {
    const lop_mat lt = flip(l), bt = flip(b);
    return alone ? lopk_solve_right_alone(l, b) : lopk_trsm(&lt, false, false, 'C', &bt);
}

lop_status lopk_potrf(const lop_mat *a, int64_t *info) {
    LOP_ASSERT(a->m == a->n);
    const int64_t n = a->n, step = n > lopk_potrf_largest ? lopk_potrf_block : lopk_lone_block;
    if ((n <= lopk_potrf_largest && !lopk_goes_by_blocks(a)) || a->rs != 1)
        return lopk_potrf_whole(a, info);
    const bool alone = n <= lopk_potrf_largest && lopk_goes_alone(a);
    for (int64_t i = 0; i < n; i += step) {
        const int64_t many = n - i < step ? n - i : step, rest = n - i - many;
        const lop_mat head = part(a, i, many, i, many), below = part(a, i + many, rest, i, many),
                      corner = part(a, i + many, rest, i + many, rest);
        lop_status st = lopk_potrf_whole(&head, info);
        if (st == LOP_SINGULAR) *info += i;
        if (st == LOP_OK && rest) st = solve_right(&head, &below, alone);
        if (st == LOP_OK && rest)
            st = (alone ? lopk_herk_less_alone : lopk_herk_less)(&corner, &below);
        if (st != LOP_OK) return st;
    }
    return LOP_OK;
}

/* The upper triangle <- the conjugate of the lower one, the diagonal real. */
static void mirror(const lop_mat *a) {
    for (int64_t j = 0; j < a->n; j++) {
        const lop_mat row = part(a, j, 1, j + 1, a->n - j - 1),
                      column = part(a, j + 1, a->n - j - 1, j, 1), from = flip(&column);
        lopk_conj(&row, &from);
        char *diagonal = (char *)a->p + j * (a->rs + a->cs) * (int64_t)lop_dtype_size(a->dt);
        if (a->dt == LOP_c64) ((float *)(void *)diagonal)[1] = 0;
        if (a->dt == LOP_c128) ((double *)(void *)diagonal)[1] = 0;
    }
}

/* With B = L L^H: the eigenvalues of L^-1 A L^-H, whose eigenvectors are L^H V. */
lop_status lopk_hegvd(const lop_mat *a, const lop_mat *b, void *w, void *work, int64_t *info) {
    lop_status st = lopk_potrf(b, info);
    if (st == LOP_SINGULAR) *info += a->n;
    if (st != LOP_OK) return st;
    mirror(a);
    st = lopk_trsm(b, true, false, 'N', a);
    if (st == LOP_OK) st = solve_right(b, a, false);
    if (st == LOP_OK) st = lopk_heevd(a, w, work, info);
    return st == LOP_OK ? lopk_trsm(b, true, false, 'C', a) : st;
}
