/* k_fft_loops.c: the FFT's loops, built for the baseline and, on x86-64, for AVX2 with FMA.
 *
 * A transform of length len = n1 n2 runs as n2 transforms of length n1 down the columns, a turn by
 * exp(-2 pi i k1 n2 / len), and n1 transforms of length n2 (Bailey 1990, "FFTs in external or
 * hierarchical memory"). B neighbouring columns fill the vector registers, so no pass ever
 * shuffles, and a block of B columns stays in the first or second cache for all its passes: the
 * array crosses memory twice. Within a block: decimation in time, in place, mixed radix 8, 4, 2, 3,
 * 5 and odd primes to 31, digits reversed while loading (that load is strided anyhow). Lengths that
 * do not split into two multiples of the vector run the same passes one column wide. Contraction to
 * FMA is allowed here: bits may differ between CPUs, never between calls. */
#include "kernels/common/k_clones.h"
#include "k_fft_plan.h"

#define INLINE inline __attribute__((always_inline))

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=fast")
#endif

#define ISA base
#define WIDE 0
#include "k_fft_per_isa.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define ISA avx2
#define WIDE 1
#include "k_fft_per_isa.h"
#pragma GCC pop_options
#define HAVE_AVX2 1
#endif

int lopk_fft_force_plain = LOPK_ONLY == 1;

const fft_loops *lopk_fft_loops(void) {
#ifdef HAVE_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && !lopk_fft_force_plain)
        return &loops_avx2;
#endif
    return &loops_base;
}
