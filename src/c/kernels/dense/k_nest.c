/* k_nest.c: nests of two loops (k_nest.h), by dtype. Sums go in eight chains whatever the CPU, so
 * that their bits are the same on each. */
#include "k_nest.h"

#include "kernels/common/k_clones.h"

enum { TILE = 32 };
#define INLINED __attribute__((always_inline)) inline

#define LOPK_TEMPLATE "kernels/dense/k_nest_per_dtype.h"
#define FAM_B 0
#define FAM_I 1
#define FAM_F 2
#define FAM_C 3
#define DT f32
#define E float
#define FAM FAM_F
#include "kernels/common/k_each_one.h"
#define DT f64
#define E double
#define FAM FAM_F
#include "kernels/common/k_each_one.h"
#define DT c64
#define R float
#define FAM FAM_C
#include "kernels/common/k_each_one.h"
#define DT c128
#define R double
#define FAM FAM_C
#include "kernels/common/k_each_one.h"

void lopk_nest(void *c, const void *a, const void *b, const lopk_loop *outer,
               const lopk_loop *inner, lop_dtype dt, bool accumulate, bool tiles) {
    LOP_ASSERT(lop_is_blas(dt));
    switch (dt) {
    case LOP_f32: nest_f32(c, a, b, outer, inner, accumulate, tiles); break;
    case LOP_f64: nest_f64(c, a, b, outer, inner, accumulate, tiles); break;
    case LOP_c64: nest_c64(c, a, b, outer, inner, accumulate, tiles); break;
    default: nest_c128(c, a, b, outer, inner, accumulate, tiles);
    }
}
