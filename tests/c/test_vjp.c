/* test_vjp.c: the cotangents that kinds have of their children. Of every kind with a slot `vjp`,
 * of every child: of a real one it is real, so that nobody carries on complex numbers; and
 * Re sum(conj(g) child) grows as Re sum(conj(G) A) does where the child moves, by differences of
 * the interpreter's dense forms. */
#include "gen.h"

#include "expr/vjp.h"

#include <math.h>
#include <string.h>

static world w;

static const lop_dtype dtypes[] = {LOP_f64, LOP_c128};

static const long double STEP = 0x1p-16L;

/* Re sum(conj(g) a), a as it is now and g as it was; a vector that ends before g does is zero
 * beyond, and a diagonal matrix of all numbers is these. Not known: what the interpreter has no
 * words for, sums over kernels. */
static long double paired(const lop_node *a, const tv *G, bool *known) {
    ip p;
    long double sum = 0;
    ip_open(&p, &w.rand, LOP_c128, false);
    const tv *A = ip_eval(&p, a);
    if (!A || !G || p.singular) *known = false;
    if (*known && t_check(A->m * A->n <= G->m * G->n, "a cotangent of its size")) {
        const int64_t count = A->m * A->n,
                      step = count > 1 && G->m == count && G->n == count ? count + 1 : 1;
        for (int64_t i = 0; i < count; i++)
            sum += G->v[i * step].re * A->v[i].re + G->v[i * step].im * A->v[i].im;
    }
    ip_close(&p);
    return sum;
}

/* x += t d, of an array's memory; d: real and imaginary parts by turns. */
static void move(const lop_buf *x, int64_t n, long double t, const long double *d) {
    for (int64_t i = 0; i < n; i++) {
        double *p = (double *)x->p + (lop_is_complex(x->dt) ? 2 * i : i);
        p[0] = (double)(p[0] + t * d[2 * i]);
        if (lop_is_complex(x->dt)) p[1] = (double)(p[1] + t * d[2 * i + 1]);
    }
}

enum { MOST = 64 };

/* The first array below a node. */
static const lop_node *leaf_of(const lop_node *a) {
    while (a->op != &lop_op_array && a->n > 0) a = a->child[0];
    return a->op == &lop_op_array ? a : NULL;
}

static void child_of(const lop_node *a, int i, const lop_node *G, const char *who) {
    const lop_node *child = a->child[i], *leaf = leaf_of(child), *g = NULL;
    const lop_buf *x = leaf ? lop_rand_find(&w.rand, leaf->serial) : NULL;
    const lop_status st = lop_cotangent(&w.ctx, a, i, G, &g, &w.err);
    if (st == LOP_UNABLE) return;
    if (!t_check(st == LOP_OK, "%s: %s", who, w.err.text)) return;
    t_check(!lop_is_complex(g->dtype) || lop_is_complex(child->dtype), "%s, child %d: %s for %s",
            who, i, lop_dtype_name(g->dtype), lop_dtype_name(child->dtype));
    int64_t n = 1;
    for (int k = 0; leaf && k < leaf->shape.ndim; k++) n *= leaf->shape.dim[k];
    if (x && n <= MOST) {
        long double d[2 * MOST] = {0}, of[2][2];
        bool known = true;
        ip p;
        ip_open(&p, &w.rand, LOP_c128, false);
        const tv *here = ip_eval(&p, g), *whole = ip_eval(&p, G);
        for (int64_t k = 0; k < 2 * n; k++) d[k] = (long double)world_pick(&w, -8, 9) / 8;
        if (i == 1 && a->op == &lop_op_toeplitz) d[0] = d[1] = 0; /* the row's is not read */
        for (int side = 0; side < 2; side++) {
            move(x, n, side ? -2 * STEP : STEP, d);
            of[side][0] = paired(child, here, &known);
            of[side][1] = paired(a, whole, &known);
        }
        move(x, n, STEP, d);
        ip_close(&p);
        const long double got = (of[0][0] - of[1][0]) / (2 * STEP),
                          want = (of[0][1] - of[1][1]) / (2 * STEP);
        if (known)
            t_check(fabsl(got - want) <= 1e-6L * (1 + fabsl(of[0][0]) + fabsl(want)),
                    "%s, child %d: %.12Lg for %.12Lg", who, i, got, want);
    }
    lop_node_unref(g);
}

static void kind(const lop_op *op, int64_t m, int64_t n, lop_dtype dt, lop_dtype of) {
    const lop_node *a = NULL;
    if (op->random(&w.rand, m, n, dt, &a) != LOP_OK) return;
    const lop_node *G = t_one_of(&w, "dense", NULL, t_array(&w, of, 2, 2, (int64_t[]){m, n}));
    for (int i = 0; i < a->n; i++) child_of(a, i, G, op->name);
    lop_node_unref(G);
    G = NULL;
    /* of its own kind, and the inverse of one, transposed */
    if (op->random(&w.rand, m, n, of, &G) == LOP_OK) {
        for (int i = 0; i < a->n; i++) child_of(a, i, G, op->name);
        if (m == n) {
            const lop_attr turn = t_ints(LOP_H, 0, 0, 0);
            G = t_one_of(&w, "view", &turn, t_one_of(&w, "inverse", NULL, G));
            for (int i = 0; i < a->n; i++) child_of(a, i, G, op->name);
        }
    }
    lop_node_unref(G);
    lop_node_unref(a);
    world_leaves(&w);
}

int main(int argc, char **argv) {
    static const int64_t size[][2] = {{1, 1}, {2, 2}, {4, 4}, {5, 5}, {4, 6}, {6, 3}};
    world_open(&w, (uint64_t)t_number(argc, argv, 1, 5));
    for (int id = 0; id < lop_nops(); id++) {
        const lop_op *op = lop_op_at(id);
        if (!op->random || !op->vjp) continue;
        for (int s = 0; s < 6; s++)
            for (int d = 0; d < 4; d++)
                for (int again = 0; again < 4; again++)
                    kind(op, size[s][0], size[s][1], dtypes[d % 2], dtypes[d / 2]);
        t_group(op->name);
    }
    world_close(&w, "test_vjp");
    t_group("memory");
    return t_end();
}
