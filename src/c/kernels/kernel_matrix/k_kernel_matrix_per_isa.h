/* k_kernel_matrix_per_isa.h: both dtypes' loops for one instruction set; included once per set by
 * k_kernel_matrix_loops.h, which defines ISA (a name), BYTES (of a vector) and, with X86, INTEL_
 * (the intrinsics' prefix).
 */
#define X_(name, tail) LOPK_CAT(LOPK_CAT(name, tail), ISA)

#define T double
#define U uint64_t
#define SINGLE 0
#define X(name) X_(name, _d_)
#ifdef INTEL_
#define LOW_(a, b) LOPK_CAT(INTEL_, min_pd)(a, b)
#define HIGH_(a, b) LOPK_CAT(INTEL_, max_pd)(a, b)
#define ROOT_(a) LOPK_CAT(INTEL_, sqrt_pd)(a)
#else
#define LOW_(a, b)                                                                                 \
    ((X(vec))(((X(bits))((a) < (b)) & (X(bits))(a)) | (~(X(bits))((a) < (b)) & (X(bits))(b))))
#define HIGH_(a, b)                                                                                \
    ((X(vec))(((X(bits))((a) > (b)) & (X(bits))(a)) | (~(X(bits))((a) > (b)) & (X(bits))(b))))
#define ROOT_(a) X(root)(a)
#endif
#include "k_kernel_matrix_per_dtype.h"
#undef LOW_
#undef HIGH_
#undef ROOT_
#undef SINGLE
#undef X
#undef U
#undef T

#define T float
#define U uint32_t
#define SINGLE 1
#define X(name) X_(name, _s_)
#ifdef INTEL_
#define LOW_(a, b) LOPK_CAT(INTEL_, min_ps)(a, b)
#define HIGH_(a, b) LOPK_CAT(INTEL_, max_ps)(a, b)
#define ROOT_(a) LOPK_CAT(INTEL_, sqrt_ps)(a)
#else
#define LOW_(a, b)                                                                                 \
    ((X(vec))(((X(bits))((a) < (b)) & (X(bits))(a)) | (~(X(bits))((a) < (b)) & (X(bits))(b))))
#define HIGH_(a, b)                                                                                \
    ((X(vec))(((X(bits))((a) > (b)) & (X(bits))(a)) | (~(X(bits))((a) > (b)) & (X(bits))(b))))
#define ROOT_(a) X(root)(a)
#endif
#include "k_kernel_matrix_per_dtype.h"
#undef LOW_
#undef HIGH_
#undef ROOT_
#undef SINGLE
#undef X
#undef U
#undef T

static const kernel_loops *const X_(loops, _)[2] = {&X_(loops, _s_), &X_(loops, _d_)};
#undef X_
#undef ISA
#undef BYTES
#undef INTEL_
