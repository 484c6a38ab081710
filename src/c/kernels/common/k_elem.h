/* k_elem.h: the element type and its arithmetic, once per dtype; included by the template headers'
 * users, who define before including:
 *   DT      the dtype's name (f64)        FAM  one of FAM_B FAM_I FAM_F FAM_C
 *   E       real dtypes: the C type        W    integers: the unsigned type to compute in
 *   R       complex: the part's type
 * Gives the type elem_DT and ops add_DT, sub_DT, mul_DT, mulc_DT (conj(a) b), conj_DT, zero_DT.
 * Complex numbers are a struct, so that products are the plain four multiplications. */
#define N_(name) LOPK_CAT(LOPK_CAT(name, _), DT)

#if FAM == FAM_C
typedef struct __attribute__((may_alias)) {
    R re, im;
} N_(elem);
#else
typedef E N_(elem);
#endif
#define EL N_(elem)

#if FAM == FAM_B
static inline EL N_(add)(EL a, EL b) { return (EL)((a | b) != 0); }
static inline EL N_(sub)(EL a, EL b) { return (EL)((a | b) != 0); }
static inline EL N_(mul)(EL a, EL b) { return (EL)((a != 0) & (b != 0)); }
#elif FAM == FAM_I
static inline EL N_(add)(EL a, EL b) { return (EL)((W)a + (W)b); }
static inline EL N_(sub)(EL a, EL b) { return (EL)((W)a - (W)b); }
static inline EL N_(mul)(EL a, EL b) { return (EL)((W)a * (W)b); }
#elif FAM == FAM_F
static inline EL N_(add)(EL a, EL b) { return a + b; }
static inline EL N_(sub)(EL a, EL b) { return a - b; }
static inline EL N_(mul)(EL a, EL b) { return a * b; }
#else
static inline EL N_(add)(EL a, EL b) { return (EL){a.re + b.re, a.im + b.im}; }
static inline EL N_(sub)(EL a, EL b) { return (EL){a.re - b.re, a.im - b.im}; }
static inline EL N_(mul)(EL a, EL b) {
    return (EL){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
#endif

#if FAM == FAM_C
static inline EL N_(conj)(EL a) { return (EL){a.re, -a.im}; }
static inline EL N_(zero)(void) { return (EL){0, 0}; }
#else
static inline EL N_(conj)(EL a) { return a; }
static inline EL N_(zero)(void) { return (EL)0; }
#endif
static inline EL N_(mulc)(EL a, EL b) { return N_(mul)(N_(conj)(a), b); }
