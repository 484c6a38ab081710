/* tape_loops.c: functions of arrays on a tape that come from elsewhere: the inner loops of NumPy's
 * ufuncs, which are called as NumPy calls them, so that the bits are NumPy's; and reductions and
 * running sums along the middle one of three dimensions.
 *
 *   operands --axes in the order of memory, as NumPy has them--> merged --> loop by loop
 *
 * What a loop tells by the flags of the processor (a division by zero, an overflow, what is not
 * defined) NumPy would warn of: UNABLE, and the caller's other way does. */
#include "tape.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

enum { OPERANDS = LOP_TAPE_LOOP_ARGS + 1, TOLD = FE_DIVBYZERO | FE_OVERFLOW | FE_INVALID };

void lop_tape_hush(void) {
    if (fetestexcept(TOLD)) feclearexcept(TOLD);
}
bool lop_tape_told(void) { return fetestexcept(TOLD) != 0; }

typedef struct walk {
    int nd, count;
    int64_t dim[LOP_MAXDIM];
    intptr_t stride[OPERANDS][LOP_MAXDIM]; /* bytes; the result's are first */
    char *at[OPERANDS];
} walk;

/* The strides of an operand along the dimensions of the result; false: it does not broadcast. */
static bool add_operand(walk *w, const lop_shape *whole, const lop_buf *b) {
    const int shift = whole->ndim - b->shape.ndim, j = w->count++;
    if (shift < 0) return false;
    w->at[j] = b->p;
    for (int d = 0, to = 0; d < whole->ndim; d++) {
        const int64_t own = d < shift ? 1 : b->shape.dim[d - shift];
        if (own != 1 && own != whole->dim[d]) return false;
        if (whole->dim[d] == 1) continue;
        w->stride[j][to++] =
            own == 1 ? 0 : (intptr_t)(b->stride[d - shift] * (int64_t)lop_dtype_size(b->dt));
    }
    return true;
}

static void exchange(walk *w, int d, int e) {
    const int64_t n = w->dim[d];
    w->dim[d] = w->dim[e];
    w->dim[e] = n;
    for (int j = 0; j < w->count; j++) {
        const intptr_t s = w->stride[j][d];
        w->stride[j][d] = w->stride[j][e];
        w->stride[j][e] = s;
    }
}

/* The last axis is the one along which the result's elements lie closest, and axes that follow one
 * another in every operand are one. */
static void put_in_order(walk *w) {
    for (int d = 1; d < w->nd; d++)
        for (int e = d; e > 0 && llabs(w->stride[0][e - 1]) < llabs(w->stride[0][e]); e--)
            exchange(w, e - 1, e);
    int n = 0;
    for (int d = 0; d < w->nd; d++) {
        bool on = n > 0;
        for (int j = 0; on && j < w->count; j++)
            on = w->stride[j][n - 1] == w->stride[j][d] * (intptr_t)w->dim[d];
        const int to = on ? n - 1 : n++;
        w->dim[to] = on ? w->dim[to] * w->dim[d] : w->dim[d];
        for (int j = 0; j < w->count; j++) w->stride[j][to] = w->stride[j][d];
    }
    w->nd = n;
}

/* False: they do not broadcast. */
static bool walk_open(walk *w, const lop_buf *out, const lop_buf *arg, int nargs) {
    w->nd = w->count = 0;
    if (nargs > LOP_TAPE_LOOP_ARGS) return false;
    for (int d = 0; d < out->shape.ndim; d++)
        if (out->shape.dim[d] != 1) w->dim[w->nd++] = out->shape.dim[d];
    if (!add_operand(w, &out->shape, out)) return false;
    for (int i = 0; i < nargs; i++)
        if (!add_operand(w, &out->shape, &arg[i])) return false;
    put_in_order(w);
    return true;
}

/* -- elementwise */

/* What is called for each row: of n elements, where the operands are (arguments first, the result
 * last, as ufuncs have them) and how far apart their elements. */
typedef struct inner {
    lop_tape_loop loop; /* run NULL: a choice, of elements of `size` bytes */
    size_t size;
} inner;

#define CHOOSE(T)                                                                                  \
    for (int64_t i = 0; i < n; i++, p[0] += s[0], p[1] += s[1], p[2] += s[2], p[3] += s[3])        \
    memcpy(p[3], *p[0] ? p[1] : p[2], sizeof(T))

static void choose(char *const *at, int64_t n, const intptr_t *s, size_t size) {
    char *p[OPERANDS] = {at[0], at[1], at[2], at[3]};
    if (size == sizeof(float))
        CHOOSE(float);
    else if (size == sizeof(double))
        CHOOSE(double);
    else
        CHOOSE(double _Complex);
}

static void call(const inner *f, char **at, int64_t n, const intptr_t *s) {
    const intptr_t count = (intptr_t)n;
    if (f->loop.run)
        f->loop.run(at, &count, s, f->loop.data);
    else
        choose(at, n, s, f->size);
}

static void each(const walk *w, const inner *f) {
    int64_t at[LOP_MAXDIM] = {0};
    intptr_t step[OPERANDS] = {0};
    const int last = w->nd - 1, nargs = w->count - 1;
    for (int d = 0; d < w->nd; d++)
        if (w->dim[d] == 0) return;
    for (int j = 0; last >= 0 && j < w->count; j++) step[j ? j - 1 : nargs] = w->stride[j][last];
    for (;;) {
        char *p[OPERANDS];
        for (int j = 0; j < w->count; j++) {
            char *start = w->at[j];
            for (int d = 0; d < last; d++) start += at[d] * w->stride[j][d];
            p[j ? j - 1 : nargs] = start;
        }
        call(f, p, last < 0 ? 1 : w->dim[last], step);
        int d = last - 1;
        while (d >= 0 && ++at[d] == w->dim[d]) at[d--] = 0;
        if (d < 0) return;
    }
}

