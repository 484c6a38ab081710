/* costs.h: the cost table, and the price of a step by it: max(flops / rate, bytes /
 * bandwidth) and something for the call. No clocks: the same sizes cost the same everywhere. */
#ifndef LOP_COSTS_H
#define LOP_COSTS_H

#include "expr/op.h"

/* Shipped figures, measured (see the .c). Rates per second, overhead in seconds a step. */
typedef struct lop_costs {
    int version;
    double flop_rate, gemm_rate, bandwidth, overhead;
} lop_costs;
extern const lop_costs lop_costs_default;
/* The table in use: the context's, else the shipped one. */
static inline const lop_costs *lop_costs_of(const lop_ctx *ctx) {
    return ctx->costs ? ctx->costs : &lop_costs_default;
}

typedef struct lop_price {
    double seconds, flops;
} lop_price;
static inline lop_price lop_price_add(lop_price a, lop_price b) {
    return (lop_price){a.seconds + b.seconds, a.flops + b.flops};
}

/* All by table `c`, in dtype `dt`, for `batch` elements of the result. */
lop_price lop_price_gemm(const lop_costs *c, lop_dtype dt, int64_t m, int64_t n, int64_t k,
                         double batch);
/* R^T R for R of k x n. */
lop_price lop_price_gram(const lop_costs *c, lop_dtype dt, int64_t n, int64_t k, double batch);
/* One pass over `count` elements that reads `reads` arrays and writes one. */
lop_price lop_price_pass(const lop_costs *c, lop_dtype dt, double count, int reads);
/* An operator (no view, no inverse) times k columns; its dense form; a solve for k columns without
 * and the making of what solves need once. */
lop_price lop_price_apply(const lop_costs *c, lop_dtype dt, const lop_node *op, int64_t k,
                          double batch);
lop_price lop_price_dense(const lop_costs *c, lop_dtype dt, const lop_node *op, double batch);
lop_price lop_price_solve(const lop_costs *c, lop_dtype dt, const lop_node *op, int64_t k,
                          double batch);
/* The inverse itself, the factor apart; `positive`: by Cholesky. */
lop_price lop_price_invert(const lop_costs *c, lop_dtype dt, const lop_node *op, bool positive,
                           double batch);
lop_price lop_price_factor(const lop_costs *c, lop_dtype dt, const lop_node *op, double batch);

#endif
