/* convolution.c: steps of the kinds of convolution type.
 *
 * By the definition where that is cheaper (measured) or the dtype is an integer, and componentwise
 * accurate then; else by a circulant and the FFT: plan and spectrum are one derived value, kept
 * while the generator keeps its content. Error then C u log2(N) |spectrum| |x|, normwise. */
#include "convolution.h"

#include "kernels/dense/k_blas.h"
#include "kernels/fft/k_fft.h"

#include <math.h>
#include <string.h>

bool lop_conv_geometry(int64_t how, const lop_shape *g, const lop_shape *n, lopk_conv *c) {
    memset(c, 0, sizeof *c);
    c->levels = n->ndim;
    c->circular = how == LOP_CONV_CIRCULAR;
    bool larger = false, smaller = false;
    if (g->ndim != n->ndim || n->ndim > LOPK_LEVELS) return false;
    for (int l = 0; l < n->ndim; l++) {
        c->g[l] = g->dim[l];
        c->in[l] = c->out[l] = n->dim[l];
        larger = larger || n->dim[l] > g->dim[l];
        smaller = smaller || n->dim[l] < g->dim[l];
        if (how == LOP_CONV_DIAGONALS) {
            if (c->g[l] < c->in[l] - 1) return false;
            c->out[l] = c->g[l] - (c->in[l] - 1);
            c->shift[l] = c->in[l] - 1;
        }
        if (c->in[l] == 0) continue;
        if (how == LOP_CONV_FULL) c->out[l] = n->dim[l] + g->dim[l] - 1;
        if (how == LOP_CONV_SAME) c->shift[l] = (g->dim[l] - 1) / 2;
        if (how == LOP_CONV_VALID) {
            const bool more = n->dim[l] >= g->dim[l];
            c->out[l] = (more ? n->dim[l] - g->dim[l] : g->dim[l] - n->dim[l]) + 1;
            c->shift[l] = (more ? g->dim[l] : n->dim[l]) - 1;
        }
    }
    return how != LOP_CONV_VALID || !(larger && smaller);
}

static size_t plan_room(size_t bytes) { return (bytes + 63) & ~(size_t)63; }

/* Data of an FFT step: the geometry of what is applied, then N. */
typedef struct fft_data {
    lopk_conv c;
    int64_t N[LOPK_LEVELS];
} fft_data;
enum { FFT_INTS = sizeof(fft_data) / sizeof(int64_t) };

/* 2^-k g near one where numbers of its size have no reciprocals or its transform leaves the range;
 * k, 0: as it is. */
static int centred(const lop_mat *to, const lop_mat *g) {
    const int limit = g->dt == LOP_f32 || g->dt == LOP_c64 ? 60 : 500;
    double top = 0;
    int k = 0;
    for (int64_t i = 0; i < g->m; i++) {
        const double _Complex z = lop_get(g->dt, g->p, i * g->rs);
        top = fmax(top, fmax(fabs(creal(z)), fabs(cimag(z))));
    }
    if (!(top > 0 && isfinite(top))) return 0;
    (void)frexp(top, &k);
    if (k < limit && -k < limit) return 0;
    lopk_copy(to, g);
    lopk_scale(to, ldexp(1, -k / 2), 0, to); /* 2^-k alone may be out of range */
    lopk_scale(to, ldexp(1, -k + k / 2), 0, to);
    return k;
}

/* Prepares [plan, spectrum]; attr.i[0]: the spectrum's offset, i[1]: reciprocals, of 2^-k times the
 * eigenvalues: k, a double, lies at i[1], behind it the least modulus over the largest; i[2]: the
 * scratch's bytes before a copy of g. */
