/* test_tape.c: tapes: what they compute; each allocation failing in turn, while a tape is made,
 * while its proof is sought and while it runs, leaves nothing behind and no wrong answer. */
#include "exec/tape.h"
#include "support.h"

#include <stdlib.h>
#include <string.h>

static world w;

enum { N = 20 };

static lop_tape_view view_of(int slot, int ndim, const int64_t *dim) {
    lop_tape_view v = {.slot = slot, .buf = {.dt = LOP_f64, .shape = lop_shape_of(ndim, dim)}};
    for (int64_t i = ndim - 1, next = 1; i >= 0; i--) {
        v.buf.stride[i] = next;
        next *= dim[i];
    }
    return v;
}

static lop_status fill(lop_tape_step *s, lop_tape_what what, int nargs, const lop_tape_view *arg,
                       lop_tape_view out) {
    s->what = what;
    s->arg = lop_calloc(&w.ctx, (size_t)nargs, sizeof *arg);
    if (!s->arg) return LOP_NOMEM;
    memcpy(s->arg, arg, (size_t)nargs * sizeof *arg);
    s->nargs = nargs;
    s->out = out;
    return LOP_OK;
}

/* -(A x): a plan of two leaves, then a function. */
static lop_status tape_of(lop_plan *plan, lop_proof_kind proof, lop_tape **out) {
    static const int64_t square[2] = {N, N}, column[2] = {N, 1};
    const lop_tape_view arg[2] = {view_of(0, 2, square), view_of(1, 2, column)},
                        made = view_of(2, 2, column), minus = view_of(3, 2, column);
    lop_tape *t = NULL;
    lop_status st = lop_tape_new(&w.ctx, 2, 4, 2, 1, &t);
    if (st != LOP_OK) return st;
    t->slot[0].bytes = N * N * 8;
    for (int i = 1; i < 4; i++) t->slot[i].bytes = N * 8;
    st = fill(&t->step[0], LOP_TAPE_PLAN, 2, arg, made);
    if (st == LOP_OK) st = fill(&t->step[1], LOP_TAPE_NEGATIVE, 1, &made, minus);
    const size_t keys = (size_t)lop_plan_nkeys(plan);
    if (st == LOP_OK && !(t->step[0].key = lop_calloc(&w.ctx, keys + 1, sizeof(uint64_t))))
        st = LOP_NOMEM;
    if (st == LOP_OK) {
        memcpy(t->step[0].key, plan->key, keys * sizeof(uint64_t));
        t->step[0].plan = plan;
        plan->refs++;
        t->out[0] = minus;
        t->proof = lop_calloc(&w.ctx, 1, sizeof *t->proof);
        st = t->proof ? lop_tape_close(t, &w.err) : LOP_NOMEM;
    }
    if (st == LOP_OK) {
        *t->proof = (lop_proof){.kind = proof, .behind = 1, .narrays = 1};
        *out = t;
    } else {
        lop_tape_free(t);
    }
    return st;
}

static lop_plan *plan_of(void) {
    static const int64_t square[2] = {N, N}, column[2] = {N, 1};
    const lop_node *a = t_one_of(&w, "dense", NULL, t_array(&w, LOP_f64, 2, 2, square)),
                   *x = t_array(&w, LOP_f64, 2, 2, column), *root = t_two(&w, "solve", a, x);
    lop_plan *plan = NULL;
    if (root && lop_plan_make(&w.ctx, w.rules, &w.options, root, &plan, &w.err) != LOP_OK)
        plan = NULL;
    lop_node_unref(root);
    lop_node_unref(a);
    lop_node_unref(x);
    return plan;
}

/* Made, run twice, freed; with the allocation of that number failing. */
static lop_status play(lop_plan *plan, lop_proof_kind proof, const lop_buf *in, double *made) {
    static const int64_t column[2] = {N, 1};
    lop_tape *t = NULL;
    lop_buf out = view_of(0, 2, column).buf;
    out.p = made;
    lop_status st = tape_of(plan, proof, &t);
    for (int turn = 0; st == LOP_OK && turn < 2; turn++) st = lop_tape_run(t, in, &out, &w.err);
    lop_tape_free(t);
    return st;
}

