/* k_small_lu_per_isa.h: the loops of k_small_lu.c for one instruction set; included once per set,
 * which defines ISA (a name) and BYTES (of a vector). */
#define X(name) LOPK_CAT(LOPK_CAT(name, _d_), ISA)
#define E double
#define BITS int64_t
#define BITS_MAX INT64_MAX
#define LEAST DBL_MIN
#include "k_small_lu_loops.h"
#undef X
#undef E
#undef BITS
#undef BITS_MAX
#undef LEAST
#define X(name) LOPK_CAT(LOPK_CAT(name, _s_), ISA)
#define E float
#define BITS int32_t
#define BITS_MAX INT32_MAX
#define LEAST FLT_MIN
#include "k_small_lu_loops.h"
#undef X
#undef E
#undef BITS
#undef BITS_MAX
#undef LEAST
#undef ISA
#undef BYTES
