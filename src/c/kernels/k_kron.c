/* k_kron.c: Kronecker products block by block, so that what one factor leaves is still in the cache
 * when the next one takes it.
 *
 * Step s multiplies along axis order[s] of a p-way array (rows) by k columns. Take the leading axis
 * of the steps still to do: those before its own step, and those after, do not touch it and run
 * apart for each index of it, on contiguous blocks; so on down until a block, with what comes of
 * it, fits the second cache. There one step at a time. A product is lopk_gemm_batch's: own register
 * blocks where they win, else BLAS. */
#include "k_kron.h"
#include "k_blas.h"
#include "kernels.h"

enum { NEAR = 3 << 16 }; /* bytes of a block's largest state; it is held about twice */

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

/* One step on a block of the axes from lo on: y (L, m, R) from x (L, n, R). */
static void pass(const walk *w, int lo, int step, char *x, char *y) {
    const lopk_kron *g = w->g;
    const int axis = g->order[step];
    const lop_mat *a = &g->a[axis];
    const int64_t L = extent(g, lo, axis, step), R = extent(g, axis + 1, g->n, step) * g->k;
    if (R == 1) { /* rows of x, as columns of its transpose */
        const lop_mat yt = {y, a->m, L, 1, a->m, g->dt}, xt = {x, a->n, L, 1, a->n, g->dt};
        lopk_gemm(&yt, a, g->conj[axis], &xt, false);
    } else {
        const lop_mat yl = {y, a->m, R, R, 1, g->dt}, xl = {x, a->n, R, R, 1, g->dt};
        lopk_gemm_batch(&yl, a->m * R, a, g->conj[axis], &xl, a->n * R, L);
    }
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
    for (int i = s; i < e && !w->dry; i++) {
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
    char *before = x, *after = y;
    if (at > s) {
        before = take(w, block(g, lo, at));
        blocks(w, g->a[axis].n, axis + 1, s, at, x, before);
    }
    const int64_t kept = block(g, lo, at + 1);
    if (at + 1 < e && (e - at == 2 || kept != out || before == y)) after = take(w, kept);
    w->moved += w->times * (double)((block(g, lo, at) + kept) * w->size);
    if (!w->dry) pass(w, lo, at, before, after);
    if (at + 1 < e) blocks(w, g->a[axis].m, axis + 1, at + 1, e, after, y);
    w->used = used;
}

static int64_t size_of(lop_dtype dt) { return dt == LOP_f32 ? 4 : dt == LOP_c128 ? 16 : 8; }

void lopk_kron_order(lopk_kron *g) {
    bool done[LOPK_KRON_MAX] = {false};
    for (int s = 0; s < g->n; s++) {
        int best = -1;
        double least = 0;
        for (int i = 0; i < g->n; i++) {
            const double m = (double)g->a[i].m, n = (double)g->a[i].n;
            const double key = m == 0 ? -2 : n == 0 ? 2 : 1 / n - 1 / m;
            if (done[i] || (best >= 0 && key >= least)) continue;
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
    for (int s = 0; s <= g->n; s++) {
        int64_t all = w.size;
        double flops = 2;
        for (int i = 0; i < g->n; i++)
            if (!lop_mul_ok(all, length(g, i, s), &all)) return LOP_OVERFLOW;
        if (!lop_mul_ok(all, g->k, &all) || all > INT64_MAX / 16) return LOP_OVERFLOW;
        if (s == g->n) break;
        flops *= (double)all / (double)w.size * (double)g->a[g->order[s]].m;
        g->flops += flops;
    }
    steps(&w, 0, 0, g->n, dummy + 1, dummy + 2);
    g->moved = w.moved;
    if (w.top * w.size > LOPK_KRON_OWN) g->room = w.top * w.size;
    return LOP_OK;
}

void lopk_kron_run(lopk_kron *g, const lop_mat *y, const lop_mat *x, void *scratch) {
    char own[LOPK_KRON_OWN] __attribute__((aligned(64)));
    walk w = {.g = g, .size = size_of(g->dt), .scratch = scratch ? scratch : own};
    if (y->m == 0 || y->n == 0) return;
    if (x->m == 0) {
        lopk_zero(y);
        return;
    }
    ranks(g);
    steps(&w, 0, 0, g->n, x->p, y->p);
}
