/* k_vectors.c: vectors of iterative solvers, see k_vectors.h. One pass over the memory each; a
 * single column runs as a line, several in tiles of one cache line's columns.
 *
 * Sums: 16 accumulators in blocks of 2048 elements, the blocks added up: an error of about
 * (n / 2048 + 128) u, of float32 in double. */
#include "k_vectors.h"

#include "k_clones.h"

#include <math.h>
#include <string.h>

enum { ACC = 16, BLOCK = 2048 };

/* The sum of the accumulators; inlined, so that it is vectorised as its callers are. */
static inline double fold(const double *s) {
    double a[4];
    for (int l = 0; l < 4; l++) a[l] = (s[l] + s[l + 4]) + (s[l + 8] + s[l + 12]);
    return (a[0] + a[2]) + (a[1] + a[3]);
}

#define FAM_F 2
#define FAM_C 3
#define FAM_B 0
#define FAM_I 1

#define DT f32
#define E float
#define FAM FAM_F
#define LOPK_TEMPLATE "kernels/common/k_vectors_per_dtype.h"
#include "k_each_one.h"
#define DT f64
#define E double
#define FAM FAM_F
#include "k_each_one.h"
#define DT c64
#define R float
#define FAM FAM_C
#include "k_each_one.h"
#define DT c128
#define R double
#define FAM FAM_C
#include "k_each_one.h"

typedef struct vec_table {
    int64_t size, width;
    void (*dot)(int64_t n, int64_t k, int w, const void *x, const void *y, double *re, double *im);
    void (*axpy)(int64_t n, int64_t k, int w, const double _Complex *a, const void *x, void *y);
    void (*xpby)(int64_t n, int64_t k, int w, const void *x, const double _Complex *b, void *y);
    void (*scale)(int64_t n, int64_t k, int w, const double _Complex *a, const void *x, void *y);
    void (*step)(int64_t n, int64_t k, int w, const double _Complex *a, const void *p,
                 const void *q, void *x, void *r, double *rr);
    double (*lsmr)(int64_t n, const double *abc, const void *v, void *h, void *h_bar, void *x);
    void (*minres)(int64_t n, int64_t k, int wide, const double _Complex *f, const void *v,
                   const void *w1, const void *w2, void *w, void *x, double *xx);
} vec_table;

#define ROW(dt, ctype)                                                                             \
    {sizeof(ctype), 64 / sizeof(ctype), dot_##dt,  axpy_##dt,  xpby_##dt,                          \
     scale_##dt,    step_##dt,          lsmr_##dt, minres_##dt}
static const vec_table rows[4] = {ROW(f32, elem_f32), ROW(f64, elem_f64), ROW(c64, elem_c64),
                                  ROW(c128, elem_c128)};
#undef ROW

static inline const vec_table *table_of(lop_dtype dt) { return &rows[dt - LOP_f32]; }

/* The columns from j on, w of them. */
#define TILES(t, k)                                                                                \
    for (int64_t j = 0, w = 0; w = (k) - j < (t)->width ? (k) - j : (t)->width, j < (k); j += w)
static inline const char *at(const vec_table *t, const void *x, int64_t j) {
    return (const char *)x + j * t->size;
}
static inline char *to(const vec_table *t, void *x, int64_t j) { return (char *)x + j * t->size; }

void lopk_vec_dot(lop_dtype dt, int64_t n, int64_t k, const void *x, const void *y,
                  double _Complex *out) {
    const vec_table *t = table_of(dt);
    double re[ACC], im[ACC];
    if (k == 1) {
        t->dot(n, 1, 1, x, y, re, im);
        *out = CMPLX(*re, *im);
        return;
    }
    TILES(t, k) {
        t->dot(n, k, (int)w, at(t, x, j), at(t, y, j), re, im);
        for (int64_t c = 0; c < w; c++) out[j + c] = CMPLX(re[c], im[c]);
    }
}

void lopk_vec_axpy(lop_dtype dt, int64_t n, int64_t k, const double _Complex *a, const void *x,
                   void *y) {
    const vec_table *t = table_of(dt);
    if (k == 1) {
        t->axpy(n, 1, 1, a, x, y);
        return;
    }
    TILES(t, k) t->axpy(n, k, (int)w, a + j, at(t, x, j), to(t, y, j));
}

void lopk_vec_xpby(lop_dtype dt, int64_t n, int64_t k, const void *x, const double _Complex *b,
                   void *y) {
    const vec_table *t = table_of(dt);
    if (k == 1) {
        t->xpby(n, 1, 1, x, b, y);
        return;
    }
    TILES(t, k) t->xpby(n, k, (int)w, at(t, x, j), b + j, to(t, y, j));
}

void lopk_vec_scale(lop_dtype dt, int64_t n, int64_t k, const double _Complex *a, const void *x,
                    void *y) {
    const vec_table *t = table_of(dt);
    TILES(t, k) t->scale(n, k, (int)w, a + j, at(t, x, j), to(t, y, j));
}

void lopk_vec_step(lop_dtype dt, int64_t n, int64_t k, const double _Complex *a, const void *p,
                   const void *q, void *x, void *r, double _Complex *rr) {
    const vec_table *t = table_of(dt);
    double sum[ACC];
    if (k == 1) {
        t->step(n, 1, 1, a, p, q, x, r, sum);
        *rr = CMPLX(*sum, 0);
        return;
    }
    TILES(t, k) {
        t->step(n, k, (int)w, a + j, at(t, p, j), at(t, q, j), to(t, x, j), to(t, r, j), sum);
        for (int64_t c = 0; c < w; c++) rr[j + c] = CMPLX(sum[c], 0);
    }
}

double lopk_vec_lsmr(lop_dtype dt, int64_t n, const double *abc, const void *v, void *h,
                     void *h_bar, void *x) {
    return table_of(dt)->lsmr(n, abc, v, h, h_bar, x);
}

void lopk_vec_minres(lop_dtype dt, int64_t n, int64_t k, const double _Complex *f, const void *v,
                     const void *w1, const void *w2, void *w, void *x, double *xx) {
    const vec_table *t = table_of(dt);
    double sum[ACC];
    for (int64_t j = 0, wide = 0; j < k; j += wide) {
        wide = k - j < t->width ? k - j : t->width;
        t->minres(n, k, (int)wide, f + j, at(t, v, j), at(t, w1, j), at(t, w2, j), to(t, w, j),
                  to(t, x, j), sum);
        memcpy(xx + j, sum, (size_t)wide * sizeof *xx);
    }
}

double lopk_vec_norm(lop_dtype dt, int64_t n, const void *x) {
    double _Complex sum;
    lopk_vec_dot(dt, n, 1, x, x, &sum);
    const double s = creal(sum);
    if ((s >= 1e-280 && s <= 1e300) || isnan(s)) return sqrt(s);
    const int64_t parts = lop_is_complex(dt) ? 2 * n : n;
    const bool single = dt == LOP_f32 || dt == LOP_c64;
    double most = 0, scaled = 0;
    for (int64_t i = 0; i < parts; i++)
        most = fmax(most, fabs(single ? (double)((const float *)x)[i] : ((const double *)x)[i]));
    if (most == 0 || isinf(most)) return most;
    for (int64_t i = 0; i < parts; i++) {
        double v = (single ? (double)((const float *)x)[i] : ((const double *)x)[i]) / most;
        scaled += v * v;
    }
    return most * sqrt(scaled);
}
