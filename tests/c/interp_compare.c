/* interp_compare.c: the oracle's values against the library's: exact for integers, |got - want| <=
 * factor u mag for floats. */
#include "interp.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

val val_load(lop_dtype dt, const void *p, int64_t at) {
    val v = {0, 0, 0, 0};
    switch (dt) {
        /* clang-format off */
#define INT(name, type)                                                                            \
    case LOP_##name:                                                                               \
        v.i = (uint64_t)((const type *)p)[at];                                                     \
        v.re = (long double)((const type *)p)[at];                                                 \
        break;
        INT(i8, int8_t)
    INT(u8, uint8_t)
    INT(i16, int16_t)
    INT(u16, uint16_t)
    INT(i32, int32_t)
    INT(u32, uint32_t)
    INT(i64, int64_t)
    INT(u64, uint64_t)
#undef INT
        /* clang-format on */
    case LOP_b8: v.re = (long double)(v.i = ((const unsigned char *)p)[at] != 0); break;
    case LOP_f32: v.re = (long double)((const float *)p)[at]; break;
    case LOP_f64: v.re = (long double)((const double *)p)[at]; break;
    case LOP_c64:
        v.re = (long double)((const float *)p)[2 * at];
        v.im = (long double)((const float *)p)[2 * at + 1];
        break;
    default:
        v.re = (long double)((const double *)p)[2 * at];
        v.im = (long double)((const double *)p)[2 * at + 1];
    }
    v.mag = hypotl(v.re, v.im);
    return v;
}

static long double roundoff(lop_dtype dt) {
    return dt == LOP_f32 || dt == LOP_c64 ? 0x1p-24L : 0x1p-53L;
}

static bool near(val a, val b, lop_dtype dt, long double mag, double factor) {
    if (!lop_is_blas(dt)) {
        int bits = 8 * (int)lop_dtype_size(dt);
        uint64_t mask = dt == LOP_b8 ? 1 : bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
        return (a.i & mask) == (b.i & mask);
    }
    long double off = hypotl(a.re - b.re, a.im - b.im);
    return off <= (long double)factor * roundoff(dt) * mag + 1e-30L; /* NaN fails */
}

bool tv_same(const tv *a, const tv *b, lop_dtype dt, double factor) {
    if (a->core != b->core || a->m != b->m || a->n != b->n ||
        !lop_shape_equal(&a->batch, &b->batch))
        return false;
    for (int64_t i = 0; i < a->nb * a->m * a->n; i++)
        if (!near(a->v[i], b->v[i], dt, a->v[i].mag + b->v[i].mag, factor)) return false;
    return true;
}

bool tv_close(const tv *want, const lop_buf *got, double factor, char *why, size_t size) {
    int64_t per = want->m * want->n, at[LOP_MAXDIM] = {0};
    for (int64_t i = 0; i < want->nb * per; i++) {
        int64_t rest = i, offset = 0;
        for (int d = got->shape.ndim - 1; d >= 0; d--) {
            at[d] = rest % got->shape.dim[d];
            rest /= got->shape.dim[d];
            offset += at[d] * got->stride[d];
        }
        val g = val_load(got->dt, got->p, offset), w = want->v[i];
        if (near(g, w, got->dt, w.mag, factor)) continue;
        snprintf(
            why, size,
            "element %lld (batch %lld, row %lld, column %lld): got %.17Lg%+.17Lgi (%lld), want "
            "%.17Lg%+.17Lgi (%lld), mag %.3Lg",
            (long long)i, (long long)(per ? i / per : 0), (long long)(per ? i % per / want->n : 0),
            (long long)(per ? i % want->n : 0), g.re, g.im, (long long)g.i, w.re, w.im,
            (long long)w.i, w.mag);
        return false;
    }
    return true;
}
