/* k_kron.c: Kronecker products block by block, so that what one factor leaves is still in the cache
 * when the next one takes it.
 *
 * Step s multiplies along axis order[s] of a p-way array (rows) by k columns. Take the leading axis
 * of the steps still to do: those before its own step, and those after, do not touch it and run
 * apart for each index of it, on contiguous blocks; so on down until a block, with what comes of
 * it, fits the second cache. There one step at a time. A product is lopk_gemm_batch's: own register
 * blocks where they win, else BLAS.
 *
 * A factor that is read from far for each block of few columns takes many such blocks side by side,
 * copied there and back: 28 -> 33 Gflop/s at 512 x 512 with 16 columns; measured 2026-11-22 on an
 * AMD EPYC (Zen 3), one thread. */
#include "k_kron.h"
#include "kernels/dense/k_blas.h"
#include "kernels/common/k_clones.h"
#include "kernels/dense/k_small_gemm.h"
#include "kernels/common/kernels.h"

#include <string.h>

enum {
    NEAR = 3 << 16,  /* bytes of a block's largest state; it is held about twice */
    FAR = 1 << 22,   /* bytes beyond which a second array costs more than copying pieces */
    PIECE = 1 << 20, /* of such a piece */
    FEW = 16,        /* up to this size of a factor a copy costs as much as the product */
    SHORT = 4,       /* rows and columns that fill no register block */
    BRIEF = 512,     /* multiply-adds that take less time than a call of gemm */
    SMALL = 256,     /* lopk_small_gemm's products in place */
    NARROW = 64,     /* columns up to which blocks of them are gathered for a factor, */
    HEAVY = 1 << 19  /* where that has so many bytes: it is read from far for each block */
};

/* Contraction to FMA is allowed: bits may differ between CPUs, never between calls. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3", "fp-contract=fast")
#endif
#define INLINE inline __attribute__((always_inline))

#define X(name) few_s_##name
#define T float
#define CPLX 0
#include "k_kron_per_dtype.h"
#define X(name) few_d_##name
#define T double
#define CPLX 0
#include "k_kron_per_dtype.h"
#define X(name) few_c_##name
#define T float
#define CPLX 1
#include "k_kron_per_dtype.h"
#define X(name) few_z_##name
#define T double
#define CPLX 1
#include "k_kron_per_dtype.h"

static void few(const lop_mat *a, bool conj, int64_t L, int64_t R, const void *x, void *y) {
    switch (a->dt) {
    case LOP_f32: few_s_few(a, conj, L, R, x, y); break;
    case LOP_f64: few_d_few(a, conj, L, R, x, y); break;
    case LOP_c64: few_c_few(a, conj, L, R, x, y); break;
    default: few_z_few(a, conj, L, R, x, y);
    }
}

static int64_t size_of(lop_dtype dt) { return dt == LOP_f32 ? 4 : dt == LOP_c128 ? 16 : 8; }

typedef struct walk {
    const lopk_kron *g;
    int64_t size;
    bool dry;     /* only measure: one block stands for all, `times` counts them */
    double times; /* blocks like this one */
    double moved;
    int64_t used, top; /* elements of scratch: now, at most */
    char *scratch;
} walk;

static int64_t length(const lopk_kron *g, int axis, int step) {
    return g->when[axis] < step ? g->a[axis].m : g->a[axis].n;
}

/* Elements before step `step` of axes lo .. hi. */
static int64_t extent(const lopk_kron *g, int lo, int hi, int step) {
    int64_t all = 1;
    for (int i = lo; i < hi; i++) all *= length(g, i, step);
    return all;
}
static int64_t block(const lopk_kron *g, int lo, int step) {
    return extent(g, lo, g->n, step) * g->k;
}

/* How many of L blocks of R columns are put side by side for one product with a factor; 0: none. */
static int64_t side_by_side(const lop_mat *a, int64_t size, int64_t L, int64_t R) {
    const int64_t longer = a->m > a->n ? a->m : a->n;
    if (R < 2 || R > NARROW || a->m <= SHORT || a->n <= SHORT || a->m * a->n * size < HEAVY)
        return 0;
    const int64_t many = PIECE / (longer * R * size);
    return L < 2 || many < 2 ? 0 : many < L ? many : L;
}

