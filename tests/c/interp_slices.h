/* interp_slices.h: a part of interp.c: rows, columns, batch elements; by start, step, count or by
 * an index. */

static int64_t taken_from(const lop_node *node, mv index, int64_t i) {
    return node->n > 1 ? (int64_t)index.v[i].i : node->attr.i[1] + node->attr.i[2] * i;
}
static void do_take(ip *p, const lop_node *node, mv y, mv a, mv b) {
    (void)p;
    bool columns = node->attr.i[0] == 1;
    for (int64_t i = 0; i < y.m; i++)
        for (int64_t j = 0; j < y.n; j++)
            y.v[i * y.n + j] = a.v[(columns ? i : taken_from(node, b, i)) * a.n +
                                   (columns ? taken_from(node, b, j) : j)];
}
static void do_putback(ip *p, const lop_node *node, mv y, mv a, mv b) {
    for (int64_t i = 0; i < a.m; i++)
        for (int64_t j = 0; j < y.n; j++) {
            val *to = &y.v[taken_from(node, b, i) * y.n + j];
            *to = add(p, *to, a.v[i * a.n + j]);
        }
}
static void do_diagrun(ip *p, const lop_node *node, mv y, mv c, mv r) {
    (void)p;
    for (int64_t i = 0; i < y.m; i++) {
        int64_t d = node->attr.i[0] + node->attr.i[1] * i;
        y.v[i] = d < 0 ? r.v[-d] : c.v[d];
    }
}
static tv *take_batch(ip *p, const lop_node *node, const tv *a, mv index, int64_t count) {
    lop_shape batch = a->batch;
    int at = batch.ndim - (int)node->attr.i[0] + 1;
    bool drop = count < 0;
    batch.dim[at] = drop ? 1 : count;
    tv *y = blank(p, &batch, a->core, a->m, a->n);
    int64_t after = 1, size = a->m * a->n;
    for (int i = at + 1; i < batch.ndim; i++) after *= batch.dim[i];
    for (int64_t e = 0; e < y->nb; e++) {
        int64_t here = e / after % batch.dim[at],
                from =
                    (e / after / batch.dim[at] * a->batch.dim[at] + taken_from(node, index, here)) *
                        after +
                    e % after;
        memcpy(y->v + e * size, a->v + from * size, (size_t)size * sizeof *y->v);
    }
    for (int i = at; drop && i + 1 < batch.ndim; i++) y->batch.dim[i] = batch.dim[i + 1];
    y->batch.ndim -= drop;
    return y;
}
static const tv *sliced(ip *p, const lop_node *node, const tv *a, const tv *index) {
    int64_t axis = node->attr.i[0], count = index ? index->m : node->attr.i[3];
    if (axis > 1)
        return take_batch(p, node, a, index ? (mv){index->v, index->m, 1} : (mv){0}, count);
    return zip(p, node, a, index, a->core, axis ? a->m : count, axis ? count : a->n, do_take);
}
