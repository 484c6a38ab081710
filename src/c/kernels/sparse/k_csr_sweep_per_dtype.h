/* k_csr_sweep_per_dtype.h: k_csr_sweep_per_index.h for one float dtype of vectors: entries of that
 * dtype or of half its width, both index types. */
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

#define ST EL
#define WIDE(a) (a)
#define IX int32_t
#define S_(name) LOPK_CAT(N_(name), _i32)
#include "k_csr_sweep_per_index.h"
#undef IX
#undef S_
#define IX int64_t
#define S_(name) LOPK_CAT(N_(name), _i64)
#include "k_csr_sweep_per_index.h"
#undef IX
#undef S_
#undef ST
#undef WIDE

#if LOPK_CAT(HALF_, DT)
#if FAM == FAM_C
static inline EL N_(step_wide)(step_pair a) { return (EL){(R)a.re, (R)a.im}; }
#define ST step_pair
#else
static inline EL N_(step_wide)(float a) { return (EL)a; }
#define ST float
#endif
#define WIDE(a) N_(step_wide)(a)
#define IX int32_t
#define S_(name) LOPK_CAT(N_(name), _half_i32)
#include "k_csr_sweep_per_index.h"
#undef IX
#undef S_
#define IX int64_t
#define S_(name) LOPK_CAT(N_(name), _half_i64)
#include "k_csr_sweep_per_index.h"
#undef IX
#undef S_
#undef ST
#undef WIDE
#endif

#endif
