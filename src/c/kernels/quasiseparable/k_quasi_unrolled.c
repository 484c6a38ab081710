/* k_quasi_unrolled.c: the recursions of k_quasi.c for few states in double precision, unrolled: up
 * to four of diagonal transitions, two and three of full ones; of complex numbers up to two of
 * diagonal ones, a column at a time (eight side by side are no faster there). Two levels of
 * instructions, not three: a loop body is shorter than a vector of 512 bits. */
#include "k_quasi_unrolled.h"
#include "k_quasi_arithmetic.h"

#define UNROLLED _Pragma("GCC unroll 8")
#define K_(name) N_(LOPK_CAT(LOPK_CAT(name, J), FULL))

#define DT f64
#define EL double
#define CJ(c, v) ((void)(c), (v))
#define RE(v) (v)
#define IM(v) (0.0)
#define WIDE 8
#define FULL 0
#define J 1
#include "k_quasi_unrolled_per_dtype.h"
#undef J
#define J 2
#include "k_quasi_unrolled_per_dtype.h"
#undef J
#define J 3
#include "k_quasi_unrolled_per_dtype.h"
#undef J
#define J 4
#include "k_quasi_unrolled_per_dtype.h"
#undef J
#undef FULL
#define FULL 1
#define J 2
#include "k_quasi_unrolled_per_dtype.h"
#undef J
#define J 3
#include "k_quasi_unrolled_per_dtype.h"
#undef J
#undef FULL
#undef DT
#undef EL
#undef CJ
#undef RE
#undef IM
#undef WIDE
#define DT c128
#define EL double _Complex
#define CJ(c, v) ((c) ? conj(v) : (v))
#define RE(v) creal(v)
#define IM(v) cimag(v)
#define WIDE 1
#define FULL 0
#define J 1
#include "k_quasi_unrolled_per_dtype.h"
#undef J
#define J 2
#include "k_quasi_unrolled_per_dtype.h"
#undef J
#undef FULL

static int key(const lopk_quasi *g) {
    if (g->dt == LOP_c128) return !g->full && g->J >= 1 && g->J <= 2 ? (int)g->J * 4 + 2 : 0;
    if (g->dt != LOP_f64 || g->J < 1 || g->J > 4) return 0;
    return !g->full || g->J == 2 || g->J == 3 ? (int)g->J * 4 + g->full : 0;
}
#define BY_STATES(g, f, otherwise)                                                                 \
    switch (key(g)) {                                                                              \
    case 4: return f(f64, double, 10);                                                             \
    case 8: return f(f64, double, 20);                                                             \
    case 12: return f(f64, double, 30);                                                            \
    case 16: return f(f64, double, 40);                                                            \
    case 9: return f(f64, double, 21);                                                             \
    case 13: return f(f64, double, 31);                                                            \
    case 6: return f(c128, double _Complex, 10);                                                   \
    case 10: return f(c128, double _Complex, 20);                                                  \
    default: otherwise;                                                                            \
    }

bool lopk_quasi_is_few(const lopk_quasi *g) { return key(g) != 0; }
int64_t lopk_quasi_few_ldl(const lopk_quasi *g, bool positive, double *D, void *W) {
#define F(dt, el, states) ldl##states##_##dt(g, positive, D, (el *)W)
    BY_STATES(g, F, return 0)
#undef F
}
bool lopk_quasi_few_walk(const lopk_quasi *g, const void *b, lopk_quasi_walk *w) {
#define F(dt, el, states) twisted##states##_##dt(g, b, w)
    BY_STATES(g, F, return false)
#undef F
}
void lopk_quasi_few_product(const lopk_quasi *g, int kb, int mode, void *y, int64_t ry,
                            const void *x, int64_t rx) {
#define F(dt, el, states) product##states##_##dt(g, kb, mode, y, ry, x, rx)
    BY_STATES(g, F, return)
#undef F
}
void lopk_quasi_few_back(const lopk_quasi *g, int kb, const double *D, const void *W, void *x) {
#define F(dt, el, states) back##states##_##dt(g, kb, D, W, x)
    BY_STATES(g, F, return)
#undef F
}
