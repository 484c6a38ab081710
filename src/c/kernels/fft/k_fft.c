/* k_fft.c: transforms on plans, and the products made of them.
 *
 * Real transforms of even length n run as complex ones of length n / 2 on the same memory and one
 * pass over pairs (k_fft_pairs_per_dtype.h); in a product that pass also multiplies by the
 * spectrum, so that y = irfft(s * rfft(x)) crosses memory five times, and only the x->m inputs and
 * y->m outputs that exist are read and written. Odd real lengths run as complex ones. Cost: 2.5 n
 * log2 n flops a real transform, twice that a complex one. */
#include "kernels/common/k_clones.h"
#include "k_fft.h"
#include "k_fft_plan.h"
#include "kernels/common/kernels.h"

#include <string.h>

static char *aligned(const void *p) { return (char *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }
static inline int which(const fft_plan *p) { return fft_scalar(p->dt) == 8; }

/* out[j] = in[j] * w[j] (conj_w: conj), n complex numbers of precision `wide`; out may be in or w.
 */
static void times(bool wide, int64_t n, void *out, const void *in, const void *w, bool conj_w) {
    const lop_dtype dt = wide ? LOP_c128 : LOP_c64;
    const lop_mat y = {out, n, 1, 1, 1, dt}, d = {(void *)(uintptr_t)w, n, 1, 1, 1, dt};
    const lop_mat x = {(void *)(uintptr_t)in, n, 1, 1, 1, dt};
    lopk_rowscale(&y, &d, conj_w, &x);
}

static void swap_parts(bool wide, int64_t n, void *z) {
    double *d = z;
    float *f = z;
    for (int64_t i = 0; i < n; i++) {
        if (wide) {
            const double t = d[2 * i];
            d[2 * i] = d[2 * i + 1];
            d[2 * i + 1] = t;
        } else {
            const float t = f[2 * i];
            f[2 * i] = f[2 * i + 1];
            f[2 * i + 1] = t;
        }
    }
}

static void run_bluestein(const fft_plan *p, const void *in, int64_t n_in, void *out, int64_t n_out,
                          bool swap, double scale, char *work) {
    const fft_plan *inner = (const fft_plan *)((const char *)p + p->inner);
    const void *chirp = (const char *)p + p->chirp, *spectrum = (const char *)p + p->chirp_spectrum;
    const bool wide = which(p) == 1;
    const int64_t cell = 2 * fft_scalar(p->dt), L = p->n_inner, len = p->len;
    const fft_work w = p->work;
    char *a = work + w.middle;
    const int64_t have = n_in < 2 * len ? n_in : 2 * len;
    memset(a, 0, (size_t)(len * cell));
    if (have > 0) memcpy(a, in, (size_t)(have * cell / 2));
    if (swap) swap_parts(wide, len, a);
    times(wide, len, a, a, chirp, false);
    lopk_fft_run(inner, a, 2 * len, a, 2 * L, false, 1.0, work + w.z);
    times(wide, L, a, a, spectrum, false);
    lopk_fft_run(inner, a, 2 * L, a, 2 * len, true, scale, work + w.z);
    times(wide, len, a, a, chirp, false);
    if (swap) swap_parts(wide, len, a);
    const int64_t want = n_out < 2 * len ? n_out : 2 * len;
    if (want > 0) memcpy(out, a, (size_t)(want * cell / 2));
}

void lopk_fft_run(const fft_plan *p, const void *in, int64_t n_in, void *out, int64_t n_out,
                  bool swap, double scale, char *work) {
    if (p->bluestein) {
        run_bluestein(p, in, n_in, out, n_out, swap, scale, work);
        return;
    }
    const fft_work w = p->work;
    lopk_fft_loops()->whole[which(p)](p, in, n_in, out, n_out, swap, scale, work + w.middle,
                                      work + w.z);
}

/* The line of n elements of dtype dt at stride `stride`, as a matrix. */
static lop_mat line(const void *p, int64_t n, int64_t stride, lop_dtype dt) {
    return (lop_mat){(void *)(uintptr_t)p, n, 1, stride, 1, dt};
}

static lop_dtype real_of(const fft_plan *p) { return which(p) ? LOP_f64 : LOP_f32; }
static lop_dtype complex_of(const fft_plan *p) { return which(p) ? LOP_c128 : LOP_c64; }

/* z (len complex) <- the complex transform a real plan's input rides on. stage may be z. */
static void forward(const fft_plan *p, const void *in, int64_t n_in, int64_t stride, void *z,
                    void *stage, char *work) {
    const int64_t n = n_in < p->n ? n_in : p->n;
    if (!p->half) { /* odd length: imaginary parts 0 */
        const lop_mat from = line(in, n, stride, real_of(p)), to = line(stage, n, 1, complex_of(p));
        lopk_copy(&to, &from);
        lopk_fft_run(p, stage, 2 * n, z, 2 * p->len, false, 1.0, work);
        return;
    }
    if (stride != 1 && n > 1) {
        const lop_mat from = line(in, n, stride, real_of(p)), to = line(stage, n, 1, real_of(p));
        lopk_copy(&to, &from);
        in = stage;
    }
    lopk_fft_run(p, in, n, z, 2 * p->len, false, 1.0, work);
}

/* The n_out first reals of the inverse transform of what z holds (joined when half); stage may be
 * z. */
static void backward(const fft_plan *p, void *z, void *stage, void *out, int64_t n_out,
                     int64_t stride, double scale, char *work) {
    if (!p->half) {
        lopk_fft_run(p, z, 2 * p->len, stage, 2 * n_out, true, scale, work);
        const lop_mat from = line(stage, n_out, 1, complex_of(p)),
                      to = line(out, n_out, stride, real_of(p));
        lopk_copy(&to, &from);
        return;
    }
    const bool direct = stride == 1 || n_out <= 1;
    lopk_fft_run(p, z, 2 * p->len, direct ? out : stage, n_out, true, scale, work);
    if (!direct) {
        const lop_mat from = line(stage, n_out, 1, real_of(p)),
                      to = line(out, n_out, stride, real_of(p));
        lopk_copy(&to, &from);
    }
}

#define T double
#define P(name) name##_f64
#include "k_fft_ends_per_dtype.h"
#define T float
#define P(name) name##_f32
#include "k_fft_ends_per_dtype.h"

void lopk_rfft(const void *plan, const void *in, int64_t n_in, int64_t stride_in, void *out,
               void *work) {
    const fft_plan *p = plan;
    LOP_ASSERT(p->real);
    char *base = aligned(work), *stage = base + p->work.stage;
    if (!p->half) {
        forward(p, in, n_in, stride_in, stage, stage, base);
        memcpy(out, stage, (size_t)(lopk_spectrum_count(p) * 2 * fft_scalar(p->dt)));
        return;
    }
    forward(p, in, n_in, stride_in, out, stage, base);
    lopk_fft_loops()->pairs[which(p)](p, PAIR_SPLIT, out, out, NULL, false);
    if (which(p))
        split_ends_f64(p, out);
    else
        split_ends_f32(p, out);
}

void lopk_irfft(const void *plan, const void *in, void *out, int64_t n_out, int64_t stride_out,
                double scale, void *work) {
    const fft_plan *p = plan;
    LOP_ASSERT(p->real && n_out <= p->n);
    char *base = aligned(work), *stage = base + p->work.stage;
    if (p->half) {
        lopk_fft_loops()->pairs[which(p)](p, PAIR_JOIN, in, stage, NULL, false);
        if (which(p))
            join_ends_f64(p, in, stage);
        else
            join_ends_f32(p, in, stage);
    } else if (which(p)) {
        mirror_f64(p, in, stage);
    } else {
        mirror_f32(p, in, stage);
    }
    backward(p, stage, stage, out, n_out, stride_out, scale, base);
}

void lopk_cfft(const void *plan, const void *in, int64_t n_in, int64_t stride_in, void *out,
               int64_t n_out, int64_t stride_out, int sign, double scale, void *work) {
    const fft_plan *p = plan;
    LOP_ASSERT(!p->real && n_out <= p->n);
    char *base = aligned(work), *stage = base + p->work.stage;
    if (n_in > p->n) n_in = p->n;
    if (stride_in != 1 && n_in > 1) {
        const lop_mat from = line(in, n_in, stride_in, p->dt), to = line(stage, n_in, 1, p->dt);
        lopk_copy(&to, &from);
        in = stage;
    }
    const bool direct = stride_out == 1 || n_out <= 1;
    lopk_fft_run(p, in, 2 * n_in, direct ? out : stage, 2 * n_out, sign > 0, scale, base);
    if (!direct) {
        const lop_mat from = line(stage, n_out, 1, p->dt), to = line(out, n_out, stride_out, p->dt);
        lopk_copy(&to, &from);
    }
}

size_t lopk_toeplitz_work_bytes(int64_t n, lop_dtype dt) {
    const size_t bytes = lopk_fft_work_bytes(n, dt);
    return bytes ? bytes + (size_t)(n + 2) * 2 * (size_t)fft_scalar(dt) : 0;
}

void lopk_toeplitz_spectrum(const void *plan, const lop_mat *c, const lop_mat *r, void *spectrum,
                            void *work) {
    const fft_plan *p = plan;
    const int64_t m = c->m, n = r->m, N = p->n, size = fft_scalar(p->dt) * (p->real ? 1 : 2);
    LOP_ASSERT(c->dt == p->dt && r->dt == p->dt && N >= m + n - 1);
    const size_t own = p->work.total;
    char *base = aligned(work), *e = aligned(base + own - 64);
    memset(e, 0, (size_t)(N * size));
    const lop_mat head = line(e, m, 1, p->dt);
    lopk_copy(&head, c);
    const char *from = r->p;
    for (int64_t j = 1; j < n; j++)
        memcpy(e + (N - j) * size, from + j * r->rs * size, (size_t)size);
    if (p->real)
        lopk_rfft(p, e, N, 1, spectrum, base);
    else
        lopk_cfft(p, e, N, 1, spectrum, N, 1, -1, 1.0, base);
}

/* One column, real plan. in and out are reals at the given strides. */
static void column_real(const fft_plan *p, const void *spectrum, bool conj, const void *in,
                        int64_t n_in, int64_t stride_in, void *out, int64_t n_out,
                        int64_t stride_out, int64_t offset, char *base) {
    const fft_work w = p->work;
    const double scale = 1.0 / (double)p->n;
    char *z = base + w.stage;
    const int64_t size = fft_scalar(p->dt);
    forward(p, in, n_in, stride_in, z, z, base);
    if (p->half) {
        lopk_fft_loops()->pairs[which(p)](p, PAIR_FUSED, z, z, spectrum, conj);
        if (which(p))
            fused_ends_f64(p, spectrum, z);
        else
            fused_ends_f32(p, spectrum, z);
    } else if (which(p)) {
        mirror_times_f64(p, spectrum, conj, z);
    } else {
        mirror_times_f32(p, spectrum, conj, z);
    }
    if (offset == 0) {
        backward(p, z, z, out, n_out, stride_out, scale, base);
        return;
    }
    backward(p, z, z, z, offset + n_out, 1, scale, base);
    const lop_mat from = line(z + offset * size, n_out, 1, p->dt),
                  to = line(out, n_out, stride_out, p->dt);
    lopk_copy(&to, &from);
}

static void column_complex(const fft_plan *p, const void *spectrum, bool trans, bool conj,
                           const lop_mat *x, const lop_mat *y, int64_t offset, char *base,
                           char *z) {
    const int64_t N = p->n, cell = 2 * fft_scalar(p->dt);
    lopk_cfft(p, x->p, x->m, x->rs, z, N, 1, -1, 1.0, base);
    if (trans == conj) { /* as it is, or the adjoint: the conjugate */
        times(which(p) == 1, N, z, z, spectrum, conj);
    } else if (which(p)) {
        times_backwards_f64(N, z, spectrum, conj);
    } else {
        times_backwards_f32(N, z, spectrum, conj);
    }
    const double scale = 1.0 / (double)N;
    if (offset == 0) {
        lopk_cfft(p, z, N, 1, y->p, y->m, y->rs, +1, scale, base);
        return;
    }
    lopk_cfft(p, z, N, 1, z, offset + y->m, 1, +1, scale, base);
    const lop_mat from = line(z + offset * cell, y->m, 1, p->dt);
    lopk_copy(y, &from);
}

void lopk_toeplitz_fft(const lop_mat *y, const void *spectrum, const void *plan, const lop_mat *x,
                       int64_t offset, bool trans, bool conj, void *work) {
    const fft_plan *p = plan;
    const int64_t size = fft_scalar(p->dt);
    const int parts = lop_is_complex(x->dt) && p->real ? 2 : 1; /* real T, complex x: parts apart */
    char *base = aligned(work), *z = aligned(base + p->work.total - 64);
    LOP_ASSERT(x->dt == y->dt && x->n == y->n && offset + y->m <= p->n && x->m <= p->n);
    LOP_ASSERT(x->dt == p->dt || (parts == 2 && x->dt == complex_of(p)));
    if (y->m == 0) return;
    for (int64_t j = 0; j < y->n; j++) {
        if (!p->real) {
            const lop_mat in = line((char *)x->p + j * x->cs * 2 * size, x->m, x->rs, x->dt);
            const lop_mat out = line((char *)y->p + j * y->cs * 2 * size, y->m, y->rs, y->dt);
            column_complex(p, spectrum, trans, conj, &in, &out, offset, base, z);
            continue;
        }
        for (int q = 0; q < parts; q++)
            column_real(p, spectrum, trans, (char *)x->p + (j * x->cs * parts + q) * size, x->m,
                        x->rs * parts, (char *)y->p + (j * y->cs * parts + q) * size, y->m,
                        y->rs * parts, offset, base);
    }
}