static lop_status run_spectrum(const lop_call *c) {
    const fft_data *d = (const fft_data *)(const void *)c->step->data;
    char *plan = c->a[0]->p;
    const lop_mat *g = c->a[1];
    const int64_t at = c->step->attr.i[1];
    const lop_mat own = {(char *)c->scratch + c->step->attr.i[2], g->m, 1, 1, 1, g->dt};
    const int k = at ? centred(&own, g) : 0;
    if (at) *(double *)(void *)(plan + at) = k;
    if (k) g = &own;
    lop_status st = lopk_nd_plan_init(plan, d->N, d->c.levels, g->dt);
    if (st != LOP_OK) return lop_fail(c->err, LOP_INTERNAL, "no such FFT");
    st = lopk_nd_spectrum(plan, &d->c, g, at != 0, plan + c->step->attr.i[0], c->scratch);
    if (st == LOP_SINGULAR)
        return lop_fail(c->err, st,
                        "Singular matrix: an eigenvalue of the circulant is exactly "
                        "zero");
    if (st == LOP_OK && at) {
        const int64_t count = (int64_t)(lopk_nd_spectrum_bytes(d->N, d->c.levels, g->dt) /
                                        lop_dtype_size(lop_promote(g->dt, LOP_c64)));
        const lop_mat all = {plan + c->step->attr.i[0],  count, count, 1, 0,
                             lop_promote(g->dt, LOP_c64)};
        ((double *)(void *)(plan + at))[1] = lopk_pivot_ratio(&all);
    }
    return st;
}

/* attr.i: mode, the spectrum's offset, bytes of the panel that the scratch begins with; of a solve,
 * where k lies. */
static void product(const lop_mat *y, const lop_mat *x, const void *arg) {
    const lop_call *c = arg;
    const fft_data *d = (const fft_data *)(const void *)c->step->data;
    const int64_t *at = c->step->attr.i;
    const char *plan = c->a[2]->p;
    lopk_nd_product(y, &d->c, plan + at[1], plan, (at[0] & LOP_T) != 0, (at[0] & LOP_C) != 0, x,
                    (char *)c->scratch + at[2]);
    const int k = at[3] ? (int)*(const double *)(const void *)(plan + at[3]) : 0;
    if (!k) return;
    lopk_scale(y, ldexp(1, -k / 2), 0, y);
    lopk_scale(y, ldexp(1, -k + k / 2), 0, y);
}

static lop_status run_fft(const lop_call *c) {
    const int64_t at = c->step->attr.i[3];
    if (at)
        lop_call_near(c, ((const double *)(const void *)((const char *)c->a[2]->p + at))[1],
                      lopk_eps(c->a[0]->dt));
    lopk_by_panels(c->a[0], c->a[1], c->scratch, (size_t)c->step->attr.i[2], product, c);
    return LOP_OK;
}

int lop_conv_spectrum(lop_emit *e, const lopk_conv *c, int g, size_t *at, lop_status *st) {
    const lop_dtype dt = lop_slot_dtype(e, g);
    fft_data d = {.c = *c};
    if (!lopk_conv_lengths(c, dt, true, d.N) || !lopk_nd_plan_bytes(d.N, c->levels, dt)) {
        *st = lop_fail(lop_emit_err(e), LOP_OVERFLOW, "no FFT is as long as this matrix needs");
        return -1;
    }
    const size_t work = plan_room(lopk_nd_work_bytes(d.N, c->levels, dt)),
                 spectrum = lopk_nd_spectrum_bytes(d.N, c->levels, dt);
    *at = plan_room(lopk_nd_plan_bytes(d.N, c->levels, dt));
    const lop_attr attr = {.i = {(int64_t)*at, 0, (int64_t)work, 0}};
    const double flops = lopk_conv_fft_flops(d.N, c->levels) * (lop_is_complex(dt) ? 1 : 0.5);
    return lop_emit_derived_data(e, "spectrum", run_spectrum, *at + spectrum, 1, &g, &attr,
                                 (const int64_t *)&d, FFT_INTS, work, flops, st);
}

