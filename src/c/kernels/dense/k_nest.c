/* k_nest.c: nests of two loops (k_nest.h), by dtype. Sums go in eight chains whatever the CPU, so
 * that their bits are the same on each. */
#include "k_nest.h"

#include "kernels/common/k_clones.h"

#include <string.h>

enum { TILE = 32 };
#define INLINED __attribute__((always_inline)) inline

#if defined(__GNUC__) && !defined(__clang__)
#define TURNS 1
/* A square of 4 x 4 elements of 4 or 8 bytes, turned: rows `across` and `from` bytes apart.
 * Shuffles move bits as they are. */
typedef float four_4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef double four_8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t mask_4 __attribute__((vector_size(16)));
typedef int64_t mask_8 __attribute__((vector_size(32)));

INLINED static void turn_4(char *to, int64_t across, const char *from, int64_t down) {
    const four_4 a = *(const four_4 *)from, b = *(const four_4 *)(from + down),
                 c = *(const four_4 *)(from + 2 * down), d = *(const four_4 *)(from + 3 * down);
    const mask_4 low = {0, 4, 1, 5}, high = {2, 6, 3, 7}, first = {0, 1, 4, 5}, last = {2, 3, 6, 7};
    const four_4 ab = __builtin_shuffle(a, b, low), cd = __builtin_shuffle(c, d, low),
                 ba = __builtin_shuffle(a, b, high), dc = __builtin_shuffle(c, d, high);
    *(four_4 *)to = __builtin_shuffle(ab, cd, first);
    *(four_4 *)(to + across) = __builtin_shuffle(ab, cd, last);
    *(four_4 *)(to + 2 * across) = __builtin_shuffle(ba, dc, first);
    *(four_4 *)(to + 3 * across) = __builtin_shuffle(ba, dc, last);
}

INLINED static void turn_8(char *to, int64_t across, const char *from, int64_t down) {
    const four_8 a = *(const four_8 *)from, b = *(const four_8 *)(from + down),
                 c = *(const four_8 *)(from + 2 * down), d = *(const four_8 *)(from + 3 * down);
    const mask_8 even = {0, 4, 2, 6}, odd = {1, 5, 3, 7}, first = {0, 1, 4, 5}, last = {2, 3, 6, 7};
    const four_8 ab = __builtin_shuffle(a, b, even), cd = __builtin_shuffle(c, d, even),
                 ba = __builtin_shuffle(a, b, odd), dc = __builtin_shuffle(c, d, odd);
    *(four_8 *)to = __builtin_shuffle(ab, cd, first);
    *(four_8 *)(to + across) = __builtin_shuffle(ba, dc, first);
    *(four_8 *)(to + 2 * across) = __builtin_shuffle(ab, cd, last);
    *(four_8 *)(to + 3 * across) = __builtin_shuffle(ba, dc, last);
}
#else
#define TURNS 0
#define turn_4(to, across, from, down) ((void)0)
#define turn_8(to, across, from, down) ((void)0)
#endif

/* rows runs of `bytes`, each so far from the one before: windows that are copied have many short
 * ones, which go by whole registers, the last of a run over what the one before it wrote. */
#define ENDS(WIDE)                                                                                 \
    for (int64_t i = 0; i < rows; i++, to += across, from += down) {                               \
        memcpy(to, from, WIDE);                                                                    \
        memcpy(to + bytes - (WIDE), from + bytes - (WIDE), WIDE);                                  \
    }
INLINED static void runs(char *restrict to, const char *restrict from, int64_t rows, int64_t bytes,
                         int64_t across, int64_t down) {
    if (bytes > 64 && bytes <= 128) {
        ENDS(64)
    } else if (bytes >= 32 && bytes <= 64) {
        ENDS(32)
    } else if (bytes >= 16 && bytes < 32) {
        ENDS(16)
    } else if (bytes >= 8 && bytes < 16) {
        ENDS(8)
    } else
        for (int64_t i = 0; i < rows; i++, to += across, from += down) {
            int64_t at = 0;
            for (; bytes < 512 && at + 64 <= bytes; at += 64) memcpy(to + at, from + at, 64);
            if (at && at < bytes)
                memcpy(to + bytes - 64, from + bytes - 64, 64);
            else if (at < bytes)
                memcpy(to, from, (size_t)bytes);
        }
}
#undef ENDS

/* Do rows so many bytes apart share their places in the cache? */
static inline bool page_apart(int64_t bytes) { return ((bytes + 16) & 4095) < 32; }

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
