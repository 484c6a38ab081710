/* k_each_dtype.h: loops for the four dtypes: includes the file PER_DTYPE with T (of a scalar),
 * CPLX, X (which makes a name) and, where CPLX, SWAP_ and SIGN_ (of a vector's scalars: real and
 * imaginary parts exchanged, and the signs of i times it). Included once per instruction set, with
 * BYTES of a vector and X_(name, tail). */
#define T double
#define CPLX 0
#define X(name) X_(name, _d_)
#include PER_DTYPE
#undef CPLX
#undef X
#define CPLX 1
#define X(name) X_(name, _z_)
#if BYTES == 64
#define SWAP_ 1, 0, 3, 2, 5, 4, 7, 6
#define SIGN_ -1, 1, -1, 1, -1, 1, -1, 1
#elif BYTES == 32
#define SWAP_ 1, 0, 3, 2
#define SIGN_ -1, 1, -1, 1
#else
#define SWAP_ 1, 0
#define SIGN_ -1, 1
#endif
#include PER_DTYPE
#undef SWAP_
#undef SIGN_
#undef CPLX
#undef X
#undef T

#define T float
#define CPLX 0
#define X(name) X_(name, _s_)
#include PER_DTYPE
#undef CPLX
#undef X
#define CPLX 1
#define X(name) X_(name, _c_)
#if BYTES == 64
#define SWAP_ 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#define SIGN_ -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1
#elif BYTES == 32
#define SWAP_ 1, 0, 3, 2, 5, 4, 7, 6
#define SIGN_ -1, 1, -1, 1, -1, 1, -1, 1
#else
#define SWAP_ 1, 0, 3, 2
#define SIGN_ -1, 1, -1, 1
#endif
#include PER_DTYPE
#undef SWAP_
#undef SIGN_
#undef CPLX
#undef X
#undef T
#undef PER_DTYPE
