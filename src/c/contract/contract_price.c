/* contract_price.c: what one product of matrices costs, by measured rates. */
#include "contract_parts.h"
#include "kernels/dense/k_small_gemm.h"

#include <math.h>
#include <stdlib.h>

/* Measured, EPYC, one thread, float64: BLAS, a call of it, elements of a batch of tiny products and
 * their flops (short rows of real numbers, all else), odd strides. */
static const double RATE = 6e10, THIN = 8, BANDWIDTH = 1.5e10, CALL = 1e-7, EACH = 1e-9,
                    TINY_ROWS = 4e10, TINY_RATE = 1e10, ODD = 1.5e9;
/* Of products of matrices, 2026-11-26, both real dtypes, 8 to 1536 rows, columns, terms: shares of
 * the work at one for few terms and few rows; by loops of our own for few terms and for all others
 * (2026-11-27, 24 to 120 terms); a row of the result that ends within a vector; an element of an
 * operand that is turned on its way into one, near and from pages of their own, of one alone in its
 * cache line, of one in rows of more than 256 bytes that are gathered (2026-11-27: 0.6 to 0.92 of
 * the time in seven of ten contractions whose plan it changed, at most 1.04); bytes of a result
 * that leaves the second cache, in one piece and in rows of a larger one; rows of it hundreds of kB
 * apart, a share. */
static const double FEW_TERMS = 6, FEW_TERMS_OWN = 2, OWN = 0.03, FEW_ROWS = 1, ROW_END = 8e-9,
                    TURNED = 1e-9, TURNED_FAR = 2e-9, ALONE = 1.5e-9, GATHERED = 4.5e-10,
                    LEAVES = 2.7e10, LEAVES_IN_ROWS = 1e10, SECOND_CACHE = 1 << 20,
                    PAGES_APART = 1.4;
enum { VECTOR = 64, GATHER = 256, PAGE = 1 << 12, APART = 1 << 18 }; /* bytes */

static double weight(lop_dtype dt) {
    return (lop_is_complex(dt) ? 4 : 1) * (dt == LOP_f32 || dt == LOP_c64 ? 0.5 : 1);
}

bool lop_contract_simple(int64_t m, int64_t n, int64_t rs, int64_t cs) {
    return ((cs == 1 || n <= 1) && (rs >= n || m <= 1)) ||
           ((rs == 1 || m <= 1) && (cs >= m || n <= 1));
}

bool lop_contract_own_loops(lop_dtype dt, const lop_contract_step *g) {
    if (g->group) return true;
    const lop_mat y = {NULL, g->m, g->n, g->cm, g->cn, dt},
                  a = {NULL, g->m, g->k, g->am, g->ak, dt},
                  b = {NULL, g->k, g->n, g->bk, g->bn, dt};
    return lopk_small_suits(&y, &a, &b, 1);
}

/* One product of matrices. Vectors run along the result's rows (or columns, where these lie
 * together): what does not fill one is lost. Small ones take operands of any strides. What is read
 * and written waits for memory, whatever is computed meanwhile; adds: the result is read as well.
 * `all`: bytes of the result of all products; rows of it that lie in pages of their own leave the
 * cache as slowly as those of a large one (2026-11-26, 64 of 256 x 256 in float32: 1.13). */
double lop_contract_gemm_seconds(lop_dtype dt, const lop_contract_step *g, bool adds, double all) {
    const double m = (double)g->m, n = (double)g->n, k = (double)g->k, flops = 2 * m * n * k,
                 size = (double)lop_dtype_size(dt);
    const bool small = lop_contract_own_loops(dt, g),
               plain = lop_contract_simple(g->m, g->n, g->cm, g->cn) &&
                       lop_contract_simple(g->m, g->k, g->am, g->ak) &&
                       lop_contract_simple(g->k, g->n, g->bk, g->bn);
    if (!plain && !small) return CALL + flops * weight(dt) / ODD;
    const double move = (m * k + k * n + (adds ? 2 : 1) * m * n) * size / BANDWIDTH,
                 least = fmin(fmin(m, n), k);
    double work = flops * weight(dt) / RATE;
    if (least <= 1) return CALL + fmax(work * (1 + THIN), move);
    const bool rows = g->cn == 1;
    const double along = rows ? n : m, across = rows ? m : n,
                 filled = ceil(along * size / VECTOR) * VECTOR / size;
    const double terms = small ? OWN + FEW_TERMS_OWN / k : FEW_TERMS / k;
    work *= filled / along * (1 + terms + FEW_ROWS / across);
    if (filled > along) work += across * ROW_END;
    const int64_t step = llabs(rows ? g->bn : g->am), between = llabs(rows ? g->cm : g->cn);
    if (small && step != 1)
        work += along * k * ((double)step * size < 4 * VECTOR ? TURNED : TURNED_FAR);
    else if (small && across > 8 && (double)llabs(rows ? g->bk : g->ak) * size > GATHER)
        work += along * k * GATHERED;
    if (small && between * (int64_t)size > APART) work *= PAGES_APART;
    if (!plain && (rows ? g->am != 1 && g->ak != 1 : g->bk != 1 && g->bn != 1))
        work += across * k * ALONE;
    if (m * n * size > SECOND_CACHE)
        work += m * n * size / ((rows ? g->cm > g->n : g->cn > g->m) ? LEAVES_IN_ROWS : LEAVES);
    else if (!small && all > SECOND_CACHE && between * (int64_t)size >= PAGE && along * size < PAGE)
        work += m * n * size / LEAVES_IN_ROWS;
    return CALL + work + move;
}

/* Each product of a batch of tiny ones. */
double lop_contract_tiny_seconds(lop_dtype dt, const lop_contract_step *g) {
    const bool rows = g->cn == 1 && g->bn == 1 && g->n > 2 && !lop_is_complex(dt);
    const double flops = 2 * (double)(g->m * g->n * g->k);
    return EACH + (rows ? flops / TINY_ROWS : flops * weight(dt) / TINY_RATE);
}