/* -- reductions: out (p, q) of a (p, n, q), in NumPy's order */

/* The first (p, q) of a into out. */
static lop_status begin(const lop_tape_step *s, const lop_buf *a, const lop_buf *out) {
    static const double zero[1] = {0};
    const lop_buf none = {.p = (void *)(uintptr_t)zero, .dt = a->dt};
    lop_buf first = *a;
    first.shape = out->shape;
    first.stride[1] = a->stride[2];
    return s->what == LOP_TAPE_SUMS ? lop_tape_function(LOP_TAPE_ADD, 0, &first, &none, out)
                                    : lop_tape_function(LOP_TAPE_COPY, 0, &first, NULL, out);
}

static lop_status reduce(const lop_tape_step *s, const lop_buf *a, const lop_buf *out) {
    if (a->shape.ndim != 3 || out->shape.ndim != 2 || a->dt != out->dt ||
        (a->dt != LOP_f64 && a->dt != LOP_f32) || a->shape.dim[1] < 1 ||
        out->shape.dim[0] != a->shape.dim[0] || out->shape.dim[1] != a->shape.dim[2])
        return LOP_UNABLE;
    const intptr_t size = (intptr_t)lop_dtype_size(a->dt), far = (intptr_t)a->stride[0] * size,
                   down = (intptr_t)a->stride[1] * size, on = (intptr_t)a->stride[2] * size,
                   to = (intptr_t)out->stride[0] * size, along = (intptr_t)out->stride[1] * size,
                   n = (intptr_t)a->shape.dim[1], columns = (intptr_t)a->shape.dim[2];
    const bool line = columns == 1, sums = s->what == LOP_TAPE_SUMS;
    const intptr_t step[3] = {line ? 0 : along, line ? down : on, line ? 0 : along},
                   count = line ? n - 1 : columns;
    if (!line || !sums) {
        const lop_status st = begin(s, a, out);
        if (st != LOP_OK) return st;
    }
    for (intptr_t i = 0; i < (intptr_t)a->shape.dim[0]; i++) {
        char *from = (char *)a->p + i * far, *result = (char *)out->p + i * to;
        if (line && sums) {
            lop_tape_line_sum(a->dt, from, n, a->stride[1], result);
            continue;
        }
        for (intptr_t k = 1; k < (line ? (n > 1) + 1 : n); k++) {
            char *p[3] = {result, from + k * down, result};
            s->loop.run(p, &count, step, s->loop.data);
        }
    }
    return LOP_OK;
}

/* out[:, k] = f(out[:, k - 1], a[:, k]), from a[:, 0] on. */
static lop_status run_along(const lop_tape_step *s, const lop_buf *a, const lop_buf *out) {
    if (a->shape.ndim != 3 || out->shape.ndim != 3 || a->dt != out->dt ||
        (a->dt != LOP_f64 && a->dt != LOP_f32))
        return LOP_UNABLE;
    for (int d = 0; d < 3; d++)
        if (a->shape.dim[d] != out->shape.dim[d] || a->shape.dim[d] < 1) return LOP_UNABLE;
    const size_t size = lop_dtype_size(a->dt);
    intptr_t from[3], to[3];
    for (int d = 0; d < 3; d++) {
        from[d] = (intptr_t)a->stride[d] * (intptr_t)size;
        to[d] = (intptr_t)out->stride[d] * (intptr_t)size;
    }
    const intptr_t step[3] = {to[1], from[1], to[1]}, count = (intptr_t)a->shape.dim[1] - 1;
    for (intptr_t i = 0; i < (intptr_t)a->shape.dim[0]; i++)
        for (intptr_t j = 0; j < (intptr_t)a->shape.dim[2]; j++) {
            char *first = (char *)a->p + i * from[0] + j * from[2];
            char *result = (char *)out->p + i * to[0] + j * to[2];
            char *p[3] = {result, first + from[1], result + to[1]};
            memcpy(result, first, size);
            if (count > 0) s->loop.run(p, &count, step, s->loop.data);
        }
    return LOP_OK;
}

lop_status lop_tape_loops(const lop_tape_step *s, const lop_buf *arg, const lop_buf *out) {
    walk w;
    const inner f = {s->loop, lop_dtype_size(out->dt)};
    if (s->what == LOP_TAPE_CHOOSE &&
        (s->nargs != 3 || arg[0].dt != LOP_b8 || arg[1].dt != out->dt || arg[2].dt != out->dt ||
         !lop_is_blas(out->dt)))
        return LOP_UNABLE;
    lop_tape_hush();
    if (s->what == LOP_TAPE_REDUCE || s->what == LOP_TAPE_SUMS) {
        const lop_status st = reduce(s, arg, out);
        if (st != LOP_OK) return st;
    } else if (s->what == LOP_TAPE_RUN) {
        const lop_status st = run_along(s, arg, out);
        if (st != LOP_OK) return st;
    } else {
        if (!walk_open(&w, out, arg, s->nargs)) return LOP_UNABLE;
        each(&w, &f);
    }
    return lop_tape_told() ? LOP_UNABLE : LOP_OK;
}
