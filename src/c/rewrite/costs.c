/* costs.c: prices. gemm's rate falls with its smallest dimension d as d / (d + 8), which also puts
 * gemv where memory bounds it. Figures: AMD EPYC, one thread, float64, 2026-11; only their ratios
 * matter, and plans differ by them only where two ways are close. */
#include "costs.h"

#include "line_sums.h"
#include "ops/shared/sparse_solver.h"

#include <math.h>

const lop_costs lop_costs_default = {
    .version = 1, .flop_rate = 2e9, .gemm_rate = 4e10, .bandwidth = 1.2e10, .overhead = 2e-8};

static lop_price price_of(const lop_costs *c, double flops, double rate, double bytes) {
    double work = flops / rate, move = bytes / c->bandwidth;
    return (lop_price){(work > move ? work : move) + c->overhead, flops};
}
static double size_of(lop_dtype dt) { return (double)lop_dtype_size(dt); }
static double weight(lop_dtype dt) { return lop_is_complex(dt) ? 4 : 1; } /* of a flop, in time */

/* Seconds a flop of gemm. */
static double gemm_second(const lop_costs *c, lop_dtype dt, int64_t m, int64_t n, int64_t k) {
    int64_t d = m < n ? m : n;
    if (k < d) d = k;
    double full = weight(dt) / c->gemm_rate;
    if (dt == LOP_f32 || dt == LOP_c64) full *= 0.5;
    return full * (1 + 8 / (double)(d > 0 ? d : 1));
}

lop_price lop_price_gemm(const lop_costs *c, lop_dtype dt, int64_t m, int64_t n, int64_t k,
                         double batch) {
    double a = (double)m, b = (double)n, l = (double)k, flops = 2 * a * b * l * batch;
    double work = flops * gemm_second(c, dt, m, n, k),
           move = (a * l + l * b + a * b) * size_of(dt) * batch / c->bandwidth;
    return (lop_price){(work > move ? work : move) + c->overhead, flops};
}

lop_price lop_price_gram(const lop_costs *c, lop_dtype dt, int64_t n, int64_t k, double batch) {
    double a = (double)n, l = (double)k;
    lop_price p = price_of(c, a * (a + 1) * l * batch, 1 / gemm_second(c, dt, n, n, k),
                           (a * l + a * a) * size_of(dt) * batch);
    return lop_price_add(p, (lop_price){a * a * size_of(dt) * batch / c->bandwidth, 0});
}

lop_price lop_price_pass(const lop_costs *c, lop_dtype dt, double count, int reads) {
    return price_of(c, count, c->flop_rate, count * size_of(dt) * (reads + 1));
}

lop_price lop_price_apply(const lop_costs *c, lop_dtype dt, const lop_node *op, int64_t k,
                          double batch) {
    int64_t m = lop_rows(op), n = lop_cols(op);
    if (op->op == &lop_op_dense || op->op == &lop_op_triangular) {
        lop_price p = lop_price_gemm(c, dt, m, k, n, batch);
        double half = op->op->flops(op, k) * batch;
        if (half < 0.9 * p.flops) { /* one triangle; x is copied first */
            p.seconds *= half / p.flops;
            p.seconds += (double)n * (double)k * batch * size_of(dt) / c->bandwidth;
            p.flops = half;
        }
        return p;
    }
    double flops = op->op->flops ? op->op->flops(op, k) : 2 * (double)m * (double)n * (double)k;
    /* entries of kernels are made in registers, at gemm's rate (op_kernel.c) */
    const double rate = op->op == &lop_op_kernel ? c->gemm_rate : c->flop_rate;
    return price_of(c, flops * batch, rate / weight(dt),
                    ((double)m + (double)n) * (double)k * size_of(dt) * batch);
}

lop_price lop_price_dense(const lop_costs *c, lop_dtype dt, const lop_node *op, double batch) {
    double count = (double)lop_rows(op) * (double)lop_cols(op) * batch;
    if (op->op == &lop_op_dense && op->child[0]->op == &lop_op_named) /* mirrored */
        return lop_price_pass(c, dt, count, 0);
    if (op->op == &lop_op_dense)
        return op->dtype == dt ? (lop_price){0, 0} : lop_price_pass(c, dt, count, 1);
    if (op->op->dense || op->op == &lop_op_kron || op->op == &lop_op_identity)
        return lop_price_pass(c, dt, count, 0);
    return lop_price_apply(c, dt, op, lop_cols(op), batch);
}