static lop_status by_fft(lop_emit *e, fft_data *d, const lop_node *g, lop_mode mode, bool invert,
                         int x, int out) {
    lop_status st;
    lop_dtype dt = lop_slot_dtype(e, out), pdt = lop_is_complex(g->dtype) ? dt : lop_dtype_real(dt);
    int64_t k, batch;
    int in[2] = {x, lop_emit_cast(e, lop_emit_value(e, g), pdt, &st)};
    if (in[1] < 0) return st;
    if (d->c.flip && (mode & LOP_T)) { /* the transpose is of this kind with another N */
        (void)lopk_conv_turn(&d->c);
        mode = mode & LOP_C ? LOP_C : LOP_N;
        if (!lopk_conv_lengths(&d->c, pdt, false, d->N)) return LOP_UNABLE;
    }
    size_t plan = lopk_nd_plan_bytes(d->N, d->c.levels, pdt),
           work = lopk_nd_work_bytes(d->N, d->c.levels, pdt),
           spectrum = lopk_nd_spectrum_bytes(d->N, d->c.levels, pdt);
    if (!plan || !work)
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "no FFT is as long as this product needs");
    double flops = lopk_conv_fft_flops(d->N, d->c.levels) * (lop_is_complex(pdt) ? 1 : 0.5);
    const size_t where = invert ? plan_room(plan) + plan_room(spectrum) : 0,
                 copy = invert ? (size_t)lop_cols(g) * lop_dtype_size(pdt) : 0;
    lop_attr attr = {.i = {(int64_t)plan_room(plan), (int64_t)where, (int64_t)plan_room(work), 0}};
    int blob = lop_emit_derived_data(
        e, invert ? "eigenvalues" : "spectrum", run_spectrum,
        (invert ? where + 2 * sizeof(double) : plan_room(plan) + spectrum), 1, &in[1], &attr,
        (const int64_t *)d, FFT_INTS, plan_room(work) + copy, flops, &st);
    if (blob < 0) return st;
    in[1] = blob;
    if (mode & LOP_T) (void)lopk_conv_turn(&d->c);
    lop_slot_sizes(e, out, NULL, &k, &batch);
    lop_step *s =
        lop_emit_step(e, invert ? "circulant-solve" : "convolve-fft", run_fft, out, 2, in);
    if (!s) return LOP_NOMEM;
    int64_t m, n;
    lop_slot_sizes(e, out, &m, NULL, NULL);
    lop_slot_sizes(e, x, &n, NULL, NULL);
    const size_t panel = lopk_panel_bytes(m, n, k, dt);
    s->attr = (lop_attr){.i = {mode, attr.i[0], (int64_t)panel, attr.i[1]}};
    s->scratch = panel + work;
    s->flags = LOP_STEP_COLUMNS;
    s->flops = 2 * flops * (double)k * (double)batch;
    return lop_emit_data(e, (const int64_t *)d, FFT_INTS);
}

static lop_status run_direct(const lop_call *c) {
    const lopk_conv *g = (const lopk_conv *)(const void *)c->step->data;
    const int64_t mode = c->step->attr.i[0];
    lopk_conv_direct(c->a[0], g, c->a[2], c->step->attr.i[1] != 0, (mode & LOP_C) != 0, c->a[1],
                     c->scratch);
    return LOP_OK;
}

static lop_status by_loops(lop_emit *e, lopk_conv *c, const lop_node *g, lop_mode mode, int x,
                           int out) {
    lop_status st;
    lop_dtype dt = lop_slot_dtype(e, out);
    int64_t k, batch;
    int in[2] = {x, lop_emit_cast(e, lop_emit_value(e, g), dt, &st)};
    if (in[1] < 0) return st;
    const bool reversed = (mode & LOP_T) != 0 && lopk_conv_turn(c);
    size_t scratch = lopk_conv_direct_bytes(c, dt);
    if (!scratch) return lop_fail(lop_emit_err(e), LOP_OVERFLOW, NULL);
    lop_slot_sizes(e, out, NULL, &k, &batch);
    lop_step *s = lop_emit_step(e, "convolve", run_direct, out, 2, in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {mode, reversed, 0, 0}};
    s->scratch = scratch;
    s->flags = LOP_STEP_COLUMNS;
    s->flops = 2 * lopk_conv_flops(c) * (double)k * (double)batch;
    return lop_emit_data(e, (const int64_t *)c, LOPK_CONV_INTS);
}

