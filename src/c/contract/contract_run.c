/* contract_run.c: a contraction's plan on memory: loops around products of matrices and nests. */
#include "contract.h"

#include "kernels/dense/k_blas.h"
#include "kernels/dense/k_nest.h"

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

/* The step's kernel at one place of the loops around it. */
static void kernel(const run *r, char *c, char *a, char *b, bool add) {
    const lop_contract_step *s = r->step;
    const lop_dtype dt = r->plan->dt;
    const lop_loop *last = r->plan->loop + s->first + s->nloop;
    if (s->how == LOP_BY_NEST) {
        const lopk_loop p = {last[-2].size, last[-2].c, last[-2].a, last[-2].b, last[-2].sum},
                        q = {last[-1].size, last[-1].c, last[-1].a, last[-1].b, last[-1].sum};
        lopk_nest(c, a, b, &p, &q, dt, add, s->tiles);
        return;
    }
    const lop_mat y = {c, s->m, s->n, s->cm, s->cn, dt}, x = {a, s->m, s->k, s->am, s->ak, dt},
                  z = {b, s->k, s->n, s->bk, s->bn, dt};
    if (s->how == LOP_BY_GRAM) {
        const lop_mat u = {b, s->k, s->n, s->bk, s->bn, dt};
        lopk_gram(&y, &u, false);
    } else if (s->each)
        lopk_gemm_each(&y, last[-1].c, &x, last[-1].a, false, &z, last[-1].b, last[-1].size);
    else
        lopk_gemm(&y, &x, false, &z, add);
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
        kernel(r, c, a, b, summing > 0);
        r->since += each;
        if (r->since > LOOK) {
            r->since = 0;
            if (r->stop && r->stop(r->user)) return false;
        }
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

lop_status lop_contract_run(const lop_contraction *plan, const void *const *operand, void *result,
                            void *workspace, bool (*stop)(void *user), void *user) {
    const int n = plan->noperand;
    run r = {plan, NULL, (int64_t)lop_dtype_size(plan->dt), 0, stop, user};
    if (plan->zero) {
        clear(plan, result, r.size);
        return LOP_OK;
    }
    for (int i = 0; i < plan->nstep; i++) {
        const lop_contract_step *s = r.step = &plan->step[i];
        const int slot[3] = {s->c, s->a, s->b};
        char *p[3];
        for (int j = 0; j < 3; j++)
            p[j] = slot[j] < 0    ? NULL
                   : slot[j] < n  ? (char *)(uintptr_t)operand[slot[j]]
                   : slot[j] == n ? result
                                  : (char *)workspace + plan->offset[slot[j]];
        if (!around(&r, p[0], p[1], p[2])) return LOP_CALLBACK;
    }
    return LOP_OK;
}