/* What a solve needs made first: a factor, for all but the kinds that are solved as they are. */
static bool is_triangle(const lop_node *op) {
    return op->op == &lop_op_triangular ||
           (op->op == &lop_op_dense &&
            (op->attr.i[0] == LOP_ASSUME_LOWER || op->attr.i[0] == LOP_ASSUME_UPPER));
}
static bool solved_at_once(const lop_node *op) {
    return op->op == &lop_op_identity || lop_node_trait(op, LOP_DIAGONAL) == LOP_TRUE ||
           op->op == &lop_op_diag;
}

/* By a fill of some five times the entries. */
static lop_price sparse_price(const lop_costs *c, lop_dtype dt, const lop_node *op, double each) {
    const double some = lop_sparse_entries(op);
    return price_of(c, each * some, c->flop_rate / weight(dt), 5 * some * size_of(dt));
}

/* By the states of points on a line: flops a row and state, twice where there are columns. With a
 * thin term beside them its columns are solved for with the factor. */
static bool line_price(const lop_costs *c, lop_dtype dt, const lop_node *op, double columns,
                       lop_price *p) {
    lop_line_sum s;
    if (!lop_line_update_read(&s, op)) return false;
    const double n = (double)lop_rows(op), J = (double)s.states,
                 low =
                     s.low ? (double)lop_cols(s.low->child[s.low->op == &lop_op_lowrankupdate]) : 0,
                 all = columns > 0 ? columns : low,
                 each =
                     columns > 0 ? 4 * (J + 2) * columns : 4 * ((J + 1) * (J + 10) + (J + 2) * low);
    *p = price_of(c, n * (J * each + 2 * low * all), c->flop_rate / weight(dt),
                  n * (2 * J + J * J + low + all) * size_of(dt));
    return true;
}

lop_price lop_price_factor(const lop_costs *c, lop_dtype dt, const lop_node *op, double batch) {
    double n = (double)lop_rows(op), cube = n * n * n * batch;
    lop_price p = {0, 0};
    if (is_triangle(op) || solved_at_once(op) || line_price(c, dt, op, 0, &p)) return p;
    if (op->op == &lop_op_kron) {
        for (int i = 0; i < op->n; i++)
            if (lop_is_square(op->child[i]))
                p = lop_price_add(p, lop_price_factor(c, dt, op->child[i], batch));
        return p;
    }
    if (lop_sparse_pays(op)) return sparse_price(c, dt, op, 100);
    bool half = lop_node_trait(op, LOP_POSITIVE) == LOP_TRUE;
    return price_of(c, half ? cube / 3 : 2 * cube / 3,
                    1 / gemm_second(c, dt, (int64_t)n, (int64_t)n, 64),
                    n * n * size_of(dt) * batch);
}

lop_price lop_price_invert(const lop_costs *c, lop_dtype dt, const lop_node *op, bool positive,
                           double batch) {
    int64_t n = lop_rows(op);
    if (op->op != &lop_op_dense && op->op != &lop_op_sum && op->op != &lop_op_prod)
        return lop_price_solve(c, dt, op, n, batch);
    return lop_price_gemm(c, dt, n, n, n, batch * (positive ? 1 : 2) / 3);
}

lop_price lop_price_solve(const lop_costs *c, lop_dtype dt, const lop_node *op, int64_t k,
                          double batch) {
    int64_t n = lop_rows(op);
    double count = (double)n * (double)k * batch;
    if (solved_at_once(op)) return lop_price_pass(c, dt, count, 2);
    if (op->op == &lop_op_kron) return lop_price_apply(c, dt, op, k, batch);
    if (lop_sparse_pays(op)) return sparse_price(c, dt, op, 20 * (double)k * batch);
    lop_price p;
    if (line_price(c, dt, op, (double)k * batch, &p)) return p;
    p = lop_price_gemm(c, dt, n, k, n, is_triangle(op) ? batch / 2 : batch);
    return lop_price_add(p, lop_price_pass(c, dt, count, 1));
}
