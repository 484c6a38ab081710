/* k_fft_nd.c: transforms of boxes, and products with multilevel circulants made of them.
 *
 * Level by level: rows of the last one first (real where the data are), then the others in panels
 * of PANEL lines, copied so that each line lies contiguous. Lines that hold nothing but padding are
 * never transformed on the way in, and lines nobody reads never on the way out. One level goes
 * straight to k_fft.c's fused product. Cost: about 5 N log2 N for a complex box of N, half for a
 * real one. */
#include "k_convolution.h"
#include "k_fft.h"
#include "kernels/common/kernels.h"

#include <string.h>

enum { PANEL = 8 };

typedef struct nd_plan {
    int64_t levels, n[LOPK_LEVELS], row, count; /* row: of the last level; count: all, complex */
    lop_dtype dt, wide;                         /* wide: complex */
    size_t at[LOPK_LEVELS], bytes, fft, panel, stage, work; /* plans; offsets in the work memory */
} nd_plan;

static size_t up(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
static char *aligned(const void *p) { return (char *)(((uintptr_t)p + 63) & ~(uintptr_t)63); }
static lop_dtype complex_of(lop_dtype dt) {
    return dt == LOP_f32 || dt == LOP_c64 ? LOP_c64 : LOP_c128;
}
static lop_mat line(const void *p, int64_t n, int64_t stride, lop_dtype dt) {
    return (lop_mat){(void *)(uintptr_t)p, n, 1, stride, 1, dt};
}

static bool layout(nd_plan *p, const int64_t *n, int64_t levels, lop_dtype dt) {
    memset(p, 0, sizeof *p);
    if (levels < 1 || levels > LOPK_LEVELS || !lop_is_blas(dt)) return false;
    p->levels = levels;
    p->dt = dt;
    p->wide = complex_of(dt);
    p->bytes = up(sizeof *p);
    int64_t longest = 1, all = 1;
    for (int64_t l = 0; l < levels; l++) {
        const bool last = l == levels - 1;
        const lop_dtype own = last ? dt : p->wide;
        const size_t plan = lopk_fft_plan_bytes(n[l], own);
        size_t work = lopk_fft_work_bytes(n[l], own);
        if (levels == 1) work = lopk_toeplitz_work_bytes(n[l], own);
        if (!plan || !work) return false;
        p->n[l] = n[l];
        p->at[l] = p->bytes;
        p->bytes += up(plan);
        if (work > p->fft) p->fft = work;
        if (n[l] > longest) longest = n[l];
        p->row = last && dt != p->wide ? n[l] / 2 + 1 : n[l];
        if (!lop_mul_ok(all, p->row, &all)) return false;
    }
    p->count = all;
    const int64_t cell = (int64_t)lop_dtype_size(p->wide);
    int64_t bytes;
    if (!lop_add_ok(all, 8, &bytes) || !lop_mul_ok(bytes, 4 * cell, &bytes)) return false;
    p->fft = up(p->fft);
    p->panel = up((size_t)(PANEL * longest * cell));
    p->stage = up((size_t)((all + 2) * cell));
    p->work = 64 + p->fft + p->panel + 2 * p->stage;
    return true;
}

size_t lopk_nd_plan_bytes(const int64_t *n, int64_t levels, lop_dtype dt) {
    nd_plan p;
    return layout(&p, n, levels, dt) ? p.bytes : 0;
}
size_t lopk_nd_work_bytes(const int64_t *n, int64_t levels, lop_dtype dt) {
    nd_plan p;
    return layout(&p, n, levels, dt) ? p.work : 0;
}
size_t lopk_nd_spectrum_bytes(const int64_t *n, int64_t levels, lop_dtype dt) {
    nd_plan p;
    return layout(&p, n, levels, dt) ? (size_t)p.count * lop_dtype_size(p.wide) : 0;
}
lop_status lopk_nd_plan_init(void *plan, const int64_t *n, int64_t levels, lop_dtype dt) {
    nd_plan p;
    if (!layout(&p, n, levels, dt)) return LOP_UNABLE;
    memcpy(plan, &p, sizeof p);
    for (int64_t l = 0; l < levels; l++) {
        const lop_status st =
            lopk_fft_plan_init((char *)plan + p.at[l], n[l], l == levels - 1 ? dt : p.wide);
        if (st != LOP_OK) return st;
    }
    return LOP_OK;
}

/* Stride of a line's elements along level l in the complex box, and the block before level l. */
static int64_t inner(const nd_plan *p, int64_t l) {
    int64_t s = 1;
    for (int64_t k = l + 1; k < p->levels; k++) s *= k == p->levels - 1 ? p->row : p->n[k];
    return s;
}

/* The next index of the box `n` of `levels` levels; false at the end. */
static bool next(const int64_t *n, int64_t levels, int64_t *at) {
    for (int64_t l = levels - 1; l >= 0; l--) {
        if (++at[l] < n[l]) return true;
        at[l] = 0;
    }
    return false;
}

/* All lines along level l whose outer indices lie in `box`: have[l] elements in, want[l] out. */
static void along(const nd_plan *p, const void *plan, int64_t l, const int64_t *box, int64_t have,
                  int64_t want, char *z, int sign, double scale, char *base) {
    const int64_t cell = (int64_t)lop_dtype_size(p->wide), s = inner(p, l), N = p->n[l];
    char *panel = base + p->fft;
    int64_t at[LOPK_LEVELS] = {0};
    do {
        char *from = z;
        for (int64_t k = 0; k < l; k++) from += at[k] * inner(p, k) * cell;
        for (int64_t t = 0; t < s; t += PANEL) {
            const int64_t w = s - t < PANEL ? s - t : PANEL;
            const lop_mat in = {from + t * cell, w, have, 1, s, p->wide},
                          out = {from + t * cell, w, want, 1, s, p->wide};
            const lop_mat rows = {panel, w, have, N, 1, p->wide},
                          back = {panel, w, want, N, 1, p->wide};
            lopk_copy(&rows, &in);
            for (int64_t i = 0; i < w; i++) {
                char *one = panel + i * N * cell;
                lopk_cfft((const char *)plan + p->at[l], one, have, 1, one, want, 1, sign, scale,
                          base);
            }
            lopk_copy(&out, &back);
        }
    } while (next(box, l, at));
}

/* z <- the transform of the box `in` at x (elements of dtype dt, parts apart where it is real). */
static void forward(const nd_plan *p, const void *plan, const int64_t *in, const char *x,
                    int64_t stride, int64_t part, char *z, int sign, char *base) {
    const int64_t cell = (int64_t)lop_dtype_size(p->wide), last = p->levels - 1;
    const char *own = (const char *)plan + p->at[last];
    int64_t at[LOPK_LEVELS] = {0}, row = 0;
    do {
        char *to = z;
        for (int64_t k = 0; k < last; k++) to += at[k] * inner(p, k) * cell;
        const char *from = x + row++ * in[last] * stride * part;
        if (p->dt != p->wide)
            lopk_rfft(own, from, in[last], stride, to, base);
        else
            lopk_cfft(own, from, in[last], stride, to, p->row, 1, sign, 1.0, base);
    } while (next(in, last, at));
    for (int64_t l = last - 1; l >= 0; l--)
        along(p, plan, l, in, in[l], p->n[l], z, sign, 1.0, base);
}

/* The box `out` of the inverse transform of z, which is overwritten. */
static void backward(const nd_plan *p, const void *plan, const int64_t *out, char *z, char *y,
                     int64_t stride, int64_t part, int sign, double scale, char *base) {
    const int64_t cell = (int64_t)lop_dtype_size(p->wide), last = p->levels - 1;
    const char *own = (const char *)plan + p->at[last];
    int64_t at[LOPK_LEVELS] = {0}, row = 0;
    for (int64_t l = 0; l < last; l++) along(p, plan, l, out, p->n[l], out[l], z, sign, 1.0, base);
    do {
        const char *from = z;
        for (int64_t k = 0; k < last; k++) from += at[k] * inner(p, k) * cell;
        char *to = y + row++ * out[last] * stride * part;
        if (p->dt != p->wide)
            lopk_irfft(own, from, to, out[last], stride, scale, base);
        else
            lopk_cfft(own, from, p->row, 1, to, out[last], stride, sign, scale, base);
    } while (next(out, last, at));
}

static void times(const nd_plan *p, char *z, const void *spectrum, bool conj) {
    const lop_mat y = line(z, p->count, 1, p->wide), d = line(spectrum, p->count, 1, p->wide);
    lopk_rowscale(&y, &d, conj, &y);
}

static double volume(const nd_plan *p) {
    double all = 1;
    for (int64_t l = 0; l < p->levels; l++) all *= (double)p->n[l];
    return all;
}

/* s <- 1 / s; false where one is exactly 0. */
static bool reciprocals(const nd_plan *p, void *spectrum) {
    double _Complex one = 1;
    const int64_t cell = (int64_t)lop_dtype_size(p->wide);
    for (int64_t i = 0; i < p->count; i++)
        if (lop_get(p->wide, (char *)spectrum + i * cell, 0) == 0) return false;
    float _Complex low = 1;
    const lop_mat ones = {p->wide == LOP_c64 ? (void *)&low : (void *)&one,
                          p->count,
                          1,
                          0,
                          0,
                          p->wide},
                  s = line(spectrum, p->count, 1, p->wide);
    lopk_div(&s, &ones, &s);
    return true;
}

lop_status lopk_nd_spectrum(const void *plan, const lopk_conv *c, const lop_mat *g, bool invert,
                            void *spectrum, void *work) {
    const nd_plan *p = plan;
    char *base = aligned(work), *e = base + p->fft + p->panel;
    int64_t all = 1;
    LOP_ASSERT(g->dt == p->dt);
    for (int64_t l = 0; l < p->levels; l++) all *= p->n[l];
    const lop_mat box = line(e, all, 1, p->dt);
    lopk_conv_embed(&box, c, p->n, g);
    forward(p, plan, p->n, e, 1, (int64_t)lop_dtype_size(p->dt), spectrum, -1, base);
    return !invert || reciprocals(p, spectrum) ? LOP_OK : LOP_SINGULAR;
}

/* One column of several levels. trans == conj: as it is, or the adjoint; else of conjugates. */
static void column(const nd_plan *p, const lopk_conv *c, const void *plan, const void *spectrum,
                   bool trans, bool conj, const lop_mat *x, const lop_mat *y, char *base) {
    char *z = base + p->fft + p->panel, *copy = z + p->stage;
    const int64_t size = (int64_t)lop_dtype_size(p->dt);
    const int parts = lop_is_complex(x->dt) && p->dt != p->wide ? 2 : 1;
    const double scale = 1.0 / volume(p);
    if (p->dt == p->wide) {
        const char *in = x->p;
        const bool around = trans != conj;
        int64_t stride = x->rs;
        if (around) {
            const lop_mat own = line(copy, x->m, 1, x->dt);
            lopk_conj(&own, x);
            in = copy;
            stride = 1;
        }
        forward(p, plan, c->in, in, stride, size, z, -1, base);
        times(p, z, spectrum, trans);
        backward(p, plan, c->out, z, y->p, y->rs, size, +1, scale, base);
        if (around) lopk_conj(y, y);
        return;
    }
    for (int q = 0; q < parts; q++) {
        forward(p, plan, c->in, (const char *)x->p + q * size, x->rs * parts, size, z, -1, base);
        times(p, z, spectrum, trans);
        backward(p, plan, c->out, z, (char *)y->p + q * size, y->rs * parts, size, +1, scale, base);
    }
}

void lopk_nd_product(const lop_mat *y, const lopk_conv *c, const void *spectrum, const void *plan,
                     bool trans, bool conj, const lop_mat *x, void *work) {
    const nd_plan *p = plan;
    const int64_t xs = (int64_t)lop_dtype_size(x->dt);
    char *base = aligned(work);
    if (y->m == 0) return;
    for (int64_t t = 0; t < y->n; t++) {
        lop_mat in = line((char *)x->p + t * x->cs * xs, x->m, x->rs, x->dt);
        const lop_mat out = line((char *)y->p + t * y->cs * xs, y->m, y->rs, y->dt);
        if (c->flip) {
            char *turned = base + p->fft + p->panel + p->stage;
            for (int64_t i = 0; i < x->m; i++)
                memcpy(turned + i * xs, (char *)in.p + (x->m - 1 - i) * x->rs * xs, (size_t)xs);
            in = line(turned, x->m, 1, x->dt);
        }
        if (p->levels == 1)
            lopk_toeplitz_fft(&out, spectrum, (const char *)plan + p->at[0], &in, 0, trans, conj,
                              base);
        else
            column(p, c, plan, spectrum, trans, conj, &in, &out, base);
    }
}

void lopk_nd_transform(const lop_mat *y, const void *plan, const lop_mat *x, int sign, double scale,
                       void *work) {
    const nd_plan *p = plan;
    const int64_t size = (int64_t)lop_dtype_size(p->wide), last = p->levels - 1;
    char *base = aligned(work), *z = base + p->fft + p->panel;
    LOP_ASSERT(p->dt == p->wide && x->dt == p->wide && y->dt == p->wide && y->m == p->count);
    for (int64_t t = 0; t < y->n; t++) {
        const char *in = (char *)x->p + t * x->cs * size;
        char *out = (char *)y->p + t * y->cs * size;
        if (last == 0) {
            lopk_cfft((const char *)plan + p->at[0], in, x->m, x->rs, out, y->m, y->rs, sign, scale,
                      base);
            continue;
        }
        forward(p, plan, p->n, in, x->rs, size, z, sign, base);
        const lop_mat from = line(z, y->m, 1, p->wide), to = line(out, y->m, y->rs, p->wide);
        lopk_scale(&to, scale, 0, &from);
    }
}

/* -- lengths */

/* Is a transform of just n as good as one of about 2 n? Not with large prime factors. */
static bool smooth(int64_t n) {
    static const int64_t primes[] = {2, 3, 5, 7, 11, 13};
    for (int i = 0; i < 6; i++)
        while (n > 1 && n % primes[i] == 0) n /= primes[i];
    return n == 1;
}

bool lopk_conv_lengths(const lopk_conv *c, lop_dtype dt, bool exact, int64_t *N) {
    const int64_t longest = (int64_t)1 << 40;
    for (int64_t l = 0; l < c->levels; l++) {
        const lop_dtype own = l == c->levels - 1 ? dt : complex_of(dt);
        const int64_t in = c->in[l], out = c->out[l];
        if (in < 1 || out < 1 || in > longest || out > longest || c->g[l] > longest) return false;
        if (c->circular && (exact || smooth(in))) {
            N[l] = in;
            continue;
        }
        /* differences that occur, -(in - 1) to out - 1, must not fall on entries that are not 0 */
        int64_t low = 1 - in, high = out - 1;
        if (!c->circular && -c->shift[l] > low) low = -c->shift[l];
        if (!c->circular && c->g[l] - 1 - c->shift[l] < high) high = c->g[l] - 1 - c->shift[l];
        int64_t need = out - low > high + in ? out - low : high + in;
        if (need < in) need = in;
        if (need < out) need = out;
        if (need > longest) return false;
        N[l] = lopk_fft_good(need, own);
    }
    return true;
}

double lopk_conv_fft_flops(const int64_t *N, int64_t levels) {
    double all = 1, logs = 0;
    for (int64_t l = 0; l < levels; l++) {
        all *= (double)N[l];
        double n = (double)N[l];
        for (logs += 1; n > 2; n /= 2) logs += 1;
    }
    return 5 * all * logs;
}