/* Likewise, `many` blocks at a time in `own`, which has room for both sides of them. */
static void gathered(const lopk_kron *g, int axis, int64_t L, int64_t R, int64_t many, char *x,
                     char *y, char *own) {
    const lop_mat *a = &g->a[axis];
    const int64_t size = size_of(g->dt), row = R * size;
    char *to = own + many * a->n * row;
    for (int64_t l = 0; l < L; l += many) {
        const int64_t c = many < L - l ? many : L - l, wide = c * row;
        for (int64_t i = 0; i < c; i++, x += a->n * row)
            for (int64_t j = 0; j < a->n; j++)
                memcpy(own + j * wide + i * row, x + j * row, (size_t)row);
        const lop_mat xl = {own, a->n, c * R, c * R, 1, g->dt},
                      yl = {to, a->m, c * R, c * R, 1, g->dt};
        lopk_gemm(&yl, a, g->conj[axis], &xl, false);
        for (int64_t i = 0; i < c; i++, y += a->m * row)
            for (int64_t j = 0; j < a->m; j++)
                memcpy(y + j * row, to + j * wide + i * row, (size_t)row);
    }
}

/* y (L, m, R) from x (L, n, R) by one factor. */
static void product(const lopk_kron *g, int axis, int64_t L, int64_t R, void *x, void *y) {
    const lop_mat *a = &g->a[axis];
    const bool brief = L * a->m * a->n * R <= BRIEF || (a->m <= SHORT && R <= SHORT);
    if (brief && a->m <= FEW && a->n <= FEW) {
        few(a, g->conj[axis], L, R, x, y);
    } else if (R == 1) { /* rows of x, as columns of its transpose */
        const lop_mat yt = {y, a->m, L, 1, a->m, g->dt}, xt = {x, a->n, L, 1, a->n, g->dt};
        lopk_gemm(&yt, a, g->conj[axis], &xt, false);
    } else {
        const lop_mat yl = {y, a->m, R, R, 1, g->dt}, xl = {x, a->n, R, R, 1, g->dt};
        lopk_gemm_batch(&yl, a->m * R, a, g->conj[axis], &xl, a->n * R, L);
    }
}

static bool in_rows(const lop_mat *x, int64_t step) {
    return step == x->m * x->n && (x->n == 1 ? x->rs == 1 : x->cs == 1 && x->rs == x->n);
}

bool lopk_kron_few(const lop_mat *y, int64_t y_step, const lop_mat *a, bool conj_a,
                   const lop_mat *b, int64_t b_step, int64_t count) {
    const int64_t R = y->n;
    if (a->m > SHORT || a->n > SHORT || a->n < 1 || count < SHORT) return false;
    if ((R != 1 && R != 2 && R != SHORT) || !in_rows(y, y_step) || !in_rows(b, b_step))
        return false;
    few(a, conj_a && lop_is_complex(a->dt), count, R, b->p, y->p);
    return true;
}

/* One step on a block of the axes from lo on. */
static char *take(walk *w, int64_t n);
static void pass(walk *w, int lo, int step, char *x, char *y) {
    const lopk_kron *g = w->g;
    const int axis = g->order[step];
    const lop_mat *a = &g->a[axis];
    const int64_t L = extent(g, lo, axis, step), R = extent(g, axis + 1, g->n, step) * g->k,
                  many = side_by_side(a, w->size, L, R), used = w->used;
    char *own = many > 0 ? take(w, many * R * (a->m + a->n)) : NULL;
    w->used = used;
    if (w->dry) return;
    if (many > 0)
        gathered(g, axis, L, R, many, x, y, own);
    else
        product(g, axis, L, R, x, y);
}

/* Takes room for n elements, a whole number of cache lines. */
static char *take(walk *w, int64_t n) {
    const int64_t line = 64 / w->size;
    char *at = w->dry ? w->scratch : w->scratch + w->used * w->size;
    w->used += (n + line - 1) / line * line;
    if (w->used > w->top) w->top = w->used;
    return at;
}

/* Steps s .. e one after the other; y may be x where the block keeps its size. */
static void near_steps(walk *w, int lo, int s, int e, char *x, char *y) {
    const lopk_kron *g = w->g;
    const int64_t used = w->used, out = block(g, lo, e);
    int64_t most = 0;
    for (int i = s + 1; i < e; i++) {
        const int64_t now = block(g, lo, i);
        if (now > most) most = now;
    }
    char *first = take(w, most), *second = e - s > 2 ? take(w, most) : NULL, *from = x;
    for (int i = s; i < e; i++) {
        const bool mine = (e - 1 - i) % 2 == 0 && block(g, lo, i + 1) <= out && from != y;
        char *to = i == e - 1 || mine ? y : from != first ? first : second;
        pass(w, lo, i, from, to);
        from = to;
    }
    w->used = used;
}

