/* record.c: see record.h. Numbers are written as the bytes that they are, in hexadecimal, in C
 * order; coefficients by %a. */
#include "record.h"

#include "expr/node_map.h"
#include "rewrite/assumptions.h"
#include "rewrite/rewrite.h"

#include <stdio.h>
#include <stdlib.h>

static void put_sizes(FILE *f, const lop_shape *s) {
    fputc('[', f);
    for (int i = 0; i < s->ndim; i++) fprintf(f, "%s%lld", i ? "," : "", (long long)s->dim[i]);
    fputc(']', f);
}

static void put_bytes(FILE *f, const void *p, size_t size) {
    for (size_t i = 0; i < size; i++) fprintf(f, "%02x", ((const unsigned char *)p)[i]);
}

/* In C order, whatever the strides. */
static void put_array(FILE *f, const lop_buf *a) {
    const size_t size = lop_dtype_size(a->dt);
    int64_t at[LOP_MAXDIM] = {0}, count = 1, offset = 0;
    for (int d = 0; d < a->shape.ndim; d++) count *= a->shape.dim[d];
    fprintf(f, "[\"%s\",", lop_dtype_name(a->dt));
    put_sizes(f, &a->shape);
    fputs(",\"", f);
    for (int64_t i = 0; i < count; i++) {
        put_bytes(f, (const char *)a->p + offset * (int64_t)size, size);
        for (int d = a->shape.ndim - 1; d >= 0; d--) {
            offset += a->stride[d];
            if (++at[d] < a->shape.dim[d]) break;
            offset -= at[d] * a->stride[d];
            at[d] = 0;
        }
    }
    fputs("\"]", f);
}

/* Children before parents; what is known is not written again. */
static void put_node(FILE *f, lop_map *map, const lop_node *node) {
    int at;
    if (lop_map_get(map, node, &at)) return;
    for (int i = 0; i < node->n; i++) put_node(f, map, node->child[i]);
    fprintf(f, "%s[\"%s\",[", map->count ? "," : "", node->op->name);
    for (int i = 0; i < node->n; i++) {
        if (!lop_map_get(map, node->child[i], &at)) abort();
        fprintf(f, "%s%d", i ? "," : "", at);
    }
    const int64_t *n = node->attr.i;
    fprintf(f, "],[%lld,%lld,%lld,%lld],[\"%a\",\"%a\"],\"%s\",", (long long)n[0], (long long)n[1],
            (long long)n[2], (long long)n[3], node->attr.re, node->attr.im,
            lop_dtype_name(node->dtype));
    put_sizes(f, &node->shape);
    fprintf(f, ",%d,%llu]", (int)node->core, (unsigned long long)node->serial);
    if (lop_map_set(map, node, (int)map->count) != LOP_OK) abort();
}

static void put_plan(FILE *f, world *w, const lop_node *form, const lop_buf *result,
                     const char *who) {
    lop_map map = {0};
    if (lop_map_init(&map, &w->ctx) != LOP_OK) abort();
    fprintf(f, "{\"who\":\"%s\",\"rows\":[", who);
    put_node(f, &map, form);
    fputs("],\"leaves\":{", f);
    for (int i = 0; i < w->rand.n; i++) {
        fprintf(f, "%s\"%llu\":", i ? "," : "", (unsigned long long)w->rand.serial[i]);
        put_array(f, &w->rand.buf[i]);
    }
    fputs("},\"result\":", f);
    put_array(f, result);
    fputs("}\n", f);
    lop_map_clear(&map, &w->ctx);
}

void record_plan(world *w, const lop_node *root, const lop_buf *result, const char *who) {
    static int64_t run;
    const char *path = getenv("PYLINOP_RECORD"), *each = getenv("PYLINOP_RECORD_EACH");
    if (!path || run++ % (each ? atoll(each) : 1)) return;
    const lop_node *kinds = NULL, *form = NULL;
    lop_tab tab;
    lop_trace trace = {.count = 0};
    lop_tab_init(&tab, &w->ctx);
    lop_status st = lop_declared_kinds(w->rules, root, &kinds, &w->err);
    if (st == LOP_OK) st = lop_rewrite(w->rules, &tab, kinds, &form, &trace, &w->err);
    FILE *f = st == LOP_OK ? fopen(path, "a") : NULL;
    if (t_check(f != NULL, "%s: nothing recorded: %s", who, w->err.text)) {
        put_plan(f, w, form, result, who);
        fclose(f);
    }
    lop_node_unref(form);
    lop_node_unref(kinds);
    lop_tab_clear(&tab);
}
