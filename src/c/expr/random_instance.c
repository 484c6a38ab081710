/* random_instance.c: random leaves for the batteries. Everything follows from the seed. */
#include "random_instance.h"

#include <string.h>

void lop_rand_init(lop_rand *r, lop_ctx *ctx, uint64_t seed, lop_err *err) {
    r->ctx = ctx;
    r->rng.state = seed;
    r->err = err;
    r->n = 0;
}

void lop_rand_clear(lop_rand *r) {
    for (int i = 0; i < r->n; i++) lop_free(r->ctx, r->buf[i].p);
    r->n = 0;
}

/* A zeroed C-ordered leaf. */
static lop_status blank(lop_rand *r, lop_dtype dt, int core, const lop_shape *shape, int64_t *count,
                        const lop_node **out) {
    *out = NULL;
    if (r->n == LOP_RAND_LEAVES) return lop_fail(r->err, LOP_INTERNAL, "too many random leaves");
    lop_status st = lop_shape_count(shape, count, r->err);
    if (st != LOP_OK) return st;
    lop_buf b = {.dt = dt, .shape = *shape};
    b.p = lop_calloc(r->ctx, (size_t)*count, lop_dtype_size(dt));
    if (!b.p) return lop_fail(r->err, LOP_NOMEM, NULL);
    int64_t stride = 1;
    for (int i = shape->ndim - 1; i >= 0; i--) {
        b.stride[i] = stride;
        stride *= shape->dim[i];
    }
    st = lop_node_leaf(r->ctx, dt, core, shape, out, r->err);
    if (st != LOP_OK) {
        lop_free(r->ctx, b.p);
        return st;
    }
    r->serial[r->n] = (*out)->serial;
    r->buf[r->n++] = b;
    return st;
}

lop_status lop_rand_array(lop_rand *r, lop_dtype dt, int core, const lop_shape *shape,
                          const lop_node **out) {
    int64_t count;
    lop_status st = blank(r, dt, core, shape, &count, out);
    if (st != LOP_OK) return st;
    void *p = r->buf[r->n - 1].p;
    bool exact = !lop_is_blas(dt);
    for (int64_t i = 0; i < count; i++) {
        double re = exact ? (double)lop_rng_range(&r->rng, 0, 4) : lop_rng_normal(&r->rng);
        double im = lop_is_complex(dt) ? lop_rng_normal(&r->rng) : 0;
        lop_set(dt, p, i, re + im * I);
    }
    return st;
}

lop_status lop_rand_vector(lop_rand *r, lop_dtype dt, int64_t n, const lop_node **out) {
    lop_shape s = {.ndim = 1, .dim = {n}};
    return lop_rand_array(r, dt, 1, &s, out);
}

lop_status lop_rand_matrix(lop_rand *r, lop_dtype dt, int64_t m, int64_t n, const lop_node **out) {
    lop_shape s = {.ndim = 2, .dim = {m, n}};
    return lop_rand_array(r, dt, 2, &s, out);
}

lop_status lop_rand_index(lop_rand *r, int64_t n, int64_t lo, int64_t hi, const lop_node **out) {
    lop_shape s = {.ndim = 1, .dim = {n}};
    int64_t count;
    lop_status st = blank(r, LOP_i64, 1, &s, &count, out);
    for (int64_t i = 0; st == LOP_OK && i < n; i++)
        ((int64_t *)r->buf[r->n - 1].p)[i] = lop_rng_range(&r->rng, lo, hi);
    return st;
}

lop_status lop_rand_permutation(lop_rand *r, int64_t n, const lop_node **out) {
    lop_status st = lop_rand_index(r, n, 0, 1, out);
    int64_t *p = st == LOP_OK ? r->buf[r->n - 1].p : NULL;
    for (int64_t i = 0; p && i < n; i++) p[i] = i;
    for (int64_t i = n - 1; p && i >= 0; i--) {
        int64_t j = lop_rng_range(&r->rng, 0, i + 1), v = p[j];
        p[j] = p[i];
        p[i] = lop_rng_next(&r->rng) % 2 ? v : v - n;
    }
    return st;
}

lop_status lop_rand_dense(lop_rand *r, int64_t m, int64_t n, lop_dtype dt, const lop_node **out) {
    const lop_node *a;
    lop_status st = lop_rand_matrix(r, dt, m, n, &a);
    if (st != LOP_OK) return st;
    st = lop_node_make(r->ctx, &lop_op_dense, NULL, 1, &a, NULL, out, r->err);
    lop_node_unref(a);
    return st;
}

const lop_buf *lop_rand_find(const lop_rand *r, uint64_t serial) {
    for (int i = 0; i < r->n; i++)
        if (r->serial[i] == serial) return &r->buf[i];
    return NULL;
}