static void steps(walk *w, int lo, int s, int e, char *x, char *y);

/* Steps s .. e on each block of the axes from lo on, for `count` indices of the axis before; one
 * step takes them all at once. */
static void blocks(walk *w, int64_t count, int lo, int s, int e, char *x, char *y) {
    if (e - s == 1) {
        steps(w, lo - 1, s, e, x, y);
        return;
    }
    const int64_t in = block(w->g, lo, s) * w->size, out = block(w->g, lo, e) * w->size;
    if (w->dry && count > 1) {
        w->times *= (double)count;
        steps(w, lo, s, e, x, y);
        w->times /= (double)count;
        return;
    }
    for (int64_t i = 0; i < count; i++) steps(w, lo, s, e, x + i * in, y + i * out);
}

/* May this step, alone on its axis of a block of `bytes`, write where it reads? Beyond SMALL only
 * where a second array would not be found in the cache. */
static bool in_place(const lop_mat *a, int64_t bytes) {
    return a->m == a->n && a->n > FEW && (a->n <= SMALL || bytes > FAR);
}

/* May the step write where it reads, gathering blocks? */
static bool gathers_in_place(const lopk_kron *g, int lo, int step) {
    const int axis = g->order[step];
    const lop_mat *a = &g->a[axis];
    const int64_t L = extent(g, lo, axis, step), R = extent(g, axis + 1, g->n, step) * g->k;
    return a->m == a->n && side_by_side(a, size_of(g->dt), L, R) > 0;
}

/* The leading axis of a block, y (m, R) from x (n, R); in place by columns if x is y. */
static void lead_pass(walk *w, int axis, int step, char *x, char *y) {
    const lopk_kron *g = w->g;
    const lop_mat *a = &g->a[axis];
    const int64_t R = block(g, axis + 1, step), n = a->n, used = w->used;
    if (x != y) {
        pass(w, axis, step, x, y);
        return;
    }
    int64_t wide = PIECE / (n * w->size);
    if (wide < 64) wide = 64;
    if (wide > R) wide = R;
    lop_mat yl = {y, n, R, R, 1, g->dt}, t = {take(w, n * wide), n, wide, wide, 1, g->dt};
    w->used = used;
    if (w->dry) return;
    if (n <= SMALL && lopk_small_suits(&yl, a, &yl, 1)) {
        lopk_small_gemm(&yl, 0, a, g->conj[axis], &yl, 0, 1, false);
        return;
    }
    for (int64_t j = 0; j < R; j += wide, yl.p = (char *)yl.p + wide * w->size) {
        yl.n = t.n = wide < R - j ? wide : R - j;
        lopk_copy(&t, &yl);
        lopk_gemm(&yl, a, g->conj[axis], &t, false);
    }
}

/* Steps s .. e on a block of the axes from lo on. y may be x where each step keeps the size, and
 * there are two at least. */
static void steps(walk *w, int lo, int s, int e, char *x, char *y) {
    const lopk_kron *g = w->g;
    const int64_t out = block(g, lo, e), used = w->used;
    int64_t most = block(g, lo, s);
    int axis = g->n, at = s;
    for (int i = s; i < e; i++) {
        const int64_t now = block(g, lo, i + 1);
        if (now > most) most = now;
        if (g->order[i] < axis) axis = g->order[i], at = i;
    }
    if (e - s == 1 || most * w->size <= NEAR) {
        w->moved += w->times * (double)((block(g, lo, s) + out) * w->size);
        near_steps(w, lo, s, e, x, y);
        return;
    }
    const int64_t lead = extent(g, lo, axis, s);
    if (lead > 1) {
        blocks(w, lead, axis, s, e, x, y);
        return;
    }
    const lop_mat *a = &g->a[axis];
    const int64_t then = block(g, lo, at), now = block(g, lo, at + 1);
    const bool same = in_place(a, now * w->size), last = at + 1 == e;
    char *from = x, *to = y;
    if (at > s) {
        const bool fits = then == out && (same || !last) && (at - s > 1 || x != y);
        from = fits ? y : take(w, then);
        blocks(w, a->n, axis + 1, s, at, x, from);
    }
    const bool place = e - at == 2 && x != y && from == x && gathers_in_place(g, lo, at + 1);
    if (!last && !place && (e - at == 2 || now != out || (from == y && !same))) to = take(w, now);
    w->moved += w->times * (double)((then + now) * w->size);
    lead_pass(w, axis, at, from, to);
    if (!last) blocks(w, a->m, axis + 1, at + 1, e, to, y);
    w->used = used;
}

