/* k_fft_plan.c: lengths, layouts and tables of FFT plans.
 *
 * A plan is a header (fft_plan) followed by its tables, all reached by offsets. Tables are small,
 * about 5 sqrt(n) + n / 16 complex numbers: the twiddles between the two steps, exp(-2 pi i k1 n2 /
 * len), and those of the real transform are products of two table entries (one rounding more, n
 * less memory). Every entry is right to the last bit or so: the angle is reduced to an octant in
 * integers, and the rounding of what is left is carried through sin(a + e) = sin a + e cos a.
 * Lengths with a prime factor above MAX_RADIX run as a convolution with a chirp (Bluestein 1970) of
 * a good length >= 2 n - 1, by an inner plan in the same blob. */
#include "kernels/common/k_clones.h"
#include "k_fft.h"
#include "k_fft_plan.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

static const double pi = 3.14159265358979323846264338327950288;

/* out = exp(-2 pi i e / n), 0 <= e < n */
static void root(int64_t e, int64_t n, double *re, double *im) {
    if (2 * e > n) { /* conjugate of n - e */
        root(n - e, n, re, im);
        *im = -*im;
        return;
    }
    int64_t num = 8 * e;             /* angle = pi num / (4 n), num <= 4 n */
    const bool second = num > 2 * n; /* beyond a quarter turn */
    if (second) num = 4 * n - num;
    const bool above = num > n; /* beyond an eighth */
    if (above) num = 2 * n - num;
    const double q = (double)num / (double)n, angle = q * (pi / 4);
    const double rest = fma(q, pi / 4, -angle) +
                        fma(-q, (double)n, (double)num) / (double)n * (pi / 4) +
                        q * (1.2246467991473532e-16 / 4); /* pi's own rounding */
    const double s0 = sin(angle), c0 = cos(angle);
    const double s = s0 + rest * c0, c = c0 - rest * s0;
    const double cosine = above ? s : c, sine = above ? c : s;
    *re = second ? -cosine : cosine;
    *im = -sine;
}

static void put_root(const fft_plan *p, void *table, int64_t i, int64_t e, int64_t n) {
    double re, im;
    root(e % n, n, &re, &im);
    if (fft_scalar(p->dt) == 8) {
        ((double *)table)[2 * i] = re;
        ((double *)table)[2 * i + 1] = im;
    } else {
        ((float *)table)[2 * i] = (float)re;
        ((float *)table)[2 * i + 1] = (float)im;
    }
}

static size_t take(size_t *at, int64_t count, int64_t size) {
    const size_t here = (*at + 63) & ~(size_t)63;
    *at = here + (size_t)(count * size);
    return here;
}

static int64_t largest_prime(int64_t n) {
    int64_t best = 1;
    for (int64_t q = 2; q <= MAX_RADIX; q++)
        while (n % q == 0) {
            n /= q;
            best = q > best ? q : best;
        }
    return n > 1 ? n : best;
}

/* Radices: 8 or 4 first (the loader runs that pass), 4s, then the rest; n's primes are small. */
static void sub_layout(fft_sub *s, int64_t n, int64_t scalar, size_t *at) {
    int twos = 0;
    s->n = n;
    s->count = 0;
    for (; n % 2 == 0; n /= 2) twos++;
    if (twos >= 3 && twos % 2 == 1) {
        s->radix[s->count++] = 8;
        twos -= 3;
    }
    for (; twos >= 2; twos -= 2) s->radix[s->count++] = 4;
    if (twos == 1) s->radix[s->count++] = 2;
    for (int q = 3; q <= MAX_RADIX; q += 2)
        for (; n % q == 0; n /= q) s->radix[s->count++] = q;
    s->perm = take(at, s->n, (int64_t)sizeof(int32_t));
    int64_t L = 1;
    for (int i = 0; i < s->count; i++) {
        const int r = s->radix[i];
        s->twiddle[i] = take(at, L * (r - 1) + (r > 5 && r != 8 ? r : 0), 2 * scalar);
        L *= r;
    }
}

