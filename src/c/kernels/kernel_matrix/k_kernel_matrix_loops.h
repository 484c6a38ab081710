/* k_kernel_matrix_loops.h: the loops over a tile of a kernel matrix, for each instruction set and
 * both dtypes (k_kernel_matrix_per_isa.h), and the choice between them. Part of
 * k_kernel_matrix.c, from which tests include it once more under another name. */
#ifndef LOPK_KERNEL_LOOPS_H
#define LOPK_KERNEL_LOOPS_H

#include "k_kernel_matrix.h"
#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <float.h>
#include <math.h>

#define INLINE inline __attribute__((always_inline))

enum { ABREAST = 4 }; /* vectors whose exponentials are taken together */

typedef struct tile_job {
    const void *x, *y, *w; /* packed points, weights */
    void *tile;
    int64_t rows, cols, d;
    double turn;
} tile_job;
typedef struct map_job {
    void *tile;
    int64_t count;
    double a, b;
    int word, degree;
} map_job;
typedef struct dot_job {
    const void *tile, *v, *vt;
    void *y, *yt;
    int64_t rows, cols, ld;
} dot_job;
typedef struct kernel_loops {
    void (*plain)(const tile_job *g), (*weighted)(const tile_job *g), (*dots)(const tile_job *g),
        (*sines)(const tile_job *g), (*map)(const map_job *g),
        (*times)(void *tile, const void *other, int64_t count), (*dot)(const dot_job *g),
        (*both)(const dot_job *g), (*exps)(void *y, const void *x, int64_t count);
    int width;
} kernel_loops;

#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 16")
#ifdef __OPTIMIZE__
#pragma GCC optimize("O3", "fp-contract=fast")
#endif
#else
#define UNROLL
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define INTEL_ _mm_
#define HAVE_WIDE 1
#endif
#define ISA base
#define BYTES 16
#include "k_kernel_matrix_per_isa.h"

#ifdef HAVE_WIDE
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define ISA avx2
#define BYTES 32
#define INTEL_ _mm256_
#include "k_kernel_matrix_per_isa.h"
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx2,fma")
#define ISA avx512
#define BYTES 64
#define INTEL_ _mm512_
#include "k_kernel_matrix_per_isa.h"
#pragma GCC pop_options
#endif

#ifdef LOPK_KERNEL_WIDE /* a test: AVX-512's loops, whose vectors the compiler takes apart */
#pragma GCC diagnostic ignored "-Wpsabi"
#define ISA wide
#define BYTES 64
#include "k_kernel_matrix_per_isa.h"
#endif

int lopk_kernel_force = LOPK_ONLY == 3 ? 0 : LOPK_ONLY;

static const kernel_loops *loops_of(bool is_double) {
#ifdef LOPK_KERNEL_WIDE
    if (lopk_kernel_force == 3) return loops_wide[is_double];
#endif
#ifdef HAVE_WIDE
    if (lopk_kernel_force == 0 && __builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq"))
        return loops_avx512[is_double];
    if (lopk_kernel_force != 1 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return loops_avx2[is_double];
#endif
    return loops_base[is_double];
}

#endif