static int64_t volume(const int64_t *n, int64_t levels) {
    int64_t all = 1;
    for (int64_t l = 0; l < levels; l++)
        if (!lop_mul_ok(all, n[l], &all)) return INT64_MAX;
    return all;
}

/* Is the FFT the faster way? Its flops cost RATE of a multiply-add of the loops each. */
static bool fft_pays(const lop_emit *e, const lopk_conv *c, lop_dtype pdt, const int64_t *N) {
    static const double rate[4] = {0.9, 0.9, 0.8, 0.8};
    const int64_t asked = lop_emit_fft_min(e), in = volume(c->in, c->levels),
                  out = volume(c->out, c->levels);
    if (asked > 0) return (in > out ? in : out) >= asked;
    const double fft = lopk_conv_fft_flops(N, c->levels) * (lop_is_complex(pdt) ? 2 : 1) + 3000;
    return lopk_conv_flops(c) > fft * rate[pdt - LOP_f32];
}

lop_status lop_conv_apply(lop_emit *e, const lopk_conv *c, const lop_node *g, lop_mode mode, int x,
                          int out) {
    lop_dtype dt = lop_slot_dtype(e, out);
    fft_data d = {.c = *c};
    if (lop_is_blas(dt) && lop_emit_fft(e) && volume(c->in, c->levels) > 0 &&
        volume(c->out, c->levels) > 0) {
        lop_dtype pdt = lop_is_complex(g->dtype) ? dt : lop_dtype_real(dt);
        if (lopk_conv_lengths(c, pdt, false, d.N) && fft_pays(e, c, pdt, d.N))
            return by_fft(e, &d, g, mode, false, x, out);
    }
    return by_loops(e, &d.c, g, mode, x, out);
}

static lop_status run_nothing(const lop_call *c) {
    lopk_zero(c->a[0]);
    return LOP_OK;
}

lop_status lop_conv_solve(lop_emit *e, const lopk_conv *c, const lop_node *g, lop_mode mode, int x,
                          int out) {
    lop_dtype dt = lop_slot_dtype(e, out), pdt = lop_is_complex(g->dtype) ? dt : lop_dtype_real(dt);
    fft_data d = {.c = *c};
    if (volume(c->in, c->levels) == 0)
        return lop_emit_step(e, "nothing", run_nothing, out, 0, NULL) ? LOP_OK : LOP_NOMEM;
    if (!lopk_conv_lengths(c, pdt, true, d.N))
        return lop_fail(lop_emit_err(e), LOP_OVERFLOW, "no FFT is as long as this solve needs");
    return by_fft(e, &d, g, mode, true, x, out);
}

/* -- entries: copies of the generator's */

