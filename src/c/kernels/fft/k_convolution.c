/* k_convolution.c: convolutions of boxes by the definition, for 13 dtypes.
 *
 * The last level is a loop over taps in blocks of BLOCK outputs, four taps at a time, so that y and
 * the part of x it needs stay in L1; the outer levels pair lines. Only pairs that exist are
 * visited: the cost is their number, not m n. Wrapped ends of a circular product are further pairs
 * with another shift. For integers the only way. */
#include "k_convolution.h"

#include "kernels/common/k_clones.h"
#include "kernels/common/kernels.h"

#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=fast")
#endif

enum { BLOCK = 512 };

bool lopk_conv_turn(lopk_conv *c) {
    for (int64_t l = 0; l < c->levels; l++) {
        const int64_t in = c->in[l];
        c->in[l] = c->out[l];
        c->out[l] = in;
        c->shift[l] = c->flip ? c->in[l] - 1 : c->g[l] - 1 - c->shift[l];
    }
    return !c->flip;
}

/* The wraps q for which g[i - j + shift + q in] can exist. */
static void wraps(const lopk_conv *c, int64_t l, int64_t *first, int64_t *last) {
    *first = *last = 0;
    if (!c->circular) return;
    const int64_t n = c->in[l], low = -c->shift[l] - (n - 1),
                  high = c->g[l] - 1 - c->shift[l] + n - 1;
    *first = low >= 0 ? (low + n - 1) / n : -(-low / n);
    *last = high >= 0 ? high / n : -((-high + n - 1) / n);
}

static double pairs_of(int64_t out, int64_t in, int64_t g, int64_t shift) {
    double s = 0;
    if (g > 4096) { /* near enough */
        const double full = (double)out * (double)in,
                     taps = (double)g * (double)(out < in ? out : in);
        return full < taps ? full : taps;
    }
    for (int64_t k = 0; k < g; k++) {
        const int64_t lo = k - shift > 0 ? k - shift : 0,
                      hi = in + k - shift < out ? in + k - shift : out;
        if (hi > lo) s += (double)(hi - lo);
    }
    return s;
}

double lopk_conv_flops(const lopk_conv *c) {
    double all = 1;
    for (int64_t l = 0; l < c->levels; l++) {
        double s = 0;
        if (c->circular)
            s = (double)c->in[l] * (double)(c->g[l]);
        else
            s = pairs_of(c->out[l], c->in[l], c->g[l], c->shift[l]);
        all *= s;
    }
    return all;
}

static int64_t count(const int64_t *n, int64_t levels) {
    int64_t all = 1;
    for (int64_t l = 0; l < levels; l++)
        if (!lop_mul_ok(all, n[l], &all)) return -1;
    return all;
}

size_t lopk_conv_direct_bytes(const lopk_conv *c, lop_dtype dt) {
    const int64_t g = count(c->g, c->levels), in = count(c->in, c->levels),
                  out = count(c->out, c->levels);
    int64_t all;
    if (g < 0 || in < 0 || out < 0 || !lop_add_ok(g, in, &all) || !lop_add_ok(all, out, &all) ||
        !lop_add_ok(all, 24, &all) || !lop_mul_ok(all, (int64_t)lop_dtype_size(dt), &all))
        return 0;
    return (size_t)all;
}

/* Where a walk over levels is: strides of each level in y, g and x. */
typedef struct conv_walk {
    const lopk_conv *c;
    int64_t ys[LOPK_LEVELS], gs[LOPK_LEVELS], xs[LOPK_LEVELS];
    int64_t N[LOPK_LEVELS]; /* embed: of e */
} conv_walk;

static void strides(const int64_t *n, int64_t levels, int64_t *s) {
    int64_t all = 1;
    for (int64_t l = levels - 1; l >= 0; l--) {
        s[l] = all;
        all *= n[l];
    }
}

typedef struct conv_args {
    const lopk_conv *c;
    const int64_t *N;
    int64_t i, j;
    bool reversed, conj;
    char *scratch;
} conv_args;
typedef void (*conv_fn)(const lop_mat *y, const conv_args *a, const lop_mat *g, const lop_mat *x);

#define LOPK_TEMPLATE "kernels/fft/k_convolution_per_dtype.h"
#include "kernels/common/k_each.h"

static const conv_fn products[LOP_NDTYPE] = {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real) [LOP_##name] = product_##name,
#include "base/dtype.def"
#undef LOP_DTYPE
};
static const conv_fn entries[LOP_NDTYPE] = {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real) [LOP_##name] = entries_##name,
#include "base/dtype.def"
#undef LOP_DTYPE
};
static const conv_fn embeds[LOP_NDTYPE] = {
#define LOP_DTYPE(name, ctype, npname, family, bytes, real) [LOP_##name] = embed_##name,
#include "base/dtype.def"
#undef LOP_DTYPE
};

void lopk_conv_direct(const lop_mat *y, const lopk_conv *c, const lop_mat *g, bool reversed,
                      bool conj, const lop_mat *x, void *scratch) {
    LOP_ASSERT(y->dt == x->dt && y->dt == g->dt && y->n == x->n);
    const conv_args a = {.c = c, .reversed = reversed, .conj = conj, .scratch = scratch};
    products[y->dt](y, &a, g, x);
}

void lopk_conv_dense(const lop_mat *y, const lopk_conv *c, const lop_mat *g) {
    LOP_ASSERT(y->dt == g->dt);
    const conv_args a = {.c = c, .i = -1, .j = -1};
    lopk_zero(y);
    if (y->m > 0 && y->n > 0) entries[y->dt](y, &a, g, NULL);
}

void lopk_conv_element(const lop_mat *out, const lopk_conv *c, const lop_mat *g, int64_t i,
                       int64_t j) {
    LOP_ASSERT(out->dt == g->dt);
    const conv_args a = {.c = c, .i = i, .j = j};
    lopk_zero(out);
    entries[out->dt](out, &a, g, NULL);
}

void lopk_conv_embed(const lop_mat *e, const lopk_conv *c, const int64_t *N, const lop_mat *g) {
    LOP_ASSERT(e->dt == g->dt && e->rs == 1);
    const conv_args a = {.c = c, .N = N};
    lopk_zero(e);
    if (e->m > 0) embeds[e->dt](e, &a, g, NULL);
}
