/* tape_proof.c: see tape_proof.h. */
#include "tape_proof.h"

#include "kernels/dense/k_blas.h"
#include "kernels/fft/k_fft.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Numbers of single precision are proved of in double. */
static double number(const lop_buf *b, int64_t i) {
    return b->dt == LOP_f64 ? ((const double *)b->p)[i] : (double)((const float *)b->p)[i];
}
static double at(const lop_buf *b, int64_t i) {
    return number(b, b->shape.ndim ? i * b->stride[0] : 0);
}
static double entry(const lop_buf *b, int64_t i, int64_t j) {
    return number(b, i * b->stride[0] + j * b->stride[1]);
}
static int64_t length(const lop_buf *b) { return b->shape.ndim ? b->shape.dim[0] : 1; }
static bool is_square(const lop_buf *b) {
    return b->shape.ndim == 2 && b->shape.dim[0] == b->shape.dim[1];
}

/* The least number of a vector; NaN where one is not finite. */
static double least(const lop_buf *b) {
    double found = INFINITY;
    for (int64_t i = 0; i < length(b); i++) {
        const double x = at(b, i);
        if (!isfinite(x)) return NAN;
        if (x < found) found = x;
    }
    return found;
}

static bool regular(const lop_buf *b) {
    for (int64_t i = 0; i < length(b); i++)
        if (at(b, i) == 0 || !isfinite(at(b, i))) return false;
    return true;
}

/* -- matrices */

/* The largest difference of entry (i, j) from (j, i), by squares that stay in the cache. */
static double asymmetry(const lop_buf *a) {
    enum { SIDE = 32 };
    const int64_t n = a->shape.dim[0];
    double most = 0;
    for (int64_t i0 = 0; i0 < n; i0 += SIDE)
        for (int64_t j0 = 0; j0 <= i0; j0 += SIDE)
            for (int64_t i = i0; i < n && i < i0 + SIDE; i++)
                for (int64_t j = j0; j < i && j < j0 + SIDE; j++) {
                    const double off = fabs(entry(a, i, j) - entry(a, j, i));
                    if (!(off <= most)) most = off; /* NaN stays */
                    if (isnan(off)) return NAN;
                }
    return most;
}

static double norm_of(const lop_buf *a, bool largest) {
    const int64_t columns = a->shape.ndim > 1 ? a->shape.dim[1] : 1;
    double sum = 0;
    for (int64_t i = 0; i < a->shape.dim[0]; i++)
        for (int64_t j = 0; j < columns; j++) {
            const double x = a->shape.ndim > 1 ? entry(a, i, j) : at(a, i);
            if (!isfinite(x)) return x * x;
            sum = largest ? fmax(sum, fabs(x)) : sum + x * x;
        }
    return largest ? sum : sqrt(sum);
}

/* To rounding; in most cases exactly. What is not finite beside the diagonal makes its difference
 * so. */
static bool symmetric(const lop_buf *a) {
    if (!is_square(a)) return false;
    const double off = asymmetry(a), unit = a->dt == LOP_f64 ? DBL_EPSILON : (double)FLT_EPSILON;
    for (int64_t i = 0; i < a->shape.dim[0]; i++)
        if (!isfinite(entry(a, i, i))) return false;
    return off == 0 || (isfinite(off) && off <= 8 * unit * norm_of(a, true));
}

/* Is a + slack I positive definite, by Cholesky? */
static bool above(lop_ctx *ctx, const lop_buf *a, double slack) {
    if (!symmetric(a)) return false;
    const int64_t n = a->shape.dim[0];
    int64_t bytes, info = 1;
    if (!lop_mul_ok(n, n, &bytes) || !lop_mul_ok(bytes, (int64_t)sizeof(double), &bytes))
        return false;
    double *copy = lop_alloc(ctx, (size_t)bytes);
    if (!copy) return false;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) copy[i + j * n] = entry(a, i, j) + (i == j ? slack : 0);
    const lop_mat m = {copy, n, n, 1, n, LOP_f64};
    const bool found = lopk_potrf(&m, &info) == LOP_OK && info == 0;
    lop_free(ctx, copy);
    return found;
}

