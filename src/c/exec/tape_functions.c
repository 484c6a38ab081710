/* tape_functions.c: the functions of arrays on a tape. Elementwise loops over any strides; sums in
 * the order of NumPy's, so that both roads of a program give the same bits. */
#include "kernels/common/kernels.h"
#include "tape.h"

#include <math.h>
#include <string.h>

typedef struct walk {
    int nd;
    int64_t dim[LOP_MAXDIM], stride[3][LOP_MAXDIM]; /* of out, a, b: bytes */
    char *at[3];
} walk;

/* The strides of an operand along the dimensions of the result; false: it does not broadcast. */
static bool add_operand(walk *w, int j, const lop_buf *b) {
    const int shift = w->nd - b->shape.ndim;
    if (shift < 0) return false;
    const int64_t size = (int64_t)lop_dtype_size(b->dt);
    w->at[j] = b->p;
    for (int d = 0; d < w->nd; d++) {
        const int64_t own = d < shift ? 1 : b->shape.dim[d - shift];
        if (own != 1 && own != w->dim[d]) return false;
        w->stride[j][d] = own == 1 ? 0 : b->stride[d - shift] * size;
    }
    return true;
}

/* Dimensions that follow one another in every operand are one. */
static void merge(walk *w) {
    int n = 0;
    for (int d = 0; d < w->nd; d++) {
        bool on = n > 0;
        for (int j = 0; on && j < 3; j++)
            on = !w->at[j] || w->stride[j][n - 1] == w->stride[j][d] * w->dim[d];
        const int to = on ? n - 1 : n++;
        w->dim[to] = on ? w->dim[to] * w->dim[d] : w->dim[d];
        for (int j = 0; j < 3; j++) w->stride[j][to] = w->stride[j][d];
    }
    w->nd = n;
}

static bool walk_open(walk *w, const lop_buf *out, const lop_buf *a, const lop_buf *b) {
    memset(w, 0, sizeof *w);
    w->nd = out->shape.ndim;
    for (int d = 0; d < w->nd; d++) w->dim[d] = out->shape.dim[d];
    if (!add_operand(w, 0, out) || (a && !add_operand(w, 1, a)) || (b && !add_operand(w, 2, b)))
        return false;
    merge(w);
    return true;
}

typedef void (*inner)(int64_t n, char *y, int64_t ys, const char *a, int64_t as, const char *b,
                      int64_t bs);

#define EACH(name, T, expression)                                                                  \
    static void name(int64_t n, char *y, int64_t ys, const char *a, int64_t as, const char *b,     \
                     int64_t bs) {                                                                 \
        const int64_t unit = (int64_t)sizeof(T);                                                   \
        if (ys == unit && as == unit && bs == unit) {                                              \
            const T *p = (const T *)(const void *)a, *q = (const T *)(const void *)b;              \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T u = p[i], v = q[i];                                                        \
                (void)v;                                                                           \
                ((T *)(void *)y)[i] = expression;                                                  \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i++, y += ys, a += as, b += bs) {                               \
            const T u = *(const T *)(const void *)a, v = *(const T *)(const void *)b;              \
            (void)v;                                                                               \
            *(T *)(void *)y = expression;                                                          \
        }                                                                                          \
    }
