/* contract_run.c: a contraction's plan on memory: loops around products of matrices and nests. */
#include "contract.h"

#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_nest.h"
#include "kernels/dense/k_small_gemm.h"

#include <string.h>

enum { LOOK = 1 << 24 }; /* flops between two questions whether to stop */

typedef struct run {
    const lop_contraction *plan;
    const lop_contract_step *step;
    int64_t size, since;
    bool (*stop)(void *user);
    void *user;
} run;

static inline char *moved(char *p, int64_t by, int64_t size) { return p ? p + by * size : NULL; }

/* So much has been done: go on? */
static bool going(run *r, int64_t flops) {
    r->since += flops;
    if (r->since <= LOOK) return true;
    r->since = 0;
    return !r->stop || !r->stop(r->user);
}

/* The two innermost loops of a nest, a long one in pieces, between which it may be stopped. */
static bool nest(run *r, char *c, char *a, char *b, bool add) {
    const lop_contract_step *s = r->step;
    const lop_loop *last = r->plan->loop + s->first + s->nloop, *p = &last[-2], *q = &last[-1];
    const int64_t wide = q->size < LOOK ? q->size : LOOK, rows = LOOK / (wide > 0 ? wide : 1);
    for (int64_t i = 0; i < p->size; i += rows)
        for (int64_t j = 0; j < q->size; j += wide) {
            const int64_t m = p->size - i < rows ? p->size - i : rows,
                          n = q->size - j < wide ? q->size - j : wide;
            const lopk_loop outer = {m, p->c, p->a, p->b, p->sum},
                            inner = {n, q->c, q->a, q->b, q->sum};
            lopk_nest(moved(c, i * p->c + j * q->c, r->size),
                      moved(a, i * p->a + j * q->a, r->size),
                      moved(b, i * p->b + j * q->b, r->size), &outer, &inner, r->plan->dt,
                      add || (p->sum && i) || (q->sum && j), s->tiles);
            if ((i + m < p->size || j + n < q->size) && !going(r, 2 * m * n)) return false;
        }
    return true;
}

/* The step's kernel at one place of the loops around it. */
static bool kernel(run *r, char *c, char *a, char *b, bool add) {
    const lop_contract_step *s = r->step;
    const lop_dtype dt = r->plan->dt;
    const lop_loop *last = r->plan->loop + s->first + s->nloop;
    if (s->how == LOP_BY_NEST) return nest(r, c, a, b, add);
    const lop_mat y = {c, s->m, s->n, s->cm, s->cn, dt}, x = {a, s->m, s->k, s->am, s->ak, dt},
                  z = {b, s->k, s->n, s->bk, s->bn, dt};
    if (s->how == LOP_BY_GRAM) {
        const lop_mat u = {b, s->k, s->n, s->bk, s->bn, dt};
        lopk_gram(&y, &u, false);
    } else if (s->group)
        lopk_windows_gemm(&y, &x, &z, s->group, s->apart, add);
    else if (s->each)
        lopk_gemm_each(&y, last[-1].c, &x, last[-1].a, false, &z, last[-1].b, last[-1].size);
    else
        lopk_gemm(&y, &x, false, &z, add);
    return true;
}

/* All places of the loops, the last one fastest. */
static bool around(run *r, char *c, char *a, char *b) {
    const lop_contract_step *s = r->step;
    const int inside = s->how == LOP_BY_NEST ? 2 : s->each, n = s->nloop - inside;
    const lop_loop *loop = r->plan->loop + s->first;
    int64_t at[2 * LOP_MAXAXES + 2] = {0};
    double places = 1;
    int summing = 0; /* loops over sums that have left their first place */
    for (int i = 0; i < n; i++) places *= (double)loop[i].size;
    const int64_t each = (int64_t)(s->flops / places) + 64;
    for (;;) {
        if (!kernel(r, c, a, b, summing > 0) || !going(r, each)) return false;
        int i = n - 1;
        for (; i >= 0; i--) {
            if (at[i] + 1 < loop[i].size) break;
            c = moved(c, -at[i] * loop[i].c, r->size);
            a = moved(a, -at[i] * loop[i].a, r->size);
            b = moved(b, -at[i] * loop[i].b, r->size);
            if (loop[i].sum && at[i]) summing--;
            at[i] = 0;
        }
        if (i < 0) return true;
        if (loop[i].sum && !at[i]) summing++;
        at[i]++;
        c = moved(c, loop[i].c, r->size);
        a = moved(a, loop[i].a, r->size);
        b = moved(b, loop[i].b, r->size);
    }
}

/* Zeros all over an array of any strides. */
static void clear(const lop_contraction *p, char *c, int64_t size) {
    int64_t at[LOP_MAXAXES] = {0};
    const lop_axes *x = &p->result;
    for (int i = 0; i < x->n; i++)
        if (x->size[i] == 0) return;
    for (;;) {
        memset(c, 0, (size_t)size);
        int i = x->n - 1;
        for (; i >= 0; i--) {
            if (at[i] + 1 < x->size[i]) break;
            c -= at[i] * x->stride[i] * size;
            at[i] = 0;
        }
        if (i < 0) return;
        at[i]++;
        c += x->stride[i] * size;
    }
}

/* All steps, on a part of the arrays. */
static bool steps(run *r, const void *const *operand, void *result, void *workspace, int64_t part) {
    const lop_contraction *p = r->plan;
    const int n = p->noperand;
    for (int i = 0; i < p->nstep; i++) {
        const lop_contract_step *s = r->step = &p->step[i];
        const int slot[3] = {s->c, s->a, s->b};
        char *at[3];
        for (int j = 0; j < 3; j++) {
            const int k = slot[j];
            at[j] = k < 0    ? NULL
                    : k < n  ? (char *)(uintptr_t)operand[k]
                    : k == n ? result
                             : (char *)workspace + p->offset[k];
            if (part && k >= 0 && k <= n) at[j] = moved(at[j], part * p->part[k], r->size);
        }
        if (!around(r, at[0], at[1], at[2])) return false;
    }
    return true;
}

lop_status lop_contract_run(const lop_contraction *plan, const void *const *operand, void *result,
                            void *workspace, bool (*stop)(void *user), void *user) {
    run r = {plan, NULL, (int64_t)lop_dtype_size(plan->dt), 0, stop, user};
    if (plan->zero) {
        clear(plan, result, r.size);
        return LOP_OK;
    }
    for (int64_t i = 0; i < plan->parts; i++)
        if (!steps(&r, operand, result, workspace, i)) return LOP_CALLBACK;
    return LOP_OK;
}