/* -- Toeplitz */

/* Durbin's recursion, of the column c in `work` (3 n numbers: c, a, and room). */
static bool reflections_small(double *c, int64_t n) {
    double *a = c + n, *other = a + n, error = c[0];
    if (!(error > 0)) return false;
    for (int64_t k = 1; k < n; k++) {
        double r = c[k];
        for (int64_t i = 0; i < k - 1; i++) r -= a[i] * c[k - 1 - i];
        r /= error;
        error *= 1 - r * r;
        if (!(error > 0)) return false;
        for (int64_t i = 0; i < k - 1; i++) other[i] = a[i] - r * a[k - 2 - i];
        other[k - 1] = r;
        memcpy(a, other, (size_t)k * sizeof *a);
    }
    return true;
}

/* Are all eigenvalues of a circulant matrix that it is a part of positive? `block`: room for all.
 */
static bool circulant_positive(const double *c, int64_t n, int64_t N, void *plan, double *first,
                               double *found, void *work) {
    if (lopk_fft_plan_init(plan, N, LOP_f64) != LOP_OK) return false;
    memset(first, 0, (size_t)N * sizeof *first);
    memcpy(first, c, (size_t)n * sizeof *c);
    for (int64_t i = 1; i < n; i++) first[N - i] = c[i];
    lopk_rfft(plan, first, N, 1, found, work);
    bool positive = true;
    for (int64_t i = 0; positive && i <= N / 2; i++) positive = found[2 * i] > 0;
    return positive;
}

static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

static bool toeplitz(lop_ctx *ctx, const lop_buf *b, double slack) {
    const int64_t n = length(b), N = lopk_fft_good(2 * n, LOP_f64);
    const size_t plan = lopk_fft_plan_bytes(N, LOP_f64), work = lopk_fft_work_bytes(N, LOP_f64);
    if (n < 1 || n > (int64_t)1 << 30 || !plan) return false;
    const size_t own = rounded(3 * (size_t)n * sizeof(double)),
                 one = rounded((size_t)N * sizeof(double)),
                 two = rounded((size_t)(N + 2) * sizeof(double));
    char *block = lop_alloc(ctx, own + one + two + rounded(plan) + work + 64);
    if (!block) return false;
    char *p = (char *)(((uintptr_t)block + 63) & ~(uintptr_t)63);
    double *c = (double *)(void *)p;
    bool finite = true;
    for (int64_t i = 0; i < n; i++) {
        c[i] = at(b, i) + (i == 0 ? slack : 0);
        finite = finite && isfinite(c[i]);
    }
    p += own;
    const bool found =
        finite && (circulant_positive(c, n, N, p + one + two, (double *)(void *)p,
                                      (double *)(void *)(p + one), p + one + two + rounded(plan)) ||
                   reflections_small(c, n));
    lop_free(ctx, block);
    return found;
}

/* -- composites */

/* Eigenvalues are products: of factors above -s_k none is below minus the sum of s_k times the
 * norms of the others. */
static bool kron(lop_ctx *ctx, const lop_proof *p, const lop_buf *in, double slack) {
    double whole = 1;
    for (int i = 0; i < p->narrays; i++) {
        const double size = norm_of(&in[p->array[i]], false);
        if (!isfinite(size) || size == 0) return false;
        whole *= size;
    }
    for (int i = 0; i < p->narrays; i++) {
        const lop_buf *a = &in[p->array[i]];
        if (!above(ctx, a, 0.9 * slack * norm_of(a, false) / whole / p->narrays)) return false;
    }
    return true;
}

static const lop_proof *next(const lop_proof *p) { return p + p->behind; }

static bool all(lop_ctx *ctx, const lop_proof *p, const lop_buf *in, double slack) {
    for (const lop_proof *c = p + 1, *end = next(p); c < end; c = next(c))
        if (!lop_proved(ctx, c, in, slack)) return false;
    return true;
}