#define EACH_KIND(T, letter)                                                                       \
    EACH(add_##letter, T, u + v)                                                                   \
    EACH(subtract_##letter, T, u - v)                                                              \
    EACH(multiply_##letter, T, u *v)                                                               \
    EACH(negative_##letter, T, -u)                                                                 \
    EACH(copy_##letter, T, u)
EACH_KIND(float, f)
EACH_KIND(double, d)
EACH_KIND(float _Complex, F)
EACH_KIND(double _Complex, D)
EACH(divide_f, float, u / v)
EACH(divide_d, double, u / v)
EACH(conj_F, float _Complex, conjf(u))
EACH(conj_D, double _Complex, conj(u))

#define CAST(name, T, U, expression)                                                               \
    static void name(int64_t n, char *y, int64_t ys, const char *a, int64_t as, const char *b,     \
                     int64_t bs) {                                                                 \
        (void)b;                                                                                   \
        (void)bs;                                                                                  \
        for (int64_t i = 0; i < n; i++, y += ys, a += as) {                                        \
            const T u = *(const T *)(const void *)a;                                               \
            *(U *)(void *)y = (U)(expression);                                                     \
        }                                                                                          \
    }
CAST(f_to_d, float, double, u)
CAST(d_to_f, double, float, u)
CAST(F_to_f, float _Complex, float, crealf(u))
CAST(D_to_d, double _Complex, double, creal(u))
CAST(D_to_f, double _Complex, float, creal(u))
CAST(F_to_d, float _Complex, double, crealf(u))
CAST(F_to_D, float _Complex, double _Complex, u)
CAST(f_to_F, float, float _Complex, u)
CAST(d_to_D, double, double _Complex, u)
CAST(D_to_F, double _Complex, float _Complex, u)

/* By dtype: f32, f64, c64, c128. NULL: there is none. */
static inner of_kind(lop_tape_what what, int dt) {
    static const inner add[] = {add_f, add_d, add_F, add_D},
                       subtract[] = {subtract_f, subtract_d, subtract_F, subtract_D},
                       multiply[] = {multiply_f, multiply_d, multiply_F, multiply_D},
                       divide[] = {divide_f, divide_d, NULL, NULL},
                       negative[] = {negative_f, negative_d, negative_F, negative_D},
                       conjugate[] = {copy_f, copy_d, conj_F, conj_D};
    switch (what) {
    case LOP_TAPE_ADD: return add[dt];
    case LOP_TAPE_SUBTRACT: return subtract[dt];
    case LOP_TAPE_MULTIPLY: return multiply[dt];
    case LOP_TAPE_DIVIDE: return divide[dt];
    case LOP_TAPE_NEGATIVE: return negative[dt];
    case LOP_TAPE_CONJ: return conjugate[dt];
    default: return NULL;
    }
}

static inner of_cast(int from, int to) {
    static const inner cast[4][4] = {{copy_f, f_to_d, f_to_F, NULL},
                                     {d_to_f, copy_d, NULL, d_to_D},
                                     {F_to_f, F_to_d, copy_F, F_to_D},
                                     {D_to_f, D_to_d, D_to_F, copy_D}};
    return cast[from][to];
}

static void each(walk *w, inner f) {
    int64_t at[LOP_MAXDIM] = {0};
    const int last = w->nd - 1;
    for (int d = 0; d < w->nd; d++)
        if (w->dim[d] == 0) return;
    for (;;) {
        char *p[3] = {w->at[0], w->at[1], w->at[2] ? w->at[2] : w->at[1]};
        for (int j = 0; j < 3; j++)
            for (int d = 0; d < last; d++) p[j] += at[d] * w->stride[j < 2 || w->at[2] ? j : 1][d];
        const int64_t n = last < 0 ? 1 : w->dim[last];
        const int64_t ys = last < 0 ? 0 : w->stride[0][last],
                      as = last < 0 ? 0 : w->stride[1][last];
        f(n, p[0], ys, p[1], as, p[2], last < 0 ? 0 : w->stride[w->at[2] ? 2 : 1][last]);
        int d = last - 1;
        while (d >= 0 && ++at[d] == w->dim[d]) at[d--] = 0;
        if (d < 0) return;
    }
}

/* -- sums: NumPy's pairwise order, of elements `s` apart */

#define PAIRWISE(name, T)                                                                          \
    static T name(const T *a, int64_t n, int64_t s) {                                              \
        if (n < 8) {                                                                               \
            T sum = (T) - 0.0;                                                                     \
            for (int64_t i = 0; i < n; i++) sum += a[i * s];                                       \
            return sum;                                                                            \
        }                                                                                          \
        if (n > 128) {                                                                             \
            int64_t half = n / 2;                                                                  \
            half -= half % 8;                                                                      \
            return name(a, half, s) + name(a + half * s, n - half, s);                             \
        }                                                                                          \
        T r[8];                                                                                    \
        int64_t i = 8;                                                                             \
        for (int64_t k = 0; k < 8; k++) r[k] = a[k * s];                                           \
        for (; i < n - n % 8; i += 8)                                                              \
            for (int64_t k = 0; k < 8; k++) r[k] += a[(i + k) * s];                                \
        T sum = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));                 \
        for (; i < n; i++) sum += a[i * s];                                                        \
        return sum;                                                                                \
    }
PAIRWISE(sum_f, float)
PAIRWISE(sum_d, double)

void lop_tape_line_sum(lop_dtype dt, const char *from, int64_t n, int64_t stride, char *to) {
    if (dt == LOP_f32)
        *(float *)(void *)to = 0.0F + sum_f((const float *)(const void *)from, n, stride);
    else
        *(double *)(void *)to = 0.0 + sum_d((const double *)(const void *)from, n, stride);
}

/* Columns of a matrix whose rows are longer than apart: row by row. */
static void add_rows(const lop_buf *a, const lop_buf *out) {
    const int64_t n = a->shape.dim[0], size = (int64_t)lop_dtype_size(a->dt);
    lop_buf row = *a;
    row.shape = out->shape;
    row.stride[0] = a->stride[1];
    walk w;
    for (int64_t i = 0; i < n; i++) {
        row.p = (char *)a->p + i * a->stride[0] * size;
        const bool fits = i ? walk_open(&w, out, out, &row) : walk_open(&w, out, &row, NULL);
        if (fits)
            each(&w, i ? of_kind(LOP_TAPE_ADD, (int)(a->dt - LOP_f32))
                       : of_cast((int)(a->dt - LOP_f32), (int)(a->dt - LOP_f32)));
    }
}

static lop_status sum(int axis, const lop_buf *a, const lop_buf *out) {
    if ((a->dt != LOP_f32 && a->dt != LOP_f64) || out->dt != a->dt) return LOP_UNABLE;
    const int64_t size = (int64_t)lop_dtype_size(a->dt);
    if (axis < 0) {
        if (a->shape.ndim > 1 || out->shape.ndim) return LOP_UNABLE;
        const bool one = a->shape.ndim == 0;
        lop_tape_line_sum(a->dt, a->p, one ? 1 : a->shape.dim[0], one ? 0 : a->stride[0], out->p);
        return LOP_OK;
    }
    if (axis != 0 || a->shape.ndim != 2 || out->shape.ndim != 1 || a->shape.dim[0] == 0 ||
        out->shape.dim[0] != a->shape.dim[1])
        return LOP_UNABLE;
    if (a->stride[0] > a->stride[1]) {
        add_rows(a, out);
        return LOP_OK;
    }
    for (int64_t j = 0; j < a->shape.dim[1]; j++)
        lop_tape_line_sum(a->dt, (const char *)a->p + j * a->stride[1] * size, a->shape.dim[0],
                          a->stride[0], (char *)out->p + j * out->stride[0] * size);
    return LOP_OK;
}

/* -- determinants m 2^e */

static lop_status logdet(lop_tape_what what, const lop_buf *a, const lop_buf *out) {
    if (a->dt != LOP_f64 || a->shape.ndim != 1 || a->shape.dim[0] != 2 || out->shape.ndim ||
        (out->dt != LOP_f64 && out->dt != LOP_f32))
        return LOP_UNABLE;
    const double m = *(const double *)a->p;
    double e = ((const double *)a->p)[a->stride[0]], size = fabs(m);
    if (size < 0.70710678118654757) {
        size *= 2;
        e -= 1;
    }
    double log_of = m == 0 ? -INFINITY : log(size) + e * 0.69314718055994529;
    if (m < 0 && what == LOP_TAPE_LOGDET) log_of = NAN;
    if (out->dt == LOP_f64)
        *(double *)out->p = log_of;
    else
        *(float *)out->p = (float)log_of;
    return LOP_OK;
}

/* -- halves */

static lop_status halves(int agree, const lop_buf *a) {
    if (a->shape.ndim != 2 || (a->dt != LOP_f64 && a->dt != LOP_f32)) return LOP_UNABLE;
    const lop_mat m = {a->p, a->shape.dim[0], a->shape.dim[1], a->stride[0], a->stride[1], a->dt};
    return lopk_halves_agree(&m) == (agree != 0) ? LOP_OK : LOP_UNABLE;
}

lop_status lop_tape_function(lop_tape_what what, int axis, const lop_buf *a, const lop_buf *b,
                             const lop_buf *out) {
    walk w;
    if (what == LOP_TAPE_SUM) return sum(axis, a, out);
    if (what == LOP_TAPE_LOGDET || what == LOP_TAPE_LOGABS) return logdet(what, a, out);
    if (what == LOP_TAPE_HALVES) return halves(axis, a);
    if (!walk_open(&w, out, a, b)) return LOP_UNABLE;
    inner f = NULL;
    if (!lop_is_blas(a->dt) || !lop_is_blas(out->dt)) return LOP_UNABLE;
    if (what == LOP_TAPE_COPY)
        f = of_cast((int)(a->dt - LOP_f32), (int)(out->dt - LOP_f32));
    else if (a->dt == out->dt && (!b || b->dt == a->dt))
        f = of_kind(what, (int)(a->dt - LOP_f32));
    if (!f) return LOP_UNABLE;
    each(&w, f);
    return LOP_OK;
}
