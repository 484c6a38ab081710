/* k_toeplitz_solve.c: solves with square Toeplitz matrices by the generator of the inverse.
 *
 * The inverse is two products of triangular Toeplitz matrices, made of its first and last columns
 * (Gohberg and Semencul 1972); a solve is six transforms of length about 2 n, and its residual,
 * taken by two more, is what is believed: a column is refined at most twice, and refused where its
 * backward error is not small then. The columns are found, whichever is first:
 *   Hermitian, n large: by conjugate gradients with T. Chan's preconditioner, within few steps;
 *   Hermitian: by Durbin's recursion, n^2 multiply-adds;  general: by Levinson's, 2 n^2;
 *   where those do not lead to good solves (leading minors that nearly vanish): by elimination
 *   with exchanges of rows (k_toeplitz_gko.c), some 40 n^2.
 * Memory O(n) in all. Everything is computed in double precision and T is scaled by a power of two,
 * so that single precision loses nothing on the way. */
#include "k_toeplitz_solve.h"

#include "kernels/common/k_clones.h"
#include "kernels/fft/k_fft.h"
#include "kernels/common/kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-math-errno")
#endif

enum { WHOLE, LOWER_A, LOWER_B, UPPER_A, UPPER_B, SPECTRA };
enum { BY_NOTHING, BY_GRADIENTS, BY_RECURSION, BY_ELIMINATION };
enum {
    ROUNDS = 2,  /* refinements */
    FEWEST = 14, /* steps of gradients that are worth a try */
    MOST = 60,   /* and that are taken */
    LOOK = 8,    /* after so many: is the end in sight, */
    BACK = 4     /* by the rate of so many? */
};
enum {
    SOLVING = 6, /* the last vector that solves need */
    FIRST_C = 8,
    FIRST_R = 9,
    VECTORS = 10,
    NUMBERS = 5
};
#define UNIT (DBL_EPSILON / 2)
static const double GOOD = 8 * UNIT, /* backward error that needs no refinement */
    ENOUGH = 90 * UNIT,              /* that is believed: 1e-14 */
    LARGE = 1e150,                   /* whose square is a number */
    NOTHING = 0x1p-100,              /* of a matrix whose largest number is near 1 */
    TAME = 1e6;                      /* |T| |T^-1 e_0| below which no trial is needed */

typedef struct __attribute__((may_alias)) cell {
    double re, im;
} cell;

/* What lies in a factor, and the places within it and in scratch. */
typedef struct head {
    int64_t n, N, way, exponent, dt;
    double norm, near;
} head;
typedef struct toep {
    lop_dtype dt;
    int64_t n, N, count; /* cells of a spectrum */
    int exponent;        /* T lies here times 2^-exponent */
    double norm;         /* of that, from below */
    double near;         /* 1 / (|T| |column of T^-1|), the first or last, in 1-norms */
    char *plan;
    cell *spectrum[SPECTRA];
    char *work, *chan, *gko_plan, *gko_room;
    cell *f, *g;
    void *vector[VECTORS], *line;
    double _Complex *gko[NUMBERS];
} toep;
/* Bytes of a factor, of the scratch to make one, and to solve by one. */
typedef struct sizes {
    size_t kept, factoring, solving;
} sizes;
/* One column of whatever dtype. */
typedef struct view {
    char *p;
    int64_t step;
    lop_dtype dt;
} view;

/* 2^k in two factors, either in range. */
typedef struct power {
    double half, rest;
} power;
static double two_to(int k) { return ldexp(1, k > 1000 ? 1000 : k < -1000 ? -1000 : k); }
static power power_of(int k) { return (power){two_to(k / 2), two_to(k - k / 2)}; }

