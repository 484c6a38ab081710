/* k_sparse_step_t.h: k_sparse_step_i.h for both index types, one float dtype. */
#if FAM == FAM_F || FAM == FAM_C

#if FAM == FAM_C
static inline EL N_(step_times)(double r, EL a) { return (EL){(R)r * a.re, (R)r * a.im}; }
static inline double N_(step_square)(EL a) {
    return (double)a.re * (double)a.re + (double)a.im * (double)a.im;
}
#else
static inline EL N_(step_times)(double r, EL a) { return (EL)r * a; }
static inline double N_(step_square)(EL a) { return (double)a * (double)a; }
#endif

#define IX int32_t
#define S_(name) LOPK_CAT(N_(name), _i32)
#include "k_sparse_step_i.h"
#undef IX
#undef S_
#define IX int64_t
#define S_(name) LOPK_CAT(N_(name), _i64)
#include "k_sparse_step_i.h"
#undef IX
#undef S_

#endif