static void test_failing(lop_proof_kind proof, const char *who) {
    static double a[N * N], x[N], made[N], again[N];
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) a[i * N + j] = i == j ? N : 1.0 / (1 + abs(i - j));
        x[i] = 1.0 + i;
    }
    lop_buf in[2] = {{.p = a}, {.p = x}};
    static const int64_t square[2] = {N, N}, column[2] = {N, 1};
    for (int i = 0; i < 2; i++) {
        void *p = in[i].p;
        in[i] = view_of(i, 2, i ? column : square).buf;
        in[i].p = p;
    }
    lop_plan *plan = plan_of();
    if (!t_check(plan != NULL, "a plan: %s", w.err.text)) return;
    t_check(play(plan, proof, in, made) == LOP_OK, "%s: %s", who, w.err.text);
    double most = 0;
    for (int i = 0; i < N; i++) { /* A (-made) = x */
        double sum = x[i];
        for (int j = 0; j < N; j++) sum += a[i * N + j] * made[j];
        if (sum > most || -sum > most) most = sum < 0 ? -sum : sum;
    }
    t_check(most < 1e-12, "%s: off by %g", who, most);
    const int64_t alive = w.ctx.live;
    for (int all = 0; all < 2; all++)
        for (int64_t i = 0;; i++) {
            memset(again, 0xff, sizeof again);
            w.memory = (failing){.fail_at = i, .all = all != 0};
            const lop_status st = play(plan, proof, in, again);
            const bool reached = w.memory.count > i;
            w.memory.fail_at = -1;
            t_check(w.ctx.live == alive, "%s: allocation %lld: %lld blocks lost", who, (long long)i,
                    (long long)(w.ctx.live - alive));
            /* a proof without memory does not tell */
            t_check(st == LOP_OK || st == LOP_NOMEM || st == LOP_UNABLE, "%s: allocation %lld: %s",
                    who, (long long)i, lop_status_name(st));
            t_check(st != LOP_OK || memcmp(made, again, sizeof made) == 0,
                    "%s: allocation %lld: another answer", who, (long long)i);
            if (!reached) {
                t_check(i > 5 && st == LOP_OK, "%s: %lld allocations", who, (long long)i);
                break;
            }
        }
    lop_plan_unref(plan);
    t_group(who);
}

/* A result is made where the caller wants it, or copied there: of the same bits, whatever the
 * address, also where an argument lies. */
static void test_places(void) {
    enum { APART = 3, ROOM = 64 + APART * N };
    static double a[N * N];
    static _Alignas(64) double room[ROOM];
    static const int64_t square[2] = {N, N}, column[2] = {N, 1};
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i * N + j] = i == j ? N : 1.0 / (1 + abs(i - j));
    double due[N];
    static const struct {
        int x, out, step; /* from where in `room` */
    } place[] = {{32, 0, 1}, {32, 1, 1},    {0, 0, 1}, {0, 8, 1},
                 {8, 0, 1},  {0, 0, APART}, {63, 0, 1}};
    lop_plan *plan = plan_of();
    if (!t_check(plan != NULL, "a plan: %s", w.err.text)) return;
    for (size_t k = 0; k < sizeof place / sizeof *place; k++) {
        for (int i = 0; i < ROOM; i++) room[i] = -7;
        for (int i = 0; i < N; i++) room[place[k].x + i] = 1.0 + i;
        lop_tape *t = NULL;
        lop_buf in[2] = {view_of(0, 2, square).buf, view_of(1, 2, column).buf},
                out = view_of(0, 2, column).buf;
        in[0].p = a;
        in[1].p = room + place[k].x;
        out.p = room + place[k].out;
        out.stride[0] = place[k].step;
        const bool ran = tape_of(plan, LOP_PROOF_TRUE, &t) == LOP_OK &&
                         lop_tape_run(t, in, &out, &w.err) == LOP_OK;
        t_check(ran, "place %d: %s", (int)k, w.err.text);
        for (int i = 0; ran && i < N; i++) {
            const double found = room[place[k].out + i * place[k].step];
            if (k == 0) due[i] = found;
            t_check(found == due[i] && found != -7, "place %d, element %d", (int)k, i);
        }
        for (int i = 0; ran && k > 0 && i < ROOM; i++) { /* nothing else is written to */
            const int at = i - place[k].out, x = i - place[k].x;
            const bool own = at >= 0 && at < N * place[k].step && at % place[k].step == 0;
            if (!own)
                t_check(room[i] == (x >= 0 && x < N ? 1.0 + x : -7), "place %d, beside %d", (int)k,
                        i);
        }
        lop_tape_free(t);
    }
    lop_plan_unref(plan);
    t_group("places");
}

/* -- loops from elsewhere */

static int64_t longest; /* of the calls since it was set to 0 */

static void hypotenuse(char **at, const intptr_t *count, const intptr_t *step, void *data) {
    char *a = at[0], *b = at[1], *y = at[2];
    for (intptr_t i = 0; i < *count; i++, a += step[0], b += step[1], y += step[2])
        *(double *)(void *)y = *(double *)(void *)a * 2 + *(double *)(void *)b + *(double *)data;
    if (*count > longest) longest = *count;
}
static void quotient(char **at, const intptr_t *count, const intptr_t *step, void *data) {
    (void)data;
    for (intptr_t i = 0; i < *count; i++)
        *(volatile double *)(void *)(at[1] + i * step[1]) =
            1 / *(volatile double *)(void *)(at[0] + i * step[0]);
}

