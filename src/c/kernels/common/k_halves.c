/* k_halves.c: do the halves of a matrix agree, entry by entry across the diagonal? Tile by tile,
 * n^2 / 2 pairs, each read once. */
#include "kernels.h"

#include <float.h>
#include <math.h>

enum { TILE = 32, MOST_UNITS = 64 };

/* No entry is further from that across the diagonal than so much of it; NaN is. */
#define AGREE(name, type)                                                                          \
    static bool name(const lop_mat *a, type most) {                                                \
        const type *p = a->p;                                                                      \
        for (int64_t i0 = 0; i0 < a->m; i0 += TILE)                                                \
            for (int64_t j0 = 0; j0 <= i0; j0 += TILE)                                             \
                for (int64_t i = i0; i < a->m && i < i0 + TILE; i++)                               \
                    for (int64_t j = j0; j < i && j < j0 + TILE; j++) {                            \
                        const type x = p[i * a->rs + j * a->cs], y = p[j * a->rs + i * a->cs];     \
                        if (x != y &&                                                              \
                            !((type)fabs((double)(x - y)) <= most * (type)fabs((double)x)))        \
                            return false;                                                          \
                    }                                                                              \
        return true;                                                                               \
    }
AGREE(agree_f, float)
AGREE(agree_d, double)

bool lopk_halves_agree(const lop_mat *a) {
    const double units = a->m / 2 < MOST_UNITS ? (double)(a->m / 2) : MOST_UNITS;
    if (a->m != a->n) return false;
    if (a->dt == LOP_f32) return agree_f(a, (float)(units * FLT_EPSILON / 2));
    return a->dt == LOP_f64 && agree_d(a, units * DBL_EPSILON / 2);
}
