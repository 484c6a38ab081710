/* k_spgemm_per_dtype.h: k_spgemm_per_dtype_index.h for both index types, one dtype. */

/* |v| as a double; NaN as infinity. */
static inline double N_(modulus)(EL v) {
#if FAM == FAM_C
    const double m = hypot((double)v.re, (double)v.im);
#else
    const double m = fabs((double)v);
#endif
    return m == m ? m : INFINITY;
}

#define IX int32_t
#define I_(name) LOPK_CAT(name, _i32)
#define S_(name) LOPK_CAT(N_(name), _i32)
#include "k_spgemm_per_dtype_index.h"
#undef IX
#undef I_
#undef S_
#define IX int64_t
#define I_(name) LOPK_CAT(name, _i64)
#define S_(name) LOPK_CAT(N_(name), _i64)
#include "k_spgemm_per_dtype_index.h"
#undef IX
#undef I_
#undef S_
