/* k_quasi_lu.c: solves with Hermitian quasi-separable matrices that are not definite, in O(n).
 *
 * The states are unknowns beside x: with s_i downwards and u_i upwards,
 *   s_i - a_{i-1} s_{i-1} - q_{i-1} x_{i-1} = 0,
 *   p_i^T s_i + d_i x_i + q_i^H u_i = b_i,
 *   u_i - a_{i+1}^H u_{i+1} - conj(p_{i+1}) x_{i+1} = 0,
 * taken row by row (s_i, x_i, u_i), a band of n (2 J + 1) rows with 3 J diagonals on either side, 2
 * J + 1 where transitions are diagonal. Its determinant is A's: the states alone are unit
 * triangular. LU with exchanges (gbtrf), after scaling by powers of two: of each state, so that its
 * p and q are of a size, and of the whole to about one. Solutions are refined at most twice and
 * refused where their backward error, that of A, stays large. Ambikasaran 2015, Numer. Linear
 * Algebra Appl. 22 (the embedding); Eidelman and Gohberg 1999. The diagonal of A^-1: a window of
 * the inverse moved up the band (k_quasi_inverse_per_dtype.h), from either end, and solves where
 * they differ. Memory: n (2 J + 1) (9 J + 1) numbers; cost: O(n J^3). */
#include "k_quasi.h"

#include "kernels/dense/blas_table.h"
#include "kernels/dense/k_by_divisions.h"
#include "kernels/band/k_band.h"
#include "kernels/common/kernels.h"

#include "k_quasi_arithmetic.h"

#include <string.h>

enum { ROUNDS = 2 };
typedef struct head {
    double finite, size;    /* |A| from below */
    int64_t singular, beta; /* the pivot that is 0, from 1; all is over 4^beta */
} head;

