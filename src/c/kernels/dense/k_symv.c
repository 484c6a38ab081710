/* k_symv.c: y = A x by the upper triangle of a real symmetric A, in one pass over it: each element
 * serves two elements of y, those of its row and of its column. Cost: 2 n^2 flops, n^2 / 2 elements
 * read. A triangle that lies by columns is read by its columns: the same loop from the other end.
 */
#include "blas_layout.h"
#include "k_blas.h"
#include "kernels/common/k_clones.h"

enum { SIDE = 16 }; /* sums side by side */

/* The line of t elements a beside the diagonal: rest += v a; returns a . x. */
#define SYMV(T)                                                                                    \
    LOPK_CLONES static T line_##T(T *restrict rest, const T *restrict a, const T *restrict x, T v, \
                                  int64_t t) {                                                     \
        T sum[SIDE] = {0};                                                                         \
        int64_t j = 0;                                                                             \
        for (; j + SIDE <= t; j += SIDE)                                                           \
            for (int l = 0; l < SIDE; l++) {                                                       \
                sum[l] += a[j + l] * x[j + l];                                                     \
                rest[j + l] += v * a[j + l];                                                       \
            }                                                                                      \
        for (int w = SIDE / 2; w > 0; w /= 2)                                                      \
            for (int l = 0; l < w; l++) sum[l] += sum[l + w];                                      \
        for (; j < t; j++) {                                                                       \
            sum[0] += a[j] * x[j];                                                                 \
            rest[j] += v * a[j];                                                                   \
        }                                                                                          \
        return sum[0];                                                                             \
    }                                                                                              \
    static void symv_##T(T *y, const T *a, int64_t n, int64_t ld, bool rows, const T *x) {         \
        for (int64_t i = 0; i < n; i++) y[i] = 0;                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T *line = rows ? a + i * (ld + 1) + 1 : a + i * ld;                              \
            const int64_t at = rows ? i + 1 : 0, t = rows ? n - i - 1 : i;                         \
            const T sum = line_##T(y + at, line, x + at, x[i], t);                                 \
            y[i] += sum + a[i * (ld + 1)] * x[i];                                                  \
        }                                                                                          \
    }
SYMV(float)
SYMV(double)
#undef SYMV

bool lopk_symv(const lop_mat *y, const lop_mat *a, const lop_mat *x) {
    LOP_ASSERT(a->m == a->n && y->m == a->m && x->m == a->n && y->n == 1 && x->n == 1);
    const bool rows = a->cs == 1, cols = a->rs == 1;
    if (lop_is_complex(y->dt) || !(rows || cols) || (y->m > 1 && (y->rs != 1 || x->rs != 1)))
        return false;
    const int64_t ld = rows ? a->rs : a->cs;
    if (y->dt == LOP_f32)
        symv_float((float *)y->p, (const float *)a->p, a->m, ld, rows, (const float *)x->p);
    else
        symv_double((double *)y->p, (const double *)a->p, a->m, ld, rows, (const double *)x->p);
    return true;
}
