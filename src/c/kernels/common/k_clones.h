/* k_clones.h: LOPK_CLONES before a function builds it once per x86-64 level and picks at load time.
 * LOPK_ONLY (CMake's PYLINOP_SIMD) is for tests on one machine of what others run: 1 takes the
 * baseline alone, 2 AVX2's variants, 3 AVX-512's; also where files choose at run time. */
#ifndef LOPK_CLONES_H
#define LOPK_CLONES_H

#include <stdint.h> /* defines __GLIBC__ where the library is that */

#ifndef LOPK_ONLY
#define LOPK_ONLY 0
#endif

#if LOPK_ONLY == 1
#define LOPK_CLONES
#elif LOPK_ONLY == 2
#define LOPK_CLONES __attribute__((target("arch=x86-64-v3")))
#elif LOPK_ONLY == 3
#define LOPK_CLONES __attribute__((target("arch=x86-64-v4")))
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&     \
    !defined(LOPK_NO_CLONES)
#if __GNUC__ >= 12
#define LOPK_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define LOPK_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define LOPK_CLONES
#endif

/* The loops are written to be vectorised, whatever -O level the rest is built with. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#define LOPK_CAT2(a, b) a##b
#define LOPK_CAT(a, b) LOPK_CAT2(a, b)

#endif