static size_t room(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
static int64_t states_of(const lopk_quasi *g) { return g->n * (2 * g->J + 1); }
static int64_t width(int64_t J, bool full) { return full ? 3 * J : 2 * J + 1; }
static int64_t *exchanges(const void *lu) {
    return (int64_t *)(uintptr_t)((const char *)lu + room(sizeof(head)));
}
static lop_mat band(const void *lu, const lopk_quasi *g) {
    const int64_t rows = states_of(g), w = width(g->J, g->full);
    char *p = (char *)exchanges(lu) + room((size_t)rows * sizeof(int64_t));
    return (lop_mat){p, 3 * w + 1, rows, 1, 3 * w + 1, g->dt};
}
bool lopk_quasi_lu_fits(int64_t n, int64_t J) {
    int64_t rows, cells;
    return J < INT32_MAX / 64 && lop_mul_ok(n, 2 * J + 1, &rows) && lop_blas_fits(rows) &&
           lop_mul_ok(rows, 16 * (9 * J + 16), &cells);
}
size_t lopk_quasi_lu_bytes(int64_t n, int64_t J, bool full, lop_dtype dt) {
    const size_t rows = (size_t)n * (size_t)(2 * J + 1);
    return room(sizeof(head)) + room(rows * sizeof(int64_t)) +
           room(rows * (size_t)(3 * width(J, full) + 1) * lop_dtype_size(dt));
}
size_t lopk_quasi_lu_scratch(int64_t n, int64_t J) {
    return room((size_t)n * (size_t)(2 * J + 1) * 16) + room((size_t)n * 6 * 16) +
           room((size_t)J * sizeof(int)) + room((size_t)(J * (J + 2)) * sizeof(double)) +
           lopk_quasi_factor_scratch(0, J);
}

/* Numbers as pairs (re, im) or alone. */
static int parts(const lopk_quasi *g) { return g->dt == LOP_c128 ? 2 : 1; }
static double more(double most, double v) { return v > most || v != v ? v : most; } /* NaN stays */
static double largest(const double *v, int64_t count) {
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = more(most, fabs(v[i]));
    return most;
}
static double norm(const double *v, int64_t count) {
    const double most = largest(v, count);
    double sum = 0;
    if (!(most > 0) || most - most != 0) return most;
    for (int64_t i = 0; i < count; i++) sum += (v[i] / most) * (v[i] / most);
    return most * sqrt(sum);
}
/* The largest of column j of an n x J, rows from `from` on. */
static double in_column(const lopk_quasi *g, const void *v, int64_t j, int64_t from, int64_t rows) {
    const int w = parts(g);
    double most = 0;
    for (int64_t i = from; i < from + rows; i++)
        most = more(most, largest((const double *)v + (i * g->J + j) * w, w));
    return most;
}

/* Writes the elements of the band, scaled by 2^e, conjugated or not. */
typedef struct pen {
    const lopk_quasi *g;
    double *ab;
    int64_t w, ld;
} pen;
static void put(const pen *to, int64_t row, int64_t col, const void *v, int64_t at, int e,
                bool conj, bool negative) {
    const int k = parts(to->g);
    double *out = to->ab + ((2 * to->w + row - col) + col * to->ld) * k;
    const double *in = (const double *)v + at * k;
    for (int i = 0; i < k; i++) out[i] = ldexp((negative != (conj && i == 1)) ? -in[i] : in[i], e);
}
/* The states' rows: of s below (up false), of u above. */
static void put_states(const pen *to, int64_t i, bool up, const int *e, int beta) {
    const lopk_quasi *g = to->g;
    const int64_t J = g->J, B = 2 * J + 1, from = up ? i + 1 : i - 1, shift = up ? J + 1 : 0,
                  row = i * B + shift, col = from * B + shift;
    const bool moves = up ? from < g->n - 1 : from > 0;
    for (int64_t j = 0; j < J; j++) {
        const int by = up ? e[j] : -e[j];
        put(to, row + j, from * B + J, up ? g->p : g->q, from * J + j, by - beta, up, true);
        if (moves && !g->full) put(to, row + j, col + j, g->a, from * J + j, 0, up, true);
        for (int64_t l = 0; moves && g->full && l < J; l++)
            put(to, row + j, col + l, g->a, (from * J + (up ? l : j)) * J + (up ? j : l),
                by + (up ? -e[l] : e[l]), up, true);
    }
}
static void fill(const lopk_quasi *g, const lop_mat *ab, const int *e, int beta) {
    const pen to = {g, ab->p, width(g->J, g->full), ab->m};
    const int64_t n = g->n, J = g->J, B = 2 * J + 1;
    const double one[2] = {1, 0};
    memset(ab->p, 0, (size_t)(ab->m * ab->n) * lop_dtype_size(g->dt));
    for (int64_t i = 0; i < n; i++) {
        const double d[2] = {((const double *)g->d)[i * parts(g)], 0};
        put(&to, i * B + J, i * B + J, d, 0, -2 * beta, false, false);
        for (int64_t j = 0; j < B; j++)
            if (j != J) put(&to, i * B + j, i * B + j, one, 0, 0, false, false);
        for (int64_t j = 0; j < J; j++) {
            if (i > 0) put(&to, i * B + J, i * B + j, g->p, i * J + j, e[j] - beta, false, false);
            if (i < n - 1)
                put(&to, i * B + J, i * B + J + 1 + j, g->q, i * J + j, -e[j] - beta, true, false);
        }
        if (i > 0) put_states(&to, i, false, e, beta);
        if (i < n - 1) put_states(&to, i, true, e, beta);
    }
}

/* How large states become, down[j] <- max over l of |a_jl| down[l] from q on, and how much of them
 * is read, up[j] from p on: full transitions carry the size of one state to the others, and units
 * taken from p and q alone would make the band's elements of very different size. Growth does not
 * count. */
static void carry(const lopk_quasi *g, double *down, double *up, double *most) {
    const int64_t J = g->J;
    const int w = parts(g);
    const double *a = (const double *)g->a;
    for (int64_t t = 0; t < J * J; t++) most[t] = 0;
    for (int64_t i = 1; i + 1 < g->n; i++)
        for (int64_t t = 0; t < J * J; t++)
            most[t] = more(most[t], largest(a + (i * J * J + t) * w, w));
    for (int64_t round = 1; round < J; round++)
        for (int64_t j = 0; j < J; j++)
            for (int64_t l = 0; l < J; l++) {
                const double by = fmin(most[j * J + l], 1);
                down[j] = more(down[j], by * down[l]);
                up[l] = more(up[l], by * up[j]);
            }
}

lop_status lopk_quasi_lu_factor(void *lu, const lopk_quasi *g, void *scratch) {
    head *h = lu;
    const int64_t n = g->n, J = g->J;
    int *e = scratch, beta = 0;
    double *down = (void *)((char *)scratch + room((size_t)J * sizeof(int))), *up = down + J,
           most = 0;
    void *rest = (char *)down + room((size_t)(J * (J + 2)) * sizeof(double));
    *h = (head){0, 0, 0, 0};
    for (int64_t i = 0; i < n; i++) most = more(most, fabs(((const double *)g->d)[i * parts(g)]));
    for (int64_t j = 0; j < J; j++) {
        up[j] = n > 1 ? in_column(g, g->p, j, 1, n - 1) : 0;
        down[j] = n > 1 ? in_column(g, g->q, j, 0, n - 1) : 0;
        if (up[j] - up[j] != 0 || down[j] - down[j] != 0) return LOP_OK;
    }
    if (g->full) carry(g, down, up, up + J);
    for (int64_t j = 0; j < J; j++) {
        const double p = up[j], q = down[j];
        e[j] = p > 0 && q > 0 ? (ilogb(q) - ilogb(p)) / 2 : 0;
        if (p > 0 && q > 0) most = more(most, ldexp(p, e[j]) * ldexp(q, -e[j]));
    }
    const int64_t step = (g->full ? J * J : J) * parts(g);
    const double moves = n > 2 ? largest((const double *)g->a + step, (n - 2) * step) : 0;
    if (most - most != 0 || moves - moves != 0) return LOP_OK;
    if (most > 0) beta = ilogb(most) / 2;
    h->beta = beta;
    const lop_mat ab = band(lu, g);
    const int64_t wide = width(J, g->full);
    fill(g, &ab, e, beta);
    lop_status st = lopk_gbtrf(&ab, wide, wide, exchanges(lu), &h->singular);
    if (st != LOP_OK && st != LOP_SINGULAR) return st;
    if (lopk_band_lu_is_spoilt(&ab, wide, wide)) {
        fill(g, &ab, e, beta);
        lopk_band_lu_by_divisions(&ab, wide, wide, exchanges(lu), &h->singular);
    }
    h->size = lopk_quasi_size(g, rest);
    h->finite = 1;
    return LOP_OK;
}

double lopk_quasi_lu_norm(const void *lu) { return ((const head *)lu)->size; }

/* x <- A^-1 b by the factor alone; z: the band's rows. */
static lop_status back(const void *lu, const lopk_quasi *g, const double *b, double *x, double *z) {
    const head *h = lu;
    const int64_t B = 2 * g->J + 1, rows = states_of(g), w = width(g->J, g->full);
    const int k = parts(g);
    const lop_mat ab = band(lu, g), mz = {z, rows, 1, 1, rows, g->dt};
    memset(z, 0, (size_t)rows * lop_dtype_size(g->dt));
    for (int64_t i = 0; i < g->n; i++)
        for (int c = 0; c < k; c++) z[(i * B + g->J) * k + c] = b[i * k + c];
    lop_status st = lopk_gbtrs(&ab, w, w, exchanges(lu), 'N', &mz);
    for (int64_t i = 0; i < g->n; i++)
        for (int c = 0; c < k; c++)
            x[i * k + c] = ldexp(z[(i * B + g->J) * k + c], -2 * (int)h->beta);
    return st;
}
/* r <- b - A x; its norm over |A| |x| + |b|. */
static double error_of(const head *h, const lopk_quasi *g, const double *b, double *x, double *r,
                       void *s) {
    const int64_t count = g->n * parts(g);
    const lop_mat mx = {x, g->n, 1, 1, 1, g->dt}, mr = {r, g->n, 1, 1, 1, g->dt};
    lopk_quasi_mm(&mr, g, 0, &mx, s);
    for (int64_t i = 0; i < count; i++) r[i] = b[i] - r[i];
    const double bound = h->size * norm(x, count) + norm(b, count), left = norm(r, count);
    return bound - bound != 0 ? INFINITY : left > 0 || left != left ? left / bound : 0;
}

/* x <- A^-1 b, refined at most twice; r and dx: n each. *left: the backward error. */
static lop_status refined(const void *lu, const lopk_quasi *g, const double *b, double *x,
                          double *z, double *left, void *s) {
    const head *h = lu;
    const int64_t count = g->n * parts(g);
    double *r = x + count, *dx = r + count;
    lop_status st = back(lu, g, b, x, z);
    *left = st == LOP_OK ? error_of(h, g, b, x, r, s) : 0;
    for (int round = 0; st == LOP_OK && *left > LOPK_QUASI_GOOD && round < ROUNDS; round++) {
        st = back(lu, g, r, dx, z);
        for (int64_t i = 0; i < count; i++) x[i] += dx[i];
        if (st == LOP_OK) *left = error_of(h, g, b, x, r, s);
    }
    return st;
}
static double enough(const lopk_quasi *g) {
    return fmax(LOPK_QUASI_ENOUGH, 10 * (double)g->n * LOPK_QUASI_UNIT);
}

lop_status lopk_quasi_lu_solve(const lop_mat *y, const void *lu, const lopk_quasi *g, bool conj,
                               const lop_mat *b, int64_t *pivot, void *scratch) {
    const head *h = lu;
    const int64_t n = g->n, count = n * parts(g);
    double *z = scratch, *cb = z + states_of(g) * parts(g), *x = cb + count, left;
    void *s = (char *)scratch + room((size_t)states_of(g) * 16) + room((size_t)n * 6 * 16);
    *pivot = h->singular;
    if (h->singular) return LOP_RANK;
    for (int64_t j = 0; j < y->n; j++) {
        const lop_mat to = {cb, n, 1, 1, 1, g->dt}, mx = {x, n, 1, 1, 1, g->dt};
        lop_mat from = *b, out = *y;
        from.p = (char *)b->p + j * b->cs * (int64_t)lop_dtype_size(b->dt);
        out.p = (char *)y->p + j * y->cs * (int64_t)lop_dtype_size(y->dt);
        from.n = out.n = 1;
        lopk_copy(&to, &from);
        if (conj) lopk_conj(&to, &to);
        const double given = norm(cb, count);
        if (h->finite == 0 || given - given != 0) { /* as arithmetic would have it */
            for (int64_t i = 0; i < count; i++) x[i] = NAN;
            lopk_copy(&out, &mx);
            continue;
        }
        lop_status st = refined(lu, g, cb, x, z, &left, s);
        if (st != LOP_OK) return st;
        if (!(left <= enough(g))) return LOP_SINGULAR;
        if (conj) lopk_conj(&mx, &mx);
        lopk_copy(&out, &mx);
    }
    return LOP_OK;
}

lop_status lopk_quasi_lu_det(const void *lu, const lopk_quasi *g, lop_mat *pivots, bool *odd,
                             int64_t *twos, void *scratch) {
    const head *h = lu;
    const lop_mat ab = band(lu, g);
    const int64_t n = g->n, rows = states_of(g), count = n * parts(g);
    const int64_t *swap = exchanges(lu);
    *pivots =
        (lop_mat){(double *)ab.p + 2 * width(g->J, g->full) * parts(g), rows, 1, ab.m, 1, g->dt};
    *odd = false;
    *twos = 2 * h->beta * n;
    if (h->finite == 0 || h->singular) return LOP_RANK;
    for (int64_t i = 0; i < rows; i++) *odd = *odd != (swap[i] != i + 1);
    double *z = scratch, *b = z + states_of(g) * parts(g), *x = b + count, *r = x + count;
    for (int64_t i = 0; i < count; i++) b[i] = (i * 7) % 5 < 2 ? -1 : 1;
    lop_status st = back(lu, g, b, x, z);
    if (st != LOP_OK) return st;
    void *s = (char *)scratch + room((size_t)states_of(g) * 16) + room((size_t)n * 6 * 16);
    const double most = fmax(LOPK_QUASI_ENOUGH, (double)n * LOPK_QUASI_UNIT);
    return error_of(h, g, b, x, r, s) <= most ? LOP_OK : LOP_SINGULAR;
}
bool lopk_quasi_lu_is_zero(const void *lu) { return ((const head *)lu)->singular != 0; }

#define DT f64
#define EL double
#define RE(v) (v)
#include "k_quasi_inverse_per_dtype.h"
#undef DT
#undef EL
#undef RE
#define DT c128
#define EL double _Complex
#define RE(v) creal(v)
#include "k_quasi_inverse_per_dtype.h"

/* The window's rows and columns, and two vectors. */
static size_t window(int64_t J) { return room((size_t)((6 * J + 8) * (3 * J + 12)) * 16); }
/* The generators in the other order. */
static size_t turned_bytes(int64_t n, int64_t J, bool full) {
    const size_t cells = (size_t)n * (size_t)(1 + (full ? J + 2 : 3) * J);
    return room(cells * 16);
}
size_t lopk_quasi_lu_invdiag_scratch(int64_t n, int64_t J, bool full, lop_dtype dt) {
    return lopk_quasi_lu_scratch(n, J) + 2 * room((size_t)n * sizeof(double)) + window(J) +
           turned_bytes(n, J, full) + lopk_quasi_lu_bytes(n, J, full, dt);
}
/* A, or conj(A), with its rows and columns in the other order: p and q change places. */
static lopk_quasi turned(const lopk_quasi *g, void *room_of) {
    const int64_t n = g->n, J = g->J, size = g->full ? J * J : J;
    const int w = parts(g);
    double *d = room_of, *p = d + n * w, *q = p + n * J * w, *a = q + n * J * w;
    lopk_quasi out = *g;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = n - 1 - i;
        memcpy(d + i * w, (const double *)g->d + k * w, (size_t)w * sizeof(double));
        memcpy(p + i * J * w, (const double *)g->q + k * J * w, (size_t)(J * w) * sizeof(double));
        memcpy(q + i * J * w, (const double *)g->p + k * J * w, (size_t)(J * w) * sizeof(double));
        for (int64_t t = 0; t < size; t++)
            memcpy(a + (i * size + t) * w,
                   (const double *)g->a + (k * size + (g->full ? t % J * J + t / J : t)) * w,
                   (size_t)w * sizeof(double));
    }
    out.d = d;
    out.p = p;
    out.q = q;
    out.a = a;
    return out;
}
/* The diagonal by the window, all of it NaN where a pivot is 0. */
static void swept(double *found, const void *lu, const lopk_quasi *g, void *work) {
    const head *h = lu;
    if (h->finite == 0 || h->singular)
        for (int64_t i = 0; i < g->n; i++) found[i] = NAN;
    else if (g->dt == LOP_f64)
        selected_f64(found, lu, g, work);
    else
        selected_c128(found, lu, g, work);
    for (int64_t i = 0; i < g->n; i++) found[i] = ldexp(found[i], -2 * (int)h->beta);
}
/* Element k of the diagonal by a solve, where its backward error is small; *size: of the column. */
static lop_status solved(const void *lu, const lopk_quasi *g, int64_t k, double *found,
                         double *size, void *scratch) {
    const int64_t n = g->n, count = n * parts(g);
    double *z = scratch, *b = z + states_of(g) * parts(g), *x = b + count, left;
    void *s = (char *)scratch + room((size_t)states_of(g) * 16) + room((size_t)n * 6 * 16);
    for (int64_t i = 0; i < count; i++) b[i] = i == k * parts(g) ? 1 : 0;
    lop_status st = refined(lu, g, b, x, z, &left, s);
    if (st != LOP_OK) return st;
    *size = norm(x, count);
    *found = x[k * parts(g)];
    return left <= enough(g) ? LOP_OK : LOP_SINGULAR;
}
/* The window loses digits where the band is worse conditioned than A, and does so in single
 * elements too: it goes over the matrix from either end, and where the two differ by more than the
 * condition of A explains, a solve, refined against A itself, gives the element. */
