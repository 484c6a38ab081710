/* k_tiny_gemm.c: batches of tiny products. A call and a look at strides for each would take longer
 * than its 2 m n k flops: here the number of columns is a constant of the loops, of small square
 * matrices all sizes are. Cost: about 0.5 ns a multiply-add (f64, AVX2, 2026-11). */
#include "k_tiny_gemm.h"
#include "kernels/common/k_clones.h"

#include <string.h>

#define INLINE inline __attribute__((always_inline))
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=fast")
#endif

enum { HELD = 16 }; /* matrices whose columns are apart are put in order by so many */

/* Strides and steps in scalars. */
typedef struct tiny_job {
    int64_t m, n, k, yrs, ycs, ars, acs, brs, bcs, y_step, a_step, b_step, count;
    bool conj;
} tiny_job;

#define T float
#define CPLX 0
#define X(name) LOPK_CAT(name, _s)
#include "k_tiny_gemm_per_dtype.h"
#undef CPLX
#undef X
#define CPLX 1
#define X(name) LOPK_CAT(name, _c)
#include "k_tiny_gemm_per_dtype.h"
#undef CPLX
#undef X
#undef T
#define T double
#define CPLX 0
#define X(name) LOPK_CAT(name, _d)
#include "k_tiny_gemm_per_dtype.h"
#undef CPLX
#undef X
#define CPLX 1
#define X(name) LOPK_CAT(name, _z)
#include "k_tiny_gemm_per_dtype.h"
#undef CPLX
#undef X
#undef T

void lopk_tiny_gemm(const lop_mat *y, int64_t y_step, const lop_mat *a, int64_t a_step, bool conj_a,
                    const lop_mat *b, int64_t b_step, int64_t count) {
    LOP_ASSERT(y->m <= LOPK_TINY && y->n <= LOPK_TINY && a->n <= LOPK_TINY && a->n > 0);
    const int64_t e = lop_is_complex(y->dt) ? 2 : 1;
    if (y->n > 1 && y->cs != 1 && (y->rs == 1 || y->m == 1) && !(conj_a && e == 2)) {
        const lop_mat yt = {y->p, y->n, y->m, y->cs, y->rs, y->dt},
                      at = {a->p, a->n, a->m, a->cs, a->rs, a->dt},
                      bt = {b->p, b->n, b->m, b->cs, b->rs, b->dt};
        lopk_tiny_gemm(&yt, y_step, &bt, b_step, false, &at, a_step, count); /* y^T = b^T a^T */
        return;
    }
    const tiny_job g = {y->m,
                        y->n,
                        a->n,
                        y->rs * e,
                        (y->n > 1 ? y->cs : 1) * e,
                        a->rs * e,
                        a->cs * e,
                        b->rs * e,
                        (y->n > 1 ? b->cs : 1) * e,
                        y_step * e,
                        a_step * e,
                        b_step * e,
                        count,
                        conj_a && e == 2};
    switch (y->dt) {
    case LOP_f32: run_s(&g, y->p, a->p, b->p); break;
    case LOP_f64: run_d(&g, y->p, a->p, b->p); break;
    case LOP_c64: run_c(&g, y->p, a->p, b->p); break;
    default: run_z(&g, y->p, a->p, b->p);
    }
}
