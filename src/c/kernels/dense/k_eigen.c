/* k_eigen.c: eigenvalues of Hermitian matrices and pencils, Schur forms and Sylvester equations by
 * LAPACK, column-major, through LAPACKE_*_work, which never copies or allocates. Sizes that
 * the library's integers do not hold are refused. */
#include "blas_table.h"
#include "k_eigen.h"

#include <complex.h>

#define CALL(f, ...) LAPACK(LAPACKE_##f##_work)(LAPACK_COL_MAJOR, __VA_ARGS__)

/* gehrd and hseqr take blocks where there is room for so many columns. */
enum { COLUMNS = 64 };

/* Reals, ints and elements of the dtype that the largest of the three asks for. */
typedef struct room {
    int64_t own, real, whole;
} room;
static bool room_of(int64_t n, lop_dtype dt, room *r) {
    const bool whole = lop_is_complex(dt);
    int64_t square;
    if (n > INT64_MAX / (COLUMNS + 6) || !lop_mul_ok(n, n, &square) || square > INT64_MAX / 128)
        return false;
    r->own = whole ? 2 * n + square : 1 + 6 * n + 2 * square;
    if (r->own < (COLUMNS + 6) * n) r->own = (COLUMNS + 6) * n;
    if (r->own < 1) r->own = 1;
    r->real = whole ? 1 + 5 * n + 2 * square : 0;
    r->whole = 3 + 5 * n;
    return lop_blas_fits(r->own) && lop_blas_fits(r->real);
}
static size_t up(int64_t count, size_t size) { return ((size_t)count * size + 63) & ~(size_t)63; }
static size_t real_size(lop_dtype dt) { return dt == LOP_f32 || dt == LOP_c64 ? 4 : 8; }

bool lopk_eigen_bytes(int64_t n, lop_dtype dt, size_t *bytes) {
    room r;
    if (!room_of(n, dt, &r)) return false;
    *bytes = up(r.own, lop_dtype_size(dt)) + up(r.real, real_size(dt)) + up(r.whole, 8);
    return true;
}

/* `work` in three parts. */
typedef struct parts {
    void *own, *real, *whole;
    int64_t nown, nreal, nwhole;
} parts;
static bool cut(int64_t n, lop_dtype dt, void *work, parts *p) {
    room r;
    if (!room_of(n, dt, &r)) return false;
    char *at = work;
    *p = (parts){.own = at, .nown = r.own, .nreal = r.real, .nwhole = r.whole};
    p->real = at + up(r.own, lop_dtype_size(dt));
    p->whole = (char *)p->real + up(r.real, real_size(dt));
    return true;
}

static lop_status status_of(int64_t info, int64_t *out) {
    *out = info;
    return info == 0 ? LOP_OK : info > 0 ? LOP_SINGULAR : lop_blas_status(info);
}
static int64_t ld(const lop_mat *a) { return a->m > 1 ? a->m : 1; }

lop_status lopk_heevd(const lop_mat *a, void *w, void *work, int64_t *info) {
    const int64_t n = a->n;
    parts p;
    int64_t got = 0;
    *info = 0;
    if (a->n == 0) return LOP_OK;
    if (!cut(a->n, a->dt, work, &p)) return LOP_OVERFLOW;
    switch (a->dt) {
    case LOP_f32:
        got = CALL(ssyevd, 'V', 'L', n, a->p, ld(a), w, p.own, p.nown, p.whole, p.nwhole);
        break;
    case LOP_f64:
        got = CALL(dsyevd, 'V', 'L', n, a->p, ld(a), w, p.own, p.nown, p.whole, p.nwhole);
        break;
    case LOP_c64:
        got = CALL(cheevd, 'V', 'L', n, a->p, ld(a), w, p.own, p.nown, p.real, p.nreal, p.whole,
                   p.nwhole);
        break;
    default:
        got = CALL(zheevd, 'V', 'L', n, a->p, ld(a), w, p.own, p.nown, p.real, p.nreal, p.whole,
                   p.nwhole);
    }
    return status_of(got, info);
}