static size_t room(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
/* By numbers: sizes are found with places that begin at 0. */
static char *take(uintptr_t *p, size_t bytes) {
    const uintptr_t here = *p;
    *p += room(bytes);
    return (char *)here;
}
static int64_t length_for(int64_t n, lop_dtype dt) {
    return n >= 1 && n <= (int64_t)1 << 38 ? lopk_fft_good(2 * n - 1, dt) : 0;
}
static int64_t cells_of(int64_t N, lop_dtype dt) { return dt == LOP_f64 ? N / 2 + 1 : N; }

/* The places in a factor at `factor` and in scratch at `scratch`; how many bytes each takes. */
static void places(toep *t, int64_t n, int64_t N, lop_dtype dt, char *factor, char *scratch,
                   sizes *z) {
    const size_t cell_bytes = (size_t)cells_of(N, dt) * sizeof(cell), element = lop_dtype_size(dt);
    uintptr_t k = (uintptr_t)factor + room(sizeof(head)), s = (uintptr_t)scratch;
    size_t work = lopk_fft_work_bytes(N, dt), other = lopk_fft_work_bytes(n, dt),
           third = lopk_fft_work_bytes(n, LOP_c128);
    t->dt = dt;
    t->n = n;
    t->N = N;
    t->count = cells_of(N, dt);
    t->plan = take(&k, lopk_fft_plan_bytes(N, dt));
    for (int i = 0; i < SPECTRA; i++) t->spectrum[i] = (cell *)(void *)take(&k, cell_bytes);
    if (other > work) work = other;
    t->work = take(&s, third > work ? third : work);
    t->f = (cell *)(void *)take(&s, cell_bytes);
    t->g = (cell *)(void *)take(&s, cell_bytes);
    for (int i = 0; i < VECTORS; i++) {
        t->vector[i] = take(&s, (size_t)n * element);
        if (i == SOLVING) z->solving = s - (uintptr_t)scratch + 64;
    }
    t->line = take(&s, (size_t)N * element);
    t->chan = take(&s, lopk_fft_plan_bytes(n, dt));
    t->gko_plan = take(&s, lopk_fft_plan_bytes(n, LOP_c128));
    for (int i = 0; i < NUMBERS; i++)
        t->gko[i] = (double _Complex *)(void *)take(&s, ((size_t)n + 1) * sizeof(double _Complex));
    t->gko_room = take(&s, lopk_gko_scratch(n));
    z->kept = k - (uintptr_t)factor;
    z->factoring = s - (uintptr_t)scratch + 64;
}
static sizes sizes_of(int64_t n, lop_dtype dt) {
    toep t;
    sizes z = {0, 0, 0};
    const int64_t N = length_for(n, dt);
    if (N) places(&t, n, N, dt, NULL, NULL, &z);
    return z;
}
size_t lopk_toep_bytes(int64_t n, lop_dtype dt) { return sizes_of(n, dt).kept; }
size_t lopk_toep_factor_scratch(int64_t n, lop_dtype dt) { return sizes_of(n, dt).factoring; }
size_t lopk_toep_solve_scratch(int64_t n, lop_dtype dt) { return sizes_of(n, dt).solving; }
size_t lopk_toep_det_scratch(int64_t n, lop_dtype dt) {
    const sizes z = sizes_of(n, dt);
    return z.kept ? z.kept + z.factoring : 0;
}
static void open_at(toep *t, int64_t n, lop_dtype dt, const void *factor, void *scratch) {
    sizes z;
    char *base = (char *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    places(t, n, length_for(n, dt), dt, (char *)(uintptr_t)factor, base, &z);
}

/* y <- s x; y may be x. */
LOPK_CLONES static void spectrum_times(int64_t n, cell *y, const cell *s, const cell *x) {
    for (int64_t j = 0; j < n; j++) {
        const cell a = s[j], b = x[j];
        y[j] = (cell){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
    }
}
/* y <- s y - w x. */
LOPK_CLONES static void spectrum_less(int64_t n, cell *restrict y, const cell *restrict s,
                                      const cell *restrict w, const cell *restrict x) {
    for (int64_t j = 0; j < n; j++) {
        const cell a = s[j], b = y[j], c = w[j], d = x[j];
        y[j] = (cell){a.re * b.re - a.im * b.im - (c.re * d.re - c.im * d.im),
                      a.re * b.im + a.im * b.re - (c.re * d.im + c.im * d.re)};
    }
}
/* y <- s conj(x). */
LOPK_CLONES static void spectrum_adjoint(int64_t n, cell *restrict y, const cell *restrict x,
                                         double s) {
    for (int64_t j = 0; j < n; j++) y[j] = (cell){s * x[j].re, -s * x[j].im};
}

/* Gradients pay as long as all their steps cost no more than Durbin's recursion; fewer than a kind
 * matrix needs are not worth a try. Measured 2026-11-21 on an AMD EPYC (Zen 3), one thread:
 * recursion 0.25 n^2 ns (c128 1.2), a step 2 n log2(2 n) ns (c128 4.5). */
static int most_steps(int64_t n, lop_dtype dt) {
    const double m = (double)n, one = (dt == LOP_f64 ? 2 : 4.5) * log2(2 * m),
                 steps = (dt == LOP_f64 ? 0.25 : 1.2) * m / one;
    return steps < FEWEST ? 0 : steps > MOST ? MOST : (int)steps;
}

/* The first and last columns of T^-1 to gko[2], gko[3], the pivots to gko[4]. */
static bool gko_columns(const toep *t, const void *c, const void *r, bool is_complex) {
    for (int64_t j = 0; j < t->n; j++) {
        const lop_dtype dt = is_complex ? LOP_c128 : LOP_f64;
        t->gko[0][j] = lop_get(dt, c, j);
        t->gko[1][j] = lop_get(dt, r, j);
    }
    return lopk_fft_plan_init(t->gko_plan, t->n, LOP_c128) == LOP_OK &&
           lopk_gko(t->n, t->gko[0], t->gko[1], t->gko[2], t->gko[3], t->gko[4], t->gko_plan,
                    t->work, t->gko_room) == LOP_OK;
}

#define DT f64
#define E double
#define FAM FAM_F
#define FAM_F 2
#define FAM_C 3
#define FAM_B 0
#define FAM_I 1
#define LOPK_TEMPLATE "kernels/toeplitz/k_toeplitz_solve_per_dtype.h"
#include "kernels/common/k_each_one.h"
#define DT c128
#define R double
#define FAM FAM_C
#include "kernels/common/k_each_one.h"

#define BY_DTYPE(dt, f, ...) ((dt) == LOP_f64 ? f##_f64(__VA_ARGS__) : f##_c128(__VA_ARGS__))

/* c and r to vectors of the factor's own type, near 1 at their largest. False where that is 0 or no
 * number. */
static bool bring(const toep *t, const lop_mat *c, const lop_mat *r, void *to_c, void *to_r,
                  int *exponent) {
    const int64_t parts = t->dt == LOP_f64 ? 1 : 2;
    const lop_mat to[2] = {{to_c, t->n, 1, 1, 1, t->dt}, {to_r, t->n, 1, 1, 1, t->dt}};
    double *part[2] = {to_c, to_r}, top = 0;
    bool well = true;
    lopk_copy(&to[0], c);
    lopk_copy(&to[1], r);
    memcpy(to_r, to_c, lop_dtype_size(t->dt)); /* r[0] is not read */
    for (int i = 0; i < 2; i++)
        for (int64_t j = 0; j < parts * t->n; j++) {
            well = well && isfinite(part[i][j]);
            top = fmax(top, fabs(part[i][j]));
        }
    *exponent = 0;
    if (!well || top == 0) return false;
    *exponent = ilogb(top);
    const power by = power_of(-*exponent);
    for (int i = 0; i < 2; i++)
        for (int64_t j = 0; j < parts * t->n; j++) {
            const double v = part[i][j] * by.half * by.rest;
            part[i][j] = fabs(v) < 0x1p-400 ? 0 : v; /* products would be subnormal, and slow */
        }
    return true;
}

void lopk_toep_factor(void *factor, lop_dtype dt, const lop_mat *c, const lop_mat *r,
                      lopk_toep_pivots *det, void *scratch) {
    toep t;
    head *h = factor;
    if (det) det->known = false;
    open_at(&t, c->m, dt, factor, scratch);
    *h = (head){.n = t.n, .N = t.N, .way = BY_NOTHING, .dt = dt};
    if (lopk_fft_plan_init(t.plan, t.N, dt) != LOP_OK ||
        !bring(&t, c, r, t.vector[FIRST_C], t.vector[FIRST_R], &t.exponent))
        return;
    if (det) det->exponent = t.exponent;
    h->way = BY_DTYPE(dt, factor, &t, t.vector[FIRST_C], t.vector[FIRST_R], det);
    h->exponent = t.exponent;
    h->norm = t.norm;
    h->near = t.near;
}
double lopk_toep_norm(const void *factor) {
    const head *h = factor;
    return ldexp(h->norm, (int)h->exponent);
}
double lopk_toep_near(const void *factor) {
    const double near = ((const head *)factor)->near;
    return near < 1 ? near : 1;
}

lop_status lopk_toep_solve(const lop_mat *y, const void *factor, bool trans, bool conj, bool flip,
                           const lop_mat *b, void *scratch) {
    const head *h = factor;
    toep t;
    if (h->way == BY_NOTHING) return LOP_SINGULAR;
    open_at(&t, h->n, (lop_dtype)h->dt, factor, scratch);
    t.exponent = (int)h->exponent;
    t.norm = h->norm;
    const int parts = t.dt == LOP_f64 && lop_is_complex(y->dt) ? 2 : 1; /* real T, complex b */
    const lop_dtype dt = parts == 2 ? lop_dtype_real(y->dt) : y->dt;
    const int64_t size = (int64_t)lop_dtype_size(dt);
    for (int64_t j = 0; j < y->n; j++)
        for (int q = 0; q < parts; q++) {
            const view to = {(char *)y->p + (j * y->cs * parts + q) * size, y->rs * parts, dt},
                       from = {(char *)b->p + (j * b->cs * parts + q) * size, b->rs * parts, dt};
            if (!BY_DTYPE(t.dt, solve_one, &t, &to, &from, trans, conj, flip)) return LOP_SINGULAR;
        }
    return LOP_OK;
}

void lopk_toep_det(lopk_toep_pivots *det, lop_dtype dt, const lop_mat *c, const lop_mat *r,
                   void *scratch) {
    toep t;
    char *base = (char *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    det->known = false;
    open_at(&t, c->m, dt, base, base + lopk_toep_bytes(c->m, dt));
    if (lopk_fft_plan_init(t.plan, t.N, dt) != LOP_OK ||
        !bring(&t, c, r, t.vector[FIRST_C], t.vector[FIRST_R], &t.exponent))
        return;
    t.norm = 0;
    det->exponent = t.exponent;
    det->known = BY_DTYPE(dt, pivots, &t, t.vector[FIRST_C], t.vector[FIRST_R], det->pivot);
}

double lopk_toep_factor_flops(int64_t n, lop_dtype dt, bool gradients) {
    if (gradients && most_steps(n, dt) > 0) /* transforms: two of length n, two of 2 n a step */
        return FEWEST * 15 * (double)n * log2(2 * (double)n) * (dt == LOP_f64 ? 1 : 2);
    return 2 * (double)n * (double)n * (dt == LOP_f64 ? 1 : 4);
}
double lopk_toep_solve_flops(int64_t n, lop_dtype dt) {
    const double N = 2 * (double)n;
    return 8 * 2.5 * N * log2(N + 1) * (dt == LOP_f64 ? 1 : 2);
}
