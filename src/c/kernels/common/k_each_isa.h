/* k_each_isa.h: loops for each instruction set: includes the file PER_ISA with ISA (a name) and
 * BYTES (of a vector). HAVE_WIDE: AVX2's with FMA and AVX-512's are there. WIDE_ALONE: no others.
 */
#ifndef WIDE_ALONE
#define ISA base
#define BYTES 16
#include PER_ISA
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define ISA avx2
#define BYTES 32
#include PER_ISA
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx2,fma")
#define ISA avx512
#define BYTES 64
#include PER_ISA
#pragma GCC pop_options
#define HAVE_WIDE 1
#endif
#undef PER_ISA
