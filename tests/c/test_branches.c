/* test_branches.c: the fallback branches of plans: taken for the batch elements alone for which the
 * fast way fails, with what is right for each. */
#include "gen.h"

#include <math.h>

static world w;

static lop_plan *planned(const lop_node *root) {
    lop_plan *plan = NULL;
    lop_status st =
        root ? lop_plan_make(&w.ctx, w.rules, &w.options, root, &plan, &w.err) : LOP_INTERNAL;
    t_check(st == LOP_OK, "no plan: %s", w.err.text);
    return plan;
}
static const lop_node *matrix(lop_dtype dt, int64_t m, int64_t n) {
    return t_array(&w, dt, 2, 2, (int64_t[]){m, n});
}

static void branches(void) {
    for (int kind = 0; kind < 3; kind++)
        for (int columns = 0; columns < 2; columns++) {
            const lop_node *x =
                columns ? t_array(&w, LOP_f64, 2, 3, (int64_t[]){3, 4, 2}) : matrix(LOP_f64, 4, 1);
            const lop_node *y = t_two_of(&w, "solve", t_stack(&w, kind), x);
            lop_plan *plan = planned(y);
            if (!plan) continue;
            placed out;
            int64_t fallbacks = 0;
            char why[300] = "";
            lop_status st = t_exec(&w, plan, columns, &out, &fallbacks);
            t_check(fallbacks == (kind > 0), "kind %d: %lld fallbacks", kind, (long long)fallbacks);
            if (kind == 2) {
                t_check(st == LOP_SINGULAR && w.err.batch == 1 && w.err.step == 3,
                        "singular: status %s, batch %lld, step %lld", lop_status_name(st),
                        (long long)w.err.batch, (long long)w.err.step);
            } else {
                ip p;
                ip_open(&p, &w.rand, LOP_f64, false);
                const tv *want = ip_eval(&p, y);
                t_check(st == LOP_OK && tv_close(want, &out.buf, 100, why, sizeof why),
                        "kind %d: %s %s", kind, w.err.text, why);
                ip_close(&p);
            }
            placed_free(&out);
            lop_plan_unref(plan);
            lop_node_unref(y);
            world_leaves(&w);
        }
    t_group("guarded branches");
}

/* D + U U^T of `batch` elements, where the fast way fails for every third: small Choleskys go eight
 * at a time, and in the fallback branch only some of the eight are asked for. */
static const lop_node *updates(int64_t batch, int64_t n, int64_t k) {
    const lop_node *d = t_array(&w, LOP_f64, 1, 2, (int64_t[]){batch, n}),
                   *u = t_array(&w, LOP_f64, 2, 3, (int64_t[]){batch, n, k});
    double *p = lop_rand_find(&w.rand, d->serial)->p;
    for (int64_t i = 0; i < batch * n; i++) p[i] = (i / n % 3 == 1 ? -1 : 1) * (0.5 + fabs(p[i]));
    const lop_node *a = t_one_of(&w, "diag", NULL, d), *b = t_one_of(&w, "dense", NULL, u);
    const lop_node *sum = t_node(&w, "lowrankupdate", NULL, 3, (const lop_node *[]){a, b, b});
    lop_node_unref(a);
    lop_node_unref(b);
    return sum;
}

static void groups_in_branches(void) {
    for (int64_t batch = 2; batch <= 17; batch += 5)
        for (int again = 0; again < 50; again++)
            for (int of = 0; of < 2; of++) {
                const lop_node *a = updates(batch, 40, 3), *y;
                if (of)
                    y = t_two_of(&w, "solve", a, t_array(&w, LOP_f64, 2, 2, (int64_t[]){40, 1}));
                else
                    y = t_one_of(&w, "scaledet", NULL, a);
                t_agrees(&w, y, 0, 1e6, "an update where some are not accepted");
                lop_node_unref(y);
                world_leaves(&w);
            }
    t_group("groups in branches");
}

int main(int argc, char **argv) {
    world_open(&w, (uint64_t)t_number(argc, argv, 1, 5));
    branches();
    groups_in_branches();
    world_close(&w, "test_branches");
    t_group("memory");
    return t_end();
}