lop_status lopk_quasi_lu_invdiag(const lop_mat *y, const void *lu, const lopk_quasi *g,
                                 int64_t *pivot, void *scratch) {
    const head *h = lu;
    const int64_t n = g->n;
    double *found = (void *)((char *)scratch + lopk_quasi_lu_scratch(n, g->J));
    double *other = (void *)((char *)found + room((size_t)n * sizeof(double)));
    char *work = (char *)other + room((size_t)n * sizeof(double)), *back_to = work + window(g->J);
    void *lu2 = back_to + turned_bytes(n, g->J, g->full);
    const lop_mat from = {found, n, 1, 1, 1, LOP_f64};
    double most = 0, value, size;
    *pivot = h->singular;
    if (h->singular) return LOP_RANK;
    swept(found, lu, g, work);
    if (h->finite != 0 && n > 0) {
        const lopk_quasi t = turned(g, back_to);
        lop_status st = lopk_quasi_lu_factor(lu2, &t, scratch);
        if (st == LOP_OK) swept(other, lu2, &t, work);
        if (st == LOP_OK) st = solved(lu, g, 0, &value, &most, scratch);
        if (st != LOP_OK) return st;
        for (int64_t i = 0; i < n; i++) /* |A^-1| from below */
            most = fmax(most, fmin(fabs(found[i]), fabs(other[n - 1 - i])));
    }
    const double allowed = 10 * (double)n * LOPK_QUASI_UNIT * (1 + h->size * most) * most;
    for (int64_t i = 0; h->finite != 0 && i < n; i++) {
        if (fabs(found[i] - other[n - 1 - i]) <= allowed) continue;
        lop_status st = solved(lu, g, i, &value, &size, scratch);
        if (st != LOP_OK) return st;
        found[i] = value;
    }
    lopk_copy(y, &from);
    return LOP_OK;
}