static lop_status run_dense(const lop_call *c) {
    lopk_conv_dense(c->a[0], (const lopk_conv *)(const void *)c->step->data, c->a[1]);
    return LOP_OK;
}
static lop_status run_entries(const lop_call *c) {
    const lop_mat *y = c->a[0];
    const int64_t size = (int64_t)lop_dtype_size(y->dt), *from = c->step->attr.i;
    const lopk_conv *g = (const lopk_conv *)(const void *)c->step->data;
    /* along one level, and on the main diagonal of a circulant, all have one difference */
    const bool alike = !g->flip && (g->levels == 1 || (g->circular && from[0] == from[1]));
    for (int64_t t = 0; t < y->m; t++) {
        const lop_mat one = {(char *)y->p + t * y->rs * size, 1, 1, 1, 1, y->dt};
        if (alike && t)
            memcpy(one.p, y->p, (size_t)size);
        else
            lopk_conv_element(&one, g, c->a[1], from[0] + t, from[1] + t);
    }
    return LOP_OK;
}
static lop_status copies(lop_emit *e, const lopk_conv *c, const lop_node *g, const char *name,
                         lop_run run, int64_t i, int64_t j, int out) {
    lop_status st;
    int in = lop_emit_cast(e, lop_emit_value(e, g), lop_slot_dtype(e, out), &st);
    if (in < 0) return st;
    lop_step *s = lop_emit_step(e, name, run, out, 1, &in);
    if (!s) return LOP_NOMEM;
    s->attr = (lop_attr){.i = {i, j, 0, 0}};
    return lop_emit_data(e, (const int64_t *)c, LOPK_CONV_INTS);
}
lop_status lop_conv_dense(lop_emit *e, const lopk_conv *c, const lop_node *g, int out) {
    return copies(e, c, g, "convolve-dense", run_dense, 0, 0, out);
}
lop_status lop_conv_diagonal(lop_emit *e, const lopk_conv *c, const lop_node *g, int64_t k,
                             int out) {
    return copies(e, c, g, "entries", run_entries, k < 0 ? -k : 0, k > 0 ? k : 0, out);
}
lop_status lop_conv_element(lop_emit *e, const lopk_conv *c, const lop_node *g, int64_t i,
                            int64_t j, int out) {
    return copies(e, c, g, "entries", run_entries, i, j, out);
}

double lop_conv_flops(const lopk_conv *c, int64_t k) {
    int64_t N[LOPK_LEVELS];
    double direct = 2 * lopk_conv_flops(c);
    if (lopk_conv_lengths(c, LOP_f64, false, N)) {
        double fft = lopk_conv_fft_flops(N, c->levels);
        if (fft < direct) direct = fft;
    }
    return direct * (double)k;
}

/* -- nodes */

lop_status lop_conv_infer(lop_node *n, const lop_node *g, const lop_node *sizes, lop_err *err) {
    int64_t all;
    if (g->op->cls == LOP_OPERATOR || g->core != 1 || sizes->op != &lop_op_sizes)
        return lop_fail(err, LOP_DIM, "%s takes a vector and its sizes", n->op->name);
    lop_status st = lop_shape_count(&sizes->shape, &all, err);
    if (st != LOP_OK) return st;
    if (all != lop_cols(g))
        return lop_fail(err, LOP_DIM, "%s: %lld numbers for sizes of %lld", n->op->name,
                        (long long)lop_cols(g), (long long)all);
    if (g->shape.ndim + 1 > LOP_MAXDIM)
        return lop_fail(err, LOP_DIM, "more than %d dimensions", LOP_MAXDIM);
    n->shape = g->shape;
    n->shape.ndim--;
    n->dtype = g->dtype;
    n->weak = g->weak;
    return LOP_OK;
}

lop_status lop_sizes_make(lop_ctx *ctx, int levels, const int64_t *n, const lop_node **out,
                          lop_err *err) {
    lop_node like = {.shape = {.ndim = levels}, .dtype = LOP_f64, .weak = LOP_WEAK, .core = 0};
    for (int i = 0; i < levels && i < LOP_MAXDIM; i++) like.shape.dim[i] = n[i];
    return lop_node_make(ctx, &lop_op_sizes, NULL, 0, NULL, &like, out, err);
}

void lop_circular_geometry(const lop_node *sizes, lopk_conv *c) {
    memset(c, 0, sizeof *c);
    c->levels = sizes->shape.ndim;
    c->circular = 1;
    for (int l = 0; l < sizes->shape.ndim; l++)
        c->g[l] = c->in[l] = c->out[l] = sizes->shape.dim[l];
}