static void sub_fill(fft_plan *p, const fft_sub *s) {
    char *base = (char *)p;
    int32_t *perm = (int32_t *)(base + s->perm);
    for (int64_t i = 0; i < s->n;
         i++) { /* element i goes where its digits, last radix first, say */
        int64_t rest = i, span = s->n, at = 0;
        for (int q = s->count - 1; q >= 0; q--) {
            span /= s->radix[q];
            at += rest % s->radix[q] * span;
            rest /= s->radix[q];
        }
        perm[at] = (int32_t)i;
    }
    int64_t L = 1;
    for (int i = 0; i < s->count; i++) {
        const int r = s->radix[i];
        void *table = base + s->twiddle[i];
        int64_t at = 0;
        if (r > 5 && r != 8)
            for (int q = 0; q < r; q++) put_root(p, table, at++, q, r);
        for (int64_t j = 0; j < L; j++)
            for (int q = 1; q < r; q++) put_root(p, table, at++, j * q, L * r);
        L *= r;
    }
}

/* The divisor d of len nearest its root, with d and len / d multiples of `lanes`; 0 if none. */
static int64_t split_of(int64_t len, int64_t lanes) {
    if (len % (lanes * lanes) != 0) return 0;
    int64_t d = (int64_t)sqrt((double)len) / lanes * lanes;
    if ((d + lanes) * (d + lanes) <= len) d += lanes;
    for (; d >= lanes; d -= lanes)
        if (len % d == 0 && len / d % lanes == 0) return d;
    return 0;
}

static void cross_layout(fft_plan *p, int64_t scalar, size_t *at) {
    const int64_t n1 = p->one.n, n2 = p->two.n;
    p->cross = n1;
    if (n1 * n2 > 4096)
        for (p->cross = 16 < n1 ? 16 : n1; n1 % p->cross != 0;) p->cross++;
    p->cross_a = take(at, n1 / p->cross * n2, 2 * scalar);
    p->cross_c = take(at, p->cross * n2, 2 * scalar);
    /* A line of a power of two would map all lines to the same cache sets. */
    p->ldt = n1 >= 128 ? n1 + 64 / (2 * scalar) : n1;
}

/* `inner` is the inner plan's layout, or NULL. */
static fft_work work_layout(const fft_plan *p, const fft_plan *inner) {
    const int64_t scalar = fft_scalar(p->dt), lanes = 32 / scalar;
    size_t at = 0;
    fft_work w;
    if (inner) {
        w.z = take(&at, 1, (int64_t)inner->work.total);
        w.middle = take(&at, p->n_inner, 2 * scalar);
    } else {
        const int64_t wide = p->two.n > p->one.n ? p->two.n : p->one.n;
        w.z = take(&at, wide * (p->two.n ? lanes : 1), 2 * scalar);
        w.middle = take(&at, p->two.n * p->ldt + 8, 2 * scalar);
    }
    w.stage = take(&at, p->len + 1, 2 * scalar);
    w.total = at + 64;
    return w;
}

bool lopk_fft_layout(fft_plan *p, int64_t n, lop_dtype dt) {
    memset(p, 0, sizeof *p);
    if (n < 1 || n > (int64_t)1 << 40 || !lop_is_blas(dt)) return false;
    const int64_t scalar = fft_scalar(dt);
    size_t at = sizeof *p;
    p->n = n;
    p->dt = dt;
    p->real = !lop_is_complex(dt);
    p->half = p->real && n % 2 == 0;
    p->len = p->half ? n / 2 : n;
    p->bluestein = largest_prime(p->len) > MAX_RADIX;
    fft_plan inner;
    if (p->bluestein) {
        const lop_dtype cdt = scalar == 4 ? LOP_c64 : LOP_c128;
        p->n_inner = lopk_fft_good(2 * p->len - 1, cdt);
        if (!lopk_fft_layout(&inner, p->n_inner, cdt)) return false;
        p->inner = take(&at, 1, (int64_t)inner.bytes);
        p->chirp = take(&at, p->len, 2 * scalar);
        p->chirp_spectrum = take(&at, p->n_inner, 2 * scalar);
        p->inner_work = take(&at, 1, (int64_t)inner.work.total); /* for init only */
    } else {
        const int64_t n1 = split_of(p->len, scalar == 4 ? 8 : 4);
        if (n1 == 0 && p->len > INT32_MAX) return false;
        sub_layout(&p->one, n1 ? n1 : p->len, scalar, &at);
        if (n1) {
            sub_layout(&p->two, p->len / n1, scalar, &at);
            cross_layout(p, scalar, &at);
        }
    }
    if (p->half) {
        p->fine = take(&at, FINE, 2 * scalar);
        p->coarse = take(&at, p->len / 2 / FINE + 1, 2 * scalar);
    }
    p->bytes = at + 64;
    p->work = work_layout(p, p->bluestein ? &inner : NULL);
    return true;
}

