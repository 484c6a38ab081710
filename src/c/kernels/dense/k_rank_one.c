/* k_rank_one.c: y = a b, y += alpha a b and y = z + alpha a b of a real column a and row b. BLAS's
 * gemm packs both for one multiplication an element; this is one pass over y, whose rows (or
 * columns, whichever lie together) get a multiple of b (of a) each. Each element is one product,
 * rounded as gemm rounds it, or one product and one sum. Cost: 2 m n flops, bound by memory. */
#include "blas_layout.h"
#include "k_blas.h"
#include "kernels/common/k_clones.h"

enum { LEAST = 16 }; /* elements side by side: shorter lines are no loop of their own */

#define LINES(T)                                                                                   \
    LOPK_CLONES static void lines_##T(T *restrict y, int64_t m, int64_t n, int64_t ld, const T *a, \
                                      int64_t step, const T *restrict b, T alpha, bool add) {      \
        for (int64_t i = 0; i < m; i++, y += ld) {                                                 \
            const T v = alpha * a[i * step];                                                       \
            if (add)                                                                               \
                for (int64_t j = 0; j < n; j++) y[j] += v * b[j];                                  \
            else                                                                                   \
                for (int64_t j = 0; j < n; j++) y[j] = v * b[j];                                   \
        }                                                                                          \
    }                                                                                              \
    LOPK_CLONES static void from_##T(T *restrict y, int64_t m, int64_t n, int64_t ld, const T *a,  \
                                     int64_t step, const T *restrict b, T alpha,                   \
                                     const T *restrict z, int64_t ldz) {                           \
        for (int64_t i = 0; i < m; i++, y += ld, z += ldz) {                                       \
            const T v = alpha * a[i * step];                                                       \
            for (int64_t j = 0; j < n; j++) y[j] = z[j] + v * b[j];                                \
        }                                                                                          \
    }
LINES(float)
LINES(double)
#undef LINES

#define RUN(T)                                                                                     \
    do {                                                                                           \
        if (other)                                                                                 \
            from_##T((T *)t.p, t.m, t.n, t.rs, (const T *)u.p, u.rs, (const T *)v.p, (T)alpha,     \
                     (const T *)z.p, z.rs);                                                        \
        else                                                                                       \
            lines_##T((T *)t.p, t.m, t.n, t.rs, (const T *)u.p, u.rs, (const T *)v.p, (T)alpha,    \
                      from != NULL);                                                               \
    } while (0)
bool lopk_rank_one(const lop_mat *y, double alpha, const lop_mat *a, const lop_mat *b,
                   const lop_mat *from) {
    LOP_ASSERT(a->n == 1 && b->m == 1 && y->m == a->m && y->n == b->n && y->dt == a->dt);
    LOP_ASSERT(!from || (from->m == y->m && from->n == y->n && from->dt == y->dt));
    const bool by_rows = is_row(y), other = from && from->p != y->p;
    if (lop_is_complex(y->dt) || !(by_rows || is_col(y))) return false;
    const lop_mat *seen = other ? from : y;
    const lop_mat t = by_rows ? *y : flip(y), u = by_rows ? *a : flip(b),
                  v = by_rows ? *b : flip(a), z = by_rows ? *seen : flip(seen);
    if (v.cs != 1 || z.cs != 1 || t.n < LEAST || t.m < 2) return false;
    if (y->dt == LOP_f32)
        RUN(float);
    else
        RUN(double);
    return true;
}
#undef RUN