static lop_buf buf_of(void *p, int ndim, const int64_t *dim, const int64_t *stride) {
    lop_buf b = {.p = p, .dt = LOP_f64, .shape = lop_shape_of(ndim, dim)};
    for (int d = 0; d < ndim; d++) b.stride[d] = stride[d];
    return b;
}

/* Elementwise, of any layouts: columns, reversed, broadcast, empty. */
static void test_loops(void) {
    static double a[60], b[60], y[60], three = 3;
    for (int i = 0; i < 60; i++) a[i] = i, b[i] = 1000 * i;
    const lop_tape_step s = {.what = LOP_TAPE_LOOP, .nargs = 2, .loop = {hypotenuse, &three}};
    static const struct {
        int64_t a[2], b[2], y[2], at, longest;
    } layout[] = {{{6, 1}, {6, 1}, {6, 1}, 0, 30},   {{1, 5}, {1, 5}, {1, 5}, 0, 30},
                  {{12, 2}, {6, 1}, {6, 1}, 0, 30},  {{1, 5}, {6, 1}, {6, 1}, 0, 6},
                  {{6, 1}, {0, 1}, {6, 1}, 0, 6},    {{6, 1}, {1, 0}, {1, 5}, 0, 5},
                  {{-6, -1}, {6, 1}, {6, 1}, 29, 30}};
    static const int64_t dim[2] = {5, 6};
    for (size_t k = 0; k < sizeof layout / sizeof *layout; k++) {
        const lop_buf arg[2] = {buf_of(a + layout[k].at, 2, dim, layout[k].a),
                                buf_of(b, 2, dim, layout[k].b)},
                      out = buf_of(y, 2, dim, layout[k].y);
        memset(y, 0xff, sizeof y);
        longest = 0;
        t_check(lop_tape_loops(&s, arg, &out) == LOP_OK, "layout %d", (int)k);
        bool right = longest == layout[k].longest;
        for (int64_t i = 0; i < 5; i++)
            for (int64_t j = 0; j < 6; j++)
                right = right && y[i * layout[k].y[0] + j * layout[k].y[1]] ==
                                     2 * a[layout[k].at + i * layout[k].a[0] + j * layout[k].a[1]] +
                                         b[i * layout[k].b[0] + j * layout[k].b[1]] + 3;
        t_check(right, "layout %d: in runs of %lld", (int)k, (long long)longest);
    }
    static const int64_t none[2] = {0, 6}, six[2] = {6, 1}, seven = 7, one = 1;
    const lop_buf empty = buf_of(y, 2, none, six), row = buf_of(a, 1, &seven, &one),
                  whole = buf_of(y, 2, dim, six);
    const lop_buf nothing[2] = {empty, empty}, odd[2] = {whole, row};
    longest = 0;
    t_check(lop_tape_loops(&s, nothing, &empty) == LOP_OK && longest == 0, "of nothing");
    t_check(lop_tape_loops(&s, odd, &whole) == LOP_UNABLE, "shapes that do not broadcast");
    t_group("loops");
}

/* What NumPy would warn of; and what it would not, whatever was told before. */
static void test_told(void) {
    static double a[4] = {1, 2, 4, 8}, y[4];
    static const int64_t four = 4, one = 1;
    const lop_buf arg = buf_of(a, 1, &four, &one), out = buf_of(y, 1, &four, &one);
    const lop_tape_step s = {.what = LOP_TAPE_LOOP, .nargs = 1, .loop = {quotient, NULL}};
    t_check(lop_tape_loops(&s, &arg, &out) == LOP_OK && y[3] == 0.125, "quotients");
    a[2] = 0;
    t_check(lop_tape_loops(&s, &arg, &out) == LOP_UNABLE, "a division by zero is told");
    a[2] = 4;
    t_check(lop_tape_loops(&s, &arg, &out) == LOP_OK, "but not of the next call");
    t_group("told");
}