lop_status lopk_gees(const lop_mat *a, const lop_mat *vs, void *w, void *work, int64_t *info) {
    const int64_t n = a->n;
    const size_t half = (size_t)a->n * lop_dtype_size(a->dt);
    void *im = (char *)w + half;
    parts p;
    int64_t got = 0, none = 0;
    *info = 0;
    if (a->n == 0) return LOP_OK;
    if (!cut(a->n, a->dt, work, &p)) return LOP_OVERFLOW;
    switch (a->dt) {
    case LOP_f32:
        got = CALL(sgees, 'V', 'N', NULL, n, a->p, ld(a), &none, w, im, vs->p, ld(vs), p.own,
                   p.nown, NULL);
        break;
    case LOP_f64:
        got = CALL(dgees, 'V', 'N', NULL, n, a->p, ld(a), &none, w, im, vs->p, ld(vs), p.own,
                   p.nown, NULL);
        break;
    case LOP_c64:
        got = CALL(cgees, 'V', 'N', NULL, n, a->p, ld(a), &none, w, vs->p, ld(vs), p.own, p.nown,
                   p.real, NULL);
        break;
    default:
        got = CALL(zgees, 'V', 'N', NULL, n, a->p, ld(a), &none, w, vs->p, ld(vs), p.own, p.nown,
                   p.real, NULL);
    }
    return status_of(got, info);
}

lop_status lopk_trsyl(const lop_mat *a, char op_a, const lop_mat *b, char op_b, const lop_mat *c,
                      double *scale) {
    const int64_t m = c->m, n = c->n;
    int64_t got = 0;
    int64_t info;
    float single = 1;
    *scale = 1;
    if (c->m == 0 || c->n == 0) return LOP_OK;
    if (!lop_blas_fits(m) || !lop_blas_fits(n)) return LOP_OVERFLOW;
    switch (c->dt) {
    case LOP_f32:
        got = CALL(strsyl, op_a, op_b, 1, m, n, a->p, ld(a), b->p, ld(b), c->p, ld(c), &single);
        break;
    case LOP_f64:
        got = CALL(dtrsyl, op_a, op_b, 1, m, n, a->p, ld(a), b->p, ld(b), c->p, ld(c), scale);
        break;
    case LOP_c64:
        got = CALL(ctrsyl, op_a, op_b, 1, m, n, a->p, ld(a), b->p, ld(b), c->p, ld(c), &single);
        break;
    default: got = CALL(ztrsyl, op_a, op_b, 1, m, n, a->p, ld(a), b->p, ld(b), c->p, ld(c), scale);
    }
    if (real_size(c->dt) == 4) *scale = (double)single;
    return status_of(got, &info);
}

#define HERMITIAN(T, conjugate)                                                                    \
    for (int64_t ib = 0; ib < n; ib += 32)                                                         \
        for (int64_t jb = 0; jb <= ib; jb += 32)                                                   \
            for (int64_t i = ib; i < n && i < ib + 32; i++)                                        \
                for (int64_t j = jb; j <= i && j < jb + 32; j++) {                                 \
                    const T x = ((const T *)a->p)[i * a->rs + j * a->cs],                          \
                            y = ((const T *)a->p)[j * a->rs + i * a->cs];                          \
                    if (!(x == conjugate(y)) || !(x - x == 0)) return false;                       \
                }                                                                                  \
    return true;
bool lopk_is_hermitian(const lop_mat *a) {
    const int64_t n = a->n;
    switch (a->dt) {
    case LOP_f32: HERMITIAN(float, )
    case LOP_f64: HERMITIAN(double, )
    case LOP_c64: HERMITIAN(float _Complex, conjf)
    default: HERMITIAN(double _Complex, conj)
    }
}
#undef HERMITIAN
