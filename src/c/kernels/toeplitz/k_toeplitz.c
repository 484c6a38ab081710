/* k_toeplitz.c: Toeplitz times vector by the definition, for 13 dtypes.
 *
 *   y[i] = sum_j t[i - j] x[j],  t[d] = c[d] for d >= 0, r[-d] for d < 0
 *
 * In tiles of TILE x TILE the p + q - 1 diagonals a tile needs are copied to the stack as one run
 * (so transposition, conjugation and strides cost nothing further); then eight columns at a time,
 * y[i] += t[i + 7] x0 + ... + t[i] x7: overlapping loads of one run, everything in L1.
 * Cost: m n multiply-adds a column, about 4 (f64) or 8 (f32) a cycle with AVX2; memory: stack only.
 * Componentwise accurate, unlike the FFT's product (k_convolution.c). For integers the only way. */
#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <string.h>

/* Contraction to FMA is allowed here: bits may differ between CPUs, never between calls. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=fast")
#endif

enum { TILE = 256, PAD = 16 };

typedef struct toeplitz_args {
    const void *c, *r;
    int64_t cs, rs, split; /* diagonals d >= split come from c[d], the others from r[-d] */
    bool conj;
} toeplitz_args;

typedef void (*toeplitz_fn)(const lop_mat *y, const toeplitz_args *g, const lop_mat *x);

#define LOPK_TEMPLATE "kernels/toeplitz/k_toeplitz_per_dtype.h"
#include "kernels/common/k_each.h"

static const toeplitz_fn table[LOP_NDTYPE] = {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real) [LOP_##name] = toeplitz_##name,
#include "base/dtype.def"
#undef LOP_DTYPE
};

void lopk_toeplitz_direct(const lop_mat *y, const lop_mat *c, const lop_mat *r, bool trans,
                          bool conj, const lop_mat *x) {
    LOP_ASSERT(y->dt == x->dt && y->dt == c->dt && y->dt == r->dt && y->n == x->n);
    LOP_ASSERT(y->m == (trans ? r->m : c->m) && x->m == (trans ? c->m : r->m));
    /* Diagonal 0 is c[0] in both cases: transposed, it comes with the others that c holds. */
    const toeplitz_args g = trans ? (toeplitz_args){r->p, c->p, r->rs, c->rs, 1, conj}
                                  : (toeplitz_args){c->p, r->p, c->rs, r->rs, 0, conj};
    table[y->dt](y, &g, x);
}

/* Where the product by FFT (cached spectrum) passes the direct one, n x n, one vector: measured
 * 2026-11-21 on an AMD EPYC (Zen 3, AVX2, gcc 12), minima of 50 batches.
 * The FFT's time follows m + n, the direct one's m n: so compare 2 m n / (m + n), as of a square.
 */
int64_t lopk_toeplitz_crossover(lop_dtype dt, int64_t m, int64_t n) {
    static const int64_t square[4] = {160, 160, 55, 60};
    if (!lop_is_blas(dt)) return INT64_MAX;
    const double s = (double)square[dt - LOP_f32], lesser = (double)(m < n ? m : n);
    /* the larger side L with 2 lesser L / (lesser + L) = s; beyond any L once lesser <= s / 2 */
    if (2 * lesser <= s) return INT64_MAX;
    return (int64_t)(s * lesser / (2 * lesser - s));
}