/* Along the middle of three: sums are pairwise where they are of a line, else row by row. */
static void test_reductions(void) {
    enum { P = 3, M = 200, Q = 4 };
    static double a[P * M * Q], y[P * Q], half = 0;
    static const int64_t dim[3] = {P, M, Q}, to[2] = {P, Q}, own[2] = {Q, 1};
    static const int64_t row[3] = {(int64_t)M * Q, Q, 1}, line[3] = {P, M, 1}, lines[2] = {P, 1};
    for (int i = 0; i < P * M * Q; i++) a[i] = 1.0 / (1 + i);
    const lop_buf whole = buf_of(a, 3, dim, row), out = buf_of(y, 2, to, own);
    const lop_tape_step s = {.what = LOP_TAPE_SUMS, .nargs = 1, .loop = {hypotenuse, &half}},
                        r = {.what = LOP_TAPE_REDUCE, .nargs = 1, .loop = {hypotenuse, &half}};
    t_check(lop_tape_loops(&r, &whole, &out) == LOP_OK, "rows");
    for (int k = 0; k < P * Q; k++) {
        double due = a[k / Q * M * Q + k % Q];
        for (int64_t i = 1; i < M; i++) due = 2 * due + a[(k / Q * M + i) * Q + k % Q];
        t_check(y[k] == due, "row %d", k);
    }
    const lop_buf thin = buf_of(a, 3, line, row), few = buf_of(y, 2, lines, own);
    t_check(lop_tape_loops(&s, &thin, &few) == LOP_OK, "lines");
    for (int64_t i = 0; i < P; i++) {
        double due;
        lop_tape_line_sum(LOP_f64, (char *)(a + i * M * Q), M, Q, (char *)&due);
        t_check(y[i * Q] == due, "line %d", (int)i);
    }
    t_check(lop_tape_loops(&r, &whole, &few) == LOP_UNABLE, "a result of another shape");
    t_group("reductions");
}

/* Each result from the one before it, from the first element on, forwards and backwards. */
static void test_runs(void) {
    enum { P = 3, M = 20, Q = 4 };
    static double a[P * M * Q], y[P * M * Q], half = 0;
    static const int64_t dim[3] = {P, M, Q}, row[3] = {M * Q, Q, 1}, turned[3] = {M * Q, -Q, 1},
                         to[3] = {1, P * Q, P}, none[3] = {P, 0, Q};
    for (int i = 0; i < P * M * Q; i++) a[i] = 1.0 / (1 + i);
    const lop_tape_step s = {.what = LOP_TAPE_RUN, .nargs = 1, .loop = {hypotenuse, &half}};
    for (int back = 0; back < 2; back++) {
        const lop_buf arg = buf_of(a + (back ? (M - 1) * Q : 0), 3, dim, back ? turned : row),
                      out = buf_of(y, 3, dim, to);
        t_check(lop_tape_loops(&s, &arg, &out) == LOP_OK, "a run");
        for (int i = 0; i < P; i++)
            for (int j = 0; j < Q; j++) {
                double due = 0;
                for (int k = 0; k < M; k++) {
                    const double x = a[i * M * Q + (back ? M - 1 - k : k) * Q + j];
                    due = k ? 2 * due + x : x;
                    t_check(y[i + k * P * Q + j * P] == due, "%d %d %d", i, k, j);
                }
            }
    }
    lop_buf arg = buf_of(a, 3, dim, row), out = buf_of(y, 3, none, row);
    t_check(lop_tape_loops(&s, &arg, &out) == LOP_UNABLE, "a result of another shape");
    t_check(lop_tape_loops(&s, &out, &out) == LOP_UNABLE, "of nothing");
    arg.dt = LOP_f32;
    out = buf_of(y, 3, dim, row);
    t_check(lop_tape_loops(&s, &arg, &out) == LOP_UNABLE, "of two dtypes");
    t_group("runs");
}

static void test_choice(void) {
    static unsigned char mask[4] = {1, 0, 0, 1};
    static double a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, y[4];
    static const int64_t four = 4, one = 1;
    lop_buf arg[3] = {buf_of(mask, 1, &four, &one), buf_of(a, 1, &four, &one),
                      buf_of(b, 1, &four, &one)};
    const lop_buf out = buf_of(y, 1, &four, &one);
    const lop_tape_step s = {.what = LOP_TAPE_CHOOSE, .nargs = 3};
    t_check(lop_tape_loops(&s, arg, &out) == LOP_UNABLE, "a mask of doubles");
    arg[0].dt = LOP_b8;
    t_check(lop_tape_loops(&s, arg, &out) == LOP_OK && y[0] == 1 && y[1] == 6 && y[2] == 7 &&
                y[3] == 4,
            "a choice");
    arg[2].dt = LOP_f32;
    t_check(lop_tape_loops(&s, arg, &out) == LOP_UNABLE, "of two dtypes");
    t_group("choice");
}

int main(void) {
    world_open(&w, 1);
    test_loops();
    test_told();
    test_reductions();
    test_runs();
    test_choice();
    test_failing(LOP_PROOF_TRUE, "no proof");
    test_failing(LOP_PROOF_SYMMETRIC, "a proof by Cholesky");
    test_failing(LOP_PROOF_KRON, "of a factor");
    test_places();
    world_close(&w, "test_tape");
    return t_end();
}