size_t lopk_fft_plan_bytes(int64_t n, lop_dtype dt) {
    fft_plan p;
    return lopk_fft_layout(&p, n, dt) ? p.bytes : 0;
}

size_t lopk_fft_work_bytes(int64_t n, lop_dtype dt) {
    fft_plan p;
    return lopk_fft_layout(&p, n, dt) ? p.work.total + 64 : 0;
}

/* chirp[j] = exp(-pi i j^2 / len); its conjugate's spectrum, wrapped around, scaled by 1 / n_inner.
 */
static void bluestein_fill(fft_plan *p) {
    char *base = (char *)p;
    const int64_t len = p->len, scalar = fft_scalar(p->dt), cell = 2 * scalar;
    char *chirp = base + p->chirp, *spectrum = base + p->chirp_spectrum;
    for (int64_t j = 0, e = 0; j < len; j++) { /* e = j^2 mod 2 len */
        put_root(p, chirp, j, e, 2 * len);
        e = (e + 2 * j + 1) % (2 * len);
    }
    memset(spectrum, 0, (size_t)(p->n_inner * cell));
    for (int64_t j = 0; j < len; j++) {
        char *t = spectrum + j * cell, *u = spectrum + (j ? p->n_inner - j : 0) * cell;
        memcpy(t, chirp + j * cell, (size_t)cell);
        if (scalar == 8)
            ((double *)(void *)t)[1] = -((double *)(void *)t)[1];
        else
            ((float *)(void *)t)[1] = -((float *)(void *)t)[1];
        if (j) memcpy(u, t, (size_t)cell);
    }
    const fft_plan *inner = (const fft_plan *)(base + p->inner);
    lopk_fft_run(inner, spectrum, 2 * p->n_inner, spectrum, 2 * p->n_inner, false,
                 1.0 / (double)p->n_inner, base + p->inner_work);
}

/* -- plans made before: their tables take longer than a transform, and a run without a store of
 * derived values (exec/tape.h) makes them each time. Whoever finds the place taken makes its own:
 * nobody waits, nor does a child of a fork that was taken while it was. */

enum { KEPT = 8, LONGEST = 96 << 10 /* bytes; of a real f64 plan lengths up to some 12,000 */ };
static struct {
    atomic_flag taken;
    uint64_t clock, used[KEPT]; /* 0: nothing is there */
    _Alignas(64) char plan[KEPT][LONGEST];
} before = {.taken = ATOMIC_FLAG_INIT};

static bool take_place(void) {
    return !atomic_flag_test_and_set_explicit(&before.taken, memory_order_acquire);
}
static void leave_place(void) { atomic_flag_clear_explicit(&before.taken, memory_order_release); }

static bool made_before(fft_plan *p) {
    if (p->bytes > LONGEST || !take_place()) return false;
    bool found = false;
    for (int i = 0; !found && i < KEPT; i++) {
        const fft_plan *q = (const fft_plan *)(const void *)before.plan[i];
        if (!before.used[i] || q->n != p->n || q->dt != p->dt) continue;
        memcpy(p, q, p->bytes);
        before.used[i] = ++before.clock;
        found = true;
    }
    leave_place();
    return found;
}