/* What diagonals give above zero the other terms may take away. */
static bool sum(lop_ctx *ctx, const lop_proof *p, const lop_buf *in, double slack) {
    double own = 0;
    int diagonals = 0, rest = 0;
    for (const lop_proof *c = p + 1, *end = next(p); c < end; c = next(c)) {
        if (c->kind != LOP_PROOF_DIAGONAL) {
            rest++;
            continue;
        }
        diagonals++;
        own += least(&in[c->array[0]]);
    }
    if (diagonals && !(isfinite(own) && own + slack > 0)) return false;
    const double share = 0.8 * (slack + own) / (rest ? rest : 1);
    for (const lop_proof *c = p + 1, *end = next(p); c < end; c = next(c))
        if (c->kind != LOP_PROOF_DIAGONAL && !lop_proved(ctx, c, in, share)) return false;
    return true;
}

/* The sum of what stands on diagonal k, at i. */
static double on_diagonal(const lop_proof *p, const lop_buf *in, int64_t k, int64_t i, bool *any) {
    double total = 0;
    *any = false;
    for (int t = 0; t < p->narrays; t++)
        if (p->offset[t] == k) {
            const lop_buf *b = &in[p->array[t]];
            if (b->shape.ndim && i >= length(b)) return NAN;
            total += at(b, i);
            *any = true;
        }
    return total;
}

/* Is it symmetric? Whether it is definite its own Cholesky tells. */
static bool band(const lop_proof *p, const lop_buf *in) {
    for (int t = 0; t < p->narrays; t++) {
        const int64_t k = p->offset[t], n = length(&in[p->array[t]]);
        bool any = k == 0;
        for (int64_t i = 0; k && i < n; i++) {
            const double x = on_diagonal(p, in, k, i, &any), y = on_diagonal(p, in, -k, i, &any);
            if (!any || !(fabs(x - y) <= 1e-14 * fabs(y))) return false;
        }
        if (!any) return false;
    }
    return true;
}

static bool scaled(lop_ctx *ctx, const lop_proof *p, const lop_buf *in, double slack) {
    const double c = at(&in[p->array[0]], 0);
    return c > 0 && all(ctx, p, in, slack / c);
}

static bool congruence(lop_ctx *ctx, const lop_proof *p, const lop_buf *in, double slack) {
    const double size = norm_of(&in[p->array[0]], false);
    if (isnan(size)) return false;
    const double square = size * size; /* which may underflow */
    return above(ctx, &in[p->array[1]], square > 0 ? slack / square : 0);
}

/* Is it the number of these bits? */
static bool equal(const lop_buf *a, int64_t bits) {
    const int32_t low = (int32_t)bits;
    return a->dt == LOP_f64 ? memcmp(a->p, &bits, sizeof bits) == 0
                            : memcmp(a->p, &low, sizeof low) == 0;
}

bool lop_proved(lop_ctx *ctx, const lop_proof *p, const lop_buf *in, double slack) {
    for (int i = 0; i < p->narrays; i++)
        if (in[p->array[i]].dt != LOP_f64 && in[p->array[i]].dt != LOP_f32) return false;
    const lop_buf *a = p->narrays ? &in[p->array[0]] : NULL;
    switch (p->kind) {
    case LOP_PROOF_TRUE: return true;
    case LOP_PROOF_DENSE: return symmetric(a);
    case LOP_PROOF_SYMMETRIC: return above(ctx, a, slack);
    case LOP_PROOF_DIAGONAL: return least(a) > -slack;
    case LOP_PROOF_NONNEGATIVE: return least(a) >= 0;
    case LOP_PROOF_CONGRUENCE: return congruence(ctx, p, in, slack);
    case LOP_PROOF_TOEPLITZ: return toeplitz(ctx, a, slack);
    case LOP_PROOF_KRON: return kron(ctx, p, in, slack);
    case LOP_PROOF_ALL: return all(ctx, p, in, slack);
    case LOP_PROOF_SCALED: return scaled(ctx, p, in, slack);
    case LOP_PROOF_FRESH: return all(ctx, p, in, 0);
    case LOP_PROOF_SUM: return sum(ctx, p, in, slack);
    case LOP_PROOF_BAND: return band(p, in);
    case LOP_PROOF_EQUAL: return equal(a, p->offset[0]);
    case LOP_PROOF_REGULAR: return regular(a);
    case LOP_PROOF_KINDS: break;
    }
    return false;
}