/* The last factor first, but where the last of two goes by gathered blocks, in place: then the
 * first one goes straight from x to y. */
void lopk_kron_order(lopk_kron *g) {
    const lop_mat *last = &g->a[g->n - 1];
    const bool narrow =
        g->n == 2 && last->m == last->n && side_by_side(last, size_of(g->dt), g->a[0].m, g->k) > 0;
    bool done[LOPK_KRON_MAX] = {false};
    for (int s = 0; s < g->n; s++) {
        int best = -1;
        double least = 0;
        for (int i = 0; i < g->n; i++) {
            const double m = (double)g->a[i].m, n = (double)g->a[i].n;
            const double key = m == 0 ? -2 : n == 0 ? 2 : 1 / n - 1 / m;
            const bool later =
                best < 0 || key < least || (key == least && g->a[i].n > FEW && !narrow);
            if (done[i] || !later) continue;
            best = i;
            least = key;
        }
        done[best] = true;
        g->order[s] = (int8_t)best;
    }
}

static void ranks(lopk_kron *g) {
    for (int s = 0; s < g->n; s++) g->when[g->order[s]] = (int8_t)s;
}
static bool empty(const lopk_kron *g) {
    for (int i = 0; i < g->n; i++)
        if (g->a[i].m == 0 || g->a[i].n == 0) return true;
    return g->k == 0;
}

lop_status lopk_kron_plan(lopk_kron *g) {
    char dummy[3];
    walk w = {.g = g, .size = size_of(g->dt), .dry = true, .times = 1, .scratch = dummy};
    ranks(g);
    g->flops = g->moved = 0;
    g->room = 0;
    if (empty(g)) return LOP_OK;
    int64_t most = 0; /* bytes of what lies between steps */
    for (int s = 0; s <= g->n; s++) {
        int64_t all = w.size;
        double flops = 2;
        for (int i = 0; i < g->n; i++)
            if (!lop_mul_ok(all, length(g, i, s), &all)) return LOP_OVERFLOW;
        if (!lop_mul_ok(all, g->k, &all) || all > INT64_MAX / 16) return LOP_OVERFLOW;
        if (s == g->n) break;
        if (s > 0 && all > most) most = all;
        flops *= (double)all / (double)w.size * (double)g->a[g->order[s]].m;
        g->flops += flops;
    }
    steps(&w, 0, 0, g->n, dummy + 1, dummy + 2);
    g->moved = w.moved;
    if (most > LOPK_KRON_OWN / 2) g->room = w.top > 0 ? w.top * w.size : 64;
    return LOP_OK;
}

/* All of it where no state is larger than half of the stack's room. */
static void run_flat(const lopk_kron *g, void *x, void *y) {
    char own[LOPK_KRON_OWN] __attribute__((aligned(64)));
    int64_t length[LOPK_KRON_MAX];
    for (int i = 0; i < g->n; i++) length[i] = g->a[i].n;
    for (int s = 0; s < g->n; s++) {
        const int axis = g->order[s];
        int64_t L = 1, R = g->k;
        void *to = s == g->n - 1 ? y : own + (s % 2 ? LOPK_KRON_OWN / 2 : 0);
        for (int i = 0; i < axis; i++) L *= length[i];
        for (int i = axis + 1; i < g->n; i++) R *= length[i];
        product(g, axis, L, R, x, to);
        length[axis] = g->a[axis].m;
        x = to;
    }
}

void lopk_kron_run(lopk_kron *g, const lop_mat *y, const lop_mat *x, void *scratch) {
    walk w = {.g = g, .size = size_of(g->dt), .scratch = scratch};
    if (y->m == 0 || y->n == 0) return;
    if (x->m == 0) {
        lopk_zero(y);
    } else if (!scratch) {
        run_flat(g, x->p, y->p);
    } else {
        ranks(g);
        steps(&w, 0, 0, g->n, x->p, y->p);
    }
}