static void keep(const fft_plan *p) {
    if (p->bytes > LONGEST || !take_place()) return;
    int oldest = 0;
    for (int i = 1; i < KEPT; i++)
        if (before.used[i] < before.used[oldest]) oldest = i;
    memcpy(before.plan[oldest], p, p->bytes);
    before.used[oldest] = ++before.clock;
    leave_place();
}

lop_status lopk_fft_plan_init(void *plan, int64_t n, lop_dtype dt) {
    fft_plan *p = plan;
    char *base = plan;
    if (!lopk_fft_layout(p, n, dt)) return LOP_UNABLE;
    if (made_before(p)) return LOP_OK;
    if (p->bluestein) {
        const lop_dtype cdt = fft_scalar(dt) == 4 ? LOP_c64 : LOP_c128;
        if (lopk_fft_plan_init(base + p->inner, p->n_inner, cdt) != LOP_OK) return LOP_UNABLE;
        bluestein_fill(p);
    } else {
        sub_fill(p, &p->one);
        if (p->two.n) {
            const int64_t n1 = p->one.n, n2 = p->two.n, c = p->cross;
            sub_fill(p, &p->two);
            for (int64_t a = 0; a < n1 / c; a++)
                for (int64_t j = 0; j < n2; j++)
                    put_root(p, base + p->cross_a, a * n2 + j, a * c * j, p->len);
            for (int64_t b = 0; b < c; b++)
                for (int64_t j = 0; j < n2; j++)
                    put_root(p, base + p->cross_c, b * n2 + j, b * j, p->len);
        }
    }
    if (p->half) {
        for (int64_t k = 0; k < FINE; k++) put_root(p, base + p->fine, k, k, n);
        for (int64_t k = 0; k <= p->len / 2 / FINE; k++)
            put_root(p, base + p->coarse, k, k * FINE, n);
    }
    keep(p);
    return LOP_OK;
}

int64_t lopk_fft_length(const void *plan) { return ((const fft_plan *)plan)->n; }
lop_dtype lopk_fft_dtype(const void *plan) { return ((const fft_plan *)plan)->dt; }
int64_t lopk_spectrum_count(const void *plan) {
    const fft_plan *p = plan;
    return p->real ? p->n / 2 + 1 : p->n;
}

/* A length's cost: N times the sum over its factors, a factor 2 counting 0.5, 3 0.8, 5 1.15, and 1
 * for the rest; 1.3 times that where both steps' strides are multiples of 4 KiB, so that a column's
 * lines share a few cache sets. Measured 2026-11-21, AMD EPYC (Zen 3), f64, ms: 2^21 18.3,
 * 2000000 14.1, 1966080 = 2^17 15 19.3, 1944000 15.1; us: 512 1.47, 480 1.39, 384 1.13. */
int64_t lopk_fft_good(int64_t n, lop_dtype dt) {
    const int64_t scalar = fft_scalar(dt), cells = scalar == 4 ? 64 : 16;
    const int64_t unit = lop_is_complex(dt) ? cells : 2 * cells;
    if (n <= 2) return 2;
    if (n <= unit) { /* short: the next even length without large primes */
        for (n += n % 2; largest_prime(n) > 5;) n += 2;
        return n;
    }
    int64_t best = 0;
    double least = 0;
    for (int64_t f = 1; f <= 2 * (n / unit) + 1; f *= 5)
        for (int64_t t = f; t <= 2 * (n / unit) + 1; t *= 3) {
            int64_t N = t * unit, twos = 0;
            for (; N < n; N *= 2) twos++;
            double cost = 1.0 + 0.5 * (double)twos;
            for (int64_t q = t; q % 3 == 0; q /= 3) cost += 0.8;
            for (int64_t q = f; q % 5 == 0; q /= 5) cost += 1.15;
            cost *= (double)N;
            if (N % (cells << (lop_is_complex(dt) ? 12 : 13)) == 0) cost *= 1.3; /* 2^16 in M */
            if (best == 0 || cost < least || (cost <= least && N < best)) {
                best = N;
                least = cost;
            }
        }
    return best;
}
